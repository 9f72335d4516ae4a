"""Shares of regions and of flows between them among people with answers: both estimates, intervals, and refusals.

Every person is one term: the terms of a person's answers are added up first. Under a paced schedule answers count
alike, and the number of a person's answers hangs on the answers; then a share is a ratio of two sums over persons, with
the standard error of a ratio, and its interval is an approximation.

Proof: docs/proofs/population-shares.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.reconstruction.answers import Answers, OutcomeTable, outcome_table
from dphmm.reconstruction.density import Fitted
from dphmm.reconstruction.linear import (
    MISSES,
    Shares,
    TermBounds,
    TermMoments,
    among_those_that_go_on,
    interval_of_rows,
    linear_estimates,
    normal_interval,
)
from dphmm.reconstruction.regions import Regions
from dphmm.session.plan import StepPlan
from dphmm.states.space import END, StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray

#: Laws whose linear estimates are made; values of people times regions that are held together.
_MOST_TABLES = 32
_TOGETHER = 2**22
#: States that are named in a refusal.
_NAMED = 8


#: Estimate, ends and standard error of a share; None where it cannot be answered.
Told = tuple[float | None, float | None, float | None, float | None]
NOTHING: Told = (None, None, None, None)


class Share(NamedTuple):
    """The share of one region, or of one flow between two regions (``destination`` is not "").

    estimate : the likeliest one; None where it cannot be told. linear, low, high, standard_error : the unbiased
    estimate with its 90 % interval within 0 to 1 (an approximation under a paced schedule); None where the region
    cannot be answered, and ``why`` says why.
    """

    region: str
    destination: str
    estimate: float | None
    linear: float | None
    low: float | None
    high: float | None
    standard_error: float | None
    why: str


@dataclass(frozen=True, eq=False)
class _Counts:
    """The terms of one law's outcomes for the regions (Z, k); ``variance`` (k,) of one answer under the guess.

    ``inside`` and ``outside`` (k,) are the largest expected squares of an answer's term, from a state in a region
    and from another.
    """

    outcomes: OutcomeTable
    counts: FloatArray
    variance: FloatArray
    inside: FloatArray
    outside: FloatArray


class LinearEstimates:
    """The terms of every answer for every region that can be answered under all laws of a release.

    ``why`` (k,) has the reason for each region that cannot, else ""; those that are ``split`` have no likeliest share
    either: they separate states with one law, or the model does not have them whole.
    """

    def __init__(self, plans: Sequence[StepPlan], regions: Regions, guess: FloatArray, space: StateSpace) -> None:
        self.names = list(regions)
        self.masks = np.stack([mask.astype(np.float64) for mask in regions.values()], axis=1)
        self.why = [regions.why.get(name, "") for name in self.names]
        self.split = np.array([bool(why) for why in self.why])
        self._guess, self._space, self._laws = guess, space, list[_Counts | None]()
        if len(plans) > _MOST_TABLES:
            self._refuse(np.ones(len(self.names), np.bool_), f"unknown: answers of more than {_MOST_TABLES} laws")
            return
        for plan in plans:
            self._laws.append(self._law(plan))

    def ending(self, answers: Answers) -> tuple[int, BoolArray] | None:
        """The number of the region that is `END` alone, and which regions (k,) are without END.

        None where there is no such region that can be answered, or the steps that were asked hang on answers.
        """
        end = self._space.index_of(END)
        alone = [number for number in self.answered.tolist() if self.masks[:, number].nonzero()[0].tolist() == [end]]
        return (alone[0], self.masks[end] == 0) if alone and answers.public else None

    @property
    def answered(self) -> IntArray:
        """The numbers of the regions that can be answered."""
        return np.array([number for number, why in enumerate(self.why) if not why], dtype=np.int64)

    def of(self, answers: Answers, rows: slice, regions: IntArray) -> FloatArray:
        """The terms of some answers for some regions (n, k)."""
        terms = np.empty((len(answers.law[rows]), len(regions)))
        for number in np.unique(answers.law[rows]).tolist():
            law = self._laws[number]
            assert law is not None
            of_law = answers.law[rows] == number
            terms[of_law] = law.counts[law.outcomes.numbers(answers.z[rows][of_law])][:, regions]
        return terms

    def terms(self, laws: IntArray, regions: IntArray) -> TermBounds:
        """Bounds of what an answer under some laws counts for regions (k,), and so of a mean of several answers."""
        known = [law for number in laws.tolist() if (law := self._laws[number]) is not None]
        return TermBounds(
            np.min([law.counts[:, regions].min(axis=0) for law in known], axis=0),
            np.max([law.counts[:, regions].max(axis=0) for law in known], axis=0),
            np.max([law.inside[regions] for law in known], axis=0),
            np.max([law.outside[regions] for law in known], axis=0),
        )

    def standard_errors(self, people: int) -> FloatArray:
        """The standard errors (k,) of estimates from one answer each of some people, if the guess were the truth."""
        (law,) = self._laws
        if law is None:
            return np.full(len(self.names), np.nan)
        return np.sqrt(law.variance / people)

    def _law(self, plan: StepPlan) -> _Counts | None:
        every = np.ones(len(self.names), dtype=np.bool_)
        try:
            outcomes = outcome_table(plan)
        except InvalidInput as error:
            self._refuse(every, f"unknown: {str(error).partition(': got ')[2]}")
            return None
        inside = np.zeros((len(outcomes.table), len(self.names)))
        inside[outcomes.law_of] = self.masks
        guess = np.zeros(len(outcomes.table))
        np.add.at(guess, outcomes.law_of, self._guess)
        for number in range(len(self.names)):
            laws = outcomes.split(self.masks[:, number])
            if len(laws):
                self.split[number] = True
                self._refuse(np.arange(len(self.names)) == number, self._splits(outcomes, laws, number))
        counts = np.zeros((outcomes.table.shape[1], len(self.names)))
        whole = self.answered
        if len(whole):
            counts[:, whole] = self._solved(outcomes.table, inside, guess, whole)
        squares = outcomes.table @ counts**2
        variance = np.maximum(guess @ squares - (guess @ inside) ** 2, 0.0)
        largest = (np.where(there, squares, 0.0).max(axis=0) for there in (inside > 0, inside == 0))
        return _Counts(outcomes, counts, variance, *largest)

    def _solved(self, table: FloatArray, inside: FloatArray, guess: FloatArray, whole: IntArray) -> FloatArray:
        try:
            return linear_estimates(table, inside[:, whole], guess)
        except InvalidInput:
            terms = np.zeros((table.shape[1], len(whole)))
        # Some regions can be answered, and others not.
        for place, number in enumerate(whole.tolist()):
            try:
                terms[:, [place]] = linear_estimates(table, inside[:, [number]], guess)
            except InvalidInput:
                why = "no combination of answers tells it from others: a larger epsilon, or another region"
                self._refuse(np.arange(len(self.names)) == number, why)
        return terms

    def _splits(self, outcomes: OutcomeTable, laws: IntArray, number: int) -> str:
        """The states that would make a region answerable that separates states with one law, in words."""
        inside = self.masks[:, number] > 0
        alike = np.isin(outcomes.law_of, laws)
        more, less = np.flatnonzero(alike & ~inside), np.flatnonzero(alike & inside)
        return f"separates states with one law: add {self._listed(more)}, or leave out {self._listed(less)}"

    def _listed(self, states: IntArray) -> str:
        names = [self._space.names[state] for state in states[:_NAMED].tolist()]
        return " ".join(names) + (f" and {len(states) - _NAMED} more" if len(states) > _NAMED else "")

    def _refuse(self, which: Any, why: str) -> None:
        self.why = [old or (why if refused else "") for old, refused in zip(self.why, which.tolist(), strict=True)]


class _Moments:
    """Sums over persons of what their answers count for k regions: of each, of its square, and with its weight."""

    def __init__(self, k: int) -> None:
        self.people, self.weight, self.squares = 0, 0.0, 0.0
        self.sums, self.square_sums, self.products = np.zeros(k), np.zeros(k), np.zeros(k)

    def add(self, person: IntArray, weights: FloatArray, values: FloatArray) -> None:
        """More answers, all of each of their persons."""
        _, first = np.unique(person, return_index=True)
        total = np.add.reduceat(values * weights[:, None], first, axis=0)
        weight = np.add.reduceat(weights, first)
        self.people += len(first)
        self.weight += float(weight.sum())
        self.squares += float(weight @ weight)
        self.sums += total.sum(axis=0)
        self.square_sums += (total**2).sum(axis=0)
        self.products += weight @ total

    def told(
        self, terms: TermBounds, public: bool, factor: float = 1.0, ending: tuple[int, BoolArray] | None = None
    ) -> Iterator[Told]:
        """The estimate of each region with its interval and standard error.

        ``factor`` : as `interval_of_rows` has it. ``ending``: the number of the region `END`, and True (k,) for those
        told among those that have not ended.
        """
        share, people = self.sums / self.weight, self.people
        spread = np.maximum(self.square_sums - 2 * share * self.products + share**2 * self.squares, 0.0)
        error = np.sqrt(spread * people / max(1, people - 1)) / self.weight
        if public:
            # Persons count alike: the term of each is what it adds, as a share of its weight.
            mean, square = share / factor, self.square_sums * people / (self.weight * factor) ** 2
            misses = MISSES if ending is None else MISSES / 2
            ends = interval_of_rows(TermMoments(mean, square, square - 2 * mean + 1.0), people, terms, factor, misses)
        else:
            ends = normal_interval(share, error, people)
        if ending is not None:
            share, low, high = among_those_that_go_on(Shares(share, *ends), *ending)
            ends = low, high
            # Of a quotient no error is told.
            error = np.where(ending[1], np.nan, error)
        # Of one person nothing tells how far another one would be off.
        return each_share(share, ends, error if people > 1 else np.full(len(share), np.nan))


def _blocks(person: IntArray, k: int) -> Iterator[slice]:
    """Rows of whole persons, not too many together."""
    ends = np.append(np.flatnonzero(np.diff(person)) + 1, len(person))
    size, first = max(1, _TOGETHER // max(1, k)), 0
    while first < len(person):
        place = int(np.searchsorted(ends, first + size, side="right")) - 1
        last = (
            int(ends[place]) if place >= 0 and ends[place] > first else int(ends[np.searchsorted(ends, first, "right")])
        )
        yield slice(first, last)
        first = last


def region_shares(answers: Answers, linear: LinearEstimates, fitted: Fitted | None) -> tuple[Share, ...]:
    answered, weights, ending = linear.answered, answers.weights(), linear.ending(answers)
    moments = _Moments(len(answered))
    if len(answered):
        for rows in _blocks(answers.person, len(answered)):
            moments.add(answers.person[rows], weights[rows], linear.of(answers, rows, answered))
    sizes: dict[int, Told] = {}
    if len(answered):
        terms = linear.terms(np.unique(answers.law), answered)
        among = None if ending is None else (int(np.searchsorted(answered, ending[0])), ending[1][answered])
        sizes = dict(zip(answered.tolist(), moments.told(terms, answers.public, answers.factor, among), strict=True))
    likeliest = None if fitted is None else fitted.q @ linear.masks
    if likeliest is not None and ending is not None and (left := 1.0 - likeliest[ending[0]]) > 0:
        likeliest = np.where(ending[1], likeliest / left, likeliest)
    return tuple(
        Share(
            name,
            "",
            None if likeliest is None or linear.split[number] else float(likeliest[number]),
            *sizes.get(number, NOTHING),
            linear.why[number],
        )
        for number, name in enumerate(linear.names)
    )


def flow_shares(pairs: tuple[Answers, Answers], linear: LinearEstimates, fitted: Fitted | None) -> tuple[Share, ...]:
    """The share of each two regions among pairs of answers, as `Answers.pairs` has them."""
    origins, then = pairs
    if not len(origins):
        return ()
    answered, weights, k = linear.answered, origins.weights(), len(linear.names)
    width, sizes = len(answered), dict[tuple[int, int], Told]()
    if width:
        moments = _Moments(width**2)
        for rows in _blocks(origins.person, width**2):
            out, into = linear.of(origins, rows, answered), linear.of(then, rows, answered)
            moments.add(origins.person[rows], weights[rows], (out[:, :, None] * into[:, None]).reshape(-1, width**2))
        terms = _products(*(linear.terms(np.unique(part.law), answered) for part in (origins, then)))
        both = [(a, b) for a in answered.tolist() for b in answered.tolist()]
        sizes = dict(zip(both, moments.told(terms, origins.public), strict=True))
    likeliest = None if fitted is None else linear.masks.T @ fitted.q @ linear.masks
    shares = []
    for a in range(k):
        for b in range(k):
            split = linear.split[a] or linear.split[b]
            estimate = None if likeliest is None or split else float(likeliest[a, b])
            why = linear.why[a] or linear.why[b]
            shares.append(Share(linear.names[a], linear.names[b], estimate, *sizes.get((a, b), NOTHING), why))
    return tuple(shares)


def _products(one: TermBounds, other: TermBounds) -> TermBounds:
    """Bounds of the products (k²,) of what two answers count for two regions: their noise is independent."""

    def every(some: Sequence[FloatArray], more: Sequence[FloatArray]) -> FloatArray:
        return np.stack([np.outer(a, b).ravel() for a in some for b in more])

    corners = every([one.least, one.most], [other.least, other.most])
    both, *others = every([one.inside, one.outside], [other.inside, other.outside])
    return TermBounds(corners.min(axis=0), corners.max(axis=0), both, np.max(others, axis=0))


def each_share(share: FloatArray, ends: tuple[FloatArray, FloatArray], error: FloatArray) -> Iterator[Told]:
    """Estimate, ends and standard error of each region."""
    parts = (part.tolist() for part in (share, *ends, error))
    for estimate, low, high, off in zip(*parts, strict=True):
        yield estimate, low, high, None if math.isnan(off) else off
