from __future__ import annotations

import sys

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.states import H3

h3 = pytest.importorskip("h3")

RNG = np.random.default_rng(11)
LAT, LON = RNG.uniform(39.85, 39.99, 3000), RNG.uniform(116.28, 116.48, 3000)


def test_states_are_the_distinct_cells_in_order():
    space = H3.covering(LAT, LON, resolution=7)
    cells = sorted({h3.latlng_to_cell(a, o, 7) for a, o in zip(LAT, LON, strict=True)}, key=lambda c: int(c, 16))
    assert list(space.names) == cells
    assert space.locate(LAT, LON).tolist() == [
        space.index_of(h3.latlng_to_cell(a, o, 7)) for a, o in zip(LAT, LON, strict=True)
    ]


def test_other_cells_are_outside():
    space = H3.covering(LAT[:5], LON[:5], resolution=9)
    assert space.locate(0.0, 0.0) == -1
    assert space.locate([np.nan, 91.0], [0.0, 0.0]).tolist() == [-1, -1]
    assert space.locate(LAT[:1], LON[:1])[0] >= 0
    part = space.subset([0])
    assert set(part.locate(LAT[:5], LON[:5]).tolist()) == {-1, 0}


def test_answers_are_metres_about_the_middle():
    space = H3.covering(LAT, LON)
    lat, lon = space.to_latlon(space.raw_answers)
    centres = np.array([h3.cell_to_latlng(name) for name in space.names])
    assert np.abs(np.stack([lat, lon], axis=1) - centres).max() < 1e-9
    middle = (space.raw_answers.min(axis=0) + space.raw_answers.max(axis=0)) / 2
    assert np.abs(middle) == pytest.approx([0, 0], abs=1)
    first, second = centres[0], centres[1]
    apart = h3.great_circle_distance(first, second, unit="m")
    assert np.hypot(*(space.raw_answers[0] - space.raw_answers[1])) == pytest.approx(apart, rel=0.01)


def test_the_default_pitch_depends_on_the_resolution_only():
    one, two = H3.covering(LAT, LON), H3.covering(LAT[:4], LON[:4] + 50)
    assert one.pitch.tolist() == two.pitch.tolist() == [5.3, 5.3]
    assert (one.snap_error <= one.pitch / 2 * (1 + 1e-9)).all()
    assert H3.covering(LAT, LON, pitch=100).pitch.tolist() == [100, 100]


def test_a_cover_across_the_antimeridian_lies_together():
    lon = np.array([179.95, 179.99, -179.99, -179.95])
    space = H3.covering(np.full(4, -17.0), lon, resolution=7)
    assert np.ptp(space.raw_answers[:, 0]) < 20_000
    assert (space.locate(np.full(4, -17.0), lon) >= 0).all()
    assert space.nearest(-17.0, 179.95) == space.locate(-17.0, 179.95)


@pytest.mark.parametrize("resolution", [-1, 16, 8.5, True, "8"])
def test_bad_resolutions_are_refused(resolution):
    with pytest.raises(InvalidInput, match="resolution"):
        H3.covering(LAT, LON, resolution)


def test_bad_places_are_refused_without_being_named():
    for lat, lon in (([], []), ([np.nan], [0.0]), ([90.123], [0.0]), ([0.0], [np.inf])):
        with pytest.raises(InvalidInput) as refused:
            H3.covering(lat, lon)
        assert "90.123" not in str(refused.value)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "h3", None)
    monkeypatch.setitem(sys.modules, "h3.api", None)
    monkeypatch.setitem(sys.modules, "h3.api.basic_int", None)
    with pytest.raises(InvalidInput, match=r"dphmm\[h3\]"):
        H3.covering(LAT, LON)


