"""--ledger of fit and query: the account that a publication is stored and counted in before it is shown.

And --dry-run of both: its worth and its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dphmm._checks import exact_epsilon, whole
from dphmm.accounting.event import LearningEvent, NotPrivateEvent
from dphmm.accounting.forecast import event_before, forecast_of_fit
from dphmm.accounting.ledger import MemoryLedger
from dphmm.cli.console import Console, Interrupted, Row, print_json
from dphmm.cli.options import MessageOptions, flag, new_output, option
from dphmm.errors import InvalidInput
from dphmm.storage.ledger import COMMANDS, open_ledger, stored_spelling
from dphmm.storage.private_tables import PrivateTable

if TYPE_CHECKING:
    from dphmm.accounting.forecast import Forecast
    from dphmm.accounting.ledger import Ledger
    from dphmm.markov.hidden.hmm import CategoricalHMM
    from dphmm.markov.model import MarkovModel
    from dphmm.storage.publications import AdmitFit, StoredPublication

    Model = TypeVar("Model", MarkovModel, CategoricalHMM)


@dataclass(frozen=True, kw_only=True)
class LedgerOptions(MessageOptions):
    """Options of dphmm fit and dphmm query about the account of their result."""

    ledger: str | None = option("Store it in this ledger first; it counts for every person there.", "L")
    event_id: str | None = option(
        "With --ledger: its id there, which you choose; the same id gives the stored result, whatever DATA is.",
        "NAME",
        "--id",
    )
    cap_epsilon: str | None = option("Of all publications of the ledger, for a person replaced; it stays.", "E")
    dry_run: bool = flag(
        "Print the noise and its expected error, from options and column types; read no row, spend nothing."
    )
    about: int | None = option("About how many people there are, on your word.", "N")


#: Above this many symbols no people are invented.
_MOST_SYMBOLS = 100
#: Options that say where a result is put, and nothing about what it is.
_NOT_ASKED = {
    "output", "force", "as_json", "quiet", "ledger", "event_id", "cap_epsilon", "data", "trajectories", "dry_run",
    "about",
}  # fmt: skip


def check_ledger(given: Mapping[str, Any]) -> None:
    """Refuse options that only a ledger or a dry run heeds, a ledger that is the output, and one without an id.

    A dry run needs no output.
    """
    if given["about"] is not None:
        if not given["dry_run"] and not (isinstance(given.get("states"), int) and given.get("epsilon")):
            raise InvalidInput("--about", given["about"], "--dry-run with it")
        whole(given["about"], "--about", 1)
    if given["output"] is None and not given["dry_run"]:
        raise InvalidInput("-o", "nothing", "the file to write")
    if given["ledger"] is None:
        for name, option in (("event_id", "--id"), ("cap_epsilon", "--cap-epsilon")):
            if given[name]:
                raise InvalidInput(option, given[name], "--ledger with it")
        return
    if given["output"] is not None:
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


def read_ledger(given: Mapping[str, Any]) -> AbstractContextManager[Ledger | None]:
    """The ledger that was named, only to be read: an empty one where it is not there yet; None where none was named."""
    path, spelling = given["ledger"], given.get("spelling")
    if path is None:
        return nullcontext()
    if stored_spelling(path) is None:
        return nullcontext(MemoryLedger(spelling or "same"))
    return open_ledger(path, read_only=True, spelling=spelling)


def tell_forecast(
    forecast: Forecast, given: Mapping[str, Any], console: Console, worth: dict[str, float] | None = None
) -> int:
    """Print what an answer or a fit would be worth."""
    from dphmm.markov.private.worth import worth_words

    if given["as_json"]:
        print_json({"dry_run": True, **forecast.document(), **({} if worth is None else {"worth": worth})})
    console.say(forecast.lines())
    console.say([] if worth is None else [("worth", worth_words(worth))])
    console.say([("", "dry run: no row was read; nothing was drawn, spent, stored or written")])
    return 0


def tell_fit(
    given: Mapping[str, Any], learn: Callable[[AdmitFit | None], object], console: Console, n_symbols: int | None
) -> int:
    """Print what a private fit would be worth, which ends before it looks at any data.

    ``n_symbols``: of invented people; None where none are invented.
    """
    from dphmm.markov.private.worth import expected_worth
    from dphmm.storage.publications import digest_of_settings

    event = event_before(learn)
    worth = None
    if given["about"] is None or n_symbols is None or n_symbols > _MOST_SYMBOLS:
        n_symbols = None
    if n_symbols is not None and isinstance(event, LearningEvent) and event.pure and event.max_length >= 2:
        # Of several sequences a person, or people that are replaced, the noise is so many times wider.
        epsilon = float(event.epsilon) / event.max_sequences / (2 if event.neighbours == "replace" else 1)
        worth = expected_worth(n_symbols, epsilon, event.max_length, given["about"], given["states"])
    with read_ledger(given) as ledger:
        forecast = forecast_of_fit(
            event, given["about"], ledger, given["event_id"], lambda: digest_of_settings("fit", settings_of(given))
        )
    return tell_forecast(forecast, given, console, worth)


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The public settings of a command; the number of people is one where it decides the length of words."""
    settings = {name: value for name, value in given.items() if name not in _NOT_ASKED and value is not None}
    hidden = isinstance(given.get("states"), int) and given.get("about") is not None
    return {**settings, "about": given["about"]} if hidden else settings


def learned_once(
    given: Mapping[str, Any], data: Path, learn: Callable[[AdmitFit | None], Model], save: Callable[[Model, Path], None]
) -> tuple[Model, StoredPublication | None]:
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

        stored = publish(ledger, make)
        note_data(ledger, stored, PrivateTable(data))
        return (made[0] if stored.fresh else model_of(stored.published.result)), stored


def stored_fit(given: Mapping[str, Any], save: Callable[[Path], None], reason: str) -> StoredPublication | None:
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

        stored = publish(ledger, make)
    if stored.published.result != file:
        got = f"other rows than those of {stored.published.publication.name}, stored at {stored.published.time}"
        raise InvalidInput("TRAJ", got, "the same file, or another --id")
    return stored


def kept_rows(kept: StoredPublication | None, ledger: str | None) -> list[Row]:
    """The row about a stored publication, for people: the same words whatever the data are."""
    return [] if kept is None else [("ledger", f"{Path(str(ledger)).name}: {kept.sentence}")]


def owner_rows(kept: StoredPublication | None, ledger: str | None) -> list[Row]:
    """The row about the file that tells the owner if the private data are those of a stored result."""
    from dphmm.storage.publications import DATA

    if kept is None:
        return []
    path = f"{Path(str(ledger)).name}.owner/{DATA}"
    return [("for the owner", f"{path} says whether the data are those of the stored result; not to be shared")]


def kept_document(kept: StoredPublication | None) -> dict[str, Any]:
    """The same for --json, where there is a ledger."""
    return {} if kept is None else {"publication": kept.document()}
