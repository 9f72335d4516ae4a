"""What attacks know is measured against the truth: who knows more errs less.

Claims: measures are their definitions; who knows more errs less on average; a wrong chain does worse, a richer one
better; a truth that is not that of the release is refused without a word of it.

Adversaries know what Bayes' rule says they know.

Claims: the tracker's beliefs are the enumerated posteriors, the smoother's and Viterbi's those of all paths; a chain
that an answer refutes begins anew.
"""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

import dphmm
from audit.small import MODEL, POLICY, SPACE, session
from audit.test_released import walks
from crafted_bits import keyed_system_bits
from dphmm.audit import Adversary, attack
from dphmm.audit.attacks.attack import METHODS, Measured, Scores, SeenAnswer, Target
from dphmm.errors import InvalidInput
from dphmm.policy import complete
from running_example import ANSWERS, TRANSITION


def test_measures_are_their_definitions():
    scores = Scores(SPACE)
    belief = np.array([0.5, 0.25, 0.25, 0, 0, 0])
    distances = np.linalg.norm(ANSWERS - ANSWERS[1], axis=1)
    scores.add("u", 1, belief, Target(ANSWERS[1], distances, 1, 3))
    scores.add("u", 2, np.eye(6)[4], Target(ANSWERS[4], np.linalg.norm(ANSWERS - ANSWERS[4], axis=1), 4, 6))
    measured = scores.done("me")
    assert measured.expected_error.tolist() == [pytest.approx(belief @ distances), 0]
    assert measured.guess_error[0] == pytest.approx(np.linalg.norm(belief @ ANSWERS - ANSWERS[1]))
    assert measured.success.tolist() == [0, 1] and measured.probability.tolist() == [0.25, 1]
    assert measured.entropy.tolist() == [1.5, 0] and measured.degree.tolist() == [3, 6]
    assert measured.overall()["success"] == 0.5
    assert measured.per_step()["degree"].tolist() == [3, 6]


def released(truth, epsilon, seed=1, **options):
    return dphmm.release_many(
        truth, MODEL, POLICY, SPACE, epsilon, bits=keyed_system_bits(seed), progress=False, **options
    )


def test_who_knows_more_errs_less():
    truth = walks(users=40, steps=20, seed=5)
    report = attack(released(truth, 1), truth, MODEL, POLICY, SPACE, 1)
    error = {name: report[name].overall()["expected_error"] for name in METHODS}
    assert error["prior"] > error["tracker"] > error["smoother"]
    assert error["memoryless"] > error["tracker"]
    right = {name: report[name].overall()["success"] for name in METHODS}
    assert right["smoother"] > right["tracker"] > right["prior"]
    assert report["viterbi"].overall()["entropy"] == 0
    # More noise, less known; nobody is exposed.
    noisy = attack(released(truth, "0.1"), truth, MODEL, POLICY, SPACE, "0.1", adversaries=["tracker"])
    assert noisy["tracker"].overall()["expected_error"] > error["tracker"]
    assert report["tracker"].degree.min() >= 2
    assert report.rows == len(truth) and report.outside == 0
    document = json.loads(json.dumps(report.document(), allow_nan=False))
    assert len(document["tracker"]["per_step"]["t"]) == int(truth["step"].max()) + 1
    assert "owner alone" in report.lines[0]


