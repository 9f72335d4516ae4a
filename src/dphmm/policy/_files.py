"""Policies from graph files: GraphML, edge lists and node-link JSON, read strictly.

A policy says who must not be told apart, so no edge of a file is guessed or skipped: an unknown name, a weight, a
direction, a repeated key is refused, naming the place.

Nodes are state names: of a networkx graph, or of what a file lists.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np

from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.policy._edges import EdgeGraph, check_symmetric, from_edges
from dphmm.policy.graph import count_of_states

if TYPE_CHECKING:
    import networkx

    from dphmm.states.space import StateSpace

#: Largest graph file that is read.
LARGEST_FILE = 2**28
_HEADERS = {("source", "target"), ("from", "to"), ("node1", "node2")}

_NUMBER = re.compile(r"[+-]?[0-9.]+")

Located = tuple[str, object, object, object]


def from_edge_list(path: str | os.PathLike[str], space: Any, delimiter: str = ",") -> EdgeGraph:
    """The policy of a text file with two columns of state names (numbers where the space has no names), UTF-8.

    ``space`` : a StateSpace, or the number of states. A first row of two names that no state has is a header if it
    is ``source,target``, ``from,to`` or ``node1,node2``, or if the next row joins two states (``notes`` tell of it;
    numbers are never a header). Raises InvalidInput naming the row.
    """
    text = _text(path)
    # Errors of the csv module (a field over 128 kB, a NUL) are about one row.
    listed = list(_listed(csv.reader(text.splitlines(), delimiter=delimiter, strict=True)))
    header = _header(listed, space)
    policy = named_policy(listed[len(header) :], space)
    for place, source, target, _ in header:
        if (str(source).lower(), str(target).lower()) not in _HEADERS:
            note = f"{place} ({source}, {target}) was taken for names of columns: no state has them"
            policy.notes = (*policy.notes, note)
    return policy


def _listed(rows: Any) -> Iterator[Located]:
    try:
        for number, row in enumerate(rows, start=1):
            if not row:
                continue
            if len(row) != 2:
                raise InvalidInput(f"row {number}", f"{len(row)} columns", "two: a policy has no weights")
            yield f"row {number}", row[0].strip(), row[1].strip(), 1
    except csv.Error as error:
        raise InvalidInput("edge list", str(error), "two columns of names") from None


def _header(listed: list[Located], space: Any) -> list[Located]:
    """The first row, if it is a header; a misspelt edge is none, unless both its names are."""
    names = [str(name) for name in listed[0][1:3]] if listed else []
    if not names or any(_is_state(name, space) or _NUMBER.fullmatch(name) for name in names):
        return []
    usual = tuple(name.lower() for name in names) in _HEADERS
    before_edges = names[0] != names[1] and len(listed) > 1 and all(_is_state(str(n), space) for n in listed[1][1:3])
    return listed[:1] if usual or before_edges else []


def _is_state(name: str, space: Any) -> bool:
    if hasattr(space, "index_of"):
        return bool(space.index_of(name) >= 0)
    return name.isascii() and name.isdigit() and len(name) < 12 and int(name) < int(space)


def from_node_link(path: str | os.PathLike[str], space: Any) -> EdgeGraph:
    """The policy of a JSON file in node-link form: ``nodes`` [{"id"}], ``edges`` or ``links`` [{"source", "target"}].

    ``space`` : a StateSpace, or the number of states. Ids are names (strings) or state numbers. Raises
    InvalidInput for a directed graph, a weight other than 1, an unknown or undeclared node, a repeated key,
    NaN.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise InvalidInput(str(path), type(document).__name__, "an object with nodes and edges")
    given = [key for key in ("edges", "links") if key in document]
    if len(given) != 1:
        raise InvalidInput(str(path), f"{len(given)} lists of edges", "one, named edges or links")
    nodes = [_field(node, "id", f"nodes[{k}]") for k, node in enumerate(_list(document, "nodes"))]
    edges = [
        (
            f"{given[0]}[{k}]",
            _field(e, "source", f"{given[0]}[{k}]"),
            _field(e, "target", f"{given[0]}[{k}]"),
            e,
        )
        for k, e in enumerate(_list(document, given[0]))
    ]
    weighted = ((place, a, b, edge.get("weight", 1)) for place, a, b, edge in edges)
    directed = document.get("directed", False)
    if not isinstance(directed, bool):
        raise InvalidInput("directed", directed, "true or false")
    return named_policy(weighted, space, nodes, directed=directed)


