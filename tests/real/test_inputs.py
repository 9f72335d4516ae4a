"""Real files as they come: what is read of them, and what happens with people who should not be released so."""

from __future__ import annotations

import json
import struct
import tarfile

import pandas as pd
import pytest

from real.canaries import found_in, unmistakable

STATE = "CANARY_5c91_unheard_of"
LAT, LON = 39.91234567891, 116.39876543219
LATER = pd.Timedelta("1h 5min 6.890123s")

# Rows and people of each file, counted with other tools.
COUNTS = {
    "geolife-plt": (184635, 16),
    "geolife-beijing": (482244, 51),
    "gowalla-los-angeles": (100580, 5625),
    "gowalla-austin": (10000, 48),
    "msnbc-ordinal": (27380, 323),
    "mvad": (712 * 72, 712),
}


@pytest.mark.parametrize("name", COUNTS)
def test_every_row_of_the_original_file_is_read(name, data_folder, matrix, run, tmp_path):
    given = matrix.INPUTS[name]
    out = tmp_path / "all.parquet"
    kind, *options = given.importing
    told = json.loads(run("import", kind, data_folder / given.source, "-o", out, *options, "--json").stdout)
    assert (told["rows"], told["users"]) == COUNTS[name]
    assert told["kept"] == told["rows"] == len(pd.read_parquet(out))
    assert sum(told["dropped"].values()) == 0


def test_geolife_from_a_folder_is_geolife_from_the_archive(data_folder, matrix, run, prepared, tmp_path):
    wanted = "021"
    with tarfile.open(data_folder / matrix.INPUTS["geolife-plt"].source) as archive:
        archive.extractall(tmp_path, [m for m in archive if f"/{wanted}/" in m.name], filter="data")
    run("import", "geolife", next(tmp_path.glob("*/Data")), "-o", tmp_path / "folder.parquet")
    folder, tar = (
        pd.read_parquet(path) for path in (tmp_path / "folder.parquet", prepared("geolife-plt", 2) / "all.parquet")
    )
    pd.testing.assert_frame_equal(folder, tar[tar.user == wanted].reset_index(drop=True))
    assert folder.trip.nunique() == 8


@pytest.mark.parametrize(("name", "users", "policy"), [("mvad", 4, "transition"), ("geolife-beijing", 2, "radius")])
def test_a_release_of_the_very_people_fitted_on_says_so(name, users, policy, prepared, matrix, run, tmp_path):
    rows = prepared(name, users) / "release.parquet"
    model, out = tmp_path / "model.npz", tmp_path / "released"
    fitted = run("fit", rows, "-o", model, *matrix.INPUTS[name].fitting)
    assert "without privacy" in fitted.stderr
    kind, *options = matrix.INPUTS[name].policies[policy]
    run("policy", kind, model, "-o", tmp_path / "p.json", *options)
    # Whatever the owner declares: the file released is the file fitted on.
    release = (
        "release", rows, "--model", model, "--policy", tmp_path / "p.json", "--epsilon", "1", "-o", out,
        "--ledger", tmp_path / "l.db", "--json", "-q",
    )  # fmt: skip
    refused = run(*release, "--model-people", "others", code=2)
    assert "--model-people: got others" in refused.stderr and not (tmp_path / "l.db").exists()
    said = run(*release)
    assert "warning: the model" in said.stderr
    assert json.loads(said.stdout)["model_people"] == "same"
    statement = json.loads((out / "released.csv.privacy.json").read_text())
    assert statement["model"]["people"] == "same"
    assert statement["private"] is False and statement["reasons"] == ["fitted on released"]


def test_with_another_truth_at_the_same_times_only_z_changes(prepared, matrix, run, tmp_path):
    folder = prepared("geolife-beijing", 2)
    rows = pd.read_parquet(folder / "release.parquet")
    mirrored = rows.assign(lat=rows.lat.to_numpy()[::-1], lon=rows.lon.to_numpy()[::-1])
    published = []
    for number, truth in enumerate((rows, mirrored)):
        truth.to_parquet(tmp_path / f"{number}.parquet", index=False)
        run(
            "release", tmp_path / f"{number}.parquet", "--model", folder / "smoothed.npz",
            "--policy", folder / "smoothed-radius.json", "--epsilon", "1",
            "-o", tmp_path / f"r{number}", "--format", "parquet", "--ledger", tmp_path / f"{number}.db",
        )  # fmt: skip
        published.append(pd.read_parquet(tmp_path / f"r{number}" / "released.parquet"))
    public = ["user", "t", "step", "epsilon", "cost", "plan"]
    pd.testing.assert_frame_equal(published[0][public], published[1][public])
    assert (published[0].z_0 != published[1].z_0).any()


