"""`verify_release.py` agrees with `dphmm check-release` on right files, and convicts edited ones, without dphmm's code.

Claims: it imports the standard library alone, and runs without anything else; releases of several constraints,
mechanisms, schedules and formats have no wrong line, and whatever it computes is ok; each edit of a value, an
epsilon, a cost, a row, a name, a schedule, a statement, a model, a plan or a ledger is convicted by the check that
names it; what it was not given it says that it cannot tell; bad files are one line and exit 2.
"""

from __future__ import annotations

import ast
import csv
import gzip
import hashlib
import json
import math
import re
import shutil
import sqlite3
import subprocess
import sys
import unicodedata
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import choosing
import dphmm
from accounting.test_person import VECTORS
from commands import set_in
from dphmm.accounting.person import person_key
from dphmm.audit import verify_release
from dphmm.markov.model import couples_along_radius

PROGRAM = Path(verify_release.__file__)
PUBLIC = ("--model", "model.npz", "--policy", "radius.json")
#: The rows in the folder of a release, and their statement.
RELEASED, STATEMENT = "out/released.csv", "out/released.csv.privacy.json"
BOX = ("--bbox", "10.0,50.0,10.056,50.036", "--cell", "1km", "--step", "5min", "--max-speed", "30km/h")

WORDS = ("ok", "wrong", "stated", "by facts", "not looked at")

pytestmark = pytest.mark.replayed_words


@pytest.fixture
def verify(program, capsys):
    """Run the program: its lines by word, and its exit code."""

    def run_it(*arguments):
        capsys.readouterr()
        code = program.main([str(argument) for argument in arguments])
        said = [re.split("  +", line, maxsplit=1) for line in capsys.readouterr().out.splitlines()[:-1]]
        found = {word: [text for told, text in said if told == word] for word in WORDS}
        assert sum(map(len, found.values())) == len(said)
        return code, found

    return run_it


@pytest.fixture(scope="module")
def world(town, tmp_path_factory, run):
    """Folders with a finished release each, made once: every step asked, a planned schedule, and a made model."""
    folder = tmp_path_factory.mktemp("verified")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("every", "planned", "made"):
            own = folder / name
            own.mkdir()
            patch.chdir(own)
            for file in ("model.npz", "radius.json", "complete.json", "walks.csv"):
                shutil.copy(town / file, own / file)
            if name == "made":
                run("model", "grid", *BOX, "-o", "model.npz", "--force")
                run("policy", "radius", "model.npz", "-o", "radius.json", "--radius", "1.5km", "--force")
            if name != "every":
                plan = ("--path-epsilon", 4, "--per", "1h", "--epsilon", 2, "--people", 6)
                run("plan", *PUBLIC[1:], "-o", "plan.json", *plan)
            spent = ("--epsilon", 1) if name == "every" else ("--plan", "plan.json")
            run("release", "walks.csv", *PUBLIC, *spent, "-o", "out", "--ledger", "ledger.db")
            checked(run)
    return folder


def checked(run, *more, released="out", code=0):
    """Check a release by the command, and keep what it writes for the program."""
    shutil.rmtree("plain", ignore_errors=True)
    done = run("check-release", released, "--plain", "plain", *more, code=code)
    for name in ("plans.json", "facts.json"):
        shutil.copy(Path("plain") / name, name)
    return done


#: Tests run in the folder of their world.
HERE = Path()


def times_of(file):
    return sorted({row["t"] for row in csv.DictReader(Path(file).read_text().splitlines())})


def policies_of(times, policy):
    """Steps at these times under a policy of their own."""
    own = choosing.public(HERE, policy)[1]
    return choosing.steps_of(HERE, {time: {"policy": own} for time in times})


def everything(released=RELEASED, policy="radius.json"):
    return (*alone(released, policy), "--facts", "facts.json")


def alone(released=RELEASED, policy="radius.json"):
    """Without what follows from model and policy, and who has no dphmm cannot compute."""
    public = (released, "--model", "model.npz", "--policy", policy)
    return (*public, "--plans", "plans.json", "--ledger", "ledger.db")


@pytest.fixture
def folder(world, tmp_path, monkeypatch, request):
    own = tmp_path / "own"
    shutil.copytree(world / getattr(request, "param", "every"), own)
    monkeypatch.chdir(own)
    return own


def edit_rows(change, seal=True):
    """Change the rows of the released file; ``seal``: and write its new hash into the statement."""
    with Path(RELEASED).open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = list(rows[0])
    rows = change(rows) or rows
    with Path(RELEASED).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if set(rows[0]) - set(columns) else columns)
        writer.writeheader()
        writer.writerows(rows)
    if seal:
        edit_statement(lambda told: None)


def edit_statement(change):
    path = Path(STATEMENT)
    told = json.loads(path.read_text())
    change(told)
    told["file"]["sha256"] = hashlib.sha256(Path(RELEASED).read_bytes()).hexdigest()
    path.write_text(json.dumps(told, indent=2) + "\n")


def test_it_imports_the_standard_library_alone():
    tree = ast.parse(PROGRAM.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    assert not {"importlib", "runpy", "subprocess", "random", "secrets", "os"} & names


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["made"], indirect=True)
def test_it_runs_where_nothing_is_installed_and_all_checks_of_a_right_release_are_ok(folder):
    done = subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, *everything()], capture_output=True, text=True, check=False
    )
    assert done.stderr == "" and done.returncode == 0
    assert all(
        line.startswith(("ok  ", "stated  ", "by facts  ", "no file shows: ")) for line in done.stdout.splitlines()
    )
    assert "losses: any two planned states lose at most" in done.stdout