def _list(document: dict[str, Any], key: str) -> list[Any]:
    value = document.get(key)
    if not isinstance(value, list):
        raise InvalidInput(key, type(value).__name__, "a list")
    return value


def _field(entry: Any, key: str, place: str) -> Any:
    if not isinstance(entry, dict) or key not in entry:
        raise InvalidInput(place, entry, f"an object with {key}")
    return entry[key]


def read_json(path: str | os.PathLike[str]) -> Any:
    """A JSON document, UTF-8; InvalidInput for a repeated key, NaN or an infinity, or text that is no JSON."""
    text = _text(path)
    try:
        return json.loads(text, object_pairs_hook=_distinct_keys, parse_constant=_no_constant)
    except InvalidInput:
        raise
    except json.JSONDecodeError as error:
        came = f"text that is not valid JSON at line {error.lineno} column {error.colno}"
        raise InvalidInput(str(path), came, "a JSON document") from None
    except (ValueError, RecursionError):
        raise InvalidInput(str(path), "JSON nested too deeply, or a number too long", "a JSON document") from None


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidInput("JSON", f"the key {key!r} twice", "each key once")
        found[key] = value
    return found


def _no_constant(name: str) -> Any:
    raise InvalidInput("JSON", name, "finite numbers")


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return _content(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), f"bytes that are not UTF-8 at {error.start}", "a UTF-8 text") from None


def _content(path: str | os.PathLike[str]) -> bytes:
    place = Path(path)
    if not place.is_file():
        raise InvalidInput("path", str(path), "an existing file")
    size = place.stat().st_size
    if size > LARGEST_FILE:
        raise InvalidInput(str(path), f"{size} bytes", f"at most {LARGEST_FILE}")
    return place.read_bytes()


def from_graphml(path: str | os.PathLike[str], space: Any) -> EdgeGraph:
    """The policy of a GraphML file; node ids are state names (numbers where the space has no names).

    ``space`` : a StateSpace, or the number of states. A document type is refused, and with it every entity.
    Raises InvalidInput for a directed edge without its opposite, a weight other than 1, an unknown or
    undeclared node.
    """
    reader = _GraphML()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.CharacterDataHandler = reader.characters
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(_content(path), True)
    except expat.ExpatError as error:
        raise InvalidInput(str(path), str(error), "a GraphML document") from None
    if reader.graphs != 1:
        raise InvalidInput(str(path), f"{reader.graphs} graphs", "one")
    return named_policy(reader.edges(), space, reader.nodes, directed=reader.any_directed)


class _GraphML:
    """What a GraphML document says, collected while it is parsed."""

    def __init__(self) -> None:
        self.graphs = 0
        self.nodes: list[object] = []
        self.any_directed = False
        self._default = "undirected"
        self._found: list[tuple[str, str, bool, str]] = []
        self._weights: dict[str, str] = {}
        self._default_of: str | None = None
        self._data: str | None = None
        self._in_edge = False
        self._text = ""

    def doctype(self, *_: object) -> None:
        raise InvalidInput("GraphML", "a document type declaration", "none: entities are not read")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rsplit(" ", 1)[-1]
        self._text = ""
        if tag == "graph":
            self.graphs += 1
            self._default = attributes.get("edgedefault", "undirected")
        elif tag == "node":
            self.nodes.append(_attribute(attributes, "id", f"node {len(self.nodes)}"))
        elif tag == "edge":
            self._edge(attributes)
        elif tag == "hyperedge":
            raise InvalidInput("GraphML", "a hyperedge", "edges of two nodes")
        elif tag == "key" and attributes.get("for") in ("edge", "all") and attributes.get("attr.name") == "weight":
            self._default_of = _attribute(attributes, "id", "key")
            self._weights[self._default_of] = "1"
        elif tag == "data":
            self._data = attributes.get("key")

    def _edge(self, attributes: dict[str, str]) -> None:
        place = f"edge {len(self._found)}"
        ends = _attribute(attributes, "source", place), _attribute(attributes, "target", place)
        directed = attributes.get("directed", str(self._default == "directed").lower()) == "true"
        self.any_directed |= directed
        self._in_edge = True
        self._found.append((*ends, directed, ""))

    def characters(self, text: str) -> None:
        self._text += text

    def end(self, name: str) -> None:
        tag = name.rsplit(" ", 1)[-1]
        if tag == "default" and self._default_of is not None:
            self._weights[self._default_of] = self._text.strip()
        elif tag == "data" and self._in_edge and self._data in self._weights:
            self._found[-1] = (*self._found[-1][:3], self._text.strip())
        elif tag == "key":
            self._default_of = None
        elif tag == "edge":
            self._in_edge = False

    def edges(self) -> Iterable[Located]:
        """Edges; an undirected one among directed ones counts in both directions."""
        default = next(iter(self._weights.values()), "1")
        for k, (source, target, directed, weight) in enumerate(self._found):
            yield f"edge {k}", source, target, weight or default
            if self.any_directed and not directed:
                yield f"edge {k}", target, source, weight or default


