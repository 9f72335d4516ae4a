"""The spread of a private fit: that of fits to new data of the same model, and less with more people."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.markov.private import fit_chain, spread
from dphmm.samplers.entropy import ReplayBits

pytestmark = pytest.mark.replayed_words

CHAIN = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])


def learned(seed, people=300, epsilon=1):
    random = np.random.default_rng(seed)
    walks = np.zeros((people, 10), dtype=np.int64)
    walks[:, 0] = random.integers(0, 3, people)
    for t in range(1, 10):
        walks[:, t] = (random.random((people, 1)) > np.cumsum(CHAIN, axis=1)[walks[:, t - 1]]).sum(axis=1)
    return fit_chain(list(walks), 3, epsilon, 10, bits=ReplayBits(seed))


def test_it_is_about_the_scatter_of_fits_to_other_people():
    fits = [learned(seed)[0].transition.data for seed in range(40)]
    found = spread(*learned(99), 300, draws=60)
    ratio = found / np.std(fits, axis=0, ddof=1)
    assert 0.6 < np.median(ratio) < 1.6


def test_more_people_scatter_less_and_the_same_seed_says_the_same():
    fit = learned(1)
    np.testing.assert_array_equal(spread(*fit, 300), spread(*fit, 300))
    assert spread(*fit, 30_000).mean() < 0.3 * spread(*fit, 300).mean()


def test_an_event_of_another_fit_is_refused():
    hmm = dphmm.markov.CategoricalHMM(2, n_features=3).fit_private(
        [[0, 1]], epsilon=1, max_length=4, bits=ReplayBits(1)
    )
    with pytest.raises(InvalidInput, match="event: got 2-grams"):
        spread(learned(1)[0], hmm.privacy_, 300)
    with pytest.raises(InvalidInput, match="event: got transitions and starts; expected that of words"):
        spread(hmm, learned(1)[1], 300)


START = dphmm.markov.CategoricalHMM(2, n_features=3, init_params="")
START.startprob_, START.transmat_ = [0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]]
START.emissionprob_ = [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
def test_it_is_about_the_scatter_of_hidden_models(known):
    """Words and known states, from a public start: of probabilities of every kind, by the median of each."""

    def fitted(seed):
        random, hmm = np.random.default_rng(seed), copy.deepcopy(START)
        both = [START.sample(8, random_state=random) for _ in range(200)]
        states = [path for _, path in both] if known else None
        return hmm.fit_private(
            [rows.ravel() for rows, _ in both], states=states, epsilon=2, max_length=8, bits=ReplayBits(seed)
        )

    models = [fitted(seed) for seed in range(30)]
    found = spread(models[0], models[0].privacy_, 200, draws=40, start=None if known else START)
    for name, each in (
        ("startprob_", found.initial),
        ("transmat_", found.transition),
        ("emissionprob_", found.emission),
    ):
        ratio = each / np.std([getattr(model, name) for model in models], axis=0, ddof=1)
        assert 0.5 < np.median(ratio) < 2
    more = spread(models[0], models[0].privacy_, 20_000, draws=10, start=None if known else START)
    assert more.emission.mean() < 0.5 * found.emission.mean()


def test_of_a_chain_with_an_end_the_end_has_none():
    model, event = fit_chain([[0, 1, 0]] * 60 + [[0]] * 60, 3, 1, 4, end=2, bits=ReplayBits(2))
    moves = model.transition.copy()
    moves.data = spread(model, event, 120)
    assert moves.toarray()[2].tolist() == [0, 0, 0] and (moves.toarray()[:2] > 0).all()
