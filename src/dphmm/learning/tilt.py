"""The M-step: a public matrix tilted by few factors, and matrices around it.

From state i a move to j has the public probability times a factor of its distance and one of its destination; a stay
has the factor of distance 0 and one of the place. Each factor is a pooled one times one of the slot. Factors have
Gamma(c, c) priors of mean 1: with all of them 1 the matrix is the public one. A factor is updated to (observed + c) /
(expected + c), where expected are the moves if the factor were 1. No update lowers the likelihood of the moves with the
prior, in logs of factors: minus the log of a row's sum is at least a linear function of the factors of one block.

Source: iterative scaling, Darroch and Ratcliff, Annals of Mathematical Statistics 43, 1972.
Proof: docs/proofs/learning-from-answers.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm import _kernels
from dphmm.markov.model import MarkovModel
from dphmm.types import FloatArray, IntArray

#: How many moves the priors of a factor are worth: of a distance, and of a place.
DISTANCE, PLACE = 1.0, 0.1
#: How many moves of each state its tilted row is worth beside those that are expected.
AROUND = 20.0
#: Sweeps over all factors in one M-step, and how often each updates those of places, which are slow to settle.
_SWEEPS, _OFTEN = 3, 3
#: Ends of the bins of distance, in units of the distance between neighbours.
_ENDS = (1.5, 2.5, 3.5, 5.5, 8.5)


@dataclass(frozen=True, eq=False)
class Tilt:
    """The factors' classes of the m stored moves of a public matrix, whose rows begin at ``starts`` (N + 1,).

    ``distance`` (m,): 0 for staying, then bins; ``place`` (m,): the destination, for staying S and the place.
    """

    public: FloatArray
    row: IntArray
    starts: IntArray
    distance: IntArray
    place: IntArray
    n_places: int

    @classmethod
    def of(cls, model: MarkovModel) -> Tilt:
        """The tilt of a model whose secrets are places of its space; one bin without answers or with labels."""
        matrix = model.matrix
        secrets = np.arange(model.n_states) if model.secrets is None else model.secrets
        row = np.repeat(np.arange(model.n_states), np.diff(matrix.indptr))
        before, after = secrets[row], secrets[matrix.indices]
        distance = np.ones(len(row), dtype=np.int64)
        if model.space is not None and not model.space.has_labels:
            points = model.space.own_answers
            apart = np.sqrt(((points[before] - points[after]) ** 2).sum(axis=1))
            unit = apart[apart > 0].min(initial=np.inf)
            distance = 1 + np.searchsorted(np.array(_ENDS) * unit, apart)
        stays = before == after
        distance[stays] = 0
        place = np.where(stays, model.n_secrets + after, after)
        return cls(matrix.data, row, matrix.indptr.astype(np.int64), distance, place, int(place.max()) + 1)

    def factors(self, slots: int) -> list[FloatArray]:
        """All factors 1: of distances, of distances by slot, of places, of places by slot."""
        bins = int(self.distance.max()) + 1
        return [
            np.ones((1, bins)),
            np.ones((slots, bins)),
            np.ones((1, self.n_places)),
            np.ones((slots, self.n_places)),
        ]

    def matrices(self, factors: list[FloatArray]) -> FloatArray:
        """The tilted matrices (K, m)."""
        weights = self._weights(factors)
        return np.asarray(weights / np.add.reduceat(weights, self.starts[:-1], axis=1)[:, self.row])

    def _weights(self, factors: list[FloatArray]) -> FloatArray:
        by_distance, by_place = factors[0] * factors[1], factors[2] * factors[3]
        return np.asarray(self.public * by_distance[:, self.distance] * by_place[:, self.place])

    def fitted(self, counts: FloatArray, factors: list[FloatArray]) -> list[FloatArray]:
        """The factors after three sweeps, given expected moves (K, m)."""
        factors = [factor.copy() for factor in factors]
        totals = np.add.reduceat(counts, self.starts[:-1], axis=1)
        kinds, priors = (self.distance, self.distance, self.place, self.place), (DISTANCE, DISTANCE, PLACE, PLACE)
        seen = [np.stack([np.bincount(kind, moves, int(kind.max()) + 1) for moves in counts]) for kind in kinds]
        for _ in range(_SWEEPS):
            for block in (0, 1, *(2, 3) * _OFTEN):
                factor = factors[block]
                pairs = [factors[0] * factors[1], factors[2] * factors[3]]
                by_kind, other = (pairs[0], pairs[1]) if block < 2 else (pairs[1], pairs[0])
                kind, beside = (kinds[0], kinds[2]) if block < 2 else (kinds[2], kinds[0])
                foreseen = np.zeros_like(by_kind)
                _kernels.learning.foreseen(self.public, self.starts, kind, beside, by_kind, other, totals, foreseen)
                observed = seen[block]
                if len(factor) == 1:
                    observed, foreseen = observed.sum(axis=0, keepdims=True), foreseen.sum(axis=0, keepdims=True)
                factor[:] = (observed + priors[block]) / (foreseen / factor + priors[block])
        return factors

    def log_prior(self, factors: list[FloatArray]) -> float:
        """The log of the factors' prior density, in logs of factors, up to a constant."""
        weights = (DISTANCE, DISTANCE, PLACE, PLACE)
        return sum(c * float((np.log(factor) - factor).sum()) for c, factor in zip(weights, factors, strict=True))

    def around(self, counts: FloatArray, matrices: FloatArray) -> FloatArray:
        """Matrices (K, m) of expected moves, beside tilted ones that are worth 20 moves of each state."""
        weights = counts + AROUND * matrices
        return np.asarray(weights / np.add.reduceat(weights, self.starts[:-1], axis=1)[:, self.row])
