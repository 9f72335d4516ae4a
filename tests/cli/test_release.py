"""dphmm release: a file in, a folder out, with the rows and their statement, and everything in the ledger."""

from __future__ import annotations

import json
import shutil
import stat

import pyarrow.parquet as pq
import pytest

from commands import set_in
from dphmm.storage.ledger import open_ledger

OWNERS = "which may be published as it is; released.owner is for you alone"


def test_one_row_per_subject_and_step(town, tmp_path, run, release_of, rows_of, one_json):
    result = run(*release_of(town, tmp_path), "--json")
    told = one_json(result)
    assert (told["rows"], told["released"], told["subjects"]) == (36, 36, 3)
    assert told["largest_epsilon_sum"] == "12"
    rows = rows_of(tmp_path / "released" / "released.csv")
    assert [(row["user"], row["step"]) for row in rows] == [
        (user, str(step)) for user in ("u1", "u2", "u3") for step in range(1, 13)
    ]
    assert list(rows[0]) == [
        "user", "t", "step", "z_0", "z_1", "z_lat", "z_lon", "epsilon", "cost", "plan",
    ]  # fmt: skip
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.spent("u1").epsilon == 12
        stored = [entry.z for entry in ledger.entries("u1", "state")]
    assert [(float(r["z_0"]), float(r["z_1"])) for r in rows[:12]] == [
        (1000 * x + 500, 1000 * y + 500) for x, y in stored
    ]


def test_parquet_with_its_statement_beside_it(town, tmp_path, run, release_of):
    out = tmp_path / "released" / "released.parquet"
    result = run(*release_of(town, tmp_path), "--format", "parquet")
    assert result.stdout == ""
    table = pq.read_table(out)
    assert str(table.schema.field("t").type) == "timestamp[us, tz=UTC]"
    statement = json.loads((tmp_path / "released" / "released.parquet.privacy.json").read_text())
    assert statement["published"]["rows"] == len(table) == 36
    assert statement["file"]["name"] == "released.parquet"
    assert statement["randomness"] == {"replayable_rows": 0, "words": "system"}
    assert "secure" not in result.stderr


def test_pages_without_times(site, tmp_path, run, release_of, rows_of):
    run(*set_in(release_of(site, tmp_path, "visits.csv", "complete.json"), constraint="delta=0.01"))
    rows = rows_of(tmp_path / "released" / "released.csv")
    assert len(rows) == 90
    assert "t" not in rows[0]


def test_the_very_people_of_the_model_are_told_what_that_means(town, tmp_path, run, release_of, one_json):
    result = run(*release_of(town, tmp_path, rows="people.csv"), "--json")
    assert one_json(result)["model_people"] == "same"
    assert "the very people" in result.stderr
    others = tmp_path / "others"
    others.mkdir()
    result = run(*release_of(town, others), "--json", "--model-people", "others")
    assert one_json(result)["model_people"] == "others"
    assert "note: the model: Fitted without privacy on other people" in result.stderr
    assert "warning: the model" not in result.stderr
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    assert run(*release_of(town, quiet), "--quiet", "--model-people", "others").stderr == ""


def test_the_counts_are_in_a_file_for_the_owner_and_nowhere_else(town, tmp_path, run, release_of, one_json):
    far = "far,2024-05-06T08:00:00Z,-33.8,151.2\nfar,yesterday,1,1\n"
    (tmp_path / "walks.csv").write_text((town / "walks.csv").read_text() + far)
    asked = set_in(release_of(town, tmp_path, tmp_path / "walks.csv"), constraint="delta=0.3")
    result = run(*asked, "--json", code=3)
    path = tmp_path / "released.owner" / "counts.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    counts = json.loads(path.read_text())
    assert (counts["rows"], counts["rows_in_no_state"], counts["new_releases"]) == (37, 1, 37)
    assert counts["share_in_no_state"] == 1 / 37
    assert counts["rejected"] == {"invalid_time": 1}
    assert 0 < counts["drifted"] <= 37 and counts["share_drifted"] == counts["drifted"] / 37
    assert "never to be published" in counts["meaning"]
    assert one_json(result)["owner_counts"] == str(path)
    assert "drifted" not in result.stdout
    assert OWNERS in " ".join(result.stderr.split())
    assert f"{counts['drifted']} of" not in result.stderr and "1 of 37" not in result.stderr


