"""The covered distance: two places up to it lie in one cell or in cells that an edge joins, wherever in their cells.

Claims: it is the least gap of two cells that no edge joins, for every kind of policy, on full grids and on parts of
them, at any latitude and across the date line, and for H3 (brute force over all pairs, with other formulas); pairs of
places up to it lose at most ε, and some beyond it more; `covers` builds the smallest radius. Needs to fail for:
a distance between centres (one cell more), offsets on one axis alone, reach through several edges, a gap rounded up.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm import policy
from dphmm.errors import InvalidInput
from dphmm.policy import _radius
from dphmm.policy.graph import KINDS
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from dphmm.states.maps import offsets_by_gap
from random_seeds import seeds

h3 = pytest.importorskip("h3")

BEIJING = dphmm.Grid.from_bounds(116.28, 39.85, 116.48, 39.99, cell=340)
GRIDS = {
    "square": dphmm.Grid.from_bounds(13.30, 52.48, 13.36, 52.52, cell=500),
    "wide": dphmm.Grid.from_bounds(13.30, 52.48, 13.50, 52.49, cell=500),
    "one row": dphmm.Grid.from_bounds(13.30, 52.48, 13.36, 52.484, cell=500),
    "one cell": dphmm.Grid.from_bounds(13.30, 52.48, 13.302, 52.481, cell=500),
    "far north": dphmm.Grid.from_bounds(20.0, 84.00, 20.4, 84.03, cell=500),
    "south": dphmm.Grid.from_bounds(-58.50, -34.65, -58.44, -34.60, cell="700.5m"),
    "equator": dphmm.Grid.from_bounds(9.98, -0.02, 10.03, 0.03, cell=800),
    "date line": dphmm.Grid.from_bounds(179.97, -17.02, -179.97, -16.98, cell=600),
    "some cells": dphmm.Grid.from_bounds(13.30, 52.48, 13.36, 52.52, cell=500).subset(
        np.random.default_rng(5).random(81) < 0.5
    ),
}


def some_policy(kind, space, rng):
    """A policy of every kind on a space."""
    n = space.n_states
    pairs = rng.integers(0, n, (4 * n, 2))
    near = np.argwhere(np.linalg.norm(space.answers[:, None] - space.answers[None], axis=2) < 1300)
    match kind:
        case "complete":
            return policy.complete(n)
        case "categorical":
            return policy.categorical(np.arange(n) // 7)
        case "radius":
            return policy.radius(space, float(rng.uniform(400, 2500)))
        case "knn":
            return policy.knn(space, min(7, n - 1)) if n > 1 else policy.complete(n)
        case "transition":
            moves = np.zeros((n, n))
            moves[tuple(near.T)] = 1.0
            return policy.transition(moves)
        case "edges":
            return policy.from_edges(near, n)
        case "union":
            return policy.radius(space, 800).union(policy.from_edges(pairs, n))
    raise AssertionError(f"a kind of policy that this test does not know: {kind}")


def joined(graph):
    found = np.eye(graph.n_states, dtype=bool)
    a, b = graph.edges().T
    found[a, b] = found[b, a] = True
    return found


def gap_of_squares(grid, a, b):
    """The least distance of two cells, from their corners."""
    apart = np.abs(grid.answers[a] - grid.answers[b]) - grid.cell
    return math.hypot(*np.maximum(apart, 0.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", GRIDS)
def test_it_is_the_least_gap_of_two_cells_that_no_edge_joins(place, kind):
    grid = GRIDS[place]
    graph = some_policy(kind, grid, np.random.default_rng(len(place)))
    together = joined(graph)
    pairs = itertools.combinations(range(grid.n_states), 2)
    least = min((gap_of_squares(grid, a, b) for a, b in pairs if not together[a, b]), default=math.inf)
    found = policy.covered_distance(graph, grid)
    assert found == pytest.approx(least, rel=1e-12)
    # A whole number of cells is that number to the last digit; other gaps are rounded down.
    assert found <= least * (1 + 1e-15) or found == round(found / grid.cell) * grid.cell


@pytest.mark.parametrize("kind", KINDS)
def test_joins_is_the_graph_s_edges(kind):
    grid = GRIDS["some cells"]
    graph = some_policy(kind, grid, np.random.default_rng(2))
    a, b = np.array(list(itertools.permutations(range(grid.n_states), 2))).T
    assert np.array_equal(graph.joins(a, b), joined(graph)[a, b])
    assert graph.joins(a[:0], b[:0]).tolist() == []


def test_joins_of_far_points_whose_steps_add_up_alike():
    points = np.array([[0, 0], [0, 9], [1, 0], [1, 9], [2, 4], [0, 9]])
    graph = policy.radius(points, 1)
    a, b = np.array(list(itertools.combinations(range(6), 2))).T
    distance = np.linalg.norm(points[a] - points[b], axis=1)
    assert np.array_equal(graph.joins(a, b), distance <= 1)


def test_lists_of_edges_that_are_empty():
    grid = GRIDS["square"]
    assert policy.covered_distance(policy.from_edges([], grid.n_states), grid) == 0.0


def test_offsets_come_by_their_gap_and_once():
    found = list(offsets_by_gap(5, 4, Fraction(3)))
    gaps = [gap for gap, _ in found]
    assert gaps == sorted(gaps)
    both = {offset for _, offset in found} | {(-i, -j) for _, (i, j) in found}
    assert both == set(itertools.product(range(-4, 5), range(-3, 4))) - {(0, 0)}
    assert len(found) == len(both) // 2
    exact = [Fraction(max(i - 1, 0) ** 2 + max(abs(j) - 1, 0) ** 2) * 9 for _, (i, j) in found]
    assert all(Fraction(gap) ** 2 <= square for gap, square in zip(gaps, exact, strict=True))


# Places on the ground, measured without the code under test.


def metres_apart(lat, lon, lat2, lon2):
    """WGS84 (to 1e-7 of short distances) and great-circle distances, the lesser of them."""
    phi, psi, lam = np.radians(lat), np.radians(lat2), np.radians((lon2 - lon + 180) % 360 - 180)
    half = np.sin((psi - phi) / 2) ** 2 + np.cos(phi) * np.cos(psi) * np.sin(lam / 2) ** 2
    sphere = 2 * 6_371_000.8 * np.arcsin(np.sqrt(half))
    middle = (phi + psi) / 2
    curved = 1 - 6.69437999014e-3 * np.sin(middle) ** 2
    north = 6_378_137.0 * (1 - 6.69437999014e-3) / curved**1.5 * (psi - phi)
    east = 6_378_137.0 / np.sqrt(curved) * np.cos(middle) * lam
    return np.minimum(sphere, np.hypot(north, east))


def pairs_of_places(space, farthest, rng, m=20_000):
    """Places of cells in degrees, and others up to ``farthest`` metres from them; half are close to cells' corners."""
    home = rng.integers(0, space.n_states, m)
    size = space.cell if isinstance(space, dphmm.Grid) else 600.0
    within = rng.uniform(-0.5, 0.5, (m, 2))
    within[::2] = np.sign(within[::2]) * (0.5 - 1e-4 * rng.random((len(within[::2]), 2)))
    start = space.answers[home] + within * size
    angle = rng.uniform(0, 2 * np.pi, m)
    angle[::3] = rng.integers(0, 4, len(angle[::3])) * np.pi / 2
    length = farthest * (1 - rng.random(m) ** 3)
    end = start + np.stack([np.cos(angle), np.sin(angle)], axis=1) * length[:, None]
    return (*space.to_latlon(start), *space.to_latlon(end))


