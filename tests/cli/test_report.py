"""dphmm report: one page from the folder of a release, or one line that says what does not fit.

Fails where the page of another model, policy, ledger, truth or file is made all the same, where a refusal leaves a
file, where an option is not handed on, or where the truth reaches a page, a figure or a message unasked.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256

import pandas as pd
import pytest
from click.testing import CliRunner

from cli.conftest import altered
from commands import as_parquet, edited
from dphmm.cli.app import app
from dphmm.report import assembling
from dphmm.statement.story import ANSWERS

pytestmark = pytest.mark.usefixtures("few_invented_people")


@pytest.fixture(scope="module")
def of():
    """The arguments of a report: of(folder, out, *more), by the folder's own facts."""

    def arguments(folder, out, *more, ledger=False):
        alone = [] if ledger or "--truth" in more else ["--no-ledger"]
        return ["report", folder / "released", "-o", out, *alone, *more]

    return arguments


def data_of(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text())[1])


@pytest.mark.slow
def test_a_page_and_what_is_said_of_it(released, of, tmp_path, run, one_json):
    result = run(*of(released, tmp_path / "report.html"))
    for label in ("verdict", "published", "found", "guaranteed", "spent", "not protected", "step by step", "written"):
        assert f"\n{label} " in f"\n{result.stderr}", label
    assert result.stdout == "" and "3 of 3 people" in result.stderr
    told = one_json(run(*of(released, tmp_path / "report.html", "--json", "-q", "--force")))
    story = {name: told.pop(name) for name in ("verdict", *ANSWERS)}
    assert story["published"]["answers"] == 36 and story["guaranteed"]["holds"] is True
    assert story["found"]["error"] < story["found"]["error_without"] and story["spent"]["epsilon_sum"] == "12"
    assert told == {
        "output": str(tmp_path / "report.html"), "bytes": (tmp_path / "report.html").stat().st_size, "rows": 36,
        "subjects": 3, "subjects_step_by_step": 3, "rows_step_by_step": 36, "plans": 1, "owner_only": False,
        "private": True, "figures": [],
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert run(*of(released, tmp_path / "report.html", "-q", "--force")).stderr == ""


@pytest.mark.slow
def test_csv_and_parquet_give_the_same_data(released, of, tmp_path, run):
    as_parquet(released / "released", tmp_path / "released")
    run(*of(released, tmp_path / "a.html"))
    result = run(*of(tmp_path, tmp_path / "b.html", "-q"))
    assert result.stderr == "warning: released.parquet was changed since released.parquet.privacy.json was written\n"
    assert data_of(tmp_path / "a.html") == data_of(tmp_path / "b.html")
    assert "was changed since" in (tmp_path / "b.html").read_text()


@pytest.mark.slow
def test_a_ledger_confirms_the_rows_and_changes_no_figure(released, of, tmp_path, run):
    run(*of(released, tmp_path / "a.html"))
    run(*of(released, tmp_path / "b.html", ledger=True))
    alone = "Of this file alone: the ledger counts all files together."
    stored = "All files and queries of the ledger count."
    bar = ' <span class="kind">budget: all files of the ledger</span>'
    said = (tmp_path / "b.html").read_text()
    assert said.count(bar) == 1
    owner = " The ledger is with its owner: another reader leaves it out."
    assert said.count(owner) == 1
    option = ' <span class="option">--ledger</span> LEDGER'
    assert said.count(option) == 1
    audit = said.replace(owner, "").replace(bar, "").replace(option, "")
    every = ('<th scope="row">the whole file</th>', '<th scope="row">all files and queries</th>')
    first = (tmp_path / "a.html").read_text().replace(alone, stored).replace(*every)
    first = first.replace("(by this file)", "(by all files and queries of the ledger)")
    assert first == audit


def test_users_are_chosen(released, of, tmp_path, run):
    run(*of(released, tmp_path / "report.html", "--user", "u3", "--user", "u1", "--user", "u3"))
    assert [person["name"] for person in data_of(tmp_path / "report.html")["people"]] == ["u3", "u1"]


@pytest.mark.slow
def test_of_many_rows_every_nth_person_is_shown_and_all_are_counted(released, of, tmp_path, run, monkeypatch):
    monkeypatch.setattr(assembling, "MOST_ROWS", 24)
    monkeypatch.setattr(assembling, "FEW_PEOPLE", 2)
    run(*of(released, tmp_path / "a.html"))
    text = (tmp_path / "a.html").read_text()
    assert [person["name"] for person in data_of(tmp_path / "a.html")["people"]] == ["u1", "u3"]
    assert "2 of 3 people can be looked at step by step: every second by name." in text
    assert "Where people are, by hour" in text and "for each of 3 people" in text
    monkeypatch.setattr(assembling, "MOST_COUNTED", 24)
    run(*of(released, tmp_path / "b.html"))
    assert "Where people are, by hour" not in (tmp_path / "b.html").read_text()
    monkeypatch.setattr(assembling, "MOST_WRITTEN", 1)
    run(*of(released, tmp_path / "c.html"))
    assert [person["name"] for person in data_of(tmp_path / "c.html")["people"]] == ["u1"]
    told = "1 of 3 people can be looked at step by step, the first of every second by name: more would make the page"
    assert f"{told} too large; --user shows others." in (tmp_path / "c.html").read_text()


@pytest.mark.slow
def test_a_page_says_whom_it_has_no_room_for(released, of, tmp_path, run, monkeypatch):
    """In a file of few rows, too: those who are missing were told of on the terminal alone."""
    run(*of(released, tmp_path / "all.html"))
    assert "can be looked at step by step" not in (tmp_path / "all.html").read_text()
    monkeypatch.setattr(assembling, "MOST_WRITTEN", 1)
    result = run(*of(released, tmp_path / "a.html"))
    assert [person["name"] for person in data_of(tmp_path / "a.html")["people"]] == ["u1"]
    room = "more would make the page too large"
    told = f"1 of 3 people can be looked at step by step, the first by name: {room}; --user shows others."
    assert told in (tmp_path / "a.html").read_text() and re.search("step by step +1 of 3 people", result.stderr)
    run(*of(released, tmp_path / "b.html", "--user", "u3", "--user", "u1"))
    assert [person["name"] for person in data_of(tmp_path / "b.html")["people"]] == ["u3"]
    told = f"1 of the 2 people that were named can be looked at step by step, the first of them: {room}."
    assert told in (tmp_path / "b.html").read_text()


@pytest.mark.slow
def test_it_lies_in_the_folder_and_the_truth_s_in_the_owner_s(released, town, tmp_path, run):
    shutil.copytree(released, tmp_path / "own")
    folder = tmp_path / "own" / "released"
    for _ in range(2):
        run("report", folder / "released.csv", "-q")
        run("report", folder, "--truth", town / "walks.csv", "-q")
    assert "OWNER ONLY" not in (folder / "report.html").read_text()
    page = tmp_path / "own" / "released.owner" / "report.owner.html"
    assert page.stat().st_mode & 0o077 == 0 and not (folder / page.name).exists()
    assert "nothing is wrong" in run("check-release", folder).stdout


@pytest.mark.slow
def test_attacks_are_for_the_owner_and_have_a_unit(released, town, site, of, tmp_path, run, release_of, one_json):
    arguments = of(released, tmp_path / "r.owner.html", "--truth", town / "walks.csv", "--force")
    lines = run(*arguments).stderr.splitlines()
    attacks = [line for line in lines if "expected error" in line]
    assert len(attacks) == 5 and all(re.search(r"expected error [0-9,.]+ m[ ,]", line) for line in attacks)
    assert any("owner alone" in line for line in lines) and any("smoother" in line for line in lines)
    found = one_json(run(*arguments, "--json", "-q"))["attacks"]
    assert found["prior"]["unit"] == "m" and 0 < found["tracker"]["overall"]["probability"] < 1
    assert "attacks" not in one_json(run(*of(released, tmp_path / "r.html", "--json", "-q")))
    run(*release_of(site, tmp_path, rows="visits.csv", policy="complete.json"))
    named = run(*of(tmp_path, tmp_path / "s.owner.html", "--truth", site / "visits.csv")).stderr
    assert named.count(" answer units") >= 5


def test_truth_of_other_states_is_not_attacked(run, site, of, tmp_path, release_of):
    """Nothing is measured of nothing, and no mean of nothing is warned of."""
    run(*release_of(site, tmp_path, rows="visits.csv", policy="complete.json"))
    walks = (site / "visits.csv").read_text().replace("alpha", "one").replace("beta", "two")
    (tmp_path / "other.csv").write_text(walks.replace("gamma", "three").replace("delta", "four"))
    result = run(*of(tmp_path, tmp_path / "r.owner.html", "--truth", tmp_path / "other.csv", "-q"))
    assert "warning: no row of --truth is in a state of the model: there is nothing to attack\n" in result.stderr
    assert "nan" not in result.stderr and "adversar" not in result.stderr


@pytest.mark.slow
def test_figures(released, town, of, tmp_path, run, one_json):
    more = ("--truth", town / "walks.csv", "-q", "--json")
    for name in ("a", "b"):
        told = one_json(run(*of(released, tmp_path / f"{name}.owner.html", *more, "--figures", tmp_path / name)))
        assert sorted(told["figures"]) == sorted(map(str, (tmp_path / name).iterdir()))
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"map.owner.svg", "error.owner.svg", "set.svg"}
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
        assert (path.stat().st_mode & 0o077 == 0) is (".owner." in path.name)
    run(*of(released, tmp_path / "c.html", "--figures", tmp_path / "c"))
    assert {path.stem for path in (tmp_path / "c").iterdir()} == {"map", "error", "set"}
    again = of(released, tmp_path / "d.html", "--figures", tmp_path / "c")
    assert "map.svg, which exists; expected another folder, or --force" in run(*again, code=2).stderr
    assert not (tmp_path / "d.html").exists()
    run(*again, "--force")


