"""dphmm policy: every kind end to end, and what a policy file refuses."""

from __future__ import annotations

import json

import pytest

from dphmm.storage.models import load_model
from dphmm.storage.policies import load_policy


def loaded(folder, path):
    return load_policy(path, model=load_model(folder / "model.npz"))


def test_complete_and_transition(town, tmp_path, run, one_json):
    model = town / "model.npz"
    told = one_json(run("policy", "complete", model, "-o", tmp_path / "c.json", "--json"))
    assert told["states_without_neighbour"] == 0
    run("policy", "transition", model, "-o", tmp_path / "t.json")
    assert loaded(town, tmp_path / "t.json").kind == "transition"


def test_radius_is_metres_on_a_map_and_closed(town, tmp_path, run):
    model = town / "model.npz"
    run("policy", "radius", model, "-o", tmp_path / "a.json", "--radius", "1km")
    run("policy", "radius", model, "-o", tmp_path / "b.json", "--radius", "999.999m")
    assert len(loaded(town, tmp_path / "a.json").edges()) > 0
    assert len(loaded(town, tmp_path / "b.json").edges()) == 0


def test_radius_is_a_number_elsewhere(site, tmp_path, run):
    run("policy", "radius", site / "model.npz", "-o", tmp_path / "r.json", "--radius", "1")
    assert loaded(site, tmp_path / "r.json").edges().tolist() == [[0, 1], [1, 2], [2, 3]]


def test_knn_joins_the_nearest_states(site, town, tmp_path, run):
    run("policy", "knn", site / "model.npz", "-o", tmp_path / "n.json", "--k", "1")
    assert loaded(site, tmp_path / "n.json").edges().tolist() == [[0, 1], [1, 2], [2, 3]]
    run("policy", "knn", town / "model.npz", "-o", tmp_path / "t.json", "--k", "2", "--quiet")
    assert loaded(town, tmp_path / "t.json").describe()["k"] == 2
    for k in ("0", "4", "2.5", "many"):
        told = run("policy", "knn", site / "model.npz", "-o", tmp_path / "x.json", "--k", k, code=2).stderr
        assert "--k" in told and len(told.splitlines()) == 1, told
    run("policy", "knn", site / "model.npz", "-o", tmp_path / "x.json", code=2)
    assert not (tmp_path / "x.json").exists()


def test_categorical_by_a_table_of_labels(site, tmp_path, run):
    labels = tmp_path / "labels.csv"
    labels.write_text("state,kind\nalpha,a\nbeta,b\ngamma,a\ndelta,b\nunused,c\n")
    run("policy", "categorical", site / "model.npz", "-o", tmp_path / "k.json", "--labels", labels)
    assert loaded(site, tmp_path / "k.json").edges().tolist() == [[0, 3], [1, 2]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("state,kind\nalpha,a\nbeta,b\ngamma,a\n", "no label for state 'delta'"),
        ("state,kind\nalpha,a\nalpha,b\n", "two labels for state 'alpha'"),
        ("state,kind\n", "with no rows"),
        ("state,kind,more\nalpha,a,b\n", "2 columns"),
        ("state,kind\nalpha,\n", "no label for state 'alpha'"),
    ],
)
def test_labels_are_never_guessed(site, tmp_path, run, text, told):
    (tmp_path / "labels.csv").write_text(text)
    out = tmp_path / "k.json"
    result = run("policy", "categorical", site / "model.npz", "-o", out, "--labels", tmp_path / "labels.csv", code=2)
    assert told in result.stderr
    assert not out.exists()


def test_edges_from_every_graph_format(site, tmp_path, run):
    (tmp_path / "g.csv").write_text("source,target\nalpha,beta\ngamma,beta\n")
    nodes = [{"id": name} for name in ("alpha", "beta", "gamma")]
    edges = [{"source": "alpha", "target": "beta"}, {"source": "beta", "target": "gamma"}]
    (tmp_path / "g.json").write_text(json.dumps({"directed": False, "nodes": nodes, "edges": edges}))
    (tmp_path / "g.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
        '<node id="alpha"/><node id="beta"/><node id="gamma"/>'
        '<edge source="alpha" target="beta"/><edge source="beta" target="gamma"/></graph></graphml>'
    )
    for suffix in ("csv", "json", "graphml"):
        out = tmp_path / f"p-{suffix}.json"
        run("policy", "edges", site / "model.npz", "-o", out, "--graph", tmp_path / f"g.{suffix}")
        assert loaded(site, out).edges().tolist() == [[0, 1], [1, 3]]


def test_union(site, tmp_path, run):
    model = site / "model.npz"
    (tmp_path / "g.csv").write_text("alpha,gamma\n")
    run("policy", "edges", model, "-o", tmp_path / "a.json", "--graph", tmp_path / "g.csv")
    run("policy", "radius", model, "-o", tmp_path / "b.json", "--radius", "1")
    run("policy", "union", model, tmp_path / "a.json", tmp_path / "b.json", "-o", tmp_path / "u.json")
    assert loaded(site, tmp_path / "u.json").edges().tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]
    run("policy", "union", model, tmp_path / "a.json", "-o", tmp_path / "v.json", code=2)


def test_states_without_a_neighbour_are_warned_of(town, site, tmp_path, run):
    told = run("policy", "radius", town / "model.npz", "-o", tmp_path / "r.json", "--radius", "10m", "--quiet").stderr
    assert told.startswith("warning: ")
    assert "have no neighbour" in told
    assert "answers each of them that nothing else hides as its nearest state, or joins it to that" in told
    assert run("policy", "complete", site / "model.npz", "-o", tmp_path / "c.json", "--quiet").stderr == ""


def test_a_header_of_a_graph_is_told_of(site, tmp_path, run):
    (tmp_path / "g.csv").write_text("page,next page\nalpha,beta\ngamma,beta\n")
    result = run("policy", "edges", site / "model.npz", "-o", tmp_path / "p.json", "--graph", tmp_path / "g.csv")
    assert "row 1 (page, next page) was taken for names of columns" in result.stderr
    assert loaded(site, tmp_path / "p.json").edges().tolist() == [[0, 1], [1, 3]]


def test_a_policy_is_replaced_only_by_force(site, tmp_path, run):
    arguments = ("policy", "complete", site / "model.npz", "-o", tmp_path / "p.json")
    (tmp_path / "p.json").write_text("mine")
    run(*arguments, code=2)
    assert (tmp_path / "p.json").read_text() == "mine"
    run(*arguments, "--force")
    assert loaded(site, tmp_path / "p.json").kind == "complete"
