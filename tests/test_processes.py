"""A table released in several processes: the rows of one, each admitted before it is drawn and paid before shown."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe

import numpy as np
import pytest

import dphmm
from dphmm import processes
from dphmm.accounting.ledger import MemoryLedger, recount
from dphmm.batch import Batch, BatchReport, Recipe
from dphmm.errors import BudgetExceeded, DegenerateHull, DphmmError, InvalidInput
from dphmm.session.releases import Earlier
from dphmm.states.trajectory import Trajectories
from dphmm.storage.ledger import open_ledger

N, STEPS = 6, 5


@dataclass(frozen=True)
class Replayed(Recipe):
    """Each process draws the words of the same seed."""

    seed: int = 1

    def batch(self, ledger):
        return Batch(*self.world, ledger=ledger, bits=dphmm.ReplayBits(self.seed), **self.choices)


class Ending:
    """Words of a seed; after some of them the process is gone."""

    def __init__(self, seed, words):
        self._bits, self._left = dphmm.ReplayBits(seed), words

    def uint64(self, n):
        self._left -= n
        if self._left < 0:
            os._exit(9)
        return self._bits.uint64(n)


@dataclass(frozen=True)
class Killed(Recipe):
    """Processes that end while they draw."""

    words: int = 0

    def batch(self, ledger):
        return Batch(*self.world, ledger=ledger, bits=Ending(1, self.words), **self.choices)


def world():
    stay = 0.8 * np.eye(N) + 0.2 / N
    space = dphmm.StateSpace(np.arange(N)[:, None], names=list("abcdef"))
    return dphmm.MarkovModel(np.full(N, 1 / N), stay), dphmm.policy.radius(space, 1), space, 1


def table(users=8, steps=STEPS):
    names = np.repeat([f"u{number}" for number in range(users)], steps)
    states = np.random.default_rng(3).integers(0, N, len(names))
    return Trajectories.from_labels(names.tolist(), state=np.array(list("abcdef"), dtype=object)[states])


def delta(**choices):
    return {"constraint": dphmm.DeltaSet("0.3"), **choices}


def own(recipe, ledger):
    """The caller's batch, which draws nothing."""
    return Recipe(recipe.world, recipe.choices).batch(ledger)


def in_processes(recipe, ledger, rows, n=2, **choices):
    batch = own(recipe, ledger)
    return batch, processes.released_in_processes(recipe, batch, batch.visits(rows), processes=n, **choices)


def in_one_process(recipe, ledger, rows, **choices):
    batch = recipe.batch(ledger)
    return batch, batch.run(rows, **choices)


def told(row):
    release = row.release
    z = None if release.z is None else release.z.tolist()
    return row.user, release.t, z, release.estimate.tolist(), release.plan_hash, release.cost, release.epsilon


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    if request.param == "memory":
        yield MemoryLedger()
        return
    with open_ledger(tmp_path / "l.db") as opened:
        yield opened


def test_each_process_releases_its_users_as_one_process_would(ledger):
    recipe = Replayed(world(), delta(), 7)
    batch, chunks = in_processes(recipe, ledger, table())
    rows = [told(row) for chunk in chunks for row in chunk]
    expected = []
    visits = batch.visits(table())
    for share in (visits.of_users(0, 4), visits.of_users(4, 8)):
        alone = recipe.batch(MemoryLedger())
        expected += [told(row) for chunk in alone.run(share) for row in chunk]
        for user in share.users:
            assert ledger.entries(user, "state") == alone.ledger.entries(user, "state")
            assert ledger.spent(user) == alone.ledger.spent(user)
    assert rows == expected
    assert batch.report.released == len(rows) == 8 * STEPS
    assert batch.report.rows == 8 * STEPS and batch.report.subjects == 8
    assert batch.report.plans == {row[4] for row in rows}


def test_a_table_is_continued_and_stored_rows_come_back(ledger):
    first = [told(row) for chunk in in_processes(Replayed(world(), delta(), 7), ledger, table(4))[1] for row in chunk]
    batch, chunks = in_processes(Replayed(world(), delta(), 8), ledger, table(8), resume=True)
    again = [told(row) for chunk in chunks for row in chunk]
    assert again[: len(first)] == first
    assert batch.report.replayed == len(first) and batch.report.released == 8 * STEPS
    with pytest.raises(InvalidInput, match="resume"):
        list(in_processes(Replayed(world(), delta(), 9), ledger, table(8))[1])


