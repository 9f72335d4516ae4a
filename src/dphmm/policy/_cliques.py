"""Policies that are unions of cliques: complete, one per category, one per source row of a transition matrix.

No edge is ever listed for computing: the differences of a clique are conv P - conv P, P its answers
(docs/theory.md (h)), and the largest along a direction is the largest minus the smallest projection.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.policy._points import CHAIN_SPAN, hull_points
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import (
    PolicyGraph,
    count_of_states,
    projected,
    read_only,
    refuse_too_many,
    registered,
    sorted_edges,
    union,
)
from dphmm.types import BoolArray, IntArray

Rows = tuple[IntArray, IntArray]


class CliqueGraph(PolicyGraph):
    """Cliques as compressed rows: clique q has the states ``indices[indptr[q]:indptr[q + 1]]``."""

    def __init__(self, n_states: int, indptr: IntArray, indices: IntArray, notes: tuple[str, ...] = ()) -> None:
        super().__init__(n_states, notes)
        self.indptr = read_only(indptr)
        self.indices = read_only(indices)
        self._all_of_several = bool(np.diff(self.indptr).min(initial=2) >= 2)
        self._in_none = read_only(np.flatnonzero(np.bincount(self.indices, minlength=self.n_states) == 0))

    @cached_property
    def _runs(self) -> tuple[IntArray, IntArray, IntArray]:
        """The cliques as rows of runs of successive states."""
        return _kernels.policy.runs_of_rows(self.indptr, self.indices)

    def _extreme(self, direction: NDArray[Any], lattice: IntArray, within: Constraint) -> tuple[int, IntArray]:
        ptr, members = self._rows(within)
        if len(ptr) == 1:
            return 0, np.zeros(lattice.shape[1], dtype=np.int64)
        values = projected(direction, lattice)
        high, low = _widest(ptr, members, values)
        return int(values[high]) - int(values[low]), lattice[high] - lattice[low]

    def _has_neighbor(self, within: Constraint) -> BoolArray:
        mask = np.zeros(self.n_states, dtype=np.bool_)
        mask[self._rows(within)[1]] = True
        return mask

    def _isolated(self, within: Constraint) -> IntArray:
        return self._in_none if self._holds_as_it_is(within) else super()._isolated(within)

    def _holds_as_it_is(self, within: Constraint) -> bool:
        """True if the cliques are the contracted graph's: every state is planned, each clique has two or more."""
        return self._all_of_several and len(within.plan_states) == self.n_states

    def _join(self, parent: IntArray, within: Constraint) -> None:
        _kernels.policy.join_rows(parent, *self._rows(within))

    def _edges(self, within: Constraint) -> IntArray:
        ptr, members = self._rows(within)
        sizes = np.diff(ptr)
        refuse_too_many(int((sizes * (sizes - 1) // 2).sum()), "constraint", "list the edges of fewer states")
        first, second = [members[:0]], [members[:0]]
        for size in np.unique(sizes):
            cliques = members[ptr[:-1][sizes == size][:, None] + np.arange(size)]
            a, b = np.triu_indices(size, k=1)
            first.append(cliques[:, a].ravel())
            second.append(cliques[:, b].ravel())
        return sorted_edges(np.concatenate(first), np.concatenate(second))

    def _around(self, states: IntArray) -> IntArray:
        chosen = np.zeros(self.n_states, dtype=np.bool_)
        chosen[states] = True
        row = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        touched = np.zeros(len(self.indptr) - 1, dtype=np.bool_)
        touched[row[chosen[self.indices]]] = True
        return np.unique(self.indices[touched[row]])

    def _joins(self, a: IntArray, b: IntArray) -> BoolArray:
        return _kernels.policy.in_one_row(*self._rows_of_states, a, b)

    @cached_property
    def _rows_of_states(self) -> Rows:
        """The cliques that each state is in, ascending, as compressed rows."""
        order = np.argsort(self.indices, kind="stable")
        cliques = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))[order]
        counts = np.bincount(self.indices, minlength=self.n_states)
        return np.append(0, np.cumsum(counts)), cliques

    def _spanning(self, lattice: IntArray, within: Constraint) -> IntArray:
        ptr, members = self._rows(within)
        d = lattice.shape[1]
        if len(ptr) == 1:
            return np.zeros((0, d), dtype=np.int64)
        if d == 2 and np.all(np.ptp(lattice, axis=0) < CHAIN_SPAN // 2):
            columns = np.ascontiguousarray(lattice.T)
            return hull_points(_kernels.points.row_difference_polygons(ptr, members, columns[0], columns[1]))
        few = [hull_points(lattice[members[i:j]]) for i, j in pairwise(ptr)]
        refuse_too_many(sum(len(p) ** 2 for p in few), "constraint", "use extreme_difference instead")
        return hull_points(np.vstack([(p[:, None] - p[None]).reshape(-1, d) for p in few]))

    def _few(self, lattice: IntArray, within: Constraint) -> IntArray | None:
        if lattice.shape[1] != 2:
            return None
        fits, rows = _kernels.policy.differences_of_cliques(*self._rows(within), lattice, within.plan_states)
        return rows if fits else None

    def _rows(self, within: Constraint) -> Rows:
        """The contracted cliques of two states and more; one that is the one before it may be left out."""
        return self._remember(within, "rows", self._contracted)

    def _contracted(self, within: Constraint) -> Rows:
        if self._holds_as_it_is(within):
            return self.indptr, self.indices
        return _kernels.policy.contract_cliques(*self._runs, len(self.indices), within.support, within.surrogate)


@registered
class Complete(CliqueGraph):
    """The policy in which every two states are neighbours: one clique."""

    kind: ClassVar[str] = "complete"

    def __init__(self, n_states: int) -> None:
        n = count_of_states(n_states)
        super().__init__(n, np.array([0, n]), np.arange(n))

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states}

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> Complete:
        return complete(description["n_states"])

    def _contracted(self, within: Constraint) -> Rows:
        # The surrogates of the support are exactly the plan set.
        members = within.plan_states
        return (np.array([0, len(members)]), members) if len(members) > 1 else (np.zeros(1, np.int64), members[:0])

    def _joins(self, a: IntArray, b: IntArray) -> BoolArray:
        return np.ones(len(a), dtype=np.bool_)

    def _isolated(self, within: Constraint) -> IntArray:
        states = within.plan_states
        return states[:0] if len(states) > 1 else states.copy()


@registered
class Categorical(CliqueGraph):
    """States are neighbours iff they have one label: disjoint cliques."""

    kind: ClassVar[str] = "categorical"

    def __init__(self, categories: IntArray) -> None:
        self.categories = read_only(categories)
        order = np.argsort(categories, kind="stable")
        sizes = np.bincount(categories)
        super().__init__(len(categories), np.r_[0, np.cumsum(sizes)], order)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states, "labels": self.categories.tolist()}

    def _identity(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states, "labels": array_hash(self.categories)}

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> Categorical:
        return categorical(description["labels"])


