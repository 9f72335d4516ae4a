"""The loss of noise on a query over tuples, and the coefficients of pairs that "dpm" calibrates with.

A query says how much an answer changes with one tuple (`Sum`, `AnyQuery`).

*Recursion.* If changing tuple j alone changes the probability of any output by at most e^{a_j}, then for tuple i
    loss(i) = a_i + Σ over neighbours j of L_ij(m_ji),   m_ji = a_j + Σ over other neighbours k of j of L_jk(m_kj),
L_ij from the kernel P(D_j | D_i). On a chain these are r_i = a_i + L_F(r_{i+1}) and l_i = a_i + L_B(l_{i−1}), together
r_i + l_i − a_i. Every bound is rounded up. The recursion is that of Cao, Yoshikawa, Xiao and Xiong (ICDE 2017), used as
an influence curve (the term of Bai, He, Gu, Kifer and Maeng, arXiv 2602.02718; found independently, not compared with
theirs).

*Exact losses.* Chains and trees by recursion over distributions, small joint tables by enumeration. The loss of tuple i
is the largest |log Pr(s | D_i = x) − log Pr(s | D_i = y)| over answers s. Between two possible sums both densities are
of the form A e^{s/σ} + B e^{−s/σ}, so their quotient is monotone in s, and it is constant outside of all sums: the
worst s is a possible sum. The same holds for noise on the integers. Nothing here is rounded outward: a loss is right to
about n·10⁻¹⁵ of itself, and whoever concludes from it leaves a margin.

*Coefficients*, for chains, trees, friendships and joint tables, pair by pair and summed over j.
ρ_ij(σ) = (σ/Δ_j) · sup log [Σ_y P(y | D_i = x) e^{−|f(y)−s|/σ} / Σ_y P(y | D_i = x′) e^{−|f(y)−s|/σ}] is what the
answer of tuple j alone loses about tuple i. The worst s is an f(y) (as above). Of a query of which only the
sensitivity is known the loss is at most L(Δ_j/σ) of the kernel P(D_j | D_i), and equal to it for two values.

Proofs: docs/proofs/dependent-markov.md, docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from dphmm import _kernels
from dphmm._checks import exact_number, finite_number
from dphmm.accounting.leakage_step import LeakageCurve
from dphmm.dependent._chain import Chain, laws_by_lag
from dphmm.dependent._models import Coefficients, Friendship, JointTable, Tree
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
        """True if all tuples have the same values."""
        return not isinstance(self.values, (list, tuple)) or np.ndim(self.values[0]) == 0

    def of(self, i: int) -> IntArray:
        """f of tuple i (k,), as integers."""
        f = np.asarray(self.values if self.shared else self.values[i])
        if f.ndim != 1 or not np.issubdtype(f.dtype, np.integer) or len(f) == 0:
            raise InvalidInput("values", f"shape {f.shape}, {f.dtype}", "an integer for each value of a tuple")
        whole: IntArray = f.astype(np.int64)
        return whole

    def sensitivities(self, n: int) -> list[Fraction]:
        """The largest change of the answer by each tuple alone."""
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
        """True if one sensitivity is of all tuples."""
        return isinstance(self.sensitivity, str) or not isinstance(self.sensitivity, (list, tuple))

    def sensitivities(self, n: int) -> list[Fraction]:
        """The largest change (L1) of the answer by each tuple alone."""
        changes: Any = [self.sensitivity] * n if self.shared else self.sensitivity
        if len(changes) != n:
            raise InvalidInput("sensitivity", f"{len(changes)} numbers", f"one, or one for each of {n} tuples")
        sensitivities = [exact_number(value, "sensitivity") for value in changes]
        if min(sensitivities) < 0:
            raise InvalidInput("sensitivity", min(sensitivities), "0 or more")
        return sensitivities


Query: TypeAlias = Sum | AnyQuery


def checked_sensitivities(query: Query, n: int) -> FloatArray:
    """The sensitivities as floats, one positive at least."""
    if not isinstance(query, (Sum, AnyQuery)):
        raise InvalidInput("query", type(query).__name__, "a Sum or an AnyQuery")
    sensitivities = np.array([float(value) for value in query.sensitivities(n)])
    if sensitivities.max() <= 0:
        raise InvalidInput("query", "an answer that no tuple changes", "one that some tuple changes")
    return sensitivities


Forest: TypeAlias = Chain | Tree
#: A rounding, outwards: as in the kernel of chains.
_OUTWARD = 1.0 + 2.0**-50


def tuple_losses(model: Forest, single: FloatArray) -> FloatArray:
    """The bound for every tuple (n,), from the losses ``single`` (n,) of changing one alone."""
    return _on_a_chain(model, single) if isinstance(model, Chain) else _on_a_tree(model, single)


def largest_loss(model: Forest, single: FloatArray) -> float:
    """The bound that holds for every tuple."""
    return float(tuple_losses(model, single).max())


def _on_a_chain(model: Chain, single: FloatArray) -> FloatArray:
    n = model.n
    later = _along(model, single, range(n - 1, -1, -1))
    reversals = model.reversals
    earlier = _along(model, single, range(n)) if reversals is None else reversals.carried(single)
    return single + (later + earlier) * _OUTWARD if n > 1 else single.copy()


def _along(model: Chain, single: FloatArray, order: range) -> FloatArray:
    """The loss of each tuple through those before it in ``order``."""
    carried = np.zeros(model.n)
    for kernel, first, last in model.stretches(order.step):
        curve = kernel.curve
        if isinstance(curve, LeakageCurve):
            d, more = curve.shares
            _kernels.leakage.carry(d, more, curve.error, single, carried, first, last, order.step)
            continue
        for i in range(first, last + order.step, order.step):
            before = i - order.step
            message = float(single[before] + carried[before])
            carried[i] = curve.above(message * _kernels.leakage.OUTWARD if carried[before] else message)
    return carried


def _on_a_tree(model: Tree, single: FloatArray) -> FloatArray:
    below = np.zeros(model.n)
    through = np.zeros(model.n)
    for j in reversed(model._order):
        parent = model.parents[j]
        if parent >= 0:
            through[j] = model.kernel(parent, j).curve.above(_sum(single[j], below[j]))
            below[parent] = _sum(below[parent], through[j])
    above = np.zeros(model.n)
    for parent in model._order:
        children = [j for j in model.neighbours(parent) if model.parents[j] == parent]
        after = np.r_[np.cumsum(through[children][::-1])[::-1], 0.0] * (1.0 + len(children) * 2.0**-52)
        earlier = 0.0
        for place, j in enumerate(children):
            message = _sum(_sum(single[parent], above[parent]), _sum(earlier, after[place + 1]))
            above[j] = model.kernel(j, parent).curve.above(message)
            earlier = _sum(earlier, through[j])
    return np.array([_sum(single[i], _sum(below[i], above[i])) for i in range(model.n)])


def _sum(a: float, b: float) -> float:
    """a + b, not rounded down."""
    return float(a + b) if a == 0.0 or b == 0.0 else float(a + b) * _OUTWARD


#: Multiplications that an exact loss may take.
MOST_WORK = 10**9
#: Sums less likely than floats can say (10**-308) are lost; noise that reaches over all sums with more than
#: e**-FARTHEST of its height hides them by far.
FARTHEST = 600.0
#: laws[i] (k_i, S): the law of the sum given each possible value of tuple i.
Laws: TypeAlias = list[FloatArray]


@dataclass(frozen=True, eq=False)
class ExactLoss:
    """The losses of a sum as functions of the noise scale."""

    laws: Laws

    @property
    def most(self) -> float:
        """The largest rate for which losses are known."""
        widest = max(int(law.shape[1]) - 1 for law in self.laws)
        return FARTHEST / max(1, widest)

    def known(self, rate: float) -> bool:
        """True if the loss at noise of scale 1/rate is right: no sum too rare for floats can matter."""
        return rate <= self.most

    def at(self, scale: float) -> float:
        """The largest loss of any tuple under Laplace noise of this scale."""
        return max(_loss(law, 1.0 / scale) for law in self.laws)


def exact_loss(model: Any, query: Any) -> ExactLoss | None:
    """The exact losses, or None where they are not computed."""
    laws = sum_laws(model, query)
    return None if laws is None else ExactLoss(laws)


def sum_laws(model: Any, query: Any) -> Laws | None:
    """The law of the sum given each tuple's possible values, counted from the least possible sum; None if too much."""
    if not isinstance(query, Sum):
        return None
    if isinstance(model, JointTable):
        return _of_a_table(model, query)
    if not isinstance(model, (Chain, Tree)) or _work(model, query) > MOST_WORK:
        return None
    return _Messages(model, query).laws()


