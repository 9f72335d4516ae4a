"""The integer noises have exactly the stated laws, and the fast decisions are the exact ones.

Three ways in which that could be false: the refusal step could leave another law than the one it is for (checked as an
identity between rationals), the float decisions could differ from the exact ones on some word (checked word by word,
on words made to be undecided too), or the parts could be put together wrongly (chi-square against the closed form,
level 1e-6 per law with fixed words; a scale off by 10 % is rejected in the same test, so its power there is 1).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dphmm.errors import InvalidInput
from dphmm.samplers.body import LARGEST_SCALE, DiscreteGaussian, LaplaceSampler
from dphmm.samplers.entropy import ReplayBits
from dphmm.samplers.uniform import LazyUniform, WordReader

N = 200_000
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40), Fraction(1999, 7)]
VARIANCES = [Fraction(1, 10), Fraction(1), Fraction(10, 3), Fraction(50), Fraction(12345, 7)]


def laplace_pmf(z, scale):
    q = math.exp(-1 / float(scale))
    return (1 - q) / (1 + q) * q ** np.abs(z)


def gaussian_pmf(z, variance):
    reach = np.arange(-2000, 2001)
    weights = np.exp(-(reach**2) / (2 * float(variance)))
    return np.exp(-(z**2) / (2 * float(variance))) / weights.sum()


def p_value(drawn, pmf):
    """Of a chi-square test with cells of at least 20 expected draws, tails pooled."""
    reach = int(np.abs(drawn).max()) + 1
    z = np.arange(-reach, reach + 1)
    expected = len(drawn) * pmf(z.astype(float))
    counts = np.bincount(drawn + reach, minlength=len(z))
    inner = np.flatnonzero(expected >= 20)
    first, last = inner[0], inner[-1] + 1
    seen = np.concatenate([[counts[:first].sum()], counts[first:last], [counts[last:].sum()]])
    wanted = np.concatenate([[0.0], expected[first:last], [0.0]])
    wanted[0] = wanted[-1] = (len(drawn) - wanted.sum()) / 2
    if wanted[0] < 20:
        seen, wanted = seen[1:-1], wanted[1:-1] * seen[1:-1].sum() / wanted[1:-1].sum()
    return stats.chisquare(seen, wanted).pvalue


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_has_its_law_and_ten_per_cent_off_is_another(scale):
    drawn = LaplaceSampler(scale).draw(N, ReplayBits(1))
    assert p_value(drawn, lambda z: laplace_pmf(z, scale)) > 1e-6
    assert p_value(drawn, lambda z: laplace_pmf(z, scale * Fraction(9, 10))) < 1e-6


@pytest.mark.parametrize("variance", VARIANCES)
def test_discrete_gaussian_has_its_law_and_ten_per_cent_off_is_another(variance):
    drawn = DiscreteGaussian(variance).draw(N, ReplayBits(2))
    assert p_value(drawn, lambda z: gaussian_pmf(z, variance)) > 1e-6
    assert p_value(drawn, lambda z: gaussian_pmf(z, variance * Fraction(9, 10))) < 1e-6


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(2) ** 90, Fraction(3, 2**19)])
def test_refusal_leaves_the_gaussian_exactly(variance):
    """Proposal and acceptance together have exponent z²/(2·variance), but for one constant: as rationals."""
    law = DiscreteGaussian(variance)
    proposal = law._proposals.scale
    constants = {
        abs(z) / proposal + law.exponent(z) - Fraction(z * z) / (2 * variance)
        for z in [*range(-50, 51), 10**6, -(2**40), 2**60]
    }
    assert len(constants) == 1
    assert all(law.exponent(z) >= 0 for z in range(-50, 51))


@pytest.mark.parametrize("scale", SCALES)
def test_the_interval_is_the_scale(scale):
    """epsilon·N(z) of the sampler is |z|/scale: as rationals."""
    sampler = LaplaceSampler(scale)._sampler
    for z in (1, 2, 17, 10**9):
        norm = max(Fraction(v, b) for v, b in zip(sampler._body.values([z]), sampler._body.offsets, strict=True))
        assert sampler._levels.rate * norm == z / Fraction(scale)


class Words:
    """Words that are random, or at the ends of their range, or at the threshold of an acceptance."""

    def __init__(self, seed, special):
        self.bits, self.special = ReplayBits(seed), special

    def uint64(self, n):
        words = self.bits.uint64(n).copy()
        chosen = self.bits.uint64(n)
        for i in range(n):
            if int(chosen[i]) % 3 == 0:
                words[i] = self.special[int(chosen[i] >> np.uint64(8)) % len(self.special)]
        return words


def thresholds(law):
    """First words of exp(-x) for small z, and the words beside them."""
    found = [0, 1, 2**64 - 1, 2**64 - 2]
    for z in range(6):
        word = int(Fraction(math.exp(-float(law.exponent(z)))) * 2**64)
        found += [min(max(word + k, 0), 2**64 - 1) for k in (-(2**12), -1, 0, 1, 2**12)]
    return np.array(found, dtype=np.uint64)


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(2) ** 90, Fraction(3, 2**19)])
def test_float_decisions_are_the_exact_ones(variance):
    law = DiscreteGaussian(variance)
    proposed = np.concatenate([np.arange(-40, 41), law._proposals.draw(2000, ReplayBits(3))])
    for seed in range(3):
        words = Words(seed, thresholds(law)).uint64(len(proposed))
        kept, open_ = law._certain(words, proposed)
        assert not (kept & open_).any()
        for i in np.flatnonzero(~open_):
            exact = LazyUniform(int(words[i]), WordReader(ReplayBits(9))).below_exp(law.exponent(int(proposed[i])))
            assert kept[i] == exact


def test_words_at_a_threshold_are_left_open():
    law = DiscreteGaussian(Fraction(10, 3))
    proposed = np.repeat(np.arange(6), 2)
    words = np.array([int(math.exp(-float(law.exponent(int(z)))) * 2**64) for z in proposed], dtype=np.uint64)
    assert law._certain(words, proposed)[1].all()


def test_deciding_all_words_exactly_draws_the_same(monkeypatch):
    law = DiscreteGaussian(Fraction(10, 3))
    fast = law.draw(3000, ReplayBits(5))
    monkeypatch.setattr(law, "_certain", lambda words, z: (np.zeros(len(z), bool), np.ones(len(z), bool)))
    np.testing.assert_array_equal(law.draw(3000, ReplayBits(5)), fast)


@pytest.mark.parametrize("law", [LaplaceSampler(Fraction(LARGEST_SCALE)), DiscreteGaussian(Fraction(2) ** 98)])
def test_the_widest_noise_stays_in_its_integers(law):
    drawn = law.draw(20_000, ReplayBits(7))
    assert np.abs(drawn).max() < 2**56
    assert np.abs(drawn).std() > 0
    assert np.abs(float(np.std(drawn.astype(float))) / law.deviation - 1) < 0.03


@pytest.mark.parametrize("law", [LaplaceSampler, DiscreteGaussian])
def test_deviations_are_those_of_the_law(law):
    for parameter in (Fraction(1, 2), Fraction(3), Fraction(200)):
        z = np.arange(-6000, 6001).astype(float)
        pmf = laplace_pmf(z, parameter) if law is LaplaceSampler else gaussian_pmf(z, parameter)
        true = math.sqrt((pmf * z * z).sum())
        stated = law(parameter).deviation
        assert true <= stated * (1 + 1e-9)
        if law is LaplaceSampler or parameter > 2:
            assert stated == pytest.approx(true, rel=1e-9)


def test_nothing_is_drawn_for_nothing():
    assert DiscreteGaussian(3).draw(0, ReplayBits(1)).shape == (0,)
    assert LaplaceSampler(3).draw(0, ReplayBits(1)).shape == (0,)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), True, "x", 2**51, Fraction(1, 2**11)])
def test_other_scales_are_refused_in_one_line(scale):
    with pytest.raises(InvalidInput, match="scale: got") as told:
        LaplaceSampler(scale)
    assert "\n" not in str(told.value)
    if scale != 2**51:
        with pytest.raises(InvalidInput, match="variance: got"):
            DiscreteGaussian(scale if scale != Fraction(1, 2**11) else Fraction(1, 2**21))
