"""A chain in place of a hidden model: where the noisy histogram is more probable under it, by nothing but that table.

Both probabilities are of one law of the table and one prior of rows, so they may be compared. What could go wrong: a
choice that follows from the data beside the table, a chain in place of a public start or of the order that was asked
for, a chain that is not the one of the same table, a hidden model that is lost where it is better.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dphmm.markov import CategoricalHMM
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private import candidates, hidden
from dphmm.markov.private.candidates import chain_of, evidence_of, likeliest_chain
from dphmm.markov.private.ngrams import Climb, WordTable, chances, likeliest, log_density, prior_rows
from dphmm.markov.private.noisy_table import rates_of
from dphmm.markov.private.release import NoisyTable
from dphmm.markov.private.sensitivity import RecordBounds, kept_records
from dphmm.samplers.entropy import ReplayBits
from small_records import random_parameters

pytestmark = pytest.mark.replayed_words


def table_of(monkeypatch, values, scale):
    monkeypatch.setattr(hidden, "release", lambda *_: NoisyTable(np.asarray(values, dtype=float).ravel(), scale))


def fit(data, n=2, v=3, hmm=None, **options):
    hmm = CategoricalHMM(n, n_features=v, random_state=1) if hmm is None else hmm
    return hmm.fit_private(data, **{"epsilon": 1, "max_length": 5, "n_starts": 2, "bits": ReplayBits(1)} | options)


@pytest.mark.parametrize("stays", [True, False])
def test_the_evidence_of_a_chain_is_that_of_a_hidden_model_that_shows_its_states(stays):
    """Climbed by the code of hidden models, with a state for each symbol and emissions that stay as they are."""
    random, histogram = np.random.default_rng(3), WordTable(4, 2, stays)
    words = 40.0 * random.exponential(size=16) + np.diag([300.0, 20, 150, 0]).ravel()
    table = histogram.of_words(words).reshape(4, -1) - 9.0
    start = Parameters(np.full(4, 1 / 4), np.full((4, 4), 1 / 4), np.eye(4))
    climb = likeliest(table.ravel(), start, "", "st", histogram, 12.0, 5_000, 1e-10)
    found = likeliest_chain(table, stays, 12.0, 5_000, 1e-10)
    assert found == pytest.approx(evidence_of(climb, table, histogram, 12.0, prior_rows(start, "")), abs=1e-4)


@pytest.mark.parametrize("stays", [True, False])
def test_the_evidence_of_a_hidden_model_is_its_density_and_its_prior(stays):
    histogram, learned = WordTable(3, 2, stays), random_parameters(2, 2, 3)
    rows, table = prior_rows(random_parameters(3, 2, 3), ""), np.arange(6.0 if stays else 9.0)
    climb = Climb(learned, 50.0, [], True)
    found = evidence_of(climb, table, histogram, 4.0, rows)
    means = 50.0 * histogram.of_words(chances(learned, 2))
    apart = sum(
        20 * np.sum(own * np.log(own / now))
        for own, now in zip(rows, (learned.initial[None], learned.transition, learned.emission), strict=True)
    )
    assert found == pytest.approx(log_density(table, means, 4.0)[0].sum() - apart)


def test_other_true_numbers_with_the_same_noisy_table_give_the_same_bytes(monkeypatch):
    """Of tables that a chain is taken for, and of one for which none is."""
    sticky = [[5, 900], [8, 1_200], [4, 700]]
    for values, states in ((sticky, 3), ([[300, 150], [310, 160], [290, 140]], 2)):
        table_of(monkeypatch, values, 40.0)
        models = [fit(data, about=20) for data in ([], [[0, 1]], [[2, 2, 2]] * 500, [[1]] * 31)]
        assert (
            len({hmm.transmat_.tobytes() + hmm.startprob_.tobytes() + hmm.emissionprob_.tobytes() for hmm in models})
            == 1
        )
        assert {hmm.n_states for hmm in models} == {states}
        assert len({repr(hmm.privacy_) + repr(hmm.monitor_) for hmm in models}) == 1
        assert models[0].privacy_.parts[0].name == "symbols that stay and leave"


def test_of_pairs_it_is_the_private_chain_of_the_same_table(monkeypatch):
    values = np.array([900.0, 4, 2, -6, 700, 11, 3, 1, 1_300])
    table_of(monkeypatch, values, 4.0)
    hmm = fit([[0]], order=None)
    (rates,) = rates_of(values[None], np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3), 3, 4.0)
    rows = rates.reshape(3, 3)
    np.testing.assert_array_equal(hmm.transmat_, rows / rows.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(hmm.emissionprob_, np.eye(3))


@pytest.mark.parametrize("kept", ["t", "e", "s", "order", "params"])
def test_what_is_public_about_the_states_keeps_them(monkeypatch, kept):
    """A start, an order that was asked for, and parameters that are not learned."""
    table_of(monkeypatch, np.diag([900.0, 700, 1_300]), 4.0)
    hmm, plain = CategoricalHMM(2, n_features=3, random_state=1), random_parameters(4, 2, 3)
    hmm.startprob_, hmm.transmat_, hmm.emissionprob_ = plain.initial, plain.transition, plain.emission
    options = {"order": 2} if kept == "order" else {}
    if kept == "params":
        hmm.params = "te"
    elif kept != "order":
        hmm.init_params = "ste".replace(kept, "")
    assert fit([[0]], hmm=hmm, **options).n_states == 2


def test_from_symbols_that_leave_and_stay_every_move_is_possible_and_balanced():
    table = np.array([[50.0, 1_000], [80, 900], [30, 2_000], [-9, 4]])
    chain = chain_of(table, True, 5.0)
    moves = chain.transition
    np.testing.assert_allclose(moves.sum(axis=1), 1)
    assert (moves > 0).all() and moves[0, 1] > moves[0, 2]
    np.testing.assert_allclose(np.diag(moves)[:3], [1_000 / 1_050, 900 / 980, 2_000 / 2_030], atol=0.01)
    # From a state to the others as often as those are left.
    assert moves[0, 1] / moves[0, 2] == pytest.approx(moves[3, 1] / moves[3, 2])


def test_the_sensitivity_of_symbols_that_leave_and_stay():
    """Every data set of up to two records of two sequences over 2 symbols, one longer than the cap."""
    caps, histogram = RecordBounds(3, 2), WordTable(2, 2, stays=True)
    sequences = [list(word) for length in range(1, 5) for word in itertools.product(range(2), repeat=length)]

    def vector(records):
        owners = [k for k, record in enumerate(records) for _ in record]
        kept = kept_records([sequence for record in records for sequence in record], 2, caps, owners)
        return histogram.of_words(hidden.count_ngrams(kept, 2, 2))

    records = [*itertools.product(sequences, repeat=2)] + [(one, one, one) for one in sequences]
    others = records[::41]
    differences = [np.abs(vector([record])).sum() for record in records]
    differences += [
        np.abs(vector([record, other]) - vector([other])).sum() for record in records[::7] for other in others
    ]
    assert max(differences) == hidden.sensitivity.l1(hidden.sensitivity.ngrams(caps, 2), caps) == 4


@pytest.mark.parametrize(
    ("kind", "v", "people", "epsilons"),
    [("hidden", 6, 300, (0.3, 1)), ("hidden", 6, 100, (0.1,)), ("chain", 6, 300, (0.3, 1)), ("chain", 17, 300, (0.3,))],
)
def test_the_better_model_is_taken(kind, v, people, epsilons):
    """Of a casino the hidden model, of symbols that stay the chain, in at least 11 of 12 noisy tables."""
    right = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        if kind == "hidden":
            seen = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
            truth = Parameters(np.array([0.67, 0.33]), np.array([[0.95, 0.05], [0.1, 0.9]]), seen)
        else:
            stay = 0.9 if v == 6 else random.uniform(0.2, 0.7, (v, 1))
            moves = stay * np.eye(v) + (1 - stay) * random.dirichlet(np.ones(v), v)
            truth = Parameters(np.full(v, 1 / v), moves, np.eye(v))
        source = CategoricalHMM(truth.n_states)
        source.startprob_, source.transmat_, source.emissionprob_ = truth.initial, truth.transition, truth.emission
        data = [source.sample(20, random_state=random)[0].ravel() for _ in range(people)]
        for epsilon in epsilons:
            n, cap = (2, 20) if v == 6 else (5, 50)
            found = fit(data, n, v, epsilon=str(epsilon), max_length=cap, about=people, bits=ReplayBits(seed))
            right += found.n_states == (n if kind == "hidden" else v)
    assert right >= 11 * len(epsilons), right


def test_where_a_climb_is_more_probable_it_stays(monkeypatch):
    table_of(monkeypatch, np.diag([900.0, 700, 1_300]), 4.0)
    monkeypatch.setattr(candidates, "evidence_of", lambda *_: np.inf)
    assert fit([[0]]).n_states == 2
