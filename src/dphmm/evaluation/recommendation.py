"""Which setting of a sweep to take: the rule is public, short and printed with the answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dphmm._checks import finite_number, whole
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray

if TYPE_CHECKING:
    import pandas as pd

#: How each choice of targets orders the settings that meet them: columns, the best first; "-" means the largest first.
_ORDERS = {
    (True, True): ("epsilon", "-least_dop", "estimate_error"),
    (True, False): ("-least_dop", "epsilon", "estimate_error"),
    (False, True): ("estimate_error", "epsilon", "-least_dop"),
}
_RULES = {
    (True, True): "the smallest epsilon that meets both targets, then the highest degree of protection",
    (True, False): "the highest degree of protection within the error, then the smallest epsilon",
    (False, True): "the smallest error at that degree of protection, then the smallest epsilon",
}


@dataclass(frozen=True)
class Targets:
    """What a release should reach: root mean square ``error`` of the estimate at most, least ``dop`` at least.

    Raises InvalidInput for an error that is not greater than 0, a degree below 2, and for no target at all.
    """

    error: float | None = None
    dop: int | None = None

    def __post_init__(self) -> None:
        if self.error is None and self.dop is None:
            raise InvalidInput("targets", "none", "an error or a degree of protection to reach")
        if self.error is not None and finite_number(self.error, "error") <= 0:
            raise InvalidInput("error", self.error, "a length greater than 0")
        if self.dop is not None:
            whole(self.dop, "dop", 2)

    @property
    def rule(self) -> str:
        """What is taken of the settings that meet the targets."""
        return _RULES[self._kind]

    def met(self, table: pd.DataFrame) -> BoolArray:
        """Which rows of a sweep reach the targets; the error by the upper end of its interval."""
        fine = table["refused"].isna().to_numpy(copy=True)
        if self.error is not None:
            fine &= (table["estimate_error_high"] <= self.error).to_numpy(dtype=np.bool_)
        if self.dop is not None:
            fine &= (table["least_dop"] >= self.dop).to_numpy(dtype=np.bool_)
        return fine

    def best(self, table: pd.DataFrame) -> int | None:
        """The number of the recommended row, or None where no row meets the targets; earlier rows win ties."""
        rows = np.flatnonzero(self.met(table))
        if len(rows) == 0:
            return None
        meeting = table.iloc[rows]
        keys = [-meeting[name[1:]] if name[0] == "-" else meeting[name] for name in reversed(_ORDERS[self._kind])]
        return int(rows[np.lexsort([key.to_numpy(dtype=np.float64) for key in keys])[0]])

    def nearest(self, table: pd.DataFrame) -> int | None:
        """The number of the row that misses the targets by the least factor; None where every row is refused."""
        rows = np.flatnonzero(table["refused"].isna())
        if len(rows) == 0:
            return None
        usable = table.iloc[rows]
        missed = np.zeros(len(usable))
        if self.error is not None:
            missed += np.maximum(0.0, np.log(usable["estimate_error_high"].to_numpy(dtype=np.float64) / self.error))
        if self.dop is not None:
            missed += np.maximum(0.0, math.log(self.dop) - np.log(usable["least_dop"].to_numpy(dtype=np.float64)))
        return int(rows[np.argmin(missed)])

    @property
    def _kind(self) -> tuple[bool, bool]:
        return self.error is not None, self.dop is not None


def efficient(table: pd.DataFrame) -> BoolArray:
    """Rows that no other row beats: in epsilon, error and least degree at least as good, in one of them better."""
    usable = table["refused"].isna().to_numpy()
    points = np.stack(
        [table["epsilon"], table["estimate_error"], -table["least_dop"].astype(np.float64)], axis=1
    ).astype(np.float64)
    found = np.zeros(len(table), dtype=np.bool_)
    for row in np.flatnonzero(usable):
        others = points[usable]
        better = (others <= points[row]).all(axis=1) & (others < points[row]).any(axis=1)
        found[row] = not better.any()
    return found
