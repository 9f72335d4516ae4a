"""Privacy events of releases, fits and queries: their public parameters, and how they compose.

An event holds the public parameters that are necessary and sufficient to account for what happened. The meaning of an
event never changes, and unknown events are refused. (The idea is dp_accounting's ``DpEvent``.)

Learning: a record is all sequences of one owner, after public caps, or one sequence where the owners are unknown.
Neighbouring data sets differ by one record: added or removed ("add-remove"), or replaced ("replace"). The event of a
fit computes its total from its noise, whatever a method calls its epsilon. A fit without a guarantee is a
``NotPrivateEvent``: it has no epsilon, and no total accepts it.

Queries over dependent records make two statements. *Per record*: replacing one record and no other changes the
probability of any output by at most e^ε₀; it holds under any dependence and adds up over queries. *Dependent*: the
bound under a named model of dependence; it does not add up (two ε = 1 queries can lose more than 2), and it exists only
where it was proved.

Totals: the corrected theorems of the DPHMM paper (docs/theory.md 7; "errata n" is a number of docs/errata.md), and
zero-concentrated privacy (zCDP). A total is a ``Guarantee``: a value and the statement that it makes. The value
infinity means that the statement has no bound. zCDP adds up rho of Gaussian noise and converts it to (epsilon, delta).
Rounding goes towards privacy: epsilon up, rho down. A search in floats picks the order; the bound at that order is
computed to 60 digits and holds at any order.

Proofs: docs/proofs/learning.md, docs/proofs/dependent-markov.md, docs/proofs/composition.md, docs/proofs/paths.md,
docs/proofs/zcdp.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeAlias

from dphmm._checks import exact_number, one_of
from dphmm.accounting.records import Entry, check_exact, in_short, shown
from dphmm.errors import InvalidInput, Refused
from dphmm.types import Exact, Loss


@dataclass(frozen=True)
class ReleaseEvent:
    """One answer about one step.

    ``epsilon``: the DPHMM promise of this release given the past. ``cost``: the mechanism's largest loss over
    pairs of the plan set. ``constant``: the answer was public.
    ``secure``: False for any other bits than the package's own system bits.
    """

    epsilon: Fraction
    cost: Fraction
    constant: bool
    secure: bool

    def __post_init__(self) -> None:
        check_exact(self.epsilon, "epsilon")
        check_exact(self.cost, "cost")


@dataclass(frozen=True)
class SkipEvent:
    """Time passed and nothing was published."""


@dataclass(frozen=True)
class ComposedEvents:
    """Events that happened to one subject, in order."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        for event in self.events:
            if not isinstance(event, (ReleaseEvent, SkipEvent, ComposedEvents)):
                raise InvalidInput("events", type(event).__name__, "release, skip or composed events")


Event: TypeAlias = ReleaseEvent | SkipEvent | ComposedEvents


def leaves(event: Event) -> Iterator[ReleaseEvent | SkipEvent]:
    """The releases and skips of an event, in order, however they were composed."""
    if isinstance(event, ComposedEvents):
        for part in event.events:
            yield from leaves(part)
    else:
        yield event


def event_of(entry: Entry) -> ReleaseEvent | SkipEvent:
    """The event that a ledger entry records."""
    if entry.epsilon is None or entry.cost is None:
        return SkipEvent()
    return ReleaseEvent(entry.epsilon, entry.cost, entry.constant, entry.secure)


def compose(events: Iterable[Event]) -> ComposedEvents:
    """Events in order, as one."""
    return ComposedEvents(tuple(events))


NEIGHBOURS = ("add-remove", "replace")
#: What makes neighbours of data, in a sentence.
CHANGES = {"add-remove": "adding or removing", "replace": "replacing"}
NOISES = ("laplace", "gaussian")
UNITS = ("owner", "sequence")
#: No total of a fit that anybody would publish comes near.
_MOST_RHO = Fraction(10**30)


