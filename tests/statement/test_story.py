"""The five answers about a release.

Could fail: a guarantee of a day that leaves answers out, an error or a baseline of another kind of space, words that
promise what a statement says does not hold.
"""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec
import numpy as np
import pytest

import dphmm
from dphmm.release.batch import Batch
from dphmm.samplers.entropy import ReplayBits
from dphmm.statement.release import MergedStates, Policy, Varied
from dphmm.statement.sentences import PHRASES
from dphmm.statement.story import ANSWERS, InLedger, story
from dphmm.statement.verdict import ReaderFindings, Stay
from dphmm.states.trajectory import Trajectories
from dphmm.storage.released import FileSums
from statement.told import statement_of

ONLY_POSSIBLE = "only of places that the model and all earlier answers leave possible"
REPLAYABLE = PHRASES["REPLAYABLE"]
STAYERS = ReaderFindings(
    1028.0, 2532.0, "m", stays=[Stay(1, 6.0, 404.0, 150.0)], stays_without=2660.0, block="day", blocks=1, known=130.0
)


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
    published = FileSums()
    for chunk in batch.run(rows):
        published.add(chunk)
    statement = statement_of(
        published, model=model, policy=policy, space=grid, options=batch.setting.options, query="state", answer="last",
        model_people=people, caps=batch.caps, schedule=batch.setting.schedule,
    )  # fmt: skip
    # As if the bits had been the system's, which no test draws.
    return with_noise(msgspec.structs.replace(statement, private=True, reasons=[]), secure=True)


def test_a_planned_day_has_both_bounds_and_what_is_found(grid) -> None:
    day = dphmm.SequencePromise(12, per="1d")
    schedule = dphmm.accounting.Schedule(day, 2, at=[2, 6, 10, 14, 18, 22])
    told = story(released(grid, promise=day, schedule=schedule), day, schedule, STAYERS)
    rows = told.rows()
    assert [label for label, _ in rows if label != " "] == [
        "verdict", "published", "found", "guaranteed", "spent", "not protected",
    ]  # fmt: skip
    assert all(len(line) <= 64 for _, line in rows)
    assert not any(re.match(r"(k?m|%)\b", line) for _, line in rows)
    said = " ".join(line for _, line in rows)
    assert "6 noisy positions of 1 person, at fixed public times" in said
    assert "seem equally likely, one answer leaves at least 1 in 9 doubt" in said
    assert "all six answers of a day: no useful limit" in said
    assert "at most 12 of 12 a day for each person, by this file" in said
    kept = told.document()
    assert list(kept) == ["verdict", *ANSWERS]
    assert kept["published"]["answers"] == 6 and kept["published"]["rows"] == 24
    assert kept["guaranteed"]["block"] == {"answers": 6, "of": "a day", "epsilon": "12", "doubt": None}


def test_the_headline_comes_first_and_is_that_of_the_figures(grid) -> None:
    day = dphmm.SequencePromise(12, per="1d")
    statement = released(grid, promise=day)
    found = story(statement, day, found=STAYERS)
    assert found.rows()[0] == ("verdict", "A place that somebody returns to is found.")
    assert found.verdict.rules == ["returns", "blurs"]
    assert story(released(grid), found=STAYERS).verdict.rules == ["unlimited", "returns", "blurs"]
    assert story(statement, day, missing="no policy").words("verdict") == [
        "What a reader finds is not known here: no policy."
    ]


@pytest.mark.parametrize(
    ("promise", "schedule", "after"),
    [
        (dphmm.SequencePromise(12, per="1d"), None, "all 24 answers of a day: no useful limit"),
        (dphmm.SequencePromise(12, per=24), None, "all 24 answers of each 24 steps: no useful limit"),
        (dphmm.SequencePromise(6, window=12), None, "all twelve answers of any 12 steps: at least 1 in 405 doubt"),
        (dphmm.SequencePromise(24, steps=24), None, "all 24 answers of 24 steps: no useful limit"),
        # One answer is all of the day.
        (dphmm.SequencePromise(2, per="1d"), [3], None),
        # Less is asked than the promise leaves room for: other queries may ask for the rest.
        (dphmm.SequencePromise(3, per="1d"), [3], "all answers of a day: at least 1 in 22 doubt"),
        (dphmm.SequencePromise(12, per="1d"), [3, 9], "all answers of a day: no useful limit"),
    ],
)
def test_the_bound_of_all_answers_counts_all_of_them(grid, promise, schedule, after) -> None:
    planned = None if schedule is None else dphmm.accounting.Schedule(promise, 2, at=schedule)
    told = story(released(grid, promise=promise, schedule=planned), promise, planned)
    said = " ".join(told.words("guaranteed"))
    assert ("answers of" in said) == (after is not None) and (after or "") in said
    assert "between two ways that look alike" in said if " in " in (after or "") else True
    assert told.found is None and "found" not in dict(told.rows())


def test_without_a_promise_nothing_limits_the_sum(grid) -> None:
    told = story(released(grid), all_possible=True)
    assert told.words("guaranteed")[1:] == ["the whole file: no useful limit"]
    assert "one answer leaves at least 1 in 4 doubt" in told.words("guaranteed")[0]
    assert told.guaranteed.block is None
    assert told.words("spent") == [
        "epsilon 24 so far, for the person with most answers (by this file); no limit is set"
    ]
    capped = with_cap(released(grid), "30")
    assert story(capped).words("spent")[0].endswith("; the limit is 30")
    assert "unlimited" in told.verdict.rules and "unlimited" not in story(capped).verdict.rules