def test_rows_are_told_in_order_however_many_shares_there_are(monkeypatch):
    monkeypatch.setattr(Batch, "_chunk", 7)
    seen = []
    _, chunks = in_processes(
        Replayed(world(), delta()), MemoryLedger(), table(9), n=2, progress=lambda done, of: seen.append((done, of))
    )
    rows = [row for chunk in chunks for row in chunk]
    assert [(row.user, row.release.t) for row in rows] == [(f"u{u}", t) for u in range(9) for t in range(1, STEPS + 1)]
    assert seen[-1] == (9 * STEPS, 9 * STEPS) and seen == sorted(seen)


def test_a_refusal_that_answers_bring_about_keeps_them(ledger):
    """Costs of delta-sets follow the answers. Drawn again until no cap is passed, the answers would be selected."""
    recipe = Replayed(world(), delta(cap_cost=9), 3)
    shown = []
    with pytest.raises(BudgetExceeded):
        for chunk in in_processes(recipe, ledger, table())[1]:
            shown += [told(row) for row in chunk]
    assert 0 < len(shown) < 8 * STEPS
    stored = [(user, query) for user, query in ledger.sessions()]
    entries = {user: ledger.entries(user, query) for user, query in stored}
    assert {row[0] for row in shown} <= set(entries)
    with pytest.raises(BudgetExceeded):
        list(in_processes(Replayed(world(), delta(cap_cost=9), 99), ledger, table(), resume=True)[1])
    assert {user: ledger.entries(user, query) for user, query in stored} == entries


def test_what_is_refused_before_a_draw_leaves_nothing(ledger):
    model, _, space, epsilon = world()
    flat = (
        model,
        dphmm.policy.complete(N),
        dphmm.StateSpace(np.stack([np.arange(N)] * 2, axis=1)),
        epsilon,
    )
    recipe = Replayed(flat, delta(flat="refuse"))
    rows = Trajectories.from_labels(["a", "b"], state=np.array([0, 1]))
    with pytest.raises(DegenerateHull) as alone:
        list(recipe.batch(MemoryLedger()).run(rows))
    with pytest.raises(DegenerateHull, match=str(alone.value)[:20]):
        list(in_processes(recipe, ledger, rows)[1])
    assert ledger.sessions() == []
    assert space.n_states == N


@pytest.mark.parametrize("words", [0, 15, 40])
def test_a_process_that_ends_leaves_what_was_shown_and_no_more(words, ledger):
    """Whatever was shown is stored and paid; the rest is drawn by whoever continues."""
    shown = []
    with pytest.raises(DphmmError, match="one of its processes ended"):
        for chunk in in_processes(Killed(world(), delta(), words), ledger, table(), n=2)[1]:
            shown += [told(row) for row in chunk]
    for user, query in ledger.sessions():
        entries = ledger.entries(user, query)
        assert ledger.spent(user) == recount(entries).spent
    _, chunks = in_processes(Replayed(world(), delta(), 5), ledger, table(), resume=True)
    again = [told(row) for chunk in chunks for row in chunk]
    assert len(again) == 8 * STEPS
    assert shown == [row for row in again if row in shown]


def test_whoever_stops_listening_ends_the_processes(monkeypatch):
    monkeypatch.setattr(Batch, "_chunk", 5)
    began, ledger = [], MemoryLedger()
    begin = processes._begun

    @contextmanager
    def seen(*given):
        with begin(*given) as workers:
            began.extend(workers)
            yield workers

    monkeypatch.setattr(processes, "_begun", seen)
    _, chunks = in_processes(Replayed(world(), delta()), ledger, table())
    shown = [told(row) for row in next(chunks)]
    chunks.close()
    assert began and all(worker.closed for worker in began)
    assert [entry.z for entry in ledger.entries("u0", "state")][: len(shown)] == [
        tuple(map(int, row[2])) for row in shown
    ]
    with ledger.transaction(["u0"]):
        pass