@dataclass(frozen=True)
class NoisyCounts:
    """One vector of non-negative counts, published with independent noise in every cell.

    ``noise`` "laplace": P(z) ∝ exp(-|z|/scale), and ``sensitivity`` is the L1 sensitivity. "gaussian":
    P(z) ∝ exp(-z²/(2·scale)), scale the variance, and ``sensitivity`` is the *squared* L2 sensitivity. Both are in
    counts (squared counts) and for the neighbours of the event that this is a part of.
    """

    name: str
    noise: str
    sensitivity: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        one_of(self.noise, NOISES, "noise")
        check_exact(self.sensitivity, "sensitivity")
        check_exact(self.scale, "scale")
        if self.scale == 0 or self.sensitivity == 0:
            raise InvalidInput("scale, sensitivity", 0, "numbers greater than 0")

    @property
    def epsilon(self) -> Fraction:
        """The pure epsilon of Laplace noise; Gaussian noise has none."""
        if self.noise != "laplace":
            raise InvalidInput(
                "noise", self.noise, "laplace: Gaussian noise has a rho, and an epsilon for a delta only"
            )
        return self.sensitivity / self.scale

    @property
    def rho(self) -> Fraction:
        """The rho of the counts in zero-concentrated differential privacy."""
        if self.noise == "laplace":
            return self.epsilon**2 / 2
        return self.sensitivity / (2 * self.scale)

    @property
    def expected_error(self) -> float:
        """The mean of |noise| in one number.

        >>> round(NoisyCounts("counts", "laplace", Fraction(1), Fraction(10)).expected_error, 3)
        9.983
        """
        if self.noise == "laplace":
            rate = 1 / float(self.scale)
            return 2 * math.exp(-rate) / -math.expm1(-2 * rate)
        variance = float(self.scale)
        if variance > 10**4:
            # The sum is the integral but for less than one part in a hundred thousand.
            return math.sqrt(2 * variance / math.pi)
        chances = [math.exp(-z * z / (2 * variance)) for z in range(int(12 * math.sqrt(variance)) + 2)]
        return 2 * sum(z * chance for z, chance in enumerate(chances)) / (2 * sum(chances) - 1)

    @property
    def mostly(self) -> int:
        """The bound that discrete Laplace noise keeps, in absolute value, in nine of ten numbers.

        >>> NoisyCounts("counts", "laplace", Fraction(1), Fraction(10)).mostly
        23
        """
        # Pr(|noise| > k) = 2 a^(k + 1) / (1 + a), a = e^(-1 / scale).
        rate = 1 / float(self.scale)
        return max(0, math.ceil(math.log(20 / (1 + math.exp(-rate))) / rate) - 1)

    def for_replacement(self) -> NoisyCounts:
        """The same noise seen by neighbours that replace a record, if this was for adding and removing one.

        Counts are not negative: two of them differ by at most the sum of their L1 norms, and in squares by at most
        the sum of their squared L2 norms.
        """
        return replace(self, sensitivity=2 * self.sensitivity)


@dataclass(frozen=True)
class LearningEvent:
    """A model was learned from the sum of these parts, each of which may depend on what earlier ones published.

    ``unit``: the record, "owner" (all sequences of one) or "sequence" (one, whoever's it is).
    ``secure``: False for noise of any other bits than the package's own system bits; nothing is then promised.
    """

    parts: tuple[NoisyCounts, ...]
    neighbours: str
    max_length: int
    max_sequences: int
    secure: bool
    delta: Fraction = Fraction(0)
    unit: str = field(kw_only=True)

    def __post_init__(self) -> None:
        one_of(self.neighbours, NEIGHBOURS, "neighbours")
        one_of(self.unit, UNITS, "unit")
        if not self.parts or not all(isinstance(part, NoisyCounts) for part in self.parts):
            raise InvalidInput("parts", type(self.parts).__name__, "at least one NoisyCounts")
        if not isinstance(self.secure, bool):
            raise InvalidInput("secure", self.secure, "True or False")
        for cap in ("max_length", "max_sequences"):
            value = getattr(self, cap)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(cap, value, "a whole number, at least 1")
        if self.pure and self.delta != 0:
            raise InvalidInput("delta", self.delta, "0: Laplace noise needs none")
        if not self.pure:
            check_delta(self.delta)
        if self.rho > _MOST_RHO:
            raise InvalidInput("parts", "a rho beyond 1e30", "noise that hides something")

    @property
    def pure(self) -> bool:
        """True if all noise is Laplace, so that delta is 0."""
        return all(part.noise == "laplace" for part in self.parts)

    @property
    def rho(self) -> Fraction:
        """The total in zero-concentrated differential privacy."""
        return sum((part.rho for part in self.parts), Fraction(0))

    @property
    def epsilon(self) -> Fraction:
        """The true total: the sum of the epsilons if pure, else that of the total rho at delta, rounded up."""
        if self.pure:
            return sum((part.epsilon for part in self.parts), Fraction(0))
        return epsilon_of(self.rho, self.delta)

    def for_replacement(self) -> LearningEvent:
        """The same fit for neighbours that replace one record by another."""
        if self.neighbours == "replace":
            return self
        return replace(self, parts=tuple(part.for_replacement() for part in self.parts), neighbours="replace")


