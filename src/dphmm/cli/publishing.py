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
from dphmm.storage.private_tables import PrivateTable

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
        "--id",
        "event_id",
        metavar="NAME",
        help="With --ledger: its id there, which you choose; the same id gives the stored result, whatever DATA is.",
    ),
    click.option(
        "--cap-epsilon",
        metavar="E",
        help="Of all publications of the ledger, for a person replaced; it stays.",
    ),
)
#: Options that say where a result is put, and nothing about what it is.
_NOT_ASKED = {
    "output", "force", "as_json", "quiet", "ledger", "event_id", "cap_epsilon", "data", "trajectories",
}  # fmt: skip


def ledger_options(command: F) -> F:
    """--ledger, --id and --cap-epsilon."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_ledger(given: Mapping[str, Any]) -> None:
    """Refuse options that only a ledger heeds, a ledger that is the output, and one without an id."""
    if given["ledger"] is None:
        for name, option in (("event_id", "--id"), ("cap_epsilon", "--cap-epsilon")):
            if given[name]:
                raise InvalidInput(option, given[name], "--ledger with it")
        return
    new_output(given["output"], [given["ledger"]], True)
    if Path(given["ledger"]) == Path(given["output"]):
        raise InvalidInput("-o", given["output"], "another file than the ledger")
    if not given["event_id"]:
        raise InvalidInput("--id", "nothing", "a name for the result in --ledger: the same id gives the stored result")


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
            state = "is stored and paid for; the same command gives it" if stored else "is not stored, nothing is paid"
            raise Interrupted(f"interrupted: the result {state} ({Path(given['ledger']).name})", stop) from None


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The public settings of a command."""
    return {name: value for name, value in given.items() if name not in _NOT_ASKED and value is not None}


def learned_once(
    given: Mapping[str, Any], data: Path, learn: Callable[[AdmitFit | None], Model], save: Callable[[Model, Path], None]
) -> tuple[Model, Kept | None]:
    """The model that ``learn`` learns from the file ``data``, or that the ledger has, stored as ``save`` writes it."""
    from dphmm.storage.publications import admitting, digest_of_settings, file_of, model_of, note_data, publish

    statement = digest_of_settings("fit", settings_of(given))
    with opened_ledger(given) as ledger:
        if ledger is None:
            return learn(None), None
        made: list[Model] = []

        def make(admit: Any) -> bytes:
            made.append(learn(admitting(admit, given["event_id"], lambda event: statement)))
            return file_of(lambda path: save(made[0], path))

        kept = publish(ledger, make)
        note_data(ledger, kept, PrivateTable(data))
        return (made[0] if kept.fresh else model_of(kept.published.result)), kept


def stored_fit(given: Mapping[str, Any], save: Callable[[Path], None], reason: str) -> Kept | None:
    """Store a model without privacy, which is the same every time. InvalidInput where its id has another one."""
    from dphmm.storage.publications import admitting, digest_of_settings, file_of, publish

    if given["ledger"] is None:
        return None
    statement, file = digest_of_settings("fit", settings_of(given)), file_of(save)
    with opened_ledger(given) as ledger:
        assert ledger is not None

        def make(admit: Any) -> bytes:
            admitting(admit, given["event_id"], lambda event: statement)(NotPrivateEvent(reason))
            return file

        kept = publish(ledger, make)
    if kept.published.result != file:
        came = f"other rows than those of {kept.published.publication.name}, stored at {kept.published.time}"
        raise InvalidInput("TRAJ", came, "the same file, or another --id")
    return kept


def kept_rows(kept: Kept | None, ledger: str | None) -> list[Row]:
    """What became of a publication, for people: the same words whatever the data are."""
    return [] if kept is None else [("ledger", f"{Path(str(ledger)).name}: {kept.sentence}")]


def owner_rows(kept: Kept | None, ledger: str | None) -> list[Row]:
    """Where the owner of private data finds whether they are those of a stored result."""
    from dphmm.storage.publications import DATA

    if kept is None:
        return []
    path = f"{Path(str(ledger)).name}.owner/{DATA}"
    return [("for the owner", f"{path} says whether the data are those of the stored result; not to be shared")]


def kept_document(kept: Kept | None) -> dict[str, Any]:
    """The same for --json, where there is a ledger."""
    return {} if kept is None else {"publication": kept.document()}
