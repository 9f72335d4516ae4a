"""Published values: one release, and many rows as columns, which a batch gives back and tables are made of.

Only z, and values computed from z, depend on the true state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, overload
from weakref import WeakKeyDictionary

import numpy as np

from dphmm.session.plan import StepPlan
from dphmm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Release:
    """The published answer of one step.

    t : step, from 1. z (d,) : the released answer, in answer units; z_lattice (d,) : the same in lattice steps.
    For labels z is a name.
    epsilon : the promise of this release given the past. cost : the largest loss between any two plan states
    (Theorem 6.3).
    constant : the answer was a public constant. secure : False for any other bits than the system's.

    A step that was not asked has None for z and z_lattice, epsilon and cost 0 and no plan.
    """

    t: int
    z: Any
    z_lattice: IntArray | None
    epsilon: Fraction
    cost: Fraction
    plan_hash: str
    mechanism: str
    constant: bool
    secure: bool

    def __init__(
        self,
        t: int,
        z: Any,
        z_lattice: IntArray | None,
        epsilon: Fraction,
        cost: Fraction,
        plan_hash: str,
        mechanism: str,
        constant: bool,
        secure: bool,
    ) -> None:
        # All at once, in half the time that a frozen dataclass takes for one field after another.
        vars(self).update(
            t=t,
            z=z,
            z_lattice=z_lattice,
            epsilon=epsilon,
            cost=cost,
            plan_hash=plan_hash,
            mechanism=mechanism,
            constant=constant,
            secure=secure,
        )

    @property
    def asked(self) -> bool:
        """True if an answer was published; a schedule leaves other steps out."""
        return self.z is not None


class ReleasedRow(NamedTuple):
    """One published row: its user, its time (microseconds since 1970 UTC; None without times), and the release."""

    user: str
    time: int | None
    release: Release


class ReleaseTerms(NamedTuple):
    """The values that all releases of one plan share."""

    epsilon: Fraction
    cost: Fraction
    plan_hash: str
    mechanism: str
    constant: bool

    def __hash__(self) -> int:
        # A plan's terms are its own; to hash two fractions as well takes many times longer.
        return hash(self.plan_hash)

    @classmethod
    def of_release(cls, release: Release) -> ReleaseTerms:
        """The terms that a release tells."""
        return cls(release.epsilon, release.cost, release.plan_hash, release.mechanism, release.constant)


#: What a row has that was not asked.
NOT_ASKED = ReleaseTerms(Fraction(0), Fraction(0), "", "", False)

_TERMS: WeakKeyDictionary[StepPlan, ReleaseTerms] = WeakKeyDictionary()


def terms_of(plan: StepPlan) -> ReleaseTerms:
    """The terms of a plan, put together once."""
    if plan not in _TERMS:
        _TERMS[plan] = ReleaseTerms(plan.promised, plan.cost, plan.hash, plan.mechanism_name, plan.constant)
    return _TERMS[plan]


#: The columns of releases that are arrays.
_COLUMNS = ("times", "t", "z", "z_lattice", "secure", "term")


@dataclass(frozen=True, eq=False)
class Releases(Sequence[ReleasedRow]):
    """Published rows (n,) in order of user and step, column by column; row i is under ``terms[term[i]]``.

    ``users`` (n,), ``times`` (n,) or None, ``t`` (n,), ``z`` and ``z_lattice`` (n, d), ``secure`` (n,). A row that was
    not asked has the terms `NOT_ASKED`, and 0 as z. With ``labels``, the names of all states, z is a number here.
    As a sequence it gives each row as `ReleasedRow`.
    """

    users: list[str]
    times: IntArray | None
    t: IntArray
    z: FloatArray
    z_lattice: IntArray
    secure: BoolArray
    terms: tuple[ReleaseTerms, ...]
    term: IntArray
    labels: tuple[str, ...] | None = None

    @classmethod
    def of(cls, rows: Sequence[ReleasedRow]) -> Releases:
        """The columns of rows."""
        if isinstance(rows, Releases):
            return rows
        releases = [row.release for row in rows]
        terms = {ReleaseTerms.of_release(release): None for release in releases}
        numbers = {term: number for number, term in enumerate(terms)}
        timed = bool(rows) and rows[0].time is not None
        # The name of a label is made again from the number of its state.
        points = [release.z_lattice if isinstance(release.z, str) else release.z for release in releases]
        return cls(
            users=[row.user for row in rows],
            times=np.array([row.time for row in rows], dtype=np.int64) if timed else None,
            t=np.array([release.t for release in releases], dtype=np.int64),
            z=_points(points, float),
            z_lattice=_points([release.z_lattice for release in releases], np.int64),
            secure=np.array([release.secure for release in releases], dtype=np.bool_),
            terms=tuple(terms),
            term=np.array([numbers[ReleaseTerms.of_release(release)] for release in releases], dtype=np.int64),
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
            secure=np.concatenate([part.secure for part in some]),
            terms=tuple(terms),
            term=np.concatenate(renumbered),
            labels=some[0].labels,
        )

    def taken(self, rows: BoolArray) -> Releases:
        """Some of the rows, which ``rows`` (n,) marks, in their order."""
        if rows.all():
            return self
        return replace(
            self,
            users=[user for user, keep in zip(self.users, rows.tolist(), strict=True) if keep],
            **{name: column[rows] for name in _COLUMNS if (column := getattr(self, name)) is not None},
        )

    @property
    def asked(self) -> BoolArray:
        """A mask (n,) of the rows that have an answer."""
        return np.array([bool(term.plan_hash) for term in self.terms], dtype=np.bool_)[self.term]

    def __len__(self) -> int:
        return len(self.users)

    @overload
    def __getitem__(self, row: int) -> ReleasedRow: ...
    @overload
    def __getitem__(self, row: slice) -> list[ReleasedRow]: ...
    def __getitem__(self, row: int | slice) -> ReleasedRow | list[ReleasedRow]:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        user = self.users[row]
        terms = self.terms[self.term[row]]
        asked = terms != NOT_ASKED
        z = self.z[row] if self.labels is None else self.labels[int(self.z[row][0])]
        release = Release(
            t=int(self.t[row]),
            z=z if asked else None,
            z_lattice=self.z_lattice[row] if asked else None,
            epsilon=terms.epsilon,
            cost=terms.cost,
            plan_hash=terms.plan_hash,
            mechanism=terms.mechanism,
            constant=terms.constant,
            secure=bool(self.secure[row]),
        )
        return ReleasedRow(user, None if self.times is None else int(self.times[row]), release)

    def __iter__(self) -> Iterator[ReleasedRow]:
        return (self[row] for row in range(len(self)))


def _points(values: Sequence[Any], dtype: Any) -> Any:
    """Answers (n, d), 0 for one that there is not; d is 1 where there is none."""
    size = next((len(value) for value in values if value is not None), 1)
    return np.array([np.zeros(size) if value is None else value for value in values], dtype=dtype).reshape(-1, size)
