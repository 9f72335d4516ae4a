"""dphmm report: one page from a released file and what it was made with, or one line that says what does not fit.

Fails where the page of another model, policy, ledger, truth or file is made all the same, where a refusal leaves a
file, where an option is not handed on, or where the truth reaches a page, a figure or a message unasked.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dphmm
from dphmm.accounting.edge_leakage import losses_between
from dphmm.cli.app import app
from dphmm.report import assembling
from dphmm.storage.tables import read_table, write_table


@pytest.fixture(scope="module")
def made(town, tmp_path_factory, run, release_of):
    """A folder with released.csv of the town's walks, its statement, ledger and smoothed rows."""
    folder = tmp_path_factory.mktemp("made")
    run(*release_of(town, folder))
    public = ("--model", town / "model.npz", "--policy", town / "radius.json")
    run("smooth", folder / "released.csv", *public, "-o", folder / "smoothed.csv")
    return folder


@pytest.fixture(scope="module")
def of(town):
    """The arguments of a report: of(folder, out, *more)."""

    def arguments(folder, out, *more, model="model.npz", name="released.csv"):
        return ["report", folder / name, "--model", town / model, "-o", out, *more]

    return arguments


def data_of(path):
    return json.loads(re.search(r'id="release-data">(.*?)</script>', path.read_text())[1])


