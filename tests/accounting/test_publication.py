"""What one person loses in publications: the arithmetic of units, relations and kinds of loss.

It fails where a person's units are not counted, where a replacement costs no more than a removal, or where a
publication without a bound is left out of a total.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dphmm.accounting import Publication, totals
from dphmm.accounting.event import epsilon_of
from dphmm.accounting.publication import DELTA, delta_of_group, total_present, total_replaced
from dphmm.errors import InvalidInput

HALF = Fraction(1, 2)


def publication(relation="add-remove", **loss):
    return Publication("a", "fit", "", "one sequence", relation, **loss)


@pytest.mark.parametrize(("relation", "units", "steps"), [("add-remove", 3, 6), ("replace", 3, 3)])
def test_a_replaced_person_takes_every_unit_out_and_others_in(relation, units, steps):
    assert total_replaced([publication(relation, units=units, epsilon=HALF)]).epsilon == steps * HALF


def test_rho_grows_with_the_square_of_the_units_and_counts_differ_by_less():
    plain = publication(units=3, rho=HALF).of_person(replaced=True)
    counts = publication(units=3, rho=HALF, counts=True).of_person(replaced=True)
    assert (plain.rho, counts.rho) == (36 * HALF, 18 * HALF)
    assert total_replaced([publication(units=1, rho=HALF)]).epsilon == epsilon_of(4 * HALF, DELTA)


def test_the_delta_of_a_group_is_a_geometric_sum_rounded_up():
    epsilon, delta = Fraction(1, 10), Fraction(1, 10**6)
    found = delta_of_group(epsilon, delta, 3)
    expected = 1e-6 * (1 + math.exp(0.1) + math.exp(0.2))
    assert expected * (1 - 1e-12) <= found <= expected * (1 + 1e-12)
    assert delta_of_group(Fraction(500), delta, 3) == 1


def test_presence_counts_only_what_hides_it():
    shown = [publication(epsilon=HALF), publication("replace", epsilon=Fraction(7))]
    assert total_present(shown).epsilon == HALF
    assert total_replaced(shown).epsilon == 8


def test_one_publication_without_a_bound_leaves_no_total():
    unbounded = [publication(epsilon=HALF), publication(units=None, epsilon=HALF)]
    assert total_replaced(unbounded).epsilon == math.inf
    assert "there is no bound" in totals(Fraction(1), unbounded).replaced.statement


def test_a_loss_that_is_none_of_the_kinds_is_refused():
    with pytest.raises(InvalidInput, match="epsilon, rho, delta"):
        publication(epsilon=HALF, rho=HALF)
    with pytest.raises(InvalidInput, match="relation"):
        publication(None, epsilon=HALF)
