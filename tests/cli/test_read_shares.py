"""dphmm read --by: shares of regions from the folder of a release, and the tables that are written.

Claims: the command gives what `population` gives and says that it spends nothing; a planned schedule counts
persons alike and a paced one answers; hostile files and options are refused in one line with nothing written.
"""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput


def shares_of(folder, *more, by="blocks"):
    return ["read", folder / "released", "--by", by, *more]


def test_equal_to_the_library(town, released, tmp_path, run, one_json):
    out = tmp_path / "density.csv"
    result = run(*shares_of(released, "-o", out, "--json"))
    got = pd.read_csv(out)
    model = dphmm.storage.load_model(town / "model.npz")
    policy = dphmm.storage.load_policy(town / "radius.json", model=model)
    rows = pd.read_csv(released / "released" / "released.csv")
    expected = dphmm.reconstruction.population(rows, model, policy, epsilon=1)
    pd.testing.assert_frame_equal(got, expected.to_pandas(), rtol=1e-12, check_dtype=False)
    document = one_json(result)
    assert (document["people"], document["answers"], document["regions"]) == (3, 36, len(got))
    assert document["privacy"] == "computed from published data alone: nothing is spent, and anybody can do it"
    assert document["persons_count_alike"]
    assert document["shares"][0]["region"] == got.region[0] and document["refused"] == []
    assert {path.name for path in tmp_path.iterdir()} == {"density.csv"}


def test_regions_flows_and_states(town, released, tmp_path, run):
    table = tmp_path / "regions.csv"
    table.write_text("state,region\nx0y0,left\nx0y1,left\nx3y3,right\n")
    files = [tmp_path / name for name in ("density.csv", "flows.csv", "states.csv")]
    options = [word for pair in zip(("-o", "--flows", "--states"), files, strict=True) for word in pair]
    said = run(*shares_of(released, *options, by=table))
    assert "nothing is spent" in said.stderr and "left" in said.stdout and "standard error" in said.stdout
    regions, flows, states = map(pd.read_csv, files)
    assert regions.region.tolist() == ["left", "right"]
    assert flows[["origin", "destination"]].apply(tuple, axis=1).tolist()[1] == ("left", "right")
    assert states.share.sum() == pytest.approx(1) and {"state", "lat", "lon"} < set(states.columns)