def _work(model: Chain | Tree, query: Sum) -> float:
    spans = [int(np.ptp(query.of(i))) for i in range(1 if query.shared else model.n)]
    most = sum(spans) * (model.n if query.shared else 1) + 1
    k = max(len(model.marginal(i)) for i in (range(1) if isinstance(model, Chain) else range(model.n)))
    degree = 2 if isinstance(model, Chain) else max(len(model.neighbours(i)) for i in range(model.n))
    return (float(most) ** 2 * k + float(most) * k * k) * model.n * max(degree, 1)


class _Messages:
    """Laws of the sums over the branches of a forest, given the value at which they are attached."""

    def __init__(self, model: Chain | Tree, query: Sum) -> None:
        self._model = model
        self._values = [query.of(i) - query.of(i).min() for i in range(model.n)]
        self._branch: dict[tuple[int, int], FloatArray] = {}

    def laws(self) -> Laws | None:
        order = _outward(self._model)
        if any(self._model.kernel(j, parent).stand_in for j, parent in order if parent >= 0):
            return None
        for j, parent in reversed(order):
            self._send(j, parent)
        for j, parent in order:
            self._send(parent, j)
        laws = [self._gathered(i, None)[self._model.possible(i)] for i in range(self._model.n)]
        return laws if isinstance(self._model, Chain) else self._with_the_other_trees(laws)

    def _with_the_other_trees(self, laws: Laws) -> Laws:
        """The sums of other trees are independent, and only added."""
        order = _outward(self._model)
        roots = [j for j, parent in order if parent < 0]
        root_of = dict(zip(roots, roots, strict=True))
        for j, parent in order:
            root_of.setdefault(j, root_of.get(parent, parent))
        totals = {r: self._model.marginal(r)[self._model.possible(r)] @ laws[r] for r in roots}
        rest = {r: np.ones(1) for r in roots}
        for r in roots:
            for other in roots:
                if other != r:
                    rest[r] = np.convolve(rest[r], totals[other])
        return [np.array([np.convolve(row, rest[root_of[i]]) for row in law]) for i, law in enumerate(laws)]

    def _send(self, j: int, i: int) -> None:
        """The law of everything on j's side of the edge, given D_i (k_i, S)."""
        if i < 0 or j < 0:
            return
        self._branch[j, i] = self._model.kernel(i, j).matrix @ self._gathered(j, i)

    def _gathered(self, j: int, without: int | None) -> FloatArray:
        """The law of f(D_j) and of all branches at j but one, given D_j (k_j, S)."""
        f = self._values[j]
        total = np.zeros((len(f), int(f.max()) + 1))
        total[np.arange(len(f)), f] = 1.0
        for k in self._model.neighbours(j):
            if k != without:
                total = np.array([np.convolve(a, b) for a, b in zip(total, self._branch[k, j], strict=True)])
        return total


