"""Zones: a model whose states are polygons of a public file, and what is released and exported with it."""

from __future__ import annotations

import pytest

import dphmm

gpd = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")


@pytest.fixture
def wards(tmp_path):
    shapes = [shapely.box(13.3 + k / 100, 52.4, 13.31 + k / 100, 52.41) for k in range(4)]
    path = tmp_path / "wards.geojson"
    gpd.GeoDataFrame({"id": list("abcd")}, geometry=shapes, crs=4326).to_file(path)
    lines = [
        f"u{k},2024-05-06T08:{5 * i:02}:00Z,52.405,{13.305 + ((i + k) % 4) / 100}" for k in (0, 1) for i in range(8)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["user,t,lat,lon", *lines]) + "\n")
    return path


@pytest.mark.replayed_words
def test_zones_from_the_file_to_a_geopackage_of_the_release(tmp_path, wards, run, one_json, rows_of):
    made = run("model", "zones", wards, "--zone-id", "id", "--step", "5min", "--max-speed", "20km/h",
               "-o", tmp_path / "m.npz", "--json")  # fmt: skip
    assert one_json(made)["states"] == 4
    wards.unlink()
    covers = run("policy", "radius", tmp_path / "m.npz", "--covers", "1500m", "-o", tmp_path / "p.json", code=2)
    assert "--radius 1500m, between centres: zones have no covered distance" in covers.stderr
    run("policy", "radius", tmp_path / "m.npz", "--radius", "1km", "-o", tmp_path / "p.json")
    told = run("release", tmp_path / "rows.csv", "--model", tmp_path / "m.npz", "--policy", tmp_path / "p.json",
               "--epsilon", "1", "--ledger", tmp_path / "l.db", "-o", tmp_path / "r").stderr  # fmt: skip
    assert "if two zones whose centres are up to 1,000 m apart on the map seem equally likely" in " ".join(told.split())
    result = run("export", tmp_path / "r" / "released.csv", "-o", tmp_path / "z.gpkg", "--what", "z", "--json")
    assert one_json(result)["points"] == 16
    assert "--force" in run("export", tmp_path / "r" / "released.csv", "-o", tmp_path / "z.gpkg", code=2).stderr
    assert (
        "expected a name ending in .geojson"
        in run("export", tmp_path / "r" / "released.csv", "-o", tmp_path / "z.txt", code=2).stderr
    )


@pytest.mark.replayed_words
def test_areas_drawn_elsewhere_are_a_policy_of_a_release(tmp_path, wards, run, one_json):
    """Alone and beside a covered distance; the same from Python, and the release keeps the promise."""
    box = (13.3, 52.4, 13.34, 52.41)
    grid = ("--bbox", ",".join(map(str, box)), "--cell", "400m", "--step", "5min", "--max-speed", "20km/h")
    run("model", "grid", "-o", tmp_path / "g.npz", *grid)
    drawn = gpd.GeoDataFrame({"name": ["west", "both"]}, geometry=[shapely.box(13.3, 52.4, 13.32, 52.41),
                             shapely.box(13.31, 52.4, 13.34, 52.41)], crs=4326)  # fmt: skip
    drawn.to_file(tmp_path / "drawn.geojson")
    of_areas = ("policy", "areas", tmp_path / "g.npz", "--areas", tmp_path / "drawn.geojson")
    told = run(*of_areas, "-o", tmp_path / "a.json").stderr
    assert "west: " in told and "both: " in told
    run(*of_areas, "--covers", "400m", "-o", tmp_path / "p.json")
    options = {"cell": "400m", "step": "5min", "max_speed": "20km/h", "areas": tmp_path / "drawn.geojson"}
    for path, covers in (("a.json", None), ("p.json", "400m")):
        setup = dphmm.Setup.grid(box, covers=covers, **options)
        assert setup.policy.digest == dphmm.storage.load_policy(tmp_path / path, setup.space).digest
    with pytest.raises(dphmm.errors.InvalidInput, match="covers or areas and a policy"):
        dphmm.Setup.grid(box, policy=setup.policy, **options)
    given = ("--model", tmp_path / "g.npz", "--policy", tmp_path / "p.json", "--epsilon", "1", "--ledger", "l.db")
    run("release", tmp_path / "rows.csv", *given[:-1], tmp_path / "l.db", "-o", tmp_path / "r")
    assert "nothing is wrong" in run("check-release", tmp_path / "r").stdout
    near = shapely.box(13.3, 52.4, 13.3001, 52.4001)
    gpd.GeoDataFrame({"name": ["doorstep"]}, geometry=[near], crs=4326).to_file(tmp_path / "drawn.geojson")
    refused = run(*of_areas, "-o", tmp_path / "n.json", code=2).stderr
    assert refused.startswith("error: --areas: got doorstep, in which no cell has its centre; expected a larger area")


