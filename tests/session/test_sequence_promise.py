"""Sessions, tables and streams under a promise over the sequence.

It could fail where one of the three does not give the promise to the account, gives another one to a subject that
begins at another hour, lets a second query or a later program pass it, spends before it refuses, or where what is
refused depends on true states.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm import SequencePromise
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.release.batch import Batch
from dphmm.release.stream import Stream, parse_line
from zone_tables import town_with_the_clocks_of

POINTS = np.stack(np.divmod(np.arange(9), 3), axis=1)
NEAR = np.abs(POINTS[:, None] - POINTS).max(axis=2) <= 1
SPACE = dphmm.StateSpace(POINTS)
POLICY = dphmm.policy.radius(SPACE, 1)
MOVES = NEAR / NEAR.sum(axis=1, keepdims=True)
UNTIMED = (dphmm.MarkovModel(np.full(9, 1 / 9), MOVES), POLICY, SPACE)
HOURLY = (dphmm.MarkovModel(np.full(9, 1 / 9), MOVES, step=3600), POLICY, SPACE)


def session(ledger, promise=None, epsilon=1, seed=1, parts=UNTIMED, **given):
    given = {"subject": "ann", "bits": dphmm.ReplayBits(seed), **given}
    return dphmm.ReleaseSession(*parts, epsilon, ledger=ledger, promise=promise, **given)


@pytest.mark.parametrize("constraint", ["support", "delta=0.1"])
def test_a_session_is_held_to_its_promise(constraint):
    ledger = MemoryLedger()
    one = session(ledger, SequencePromise(2, window=3), constraint=constraint)
    one.release(0)
    one.release(1)
    before = (ledger.entries("ann", "state"), ledger.spent("ann"))
    with pytest.raises(BudgetExceeded, match=r"promise: step 3 .* requested 1; 0 is left there of 2 in any 3 steps"):
        one.release(2)
    assert before == (ledger.entries("ann", "state"), ledger.spent("ann"))
    one.skip()
    assert one.release(4).t == 4


def test_without_an_epsilon_every_step_has_its_share():
    for promise, share in (
        (SequencePromise(3, steps=6), Fraction(1, 2)),
        (SequencePromise(3, window=4), Fraction(3, 4)),
        (SequencePromise(12, per="1d"), Fraction(1, 2)),
    ):
        one = session(MemoryLedger(), promise, None, parts=HOURLY, origin="0")
        released = [one.release(0).epsilon for _ in range(4)]
        assert released == [share] * 4
    with pytest.raises(InvalidInput, match="epsilon: got None"):
        session(MemoryLedger(), None, None)
    with pytest.raises(InvalidInput, match="promise: got int"):
        session(MemoryLedger(), 3)


def test_a_second_query_and_a_resumed_session_share_it():
    ledger = MemoryLedger()
    session(ledger, SequencePromise(3, steps=9)).release(0)
    work = session(ledger, query="work", seed=2)
    work.release(0)
    resumed = dphmm.ReleaseSession.resume(ledger, "ann", *UNTIMED, bits=dphmm.ReplayBits(3))
    resumed.release(0)
    for late in (work, resumed):
        with pytest.raises(BudgetExceeded, match="promise: step"):
            late.release(1)
    with pytest.raises(InvalidInput, match="which was promised to"):
        session(ledger, SequencePromise(4, steps=9), query="third").release(0)


def test_blocks_of_a_day_begin_at_midnight_whenever_a_subject_begins():
    """Three answers a day at epsilon 1: the first day of someone who begins at 22:00 has two steps."""
    ledger = MemoryLedger()
    one = session(ledger, SequencePromise(3, per="1d"), parts=HOURLY, origin=str(20_000 * 24 + 22))
    for _ in range(2 + 3):
        one.release(0)
    with pytest.raises(BudgetExceeded, match="promise: step 6"):
        one.release(0)
    one.skip(24 - 3)
    assert one.release(0).t == 2 + 24 + 1
    assert ledger.caps("ann").promise == SequencePromise(3, per=24, passed=22)
    with pytest.raises(InvalidInput, match="origin: got nothing"):
        session(MemoryLedger(), SequencePromise(3, per="1d"), parts=HOURLY).release(0)
    with pytest.raises(InvalidInput, match="per: got 1d"):
        session(MemoryLedger(), SequencePromise(3, per="1d"), origin="0").release(0)


def table(hours, users="a"):
    rows = [
        (user, pd.Timestamp("2024-05-06T20:30Z") + pd.Timedelta(hours=hour), "4") for user in users for hour in hours
    ]
    return pd.DataFrame(rows, columns=["user", "t", "state"])


@pytest.mark.parametrize("constraint", ["support", "delta=0.1"])
def test_a_table_that_breaks_it_is_refused_before_anything_is_drawn(constraint):
    ledger = MemoryLedger()
    given = {
        "ledger": ledger, "bits": dphmm.ReplayBits(1), "progress": False, "constraint": constraint,
        "promise": SequencePromise(3, per="1d"),
    }  # fmt: skip
    rows = pd.concat([table([0, 1, 2, 4, 5, 6], "a"), table([0, 4, 5, 6, 7], "b")])
    with pytest.raises(
        BudgetExceeded, match=r'promise: step 8 of query "state" for subject "b" requested 1; 0 is left'
    ):
        dphmm.release_many(rows, *HOURLY, 1, **given)
    assert ledger.sessions() == []
    released = dphmm.release_many(rows[rows.t < "2024-05-07T03:00Z"], *HOURLY, 1, **given)
    assert len(released) == 10
    assert ledger.caps("a").promise == SequencePromise(3, per=24, passed=20) == ledger.caps("b").promise
    spent = ledger.spent("b")
    with pytest.raises(BudgetExceeded, match=r"promise: step 8"):
        dphmm.release_many(rows, *HOURLY, 1, resume=True, **given)
    # A caller that names no promise is held to it too.
    del given["promise"]
    with pytest.raises(BudgetExceeded, match=r"promise: step 8"):
        dphmm.release_many(rows, *HOURLY, 1, resume=True, **given)
    assert ledger.spent("b") == spent


def test_a_table_that_names_no_promise_is_refused_before_anything_is_drawn_too(monkeypatch):
    """Not when the transaction comes that breaks what the account has: the ones before it would be paid for."""
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 1)
    ledger, promise = MemoryLedger(), SequencePromise(3, window=4)
    given = {"ledger": ledger, "bits": dphmm.ReplayBits(1), "progress": False}
    dphmm.release_many(table([0]), *HOURLY, 1, query="other", promise=promise, **given)
    before = ledger.spent("a")
    with pytest.raises(BudgetExceeded, match="promise: step 3 of query"):
        dphmm.release_many(table(range(5)), *HOURLY, 1, **given)
    assert ledger.spent("a") == before and ledger.entries("a", "state") == []
    assert len(dphmm.release_many(table(range(2)), *HOURLY, 1, **given)) == 2


def test_a_table_with_another_promise_than_one_account_is_refused_before_its_first_row(monkeypatch):
    """The account is of the last subject, and every row has a transaction of its own."""
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 1)
    ledger = MemoryLedger()
    given = {"ledger": ledger, "bits": dphmm.ReplayBits(1), "progress": False}
    rows = table([0, 1], "abc")
    dphmm.release_many(rows[rows.user == "c"], *HOURLY, 1, promise=SequencePromise(5, window=9), **given)
    before = [(key, ledger.entries(*key)) for key in ledger.sessions()]
    for caps in ({"promise": SequencePromise(6, window=9)}, {"promise": SequencePromise(5, per="1d")}):
        with pytest.raises(InvalidInput, match=r'promise: got .* expected 5 in any 9 steps, which was promised to "c"'):
            dphmm.release_many(rows, *HOURLY, 1, resume=True, **caps, **given)
    assert [(key, ledger.entries(*key)) for key in ledger.sessions()] == before


def test_a_table_without_an_epsilon_releases_every_step():
    released = dphmm.release_many(
        table(range(30)), *HOURLY, promise=SequencePromise(12, per="1d"), bits=dphmm.ReplayBits(1), progress=False
    )
    assert len(released) == 30 and set(released.epsilon) == {0.5}


def test_a_stream_is_held_to_it():
    stream = Stream(
        Batch(*HOURLY, 1, ledger=MemoryLedger(), bits=dphmm.ReplayBits(1), promise=SequencePromise(2, window=5)), False
    )

    def take(hour):
        line = json.dumps({"user": "a", "t": f"2024-05-06T{hour:02d}:30:00Z", "state": "4"})
        return [released.release.t for released in stream.take(parse_line(line.encode(), False))]

    assert [take(1), take(2), take(3)] == [[], [1], [2]]
    with pytest.raises(BudgetExceeded, match="promise: step 3"):
        take(4)


def test_what_is_refused_does_not_depend_on_true_states():
    """Random hours, epsilons and promises with three truths each: the same rows are stored, in the same words."""
    refusals = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        kind = ["steps", "window", "per"][seed % 3]
        promise = SequencePromise(int(random.integers(1, 5)), **{kind: int(random.integers(2, 7))})
        hours = np.flatnonzero(random.random(14) < 0.6).tolist()
        told = []
        for truth in range(3):
            ledger, said = MemoryLedger(), []
            one = session(ledger, promise, seed=seed)
            for hour in range(hours[-1] + 1 if hours else 0):
                try:
                    if hour in hours:
                        one.release(int((hour * (truth + 1) + truth) % 9))
                    else:
                        one.skip()
                except BudgetExceeded as error:
                    said.append((hour, str(error)))
                    one.skip()
            entries = ledger.entries("ann", "state")
            told.append((said, [(e.t, e.kind, e.epsilon, e.plan_hash) for e in entries], ledger.spent("ann")))
        assert told[0] == told[1] == told[2]
        refusals += len(told[0][0])
    assert refusals > 50


def test_neighbouring_paths_lose_at_most_the_total_through_a_session():
    """Released z of real sessions, weighed by their plans: paths that differ within a window lose at most its total."""
    promise = SequencePromise(2, window=3)
    edges = POLICY.edges().tolist()
    worst = 0.0
    for seed in range(10):
        random = np.random.default_rng(seed)
        one = session(MemoryLedger(), promise, [1, "0.5"][seed % 2], seed)
        losses = []
        for _ in range(8):
            try:
                released = one.release(int(random.integers(9)))
                plan = one._setting.planner.plan(np.ones(9, bool), np.ones(9, bool))
                logs = plan.log_likelihood(released.z_lattice)
                losses.append(max(abs(logs[a] - logs[b]) for a, b in edges))
            except BudgetExceeded:
                one.skip()
                losses.append(0.0)
        worst = max(worst, *(sum(losses[first : first + 3]) for first in range(6)))
    assert 1.9 < worst <= 2 + 1e-9


# -- days by the clock ------------------------------------------------------------------------------------------------

#: The hour since 1970 at which October 26th, 2024, begins in Berlin; the 27th has 25 hours.
OCTOBER = int(pd.Timestamp("2024-10-25T22:00Z").timestamp()) // 3600
BERLIN = ZoneInfo("Europe/Berlin")


def dates_of(ledger, query="state"):
    """How much was spent on each local date."""
    spent = Counter()
    for entry in ledger.entries("ann", query):
        moment = datetime.fromtimestamp((OCTOBER + entry.t - 1) * 3600, BERLIN)
        spent[moment.date()] += entry.epsilon or 0
    return spent


@pytest.mark.parametrize("constraint", ["support", "delta=0.1"])
@pytest.mark.parametrize("spreads", [(), (0.0,)], ids=["planned", "paced"])
def test_a_schedule_keeps_the_promise_of_every_local_day(spreads, constraint):
    """Three days, one of 25 hours: each asked as often as it may be, and no more, at any of its hours."""
    promise = SequencePromise(2, per="1d", zone="Europe/Berlin")
    schedule = dphmm.accounting.Schedule(promise, 1, [2, 25] if not spreads else range(1, 26), spreads)
    ledger = MemoryLedger()
    one = session(ledger, None, None, parts=HOURLY, schedule=schedule, origin=str(OCTOBER), constraint=constraint)
    for hour in range(73):
        one.release(hour % 9)
    # A planned step of the 25th hour is there once.
    assert list(dates_of(ledger).values()) == ([1, 2, 1] if not spreads else [2, 2, 2])
    assert len(ledger.blocks("ann")) == 3
    # A second query has what the first has left.
    two = session(ledger, promise, 1, parts=HOURLY, query="work", origin=str(OCTOBER), seed=2)
    if constraint == "support":
        if spreads:
            with pytest.raises(BudgetExceeded, match="0 is left there of 2 per 1d by the clock of Europe/Berlin"):
                two.release(0)
        else:
            two.release(0)
            with pytest.raises(BudgetExceeded, match="0 is left there"):
                two.release(0)


def test_a_session_goes_on_with_the_days_that_were_stored(tmp_path):
    """Clocks are an hour back by a newer zone table: the second step of the day that has begun is where it was."""
    schedule = None
    with dphmm.open_ledger(tmp_path / "ledger.db") as ledger:
        with town_with_the_clocks_of(tmp_path, "Europe/Berlin") as town:
            schedule = dphmm.accounting.Schedule(SequencePromise(2, per="1d", zone=town), 1, [2, 4])
            one = session(ledger, None, None, parts=HOURLY, schedule=schedule, origin=str(OCTOBER))
            assert [one.release(0).asked for _ in range(2)] == [False, True]
            stored = ledger.blocks("ann")
        with town_with_the_clocks_of(tmp_path, "Europe/Lisbon"):
            again = dphmm.ReleaseSession.resume(ledger, "ann", *HOURLY, bits=dphmm.ReplayBits(2))
            asked = [again.t for _ in range(26) if again.release(0).asked]
            # The 24 hours of the stored day, one hour until the newer table's midnight, and its day from step 26 on.
            assert [t - 1 for t in asked] == [4, 27]
            assert ledger.blocks("ann")[0] == stored[0]
            ledger.check()


def test_a_table_and_a_stream_are_held_to_local_days():
    promise = SequencePromise(2, per="1d", zone="Europe/Berlin")
    times = pd.Timestamp("2024-10-26T22:00Z") + pd.to_timedelta([0, 24, 25], unit="h")
    table = pd.DataFrame({"user": "ann", "t": times, "state": ["1", "2", "3"]})
    given = {"promise": promise, "bits": dphmm.ReplayBits(1), "progress": False}
    assert len(dphmm.release_many(table, *HOURLY, 1, ledger=MemoryLedger(), **given)) == 3
    # The first two rows are of one day in Berlin; by UTC the last two would be.
    given["promise"] = SequencePromise("1.5", per="1d", zone="Europe/Berlin")
    with pytest.raises(BudgetExceeded, match=r"promise: step 25 .* 0\.5 is left there"):
        dphmm.release_many(table, *HOURLY, 1, ledger=MemoryLedger(), **given)
    stream = Stream(Batch(*HOURLY, 1, ledger=MemoryLedger(), bits=dphmm.ReplayBits(1), promise=promise), False)
    lines = [{"user": "a", "t": time.isoformat(), "state": "4"} for time in times]
    taken = [len(list(stream.take(parse_line(json.dumps(line).encode(), False)))) for line in lines]
    assert taken == [0, 1, 1] and len(list(stream.end())) == 1
    assert len(stream.batch.ledger.blocks("a")) == 2
