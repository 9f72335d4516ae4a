"""Batches: one session per user, chunks that show nothing before their commit, tables in kind."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.cli.app import app
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.release.batch import Batch, BatchChoices
from dphmm.session.options import Options, PlanChoices
from dphmm.states.trajectory import Trajectories
from dphmm.storage.ledger import open_ledger

N = 6
HOUR = 3600


@pytest.fixture
def parts():
    moves = np.full((N, N), 1 / N)
    model = dphmm.MarkovModel(np.full(N, 1 / N), moves)
    space = dphmm.StateSpace(np.arange(N)[:, None], names=list("abcdef"))
    return model, dphmm.policy.radius(space, 1), space


def rows_of(states="abcab", users=None, **columns):
    users = users or ["u", "u", "u", "v", "v"]
    return Trajectories.from_labels(users, state=np.array(list(states), dtype=object), **columns)


def batch(parts, seed=1, epsilon=1, **choices):
    return Batch(*parts, epsilon, bits=dphmm.ReplayBits(seed), **choices)


def released(work, trajectories, **choices):
    return [row for chunk in work.run(trajectories, **choices) for row in chunk]


def answers(rows):
    return [(row.user, row.release.t, row.release.z.tolist()) for row in rows]


@pytest.mark.parametrize("noun", ["<b>", "Vessel", "v" * 21, "vessel\n", "two words", "é", None])
def test_a_noun_is_one_word_of_small_letters(parts, noun):
    with pytest.raises(InvalidInput, match=r"^noun: got .*; expected one word of 2 to 20 small letters"):
        batch(parts, noun=noun)


def test_equal_to_sessions_one_by_one(parts):
    rows = released(batch(parts, 5), rows_of())
    bits = dphmm.ReplayBits(5)
    expected = []
    for user, states in (("u", "abc"), ("v", "ab")):
        session = dphmm.ReleaseSession(*parts, 1, bits=bits)
        expected += [(user, r.t, r.z.tolist()) for r in (session.release(s) for s in states)]
    assert answers(rows) == expected


def test_queries_under_two_spellings_are_one_account(parts):
    """The second query is of the person that the first was of: its plans know the first one's partners."""
    model, _, space = parts
    lonely = model, dphmm.policy.from_edges([(0, 1), (2, 3)], N), space
    ledgers = []
    for names in (["Ann", "ANN "], ["Ann", "Ann"]):
        ledger = MemoryLedger()
        for query, name in zip(("state", "work"), names, strict=True):
            released(batch(lonely, 5, ledger=ledger, query=query), rows_of("abc", [name] * 3))
        assert ledger.sessions() == [("Ann", "state"), ("Ann", "work")]
        assert ledger.spent("Ann").epsilon == 6
        plans = [entry.plan_hash for _, query in ledger.sessions() for entry in ledger.entries("Ann", query)]
        ledgers.append((plans, [entry.z for entry in ledger.entries("Ann", "work")]))
    assert ledgers[0] == ledgers[1]
    capped = MemoryLedger()
    released(batch(parts, ledger=capped, cap_epsilon=4), rows_of("abc", ["Ann"] * 3))
    with pytest.raises(BudgetExceeded):
        released(batch(parts, ledger=capped, query="work"), rows_of("abc", ["ann"] * 3))


def test_two_users_who_are_one_person_are_refused(parts):
    """Rows that are numbered by name would be two histories of one account."""
    rows = rows_of(users=["Ann", "Ann", "Ann", "ann", "ann"])
    with pytest.raises(InvalidInput, match=r'^users: got 2 users who are one person, "Ann"; expected rows numbered by'):
        released(batch(parts), rows)
    assert len(released(batch(parts, ledger=MemoryLedger("exact")), rows)) == 5