def test_a_page_and_what_is_said_of_it(made, of, tmp_path, run, one_json):
    result = run(*of(made, tmp_path / "report.html"))
    assert result.stdout == "" and "36 rows of 3 subjects" in result.stderr and "made again" in result.stderr
    told = one_json(run(*of(made, tmp_path / "report.html", "--json", "-q", "--force")))
    assert told == {
        "output": str(tmp_path / "report.html"), "bytes": (tmp_path / "report.html").stat().st_size, "rows": 36,
        "subjects": 3, "subjects_step_by_step": 3, "rows_step_by_step": 36, "plans": 1, "owner_only": False,
        "private": True, "figures": [],
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert run(*of(made, tmp_path / "report.html", "-q", "--force")).stderr == ""


def test_csv_and_parquet_give_the_same_data(made, of, tmp_path, run):
    table = read_table(made / "released.csv", text=("user", "estimate", "plan"))
    statement = (made / "released.csv.privacy.json").read_text()
    write_table(tmp_path / "released.parquet", table)
    (tmp_path / "released.parquet.privacy.json").write_text(statement)
    run(*of(made, tmp_path / "a.html"))
    result = run(*of(tmp_path, tmp_path / "b.html", "-q", name="released.parquet"))
    assert result.stderr == "warning: released.parquet was changed since released.parquet.privacy.json was written\n"
    assert data_of(tmp_path / "a.html") == data_of(tmp_path / "b.html")
    assert "was changed since" in (tmp_path / "b.html").read_text()


def test_the_guarantee_is_the_statement_s(made, of, tmp_path, run):
    from html import escape

    run(*of(made, tmp_path / "report.html"))
    text, statement = (
        (tmp_path / "report.html").read_text(),
        json.loads((made / "released.csv.privacy.json").read_text()),
    )
    totals = statement["totals"]
    for sentence in [
        *statement["promise"]["meaning"], *statement["not_protected"], statement["promise"]["assumes"],
        totals["epsilon_sum_meaning"], totals["cost_sum_meaning"], statement["model"]["meaning"],
        statement["constraint"]["meaning"], statement["file"]["sha256"], statement["plans"]["sha256"],
    ]:  # fmt: skip
        assert escape(sentence) in text


def test_a_ledger_adds_its_totals(made, of, tmp_path, run, one_json):
    run(*of(made, tmp_path / "report.html", "--ledger", made / "ledger.db"))
    text = (tmp_path / "report.html").read_text()
    account = one_json(run("account", made / "ledger.db", "--json"))["subjects"][0]
    assert f"all {account['queries'][0]['releases']} stored releases" in text
    assert "Theorem 7.2" in text and "temporal leakage of u1" in text and f">{account['cost']['value']:g}<" in text


def test_users_are_chosen(made, of, tmp_path, run):
    run(*of(made, tmp_path / "report.html", "--user", "u3", "--user", "u1", "--user", "u3"))
    assert [subject["name"] for subject in data_of(tmp_path / "report.html")["subjects"]] == ["u3", "u1"]
    text = (tmp_path / "report.html").read_text()
    assert "2 of 3 subjects can be looked at step by step" in text and "One subject: u3" in text


def test_too_many_rows_for_a_page(made, of, tmp_path, run, monkeypatch):
    monkeypatch.setattr(assembling, "MOST_ROWS", 24)
    run(*of(made, tmp_path / "a.html"))
    assert [subject["name"] for subject in data_of(tmp_path / "a.html")["subjects"]] == ["u1", "u2"]
    assert "2 of 3 subjects" in (tmp_path / "a.html").read_text()
    every = [part for user in ("u1", "u2", "u3") for part in ("--user", user)]
    told = run(*of(made, tmp_path / "b.html", *every), code=2).stderr
    assert told == "error: --user: got 3 users with more than 24 rows together; expected fewer on one page\n"
    monkeypatch.setattr(assembling, "MOST_ROWS", 5)
    run(*of(made, tmp_path / "c.html"))
    found = data_of(tmp_path / "c.html")["subjects"]
    assert [len(subject["z"][0]) for subject in found] == [5]
    assert "the first 5 steps" in (tmp_path / "c.html").read_text()


def test_the_policy_is_given_or_as_the_statement_says(made, town, of, tmp_path, run, one_json):
    run(*of(made, tmp_path / "a.html"))
    run(*of(made, tmp_path / "b.html", "--policy", town / "radius.json"))
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()
    folder = changed(made, tmp_path / "hashed", lambda t, s: s["policy"].update(parameters=None))
    told = one_json(run(*of(folder, tmp_path / "c.html", "--json", "-q")))
    assert told["plans"] is None and data_of(tmp_path / "c.html")["timeline"] is None
    text = (tmp_path / "c.html").read_text()
    assert "The policy was not given" in text and "Whom a state hides among" not in text


def test_figures(made, town, of, tmp_path, run, one_json):
    pytest.importorskip("matplotlib")
    more = ("--truth", town / "walks.csv", "--smoothed", made / "smoothed.csv", "-q", "--json")
    for name in ("a", "b"):
        told = one_json(run(*of(made, tmp_path / f"{name}.owner.html", *more, "--figures", tmp_path / name)))
        assert sorted(told["figures"]) == sorted(map(str, (tmp_path / name).iterdir()))
    names = {"map.owner", "error.owner", "spent", "degree", "hull", "policy"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == {n + s for n in names for s in (".svg", ".png")}
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
        assert (path.stat().st_mode & 0o077 == 0) is (".owner." in path.name)
    run(*of(made, tmp_path / "c.html", "--figures", tmp_path / "c"))
    assert {path.stem for path in (tmp_path / "c").iterdir()} == {"map", "spent", "degree", "hull", "policy"}
    again = of(made, tmp_path / "d.html", "--figures", tmp_path / "c")
    assert "map.svg, which exists; expected another folder, or --force" in run(*again, code=2).stderr
    assert not (tmp_path / "d.html").exists()
    run(*again, "--force")


def test_the_truth_is_for_its_owner_and_says_so(made, town, of, tmp_path, run, one_json):
    result = run(*of(made, tmp_path / "report.html", "--truth", town / "walks.csv", "--json", "-q"))
    told = one_json(result)
    assert told["owner_only"] and not told["private"]
    hint = "a name such as report.owner.html would say so"
    assert result.stderr.startswith("warning: report.html shows where people truly were") and hint in result.stderr
    assert (tmp_path / "report.html").stat().st_mode & 0o077 == 0
    named = run(*of(made, tmp_path / "report.owner.html", "--truth", town / "walks.csv", "-q"))
    assert "would say so" not in named.stderr and "owner alone" in named.stderr


def changed(folder, out, change):
    """A copy of a release with its statement, one of them changed."""
    out.mkdir(exist_ok=True)
    table = pd.read_csv(folder / "released.csv", dtype=str)
    statement = json.loads((folder / "released.csv.privacy.json").read_text())
    found = change(table, statement)
    (table if found is None else found).to_csv(out / "released.csv", index=False)
    (out / "released.csv.privacy.json").write_text(json.dumps(statement))
    return out


def without(*path):
    def change(table, statement):
        for part in path[:-1]:
            statement = statement[part]
        del statement[path[-1]]

    return change


REFUSED = {
    "a missing column": (lambda t, s: t.drop(columns="z_1"), "RELEASED: got a table without the column 'z_1'"),
    "one column more": (lambda t, s: t.assign(truth="x0y0"), "RELEASED: got columns that no release has"),
    "an answer off the lattice": (
        lambda t, s: t.assign(z_0="0.123"),
        "RELEASED: got an answer that is no lattice point",
    ),
    "no number": (lambda t, s: t.assign(z_1="north"), "z_1: got 36 cells that cannot be read"),
    "rows twice": (lambda t, s: pd.concat([t, t]), "RELEASED: got a step of a user stands twice"),
    "no row": (lambda t, s: t.iloc[:0], "0 rows"),
    "another plan": (lambda t, s: t.assign(plan="ab" * 32), "with another plans.sha256 than the file's"),
    "another plan, stated": (
        lambda t, s: s["plans"].update(count=1, sha256=sha256(b"ab" * 32).hexdigest()) or t.assign(plan="ab" * 32),
        "RELEASED: got an answer whose plan is not the one",
    ),
    "another model": (lambda t, s: s["model"].update(sha256="0" * 64), "--model: got model.npz (sha256 "),
    "another space": (lambda t, s: s["space"].update(sha256="0" * 64), "--model: got another space than"),
    "another epsilon": (lambda t, s: s.update(epsilon="2"), "with another epsilon than the file's"),
    "another epsilon, in every row": (
        lambda t, s: s.update(epsilon="2") or s["totals"].update(epsilon_sum="24") or t.assign(epsilon="2.0"),
        "RELEASED: got an answer whose plan is not the one",
    ),
    "a part missing": (
        without("totals", "cost_sum"),
        "statement: got released.csv.privacy.json without totals.cost_sum",
    ),
    "no sentences": (lambda t, s: s.update(not_protected=[1]), "statement: got released.csv.privacy.json with no text"),
    "no counts": (lambda t, s: s["mechanism"].update(chosen={"x": "y"}), "with no counts of mechanisms"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_does_not_fit_is_refused(name, made, of, tmp_path, run):
    change, message = REFUSED[name]
    folder = changed(made, tmp_path / "changed", change)
    result = run(*of(folder, tmp_path / "report.html"), code=2)
    errors = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(errors) == 1 and message in errors[0], errors
    assert result.stdout == "" and not (tmp_path / "report.html").exists()


def test_what_lies_beside_it_must_belong_to_it(made, town, site, of, tmp_path, run):
    (tmp_path / "empty.db").touch()
    shutil.copy(made / "ledger.db", tmp_path / "other.db")
    with sqlite3.connect(tmp_path / "other.db") as opened:
        tables = [row[0] for row in opened.execute("select name from sqlite_master where type = 'table'")]
    assert tables
    part = pd.read_csv(made / "smoothed.csv")
    part.iloc[1:].to_csv(tmp_path / "part.csv", index=False)
    part.assign(smoothed_1="x").to_csv(tmp_path / "words.csv", index=False)
    walks = pd.read_csv(town / "walks.csv")
    walks[walks.user != "u2"].to_csv(tmp_path / "fewer.csv", index=False)
    for option, file, message in (
        ("--ledger", tmp_path / "none.db", "--ledger: got"),
        ("--ledger", tmp_path / "empty.db", "--ledger: got"),
        ("--smoothed", made / "released.csv", "--smoothed: got columns"),
        ("--smoothed", tmp_path / "part.csv", "--smoothed: got no row for 1 of 36 released rows"),
        ("--smoothed", tmp_path / "words.csv", "smoothed_1: got 36 cells"),
        ("--truth", tmp_path / "fewer.csv", "--truth: got no row for 12 of 36 released rows"),
        (
            "--truth",
            site / "visits.csv",
            "visits.csv: got 0 rows that can be read of 90; expected rows (90 invalid_state)",
        ),
        ("--policy", town / "complete.json", "--policy: got another policy than"),
        ("--policy", site / "complete.json", "policy: got complete.json, made for another model's states"),
        ("--user", "nobody", "--user: got 'nobody'; expected a user of the released file, such as 'u1'"),
    ):
        result = run(*of(made, tmp_path / "report.html", option, file), code=2)
        assert result.stderr.count("\n") == 1 and message in result.stderr, (option, result.stderr)
        assert not (tmp_path / "report.html").exists()


def test_the_ledger_of_another_release_is_refused(made, town, of, tmp_path, run, release_of):
    run(*release_of(town, tmp_path))
    result = run(*of(made, tmp_path / "report.html", "--ledger", tmp_path / "ledger.db"), code=2)
    told = r"error: --ledger: got one that does not hold the release of user 'u1', step \d+; expected the ledger .*\n"
    assert re.fullmatch(told, result.stderr)


def test_a_statement_is_needed(made, of, tmp_path, run):
    shutil.copy(made / "released.csv", tmp_path / "released.csv")
    result = run(*of(tmp_path, tmp_path / "report.html"), code=2)
    assert result.stderr.count("\n") == 1 and "released.csv.privacy.json" in result.stderr


def test_outputs_are_not_replaced_unasked(made, town, of, tmp_path, run):
    out = tmp_path / "report.html"
    run(*of(made, out))
    before = out.read_bytes()
    assert "--force" in run(*of(made, out), code=2).stderr
    for path in (made / "released.csv", town / "model.npz", made / "ledger.db"):
        kept = path.read_bytes()
        assert run(*of(made, path, "--force", "--ledger", made / "ledger.db"), code=2).stderr.count("\n") == 1
        assert path.read_bytes() == kept
    assert "-o: got" in run(*of(made, tmp_path / "report.pdf"), code=2).stderr
    (tmp_path / "taken").touch()
    assert "--figures: got" in run(*of(made, out, "--force", "--figures", tmp_path / "taken"), code=2).stderr
    assert "--figures: got" in run(*of(made, out, "--force", "--figures", tmp_path / "no" / "no"), code=2).stderr
    assert out.read_bytes() == before


def test_interrupted_nothing_is_written(made, of, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(assembling, "remade", stop)
    result = CliRunner().invoke(app, [str(arg) for arg in of(made, tmp_path / "report.html")])
    assert result.exit_code == 130 and result.stderr.startswith("interrupted")
    assert list(tmp_path.iterdir()) == []


CANARY, DIGITS = "CANARY_7f3a", "50.01937465"


def test_true_rows_are_repeated_nowhere(made, town, of, tmp_path, run):
    """Truth that does not fit, or that cannot be read, is told of without a value; a good one gives states only."""
    walks = pd.read_csv(town / "walks.csv", dtype=str)
    good = walks.assign(lat=[DIGITS, *walks.lat[1:]])
    odd = walks.assign(user=[CANARY, *walks.user[1:]])
    unread = walks.assign(lat=[CANARY, *walks.lat[1:]])
    said = []
    for name, table, code in (("good", good, 0), ("odd", odd, 2), ("unread", unread, 2)):
        table.to_csv(tmp_path / "truth.csv", index=False)
        out = tmp_path / f"{name}.owner.html"
        result = run(*of(made, out, "--truth", tmp_path / "truth.csv", "--json"), code=code)
        said += [result.stdout, result.stderr, out.read_text() if out.exists() else ""]
    for canary in (CANARY, DIGITS, "01937465"):
        assert canary not in "".join(said)


def rows_of_totals(page):
    """What the table of totals over time says: {what: value}."""
    text = page.read_text()
    part = text[text.index("<h3>Over time</h3>") :]
    cells = re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td>', part[: part.index("</table>")])
    return dict(cells)


def test_what_all_answers_tell_of_two_paths_is_graded_by_their_distance(made, of, tmp_path, run, town):
    """Against every pair of states, whose losses under each plan are compared answer by answer."""
    run(*of(made, tmp_path / "report.html"))
    found = {what: value for what, value in rows_of_totals(tmp_path / "report.html").items() if "paths" in what}
    model = dphmm.load_model(town / "model.npz")
    policy = dphmm.load_policy(town / "radius.json", model.space)
    table = read_table(made / "released.csv").to_pandas()
    session = dphmm.ReleaseSession(model, policy, model.space, 1)
    own, space = table[table.user == "u1"], model.space
    plans, n = [], space.n_states
    for _ in range(len(own)):
        plans.append(session.plan)
        session.skip()
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    apart = {(i, j): float(space.distances(*space.own_answers[[i, j]])) for i, j in pairs}
    longest = max(apart[tuple(edge)] for edge in policy.edges().tolist())
    due = {}
    for distance in (longest, 2 * longest, 4 * longest, max(apart.values())):
        near = np.array([pair for pair in pairs if apart[pair] <= distance * (1 + 1e-9)]).T
        due[distance] = sum(losses_between(plan, *near, n).max() for plan in plans)
    told = [float(value.removeprefix("at most ")) for value in found.values()]
    expected = [due[one] for one in sorted(due) if one <= max(apart.values())]
    assert told == pytest.approx(sorted(set(expected)), rel=1e-5) and len(told) >= 2
    assert list(found)[-1] == "any two possible paths, all 12 answers of u1"
    assert told[0] == pytest.approx(12) and told[-1] > 12


def test_the_page_tells_what_the_sequence_promises(made, of, tmp_path, run, town, release_of):
    """And repeats nothing of a statement that its rows, or the policy, do not bear out."""
    run(*release_of(town, tmp_path), "--path-epsilon", "12", "--steps", "12")
    arguments = of(tmp_path, tmp_path / "report.html")
    run(*arguments)
    page = (tmp_path / "report.html").read_text()
    assert "Over the whole sequence of 12 steps two neighbouring paths lose at most 12." in page
    path = tmp_path / "released.csv.privacy.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {"sequence": whole["sequence"] | {"total": "11"}}))
    assert "sequence, which 'u1' passes," in run(*arguments, "--force", code=2).stderr
    path.write_text(
        json.dumps(whole | {"sequence": whole["sequence"] | {"couples": True, "meaning": ["All is safe."]}})
    )
    said = run(*arguments, "--force").stderr
    page = (tmp_path / "report.html").read_text()
    assert "All is safe." not in page and "This is no bound for what is learned of one step" in page and said


def test_the_page_counts_answers_and_not_the_rows_that_were_not_asked(of, tmp_path, run, town, release_of):
    schedule = ("--path-epsilon", "4", "--steps", "12", "--schedule", "planned")
    arguments = [one for one in release_of(town, tmp_path) if one not in ("--epsilon", "1")]
    run(*arguments, *schedule)
    asked = pd.read_csv(tmp_path / "released.csv").plan.notna().sum()
    run(*of(tmp_path, tmp_path / "report.html"))
    assert 0 < asked < 36 and f"<dt>releases</dt><dd>{asked}</dd>" in (tmp_path / "report.html").read_text()
