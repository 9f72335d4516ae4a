"""The degree distribution of a graph, private for edges or for people, from pairs of people or a table of edges.

*Edge* level: one edge is there or not. Two people's degrees change by 1, so four numbers of the histogram by 1. One
edge in another's place is two such changes, and may lose twice as much.
*Node* level: all edges of one person change. Degrees are first capped: edges are taken in an order that is fixed by the
ends' numbers alone, and one is left out if an end already has ``cap`` of them. Then one person's edges change the
histogram by at most 4·cap + 2 (the proof is on the page; the order is that of Day, Li and Lyu, SIGMOD 2016).

No row of DATA decides whether there is an answer: a row that is no edge of two public people is rejected, and listed
for the owner.

Proofs: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._checks import one_of, whole
from dphmm.dependent._counts import with_total
from dphmm.dependent._dependence import Budget, add_integer_noise, check_header, is_edge_text
from dphmm.dependent._inputs import (
    CONSISTENT,
    RELATION,
    SPELLING,
    Called,
    Option,
    Rejected,
    counting,
    is_table,
    names,
    public_names,
    whole_numbers,
)
from dphmm.dependent._question import Answered, AnsweredQuestion, CountedQuestion, ExactCounts, PerPerson
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import default_bits
from dphmm.storage.columns import integers
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import checked_input
from dphmm.storage.private_tables import Members, PrivateTable, edge_rows
from dphmm.types import Bits, BoolArray, Exact, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


LEVELS = {"edge": "one edge", "node": "all edges of one person"}
_DEPENDENCES = {"edge": ("group", "independent"), "node": ("friends", "group", "independent")}
#: The neighbours: an edge is there or not; the edges of a person are any others.
_NEIGHBOURS = {"edge": "add-remove", "node": "replace"}
_EDGE_ONLY = ("a person's edges", "one edge or another", "the people")


def degree_distribution(
    edges: Any,
    n: int,
    dependence: Any,
    epsilon: Exact,
    *,
    level: str,
    cap: int,
    mechanism: str | None = None,
    consistent: bool = True,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """The noisy number of people, of a public ``n``, with 0, 1, …, ``cap`` friends: columns degree, count.

    ``level``: "edge" (one edge is there or not) or "node" (all edges of one person, whichever they are). It is
    required, for the two protect very different things. ``cap``: public. At edge level the last number counts everybody
    with ``cap`` friends or more; at node level edges beyond the cap are left out. ``dependence``: at node level a model
    of the n people, "independent" or ("group", k); at edge level one of the two last. ``consistent``: no counts below 0
    and n people in all (post-processing). A row of ``edges`` that does not join two different people from 0 to n − 1 is
    no edge.
    """
    one_of(level, tuple(LEVELS), "level")
    people, most = whole(n, "n", 1), whole(cap, "cap", 1)
    if not isinstance(dependence, (str, tuple)):
        if level == "edge":
            raise InvalidInput("dependence", repr(dependence), '"independent" or ("group", k) at edge level')
        if dependence.n_tuples != people:
            raise InvalidInput("dependence", repr(dependence), f"one of the {people} people")
    pairs = simple_edges(edges, people)
    budget = Budget.of(dependence, epsilon, mechanism, accept_unproved)
    return _with_noise(histogram_of_degrees(pairs, people, most, level), people, level, budget, consistent, bits)


def _with_noise(
    counts: IntArray, people: int, level: str, budget: Budget, consistent: bool, bits: Bits | None
) -> Answered:
    """The published table of the numbers (cap + 1,) of people by degree."""
    import pandas as pd

    source, most = default_bits(bits), len(counts) - 1
    sensitivity = Fraction(4 if level == "edge" else 4 * most + 2)
    noisy, part = add_integer_noise(counts, sensitivity, budget.per_record, f"degrees ({level} level)", source)
    if consistent:
        noisy = with_total(noisy, people)
    frame = pd.DataFrame({"degree": np.arange(most + 1), "count": noisy})
    event = budget.event(f"degree distribution, {level} level", LEVELS[level], (part,), source, _NEIGHBOURS[level])
    return Answered(frame, event)


class Degree(CountedQuestion):
    """`degree_distribution` of a table of edges, whose ends are numbers or names of public people."""

    name = "degree"
    help = "How many people have 0, 1, 2, ... edges. DATA has an edge a row (a table, or SNAP's .txt, .txt.gz)."
    forms = "friends:EDGES (node level), group:K or independent."
    functions: ClassVar = {"degree": degree_distribution}
    options = (
        Option("people", "The public people: a number N (named 0 to N-1), or a table of names.", "N"),
        Option("level", "edge hides whether one edge is there; node hides all edges of one person.", "WORD"),
        Option("cap", "Degrees are counted up to this public number.", "K", int),
        Option("columns", "The columns of the two ends, unless DATA has two.", "A,B"),
        SPELLING,
        replace(RELATION, help="None: --level says what neighbours are.", default=None, shown=False),
        replace(CONSISTENT, help="No counts below 0, and all people counted  [default: so]", default=True),
    )

    @classmethod
    def arguments(
        cls, name: str, data: Any, dependence: Any, epsilon: Exact, options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The number of people comes after the edges."""
        named = {option: value for option, value in options.items() if option != "n"}
        return (data, options.get("n"), dependence, epsilon), named

    def check(self, dependence: Any) -> None:
        """Validate the unit of privacy, the degree cap and the population."""
        level, columns, called = self.given["level"], self.given["columns"], self.called
        if level not in LEVELS:
            expected = "edge (hides whether one edge is there) or node (hides all edges of one person)"
            raise InvalidInput(called("level"), "nothing" if level is None else level, expected)
        if self.given["neighbours"] is not None:
            meant = "an edge is there or not" if level == "edge" else "all edges of a person are replaced"
            expected = f"none: {called('level')} says what neighbours are, with {level} {meant}"
            raise InvalidInput(called("neighbours"), self.given["neighbours"], expected)
        if isinstance(dependence, str) and dependence == "group":
            raise InvalidInput(called("dependence"), "group", "group:K, K how many may depend on each other: group:3")
        self.dependence = self.depends(dependence, _DEPENDENCES[level], bounded=False)
        expected = "a public number of edges to count up to, 1 to 1000000"
        self.cap = counting(self.given["cap"], called("cap"), expected, 1, 1_000_000)
        self._columns = None if columns is None else names(columns, called("columns"), "two columns: a,b")
        self.people = self._who()
        self.dependence.refuse_data(self.data, self._columns)

    @property
    def inputs(self) -> list[str]:
        """The table of people too."""
        return [*super().inputs, *([self.given["people"]] if is_table(self.given["people"]) else [])]

    @property
    def n_people(self) -> int:
        """The public number of people."""
        return self.people if isinstance(self.people, int) else len(self.people)

    @cached_property
    def budget(self) -> Budget:
        """The budget under the dependence."""
        return Budget.of(self.between(), self.epsilon, None, False)

    def counted(self) -> ExactCounts:
        """Count the degrees of the edges in the table."""
        pairs, rejected = private_edges(self.data, self.people, self._columns, self.called)
        n = self.n_people
        return ExactCounts(histogram_of_degrees(simple_edges(pairs, n), n, self.cap, self.given["level"]), rejected)

    def drawn(self, counts: ExactCounts, bits: Bits | None) -> AnsweredQuestion:
        """The counts with noise."""
        level, consistent = self.given["level"], bool(self.given["consistent"])
        answered = _with_noise(counts.values, self.n_people, level, self.budget, consistent, bits)
        domain = {"people": self.n_people, "level": level, "cap": self.cap, "consistent": consistent}
        there_or_not = _NEIGHBOURS[level] == "add-remove"
        unit = self.dependence.unit(of_people=False, there_or_not=there_or_not)
        return AnsweredQuestion(answered, counts.rejected, domain, unit, _EDGE_ONLY if level == "edge" else ())

    def unit(self) -> str:
        """The unit of privacy: one edge, there or not, or all edges of one person."""
        level = self.given["level"]
        there_or_not = _NEIGHBOURS[level] == "add-remove"
        record = LEVELS[level] + ", there or not" * there_or_not
        return f"one record: {record}; neighbouring data differ in it and nowhere else"

    def ends(self) -> tuple[str, str]:
        """The columns of a table that have the two ends. Raises InvalidInput where they are not two, or not there."""
        return ends_of(self.data.columns(), self._columns, self.data, self.called)

    def between(self) -> Any:
        """A person, or an edge, is one record."""
        return self.dependence.between(self.data.spelling, of_people=False)

    def per_person(self) -> PerPerson:
        """All edges of one person are one record, which is replaced; or each edge is one, there or not."""
        level = self.given["level"]
        return PerPerson(_NEIGHBOURS[level], 1 if level == "node" else None)

    def _who(self) -> int | list[str]:
        """The number of people, or their names: public, or edges would tell who is there."""
        people, option = self.given["people"], self.called("people")
        if people is None:
            raise InvalidInput(option, "nothing", "the public people: a number, or a table of names")
        if isinstance(people, (int, np.integer, str)) and re.fullmatch(r"[1-9][0-9]{0,8}", str(people)):
            return int(people)
        if isinstance(people, (list, tuple)):
            return names(people, option, "different people")
        if not is_table(people):
            expected = "a number from 1 to 999999999, or a table of names (.parquet, .csv, .csv.gz)"
            raise InvalidInput(option, people, expected)
        return public_names(people, self.data, option, shown=people, expected="different people")


