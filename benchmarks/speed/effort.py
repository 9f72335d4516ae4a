"""How much is measured: everything, or what a minute allows; and what is measured in another environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    quick: bool = False
    #: A Python that has diffprivlib, which does not work beside today's scikit-learn; None: this one.
    diffprivlib_python: str | None = None
    #: Whether settings of half an hour are measured too.
    long: bool = False

    def pick(self, quick: T, full: T) -> T:
        """One of two amounts."""
        return quick if self.quick else full
