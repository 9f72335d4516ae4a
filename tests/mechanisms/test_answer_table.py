"""The certificate of a table: every way in which its integers could be wrong is refused, and the right ones are not.

It would fail for a certificate that trusts the solver, looks one way along an edge, at some outputs only, or lets rows
have different sums. The solver is replaced by ones that lie.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.mechanisms import OptimalTable, table, table_program
from dphmm.mechanisms.answer_table import (
    digits_for,
    falling_ratio,
    require_alike,
    require_certified,
    rounded,
    truthful,
)
from dphmm.mechanisms.base import Uncertified
from dphmm.policy import radius as within
from naive_table import exp_below, least_mean, worst_ratio

GRID = np.array([(x, y) for y in range(3) for x in range(3)])
EDGES = within(GRID, 1.0).edges(None)
EPSILON = Fraction(2)


def whole(rows):
    return np.array(rows, dtype=object)


def right():
    made = OptimalTable(GRID, EDGES, EPSILON, prior=np.arange(1, 10))
    return made.law.weights.copy(), made.law.bits, made.edges


def moved(weights, row, start, end, share):
    """A part of one weight of a row given to another of the row."""
    other = weights.copy()
    part = int(other[row][start] * share)
    other[row][start] -= part
    other[row][end] += part
    return other


def test_the_right_table_is_certified_and_not_for_less():
    weights, bits, edges = right()
    require_certified(weights, bits, edges, EPSILON)
    require_certified(weights, bits, edges, EPSILON + 1)
    with pytest.raises(Uncertified):
        require_certified(weights, bits, edges, EPSILON - Fraction(1, 2**25))


def test_a_table_that_is_wrong_anywhere_is_refused():
    weights, bits, edges = right()
    wrong = [moved(weights, row, row, (row + 3) % 9, Fraction(9, 10)) for row in range(9)]
    for row in range(9):
        less = weights.copy()
        less[row][0] -= 1
        wrong.append(less)
    nothing = weights.copy()
    nothing[:, 0], nothing[:, 1] = 0, weights[:, 0] + weights[:, 1]
    wrong += [nothing, weights[:8], weights[:, :8], weights * 2, whole(weights.astype(float).tolist())]
    for other in wrong:
        with pytest.raises(Uncertified):
            require_certified(other, bits, edges, EPSILON)


@pytest.mark.parametrize(
    ("rows", "right"),
    [
        ([[8, 1, 7], [1, 8, 7]], True),
        ([[8, 1, 7], [1, 9, 6]], False),  # to the right alone: 9 to 1
        ([[9, 1, 6], [1, 8, 7]], False),  # to the left alone
        ([[1, 8, 7], [9, 1, 6]], False),
        ([[8, 1, 7], [1, 7, 7]], False),  # another sum
        ([[8, 0, 8], [8, 0, 8]], False),  # nothing may be impossible
        ([[8, 1, 7], [2, 15, -1]], False),
    ],
)
def test_every_pair_counts_to_the_last_integer(rows, right):
    """e^2.08 = 8.004, so 8 to 1 is right and 9 to 1 is not."""
    ask = (whole([*rows, rows[0]]), 4, np.array([(0, 1)]), Fraction(208, 100))
    if right:
        require_certified(*ask)
        return
    with pytest.raises(Uncertified):
        require_certified(*ask)


@settings(max_examples=200)
@given(st.data())
def test_the_certificate_decides_as_brute_force_in_fractions_does(data):
    """Small integers, so that right ones come too: both decide alike, edge by edge, output by output."""
    n, bits = data.draw(st.integers(2, 4)), 5
    cuts = st.lists(st.integers(1, 2**bits - 1), min_size=n - 1, max_size=n - 1, unique=True).map(sorted)
    rows = [np.diff([0, *data.draw(cuts), 2**bits]).tolist() for _ in range(n)]
    pairs = list(itertools.combinations(range(n), 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    epsilon = data.draw(st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3)]))
    most = exp_below(epsilon)
    keeps = all(
        max(Fraction(x, y), Fraction(y, x)) <= most for a, b in edges for x, y in zip(rows[a], rows[b], strict=True)
    )
    try:
        require_certified(whole(rows), bits, np.array(edges, dtype=int).reshape(-1, 2), epsilon)
        certified = True
    except Uncertified:
        certified = False
    assert certified == keeps


def test_the_certificate_of_two_numbers_decides_as_that_of_all_does():
    """Small sums, every truth and other: from tables that all but name the truth to tables that never do."""
    n, bits = 3, 5
    edges = np.array(list(itertools.combinations(range(n), 2)))
    decided = set()
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3)):
        for other in range(1, 16):
            weights = np.full((n, n), other, dtype=object)
            np.fill_diagonal(weights, 2**bits - (n - 1) * other)
            found = []
            for certify in (lambda w, e: require_alike(w, bits, e), lambda w, e: require_certified(w, bits, edges, e)):
                try:
                    certify(weights, epsilon)
                    found.append(True)
                except Uncertified:
                    found.append(False)
            assert found[0] == found[1]
            decided.add((found[0], weights[0, 0] < other))
    assert decided == {(True, True), (True, False), (False, True), (False, False)}


def test_the_ratio_of_neighbours_is_never_below_e_to_minus_epsilon():
    for epsilon in (Fraction(1, 2**20), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(100), Fraction(2**10)):
        ratio, digits = falling_ratio(epsilon)
        total = term = Fraction(1)
        n = 0
        while n < 4 * epsilon or term > Fraction(1, 2**200):
            n += 1
            term = Fraction(math.floor(term * epsilon / n * 2**400), 2**400)
            total += term
        # total is below e^ε by next to nothing, so ratio·total >= 1 for nothing below e^-ε but what 2**-80 hides.
        q = Fraction(ratio, 2**digits)
        assert q < 1 and q * (total + Fraction(1, 2**100)) >= 1 and q * total < 1 + Fraction(1, 2**70)


def lies():
    """What a solver might return instead of a solution."""
    rng = np.random.default_rng(1)
    yield lambda law: np.eye(9)
    yield lambda law: np.zeros((9, 9))
    yield lambda law: np.full((9, 9), np.nan)
    yield lambda law: np.full((9, 9), np.inf)
    yield lambda law: rng.exponential(size=(9, 9))
    yield lambda law: -rng.exponential(size=(9, 9)) + 0.5
    yield lambda law: law + rng.normal(size=(9, 9)) * 1e-6
    yield lambda law: law * 1e300


@pytest.mark.parametrize("lie", [*lies()])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2**20), Fraction(2), Fraction(12)])
def test_whatever_the_solver_says_what_comes_out_is_certified(lie, epsilon, monkeypatch):
    """Nonsense ends in a table that keeps ε: a worse one."""
    solve = table.optimum

    def liar(problem, eps, bounded_at):
        found = solve(problem, eps, bounded_at)
        return replace(found, law=lie(found.law))

    monkeypatch.setattr(table, "optimum", liar)
    table._cache.clear()
    made = OptimalTable(GRID, EDGES, epsilon)
    table._cache.clear()
    require_certified(made.law.weights, made.law.bits, made.edges, epsilon)
    assert all(worst_ratio(made, GRID[a], GRID[b]) <= exp_below(epsilon) for a, b in EDGES.tolist())


def test_a_small_error_of_the_solver_costs_little(monkeypatch):
    """A millionth of noise on every probability: the value stays within 1e-4, ε as it is."""
    solve, rng = table.optimum, np.random.default_rng(2)

    def noisy(problem, eps, bounded_at):
        found = solve(problem, eps, bounded_at)
        return replace(found, law=found.law + rng.normal(size=found.law.shape) * 1e-6)

    monkeypatch.setattr(table, "optimum", noisy)
    table._cache.clear()
    made = OptimalTable(GRID, EDGES, EPSILON)
    table._cache.clear()
    assert made.mean_cost < made.optimum.value + 1e-4


def test_without_repair_a_lie_is_not_drawn_from(monkeypatch):
    """Integers that lose too much are refused, not drawn from: whoever made them."""

    def steep(law, edges, epsilon):
        weights = np.full((9, 9), 1, dtype=object)
        weights[np.arange(9), np.arange(9)] = 2 ** digits_for(epsilon) - 8
        return weights

    monkeypatch.setattr(table, "rounded", steep)
    table._cache.clear()
    with pytest.raises(Uncertified, match="lose more than epsilon"):
        OptimalTable(GRID, EDGES, EPSILON)
    assert not table._cache


#: A prior over eighteen decades on answers a million apart: the interior-point method ends in an error, or without one
#: at four times the optimum.
FAR = [(4, 2), (4000000, -4000000), (1000000, -1), (0, 3), (-4, 3000000), (0, 1), (1, -1), (2, -4), (0, 3000000)]
FAR_EDGES = [
    (0, 2),
    (0, 8),
    (1, 4),
    (1, 5),
    (1, 6),
    (1, 8),
    (2, 3),
    (3, 4),
    (3, 6),
    (3, 7),
    (4, 5),
    (5, 7),
    (5, 8),
    (7, 8),
]
FAR_PRIOR = [1e-9, 1e-9, 1e9, 0, 0, 1e-9, 1e9, 0, 1e9]


@pytest.mark.parametrize("tolerance", [1e-9, 1e-7])
def test_where_one_method_ends_badly_the_other_is_asked(tolerance, monkeypatch):
    """It would fail with four times the least, or with an error."""
    monkeypatch.setattr(table_program, "_TOLERANCE", tolerance)
    table._cache.clear()
    made = OptimalTable(np.array(FAR), FAR_EDGES, Fraction(823, 100), "euclidean", prior=FAR_PRIOR)
    table._cache.clear()
    distances = np.linalg.norm(np.subtract(FAR, np.array(FAR)[:, None]), axis=2)
    least = least_mean(distances, FAR_PRIOR, FAR_EDGES, 8.23)
    # Tolerances are shares of the largest cost, which is ten thousand times this one.
    assert least * (1 - 1e-6) <= made.mean_cost <= least * 1.005


def test_a_solver_that_gives_up_is_said_so(monkeypatch):
    from types import SimpleNamespace

    import scipy.optimize

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *a, **k: SimpleNamespace(x=None, message="out of time"))
    table._cache.clear()
    with pytest.raises(Uncertified, match="not solved: out of time"):
        OptimalTable(GRID, EDGES, EPSILON)


def test_rounding_moves_next_to_nothing():
    """A law that keeps a smaller ε is only rounded: every share within 1e-9 of it, none 0, rows of the right sum."""
    made = OptimalTable(GRID, EDGES, 1)
    weights = rounded(made.law.probabilities, made.edges, Fraction(2))
    bits = digits_for(Fraction(2))
    assert all(sum(row) == 2**bits for row in weights.tolist()) and min(weights.ravel().tolist()) > 2**80
    shares = np.array([[w / 2**bits for w in row] for row in weights.tolist()])
    np.testing.assert_allclose(shares, made.law.probabilities, atol=1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(25, 2), Fraction(100), Fraction(2**10)])
def test_the_table_without_a_solver_is_certified_on_trees_circles_and_pieces(epsilon):
    circle = [(i, (i + 1) % 9) for i in range(9)]
    for edges in (EDGES.tolist(), circle, circle[:8], [(0, 1), (3, 4)], []):
        pairs = np.array(edges, dtype=int).reshape(-1, 2)
        weights = truthful(9, pairs, epsilon)
        require_certified(weights, digits_for(epsilon), pairs, epsilon)