def histogram_of_degrees(pairs: IntArray, n: int, cap: int, level: str) -> IntArray:
    """Numbers of people (cap + 1,) by degree, capped as the level asks."""
    degrees = np.bincount(pairs[:, 0], minlength=n) + np.bincount(pairs[:, 1], minlength=n)
    if level == "node" and len(pairs) and degrees.max() > cap:
        degrees = np.zeros(n, dtype=np.int64)
        first, second = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        _kernels.policy.capped_degrees(first, second, _fixed_order(first, second), cap, degrees)
    histogram: IntArray = np.bincount(np.minimum(degrees, cap), minlength=cap + 1)
    return histogram


def simple_edges(edges: Any, n: int) -> IntArray:
    """Pairs (m, 2) of different people, each once, smaller number first; other rows are passed over."""
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iufO":
        raise InvalidInput("edges", f"shape {pairs.shape}, {pairs.dtype}", "pairs of people (m, 2)")
    ends, numbers = whole_numbers(pairs, "edges")
    joined = (numbers & (ends >= 0) & (ends < n)).all(axis=1) & (ends[:, 0] != ends[:, 1])
    a, b = np.ascontiguousarray(ends[joined, 0]), np.ascontiguousarray(ends[joined, 1])
    keys = np.minimum(a, b) * n + np.maximum(a, b)
    keys.sort()
    keys = keys[np.r_[True, keys[1:] != keys[:-1]][: len(keys)]]
    first = keys // n
    return np.array([first, keys - first * n]).T


