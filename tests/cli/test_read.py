"""`dphmm read` without a question is `dphmm.audit.read` on the folder: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphmm
from commands import edited, set_in, write_rows
from dphmm.statement.files import load_statement

pytestmark = pytest.mark.replayed_words


@pytest.fixture
def folder(town, tmp_path, monkeypatch, run):
    """A release in out/, its plans and a prior; and no true place."""
    monkeypatch.chdir(tmp_path)
    public = ("--model", town / "model.npz", "--policy", town / "radius.json")
    files = ("-o", "out", "--format", "parquet")
    run("release", town / "walks.csv", *public, "--epsilon", 1, *files, "--model-people", "others")
    run("check-release", "out", "--plain", "plain")
    shutil.copy("plain/plans.json", "plans.json")
    shutil.rmtree("plain")
    Path("mine.csv").write_text("state,probability\nx0y0,0.25\nx1y0,0.5\nx1y1,0.25\n")
    return tmp_path


TABLE, STATEMENT = Path("out/released.parquet"), Path("out/released.parquet.privacy.json")


def test_it_says_what_was_published_promised_and_may_be_concluded(folder, run, one_json):
    said = run("read", "out").stdout
    assert "published: 36 answers of 3 people, 2024-05-06 08:00:00" in said
    assert "promised: Take any two states that share an edge of the policy" in said
    assert "by a factor of at most 2.72" in said and "it leaves at least 1 in 4 doubt; answers of other moments" in said
    assert "you may not conclude: " in said
    assert "\nverdict " in f"\n{said}"
    told = one_json(run("read", "out", "--json"))
    assert told["people"] == 3 and told["answers"] == told["rows"] == 36 and told["output"] is None


def test_people_without_an_answer_are_not_told_as_people_with_one(folder, run, one_json):
    import pyarrow.compute as pc

    table = pq.read_table(TABLE)
    silent = pc.equal(table.column("user"), "u3")
    for name in table.column_names:
        if name not in ("user", "t", "step"):
            nothing = pa.scalar(0.0 if name == "epsilon" else None, table.schema.field(name).type)
            column = pc.if_else(silent, nothing, table.column(name))
            table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, "some.parquet")
    assert "published: 24 answers of 2 of 3 people, in 36 rows" in run("read", "some.parquet").stdout
    told = one_json(run("read", "some.parquet", "--json"))
    assert (told["people"], told["people_answered"], told["answers"]) == (3, 2, 24)


def test_a_promise_over_paths_is_told_with_its_number(town, folder, run):
    public = ("--model", town / "model.npz", "--policy", town / "radius.json", "--model-people", "others")
    over = ("--path-epsilon", 13, "--steps", 12, "--epsilon", 1)
    run("release", town / "walks.csv", *public, *over, "-o", "paths", "--ledger", "paths.db")
    assert "promised: two paths that hide each other lose at most 13 in all" in run("read", "paths").stdout
    within = ("--path-epsilon", 4, "--window", 4, "--epsilon", 1)
    run("release", town / "walks.csv", *public, *within, "-o", "windows", "--ledger", "w.db")
    assert "lose at most 4 where they differ within 4 steps in a row alone" in run("read", "windows").stdout


def test_a_statement_that_promises_nothing_or_none(folder, run):
    told = json.loads(STATEMENT.read_text())
    told["model"] |= {"people": "same", "people_known_by": "names"}
    told |= {"private": False, "reasons": ["fitted on released"]}
    edited(folder / "out", STATEMENT.name, json.dumps(told))
    said = run("read", "out").stdout
    assert (
        "promised: nothing: the model was fitted without privacy on people released" in said
        and "Take any two states" not in said
    )
    assert "you may be at most" not in said
    shutil.copy(TABLE, "alone.parquet")
    assert "nothing says under which promise" in run("read", "alone.parquet").stdout


def test_every_sentence_of_a_statement_is_printed_on_request(folder, run):
    said = run("read", "out", "--statement").stdout.splitlines()
    assert said == [f"{name}: {sentence}" for name, sentence in load_statement(TABLE).rows()]
    STATEMENT.unlink()
    assert "--statement: got no privacy statement" in run("read", "out", "--statement", code=2).stderr


def test_a_column_that_no_release_has_is_shown_nowhere(folder, run):
    """A true state that its owner left in the file by mistake is not handed on with the likelihoods."""
    table = pq.read_table(TABLE).to_pandas()
    table.assign(state="CANARY", lat=51.25).to_parquet(TABLE)
    given = ("--plans", "plans.json", "--prior", "mine.csv")
    for words in ((*given, "-o", "read.parquet"), ("--json",)):
        result = run("read", "out", *words, code=2)
        assert "columns that no release has: state, lat" in result.stderr and result.stdout == ""
        assert "CANARY" not in result.stderr and "51.25" not in result.stderr
    assert not Path("read.parquet").exists()


def test_a_statement_that_does_not_know_promises_nothing(folder, run):
    told = json.loads(STATEMENT.read_text())
    told["model"] |= {"people": "unknown", "people_known_by": None}
    told |= {"private": "unknown", "reasons": ["fitted on unknown people"]}
    edited(folder / "out", STATEMENT.name, json.dumps(told))
    said = run("read", "out").stdout
    assert "it is not known whether anything is promised: the model was fitted without privacy, and nobody" in said
    assert "Take any two states" not in said and "you may be at most" not in said


def test_likelihoods_and_posteriors_are_written(folder, run):
    given = ("--plans", "plans.json", "--prior", "mine.csv", "--coverage", "0.7")
    run("read", "out", *given, "-o", "read.parquet")
    rows = pq.read_table("read.parquet").to_pylist()
    assert len(rows) == 36 and {name for name in rows[0] if name.startswith("likelihood ")} == {
        f"likelihood x{x}y{y}" for x in range(4) for y in range(4)
    }
    assert {row["likeliest"] for row in rows} <= {"x0y0", "x1y0", "x1y1"}
    assert all(row["region_probability"] >= 0.7 - 1e-9 for row in rows)
    space = dphmm.storage.load_model(folder / "out" / "model.npz").space
    found = dphmm.audit.read(TABLE, states=space, plans="plans.json", prior="mine.csv", coverage="0.7")
    assert found.to_arrow().to_pylist() == rows


def test_a_region_of_names_with_blanks_is_a_json_list_in_csv(tmp_path, run, monkeypatch):
    """With blanks between them "x1 y0" would be two states, or one."""
    monkeypatch.chdir(tmp_path)
    names = ("x1 y0", 'x0", "y0', "x1y1")
    write_rows(Path("rows.csv"), ["user", "state"], [[user, names[at % 3]] for user in "ab" for at in range(9)])
    run("fit", "rows.csv", "-o", "m.npz", "--state-column", "state", "--answers", "ordinal", "--smoothing", "1")
    run("policy", "complete", "m.npz", "-o", "p.json")
    run("release", "rows.csv", "--model", "m.npz", "--policy", "p.json", "--epsilon", 1, "-o", "out")
    run("check-release", "out", "--plain", "plain")
    write_rows(Path("mine.csv"), ["state", "probability"], [[names[0], 0.5], [names[1], 0.25], [names[2], 0.25]])
    given = ("--plans", "plain/plans.json", "--prior", "mine.csv", "--coverage", "0.999")
    for name in ("read.csv", "read.parquet"):
        run("read", "out", *given, "-o", name)
    with Path("read.csv").open(newline="") as file:
        regions = [json.loads(row["region"]) for row in csv.DictReader(file)]
    assert regions == pq.read_table("read.parquet").column("region").to_pylist()
    assert {name for region in regions for name in region} == set(names)
    said = run("read", "out", *given).stdout
    assert "with a probability of at least 0.999, if it was drawn from your prior;" in said


def test_a_file_that_was_changed_is_told(folder, run, one_json):
    pq.write_table(pq.read_table(TABLE).slice(1), TABLE)
    told = "released.parquet was changed since released.parquet.privacy.json was written"
    said = run("read", "out", "-q")
    assert said.stderr == f"warning: {told}\n"
    assert f"you may not conclude: that anything is promised of this file: {told}" in said.stdout
    assert one_json(run("read", "out", "--json"))["changed"] == told
    table = dphmm.audit.read(pq.read_table(TABLE), statement=STATEMENT)
    assert table.changed == "the statement is about another table, with other rows"


def _other(run, town, schedule="every", constraint="support"):
    """Release again with another schedule or constraint; the options of `read` for its likelihoods."""
    public = set_in(("--model", town / "model.npz", "--policy", town / "radius.json"), constraint=constraint)
    over = ("--path-epsilon", 4, "--steps", 12, "--schedule", schedule) if schedule != "every" else ()
    files = ("-o", "other", "--ledger", "other.db", "--model-people", "others", "--format", "parquet")
    run("release", town / "walks.csv", *public, "--epsilon", 1, *files, *over)
    run("check-release", "other", "--plain", "plain")
    return "--plans", "plain/plans.json", "-o", "read.parquet"


@pytest.mark.slow
def test_a_planned_schedule_has_regions(folder, run, town):
    given = _other(run, town, "planned")
    run("read", "other", *given, "--prior", "mine.csv")
    assert 0 < len(pq.read_table("read.parquet").column("region")) < len(pq.read_table("other/released.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"constraint": "delta=0.2"}, "plans follow from earlier answers (constraint delta=0.2)"),
        ({"schedule": "paced"}, "earlier answers decided when to ask (schedule paced)"),
    ],
)
def test_a_prior_is_refused_where_earlier_answers_chose(folder, run, town, options, reason):
    given = _other(run, town, **options)
    said = run("read", "other", *given, "--prior", "mine.csv", code=2).stderr
    assert (
        said.startswith(f"error: --prior: got one for a file where {reason}; expected none") and said.count("\n") == 1
    )
    assert f"the likelihood of an answer and a prior: {reason}" in run("read", "other", *given).stdout
    assert not {"probability", "region"} & set(pq.read_table("read.parquet").column_names)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        (("--prior", "mine.csv"), "--prior"),
        (("--plans", "mine.csv"), "--plans"),
        (("-o", "out.parquet"), "--plans"),
        (("--coverage", "2"), "--coverage"),
        (("--plans", "nowhere.json"), "--plans"),
        (("--own-places",), "--own-places"),
        (("--believe", "nowhere.npz", "--estimates"), "--believe"),
        (("--believe", "model.npz", "--statement"), "--believe"),
        (("--zone", "+02:00"), "--zone"),
        (("--statement", "--estimates"), "--statement"),
    ],
)
def test_bad_input_is_one_line_that_names_the_option(folder, run, given, option):
    said = run("read", "out", *given, code=2).stderr
    assert said.count("\n") == 1 and f"error: {option}: " in said
