"""The dependence between records, as the data owner states it, and the budget that a query then has per record.

A stated dependence is public: DATA are looked at only to refuse them as their own list of friendships. In such a list
every line must be right. In the library ``dependence`` is a model, or "independent" (taken on the caller's word), or
("group", k): records come in groups of at most k, and different groups are independent of each other.

Proofs: docs/proofs/contributions.md, docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET

from dphmm._cached import cached_property
from dphmm._checks import exact_epsilon, one_of
from dphmm.accounting.event import NEIGHBOURS, DependentEvent, Guarantee, NoisyCounts, per_record_total
from dphmm.accounting.person import key_by
from dphmm.dependent._calibration import calibrate
from dphmm.dependent._chain import Chain
from dphmm.dependent._coefficients import AnyQuery, largest_loss
from dphmm.dependent._inputs import Called, counting, place
from dphmm.dependent._models import Tree
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.markov.stochastic import refuse_secrets
from dphmm.samplers.body import LaplaceSampler
from dphmm.samplers.entropy import default_bits, is_secure
from dphmm.statement.query import StatedDependence, Unit
from dphmm.storage.columns import Numbering
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input, file_digest
from dphmm.storage.models import load_model
from dphmm.storage.private_tables import TEXT, PrivateTable, read_edges, refuse_private
from dphmm.storage.tables import column_names
from dphmm.types import Bits, Exact, IntArray

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace


FORMS = "independent, group, group:K, friends:EDGES or markov:MODEL"
_MOST = "a public number of rows, 1 to 1000000000"
#: Why a record of a chain or a tree is not there or not.
OF_A_MODEL = "which records there are is public under a model of dependence"


@dataclass(frozen=True)
class Dependence:
    """A dependence as it was given: its ``kind``, the ``path`` of a file, and the number of a person's rows that count.

    ``most`` is that public number, None where all of them do. ``called``: how the caller writes an option.
    """

    given: str
    kind: str
    called: Called
    most: int | None = None
    path: str | None = None
    loaded: MarkovModel | None = None
    _told: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, given: Any, most: int | None, called: Called, allowed: Sequence[str], bounded: bool = True
    ) -> Dependence:
        """The dependence that the caller gives: None, a text (`FORMS`), ("group", K), or a MarkovModel for "markov".

        None is "independent", with a UserWarning. ``allowed``: the kinds that the question takes. ``bounded``: rows
        belong to people, so that ``most`` is needed where all rows of one depend on each other.
        """
        option = called("dependence")
        if most is not None:
            most = counting(most, called("max_rows_per_user"), _MOST)
        if given is None:
            warnings.warn(
                f"{option} was not given, so records are taken as independent: where they are not, more is lost than "
                f"epsilon; {option} says which depend on which (and {option} independent that none do)",
                UserWarning,
                # Where somebody called dphmm.query: below it are a question's __init__, check and depends.
                stacklevel=6,
            )
            return cls("nothing; independent by default", "independent", called, most)
        loaded = given if isinstance(given, MarkovModel) else None
        text = _as_text(given, option)
        kind, colon, rest = text.partition(":")
        whole = {"independent": not colon, "group": not colon or rest, "friends": rest, "markov": rest}
        if not whole.get(kind):
            raise InvalidInput(option, text, FORMS)
        if kind not in allowed:
            raise InvalidInput(option, text, _INSTEAD[kind])
        if kind == "markov":
            return cls(text, kind, called, most, None if loaded else rest, loaded)
        if kind == "friends":
            # Of a graph, one person is one record.
            return cls(text, kind, called, _needed(most, text, called) if bounded else 1, rest)
        if kind == "group":
            return cls(text, kind, called, _group_size(rest, most, text, called))
        return cls(text, kind, called, most)

    @property
    def inputs(self) -> list[str]:
        """Files that it names."""
        return [] if self.path is None else [self.path]

    @property
    def by_person(self) -> bool:
        """True if the promise is about all rows of one person."""
        return self.kind in ("group", "friends")

    def refuse_data(self, data: PrivateTable, columns: Sequence[str] | None = None) -> None:
        """InvalidInput where its file is DATA."""
        if self.path is not None:
            refuse_private(self.path, data, self._field, columns)

    @cached_property
    def model(self) -> tuple[MarkovModel, StateSpace]:
        """The chain that is named, and its states."""
        return model_with_states(self.loaded or self.path, self.called("dependence"))

    def between(self, spelling: str = "same", of_people: bool = True) -> Any:
        """The dependence in the library's form; a chain is not made here.

        ``spelling``: the rule by which names of friends are of one person. ``of_people``: rows belong to people.
        """
        if self.kind == "independent":
            return "independent"
        assert self.most is not None
        if self.kind == "friends":
            assert self.path is not None
            circle = largest_circle(self.path, self._field, self.called, spelling)
            self._told.update({"between": "circles", "most": circle})
            return ("group", self.most * circle)
        self._told.update({"between": "a person" if of_people else "records", "most": self.most})
        return ("group", self.most)

    def chain(self, times: int) -> Any:
        """The chain of each person over so many steps."""
        model, _ = self.model
        self._told.update({"between": "a chain", "most": times})
        return Chain(model, times)

    def unit(self, *, of_people: bool = True, there_or_not: bool = False, number_public: bool = False) -> Unit:
        """The unit of privacy: one record, or the rows of one person, or of a circle of friends."""
        if not (self.by_person and of_people):
            return Unit(there_or_not=there_or_not)
        of = "circle" if self.kind == "friends" else "person"
        return Unit(of=of, most=self.most, there_or_not=there_or_not, number_public=number_public)

    def stated(self, event: DependentEvent) -> StatedDependence:
        """The facts beside the answer. Of files only a model is named by its hash."""
        facts = dict(self._told)
        if self.kind == "independent":
            facts = {"between": "nobody" if self.given == "independent" else "nobody, assumed", "most": None}
        written = f"{self.kind}:{Path(self.path).name}" if self.path else self.given
        model = file_digest(self.path) if self.kind == "markov" and self.path is not None else UNSET
        return StatedDependence(given=written, model=event.dependence, model_sha256=model, **facts)

    @property
    def _field(self) -> str:
        assert self.path is not None
        return f"{self.called('dependence')} {self.kind}:{Path(self.path).name}"


def model_with_states(given: Any, option: str) -> tuple[MarkovModel, StateSpace]:
    """A model, or that of a file, and the space of its states. Raises InvalidInput for one without."""
    if isinstance(given, MarkovModel):
        model, shown = given, "a model"
    else:
        try:
            model, shown = load_model(given), str(given)
        except InvalidInput as error:
            raise about(error, {"model": option}) from None
    refuse_secrets(model, option)
    if model.space is None:
        raise InvalidInput(option, f"{shown}, without a state space", "a model written by dphmm fit")
    return model, model.space


def about(error: InvalidInput, fields: Mapping[str, str]) -> InvalidInput:
    """The same error in the words of the caller: ``fields`` are the names of fields there."""
    got, _, expected = str(error).removeprefix(f"{error.field}: got ").rpartition("; expected ")
    return InvalidInput(fields.get(error.field, error.field), got, expected)


def _as_text(given: Any, option: str) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, MarkovModel):
        return f"markov:a model with digest {given.digest}"
    if isinstance(given, tuple) and len(given) == 2 and given[0] == "group":
        return f"group:{given[1]}"
    raise InvalidInput(option, given, f'{FORMS}; ("group", K) or a MarkovModel')


def _needed(most: int | None, text: str, called: Called) -> int:
    if most is None:
        expected = f"a public number with {text}: how many rows of one person count, the others are left out"
        raise InvalidInput(called("max_rows_per_user"), "nothing", expected)
    return most


def _group_size(rest: str, most: int | None, text: str, called: Called) -> int:
    """K of group:K, which is group with K rows of each person."""
    if not rest:
        return _needed(most, text, called)
    if not re.fullmatch("[1-9][0-9]{0,8}", rest):
        raise InvalidInput(called("dependence"), text, "group:K, K how many rows of one person count: group:3")
    if most not in (None, int(rest)):
        raise InvalidInput(called("max_rows_per_user"), most, f"none with {text}, which says {rest}")
    return int(rest)


_INSTEAD = {
    "markov": "independent, group, group:K or friends:EDGES: a model of states says nothing of these records",
    "friends": "independent or group:K: what one edge of a graph depends on is not in a list of friends",
    "group": "independent or group:K",
    "independent": FORMS,
}


def largest_circle(path: str, field: str, called: Called, spelling: str) -> int:
    """The number of people in the largest circle of friends: people who are joined, directly or not.

    Names are of one person by the rule of ``spelling``: two spellings of one friend would part a circle.

    DATA have no part in it. Raises InvalidInput, without a name, for a file without friendships, a line that is none,
    and a loop.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    header = None if is_edge_text(path) else column_names(checked_input(path, field))
    if header is not None and len(header) != 2:
        raise InvalidInput(field, f"{Path(path).name}: {listed(header)}", "two columns, one for each end")
    edges = read_edges(path, None, field)
    people = Numbering(key_by(spelling))
    pairs = np.stack([people.add(edges.column(side), field)[0] for side in ("a", "b")])
    check_header(
        path, header or (), field, lambda name: people.known(name) >= 0 or re.fullmatch("[0-9]+", name) is not None
    )
    if not len(edges):
        raise InvalidInput(
            field, f"{Path(path).name}, without a friendship", f"edges, or {called('dependence')} independent"
        )
    for wrong, got in (((pairs < 0).any(axis=0), "nobody"), (pairs[0] == pairs[1], "a loop")):
        if wrong.any():
            where = place(path, int(np.argmax(wrong)))
            raise InvalidInput(f"{field}, {where}", got, "pairs of different people")
    count = len(people.labels)
    graph = coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(count, count))
    _, circle = connected_components(graph, directed=False)
    return int(np.bincount(circle).max())


