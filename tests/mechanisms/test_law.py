"""Samples against the law by enumeration, by a test that rejects a sampler 5 % off in ε.

Fixed seeds: nothing here can fail now and then. The power against 5 % at each n is computed and asserted.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dphmm.mechanisms import DiscreteKNorm, KNorm, Laplace, PlanarIsotropic, Staircase
from dphmm.samplers import ReplayBits
from naive_mechanisms import SHAPES, exponents, hull_of_points, norm_table, shape

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words

_ALPHA = 1e-6
_LEAST_EXPECTED = 12.0


class Cells:
    """The enumerated law in cells for a chi-square test: lattice vectors, rare ones put together by exponent.

    The last cell is the tail, and takes what lies outside the window too.
    """

    def __init__(self, mechanism, n):
        self.vectors, self.law = enumerated_law(mechanism, n)
        order = np.argsort(-self.law, kind="stable")
        self.vectors, self.law = self.vectors[order], self.law[order]
        self.of_vector = np.empty(len(order), dtype=int)
        cell, pooled = 0, 0.0
        for i, p in enumerate(self.law):
            self.of_vector[i] = cell
            pooled += p
            if pooled * n >= _LEAST_EXPECTED:
                cell, pooled = cell + 1, 0.0
        self.count = self.of_vector[-1] + 1
        self.probabilities = self.masses(self.vectors, self.law)

    def masses(self, vectors, weights):
        both = np.vstack([self.vectors, vectors])
        low = both.min(axis=0)
        numbers = np.ravel_multi_index(tuple((both - low).T), tuple(both.max(axis=0) - low + 1))
        cells = np.full(numbers.max() + 1, self.count - 1)
        cells[numbers[: len(self.vectors)]] = self.of_vector
        return np.bincount(cells[numbers[len(self.vectors) :]], weights=weights, minlength=self.count)

    def p_value(self, noise):
        expected = self.probabilities * len(noise)
        found = self.masses(noise, np.ones(len(noise)))
        keep = expected > 1.0
        assert found[~keep].sum() <= 5
        statistic = ((found - expected)[keep] ** 2 / expected[keep]).sum()
        return stats.chi2.sf(statistic, keep.sum() - 1)

    def power_against(self, other, n):
        p = self.probabilities
        keep = p * n > 1.0
        gap = (self.masses(*enumerated_law(other, n)) - p)[keep]
        critical = stats.chi2.isf(_ALPHA, keep.sum() - 1)
        return stats.ncx2.sf(critical, keep.sum() - 1, n * (gap**2 / p[keep]).sum())


def enumerated_law(mechanism, n):
    """Lattice vectors and their probabilities, out to where n draws would not come."""
    radius = 3 + math.ceil((math.log(n) + 9) / float(mechanism.epsilon))
    vectors, tops, common = norm_table(mechanism.hull, radius)
    weights = np.exp(-exponents(mechanism, tops, common))
    return vectors, weights / weights.sum()


def mechanisms(hull, epsilon):
    return [
        DiscreteKNorm(hull, epsilon),
        Staircase(hull, epsilon, 0),
        Staircase(hull, epsilon, Fraction(1, 3)),
        Staircase(hull, epsilon, Fraction(19, 20)),
    ]


CASES = [
    ("interval", "0.03", 200_000),
    ("interval", "0.2", 200_000),
    ("square", "0.1", 300_000),
    ("odd interval", 1, 100_000),
    ("interval", 8, 2_000_000),
    ("square", "1.5", 200_000),
    ("example", 1, 100_000),
    ("example", 4, 400_000),
    ("disc", 2, 200_000),
    ("thin", 2, 200_000),
    ("flat", "0.7", 200_000),
    ("flat slanted", 2, 200_000),
    ("octahedron", 2, 200_000),
    ("slanted box", 3, 300_000),
    ("plane in space", 2, 200_000),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon", "n"), CASES)
def test_samples_follow_the_law_and_five_per_cent_off_does_not(name, epsilon, n):
    hull = shape(name)
    off = Fraction(str(epsilon)) * Fraction(105, 100)
    for i, (right, wrong) in enumerate(zip(mechanisms(hull, epsilon), mechanisms(hull, off), strict=True)):
        if right.expected_error < 1e-6:
            continue
        cells = Cells(right, n)
        assert cells.p_value(right.noise(n, ReplayBits(b"law %d" % i))) > 1e-3
        if _mean_exponent_spread(right) > 0.3:
            assert cells.power_against(wrong, n) > 0.999
            assert cells.p_value(wrong.noise(n, ReplayBits(b"law %d" % i))) < _ALPHA


def _mean_exponent_spread(mechanism):
    """Standard deviation of the exponent: with next to none, 5 % in ε changes next to nothing."""
    _, law = enumerated_law(mechanism, 1000)
    values = -np.log(law)
    return math.sqrt((law * values**2).sum() - (law * values).sum() ** 2)


def test_every_test_of_power_is_reached():
    """All but the hardest: at ε = 8 nearly all mass of a fine interval is on a few points."""
    spread = [_mean_exponent_spread(m) for name, e, _ in CASES for m in mechanisms(shape(name), e)]
    assert sum(s > 0.3 for s in spread) > 0.9 * len(spread)


@pytest.mark.parametrize("make", [lambda K, e: DiscreteKNorm(K, e), lambda K, e: Staircase(K, e, Fraction(1, 2))])
def test_a_wrong_law_is_rejected(make):
    """The test itself: noise clipped, resampled in a window, axes independent, off centre, or another's."""
    n = 200_000
    hull = shape("disc")
    mechanism = make(hull, 1)
    cells = Cells(mechanism, n)
    right = mechanism.noise(n, ReplayBits(11))
    assert cells.p_value(right) > 1e-3
    box = np.stack([right[:, 0], np.random.default_rng(0).permutation(right[:, 1])], axis=1)
    wrong = {
        "clipped": np.clip(right, -12, 12),
        "resampled in a window": right[np.abs(right).max(axis=1) <= 15],
        "independent axes": box,
        "shifted once in eight": np.where(np.arange(n)[:, None] % 8 == 0, right + 1, right),
        "one quarter more often": np.vstack([right, np.abs(right[: n // 20])]),
        "drawn for the other law": Staircase(hull, 1, 0).noise(n, ReplayBits(12)),
    }
    for name, noise in wrong.items():
        assert cells.p_value(noise) < _ALPHA, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["interval", "disc", "thin", "octahedron"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2**10), Fraction(1, 2**16)])
def test_small_epsilon_comes_to_the_continuous_law(name, epsilon):
    """ε·N ~ Gamma(k) up to the fineness of the lattice, which is far below what n draws can see; its far tail too."""
    hull, n = shape(name), 60_000
    for mechanism in (DiscreteKNorm(hull, epsilon), Staircase(hull, epsilon, Fraction(1, 2))):
        noise = mechanism.noise(n, ReplayBits(21))
        sizes = np.array(hull.norm(noise.astype(float))) * float(epsilon)
        assert stats.kstest(sizes, stats.gamma(hull.rank).cdf).pvalue > 1e-3
        assert stats.kstest(sizes * 1.05, stats.gamma(hull.rank).cdf).pvalue < _ALPHA
        assert stats.binomtest(int((sizes > 8).sum()), n, stats.gamma(hull.rank).sf(8)).pvalue > 1e-3
        assert np.abs((noise > 0).mean(axis=0) - 0.5).max() < 4 * 0.5 / math.sqrt(n) + float(epsilon)


@pytest.mark.parametrize(("d", "n", "few"), [(4, 40_000, False), (7, 6_000, False), (7, 6_000, True)])
def test_bodies_of_many_dimensions(d, n, few, monkeypatch):
    """Slanted hulls in four and seven dimensions, and a body that is known by a few facets alone."""
    if few:
        monkeypatch.setattr("dphmm.sensitivity.exact_hull._MOST_POINTS", {})
    points = np.random.default_rng(d).integers(-4, 5, size=(d + 3, d))
    hull = hull_of_points(points)
    assert hull.rank == d and (hull.hull_vertices is None) == few == (not hull.exact)
    for mechanism in (DiscreteKNorm(hull, "0.01"), Staircase(hull, "0.01", "0.5")):
        noise = mechanism.noise(n, ReplayBits(24))
        sizes = np.array(hull.norm(noise.astype(float))) * 0.01
        assert stats.kstest(sizes, stats.gamma(d).cdf).pvalue > 1e-3
        assert math.isfinite(mechanism.expected_error)
        assert all(mechanism.loss_lattice(v) <= mechanism.epsilon for v in points)


def test_small_epsilon_keeps_its_stairs():
    """At ε = 2**-10 several steps share a level; within it they still differ by e^-ε each."""
    mechanism = Staircase(shape("interval"), Fraction(1, 2**10), Fraction(1, 2))
    n = 3_000_000
    noise = mechanism.noise(n, ReplayBits(22))[:, 0]
    steps = np.maximum(0, np.ceil(np.abs(noise) / 3 - 0.5)).astype(int)
    within_level = steps % 128
    # Steps are geometric, so the share of each place within a level falls by e^-ε.
    counts = np.bincount(within_level[steps > 0], minlength=128)
    places = np.arange(128)
    weights = np.exp(-(places + np.where(places == 0, 128, 0)) / 1024)
    expected = weights / weights.sum() * counts.sum()
    assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 127) > 1e-3
    flat = np.full(128, counts.sum() / 128)
    assert stats.chi2.sf(((counts - flat) ** 2 / flat).sum(), 127) < _ALPHA


def test_large_epsilon_stays_at_the_answer():
    for mechanism in mechanisms(shape("interval"), 2**10):
        level_0 = 0 if mechanism.name == "discrete-knorm" else math.floor(3 * mechanism.offset)
        noise = mechanism.noise(5000, ReplayBits(23))
        assert np.abs(noise).max() == level_0
        if level_0 == 2:
            assert stats.chisquare(np.unique(noise, return_counts=True)[1]).pvalue > 1e-3


# Continuous mechanisms--

N = 100_000


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_the_norm_of_continuous_noise_is_gamma_of_the_rank(name):
    hull = shape(name)
    kinds = [KNorm] if hull.rank < hull.dimension else [KNorm, PlanarIsotropic]
    for kind in kinds:
        noise = kind(hull, 2).noise(N, ReplayBits(31))
        sizes = np.asarray(hull.norm(noise)) * 2
        assert stats.kstest(sizes, stats.gamma(hull.rank).cdf).pvalue > 1e-3
        for wrong in (stats.gamma(hull.rank + 1), stats.gamma(hull.rank, scale=1.05)):
            assert stats.kstest(sizes, wrong.cdf).pvalue < 1e-9


@pytest.mark.parametrize("kind", [KNorm, PlanarIsotropic])
@pytest.mark.parametrize("name", ["running", "thin", "octahedron", "slanted box"])
def test_the_direction_of_continuous_noise_is_uniform_on_the_body(kind, name):
    """The second moment of noise is (k+1)(k+2)/ε² times that of the uniform law on K, entry by entry."""
    hull = shape(name)
    noise = kind(hull, 1).noise(400_000, ReplayBits(32))
    k = hull.rank
    expected = (k + 1) * (k + 2) * hull.second_moment
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(noise.T @ noise / len(noise) - expected) / scale).max() < 0.02


