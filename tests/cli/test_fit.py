"""dphmm fit: a model file from the commands alone, and what it says about itself."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.storage.models import load_model

GRID = ("--grid", "1km", "--bbox", "10.0,50.0,10.056,50.036")


def test_the_model_knows_its_states_its_step_and_its_source(town):
    model = load_model(town / "model.npz")
    assert model.space.kind == "grid"
    assert model.step == 300
    provenance = model.provenance
    assert provenance["private"] is False
    assert provenance["n_users"] == 12
    assert provenance["source"] == "people.csv"
    assert provenance["source_sha256"] == hashlib.sha256((town / "people.csv").read_bytes()).hexdigest()


CASES = {"c1": "abc", "c2": "abc", "c3": "ac", "c4": "a"}


@pytest.mark.parametrize(("more", "initial", "start"), [
    ((), [1, 0, 0], "at"),
    (("--initial", "occupancy"), [4 / 9, 2 / 9, 3 / 9], "before"),
    (("--step", "1h"), [4 / 9, 2 / 9, 3 / 9], "before"),
    (("--step", "1h", "--initial", "first"), [1, 0, 0], "before"),
])  # fmt: skip
def test_without_a_clock_a_model_begins_at_first_rows(tmp_path, run, more, initial, start):
    rows = [(case, hour, name) for case, names in CASES.items() for hour, name in enumerate(names)]
    lines = [f"{case},2026-01-01T0{hour}:00:00Z,{name}\n" for case, hour, name in rows]
    if "--step" not in more:
        lines = [f"{case},{hour},{name}\n" for case, hour, name in rows]
    (tmp_path / "log.csv").write_text(f"user,{'t' if '--step' in more else 'step'},state\n" + "".join(lines))
    line = ("fit", tmp_path / "log.csv", "--state-column", "state", *more)
    run(*line, "-o", tmp_path / "m.npz")
    model = load_model(tmp_path / "m.npz")
    assert model.initial == pytest.approx(initial) and model.start == start
    # With privacy whoever has one row alone counts where first rows do, and the noise is made for that.
    (tmp_path / "names.csv").write_text("state\na\nb\nc\n")
    private = ("--epsilon", 1, "--max-length", 4, "--states-file", tmp_path / "names.csv", "--seed", 3)
    run(*line, *private, "-o", tmp_path / "p.npz")
    learned, given = load_model(tmp_path / "p.npz"), dict(zip(more[::2], more[1::2], strict=True))
    options = {"initial": given.get("--initial"), "step": 3600 if "--step" in given else None}
    counted = [["abc".index(name) for name in names] for names in CASES.values() if len(names) > 1 or initial[0] == 1]
    owners = range(len(counted))
    again = dphmm.MarkovModel.fit_private(
        counted, 3, 1, 4, owners=owners, space=learned.space, bits=dphmm.ReplayBits(3), **options
    )
    assert learned.digest == again.digest and learned.start == start
    table = pd.read_csv(tmp_path / "log.csv")
    public = {"epsilon": 1, "max_length": 4, "bits": dphmm.ReplayBits(3), **options}
    assert dphmm.storage.fit(table, learned.space, **public).digest == learned.digest


def test_the_summary_counts_and_warns(town, tmp_path, run, one_json):
    result = run("fit", town / "people.csv", "-o", tmp_path / "m.npz", *GRID, "--step", "5min", "--json")
    counted = one_json(result)
    assert counted["rows"] == 12 * 24
    assert counted["users"] == 12
    assert counted["transitions"] == 12 * 23
    assert counted["states"] + counted["states_not_visited"] == 25
    assert counted["private"] is False
    assert "without privacy" in result.stderr
    quiet = run("fit", town / "people.csv", "-o", tmp_path / "m.npz", *GRID, "--step", "5min", "--quiet", "--force")
    assert quiet.stdout == ""
    assert quiet.stderr.count("\n") == 1
    assert "without privacy" in quiet.stderr


def test_rows_outside_the_box_are_filtered_and_counted(town, tmp_path, run, one_json):
    box = ("--grid", "1km", "--bbox", "10.0,50.0,10.028,50.036")
    counted = one_json(run("fit", town / "people.csv", "-o", tmp_path / "m.npz", *box, "--json"))
    assert counted["dropped"]["outside"] > 0


def test_the_speed_limit_drops_glitches_and_can_be_lifted(tmp_path, run, one_json):
    rows = ["user,t,lat,lon"]
    rows += [f"u,2024-01-01T00:{m:02d}:00Z,50.00{m % 10},10.0{m % 3}" for m in range(0, 50, 5)]
    rows.append("u,2024-01-01T00:46:00Z,50.03,10.05")
    (tmp_path / "x.csv").write_text("\n".join(rows) + "\n")
    slow = ("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *GRID, "--json", "--force", "--max-speed")
    assert one_json(run(*slow, "150km/h"))["dropped"]["too_fast"] == 1
    assert one_json(run(*slow, "none"))["dropped"] == {}


def test_a_gap_of_two_steps_is_held_or_cut(tmp_path, run, one_json):
    minutes = (0, 5, 15, 20, 25)
    rows = [f"u,2024-01-01T00:{m:02d}:00Z,50.01,10.0{1 + i % 2}" for i, m in enumerate(minutes)]
    (tmp_path / "x.csv").write_text("user,t,lat,lon\n" + "\n".join(rows) + "\n")
    fit = ("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *GRID, "--json", "--force", "--step", "5min")
    assert one_json(run(*fit))["transitions"] == 3
    held = one_json(run(*fit, "--gap", "10min"))
    assert (held["transitions"], held["held"]) == (5, 1)
    run(*fit, "--gap", "1min", code=2)


def test_states_by_name_with_ordinal_answers(site):
    model = load_model(site / "model.npz")
    assert model.space.names == ("alpha", "beta", "delta", "gamma")
    assert model.space.answers[:, 0].tolist() == [0, 1, 2, 3]
    assert model.step is None


def test_states_by_name_with_a_table_of_answers(site, tmp_path, run, one_json):
    (tmp_path / "answers.csv").write_text("state,x,y\nalpha,0,1\nbeta,2,0.5\ngamma,-1,3\nunseen,9,9\n")
    result = run(
        "fit", site / "visits.csv", "-o", tmp_path / "m.npz", "--state-column", "state",
        "--answers", tmp_path / "answers.csv", "--json",
    )  # fmt: skip
    counted = one_json(result)
    assert counted["dropped"]["outside"] > 0
    assert counted["states_not_visited"] == 1
    space = load_model(tmp_path / "m.npz").space
    assert space.names == ("alpha", "beta", "gamma")
    np.testing.assert_allclose(space.answers, [[0, 1], [2, 0.5], [-1, 3]], atol=0.02)


def test_h3_cells_are_those_visited(town, tmp_path, run):
    pytest.importorskip("h3")
    run("fit", town / "people.csv", "-o", tmp_path / "m.npz", "--h3", "7", "--step", "5min", "--quiet")
    assert load_model(tmp_path / "m.npz").space.kind == "h3"


def test_smoothing_on_a_grid_joins_neighbouring_cells_only(town, tmp_path, run):
    run(
        "fit",
        town / "people.csv",
        "-o",
        tmp_path / "m.npz",
        *GRID,
        "--step",
        "5min",
        "--smoothing",
        "0.5",
        "-q",
    )
    model = load_model(tmp_path / "m.npz")
    i, j = model.transition.nonzero()
    assert np.abs(model.space.lattice[i] - model.space.lattice[j]).max() == 1
    assert model.n_transitions > load_model(town / "model.npz").n_transitions


def test_rows_that_cannot_be_read_are_counted_and_exit_3(tmp_path, run, one_json):
    lines = ["user,t,lat,lon", "a,2024-01-01T00:00:00Z,50.01,10.01", "a,2024-01-01T00:05:00Z,50.02,10.02"]
    lines += [
        "a,never,50.01,10.01",
        "a,2024-01-01T00:10:00Z,north,10.01",
        "a,2024-01-01T00:10:00Z,50.01,10.02",
    ]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    result = run("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *GRID, "--step", "5min", "--json", code=3)
    assert one_json(result)["rejected"] == {"invalid_place": 1, "invalid_time": 1}
    assert (tmp_path / "m.npz").exists()


def test_a_model_is_replaced_only_by_force(site, tmp_path, run):
    out = tmp_path / "m.npz"
    out.write_bytes(b"mine")
    arguments = ("fit", site / "visits.csv", "-o", out, "--state-column", "state")
    assert "--force" in run(*arguments, code=2).stderr
    assert out.read_bytes() == b"mine"
    run(*arguments, "--force")
    assert load_model(out).n_states == 4


def test_the_order_of_ordinal_answers_is_told(site, tmp_path, run):
    ordinal = ("--state-column", "state", "--answers", "ordinal")
    result = run("fit", site / "visits.csv", "-o", tmp_path / "m.npz", *ordinal)
    assert "answers in the order of the names: 0 alpha, 1 beta, 2 delta, 3 gamma\n" in result.stderr
    (tmp_path / "x.csv").write_text("user,state\n" + "".join(f"a,{n}\n" for n in (10, 9, 2.5, 100, 10)))
    result = run("fit", tmp_path / "x.csv", "-o", tmp_path / "n.npz", "--state-column", "state")
    assert "0 2.5, 1 9, 2 10, 3 100" in result.stderr


@pytest.mark.parametrize("options", [("--state-column", "state"), ("--states", "2", "--symbols", "state")])
@pytest.mark.parametrize("private", [False, True])
def test_file_order_is_told(site, tmp_path, run, options, private):
    """With a column that says the order nothing is warned of; the privacy of a fit does not hide the warning."""
    more = ()
    if private:
        name = "symbol" if "--symbols" in options else "state"
        (tmp_path / "names.csv").write_text(f"{name}\nalpha\nbeta\ngamma\ndelta\n")
        listed = "--symbols-file" if "--symbols" in options else "--states-file"
        more = (listed, tmp_path / "names.csv", "--epsilon", "1", "--max-length", "9")
    told = "rows are taken in file order"
    fit = ("-o", tmp_path / "m.npz", *options, *more, "--force", "-q")
    assert told in run("fit", site / "visits.csv", *fit).stderr
    rows = (site / "visits.csv").read_text().splitlines()
    (tmp_path / "x.csv").write_text(
        "\n".join(["user,state,step", *(f"{r},{k}" for k, r in enumerate(rows[1:]))]) + "\n"
    )
    assert told not in run("fit", tmp_path / "x.csv", *fit).stderr
