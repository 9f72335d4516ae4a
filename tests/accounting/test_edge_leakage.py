"""Policy leakage: no outcome of a sequence loses more than the bound of its edge, and the bound is the theorem's.

Twins: couplings by linear programs for every pair at every step, the exact recursion by programs of its own
(tests/proofs/test_temporal.py has them too), every outcome of small chains. Wrong would be: a coupling that is not
least, a pair that is needed and left at 0, the past taken from other marginals than the chain's, equal pairs confused.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm import MarkovModel
from dphmm._kernels import policy_leakage as kernels
from dphmm._kernels.policy_leakage import STEP
from dphmm.accounting import policy_leakage
from dphmm.accounting.edge_leakage import NEVER, largest_loss, levels, losses_between
from dphmm.errors import InvalidInput
from dphmm.mechanisms import chosen_kind
from leakage_programs import by_coupling, by_linear_program, marginals_of, outcomes, program
from registered import chosen_mechanisms

pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")


def recursion(start, moves, losses, bound):
    """(T, n, n): c + F + B by a linear program, or a coupling, for every pair of possible states."""
    n, steps = len(start), len(losses)

    def onward(kernel, limits):
        out = np.zeros((n, n))
        rows = np.flatnonzero(kernel.sum(axis=1) > 0)
        for i, j in itertools.permutations(rows, 2):
            out[i, j] = bound(kernel[i], kernel[j], limits)
        return out

    F, B = [np.zeros((n, n))], [np.zeros((n, n))]
    for t in range(steps - 1, 0, -1):
        F.insert(0, onward(moves, losses[t] + F[0]))
    marginals = marginals_of(start, moves, steps)
    for t in range(1, steps):
        with np.errstate(invalid="ignore", divide="ignore"):
            kernel = np.nan_to_num((marginals[t - 1][:, None] * moves).T / marginals[t][:, None])
        B.append(onward(kernel, losses[t - 1] + B[-1]))
    return np.array([losses[t] + F[t] + B[t] for t in range(steps)])


def walk_of_two(n=11):
    """Two cells left or right with equal chances, turned back at the walls; and the law it keeps."""
    moves = np.zeros((n, n))
    for i, step in itertools.product(range(n), (-2, 2)):
        moves[i, i + step if 0 <= i + step < n else i - step] += 0.5
    law = np.full(n, 1 / n) @ np.linalg.matrix_power((moves + np.eye(n)) / 2, 20_000)
    return moves, law / law.sum()


def distances(answers, epsilon):
    return epsilon * np.abs(np.subtract.outer(answers, answers)).astype(float)


NEIGHBOURS = np.array([(i, i + 1) for i in range(10)])


def test_the_walk_near_a_wall():
    """Two cells left or right on 11 cells, epsilon 1, K = [-1, 1]: far from the sums of epsilons and of costs."""
    moves, law = walk_of_two()
    model = MarkovModel(law, moves, start="at")
    loss = distances(np.arange(11), 1.0)
    two = policy_leakage(model, [loss] * 2, NEIGHBOURS)
    assert two.total.max(axis=0) == pytest.approx([2, 4, 2, 2, 2, 2, 2, 2, 4, 2], abs=1e-8)
    laws = [np.exp(-np.abs(np.subtract.outer(np.arange(11), np.arange(-6, 17))))] * 2
    found = outcomes(law, moves, laws)
    exact = max(found[:, i, j].max() for i, j in [*NEIGHBOURS, *NEIGHBOURS[:, ::-1]])
    assert exact == pytest.approx(3.325, abs=1e-3) and exact <= two.worst
    three = policy_leakage(model, [loss] * 3, NEIGHBOURS)
    assert three.worst == pytest.approx(7, abs=1e-8)
    assert policy_leakage(model, [loss] * 4, NEIGHBOURS).worst == pytest.approx(10, abs=1e-8)
    assert sum(largest_loss(loss) for _ in range(3)) == 30


@pytest.mark.parametrize("seed", range(10))
def test_no_outcome_loses_more_and_the_bound_is_the_theorem_s(seed):
    rng = np.random.default_rng(seed)
    n, steps = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    answers = rng.integers(0, 5, n)
    start, moves = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.4), n)
    if seed % 2:
        start[rng.integers(n)] = 0.0
        start /= start.sum()
        moves[rng.random((n, n)) < 0.3] = 0.0
        moves[np.arange(n), rng.integers(0, n, n)] += 0.2
        moves /= moves.sum(axis=1, keepdims=True)
    losses = [distances(answers, e) for e in rng.choice([0.3, 0.7, 1.5], steps)]
    edges = np.array(list(itertools.combinations(range(n), 2)))
    found = policy_leakage(MarkovModel(start, moves, start="at"), losses, edges)
    grid = np.arange(answers.min() - 3, answers.max() + 4)
    exact = outcomes(start, moves, [np.exp(-law(e, answers, grid)) for e in losses])
    twin, least = (recursion(start, moves, losses, bound) for bound in (by_coupling, by_linear_program))
    possible = np.array(marginals_of(start, moves, steps)) > 0
    for t, (m, (i, j)) in itertools.product(range(steps), enumerate(edges)):
        if not (possible[t, i] and possible[t, j]):
            assert math.isnan(found.total[t, m])
            continue
        assert found.total[t, m] == pytest.approx(max(twin[t, i, j], twin[t, j, i]), abs=1e-6)
        assert max(least[t, i, j], least[t, j, i]) <= found.total[t, m] + 1e-6
        assert max(exact[t, i, j], exact[t, j, i]) <= found.total[t, m] + 1e-9
        assert found.total[t, m] <= found.present[t, m] + found.forward[t, m] + found.backward[t, m] + 1e-9


def law(losses, answers, grid):
    """-log of the K-norm law on the integers, K = [-1, 1], for the epsilon that made ``losses``."""
    i, j = np.unravel_index(np.argmax(losses), losses.shape)
    gap = abs(int(answers[i]) - int(answers[j]))
    epsilon = losses[i, j] / gap if gap else 0.0
    return epsilon * np.abs(np.subtract.outer(answers, grid))


def test_the_check_can_fail_when_the_past_is_forgotten():
    moves, stationary = walk_of_two()
    found = policy_leakage(MarkovModel(stationary, moves, start="at"), [distances(np.arange(11), 1.0)] * 2, NEIGHBOURS)
    laws = [np.exp(-np.abs(np.subtract.outer(np.arange(11), np.arange(-3, 14))))] * 2
    exact = outcomes(stationary, moves, laws)
    assert exact[1, 1, 2] > found.present[1, 1] + found.forward[1, 1] + 1


def random_grid(width, seed):
    """Moves to the nine cells around, at random rates; the losses of a K-norm square; edges between neighbours."""
    rng = np.random.default_rng(seed)
    cells = np.array([(x, y) for y in range(width) for x in range(width)])
    apart = np.abs(cells[:, None] - cells[None]).max(axis=2)
    moves = (apart <= 1) * rng.gamma(1.0, 1.0, apart.shape)
    moves /= moves.sum(axis=1, keepdims=True)
    start = np.full(len(cells), 1 / len(cells))
    return MarkovModel(start, moves), 0.5 * apart, np.argwhere(np.triu(apart == 1))


def test_bounds_by_way_of_nearer_pairs_are_above_couplings():
    model, loss, edges = random_grid(6, 1)
    steps = [loss] * 6
    full = policy_leakage(model, steps, edges)
    fewer = policy_leakage(model, steps, edges, most_couplings=4 * 6 * 500)
    least = policy_leakage(model, steps, edges, most_couplings=0)
    for bounded in (fewer, least):
        assert bounded.couplings < full.couplings
        assert (bounded.total >= full.total - 1e-8).all()
    assert fewer.worst < least.worst
    # Theorem 7.2: never more than the sum of the costs, whatever is bounded.
    assert least.worst <= 6 * loss.max() + 1e-9


def test_equal_pairs_are_coupled_once():
    """On a ring everything looks the same from everywhere; one transition that differs makes others differ."""
    n = 15
    moves = np.zeros((n, n))
    for i, (step, p) in itertools.product(range(n), ((-1, 0.25), (0, 0.5), (1, 0.25))):
        moves[i, (i + step) % n] = p
    gap = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    loss = np.minimum(gap, n - gap).astype(float)
    edges = np.array([(i, (i + 1) % n) for i in range(n)])
    start = np.full(n, 1 / n)
    ring = policy_leakage(MarkovModel(start, moves), [loss] * 3, edges)
    assert ring.couplings < 80
    assert np.ptp(ring.total, axis=1).max() <= 8 * STEP
    moves[0, :3] = (0.3, 0.4, 0.3)
    moves[0, n - 1] = 0.0
    moves[0] /= moves[0].sum()
    other = policy_leakage(MarkovModel(start, moves), [loss] * 3, edges)
    assert other.couplings > ring.couplings
    twin = recursion(start @ moves, moves, [loss] * 3, by_coupling)
    assert [max(twin[t, i, j], twin[t, j, i]) for t in range(3) for i, j in edges[:3]] == pytest.approx(
        other.total[:, :3].ravel().tolist(), abs=1e-6
    )


def test_a_digest_that_never_tells_pairs_apart_changes_nothing(monkeypatch):
    """Equality is tested on rows and limits as a whole: the readable twin with a digest that is always 0."""
    q, d, limits = program(5)
    n = len(q)
    indptr, columns = np.array([0, n, 2 * n]), np.tile(np.arange(n), 2)
    result, other = np.zeros((2, n, n)) if n > 1 else np.zeros((2, 2, 2))
    logs = np.log(np.concatenate([q, d]))
    both = np.array([0, 1]), np.array([1, 0])
    kernels.onward(indptr, columns, logs, limits, *both, True, result)
    monkeypatch.setattr(kernels, "digest", lambda words: np.uint64(0))
    looked_for = kernels.onward.py_func(indptr, columns, logs, limits, *both, True, other)
    assert looked_for == 2 and np.array_equal(result, other)


def test_unbounded_losses_stay_where_they_can_be_told():
    """Two halves that a release tells apart for certain: an edge within one of them, whose ends stay there."""
    inf = math.inf
    loss = np.array([[0, 1, inf, inf], [1, 0, inf, inf], [inf, inf, 0, 1], [inf, inf, 1, 0]], dtype=float)
    apart = np.array([[0.5, 0.5, 0, 0], [0.2, 0.8, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.3, 0.7]])
    edges = np.array([(0, 1), (1, 2)])
    found = policy_leakage(MarkovModel([0.25] * 4, apart), [loss] * 3, edges)
    assert np.isfinite(found.total[:, 0]).all() and np.isinf(found.total[:, 1]).all()
    within = policy_leakage(MarkovModel([0.5, 0.5], apart[:2, :2]), [loss[:2, :2]] * 3, [(0, 1)])
    assert found.total[:, 0] == pytest.approx(within.total[:, 0], abs=1e-8)
    # With other chances of crossing something would have to be carried across: no finite bound.
    crossing = np.array([[0.5, 0.4, 0.1, 0], [0.2, 0.5, 0.3, 0], [0.1, 0, 0.5, 0.4], [0, 0.1, 0.3, 0.6]])
    mixed = policy_leakage(MarkovModel([0.25] * 4, crossing, start="at"), [None, loss], [(0, 1)])
    assert mixed.forward[0, 0] == math.inf
    # Ends that go to different halves: nothing said at once, everything by the next answer; and the same backwards.
    parting = np.array([[0, 0, 1, 0], [0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]], dtype=float)
    later = policy_leakage(MarkovModel([0.25] * 4, parting, start="at"), [None, loss], [(0, 1)])
    assert later.forward[0, 0] == later.total[0, 0] == math.inf
    before = policy_leakage(MarkovModel([0.25] * 4, parting, start="at"), [loss, None], [(0, 2)])
    assert before.backward[1, 0] == math.inf


def test_impossible_states_and_skipped_steps():
    moves, stationary = walk_of_two()
    start = np.zeros(11)
    start[4] = 1.0
    loss = distances(np.arange(11), 1.0)
    found = policy_leakage(MarkovModel(start, moves, start="at"), [loss] * 3, [(4, 5), (2, 6), (2, 3)])
    assert np.isnan(found.total[0]).all() and found.total[1].tolist()[1] >= 4
    assert np.isnan(found.total[1]).tolist() == [True, False, True]
    model = MarkovModel(stationary, moves, start="at")
    skipped = policy_leakage(model, [loss, None, loss], NEIGHBOURS)
    assert (skipped.present[1] == 0).all()
    assert (skipped.total <= policy_leakage(model, [loss] * 3, NEIGHBOURS).total).all()
    nothing = policy_leakage(model, [None] * 3, NEIGHBOURS)
    assert nothing.worst == 0.0
    assert policy_leakage(model, [], NEIGHBOURS).total.shape == (0, 10)
    assert policy_leakage(model, [loss] * 2, np.zeros((0, 2), dtype=int)).worst == 0.0


@pytest.fixture(scope="module")
def small_city():
    space = dphmm.StateSpace(np.array([(x, y) for y in range(3) for x in range(3)]))
    apart = np.abs(space.lattice[:, None] - space.lattice[None]).sum(axis=2)
    moves = (apart <= 1) / (apart <= 1).sum(axis=1, keepdims=True)
    return MarkovModel(np.full(9, 1 / 9), moves), dphmm.policy.radius(space, 1), space


ON_HULLS = [name for name in chosen_mechanisms() if chosen_kind(name).made_from == "hull"]


class TestPlans:
    @pytest.mark.parametrize("mechanism", ON_HULLS)
    def test_losses_are_the_mechanism_s(self, small_city, mechanism):
        model, policy, space = small_city
        session = dphmm.ReleaseSession(model, policy, space, epsilon="0.3", mechanism=mechanism)
        plan = session.plan
        i, j = np.array(list(itertools.product(range(9), repeat=2))).T
        found = losses_between(plan, i, j, 9)
        exact = [plan.mechanism.loss_lattice(plan.image[a] - plan.image[b]) for a, b in zip(i, j, strict=True)]
        assert all(Fraction(f) >= e for f, e in zip(found, exact, strict=True))
        assert found == pytest.approx([float(e) for e in exact], rel=1e-15)
        assert largest_loss(plan) == pytest.approx(float(plan.cost), rel=1e-15)
        leak = policy_leakage(model, [plan] * 4, policy)
        # More than one step loses, and less than four costs: both would show losses of other pairs than these.
        assert 0.3 < leak.worst < 4 * float(plan.cost)
        assert leak.present == pytest.approx(np.full(leak.present.shape, 0.3))

    def test_anything_that_tells_losses_of_pairs_will_do(self, small_city):
        model, policy, _ = small_city

        class Two:
            def loss_between(self, i, j):
                return np.full(len(i), 2.0)

        assert policy_leakage(model, [Two()], policy).worst == 2.0
        assert largest_loss(Two()) == math.inf


def test_levels_are_pairs_reached_by_moving_from_edges():
    moves, _ = walk_of_two()
    structure = MarkovModel(np.full(11, 1 / 11), moves).transition
    level, last = levels(structure, NEIGHBOURS, 2, 10**6)
    assert last == 2 and (level == level.T).all()
    first = {tuple(sorted(e)) for e in NEIGHBOURS.tolist()}
    second = set()
    for i, j in first:
        around = sorted({*np.flatnonzero(moves[i]), *np.flatnonzero(moves[j])})
        second |= {(int(a), int(b)) for a, b in itertools.combinations(around, 2)}
    for i, j in itertools.combinations(range(11), 2):
        expected = 0 if (i, j) in first else 1 if (i, j) in second else None
        assert level[i, j] == expected if expected is not None else level[i, j] in (2, NEVER)
    assert levels(structure, NEIGHBOURS, 5, 12)[1] == 0


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"edges": [(0, 11)]}, "edges"),
        ({"edges": [(3, 3)]}, "edges"),
        ({"edges": [(0.5, 1.0)]}, "edges"),
        ({"edges": [1, 2]}, "edges"),
        ({"plans_or_losses": [np.zeros((3, 3))]}, "losses"),
        ({"plans_or_losses": [-np.ones((11, 11))]}, "losses"),
        ({"plans_or_losses": [np.full((11, 11), math.nan)]}, "losses"),
        ({"plans_or_losses": [np.triu(np.ones((11, 11)))]}, "losses"),
        ({"plans_or_losses": ["plan"]}, "losses"),
        ({"model": np.eye(11)}, "model"),
    ],
)
def test_what_is_wrong_is_named(changes, field):
    moves, stationary = walk_of_two()
    given = {
        "model": MarkovModel(stationary, moves),
        "plans_or_losses": [distances(np.arange(11), 1.0)] * 2,
        "edges": NEIGHBOURS,
    }
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        policy_leakage(**(given | changes))
