"""How much is measured: everything, or what a minute allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Effort:
    quick: bool = False

    def pick(self, quick: T, full: T) -> T:
        """One of two amounts."""
        return quick if self.quick else full
