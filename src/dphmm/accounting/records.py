"""Requests to a ledger and the records that it keeps: frozen, public, checked when they are made.

`Requests` holds many requests of one query as columns, so that shared fields are written and checked once. Nothing here
can hold a true state. The only number that depends on one is ``z``, the released answer itself.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from operator import index
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from dphmm.accounting.moments import NO_MOMENT
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, IntArray, Loss

Kind: TypeAlias = Literal["release", "skip"]

#: Bits of a numerator or denominator in one record: keeps every total far under Python's limit of 4,300
#: digits.
RECORD_BITS = 1024
#: Bits of one lattice coordinate of a released answer.
ANSWER_BITS = 4096


@dataclass(frozen=True)
class SessionHeader:
    """The public parameters under which all steps of one (subject, query) are released, as strings.

    Caps are not among them: they may be changed between runs. Raises InvalidInput for anything but text.
    """

    subject: str
    query: str
    options: Mapping[str, str]

    def __post_init__(self) -> None:
        check_text(self.subject, "subject")
        check_text(self.query, "query")
        for name, value in self.options.items():
            check_text(name, "options")
            check_text(value, name)
        object.__setattr__(self, "options", dict(sorted(self.options.items())))

    @property
    def options_text(self) -> str:
        """The options as canonical JSON: equal options, equal bytes."""
        return json.dumps(dict(self.options), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class PlanRecord:
    """A plan: its hash, its plan set (``np.packbits`` of the mask (n_states,)), canonical JSON about it."""

    hash: str
    plan_states: bytes
    n_states: int
    description: str

    def __post_init__(self) -> None:
        check_text(self.hash, "plan")
        check_text(self.description, "plan")
        expected = (self.n_states + 7) // 8
        if not self.hash:
            raise InvalidInput("plan", "an empty hash", "the hash of a plan")
        if self.n_states < 1 or len(self.plan_states) != expected:
            fault = f"{len(self.plan_states)} bytes for {self.n_states} states"
            raise InvalidInput("plan", fault, "one bit per state, packed")


@dataclass(frozen=True)
class Request:
    """A request to store a release of one step under a plan, or a skip, which costs and publishes nothing.

    ``t`` counts from 1; a skip may pass over several ``steps``, from ``t`` through ``through``. ``epsilon`` may be 0
    only for a constant. ``moment`` is what the step stands for (`dphmm.accounting.moments`), ``NO_MOMENT`` where that
    is a number or stored. Raises InvalidInput naming the wrong field.
    """

    subject: str
    query: str
    t: int
    kind: Kind
    epsilon: Fraction | None
    cost: Fraction | None
    plan: PlanRecord | None
    secure: bool
    constant: bool
    steps: int = 1
    moment: int = NO_MOMENT

    def __init__(
        self,
        subject: str,
        query: str,
        t: int,
        kind: Kind,
        epsilon: Fraction | None,
        cost: Fraction | None,
        plan: PlanRecord | None,
        secure: bool,
        constant: bool,
        steps: int = 1,
        moment: int = NO_MOMENT,
    ) -> None:
        # All at once, in half the time that a frozen dataclass takes for one field after another.
        vars(self).update(
            subject=subject,
            query=query,
            t=t,
            kind=kind,
            epsilon=epsilon,
            cost=cost,
            plan=plan,
            secure=secure,
            constant=constant,
            steps=steps,
            moment=moment,
        )
        self._check()

    def of_step(self, subject: str, query: str, t: int, secure: bool, moment: int = NO_MOMENT) -> Request:
        """The same request for another step, without a second check; raises InvalidInput for ``t`` alone."""
        _check_step(t)
        request = object.__new__(Request)
        vars(request).update(vars(self), subject=subject, query=query, t=t, secure=secure, moment=moment)
        return request

    def under(self, plan: PlanRecord, cost: Fraction) -> Request:
        """The same release under another plan; raises InvalidInput for a wrong ``cost`` alone."""
        check_exact(cost, "cost")
        request = object.__new__(Request)
        vars(request).update(vars(self), plan=plan, cost=cost)
        return request

    @property
    def through(self) -> int:
        """The last step that it is about."""
        return self.t + self.steps - 1

    def _check(self) -> None:
        _check_step(self.t)
        if self.kind == "release":
            self._check_release()
        elif self.kind != "skip":
            raise InvalidInput("kind", self.kind, "release or skip")
        elif type(self.steps) is not int or self.steps < 1:
            raise InvalidInput("steps", self.steps, "a number of steps, 1 or more")
        elif not (self.epsilon is None and self.cost is None and self.plan is None):
            raise InvalidInput("kind", "a skip with epsilon, cost or plan", "a skip with none of them")

    def _check_release(self) -> None:
        if not isinstance(self.plan, PlanRecord):
            raise InvalidInput("plan", self.plan, "the plan of the release")
        if self.steps != 1:
            raise InvalidInput("steps", self.steps, "1: a release is of one step")
        check_exact(self.epsilon, "epsilon")
        if not (self.epsilon or self.constant):
            raise InvalidInput("epsilon", 0, "a number greater than 0")
        check_exact(self.cost, "cost")


def _check_step(t: int) -> None:
    if type(t) is not int or t < 1:
        raise InvalidInput("t", t, "a step number, counted from 1")


class Entry(NamedTuple):
    """One stored step, or one skip over several ``steps``. ``z`` is the released lattice answer, None for a skip."""

    subject: str
    query: str
    t: int
    kind: Kind
    z: tuple[int, ...] | None
    epsilon: Fraction | None
    cost: Fraction | None
    plan_hash: str | None
    secure: bool
    constant: bool
    steps: int = 1

    @property
    def through(self) -> int:
        """The last step that it is about."""
        return self.t + self.steps - 1


def check_text(value: object, field: str) -> None:
    """Refuse text that cannot be written as UTF-8."""
    if not isinstance(value, str):
        raise InvalidInput(field, value, "a string")
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, ascii(value), "text without lone surrogates") from None


def check_exact(value: object, field: str) -> None:
    """Refuse all but an exact number of at least 0 and of reasonable length."""
    if type(value) is not Fraction and (isinstance(value, bool) or not isinstance(value, (Fraction, int))):
        raise InvalidInput(field, value, "a Fraction")
    numerator, denominator = value.as_integer_ratio()
    if numerator < 0:
        raise InvalidInput(field, shown(Fraction(value)), "a number of at least 0")
    if max(numerator, denominator).bit_length() > RECORD_BITS:
        raise InvalidInput(field, "a very long fraction", f"numerator and denominator under 2**{RECORD_BITS}")


def lattice_answer(drawn: Iterable[int]) -> tuple[int, ...]:
    """The answer of a draw, as plain integers; a message about it never contains it."""
    try:
        answer = tuple(map(index, drawn))
    except TypeError:
        raise InvalidInput("draw", "something else", "a tuple of integers") from None
    if not answer or max(map(abs, answer)).bit_length() > ANSWER_BITS:
        raise InvalidInput("draw", "no coordinates or a huge one", f"integers under 2**{ANSWER_BITS}")
    return answer


#: Longest decimal that is told whole, and digits of all others.
_SHORT, _DIGITS = 12, 6


def shown(value: Loss) -> str:
    """A number for a message: a short exact decimal if there is one, else a fraction; or "unbounded"."""
    if isinstance(value, float):
        return "unbounded" if value == math.inf else repr(value)
    numerator, denominator = value.numerator, value.denominator
    places = 0
    while places < 30 and 10**places % denominator:
        places += 1
    if 10**places % denominator:
        text = f"{numerator}/{denominator}" if denominator.bit_length() < 100 else ""
    else:
        digits = str(abs(numerator) * (10**places // denominator)).zfill(places + 1)
        whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
        text = ("-" if numerator < 0 else "") + whole + ("." + part if part else "")
    if 0 < len(text) <= 60:
        return text
    return f"about {Decimal(numerator) / Decimal(denominator):.6g}"


def in_short(value: Loss | str, down: bool = False) -> str:
    """A number for people, or the text of one by `shown`: `shown` where that is a short decimal, else six digits.

    They are rounded up, as what is lost must be, or ``down``. Text that is no number stays as it is.
    """
    if value == math.inf:
        return shown(math.inf)
    try:
        exact = Fraction(value)
    except (ValueError, ZeroDivisionError):
        return str(value)
    text = shown(exact)
    if len(text) <= _SHORT and text.replace(".", "").isdigit():
        return text
    rounding = Context(prec=_DIGITS, rounding=ROUND_FLOOR if down else ROUND_CEILING)
    return f"{rounding.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize():f}"


#: A step and the epsilon of a release at it.
Spending: TypeAlias = tuple[int, Fraction]


@dataclass(frozen=True, eq=False)
class Requests:
    """Row i asks for step ``t[i]`` of ``subjects[subject[i]]`` under ``terms[term[i]]``; a skip passes ``steps[i]``.

    ``terms`` are requests whose subject, t and steps stand for nothing. The rows of a subject stand together, in the
    order of ``subjects``, each beginning where the one before it ended. ``moment`` (m,) is what the steps stand for, as
    in `Request`; None where no row has one. Raises InvalidInput where that is not so.
    """

    query: str
    subjects: Sequence[str]
    terms: Sequence[Request]
    subject: IntArray
    term: IntArray
    t: IntArray
    steps: IntArray
    moment: IntArray | None = None

    def __post_init__(self) -> None:
        columns = [self.subject, self.term, self.t, self.steps, *([] if self.moment is None else [self.moment])]
        if any(column.dtype != np.int64 or column.shape != self.t.shape or column.ndim != 1 for column in columns):
            raise InvalidInput("requests", "columns of other types or lengths", "integers (m,) in each")
        if len(set(self.subjects)) != len(self.subjects):
            raise InvalidInput("subject", "one name twice", "each subject once")
        if not len(self.t):
            return
        for column, names in ((self.subject, self.subjects), (self.term, self.terms)):
            if column.min() < 0 or column.max() >= len(names):
                raise InvalidInput("requests", "a number of no subject or term", "numbers of those given")
        if self.t.min() < 1:
            raise InvalidInput("t", int(self.t.min()), "a step number, counted from 1")
        if self.steps.min() < 1 or np.any(self.steps[self.releases] != 1):
            raise InvalidInput("steps", "less than 1, or a release of many", "1 for a release, 1 or more for a skip")
        moves, same = np.diff(self.subject), np.diff(self.subject) == 0
        if np.any(moves < 0) or np.any((self.t[1:] != self.t[:-1] + self.steps[:-1])[same]):
            raise InvalidInput("t", "steps out of order", "each subject's steps one after another")

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, row: int) -> Request:
        """One row as a request of its own."""
        term, subject = self.terms[self.term[row]], self.subjects[self.subject[row]]
        moment = NO_MOMENT if self.moment is None else int(self.moment[row])
        place = {"t": int(self.t[row]), "steps": int(self.steps[row]), "moment": moment}
        return Request(**{**vars(term), "subject": subject, "query": self.query, **place})

    @property
    def releases(self) -> BoolArray:
        """True where a row (m,) is a release."""
        kinds = np.array([term.kind == "release" for term in self.terms], dtype=np.bool_)
        return kinds[self.term] if len(kinds) else np.zeros(0, dtype=np.bool_)

    def epsilons(self, first: int, end: int) -> Iterator[Spending]:
        """(step, epsilon) of the releases among the rows first..end."""
        for number, t in zip(self.term[first:end].tolist(), self.t[first:end].tolist(), strict=True):
            epsilon = self.terms[number].epsilon
            if epsilon is not None:
                yield t, epsilon

    def parts(self) -> list[tuple[str, int, int]]:
        """(subject, first row, end row) of every subject that has rows."""
        starts = np.flatnonzero(np.diff(self.subject, prepend=-1)).tolist()
        ends = [*starts[1:], len(self)][: len(starts)]
        return [(self.subjects[self.subject[a]], a, b) for a, b in zip(starts, ends, strict=True)]


class StoredMany(NamedTuple):
    """``z`` (m, d) as the ledger holds them, zeros for skips; ``fresh`` and ``secure`` (m,): drawn now, and how."""

    z: IntArray
    fresh: BoolArray
    secure: BoolArray


def checked_answers(drawn: IntArray | None, rows: int) -> IntArray:
    """The answers (m, d) of a draw of many; a message about them never contains them."""
    answers = np.asarray(drawn)
    if answers.dtype != np.int64 or answers.ndim != 2 or len(answers) != rows or not answers.shape[1]:
        raise InvalidInput("draw", "something else", f"64-bit integers ({rows}, d)")
    return answers


def of_space(answer: tuple[int, ...], dimension: int) -> tuple[int, ...]:
    """A stored answer with so many coordinates. Raises InvalidInput for one of another space."""
    if len(answer) != dimension or max(map(abs, answer)).bit_length() > 63:
        raise InvalidInput("ledger", "an answer of another space", f"{dimension} coordinates of 64 bits")
    return answer


def stored_many(
    requests: Requests, fresh: BoolArray, wanted: IntArray, drawn: IntArray | None, stored: dict[int, Entry]
) -> StoredMany:
    """The answers drawn for the rows ``wanted``, and those ``stored`` before."""
    known = {row: entry.z for row, entry in stored.items() if entry.z is not None}
    dimension = drawn.shape[1] if drawn is not None else len(next(iter(known.values()), (0,)))
    z = np.zeros((len(requests), dimension), dtype=np.int64)
    secure = np.array([term.secure for term in requests.terms], dtype=np.bool_)[requests.term]
    if drawn is not None:
        z[wanted] = drawn
    for row, answer in known.items():
        z[row], secure[row] = of_space(answer, dimension), stored[row].secure
    return StoredMany(z, fresh, secure)
