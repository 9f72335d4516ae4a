"""A fixed number of noisy Baum-Welch iterations: the data are asked that often, and answer with noise.

``NoisyAnswers`` holds the data and the planned parts; it answers each part once and then no more. The loop that
improves the parameters is given that one function from parameters to a noisy table: there is nothing else of the data
that it could look at, to stop early or otherwise.

Two methods are the paper's, for comparison. [paper] is "Differentially private parameter estimation of hidden Markov
models", IPSJ SIG 2014-MPS-98-25. It adds Laplace noise of scale L/epsilon to the expected transitions and, separately,
to the expected emissions.

"paper-every-iteration": in each of T iterations, with epsilon/T. The two releases of an iteration lose
(2 - 1/L)·epsilon/T (twice that for "replace"), which the event says; not the nominal epsilon.

"paper-last-iteration-not-private": in the last iteration only. THIS IS NOT PRIVATE: the parameters before the last
iteration are a function of the data, so one person's sequence moves the expected counts of all others (losses of more
than 50 times the nominal epsilon were found). It gives a ``NotPrivateEvent``.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm._kernels.hmm import add_records
from dphmm.accounting.event import NoisyCounts
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.release import FINEST_GRID, NoisyTable, grid_bits, nearest_counts, probabilities, release
from dphmm.markov.private.sensitivity import Kept, RecordBounds, l1
from dphmm.types import Bits, BoolArray, FloatArray, IntArray

#: Weight of the parameters before, in standard deviations of one cell's noise.
PRIOR_DEVIATIONS = 4.0
#: Share of every row that is spread evenly after an iteration, so that no sequence becomes impossible.
FLOOR = 1e-2


@dataclass(frozen=True, eq=False)
class FlatLayout:
    """The cells of the flat vector of parameters that are published: public, fixed by the start and the letters.

    The vector has 1 + 2·S rows of probabilities: initial (S,), transition (S, S), emission (S, V).
    ``cells`` are their places, ``indptr`` the rows they make; a cell that is 0 at the start is 0 for ever.
    """

    n_states: int
    n_symbols: int
    cells: IntArray
    indptr: IntArray

    @classmethod
    def of(cls, start: Parameters, letters: str) -> FlatLayout:
        """The cells of the letters ("s", "t", "e") that can be other than 0."""
        n, v = start.emission.shape
        open_: BoolArray = flat(start) > 0
        rows = np.repeat(np.arange(1 + 2 * n), [n] * (1 + n) + [v] * n)
        block = np.where(rows == 0, "s", np.where(rows <= n, "t", "e"))
        chosen = open_ & np.isin(block, list(letters))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[chosen], minlength=1 + 2 * n))])
        return cls(n, v, np.flatnonzero(chosen), indptr)

    def unflatten(self, vector: FloatArray) -> Parameters:
        """The parameters of a flat vector."""
        n, v = self.n_states, self.n_symbols
        moves, emissions = vector[n : n + n * n], vector[n + n * n :]
        return Parameters(vector[:n], moves.reshape(n, n), emissions.reshape(n, v))


def flat(parameters: Parameters) -> FloatArray:
    """All parameters in one vector."""
    return np.concatenate([parameters.initial, parameters.transition.ravel(), parameters.emission.ravel()])


class NoisyAnswers:
    """The data behind a fixed number of noisy answers."""

    def __init__(
        self, kept: Kept, layout: FlatLayout, parts: Sequence[NoisyCounts], max_length: int, bits: Bits
    ) -> None:
        self._kept, self._layout, self._bits = kept, layout, bits
        self._max_length = max_length
        self._planned = list(parts)

    def __call__(self, parameters: Parameters) -> NoisyTable:
        """The expected counts under these parameters, with the noise of the next planned part."""
        if not self._planned:
            raise RuntimeError("every planned part has been published")
        part = self._planned.pop(0)
        grid = grid_bits(part)
        counts = expected_counts(self._kept, parameters, self._max_length, grid)
        return release(counts[self._layout.cells], part, grid, self._bits)

    def __repr__(self) -> str:
        return "NoisyAnswers(...)"


def expected_counts(kept: Kept, parameters: Parameters, max_length: int, grid: int) -> IntArray:
    """The sum over sequences of each one's expected counts, rounded down to 2**-grid: in that unit, flat.

    Not public. Each sequence's own blocks sum to at most 1, max_length - 1 and max_length.
    """
    n, v = parameters.emission.shape
    steps = 2**grid
    limits = np.array([1, max_length - 1, max_length], dtype=np.int64) * steps
    starts, moves, emissions = (np.zeros(size, dtype=np.int64) for size in (n, n * n, v * n))
    add_records(
        np.ascontiguousarray(parameters.initial),
        np.ascontiguousarray(parameters.transition),
        np.ascontiguousarray(parameters.emission.T),
        kept.symbols,
        kept.bounds,
        float(steps),
        limits,
        starts,
        moves,
        emissions,
    )
    return np.concatenate([starts, moves, emissions.reshape(v, n).T.ravel()])


def improve(
    ask: Callable[[Parameters], NoisyTable],
    start: Parameters,
    layout: FlatLayout,
    iterations: int,
    projection: str,
) -> Parameters:
    """The parameters after so many noisy iterations.

    A row's noisy counts are made non-negative, mixed with the row before (a prior as heavy as the noise),
    or left as before where the row has less mass than the noise of its total.
    """
    vector = flat(start)
    for _ in range(iterations):
        table = ask(layout.unflatten(vector))
        vector = vector.copy()
        vector[layout.cells] = next_rows(table, vector[layout.cells], layout, projection)
    return layout.unflatten(vector)


def next_rows(table: NoisyTable, before: FloatArray, layout: FlatLayout, projection: str) -> FloatArray:
    """The M-step on noisy counts."""
    counts = nearest_counts(table.values, layout.indptr, projection)
    deviation = table.deviation
    return probabilities(
        counts, layout.indptr, before, prior=PRIOR_DEVIATIONS * deviation, least=deviation, floor=FLOOR
    )


PAPER_ITERATIONS = 80
#: The paper's threshold, here on the largest change of a parameter; it does not say what it is applied to.
THRESHOLD = 1e-5
EVERY = "paper-every-iteration"
LAST = "paper-last-iteration-not-private"
NOT_PRIVATE = (
    "NOT PRIVATE: noise in the last iteration only; the parameters before it were computed from the data without noise"
)


def paper_parts(caps: RecordBounds, epsilon: Fraction, iterations: int) -> tuple[NoisyCounts, ...]:
    """The paper's noise: scale L/(epsilon/T), for transitions and for emissions, in each of T iterations."""
    if caps.max_length < 2:
        raise InvalidInput("max_length", caps.max_length, "at least 2: shorter sequences have no transition")
    scale = caps.max_length * iterations / epsilon
    bounds = (("transitions", caps.max_length - 1), ("emissions", caps.max_length))
    parts = tuple(
        NoisyCounts(f"{name}, iteration {k + 1}", "laplace", l1((bound,), caps), scale)
        for k in range(iterations)
        for name, bound in bounds
    )
    grid_bits(parts[0])
    return parts