@dataclass(frozen=True)
class NotPrivateEvent:
    """A model was learned with no promise. There is no epsilon here to ask for."""

    reason: str


_SEVERAL = " (whose sequences are whose was not said: who has k of them loses up to k times as much)"


def learned(events: LearningEvent | Iterable[LearningEvent]) -> Guarantee:
    """The joint guarantee of fits on one set of people: the sum of epsilons and of deltas (sequential composition).

    Raises InvalidInput for anything but learning events of one kind of neighbours and records: a fit without privacy
    adds up to nothing; and for sets, which hold equal fits once.
    """
    if isinstance(events, (Set, Mapping)):
        raise InvalidInput("events", type(events).__name__, "a list: a set holds equal fits once")
    fits = list(events) if isinstance(events, Iterable) else [events]
    for event in fits:
        if not isinstance(event, LearningEvent):
            raise InvalidInput("events", type(event).__name__, "private fits: nothing bounds what others lose")
    for name in ("neighbours", "unit"):
        kinds = sorted({getattr(event, name) for event in fits})
        if len(kinds) != 1:
            raise InvalidInput("events", f"{name} {kinds}", f"fits with one kind of {name}")
    value = sum((event.epsilon for event in fits), Fraction(0))
    delta = sum((event.delta for event in fits), Fraction(0))
    secure = all(event.secure for event in fits)
    words = learned_words(fits[0].neighbours, fits[0].unit, delta, secure)
    return Guarantee(value, words, "docs/proofs/learning.md, 1")


def learned_words(neighbours: str, unit: str, delta: Fraction, secure: bool) -> str:
    """The meaning of a fit's epsilon, in words."""
    record = "all sequences of one person" if unit == "owner" else f"one sequence{_SEVERAL}"
    return f"bounds the loss of {CHANGES[neighbours]} {record} in what the model was learned from{_but(delta, secure)}"


def together(event: LearningEvent, sum_cost: Exact) -> Guarantee:
    """The joint guarantee of a privately learned model and one person's releases with it.

    For any two lives of that person: the fit's loss for *replacing* their record (twice the epsilon of adding or
    removing one) plus the sum of the costs of their releases. Raises InvalidInput for a fit without privacy.
    """
    if not isinstance(event, LearningEvent):
        raise InvalidInput("event", type(event).__name__, "a private fit: nothing bounds what others lose")
    replaced = event.for_replacement()
    cost = exact_number(sum_cost, "sum_cost")
    if cost < 0:
        raise InvalidInput("sum_cost", sum_cost, "0 or more")
    words = together_words(event.unit, replaced.delta, event.secure)
    return Guarantee(replaced.epsilon + cost, words, "docs/proofs/learning.md, 4")


def together_words(unit: str, delta: Fraction, secure: bool) -> str:
    """The meaning of the joint epsilon of a fit and one person's releases, in words."""
    whose = "one person" if unit == "owner" else f"one person with one sequence{_SEVERAL}"
    lives = f"bounds the loss of any two lives of {whose}, in the model and in that person's releases together"
    return lives + _but(delta, secure)


def _but(delta: Fraction, secure: bool) -> str:
    but = f", but for a delta of {float(delta):g}" if delta else ""
    return but if secure else f"{but}; the noise can be replayed, so nothing is promised"


