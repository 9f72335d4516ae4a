"""Fits and query answers in a ledger, and the loss of one person in all of them together.

A *publication* is a fit or the answer of a query. It names the hidden `unit`, the largest number of units of one
person, the neighbours, and the loss. Every publication of a ledger counts for every person of that ledger: leaving it
out for some would tell who was in the data.

Rounding goes towards privacy: epsilons are exact, zero-concentrated terms are converted upwards, deltas are rounded up.

Proof: docs/proofs/account.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

from dphmm._checks import one_of
from dphmm.accounting.budget import Account, nanos_up, quoted
from dphmm.accounting.event import (
    NEIGHBOURS,
    SMALLEST_DELTA,
    Guarantee,
    LearningEvent,
    NotPrivateEvent,
    check_delta,
    epsilon_of,
)
from dphmm.accounting.records import check_exact, check_text
from dphmm.errors import InvalidInput
from dphmm.types import Loss

KINDS = ("fit", "query")
#: Longest result that is stored with a publication, in bytes.
LONGEST_RESULT = 2**29
#: Where rho terms are converted while no publication has named a delta.
DELTA = Fraction(1, 10**6)
#: Most units of one person.
MOST_UNITS = 10**9
PROOF = "docs/proofs/account.md"
_DIGITS = 40
#: Epsilons beyond it have deltas that say nothing.
_LARGEST_EXPONENT = 700


@dataclass(frozen=True)
class Publication:
    """A fit or a query about all persons of a data set: public, and known before anything is drawn.

    name : the id that its owner gave; the same id gives the stored result.
    kind : "fit" or "query".
    statement : a digest of the public settings of the fit or query.
    unit : the hidden unit, in words.
    relation : "add-remove" a unit, or "replace" one by another; None where nothing is promised.
    units : the largest number of units of one person, which is public; None where nobody has said.
    epsilon, rho, delta : the loss of one unit: epsilon alone, rho of zero-concentrated differential privacy, or epsilon
        and delta; none of them where nothing is promised.
    counts : True if one person contributes a vector of numbers that are not negative.

    Raises InvalidInput for any other value of a field.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dphmm.accounting import Publication
    >>> Publication("walks", "fit", "", "all sequences of one person", "add-remove", epsilon=Fraction(1)).loss
    'epsilon'

    Source: docs/proofs/account.md.
    """

    name: str
    kind: str
    statement: str
    unit: str
    relation: str | None = None
    units: int | None = 1
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None
    counts: bool = False

    def __post_init__(self) -> None:
        for field in ("name", "statement", "unit"):
            check_text(getattr(self, field), "event_id" if field == "name" else field)
        if not self.name or len(self.name) > 200:
            raise InvalidInput("event_id", quoted(self.name), "an id of 1 to 200 characters")
        one_of(self.kind, KINDS, "kind")
        if self.units is not None and (type(self.units) is not int or not 1 <= self.units <= MOST_UNITS):
            raise InvalidInput("units", self.units, "how many units one person has at most, 1 to 1000000000, or None")
        for field in ("epsilon", "rho", "delta"):
            if getattr(self, field) is not None:
                check_exact(getattr(self, field), field)
        losses = (self.epsilon is not None, self.rho is not None, self.delta is not None)
        if losses not in _LOSSES:
            raise InvalidInput("epsilon, rho, delta", losses, "epsilon, rho, epsilon and delta, or none of them")
        if self.delta is not None:
            check_delta(self.delta)
        if (self.relation is None) != (self.loss == "none"):
            raise InvalidInput("relation", self.relation, "add-remove or replace, and none where nothing is promised")
        if self.relation is not None:
            one_of(self.relation, NEIGHBOURS, "relation")

    @property
    def loss(self) -> str:
        """The kind of loss that is stated: "epsilon", "rho", "epsilon-delta" or "none"."""
        return _LOSSES[self.epsilon is not None, self.rho is not None, self.delta is not None]

    @property
    def bounded(self) -> bool:
        """True if the publication states a bound for one person."""
        return self.loss != "none" and self.units is not None

    def of_person(self, replaced: bool) -> Terms:
        """The loss for one person: for ``replaced`` records, or for the presence of the person.

        Nothing bounds the second for a publication that hides replacements.
        """
        if not self.bounded or (not replaced and self.relation == "replace"):
            return UNBOUNDED
        assert self.units is not None
        twice = replaced and self.relation == "add-remove"
        # One at a time: the person's units are removed, and others are added.
        steps = 2 * self.units if twice else self.units
        if self.rho is not None:
            # Two vectors of numbers that are not negative differ, squared, by at most the sum of their squares.
            squared = 2 * self.units**2 if twice and self.counts else steps**2
            return Terms(Fraction(0), squared * self.rho, Fraction(0))
        assert self.epsilon is not None
        if self.delta is None:
            return Terms(steps * self.epsilon, Fraction(0), Fraction(0))
        return Terms(steps * self.epsilon, Fraction(0), delta_of_group(self.epsilon, self.delta, steps))


#: What is lost, by which of epsilon, rho and delta are given.
_LOSSES = {
    (True, False, False): "epsilon",
    (False, True, False): "rho",
    (True, False, True): "epsilon-delta",
    (False, False, False): "none",
}


class Published(NamedTuple):
    """A publication as a ledger holds it: its place among all, when it was stored, and the result that is shown."""

    publication: Publication
    version: int
    time: str
    result: bytes


class AdmittedPublication(NamedTuple):
    """A publication that nothing refuses: as it is ``stored``, else free to be drawn, once.

    ``delta`` is where rho terms of the ledger are converted from now on, if nothing was said before.
    """

    publication: Publication
    stored: Published | None
    delta: Fraction | None


class Terms(NamedTuple):
    """Losses that add up term by term; an epsilon of infinity is no bound."""

    epsilon: Loss
    rho: Fraction
    delta: Fraction

    def plus(self, other: Terms) -> Terms:
        """Both together."""
        return Terms(self.epsilon + other.epsilon, self.rho + other.rho, self.delta + other.delta)

    def converted(self, delta: Fraction) -> Total:
        """The total as (epsilon, delta): the rho terms converted once, at this delta."""
        if self.epsilon == math.inf:
            return NO_BOUND
        lost = self.delta + (delta if self.rho else 0)
        if lost >= 1:
            return NO_BOUND
        return Total(self.epsilon + (epsilon_of(self.rho, delta) if self.rho else 0), lost)


class Total(NamedTuple):
    """(epsilon, delta) of everything together; infinity where nothing bounds it."""

    epsilon: Loss
    delta: Fraction

    @property
    def charge(self) -> Account:
        """The charge on an account; the total must have a bound."""
        assert isinstance(self.epsilon, Fraction)
        return Account(self.epsilon, nanos_up(self.epsilon))


NOTHING = Terms(Fraction(0), Fraction(0), Fraction(0))
UNBOUNDED = Terms(math.inf, Fraction(0), Fraction(0))
NO_BOUND = Total(math.inf, Fraction(0))


def delta_of_group(epsilon: Fraction, delta: Fraction, steps: int) -> Fraction:
    """The delta of so many neighbouring steps of (epsilon, delta): delta times the sum of e^(i epsilon), rounded up."""
    if (steps - 1) * epsilon > _LARGEST_EXPONENT:
        return Fraction(1)
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_CEILING
        # e^x is rounded to the nearest: the next number is not below it.
        factor = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp().next_plus()
        total, power = Decimal(0), Decimal(1)
        for _ in range(min(steps, 10**6)):
            total += power
            power *= factor
            if total > 1 / Decimal(SMALLEST_DELTA.numerator) * Decimal(SMALLEST_DELTA.denominator):
                return Fraction(1)
        if steps > 10**6:
            return Fraction(1)
        return min(Fraction(1), delta * Fraction(total))


def total_replaced(publications: Iterable[Publication], delta: Fraction = DELTA) -> Total:
    """The joint loss when one person's records are replaced by any others; rho terms converted at ``delta``."""
    return _together(publications, True).converted(delta)


