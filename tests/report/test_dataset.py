"""The data of a page say what the release says, at every step, and nothing of the truth unless it was given.

Each claim is checked against the library, from the page's own bytes: answers, plans, possible states, policy edges,
hulls and degrees of protection of every explored row. Fails where a code loses or shifts a number, where a plan is
another than the release's, or where a true state reaches a page that was made without the truth.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dphmm
from dphmm.report.encoding import Shelf, adjacency, repeated, runs, scaled, script_json
from dphmm.session.retrospect import Hindsight, Published
from dphmm.session.setting import Setting
from report.worlds import EVIL, TRAP, WORLDS, report, run

PARTS = 1000


def data_of(text):
    """The data block of a page."""
    return json.loads(re.search(r'<script type="application/json" id="release-data">(.*?)</script>', text)[1])


def unrun(pairs):
    return [value for value, count in pairs for _ in range(count)]


def unmask(text, n):
    mask, at = np.zeros(n, dtype=bool), 0
    for place, length in enumerate(text.split()):
        mask[at : at + int(length, 36)] = place % 2
        at += int(length, 36)
    return mask


def unadjacent(coded):
    pairs = []
    for state, pattern in enumerate(unrun(coded["rows"])):
        pairs += [(state, state + gap) for gap in coded["patterns"][pattern]]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@pytest.fixture(scope="session")
def made(world, tmp_path_factory):
    """A world's page without and with the truth, and its folder."""

    def of(name):
        folder = world(name)
        plain, owner = folder / "plain.html", folder / "report.owner.html"
        if not plain.exists():
            report(folder, plain)
            truth = ("--truth", folder / "walks.csv", "--smoothed", folder / "smoothed.parquet")
            report(folder, owner, *truth, "--ledger", folder / "ledger.db", "--policy", folder / "policy.json")
        return plain.read_text(), owner.read_text(), folder

    return of