def test_the_same_lines_name_the_folder_of_the_counts_whatever_they_are(town, tmp_path, run, release_of):
    lines = set()
    for name, place in (("inside", "50.01,10.01"), ("outside", "-33.8,151.2")):
        folder = tmp_path / name
        folder.mkdir()
        rows = f"u,2024-05-06T08:00:00Z,{place}\nv,2024-05-06T08:00:00Z,50.01,10.01\n"
        (folder / "walks.csv").write_text(f"user,t,lat,lon\n{rows}")
        arguments = release_of(town, folder, folder / "walks.csv")
        told = run(*arguments, "--model-people", "others").stderr
        assert OWNERS in " ".join(told.split())
        lines.add(told.replace(str(folder), ""))
        assert OWNERS in " ".join(run(*arguments).stderr.split())
    assert len(lines) == 1
    kept = [
        json.loads((tmp_path / name / "released.owner" / "counts.json").read_text()) for name in ("inside", "outside")
    ]
    # Of the second run, which drew nothing new.
    assert [(one["rows_in_no_state"], one["new_releases"], one["share_drifted"]) for one in kept] == [
        (0, 0, None),
        (1, 0, None),
    ]


@pytest.mark.parametrize("of", ["released", "released.owner"])
def test_what_is_written_replaces_no_input(town, tmp_path, run, release_of, of):
    (tmp_path / of).mkdir()
    own = shutil.copy(town / "walks.csv", tmp_path / of / {"released": "released.csv"}.get(of, "rejected.csv"))
    before = sorted(tmp_path.rglob("*"))
    assert run(*release_of(town, tmp_path, own), code=2).stderr.startswith("error: -o: got ")
    assert own.read_bytes() == (town / "walks.csv").read_bytes() and sorted(tmp_path.rglob("*")) == before


def test_a_dry_run_writes_no_counts(site, tmp_path, run):
    (tmp_path / "rows.csv").write_text("user,state\na,nowhere\na,elsewhere\na,alpha\n")
    result = run(
        "release", tmp_path / "rows.csv", "--model", site / "model.npz", "--policy", site / "complete.json",
        "--epsilon", "1", "--dry-run", "--no-check", "--json", "-o", tmp_path / "out",
    )  # fmt: skip
    assert "for you alone" not in result.stderr
    assert "nowhere" not in result.stderr + result.stdout
    assert "outside" not in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_rows_set_aside_are_listed_for_the_owner_and_exit_3(town, tmp_path, run, release_of, rows_of, one_json):
    bad = "u1,yesterday,50.01,10.01\n,2024-05-06T08:00:00Z,50.0,10.0\nu1,2024-05-06T09:00:00Z,99,10.0\n"
    (tmp_path / "walks.csv").write_text((town / "walks.csv").read_text() + bad)
    told = one_json(run(*release_of(town, tmp_path, tmp_path / "walks.csv"), "--json", code=3))
    assert told["rejected"] == {"invalid_place": 1, "invalid_time": 1, "missing_user": 1}
    assert told["released"] == 36
    listed = tmp_path / "released.owner" / "rejected.csv"
    # The header is line 1, as in an editor.
    assert [row["line"] for row in rows_of(listed)] == ["38", "39", "40"]
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    assert "yesterday" not in listed.read_text()


def test_steps_that_count_rows_are_no_time_bins(town, tmp_path, run, release_of):
    walks = (town / "walks.csv").read_text().splitlines()
    timeless = "\n".join(",".join(line.split(",")[i] for i in (0, 2, 3)) for line in walks)
    (tmp_path / "timeless.csv").write_text(timeless + "\n")
    run("import", "csv", tmp_path / "timeless.csv", "-o", tmp_path / "rows.csv")
    before = sorted(tmp_path.iterdir())
    arguments = release_of(town, tmp_path, tmp_path / "rows.csv")
    for more in ([], ["--dry-run"]):
        told = run(*arguments, *more, code=2).stderr
        assert told.startswith("error: t: got no times; expected times (dphmm import csv with --time-column)")
        assert told.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_step_that_is_no_time_bin_is_set_aside_and_holds_up_nobody(town, tmp_path, run, release_of, rows_of):
    """Steps as they are counted by hand, in a table of bins or beside times, once refused the release of all."""
    place = "50.01,10.01"
    bins = f"user,step,lat,lon\na,5716320,{place}\nx,0,{place}\na,5716322,{place}\nx,9007199254740992,{place}\n"
    times = (
        f"user,t,step,lat,lon\na,2024-05-05T08:00:00Z,5716320,{place}\nx,2024-05-05T08:00:00Z,7,{place}\n"
        f"a,2024-05-05T08:10:00Z,5716322,{place}\nx,2024-05-05T08:00:00Z,,{place}\n"
    )
    for name, table in (("bins", bins), ("times", times)):
        out = tmp_path / name
        out.mkdir()
        (out / "walks.csv").write_text(table)
        run(*release_of(town, out, out / "walks.csv"), code=3)
        rows = rows_of(out / "released" / "released.csv")
        assert [(row["user"], row["t"][:16]) for row in rows] == [("a", "2024-05-05 08:00"), ("a", "2024-05-05 08:10")]
        listed = rows_of(out / "released.owner" / "rejected.csv")
        assert listed == [{"line": line, "reason": "invalid_step"} for line in ("3", "5")]
        run("report", out / "released", "--truth", out / "walks.csv")


