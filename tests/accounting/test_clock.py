"""Days by clocks that are put forward and back, against a walk through every bin, in ordinary and in odd zones.

It could fail where midnight is skipped or comes twice, where a date is left out or repeated, where offsets are of half
hours or of seconds, or where blocks of a newer zone table overlap those that are stored.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm import SequencePromise
from dphmm.accounting import Schedule
from dphmm.accounting.clock import LocalDays, day_begins, named_zone, overlap, seconds_ahead
from dphmm.errors import InvalidInput
from zone_tables import town_with_the_clocks_of

#: Zones and the days around which something is odd in them.
ODD = [
    ("Europe/Berlin", date(2024, 3, 31)),
    ("Europe/Berlin", date(2024, 10, 27)),
    # Clocks are put forward at midnight, which does not exist then, and back to it, so that it comes twice.
    ("America/Sao_Paulo", date(2018, 11, 4)),
    ("America/Sao_Paulo", date(2019, 2, 17)),
    ("Africa/Cairo", date(2024, 4, 26)),
    ("America/Havana", date(2024, 11, 3)),
    # At one minute past midnight they are put back: a minute of the new date, an hour of the old one again.
    ("America/St_Johns", date(2006, 10, 29)),
    # Two hours at once, half an hour, and offsets of half hours and of 45 minutes.
    ("Antarctica/Troll", date(2024, 10, 27)),
    ("Australia/Lord_Howe", date(2024, 4, 7)),
    ("Asia/Kolkata", date(2024, 5, 5)),
    ("Asia/Kathmandu", date(1986, 1, 1)),
    # A date that is left out, in one that moved over the date line; and one that came twice.
    ("Pacific/Apia", date(2011, 12, 30)),
    ("Pacific/Kwajalein", date(1993, 8, 21)),
    ("Pacific/Kwajalein", date(1969, 10, 1)),
    ("America/Juneau", date(1867, 10, 18)),
    # Offsets with seconds.
    ("Europe/Amsterdam", date(1930, 5, 15)),
    ("Africa/Monrovia", date(1972, 1, 7)),
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number_of(day):
    return (day - date(1970, 1, 1)).days


def shown(zone, second):
    return (EPOCH + timedelta(seconds=second)).astimezone(ZoneInfo(zone))


def walked(zone, step, first, end, days=1):
    """Of each bin the number of its block: of the latest date that clocks have shown by its beginning, bin by bin."""
    blocks, latest = [], None
    # Long enough before the first bin that every date of it has been seen to begin.
    for number in range(first - 3 * 86400 // step, end):
        for second in range(number * step, (number + 1) * step, min(step, 60)):
            day = number_of(shown(zone, second).date())
            latest = day if latest is None else max(latest, day)
            if second == number * step and number >= first:
                blocks.append(latest // days)
    return blocks


@pytest.mark.parametrize(("zone", "day"), ODD, ids=str)
@pytest.mark.parametrize("step", [900, 3600])
def test_a_step_belongs_to_the_day_in_which_it_begins(zone, day, step):
    first = (number_of(day) - 2) * 86400 // step
    blocks = walked(zone, step, first, first + 5 * 86400 // step)
    begins, ends = LocalDays(zone, 1, step, first).bounds(np.arange(1, len(blocks) + 1))
    assert np.all(begins[1:] >= begins[:-1])
    for t, (one, other) in enumerate(pairwise(blocks), start=1):
        same = begins[t - 1] == begins[t]
        assert same == (one == other), (zone, t)
        assert same or begins[t] == ends[t - 1] == t + 1


@given(
    zone=st.sampled_from(sorted({zone for zone, _ in ODD})),
    day=st.integers(-40_000, 60_000),
    days=st.sampled_from([1, 2, 7, 30]),
    step=st.sampled_from([1, 60, 600, 1800, 3600, 7200, 25_000, 86400, 200_000]),
    origin=st.integers(-(10**6), 10**6),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_blocks_follow_one_another_without_a_gap(zone, day, days, step, origin):
    """Whatever the zone, the step and the days: each step is in its block, and the next one begins where it ends."""
    local = LocalDays(zone, days, step, origin)
    t = day * 86400 // step - origin + np.array([-5, -1, 0, 1, 3, 40])
    begins, ends = local.bounds(t)
    assert np.all((begins <= t) & (t < ends))
    following, _ = local.bounds(ends)
    _, before = local.bounds(begins - 1)
    assert np.array_equal(following, ends) and np.array_equal(before, begins)
    for begin in begins.tolist():
        second = (begin + origin - 1) * step
        # Blocks are counted from 1970-01-01, and begin in the first step of their first day, or of one left out.
        number = number_of(shown(zone, second).date())
        assert day_begins(zone, number // days * days) <= second + 86400 * days


def test_days_have_23_24_and_25_hours():
    local = LocalDays("Europe/Berlin", 1, 3600, 0)
    t = number_of(date(2024, 1, 1)) * 24 + 24 * np.arange(366) + 12
    begins, ends = local.bounds(t)
    lengths, counts = np.unique(ends - begins, return_counts=True)
    assert dict(zip(lengths.tolist(), counts.tolist(), strict=True)) == {23: 1, 24: 364, 25: 1}


def test_weeks_are_seven_local_days_from_1970():
    begins, ends = LocalDays("Europe/Berlin", 7, 3600, 0).bounds(np.array([number_of(date(2024, 3, 29)) * 24]))
    first, last = (shown("Europe/Berlin", int(number - 1) * 3600) for number in (begins[0], ends[0]))
    assert (first.hour, last.hour) == (0, 0)
    assert number_of(first.date()) % 7 == 0 and last.date() - first.date() == timedelta(days=7)
    assert ends[0] - begins[0] == 7 * 24 - 1


@pytest.mark.parametrize("step", [300, 1800, 3600])
@pytest.mark.parametrize(("zone", "day"), [one for one in ODD if one[0] != "America/Juneau"], ids=str)
def test_times_of_a_day_name_the_first_step_that_clocks_show(zone, day, step):
    """Against every minute of five days: the step that begins at the first one that shows a time, or next."""
    hours = ["00:00", "01:10", "02:30", "12:00", "22:59"]
    origin = (number_of(day) - 2) * 86400 // step
    schedule = Schedule(SequencePromise(6, per="1d", zone=zone), 1, hours=hours).in_steps(step, origin)
    t = np.arange(1, 5 * 86400 // step)
    begins, _ = schedule.promise.bounds(t)
    expected = set()
    for block in np.unique(begins)[1:-1].tolist():
        own = t[begins == block].tolist()
        minutes = range((own[0] + origin - 2) * step, (own[-1] + origin) * step, 60)
        times = [(minute, shown(zone, minute)) for minute in minutes]
        for hour in hours:
            moments = [minute - then.second for minute, then in times if f"{then:%H:%M}" == hour]
            named = [number for moment in moments if (number := -(-moment // step) - origin + 1) in own]
            expected |= set(named[:1])
    whole = (begins > begins[0]) & (begins < begins[-1])
    assert set(t[schedule.may_ask(t) & whole].tolist()) == expected
    assert expected


def asked_on(day, hours, zone="Europe/Berlin"):
    """When on a day, as UTC hours since its midnight there, times of day are asked."""
    begin = day_begins(zone, number_of(day)) // 3600
    promise = SequencePromise(len(hours), per="1d", zone=zone)
    schedule = Schedule(promise, 1, hours=hours).in_steps(3600, begin)
    return (np.flatnonzero(schedule.may_ask(np.arange(1, 27)))).tolist()


def test_the_hour_that_occurs_twice_is_asked_once_and_the_one_that_is_skipped_not_at_all():
    hours = ["02:00", "08:00"]
    assert asked_on(date(2024, 7, 1), hours)[:2] == [2, 8]
    assert asked_on(date(2024, 10, 27), hours) == [2, 9]
    assert asked_on(date(2024, 3, 31), hours)[:1] == [7]


def test_a_schedule_of_times_by_an_offset_is_that_of_steps():
    promise = SequencePromise(2, per="1d", zone="+02:00")
    by_hours = Schedule(promise, 1, hours=["08:00", "20:30"]).in_steps(1800, 7)
    assert by_hours == Schedule(promise, 1, [17, 42]).in_steps(1800, 7)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hours": ["8:00"]}, "hours: got 8:00"),
        ({"hours": ["24:00"]}, "hours: got 24:00"),
        ({"hours": ["20:00", "08:00"]}, "hours: got 20:00, 08:00; expected times of a day, ascending"),
        ({"hours": ["08:00", "08:00"]}, "hours: got 08:00, 08:00"),
        ({"hours": ["08:00"], "at": [1]}, "hours: got 1 times of a day beside steps"),
        ({"hours": ["08:00"], "promise": SequencePromise(2, per="2d")}, "hours: got 1 times of a day"),
        ({"hours": ["08:00"], "promise": SequencePromise(2, window=24)}, "hours: got 1 times of a day"),
        ({"hours": ["08:00", "09:00", "10:00"]}, "hours: got 3 releases of 1; expected at most 2 per 1d"),
        ({}, "at: got 0 steps"),
    ],
)
def test_times_that_cannot_be_are_refused_by_name(given, message):
    with pytest.raises(InvalidInput) as refused:
        Schedule(**{"promise": SequencePromise(2, per="1d", zone="Europe/Berlin"), "epsilon": 1} | given)
    assert str(refused.value).startswith(message)


def test_times_that_steps_cannot_tell_apart_are_refused():
    promise = SequencePromise(2, per="1d", zone="Europe/Berlin")
    with pytest.raises(InvalidInput, match="times at least a step of 3600 s apart"):
        Schedule(promise, 1, hours=["08:00", "08:30"]).in_steps(3600, 0)
    with pytest.raises(InvalidInput, match="a step of 3600 s begins before midnight"):
        Schedule(promise, 1, hours=["08:00", "23:30"]).in_steps(3600, 0)
    with pytest.raises(InvalidInput, match="of a day of 25 hours"):
        Schedule(promise, 1, [1, 26]).in_steps(3600, 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window": 24}, "zone: got Europe/Berlin; expected an offset"),
        ({"steps": 24}, "zone: got Europe/Berlin; expected an offset"),
        ({"per": 24}, "zone: got Europe/Berlin; expected an offset"),
        ({"per": "24h"}, "zone: got Europe/Berlin; expected an offset as +01:00; or per in days"),
        ({"per": "30min"}, "zone: got Europe/Berlin; expected an offset"),
        ({"per": "1d", "zone": "Europe/Atlantis"}, "zone: got Europe/Atlantis"),
        ({"per": "1d", "zone": "../Europe/Berlin"}, "zone: got ../Europe/Berlin"),
        ({"per": "1d", "zone": "right/Europe/Berlin"}, "zone: got right/Europe/Berlin"),
        ({"per": "1d", "zone": "localtime"}, "zone: got localtime"),
        ({"per": "1d", "zone": ""}, "zone: got "),
    ],
)
def test_zones_that_cannot_be_are_refused_in_one_line(given, message):
    with pytest.raises(InvalidInput) as refused:
        SequencePromise(**{"total": 1, "zone": "Europe/Berlin", **given})
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_blocks_and_steps_that_no_calendar_has_are_refused():
    with pytest.raises(InvalidInput, match="at most 366 days"):
        SequencePromise(1, per="400d", zone="Europe/Berlin").in_steps(600, 0)
    placed = SequencePromise(1, per="1d", zone="Europe/Berlin").in_steps(600, 0)
    for t in (2**50, -(2**50)):
        with pytest.raises(InvalidInput, match="years that clocks can show"):
            placed.bounds(np.array([t]))


def test_a_promise_and_its_schedule_are_read_as_they_were_written():
    promise = SequencePromise(2, per="1d", zone="Europe/Berlin")
    placed = promise.in_steps(600, 2_852_640)
    assert SequencePromise.read(placed.written()) == placed != promise.in_steps(600, 2_852_641)
    schedule = Schedule(promise, 1, hours=["08:00", "20:00"])
    assert Schedule.read(schedule.written()) == schedule
    assert schedule.releases == 2
    for other in (
        placed.written().replace("600", "0"),
        placed.written().replace("600", '"600"'),
        placed.written().replace("Berlin", "Atlantis"),
        placed.written().replace('"origin"', '"passed": 0, "origin"'),
    ):
        with pytest.raises(InvalidInput):
            SequencePromise.read(other)
    with pytest.raises(InvalidInput, match="zone: got Europe/Atlantis; expected one of this machine's zone table"):
        SequencePromise.read(placed.written().replace("Berlin", "Atlantis"))


def test_each_step_has_its_share_of_the_longest_ordinary_day():
    promise = SequencePromise(5, per="1d", zone="Europe/Berlin")
    assert promise.each(3600) == Fraction(5, 25) and promise.length(3600) == 24
    begin = day_begins("Europe/Berlin", number_of(date(2024, 10, 26))) // 3600
    every = [(t, promise.each(3600)) for t in range(1, 97)]
    assert promise.in_steps(3600, begin).holds(every)
    assert not promise.in_steps(3600, begin).holds([(t, Fraction(5, 24)) for t in range(1, 97)])


def test_what_holds_is_what_every_day_says():
    """Sums of every day by a walk through the bins; room, reach and refusals agree with them."""
    rng = np.random.default_rng(11)
    seen = set()
    for zone, day in ODD[:9]:
        origin = number_of(day) * 24 - 30
        blocks = np.array(walked(zone, 3600, origin, origin + 72))
        promise = SequencePromise(2, per="1d", zone=zone).in_steps(3600, origin)
        for _ in range(30):
            rows = [(int(t), Fraction(int(rng.integers(1, 5)), 4)) for t in rng.integers(1, 73, 6)]
            sums = {b: sum((e for t, e in rows if blocks[t - 1] == b), Fraction(0)) for b in set(blocks.tolist())}
            holds = max(sums.values()) <= 2
            assert promise.holds(rows) is holds
            seen.add(holds)
            t = int(rng.integers(1, 73))
            low, high = promise.reach(t, t)
            assert set(range(low, min(high, 72) + 1)) == {n for n in range(1, 73) if blocks[n - 1] == blocks[t - 1]}
            assert promise.room(rows, t) == max(0, 2 - sums[blocks[t - 1]])
    assert seen == {True, False}


def test_a_paced_schedule_counts_the_steps_of_its_own_day():
    """In spring a day has fewer of the named steps, in autumn all of them: what is left decides the bar."""
    promise = SequencePromise(4, per="1d", zone="Europe/Berlin")
    for day, length in ((date(2024, 3, 31), 23), (date(2024, 7, 1), 24), (date(2024, 10, 27), 25)):
        begin = day_begins("Europe/Berlin", number_of(day)) // 3600
        schedule = Schedule(promise, 1, range(1, 26), (0.0, 1.0)).in_steps(3600, begin)
        assert [schedule._steps_left(t) for t in range(1, length + 2)] == [
            *range(length, 0, -1),
            schedule._steps_left(length + 1),
        ]
        hours = Schedule(promise, 1, hours=["02:00", "08:00"], spreads=(0.0, 1.0)).in_steps(3600, begin)
        assert hours._steps_left(1) == (1 if length == 23 else 2)


# -- a newer zone table ---------------------------------------------------------------------------------------------


@given(
    stored=st.lists(st.tuples(st.integers(-60, 160), st.integers(1, 40)), max_size=5),
    zone=st.sampled_from(["Europe/Berlin", "Asia/Kathmandu", "America/Sao_Paulo"]),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_blocks_that_are_computed_never_overlap_stored_ones(stored, zone):
    """Whatever is stored: all blocks together follow one another, and the stored ones are among them."""
    kept = []
    for first, length in sorted(stored):
        if not kept or first >= kept[-1][1]:
            kept.append((first, first + length))
    local = LocalDays(zone, 1, 3600, 1).beside(kept)
    t = np.arange(-80, 200)
    begins, ends = local.bounds(t)
    blocks = sorted(set(zip(begins.tolist(), ends.tolist(), strict=True)))
    assert not overlap(blocks) and all(one[1] == other[0] for one, other in pairwise(blocks))
    assert np.all((begins <= t) & (t < ends))
    assert {block for block in kept if block[0] < 200 and block[1] > -80} <= set(blocks)


def test_a_day_that_a_newer_table_begins_inside_a_stored_one_begins_at_its_end(tmp_path):
    """Clocks of the town were those of Berlin, and are an hour back by the newer table."""
    noon = np.array([number_of(date(2024, 5, 6)) * 24 + 13, number_of(date(2024, 5, 7)) * 24 + 13])
    with town_with_the_clocks_of(tmp_path, "Europe/Berlin") as town:
        old = LocalDays(town, 1, 3600, 1)
        stored = old.stored_as(noon[:1].tolist())
        assert len(stored) == 1
    with town_with_the_clocks_of(tmp_path, "Europe/Lisbon") as town:
        new = LocalDays(town, 1, 3600, 1)
        moved = new.stored_as(noon[:1].tolist())
        assert moved == [(stored[0][0] + 1, stored[0][1] + 1)]
        kept = new.beside(stored)
        begins, ends = kept.bounds(np.array([stored[0][0], *noon.tolist()]))
        # The hour between the two tables' midnights is a block of the newer table's day, cut where the stored one ends.
        assert (begins[1], ends[1]) == stored[0] and begins[2] == moved[0][1]
        stub = kept.bounds(np.array([stored[0][1]]))
        assert (int(stub[0][0]), int(stub[1][0])) == (stored[0][1], moved[0][1])


def test_how_far_clocks_are_ahead_is_what_they_show():
    moments = np.array([day_begins("Europe/Berlin", number_of(date(2024, 3, 31))) + 3600 * k for k in range(5)])
    assert seconds_ahead("Europe/Berlin", moments).tolist() == [3600, 3600, 7200, 7200, 7200]
    assert named_zone("Europe/Berlin") is not None and named_zone("+01:00") is None
