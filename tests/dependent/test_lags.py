"""What tuples of a stationary chain say about each other at every distance: kept corners against whole curves."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dphmm.dependent import AnyQuery, Chain, calibrate
from dphmm.dependent._increase import LeakageCurve
from dphmm.dependent._lags import LagCurves, laws_by_lag


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
