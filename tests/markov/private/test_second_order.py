"""Chains of second order learned with privacy: one noisy table, and nothing but it, public numbers and options."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.markov.private import fit_second_order
from dphmm.markov.private.release import nearest_counts
from dphmm.markov.private.second_order import rates_of_pairs
from dphmm.markov.private.sensitivity import RecordBounds, kept_records
from dphmm.markov.second_order import LatentPairs
from dphmm.samplers.body import LaplaceSampler

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
    pairs = LatentPairs.of(BASE)
    kept = kept_records(DATA, 3, RecordBounds(5, m, neighbours), owners)
    noise = LaplaceSampler(part.scale).draw(len(pairs.indices), dphmm.ReplayBits(7))
    rates = rates_of_pairs((pairs.counts(kept.symbols, kept.bounds) + noise).astype(float), pairs, float(part.scale))
    assert np.allclose(model.matrix.toarray(), pairs_matrix(pairs, rates), rtol=1e-14)
    assert np.array_equal(model.initial, dphmm.MarkovModel.second_order(BASE).initial)
    assert model.provenance["private"] is False and not event.secure


def pairs_matrix(pairs, weights):
    matrix = np.zeros((len(pairs.now), len(pairs.now)))
    for i in range(len(pairs.now)):
        row = slice(pairs.indptr[i], pairs.indptr[i + 1])
        matrix[i, pairs.indices[row]] = weights[row] / weights[row].sum()
    return matrix


@pytest.mark.parametrize("goes_on", [False, True])
def test_it_is_nearer_than_clipping(goes_on):
    """Against clipping beside the base, in the mean of 20 tables, by three standard errors: people who mostly stay,
    whatever was before, and people who keep their direction."""
    gains, base = [], dphmm.MarkovModel(np.full(4, 0.25), np.full((4, 4), 0.25))
    pairs = LatentPairs.of(base)
    for seed in range(20):
        random = np.random.default_rng(seed)
        kept = (2 * pairs.now - pairs.before) % 4 if goes_on else pairs.now
        truth = 0.6 * np.eye(4)[kept] + 0.4 * random.dirichlet(np.ones(4), 4)[pairs.now]
        scale = 10 if goes_on else 40
        noise = LaplaceSampler(scale).draw(64, dphmm.ReplayBits(seed))
        values = (random.multinomial(120, truth).ravel() + noise).astype(float)
        clipped = nearest_counts(values, pairs.indptr) + (5 + scale * np.sqrt(8)) * pairs.chances
        rows = [weights.reshape(16, 4) for weights in (rates_of_pairs(values, pairs, float(scale)), clipped)]
        found, other = (each / each.sum(axis=1, keepdims=True) for each in rows)
        gains.append((truth * np.log(found / other)).sum(axis=1).mean())
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))


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
    ],
)
def test_bad_options_get_one_line(change, told):
    given = {"sequences": DATA, "base": BASE, "epsilon": 1, "max_length": 4, "bits": dphmm.ReplayBits(1), **change}
    with pytest.raises(InvalidInput, match=told):
        fit_second_order(**given)
    with pytest.raises(InvalidInput, match="weight: got 5; expected none with epsilon"):
        dphmm.MarkovModel.second_order(BASE, DATA, weight=5, epsilon=1, max_length=4)
