"""Measures of dependence that published mechanisms calibrate with, for chains, trees, friendships and joint tables.

Pair by pair: the coefficient ρ_ij(σ), total variation and linear correlation, summed over j.
ρ_ij(σ) = (σ/Δ_j) · sup log [Σ_y P(y | D_i = x) e^{−|f(y)−s|/σ} / Σ_y P(y | D_i = x′) e^{−|f(y)−s|/σ}] is what the
answer of tuple j alone loses about tuple i. The worst s is an f(y) (see ``_losses``). Of a query of which only the
sensitivity is known the loss is at most L(Δ_j/σ) of the kernel P(D_j | D_i), and equal to it for two values.

Pufferfish (Song, Wang and Chaudhuri, SIGMOD 2017): the Wasserstein distance for small cases, Markov quilts for chains.

Proof: docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from dphmm._checks import finite_number
from dphmm.accounting.leakage_step import LeakageCurve
from dphmm.dependent._chain import Chain, laws_by_lag
from dphmm.dependent._losses import AnyQuery, Laws, Query, Sum, checked_sensitivities, sum_laws
from dphmm.dependent._models import Coefficients, Friendship, JointTable, Tree
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray

Model: TypeAlias = Chain | Tree | Friendship | JointTable | Coefficients
#: Pairs of tuples that are looked at one by one; chains that are the same at all times have no such limit.
MOST_PAIRS = 10**6
#: Later lags of a chain are taken as large as the present one where that adds less than this share.
_NEGLIGIBLE = 1e-13
#: Below this, for each value, a loss is the rounding of its own computation.
_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class Measure:
    """One number for how much D_j says about D_i, from what D_i implies for it.

    ``start(j)`` (k_j, m): something of each value of tuple j. ``of(rows, i, j)``: the number, from the means (k_i, m)
    of it given each possible value of D_i. ``falls``: whether it can only fall with every further step of a chain.
    """

    start: Callable[[int], FloatArray]
    of: Callable[[FloatArray, int, int], float]
    own: Callable[[int], float]
    falls: bool


def laplace_losses(model: Model, query: Query, rate: float) -> FloatArray | None:
    """Σ_j ρ_ij Δ_j/σ for every tuple (n,) at noise of scale σ = 1/rate; None where it is too much to compute."""
    sensitivities = checked_sensitivities(query, model.n_tuples)
    if isinstance(model, Coefficients):
        return np.asarray(model.matrix @ sensitivities) * rate
    if isinstance(query, Sum):
        return sums_over_pairs(model, _of_a_sum(query, sensitivities, rate), query.shared)
    if isinstance(model, Chain) and model.stationary and query.shared:
        own = float(sensitivities[0]) * rate
        return _over_lags(own, [_until_negligible(curves(own), model, own) for curves in model.lags])
    return sums_over_pairs(model, _of_any_query(model, sensitivities, rate), query.shared)


def variation_sums(model: Model, query: Query) -> FloatArray | None:
    """Σ_j TV_ij Δ_j, TV the largest total variation between laws of D_j given D_i: ρ without noise to hide it."""
    sensitivities = checked_sensitivities(query, model.n_tuples)
    if isinstance(model, Coefficients):
        return None

    def of(rows: FloatArray, _: int, j: int) -> float:
        return variation(rows) * float(sensitivities[j])

    return sums_over_pairs(
        model,
        Measure(lambda j: np.eye(size_of(model, j)), of, lambda i: float(sensitivities[i]), falls=True),
        query.shared,
    )


def correlation_sums(model: Model, query: Query) -> FloatArray | None:
    """Σ_j |θ_ij| Δ_j, θ the linear correlation of f(D_i) and f(D_j) (Zhu, Xiong, Li and Zhou, TIFS 2015)."""
    sensitivities = checked_sensitivities(query, model.n_tuples)
    if isinstance(model, Coefficients):
        return np.asarray(model.matrix @ sensitivities)
    if not isinstance(query, Sum) or isinstance(model, Friendship):
        return None
    spread = [_deviation(_law(model, i), query.of(i)[_mask(model, i)]) for i in range(_distinct(model, query))]

    def of(rows: FloatArray, i: int, j: int) -> float:
        law, f = _law(model, i), query.of(i)[_mask(model, i)].astype(float)
        together = spread[i % len(spread)] * spread[j % len(spread)]
        means = rows[:, 0]
        covariance = float(law @ ((f - law @ f) * (means - law @ means)))
        return 0.0 if together == 0 else min(1.0, abs(covariance) / together) * float(sensitivities[j])

    def start(j: int) -> FloatArray:
        return query.of(j).astype(float)[:, None]

    return sums_over_pairs(model, Measure(start, of, lambda i: float(sensitivities[i]), falls=False), query.shared)


def sums_over_pairs(model: Model, measure: Measure, shared: bool) -> FloatArray | None:
    """own + Σ_j of(i, j) for every i."""
    if isinstance(model, Chain) and model.stationary and shared:
        return _by_lag(model, measure)
    n = model.n_tuples
    total = np.array([measure.own(i) for i in range(n)])
    if isinstance(model, Friendship):
        for i, j in model.edges.tolist():
            for a, b in ((i, j), (j, i)):
                total[a] += measure.of(model.kernel_between_friends @ measure.start(b), a, b)
        return total
    if n * n > MOST_PAIRS:
        return None
    for j in range(n):
        for i, rows in _seen_from(model, j, measure.start(j)):
            total[i] += measure.of(rows, i, j)
    return total


@lru_cache(maxsize=2**12)
def _curve(rows: bytes, shape: tuple[int, int]) -> LeakageCurve:
    # A fixed point asks for the same kernels at many scales.
    return LeakageCurve.of(np.frombuffer(rows).reshape(shape))


def loss_of_values(means: FloatArray, most: float) -> float:
    """The largest log-ratio in a column of E[e^{−|f−s|/σ}], s each value of f; never above ``most`` = Δ/σ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.log(means.max(axis=0)) - np.log(means.min(axis=0))
    found = float(np.max(np.where(np.isnan(spread), most, spread)))
    return min(most, found)


