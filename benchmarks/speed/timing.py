"""Seconds of a call: warm-ups, then repeats of which the median counts, with the least and the most beside it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Spread:
    """The median of some repeats, the least and the most of them, and how many they were."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        found = list(values)
        return cls(statistics.median(found), min(found), max(found), len(found))

    def per_second(self, count: float) -> Spread:
        """``count`` things in these seconds, as a rate."""
        return Spread(count / self.median, count / self.high, count / self.low, self.repeats)

    def each(self, count: float) -> Spread:
        """Seconds of one of ``count`` equal things."""
        return Spread(self.median / count, self.low / count, self.high / count, self.repeats)

    def times(self, other: Spread) -> Spread:
        """How many times as long as ``other``: the ratio of medians, and the least and most it could have been."""
        ratios = (self.median / other.median, self.low / other.high, self.high / other.low)
        return Spread(*ratios, min(self.repeats, other.repeats))


def timed(
    call: Callable[..., Any], repeats: int, *, warmups: int = 1, prepare: Callable[[], Any] | None = None
) -> Spread:
    """Time ``call(prepare())``, or ``call()``; preparing is not timed and is done anew for every repeat."""
    return wall_and_cpu(call, repeats, warmups=warmups, prepare=prepare)[0]


def wall_and_cpu(
    call: Callable[..., Any], repeats: int, *, warmups: int = 1, prepare: Callable[[], Any] | None = None
) -> tuple[Spread, Spread]:
    """The same, and the processor time of all threads beside it."""
    wall, cpu = [], []
    for _ in range(warmups + repeats):
        arguments = () if prepare is None else (prepare(),)
        began, spent = time.perf_counter(), time.process_time()
        call(*arguments)
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - spent)
    return Spread.of(wall[warmups:]), Spread.of(cpu[warmups:])
