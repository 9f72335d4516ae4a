"""Errata of the paper on private estimation of HMM parameters (IPSJ SIG, 2014), L1 to L5: plain Baum-Welch in NumPy.

Nothing here is part of the package, which does not fit models privately yet: each test is the paper's claim, computed.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

LENGTH = 5


def expected_counts(X, theta):
    """Baum-Welch E-step of sequences (D, L), one symbol a step: transitions (D, S, S), emissions (D, S, V), log-lik."""
    start, move, emit = theta
    (D, L), S = X.shape, len(start)
    seen = emit[:, X].transpose(1, 2, 0)
    alpha, beta, scale = np.empty((D, L, S)), np.ones((D, L, S)), np.empty((D, L))
    for t in range(L):
        ahead = (start if t == 0 else alpha[:, t - 1] @ move) * seen[:, t]
        scale[:, t] = ahead.sum(axis=1)
        alpha[:, t] = ahead / scale[:, t, None]
    for t in range(L - 2, -1, -1):
        beta[:, t] = ((beta[:, t + 1] * seen[:, t + 1]) @ move.T) / scale[:, t + 1, None]
    steps = alpha[:, :-1, :, None] * move * (seen * beta)[:, 1:, None, :] / scale[:, 1:, None, None]
    symbols = np.eye(emit.shape[1])[X]
    return steps.sum(axis=1), np.einsum("dls,dlv->dsv", alpha * beta, symbols), np.log(scale).sum()


def totals(X, theta):
    transitions, emissions, _ = expected_counts(X, theta)
    return transitions.sum(axis=0), emissions.sum(axis=0)


def improved(X, theta):
    A, E = totals(X, theta)
    return theta[0], A / A.sum(axis=1, keepdims=True), E / E.sum(axis=1, keepdims=True)


@cache
def instance():
    """40 sequences of 5 coin flips and a start, chosen among forty by its seed for a large effect of one sequence."""
    rng = np.random.default_rng(9)
    X = rng.integers(0, 2, (40, LENGTH))
    return X, (np.array([0.5, 0.5]), rng.dirichlet([1, 1], 2), rng.dirichlet([1, 1], 2))


def test_erratum_L1_one_iteration_costs_more_than_epsilon():
    X, theta = instance()
    transitions, emissions, _ = expected_counts(X, theta)
    # Every sequence adds L - 1 to the transition counts and L to the emission counts, all of it non-negative.
    assert np.allclose(transitions.sum(axis=(1, 2)), LENGTH - 1) and np.allclose(emissions.sum(axis=(1, 2)), LENGTH)
    assert transitions.min() >= 0 and emissions.min() >= 0
    # Laplace noise of scale L/ε on every count then loses (L - 1)/L·ε and ε: both are released.
    loss = Fraction(LENGTH - 1, LENGTH) + Fraction(LENGTH, LENGTH)
    assert loss == 2 - Fraction(1, LENGTH) > 1


def test_erratum_L2_noise_in_the_last_iteration_alone_is_not_private():
    X, theta = instance()

    def last_counts(sequences):
        current = theta
        for _ in range(30):
            current = improved(sequences, current)
        return totals(sequences, current)

    A, E = last_counts(X)
    moved = []
    for k in range(10):
        a, e = last_counts(np.delete(X, k, axis=0))
        moved.append(np.abs(A - a).sum() + np.abs(E - e).sum())
    # The loss is ε/L times the change of the counts: L for the claimed ε, 2L - 1 for what L1 leaves of it.
    assert max(moved) > 3 * (2 * LENGTH - 1)
    # At parameters that do not depend on the data the change is 2L - 1 and no more.
    A, E = totals(X, theta)
    a, e = totals(X[1:], theta)
    assert np.abs(A - a).sum() + np.abs(E - e).sum() == pytest.approx(2 * LENGTH - 1)


def test_erratum_L3_stopping_on_the_data_publishes_when_it_stopped():
    X, theta = instance()

    def iterations(sequences):
        """The paper's rule: until the log-likelihood gains less than 1e-5, at most 80."""
        current, before = theta, -np.inf
        for t in range(80):
            now = expected_counts(sequences, current)[2]
            if now - before < 1e-5:
                return t
            current, before = improved(sequences, current), now
        return 80

    # One noisy release per iteration: whoever counts them knows whether sequence 14 is in the data.
    assert (iterations(X), iterations(np.delete(X, 14, axis=0))) == (80, 74)


@pytest.mark.parametrize("length", [10, 20, 30])
def test_erratum_L4_longer_sequences_do_not_drown_in_noise(length):
    D, epsilon = 100, 0.5
    scale, mass = length / epsilon, D * length
    # "As L becomes longer, the noise also becomes stronger": so do the counts, and their ratio is 1/(D·ε).
    assert scale / mass == pytest.approx(1 / (D * epsilon))


def test_erratum_L5_the_printed_emission_row_is_no_distribution():
    fair, loaded = [Fraction(1, 6)] * 6, [Fraction(1, 10)] * 5 + [Fraction(1, 5)]
    assert sum(fair) == 1 and sum(loaded) == Fraction(7, 10)
    assert sum([Fraction(1, 10)] * 5 + [Fraction(1, 2)]) == 1
