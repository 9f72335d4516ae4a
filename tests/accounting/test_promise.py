"""Promises over sequences, against plain definitions: every window, every block, every order of adding.

It could fail where a window is one step off, where a block begins at another step than the clock says, where rows that
were stored later than the asked ones are forgotten, or where what is written is not read as the same promise.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm import SequencePromise
from dphmm.errors import InvalidInput

EPSILONS = [Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(5, 4), Fraction(0)]


def plainly_holds(promise, spent):
    """Every window and every block, one by one."""
    last = max((t for t, _ in spent), default=0)

    def total(steps):
        return sum((epsilon for t, epsilon in spent if t in steps), Fraction(0))

    if promise.steps is not None:
        return last <= promise.steps and total(range(1, last + 1)) <= promise.total
    if promise.window is not None:
        return all(total(range(first, first + promise.window)) <= promise.total for first in range(1, last + 1))
    blocks = {(t - 1 + promise.passed) // promise.per for t, _ in spent}
    members = {b: [t for t in range(1, last + 1) if (t - 1 + promise.passed) // promise.per == b] for b in blocks}
    return all(total(steps) <= promise.total for steps in members.values())


def drawn(seed):
    random_ = random.Random(seed)
    kind = random_.choice(["steps", "window", "per"])
    length = random_.randint(1, 8)
    passed = random_.randrange(length) if kind == "per" else 0
    total = random_.choice([Fraction(1), Fraction(2), Fraction(7, 3), Fraction(4)])
    promise = SequencePromise(total, **{kind: length}, passed=passed)
    rows = [(random_.randint(1, 12), random_.choice(EPSILONS)) for _ in range(random_.randint(0, 7))]
    return promise, rows, random_


@pytest.mark.parametrize("part", range(4))
def test_what_holds_is_what_every_window_and_block_says(part):
    seen = set()
    for seed in range(part * 500, part * 500 + 500):
        promise, rows, _ = drawn(seed)
        expected = plainly_holds(promise, rows)
        assert promise.holds(rows) is expected, (promise, rows)
        seen.add(expected)
    assert seen == {True, False}


def test_the_first_row_that_breaks_it_is_named():
    refused = 0
    for seed in range(800):
        promise, rows, random_ = drawn(seed)
        spent = [row for row in rows if random_.random() < 0.5]
        if not plainly_holds(promise, spent):
            continue
        asked = sorted(row for row in rows if row not in spent)
        plainly = next((k for k in range(len(asked)) if not plainly_holds(promise, [*spent, *asked[: k + 1]])), None)
        assert promise.refused(spent, asked) == plainly
        refused += plainly is not None
    assert refused > 100


def test_the_room_of_a_step_is_the_most_that_still_holds():
    positive = 0
    for seed in range(800):
        promise, rows, random_ = drawn(seed)
        if not plainly_holds(promise, rows):
            continue
        t = random_.randint(1, 12)
        room = promise.room(rows, t)
        assert plainly_holds(promise, [*rows, (t, room)]) or (promise.steps is not None and t > promise.steps)
        assert not plainly_holds(promise, [*rows, (t, room + Fraction(1, 1000))])
        positive += 0 < room < promise.total
        steps = sorted(random_.sample(range(1, 13), 4))
        lying = [step for step in steps if promise.steps is None or step <= promise.steps]
        blocks = {step if promise.window else promise.reach(step, step): promise.room(rows, step) for step in lying}
        assert promise.rooms(rows, steps) == list(blocks.values())
        assert promise.rooms(rows, []) == []
    assert positive > 50


def test_rows_out_of_reach_do_not_count():
    for seed in range(800):
        promise, rows, random_ = drawn(seed)
        if promise.steps is not None or not plainly_holds(promise, rows):
            continue
        asked = sorted((random_.randint(1, 12), random_.choice(EPSILONS)) for _ in range(2))
        low, high = promise.reach(asked[0][0], asked[-1][0])
        near = [row for row in rows if low <= row[0] <= high]
        assert promise.refused(near, asked) == promise.refused(rows, asked)


@pytest.mark.parametrize("zone", ["+00:00", "+08:00", "-05:00"])
@pytest.mark.parametrize(("per", "step"), [("1d", 300), ("12h", 1800), ("7d", 3600), ("30min", 600)])
def test_blocks_of_a_time_begin_by_the_clock(per, step, zone):
    """Steps of one block have one time of the clock's day, half day, or week since 1970-01-01."""
    sign, hours, minutes = zone[0], int(zone[1:3]), int(zone[4:])
    clock = timezone((1 if sign == "+" else -1) * timedelta(hours=hours, minutes=minutes))
    length = {"1d": 86400, "12h": 43200, "7d": 7 * 86400, "30min": 1800}[per]
    begins = datetime(2024, 5, 6, 7, 20, tzinfo=UTC)
    origin = int(begins.timestamp()) // step
    promise = SequencePromise(1, per=per, zone=zone).in_steps(step, origin)
    assert (promise.per, promise.zone) == (length // step, "+00:00")

    def by_the_clock(t):
        local = datetime.fromtimestamp((origin + t - 1) * step, clock).replace(tzinfo=None)
        return int((local - datetime(1970, 1, 1)).total_seconds()) // length

    for t in range(1, 3 * promise.per):
        same = by_the_clock(t) == by_the_clock(t + 1)
        assert ((t - 1 + promise.passed) // promise.per == (t + promise.passed) // promise.per) is same
        assert promise.holds([(t, Fraction(1)), (t + 1, Fraction(1))]) is not same


def test_a_promise_is_read_as_it_was_written():
    for promise in (
        SequencePromise("10.5", steps=288),
        SequencePromise(Fraction(7, 3), window=12),
        SequencePromise(12, per=288, passed=17),
        SequencePromise(1, per="1d").in_steps(300, 5),
    ):
        assert SequencePromise.read(promise.written()) == promise
    for text in (
        "",
        "[]",
        "{}",
        '{"total": "1"}',
        '{"steps": 3, "total": "x"}',
        '{"steps": 3, "total": "1", "zone": "Z"}',
        '{"steps":3,"total":"1"}',
        '{"steps": true, "total": "1"}',
        '{"per": "1d", "total": "1"}',
    ):
        with pytest.raises(InvalidInput, match="promise"):
            SequencePromise.read(text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "promise: got none of steps, window and per"),
        ({"steps": 3, "window": 2}, "promise: got steps and window"),
        ({"steps": 0}, "steps: got 0"),
        ({"window": 1.5}, "window: got 1.5"),
        ({"per": "1 day"}, "per: got 1 day"),
        ({"per": "0d"}, "per: got 0d"),
        ({"steps": True}, "steps: got True"),
        ({"steps": "1d"}, "steps: got 1d"),
        ({"total": 0, "steps": 3}, "total: got 0"),
        ({"total": -1, "steps": 3}, "total: got -1"),
        ({"total": float("nan"), "steps": 3}, "total: got nan"),
        ({"per": "1d", "zone": "Berlin"}, "zone: got Berlin"),
        ({"per": 4, "passed": 4}, "passed: got 4"),
    ],
)
def test_what_is_no_promise_is_refused_in_one_line(given, message):
    with pytest.raises(InvalidInput) as refused:
        SequencePromise(**{"total": 1, **given})
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_a_time_needs_a_clock_and_whole_steps():
    with pytest.raises(InvalidInput, match="this model has no time step"):
        SequencePromise(1, per="1d").in_steps(None, 0)
    with pytest.raises(InvalidInput, match="a whole number of the model's steps of 7000 s"):
        SequencePromise(1, per="1d").in_steps(7000, 0)