@pytest.mark.parametrize("folder", ["every", "planned", "made"], indirect=True)
def test_it_agrees_with_the_audit(folder, run, verify):
    assert "nothing is wrong" in checked(run).stdout
    code, found = verify(*everything())
    assert found["wrong"] == []
    # Of the fitted model the audit says, too, that nobody knows whom it was fitted on.
    unknown = (
        [] if folder.name == "made" or json.loads(Path("plans.json").read_text()) is None else found["not looked at"]
    )
    assert code == (2 if unknown else 0) and all(line.startswith("private: ") for line in unknown)


@pytest.mark.parametrize(
    "setting",
    [{"constraint": "delta=0.2"}, {"mechanism": "discrete-knorm"}, {"mechanism": "discrete-laplace"}, {}],
)
def test_other_choices_are_right_or_cannot_be_told(folder, run, verify, setting):
    spent = ("--epsilon", 1) if setting else ("--path-epsilon", "3", "--window", "4")
    Path("ledger.db").unlink()
    run("release", "walks.csv", *set_in(PUBLIC, **setting), *spent, "-o", "other", "--ledger", "ledger.db")
    assert "nothing is wrong" in checked(run, released="other").stdout
    _, found = verify(*alone("other/released.csv"))
    assert found["wrong"] == []
    assert any("delta-set" in line for line in found["not looked at"]) == ("constraint" in setting)


@pytest.mark.parametrize("folder", ["made"], indirect=True)
def test_steps_with_a_policy_of_their_own_have_the_epsilon_of_all(folder, run, verify):
    Path("ledger.db").unlink()
    times = times_of("walks.csv")
    chosen = policies_of(times[:2], "radius.json")
    choosing.release(HERE, "other.csv", policy="radius.json", step_choices=chosen)
    assert not choosing.audit(HERE, "other.csv", policy="radius.json", step_choices=chosen).convicted
    _, found = verify(*everything("other.csv"))
    assert found["wrong"] == [] and any(line.startswith("epsilon") for line in found["ok"])


@pytest.mark.parametrize("folder", ["made"], indirect=True)
def test_losses_under_another_policy_of_single_steps_cannot_be_told(folder, run, verify):
    """Of a policy that joins fewer states the file's own edges say nothing, and they are not wrong."""
    Path("ledger.db").unlink()
    times = times_of("walks.csv")
    run("policy", "complete", "model.npz", "-o", "wide.json")
    chosen = policies_of(times[:2], "radius.json")
    choosing.release(HERE, "other.csv", policy="wide.json", step_choices=chosen)
    assert not choosing.audit(HERE, "other.csv", policy="wide.json", step_choices=chosen).convicted
    _, found = verify(*alone("other.csv", "wide.json"))
    assert found["wrong"] == []
    assert any("plans are of policies of their own" in line for line in found["not looked at"])


@pytest.mark.parametrize("folder", ["made"], indirect=True)
@pytest.mark.parametrize("left", [0, 1])
def test_a_policy_that_steps_had_is_not_called_another(folder, run, verify, left):
    """All answers are under the narrow policy; the statement says so of one step, or of none."""
    Path("ledger.db").unlink()
    times = times_of("walks.csv")
    run("policy", "complete", "model.npz", "-o", "wide.json")
    chosen = policies_of(times, "radius.json")
    for old in (RELEASED, STATEMENT):
        Path(old).unlink()
    choosing.release(HERE, RELEASED, policy="wide.json", step_choices=chosen)
    choosing.audit(HERE, RELEASED, policy="wide.json", step_choices=chosen)
    assert verify(*everything(policy="wide.json"))[1]["wrong"] == []

    def less(told):
        (one,) = told["varied"]["chosen"]
        one["steps"] = [[one["steps"][0][0]] * 2]
        told["varied"]["chosen"] = [one] * left

    edit_statement(less)
    code, found = verify(*alone(policy="wide.json"))
    assert code == 1 and [line.split(",")[0] for line in found["wrong"]] == [
        f"chosen steps: not what was chosen: another policy of user {sorted(users())[0]!r}"
    ]


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
@pytest.mark.parametrize(
    "change",
    [
        lambda varied: varied.update(names=["policy"]),
        lambda varied: varied["chosen"][0].update(steps=[[0.5, 10.0**9]]),
        lambda varied: varied["chosen"][0].update(protection="merge"),
    ],
)
def test_what_is_chosen_is_named_and_has_steps(folder, verify, change):
    edit_statement(epsilon_of_steps_that_no_row_has)
    edit_statement(lambda told: change(told["varied"]))
    code, found = verify(*everything())
    assert code == 1 and any(line.startswith("chosen steps: something") for line in found["wrong"])


def users():
    return {row["user"] for row in csv.DictReader(Path("walks.csv").read_text().splitlines())}


