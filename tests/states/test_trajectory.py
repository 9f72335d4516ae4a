"""Which times a release publishes: time bins of steps that are bins, and never those of rows that were only counted."""

from __future__ import annotations

import math
import re
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.states import Counts, Trajectories
from dphmm.states.trajectory import _DTYPES, MICROSECONDS, public_times

SECOND = 1_000_000


def make(user, seconds=None, **columns):
    if seconds is not None:
        columns["time"] = (np.asarray(seconds) * SECOND).astype(np.int64)
    return Trajectories.from_labels(user, **columns)


rows = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-50, 50)), max_size=30)


def test_columns_are_checked():
    with pytest.raises(InvalidInput, match="lat"):
        Trajectories(("a",), np.zeros(2, np.int32), lat=np.zeros(2))
    with pytest.raises(InvalidInput, match="3 rows"):
        Trajectories(("a",), np.zeros(2, np.int32), step=np.zeros(3, np.int64))
    with pytest.raises(InvalidInput, match="users"):
        Trajectories(("a",), np.array([0, 1]))
    with pytest.raises(InvalidInput, match="twice"):
        Trajectories(("a", "a"), np.array([0, 1]))
    with pytest.raises(InvalidInput, match="integers"):
        Trajectories(("a",), np.array([0]), step=np.array([0.5]))
    with pytest.raises(InvalidInput, match="int32"):
        Trajectories(("a",), np.array([0]), trip=np.array([2**40]))
    with pytest.raises(InvalidInput, match="shape"):
        Trajectories(("a",), np.zeros((1, 1), int))
    with pytest.raises(InvalidInput, match="numbers"):
        Trajectories(("a",), np.array([0]), lat=np.array(["x"]), lon=np.array([0.0]))


def test_what_is_given_stays_the_callers_and_rows_cannot_be_written():
    step = np.arange(2)
    found = make("ab", step=step)
    assert step.flags.writeable
    with pytest.raises(ValueError):
        found.step[0] = 7


def test_nothing_private_in_the_repr():
    found = make(["CANARY_7f3a"], [1], lat=[39.123456], lon=[116.654321], state=np.array(["CANARY_9b"], object))
    assert repr(found) == "Trajectories(rows=1, users=1, columns=user, time, lat, lon, state)"


@settings(max_examples=60)
@given(rows)
def test_sorting_is_stable_by_user_and_time(given_rows):
    found = make([u for u, _ in given_rows], [t for _, t in given_rows], step=np.arange(len(given_rows)))
    expected = sorted(range(len(given_rows)), key=lambda i: (found.users.index(given_rows[i][0]), given_rows[i][1]))
    ordered, counts = found.sort()
    assert ordered.step.tolist() == expected
    early = 0
    last = {}
    for user, t in given_rows:
        early += t < last.get(user, -math.inf)
        last[user] = t
    assert counts["out_of_order"] == early and counts.total == early


def test_sorting_falls_back_to_steps_and_leaves_sorted_rows_alone():
    assert make("aba", step=[2, 5, 1]).sort()[0].step.tolist() == [1, 2, 5]
    found = make("aab", [1, 2, 0])
    assert found.sort()[0] is found


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from([0.0, -0.0, 1.5, math.nan]), st.sampled_from("xy")),
        max_size=12,
    )
)
def test_exact_duplicates_are_dropped_and_the_first_stays(given_rows):
    users, lat, labels = (list(column) for column in zip(*given_rows, strict=True)) if given_rows else ([], [], [])
    found = make(
        users,
        lat=np.array(lat, float),
        lon=np.zeros(len(lat)),
        state=np.array(labels, object),
        step=np.arange(len(lat)),
    )
    found = Trajectories(found.users, found.user, lat=found.lat, lon=found.lon, state=found.state)
    kept, counts = found.drop_duplicates()
    seen, expected = set(), []
    for i, (user, value, label) in enumerate(given_rows):
        key = (user, "nan" if math.isnan(value) else value + 0.0, label)
        if key not in seen:
            expected.append(i)
        seen.add(key)
    assert kept.user.tolist() == found.user[expected].tolist()
    assert np.array_equal(kept.lat, found.lat[expected], equal_nan=True)
    assert counts == Counts({"duplicate": len(given_rows) - len(expected)})


@settings(max_examples=80)
@given(rows, st.integers(1, 20), st.sampled_from(["last", "first"]))
def test_resampling_agrees_with_a_dict(given_rows, width, answer):
    found = make([u for u, _ in given_rows], [t for _, t in given_rows], trip=np.arange(len(given_rows)))
    bins = {}
    for i in sorted(range(len(given_rows)), key=lambda i: given_rows[i][1]):
        user, t = given_rows[i]
        place = found.users.index(user), t // width
        if answer == "last" or place not in bins:
            bins[place] = i
    kept, counts = found.resample(width, answer)
    assert list(zip(kept.user.tolist(), kept.step.tolist(), kept.trip.tolist(), strict=True)) == [
        (user, step, row) for (user, step), row in sorted(bins.items())
    ]
    assert counts["same_step"] == len(given_rows) - len(bins)


