"""Questions about tables in Python: `dphmm.query`, its frames, and the registry that the command line reads.

Claims: under the same words the command and the function publish the same numbers and the same statement, whether the
table is a file or a frame of any kind, and whether options are text or values; a question that is registered is offered
by the command with its help and its options; one cell of a frame changes no number but its own row's, also where it
changes the type of a pandas column; errors speak of arguments, not of options; the rows that do not count are in no
repr. Fails where an option or the bits are not handed on, where a frame is read otherwise than its file, where the
command lists questions by hand, and where a cell of a frame raises.
"""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import dphmm
from dphmm.accounting import MemoryLedger
from dphmm.dependent import Answered, Question, register
from dphmm.dependent._dependence import Budget, add_integer_noise
from dphmm.dependent._inputs import Option, Rejected, counting, data_numbers
from dphmm.dependent._question import REGISTERED, AnsweredQuestion, ExactCounts
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.samplers.entropy import default_bits
from noisy_numbers import loss, replaced

TABLES = {
    "visits.csv": "user,t,state\nann,2024-05-06T08:00:00Z,home\nann,2024-05-06T08:00:30Z,work\n"
    "bob,2024-05-06T09:10:00Z,gym\nbob,yesterday,home\ncid,2024-05-06T11:00:00Z,zz\n,2024-05-06T08:00:00Z,home\n",
    "points.csv": "user,x,y,c\nann,1,1,no\nann,2,1,no\nbob,9,8,yes\ncid,8,99,yes\ncid,1,0,no\n"
    ",nan,1,no\nbob,1e999,2,maybe\n",
    "edges.csv": "a,b\n0,1\n1,2\n2,1\n1,3\n3,3\n9,1\n",
    "named.csv": "a,b\nann,bob\nbob,cid\nzoe,ann\n",
    "people.csv": "name\nann\nbob\ncid\ndan\n",
    "friends.csv": "a,b\nann,bob\n",
}
#: A command, and the same question in Python.
ASKED = {
    "histogram": (
        "histogram visits.csv --states home,work,other --times 4 --step 1h --from 2024-05-06T08:00:00Z --windows 2 "
        "--dependence group:2 --consistent",
        {"states": ["home", "work", "other"], "times": 4, "step": 3600, "first": "2024-05-06T08:00:00Z",
             "windows": [(0, 2), (2, 4)], "dependence": ("group", 2), "consistent": True},
    ),
    "histogram of rows": (
        "histogram visits.csv --states home,work --time-column state --state-column t --dependence group "
        "--max-rows-per-user 1",
        {"states": ["home", "work"], "time_column": "state", "state_column": "t", "dependence": "group",
         "max_rows_per_user": 1},
    ),
    "kmeans": (
        "kmeans points.csv --columns x,y --box 0:10,-5:20 --start 1,1;9,9 --iterations 3 --dependence group:2",
        {"columns": ["x", "y"], "box": ([0, -5], [10, 20]), "start": np.array([[1, 1], [9, 9]]), "iterations": 3,
             "dependence": "group:2"},
    ),
    "kmeans of friends": (
        "kmeans points.csv --columns x --box 0:10 --start 1;9 --dependence friends:friends.csv --max-rows-per-user 2",
        {"columns": "x", "box": "0:10", "start": "1;9", "dependence": "friends:friends.csv", "max_rows_per_user": 2},
    ),
    "degree": (
        "degree edges.csv --people 5 --level node --cap 3 --raw --dependence independent",
        {"people": 5, "level": "node", "cap": 3, "consistent": False, "dependence": "independent"},
    ),
    "degree of names": (
        "degree named.csv --people people.csv --level edge --cap 2 --dependence group:2",
        {"people": "people.csv", "level": "edge", "cap": 2, "dependence": "group:2"},
    ),
    "svm": (
        "svm points.csv --columns x,y --box 0:10,0:10 --label c --classes no,yes --regularisation 0.1 "
        "--dependence group:2",
        {"columns": ["x", "y"], "box": ((0, 0), (10, 10)), "label": "c", "classes": ("no", "yes"),
         "regularization": 0.1, "dependence": "group:2"},
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def command(*words, seed=None, code=0):
    """Run dphmm query; with ``seed`` its words are those of ReplayBits(seed)."""
    from dphmm.cli.app import app

    with pytest.MonkeyPatch.context() as patched:
        if seed is not None:
            patched.setattr("dphmm.samplers.entropy._process_bits", lambda: dphmm.ReplayBits(seed))
        told = CliRunner().invoke(app, ["query", *map(str, words)])
    assert told.exit_code == code, told.stderr
    return told


def frame_of(name, kind):
    """The table as a path, or as a frame of text, or as the frame that pandas makes of it."""
    if kind == "path":
        return Path(name)
    if kind == "pandas":
        return pd.read_csv(name)
    frame = pd.read_csv(name, dtype=str, keep_default_na=False)
    return pl.from_pandas(frame) if kind == "polars" else pa.Table.from_pandas(frame)


@pytest.mark.filterwarnings("ignore:the noise is larger")
@pytest.mark.parametrize("kind", ["path", "pandas", "polars", "arrow"])
@pytest.mark.parametrize("name", ASKED)
def test_the_command_and_the_function_publish_the_same(name, kind):
    line, options = ASKED[name]
    question, data, *more = line.split()
    command(question, data, *more, "--epsilon", "2", "-o", "out.parquet", "--quiet", seed=7)
    options = dict(options)
    table = frame_of(data, kind)
    found = dphmm.query(question, table, options.pop("dependence"), 2, bits=dphmm.ReplayBits(7), **options)
    assert found.table.to_csv(index=False) == pd.read_parquet("out.parquet").to_csv(index=False)
    said = json.loads(Path("out.parquet.privacy.json").read_text())
    del said["file"]
    assert json.loads(json.dumps(found.statement)) == said
    assert found.epsilon is None and said["private"] is False, "words that are replayed promise nothing"
    listed = pd.read_csv("out.parquet.rejected.csv")
    reasons = listed["reason"].tolist()
    assert [reason for _, reason in found.rejected.sorted()] == reasons and reasons
    header = 0 if kind != "path" else 1
    assert [row + 1 - header for row, _ in found.rejected.sorted()] == listed["line"].tolist()


@pytest.mark.replayed_words
def test_the_promise_of_a_result():
    found = dphmm.query("degree", "edges.csv", "independent", "0.5", people=5, level="edge", cap=3)
    assert found.epsilon == Fraction(1, 2) == found.event.claimed
    assert found.statement["private"] is True and found.statement["epsilon"] == "1/2"
    assert "one edge" in found._repr_html_() and "<table" in found._repr_html_()
    assert "unknown_person" not in repr(found) + repr(found.rejected) + found._repr_html_()
    assert found.rejected.sorted() == [(6, "loop"), (7, "unknown_person")]


def test_what_nobody_said_is_warned_of():
    with pytest.warns(UserWarning, match="^dependence was not given, so records are taken as independent") as told:
        found = dphmm.query("degree", "edges.csv", None, 1, people=5, level="edge", cap=3, bits=dphmm.ReplayBits(1))
    assert found.statement["dependence"]["given"] == "nothing; independent by default"
    assert told[0].filename == __file__, "a line of the library would be told of once in a process"
    with pytest.warns(UserWarning, match="fewer iterations help"):
        options = {"columns": "x", "box": "0:1", "start": "0", "bits": dphmm.ReplayBits(1)}
        dphmm.query("kmeans", "points.csv", "independent", 1, **options)


WRONG = {
    "question": ("median", {}),
    "options": ("histogram", {"colour": 1}),
    "epsilon": ("histogram", {"epsilon": 0}),
    "dependence": ("histogram", {"dependence": 3}),
    "max_rows_per_user": ("histogram", {"dependence": "group"}),
    "states": ("histogram", {"states": ["a", "a"]}),
    "times": ("histogram", {"times": True}),
    "step": ("histogram", {"step": "5"}),
    "first": ("histogram", {"first": "soon"}),
    "windows": ("histogram", {"times": 3, "windows": [(0, 9)]}),
    "user_column": ("histogram", {"user_column": "zz"}),
    "model_people": ("histogram", {"model_people": "others"}),
    "columns": ("kmeans", {"columns": ["x", "x"]}),
    "box": ("kmeans", {"box": ([0], [10])}),
    "start": ("kmeans", {"start": [[1, 11]]}),
    "iterations": ("kmeans", {"iterations": 1.5}),
    "people": ("degree", {"people": ["ann", "ann"]}),
    "level": ("degree", {"level": "graph"}),
    "cap": ("degree", {"cap": 0}),
    "label": ("svm", {"label": "x"}),
    "classes": ("svm", {"classes": ["a", "b", "c"]}),
    "regularization": ("svm", {"regularization": 0}),
    "kind": ("svm", {"kind": "forest"}),
}
#: Cells of a frame that no text has, and some that change the type of a column.
CELLS = ["x", "", None, True, 3.5, 10**30, float("nan"), float("-inf"), object(), [1], b"\xff", pd.Timestamp(0),
         "\ud800", np.float32(2), pd.NA]  # fmt: skip
PLAIN = {
    "histogram": {"data": "visits.csv", "states": "home,work"},
    "kmeans": {"data": "points.csv", "columns": "x,y", "box": "0:10,0:10", "start": "1,1"},
    "degree": {"data": "edges.csv", "people": 5, "level": "edge", "cap": 3},
    "svm": {"data": "points.csv", "columns": "x,y", "box": "0:10,0:10", "label": "c", "classes": "no,yes"},
}


@pytest.mark.parametrize("field", WRONG)
def test_errors_are_in_the_words_of_python(field):
    question, wrong = WRONG[field]
    given = {"dependence": "independent", "epsilon": 1, **PLAIN.get(question, {"data": "visits.csv"}), **wrong}
    with pytest.raises(dphmm.errors.InvalidInput) as refused:
        dphmm.query(question, **given)
    assert str(refused.value).startswith(f"{field}: got ") and "--" not in str(refused.value)


@pytest.mark.filterwarnings("ignore:the noise is larger")
@pytest.mark.parametrize("number", range(len(CELLS)))
@pytest.mark.parametrize("question", PLAIN)
def test_a_cell_of_a_frame_is_its_own_row_s(monkeypatch, question, number):
    """In any column it may change the type of all of it: what others count for stays, and everything that is said."""
    numbers = replaced(monkeypatch)
    options = dict(PLAIN[question])
    frame = pd.read_csv(options.pop("data"))
    if question == "svm":
        frame["c"] = frame["c"] == "yes"
        options["classes"] = "False,True"

    def asked(table):
        found = dphmm.query(question, table, "independent", 1, bits=dphmm.ReplayBits(1), **options)
        return (found.table.to_json(), json.dumps(found.statement)), numbers.taken()

    before = asked(frame)
    for column in frame.columns:
        changed = frame.astype({column: object})
        changed.at[1, column] = CELLS[number]
        # Rows of a changed person may be numbered anew; a record of a histogram is then there or not.
        after = asked(changed)
        assert after[0] == before[0], column
        assert loss(before[1], after[1]) <= (2 if column in ("user", "t") else 1), column


@pytest.mark.filterwarnings("ignore:the noise is larger")
def test_a_number_of_a_frame_counts_as_in_a_file(monkeypatch):
    """However it prints: floats beyond all whole numbers, infinite ones, whole ones, and text that is a number."""
    numbers = replaced(monkeypatch)
    given = [1e35, 1e300, float("inf"), 2.0**60, 3.0, 0.1, "4e0", float("nan")]
    Path("cells.csv").write_text("x\n1e35\n1e300\n1e999\n1152921504606846976\n3\n0.1\n4e0\nnan\n")
    for table in ("cells.csv", pd.DataFrame({"x": given}), pd.DataFrame({"x": given}, dtype=object)):
        options = {"columns": "x", "box": "0:10", "start": "3", "iterations": 1, "bits": dphmm.ReplayBits(1)}
        dphmm.query("kmeans", table, "independent", 1, **options)
    assert numbers.asked[0] == numbers.asked[2] == numbers.asked[4] and numbers.asked[0][3] == (8,)
    assert numbers.asked[1] == numbers.asked[3] == numbers.asked[5]


def test_a_frame_stays_as_it_is_and_is_not_its_own_side_information():
    frame = pd.read_csv("friends.csv")
    before = frame.copy()
    with pytest.raises(dphmm.errors.InvalidInput, match=r"people: got friends\.csv, with the rows of DATA"):
        dphmm.query("degree", frame, "independent", 1, people="friends.csv", level="edge", cap=2)
    with pytest.raises(dphmm.errors.InvalidInput, match="with the rows of DATA"):
        other = pa.table({"p": ["bob"], "q": ["ann"]})
        dphmm.query("degree", other, "friends:friends.csv", 1, people=9, level="node", cap=2)
    pd.testing.assert_frame_equal(frame, before)


def fitted():
    space = dphmm.StateSpace.categories(["home", "work"])
    return dphmm.MarkovModel.fit([[0, 1, 1, 0, 1], [1, 0, 0]], 2, space=space)


def test_a_model_in_memory_is_that_of_its_file():
    model = fitted()
    dphmm.storage.save_model(model, "model.npz")
    answers = [
        dphmm.query("histogram", "visits.csv", how, 1, times=2, windows=1, bits=dphmm.ReplayBits(3), **options)
        for how, options in [(model, {}), ("markov:model.npz", {})]
    ]
    pd.testing.assert_frame_equal(answers[0].table, answers[1].table)
    one, other = (dict(answer.statement["dependence"]) for answer in answers)
    assert model.digest in one.pop("given") and other.pop("given") == "markov:model.npz"
    assert other.pop("model_sha256") and one == other
    assert answers[0].whom.people == "unknown" and answers[0].model is model


@pytest.mark.replayed_words
@pytest.mark.parametrize(("people", "holds"), [("others", True), ("same", False), (None, "unknown")])
@pytest.mark.parametrize("given", ["dependence", "states"])
def test_a_model_in_memory_that_was_fitted_without_privacy(people, holds, given):
    options = {"states": fitted()} if given == "states" else {}
    how = "independent" if given == "states" else fitted()
    found = dphmm.query("histogram", "visits.csv", how, 1, times=2, model_people=people, **options)
    assert found.statement["private"] == holds
    assert (found.epsilon is None) == (holds is False)


class Above(Question):
    """How many rows are above a public number: a question that the package does not have."""

    name = "above"
    help = "How many rows of a column are above a public number."
    forms = "group:K or independent."
    options = (
        Option("column", "The column.", "COL"),
        Option("limit", "The public number.", "L", int, default=5, shown=True),
        Option("loud", "Say so.", kind=bool, default=False),
    )

    def check(self, dependence):
        self.dependence = self.depends(dependence, ("group", "independent"), bounded=False)
        self.limit = counting(self.given["limit"], self.called("limit"), "a public whole number")

    def find(self, bits):
        bits, rows = default_bits(bits), self.data.read([self.given["column"]])
        rejected = Rejected.of(rows)
        values = data_numbers(rows, [self.given["column"]], rejected)
        budget = Budget.of(self.dependence.between(of_people=False), self.epsilon, None, False)
        counts = np.array([int((values > self.limit).sum())])
        noisy, part = add_integer_noise(counts, Fraction(1), budget.per_record, "above", bits)
        answered = Answered(pd.DataFrame({"above": noisy}), budget.event("above", "one row", (part,), bits))
        unit = self.dependence.unit(of_people=False)
        told = ["loud"] if self.given["loud"] else []
        return AnsweredQuestion(
            answered, rejected, {"limit": self.limit}, unit, details={"loudly": True}, warnings=told
        )


def test_a_registered_question_is_asked_by_the_command_and_in_python(monkeypatch):
    assert "above" not in command("-h").stdout
    # Put there first, so that it is taken away after the test.
    monkeypatch.setitem(REGISTERED, "above", None)
    register(Above)
    assert "How many rows of a column are above a public number." in command("-h").stdout
    told = command("above", "--help-all").stdout
    assert [
        word for word in ("--column COL", "--limit L", "[default: 5]", "--loud", "group:K or") if word not in told
    ] == []
    line = ("above", "points.csv", "--epsilon", 1, "--column", "x", "--limit", 3, "--loud", "-o", "out.csv")
    told = command(*line, "--dependence", "group:2", "--json", seed=9)
    assert json.loads(told.stdout)["loudly"] is True and "warning: loud" in told.stderr
    with pytest.warns(UserWarning, match="loud"):
        found = dphmm.query(
            "above", "points.csv", "group:2", 1, column="x", limit=3, loud=True, bits=dphmm.ReplayBits(9)
        )
    assert pd.read_csv("out.csv").equals(found.table)
    assert json.loads(Path("out.csv.privacy.json").read_text())["domain"] == {"limit": 3}
    assert "--limit: got -1" in command(*line, "--limit", -1, "--force", "--dependence", "group:2", code=2).stderr


@pytest.mark.slow
def test_a_service_needs_no_command_line(folder):
    code = (
        "import sys, dphmm; dphmm.query('degree', 'edges.csv', 'independent', 1, people=5, level='edge', cap=3, "
        "bits=dphmm.ReplayBits(1)); print(any(name.startswith('dphmm.cli') or name == 'click' for name in sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    assert told.stdout.strip() == "False"


def counts_of(values):
    return ExactCounts(np.array(values), Rejected("row"))


def test_exact_counts_show_nothing_and_are_not_written():
    counts = counts_of([[31415926, 2718281]])
    assert repr(counts) == str(counts) == "ExactCounts(...)"
    for write in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="are not written"):
            write(counts)


def never():
    raise AssertionError("it was counted")


@pytest.mark.replayed_words
def test_counts_of_elsewhere_are_drawn_once_for_a_name():
    """Also where somebody else stores the name while they are counted; a stored name counts nothing."""
    frame, ledger = pd.DataFrame({"user": [], "step": [], "state": []}), MemoryLedger()
    question = REGISTERED["histogram"](frame, "group:2", 1, {"states": "a,b"})
    stored = []

    def count():
        if not stored:
            stored.append(None)
            stored[0] = question.answer_counts(lambda: counts_of([[500, 9]]), ledger, "visits")
        return counts_of([[3, 4]])

    found = question.answer_counts(count, ledger, "visits")
    assert found.table.equals(stored[0].table) and len(ledger.publications()) == 1
    assert (found.kept.fresh, stored[0].kept.fresh) == (False, True)

    again = question.answer_counts(never, ledger, "visits")
    assert again.table.equals(found.table) and not again.kept.fresh and again.statement == found.statement
    with pytest.raises(InvalidInput, match=r"^event_id: got nothing"):
        question.answer_counts(never, ledger, "")


def test_a_cap_refuses_before_anything_is_counted():
    ledger = MemoryLedger()
    with ledger.transaction() as transaction:
        transaction.bind_publications(Fraction(1))
    question = REGISTERED["degree"](
        pd.DataFrame({"a": [], "b": []}), "independent", 2, {"people": 3, "level": "node", "cap": 1}
    )

    with pytest.raises(BudgetExceeded, match="nothing was drawn or spent"):
        question.answer_counts(never, ledger, "edges")


@pytest.mark.filterwarnings("ignore:the noise is larger")
@pytest.mark.parametrize("name", ASKED)
def test_a_forecast_is_the_noise_of_the_answer(name):
    """For every question, from the header alone; the question that was made reads no row for it either."""
    line, options = ASKED[name]
    question, source = line.split()[:2]
    if question == "svm":
        pytest.importorskip("sklearn")
    given = {"dependence": "independent", "data": source, **options}
    data, dependence = given.pop("data"), given.pop("dependence")
    found = dphmm.query(question, data, dependence, 1, bits=dphmm.ReplayBits(1), **given)
    rows = found.statement["domain"].get("records")
    told = dphmm.dependent.forecast(question, data, dependence, 1, about=rows, **given)
    assert told.parts == found.event.parts and told.neighbours == found.event.neighbours
    asked = REGISTERED[question](data, dependence, 1, given)
    read = asked.data
    assert asked.forecast(rows).parts == told.parts and asked.data is read


def test_a_forecast_takes_the_rule_of_names_from_the_ledger():
    ledger = MemoryLedger("exact")
    told = dphmm.dependent.forecast(
        "histogram", "visits.csv", "group:2", 1, states="home,work", ledger=ledger, event_id="one", about=20
    )
    assert told.account.totals.replaced.value == 1 and not ledger.publications()
    with pytest.raises(InvalidInput, match="event_id: got nothing"):
        dphmm.dependent.forecast("histogram", "visits.csv", "group:2", 1, states="home,work", ledger=ledger)
    with pytest.raises(InvalidInput, match="about: got 0"):
        dphmm.dependent.forecast("histogram", "visits.csv", "group:2", 1, states="home,work", about=0)
