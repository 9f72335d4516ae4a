"""The optimal table: what it loses, by enumeration in fractions; that nothing is better; and that it says the truth
about both.

Claims: answers that an edge joins lose at most ε, whatever is named (it would fail for weights rounded the wrong way,
an edge forgotten, rows of different sums); its mean cost is the least there is, to 1e-6, by a dense program without
symmetries; stated losses bound every pair and are not much above; likelihoods, means and describe are those of the
integers; what the order, place or unit of the answers is has no part in it.
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.mechanisms import OptimalTable, table
from dphmm.mechanisms.table_program import optimum
from dphmm.policy import from_edges
from dphmm.policy import radius as within
from dphmm.samplers import ReplayBits
from dphmm.states import StateSpace
from dphmm.states.lattice import Lattice
from naive_table import exp_below, least_mean, worst_ratio

GRID = np.array([(x, y) for y in range(4) for x in range(4)])
TOWNS = np.array([9, 1, 1, 2, 1, 1, 4, 1, 1, 1, 7, 1, 2, 1, 1, 3])
#: Three components: a path, a pair, and one answer alone; places without symmetry.
APART = np.array([(0, 0), (1, 0), (2, 1), (9, 9), (9, 8), (-7, 3)])
APART_EDGES = np.array([(0, 1), (1, 2), (3, 4)])


def grid_table(epsilon, radius=1.5, **options):
    return OptimalTable(GRID, within(GRID, radius).edges(None), epsilon, **options)


answers = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=6, unique=True)


def test_a_prior_that_is_sure_costs_nothing():
    """Everything is named alike. What a solver tolerates is no cost; its own value was 4e-6 here."""
    points = np.array([(0, 0), (0, 1), (0, -1), (0, 2), (1, 0), (-1, 0)])
    edges = [(2, 0), (5, 0), (2, 1)]
    made = OptimalTable(points, edges, Fraction(41, 10), prior=[0, 0, 0, 0, 0, 1])
    squares = np.linalg.norm(points[:, None] - points[None], axis=2) ** 2
    least = least_mean(squares, [0, 0, 0, 0, 0, 1], edges, 4.1)
    assert least <= 1e-9 and 0 <= made.mean_cost <= 1e-9


@settings(max_examples=25)
@given(st.data())
def test_edges_lose_at_most_epsilon_and_the_least_mean_is_reached(data):
    points = np.array(data.draw(answers))
    n = len(points)
    pairs = [(a, b) for a in range(n) for b in range(a)]
    edges = data.draw(st.lists(st.sampled_from(pairs), max_size=8, unique=True))
    prior = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any))
    epsilon = data.draw(st.fractions(Fraction(1, 10), 6, max_denominator=10))
    loss = data.draw(st.sampled_from(table.LOSSES))
    made = OptimalTable(points, np.array(edges).reshape(-1, 2), epsilon, loss, prior=prior)
    most = exp_below(epsilon)
    assert all(worst_ratio(made, points[a], points[b]) <= most for a, b in edges)
    lengths = np.linalg.norm(points[:, None] - points[None], axis=2) ** (2 if loss == "squared" else 1)
    least = least_mean(lengths, prior, edges, float(epsilon))
    assert least - 1e-9 <= made.mean_cost <= least + 1e-6 * max(1.0, lengths.max())


def test_wide_sets_reach_the_program_s_value_too():
    """A long path, costs squared: a share of a millionth for a row of all answers would cost a thousandth here."""
    rng = np.random.default_rng(1)
    line = np.cumsum(rng.integers(1, 4, 60))[:, None]
    made = OptimalTable(line, np.stack([np.arange(59), np.arange(1, 60)], axis=1), 4, prior=rng.random(60))
    assert made.mean_cost == pytest.approx(made.optimum.value, rel=1e-6)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3", "4"])
@pytest.mark.parametrize("prior", [None, TOWNS])
def test_the_program_s_value_is_reached(epsilon, prior):
    made = grid_table(epsilon, 2.3, loss="euclidean", prior=prior)
    whole = optimum(made._problem, float(made.epsilon))
    assert whole.bound == pytest.approx(whole.value, abs=1e-9)
    # The table is solved for a little less than ε, and its bound is for ε.
    assert whole.value - 1e-6 <= made.optimum.bound <= whole.value + 1e-10
    assert whole.value - 1e-9 <= made.mean_cost <= made.optimum.value + 1e-6


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**20), Fraction(1, 1000), 11, 12, 13, 40, 200])
def test_the_ends_of_the_range_of_epsilon(epsilon):
    """Tiny: hardly anything depends on the truth. Huge: the truth, but for e^-ε for each neighbour."""
    made = grid_table(epsilon)
    edges = within(GRID, 1.5).edges(None)
    assert all(worst_ratio(made, GRID[a], GRID[b]) <= exp_below(Fraction(epsilon)) for a, b in edges.tolist())
    shares = made.law.probabilities
    if epsilon < 1:
        assert np.ptp(shares, axis=0).max() <= 16 * float(epsilon)
        return
    neighbours = np.bincount(edges.ravel(), minlength=16)
    hidden = [1 - Fraction(made.law.weights[i][i], 2**made.law.bits) for i in range(16)]
    least = exp_below(Fraction(epsilon)) ** -1
    order = [tuple(p) for p in made.law.points.tolist()]
    for number, point in enumerate(GRID.tolist()):
        share = hidden[order.index(tuple(point))]
        assert (
            neighbours[number] * least * Fraction(99, 100) <= share <= neighbours[number] * least * Fraction(102, 100)
        )


def test_answers_that_no_edges_connect_may_lose_much_more_and_that_is_stated():
    made = OptimalTable(APART, APART_EDGES, 1)
    assert worst_ratio(made, APART[0], APART[3]) > exp_below(20)
    assert made.largest_loss > 20
    assert int(min(min(row) for row in made.law.weights.tolist())) >= 1
    alone = made.law.numbers(APART[5:])[0]
    assert made.law.probabilities[alone, alone] > 1 - 1e-8


@pytest.mark.parametrize("make", [lambda: OptimalTable(APART, APART_EDGES, 2), lambda: grid_table(1, prior=TOWNS)])
def test_stated_losses_bound_every_pair_and_are_reached(make):
    made = make()
    points = made.law.points
    far = Fraction(1)
    for v in {tuple(b - a) for a in points for b in points}:
        pairs = [(a, a + v) for a in points if made.law.numbers((a + v)[None])[0] >= 0]
        worst = max(worst_ratio(made, a, b) for a, b in pairs)
        stated = made.loss_lattice(v)
        assert worst <= exp_below(stated) * (1 + Fraction(1, 10**30))
        assert worst >= exp_below(max(Fraction(0), stated - Fraction(1, 2**30)))
        assert made.loss(np.array(v, dtype=float)) == float(stated)
        far = max(far, worst)
    assert exp_below(made.largest_loss - Fraction(1, 2**30)) <= far <= exp_below(made.largest_loss)
    assert made.loss_lattice((0, 0)) == 0 and made.loss_lattice((77, 0)) == math.inf
    assert made.loss((0.5, 0.0)) == math.inf


def test_the_loss_of_edges_is_stated_as_epsilon_at_most():
    edges = np.array([(0, 1)])
    made = OptimalTable([[0], [3]], edges, "0.7")
    assert Fraction(7, 10) - Fraction(1, 2**20) < made.loss_lattice([3]) <= Fraction(7, 10)
    huge = OptimalTable([[0], [3]], edges, 40)
    assert huge.loss_lattice([3]) == huge.loss_lattice([-3]) == 40


def test_two_answers_are_randomised_response():
    made = OptimalTable([[0], [3]], [[0, 1]], Fraction(1))
    e = math.e
    np.testing.assert_allclose(
        made.law.probabilities, [[e / (e + 1), 1 / (e + 1)], [1 / (e + 1), e / (e + 1)]], rtol=1e-8
    )
    assert made.expected_error == pytest.approx(9 / (e + 1), rel=1e-8)


@pytest.mark.replayed_words
def test_one_answer_is_told():
    made = OptimalTable([[4, 5]], [], 1)
    assert made.sample((4, 5)).tolist() == [4, 5] and made.largest_loss == 0
    assert made.law.weights.tolist() == [[2**made.law.bits]]


def test_likelihoods_are_the_integers():
    made = grid_table(2, prior=TOWNS)
    law = made.law
    for z in law.points[[0, 5, 15]]:
        logs = made.log_likelihood_lattice(z, GRID)
        column = law.numbers(z[None])[0]
        rows = law.numbers(GRID)
        meant = [math.log(Fraction(law.weights[row][column], 2**law.bits)) for row in rows]
        np.testing.assert_allclose(logs, meant, rtol=1e-12)
        np.testing.assert_array_equal(made.log_likelihood(z.astype(float), GRID.astype(float)), logs)
    assert (made.log_likelihood_lattice(np.array([4, 0]), GRID) == -np.inf).all()
    total = sum(np.exp(made.log_likelihood_lattice(z, GRID)) for z in law.points)
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)


def test_means_are_those_of_the_law():
    made = grid_table(1, prior=TOWNS, frame=Lattice(np.array([2.0, 5.0]), np.zeros(2)))
    shares, rows = made.law.probabilities, made.law.numbers(GRID)
    total = sum(
        TOWNS[s] / TOWNS.sum() * shares[rows[s], rows[z]] * float((((GRID[z] - GRID[s]) * [2, 5]) ** 2).sum())
        for s in range(16)
        for z in range(16)
    )
    assert made.expected_error == pytest.approx(total, rel=1e-12) == made.mean_cost


def test_order_and_place_of_the_answers_have_no_part_in_it():
    rng = np.random.default_rng(3)
    edges = within(GRID, 1.5).edges(None)
    first = OptimalTable(GRID, edges, 2, prior=TOWNS)
    order = rng.permutation(16)
    turned = np.argsort(order)[edges][rng.permutation(len(edges))][:, ::-1]
    table._cache.clear()
    other = OptimalTable(
        GRID[order] + np.array([1000, -70]), np.vstack([turned, turned[:3, ::-1]]), 2, prior=TOWNS[order]
    )
    assert other.describe() == first.describe()
    assert (other.law.weights == first.law.weights).all()
    np.testing.assert_array_equal(other.law.points, first.law.points + np.array([1000, -70]))
    # What is described is what is drawn from.
    assert grid_table(2, prior=TOWNS[::-1]).describe() != first.describe()
    assert grid_table(2).describe()["prior"] == "uniform"


def test_units_of_the_costs_have_no_part_in_it():
    """A solver's tolerances are absolute: kilometres and micrometres must give the same table."""
    made = [
        grid_table(2, prior=TOWNS, frame=Lattice(np.full(2, pitch), np.zeros(2))) for pitch in (1.0, 2.0**-40, 2.0**40)
    ]
    for other in made[1:]:
        np.testing.assert_allclose(other.law.probabilities, made[0].law.probabilities, atol=1e-9)


