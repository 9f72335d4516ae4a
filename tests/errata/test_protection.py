"""Errata of the DPHMM paper about hulls, exposure and joins (2, 3, 5, 6, 7, 13, 14, 15, 18, 22, 23, 24).

Exact, on the papers' running example, with the brute-force twins of naive.py; states are numbered from 0.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

import dphmm
import naive
from dphmm.sensitivity import PolicyDifferences, hull_of
from dphmm.states.lattice import Lattice
from running_example import ANSWERS, EDGES_3B

S1, S2, S3, S4, S5, S6 = range(6)
EXAMPLE_6_1 = [S3, S4, S5, S6]


def within(edges, states):
    return [(a, b) for a, b in edges if a in states and b in states]


def hull_points(states, *joins):
    return naive.differences([*within(EDGES_3B, states), *joins], ANSWERS)


def norm(points, a, b):
    return naive.gauge(points, tuple(ANSWERS[b] - ANSWERS[a]))


def degrees(points, states):
    return dict(zip(states, naive.degree(points, ANSWERS, states), strict=True))


def test_erratum_02_laplace_protects_a_state_of_degree_one():
    points = hull_points(EXAMPLE_6_1)
    assert degrees(points, EXAMPLE_6_1)[S3] == 1
    sensitivity = max(abs(x) + abs(y) for x, y in points)
    losses = [Fraction(int(np.abs(ANSWERS[s] - ANSWERS[S3]).sum()), sensitivity) for s in (S4, S5, S6)]
    assert losses == [Fraction(4, 5), Fraction(3, 5), Fraction(4, 5)]


def test_erratum_03_the_least_volume_errs_most():
    found = [hull_points(EXAMPLE_6_1, (S3, partner)) for partner in (S4, S5, S6)]
    assert [naive.area(points) for points in found] == [14, 16, 20]
    assert [12 * naive.second_moment(points) for points in found] == [54, 47, 50]


def test_erratum_05_a_better_informed_adversary_exposes_states():
    points = hull_points(range(6))
    assert norm(points, S1, S5) == 2
    failing = 0
    subsets = [c for size in range(2, 6) for c in itertools.combinations(range(6), size)]
    for known in subsets:
        alone = [s for s in known if not any(s in edge for edge in within(EDGES_3B, known))]
        partnered = [any(norm(points, s, o) <= 1 for o in known if o != s) for s in alone]
        failing += not all(partnered)
        # Policy edges inside the adversary's set keep ε whatever else is known.
        assert all(norm(points, a, b) <= 1 for a, b in within(EDGES_3B, known))
    assert (len(subsets), failing) == (56, 12)


def printed_area(points):
    """Line 8 of Algorithm 3, over clockwise corners: the sum of det(v_i, v_{i+1})."""
    corners = naive._corners(sorted(points))[::-1]
    return sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(corners, corners[1:] + corners[:1], strict=True))


def test_erratum_06_the_printed_area_chooses_the_largest_hull():
    found = {partner: hull_points(EXAMPLE_6_1, (S3, partner)) for partner in (S4, S5, S6)}
    sums = {partner: printed_area(points) for partner, points in found.items()}
    assert sums == {S4: -28, S5: -32, S6: -40}
    assert min(sums, key=sums.get) == S6 == max(found, key=lambda partner: naive.area(found[partner]))
    assert all(abs(Fraction(total, 2)) == naive.area(found[partner]) for partner, total in sums.items())


def test_erratum_07_the_nearest_state_of_all_is_the_state_itself():
    literal = min(EXAMPLE_6_1, key=lambda s: naive.distance2(ANSWERS, S3, s))
    assert literal == S3
    assert degrees(hull_points(EXAMPLE_6_1, (S3, literal)), EXAMPLE_6_1)[S3] == 1
    assert naive.algorithm_1(EDGES_3B, ANSWERS, EXAMPLE_6_1, recheck=True) == [(S3, S5)]


def test_erratum_13_without_edges_the_hull_is_a_convention():
    # conv(∅) is empty and contains not even 0: no degree would be 1. Here it is {0}.
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([], 6), ANSWERS)
    assert hull.rank == 0 and hull.contains([0, 0]) and not hull.contains([1, 0])
    assert dphmm.sensitivity.degree_of_protection(hull, ANSWERS).tolist() == [1] * 6


class Counted:
    """A support function that counts how often it is asked."""

    def __init__(self, source):
        self.source, self.dimension, self.asked = source, source.dimension, 0

    def extreme(self, direction):
        self.asked += 1
        return self.source.extreme(direction)

    def few(self):
        """No short cut: everything is asked."""


def test_erratum_14_differences_questions_and_partners_are_fewer_than_said():
    rng = np.random.default_rng(14)
    answers = rng.integers(-99, 99, (60, 2))
    policy = dphmm.policy.complete(60)
    edges = policy.edges()
    # At most two differences for each of m edges, not m².
    assert len(naive.differences(edges, answers)) <= 2 * len(edges)
    source = Counted(PolicyDifferences.of(policy, answers, dphmm.policy.Constraint.of(None, 60)))
    hull = hull_of(source, Lattice(np.ones(2), np.zeros(2)))
    # A planar hull takes about two questions for each pair of facets, however many edges there are.
    assert source.asked <= 4 * len(hull.normals) + 8
    # Footnote 6 allows 2m partners; without edges that is none, but |C| - 1 can be chosen.
    assert len(naive.algorithm_1([], ANSWERS, [S1, S2, S3], recheck=False)) == 3


def test_erratum_15_the_loop_is_not_settled_by_the_text():
    answers = np.array([(0, 9), (1, 7), (1, 4), (5, 2), (1, 1), (7, 8)])
    edges = [(2, 5), (0, 1)]

    def area_after(order):
        joins = []
        for state in order:
            points = naive.differences([*edges, *joins], answers)
            if naive.degree(points, answers, range(6))[state] == 1:
                others = [o for o in range(6) if o != state]
                joins.append((state, min(others, key=lambda o: (naive.distance2(answers, state, o), o))))
        return naive.area(naive.differences([*edges, *joins], answers))

    assert (area_after([3, 4]), area_after([4, 3])) == (35, 40)
    states = [S1, S3, S4, S5]
    assert naive.algorithm_1(EDGES_3B, ANSWERS, states, recheck=False) == [(S1, S4), (S3, S1)]
    assert naive.algorithm_1(EDGES_3B, ANSWERS, states, recheck=True) == [(S1, S4)]
    # Example 5.2: s5 is equally near to s2 and s3.
    assert naive.distance2(ANSWERS, S5, S2) == naive.distance2(ANSWERS, S5, S3) == 5


def test_erratum_18_degrees_before_and_after_joining_differ():
    before = degrees(hull_points(EXAMPLE_6_1), EXAMPLE_6_1)
    after = degrees(hull_points(EXAMPLE_6_1, (S3, S5)), EXAMPLE_6_1)
    assert before[S3] == 1 < after[S3]
    assert all(after[s] >= before[s] for s in EXAMPLE_6_1)


def test_erratum_22_equality_of_floats_misses_the_boundary():
    # v = 3·(1/10)·(1, 1): on the boundary of conv ±(3/10)(1, 1) by weights x = (1, 0), but not in floats.
    point, v = np.array([0.3, 0.3]), np.array([0.1 + 0.2, 0.1 + 0.2])
    assert not (point * 1.0 == v).all()
    assert naive.gauge([(3, 3), (-3, -3)], (3, 3)) == 1
    space = dphmm.StateSpace(np.array([[0.0, 0.0], [0.3, 0.3], [0.6, 0.6]]), pitch=0.1)
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(0, 1)], 3), space)
    assert hull.contains(v) and dphmm.sensitivity.degree_of_protection(hull, space).tolist() == [2, 3, 2]
    # Without edges Eq. (6) asks for weights that sum to 1 over no columns at all.
    assert naive.differences([], ANSWERS) == set()


def test_erratum_23_the_printed_matrix_is_transposed_and_brackets_are_missing():
    printed = np.array([[1, -1, -1, 1], [0, 1, 0, -1]]).T
    assert printed.shape == (4, 2)  # d × 2m, with a column for each difference, would be (2, 4)
    columns = {tuple(column) for column in np.array([[1, -1, -1, 1], [0, 0, 1, -1]]).T}
    assert columns == {(1, 0), (-1, 0), (-1, 1), (1, -1)}
    points = sorted(columns)
    far, near = naive.gauge(points, (0, 1)), naive.gauge(points, (0, 0))
    assert (far, near) == (2, 0)
    epsilon, other = 3, naive.gauge(points, (1, 0))
    # exp(ε‖v‖ - ‖w‖) and exp(ε(‖v‖ - ‖w‖)) differ as soon as ‖w‖ is not 0.
    assert epsilon * far - other != epsilon * (far - other)


def partitions(items):
    if not items:
        yield []
        return
    first, *rest = items
    for part in partitions(rest):
        for k, block in enumerate(part):
            yield [*part[:k], [first, *block], *part[k + 1 :]]
        yield [[first], *part]


def test_erratum_24_figure_3b_follows_from_the_differences():
    columns = {(-1, 1), (1, -1), (-4, -1), (4, 1), (-1, -1), (1, 1), (3, 0), (-3, 0)}
    found = []
    for blocks in partitions(list(range(6))):
        edges = [pair for block in blocks for pair in itertools.combinations(sorted(block), 2)]
        if naive.differences(edges, ANSWERS) == columns:
            found.append(sorted(edges))
    # Of all 203 ways to put six states into categories exactly one has these differences.
    assert found == [sorted(EDGES_3B)]
    # Example 5.3's differences: cancer (1, 0), asthma (0, 0), diabetes (0, 1).
    records = np.array([(1, 0), (0, 0), (1, 0), (0, 1), (1, 0), (0, 1)])
    assert naive.differences([(0, 1), (2, 3)], records) == {(1, 0), (-1, 0), (1, -1), (-1, 1)}
