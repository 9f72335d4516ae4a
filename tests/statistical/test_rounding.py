"""The margins of the floats are far wider than the floats' errors, measured against 50 decimal digits.

What exactness rests on outside integers (docs/adr/0002-lazy-uniform-sampling.md, 4): exp in doubles is right to a few
units of 2⁻⁵³, so the level table is within (L + λL + 3k + 16)·2⁻⁵¹ of the truth and the last acceptance within 2⁻⁴⁴.
Fails on a platform whose exp is worse than the margins allow for, long before an answer could be wrong. And the other
way round: with a margin taken away, or exp made worse than it, the compiled path is caught disagreeing.
"""

from __future__ import annotations

import math
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numba
import numpy as np
import pytest

from dphmm._kernels import lattice
from dphmm.samplers import ReplayBits
from dphmm.samplers.uniform import Levels, LevelTable
from statistical.agreement import agree_on_written_words
from statistical.random_samplers import samplers

#: Units of 2⁻⁵³ (relative): what is asserted of exp, and what the margins leave for it.
_ASSERTED = 4.0
_UNIT = 2.0**-53


def units_off(x, values):
    """The largest relative error of exp(x) in units of 2⁻⁵³, x (n,) floats taken exactly."""
    with localcontext() as context:
        context.prec = 50
        exact = [Decimal(float(a)).exp() for a in x]
        return max(float(abs(Decimal(float(v)) / e - 1)) for v, e in zip(values, exact, strict=True)) / _UNIT


def uniform(seed, low, high, n):
    return low + (high - low) * (ReplayBits(seed).uint64(n) >> np.uint64(11)).astype(float) * _UNIT


@numba.njit
def compiled_exp(x, out):
    for i in range(len(x)):
        out[i] = np.exp(x[i])


#: The last acceptance uses 0 <= ξ <= 1/4, the level table all of 0 .. 700.
RANGES = [(0.0, 0.25, 3000), (0.0, 50.0, 1500), (0.0, 700.0, 1500)]


@pytest.mark.parametrize(("low", "high", "n"), RANGES)
def test_exp_is_right_to_a_few_units(low, high, n):
    """NumPy's on whole arrays, strided ones, and one by one (other paths of the processor); and the compiled one."""
    x = -uniform(1, low, high, n)
    assert units_off(x, np.exp(x)) <= _ASSERTED
    assert units_off(x[::3], np.exp(x[::3])) <= _ASSERTED
    assert units_off(x[:300], [np.exp(a) for a in x[:300]]) <= _ASSERTED
    assert units_off(x[:300], [math.exp(a) for a in x[:300]]) <= _ASSERTED
    out = np.empty(n)
    compiled_exp(x, out)
    assert units_off(x, out) <= _ASSERTED


def test_what_is_asserted_of_exp_is_far_inside_the_margins():
    """In the last acceptance exp takes at most 4 of 512 units; in the level table 4 of more than 64."""
    assert lattice._MARGIN == 2.0**-44
    assert lattice._MARGIN > 100 * _ASSERTED * _UNIT
    table = Levels([Fraction(1)], Fraction(2**10), 1, Fraction(0)).table
    assert (table.high - table.low).min() / 2 > 16 * _ASSERTED * _UNIT