@pytest.mark.parametrize("resolution", [4, 7, 9])
def test_corners_are_those_of_the_cells(resolution):
    """In degrees again they are h3's own; just inside of them lies the cell, just outside another one or none."""
    space = H3.covering(LAT[:60], LON[:60], resolution)
    for state, ring in enumerate(space.corners):
        own = np.array(h3.cell_to_boundary(space.names[state]))
        assert len(ring) == len(own) >= 6
        lat, lon = space.to_latlon(space.answers[state] + ring)
        off = space.projection.to_metres(lat, lon) - space.projection.to_metres(*own.T)
        assert np.abs(off).max() <= h3.average_hexagon_edge_length(resolution, unit="m") / 50
        for share, inside in ((0.97, True), (1.03, False)):
            lat, lon = space.to_latlon(space.raw_answers[state] + share * ring)
            assert ((space.locate(lat, lon) == state) == inside).all()


def test_corners_of_pentagons_and_across_an_edge_of_the_icosahedron_and_the_antimeridian():
    pentagon = h3.get_pentagons(3)[2]
    lat, lon = h3.cell_to_latlng(pentagon)
    across = [cell for cell in h3.grid_disk(pentagon, 6) if len(h3.cell_to_boundary(cell)) > 6]
    assert across
    assert len(H3([lat], [lon], 3).corners[0]) == len(h3.cell_to_boundary(pentagon))
    lat, lon = np.array([h3.cell_to_latlng(cell) for cell in across]).T
    assert {len(ring) for ring in H3(lat, lon, 3).corners} == {len(h3.cell_to_boundary(cell)) for cell in across}
    for ring in H3([-17.0, -17.0], [179.99, -179.99], 7).corners:
        assert np.abs(ring).max() < 3000


def test_a_coarse_pitch_leaves_cells_where_they_are():
    """Answers are moved far, cells are not: they still have no gaps."""
    space = H3.covering(LAT[:60], LON[:60], 7, pitch=900)
    for state, ring in enumerate(space.corners):
        lat, lon = space.to_latlon(space.answers[state] + ring)
        assert np.abs(np.stack([lat, lon], axis=1) - np.array(h3.cell_to_boundary(space.names[state]))).max() < 1e-9


def test_cells_that_are_not_those_of_the_answers_have_no_corners():
    """A model file may say anything."""
    space = H3.covering(LAT[:60], LON[:60], 7)
    assert space.corners is not None
    for cells in (space.cells + np.uint64(2**59), np.sort(H3.covering(LAT[:60] - 1, LON[:60], 7).cells)):
        meta, arrays = space.describe()
        n = min(len(cells), space.n_states)
        forged = H3._restore(meta, {name: part[:n] for name, part in {**arrays, "cells": cells}.items()})
        assert forged.corners is None


def test_without_the_package_there_are_no_corners(monkeypatch):
    space = H3.covering(LAT[:9], LON[:9], 7)
    for name in ("h3", "h3.api", "h3.api.basic_int"):
        monkeypatch.setitem(sys.modules, name, None)
    assert space.corners is None


def test_the_base_cells_that_are_pentagons_are_those_of_the_library():
    from dphmm.states import hexes

    assert {h3.get_base_cell_number(cell) for cell in h3.get_pentagons(0)} == hexes._PENTAGONS


def test_the_gap_of_squares_that_meet_nowhere_is_between_their_nearest_corners():
    """Diagonally apart, no corner is beside a side of the other square."""
    from dphmm.states.maps import _corner_gaps, unit_vectors

    lat, lon = np.array([0.0, 0.0, 0.1, 0.1]), np.array([0.0, 0.1, 0.1, 0.0])
    one, other = unit_vectors(lat, lon)[None], unit_vectors(lat + 0.5, lon + 0.5)[None]
    nearest = np.arccos(one[0, 2] @ other[0, 0])
    assert _corner_gaps(one, other)[0] == pytest.approx(nearest, rel=1e-6)
    assert _corner_gaps(other, one)[0] == pytest.approx(nearest, rel=1e-6)