def test_gaps_are_predicted_through_and_recorded(parts):
    model = dphmm.MarkovModel(parts[0].initial, parts[0].transition, step=HOUR)
    times = np.array([0, 1, 5, 100, 101], dtype=np.int64) * HOUR * 10**6
    work = Batch(model, *parts[1:], 1, bits=dphmm.ReplayBits(1))
    rows = released(work, rows_of("abcab", ["u"] * 5, time=times))
    assert [row.release.t for row in rows] == [1, 2, 6, 101, 102]
    assert work.report.skipped_steps == 3 + 94
    assert [(e.t, e.kind, e.steps) for e in work.ledger.entries("u", "state")] == [
        (1, "release", 1),
        (2, "release", 1),
        (3, "skip", 3),
        (6, "release", 1),
        (7, "skip", 94),
        (101, "release", 1),
        (102, "release", 1),
    ]
    assert [row.time for row in rows] == times.tolist()


def test_published_times_are_starts_of_steps_and_the_last_row_of_a_step_wins(parts):
    model = dphmm.MarkovModel(parts[0].initial, parts[0].transition, step=HOUR)
    times = np.array([10, 1800, 3700], dtype=np.int64) * 10**6
    work = Batch(model, *parts[1:], 1, bits=dphmm.ReplayBits(1))
    rows = released(work, rows_of("abc", ["u"] * 3, time=times))
    assert [row.time for row in rows] == [0, HOUR * 10**6]
    assert work.report.same_step == 1


def test_known_users_need_resume_and_then_keep_their_answers(parts):
    ledger = MemoryLedger()
    first = released(batch(parts, 1, ledger=ledger), rows_of())
    with pytest.raises(InvalidInput, match="resume to continue them: a new ledger would answer the same steps"):
        released(batch(parts, 2, ledger=ledger), rows_of())
    longer = rows_of("abcabfe", ["u", "u", "u", "v", "v", "u", "w"])
    work = batch(parts, 3, ledger=ledger)
    again = released(work, longer, resume=True)
    assert [a for a in answers(again) if a[:2] in {x[:2] for x in answers(first)}] == answers(first)
    assert len(again) == 7
    assert work.report.replayed == 5
    assert ledger.spent("u").epsilon == 4


@pytest.mark.parametrize(
    ("steps", "later", "answered"), [([1, 4], [1, 2, 4, 5], [1, 4, 5]), ([5, 6], [3], [])], ids=["skipped", "before"]
)
def test_a_row_of_a_step_that_was_skipped_or_is_before_the_first_comes_too_late(parts, steps, later, answered):
    ledger = MemoryLedger()
    released(batch(parts, 1, ledger=ledger), rows_of("ab", ["u"] * 2, step=np.array(steps)))
    work = batch(parts, 2, ledger=ledger)
    rows = released(work, rows_of("abce"[: len(later)], ["u"] * len(later), step=np.array(later)), resume=True)
    assert [row.release.t for row in rows] == answered
    assert work.report.late == 1


def test_rows_by_time_are_continued_by_their_times(parts):
    """Tuesday's rows are not answered with Monday's releases, whether or not Monday's rows stand before them."""
    ledger = MemoryLedger()
    times = np.array([0, 1, 2, 24, 25], dtype=np.int64) * HOUR * 10**6
    monday = rows_of("abc", ["u"] * 3, time=times[:3])
    first = released(batch(parts, 1, ledger=ledger), monday)
    later = released(batch(parts, 2, ledger=ledger), rows_of("ab", ["u"] * 2, time=times[3:]), resume=True)
    assert [(row.release.t, row.time) for row in later] == [(4, times[3]), (5, times[4])]
    both = released(batch(parts, 1, ledger=ledger), rows_of("abcab", ["u"] * 5, time=times), resume=True)
    assert answers(both) == answers(first) + answers(later)
    assert [row.time for row in both] == times.tolist()