def test_the_last_acceptance_is_computed_to_a_few_units():
    """ξ from integers of any size and exp(-ξ) together, against fractions: less than a hundredth of the margin."""
    chance = np.random.default_rng(1)
    worst = 0.0
    for _ in range(400):
        offset = int(chance.integers(1, 2 ** int(chance.integers(1, 55))))
        value = int(chance.integers(0, 50 * offset))
        rate = Fraction(int(chance.integers(2**52 // 8, 2**52 // 4)), 2**52)
        values, offsets = np.array([value]), np.array([offset])
        found = np.exp(-lattice.last_exponent(values, offsets, np.zeros(1, np.int64), 1, lattice.GRADED, float(rate)))
        norm = Fraction(value, offset)
        exact = rate * (1 + norm - math.ceil(norm))
        with localcontext() as context:
            context.prec = 50
            true = (-Decimal(exact.numerator) / Decimal(exact.denominator)).exp()
            worst = max(worst, float(abs(Decimal(float(found)) - true)))
    assert worst < lattice._MARGIN / 100


TABLES = [
    ([Fraction(3)], Fraction(1, 7)),
    ([Fraction(3), Fraction(5, 2)], Fraction(9, 64)),
    ([Fraction(1, 8), Fraction(2**20)], Fraction(1, 4)),
    ([Fraction(7), Fraction(8), Fraction(1)], Fraction(1024)),
    ([Fraction(2**28)] * 4, Fraction(1, 5)),
    ([Fraction(2**50)] * 7, Fraction(3, 16)),
    ([Fraction(1, 4096)] * 3, Fraction(8)),
]


@pytest.mark.parametrize(("widths", "rate"), TABLES)
def test_the_level_table_uses_a_small_part_of_its_margin(widths, rate):
    """The middle of each bracket is off by less than a quarter of its half-width, at every level of the table."""
    levels = Levels(widths, rate, 1, Fraction(1, 3))
    table = levels.table
    with localcontext() as context:
        context.prec = 60
        factor = (-Decimal(rate.numerator) / Decimal(rate.denominator)).exp()
        terms = [factor**j * levels.box_size(j) for j in range(len(table.low) + math.ceil(80 / rate))]
        total, running = sum(terms), Decimal(0)
        for low, high, term in zip(table.low.tolist(), table.high.tolist(), terms, strict=False):
            running += term
            # Above 1 a bracket is cut; its lower half says as much.
            half = (Decimal(high) - Decimal(low)) / 2 if high < 1.0 else None
            if half is not None:
                assert abs(running / total - (Decimal(high) + Decimal(low)) / 2) < half / 4


# -- the margins are needed, and are seen to be ----------------------------------------------------------------------


def disagreements(seeds, change):
    """How many samplers' compiled paths take a decision that their plain path does not, on written words."""
    found = 0
    for seed in seeds:
        for sampler in samplers(seed):
            change(sampler)
            try:
                agree_on_written_words(sampler, seed, 8)
            except AssertionError:
                found += 1
    return found


def without_level_margin(sampler):
    table = sampler._levels.table
    middle = (table.low + np.minimum(table.high, 1.0)) / 2
    sampler._levels.__dict__["table"] = LevelTable(middle, middle, table.half_widths)


def test_a_level_table_without_its_margin_is_caught():
    assert disagreements(range(2), without_level_margin) > 0


class OtherExp:
    """NumPy with another exp."""

    def __init__(self, change):
        self.exp = lambda x: change(np.exp(x))

    def __getattr__(self, name):
        return getattr(np, name)


@pytest.fixture
def plain_kernel(monkeypatch):
    """The drawing loop as Python, so that its names can be given other values."""
    monkeypatch.setattr(lattice, "draw", getattr(lattice.draw, "py_func", lattice.draw))
    with warnings.catch_warnings():
        # Python's words overflow with a warning where compiled ones just wrap round.
        warnings.simplefilter("ignore", RuntimeWarning)
        yield monkeypatch


@pytest.mark.long
@pytest.mark.parametrize(
    "change", [lambda p: np.nextafter(p, 0), lambda p: np.nextafter(p, 2), lambda p: p * (1 - 2**-46)]
)
def test_an_exp_that_is_a_little_off_changes_nothing(plain_kernel, change):
    plain_kernel.setattr(lattice, "np", OtherExp(change))
    assert disagreements(range(48), lambda sampler: None) == 0


@pytest.mark.parametrize("factor", [1 + 2.0**-43, 1 - 2.0**-43])
def test_an_exp_worse_than_the_margin_is_caught(plain_kernel, factor):
    plain_kernel.setattr(lattice, "np", OtherExp(lambda p: p * factor))
    assert disagreements(range(2), lambda sampler: None) > 0


@pytest.mark.long
def test_a_last_acceptance_without_its_margin_is_caught(plain_kernel):
    plain_kernel.setattr(lattice, "_MARGIN", 0.0)
    assert disagreements(range(48), lambda sampler: None) > 0
