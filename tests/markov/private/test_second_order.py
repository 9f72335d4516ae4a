"""Chains of second order learned with privacy: one noisy table, and nothing but it, public numbers and options."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.markov.private import fit_second_order
from dphmm.markov.private.release import nearest_counts
from dphmm.markov.private.sensitivity import Caps, kept_records
from dphmm.markov.second_order import Pairs
from dphmm.samplers.body import DiscreteLaplace

BASE = dphmm.MarkovModel([0.4, 0.3, 0.3], [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
DATA = [[0, 1, 2, 2, 1], [0, 0, 1], [2, 1, 0, 0, 1, 2], [1]]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("owners", [None, ["a", "b", "a", "c"]])
def test_the_model_is_a_function_of_the_noisy_table(neighbours, owners):
    m = 1 if owners is None else 2
    model, event = fit_second_order(
        DATA, BASE, "0.5", 5, neighbours=neighbours, owners=owners, max_sequences=m, bits=dphmm.ReplayBits(7)
    )
    due = Fraction(3 * m * (2 if neighbours == "replace" else 1))
    (part,) = event.parts
    assert part.sensitivity == due and part.scale == due * 2 and event.epsilon == Fraction(1, 2)
    pairs = Pairs.of(BASE)
    kept = kept_records(DATA, 3, Caps(5, m, neighbours), owners)
    noise = DiscreteLaplace(part.scale).draw(len(pairs.indices), dphmm.ReplayBits(7))
    counts = nearest_counts((pairs.counts(kept.symbols, kept.bounds) + noise).astype(float), pairs.indptr)
    assert np.allclose(
        model.matrix.toarray(),
        pairs_matrix(pairs, counts + model.provenance["weight"] * pairs.chances),
        rtol=1e-14,
    )
    assert np.array_equal(model.initial, dphmm.MarkovModel.second_order(BASE).initial)
    assert model.provenance["private"] is False and not event.secure


def pairs_matrix(pairs, weights):
    matrix = np.zeros((len(pairs.now), len(pairs.now)))
    for i in range(len(pairs.now)):
        row = slice(pairs.indptr[i], pairs.indptr[i + 1])
        matrix[i, pairs.indices[row]] = weights[row] / weights[row].sum()
    return matrix


def test_the_weight_follows_from_public_numbers():
    """Nobody's data and other data have one weight; and a model of no data at all is one."""
    weights = {
        fit_second_order(data, BASE, 1, 4, bits=dphmm.ReplayBits(1))[0].provenance["weight"] for data in ([], DATA)
    }
    assert len(weights) == 1 and weights.pop() > 5
    given = {"epsilon": 1, "max_length": 4, "bits": dphmm.ReplayBits(1)}
    assert dphmm.MarkovModel.second_order(BASE, DATA, **given).n_secrets == 3


def test_the_event_is_told_before_the_data_are_looked_at():
    def refuse(event):
        raise RuntimeError(str(event.epsilon))

    def data():
        yield pytest.fail("the data were looked at")

    with pytest.raises(RuntimeError, match="1"):
        fit_second_order(data(), BASE, 1, 4, bits=dphmm.ReplayBits(1), admit=refuse)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"base": dphmm.MarkovModel.fit([[0, 1, 2, 1]], 3)}, "base: got a model that was fitted"),
        ({"max_length": 2}, "max_length: got 2"),
        ({"max_sequences": 2}, "owners: got None"),
        ({"weight": -1}, "weight: got -1"),
    ],
)
def test_bad_options_get_one_line(change, told):
    given = {"sequences": DATA, "base": BASE, "epsilon": 1, "max_length": 4, "bits": dphmm.ReplayBits(1), **change}
    with pytest.raises(InvalidInput, match=told):
        fit_second_order(**given)