@pytest.mark.slow
def test_the_truth_is_for_its_owner_and_says_so(released, town, of, tmp_path, run, one_json):
    result = run(*of(released, tmp_path / "report.html", "--truth", town / "walks.csv", "--json", "-q"))
    told = one_json(result)
    assert told["owner_only"] and not told["private"]
    hint = "a name such as report.owner.html would say so"
    assert result.stderr.startswith("warning: report.html shows where people truly were") and hint in result.stderr
    assert (tmp_path / "report.html").stat().st_mode & 0o077 == 0
    named = run(*of(released, tmp_path / "report.owner.html", "--truth", town / "walks.csv", "-q"))
    assert "would say so" not in named.stderr and "owner alone" in named.stderr


@pytest.mark.slow
def test_a_truth_that_is_worse_than_no_file_is_asked_about(released, town, of, tmp_path, run):
    """Rows of the same people at the same times, who were elsewhere."""
    table = pd.read_csv(town / "walks.csv", dtype={"user": str})
    table["lat"], table["lon"] = (table[name].max() + table[name].min() - table[name] for name in ("lat", "lon"))
    table.to_csv(tmp_path / "other.csv", index=False)
    result = run(*of(released, tmp_path / "r.owner.html", "--truth", tmp_path / "other.csv", "-q"))
    assert "is --truth the table that was released?" in result.stderr


