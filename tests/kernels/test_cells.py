"""The loops over neighbouring cells give what a dictionary of cells gives, with a table of cells and by bisection.

It could fail for a cell beside the border, one that is missing between two others, a neighbour that is not active, and
a cell whose own surrogates differ.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm._kernels import cells, policy

STRIDE, MARGIN = 40, 200
#: One offset of each pair ±: east, north, north-east, two to the west and one to the north.
OFFSETS = ((1, 0), (0, 1), (1, 1), (-2, 1))
DELTAS = np.array([x + STRIDE * y for x, y in OFFSETS])


def world(seed, dense):
    """Some cells of a grid in order, which of them are active, and their number by linear index."""
    rng = np.random.default_rng(seed)
    places = [(x, y) for y in range(5) for x in range(6) if rng.random() < 0.7]
    linear = np.array([MARGIN + x + STRIDE * y for x, y in places])
    table = np.zeros(0, dtype=np.int64)
    if dense:
        table = np.full(MARGIN + 6 * STRIDE + MARGIN, -1)
        table[linear] = np.arange(len(linear))
    return rng, places, linear, rng.random(len(linear)) < 0.8, table


def beside(places, active):
    """The pairs of active cells that an offset joins: (cell, other, number of the offset)."""
    number = {place: k for k, place in enumerate(places)}
    for k, (x, y) in enumerate(places):
        for d, (dx, dy) in enumerate(OFFSETS):
            other = number.get((x + dx, y + dy), -1)
            if other >= 0 and active[k] and active[other]:
                yield k, other, d


worlds = pytest.mark.parametrize("dense", [True, False], ids=["table", "bisection"])
seeds = pytest.mark.parametrize("seed", range(12))


@worlds
def test_a_cell_is_found_where_it_is_and_nowhere_else(dense):
    _, _, linear, _, table = world(0, dense)
    at = {int(index): cell for cell, index in enumerate(linear)}
    for target in range(MARGIN - 50, MARGIN + 5 * STRIDE):
        assert cells.cell_at(target, linear, table) == at.get(target, -1)


@worlds
@seeds
def test_offsets_that_join_active_cells_are_found(seed, dense):
    _, places, linear, active, table = world(seed, dense)
    found = {d for _, _, d in beside(places, active)}
    assert cells.occurring(linear, active, DELTAS, table).tolist() == [d in found for d in range(len(OFFSETS))]


@worlds
@seeds
def test_the_widest_pair_is_the_widest_of_all(seed, dense):
    rng, places, linear, active, table = world(seed, dense)
    low = rng.integers(-9, 9, len(places))
    high = low + rng.integers(0, 4, len(places))
    one, other = cells.widest_pair(linear, active, DELTAS, table, low, high)
    pairs = {(k, k) for k in np.flatnonzero(active).tolist()}
    pairs |= {pair for a, b, _ in beside(places, active) for pair in ((a, b), (b, a))}
    assert (one, other) in pairs
    assert high[one] - low[other] == max(high[a] - low[b] for a, b in pairs)


@worlds
@seeds
def test_linked_cells_have_another_surrogate_in_them_or_beside_them(seed, dense):
    rng, places, linear, active, table = world(seed, dense)
    images = [sorted(rng.integers(0, 3, rng.integers(1, 3)).tolist()) for _ in places]
    least, most = np.array([row[0] for row in images]), np.array([row[-1] for row in images])
    linked = [bool(active[k]) and least[k] != most[k] for k in range(len(places))]
    for a, b, _ in beside(places, active):
        if len({least[a], most[a], least[b], most[b]}) > 1:
            linked[a] = linked[b] = True
    assert cells.linked_cells(linear, active, DELTAS, table, least, most).tolist() == linked


@worlds
@seeds
def test_images_are_linked_where_a_state_has_another_image_beside_it(seed, dense):
    rng, places, linear, support, table = world(seed, dense)
    n = len(places)
    plan = np.flatnonzero(support)[::2]
    surrogate = plan[rng.integers(0, len(plan), n)]
    surrogate[plan] = plan
    each = np.arange(n)
    linked = np.zeros(n, dtype=bool)
    for a, b, _ in beside(places, support):
        if surrogate[a] != surrogate[b]:
            linked[surrogate[a]] = linked[surrogate[b]] = True
    found = cells.linked_images(linear, each, each, DELTAS, table, support, surrogate, plan)
    assert found.tolist() == linked.tolist()


@worlds
@seeds
def test_active_cells_that_touch_are_in_one_component(seed, dense):
    _, places, linear, active, table = world(seed, dense)
    n = len(places)
    parent, image = np.arange(n), np.arange(n)
    cells.join_cells(parent, linear, active, DELTAS, table, image)
    label = list(range(n))
    for a, b, _ in beside(places, active):
        label = [label[a] if one == label[b] else one for one in label]
    seen = list(dict.fromkeys(label))
    assert policy.number_components(parent, np.ones(n, dtype=bool)).tolist() == [seen.index(one) for one in label]


def test_points_are_translated_by_one_vector_or_not():
    points = np.array([[0, 0], [1, 3], [2, 1]])
    assert cells.translated(points, points + np.array([5, -2]))
    assert not cells.translated(points, points + np.array([[5, -2], [5, -2], [5, -1]]))


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_offsets_longer_than_the_active_points_extend_are_left_out(dimension):
    rng = np.random.default_rng(dimension)
    points, active = rng.integers(-4, 5, (9, dimension)), rng.random(9) < 0.6
    offsets = rng.integers(-8, 9, (30, dimension))
    extent = np.ptp(points[active], axis=0)
    near = (np.abs(offsets) <= extent).all(axis=1)
    assert cells.within_extent(points, active, offsets).tolist() == near.tolist()
    assert not cells.within_extent(points, np.zeros(9, dtype=bool), offsets).any()
