"""An answer belongs to a moment: at most one for each person, query and moment, ever, by any door.

Claims: whatever is delivered again, late, twice, in another order, from another file or under another state, a moment
that has an answer keeps it, a moment that was passed over has none, and no step ever stands for another moment. Rows
without any mark are continued only by themselves and later ones. What fails if rows are numbered within a run, if the
key of an answer had the state in it, or if late were decided by the rows of one run.

All pairs of deliveries of at most three of three moments are tried, for every clock and door.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.moments import (
    NO_MOMENT,
    ORDER,
    ROWS,
    TIMES,
    Prefix,
    added_moments,
    first_number,
    has_moments,
    steps_of,
)
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.release.batch import Batch
from dphmm.release.stream import BadLine, Stream, parse_line
from dphmm.states.trajectory import Trajectories
from dphmm.storage.ledger import open_ledger

N = 9
STEP = 300
PAGES = dphmm.StateSpace(np.arange(N)[:, None])
ALIKE = np.full((N, N), 1 / N)
PLAIN, TIMED = dphmm.MarkovModel(ALIKE[0], ALIKE), dphmm.MarkovModel(ALIKE[0], ALIKE, step=STEP)
POLICY = dphmm.policy.complete(N)
DAY = int(pd.Timestamp("2024-05-06T08:00:00Z").timestamp())
#: So little noise that an answer is the state: another answer about a moment is seen.
CLEAR = 200
MOMENTS = (1, 2, 3)
#: Which moments come in which order, some twice.
DELIVERIES = [list(some) for k in (1, 2, 3) for some in itertools.product(MOMENTS, repeat=k)]
#: Rows of a table come in order of their moments, each once.
BEGINNINGS = [list(some) for k in (1, 2, 3) for some in itertools.combinations(MOMENTS, k)]


def states_of(delivery, turn):
    """A state for each row: of one moment another one in every delivery, and in every row of one."""
    return [str((3 * turn + place) % N) for place in range(len(delivery))]


def rows_of(delivery, turn, clock, user="ann", gone=()):
    """A table of moments by a clock: 1 is the first. Those that are ``gone`` are without a place."""
    columns = {}
    if clock in ("bins", "times"):
        columns["time"] = np.array([(DAY + moment * STEP) * 10**6 for moment in delivery], dtype=np.int64)
    if clock == "numbers":
        columns["step"] = np.array([moment + 40 for moment in delivery], dtype=np.int64)
    if clock == "order":
        columns["order"] = np.array([moment * 10 for moment in delivery], dtype=np.int64)
    states = np.array(states_of(delivery, turn), dtype=np.object_)
    states[np.isin(delivery, list(gone))] = None
    return Trajectories.from_labels([user] * len(delivery), state=states, **columns)


def lines_of(delivery, turn, clock, user="ann", gone=()):
    for moment, state in zip(delivery, states_of(delivery, turn), strict=True):
        at = {"step": moment + 40}
        if clock != "numbers":
            at = {"t": pd.Timestamp(DAY + moment * STEP, unit="s", tz="UTC").isoformat()}
        line = {"user": user, "state": None if moment in gone else state, **at}
        try:
            yield parse_line(json.dumps(line).encode(), False)
        except BadLine as error:
            yield error.moment


def batch(ledger, clock, seed, **more):
    model = TIMED if clock == "bins" else PLAIN
    return Batch(model, POLICY, PAGES, CLEAR, ledger=ledger, bits=dphmm.ReplayBits(seed), **more)


def moment_of(ledger, clock, released, query="state"):
    """The moment that a released row says that it is of, 1, 2 or 3."""
    if clock in ("bins", "times"):
        assert released.time is not None
        return (released.time // 10**6 - DAY) // STEP
    if clock == "numbers":
        number = first_number(ledger.header(released.user, query).options["origin"])
        return number + released.release.t - 1 - 40
    return int(ledger.moments_of([released.user])[0][released.release.t - 1]) // 10


def deliver(ledger, clock, door, delivery, turn, query="state", gone=()):
    """The (moment, answer) that a delivery publishes."""
    made = batch(ledger, clock, 100 + turn, query=query)
    if door == "table":
        chunks = made.run(rows_of(delivery, turn, clock, gone=gone), resume=True)
        told = [released for chunk in chunks for released in chunk]
    else:
        stream, told = Stream(made, True), []
        for line in lines_of(delivery, turn, clock, gone=gone):
            taken = stream.take(line)
            while True:
                try:
                    told.append(next(taken))
                except StopIteration:
                    break
                except BadLine:
                    break
        told += stream.end()
    return [(moment_of(ledger, clock, one, query), tuple(one.release.z.tolist())) for one in told]


@pytest.mark.parametrize(("clock", "door"), [("times", "table"), ("order", "table"), ("times", "stream")])
def test_a_moment_without_a_place_has_a_step_and_never_an_answer(clock, door):
    """Whichever moments they are, the others keep their steps, also when all places can be read later."""
    for gone in itertools.chain.from_iterable(itertools.combinations(MOMENTS, k) for k in (1, 2)):
        ledger = MemoryLedger()
        told = deliver(ledger, clock, door, MOMENTS, 0, gone=gone)
        kinds = ["skip" if moment in gone else "release" for moment in MOMENTS]
        assert [moment for moment, _ in told] == [moment for moment in MOMENTS if moment not in gone]
        assert [entry.kind for entry in ledger.entries("ann", "state")] == kinds
        again = deliver(ledger, clock, door, (*MOMENTS, 4), 1)
        assert again[:-1] == told and again[-1][0] == 4
        assert [entry.kind for entry in ledger.entries("ann", "state")] == [*kinds, "release"]


DOORS = [(clock, "table") for clock in ("bins", "numbers", "times", "order")]
DOORS += [(clock, "stream") for clock in ("bins", "numbers", "times")]


@pytest.mark.parametrize(("clock", "door"), DOORS)
def test_a_moment_has_one_answer_ever(clock, door):
    for one, other in itertools.product(BEGINNINGS if door == "table" else DELIVERIES, DELIVERIES):
        ledger = MemoryLedger()
        answers = defaultdict(set)
        passed = 0
        for turn, delivery in enumerate((one, other, one)):
            known = set(answers)
            told = deliver(ledger, clock, door, delivery, turn)
            for moment, z in told:
                answers[moment].add(z)
                # A moment that was passed over is never asked.
                assert moment in known or moment > passed or turn == 0
            passed = max([passed, *answers])
        assert all(len(each) == 1 for each in answers.values()), (one, other)
        stored = [entry for entry in ledger.entries("ann", "state") if entry.kind == "release"]
        assert len(stored) == len(answers), (one, other)
        assert {entry.z for entry in stored} == {next(iter(each)) for each in answers.values()}
        assert ledger.spent("ann").epsilon == CLEAR * len(answers)


@pytest.mark.parametrize("clock", ["bins", "numbers", "times", "order"])
def test_two_queries_number_the_moments_of_a_person_alike(clock):
    """Whatever the second one is asked first: a step is one moment, and each query answers it once."""
    for one, other in itertools.product(BEGINNINGS, repeat=2):
        ledger = MemoryLedger()
        found = {query: defaultdict(set) for query in ("state", "work")}
        for turn, (query, delivery) in enumerate([("state", one), ("work", other), ("state", other), ("work", one)]):
            for moment, z in deliver(ledger, clock, "table", delivery, turn, query):
                found[query][moment].add(z)
        for query, answers in found.items():
            assert all(len(each) == 1 for each in answers.values()), (one, other, query)
            entries = [entry for entry in ledger.entries("ann", query) if entry.kind == "release"]
            assert len(entries) == len(answers)
        origins = {ledger.header("ann", query).options["origin"] for query in found if ledger.header("ann", query)}
        assert len(origins) == 1


@pytest.mark.parametrize("ledger", ["memory", "file"])
def test_a_late_row_shifts_no_other_row(ledger, tmp_path):
    """The case that published twelve independent answers about one row under a promise of one."""
    kept = MemoryLedger() if ledger == "memory" else open_ledger(tmp_path / "ledger.db")
    told = deliver(kept, "times", "table", [1, 3], 0)
    for turn in range(1, 7):
        assert deliver(kept, "times", "table", [1, 2, 3], turn) == told
    assert kept.spent("ann").epsilon == 2 * CLEAR
    made = batch(kept, "times", 5)
    list(made.run(rows_of([1, 2, 3], 7, "times"), resume=True))
    assert (made.report.late, made.report.replayed) == (1, 2)


def test_a_line_that_comes_again_is_answered_once():
    """100 deliveries of one line: a reader who has 100 answers would know the state."""
    ledger = MemoryLedger()
    promise = dphmm.SequencePromise(Fraction(1, 2), per=1)
    made = Batch(PLAIN, POLICY, PAGES, Fraction(1, 2), ledger=ledger, promise=promise, bits=dphmm.ReplayBits(1))
    stream = Stream(made, False)
    (line,) = lines_of([1], 0, "times")
    told = {tuple(one.release.z.tolist()) for _ in range(100) for one in stream.take(line)}
    assert len(told) == 1 and ledger.spent("ann").epsilon == Fraction(1, 2)


@pytest.mark.parametrize("line", ['{"user": "ann", "state": "1"}', '{"user": "ann", "state": "1", "t": null}'])
def test_a_line_without_a_moment_is_refused(line):
    from dphmm.release.stream import checked_line

    with pytest.raises(BadLine, match="missing_time"):
        checked_line(parse_line(line.encode(), False), PAGES, False)


def test_rows_without_a_mark_are_continued_only_by_themselves_and_later_ones():
    """Nothing is stored or told otherwise, and the refusal is the same whatever differs."""
    histories = ["".join(some) for k in (1, 2, 3) for some in itertools.product("01", repeat=k)]

    def rows(states):
        return Trajectories.from_labels(["ann"] * len(states), state=np.array(list(states), dtype=np.object_))

    refusals = set()
    for one, other in itertools.product(histories, repeat=2):
        ledger = MemoryLedger()
        first = [r for chunk in batch(ledger, ROWS, 1).run(rows(one)) for r in chunk]
        made = batch(ledger, ROWS, 2)
        if other.startswith(one):
            more = [r for chunk in made.run(rows(other), resume=True) for r in chunk]
            assert [r.release.z.tolist() for r in more[: len(one)]] == [r.release.z.tolist() for r in first]
            assert len(ledger.entries("ann", "state")) == len(other)
        else:
            with pytest.raises(InvalidInput) as refused:
                list(made.run(rows(other), resume=True))
            refusals.add(str(refused.value))
            assert len(ledger.entries("ann", "state")) == len(one)
    assert len(refusals) == 1


def test_rows_without_a_mark_need_the_key_that_they_were_kept_with(tmp_path):
    """A digest without a key would confirm a guess of a history to whoever has the ledger."""
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        list(batch(ledger, ROWS, 1).run(rows_of([1, 2], 0, ROWS)))
    folder = tmp_path / "ledger.db.owner"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {"key": 0o600, "rows.db": 0o600}
    states = np.array([0, 1])
    with open_ledger(path) as ledger:
        (kept,) = ledger.prefixes_of(["ann"])
        assert kept == Prefix.of((folder / "key").read_bytes(), "ann", states)
        assert kept != Prefix.of(bytes(32), "ann", states)
        more = [r for chunk in batch(ledger, ROWS, 2).run(rows_of([1, 2, 3], 0, ROWS), resume=True) for r in chunk]
        assert [r.release.t for r in more] == [1, 2, 3]
    for gone in (folder / "key", folder):
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        with open_ledger(path) as ledger:
            with pytest.raises(InvalidInput, match=r"do not continue those|the folder of the ledger's owner"):
                list(batch(ledger, ROWS, 3).run(rows_of([1, 2, 3, 3], 0, ROWS), resume=True))
            assert len(ledger.entries("ann", "state")) == 3


def test_a_run_that_is_undone_leaves_the_rows_before(tmp_path, monkeypatch):
    """The digest is written before the commit: of both, that of the steps that are stored counts."""
    for kept in (MemoryLedger(), open_ledger(tmp_path / "ledger.db")):
        list(batch(kept, ROWS, 1).run(rows_of([1, 2], 0, ROWS)))
        before = kept.prefixes_of(["ann"])
        plain = kept.keep_prefixes

        def dies(prefixes, plain=plain):
            plain(prefixes)
            raise KeyboardInterrupt

        monkeypatch.setattr(kept, "keep_prefixes", dies)
        with pytest.raises(KeyboardInterrupt):
            list(batch(kept, ROWS, 2).run(rows_of([1, 2, 3], 0, ROWS), resume=True))
        monkeypatch.setattr(kept, "keep_prefixes", plain)
        assert kept.prefixes_of(["ann"]) == before
        # Other rows may come after those that are stored.
        told = [r for chunk in batch(kept, ROWS, 3).run(rows_of([1, 2, 1], 0, ROWS), resume=True) for r in chunk]
        assert [r.release.t for r in told] == [1, 2, 3] and kept.prefixes_of(["ann"])[0].rows == 3


def test_rows_in_several_chunks_are_kept_with_their_digest(monkeypatch):
    """A run that is stopped between them is continued."""
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 2)
    ledger, delivery = MemoryLedger(), [1, 2, 3, 3, 3]
    stopped = batch(ledger, ROWS, 1).run(rows_of(delivery, 0, ROWS))
    next(stopped)
    del stopped
    assert ledger.prefixes_of(["ann"])[0].rows == 2
    again = [r for chunk in batch(ledger, ROWS, 2).run(rows_of(delivery, 0, ROWS), resume=True) for r in chunk]
    assert [r.release.t for r in again] == [1, 2, 3, 4, 5] and ledger.prefixes_of(["ann"])[0].rows == 5


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(["numbers", "times", "order", "rows"], 2)))
def test_a_history_by_one_clock_is_not_continued_by_another(before, after):
    """Nor is another query of the person begun by it."""
    for query in ("state", "work"):
        ledger = MemoryLedger()
        list(batch(ledger, before, 1).run(rows_of([1, 2], 0, before)))
        with pytest.raises(InvalidInput, match="whose history in the ledger goes by"):
            list(batch(ledger, after, 2, query=query).run(rows_of([1, 2, 3], 0, after), resume=True))
        assert ledger.sessions() == [("ann", "state")]


@pytest.mark.parametrize("clock", ["bins", "numbers"])
def test_rows_before_the_first_one_are_late(clock):
    ledger = MemoryLedger()
    told = deliver(ledger, clock, "table", [2, 3], 0)
    made = batch(ledger, clock, 7)
    again = [r for chunk in made.run(rows_of([1, 2, 3], 1, clock), resume=True) for r in chunk]
    assert [(moment_of(ledger, clock, r), tuple(r.release.z.tolist())) for r in again] == told
    assert made.report.late == 1


@pytest.mark.parametrize("rule", ["last", "first"])
@pytest.mark.parametrize("clock", ["times", "order"])
def test_two_rows_of_one_moment_are_one_row(clock, rule):
    ledger = MemoryLedger()
    made = batch(ledger, clock, 1, answer=rule)
    told = [r for chunk in made.run(rows_of([2, 1, 2], 0, clock)) for r in chunk]
    assert [r.release.z.tolist() for r in told] == [[1], [2 if rule == "last" else 0]]
    assert made.report.same_step == 1


@pytest.mark.parametrize("clock", ["times", "order"])
@pytest.mark.parametrize("kind", ["planned", "paced", "delta-set"])
def test_steps_that_are_not_asked_and_plans_of_beliefs_keep_their_moments(clock, kind):
    """What a schedule leaves out stands for its moment too; a resumed run goes on where it was."""
    promise = dphmm.SequencePromise(2 * CLEAR, steps=9)
    more = {
        "planned": {"promise": promise, "schedule": dphmm.accounting.Schedule(promise, CLEAR, at=[2, 3])},
        "paced": {
            "promise": promise,
            "schedule": dphmm.accounting.Schedule(promise, CLEAR, at=range(1, 9), spreads=[0.1]),
        },
        "delta-set": {"constraint": "delta=0.1"},
    }[kind]
    for one, other in itertools.product(BEGINNINGS, repeat=2):
        ledger, answers = MemoryLedger(), defaultdict(set)
        for turn, delivery in enumerate((one, other, one)):
            made = batch(ledger, clock, 100 + turn, **more)
            for released in (r for chunk in made.run(rows_of(delivery, turn, clock), resume=True) for r in chunk):
                z = tuple(released.release.z.tolist()) if released.release.asked else None
                answers[moment_of(ledger, clock, released)].add(z)
        assert all(len(each) == 1 for each in answers.values()), (one, other)
        assert len(ledger.moments_of(["ann"])[0]) == len(answers)


def test_a_promise_is_of_the_moments_of_all_runs():
    """A cap that only the rows of one run would keep is refused before anything is drawn."""
    ledger = MemoryLedger()
    promise = dphmm.SequencePromise(2 * CLEAR, steps=9)
    list(batch(ledger, "times", 1, promise=promise).run(rows_of([1], 0, "times")))
    with pytest.raises(BudgetExceeded, match="promise: step 3"):
        list(batch(ledger, "times", 2, promise=promise).run(rows_of([2, 3], 1, "times"), resume=True))
    assert ledger.spent("ann").epsilon == CLEAR
    # Late and stored rows cost nothing.
    list(batch(ledger, "times", 2, promise=promise).run(rows_of([1, 2], 1, "times"), resume=True))
    assert ledger.spent("ann").epsilon == 2 * CLEAR


@pytest.mark.parametrize("clock", [TIMES, ORDER])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_ledger_takes_no_step_without_its_moment(clock, kind, tmp_path):
    """Whoever calls it: a session without one, an earlier one, another one for a stored step."""
    ledger = MemoryLedger() if kind == "memory" else open_ledger(tmp_path / "ledger.db")
    session = dphmm.ReleaseSession(
        PLAIN, POLICY, PAGES, CLEAR, subject="ann", ledger=ledger, origin=clock, bits=dphmm.ReplayBits(1)
    )
    with pytest.raises(InvalidInput, match="moment: got none"):
        session.release(3)
    session.release(3, moment=10)
    for moment in (10, 9):
        with pytest.raises(InvalidInput, match="moment: got one that comes too late"):
            session.release(4, moment=moment)
    session.release(4, moment=11)
    with pytest.raises(InvalidInput, match="moment: got none"):
        session.skip()
    assert ledger.moments_of(["ann", "bob"])[0].tolist() == [10, 11]
    assert len(ledger.moments_of(["bob"])[0]) == 0
    other = dphmm.ReleaseSession(
        PLAIN, POLICY, PAGES, CLEAR, subject="ann", ledger=ledger, origin=clock, query="work", bits=dphmm.ReplayBits(2)
    )
    other.skip()
    with pytest.raises(InvalidInput, match="moment: got another one for step 2"):
        other.release(1, moment=12)
    other.release(1, moment=11)


def test_steps_of_moments_by_brute_force():
    """Against the definition, for all sets of stored and of new moments among six."""
    for stored, moments in itertools.product(
        [some for k in range(5) for some in itertools.combinations(range(6), k)], repeat=2
    ):
        expected, known = [], list(stored)
        for moment in moments:
            if moment in known:
                expected.append(known.index(moment) + 1)
            elif known and moment < known[-1]:
                expected.append(0)
            else:
                known.append(moment)
                expected.append(len(known))
        found = steps_of(np.array(stored, dtype=np.int64), np.array(moments, dtype=np.int64))
        assert found.tolist() == expected, (stored, moments)


def test_which_moments_requests_may_add():
    stored = np.array([10, 20, 30])

    def added(t, steps, moments, first=1):
        return added_moments(first, stored[first - 1 :], np.array(t), np.array(steps), np.array(moments)).tolist()

    assert added([4, 5], [1, 1], [40, 50]) == [40, 50]
    assert added([2, 4], [2, 1], [NO_MOMENT, 40]) == [40]
    assert added([3, 4], [1, 1], [30, 40], first=3) == [40]
    for t, steps, moments in (
        ([4], [1], [30]),
        ([4], [1], [NO_MOMENT]),
        ([3], [2], [NO_MOMENT]),
        ([4], [2], [40]),
        ([3], [1], [31]),
        ([4, 5], [1, 1], [50, 40]),
    ):
        with pytest.raises(InvalidInput, match="moment"):
            added(t, steps, moments)


def test_which_histories_have_moments():
    assert [has_moments(origin) for origin in (TIMES, ORDER, ROWS, "0", "", None)] == [True, True, *[False] * 4]


def test_many_steps_one_by_one_are_few_rows_of_a_file(tmp_path):
    """And are read back, checked and continued."""
    path = tmp_path / "ledger.db"
    moments = np.cumsum(np.random.default_rng(3).integers(1, 9, 200)).tolist()
    with open_ledger(path) as ledger:
        session = dphmm.ReleaseSession(
            PLAIN, POLICY, PAGES, 1, subject="ann", ledger=ledger, origin=TIMES, bits=dphmm.ReplayBits(1)
        )
        for moment in moments:
            session.release(0, moment=moment)
        ledger.check()
        assert ledger.moments_of(["ann"])[0].tolist() == moments
    import sqlite3

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT t, length(moments) FROM moment").fetchall() == [(1, 960), (121, 640)]
        connection.execute("UPDATE moment SET moments = substr(moments, 1, length(moments) - 8) WHERE t = 121")
    connection.close()
    with open_ledger(path) as ledger, pytest.raises(dphmm.errors.DphmmError, match="do not stand for a moment each"):
        ledger.check()


@pytest.mark.slow
def test_the_ledger_of_a_release_table_has_the_moments_of_its_rows():
    """Two queries whose rows come by turns: made again from the rows, every step stands for the same moment."""
    from dphmm.session.releases import Releases
    from dphmm.storage.released import released_table
    from dphmm.storage.table_ledger import ledger_of, with_ledger

    for deliveries in itertools.product(BEGINNINGS, repeat=3):
        ledger, parts, known = MemoryLedger(), [], defaultdict(set)
        for turn, (query, delivery) in enumerate(zip(("state", "work", "state"), deliveries, strict=True)):
            last = {user: ledger.entries(user, own)[-1].through for user, own in ledger.sessions() if own == query}
            made = batch(ledger, "times", turn, query=query)
            rows = Releases.joined(list(made.run(rows_of(delivery, turn, "times"), resume=True)))
            fresh = None if rows is None else rows.taken(rows.t > last.get("ann", 0))
            if fresh is not None and len(fresh):
                parts.append((query, with_ledger(released_table(fresh, PAGES), fresh, ledger, query, known[query])))
                known[query].add("ann")
        again = ledger_of(parts, ["ann"])
        assert again.moments_of(["ann"])[0].tolist() == ledger.moments_of(["ann"])[0].tolist(), deliveries
        for key in ledger.sessions():
            assert [e[:5] for e in again.entries(*key)] == [e[:5] for e in ledger.entries(*key)]


@pytest.mark.parametrize("clock", ["times", "order"])
@pytest.mark.parametrize("resume", [True, False])
def test_rows_are_numbered_where_nobody_can_add_a_moment(clock, resume, monkeypatch):
    """Another run stores a moment between the check of a table and its transaction: no answer moves to another one."""
    ledger = MemoryLedger()
    if resume:
        list(batch(ledger, clock, 1).run(rows_of([1], 0, clock)))
    slow = batch(ledger, clock, 2)
    checked = slow._checked

    def overtaken(*given):
        found = checked(*given)
        list(batch(ledger, clock, 3).run(rows_of([2], 1, clock), resume=True))
        return found

    monkeypatch.setattr(slow, "_checked", overtaken)
    told = [r for chunk in slow.run(rows_of([1, 3], 2, clock), resume=resume) for r in chunk]
    entries = {entry.t: entry.z for entry in ledger.entries("ann", "state")}
    moments = (ledger.moments_of(["ann"])[0] // (10 if clock == "order" else 1)).tolist()
    assert len(moments) == len(entries) == (3 if resume else 2)
    for released in told:
        assert entries[released.release.t] == tuple(released.release.z.tolist())
    asked = {moment_of(ledger, clock, released) for released in told}
    # Without an answer of its own the first row is late.
    assert asked == ({1, 3} if resume else {3})


@pytest.mark.parametrize("origin", ["", "5", ROWS])
def test_a_moment_is_refused_where_steps_are_numbers(origin):
    """Else a caller who names it would have another answer each time."""
    session = dphmm.ReleaseSession(PLAIN, POLICY, PAGES, CLEAR, origin=origin, bits=dphmm.ReplayBits(1))
    with pytest.raises(InvalidInput, match="moment: got 10; expected none"):
        session.release(3, moment=10)
    assert session.t == 1


@pytest.mark.parametrize("moment", [1.5, "5", True, 2**63, NO_MOMENT])
def test_a_moment_is_a_whole_number(moment):
    session = dphmm.ReleaseSession(PLAIN, POLICY, PAGES, CLEAR, origin=TIMES, bits=dphmm.ReplayBits(1))
    with pytest.raises(InvalidInput, match=r"moment: got .*; expected a whole number of 64 bits"):
        session.release(3, moment=moment)


def test_a_stored_step_is_given_for_its_own_moment_alone():
    session = dphmm.ReleaseSession(PLAIN, POLICY, PAGES, CLEAR, origin=TIMES, bits=dphmm.ReplayBits(1))
    first = session.release(3, moment=10)
    session.release(4, moment=20)
    assert session.release(5, t=1, moment=10) == first
    with pytest.raises(InvalidInput, match="moment: got another one for step 1"):
        session.release(5, t=1, moment=20)


@pytest.mark.parametrize("origin", [TIMES, ORDER, ROWS])
def test_days_are_of_time_bins_alone(origin):
    """Ranks are no bins: a day of them would hold as many answers as there are rows."""
    promise = dphmm.SequencePromise(2 * CLEAR, per="1d")
    session = dphmm.ReleaseSession(
        TIMED, POLICY, PAGES, CLEAR, origin=origin, promise=promise, bits=dphmm.ReplayBits(1)
    )
    with pytest.raises(InvalidInput, match="origin: got "):
        session.release(3, moment=None if origin == ROWS else 10)


@pytest.mark.parametrize("clock", ["times", "order", "rows", "numbers"])
def test_what_is_chosen_for_a_step_is_of_the_step_that_is_published(clock):
    """Where the table has no numbers, those of the released rows; rows that are all late choose nothing."""
    ledger = MemoryLedger()
    first = 41 if clock == "numbers" else 1
    made = batch(ledger, clock, 1, step_choices={first: {"epsilon": CLEAR * 2}, first + 2: {"epsilon": CLEAR // 2}})
    table = rows_of([1, 2, 3], 0, clock)
    told = [r for chunk in made.run(table) for r in chunk]
    assert [float(r.release.epsilon) for r in told] == [CLEAR * 2, CLEAR, CLEAR // 2]
    again = batch(ledger, clock, 2, step_choices={first: {"epsilon": CLEAR * 2}, first + 2: {"epsilon": CLEAR // 2}})
    assert [r.release.t for chunk in again.run(table, resume=True) for r in chunk] == [1, 2, 3]
