from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.states import Trajectories

SECOND = 1_000_000


def cut_plainly(found, states, hold):
    """Walk each user's steps one by one."""
    sequences, outside, held = [], 0, 0
    for user in range(found.n_users):
        mine = [i for i in range(len(found)) if found.user[i] == user]
        by_step = {}
        for i in mine:
            by_step.setdefault(int(found.step[i]), i)
        current, last = None, None
        for step in sorted(by_step):
            i = by_step[step]
            if states[i] < 0:
                outside += 1
                current = None
                continue
            if current is not None and step - last[0] <= 1 + hold and found.trip[i] == last[1]:
                held += step - last[0] - 1
                current += [current[-1]] * (step - last[0] - 1)
            else:
                current = []
                sequences.append((user, current))
            current.append(int(states[i]))
            last = (step, found.trip[i])
    return sequences, outside, held


rows = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 12), st.integers(0, 1), st.integers(-1, 3)), max_size=25
)


@given(rows, st.integers(0, 3))
def test_sequences_agree_with_a_plain_walk(given_rows, hold):
    users, steps, trips, states = ([row[k] for row in given_rows] for k in range(4))
    states = np.array(states, dtype=np.int64)
    found = Trajectories.from_labels(users, step=np.array(steps, int), trip=np.array(trips, int))
    cut = found.sequences(states, hold=hold)
    expected, outside, held = cut_plainly(found, states, hold)
    assert [(o, s.tolist()) for o, s in zip(cut.owners, cut.sequences, strict=True)] == expected
    assert cut.counts["outside"] == outside and cut.counts["held"] == held
    assert cut.counts["same_step"] == len(given_rows) - len({(u, s) for u, s in zip(users, steps, strict=True)})


def test_rows_far_apart_in_time_are_cut():
    times = np.array([0, 100, 500, 550]) * SECOND
    found = Trajectories.from_labels("aaaa", time=times)
    cut = found.sequences(np.arange(4), gap=300)
    assert [s.tolist() for s in cut.sequences] == [[0, 1], [2, 3]]
    assert [s.tolist() for s in found.sequences(np.arange(4)).sequences] == [[0, 1, 2, 3]]
    with pytest.raises(InvalidInput, match="time"):
        Trajectories.from_labels("a", step=[1]).sequences(np.array([0]), gap=5)


def test_rows_without_steps_are_steps_in_the_order_of_time():
    found = Trajectories.from_labels("aabab", time=np.array([3, 1, 9, 2, 8]))
    assert found.steps().tolist() == [2, 0, 1, 1, 0]
    assert [s.tolist() for s in found.sequences(np.arange(5)).sequences] == [[1, 3, 0], [4, 2]]
    assert Trajectories.from_labels("aba").steps().tolist() == [0, 0, 1]


@pytest.mark.parametrize("hold", [-1, 0.5, True])
def test_bad_holds_are_refused(hold):
    with pytest.raises(InvalidInput, match="hold"):
        Trajectories.from_labels("a").sequences(np.array([0]), hold=hold)


@pytest.mark.parametrize("states", [np.zeros(2, int), np.zeros(1), [[0]]])
def test_states_must_fit_the_rows(states):
    with pytest.raises(InvalidInput, match="states"):
        Trajectories.from_labels("a").sequences(states)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-20, 20)), max_size=25), st.sampled_from(["last", "first"])
)
def test_visits_agree_with_a_plain_walk(given_rows, answer):
    found = Trajectories.from_labels([u for u, _ in given_rows], step=np.array([s for _, s in given_rows], int))
    visits, counts = found.visits(answer)
    assert [visit.user for visit in visits] == list(found.users)
    kept = 0
    for visit in visits:
        rows = {}
        for i, (user, step) in enumerate(given_rows):
            if user == visit.user and (answer == "last" or step not in rows):
                rows[step] = i
        expected = [(step - min(rows) + 1, rows[step]) for step in sorted(rows)]
        assert list(zip(visit.steps.tolist(), visit.rows.tolist(), strict=True)) == expected
        kept += len(expected)
    assert counts["same_step"] == len(given_rows) - kept
