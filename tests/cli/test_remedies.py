"""Messages name both sides, ranges of what may be given, and a remedy that works."""

from __future__ import annotations

import re
import shutil
from time import sleep

import pytest
from click.testing import CliRunner

from commands import set_in
from dphmm.cli import console as console_module
from dphmm.cli.app import COMMANDS, app
from dphmm.cli.console import Console
from dphmm.storage.models import load_model

HEADER = "user,t,lat,lon\n"
GRID = ("--grid", "1km", "--bbox", "10.0,50.0,10.056,50.036", "--step", "5min")


@pytest.mark.parametrize("command", ["fit", "release", "import"])
def test_a_table_without_rows_is_called_so(town, tmp_path, run, release_of, command):
    (tmp_path / "empty.csv").write_text(HEADER)
    words = {
        "fit": ("fit", tmp_path / "empty.csv", "-o", tmp_path / "m.npz", *GRID),
        "import": ("import", "csv", tmp_path / "empty.csv", "-o", tmp_path / "t.csv"),
        "release": release_of(town, tmp_path, tmp_path / "empty.csv"),
    }[command]
    told = run(*words, code=2).stderr
    assert told.endswith(
        "empty.csv: got 0 rows; expected at least one row with its columns, below the header if there is one\n"
    )


@pytest.mark.parametrize("kept", [0, 1])
def test_the_ranges_of_places_are_said(tmp_path, run, kept):
    rows = ["a,2024-05-06T08:00:00Z,50.01,10.01\n"] * kept + ["a,2024-05-06T08:05:00Z,95,10\n"]
    (tmp_path / "t.csv").write_text(HEADER + "".join(rows))
    told = run("import", "csv", tmp_path / "t.csv", "-o", tmp_path / "o.csv", code=3 if kept else 2).stderr
    assert "invalid_place (not lat -90..90, lon -180..180 or 0..360)" in told


@pytest.mark.parametrize("extra", [(), ("--all-cells",), ("--all-cells", "--smoothing", "1")])
def test_states_without_a_counted_move_are_explained(tmp_path, run, extra):
    rows = [f"a,2024-05-06T08:{5 * i:02d}:00Z,50.005,{10.005 + 0.014 * i}\n" for i in range(3)]
    (tmp_path / "t.csv").write_text(HEADER + "".join(rows))
    said = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.npz", *GRID, *extra).stderr
    line = next(line for line in said.splitlines() if "never left" in line)
    assert "no move from there to anywhere was counted" in line
    smoothed = "--smoothing" in extra
    assert ("whoever is there stays for ever; remedy: --smoothing 1" in line) is not smoothed
    assert ("all their moves are from smoothing" in line) is smoothed
    # The remedy removes what the line is about.
    assert ("absorbing" in " ".join(load_model(tmp_path / "m.npz").notes)) is not smoothed


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("demo", "--people", "0"), "error: --people: got 0;"),
        (("demo", "--days", "0"), "error: --days: got 0;"),
        (("import", "geolife", "/nope", "-o", "x.parquet"), "error: SRC: got /nope;"),
        (("import", "csv", "/nope.csv", "-o", "x.parquet"), "error: SRC: got /nope.csv;"),
    ],
)
def test_errors_name_what_was_typed(tmp_path, monkeypatch, run, words, begins):
    monkeypatch.chdir(tmp_path)
    assert run(*words, code=2).stderr.startswith(begins)


POLICY, MODEL = "a policy, as dphmm policy writes it", "a model, as dphmm fit or dphmm model writes it"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"policy": "model.npz"}, f"--policy: got model.npz, an archive such as a model; expected {POLICY}"),
        ({"policy": "actp.json"}, f"--policy: got actp.json; expected an existing file: {POLICY}"),
        ({"policy": "broken.json"}, "--policy broken.json: got text that is not valid JSON at line 1 column 7; "
         f"expected a JSON document: {POLICY}"),
        ({"model": "nope.npz"}, f"--model: got nope.npz; expected an existing model file: {MODEL}"),
        ({"model": "broken.json"}, "--model broken.json: got a file that cannot be read as a model; "
         "expected a model file written by dphmm fit"),
        ({"model": "twice.json", "policy": "twice.json"}, "--model or --policy twice.json: got a file that cannot be "
         "read as a model; expected a model file written by dphmm fit"),
    ],
)  # fmt: skip
def test_an_error_of_a_file_names_the_option_the_value_and_what_to_do(town, tmp_path, monkeypatch, run, given, told):
    monkeypatch.chdir(tmp_path)
    for path in (town / "model.npz", town / "radius.json", town / "walks.csv"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "broken.json").write_text('{"a": ')
    (tmp_path / "twice.json").write_text("{}")
    words = {"model": "model.npz", "policy": "radius.json", "epsilon": "1"} | given
    options = [word for name, value in words.items() for word in (f"--{name}", value)]
    for command in (("verify",), ("release", "walks.csv", "-o", "out")):
        assert run(*command, *options, code=2).stderr == f"error: {told}\n"


def test_an_error_of_the_truth_names_it_and_what_to_do(released, tmp_path, run):
    told = run("report", released / "released", "-o", tmp_path / "r.html", "--truth", "nope.csv", code=2).stderr
    assert told == (
        "error: --truth: got nope.csv; expected a file that exists (No such file or directory): "
        "the trajectories, as they were released\n"
    )


def test_a_folder_without_its_statement_is_told_how_to_get_it_back(released, tmp_path, run):
    shutil.copytree(released / "released", tmp_path / "bare")
    (tmp_path / "bare" / "released.csv.privacy.json").unlink()
    told = run("report", tmp_path / "bare", "-o", tmp_path / "r.html", code=2).stderr
    assert told == (
        "error: OUT: got released.csv without its privacy statement released.csv.privacy.json beside it; expected "
        "both: put the statement back beside the file, or write the folder again with dphmm release\n"
    )


