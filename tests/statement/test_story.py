"""The five answers about a release.

Could fail: a guarantee of a day that leaves answers out, an error or a baseline of another kind of space, words that
promise what a statement says does not hold.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import msgspec
import numpy as np
import pytest

import dphmm
from dphmm.batch import Batch
from dphmm.samplers.entropy import ReplayBits
from dphmm.statement.release import Merged, Policy, Varied
from dphmm.statement.sentences import PHRASES
from dphmm.statement.story import Found, InLedger, ends_told, first_that_finds, story
from dphmm.states.trajectory import Trajectories
from dphmm.storage.released import Published
from statement.told import statement_of

ONLY_POSSIBLE = (
    "only of states that the model and all earlier answers leave possible: another one is answered as its surrogate, "
    "and may be told from its policy neighbours"
)
#: What no reader of a file can check, without a ledger two things more.
ORIGIN, REPLAYABLE = PHRASES["ORIGIN"], PHRASES["REPLAYABLE"]
NOISE = "only the statement says that the noise came from the operating system; give --ledger to check it"
CAP = "; the cap is the statement's: give --ledger to check it"
STAYERS = Found(1028.0, 2532.0, "m", "day", [(1, 404.0), (7, 136.0)], 2660.0, rows="a file of 4 whole days")


def test_every_figure_has_its_baseline_in_its_line() -> None:
    first, second = STAYERS.lines
    of = "a file of 4 whole days"
    assert first == f"where somebody is: 1,030 m off expected over {of} (2,530 m without the file)"
    rows = replace(STAYERS, what="", rows="", stays=()).lines
    assert rows == ["where somebody is: 1,030 m off expected (2,530 m without the file)"]
    assert second == "who stays at one place: 400 m after 1 day, 140 m after 7 (2,660 m without)"
    assert "off on average" in replace(STAYERS, measured=True).lines[0]
    labels = Found(0.4, 0.9, "", "block", [(1, 0.2), (7, 0.1)], 0.8).lines
    assert labels[1] == "who stays in one state: 0.2 after 1 block, 0.1 after 7 (0.8 without)"


@pytest.fixture
def grid():
    return dphmm.Grid.from_bounds(13.3, 52.5, 13.34, 52.52, "500m")


def released(grid, *, promise=None, schedule=None, people="others", step=3600):
    """The statement of one person's day of releases on a small map, every hour."""
    model = dphmm.MarkovModel.from_geometry(grid, step, "1km/h")
    policy = dphmm.policy.radius(grid, covers=1000)
    bits = ReplayBits(3)
    epsilon = None if schedule is not None or promise is not None else 1
    batch = Batch(model, policy, grid, epsilon, promise=promise, schedule=schedule, bits=bits)
    times = (np.arange(24, dtype=np.int64) * 3600) * 1_000_000
    lat, lon = grid.to_latlon(grid.answers[np.zeros(24, dtype=np.int64)])
    rows = Trajectories(users=("a",), user=np.zeros(24, dtype=np.int32), time=times, lat=lat, lon=lon)
    published = Published()
    for chunk in batch.run(rows):
        published.add(chunk)
    statement = statement_of(
        published, model=model, policy=policy, space=grid, options=batch.setting.options, query="state", answer="last",
        model_people=people, sequence=batch.caps.promise, schedule=batch.setting.schedule,
    )  # fmt: skip
    # As if the bits had been the system's, which no test draws.
    return msgspec.structs.replace(statement, private=True, reasons=[])


