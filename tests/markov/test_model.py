"""The model: canonical structure, exact rescaling, reachability, digest; twins in plain Python.

Models from geometry alone: the law of moves written plainly, walls, and what couples.

It would fail where a move gets another cell's chance, where a wall loses or adds some, where the uniform start would
not stay, where reach is a cell too long or too short, and where a model is called couplable that is not.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import dphmm
from dphmm.accounting import couplable
from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel
from dphmm.markov.model import MOST_MOVES, absorbing_states, closed_classes, couples_along_radius
from dphmm.statement.origin import made_without_data
from dphmm.states.space import StateSpace

FAIR = [[0.5, 0.5], [0.5, 0.5]]


@st.composite
def integer_rows(draw, largest=6):
    """A square integer matrix without zero rows: counts of a chain."""
    n = draw(st.integers(2, largest))
    weight = st.one_of(st.just(0), st.integers(1, 9))
    rows = [draw(st.lists(weight, min_size=n, max_size=n)) for _ in range(n)]
    for i, row in enumerate(rows):
        if not any(row):
            row[draw(st.integers(0, n - 1))] = 1
        rows[i] = row
    return np.array(rows)


def model_of(counts):
    n = len(counts)
    return MarkovModel(np.full(n, 1 / n), counts / counts.sum(axis=1, keepdims=True))


def test_running_example(example, example_matrix):
    assert example.n_states == 6
    assert example.n_transitions == 12
    assert (example.transition.toarray() == example_matrix).all()
    assert np.flatnonzero(example.reach([0])).tolist() == [1, 3]
    # After a release from {s2, s4}: C = {2, 3, 5} in the papers' numbers (THEORY 10).
    assert (np.flatnonzero(example.reach([1, 3])) + 1).tolist() == [2, 3, 5]
    assert example.notes == ()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_every_sparse_form_gives_the_same_model(form, example, example_matrix):
    assert MarkovModel(example.initial, sparse.csr_array(example_matrix).asformat(form)).digest == example.digest
    assert MarkovModel(example.initial, sparse.csr_matrix(example_matrix).asformat(form)).digest == example.digest


def test_inputs_are_not_changed_and_not_shared():
    rows = sparse.csr_array(np.array([[0.5, 0.5 + 1e-10], [0.25, 0.75]]))
    before = rows.toarray()
    initial = np.array([0.5, 0.5 + 1e-10])
    model = MarkovModel(initial, rows)
    assert (rows.toarray() == before).all()
    assert initial[1] == 0.5 + 1e-10
    rows.data[:] = 0
    initial[:] = 0
    assert model.transition.sum() == pytest.approx(2)
    assert model.initial.sum() == pytest.approx(1)


def test_immutable(example):
    digest = example.digest
    with pytest.raises(ValueError, match="read-only"):
        example.initial[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        example.transition.data[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        example.support_at_start[0] = False
    with pytest.raises(ValueError, match="read-only"):
        example.predecessors_at(1).data[0] = 0
    # A matrix handed out may get other arrays from its owner; the model's stay as they are.
    example.transition.data = np.zeros(12)
    assert example.transition[0, 1] == 0.5
    example.provenance["method"] = "forged"
    assert example.provenance == {"method": "given"}
    assert MarkovModel(example.initial, example.transition).digest == digest


@settings(max_examples=60)
@given(integer_rows(), st.data())
def test_reach_is_boolean_matrix_powers(counts, data):
    model = model_of(counts)
    structure = (counts > 0).astype(int)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts))))
    reached, power = mask, mask.astype(int)
    for t in range(1, 5):
        reached, power = model.reach(reached, t), power @ structure
        assert (reached == (power > 0)).all()


@settings(max_examples=60)
@given(integer_rows())
def test_notes_against_transitive_closure(counts):
    n = len(counts)
    model = model_of(counts)
    closure = np.linalg.matrix_power((counts > 0).astype(object) + np.eye(n, dtype=object), n) > 0
    together = closure & closure.T
    closed = np.array([all(together[i, j] for j in range(n) if closure[i, j]) for i in range(n)])
    classes = closed_classes(model.transition)
    assert ((classes >= 0) == closed).all()
    assert all((classes[i] == classes[j]) == together[i, j] for i in range(n) for j in range(n) if closed[i])
    assert [int(c) for c in dict.fromkeys(classes[classes >= 0])] == list(range(classes.max() + 1))
    alone = [i for i in range(n) if counts[i, i] and counts[i].sum() == counts[i, i]]
    assert absorbing_states(model.transition).tolist() == alone
    start = MarkovModel(np.eye(n)[0], model.transition)
    missed = np.count_nonzero(~closure[0])
    said = [note for note in start.notes if "no path" in note]
    assert (said[0].startswith(f"{missed} state")) if missed else not said


@settings(max_examples=40)
@given(integer_rows())
def test_predecessors_are_the_columns(counts):
    model = model_of(counts)
    columns = model.predecessors_at(3)
    dense = np.zeros(counts.shape)
    for j in range(len(counts)):
        for k in range(int(columns.indptr[j]), int(columns.indptr[j + 1])):
            dense[columns.indices[k], j] = columns.data[k]
    assert (dense == model.transition.toarray()).all()


def test_digest_is_of_the_contents():
    digests = [
        MarkovModel(*given, **options).digest
        for given, options in [
            (([1, 0], FAIR), {}),
            (([0, 1], FAIR), {}),
            (([1, 0], [[0.5, 0.5], [0.25, 0.75]]), {}),
            (([1, 0], [[0.5, 0.5], [0, 1]]), {}),
            (([1, 0], FAIR), {"start": "at"}),
            (([1, 0], FAIR), {"step": 60}),
        ]
    ]
    assert len(set(digests)) == len(digests)
    assert MarkovModel(np.float32([1, -0.0]), np.float32(FAIR)).digest == digests[0]
    # Pinned: plans on other machines and in later versions are keyed by it.
    assert digests[0] == "d3312915c272e2c994efc4c10beda7f58f606e118dfedba5901847e12173e5ae"


def test_space_must_fit():
    space = StateSpace([[0, 0], [1, 0]])
    assert MarkovModel([1, 0], FAIR, space=space).space is space
    with pytest.raises(InvalidInput, match="space: got 2 states; expected the model's 6"):
        MarkovModel([1, 0, 0, 0, 0, 0], np.eye(6), space=space)


@pytest.mark.parametrize("t", [0, -1, True, 1.0, "1"])
def test_time_is_a_number_from_one(example, t):
    for ask in (example.transition_at, example.predecessors_at, lambda t: example.reach([0], t)):
        with pytest.raises(InvalidInput, match="t: got"):
            ask(t)


def test_repr_is_short(example):
    assert repr(example) == "MarkovModel(6 states, 12 transitions, start='before')"
    assert repr(MarkovModel([1, 0], FAIR, step=300, start="at")).endswith("start='at', step=300 s)")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start", "now"),
        ("step", 0),
        ("step", "5min"),
        ("step", 10**13),
        ("provenance", []),
    ],
)
def test_options_are_checked(field, value):
    with pytest.raises(InvalidInput, match=field):
        MarkovModel([1, 0], FAIR, **{field: value})


@pytest.mark.parametrize("provenance", [{"x": float("nan")}, {"x": object()}])
def test_provenance_must_be_json(provenance):
    with pytest.raises(InvalidInput, match="provenance"):
        MarkovModel([1, 0], FAIR, provenance=provenance)


BBOX = (10.0, 50.0, 10.04, 50.02)


def grid(cell="500m", bbox=BBOX):
    return dphmm.Grid.from_bounds(*bbox, cell)


def plainly(space, reach, stay):
    """The matrix, move by move, from the definition."""
    n, cell = space.n_states, space.cell
    law = {}
    for dx in range(1 - space.columns, space.columns):
        for dy in range(1 - space.rows, space.rows):
            far = math.hypot(dx, dy) * cell
            if (dx, dy) != (0, 0) and far <= reach * (1 + 1e-12):
                law[dx, dy] = math.exp(-3 * far / reach)
    total, matrix = sum(law.values()), np.zeros((n, n))
    for x in range(space.columns):
        for y in range(space.rows):
            at = y * space.columns + x
            matrix[at, at] += stay
            for (dx, dy), weight in law.items():
                to_x = x + dx if 0 <= x + dx < space.columns else x
                to_y = y + dy if 0 <= y + dy < space.rows else y
                matrix[at, to_y * space.columns + to_x] += (1 - stay) * weight / total
    return matrix


@pytest.mark.parametrize(("step", "speed", "reach"), [(600, "3km/h", 500), (600, "6km/h", 1000), ("1h", "9km/h", 9000)])
@pytest.mark.parametrize("stay", [0, 0.7])
def test_moves_are_those_of_the_definition(step, speed, reach, stay):
    space = grid()
    model = dphmm.MarkovModel.from_geometry(space, step, speed, stay=stay)
    assert np.allclose(model.matrix.toarray(), plainly(space, reach, stay), rtol=1e-12, atol=1e-15)
    assert np.allclose(model.initial, 1 / space.n_states) and model.jump.rate == 0.001 and np.ptp(model.jump.into) == 0
    assert made_without_data(model.provenance)


@pytest.mark.parametrize("space", ["grid", "h3", "part of a grid"])
def test_the_uniform_start_stays(space):
    if space == "h3":
        pytest.importorskip("h3")
        lat, lon = np.meshgrid(np.linspace(50, 50.03, 40), np.linspace(10, 10.05, 40))
        cells = dphmm.states.H3.covering(lat.ravel(), lon.ravel(), 8)
    else:
        cells = grid() if space == "grid" else grid().subset(np.arange(0, grid().n_states, 2))
    model = dphmm.MarkovModel.from_geometry(cells, "10min", "9km/h")
    matrix = model.matrix.toarray()
    assert np.abs(matrix - matrix.T).max() < 1e-15
    assert (np.diag(matrix) >= 0.9 - 1e-12).all() and model.notes == ()
    moved = dphmm.markov.Belief.initial(model).predict(model, 1)
    assert np.allclose(moved.probability, model.initial, rtol=1e-12)


def test_rings_of_hexagons_are_alike():
    """From a cell with all its neighbours every ring has its weight, shared by its cells."""
    h3 = pytest.importorskip("h3.api.basic_int")
    lat, lon = np.meshgrid(np.linspace(50, 50.06, 60), np.linspace(10, 10.1, 60))
    space = dphmm.states.H3.covering(lat.ravel(), lon.ravel(), 8)
    apart = h3.average_hexagon_edge_length(8, unit="m") * 3**0.5
    model = dphmm.MarkovModel.from_geometry(space, 600, 2.1 * apart / 600, stay=0.5)
    number = {cell: state for state, cell in enumerate(space.cells.tolist())}
    whole = [c for c in space.cells.tolist() if all(other in number for other in h3.grid_disk(c, 2))]
    assert len(whole) > 5
    weights = [math.exp(-3 * ring / 2.1) for ring in (1, 2)]
    total = 6 * weights[0] + 12 * weights[1]
    for cell in whole:
        row = model.matrix.toarray()[number[cell]]
        for ring in (1, 2):
            around = set(h3.grid_disk(cell, ring)) - set(h3.grid_disk(cell, ring - 1))
            assert np.allclose(row[[number[c] for c in around]], 0.5 * weights[ring - 1] / total, rtol=1e-9)
        assert row[number[cell]] == pytest.approx(0.5)


@pytest.mark.parametrize(("speed", "known"), [("3km/h", True), ("6km/h", True), ("8.9km/h", True), ("9km/h", None)])
def test_what_is_called_couplable_is(speed, known):
    """Moves of at most two cells along radii of 1, 1.5 and 2 cells, jumps included; of three cells nothing is said."""
    space = grid("500m", (10.0, 50.0, 10.035, 50.0225))
    model = dphmm.MarkovModel.from_geometry(space, 600, speed)
    assert couples_along_radius(model) is known
    if known:
        for radius in (500, 750, 1000):
            assert couplable(model, dphmm.policy.radius(space, radius), 3).holds
    part = space.subset(np.arange(space.n_states - 1))
    assert couples_along_radius(dphmm.MarkovModel.from_geometry(part, 600, speed)) is None
    elsewhere = np.linspace(1, 2, space.n_states)
    assert couples_along_radius(model.with_jump(0.1, elsewhere / elsewhere.sum())) is None


def changed(model, states, by=1e-6):
    """The model with a little of one move taken from each of these states and given to another move of it."""
    moves = model.matrix.tolil()
    for state in states:
        first, second = moves.rows[state][:2]
        moves[state, first] -= by
        moves[state, second] += by
    return moves.tocsr()


def test_what_is_said_of_coupling_is_looked_at_and_not_believed():
    """Whoever makes a model can write any provenance: moves, walls, jump and start are compared themselves."""
    space = grid("500m", (10.0, 50.0, 10.049, 50.0315))
    model = dphmm.MarkovModel.from_geometry(space, 600, "3km/h")
    assert couples_along_radius(model) is True
    facts = {"space": space, "step": 600, "provenance": model.provenance, "jump": model.jump}
    assert couples_along_radius(dphmm.MarkovModel(model.initial, model.matrix, **facts)) is True
    middle, corner = int(space._states_of_cells[space.rows // 2, space.columns // 2]), 0
    for states in ([middle], [corner], range(space.n_states)):
        other = dphmm.MarkovModel(model.initial, changed(model, states), **facts)
        assert couples_along_radius(other) is None
    assert couples_along_radius(model.beginning(3)) is None
    rare = model.matrix.tolil(copy=True)
    rare[middle, corner], rare[middle, middle] = 9e-13, rare[middle, middle] - 9e-13
    assert couples_along_radius(dphmm.MarkovModel(model.initial, rare.tocsr(), **facts)) is None
    for speed in ("9km/h", "20km/h"):
        assert couples_along_radius(dphmm.MarkovModel.from_geometry(space, 600, speed)) is None
    # A move to the right alone, everywhere: it would part two walkers at the wall.
    steps = np.eye(space.n_states) * 0.5
    for state, (column, row) in enumerate(space.lattice.tolist()):
        steps[state, space._states_of_cells[row, min(column + 1, space.columns - 1)]] += 0.5
    assert couples_along_radius(dphmm.MarkovModel(model.initial, steps, **facts)) is None


def test_a_model_without_data_says_so_only_while_it_is_one():
    model = dphmm.MarkovModel.from_geometry(grid(), "10min", "6km/h")
    assert made_without_data(model.with_jump(0.5).provenance)
    into = np.linspace(1, 2, model.n_states)
    assert not made_without_data(model.with_jump(0.5, into / into.sum()).provenance)
    assert not made_without_data({"method": "geometry", "private": False})
    assert not made_without_data({"method": "given"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_speed": "1km/h"}, "nobody would move"),
        ({"max_speed": 0}, "more than 0"),
        ({"step": "0min"}, "step"),
        ({"stay": 1}, "stay"),
        ({"stay": -0.1}, "stay"),
        ({"stay": "x"}, "stay"),
        ({"jump": 1}, "jump"),
        ({"space": dphmm.StateSpace(np.arange(3)[:, None])}, "a Grid, an H3 or Zones"),
        ({"space": grid("50km")}, "one cell"),
    ],
)
def test_bad_geometry_is_refused(given, said):
    with pytest.raises(InvalidInput, match=said):
        dphmm.MarkovModel.from_geometry(**{"space": grid(), "step": "10min", "max_speed": "6km/h", **given})


def test_too_many_moves_are_counted_before_they_are_made():
    with pytest.raises(InvalidInput, match=f"{MOST_MOVES:,}") as refused:
        dphmm.MarkovModel.from_geometry(grid("100m", (10.0, 50.0, 10.4, 50.3)), "1h", "90km/h")
    assert "cells with" in str(refused.value)


def test_every_digest_has_the_secrets():
    """Of two maps onto as many secrets, and of none."""
    given = np.full(4, 0.25), np.full((4, 4), 0.25)
    maps = (None, [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 1, 2, 2], [1, 0, 2, 3])
    assert len({dphmm.MarkovModel(*given, secrets=own).digest for own in maps}) == len(maps)
    assert dphmm.MarkovModel(*given, secrets=[0, 1, 2, 3]).digest == dphmm.MarkovModel(*given).digest