@pytest.mark.parametrize(
    "choices", [{}, delta(groups={"u0": "g"}, cap_group=100), delta(bits=dphmm.ReplayBits(1))], ids=str
)
def test_one_process_does_what_several_may_not(choices, monkeypatch):
    monkeypatch.setattr(processes, "_begun", None)
    batch = Batch(*world(), **choices)
    monkeypatch.setattr(batch, "_bits", dphmm.ReplayBits(2))
    if "bits" not in choices:
        # Its words would count as the system's.
        monkeypatch.setattr("dphmm.batch.default_bits", lambda bits=None: batch._bits)
        monkeypatch.setattr("dphmm.batch.is_secure", lambda bits: True)
    assert not batch.stands_alone
    rows = [
        row
        for chunk in processes.released_in_processes(None, batch, batch.visits(table(2)), processes=2)
        for row in chunk
    ]
    assert len(rows) == 2 * STEPS


@pytest.mark.parametrize(("own", "rows", "n"), [(1, 1, 1), (2, 1, 4), (2, 10**6, 1)])
def test_processes_begin_where_they_save_time(own, rows, n, monkeypatch):
    monkeypatch.setattr("dphmm.batch.cores", lambda: own)
    monkeypatch.setattr("dphmm.batch._LEAST_ROWS", rows)
    batch = Batch(*world(), **delta())
    assert batch.processes(batch.visits(table(2))) == n
    assert Batch(*world()).processes(batch.visits(table(2))) == 1


def test_plans_of_the_support_may_hang_on_other_queries(monkeypatch):
    """On very many states they are made row by row, and are no less shared."""
    monkeypatch.setattr("dphmm.batch._MOST_SCHEDULED_STATES", 1)
    batch = Batch(*world())
    assert not batch._is_scheduled and not batch.stands_alone


def test_a_paced_schedule_reads_what_other_queries_spend():
    promise = dphmm.SequencePromise(4, steps=STEPS)
    schedule = dphmm.Schedule(promise, 1, at=range(1, STEPS + 1), spreads=[0.5])
    batch = Batch(*world()[:3], promise=promise, schedule=schedule, constraint=dphmm.DeltaSet("0.3"))
    assert batch.setting.paces and not batch.stands_alone


class Recorded:
    """A ledger that writes down what is done, in order; ``versions`` are those of its accounts, one a transaction."""

    def __init__(self, versions=()):
        self.done, self._versions = [], iter(versions)

    @contextmanager
    def transaction(self, subjects=()):
        self.done.append("begin")
        self._version = next(self._versions, 1)
        try:
            yield self
        except BaseException:
            self.done.append("undone")
            raise
        self.done.append("commit")

    def version(self, user):
        return self._version

    def look(self, users, query):
        return []

    def open_session(self, header):
        self.done.append(f"open {header}")
        if header == "refused":
            raise BudgetExceeded("no")

    def admit(self, request, caps):
        self.done.append(f"admit {request}")
        if request == "fault":
            raise {}["cell 17"]
        return processes.Admitted(request, None, None)

    def add(self, admitted, z):
        self.done.append(f"add {admitted.request}")
        if z == "refused":
            raise DphmmError("no")
        return z

    def put_snapshot(self, *belief):
        self.done.append("keep")


ASK = "transaction"
DONE = ("done", BatchReport(), Earlier(), None)
REFUSED = ("done", BatchReport(), Earlier(), BudgetExceeded("no"))


class Asked(str):
    """The name of a request; of one that skips it begins so."""

    @property
    def kind(self):
        return "skip" if self.startswith("skip") else "release"


def admits(number, request, *opened):
    return number, ASK, "admit", list(opened), Asked(request), None


def adds(number, z=(1,)):
    return number, ASK, "add", z


def served(*script, versions=()):
    """What a ledger does where processes 0 and 1 say these things, in this order; "ends" is that a process is gone."""
    pipes = [Pipe(), Pipe()]
    for number, *message in script:
        if message == ["ends"]:
            pipes[number][1].close()
        else:
            processes._send(pipes[number][1], tuple(message))
    recorded = Recorded(versions)
    shares = {pipes[0][0]: processes._Share(("a",)), pipes[1][0]: processes._Share(("b",))}
    service = processes._Service(recorded, shares)
    service._ready.extend(pipes[number][0] for number, *_ in script)
    service.run()
    return [*recorded.done, [share.refused for share in shares.values()]]


