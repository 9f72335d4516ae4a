"""From rows by subject and step to what a ledger is asked for."""

from __future__ import annotations

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, IntArray


@kernel
def lay_out(owner: IntArray, t: IntArray, asked: BoolArray, last: IntArray, most: int, requests: IntArray) -> int:
    """Fill ``requests`` (6, 2n) with a release for each row (n,) after its subject's last step, and a skip before it.

    A row that is not ``asked`` has a skip of its own step instead of a release. A request is: owner, first step, number
    of steps, row, 1 for a skip, 1 if it is of the row's step. Returns how many there are; -1 - row for a row out of
    order, -1 - n - row for one more than ``most`` steps after the one before it.
    """
    count, n = 0, len(t)
    for row in range(n):
        if row > 0 and (owner[row] < owner[row - 1] or (owner[row] == owner[row - 1] and t[row] <= t[row - 1])):
            return -1 - row
        before = last[owner[row]]
        if t[row] <= before:
            continue
        if row > 0 and owner[row] == owner[row - 1]:
            before = max(before, t[row - 1])
        gap = t[row] - before - 1
        if gap > most:
            return -1 - n - row
        if gap > 0:
            _put(requests, count, owner[row], before + 1, gap, row, 1, 0)
            count += 1
        _put(requests, count, owner[row], t[row], 1, row, 0 if asked[row] else 1, 1)
        count += 1
    return count


@kernel
def _put(requests: IntArray, count: int, owner: int, first: int, steps: int, row: int, skips: int, tells: int) -> None:
    """Write one request."""
    requests[0, count], requests[1, count], requests[2, count] = owner, first, steps
    requests[3, count], requests[4, count], requests[5, count] = row, skips, tells
