"""From the same start, after k iterations, everything equals hmmlearn's to 1e-8.

Claims: parameters, log-likelihoods per iteration, scores, posteriors and decoded paths, with and without priors (also
below 1), frozen parameters, structural zeros and ragged lengths. Fails with a prior added to the wrong table, a frozen
table updated, an iteration too many, or a convergence rule of one's own.
"""

from __future__ import annotations

import numpy as np
import pytest

import naive_hmm
from dphmm.markov import CategoricalHMM

#: Plain fits make a generator of their own, also where all parameters are given.
pytestmark = pytest.mark.replayed_words

# It has no wheels for the newest Pythons; everywhere else `make test` installs it.
hmmlearn = pytest.importorskip("hmmlearn.hmm")

NAMES = ("startprob_", "transmat_", "emissionprob_")


def pair(model, **options):
    """Ours and hmmlearn's, from the same start."""
    n_features = model[2].shape[1]
    ours = CategoricalHMM(len(model[0]), n_features=n_features, init_params="", **options)
    theirs = hmmlearn.CategoricalHMM(len(model[0]), n_features=n_features, init_params="", **options)
    for name, value in zip(NAMES, model, strict=True):
        setattr(ours, name, value.copy())
        setattr(theirs, name, value.copy())
    return ours, theirs


def data(seed, n_states=4, n_symbols=5, zeros=0.0, n_sequences=40):
    random = np.random.default_rng(seed)
    model = naive_hmm.random_model(random, n_states, n_symbols, zeros)
    lengths = random.integers(1, 40, n_sequences)
    return model, random.integers(0, n_symbols, lengths.sum())[:, None], lengths


def assert_equal(ours, theirs):
    for name in NAMES:
        assert np.abs(getattr(ours, name) - getattr(theirs, name)).max() <= 1e-8, name
    assert np.abs(np.subtract(ours.monitor_.history, theirs.monitor_.history)).max() <= 1e-8
    assert ours.monitor_.iter == theirs.monitor_.iter
    assert ours.monitor_.converged == theirs.monitor_.converged


@pytest.mark.parametrize("implementation", ["log", "scaling"])
@pytest.mark.parametrize(("seed", "n_states", "zeros"), [(0, 4, 0.0), (1, 2, 0.0), (2, 5, 0.4), (3, 35, 0.2)])
def test_after_k_iterations(seed, n_states, zeros, implementation):
    model, x, lengths = data(seed, n_states, zeros=zeros)
    ours, theirs = pair(model, n_iter=7, tol=-1.0)
    theirs.implementation = implementation
    assert_equal(ours.fit(x, lengths), theirs.fit(x, lengths))
    assert np.array_equal(ours.transmat_ == 0, model[1] == 0) or zeros == 0


def test_one_long_sequence():
    model, x, _ = data(4, n_sequences=100)
    ours, theirs = pair(model, n_iter=5, tol=-1.0)
    assert_equal(ours.fit(x), theirs.fit(x))


@pytest.mark.parametrize("kind", ["numbers", "arrays", "below 1"])
def test_priors(kind):
    model, x, lengths = data(5)
    random = np.random.default_rng(50)
    shapes = {"startprob_prior": (4,), "transmat_prior": (4, 4), "emissionprob_prior": (4, 5)}
    given = {
        "numbers": {"startprob_prior": 2.0, "transmat_prior": 1.5, "emissionprob_prior": 3.0},
        "arrays": {name: 1 + random.random(shape) for name, shape in shapes.items()},
        "below 1": {"startprob_prior": 0.2, "transmat_prior": 0.5, "emissionprob_prior": 0.9},
    }[kind]
    ours, theirs = pair(model, n_iter=6, tol=-1.0, **given)
    assert_equal(ours.fit(x, lengths), theirs.fit(x, lengths))
    unlike, _ = pair(model, n_iter=6, tol=-1.0)
    assert np.abs(unlike.fit(x, lengths).transmat_ - ours.transmat_).max() > 1e-6


@pytest.mark.parametrize("params", ["", "s", "t", "e", "st", "se", "te"])
def test_frozen_parameters(params):
    model, x, lengths = data(6)
    ours, theirs = pair(model, n_iter=4, tol=-1.0, params=params)
    assert_equal(ours.fit(x, lengths), theirs.fit(x, lengths))
    for letter, name, value in zip("ste", NAMES, model, strict=True):
        assert np.array_equal(getattr(ours, name), value) == (letter not in params)


def test_it_stops_where_hmmlearn_stops():
    model, x, lengths = data(7)
    ours, theirs = pair(model, n_iter=500, tol=0.05)
    assert_equal(ours.fit(x, lengths), theirs.fit(x, lengths))
    assert 2 < ours.monitor_.iter < 500


def test_what_is_asked_of_a_fitted_model():
    model, x, lengths = data(8)
    ours, theirs = pair(model)
    assert ours.score(x, lengths) == pytest.approx(theirs.score(x, lengths), rel=1e-12)
    (log, found), (their_log, their_found) = ours.score_samples(x, lengths), theirs.score_samples(x, lengths)
    assert log == pytest.approx(their_log, rel=1e-12)
    assert np.abs(found - their_found).max() <= 1e-10
    for algorithm in ("viterbi", "map"):
        (log, path), (their_log, their_path) = (m.decode(x, lengths, algorithm) for m in (ours, theirs))
        assert log == pytest.approx(their_log, rel=1e-10)
        assert np.array_equal(path, their_path)
    assert np.array_equal(ours.predict(x, lengths), theirs.predict(x, lengths))
    assert np.abs(ours.predict_proba(x, lengths) - theirs.predict_proba(x, lengths)).max() <= 1e-10
    assert ours.get_stationary_distribution() == pytest.approx(theirs.get_stationary_distribution(), abs=1e-9)
