"""What is chosen and release.toml say the same, and `dphmm run` makes of it the model and the policy of the page.

Claims: every draft is read back as it was, with the members of a file that no page shows; the digests of model and
policy are those of the commands that the file names; cells whose centre lies in a drawn area look alike, all of them,
and no others beside those within the covered distance (brute force over degrees); options that would change figures
and a file of pairs or areas that was edited are refused; a pipeline of `dphmm init` is read with its questions open.
"""

from __future__ import annotations

import itertools

import msgspec
import pytest

from commands import run, walk_rows, write_rows
from dphmm.errors import InvalidInput
from dphmm.states.grid import Grid
from dphmm.storage.models import load_model
from dphmm.storage.policies import load_policy
from dphmm.studio.draft import Area, Draft, ReleaseFile, cells_of, policy_of, setup_of
from studio.conftest import AREA, GRID, LABELS

replaced = msgspec.structs.replace
DRAFTS = {
    "grid": GRID,
    "a day": replaced(GRID, per="1d", steps="", zone="+01:00", hours="7-21", epsilon="0.5", budget="0.75"),
    "areas": replaced(GRID, areas=(AREA, Area('a, "school"', (10.03, 50.02, 10.05, 50.03)))),
    "labels": LABELS,
    "labels of a time": replaced(LABELS, step="1d", per="7d", steps=""),
    "pairs": replaced(LABELS, pairs=(("home", "work"), ("work", "away"))),
    "no pairs": replaced(LABELS, pairs=()),
    "numbers": replaced(LABELS, labels=("0", "1", "2")),
}
MEMBERS = {
    "release": {"noun": "vessel"}, "report": {}, "population": {"per": "hour-of-day"},
    "model": {"stay": "0.8", "jump": "0.01"},
}  # fmt: skip


def saved(file, folder, name="release.toml"):
    for other, text in (file.others(name) | {name: file.text(name)}).items():
        (folder / other).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", DRAFTS)
def test_is_read_back_as_it_was(name, tmp_path):
    members = MEMBERS if DRAFTS[name].kind == "grid" else {**MEMBERS, "model": {"jump": "0.01"}}
    draft = replaced(DRAFTS[name], data={"file": "x.csv", "user-column": "who", "no-times": True})
    file = ReleaseFile(draft, members, "elsewhere", "all.db")
    saved(file, tmp_path)
    read = ReleaseFile.read(file.text("release.toml"), "release.toml", tmp_path)
    assert (read.draft, read.folder, read.ledger) == (file.draft, "elsewhere", "all.db")
    assert {name: dict(table) for name, table in read.members.items()} == members
    assert read.text("release.toml") == file.text("release.toml")


