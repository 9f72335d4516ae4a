"""Rows of many subjects as requests: a release for each new row, and before it a skip where steps lie between.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dphmm import _kernels
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    from dphmm.session.options import StepChoice

#: Most steps that one skip may pass over: a belief is moved through each of them.
MOST_SKIPPED = 2**26

#: The columns of one request for the next step.
_ONE_STEP, FIRST_ROW = np.ones(1, np.int64), np.zeros(1, np.int64)
ONE_ASKED, _NO_SKIP = np.ones(1, np.bool_), np.zeros(1, np.bool_)
for _column in (_ONE_STEP, FIRST_ROW, ONE_ASKED, _NO_SKIP):
    _column.setflags(write=False)


def alike(value: bool, n: int) -> BoolArray:
    """A column (n,) of one value, not to be written to."""
    if n == 1:
        return ONE_ASKED if value else _NO_SKIP
    return np.full(n, value)


def check_gap(steps: int) -> None:
    """Refuse to skip so many steps."""
    if steps > MOST_SKIPPED:
        raise InvalidInput("t", f"a gap of {steps} steps", f"at most {MOST_SKIPPED} steps without a release")


class Rows(NamedTuple):
    """Rows (n,) by subject and step: the number of the subject, the step, and whether a schedule lets it be asked.

    ``choices`` (n,) are what was chosen for single steps; None where nothing may be. No true state is among them.
    """

    owner: IntArray
    t: IntArray
    asked: BoolArray
    choices: Sequence[StepChoice | None] | None = None

    def take(self, row: IntArray) -> Rows:
        """Some of the rows."""
        choices = None if self.choices is None else [self.choices[place] for place in row.tolist()]
        return Rows(self.owner[row], self.t[row], self.asked[row], choices)


class Layout(NamedTuple):
    """Requests (m,): whose, the first step, how many steps, the row that it is for, whether it skips.

    ``tells`` : it is of the row's own step; false for a skip ahead of a row, and for one without a row. ``choices`` are
    those of the rows.
    """

    owner: IntArray
    t: IntArray
    steps: IntArray
    row: IntArray
    skips: BoolArray
    tells: BoolArray
    choices: Sequence[StepChoice | None] | None = None

    def choice(self, row: int) -> StepChoice | None:
        """What was chosen for a row."""
        return None if self.choices is None else self.choices[row]

    @classmethod
    def of(cls, rows: Rows, last: IntArray) -> Layout:
        """The requests of the rows after the ``last`` step of each subject.

        Raises InvalidInput for rows out of order, and for a gap of too many steps.
        """
        n = len(rows.t)
        if n == 1 and rows.t.item() == last.item(rows.owner.item()) + 1:
            # The next step of one subject: what nearly every release of a session is.
            return cls(rows.owner, rows.t, _ONE_STEP, FIRST_ROW, _NO_SKIP if rows.asked[0] else ONE_ASKED, ONE_ASKED)
        requests = np.empty((6, 2 * n), dtype=np.int64)
        count = _kernels.rows.lay_out(rows.owner, rows.t, rows.asked, last, MOST_SKIPPED, requests)
        if count < -n:
            check_gap(int(rows.t[-1 - n - count] - _before(rows, last, -1 - n - count) - 1))
        if count < 0:
            raise InvalidInput("rows", f"row {-1 - count} out of order", "rows by subject and step, each step once")
        owner, t, steps, row, skips, tells = requests[:, :count]
        return cls(owner, t, steps, row, skips.astype(np.bool_), tells.astype(np.bool_))


def _before(rows: Rows, last: IntArray, row: int) -> int:
    """The last step before a row."""
    before = int(last[rows.owner[row]])
    same = row > 0 and rows.owner[row] == rows.owner[row - 1]
    return max(before, int(rows.t[row - 1])) if same else before
