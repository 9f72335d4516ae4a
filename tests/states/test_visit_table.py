"""Rows gathered in parts of any size are the rows that a release of the whole table answers, counted and in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dphmm import StateSpace
from dphmm._kernels import rows as loops
from dphmm.errors import InvalidInput
from dphmm.states import visit_table
from dphmm.states.trajectory import Trajectories, in_steps, public_times, true_states
from dphmm.states.visit_table import Gathering, VisitTable

SPACE = StateSpace.categories(("a", "b", "c"))
#: Whether rows have times and steps, and the length of a step of the model: with one, rows have either.
KINDS = [(timed, stepped, None) for timed in (True, False) for stepped in (True, False)]
KINDS += [(True, False, 60), (False, True, 60), (True, True, 60)]
NAMES = ("a", "b", "c", "elsewhere")


def naive(rows: Trajectories, seconds: int | None, answer: str):
    """User, step, published time and state of every answered row, as arrays of whole rows tell."""
    stepped, repeated = in_steps(rows, seconds, answer)
    states, outside = true_states(stepped, SPACE)
    times, ranked = public_times(stepped, seconds), stepped.step is None and stepped.time is not None
    # Rows of one moment are one row, and steps the ranks of moments.
    visits, twice = (replace(stepped, step=stepped.time) if ranked else stepped).visits(answer)
    steps = stepped.steps()
    told = [
        (visit.user, rank if ranked else int(steps[row]), None if times is None else int(times[row]), int(states[row]))
        for visit in visits
        for rank, row in enumerate(visit.rows)
    ]
    return told, repeated + sum(dict(twice).values()), int(outside.sum()), len(stepped)


def told(table: VisitTable):
    """The same of a table."""
    owners, states = table.owners(0, table.n_visits), table.states(0, table.n_visits)
    rows = range(table.n_visits)
    times = table.times
    found = [
        (table.users[owners[row]], table.steps[row], None if times is None else times[row], int(states[row]))
        for row in rows
    ]
    return found, table.same_step, table.outside, table.in_steps


def some_rows(rng: np.random.Generator, timed: bool, stepped: bool, n: int = 120) -> Trajectories:
    """Rows of five users and one who has none, in no order, with several in one step and equal times."""
    user = rng.integers(0, 5, n)
    time = 10**9 * 60 + rng.integers(0, 40, n) * 30 * 10**6 if timed else None
    step = rng.integers(20, 60, n) if stepped else None
    state = np.array(NAMES, dtype=object)[rng.integers(0, 4, n)]
    return Trajectories(tuple("uvwxyz"), user, time=time, step=step, state=state)


def gathered(rows: Trajectories, seconds: int | None, answer: str, size: int) -> VisitTable:
    """Rows given in parts of ``size``."""
    found = Gathering(SPACE, seconds, answer)
    states, outside = true_states(rows, SPACE)
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        found.add(
            rows.user[part],
            found.codes_of(states[part], outside[part]),
            None if rows.time is None else rows.time[part],
            None if rows.step is None else rows.step[part],
        )
    return found.finish(rows.users)


@pytest.mark.parametrize("answer", ["last", "first"])
@pytest.mark.parametrize(("timed", "stepped", "seconds"), KINDS)
@pytest.mark.parametrize("part", [1, 7, 2**18])
def test_parts_of_any_size_are_the_whole(monkeypatch, timed, stepped, seconds, answer, part):
    monkeypatch.setattr(visit_table, "_PART", part)
    rng = np.random.default_rng(5)
    for _ in range(4):
        rows = some_rows(rng, timed, stepped)
        if seconds is not None and stepped:
            # A number of a bin, of years that no counting of rows reaches.
            rows = Trajectories(rows.users, rows.user, time=rows.time, step=rows.step + 10**6, state=rows.state)
        expected = naive(rows, seconds, answer)
        assert told(VisitTable.of(rows, SPACE, seconds, answer)) == expected
        for size in (1, 7, 1000):
            assert told(gathered(rows, seconds, answer, size)) == expected
        by_user, _ = rows.sort()
        assert told(gathered(by_user, seconds, answer, 7)) == naive(by_user, seconds, answer)


@pytest.mark.parametrize("answer", ["last", "first"])
@pytest.mark.parametrize("part", [1, 7, 2**18])
def test_of_rows_of_one_moment_one_with_a_place_is_kept(monkeypatch, answer, part):
    """By a loop over users and moments; a moment of which no row has a place is there, and is not counted."""
    monkeypatch.setattr(visit_table, "_PART", part)
    rows = some_rows(np.random.default_rng(6), True, False)
    gone = np.random.default_rng(7).random(len(rows)) < 0.5
    rows = replace(rows, state=np.where(gone, None, rows.state))
    expected, kept = [], []
    for user in range(5):
        for rank, moment in enumerate(np.unique(rows.time[rows.user == user])):
            placed = np.flatnonzero((rows.user == user) & (rows.time == moment) & ~gone)
            state = SPACE.index_of(rows.state[placed[-1 if answer == "last" else 0]]) if len(placed) else -1
            expected.append(("uvwxy"[user], rank, moment, state))
            kept.append(len(placed) > 0)
    for table in (VisitTable.of(rows, SPACE, None, answer), gathered(rows, None, answer, 7)):
        elsewhere = np.count_nonzero(rows.state == "elsewhere")
        assert told(table) == (expected, len(rows.placed) - sum(kept), elsewhere, len(rows.placed))
        assert table.placed(0, table.n_visits).tolist() == kept and table.n_placed == sum(kept) < len(kept)


def test_users_without_rows_are_none_of_the_table_and_its_parts_are_each_users_rows():
    table = VisitTable.of(some_rows(np.random.default_rng(1), True, False), SPACE, 60)
    assert table.users == tuple("uvwxy") and len(table) == 5
    assert [row for user in table for row in user.rows] == list(range(table.n_visits))
    assert [user.begins for user in table] == [table.steps[user.rows[0]] for user in table]
    assert table.ends[1].tolist() == [table.steps[user.rows[-1]] for user in table]
    assert table[1:3] == [table[1], table[2]]
    assert list(table.parts()) == [(0, table.n_visits)]
    assert "elsewhere" not in repr(table) and repr(table) == f"VisitTable(rows={table.n_visits}, users=5)"


def test_a_table_of_no_rows():
    table = VisitTable.of(Trajectories((), np.zeros(0, np.int32), state=np.zeros(0, object)), SPACE, None)
    assert list(table) == [] and table.n_visits == 0 and table.ends[0].tolist() == []


def test_steps_that_need_64_bits_come_late():
    rows = [(0, 5), (1, 2**40), (0, -(2**31) - 1), (0, 5)]
    found = Gathering(SPACE, None)
    for user, step in rows:
        found.add(np.array([user]), np.array([1]), None, np.array([step]))
    table = found.finish(("u", "v"))
    assert [row[:2] for row in told(table)[0]] == [("u", -(2**31) - 1), ("u", 5), ("v", 2**40)]
    assert table.same_step == 1


def test_a_table_serves_the_model_and_the_rule_that_it_was_made_for():
    table = VisitTable.of(some_rows(np.random.default_rng(1), True, False), SPACE, 60)
    table.check_made_for(SPACE, 60, "last")
    for wrong in ((SPACE, None, "last"), (SPACE, 60, "first"), (StateSpace.categories(("a", "b")), 60, "last")):
        with pytest.raises(InvalidInput, match="table: got rows of 3 states, steps of 60 s, answer last"):
            table.check_made_for(*wrong)


def test_more_rows_than_places_have_numbers_are_refused(monkeypatch):
    monkeypatch.setattr(visit_table, "MOST_ROWS", 2)
    found = Gathering(SPACE, None)
    found.add(np.array([0, 0]), np.array([1, 1]), None, None)
    with pytest.raises(InvalidInput, match="rows: got more than 2"):
        found.add(np.array([0]), np.array([1]), None, None)


@pytest.mark.parametrize("seed", range(5))
def test_values_move_to_their_places_and_places_tell_which_turn_it_is(seed):
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, 4, 50).astype(np.int32)
    values = [rng.integers(0, 1000, 50), rng.integers(0, 1000, 50).astype(np.int32)]
    order = np.argsort(owner, kind="stable")
    expected = [column[order].copy() for column in values]
    places = owner.copy()
    loops.places_of_rows(places, np.searchsorted(owner[order], np.arange(4)))
    for column in values:
        loops.move(places, column)
    assert all((column == wanted).all() for column, wanted in zip(values, expected, strict=True))
    assert (np.sort(places) == np.arange(50)).all()
