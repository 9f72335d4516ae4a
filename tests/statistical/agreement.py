"""The compiled path against the plain one: the same noises from the same words, and as many of them read."""

from __future__ import annotations

import numpy as np

from dphmm.samplers import ReplayBits
from statistical.adversary import Adversary, Served


class Counted:
    def __init__(self, seed):
        self.bits, self.served = ReplayBits(seed), 0

    def uint64(self, n):
        self.served += n
        return self.bits.uint64(n)


def left_open(sampler):
    """Count the attempts that the compiled path hands on."""
    count, attempt = [0], sampler.attempt

    def counted(reader):
        count[0] += 1
        return attempt(reader)

    sampler.attempt = counted
    return count


def agree_on_random_words(sampler, seed, m):
    compiled, plain, single = Counted(seed), Counted(seed), Counted(seed)
    noise = sampler.draw(m, compiled)
    np.testing.assert_array_equal(noise, sampler.draw_plainly(m, plain))
    np.testing.assert_array_equal(noise, np.vstack([sampler.draw(1, single) for _ in range(m)]))
    assert compiled.served == plain.served == single.served


def agree_on_written_words(sampler, seed, m):
    """Returns how many attempts were left open, and how many words the adversary wrote."""
    adversary = Adversary(sampler, seed)
    noise = adversary.play(m)
    compiled = Served(adversary.written)
    count = left_open(sampler)
    np.testing.assert_array_equal(sampler.draw(m, compiled), noise)
    assert compiled.served == len(adversary.written)
    return count[0], len(adversary.written)
