"""Subjects that start from positions of their own: any cut of their steps into calls gives the same bits.

It would fail where a subject starts from another's belief, where an end is handed out that is not its own, and where
steps are counted from the wrong one.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.mechanisms.answer_table import AnswerTable
from dphmm.session import filter as filtering
from dphmm.session.filter import Filter, FlushedRow, Observations
from dphmm.session.plan import LABEL
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.setting import Setting
from session.test_tables import LISTED, WORLDS, world


def filter_of(name):
    model, policy, space, epsilon, choices = world(name)
    loss = choices.pop("estimate_loss", LABEL if space.has_labels else "squared")
    setting = Setting.of(model, policy, space, epsilon, start=choices.pop("start", model.start), **choices)
    return Filter(model, PlanSchedule(setting), space, loss)


def steps_of(rng, own, users):
    """(t, skipped, z) of each user: releases near the space, and skips between them."""
    space, found = own.space, []
    possible = np.flatnonzero(own.schedule.support(1))
    for _ in range(users):
        skipped = rng.choice([0, 0, 0, 1, 2, 30], int(rng.integers(1, 12)))
        t = 1 + np.cumsum(np.maximum(skipped, 1)) - np.maximum(skipped, 1)
        # A table names its own answers alone.
        listed = isinstance(own.schedule.plan(own.schedule.number(1)).mechanism, AnswerTable)
        z = space.answers[rng.integers(0, space.n_states, len(t))]
        z = z + rng.integers(-2, 3, (len(t), space.dimension)) * (not listed)
        # What is published of a state that is certain is its own answer.
        z[0] = z[0] if len(possible) > 1 else space.answers[possible[0]]
        found.append((t, skipped, np.where(skipped[:, None] > 0, 0, z)))
    return found


def observations_of(own, parts):
    begins = np.concatenate([np.arange(len(t)) == 0 for t, _, _ in parts])
    t, skipped, z = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Observations(begins, t, skipped, z, own.schedule.numbers(t), np.zeros(len(t), dtype=np.bool_))


def bits_of(end):
    if isinstance(end, FlushedRow):
        return end.t, end.row.tobytes(), end.bound.tobytes()
    return end.t, end.prior.log_probability.tobytes(), end.prior.support.tobytes()


@pytest.mark.parametrize("name", WORLDS)
def test_calls_of_any_steps_give_the_same_bits(name, monkeypatch):
    monkeypatch.setattr(filtering, "_LITTLE", 1)
    monkeypatch.setattr(filtering, "cores", lambda: 2)
    rng = np.random.default_rng([11, WORLDS.index(name)])
    own = filter_of(name)
    parts = steps_of(rng, own, 13)
    whole = own.run(observations_of(own, parts), [None] * len(parts))
    other = filter_of(name)
    positions, passed = [None] * len(parts), np.zeros(len(parts), dtype=np.int64)
    told = [[] for _ in parts]
    while True:
        ahead = np.minimum(rng.integers(0, 4, len(parts)), [len(t) for t, _, _ in parts] - passed)
        chosen = np.flatnonzero(ahead).tolist()
        if chosen:
            cut = [tuple(c[passed[k] : passed[k] + ahead[k]] for c in parts[k]) for k in chosen]
            past = [
                [observations_of(other, [tuple(c[: passed[k]] for c in parts[k])])] if passed[k] else [] for k in chosen
            ]
            starts = [positions[k] for k in chosen]
            some = other.run(observations_of(other, cut), starts, None, lambda k, past=past: other.exact(past[k]))
            ends = np.cumsum([len(t) for t, _, _ in cut]).tolist()
            for k, end, position in zip(chosen, ends, some.ends, strict=True):
                positions[k] = position
                own_steps = slice(end - ahead[k], end)
                told[k] += np.column_stack([some.estimates[own_steps], some.states[own_steps]]).tolist()
            passed += ahead
        elif all(passed == [len(t) for t, _, _ in parts]):
            break
    expected = np.column_stack([whole.estimates, whole.states]).tolist()
    assert [row for own_told in told for row in own_told] == expected
    assert [bits_of(p) for p in positions] == [bits_of(p) for p in whole.ends]


@pytest.mark.parametrize("name", ["grid", "tails"])
def test_laws_beyond_the_stack_give_the_same_bits(name, monkeypatch):
    """Which laws find room in a stack depends on the call; what comes out must not."""
    own = filter_of(name)
    parts = steps_of(np.random.default_rng([13, WORLDS.index(name)]), own, 9)
    expected = own.run(observations_of(own, parts), [None] * 9)
    monkeypatch.setattr(filtering, "_MOST_STACKED", own.schedule.at(own.schedule.number(3)).likelihood.size)
    taken, truly = [], filtering._Work._alone
    monkeypatch.setattr(
        filtering._Work, "_alone", lambda self, batch, slot: taken.append(truly(self, batch, slot)) or taken[-1]
    )
    anew = filter_of(name)
    found = anew.run(observations_of(anew, parts), [None] * 9)
    assert any(taken)
    assert found.estimates.tobytes() == expected.estimates.tobytes()
    assert found.states.tolist() == expected.states.tolist()
    assert [bits_of(end) for end in found.ends] == [bits_of(end) for end in expected.ends]


@pytest.mark.parametrize("name", LISTED)
def test_no_step_of_listed_answers_is_left_to_python(name, monkeypatch):
    """Labels took 180 microseconds a row, 45 times what they need."""
    own = filter_of(name)
    parts = steps_of(np.random.default_rng([17, WORLDS.index(name)]), own, 9)
    monkeypatch.setattr(filtering._Work, "_resumed", None)
    found = own.run(observations_of(own, parts), [None] * 9)
    exact = [own.exact([observations_of(own, [part])]) for part in parts]
    assert [bits_of(end) for end in found.ends] == [bits_of(end) for end in exact]
    assert not own.compiled or own.law_of(own.schedule.number(1), np.full(own.space.dimension, 99)) is None


def test_only_wanted_ends_are_kept():
    own = filter_of("grid")
    parts = steps_of(np.random.default_rng(3), own, 5)
    every = own.run(observations_of(own, parts), [None] * 5).ends
    some = own.run(observations_of(own, parts), [None] * 5, [False, True, False, False, True]).ends
    assert [p is None for p in some] == [True, False, True, True, False]
    assert [bits_of(some[k]) for k in (1, 4)] == [bits_of(every[k]) for k in (1, 4)]
    nothing = np.zeros(0, dtype=np.int64)
    assert (
        own.run(
            Observations(*(nothing,) * 3, np.zeros((0, 2), dtype=np.int64), nothing, np.zeros(0, dtype=np.bool_)),
            [],
        ).ends
        == []
    )


def test_a_subject_that_starts_in_logs_goes_on_beside_others():
    """Starts of both kinds in one call: each ends where it ends alone."""
    own = filter_of("faint")
    rng = np.random.default_rng(4)
    first = own.space.answers[24][None]
    parts = [
        (np.arange(1, 13), np.zeros(12, dtype=np.int64), np.concatenate([first, rng.integers(0, 7, (11, 2))]))
        for _ in range(5)
    ]
    assert own.schedule.start.prior.row is None
    starts = own.run(observations_of(own, parts[:3]), [None] * 3).ends
    assert all(isinstance(start, FlushedRow) for start in starts)
    after = [(np.arange(13, 20), np.zeros(7, dtype=np.int64), rng.integers(0, 7, (7, 2))) for _ in range(3)]
    cut, begun = [after[0], parts[3], after[1], after[2], parts[4]], [starts[0], None, starts[1], starts[2], None]
    together = own.run(observations_of(own, cut), begun)
    for k, start in enumerate(begun):
        alone = own.run(observations_of(own, [cut[k]]), [start])
        assert bits_of(alone.ends[0]) == bits_of(together.ends[k])