def test_stopped_between_chunks_it_resumes_to_the_same(parts, monkeypatch):
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 2)
    whole = answers(released(batch(parts, 9), rows_of()))
    ledger, bits = MemoryLedger(), dphmm.ReplayBits(9)
    stopped = Batch(*parts, 1, bits=bits, ledger=ledger).run(rows_of())
    next(stopped)
    del stopped
    assert sum(len(ledger.entries(*key)) for key in ledger.sessions()) == 2
    resumed = Batch(*parts, 1, bits=bits, ledger=ledger)
    assert answers(released(resumed, rows_of(), resume=True)) == whole


def test_a_chunk_that_fails_leaves_nothing(parts, monkeypatch):
    """The third release fails inside the second chunk: the first chunk stays, the second is gone."""
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 2)
    ledger = MemoryLedger()
    work = batch(parts, ledger=ledger, cap_cost=1)
    shown = []
    with pytest.raises(BudgetExceeded):
        for chunk in work.run(rows_of("abcab", ["u"] * 5)):
            shown += chunk
    stored = [e for key in ledger.sessions() for e in ledger.entries(*key)]
    assert len(stored) == len(shown)


def test_an_epsilon_cap_is_checked_for_all_rows_before_any(parts):
    ledger = MemoryLedger()
    with pytest.raises(BudgetExceeded, match="cap_epsilon"):
        released(batch(parts, ledger=ledger, cap_epsilon=2), rows_of())
    assert ledger.sessions() == []


def test_drift_has_a_row_like_any_other(parts):
    """Names that no state has are released, and counted for the owner alone."""
    work = batch(parts)
    rows = released(work, rows_of("aQcZb"))
    assert len(rows) == 5
    assert work.report.drifted == work.report.outside == 2


@pytest.mark.replayed_words
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_come_back_in_kind_and_are_not_changed(parts, kind):
    frame = pd.DataFrame({"user": ["u", "v", "u"], "state": ["a", "b", "c"]}, index=[7, 8, 9])
    before = frame.copy()
    table = frame
    if kind == "polars":
        table = pytest.importorskip("polars").DataFrame({"user": ["u", "v", "u"], "state": ["a", "b", "c"]})
    if kind == "arrow":
        import pyarrow as pa

        table = pa.table({"user": ["u", "v", "u"], "state": ["a", "b", "c"]})
    out = dphmm.release_many(table, *parts, 1, progress=False)
    assert type(out) is type(table)
    names = list(out.columns) if kind != "arrow" else out.column_names
    assert names == ["user", "step", "z_0", "epsilon", "cost", "plan"]
    assert len(out) == 3
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    "at, words",
    [("3", r"^1 of 2 people have no answer: none of"), ("5", r"^no answer was published: no row lies at"), ("1", None)],
)
def test_people_whom_the_schedule_never_asked_are_told_of(parts, at, words, recwarn):
    table = pd.DataFrame({"user": ["u"] * 3 + ["v"] * 2, "step": [1, 2, 3, 1, 2], "state": list("abcab")})
    schedule = dphmm.accounting.Schedule(dphmm.SequencePromise(1, steps=5), 1, [int(at)])
    # Without a look ahead: a table of which nobody would be asked is not begun.
    unseen = {"bits": dphmm.ReplayBits(1), "progress": False, "check": False}
    found = dphmm.release_many(table, *parts, schedule=schedule, **unseen)
    assert len(found) == 5
    if words is None:
        assert not recwarn
    else:
        told = recwarn.pop(UserWarning)
        assert re.search(words, str(told.message)) and told.filename == __file__


@pytest.mark.replayed_words
def test_progress_is_told(parts):
    seen = []
    frame = pd.DataFrame({"user": ["u", "v", "u"], "state": ["a", "b", "c"]})
    dphmm.release_many(frame, *parts, 1, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3, 3)


