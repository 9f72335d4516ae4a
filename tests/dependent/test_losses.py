"""Coefficients, the growth of a loss along a kernel, the recursion and exact losses, against enumeration.

All joint tables here are small enough to multiply out. If the recursion or a coefficient were below what enumeration
finds, or an exact loss differed from it, a model here would show it; where a bound is called tight, it must be reached.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dependent_models import binary, joint_of, true_loss
from dphmm.dependent import (
    AnyQuery,
    Chain,
    JointTable,
    Sum,
    Tree,
    calibrate,
    exact_loss,
)
from dphmm.dependent._losses import tuple_losses


def random_tree(rng):
    n = int(rng.integers(2, 6))
    parents = [-1] + [int(rng.integers(0, i)) for i in range(1, n)]
    sizes = [int(rng.integers(2, 4)) for _ in range(n)]
    kernels = {i: rng.dirichlet(np.full(sizes[i], 0.4), sizes[parents[i]]) for i in range(1, n)}
    return Tree(parents, rng.dirichlet(np.ones(sizes[0])), kernels)


def random_chain(rng):
    k, n = int(rng.integers(2, 4)), int(rng.integers(2, 6))
    kind = rng.integers(3)
    if kind == 0:
        return Chain(rng.dirichlet(np.full(k, 0.5), k), n)
    if kind == 1:
        return Chain(rng.dirichlet(np.full(k, 0.5), k), n, start=rng.dirichlet(np.ones(k)))
    return Chain(list(rng.dirichlet(np.full(k, 0.5), (n - 1, k))), start=rng.dirichlet(np.ones(k)))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("make", [random_chain, random_tree])
def test_exact_losses_and_the_recursion_against_enumeration(make, seed):
    rng = np.random.default_rng(seed)
    model = make(rng)
    values = [rng.integers(0, 4, len(model.marginal(i))) for i in range(model.n)]
    if all(np.ptp(f) == 0 for f in values):
        values[0][0] += 1
    table = joint_of(model)
    rate = float(rng.uniform(0.05, 1.0))
    expected = true_loss(table, lambda x: sum(f[v] for f, v in zip(values, x, strict=True)), rate)
    assert exact_loss(model, Sum(values)).at(1 / rate) == pytest.approx(expected, abs=1e-11)
    as_table = exact_loss(JointTable(list(table), list(table.values())), Sum(values))
    assert as_table.at(1 / rate) == pytest.approx(expected, abs=1e-11)
    single = np.array([np.ptp(f) * rate for f in values])
    assert expected <= tuple_losses(model, single).max() + 1e-12


def test_the_recursion_bounds_histograms_too():
    losses = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 4))
        model = Chain(rng.dirichlet(np.full(k, 0.5), k), 4, start=rng.dirichlet(np.ones(k)))
        found = calibrate(model, AnyQuery(2), 1, "markov")

        def answer(values, k=k):
            return np.bincount(values, minlength=k)

        losses.append(true_loss(joint_of(model), answer, float(found.rate)))
    assert 0.9 < max(losses) <= 1


def test_looking_only_forward_would_not_do():
    """The check can fail: without the messages from earlier tuples the last tuple loses more than the bound."""
    model = binary(0.1, 0.2, 6)
    table, single = joint_of(model), np.full(6, 0.4)
    onward = 0.4
    for _ in range(5):
        onward = 0.4 + model.kernel(0, 1).curve(onward)
    true = true_loss(table, sum, 0.4)
    assert onward < true <= tuple_losses(model, single).max() + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_tight_for_positively_correlated_binary_chains(seed):
    rng = np.random.default_rng(seed)
    up = rng.uniform(0.01, 0.5)
    model = binary(up, rng.uniform(0.01, 1 - up), int(rng.integers(2, 40)))
    assert calibrate(model, Sum([0, 1]), 1).true_epsilon == pytest.approx(1, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 20.0))
def test_more_noise_never_loses_more(seed, scale):
    rng = np.random.default_rng(seed)
    model = random_chain(rng)
    losses = exact_loss(model, Sum(np.arange(model.n_values)))
    assert losses.at(scale * 1.1) <= losses.at(scale) + 1e-12
