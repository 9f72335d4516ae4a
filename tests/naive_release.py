"""A release step as the DPHMM paper prints it, in plain NumPy and SciPy: Algorithm 2 with Algorithm 1 inside.

Pairs of states are enumerated, hulls are Qhull's, the belief is moved by a dense matrix, numbers are floats. It is what
a careful reader of the paper writes in an afternoon, and what the benchmarks divide by; nothing here is ours but the
plainness. Answers are (N, d), d >= 2, and the differences must span their d dimensions, as Qhull wants them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import ConvexHull

#: Whether pairs of states (a, b), arrays of one length, are joined by the policy.
Joined = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: The policy edges (m, 2) among the states of a mask (N,).
EdgesAmong = Callable[[np.ndarray], np.ndarray]

_TOLERANCE = 1e-9
_PAIRS_AT_ONCE = 2**20


def complete() -> Joined:
    return lambda a, b: np.ones(len(a), dtype=bool)


def categorical(labels: np.ndarray) -> Joined:
    return lambda a, b: labels[a] == labels[b]


def radius(answers: np.ndarray, r: float) -> Joined:
    return lambda a, b: ((answers[a] - answers[b]) ** 2).sum(axis=1) <= r * r


def knn(answers: np.ndarray, k: int) -> Joined:
    """Two states are joined when one is as near to the other as its k-th nearest; ties within rounding."""
    squares = ((answers[:, None] - answers[None]) ** 2).sum(axis=2).astype(float)
    np.fill_diagonal(squares, np.inf)
    near = squares <= np.sort(squares, axis=1)[:, k - 1 : k] * (1 + _TOLERANCE)
    together = near | near.T
    return lambda a, b: together[a, b]


def transition(matrix: np.ndarray) -> Joined:
    """Two states are joined when some state can move to both. Made once, here: the paper takes its graph as given."""
    moves = (matrix > 0).astype(np.float32)
    together = moves.T @ moves > 0
    return lambda a, b: together[a, b]


def enumerated(joined: Joined) -> EdgesAmong:
    """The edges among some states, found by asking for every pair of them."""

    def among(mask: np.ndarray) -> np.ndarray:
        states = np.flatnonzero(mask)
        first, second = np.triu_indices(len(states), 1)
        a, b = states[first], states[second]
        kept = joined(a, b)
        return np.stack([a[kept], b[kept]], axis=1)

    return among


def listed(edges: np.ndarray) -> EdgesAmong:
    """The edges among some states, picked from a list of all edges that was made beforehand."""
    return lambda mask: edges[mask[edges[:, 0]] & mask[edges[:, 1]]]


@dataclass(frozen=True)
class Hull:
    """conv of ± differences: ``normals``·x <= 1 on it; ``simplices`` (s, d, d) are the corners of its boundary."""

    normals: np.ndarray
    simplices: np.ndarray
    volume: float

    @classmethod
    def of(cls, differences: np.ndarray) -> Hull:
        found = ConvexHull(np.vstack([differences, -differences]))
        equations = np.unique(found.equations, axis=0)
        return cls(-equations[:, :-1] / equations[:, -1:], found.points[found.simplices], found.volume)

    def norm(self, v: np.ndarray) -> np.ndarray:
        """‖v‖_K of each row."""
        return (v @ self.normals.T).max(axis=1)

    def sample(self, epsilon: float, chance: np.random.Generator) -> np.ndarray:
        """Noise with density ∝ exp(-ε‖x‖_K): Gamma(d + 1) times a uniform point of the body."""
        d = self.simplices.shape[1]
        weights = np.abs(np.linalg.det(self.simplices))
        simplex = self.simplices[chance.choice(len(weights), p=weights / weights.sum())]
        inside = chance.dirichlet(np.ones(d + 1))[:d] @ simplex
        return chance.gamma(d + 1, 1 / epsilon) * inside


def degrees(hull: Hull, answers: np.ndarray, targets: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Definition 5.2: for each target, how many states of ``among`` have their answer within the hull of its own."""
    found = np.empty(len(targets), dtype=np.int64)
    chunk = max(1, _PAIRS_AT_ONCE // len(among))
    for start in range(0, len(targets), chunk):
        some = targets[start : start + chunk]
        steps = (answers[among][None] - answers[some][:, None]).reshape(-1, answers.shape[1])
        inside = hull.norm(steps) <= 1 + _TOLERANCE
        found[start : start + chunk] = inside.reshape(len(some), len(among)).sum(axis=1)
    return found


@dataclass(frozen=True)
class Protected:
    """What Algorithm 1 leaves: the edges of G ∩ C, the joins it added, and the hull with them."""

    edges: np.ndarray
    exposed: np.ndarray
    joins: list[tuple[int, int]]
    hull: Hull


def protected(edges: np.ndarray, answers: np.ndarray, possible: np.ndarray, recheck: bool = True) -> Protected:
    """Algorithm 1: every exposed state is joined to its nearest other one; degrees of disconnected states only.

    ``recheck`` passes over a state that an earlier join has hidden already; the printed algorithm does not.
    """
    states = np.flatnonzero(possible)
    differences = answers[edges[:, 1]] - answers[edges[:, 0]]
    hull = Hull.of(differences)
    alone = np.setdiff1d(states, edges)
    exposed = alone[degrees(hull, answers, alone, states) == 1]
    joins: list[tuple[int, int]] = []
    for state in exposed.tolist():
        if recheck and joins and degrees(hull, answers, np.array([state]), states)[0] > 1:
            continue
        partner = _nearest(answers, state, states[states != state])
        joins.append((state, partner))
        differences = np.vstack([differences, answers[partner] - answers[state]])
        hull = Hull.of(differences)
    return Protected(edges, exposed, joins, hull)


def _nearest(answers: np.ndarray, state: int, others: np.ndarray) -> int:
    distance = ((answers[others] - answers[state]) ** 2).sum(axis=1)
    return int(others[np.argmin(distance)])


@dataclass
class Release:
    """Algorithm 2 for one subject: ``step`` predicts, protects, answers and conditions."""

    matrix: np.ndarray
    edges_among: EdgesAmong
    answers: np.ndarray
    epsilon: float
    posterior: np.ndarray
    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def step(self, state: int) -> np.ndarray:
        """Release an answer about the true state."""
        prior = self.posterior @ self.matrix
        plan = self.plan(prior)
        z: np.ndarray = self.answers[state] + plan.hull.sample(self.epsilon, self.chance)
        self.posterior = self.conditioned(prior, plan, z)
        return z

    def plan(self, prior: np.ndarray) -> Protected:
        """C_t, G ∩ C_t and the protectable graph."""
        possible = prior > 0
        return protected(self.edges_among(possible), self.answers, possible)

    def conditioned(self, prior: np.ndarray, plan: Protected, z: np.ndarray) -> np.ndarray:
        """Equation 2: p⁺ ∝ Pr(z | s)·p⁻."""
        likelihood = np.exp(-self.epsilon * plan.hull.norm(z - self.answers))
        joint = likelihood * prior
        return joint / joint.sum()


def delta_set(prior: np.ndarray, delta: float) -> np.ndarray:
    """The location-sets paper's ΔX: the fewest states that hold 1 - δ of the prior, as a mask; ties by number."""
    order = np.argsort(-prior, kind="stable")
    enough = np.cumsum(prior[order]) >= (1 - delta) * math.fsum(prior) - 1e-12
    chosen = np.zeros(len(prior), dtype=bool)
    chosen[order[: int(np.argmax(enough)) + 1]] = True
    return chosen
