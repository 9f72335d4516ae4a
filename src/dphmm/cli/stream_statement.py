"""The privacy statement of a stream, written when it ends, however it ends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.batch import Batch, Released
    from dphmm.cli.console import Console
    from dphmm.cli.release_job import Job
    from dphmm.storage.people import Whom


def check_statement(given: Mapping[str, Any]) -> None:
    """--statement names a new file that can be written, if it names one."""
    from dphmm.storage.inputs import checked_output

    path = given["statement"]
    if path is None:
        return
    inputs = [given["model"], given["policy"], given["ledger"]]
    if checked_output(path, inputs, "--statement").exists():
        raise InvalidInput("--statement", f"{path}, which exists", "a new file: a statement is about one run")


class Names:
    """The user names of a stream, held against those that the model was fitted on; warns of the first that is one."""

    def __init__(self, job: Job, given: Mapping[str, Any], console: Console) -> None:
        from dphmm.cli.release_job import fitted_on
        from dphmm.storage.people import people_path

        self._model, self._declared, self._console = job.model, given["model_people"], console
        self._people = fitted_on(job, given, console)
        self._among: bool | None = None
        if self._people is None or self._declared is not None:
            self._warn()
        else:
            console.note(f"whom the model was fitted on is told by the user names of the lines, with "
                         f"{people_path(given['model']).name}")  # fmt: skip

    @property
    def whom(self) -> Whom:
        """Whom the model was fitted on, seen from the users met so far."""
        from dphmm.storage.people import whom

        return whom(self._declared, self._among)

    def meet(self, user: str) -> None:
        """Compare the name of a user who has been answered."""
        if self._people is None or self._among:
            return
        self._among = self._people.has_one_of([user])
        if self._among:
            self._warn()

    def _warn(self) -> None:
        from dphmm.cli.public_warnings import whom_warning

        whom_warning(self._model, self.whom, self._console)


@contextmanager
def stated(batch: Batch, given: Mapping[str, Any], names: Names) -> Iterator[Callable[[Released, str], None]]:
    """A function to call with every release and the line it was answered by; writes the statement at the end.

    The end may be an interrupt or an error: what was answered before was published.
    """
    if given["statement"] is None:
        yield lambda released, line: None
        return
    from dphmm.storage.statement import Published, privacy_statement, save_statement

    published, lines = Published(), hashlib.sha256()
    told: set[tuple[str, int]] = set()

    def answered(released: Released, line: str) -> None:
        lines.update(line.encode() + b"\n")
        # The same step asked again is the same release.
        if (released.user, released.release.t) not in told:
            told.add((released.user, released.release.t))
            published.add([released])

    try:
        yield answered
    finally:
        statement = privacy_statement(
            published,
            model=batch.setting.model,
            policy=batch.setting.policy,
            space=batch.setting.space,
            options=batch.setting.options,
            query=batch.setting.query,
            model_people=names.whom.people,
            known_by=names.whom.known_by,
        )
        save_statement(Path(given["statement"]), statement, "-", lines.hexdigest())
