"""`check_release` finds every tampering with a finished release, and nothing in a right one.

Claims: releases of every kind are acquitted with their ledger, whichever of their options is not repeated, and are not
convicted without it, nor by `verify_release.py` alone; a changed answer, a row that the ledger does not hold, another
plan, a column too many, notes in the file, a changed epsilon, cost, statement, account or charge and
replayable noise that is not stated are each convicted by the check that names them. All of it is
deterministic but for the noise, and no claim hangs on that.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely.geometry import box

import dphmm
from audit.small import MODEL, POLICY, SPACE
from crafted_bits import keyed_system_bits
from dphmm.audit import check_release
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch
from dphmm.statement.files import statement_path, write_statement
from dphmm.storage.released import FileSums, released_table
from dphmm.storage.tables import write_table
from dphmm.storage.trajectories import load_trajectories
from running_example import TRANSITION

NO_LEDGER = "ledger: no ledger, so rows may be there that were never paid for: name it by --ledger"
NAMES = ["home", "work", "gym", "shop"]
OF_LABELS = {
    "space": dphmm.StateSpace.labels(NAMES),
    "model": dphmm.MarkovModel(np.full(4, 0.25), np.full((4, 4), 0.25), space=dphmm.StateSpace.labels(NAMES)),
    "policy": dphmm.policy.from_edges([[0, 1], [1, 2], [2, 3]], 4),
    "table": pd.DataFrame([(user, step, NAMES[step % 4]) for user in "ab" for step in range(5)]).set_axis(
        ["user", "step", "state"], axis=1
    ),
}
TIMED = dphmm.Grid(10.0, 50.0, 10.056, 50.036, 1000)


def on_a_map(**options):
    """A release of places on a map at times 5 minutes apart."""
    n, rng = TIMED.n_states, np.random.default_rng(1)
    times = pd.date_range("2024-05-06T08:01", periods=9, freq="5min", tz="UTC")
    places = {"lat": rng.uniform(50, 50.03, 9), "lon": rng.uniform(10, 10.05, 9)}
    return {
        "space": TIMED,
        "model": dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), step=300),
        "policy": dphmm.policy.radius(TIMED, 1500),
        "table": pd.DataFrame({"user": "ann", "t": times, **places}),
        **options,
    }


def of_pairs():
    """The running example as a chain over pairs of states: who moves as before is hidden by where they are."""
    pairs = np.argwhere(TRANSITION > 0)
    follows = (pairs[:, 1][:, None] == pairs[:, 0]) * TRANSITION[pairs[:, 1]][:, pairs[:, 1]]
    return dphmm.MarkovModel(np.full(len(pairs), 1 / len(pairs)), follows, secrets=pairs[:, 1])


ZONES = dphmm.states.Zones(list("abcdef"), [box(10 + x, 50 + y, 11 + x, 51 + y) for x in range(3) for y in range(2)])
KINDS = {
    "support": {},
    "nearest neighbours": {"policy": dphmm.policy.knn(SPACE, 2)},
    "two policies": {"policy": dphmm.policy.union(POLICY, dphmm.policy.radius(SPACE, 2))},
    "zones": {
        "space": ZONES,
        "model": dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6)),
        "policy": dphmm.policy.complete(6),
        "table": pd.DataFrame([("ann", step, "abcdef"[step]) for step in range(6)], columns=["user", "step", "state"]),
    },
    "delta-set": {"constraint": "delta=0.2"},
    "secrets": {"model": of_pairs()},
    "secrets, delta-set": {"model": of_pairs(), "constraint": "delta=0.2"},
    "secrets, paced": {
        "model": of_pairs(),
        "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(3, steps=20), 1, range(1, 21), (0.5, 0.74)),
    },
    "secrets, beginnings": {"model": of_pairs(), "initials": {"u1": "2"}},
    "secrets, one place before": {"model": of_pairs(), "policy": dphmm.policy.transition(of_pairs())},
    "secrets, two places before": {"model": of_pairs(), "policy": dphmm.policy.transition(of_pairs(), 2)},
    "min-error": {"protection": "min-error", "start": "at"},
    "staircase": {"mechanism": "staircase"},
    "laplace": {"mechanism": "discrete-laplace"},
    "optimal table": {"mechanism": "optimal-table"},
    "made table": {"mechanism": dphmm.choose.optimize(MODEL, POLICY, SPACE, 1)},
    "unknown people": {"people": "unknown"},
    "own fit": {
        "model": dphmm.MarkovModel.fit_private([[0, 1, 2, 3], [4, 5, 0, 1]], 6, 1, 4, bits=dphmm.ReplayBits(1)),
        "people": "unknown",
    },
    "fit of the people released": {"model": dphmm.MarkovModel.fit([[0, 1, 2, 3, 4, 5, 0]], 6), "people": "same"},
    "promise": {"epsilon": None, "promise": dphmm.SequencePromise(6, window=3)},
    "caps": {"cap_epsilon": 40, "cap_cost": 500},
    "planned": {"schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(2, per=4), 1, [2, 4])},
    "paced": {"schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(3, steps=20), 1, range(1, 21), (0.5, 0.74))},
    "labels": OF_LABELS,
    "labels, all joined": {**OF_LABELS, "policy": dphmm.policy.complete(4)},
    "merged": {"space": SPACE.merged([[0, 1]])},
    "step choices": {
        "step_choices": {
            3: {"epsilon": Fraction(1, 2)},
            4: {"policy": dphmm.policy.complete(6)},
            5: {"partners": {"0": "1"}},
        }
    },
    "beginnings": {"initials": {"u1": "2"}},
    "another query": {"query": "other"},
    "first row": on_a_map(answer="first"),
    "promise by the clock": on_a_map(epsilon=None, promise=dphmm.SequencePromise(12, per="1h")),
    "replayable noise": {"bits": dphmm.ReplayBits(1)},
}
#: What of a right release nobody can look at, even with its ledger.
NOTES = {"replayable noise": "ledger: 24 answers were drawn from replayable bits"}


def walks(users=4, steps=8, seed=0, kept=0.8):
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        state = int(rng.integers(6))
        for step in range(steps):
            state = int(rng.choice(6, p=TRANSITION[state]))
            if rng.random() < kept:
                rows.append((f"u{user}", step, str(state)))
    return pd.DataFrame(rows, columns=["user", "step", "state"])


class Finished:
    """A release with its ledger, as a file with a statement, and what it was made under."""

    def __init__(
        self,
        folder,
        bits=None,
        suffix=".parquet",
        model=MODEL,
        policy=POLICY,
        space=SPACE,
        table=None,
        people="others",
        epsilon=1,
        initials=None,
        **options,
    ):
        self.ledger = dphmm.open_ledger(folder / "ledger.db")
        self.path = folder / f"released{suffix}"
        self.public, self.initials = (model, policy, space, epsilon), initials
        options |= {} if initials is None else {"initials": initials}
        batch = Batch(*self.public, ledger=self.ledger, bits=bits or keyed_system_bits(3), **options)
        loaded = load_trajectories(walks() if table is None else table, space=space).trajectories
        rows = [row for chunk in batch.run(loaded) for row in chunk]
        self.table = released_table(rows, space)
        write_table(self.path, self.table)
        write_statement(self.path, batch.statement(FileSums(rows), people))

    def check(self, released=None, ledger=True, **more):
        what = self.path if released is None else released
        return check_release(
            what, *self.public, ledger=self.ledger if ledger else None, **{"initials": self.initials, **more}
        )

    def tampered(self, change):
        """The verdict on the file with one change, its statement sealed again."""
        frame = change(self.table.to_pandas())
        write_table(self.path, pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None))
        return self.stated(lambda told: None)

    def stated(self, change):
        """The verdict after one change to the statement, which is of the file again."""
        path = statement_path(self.path)
        told = json.loads(path.read_text())
        told["file"]["sha256"] = hashlib.sha256(self.path.read_bytes()).hexdigest()
        change(told)
        path.write_text(json.dumps(told, indent=2) + "\n")
        return self.check()


@pytest.fixture
def finished(tmp_path):
    return Finished(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_release_is_acquitted(tmp_path, kind, program):
    one = Finished(tmp_path, suffix=".csv", **KINDS[kind])
    verdict = one.check()
    due = NOTES.get(kind)
    assert verdict.findings == () and len(verdict.notes) == (due is not None), verdict.lines
    assert verdict.code == (0 if due is None else 5) and all(note.startswith(due) for note in verdict.notes)
    assert len(verdict.verdicts) == verdict.plans >= 1
    alone = one.check(ledger=False, plain=tmp_path / "plain")
    assert alone.findings == () and NO_LEDGER in alone.notes and alone.code == 5
    assert "nothing is wrong, and not everything was looked at" in alone.lines[0]
    model, _, space, _ = one.public
    described = check_release(one.path, model, None, space, ledger=one.ledger, initials=one.initials)
    assert described.findings == () and described.code == verdict.code
    files = [f"--{name}={tmp_path}/plain/{name}.{end}" for name, end in PLAIN.items()]
    assert program.main([str(one.path), *files]) == 5


PLAIN = {"model": "npz", "policy": "json", "plans": "json"}


@pytest.mark.parametrize("suffix", [".parquet", ".csv.gz"])
def test_a_right_file_of_another_form_is_acquitted(tmp_path, suffix):
    assert Finished(tmp_path, suffix=suffix).check().code == 0


def changed_z(frame):
    frame.loc[5, "z_0"] += 1
    return frame


def off_the_lattice(frame):
    frame.loc[5, "z_0"] += 2.0**-30
    return frame


def another_plan(frame):
    frame.loc[5, "plan"] = "0" * 64
    return frame


def an_extra_column(frame):
    return frame.assign(speed=1.0)


def a_row_of_nobody(frame):
    more = frame.iloc[[-1]].assign(step=frame["step"].max() + 3)
    return pd.concat([frame, more], ignore_index=True)


def a_user_of_nobody(frame):
    return pd.concat([frame, frame[frame["user"] == "u0"].assign(user="zed")], ignore_index=True)


def an_estimate(frame):
    return frame.assign(estimate="1")[[*frame.columns[:4], "estimate", *frame.columns[4:]]]


def another_epsilon(frame):
    frame.loc[5, "epsilon"] /= 2
    return frame


def another_cost(frame):
    frame.loc[5, "cost"] /= 2
    return frame


def another_order(frame):
    return frame.iloc[::-1].reset_index(drop=True)


def columns_moved(frame):
    return frame[list(frame.columns[::-1])]


def a_row_twice(frame):
    return pd.concat([frame.iloc[:1], frame], ignore_index=True)


TAMPERED = {
    changed_z: "ledger: not those of",
    off_the_lattice: "answers: not on the lattice",
    another_plan: "ledger: not those of",
    an_extra_column: "columns: columns that no release has",
    a_row_of_nobody: "ledger: not those of",
    a_user_of_nobody: "ledger: not those of",
    an_estimate: "columns: columns that no release has",
    another_epsilon: "epsilon: another one",
    another_cost: "losses: they are others",
    another_order: "rows: in an order that may say something",
    columns_moved: "columns: expected",
    a_row_twice: "rows: 1 steps of a person stand twice",
}


@pytest.mark.parametrize("change", TAMPERED, ids=lambda change: change.__name__)
def test_a_changed_file_is_convicted(finished, change):
    verdict = finished.tampered(change)
    assert verdict.convicted and verdict.code == 1
    assert any(finding.startswith(TAMPERED[change]) for finding in verdict.findings), verdict.findings


@pytest.mark.parametrize("every", [True, False])
def test_without_a_ledger_a_changed_answer_does_not_fit_the_plans_that_follow_from_it(tmp_path, every):
    """Where a step before has no row, other files may have an answer to it, which decides plans too."""
    rows = walks(kept=1.0)
    one = Finished(tmp_path, table=rows if every else rows[rows.step != 1], constraint="delta=0.4", epsilon=4)
    one.tampered(lambda frame: frame.assign(z_0=frame.z_0 - 40))
    verdict = one.check(ledger=False)
    assert verdict.convicted is every
    assert verdict.convicted or any("other files may have answers" in note for note in verdict.notes)


@pytest.mark.parametrize("options", [{}, OF_LABELS], ids=lambda options: ",".join(options))
def test_an_answer_drawn_again_under_its_plan_is_convicted(tmp_path, options):
    """Whoever may draw twice can choose: only the first answer is in the ledger."""
    (tmp_path / "again").mkdir()
    one, again = Finished(tmp_path, **options), Finished(tmp_path / "again", bits=keyed_system_bits(9), **options)
    first, second = one.table.to_pandas(), again.table.to_pandas()
    assert (first.plan == second.plan).all() and not first.equals(second)
    assert again.check().code == 0
    verdict = one.tampered(lambda frame: second)
    assert any(finding.startswith("ledger: not those of") for finding in verdict.findings), verdict.findings


def test_a_dropped_row_is_told_by_the_statement(finished):
    verdict = finished.tampered(lambda frame: frame.drop(index=3).reset_index(drop=True))
    assert any("published.rows" in finding for finding in verdict.findings)


def test_given_choices_must_be_those_of_the_statement(finished):
    assert finished.check(mechanism="auto").code == 0
    for other in ({"start": "at"}, {"constraint": "delta=0.3"}, {"query": "other"}):
        assert any("under other choices than were given" in told for told in finished.check(**other).findings)
    half = check_release(finished.path, *finished.public[:3], Fraction(1, 2), ledger=finished.ledger)
    assert any("under other choices than were given" in told for told in half.findings)


def test_another_policy_or_epsilon_is_convicted(finished):
    model, _, space, _ = finished.public
    verdict = check_release(finished.path, model, dphmm.policy.complete(6), space, ledger=finished.ledger)
    assert any("policy.sha256" in finding for finding in verdict.findings)
    assert finished.stated(lambda told: told.update(epsilon="1/2")).convicted


STATED = {
    "a note": (lambda told: told.update(note="u1 sleeps at x1y2"), "statement: of another form: note"),
    "a note in a part": (lambda told: told["space"].update(note="x1y2"), "statement: of another form: space.note"),
    "rows": (lambda told: told["published"].update(rows=7), "rows: published.rows"),
    "epsilon": (lambda told: told.update(epsilon="2"), "epsilon: another one"),
    "sum": (lambda told: told["totals"].update(epsilon_sum="1"), "sum of epsilons: totals.epsilon_sum"),
    "cost": (lambda told: told["totals"].update(cost_sum="1"), "sum of costs: "),
    "plans": (lambda told: told["plans"].update(hashes=["0" * 64]), "plans: plans.hashes"),
    "private": (lambda told: told.update(private="unknown"), "private: private is True"),
    "people": (lambda told: told["model"].update(people="same"), "private: "),
    "model": (lambda told: told["model"].update(method="fit"), "model: model.method"),
    "states": (lambda told: told["space"].update(states=7), "states: space.states"),
    "distance": (
        lambda told: told.update(covered_distance={"metres": 9.0, "ground_metres": 9.0}),
        "members: covered_distance",
    ),
    "promise": (
        lambda told: told.update(
            sequence={"total": "1", "steps": 8, "window": None, "per": None, "zone": "+00:00", "couples": "unknown"}
        ),
        "promise: 8 steps",
    ),
}


@pytest.mark.parametrize("name", STATED)
def test_a_changed_statement_is_convicted(finished, name):
    change, words = STATED[name]
    verdict = finished.stated(change)
    assert any(finding.startswith(words) for finding in verdict.findings), verdict.findings


def test_a_table_without_a_statement_needs_its_choices(finished):
    verdict = finished.check(finished.table)
    assert not verdict.convicted and len(verdict.verdicts) == verdict.plans
    assert "statement: no privacy statement: name it by --statement" in verdict.notes


def test_what_learning_cost_is_held_against_the_model(tmp_path):
    model = dphmm.MarkovModel.fit_private([[0, 1, 2, 3], [4, 5, 0, 1]], 6, 1, 4, bits=dphmm.ReplayBits(1))
    one = Finished(tmp_path, model=model, people="unknown")
    assert one.check().code == 0
    right = statement_path(one.path).read_text()
    wrong = [("epsilon", "1/1000"), ("delta", "1/7"), ("max_length", 5), ("neighbours", "replace"), ("private", True)]
    wrong += [("together", {"epsilon": "1", "delta": "0"}), ("unit", "owner"), ("max_sequences", 9)]
    for name, value in wrong:
        verdict = one.stated(lambda told, name=name, value=value: told["learning"].update({name: value}))
        assert any(f"learning.{name} is" in finding for finding in verdict.findings), name
        statement_path(one.path).write_text(right)
    assert one.stated(lambda told: told.update(learning=None)).convicted


def test_a_table_is_compared_with_a_statement_in_all_but_its_bytes(finished):
    beside = statement_path(finished.path)
    for table in (finished.table, finished.table.to_pandas()):
        verdict = finished.check(table, statement=beside)
        assert verdict.findings == ()
        assert [note for note in verdict.notes if note.startswith("file: a table has no bytes")]
    whole = finished.table.to_pandas()
    fewer, one = whole.iloc[:-1], whole["user"] != whole["user"].iloc[0]
    for changed, member in ((fewer, "published.rows"), (whole[one], "published.subjects")):
        assert any(member in finding for finding in finished.check(changed, statement=beside).findings)
    with pytest.raises(InvalidInput, match="statement"):
        finished.check(finished.table, statement=beside.with_name("none.json"))


def test_a_statement_that_cannot_be_read_is_convicted(finished):
    beside = statement_path(finished.path)
    beside.write_text("{}")
    assert finished.check().convicted
    beside.unlink()
    verdict = finished.check()
    assert not verdict.convicted and verdict.code == 5
    assert "statement: no privacy statement: name it by --statement" in verdict.notes


def test_a_file_changed_after_its_statement_is_convicted(finished):
    write_table(finished.path, finished.table.set_column(2, "z_0", pa.array(finished.table["z_0"].to_numpy() + 1)))
    assert any("file.sha256" in finding for finding in finished.check().findings)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("epsilon", pa.array([[1.0]] * 2, pa.list_(pa.float64()))),
        ("cost", pa.array([b"x"] * 2, pa.binary())),
    ],
)
def test_a_column_of_another_kind_is_refused_in_words_of_ours(finished, name, cells):
    table = finished.table.slice(0, 2)
    pq.write_table(table.set_column(table.column_names.index(name), name, cells), finished.path)
    with pytest.raises(InvalidInput) as caught:
        finished.check()
    assert caught.value.field == "released" and "/" not in str(caught.value)


def test_notes_in_a_parquet_file_are_convicted(finished):
    pq.write_table(finished.table.replace_schema_metadata({"truth": "here"}), finished.path)
    verdict = finished.stated(lambda told: None)
    assert "bytes: notes beside the columns: truth" in verdict.findings


def test_text_in_a_gap_of_a_parquet_file_is_convicted(finished):
    """Between the columns and the footer readers see nothing."""
    data = finished.path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    finished.path.write_bytes(data[:-footer] + b"u1 sleeps at x1y2" + data[-footer:])
    assert pq.read_table(finished.path).equals(finished.table)
    verdict = finished.stated(lambda told: None)
    assert any(finding.startswith("bytes: 17 bytes of the Parquet file") for finding in verdict.findings)


def test_another_layout_of_a_parquet_file_is_not_looked_at(finished):
    pq.write_table(finished.table.replace_schema_metadata(None), finished.path, compression="snappy")
    verdict = finished.stated(lambda told: None)
    assert verdict.findings == () and verdict.code == 5
    assert any(note.startswith("bytes: written again from its rows") for note in verdict.notes)


def noted(data, flag, text):
    """A gzip file with one more field in its header."""
    return data[:3] + bytes([data[3] | flag]) + data[4:10] + text + b"\x00" + data[10:]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: noted(data, 16, b"u1 sleeps at x1y2"), "a comment"),
        (lambda data: noted(data, 8, b"x1y2"), "a name"),
        (lambda data: data[:4] + b"\x01\x02\x03\x04" + data[8:], "a time"),
        (lambda data: data + b"u1 sleeps at x1y2", "bytes after its end"),
        (lambda data: data + gzip.compress(b"u1 sleeps at x1y2"), "bytes after its end"),
    ],
)
def test_notes_in_a_packed_file_are_convicted(tmp_path, change, words):
    one = Finished(tmp_path, suffix=".csv.gz")
    one.path.write_bytes(change(one.path.read_bytes()))
    verdict = one.stated(lambda told: None)
    assert f"bytes: beside the packed text: {words}" in verdict.findings


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b'"u0"', b"u0"),
        lambda text: text.replace(b'"u0"', b"u0", 1),
        lambda text: text.replace(b"user", b"user", 1).replace(b'"user"', b"user"),
        lambda text: text.rstrip(b"\n"),
    ],
)
def test_other_quotes_and_ends_of_lines_are_not_looked_at(tmp_path, change):
    one = Finished(tmp_path, suffix=".csv")
    before = one.path.read_bytes()
    one.path.write_bytes(change(before))
    assert one.path.read_bytes() != before
    verdict = one.stated(lambda told: None)
    assert verdict.findings == () and verdict.code == 5
    assert any(note.startswith("bytes: written again from its values") for note in verdict.notes)


@pytest.mark.parametrize("line", ["# u1 sleeps at x1y2\n", "\n", "u1 sleeps at x1y2\n"])
def test_lines_that_are_no_rows_are_refused(tmp_path, line):
    one = Finished(tmp_path, suffix=".csv")
    head, rest = one.path.read_text().split("\n", 1)
    one.path.write_text(f"{head}\n{line}{rest}")
    with pytest.raises(InvalidInput, match="released: "):
        one.stated(lambda told: None)


def test_replayable_noise_that_is_not_stated_is_convicted(tmp_path):
    def hidden(told):
        told.update(private=True, reasons=[])
        told["randomness"]["replayable_rows"] = 0

    verdict = Finished(tmp_path, bits=dphmm.ReplayBits(1)).stated(hidden)
    assert any(told.startswith("ledger: randomness.replayable_rows is 24") for told in verdict.findings)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM release WHERE t = 3 AND session = 1", "ledger: not those of"),
        ("UPDATE terms SET cost = '1'", "for 1 and 1"),
        ("UPDATE terms SET cost = '1/0'", "ledger: a part is missing or of another form"),
        ("UPDATE terms SET epsilon = '1e999999999'", "ledger: a part is missing or of another form"),
        ("UPDATE account SET cost_nanos = 0", "account: other sums"),
        ("UPDATE account SET epsilon = '1'", "account: other sums"),
        ("UPDATE account SET cap_epsilon = '5'", "account: above its caps"),
        ("UPDATE account SET cap_cost = '1'", "account: above its caps"),
        ("UPDATE account SET epsilon = '1/0'", "ledger: a part is missing or of another form"),
    ],
)
def test_a_changed_ledger_is_convicted(tmp_path, sql, words):
    """As a file: `dphmm` does not open one whose cells are no numbers."""
    full = pd.DataFrame([("u0", step, str(step % 6)) for step in range(6)], columns=["user", "step", "state"])
    one = Finished(tmp_path, model=dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6)), table=full)
    file = tmp_path / "ledger.db"
    assert one.check(ledger_file=file).code == 0
    one.ledger.close()
    with sqlite3.connect(file) as direct:
        direct.execute("PRAGMA foreign_keys = OFF")
        for (name,) in direct.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            direct.execute(f"DROP TRIGGER {name}")
        direct.execute(sql)
    direct.close()
    verdict = one.check(ledger=False, ledger_file=file)
    assert any(words in finding for finding in verdict.findings), verdict.findings


def test_a_bug_in_the_planner_is_found_in_the_file(tmp_path, monkeypatch):
    """The plans are made again with the bug and their hashes agree: only their exact audits can say that they leak."""
    from exactness import mutants

    mutants.offset_minus_one(monkeypatch)
    verdict = Finished(tmp_path).check()
    assert verdict.convicted and verdict.document()["plans_convicted"]
    assert any(finding.startswith("losses: states ") for finding in verdict.findings)


def test_several_queries_of_a_subject(tmp_path):
    """The partners that the first query fixed are read from the ledger; without it they are not looked at."""
    other = dphmm.StateSpace([[0], [3], [1], [5], [4], [9]])
    with dphmm.open_ledger(tmp_path / "l.db") as ledger:
        common = {"ledger": ledger, "progress": False, "bits": keyed_system_bits(4)}
        one, two = tmp_path / "one.csv", tmp_path / "two.csv"
        dphmm.release_many(walks(), MODEL, POLICY, SPACE, 1, output=one, **common)
        dphmm.release_many(walks(), MODEL, POLICY, other, 2, query="other", output=two, **common)
        for file, space in ((one, SPACE), (two, other)):
            assert check_release(file, MODEL, POLICY, space, ledger=ledger).code == 0
            assert not check_release(file, MODEL, POLICY, space).convicted


def test_choices_of_steps_are_made_from_the_statement(tmp_path):
    chosen = {3: {"epsilon": Fraction(1, 2)}, 4: {"policy": dphmm.policy.complete(6)}, 5: {"partners": {"0": "1"}}}
    file = tmp_path / "released.csv"
    with dphmm.open_ledger(tmp_path / "l.db") as ledger:
        common = {"ledger": ledger, "progress": False, "bits": keyed_system_bits(4), "step_choices": chosen}
        dphmm.release_many(walks(), MODEL, POLICY, SPACE, 1, output=file, **common)
        assert check_release(file, MODEL, POLICY, SPACE, ledger=ledger).code == 0
        assert check_release(file, MODEL, POLICY, SPACE, ledger=ledger, step_choices=chosen).code == 0
        other = {**chosen, 3: {"epsilon": Fraction(1, 3)}}
        verdict = check_release(file, MODEL, POLICY, SPACE, ledger=ledger, step_choices=other)
        assert any("varied is" in finding for finding in verdict.findings)


def test_people_who_begin_elsewhere_need_the_table_of_where(tmp_path):
    file, begins = tmp_path / "released.csv", {"u1": "2"}
    with dphmm.open_ledger(tmp_path / "l.db") as ledger:
        common = {"ledger": ledger, "progress": False, "bits": keyed_system_bits(4), "initials": begins}
        dphmm.release_many(walks(), MODEL, POLICY, SPACE, 1, output=file, **common)
        assert check_release(file, MODEL, POLICY, SPACE, ledger=ledger, initials=begins).code == 0
        without = check_release(file, MODEL, POLICY, SPACE, ledger=ledger)
        assert without.code == 5 and any("who begins where" in note for note in without.notes)
        other = check_release(file, MODEL, POLICY, SPACE, ledger=ledger, initials={"u1": "3"})
        assert any("beginnings is" in finding for finding in other.findings)


def test_plans_that_follow_from_answers_of_other_files_need_the_ledger(tmp_path):
    rows = walks()
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    with dphmm.open_ledger(tmp_path / "l.db") as ledger:
        common = {"ledger": ledger, "progress": False, "bits": keyed_system_bits(4)}
        common["constraint"] = "delta=0.4"
        dphmm.release_many(rows[rows.step < 4], MODEL, POLICY, SPACE, 4, output=one, **common)
        dphmm.release_many(rows[rows.step >= 4], MODEL, POLICY, SPACE, 4, output=two, resume=True, **common)
        for file in (one, two):
            assert check_release(file, MODEL, POLICY, SPACE, ledger=ledger).code == 0
        alone = check_release(two, MODEL, POLICY, SPACE)
        assert alone.code == 5 and any("other files may have answers" in note for note in alone.notes)


def test_a_map_with_times(tmp_path):
    one = Finished(tmp_path, **on_a_map())

    def later(frame):
        frame["t"] = frame["t"] + pd.to_timedelta((frame.index == 4).astype(int), unit="s")
        return frame

    assert any(finding.startswith("times: other ones") for finding in one.tampered(later).findings)

    def moved(frame):
        frame.loc[3, "z_lat"] += 1e-6
        return frame

    assert any(finding.startswith("places: ") for finding in one.tampered(moved).findings)
