"""Chains that couple along a policy: known walks, a linear program for each pair, and T2 by enumeration.

It could fail where a move into a step is judged by the moves out of it, where a start that is not stationary is
forgotten, where hops are miscounted, or where a chain is called couplable whose edges lose more than the sum.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import dphmm
from dphmm.accounting import couplable
from dphmm.errors import InvalidInput


def line(n, radius=1):
    return np.array([(i, j) for i in range(n) for j in range(i) if i - j <= radius])


def walk(n, moves, wall="stays"):
    """A walk on a line: the same moves (-> chance) everywhere; at a wall it stays, stops there, or is reflected."""
    matrix = np.zeros((n, n))
    for at, (move, chance) in product(range(n), moves.items()):
        to = at + move
        if not 0 <= to < n:
            to = {"stays": at, "stops": min(max(to, 0), n - 1), "reflects": -to if to < 0 else 2 * (n - 1) - to}[wall]
        matrix[at, to] += chance
    return matrix


def model(matrix, initial=None, start="at"):
    n = len(matrix)
    return dphmm.MarkovModel(np.full(n, 1 / n) if initial is None else initial, matrix, start=start)


def even(most):
    return dict.fromkeys(range(-most, most + 1), 1 / (2 * most + 1))


@pytest.mark.parametrize("radius", [1, 2, 3])
@pytest.mark.parametrize("most", [1, 2])
def test_walks_of_up_to_two_cells_couple_along_every_radius(most, radius):
    found = couplable(model(walk(11, even(most))), line(11, radius), 20)
    assert found.holds and found.hops == 1


def test_walks_of_three_cells_do_not():
    """From the cells 2 and 3 from a wall such a walk goes to 2 and 0."""
    found = couplable(model(walk(11, {-3: 0.5, 3: 0.5})), line(11), 20)
    assert not found.holds and found.hops == 2
    assert couplable(model(walk(11, {-3: 0.5, 3: 0.5})), line(11, 2), 20).hops > 0


def test_walks_that_stop_at_the_wall_fail_backwards():
    found = couplable(model(walk(11, {-2: 0.5, 2: 0.5}, "stops")), line(11), 20)
    assert not found.holds and found.worst is not None and found.worst[1] == "backward"
    assert couplable(model(walk(11, {-2: 0.5, 2: 0.5}, "stops")), line(11), 1).holds


def test_a_walk_that_is_symmetric_as_a_whole_alone_fails_backwards():
    """Moves (1, 1) and (-1, -1) on a square, axis by axis at walls: another reversal near the corners."""
    side = 5
    matrix = np.zeros((side**2, side**2))
    for (x, y), (move, _) in product(product(range(side), repeat=2), (((1), 0), ((-1), 0))):
        to = [value + move if 0 <= value + move < side else value for value in (x, y)]
        matrix[x * side + y, to[0] * side + to[1]] += 0.5
    points = np.array(list(product(range(side), repeat=2)))
    edges = np.array([
        (i, j) for i in range(side**2) for j in range(i) if np.abs(points[i] - points[j]).max() <= 1
    ])  # fmt: skip
    found = couplable(model(matrix), edges, 10)
    assert not found.holds and found.worst is not None and found.worst[1] == "backward"


def test_another_start_is_checked_backwards():
    matrix = walk(7, even(1))
    assert couplable(model(matrix), line(7), 6).holds
    corner = np.eye(7)[0] * 0.9 + 0.1 / 7
    found = couplable(model(matrix, corner), line(7), 6)
    assert found.worst is not None
    plain = worst_plainly(model(matrix, corner), line(7), 6)
    assert found.hops == plain


def test_a_move_so_rare_as_one_likes_has_to_be_matched():
    """Two answers about the far state lose as much as they like: a share that is left over is lost e^cost times."""
    for rare in (1e-300, 5e-12):
        chain = model(np.array([[0.5, 0.5 - rare, rare], [0.5, 0.5, 0], [0.25, 0.75, 0]]), [0.5, 0.5, 0])
        assert couplable(chain, [[0, 1]], 2).hops == math.inf


def test_no_edge_and_no_move_couple():
    assert couplable(model(walk(3, even(1))), np.zeros((0, 2)), 5) == dphmm.accounting.Couplable(0, 0, None)
    assert couplable(model(walk(3, {-2: 0.5, 2: 0.5})), line(3), 1).worst is None


def hops_plainly(q, d, hops):
    """The least r for which a linear program finds a coupling of q and d within r hops."""
    n = len(q)
    marginals = np.array([[float(k == a) for k, _ in product(range(n), repeat=2)] for a in range(n)]
                         + [[float(m == b) for _, m in product(range(n), repeat=2)] for b in range(n)])  # fmt: skip
    for r in sorted({*hops.ravel().tolist()}):
        bounds = [(0, 1 if hops[k, m] <= r else 0) for k, m in product(range(n), repeat=2)]
        if linprog(np.zeros(n * n), A_eq=marginals, b_eq=np.concatenate([q, d]), bounds=bounds).status == 0:
            return r
    raise AssertionError("no coupling at all")


def distances(edges, n):
    hops = np.where(np.eye(n, dtype=bool), 0, math.inf)
    for i, j in edges:
        hops[i, j] = hops[j, i] = 1
    for k in range(n):
        hops = np.minimum(hops, hops[:, [k]] + hops[[k]])
    return hops


def worst_plainly(chain, edges, steps):
    """Every edge at every step, in both directions, by its own linear program."""
    n, hops = len(chain.initial), distances(edges, len(chain.initial))
    matrix = chain.transition.toarray() if hasattr(chain.transition, "toarray") else np.asarray(chain.transition)
    now, worst = chain.initial @ matrix if chain.start == "before" else chain.initial, 0.0
    for t in range(1, steps + 1):
        following = now @ matrix
        for i, j in edges:
            if now[i] > 0 and now[j] > 0 and t < steps:
                worst = max(worst, hops_plainly(matrix[i], matrix[j], hops))
            if following[i] > 0 and following[j] > 0 and t < steps:
                back = now[:, None] * matrix / np.where(following > 0, following, 1)
                worst = max(worst, hops_plainly(back[:, i], back[:, j], hops))
        now = following
    assert n == len(now)
    return worst


@pytest.mark.parametrize("part", range(4))
def test_hops_are_those_of_linear_programs(part):
    seen = set()
    for seed in range(part * 8, part * 8 + 8):
        random = np.random.default_rng(seed)
        n = int(random.integers(3, 6))
        matrix = random.random((n, n)) * (random.random((n, n)) < 0.6) + np.eye(n) * 0.2
        initial = random.random(n) * (random.random(n) < 0.7) + np.eye(n)[0] * 0.1
        start = str(random.choice(["at", "before"]))
        chain = model(matrix / matrix.sum(axis=1, keepdims=True), initial / initial.sum(), start)
        edges = np.array([(i, j) for i in range(n) for j in range(i) if random.random() < 0.6]).reshape(-1, 2)
        if not len(edges):
            continue
        steps = int(random.integers(1, 4))
        expected = worst_plainly(chain, edges, steps)
        assert couplable(chain, edges, steps).hops == expected
        seen.add(expected)
    assert len(seen) > 1


def largest_loss(chain, policy, space, epsilon, steps):
    """The largest |log Pr(z | s_t = i) / Pr(z | s_t = j)| over outcomes in a window, edges and steps."""
    n = len(chain.initial)
    plan = dphmm.ReleaseSession(chain, policy, space, epsilon, bits=dphmm.ReplayBits(1))._setting.planner.plan(
        np.ones(n, bool), np.ones(n, bool)
    )
    matrix = np.asarray(chain.transition.toarray() if hasattr(chain.transition, "toarray") else chain.transition)
    weights = {z: np.exp(plan.log_likelihood(np.array([z]))) for z in range(-3, n + 3)}
    worst = 0.0
    for z in product(weights, repeat=steps):
        forwards = [chain.initial * weights[z[0]]]
        for step in range(1, steps):
            forwards.append((forwards[-1] @ matrix) * weights[z[step]])
        later, now = np.ones(n), chain.initial.copy()
        marginals = [now := now if step == 0 else now @ matrix for step in range(steps)]
        for step in range(steps - 1, -1, -1):
            given = forwards[step] * later / marginals[step]
            for i, j in policy.edges().tolist():
                worst = max(worst, abs(math.log(given[i] / given[j])))
            later = matrix @ (weights[z[step]] * later)
    return worst


def test_edges_of_a_couplable_chain_lose_at_most_the_sum():
    """T2, and that it says something: the same policy under a chain that does not couple loses more."""
    n, steps, epsilon = 6, 3, Fraction(1)
    space = dphmm.StateSpace(np.arange(n).reshape(-1, 1))
    policy = dphmm.policy.radius(space, 1)
    good = model(walk(n, even(1)))
    assert couplable(good, policy, steps).holds
    assert 1 < largest_loss(good, policy, space, epsilon, steps) <= steps * epsilon + 1e-9
    bad = model(walk(n, {-3: 0.5, 3: 0.5}, "reflects") * 0.999 + 0.001 / n)
    assert not couplable(bad, policy, steps).holds
    assert largest_loss(bad, policy, space, epsilon, steps) > steps * epsilon + 0.1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((model(walk(3, even(1))), [[0, 3]], 2), "policy: got an edge of no state"),
        ((model(walk(3, even(1))), [0, 1], 2), "policy: got an array of shape"),
        ((model(walk(3, even(1))), [[0, 1]], 0), "steps: got 0"),
        (("model", [[0, 1]], 2), "model: got str"),
    ],
)
def test_what_cannot_be_asked_is_refused(given, message):
    with pytest.raises(InvalidInput) as refused:
        couplable(*given)
    assert str(refused.value).startswith(message)
