"""The ledger of a release table: restored from files it is the ledger that a run would have gone on with."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.release.batch import Batch
from dphmm.session.releases import Releases
from dphmm.states.trajectory import Trajectories
from dphmm.storage.release_table import ReleaseTable, write_rows
from dphmm.storage.released import released_table
from dphmm.storage.table_ledger import ledger_of, opened_to_read, with_ledger
from zone_tables import town_with_the_clocks_of

N = 6
SPACE = dphmm.StateSpace(np.arange(N)[:, None], names=list("abcdef"))
RING = 0.6 * np.eye(N) + 0.2 * np.roll(np.eye(N), 1, axis=1) + 0.2 * np.roll(np.eye(N), -1, axis=1)
MODEL = dphmm.MarkovModel(np.full(N, 1 / N), RING)
POLICY = dphmm.policy.radius(SPACE, 1)

BERLIN = dphmm.SequencePromise(2, per="1d", zone="Europe/Berlin")
#: What is released under, by name.
KINDS = {
    "support": {},
    "caps": {"cap_epsilon": 40, "cap_cost": 500},
    "promise": {"epsilon": None, "promise": dphmm.SequencePromise(6, window=3)},
    "schedule": {
        "epsilon": None,
        "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(2, per=5, passed=0), 1, [2, 5]),
    },
    "paced": {
        "epsilon": None,
        "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(2, per=5, passed=0), 1, [1, 2, 3, 5], [0.5, 0.2]),
    },
    "local days": {
        "epsilon": None,
        "schedule": dphmm.accounting.Schedule(BERLIN, 1, hours=["07:00", "13:00"]),
        "step": 4 * 3600,
    },
    "delta": {"constraint": dphmm.policy.DeltaSet(0.02)},
    "choices": {"step_choices": {2: {"epsilon": "0.3"}, 5: {"epsilon": "0.3"}}},
}


def rows(seed, users, first, last, skipped=0.3, step=None):
    """Rows of users at some of the steps first..last, each user at the step ``first`` of the world at least once.

    Of a model with a step the first one begins in May 2024.
    """
    begins = 0 if step is None else 1_714_953_600 // step
    random = np.random.default_rng(seed)
    owner, steps, state = [], [], []
    for user in users:
        for t in range(first, last + 1):
            if t == 1 or random.random() >= skipped:
                owner.append(user)
                steps.append(t + begins)
                state.append("abcdef"[random.integers(N)])
    return Trajectories.from_labels(owner, state=np.array(state, dtype=object), step=np.array(steps))


def batch(ledger, seed, query="state", epsilon=1, step=None, **choices):
    model = dphmm.MarkovModel(np.full(N, 1 / N), RING, step=step)
    return Batch(model, POLICY, SPACE, epsilon, query=query, ledger=ledger, bits=dphmm.ReplayBits(seed), **choices)


def released(work, table, resume=False):
    parts = [part for part in work.run(table, resume=resume) if isinstance(part, Releases)]
    return Releases.joined(parts)


def file_of(work, found, last):
    """The rows behind the ``last`` step of each user as a file holds them, read from its bytes."""
    fresh = np.array([t > last.get(user, 0) for user, t in zip(found.users, found.t.tolist(), strict=True)])
    kept = found.taken(fresh)
    known = {user for user, t in last.items() if t}
    stream = io.BytesIO()
    pq.write_table(with_ledger(released_table(kept, SPACE), kept, work.ledger, work.setting.query, known), stream)
    return work.setting.query, pq.read_table(stream)


def told(ledger):
    """All that a ledger says, without snapshots."""
    keys = ledger.sessions()
    users = sorted({user for user, _ in keys})
    entries = {key: ledger.entries(*key) for key in keys}
    plans = {e.plan_hash: ledger.plan(e.plan_hash) for own in entries.values() for e in own if e.plan_hash}
    return (
        entries,
        {key: ledger.header(*key).options for key in keys},
        {user: ledger.spent(user) for user in users},
        {user: (ledger.caps(user), ledger.blocks(user)) for user in users},
        plans,
    )


def lasts(ledger, query):
    return {user: ledger.entries(user, other)[-1].through for user, other in ledger.sessions() if other == query}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_goes_on_from_files_is_one_that_never_stopped(kind, seed):
    choices, users = KINDS[kind], ["ann", "bob", "eve"]
    whole, parts, ledger = MemoryLedger(), [], MemoryLedger()
    for number, (first, last) in enumerate([(1, 4), (5, 7), (8, 12)]):
        table = rows(10 * seed + number, users, first, last, step=choices.get("step"))
        expected = released(batch(whole, number, **choices), table, resume=True)
        before = lasts(ledger, "state")
        work = batch(ledger, number, **choices)
        found = released(work, table, resume=True)
        assert np.array_equal(found.z_lattice, expected.z_lattice)
        parts.append(file_of(work, found, before))
        ledger = ledger_of(parts, users)
        assert told(ledger) == told(whole)
    assert (kind == "local days") == any(ledger.blocks(user) for user in users)


def test_blocks_of_local_days_are_those_that_were_stored(tmp_path):
    """A newer zone table moves none of them: the table's ledger has the bounds of the day of its first answer."""
    with town_with_the_clocks_of(tmp_path, "Europe/Berlin") as town:
        promise = dphmm.SequencePromise(40, per="1d", zone=town)
        work = batch(MemoryLedger(), 1, promise=promise, step=3600)
        part = file_of(work, released(work, rows(1, ["ann"], 1, 40, skipped=0.5, step=3600)), {})
        stored = work.ledger.blocks("ann")
        assert len(stored) == 2
    with town_with_the_clocks_of(tmp_path, "Asia/Tokyo"):
        ledger = ledger_of([part], ["ann"])
        assert told(ledger) == told(work.ledger)
        assert ledger.blocks("ann") == stored != batch(MemoryLedger(), 1).ledger.blocks("ann")