def test_a_parquet_file_is_exported_and_other_formats_are_read(folder, run, verify, capsys, program):
    columns(run)
    assert program.main(["columns/released.parquet"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "dphmm export columns/released.parquet -o released.csv" in said
    run("export", "columns/released.parquet", "-o", "again.csv")
    run("export", "columns", "-o", "packed.csv.gz")
    assert gzip.decompress(Path("packed.csv.gz").read_bytes()) == Path("again.csv").read_bytes()
    for name in ("again.csv", "packed.csv.gz"):
        assert verify(*everything(name))[1]["wrong"] == []
        assert "nothing is wrong" in " ".join(choosing.audit(HERE, name, policy="radius.json").lines)


def columns(run):
    """The same answers, in columns, in a folder of their own."""
    run("release", "walks.csv", *PUBLIC, "--epsilon", 1, "-o", "columns", "--format", "parquet")


def test_the_lines_of_a_stream_are_read(folder, run, verify):
    times = ("08:00", "08:05", "08:10", "08:10")
    text = "".join(f'{{"user": "s", "t": "2024-05-06T{t}:00Z", "state": "x1y2"}}\n' for t in times)
    spent = ("--path-epsilon", 12, "--per", "1h", "--ledger", "stream.db")
    printed = run("release", "-", *PUBLIC, *spent, "-o", "lines", input=text).stdout
    lines = Path("lines/released.jsonl")
    assert lines.read_text() == printed
    _, found = verify(lines, *PUBLIC, "--ledger", "stream.db")
    assert found["wrong"] == [] and "rows: 3 rows of 1 people" in found["ok"]
    assert any(line.startswith("promise: the ledger keeps all 1 people") for line in found["ok"])


def swap_people(rows):
    names = {"u1": "u2", "u2": "u1"}
    for row in rows:
        row["user"] = names.get(row["user"], row["user"])
    rows.sort(key=lambda row: (row["user"], int(row["step"])))


def changed(name, value, at=5):
    def change(rows):
        rows[at][name] = value(rows[at][name])

    return change


def add_a_column(rows):
    for row in rows:
        row["mood"] = "3"


def add_an_estimate(rows):
    for row in rows:
        row["estimate"] = "x3y3"


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (changed("z_0", lambda z: str(float(z) + 1000)), "ledger"),
        (changed("z_0", lambda z: "500.0" if float(z) > 2000 else "3500.0"), "places"),
        (changed("z_1", lambda z: str(float(z) + 0.25)), "answers"),
        (changed("z_lat", lambda z: str(float(z) + 1e-6)), "places"),
        (changed("z_0", lambda z: f"{float(z):.3f}"), "rows"),
        (changed("z_0", lambda z: f"+{z}"), "rows"),
        (changed("z_0", lambda z: f" {z}"), "rows"),
        (changed("z_0", lambda z: f"{z[:-1]}_{z[-1:]}"), "rows"),
        (changed("t", lambda z: "2024-05-06T10:25:00+02:00"), "rows"),
        (changed("t", lambda z: "2024-W19-1T08:25:00Z"), "rows"),
        (changed("epsilon", lambda z: "0.5"), "epsilon"),
        (changed("epsilon", lambda z: "0.5"), "losses"),
        (changed("cost", lambda z: str(float(z) + 1)), "losses"),
        (changed("cost", lambda z: str(float(z) - 1)), "losses"),
        (changed("plan", lambda z: "0" * 64), "plans"),
        (changed("plan", lambda z: ""), "answers"),
        (changed("t", lambda z: "2024-05-06T09:00:01Z"), "times"),
        (changed("step", lambda z: "40", at=35), "times"),
        (changed("step", lambda z: "40", at=35), "ledger"),
        (lambda rows: rows.pop(7) and None, "rows"),
        (lambda rows: rows.insert(0, rows.pop(7)), "rows"),
        (lambda rows: rows.append(dict(rows[-1])), "rows"),
        (lambda rows: rows.extend([{**rows[-1], "step": "13", "t": "2024-05-06T09:00:00Z"}]), "ledger"),
        (swap_people, "ledger"),
        (add_a_column, "columns"),
        (add_an_estimate, "columns"),
    ],
)
def test_an_edited_row_is_convicted(folder, verify, change, check):
    edit_rows(change)
    code, found = verify(*everything())
    assert code == 1 and any(line.startswith(f"{check}: ") for line in found["wrong"])


def test_an_edited_file_has_another_hash(folder, verify):
    edit_rows(changed("z_0", lambda z: str(float(z) + 1000)), seal=False)
    code, found = verify(RELEASED)
    assert code == 1 and [line for line in found["wrong"] if line.startswith("file: file.sha256")]


def promise_of_a_model_of_nobody_knows_whom(told):
    told.update(private=True, reasons=[])


def promise_of_insecure_noise(told):
    told["private"], told["randomness"]["replayable_rows"] = True, 2


def epsilon_of_steps_that_no_row_has(told):
    one = {"steps": [[9990, 9990]], "epsilon": told["epsilon"], "policy": None, "partners": None, "protection": None}
    told.update(varied={"names": ["epsilon"], "chosen": [one]}, epsilon="1/100")


def other_mechanism(told):
    told["mechanism"]["chosen"] = {"optimal-table": sum(told["mechanism"]["chosen"].values())}


