"""The policy graph: an undirected graph on states that answers a few questions and is not expanded into edges.

Every question is about the *contracted* graph of a constraint (docs/theory.md 6): its edges are {g(a) g(b)} for the
edges ab of the policy inside the support whose surrogates g(a), g(b) differ. Without a δ-set g is the
identity.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.policy.constraint import Constraint
from dphmm.types import BoolArray, IntArray, States

if TYPE_CHECKING:
    from dphmm.policy._points import Cells

#: Which states are possible: what ``Constraint.of`` takes.
Within: TypeAlias = States | Constraint
#: Most edges that are listed; they are for looking, not for computing.
MOST_EDGES = 50_000_000
MOST_STATES = 2**26
_INT64 = 2**62
T = TypeVar("T")
Kind = TypeVar("Kind", bound="type[PolicyGraph]")
#: The kinds of policies by name, in the order in which `dphmm.policy` imports them.
KINDS: dict[str, type[PolicyGraph]] = {}


class PolicyGraph(ABC):
    """An undirected policy on states 0..``n_states`` - 1 (Section 4 of the DPHMM paper); immutable.

    ``constraint`` is a Constraint, or a mask (N,), state numbers, or None for all states. Raises InvalidInput
    where constraint or answers are for another number of states.
    """

    kind: ClassVar[str]

    def __init__(self, n_states: int, notes: tuple[str, ...] = ()) -> None:
        self.n_states = count_of_states(n_states)
        #: What a careful reader would want to know of how the policy was made.
        self.notes = notes

    def extreme_difference(self, direction: IntArray, lattice: IntArray, constraint: Within) -> tuple[int, IntArray]:
        """The largest direction·(F_b - F_a) over contracted edges ab, F = ``lattice[g(.)]``, and that difference.

        ``direction`` (d,) and ``lattice`` (N, d) are integers; the value is exact. (0, zeros) without edges.
        """
        points = self._points(lattice)
        along = np.asarray(direction)
        if along.shape != (points.shape[1],) or not (along.dtype == object or along.dtype.kind in "iu"):
            got = f"an array of shape {along.shape} and type {along.dtype}"
            raise InvalidInput("direction", got, f"{points.shape[1]} integers")
        return self._extreme(along, points, self._constraint(constraint))

    def has_neighbor(self, constraint: Within = None) -> BoolArray:
        """True where a state (N,) is a plan state with an edge in the contracted graph."""
        return self._remember(self._constraint(constraint), "neighbors", self._has_neighbor)

    def isolated(self, constraint: Within = None) -> IntArray:
        """The plan states without an edge in the contracted graph, ascending."""
        return self._remember(self._constraint(constraint), "isolated", self._isolated)

    def planar_cells(self, lattice: IntArray) -> Cells | None:
        """The cells and steps that many plans at once are made with; None for a policy that is asked plan by plan.

        ``lattice`` (N, 2): the answers. Whoever has them answers every other question as `Offsets` does.
        """
        return None

    def components(self, constraint: Within = None) -> IntArray:
        """The component (N,) of each plan state, numbered by lowest member; -1 outside the plan set."""
        within = self._constraint(constraint)
        parent = np.arange(self.n_states, dtype=np.int64)
        self._join(parent, within)
        return _kernels.policy.number_components(parent, within.plan)

    def edges(self, constraint: Within = None) -> IntArray:
        """The contracted edges (m, 2), i < j, sorted: for looking, not for computing.

        Raises InvalidInput for more than 50,000,000 of them.
        """
        return self._edges(self._constraint(constraint))

    def neighbors(self, i: int, constraint: Within = None) -> IntArray:
        """The neighbours of plan state ``i`` in the contracted graph, ascending; none for a state not planned."""
        if isinstance(i, (bool, np.bool_)) or not isinstance(i, (int, np.integer)):
            raise InvalidInput("i", i, f"a state number from 0 to {self.n_states - 1}")
        if not 0 <= i < self.n_states:
            raise InvalidInput("i", int(i), f"a state number from 0 to {self.n_states - 1}")
        within = self._constraint(constraint)
        represented = np.flatnonzero(within.support & (within.surrogate == i))
        around = self._around(represented)
        images: IntArray = np.unique(within.surrogate[around[within.support[around]]])
        others: IntArray = images[images != i]
        return others

    def joins(self, a: IntArray, b: IntArray) -> BoolArray:
        """True where an edge of the policy itself joins two different states a, b (m,)."""
        return self._joins(np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64))

    def spanning_differences(self, lattice: IntArray, constraint: Within = None) -> IntArray:
        """Few differences (m, d), both signs, with the same hull as all differences along contracted edges."""
        points = self._points(lattice)
        return symmetric(self._spanning(points, self._constraint(constraint)))

    def hull_candidates(self, lattice: IntArray, constraint: Within = None) -> IntArray | None:
        """The ``spanning_differences``, one of each ± pair, if one pass over the edges finds them; else None.

        Whoever wants the whole hull is served faster by them than by many calls of ``extreme_difference``.
        """
        return self._few(self._points(lattice), self._constraint(constraint))

    def union(self, other: PolicyGraph) -> PolicyGraph:
        """The graph with the edges of both. Raises InvalidInput for another number of states."""
        return union(self, other)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Kind and parameters, fit for JSON, the same whatever order the input came in."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the policy: equal graphs of one kind have equal digests, however they were given."""
        text = json.dumps(self._identity(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    @abstractmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> PolicyGraph:
        """The policy that ``describe`` described, rebuilt over a space or model where the kind needs one."""

    def __repr__(self) -> str:
        return f"<{self.kind} policy on {self.n_states} states>"

    @abstractmethod
    def _extreme(self, direction: NDArray[Any], lattice: IntArray, within: Constraint) -> tuple[int, IntArray]: ...

    @abstractmethod
    def _has_neighbor(self, within: Constraint) -> BoolArray: ...

    @abstractmethod
    def _join(self, parent: IntArray, within: Constraint) -> None:
        """Join the ends of all contracted edges in a forest of states."""

    @abstractmethod
    def _edges(self, within: Constraint) -> IntArray: ...

    @abstractmethod
    def _around(self, states: IntArray) -> IntArray:
        """All neighbours of any of ``states`` in the policy itself; may name some of ``states``."""

    @abstractmethod
    def _joins(self, a: IntArray, b: IntArray) -> BoolArray: ...

    @abstractmethod
    def _spanning(self, lattice: IntArray, within: Constraint) -> IntArray:
        """The spanning_differences, in any signs and with repetitions."""

    def _few(self, lattice: IntArray, within: Constraint) -> IntArray | None:
        return None

    def _isolated(self, within: Constraint) -> IntArray:
        states = within.plan_states
        return states[~self.has_neighbor(within)[states]]

    def _identity(self) -> dict[str, Any]:
        return self.describe()

    def _constraint(self, constraint: Within) -> Constraint:
        return Constraint.of(constraint, self.n_states)

    def _points(self, lattice: IntArray) -> IntArray:
        points = np.asarray(lattice)
        if points.ndim != 2 or points.dtype.kind != "i":
            got = f"an array of shape {points.shape} and type {points.dtype}"
            raise InvalidInput("lattice", got, f"integers of shape ({self.n_states}, d)")
        if len(points) != self.n_states:
            raise InvalidInput("lattice", f"answers of {len(points)} states", f"of the policy's {self.n_states}")
        return points.astype(np.int64, copy=False)

    def _remember(self, within: Constraint, name: str, compute: Callable[[Constraint], T]) -> T:
        """The result of ``compute`` for a constraint; the constraint, which is immutable, keeps it."""
        answer: T | None = within.answers.get((self, name))
        if answer is None:
            answer = compute(within)
            # Whoever is given it must not change what the next one is told.
            if isinstance(answer, np.ndarray):
                answer.setflags(write=False)
            within.answers[self, name] = answer
        return answer


def count_of_states(n: object) -> int:
    """A number of states: a positive integer."""
    if isinstance(n, (bool, np.bool_)) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InvalidInput("N", n, "a number of states, at least 1")
    if n > MOST_STATES:
        raise InvalidInput("N", int(n), f"at most {MOST_STATES} states")
    return int(n)


def projected(direction: NDArray[Any], lattice: IntArray) -> NDArray[Any]:
    """direction·F up to one common constant (N,): 64-bit where every difference fits, Python integers where not."""
    along = [int(a) for a in direction]
    low = [int(column.min()) for column in lattice.T]
    bound = sum(abs(a) * (int(c.max()) - b) for a, c, b in zip(along, lattice.T, low, strict=True))
    wide = bound >= _INT64 or max(map(abs, along)) >= _INT64
    out = np.zeros(len(lattice), dtype=object if wide else np.int64)
    for a, column, least in zip(along, lattice.T, low, strict=True):
        if a:
            steps = column.astype(object) - least if wide else column - least
            out += steps * a
    return out


def read_only(array: NDArray[Any]) -> IntArray:
    """A 64-bit array that cannot be written through the returned one."""
    view = np.ascontiguousarray(array, dtype=np.int64).view()
    view.flags.writeable = False
    return view


def symmetric(differences: IntArray) -> IntArray:
    """± the distinct non-zero rows, sorted."""
    both = np.vstack([differences, -differences])
    distinct = np.unique(both, axis=0)
    rows: IntArray = distinct[np.any(distinct != 0, axis=1)]
    return rows


def sorted_edges(a: IntArray, b: IntArray) -> IntArray:
    """Distinct edges (m, 2), i < j, sorted; pairs of equal ends are left out."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    apart = low != high
    pairs = np.stack([low[apart], high[apart]], axis=1)
    if len(pairs) == 0:
        return pairs.astype(np.int64)
    base = int(pairs[:, 1].max()) + 1
    keys = np.unique(pairs[:, 0] * base + pairs[:, 1])
    return np.stack([keys // base, keys % base], axis=1)


def refuse_too_many(count: int, field: str, remedy: str) -> None:
    """InvalidInput where listing would take more than 50,000,000 pairs."""
    if count > MOST_EDGES:
        raise InvalidInput(field, f"{count} pairs of states", f"at most {MOST_EDGES}: {remedy}")


def registered(kind: Kind) -> Kind:
    """Make a kind of policy known: policies that its ``describe`` described are rebuilt by it (class decorator).

    A new kind is a file, its function in `dphmm.policy`, a command in `dphmm.cli.policy` and a row in docs/commands.md.
    Tests that try every kind fail then, and say what each of them needs.
    """
    KINDS[kind.kind] = kind
    return kind


def from_description(description: Any, space: Any = None, model: Any = None) -> PolicyGraph:
    """The policy that ``describe`` described; one of a space or model needs that.

    Raises InvalidInput for an unknown kind, a missing part, or a space or model that gives another graph.
    """
    if not isinstance(description, dict):
        raise InvalidInput("policy", type(description).__name__, "a description with a kind")
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInput("kind", kind, "one of " + ", ".join(sorted(KINDS)))
    _check_depth(description)
    try:
        policy = KINDS[kind].from_description(description, space, model)
    except InvalidInput:
        raise
    except KeyError as missing:
        raise InvalidInput("policy", f"a description without {missing.args[0]}", "a complete one") from None
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InvalidInput("policy", "parameters of another type", f"those of a {kind} policy") from None
    if policy.describe() != description:
        raise InvalidInput("policy", "a description that does not fit its own parameters", "one by describe()")
    return policy


def needs(description: dict[str, Any], kind: str) -> bool:
    """True if a description is of a kind, or a union with a part of it."""
    return description.get("kind") == kind or any(needs(part, kind) for part in description.get("parts", ()))


def _check_depth(description: dict[str, Any], depth: int = 0) -> None:
    # Unions are flat as described; a forged file may nest them.
    if depth > 1:
        raise InvalidInput("policy", "a union inside a union", "parts of other kinds")
    parts = description.get("parts", ())
    if not isinstance(parts, (list, tuple)):
        raise InvalidInput("parts", type(parts).__name__, "a list of policies")
    for part in parts:
        if isinstance(part, dict) and "parts" in part:
            _check_depth(part, depth + 1)


@registered
class Union(PolicyGraph):
    """States are neighbours iff they are in some part. Parts are distinct and in the order of their digests."""

    kind: ClassVar[str] = "union"

    def __init__(self, parts: tuple[PolicyGraph, ...]) -> None:
        super().__init__(parts[0].n_states, tuple(note for part in parts for note in part.notes))
        self.parts = parts

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "n_states": self.n_states,
            "parts": [part.describe() for part in self.parts],
        }

    def _identity(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states, "parts": [part.digest for part in self.parts]}

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> PolicyGraph:
        parts = [from_description(part, space, model) for part in description["parts"]]
        return union(*parts)

    def _extreme(self, direction: NDArray[Any], lattice: IntArray, within: Constraint) -> tuple[int, IntArray]:
        return max((part._extreme(direction, lattice, within) for part in self.parts), key=lambda e: e[0])

    def _has_neighbor(self, within: Constraint) -> BoolArray:
        mask: BoolArray = np.logical_or.reduce([part._has_neighbor(within) for part in self.parts])
        return mask

    def _join(self, parent: IntArray, within: Constraint) -> None:
        for part in self.parts:
            part._join(parent, within)

    def _edges(self, within: Constraint) -> IntArray:
        edges = np.vstack([part._edges(within) for part in self.parts])
        return sorted_edges(edges[:, 0], edges[:, 1])

    def _around(self, states: IntArray) -> IntArray:
        return np.unique(np.concatenate([part._around(states) for part in self.parts]))

    def _joins(self, a: IntArray, b: IntArray) -> BoolArray:
        joined: BoolArray = np.logical_or.reduce([part._joins(a, b) for part in self.parts])
        return joined

    def _few(self, lattice: IntArray, within: Constraint) -> IntArray | None:
        by_part = [part._few(lattice, within) for part in self.parts]
        few = [rows for rows in by_part if rows is not None]
        return np.vstack(few) if len(few) == len(by_part) else None

    def _spanning(self, lattice: IntArray, within: Constraint) -> IntArray:
        return np.vstack([part._spanning(lattice, within) for part in self.parts])


def union(*policies: PolicyGraph) -> PolicyGraph:
    """The policy with the edges of all ``policies``; nested unions are flattened and repetitions dropped.

    Raises InvalidInput unless all are policies on one number of states.
    """
    if not policies:
        raise InvalidInput("policies", "none", "at least one policy")
    parts: dict[str, PolicyGraph] = {}
    for policy in policies:
        if not isinstance(policy, PolicyGraph):
            raise InvalidInput("policies", type(policy).__name__, "policies")
        if policy.n_states != policies[0].n_states:
            got = f"policies on {policies[0].n_states} and on {policy.n_states} states"
            raise InvalidInput("policies", got, "one number of states")
        for part in policy.parts if isinstance(policy, Union) else (policy,):
            parts[part.digest] = part
    if len(parts) == 1:
        return next(iter(parts.values()))
    return Union(tuple(part for _, part in sorted(parts.items())))
