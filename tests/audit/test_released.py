"""`check_released` finds every tampering with a finished release, and nothing in a right one.

Claims: releases of every kind of option are acquitted with their ledger, their statement and without either; a changed
answer, a row that the ledger does not hold, another plan, a column too many, notes in the file, a changed estimate,
cost, statement, account or charge, replayable noise and a wrong option are each convicted by the finding that names
them. All of it is deterministic but for the noise, and no claim hangs on that.
"""

from __future__ import annotations

import json
import math
import sqlite3
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphmm
from audit.small import MODEL, POLICY, SPACE
from crafted_bits import keyed_system_bits
from dphmm.audit import check_released
from dphmm.batch import Batch
from dphmm.errors import InvalidInput
from dphmm.storage.released import Published, released_table
from dphmm.storage.statement import statement_path, write_statement
from dphmm.storage.tables import write_table
from dphmm.storage.trajectories import trajectories_from_table
from report.worlds import put
from running_example import TRANSITION

OPTIONS = [
    {},
    {"constraint": "delta=0.2"},
    {"protection": "min-error", "start": "at"},
    {"estimates": False},
]


#: What an audit cannot know of a model that was given.
WHOM = "whom the model was fitted on: others than those released, as the data owner says"


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
        **options,
    ):
        self.ledger = dphmm.open_ledger(folder / "ledger.db")
        self.path = folder / f"released{suffix}"
        self.public = (model, policy, space, 1)
        self.options = options
        batch = Batch(*self.public, ledger=self.ledger, bits=bits or keyed_system_bits(3), **options)
        loaded = trajectories_from_table(walks() if table is None else table).trajectories
        rows = [row for chunk in batch.run(loaded) for row in chunk]
        self.table = released_table(rows, space)
        write_table(self.path, self.table)
        write_statement(self.path, batch.statement(Published(rows), people))

    def check(self, released=None, ledger=True, **changed):
        what = self.path if released is None else released
        options = {name: value for name, value in self.options.items() if name != "estimates"} | changed
        return check_released(what, *self.public, ledger=self.ledger if ledger else None, **options)

    def tampered(self, change):
        """The verdict on the table with one change, as a table: no statement is looked for."""
        return self.check(change(self.table.to_pandas()))


@pytest.fixture
def finished(tmp_path):
    return Finished(tmp_path)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_right_release_is_acquitted(tmp_path, options, suffix):
    one = Finished(tmp_path, suffix=suffix, **options)
    for ledger in (True, False):
        verdict = one.check(ledger=ledger)
        assert verdict.findings == () and not verdict.convicted
        assert len(verdict.verdicts) == verdict.plans >= 1
        assert verdict.notes == (WHOM,) if ledger else "ledger" in verdict.notes[0]
    assert [note.partition(",")[0] for note in one.check(one.table).notes] == ["the privacy statement"]
    assert "nothing is wrong" in verdict.lines[0]


def cell(name, change):
    """A table with another cell in its sixth row."""

    def edit(frame):
        frame.loc[5, name] = change(frame.loc[5, name])
        return frame

    return edit


def a_row_of_nobody(frame):
    more = frame.iloc[[-1]].assign(step=frame["step"].max() + 3)
    return pd.concat([frame, more], ignore_index=True)


def a_user_of_nobody(frame):
    return pd.concat([frame, frame[frame["user"] == "u0"].assign(user="zed")], ignore_index=True)


