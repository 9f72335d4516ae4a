"""Many people smoothed side by side come out as each by itself in logs, and those whom floats do not serve are found.

Fails for a column that reads a neighbour, a gap that is one move too long for whoever has no answer at its end, a jump
that is another person's, and a certificate that never fires.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.markov import smoothing
from dphmm.markov.filtering import Belief
from dphmm.markov.smoothing import Observed, smooth
from dphmm.markov.stochastic import Jump
from markov.test_filtering import model_of, observations_of
from random_seeds import seeds

N = 6


def person(rng, smallest):
    """Up to 8 answers, a gap or two, some answers impossible from some states, a jump of one's own."""
    t = int(rng.integers(1, 9))
    moves = np.concatenate([[0], rng.choice([1, 1, 1, 2, 5, 30], size=t - 1)])
    likelihoods = 10.0 ** rng.uniform(smallest, 0, (t, N))
    likelihoods[:, 1:][rng.random((t, N - 1)) < 0.1] = 0
    prior = Belief(np.log(rng.dirichlet(np.ones(N))), np.ones(N, dtype=bool))
    jump = Jump(0.2, rng.dirichlet(np.ones(N))) if rng.random() < 0.5 else None
    left_out = rng.random(t) < 0.2
    return Observed(prior, observations_of(likelihoods, moves, rng.random(t) < 0.5), 3, jump, left_out)


@seeds(12)
@pytest.mark.parametrize("smallest", [-3, -30, -150])
@pytest.mark.parametrize("kind", ["sparse", "jump", "slots"])
def test_company_changes_nobody(seed, smallest, kind, monkeypatch):
    rng = np.random.default_rng(seed)
    model, other = (model_of(rng, N, zeros=kind == "sparse") for _ in range(2))
    people, points = [person(rng, smallest) for _ in range(5)], rng.normal(size=(N, 2))
    if kind == "jump":
        model = model.with_jump(0.1)
    elif kind == "slots":
        # Hours are even, odd and odd; people begin at hours of their own.
        slots = dphmm.markov.Slots(period="3h", begins=(0, "1h"))
        model = dphmm.MarkovModel(model.initial, [model.matrix, other.matrix], slots=slots, step=3600)
        people = [one._replace(jump=None, t=3 + k) for k, one in enumerate(people)]
    asked = {"marginals": True, "entered": True}
    together = smooth(model, people, points, **asked)
    monkeypatch.setattr(smoothing, "DOUBT", 0.0)
    for one, found in zip(people, together, strict=True):
        (alone,) = smooth(model, [one], points, block=2, **asked)
        for name in ("mean", "probability", "marginals", "entered"):
            assert np.allclose(getattr(found, name), getattr(alone, name), rtol=1e-9, atol=1e-9), name
        assert np.array_equal(found.state, alone.state)


def test_floats_serve_whom_they_hold_and_no_other():
    """Somebody with answers that contradict each other by 1e-130 stands beside somebody whose answers do not."""
    model, prior = (
        dphmm.MarkovModel([0.5, 0.5], np.eye(2), start="at"),
        Belief(np.log([0.5, 0.5]), np.ones(2, dtype=bool)),
    )
    for_one, for_other = [1.0, 1e-130], [1e-130, 1.0]
    people = [
        Observed(prior, observations_of(rows, [0, 1, 1])) for rows in ([for_one] * 3, [for_one, for_other, for_one])
    ]
    both = smooth(model, people, np.eye(2))
    assert np.allclose(both[0].mean, [[1, 0]] * 3) and np.allclose(both[1].mean, [[1, 0]] * 3)
