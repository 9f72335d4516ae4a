"""Records as rows and back: exact numbers as text, plan sets compressed."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dphmm._checks import written_fraction
from dphmm.accounting.budget import Account
from dphmm.accounting.ledger import Entry, PlanRecord, Request
from dphmm.accounting.many import Requests
from dphmm.storage.ledger.faults import damaged
from dphmm.types import IntArray, Loss

Row: TypeAlias = tuple[Any, ...]
#: What reading a row of wrong content raises; the content itself is in no message.
_UNREADABLE = (ValueError, TypeError, AttributeError, ZeroDivisionError, RecursionError)


def number_text(value: Loss | None) -> str | None:
    """An exact number as text: ``3``, ``1/3`` or ``inf``."""
    if value is None:
        return None
    return "inf" if isinstance(value, float) else str(value)


@lru_cache(maxsize=4096)
def number_of(text: str) -> Fraction:
    """The exact finite number of its text."""
    return written_fraction(text)


def loss_of(text: str) -> Loss:
    """The exact number of its text, which may be infinite."""
    return math.inf if text == "inf" else number_of(text)


def release_row(session: int, request: Request, z: tuple[int, ...] | None, plan: int | None) -> Row:
    """The row (session, t, through, kind, z, epsilon, cost, plan, secure, constant)."""
    return (
        session,
        request.t,
        request.through,
        request.kind,
        None if z is None else ",".join(map(str, z)),
        number_text(request.epsilon),
        number_text(request.cost),
        plan,
        int(bool(request.secure)),
        int(bool(request.constant)),
    )


def release_rows(
    requests: Requests, rows: IntArray, sessions: IntArray, plans: Mapping[int, int], answers: Sequence[str | None]
) -> list[Row]:
    """`release_row` of many rows; ``sessions`` by subject, ``plans`` by term, ``answers`` as text, one for each row."""
    terms, number = requests.terms, requests.term[rows]
    t = requests.t[rows]
    columns = (
        sessions[requests.subject[rows]].tolist(),
        t.tolist(),
        (t + requests.steps[rows] - 1).tolist(),
        _of_each([term.kind for term in terms], number),
        answers,
        _of_each([number_text(term.epsilon) for term in terms], number),
        _of_each([number_text(term.cost) for term in terms], number),
        _of_each([plans.get(place) for place in range(len(terms))], number),
        _of_each([int(term.secure) for term in terms], number),
        _of_each([int(term.constant) for term in terms], number),
    )
    return list(zip(*columns, strict=True))


def _of_each(values: Sequence[Any], numbers: IntArray) -> list[Any]:
    column: list[Any] = np.array(values, dtype=np.object_)[numbers].tolist()
    return column


def answer_texts(z: IntArray) -> list[str]:
    """The text of each of many answers (k, d)."""
    template = ",".join(["%d"] * z.shape[1])
    return list(map(template.__mod__, zip(*z.T.tolist(), strict=True)))


def entry_from(subject: str, query: str, row: Row, plan_hash: str | None) -> Entry:
    """The entry of (t, through, kind, z, epsilon, cost, secure, constant)."""
    t, through, kind, z, epsilon, cost, secure, constant = row
    try:
        return Entry(
            subject,
            query,
            t,
            kind,
            None if z is None else tuple(map(int, z.split(","))),
            None if epsilon is None else number_of(epsilon),
            None if cost is None else loss_of(cost),
            plan_hash,
            bool(secure),
            bool(constant),
            through - t + 1,
        )
    except _UNREADABLE:
        raise damaged() from None


def account_row(subject: str, account: Account) -> Row:
    """The row (subject, epsilon, cost_nanos, unbounded)."""
    return subject, str(account.epsilon), str(account.nanos), int(account.unbounded)


def account_from(row: Row) -> Account:
    """The account of (epsilon, cost_nanos, unbounded)."""
    epsilon, nanos, unbounded = row
    try:
        return Account(written_fraction(epsilon), int(nanos), bool(unbounded))
    except _UNREADABLE:
        raise damaged() from None


def options_from(text: str) -> dict[str, str]:
    """The options of a session row."""
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except _UNREADABLE:
        raise damaged() from None


def plan_row(plan: PlanRecord) -> Row:
    """The row (hash, n_states, states, description)."""
    return plan.hash, plan.n_states, zlib.compress(plan.plan_states, level=1), plan.description


def plan_from(row: Row) -> PlanRecord:
    """The plan of (hash, n_states, states, description); a damaged plan set is refused, and cannot grow."""
    plan_hash, n_states, packed, description = row
    try:
        size = (n_states + 7) // 8
        states = zlib.decompressobj().decompress(packed, size + 1)
    except (zlib.error, *_UNREADABLE):
        size, states = -1, b""
    if len(states) != size:
        raise damaged(what=f"a damaged plan {plan_hash}")
    return PlanRecord(plan_hash, states, n_states, description)
