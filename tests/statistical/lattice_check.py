"""One battery against one exact law: how rare the law finds what was drawn, claim by claim.

Every number that `claims` gives is a proven bound on a P-value (bounds.py), so each claim is an assertion of level
α whatever n is. `draws_needed` says how many draws make 5 % (or 2 %) of ε certain to be seen.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from statistical.bounds import ALPHA, Family, cells_bound, gathered, ks_bound, mean_bound, share_bound, uniform_distance
from statistical.lattice_law import LatticeLaw, Points, grid

#: Cells are put together until each expects this many draws.
_LEAST_EXPECTED = 12
#: Single points are looked at up to this many, and moments where the listed window is at most this large.
_MOST_POINTS = 60
_LARGEST_WINDOW = 50_000
_EVEN_SHARES = np.arange(1, 16) / 16


class LatticeCheck:
    """The battery for n draws of one case."""

    def __init__(self, case, n):
        self.case, self.n = case, n
        self.law = LatticeLaw(case, n)
        self.hull = self.law.hull

    def claims(self, noise):
        """(claim, bound on its P-value) one by one. Noise rows (n, d), in the order in which they were drawn."""
        points = Points(self.hull, noise)
        if not points.on_lattice or points.t.max() > self.law.last:
            yield "support", 0.0
            return
        yield "exponent", self._mean("exponent", self.law.exponents[points.t])
        yield "norm", self._norm(points)
        yield "tail", self._tail(points)
        yield "facets by norm", self._facets(points)
        yield "parities", cells_bound(np.bincount(points.parity, minlength=self.law.parities), self.law.of_parity)
        yield "sign", share_bound(int(points.positive[~points.zero].sum()), int((~points.zero).sum()))
        yield "points", self._points(points)
        yield "consecutive pairs", self._pairs(points)
        yield "place in level", self._mean("place in level", self._places_in_level[points.t])
        if self.hull.rank == 2:
            yield "place on facet", self._place(points)
        yield from self._moments(points)

    def rejected_by(self, noise):
        """The claims that fall at level α."""
        return {claim for claim, p in self.claims(noise) if p < ALPHA}

    def rejects(self, noise):
        """Whether any claim falls."""
        return any(p < ALPHA for _, p in self.claims(noise))

    @cached_property
    def family(self):
        return Family(self.law.exponents, self.law.log_counts)

    # -- claims -----------------------------------------------------------------------------------------------------

    def _norm(self, points):
        shares = np.concatenate([_EVEN_SHARES, 1 - 2.0 ** -np.arange(5, 30)])
        group = self._expected_enough(self.law.groups(shares))
        return cells_bound(np.bincount(group[points.t], minlength=group[-1] + 1), np.bincount(group, self.law.of_t))

    def _tail(self, points):
        """How many draws lie beyond the norms that 1/8, 1/16, .. of the mass pass; the union bound over them."""
        beyond = np.unique(np.searchsorted(np.cumsum(self.law.of_t), 1 - 2.0 ** -np.arange(3, 30)))
        shares = self.law.of_t[::-1].cumsum()[::-1][np.minimum(beyond + 1, self.law.last)]
        seen = shares * self.n >= _LEAST_EXPECTED
        pairs = list(zip(beyond[seen], shares[seen], strict=True))
        return min(
            (len(pairs) * share_bound(int((points.t > t).sum()), self.n, share) for t, share in pairs), default=1.0
        )

    def _facets(self, points):
        """Leading facet and norm together: direction within shells, and its independence of the radius."""
        group, masses = self._facets_by_norm
        facets = masses.shape[1]
        counts = np.bincount(group[points.t] * facets + points.facet, minlength=masses.size)
        return cells_bound(counts, masses.ravel())

    def _points(self, points):
        """Single points, the likeliest, and all others together: the direction within a shell, point by point."""
        keys, masses = self._single_points
        if len(keys) == 0:
            return 1.0
        own = self._keys(points.y)
        place = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
        counts = np.bincount(np.where(keys[place] == own, place, len(keys)), minlength=len(keys) + 1)
        return cells_bound(counts, np.append(masses, max(1.0 - masses.sum(), 1e-300)))

    def _pairs(self, points):
        """Draws 2i and 2i + 1 are independent: group of norm and sign of each, by the product law."""
        group = self.law.groups(np.array([1 / 3, 2 / 3]))
        masses = np.bincount(group, self.law.of_t)
        negative = (masses - np.eye(len(masses))[0] * self.law.of_t[0]) / 2
        code = 2 * group[points.t] + (points.positive | points.zero)
        single = np.stack([negative, masses - negative], axis=1).ravel()
        pairs = code[: len(code) // 2 * 2].reshape(-1, 2)
        counts = np.bincount(pairs[:, 0] * len(single) + pairs[:, 1], minlength=len(single) ** 2)
        return cells_bound(counts, np.outer(single, single).ravel())

    def _place(self, points):
        """Along its facet a point is uniform, but for the steps between points: what KS allows is that much more."""
        place = self._places(points)
        return ks_bound(uniform_distance(place) - self._moved, len(place)) if len(place) else 1.0

    def _mean(self, name, found):
        values, masses = self._laws_of_means[name]
        return mean_bound(values, masses, float(found.mean()), len(found))

    def _moments(self, points):
        """First and second moments, where the window that holds the law is small enough to be listed."""
        if self._window is not None:
            yield from ((name, self._mean(name, values)) for name, values in _products(points.y))

    # -- the law in cells -------------------------------------------------------------------------------------------

    def _expected_enough(self, group):
        """Group numbers with the sparse groups of the tail joined, from the far end on."""
        masses = np.bincount(group, self.law.of_t)
        keep = np.cumsum(masses[::-1])[::-1] * self.n >= _LEAST_EXPECTED
        return np.minimum(group, max(int(keep.sum()) - 1, 0))

    @cached_property
    def _facets_by_norm(self):
        group = self.law.groups(np.array([0.25, 0.5, 0.75]))
        masses = np.zeros((group[-1] + 1, self.law.of_facet.shape[1]))
        np.add.at(masses, group, self.law.of_facet)
        return group, masses

    @cached_property
    def _single_points(self):
        """Keys of the likeliest points, sorted, and their probabilities."""
        listed = Points(self.hull, grid(self.hull, self._listed_radius))
        inside = listed.t <= self._listed_radius * self.law.q
        y, t = listed.y[inside], listed.t[inside]
        masses = np.exp(-self.law.exponents[t]) / self.law.total
        order = np.argsort(-masses, kind="stable")[:_MOST_POINTS]
        order = order[masses[order] * self.n >= _LEAST_EXPECTED]
        keys = self._keys(y[order])
        return np.sort(keys), masses[order][np.argsort(keys)]

    @property
    def _listed_radius(self):
        """The least whole radius that holds as many points as are looked at."""
        inside = np.cumsum(self.law.counts.sum(axis=1))[:: self.law.q]
        return min(int(np.searchsorted(inside, _MOST_POINTS)) + 1, len(inside) - 1)

    @staticmethod
    def _keys(y):
        return (y + 2**19) @ (1 << (20 * np.arange(y.shape[1])))

    @cached_property
    def _laws_of_means(self):
        """Distinct values and their probabilities, of each statistic whose mean is looked at.

        The exponent is the most powerful one against another ε: the law is an exponential family in it.
        """
        laws = {
            "exponent": gathered(self.law.exponents, self.law.of_t),
            "place in level": gathered(self._places_in_level, self.law.of_t),
        }
        if self._window is not None:
            y, masses = self._window
            laws |= {name: gathered(values, masses) for name, values in _products(y)}
        return laws

    @cached_property
    def _places_in_level(self):
        """Where in a level each norm lies: the sampler makes the radius of levels of height h, ε·h in (1/8, 1/4]."""
        height, g = Fraction(1), self.case.offset or Fraction(0)
        while self.case.epsilon * height <= Fraction(1, 8):
            height *= 2
        while self.case.offset is None and self.case.epsilon * height > Fraction(1, 4):
            height /= 2
        t = np.arange(self.law.last + 1)
        above = (g.numerator * self.law.q - t * g.denominator) * height.denominator
        return -(above % (self.law.q * g.denominator * height.numerator))

    @cached_property
    def _window(self):
        radius = -(-self.law.last // self.law.q)
        widths = np.abs(self.hull.hull_vertices).max(axis=0)
        if np.prod(2.0 * radius * widths + 1) > _LARGEST_WINDOW:
            return None
        listed = Points(self.hull, grid(self.hull, radius))
        inside = listed.t <= self.law.last
        masses = np.exp(-self.law.exponents[listed.t[inside]]) / self.law.total
        return listed.y[inside], masses

    def _places(self, points):
        """Places in [0, 1) of planar noise along its facets."""
        share = []
        for facet, (start, along) in enumerate(self._edges):
            mine = (points.facet == facet) & ~points.zero
            scale = points.t[mine] / self.law.q
            share.append((points.y[mine] @ along / scale - start @ along) / (along @ along))
        return np.clip(np.concatenate(share), 0.0, 1.0)

    @cached_property
    def _edges(self):
        """A corner and the edge from it, of each facet of a planar body."""
        vertices, edges = self.hull.hull_vertices, []
        for facet in range(self.law.of_facet.shape[1]):
            normal = self.hull.normals[facet // 2] * (1 - 2 * (facet % 2))
            ends = vertices[vertices @ normal == self.hull.offsets[facet // 2]]
            edges.append((ends[0], ends[1] - ends[0]))
        return edges

    @cached_property
    def _moved(self):
        """How far the steps between points can move the law of a place from the uniform one.

        A facet's slice of length l (in lattice steps along it) holds points one step apart, at least l - 1: a place is
        uniform but for 1/(l - 1), less than 2/l where l > 2.
        """
        lengths = np.array([np.gcd(*along) for _, along in self._edges])
        t = np.arange(1, self.law.last + 1)[:, None]
        masses = self.law.of_facet[1:]
        return float((masses * np.minimum(1.0, 2.0 * self.law.q / (t * lengths))).sum() / masses.sum())

    def draws_needed(self, beta=0.01):
        """Draws for 5 % too little or too much noise to be rejected with power 1 - beta."""
        return max(self.family.draws_needed(s, beta=beta) for s in (0.95, 1.05))


def _products(y):
    """Coordinates and products of two, of points (n, k)."""
    k = y.shape[1]
    yield from ((f"mean {i}", y[:, i]) for i in range(k))
    yield from ((f"moment {i}{j}", y[:, i] * y[:, j]) for i in range(k) for j in range(i + 1))
