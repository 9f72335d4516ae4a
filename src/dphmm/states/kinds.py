"""Every kind of state space, registered in one place: how a saved one is restored.

One kind is made here: states that are names, such as page categories, jobs, diagnoses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm.errors import InvalidInput
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.space import StateSpace, check_names

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


def ordered_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct labels in order: by value if all of them are plain numbers, else by character."""
    distinct = sorted(set(labels))
    if all(_NUMBER.fullmatch(label) for label in distinct):
        distinct.sort(key=Fraction)
    return tuple(distinct)


SPACES: dict[str, type[StateSpace]] = {space.kind: space for space in (StateSpace, Grid, H3)}


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
