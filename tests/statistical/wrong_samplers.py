"""Samplers with one error each, for the battery to reject. Most are the real one with one table changed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dphmm.samplers import ReplayBits
from statistical.lattice_law import Points, grid


def _drawn(case, n, seed, change):
    """n noises of the case's sampler with ``change`` made to its compiled tables."""
    mechanism = case.mechanism()
    sampler = mechanism._sampler
    sampler.__dict__["_compiled"] = change(sampler._compiled)
    return mechanism.noise(n, ReplayBits(seed))


def right(case, n, seed):
    return case.mechanism().noise(n, ReplayBits(seed))


def epsilon_times(factor):
    return lambda case, n, seed: right(case.off_by(Fraction(factor)), n, seed)


def levels_without_boxes(case, n, seed):
    """Levels ∝ e^{-λj} instead of e^{-λj}·|Box_j|: what Gamma(d) for Gamma(d + 1) is to a continuous K-norm sampler."""
    rate = float(case.mechanism()._sampler._levels.rate)

    def change(plan):
        cumulative = 1.0 - np.exp(-rate * (1.0 + np.arange(len(plan.low))))
        return replace(plan, low=cumulative, high=cumulative)

    return _drawn(case, n, seed, change)


def no_last_acceptance(case, n, seed):
    return _drawn(case, n, seed, lambda plan: replace(plan, kind=0))


def no_refusal(case, n, seed):
    """Uniform in the box around the body: no facet is looked at."""
    return _drawn(case, n, seed, lambda plan: replace(plan, normals=np.zeros_like(plan.normals)))


def boxes_rounded_down(case, n, seed):
    """Half-widths one too small: the outermost points of the widest directions never come."""
    return _drawn(case, n, seed, lambda plan: replace(plan, half_widths=np.maximum(plan.half_widths - 1, 0)))


def offset_ignored(case, n, seed):
    return right(replace(case, offset=Fraction(0)), n, seed)


def boundary_only(case, n, seed):
    """The level from the law of a whole body, then a point of its outermost shell alone."""
    chance = np.random.default_rng(seed)
    points = Points(case.hull, grid(case.hull, 1))
    outer = np.flatnonzero(points.t == points.q)
    radii = chance.gamma(case.hull.rank + 1, 1 / float(case.epsilon), n)
    return np.ceil(radii).astype(np.int64)[:, None] * points.y[chance.choice(outer, n)] @ case.hull.basis.T


def clipped(case, n, seed):
    """Draws with a coordinate that only one in 100 reaches come out as none at all."""
    noise = right(case, n, seed)
    sizes = np.abs(noise).max(axis=1)
    return noise * (sizes < np.sort(sizes)[-n // 100])[:, None]


def every_draw_twice(case, n, seed):
    """Step t + 1 served the words of step t."""
    return np.repeat(right(case, n // 2, seed), 2, axis=0)


def sign_bias(case, n, seed):
    """One draw in ten takes the absolute value of its first coordinate."""
    noise = right(case, n, seed)
    flip = (np.arange(n) % 10 == 0) & ~Points(case.hull, noise).positive
    return np.where(flip[:, None], -noise, noise)


def even_steps_once_in_ten(case, n, seed):
    """Rounded to even coordinates now and then, as a snap to too coarse a lattice would."""
    noise = right(case, n, seed)
    y = noise @ case.hull.coordinates.T
    snapped = (y - (y & 1)) @ case.hull.basis.T
    return np.where((np.arange(n) % 10 == 0)[:, None], snapped, noise)


def coordinates_mixed(case, n, seed):
    """Each coordinate from a draw of its own: right spread along every axis, wrong directions."""
    noise = right(case, n, seed)
    return np.concatenate([noise[:, :1], np.roll(noise[:, 1:], 1, axis=0)], axis=1)


def moved_by_one(case, n, seed):
    """One draw in eight is one step off along the diagonal."""
    return right(case, n, seed) + (np.arange(n) % 8 == 0)[:, None]


#: Wrong in every case.
ALWAYS = {
    "5 % too little noise": epsilon_times("1.05"),
    "5 % too much noise": epsilon_times("0.95"),
    "twice the ε": epsilon_times(2),
    "boundary only": boundary_only,
    "clipped": clipped,
    "levels without boxes": levels_without_boxes,
    "every draw twice": every_draw_twice,
    "sign bias": sign_bias,
    "even steps once in ten": even_steps_once_in_ten,
}