@pytest.mark.parametrize("seed", range(20))
def test_masks_and_graphs_come_back(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    mask = rng.random(n) < rng.random()
    assert np.array_equal(unmask(runs(mask), n), mask)
    pairs = {
        tuple(sorted(pair)) for pair in rng.integers(0, n, (rng.integers(0, 80), 2)).tolist() if pair[0] != pair[1]
    }
    edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    assert np.array_equal(unadjacent(adjacency(edges, n)), edges)
    numbers = rng.integers(0, 3, n)
    assert unrun(repeated(numbers)) == numbers.tolist()


def test_small_codes():
    assert scaled(np.array([1.2345, np.nan, -3.0]), 1000) == [1234, None, -3000]
    shelf = Shelf()
    assert [shelf.put(key, key) for key in "abca"] == [0, 1, 2, 0] and shelf.things == ["a", "b", "c"]
    assert runs(np.zeros(5, dtype=bool)) == "" and runs(np.ones(40, dtype=bool)) == "0 14"


def test_json_cannot_end_its_element():
    text = script_json({"a": "</script><!--&\u2028"})
    assert not set("<>&\u2028") & set(text) and json.loads(text) == {"a": "</script><!--&\u2028"}


@pytest.mark.parametrize("name", WORLDS)
def test_answers_are_those_of_the_file(name, made):
    _, text, folder = made(name)
    data, space = data_of(text), dphmm.load_model(folder / "model.npz").space
    table = pq.read_table(folder / "released.parquet").to_pandas()
    smoothed = pq.read_table(folder / "smoothed.parquet").to_pandas()
    assert [subject["name"] for subject in data["subjects"]] == table.user.drop_duplicates().tolist()
    for subject in data["subjects"]:
        own, later = table[table.user == subject["name"]], smoothed[smoothed.user == subject["name"]]
        steps = np.cumsum([subject["step"]["first"], *unrun(subject["step"]["gaps"])])
        assert np.array_equal(steps, own.step)
        for j in range(space.dimension):
            origin, pitch = space.frame.origin[j], space.pitch[j]
            assert np.array_equal(origin + pitch * np.array(subject["z"][j]), own[f"z_{j}"])
            for kind, column in (("estimate", own[f"estimate_{j}"]), ("smoothed", later[f"smoothed_{j}"])):
                found = origin + pitch * np.array(subject[kind][j]) / PARTS
                assert np.abs(found - column).max() <= 0.51 * pitch / PARTS
        assert [data["names"][number] for number in unrun(subject["called"])] == own.estimate.tolist()
        assert [space.names[state] for state in unrun(subject["state"])] == own.estimate.tolist()
        assert unrun(subject["epsilon"]) == own.epsilon.tolist()
        assert [np.inf if cost is None else cost for cost in unrun(subject["cost"])] == own.cost.tolist()


def test_cells_of_h3_are_drawn_as_they_are(made):
    """Each cell's corners, within 1 % of its size, on the page and in its still pictures; elsewhere there are none."""
    h3 = pytest.importorskip("h3")
    _, text, folder = made("hexagons")
    shapes, space = data_of(text)["space"]["shapes"], dphmm.load_model(folder / "model.npz").space
    size = h3.average_hexagon_edge_length(space.resolution, unit="m")
    for state, number in enumerate(unrun(shapes["of"])):
        ring = np.array(shapes["rings"][number]).reshape(-1, 2) * shapes["unit"]
        own = space.projection.to_metres(*np.array(h3.cell_to_boundary(space.names[state])).T)
        assert np.abs(space.raw_answers[state] + ring - own).max() < size / 100
    stills = [svg for svg in re.findall(r"<svg viewBox.*?</svg>", text, re.S) if 'id="day-' in svg]
    assert len(stills) == 4
    for svg in stills:
        drawn = re.findall(r'class="cell shade\d" d="([^"]*)"', svg)
        outlines = [part for path in drawn for part in path.split("M") if part]
        assert len(outlines) == space.n_states
        # The first corner, and the way to each of the five others.
        assert all(len(re.findall(r"-?[0-9.]+", part)) == 12 and part.endswith("z") for part in outlines)
    assert data_of(made("grid")[0])["space"]["shapes"] is None


def test_without_h3_cells_are_drawn_all_the_same(world, tmp_path, monkeypatch):
    for name in ("h3", "h3.api", "h3.api.basic_int"):
        monkeypatch.setitem(sys.modules, name, None)
    folder = world("hexagons")
    report(folder, tmp_path / "page.html", "--policy", folder / "policy.json")
    assert data_of((tmp_path / "page.html").read_text())["space"]["shapes"] is None


@pytest.mark.parametrize("name", ["pages", "hostile", "solid", "constant", "grid"])
def test_true_states_have_their_names(name, made):
    plain, owner, folder = made(name)
    model = dphmm.load_model(folder / "model.npz")
    assert all(subject["truly"] is None for subject in data_of(plain)["subjects"])
    data = data_of(owner)
    rows = dphmm.load_trajectories(folder / "walks.csv").trajectories
    for subject in data["subjects"]:
        own = rows.take(rows.user == rows.users.index(subject["name"]))
        true = (
            own.state if own.state is not None else [model.space.names[s] for s in model.space.locate(own.lat, own.lon)]
        )
        assert [data["names"][number] for number in unrun(subject["truly"])] == list(true)


@pytest.mark.parametrize("name", WORLDS)
def test_plans_are_those_of_the_release(name, made):
    """Each row's plan, made again by the smoother's own replay: sets, hulls, joins and degrees of protection."""
    _, text, folder = made(name)
    data, model = data_of(text), dphmm.load_model(folder / "model.npz")
    space, policy = model.space, dphmm.load_policy(folder / "policy.json", model=model)
    statement = json.loads((folder / "released.parquet.privacy.json").read_text())
    choices = {part: statement[part]["name"] for part in ("constraint", "scope", "flat")}
    setting = Setting.of(model, policy, space, 1, start=statement["mechanism"]["start"], **choices)
    hindsight = Hindsight(setting)
    table = pq.read_table(folder / "released.parquet").to_pandas()
    for subject in data["subjects"]:
        own = table[table.user == subject["name"]]
        z = space.frame.to_lattice(own[[f"z_{j}" for j in range(space.dimension)]].to_numpy())
        steps = hindsight.steps(Published(subject["name"], own.step.to_numpy(), z, own.plan.tolist()))
        for row, number in enumerate(unrun(subject["plan"])):
            plan, told = steps._plans.at(row), data["timeline"]["plans"][number]
            check_plan(plan, told, data, space)


def check_plan(plan, told, data, space):
    digest, support, chosen, hulls, body, joins, degrees, exposed, mechanism, constant = told
    assert digest == plan.hash[:16] and mechanism == plan.mechanism and constant is plan.constant
    masks = [unmask(data["timeline"]["sets"][number], space.n_states) for number in (support, chosen)]
    assert np.array_equal(masks[0], plan.constraint.support) and np.array_equal(masks[1], plan.constraint.plan)
    assert joins == plan.joins.tolist()
    law_of, found = np.array(unrun(data["timeline"]["bodies"][body])), []
    laws = [(hull.digest, str(noise.describe())) for hull, noise in zip(plan.hulls, plan.mechanisms, strict=True)]
    own_law = np.array([laws.index(laws[number]) for number in plan.body_of])
    assert np.array_equal(law_of[:, None] == law_of, own_law[:, None] == own_law)
    for state in np.flatnonzero(plan.constraint.support).tolist():
        own = plan.constraint.support & (own_law == own_law[state])
        coded = data["timeline"]["hulls"][hulls[law_of[state]]]
        differences = plan.image - plan.image[state]
        facets, equations = (np.array(coded[part]).reshape(-1, space.dimension) for part in "ae")
        inside = np.all(np.abs(differences @ facets.T) <= coded["b"], axis=1) & own
        inside &= np.all(differences @ equations.T == 0, axis=1)
        assert np.array_equal(inside, plan.hulls[plan.body_of[state]].contains_lattice(differences) & own)
        found.append(int(inside.sum()))
    if len(plan.hulls) == 1:
        assert found == dphmm.degree_of_protection(plan.hulls[0], space.lattice, plan.constraint).tolist()
    # A staircase loses in whole epsilons, so among those whom its norm puts at 1 none loses more.
    assert degrees == [min(found), round(float(np.mean(found)), 2), max(found)]
    assert exposed == (0 if constant else found.count(1))


@pytest.mark.parametrize("name", WORLDS)
def test_edges_are_the_policy_s(name, made):
    _, text, folder = made(name)
    data, model = data_of(text), dphmm.load_model(folder / "model.npz")
    edges = dphmm.load_policy(folder / "policy.json", model=model).edges()
    coded = data["policy"]
    n = model.n_states
    found = unadjacent(coded["edges"]) if "edges" in coded else np.stack(np.triu_indices(n, 1), axis=1)
    assert np.array_equal(found, edges)


@pytest.mark.parametrize("name", WORLDS)
def test_the_truth_is_there_only_where_it_was_given(name, made):
    plain, owner, folder = made(name)
    without, with_truth = data_of(plain), data_of(owner)
    assert without["truth"] is None and all(subject["truth"] is None for subject in without["subjects"])
    model = dphmm.load_model(folder / "model.npz")
    from dphmm.audit.attacks.truth import truth_of
    from dphmm.audit.findings import Findings
    from dphmm.audit.released_file import ReleasedFile

    file = ReleasedFile.read(folder / "released.parquet", model.space, Findings())
    space = model.space
    states = truth_of(file, folder / "walks.csv", model, space).states
    found = [state for subject in with_truth["subjects"] for state in zip(*subject["truth"], strict=True)]
    told = np.array(found) / PARTS * space.pitch + space.frame.origin
    if not space.on_map:
        assert np.array_equal(np.array(found) / PARTS, space.lattice[states])
    else:
        # On a map the truth is the place itself, which is in the cell of its state.
        walks = pd.read_csv(folder / "walks.csv")
        places = space.projection.to_metres(walks.lat, walks.lon)
        assert np.abs(told - places).max() <= space.pitch.max() / PARTS
        assert np.array_equal(space.locate(walks.lat.to_numpy(), walks.lon.to_numpy()), states)
    for word in ("For the data owner alone", "OWNER ONLY", "distance to the truth", "the true path"):
        assert word in owner or word == "the true path"
        assert word not in plain


def test_the_page_without_the_truth_does_not_hang_on_it(world, tmp_path, made):
    """Other true rows beside the same release give the same bytes."""
    folder = world("grid")
    first = made("grid")[0]
    walks = (folder / "walks.csv").read_text()
    try:
        (folder / "walks.csv").write_text(walks.replace("50.0", "50.1"))
        report(folder, tmp_path / "again.html")
    finally:
        (folder / "walks.csv").write_text(walks)
    assert (tmp_path / "again.html").read_text() == first


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_input_gives_the_same_bytes(name, made, tmp_path):
    plain, _, folder = made(name)
    report(folder, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == plain


@pytest.mark.parametrize("name", WORLDS)
def test_only_the_page_s_own_script_and_style_may_run(name, made):
    for text in made(name)[:2]:
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
        assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "http" not in policy
        style, code = (
            re.search(r"<style>(.*?)</style>", text, re.S)[1],
            re.findall(r"<script>(.*?)</script>", text, re.S),
        )
        assert len(code) == 1 and text.count("<script") == 2
        for part in (style, code[0]):
            assert f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" in policy
        # An attribute would need a hash of its own, or be dead.
        assert not re.search(r"<[^>]*\s(style|on\w+)=", re.sub(r"<script.*?</script>", "", text, flags=re.S))


def test_hostile_names_are_data(made):
    for text in made("hostile")[:2]:
        outside = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
        assert EVIL not in outside and TRAP not in outside and "<img" not in outside
        assert outside.count("<script") == 1 == outside.count("</script>")
        assert "&lt;img src=x" in outside
        assert {subject["name"] for subject in data_of(text)["subjects"]} >= {EVIL, TRAP}


def test_twelve_thousand_rows_are_a_small_page(tmp_path):
    """40 walkers of 300 steps on 3,600 cells."""
    rng = np.random.default_rng(1)
    n, side = 12_000, 60
    cells = np.clip(np.cumsum(rng.integers(-1, 2, (40, 300, 2)), axis=1) + 30, 0, side - 1).reshape(-1, 2)
    grid = dphmm.Grid.from_bounds(10.0, 50.0, 10.2847, 50.1834, 340.0)
    assert (grid.columns, grid.rows) == (side, side)
    lat, lon = grid.to_latlon(grid.answers[cells[:, 1] * side + cells[:, 0]])
    table = {"user": np.repeat([f"u{i:02}" for i in range(40)], 300), "step": np.tile(np.arange(1, 301), 40)}
    import pandas as pd

    pd.DataFrame({**table, "lat": lat, "lon": lon}).to_parquet(tmp_path / "walks.parquet")
    distance = np.abs(grid.lattice[:, None, :] - grid.lattice[None, :, :]).max(axis=2)
    moves = (distance <= 1) / (distance <= 1).sum(axis=1, keepdims=True)
    initial = np.zeros(grid.n_states)
    initial[30 * side + 30] = 1
    dphmm.save_model(dphmm.MarkovModel(initial, moves, space=grid), tmp_path / "model.npz")
    run("policy", "radius", tmp_path / "model.npz", "-o", tmp_path / "policy.json", "--radius", "1km")
    run(
        "release", tmp_path / "walks.parquet", "--model", tmp_path / "model.npz", "--policy", tmp_path / "policy.json",
        "--epsilon", 1, "-o", tmp_path / "released.parquet", "--ledger", tmp_path / "ledger.db",
    )  # fmt: skip
    told = json.loads(report(tmp_path, tmp_path / "report.html", "--json").stdout)
    assert told["rows_step_by_step"] == n and told["subjects_step_by_step"] == 40 and told["plans"] == 30
    assert told["bytes"] == (tmp_path / "report.html").stat().st_size < 2_000_000