#: What is done to a table, and what is found of it.
TAMPERED = {
    "another answer": (cell("z_0", lambda z: z + 1), "not the one in the ledger"),
    "off the lattice": (cell("z_0", lambda z: z + 2.0**-30), "no lattice point"),
    "another plan": (cell("plan", lambda plan: "0" * 64), "a plan that is not the one in the ledger"),
    "an extra column": (lambda frame: frame.assign(speed=1.0), "columns that no release has"),
    "a row of nobody": (a_row_of_nobody, "a row that the ledger does not hold"),
    "a user of nobody": (a_user_of_nobody, "whom the ledger does not know"),
    "another estimate": (cell("estimate_1", lambda at: at + 0.01), "an estimate that does not follow"),
    "another state": (cell("estimate", lambda own: "1" if own == "0" else "0"), "a likeliest state that does not"),
    "another cost": (cell("cost", lambda cost: cost / 2), "epsilon or cost"),
    "another order": (lambda frame: frame.iloc[::-1].reset_index(drop=True), "not in the order"),
    "columns moved": (lambda frame: frame[list(frame.columns[::-1])], "columns are in another order"),
    "a row twice": (lambda frame: pd.concat([frame.iloc[:1], frame], ignore_index=True), "stands twice"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_changed_table_is_convicted(finished, name):
    change, words = TAMPERED[name]
    verdict = finished.tampered(change)
    assert verdict.convicted
    assert any(words in finding for finding in verdict.findings), verdict.findings


@pytest.mark.parametrize("name", [name for name in TAMPERED if name not in ("another estimate", "another state")])
def test_a_changed_table_without_estimates_is_convicted(tmp_path, name):
    change, words = TAMPERED[name]
    verdict = Finished(tmp_path, estimates=False).tampered(change)
    assert any(words in finding for finding in verdict.findings), verdict.findings


@pytest.mark.parametrize("on_map", [True, False])
def test_estimates_are_all_there_or_none_is(tmp_path, on_map):
    """A part of the columns is refused by the first that is missing, in files and tables."""
    world = {}
    if on_map:
        grid = dphmm.Grid(10.0, 50.0, 10.028, 50.018, 1000)
        n = grid.n_states
        model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
        table = pd.DataFrame([(user, step, 50.001, 10.001) for user in "ab" for step in range(4)])
        table.columns = ["user", "step", "lat", "lon"]
        world = {"space": grid, "model": model, "policy": dphmm.policy.complete(n), "table": table}
    one = Finished(tmp_path, suffix=".csv", **world)
    frame = one.table.to_pandas()
    estimates = [name for name in frame.columns if name.startswith("estimate")]
    assert len(estimates) == (5 if on_map else 3)
    alone = frame.drop(columns=estimates)
    assert not one.check(alone).convicted
    if on_map:
        moved = one.check(alone.assign(z_lat=alone["z_lat"] + 1e-6))
        assert any("z_lat and z_lon are not those of z" in finding for finding in moved.findings)
    assert "a plan that is no hash" in one.check(alone.assign(plan="0" * 63)).findings
    for name in estimates:
        for part in (frame.drop(columns=name), frame.drop(columns=[other for other in estimates if other != name])):
            write_table(one.path, pa.Table.from_pandas(part, preserve_index=False))
            missing = next(other for other in estimates if other not in part.columns)
            for what in (part, None):
                with pytest.raises(InvalidInput, match=f"a table without the column '{missing}'"):
                    one.check(what)


def test_a_row_that_is_left_out_of_a_file_without_estimates_is_told_and_its_statement_convicted(tmp_path):
    one = Finished(tmp_path, estimates=False)
    write_table(one.path, one.table.slice(1))
    verdict = one.check()
    assert any(note.startswith("1 releases of these users that the ledger holds") for note in verdict.notes)
    assert any("file.sha256" in finding for finding in verdict.findings)
    assert any("published.rows" in finding for finding in verdict.findings)


@pytest.mark.parametrize("options", [{}, {"constraint": "delta=0.2"}], ids=str)
def test_without_a_ledger_a_changed_answer_does_not_fit_what_was_made_of_it(tmp_path, options):
    one = Finished(tmp_path, **options)
    verdict = one.check(TAMPERED["another answer"][0](one.table.to_pandas()), ledger=False)
    assert verdict.convicted and any("does not follow" in f or "whose plan" in f for f in verdict.findings)


def test_a_dropped_row_is_told(finished):
    """What the file does not show is no breach of the promise, but it was published somewhere, or nowhere."""
    verdict = finished.tampered(lambda frame: frame.drop(index=3).reset_index(drop=True))
    assert not verdict.convicted
    assert verdict.notes[0].startswith("1 releases of these users that the ledger holds")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"mechanism": "discrete-knorm"}, "the mechanism of the ledger"),
        ({"constraint": "delta=0.3"}, "the constraint of the ledger"),
        ({"start": "at"}, "the start of the ledger"),
    ],
)
def test_another_option_is_convicted(finished, changed, words):
    verdict = finished.check(**changed)
    assert verdict.convicted and any(words in finding for finding in verdict.findings)
    without = finished.check(ledger=False, **changed)
    assert without.convicted