def test_a_believer_smooths_with_another_model_that_sees_the_hour():
    """Its beliefs are those of `smooth`; who goes round by a clock is found by a model with slots, and by no other."""
    space = dphmm.StateSpace.categories(["a", "b", "c", "d"])
    model, policy = dphmm.MarkovModel(np.full(4, 0.25), np.full((4, 4), 0.25), space=space, step=21600), complete(4)
    stay, on = 0.98 * np.eye(4) + 0.005, 0.98 * np.roll(np.eye(4), 1, axis=1) + 0.005
    slots = dphmm.markov.Slots(period="1d", width="12h")
    clock = dphmm.MarkovModel(np.full(4, 0.25), [stay, on], space=space, step=21600, start="at", slots=slots)
    hours = pd.date_range("2030-03-04", periods=12, freq="6h", tz="UTC")
    # A move leaves its slot: those of the second half day lead on.
    state = np.tile(np.array(list("abcd"))[np.cumsum(np.roll(np.arange(12) % 4 // 2, 1)) % 4], 6)
    truth = pd.DataFrame({"user": np.repeat(list("uvwxyz"), 12), "t": np.tile(hours, 6), "state": state})
    table = dphmm.release_many(truth, model, policy, space, 1, bits=keyed_system_bits(4), progress=False)
    report = attack(table, truth, model, policy, space, 1, believe=clock)
    read = dphmm.reconstruction.smooth(table, model, policy, space, believe=clock, marginals=True, progress=False)
    right = np.stack(read.marginals.to_numpy())[np.arange(72), space.indices_of(truth.state.tolist())]
    assert report["believer"].overall()["probability"] == pytest.approx(right.mean(), abs=1e-9)
    assert right.mean() > 1.2 * report["smoother"].overall()["probability"]


def test_the_tracker_is_right_as_often_as_it_thinks():
    """Calibration: where the chain is the public one, E[belief in the truth] = E[sum of squared beliefs].

    1,200 rows of 150 independent people; the mean difference is compared with 4.9 of its standard errors over people.
    """
    truth, squares = walks(users=150, seed=2, kept=1), []

    class Noting(Adversary):
        def beliefs(self, seen):
            found = super().beliefs(seen)
            squares.extend((found**2).sum(axis=1))
            return found

    who = Noting("t", "tracker", MODEL)
    tracker = attack(released(truth, 1), truth, MODEL, POLICY, SPACE, 1, adversaries=[who])["t"]
    by_person = (tracker.probability - np.array(squares)).reshape(150, 8).mean(axis=1)
    assert abs(by_person.mean()) < 4.9 * by_person.std() / math.sqrt(150)


def test_a_wrong_chain_does_worse_and_a_richer_one_better():
    """People who go round one way: a chain of the last two states knows where they come from."""
    n = 5
    ring = dphmm.StateSpace(
        np.round(20 * np.array([[math.cos(a), math.sin(a)] for a in 2 * math.pi * np.arange(n) / n]))
    )
    either = (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)) / 2
    public = dphmm.MarkovModel(np.full(n, 1 / n), either)
    rng = np.random.default_rng(4)
    rows = []
    for user in range(60):
        state, way = int(rng.integers(n)), int(rng.choice([-1, 1]))
        for step in range(8):
            state = (state + way) % n
            rows.append((f"u{user}", step, str(state)))
    truth = pd.DataFrame(rows, columns=["user", "step", "state"])
    policy = dphmm.policy.complete(n)
    out = dphmm.release_many(truth, public, policy, ring, 1, bits=keyed_system_bits(2), progress=False)
    # Hidden states: (way, state); the way never changes.
    ahead, back = np.roll(np.eye(n), 1, axis=1), np.roll(np.eye(n), -1, axis=1)
    rich = np.block([[ahead, np.zeros((n, n))], [np.zeros((n, n)), back]])
    richer = dphmm.MarkovModel(np.full(2 * n, 1 / (2 * n)), rich)
    wrong = dphmm.MarkovModel(np.full(n, 1 / n), 0.9 * np.eye(n) + 0.1 * either)
    stuck = dphmm.MarkovModel(np.eye(n)[0], np.eye(n))
    who = [
        Adversary("public", "tracker", public),
        Adversary("richer", "tracker", richer, states=np.tile(np.arange(n), 2)),
        Adversary("richer smoother", "smoother", richer, states=np.tile(np.arange(n), 2)),
        Adversary("wrong", "tracker", wrong),
        Adversary("stuck", "tracker", stuck),
    ]
    report = attack(out, truth, public, policy, ring, 1, adversaries=who)
    share = {one.name: report[one.name].overall()["probability"] for one in who}
    assert share["richer smoother"] > share["richer"] > share["public"] > share["wrong"]
    assert report["stuck"].overall()["entropy"] == 0


def test_a_truth_that_is_not_the_release_s_is_refused_without_a_word_of_it():
    truth = walks()
    out = released(truth, 1)
    for other in (truth.iloc[:-3], truth[truth["user"] != "u1"]):
        with pytest.raises(InvalidInput, match="truth") as refused:
            attack(out, other, MODEL, POLICY, SPACE, 1)
        assert "u1" not in str(refused.value)
    with pytest.raises(InvalidInput, match="released"):
        attack(out, truth, MODEL, POLICY, SPACE, 2)
    with pytest.raises(InvalidInput, match="adversary"):
        attack(out, truth, MODEL, POLICY, SPACE, 1, adversaries=["oracle"])


def test_names_that_are_no_state_are_left_out_of_the_measures():
    truth = walks()
    out = released(truth.assign(state=["nowhere", *truth["state"][1:]]), 1)
    report = attack(out, truth.assign(state=["nowhere", *truth["state"][1:]]), MODEL, POLICY, SPACE, 1)
    assert report.outside == 1 and len(report["tracker"].t) == len(truth) - 1


def test_intervals_resample_subjects_and_not_their_answers():
    """Two subjects, one always right and one never: between 0 and 1 lies everything, however many answers they have."""
    n = 50
    zeros, right = np.zeros(2 * n), np.repeat([1.0, 0.0], n)
    users, t = ("a",) * n + ("b",) * n, np.tile(np.arange(1, n + 1), 2)
    measured = Measured("x", users, t, zeros, zeros, right, right, zeros, zeros)
    found = measured.intervals()
    assert found["success"] == (0.5, 0.0, 1.0)
    assert found["entropy"] == (0.0, 0.0, 0.0)
    alone = Measured("x", ("a",) * n, t[:n], *(zeros[:n],) * 6).intervals()["success"]
    assert alone.value == 0 and np.isnan(alone.low) and np.isnan(alone.high)


STEPS = 4


def played(**options):
    """Four answers of a session, and each one's plan."""
    one = session(seed=9, **options)
    seen = []
    for state in (1, 2, 0, 3)[:STEPS]:
        plan = one.plan
        release = one.release(state)
        seen.append(SeenAnswer(release.t, release.z_lattice, plan))
    return one, seen


def enumerated(seen, model):
    """Marginals given all answers, given those before and at each step, and the likeliest path, from every path."""
    matrix, n = model.transition.toarray(), model.n_states
    first = model.initial @ matrix
    likelihood = [np.where(s.plan.still_possible(s.z), np.exp(s.plan.log_likelihood(s.z)), 0) for s in seen]

    def weights(upto):
        for path in itertools.product(range(n), repeat=upto):
            p = first[path[0]] * math.prod(matrix[a, b] for a, b in itertools.pairwise(path))
            yield path, p * math.prod(likelihood[k][s] for k, s in enumerate(path))

    filtered = np.zeros((len(seen), n))
    for upto in range(1, len(seen) + 1):
        for path, p in weights(upto):
            filtered[upto - 1, path[-1]] += p
    smoothed, best = np.zeros((len(seen), n)), {}
    for path, p in weights(len(seen)):
        smoothed[np.arange(len(seen)), list(path)] += p
        best[path] = p
    return filtered / filtered.sum(axis=1, keepdims=True), smoothed / smoothed.sum(axis=1, keepdims=True), best


@pytest.mark.parametrize("options", [{}, {"constraint": "delta=0.3"}], ids=str)
def test_beliefs_are_the_enumerated_ones(options):
    one, seen = played(**options)
    filtered, smoothed, paths = enumerated(seen, MODEL)
    beliefs = {name: Adversary(name, name, MODEL).beliefs(seen) for name in METHODS}
    assert np.allclose(beliefs["tracker"], filtered) and np.allclose(beliefs["smoother"], smoothed)
    assert paths[tuple(beliefs["viterbi"].argmax(axis=1).tolist())] == pytest.approx(max(paths.values()))
    assert np.allclose(beliefs["tracker"][-1], one.posterior.probability)
    powers = [np.full(6, 1 / 6) @ np.linalg.matrix_power(TRANSITION, t) for t in range(1, STEPS + 1)]
    assert np.allclose(beliefs["prior"], powers)
    alone = np.where(seen[1].plan.still_possible(seen[1].z), np.exp(seen[1].plan.log_likelihood(seen[1].z)), 0)
    assert np.allclose(beliefs["memoryless"][1], alone / alone.sum())
    assert all(np.allclose(rows.sum(axis=1), 1) for rows in beliefs.values())


def test_a_gap_is_moved_through():
    one = session(seed=3)
    one.skip(2)
    plan = one.plan
    release = one.release(1)
    seen = [SeenAnswer(release.t, release.z_lattice, plan)]
    assert np.allclose(Adversary("t", "tracker", MODEL).beliefs(seen)[0], one.posterior.probability)
    assert np.allclose(Adversary("s", "smoother", MODEL).beliefs(seen)[0], one.posterior.probability)
