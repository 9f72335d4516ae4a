"""From rows by subject and step to what a ledger is asked for."""

from __future__ import annotations

from dphmm._kernels.compiled import kernel
from dphmm.types import IntArray


@kernel
def lay_out(owner: IntArray, t: IntArray, last: IntArray, most: int, requests: IntArray) -> int:
    """Fill ``requests`` (5, 2n) with a release for each row (n,) after its subject's last step, and a skip before it.

    A request is: owner, first step, number of steps, row, 1 for a skip. Returns how many there are; -1 - row for a row
    out of order, -1 - n - row for one more than ``most`` steps after the one before it.
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
        for skips in range(1 if gap > 0 else 0, -1, -1):
            requests[0, count] = owner[row]
            requests[1, count] = before + 1 if skips else t[row]
            requests[2, count] = gap if skips else 1
            requests[3, count] = row
            requests[4, count] = skips
            count += 1
    return count