def test_what_is_no_folder_of_a_release_is_told_what_would_be(released, tmp_path, run):
    shutil.copy(released / "released" / "released.csv", tmp_path / "alone.csv")
    for place, what in ((tmp_path / "none", "does not exist"), (tmp_path, "is no folder of a release")):
        told = run("report", place, code=2).stderr
        assert told.startswith("error: OUT: got ") and told.endswith(
            f", which {what}; expected the folder that dphmm release wrote (-o)\n"
        )
    assert "alone.csv, which is no folder of a release" in run("report", tmp_path / "alone.csv", code=2).stderr


def test_a_long_path_keeps_the_name_of_its_file(town, tmp_path, run):
    missing = tmp_path / ("x" * 100) / "actp.json"
    told = run("plan", "--details", town / "model.npz", "--policy", missing, code=2).stderr
    assert re.fullmatch(r"error: --policy: got /.*\.\.\..*/actp\.json; expected an existing file: .*\n", told)


def test_an_argument_and_a_command_of_a_group_are_named_too(town, tmp_path, run):
    told = run("plan", "--details", tmp_path / "n.npz", code=2).stderr
    assert told.startswith("error: MODEL: got ") and "n.npz; expected an existing model file" in told
    told = run("policy", "radius", tmp_path / "n.npz", "--radius", "1km", "-o", tmp_path / "p.json", code=2).stderr
    assert told.startswith("error: MODEL: got ") and told.endswith(f": {MODEL}\n")


def test_exposed_states_say_whether_they_are_joined(tmp_path, run):
    (tmp_path / "rows.csv").write_text("user,state\n" + "".join(f"a,{name}\n" for name in "abcabcacb"))
    (tmp_path / "answers.csv").write_text("state,answer\na,0\nb,1\nc,9\n")
    names = ("--state-column", "state", "--answers", tmp_path / "answers.csv", "--initial", "occupancy")
    run("fit", tmp_path / "rows.csv", "-o", tmp_path / "m.npz", *names)
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    run("policy", "edges", tmp_path / "m.npz", "--graph", tmp_path / "edges.csv", "-o", tmp_path / "p.json")
    files = (tmp_path / "m.npz", "--policy", tmp_path / "p.json")
    own = run("plan", "--details", *files)
    assert "each is answered as its nearest state (protection merge)" in own.stderr
    found = run(*set_in(("plan", "--details", *files), protection="nearest"))
    assert re.search(r"exposed states, before any is joined +1\n", found.stdout)
    assert (
        "remedy where it lowers the error, as dphmm plan --details says: dphmm policy ... --merge-lonely\n"
        in found.stderr
    )
    told = run("verify", "--model", *files, "--epsilon", 1).stdout
    assert "0 states are exposed after those without an edge were joined" in told


@pytest.mark.parametrize("command", ["release", "plan", "read", "policy", "verify"])
def test_an_interrupt_speaks_of_a_ledger_only_where_there_is_one(monkeypatch, command):
    import click

    @click.command(command)
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr("dphmm.cli.stopped", stopped, raising=False)
    monkeypatch.setitem(COMMANDS, command, ("dphmm.cli:stopped", ""))
    result = CliRunner().invoke(app, [command])
    assert result.exit_code == 130 and result.stderr.startswith("interrupted: ")
    assert ("ledger" in result.stderr) is (command == "release")
    assert ("writes no file" in result.stderr) is (command == "verify")


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console_module, "SECONDS_BETWEEN_LINES", 0.01)
    with Console().progress("release") as report:
        report(1, 4)
        said = ""
        while "release: 25 % after 0 s\n" not in said:
            sleep(0.01)
            said += capsys.readouterr().err
    capsys.readouterr()
    sleep(0.05)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_commands_name_their_stages(town, released, tmp_path, run, monkeypatch):
    named = []
    monkeypatch.setattr(console_module.Lines, "stage", lambda work, name: named.append(f"{work.label}: {name}"))
    run("report", released / "released", "-o", tmp_path / "r.html")
    stages = ["smoothing the answers", "finding what is expected", "drawing the page"]
    assert named == [f"report: {stage}" for stage in stages]
    named.clear()
    run("report", released / "released", "-o", tmp_path / "r.owner.html", "--truth", town / "walks.csv")
    assert named == [f"report: {stage}" for stage in (*stages[:2], "attacks with the truth", stages[2])]
    named.clear()
    run("check-release", released / "released")
    assert named == ["check-release: plans and rows"]
    named.clear()
    run("verify", "--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", "1", "--draws", "9")
    assert named == [f"verify: {name}" for name in ("plans of the steps", "draws of the sampler")]


@pytest.mark.parametrize("places", ["50.005,10.005", "50.030,10.050"])
def test_work_that_takes_long_is_told_ahead_from_steps_alone(town, tmp_path, run, monkeypatch, release_of, places):
    monkeypatch.setattr("dphmm.cli.release._LONG", 250)
    (tmp_path / "walks.csv").write_text(
        HEADER + f"a,2024-05-06T08:00:00Z,{places}\na,2024-05-07T08:00:00Z,{places}\na,2024-05-07T08:01:00Z,1,1\n"
    )
    words = release_of(town, tmp_path, tmp_path / "walks.csv")
    ahead = [line for line in run(*words).stderr.splitlines() if line.startswith("ahead: ")]
    assert ahead == [
        "ahead: 2 rows of 1 subjects, and 287 steps without a row to predict through; this can take minutes"
    ]
