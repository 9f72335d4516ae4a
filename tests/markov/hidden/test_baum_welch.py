"""Learning does what it says beyond what hmmlearn has.

Claims: integer weights are repetitions; the log-likelihood never falls; another numbering of states or symbols, or
another order of sequences, gives the same model renumbered; sparse structures stay sparse and cost only their entries;
a stationary start is stationary in every expectation; of several random starts the likeliest is kept; nothing is ever
NaN, also where a state is never visited. Fails where a weight is squared, a start draws from the same numbers as the
one before, or a row of zeros is divided.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import naive_hmm
from dphmm.errors import InvalidInput
from dphmm.markov import CategoricalHMM
from dphmm.markov.hidden import Parameters, Priors, em, expected_counts, observations


def made(seed, n_states=3, n_symbols=4, n_sequences=12):
    random = np.random.default_rng(seed)
    symbols = [random.integers(0, n_symbols, random.integers(1, 15)) for _ in range(n_sequences)]
    return Parameters(*naive_hmm.random_model(random, n_states, n_symbols)), symbols


def assert_close(one, other, tolerance=1e-10):
    for name in ("initial", "transition", "emission"):
        assert np.abs(getattr(one, name) - getattr(other, name)).max() <= tolerance, name


def test_weights_are_repetitions():
    start, symbols = made(0)
    weights = np.random.default_rng(1).integers(0, 4, len(symbols))
    repeated = [sequence for sequence, weight in zip(symbols, weights, strict=True) for _ in range(weight)]
    weighed, monitor = em(start, observations(symbols), weights, n_iter=5, tol=-1.0)
    plain, plain_monitor = em(start, observations(repeated), n_iter=5, tol=-1.0)
    assert_close(weighed, plain)
    assert monitor.history == pytest.approx(plain_monitor.history, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_log_likelihood_never_falls(seed):
    start, symbols = made(seed)
    _, monitor = em(start, observations(symbols), n_iter=40, tol=-np.inf)
    assert monitor.iter == 40
    assert np.diff(monitor.history).min() >= -1e-9


def test_the_order_of_sequences_and_the_names_of_states_and_symbols_do_not_matter():
    start, symbols = made(2)
    learned, _ = em(start, observations(symbols), n_iter=6, tol=-1.0)
    shuffled, _ = em(start, observations(symbols[::-1]), n_iter=6, tol=-1.0)
    assert_close(learned, shuffled)
    states, names = np.array([2, 0, 1]), np.array([3, 1, 0, 2])
    other = Parameters(
        start.initial[states], start.transition[np.ix_(states, states)], start.emission[states][:, names]
    )
    renamed, _ = em(other, observations([np.argsort(names)[s] for s in symbols]), n_iter=6, tol=-1.0)
    back = Parameters(
        learned.initial[states], learned.transition[np.ix_(states, states)], learned.emission[states][:, names]
    )
    assert_close(renamed, back)


def test_a_stationary_start_is_that_of_the_present_transitions():
    """Against the iterations written out, on weighted pairs of symbols as a histogram of words has them."""
    start, _ = made(3)
    pairs = [np.array([a, b]) for a in range(4) for b in range(4)]
    weights = np.random.default_rng(3).random(16)
    learned, monitor = em(start, observations(pairs), weights, n_iter=4, tol=-np.inf, start="stationary")
    by_hand, logs = start, []
    for _ in range(4):
        at = Parameters(by_hand.stationary, by_hand.transition, by_hand.emission)
        counts = expected_counts(at, observations(pairs), weights)
        logs.append(counts.log_likelihood)
        rows = [table / table.sum(axis=1, keepdims=True) for table in (counts.transition, counts.emission)]
        by_hand = Parameters(by_hand.initial, *rows)
    assert_close(learned, Parameters(by_hand.stationary, by_hand.transition, by_hand.emission))
    assert monitor.history == pytest.approx(logs, rel=1e-12)
    assert learned.initial @ learned.transition == pytest.approx(learned.initial, abs=1e-12)


@pytest.mark.parametrize(
    "matrix", [[[0.5, 0.5], [0.1, 0.9]], [[0, 1], [1, 0]], [[1, 0], [0, 1]], [[1.0, 0], [0.5, 0.5]], [[1.0]]]
)
def test_stationary_distributions(matrix):
    """Also of periodic chains, of chains with two closed classes, and of those with a transient state."""
    matrix = np.array(matrix, dtype=float)
    n = len(matrix)
    found = Parameters(np.full(n, 1 / n), matrix, np.ones((n, 1))).stationary
    assert found @ matrix == pytest.approx(found, abs=1e-11)
    assert found.sum() == pytest.approx(1.0)
    assert np.isfinite(found).all()


def test_a_state_that_is_never_visited_keeps_its_rows():
    model = np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.3, 0.7]]), np.array([[0.5, 0.5], [0.2, 0.8]])
    learned, _ = em(Parameters(*model), observations([[0, 1, 1, 0]]), n_iter=3, tol=-1.0)
    assert np.array_equal(learned.transition, model[1])
    assert np.array_equal(learned.emission[1], model[2][1])
    assert np.isfinite(learned.emission).all()


def test_sparse_structures_stay_sparse_and_give_the_same():
    random = np.random.default_rng(4)
    n = 300
    chain = sparse.csr_array(np.eye(n) * 0.5 + np.roll(np.eye(n), 1, axis=1) * 0.5)
    model = np.full(n, 1 / n), random.dirichlet(np.ones(4), size=n)
    observed = observations([random.integers(0, 4, 50) for _ in range(6)])
    learned, _ = em(Parameters(model[0], chain, model[1]), observed, n_iter=3, tol=-1.0)
    plain, _ = em(Parameters(model[0], chain.toarray(), model[1]), observed, n_iter=3, tol=-1.0)
    assert sparse.issparse(learned.transition)
    assert learned.transition.nnz <= 2 * n
    assert_close(Parameters(learned.initial, learned.transition.toarray(), learned.emission), plain)


def test_of_several_starts_the_likeliest_is_kept():
    symbols = [np.tile([0, 1, 2, 3], 10), np.tile([3, 2, 1, 0], 10)]
    scores = []
    for n_starts in (1, 6):
        model = CategoricalHMM(6, random_state=3, n_starts=n_starts, n_iter=60)
        scores.append(model.fit(symbols).score(symbols))
    generator = np.random.default_rng(3)
    each = [CategoricalHMM(6, random_state=generator, n_iter=60).fit(symbols).score(symbols) for _ in range(6)]
    assert scores == pytest.approx([each[0], max(each)])
    assert max(each) > each[0] + 1


def test_a_prior_of_the_wrong_shape_is_refused():
    start, symbols = made(5)
    for name, prior in (("startprob_prior", np.ones(2)), ("transmat_prior", "much"), ("emissionprob_prior", np.nan)):
        field = {"startprob_prior": "initial", "transmat_prior": "transition", "emissionprob_prior": "emission"}[name]
        with pytest.raises(InvalidInput, match=f"^{name}: "):
            em(start, observations(symbols), n_iter=1, tol=0.0, priors=Priors(**{field: prior}))


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0], "shape"), ([-1.0] * 12, "weights"), ([np.nan] * 12, "weights"), ([0] * 12, "zeros"), ("abc", "weights")],
)
def test_wrong_weights_are_refused(weights, message):
    start, symbols = made(6)
    with pytest.raises(InvalidInput, match=message):
        expected_counts(start, observations(symbols), weights)


@settings(max_examples=60)
@given(
    symbols=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=8),
    n_states=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_ragged_data_give_a_model(symbols, n_states, seed):
    """No NaN, rows that sum to 1, expected counts that add up, whatever the data."""
    arrays = [np.array(sequence) for sequence in symbols]
    joined, lengths = np.concatenate(arrays), [len(array) for array in arrays]
    model = CategoricalHMM(n_states, n_features=4, random_state=seed, n_iter=4, tol=-1.0).fit(joined, lengths)
    for rows in (model.startprob_[None, :], model.transmat_, model.emissionprob_):
        assert rows.sum(axis=1) == pytest.approx(1.0)
        assert (rows >= 0).all()
    assert np.isfinite(model.monitor_.history).all()
    assert model.predict_proba(joined, lengths).sum(axis=1) == pytest.approx(1.0)
    counts = expected_counts(model.parameters, observations(joined, lengths))
    assert counts.initial.sum() == pytest.approx(len(symbols))
    assert counts.transition.sum() == pytest.approx(len(joined) - len(symbols), abs=1e-9)
    assert counts.emission.sum(axis=0) == pytest.approx(np.bincount(joined, minlength=4))
