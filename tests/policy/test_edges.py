"""Policies from graph files: what is read, and what is refused in one line."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

from dphmm import policy
from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace

PLACES = ["home", "work", "gym", "café"]
SPACE = StateSpace(np.arange(4), names=PLACES)
EDGES = [[0, 1], [0, 3], [1, 2]]


@pytest.fixture
def graph():
    return nx.Graph([(PLACES[a], PLACES[b]) for a, b in EDGES])


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "graph"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refused(read, path, message, space=SPACE):
    with pytest.raises(InvalidInput, match=message) as caught:
        read(path, space)
    assert "\n" not in str(caught.value)


def test_graphml_of_networkx(graph, tmp_path):
    path = tmp_path / "g.graphml"
    nx.write_graphml(graph, path)
    assert policy.from_graphml(path, SPACE).edges().tolist() == EDGES
    nx.write_graphml(nx.Graph([(0, 1), (1, 2)]), path)
    assert policy.from_graphml(path, 3).edges().tolist() == [[0, 1], [1, 2]]
    for a, b in graph.edges:
        graph[a][b]["weight"] = 1.0
    graph.nodes["home"]["weight"] = 70.5
    nx.write_graphml(graph, path)
    assert policy.from_graphml(path, SPACE).edges().tolist() == EDGES
    graph["home"]["work"]["weight"] = float("nan")
    nx.write_graphml(graph, path)
    refused(policy.from_graphml, path, "edge .* weight")
    nx.write_graphml(nx.DiGraph([("home", "work"), ("work", "home")]), path)
    assert policy.from_graphml(path, SPACE).edges().tolist() == [[0, 1]]
    nx.write_graphml(nx.DiGraph([("home", "work")]), path)
    refused(policy.from_graphml, path, r"\(0, 1\) without \(1, 0\)")


def graphml(body, head="", default="undirected"):
    return f'<?xml version="1.0"?>{head}<graphml><graph edgedefault="{default}">{body}</graph></graphml>'


NODES = '<node id="home"/><node id="work"/><node id="gym"/>'
WEIGHT = '<key id="w" for="edge" attr.name="weight" attr.type="double"><default>2</default></key>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (graphml(NODES + '<edge source="home" target="moon"/>'), "edge 0: got moon"),
        (graphml(NODES + '<edge source="home" target="café"/>'), "listed among the nodes"),
        (graphml(NODES + '<edge source="home"/>'), "no target"),
        (graphml("<node/>"), "no id"),
        (graphml(NODES + "<hyperedge/>"), "hyperedge"),
        (graphml("", head='<!DOCTYPE g SYSTEM "file:///etc/hostname">'), "document type"),
        (graphml(NODES)[:-5], "GraphML document"),
        ("", "GraphML document"),
        ("<graphml/>", "0 graphs"),
        (graphml("<graph/>"), "2 graphs"),
        (graphml(NODES + '<edge source="home" target="work" directed="true"/>'), r"\(0, 1\) without"),
        (
            f"<graphml>{WEIGHT}<graph>{NODES}<edge source='home' target='work'/></graph></graphml>",
            "weight '2'",
        ),
    ],
)
def test_graphml_refuses(write, text, message):
    refused(policy.from_graphml, write(text), message)


def test_graphml_mixed_directions_and_weights(write):
    body = NODES + (
        '<edge source="home" target="work"/>'
        '<edge source="gym" target="work" directed="true"/><edge source="work" target="gym" directed="true"/>'
    )
    assert policy.from_graphml(write(graphml(body)), SPACE).edges().tolist() == [[0, 1], [1, 2]]
    weighted = f"<graphml>{WEIGHT}<graph>{NODES}<edge source='home' target='work'><data key='w'> 1.0 </data></edge>"
    path = write(weighted + "</graph></graphml>")
    assert policy.from_graphml(path, SPACE).edges().tolist() == [[0, 1]]


def test_edge_lists(write):
    lines = "home,work\r\n\ncafé, home\n" + '"work","gym"\n'
    assert policy.from_edge_list(write(lines), SPACE).edges().tolist() == EDGES
    assert policy.from_edge_list(write("﻿Source,Target\n" + lines), SPACE).edges().tolist() == EDGES
    assert policy.from_edge_list(write("0,1\n1,0\n2,2\n"), 3).edges().tolist() == [[0, 1]]
    assert policy.from_edge_list(write("0 1\n1 2\n"), 3, delimiter=" ").edges().tolist() == [[0, 1], [1, 2]]
    assert policy.from_edge_list(write(""), 3).edges().tolist() == []


def test_a_header_has_names_that_no_state_has(write):
    read = policy.from_edge_list(write("place,neighbour\nhome,work\n"), SPACE)
    assert read.edges().tolist() == [[0, 1]]
    assert "row 1 (place, neighbour)" in read.notes[0]
    assert policy.from_edge_list(write("From,To\nhome,work\n"), SPACE).notes == ()
    assert policy.from_edge_list(write("a,b\n0,1\n"), 2).edges().tolist() == [[0, 1]]
    named = StateSpace(np.arange(3), names=["from", "to", "x"])
    assert policy.from_edge_list(write("from,to\nto,x\n"), named).edges().tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("home,moon\nhome,work\n", "row 1: got moon"),
        ("sun,moon\n", "row 1: got sun"),
        ("sun,moon\nsun,work\n", "row 1: got sun"),
        ("7,8\nhome,work\n", "row 1: got 7"),
        ("sun,sun\nhome,work\n", "row 1: got sun"),
        ("home,work\nhome,moon\n", "row 2: got moon"),
        ("home\n", "row 1: got 1 columns"),
        ("home,work\nsource,target\n", "row 2: got source"),
        ("home,0\n", "row 1: got 0"),
        ('"home,work\n', "edge list"),
        (b"home,\xff\n", "UTF-8"),
        ("x" * 200_000 + ",home\n", "edge list"),
    ],
)
def test_edge_lists_refuse(write, text, message):
    refused(policy.from_edge_list, write(text), message)


@pytest.mark.parametrize("text", ["0,3\n", "0,-1\n", "0,01\n", "0,1.0\n", "0,١\n", "0," + "1" * 5000 + "\n"])
def test_plain_numbers_only(write, text):
    refused(policy.from_edge_list, write(text), "row 1", space=3)


@pytest.mark.parametrize("key", ["edges", "links"])
def test_node_link(graph, write, key):
    document = nx.node_link_data(graph, edges=key)
    assert policy.from_node_link(write(json.dumps(document)), SPACE).edges().tolist() == EDGES
    numbers = nx.node_link_data(nx.DiGraph([(0, 1), (1, 0)]), edges=key)
    assert policy.from_node_link(write(json.dumps(numbers)), SPACE).edges().tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nodes": [], "nodes": [], "edges": []}', "'nodes' twice"),
        ('{"nodes": [{"id": NaN}], "edges": []}', "NaN"),
        ('{"nodes": [{"id": true}], "edges": []}', "node 0: got True"),
        ('{"nodes": [{"id": [0]}], "edges": []}', "node 0"),
        ('{"nodes": [{"id": 0}], "edges": [{"source": 0, "target": 1}]}', "listed among the nodes"),
        ('{"nodes": [{"id": 0}], "edges": [{"source": 0, "target": 9}]}', r"edges\[0\]: got 9"),
        ('{"nodes": [{"id": 0}], "edges": [{"source": 0}]}', "target"),
        ('{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1, "weight": "?"}]}', "weight"),
        ('{"directed": "no", "nodes": [], "edges": []}', "directed"),
        ('{"nodes": [], "edges": [], "links": []}', "2 lists"),
        ('{"nodes": []}', "0 lists"),
        ('{"edges": []}', "nodes"),
        ('{"nodes": [1], "edges": []}', "id"),
        ('{"nodes": [], "edges": {}}', "edges"),
        ("[]", "list"),
        ("[" * 100_000, "JSON"),
        ("1" * 5000, "JSON"),
        ("", "JSON"),
        (b'{"nodes": "\xff"}', "UTF-8"),
    ],
)
def test_node_link_refuses(write, text, message):
    refused(policy.from_node_link, write(text), message)


@pytest.mark.parametrize("read", [policy.from_graphml, policy.from_edge_list, policy.from_node_link])
def test_missing_and_huge_files(read, write, tmp_path, monkeypatch):
    refused(read, tmp_path / "none", "an existing file")
    refused(read, tmp_path, "an existing file")
    monkeypatch.setattr("dphmm.policy._edges.LARGEST_FILE", 3)
    refused(read, write("home,work"), "at most 3")