def test_an_offset_of_half_an_hour_needs_steps_that_fit():
    """The zone is at fault, and not the block."""
    with pytest.raises(InvalidInput, match="zone: got -05:30"):
        SequencePromise(1, per="1d", zone="-05:30").in_steps(3600, 0)


def test_its_sentence_says_over_what():
    whole = SequencePromise(10, steps=288).sentence()
    assert whole == "Over the whole sequence of 288 steps two neighbouring paths lose at most 10."
    assert "within 12 steps in a row" in SequencePromise(10, window=12).sentence()
    assert "over several blocks the totals add." in SequencePromise(10, per="1d").sentence()


def test_it_is_public():
    assert dphmm.SequencePromise is SequencePromise


Schedule = dphmm.accounting.Schedule


def schedules():
    """Planned and paced, under every kind of promise."""
    for promise in (
        SequencePromise(6, steps=12),
        SequencePromise("1.5", window=5),
        SequencePromise(3, per=4),
        SequencePromise(3, per="1d", zone="+08:00"),
    ):
        yield Schedule(promise, "0.5", [1, 2, 4])
        yield Schedule(promise, Fraction(1, 3), range(1, 5), (0.0, 1.5, 2.25))
        if promise.window is None:
            yield Schedule(promise, "0.5", [1, 2, 4], seed="2030")


