"""Rows of one's own, and the sweep over steps: what is said of a setting is what was measured there.

Fails for a walk that is not of the file, for a city in place of rows that are too few, for a traceback, and for a claim
that is said to hold where intervals meet.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from experiments import __main__ as command
from experiments import experiment, hmm_privacy, steps
from experiments.experiment import Own, OwnSequences, Settings
from experiments.hmm_privacy import real
from experiments.walks import studies

BOX = (0.0, 0.0, 0.05, 0.05)
WORDS = ["--bbox", "0,0,0.05,0.05", "--grid", "500m", "--step", "1min", "--radius", "1km", "--length", "10"]


@pytest.fixture
def rows(tmp_path):
    """Five people who walk about for an hour, a row every 20 seconds."""
    random, path = np.random.default_rng(3), tmp_path / "people.csv"
    at = np.clip(np.cumsum(random.normal(0, 5e-4, (5, 180, 2)), axis=1) + 0.025, 0.001, 0.049)
    times = pd.date_range("2024-05-01T06:00Z", periods=180, freq="20s").strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [f"p{k},{t},{lat:.6f},{lon:.6f}" for k in range(5) for t, (lat, lon) in zip(times, at[k], strict=True)]
    path.write_text("user,t,lat,lon\n" + "\n".join(lines) + "\n")
    return path


def test_walks_are_of_the_file_and_models_of_the_others(rows):
    own = Own(rows, BOX, 500.0, 60, 1000.0, length=10)
    settings = Settings(own=own)
    assert studies.there(settings) == [own.name] and list(studies.left_out(settings)) == []
    study = studies.study(settings, own.name)
    assert [walk.owners for walk in study.walks] == [(k,) for k in range(5)]
    stepped, _ = dphmm.storage.load_trajectories(rows).trajectories.resample(60)
    grid = study.rules.grid
    cells = grid.locate(stepped.lat, stepped.lon)
    for k, walk in enumerate(study.walks):
        assert walk.cells.tolist() == cells[stepped.user == k][:11].tolist()
    assert studies.radii(own.name) == (1000.0, (500.0, 1000.0, 1500.0, 2000.0))
    assert study.fold(3, studies.OWN) is not study.fold(0)
    assert study.fold_of(3, studies.OWN) == 3 and study.fold_of(3, studies.OTHERS) == 1


@pytest.mark.parametrize("name", ["dphmm", "location-sets", "steps", "synthesis"])
def test_experiments_take_rows_of_ones_own(rows, name):
    settings = Settings(own=Own(rows, BOX, 500.0, 60, 1000.0, length=10), quick=True)
    cells = list(experiment(name).cells(settings))
    assert {cell["data"] for cell in cells} == {"people" if name == "steps" else settings.own.name}
    assert experiment(name).takes_own
    measured = experiment(name).measure(settings, cells[0], np.random.SeedSequence(1))
    assert measured and all(row.get("method") != "skipped" for row in measured)


def test_the_sweep_over_ones_own_steps_says_which_are_too_long(rows):
    """An hour has ten steps of up to five minutes: of 60 to 240 s, and not of 600."""
    settings = Settings(own=Own(rows, BOX, 500.0, 60, 1000.0, length=10))
    cells = steps.cells(settings)
    assert [cell["step"] for cell in cells[:-1]] == [60] * 9 + [120] * 9 + [240] * 9
    assert cells[-1]["part"] == "skipped" and "steps of 600 s" in cells[-1]["data"]
    measured = steps.measure(settings, cells[9], np.random.SeedSequence(1))
    assert {row["people"] for row in measured} == {row["walks"] for row in measured} == {5}


@pytest.mark.parametrize("name", ["dphmm", "location-sets", "steps", "synthesis"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--step", "12h"], "0 people with"),
        (["--bbox", "10,10,11,11"], "0 people with"),
        (["--trajectories", "absent.csv"], "absent.csv"),
    ],
)
def test_rows_that_are_too_few_are_one_line(rows, tmp_path, capsys, name, change, said):
    words = [name, "--quick", "--trajectories", str(rows), *WORDS, *change, "-o", str(tmp_path / "out")]
    assert command.main(words) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.replayed_words
def test_hidden_models_are_learned_from_sequences_of_ones_own(tmp_path, capsys):
    """The rows of a person are in the order of the file; whoever is held out is not learned from."""
    path, random = tmp_path / "visits.csv", np.random.default_rng(4)
    symbols = random.integers(0, 3, (10, 12))
    lines = [f"p{k},{'abc'[symbol]}" for step in range(12) for k, symbol in enumerate(symbols[:, step].tolist())]
    path.write_text("user,state\n" + "\n".join(lines) + "\n")
    settings = Settings(own=OwnSequences(path, symbols=3, states=2, length=8), quick=True)
    (cell,) = hmm_privacy.cells(settings)
    assert cell["data"] == "visits, 3 symbols, 2 hidden states, at most 8 steps"
    assert [one.tolist() for one in real.sequences_of(*real._source(settings, cell["data"]))] == symbols.tolist()
    measured = pd.DataFrame(real.measure(settings, cell, ("10",), np.random.SeedSequence(1)))
    assert np.isfinite(measured["loglik"]).all() and len(measured["method"].unique()) > 4
    words = ["hmm-privacy", "-o", str(tmp_path / "out"), "--trajectories", str(path)]
    for change, said in (
        (["--symbols", "3"], "--states: got nothing"),
        (["--symbols", "3", "--states", "1"], "--states: got 1"),
        (["--symbols", "2", "--states", "2"], "3 symbols"),
        (["--symbols", "3", "--states", "2", "--grid", "1km"], "--grid: got 1km; expected nothing"),
    ):
        assert command.main([*words, *change]) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1 and not (tmp_path / "out").exists()


def test_the_sweep_needs_its_data(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("DPHMM_DATA", raising=False)
    assert command.main(["steps", "-o", str(tmp_path / "out")]) == 2
    assert "this experiment is about real data" in capsys.readouterr().err
    (tmp_path / "raw").mkdir()
    (tmp_path / steps.RAW).touch()
    cells = steps.cells(Settings(data=tmp_path))
    assert [cell["part"] for cell in cells] == ["walks"] * 54 + ["skipped"]
    assert {(cell["step"], cell["fit"]) for cell in cells[:-1]} == {
        (s, f) for s in steps.STEPS[steps.RAW] for f in steps.FITS
    }


def test_a_claim_is_open_where_intervals_meet():
    place = {"part": "walks", "data": "rows", "when": "all steps", "people": 16, "walks": 8, "step": 5, "fit": "own"}
    measures = {
        "Gutil": {"degree": (20, 18, 22), "error": (1, 0.9, 1.1)},
        "Gtrs": {"degree": (40, 19, 60), "error": (3, 2, 4)},
        "DPLS": {"degree": (10, 8, 17), "error": (2, 1.0, 3)},
    }
    rows = pd.DataFrame([
        {**place, "method": name, **{f"{m}{end}": v for m, told in found.items()
                                     for end, v in zip(("", "_low", "_high"), told, strict=True)}}
        for name, found in measures.items()
    ])  # fmt: skip
    (line,) = steps.tables(rows)["claims"].to_dict("records")
    assert line["Gutil hides among more than DPLS"] == "yes"
    assert line["Gutil errs less than DPLS"] == "open"
    assert line["Gtrs hides among more than DPLS"] == "yes"
    assert (line["states of Gtrs"], line["low"], line["high"]) == (40, 19, 60)
    swapped = rows.assign(method=rows["method"].map({"Gutil": "DPLS", "DPLS": "Gutil", "Gtrs": "Gtrs"}))
    assert steps.tables(swapped)["claims"]["Gutil hides among more than DPLS"].item() == "no"


def test_titles_say_the_setting(tmp_path):
    import toy_experiment
    from experiments.running import _setting

    assert _setting(toy_experiment.EXPERIMENT, Settings(seed=3, quick=True)) == "Seed 3, a quick run"
    assert _setting(experiment("dphmm"), Settings()) == "The first cell of every walk is known; seed 1"
    with pytest.raises(InvalidInput):
        experiment("step")