@pytest.mark.parametrize(
    ("frame", "field"),
    [
        ({"user": ["u"], "lat": [1.0], "lon": [2.0]}, "lat, lon"),
        ({"user": ["u"]}, "place"),
        ({"state": ["a"]}, "user"),
        ({"user": ["u", None], "state": ["a", "b"]}, "table"),
    ],
)
def test_tables_that_cannot_be_meant(parts, frame, field):
    with pytest.raises(InvalidInput, match=field):
        dphmm.release_many(pd.DataFrame(frame), *parts, 1, progress=False)


def uneven(seed=2):
    """Users of different lengths and beginnings, with gaps."""
    rng = np.random.default_rng(seed)
    names, steps = [], []
    for user, count in enumerate([1, 12, 3, 7, 1]):
        names += [f"u{user}"] * count
        steps += (10 * user + np.cumsum(rng.choice([1, 1, 3], count))).tolist()
    states = [str(x) for x in rng.choice(list("abcdefQ"), len(names))]
    return Trajectories.from_labels(names, state=np.array(states, dtype=object), step=np.array(steps))


@pytest.mark.parametrize(
    "choices",
    [{}, {"constraint": "delta=0.2"}, {"cap_epsilon": 100, "cap_cost": 900}],
)
@pytest.mark.parametrize("chunk", [1, 5, 10**6])
def test_whatever_the_choices_a_batch_is_its_sessions(parts, choices, chunk, monkeypatch):
    """Together or one by one: resumed sessions compute from its ledger what it published."""
    monkeypatch.setattr("dphmm.release.batch.CHUNK", chunk)
    work = batch(parts, 3, **choices)
    rows = released(work, uneven())
    sessions = {user: work.resumed(user) for user, _ in work.ledger.sessions()}
    expected = [(user, r) for user, session in sessions.items() for r in session.releases]
    assert answers(rows) == [(user, r.t, r.z.tolist()) for user, r in expected]
    assert [row.release.plan_hash for row in rows] == [r.plan_hash for _, r in expected]
    skipped = sum(e.steps for key in work.ledger.sessions() for e in work.ledger.entries(*key) if e.kind == "skip")
    assert work.report.skipped_steps == skipped
    drifted = sum(state == "Q" for state in uneven().state.tolist())
    assert work.report.drifted >= drifted == work.report.outside


@pytest.mark.replayed_words
def test_another_query_of_a_user_is_asked_for_its_partners(parts, monkeypatch):
    """One that was there before, and one that comes between two transactions of the batch."""
    ledger = MemoryLedger()
    island = (parts[0], dphmm.policy.from_edges([[0, 1], [1, 2], [3, 4]], N), parts[2])

    def beside(user, state):
        session = dphmm.ReleaseSession(*island, 1, subject=user, query="work", ledger=ledger, origin="0")
        session.release(state)
        return session

    assert len(beside("v", "a").releases) == 1
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 1)
    work = Batch(*island, 1, ledger=ledger, bits=dphmm.ReplayBits(1))
    rows, between = [], None
    for chunk in work.run(rows_of("abab", ["u", "u", "v", "v"], step=np.array([0, 1, 0, 1]))):
        rows += chunk
        between = between or beside("u", "b")
    assert len(rows) == 4
    for user, t in (("u", 1), ("v", 1)):
        ours, theirs = (ledger.entries(user, query)[t - 1].plan_hash for query in ("state", "work"))
        given = [json.loads(ledger.plan(plan).description)["given_partners"] for plan in (ours, theirs)]
        assert sorted(map(bool, given)) == [False, True]


def test_an_answer_that_another_process_stored_first_is_the_answer(parts):
    """It released the same steps while this batch was between reading the ledger and its transaction."""
    ledger = MemoryLedger()
    work = batch(parts, 1, ledger=ledger)
    truly, other = MemoryLedger.transaction, batch(parts, 2, ledger=ledger)
    raced = []

    def transaction(self, subjects=()):
        if not raced:
            raced.append(True)
            raced.extend(answers(released(other, rows_of())))
        return truly(self, subjects)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryLedger, "transaction", transaction)
        rows = released(work, rows_of())
    assert answers(rows) == raced[1:]
    assert (work.report.replayed, work.report.drifted) == (5, 0)
    assert ledger.spent("u").epsilon == 3


