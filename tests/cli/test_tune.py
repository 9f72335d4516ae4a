"""dphmm tune: the table, the recommended policy as a file that a release takes, every wrong argument in one line."""

from __future__ import annotations

import csv
import re
import shlex

import pytest

from dphmm.storage.models import load_model
from dphmm.storage.policies import load_policy

QUICK = ("--runs", 3, "--steps", 3)


def test_the_recommended_policy_is_one_that_a_release_takes(town, tmp_path, run):
    out = tmp_path / "p.json"
    tried = ("--radius", "1.5km", "--runs", 3, "--steps", 12)
    told = run("tune", town / "model.npz", "--target-dop", 4, "-o", out, *tried)
    assert "recommended" in told.stdout and "rule: " in told.stderr
    command = next(line for line in told.stderr.splitlines() if "release with" in line).split("release with ")[1]
    result = run("release", town / "walks.csv", "--model", town / "model.npz", *command.split(), "--dry-run")
    assert result.exit_code == 0 and "No limit is set" not in result.stderr
    assert command.endswith("--path-epsilon 24 --steps 12")
    assert "limit: the 12 answers of a person that were tried" in told.stderr


def test_what_is_no_advice_is_listed_and_nothing_is_written(town, tmp_path, run):
    out = tmp_path / "p.json"
    told = run("tune", town / "model.npz", "--target-dop", 2, "-o", out, "--epsilon", 5, *QUICK, code=1)
    rows = told.stdout.splitlines()[1:-2]
    assert rows and all("not advised: one answer leaves less than 1 in 20 doubt" in row for row in rows)
    assert "no setting tried reaches" in told.stderr and "not advised" in told.stderr and not out.exists()


def test_json_is_the_table_and_what_was_chosen(town, tmp_path, run, one_json):
    out, table = tmp_path / "p.json", tmp_path / "t.csv"
    arguments = ("--epsilon", 1, "--epsilon", "0.5", "--target-error", "5km", "--table", table, "-o", out)
    document = one_json(run("tune", town / "model.npz", *arguments, "--policy", town / "radius.json", "--json", *QUICK))
    names = [row["policy"] for row in document["settings"]]
    assert {"complete", "transition", "radius.json"} <= set(names)
    assert len(names) == 2 * 2 * len(set(names))
    assert document["unit"] == "m" and document["policy"] == str(out)
    assert document["recommended"] in document["settings"]
    with table.open() as file:
        assert len(list(csv.DictReader(file))) == len(names)
    chosen = load_policy(out, model=load_model(town / "model.npz"))
    assert chosen.kind == document["recommended"]["policy"].split()[0].removesuffix(".json")


def test_out_of_reach_is_said_and_nothing_is_written(town, tmp_path, run):
    out = tmp_path / "p.json"
    told = run("tune", town / "model.npz", "--target-error", "1m", "-o", out, "--epsilon", "0.1", *QUICK, code=1)
    assert "no setting tried reaches an error of 1 m; nearest, by the least factor, of the error at" in told.stderr
    assert not out.exists()


def test_the_nearest_has_the_smallest_error_of_the_column_that_it_is_chosen_by(town, run):
    """The upper ends of the intervals; of these few walks the smallest mean is another setting's."""
    tried = ("--epsilon", "0.1", "--epsilon", "0.12", "--epsilon", "0.14", *QUICK)
    told = run("tune", town / "model.npz", "--target-error", "1m", *tried, code=1)
    heading, *rows = told.stdout.splitlines()[:-2]
    middle, end = heading.index("of the estimate"), heading.index("at most")
    errors = [(float(row[end : end + 7]), float(row[middle : middle + 15])) for row in rows]
    named = re.search(r"error ([0-9.]+) m \(at most ([0-9.]+) at 95 %\)", told.stderr)
    assert (float(named[2]), float(named[1])) == min(errors)
    assert min(errors)[1] > min(mean for _, mean in errors)
    assert "at most: the upper end of the 95 % interval" in told.stdout.splitlines()[-1]