def test_two_rows_of_a_step_are_one_release_and_gaps_are_skipped(town, tmp_path, run, release_of, one_json):
    times = ("08:00:00", "08:01:00", "08:30:00")
    rows = "".join(f"solo,2024-05-06T{t}Z,50.01,10.01\n" for t in times)
    (tmp_path / "walks.csv").write_text("user,t,lat,lon\n" + rows)
    told = one_json(run(*release_of(town, tmp_path, tmp_path / "walks.csv"), "--json"))
    assert (told["rows"], told["released"], told["same_step"], told["skipped_steps"]) == (3, 2, 1, 5)


def test_a_dry_run_draws_spends_and_writes_nothing(town, tmp_path, run, release_of, one_json):
    told = one_json(run(*release_of(town, tmp_path), "--dry-run", "--json"))
    assert told["would_release"] == 36
    assert [plan["step"] for plan in told["plans"]] == [1, 2, 3]
    assert told["largest_epsilon_sum"] == "12"
    assert list(tmp_path.iterdir()) == []
    text = run(*set_in(release_of(town, tmp_path), constraint="delta=0.1"), "--dry-run").stdout
    assert "plan of step 1" in text
    assert "plan of step 2" not in text


def test_what_a_dry_run_is_given_is_checked_all_the_same(town, tmp_path, run, release_of):
    (tmp_path / "released").mkdir()
    (tmp_path / "released" / "released.csv").write_text("")
    run(*release_of(town, tmp_path), "--dry-run", code=2)
    assert (tmp_path / "released" / "released.csv").read_text() == ""


def test_public_warnings_come_before_the_release(town, tmp_path, run, release_of):
    run("policy", "radius", town / "model.npz", "-o", tmp_path / "tiny.json", "--radius", "10m")
    arguments = [str(tmp_path / "tiny.json") if "radius.json" in a else a for a in release_of(town, tmp_path)]
    planned = run(*arguments, "--dry-run").stderr
    released = run(*arguments, "--quiet").stderr
    for told in (planned, released):
        assert "states are exposed by the policy at the first step" in told


def test_a_cost_far_above_epsilon_is_told_of(tmp_path, run, release_of):
    rows = "".join(f"a,{state}\n" for state in (*range(30), *range(30)))
    (tmp_path / "rows.csv").write_text("user,state\n" + rows)
    model, policy = tmp_path / "model.npz", tmp_path / "policy.json"
    states = ("--state-column", "state", "--smoothing", "1", "--initial", "occupancy")
    run("fit", tmp_path / "rows.csv", "-o", model, *states)
    run("policy", "radius", model, "-o", policy, "--radius", "1")
    assert "the cost of the first step is 29 epsilon" in run("plan", "--details", model, "--policy", policy).stderr
    arguments = release_of(tmp_path, tmp_path, "rows.csv", "policy.json")
    assert "the cost of the first step is 29 epsilon" in run(*arguments).stderr
    run("policy", "radius", model, "-o", policy, "--radius", "2", "--force")
    assert "epsilon: states" not in run("plan", "--details", model, "--policy", policy).stderr


def test_a_ledger_in_use_is_exit_4(town, tmp_path, run, release_of):
    with open_ledger(tmp_path / "ledger.db") as ledger, ledger.lease("commands"):
        result = run(*release_of(town, tmp_path), "--quiet", code=4)
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "released" / "released.csv").exists()


@pytest.mark.parametrize(("name", "value"), [("mechanism", "staircase"), ("start", "at")])
def test_choices_reach_the_ledger(town, tmp_path, run, release_of, name, value):
    run(*set_in(release_of(town, tmp_path), **{name: value}))
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.header("u1", "state").options[name] == value