@pytest.mark.parametrize("place", [*(name for name in GRIDS if name != "one cell"), "h3"])
def test_no_pair_of_places_up_to_it_exceeds_the_factor_and_some_beyond_it_do(place):
    rng = np.random.default_rng(11)
    space = hexagons() if place == "h3" else GRIDS[place]
    graph = policy.radius(space, covers=1000 if place != "h3" else 500)
    covered = policy.covered_distance(graph, space)
    ground = space.on_the_ground(covered) if covered < math.inf else math.inf
    lat, lon, lat2, lon2 = pairs_of_places(space, min(2.2 * covered, 5000.0), rng)
    a, b = space.locate(lat, lon), space.locate(lat2, lon2)
    inside = (a >= 0) & (b >= 0)
    a, b, apart = a[inside], b[inside], metres_apart(lat, lon, lat2, lon2)[inside]
    everything = np.ones(space.n_states, dtype=bool)
    plan = Planner(graph, space, Options.checked("1.5")).plan(everything, everything)
    steps = space.lattice[a] - space.lattice[b]
    loss = {step: plan.mechanism.loss_lattice(np.array(step)) for step in set(map(tuple, steps.tolist()))}
    worst = np.array([float(loss[step]) for step in map(tuple, steps.tolist())])
    near = apart <= ground
    assert near.sum() > 300
    assert (worst[near] <= 1.5).all()
    assert ((a == b) | graph.joins(a, b))[near].all()
    if covered < math.inf:
        far = (apart > ground) & (apart < 2 * covered)
        assert far.sum() > 20
        assert (worst[far] > 1.5).any()