REFUSED = {
    "a missing column": (lambda t, s: t.drop(columns="z_1"), "OUT: got a table without the column 'z_1'"),
    "one column more": (lambda t, s: t.assign(truth="x0y0"), "columns that no release has: truth"),
    "an answer off the lattice": (
        lambda t, s: t.assign(z_0="0.123"),
        "z_0: got an answer off the lattice of the space",
    ),
    "no number": (lambda t, s: t.assign(z_1="north"), "z_1: got 36 cells that cannot be read"),
    "rows twice": (lambda t, s: pd.concat([t, t]), "rows: 36 steps of a person stand twice"),
    "no row": (lambda t, s: t.iloc[:0], "0 rows"),
    "another plan": (lambda t, s: t.assign(plan="ab" * 32), "plans: plans.sha256 is "),
    "another plan, stated": (
        lambda t, s: (
            s["plans"].update(count=1, sha256=sha256(b"ab" * 32).hexdigest(), hashes=["ab" * 32])
            or t.assign(plan="ab" * 32)
        ),
        "got an answer drawn under plan",
    ),
    "another model": (
        lambda t, s: s["model"].update(sha256="0" * 64),
        "OUT: got released, which has another model",
    ),
    "another space": (
        lambda t, s: s["space"].update(sha256="0" * 64),
        "OUT: got released, which has another space",
    ),
    "another epsilon": (lambda t, s: s.update(epsilon="2"), "epsilon: another one: user 'u1', step 1"),
    "another epsilon, in every row": (
        lambda t, s: s.update(epsilon="2") or s["totals"].update(epsilon_sum="24") or t.assign(epsilon="2.0"),
        "got an answer drawn under plan",
    ),
    "a part missing": (
        lambda t, s: s["totals"].pop("cost_sum") and t,
        "statement: got released.csv.privacy.json without totals.cost_sum",
    ),
    "no sentences": (lambda t, s: s.update(not_protected=[1]), "statement: got released.csv.privacy.json with no text"),
    "no counts": (lambda t, s: s["mechanism"].update(chosen={"x": "y"}), "with no counts of mechanisms"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_does_not_fit_is_refused(name, released, of, tmp_path, run):
    change, message = REFUSED[name]
    folder = altered(released, tmp_path / "changed", change)
    result = run(*of(folder, tmp_path / "report.html"), code=2)
    errors = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(errors) == 1 and message in errors[0], errors
    assert result.stdout == "" and not (tmp_path / "report.html").exists()


def test_what_lies_beside_it_must_belong_to_it(released, town, site, of, tmp_path, run):
    walks = pd.read_csv(town / "walks.csv")
    walks[walks.user != "u2"].to_csv(tmp_path / "fewer.csv", index=False)
    for option, file, message in (
        ("--backdrop", released / "released" / "released.csv", "--backdrop: got a file that is no JSON"),
        ("--backdrop", tmp_path / "none.json", "--backdrop: got"),
        ("--truth", tmp_path / "fewer.csv", "--truth: got no row for 12 of 36 released rows"),
        ("--truth", tmp_path / "none.csv", "--truth: got"),
        (
            "--truth",
            site / "visits.csv",
            "visits.csv: got 0 rows that can be read of 90; expected rows (90 invalid_state)",
        ),
        ("--user", "nobody", "--user: got 'nobody'; expected a user of the released file, such as 'u1'"),
    ):
        result = run(*of(released, tmp_path / "report.html", option, file), code=2)
        assert result.stderr.count("\n") == 1 and message in result.stderr, (option, result.stderr)
        assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("other", ["radius", "complete"])
def test_another_policy_in_the_folder_is_refused(other, released, town, site, of, tmp_path, run):
    shutil.copytree(released / "released", tmp_path / "released")
    policy = (site if other == "complete" else town) / "complete.json"
    edited(tmp_path / "released", "policy.json", policy.read_text())
    result = run(*of(tmp_path, tmp_path / "report.html"), code=2)
    told = {"radius": "OUT: got released, which has another policy", "complete": "policy"}[other]
    assert result.stderr.count("\n") == 1 and told in result.stderr and not (tmp_path / "report.html").exists()


def test_the_ledger_of_another_release_is_refused(released, town, of, tmp_path, run, release_of):
    """As is one that is not there, an empty one, and the own one where it does not hold the rows."""
    shutil.copytree(released, tmp_path / "moved")
    page = of(tmp_path / "moved", tmp_path / "report.html", ledger=True)
    ledger = tmp_path / "moved" / "ledger.db"
    ledger.unlink()
    assert "--ledger: got" in run(*page, code=2).stderr
    ledger.touch()
    assert "--ledger: got" in run(*page, code=2).stderr
    run(*release_of(town, tmp_path))
    shutil.copy(tmp_path / "ledger.db", ledger)
    assert "which is another ledger" in run(*page, code=2).stderr
    recorded = json.loads((tmp_path / "moved" / "released.owner" / "owner.json").read_text())["id"]
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'id'", (recorded,))
    result = run(*page, code=2)
    told = r"error: statement: got .*, and ledger: not those of: user 'u1', step \d+, .*; expected a released file .*\n"
    assert re.fullmatch(told, result.stderr) and not (tmp_path / "report.html").exists()


def test_outputs_are_not_replaced_unasked(released, town, of, tmp_path, run):
    out = tmp_path / "report.html"
    run(*of(released, out))
    before = out.read_bytes()
    assert "--force" in run(*of(released, out), code=2).stderr
    for path in (released / "released" / "released.csv", town / "model.npz", released / "ledger.db"):
        kept = path.read_bytes()
        assert run(*of(released, path, "--force", ledger=True), code=2).stderr.count("\n") == 1
        assert path.read_bytes() == kept
    assert "-o: got" in run(*of(released, tmp_path / "report.pdf"), code=2).stderr
    (tmp_path / "taken").touch()
    assert "--figures: got" in run(*of(released, out, "--force", "--figures", tmp_path / "taken"), code=2).stderr
    assert "--figures: got" in run(*of(released, out, "--force", "--figures", tmp_path / "no" / "no"), code=2).stderr
    assert out.read_bytes() == before


def test_interrupted_nothing_is_written(released, of, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(assembling, "prospects_of", stop)
    result = CliRunner().invoke(app, [str(arg) for arg in of(released, tmp_path / "report.html")])
    assert result.exit_code == 130 and result.stderr.startswith("interrupted")
    assert list(tmp_path.iterdir()) == []


CANARY, DIGITS = "CANARY_7f3a", "50.01937465"


def test_true_rows_are_repeated_nowhere(released, town, of, tmp_path, run):
    """Truth that does not fit, or that cannot be read, is told of without a value; a good one gives states only."""
    walks = pd.read_csv(town / "walks.csv", dtype=str)
    good = walks.assign(lat=[DIGITS, *walks.lat[1:]])
    odd = walks.assign(user=[CANARY, *walks.user[1:]])
    unread = walks.assign(lat=[CANARY, *walks.lat[1:]])
    said = []
    for name, table, code in (("good", good, 0), ("odd", odd, 2), ("unread", unread, 2)):
        table.to_csv(tmp_path / "truth.csv", index=False)
        out = tmp_path / f"{name}.owner.html"
        result = run(*of(released, out, "--truth", tmp_path / "truth.csv", "--json"), code=code)
        said += [result.stdout, result.stderr, out.read_text() if out.exists() else ""]
    for canary in (CANARY, DIGITS, "01937465"):
        assert canary not in "".join(said)


@pytest.mark.slow
def test_the_page_tells_what_the_sequence_promises(released, of, tmp_path, run, town, release_of):
    """And repeats nothing of a statement that its rows, or the policy, do not bear out."""
    run(*release_of(town, tmp_path), "--path-epsilon", "12", "--steps", "12")
    arguments = of(tmp_path, tmp_path / "report.html")
    run(*arguments)
    page = (tmp_path / "report.html").read_text()
    assert "Over the whole sequence of 12 steps two neighbouring paths lose at most 12." in page
    path = tmp_path / "released" / "released.csv.privacy.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {"sequence": whole["sequence"] | {"total": "11"}}))
    assert "promise: 12 steps: 12, more than 11" in run(*arguments, "--force", code=2).stderr
    path.write_text(json.dumps(whole | {"sequence": whole["sequence"] | {"couples": True}}))
    assert "couples: that the model co" in run(*arguments, "--force", code=2).stderr
    path.write_text(json.dumps(whole | {"sequence": whole["sequence"] | {"meaning": ["All is safe."]}}))
    said = run(*arguments, "--force").stderr
    page = (tmp_path / "report.html").read_text()
    assert "All is safe." not in page and "This is no bound for what is learned of one step" in page and said


@pytest.mark.slow
def test_the_page_counts_answers_and_not_the_rows_that_were_not_asked(of, tmp_path, run, town, release_of):
    schedule = ("--path-epsilon", "4", "--steps", "12", "--schedule", "planned")
    arguments = [one for one in release_of(town, tmp_path) if one not in ("--epsilon", "1")]
    run(*arguments, *schedule)
    asked = int(pd.read_csv(tmp_path / "released" / "released.csv").plan.notna().sum())
    run(*of(tmp_path, tmp_path / "report.html"))
    text = (tmp_path / "report.html").read_text()
    assert 0 < asked < 36 and f"{asked} answers." in text and f"other {36 - asked} rows have no answer" in text


@pytest.mark.parametrize("title", ["a\x00b", "a\u202eb", "a\nb", "x" * 201, " ", "", "\ud800"])
def test_a_title_is_checked_as_names_are(title, released, of, tmp_path, run):
    said = run(*of(released, tmp_path / "report.html", "--title", title), code=2).stderr
    assert said.startswith("error: --title: got ") and said.count("\n") == 1 and said.isascii()
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_the_owner_s_page_does_not_take_the_place_of_a_public_one(released, town, of, tmp_path, run):
    """--force replaces a page of the same kind; a file that was given away may be given away again under its name."""
    out, truth = tmp_path / "report.html", ("--truth", town / "walks.csv", "--force", "-q")
    run(*of(released, out, "-q"))
    before = out.read_bytes()
    said = run(*of(released, out, *truth), code=2).stderr
    assert "a page without the truth; expected another name" in said and "report.owner.html" in said
    assert out.read_bytes() == before and said.count("\n") == 1
    owners = tmp_path / "report.owner.html"
    run(*of(released, owners, *truth))
    run(*of(released, owners, *truth))
    run(*of(released, owners, "-q", "--force"))
    assert "public page: no truth" in owners.read_text()


@pytest.mark.slow
def test_people_whose_plans_were_not_made_again_are_told_of(released, of, tmp_path, run, monkeypatch):
    run(*of(released, tmp_path / "whole.html"))
    assert "were made again from public data and are the file" not in (tmp_path / "whole.html").read_text()
    monkeypatch.setattr(assembling, "MOST_ROWS", 24)
    monkeypatch.setattr(assembling, "FEW_PEOPLE", 2)
    monkeypatch.setattr(assembling, "MOST_COUNTED", 24)
    run(*of(released, tmp_path / "few.html"))
    told = "Plans of 2 of 3 people were made again from public data"
    assert told in (tmp_path / "few.html").read_text()