def _outward(model: Chain | Tree) -> list[tuple[int, int]]:
    """(tuple, its parent or −1), parents first."""
    if isinstance(model, Tree):
        return [(j, model.parents[j]) for j in model._order]
    return [(j, j - 1) for j in range(model.n)]


def _of_a_table(model: JointTable, query: Sum) -> Laws:
    sums = np.zeros(len(model.outcomes), dtype=np.int64)
    for i in range(model.n):
        sums += query.of(i)[model.outcomes[:, i]]
    atoms, place = np.unique(sums, return_inverse=True)
    steps = atoms - atoms[0]
    laws = []
    for i in range(model.n):
        law = np.zeros((model.n_values(i), int(steps[-1]) + 1))
        np.add.at(law, (model.outcomes[:, i], steps[place]), model.probabilities)
        law = law[model.possible(i)]
        laws.append(law / law.sum(axis=1, keepdims=True))
    return laws


def _loss(law: FloatArray, rate: float) -> float:
    """The largest log-ratio of two rows' densities over possible sums."""
    with np.errstate(divide="ignore"):
        logs = np.log(law)
    place = rate * np.arange(law.shape[1])
    # log Σ_{S ≤ s} p(S) e^{−(s−S)rate}, and the same from the other side, each in one pass and without underflow.
    upward = np.logaddexp.accumulate(logs + place, axis=1) - place
    downward = np.logaddexp.accumulate((logs - place)[:, ::-1], axis=1)[:, ::-1] + place
    beyond = np.full_like(downward, -np.inf)
    beyond[:, :-1] = downward[:, 1:] - rate
    whole = np.logaddexp(upward, beyond)
    seen = (law > 0).any(axis=0)
    spread = whole[:, seen].max(axis=0) - whole[:, seen].min(axis=0)
    return float(spread.max())