class PaperAnswers:
    """The data behind the paper's noisy answers: transitions and emissions apart, in the order of the parts."""

    def __init__(
        self, kept: Kept, layout: FlatLayout, parts: tuple[NoisyCounts, ...], max_length: int, bits: Bits
    ) -> None:
        self._kept, self._layout, self._bits, self._max_length = kept, layout, bits, max_length
        self._planned = [parts[k : k + 2] for k in range(0, len(parts), 2)]

    def __call__(self, parameters: Parameters) -> NoisyTable:
        """Both noisy tables of the next iteration, side by side."""
        if not self._planned:
            raise RuntimeError("every planned part has been published")
        parts = self._planned.pop(0)
        grid = grid_bits(parts[0])
        counts = expected_counts(self._kept, parameters, self._max_length, grid)[self._layout.cells]
        middle = int(np.searchsorted(self._layout.cells, len(parameters.initial) * (1 + len(parameters.initial))))
        tables = [
            release(counts[section], part, grid, self._bits)
            for section, part in zip((slice(0, middle), slice(middle, None)), parts, strict=True)
        ]
        return NoisyTable(np.concatenate([table.values for table in tables]), tables[0].deviation)

    def __repr__(self) -> str:
        return "PaperAnswers(...)"


def paper_rows(table: NoisyTable, before: FloatArray, layout: FlatLayout) -> FloatArray:
    """Normalised rows.

    The paper does not say what becomes of negative counts: here they are 0, and a row without any positive one stays as
    it was.
    """
    counts = nearest_counts(table.values, layout.indptr, "clamp")
    return probabilities(counts, layout.indptr, before, floor=FLOOR)


def paper_every(ask: PaperAnswers, start: Parameters, layout: FlatLayout, iterations: int) -> Parameters:
    """The paper's second experiment: noise in each of a fixed number of iterations."""
    vector = flat(start)
    for _ in range(iterations):
        vector = vector.copy()
        vector[layout.cells] = paper_rows(ask(layout.unflatten(vector)), vector[layout.cells], layout)
    return layout.unflatten(vector)


def paper_last_not_private(
    kept: Kept,
    start: Parameters,
    layout: FlatLayout,
    parts: tuple[NoisyCounts, ...],
    caps: RecordBounds,
    iterations: int,
    bits: Bits,
) -> Parameters:
    """The paper's first experiment, NOT PRIVATE: plain iterations, and noise in the last one only."""
    vector = flat(start)
    for _ in range(iterations - 1):
        counts = expected_counts(kept, layout.unflatten(vector), caps.max_length, FINEST_GRID)[layout.cells]
        exact = counts.astype(np.float64) * 2.0**-FINEST_GRID
        after = vector.copy()
        after[layout.cells] = probabilities(exact, layout.indptr, vector[layout.cells])
        change = float(np.abs(after - vector).max())
        vector = after
        if change < THRESHOLD:
            break
    ask = PaperAnswers(kept, layout, parts, caps.max_length, bits)
    return paper_every(ask, layout.unflatten(vector), layout, 1)
