"""Experiments leave the same results however they are run: stopped and resumed, by one process or two, in any order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from dphmm.cli.app import app
from dphmm.errors import InvalidInput
from dphmm.evaluation import experiments
from dphmm.evaluation.experiment import Settings, key_of, seed_of, spread
from dphmm.evaluation.running import run
from dphmm.report.results import markdown_table, write_results
from evaluation import toy


def test_results_are_the_same_when_stopped_and_resumed(tmp_path, monkeypatch):
    whole = run(toy.EXPERIMENT, Settings(), tmp_path / "whole")
    monkeypatch.setattr(toy, "STOP_AT", [3])
    with pytest.raises(KeyboardInterrupt):
        run(toy.EXPERIMENT, Settings(), tmp_path / "stopped")
    journal = tmp_path / "stopped" / "cells.jsonl"
    assert len(journal.read_text().splitlines()) == 2
    with journal.open("a") as file:
        file.write('{"cell": {"method": "a", "n"')  # what a crash leaves of a line
    monkeypatch.setattr(toy, "STOP_AT", [])
    seen = []
    again = run(
        toy.EXPERIMENT, Settings(), tmp_path / "stopped", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]
    assert again.rows.equals(whole.rows) and again.tables["means"].equals(whole.tables["means"])


def test_two_processes_find_what_one_finds(tmp_path):
    one = run(toy.EXPERIMENT, Settings(seed=5), tmp_path / "one")
    two = run(toy.EXPERIMENT, Settings(seed=5), tmp_path / "two", jobs=2)
    assert two.rows.equals(one.rows)
    assert not run(toy.EXPERIMENT, Settings(seed=6), tmp_path / "other").rows.equals(one.rows)


def test_randomness_is_of_the_cell_and_the_seed_alone():
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    seeds = [seed_of(Settings(seed=s), name, {"n": n}) for s in (1, 2) for name in ("toy", "other") for n in (1, 2)]
    assert len({seed.entropy for seed in seeds}) == 8


@pytest.mark.parametrize("settings", [Settings(seed=2), Settings(quick=True)])
def test_other_settings_are_not_mixed_in(settings, tmp_path):
    run(toy.EXPERIMENT, Settings(), tmp_path)
    changed = "seed" if settings.seed == 2 else "quick"
    with pytest.raises(InvalidInput, match=f"holds results with another {changed}"):
        run(toy.EXPERIMENT, settings, tmp_path)
    with pytest.raises(InvalidInput, match="holds results with another experiment"):
        run(replace(toy.EXPERIMENT, name="other"), Settings(), tmp_path)


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds other files"):
        run(toy.EXPERIMENT, Settings(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_real_data_must_be_named(tmp_path):
    with pytest.raises(InvalidInput, match="--data: got nothing"):
        run(replace(toy.EXPERIMENT, needs_data=True), Settings(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_damaged_journal_is_named(tmp_path):
    run(toy.EXPERIMENT, Settings(), tmp_path)
    journal = tmp_path / "cells.jsonl"
    journal.write_text("nonsense\n" + journal.read_text())
    with pytest.raises(InvalidInput, match="line 1, which is no JSON object"):
        run(toy.EXPERIMENT, Settings(), tmp_path)


def test_files_are_the_same_twice(tmp_path):
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        found = run(toy.EXPERIMENT, Settings(), tmp_path / f"run-{name}")
        results = replace(found, seconds=1.0 if name == "one" else 2000.0)
        paths = write_results(toy.EXPERIMENT, Settings(), results, tmp_path / name)
        written.append({path.name: path.read_bytes() for path in paths})
    assert written[0] == written[1]
    assert set(written[0]) == {f"{stem}.{kind}" for stem in ("rows", "means") for kind in ("parquet", "csv")} | {
        "means.svg",
        "means.png",
        "results.md",
    }
    assert b"| a | 1 |" in written[0]["results.md"] and b"<svg" in written[0]["means.svg"]


def test_a_long_table_is_cut_in_the_page_only():
    import pandas as pd

    text = markdown_table(pd.DataFrame({"x": range(100), "y": [0.123456] * 100}))
    assert text.count("0.1235") == 60 and text.endswith("40 more lines are in the table's files.")


def test_the_interval_covers_the_mean():
    """Level 95 %: of 400 samples of 40, 356 to 396 intervals must cover (binomial, 1e-4 on each side, and a little less
    than 95 % because percentile intervals of 40 are short)."""
    import numpy as np

    generator = np.random.default_rng(3)
    covered = sum(low <= 1.0 <= high for _, low, high in (spread(generator.normal(1, 2, 40)) for _ in range(400)))
    assert 356 <= covered <= 396


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setitem(experiments._MODULES, "toy", "toy")
    monkeypatch.setattr(experiments, "NAMES", ("toy",))
    monkeypatch.setattr(experiments, "import_module", lambda name: toy)


def test_the_command_runs_resumes_and_lists(tmp_path, toys, monkeypatch):
    monkeypatch.delenv("DPHMM_DATA", raising=False)
    assert CliRunner().invoke(app, ["experiment"]).output == "toy  A toy\n"
    monkeypatch.setattr(toy, "STOP_AT", [2])
    folder = tmp_path / "out"
    stopped = CliRunner().invoke(app, ["experiment", "toy", "-o", str(folder)])
    assert stopped.exit_code == 130 and "the same command goes on" in stopped.output
    monkeypatch.setattr(toy, "STOP_AT", [])
    done = CliRunner().invoke(app, ["experiment", "toy", "-o", str(folder)])
    assert done.exit_code == 0 and done.stdout.strip() == str(folder / "results.md")
    assert "note: 24 rows measured in 0 s" in done.stderr
    quiet = CliRunner().invoke(app, ["experiment", "toy", "-o", str(folder), "--quiet"])
    assert quiet.stderr == ""
    assert (folder / "means.svg").exists()


def test_what_is_not_in_the_folder_of_data_is_warned_of(tmp_path, toys, monkeypatch):
    import pandas as pd

    skipped = pd.DataFrame({"data": ["places", "pages"], "reason": ["no a.csv in the folder of data", "no b.csv"]})

    def tables(rows):
        return {**toy.tables(rows), "skipped": skipped}

    monkeypatch.delenv("DPHMM_DATA", raising=False)
    monkeypatch.setattr(toy, "EXPERIMENT", replace(toy.EXPERIMENT, tables=tables))
    (tmp_path / "data").mkdir()
    words = ["experiment", "toy", "--quick", "-q", "--data", str(tmp_path / "data")]
    warned = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "a")])
    assert warned.stderr == "warning: left out: places (no a.csv in the folder of data); pages (no b.csv)\n"
    assert warned.stdout.count("\n") == 1
    assert CliRunner().invoke(app, [*words[:-2], "-o", str(tmp_path / "b")]).stderr == ""
    skipped = skipped.head(0)
    assert CliRunner().invoke(app, [*words, "-o", str(tmp_path / "c")]).stderr == ""


@pytest.mark.parametrize(("before", "word"), [(True, "with data"), (False, "without data")])
def test_data_before_and_now_are_told_in_words(tmp_path, before, word):
    run(toy.EXPERIMENT, Settings(data=tmp_path if before else None), tmp_path / "out")
    with pytest.raises(InvalidInput, match=f"which holds results {word}; expected a new folder, or"):
        run(toy.EXPERIMENT, Settings(data=None if before else tmp_path), tmp_path / "out")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none"], "NAME: got 'none'; expected one of toy"),
        (["toy"], "-o: got nothing; expected a folder for the results"),
        (["-o", "x"], "NAME: got nothing; expected one of toy; without -o they are listed"),
        (["toy", "-o", "x", "--jobs", "0"], "--jobs: got 0"),
        (["toy", "-o", "x", "--data", "no such folder"], "--data: got no such folder"),
    ],
)
def test_bad_input_is_one_line(words, message, toys):
    found = CliRunner().invoke(app, ["experiment", *words])
    assert found.exit_code == 2 and message in found.output and found.output.count("\n") == 1