@pytest.mark.parametrize("mechanism", ["auto", "optimal-table"])
def test_the_outputs_themselves_keep_the_factor(mechanism):
    """Not the stated losses: log Pr(z | s) of the plan at many z, for pairs of places up to the distance."""
    grid = dphmm.Grid.from_bounds(13.30, 52.48, 13.34, 52.50, cell=500)
    graph = policy.radius(grid, covers=500)
    options = Options.checked("1", mechanism=mechanism)
    everything = np.ones(grid.n_states, dtype=bool)
    plan = Planner(graph, grid, options).plan(everything, everything)
    rng = np.random.default_rng(3)
    spread = 1 if mechanism == "optimal-table" else 3
    outputs = grid.lattice if spread == 1 else rng.integers(-8, 16, (400, 2))
    law = np.array([plan.log_likelihood(z) for z in outputs])
    lat, lon, lat2, lon2 = pairs_of_places(grid, 500.0, rng, 4000)
    a, b = grid.locate(lat, lon), grid.locate(lat2, lon2)
    near = (a >= 0) & (b >= 0) & (metres_apart(lat, lon, lat2, lon2) <= grid.on_the_ground(500.0))
    assert near.sum() > 500
    assert np.abs(law[:, a[near]] - law[:, b[near]]).max() <= 1 + 1e-9
    far = np.flatnonzero(np.abs(grid.lattice - grid.lattice[0]).max(axis=1) == 2)
    assert np.abs(law[:, far] - law[:, [0]]).max() > 1 + 1e-9


@pytest.mark.parametrize("place", GRIDS)
def test_the_ground_is_never_longer_than_it_is(place):
    """Random places of the box at random distances: what is near on the ground is near on the map."""
    grid = GRIDS[place]
    rng = np.random.default_rng(4)
    lat = rng.uniform(grid.south, grid.north, (2, 20_000))
    lon = grid.west + rng.uniform(0, (grid.east - grid.west) % 360, (2, 20_000))
    on_map = np.linalg.norm(np.diff(grid.projection.to_metres(lat, lon), axis=0)[0], axis=1)
    ground = metres_apart(lat[0], lon[0], lat[1], lon[1])
    for metres in (100.0, 1000.0, 3000.0):
        assert grid.on_the_ground(metres) <= metres
        assert (on_map[ground <= grid.on_the_ground(metres)] <= metres).all()
    # Nor much shorter: the least ratio that was met is near.
    met = (ground / on_map)[(on_map > 200) & (on_map < 3000)]
    if len(met):
        assert met.min() * 1000 - 8 < grid.on_the_ground(1000.0) <= met.min() * 1000


def test_distances_that_would_reach_a_pole_are_nothing_on_the_ground():
    assert dphmm.Grid.from_bounds(20.0, 89.80, 20.4, 89.801, cell=10).on_the_ground(50_000.0) == 0.0


def test_a_map_round_the_earth_counts_on_nothing_across_its_sides():
    world = dphmm.Grid.from_bounds(-180, -4, 180, 4, cell="200km")
    graph = policy.radius(world, 500_000)
    assert policy.covered_distance(graph, world) == 0.0
    assert policy.covered_distance(policy.complete(world.n_states), world) == math.inf
    with pytest.raises(InvalidInput, match="covers: got 200000 m on a map"):
        policy.radius(world, covers="200km")
    most = dphmm.Grid.from_bounds(-179, -4, 180, 4, cell="200km")
    assert policy.covered_distance(policy.radius(most, 500_000), most) == pytest.approx(111e3, rel=0.01)


# Hexagons.


def hexagons(seed=3, resolution=8, m=60, at=(52.50, 13.35), spread=0.02):
    rng = np.random.default_rng(seed)
    lat = at[0] + rng.uniform(-spread, spread, m)
    lon = (at[1] + rng.uniform(-spread, spread, m) / math.cos(math.radians(at[0])) + 180) % 360 - 180
    return dphmm.states.H3.covering(lat, lon, resolution)


