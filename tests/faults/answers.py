"""What must happen when a fault comes in, and how to see that it did, on both surfaces.

Every answer also requires that no secret of the place is shown: not in a message, not in a file that was written.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dphmm.errors import BudgetExceeded, DphmmError, InvalidInput
from faults.catalogue import COMMAND, LIBRARY, Case, Fault, cases_of
from faults.place import Place

#: Lines that may stand beside an answer: they are about public things.
_ASIDE = ("warning: ", "note: ", "No limit is set. ")
#: Arguments and names of the library, which mean nothing on a command line.
_LIBRARY_WORDS = re.compile(r"[a-z]_column|save_|DeltaSet|cap_|min_count|=True|Fraction")


class Answer(ABC):
    """An expected outcome."""

    @abstractmethod
    def in_the_library(self, call: Callable[[], Any], place: Place) -> None:
        """Make the call and judge what comes of it."""

    @abstractmethod
    def on_the_command_line(self, run: Callable[[], Result], place: Place) -> None:
        """Run the command and judge exit code, streams and files."""


def both_surfaces(faults: list[Fault]) -> tuple[Callable[[Case, Place], None], Callable[[Case, Place], None]]:
    """The tests of an area: of its cases in the library, and of those on the command line."""

    @pytest.mark.parametrize("case", cases_of(faults, LIBRARY))
    def test_in_the_library(case: Case, place: Place) -> None:
        judge_call(case, place)

    @pytest.mark.parametrize("case", cases_of(faults, COMMAND))
    def test_on_the_command_line(case: Case, place: Place) -> None:
        judge_command(case, place)

    return test_in_the_library, test_on_the_command_line


def judge_call(case: Case, place: Place) -> None:
    """A case of the library."""
    case.answer.in_the_library(lambda: case.make(place), place)


def judge_command(case: Case, place: Place) -> None:
    """A case of the command line: the files it prepares are no part of what the command writes."""
    arguments = case.make(place)
    place.inputs |= place.contents().keys()
    seen: list[Result] = []

    def run() -> Result:
        seen.append(place.run(arguments, input=""))
        return seen[-1]

    case.answer.on_the_command_line(run, place)
    for result in seen:
        assert_no_secret(place, result.stdout, result.stderr)


def assert_no_secret(place: Place, *texts: str) -> None:
    """Nothing private in the texts, nor in any file that was not there before."""
    written = [data for name, data in place.contents().items() if name not in place.inputs]
    for secret in place.secrets:
        assert [text for text in texts if secret in text] == [], secret
        assert [data for data in written if secret.encode() in data] == [], secret


#: What a release writes before it asks the ledger: public files, and which ledger it asked.
_PUBLIC_SIDE = ("out/index.json", "out/model.npz", "out/policy.json", "out.owner/owner.json")


@dataclass(frozen=True)
class Refused(Answer):
    """Refused in one line that names the field, what came and what was expected; nothing is written."""

    field: str
    words: tuple[str, ...]
    error: type[DphmmError]
    #: The promise refuses only after the ledger is open: then nothing may be stored or spent in it.
    in_ledger: bool

    def in_the_library(self, call: Callable[[], Any], place: Place) -> None:
        place.inputs |= place.contents().keys()
        try:
            returned = call()
        except DphmmError as error:
            assert type(error) is self.error, repr(error)
            assert self._written(place.contents()).keys() <= place.inputs
            self._check(str(error), place)
            named = str(getattr(error, "field", self.field))
            assert named == self.field or Path(named).name == self.field, named
            return
        raise AssertionError(f"accepted: {type(returned).__name__}")

    def on_the_command_line(self, run: Callable[[], Result], place: Place) -> None:
        before = place.contents()
        result = run()
        assert result.exit_code == self.error.exit_code, result.stderr
        assert result.stdout == ""
        lines = [line for line in result.stderr.splitlines() if not line.startswith(_ASIDE)]
        assert len(lines) == 1 and result.stderr.endswith("\n"), result.stderr
        assert not _LIBRARY_WORDS.search(lines[0]), lines[0]
        self._check(lines[0], place)
        if self.in_ledger:
            assert_nothing_spent(place)
        assert self._written(place.contents()) == before

    def _written(self, contents: dict[str, bytes]) -> dict[str, bytes]:
        """What is there, but for an empty ledger that was opened to be asked, and the public side of its release."""
        return {name: data for name, data in contents.items()
                if not (self.in_ledger and (name.startswith("l.db") or name in _PUBLIC_SIDE))}  # fmt: skip

    def _check(self, message: str, place: Place) -> None:
        assert "\n" not in message and "Traceback" not in message
        assert self.field in message, message
        for word in self.words:
            assert word in message, f"{word!r} is not in: {message}"
        if issubclass(self.error, InvalidInput) and "; see dphmm" not in message:
            assert ": got " in message and "; expected " in message, message
        assert_no_secret(place, message)


def refused(field: str, *words: str, error: type[DphmmError] = InvalidInput, in_ledger: bool = False) -> Refused:
    """Refused, naming this field and saying these words."""
    return Refused(field, words, error, in_ledger)


def over_budget(field: str, *words: str) -> Refused:
    """Refused because a cap would be passed: exit 1, and nothing is spent."""
    return Refused(field, words, BudgetExceeded, True)


@dataclass(frozen=True)
class Accepted(Answer):
    """Accepted; ``check`` gets what the call returned, or (result, place) of the command, and raises if it is wrong."""

    check: Callable[..., object]
    exit_code: int = 0

    def in_the_library(self, call: Callable[[], Any], place: Place) -> None:
        _hold(self.check(call()))
        assert_no_secret(place)

    def on_the_command_line(self, run: Callable[[], Result], place: Place) -> None:
        result = run()
        assert result.exit_code == self.exit_code, result.stderr
        _hold(self.check(result, place))


def _hold(verdict: object) -> None:
    # A check may assert by itself; one that gives a verdict must give a good one.
    assert verdict is None or bool(verdict)


@dataclass(frozen=True)
class SetAside(Answer):
    """Rows set aside, each with a reason and without its values; all others are kept, and the command exits 3.

    A row that is set aside for its place or state may be there without it.
    """

    reasons: dict[int, str]
    kept: int | None = None

    def in_the_library(self, call: Callable[[], Any], place: Place) -> None:
        loaded = call()
        rejected = loaded.rejected.to_pylist()
        assert {row["row"]: row["reason"] for row in rejected} == self.reasons
        assert loaded.rejected.column_names == ["row", "reason"]
        if self.kept is not None:
            assert len(loaded.trajectories.placed) == self.kept
        assert_no_secret(place, str(rejected), repr(loaded.trajectories))

    def on_the_command_line(self, run: Callable[[], Result], place: Place) -> None:
        result = run()
        assert result.exit_code == 3, result.stderr
        (listed,) = [name for name in place.contents() if name.endswith(".rejected.csv")]
        # A row is told by its line, and the header is line 1: no case has a cell of two lines above a bad row.
        assert {int(row["line"]) - 1: row["reason"] for row in place.rows(listed)} == self.reasons
        assert (place / listed).stat().st_mode & 0o077 == 0
        if self.kept is not None:
            written = place.rows(listed.removesuffix(".rejected.csv"))
            assert sum(bool(row.get("lat") or row.get("state")) for row in written) == self.kept


@dataclass(frozen=True)
class Same(Answer):
    """Several ways of saying the same give the same: the call returns values that must all be equal."""

    least: int = 2

    def in_the_library(self, call: Callable[[], Any], place: Place) -> None:
        found = list(call())
        assert len(found) >= self.least
        assert [value for value in found[1:] if value != found[0]] == [], found
        assert_no_secret(place)

    def on_the_command_line(self, run: Callable[[], Result], place: Place) -> None:
        raise TypeError("compare files in the check of an Accepted command")


def assert_nothing_spent(place: Place) -> None:
    """The ledger, if there is one, holds no release and no charge."""
    from dphmm.storage.ledger import open_ledger

    if (place / "l.db").exists():
        with open_ledger(place / "l.db") as ledger:
            assert spent_in(ledger) == {}


def spent_in(ledger: Any) -> dict[tuple[str, str], int]:
    """How many releases each session of a ledger has."""
    kinds: Iterable[tuple[tuple[str, str], list[Any]]] = ((key, ledger.entries(*key)) for key in ledger.sessions())
    return {key: len(entries) for key, entries in kinds if entries}
