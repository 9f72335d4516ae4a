"""Draws from a table: against its integers by definition, and the compiled path against the plain one, word by word.

Exactly: words beside and on every end of a row's intervals pick the column that the real number picks. Statistics: a
chi-square test at level 1e-3 on fixed bits accepts the law and rejects (below 1e-6) that of an ε 5 % off; its power
against that is computed and asserted.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from crafted_bits import CountedBits, CraftedBits
from dphmm.mechanisms import OptimalTable
from dphmm.policy import radius as within
from dphmm.samplers import ReplayBits
from dphmm.samplers.table import TableSampler
from dphmm.samplers.uniform import WordReader

GRID = np.array([(x, y) for y in range(4) for x in range(4)])
_ALPHA = 1e-6


def made(epsilon, n=4):
    points = GRID[: 4 * n]
    return OptimalTable(points, within(points, 1.5).edges(None), epsilon, prior=np.arange(1, 4 * n + 1))


def exact_column(weights, value, digits):
    """The column on whose interval [C_{z-1}, C_z) value / 2**digits lies, in fractions."""
    total, u, end = sum(weights), Fraction(value, 2**digits), Fraction(0)
    for column, weight in enumerate(weights):
        end += Fraction(weight, total)
        if u < end:
            return column
    raise AssertionError


SMALL = [
    [[1, 2, 61], [60, 3, 1], [21, 22, 21]],
    [[64]],
    [[1, 63], [63, 1]],
    [[1] * 64, [1] * 60 + [1, 1, 1, 1]],
    [[8, 8, 16, 32], [32, 16, 8, 8]],
]


@pytest.mark.parametrize("rows", SMALL)
def test_every_interval_is_as_long_as_its_weight(rows):
    """Sums of 2**64, so that one word decides: as many words pick a column as it weighs, counted at every end."""
    scaled = np.array([[w << 58 for w in row] for row in rows], dtype=object)
    sampler = TableSampler(scaled, 64)
    for row, weights in enumerate(scaled.tolist()):
        ends = np.cumsum(np.array(weights, dtype=object)).tolist()
        for start, end, column in zip([0, *ends], ends, range(len(ends)), strict=False):
            for value in (start, (start + end) // 2, end - 1):
                word = CountedBits(Words([value]))
                assert sampler.draw(np.array([row]), word).tolist() == [column]
                assert sampler.draw_plainly(np.array([row]), Words([value])).tolist() == [column] and word.served == 1


class Words:
    """Given words, then an error."""

    def __init__(self, words):
        self.words = list(words)

    def uint64(self, n):
        assert n <= len(self.words)
        taken, self.words = self.words[:n], self.words[n:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(2), Fraction(100)])
def test_each_interval_ends_where_its_weight_does(epsilon):
    """Numbers of 320 digits around every end of every row: below it the column, from it on a later one."""
    law = made(epsilon, 2).law
    sampler = TableSampler(law.weights, law.bits)
    for row, weights in enumerate(law.weights.tolist()):
        ends = np.cumsum(np.array(weights, dtype=object)).tolist()
        for end in ends[:-1]:
            for step in (-1, 0, 1):
                value = (end << 1800 >> law.bits) + step
                words = [(value >> (1800 - 64 * (place + 1))) % 2**64 for place in range(28)]
                digits = sum(word << (1792 - 64 * (place + 1)) for place, word in enumerate(words))
                reader = WordReader(ReplayBits(1), np.array(words, dtype=np.uint64))
                assert sampler.one(row, reader) == exact_column(weights, digits, 1792)


def thresholds(sampler):
    """Words at and beside ends of intervals, the first and last of all, and runs of extreme digits."""
    ends = [int(t) for t in sampler._thresholds[:, [0, 1, -1]].ravel()]
    near = [w + step for w in ends for step in (-1, 0, 1)]
    return [[w] for w in near if 0 <= w < 2**64] + [[w, 0, 0] for w in ends] + [[2**64 - 1, 5], [0, 0, 0]]


@pytest.mark.parametrize("epsilon", ["0.5", 4, 30])
@pytest.mark.parametrize("crafted", [False, True])
def test_all_paths_draw_the_same_from_the_same_words(epsilon, crafted):
    law = made(epsilon).law
    sampler = TableSampler(law.weights, law.bits)
    n = 3000
    rows = np.random.default_rng(1).integers(16, size=n)

    def bits():
        return CountedBits(CraftedBits(3, thresholds(sampler)) if crafted else ReplayBits(3))

    once, plain, single = bits(), bits(), bits()
    columns = sampler.draw(rows, once)
    np.testing.assert_array_equal(columns, sampler.draw_plainly(rows, plain))
    np.testing.assert_array_equal(columns, np.concatenate([sampler.draw(rows[i : i + 1], single) for i in range(n)]))
    assert once.served == plain.served == single.served >= n + (n // 40 if crafted else 0)


def test_parts_as_large_as_are_drawn_at_once_make_no_difference(monkeypatch):
    from dphmm.samplers import table

    law = made(2).law
    sampler, rows = TableSampler(law.weights, law.bits), np.arange(1000) % 16
    whole = sampler.draw(rows, CraftedBits(5, thresholds(sampler)))
    monkeypatch.setattr(table, "_MOST_AT_ONCE", 7)
    np.testing.assert_array_equal(whole, sampler.draw(rows, CraftedBits(5, thresholds(sampler))))


@pytest.mark.parametrize("row", [0, 5, 15])
@pytest.mark.parametrize(("epsilon", "n"), [("0.5", 600_000), (1, 150_000), (3, 100_000)])
def test_samples_follow_the_law_and_five_per_cent_off_does_not(epsilon, n, row):
    right, wrong = made(epsilon), made(Fraction(str(epsilon)) * Fraction(105, 100))
    p, q = (m.law.probabilities[row] for m in (right, wrong))

    def p_value(mechanism):
        named = mechanism.law.numbers(
            mechanism.answer(np.tile(mechanism.law.points[row], (n, 1)), ReplayBits(b"table"))
        )
        order = np.argsort(-p, kind="stable")
        cells = np.unique(np.floor(np.cumsum(p[order]) * n / 24 * (1 - 1e-12)).astype(int), return_inverse=True)[1]
        mass = np.bincount(cells, weights=p[order])
        other = np.bincount(cells, weights=q[order])
        found = np.bincount(cells, weights=np.bincount(named, minlength=len(p))[order].astype(float))
        keep = mass * n > 5
        statistic = ((found - mass * n)[keep] ** 2 / (mass * n)[keep]).sum()
        shift = n * ((other - mass)[keep] ** 2 / mass[keep]).sum()
        return stats.chi2.sf(statistic, keep.sum() - 1), shift, int(keep.sum()) - 1

    accepted, shift, freedom = p_value(right)
    assert accepted > 1e-3
    assert stats.ncx2.sf(stats.chi2.isf(_ALPHA, freedom), freedom, shift) > 0.999
    assert p_value(wrong)[0] < _ALPHA