def minutes(*rows):
    """Rows (minute, page) of one person."""
    return "".join(["user,t,state\n", *(f"ann,2024-05-06T08:{minute:02d}:00Z,{page}\n" for minute, page in rows)])


@pytest.mark.parametrize("again", ["late", "newest first", "twice", "another state", "one alone"])
def test_a_stored_answer_is_of_its_time_whatever_is_delivered_later(site, tmp_path, run, release_of, rows_of, again):
    """The model has no time step: rows are no numbers that a late one could shift. M1 of twelve answers to one row."""
    (tmp_path / "rows.csv").write_text(minutes((1, "alpha"), (5, "beta")))
    arguments = release_of(site, tmp_path, tmp_path / "rows.csv", "complete.json")
    run(*arguments)
    first = {row["t"]: row["z_0"] for row in rows_of(tmp_path / "released" / "released.csv")}
    later = {
        "late": [(1, "alpha"), (3, "gamma"), (5, "beta"), (9, "beta")],
        "newest first": [(9, "beta"), (5, "beta"), (1, "alpha")],
        "twice": [(1, "alpha"), (1, "alpha"), (5, "beta"), (9, "beta"), (9, "gamma")],
        "another state": [(1, "gamma"), (5, "alpha"), (9, "beta")],
        "one alone": [(5, "beta"), (9, "beta")],
    }[again]
    (tmp_path / "rows.csv").write_text(minutes(*later))
    result = run(*arguments)
    rows = rows_of(tmp_path / "released" / "released.csv")
    assert [row["t"][14:16] for row in rows] == (["05", "09"] if again == "one alone" else ["01", "05", "09"])
    assert {row["t"]: row["z_0"] for row in rows if row["t"] in first}.items() <= first.items()
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.spent("ann").epsilon == 3
        assert [entry.t for entry in ledger.entries("ann", "state")] == [1, 2, 3]
    assert ("1 rows not released: later rows of their people came before them" in result.stderr) == (again == "late")
    run("check-release", tmp_path / "released")


def test_rows_without_times_are_continued_by_themselves_alone(site, tmp_path, run, release_of, rows_of):
    """An export with the newest row first is refused, and nothing is spent; so is one of another state."""
    (tmp_path / "rows.csv").write_text("user,state\nann,alpha\nann,beta\n")
    arguments = release_of(site, tmp_path, tmp_path / "rows.csv", "complete.json")
    run(*arguments)
    first, ledger = (tmp_path / "released" / "released.csv").read_bytes(), (tmp_path / "ledger.db").read_bytes()
    refusals = set()
    for pages in (["gamma", "beta", "alpha"], ["alpha", "gamma", "beta"], ["alpha"], ["beta", "beta"]):
        (tmp_path / "rows.csv").write_text("".join(["user,state\n", *(f"ann,{page}\n" for page in pages)]))
        refusals.add(run(*arguments, code=2).stderr)
        assert (tmp_path / "released" / "released.csv").read_bytes() == first
        assert (tmp_path / "ledger.db").read_bytes() == ledger
    assert len(refusals) == 1 and "rows without times that do not continue those in the ledger" in refusals.pop()
    (tmp_path / "rows.csv").write_text("user,state\nann,alpha\nann,beta\nann,gamma\n")
    run(*arguments)
    assert [row["step"] for row in rows_of(tmp_path / "released" / "released.csv")] == ["1", "2", "3"]
    assert (tmp_path / "released" / "released.csv").read_bytes().startswith(first)


def test_a_column_order_says_which_row_is_which(site, tmp_path, run, release_of, rows_of):
    """Whether or not it went through import, and in whatever order the rows stand."""
    for rows in ("ann,20,alpha\nann,40,beta\n", "ann,60,beta\nann,40,beta\nann,30,beta\nann,20,alpha\n"):
        (tmp_path / "log.csv").write_text(f"user,place,state\n{rows}")
        (tmp_path / "rows.csv").unlink(missing_ok=True)
        run("import", "csv", tmp_path / "log.csv", "-o", tmp_path / "rows.csv", "--order-column", "place")
        result = run(*release_of(site, tmp_path, tmp_path / "rows.csv", "complete.json"))
    assert [row["step"] for row in rows_of(tmp_path / "released" / "released.csv")] == ["1", "2", "3"]
    with open_ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.moments_of(["ann"])[0].tolist() == [20, 40, 60] and ledger.spent("ann").epsilon == 3
    assert "1 rows not released: later rows of their people came" in result.stderr
