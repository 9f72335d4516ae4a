"""One battery for continuous K-norm noise: ε‖x‖ ~ Gamma(k, 1), direction by the cone measure, the two independent.

The cone measure is made here from the corners of the body (scipy's hull), not from the sampler's simplices.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.spatial import ConvexHull
from scipy.stats import gamma

from statistical.bounds import ALPHA, cells_bound, gamma_sum_bound, ks_bound, share_bound, uniform_distance


def draws_needed(k, factor=1.05, beta=0.01):
    """Draws at which the sum of ε‖x‖, exactly Gamma(nk, 1), shows a radius off by ``factor`` with power 1 - beta."""
    n = 1000
    while not all(_power(n * k, s) >= 1 - beta for s in (factor, 2 - factor)):
        n += 1000
    return n


def _power(shape, factor):
    """Of rejecting a sum that is Gamma(shape, 1) / factor, in both tails at ALPHA."""
    low, high = gamma.ppf(ALPHA / 2, shape), gamma.isf(ALPHA / 2, shape)
    return gamma.cdf(low * factor, shape) + gamma.sf(high * factor, shape)


class ContinuousCheck:
    """The battery for a body with corners (v, k), full-dimensional in its own coordinates, at ε."""

    def __init__(self, corners, epsilon):
        self.corners, self.epsilon, self.k = np.asarray(corners, dtype=float), float(epsilon), np.shape(corners)[1]

    @cached_property
    def _simplices(self):
        """Corners (s, k, k) of the simplices of the boundary."""
        if self.k == 1:
            return np.array([[[self.corners.max()]], [[self.corners.min()]]])
        return self.corners[ConvexHull(self.corners).simplices]

    @cached_property
    def _inverses(self):
        return np.linalg.inv(self._simplices)

    @cached_property
    def _weights(self):
        volumes = np.abs(np.linalg.det(self._simplices))
        return volumes / volumes.sum()

    def rareness(self, noise):
        """Bounds on P-values by claim, of noise rows (n, k) in the coordinates of the corners."""
        n = len(noise)
        parts = np.einsum("nk,skj->nsj", noise, self._inverses)
        simplex = parts.min(axis=2).argmax(axis=1)
        own = parts[np.arange(n), simplex]
        sizes = self.epsilon * own.sum(axis=1)
        radius = gamma.cdf(sizes, self.k)
        # Within a simplex the shares of the corners are uniform, so each corner has the largest share equally often.
        cell = self.k * simplex + own.argmax(axis=1)
        quarter = np.minimum((4 * radius).astype(int), 3)
        masses = np.repeat(self._weights, self.k) / self.k
        joint = np.bincount(4 * cell + quarter, minlength=4 * len(masses))
        first = np.cumsum(self._weights) - self._weights
        found = {
            "sum of norms": gamma_sum_bound(sizes.sum(), n * self.k),
            "norm": ks_bound(uniform_distance(radius), n),
            "direction by norm": cells_bound(joint, np.repeat(masses / 4, 4)),
            "sign": share_bound(int((noise[:, 0] > 0).sum()), n),
            "consecutive pairs": self._pairs(quarter),
        }
        if self.k == 2:
            along = first[simplex] + self._weights[simplex] * own[:, 0] / own.sum(axis=1)
            found["direction"] = ks_bound(uniform_distance(np.clip(along, 0, 1)), n)
        return found

    def rejected_by(self, noise):
        return {claim for claim, p in self.rareness(noise).items() if p < ALPHA}

    @staticmethod
    def _pairs(quarter):
        pairs = quarter[: len(quarter) // 2 * 2].reshape(-1, 2)
        return cells_bound(np.bincount(4 * pairs[:, 0] + pairs[:, 1], minlength=16), np.full(16, 1 / 16))
