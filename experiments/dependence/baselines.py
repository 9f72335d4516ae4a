"""Published mechanisms that dependent records are compared under: what rate of Laplace noise each of them takes.

- ``correlated``: linear correlation (Zhu, Xiong, Li and Zhou, TIFS 2015); ``total-variation``: coefficients without
  noise to hide them. No theorem: of neither a loss is proved.
- ``wasserstein``, ``markov-quilt``: Pufferfish mechanisms (Song, Wang and Chaudhuri, SIGMOD 2017), proved for one
  model, the first for one sum.

Proof: docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.dependent import Calibration, Chain, Coefficients, Friendship, JointTable, Sum, calibrate, compare

# The parts of calibration that no public name has: laws of sums, rows of pairs, rates that are rounded down.
from dphmm.dependent._calibration import MARGIN, Case, rounded_down, short
from dphmm.dependent._coefficients import FARTHEST, Model, checked_sensitivities, seen_from, size_of, sum_laws
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray


def rate_of(mechanism: str, model: Model, query: Any, epsilon: Fraction | int) -> Fraction:
    """1/scale of the noise that a mechanism takes for a promise. Raises InvalidInput where it has nothing to say."""
    return _RATES[mechanism](model, query, Fraction(epsilon))


def calibrated(model: Model, query: Any, epsilon: Fraction | str, mechanism: str) -> Calibration:
    """As `dphmm.dependent.calibrate`, by a mechanism of this module, too."""
    if mechanism not in _RATES:
        return calibrate(model, query, epsilon, mechanism)
    return _judged(Case(model, query, Fraction(epsilon)), mechanism)


def compared(model: Model, query: Any, epsilon: Fraction) -> list[Calibration]:
    """The rows of `dphmm.dependent.compare`, and one for each mechanism of this module that has something to say."""
    rows, case = list(compare(model, query, epsilon)), Case(model, query, epsilon)
    for mechanism in _RATES:
        with suppress(InvalidInput):
            rows.append(_judged(case, mechanism))
    return rows


def _judged(case: Case, mechanism: str) -> Calibration:
    found = case.judged(mechanism, rate_of(mechanism, case.model, case.query, case.epsilon))
    theorem = _THEOREMS.get(mechanism)
    return found if theorem is None else replace(found, proved=True, why=theorem)


def variation_sums(model: Model, query: Any) -> FloatArray:
    """Σ_j TV_ij Δ_j, TV the largest total variation between laws of D_j given D_i: ρ without noise to hide it."""
    sensitivities = checked_sensitivities(query, model.n_tuples)
    total = sensitivities.copy()
    for j in range(model.n_tuples):
        for i, rows in seen_from(model, j, np.eye(size_of(model, j))):
            total[i] += max(float(np.abs(rows - row).sum(axis=1).max()) / 2 for row in rows) * sensitivities[j]
    return total


def correlation_sums(model: Model, query: Any) -> FloatArray:
    """Σ_j |θ_ij| Δ_j, θ the linear correlation of f(D_i) and f(D_j), or what `Coefficients` say."""
    sensitivities = checked_sensitivities(query, model.n_tuples)
    if isinstance(model, Coefficients):
        return np.asarray(model.matrix @ sensitivities)
    if not isinstance(query, Sum) or isinstance(model, Friendship):
        raise InvalidInput("query", type(query).__name__, "a Sum over a chain, a tree or a joint table")
    n, total = model.n_tuples, sensitivities.copy()
    laws = [_law(model, i) for i in range(n)]
    counts = [query.of(i)[model.possible(i)].astype(float) for i in range(n)]
    spreads = [math.sqrt(max(0.0, float(law @ (f - law @ f) ** 2))) for law, f in zip(laws, counts, strict=True)]
    for j in range(n):
        for i, rows in seen_from(model, j, query.of(j).astype(float)[:, None]):
            law, f, means = laws[i], counts[i], rows[:, 0]
            covariance = float(law @ ((f - law @ f) * (means - law @ means)))
            together = spreads[i] * spreads[j]
            total[i] += 0.0 if together == 0 else min(1.0, abs(covariance) / together) * float(sensitivities[j])
    return total


def _law(model: Any, i: int) -> FloatArray:
    """The law of D_i over its possible values."""
    if isinstance(model, JointTable):
        law = np.bincount(model.outcomes[:, i], model.probabilities, minlength=model.n_values(i)).astype(np.float64)
    else:
        law = np.asarray(model.marginal(i))
    kept: FloatArray = law[model.possible(i)]
    return kept


#: Room for rounding in sums of probabilities: a shift is only called enough where it is so by this much.
_MARGIN = 1e-11
#: How far the two sides of a quilt may be from the tuple; fewer quilts are still quilts.
_FARTHEST = 400


def wasserstein_distance(model: Model, query: Sum) -> int:
    """The largest W_∞ between laws of the sum given two values of one tuple."""
    laws = sum_laws(model, query)
    if laws is None:
        raise InvalidInput("model", repr(model), "a chain, a tree or a joint table that is not large")
    worst = 0
    for law in laws:
        for one in range(len(law)):
            for other in range(len(law)):
                worst = max(worst, _shift(law[one], law[other], worst))
    return worst


def _shift(one: FloatArray, other: FloatArray, least: int) -> int:
    """The least k >= ``least`` with P(other <= s + k) >= P(one <= s) for all s.

    Each s is decided on the smaller tail, which is the more exact, and only by more than rounding can hide.
    """
    below, other_below = np.cumsum(one), np.cumsum(other)
    above, other_above = _beyond(one), _beyond(other)
    for k in range(least, len(one)):
        kept = len(one) - k
        low = (other_below[k:] >= below[:kept] * (1 + _MARGIN)) | (below[:kept] == 0.0)
        high = (other_above[k:] * (1 + _MARGIN) <= above[:kept]) | (other_above[k:] == 0.0)
        if np.where(below[:kept] < 0.5, low, high).all():
            return k
    return len(one)


def _beyond(law: FloatArray) -> FloatArray:
    tails: FloatArray = np.append(np.cumsum(law[::-1])[::-1][1:], 0.0)
    return tails


def quilt_scale(chain: Chain, epsilon: float) -> float:
    """Noise for an answer that moves by 1 with each tuple: the best quilt of every tuple, the worst tuple's.

    A quilt {i − a, i + b} leaves a + b − 1 tuples near i and costs the largest log-ratio e of its law given two values
    of tuple i; the tuples beyond it add nothing. Noise: near / (ε − e). Without a quilt, n / ε.
    """
    worst = 0.0
    for i in range(chain.n):
        worst = max(worst, _best_quilt(chain, i, epsilon))
    return worst


def _best_quilt(chain: Chain, i: int, epsilon: float) -> float:
    left = _influence(chain, i, -1)
    right = _influence(chain, i, 1)
    near_left = np.r_[np.arange(1, len(left)), i + 1]
    near_right = np.r_[np.arange(1, len(right)), chain.n - i]
    best = chain.n / epsilon
    for a, reach in enumerate(near_left):
        spent = (left[a] + right).max(axis=(1, 2))
        near = reach + near_right - 1
        fits = spent < epsilon
        if fits.any():
            best = min(best, float((near[fits] / (epsilon - spent[fits])).min()))
    return best


def _influence(chain: Chain, i: int, step: int) -> FloatArray:
    """For quilts at distance 1, 2, … and for none: the largest log-ratio for each pair of values of tuple i."""
    here = np.eye(chain.n_values)
    possible = chain.possible(i)
    k = int(possible.sum())
    found: list[FloatArray] = []
    at, error = i, 0.0
    while 0 <= at + step < chain.n and len(found) < _FARTHEST:
        kernel = chain.kernel(at, at + step)
        if kernel.stand_in:
            # What is behind it is not known: quilts end here.
            break
        here = here @ kernel.matrix
        error += 2 * kernel.error + (chain.n_values + 2) * 2.0**-52
        at += step
        found.append(_log_ratios(here[possible]) + error)
    return np.array([*found, np.zeros((k, k))])


def _log_ratios(rows: FloatArray) -> FloatArray:
    """The largest log p/q over columns, for each ordered pair of rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(rows)
        apart = logs[:, None] - logs[None]
    apart[np.isnan(apart)] = -np.inf
    found: FloatArray = apart.max(axis=2)
    return found