def test_rows_that_pass_a_new_promise_are_refused_where_nothing_more_is_asked(parts):
    ledger = MemoryLedger()
    released(batch(parts, 1, ledger=ledger), rows_of("abc", ["u"] * 3))
    later = batch(parts, 1, ledger=ledger, promise=dphmm.SequencePromise(2, steps=9))
    with pytest.raises(BudgetExceeded, match='the stored answers of subject "u" exceed 2 over 9 steps'):
        released(later, rows_of("abc", ["u"] * 3), resume=True)


def test_a_cap_that_one_user_passes_stops_the_transaction_before_any_draw(parts):
    bits = dphmm.ReplayBits(1)
    work = Batch(*parts, 1, bits=bits, cap_cost=20)
    with pytest.raises(BudgetExceeded, match='for subject "u" requested'):
        released(work, rows_of("abcab" * 20, ["v"] + ["u"] * 99))
    assert work.ledger.sessions() == []
    assert work.report.released == work.report.drifted == 0
    assert bits.uint64(1) == dphmm.ReplayBits(1).uint64(1)


def test_a_table_without_times_is_refused_where_the_model_has_time_steps():
    """Ranks of rows are no time bins: a gap would be published as one step."""
    model = dphmm.MarkovModel(np.full(2, 0.5), np.full((2, 2), 0.5), step=300)
    table = pd.DataFrame({"user": ["a", "a"], "state": ["0", "1"], "tt": [1, 2]})
    with pytest.raises(InvalidInput, match=r"t: got no times; expected a column t"):
        dphmm.release_many(table, model, dphmm.policy.complete(2), dphmm.StateSpace([0, 1]), 1)


def test_choices_and_ledgers_that_are_none_are_refused_by_name():
    model, policy, space = dphmm.MarkovModel([1, 0], np.full((2, 2), 0.5)), dphmm.policy.complete(2), [0, 1]
    keywords = set(inspect.signature(Batch).parameters) - {"model", "policy", "space", "epsilon", "choices"}
    assert keywords | PlanChoices.__optional_keys__ == BatchChoices.__optional_keys__
    assert {one.name for one in dataclasses.fields(Options)} - {"epsilon"} == PlanChoices.__optional_keys__
    with pytest.raises(InvalidInput, match="leger: got an unknown choice"):
        Batch(model, policy, dphmm.StateSpace(space), 1, leger=None)
    with pytest.raises(InvalidInput, match=r"ledger: got str; expected a ledger: dphmm.open_ledger"):
        Batch(model, policy, dphmm.StateSpace(space), 1, ledger="ledger.db")
    with pytest.raises(InvalidInput, match=r"ledger: got str"):
        dphmm.ReleaseSession(model, policy, dphmm.StateSpace(space), 1, ledger="ledger.db")


def test_another_map_than_the_models_is_refused():
    """A map beside the model's own would answer everybody from its edge; other answers of its states are a query."""
    here, east = (dphmm.Grid.from_bounds(west, 52.0, west + 0.05, 52.03, cell=1000.0) for west in (13.0, 14.0))
    n = here.n_states
    assert here.digest != east.digest and n == east.n_states
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=here)
    with pytest.raises(InvalidInput, match="space: got another map"):
        dphmm.ReleaseSession(model, dphmm.policy.complete(n), east, 1)
    dphmm.ReleaseSession(model, dphmm.policy.complete(n), dphmm.StateSpace(np.arange(n)), 1, query="row")