def test_nothing_is_admitted_or_committed_between_an_admission_and_its_answer():
    """A commit would store an account without the answer, another admission would be of a total not yet true."""
    ends = [(0, *DONE), (1, *DONE)]
    done = served((0, "begin"), (1, "begin"), admits(0, "a1"), admits(1, "b1"), adds(0), adds(1), (0, "commit"), *ends)
    assert done[:6] == ["begin", "admit a1", "add a1", "admit b1", "add b1", "commit"]
    done = served((0, "begin"), (1, "begin"), admits(0, "a1"), (1, "commit"), adds(0), (0, "commit"), *ends)
    assert done[:4] == ["begin", "admit a1", "add a1", "commit"]


def test_an_answer_is_recorded_for_what_was_admitted_to_its_own_process():
    """Process 1 asks while process 0 draws: each answer is stored under its own request."""
    ends = [(1, "commit"), (0, "commit"), (0, *DONE), (1, *DONE)]
    done = served((0, "begin"), (1, "begin"), admits(1, "b1"), admits(0, "a1"), adds(1), adds(0), *ends)
    assert done[1:5] == ["admit b1", "add b1", "admit a1", "add a1"]


@pytest.mark.parametrize("how", [REFUSED, ("ends",)], ids=["refused", "killed"])
def test_what_one_process_stored_stays_where_another_fails(how):
    """Undone unless it was committed by then, it would be drawn again: whether it was may follow from its answers."""
    last = [admits(0, "a2"), adds(0), (0, "commit"), (0, *DONE)]
    done = served((0, "begin"), (1, "begin"), admits(0, "a1"), adds(0), (1, *how), *last)
    assert done[:7] == ["begin", "admit a1", "add a1", "admit a2", "add a2", "commit", "begin"]
    assert done[-1][0] is None and isinstance(done[-1][1], DphmmError)


@pytest.mark.parametrize("how", [("commit",), DONE, ("ends",)], ids=["commit", "done", "killed"])
def test_an_error_between_an_admission_and_its_answer_holds_nobody_up(how):
    told_at = [(0, *how), (1, "begin"), admits(1, "b1"), adds(1), (1, "commit"), (1, *DONE)]
    done = served((0, "begin"), admits(0, "a1"), *told_at, *([(0, *DONE)] if how == ("commit",) else []))
    assert "add a1" not in done and "add b1" in done


def test_what_a_process_asked_before_it_ended_is_not_admitted():
    """It would have no answer, and all others would wait for one."""
    script = [(0, "begin"), (1, "begin"), admits(0, "a1"), admits(1, "b1"), (1, "ends"), adds(0), (0, "commit")]
    assert "admit b1" not in served(*script, (0, *DONE))


def test_a_session_is_opened_with_its_first_admission():
    done = served((0, "begin"), (1, *DONE), admits(0, "a1", ("open_session", "a")), adds(0), (0, "commit"), (0, *DONE))
    assert done[:5] == ["begin", "open a", "admit a1", "add a1", "commit"]


def test_sessions_and_caps_of_who_is_refused_at_once_are_undone_and_nothing_else(ledger):
    """They would bar these people from every other release; what others drew is committed before."""
    opens = admits(1, "b1", ("open_session", "refused"))
    script = [(0, "begin"), (1, "begin"), admits(0, "a1"), adds(0), opens, (0, "commit"), (0, *DONE), (1, *REFUSED)]
    done = served(*script)
    assert done[:8] == ["begin", "admit a1", "add a1", "commit", "begin", "open refused", "undone", "begin"]
    recipe = Replayed(world(), delta(cap_cost="0.5"))
    with pytest.raises(BudgetExceeded):
        list(in_processes(recipe, ledger, table(4))[1])
    assert ledger.sessions() == []
    rows = [row for chunk in in_processes(Replayed(world(), delta(cap_cost=100)), ledger, table(4))[1] for row in chunk]
    assert len(rows) == 4 * STEPS


