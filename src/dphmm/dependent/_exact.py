"""The loss of Laplace noise on a sum, computed: chains and trees by recursion over laws, small joints by enumeration.

The loss of tuple i is the largest |log Pr(s | D_i = x) − log Pr(s | D_i = y)| over answers s. Between two possible
sums both densities are of the form A e^{s/σ} + B e^{−s/σ}, so their quotient is monotone in s, and outside of all of
them it is constant: the worst s is a possible sum. So it is for noise on the integers. Nothing here is rounded
outward: a loss is right to about n·10⁻¹⁵ of itself, and whoever concludes from it leaves a margin.

Proof: docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dphmm.dependent._chain import Chain
from dphmm.dependent._joint import JointTable
from dphmm.dependent._queries import Sum
from dphmm.dependent._tree import Tree
from dphmm.types import FloatArray

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