def with_cap(statement, cap):
    totals = msgspec.structs.replace(statement.totals, cap=cap, limited=True)
    return msgspec.structs.replace(statement, totals=totals)


def test_a_guarantee_of_possible_states_says_so(grid) -> None:
    """Not only on request: whoever does not know that the model excludes nothing has the condition."""
    told, all_possible = story(released(grid)), story(released(grid), all_possible=True)
    assert ONLY_POSSIBLE in told.words("guaranteed") and told.guaranteed.only_possible
    assert "moves that the model calls impossible" in told.words("not_protected")[0]
    assert ONLY_POSSIBLE not in all_possible.words("guaranteed") and not all_possible.guaranteed.only_possible
    assert "impossible" not in all_possible.words("not_protected")[0]


def test_of_a_complete_policy_no_states_are_left_unjoined(grid) -> None:
    statement = msgspec.structs.replace(released(grid), covered_distance=None)
    statement = msgspec.structs.replace(statement, space=msgspec.structs.replace(statement.space, kind="labels"))
    complete = msgspec.structs.replace(statement, policy=msgspec.structs.replace(statement.policy, kind="complete"))
    assert "that the policy does not join" in story(statement).words("not_protected")[0]
    assert "that the policy does not join" not in story(complete).words("not_protected")[0]


def test_of_a_sequence_no_less_is_spent_than_its_rows_hold(grid) -> None:
    """One answer a sequence by the schedule, and 24 in the file: 24 are spent, and not 1."""
    promise = dphmm.SequencePromise(30, steps=100)
    planned = dphmm.accounting.Schedule(promise, 1, at=[50])
    statement = released(grid, promise=promise, schedule=planned)
    totals = msgspec.structs.replace(statement.totals, epsilon_sum="24")
    told = story(msgspec.structs.replace(statement, totals=totals), promise, planned)
    assert told.spent.most == "24" and told.words("spent")[0].startswith("at most 24 of 30 in 100 steps")


def with_noise(statement, secure):
    randomness = msgspec.structs.replace(statement.randomness, replayable_rows=0 if secure else 24)
    return msgspec.structs.replace(statement, randomness=randomness)


def test_what_only_the_statement_says_is_not_checked_unless_a_ledger_says_it_too(grid) -> None:
    day = dphmm.SequencePromise(12, per="1d")
    schedule = dphmm.accounting.Schedule(day, 2, at=[2, 6, 10, 14, 18, 22])
    statement = with_noise(released(grid, promise=day, schedule=schedule), secure=True)
    ledger = InLedger(Fraction(12), Fraction(12), 0, False)
    read = story(statement, day, schedule, STAYERS, as_stated=True)
    checked = story(statement, day, schedule, STAYERS, ledger=ledger, as_stated=True)
    unconfirmed = story(statement, day, schedule, STAYERS, confirmed=False, as_stated=True)
    origin, limit = "the model's origin: only its file says it", "the limit, and that the noise came from"
    assert read.words("not_checked")[0] == origin and read.words("not_checked")[1].startswith(limit)
    assert checked.words("not_checked") == [origin]
    assert unconfirmed.words("not_checked")[0].startswith("the policy, and with it every limit")
    assert unconfirmed.guaranteed.block is None and unconfirmed.spent.total is None
    assert story(statement, day, schedule, STAYERS).words("not_checked") == []


def test_replayable_noise_is_the_headline_and_leaves_no_bound(grid) -> None:
    statement = msgspec.structs.replace(released(grid), private=False, reasons=["replayable bits"])
    told = story(with_noise(statement, secure=False), found=STAYERS, as_stated=True)
    assert told.words("verdict")[0] == "Not private: made with a known seed."
    assert told.guaranteed.one_answer is told.guaranteed.block is told.guaranteed.file is None
    assert told.guaranteed.holds is False and told.words("found")[-1] == REPLAYABLE
    assert REPLAYABLE not in story(with_noise(released(grid), secure=True), found=STAYERS).words("found")


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
    assert told.words("guaranteed")[0].startswith(
        "if two states up to 1420 apart seem equally likely, one answer leaves"
    )


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
    merged = msgspec.structs.replace(plain.space, merged=MergedStates(count=1, pairs=None))
    assert msgspec.structs.replace(plain, space=merged).joined == "any two states that the policy joins"
    assert of_policy(statement, dphmm.policy.knn(line, 2)).joined == "any two states that the policy joins"
    labels = of_policy(statement, dphmm.policy.complete(7), "labels")
    assert labels.joined == f"any two of the {statement.space.states} labels"
    assert story(labels).guaranteed.covered_distance is None


def test_where_nothing_is_published_nothing_is_guaranteed_or_found(grid) -> None:
    """A plan knows figures of an answer; a file without one has none."""
    empty = with_cap(released(grid), "30")
    none = msgspec.structs.replace(empty, published=msgspec.structs.replace(empty.published, rows=0, subjects=0))
    told = story(none, found=STAYERS)
    rows = dict(told.rows())
    assert rows["verdict"] == "No answer has been published." and "guaranteed" not in rows and "found" not in rows
    assert told.guaranteed.one_answer is None and told.guaranteed.block is None
    assert told.document()["found"] is None
    assert "1,030 m" not in "".join(rows.values())