def test_a_planned_day_has_both_bounds_and_what_is_found(grid) -> None:
    day = dphmm.SequencePromise(12, per="1d")
    schedule = dphmm.Schedule(day, 2, at=[2, 6, 10, 14, 18, 22])
    told = story(released(grid, promise=day, schedule=schedule), day, schedule, STAYERS)
    rows = told.rows()
    assert [label for label, _ in rows if label != " "] == [
        "published", "guaranteed", "still found", "not protected", "spent",
    ]  # fmt: skip
    assert all(len(line) <= 64 for _, line in rows)
    assert not any(re.match(r"(k?m|%)\b", line) for _, line in rows)
    said = " ".join(line for _, line in rows)
    assert "6 noisy positions of 1 person, at fixed public times, at most 6 a day" in said
    assert "88.1 % sure after the answer of that moment (50 % before)" in said
    assert "equal or joined so at every step: at most 99.9994 % after all 6 of a day" in said
    assert "two states of one step can lose more" in said
    assert "at most 12 of 12 a day for each person; in all at most 12, by the answers of this file" in said
    kept = told.document()
    assert list(kept) == ["published", "guaranteed", "still_found", "not_protected", "spent"]
    assert kept["published"]["answers"] == 6 and kept["published"]["rows"] == 24
    assert kept["guaranteed"]["all_answers"] == {
        "answers": 6, "of": "a day", "epsilon": "12", "sureness": "99.9994 %",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("promise", "schedule", "after"),
    [
        (dphmm.SequencePromise(12, per="1d"), None, "99.9994 % after all 24 of a day"),
        (dphmm.SequencePromise(12, per=24), None, "99.9994 % after all 24 of each 24 steps"),
        (dphmm.SequencePromise(6, window=12), None, "99.8 % after all 12 of any 12 steps"),
        (dphmm.SequencePromise(24, steps=24), None, "more than 99.9999 % after all 24 of 24 steps"),
        # One answer is all of the day.
        (dphmm.SequencePromise(2, per="1d"), [3], None),
        # Less is asked than the promise leaves room for: other queries may ask for the rest.
        (dphmm.SequencePromise(3, per="1d"), [3], "95.3 % after all answers of all queries of a day"),
        (dphmm.SequencePromise(12, per="1d"), [3, 9], "99.9994 % after all answers of all queries of a day"),
    ],
)
def test_the_bound_of_all_answers_counts_all_of_them(grid, promise, schedule, after) -> None:
    planned = None if schedule is None else dphmm.Schedule(promise, 2, at=schedule)
    told = story(released(grid, promise=promise, schedule=planned), promise, planned)
    said = " ".join(told.words("guaranteed"))
    assert ("after all" in said) == (after is not None) and (after or "") in said
    assert told.still_found is None and "still found" not in dict(told.rows())


def test_without_a_promise_nothing_limits_a_day(grid) -> None:
    told = story(released(grid), all_possible=True)
    places, limit, more = told.words("guaranteed")
    assert "at most 73.2 % sure after the answer of that moment" in places and "680" not in places
    assert limit == "no limit for a day: 24 answers about one person in all, each allows 73.2 %"
    assert more == "answers of other moments can tell more about that moment"
    assert told.guaranteed.all_answers is None and told.words("spent") == [
        "epsilon sum 24 of the person with most answers, by the answers of this file, no cap"
    ]
    assert "the cap is 30" in story(released(grid), cap=Fraction(30)).words("spent")[0]


def test_a_guarantee_of_possible_states_says_so(grid) -> None:
    """Not only on request: whoever does not know that the model excludes nothing has the condition."""
    told, all_possible = story(released(grid)), story(released(grid), all_possible=True)
    assert ONLY_POSSIBLE in told.words("guaranteed") and told.guaranteed.only_possible
    assert "moves that the model calls impossible" in told.words("not_protected")[0]
    assert ONLY_POSSIBLE not in all_possible.words("guaranteed") and not all_possible.guaranteed.only_possible
    assert "impossible" not in all_possible.words("not_protected")[0]
    assert ORIGIN not in told.words("guaranteed")
    assert ORIGIN in story(released(grid), as_stated=True).words("guaranteed")


def test_of_a_complete_policy_no_states_are_left_unjoined(grid) -> None:
    statement = msgspec.structs.replace(released(grid), covered_distance=None)
    statement = msgspec.structs.replace(statement, space=msgspec.structs.replace(statement.space, kind="labels"))
    complete = msgspec.structs.replace(statement, policy=msgspec.structs.replace(statement.policy, kind="complete"))
    assert "that the policy does not join" in story(statement).words("not_protected")[0]
    assert "that the policy does not join" not in story(complete).words("not_protected")[0]