def total_present(publications: Iterable[Publication], delta: Fraction = DELTA) -> Total:
    """The joint loss for a person's presence in the data; publications that hide replacements do not hide it."""
    hiding = [each for each in publications if each.relation != "replace"]
    return _together(hiding, False).converted(delta)


def _together(publications: Iterable[Publication], replaced: bool) -> Terms:
    total = NOTHING
    for publication in publications:
        total = total.plus(publication.of_person(replaced))
    return total


@dataclass(frozen=True)
class PersonTotals:
    """The loss of a person in releases and publications together, under each relation; the deltas beside them."""

    replaced: Guarantee
    replaced_delta: Fraction
    present: Guarantee
    present_delta: Fraction


def totals(spent: Fraction, publications: Sequence[Publication], delta: Fraction = DELTA) -> PersonTotals:
    """One person's totals: ``spent`` is the sum of the epsilons of the person's releases, of all queries.

    ``delta``: for the conversion of rho terms, once. Raises InvalidInput for a delta that the conversion does not take.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dphmm.accounting import Publication, totals
    >>> fit = Publication("walks", "fit", "", "all sequences of one person", "add-remove", epsilon=Fraction(1))
    >>> found = totals(Fraction(3), [fit])
    >>> found.replaced.value, found.present.value
    (Fraction(5, 1), Fraction(1, 1))

    Source: docs/proofs/account.md.
    """
    check_delta(delta)
    replaced, present = total_replaced(publications, delta), total_present(publications, delta)
    rest = f"in the {_numbered(len(publications), 'publication')} of this ledger and in that person's releases together"
    lost = f"bounds the loss of replacing one person's path by a neighbouring one {rest}"
    if any(each.rho for each in publications):
        lost += ", as a promise where the rhos, or a cap on them, were fixed beforehand"
    hiding = [each for each in publications if each.relation == "add-remove"]
    there = f"bounds what it tells whether a person is in the data, in {_numbered(len(hiding), 'publication')}"
    others = sum(each.relation == "replace" for each in publications)
    without = f"releases, and {_numbered(others, 'publication')} for replacing," if others else "releases"
    return PersonTotals(
        Guarantee(replaced.epsilon + spent, _sentence(lost, replaced, publications), PROOF),
        replaced.delta,
        Guarantee(present.epsilon, f"{_sentence(there, present, publications)}; {without} have no such promise", PROOF),
        present.delta,
    )


def _sentence(said: str, total: Total, publications: Sequence[Publication]) -> str:
    if total.delta:
        said += f", but for a delta of {float(total.delta):.3g}"
    nothing = [quoted(each.name) for each in publications if not each.bounded]
    if total.epsilon == math.inf and nothing:
        more = f" and {len(nothing) - 3} more" if len(nothing) > 3 else ""
        said += f"; there is no bound, because of {', '.join(nothing[:3])}{more}"
    return said


def _numbered(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def of_fit(event: LearningEvent | NotPrivateEvent, name: str, statement: str) -> Publication:
    """The publication of a model, from its event; one with noise that can be replayed promises nothing."""
    if not isinstance(event, LearningEvent) or not event.secure:
        return Publication(name, "fit", statement, "all sequences of one person")
    owned = event.unit == "owner"
    return Publication(
        name,
        "fit",
        statement,
        "all sequences of one person" if owned else "one sequence",
        event.neighbours,
        units=1 if owned else None,
        epsilon=event.epsilon if event.pure else None,
        rho=None if event.pure else event.rho,
        counts=True,
    )
