"""The share of moves that a model of all others calls impossible: against models fitted without each person."""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.markov.trajectories import fit, share_unseen


def plain(sequences, owners, n, smoothing, support, min_count, space):
    """Each person left out in turn, and a model fitted to the others."""
    impossible = total = 0
    for person in np.unique(owners):
        others = [s for s, owner in zip(sequences, owners, strict=True) if owner != person]
        own = [s for s, owner in zip(sequences, owners, strict=True) if owner == person]
        possible = np.zeros((n, n), dtype=bool)
        if smoothing:
            model, _ = fit(others, n, smoothing, "uniform", min_count, smoothing_support=support, space=space)
            possible = model.transition.toarray() > 0
        else:
            counts = np.zeros((n, n), dtype=int)
            for s in others:
                np.add.at(counts, (s[:-1], s[1:]), 1)
            possible = counts >= min_count
        for s in own:
            impossible += int((~possible[s[:-1], s[1:]]).sum())
            total += len(s) - 1
    return impossible / total if total else 0.0


@pytest.mark.parametrize(("smoothing", "support"), [(0.0, None), (0.5, "neighbours"), (0.5, None)])
@pytest.mark.parametrize("min_count", [1, 2])
def test_it_is_what_models_without_each_person_say(smoothing, support, min_count):
    generator = np.random.default_rng(4)
    space = dphmm.Grid.from_bounds(13.0, 52.0, 13.03, 52.02, cell=700)
    n = space.n_states
    met = 0
    for _ in range(10):
        sequences = [generator.integers(0, n, int(generator.integers(1, 9))) for _ in range(12)]
        owners = generator.integers(0, 6, 12)
        got = share_unseen(sequences, owners, space, smoothing, support, min_count)
        assert got == pytest.approx(plain(sequences, owners, n, smoothing, support, min_count, space), abs=1e-6)
        met += got > 0
    assert met == (0 if smoothing and support is None else 10)


def test_no_move_is_no_share():
    space = dphmm.StateSpace([0, 1, 2])
    assert share_unseen([np.array([1]), np.array([], dtype=int)], np.array([0, 1]), space) == 0.0
