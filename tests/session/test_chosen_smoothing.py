"""Releases with choices by step and beginnings by subject, read again: against sums over all paths."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.audit import attack, check_release
from dphmm.errors import InvalidInput

N, T = 5, 4
SPACE = dphmm.StateSpace(np.array([0, 1, 2, 4, 7])[:, None], names=list("abcde"))
WALK = 0.5 * np.eye(N) + 0.3 * np.eye(N, k=1) + 0.2 * np.eye(N, k=-1)
MODEL = dphmm.MarkovModel(np.full(N, 1 / N), WALK / WALK.sum(axis=1, keepdims=True))
POLICY, WIDE = dphmm.policy.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)], N), dphmm.policy.complete(N)
#: By the number of the step in the table: u begins at 3, v at 4.
CHOICES = {4: {"epsilon": Fraction(1, 2)}, 5: {"policy": WIDE, "epsilon": 2}, 6: {"policy": WIDE}}
INITIALS = {"v": "c"}
ROWS = [("u", 3, "a"), ("u", 4, "b"), ("u", 6, "b"), ("v", 4, "c"), ("v", 5, "d"), ("v", 7, "e")]
WAYS = {"support": {}, "delta": {"constraint": "delta=0.001"}}


def released(**way):
    frame = pd.DataFrame(ROWS, columns=["user", "step", "state"])
    public = {"bits": dphmm.ReplayBits(5), "step_choices": CHOICES, "initials": INITIALS}
    return dphmm.release_many(frame, MODEL, POLICY, SPACE, 1, **public, **way, progress=False)


def likelihoods(user, rows, first, way):
    """Of each answer (n, N), from a session of its own that has the step's epsilon and policy for all its steps.

    On the support a plan hangs on no answer, so the session may pass over the steps before.
    """
    found = []
    for row in rows.itertuples():
        chosen = CHOICES.get(row.step + first - 1, {})
        public = (MODEL, chosen.get("policy", POLICY), SPACE, chosen.get("epsilon", 1))
        session = dphmm.ReleaseSession(*public, initial=INITIALS.get(user), **way)
        if row.step > 1:
            session.skip(row.step - 1)
        z = SPACE.frame.to_lattice(np.array([[row.z_0]]))[0]
        found.append(np.exp(session.plan.log_likelihood(z)))
    return np.array(found)


def brute(user, rows, first):
    """How likely each state is at each row, and being in d or e at step 2: sums over all paths of T + 1 states."""
    start = np.full(N, 1 / N) if user not in INITIALS else np.eye(N)[2]
    seen = dict(zip(rows.step, likelihoods(user, rows, first, {}), strict=True))
    marginals, told = np.zeros((len(rows), N)), np.zeros(2)
    prior, moves = np.zeros(2), np.asarray(MODEL.matrix.todense())
    for path in itertools.product(range(N), repeat=T + 1):
        # Step 0 is where the model begins: before the first answer.
        before = start[path[0]] * np.prod([moves[a, b] for a, b in itertools.pairwise(path)])
        weight = before * np.prod([row[path[t]] for t, row in seen.items()])
        for number, t in enumerate(rows.step):
            marginals[number, path[t]] += weight
        inside = int(path[2] >= 3)
        told[inside] += weight
        prior[inside] += before
    return marginals / marginals.sum(axis=1, keepdims=True), prior[1] / prior.sum(), told[1] / told.sum()


def test_smoothing_and_odds_are_those_of_all_paths():
    frame = released()
    given = {"step_choices": CHOICES, "initials": INITIALS}
    smoothed = dphmm.reconstruction.smooth(frame, MODEL, POLICY, SPACE, 1, marginals=True, progress=False, **given)
    odds = {
        one.subject: one
        for one in dphmm.reconstruction.event_odds(frame, MODEL, POLICY, SPACE, [3, 4], 2, 2, 1, **given)
    }
    for user, first in (("u", 3), ("v", 4)):
        rows = frame[frame.user == user]
        expected, prior, posterior = brute(user, rows, first)
        found = np.array(smoothed[smoothed.user == user].marginals.tolist())
        assert np.abs(found - expected).max() < 1e-12
        assert odds[user].prior.probability == pytest.approx(prior, abs=1e-12)
        assert odds[user].posterior.probability == pytest.approx(posterior, abs=1e-12)
        chosen = [CHOICES.get(step + first - 1, {}).get("epsilon", 1) for step in rows.step]
        assert rows.epsilon.tolist() == [float(one) for one in chosen]


@pytest.mark.parametrize("way", WAYS)
def test_the_same_choices_are_needed_to_read_it(way):
    frame = released(**WAYS[way])
    public = (MODEL, POLICY, SPACE, 1)
    given = {"step_choices": CHOICES, "initials": INITIALS, "progress": False, **WAYS[way]}
    whole = dphmm.reconstruction.smooth(frame, *public, **given)
    assert len(whole) == len(ROWS)
    # The numbers of steps are not in the table: only what was chosen for some of them matters.
    moved = {step + 100: chosen for step, chosen in CHOICES.items()}
    assert dphmm.reconstruction.smooth(frame, *public, **{**given, "step_choices": moved}).equals(whole)
    for other in (
        {"step_choices": {}},
        {"step_choices": {4: CHOICES[4], 5: CHOICES[5]}},
        {"step_choices": CHOICES | {4: {"epsilon": Fraction(1, 3)}}},
        {"initials": {"v": "a"}},
    ):
        with pytest.raises(InvalidInput, match="an answer drawn under plan"):
            dphmm.reconstruction.smooth(frame, *public, **{**given, **other})


@pytest.mark.parametrize("way", WAYS)
def test_an_audit_follows_every_row(way, tmp_path):
    with dphmm.open_ledger(tmp_path / "ledger.db") as ledger:
        frame = released(ledger=ledger, **WAYS[way])
        given = {"step_choices": CHOICES, "initials": INITIALS, **WAYS[way]}
        found = check_release(frame, MODEL, POLICY, SPACE, 1, ledger=ledger, **given)
        assert found.findings == () and found.plans == len(found.verdicts)
        swapped = {4: CHOICES[5], 5: CHOICES[4], 6: CHOICES[6]}
        for other in ({"step_choices": swapped}, {"initials": {"v": "a"}}, {"initials": {}}):
            told = check_release(frame, MODEL, POLICY, SPACE, 1, ledger=ledger, **{**given, **other})
            assert told.convicted


def test_an_adversary_knows_where_a_subject_begins():
    """The belief without answers gives the truth what so many moves from the beginning give it."""
    frame, truth = released(), pd.DataFrame(ROWS, columns=["user", "step", "state"])
    truth["step"] -= truth.groupby("user").step.transform("min") - 1
    given = {"step_choices": CHOICES, "adversaries": ["prior"]}
    knows = attack(frame, truth, MODEL, POLICY, SPACE, 1, initials=INITIALS, **given)
    moves, due = np.asarray(MODEL.matrix.todense()), []
    for user, step, state in truth.itertuples(index=False):
        begins = np.eye(N)[2] if user in INITIALS else np.full(N, 1 / N)
        due.append((begins @ np.linalg.matrix_power(moves, step))["abcde".index(state)])
    assert knows["prior"].probability.tolist() == pytest.approx(due, abs=1e-12)
    with pytest.raises(InvalidInput, match="whose plan is not the one"):
        attack(frame, truth, MODEL, POLICY, SPACE, 1, **given)
