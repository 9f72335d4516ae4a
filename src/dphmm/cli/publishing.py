"""--ledger of fit and query: the account that a publication is stored and counted in before it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dphmm._checks import exact_epsilon
from dphmm.accounting.event import NotPrivateEvent
from dphmm.cli.console import Interrupted, Row
from dphmm.cli.options import new_output
from dphmm.errors import InvalidInput
from dphmm.storage.ledger import COMMANDS, open_ledger

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.markov.hidden.hmm import CategoricalHMM
    from dphmm.markov.model import MarkovModel
    from dphmm.storage.publications import AdmitFit, Kept

    Model = TypeVar("Model", MarkovModel, CategoricalHMM)

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--ledger", metavar="L", help="Store it in this ledger first; it counts for every person there."),
    click.option(
        "--publication",
        metavar="NAME",
        help="Its name in the ledger; the same name gives the stored result.  [default: by the public settings]",
    ),
    click.option(
        "--cap-epsilon",
        metavar="E",
        help="Of all publications of the ledger, for a person replaced; it stays.",
    ),
)
#: Options that say where a result is put, and nothing about what it is.
_NOT_ASKED = {
    "output", "force", "as_json", "quiet", "ledger", "publication", "cap_epsilon", "data", "trajectories",
}  # fmt: skip


def ledger_options(command: F) -> F:
    """--ledger, --publication and --cap-epsilon."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_ledger(given: Mapping[str, Any]) -> None:
    """Refuse options that only a ledger heeds, and a ledger that is the output."""
    if given["ledger"] is None:
        for name in ("publication", "cap_epsilon"):
            if given[name]:
                raise InvalidInput(f"--{name.replace('_', '-')}", given[name], "--ledger with it")
        return
    new_output(given["output"], [given["ledger"]], True)
    if Path(given["ledger"]) == Path(given["output"]):
        raise InvalidInput("-o", given["output"], "another file than the ledger")


@contextmanager
def opened_ledger(given: Mapping[str, Any]) -> Iterator[Ledger | None]:
    """The ledger that was named, held against other commands, with the cap of its publications; None where none was."""
    if given["ledger"] is None:
        yield None
        return

    cap = None if given["cap_epsilon"] is None else exact_epsilon(given["cap_epsilon"], "--cap-epsilon")
    with open_ledger(given["ledger"], spelling=given.get("spelling")) as ledger, ledger.lease(COMMANDS):
        if cap is not None:
            with ledger.transaction() as transaction:
                transaction.bind_publications(cap)
        before = len(ledger.publications())
        try:
            yield ledger
        except KeyboardInterrupt as stop:
            stored = len(ledger.publications()) > before
            told = "is stored and paid for; the same command gives it" if stored else "is not stored, nothing is paid"
            raise Interrupted(f"interrupted: the result {told} ({Path(given['ledger']).name})", stop) from None


def settings_of(given: Mapping[str, Any], data: str) -> dict[str, Any]:
    """The public settings of a command, and the name of the file of its data."""
    asked = {name: value for name, value in given.items() if name not in _NOT_ASKED and value is not None}
    return {**asked, "data": data}


def learned_once(
    given: Mapping[str, Any], data: str, learn: Callable[[AdmitFit | None], Model], save: Callable[[Model, Path], None]
) -> tuple[Model, Kept | None]:
    """The model that ``learn`` learns, or that the ledger has, stored as ``save`` writes it."""
    from dphmm.storage.publications import admitting, default_name, digest_of_settings, file_of, model_of, publish

    statement = digest_of_settings("fit", settings_of(given, data))
    name = given["publication"] or default_name("fit", statement)
    with opened_ledger(given) as ledger:
        if ledger is None:
            return learn(None), None
        made: list[Model] = []

        def make(admit: Any) -> bytes:
            made.append(learn(admitting(admit, name, lambda event: statement)))
            return file_of(lambda path: save(made[0], path))

        kept = publish(ledger, make)
        return (made[0] if kept.fresh else model_of(kept.published.result)), kept


def stored_fit(given: Mapping[str, Any], data: str, save: Callable[[Path], None], reason: str) -> Kept | None:
    """Store a model without privacy, which is the same every time. InvalidInput where its name has another one."""
    from dphmm.storage.publications import admitting, default_name, digest_of_settings, file_of, publish

    if given["ledger"] is None:
        return None
    statement, file = digest_of_settings("fit", settings_of(given, data)), file_of(save)
    name = given["publication"] or default_name("fit", statement)
    with opened_ledger(given) as ledger:
        assert ledger is not None

        def make(admit: Any) -> bytes:
            admitting(admit, name, lambda event: statement)(NotPrivateEvent(reason))
            return file

        kept = publish(ledger, make)
    if kept.published.result != file:
        came = f"other rows than those of {name}, stored at {kept.published.time}"
        raise InvalidInput("TRAJ", came, "the same file, or another --publication")
    return kept


def kept_rows(kept: Kept | None, ledger: str | None) -> list[Row]:
    """What became of a publication, for people."""
    return [] if kept is None else [("ledger", f"{Path(str(ledger)).name}: {kept.sentence}")]


def kept_document(kept: Kept | None) -> dict[str, Any]:
    """The same for --json, where there is a ledger."""
    return {} if kept is None else {"publication": kept.document()}