def test_sums_of_rows_that_could_not_be_followed_are_not_compared(finished):
    """A statement would be blamed for a row that a ledger lost."""
    finished.ledger.close()
    with sqlite3.connect(finished.path.with_name("ledger.db")) as direct:
        for (name,) in direct.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            direct.execute(f"DROP TRIGGER {name}")
        direct.execute("DELETE FROM release WHERE t = (SELECT max(t) FROM release WHERE session = 1) AND session = 1")
    direct.close()
    finished.ledger = dphmm.open_ledger(finished.path.with_name("ledger.db"))
    verdict = finished.check()
    assert any("does not hold" in finding for finding in verdict.findings)
    assert [finding for finding in verdict.findings if "totals" in finding] == []
    assert any("not every row could be followed" in note for note in verdict.notes)


def test_a_time_column_of_something_else_is_refused(tmp_path):
    """As text it could say anything, and would not be compared with the steps."""
    model = dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6), step=60)
    times = pd.date_range("2024-05-06T08:01", periods=4, freq="1min", tz="UTC")
    one = Finished(tmp_path, model=model, table=pd.DataFrame({"user": "ann", "t": times, "state": list("0123")}))
    assert not one.check().convicted
    frame = one.table.to_pandas()
    right = frame["t"]
    for wrong, words in (
        (right.astype(str), "type"),
        (right.where(frame.index != 1), "without a time"),
        (right.astype("datetime64[ns, UTC]") + pd.Timedelta(1, "ns"), "microsecond"),
        (frame["step"], "type"),
    ):
        with pytest.raises(InvalidInput, match=words):
            one.check(frame.assign(t=wrong))


def test_another_epsilon_or_policy_is_convicted(finished):
    model, policy, space, _ = finished.public
    for public in ((model, policy, space, Fraction(1, 2)), (model, dphmm.policy.complete(6), space, 1)):
        assert check_released(finished.table, *public, ledger=finished.ledger).convicted
        assert check_released(finished.table, *public).convicted
    asked = *finished.public[:3], Fraction(1, 2)
    told = "\n".join(check_released(finished.path, *asked, ledger=finished.ledger).lines)
    assert "says epsilon 1, and 0.5 was given: give the audit what was released with" in told
    assert "the epsilon of the ledger is 1, not 0.5" in told


def statement(finished, change):
    """The verdict after one change to the statement."""
    beside = statement_path(finished.path)
    stated = json.loads(beside.read_text())
    change(stated)
    beside.write_text(json.dumps(stated))
    return finished.check()