def test_costs_of_ones_own_decide_what_is_least():
    costs = 1.0 - np.eye(16)
    made = grid_table(1, costs=costs, prior=TOWNS)
    edges = within(GRID, 1.5).edges(None).tolist()
    assert made.mean_cost == pytest.approx(least_mean(costs, TOWNS.tolist(), edges, 1.0), abs=1e-6)
    assert made.describe()["loss"] == "custom"


def test_a_motion_that_changes_the_policy_the_prior_or_the_costs_ties_nothing():
    edges = within(GRID, 1.5).edges(None)
    whole = OptimalTable(GRID, edges, 2)._problem
    assert len(whole.motions) == 8
    assert len(OptimalTable(GRID, edges[1:], 2)._problem.motions) < 8
    assert len(OptimalTable(GRID, edges, 2, prior=TOWNS)._problem.motions) == 1
    assert len(OptimalTable(GRID, edges, 2, frame=Lattice(np.array([1.0, 2.0]), np.zeros(2)))._problem.motions) == 4


def test_states_of_a_policy_and_equal_answers():
    space = StateSpace(np.array([[0.0], [10.0], [10.0], [20.0], [30.0]]), pitch=10.0)
    policy = from_edges([(0, 1), (1, 2), (2, 3), (3, 4)], 5)
    made = OptimalTable.for_policy(policy, space, 1, prior=[1, 2, 3, 4, 5], constraint=[0, 1, 2, 3])
    plain = OptimalTable([[0], [1], [2]], [(0, 1), (1, 2)], 1, prior=[1, 5, 4], frame=space.frame)
    assert made.describe() == plain.describe()
    assert set(made.sample(np.array([[0.0], [20.0]]), ReplayBits(1)).ravel().tolist()) <= {0.0, 10.0, 20.0}
    with pytest.raises(InvalidInput, match="policy, space"):
        OptimalTable.for_policy(from_edges([(0, 1)], 2), space, 1)


