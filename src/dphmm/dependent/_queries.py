"""What is asked of the tuples, as far as losses depend on it: how an answer changes with one tuple.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.types import Exact, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sum:
    """Σ_i f(D_i), f given as an integer for each value; {0, 1} counts a state.

    ``values``: one array (k,) for all tuples, or a list of one for each.
    """

    values: Any

    @property
    def shared(self) -> bool:
        """Whether all tuples are counted alike."""
        return not isinstance(self.values, (list, tuple)) or np.ndim(self.values[0]) == 0

    def of(self, i: int) -> IntArray:
        """f of tuple i (k,), as integers."""
        found = np.asarray(self.values if self.shared else self.values[i])
        if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer) or len(found) == 0:
            raise InvalidInput("values", f"shape {found.shape}, {found.dtype}", "an integer for each value of a tuple")
        whole: IntArray = found.astype(np.int64)
        return whole

    def sensitivities(self, n: int) -> list[Fraction]:
        """By how much one tuple alone can change the answer."""
        if not self.shared and len(self.values) != n:
            raise InvalidInput("values", f"{len(self.values)} arrays", f"one array, or one for each of {n} tuples")
        if self.shared:
            f = self.of(0)
            return [Fraction(int(f.max() - f.min()))] * n
        return [Fraction(int(f.max() - f.min())) for f in map(self.of, range(n))]


@dataclass(frozen=True)
class AnyQuery:
    """Any answer of one or more numbers whose L1 distance changes by at most ``sensitivity`` with one tuple.

    A histogram over values changes by 2: one cell up, one down.
    """

    sensitivity: Exact | Sequence[Exact] = 1

    @property
    def shared(self) -> bool:
        """Whether one sensitivity is of all tuples."""
        return isinstance(self.sensitivity, str) or not isinstance(self.sensitivity, (list, tuple))

    def sensitivities(self, n: int) -> list[Fraction]:
        """By how much one tuple alone can change the answer, in L1."""
        given: Any = [self.sensitivity] * n if self.shared else self.sensitivity
        if len(given) != n:
            raise InvalidInput("sensitivity", f"{len(given)} numbers", f"one, or one for each of {n} tuples")
        found = [exact_number(value, "sensitivity") for value in given]
        if min(found) < 0:
            raise InvalidInput("sensitivity", min(found), "0 or more")
        return found


Query: TypeAlias = Sum | AnyQuery


def checked_sensitivities(query: Query, n: int) -> FloatArray:
    """As floats, one positive at least."""
    if not isinstance(query, (Sum, AnyQuery)):
        raise InvalidInput("query", type(query).__name__, "a Sum or an AnyQuery")
    found = np.array([float(value) for value in query.sensitivities(n)])
    if found.max() <= 0:
        raise InvalidInput("query", "an answer that no tuple changes", "one that some tuple changes")
    return found