def test_a_refusal_that_answers_bring_about_keeps_them():
    """Costs of delta-sets follow the answers. Drawn again until no cap is passed, the answers would be selected."""
    parts, rows = moving(), rows_of("aaafff", ["u", "u", "u", "v", "v", "v"])
    refused = 0
    for seed in range(20):
        whole = batch(parts, seed, constraint=dphmm.policy.DeltaSet(0.3))
        free = answers(released(whole, rows))
        work = batch(parts, seed, constraint=dphmm.policy.DeltaSet(0.3), cap_cost=7)
        shown = []
        try:
            for chunk in work.run(rows):
                shown += answers(chunk)
        except BudgetExceeded:
            refused += 1
            assert 0 < len(shown) < 6
            # Whoever asks again, with other words, has the same refusal, and the answers stay.
            stored = [work.ledger.entries(user, "state") for user in "uv"]
            again = batch(parts, 99 + seed, constraint=dphmm.policy.DeltaSet(0.3), cap_cost=7, ledger=work.ledger)
            with pytest.raises(BudgetExceeded):
                list(again.run(rows, resume=True))
            assert [work.ledger.entries(user, "state") for user in "uv"] == stored
        assert shown == [row for row in free if row in shown]
    assert 0 < refused < 20


@pytest.fixture(params=["memory", "file"])
def kept(request, tmp_path):
    """A ledger of each kind."""
    if request.param == "memory":
        yield MemoryLedger()
        return
    with open_ledger(tmp_path / "l.db") as opened:
        yield opened


def moving():
    """A model whose delta-sets hang on answers."""
    space = dphmm.StateSpace(np.arange(N)[:, None], names=list("abcdef"))
    model = dphmm.MarkovModel(np.full(N, 1 / N), 0.8 * np.eye(N) + 0.2 / N)
    return model, dphmm.policy.radius(space, 1), space


def walks(steps):
    """The rows of four users."""
    return rows_of("abcdef"[:steps] * 4, np.repeat(list("uvwx"), steps).tolist())


@pytest.mark.parametrize("schedule", [False, True], ids=["resumed", "planned"])
def test_caps_of_who_is_refused_before_a_draw_do_not_stay(schedule, kept):
    """Though steps before were stored already, or were skipped."""
    delta, promise = {"constraint": dphmm.policy.DeltaSet("0.3"), "ledger": kept}, dphmm.SequencePromise(2, steps=5)
    planned = {"schedule": dphmm.accounting.Schedule(promise, 1, [2, 3]), "epsilon": None} if schedule else {}
    if not schedule:
        list(batch(moving(), 1, **delta).run(walks(2)))
    before = {key: kept.entries(*key) for key in kept.sessions()}
    with pytest.raises(BudgetExceeded):
        list(batch(moving(), 1, cap_cost="0.5", **planned, **delta).run(walks(5), resume=not schedule))
    assert {key: kept.entries(*key) for key in kept.sessions()} == before
    assert [user for user in "uvwx" if kept.caps(user).cost is not None] == []
    mended = batch(moving(), 1, cap_cost=100, **planned, **delta)
    assert sum(len(chunk) for chunk in mended.run(walks(5), resume=not schedule)) == 4 * 5


def test_caps_are_kept_of_who_has_no_new_rows(kept):
    delta = {"constraint": dphmm.policy.DeltaSet("0.3"), "ledger": kept}
    list(batch(moving(), 1, **delta).run(walks(5)))
    again = batch(moving(), 2, cap_cost=90, **delta)
    assert sum(len(chunk) for chunk in again.run(walks(5), resume=True)) == 4 * 5
    assert [user for user in "uvwx" if kept.caps(user).cost != 90] == []