def _attribute(attributes: dict[str, str], key: str, place: str) -> str:
    if key not in attributes:
        raise InvalidInput(place, f"no {key}", f"an attribute {key}")
    return attributes[key]


def from_networkx(graph: networkx.Graph[Any], space: StateSpace | int) -> EdgeGraph:
    """The policy of a networkx graph: string nodes are state names, integer nodes state numbers.

    ``space`` : a StateSpace, or the number of states. Raises InvalidInput for a directed graph that is not
    symmetric, an unknown node (naming its edge, if it has one), or a ``weight`` other than 1.
    """
    edges = ((f"edge ({a!r}, {b!r})", a, b, data.get("weight", 1)) for a, b, data in graph.edges(data=True))
    return named_policy(edges, space, graph.nodes, directed=graph.is_directed())


def named_policy(
    edges: Iterable[tuple[str, object, object, object]],
    space: Any,
    nodes: Iterable[object] | None = None,
    directed: bool = False,
) -> EdgeGraph:
    """The policy of edges (place in the input, node, node, weight); where ``nodes`` are listed, edges use only them."""
    states = _States(space)
    declared = None if nodes is None else {states.of(node, f"node {k}") for k, node in enumerate(nodes)}
    pairs = np.zeros((0, 2), dtype=np.int64)
    found: list[tuple[int, int]] = []
    for place, a, b, weight in edges:
        if not _is_one(weight, place):
            raise InvalidInput(place, f"weight {weight!r}", "no weight, or 1: a policy has none")
        pair = states.of(a, place), states.of(b, place)
        for node, state in zip((a, b), pair, strict=True):
            if declared is not None and state not in declared:
                raise InvalidInput(place, node, "a node listed among the nodes")
        found.append(pair)
    if found:
        pairs = np.array(found, dtype=np.int64)
    if directed:
        check_symmetric(pairs[:, 0], pairs[:, 1], states.count, "graph")
    return from_edges(pairs, states.count)


class _States:
    """Which state a node of the input is."""

    def __init__(self, space: Any) -> None:
        if isinstance(space, (int, np.integer)):
            self.count = count_of_states(space)
            self._index = None
        else:
            self.count = space.n_states
            self._index = space.index_of

    def of(self, node: object, place: str) -> int:
        state = -1
        if isinstance(node, str):
            state = self._by_name(node)
        elif isinstance(node, (int, np.integer)) and not isinstance(node, bool) and 0 <= node < self.count:
            state = int(node)
        if state < 0:
            raise InvalidInput(place, node, "a state name, or a state number below " + str(self.count))
        return state

    def _by_name(self, name: str) -> int:
        if self._index is not None:
            return int(self._index(name))
        plain = name.isascii() and name.isdigit() and (name == "0" or not name.startswith("0")) and len(name) < 12
        return int(name) if plain and int(name) < self.count else -1


def _is_one(weight: object, place: str) -> bool:
    # Files give "1.0", graphs 1.0; NaN and text that is no number are refused by name.
    return weight is not None and exact_number(weight, f"{place} weight") == 1