def test_direction_and_size_of_continuous_noise_are_independent():
    hull = shape("example")
    noise = KNorm(hull, 1).noise(N, ReplayBits(33))
    sizes = np.asarray(hull.norm(noise))
    angles = np.arctan2(noise[:, 1], noise[:, 0])
    table = np.histogram2d(sizes.argsort().argsort(), angles.argsort().argsort(), bins=8)[0]
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_laplace_noise_is_laplace_on_every_axis():
    noise = Laplace(5, 2).noise(N, 3, ReplayBits(34))
    for axis in noise.T:
        assert stats.kstest(axis, stats.laplace(scale=2.5).cdf).pvalue > 1e-3
        assert stats.kstest(axis, stats.laplace(scale=2.5 * 1.05).cdf).pvalue < _ALPHA
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 5 / math.sqrt(N)


def test_laplace_is_the_knorm_mechanism_of_a_cross_polytope():
    cross = hull_of_points([(5, 0), (0, 5)])
    noise = KNorm(cross, 1).noise(N, ReplayBits(35))
    assert stats.kstest(noise[:, 0], stats.laplace(scale=5).cdf).pvalue > 1e-3
    z, answers = (3.0, 4.0), np.array([(0.0, 0.0), (5.0, 4.0), (-1.0, 9.0)])
    np.testing.assert_allclose(KNorm(cross, 1).log_likelihood(z, answers), Laplace(5, 1).log_likelihood(z, answers))