def learning_event(provenance: Mapping[str, Any], field: str = "privacy") -> LearningEvent | NotPrivateEvent | None:
    """The record of a fit with noise, or of one that is stated to have no privacy; None without a record.

    ``field``: the name in an error, such as the model's file.

    Raises InvalidInput for a record that contradicts itself, or the provenance beside it.
    """
    if provenance.get("privacy") is None:
        return None
    try:
        event = event_from(provenance["privacy"])
    except InvalidInput as error:
        text, _, expected = str(error).removeprefix(f"{error.field}: got ").rpartition("; expected ")
        text = f"a record of its learning with {error.field} {text}"
        raise InvalidInput(field, text, f"{expected}; fit the model again") from None
    private = isinstance(event, LearningEvent) and event.secure
    if provenance.get("private") is not private:
        raise InvalidInput("private", provenance.get("private"), f"{private}, as its own record of the fit says")
    return event


def described(event: LearningEvent | NotPrivateEvent) -> dict[str, Any]:
    """The event as JSON has it; numbers exactly, as text. ``epsilon`` is there for readers and is checked on return."""
    if isinstance(event, NotPrivateEvent):
        return {"private": False, "reason": event.reason}
    return {
        "private": event.secure,
        "secure": event.secure,
        "neighbours": event.neighbours,
        "unit": event.unit,
        "max_length": event.max_length,
        "max_sequences": event.max_sequences,
        "epsilon": shown(event.epsilon),
        "delta": str(event.delta),
        "parts": [
            {"name": p.name, "noise": p.noise, "sensitivity": str(p.sensitivity), "scale": str(p.scale)}
            for p in event.parts
        ],
    }


def event_from(description: Any, field: str = "privacy") -> LearningEvent | NotPrivateEvent:
    """The event of a description; InvalidInput if it is invalid, or states another epsilon than its parts have."""
    try:
        if "parts" not in description and description["private"] is False:
            return NotPrivateEvent(str(description["reason"]))
        event = LearningEvent(
            parts=tuple(_part(part) for part in description["parts"]),
            neighbours=description["neighbours"],
            max_length=description["max_length"],
            max_sequences=description["max_sequences"],
            secure=description["secure"],
            delta=_exact(description["delta"], "delta"),
            unit=description["unit"],
        )
        stated, private = description["epsilon"], description["private"]
    except (KeyError, TypeError, AttributeError):
        raise InvalidInput(field, type(description).__name__, "the description of a fit") from None
    if stated != shown(event.epsilon) or private is not event.secure:
        raise InvalidInput(field, f"epsilon {stated}, private {private}", "what its parts give")
    return event


def _part(part: Any) -> NoisyCounts:
    sensitivity, scale = (_exact(part[name], name) for name in ("sensitivity", "scale"))
    return NoisyCounts(str(part["name"]), part["noise"], sensitivity, scale)


def _exact(text: object, field: str) -> Fraction:
    numerator, slash, denominator = str(text).partition("/")
    over = exact_number(denominator, field) if slash else Fraction(1)
    if over == 0:
        raise InvalidInput(field, text, "a fraction")
    return exact_number(numerator, field) / over


