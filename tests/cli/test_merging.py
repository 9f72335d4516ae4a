"""--merge-lonely, --merge-rare and --all-cells on a town with a farm far outside, through every command.

Fails where a command forgets that a state is merged (another plan, another hash, a refused continuation), where an
error leaves the distance to the partner out, where a ledger takes releases of another space, where nothing is said of
what costs or something is said where nothing does, and where --merge-rare counts or chooses otherwise than it says.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from commands import edited, set_in, walk_rows, write_rows
from dphmm.errors import InvalidInput
from dphmm.markov.trajectories import fit_trajectories
from dphmm.statement.release import statement_schema
from dphmm.states.grid import Grid
from dphmm.states.trajectory import Trajectories
from dphmm.storage.models import load_model

BOX = "10.0,50.0,10.28,50.036"
FIT = ("--grid", "1km", "--bbox", BOX, "--step", "5min")
HEADER = ["user", "t", "lat", "lon"]


def farm_rows(user, steps):
    """On a farm 15 km east of the town, with a walk to the town at both ends."""
    places = [10.048, *[10.25] * (steps - 2), 10.048]
    return [[user, f"2024-05-06T08:{5 * k:02d}:00Z", "50.0180", f"{lon:.6f}"] for k, lon in enumerate(places)]


@pytest.fixture(scope="module")
def farm(tmp_path_factory, run):
    """people.csv, walks.csv, model.npz, joined.json and merged.json; only the farm has no neighbour."""
    folder = tmp_path_factory.mktemp("farm")
    people = walk_rows(tuple(f"p{i}" for i in range(12)), seed=3)
    write_rows(folder / "people.csv", HEADER, people + farm_rows("f", 8))
    write_rows(folder / "walks.csv", HEADER, walk_rows() + farm_rows("g", 8))
    run("fit", folder / "people.csv", "-o", folder / "model.npz", *FIT, "--max-speed", "none")
    run("policy", "radius", folder / "model.npz", "-o", folder / "joined.json", "--radius", "1.5km")
    run("policy", "radius", folder / "model.npz", "-o", folder / "merged.json", "--radius", "1.5km", "--merge-lonely")
    return folder


def test_policy_names_the_cost_and_the_remedy(farm, run, one_json, tmp_path):
    again = ("policy", "radius", farm / "model.npz", "--radius", "1.5km", "--json")
    joined = run(*again, "-o", tmp_path / "joined.json")
    told = one_json(joined)["lonely"]
    assert "1 cell without a neighbour" in joined.stderr
    assert "which dphmm policy ... --merge-lonely does for all steps alike" in joined.stderr
    assert told["states"] == 1 and told["error_joined"] > 4 * told["error_merged"]
    merged = run(*again, "-o", tmp_path / "merged.json", "--merge-lonely")
    assert "1 cell (" in merged.stderr and "nothing within 1.5 km; it is released as its nearest cell" in merged.stderr
    facts = one_json(merged)
    assert facts["merged"]["states"] == 1 and facts["states_without_neighbour"] == 0 and "lonely" not in facts
    assert facts["merged"]["nearest_partner"] == facts["merged"]["farthest_partner"] == told["nearest_partner"]
    assert (tmp_path / "joined.json").read_bytes() == (farm / "joined.json").read_bytes()
    assert (tmp_path / "merged.json").read_bytes() == (farm / "merged.json").read_bytes()


def test_details_count_the_distance_to_the_partner(farm, run, one_json):
    joined = run("plan", "--details", farm / "model.npz", "--policy", farm / "joined.json", "--json")
    told = one_json(joined)
    raised = told["lonely_states"]
    # A release takes what errs less; asked for, it joins.
    assert raised["error_merged"] == pytest.approx(told["release"]["expected_error"], rel=1e-12)
    assert (told["release"]["joined"], told["release"]["answered_as_nearest"]) == (0, 1)
    details = ("plan", "--details", farm / "model.npz", "--policy", farm / "joined.json", "--json")
    wide = one_json(run(*set_in(details, protection="nearest")))
    assert raised["error_joined"] == pytest.approx(wide["release"]["expected_error"], rel=1e-12)
    assert (wide["release"]["joined"], wide["release"]["answered_as_nearest"]) == (1, 0)
    assert "1 cell without a neighbour" in joined.stderr and "km if they were joined to a partner" in joined.stderr
    merged = run("plan", "--details", farm / "model.npz", "--policy", farm / "merged.json", "--json")
    facts = one_json(merged)
    assert facts["release"]["joined"] == 0 and facts["first_step"]["exposed_states"] == 0
    assert "lonely_states" not in facts and "without a neighbour" not in merged.stderr
    assert facts["release"]["expected_error"] == pytest.approx(raised["error_merged"], rel=1e-12)
    # By hand: noise, and the share of the farm times the square of the way to the town.
    section, model = facts["merged_states"], load_model(farm / "model.npz")
    lonely = int(np.argmax(model.space.answers[:, 0]))
    assert section["share_of_visits"] == model.initial[lonely] and section["hidden_only_by_merging"] == 0
    noise = facts["release"]["expected_errors"]["discrete-knorm"] ** 2 - model.initial[lonely] * (
        section["nearest_partner"] ** 2
    )
    bare = one_json(
        run("plan", "--details", farm / "model.npz", "--policy", farm / "merged.json", "--json", "--epsilon", "1000")
    )
    assert bare["release"]["expected_error"] == pytest.approx(
        math.sqrt(model.initial[lonely]) * section["nearest_partner"], rel=1e-6
    )
    assert 0 < noise < facts["release"]["expected_error"] ** 2
    assert "they are" not in section["meaning"][0] and "nothing within 1.5 km" in section["meaning"][0]


def test_nothing_is_said_where_nobody_is_lonely(town, tmp_path, run, one_json):
    said = run("plan", "--details", town / "model.npz", "--policy", town / "radius.json", "--json")
    assert not {"lonely_states", "merged_states"} & one_json(said).keys() and "neighbour" not in said.stderr
    box = ("--grid", "1km", "--bbox", "10.0,50.0,10.056,50.036", "--step", "5min")
    fit = run("fit", town / "people.csv", "-o", tmp_path / "again.npz", *box, "--json")
    assert "neighbour" not in fit.stderr and "cells_without_neighbour" not in one_json(fit)


@pytest.mark.slow
def test_a_release_of_merged_states_through_every_command(farm, tmp_path, run, one_json, rows_of):
    public = ("--model", farm / "model.npz", "--policy", farm / "merged.json")
    release = ("release", farm / "walks.csv", *public, "--epsilon", "1")
    run(*release, "-o", tmp_path / "released")
    rows = rows_of(tmp_path / "released" / "released.csv")
    assert len(rows) == 44
    # The answers of the farm's owner lie about the town, and its centre may be named.
    noisy = [float(row["z_0"]) for row in rows if row["user"] == "g"]
    assert max(noisy) < 14_000
    statement = json.loads((tmp_path / "released" / "released.csv.privacy.json").read_text())
    jsonschema.validate(statement, statement_schema())
    assert statement["space"]["merged"]["count"] == 1 and statement["policy"]["kind"] == "radius"
    model = load_model(farm / "model.npz")
    pair = json.loads((farm / "merged.json").read_text())["merges"]
    assert statement["space"]["merged"]["pairs"] == pair
    assert statement["space"]["sha256"] == model.space.merged(pair).digest

    again = run(*release, "-o", tmp_path / "again")
    assert [row["z_0"] for row in rows_of(tmp_path / "again" / "released.csv")] == [row["z_0"] for row in rows], (
        again.stderr
    )
    folder = tmp_path / "released"
    checked = one_json(run("check-release", folder, "--json"))
    assert checked["notes"] == [] and checked["code"] == 0
    run("read", folder, "--estimates", "-o", tmp_path / "smoothed.csv")
    assert len(rows_of(tmp_path / "smoothed.csv")) == 44
    assert one_json(run("report", folder, "-o", tmp_path / "a.html", "--json"))["plans"] == 1
    run("report", folder, "-o", tmp_path / "a.owner.html", "--truth", farm / "walks.csv")
    edited(tmp_path / "again", "policy.json", (farm / "joined.json").read_text())
    run("report", tmp_path / "again", "-o", tmp_path / "c.html", code=2)
    run("account", tmp_path / "ledger.db", "--temporal", "--model", farm / "model.npz", "--policy",
        farm / "merged.json", "--json")  # fmt: skip


def test_delta_sets_of_merged_states_pass_the_audit(farm, tmp_path, run, one_json, rows_of):
    public = set_in(("--model", farm / "model.npz", "--policy", farm / "merged.json"), constraint="delta=0.05")
    run("release", farm / "walks.csv", *public, "--epsilon", "1", "-o", tmp_path / "released")
    audited = run("check-release", tmp_path / "released", "--json")
    assert one_json(audited)["code"] == 0
    run("read", tmp_path / "released", "--estimates", "-o", tmp_path / "smoothed.csv")
    assert len(rows_of(tmp_path / "smoothed.csv")) == 44


def test_a_ledger_refuses_the_other_space(farm, tmp_path, run):
    shared = ("release", farm / "walks.csv", "--model", farm / "model.npz", "--epsilon", "1")
    ledger = ("--ledger", tmp_path / "ledger.db")
    run(*shared, "--policy", farm / "merged.json", *ledger, "-o", tmp_path / "released")
    other = run(*shared, "--policy", farm / "joined.json", *ledger, "-o", tmp_path / "other", code=2)
    assert "of the history" in other.stderr


def test_for_tables_every_state_without_a_neighbour_is_merged(farm, tmp_path, run, one_json):
    options = ("--merge-lonely", "--setting", "mechanism", "optimal-table", "--radius", "1.5km")
    run("policy", "radius", farm / "model.npz", "-o", tmp_path / "p.json", *options)
    facts = one_json(run("plan", "--details", farm / "model.npz", "--policy", tmp_path / "p.json", "--json"))
    assert facts["release"]["joined"] == 0


def test_too_few_other_states_are_refused_and_a_complete_policy_has_no_lonely_ones(farm, tmp_path, run):
    tiny = run("policy", "radius", farm / "model.npz", "-o", tmp_path / "p.json", "--radius", "10m", "--merge-lonely",
               code=2)  # fmt: skip
    assert (
        "--merge-lonely: got a policy with too few other states" in tiny.stderr and not (tmp_path / "p.json").exists()
    )
    none = run("policy", "complete", farm / "model.npz", "-o", tmp_path / "c.json", "--merge-lonely")
    assert "no lonely states" in none.stderr and json.loads((tmp_path / "c.json").read_text())["format"] == 1


def test_a_union_is_merged_as_a_whole(farm, tmp_path, run):
    parts = (farm / "joined.json", farm / "merged.json")
    refused = run("policy", "union", farm / "model.npz", *parts, "-o", tmp_path / "u.json", code=2)
    assert "in which lonely states are merged" in refused.stderr
    run("policy", "transition", farm / "model.npz", "-o", tmp_path / "t.json")
    run("policy", "union", farm / "model.npz", farm / "joined.json", tmp_path / "t.json", "-o", tmp_path / "u.json",
        "--merge-lonely")  # fmt: skip


def test_a_policy_with_merges_of_another_model_is_refused(farm, town, run):
    said = run("plan", "--details", town / "model.npz", "--policy", farm / "merged.json", code=2)
    assert "made for another model's states" in said.stderr


def test_fit_says_which_cells_have_no_neighbour_and_merges_rare_ones(farm, tmp_path, run, one_json):
    speed = ("--max-speed", "none", "--json")
    plain = run("fit", farm / "people.csv", "-o", tmp_path / "a.npz", *FIT, *speed)
    assert "1 cell (" in plain.stderr and "--merge-rare N or --all-cells" in plain.stderr
    assert one_json(plain)["cells_without_neighbour"] == 1
    assert (tmp_path / "a.npz").read_bytes() == (farm / "model.npz").read_bytes()
    rare = run("fit", farm / "people.csv", "-o", tmp_path / "b.npz", *FIT, *speed, "--merge-rare", "7")
    model, merged = load_model(tmp_path / "a.npz"), load_model(tmp_path / "b.npz")
    assert merged.digest == model.digest and len(merged.space.merges) == one_json(rare)["merged"]["states"] > 0
    told = run("policy", "radius", tmp_path / "b.npz", "-o", tmp_path / "b.json", "--covers", "1km").stderr
    assert "merged cells are answered from farther away; without merged cells " in told, told
    told = run("policy", "radius", tmp_path / "a.npz", "-o", tmp_path / "a.json", "--covers", "1km").stderr
    assert "between centres of cells, the least that covers 1km\n" in told
    everything = run("fit", farm / "people.csv", "-o", tmp_path / "c.npz", *FIT, *speed, "--all-cells")
    whole = load_model(tmp_path / "c.npz")
    assert (
        whole.n_states == one_json(everything)["states"] == Grid.from_bounds(10.0, 50.0, 10.28, 50.036, "1km").n_states
    )
    assert "cells_without_neighbour" not in one_json(everything) and "the others are kept" in everything.stderr


def test_rare_cells_join_the_nearest_kept_cell_by_the_visits_that_occupancy_counts():
    """A row of cells 0..6 with visits 3, 1, 4, 2, 2, 0 and 3: by hand, ties to the lowest number."""
    grid = Grid.from_bounds(10.0, 50.0, 10.0979, 50.008, "1km")
    visits = [0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 4, 6, 6, 6]
    lat, lon = grid.to_latlon(grid.answers)
    states = np.array(visits)
    rows = Trajectories.from_labels(["u"] * len(states), lat=lat[states], lon=lon[states], step=np.arange(len(states)))
    model, summary = fit_trajectories(rows, grid, merge_rare=3)
    names = model.space.names
    assert names == ("x0y0", "x1y0", "x2y0", "x3y0", "x4y0", "x6y0") and summary.n_visited == 6
    pairs = {names[a]: names[b] for a, b in model.space.merges.tolist()}
    assert pairs == {"x1y0": "x0y0", "x3y0": "x2y0", "x4y0": "x2y0"}
    whole, summary = fit_trajectories(rows, grid, merge_rare=1, all_cells=True)
    assert whole.n_states == grid.n_states and summary.n_visited == 6 and whole.initial[5] == 0
    assert whole.space.merges.tolist()[0] == [5, 4]
    # Moves that are dropped were visits all the same.
    fewer, _ = fit_trajectories(rows, grid, merge_rare=3, min_count=2)
    assert fewer.space.digest == model.space.digest
    with pytest.raises(InvalidInput, match="merge_rare: got 5, which 0 states of 6 reach"):
        fit_trajectories(rows, grid, merge_rare=5)
    with pytest.raises(InvalidInput, match="merge_rare"):
        fit_trajectories(rows, grid, merge_rare=0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--all-cells", *FIT, "--epsilon", "1", "--max-length", "5"), "--all-cells: got with --epsilon"),
        (("--merge-rare", "3", *FIT, "--epsilon", "1", "--max-length", "5"), "--merge-rare: got 3; expected none with"),
        (("--merge-rare", "0", *FIT), "--merge-rare: got 0"),
        (("--merge-rare", "9999", *FIT), "--merge-rare: got 9999, which 0 states of"),
        (("--all-cells", "--h3", "7"), "--bbox"),
        (("--all-cells", "--state-column", "user"), "--all-cells: got with --state-column"),
        (("--all-cells", "--states", "2", "--symbols", "user"), "--all-cells"),
        (("--merge-rare", "2", "--states", "2", "--symbols", "user"), "--merge-rare"),
    ],
)
def test_options_of_fits_that_cannot_have_them(farm, tmp_path, run, options, said):
    refused = run("fit", farm / "people.csv", "-o", tmp_path / "m.npz", *options, code=2)
    assert said in refused.stderr and refused.stderr.count("\n") == 1 and not (tmp_path / "m.npz").exists()


def test_names_can_be_merged_when_rare(tmp_path, run):
    rows = [["a", page] for page in ["x", "y", "x", "y", "z", "x", "y", "x"]]
    write_rows(tmp_path / "visits.csv", ["user", "state"], rows)
    ordinal = ("--state-column", "state", "--answers", "ordinal")
    run("fit", tmp_path / "visits.csv", "-o", tmp_path / "m.npz", *ordinal, "--merge-rare", "2")
    space = load_model(tmp_path / "m.npz").space
    assert space.merges.tolist() == [[2, 1]] and space.names == ("x", "y", "z")


def test_the_target_on_check_ins(data_folder, tmp_path, run, one_json):
    """Gowalla, Los Angeles: over 10 km with lonely cells joined, at most 2.1 km with them merged, bias included.

    A release finds that by itself.
    """
    data = data_folder / "gowalla_la.parquet"
    cells = ("--grid", "890m", "--bbox=-118.6,33.7,-117.9,34.3", "--smoothing", ".1", "--initial", "occupancy")
    run("fit", data, "-o", tmp_path / "m.npz", *cells)
    for name, more in (("joined", ()), ("merged", ("--merge-lonely",))):
        run("policy", "radius", tmp_path / "m.npz", "--radius", "1km", "-o", tmp_path / f"{name}.json", *more)
    errors = {
        name: one_json(run("plan", "--details", tmp_path / "m.npz", "--policy", tmp_path / f"{name}.json", "--json"))
        for name in ("joined", "merged")
    }
    nearest = set_in(("--policy", tmp_path / "joined.json", "--json"), protection="nearest")
    assert one_json(run("plan", "--details", tmp_path / "m.npz", *nearest))["release"]["expected_error"] > 10_000
    assert errors["joined"]["release"]["expected_error"] <= 2_100
    assert errors["merged"]["release"]["expected_error"] <= 2_100
    assert errors["joined"]["lonely_states"]["error_merged"] == errors["merged"]["release"]["expected_error"]


def test_the_warning_of_the_page_is_the_one_that_policy_prints(farm, tmp_path, run):
    page = (Path(__file__).parents[2] / "docs" / "learning.md").read_text(encoding="utf-8")
    (printed,) = (line for line in page.splitlines() if line.startswith("warning: "))
    number = r"\\d[\\d.e+]*"
    form = re.sub(r"\b[NPAB]\b", number, re.escape(printed)).replace(r"\ km", " k?m").replace("cells", "cells?")
    told = run("policy", "radius", farm / "model.npz", "-o", tmp_path / "p.json", "--radius", "1.5km").stderr
    assert any(re.fullmatch(form, line) for line in told.splitlines()), told


def test_cells_that_the_model_merged_are_not_the_policy_s():
    from types import SimpleNamespace

    from dphmm.choose.details import _pairs_of_policy

    fitted, both = np.array([[1, 0], [4, 2]]), np.array([[1, 0], [3, 2], [4, 2]])
    spaces = (SimpleNamespace(merges=merges) for merges in (both, fitted))
    assert _pairs_of_policy(*spaces).tolist() == [[3, 2]]
