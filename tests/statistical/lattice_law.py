"""The exact law of lattice noise by its definition, at any ε: shells of the body, counted.

How many lattice points have N(v) = t/q (q the common denominator of the facets), a given leading facet and given
parities is, in each residue class of t modulo 2q, a polynomial of degree k - 1 in t > 0 (Ehrhart: the corners of the
body are lattice points). Points up to 2(k + 2) times the body are listed one by one; the polynomials run through the
first k shells of each class and must meet the next two. So no radius is out of reach, and no number here comes from
the sampler.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import comb

from dphmm.mechanisms import DiscreteKNorm, Staircase
from naive_mechanisms import shape


@dataclass(frozen=True)
class Case:
    """A mechanism by its definition: P(v) ∝ exp(-ε·N(v)), or exp(-ε·ceil+(N(v) - offset)) where there is an offset."""

    name: str
    epsilon: Fraction
    offset: Fraction | None = None

    def __str__(self):
        kind = "K-norm" if self.offset is None else f"staircase {self.offset}"
        return f"{self.name}, {kind}, ε {self.epsilon}"

    @cached_property
    def hull(self):
        return shape(self.name)

    def mechanism(self):
        if self.offset is None:
            return DiscreteKNorm(self.hull, self.epsilon)
        return Staircase(self.hull, self.epsilon, self.offset)

    def off_by(self, factor):
        return replace(self, epsilon=self.epsilon * factor)


class Points:
    """What a check looks at of noises (n, d): norm as an integer t over q, leading facet (of 2m), parities (of 2^k)."""

    def __init__(self, hull, noise):
        self.q = math.lcm(*(int(b) for b in hull.offsets))
        scaled = hull.normals * (self.q // hull.offsets)[:, None]
        self.y = noise @ hull.coordinates.T
        self.on_lattice = np.array_equal(self.y @ hull.basis.T, noise)
        values = self.y @ scaled.T
        self.leading = np.abs(values).argmax(axis=1)
        top = np.take_along_axis(values, self.leading[:, None], axis=1)[:, 0]
        self.t = np.abs(top)
        self.facet = 2 * self.leading + (top < 0)
        self.parity = (self.y & 1) @ (1 << np.arange(hull.rank))
        self.zero = ~self.y.any(axis=1)

    @property
    def positive(self):
        """Whether the first coordinate that is not 0 is positive."""
        first = np.take_along_axis(self.y, (self.y != 0).argmax(axis=1)[:, None], axis=1)[:, 0]
        return first > 0


def grid(hull, radius):
    """Every lattice vector (n, d) of the span in a box around radius·K."""
    reach = [math.ceil(radius * int(w)) for w in np.abs(hull.hull_vertices).max(axis=0)]
    axes = np.meshgrid(*(np.arange(-r, r + 1) for r in reach), indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1) @ hull.basis.T


class ShellCounts:
    """How many lattice points have t = q·N(v), by feature (leading facet and parities), at any t."""

    def __init__(self, hull):
        k = hull.rank
        self.parities = 2**k
        self.features = 2 * len(hull.normals) * self.parities
        radius = 2 * (k + 2)
        points = Points(hull, grid(hull, radius))
        self.q, self.period = points.q, 2 * points.q
        near = (points.t <= radius * self.q) & ~points.zero
        feature = (points.facet * self.parities + points.parity)[near]
        cell = (points.t[near] - 1) * self.features + feature
        listed = np.bincount(cell, minlength=radius * self.q * self.features)
        table = listed.reshape(k + 2, self.period, self.features)
        #: Newton's differences (k, period, features): the polynomials.
        self.differences = np.stack([np.diff(table, n=j, axis=0)[0] for j in range(k)])
        for i in range(k + 2):
            met = sum(self.differences[j] * math.comb(i, j) for j in range(k))
            assert np.array_equal(met, table[i]), "the shells do not grow by polynomials"

    def of(self, last):
        """Counts (last + 1, features) for t = 0..last, t = 0 being the one point 0 (facet 0, all even)."""
        at = np.arange(last)
        turn, place = at // self.period, at % self.period
        counts = np.zeros((last + 1, self.features))
        for j, difference in enumerate(self.differences):
            counts[1:] += comb(turn, j)[:, None] * difference[place]
        counts[0, 0] = 1.0
        return counts


class LatticeLaw:
    """Probabilities of one case, out to where n draws come with probability below 10⁻¹²."""

    def __init__(self, case, n):
        self.case, self.n, self.hull = case, n, case.hull
        shells = ShellCounts(self.hull)
        self.q, self.parities = shells.q, shells.parities
        reach = (math.log(n) + 40 + 4 * self.hull.rank) / float(case.epsilon) + 3
        self.last = math.ceil(reach * self.q)
        counts = shells.of(self.last)
        self.exponents = self.exponent(np.arange(self.last + 1))
        weights = np.exp(-self.exponents)[:, None] * counts
        self.total = float(weights.sum())
        assert weights[-1].sum() * self.last * n < 1e-12 * self.total
        #: P(t, feature) and its marginals.
        self.masses = weights / self.total
        self.of_t = self.masses.sum(axis=1)
        self.of_facet = self.masses.reshape(self.last + 1, -1, self.parities).sum(axis=2)
        self.of_parity = self.masses.reshape(self.last + 1, -1, self.parities).sum(axis=(0, 1))
        with np.errstate(divide="ignore"):
            self.log_counts = np.log(counts.sum(axis=1))
        self.counts = counts

    def exponent(self, t):
        """-log of the unnormalised probability of norm t/q, from integers, rounded once at the end."""
        if self.case.offset is None:
            return t * float(self.case.epsilon) / self.q
        g = self.case.offset
        steps = -((g.numerator * self.q - t * g.denominator) // (self.q * g.denominator))
        return np.maximum(steps, 0) * float(self.case.epsilon)

    def groups(self, shares):
        """Group numbers (last + 1,) of t, cut where at least ``shares`` of the mass lie below; atoms stay whole."""
        below = np.cumsum(self.of_t)
        cuts = np.unique(np.searchsorted(below, shares))
        return np.searchsorted(cuts, np.arange(self.last + 1), side="left")
