"""The M-step: the tilted matrix is the written one, and no update lowers the likelihood of moves with the prior.

Fails for a factor at another row's place, for a stay that has a destination's factor, and for a prior that is left out.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.learning.tilt import AROUND, Tilt
from naive_learning import tilted

SPACE = dphmm.StateSpace(np.array([[0, 0], [1, 0], [4, 0], [0, 9], [1, 9]]))
N = 5


def model(seed=2, **given):
    matrix = np.random.default_rng(seed).random((N, N))
    matrix[0, 3] = matrix[4, 1] = 0
    return dphmm.MarkovModel(np.full(N, 0.2), matrix / matrix.sum(axis=1, keepdims=True), start="at", **given)


def log_likelihood(tilt, counts, factors):
    return float((counts * np.log(tilt.matrices(factors))).sum()) + tilt.log_prior(factors)


def test_the_tilted_matrix_entry_by_entry():
    public = model(space=SPACE)
    tilt, rng = Tilt.of(public), np.random.default_rng(3)
    factors = [rng.gamma(2, 1, one.shape) for one in tilt.factors(2)]
    apart = np.linalg.norm(SPACE.own_answers[:, None] - SPACE.own_answers, axis=2)
    bins = np.where(apart == 0, 0, 1 + sum((apart > end).astype(int) for end in (1.5, 2.5, 3.5, 5.5, 8.5)))
    for slot in range(2):
        by_distance, places = factors[0][0] * factors[1][slot], factors[2][0] * factors[3][slot]
        want = tilted(public.matrix.toarray(), bins, by_distance, places[:N], places[N:])
        got = public.matrix.toarray()
        got[got > 0] = tilt.matrices(factors)[slot]
        assert np.allclose(got, want, rtol=0, atol=1e-14)


@pytest.mark.parametrize("space", [SPACE, None])
@pytest.mark.parametrize("slots", [1, 3])
def test_no_sweep_lowers_the_likelihood_with_the_prior(space, slots):
    public, rng = model(space=space), np.random.default_rng(4)
    tilt = Tilt.of(public)
    counts, factors = rng.gamma(0.3, 4, (slots, public.n_transitions)), tilt.factors(slots)
    counts[0, :2] = 0
    told = [log_likelihood(tilt, counts, factors)]
    for _ in range(8):
        factors = tilt.fitted(counts, factors)
        told.append(log_likelihood(tilt, counts, factors))
    assert (np.diff(told) > -1e-9).all() and told[1] > told[0] + 1
    # At rest no slope is left in any block.
    for _ in range(400):
        factors = tilt.fitted(counts, factors)
    small = 1e-6
    for block in range(4):
        told = []
        for sign in (1, -1):
            moved = [one.copy() for one in factors]
            moved[block].flat[0] *= 1 + sign * small
            told.append(log_likelihood(tilt, counts, moved))
        assert abs(told[0] - told[1]) / (2 * small) < 1e-4


def test_moves_as_the_public_model_has_them_leave_it_as_it_is():
    public = model(space=SPACE)
    tilt = Tilt.of(public)
    counts = (public.matrix.data * np.array([5.0, 1, 0, 30, 2])[tilt.row])[None]
    factors = tilt.fitted(counts, tilt.factors(1))
    assert all(np.allclose(one, 1, atol=1e-12) for one in factors)
    assert np.allclose(tilt.around(counts, tilt.matrices(factors)), public.matrix.data, atol=1e-12)


def test_around_is_a_row_of_moves_and_of_so_many_tilted_ones():
    public = model(space=SPACE)
    tilt, counts = Tilt.of(public), np.zeros((1, public.n_transitions))
    counts[0, 0] = 20.0
    (got,) = tilt.around(counts, tilt.matrices(tilt.factors(1)))
    assert AROUND == 20 and got[0] == pytest.approx((1 + public.matrix.data[0]) / 2)
    assert np.allclose(got[tilt.row > 0], public.matrix.data[tilt.row > 0])


def test_latent_states_of_one_place_share_its_factors():
    public = dphmm.MarkovModel(
        np.full(N, 0.2), np.full((N, N), 0.2), secrets=[0, 0, 1, 2, 3], space=dphmm.StateSpace(SPACE.own_answers[:4])
    )
    tilt = Tilt.of(public)
    place = tilt.place.reshape(N, N)
    assert place[0, 1] == place[1, 0] == place[0, 0] == 4 and place[2, 0] == place[3, 1] == 0
    assert (tilt.distance.reshape(N, N)[:2, :2] == 0).all()
