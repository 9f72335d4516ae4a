"""What a ledger is asked and what it keeps: frozen, public, checked when they are made.

Nothing here can hold a true state. The only number that depends on one is ``z``, the released answer itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Literal, NamedTuple, TypeAlias

from dphmm.errors import InvalidInput
from dphmm.types import Loss

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
            came = f"{len(self.plan_states)} bytes for {self.n_states} states"
            raise InvalidInput("plan", came, "one bit per state, packed")


@dataclass(frozen=True)
class Request:
    """What to store: a release of one step under a plan, or a skip, which costs and publishes nothing.

    ``t`` counts from 1; a skip may pass over several ``steps``, from ``t`` through ``through``. ``epsilon`` may be 0
    only for a constant. Raises InvalidInput naming the wrong field.
    """

    subject: str
    query: str
    t: int
    kind: Kind
    epsilon: Fraction | None
    cost: Loss | None
    plan: PlanRecord | None
    secure: bool
    constant: bool
    steps: int = 1

    def __init__(
        self,
        subject: str,
        query: str,
        t: int,
        kind: Kind,
        epsilon: Fraction | None,
        cost: Loss | None,
        plan: PlanRecord | None,
        secure: bool,
        constant: bool,
        steps: int = 1,
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
        )
        self._check()

    def of_step(self, subject: str, query: str, t: int, secure: bool) -> Request:
        """The same for another step. What was checked is not checked again; raises InvalidInput for ``t`` alone."""
        _check_step(t)
        request = object.__new__(Request)
        vars(request).update(vars(self), subject=subject, query=query, t=t, secure=secure)
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
        if not (isinstance(self.cost, float) and self.cost == math.inf):
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
    cost: Loss | None
    plan_hash: str | None
    secure: bool
    constant: bool
    steps: int = 1

    @property
    def through(self) -> int:
        """The last step that it is about."""
        return self.t + self.steps - 1


def check_text(value: object, field: str) -> None:
    """Refuse what cannot be written as UTF-8."""
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
    """What a draw returned, as plain integers; a message about it never contains it."""
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
    from decimal import Decimal

    return f"about {Decimal(numerator) / Decimal(denominator):.6g}"


def in_short(value: Loss | str, down: bool = False) -> str:
    """A number for people, or what `shown` made of one: `shown` where that is a short decimal, else six digits.

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
    from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

    rounding = Context(prec=_DIGITS, rounding=ROUND_FLOOR if down else ROUND_CEILING)
    return f"{rounding.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize():f}"
