"""Zones: polygons as states, found by place, saved with a model, refused where they overlap or are none."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.states import Zones, from_description

shapely = pytest.importorskip("shapely")
box = shapely.box

HOLED = shapely.difference(box(13.3, 52.4, 13.4, 52.5), box(13.34, 52.44, 13.36, 52.46))
BOWTIE = shapely.Polygon([(13.6, 52.4), (13.7, 52.5), (13.7, 52.4), (13.6, 52.5)])
SHAPES = [
    HOLED,
    box(13.34, 52.44, 13.36, 52.46),
    shapely.union(box(13.4, 52.4, 13.5, 52.5), box(13.8, 52.4, 13.9, 52.5)),
]
NAMES = ["ring", "hole", "two parts"]


def zones():
    return Zones(NAMES, SHAPES)


def naive(lat, lon):
    """The first zone that covers a place."""
    return next((k for k, shape in enumerate(SHAPES) if shape.covers(shapely.Point(lon, lat))), -1)


@given(st.lists(st.tuples(st.floats(52.38, 52.52), st.floats(13.28, 13.92)), max_size=20))
def test_a_place_is_in_the_first_zone_that_covers_it(places):
    lat, lon = np.array(places, dtype=np.float64).reshape(-1, 2).T
    assert zones().locate(lat, lon).tolist() == [naive(*place) for place in places]


def test_borders_far_places_and_turns_round_the_earth():
    space = zones()
    assert space.locate(52.45, 13.4) == 0 and space.locate(52.45, 13.34) == 0
    assert space.locate(52.45, 13.35) == 1 and space.locate(52.45, 13.85 - 360) == 2
    assert space.locate(-52.45, 13.35) == -1 and space.locate(np.nan, 13.35) == -1


def test_an_answer_lies_in_its_own_zone_in_metres_on_the_lattice():
    space = zones()
    assert space.locate(*space.to_latlon(space.answers)).tolist() == [0, 1, 2]
    assert space.names == tuple(NAMES) and space.on_map and space.unit == "m"
    assert np.array_equal(space.frame.to_lattice(space.answers), space.lattice)
    again = Zones(NAMES[::-1], SHAPES[::-1])
    assert np.array_equal(again.answers[::-1], space.answers)


def restored(space):
    meta, arrays = space.describe()
    return from_description(json.loads(json.dumps(meta)), arrays)


@pytest.mark.parametrize("kept", [[0, 1, 2], [2], [0, 2], [1, 2]])
def test_a_part_and_a_restored_space_find_the_same_zones(kept):
    part = zones().subset(kept)
    assert part.names == tuple(NAMES[k] for k in kept)
    for space in (part, restored(part)):
        assert all(a.equals(SHAPES[k]) for a, k in zip(space.polygons, kept, strict=True))
        assert space.digest == part.digest
        expected = {k: state for state, k in enumerate(kept)}
        found = space.locate([52.41, 52.45, 52.45], [13.31, 13.35, 13.85])
        assert found.tolist() == [expected.get(k, -1) for k in range(3)]


def test_a_merged_zone_is_found_where_it_is_and_answered_as_its_partner():
    space = restored(zones().merged({1: 0}))
    assert space.locate(52.45, 13.35) == 1
    assert np.array_equal(space.answers[1], space.answers[0])


def test_other_outlines_are_another_space():
    moved = Zones(["a", "b"], [box(0, 0, 1, 1), box(1, 0, 2, 1)])
    assert moved.digest != Zones(["a", "b"], [box(0, 0, 1, 1), box(1, 0, 2, 1.5)]).digest


BAD = [
    (["a", "a"], [box(0, 0, 1, 1), box(2, 0, 3, 1)], r"names\[1\]"),
    (["a", "b"], [box(0, 0, 1, 1), box(0.9, 0, 2, 1)], "zones: got 'a' and 'b', which overlap;"),
    (["a", "b", "c"], [box(0, 0, 1, 1), box(0.2, 0.2, 0.4, 0.4), box(0.5, 0.5, 2, 2)], "overlap, and 1 more pairs"),
    (["a"], [shapely.Polygon()], "zone 'a': got an empty polygon"),
    (["a"], [shapely.box(10, 50, 10 + 5e-15, 50 + 5e-15)], "zone 'a': got a polygon without an area"),
    (["a"], [shapely.Point(0, 0)], "zone 'a': got Point"),
    (["a"], [None], "zone 'a': got nothing"),
    (["a"], [BOWTIE], "crosses itself; expected .*mend=True"),
    (["a"], [box(52.4, 113.3, 52.5, 113.4)], "are they swapped"),
    (["a"], [box(179, 0, 181, 1)], "180 east and west"),
    (["a"], [box(0, 0, np.inf, 1)], "zone 'a'"),
    ([], [], "at least 1"),
]  # fmt: skip


@pytest.mark.parametrize(("names", "shapes", "told"), BAD)
def test_what_is_no_zone_is_refused_by_its_name(names, shapes, told):
    with pytest.raises(InvalidInput, match=told):
        Zones(names, shapes)


def test_zones_that_share_no_more_than_rounding_leaves_are_apart():
    near = Zones(["a", "b"], [box(0, 0, 1, 1), box(1 - 1e-9, 0, 2, 1)])
    assert near.locate(0.5, 1 - 5e-10) == 0


def test_an_outline_that_crosses_itself_is_mended_where_that_is_asked():
    speck = shapely.box(10, 50, 10 + 5e-15, 50 + 5e-15)
    beside = shapely.MultiPolygon([shapely.box(11, 50, 12, 51), speck])
    with pytest.raises(InvalidInput, match=r"without an area; expected .*mend=True"):
        Zones(["a"], [beside])
    assert Zones(["a"], [beside], mend=True).polygons[0].equals(shapely.box(11, 50, 12, 51))
    space = Zones(["a"], [BOWTIE], mend=True)
    assert space.polygons[0].is_valid and space.polygons[0].geom_type == "MultiPolygon"


SPOILED = [
    ("coordinates", lambda a: a[:-1]),
    ("coordinates", lambda a: a.astype(np.float32)),
    ("coordinates", lambda a: a * np.nan),
    ("rings", lambda a: a + 1),
    ("rings", lambda a: a[::-1].copy()),
    ("polygons", lambda a: a[:-1]),
    ("zones", lambda a: np.append(a, a[-1])),
    ("zones", lambda a: a.astype(np.int32)),
    ("coordinates", lambda a: np.vstack([a[:-1], a[:1] + 1])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spoil"), SPOILED)
def test_outlines_of_a_file_that_do_not_fit_together_are_refused(name, spoil):
    meta, arrays = zones().describe()
    with pytest.raises(InvalidInput):
        from_description(meta, arrays | {name: spoil(arrays[name])})


def test_a_model_from_zones_alone_moves_to_near_ones_and_stays_uniform():
    space = Zones(list("abc"), [box(0, 0, 0.01, 0.01), box(0.01, 0, 0.02, 0.01), box(0.1, 0, 0.11, 0.01)])
    model = MarkovModel.from_geometry(space, "5min", "20km/h", stay=0.5, jump=0)
    moves = model.matrix.toarray()
    assert np.allclose(moves, moves.T) and np.allclose(moves.sum(axis=1), 1)
    assert moves[0, 1] > 0 and moves[0, 2] == 0 and moves[2, 2] == 1
    assert np.allclose(moves[0, 0], 0.5)
    with pytest.raises(InvalidInput, match="nobody would move"):
        MarkovModel.from_geometry(space, "1s", "1km/h")


def test_people_are_anywhere_in_their_zone():
    """An L, whose own point is in one arm: places are uniform, so that their mean is the centroid."""
    ell = shapely.Polygon([(13.0, 52.0), (13.3, 52.0), (13.3, 52.01), (13.01, 52.01), (13.01, 52.3), (13.0, 52.3)])
    zones = Zones(["ell", "other"], [ell, box(13.3, 52.1, 13.4, 52.2)])
    drawn = zones.draw(np.zeros(20_000, dtype=np.int64), np.random.default_rng(1))
    assert (zones.locate(*zones.to_latlon(drawn)) == 0).all()
    middle = zones.projection.to_metres(np.array([ell.centroid.y]), np.array([ell.centroid.x]))[0]
    spread = drawn.std(axis=0) / np.sqrt(len(drawn))
    # Four standard errors: a wrong answer once in 8,000 seeds, and this seed is fixed.
    assert (np.abs(drawn.mean(axis=0) - middle) < 4 * spread).all()


def of_boxes(*boxes):
    """A zone of separate boxes, and uniform places in it, box by box: a generator gives as many as asked for."""
    corners = np.array(boxes)
    areas = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])

    def draw(n, rng):
        own = corners[rng.choice(len(boxes), n, p=areas / areas.sum())]
        return own[:, :2] + rng.random((n, 2)) * (own[:, 2:] - own[:, :2])

    return shapely.union_all([box(*one) for one in boxes]), draw


def diagonal(width):
    """A strip across a map, as thin as nothing beside its box."""

    def draw(n, rng):
        along, across = rng.random((2, n, 1))
        return np.array([[13.0, 52.0]]) + along * np.array([[1.0, 1.0]]) + across * np.array([[width, 0.0]])

    return shapely.Polygon([(13, 52), (13 + width, 52), (14 + width, 53), (14, 53)]), draw


def ring():
    def draw(n, rng):
        tried = 13 + rng.random((200 * n, 2))
        return tried[(np.abs(tried - 13.5) > 0.49).any(axis=1)][:n]

    return box(13, 13, 14, 14).difference(box(13.01, 13.01, 13.99, 13.99)), draw


def round_road():
    """A circle, thin beside its size, of many corners."""

    def draw(n, rng):
        angle = rng.random(n) * 2 * np.pi
        return np.array([13.5, 13.5]) + 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    middle = shapely.Point(13.5, 13.5)
    return middle.buffer(0.5, 64).difference(middle.buffer(0.4999, 64)), draw


OUTLINES = {
    "a box": lambda: of_boxes((13.0, 52.0, 13.3, 52.1)),
    "a square and a thin strip far from it": lambda: of_boxes((13.0, 52.0, 13.07, 52.07), (13.49, 52.1, 13.5, 52.45)),
    "two islands": lambda: of_boxes((13.0, 52.0, 13.001, 52.001), (13.8, 52.3, 13.801, 52.301)),
    "a large part and a small one": lambda: of_boxes((13.0, 52.0, 13.3, 52.3), (13.9, 52.0, 14.0, 52.1)),
    "streets": lambda: of_boxes(*((13.0, 52 + k / 10, 14.0, 52.001 + k / 10) for k in range(9))),
    "a thin ring": ring,
    "a round road": round_road,
    "a strip across": lambda: diagonal(1e-3),
    "a line across": lambda: diagonal(1e-7),
}


@pytest.mark.parametrize("shape", OUTLINES)
def test_places_and_people_are_all_over_a_zone(shape):
    """How far they are from the middle is what a sampler of the shape's own says, people to 1.5 %, and places."""
    polygon, draw = OUTLINES[shape]()
    zones, rng = Zones(["own"], [polygon]), np.random.default_rng(5)
    lon, lat = draw(40_000, rng).T
    true = zones.projection.to_metres(lat, lon)
    people = zones.draw(np.zeros(40_000, dtype=np.int64), rng)
    due = np.linalg.norm(true - true.mean(axis=0), axis=1).mean()
    assert np.linalg.norm(people - true.mean(axis=0), axis=1).mean() == pytest.approx(due, rel=0.015)
    for count, rel in ((16, 0.15), (64, 0.04)):
        even = zones.places(count)[0]
        assert np.linalg.norm(even - even.mean(axis=0), axis=1).mean() == pytest.approx(due, rel=rel)


def test_a_zone_of_many_has_places_of_its_own():
    """Two zones of which one lies in a hole of the other, and of different size."""
    outer, inner = box(13.0, 52.0, 13.4, 52.3), box(13.1, 52.1, 13.2, 52.2)
    zones = Zones(["inner", "outer"], [inner, outer.difference(inner)])
    for state, own in enumerate(zones.places(64)):
        assert (zones.locate(*zones.to_latlon(own)) == state).all()
    states = np.random.default_rng(3).integers(2, size=1000)
    drawn = zones.draw(states, np.random.default_rng(4))
    assert np.array_equal(zones.locate(*zones.to_latlon(drawn)), states)
