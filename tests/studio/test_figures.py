"""What the page is told: maps, states and budgets are the library's own.

Claims: of labels the belief after one answer is that of the closed form e / (e + 2); the cell under a pointer, as the
script finds it, is the one in which the library locates the place; the cells that are drawn as alike are the policy's;
rows, verdict and doubt are those of a plan of as many invented people; what is no advice is marked.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import dphmm
from dphmm.choose.planning import World
from dphmm.evaluation.city import simulate_city
from dphmm.statement.sentences import off
from dphmm.statement.verdict import verdict
from dphmm.studio.draft import setup_of
from dphmm.studio.figures import Figures, Ground, open_map, pictures, written
from studio.conftest import AREA, GRID, LABELS

replaced = msgspec.structs.replace


def seen(draft, ground=None):
    return Figures(setup_of(draft, {}), draft, ground or Ground())


def test_the_belief_after_an_answer_is_that_of_bayes():
    found = seen(LABELS).state(1, 1, 0)
    said = re.search("the answer says (.*)", found.lines[-1])[1]
    expected = {name: (math.e if name == said else 1.0) / (math.e + 2) for name in LABELS.labels}
    assert {one.name: one.share for one in found.shares} == pytest.approx(expected, abs=1e-9)
    assert all(one.alike for one in found.shares)
    drawn = {seen(LABELS).state(1, 1, draw).lines[-1] for draw in range(12)}
    assert len(drawn) > 1 and seen(LABELS).state(1, 1, 3) == seen(LABELS).state(1, 1, 3)


def test_only_pairs_that_were_marked_look_alike():
    found = seen(replaced(LABELS, pairs=(("home", "work"),))).state(0, 1, 0)
    assert [one.alike for one in found.shares] == [True, True, False]


def test_a_pointer_finds_the_cell_that_the_library_locates():
    """The script's own arithmetic, in Python: degrees by the frame, columns and rows by the side of a cell."""
    one = seen(GRID)
    drawn, grid = one.map(), one.setup.space
    west, south, east, north = drawn.frame
    rng = np.random.default_rng(5)
    for x, y in rng.uniform(0, drawn.width, (400, 2)):
        lon, lat = west + x / drawn.width * (east - west), north - y / drawn.height * (north - south)
        column, row = math.floor((x - drawn.x) / drawn.side), math.floor((drawn.y - y) / drawn.side)
        inside = 0 <= column < drawn.columns and 0 <= row < drawn.rows
        located = int(grid.locate(np.array([lat]), np.array([lon]))[0])
        # Cells at the edge of the box may reach beyond it.
        if located >= 0:
            assert inside and located == row * drawn.columns + column


def corners(path):
    return [tuple(map(float, pair.split())) for part in path.split("M")[1:] for pair in [part.split("L")[0]]]


def test_cells_that_are_drawn_as_alike_are_those_of_the_policy():
    one = seen(replaced(GRID, areas=(AREA,)))
    drawn, policy = one.map(), one.setup.policy
    for number in range(one.setup.space.n_states):
        state = one.state(number, 1, 0)
        layers = {layer.style: layer.path for layer in state.layers}
        cells = [
            math.floor((y_of - 1e-6) / drawn.side) * drawn.columns + math.floor(x_of / drawn.side + 1e-6)
            for x_of, y_of in ((x - drawn.x, drawn.y - y) for x, y in corners(layers["joined"]))
        ]
        assert sorted(cells) == sorted(set(policy.neighbors(number).tolist()) - {number})
        assert state.lines[0].startswith(f"{state.name} looks like {len(cells)} other cell")
    assert "area" in {layer.style for layer in drawn.layers} and [area.text for area in drawn.areas] == ["hospital"]


