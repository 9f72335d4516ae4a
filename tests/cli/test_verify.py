"""`dphmm verify`: exit 0 for what keeps its promise, 1 for what does not, 2 with one line for what cannot be judged.

Fails where a right release is convicted, a tampered one is not, or an option is taken without what it needs.
"""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

import dphmm
from commands import edited, set_in


@pytest.fixture
def public(town):
    return ("verify", "--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", "1")


def test_the_plans_of_the_first_steps(run, public):
    result = run(*public, "--steps", 20)
    assert "keeps its promise" in result.stdout and "required pairs" in result.stdout
    assert result.stdout.startswith("step 1:\nplan ")


def test_every_step_that_was_asked_for_is_accounted_for(run, public, town, one_json, tmp_path):
    """All steps of the town have one plan; a model that starts in one cell has another plan until all are possible."""
    assert run(*public, "--steps", 5).stdout.splitlines()[-1] == (
        "steps 1 to 5: one plan in all; it is shown at the first step that it is of"
    )
    assert one_json(run(*public, "--steps", 5, "--json"))["steps"] == {"asked": 5, "looked_at": 5, "plans": 1}
    assert "steps" not in one_json(run(*public, "--json"))
    delta = run(*set_in(public, constraint="delta=0.05"), "--steps", 5).stdout.splitlines()[-1]
    assert delta == "steps 2 to 5: not looked at, their plans hang on the answers before them"
    model = dphmm.storage.load_model(town / "model.npz")
    corner = dphmm.MarkovModel(np.eye(model.n_states)[0], model.transition, space=model.space, step=model.step)
    dphmm.storage.save_model(corner, tmp_path / "corner.npz")
    told = run("verify", "--model", tmp_path / "corner.npz", *public[3:], "--steps", 5).stdout
    plans = len(re.findall("^step [0-9]+:$", told, re.MULTILINE))
    assert plans > 1 and f"steps 1 to 5: {plans} different plans in all; each is shown at the first" in told


def test_a_finished_release(run, released, tmp_path, one_json):
    """By the ledger that its owner's folder records; who has the folder alone has none."""
    checked = ("check-release", released / "released")
    for ledger in ((), ("--ledger", released / "ledger.db")):
        assert "nothing is wrong" in run(*checked, *ledger).stdout
        document = one_json(run(*checked, *ledger, "--json"))
        assert (document["convicted"], document["code"], document["rows"]) == (False, 0, 36)
        assert document["findings"] == document["notes"] == []
    shutil.copytree(released / "released", tmp_path / "given")
    without = one_json(run("check-release", tmp_path / "given", "--json", code=5))
    assert without["code"] == 5 and any("ledger" in note for note in without["notes"])


def test_the_sampler(run, public, one_json):
    document = one_json(run(*public, "--draws", 20_000, "--json"))
    assert document["sampler"]["decided"] and not document["sampler"]["convicted"]
    assert "undecided, needs n =" in run(*public, "--draws", 100).stdout


def test_files_of_samples(run, tmp_path):
    rng = np.random.default_rng(1)
    for name, centre in (("a", 0), ("b", 4)):
        np.save(tmp_path / f"{name}.npy", np.rint(centre + rng.laplace(0, 2, 30_000)))
    samples = ("verify", "--samples", tmp_path / "a.npy", tmp_path / "b.npy", "--epsilon")
    assert "CONVICTED" in run(*samples, "1", code=1).stdout
    assert "no loss above epsilon 2 was found" in run(*samples, "2").stdout


def test_no_draw_of_a_table_without_names_is_lost(run, tmp_path, one_json):
    """100 draws are 100 draws, with names and without."""
    rows = "".join(f"{i % 7},{i % 3}\n" for i in range(100))
    for name, header in (("with", "x,y\n"), ("without", "")):
        (tmp_path / f"{name}.csv").write_text(header + rows)
        files = (tmp_path / f"{name}.csv",) * 2
        document = one_json(run("verify", "--samples", *files, "--epsilon", "1", "--json"))
        assert document["samples"]["draws"] == 100
    (tmp_path / "half.csv").write_text("x,1\n" + rows)
    result = run("verify", "--samples", *[tmp_path / "half.csv"] * 2, "--epsilon", "1", code=2)
    assert "names of all columns, or numbers throughout" in result.stderr and result.stderr.count("\n") == 1