def is_edge_text(path: PathLike) -> bool:
    return str(path).lower().endswith(TEXT)


def check_header(path: PathLike, header: Sequence[str], field: str, known: Callable[[str], bool]) -> None:
    """A file without a header would lose its first edge without a word."""
    if str(path).lower().endswith((".csv", ".csv.gz")) and any(known(name.strip()) for name in header):
        raise InvalidInput(f"{field}, line 1", "people", "a header that names nobody, as a,b, and edges after it")


#: The noise of one number of a query is kept within ±2**61 of it.
_FARTHEST = 2**61


@dataclass(frozen=True)
class Budget:
    """The loss ε₀ for one record alone, and the ε that is claimed for it under the dependence.

    ``neighbours``: the change of that record, "replace" or "add-remove".
    """

    per_record: Fraction
    claimed: Fraction | None
    mechanism: str
    dependence: str
    why: str
    neighbours: str = "replace"

    @classmethod
    def of(
        cls,
        dependence: Any,
        epsilon: Exact,
        mechanism: str | None,
        accept_unproved: bool,
        neighbours: str = "replace",
    ) -> Budget:
        """The budget of a query that promises ``epsilon``; Refused where the mechanism is not proved to keep it."""
        promised = exact_epsilon(epsilon)
        one_of(neighbours, NEIGHBOURS, "neighbours")
        if isinstance(dependence, (str, tuple)):
            return replace(_without_a_model(dependence, promised, mechanism), neighbours=neighbours)
        if neighbours != "replace":
            raise InvalidInput("neighbours", neighbours, f"replace: {OF_A_MODEL}")
        calibration = calibrate(dependence, AnyQuery(1), promised, mechanism, exact=False)
        if not (calibration.proved or accept_unproved):
            calibration.claim()
        claimed = promised if calibration.proved else None
        return cls(calibration.rate, claimed, calibration.mechanism, calibration.model, calibration.why)

    def change(self, replaced: int) -> Fraction:
        """The change of counts or sums (L1) by one record, if replacing it moves them by up to ``replaced``.

        Records are counted and added up: one that is there or not moves them by half of that.
        """
        return Fraction(replaced, 2) if self.neighbours == "add-remove" else Fraction(replaced)

    def event(
        self, query: str, record: str, parts: tuple[NoisyCounts, ...], bits: Bits, neighbours: str | None = None
    ) -> DependentEvent:
        """The event of the answer, for accounting; ``neighbours`` where a record decides them, such as an edge."""
        secure, relation = is_secure(bits), neighbours or self.neighbours
        return DependentEvent(
            query, record, parts, self.mechanism, self.dependence, self.claimed, self.why, secure, relation
        )


