"""The law of the level: float table and exact choice against an independent calculation; no last level."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dphmm._kernels.lattice import level_bounds, levels_below
from dphmm.samplers.entropy import ReplayBits
from dphmm.samplers.rows import outline, reduced_plane, reduced_rows
from dphmm.samplers.uniform import LazyUniform, Levels, WordReader
from naive_mechanisms import hull_of_points

CASES = [
    ([Fraction(3), Fraction(5, 2)], Fraction(1, 7), 1, Fraction(1, 3)),
    ([Fraction(3)], Fraction(1), 1, Fraction(0)),
    ([Fraction(1, 8), Fraction(2**20)], Fraction(3, 16), 4, Fraction(99, 100)),
    ([Fraction(7), Fraction(8), Fraction(1)], Fraction(1024), 1, Fraction(1, 2)),
    ([Fraction(2**28), Fraction(2**28)], Fraction(1, 5), 2**18, Fraction(0)),
    ([Fraction(1, 4096)] * 4, Fraction(1, 8), 1, Fraction(0)),
    ([Fraction(2**40), Fraction(2**50)], Fraction(1, 5), 2**18, Fraction(0)),  # boxes beyond 64 bits
    ([Fraction(3)] * 8, Fraction(1, 8), 1, Fraction(1, 4)),  # boxes that grow for long: exp(-40) is no small tail here
]


def cumulative(levels: Levels, count: int) -> list[Fraction]:
    """C_0..C_{count-1} to some hundred digits, by Decimal and a plain sum far into the tail."""
    getcontext().prec = 150
    factor = (-Decimal(levels.rate.numerator) / Decimal(levels.rate.denominator)).exp()
    power, total, sums = Decimal(1), Decimal(0), []
    length = count + 40 + math.ceil(300 / float(levels.rate))
    for j in range(length):
        total += power * levels.box_size(j)
        power *= factor
        sums.append(total)
    return [Fraction(s / total) for s in sums[:count]]


@pytest.mark.parametrize("case", CASES)
def test_the_float_table_holds_the_true_cumulative_probabilities(case):
    levels = Levels(*case)
    table = levels.table
    true = cumulative(levels, len(table.low))
    slack = Fraction(1, 10**100)
    assert all(Fraction(float(low)) <= c + slack for low, c in zip(table.low, true, strict=True))
    assert all(c - slack <= Fraction(float(high)) or high == 1.0 for high, c in zip(table.high, true, strict=True))
    assert 1 - true[-1] < Fraction(1, 2**45)
    assert (table.high - table.low).max() < 2.0**-35  # open draws are rare
    assert [tuple(row) for row in table.half_widths[:50]] == [
        tuple(min(h, 2**62) for h in levels.half_widths(j)) for j in range(50)[: len(table.low)]
    ]


@pytest.mark.parametrize("case", CASES)
def test_the_margins_of_the_float_table_are_those_that_were_derived(case):
    """Half the width of every interval is at least (L + λ(L-1) + 3k + 16)·2⁻⁵¹ (ADR 0002, section 4).

    The true values lie well inside, so a margin below what the proof needs would not be seen by looking for them.
    """
    levels = Levels(*case)
    table, rate, k = levels.table, case[1], len(case[0])
    length = len(table.low)
    derived = (length + rate * (length - 1) + 3 * k + 16) / Fraction(2**51)
    # Each end is rounded once more; the last computed value is 1 itself.
    rounding = Fraction(1, 2**53)
    assert 1 - Fraction(float(table.low[-1])) >= derived - rounding
    uncut = table.high < 1.0
    for low, high in zip(table.low[uncut].tolist(), table.high[uncut].tolist(), strict=True):
        assert Fraction(high) - Fraction(low) >= 2 * (derived - rounding)


@pytest.mark.parametrize("case", CASES)
def test_the_compiled_bounds_are_those_of_the_formula(case):
    """ADR 0002, section 4, in NumPy: terms, running sums and margins, up to a few roundings."""
    levels = Levels(*case)
    length = len(levels.table.low)
    log_tail = levels.log_tail(length)
    half = np.array([levels.half_widths(level) for level in range(length)], dtype=object)
    sides = (2 * half + 1).astype(np.float64)
    weights = np.exp(-float(case[1]) * np.arange(length)) * np.prod(sides / sides[-1], axis=1)
    share = np.cumsum(weights) / weights.sum()
    tail = math.exp(log_tail - np.log(sides[-1]).sum()) / weights.sum()
    margin = (length + float(case[1]) * (length - 1) + 3 * len(case[0]) + 16) * 2.0**-51 + tail
    low, high = level_bounds(half.astype(np.float64), float(case[1]), log_tail)
    assert low == pytest.approx(share - margin, rel=0, abs=0.1 * margin)
    assert high == pytest.approx(np.minimum(share + margin, 1.0), rel=0, abs=0.1 * margin)


@pytest.mark.parametrize("guard", [10, 999, 10**6, 2**61])
def test_levels_below_a_guard_are_counted_exactly(guard):
    """The first level at which a product, in Python integers, is at least the guard. Powers of two round nowhere."""
    rng = np.random.default_rng(guard)
    for _ in range(50):
        k, m = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        rows = rng.integers(-9, 10, (m, k))
        half = np.sort(rng.integers(0, 2 ** int(rng.integers(1, 50)), (12, k)), axis=0)
        offset = int(rng.integers(1, 200))
        reached = [
            max(
                (level + 1) * offset,
                *(sum((2 * int(h) + 1) * abs(int(a)) for h, a in zip(box, row, strict=True)) for row in rows),
            )
            for level, box in enumerate(half)
        ]
        expected = next((level for level, most in enumerate(reached) if most >= guard), len(half))
        assert levels_below(float(guard), half, rows.astype(np.float64), float(offset)) == expected


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("digits", [64, 192])
def test_integer_sums_bracket_the_infinite_sum_tightly(case, digits):
    levels = Levels(*case)
    sums = levels._sums_for(digits)
    slack = Fraction(1, 10**100)
    for low, high, c in zip(sums.low, sums.high, cumulative(levels, len(sums.low)), strict=True):
        least, most = Fraction(low, sums.total_high), Fraction(high, sums.total_low)
        assert least <= c + slack and c - slack <= most
        assert most - least < Fraction(1, 2 ** (digits + 60))


@pytest.mark.parametrize("case", CASES)
def test_the_exact_choice_is_the_first_level_above_u(case):
    levels = Levels(*case)
    true = cumulative(levels, 400)
    draws = ReplayBits(5).uint64(60).tolist()
    for word in [*draws, 0, 1, 2**63]:
        reader = WordReader(ReplayBits(word))
        rest = [int(w) for w in ReplayBits(word).uint64(4)]
        u = Fraction(sum(w << (64 * (4 - i)) for i, w in enumerate([word, *rest])), 2**320)
        assert levels.choose(LazyUniform(word, reader)) == next(j for j, c in enumerate(true) if u < c)


@pytest.mark.parametrize("case", CASES)
def test_digits_of_a_threshold_decide_late_and_rightly(case):
    levels = Levels(*case)
    getcontext().prec = 150
    for j, c in enumerate(cumulative(levels, 3)):
        if c == 1 or 1 - c < Fraction(1, 2**250):
            continue
        digits = int(c * 2**256)
        own = [(digits >> (64 * (3 - i))) & (2**64 - 1) for i in range(4)]
        for nudge, expected in ((-1, j), (1, j + 1)):
            reader = WordReader(_Words([*own[1:3], own[3] + nudge]))
            assert levels.choose(LazyUniform(own[0], reader)) == expected


class _Words:
    def __init__(self, words):
        self.words = iter(words)

    def uint64(self, n):
        return np.array([next(self.words) for _ in range(n)], dtype=np.uint64)


def test_there_is_no_last_level():
    levels = Levels([Fraction(3), Fraction(3)], Fraction(1, 4), 1, Fraction(0))
    ones = 2**64 - 1
    deep = levels.choose(LazyUniform(ones, WordReader(_Words([ones] * 6 + [0]))))
    table = levels.table
    assert deep > 4 * len(table.low)
    # The mass above the level found is 2**-448 to within the two or three levels that a factor 2 takes.
    log_mass = -0.25 * deep + 2 * math.log(6 * deep) - math.log(1 - math.exp(-0.25)) - math.log(levels.box_size(0))
    assert abs(log_mass + 448 * math.log(2)) < 15


@settings(max_examples=60)
@given(
    st.lists(st.fractions(Fraction(1, 1000), 1000), min_size=1, max_size=4),
    st.fractions(0, Fraction(999, 1000), max_denominator=1000),
    st.integers(0, 500),
    st.integers(1, 64),
)
def test_boxes_are_never_smaller_than_the_body(widths, offset, level, stride):
    levels = Levels(widths, Fraction(1, 4), stride, offset)
    radius = stride * level + offset
    for half, width in zip(levels.half_widths(level), widths, strict=True):
        assert math.floor(radius * width) <= half <= radius * width * Fraction(1001, 1000) + width / 4096 * 1.01


def determinant(matrix):
    return round(float(np.linalg.det(np.array(matrix, dtype=float))))


@settings(max_examples=80)
@given(st.integers(1, 5), st.randoms(use_true_random=False))
def test_reduced_coordinates_are_unimodular(k, random):
    points = np.array([[random.randint(-50, 50) for _ in range(k)] for _ in range(k + 4)]) + np.eye(k + 4, k) * 200
    rows, inverse = reduced_rows(points.astype(float))
    product = np.array(rows, dtype=object) @ np.array(inverse, dtype=object)
    assert product.tolist() == np.eye(k, dtype=int).tolist()


def test_thin_diagonals_fill_their_boxes_after_reduction():
    for points in (
        [(1000, 1001), (1, 0)],
        [(1_000_000, 999_999), (0, 1)],
        [(2**27, 2**27 - 1), (1, 1)],
        [(100, 101, 99), (1, 0, 0), (0, 1, 1)],
        [(1000, 2000, 3001), (1, 1, 0), (7, 13, 19)],
        [(100, 99, 98, 97), (1, 0, 0, 0), (0, 5, 1, 0), (1, 1, 1, 7)],
    ):
        corners = np.array([*points, *(-np.array(points))])
        rows, _ = reduced_rows(corners.astype(float))
        widths = [max(abs(sum(a * int(c) for a, c in zip(row, v, strict=True))) for v in corners) for row in rows]
        k = len(points[0])
        volume = abs(float(np.linalg.det(np.array(points, dtype=float)))) * 2**k / math.factorial(k)
        assert volume / math.prod(2 * w for w in widths) > 0.5 / math.factorial(k) / 2 ** (k - 2)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(-40, 40), st.integers(-40, 40)), min_size=2, max_size=6), st.integers(0, 3))
def test_planar_bodies_are_the_same_in_reduced_coordinates(points, slant):
    """Lattice points keep their products with the normals; no coordinate is larger than said; boxes are filled."""
    hull = hull_of_points([(x + 1000 * slant * y, y) for x, y in points])
    assume(hull.rank == 2)
    normals, inverse, widths = reduced_plane(hull.normals, hull.hull_vertices)
    back = np.array(inverse)
    assert abs(determinant(back)) == 1
    forth = np.rint(np.linalg.inv(back)).astype(np.int64)
    assert (forth @ back == np.eye(2)).all()
    for y in ((1, 0), (0, 1), *hull.hull_vertices.tolist()):
        assert (normals @ (forth @ y) == hull.normals @ y).all()
    assert np.abs(hull.hull_vertices @ forth.T).max(axis=0).tolist() == widths
    assert hull.span_volume >= math.prod(2 * w for w in widths) / 4


def test_corners_beyond_the_room_of_the_loop_are_reduced_elsewhere():
    vertices = np.array([[2**28, 0], [0, 1], [-(2**28), 0], [0, -1]])
    assert reduced_plane(np.array([[1, 2**28], [-1, 2**28]]), vertices) is None
    assert reduced_plane(np.array([[1]]), np.array([[5], [-5]])) is None


@pytest.mark.parametrize("slope", [(1, 2), (2, 4), (6, 3)])
def test_planar_reduction_ends_at_a_tie(slope):
    """A slope of a half: one row minus the other is as long as it was."""
    x, y = slope
    vertices = np.array([[x, y], [x, 0], [-x, -y], [-x, 0]])
    _, inverse, widths = reduced_plane(np.array([[0, 1], [2 * y, -x]]), vertices)
    assert abs(determinant(np.array(inverse))) == 1
    assert max(widths) <= max(x, y)


def test_the_outline_of_facets_spreads_like_the_body():
    slab = outline(np.array([[1, 1], [1, -1]]), np.array([100, 1]), None)
    rows, _ = reduced_rows(slab)
    reach = np.abs(np.array(rows) @ np.array([[50.5, 49.5], [49.5, 50.5]]).T).max(axis=1)
    assert sorted(reach) == [1.0, 50.5] or sorted(reach) == [1.0, 49.5]


def test_rows_at_a_tie_are_not_exchanged_for_ever(monkeypatch):
    """A slope of a half, up to rounding: one row minus the other is as long as it was."""
    from dphmm.samplers import rows

    monkeypatch.setattr(rows, "_MOST_STEPS", 10)
    subtract, steps = rows._Change.subtract, []
    monkeypatch.setattr(rows._Change, "subtract", lambda self, *at: (steps.append(at), subtract(self, *at)))
    half = [[-3, -7], [-18, 9], [-3, 10], [-1, 10], [1, 9]]
    rows, inverse = reduced_rows(np.array(half + [[-x, -y] for x, y in half]) / 10)
    assert len(steps) <= 1
    assert (np.array(rows) @ np.array(inverse) == np.eye(2)).all()
