"""Choices for single steps of tables and streams, by the public number of the step."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.release.batch import Batch
from dphmm.release.stream import Stream, parse_line
from dphmm.states.trajectory import Trajectories
from session.test_options import MODEL, POLICY, SPACE, WALK, WIDE

#: By the number of the step in the table, wherever a user begins.
CHOICES = {12: {"epsilon": "0.5"}, 13: {"policy": WIDE, "epsilon": 2}, 14: {"partners": {"e": "f"}}, 99: {"epsilon": 9}}
ROWS = [("u", 11, "a"), ("u", 12, "b"), ("u", 13, "b"), ("v", 12, "e"), ("v", 14, "e"), ("v", 15, "f")]
WAYS = {
    "support": {"constraint": "support"},
    "delta": {"constraint": dphmm.policy.DeltaSet("0.0001")},
}


def batch(seed=1, **choices):
    return Batch(MODEL, POLICY, SPACE, 1, **{"bits": dphmm.ReplayBits(seed), "step_choices": CHOICES, **choices})


def table(rows=ROWS):
    users, steps, states = zip(*rows, strict=True)
    return Trajectories.from_labels(list(users), step=np.array(steps), state=np.array(states, dtype=object))


def told(release):
    return release.t, release.z.tolist(), release.plan_hash, release.epsilon


def released(work, rows=ROWS, **how):
    return [(row.user, *told(row.release)) for part in work.run(table(rows), **how) for row in part]


@pytest.mark.parametrize("chunk", [1, 100])
@pytest.mark.parametrize("way", WAYS)
def test_a_table_has_the_choices_of_its_sessions(way, chunk, monkeypatch):
    monkeypatch.setattr(Batch, "_chunk", chunk)
    found = released(batch(**WAYS[way]))
    bits, expected = dphmm.ReplayBits(1), []
    for user, begins in (("u", 11), ("v", 12)):
        session = dphmm.ReleaseSession(
            *(MODEL, POLICY, SPACE, 1), bits=bits, varies=("epsilon", "policy", "partners"), **WAYS[way]
        )
        for step, state in [(step, state) for name, step, state in ROWS if name == user]:
            if step - begins + 1 > session.t:
                session.skip(step - begins + 1 - session.t)
            expected.append((user, *told(session.release(state, **CHOICES.get(step, {})))))
    # A table draws plan by plan: its words are those of the sessions where every part of it is one row.
    same = slice(0, 5) if chunk == 1 else slice(3, 5)
    assert [row[same] for row in found] == [row[same] for row in expected]
    assert [row[4] for row in found] == [1, Fraction(1, 2), 2, Fraction(1, 2), 1, 1]


@pytest.mark.parametrize("way", WAYS)
def test_it_is_resumed_with_the_same_answers(way):
    ledger = MemoryLedger()
    first = released(batch(ledger=ledger, **WAYS[way]))
    assert released(batch(2, ledger=ledger, **WAYS[way]), resume=True) == first
    # Later steps may have other choices of the same kinds; policies of earlier ones are given.
    later = {16: {"epsilon": 3}}
    more = batch(
        3, ledger=ledger, step_choices=later, varies=("epsilon", "policy", "partners"), policies=[WIDE], **WAYS[way]
    )
    found = released(more, [*ROWS[:3], ("u", 16, "c")], resume=True)
    assert found[:3] == first[:3] and found[3][4] == 3
    with pytest.raises(InvalidInput, match=r"varies: got epsilon; expected the varies of the history"):
        released(batch(ledger=ledger, step_choices=later, **WAYS[way]), resume=True)


def test_a_cap_and_a_promise_count_what_is_chosen_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr(Batch, "_chunk", 1)
    bits = dphmm.ReplayBits(1)
    for over, fits in (({"cap_epsilon": 3}, {"cap_epsilon": "3.5"}), (_promise(3), _promise("3.5"))):
        ledger = MemoryLedger()
        with pytest.raises(BudgetExceeded):
            released(batch(ledger=ledger, bits=bits, **over), ROWS[:3])
        assert ledger.spent("u").epsilon == 0 and bits.uint64(1).tolist() == dphmm.ReplayBits(1).uint64(1).tolist()
        bits = dphmm.ReplayBits(1)
        work = batch(ledger=ledger, **fits)
        released(work, ROWS[:3])
        assert ledger.spent("u").epsilon == Fraction("3.5")
        # What comes again costs nothing.
        released(batch(ledger=ledger, **fits), ROWS[:3], resume=True)
        assert ledger.spent("u").epsilon == Fraction("3.5")


def _promise(total):
    return {"promise": dphmm.SequencePromise(total, steps=10)}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"12": {"epsilon": 1}}, "step_choices: got 12; expected numbers of steps"),
        ({12: {"colour": 1}}, "step_choices of step 12: got colour; expected one of epsilon"),
        ({12: {"partners": {"e": "z"}}}, "partners: got z"),
    ],
)
def test_bad_choices_are_refused_when_the_table_is_planned(given, error):
    with pytest.raises(InvalidInput, match=error):
        batch(step_choices=given)


def test_lines_of_a_stream_have_the_choices_of_their_bins():
    model = dphmm.MarkovModel(MODEL.initial, WALK / WALK.sum(axis=1, keepdims=True), step=3600)
    chosen = {10: {"epsilon": 3}, 11: {"policy": WIDE}}
    work = Batch(model, POLICY, SPACE, 1, bits=dphmm.ReplayBits(1), step_choices=chosen, answer="first")
    stream, epsilons, plans = Stream(work, False), [], []
    for hour in (9, 10, 11, 12):
        line = {"user": "u", "t": f"1970-01-01T{hour:02d}:10:00Z", "state": "b"}
        (found,) = stream.take(parse_line(json.dumps(line).encode(), False))
        epsilons.append(found.release.epsilon)
        plans.append(found.release.plan_hash)
    assert epsilons == [1, 3, 1, 1] and plans[0] != plans[2] and plans[0] == plans[3]