def runs_that_overlap(told):
    epsilon_of_steps_that_no_row_has(told)
    told["varied"]["chosen"][0]["steps"] = [[1, 9], [5, 10**9]]


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
@pytest.mark.parametrize(
    ("change", "check"),
    [
        (epsilon_of_steps_that_no_row_has, "chosen steps"),
        (runs_that_overlap, "chosen steps"),
        (lambda told: told["schedule"].update(at="1-12"), "schedule"),
        (lambda told: told["sequence"].update(total="2"), "promise"),
        (lambda told: told["sequence"].update(steps=3, per=None), "promise"),
        (lambda told: told["schedule"].update(not_asked=told["schedule"]["not_asked"] + 1), "rows"),
        (lambda told: told.update(epsilon="1/2"), "epsilon"),
        (lambda told: told["totals"].update(epsilon_sum="3"), "sum of epsilons"),
        (lambda told: told["totals"].update(cost_sum="3"), "sum of costs"),
        (lambda told: told["published"].update(subjects=4), "rows"),
        (lambda told: told["plans"].update(sha256="0" * 64), "plans"),
        (lambda told: told["plans"].update(count=7), "plans"),
        (lambda told: told["model"].update(sha256="0" * 64), "model"),
        (lambda told: told["space"].update(sha256="0" * 64), "states"),
        (lambda told: told["policy"].update(sha256="0" * 64), "policy"),
        (lambda told: told["policy"]["parameters"].update(r="90000"), "policy"),
        (lambda told: told["policy"].update(kind="complete"), "policy"),
        (promise_of_insecure_noise, "private"),
        (promise_of_insecure_noise, "ledger"),
        (promise_of_a_model_of_nobody_knows_whom, "private"),
        (lambda told: told["randomness"].update(replayable_rows=2), "private"),
        (lambda told: told["sequence"].update(holds=True), "statement"),
        (lambda told: told.update(note="u1 sleeps at x1y2"), "statement"),
        (lambda told: told["space"].update(note="u1 sleeps at x1y2"), "statement"),
        (lambda told: told.update(reasons=[]), "private"),
        (lambda told: told.update(reasons=["fitted on released"]), "private"),
        (lambda told: told.update(private=False), "private"),
        (lambda told: told.update(private=1), "statement"),
        (lambda told: told.update(not_protected=told["not_protected"][1:]), "private"),
        (lambda told: told.update(not_protected=[*told["not_protected"], "more by the mechanism"]), "private"),
        (lambda told: told.update(algorithm_version=3), "plans"),
        (lambda told: told.update(definition="{epsilon, G}"), "statement"),
        (lambda told: told["software"].update(version="2, by u1"), "statement"),
        (lambda told: told.update(query="other"), "ledger"),
        (lambda told: told["covered_distance"].update(metres=9000.0), "members"),
        (lambda told: told["covered_distance"].update(ground_metres=9000.0), "members"),
        (lambda told: told.update(covered_distance=None), "members"),
        (lambda told: told["mechanism"].update(asked="staircase"), "plans"),
        (lambda told: told["mechanism"].update(protection="nearest"), "plans"),
        (lambda told: told["model"].update(people="others", people_known_by="owner"), "private"),
        (lambda told: told["model"].update(because="a fit"), "members"),
        (lambda told: told["published"].update(rows=7), "rows"),
        (lambda told: told["published"].update(public_constants=1), "epsilon"),
        (lambda told: told["published"].update(earlier_answers=3), "statement"),
        (lambda told: told["plans"].update(hashes=None), "plans"),
        (lambda told: told["sequence"].update(zone="+01:00"), "schedule"),
        (lambda told: told["schedule"].update(spreads=[1.0]), "schedule"),
        (lambda told: told["space"].update(dimension=3), "states"),
        (lambda told: told["space"].update(states=9), "states"),
        (lambda told: told["space"].update(merged={"count": 1, "pairs": [[0, 1]]}), "states"),
        (lambda told: told["file"].update(name="other.csv"), "file"),
        (lambda told: told.update(beginnings={"subjects": 1, "sha256": "0" * 64}), "members"),
        (lambda told: told.update(epsilon="2.0"), "statement"),
        (lambda told: told["sequence"].update(total="8/2"), "statement"),
        (lambda told: told["schedule"].update(name="x"), "schedule"),
        (lambda told: told["mechanism"].update(start="at"), "plans"),
        (lambda told: told.update(constraint="delta=0.1"), "plans"),
        (other_mechanism, "answers"),
        (lambda told: told["space"].update(pitch=[10.0, 10.0]), "states"),
        (lambda told: told["space"].update(kind="h3"), "states"),
        (lambda told: told["model"].update(private=True), "model"),
        (lambda told: told["model"].update(method="geometry"), "model"),
        (lambda told: told["model"].update(step_seconds=60), "model"),
        (lambda told: told.update(answer="first"), "ledger"),
        (lambda told: told["schedule"].update(at=f"{told['schedule']['at']},13"), "schedule"),
        (lambda told: told["sequence"].update(over="sets"), "statement"),
        (lambda told: told["sequence"].update(window=10**6), "promise"),
        (lambda told: told["sequence"].update(couples=True), "couples"),
        (lambda told: told["sequence"].update(couples="yes"), "couples"),
        (lambda told: told["sequence"].pop("couples"), "couples"),
        (lambda told: told.update(learning={"private": True, "epsilon": "1"}), "members"),
        (lambda told: told.pop("totals"), "sums"),
        (lambda told: told.pop("plans"), "plans"),
    ],
)
def test_an_edited_statement_is_convicted(folder, verify, change, check):
    edit_statement(change)
    code, found = verify(*everything())
    assert code == 1 and any(line.startswith(f"{check}: ") for line in found["wrong"])


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
def test_epsilons_of_chosen_steps_are_looked_at_one_by_one(folder, verify):
    """Right where all rows are of chosen steps; wrong where half of them are not, and have the same epsilon."""
    times = times_of(RELEASED)
    seconds = json.loads(Path(STATEMENT).read_text())["model"]["step_seconds"]
    bins = [int(datetime.fromisoformat(t).replace(tzinfo=UTC).timestamp()) // seconds for t in times]

    def chosen(last):
        def change(told):
            epsilon_of_steps_that_no_row_has(told)
            told["varied"]["chosen"][0]["steps"] = [[bins[0], last]]

        return change

    edit_statement(chosen(bins[-1]))
    assert [line.split(":")[0] for line in verify(*everything())[1]["ok"] if line.startswith("chosen")] == [
        "chosen steps"
    ]
    edit_statement(lambda told: told["varied"]["chosen"][0].update(steps=[[bins[0], bins[len(bins) // 2]]]))
    assert any(line.startswith("chosen steps: ") for line in verify(*everything())[1]["wrong"])


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
def test_a_longer_schedule_is_convicted(folder, run, verify):
    """Two answers more than a day is promised, all of them in the ledger."""
    more = ("--path-epsilon", 8, "--per", "1h", "--epsilon", 2, "--people", 6)
    run("plan", *PUBLIC[1:], "-o", "more.json", *more)
    run("release", "walks.csv", *PUBLIC, "--plan", "more.json", "-o", "more", "--ledger", "other.db")
    told = json.loads(Path(STATEMENT).read_text())
    Path(RELEASED).write_bytes(Path("more/released.csv").read_bytes())
    edit_statement(lambda statement: None)
    assert told["sequence"]["total"] == "4"
    code, found = verify(RELEASED)
    assert code == 1 and {"promise", "schedule"} <= {line.partition(":")[0] for line in found["wrong"]}


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
@pytest.mark.parametrize("releases", [1, 9])
def test_fewer_or_more_answers_than_a_block_has_room_for_are_convicted(folder, verify, releases):
    edit_statement(lambda statement: statement["schedule"].update(releases=releases))
    _, found = verify(RELEASED)
    assert any(line.startswith("schedule: ") and f"room for {releases}" in line for line in found["wrong"])


def edit_plan(change):
    told = json.loads(Path("plans.json").read_text())
    change(told["plans"][0])
    Path("plans.json").write_text(json.dumps(told))


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["bodies"][0]["offsets"].__setitem__(0, 7),
        lambda plan: plan["bodies"][0]["normals"].pop(),
        lambda plan: plan.update(support="00" + plan["support"][2:]),
        lambda plan: plan.update(plan_set="00" + plan["plan_set"][2:]),
        lambda plan: plan.update(description=plan["description"].replace('"cost": "', '"cost": "1')),
        lambda plan: plan.update(inputs=plan["inputs"].replace('"epsilon": "1"', '"epsilon": "2"')),
        lambda plan: plan.update(surrogate=[0] * plan["states"]),
        lambda plan: plan.update(given=[[0, 1]]),
    ],
)
def test_parts_that_are_not_those_of_the_plan_are_convicted(folder, verify, change):
    edit_plan(change)
    code, found = verify(*everything())
    assert code == 1 and any("parts of another hash" in line for line in found["wrong"])


def test_a_body_that_misses_a_pair_is_convicted_where_its_hash_was_forged(folder, verify, program):
    """Whoever draws from a body that is too small can name it by its own hash: then the losses say so."""
    told = json.loads(Path("plans.json").read_text())["plans"][0]
    before = told["hash"]
    told["bodies"][0]["normals"] = [[2 * a for a in row] for row in told["bodies"][0]["normals"]]
    told["hash"] = program.PlainPlan(told).made
    Path("plans.json").write_text(
        json.dumps({"format": 1, "kind": "plans of a dphmm release", "plans": [told]}).replace(before, told["hash"])
    )
    edit_rows(lambda rows: [{**row, "plan": row["plan"].replace(before, told["hash"])} for row in rows])
    code, found = verify(*everything())
    lost = [line for line in found["wrong"] if line.startswith("losses: ")]
    assert code == 1 and any("lose 2 under" in line for line in lost) and any("another cost" in line for line in lost)


@pytest.mark.parametrize("policy", ["radius.json", "complete.json"])
def test_every_pair_that_must_be_hidden_is_looked_at(folder, run, verify, policy):
    """As many as the policy itself joins: two possible states of a plan with an edge."""
    if policy == "complete.json":
        Path("ledger.db").unlink()
        public = ("--model", "model.npz", "--policy", policy, "--epsilon", 1)
        run("release", "walks.csv", *public, "-o", "complete", "--ledger", "ledger.db")
        checked(run, released="complete")
    model = dphmm.storage.load_model("model.npz")
    graph, n = dphmm.storage.load_policy(policy, model=model), model.n_states
    first, second = np.triu_indices(n, 1)
    joined = graph.joins(first, second)
    due = 0
    for plan in json.loads(Path("plans.json").read_text())["plans"]:
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(plan["support"]), np.uint8))[:n].astype(bool)
        due += int((joined & bits[first] & bits[second]).sum()) + len(plan["given"])
    released = RELEASED if policy == "radius.json" else "complete/released.csv"
    _, found = verify(*everything(released, policy=policy))
    told = [line for line in found["ok"] if " pairs joined by the policy lose at most " in line]
    assert due > 40 and [line.split()[1] for line in told] == [f"{due:,}"]


@pytest.mark.parametrize(("name", "loss"), [("staircase", 2), ("discrete-knorm", Fraction(3, 2))])
def test_a_norm_between_two_steps_of_a_staircase_loses_the_whole_step(program, name, loss):
    plan = object.__new__(program.PlainPlan)
    plan.epsilon, plan.name = Fraction(1), name
    assert plan.loss_of_norm(Fraction(3, 2)) == loss


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("UPDATE account SET epsilon = '3'", "account"),
        ("UPDATE account SET cost_nanos = '7'", "account"),
        ("UPDATE account SET cap_epsilon = '1'", "account"),
        ("UPDATE release SET z = '0,0' WHERE t = 3", "ledger"),
        ("DELETE FROM release WHERE t = 3", "ledger"),
        ("UPDATE terms SET secure = 0", "ledger"),
        ("UPDATE terms SET cost = 'inf'", "ledger"),
        ("UPDATE meta SET value = 'exact' WHERE key = 'spelling'", "ledger"),
        ("UPDATE account SET key = 'x' || key", "ledger"),
        ("UPDATE account SET subject = upper(subject) || ' '", "ledger"),
    ],
)
def test_an_edited_ledger_is_convicted(folder, verify, change, check):
    with sqlite3.connect("ledger.db") as opened:
        opened.execute(change)
    code, found = verify(*everything())
    assert code == 1 and any(line.startswith(f"{check}: ") for line in found["wrong"])


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
def test_a_limit_that_the_ledger_does_not_keep_is_convicted(folder, verify):
    with sqlite3.connect("ledger.db") as opened:
        opened.execute("UPDATE account SET promise = NULL, cap_epsilon = NULL, cap_cost = NULL")
    code, found = verify(*everything())
    assert code == 1 and any(line.startswith("account: have no limit") for line in found["wrong"])


