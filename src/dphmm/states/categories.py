"""States that are names: page categories, jobs, diagnoses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.states.naming import check_names
from dphmm.states.space import StateSpace

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
