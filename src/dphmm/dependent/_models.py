"""Models of dependence other than chains: trees, stars, friendships, joint tables and given coefficients.

`Tree` and `Star`: tuples that depend on each other along a tree, as in a household or a hierarchy. `Friendship`:
friends who live near each other, P(D_j = y | D_i = x) ∝ a (|x − y| + b)^−c over a public state space. `JointTable`: the
joint distribution of few tuples. `Coefficients`: pairwise coefficients that somebody supplies.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dphmm._checks import finite_number
from dphmm.dependent._chain import Kernel, law, stochastic, too_rare
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray

_UNIT = 2.0**-53


class Tree:
    """Every tuple depends on its parent; without their common ancestors, tuples are independent.

    ``parents`` (n,): the parent of each tuple, −1 for a root; several roots are several independent trees.
    ``root``: the law of a root, or {root: law}. ``kernels``: one matrix P(D_child | D_parent) for all edges, or
    {child: matrix}; equal edges should share one matrix. Raises InvalidInput for loops.
    """

    def __init__(self, parents: Sequence[int], root: Any, kernels: Any) -> None:
        self.parents = _checked_parents(parents)
        self.n = len(self.parents)
        self._order = _from_the_roots(self.parents)
        self._down = self._read_kernels(kernels)
        self._marginals: list[FloatArray] = [np.empty(0)] * self.n
        self._supports: list[BoolArray] = [np.empty(0, dtype=np.bool_)] * self.n
        self._depth = np.zeros(self.n, dtype=np.int64)
        self._neighbours: list[list[int]] = [[] for _ in range(self.n)]
        self._walk(root)
        self._made: dict[tuple[int, bytes, bytes, bytes], Kernel] = {}

    @property
    def n_tuples(self) -> int:
        """The number of tuples."""
        return self.n

    @property
    def is_forest(self) -> bool:
        """Trees have no loops; that was checked."""
        return True

    def neighbours(self, i: int) -> list[int]:
        """Parent and children of tuple i."""
        return self._neighbours[i]

    def marginal(self, i: int) -> FloatArray:
        """The law of D_i."""
        return self._marginals[i]

    def possible(self, i: int) -> BoolArray:
        """True where D_i can have the value, by structure and not by floats."""
        return self._supports[i]

    def kernel(self, i: int, j: int) -> Kernel:
        """The law of D_j given D_i, for j next to i."""
        if self.parents[j] == i:
            return self._shared(self._down[j], i, i, up=False)
        if self.parents[i] != j:
            raise InvalidInput("j", j, f"a neighbour of tuple {i}")
        return self._shared(self._down[i], i, j, up=True)

    def trees(self) -> list[list[int]]:
        """The tuples of each tree: different trees are independent."""
        trees: dict[int, list[int]] = {}
        root: dict[int, int] = {}
        for i in self._order:
            parent = self.parents[i]
            root[i] = i if parent < 0 else root[parent]
            trees.setdefault(root[i], []).append(i)
        return list(trees.values())

    def __repr__(self) -> str:
        return f"tree of {self.n} tuples"

    def _shared(self, down: FloatArray, i: int, parent: int, up: bool) -> Kernel:
        """The kernel from tuple i along ``down``, or back to its ``parent``: one for equal ones."""
        possible, before, here = self.possible(i), self.marginal(parent), self.possible(parent)
        key = (id(down), before.tobytes() if up else b"", here.tobytes(), possible.tobytes())
        if key not in self._made:
            depth = int(self._depth[i])
            self._made[key] = _upward(down, before, here, possible, depth) if up else Kernel(down, possible)
        return self._made[key]

    def _read_kernels(self, kernels: Any) -> list[FloatArray]:
        children = [i for i in range(self.n) if self.parents[i] >= 0]
        if not isinstance(kernels, Mapping):
            kernel = stochastic(kernels, "kernels") if children else np.ones((1, 1))
            return [kernel] * self.n
        if set(kernels) != set(children):
            raise InvalidInput("kernels", sorted(kernels), f"one for each tuple with a parent: {children}")
        seen: dict[int, FloatArray] = {}
        for child in children:
            if id(kernels[child]) not in seen:
                seen[id(kernels[child])] = stochastic(kernels[child], f"kernels[{child}]")
        return [seen[id(kernels[i])] if i in kernels else np.ones((1, 1)) for i in range(self.n)]

    def _walk(self, root: Any) -> None:
        for i in self._order:
            parent = self.parents[i]
            if parent < 0:
                start = root[i] if isinstance(root, Mapping) and i in root else root
                size = np.size(start) if isinstance(start, (list, tuple, np.ndarray)) else 0
                self._marginals[i] = law(start, size, f"root[{i}]" if isinstance(root, Mapping) else "root")
                self._supports[i] = self._marginals[i] > 0
                continue
            down = self._down[i]
            if len(down) != len(self._marginals[parent]):
                raise InvalidInput(f"kernels[{i}]", f"{len(down)} rows", f"one for each value of tuple {parent}")
            self._neighbours[i].append(parent)
            self._neighbours[parent].append(i)
            self._depth[i] = self._depth[parent] + 1
            self._marginals[i] = self._marginals[parent] @ down
            self._supports[i] = np.asarray((down[self._supports[parent]] > 0).any(axis=0))


class Star(Tree):
    """One tuple (number 0) and ``leaves`` others that depend on it alone.

    ``centre``: its law. ``kernels``: P(D_leaf | D_0), one matrix or one for each leaf, 1..leaves.
    """

    def __init__(self, leaves: int, centre: Any, kernels: Any) -> None:
        if isinstance(leaves, bool) or not isinstance(leaves, (int, np.integer)) or leaves < 1:
            raise InvalidInput("leaves", leaves, "how many leaves there are, at least 1")
        super().__init__([-1] + [0] * int(leaves), centre, kernels)

    def __repr__(self) -> str:
        return f"star of {self.n - 1} leaves"


def _upward(down: FloatArray, before: FloatArray, here: BoolArray, possible: BoolArray, depth: int) -> Kernel:
    """The kernel from a child to its parent, whose law is ``before`` and whose possible values are ``here``."""
    after = before @ down
    together = before[:, None] * down
    if too_rare(together, down, here, after[possible]):
        # Disjoint rows let a loss pass whole: nothing is claimed of quotients that underflow.
        wide = np.zeros((len(after), max(len(after), len(before))))
        wide[:, : len(after)] = np.eye(len(after))
        return Kernel(wide, possible, stand_in=True)
    rows = down[here]
    if (rows == rows[0]).all():
        return Kernel(np.tile(before, (len(after), 1)), possible)
    back = np.zeros((len(after), len(before)))
    back[possible] = together.T[possible] / after[possible, None]
    return Kernel(back, possible, 2 * (depth + 1) * (len(before) + len(after) + 4) * _UNIT)


def _checked_parents(parents: Sequence[int]) -> list[int]:
    links = np.asarray(parents)
    if links.ndim != 1 or len(links) == 0 or not np.issubdtype(links.dtype, np.integer):
        raise InvalidInput("parents", f"shape {links.shape}, {links.dtype}", "the number of each tuple's parent, or -1")
    wrong = (links < -1) | (links >= len(links))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidInput(f"parents[{i}]", int(links[i]), f"-1 or a tuple from 0 to {len(links) - 1}")
    return [int(parent) for parent in links]


def _from_the_roots(parents: list[int]) -> list[int]:
    """Tuples in an order in which parents come first; InvalidInput for a loop."""
    children: list[list[int]] = [[] for _ in parents]
    order: list[int] = []
    for i, parent in enumerate(parents):
        (order if parent < 0 else children[parent]).append(i)
    for i in order:
        order.extend(children[i])
    if len(order) < len(parents):
        loop = min(set(range(len(parents))) - set(order))
        raise InvalidInput("parents", f"a loop through or above tuple {loop}", "a tree: no loops")
    return order


#: Rows of a joint table: every loss is computed over all of them.
MOST_OUTCOMES = 2**16


class JointTable:
    """The joint law of n tuples, as a table of those outcomes that can happen.

    ``outcomes`` (m, n) of integer values, or {outcome: probability} with tuples as outcomes. ``probabilities`` (m,),
    positive, summing to 1 within 1e-9.
    """

    is_forest = False

    def __init__(self, outcomes: Any, probabilities: Any = None) -> None:
        if isinstance(outcomes, Mapping):
            outcomes, probabilities = list(outcomes), list(outcomes.values())
        rows = np.asarray(outcomes)
        chances = np.asarray(probabilities, dtype=np.float64)
        if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.integer) or rows.size == 0:
            raise InvalidInput("outcomes", f"shape {rows.shape}, {rows.dtype}", "integers (m, n): one row per outcome")
        if len(rows) > MOST_OUTCOMES:
            raise InvalidInput("outcomes", f"{len(rows)} rows", f"at most {MOST_OUTCOMES}")
        if chances.shape != (len(rows),) or not (np.isfinite(chances).all() and (chances >= 0).all()):
            raise InvalidInput("probabilities", f"shape {chances.shape}", f"{len(rows)} probabilities")
        if abs(chances.sum() - 1.0) > 1e-9:
            raise InvalidInput("probabilities", f"sum {chances.sum().item()!r}", "a sum of 1 (within 1e-9)")
        if rows.min() < 0:
            raise InvalidInput("outcomes", int(rows.min()), "values counted from 0")
        if len(np.unique(rows, axis=0)) < len(rows):
            raise InvalidInput("outcomes", "the same outcome twice", "each outcome once")
        self.outcomes: IntArray = rows[chances > 0].astype(np.int64)
        self.probabilities: FloatArray = chances[chances > 0] / chances.sum()
        self.n: int = int(rows.shape[1])
        self._pairs: dict[tuple[int, int], FloatArray] = {}

    @property
    def n_tuples(self) -> int:
        """The number of tuples."""
        return self.n

    def n_values(self, i: int) -> int:
        """Values of tuple i are below this."""
        return int(self.outcomes[:, i].max()) + 1

    def possible(self, i: int) -> BoolArray:
        """True where D_i can have the value."""
        mask = np.zeros(self.n_values(i), dtype=np.bool_)
        mask[self.outcomes[:, i]] = True
        return mask

    def pair(self, i: int, j: int) -> FloatArray:
        """P(D_j | D_i) over possible values of D_i, rows in their order."""
        if (i, j) not in self._pairs:
            joint = np.zeros((self.n_values(i), self.n_values(j)))
            np.add.at(joint, (self.outcomes[:, i], self.outcomes[:, j]), self.probabilities)
            joint = joint[joint.sum(axis=1) > 0]
            self._pairs[i, j] = joint / joint.sum(axis=1, keepdims=True)
        return self._pairs[i, j]

    def __repr__(self) -> str:
        return f"joint table of {self.n} tuples, {len(self.outcomes)} outcomes"


class Coefficients:
    """Coefficients ρ_ij that somebody supplies: a square matrix in [0, 1], dense or sparse; the diagonal counts as 1.

    Nothing is known of the law behind them, so of what is made with them only group privacy is proved: over all
    tuples, for a coefficient of 0 does not make tuples independent, or over connected parts if ``parts_independent``
    says that these are.
    """

    is_forest = False

    def __init__(self, matrix: Any, *, parts_independent: bool = False) -> None:
        self.parts_independent = parts_independent
        try:
            rho = sparse.csr_array(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("coefficients", type(matrix).__name__, "a square matrix, tuples × tuples") from None
        rho.sum_duplicates()
        if rho.ndim != 2 or rho.shape[0] != rho.shape[1] or rho.shape[0] == 0:
            raise InvalidInput("coefficients", f"shape {rho.shape}", "a square matrix, tuples × tuples")
        wrong = ~((rho.data >= 0) & (rho.data <= 1))
        if wrong.any():
            k = int(np.argmax(wrong))
            row = int(np.searchsorted(rho.indptr, k, side="right")) - 1
            where = f"coefficients[{row}, {int(rho.indices[k])}]"
            raise InvalidInput(where, rho.data[k].item(), "a coefficient from 0 to 1")
        rho = rho - sparse.diags_array(rho.diagonal()) + sparse.eye_array(rho.shape[0])
        self.matrix = sparse.csr_array(rho)
        self.matrix.eliminate_zeros()
        self.n: int = rho.shape[0]

    @property
    def n_tuples(self) -> int:
        """The number of tuples."""
        return self.n

    def scaled(self, factor: float) -> Coefficients:
        """The coefficients off the diagonal times ``factor``: those of somebody who under-estimates dependence."""
        between = self.matrix - sparse.eye_array(self.n)
        return Coefficients(between * factor, parts_independent=self.parts_independent)

    def components(self) -> tuple[int, IntArray]:
        """The number of connected parts, and the part (n,) of each tuple."""
        return connected(self.matrix)

    def __repr__(self) -> str:
        return f"given coefficients of {self.n} tuples"


def connected(matrix: Any) -> tuple[int, IntArray]:
    """The connected parts of a graph."""
    count, part = sparse.csgraph.connected_components(matrix, directed=False)
    return int(count), part.astype(np.int64)


#: Backstrom, Sun and Marlow (WWW 2010), in miles; the factor a = 0.0019 falls out when the law is normalised.
NEARNESS, DECAY = 0.196, 1.05
METRES_PER_MILE = 1609.344


class Friendship:
    """Friends' places, pair by pair; three or more people who form no tree have no stated joint law.

    ``places`` (k, d): coordinates of the public state space, in ``unit`` metres (1609.344: miles). ``edges`` (m, 2):
    pairs of people 0..n−1. ``prior``: the law of one person's place (uniform if not given), used where the friendships
    form trees and a joint law can be made of the pairs.
    """

    def __init__(
        self,
        places: Any,
        edges: Any,
        n: int,
        *,
        b: float = NEARNESS,
        c: float = DECAY,
        unit: float = METRES_PER_MILE,
        prior: Any = None,
    ) -> None:
        self.places = _places(places)
        self.n = _people(n)
        self.edges = _edges(edges, self.n)
        ones = np.ones(len(self.edges))
        graph = sparse.csr_array((ones, (self.edges[:, 0], self.edges[:, 1])), shape=(self.n, self.n))
        self.graph = sparse.csr_array(graph + graph.T)
        self.kernel_between_friends = distance_law(self.places, b, c, unit)
        k = len(self.places)
        self.prior = law(np.full(k, 1 / k) if prior is None else prior, k, "prior")

    @property
    def n_tuples(self) -> int:
        """The number of people."""
        return self.n

    @property
    def is_forest(self) -> bool:
        """True if the friendships have no loops."""
        return len(self.edges) == self.n - self.components()[0]

    def components(self) -> tuple[int, IntArray]:
        """The number of connected parts, and the part (n,) of each person; the parts are independent."""
        return connected(self.graph)

    def tree(self, root: int = 0) -> Tree:
        """The joint law in which places spread from one person outwards: only where friendships have no loops."""
        if not self.is_forest:
            raise InvalidInput("edges", "friendships with loops", "friendships that form trees")
        if not 0 <= root < self.n:
            raise InvalidInput("root", root, f"a person from 0 to {self.n - 1}")
        parents = np.full(self.n, -2)
        for start in [root, *range(self.n)]:
            if parents[start] == -2:
                order, before = sparse.csgraph.breadth_first_order(self.graph, start, directed=False)
                parents[order] = before[order]
                parents[start] = -1
        return Tree(parents.tolist(), self.prior, self.kernel_between_friends)

    def __repr__(self) -> str:
        return f"friendships of {self.n} people, {len(self.edges)} edges, over {len(self.places)} places"


def distance_law(
    places: FloatArray, b: float = NEARNESS, c: float = DECAY, unit: float = METRES_PER_MILE
) -> FloatArray:
    """P(D_j = y | D_i = x) over the places (k, k)."""
    near, decay, metres = finite_number(b, "b"), finite_number(c, "c"), finite_number(unit, "unit")
    if near <= 0 or decay < 0 or metres <= 0:
        raise InvalidInput("b, c, unit", (near, decay, metres), "b > 0, c >= 0 and unit > 0")
    distances = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)) / metres
    weights = (distances + near) ** -decay
    laws: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return laws


def _places(places: Any) -> FloatArray:
    points = np.asarray(places, dtype=np.float64)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or len(points) < 2 or not np.isfinite(points).all():
        raise InvalidInput("places", f"shape {points.shape}", "finite coordinates (k, d) of at least 2 places")
    return points


def _people(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InvalidInput("n", n, "how many people there are, at least 1")
    return int(n)


def _edges(edges: Any, n: int) -> IntArray:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidInput("edges", f"shape {pairs.shape}, {pairs.dtype}", "pairs of people (m, 2)")
    unknown = (pairs < 0) | (pairs >= n)
    if unknown.any():
        raise InvalidInput("edges", f"unknown user {int(pairs[unknown][0])}", f"people from 0 to {n - 1}")
    if (pairs[:, 0] == pairs[:, 1]).any():
        at = int(np.argmax(pairs[:, 0] == pairs[:, 1]))
        raise InvalidInput(f"edges[{at}]", f"{int(pairs[at, 0])} with themselves", "pairs of different people")
    distinct: IntArray = np.unique(np.sort(pairs.astype(np.int64), axis=1), axis=0)
    return distinct
