"""dphmm plan: the table of totals, the file that a release takes, the picture, every wrong argument in one line."""

from __future__ import annotations

import json
import re

import pytest

import dphmm
from commands import set_in
from dphmm.choose.planning import World
from dphmm.cli.plan import _clock
from dphmm.cli.plan_search import lasting_words

QUICK = ("--people", 6)


def arguments(town, *more):
    return ("plan", town / "model.npz", "--policy", town / "radius.json", "--path-epsilon", 12, *more, *QUICK)


@pytest.fixture(scope="module")
def daily(town, run):
    """What is printed of twelve a day."""
    return run(*arguments(town, "--per", "1d"))


@pytest.mark.slow
def test_a_line_for_each_total_and_the_own_one_is_marked(daily):
    head, *rows, without, when, of, whose = daily.stdout.splitlines()
    assert re.sub(" +", " ", head) == "a day answers expected error who stays at one place, 1 day / 7 days"
    assert [row.split()[0] for row in rows] == ["3", "6", "12", "24"]
    assert [row.endswith("<- 12") for row in rows] == [False, False, True, False]
    assert all(re.search(r"\d+ x [\d.]+ +[\d,]+ m +[\d,]+ m / +[\d,]+ m", row) for row in rows)
    assert "without the file" in without and without.count(" m") == 2
    assert re.fullmatch(r"answers at ([\d:]+ )+UTC|answers at \d+ steps, .*", when)
    assert re.fullmatch("errors over a file of [0-9]+ whole days; who stays: from the first row on", of)
    assert whose == "all of people who move as the model says; nothing has been spent"
    assert max(map(len, daily.stdout.splitlines())) <= 88


@pytest.mark.slow
def test_json_and_the_file_have_the_same_plan(town, tmp_path, run, one_json):
    out = tmp_path / "plan.json"
    document = one_json(run(*arguments(town, "--per", "1d", "--schedule", "paced", "-o", out, "--json")))
    written = json.loads(out.read_text())
    assert len(written.pop("sha256")) == 64
    assert document["plan"] == written and document["output"] == str(out)
    assert [row["schedule"]["total"] for row in document["totals"]] == ["3", "6", "12", "24"]
    chosen = next(row for row in document["plan"]["ladder"] if row["chosen"])
    assert (document["expected_error"], document["online_error"]) == (chosen["smoothed"], chosen["online"])
    model = dphmm.storage.load_model(town / "model.npz")
    own = dphmm.choose.read_plan(out, model, dphmm.storage.load_policy(town / "radius.json", model=model), model.space)
    assert own.schedule.kind == "paced" and own.document() == document["plan"]
    assert own.schedule.promise == dphmm.SequencePromise(12, per="1d")


@pytest.mark.slow
def test_nothing_but_model_and_policy_is_read(town, tmp_path, run, daily):
    for name in ("model.npz", "radius.json"):
        (tmp_path / name).write_bytes((town / name).read_bytes())
    assert run(*arguments(tmp_path, "--per", "1d")).stdout == daily.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.npz", "radius.json"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lengths", "head", "place"),
    [
        (("--steps", 24), "in 24 steps", "who stays at one place, the sequence"),
        (("--window", 12), "any 12 steps", "who stays at one place, 1 window / 7 windows"),
        (("--per", 12), "per 12 steps", "who stays at one place, 1 block / 7 blocks"),
        (("--per", "12h"), "per 12h", "who stays at one place, 1 block / 7 blocks"),
    ],
)
def test_every_kind_of_promise_has_a_table(lengths, head, place, town, run):
    told = run(*arguments(town, *lengths)).stdout
    assert told.splitlines()[0].startswith(head) and place in told.splitlines()[0]


@pytest.mark.slow
def test_labels_have_answer_units_and_blocks(site, run):
    asked = (
        "plan", site / "model.npz", "--policy", site / "complete.json", "--path-epsilon", "4", "--per", 10,
        "--epsilon", 2, *QUICK,
    )  # fmt: skip
    told = run(*set_in(asked, constraint="delta=0.05")).stdout
    rows = told.splitlines()
    assert rows[1].split()[:4] == ["2", "1", "x", "2"] and rows[2].split()[:4] == ["4", "2", "x", "2"]
    # A quarter of the total has no room for one release of 2.
    assert len(rows) == 1 + 3 + 1 + 3 and " m" not in rows[1]