def test_keys_are_those_of_the_package(program):
    for name, key in VECTORS:
        assert (program.key_of(name, "same"), program.key_of(name, "exact")) == (key, name)
    odd = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    odd = [c for c in odd if c.isspace() or person_key.__wrapped__(f"a{c}b") != f"a{c}b"]
    assert len(odd) > 5_000
    for character in odd:
        for name in (f"a{character}b", f"\u1fb3{character}"):
            assert program.key_of(name, "same") == person_key.__wrapped__(name), ascii(name)
    for rule in ("same", "exact"):
        with pytest.raises(program.Unknown, match="Unicode"):
            program.key_of("a\u0378", rule)


def renamed(*names):
    """The people of the released file by other names, in their order."""

    def change(rows):
        users = dict(zip(dict.fromkeys(row["user"] for row in rows), names, strict=False))
        for row in rows:
            row["user"] = users.get(row["user"], row["user"])

    return change


@pytest.mark.parametrize("names", [("Zo\u00eb", "zoe\u0308"), ("bob", " Bob"), ("7", "7.0"), ("ann", "a\u200bnn")])
def test_two_names_of_one_person_contradict_the_rule_of_the_statement(folder, verify, names):
    edit_rows(renamed(*names))
    code, found = verify(RELEASED)
    (line,) = lines_of("people", found["wrong"])
    assert code == 1 and line.startswith("people: by the rule 'same' of spelling of one person: ")
    edit_statement(lambda told: told["subjects"].update(spelling="exact"))
    assert lines_of("people", verify(RELEASED)[1]["ok"])


