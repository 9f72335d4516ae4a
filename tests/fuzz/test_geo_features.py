"""A feature of GeoJSON, whatever it holds, decides nothing about the features of others.

Any JSON stands as the feature, its properties, its geometry or its coordinates, at any place but the first, whose names
are the header. The rows of all others stay, in their order, and so do their rejected ones. It would fail for a reader
that judges a property or a place by what another feature has there. The default run is the same every time.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS

pytest.importorskip("pyogrio", reason="pyogrio is not installed")

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from(["x", "2024-05-06T08:00:00", "1e999", "nan", "Point", "a"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["user", "t", "type", "lat", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def feature(user, moment, coordinates):
    point = {"type": "Point", "coordinates": coordinates}
    return {"type": "Feature", "properties": {"user": user, "t": moment, "trip": 1}, "geometry": point}


OTHERS = [
    feature("a", "2024-05-06T08:00:00Z", [10.01, 50.01]),
    feature("b", "2024-05-06T08:05:00Z", [10.02, 50.01]),
    feature("a", "2024-05-06T08:05:00", [10.02, 50.01]),
    feature("b", "2024-05-06T08:10:00Z", [10.02, 500]),
]


@st.composite
def added(draw):
    """A feature of somebody named x, or of nobody, spoiled at one place."""
    made = feature("x", "2024-05-06T08:00:00Z", [10.01, 50.01])
    place = draw(st.sampled_from(["feature", "properties", "geometry", "coordinates", "t", "trip", "more"]))
    value = draw(VALUES)
    if place == "feature":
        made = value if not isinstance(value, dict) else {**value, "properties": None}
    elif place in ("properties", "geometry"):
        made[place] = value if place == "geometry" or not isinstance(value, dict) else {**value, "user": "x"}
    elif place == "coordinates":
        made["geometry"][place] = value
    else:
        made["properties"][place] = value
    return made


def read(features):
    """The rows of the others, in order, their rejected rows by their number among them, and the types."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        imported = IMPORTERS["geo"](path)
    table = imported.trajectories.to_arrow()
    own = [number for number, each in enumerate(features, start=1) if any(each is other for other in OTHERS)]
    rejected = [(own.index(row["row"]), row["reason"]) for row in imported.rejected.to_pylist() if row["row"] in own]
    return table.schema, [row for row in table.to_pylist() if row["user"] in ("a", "b")], rejected


EXPECTED = read(OTHERS)


def tried(examples, derandomize):
    @settings(max_examples=examples, derandomize=derandomize, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.lists(added(), min_size=1, max_size=2), st.integers(1, len(OTHERS)))
    def run(features, at):
        try:
            assert read([*OTHERS[:at], *features, *OTHERS[at:]]) == EXPECTED
        except InvalidInput as refused:
            raise AssertionError(f"refused: {refused}") from None

    run()


@pytest.mark.slow
def test_a_feature_decides_nothing_about_others():
    # A row whose place nobody can read keeps its moment, without a place.
    assert len(EXPECTED[1]) == 3 and [reason for _, reason in EXPECTED[2]] == ["time_without_zone", "invalid_place"]
    tried(150, derandomize=True)


@pytest.mark.long
def test_many_features_decide_nothing_about_others():
    tried(3000, derandomize=False)