def test_states_and_polygons_that_the_model_does_not_have_are_told(town, released, tmp_path, run, one_json):
    out, table, zones = (tmp_path / name for name in ("density.csv", "regions.csv", "zones.geojson"))
    table.write_text("state,region\nx0y0,left\nx0yO,left\nx3y3,right\nx9y9,gone\n")
    options = ["-o", out, "--force"]
    said = run(*shares_of(released, *options, "--quiet", by=table))
    warning = "warning: regions: 2 names are no states of the model: x0yO, x9y9; not answerable for it: left, gone"
    assert said.stderr.splitlines() == [warning]
    rows = pd.read_csv(out).set_index("region")
    assert rows.answerable["right"] == "yes" and rows.estimate.notna().tolist() == [False, True, False]
    assert rows.answerable["left"].startswith("1 of its 2 states is none of the model's: x0yO")
    assert "left   not answerable: 1 of its 2" in run(*shares_of(released, *options, by=table)).stdout
    notes = one_json(run(*shares_of(released, *options, "--json", by=table)))["notes"]
    assert notes.count(warning.removeprefix("warning: ")) == 1

    pytest.importorskip("shapely")
    boxes = {"town": (10.0, 50.0, 10.056, 50.036), "far": (11, 51, 12, 52), "half": (10.028, 50.0, 10.084, 50.036)}
    features = [
        {
            "properties": {"name": name},
            "geometry": {"type": "Polygon", "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]]},
        }
        for name, (w, s, e, n) in boxes.items()
    ]
    zones.write_text(json.dumps({"features": features}))
    said = run(*shares_of(released, "-o", out, "--force", by=zones))
    assert "warning: regions: not answerable, as the map does not have them whole: far, half\n" in said.stderr
    rows = pd.read_csv(out).set_index("region")
    assert rows.index.tolist() == ["town", "far", "half"] and rows.linear.notna().tolist() == [True, False, False]
    assert rows.answerable["half"].endswith("use a model of a larger map")


def test_periods(town, released, tmp_path, run, one_json):
    out = tmp_path / "density.parquet"
    options = ["--per", "hour-of-day", "--zone", "+02:00", "-o", out, "--json"]
    document = one_json(run(*shares_of(released, *options)))
    assert document["periods"] == 1 and pd.read_parquet(out).period.unique().tolist() == ["10:00"]


SCHEDULES = {
    "planned": ["--schedule", "planned"],
    "paced": ["--schedule", "paced"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCHEDULES)
def test_whether_persons_count_alike_hangs_on_the_schedule(kind, town, tmp_path, run, one_json):
    release = ["release", town / "walks.csv", "--model", town / "model.npz", "--policy", town / "radius.json"]
    release += ["--path-epsilon", "4", "--steps", "12", *SCHEDULES[kind], "-o", tmp_path / "released"]
    run(*release)
    found = one_json(run(*shares_of(tmp_path, "-o", tmp_path / "density.csv", "--json")))
    assert found["persons_count_alike"] == (kind == "planned")
    said = any("answers count alike, not persons" in note for note in found["notes"])
    assert found["answers"] < 36 and said == (kind == "paced")


WRONG = {
    "a word for the period": (["--per", "week"], "--per: got week"),
    "a zone": (["--per", "day", "--zone", "here"], "--zone: got here"),
    "regions that are not there": (["--by", "{missing}"], "--by"),
    "a file that is written twice": (["--flows", "{out}"], "another file"),
    "a format": (["-o", "{out}.txt"], "-o"),
    "states in a format": (["--states", "{out}.txt"], "--states"),
    "another release": (["--with", "{released}"], "--with"),
    "without regions": ([], "--per: got it alone; expected --by with it"),
}


@pytest.mark.parametrize("what", WRONG)
def test_one_line_and_nothing_written(what, released, tmp_path, run):
    given, words = WRONG[what]
    names = {"released": released / "released", "out": tmp_path / "density.csv", "missing": tmp_path / "none.csv"}
    by = ["--by", "blocks"] if given else ["--per", "day"]
    more = [word.format(**names) for word in given]
    result = run("read", released / "released", *by, "-o", names["out"], *more, code=2)
    assert words in result.stderr and result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_stays(released, tmp_path, run):
    out = tmp_path / "density.csv"
    out.write_text("mine")
    run(*shares_of(released, "-o", out), code=2)
    assert out.read_text() == "mine"
    run(*shares_of(released, "-o", out, "--force", "--quiet"))
    assert out.read_text().startswith('"period","region",')


def test_an_estimate_beyond_all_people_is_cut_and_the_line_says_so():
    from dphmm.cli.read import share_words
    from dphmm.reconstruction.shares import Share

    line = share_words(Share("north", "", 0.7, 4.32, 0.0, 1.0, 3.1, ""))
    assert "unbiased 100.0% (cut from 432%), 0.0% to 100.0%" in line
    assert "cut" not in share_words(Share("north", "", 0.7, 0.6, 0.2, 0.9, 0.1, ""))


def test_labels_by_position_are_the_marginals_of_the_model(tmp_path, run):
    """By sums over all paths of three steps; slots of positions, also of those that were not asked."""
    n, slots, space = 3, dphmm.markov.Slots(positions="1, 2+"), dphmm.StateSpace.labels(["a", "b", "c"])
    moves = [np.array([[1, 2, 1], [3, 1, 4], [1, 1, 2]]) / [[4], [8], [4]], np.eye(n) * 0.7 + 0.1]
    model = dphmm.MarkovModel([0.2, 0.3, 0.5], moves, slots=slots, space=space, start="at")
    setup = dphmm.Setup(model, dphmm.policy.complete(n))
    table = pd.DataFrame({"user": ["u"] * 3 + ["v"] * 3, "step": [1, 2, 3] * 2, "state": list("abcabc")})
    setup.plan(4, steps=3, epsilon=4, people=20, progress=False).release(
        table, tmp_path / "out", bits=dphmm.ReplayBits(1), progress=False
    )
    expected = np.zeros((3, n))
    for path in itertools.product(range(n), repeat=3):
        chance = model.initial[path[0]] * moves[0][path[0], path[1]] * moves[1][path[1], path[2]]
        expected[range(3), path] += chance
    out = tmp_path / "out"
    found = dphmm.open(out).by_position(3, believe=model).to_pandas()
    assert found.position.tolist() == [1] * 3 + [2] * 3 + [3] * 3 and found.state.tolist() == list("abc") * 3
    assert found.share.to_numpy() == pytest.approx(expected.ravel(), abs=1e-12)
    run("read", out, "--positions", 3, "-q")
    written = pd.read_csv(out / "positions.csv")
    pd.testing.assert_frame_equal(written, dphmm.open(out).by_position(3).to_pandas())
    assert "--positions: got 0; expected a whole number" in run("read", out, "--positions", 0, code=2).stderr
    timed = dphmm.MarkovModel(model.initial, moves[0], space=space, step=60)
    with pytest.raises(InvalidInput, match="model: got steps of 60 s; expected a model without a step"):
        dphmm.open(out).by_position(3, believe=timed)