def test_without_targets_nothing_is_recommended(site, run):
    told = run("tune", site / "model.npz", *QUICK)
    assert "no targets" in told.stderr and "recommended" not in told.stdout


@pytest.mark.slow
def test_the_picture(town, tmp_path, run):
    pytest.importorskip("matplotlib")
    run("tune", town / "model.npz", "--figures", tmp_path / "f", "--epsilon", 1, *QUICK)
    assert (tmp_path / "f" / "trade-off.svg").stat().st_size > 1000
    assert (tmp_path / "f" / "trade-off.png").stat().st_size > 1000
    before = (tmp_path / "f" / "trade-off.svg").stat().st_mtime_ns
    again = run("tune", town / "model.npz", "--figures", tmp_path / "f", "--epsilon", 1, *QUICK, code=2)
    assert "trade-off.svg, which exists; expected another folder, or --force" in again.stderr
    assert (tmp_path / "f" / "trade-off.svg").stat().st_mtime_ns == before
    run("tune", town / "model.npz", "--figures", tmp_path / "f", "--epsilon", 1, "--force", *QUICK)
    assert (tmp_path / "f" / "trade-off.svg").stat().st_mtime_ns > before


def test_an_epsilon_given_twice_is_tried_once(site, run, one_json):
    more = ("--epsilon", "0.5", "--epsilon", "1", "--epsilon", "1.0", "--epsilon", "0.5", "--json", *QUICK)
    tried = [row["epsilon"] for row in one_json(run("tune", site / "model.npz", *more))["settings"]]
    assert tried[:2] == [0.5, 1.0] and set(tried[::2]) == {0.5} and set(tried[1::2]) == {1.0}


def test_the_release_is_told_of_every_choice(town, tmp_path, run):
    out = tmp_path / "my policy.json"
    more = ("--target-dop", 2, "-o", out, "--epsilon", 1, "--start", "at", *QUICK)
    told = run("tune", town / "model.npz", *more).stderr
    words = shlex.split(told.split("release with ")[1])
    assert words[:2] == ["--policy", str(out)] and " ".join(words).endswith("--start at")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--target-error", "500"), "--target-error: got 500; expected a unit"),
        (("--target-error", "-5m"), "--target-error"),
        (("--target-dop", "1"), "--target-dop: got 1; expected a whole number, at least 2"),
        (("--radius", "0m"), "--radius: got 0m; expected"),
        (("--epsilon", "0"), "--epsilon: got 0; expected a number greater than 0"),
        (("--mechanism", "laplace"), "--mechanism: got laplace; expected one of"),
        (("--constraint", "delta=2"), "--constraint delta"),
        (("--runs", "1"), "--runs: got 1; expected a whole number, at least 2"),
        (("--steps", "0"), "--steps: got 0; expected a whole number, at least 1"),
        (("--seed", "-1"), "--seed: got -1; expected a whole number, at least 0"),
        (("--policy", "missing.json"), "missing.json"),
        (("--table", "t.txt"), "--table: got t.txt; expected"),
        (("-o", "p.json"), "--target-error or --target-dop"),
    ],
)
def test_a_wrong_argument_is_one_line(town, run, arguments, told, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = run("tune", town / "model.npz", *arguments, code=2)
    assert result.stderr.count("\n") == 1
    assert told in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_stays(town, tmp_path, run):
    out = tmp_path / "p.json"
    out.write_text("mine")
    run("tune", town / "model.npz", "--target-dop", 2, "-o", out, *QUICK, code=2)
    run("tune", town / "model.npz", "--table", out.with_suffix(".csv"), *QUICK)
    run("tune", town / "model.npz", "--table", out.with_suffix(".csv"), *QUICK, code=2)
    assert out.read_text() == "mine"


def test_a_number_of_answer_units_elsewhere(site, run):
    told = run("tune", site / "model.npz", "--target-error", "1km", code=2)
    assert "--target-error: got 1km" in told.stderr
