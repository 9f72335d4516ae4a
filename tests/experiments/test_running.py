"""Experiments leave the same results however they are run: stopped and resumed, by one process or two, in any order."""

from __future__ import annotations

from dataclasses import replace

import pytest

import toy_experiment
from dphmm.errors import InvalidInput
from experiments.experiment import Settings, key_of, seed_of
from experiments.running import markdown_table, run, write_results


def test_results_are_the_same_when_stopped_and_resumed(tmp_path, monkeypatch):
    whole = run(toy_experiment.EXPERIMENT, Settings(), tmp_path / "whole")
    monkeypatch.setattr(toy_experiment, "STOP_AT", [3])
    with pytest.raises(KeyboardInterrupt):
        run(toy_experiment.EXPERIMENT, Settings(), tmp_path / "stopped")
    journal = tmp_path / "stopped" / "cells.jsonl"
    assert len(journal.read_text().splitlines()) == 2
    with journal.open("a") as file:
        file.write('{"cell": {"method": "a", "n"')  # what a crash leaves of a line
    monkeypatch.setattr(toy_experiment, "STOP_AT", [])
    seen = []
    again = run(
        toy_experiment.EXPERIMENT,
        Settings(),
        tmp_path / "stopped",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]
    assert again.rows.equals(whole.rows) and again.tables["means"].equals(whole.tables["means"])


@pytest.mark.slow
def test_two_processes_find_what_one_finds(tmp_path):
    one = run(toy_experiment.EXPERIMENT, Settings(seed=5), tmp_path / "one")
    two = run(toy_experiment.EXPERIMENT, Settings(seed=5), tmp_path / "two", jobs=2)
    assert two.rows.equals(one.rows)
    assert not run(toy_experiment.EXPERIMENT, Settings(seed=6), tmp_path / "other").rows.equals(one.rows)


def test_randomness_is_of_the_cell_and_the_seed_alone():
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    seeds = [seed_of(Settings(seed=s), name, {"n": n}) for s in (1, 2) for name in ("toy", "other") for n in (1, 2)]
    assert len({seed.entropy for seed in seeds}) == 8


@pytest.mark.parametrize("settings", [Settings(seed=2), Settings(quick=True)])
def test_other_settings_are_not_mixed_in(settings, tmp_path):
    run(toy_experiment.EXPERIMENT, Settings(), tmp_path)
    changed = "seed" if settings.seed == 2 else "quick"
    with pytest.raises(InvalidInput, match=f"holds results with another {changed}"):
        run(toy_experiment.EXPERIMENT, settings, tmp_path)
    with pytest.raises(InvalidInput, match="holds results with another experiment"):
        run(replace(toy_experiment.EXPERIMENT, name="other"), Settings(), tmp_path)


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds other files"):
        run(toy_experiment.EXPERIMENT, Settings(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_real_data_must_be_named(tmp_path):
    with pytest.raises(InvalidInput, match="--data: got nothing"):
        run(replace(toy_experiment.EXPERIMENT, needs_data=True), Settings(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_damaged_journal_is_named(tmp_path):
    run(toy_experiment.EXPERIMENT, Settings(), tmp_path)
    journal = tmp_path / "cells.jsonl"
    journal.write_text("nonsense\n" + journal.read_text())
    with pytest.raises(InvalidInput, match="line 1, which is no JSON object"):
        run(toy_experiment.EXPERIMENT, Settings(), tmp_path)


@pytest.mark.slow
def test_files_are_the_same_twice(tmp_path):
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        found = run(toy_experiment.EXPERIMENT, Settings(), tmp_path / f"run-{name}")
        results = replace(found, seconds=1.0 if name == "one" else 2000.0)
        paths = write_results(toy_experiment.EXPERIMENT, Settings(), results, tmp_path / name)
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


@pytest.mark.parametrize(("before", "word"), [(True, "with data"), (False, "without data")])
def test_data_before_and_now_are_told_in_words(tmp_path, before, word):
    run(toy_experiment.EXPERIMENT, Settings(data=tmp_path if before else None), tmp_path / "out")
    with pytest.raises(InvalidInput, match=f"which holds results {word}; expected a new folder, or"):
        run(toy_experiment.EXPERIMENT, Settings(data=None if before else tmp_path), tmp_path / "out")
