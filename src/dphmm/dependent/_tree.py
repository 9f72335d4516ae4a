"""Tuples that depend on each other along a tree (or several): a star of friends, a household, a hierarchy.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dphmm.dependent._kernel import Kernel, law, stochastic, too_rare
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray

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
        """How many tuples there are."""
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
        """Which values D_i can have, by structure and not by floats."""
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
        found: dict[int, list[int]] = {}
        root: dict[int, int] = {}
        for i in self._order:
            parent = self.parents[i]
            root[i] = i if parent < 0 else root[parent]
            found.setdefault(root[i], []).append(i)
        return list(found.values())

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
            one = stochastic(kernels, "kernels") if children else np.ones((1, 1))
            return [one] * self.n
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
                given = root[i] if isinstance(root, Mapping) and i in root else root
                size = np.size(given) if isinstance(given, (list, tuple, np.ndarray)) else 0
                self._marginals[i] = law(given, size, f"root[{i}]" if isinstance(root, Mapping) else "root")
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
    """From a child to its parent, whose law is ``before`` and whose possible values are ``here``."""
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
    given = np.asarray(parents)
    if given.ndim != 1 or len(given) == 0 or not np.issubdtype(given.dtype, np.integer):
        raise InvalidInput("parents", f"shape {given.shape}, {given.dtype}", "the number of each tuple's parent, or -1")
    wrong = (given < -1) | (given >= len(given))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidInput(f"parents[{i}]", int(given[i]), f"-1 or a tuple from 0 to {len(given) - 1}")
    return [int(parent) for parent in given]


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
