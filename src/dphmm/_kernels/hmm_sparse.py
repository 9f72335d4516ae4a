"""Hidden states of a sparse chain: forward, backward and marginals, in blocks of observations.

A *row* (N,) is a distribution over states, or what observations say of each, in one of two forms. In floats: 0 where a
state is impossible, and nowhere else below TRUSTED of the whole. In logs (``logged``): -inf where impossible, finite
elsewhere. Each step works in floats as long as they hold every possible state, else in logs, and returns to floats when
they do again: nothing that is possible ever becomes 0.

``rows`` (V, N) are likelihoods, each in either form as ``logged_rows`` (V,) says; ``which`` (T,) is the row of each
observation, -1 where nothing was observed. ``moves`` (T,) is how many moves of the chain lie before each observation.
So a table of symbols and a likelihood of its own for every step are the same to these functions. Blocks of a long
sequence follow each other by the row that each leaves behind; `dphmm.markov.smoothing` puts them together.

Matrices are compressed columns where a distribution is moved on, compressed rows where it is moved back. A jump is a
rank-one term beside them: (weights·row) gains at every entry; both (N,), or (0,) where none is. Of a share λu the gains
are λu and the weights 1 where a distribution is moved on, the other way round where it is moved back. The likeliest
path is in `dphmm._kernels.hmm_sparse_path`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphmm._kernels.belief import total
from dphmm._kernels.compiled import kernel
from dphmm._kernels.markov import TRUSTED
from dphmm.types import BoolArray, FloatArray, IntArray

_LOG_TRUSTED = math.log(TRUSTED)


@kernel
def to_logs(row: FloatArray) -> None:
    """A row of floats as logs, in place."""
    for s in range(len(row)):
        row[s] = math.log(row[s]) if row[s] > 0.0 else -math.inf


@kernel
def normalise(row: FloatArray, logged: bool) -> tuple[bool, float]:
    """Scale a row to sum 1, in place; whether it is in logs now, and the log of what its sum was."""
    n = len(row)
    if not logged:
        whole = total(row)
        if whole == 0.0:
            return False, -math.inf
        scale, least = 1.0 / whole, math.inf
        for s in range(n):
            if 0.0 < row[s] < least:
                least = row[s]
        if least * scale >= TRUSTED:
            for s in range(n):
                row[s] *= scale
            return False, math.log(whole)
        to_logs(row)
    top = -math.inf
    for s in range(n):
        top = max(top, row[s])
    if top == -math.inf:
        return True, top
    whole, least = 0.0, math.inf
    for s in range(n):
        if row[s] > -math.inf:
            whole += math.exp(row[s] - top)
            least = min(least, row[s])
    whole = top + math.log(whole)
    fits = least - whole >= _LOG_TRUSTED
    for s in range(n):
        row[s] = math.exp(row[s] - whole) if fits else row[s] - whole
    return not fits, whole


@kernel
def advance(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    row: FloatArray,
    logged: bool,
    out: FloatArray,
) -> bool:
    """The row moved by one matrix and its jump, each entry a sum over its stored ones; whether ``out`` is in logs."""
    n, jumps = len(out), len(gains) > 0
    if not logged:
        trusted, gained = True, 0.0
        if jumps:
            for s in range(n):
                gained += weights[s] * row[s]
        for j in range(n):
            mass = 0.0
            for k in range(indptr[j], indptr[j + 1]):
                mass += row[indices[k]] * data[k]
            if jumps:
                mass += gained * gains[j]
            out[j] = mass
            if not mass >= TRUSTED:
                out[j] = 0.0
                trusted = trusted and not jumps
                for k in range(indptr[j], indptr[j + 1]):
                    if row[indices[k]] > 0.0:
                        trusted = False
        if trusted:
            return False
    logs, scaled, top = row.copy(), np.zeros(n), -math.inf
    if not logged:
        to_logs(logs)
    for s in range(n):
        top = max(top, logs[s])
    for s in range(n):
        if logs[s] > -math.inf:
            scaled[s] = math.exp(logs[s] - top)
    gain = log_gain(weights, logs) if jumps else -math.inf
    most, least = -math.inf, math.inf
    for j in range(n):
        mass = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            mass += scaled[indices[k]] * data[k]
        out[j] = top + math.log(mass) if mass >= TRUSTED else exactly(indptr, indices, data, logs, j)
        if jumps:
            out[j] = log_sum(out[j], gain + math.log(gains[j]))
        most = max(most, out[j])
        if -math.inf < out[j] < least:
            least = out[j]
    if most > 1e-9 or least < _LOG_TRUSTED:
        return True
    for j in range(n):
        out[j] = math.exp(out[j])
    return False


@kernel
def log_gain(weights: FloatArray, logs: FloatArray) -> float:
    """The log of weights·row of a row in logs."""
    largest, mass = -math.inf, 0.0
    for s in range(len(logs)):
        if logs[s] > -math.inf:
            largest = max(largest, logs[s] + math.log(weights[s]))
    if largest == -math.inf:
        return largest
    for s in range(len(logs)):
        if logs[s] > -math.inf:
            mass += math.exp(logs[s] + math.log(weights[s]) - largest)
    return largest + math.log(mass)


@kernel
def log_sum(one: float, other: float) -> float:
    """The log of the sum of two numbers in logs."""
    largest = max(one, other)
    if largest == -math.inf:
        return largest
    return largest + math.log(math.exp(one - largest) + math.exp(other - largest))


@kernel
def exactly(indptr: Any, indices: Any, data: FloatArray, logs: FloatArray, j: int) -> float:
    """One entry of a moved row, in logs: no term of the sum is lost."""
    largest, mass = -math.inf, 0.0
    for k in range(indptr[j], indptr[j + 1]):
        if logs[indices[k]] > -math.inf:
            largest = max(largest, logs[indices[k]] + math.log(data[k]))
    if largest == -math.inf:
        return largest
    for k in range(indptr[j], indptr[j + 1]):
        if logs[indices[k]] > -math.inf:
            mass += math.exp(logs[indices[k]] + math.log(data[k]) - largest)
    return largest + math.log(mass)


@kernel
def weigh(row: FloatArray, logged: bool, weights: FloatArray, logged_weights: bool, out: FloatArray) -> bool:
    """The products of two rows; whether ``out`` is in logs. Nothing is scaled."""
    n = len(row)
    if not logged and not logged_weights:
        trusted = True
        for s in range(n):
            out[s] = row[s] * weights[s]
            if not out[s] >= TRUSTED and row[s] > 0.0 and weights[s] > 0.0:
                trusted = False
        if trusted:
            return False
    for s in range(n):
        a = row[s] if logged else (math.log(row[s]) if row[s] > 0.0 else -math.inf)
        b = weights[s] if logged_weights else (math.log(weights[s]) if weights[s] > 0.0 else -math.inf)
        out[s] = a + b
    return True


@kernel
def advance_many(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    row: FloatArray,
    logged: bool,
    moves: int,
    settled: float,
) -> bool:
    """A distribution moved on so many times, in place; whether it is in logs.

    Between the first move and the last it stops moving once nothing changes by more than ``settled``, looked for at
    every eighth move: the very steps that a session takes through a gap.
    """
    spare = np.empty_like(row)
    for moved in range(moves):
        after = advance(indptr, indices, data, weights, gains, row, logged, spare)
        inner = 0 < moved < moves - 1
        quiet = inner and (moved - 1) % 8 == 0 and same(row, logged, spare, after, settled)
        row[:] = spare
        logged = after
        if quiet:
            logged = advance(indptr, indices, data, weights, gains, row, logged, spare)
            row[:] = spare
            break
    if logged:
        logged, _ = normalise(row, logged)
    return logged


@kernel
def same(one: FloatArray, logged: bool, other: FloatArray, logged_other: bool, tolerance: float) -> bool:
    """Whether two distributions have the same possible states and differ nowhere by more than the tolerance."""
    for s in range(len(one)):
        a, b = one[s], other[s]
        if (a > (-math.inf if logged else 0.0)) != (b > (-math.inf if logged_other else 0.0)):
            return False
        a = math.exp(a) if logged else a
        b = math.exp(b) if logged_other else b
        if abs(a - b) > tolerance:
            return False
    return True


@kernel
def return_many(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    row: FloatArray,
    logged: bool,
    moves: int,
    settled: float,
) -> bool:
    """What later observations say of each state, moved back so many times, in place; whether it is in logs.

    It stops once nothing changes by more than ``settled`` of itself: a state that later observations all but exclude
    may be where the earlier ones are sure the subject was.
    """
    spare = np.empty_like(row)
    for _ in range(moves):
        after = advance(indptr, indices, data, weights, gains, row, logged, spare)
        quiet = logged == after
        for s in range(len(row)):
            if not quiet:
                break
            quiet = row[s] == spare[s] or abs(row[s] - spare[s]) <= settled * (1.0 if logged else row[s])
        row[:] = spare
        logged = after
        if quiet:
            break
    logged, _ = normalise(row, logged)
    return logged


@kernel
def forward(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    settled: float,
    rows: FloatArray,
    logged_rows: BoolArray,
    which: IntArray,
    moves: IntArray,
    row: FloatArray,
    logged: bool,
    alpha: FloatArray,
    logged_alpha: BoolArray,
    scales: FloatArray,
) -> tuple[int, bool]:
    """Filter a block: ``alpha`` (T, N) are the states given all observations so far, from compressed columns.

    ``row`` is the distribution before the moves of the first observation, and at the end the last of ``alpha``.
    ``scales`` (T,) are the logs of each observation's probability given those before. Returns -1, or the first
    observation that no possible state allows; and whether ``row`` is in logs.
    """
    for t in range(len(which)):
        logged = advance_many(indptr, indices, data, weights, gains, row, logged, moves[t], settled)
        scales[t] = 0.0
        if which[t] < 0:
            alpha[t] = row
        else:
            logged = weigh(row, logged, rows[which[t]], logged_rows[which[t]], alpha[t])
            logged, scales[t] = normalise(alpha[t], logged)
            if scales[t] == -math.inf:
                return t, logged
            row[:] = alpha[t]
        logged_alpha[t] = logged
    return -1, logged


@kernel
def backward(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    settled: float,
    rows: FloatArray,
    logged_rows: BoolArray,
    which: IntArray,
    moves: IntArray,
    row: FloatArray,
    logged: bool,
    alpha: FloatArray,
    logged_alpha: BoolArray,
    marginals: FloatArray,
) -> bool:
    """Smooth a block that `forward` has filtered: ``marginals`` (T, N) given all observations, from compressed rows.

    ``row`` is what the observations after the block say of the states of its last step (all 1 where there are none),
    and at the end what those of the block and after it say of the states before the block's first moves. Returns
    whether it is in logs. ``marginals`` may be ``alpha``.
    """
    spare = np.empty_like(row)
    for t in range(len(which) - 1, -1, -1):
        in_logs = weigh(alpha[t], logged_alpha[t], row, logged, spare)
        in_logs, _ = normalise(spare, in_logs)
        for s in range(len(row)):
            marginals[t, s] = math.exp(spare[s]) if in_logs else spare[s]
        if which[t] >= 0:
            logged = weigh(row, logged, rows[which[t]], logged_rows[which[t]], spare)
            logged, _ = normalise(spare, logged)
            row[:] = spare
        logged = return_many(indptr, indices, data, weights, gains, row, logged, moves[t], settled)
    return logged