@pytest.mark.parametrize("opened", [(), [("open_session", "b")]], ids=["known", "new"])
def test_a_fault_of_the_ledger_undoes_nothing_of_others(opened):
    """It is told like an error, to the process whose request came to it."""
    script = [(0, "begin"), (1, "begin"), admits(0, "a1"), adds(0), admits(1, "fault", *opened), (0, "commit")]
    done = served(*script, (0, *DONE), (1, *REFUSED))
    assert done[:3] == ["begin", "admit a1", "add a1"]
    assert "undone" not in done[: done.index("commit")]


def test_sessions_are_opened_beside_what_was_read_and_not_beside_what_was_stored():
    opens = [admits(0, "a1", ("open_session", "a")), adds(0), (0, "commit"), (0, *DONE), (1, *DONE)]
    asked = served((0, "begin"), (1, "begin"), (1, ASK, "look", ["b"], ""), *opens)
    assert asked[:5] == ["begin", "open a", "admit a1", "add a1", "commit"]
    kept = served((0, "begin"), (1, "begin"), (1, ASK, "put_snapshot", "b"), *opens)
    assert kept[:4] == ["begin", "keep", "commit", "begin"]


@pytest.mark.parametrize("opened", [(), [("open_session", "a")]], ids=["known", "new"])
def test_skips_before_a_first_answer_are_undone_with_who_is_refused(opened):
    """Others are admitted once an answer follows, for what they draw must not be undone."""
    skipped = [admits(0, "skip a1", *opened), adds(0, None)]
    refused = [*skipped, admits(1, "b1"), (0, *REFUSED), adds(1), (1, "commit"), (1, *DONE)]
    done = served((0, "begin"), (1, "begin"), *refused)
    assert done.index("undone") < done.index("admit b1") < done.index("add b1") < done.index("commit")
    answers = [*skipped, admits(1, "b1"), admits(0, "a2"), adds(0), adds(1), (0, "commit"), (1, "commit")]
    done = served((0, "begin"), (1, "begin"), *answers, (0, *DONE), (1, *DONE))
    assert done.index("add a2") < done.index("admit b1")
    assert "undone" not in done


def test_sessions_are_undone_where_their_first_answer_cannot_be_stored():
    script = [admits(0, "a1", ("open_session", "a")), adds(0, "refused"), (0, *REFUSED), (1, *DONE)]
    assert served((0, "begin"), (1, "begin"), *script)[:5] == ["begin", "open a", "admit a1", "add a1", "undone"]


def test_skips_after_an_answer_are_admitted_beside_others():
    script = [admits(0, "a1"), adds(0), admits(1, "b1"), adds(1), admits(0, "skip a2"), adds(0, None)]
    done = served((0, "begin"), (1, "begin"), *script, (0, "commit"), (0, *DONE), (1, *DONE))
    assert done.index("add skip a2") < done.index("commit")


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signal masks")
def test_interrupts_wait_while_processes_start():
    """The server of processes takes over what is blocked here: it would tell of an interrupt by itself."""
    with processes._uninterrupted():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("schedule", [False, True], ids=["resumed", "planned"])
@pytest.mark.parametrize("run", [in_one_process, in_processes])
def test_caps_of_who_is_refused_before_a_draw_do_not_stay(run, schedule, ledger):
    """Though steps before were stored already, or were skipped."""
    promise = dphmm.SequencePromise(2, steps=STEPS)
    planned = {"schedule": dphmm.Schedule(promise, 1, [2, 3])} if schedule else {}
    public = (*world()[:3], None if schedule else 1)
    if not schedule:
        list(run(Replayed(public, delta()), ledger, table(4, steps=2))[1])
    before = {key: ledger.entries(*key) for key in ledger.sessions()}
    with pytest.raises(BudgetExceeded):
        list(run(Replayed(public, delta(cap_cost="0.5", **planned)), ledger, table(4), resume=not schedule)[1])
    assert {key: ledger.entries(*key) for key in ledger.sessions()} == before
    assert all(ledger.caps(f"u{number}").cost is None for number in range(4))
    mended = run(Replayed(public, delta(cap_cost=100, **planned)), ledger, table(4), resume=not schedule)[1]
    assert sum(len(chunk) for chunk in mended) == 4 * STEPS


