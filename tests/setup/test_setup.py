"""A setting is made of public parts, and refuses what contradicts itself; its repr fits on five lines."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput

pytestmark = pytest.mark.replayed_words
BOX = (13.30, 52.48, 13.40, 52.54)
GRID = {"cell": "1km", "step": "10min", "max_speed": "20km/h"}


def test_a_grid_has_the_model_and_the_policy_of_its_parts():
    setup = dphmm.Setup.grid(BOX, **GRID, covers="2km")
    grid = dphmm.Grid.from_bounds(*BOX, cell="1km")
    model = dphmm.MarkovModel.from_geometry(grid, "10min", "20km/h")
    policy = dphmm.policy.radius(grid, covers="2km")
    assert (setup.model.digest, setup.policy.digest) == (model.digest, policy.digest)
    assert repr(setup).splitlines() == [
        f"Setup: {grid.n_states} cells of a map, steps of 10 minutes",
        "places up to 2,000 m apart look alike",
    ]
    assert "look alike" in setup._repr_html_()


def test_labels_move_as_their_weights_say():
    setup = dphmm.Setup.labels(["a", "b"], moves=[[3, 1], [1, 1]], first=[1, 3], step="1d", noun="case")
    assert setup.model.matrix_at(1).toarray() == pytest.approx(np.array([[0.75, 0.25], [0.5, 0.5]]))
    assert setup.model.initial == pytest.approx([0.25, 0.75]) and setup.model.step == 86_400
    assert repr(setup) == "Setup: 2 labels, steps of 1 day, one case after the other\nevery two labels look alike"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "covers"),
        ({"covers": "1km", "policy": dphmm.policy.complete(2)}, "covers"),
        ({"policy": dphmm.policy.complete(2)}, "space"),
        ({"covers": "1km", "noun": "\n"}, "noun"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(given, field):
    with pytest.raises(InvalidInput) as refused:
        dphmm.Setup.grid(BOX, **GRID, **given)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("given", "field"),
    [({"moves": [[1, 2]]}, "moves"), ({"moves": [[0, 0], [1, 1]]}, "moves"), ({"first": [-1, 2]}, "first")],
)
def test_weights_that_are_none_are_refused(given, field):
    with pytest.raises(InvalidInput) as refused:
        dphmm.Setup.labels(["a", "b"], **given)
    assert refused.value.field == field


def test_a_box_of_three_numbers_is_refused():
    with pytest.raises(InvalidInput, match="box"):
        dphmm.Setup.grid(BOX[:3], **GRID, covers="1km")


class TestFit:
    TABLE = pd.DataFrame({"user": ["u"] * 3 + ["v"] * 3, "step": [1, 2, 3] * 2, "state": list("aabbab")})
    SPACE = dphmm.StateSpace.labels(["a", "b"])

    def test_a_private_fit_is_counted_once(self, tmp_path):
        with dphmm.open_ledger(tmp_path / "l.db") as ledger:
            given = {"epsilon": 1, "max_length": 3, "ledger": ledger, "id": "walks"}
            first = dphmm.Setup.fit(self.TABLE, self.SPACE, **given)
            again = dphmm.Setup.fit(self.TABLE, self.SPACE, **given)
        assert first.model.digest == again.model.digest and first.model.provenance["private"] is True

    def test_a_fit_without_privacy_says_so(self, tmp_path):
        setup = dphmm.Setup.fit(self.TABLE, self.SPACE, epsilon=None)
        assert setup.model.provenance["private"] is False
        with dphmm.open_ledger(tmp_path / "l.db") as ledger, pytest.raises(InvalidInput, match="ledger"):
            dphmm.Setup.fit(self.TABLE, self.SPACE, epsilon=None, ledger=ledger)


def test_hexagons_over_a_box_hold_every_place_of_it():
    pytest.importorskip("h3")
    setup = dphmm.Setup.h3(BOX, resolution=8, step="10min", max_speed="20km/h", covers="1km")
    west, south, east, north = BOX
    # At the rim there may be slivers of other cells.
    inside = np.linspace(0.02, 0.98, 41)
    lat, lon = np.meshgrid(south + inside * (north - south), west + inside * (east - west))
    assert (setup.space.locate(lat.ravel(), lon.ravel()) >= 0).all()
    assert repr(setup).endswith("m apart look alike")
    with pytest.raises(InvalidInput, match=r"^resolution: got 13"):
        dphmm.Setup.h3(BOX, resolution=13, step="10min", max_speed="20km/h", covers="1km")


def test_zones_of_a_file_look_alike_unless_a_policy_says_otherwise(tmp_path):
    pytest.importorskip("geopandas")
    square = [[0, 0], [0.01, 0], [0.01, 0.01], [0, 0.01], [0, 0]]
    features = [
        {"type": "Feature", "properties": {"ward": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for name, ring in (("w", square), ("e", [[x + 0.01, y] for x, y in square]))
    ]
    (tmp_path / "wards.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    setup = dphmm.Setup.zones(tmp_path / "wards.geojson", name="ward", step="10min", max_speed="20km/h")
    assert setup.space.names == ("w", "e") and setup.policy.edges().tolist() == [[0, 1]]