def test_unheard_of_states_and_unmistakable_places_are_shown_nowhere(prepared, matrix, run, tmp_path):
    mvad, map_ = prepared("mvad", 4), prepared("geolife-beijing", 2)
    months = pd.read_parquet(mvad / "release.parquet")
    months.loc[months.index[10], "state"] = STATE
    points = pd.read_parquet(map_ / "release.parquet").iloc[:20]
    points["t"] = points.t.astype("datetime64[us, UTC]")
    strange = points.iloc[[-1]].assign(t=points.t.iloc[-1].floor("1h") + LATER, lat=LAT, lon=LON)
    points = pd.concat([points, strange])
    secrets = unmistakable([LAT, LON])
    assert len(secrets) == 2
    for rows, folder, model, policy in (
        (months, mvad, "counts", "transition"),
        (points, map_, "smoothed", "radius"),
    ):
        source, out = tmp_path / f"{policy}.parquet", tmp_path / f"{policy}-released"
        rows.to_parquet(source, index=False)
        said = run(
            "release", source, "--model", folder / f"{model}.npz", "--policy", folder / f"{model}-{policy}.json",
            "--epsilon", "1", "-o", out, "--ledger", tmp_path / f"{policy}.db", "--json",
        )  # fmt: skip
        source.unlink()
        everything = [
            said.stdout.encode(),
            said.stderr.encode(),
            *(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()),
        ]
        for data in everything:
            assert STATE.encode() not in data
            assert b"06.890123" not in data
            assert b":05:06" not in data
            assert found_in(data, secrets) == set()


def test_a_planted_number_is_found():
    secrets = unmistakable([LAT, -LON, 39.5])
    assert len(secrets) == 2
    for planted in (f"x{LAT}y".encode(), f"{LON}".encode(), b"abc" + struct.pack("<d", -LON), struct.pack(">d", LAT)):
        assert len(found_in(b"....." + planted + b"..", secrets)) == 1
    assert found_in(b"39.5 39.912345 39.9123456789", secrets) == set()


def test_truth_is_joined_by_the_last_row_of_a_step_and_by_rank(matrix):
    clock = pd.to_datetime(["2024-01-01T00:01Z", "2024-01-01T00:04Z", "2024-01-01T00:11Z"])
    rows = pd.DataFrame({"user": ["a", "a", "a"], "t": clock, "lat": [1.0, 2.0, 3.0], "lon": [0.0, 0.0, 0.0]})
    released = pd.DataFrame({"user": ["a", "a"], "t": clock[[1, 2]].floor("5min"), "step": [1, 3]})
    places = released.assign(z_lat=[2.0, 4.0], z_lon=0.0, estimate_lat=[2.0, 3.0], estimate_lon=0.0)
    both = matrix.joined(rows, places, 300)
    assert both.lat.tolist() == [2.0, 3.0]
    of_z, of_estimate = matrix.mean_errors(both, None)
    assert of_z == pytest.approx(111_195 / 2, rel=1e-4)
    assert of_estimate == 0
    months = pd.DataFrame({"user": ["a", "b", "b"], "step": [7, 4, 5], "state": ["x", "y", "x"]})
    answers = pd.DataFrame({"state": ["x", "y"], "v": [0, 3]})
    published = pd.DataFrame({"user": ["b", "b", "a"], "step": [2, 1, 1], "z_0": [1.0, 1.0, 1.0], "estimate_0": 0.0})
    both = matrix.joined(months, published, None)
    assert both.state.tolist() == ["x", "y", "x"]
    assert matrix.mean_errors(both, answers) == pytest.approx((4 / 3, 1.0))