@registered
class Transition(CliqueGraph):
    """States are neighbours iff some state can move to both: one clique per source row, all rows of the matrix.

    ``order``: the source of a model with secrets, a secret (1) or a latent state (2); else None.
    """

    kind: ClassVar[str] = "transition"

    def __init__(self, n_states: int, indptr: IntArray, indices: IntArray, order: int | None = None) -> None:
        super().__init__(n_states, indptr, indices)
        self.order = order

    def describe(self) -> dict[str, Any]:
        # Where the moves are is the model's to keep; their hash says whether a model has the same.
        return {
            "kind": self.kind,
            "n_states": self.n_states,
            "moves": hashlib.sha256((array_hash(self.indptr) + array_hash(self.indices)).encode()).hexdigest(),
            **({} if self.order is None else {"order": self.order}),
        }

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> Transition:
        if model is None:
            raise InvalidInput("model", None, "the model of the transition policy")
        built = transition(model, description.get("order", 1))
        if built.describe() != description:
            moves = str(built.describe()["moves"])[:16]
            raise InvalidInput("model", f"moves with hash {moves}", f"{str(description.get('moves'))[:16]}")
        return built


def complete(N: int) -> Complete:
    """The policy in which every two of ``N`` states are neighbours (Theorem 4.1: δ-location sets)."""
    return Complete(N)


