"""The compiled loop against the plain path, word for word; and the plain path against the definition."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from crafted_bits import CountedBits, CraftedBits
from dphmm.samplers.body import NOISE_BOUND, LatticeBody, LatticeSampler, add_noise
from dphmm.samplers.entropy import ReplayBits
from dphmm.samplers.uniform import WordReader, exp_bracket

DISC = ([(2, 1), (1, 2), (-1, 2), (-2, 1)], [6, 6, 6, 6])
SEGMENT = ([(1,)], [3])
THIN = ([(1, 0), (-101, 100)], [100, 101])
OCTAHEDRON = ([(1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)], [3, 3, 3, 3])
BODIES = {"disc": DISC, "segment": SEGMENT, "thin": THIN, "octahedron": OCTAHEDRON}


def body(normals, offsets, basis=None):
    """A LatticeBody with half-widths from a float linear program, rounded up: enough for a test."""
    from scipy.optimize import linprog

    a = np.array(normals, dtype=np.int64)
    b = np.array(offsets, dtype=np.int64)
    k = a.shape[1]

    def half_width(row):
        best = linprog(
            -np.array(row, float),
            A_ub=np.vstack([a, -a]),
            b_ub=[*offsets, *offsets],
            bounds=[(None, None)] * k,
        )
        return Fraction(math.ceil(-best.fun * 2**20 * (1 + 1e-9)), 2**20)

    return LatticeBody.of(a, b, None, half_width, np.eye(k, dtype=np.int64) if basis is None else basis)


def samplers_of(shape, epsilon):
    yield LatticeSampler.knorm(shape, epsilon)
    for offset in (Fraction(0), Fraction(1, 3), Fraction(99, 100)):
        yield LatticeSampler.staircase(shape, epsilon, offset)


EPSILONS = [Fraction(1), Fraction(1, 1000), Fraction(7, 3), Fraction(30), Fraction(1, 2**20), Fraction(2**10)]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_compiled_and_plain_paths_draw_the_same_from_the_same_words(name, epsilon):
    shape = body(*BODIES[name])
    for sampler in samplers_of(shape, epsilon):
        compiled, plain = CountedBits(ReplayBits(1)), CountedBits(ReplayBits(1))
        np.testing.assert_array_equal(sampler.draw(300, compiled), sampler.draw_plainly(300, plain))
        assert compiled.served == plain.served


@pytest.mark.parametrize("name", ["disc", "segment"])
def test_one_call_for_many_is_many_calls_for_one(name):
    for sampler in samplers_of(body(*BODIES[name]), Fraction(1, 2)):
        whole = sampler.draw(500, ReplayBits(2))
        bits = ReplayBits(2)
        np.testing.assert_array_equal(np.vstack([sampler.draw(1, bits) for _ in range(500)]), whole)
        bits = ReplayBits(2)
        np.testing.assert_array_equal(np.vstack([sampler.draw(n, bits) for n in (0, 3, 100, 396, 1)]), whole)


def threshold_words(sampler):
    """Words at which decisions are undecided: first digits of level thresholds, of last acceptances, of
    thirds.
    """
    levels = sampler._levels
    sums = levels._sums_for(64)
    runs = [[0], [0, 0], [2**64 - 1], [2**64 - 1] * 3]
    for low in sums.low[:8]:
        digits = low * 2**128 // sums.total_high
        if digits < 2**128 - 2**64:
            runs += [[digits >> 64], [digits >> 64, digits % 2**64]]
    for n in range(3, 15, 2):
        runs += [[2**64 * i // n] for i in range(1, n)]
    for x in (Fraction(0), Fraction(1, 1000), sampler._last or 0):
        digits = min(exp_bracket(Fraction(x), 128)[0], 2**128 - 1)
        runs += [[digits >> 64], [(digits >> 64) - 1, 5], [digits >> 64, digits % 2**64]]
    return runs


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 1000), Fraction(20)])
def test_the_paths_agree_on_words_crafted_to_be_undecided(name, epsilon):
    shape = body(*BODIES[name])
    for sampler in samplers_of(shape, epsilon):
        special = threshold_words(sampler)
        compiled, plain = CountedBits(CraftedBits(3, special)), CountedBits(CraftedBits(3, special))
        open_draws = _record_plain_attempts(sampler)
        drawn = sampler.draw(300, compiled)
        assert len(open_draws) >= 10
        np.testing.assert_array_equal(drawn, sampler.draw_plainly(300, plain))
        assert compiled.served == plain.served


def _record_plain_attempts(sampler):
    calls = []
    original = sampler.attempt

    def recorded(reader):
        calls.append(reader)
        return original(reader)

    sampler.attempt = recorded
    return calls


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_table_cut_short_changes_nothing(kept):
    """The compiled path hands on what its table does not reach: first levels only, or none at all."""
    shape = body(*DISC)
    for sampler in samplers_of(shape, Fraction(1)):
        whole = sampler.draw(200, ReplayBits(4))
        plan = sampler._compiled
        sampler.__dict__["_compiled"] = replace(
            plan, low=plan.low[:kept], high=plan.high[:kept], half_widths=plan.half_widths[:kept]
        )
        np.testing.assert_array_equal(sampler.draw(200, ReplayBits(4)), whole)


def test_bodies_beyond_64_bits_are_drawn_by_the_plain_path():
    huge = LatticeBody(
        ((2**61 - 1, 3), (5, 2**61 - 1)), (2**62, 2**62 - 7), (Fraction(2), Fraction(2)), ((1, 0), (0, 1))
    )
    sampler = LatticeSampler.knorm(huge, Fraction(1))
    assert len(sampler._compiled.low) == 0
    drawn = sampler.draw(400, ReplayBits(5))
    assert np.abs(drawn).max() > 2 and np.abs(drawn.mean(axis=0)).max() < 1.0


def test_noise_and_sums_are_kept_within_their_bounds_as_post_processing():
    wide = LatticeBody(((1,),), (2**53,), (Fraction(2**53),), ((1,),))
    noise = LatticeSampler.knorm(wide, Fraction(1, 2**20)).draw(50, ReplayBits(6))
    assert np.abs(noise).max() == NOISE_BOUND
    images = np.array([[2**53], [-(2**53)], [0]])
    for image in images:
        kept = add_noise(image[None], noise)
        true = [max(-(2**61), min(2**61, int(image[0]) + int(n))) for n in noise[:, 0]]
        assert kept[:, 0].tolist() == true
    # Nothing at the bound tells the images apart.
    assert len({tuple(add_noise(image[None], np.array([[NOISE_BOUND]]))[0]) for image in images}) == 1


def test_words_are_never_fetched_without_being_read():
    sampler = LatticeSampler.knorm(body(*DISC), Fraction(1))
    bits = CountedBits(ReplayBits(7))
    sampler.draw(1000, bits)
    reader = WordReader(ReplayBits(7))
    noises = attempts = 0
    while noises < 1000:
        noises += sampler.attempt(reader) is not None
        attempts += 1
    assert bits.served == attempts * sampler.words_per_attempt
    assert attempts < 2000


def test_an_embedding_carries_noise_to_the_span():
    flat = body(*SEGMENT, basis=np.array([[2], [-3]]))
    noise = LatticeSampler.staircase(flat, Fraction(1), Fraction(0)).draw(500, ReplayBits(1))
    assert (noise[:, 0] * 3 + noise[:, 1] * 2 == 0).all() and (noise[:, 0] % 2 == 0).all()


def test_attempts_are_few_even_for_thin_and_wide_bodies_at_any_epsilon():
    for name, (normals, offsets) in BODIES.items():
        shape = body(normals, offsets)
        for epsilon in (Fraction(1, 2**20), Fraction(1), Fraction(4), Fraction(100)):
            for sampler in (
                LatticeSampler.knorm(shape, epsilon),
                LatticeSampler.staircase(shape, epsilon, Fraction(1, 2)),
            ):
                bits = CountedBits(ReplayBits(8))
                sampler.draw(2000, bits)
                assert bits.served / sampler.words_per_attempt / 2000 < 12, (name, epsilon)
