"""Many subjects released together, where plans are public in advance (see `Course`).

Requests, caps, noise, ledger rows and beliefs are worked on as columns. The order of work is that of a session: what
refuses comes before the draw, the draw before the record, and nothing may be shown before the commit. Words: noise is
drawn plan by plan, in the order in which the rows (by subject and step) first need each, and row by row within one.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Caps, SessionHeader, Transaction
from dphmm.errors import DphmmError
from dphmm.samplers.entropy import is_secure
from dphmm.session.answer import answer
from dphmm.session.asking import Asked, Rows, Steps
from dphmm.session.course import Course
from dphmm.session.following import FlushedRow, Followed, Follower, Script
from dphmm.session.history import History
from dphmm.session.releases import Terms, terms_of
from dphmm.session.setting import Setting
from dphmm.session.step import Position
from dphmm.types import Bits, BoolArray, FloatArray, IntArray


@dataclass(eq=False)
class Member:
    """A subject: what the ledger held of it when it was first met, and how far it has come since.

    ``through`` is its last stored step, ``followed`` the last step that its belief has been moved past: to
    ``position``, by the steps ``passed`` since its first.
    """

    header: SessionHeader
    history: History | None = None
    through: int = 0
    followed: int = 0
    opened: bool = False
    position: Position | FlushedRow | None = None
    passed: list[Script] = field(default_factory=list)


class Part(NamedTuple):
    """Some rows (k,) of a member, by step; a state is -1 where the space has none such."""

    def __repr__(self) -> str:
        return f"Part({len(self.t)} rows)"

    member: Member
    t: IntArray
    states: IntArray


class Answered(NamedTuple):
    """What rows became: the ``rows`` (n,) of those given have a release, all others came too late."""

    rows: IntArray
    z: IntArray
    estimates: FloatArray
    states: IntArray
    secure: BoolArray
    fresh: BoolArray
    terms: tuple[Terms, ...]
    term: IntArray
    skipped: int
    drifted: int


@dataclass(eq=False)
class Crowd:
    """Members of one setting."""

    setting: Setting
    caps: Caps
    bits: Bits
    loss: str
    course: Course = field(init=False)
    _follower: Follower = field(init=False)

    def __post_init__(self) -> None:
        self.course = Course(self.setting)
        self._follower = Follower(self.setting.model, self.course, self.setting.space, self.loss)

    def continues(self, history: History) -> bool:
        """Whether a history is one that this course would have written."""
        released = history.skipped == 0
        numbers = self.course.numbers(history.t[released])
        pairs = np.unique(np.stack([numbers, history.plan[released]], axis=1), axis=0).tolist()
        return all(self.course.leg(number).plan.hash == history.hashes[plan] for number, plan in pairs)

    def release(self, transaction: Transaction, parts: Sequence[Part]) -> Answered:
        """Release rows of members one after another, in a transaction of the caller's.

        Only the first member may have been released before in this run, and only the last may go on.
        """
        for part in parts:
            if not part.member.opened:
                transaction.open_session(part.member.header)
                part.member.opened = True
        members = [part.member for part in parts]
        rows = Rows.of([p.t for p in parts], [p.states for p in parts], [member.through for member in members])
        names = [member.header.subject for member in members]
        asked = Asked.of(rows, names, self.setting.query, self.course, is_secure(self.bits))
        admitted = transaction.admit_many(asked.requests, self.caps)
        wanted = admitted.wanted
        numbers, plan_of = np.unique(asked.legs[wanted], return_inverse=True)
        plans = [self.course.leg(number).plan for number in numbers.tolist()]
        z, drifted = answer(plans, plan_of.reshape(-1), rows.states[asked.row[wanted]], self.bits)
        stored = transaction.add_many(admitted, z)
        before = [_before(part) for part in parts]
        steps = Steps.of(asked, stored, before, self.setting.space.dimension)
        followed = self._followed(steps, members[0], len(parts))
        _move_on(parts, steps, followed)
        skipped = int(asked.requests.steps[asked.skips].sum())
        return self._answered(rows, steps, followed, skipped, int(drifted.sum()))

    def _followed(self, steps: Steps, first: Member, parts: int) -> Followed:
        """The beliefs of all: the first goes on from where it is, and only the last may go on after this."""
        owners = steps.owner[np.flatnonzero(np.diff(steps.owner, prepend=-1))].tolist()
        starts = [first.position if owner == 0 else None for owner in owners]
        wanted = [owner == parts - 1 for owner in owners]
        return self._follower.follow(steps.script, starts, wanted, lambda _: self._follower.exact(first.passed))

    def _answered(self, rows: Rows, steps: Steps, followed: Followed, skipped: int, drifted: int) -> Answered:
        at = steps.find(rows)
        if np.any(rows.new & (at < 0)):
            raise DphmmError("release: a row that was stored now was not found again; nothing of this chunk is shown")
        found = np.flatnonzero(at >= 0)
        at = at[found]
        numbers, term = np.unique(self.course.numbers(rows.t[found]), return_inverse=True)
        return Answered(
            rows=found,
            z=steps.script.z[at],
            estimates=followed.estimates[at],
            states=followed.states[at],
            secure=steps.secure[at],
            fresh=steps.fresh[at],
            terms=tuple(terms_of(self.course.leg(number).plan) for number in numbers.tolist()),
            term=term.astype(np.int64),
            skipped=skipped,
            drifted=drifted,
        )


def _before(part: Part) -> History | None:
    """The stored steps that a part comes to, or passes."""
    history = part.member.history
    return None if history is None else history.between(part.member.followed, int(part.t[-1]))


def _move_on(parts: Sequence[Part], steps: Steps, followed: Followed) -> None:
    for part in parts:
        last = int(part.t[-1])
        part.member.through = max(part.member.through, last)
        part.member.followed = max(part.member.followed, last)
        if part is not parts[0]:
            part.member.position = None
    if len(steps.owner):
        at_end = int(steps.owner[-1]) == len(parts) - 1
        member, own = parts[-1].member, steps.owner == len(parts) - 1
        member.position = followed.ends[-1] if at_end else None
        member.passed.append(Script(*(column[own] for column in steps.script)))
