"""How often an adversary who knows only the laws guesses the state from one answer: by drawing, under equal odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dphmm.mechanisms.base import LatticeMechanism
from dphmm.types import Bits, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Laws:
    """The law of each of some states (k,): where it is answered from, and with which noise."""

    images: IntArray
    mechanisms: Sequence[LatticeMechanism]

    def likelihoods(self, z: IntArray) -> FloatArray:
        """log Pr(z | state) of every state."""
        return np.array(
            [
                float(mechanism.log_likelihood_lattice(z, image[None])[0]) - mechanism.log_normaliser
                for image, mechanism in zip(self.images, self.mechanisms, strict=True)
            ]
        )

    def guesses(self, of: int, draws: int, bits: Bits | None) -> Guesses:
        """Draw answers of one state and guess."""
        z = self.mechanisms[of].answer(np.repeat(self.images[of][None], draws, axis=0), bits)
        right = certain = 0
        share = 0.0
        for answer in z:
            logs = self.likelihoods(answer)
            weights = np.exp(logs - logs.max())
            posterior = weights / weights.sum()
            right += int(np.argmax(posterior)) == of
            certain += int(np.isfinite(logs).sum()) == 1
            share += float(posterior[of])
        return Guesses(right / draws, certain / draws, share / draws)


@dataclass(frozen=True)
class Guesses:
    """How often guessing the true state from one answer succeeds, as shares of the draws.

    ``right``: the likeliest state was the true one. ``certain``: no other state could have given the answer. Also the
    mean posterior probability of the truth.
    """

    right: float
    certain: float
    probability: float