def test_every_query_of_a_user_is_restored():
    whole, parts, ledger = MemoryLedger(), [], MemoryLedger()
    for number, (query, first, last) in enumerate([("state", 1, 3), ("again", 1, 4), ("state", 4, 6)]):
        table = rows(number, ["ann", "bob"], first, last, skipped=0)
        expected = released(batch(whole, number, query), table, resume=True)
        before = lasts(ledger, query)
        work = batch(ledger, number, query)
        found = released(work, table, resume=True)
        assert np.array_equal(found.z_lattice, expected.z_lattice)
        parts.append(file_of(work, found, before))
        ledger = ledger_of(parts, ["ann", "bob"])
    assert told(ledger) == told(whole)


def test_rows_of_others_are_left_out_and_plans_that_they_had_first_are_not():
    work = batch(MemoryLedger(), 1)
    part = file_of(work, released(work, rows(1, ["ann", "zoe"], 1, 4)), {})
    assert part[1].column("ledger_plan").drop_null().to_pylist()
    ledger = ledger_of([part], ["zoe"])
    assert ledger.sessions() == [("zoe", "state")]
    assert ledger.entries("zoe", "state") == work.ledger.entries("zoe", "state")


def test_a_person_is_found_however_spelt():
    """By the rule of the table: by the other one somebody else is meant, of whom nothing is stored."""
    work = batch(MemoryLedger(), 1)
    part = file_of(work, released(work, rows(1, ["Zo\u00eb", "ann"], 1, 4)), {})
    ledger = ledger_of([part], [" zoe\u0308"])
    assert ledger.sessions() == [("Zo\u00eb", "state")]
    assert ledger.names_of(["ZO\u00cb"]) == ["Zo\u00eb"]
    assert ledger_of([part], [" zoe\u0308"], "exact").sessions() == []
    assert ledger_of([part], ["ann"], "exact").spelling == "exact"


def test_a_cap_that_was_kept_stays():
    work = batch(MemoryLedger(), 1, cap_epsilon=5)
    part = file_of(work, released(work, rows(1, ["ann"], 1, 4, skipped=0)), {})
    again = batch(ledger_of([part], ["ann"]), 2)
    with pytest.raises(BudgetExceeded):
        released(again, rows(2, ["ann"], 5, 8, skipped=0), resume=True)


def test_rows_of_no_user_make_an_empty_ledger():
    assert ledger_of([], ["ann"]).sessions() == []


def _changed(rows, name, change):
    place = rows.column_names.index(name)
    column = rows.column(name).to_pylist()
    return rows.set_column(place, name, pa.array(change(column), rows.schema.field(name).type))


