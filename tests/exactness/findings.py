"""What was looked at and what was found: counts, the largest figures, and every violation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Largest:
    """The largest of the values shown to it, and where it was."""

    value: Fraction = Fraction(0)
    where: str = ""

    def show(self, value: Fraction, where: str) -> None:
        if value > self.value:
            self.value, self.where = value, where

    def add(self, other: Largest) -> None:
        self.show(other.value, other.where)


@dataclass
class Findings:
    """``ratio``: the worst log-ratio of a required pair, as a multiple of its eps. ``inflation``: how much farther a
    body reaches in some direction than the differences (and the thickness) that it was made for.
    """

    counts: Counter = field(default_factory=Counter)
    features: Counter = field(default_factory=Counter)
    refusals: Counter = field(default_factory=Counter)
    ratio: Largest = field(default_factory=Largest)
    inflation: Largest = field(default_factory=Largest)
    violations: list[str] = field(default_factory=list)

    def require(self, holds: bool, where: str, what: str) -> None:
        """Record a violation unless ``holds``."""
        self.counts["checks"] += 1
        if not holds:
            self.violations.append(f"instance {where}: {what}")

    def add(self, other: Findings) -> None:
        self.counts.update(other.counts)
        self.features.update(other.features)
        self.refusals.update(other.refusals)
        self.ratio.add(other.ratio)
        self.inflation.add(other.inflation)
        self.violations += other.violations
