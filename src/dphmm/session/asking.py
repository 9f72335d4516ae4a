"""Rows of many subjects as what a ledger is asked, and as the steps that their beliefs take.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Request, Requests, StoredMany
from dphmm.errors import InvalidInput
from dphmm.session.course import Course
from dphmm.session.following import Script
from dphmm.session.history import History
from dphmm.types import BoolArray, IntArray

#: Most steps that one skip may pass over: a belief is moved through each of them.
MOST_SKIPPED = 2**26


def check_gap(steps: int) -> None:
    """Refuse to skip so many steps."""
    if steps > MOST_SKIPPED:
        raise InvalidInput("t", f"a gap of {steps} steps", f"at most {MOST_SKIPPED} steps without a release")


class Rows(NamedTuple):
    """Rows (n,) by subject and step: whose, when, the true state (-1 for none), and whether the step is a new one.

    ``through`` is the last stored step of each subject.
    """

    def __repr__(self) -> str:
        return f"Rows({len(self.t)} of {len(self.through)} subjects)"

    owner: IntArray
    t: IntArray
    states: IntArray
    new: BoolArray
    through: IntArray

    @classmethod
    def of(cls, t: Sequence[IntArray], states: Sequence[IntArray], through: Sequence[int]) -> Rows:
        """The rows of subjects one after another."""
        owner = np.repeat(np.arange(len(t)), [len(steps) for steps in t])
        last = np.array(through, dtype=np.int64)
        return cls(owner, np.concatenate(t), np.concatenate(states), np.concatenate(t) > last[owner], last)


class Asked(NamedTuple):
    """A release for each new row, and before it a skip where steps lie between.

    Of every request: the ``row`` that it is for, whether it ``skips``, and the number of its leg (-1 for a skip).
    """

    requests: Requests
    row: IntArray
    skips: BoolArray
    legs: IntArray

    @classmethod
    def of(cls, rows: Rows, subjects: Sequence[str], query: str, course: Course, secure: bool) -> Asked:
        """The requests of rows. Raises what the planner raises."""
        new = np.flatnonzero(rows.new)
        owner, t = rows.owner[new], rows.t[new]
        before = np.where(np.diff(owner, prepend=-1) != 0, rows.through[owner], np.roll(t, 1))
        gap = t - before - 1
        check_gap(int(gap.max(initial=0)))
        place = np.repeat(np.arange(len(new)), 1 + (gap > 0))
        skips = np.zeros(len(place), dtype=np.bool_)
        skips[:-1] = place[1:] == place[:-1]
        legs = np.where(skips, -1, course.numbers(t)[place])
        numbers, term = np.unique(legs, return_inverse=True)
        skip = Request("", query, 1, "skip", None, None, None, secure, False)
        requests = Requests(
            query=query,
            subjects=subjects,
            terms=[skip if number < 0 else course.leg(number).request(secure) for number in numbers.tolist()],
            subject=owner[place],
            term=term.astype(np.int64),
            t=np.where(skips, before[place] + 1, t[place]),
            steps=np.where(skips, gap[place], 1),
        )
        return cls(requests, new[place], skips, legs)


class Steps(NamedTuple):
    """The steps of a script with whose they are, whether they were drawn now, and from secure bits."""

    script: Script
    owner: IntArray
    fresh: BoolArray
    secure: BoolArray

    @classmethod
    def of(cls, asked: Asked, stored: StoredMany, before: Sequence[History | None], dimension: int) -> Steps:
        """What was asked, after what each subject had ``before``."""
        known = [(number, history) for number, history in enumerate(before) if history is not None]
        z = stored.z if stored.z.shape[1] == dimension else np.zeros((len(asked.row), dimension), dtype=np.int64)
        owner = np.concatenate([asked.requests.subject, *(np.full(len(h.t), number) for number, h in known)])
        t = np.concatenate([asked.requests.t, *(h.t for _, h in known)])
        skipped = np.concatenate([np.where(asked.skips, asked.requests.steps, 0), *(h.skipped for _, h in known)])
        fresh = np.concatenate([stored.fresh, *(np.zeros(len(h.t), dtype=np.bool_) for _, h in known)])
        secure = np.concatenate([stored.secure, *(h.secure for _, h in known)])
        order = np.lexsort((t, owner)) if known else np.arange(len(t))
        script = Script(t[order] == 1, t[order], skipped[order], np.concatenate([z, *(h.z for _, h in known)])[order])
        return cls(script, owner[order], fresh[order], secure[order])

    def find(self, rows: Rows) -> IntArray:
        """Where each row's release is among the steps; -1 for a row that came too late."""
        released = np.flatnonzero(self.script.skipped == 0)
        if not len(released):
            return np.full(len(rows.t), -1, dtype=np.int64)
        # Ranks of steps, not steps: a key of owner and step would pass 64 bits for a step far away.
        steps, rank = np.unique(np.concatenate([self.script.t[released], rows.t]), return_inverse=True)
        keys = self.owner[released] * len(steps) + rank[: len(released)]
        wanted = rows.owner * len(steps) + rank[len(released) :]
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, released[place], -1)