@dataclass(frozen=True)
class DependentEvent:
    """One query was answered.

    ``parts``: the noisy numbers it published, with sensitivities for ``neighbours``: data that differ in one record,
    which is replaced ("replace"), or there or not ("add-remove"). ``claimed``: ε of dependent
    differential privacy under ``dependence`` (a model, in words), None where nothing is proved; ``why``: by what, or
    why not. ``record``: one record, in words. ``secure``: False for noise of any other bits than the
    package's own system bits.
    """

    query: str
    record: str
    parts: tuple[NoisyCounts, ...]
    mechanism: str
    dependence: str
    claimed: Fraction | None
    why: str
    secure: bool
    neighbours: str = "replace"

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, NoisyCounts) for part in self.parts):
            raise InvalidInput("parts", type(self.parts).__name__, "at least one NoisyCounts")
        one_of(self.neighbours, NEIGHBOURS, "neighbours")
        if self.claimed is not None:
            check_exact(self.claimed, "claimed")

    @property
    def per_record(self) -> Fraction:
        """ε₀ of a change of one record alone, as ``neighbours`` says: the sum over parts."""
        return sum((part.epsilon for part in self.parts), Fraction(0))

    def for_replacement(self) -> DependentEvent:
        """The same answer seen by neighbours that replace one record: one is removed, then another is added."""
        if self.neighbours == "replace":
            return self
        claimed = None if self.claimed is None else 2 * self.claimed
        parts = tuple(part.for_replacement() for part in self.parts)
        return replace(self, parts=parts, claimed=claimed, neighbours="replace")

    @property
    def epsilon(self) -> Fraction:
        """ε of dependent differential privacy; Refused where it is not proved."""
        if self.claimed is None:
            raise Refused(f'"{self.mechanism}" is not proved under dependence ({self.dependence}): {self.why}')
        return self.claimed

    @property
    def statement(self) -> str:
        """The guarantee of this release, in one sentence."""
        alone = self.per_record if self.secure else None
        return dependent_words(self.neighbours, self.record, alone, self.claimed, self.dependence, self.why)


def dependent_words(
    neighbours: str,
    record: str,
    per_record: Fraction | str | None,
    claimed: Fraction | str | None,
    under: str,
    why: str,
) -> str:
    """The meaning of an answer's epsilon on dependent records; ``per_record`` is None if the noise can be replayed."""
    if per_record is None:
        return "nothing is promised: the noise can be replayed"
    alone = f"{CHANGES[neighbours]} one record ({record}) and no other loses at most {in_short(per_record)}"
    if claimed is None:
        return f"{alone}; nothing is proved for dependent records: {why}"
    other = f", another in its place {in_short(2 * Fraction(claimed))}" if neighbours == "add-remove" else ""
    return f"{alone}; under {under} it loses at most {in_short(claimed)}{other}: {why}"


def per_record_total(events: DependentEvent | Iterable[DependentEvent]) -> Guarantee:
    """The joint guarantee of queries over the same records when one record alone is replaced.

    If every query was about a record that is there or not, the guarantee is for adding or removing one.

    Raises InvalidInput for other events, and Refused for noise that can be replayed.
    """
    queries = [events] if isinstance(events, DependentEvent) else list(events)
    if not all(isinstance(event, DependentEvent) for event in queries):
        raise InvalidInput("events", [type(event).__name__ for event in queries], "events of dependent queries")
    if not all(event.secure for event in queries):
        raise Refused("nothing is promised of noise that can be replayed")
    if not all(event.neighbours == "add-remove" for event in queries):
        queries = [event.for_replacement() for event in queries]
    change = CHANGES[queries[0].neighbours if queries else "replace"]
    return Guarantee(
        sum((event.per_record for event in queries), Fraction(0)),
        f"bounds the loss of {change} one record, all others as they are, over all queries",
        "docs/proofs/dependent-markov.md",
    )


@dataclass(frozen=True)
class Guarantee:
    """A bound on a loss (natural log of a ratio of probabilities), its meaning in words, and its source."""

    value: Loss
    statement: str
    citation: str

    @property
    def bounded(self) -> bool:
        """True if the guarantee has a finite value."""
        return self.value != math.inf

    def __str__(self) -> str:
        return f"{shown(self.value)} ({self.statement}; {self.citation})"


@dataclass(frozen=True)
class SeveralQueries:
    """Theorem 7.1 in its parts. ``isolated`` is None where the theorem, as corrected, gives nothing."""

    edges: Guarantee
    isolated: Guarantee | None
    any_pair: Guarantee


def theorem_5_3(epsilon: Fraction, norms: Iterable[Loss]) -> Guarantee:
    """A database of records with states s_i: the loss of adding or removing one record.

    ``norms`` are ‖f(s_i)‖_K over the possible states; the bound is epsilon times their maximum. Theorem
    5.3(2) of the DPHMM paper; infinite when an f(s_i) is off the span of a flat K (errata 19).
    """
    check_exact(epsilon, "epsilon")
    largest = _largest(norms, "norms")
    return Guarantee(
        largest if isinstance(largest, float) else epsilon * largest,
        "bounds the loss of adding or removing one record",
        "DPHMM 2016, Theorem 5.3(2); errata 19",
    )


