"""Schedules by themselves: which steps they name, what they may spend, and how they are written."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm import SequencePromise
from dphmm.errors import InvalidInput

Schedule = dphmm.Schedule


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