def test_a_cap_of_the_account_refuses_the_table_before_anything_is_drawn(parts):
    """It was given with the first table and is not given again; the last user of a long table would pass it."""
    ledger = MemoryLedger()
    released(batch(parts, 1, ledger=ledger, cap_epsilon=4), rows_of("ab", ["u", "v"], step=np.array([1, 1])))
    before = {user: ledger.spent(user) for user in "uv"}
    more = rows_of("aabcde", ["u", *"vvvvv"], step=np.array([1, *range(1, 6)]))
    with pytest.raises(BudgetExceeded, match=r"^cap_epsilon: user .v. needs 4 for 5 rows; spent 1 of 4"):
        released(batch(parts, 2, ledger=ledger), more, resume=True)
    assert {user: ledger.spent(user) for user in "uv"} == before


def test_answers_to_other_rows_leave_no_room_below_a_cap(parts, monkeypatch):
    """The answers that the last user has are of other steps: new ones cost, and none is drawn for the first."""
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 2)
    ledger = MemoryLedger()
    released(batch(parts, 1, ledger=ledger, cap_epsilon=3), rows_of("ab", ["v", "v"], step=np.array([1, 2])))
    more = rows_of("abab", ["u", "u", "v", "v"], step=np.array([1, 2, 3, 4]))
    with pytest.raises(BudgetExceeded, match=r"^cap_epsilon: user .v. needs 2 for 2 rows; spent 2 of 3"):
        released(batch(parts, 2, ledger=ledger, cap_epsilon=3), more, resume=True)
    assert ledger.sessions() == [("v", "state")] and ledger.spent("v").epsilon == 2


def test_a_promise_that_is_given_refuses_the_table_before_anything_is_drawn(parts, monkeypatch):
    """The last user of a long table would break it, in another transaction than the first."""
    monkeypatch.setattr("dphmm.release.batch.CHUNK", 2)
    ledger = MemoryLedger()
    rows = rows_of("ababc", [*"uu", *"vvv"], step=np.array([1, 2, 1, 2, 3]))
    with pytest.raises(BudgetExceeded, match=r"promise: step 3 .* for subject .v. requested 1; 0 is left there"):
        released(batch(parts, 1, ledger=ledger, promise=dphmm.SequencePromise(2, steps=9)), rows)
    assert ledger.sessions() == []


def test_blocks_of_steps_begin_at_step_1(parts):
    """A statement does not say that a block began before: its rows would seem to break the promise."""
    promise = dphmm.SequencePromise(2, per=4, passed=2)
    for made in (
        lambda: Batch(*parts, 1, promise=promise),
        lambda: dphmm.ReleaseSession(*parts, 1, promise=promise),
        lambda: dphmm.choose.plan(*parts, promise),
        lambda: Batch(*parts, schedule=dphmm.accounting.Schedule(promise, 1, [1, 2])),
    ):
        with pytest.raises(InvalidInput, match="promise: got passed=2; expected a promise without it"):
            made()