def test_bins_are_anchored_at_the_epoch_and_go_below_it():
    kept, _ = make("aaaa", [-1, 0, 299, 300]).resample(300)
    assert kept.step.tolist() == [-1, 0, 1] and kept.time.tolist() == [-SECOND, 299 * SECOND, 300 * SECOND]


@pytest.mark.parametrize("step", [0, -1, True, "x", math.nan, 1e-9])
def test_bad_steps_are_refused(step):
    with pytest.raises(InvalidInput, match="step"):
        make("a", [1]).resample(step)


def test_times_and_places_are_asked_for_where_they_are_needed():
    with pytest.raises(InvalidInput, match="time"):
        make("a", step=[1]).resample(5)
    with pytest.raises(InvalidInput, match="lat"):
        make("a", [1]).drop_faster_than(40)
    with pytest.raises(InvalidInput, match="max speed"):
        make("a", [1], lat=[0.0], lon=[0.0]).drop_faster_than(0)


def keep_plainly(found, limit):
    """The speed filter with the spherical law of cosines, point after point."""
    kept, last = [], {}
    for i in range(len(found)):
        here = (math.radians(found.lat[i]), math.radians(found.lon[i]), found.time[i] / SECOND)
        if found.user[i] in last:
            there = last[found.user[i]]
            cosine = math.sin(here[0]) * math.sin(there[0]) + math.cos(here[0]) * math.cos(there[0]) * math.cos(
                here[1] - there[1]
            )
            if 6_371_000.8 * math.acos(max(-1, min(1, cosine))) > limit * (here[2] - there[2]):
                continue
        kept.append(i)
        last[found.user[i]] = here
    return kept


def test_the_speed_filter_agrees_with_a_plain_loop():
    rng = np.random.default_rng(8)
    n = 600
    users = np.sort(rng.choice(list("abc"), n))
    seconds = rng.integers(0, 40_000, n)
    lat, lon = 39.9 + rng.normal(0, 0.05, n), 179.99 + rng.normal(0, 0.05, n)
    found = make(users, seconds, lat=lat, lon=np.where(lon > 180, lon - 360, lon)).sort()[0]
    kept, counts = found.drop_faster_than(30)
    expected = keep_plainly(found, 30)
    assert kept.time.tolist() == found.time[expected].tolist()
    assert counts["too_fast"] == n - len(expected) > 50


def test_counts_are_small_frozen_mappings():
    counts = Counts({"b": 2, "a": 0}) + Counts({"a": 1, "b": 1})
    assert dict(counts) == {"a": 1, "b": 3} and counts.total == 4 and counts["c"] == 0
    assert counts == {"b": 3, "a": 1} and hash(counts) == hash(Counts({"a": 1, "b": 3}))
    assert "c" not in counts and len(Counts()) == 0 and not Counts({"x": 0})
    with pytest.raises(TypeError):
        counts["a"] = 5


def test_an_empty_set_of_trajectories_works():
    empty = make([], np.empty(0), lat=np.empty(0), lon=np.empty(0))
    for operation in (empty.sort, empty.drop_duplicates, lambda: empty.resample(60)):
        assert len(operation()[0]) == 0
    assert empty.visits()[0] == [] and empty.sequences(np.empty(0, int)).sequences == []


def test_every_column_has_a_type():
    assert [field.name for field in fields(Trajectories)] == ["users", *_DTYPES, "counted"]


NAMES = np.array(["a", "b"], dtype=object)


def rows(step):
    owners = np.zeros(len(step), dtype=np.int32)
    return Trajectories(users=("u",), user=owners, step=np.array(step), state=NAMES)


def test_steps_of_a_timed_model_are_bins_since_1970():
    bins = [5_600_000, 5_600_001]
    np.testing.assert_array_equal(public_times(rows(bins), 300), np.array(bins) * 300 * MICROSECONDS)
    assert public_times(rows([0, 1]), None) is None


@pytest.mark.parametrize("step", [[0, 5_600_000], [105_119, 5_600_000]])
def test_rows_that_were_only_counted_are_refused(step):
    """105,120 bins of five minutes are the year 1970."""
    with pytest.raises(InvalidInput, match=re.escape("make times in 1970; expected times (dphmm import csv with")):
        public_times(rows(step), 300)
    public_times(rows([105_120, 5_600_000]), 300)
