"""The loops over graphs give what sets and dictionaries give.

It could fail for a row that is empty, members that end a row where the next begins, a surrogate that maps two members
of a clique to one, components that meet late, and a cap that an edge passes at one end alone.

The loops over neighbouring cells give what a dictionary of cells gives, with a table of cells and by bisection.

It could fail for a cell beside the border, one that is missing between two others, a neighbour that is not active, and
a cell whose own surrogates differ.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm._kernels import policy


def packed(groups):
    """Rows of members as compressed rows."""
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in groups])]).astype(np.int64)
    return ptr, np.array([member for row in groups for member in row], dtype=np.int64)


def cliques(rng, n, rows):
    """Ascending members of some rows, each of them at least one."""
    return [sorted(rng.choice(n, rng.integers(1, n), replace=False).tolist()) for _ in range(rows)]


@pytest.mark.parametrize("seed", range(20))
def test_plan_states_and_others_are_those_of_the_masks(seed):
    rng = np.random.default_rng(seed)
    support, plan = rng.random(9) < 0.6, rng.random(9) < 0.5
    states, others, impossible = policy.planned(support, plan)
    assert states.tolist() == np.flatnonzero(plan).tolist()
    assert others == bool((support & ~plan).any())
    assert impossible == next((state for state in range(9) if plan[state] and not support[state]), -1)


@pytest.mark.parametrize(
    ("surrogate", "said"),
    [([0, 0, 2, 2], ""), ([0, -1, 2, 2], "missing"), ([0, 3, 2, 2], "outside"), ([2, 0, 2, 2], "moved"),
     ([0, 0, 2, -1], ""), ([0, 0, 2, 4], "missing"), ([0, 0, 2, -2], "missing")],
)  # fmt: skip
def test_a_surrogate_map_fits_or_the_fault_is_named(surrogate, said):
    support, plan = np.array([True, True, True, False]), np.array([True, False, True, False])
    assert policy.misplaced(support, plan, np.array(surrogate)) == said


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_asked_as_sets_are(seed):
    rng = np.random.default_rng(seed)
    n, groups = 10, cliques(rng, 10, 4)
    ptr, members = packed(groups)
    states = rng.permutation(n)[:6]
    together = {state for row in groups for state in row}
    assert policy.outside_rows(states, members, n).tolist() == [s for s in states.tolist() if s not in together]
    rows_of = [[k for k, row in enumerate(groups) if state in row] for state in range(n)]
    a, b = rng.integers(0, n, 15), rng.integers(0, n, 15)
    shared = [bool(set(rows_of[i]) & set(rows_of[j])) for i, j in zip(a, b, strict=True)]
    assert policy.in_one_row(*packed(rows_of), a, b).tolist() == shared
    values = rng.integers(-9, 10, n)
    high, low = policy.widest_row(ptr, members, values)
    assert values[high] - values[low] == max(np.ptp(values[row]) for row in groups)
    assert any({high, low} <= set(row) for row in groups)


@pytest.mark.parametrize("seed", range(40))
def test_contracted_cliques_are_the_surrogates_of_possible_members(seed):
    rng = np.random.default_rng(seed)
    n, groups = 12, cliques(rng, 12, 5)
    groups += [groups[-1]]
    support, surrogate = rng.random(n) < 0.7, rng.integers(0, 5, n)
    run_ptr, first, last = policy.runs_of_rows(*packed(groups))
    unrolled = [
        [state for k in range(run_ptr[row], run_ptr[row + 1]) for state in range(first[k], last[k] + 1)]
        for row in range(len(groups))
    ]
    assert unrolled == groups
    longest = sum(map(len, groups))
    ptr, members = policy.contract_cliques(run_ptr, first, last, longest, support, surrogate)
    found = [members[ptr[k] : ptr[k + 1]].tolist() for k in range(len(ptr) - 1)]
    expected = []
    for row in groups:
        images = list(dict.fromkeys(surrogate[state] for state in row if support[state]))
        if len(images) >= 2 and (not expected or images != expected[-1]):
            expected.append(images)
    assert found == expected


@pytest.mark.parametrize("seed", range(30))
def test_components_are_those_of_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    n = 14
    a, b = rng.integers(0, n, 6), rng.integers(0, n, 6)
    groups = [rng.choice(n, 2, replace=False).tolist() for _ in range(2)]
    plan = rng.random(n) < 0.8
    parent = np.arange(n)
    policy.join_pairs(parent, a, b)
    policy.join_rows(parent, *packed(groups))
    label = list(range(n))
    for i, j in [*zip(a.tolist(), b.tolist(), strict=True), *groups]:
        label = [label[i] if one == label[j] else one for one in label]
    seen = list(dict.fromkeys(label[state] for state in range(n) if plan[state]))
    expected = [seen.index(label[state]) if plan[state] else -1 for state in range(n)]
    assert policy.number_components(parent, plan).tolist() == expected


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_an_edge_counts_while_both_ends_have_room(cap):
    rng = np.random.default_rng(cap)
    n, first, second = 6, rng.integers(0, 6, 20), rng.integers(0, 6, 20)
    second = np.where(second == first, (second + 1) % n, second)
    order, degrees = rng.permutation(20), np.full(n, 99)
    policy.capped_degrees(first, second, order, n, cap, degrees)
    expected = [0] * n
    for at in order:
        if expected[first[at]] < cap and expected[second[at]] < cap:
            expected[first[at]] += 1
            expected[second[at]] += 1
    assert degrees.tolist() == expected


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
        assert policy.cell_at(target, linear, table) == at.get(target, -1)


@worlds
@seeds
def test_offsets_that_join_active_cells_are_found(seed, dense):
    _, places, linear, active, table = world(seed, dense)
    found = {d for _, _, d in beside(places, active)}
    assert policy.occurring(linear, active, DELTAS, table).tolist() == [d in found for d in range(len(OFFSETS))]


@worlds
@seeds
def test_the_widest_pair_is_the_widest_of_all(seed, dense):
    rng, places, linear, active, table = world(seed, dense)
    low = rng.integers(-9, 9, len(places))
    high = low + rng.integers(0, 4, len(places))
    one, other = policy.widest_pair(linear, active, DELTAS, table, low, high)
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
    assert policy.linked_cells(linear, active, DELTAS, table, least, most).tolist() == linked


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
    found = policy.linked_images(linear, each, each, DELTAS, table, support, surrogate, plan)
    assert found.tolist() == linked.tolist()


@worlds
@seeds
def test_active_cells_that_touch_are_in_one_component(seed, dense):
    _, places, linear, active, table = world(seed, dense)
    n = len(places)
    parent, image = np.arange(n), np.arange(n)
    policy.join_cells(parent, linear, active, DELTAS, table, image)
    label = list(range(n))
    for a, b, _ in beside(places, active):
        label = [label[a] if one == label[b] else one for one in label]
    seen = list(dict.fromkeys(label))
    assert policy.number_components(parent, np.ones(n, dtype=bool)).tolist() == [seen.index(one) for one in label]


def test_points_are_translated_by_one_vector_or_not():
    points = np.array([[0, 0], [1, 3], [2, 1]])
    assert policy.translated(points, points + np.array([5, -2]))
    assert not policy.translated(points, points + np.array([[5, -2], [5, -2], [5, -1]]))


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_offsets_longer_than_the_active_points_extend_are_left_out(dimension):
    rng = np.random.default_rng(dimension)
    points, active = rng.integers(-4, 5, (9, dimension)), rng.random(9) < 0.6
    offsets = rng.integers(-8, 9, (30, dimension))
    extent = np.ptp(points[active], axis=0)
    near = (np.abs(offsets) <= extent).all(axis=1)
    assert policy.within_extent(points, active, offsets).tolist() == near.tolist()
    assert not policy.within_extent(points, np.zeros(9, dtype=bool), offsets).any()
