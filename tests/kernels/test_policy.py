"""The compiled loops of planning say what their plain twins say: degrees, cliques, extents, masses, likelihoods.

Each could fail by a sum that overflows, a corner that is left out, a state that is counted twice or not at all, a
surrogate that maps two members of a clique to one, or a cap that an edge passes at one end alone.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import dphmm
from dphmm._kernels import policy
from dphmm._kernels.filter import TABLE, as_released, facets_of
from dphmm._kernels.points import extents, outermost
from dphmm._kernels.policy import EMPTY, contract_cliques, heaviest, holding, runs_of_rows, total_mass, widen_by_cliques
from dphmm.policy.constraint import delta_states
from dphmm.sensitivity import exact_hull
from dphmm.sensitivity import hull as hulls
from dphmm.session.options import Options
from dphmm.session.plan import Likelihood
from dphmm.session.planner import Planner
from dphmm.types import FloatLaw
from random_seeds import seeds


@seeds(20)
def test_plan_states_and_others_are_those_of_the_masks(seed):
    rng = np.random.default_rng(seed)
    support, plan = rng.random(9) < 0.6, rng.random(9) < 0.5
    states, others, impossible = policy.planned(support, plan)
    assert states.tolist() == np.flatnonzero(plan).tolist()
    assert others == bool((support & ~plan).any())
    assert impossible == next((state for state in range(9) if plan[state] and not support[state]), -1)


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_an_edge_counts_while_both_ends_have_room(cap):
    rng = np.random.default_rng(cap)
    n, first, second = 6, rng.integers(0, 6, 20), rng.integers(0, 6, 20)
    second = np.where(second == first, (second + 1) % n, second)
    order, degrees = rng.permutation(20), np.zeros(n, dtype=np.int64)
    for part in (order[:7], order[7:]):
        policy.capped_degrees(first, second, part, cap, degrees)
    expected = [0] * n
    for at in order:
        if expected[first[at]] < cap and expected[second[at]] < cap:
            expected[first[at]] += 1
            expected[second[at]] += 1
    assert degrees.tolist() == expected


STRIDE, MARGIN = 40, 200
#: One offset of each pair ±: east, north, north-east, two to the west and one to the north.
OFFSETS = ((1, 0), (0, 1), (1, 1), (-2, 1))
DELTAS = np.array([x + STRIDE * y for x, y in OFFSETS])


def world(seed, dense):
    """Some cells of a grid in order, which of them are active, and their number by linear index."""
    rng = np.random.default_rng(seed)
    places = [(x, y) for y in range(5) for x in range(6) if rng.random() < 0.7]
    linear = np.array([MARGIN + x + STRIDE * y for x, y in places])
    table = np.zeros(0, dtype=np.int64)
    if dense:
        table = np.full(MARGIN + 6 * STRIDE + MARGIN, -1)
        table[linear] = np.arange(len(linear))
    return rng, places, linear, rng.random(len(linear)) < 0.8, table


def beside(places, active):
    """The pairs of active cells that an offset joins: (cell, other, number of the offset)."""
    number = {place: k for k, place in enumerate(places)}
    for k, (x, y) in enumerate(places):
        for d, (dx, dy) in enumerate(OFFSETS):
            other = number.get((x + dx, y + dy), -1)
            if other >= 0 and active[k] and active[other]:
                yield k, other, d


worlds = pytest.mark.parametrize("dense", [True, False], ids=["table", "bisection"])


@worlds
@seeds(12)
def test_the_widest_pair_is_the_widest_of_all(seed, dense):
    rng, places, linear, active, table = world(seed, dense)
    low = rng.integers(-9, 9, len(places))
    high = low + rng.integers(0, 4, len(places))
    one, other = policy.widest_pair(linear, active, DELTAS, table, low, high)
    pairs = {(k, k) for k in np.flatnonzero(active).tolist()}
    pairs |= {pair for a, b, _ in beside(places, active) for pair in ((a, b), (b, a))}
    assert (one, other) in pairs
    assert high[one] - low[other] == max(high[a] - low[b] for a, b in pairs)


@worlds
@seeds(12)
def test_linked_cells_have_another_surrogate_in_them_or_beside_them(seed, dense):
    rng, places, linear, active, table = world(seed, dense)
    images = [sorted(rng.integers(0, 3, rng.integers(1, 3)).tolist()) for _ in places]
    least, most = np.array([row[0] for row in images]), np.array([row[-1] for row in images])
    linked = [bool(active[k]) and least[k] != most[k] for k in range(len(places))]
    for a, b, _ in beside(places, active):
        if len({least[a], most[a], least[b], most[b]}) > 1:
            linked[a] = linked[b] = True
    assert policy.linked_cells(linear, active, DELTAS, table, least, most).tolist() == linked


@worlds
@seeds(12)
def test_images_are_linked_where_a_state_has_another_image_beside_it(seed, dense):
    rng, places, linear, support, table = world(seed, dense)
    n = len(places)
    plan = np.flatnonzero(support)[::2]
    surrogate = plan[rng.integers(0, len(plan), n)]
    surrogate[plan] = plan
    each = np.arange(n)
    linked = np.zeros(n, dtype=bool)
    for a, b, _ in beside(places, support):
        if surrogate[a] != surrogate[b]:
            linked[surrogate[a]] = linked[surrogate[b]] = True
    found = policy.linked_images(linear, each, each, DELTAS, table, support, surrogate, plan)
    assert found.tolist() == linked.tolist()


def test_points_are_translated_by_one_vector_or_not():
    points = np.array([[0, 0], [1, 3], [2, 1]])
    assert policy.translated(points, points + np.array([5, -2]))
    assert not policy.translated(points, points + np.array([[5, -2], [5, -2], [5, -1]]))


@pytest.mark.parametrize("reach", [3, 40, 2**14 - 1])
def test_moments_of_a_polygon_are_those_of_its_triangles(reach):
    rng = np.random.default_rng(reach)
    for _ in range(20):
        points = rng.integers(-reach, reach + 1, (12, 2))
        points[0] = (reach, 1 - reach)
        hull = dphmm.sensitivity.sensitivity_hull(
            dphmm.policy.from_edges([(0, i) for i in range(1, 13)], 13), np.vstack([0 * points[:1], points])
        )
        if hull.rank < 2:
            continue
        total, weight = exact_hull._sums(hull.body)
        assert exact_hull.planar_sums(hull.body) == ((total[0][0], total[0][1], total[1][1]), weight)
        assert hull.mean_square == pytest.approx(float(hull.squared_size), rel=1e-14)
        assert exact_hull.second_moment(hull.body)[0][1] == Fraction(total[0][1], 12 * weight)
        assert exact_hull.volume(hull.body) == Fraction(weight, 2)


def test_far_corners_are_summed_in_python_integers():
    square = 2**27 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    body = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(4), square).body
    assert exact_hull.volume(body) == 2**56
    assert exact_hull.second_moment(body) == [[Fraction(2**54, 3), 0], [0, Fraction(2**54, 3)]]


@seeds(20)
def test_extents_are_those_of_all_points(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 300)), int(rng.integers(1, 4))
    points, directions = rng.integers(-30, 30, (n, d)), rng.integers(-9, 10, (5, d))
    expected = np.ptp(points @ directions.T, axis=0).tolist()
    assert hulls._extents(points, directions) == expected
    assert hulls._extents(points * 2**40, directions) == [x * 2**40 for x in expected]


def test_extents_beyond_64_bits_are_left_to_python_integers():
    points, directions = np.array([[2**60, -(2**60)], [0, 2**60]]), np.array([[3, -5], [1, 1]])
    assert len(extents(points, directions)) == 0
    assert hulls._extents(points, directions) == [13 * 2**60, 2**60]
    assert extents(points // 2**10, directions).tolist() == [13 * 2**50, 2**50]


@seeds(20)
def test_columns_hold_the_differences_of_every_clique(seed):
    """Rows repeated, moved, grown and cut: a row taken for the one before it would lose its own differences."""
    rng = np.random.default_rng(seed)
    y, x = np.divmod(np.arange(400), 20)
    lattice = np.stack([x, y], axis=1)
    row, rows = rng.choice(400, 3, replace=False), []
    for _ in range(12):
        change = int(rng.integers(5))
        size = int(rng.integers(2, 16)) if change == 0 else len(row)
        row = rng.choice(400, size, replace=False) if change == 0 else (row + change) % 400
        rows.append(np.append(row, rng.integers(400)) if change == 1 and len(row) < 16 else row[: max(2, len(row) - 1)])
    ptr = np.cumsum([0, *map(len, rows)])
    low, high = np.full(20, EMPTY), np.full(20, -EMPTY)
    assert widen_by_cliques(ptr, np.concatenate(rows), lattice, 0, low, high)
    expected = {}
    for members in rows:
        for a in members:
            for b in members:
                dx, dy = (lattice[b] - lattice[a]).tolist()
                if dx > 0 or (dx == 0 and dy > 0):
                    expected.setdefault(dx, []).append(dy)
    for dx, dys in expected.items():
        assert (low[dx], high[dx]) == (min(dys), max(dys))
    assert np.flatnonzero(low <= high).tolist() == sorted(expected)


def test_a_row_is_not_taken_for_what_two_rows_before_it_left_behind():
    """The third row begins as the second one, and ends as the first: the two ends differ in no row before."""
    lattice = np.array([[0, 0], [1, 0], [3, 0], [0, 2]])
    rows = [[0, 1, 2], [0, 3], [0, 3, 2]]
    low, high = np.full(4, EMPTY), np.full(4, -EMPTY)
    assert widen_by_cliques(np.array([0, 3, 5, 8]), np.concatenate(rows), lattice, 0, low, high)
    assert low[3] == -2


@seeds(20)
def test_contracted_cliques_are_the_surrogates_of_their_possible_members(seed):
    """Rows of numbers side by side and far apart, and repeated ones, of which the first of each stretch is enough."""
    rng = np.random.default_rng(seed)
    n, rows = 30, []
    for _ in range(40):
        start, size = int(rng.integers(n - 5)), int(rng.integers(0, 6))
        run, scattered = np.arange(start, start + size), rng.choice(n, size, replace=False)
        rows.append(rows[-1] if rows and rng.random() < 0.2 else [run, np.sort(scattered), scattered][rng.integers(3)])
    support, surrogate = rng.random(n) < 0.7, rng.integers(0, int(rng.choice([1, 2, 5])), n)
    surrogate = np.sort(surrogate) if rng.random() < 0.5 else surrogate
    surrogate[~support] = -1
    runs = runs_of_rows(np.cumsum([0, *map(len, rows)]), np.concatenate(rows))
    assert [list(range(a, b + 1)) for a, b in zip(*runs[1:], strict=True)] == _runs(rows)
    ptr, members = contract_cliques(*runs, sum(map(len, rows)), support, surrogate)
    kept = [list(dict.fromkeys(surrogate[row[support[row]]].tolist())) for row in rows]
    several = [row for row in kept if len(row) > 1]
    expected = [row for row, before in zip(several, [[], *several], strict=False) if row != before]
    assert [members[a:b].tolist() for a, b in pairwise(ptr)] == expected


def _runs(rows):
    """Successive numbers of a row, one list for each run."""
    found = []
    for row in rows:
        for k, member in enumerate(row.tolist()):
            if k == 0 or member != row[k - 1] + 1:
                found.append([])
            found[-1].append(member)
    return found


def test_corners_are_fewer_than_the_points_of_a_grid():
    y, x = np.divmod(np.arange(900), 30)
    assert len(outermost(np.stack([x, y], axis=1), 0, 30)) == 60


def test_masses_of_impossible_states_are_not_looked_at():
    masses, within = np.array([0.5, np.nan, 0.25, -1.0]), np.array([True, False, True, False])
    assert total_mass(masses, within) == (0.75, 2)
    assert np.isnan(total_mass(masses, np.ones(4, dtype=np.bool_))[0])
    equal = np.full(4, 0.25)
    assert heaviest(equal, np.array([False, True, True, True]), 0.25, 2, 1e-12).tolist() == [False, True, True, False]
    assert heaviest(np.array([0.1, 0.2, 0.4, 0.2]), within | True, 0.2, 2, 1e-12).tolist() == [False, True, True, False]


@seeds(40)
def test_the_fewest_masses_that_hold_enough_are_those_of_a_sorted_sum(seed):
    """Many equal masses, few different ones, and thresholds that lie on a sum exactly: those are left to exact sums."""
    rng = np.random.default_rng(seed)
    masses = rng.integers(1, int(rng.choice([2, 5, 10**6])), int(rng.integers(1, 200))).astype(np.float64)
    sums = np.cumsum(np.sort(masses)[::-1])
    for enough in (*rng.uniform(0, sums[-1] + 1, 20), *rng.choice(sums, 3)):
        least, count = holding(masses.copy(), float(enough), 0.25)
        if min(enough, np.abs(sums - enough).min()) <= 0.25 or enough > sums[-1]:
            assert count == 0 or (count == np.searchsorted(sums, enough) + 1 and abs(sums[count - 1] - enough) > 0.25)
        else:
            assert count == np.searchsorted(sums, enough) + 1
            assert least == np.sort(masses)[::-1][count - 1]


def test_a_sum_next_to_the_threshold_is_left_open():
    assert holding(np.array([4.0, 3.0, 2.0, 1.0]), 7.0, 1e-9) == (0.0, 0)
    assert holding(np.array([4.0, 3.0, 2.0, 1.0]), 7.0 - 1e-8, 1e-9) == (3.0, 2)
    assert holding(np.array([4.0, 3.0, 2.0, 1.0]), 11.0, 1e-9) == (0.0, 0)


def test_bad_pivots_leave_the_rest_to_be_sorted(monkeypatch):
    """However masses are arranged the search ends after so many pivots, and the δ-set is that of sorted masses."""
    monkeypatch.setattr(policy, "MOST_PIVOTS", 2)
    assert holding.py_func(np.arange(1.0, 200.0), 15_000.0, 1e-9) == (0.0, 0)
    monkeypatch.setattr(policy, "least_of_fewest", lambda *_: (0.0, 0))
    prior = np.random.default_rng(1).random(300)
    prior /= prior.sum()
    chosen = delta_states(prior, None, 0.1)
    least = prior[chosen].min()
    assert prior[~chosen].max() < least
    assert prior[chosen].sum() >= 0.9 > prior[chosen].sum() - least


def test_values_of_plan_states_are_those_of_whom_they_stand_for():
    surrogate = np.array([1, 1, 4, 4, 4, 1])
    assert as_released(np.array([0.5, 2.0]), np.array([1, 4]), surrogate).tolist() == [0.5, 0.5, 2.0, 2.0, 2.0, 0.5]


@pytest.mark.parametrize("mechanism", ["staircase", "discrete-knorm"])
def test_states_are_as_likely_as_the_plan_state_they_are_released_as(mechanism):
    y, x = np.divmod(np.arange(64), 8)
    space = dphmm.StateSpace(np.stack([x, y], axis=1))
    options = Options.checked(1, constraint="delta=0.1", mechanism=mechanism, protection="nearest", start="before")
    planner = Planner(dphmm.policy.complete(64), space, options)
    support = np.ones(64, dtype=np.bool_)
    plan = planner.plan(support, (x < 4) & (y < 3))
    z = np.array([9, -2])
    law = Likelihood.of(plan)
    assert law.columns.shape[1] == 12
    assert np.allclose(np.log(law.at(z)), plan.log_likelihood(z), rtol=0, atol=1e-12)
    whole = Likelihood.of(planner.plan(support, support))
    assert whole.contracted is None and whole.columns.shape[1] == 64


def test_a_policy_of_many_places_in_a_large_clique_keeps_to_its_rows():
    """Rows of more members than are paired one by one, far from the first column of the answers."""
    y, x = np.divmod(np.arange(1600), 40)
    labels = x // 10 + 4 * (y // 10)
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.categorical(labels), np.stack([x + 1000, y], axis=1))
    assert sorted(map(tuple, hull.vertices.tolist())) == [(-9, -9), (-9, 9), (9, -9), (9, 9)]


def test_no_surroundings_are_taken_for_those_of_another_space():
    plan = np.array([True, False, False, True])
    near = dphmm.StateSpace(np.array([[0], [1], [2], [9]]))
    far = dphmm.StateSpace(np.array([[0], [6], [7], [9]]))
    support = np.ones(4, dtype=np.bool_)
    found = [dphmm.policy.Constraint.surrogated(support, plan, space).surrogate.tolist() for space in (near, far, near)]
    assert found == [[0, 0, 0, 3], [0, 3, 3, 3], [0, 0, 0, 3]]


@pytest.mark.parametrize("m", [1, 6])
def test_facets_in_floats_are_quotients_of_their_integers(m):
    rng = np.random.default_rng(m)
    normals, offsets = rng.integers(-(2**20), 2**20, (m, 3)), rng.integers(1, 2**40, m)
    allowances = rng.integers(0, offsets)
    facets, longest, largest = facets_of(FloatLaw(normals, offsets, allowances, TABLE, 1.0, np.zeros(1)))
    assert facets.normals.dtype == np.float64 and facets.normals.tolist() == normals.tolist()
    assert facets.inverses.tolist() == [1.0 / b for b in offsets.tolist()]
    assert facets.shifts.tolist() == [(b - 1.0 - a) / b for a, b in np.stack([allowances, offsets]).T.tolist()]
    assert (longest, largest) == (np.abs(normals).sum(axis=1).max(), offsets.max())
    flush = FloatLaw(normals, offsets, offsets - 1, TABLE, 1.0, np.zeros(1))
    assert facets_of(flush)[0].shifts.tolist() == [0.0] * m
