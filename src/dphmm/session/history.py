"""What a ledger holds of one subject, as columns.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Entry
from dphmm.types import BoolArray, IntArray

_LARGEST = 2**62


class History(NamedTuple):
    """Stored steps (n,): ``skipped`` is 0 for a release of ``z`` (n, d) under the plan ``hashes[plan]``, else steps."""

    t: IntArray
    skipped: IntArray
    z: IntArray
    secure: BoolArray
    plan: IntArray
    hashes: tuple[str, ...]

    @classmethod
    def of(cls, entries: Sequence[Entry], dimension: int) -> History | None:
        """The columns of entries, or None for answers that are not of this dimension and 64 bits."""
        nothing = (0,) * dimension
        answers = [nothing if entry.z is None else entry.z for entry in entries]
        if any(len(answer) != dimension or max(map(abs, answer)) > _LARGEST for answer in answers):
            return None
        hashes = {str(entry.plan_hash): None for entry in entries if entry.z is not None}
        numbers = {name: number for number, name in enumerate(hashes)}
        return cls(
            t=np.array([entry.t for entry in entries], dtype=np.int64),
            skipped=np.array([0 if entry.z is not None else entry.steps for entry in entries], dtype=np.int64),
            z=np.array(answers, dtype=np.int64).reshape(-1, dimension),
            secure=np.array([entry.secure for entry in entries], dtype=np.bool_),
            plan=np.array([numbers.get(str(entry.plan_hash), -1) for entry in entries], dtype=np.int64),
            hashes=tuple(hashes),
        )

    @property
    def through(self) -> int:
        """The last step; 0 where there is none."""
        return int(self.t[-1] + max(1, self.skipped[-1]) - 1) if len(self.t) else 0

    def between(self, after: int, last: int) -> History:
        """The entries that begin at steps after..last, without the first of them."""
        chosen = (self.t > after) & (self.t <= last)
        return self._replace(**{name: getattr(self, name)[chosen] for name in ("t", "skipped", "z", "secure", "plan")})
