"""One subject's account: caps, the spending so far, and the check of further requests.

Rounding goes towards privacy: a spend is rounded up, a cap down, both to 1e-9 of cost. Epsilon is exact. Nothing is
drawn before a request is admitted.

Proofs: docs/proofs/ledger.md, docs/proofs/paths.md, docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dphmm.accounting.clock import DAY
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.records import Entry, Request, Requests, SessionHeader, Spending, check_exact, shown
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.types import BoolArray, IntArray

NANO = 10**9
#: Bits of the exact total of epsilon: decimals never come near, adversarial fractions are stopped in time.
TOTAL_BITS = 8 * 1024


#: A limit that so many answers keep is none.
_ENDLESS = 10**5


@dataclass(frozen=True)
class Spent:
    """Totals of a subject over all queries: epsilon exact; cost a sum of costs, each rounded up to 1e-9."""

    epsilon: Fraction
    cost: Fraction


class Account(NamedTuple):
    """The running totals as they are kept: integers and one exact fraction, so that adding never loses."""

    epsilon: Fraction
    nanos: int

    def plus(self, epsilon: Fraction, cost: Fraction) -> Account:
        """The account after one more release."""
        return Account(self.epsilon + epsilon, self.nanos + nanos_up(cost))

    def plus_times(self, epsilon: Fraction | None, cost: Fraction | None, count: int) -> Account:
        """The account after so many releases of one kind; skips have neither epsilon nor cost."""
        if epsilon is None or cost is None:
            return self
        total = _sum(*self.epsilon.as_integer_ratio(), *epsilon.as_integer_ratio(), count)
        return Account(total, self.nanos + count * nanos_up(cost))

    def beside(self, other: Account) -> Account:
        """Both accounts together."""
        return Account(self.epsilon + other.epsilon, self.nanos + other.nanos)

    def without(self, other: Account) -> Account:
        """The account that makes this one beside the ``other``."""
        return Account(self.epsilon - other.epsilon, self.nanos - other.nanos)

    def within(self, caps: Caps) -> bool:
        """True if the account exceeds no cap, and its exact epsilon stays of reasonable length."""
        return not (self.over_epsilon(caps) or self.over_cost(caps) or self.too_long)

    def over_epsilon(self, caps: Caps) -> bool:
        """True if the account exceeds the cap on epsilon."""
        return caps.epsilon is not None and self.epsilon > caps.epsilon

    def over_cost(self, caps: Caps) -> bool:
        """True if the account exceeds the cap on cost."""
        return caps.cost is not None and self.nanos > nanos_down(caps.cost)

    @property
    def too_long(self) -> bool:
        """True if the exact epsilon has more binary digits than an account can keep."""
        return max(self.epsilon.as_integer_ratio()).bit_length() > TOTAL_BITS

    @property
    def spent(self) -> Spent:
        """The totals in the units of the records."""
        return Spent(self.epsilon, Fraction(self.nanos, NANO))


@lru_cache(maxsize=2**12)
def _sum(above: int, below: int, more_above: int, more_below: int, count: int) -> Fraction:
    """above / below and ``count`` times more_above / more_below: many users of a table have the same total."""
    return Fraction(above, below) + count * Fraction(more_above, more_below)


EMPTY = Account(Fraction(0), 0)


def nanos_up(cost: Fraction) -> int:
    """A cost in units of 1e-9, rounded up."""
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
        needs = Fraction(nanos_up(request.cost), NANO)
        raise _exceeded(request, "cost", needs, account.spent.cost, Fraction(nanos_down(caps.cost), NANO))
    if after.too_long:
        raise InvalidInput("epsilon", "a total with a very long fraction", "epsilons with few digits, as 0.1")
    return after


def _exceeded(request: Request, what: str, needs: Fraction, spent: Fraction, cap: Fraction) -> BudgetExceeded:
    remaining = max(Fraction(0), cap - spent)
    return BudgetExceeded(
        f"{what}: step {request.t} of query {quoted(request.query)} for subject {quoted(request.subject)} "
        f"requested {shown(needs)}; spent {shown(spent)}, remaining {shown(remaining)}, cap {shown(cap)}; "
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
    if number == len(asked):
        raise BudgetExceeded(f"promise: the stored answers of subject {quoted(subject)} exceed {promise}")
    t, epsilon = asked[number]
    left = promise.room([*spent, *asked[:number]], t)
    raise BudgetExceeded(
        f"promise: step {t} of query {quoted(query)} for subject {quoted(subject)} requested {shown(epsilon)}; "
        f"{shown(left)} is left there of {promise}; nothing was drawn or spent"
    )


def _in_full(promise: SequencePromise, unlike: SequencePromise) -> str:
    """A promise as it differs from another one: of as much in as many steps, in where blocks begin."""
    if str(promise) != str(unlike):
        return str(promise)
    if promise.local is not None:
        return f"{promise} with step 1 the {promise.local.origin}-th of {promise.local.step} s since 1970"
    if isinstance(promise.per, str):
        return f"{promise} by the clock {promise.zone}"
    return f"{promise} with {promise.passed} steps of the first block before step 1"


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


@dataclass(frozen=True)
class Caps:
    """The limits on one subject's spending over all queries and all time; None is no limit.

    All of it stays with the subject's account once it is given (`Transaction.bind`).
    """

    epsilon: Fraction | None = None
    cost: Fraction | None = None
    promise: SequencePromise | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            check_exact(self.epsilon, "cap_epsilon")
        if self.cost is not None:
            check_exact(self.cost, "cap_cost")

    def joined(self, given: Caps, whose: str) -> Caps:
        """The caps of a subject and those that are given now.

        Raises InvalidInput for a promise or a cap other than that which there is.
        """
        promised, new = self.promise, given.promise
        if promised is not None and new is not None and promised != new:
            expected = f"{_in_full(promised, new)}, which was promised to {whose} and stays for all of its queries"
            raise InvalidInput("promise", _in_full(new, promised), expected)
        return Caps(
            _one_cap("cap_epsilon", self.epsilon, given.epsilon, whose),
            _one_cap("cap_cost", self.cost, given.cost, whose),
            self.promise or given.promise,
        )

    def within(self, other: Caps) -> Caps:
        """The lower of each two caps, and this promise."""
        return Caps(_lower(self.epsilon, other.epsilon), _lower(self.cost, other.cost), self.promise)

    def limit(self, epsilon: Fraction, step: float | None) -> bool:
        """True if a cap or the promise limits the sum of many answers of this epsilon each.

        A promise of a single step that is shorter than a day limits nothing, nor does a total of `_ENDLESS` answers.
        ``step``: of the model, in seconds; None without one.
        """
        endless = epsilon * _ENDLESS
        caps = [cap for cap in (self.epsilon, self.cost) if cap is not None]
        if self.promise is not None:
            length = self.promise.length(step)
            caps += [self.promise.exact] * (length > 1 or (step or 0) >= DAY)
        return any(cap < endless for cap in caps)

    @property
    def by_local_days(self) -> bool:
        """True if the promise is over days of clocks that are put forward and back."""
        return self.promise is not None and self.promise.local is not None

    def written(self) -> str:
        """The caps as a ledger keeps changed ones: JSON with its names in order."""
        caps = {"cap_epsilon": self.epsilon, "cap_cost": self.cost}
        document = {name: str(cap) for name, cap in caps.items() if cap is not None}
        if self.promise is not None:
            document["promise"] = self.promise.written()
        return json.dumps(document, sort_keys=True)


#: No limit at all.
UNLIMITED = Caps()


def _one_cap(field: str, kept: Fraction | None, given: Fraction | None, whose: str) -> Fraction | None:
    if given is None or kept is None or given == kept:
        return kept if given is None else given
    raise InvalidInput(field, shown(given), f"{shown(kept)}, the cap of {whose}, which stays for all of its queries")


def _lower(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return one if other is None else other if one is None else min(one, other)


class Looked(NamedTuple):
    """The stored state of one subject for one query: its session, the last step, and the account that queries share.

    ``header`` is None and ``last`` 0 where the query has no session; ``others`` are the subject's other sessions, by
    name of the query; ``account`` is that of all queries. ``version`` counts what was stored about the subject: every
    session, release, skip and promise raises it by 1.
    """

    header: SessionHeader | None
    last: int
    others: tuple[SessionHeader, ...]
    account: Account
    version: int


class Admitted(NamedTuple):
    """An admitted request: the entry of its step if that is ``stored``, else the account after it.

    ``moments`` are those that it adds to the moments of its subject's steps.
    """

    request: Request
    stored: Entry | None
    account: Account | None
    moments: IntArray | None = None


@dataclass(frozen=True, eq=False)
class AdmittedMany:
    """Admitted requests: True where one is not stored yet (m,), and the rows of those that need an answer (k,).

    ``stored`` are the entries of all others, ``accounts`` those of the subjects after it, and ``moments`` the moments
    that are added for their steps.
    """

    requests: Requests
    fresh: BoolArray
    wanted: IntArray
    stored: dict[int, Entry]
    accounts: dict[str, Account]
    moments: dict[str, IntArray]


def admit_many(account: Account, requests: Requests, first: int, end: int, caps: Caps) -> Account:
    """The account after the rows first..end of one subject; raises as `admit` for the first that passes a cap.

    Totals only grow, so where all of them together fit, each does.
    """
    after, terms = account, requests.term[first:end].tolist()
    for number, count in ((terms[0], 1),) if len(terms) == 1 else Counter(terms).items():
        term = requests.terms[number]
        after = after.plus_times(term.epsilon, term.cost, count)
    if after.within(caps):
        return after
    for row in range(first, end):
        if requests.terms[requests.term[row]].kind == "release":
            account = admit(account, requests[row], caps)
    return account
