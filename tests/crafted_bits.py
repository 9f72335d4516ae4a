"""Bits for tests: system bits of known words, counted ones, and words that sit on the thresholds of decisions."""

from __future__ import annotations

import os

import numpy as np

from dphmm.samplers import ReplayBits, SystemBits


def keyed_system_bits(seed):
    """The package's system bits, made to serve the words of a seed: what is drawn from them is not marked."""
    bits = SystemBits()
    bits._words_of = {os.getpid(): ReplayBits(seed)._words}
    return bits


class CountedBits:
    """Words of other bits; ``served`` says how many."""

    def __init__(self, bits):
        self.bits = bits
        self.served = 0

    def uint64(self, n):
        self.served += n
        return self.bits.uint64(n)


class CraftedBits:
    """Mostly random words, with runs of ``special`` ones mixed in, reproducibly."""

    def __init__(self, seed, special):
        self.bits = ReplayBits(seed)
        self.special = special
        self.queue = []

    def uint64(self, n):
        while len(self.queue) < n:
            chooser, plain = (int(w) for w in self.bits.uint64(2))
            pick = self.special[(chooser >> 8) % len(self.special)]
            self.queue.extend(pick if chooser % 4 == 0 else [plain])
        words, self.queue = self.queue[:n], self.queue[n:]
        return np.array(words, dtype=np.uint64)
