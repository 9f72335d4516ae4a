"""One subject's account: what has been spent, and whether a request still fits its caps.

Every rounding goes towards privacy: a spend is rounded up, a cap down, both to 1e-9 of cost. Epsilon is
exact.

Floats that are not below what they stand for.

Proofs: docs/proofs/ledger.md, docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dphmm.accounting.promise import Caps, Group, SequencePromise, Spending
from dphmm.accounting.records import Entry, Request, shown
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.types import Loss

NANO = 10**9
#: Bits of the exact total of epsilon: decimals never come near, adversarial fractions are stopped in time.
TOTAL_BITS = 8 * 1024


@dataclass(frozen=True)
class Spent:
    """Totals of a subject over all queries: epsilon exact; cost a sum of costs, each rounded up to 1e-9."""

    epsilon: Fraction
    cost: Loss


class Account(NamedTuple):
    """The running totals as they are kept: integers and one exact fraction, so that adding never loses."""

    epsilon: Fraction
    nanos: int
    unbounded: bool

    def plus(self, epsilon: Fraction, cost: Loss) -> Account:
        """The account after one more release."""
        return self.plus_times(epsilon, cost, 1)

    def plus_times(self, epsilon: Fraction | None, cost: Loss | None, count: int) -> Account:
        """The account after so many releases of one kind; skips have neither epsilon nor cost."""
        if epsilon is None or cost is None:
            return self
        total = self.epsilon + (epsilon if count == 1 else count * epsilon)
        if isinstance(cost, float):
            return Account(total, self.nanos, True)
        return Account(total, self.nanos + count * nanos_up(cost), self.unbounded)

    def beside(self, other: Account) -> Account:
        """Both accounts together."""
        return Account(self.epsilon + other.epsilon, self.nanos + other.nanos, self.unbounded or other.unbounded)

    def without(self, other: Account) -> Account:
        """The account that makes this one beside the ``other``, which is bounded."""
        return Account(self.epsilon - other.epsilon, self.nanos - other.nanos, self.unbounded)

    def within(self, caps: Caps) -> bool:
        """Whether it passes no cap, and its exact epsilon stays of reasonable length."""
        return not (self.over_epsilon(caps) or self.over_cost(caps) or self.too_long)

    def over_epsilon(self, caps: Caps) -> bool:
        """Whether it passes the cap on epsilon."""
        return caps.epsilon is not None and self.epsilon > caps.epsilon

    def over_cost(self, caps: Caps) -> bool:
        """Whether it passes the cap on cost."""
        return caps.cost is not None and (self.unbounded or self.nanos > nanos_down(caps.cost))

    @property
    def too_long(self) -> bool:
        """Whether its exact epsilon has grown beyond what can be kept."""
        return max(self.epsilon.as_integer_ratio()).bit_length() > TOTAL_BITS

    @property
    def spent(self) -> Spent:
        """The totals in the units of the records."""
        return Spent(self.epsilon, math.inf if self.unbounded else Fraction(self.nanos, NANO))


EMPTY = Account(Fraction(0), 0, False)


def nanos_up(cost: Fraction) -> int:
    """A finite cost in units of 1e-9, rounded up."""
    numerator, denominator = cost.as_integer_ratio()
    return -(-numerator * NANO // denominator)


def nanos_down(cap: Fraction) -> int:
    """A cap in units of 1e-9, rounded down."""
    return cap.numerator * NANO // cap.denominator


def recount(entries: Iterable[Entry], account: Account = EMPTY) -> Account:
    """The account that these entries make: the fold that every stored account must equal."""
    for entry in entries:
        if entry.epsilon is not None and entry.cost is not None:
            account = account.plus(entry.epsilon, entry.cost)
    return account


def admit(account: Account, request: Request, caps: Caps) -> Account:
    """The account after a release, or BudgetExceeded if it would pass a cap. Nothing is drawn before this."""
    assert request.epsilon is not None and request.cost is not None
    after = account.plus(request.epsilon, request.cost)
    if caps.epsilon is not None and after.over_epsilon(caps):
        raise _exceeded(request, "epsilon", request.epsilon, account.epsilon, caps.epsilon)
    if caps.cost is not None and after.over_cost(caps):
        needs = request.cost
        if not isinstance(needs, float):
            needs = Fraction(nanos_up(needs), NANO)
        raise _exceeded(request, "cost", needs, account.spent.cost, Fraction(nanos_down(caps.cost), NANO))
    if after.too_long:
        raise InvalidInput("epsilon", "a total with a very long fraction", "epsilons with few digits, as 0.1")
    return after


def _exceeded(request: Request, what: str, needs: Loss, spent: Loss, cap: Fraction) -> BudgetExceeded:
    remaining = max(Fraction(0), cap - spent) if isinstance(spent, Fraction) else Fraction(0)
    return BudgetExceeded(
        f"{what}: step {request.t} of query {quoted(request.query)} for subject {quoted(request.subject)} "
        f"requested {shown(needs)}; spent {shown(spent)}, remaining {shown(remaining)}, cap {shown(cap)}; "
        "nothing was drawn or spent"
    )


def keep_group(group: Group, spent: Fraction, needs: Fraction, subject: str, query: str) -> None:
    """Raises BudgetExceeded where a release would take what its subject's group has ``spent`` over the cap."""
    if spent + needs > group.cap:
        left = max(Fraction(0), group.cap - spent)
        raise BudgetExceeded(
            f"cap_group: query {quoted(query)} for subject {quoted(subject)} requested {shown(needs)}; group "
            f"{quoted(group.name)} spent {shown(spent)}, remaining {shown(left)}, cap {shown(group.cap)}; "
            "nothing was drawn or spent"
        )


def keep_promise(
    promise: SequencePromise, spent: Sequence[Spending], asked: Sequence[Spending], subject: str, query: str
) -> None:
    """Raises BudgetExceeded for the first of a subject's coming releases that would break its promise.

    ``spent`` is what is stored, as far as `SequencePromise.reach` says; ``asked`` are the coming releases by step.
    """
    number = promise.refused(spent, asked)
    if number is None:
        return
    t, epsilon = asked[number]
    left = promise.room([*spent, *asked[:number]], t)
    raise BudgetExceeded(
        f"promise: step {t} of query {quoted(query)} for subject {quoted(subject)} requested {shown(epsilon)}; "
        f"{shown(left)} is left there of {promise}; nothing was drawn or spent"
    )


def quoted(name: str) -> str:
    """A name inside a one-line message: quoted, plain ASCII, shortened."""
    return json.dumps(name if len(name) <= 64 else name[:61] + "...")


def float_above(value: Fraction | float) -> float:
    """The smallest float that is not below an exact number."""
    nearest = float(value)
    return nearest if nearest == math.inf or Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def sum_above(a: Any, b: Any) -> Any:
    """The smallest floats that are not below a + b."""
    total = np.asarray(a + b)
    with np.errstate(invalid="ignore"):
        part = total - a
        lost = (a - (total - part)) + (b - part)
    return np.where(lost > 0, np.nextafter(total, np.inf), total)