def test_of_a_sequence_no_less_is_spent_than_its_rows_hold(grid) -> None:
    """One answer a sequence by the schedule, and 24 in the file: 24 are spent, and not 1."""
    promise = dphmm.SequencePromise(30, steps=100)
    planned = dphmm.Schedule(promise, 1, at=[50])
    statement = released(grid, promise=promise, schedule=planned)
    totals = msgspec.structs.replace(statement.totals, epsilon_sum="24")
    told = story(msgspec.structs.replace(statement, totals=totals), promise, planned)
    assert told.spent.most == "24" and told.words("spent")[0].startswith("at most 24 of 30 in 100 steps")


def with_noise(statement, secure):
    randomness = msgspec.structs.replace(statement.randomness, replayable_rows=0 if secure else 24)
    return msgspec.structs.replace(statement, randomness=randomness)


def test_what_only_the_statement_says_is_told_so_unless_a_ledger_says_it_too(grid) -> None:
    day = dphmm.SequencePromise(12, per="1d")
    schedule = dphmm.Schedule(day, 2, at=[2, 6, 10, 14, 18, 22])
    statement = with_noise(released(grid, promise=day, schedule=schedule), secure=True)
    ledger = InLedger(Fraction(12), Fraction(12), 0, False)
    read = story(statement, day, schedule, STAYERS, as_stated=True)
    checked = story(statement, day, schedule, STAYERS, ledger=ledger, as_stated=True)
    own = story(statement, day, schedule, STAYERS)
    for told, only in ((read, True), (checked, False), (own, False)):
        assert (NOISE in told.words("guaranteed")) == only
        assert told.words("spent")[0].endswith(CAP) == only
        assert ("at most 6 a day for each person (so the statement says)" in told.words("published")[0]) == only


def test_replayable_noise_leaves_no_bound_and_figures_of_those_alone_who_do_not_know_it(grid) -> None:
    statement = msgspec.structs.replace(released(grid), private=False, reasons=["replayable bits"])
    told = story(with_noise(statement, secure=False), found=STAYERS, as_stated=True)
    assert told.guaranteed.one_answer is told.guaranteed.all_answers is told.guaranteed.only_possible is None
    assert told.guaranteed.holds is False and told.words("still_found")[-1] == REPLAYABLE
    assert NOISE not in told.words("guaranteed")
    assert REPLAYABLE not in story(with_noise(released(grid), secure=True), found=STAYERS).words("still_found")


def test_what_does_not_hold_is_not_promised(grid) -> None:
    statement = released(grid)
    against = msgspec.structs.replace(statement, private=False, reasons=["replayable bits"])
    (told,) = story(against).words("guaranteed")
    assert told == "NOT PRIVATE: replayable bits: whoever knows the seed can take the noise away"
    doubtful = msgspec.structs.replace(statement, private="unknown", reasons=["unknown origin"])
    told = story(doubtful).words("guaranteed")[-1]
    assert told.startswith("whether this holds is not known: nothing says whose data the model was made from")


def test_states_without_a_map_have_no_metres(grid) -> None:
    statement = msgspec.structs.replace(released(grid), covered_distance=None)
    statement = msgspec.structs.replace(statement, space=msgspec.structs.replace(statement.space, kind="plain"))
    told = story(statement)
    assert not re.search(r"\bm\b|town|position", " ".join(line for _, line in told.rows()))
    assert told.words("guaranteed")[0].startswith("any two states up to 1420 apart: at most")


def of_policy(statement, policy, kind="plain"):
    """The same statement, of states of another kind and another policy."""
    space = msgspec.structs.replace(statement.space, kind=kind)
    return msgspec.structs.replace(statement, covered_distance=None, space=space, policy=Policy.of(policy))


def test_a_policy_of_distance_names_it_where_no_distance_of_places_is_covered(grid) -> None:
    """True of the policy: of states on a line those it joins are just those so far apart, strictly or not."""
    line = dphmm.StateSpace(np.arange(12))
    statement = released(grid)
    for closed, told in ((True, "up to 3 apart"), (False, "less than 3 apart")):
        policy = dphmm.policy.radius(line, 3, closed)
        assert of_policy(statement, policy).joined == f"any two states {told}"
        apart = np.abs(np.arange(12) - np.arange(12)[:, None])
        joined = [policy.joins(np.full(12, a), np.arange(12)) for a in range(12)]
        assert np.array_equal(joined, apart <= 3 if closed else apart < 3)
        guaranteed = story(of_policy(statement, policy)).guaranteed
        assert guaranteed.covered_distance == {
            "metres": None, "ground_metres": None, "between": "states", "apart": "3", "closed": closed,
        }  # fmt: skip
    third = dphmm.policy.radius(line, Fraction(10, 3))
    assert of_policy(statement, third).joined == "any two states up to 3.33333 apart"
    zones = of_policy(statement, dphmm.policy.radius(line, 3000), "zones")
    assert zones.joined == "any two zones whose centres are up to 3,000 m apart on the map"