def _set(path, value):
    return lambda stated: put(stated, path, value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("file.sha256", "0" * 64), "file.sha256"),
        (_set("epsilon", "0.5"), "epsilon"),
        (_set("totals.cost_sum", "0"), "totals.cost_sum"),
        (_set("totals.epsilon_sum", "0"), "totals.epsilon_sum"),
        (_set("published.rows", 1), "published.rows"),
        (_set("plans.sha256", "0" * 64), "plans.sha256"),
        (_set("plans.hashes", ["0" * 64]), "plans.hashes"),
        (_set("policy.parameters.n_states", 3), "policy.parameters"),
        (lambda stated: stated["policy"].update(kind="complete", parameters={}), "says policy.kind complete"),
        (_set("space.states", 1000), "space.states"),
        (_set("space.pitch", [50.0, 50.0]), "space.pitch"),
        (_set("model.method", "public data"), "model.method"),
        (_set("model.private", "not a truth"), "model.private"),
        (lambda stated: stated["model"].update(private=not stated["model"]["private"]), "model.private"),
        (_set("model.step_seconds", 7), "model.step_seconds"),
        (_set("mechanism.chosen", {"staircase": 1}), "mechanism.chosen"),
        (_set("policy.sha256", "0" * 64), "policy.sha256"),
        (_set("randomness.secure", False), "replayable"),
        (_set("private", "unknown"), "promise.holds True, and private 'unknown'"),
        (_set("private", 1), "cannot be read: released.parquet.privacy.json with private 1"),
        (_set("private", False), "promise.holds True, and private False"),
        (_set("promise.holds", "unknown"), "promise.holds 'unknown', and private True"),
        (_set("not_private_because", ["a reason"]), "private True, and other reasons than that has"),
        (_set("model.people", "unknown"), "whom the model was fitted on"),
        (_set("model.people", "everybody"), "whom the model was fitted on"),
        (_set("model.people", ["others"]), "with model.people ['others']"),
        (_set("model.people_known_by", "file"), "whom the model was fitted on"),
        (_set("randomness.replayable_rows", 3), "noise that is secure, and with 3 replayable rows"),
        (_set("randomness.replayable_rows", -1), "another randomness.replayable_rows"),
        (
            lambda stated: stated["randomness"].update(secure=False, replayable_rows=3),
            "says private True, and it is False",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_changed_statement_is_convicted(finished, change, words):
    assert not finished.check().convicted
    verdict = statement(finished, change)
    assert any(words in finding for finding in verdict.findings)


def of_nobody_knows_whom(stated):
    """What the same release says where the data owner says nothing."""
    stated["model"] |= {"people": "unknown", "people_known_by": None}
    called(stated, "unknown")


def called(stated, private):
    """A statement that says so of its release, and the same everywhere."""
    stated["private"] = stated["promise"]["holds"] = private
    stated["not_private_because"] = ["a reason"] if private is False else []
    stated["unknown_because"] = ["a reason"] if private == "unknown" else []


def test_a_statement_that_says_unknown_is_acquitted_and_the_audit_says_so_too(tmp_path):
    verdict = Finished(tmp_path, people="unknown").check()
    assert not verdict.convicted
    (note,) = verdict.notes
    assert note.startswith("whether the release is private, which is not known: nothing says whose data")


@pytest.mark.parametrize("said", [True, False])
def test_a_statement_that_says_more_or_less_than_is_known_is_convicted(finished, said):
    def change(stated):
        of_nobody_knows_whom(stated)
        called(stated, said)

    assert any(f"says private {said}, and it is unknown" in finding for finding in statement(finished, change).findings)


@pytest.mark.parametrize(
    "member",
    ["not_protected", "promise.meaning", "promise.assumes", "unit_of_privacy", "model.meaning", "constraint.meaning",
     "mechanism.meaning", "randomness.meaning", "totals.epsilon_sum_meaning", "totals.of"],
)  # fmt: skip
def test_words_that_the_choices_do_not_promise_are_convicted(finished, member):
    """Whatever version of dphmm the statement says that it is of."""

    def change(stated):
        put(stated, member, ["All is safe."] * 5 if member in ("not_protected", "promise.meaning") else "All is safe.")

    said = [one for one in statement(finished, change).findings if "other words than its choices promise for" in one]
    assert len(said) == 1 and member.partition(".")[0] in said[0]

    def of_another_version(stated):
        change(stated)
        stated["software"]["version"] = "0.0.9"

    assert said[0] in statement(finished, of_another_version).findings


@pytest.mark.parametrize(
    "change",
    [("model", "people_known_by", None), ("software", "version", "whatever")],
    ids=lambda change: ".".join(map(str, change[:2])),
)
def test_a_member_that_keeps_words_from_being_read_is_convicted(finished, change):
    """With such a member the sentences were not compared, and nothing else convicted the statement."""

    def lying(stated):
        outer, name, value = change
        stated[outer][name] = value
        stated["not_protected"] = ["Nothing is left unprotected."]

    verdict = statement(finished, lying)
    assert len(verdict.findings) == 1 and "that dphmm does not write" in verdict.findings[0]


@pytest.mark.parametrize("people", ["others", "unknown"])
def test_what_learning_cost_is_held_against_the_model(tmp_path, people):
    model = dphmm.MarkovModel.fit_private([[0, 1, 2, 3], [4, 5, 0, 1]], 6, 1, 4, bits=dphmm.ReplayBits(1))
    one = Finished(tmp_path, model=model, people=people)
    assert one.check().findings == ()
    beside = statement_path(one.path)
    right = beside.read_text()
    wrong = [("epsilon", "1/1000"), ("delta", "1/7"), ("max_length", 5), ("neighbours", "replace"), ("private", True)]
    wrong += [("meaning", "All is safe."), ("record", "Nothing."), ("not_covered", ["Nothing."])]
    wrong += [("together", {"epsilon": "1", "delta": "0", "meaning": "All.", "costs": "None."})]
    for name, value in wrong:
        verdict = statement(one, lambda stated, name=name, value=value: stated["learning"].update({name: value}))
        assert any(f"says learning.{name}" in finding for finding in verdict.findings), name
        beside.write_text(right)
    verdict = statement(one, lambda stated: stated.update(learning=None))
    assert any("says of learning nothing" in finding for finding in verdict.findings)


def test_a_table_is_compared_with_a_statement_in_all_but_its_bytes(finished):
    beside = statement_path(finished.path)
    for table in (finished.table, finished.table.to_pandas()):
        verdict = finished.check(table, statement=beside)
        assert verdict.findings == ()
        assert [note for note in verdict.notes if "the bytes of a file" in note]
        assert not [note for note in finished.check(statement=beside).notes if "bytes" in note]
    whole = finished.table.to_pandas()
    fewer, one = whole.iloc[:-1], whole["user"] != whole["user"].iloc[0]
    for changed, member in ((fewer, "published.rows"), (whole[one], "published.subjects")):
        assert any(f"says {member} " in finding for finding in finished.check(changed, statement=beside).findings)
    with pytest.raises(InvalidInput, match="statement"):
        finished.check(finished.table, statement=beside.with_name("none.json"))


def test_a_statement_that_cannot_be_read_is_convicted(finished):
    beside = finished.path.with_name(finished.path.name + ".privacy.json")
    beside.write_text("{}")
    assert any("cannot be read" in finding for finding in finished.check().findings)
    beside.unlink()
    verdict = finished.check()
    assert not verdict.convicted and verdict.notes == ("the privacy statement: there is none beside the file",)


def test_notes_in_the_file_are_convicted(finished):
    pq.write_table(finished.table.replace_schema_metadata({"truth": "here"}), finished.path)
    verdict = finished.check()
    assert any("notes in the Parquet file" in f and "truth" in f for f in verdict.findings)


def test_replayable_noise_is_convicted(tmp_path):
    verdict = Finished(tmp_path, bits=dphmm.ReplayBits(1)).check()
    assert any("replayable" in finding for finding in verdict.findings)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM release WHERE t = 3 AND session = 1", "does not hold"),
        ("UPDATE terms SET cost = '1'", "charged otherwise"),
        ("UPDATE account SET cost_nanos = 0", "an account that is not that of its releases"),
        ("UPDATE account SET epsilon = '1'", "an account that is not that of its releases"),
        ("UPDATE plan SET hash = CAST(hex(hash) AS BLOB)", "plan"),
    ],
)
def test_a_changed_ledger_is_convicted(tmp_path, sql, words):
    full = pd.DataFrame([("u0", step, str(step % 6)) for step in range(6)], columns=["user", "step", "state"])
    one = Finished(tmp_path, model=dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6)), table=full)
    assert not one.check().convicted
    one.ledger.close()
    with sqlite3.connect(tmp_path / "ledger.db") as direct:
        direct.execute("PRAGMA foreign_keys = OFF")
        for (name,) in direct.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            direct.execute(f"DROP TRIGGER {name}")
        direct.execute(sql)
    direct.close()
    one.ledger = dphmm.open_ledger(tmp_path / "ledger.db")
    verdict = one.check()
    assert any(words in finding for finding in verdict.findings), verdict.findings