def theorem_6_3(losses: Iterable[Loss]) -> Guarantee:
    """One release: the loss of any two states of the plan set, the release's *cost*.

    ``losses`` are the mechanism's own losses over pairs of the plan set (epsilon·‖f_j − f_k‖_K for the
    K-norm, epsilon·⌈‖f_j − f_k‖_K⌉ for the staircase); the bound is their maximum. Theorem 6.3 of the DPHMM
    paper, with the mechanism's own loss in place of the K-norm's; infinite for flat bodies with several
    cosets (errata 19).
    """
    return Guarantee(
        _largest(losses, "losses"),
        "bounds the loss of any two possible states in one release",
        "DPHMM 2016, Theorem 6.3; errata 19",
    )


def theorem_7_1(
    epsilons: Mapping[str, Fraction],
    costs: Mapping[str, Loss],
    partners: Mapping[str, Mapping[int, int]],
) -> SeveralQueries:
    """Several queries answered at one timestamp, by name of the query.

    Theorem 7.1 of the DPHMM paper, corrected (errata 4): the sum of the epsilons holds for policy edges. For
    a state without an edge in the graph in force it holds only against one partner that is the same in all
    queries: ``partners`` maps each query to {state without an edge: its partner}, and where two queries
    differ, or one is missing, there is no such bound (two queries, epsilon 1 each, can lose 11). The sum of
    costs holds for any pair.

    Raises InvalidInput when the queries of ``epsilons`` and ``costs`` differ or a state is its own partner.
    """
    if set(epsilons) != set(costs) or not epsilons:
        raise InvalidInput("costs", sorted(costs), f"one cost for each of the queries {sorted(epsilons)}")
    for query, epsilon in epsilons.items():
        check_exact(epsilon, f"epsilon of {query}")
    total = sum(epsilons.values(), Fraction(0))
    edges = Guarantee(
        total,
        "bounds the loss of two states joined by a policy edge over all queries of one timestamp",
        "DPHMM 2016, Theorem 7.1; errata 4",
    )
    isolated = Guarantee(
        total,
        "bounds the loss of a state without an edge and its one partner over all queries of one timestamp",
        "DPHMM 2016, Theorem 7.1; errata 4",
    )
    any_pair = Guarantee(
        _sum(costs.values(), "costs"),
        "bounds the loss of any two possible states over all queries of one timestamp",
        "DPHMM 2016, Theorem 7.1; errata 19",
    )
    return SeveralQueries(edges, isolated if _one_partner(epsilons, partners) else None, any_pair)


def theorem_7_2(costs: Iterable[Loss]) -> Guarantee:
    """A sequence of releases: the loss of any two histories of possible states, the sum of the costs.

    Theorem 7.2 of the DPHMM paper; infinite if any cost is (errata 19). The sum of the epsilons bounds less:
    see :func:`neighbouring_paths`.
    """
    return Guarantee(
        _sum(costs, "costs"),
        "bounds the loss of any two histories of possible states over the whole sequence",
        "DPHMM 2016, Theorem 7.2; errata 19",
    )


def neighbouring_paths(epsilons: Iterable[Loss]) -> Guarantee:
    """A sequence of releases: the loss of any two neighbouring paths, the sum of the epsilons.

    Two paths are neighbouring if at every step their states are equal or joined by a policy edge, and possible.
    It is no bound for two *states* of one step: their pasts may be joined by no edge (docs/theory.md 1).
    This is adaptive composition (Guerra-Balboa et al., CSF 2024) for the neighbours of d_inf-privacy of traces
    (Chatzikokolakis, Palamidessi and Stronati, PETS 2014), with policy edges as the distance.

    >>> neighbouring_paths([Fraction(1, 2)] * 6).value
    Fraction(3, 1)
    """
    return Guarantee(
        _sum(epsilons, "epsilons"),
        "the sum of the per-step epsilons: bounds the loss of two paths whose states are equal or joined by a policy "
        "edge at every step, and possible; not a bound for two states of one step",
        "docs/proofs/paths.md",
    )