def test_a_model_of_one_zone_is_refused_without_a_word_of_a_box(tmp_path, run):
    path = tmp_path / "one.geojson"
    gpd.GeoDataFrame({"id": ["a"]}, geometry=[shapely.box(13.3, 52.4, 13.31, 52.41)], crs=4326).to_file(path)
    options = ("--zone-id", "id", "--step", "5min", "--max-speed", "20km/h", "-o", tmp_path / "m.npz")
    said = run("model", "zones", path, *options, code=2).stderr
    assert said.startswith("error: FILE: got ") and "one polygon; expected two or more" in said and "bbox" not in said


def test_a_fit_counts_moves_between_zones_of_a_model(tmp_path, wards, run, one_json):
    moving = ("--step", "5min", "--max-speed", "20km/h", "-o", tmp_path / "z.npz")
    assert "--zone-id: got nothing; expected the column" in run("model", "zones", wards, *moving, code=2).stderr
    wrong = run("model", "zones", wards, "--zone-id", "ward", *moving, code=2)
    assert "--zone-id: got ward; expected one of id" in wrong.stderr
    run("model", "zones", wards, "--zone-id", "id", *moving)
    fit = ("fit", tmp_path / "rows.csv", "--step", "5min", "--json")
    of_zones, private = ("--states-of", tmp_path / "z.npz"), ("--epsilon", "1", "--max-length", "8", "--seed", "1")
    assert one_json(run(*fit, *of_zones, "-o", tmp_path / "m.npz"))["states"] == 4
    assert one_json(run(*fit, *of_zones, *private, "-o", tmp_path / "n.npz"))["states"] == 4
    # States that were found among people without noise are not public.
    of_people = run(*fit, "--states-of", tmp_path / "m.npz", *private, "-o", tmp_path / "o.npz", code=2)
    assert "m.npz, which was fitted without privacy; expected a model of public states" in of_people.stderr
    both = run(*fit, *of_zones, "--grid", "1km", "-o", tmp_path / "o.npz", code=2)
    assert "states: got --grid and --states-of" in both.stderr


def test_zones_that_overlap_or_cross_themselves_are_told_with_the_option(tmp_path, wards, run):
    bowtie = shapely.Polygon([(13.6, 52.4), (13.7, 52.5), (13.7, 52.4), (13.6, 52.5)])
    gpd.GeoDataFrame({"id": ["x"]}, geometry=[bowtie], crs=4326).to_file(wards)
    arguments = ("model", "zones", wards, "--zone-id", "id", "--step", "5min", "--max-speed", "20km/h", "-o")
    assert "--mend-zones mends it" in run(*arguments, tmp_path / "m.npz", code=2).stderr
    shapes = [shapely.box(13, 52, 14, 53), shapely.box(13.5, 52, 14.5, 53)]
    gpd.GeoDataFrame({"id": ["x", "y"]}, geometry=shapes, crs=4326).to_file(wards)
    assert "FILE: got 'x' and 'y', which overlap" in run(*arguments, tmp_path / "m.npz", code=2).stderr