@pytest.mark.slow
def test_hours_and_pace_are_told(town, run):
    told = run(*arguments(town, "--per", "1d", "--hours", "7-21", "--zone", "+02:00"))
    # Whom answers by day find who stays all day is told, though none is given at night.
    assert "not asked" not in told.stdout
    assert all(re.search(r"[\d,]+ m +[\d,]+ m / [\d,]+ m", row) for row in told.stdout.splitlines()[1:5])
    paced = run(*arguments(town, "--per", "1d", "--hours", "7-21", "--schedule", "paced")).stdout
    assert "expected error  as it is released  who stays at one place" in paced
    assert "at most" in paced and "answers where the belief is wide enough from 7:00 to 21:00" in paced


@pytest.mark.slow
def test_the_ladder_is_drawn(town, tmp_path, run):
    picture = tmp_path / "ladder.svg"
    run(*arguments(town, "--steps", 24, "--plot", picture))
    first = picture.read_bytes()
    run(*arguments(town, "--steps", 24, "--plot", picture, "--force"))
    assert picture.read_bytes() == first and len(first) > 1000
    assert "chosen" in first.decode() and "off expected over" in first.decode()


BAD = {
    "no length": ((), "--path-epsilon: got nothing with it"),
    "two lengths": (("--steps", 12, "--per", "1d"), "--path-epsilon: got --steps and --per with it"),
    "a zone alone": (("--steps", 12, "--zone", "+01:00"), "--zone: got +01:00; expected --per"),
    "a total that is none": (("--steps", 12, "--path-epsilon", 0), "--path-epsilon: got 0"),
    "a total too large": (("--steps", 12, "--path-epsilon", 5000), "--path-epsilon: got 5000"),
    "an epsilon above the total": (("--per", "1d", "--epsilon", 13), "--epsilon: got 13; expected at most 12"),
    "hours without a clock": (("--steps", 12, "--hours", "7-21"), "--hours: got 7-21; expected blocks of whole days"),
    "hours that are none": (("--per", "1d", "--hours", "noon"), "--hours: got noon"),
    "a block of no whole steps": (("--per", "7min"), "--per: got 7min"),
    "a window too long": (("--window", 10**7), "--window: got 10000000"),
    "too much to simulate": (("--window", 10**6), "--window: got 2000000 simulated steps"),
    "one person": (("--steps", 12, "--people", 1), "--people: got 1"),
    "another policy": (("--steps", 12, "--policy", "nothing.json"), "nothing.json"),
    "a picture of another kind": (("--steps", 12, "--plot", "ladder.pdf"), "--plot: got ladder.pdf"),
    "an output in no folder": (("--steps", 12, "-o", "nowhere/plan.json"), "-o"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name, town, run):
    more, told = BAD[name]
    result = run(
        "plan", town / "model.npz", "--policy", town / "radius.json", "--path-epsilon", 12, *QUICK, *more, code=2
    )
    assert result.stdout == "" and result.stderr.count("\n") == 1 and told in result.stderr


def test_outputs_are_not_replaced_unasked(town, tmp_path, run):
    for option, name in (("-o", "plan.json"), ("--plot", "ladder.svg")):
        (tmp_path / name).write_text("old")
        result = run(*arguments(town, "--steps", 12, option, tmp_path / name), code=2)
        assert "--force" in result.stderr and (tmp_path / name).read_text() == "old"
    result = run(*arguments(town, "--steps", 12, "-o", town / "radius.json", "--force"), code=2)
    assert "another file than the input" in result.stderr


def test_interrupted_it_keeps_what_is_finished(town, tmp_path, run, monkeypatch):
    """Ctrl-C during the second total: the first one is printed and written, and the rest is named."""
    plans = World.plans

    def stopped(self, totals, progress=None):
        yield from plans(self, totals[:1], progress)
        raise KeyboardInterrupt

    monkeypatch.setattr(World, "plans", stopped)
    out = tmp_path / "plan.json"
    result = run(*arguments(town, "--steps", 12, "--epsilon", 2, "-o", out), code=130)
    assert [line.split()[0] for line in result.stdout.splitlines()[1:3]] == ["12", "without"]
    left = "interrupted: what was finished is above; no plan for totals of 3, 6, 24; "
    assert result.stderr.splitlines()[-1] == f"{left}{out} is written without them"
    assert json.loads(out.read_text())["others"] == []
    monkeypatch.setattr(World, "plans", lambda *_: raised(KeyboardInterrupt()))
    result = run(*arguments(town, "--steps", 12, "-o", out, "--force"), code=130)
    assert result.stdout == "" and "interrupted: no plan was finished, and none is written" in result.stderr


def raised(error):
    raise error


@pytest.mark.slow
def test_a_reserve_is_told_as_what_is_left(town, tmp_path, run):
    out = tmp_path / "plan.json"
    told = run(*arguments(town, "--steps", 12, "--reserve", "0.25", "--epsilon", 3, "-o", out)).stdout
    assert "left for later questions: 3 of 12 in 12 steps\n" in told and "3 x 3" in told
    assert json.loads(out.read_text())["schedule"]["total"] == "12"
    assert "left for" not in run(*arguments(town, "--steps", 12, "--epsilon", 3)).stdout


@pytest.mark.slow
def test_what_takes_long_is_forecast(town, run, monkeypatch):
    result = run(*arguments(town, "--steps", 12, "--epsilon", 3))
    assert "about" not in result.stderr
    monkeypatch.setattr(World, "forecast", lambda *_: 43.0)
    result = run(*arguments(town, "--steps", 12, "--epsilon", 3))
    line = r"about 40 s; [0-9,]+ cells with [0-9]+ moves each: dphmm model grid --cell [0-9]+k?m would take [0-9]+ s\n"
    assert re.search(line, result.stderr)
    assert [lasting_words(seconds) for seconds in (0.2, 3.4, 43, 130)] == ["less than 1 s", "3 s", "40 s", "2 min"]


def test_numbers_for_people():
    assert [_clock(seconds) for seconds in (0, 7200, 86400 + 5400)] == ["0:00", "2:00", "day 2 1:30"]


def test_a_plan_that_is_no_advice_is_shown_and_written_by_name_alone(town, tmp_path, run, one_json):
    """Of two steps that share a total, answers of more than is advised err less."""
    out = tmp_path / "plan.json"
    plan = ("plan", town / "model.npz", "--policy", town / "radius.json", "--steps", 2, *QUICK)
    strong = run(*plan, "--path-epsilon", 12, "--epsilon", 6, "-o", out).stdout.splitlines()
    assert [row.split()[0] for row in strong[1:4]] == ["6", "12", "24"]
    assert all("  not advised: one answer leaves less than 1 in 20 doubt" in row for row in strong[1:4])
    assert "  <- 12  not advised" in strong[2]
    weak = one_json(run(*plan, "--path-epsilon", 12, "-o", out, "--force", "--json"))
    assert weak["plan"]["schedule"]["epsilon"] == "29/10" and weak["output"] == str(out)
    assert [row["not_advised"] for row in weak["totals"]] == [[], [], [], []]


@pytest.mark.slow
def test_where_no_plan_is_advised_nothing_is_written(tmp_path, run):
    model, policy, out = (tmp_path / name for name in ("m.npz", "p.json", "plan.json"))
    box = ("--bbox", "10.0,50.0,10.3,50.1", "--cell", "5km", "--step", "1h", "--max-speed", "6km/h", "--stay", "0.99")
    run("model", "grid", *box, "-o", model, "-q")
    run("policy", "radius", model, "--radius", "5.001km", "-o", policy, "-q")
    plan = ("plan", model, "--policy", policy, "--path-epsilon", 60, "--steps", 24, "-o", out, *QUICK)
    refused = run(*plan, code=1)
    assert "<- 60  not advised: it tells where somebody is, to the cell" in refused.stdout
    assert "no schedule that was tried is advised" in refused.stderr and not out.exists()
    run(*plan, "--epsilon", 2)
    assert out.exists()