def test_no_distance_is_named_that_a_policy_does_not_keep(grid) -> None:
    """Of single steps with other policies, of states that are answered as others, and of policies without one."""
    line, statement = dphmm.StateSpace(np.arange(12)), released(grid)
    plain = of_policy(statement, dphmm.policy.radius(line, 3))
    names = Varied(names=["policy"], chosen=[])
    varied = msgspec.structs.replace(plain, varied=names)
    assert varied.joined == "any two states that the policy of their step joins"
    merged = msgspec.structs.replace(plain.space, merged=Merged(count=1, pairs=None))
    assert msgspec.structs.replace(plain, space=merged).joined == "any two states that the policy joins"
    assert of_policy(statement, dphmm.policy.knn(line, 2)).joined == "any two states that the policy joins"
    labels = of_policy(statement, dphmm.policy.complete(7), "labels")
    assert labels.joined == f"any two of the {statement.space.states} labels"
    assert story(labels).guaranteed.covered_distance is None


def test_figures_of_who_stays_say_of_which_file_they_are() -> None:
    """Of fewer days than seven the file's own come first, and seven are supposed; windows say how long they are."""
    every = [(1, 404.0), (2, 300.0), (3, 250.0), (5, 220.0), (7, 136.0), (10, 120.0)]
    assert ends_told(every, 3, 7) == [(3, 250.0), (7, 136.0)]
    assert ends_told(every, 4, 7) == [(3, 250.0), (7, 136.0)]
    assert ends_told(every, 0, 7) == ends_told(every, 7, 7) == ends_told(every, 9, 7) == [(1, 404.0), (7, 136.0)]
    assert ends_told(every, 10, 7) == ends_told(every, 30, 7) == [(7, 136.0), (10, 120.0)]
    assert ends_told(every[:4], 1, 7) == [(1, 404.0), (5, 220.0)] and ends_told(every[:1], 3, 7) == every[:1]
    assert first_that_finds(every, 210.0) == 5 and first_that_finds(every, 0.0) == first_that_finds(every, 50.0) == 0
    three = replace(STAYERS, stays=ends_told(every, 3, 7), blocks=3, found_after=7)
    said = "250 m after the 3 days of this file, 140 m after 7 such days: its cell is found"
    assert three.lines[1] == f"who stays at one place: {said} (2,660 m without)"
    assert three.document()["stays"]["state_found_after"] == 7 and three.document()["stays"]["in_file"] == 3
    by_plan = replace(STAYERS, found_after=7, by_then=True)
    assert "140 m after 7: its cell is found by then" in by_plan.lines[1]
    assert by_plan.document()["stays"]["state_found_after"] is None
    parts = replace(STAYERS, answers=12)
    assert "400 m after 1 day of 12 answers, 140 m after 7 days of 12 answers" in parts.lines[1]
    window = replace(STAYERS, what="window", seconds=43_200)
    assert "400 m after 1 window (12 hours), 140 m after 7" in window.lines[1]
    sequence = replace(STAYERS, what="sequence", stays=[(1, 404.0)], seconds=432_000)
    assert "400 m after the sequence (5 days)" in sequence.lines[1]


def test_where_nothing_is_published_nothing_is_guaranteed_or_found(grid) -> None:
    """A plan knows figures of an answer; a file without one has none."""
    empty = released(grid)
    none = msgspec.structs.replace(empty, published=msgspec.structs.replace(empty.published, rows=0, subjects=0))
    told = story(none, found=STAYERS)
    rows = dict(told.rows("no plan"))
    assert rows["guaranteed"] == rows["still found"] == "nothing: no answer has been published"
    assert told.guaranteed.one_answer is None and told.guaranteed.all_answers is None
    assert told.document()["still_found"] is None
    assert "%" not in "".join(rows.values()) and "1,030 m" not in "".join(rows.values())