def _without_a_model(dependence: Any, promised: Fraction, mechanism: str | None) -> Budget:
    if dependence == "independent":
        if mechanism not in (None, "independent"):
            raise InvalidInput("mechanism", mechanism, '"independent", or a model of dependence')
        return Budget(promised, promised, "independent", "independent records", "records are taken as independent")
    if isinstance(dependence, tuple) and len(dependence) == 2 and dependence[0] == "group":
        size = dependence[1]
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise InvalidInput("dependence", size, 'how many records may depend on each other: ("group", 3)')
        why = (
            f"at most {size} records depend on each other, and all of them together change the answer by at most "
            f"{size} Δ, where Δ is the most that one record alone changes it by"
        )
        return Budget(promised / int(size), promised, "group", f"groups of {size}", why)
    raise InvalidInput("dependence", dependence, 'a model, "independent" or ("group", size)')


def add_integer_noise(
    counts: IntArray, sensitivity: Fraction, epsilon: Fraction, name: str, bits: Bits | None
) -> tuple[IntArray, NoisyCounts]:
    """Integers with discrete Laplace noise in every one, P(z) ∝ exp(−|z|·ε/sensitivity), and a record of the noise.

    ``sensitivity``: L1, over all of ``counts``, for a change of one record.
    """
    scale = sensitivity / epsilon
    flat = counts.ravel()
    noise = LaplaceSampler(scale).draw(len(flat), default_bits(bits))
    noisy: IntArray = np.clip(flat + noise, -_FARTHEST, _FARTHEST).reshape(counts.shape)
    return noisy, NoisyCounts(name, "laplace", sensitivity, scale)


def together(model: Any, events: Iterable[DependentEvent]) -> Guarantee:
    """The joint guarantee of several queries about one chain's or tree's tuples: the sum of losses does not bound it.

    The losses per record add up, and their sum goes through the recursion once.
    """
    if not isinstance(model, (Chain, Tree)):
        raise InvalidInput("model", type(model).__name__, "a chain or a tree")
    queries = [events] if isinstance(events, DependentEvent) else list(events)
    # A tuple of the model is replaced.
    total = per_record_total(
        [event.for_replacement() if isinstance(event, DependentEvent) else event for event in queries]
    ).value
    single = np.full(model.n_tuples, float(total) * (1 + 2.0**-51))
    return Guarantee(
        Fraction(largest_loss(model, single)),
        f"bounds what all these queries lose of one tuple of this {model!r}",
        "docs/proofs/dependent-markov.md",
    )
