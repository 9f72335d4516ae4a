"""The spread of a private chain: that of fits to new data of the same chain, and less with more people."""

from __future__ import annotations

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
