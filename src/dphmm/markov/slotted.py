"""Matrices of slots from counts: those of a slot, and beside them the row of all slots together, worth some moves.

M_k[i, j] = (C_k[i, j] + κ P[i, j]) / (C_k[i] + κ), where C_k counts the moves that leave a step of slot k, and P is the
matrix of all slots together. So every slot has the moves of P, and a slot in which nothing was counted moves as P does.
A fit without privacy takes the κ under which people who are left out are likeliest.

Source: docs/learning.md. Proof (private counts): docs/proofs/learning.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.slots import Slots
from dphmm.markov.stochastic import divided, row_sums, with_data
from dphmm.types import FloatArray, IntArray

#: How many moves the row of all slots may be worth: tried by leaving people out; and where nobody can be left out.
KAPPAS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
ALONE = 30.0
#: People are left out in at most so many parts.
_PARTS = 10


def steps_of(first_steps: Any, starts: IntArray, total: int, slots: Slots) -> IntArray:
    """The number (m,) of the step of each state of sequences laid end to end, which begin at ``starts`` (k,).

    ``first_steps`` (k,): the time bins since 1970 that sequences begin in, read where slots go by a clock.
    Raises InvalidInput where they are not there, in words without a number of the data.
    """
    inside = np.arange(total) - np.repeat(starts, np.diff(starts, append=total))
    if not slots.by_clock:
        return inside + 1
    firsts = np.asarray([] if first_steps is None else first_steps)
    if firsts.shape != starts.shape or (firsts.size and firsts.dtype.kind not in "iu"):
        expected = "the number of the time bin since 1970 that each sequence begins in: slots go by the clock"
        raise InvalidInput("first_steps", "none, or of another number", expected)
    return inside + np.repeat(firsts.astype(np.int64), np.diff(starts, append=total))


def shrunk(counts: Any, pooled: Any, kappa: float) -> list[Any]:
    """The matrices of the slots, from counts (K N, N) of all of them, one below another, and those of all together."""
    n = pooled.shape[0]
    known = np.repeat(np.arange(n), np.diff(pooled.indptr)) * n + pooled.indices
    matrices = []
    for first in range(0, counts.shape[0], n):
        block, values = counts[first : first + n], kappa * pooled.data
        moves = np.repeat(np.arange(n), np.diff(block.indptr)) * n + block.indices
        place = np.minimum(np.searchsorted(known, moves), len(known) - 1)
        # Rare moves that the pooled matrix dropped are in none of the slots.
        shared = known[place] == moves
        values[place[shared]] += block.data[shared]
        matrix = with_data(pooled, values)
        matrices.append(divided(matrix, row_sums(matrix)))
    return matrices


def chosen_kappa(keys: IntArray, owners: IntArray, n: int, extra: Any) -> float:
    """The κ under which moves of people who are left out are likeliest; of equally likely ones the largest.

    keys : (m,) of each move ``(slot * n + from) * n + to``. owners : (m,) whose it is.
    extra : csr (N, N), what is added to counts of all slots together. A move that nobody else made counts nowhere.
    """
    people, owner = np.unique(owners, return_inverse=True)
    if len(people) < 2:
        return ALONE
    parts = min(_PARTS, len(people))
    part = owner % parts
    logs = np.zeros(len(KAPPAS))
    each, times = np.unique(keys * parts + part, return_counts=True)
    key, left = np.divmod(each, parts)
    pair, row = key % (n * n), key // n
    of_slot, of_slot_row = _of_others(key, left, times, parts), _of_others(row, left, times, parts)
    of_pair = _of_others(pair, left, times, parts) + _at(extra, pair, n)
    of_row = _of_others(pair // n, left, times, parts) + np.asarray(extra.sum(axis=1)).ravel()[pair // n]
    possible = of_pair > 0
    share = of_pair[possible] / of_row[possible]
    for at, kappa in enumerate(KAPPAS):
        chance = (of_slot[possible] + kappa * share) / (of_slot_row[possible] + kappa)
        logs[at] = float(times[possible] @ np.log(chance))
    return KAPPAS[len(KAPPAS) - 1 - int(np.argmax(logs[::-1]))]


def _of_others(keys: IntArray, part: IntArray, times: IntArray, parts: int) -> FloatArray:
    """The count in the other parts of each key (m,), of which a ``part`` (m,) has so many ``times`` (m,)."""
    known, place = np.unique(keys, return_inverse=True)
    total = np.bincount(place, weights=times)
    of_part = np.bincount(place * parts + part, weights=times, minlength=len(known) * parts)
    return np.asarray(total[place] - of_part[place * parts + part])


def _at(matrix: Any, pairs: IntArray, n: int) -> FloatArray:
    """The entries of a csr matrix at pairs ``from * n + to``."""
    known = np.repeat(np.arange(n), np.diff(matrix.indptr)) * n + matrix.indices
    if not len(known):
        return np.zeros(len(pairs))
    place = np.minimum(np.searchsorted(known, pairs), len(known) - 1)
    return np.where(known[place] == pairs, matrix.data[place], 0.0)


def described(slots: Slots | None, kappa: float | None = None) -> dict[str, Any]:
    """The entries of a fit with slots in a provenance; empty without slots."""
    if slots is None:
        return {}
    names: Sequence[str] = [slots.name(slot) for slot in range(slots.n)]
    return {"slots": list(names[:24]), **({} if kappa is None else {"kappa": kappa})}