@pytest.mark.parametrize("name", ["grid", "areas", "labels", "labels of a time", "pairs", "numbers"])
def test_the_commands_of_the_file_make_its_model_and_policy(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    members = {"model": {"stay": "0.8", "jump": "0.01"} if DRAFTS[name].kind == "grid" else {"jump": "0.01"}}
    file = ReleaseFile(DRAFTS[name], members)
    saved(file, tmp_path)
    tables = ReleaseFile.read(file.text("release.toml"), "release.toml", tmp_path)
    text = {table: of for table, of in _tables(file).items() if table in ("model", "policy")}
    for table, of in text.items():
        words = [
            of.pop("kind"),
            *([of.pop("file")] if "file" in of else []),
            *(["model.npz"] if table == "policy" else []),
        ]
        options = [part for member, value in of.items() for part in (f"--{member}", value)]
        run(table, *words, *options, "-o", "model.npz" if table == "model" else "policy.json")
    setup = setup_of(tables.draft, tables.members)
    model = load_model(tmp_path / "model.npz")
    assert (setup.model.digest, setup.space.digest) == (model.digest, model.space.digest)
    assert setup.policy.digest == load_policy(tmp_path / "policy.json", model.space, model).digest


def _tables(file):
    import tomllib

    tables = tomllib.loads(file.text("release.toml"), parse_float=str)
    return {name: dict(table) for name, table in tables.items() if isinstance(table, dict)}


@pytest.mark.parametrize("covers", ["0.5km", "1.2km", "2km"])
def test_cells_of_an_area_look_alike_and_others_within_the_distance(covers):
    """Centres of cells are computed here in degrees, and every pair is looked at."""
    grid = Grid.from_bounds(*GRID.box, cell="1km")
    policy = policy_of(replaced(GRID, covers=covers, areas=(AREA,)), grid)
    near = policy_of(replaced(GRID, covers=covers), grid)
    width, height = 1000 / grid.projection.metres_east, 1000 / grid.projection.metres_north
    west, south, east, north = AREA.box

    def lies_within(cell):
        row, column = divmod(cell, grid.columns)
        return west < grid.west + (column + 0.5) * width < east and south < grid.south + (row + 0.5) * height < north

    inside = [cell for cell in range(grid.n_states) if lies_within(cell)]
    (cells,) = cells_of((AREA,), grid)
    assert 2 <= len(inside) < grid.n_states and inside == cells.tolist()
    both = list(itertools.combinations(range(grid.n_states), 2))
    alike = {pair for pair in both if set(pair) <= set(inside)} | {tuple(pair) for pair in near.edges().tolist()}
    assert {tuple(pair) for pair in policy.edges().tolist()} == alike


def test_an_area_without_a_centre_is_refused_by_its_name():
    grid = Grid.from_bounds(*GRID.box, cell="1km")
    lat, lon = (float(one[0]) for one in grid.to_latlon(grid.own_answers[[0]]))
    for box in ((lon + 0.001, lat, lon + 0.002, lat + 0.001), (20.0, 50.0, 20.1, 50.1)):
        with pytest.raises(InvalidInput, match="hospital, in which no cell"):
            policy_of(replaced(GRID, areas=(Area("hospital", box),)), grid)
    with pytest.raises(InvalidInput, match="two areas called hospital"):
        policy_of(replaced(GRID, areas=(AREA, AREA)), grid)


@pytest.mark.parametrize(
    "text",
    [
        "[plan]\nreserve = 0.25", '[plan]\nschedule = "paced"', '[policy]\nkind = "complete"',
        '[policy]\nradius = "1km"',
        '[model]\nkind = "h3"', "[release]\nepsilon = 1", '[release]\nconstraint = "delta:0.1"', "[fit]\nepsilon = 1",
        '[release]\nmechanism = "laplace"', "[query]\nepsilon = 1", "[policy]\nmerge-lonely = true", "not toml",
        '[model]\nkind = "matrix"\nfile = "missing.csv"', '[policy]\nkind = "edges"\ngraph = "x.csv"',
        '[policy]\nkind = "areas"\nareas = "x.geojson"',
        '[model]\nbbox = "1,2,3,x"', "data = 3",
    ],
)  # fmt: skip
def test_files_that_say_more_than_the_page_shows_are_refused(text, tmp_path):
    with pytest.raises(InvalidInput):
        ReleaseFile.read(text, "release.toml", tmp_path)


def test_areas_that_were_edited_are_refused(tmp_path):
    file = ReleaseFile(DRAFTS["areas"])
    saved(file, tmp_path)
    path = tmp_path / "release-areas.geojson"
    path.write_text(path.read_text().replace("10.03", "10.031", 1))
    with pytest.raises(InvalidInput, match="release-areas"):
        ReleaseFile.read(file.text("release.toml"), "release.toml", tmp_path)


@pytest.mark.parametrize("on_map", [True, False])
def test_a_pipeline_of_init_is_read_with_its_questions_open(on_map, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header, rows = ["user", "t", "lat", "lon"], walk_rows()
    write_rows(tmp_path / "x.csv", header if on_map else ["user", "t", "state"], rows if on_map else [["u", 1, "a"]])
    run("init", "x.csv")
    read = ReleaseFile.read((tmp_path / "release.toml").read_text(), "release.toml", tmp_path).draft
    assert read.kind == ("grid" if on_map else "labels") and read.missing and read.data["file"] == "x.csv"
    done = replaced(read, box=GRID.box) if on_map else replaced(read, labels=("a", "b"))
    assert done.missing == "" and setup_of(done, {}).space.n_states > 1
    # What is answered is a pipeline that dphmm run takes.
    saved(ReleaseFile(done), tmp_path)
    from dphmm.cli.pipeline import Pipeline

    Pipeline.read(tmp_path / "release.toml").check()


def test_what_is_open_is_said():
    assert "a box" in Draft().missing and "two labels" in Draft(kind="labels", labels=("a",)).missing
    assert "per" in replaced(GRID, steps="").missing and GRID.missing == ""
    for draft in (replaced(GRID, steps="many"), replaced(GRID, per="1 moon", steps=""), replaced(GRID, budget="x")):
        with pytest.raises(InvalidInput):
            _ = draft.promise
    with pytest.raises(InvalidInput, match="cells"):
        setup_of(replaced(GRID, cell="10m"), {})
    with pytest.raises(InvalidInput, match="labels of the list"):
        setup_of(replaced(LABELS, pairs=(("home", "nowhere"),)), {})
