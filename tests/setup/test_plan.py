"""A plan says what it asks, and releases a table into a folder: twice is once, and another ledger is noticed.

It would fail for a second spending, for answers that change, a folder with anything that only the owner may see, and a
ledger that is replaced without a word.
"""

from __future__ import annotations

import json

import pandas as pd
import pytest

import dphmm
from dphmm.audit.plain_plans import plain_hash
from dphmm.errors import BudgetExceeded, InvalidInput

pytestmark = pytest.mark.replayed_words
LABELS = ["home", "work", "hospital"]
SETUP = dphmm.Setup.labels(LABELS, moves=[[8, 1, 1], [2, 7, 1], [4, 4, 2]])
PLAN = SETUP.plan(2, per=4, epsilon=1, people=20, progress=False)


def rows(people=("ann", "bob"), steps=8, state="home"):
    return pd.DataFrame(
        [{"user": user, "step": step, "state": state} for user in people for step in range(1, steps + 1)]
    )


def test_it_says_what_it_asks_and_what_is_found_in_five_lines():
    assert PLAN.lines[0] == "2 answers of epsilon 1 each in each 4 steps: at most 2 for each person"
    assert "names the right label in" in PLAN.lines[1] and len(repr(PLAN).splitlines()) <= 5
    assert "what was tried" in PLAN._repr_html_()


def test_without_a_budget_it_is_said_that_nothing_limits_the_answers():
    plan = SETUP.plan(epsilon=1)
    assert plan.lines[0] == "an answer of epsilon 1 at every step" and plan.lines[1].startswith("No limit is set.")
    with pytest.raises(InvalidInput, match="budget"):
        SETUP.plan()


def test_every_step_has_an_equal_part_of_the_budget():
    plan = SETUP.plan(2, per=4, schedule="every")
    assert plan.lines == ["an answer of epsilon 0.5 at every step: at most 2 in each 4 steps for each person"]


def test_a_table_is_checked_before_anything_is_spent(tmp_path):
    assert PLAN.check(rows(state="elsewhere")).in_states == 0
    assert list(tmp_path.iterdir()) == []


def test_released_twice_it_is_spent_once(tmp_path, capsys):
    first = PLAN.release(rows(), tmp_path / "out", progress=False)
    assert capsys.readouterr().err == "new ledger ledger.db: nobody in it has an account yet\n"
    again = PLAN.release(rows(), tmp_path / "out", progress=False)
    assert capsys.readouterr().err == "" and first.rows.equals(again.rows)
    with dphmm.open_ledger(tmp_path / "ledger.db", read_only=True) as ledger:
        assert ledger.spent("ann").epsilon == 4
    # Of more rows only the new ones are asked.
    more = PLAN.release(rows(steps=12), tmp_path / "out", progress=False).rows
    assert more[more["step"] <= 8].reset_index(drop=True).equals(first.rows)


def test_the_folder_has_the_distinct_plans_of_its_answers(tmp_path):
    """Each hash is made again from the parts of its plan."""
    out = PLAN.release(rows(), tmp_path / "out", progress=False)
    again = PLAN.release(rows(steps=12), tmp_path / "out", progress=False)
    for released in (out, again):
        plans = json.loads((tmp_path / "out" / "plans.json").read_text())["plans"]
        made = [plain_hash(plan) for plan in plans]
        assert made == [plan["hash"] for plan in plans] == sorted(set(released.rows["plan"].dropna()))
        assert "plans.json" in released.folder.files()
    edited = json.dumps({"plans": [plan | {"support": "00"} for plan in plans]})
    for spoilt in (edited, "no json", '{"plans": 1}', '{"plans": [[]]}', "[" * 10**5):
        (tmp_path / "out" / "plans.json").write_text(spoilt)
        PLAN.release(rows(steps=12), tmp_path / "out", progress=False)
        assert json.loads((tmp_path / "out" / "plans.json").read_text())["plans"] == plans
    on_beliefs = dphmm.Setup.labels(LABELS, moves=[[98, 1, 1], [1, 98, 1], [1, 1, 98]], constraint="delta=0.1")
    told = on_beliefs.plan(epsilon=1).release(rows(), tmp_path / "more", ledger=tmp_path / "more.db", progress=False)
    assert told.rows["plan"].nunique() and "plans.json" not in told.folder.files()


def test_whoever_wants_no_one_to_be_continued_is_refused(tmp_path):
    PLAN.release(rows(), tmp_path / "out", progress=False)
    with pytest.raises(InvalidInput, match="releases of 2 of these users"):
        PLAN.release(rows(), tmp_path / "out", new=True, progress=False)


def test_the_folder_has_nothing_of_the_owner(tmp_path):
    """A true state that nobody was answered with, and a row that cannot be read, are in no file of it."""
    table = tmp_path / "walks.csv"
    table.write_text("user,step,state\nann,1,home\nann,2,canaryplace\ncanaryperson,x,home\n")
    out = PLAN.release(table, tmp_path / "out", progress=False)
    out.report(progress=False)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) >= 6 and not any(b"canary" in path.read_bytes() for path in files)
    assert out.folder.others() == []
    owner = tmp_path / "out.owner"
    assert owner.stat().st_mode & 0o077 == 0 and (owner / "rejected.csv").exists()
    assert json.loads((owner / "counts.json").read_text())["rows_in_no_state"] == 1
    assert not any("ledger" in path.name for path in files)


def test_another_ledger_than_the_folder_was_released_with_is_noticed(tmp_path):
    PLAN.release(rows(), tmp_path / "out", progress=False)
    with pytest.raises(InvalidInput, match="which does not exist"):
        PLAN.release(rows(), tmp_path / "out", ledger=tmp_path / "other.db", progress=False)
    PLAN.release(rows(["eve"]), tmp_path / "other", ledger=tmp_path / "other.db", progress=False)
    with pytest.raises(InvalidInput, match="which is another ledger"):
        PLAN.release(rows(), tmp_path / "out", ledger=tmp_path / "other.db", progress=False)
    (tmp_path / "ledger.db").unlink()
    with pytest.raises(InvalidInput, match="which does not exist"):
        PLAN.release(rows(), tmp_path / "out", progress=False)
    assert not (tmp_path / "ledger.db").exists()


def test_a_folder_of_another_model_or_of_other_files_is_refused(tmp_path):
    PLAN.release(rows(), tmp_path / "out", progress=False)
    other = dphmm.Setup.labels(LABELS).plan(epsilon=1)
    with pytest.raises(InvalidInput, match="under another model"):
        other.release(rows(), tmp_path / "out", progress=False)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.png").write_bytes(b"1")
    with pytest.raises(InvalidInput, match="has files and is no release"):
        PLAN.release(rows(), tmp_path / "photos", progress=False)


def test_a_frame_with_a_row_that_cannot_be_read_is_refused_before_anything_is_made(tmp_path):
    table = rows()
    table.loc[0, "user"] = None
    with pytest.raises(InvalidInput, match="rows that cannot be read"):
        PLAN.release(table, tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_a_limit_of_the_ledger_holds(tmp_path):
    every = SETUP.plan(1, steps=8, schedule="every")
    every.release(rows(), tmp_path / "out", progress=False)
    with pytest.raises((BudgetExceeded, InvalidInput)):
        PLAN.release(rows(), tmp_path / "second", query="second", progress=False)
