"""Sequences to learn from: public slots, cuts at gaps, and the steps that answers are of.

Fails for a slot that changes elsewhere than midway, for a move in the slot of the step it leads to, and for answers
that a cut drops.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.learning.sequences import longest_gap, public_slots, slots_of, stretches_of
from dphmm.release.decoding import rows_and_subjects
from learning.test_expectation import HALVES
from learning.test_expectation import HOURS as SIX
from learning.test_learn import HOUR, MODEL, POLICY, SPACE, STEPS, N, dense, regular, released

pytestmark = pytest.mark.replayed_words


def test_a_move_has_the_slot_of_the_step_that_it_leaves():
    assert slots_of(HALVES, 5, 6, HOUR * SIX).tolist() == [0, 1, 1, 0, 0, 1]


def test_slots_change_midway_between_the_times_that_were_asked():
    schedule = dphmm.accounting.Schedule(dphmm.SequencePromise(4, per=STEPS), 2, at=(9, 19))
    table = pd.DataFrame({"user": "a", "t": pd.date_range("2030-03-04", periods=24, freq="h", tz="UTC")})
    table["state"] = SPACE.names[0]
    bits = dphmm.ReplayBits(1)
    asked = dphmm.release_many(table, MODEL, POLICY, SPACE, schedule=schedule, bits=bits, progress=False)
    rows, subjects = rows_and_subjects(asked, (MODEL, POLICY, SPACE), 2, None, None, schedule=schedule)
    _, (one,) = stretches_of(rows, subjects, MODEL)
    assert len(one.which) == 19 and np.flatnonzero(one.which >= 0).tolist() == [8, 18]
    # Asked at 8 and 18 o'clock: midway are 13 and 1 o'clock.
    assert public_slots([one], HOUR, 6).begins == (1 * HOUR, 13 * HOUR)
    assert public_slots([one], None, 6) is public_slots([one], 7000, 6) is None
    assert public_slots([one], HOUR, 1).n == 1


def test_gaps_cut_a_sequence(monkeypatch):
    """Each part begins with the public belief of its step, and all answers are kept."""
    monkeypatch.setattr("dphmm.learning.sequences.LONGEST_GAP", 5)
    table, _ = released(1, regular(), 8)
    some = table[(table.index < 3) | (table.index > 12)]
    rows, subjects = rows_and_subjects(some, (MODEL, POLICY, SPACE), None, None, None)
    _, (one, two) = stretches_of(rows, subjects, MODEL)
    assert (len(one.which), len(two.which)) == (3, 11) and one.prior is None and two.phase - one.phase == 13
    assert np.allclose(two.prior, MODEL.initial) and (two.which >= 0).all()


def test_each_part_after_a_gap_begins_with_the_belief_of_its_own_step(monkeypatch):
    """People whose gaps end at different steps, against powers of the matrix from a law that is not stationary."""
    monkeypatch.setattr("dphmm.learning.sequences.LONGEST_GAP", 2)
    initial = np.arange(1.0, N + 1) / np.arange(1.0, N + 1).sum()
    model = dphmm.MarkovModel(initial, dense(MODEL), step=HOUR)
    table, _ = released(3, regular(), 8, model=model)
    hour, user = table["t"].dt.hour, table["user"]
    gaps = {"p00": (3, 9), "p01": (2, 6), "p02": (5, 9)}
    some = table[[not gaps[name][0] <= at < gaps[name][1] for name, at in zip(user, hour, strict=True)]]
    rows, subjects = rows_and_subjects(some, (model, POLICY, SPACE), None, None, None)
    names, stretches = stretches_of(rows, subjects, model)
    assert [(names[part.person], part.prior is None) for part in stretches] == [
        (name, first) for name in gaps for first in (True, False)
    ]
    for part in stretches[1::2]:
        # Step 1 is a move after the initial law.
        moves = gaps[names[part.person]][1] + 1
        assert np.allclose(part.prior, initial @ np.linalg.matrix_power(dense(MODEL), moves), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("gaps", "longest"), [([1, 1, 60], 48), ([24, 30, 60], 120), ([400, 400], 512), ([], 512)])
def test_sequences_of_close_answers_are_cut_at_shorter_gaps(gaps, longest):
    assert longest_gap(np.array(gaps, dtype=np.int64)) == longest
