"""Hidden models from a noisy histogram: words are counted right, slopes are those of the density, nothing else enters.

The density of a noisy count is compared with a sum over the noise, chances of words and their slopes with sums over all
hidden paths and with differences. What could go wrong: a prior on the wrong row, a zero that becomes possible, a start
that is held on to though it was drawn, an order that the data decide.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.markov.hidden import CategoricalHMM
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private import hidden, ngrams
from dphmm.markov.private.ngrams import WordTable, check_cells, count_ngrams, histogram_for, likeliest, log_density
from dphmm.markov.private.release import NoisyTable
from dphmm.markov.private.sensitivity import RecordBounds, kept_records
from dphmm.samplers.body import LaplaceSampler
from dphmm.samplers.entropy import ReplayBits
from small_records import random_parameters

pytestmark = pytest.mark.replayed_words


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), max_size=6), st.integers(2, 4))
def test_words_are_counted_inside_sequences_only(data, order):
    found = count_ngrams(kept_records(data, 3, RecordBounds(5)), 3, order).reshape((3,) * order)
    plain = np.zeros((3,) * order, dtype=int)
    for sequence in data:
        cut = sequence[:5]
        for at in range(len(cut) - order + 1):
            plain[tuple(cut[at : at + order])] += 1
    np.testing.assert_array_equal(found, plain)


def test_large_histograms_are_refused_from_public_numbers():
    check_cells(WordTable(17, 5))
    with pytest.raises(InvalidInput, match="order: got 6") as error:
        check_cells(WordTable(17, 6))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("mean", [0.0, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("scale", [0.7, 5.0, 60.0])
def test_the_density_is_a_sum_over_the_noise(mean, scale):
    deviation = max(mean, 1.0) ** 0.5
    for value in (-70.0, -1.0, 0.0, 4.0, 45.0, 300.0):
        near = np.concatenate([np.arange(-12, 12, 1e-3) * deviation + mean])
        logs = -0.5 * ((near - mean) / deviation) ** 2 - np.log(deviation * np.sqrt(2 * np.pi))
        logs += -np.abs(value - near) / scale - np.log(2 * scale) + np.log(1e-3 * deviation)
        found, slope = log_density(np.array([value]), np.array([mean]), scale)
        assert found[0] == pytest.approx(np.logaddexp.reduce(logs), rel=1e-4, abs=1e-4)
        if mean != 0.5:
            step = 1e-5
            sides = [log_density(np.array([value]), np.array([mean + side]), scale)[0][0] for side in (-step, step)]
            assert slope[0] == pytest.approx((sides[1] - sides[0]) / (2 * step), rel=1e-4, abs=1e-6)


def chances(parameters, order):
    """P(word) by a sum over all hidden paths."""
    n, v = parameters.emission.shape
    found = np.zeros((v,) * order)
    for word in itertools.product(range(v), repeat=order):
        for path in itertools.product(range(n), repeat=order):
            chance = parameters.initial[path[0]]
            for t in range(order):
                chance *= parameters.emission[path[t], word[t]]
                chance *= parameters.transition[path[t], path[t + 1]] if t + 1 < order else 1.0
            found[word] += chance
    return found.ravel()


@pytest.mark.parametrize(("n", "v", "order"), [(2, 2, 2), (2, 3, 3), (3, 2, 4), (1, 2, 2), (2, 3, 1)])
def test_chances_and_slopes_are_those_of_all_paths(n, v, order):
    parameters = random_parameters(2, n, v)
    weights = np.random.default_rng(1).normal(size=v**order)
    forward, backward = ngrams._passes(parameters.initial, parameters.transition, parameters.emission, order)
    np.testing.assert_allclose(forward[-1].sum(axis=1), chances(parameters, order), atol=1e-14)
    slopes = ngrams._slopes(weights, forward, backward, parameters.transition, parameters.emission)
    tables = (parameters.initial[None], parameters.transition, parameters.emission)
    for k, table in enumerate(tables):
        for place in np.ndindex(table.shape):
            sides = []
            for step in (-1e-6, 1e-6):
                moved = [given.copy() for given in tables]
                moved[k][place] *= np.exp(step)
                sides.append(weights @ chances(Parameters(moved[0][0], moved[1], moved[2]), order))
            assert slopes[k][place] == pytest.approx((sides[1] - sides[0]) / 2e-6, rel=1e-5, abs=1e-7)


def climbed(values, start, public="ste", letters="ste", order=2, scale=20.0):
    histogram = WordTable(start.emission.shape[1], order)
    return likeliest(values, start, public, letters, histogram, scale, 300, 1e-6)


def noisy(parameters, total, scale, order=2, seed=1):
    exact = np.random.default_rng(seed).multinomial(total, chances(parameters, order))
    return (exact + LaplaceSampler(scale).draw(len(exact), ReplayBits(seed))).astype(float)


def test_the_posterior_never_falls_and_settles():
    climb = climbed(noisy(random_parameters(3, 2, 4), 5_000, 20), random_parameters(4, 2, 4))
    assert climb.converged and (np.diff(climb.history) > 0).all()


def test_at_the_end_no_small_change_is_more_probable(monkeypatch):
    """The most probable parameters do not depend on where the climb ends by more than its tolerance."""
    values, start = noisy(random_parameters(3, 2, 3), 3_000, 10), random_parameters(4, 2, 3)
    once = climbed(values, start, scale=10.0)
    again = likeliest(values, start, "ste", "ste", WordTable(3, 2), 10.0, 2_000, 1e-12)
    np.testing.assert_allclose(again.history[-1], once.history[-1], atol=1e-3)


def test_letters_left_out_stay():
    values, start = noisy(random_parameters(5, 2, 3), 3_000, 10), random_parameters(6, 2, 3)
    only_emissions = climbed(values, start, letters="e").parameters
    np.testing.assert_array_equal(only_emissions.transition, start.transition)
    np.testing.assert_array_equal(only_emissions.initial, start.initial)
    assert not np.allclose(only_emissions.emission, start.emission)
    only_moves = climbed(values, start, letters="t").parameters
    np.testing.assert_array_equal(only_moves.emission, start.emission)


def test_zeros_stay_zeros_and_nothing_else_becomes_one():
    start = random_parameters(7, 3, 3, zeros=True)
    for public in ("ste", ""):
        found = climbed(np.ones(9), start, public).parameters
        np.testing.assert_array_equal(found.transition > 0, start.transition > 0)
        np.testing.assert_array_equal(found.emission > 0, start.emission > 0)
        for rows in (found.initial[None], found.transition, found.emission):
            np.testing.assert_allclose(rows.sum(axis=1), 1.0)


def test_of_nothing_but_noise_comes_the_prior_and_of_many_words_the_truth():
    truth, start = random_parameters(8, 2, 3), random_parameters(9, 2, 3)
    for public, weight in (("ste", 1 / 3), ("", 0.0)):
        found = climbed(np.zeros(9), start, public, scale=1e5).parameters
        np.testing.assert_allclose(found.emission, weight * start.emission + (1 - weight) / 3, atol=0.02)
        sticky = weight * start.transition + (1 - weight) * (np.eye(2) + 0.5) / 2 * np.array([[1.0], [1.0]])
        np.testing.assert_allclose(found.transition, sticky / sticky.sum(axis=1, keepdims=True), atol=0.05)
    many = climbed(10**7 * chances(truth, 3), start, order=3, scale=1.0).parameters
    np.testing.assert_allclose(chances(many, 3), chances(truth, 3), atol=1e-4)


def test_other_true_numbers_with_the_same_noisy_table_give_the_same_bytes(monkeypatch):
    """Order, starts, prior and model: none of them follows from the data beside the table."""
    table = NoisyTable(np.array([3.0, -2.0, 7.0, 1.0, 0.0, 5.0, -9.0, -1.0, 14.0]), 2.0)
    asked = []
    monkeypatch.setattr(hidden, "release", lambda counts, *_: asked.append(len(counts)) or table)
    models = []
    for data in ([], [[0, 1]], [[2, 2, 2]] * 500, [[1]] * 31):
        hmm = CategoricalHMM(2, n_features=3, random_state=1)
        models.append(hmm.fit_private(data, epsilon=1, max_length=5, order=2, bits=ReplayBits(1)))
    assert (
        len({(hmm.startprob_.tobytes(), hmm.transmat_.tobytes(), hmm.emissionprob_.tobytes()) for hmm in models}) == 1
    )
    assert len({repr(hmm.privacy_) + repr(hmm.monitor_) for hmm in models}) == 1
    assert asked == [9] * 4


def test_symbols_that_tell_the_state_are_told_apart():
    """Six states that stay and show themselves, with noise that hides none of it, are not taken for one."""
    table = np.full((6, 6), 60.0) + np.diag([6600.0, 4700, 17800, 2900, 2700, 4500])
    values = (table.ravel() + LaplaceSampler(71).draw(36, ReplayBits(1))).astype(float)
    hmm = CategoricalHMM(6, n_features=6, random_state=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden, "release", lambda *_: NoisyTable(values, 100.0))
        hmm.fit_private([[0]], epsilon=1, max_length=72, order=2, n_starts=3, bits=ReplayBits(1))
    assert (hmm.transmat_.diagonal() > 0.8).all() and (np.sort(hmm.emissionprob_.max(axis=1)) > 0.8).all()
    assert sorted(hmm.emissionprob_.argmax(axis=1)) == list(range(6))


def test_ten_starts_draw_the_noise_once(monkeypatch):
    drawn = []
    plainly = hidden.release
    monkeypatch.setattr(hidden, "release", lambda *asked: drawn.append(1) or plainly(*asked))
    CategoricalHMM(2, n_features=3, random_state=1).fit_private([[0, 1]], epsilon=1, max_length=5, bits=ReplayBits(1))
    assert len(drawn) == 1


@pytest.mark.parametrize(
    ("asked", "cells"),
    [
        ((2, 6, 20, 1.0, None), "2-grams"), ((3, 3, 20, 1.0, None), "3-grams"), ((9, 2, 20, 1.0, None), "4-grams"),
        ((9, 2, 3, 1.0, None), "3-grams"), ((2, 6, 20, 1.0, 179), "1-grams"), ((2, 6, 20, 0.1, 1_800), "2-grams"),
        ((2, 6, 20, 1.0, 2_159), "2-grams"), ((2, 6, 20, 1.0, 2_160), "3-grams"), ((2, 6, 20, 6.0, 2_160), "4-grams"),
        ((2, 6, 2, 6.0, 2_160), "2-grams"), ((2, 17, 50, 1.0, 510), "2-grams"), ((9, 2, 1, 9.0, 900), "1-grams"),
    ],
)  # fmt: skip
def test_the_histogram_is_a_function_of_public_numbers(asked, cells):
    assert histogram_for(*asked, public=True).name == cells
    drawn = histogram_for(*asked, public=False)
    assert drawn.name == (cells if cells != "1-grams" or asked[2] == 1 else "symbols that stay and leave")
    assert WordTable.named(drawn.name, asked[1]) == drawn


def test_symbols_that_stay_and_leave():
    """Cells are sums of words by a plain loop; what is given to words is the slope of what is summed."""
    histogram, random = WordTable(3, 2, stays=True), np.random.default_rng(1)
    words, slopes = random.normal(size=9), random.normal(size=6)
    plain = np.zeros((3, 2))
    for first, second in itertools.product(range(3), repeat=2):
        plain[first, int(first == second)] += words[3 * first + second]
    np.testing.assert_allclose(histogram.of_words(words), plain.ravel())
    assert slopes @ histogram.of_words(words) == pytest.approx(histogram.to_words(slopes) @ words)
    assert histogram.n_cells == 6


def test_it_is_nearer_than_the_start_and_than_even_symbols():
    """Gain per symbol over the better one, in the mean of 12 noisy tables by three standard errors."""
    truth = Parameters(
        np.array([0.67, 0.33]), np.array([[0.95, 0.05], [0.1, 0.9]]), np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
    )
    gains = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        half = [
            (rows + random.dirichlet(np.ones(rows.shape[1]), len(rows))) / 2
            for rows in (truth.transition, truth.emission)
        ]
        start = Parameters(truth.initial, *half)
        found = climbed(noisy(truth, 4_000, 50, seed=seed), start, scale=50.0).parameters
        likely = chances(truth, 2)
        worth = [likely @ np.log(chances(model, 2)) / 2 for model in (found, start)]
        gains.append(worth[0] - max(worth[1], -np.log(6)))
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))
