"""Subjects that are publicly known to begin at a place of their own: sessions, tables and streams."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch
from dphmm.release.stream import Stream, parse_line
from dphmm.states.trajectory import Trajectories

N = 7
SPACE = dphmm.StateSpace(np.array([0, 1, 3, 4, 6, 7, 9])[:, None], names=list("abcdefg"))
MOVES = 0.5 * np.eye(N) + 0.25 * np.eye(N, k=1) + 0.25 * np.eye(N, k=-1)
MOVES /= MOVES.sum(axis=1, keepdims=True)
MODEL = dphmm.MarkovModel(np.full(N, 1 / N), MOVES)
POLICY = dphmm.policy.radius(SPACE, 2)
RULES = ["support", dphmm.policy.DeltaSet("0.1")]
HALVES = [0.5, 0, 0, 0, 0, 0, 0.5]
#: Where each user is known to begin; "w" as the model says.
INITIALS = {"u": "c", "v": 5, "x": "c", "y": HALVES}


def own(initial, **facts):
    given = HALVES if initial == HALVES else np.eye(N)[SPACE.index_of(initial) if isinstance(initial, str) else initial]
    return dphmm.MarkovModel(given, MOVES, **facts)


def session(initial=None, model=MODEL, seed=1, **choices):
    return dphmm.ReleaseSession(model, POLICY, SPACE, 1, initial=initial, bits=dphmm.ReplayBits(seed), **choices)


@pytest.mark.parametrize("start", ["before", "at"])
@pytest.mark.parametrize("constraint", RULES, ids=str)
@pytest.mark.parametrize("initial", ["c", 5, HALVES], ids=str)
def test_it_is_the_session_of_a_model_that_begins_there(initial, constraint, start):
    begun = session(initial, constraint=constraint, start=start)
    other = session(model=own(initial), constraint=constraint, start=start)
    path = [int(np.argmax(own(initial).initial))] * 4
    assert [str(begun.release(s)) for s in path] == [str(other.release(s)) for s in path]


@pytest.mark.parametrize("start", ["before", "at"])
def test_what_is_possible_is_what_can_be_reached_from_there(start):
    begun = session("c", start=start)
    for t in range(1, 5):
        paths = product(range(N), repeat=t if start == "before" else t - 1)
        reached = {
            path[-1] if path else 2
            for path in paths
            if all(MOVES[a, b] > 0 for a, b in zip((2, *path), path, strict=False))
        }
        assert set(np.flatnonzero(begun.plan.constraint.support).tolist()) == reached
        begun.release(2)


def test_a_name_that_looks_like_a_number_is_not_the_state_of_that_number():
    space = dphmm.StateSpace(SPACE.answers, names=["5", "1", "2", "3", "4", "0", "6"])
    batch = Batch(MODEL, POLICY, space, 1, ledger=MemoryLedger(), initials={"u": 5, "v": "5"})
    assert [int(np.argmax(batch.subjects.of(user).model.initial)) for user in "uv"] == [5, 0]


def test_a_history_goes_on_from_where_it_began_and_from_nowhere_else():
    ledger = MemoryLedger()
    begun = session("c", subject="u", ledger=ledger)
    begun.release(2)
    options = ledger.header("u", "state").options
    assert options["model"] == MODEL.digest and len(options["initial"]) == 64
    for initial, came in ((None, "that of the model"), (3, "[0-9a-f]{12}")):
        with pytest.raises(InvalidInput, match=rf"initial: got {came}; expected the initial of the history"):
            dphmm.ReleaseSession.resume(ledger, "u", MODEL, POLICY, SPACE, initial=initial)
    resumed = dphmm.ReleaseSession.resume(ledger, "u", MODEL, POLICY, SPACE, initial=2, bits=dphmm.ReplayBits(2))
    assert np.array_equal(resumed.prior.probability, begun.prior.probability)
    session(subject="v", ledger=ledger).release(2)
    assert "initial" not in ledger.header("v", "state").options


def test_two_queries_of_a_subject_begin_alike():
    ledger = MemoryLedger()
    session("c", subject="u", ledger=ledger).release(2)
    with pytest.raises(InvalidInput, match=r"initial: got that of the model; .*subject has the query 'state'"):
        session(subject="u", ledger=ledger, query="other").release(2)
    session("c", subject="u", ledger=ledger, query="other").release(2)


@pytest.mark.parametrize(
    ("initial", "error"),
    [
        ("nowhere", "initial: got nowhere; expected the name of a state"),
        (7, "initial: got 7; expected a state, 0 to 6, or probabilities"),
        (-1, "initial: got -1; expected a state"),
        ([0.5] * 7, "initial: got sum 3.5; expected a sum of 1"),
        ([1, 0], r"initial: got shape \(2,\)"),
    ],
)
def test_no_place_and_no_distribution_is_refused(initial, error):
    with pytest.raises(InvalidInput, match=error):
        session(initial)
    with pytest.raises(InvalidInput, match=error.replace("initial:", 'initials of "u":')):
        batch(initials={"u": initial}).subjects.of("u")


def batch(seed=1, **choices):
    return Batch(MODEL, POLICY, SPACE, 1, **{"bits": dphmm.ReplayBits(seed), "initials": INITIALS, **choices})


#: Who begins alike does not follow one another.
STATES = {"u": "cdc", "v": "fff", "w": "abc", "x": "ccb", "y": "ggf"}


def rows(states=STATES):
    users = [user for user, own_states in states.items() for _ in own_states]
    return Trajectories.from_labels(users, state=np.array([s for each in states.values() for s in each], dtype=object))


def answer(release):
    return release.t, release.z.tolist(), release.plan_hash


@pytest.mark.parametrize("constraint", ["support", RULES[1]], ids=["support", "delta"])
@pytest.mark.parametrize("chunk", [2, 100])
def test_a_table_is_one_table_for_each_beginning(constraint, chunk, monkeypatch):
    """Its parts draw one after another, as tables of the same users and models of their own would."""
    monkeypatch.setattr(Batch, "_chunk", chunk)
    found = [answer(row.release) for part in batch(constraint=constraint).run(rows()) for row in part]
    bits, expected = dphmm.ReplayBits(1), []
    for user, states in STATES.items():
        model = own(INITIALS[user]) if user in INITIALS else MODEL
        single = Batch(model, POLICY, SPACE, 1, bits=bits, constraint=constraint)
        expected += [answer(row.release) for part in single.run(rows({user: states})) for row in part]
    assert found == expected


def test_a_table_is_resumed_with_the_same_beginnings_alone():
    ledger = MemoryLedger()
    first = [str(row.release) for chunk in batch(ledger=ledger).run(rows()) for row in chunk]
    again = [str(row.release) for chunk in batch(2, ledger=ledger).run(rows(), resume=True) for row in chunk]
    assert again == first
    with pytest.raises(InvalidInput, match="initial: got that of the model"):
        list(batch(ledger=ledger, initials=None).run(rows(), resume=True))
    with pytest.raises(InvalidInput, match="initial"):
        list(batch(ledger=ledger, initials={**INITIALS, "w": 0}).run(rows(), resume=True))


def test_users_that_begin_alike_share_a_setting():
    work = batch()
    assert work.subjects.of("u") is work.subjects.of("x") is not work.subjects.of("v")
    assert work.subjects.of("w") is work.setting and work.subjects.of("u").planner is work.setting.planner


def test_lines_of_a_stream_are_answered_from_there():
    stream, bits = Stream(batch(), False), dphmm.ReplayBits(1)
    for step, user in enumerate("uvwu"):
        line = parse_line(json.dumps({"user": user, "step": step, "state": "c"}).encode(), False)
        (found,) = stream.take(line)
        if found.release.t == 1:
            expected = dphmm.ReleaseSession(*(MODEL, POLICY, SPACE, 1), initial=INITIALS.get(user), bits=bits)
            assert answer(found.release) == answer(expected.release("c"))
    resumed = Stream(batch(2, ledger=stream.batch.ledger), True)
    (found,) = resumed.take(parse_line(b'{"user": "v", "step": 2, "state": "c"}', False))
    assert found.release.t == 2
