"""One-shot histograms: words are counted right, and EM on them is EM.

The tensors of ``expected`` are compared with sums over all hidden paths, and a climb with the Baum-Welch of
``dphmm.markov.hidden`` on the same words as weighted sequences.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.markov.hidden import Observations, em
from dphmm.markov.private import ngrams
from dphmm.markov.private.ngrams import climb, count_ngrams, expected
from dphmm.markov.private.release import NoisyTable
from dphmm.markov.private.sensitivity import Caps, kept_records
from small_records import random_parameters


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), max_size=6), st.integers(2, 4))
def test_words_are_counted_inside_sequences_only(data, order):
    found = count_ngrams(kept_records(data, 3, Caps(5)), 3, order).reshape((3,) * order)
    plain = np.zeros((3,) * order, dtype=int)
    for sequence in data:
        cut = sequence[:5]
        for at in range(len(cut) - order + 1):
            plain[tuple(cut[at : at + order])] += 1
    np.testing.assert_array_equal(found, plain)


def expected_by_paths(weights, parameters):
    """(log-likelihood, transitions, emissions) by adding up every hidden path of every word."""
    n, v, order = parameters.n_states, parameters.n_symbols, weights.ndim
    loglik, moves, emissions = 0.0, np.zeros((n, n)), np.zeros((n, v))
    for word in itertools.product(range(v), repeat=order):
        paths = {}
        for path in itertools.product(range(n), repeat=order):
            chance = parameters.initial[path[0]]
            for t in range(order):
                chance *= parameters.emission[path[t], word[t]]
                chance *= parameters.transition[path[t], path[t + 1]] if t + 1 < order else 1.0
            paths[path] = chance
        total = sum(paths.values())
        if total == 0 or weights[word] == 0:
            continue
        loglik += weights[word] * np.log(total)
        for path, chance in paths.items():
            share = weights[word] * chance / total
            for t in range(order):
                emissions[path[t], word[t]] += share
                if t + 1 < order:
                    moves[path[t], path[t + 1]] += share
    return loglik, moves, emissions


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("n", "v", "order"), [(2, 2, 2), (2, 3, 3), (3, 2, 4), (1, 2, 2)])
def test_expected_counts_are_sums_over_all_paths(n, v, order, zeros):
    weights = np.random.default_rng(1).gamma(0.5, size=(v,) * order)
    weights[(0,) * order] = 0.0
    parameters = random_parameters(2, n, v, zeros)
    for found, plain in zip(expected(weights, parameters), expected_by_paths(weights, parameters), strict=True):
        np.testing.assert_allclose(found, plain, atol=1e-12)


@pytest.mark.parametrize(("n", "v", "order"), [(2, 3, 2), (3, 4, 3)])
def test_a_climb_is_baum_welch_on_weighted_words(monkeypatch, n, v, order):
    monkeypatch.setattr(ngrams, "FLOOR", 0.0)
    weights = np.random.default_rng(3).gamma(0.5, size=(v,) * order) * 50
    start = random_parameters(4, n, v)
    words = np.stack(np.unravel_index(np.arange(v**order), (v,) * order), axis=1)
    observed = Observations(words.ravel().astype(np.int64), np.arange(v**order + 1) * order)
    plain, monitor = em(start, observed, weights.ravel(), n_iter=25, tol=-np.inf, start="stationary")
    found = climb(weights, start, "ste", 25, -np.inf)
    np.testing.assert_allclose(found.history, monitor.history, rtol=1e-9)
    for name in ("initial", "transition", "emission"):
        np.testing.assert_allclose(getattr(found.parameters, name), getattr(plain, name), atol=1e-8)


def test_it_settles_and_says_so():
    weights = np.random.default_rng(5).gamma(1.0, size=(3, 3)) * 100
    found = climb(weights, random_parameters(6, 2, 3), "ste", 500, 1e-6)
    assert found.converged and len(found.history) < 500
    assert not climb(weights, random_parameters(6, 2, 3), "ste", 2, 1e-12).converged


def test_letters_left_out_stay():
    weights = np.random.default_rng(5).gamma(1.0, size=(3, 3)) * 100
    start = random_parameters(6, 2, 3)
    only_emissions = climb(weights, start, "e", 5, 0.0).parameters
    np.testing.assert_array_equal(only_emissions.transition, start.transition)
    assert not np.allclose(only_emissions.emission, start.emission)
    only_moves = climb(weights, start, "t", 5, 0.0).parameters
    np.testing.assert_array_equal(only_moves.emission, start.emission)


def test_what_is_impossible_stays_so_and_impossible_words_are_passed_over():
    start = random_parameters(7, 3, 3, zeros=True)
    found = climb(np.ones((3, 3)), start, "ste", 20, 0.0).parameters
    np.testing.assert_array_equal(found.transition > 0, start.transition > 0)
    np.testing.assert_array_equal(found.emission > 0, start.emission > 0)
    for rows in (found.initial[None], found.transition, found.emission):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0)


def test_a_histogram_of_nothing_but_noise_below_zero_leaves_the_start():
    table = NoisyTable(np.full(9, -3.0), 2.0)
    weights = ngrams.weights_of(table, 3, 2, "simplex")
    assert not weights.any()
    start = random_parameters(8, 2, 3)
    found = climb(weights, start, "ste", 10, 0.0)
    np.testing.assert_array_equal(found.parameters.transition, start.transition)
    assert found.history == () and not found.converged


def test_large_histograms_are_refused_from_public_numbers():
    ngrams.check_cells(17, 5)
    with pytest.raises(InvalidInput, match="order: got 6") as error:
        ngrams.check_cells(17, 6)
    assert "\n" not in str(error.value)