class TestOutput:
    """`release_many` into a file, with the statement beside it, as the command writes them."""

    table = pd.DataFrame({"user": ["u", "u", "u", "v", "v"], "step": [1, 2, 3, 1, 2], "state": list("abcab")})

    def into(self, parts, path, ledger, seed=1, **choices):
        return dphmm.release_many(
            self.table, *parts, 1, output=path, ledger=ledger, bits=dphmm.ReplayBits(seed), progress=False, **choices
        )

    @pytest.mark.parametrize("name", ["released.parquet", "released.csv"])
    def test_the_file_has_the_rows_and_its_statement_is_that_of_the_command(self, parts, tmp_path, name, monkeypatch):
        path = tmp_path / name
        frame = self.into(parts, path, MemoryLedger(), model_people="others")
        written = dphmm.storage.tables.read_table(path).to_pandas()
        columns = ["user", "step", "z_0", "epsilon", "cost", "plan"]
        pd.testing.assert_frame_equal(written[columns], frame[columns], check_dtype=False)
        statement = json.loads((tmp_path / f"{name}.privacy.json").read_text())

        model, policy, space = parts
        model = dphmm.MarkovModel(model.initial, model.transition, space=space)
        dphmm.storage.save_model(model, tmp_path / "m.npz")
        dphmm.storage.save_policy(policy, tmp_path / "p.json", model=model)
        self.table.to_csv(tmp_path / "people.csv", index=False)
        monkeypatch.setattr("dphmm.release.batch.default_bits", lambda bits: dphmm.ReplayBits(1))
        words = ["release", tmp_path / "people.csv", "--model", tmp_path / "m.npz", "--policy", tmp_path / "p.json"]
        words += ["--epsilon", "1", "--ledger", tmp_path / "l.db", "--model-people", "others", "--quiet", "--yes"]
        result = CliRunner().invoke(
            app, [str(word) for word in [*words, "-o", tmp_path / "by", "--format", name.partition(".")[2]]]
        )
        assert result.exit_code == 0, result.output
        by_command = json.loads((tmp_path / "by" / f"{name}.privacy.json").read_text())
        assert statement == by_command
        counts = json.loads((tmp_path / f"{name}.owner.json").read_text())
        own = json.loads((tmp_path / "by.owner" / "counts.json").read_text())
        assert counts == own and counts["rows"] == 5

    def test_rows_in_no_state_are_counted_for_the_owner_alone(self, tmp_path):
        """60 % of the rows of a table lay outside the box, and nothing told of it."""
        grid = dphmm.Grid.from_bounds(13.30, 52.48, 13.31, 52.49, cell=500.0)
        n = grid.n_states
        model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
        table = pd.DataFrame({"user": ["u"] * 3, "step": [1, 2, 3], "lat": [52.485, 52.6, 52.485], "lon": [13.305] * 3})
        path = tmp_path / "r.parquet"
        public = model, dphmm.policy.complete(n), grid, 1
        given = {"output": path, "bits": dphmm.ReplayBits(1), "progress": False}
        dphmm.release_many(table, *public, ledger=MemoryLedger(), **given)
        counts = json.loads((tmp_path / "r.parquet.owner.json").read_text())
        assert (counts["rows"], counts["rows_in_no_state"], counts["new_releases"]) == (3, 1, 3)
        assert (tmp_path / "r.parquet.owner.json").stat().st_mode & 0o077 == 0

    def test_a_file_that_is_there_is_rewritten_with_resume_alone(self, parts, tmp_path):
        path, ledger = tmp_path / "r.parquet", MemoryLedger()
        first = self.into(parts, path, ledger)
        before = path.read_bytes()
        with pytest.raises(InvalidInput, match=r"output: .*exists"):
            self.into(parts, path, MemoryLedger())
        with pytest.raises(InvalidInput, match=r"a ledger without the releases in r\.parquet of 2 users, 'u'"):
            self.into(parts, path, MemoryLedger(), resume=True)
        assert path.read_bytes() == before
        assert self.into(parts, path, ledger, seed=2, resume=True).equals(first)
        assert path.read_bytes() == before

    def test_what_cannot_be_written_is_refused_before_anything_is_drawn(self, parts, tmp_path):
        ledger = MemoryLedger()
        for path, field in ((tmp_path / "no" / "r.csv", "output"), (tmp_path / "r.txt", "output")):
            with pytest.raises(InvalidInput, match=field):
                self.into(parts, path, ledger)
        with pytest.raises(InvalidInput, match="model_people"):
            self.into(parts, tmp_path / "r.csv", ledger, model_people="friends")
        with pytest.raises(InvalidInput, match="model_people"):
            self.into(parts, None, ledger, model_people="others")
        assert ledger.entries("u", "state") == []
        assert not (tmp_path / "r.csv").exists()

    def test_a_run_that_fails_leaves_no_file(self, parts, tmp_path, monkeypatch):
        monkeypatch.setattr("dphmm.release.batch.CHUNK", 2)
        with pytest.raises(BudgetExceeded):
            self.into(parts, tmp_path / "r.csv", MemoryLedger(), cap_cost=1)
        assert not list(tmp_path.iterdir())
