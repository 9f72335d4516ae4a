"""The two ways from one time to the next: how a loss grows on the way to later values, and to earlier ones.

Proof: docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dphmm._checks import state_mask
from dphmm.accounting.increase import Increase
from dphmm.accounting.marginals import Course
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, States

#: Reversed kernels whose entries differ by no more than this (in logs) count as one; the difference is added.
ALIKE = 1e-13
#: How long a chain may take to become stationary before its limit counts as unknown.
MOST_STEPS = 1_000


class Increasing(Protocol):
    """How a loss grows over one move, and the limit of growing over and over."""

    def __call__(self, alpha: float) -> float: ...

    def supremum(self, epsilon: float) -> float: ...


class Directions(ABC):
    """The moves of a sequence in both directions of time."""

    @staticmethod
    def of(model: Any, backward: Any, rows: States) -> Directions:
        """From a model and its marginals, or from two matrices."""
        if backward is not None:
            return _Fixed(Increase(model, rows), Increase(backward, rows))
        return _Own(model, rows)

    @abstractmethod
    def past(self, steps: int) -> Iterator[Increasing]:
        """L_B from t - 1 to t, for t = 2 .. steps."""

    @abstractmethod
    def future(self, steps: int) -> Iterator[Increasing]:
        """L_F from t + 1 to t, for t = 1 .. steps - 1."""

    @abstractmethod
    def settled(self) -> tuple[Increasing, Increasing]:
        """The worst L_B and L_F of sequences of any length. Raises InvalidInput if the marginals do not settle."""

    def worst(self, steps: int) -> tuple[Increasing, Increasing]:
        """The worst L_B and L_F of any move of a sequence."""
        return _Worst.of(self.past(steps)), _Worst.of(self.future(steps))


@dataclass(frozen=True)
class _Fixed(Directions):
    forward: Increase
    backward: Increase

    def past(self, steps: int) -> Iterator[Increasing]:
        return (self.backward for _ in range(steps - 1))

    def future(self, steps: int) -> Iterator[Increasing]:
        return (self.forward for _ in range(steps - 1))

    def settled(self) -> tuple[Increasing, Increasing]:
        return self.backward, self.forward


class _Own(Directions):
    """The moves of a model, with its own marginals."""

    def __init__(self, model: Any, rows: States) -> None:
        self._course = Course(model)
        self._homogeneous = bool(model.time_homogeneous)
        self._rows = state_mask(rows, len(model.initial), "rows")
        self._forward: dict[bytes, Increase] = {}

    def past(self, steps: int) -> Iterator[Increasing]:
        return (increase for increase, _ in self._past(steps))

    def future(self, steps: int) -> Iterator[Increasing]:
        for t, now in enumerate(self._course.marginals(steps - 1), start=1):
            yield self._ahead(t, now.support & self._rows)

    def settled(self) -> tuple[Increasing, Increasing]:
        kernels: list[Increasing] = []
        supports: list[BoolArray] = []
        for increase, support in self._past(MOST_STEPS) if self._homogeneous else ():
            if kernels and _same(increase, kernels[-1]) and np.array_equal(support, supports[-1]):
                return _Worst.of(kernels), self._ahead(1, np.logical_or.reduce(supports) & self._rows)
            kernels.append(increase)
            supports.append(support)
        came = f"a chain that does not become stationary within {MOST_STEPS} steps"
        raise InvalidInput("model", came, "one that does, or a number of steps")

    def _past(self, steps: int) -> Iterator[tuple[Increasing, BoolArray]]:
        """L_B and the states possible before, for t = 2 .. steps; one object for as long as the kernel is the same."""
        before, kernel, increase = None, None, None
        for t, now in enumerate(self._course.marginals(steps), start=1):
            if before is not None:
                found = self._course.backward(before, t)
                apart = difference(kernel, found)
                if increase is None or apart > ALIKE:
                    kernel, increase, apart = found, Increase(found, now.support & self._rows), 0.0
                yield (increase if apart == 0 else _Near(increase, apart)), before.support
            before = now

    def _ahead(self, t: int, rows: BoolArray) -> Increase:
        if not self._homogeneous:
            return Increase(self._course.forward(t + 1), rows)
        key = np.packbits(rows).tobytes()
        if key not in self._forward:
            self._forward[key] = Increase(self._course.forward(t + 1), rows)
        return self._forward[key]


@dataclass(frozen=True)
class _Near:
    """A kernel whose entries differ from a known one by a factor of at most e^apart: L differs by 2 apart."""

    known: Increase
    apart: float

    def __call__(self, alpha: float) -> float:
        return min(alpha, self.known(alpha) + 2 * self.apart)

    def supremum(self, epsilon: float) -> float:
        return self.known.supremum(epsilon + 2 * self.apart)


@dataclass(frozen=True)
class _Worst:
    """The largest of several."""

    increases: tuple[Increasing, ...]

    @classmethod
    def of(cls, increases: Iterator[Increasing] | Sequence[Increasing]) -> _Worst:
        return cls(tuple(dict.fromkeys(increases)))

    def __call__(self, alpha: float) -> float:
        return max((increase(alpha) for increase in self.increases), default=0.0)

    def supremum(self, epsilon: float) -> float:
        return max((increase.supremum(epsilon) for increase in self.increases), default=epsilon)


def difference(known: Any, found: Any) -> float:
    """The largest |log| of a quotient of entries of two csr matrices; infinite where one has an entry alone."""
    if known is None or len(known.data) != len(found.data):
        return math.inf
    if not (np.array_equal(known.indptr, found.indptr) and np.array_equal(known.indices, found.indices)):
        return math.inf
    return float(np.abs(np.log(known.data) - np.log(found.data)).max(initial=0.0))


def _same(one: Increasing, other: Increasing) -> bool:
    kernels = [near.known if isinstance(near, _Near) else near for near in (one, other)]
    return kernels[0] is kernels[1]
