"""--dependence and --max-rows-per-user: which records depend on which, and how many of one person count.

Both are public: nothing here looks at DATA.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.cli.query_options import counting
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.states.space import StateSpace

FORMS = "independent, group, group:K, friends:EDGES or markov:MODEL"
_ON_YOUR_WORD = (
    "--dependence was not given, so records are taken as independent: where they are not, more is lost than epsilon; "
    "--dependence says which depend on which (and --dependence independent that none do)"
)


@dataclass(frozen=True)
class Dependence:
    """A dependence as it was given: its ``kind``, the ``path`` of a file, and how many rows of one person count.

    ``most`` is that public number, None where all of them do.
    """

    given: str
    kind: str
    most: int | None = None
    path: str | None = None
    _told: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, given: Mapping[str, Any], console: Console, allowed: Sequence[str], bounded: bool = True) -> Dependence:
        """From the command line; a warning where nothing is said of it.

        ``bounded``: rows belong to people, so that --max-rows-per-user is needed where all rows of one depend on each
        other.
        """
        text, most = given["dependence"], given.get("max_rows_per_user")
        if most is not None:
            most = counting(most, "--max-rows-per-user", _MOST)
        if text is None:
            console.warn(_ON_YOUR_WORD)
            return cls("nothing; independent by default", "independent", most)
        kind, colon, rest = text.partition(":")
        whole = {"independent": not colon, "group": not colon or rest, "friends": rest, "markov": rest}
        if not whole.get(kind):
            raise InvalidInput("--dependence", text, FORMS)
        if kind not in allowed:
            raise InvalidInput("--dependence", text, _INSTEAD[kind])
        if kind == "markov":
            return cls(text, kind, most, rest)
        if kind == "friends":
            # Of a graph, one person is one record.
            return cls(text, kind, _needed(most, text) if bounded else 1, rest)
        if kind == "group":
            return cls(text, kind, _group_size(rest, most, text))
        return cls(text, kind, most)

    @property
    def inputs(self) -> list[str]:
        """Files that it names."""
        return [] if self.path is None else [self.path]

    @property
    def by_person(self) -> bool:
        """Whether what is promised is about all rows of one person."""
        return self.kind in ("group", "friends")

    def refuse_data(self, data: str, columns: Sequence[str] | None = None) -> None:
        """InvalidInput where its file is DATA."""
        from dphmm.storage.public_files import refuse_private

        if self.path is not None:
            refuse_private(self.path, data, self._field, columns)

    @cached_property
    def model(self) -> tuple[MarkovModel, StateSpace]:
        """The chain that is named, and its states."""
        from dphmm.cli.options import loaded_model

        assert self.path is not None
        path = self.path
        found: tuple[MarkovModel, StateSpace] = asked(lambda: loaded_model(path), {"model": "--dependence"})
        return found

    def between(self, of_people: bool = True) -> Any:
        """What the library takes; a chain is not made here. ``of_people``: rows belong to people."""
        if self.kind == "independent":
            return "independent"
        assert self.most is not None
        if self.kind == "friends":
            from dphmm.cli.query_edges import largest_circle

            assert self.path is not None
            circle = largest_circle(self.path, self._field)
            self._told["largest_circle"] = circle
            self._told["meaning"] = (
                "records of people who are joined by friendships, directly or by way of others, may depend on each "
                "other in any way; the friendships are public, as the data owner says, and the largest circle has "
                f"{circle} people"
            )
            return ("group", self.most * circle)
        self._told["meaning"] = (
            "all records of one person may depend on each other in any way; those of different people do not, as the "
            "data owner says"
            if of_people
            else f"at most {self.most} records depend on each other, as the data owner says"
        )
        return ("group", self.most)

    def chain(self, times: int) -> Any:
        """Each person's own chain of so many steps."""
        from dphmm.dependent import Chain

        model, _ = self.model
        self._told["meaning"] = (
            f"each person's records are {times} steps of this chain and people are independent, as the data owner says"
        )
        return Chain(model, times)

    def unit(self, record: str, *, of_people: bool = True, rows_public: bool = False) -> str:
        """What is hidden: one record, or the rows of one person, or of a circle of friends."""
        if not (self.by_person and of_people):
            return f"one record: {record}; neighbouring data differ in it and nowhere else"
        there = "the number of rows of DATA is the same" if rows_public else "they may be there or not"
        if self.kind == "friends":
            who, few = "all people of one circle of friends", f"at most {self.most} of each person count"
        else:
            who, few = "one person", f"at most {self.most} count"
        return (
            f"all rows of {who} ({record} each), of which {few}; neighbouring data differ in these rows and nowhere "
            f"else: {there}"
        )

    def statement(self) -> dict[str, Any]:
        """What is said of it beside the answer. Of a file only a model is told by its hash."""
        told = {"given": f"{self.kind}:{Path(self.path).name}" if self.path else self.given, **self._told}
        if self.kind == "independent":
            said = "as the data owner says" if self.given == "independent" else "which is assumed: nobody has said so"
            told["meaning"] = f"no record depends on another one, {said}"
        if self.kind == "markov":
            from dphmm.storage.inputs import file_digest

            assert self.path is not None
            told["model_sha256"] = file_digest(self.path)
        return told

    @property
    def _field(self) -> str:
        assert self.path is not None
        return f"--dependence {self.kind}:{Path(self.path).name}"


_MOST = "a public number of rows, 1 to 1000000000"


def _needed(most: int | None, text: str) -> int:
    if most is None:
        expected = f"a public number with {text}: how many rows of one person count, the others are left out"
        raise InvalidInput("--max-rows-per-user", "nothing", expected)
    return most


def _group_size(rest: str, most: int | None, text: str) -> int:
    """K of group:K, which is group with --max-rows-per-user K."""
    if not rest:
        return _needed(most, text)
    if not re.fullmatch("[1-9][0-9]{0,8}", rest):
        raise InvalidInput("--dependence", text, "group:K, K how many rows of one person count: group:3")
    if most not in (None, int(rest)):
        raise InvalidInput("--max-rows-per-user", most, f"none with {text}, which says {rest}")
    return int(rest)


_INSTEAD = {
    "markov": "independent, group, group:K or friends:EDGES: a model of states says nothing of these records",
    "friends": "independent or group:K: what one edge of a graph depends on is not in a list of friends",
    "group": "independent or group:K",
    "independent": FORMS,
}


def asked(ask: Callable[[], Any], options: dict[str, str]) -> Any:
    """The library's answer, its complaints in words of the command line."""
    from dphmm.cli.wording import named

    try:
        return ask()
    except InvalidInput as error:
        raise named(error, options) from None