@pytest.mark.parametrize("run", [in_one_process, in_processes])
def test_caps_are_kept_of_who_has_no_new_rows(run, ledger):
    list(run(Replayed(world(), delta()), ledger, table(4))[1])
    shown = [
        row for chunk in run(Replayed(world(), delta(cap_cost=90)), ledger, table(4), resume=True)[1] for row in chunk
    ]
    assert len(shown) == 4 * STEPS
    assert all(ledger.caps(f"u{number}").cost == 90 for number in range(4))


def test_a_killed_server_of_processes_is_told_as_such(monkeypatch):
    class Dead:
        Pipe = staticmethod(Pipe)

        def set_forkserver_preload(self, names):
            pass

        def Process(self, **given):
            return self

        def start(self):
            raise EOFError

    monkeypatch.setattr(processes, "get_context", lambda kind: Dead())
    with pytest.raises(DphmmError, match="--resume goes on"), processes._begun(None, 2):
        pass


@pytest.mark.parametrize("how", [DONE, ("ends",)], ids=["done", "killed"])
def test_sessions_that_never_had_an_answer_are_undone(how):
    done = served((0, "begin"), (1, *DONE), admits(0, "a1", ("open_session", "a")), (0, *how))
    assert done[:4] == ["begin", "open a", "admit a1", "undone"]


def test_another_program_may_not_store_rows_of_these_users_between_two_commits():
    """What was looked up in one transaction holds in the next, or nothing more is drawn."""
    script = [
        (0, "begin"),
        (1, "begin"),
        (1, "commit"),
        admits(0, "a1"),
        adds(0),
        (0, "commit"),
        (0, *DONE),
        (1, *DONE),
    ]
    assert "add a1" in served(*script, versions=[3, 3, 3])
    with pytest.raises(InvalidInput, match="another program"):
        served(*script, versions=[3, 4, 4])


def test_what_was_looked_up_in_a_transaction_that_is_undone_holds_too():
    """Sessions of process 1 are undone; process 0 has looked up its user in the same transaction."""
    refused = [admits(1, "b1", ("open_session", "refused")), (1, *REFUSED)]
    script = [(0, "begin"), (1, "begin"), (0, ASK, "look", ["a"], ""), *refused, admits(0, "a1"), adds(0)]
    ends = [(0, "commit"), (0, *DONE)]
    assert "add a1" in served(*script, *ends, versions=[3, 3, 3])
    with pytest.raises(InvalidInput, match="another program"):
        served(*script, *ends, versions=[3, 4, 4])


def test_a_ledger_that_fails_is_told_as_it_failed(tmp_path):
    """Of the process whose row could not be stored, not of the next one, which finds a failed transaction."""

    class Full(Recorded):
        def add(self, admitted, z):
            raise DphmmError("disk full")

        @contextmanager
        def transaction(self, subjects=()):
            self._version = 1
            yield self
            raise DphmmError("failed before")

    here, there = Pipe()
    for message in (("begin",), admits(0, "a1")[1:], adds(0)[1:], (*DONE[:3], DphmmError("disk full"))):
        processes._send(there, message)
    with pytest.raises(DphmmError, match="disk full"):
        processes._Service(Full(), {here: processes._Share(("a",))}).run()


def test_an_error_of_a_process_is_told_and_a_fault_only_by_its_place():
    error = processes._in_words(InvalidInput("t", "5", "3"))
    assert isinstance(error, InvalidInput) and error.field == "t"
    try:
        {}["cell 17"]
    except KeyError as fault:
        told_of = str(processes._in_words(fault))
    assert "KeyError" in told_of and "test_processes.py" in told_of and "17" not in told_of


def test_a_worker_is_the_code_that_runs_in_a_process(monkeypatch):
    """The same in a thread, whose ledger is asked through the same messages."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    recipe, ledger = Replayed(world(), delta(), 7), MemoryLedger()
    batch = own(recipe, ledger)
    here, there = Pipe()
    thread = threading.Thread(target=processes.work, args=(recipe, there))
    thread.start()
    shares = processes._sent([here], batch.begin(batch.visits(table(3))), [(0, 3)])
    processes._Service(ledger, shares).run()
    here.close()
    thread.join()
    (share,) = shares.values()
    rows = [told(row) for chunk in share.published for row in chunk]
    assert rows == [told(row) for chunk in recipe.batch(MemoryLedger()).run(table(3)) for row in chunk]