def laplace_kernel(values: Any, rate: float) -> FloatArray:
    """e^{−|f(y)−s|·rate} for each value y and each s among the f(y) (k, m)."""
    atoms = np.unique(values)
    kernel: FloatArray = np.exp(-np.abs(np.asarray(values)[:, None] - atoms) * rate)
    return kernel


def variation(rows: FloatArray) -> float:
    """The largest total variation between two rows."""
    return max((float(np.abs(rows - row).sum(axis=1).max()) / 2 for row in rows), default=0.0)


def _of_a_sum(query: Sum, sensitivities: FloatArray, rate: float) -> Measure:
    def of(rows: FloatArray, _: int, j: int) -> float:
        return loss_of_values(rows, float(sensitivities[j]) * rate)

    return Measure(
        lambda j: laplace_kernel(query.of(j), rate), of, lambda i: float(sensitivities[i]) * rate, falls=True
    )


def _of_any_query(model: Model, sensitivities: FloatArray, rate: float) -> Measure:
    def of(rows: FloatArray, _: int, j: int) -> float:
        return _curve(rows.tobytes(), rows.shape)(float(sensitivities[j]) * rate)

    return Measure(lambda j: np.eye(size_of(model, j)), of, lambda i: float(sensitivities[i]) * rate, falls=True)


def _by_lag(chain: Chain, measure: Measure) -> FloatArray:
    """A stationary chain: one number for each lag and direction."""
    own = measure.own(0)
    numbers = []
    for matrix in chain.moves:
        found = (measure.of(rows, 0, 0) for rows in laws_by_lag(matrix, chain.possible(0), measure.start(0)))
        numbers.append(_until_negligible(found, chain, own) if measure.falls else _first(found, chain.n - 1))
    return _over_lags(own, numbers)


def _over_lags(own: float, both: list[FloatArray]) -> FloatArray:
    """Sums (n,) for every tuple, of numbers by lag for the tuples after and before it."""
    after, before = (np.r_[0.0, np.cumsum(numbers)] for numbers in both)
    return np.asarray(own + after[::-1] + before)


def _until_negligible(found: Iterable[float], chain: Chain, own: float) -> FloatArray:
    """Numbers at lags 1..n−1 that fall; where they do not matter any more, the last one again."""
    numbers, total, nothing = np.zeros(chain.n - 1), own, chain.n_values * _ROUNDING
    for lag, number in zip(range(chain.n - 1), found, strict=False):
        numbers[lag] = number
        total += number
        if number < nothing or number * (chain.n - 1 - lag) < _NEGLIGIBLE * total:
            numbers[lag:] = number
            break
    return numbers


def _first(found: Iterable[float], count: int) -> FloatArray:
    return np.fromiter(islice(found, count), dtype=np.float64, count=count)


