"""What is published: one release, and many rows as columns, which a batch gives back and tables are made of.

Nothing in it depends on the true state but z and what is computed from z.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, overload
from weakref import WeakKeyDictionary

import numpy as np

from dphmm.accounting.budget import EMPTY, Account
from dphmm.accounting.records import Entry
from dphmm.session.plan import Plan
from dphmm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Release:
    """The published answer of one step.

    t : step, from 1. z (d,) : the released answer, in answer units; z_lattice (d,) : the same in lattice steps.
    estimate (d,), estimate_state : what the public belief makes of all releases so far, None where nobody asked for
    estimates. Of labels z and estimate are names, and ``confidence`` is how likely the estimate is.
    epsilon : the promise of this release given the past. cost : the largest loss between any two plan states
    (Theorem 6.3).
    constant : the answer was a public constant. secure : False for any other bits than the system's.

    A step that was not asked has None for z and z_lattice, epsilon and cost 0 and no plan.
    """

    t: int
    z: Any
    z_lattice: IntArray | None
    estimate: Any
    estimate_state: int | None
    epsilon: Fraction
    cost: Fraction
    plan_hash: str
    mechanism: str
    constant: bool
    secure: bool
    confidence: float | None = None

    def __init__(
        self,
        t: int,
        z: Any,
        z_lattice: IntArray | None,
        estimate: Any,
        estimate_state: int | None,
        epsilon: Fraction,
        cost: Fraction,
        plan_hash: str,
        mechanism: str,
        constant: bool,
        secure: bool,
        confidence: float | None = None,
    ) -> None:
        # All at once, in half the time that a frozen dataclass takes for one field after another.
        vars(self).update(
            t=t,
            z=z,
            z_lattice=z_lattice,
            estimate=estimate,
            estimate_state=estimate_state,
            epsilon=epsilon,
            cost=cost,
            plan_hash=plan_hash,
            mechanism=mechanism,
            constant=constant,
            secure=secure,
            confidence=confidence,
        )

    @property
    def asked(self) -> bool:
        """Whether an answer was published; a schedule leaves other steps out."""
        return self.z is not None


class Released(NamedTuple):
    """One published row: whose, when (microseconds since 1970 UTC; None without times), and the release."""

    user: str
    time: int | None
    release: Release


class Terms(NamedTuple):
    """What the releases of one plan have in common."""

    epsilon: Fraction
    cost: Fraction
    plan_hash: str
    mechanism: str
    constant: bool

    def __hash__(self) -> int:
        # A plan's terms are its own; to hash two fractions as well takes many times longer.
        return hash(self.plan_hash)

    @classmethod
    def of_release(cls, release: Release) -> Terms:
        """The terms that a release tells."""
        return cls(release.epsilon, release.cost, release.plan_hash, release.mechanism, release.constant)


#: What a row has that was not asked.
NOT_ASKED = Terms(Fraction(0), Fraction(0), "", "", False)

_TERMS: WeakKeyDictionary[Plan, Terms] = WeakKeyDictionary()


def terms_of(plan: Plan) -> Terms:
    """The terms of a plan, put together once."""
    if plan not in _TERMS:
        _TERMS[plan] = Terms(plan.promised, plan.cost, plan.hash, plan.mechanism_name, plan.constant)
    return _TERMS[plan]


#: The columns of releases that are arrays.
_COLUMNS = ("times", "t", "z", "z_lattice", "estimate", "estimate_state", "secure", "term", "confidence")


@dataclass(frozen=True, eq=False)
class Releases(Sequence[Released]):
    """Published rows (n,) in order of user and step, column by column; row i is under ``terms[term[i]]``.

    ``users`` (n,), ``times`` (n,) or None, ``t`` (n,), ``z``, ``z_lattice`` and ``estimate`` (n, d),
    ``estimate_state`` and ``secure`` (n,); estimates are None where nobody asked for them. A row that was not asked has
    the terms `NOT_ASKED`, and 0 as z. Of ``labels``, the names of all states, z and estimate are numbers here, and
    ``confidence`` (n,) is how likely each estimate is.
    As a sequence it gives each row as `Released`.
    """

    users: list[str]
    times: IntArray | None
    t: IntArray
    z: FloatArray
    z_lattice: IntArray
    estimate: FloatArray | None
    estimate_state: IntArray | None
    secure: BoolArray
    terms: tuple[Terms, ...]
    term: IntArray
    labels: tuple[str, ...] | None = None
    confidence: FloatArray | None = None

    @classmethod
    def of(cls, rows: Sequence[Released]) -> Releases:
        """The columns of rows."""
        if isinstance(rows, Releases):
            return rows
        releases = [row.release for row in rows]
        terms = {Terms.of_release(release): None for release in releases}
        numbers = {term: number for number, term in enumerate(terms)}
        timed = bool(rows) and rows[0].time is not None
        estimated = all(release.estimate is not None for release in releases)
        named = _named(releases)
        if named is not None:
            # Of labels every column but the names is made again from the numbers of states.
            releases = [_numbered(release) for release in releases]
        return cls(
            users=[row.user for row in rows],
            times=np.array([row.time for row in rows], dtype=np.int64) if timed else None,
            t=np.array([release.t for release in releases], dtype=np.int64),
            z=_points([release.z for release in releases], float),
            z_lattice=_points([release.z_lattice for release in releases], np.int64),
            estimate=np.array([release.estimate for release in releases]) if estimated else None,
            estimate_state=(
                np.array([release.estimate_state for release in releases], dtype=np.int64) if estimated else None
            ),
            secure=np.array([release.secure for release in releases], dtype=np.bool_),
            terms=tuple(terms),
            term=np.array([numbers[Terms.of_release(release)] for release in releases], dtype=np.int64),
            confidence=np.array(named, dtype=np.float64) if named is not None and estimated else None,
        )

    @classmethod
    def joined(cls, parts: Iterable[Releases]) -> Releases | None:
        """The rows of several, one after another; None where there are none."""
        some = [part for part in parts if len(part)]
        if len(some) < 2:
            return some[0] if some else None
        terms = {term: None for part in some for term in part.terms}
        numbers = {term: number for number, term in enumerate(terms)}
        renumbered = [np.array([numbers[term] for term in part.terms], dtype=np.int64)[part.term] for part in some]
        times = [part.times for part in some if part.times is not None]
        return cls(
            users=[user for part in some for user in part.users],
            times=np.concatenate(times) if times else None,
            t=np.concatenate([part.t for part in some]),
            z=np.concatenate([part.z for part in some]),
            z_lattice=np.concatenate([part.z_lattice for part in some]),
            estimate=_joined([part.estimate for part in some]),
            estimate_state=_joined([part.estimate_state for part in some]),
            secure=np.concatenate([part.secure for part in some]),
            terms=tuple(terms),
            term=np.concatenate(renumbered),
            labels=some[0].labels,
            confidence=_joined([part.confidence for part in some]),
        )

    def taken(self, rows: BoolArray) -> Releases:
        """Some of the rows, which ``rows`` (n,) marks, in their order."""
        if rows.all():
            return self
        return replace(
            self,
            users=[user for user, kept in zip(self.users, rows.tolist(), strict=True) if kept],
            **{name: own[rows] for name in _COLUMNS if (own := getattr(self, name)) is not None},
        )

    @property
    def asked(self) -> BoolArray:
        """Which rows (n,) have an answer."""
        return np.array([bool(term.plan_hash) for term in self.terms], dtype=np.bool_)[self.term]

    def __len__(self) -> int:
        return len(self.users)

    @overload
    def __getitem__(self, row: int) -> Released: ...
    @overload
    def __getitem__(self, row: slice) -> list[Released]: ...
    def __getitem__(self, row: int | slice) -> Released | list[Released]:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        user = self.users[row]
        terms = self.terms[self.term[row]]
        asked = terms != NOT_ASKED
        z, estimate = self.z[row], None if self.estimate is None else self.estimate[row]
        if self.labels is not None:
            z, estimate = (None if number is None else self.labels[int(number[0])] for number in (z, estimate))
        release = Release(
            t=int(self.t[row]),
            z=z if asked else None,
            z_lattice=self.z_lattice[row] if asked else None,
            estimate=estimate,
            estimate_state=None if self.estimate_state is None else int(self.estimate_state[row]),
            epsilon=terms.epsilon,
            cost=terms.cost,
            plan_hash=terms.plan_hash,
            mechanism=terms.mechanism,
            constant=terms.constant,
            secure=bool(self.secure[row]),
            confidence=None if self.confidence is None else float(self.confidence[row]),
        )
        return Released(user, None if self.times is None else int(self.times[row]), release)

    def __iter__(self) -> Iterator[Released]:
        return (self[row] for row in range(len(self)))


def _named(releases: Sequence[Release]) -> list[float | None] | None:
    """The confidence of each release; None where answers are numbers."""
    named = any(isinstance(text, str) for release in releases for text in (release.z, release.estimate))
    return [release.confidence for release in releases] if named else None


def _numbered(release: Release) -> Release:
    """A release of a label, with numbers of states in place of names."""
    estimate = None if release.estimate_state is None else np.array([float(release.estimate_state)])
    return replace(release, z=release.z_lattice, estimate=estimate)


def _points(values: Sequence[Any], dtype: Any) -> Any:
    """Answers (n, d), 0 for one that there is not; d is 1 where there is none."""
    size = next((len(value) for value in values if value is not None), 1)
    return np.array([np.zeros(size) if value is None else value for value in values], dtype=dtype).reshape(-1, size)


def _joined(parts: Sequence[Any]) -> Any:
    """The rows of columns, one after another; None where one of them is."""
    return None if any(part is None for part in parts) else np.concatenate(parts)


class Earlier:
    """Answers that estimates in a file follow from and that are no rows of it: those that other files have.

    ``answers`` : how many. ``accounts`` : what each user spent on them.
    """

    def __init__(self) -> None:
        self.answers = 0
        self.accounts: dict[str, Account] = {}

    def add(self, user: str, entries: Iterable[Entry], shown: Collection[int]) -> None:
        """Count a user's stored answers before the last of the steps that are ``shown``, without these steps."""
        last = max(shown, default=0)
        for entry in entries:
            if entry.z is not None and entry.t < last and entry.t not in shown:
                self.answers += 1
                self.accounts[user] = self.accounts.get(user, EMPTY).plus_times(entry.epsilon, entry.cost, 1)
