"""Rows without times are held against all first steps at once.

Claims: a person is found whose rows keep a schedule or a total of blocks from no place, and only such a person, as
trying each place says; the same of the values of a table's steps and of each first step; what is refused first is told
by its name; work beyond the limits is not done, and how many people were left out is told.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.audit import first_steps
from dphmm.audit.first_steps import Compared, compared_with_blocks, compared_with_runs, have_values

PER = 6


def by_trying(person, step, asked, units, total, per, schedule):
    """Of each person whether some place keeps the schedule, and whether some keeps both."""
    found = []
    for one in range(person[-1] + 1):
        own = person == one
        turns, both = False, False
        for place in range(per):
            at = step[own] + place
            named = np.ones(own.sum(), bool) if schedule is None else np.isin(at % per + 1, schedule.at)
            planned = schedule is None or schedule.kind == "planned"
            turn = bool((asked[own] == named).all() if planned else (named | ~asked[own]).all())
            turns |= turn
            both |= turn and all(units[own][at // per == block].sum() <= total for block in set((at // per).tolist()))
        found.append((turns, both))
    return found


def rows_of(rng, people, most, far):
    """Rows by person and step, a few of them together."""
    person, step = [], []
    for one in range(people):
        count = int(rng.integers(1, most))
        step += sorted(rng.choice(far, size=count, replace=False).tolist())
        person += [one] * count
    return np.array(person), np.array(step) + 1


def test_blocks_are_kept_as_trying_each_place_says():
    rng, told = np.random.default_rng(1), {"": 0, "schedule": 0, "sequence": 0}
    promise = dphmm.SequencePromise(4, per=PER)
    for _ in range(1500):
        person, step = rows_of(rng, int(rng.integers(1, 4)), 9, 25)
        at = sorted((rng.choice(PER, size=rng.integers(1, 5), replace=False) + 1).tolist())
        spreads = (0.5,) if rng.random() < 0.5 else ()
        schedule = None if rng.random() < 0.3 else dphmm.Schedule(promise, 1, at, spreads)
        asked = np.ones(len(step), bool)
        if schedule is not None:
            # Most people follow it from some place, some but for a row.
            place = rng.integers(PER, size=person[-1] + 1)[person]
            asked = np.isin((step + place) % PER + 1, at) & (not spreads or rng.random(len(step)) < 0.8)
            asked ^= rng.random(len(step)) < rng.choice([0, 0.1])
        units, total = np.where(asked, rng.integers(0, 4, size=len(step)), 0), int(rng.integers(2, 9))
        given = person, step, asked, units, total, PER, schedule
        found, right = compared_with_blocks(*given), by_trying(*given)
        bad = [one for one, (_, both) in enumerate(right) if not both]
        assert found.left == 0 and found.person == (bad[0] if bad else None)
        assert not bad or found.what == ("sequence" if right[bad[0]][0] else "schedule")
        told[found.what] += 1
    assert min(told.values()) > 100


def test_sums_of_units_of_any_size_are_compared():
    person, step, asked = np.zeros(3, int), np.array([1, 2, 9]), np.ones(3, bool)
    for total, right in ((2 * 10**30, None), (2 * 10**30 - 1, 0)):
        found = compared_with_blocks(person, step, asked, np.array([10**30] * 3, dtype=object), total, PER, None)
        assert found.person == (None if total > 10**30 else right)
    for total, right in ((3 * 10**30, None), (3 * 10**30 - 1, 0)):
        units = np.array([10**30, 2 * 10**30, 10**30], dtype=object)
        apart = compared_with_blocks(person, step, asked, units, total, 2, None).person
        together = compared_with_blocks(person, np.array([1, 2, 3]), asked, units, total, PER, None).person
        # From one of two places a block holds the first of them alone; of three in a row and of two one each.
        assert apart is None and together == (None if total >= 3 * 10**30 else right)


def tables(rng):
    """Runs of a table of steps from -8 to 14 and the value of each step from -60 on."""
    cuts = np.sort(rng.choice(np.arange(-8, 15), size=2 * int(rng.integers(0, 4)), replace=False)).tolist()
    runs = [(first, last, int(rng.integers(0, 3))) for first, last in zip(cuts[::2], cuts[1::2], strict=True)]
    due = np.zeros(130, dtype=np.int64)
    for first, last, value in runs:
        due[first + 60 : last + 61] = value
    return runs, due


def test_values_are_those_of_a_table_as_trying_each_first_step_says(monkeypatch):
    rng, outcomes = np.random.default_rng(2), {True: 0, False: 0}
    for _ in range(1500):
        # People are looked at a few at once.
        monkeypatch.setattr(first_steps, "_AT_ONCE", int(rng.integers(6, 30)))
        person, step = rows_of(rng, int(rng.integers(1, 4)), 8, 15)
        runs, due = tables(rng)
        origin = rng.integers(-10, 12, size=person[-1] + 1)[person]
        value = due[step + origin + 60]
        change = rng.random(len(step)) < rng.choice([0, 0.15])
        value = np.where(change, rng.integers(0, 3, size=len(step)), value)
        found = compared_with_runs(person, step, value, runs, 0)
        fits = [
            any((due[step[person == one] + first + 60] == value[person == one]).all() for first in range(-40, 40))
            for one in range(person[-1] + 1)
        ]
        assert found.left == 0 and (found.person is None) == all(fits)
        assert found.person is None or not fits[found.person]
        assert have_values(step + origin, value, runs, 0) == bool((due[step + origin + 60] == value).all())
        outcomes[all(fits)] += 1
    assert min(outcomes.values()) > 200


def test_no_row_is_compared_with_no_table():
    none = np.zeros(0, dtype=np.int64)
    assert compared_with_runs(none, none, none, [(1, 2, 1)], 0) == Compared(None)
    assert compared_with_runs(np.zeros(1, int), np.ones(1, int), np.ones(1, int), [], 0).person == 0


def _week_of_seconds(at, kind="paced"):
    promise = dphmm.SequencePromise(4, per=604_800)
    return dphmm.Schedule(promise, Fraction(4, len(at)), at, (1.0,) if kind == "paced" else ())


@pytest.mark.parametrize("kind", ["paced", "planned"])
def test_a_block_of_many_named_steps_is_compared_all_the_same(kind):
    """Six people with 72 rows each, of a week whose every second second is named: no place is tried by itself."""
    schedule = _week_of_seconds(range(1, 604_801, 2), kind)
    step, person = np.tile(np.arange(72) * 8400 + 2, 6), np.repeat(np.arange(6), 72)
    asked = np.ones(432, bool)
    units = np.ones(432, int)
    assert compared_with_blocks(person, step, asked, units, 36, 604_800, schedule) == Compared(None)
    assert compared_with_blocks(person, step, asked, units, 35, 604_800, schedule).what == "sequence"
    odd = step + (np.arange(432) == 200)
    assert compared_with_blocks(person, odd, asked, units, 72, 604_800, schedule) == Compared(2, "schedule")


def test_what_would_take_too_long_is_left_out_and_counted(monkeypatch):
    people, steps = np.repeat(np.arange(5), 20), np.tile(np.arange(1, 21), 5)
    asked = np.ones(100, bool)
    hours = dphmm.Schedule(dphmm.SequencePromise(24, per=24), 1, range(1, 25))
    given = people, steps, asked, np.ones(100, int)
    assert compared_with_blocks(*given, 24, 24, hours) == Compared(None)
    monkeypatch.setattr(first_steps, "_MOST_BYTES", 3 * 10**5)
    assert compared_with_blocks(*given, 24, 24, hours) == Compared(None, left=3)
    # Longer blocks than anybody has are not laid out, and a person whose rows no total forbids needs no place.
    assert compared_with_blocks(*given, 19, 2**40, None) == Compared(None, left=5)
    assert compared_with_blocks(*given, 20, 2**40, None) == Compared(None)
    values = np.where(steps > 7 + people, 1, 0)
    runs = [(1, 50, 1)]
    assert compared_with_runs(people, steps, values, runs, 0) == Compared(None)
    monkeypatch.setattr(first_steps, "_AT_ONCE", 3)
    monkeypatch.setattr(first_steps, "_MOST_INTERVALS", 2500)
    assert compared_with_runs(people, steps, values, runs, 0) == Compared(None, left=3)
