"""What `release` refuses from its options alone, before it reads a row or makes a ledger.

dphmm release -: JSON lines in, JSON lines out, each stored before it is printed.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys

import jsonschema
import pytest

from commands import going_on
from dphmm.release.stream import BadLine, parse_line
from dphmm.statement.parts import typed
from dphmm.statement.release import ReleaseStatement, statement_schema
from dphmm.storage.ledger import open_ledger


@pytest.mark.parametrize("name", ["released.csv", "x.parquet", "x.csv.gz", "X.CSV", "missing/out"])
def test_an_output_that_is_no_folder_is_refused_before_a_ledger_is_made(town, run, tmp_path, name):
    public = ("--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", 1)
    written = ("-o", tmp_path / name, "--ledger", tmp_path / "l.db")
    result = run("release", town / "walks.csv", *public, *written, code=2)
    assert result.stderr.startswith("error: -o: got ") and "folder" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def stream_of(release_of):
    def arguments(folder, out, policy="complete.json"):
        given = release_of(folder, out, policy=policy)
        given[1] = "-"
        at = given.index("-o")
        return given[:at] + given[at + 2 :]

    return arguments


def place(user, clock, lat=50.01, lon=10.01):
    return json.dumps({"user": user, "t": f"2024-05-06T{clock}Z", "lat": lat, "lon": lon}) + "\n"


def first(arguments):
    """A stream that answers the first line of a bin, at once."""
    return [*arguments, "--answer", "first"]


def started(*arguments, stderr=subprocess.PIPE):
    """A stream in a process of its own, whose lines are written and read as they come."""
    command = [sys.executable, "-m", "dphmm", *going_on([str(argument) for argument in arguments])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)


def answers(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def pages(*states, first=1):
    """Lines of a site's pages, as their sender counts them."""
    rows = [{"user": "v", "step": step, "state": state} for step, state in enumerate(states, first)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_every_number_is_a_step_without_a_model_step(site, tmp_path, run, stream_of):
    lines = pages("alpha", "beta", "nowhere", first=7)
    told = answers(run(*stream_of(site, tmp_path), input=lines))
    assert [row["step"] for row in told] == [1, 2, 3]
    assert list(told[0]) == ["user", "step", "z_0", "epsilon", "cost", "plan"]
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert [float(entry.z[0]) for entry in ledger.entries("v", "state")] == [row["z_0"] for row in told]
    # The same moments are the same answers, whatever the lines say; a line without one is refused.
    late = pages("beta", "beta", first=7) + pages("beta", first=6)
    again = run(*stream_of(site, tmp_path), input=late, code=3)
    assert answers(again) == told[:2] and "line 3: before_first_step" in again.stderr
    unmarked = run(*stream_of(site, tmp_path), input='{"user": "v", "state": "beta"}\n', code=2)
    assert "1 lines, none of which can be read" in unmarked.stderr


def test_bins_of_the_model_step_have_one_answer_each(town, tmp_path, run, stream_of):
    clocks = ("08:00:00", "08:01:00", "08:15:00", "08:04:59", "08:19:59")
    result = run(*stream_of(town, tmp_path), input="".join(place("u", clock) for clock in clocks))
    told = answers(result)
    # The line of a closed bin gets the stored answer.
    assert [(row["step"], row["t"][11:16]) for row in told] == [(1, "08:00"), (1, "08:00"), (4, "08:15")]
    assert told[0] == told[1]
    stored = "0 lines set aside, 1 lines given stored answers, 2 lines not answered: one answer per subject"
    assert f"2 releases of 1 subjects, {stored}" in result.stderr
    assert "time bins of 300 s: when a line of a later bin or the end of input closes a bin" in result.stderr
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert [entry.kind for entry in ledger.entries("u", "state")] == ["release", "skip", "release"]
        assert ledger.header("u", "state").options["answer"] == "last"


def test_under_first_the_first_line_of_a_bin_is_answered_at_once(town, tmp_path, run, stream_of):
    clocks = ("08:00:00", "08:01:00", "08:15:00", "08:02:00")
    result = run(*first(stream_of(town, tmp_path)), input="".join(place("u", clock) for clock in clocks))
    told = answers(result)
    assert "closes a bin" not in result.stderr and "not answered" not in result.stderr
    assert [row["step"] for row in told] == [1, 1, 4, 1]
    assert told[0] == told[1] == told[3]
    assert told[2]["t"] == "2024-05-06T08:15:00Z"
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert [entry.kind for entry in ledger.entries("u", "state")] == ["release", "skip", "release"]


@pytest.mark.parametrize(("rule", "reason"), [("last", "bin_has_closed"), ("first", "step_has_passed")])
def test_a_bin_that_has_passed_has_no_answer(town, tmp_path, run, stream_of, rule, reason):
    lines = place("u", "08:00:00") + place("u", "08:15:00") + place("u", "08:05:00") + place("u", "07:00:00")
    result = run(*stream_of(town, tmp_path), "--answer", rule, input=lines, code=3)
    assert len(answers(result)) == 2
    assert f"line 3: {reason}\nline 4: before_first_step\n" in result.stderr


def test_a_line_that_cannot_be_read_neither_closes_a_bin_nor_hides_a_line_of_it(town, tmp_path, run, stream_of):
    """As in a table, where such a row is set aside before the last one is looked for."""
    good = place("u", "08:00:00", 50.005) + place("v", "08:01:00")
    runs = []
    for bad in (place("u", "08:02:00", 91), place("v", "08:45:00", 91), place("u", "08:02:00", "x"), "{\n"):
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        result = run(*stream_of(town, folder), "--epsilon", "200", input=good + bad + place("v", "08:03:00"), code=3)
        runs.append([(row["user"], row["step"], row["plan"]) for row in answers(result)])
    assert all(found == runs[0] for found in runs) and [row[:2] for row in runs[0]] == [("u", 1), ("v", 1)]


@pytest.mark.parametrize("rule", ["last", "first"])
def test_the_statement_of_a_stream_names_its_rule(town, tmp_path, run, stream_of, rule):
    arguments = [*stream_of(town, tmp_path), "-o", tmp_path / "out", "--answer", rule]
    run(*arguments, input=place("u", "08:00:00"))
    statement = typed(stated(tmp_path / "out"), ReleaseStatement)
    assert statement.answer == rule and f"one moment the {rule} in time is answered" in statement.sentence("answer")


def test_restarted_it_goes_on_where_it_was_and_new_refuses_who_is_known(town, tmp_path, run, stream_of):
    first = answers(run(*stream_of(town, tmp_path), input=place("u", "08:00:00")))
    result = run(*stream_of(town, tmp_path), "--new", input=place("u", "08:05:00"), code=2)
    assert "--new" in result.stderr and result.stdout == ""
    again = place("u", "08:00:00") + place("u", "08:05:00")
    told = answers(run(*stream_of(town, tmp_path), input=again))
    assert told[0] == first[0]
    assert told[1]["step"] == 2


BAD = {
    "invalid_json": [
        "{",
        "[]",
        '{"user": "u", "user": "v"}',
        '{"user": "u", "lat": NaN}',
        "\x00",
        "1" * 70_000,
    ],
    "unknown_field": ['{"user": "u", "speed": 3}'],
    "missing_user": [
        '{"lat": 1}',
        '{"user": ""}',
        '{"user": null}',
        '{"user": "a\\u202eb"}',
        '{"user": true}',
    ],
    "invalid_time": [
        '{"user": "u", "t": "2024-05-06T08:00:00"}',
        '{"user": "u", "t": 12}',
        '{"user": "u", "t": "9999-01-01T00:00:00Z"}',
    ],
    "invalid_place": [
        '{"user": "u", "t": "2024-05-06T08:00:00Z"}',
        '{"user": "u", "lat": "1", "lon": 2}',
        '{"user": "u", "lat": 91, "lon": 2}',
        '{"user": "u", "lat": 1, "lon": 1e999}',
    ],
}


@pytest.mark.parametrize(("reason", "text"), [(reason, text) for reason in BAD for text in BAD[reason]])
def test_a_bad_line_has_a_reason(reason, text):
    with pytest.raises(BadLine) as told:
        parse_line(text.encode(), on_map=True)
    assert told.value.reason == reason


def test_bad_lines_are_answered_by_number_and_reason_and_lose_nothing_else(town, tmp_path, run, stream_of):
    lines = [place("u", "08:00:00"), "\n", '{"user": "u", "lat": 77.7777}\n', place("u", "08:05:00")]
    lines.append('{"user": "u", "lat": 50.01, "lon": 10.01}\n')
    lines.append("7" * 100_000 + "\n")
    lines.append(place("u", "08:10:00"))
    result = run(*stream_of(town, tmp_path), "--quiet", input="".join(lines), code=3)
    assert [row["step"] for row in answers(result)] == [1, 2, 3]
    told = [line for line in result.stderr.splitlines() if line.startswith("line")]
    assert told == ["line 3: invalid_place", "line 5: missing_time", "line 6: invalid_json"]
    assert "7777" not in result.stderr


@pytest.mark.slow
def test_a_line_is_stored_before_it_is_printed_even_if_killed(town, tmp_path, stream_of, run):
    process = started(*first(stream_of(town, tmp_path)), stderr=subprocess.DEVNULL)
    seen = []
    for clock in ("08:00:00", "08:05:00", "08:10:00"):
        process.stdin.write(place("u", clock))
        process.stdin.flush()
        seen.append(json.loads(process.stdout.readline()))
    process.kill()
    process.communicate()
    with open_ledger(tmp_path / "ledger.db") as ledger:
        stored = [[1000.0 * c + 500 for c in entry.z] for entry in ledger.entries("u", "state")]
    assert stored == [[row["z_0"], row["z_1"]] for row in seen]
    again = "".join(place("u", clock) for clock in ("08:00:00", "08:05:00", "08:10:00"))
    assert answers(run(*first(stream_of(town, tmp_path)), input=again)) == seen


@pytest.mark.parametrize("option", ["--dry-run", "--json"])
def test_what_a_stream_cannot_do_is_refused_before_a_line_is_read(town, tmp_path, run, stream_of, option):
    run(*stream_of(town, tmp_path), option, input=place("u", "08:00:00"), code=2)
    run(*stream_of(town, tmp_path), "-o", tmp_path / "out", option, input=place("u", "08:00:00"), code=2)
    assert list(tmp_path.iterdir()) == []


def test_a_stream_without_a_folder_needs_a_ledger(town, tmp_path, run, stream_of):
    arguments = stream_of(town, tmp_path)
    at = arguments.index("--ledger")
    del arguments[at : at + 2]
    result = run(*arguments, input=place("u", "08:00:00"), code=2)
    assert result.stderr.startswith("error: --ledger: got nothing") and "-o a folder" in result.stderr
    # Of a folder the ledger is the one beside it.
    run(*arguments, "-o", tmp_path / "out", input=place("u", "08:00:00"))
    assert (tmp_path / "ledger.db").exists() and (tmp_path / "out" / "released.jsonl").exists()


def test_an_output_file_is_not_for_streams(town, tmp_path, run, stream_of):
    result = run(*stream_of(town, tmp_path), "-o", tmp_path / "x.parquet", input="", code=2)
    assert result.stderr.startswith("error: -o: got ") and list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stream_that_is_stopped_has_answered_closed_bins_and_not_the_open_one(town, tmp_path, run, stream_of, number):
    arguments = stream_of(town, tmp_path)
    process = started(*arguments, "-o", tmp_path / "out")
    lines = [place("u", "08:00:00"), place("v", "08:01:00"), place("v", "08:06:00"), place("w", "08:07:00")]
    process.stdin.write("".join(lines))
    process.stdin.flush()
    seen = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [row["user"] for row in seen] == ["u", "v"]
    # All lines but the last have been read by now, and it is asked for the next.
    process.stdin.write(place("v", "08:00:00"))
    process.stdin.flush()
    assert json.loads(process.stdout.readline()) == seen[1]
    process.send_signal(number)
    out, told = process.communicate(timeout=60)
    assert process.returncode == 128 + number and out == ""
    assert "interrupted: 2 releases of this run are stored in ledger.db and paid for" in told
    assert "and lines of 2 subjects in the open time bin have no answer" in told
    assert "the same command continues after them, with the lines of that bin again" in told
    statement = stated(tmp_path / "out")
    assert statement["published"]["rows"] == 2
    # A ledger that was closed has no log beside it.
    assert sorted(path.name for path in tmp_path.iterdir() if "-wal" in path.name or "-shm" in path.name) == []
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert [len(ledger.entries(user, "state")) for user in "uvw"] == [1, 1, 0]
    again = answers(run(*arguments, input="".join(lines)))
    assert again[:2] == seen and [(row["user"], row["step"]) for row in again[2:]] == [("v", 2), ("w", 1)]


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_quietly_and_nothing_is_lost(town, tmp_path, run, stream_of):
    """What head does: every line that was read of is stored, and so is one that nobody read."""
    lines = "".join(place("u", f"08:{minute:02d}:00") for minute in range(0, 60, 5))
    process = started(*first(stream_of(town, tmp_path)), "--quiet", "--model-people", "others")
    process.stdin.write(lines[: lines.index("\n") + 1])
    process.stdin.flush()
    seen = json.loads(process.stdout.readline())
    process.stdout.close()
    process.stdin.write(lines[lines.index("\n") + 1 :])
    process.stdin.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    with open_ledger(tmp_path / "ledger.db") as ledger:
        stored = [entry.z for entry in ledger.entries("u", "state")]
    assert len(stored) == 2
    told = answers(run(*first(stream_of(town, tmp_path)), input=lines))
    assert told[0] == seen
    assert [tuple(round((row[z] - 500) / 1000) for z in ("z_0", "z_1")) for row in told[:2]] == stored


def stated(folder):
    """The statement of the lines in a folder, which are those that it is about."""
    statement = json.loads((folder / "released.jsonl.privacy.json").read_text())
    assert statement["file"]["sha256"] == hashlib.sha256((folder / "released.jsonl").read_bytes()).hexdigest()
    jsonschema.validate(statement, statement_schema())
    return statement


def test_the_statement_of_a_stream_is_about_the_lines_it_answered(town, tmp_path, run, stream_of):
    clocks = ("08:00:00", "08:01:00", "08:15:00")
    arguments = [*stream_of(town, tmp_path), "-o", tmp_path / "out"]
    result = run(*arguments, input=place("v", clocks[0]) + "".join(place("u", clock) for clock in clocks))
    statement = stated(tmp_path / "out")
    # Two lines of one time bin are one release.
    assert (statement["published"]["rows"], statement["published"]["subjects"]) == (3, 2)
    assert statement["totals"]["epsilon_sum"] == "2"
    assert statement["file"] == {"name": "-", "sha256": hashlib.sha256(result.stdout.encode()).hexdigest()}
    assert (tmp_path / "out" / "released.jsonl").read_text() == result.stdout
    assert "nothing is wrong" in run("check-release", tmp_path / "out").stdout
    again = run(*arguments, input=place("u", clocks[0]), code=2)
    assert "-o: got " in again.stderr and "a new folder" in again.stderr
    assert stated(tmp_path / "out") == statement


def test_a_stream_that_is_refused_half_way_has_a_statement_of_what_it_answered(town, tmp_path, run, stream_of):
    arguments = [*stream_of(town, tmp_path), "-o", tmp_path / "out", "--cap-epsilon", "1"]
    run(*arguments, input=place("u", "08:00:00") + place("u", "08:05:00"), code=1)
    assert stated(tmp_path / "out")["published"]["rows"] == 1


def test_the_counts_of_a_stream_are_beside_its_ledger(site, tmp_path, run, stream_of):
    result = run(*stream_of(site, tmp_path), input=pages("alpha", "nowhere") + "{\n", code=3)
    counts = json.loads((tmp_path / "ledger.db.owner.json").read_text())
    assert (tmp_path / "ledger.db.owner.json").stat().st_mode & 0o777 == 0o600
    assert (counts["rows"], counts["rows_in_no_state"], counts["new_releases"]) == (2, 1, 2)
    assert counts["rejected"] == {"invalid_json": 1}
    told = result.stderr.splitlines()
    assert told[-1] == "counts for you alone, never to be published: ledger.db.owner.json"
    assert "1 of 2" not in result.stderr and "drifted" not in result.stderr


def test_the_counts_of_a_stream_with_a_folder_are_the_owners(site, tmp_path, run, stream_of):
    result = run(*stream_of(site, tmp_path), "-o", tmp_path / "out", input=pages("alpha", "nowhere"))
    counts = tmp_path / "out.owner" / "counts.json"
    assert counts.stat().st_mode & 0o777 == 0o600 and (tmp_path / "out.owner").stat().st_mode & 0o777 == 0o700
    assert json.loads(counts.read_text())["rows_in_no_state"] == 1
    assert not (tmp_path / "ledger.db.owner.json").exists() and "1 of 2" not in result.stderr


def test_a_stream_that_is_refused_half_way_has_counts_too(site, tmp_path, run, stream_of):
    run(*stream_of(site, tmp_path), "--cap-epsilon", "1", input=pages("nowhere", "alpha"), code=1)
    counts = json.loads((tmp_path / "ledger.db.owner.json").read_text())
    assert (counts["rows"], counts["rows_in_no_state"], counts["drifted"]) == (1, 1, 1)


def test_a_row_without_a_place_has_a_step_and_no_answer_by_every_door(
    site, tmp_path, run, release_of, stream_of, rows_of, one_json
):
    """Of a raw file, of an imported one and line by line; what is released is checked and compared with the truth."""
    states = ["alpha", "beta", "gamma", "\a", "delta", "alpha", "beta", "gamma"]
    rows = [("v", f"2024-05-06T08:0{minute}:00Z", state) for minute, state in enumerate(states)]
    (tmp_path / "raw.csv").write_text("user,t,state\n" + "".join(",".join(row) + "\n" for row in rows))
    run("import", "csv", tmp_path / "raw.csv", "-o", tmp_path / "imported.csv", "--state-column", "state", code=3)
    for name, code, counts in (("raw", 3, (8, 7, 0, 1)), ("imported", 0, (8, 7, 1, 0))):
        (out := tmp_path / name).mkdir()
        told = one_json(run(*release_of(site, out, tmp_path / f"{name}.csv", "complete.json"), "--json", code=code))
        assert (told["rows"], told["released"], told["without_place"], len(told["rejected"])) == counts
        assert [int(row["step"]) for row in rows_of(out / "released" / "released.csv")] == [1, 2, 3, 5, 6, 7, 8]
        run("check-release", out / "released")
        run("report", out / "released", "--truth", tmp_path / "raw.csv")
    lines = "".join(json.dumps({"user": user, "t": t, "state": state}) + "\n" for user, t, state in rows)
    (out := tmp_path / "stream").mkdir()
    result = run(*stream_of(site, out), input=lines, code=3)
    assert [json.loads(line)["step"] for line in result.stdout.splitlines()] == [1, 2, 3, 5, 6, 7, 8]
    assert "line 4: missing_state" in result.stderr and "1 lines set aside" in result.stderr
