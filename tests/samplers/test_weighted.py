"""Draws of weighted noise: against the law by definition, and the compiled path against the plain one, word by word.

A chi-square test at level 1e-3 on fixed bits accepts the law and rejects (below 1e-6) that of an ε 5 % off; its power
against that is computed and asserted. Crafted words sit on the thresholds of the table, where a decision that is one
off would pick a neighbour.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from crafted_bits import CountedBits, CraftedBits
from dphmm.mechanisms import OptimalAdditive
from dphmm.samplers import ReplayBits
from dphmm.samplers.uniform import LazyUniform, WordReader
from naive_additive import table
from naive_mechanisms import shape

_ALPHA = 1e-6
CASES = [
    ("interval", 1, 100_000),
    ("square", "1.5", 100_000),
    ("example", 1, 120_000),
    ("running", 3, 200_000),
    ("disc", 2, 60_000),
    ("flat slanted", 2, 100_000),
    ("plane in space", 2, 100_000),
]


def law_of(mechanism, n):
    """Noises that n draws may come to, as a dictionary to their probabilities; the rest are in the last cell."""
    radius = mechanism.law.radius + 2
    vectors, weights = table(mechanism, radius)
    total = mechanism.law.inside + mechanism.law.outside
    return {tuple(v): float(w / total) for v, w in zip(vectors.tolist(), weights, strict=True)}


def counted(noise, law):
    """How often each noise of a law came, and how often another."""
    found, times = np.unique(noise, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, found.tolist()), times.tolist(), strict=True))
    counts = np.array([seen.pop(v, 0) for v in law], dtype=float)
    return np.append(counts, sum(seen.values()))


def pooled(counts, probabilities, n):
    """Cells of at least 12 expected draws: by falling probability, the last one taking what is left."""
    order = np.argsort(-probabilities, kind="stable")
    cells = np.floor(np.cumsum(probabilities[order]) * n / 24).astype(int)
    cells = np.unique(cells, return_inverse=True)[1]
    p = np.bincount(cells, weights=probabilities[order])
    found = np.bincount(cells, weights=counts[order])
    return p, found


def p_value(counts, probabilities, n):
    p, found = pooled(counts, probabilities, n)
    keep = p * n > 5
    assert found[~keep].sum() <= 12
    return stats.chi2.sf(((found - p * n)[keep] ** 2 / (p * n)[keep]).sum(), keep.sum() - 1)


@pytest.mark.parametrize(("name", "epsilon", "n"), CASES)
def test_samples_follow_the_law_and_five_per_cent_off_does_not(name, epsilon, n):
    right = OptimalAdditive(shape(name), epsilon)
    wrong = OptimalAdditive(shape(name), Fraction(str(epsilon)) * Fraction(105, 100))
    law, other = law_of(right, n), law_of(wrong, n)
    p = np.array([*law.values(), max(0.0, 1 - math.fsum(law.values()))])
    q = np.array([other.get(v, 0.0) for v in law])
    q = np.append(q, max(0.0, 1 - q.sum()))
    assert p_value(counted(right.noise(n, ReplayBits(b"weighted")), law), p, n) > 1e-3
    cells, gap = pooled(q, p, n)
    keep = cells * n > 5
    power = stats.ncx2.sf(
        stats.chi2.isf(_ALPHA, keep.sum() - 1), keep.sum() - 1, n * ((gap - cells)[keep] ** 2 / cells[keep]).sum()
    )
    assert power > 0.999
    assert p_value(counted(wrong.noise(n, ReplayBits(b"weighted")), law), p, n) < _ALPHA


def test_the_shells_are_drawn_as_often_as_they_weigh(monkeypatch):
    """With a window of one level a third of the noise is on the shells: each, and each of its points, by its weight."""
    from dphmm.mechanisms import optimal

    monkeypatch.setattr(optimal, "_DEPTH", 1)
    monkeypatch.setattr(optimal, "_MOST_BEYOND", 1.0)
    optimal._cache.clear()
    mechanism, n = OptimalAdditive(shape("running"), 1), 30_000
    optimal._cache.clear()
    noise = mechanism.noise(n, ReplayBits(5))
    vectors, weights = table(mechanism, mechanism.law.radius + 9)
    total = mechanism.law.inside + mechanism.law.outside
    law = {tuple(v): float(w / total) for v, w in zip(vectors.tolist(), weights, strict=True)}
    p = np.array([*law.values(), max(0.0, 1 - math.fsum(law.values()))])
    assert mechanism.law.outside / total > Fraction(1, 3) and p[-1] < 1e-2
    assert p_value(counted(noise, law), p, n) > 1e-3
    shells = mechanism.law.shells(noise)
    sizes = np.array([1, *(mechanism.law.facets.shell(mechanism.law.radius, j).size for j in range(1, 30))], float)
    q = float(mechanism.law.q)
    expected = np.array([float(mechanism.law.inside), *(float(mechanism.law.tail) * sizes[1:] * q ** np.arange(29))])
    expected = expected / float(total) * n
    found = np.bincount(shells, minlength=30)[:30]
    keep = expected > 12
    assert stats.chi2.sf(((found - expected)[keep] ** 2 / expected[keep]).sum(), keep.sum() - 1) > 1e-3
    assert ((found - expected * 1.1)[1:6] ** 2 / expected[1:6]).sum() > 30


def thresholds(sampler):
    """Words at and beside the ends of the table's intervals, the first and last of all, and runs of extreme digits."""
    ends = [int(t) for t in sampler._thresholds[[0, 1, len(sampler._thresholds) // 2, -2, -1]]]
    near = [w + step for w in ends for step in (-1, 0, 1)]
    return [[w] for w in near if 0 <= w < 2**64] + [[w, 0, 0] for w in ends] + [[2**64 - 1, 5], [0, 0, 0]]


@pytest.mark.parametrize("name", ["interval", "running", "plane in space"])
@pytest.mark.parametrize("crafted", [False, True])
def test_both_paths_draw_the_same_from_the_same_words(name, crafted):
    sampler = OptimalAdditive(shape(name), 2)._sampler
    n = 4000

    def bits():
        return CountedBits(CraftedBits(3, thresholds(sampler)) if crafted else ReplayBits(3))

    once, plain, single = bits(), bits(), bits()
    noise = sampler.draw(n, once)
    np.testing.assert_array_equal(noise, sampler.draw_plainly(n, plain))
    np.testing.assert_array_equal(noise, np.vstack([sampler.draw(1, single) for _ in range(n)]))
    assert once.served == plain.served == single.served >= n + (n // 20 if crafted else 0)


def test_each_interval_of_the_first_decision_ends_where_its_weight_does():
    """Words of a long U around an end: below it the point, from it on the next one."""
    mechanism = OptimalAdditive(shape("interval"), 1)
    sampler, law = mechanism._sampler, mechanism.law
    total, sums = law.inside + law.outside, np.cumsum(np.array(law.weights, dtype=object))
    for i in (0, 3, len(law.points) - 1):
        end = Fraction(int(sums[i])) / total
        digits = (end.numerator << 320) // end.denominator
        for step, expected in ((-1, i), (1, i + 1)):
            value = digits + step
            words = [(value >> (64 * (4 - place))) % 2**64 for place in range(5)]
            reader = WordReader(ReplayBits(1), np.array(words[1:], dtype=np.uint64))
            assert sampler._picked(LazyUniform(words[0], reader)) == expected


def test_noise_is_kept_within_its_bound():
    from dphmm.samplers import NOISE_BOUND
    from dphmm.samplers.rows import Facets
    from dphmm.samplers.weighted import WeightedSampler

    wide = Facets(np.array([[1]]), (1,), (Fraction(1),))
    sampler = WeightedSampler(
        wide, Fraction(0), np.array([[0]]), [1], 1, Fraction(1, 2), Fraction(4), np.array([[2**63 - 1]])
    )
    noise = sampler.draw(200, ReplayBits(2))
    assert set(np.unique(noise).tolist()) == {-NOISE_BOUND, 0, NOISE_BOUND}