@pytest.mark.parametrize("schedule", list(schedules()), ids=str)
def test_what_is_written_is_read_again(schedule):
    again = Schedule.read(schedule.written())
    assert again == schedule and again.written() == schedule.written()
    assert Schedule.of_document(schedule.document()) == schedule


@pytest.mark.parametrize("schedule", list(schedules()), ids=str)
def test_no_other_text_is_read(schedule):
    text = schedule.written()
    others = ["", "[]", "null", "{}", text + " ", text.replace('"at": "1', '"at": "01'), text.replace("total", "totel")]
    others += [text.replace('"at": "', '"at": "9-'), text.replace('"epsilon": "', '"epsilon": "9')]
    for other in others:
        with pytest.raises(InvalidInput):
            Schedule.read(other)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"promise": 3}, "promise"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 7}, "epsilon"),
        ({"at": []}, "at"),
        ({"at": [0, 1]}, "at"),
        ({"at": [2, 2]}, "at"),
        ({"at": [3, 13]}, "at"),
        ({"at": [1.0]}, "at"),
        ({"at": [True]}, "at"),
        ({"at": range(1, 13)}, "at"),
        ({"spreads": [math.nan]}, "spreads"),
        ({"spreads": [-1.0]}, "spreads"),
        ({"spreads": ["1"]}, "spreads"),
        ({"seed": "1", "spreads": [1.0]}, "seed"),
        ({"seed": "1", "promise": SequencePromise(6, window=12)}, "seed"),
        ({"seed": "a b"}, "seed"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given, field):
    choices = {"promise": SequencePromise(6, steps=12), "epsilon": 1, "at": [1, 7]}
    with pytest.raises(InvalidInput) as refused:
        Schedule(**(choices | given))
    assert refused.value.field == field


def test_a_block_of_a_time_must_hold_the_steps():
    schedule = Schedule(SequencePromise(6, per="1d"), 2, [1, 100, 144])
    assert schedule.in_steps(600, 3).promise.passed == 3
    with pytest.raises(InvalidInput, match=r"^at: "):
        schedule.in_steps(900, 0)


@pytest.mark.parametrize("zone", ["+00:00", "+02:00", "-03:30"])
@pytest.mark.parametrize("origin", [0, 5, 47, -11])
def test_steps_of_a_block_are_those_of_the_clock(zone, origin):
    """Half-hour bins: the named steps are the bins that begin at these local times, for whoever's step 1."""
    schedule = Schedule(SequencePromise(4, per="1d", zone=zone), 2, [1, 20]).in_steps(1800, origin)
    t = np.arange(1, 200)
    sign = -1 if zone[0] == "-" else 1
    local = (origin + t - 1) * 30 + sign * (int(zone[1:3]) * 60 + int(zone[4:]))
    assert schedule.may_ask(t).tolist() == np.isin(local % 1440, [0, 19 * 30]).tolist()


def test_windows_come_one_after_another_and_a_sequence_once():
    t = np.arange(1, 16)
    window = Schedule(SequencePromise(2, window=5), 1, [2, 4])
    assert t[window.may_ask(t)].tolist() == [2, 4, 7, 9, 12, 14]
    once = Schedule(SequencePromise(2, steps=5), 1, [2, 4])
    assert t[once.may_ask(t)].tolist() == [2, 4]


