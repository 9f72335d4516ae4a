"""Every kind of state space, registered in one place: how a saved one is restored.

Two kinds are made here, of states that are names, such as page categories, jobs, diagnoses: `category_space` gives each
name a number as its answer, and of `Labels` the name itself is the answer.

Proof: docs/proofs/hops.md (labels).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm.errors import InvalidInput
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.space import StateSpace, check_names
from dphmm.types import FloatArray, States

#: What names may be answered with where no table of answers is given.
ANSWERS_OF_NAMES = ("labels", "ordinal")
#: What errors of labels are counted in: the share of them, from 0 to 1.
LABELS_WRONG = "of labels wrong"
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)


def category_space(names: Sequence[str], answers: str | Mapping[str, Any] | ArrayLike = "ordinal") -> StateSpace:
    """A space of named categories, state i being ``names[i]``.

    ``answers``: "ordinal" (0, 1, ... in the order of the names), a table name -> number or vector with
    exactly these names, or an array (N,) or (N, d). Raises InvalidInput for a name without an answer or an
    answer without a name.
    """
    labels = check_names(names, len(names))
    if isinstance(answers, str):
        if answers != "ordinal":
            raise InvalidInput("answers", answers, '"ordinal" or a table of answers')
        return StateSpace(np.arange(len(labels)), labels)
    if isinstance(answers, Mapping):
        missing = next((name for name in labels if name not in answers), None)
        if missing is not None:
            raise InvalidInput("answers", f"no answer for {missing!r}", "one for every name")
        known = set(labels)
        extra = next((name for name in answers if name not in known), None)
        if extra is not None:
            raise InvalidInput("answers", f"an answer for {extra!r}", "only names of states")
        return StateSpace([answers[name] for name in labels], labels)
    return StateSpace(answers, labels)


def space_of_names(names: Sequence[str], answers: str | None = None) -> StateSpace:
    """The space of names that nobody gave answers for: "labels" or "ordinal".

    ``answers`` None: labels, unless all names are plain numbers, which are numbered in their order. Raises InvalidInput
    for another word.
    """
    kind = answers or ("ordinal" if all(_NUMBER.fullmatch(name) for name in names) else "labels")
    if kind not in ANSWERS_OF_NAMES:
        raise InvalidInput("answers", kind, "labels, ordinal, or a table of answers")
    return StateSpace.labels(names) if kind == "labels" else category_space(names)


def ordered_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels in order: by value if all of them are plain numbers, else by character."""
    distinct = sorted(set(labels))
    if all(_NUMBER.fullmatch(label) for label in distinct):
        distinct.sort(key=Fraction)
    return tuple(distinct)


class Labels(StateSpace):
    """N states, each answered with its own name; a wrong name is wrong, whichever it is.

    Inside, the answer of state i is the number i, which orders nothing and measures nothing: distances are 0 and 1, and
    so are errors. Made by `StateSpace.labels`.

    Examples
    --------
    >>> space = StateSpace.labels(["news", "shop", "sport"])
    >>> space.label_of(2)
    'sport'
    """

    kind: ClassVar[str] = "labels"
    has_labels: ClassVar[bool] = True
    unit: ClassVar[str] = LABELS_WRONG

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(np.arange(len(names)), names)

    def label_of(self, number: int) -> str:
        """The name that an answer stands for. Raises InvalidInput for a number that no state has."""
        if not 0 <= number < self.n_states:
            raise InvalidInput("z", str(number), f"the number of a label, 0 to {self.n_states - 1}")
        return self.names[number]

    def labels_of(self, numbers: ArrayLike) -> NDArray[np.object_]:
        """The names (n,) that answers (n,) or (n, 1) stand for."""
        return np.array(self.names, dtype=object)[np.asarray(numbers, dtype=np.int64).reshape(-1)]

    def subset(self, states: States) -> Self:
        """The space of some labels, in the order of their numbers. Raises InvalidInput as `StateSpace.subset`."""
        part = super().subset(states)
        return part if len(part.merges) else type(self)(part.names)

    def distances(self, answers: ArrayLike, others: ArrayLike) -> FloatArray:
        """1 where answers (..., 1) are different labels, 0 where they are one."""
        # Of an unknown label, NaN, nothing is known.
        apart = np.abs(np.asarray(answers, np.float64) - np.asarray(others, np.float64)).max(axis=-1)
        return np.asarray(np.sign(apart))

    def _whereabouts(self) -> str:
        return "labels"

    @classmethod
    def _restore(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        space = super()._restore(meta, arrays)
        numbered = np.arange(space.n_states)[:, None]
        if not (np.array_equal(space.lattice, numbered) and np.array_equal(space.answers, numbered)):
            raise InvalidInput("lattice", "other numbers than those of the labels", "0, 1, ... in order")
        if space.given_names is None:
            raise KeyError("names")
        return space


SPACES: dict[str, type[StateSpace]] = {space.kind: space for space in (StateSpace, Grid, H3, Labels)}


def from_description(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> StateSpace:
    """The space that ``describe`` described. Raises InvalidInput for an unknown kind, a missing or a wrong part."""
    kind = meta.get("kind")
    if not isinstance(kind, str) or kind not in SPACES:
        raise InvalidInput("kind", kind, "one of " + ", ".join(SPACES))
    try:
        own = {name: array for name, array in arrays.items() if name != "merges"}
        return SPACES[kind]._restore(meta, own).merged(arrays.get("merges", ()))
    except KeyError as missing:
        raise InvalidInput("space", "a description without " + str(missing.args[0]), "a complete one") from None
    except InvalidInput:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("space", "parts of another type", f"the description of a {kind} space") from None