def in_space(lat, lon):
    phi, lam = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)


def gap_of_hexagons(space, a, b):
    """Straight chords for arcs, each side sampled finely against each side: above the gap by at most a sample."""

    def boundary(cell):
        ring = in_space(*np.array(h3.cell_to_boundary(h3.int_to_str(int(cell)))).T)
        share = np.linspace(0, 1, 41)[:, None]
        sides = [p * (1 - share) + q * share for p, q in zip(ring, np.roll(ring, -1, axis=0), strict=True)]
        points = np.vstack(sides)
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    one, other = boundary(space.cells[a]), boundary(space.cells[b])
    chord = np.linalg.norm(one[:, None] - other[None], axis=2).min()
    return 2 * math.asin(chord / 2)


@pytest.mark.parametrize(
    "space",
    [
        hexagons(),
        hexagons(at=(0.0, 179.99)),
        hexagons(at=(-78.0, 20.0)),
        # Across an edge of the icosahedron, and around a pentagon.
        hexagons(resolution=3, at=h3.cell_to_latlng(sorted(h3.get_pentagons(3))[4]), spread=4.0, m=80),
    ],
    ids=["city", "date line", "south", "pentagon"],
)
@pytest.mark.parametrize("kind", ["radius", "knn", "categorical", "edges", "union", "transition", "complete"])
def test_hexagons_by_brute_force(space, kind):
    size = float(
        np.sqrt(((space.answers[:, None] - space.answers[None]) ** 2).sum(axis=2) + 1e18 * np.eye(len(space))).min()
    )
    n = space.n_states
    near = np.argwhere(np.linalg.norm(space.answers[:, None] - space.answers[None], axis=2) < 1.5 * size)
    graph = {
        "radius": lambda: policy.radius(space, 2.2 * size),
        "knn": lambda: policy.knn(space, 7),
        "categorical": lambda: policy.categorical(np.arange(n) // 5),
        "edges": lambda: policy.from_edges(near, n),
        "union": lambda: policy.radius(space, 1.3 * size).union(policy.from_edges(near[::3], n)),
        "transition": lambda: policy.transition(np.bincount(near @ [n, 1], minlength=n * n).reshape(n, n)),
        "complete": lambda: policy.complete(n),
    }[kind]()
    together = joined(graph)
    apart = [(a, b) for a, b in itertools.combinations(range(n), 2) if not together[a, b]]
    found = policy.covered_distance(graph, space)
    if not apart:
        assert found == math.inf
        return
    centres = in_space(*space.to_latlon(space.answers))
    apart.sort(key=lambda pair: float(np.linalg.norm(centres[pair[0]] - centres[pair[1]])))
    least = min(gap_of_hexagons(space, a, b) for a, b in apart[:60])
    radius = 6_335_439.0, 6_371_000.8
    step = 2e-2 * size
    assert radius[0] * least - step - 0.01 <= found <= radius[1] * least


def test_hexagons_that_touch_and_are_not_joined_cover_nothing():
    space = hexagons()
    assert policy.covered_distance(policy.radius(space, 10), space) == 0.0


# covers.


def test_680_m_on_340_m_cells_is_the_policy_of_1_km():
    graph = policy.radius(BEIJING, covers="680m")
    assert graph.digest == policy.radius(BEIJING, 1000).digest
    assert policy.covered_distance(graph, BEIJING) == 680.0
    assert len(graph.neighbors(int(BEIJING.locate(39.92, 116.38)))) == 24
    assert 0.99 * 680 < BEIJING.on_the_ground(680.0) < 680


def test_covers_in_metres_and_with_a_unit():
    grid = GRIDS["square"]
    assert policy.radius(grid, covers=1000).digest == policy.radius(grid, covers="1km").digest
    assert isinstance(policy.radius(grid, covers=math.inf), type(policy.complete(grid.n_states)))


@pytest.mark.parametrize("place", ["square", "wide", "south", "some cells", "date line"])
@pytest.mark.parametrize("covers", [1, 499.9, 500, 500.1, 707, 1000, 1300.5, 2000])
def test_covers_builds_the_smallest_radius(place, covers):
    grid = GRIDS[place]
    graph = policy.radius(grid, covers=covers)
    assert policy.covered_distance(graph, grid) >= covers
    lengths = np.linalg.norm(grid.answers[:, None] - grid.answers[None], axis=2)
    a, b = graph.edges().T
    longest = lengths[a, b].max(initial=0.0)
    shorter = lengths[(lengths < longest * (1 - 1e-9)) & (lengths > 0)]
    smaller = (
        policy.radius(grid, float(shorter.max()) * (1 + 1e-10)) if len(shorter) else policy.from_edges([], len(grid))
    )
    assert len(smaller.edges()) < len(graph.edges())
    assert policy.covered_distance(smaller, grid) < covers


@pytest.mark.parametrize("covers", [1, 400, 500, 1000, 1500])
def test_covers_on_hexagons(covers):
    space = hexagons()
    graph = policy.radius(space, covers=covers)
    assert policy.covered_distance(graph, space) >= covers
    lengths = np.linalg.norm(space.raw_answers[:, None] - space.raw_answers[None], axis=2)
    a, b = graph.edges().T
    longest = lengths[a, b].max()
    shorter = float(lengths[lengths < longest * (1 - 1e-6)].max())
    assert policy.covered_distance(policy.radius(space, shorter * (1 + 1e-9)), space) < covers


def test_an_isolated_cell_needs_no_edge():
    grid = GRIDS["square"].subset(np.array([0, 40, 80]))
    graph = policy.radius(grid, covers=100)
    assert len(graph.edges()) == 0
    assert policy.covered_distance(graph, grid) >= 100


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "r: got neither r nor covers"),
        ({"r": 1, "covers": 1}, "r: got both"),
        ({"covers": 0}, "covers: got 0"),
        ({"covers": "far"}, "covers: got far"),
    ],
)
def test_what_covers_refuses(given, told):
    with pytest.raises(InvalidInput, match=told):
        policy.radius(GRIDS["square"], **given)


