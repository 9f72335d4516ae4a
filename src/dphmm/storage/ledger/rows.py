"""Records as rows and back: exact numbers as text, plan sets compressed."""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dphmm._checks import written_fraction
from dphmm.accounting.budget import UNLIMITED, Account, Caps, Group, Horizon
from dphmm.accounting.ledger import Entry, Kind, PlanRecord, Request
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.publication import Publication, Published
from dphmm.accounting.records import Requests
from dphmm.errors import InvalidInput
from dphmm.storage.ledger.connection import damaged
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


def digest_of(text: str | bytes) -> bytes:
    """What a document or a snapshot is found or checked by: the first 16 bytes of its SHA-256."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).digest()[:16]


def terms_row(request: Request) -> Row:
    """The row (kind, epsilon, cost, secure, constant): what many releases share."""
    numbers = number_text(request.epsilon), number_text(request.cost)
    return request.kind, *numbers, int(bool(request.secure)), int(bool(request.constant))


def release_row(session: int, request: Request, z: tuple[int, ...] | None, plan: int | None, terms: int) -> Row:
    """The row (session, t, steps, z, plan, terms)."""
    return session, request.t, request.steps, None if z is None else ",".join(map(str, z)), plan, terms


def release_rows(
    requests: Requests,
    rows: IntArray,
    sessions: IntArray,
    plans: Mapping[int, int],
    terms: Mapping[int, int],
    answers: Sequence[str | None],
) -> list[Row]:
    """`release_row` of many rows: ``sessions`` by subject, ``plans`` and ``terms`` by term, ``answers`` one a row."""
    number, count = requests.term[rows], len(requests.terms)
    columns = (
        sessions[requests.subject[rows]].tolist(),
        requests.t[rows].tolist(),
        requests.steps[rows].tolist(),
        answers,
        _of_each([plans.get(place) for place in range(count)], number),
        _of_each([terms.get(place) for place in range(count)], number),
    )
    return list(zip(*columns, strict=True))


def _of_each(values: Sequence[Any], numbers: IntArray) -> list[Any]:
    column: list[Any] = np.array(values, dtype=np.object_)[numbers].tolist()
    return column


def answer_texts(z: IntArray) -> list[str]:
    """The text of each of many answers (k, d)."""
    template = ",".join(["%d"] * z.shape[1])
    return list(map(template.__mod__, zip(*z.T.tolist(), strict=True)))


def entry_from(subject: str, query: str, row: Row) -> Entry:
    """The entry of (t, steps, kind, z, epsilon, cost, secure, constant, hash)."""
    t, steps, kind, z, *terms = row
    if type(t) is not int or type(steps) is not int:
        raise damaged()
    try:
        shared = _terms_of(kind, z is None, *terms)
        answer = None if z is None else tuple(map(int, z.split(",")))
    except _UNREADABLE:
        raise damaged() from None
    return Entry(subject, query, t, kind, answer, *shared, steps)


@lru_cache(maxsize=4096)
def _terms_of(
    kind: Kind, skips: bool, epsilon: str | None, cost: str | None, secure: int, constant: int, plan: str | bytes | None
) -> tuple[Fraction | None, Loss | None, str | None, bool, bool]:
    """Epsilon, cost, hash, secure and constant of an entry: what many entries share. Damaged ones are refused."""
    nothing = [value is None for value in (epsilon, cost, plan)]
    if kind not in ("release", "skip") or [skips, *nothing] != [kind == "skip"] * 4:
        raise damaged()
    if epsilon is None or cost is None or plan is None:
        return None, None, None, bool(secure), bool(constant)
    return number_of(epsilon), loss_of(cost), hash_text(plan), bool(secure), bool(constant)


def account_row(account: Account) -> Row:
    """The row (epsilon, cost_nanos, unbounded)."""
    return str(account.epsilon), str(account.nanos), int(account.unbounded)


def account_from(row: Row) -> Account:
    """The account of (epsilon, cost_nanos, unbounded)."""
    epsilon, nanos, unbounded = row
    try:
        return Account(written_fraction(epsilon), int(nanos), bool(unbounded))
    except _UNREADABLE:
        raise damaged() from None


@lru_cache(maxsize=64)
def caps_from(epsilon: str | None, cost: str | None, promise: str | None, horizon: str | None = None) -> Caps:
    """The caps, the promise and the horizon of an account."""
    if epsilon is cost is promise is horizon is None:
        return UNLIMITED
    try:
        return Caps(
            None if epsilon is None else written_fraction(epsilon),
            None if cost is None else written_fraction(cost),
            None if promise is None else SequencePromise.read(promise),
            None if horizon is None else Horizon.read(horizon),
        )
    except (InvalidInput, *_UNREADABLE):
        raise damaged() from None


def publication_row(published: Published) -> Row:
    """The row of the table of publications; the result begins with its digest."""
    one = published.publication
    return (
        one.name,
        0,
        published.version,
        one.kind,
        one.unit,
        one.units,
        one.relation,
        int(one.counts),
        one.loss,
        number_text(one.epsilon),
        number_text(one.rho),
        number_text(one.delta),
        published.time,
        one.statement,
        digest_of(published.result) + published.result,
    )


def publication_from(row: Row) -> Publication:
    """The publication of (name, kind, statement, unit, relation, units, epsilon, rho, delta, counts)."""
    name, kind, statement, unit, relation, units, *losses, counts = row
    try:
        epsilon, rho, delta = (None if loss is None else number_of(loss) for loss in losses)
        return Publication(name, kind, statement, unit, relation, units, epsilon, rho, delta, bool(counts))
    except (InvalidInput, *_UNREADABLE):
        raise damaged(what="a damaged publication") from None


def published_from(row: Row) -> Published:
    """The publication with its place, its time and its result, which must be that of its digest."""
    *described, version, time, result = row
    if type(version) is not int or type(result) is not bytes or digest_of(result[16:]) != result[:16]:
        raise damaged(what="a damaged publication")
    return Published(publication_from(tuple(described)), version, str(time), result[16:])


def fact_from(text: str) -> Fraction:
    """An exact number that holds of all publications."""
    try:
        return written_fraction(text)
    except _UNREADABLE:
        raise damaged() from None


def groups_from(rows: Iterable[Row]) -> list[Group]:
    """Groups of (name, cap, member), by name."""
    members: dict[tuple[str, str], list[str]] = {}
    for name, cap, member in rows:
        members.setdefault((name, cap), []).append(member)
    try:
        return [Group(name, number_of(cap), tuple(found)) for (name, cap), found in sorted(members.items())]
    except (InvalidInput, *_UNREADABLE):
        raise damaged(what="a damaged group") from None


def options_from(text: str) -> dict[str, str]:
    """The options of a session row."""
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except _UNREADABLE:
        raise damaged() from None


_SHA256 = re.compile("[0-9a-f]{64}")


def hash_stored(plan_hash: str) -> str | bytes:
    """A plan's hash as it is stored: the 32 bytes of a SHA-256, any other text as it is."""
    return bytes.fromhex(plan_hash) if _SHA256.fullmatch(plan_hash) else plan_hash


def hash_text(stored: str | bytes) -> str:
    """The hash of what `hash_stored` gave."""
    return stored.hex() if isinstance(stored, bytes) else str(stored)


def plan_row(plan: PlanRecord, document: int) -> Row:
    """The row (hash, n_states, states, description)."""
    return hash_stored(plan.hash), plan.n_states, zlib.compress(plan.plan_states, level=1), document


def plan_from(row: Row) -> PlanRecord:
    """The plan of (hash, n_states, states, description); a damaged plan set is refused, and cannot grow."""
    plan_hash, n_states, packed, description = row
    try:
        size = (n_states + 7) // 8
        states = zlib.decompressobj().decompress(packed, size + 1)
    except (zlib.error, *_UNREADABLE):
        size, states = -1, b""
    if len(states) != size:
        raise damaged(what=f"a damaged plan {hash_text(plan_hash)}")
    return PlanRecord(hash_text(plan_hash), states, n_states, description)