DAMAGE = {
    "no session": lambda rows: _changed(rows, "ledger_session", lambda column: [None] * len(column)),
    "no plan": lambda rows: _changed(rows, "ledger_plan", lambda column: [None] * len(column)),
    "a column": lambda rows: rows.drop_columns(["ledger_terms"]),
    "one step twice": lambda rows: _changed(rows, "step", lambda column: [1] * len(column)),
    "a step before the first": lambda rows: _changed(rows, "step", lambda column: [0, *column[1:]]),
    "terms": lambda rows: rows.set_column(
        rows.column_names.index("ledger_terms"), "ledger_terms", pa.array(["{}"] * len(rows))
    ),
    "a plan set": lambda rows: _changed(
        rows,
        "ledger_plan",
        lambda column: [text and text.replace('"n_states": 6', '"n_states": 60') for text in column],
    ),
    "a cap of another version": lambda rows: _changed(
        rows, "ledger_caps", lambda column: ['{"horizon": "10"}', *column[1:]]
    ),
    "an option of another version": lambda rows: _changed(
        rows,
        "ledger_session",
        lambda column: [text and text.replace("{", '{"scope": "component", ', 1) for text in column],
    ),
    "text": lambda rows: _changed(rows, "ledger_session", lambda column: [text and "{" for text in column]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_dphmm_did_not_write_so_is_refused_without_its_content(damage):
    work = batch(MemoryLedger(), 1)
    query, part = file_of(work, released(work, rows(1, ["ann"], 1, 4)), {})
    with pytest.raises(InvalidInput) as refused:
        ledger_of([(query, DAMAGE[damage](part))], ["ann"])
    assert (
        str(refused.value)
        == "table: got a damaged history; expected rows as dphmm wrote them; restore the table from a copy"
    )


def committed(folder, query="state", jobs=2, spellings=("same", "same"), **choices):
    """A release table of so many jobs, each of more steps, as a cluster writes it; and the ledger of one process."""
    table, ledger, last = ReleaseTable.open(folder), MemoryLedger(), {}
    for job in range(jobs):
        work = batch(ledger, job, query, **choices)
        found = released(work, rows(job, ["u1", "u2"], 1, 3 * (job + 1)), resume=True)
        _, content = file_of(work, found, last)
        last = {user: ledger.entries(user, query)[-1].through for user in ("u1", "u2")}
        turn = table.begin({}, holder="driver", seconds=60)
        turn.commit([write_rows(content, turn.entry_path(0))], {"query": query, "spelling": spellings[job]})
    return table, ledger


@pytest.mark.replayed_words
class TestOpenedToRead:
    @pytest.mark.parametrize(
        ("spellings", "said"),
        [(("same", "exact"), "several rules"), ((None, None), "damaged"), (("x", "x"), "damaged")],
    )
    def test_a_table_has_one_rule_of_spelling(self, tmp_path, spellings, said):
        committed(tmp_path / "table", spellings=spellings)
        with pytest.raises(InvalidInput, match=f"^table: got .*{said}"), opened_to_read(tmp_path / "table"):
            pass

    def test_a_table_is_the_ledger_of_its_committed_rows(self, tmp_path):
        table, ledger = committed(tmp_path / "table", cap_epsilon=40)
        # What is written and not committed is no part of it.
        turn = table.begin({}, holder="driver", seconds=60)
        write_rows(pa.table({"user": ["u9"], "step": [1]}), turn.entry_path(0))
        with opened_to_read(tmp_path / "table") as found:
            assert told(found) == told(ledger) and len(found.sessions()) == 2
            assert [found.caps(user) for user in ("u1", "u2")] == [ledger.caps(user) for user in ("u1", "u2")]

    def test_a_file_of_it_that_changed_is_refused(self, tmp_path):
        table, _ = committed(tmp_path / "table")
        (path, _) = table.paths()
        path.write_bytes(path.read_bytes()[:-9] + b"123456789")
        with pytest.raises(InvalidInput, match="expected"), opened_to_read(tmp_path / "table"):
            pass

    def test_a_table_without_the_columns_of_a_ledger_is_refused_in_one_line(self, tmp_path):
        table = ReleaseTable.open(tmp_path / "table")
        turn = table.begin({}, holder="driver", seconds=60)
        turn.commit([write_rows(pa.table({"z": [1]}), turn.entry_path(0))], {})
        with pytest.raises(InvalidInput, match=r"^table: got a damaged history"), opened_to_read(tmp_path / "table"):
            pass

    @pytest.mark.parametrize("name", ["none", "folder", "empty"])
    def test_what_is_no_ledger_is_refused_and_nothing_is_made(self, tmp_path, name):
        (tmp_path / "folder").mkdir()
        (tmp_path / "empty").write_bytes(b"")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InvalidInput, match=r"^ledger: got .*; expected a"), opened_to_read(tmp_path / name):
            pass
        assert sorted(tmp_path.rglob("*")) == before


def test_a_promise_that_is_given_late_has_the_blocks_of_answers_before_it(tmp_path):
    """They are in no earlier file; made again from a newer zone table, a day could have another promise's worth."""
    whole, ledger = rows(3, ["ann"], 1, 12, step=4 * 3600), MemoryLedger()
    first = whole.take(np.flatnonzero(whole.step < whole.step[4]))
    with town_with_the_clocks_of(tmp_path, "Europe/Berlin") as town:
        without = batch(ledger, 1, step=4 * 3600)
        parts = [file_of(without, released(without, first), {})]
        last = {"ann": ledger.entries("ann", "state")[-1].through}
        late = batch(ledger, 2, step=4 * 3600, promise=dphmm.SequencePromise(40, per="1d", zone=town))
        parts.append(file_of(late, released(late, whole, resume=True), last))
        blocks = ledger.blocks("ann")
        assert blocks[0][1] <= int(ledger.header("ann", "state").options["origin"]) + last["ann"]
    with town_with_the_clocks_of(tmp_path, "Asia/Tokyo"):
        assert ledger_of(parts, ["ann"]).blocks("ann") == blocks
