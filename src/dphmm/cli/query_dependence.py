"""--dependence: which records depend on which, and what the library is told of it for the records at hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import IntArray

if TYPE_CHECKING:
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.states.space import StateSpace

FORMS = "independent, group, group:K, friends:EDGES or markov:MODEL"
_ON_YOUR_WORD = (
    "records are taken as independent, on your word: where they are not, more is lost than epsilon; "
    "--dependence says which depend on which (and --dependence independent that none do)"
)


@dataclass(frozen=True)
class Dependence:
    """A dependence as it was given: its ``kind``, and the ``size`` of a group or the ``path`` of a file."""

    given: str
    kind: str
    size: int | None = None
    path: str | None = None
    _told: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, text: str | None, console: Console, allowed: Sequence[str]) -> Dependence:
        """From the command line; a warning where nothing is said of it."""
        if text is None:
            console.warn(_ON_YOUR_WORD)
            return cls("nothing; independent by default", "independent")
        kind, colon, rest = text.partition(":")
        whole = {"independent": not colon, "group": not colon or rest, "friends": rest, "markov": rest}
        if not whole.get(kind):
            raise InvalidInput("--dependence", text, FORMS)
        if kind not in allowed:
            raise InvalidInput("--dependence", text, _INSTEAD[kind])
        if kind in ("friends", "markov"):
            return cls(text, kind, path=rest)
        if rest and not re.fullmatch("[1-9][0-9]{0,8}", rest):
            raise InvalidInput("--dependence", text, "group:K, K how many records may depend on each other: group:3")
        return cls(text, kind, size=int(rest) if rest else None)

    @property
    def by_user(self) -> bool:
        """Whether it matters whose a record is."""
        return self.kind in ("friends", "markov") or (self.kind == "group" and self.size is None)

    @property
    def inputs(self) -> list[str]:
        """Files that it names."""
        return [] if self.path is None else [self.path]

    @cached_property
    def model(self) -> tuple[MarkovModel, StateSpace]:
        """The chain that is named, and its states."""
        from dphmm.cli.options import loaded_model

        assert self.path is not None
        path = self.path
        found: tuple[MarkovModel, StateSpace] = asked(lambda: loaded_model(path), {"model": "--dependence"})
        return found

    def between(self, users: Sequence[str], records: IntArray) -> Any:
        """What the library takes, for ``records[u]`` records of each user; a chain is not made here."""
        if self.kind == "independent":
            return "independent"
        if self.kind == "friends":
            return ("group", self._largest_circle(users, records))
        if self.size is None:
            self._told["meaning"] = (
                "all records of one person may depend on each other; those of different people do not"
            )
            return ("group", int(records.max()))
        self._told["meaning"] = f"at most {self.size} records depend on each other, as the data owner says"
        return ("group", self.size)

    def chain(self, times: int) -> Any:
        """Each person's own chain of so many steps."""
        from dphmm.dependent import Chain

        model, _ = self.model
        self._told["meaning"] = f"each person's records are {times} steps of this chain; people are independent"
        return Chain(model, times)

    def statement(self) -> dict[str, Any]:
        """What is said of it beside the answer."""
        from dphmm.storage.inputs import file_digest

        told = {"given": f"{self.kind}:{Path(self.path).name}" if self.path else self.given, **self._told}
        if self.kind == "independent":
            told["meaning"] = "no record depends on another one, as the data owner says"
        return told if self.path is None else {**told, "file_sha256": file_digest(self.path)}

    def _largest_circle(self, users: Sequence[str], records: IntArray) -> int:
        """The most records of people who are joined by friendships, directly or not."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        from dphmm.cli.query_edges import edges_between

        assert self.path is not None
        pairs = edges_between(self.path, users, f"--dependence friends:{Path(self.path).name}", remedy=_WITHOUT_RECORDS)
        graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(users), len(users)))
        _, circle = connected_components(graph, directed=False)
        self._told["meaning"] = (
            "records of people who are joined by these friendships, directly or by way of others, may depend on each "
            "other; the friendships are public"
        )
        return int(np.bincount(circle, weights=records).max())


#: Without those lines the two would count as independent.
_WITHOUT_RECORDS = " of DATA; where somebody without records joins two of them, write these two as a line instead"
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
