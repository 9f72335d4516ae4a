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


def check_statement(given: Mapping[str, Any]) -> None:
    """--statement names a new file that can be written, if it names one."""
    from dphmm.storage.inputs import checked_output

    path = given["statement"]
    if path is None:
        return
    inputs = [given["model"], given["policy"], given["ledger"]]
    if checked_output(path, inputs, "--statement").exists():
        raise InvalidInput("--statement", f"{path}, which exists", "a new file: a statement is about one run")


@contextmanager
def stated(batch: Batch, given: Mapping[str, Any]) -> Iterator[Callable[[Released, str], None]]:
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
            model=batch.model,
            policy=batch.policy,
            space=batch.space,
            options=batch.options,
            query=batch.query,
            model_people=given["model_people"],
        )
        save_statement(Path(given["statement"]), statement, "-", lines.hexdigest())
