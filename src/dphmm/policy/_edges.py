"""Policies given edge by edge, or read from graph files, and the questions of a policy answered from a list of edges.

Files are GraphML, edge lists and node-link JSON. They are read strictly: a policy says which states must not be told
apart, so no edge is guessed or skipped. An unknown name, a weight, a direction or a repeated key is refused, naming the
place. Nodes are state names: of a networkx graph, or of what a file lists.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from xml.parsers import expat

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.policy._cliques import array_hash
from dphmm.policy._points import hull_points
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph, count_of_states, projected, read_only, registered, sorted_edges, union
from dphmm.states.space import END
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import networkx

    from dphmm.states.space import StateSpace


Ends = tuple[IntArray, IntArray]


class Listed(PolicyGraph):
    """A policy that keeps its edges: ``listed`` (m, 2), i < j, sorted, distinct."""

    listed: IntArray

    def _extreme(self, direction: NDArray[Any], lattice: IntArray, within: Constraint) -> tuple[int, IntArray]:
        a, b = self._ends(within)
        if len(a) == 0:
            return 0, np.zeros(lattice.shape[1], dtype=np.int64)
        values = projected(direction, lattice)
        rises = values[b] - values[a]
        k = int(np.argmax(np.abs(rises)))
        difference = lattice[b[k]] - lattice[a[k]]
        return abs(int(rises[k])), difference if rises[k] >= 0 else -difference

    def _has_neighbor(self, within: Constraint) -> BoolArray:
        mask = np.zeros(self.n_states, dtype=np.bool_)
        for ends in self._ends(within):
            mask[ends] = True
        return mask

    def _join(self, parent: IntArray, within: Constraint) -> None:
        _kernels.policy.join_pairs(parent, *self._ends(within))

    def _edges(self, within: Constraint) -> IntArray:
        return sorted_edges(*self._ends(within))

    def _around(self, states: IntArray) -> IntArray:
        chosen = np.zeros(self.n_states, dtype=np.bool_)
        chosen[states] = True
        a, b = self.listed.T
        return np.unique(np.concatenate([b[chosen[a]], a[chosen[b]]]))

    def _joins(self, a: IntArray, b: IntArray) -> BoolArray:
        keys = np.minimum(a, b) * self.n_states + np.maximum(a, b)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.asarray(self._keys[at] == keys) if len(self._keys) else np.zeros(len(keys), dtype=np.bool_)

    @cached_property
    def _keys(self) -> IntArray:
        """The edges as ascending numbers."""
        return self.listed[:, 0] * self.n_states + self.listed[:, 1]

    def _spanning(self, lattice: IntArray, within: Constraint) -> IntArray:
        a, b = self._ends(within)
        return hull_points(lattice[b] - lattice[a])

    def _few(self, lattice: IntArray, within: Constraint) -> IntArray | None:
        return self._spanning(lattice, within) if lattice.shape[1] <= 2 else None

    def _ends(self, within: Constraint) -> Ends:
        """The contracted edges, unsorted and with repetitions."""
        return self._remember(within, "ends", self._contracted)

    def _contracted(self, within: Constraint) -> Ends:
        a, b = self.listed.T
        inside = within.support[a] & within.support[b]
        a, b = within.surrogate[a[inside]], within.surrogate[b[inside]]
        apart = a != b
        return a[apart], b[apart]


@registered
class EdgeGraph(Listed):
    """A policy of explicit edges."""

    kind: ClassVar[str] = "edges"

    def __init__(self, n_states: int, listed: IntArray, notes: tuple[str, ...] = ()) -> None:
        super().__init__(n_states, notes)
        self.listed = read_only(listed)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states, "edges": self.listed.tolist()}

    def _identity(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states, "edges": array_hash(self.listed)}

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> EdgeGraph:
        return from_edges(description["edges"], description["n_states"])


def with_end(policy: PolicyGraph, space: StateSpace) -> PolicyGraph:
    """The policy with `END` joined to every other label, so that two lengths of a sequence hide each other.

    Any two labels are at most two edges apart then, and one answer tells at most 2 epsilon of them. A policy that joins
    them already, or states without that name, stay as they are.

    >>> import dphmm
    >>> space = dphmm.StateSpace.labels(["a", "b", "END"])
    >>> dphmm.policy.with_end(dphmm.policy.categorical([0, 1, 2]), space).edges().tolist()
    [[0, 2], [1, 2]]

    Source: docs/proofs/lengths.md.
    """
    if joins_end(policy, space) is not False:
        return policy
    end, n = space.index_of(END), policy.n_states
    return union(policy, from_edges([(end, state) for state in range(n) if state != end], n))


def joins_end(policy: PolicyGraph, space: StateSpace) -> bool | None:
    """True if `END` is joined to every other label; None where no state is called so."""
    end = space.index_of(END)
    if end < 0:
        return None
    others = np.flatnonzero(np.arange(policy.n_states) != end)
    return bool(policy.joins(np.full(len(others), end), others).all())


def from_edges(edges: ArrayLike, N: int) -> EdgeGraph:
    """The policy with the given edges, pairs (m, 2) of states 0..N-1 in any order.

    Repeated edges count once. An edge from a state to itself protects nothing: it is dropped, and ``notes``
    says so. Raises InvalidInput naming the edge for an unknown state.
    """
    n = count_of_states(N)
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return EdgeGraph(n, np.zeros((0, 2), dtype=np.int64))
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InvalidInput("edges", f"an array of shape {pairs.shape}", "pairs of states (m, 2)")
    if pairs.dtype.kind not in "iu":
        raise InvalidInput("edges", f"dtype {pairs.dtype}", "integer state numbers")
    outside = np.flatnonzero(np.any((pairs < 0) | (pairs >= n), axis=1))
    if len(outside):
        k = int(outside[0])
        pair = f"({pairs[k, 0]}, {pairs[k, 1]})"
        raise InvalidInput(f"edges[{k}]", pair, f"states from 0 to {n - 1}")
    a, b = pairs.astype(np.int64).T
    loops = int((a == b).sum())
    notes = (f"{loops} edges from a state to itself were dropped: they protect nothing",) if loops else ()
    return EdgeGraph(n, sorted_edges(a, b), notes)


def from_adjacency(matrix: Any) -> EdgeGraph:
    """The policy of a symmetric matrix (N, N) of zeros and ones, or booleans, dense or scipy.sparse.

    Raises InvalidInput naming the first entry that is no 0 or 1 (a policy has no weights), and the first pair
    of a matrix that is not symmetric.
    """
    try:
        square = sparse.coo_array(matrix)
    except (TypeError, ValueError):
        raise InvalidInput("adjacency", type(matrix).__name__, "a matrix of zeros and ones") from None
    if square.ndim != 2 or square.shape[0] != square.shape[1]:
        raise InvalidInput("adjacency", f"a matrix of shape {square.shape}", "a square one")
    rows, columns = (np.asarray(c, dtype=np.int64) for c in square.coords)
    # Written so that NaN is refused too.
    odd = np.flatnonzero(~((square.data == 0) | (square.data == 1)))
    if len(odd):
        k = odd[0]
        raise InvalidInput(f"adjacency[{rows[k]}, {columns[k]}]", square.data[k].item(), "0 or 1")
    edge = square.data == 1
    check_symmetric(rows[edge], columns[edge], square.shape[0], "adjacency")
    return from_edges(np.stack([rows[edge], columns[edge]], axis=1), square.shape[0])


def check_symmetric(a: IntArray, b: IntArray, n: int, field: str) -> None:
    """InvalidInput naming the first directed edge that has no opposite."""
    forward, backward = np.unique(a * n + b), np.unique(b * n + a)
    alone = np.setdiff1d(forward, backward)
    if len(alone):
        i, j = divmod(int(alone[0]), n)
        raise InvalidInput(field, f"an edge ({i}, {j}) without ({j}, {i})", "an undirected graph")


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
    keys = [key for key in ("edges", "links") if key in document]
    if len(keys) != 1:
        raise InvalidInput(str(path), f"{len(keys)} lists of edges", "one, named edges or links")
    nodes = [_field(node, "id", f"nodes[{k}]") for k, node in enumerate(_list(document, "nodes"))]
    edges = [
        (
            f"{keys[0]}[{k}]",
            _field(e, "source", f"{keys[0]}[{k}]"),
            _field(e, "target", f"{keys[0]}[{k}]"),
            e,
        )
        for k, e in enumerate(_list(document, keys[0]))
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
        got = f"text that is not valid JSON at line {error.lineno} column {error.colno}"
        raise InvalidInput(str(path), got, "a JSON document") from None
    except (ValueError, RecursionError):
        raise InvalidInput(str(path), "JSON nested too deeply, or a number too long", "a JSON document") from None


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise InvalidInput("JSON", f"the key {key!r} twice", "each key once")
        members[key] = value
    return members


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
    """The contents of a GraphML document, collected while it is parsed."""

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
    ends: list[tuple[int, int]] = []
    for place, a, b, weight in edges:
        if not _is_one(weight, place):
            raise InvalidInput(place, f"weight {weight!r}", "no weight, or 1: a policy has none")
        pair = states.of(a, place), states.of(b, place)
        for node, state in zip((a, b), pair, strict=True):
            if declared is not None and state not in declared:
                raise InvalidInput(place, node, "a node listed among the nodes")
        ends.append(pair)
    if ends:
        pairs = np.array(ends, dtype=np.int64)
    if directed:
        check_symmetric(pairs[:, 0], pairs[:, 1], states.count, "graph")
    return from_edges(pairs, states.count)


class _States:
    """The state of each node of the input."""

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