def test_names_of_another_version_of_unicode_cannot_be_told(folder, verify):
    edit_rows(renamed("a\u0378"))
    own = unicodedata.unidata_version
    code, found = verify(RELEASED)
    (line,) = lines_of("people", found["not looked at"])
    assert code == 5 and line.startswith(f"people: 1 names have characters that Unicode {own} of this Python does not")
    edit_ledger("UPDATE meta SET value = '99.0.0' WHERE key = 'unicode'")
    (line,) = lines_of("ledger", verify(*everything())[1]["stated"])
    assert line.startswith("ledger: it read names by Unicode 99.0.0, and this Python by another version: keys of ")


def test_two_accounts_of_one_person_are_one_sum(folder, verify):
    """Each account is that of its releases and within its cap: together they are above it."""
    edit_rows(renamed("ann"))
    edit_ledger(
        "INSERT INTO account (subject, key, version, epsilon, cost_nanos) "
        "SELECT upper(subject), 'another', 0, '0', '0' FROM account ORDER BY id LIMIT 1"
    )
    code, found = verify(*everything())
    assert code == 1 and any(
        "several accounts, or another key, of" in line for line in lines_of("ledger", found["wrong"])
    )


def test_a_file_names_people_as_its_ledger_does(folder, verify):
    with Path(RELEASED).open(newline="") as file:
        first = next(csv.DictReader(file))["user"]
    edit_rows(renamed(f"{first.upper()} "))
    code, found = verify(*everything())
    wrong = [line for line in found["wrong"] if not line.startswith("bytes")]
    assert code == 1 and wrong == [f"ledger: called otherwise than in the file: {first.upper() + ' '!r}"]


@pytest.fixture(scope="module")
def promised(world, tmp_path_factory, run):
    """A folder with a release under a promise for each hour."""
    folder = shutil.copytree(world / "made", tmp_path_factory.mktemp("promised") / "hourly")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for old in ("out", "out.owner"):
            shutil.rmtree(old)
        Path("ledger.db").unlink()
        spent = ("--path-epsilon", 12, "--per", "1h")
        run("release", "walks.csv", *PUBLIC, *spent, "-o", "out", "--ledger", "ledger.db")
        checked(run)
    return folder


@pytest.fixture
def hourly(promised, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(promised, tmp_path / "hourly"))


def lines_of(check, lines):
    return [line for line in lines if line.startswith(f"{check}: ")]


def edit_ledger(change):
    with sqlite3.connect("ledger.db") as opened:
        opened.execute(change)


@pytest.mark.slow
@pytest.mark.usefixtures("hourly")
def test_a_promise_is_that_which_the_ledger_keeps(verify):
    code, found = verify(*everything())
    assert code == 0 and "promise: the ledger keeps all 3 people to it, over all their queries and files" in found["ok"]
    # Steps of 5 minutes that begin with an hour: the same in other words. And a file may promise less than is kept.
    for change in (lambda told: told["sequence"].update(per=12), lambda told: told.pop("sequence")):
        edit_statement(change)
        assert verify(*everything())[0] == 0