def _from_sums(sums: Callable[[Model, Any], FloatArray]) -> Callable[[Model, Any, Fraction], Fraction]:
    return lambda model, query, epsilon: short(epsilon / Fraction(float(sums(model, query).max())))


def _quilt(model: Model, query: Any, epsilon: Fraction) -> Fraction:
    if not isinstance(model, Chain):
        raise InvalidInput("model", repr(model), "a chain")
    scale = quilt_scale(model, rounded_down(epsilon)) * (1 + MARGIN)
    case = Case(model, query, epsilon, exact=False)
    return max(case.group_rate(), short(1 / (Fraction(scale) * case.largest)))


def _wasserstein(model: Model, query: Any, epsilon: Fraction) -> Fraction:
    # Sums that are too rare for floats have no part in the distance: the noise must be such that they do not matter.
    furthest = sum(query.sensitivities(model.n_tuples), Fraction(0))
    return min(epsilon / max(wasserstein_distance(model, query), 1), short(Fraction(FARTHEST) / furthest))


_RATES: dict[str, Callable[[Model, Any, Fraction], Fraction]] = {
    "correlated": _from_sums(correlation_sums),
    "total-variation": _from_sums(variation_sums),
    "markov-quilt": _quilt,
    "wasserstein": _wasserstein,
}
_THEOREMS = {
    "markov-quilt": "Song, Wang and Chaudhuri (SIGMOD 2017), one model",
    "wasserstein": "Song, Wang and Chaudhuri (SIGMOD 2017), for this query",
}
