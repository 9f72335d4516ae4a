"""The battery can fail: samplers with one error each, through the very same check, are rejected at α = 10⁻⁹.

Level: every claim's P-value is a proven bound (bounds.py). Power: against 5 % in ε it is at least 0.99 by Chernoff's
bound at `draws_needed` draws, computed here; against each wrong sampler all of 100 seeds are rejected (the long test:
the power is above 0.95 with confidence 0.99), and the default run tries one seed. What the battery does not see,
because the law is the same or all but the same, is listed too: it must be accepted.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from statistical import wrong_samplers as wrong
from statistical.bounds import ALPHA, cells_bound, ks_bound, mean_bound, share_bound, uniform_distance
from statistical.lattice_check import LatticeCheck
from statistical.lattice_law import Case

DISC = Case("disc", Fraction(1))
STAIRS = Case("disc", Fraction(1), Fraction(1, 3))
STEEP = Case("disc", Fraction(4), Fraction(1, 3))
WIDE = Case("example", Fraction(1, 50))
WIDE_DISC = Case("disc", Fraction(1, 200))
LONG_STAIRS = Case("example", Fraction(1, 50), Fraction(1, 2))
LINE = Case("odd interval", Fraction(1))
STEEP_LINE = Case("odd interval", Fraction(4))
FLAT = Case("flat slanted", Fraction(1, 2), Fraction(0))
BALL = Case("octahedron", Fraction(1))
BOX = Case("slanted box", Fraction(3), Fraction(19, 20))
CASES = (DISC, STAIRS, STEEP, WIDE, LONG_STAIRS, LINE, FLAT, BALL, BOX)

#: Errors that are errors only in some cases.
PARTIAL = [
    *((case, "no refusal", wrong.no_refusal) for case in (DISC, STAIRS, STEEP, WIDE, LONG_STAIRS, LINE, BALL, BOX)),
    *((case, "no last acceptance", wrong.no_last_acceptance) for case in (DISC, WIDE, LONG_STAIRS, LINE)),
    *((case, "boxes rounded down", wrong.boxes_rounded_down) for case in (DISC, STAIRS, STEEP, LINE, FLAT, BALL, BOX)),
    *((case, "offset ignored", wrong.offset_ignored) for case in (STAIRS, STEEP, BOX)),
    *((case, "coordinates mixed", wrong.coordinates_mixed) for case in (DISC, STAIRS, STEEP, WIDE, LONG_STAIRS, BOX)),
]
WRONG = [(case, name, sampler) for case in CASES for name, sampler in wrong.ALWAYS.items()] + PARTIAL
_FEWEST = 80_000


def draws(check):
    return max(_FEWEST, check.draws_needed())


@pytest.fixture(scope="module")
def checks():
    """The battery of each case, made once."""
    made = {}

    def of(case):
        if case not in made:
            made[case] = LatticeCheck(case, draws(LatticeCheck(case, 10**6)))
        return made[case]

    return of


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_wrong_sampler_is_rejected(checks, case):
    check = checks(case)
    missed = [name for at, name, sampler in WRONG if at == case and not check.rejects(sampler(case, check.n, 7))]
    assert missed == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_five_per_cent_is_seen_by_the_exponent_alone(checks, case):
    """The claim whose power is a theorem rejects by itself."""
    check = checks(case)
    for factor in ("1.05", "0.95"):
        claim, p = next(check.claims(wrong.epsilon_times(factor)(case, check.n, 8)))
        assert claim == "exponent" and p < ALPHA


#: One claim each, made to be the one that sees the error when others may not.
TELLING = {
    "every draw twice": (DISC, wrong.every_draw_twice, "consecutive pairs"),
    "sign bias": (WIDE, wrong.sign_bias, "sign"),
    "even steps once in ten": (WIDE, wrong.even_steps_once_in_ten, "parities"),
    "no last acceptance": (WIDE, wrong.no_last_acceptance, "place in level"),
    "no last acceptance, stairs": (LONG_STAIRS, wrong.no_last_acceptance, "place in level"),
    "coordinates mixed": (WIDE, wrong.coordinates_mixed, "facets by norm"),
    "boundary only": (WIDE, wrong.boundary_only, "norm"),
    "no refusal": (WIDE_DISC, wrong.no_refusal, "place on facet"),
    "boxes rounded down": (DISC, wrong.boxes_rounded_down, "points"),
    "clipped": (BALL, wrong.clipped, "tail"),
    "clipped, squared": (LINE, wrong.clipped, "moment 00"),
    "wrong plane": (FLAT, lambda case, n, seed: wrong.right(DISC, n, seed), "support"),
    "moved by one": (STEEP_LINE, wrong.moved_by_one, "mean 0"),
}


@pytest.mark.parametrize("name", TELLING)
def test_each_claim_sees_its_own_error(checks, name):
    case, sampler, claim = TELLING[name]
    check = checks(case)
    assert claim in check.rejected_by(sampler(case, check.n, 9))


#: Errors that make no difference to the law here, or none that these many draws could show.
INVISIBLE = [
    (FLAT, wrong.no_refusal),  # in one dimension the box of a staircase is the body
    (BALL, wrong.no_last_acceptance),  # all norms are whole levels: nothing was refused
    (STAIRS, wrong.no_last_acceptance),  # ε > 1/8: there is no last acceptance
    (WIDE, wrong.boxes_rounded_down),  # one step in hundreds
    (BALL, wrong.coordinates_mixed),  # a cross-polytope's coordinates are independent, and so are draws
]


@pytest.mark.parametrize(("case", "sampler"), INVISIBLE, ids=lambda value: getattr(value, "__name__", str(value)))
def test_what_is_not_wrong_is_accepted(checks, case, sampler):
    check = checks(case)
    assert not check.rejected_by(sampler(case, check.n, 10)) - {"consecutive pairs"}


# -- the bounds themselves ------------------------------------------------------------------------------------------


def test_bounds_hold_at_levels_that_can_be_seen():
    """500 right samples of 60: no bound says 1 in 5 or 1 in 50 more often than that (within six deviations)."""
    chance = np.random.default_rng(1)
    runs, n = 500, 60
    masses = np.array([0.5, 0.2, 0.1, 0.1, 0.06, 0.04])
    values = np.array([0.0, 1.0, 2.0, 3.0, 9.0, 20.0])
    counts = chance.multinomial(n, masses, size=runs)
    found = {
        "mean": [mean_bound(values, masses, float(row @ values) / n, n) for row in counts],
        "cells": [cells_bound(row, masses) for row in counts],
        "half": [share_bound(int(k), n) for k in counts[:, 0]],
        "ks": [ks_bound(uniform_distance(u), n) for u in chance.random((runs, n))],
    }
    for name, bounds in found.items():
        for level in (0.2, 0.02):
            hits = sum(p <= level for p in bounds)
            assert hits <= runs * level + 6 * np.sqrt(runs * level), (name, level, hits)
        assert any(p < 0.9 for p in bounds), f"{name} never says anything"


def test_cells_bound_is_not_vacuous():
    masses = np.full(10, 0.1)
    assert cells_bound(np.array([1300, *[967] * 9]), masses) < ALPHA
    assert cells_bound(np.array([1030, *[1000] * 8, 970]), masses) == 1.0
    assert cells_bound(np.array([9, 1]), np.array([1.0, 0.0])) == 0.0


# -- long -----------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_power_against_every_wrong_sampler(checks, case):
    """100 seeds each, none missed."""
    check = checks(case)
    missed = {
        name: seed
        for at, name, sampler in WRONG
        if at == case
        for seed in range(1000, 1100)
        if not check.rejects(sampler(case, check.n, seed))
    }
    assert missed == {}