def _seen_from(model: Any, j: int, start: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """(i, means of ``start`` given each possible value of D_i) for every other tuple i."""
    if isinstance(model, JointTable):
        for i in range(model.n):
            if i != j:
                yield i, model.pair(i, j) @ start[: model.n_values(j)]
        return
    waiting = [(i, j, start) for i in model.neighbours(j)]
    while waiting:
        i, before, rows = waiting.pop()
        here = model.kernel(i, before).law @ rows
        yield i, here[model.possible(i)]
        waiting += [(k, i, here) for k in model.neighbours(i) if k != before]


def size_of(model: Any, j: int) -> int:
    """How many values tuple j has."""
    if isinstance(model, JointTable):
        return model.n_values(j)
    return len(model.places) if isinstance(model, Friendship) else len(model.marginal(j))


def _mask(model: Any, i: int) -> Any:
    mask = model.possible(i)
    return mask


def _law(model: Any, i: int) -> FloatArray:
    """The law of D_i over its possible values."""
    if isinstance(model, JointTable):
        law = np.bincount(model.outcomes[:, i], model.probabilities, minlength=model.n_values(i)).astype(np.float64)
    else:
        law = np.asarray(model.marginal(i))
    kept: FloatArray = law[model.possible(i)]
    return kept


def _deviation(law: FloatArray, f: Any) -> float:
    return math.sqrt(max(0.0, float(law @ (f - law @ f) ** 2)))


def _distinct(model: Any, query: Sum) -> int:
    """How many tuples have a law and an f of their own."""
    return 1 if isinstance(model, Chain) and model.stationary and query.shared else int(model.n_tuples)


def coefficient(model: Any, lag: int, sigma: float, *, values: Any = None, at: int | None = None) -> float:
    """ρ of two states of a Markov chain, ``lag`` steps apart (negative: of an earlier state), in noise of scale sigma.

    ``model``: a MarkovModel or a matrix (taken as stationary), or a Chain, looked at from tuple ``at`` (the first, or
    the last for negative lags, if not given). ``values`` (k,): what the query counts for each state, with the largest
    difference as Δ; without them, ρ of the worst query that a state changes by at most Δ = 1.
    """
    steps = _lag(lag)
    chain = model if isinstance(model, Chain) else Chain(model, abs(steps) + 1, start="stationary")
    here = (0 if steps >= 0 else chain.n - 1) if at is None else at
    if not (0 <= here < chain.n and 0 <= here + steps < chain.n):
        raise InvalidInput("at, lag", (here, steps), f"two tuples of {chain.n}")
    rows = np.eye(chain.n_values)
    direction = 1 if steps > 0 else -1
    for i in range(here, here + steps, direction):
        rows = rows @ chain.kernel(i, i + direction).matrix
    return _rho(rows[chain.possible(here)], _scale(sigma), values) if steps else 1.0


def coefficients(model: Model, query: Query, sigma: float) -> Any:
    """All ρ_ij(σ) of a model and a query: an array (n, n); sparse for friendships and for given coefficients."""
    scale = _scale(sigma)
    if isinstance(model, Coefficients):
        return model.matrix
    n = model.n_tuples
    checked_sensitivities(query, n)
    if isinstance(model, Friendship):
        return _between_friends(model, query, scale)
    if n * n > MOST_PAIRS:
        raise InvalidInput("model", f"{n} tuples", "at most 1,000: all pairs are looked at")
    found = np.eye(n)
    for j in range(n):
        for i, rows in _seen_from(model, j, np.eye(size_of(model, j))):
            found[i, j] = _of_query(rows, query, j, n, scale)
    return found


def sensitivity(rho: Any, delta: Any = 1.0) -> float:
    """The dependent sensitivity max_i Σ_j ρ_ij Δ_j of coefficients (n, n), dense or sparse, and Δ (one, or (n,))."""
    given = Coefficients(rho)
    single = np.broadcast_to(np.asarray(delta, dtype=np.float64), (given.n,))
    if not (np.isfinite(single).all() and (single >= 0).all()):
        raise InvalidInput("delta", delta, "finite numbers, 0 or more")
    return float((given.matrix @ single).max())


def _between_friends(model: Friendship, query: Query, scale: float) -> Any:
    found = sparse.lil_array((model.n, model.n))
    found.setdiag(1.0)
    for i, j in model.edges.tolist():
        found[i, j] = _of_query(model.kernel_between_friends, query, j, model.n, scale)
        found[j, i] = _of_query(model.kernel_between_friends, query, i, model.n, scale)
    return found.tocsr()


def _of_query(rows: FloatArray, query: Query, j: int, n: int, scale: float) -> float:
    if isinstance(query, Sum):
        return _rho(rows, scale, query.of(j)[: rows.shape[1]])
    assert isinstance(query, AnyQuery)
    delta = float(query.sensitivities(n)[j])
    return _rho(rows, scale / delta, None) if delta else 0.0


def _rho(rows: FloatArray, scale: float, values: Any) -> float:
    if values is None:
        return LeakageCurve.of(rows)(1.0 / scale) * scale
    delta = float(np.ptp(values))
    if delta == 0:
        return 0.0
    return loss_of_values(rows @ laplace_kernel(values, 1.0 / scale), delta / scale) * scale / delta


def _scale(sigma: object) -> float:
    scale = finite_number(sigma, "sigma")
    if scale <= 0:
        raise InvalidInput("sigma", sigma, "a scale greater than 0")
    return scale


def _lag(lag: int) -> int:
    if isinstance(lag, bool) or not isinstance(lag, (int, np.integer)):
        raise InvalidInput("lag", lag, "a whole number of steps")
    return int(lag)


#: Room for rounding in sums of probabilities: a shift is only called enough where it is so by this much.
_MARGIN = 1e-11
#: How far the two sides of a quilt may be from the tuple; fewer quilts are still quilts.
_FARTHEST = 400


def wasserstein_distance(model: Any, query: Any) -> int | None:
    """The largest W_∞ between laws of the sum given two values of one tuple; None where laws are not computed."""
    laws: Laws | None = sum_laws(model, query)
    if laws is None:
        return None
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