def test_three_axes_and_more():
    for d in (3, 4):
        points = np.vstack([np.zeros(d, dtype=int), np.eye(d, dtype=int), -np.eye(d, dtype=int)])
        edges = [(0, i) for i in range(1, len(points))]
        made = OptimalTable(points, edges, 2)
        assert all(worst_ratio(made, points[a], points[b]) <= exp_below(2) for a, b in edges)
        distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
        assert made.mean_cost == pytest.approx(least_mean(distances, [1] * len(points), edges, 2.0), abs=1e-6)


def test_answers_that_are_far_apart_are_found():
    points = np.array([(2**50, -(2**50)), (-(2**50), 2**50), (0, 0)])
    made = OptimalTable(points, [(0, 2), (1, 2)], 1)
    assert sorted(made.law.numbers(points).tolist()) == [0, 1, 2]
    assert made.law.numbers(points + np.array([1, 0])).tolist() == [-1, -1, -1]


def test_threads_make_one_table():
    table._cache.clear()
    found = []
    threads = [threading.Thread(target=lambda: found.append(grid_table(2).law.digest)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and len(found) == 6


def test_the_last_tables_are_kept_and_no_more(monkeypatch):
    monkeypatch.setattr(table._cache, "most", 2)
    table._cache.clear()
    for epsilon in (1, 2, 1, 3):
        OptimalTable([[0], [1]], [(0, 1)], epsilon)
    assert len(table._cache) == 2
    monkeypatch.setattr(table, "optimum", None)
    assert OptimalTable([[0], [1]], [(0, 1)], 1).epsilon == 1
    with pytest.raises(TypeError):
        OptimalTable([[0], [1]], [(0, 1)], 2)


ONE = {"answers": [[0], [1]], "edges": [(0, 1)], "epsilon": 1}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"answers": [0, 1]}, r"answers: got shape \(2,\)"),
        ({"answers": np.zeros((0, 2), dtype=int)}, "at least one answer"),
        ({"answers": [[0.5], [1.0]]}, "answers: got dtype float64"),
        ({"answers": [[1], [1]]}, "the same answer twice"),
        ({"answers": [[0], [2**60]]}, "a point too far away"),
        ({"edges": [(0, 2)]}, "edges: got a row that is not there"),
        ({"edges": [(-1, 1)]}, "edges: got a row that is not there"),
        ({"edges": [(0.0, 1.0)]}, "edges: got shape"),
        ({"edges": [(1, 1)]}, "an edge from an answer to itself"),
        ({"edges": [0, 1]}, "edges: got shape"),
        ({"epsilon": 0}, "epsilon"),
        ({"loss": "absolute"}, "loss"),
        ({"prior": [1.0]}, "prior: got shape"),
        ({"prior": [1.0, -1.0]}, "prior: got NaN"),
        ({"prior": [1.0, math.nan]}, "prior: got NaN"),
        ({"prior": [0.0, 0.0]}, "prior: got weights with the sum 0"),
        ({"prior": ["a", "b"]}, "prior: got list"),
        ({"costs": np.ones(2)}, "costs: got shape"),
        ({"costs": -np.ones((2, 2))}, "costs: got NaN"),
        ({"frame": Lattice.unit(2)}, "frame: got 2 axes"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(wrong, told):
    with pytest.raises(InvalidInput, match=told) as caught:
        OptimalTable(**{**ONE, **wrong})
    assert "\n" not in str(caught.value)


def test_what_is_too_large_is_refused_at_once(monkeypatch):
    """Before a program is made, and before symmetries are looked for where no number of them would do."""
    monkeypatch.setattr(table, "optimum", None)
    with pytest.raises(InvalidInput, match="answers: got 401 answers; expected at most 400"):
        OptimalTable(np.arange(401)[:, None], [(0, 1)], 1)
    line = np.arange(300)[:, None]
    near = within(line, 30).edges(None)
    with pytest.raises(InvalidInput, match=rf"answers: got 300 answers and {len(near)} edges; .*another mechanism"):
        OptimalTable(line, near, 1)
    long = np.arange(244)[:, None] ** 2
    with pytest.raises(
        InvalidInput, match="got 244 answers and 243 edges; expected a program of 120000 rows and 20000"
    ):
        OptimalTable(long, np.stack([np.arange(243), np.arange(1, 244)], axis=1), 1)
    every = np.stack(np.triu_indices(300, 1), axis=1)
    with pytest.raises(InvalidInput, match="answers: got 300 answers and 44850 edges; expected answers times edges"):
        OptimalTable(line, every, 20)
    space = StateSpace(np.arange(3600.0)[:, None])
    with pytest.raises(InvalidInput, match="3600 answers"):
        OptimalTable.for_policy(within(space, 50), space, 1)


def test_an_answer_without_a_row_is_refused_and_not_named():
    made = grid_table(1)
    for ask in (lambda: made.sample((77.0, 0.0)), lambda: made.log_likelihood((0.0, 0.0), [(77.0, 0.0)])):
        with pytest.raises(InvalidInput, match="answers: got one that the table has no row for") as caught:
            ask()
        assert "77" not in str(caught.value)