Model: TypeAlias = Chain | Tree | Friendship | JointTable | Coefficients
#: Pairs of tuples that are looked at one by one; chains that are the same at all times have no such limit.
MOST_PAIRS = 10**6
#: Later lags of a chain are taken as large as the present one where that adds less than this share.
_NEGLIGIBLE = 1e-13
#: Below this, for each value, a loss is the rounding of its own computation.
_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class Measure:
    """One number for the information of D_j about D_i, from the means of D_j given D_i.

    ``start(j)`` (k_j, m): something of each value of tuple j. ``of(rows, i, j)``: the number, from the means (k_i, m)
    of it given each possible value of D_i; it can only fall with every further step of a chain.
    ``itself(i)``: that of D_i about itself.
    """

    start: Callable[[int], FloatArray]
    of: Callable[[FloatArray, int, int], float]
    itself: Callable[[int], float]


def laplace_losses(model: Model, query: Query, rate: float) -> FloatArray | None:
    """Σ_j ρ_ij Δ_j/σ for every tuple (n,) at noise of scale σ = 1/rate; None where it is too much to compute."""
    sensitivities = checked_sensitivities(query, model.n_tuples)
    if isinstance(model, Coefficients):
        return np.asarray(model.matrix @ sensitivities) * rate
    if isinstance(query, Sum):
        return sums_over_pairs(model, _of_a_sum(query, sensitivities, rate), query.shared)
    if isinstance(model, Chain) and model.stationary and query.shared:
        single = float(sensitivities[0]) * rate
        return _over_lags(single, [_until_negligible(curves(single), model, single) for curves in model.lags])
    return sums_over_pairs(model, _of_any_query(model, sensitivities, rate), query.shared)


def sums_over_pairs(model: Model, measure: Measure, shared: bool) -> FloatArray | None:
    """own + Σ_j of(i, j) for every i."""
    if isinstance(model, Chain) and model.stationary and shared:
        return _by_lag(model, measure)
    n = model.n_tuples
    total = np.array([measure.itself(i) for i in range(n)])
    if isinstance(model, Friendship):
        for i, j in model.edges.tolist():
            for a, b in ((i, j), (j, i)):
                total[a] += measure.of(model.kernel_between_friends @ measure.start(b), a, b)
        return total
    if n * n > MOST_PAIRS:
        return None
    for j in range(n):
        for i, rows in seen_from(model, j, measure.start(j)):
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
    largest = float(np.max(np.where(np.isnan(spread), most, spread)))
    return min(most, largest)


