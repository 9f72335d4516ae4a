"""Losses carried backwards along a chain whose laws move: against every reversed kernel written out as a matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, islice

import numpy as np
import pytest

from dphmm.accounting.leakage_step import LeakageCurve
from dphmm.dependent import (
    AnyQuery,
    Chain,
    Sum,
    calibrate,
    stationary_law,
)
from dphmm.dependent._chain import LagCurves, laws_by_lag
from dphmm.types import BoolArray, FloatArray
from random_seeds import seeds


def kernels(chain: Chain) -> Iterator[tuple[FloatArray, BoolArray]]:
    """The law of every tuple given the next one, as a matrix, and which of its rows are possible."""
    for t in range(chain.n - 1):
        possible = chain.possible(t + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            back = (chain.marginal(t)[:, None] * chain.matrix(t)).T / chain.marginal(t + 1)[:, None]
        back[~possible] = 0.0
        yield back, possible


def maxima(chain: Chain) -> list[LeakageCurve]:
    """Of each step the maximum over all pairs and prefixes, as a function of the loss before it."""
    return [LeakageCurve.of(back, possible) for back, possible in kernels(chain)]


def judged(chain: Chain, single: FloatArray, curves: list[LeakageCurve] | None = None) -> FloatArray:
    """``carried`` of a chain, every step of it compared with the maximum over all pairs and prefixes."""
    carried = chain.reversals.carried(single)
    error = chain.reversals.errors
    assert carried[0] == 0.0
    for i, curve in enumerate(curves or maxima(chain), start=1):
        message = single[i - 1] + carried[i - 1]
        true = curve(message)
        assert carried[i] >= true * (1 - 1e-15), f"too little at tuple {i}: {carried[i]!r} for {true!r}"
        hidden = 6e-11 * math.expm1(message) if message <= 12 else 0.0
        room = 2 * error[i - 1] * math.expm1(min(message, 0.7)) + hidden + 1e-12 * true + 1e-15
        assert carried[i] <= true + room, f"too much at tuple {i}: {carried[i]!r} for {true!r}"
    return carried


def sticky(k: int, stay: float, seed: int, concentration: float = 1.0) -> FloatArray:
    rows = np.random.default_rng(seed).dirichlet(np.full(k, concentration), k)
    return stay * np.eye(k) + (1 - stay) * rows


def few_moves(k: int, seed: int) -> FloatArray:
    """Sparse rows, all of which share the first column, so that no loss passes whole for structure alone."""
    chance = np.random.default_rng(seed)
    matrix = chance.random((k, k)) * (chance.random((k, k)) < 0.4)
    matrix[:, 0] += 0.2
    return matrix / matrix.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("stay", [0.0, 0.3, 0.9, 0.99, 0.9999])
@pytest.mark.parametrize("start", ["end", "even", "uneven"])
def test_every_step_is_the_maximum_over_all_pairs(stay, start):
    k = 6
    first = {
        "end": np.eye(k)[0],
        "even": np.full(k, 1 / k),
        "uneven": 10.0 ** -np.arange(0, 3 * k, 3) / (10.0 ** -np.arange(0, 3 * k, 3)).sum(),
    }
    for seed in range(3):
        matrix = sticky(k, stay, seed)
        curves = maxima(Chain(matrix, 150, start=first[start]))
        for per_tuple in (1e-6, 0.01, 1.5):
            judged(Chain(matrix, 150, start=first[start]), np.full(150, per_tuple), curves)


@seeds(12)
def test_sparse_moves_and_losses_that_differ(seed):
    """Losses of single tuples from none to large: what is known at a high ratio is used at a low one."""
    chance = np.random.default_rng(seed)
    k = int(chance.integers(2, 9))
    single = chance.choice([0.0, 1e-7, 0.05, 1.0, 8.0], 120)
    judged(Chain(few_moves(k, seed), 120, start=chance.dirichlet(np.full(k, 0.3))), single)


def test_a_loss_that_drops_and_rises():
    """The ratio reached falls by seven orders of magnitude, and the laws move all the while."""
    single = np.concatenate([np.full(20, 5.0), np.zeros(40), np.full(40, 1e-7), np.full(20, 3.0), np.zeros(30)])
    for seed in range(6):
        judged(Chain(sticky(5, 0.2, seed, 0.3), 150, start=np.eye(5)[seed % 5]), single)


def test_values_that_come_and_go():
    """With period 2 half of the values are possible at a time: nothing is known from one tuple to the next."""
    for seed in range(6):
        matrix = np.zeros((8, 8))
        matrix[:4, 4:], matrix[4:, :4] = sticky(4, 0.9, seed), sticky(4, 0.8, seed + 10)
        first = 10.0 ** -np.random.default_rng(seed).permutation([0.0, 3.0, 6.0, 9.0])
        chain = Chain(matrix, 80, start=np.r_[first / first.sum(), np.zeros(4)])
        judged(chain, np.full(80, 0.1))


def test_what_is_too_rare_loses_all_and_what_follows_is_looked_at_anew():
    matrix = np.array([[0.5, 0.5 - 1e-290, 1e-290], [0.3, 0.7, 0.0], [0.0, 0.5, 0.5]])
    matrix /= matrix.sum(axis=1, keepdims=True)
    chain = Chain(matrix, 40, start=[0.6, 0.4, 0.0])
    carried = chain.reversals.carried(np.full(40, 0.1))
    assert carried[1] == 0.1 and carried[2] == pytest.approx(0.2, rel=1e-12)
    safe = Chain(matrix[:2, :2] / matrix[:2, :2].sum(axis=1, keepdims=True), 40, start=[0.6, 0.4])
    assert (carried >= safe.reversals.carried(np.full(40, 0.1)) * (1 - 1e-12)).all()


def test_equal_rows_tell_nothing():
    chain = Chain(np.tile([0.2, 0.3, 0.5], (3, 1)), 20, start=[1.0, 0.0, 0.0])
    assert not chain.reversals.carried(np.ones(20)).any()


def test_a_loss_too_large_for_floats_is_bounded_by_itself():
    carried = Chain(sticky(4, 0.9, 1), 30, start=np.eye(4)[0]).reversals.carried(np.full(30, 650.0))
    assert np.isfinite(carried).all() and (carried[2:] >= 650.0 - 600.0).all()
    assert (carried <= 650.0 * np.arange(30) * (1 + 1e-12)).all()


def test_against_fractions():
    """Exact chances, exact maxima over all sets of values: what floats carry is never less."""
    chance = np.random.default_rng(7)
    for _ in range(4):
        k, n = 4, 25
        weights = [[Fraction(int(w)) for w in row] for row in chance.integers(1, 30, (k, k))]
        moves = [[w / sum(row) for w in row] for row in weights]
        law = [Fraction(1, 1000)] * (k - 1)
        law = [*law, 1 - sum(law)]
        single = np.full(n, 0.125)
        chain = Chain(np.array(moves, dtype=float), n, start=np.array(law, dtype=float))
        carried = chain.reversals.carried(single)
        for i in range(1, n):
            after = [sum(law[x] * moves[x][y] for x in range(k)) for y in range(k)]
            back = [[law[x] * moves[x][y] / after[y] for x in range(k)] for y in range(k)]
            law = after
            weight = Fraction(math.exp(float(single[i - 1] + carried[i - 1]))) - 1
            largest = max(
                (1 + weight * sum(q[x] for x in some)) / (1 + weight * sum(d[x] for x in some))
                for q in back
                for d in back
                for size in range(k)
                for some in combinations(range(k), size)
            )
            assert carried[i] >= math.log(largest) * (1 - 1e-14)


def test_the_scale_does_not_depend_on_how_it_was_found():
    """A list of equal matrices goes by the scan of every kernel alone, one matrix by what is known of all."""
    matrix, first = sticky(5, 0.95, 2), np.eye(5)[0]
    query = Sum(np.arange(5))
    together = calibrate(Chain(matrix, 80, start=first), query, 1, "markov")
    apart = calibrate(Chain([matrix] * 79, start=first), query, 1, "markov")
    assert float(together.scale) == pytest.approx(float(apart.scale), rel=1e-9)


def test_relabelled_values_carry_the_same():
    matrix, first = sticky(6, 0.8, 5), np.random.default_rng(5).dirichlet(np.ones(6))
    order = np.array([3, 1, 5, 0, 2, 4])
    one = Chain(matrix, 90, start=first).reversals.carried(np.full(90, 0.2))
    other = Chain(matrix[np.ix_(order, order)], 90, start=first[order]).reversals.carried(np.full(90, 0.2))
    assert one == pytest.approx(other, rel=1e-12)


def chain(kind: str, k: int = 6) -> Chain:
    chance = np.random.default_rng(4)
    dense = chance.dirichlet(np.ones(k), k)
    line = 0.5 * np.eye(k) + 0.3 * np.eye(k, k=1) + 0.2 * np.eye(k, k=-1)
    into = dense.copy()
    into[2:, :2] = 0.0
    matrices = {
        "dense": dense,
        "slow": 0.95 * np.eye(k) + 0.05 * dense,
        "line": line / line.sum(axis=1, keepdims=True),
        "some values are left for good": into / into.sum(axis=1, keepdims=True),
        "round": np.roll(np.eye(k), 1, axis=1),
    }
    return Chain(matrices[kind], 60, start="stationary")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "slow", "line", "some values are left for good", "round"])
def test_every_lag_is_the_maximum_over_all_pairs(kind):
    """Asked in any order, and again between losses that were asked before, where nothing is scanned."""
    model = chain(kind)
    possible = model.possible(0)
    for matrix, curves in zip(model.moves, model.lags, strict=True):
        laws = list(islice(laws_by_lag(matrix, possible, np.eye(len(matrix))), 50))
        for alpha in (1e-6, 3.0, 0.01, 0.001, 0.5, 700.0, 0.02, 2.9):
            # Beyond some lag rows differ by rounding alone.
            for lag, found in enumerate(islice(curves(alpha), 50), start=1):
                assert found == pytest.approx(LeakageCurve.of(laws[lag - 1])(alpha), rel=1e-9, abs=1e-14)
            assert curves.at(37, alpha) == pytest.approx(LeakageCurve.of(laws[36])(alpha), rel=1e-9, abs=1e-14)


def test_no_loss_of_nothing():
    model = chain("dense")
    assert list(islice(model.lags[0](0.0), 5)) == [0.0] * 5
    assert isinstance(model.lags[0], LagCurves)


@pytest.mark.parametrize("kind", ["dense", "slow", "line"])
def test_the_scale_is_that_of_all_pairs(kind):
    """A chain with its stationary law said in full is no stationary chain: it looks at all pairs of tuples."""
    by_lag = chain(kind)
    by_pair = Chain(by_lag.matrix(0), 60, start=by_lag.marginal(0))
    assert by_lag.stationary and not by_pair.stationary
    scales = [float(calibrate(model, AnyQuery(2), 1, "dpm", exact=False).scale) for model in (by_lag, by_pair)]
    assert scales[0] == pytest.approx(scales[1], rel=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_stationary_laws(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(6, 0.3), 6)
    law = stationary_law(matrix)
    assert law @ matrix == pytest.approx(law, rel=1e-12, abs=0)
    # Nearly decomposed: the entries keep their relative accuracy.
    bursty = stationary_law(np.array([[1 - 1e-12, 1e-12], [1e-3, 1 - 1e-3]]))
    assert bursty[1] / bursty[0] == pytest.approx(1e-9, rel=1e-12)


def test_reversed_kernels_of_a_chain_that_settles():
    """Kernels that are used again once the marginals stand nearly still are within the error they state."""
    matrix = np.array([[0.7, 0.3], [0.2, 0.8]])
    model = Chain(matrix, 200, start=[0.999, 0.001])
    marginal = np.array([0.999, 0.001])
    for t in range(199):
        after = marginal @ matrix
        exact = (marginal[:, None] * matrix).T / after[:, None]
        kernel = model.kernel(t + 1, t)
        assert np.abs(kernel.matrix / exact - 1).max() <= kernel.error
        marginal = after
    assert len({id(model.kernel(t + 1, t)) for t in range(199)}) < 60
