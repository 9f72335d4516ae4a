"""The E-step: expected moves, first states and likelihoods are sums over all paths, each person's in any company.

Fails for a slot that is not that of the step a move leaves, for steps after somebody's last answer that count, for a
jump that counts as a move of the matrix, and for people whose company changes them.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.learning.expectation import Sample, SlotChain
from dphmm.learning.sequences import Stretch
from dphmm.markov.slots import Slots
from naive_learning import expected_moves

N, HOURS = 3, 6
#: Four steps a day; the second half of the day has a matrix of its own.
HALVES = Slots(period="1d", width="12h")


def world(seed=1):
    """A model with a zero, and matrices of two slots beside its jump."""
    rng = np.random.default_rng(seed)
    mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    rows = [mask * rng.random((N, N)) for _ in range(2)]
    matrices = np.array([row / row.sum(axis=1, keepdims=True) for row in rows])
    base = dphmm.MarkovModel(rng.dirichlet(np.ones(N)), matrices[0], step=3600 * HOURS, start="at", jump=0.2)
    stored = matrices[:, mask.astype(bool)]
    return base, matrices, SlotChain(np.ascontiguousarray(stored), base.initial)


def person(number, steps, phase, seed, prior=None, silent=()):
    """Likelihoods of some steps; of the silent ones there is none."""
    rng = np.random.default_rng(seed)
    table = rng.random((steps, N))
    which = np.arange(steps)
    which[list(silent)] = -1
    return Stretch(number, prior, table / table.max(axis=1, keepdims=True), which, phase)


def brute(base, matrices, one):
    slots = [((one.phase + t) % 4) // 2 for t in range(len(one.which) - 1)]
    likely = [np.ones(N) if row < 0 else one.table[row] for row in one.which]
    initial = base.initial if one.prior is None else one.prior
    return expected_moves(initial, matrices, base.jump.rate, base.jump.into, slots, likely)


@pytest.mark.parametrize("phases", [(0, 4, 0), (3, 7, 3), (0, 1, 3)])
def test_expected_moves_are_sums_over_all_paths(phases):
    """Of people who begin at one time of day, and of those who do not."""
    base, matrices, chain = world()
    prior = np.array([0.2, 0.5, 0.3])
    one, two, three = phases
    people = [person(0, 4, one, 1, silent=[1]), person(1, 3, two, 2), person(2, 2, three, 3, prior)]
    got = Sample(base, HALVES, people, 3).expected(chain)
    want = [brute(base, matrices, one) for one in people]
    stored = matrices[0] > 0
    assert np.allclose(got.counts, sum(counts for counts, _, _ in want)[:, stored], rtol=0, atol=1e-12)
    assert np.allclose(got.starts, want[0][1] + want[1][1], rtol=0, atol=1e-12)
    assert np.allclose(got.logs, [np.log(total) for _, _, total in want], rtol=0, atol=1e-12)
    assert np.array_equal(got.logs, Sample(base, HALVES, people, 3).log_likelihoods(chain))


def test_company_changes_nobody_and_equal_people_give_equal_bytes():
    """Nineteen people of different lengths: more than are added up at once, and padded at their ends."""
    base, _, chain = world()
    people = [person(number, 3 + number % 5, 0, number) for number in range(19)]
    together = Sample(base, HALVES, people, 19).expected(chain)
    alone = [Sample(base, HALVES, [one], 19).expected(chain) for one in people]
    assert np.allclose(together.counts, sum(one.counts for one in alone), rtol=0, atol=1e-12)
    assert np.allclose(together.logs, sum(one.logs for one in alone), rtol=0, atol=1e-12)
    again = Sample(base, HALVES, people, 19).expected(chain)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(together, again, strict=True))