def test_states_that_are_no_cells():
    space = dphmm.StateSpace([0, 1, 2])
    assert policy.covered_distance(policy.complete(3), space) is None
    with pytest.raises(InvalidInput, match="covers: got a distance for states that are no cells of a map"):
        policy.radius(space, covers=1)
    with pytest.raises(InvalidInput, match="policy: got one on 4 states"):
        policy.covered_distance(policy.complete(4), space)


def test_hexagons_without_the_package(monkeypatch):
    space = hexagons()
    graph = policy.radius(space, 1500)
    monkeypatch.setattr(type(space), "_rings", None)
    assert policy.covered_distance(graph, space) is None
    with pytest.raises(InvalidInput, match="H3 cells without the h3 package"):
        policy.radius(space, covers=500)


def test_a_search_that_is_cut_short_understates(monkeypatch):
    grid = GRIDS["wide"]
    graph = policy.from_edges(
        [p for p in itertools.combinations(range(len(grid)), 2) if p != (0, len(grid) - 1)], len(grid)
    )
    whole = policy.covered_distance(graph, grid)
    monkeypatch.setattr(_radius, "_MOST_PAIRS", 1000)
    assert 0 < policy.covered_distance(graph, grid) < whole


@seeds(20)
@pytest.mark.parametrize("cells", ["grid", "hexagons"])
def test_covers_where_cells_are_merged(cells, seed):
    """A merged cell stays where it is and is answered from elsewhere: the radius has to reach from there."""
    random = np.random.default_rng(seed)
    space = GRIDS["square"] if cells == "grid" else hexagons()
    states = random.permutation(space.n_states)[:6].tolist()
    merged = space.merged({states[0]: states[3], states[1]: states[4], states[2]: states[4]})
    covers = float(random.choice([100, 340, 680]))
    graph = policy.radius(merged, covers=covers)
    assert policy.covered_distance(graph, merged) >= covers
    edges = set(map(tuple, graph.edges().tolist()))
    if cells == "grid":
        gaps = [(a, b) for a, b in itertools.combinations(range(space.n_states), 2) if brute_gap(space, a, b) < covers]
        assert set(gaps) <= edges
        lengths = np.linalg.norm(merged.answers[:, None] - merged.answers[None], axis=2)
        longest = max(lengths[a, b] for a, b in gaps)
        shorter = float(lengths[lengths < longest - 1].max())
        assert policy.covered_distance(policy.radius(merged, shorter + 0.01), merged) < covers


def brute_gap(grid, a, b):
    """The gap of two cells in metres of the map."""
    apart = np.abs(grid.lattice[a] - grid.lattice[b])
    return float(np.linalg.norm(np.maximum(apart - 1, 0)) * grid.pitch[0])
