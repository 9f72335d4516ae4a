"""Words written by an adversary who knows the sampler: every decision is put on, or a hair beside, its threshold.

Each attempt of the plain path is played with words made while it runs: the first word beside a level's threshold, then
coordinates beside the borders of their cells, then the last acceptance beside exp(-ξ) of the point that came out. Words
that a decision asks for in addition go on with the digits of the threshold, or jump to one end.
"""

from __future__ import annotations

import random

import numpy as np

from dphmm.samplers.uniform import WordReader, exp_bracket

_WORDS = 2**64
_DEPTH = 192
#: Distances from a threshold: in words, in units of 2⁻⁵³ of the floats' words, and around the margins of the floats.
NUDGES = [0, 1, -1, 2, -2, *(s * (i << 11) + e for i in (1, 2, 3, 8, 64) for s in (1, -1) for e in (0, 1, -1))]
FAR = [s * 2**b + e for b in (19, 20, 21, 24, 28) for s in (1, -1) for e in (0, 1)]


class Adversary:
    """Bits that are written word by word; ``written`` can be served again."""

    def __init__(self, sampler, seed):
        self.sampler, self.chance = sampler, random.Random(seed)
        self.written: list[int] = []
        sums = sampler._levels._sums_for(_DEPTH)
        self.levels = [low * 2**_DEPTH // sums.total_high for low in sums.low]
        self.plan: list[int] = []
        self.beyond: list[int] = []

    def uint64(self, n):
        assert n == 1, "the plain path reads word by word"
        word = self._own() if len(self.plan) < self.sampler.words_per_attempt else self._more()
        self.written.append(word)
        return np.array([word], dtype=np.uint64)

    def play(self, m):
        """Attempts until m noises have come."""
        noises = []
        while len(noises) < m:
            self.plan = []
            noise = self.sampler.attempt(WordReader(self))
            if noise is not None:
                noises.append(noise)
        return np.array(noises, dtype=np.int64).reshape(m, self.sampler.dimension)

    # -- words of an attempt ----------------------------------------------------------------------------------------

    def _own(self):
        at = len(self.plan)
        if self.chance.random() < 0.4:
            word = self.chance.choice([0, _WORDS - 1, 2**63, *[self.chance.getrandbits(64)] * 5])
        elif at == 0:
            word = self._beside(self.levels[self._likely_level()])
        elif at <= self.sampler._body.rank:
            side = 2 * self._half_widths()[at - 1] + 1
            word = self._beside(-(-(self.chance.randrange(side) << _DEPTH) // side))
        else:
            word = self._beside(exp_bracket(self.sampler._last_exponent(self._values()), _DEPTH)[0])
        self.plan.append(word)
        return word

    def _more(self):
        """More digits: those of the last threshold, one beside, or an end."""
        digits = self.beyond.pop(0) if self.beyond else 0
        return self.chance.choice([digits, max(digits - 1, 0), min(digits + 1, _WORDS - 1), 0, _WORDS - 1])

    def _beside(self, threshold):
        """A first word beside a threshold over 2**_DEPTH; what follows it is kept for decisions that read on."""
        self.beyond = [threshold >> shift & (_WORDS - 1) for shift in (64, 0)]
        nudge = self.chance.choice(NUDGES if self.chance.random() < 0.8 else FAR)
        return min(max((threshold >> 128) + nudge, 0), _WORDS - 1)

    def _likely_level(self):
        """One of the levels that take a share of the mass, now and then one far out."""
        u = self.chance.getrandbits(_DEPTH)
        far = self.chance.random() < 0.1
        return self.chance.randrange(len(self.levels)) if far else int(np.searchsorted(self.levels, u))

    # -- what the attempt will do with the words so far --------------------------------------------------------------

    def _half_widths(self):
        level = int(np.searchsorted(self.levels, self.plan[0] << 128, side="right"))
        return self.sampler._levels.half_widths(level)

    def _values(self):
        sides = [2 * half + 1 for half in self._half_widths()]
        x = [(word * side >> 64) - side // 2 for word, side in zip(self.plan[1:], sides, strict=False)]
        return self.sampler._body.values(x)


class Served:
    """Given words, then random ones; counts what was read."""

    def __init__(self, words, seed=0):
        self.words, self.chance, self.served = words, random.Random(seed), 0

    def uint64(self, n):
        given = self.words[self.served : self.served + n]
        self.served += n
        return np.array(given + [self.chance.getrandbits(64) for _ in range(n - len(given))], dtype=np.uint64)
