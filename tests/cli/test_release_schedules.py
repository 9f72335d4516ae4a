"""release --plan and --schedule: every row is kept, some are asked, and what was planned is audited and smoothed."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pyarrow.parquet as pq
import pytest

import dphmm
from dphmm.accounting.promise import Schedule
from dphmm.setup.released import whole_blocks
from dphmm.states.trajectory import Trajectories
from dphmm.states.visit_table import VisitTable

QUICK = ("--people", 6)
PUBLIC = ("--model", "model.npz", "--policy", "radius.json")

pytestmark = pytest.mark.replayed_words


@pytest.fixture
def folder(town, tmp_path, monkeypatch):
    """A copy of the town to work in, with a plan of two answers in twelve steps."""
    for name in ("model.npz", "radius.json", "complete.json", "walks.csv"):
        (tmp_path / name).write_bytes((town / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plan(folder, run):
    """A planned schedule for the rows of an hour."""
    arguments = ("plan", "model.npz", "--policy", "radius.json", "--path-epsilon", 4, "--steps", 12, "--epsilon", 2)
    run(*arguments, "-o", "plan.json", *QUICK)
    return json.loads((folder / "plan.json").read_text())


def release(run, *more, code=0, out="released", ledger="ledger.db"):
    files = ("-o", out, "--format", "parquet", "--ledger", ledger)
    return run("release", "walks.csv", *PUBLIC, *files, *more, code=code)


@pytest.mark.slow
def test_a_plan_is_released_stated_audited_smoothed_reported_and_resumed(folder, plan, run, one_json):
    told = one_json(release(run, "--plan", "plan.json", "--json"))
    rows = pq.read_table("released/released.parquet").to_pylist()
    assert told["released"] == 6 and told["not_asked"] == 30 and len(rows) == 36
    assert {row["step"] for row in rows if row["plan"]} == {int(t) for t in plan["schedule"]["at"].split(",")}
    assert [row for row in rows if (row["z_0"] is None) != (row["plan"] is None)] == []
    statement = json.loads((folder / "released" / "released.parquet.privacy.json").read_text())
    assert statement["schedule"]["at"] == plan["schedule"]["at"] and statement["schedule"]["not_asked"] == 30
    assert statement["sequence"]["total"] == "4" and statement["epsilon"] == "2"
    assert "nothing is wrong" in run("check-release", "released").stdout
    run("read", "released", "--estimates", "-o", "smoothed.parquet")
    smoothed = pq.read_table("smoothed.parquet").to_pylist()
    assert [(row["user"], row["step"]) for row in smoothed] == [(row["user"], row["step"]) for row in rows]
    run("report", "released", "-o", "report.html")
    release(run, "--plan", "plan.json")
    assert pq.read_table("released/released.parquet").to_pylist() == rows


@pytest.mark.slow
def test_rows_after_the_sequence_of_a_plan_are_told(folder, run):
    """5,572 of 13,685 rows lay beyond, and neither release nor its file said so."""
    told = "12 of 36 rows are after step 8, the last of the sequence that the total is of: they have no answer"
    for steps, says in ((8, True), (12, False)):
        run("plan", "model.npz", "--policy", "radius.json", "--path-epsilon", 4, "--steps", steps, "--epsilon", 2,
            "-o", f"plan{steps}.json", *QUICK)  # fmt: skip
        said = release(run, "--plan", f"plan{steps}.json", out=f"r{steps}", ledger=f"l{steps}.db").stderr
        assert (f"note: {told}" in said) == says


@pytest.mark.slow
def test_csv_and_lines_are_audited_too(folder, plan, run):
    release(run, "--plan", "plan.json", "--format", "csv")
    assert "nothing is wrong" in run("check-release", "released/released.csv").stdout
    lines = [
        json.dumps({"user": "a", "t": f"2024-05-06T08:{5 * k:02d}:00Z", "lat": 50.01, "lon": 10.02}) for k in range(12)
    ]
    stream = ("release", "-", *PUBLIC, "--plan", "plan.json", "--ledger", "stream.db", "-o", "lines")
    said = run(*stream, input="\n".join(lines))
    told = [json.loads(line) for line in said.stdout.splitlines()]
    assert len(told) == 12 and sum(row["plan"] is not None for row in told) == 2
    assert "10 lines not asked by the schedule" in said.stderr
    assert "nothing is wrong" in run("check-release", "lines").stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["planned", "paced"])
def test_a_schedule_is_planned_by_the_release_itself_and_kept_by_the_ledger(folder, run, kind):
    asked = ("--path-epsilon", 4, "--steps", 12, "--schedule", kind, "--epsilon", 2)
    release(run, *asked)
    rows = pq.read_table("released/released.parquet").to_pylist()
    assert 0 < sum(row["plan"] is not None for row in rows) <= 6 and len(rows) == 36
    release(run, *asked)
    assert pq.read_table("released/released.parquet").to_pylist() == rows
    assert "nothing is wrong" in run("check-release", "released").stdout
    again = release(run, "--path-epsilon", 4, "--steps", 12, "--epsilon", 2, code=2)
    assert "schedule" in again.stderr and "Traceback" not in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--plan", "plan.json", "--epsilon", 2), "--epsilon: got 2, and --plan"),
        (("--plan", "plan.json", "--path-epsilon", 2), "--path-epsilon: got 2, and --plan"),
        (("--plan", "plan.json", "--schedule", "paced"), "--schedule: got paced, and --plan"),
        (("--plan", "plan.json", "--policy", "knorm.json"), "--setting mechanism: got discrete-knorm in the policy"),
        (("--plan", "nowhere.json"), "nowhere.json"),
        (("--plan", "radius.json"), "radius.json"),
        (("--schedule", "paced", "--epsilon", 1), "--schedule: got paced; expected --path-epsilon"),
        (("--path-epsilon", 4, "--steps", 12, "--schedule", "planned", "--epsilon", 5), "epsilon: got 5"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_with_nothing_spent(folder, plan, run, options, said):
    run(
        "policy",
        "radius",
        "model.npz",
        "--radius",
        "1.5km",
        "--setting",
        "mechanism",
        "discrete-knorm",
        "-o",
        "knorm.json",
    )
    failed = release(run, *options, code=2)
    assert said in failed.stderr and len(failed.stderr.strip().splitlines()) == 1
    assert not (folder / "ledger.db").exists() and not (folder / "released" / "released.parquet").exists()


def test_a_plan_for_another_policy_is_refused(folder, plan, run):
    more = ("--plan", "plan.json", "-o", "r", "--ledger", "l.db")
    failed = run("release", "walks.csv", "--model", "model.npz", "--policy", "complete.json", *more, code=2)
    assert "a plan made for another policy" in failed.stderr


def test_a_dry_run_counts_the_rows_that_are_asked(folder, plan, run, one_json):
    dry = ("release", "walks.csv", *PUBLIC, "--plan", "plan.json", "--dry-run")
    told = one_json(run(*dry, "--json"))
    done = one_json(release(run, "--plan", "plan.json", "--json"))
    assert told["would_release"] == done["released"] == 6 and told["not_asked"] == done["not_asked"] == 30
    assert told["largest_epsilon_sum"] == done["largest_epsilon_sum"] == "4"
    said = " ".join(run(*dry).stdout.split())
    assert "would release 6 rows" in said and "not asked 30 rows: planned, 2 releases of 2" in said


@pytest.mark.slow
@pytest.mark.parametrize("over", [("--steps", 12), ("--window", 6), ("--per", 6)])
def test_a_dry_run_of_a_paced_schedule_says_at_most(folder, run, one_json, over):
    asked = ("--path-epsilon", 4, *over, "--schedule", "paced", "--epsilon", 2)
    dry = ("release", "walks.csv", *PUBLIC, *asked, "--dry-run")
    most = one_json(run(*dry, "--json"))["would_release"]
    assert one_json(release(run, *asked, "--json"))["released"] <= most == 3 * (2 if over[0] == "--steps" else 4)
    assert f"would release at most {most} rows" in " ".join(run(*dry).stdout.split())


def test_the_summary_tells_both_bounds_what_is_found_and_what_is_spent(folder, plan, run):
    released = release(run, "--plan", "plan.json")
    rows = [line for line in released.stderr.splitlines() if line and not line.startswith(("warning", "note"))]
    labels = [line[:13].strip() for line in rows if line[:13].strip()]
    assert labels[:6] == ["verdict", "published", "found", "guaranteed", "spent", "not protected"]
    said = " ".join(" ".join(rows).split())
    assert "6 noisy positions of 3 people, at fixed public times, at most 2 in 12 steps for each person; 36" in said
    assert "one answer leaves at least 1 in 9 doubt" in said
    assert "both answers of 12 steps: at least 1 in 56 doubt between two ways that look alike" in said
    assert f"{plan['without']:,.0f}"[:3] in said and "misses somebody's" in said
    assert "at most 4 of 4 in 12 steps for each person" in said and "next" in labels
    assert "sum" not in said.replace(str(folder), "")


@pytest.mark.parametrize(
    ("promise", "hours", "whole"),
    [
        ({"per": "1d"}, range(24), True),
        ({"per": "1d"}, range(12, 36), False),
        ({"per": "1d"}, range(12, 48), True),
        ({"per": "1d", "zone": "+12:00"}, range(12, 36), True),
        ({"window": 24}, range(12, 36), True),
        ({"window": 24}, range(12, 35), False),
        ({"per": "1d"}, range(1, 24), False),
    ],
)
def test_a_plan_speaks_of_a_file_with_a_whole_block(promise, hours, whole):
    """Half of one day and half of the next are no day."""
    space = dphmm.StateSpace([0, 1])
    # 1 January 1970 was a day of 24 hours from midnight.
    time = np.array(list(hours)) * 3600 * 10**6
    users = np.zeros(len(time), dtype=np.int64)
    rows = Trajectories(("ann",), users, time=time, step=None, state=np.full(len(time), "0", dtype=object))
    table = VisitTable.of(rows, space, 3600)
    schedule = Schedule(dphmm.SequencePromise(2, **promise), 1, (1, 2))
    assert (whole_blocks(schedule, 3600, table.steps[0], table.n_visits) > 0) is whole


def test_without_a_plan_it_is_said_who_computes_what_is_found(folder, run, one_json):
    released = release(run, "--epsilon", 1)
    said = " ".join(released.stderr.split())
    unknown = "What a reader finds is not known here: dphmm report computes it for these rows"
    assert f"verdict No limit is set. {unknown}." in said
    run("report", folder / "released", "-q")
    read = " ".join(run("read", folder / "released").stdout.split())
    assert f"{unknown}, and report.html has its last figures." in read
    told = one_json(release(run, "--epsilon", 1, "--json", out="j", ledger="j.db"))
    assert told["found"] is None and told["verdict"]["rules"] == ["unlimited", "unknown"]
    assert "spent epsilon 12 so far, for the person with most answers (by this file); no limit is set" in said


def test_what_is_said_does_not_depend_on_where_people_are(folder, plan, run):
    """The same people, times and plan, somewhere else."""
    lines = (folder / "walks.csv").read_text().splitlines()
    there = lines[1].split(",")[2:]
    moved = [lines[0], *(",".join([*line.split(",")[:2], *there]) for line in lines[1:])]
    said = []
    for name, text in (("a", lines), ("b", moved)):
        (folder / "walks.csv").write_text("\n".join(text) + "\n")
        said.append(release(run, "--plan", "plan.json", out=name, ledger=f"{name}.db").stderr)
    for there, here in {
        "b.db": "a.db",
        " b, which": " a, which",
        "b.owner": "a.owner",
        "report b\n": "report a\n",
    }.items():
        said[1] = said[1].replace(there, here)
    assert said[0] == said[1]


def test_a_stream_says_its_schedule_first(folder, plan, run):
    line = '{"user": "a", "t": "2024-05-06T08:00:00Z", "lat": 50.01, "lon": 10.02}\n'
    said = run("release", "-", *PUBLIC, "--plan", "plan.json", "--ledger", "s.db", input=line).stderr
    assert "schedule planned, 2 releases of 2" in " ".join(said.split())


def test_the_choice_of_a_schedule_shows_how_far_it_is(folder, run, monkeypatch):
    bars = {}

    @contextmanager
    def progress(console, label):
        yield lambda done, total: bars.setdefault(label, []).append((done, total))

    monkeypatch.setattr("dphmm.cli.console.Console.progress", progress)
    release(run, "--path-epsilon", 4, "--steps", 12, "--schedule", "planned", "--epsilon", 2)
    assert list(bars) == ["plans", "release"]
    done, total = bars["plans"][-1]
    assert done == total and [one for one, _ in bars["plans"]] == list(range(1, total + 1))


def test_a_release_that_answers_nobody_says_why(folder, plan, run):
    """Rows of the first step of each person alone: the plan asks later."""
    header, *rows = (folder / "walks.csv").read_text().splitlines()
    assert int(plan["schedule"]["at"].split(",")[0]) > 1
    firsts = {row.split(",")[0]: row for row in reversed(rows)}
    (folder / "walks.csv").write_text("\n".join([header, *firsts.values()]) + "\n")
    told = release(run, "--plan", "plan.json", "--no-check", code=3)
    assert "no answer was published: no row lies at a step that the schedule asks" in told.stderr
    assert "no answer was published" not in release(run, "--epsilon", 1, out="b", ledger="b.db").stderr


def test_a_release_that_leaves_people_out_exits_3_and_says_how_many(folder, plan, run, one_json):
    """Of one person the first row alone: the plan asks later."""
    header, *rows = (folder / "walks.csv").read_text().splitlines()
    of_others = [row for row in rows if not row.startswith("u1,")]
    (folder / "walks.csv").write_text("\n".join([header, rows[0], *of_others]) + "\n")
    assert rows[0].startswith("u1,")
    told = release(run, "--plan", "plan.json", "--json", code=3)
    assert one_json(told)["people_without_an_answer"] == 1 and "1 of 3 people have no answer" in told.stderr
    asked = release(run, "--epsilon", 1, "--json", out="b", ledger="b.db")
    assert one_json(asked)["people_without_an_answer"] == 0


@pytest.mark.slow
def test_a_release_plans_nothing_by_itself_that_is_no_advice(folder, run, monkeypatch):
    """Named answers are made, with a warning."""
    options = ("--path-epsilon", 12, "--steps", 12, "--schedule", "planned")
    monkeypatch.setattr("dphmm.choose.planning.not_advised", lambda *_: ("it finds everybody",))
    refused = release(run, *options, code=1).stderr
    assert "no schedule that was tried is advised: it finds everybody; a smaller total" in refused
    assert not (folder / "released" / "released.parquet").exists() and not (folder / "ledger.db").exists()
    named = release(run, *options, "--epsilon", 6).stderr
    assert "warning: not advised: one answer leaves less than 1 in 20 doubt" in named