def test_a_bug_in_the_planner_is_found_in_the_file(tmp_path, monkeypatch):
    """The plans are made again with the bug and their hashes agree: only their exact audit can say that they leak."""
    from exactness import mutants

    mutants.offset_minus_one(monkeypatch)
    verdict = Finished(tmp_path).check()
    assert verdict.findings == () and verdict.convicted
    assert verdict.document()["plans_convicted"]


def test_several_queries_of_a_subject(tmp_path):
    """The partners that the first query fixed are read from the ledger; totals are over both."""
    other = dphmm.StateSpace([[0], [3], [1], [5], [4], [9]])
    with dphmm.open_ledger(tmp_path / "l.db") as ledger:
        common = {"ledger": ledger, "progress": False}
        one = dphmm.release_many(walks(), MODEL, POLICY, SPACE, 1, bits=keyed_system_bits(1), **common)
        two = dphmm.release_many(walks(), MODEL, POLICY, other, 2, query="other", bits=keyed_system_bits(2), **common)
        assert check_released(one, MODEL, POLICY, SPACE, 1, ledger=ledger).findings == ()
        assert check_released(two, MODEL, POLICY, other, 2, ledger=ledger, query="other").findings == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop(columns="plan"), "plan"),
        (lambda frame: frame.iloc[:0], "0 rows"),
        (lambda frame: frame.drop(columns="z_1"), "z_1"),
        (lambda frame: frame.assign(step=0), "step"),
        (lambda frame: frame.assign(z_0=math.nan), "z_0"),
    ],
)
def test_what_is_no_released_table_is_refused_in_one_line(finished, change, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        finished.tampered(change)
    assert "\n" not in str(refused.value)