@pytest.mark.parametrize("kind", ["steps", "window", "per"])
def test_a_planned_schedule_keeps_its_promise_wherever_blocks_begin(kind):
    rng = np.random.default_rng(5)
    for _ in range(200):
        length = int(rng.integers(1, 9))
        at = np.flatnonzero(rng.random(length) < 0.5) + 1
        if not len(at):
            continue
        passed = {"passed": int(rng.integers(length))} if kind == "per" else {}
        promise = SequencePromise(Fraction(len(at), 3), **{kind: length}, **passed)
        schedule = Schedule(promise, Fraction(1, 3), at.tolist())
        t = np.arange(1, 4 * length)
        asked = [(int(step), schedule.exact) for step in t[schedule.may_ask(t)]]
        assert promise.holds(asked)
        assert schedule.releases == len(at)


@pytest.mark.parametrize(
    ("promise", "times"),
    [
        (SequencePromise(6, steps=96), {"at": [10, 30, 90]}),
        (SequencePromise(6, per=24), {"at": [2, 9, 24]}),
        (SequencePromise(6, per="1d", zone="-05:00"), {"at": [2, 9, 24]}),
        (SequencePromise(6, per="1d", zone="Europe/Berlin"), {"at": [2, 9, 22]}),
        (SequencePromise(6, per="1d", zone="Europe/Berlin"), {"hours": ["01:00", "02:30", "21:00"]}),
    ],
    ids=str,
)
def test_staggered_steps_move_together_by_less_than_half_their_least_distance(promise, times):
    """Over 97 days, from before clocks are put back: as many steps of each block, and the offsets fill their range."""
    fixed, steps = Schedule(promise, 2, **times), np.arange(1, 97 if promise.steps else 97 * 24)
    own = replace(fixed, seed="2030")
    with pytest.raises(InvalidInput, match=r"^schedule: "):
        own.in_steps(3600, 475_000).may_ask(steps)
    fixed, own = (one.in_steps(3600, 475_000) for one in (fixed, own))
    blocks = np.zeros(len(steps), dtype=np.int64) if promise.steps else fixed.promise.bounds(steps)[0]
    met = {}
    for person in map(str, range(300 if promise.steps else 3)):
        asked = own.of(person).may_ask(steps)
        for block in np.unique(blocks)[0 if promise.steps else 1 : None if promise.steps else -1].tolist():
            inside = steps[blocks == block] - steps[blocks == block][0]
            whole, named, moved = (
                len(inside),
                inside[fixed.may_ask(steps)[blocks == block]],
                inside[asked[blocks == block]],
            )
            assert 2 <= len(named) == len(moved) <= 3
            apart = np.diff([*named, named[0] + whole]).min()
            fits = [
                offset
                for offset in range(-(apart // 2), apart - apart // 2)
                if sorted((named + offset) % whole) == moved.tolist()
            ]
            assert len(fits) == 1
            met.setdefault(int(apart), []).extend(fits)
    apart, offsets = max(met.items(), key=lambda item: len(item[1]))
    assert sorted(set(offsets)) == list(range(-(apart // 2), apart - apart // 2))


def test_a_paced_schedule_asks_by_what_is_left():
    """Every (step, room, spread): the bar is that of the named steps left for each release left, rounded up."""
    bars = (0.5, 1.0, 1.5, 2.0)
    for promise, at in itertools.product(
        (SequencePromise(2, steps=7), SequencePromise(2, per=7, passed=2), SequencePromise(2, window=7)),
        (range(1, 8), [2, 3, 6]),
    ):
        schedule = Schedule(promise, Fraction(1, 2), at, bars)
        for t in range(1, 8):
            place = (t - 1 + promise.passed) % 7 + 1
            left = len(at) if promise.window else sum(step >= place for step in at)
            for room in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(2)):
                releases = int(room * 2)
                for spread in (0.0, 0.5, 0.99, 1.0, 1.7, 2.0, 9.0):
                    expected = releases > 0 and place in at
                    if expected:
                        due = -(-left // releases)
                        expected = spread >= bars[min(due, 4) - 1]
                    assert schedule.asks(t, spread, room) == expected


def test_many_long_ranges_are_refused_before_they_are_written_out():
    told = Schedule(SequencePromise(6, steps=2**40), 1, [1]).document()
    with pytest.raises(InvalidInput, match=r"^at: "):
        Schedule.of_document(told | {"at": ",".join(f"{k * 2**20 + 1}-{(k + 1) * 2**20}" for k in range(2000))})
