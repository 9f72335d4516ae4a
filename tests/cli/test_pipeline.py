"""dphmm run and init: a pipeline runs once, goes on where it stopped, and asks nobody anew by itself.

It would fail for a stage that runs again without a reason or not for a changed input, a release with new noise for
answered rows or for another policy, an option that is passed over in silence, and a hash of a private file that
others may read.
"""

from __future__ import annotations

import json
import tomllib

import pytest

from cli.conftest import walk_rows, write_rows
from dphmm.cli.pipeline import RECORD, STAGES

pytestmark = pytest.mark.replayed_words

PIPELINE = """
[data]
file = "walks.csv"

[model]
bbox = "10.0,50.0,10.056,50.036"
cell = "1km"
step = "5min"
max-speed = "20km/h"

[policy]
radius = "1.5km"

[release]
epsilon = 0.5
"""


@pytest.fixture
def folder(tmp_path):
    write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon"], walk_rows())
    (tmp_path / "release.toml").write_text(PIPELINE)
    return tmp_path


def stages(result):
    return json.loads(result.stdout)["stages"]


def test_a_pipeline_runs_once_and_again_where_something_changed(run, folder):
    first = stages(run("run", folder / "release.toml", "--json"))
    assert first == dict.fromkeys(("data", "model", "policy", "release"), "done")
    released = (folder / "out" / "released.parquet").read_bytes()
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}
    (folder / "out" / "policy.json").unlink()
    again = stages(run("run", folder / "release.toml", "--json"))
    assert again == {"data": "as it was", "model": "as it was", "policy": "done", "release": "as it was"}
    assert (folder / "out" / "released.parquet").read_bytes() == released
    assert (folder / "out" / RECORD).stat().st_mode & 0o077 == 0


def test_new_rows_are_released_beside_answers_that_stay(run, folder):
    run("run", folder / "release.toml", "-q")
    before = answers(folder)
    rows = walk_rows(users=("u1", "u2", "u3", "u4"))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], rows)
    found = stages(run("run", folder / "release.toml", "--json"))
    assert found == {"data": "done", "model": "as it was", "policy": "as it was", "release": "done"}
    after = answers(folder)
    assert len(after) > len(before) and all(after[key] == row for key, row in before.items())


def answers(folder):
    from dphmm.storage.tables import read_table

    table = read_table(folder / "out" / "released.parquet").to_pylist()
    return {(row.pop("user"), row.pop("step")): row for row in table}


@pytest.mark.parametrize(
    ("old", "new"), [("epsilon = 0.5", "epsilon = 0.7"), ('"1.5km"', '"1.2km"'), ('"20km/h"', '"30km/h"')]
)
def test_another_question_is_asked_with_consent_only(run, folder, old, new):
    run("run", folder / "release.toml", "-q")
    ledger = (folder / "out" / "released.parquet").read_bytes()
    (folder / "release.toml").write_text(PIPELINE.replace(old, new))
    refused = run("run", folder / "release.toml", "-q", code=2)
    assert "--spend-again" in refused.stderr and (folder / "out" / "released.parquet").read_bytes() == ledger


def test_a_stage_that_fails_ends_the_run_and_what_came_before_stays(run, folder):
    (folder / "release.toml").write_text(PIPELINE.replace('"1.5km"', '"wide"'))
    failed = run("run", folder / "release.toml", code=2)
    assert "--radius" in failed.stderr and not (folder / "out" / "released.parquet").exists()
    (folder / "release.toml").write_text(PIPELINE)
    assert stages(run("run", folder / "release.toml", "--json"))["model"] == "as it was"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[data", "which is no TOML"),
        ("[data]\nfile = 'walks.csv'\n", "without a table [policy]"),
        (PIPELINE.replace("[release]", "[relase]"), "[relase]: got a table that there is not; expected release?"),
        (PIPELINE.replace("cell =", "cel ="), "[model] cel: got no option of it; expected cell?"),
        (PIPELINE + "ledger = 'x.db'\n", "[release] ledger: got no option of it"),
        (PIPELINE + "output = 'x.csv'\n", "[release] output: got no option of it"),
        (PIPELINE.replace("[model]", "[model]\nkind = 'sphere'"), "kind: got 'sphere'"),
        (PIPELINE.replace("walks.csv", "other.csv"), "[data] file: got other.csv"),
        (PIPELINE.replace("epsilon = 0.5", "epsilon = 2024-05-06"), "[release] epsilon: got datetime.date"),
        (PIPELINE + "[fit]\n", "both [model] and [fit]"),
        (PIPELINE.replace("[model]", "[fit]"), "[fit]: got no people"),
        ("folder = 3\n" + PIPELINE, "folder: got 3"),
    ],
)
def test_a_file_that_is_no_pipeline_is_one_line_and_nothing_runs(run, folder, text, told):
    (folder / "release.toml").write_text(text)
    result = run("run", folder / "release.toml", code=2)
    assert told in result.stderr and result.stderr.count("\n") == 1
    assert not (folder / "out" / "model.npz").exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": 1}', '{"format": 1, "stages": {"data": 3}}', '{"format": 9, "stages": {}}']
)
def test_a_record_that_is_none_is_refused(run, folder, text):
    (folder / "out").mkdir()
    (folder / "out" / RECORD).write_text(text)
    assert "no record of a run" in run("run", folder / "release.toml", code=2).stderr


