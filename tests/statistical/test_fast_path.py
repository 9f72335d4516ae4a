"""The compiled loop draws what the plain path draws, from the same words, reading as many: swept over random samplers.

The plain path decides in integers and is the definition (docs/adr/0002-lazy-uniform-sampling.md). The loop may leave a
decision open, never take another one. Fails if a margin is too small, a product passes 64 bits, a word is read twice or
in another order. Bodies of ranks 1 to 4, thin, slanted, and wide up to where 64 bits end; ε from 2⁻²⁰ to 2¹⁰; words at
random and words that an adversary writes onto every threshold.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from statistical.adversary import Served
from statistical.agreement import agree_on_random_words, agree_on_written_words
from statistical.random_samplers import samplers

BLOCKS = range(0, 32, 16)
LONG_BLOCKS = range(1000, 3000, 100)


@pytest.mark.parametrize("block", BLOCKS)
def test_random_words(block):
    for seed in range(block, block + 16):
        for sampler in samplers(seed):
            agree_on_random_words(sampler, seed, 8)


@pytest.mark.parametrize("block", BLOCKS)
def test_written_words(block):
    opened = written = 0
    for seed in range(block, block + 16):
        for sampler in samplers(seed):
            count, words = agree_on_written_words(sampler, seed, 8)
            opened, written = opened + count, written + words
    assert opened > 100, "the adversary finds thresholds"


@pytest.mark.parametrize("word", [0, 2**64 - 1, 2**63, 2**63 - 1, 2**64 // 3])
def test_one_word_for_ever_then_random_ones(word):
    for seed in range(16):
        for sampler in samplers(seed):
            words = [word] * 6
            compiled, plain = Served(words, seed), Served(words, seed)
            np.testing.assert_array_equal(sampler.draw(5, compiled), sampler.draw_plainly(5, plain))
            assert compiled.served == plain.served


def test_the_sweep_meets_what_it_is_for():
    """Every rank with every kind of body; tables whole, cut by 64 bits, and empty; every kind of last acceptance."""
    tables, kinds = set(), set()
    for seed in range(32):
        for sampler in samplers(seed):
            plan, whole = sampler._compiled, len(sampler._levels.table.low)
            tables.add("whole" if len(plan.low) == whole else "cut" if len(plan.low) else "empty")
            kinds.add((plan.kind, sampler._body.rank))
    assert tables == {"whole", "cut", "empty"}
    assert kinds == {(kind, rank) for kind in (0, 1, 2) for rank in (1, 2, 3, 4)}


def test_boxes_hold_their_body_at_any_size():
    """Half-widths in integers: floor(r·w) at least, at radii and widths far beyond floats."""
    for seed in range(32):
        for sampler in samplers(seed):
            levels, offset = sampler._levels, Fraction(sampler._allowances[0], sampler._body.offsets[0])
            for level in (0, 1, 7, 2**20, 2**40 + 1):
                radius = sampler._stride * level + offset
                for half, width in zip(levels.half_widths(level), sampler._body.widths, strict=True):
                    assert half >= math.floor(radius * width)
                    assert half <= (radius + Fraction(1, 1000) + 1) * width * Fraction(1001, 1000) + 1


@pytest.mark.long
@pytest.mark.parametrize("block", LONG_BLOCKS)
def test_a_long_sweep(block):
    """4,000 samplers, words at random and written."""
    for seed in range(block, block + 100):
        for sampler in samplers(seed):
            agree_on_random_words(sampler, seed, 20)
            agree_on_written_words(sampler, seed, 20)
