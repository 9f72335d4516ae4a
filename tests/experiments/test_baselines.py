"""Published mechanisms for dependent records: scales against an independently written prototype, and losses.

A wrong quilt, transport distance or sum over pairs shows as another number, or as a loss above the promise where there
is a theorem.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dependent_models import CHAINS, binary
from dphmm.dependent import MECHANISMS, AnyQuery, Chain, Coefficients, Star, Sum, exact_loss
from dphmm.errors import InvalidInput
from experiments.dependence.baselines import calibrated, compared, correlation_sums, rate_of

COUNT = Sum([0, 1])
#: ε = 1, 100 tuples: total-variation, wasserstein, quilt. Scales.
TABLE = {
    ".4": (2.333, 3, 6.72),
    ".8": (9.000, 10, 31.74),
    ".9": (18.90, 20, 68.79),
    ".98": (62.95, 77, 100),
    ".01/.1": (17.13, 27, 98.6),
    ".05/.5": (2.64, 4, 13.35),
    ".001/.1": (18.71, 51, 100),
}
VARIATION_LOSSES = {".01/.1": 1.226, ".05/.5": 1.210, ".001/.1": 1.310}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
def test_scales_and_losses_of_the_table(name):
    model = binary(*CHAINS[name], 100)
    losses = exact_loss(model, COUNT)
    scales = [
        1 / rate_of(mechanism, model, COUNT, 1) for mechanism in ("total-variation", "wasserstein", "markov-quilt")
    ]
    variation, transport, quilt = scales
    assert float(variation) == pytest.approx(TABLE[name][0], abs=6e-3)
    assert transport == TABLE[name][1]
    assert float(quilt) == pytest.approx(TABLE[name][2], abs=0.06)
    assert losses.at(float(variation)) == pytest.approx(VARIATION_LOSSES.get(name, 0.98), abs=0.03)
    assert max(losses.at(float(transport)), losses.at(float(quilt))) <= 1


def test_what_is_proved_of_a_chain_that_is_not_symmetric():
    found = {row.mechanism: row for row in compared(binary(0.01, 0.1, 100), COUNT, Fraction(1))}
    assert set(found) == {*MECHANISMS, "correlated", "total-variation", "wasserstein", "markov-quilt"}
    assert found["wasserstein"].proved and found["markov-quilt"].proved
    assert not found["total-variation"].proved and found["total-variation"].why.startswith("violated")
    assert all(row.true_epsilon <= 1 + 1e-9 for row in found.values() if row.proved)
    alone = calibrated(binary(0.01, 0.1, 100), COUNT, "1", "correlated")
    assert alone == found["correlated"] and not alone.proved


def test_a_ring_of_three_states():
    ring = Chain(np.full((3, 3), 0.05) + 0.85 * np.eye(3), 60)
    assert rate_of("wasserstein", ring, Sum([0, 1, 2]), 1) == Fraction(1, 26)
    assert float(1 / rate_of("markov-quilt", ring, Sum([0, 1, 2]), 1)) == pytest.approx(101, abs=0.5)


def test_correlations_of_a_binary_chain_are_powers_of_its_eigenvalue():
    found = correlation_sums(binary(0.2, 0.2, 6), COUNT)
    assert found == pytest.approx([sum(0.6 ** abs(i - j) for j in range(6)) for i in range(6)])
    given = np.array([[1, 0.5, 0], [0.25, 1, 0], [0, 0, 1.0]])
    assert rate_of("correlated", Coefficients(given), AnyQuery(1), 1) == pytest.approx(Fraction(2, 3))


def test_relabelling_values_changes_nothing():
    rng = np.random.default_rng(3)
    matrix, order = rng.dirichlet(np.ones(4), 4), np.array([2, 0, 3, 1])
    values = np.array([0, 1, 5, 2])
    for name in ("markov-quilt", "wasserstein", "correlated", "total-variation"):
        one = rate_of(name, Chain(matrix, 8), Sum(values), 1)
        other = rate_of(name, Chain(matrix[np.ix_(order, order)], 8), Sum(values[order]), 1)
        assert float(one) == pytest.approx(float(other), rel=1e-7)


def test_what_a_mechanism_says_nothing_of():
    star = Star(2, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    with pytest.raises(InvalidInput, match="chain"):
        rate_of("markov-quilt", star, COUNT, 1)
    with pytest.raises(InvalidInput, match="Sum"):
        rate_of("correlated", star, AnyQuery(1), 1)