def test_decimals_reach_commands_as_they_are_written(run, folder):
    """A float of 0.1 is not a tenth: 0.1 has to arrive as text."""
    (folder / "release.toml").write_text(PIPELINE.replace("0.5", "0.1"))
    run("run", folder / "release.toml", "-q")
    statement = json.loads((folder / "out" / "released.parquet.privacy.json").read_text())
    assert statement["epsilon"] == "1/10"


def test_init_reads_names_of_columns_and_no_row(run, folder):
    write_rows(folder / "d.csv", ["uid", "when", "latitude", "lng"], [["a", "2024-05-06T00:00:00Z", 10.0, 50.0]])
    run("init", folder / "d.csv", "-o", folder / "a.toml", "-q")
    text = (folder / "a.toml").read_text()
    told = tomllib.loads(text)
    assert told["data"] == {
        "file": "d.csv", "user-column": "uid", "time-column": "COLUMN", "lat-column": "latitude", "lon-column": "lng",
    }  # fmt: skip
    assert set(told) - {"folder"} <= set(STAGES) and "WEST" in told["model"]["bbox"]
    write_rows(folder / "d.csv", ["uid", "when", "latitude", "lng"], [["b", "2025-01-01T00:00:00Z", -10.0, 5.0]])
    run("init", folder / "d.csv", "-o", folder / "b.toml", "-q")
    assert (folder / "b.toml").read_text() == text
    assert "--force" in run("init", folder / "d.csv", "-o", folder / "a.toml", code=2).stderr


def test_a_pipeline_of_init_runs_once_its_gaps_are_filled(run, folder):
    run("init", folder / "walks.csv", "-o", folder / "c.toml", "-q")
    assert "--bbox" in run("run", folder / "c.toml", "-q", code=2).stderr
    text = (folder / "c.toml").read_text().replace("WEST,SOUTH,EAST,NORTH", "10.0,50.0,10.056,50.036")
    text = text.replace('step = "10min"', 'step = "5min"').replace('"500m"', '"1km"').replace('"60km/h"', '"20km/h"')
    (folder / "c.toml").write_text(text.replace("path-epsilon = 12", "path-epsilon = 4\nepsilon = 2\npeople = 4"))
    found = stages(run("run", folder / "c.toml", "--json"))
    assert found == {"data": "as it was"} | dict.fromkeys(("model", "policy", "plan", "release", "report"), "done")


def test_init_of_labels_leaves_names_and_a_split_to_choose(run, folder):
    write_rows(folder / "d.csv", ["user", "t", "page"], [["a", "2024-05-06T00:00:00Z", "home"]])
    run("init", folder / "d.csv", "-o", folder / "a.toml", "-q")
    told = tomllib.loads((folder / "a.toml").read_text())
    assert told["data"]["state-column"] == "page" and "split" in told and "states-file" in told["fit"]
    assert "home" not in (folder / "a.toml").read_text()


SPLIT = PIPELINE.replace("[model]", '[split]\nshare = "0.5"\n\n[fit]\ngrid = "1km"').replace('cell = "1km"\n', "")
SPLIT = SPLIT.replace('max-speed = "20km/h"\n', "")


def test_people_are_split_once_for_a_folder(run, folder):
    """Split anew, somebody who was released could be fitted on without privacy."""
    names = tuple(f"u{number}" for number in range(8))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=names))
    (folder / "release.toml").write_text(SPLIT)
    found = stages(run("run", folder / "release.toml", "--json"))
    assert list(found) == ["data", "split", "fit", "policy", "release"]
    fitted, released = people_of(folder, "model-people.parquet"), people_of(folder, "released-people.parquet")
    assert fitted and released and not fitted & released and fitted | released == set(names)
    assert set(stages(run("run", folder / "release.toml", "--json")).values()) == {"as it was"}
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(users=(*names, "new")))
    refused = run("run", folder / "release.toml", "--spend-again", "-q", code=2)
    assert "[split]" in refused.stderr and "another folder" in refused.stderr
    assert people_of(folder, "model-people.parquet") == fitted


def people_of(folder, name):
    from dphmm.storage.tables import read_table

    return set(read_table(folder / "out" / name).column("user").to_pylist())
