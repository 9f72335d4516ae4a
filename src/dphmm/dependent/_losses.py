"""Queries over tuples, and what noise on them loses: a bound by recursion, and exact losses.

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

Proofs: docs/proofs/dependent-markov.md, docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from dphmm import _kernels
from dphmm._checks import exact_number
from dphmm.accounting.leakage_step import LeakageCurve
from dphmm.dependent._chain import Chain
from dphmm.dependent._models import JointTable, Tree
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
    """What each tuple loses through those before it in ``order``."""
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
        """Whether the loss at noise of scale 1/rate is right: no sum too rare for floats can matter."""
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
                total = _convolved(total, self._branch[k, j])
        return total


def _outward(model: Chain | Tree) -> list[tuple[int, int]]:
    """(tuple, its parent or −1), parents first."""
    if isinstance(model, Tree):
        return [(j, model.parents[j]) for j in model._order]
    return [(j, j - 1) for j in range(model.n)]


def _convolved(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.array([np.convolve(a, b) for a, b in zip(left, right, strict=True)])


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