def _one_partner(queries: Iterable[str], partners: Mapping[str, Mapping[int, int]]) -> bool:
    tables = [partners.get(query) for query in queries]
    for table in tables:
        for state, partner in (table or {}).items():
            if state == partner:
                raise InvalidInput("partners", f"state {state} with itself", "another state (errata 7)")
    return tables[0] is not None and all(table == tables[0] for table in tables)


def _checked(losses: Iterable[Loss], field: str) -> list[Loss]:
    checked = list(losses)
    for loss in checked:
        if not (isinstance(loss, float) and loss == math.inf):
            check_exact(loss, field)
    return checked


def _largest(losses: Iterable[Loss], field: str) -> Loss:
    return max(_checked(losses, field), default=Fraction(0))


def _sum(losses: Iterable[Loss], field: str) -> Loss:
    checked = _checked(losses, field)
    return math.inf if math.inf in checked else sum((Fraction(loss) for loss in checked), Fraction(0))


_DIGITS = 60
#: Epsilons are rounded up to this unit.
_UNIT = Decimal(1).scaleb(-12)
#: More than the error of evaluating the bound to 60 digits for any order up to e**40 and delta from 1e-300.
_MARGIN = Decimal(1).scaleb(-30)
_RHO_BITS = 40
SMALLEST_DELTA = Fraction(1, 10**300)


def check_delta(delta: Fraction, field: str = "delta") -> Fraction:
    """A delta that the conversion takes: from 1e-300 to below 1."""
    if not SMALLEST_DELTA <= delta < 1:
        raise InvalidInput(field, delta, "a number from 1e-300 to below 1 for Gaussian noise")
    return delta


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon known for rho-zCDP at this delta, rounded up (Canonne, Kamath and Steinke 2020, v4, Prop. 12).

    min over orders a > 1 of a·rho + (log(1/delta) + (a - 1)·log(1 - 1/a) - log a)/(a - 1).
    """
    check_delta(delta)
    if rho == 0:
        return Fraction(0)
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    order = 1.0 + math.exp(_best_log_excess(float(rho), log_delta))
    return _bound(rho, delta, order)


def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho (to 40 binary digits, rounded down) whose ``epsilon_of`` is at most epsilon."""
    check_delta(delta)
    exponent = math.floor(math.log2(_simple_rho(float(epsilon), delta)))
    unit = Fraction(2) ** (exponent - _RHO_BITS)
    low, high = 0, 1 << _RHO_BITS
    while epsilon_of(high * unit, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if epsilon_of(middle * unit, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low * unit


def _simple_rho(epsilon: float, delta: Fraction) -> float:
    """The rho with rho + 2·sqrt(rho·log(1/delta)) = epsilon: a first guess."""
    log = math.log(delta.denominator) - math.log(delta.numerator)
    # (sqrt(log + epsilon) - sqrt(log))**2 without cancellation.
    return (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2


def _best_log_excess(rho: float, log_delta: float) -> float:
    """log(a - 1) of about the best order a: golden section."""

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        logs = excess * math.log(excess / (1.0 + excess)) if log_excess < 30 else -1.0
        return (1.0 + excess) * rho + (-log_delta + logs - math.log1p(excess)) / excess

    low, high = -12.0, 40.0
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(90):
        width = ratio * (high - low)
        if bound(high - width) < bound(low + width):
            high = low + width
        else:
            low = high - width
    return (low + high) / 2.0


def _bound(rho: Fraction, delta: Fraction, order: float) -> Fraction:
    with localcontext() as context:
        context.prec = _DIGITS
        a = Decimal(order)
        log_inverse_delta = Decimal(delta.denominator).ln() - Decimal(delta.numerator).ln()
        logs = (a - 1) * (1 - 1 / a).ln() - a.ln()
        exact = a * rho.numerator / rho.denominator + (log_inverse_delta + logs) / (a - 1)
        up = (exact + _MARGIN).quantize(_UNIT, rounding=ROUND_CEILING)
    return max(Fraction(0), Fraction(up))