def test_rows_verdict_and_doubt_are_those_of_the_plan(monkeypatch):
    monkeypatch.setattr("dphmm.choose.planning.STAYERS", 20)
    one = seen(GRID)
    *_, (told, own) = one.budgets(6, lambda done, total: None)
    setup = one.setup
    world = World(setup.model, setup.policy, setup.space, GRID.promise, people=6)
    plan = world.compared(GRID.promise.exact)
    assert own.document() == plan.document()
    assert [row.error for row in told.worth.rows] == [off(each.expected_error, "m") for each in plan.by_total]
    assert [row.own for row in told.worth.rows] == [each is plan for each in plan.by_total]
    assert [row.against for row in told.worth.rows] == [world.not_advised(each) for each in plan.by_total]
    judged = verdict(1, replayable=False, limited=True, found=plan.found, covered=one.setup.covered)
    assert [line.text for line in told.verdict] == judged.lines
    assert told.doubt[0] == f"one answer leaves at least 1 in {math.ceil(1 + math.exp(plan.schedule.exact))} doubt"
    assert told.pictures == pictures(plan) and len(told.pictures) == 2 and told.total == len(told.worth.rows)


def test_another_budget_has_the_plans_that_are_made_already(monkeypatch):
    """Of 2 these are 2, 0.5, 1 and 4; of 4 they are 4, 1, 2 and 8, of which one is new."""
    one = seen(GRID)
    list(one.budgets(6, lambda done, total: None))
    other, made, plan = replace(one, draft=replaced(GRID, budget="4")), [], World.plan
    monkeypatch.setattr(World, "plan", lambda self, total, *rest: made.append(total) or plan(self, total, *rest))
    *_, (told, own) = other.budgets(6, lambda done, total: None)
    assert made == [8]
    assert one.plans_alike(other) and not one.plans_alike(seen(replaced(GRID, covers="2km")))
    *_, (alone, by_itself) = seen(replaced(GRID, budget="4")).budgets(6, lambda done, total: None)
    assert own.document() == by_itself.document() and told == alone


def test_the_figures_are_of_the_function_that_is_public(monkeypatch):
    monkeypatch.setattr("dphmm.choose.planning.STAYERS", 20)
    one = seen(GRID)
    told, _ = next(iter(one.budgets(6, lambda done, total: None)))
    plan = dphmm.Setup.plan(one.setup, GRID.budget, steps=8, people=6, progress=False)
    (own,) = [row for row in told.worth.rows if row.own]
    assert own.error == off(plan.planned.expected_error, "m")


def test_maps_before_a_box_is_drawn():
    world = open_map(Ground())
    assert world.frame == (-180.0, -90.0, 180.0, 90.0) and world.columns == 0
    city = simulate_city(people=2, days=1)
    ground = Ground.of_city(city)
    west, south, east, north = open_map(ground).frame
    assert west < city.grid.west < city.grid.east < east and south < city.grid.south < city.grid.north < north
    assert any(layer.style == "water" and layer.path for layer in open_map(ground).layers)


def test_a_backdrop_lies_where_its_degrees_are(tmp_path):
    pytest.importorskip("shapely")
    path = tmp_path / "g.geojson"
    path.write_text(
        '{"type": "FeatureCollection", "features": ['
        '{"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": '
        "[[10.0, 50.0], [10.056, 50.036]]}}, "
        '{"type": "Feature", "properties": {"name": "Mill"}, "geometry": '
        '{"type": "Point", "coordinates": [10.02, 50.01]}}]}'
    )
    ground = Ground.read(path)
    assert (ground.grid.west, ground.grid.south, ground.grid.east, ground.grid.north) == (10.0, 50.0, 10.056, 50.036)
    drawn = seen(GRID, ground).map()
    west, south, east, north = drawn.frame
    (name,) = drawn.names
    lon, lat = west + name.x / drawn.width * (east - west), north - name.y / drawn.height * (north - south)
    assert (name.text, lon, lat) == ("Mill", pytest.approx(10.02, abs=1e-6), pytest.approx(50.01, abs=1e-6))
    for wrong in ("[]", "no json", '{"type": "FeatureCollection", "features": []}'):
        path.write_text(wrong)
        with pytest.raises(dphmm.errors.InvalidInput):
            Ground.read(path)


def test_a_release_says_what_it_spends():
    words = written(GRID.promise, "person", 30, "people")
    assert words.startswith("This spends up to 2 in 8 steps of each of 30 people.") and "cannot be undone" in words
    assert "up to 2 a day of each of 1 vessel" in written(
        replaced(GRID, per="1d", steps="").promise, "vessel", 1, "vessels"
    )
