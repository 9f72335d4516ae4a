"""Measures of a release with intervals, for other subjects like these.

Rows of one subject depend on each other, so subjects are resampled, never rows. Every measure is a function of sums
over rows, so a resample is a weighted sum of the subjects' own sums, and no row is looked at twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray

RESAMPLES = 2000
CONFIDENCE = 0.95
#: Totals of so many numbers are held at a time.
_AT_ONCE = 2**22


class Interval(NamedTuple):
    """A measure, and the 95 % bootstrap interval of it over subjects; ``low`` and ``high`` are NaN for a single one."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class RowSubjects:
    """The subject of each row: ``number`` (n,) from 0 in order of first appearance, and the ``count`` of subjects."""

    number: IntArray
    count: int

    @classmethod
    def of(cls, subjects: ArrayLike | None, n: int) -> RowSubjects:
        """Rows by label; without labels every row is a subject of its own. Raises InvalidInput for other lengths."""
        if n == 0:
            raise InvalidInput("truth", "no rows", "at least one")
        if subjects is None:
            return cls(np.arange(n, dtype=np.int64), n)
        labels = np.asarray(subjects)
        if labels.shape != (n,):
            raise InvalidInput("subjects", f"shape {labels.shape}", f"({n},), a label for every row")
        _, first, back = np.unique(labels, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first))
        return cls(rank[back.reshape(-1)], len(first))

    def sums(self, *columns: FloatArray) -> FloatArray:
        """The sums (S, k) of columns (n,) over the rows of each subject."""
        return np.stack([np.bincount(self.number, weights=column, minlength=self.count) for column in columns], axis=1)

    def counts(self, values: IntArray, width: int) -> Any:
        """The number of rows of each subject with each value 0..width-1: sparse (S, width)."""
        return counted(self.number, values, (self.count, width))


def counted(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> Any:
    """A sparse table of how often each (row, column) occurs."""
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def interval(parts: Any, statistic: Callable[[FloatArray], FloatArray], *, centred: bool = False) -> Interval:
    """A statistic of the sums of parts (S, k), dense or sparse, over all subjects and over resamples of them.

    ``statistic`` takes totals (r, k) to values (r,), NaN where it is undefined; such resamples are left out. Randomness
    is fixed and hangs on the number of subjects alone. ``centred``: for distances between distributions, which are
    larger in a resample (fewer subjects, each counted more often); how much they vary is laid around the value, and cut
    off at 0.
    """
    n, width = parts.shape
    value = float(statistic(np.asarray(parts.sum(axis=0), dtype=np.float64).reshape(1, -1))[0])
    if n < 2:
        return Interval(value, np.nan, np.nan)
    step = max(1, _AT_ONCE // max(n, width))
    values = np.concatenate([statistic(np.asarray(weights @ parts)) for weights in _resamples(n, step)])
    values = values[np.isfinite(values)]
    if not len(values):
        return Interval(value, np.nan, np.nan)
    low, middle, high = np.quantile(values, [(1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2])
    if centred:
        low, high = max(0.0, value + low - middle), value + high - middle
    return Interval(value, float(low), float(high))


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """The quotient, NaN where there is nothing to divide by."""
    quotient: FloatArray = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
    return quotient


def _resamples(n: int, step: int) -> Iterator[FloatArray]:
    """The number of times that each of n subjects is in each resample, ``step`` resamples at a time."""
    if RESAMPLES * n <= _AT_ONCE:
        whole = _few_subjects(n)
        yield from (whole[at : at + step] for at in range(0, RESAMPLES, step))
        return
    generator = np.random.default_rng(n)
    for at in range(0, RESAMPLES, step):
        yield _weights(generator, n, min(step, RESAMPLES - at))


@lru_cache(maxsize=8)
def _few_subjects(n: int) -> FloatArray:
    weights = _weights(np.random.default_rng(n), n, RESAMPLES)
    weights.setflags(write=False)
    return weights


def _weights(generator: np.random.Generator, n: int, rows: int) -> FloatArray:
    chosen = generator.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(chosen.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