def laplace_kernel(values: Any, rate: float) -> FloatArray:
    """e^{−|f(y)−s|·rate} for each value y and each s among the f(y) (k, m)."""
    atoms = np.unique(values)
    kernel: FloatArray = np.exp(-np.abs(np.asarray(values)[:, None] - atoms) * rate)
    return kernel


def _of_a_sum(query: Sum, sensitivities: FloatArray, rate: float) -> Measure:
    def of(rows: FloatArray, _: int, j: int) -> float:
        return loss_of_values(rows, float(sensitivities[j]) * rate)

    return Measure(lambda j: laplace_kernel(query.of(j), rate), of, lambda i: float(sensitivities[i]) * rate)


def _of_any_query(model: Model, sensitivities: FloatArray, rate: float) -> Measure:
    def of(rows: FloatArray, _: int, j: int) -> float:
        return _curve(rows.tobytes(), rows.shape)(float(sensitivities[j]) * rate)

    return Measure(lambda j: np.eye(size_of(model, j)), of, lambda i: float(sensitivities[i]) * rate)


def _by_lag(chain: Chain, measure: Measure) -> FloatArray:
    """A stationary chain: one number for each lag and direction."""
    single = measure.itself(0)
    numbers = []
    for matrix in chain.moves:
        by_lag = (measure.of(rows, 0, 0) for rows in laws_by_lag(matrix, chain.possible(0), measure.start(0)))
        numbers.append(_until_negligible(by_lag, chain, single))
    return _over_lags(single, numbers)


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


def seen_from(model: Any, j: int, start: FloatArray) -> Iterator[tuple[int, FloatArray]]:
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
    """The number of values of tuple j."""
    if isinstance(model, JointTable):
        return model.n_values(j)
    return len(model.places) if isinstance(model, Friendship) else len(model.marginal(j))


def coefficient(model: Any, lag: int, sigma: float, *, values: Any = None, at: int | None = None) -> float:
    """ρ of two states of a Markov chain, ``lag`` steps apart (negative: of an earlier state), in noise of scale sigma.

    ``model``: a MarkovModel or a matrix (taken as stationary), or a Chain, looked at from tuple ``at`` (the first, or
    the last for negative lags, if not given). ``values`` (k,): the query's number for each state, with the largest
    difference as Δ; without them, ρ of the worst query that a state changes by at most Δ = 1.
    """
    if isinstance(lag, bool) or not isinstance(lag, (int, np.integer)):
        raise InvalidInput("lag", lag, "a whole number of steps")
    steps = int(lag)
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
    rho = np.eye(n)
    for j in range(n):
        for i, rows in seen_from(model, j, np.eye(size_of(model, j))):
            rho[i, j] = _of_query(rows, query, j, n, scale)
    return rho


def sensitivity(rho: Any, delta: Any = 1.0) -> float:
    """The dependent sensitivity max_i Σ_j ρ_ij Δ_j of coefficients (n, n), dense or sparse, and Δ (one, or (n,))."""
    model = Coefficients(rho)
    single = np.broadcast_to(np.asarray(delta, dtype=np.float64), (model.n,))
    if not (np.isfinite(single).all() and (single >= 0).all()):
        raise InvalidInput("delta", delta, "finite numbers, 0 or more")
    return float((model.matrix @ single).max())


def _between_friends(model: Friendship, query: Query, scale: float) -> Any:
    rho = sparse.lil_array((model.n, model.n))
    rho.setdiag(1.0)
    for i, j in model.edges.tolist():
        rho[i, j] = _of_query(model.kernel_between_friends, query, j, model.n, scale)
        rho[j, i] = _of_query(model.kernel_between_friends, query, i, model.n, scale)
    return rho.tocsr()


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
