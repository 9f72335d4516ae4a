"""A search of dphmm plan looks at public inputs alone, and prints what was tried and what to type for the best of it.

Whoever reads files opens them, so they are counted; the commands it prints are run here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from dphmm.choose import search

QUICK = ("--path-epsilon", 4, "--steps", 8, "--people", 4)

_WATCHED = """
import os, sys
from dphmm.cli.app import app
folder, seen = sys.argv[1], set()
def watch(event, arguments):
    if event in ("open", "sqlite3.connect") and arguments and isinstance(arguments[0], (str, bytes, os.PathLike)):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(folder):
            seen.add(os.path.relpath(path, folder))
sys.addaudithook(watch)
try:
    app(sys.argv[2:])
finally:
    print(*sorted(seen), file=sys.stderr)
"""


@pytest.mark.slow
def test_no_ledger_release_or_trajectory_is_opened(town, tmp_path, run, release_of):
    """They lie beside the model; the audit hook of Python sees whatever is opened."""
    folder = tmp_path / "town"
    shutil.copytree(town, folder)
    run(*release_of(town, folder))
    words = ["plan", str(folder / "model.npz"), "--target-doubt", "5", "--policy", str(folder / "radius.json")]
    call = [sys.executable, "-c", _WATCHED, str(folder), *words, *map(str, QUICK)]
    told = subprocess.run(call, capture_output=True, text=True, cwd=folder, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stderr.splitlines()[-1].split() == ["model.npz", "radius.json"]
    bare = run("plan", town / "model.npz", "--target-doubt", 5, "--policy", town / "radius.json", *QUICK)
    assert bare.stdout == told.stdout.replace(str(folder), str(town))


@pytest.mark.slow
def test_what_is_recommended_is_a_plan_of_the_commands_that_are_printed(town, tmp_path, run, one_json):
    asked = ("plan", town / "model.npz", "--target-doubt", 5, *QUICK)
    text = run(*asked).stdout
    document = one_json(run(*asked, "--json"))
    best = document["recommended"]
    assert best in document["settings"] and document["targets"] == {"error": None, "doubt": 5, "stay": None}
    assert text.count("<- recommended") == 1 and f"rule: {document['rule']}" in text
    assert len(text.splitlines()) >= 1 + len(document["settings"]) + 2
    policy, plan = (line.split()[1:] for line in text.splitlines()[-2:])
    made = {"policy.json": str(tmp_path / "policy.json"), "plan.json": str(tmp_path / "plan.json")}
    for command in (policy, plan):
        run(*(made.get(word, word) for word in command), *(("--people", 4) if command is plan else ()))
    schedule = json.loads((tmp_path / "plan.json").read_text())["schedule"]
    assert schedule["total"] == best["total"] and len(schedule["at"].split()) >= 1


def test_interrupted_it_keeps_what_is_finished(town, run, monkeypatch):
    every = search.tries

    def stopped(settings, *more, **options):
        yield from every(settings[:1], *more, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "tries", stopped)
    asked = ("plan", town / "model.npz", "--policy", town / "radius.json", "--target-doubt", 5, *QUICK)
    result = run(*asked, code=130)
    lines = result.stdout.splitlines()
    assert len(lines) == 5 and all(line.startswith("the policy given") for line in lines[1:])
    assert re.search(r"interrupted: above is what was finished, of 1 of [0-9]+ settings\n", result.stderr)
    monkeypatch.setattr(search, "forecast", lambda *_, **__: 43.0)
    assert re.search(r"about 40 s: [0-9]+ settings are tried\n", run(*asked, code=130).stderr)


@pytest.mark.slow
def test_out_of_reach_is_said_and_the_table_stays(town, run):
    told = run("plan", town / "model.npz", "--policy", town / "radius.json", "--target-error", "1m", *QUICK, code=1)
    assert told.stdout.startswith("policy") and "recommended" not in told.stdout
    assert told.stderr.splitlines()[-1].startswith("error: no setting tried reaches the targets; nearest: ")


BAD = {
    "a length without a unit": (("--target-error", "500"), "--target-error: got 500; expected a unit"),
    "no length": (("--target-stay", "0m"), "--target-stay: got 0"),
    "a doubt of nothing": (("--target-doubt", 1), "--target-doubt: got 1; expected 3 to 1,000"),
    "an output": (("--target-doubt", 5, "-o", "plan.json"), "targets: got --output beside them"),
    "a pace": (("--target-doubt", 5, "--schedule", "paced"), "targets: got --schedule paced beside them"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_target_is_one_line(name, town, run):
    more, told = BAD[name]
    result = run("plan", town / "model.npz", *QUICK, *more, code=2)
    assert result.stdout == "" and result.stderr.count("\n") == 1 and told in result.stderr


def test_answer_units_elsewhere(site, run):
    told = run("plan", site / "model.npz", "--target-error", "1km", *QUICK, code=2)
    assert told.stderr.startswith("error: --target-error: got 1km; expected a number")