def areas(states: Sequence[IntArray], N: int) -> PolicyGraph:
    """The policy in which all states of an area are neighbours; areas may overlap.

    ``states`` : the states of each area, of ``N`` in all. Areas that share no state are one `categorical` policy, and
    others are the union of several. The order of areas does not matter. Raises InvalidInput for no area, and for a
    state that there is not.

    >>> import dphmm
    >>> dphmm.policy.areas([[0, 1], [1, 2]], 4).edges().tolist()
    [[0, 1], [1, 2]]
    """
    named = sorted({tuple(np.unique(area).tolist()) for area in states})
    if not named or any(not area or not 0 <= area[0] <= area[-1] < N for area in named):
        raise InvalidInput("areas", f"{len(named)} areas", f"one or more, each of states from 0 to {N - 1}")
    layers = list[IntArray]()
    for number, area in enumerate(named):
        free = next((layer for layer in layers if (layer[list(area)] < N).all()), None)
        if free is None:
            layers.append(free := np.arange(N))
        free[list(area)] = N + number
    return union(*map(categorical, layers))


def categorical(labels: Sequence[Any] | NDArray[Any]) -> Categorical:
    """The policy in which states with equal labels are neighbours (Gcateg, Section 4.2 of the DPHMM paper).

    ``labels`` : one per state, any hashable values but NaN and None. Only which are equal matters.
    """
    listed = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if not listed:
        raise InvalidInput("labels", "no labels", "one per state")
    numbers: dict[Any, int] = {}
    categories = np.empty(len(listed), dtype=np.int64)
    for state, label in enumerate(listed):
        if label is None or label != label:
            raise InvalidInput(f"labels[{state}]", label, "a label")
        try:
            categories[state] = numbers.setdefault(label, len(numbers))
        except TypeError:
            raise InvalidInput(f"labels[{state}]", type(label).__name__, "one label per state") from None
    return Categorical(categories)


def transition(model: Any, order: int = 1) -> Transition:
    """The policy in which two states are neighbours iff one state can move to both (Gtrs, Section 4.2).

    Of a model with secrets two secrets are neighbours iff one secret (``order`` 1), or one latent state (2), can be
    followed by both: of a chain of second order one place, or one place and the place before. 2 joins no more than 1.
    Of a model with slots a move of any slot counts.

    ``model`` : a MarkovModel, anything with ``.transition``, or the matrix itself (N, N), dense or
    scipy.sparse. Explicit zeros are no moves. Raises InvalidInput for a matrix that is not square, or entries
    NaN or negative, and for an order of 2 where each state is its own secret.
    """
    secrets = getattr(model, "secrets", None)
    if isinstance(order, bool) or order not in (1, 2) or (order == 2 and secrets is None):
        expected = "1" if secrets is None else "1, from a secret, or 2, from a latent state"
        raise InvalidInput("order", order, expected)
    slotted = getattr(model, "slots", None) is not None and model.jump is None
    matrix = sparse.csr_array(model.moves if slotted else getattr(model, "transition", model))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InvalidInput("transition", f"a matrix of shape {matrix.shape}", "a square one")
    matrix = matrix.copy()
    matrix.sum_duplicates()
    # Written so that NaN is refused too.
    if not (matrix.data >= 0).all():
        raise InvalidInput("transition", "a negative entry or NaN", "probabilities")
    matrix.eliminate_zeros()
    if secrets is None:
        matrix.sort_indices()
        return Transition(matrix.shape[0], matrix.indptr, matrix.indices)
    n = len(secrets)
    members = sparse.csr_array((np.ones(n), (np.arange(n), secrets)))
    followed = (matrix > 0).astype(np.float64) @ members
    followed = sparse.csr_array(followed if order == 2 else members.T @ followed)
    followed.sort_indices()
    return Transition(followed.shape[1], followed.indptr, followed.indices, order)


def array_hash(array: NDArray[Any]) -> str:
    """SHA-256 (hex) of an integer array, the same on every platform."""
    content = np.ascontiguousarray(array, dtype="<i8")
    return hashlib.sha256(f"{content.shape}\n".encode() + content.tobytes()).hexdigest()


def _widest(ptr: IntArray, members: IntArray, values: NDArray[Any]) -> tuple[int, int]:
    """The members with the largest and the least value of the row that spreads most."""
    if values.dtype != object:
        return _kernels.policy.widest_row(ptr, members, values)
    along = values[members]
    spread = np.maximum.reduceat(along, ptr[:-1]) - np.minimum.reduceat(along, ptr[:-1])
    row = int(np.argmax(spread))
    block = slice(ptr[row], ptr[row + 1])
    return int(members[block][np.argmax(along[block])]), int(members[block][np.argmin(along[block])])