def _fixed_order(first: IntArray, second: IntArray) -> IntArray:
    """An order of increasing pairs that looks random: by `mixed`, and then as they stand."""
    order: IntArray = np.argsort(mixed(first, second), kind="stable")
    return order


def mixed(first: IntArray, second: IntArray) -> NDArray[np.uint64]:
    """A number of each pair that looks random and depends on nothing but the two numbers of it (splitmix64)."""
    with np.errstate(over="ignore"):
        word: NDArray[np.uint64] = first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + second.astype(np.uint64)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return word


#: Who there is: people numbered from 0, or their names.
People = int | Sequence[str]


def private_edges(
    data: PrivateTable, people: People, columns: Sequence[str] | None, called: Called
) -> tuple[IntArray, Rejected]:
    """The edges (m, 2) of DATA as numbers of people, and the rows that are no edges of two of them.

    InvalidInput for a table of more than two columns if none are named, and for a first line that names people and is
    no header.
    """
    if data.path is not None:
        checked_input(data.path, "DATA")
    header = None if data.path is not None and is_edge_text(data.path) else data.columns()
    if header is not None:
        ends_of(header, columns, data, called)
    if columns is None and data.path is not None:
        check_header(data.path, header or (), "DATA", _known(people, data.spelling))
    rows = edge_rows(data, columns)
    rejected = Rejected.of(rows)
    pairs = ends_among(rows.table, people if isinstance(people, int) else Members(people, data.spelling))
    unknown, loops = (pairs < 0).any(axis=1), pairs[:, 0] == pairs[:, 1]
    rejected.add(rows.places[unknown], "unknown_person")
    rejected.add(rows.places[loops], "loop")
    return pairs[~unknown & ~loops], rejected


def ends_among(edges: pa.Table, people: int | Members) -> IntArray:
    """Numbers (m, 2) of people from two columns of text, a and b; -1 for a name that is not among them."""
    if not isinstance(people, int):
        return people.ends(edges)
    ends = []
    for side in ("a", "b"):
        values, bad = integers(edges.column(side), "DATA")
        outside: BoolArray = bad | (values < 0) | (values >= people)
        ends.append(np.where(outside, -1, values))
    return np.stack(ends, axis=1)


def ends_of(
    header: Sequence[str], columns: Sequence[str] | None, data: PrivateTable, called: Called
) -> tuple[str, str]:
    """The two columns of a table that are meant. Raises InvalidInput where they are not two, or not there."""
    option = called("columns")
    unknown = next((name for name in columns or () if name not in header), None)
    if unknown is not None:
        raise InvalidInput(option, unknown, f"a column of {data.name}: {listed(header)}")
    if columns is not None and len(columns) != 2:
        raise InvalidInput(option, ",".join(columns), "two columns, one for each end: a,b")
    if columns is None and len(header) != 2:
        raise InvalidInput("DATA", f"{data.name}: {listed(header)}", f"two columns, one for each end, or {option}")
    first, second = header if columns is None else columns
    return first, second


def _known(people: People, spelling: str) -> Callable[[str], bool]:
    """The predicate of names: True for that of one of the people."""
    if isinstance(people, int):
        return lambda name: re.fullmatch("[0-9]{1,18}", name) is not None and int(name) < people
    return Members(people, spelling).__contains__