def test_a_few_draws_are_undecided(run, public, tmp_path, one_json):
    (tmp_path / "few.csv").write_text("1\n2\n3\n")
    few = ("verify", "--samples", *[tmp_path / "few.csv"] * 2, "--epsilon", "1")
    needed = one_json(run(*few, "--json"))["samples"]["needed"]
    assert run(*few).stdout == f"samples: undecided, needs n = {needed} draws a side; there are 3\n"
    assert "undecided, needs n =" in run(*public, "--draws", 1).stdout
    assert "undecided, needs n > " in run(*few[:-1], "1000").stdout


@pytest.mark.slow
def test_a_stream(run, town, tmp_path, one_json):
    """In its folder, as its lines were printed."""
    places = [(user, clock) for clock in ("08:00", "08:05", "08:20") for user in ("u", "v")]
    lines = [
        json.dumps({"user": user, "t": f"2024-05-06T{clock}:00Z", "lat": 50.01, "lon": 10.01}) for user, clock in places
    ]
    out = tmp_path / "out"
    released = run(
        "release", "-", "--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", "1",
        "-o", out, "--answer", "first",
        input="\n".join([*lines, lines[-1]]) + "\n",
    )  # fmt: skip
    assert (out / "released.jsonl").read_text() == released.stdout
    document = one_json(run("check-release", out, "--json"))
    assert (document["convicted"], document["rows"], document["findings"]) == (False, 6, [])
    walks = tmp_path / "walks.csv"
    walks.write_text("user,t,lat,lon\n" + "".join(f"{u},2024-05-06T{c}:00Z,50.01,10.01\n" for u, c in places))
    run("report", out)
    assert "What a reader can find out" in (out / "report.html").read_text()
    assert "owner alone" in run("report", out, "--truth", walks).stderr
    statement = out / "released.jsonl.privacy.json"
    statement.rename(tmp_path / "said.json")
    assert "without its privacy statement" in run("report", out, code=2).stderr
    assert "released.jsonl.privacy.json, which is missing" in run("check-release", out, code=1).stdout
    (tmp_path / "said.json").rename(statement)
    edited(out, "released.jsonl", released.stdout.replace('"step": 2', '"step": 3', 1))
    assert "CONVICTED" in run("check-release", out, code=1).stdout
    edited(out, "released.jsonl", released.stdout + "{")
    assert "line 8" in run("check-release", out, code=2).stderr


def test_another_ledger_is_convicted(released, town, tmp_path, run, release_of):
    """Releases of the same people under the same plans, but others."""
    run(*release_of(town, tmp_path))
    checked = ("check-release", released / "released")
    assert "nothing is wrong" in run(*checked, "--ledger", released / "ledger.db").stdout
    assert "wrong: ledger: not those of" in run(*checked, "--ledger", tmp_path / "ledger.db", code=1).stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "--model, --policy"),
        (("--draws", "5"), "--draws"),
        (("--model", "nothing.npz"), "--policy"),
        (("--samples", "a.npy", "b.npy"), "a.npy"),
        (("--samples", "a.npy", "--json"), "--samples: got one file, then --json; expected two files"),
    ],
)
def test_what_goes_together(run, more, words):
    result = run("verify", "--epsilon", "1", *more, code=2)
    assert words in result.stderr and result.stderr.count("\n") == 1


def test_bad_input_is_one_line(run, public):
    cases = [
        (("--steps", "0"), "steps"),
        (("--draws", "-3"), "--draws: got -3; expected a number of draws, 1 or more"),
        (("--alpha", "5"), "--alpha: got 5.0; expected a probability above 0 and below 1"),
    ]
    for more, words in cases:
        result = run(*public, *more, code=2)
        assert words in result.stderr and result.stderr.count("\n") == 1


def test_a_bug_in_the_planner_is_exit_1(run, public, monkeypatch):
    from dphmm.mechanisms import DiscreteKNorm
    from dphmm.session import planner

    monkeypatch.setattr(planner, "mechanism_for", lambda hull, epsilon, chosen: DiscreteKNorm(hull, 2 * epsilon))
    assert "CONVICTED" in run(*public, code=1).stdout