@pytest.mark.usefixtures("hourly")
@pytest.mark.parametrize(
    "change",
    [
        {"total": "24"},
        {"per": "30min"},
        {"per": "2h"},
        {"per": "2h", "total": "24"},
        {"zone": "+00:30"},
        {"per": None, "window": 12},
        {"per": None, "steps": 12},
        {"per": None, "steps": 10**6, "total": "144"},
    ],
)
def test_another_promise_than_that_of_the_ledger_is_convicted(verify, change):
    """Rows alone contradict none of them: so it is the ledger that convicts, and without it nothing is told."""
    edit_statement(lambda told: told["sequence"].update(change))
    code, found = verify(*everything())
    assert code == 1 and [line for line in found["wrong"] if line.startswith("promise: the ledger keeps 'u1' to ")]
    code, found = verify(*alone()[:-2], "--facts", "facts.json")
    assert code == 5 and found["wrong"] == [] and lines_of("promise", found["not looked at"])


@pytest.mark.usefixtures("hourly")
@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("UPDATE account SET promise = NULL", "promise"),
        ("""UPDATE document SET text = replace(text, '"total": "12"', '"total": "24"')""", "promise"),
        ("""UPDATE document SET text = replace(text, '"passed": 0', '"passed": 3')""", "promise"),
        ("""UPDATE document SET text = replace(text, '"per": 12', '"per": 13')""", "promise"),
        ("""UPDATE document SET text = replace(text, '"origin":"', '"origin":"1')""", "ledger"),
        ("""UPDATE document SET text = replace(text, '"answer":"last"', '"answer":"first"')""", "ledger"),
    ],
)
def test_another_promise_or_another_begin_in_the_ledger_is_convicted(verify, change, check):
    edit_ledger(change)
    code, found = verify(*everything())
    assert code == 1 and lines_of(check, found["wrong"])


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
def test_another_schedule_in_the_ledger_is_convicted(folder, verify):
    edit_ledger("""UPDATE document SET text = replace(text, '\\"total\\": \\"4\\"', '\\"total\\": \\"9\\"')""")
    code, found = verify(*everything())
    assert code == 1 and lines_of("schedule", found["wrong"])


@pytest.mark.parametrize("folder", ["made"], indirect=True)
@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda one: one["policy"].update(kind="radius"), "wrong"),
        (lambda one: one["policy"]["parameters"].update(n_states=99), "wrong"),
        (lambda one: one["policy"].clear(), "wrong"),
        (lambda one: one["policy"].update(parameters=None), "not looked at"),
        (lambda one: one["policy"].update(kind="knn"), "not looked at"),
        (lambda one: None, "ok"),
    ],
)
def test_a_policy_of_steps_has_the_hash_of_what_is_said_of_it(folder, run, verify, change, word):
    Path("ledger.db").unlink()
    times = times_of("walks.csv")
    run("policy", "complete", "model.npz", "-o", "wide.json")
    chosen = policies_of(times[:1], "wide.json")
    for old in (RELEASED, STATEMENT):
        Path(old).unlink()
    choosing.release(HERE, RELEASED, policy="radius.json", step_choices=chosen)
    choosing.audit(HERE, RELEASED, policy="radius.json", step_choices=chosen)
    edit_statement(lambda told: change(told["varied"]["chosen"][0]))
    _, found = verify(*alone())
    words = ("kind and parameters", "hash:", "missing")
    said = [line for line in lines_of("chosen steps", found[word]) if any(part in line for part in words)]
    assert len(said) == 1 and bool(found["wrong"]) == (word == "wrong")


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
def test_partners_and_protection_of_steps_cannot_be_told(folder, verify):
    edit_statement(epsilon_of_steps_that_no_row_has)
    edit_statement(lambda told: told["varied"].update(names=["epsilon", "partners", "protection"]))
    _, found = verify(*alone())
    (line,) = lines_of("chosen steps", found["not looked at"])
    assert line.endswith(": partners, protection")


@pytest.mark.parametrize(
    ("size", "speed", "jump"),
    [
        ((5, 5), "30km/h", None),
        ((5, 5), "13km/h", "0.01"),
        ((8, 5), "25km/h", None),
        ((8, 5), "40km/h", None),
        ((4, 6), "30km/h", None),
    ],
)
def test_the_models_that_couple_are_those_of_the_package(run, tmp_path, program, size, speed, jump):
    file, (across, up) = tmp_path / "model.npz", size
    box = f"10.0,50.0,{10 + 0.0139 * across:.4f},{50 + 0.0089 * up:.4f}"
    law = ("--max-speed", speed, *(() if jump is None else ("--jump", jump)))
    run("model", "grid", "--bbox", box, "--cell", "1km", "--step", "5min", *law, "-o", file)
    model = dphmm.storage.load_model(file)
    known = couples_along_radius(model) is True
    assert (model.space.columns, model.space.rows) == size and known == (min(size) > 4 and speed != "40km/h")
    found = program.ModelFile(file)
    assert found.couples() == known
    found.moves[-1] = found.moves[-1][1:]
    assert not found.couples()


def test_another_model_or_policy_is_convicted(folder, run, verify):
    run("policy", "radius", "model.npz", "-o", "radius.json", "--radius", "3km", "--force")
    code, found = verify(*everything())
    assert code == 1 and [line for line in found["wrong"] if line.startswith("policy: ")]
    assert [line for line in found["wrong"] if line.startswith("losses: ") and " lose " in line]


def test_what_is_not_given_cannot_be_told(folder, verify):
    code, found = verify(RELEASED)
    told = {line.partition(":")[0] for line in found["not looked at"]}
    assert code == 5 and found["wrong"] == []
    assert {"model", "policy", "answers", "places", "plans", "ledger"} <= told
    Path(STATEMENT).unlink()
    code, found = verify(RELEASED)
    assert code == 5 and {"statement", "epsilon", "promise", "schedule"} <= {
        line.partition(":")[0] for line in found["not looked at"]
    }


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (RELEASED, b"user,step\n\xff,1\n"),
        (RELEASED, b"user,step,epsilon,cost,plan\nu1,0,1,1,a\n"),
        (RELEASED, b"user,step,epsilon,cost,plan\nu1,1,1\n"),
        (STATEMENT, b"{"),
        ("model.npz", b"PK\x03\x04 and no more"),
        ("radius.json", b"[]"),
        ("plans.json", b'{"format": 1, "kind": "another"}'),
        ("plans.json", b'{"format": 1, "kind": "plans of a dphmm release", "plans": [{}]}'),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(folder, program, capsys, file, content):
    Path(file).write_bytes(content)
    assert program.main(list(everything())) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "expected" in said.err


def test_the_plain_form_needs_a_new_folder(folder, run):
    before = Path("plain/plans.json").read_bytes()
    said = run("check-release", "out", "--plain", "plain", code=2).stderr
    assert "--plain" in said and Path("plain/plans.json").read_bytes() == before


def test_without_a_ledger_a_release_is_not_convicted_and_not_acquitted(folder, run):
    """As whoever is given the public folder checks it."""
    shutil.rmtree("out.owner")
    said = run("check-release", "out", code=5).stdout
    assert "nothing is wrong, and not everything was looked at" in said and "not looked at: ledger: " in said


def low_digits(rows):
    """The last digits of a place tell something: 1e-11 degrees are a thousandth of a millimetre."""
    for number, row in enumerate(rows):
        row["z_lat"] = repr(float(row["z_lat"]) + number * 1e-11)


def one_answer_with_two_places(rows):
    """By a last place of the float: less than rounding may be."""
    for name in ("z_0", "z_1", "z_lat", "z_lon"):
        rows[1][name] = rows[0][name]
    rows[1]["z_lat"] = repr(math.nextafter(float(rows[0]["z_lat"]), 90))


def nought_below_nought(rows):
    rows[0]["cost"] = "-0"


@pytest.mark.parametrize(
    ("change", "check"), [(low_digits, "places"), (one_answer_with_two_places, "places"), (nought_below_nought, "rows")]
)
def test_digits_that_no_release_writes_are_convicted(folder, verify, change, check):
    edit_rows(change)
    code, found = verify(*everything())
    assert code == 1 and lines_of(check, found["wrong"])


def test_facts_are_believed_and_said_to_be(folder, verify):
    """Whoever forges them and the statement alike is not called right by a program that cannot know."""
    facts, forged = json.loads(Path("facts.json").read_text()), {"metres": 5000.0, "ground_metres": 4900.0}
    assert facts["members"]["covered_distance"] != forged
    facts["members"]["covered_distance"] = forged
    Path("facts.json").write_text(json.dumps(facts))
    edit_statement(lambda told: told.update(covered_distance=forged))
    code, found = verify(*everything())
    assert code == 0 and [line for line in found["by facts"] if "covered_distance" in line]
    assert not [line for line in found["ok"] if "covered_distance" in line]


def test_the_order_of_members_says_nothing(folder, verify):
    path = Path(STATEMENT)
    told = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(told.items())), indent=2) + "\n")
    code, found = verify(*everything())
    assert code == 5 and [line for line in found["not looked at"] if "written in another way" in line]


def test_rows_of_a_parquet_file_that_is_not_there_are_tied_to_nothing(folder, run, verify):
    columns(run)
    run("check-release", "columns", "--plain", "of-parquet")
    rows = ("of-parquet/rows.csv", "--statement", "columns/released.parquet.privacy.json")
    code, found = verify(*rows)
    assert code == 5 and [line for line in found["not looked at"] if line.startswith("file: released.parquet is not")]
    code, found = verify(*rows, "--facts", "of-parquet/facts.json")
    assert code == 5 and [line for line in found["by facts"] if line.startswith("file: file.sha256")]


@pytest.mark.parametrize("folder", ["planned"], indirect=True)
def test_a_ledger_that_passes_its_promise_is_convicted(folder, verify):
    """Its account and its text agree with the statement, and its rows do not keep what it says."""
    with sqlite3.connect("ledger.db") as opened:
        opened.execute("UPDATE terms SET epsilon = '100' WHERE epsilon IS NOT NULL")
        opened.execute("UPDATE account SET cap_epsilon = NULL")
    code, found = verify(*everything())
    assert code == 1 and [line for line in lines_of("promise", found["wrong"]) if "the ledger has more of" in line]


def test_choices_that_no_session_has_are_convicted(folder, verify):
    own = {"steps": [[5001, 5001]], "epsilon": "1/3", "policy": None, "protection": None, "partners": None}
    edit_statement(lambda told: told.update(varied={"names": ["epsilon"], "chosen": [own]}))
    code, found = verify(*alone())
    assert code == 1 and [line for line in lines_of("ledger", found["wrong"]) if "varies" in line]


def test_a_schedule_of_many_words_is_not_read_for_ever(folder, verify):
    at = ",".join(["1-500000"] * 2000)
    asking = {"name": "planned", "at": at, "spreads": [], "releases": 1, "not_asked": 0}
    edit_statement(lambda told: told.update(schedule=asking))
    _, found = verify(RELEASED)
    assert lines_of("schedule", found["not looked at"]) == ["schedule: a schedule of 1-500000"]
