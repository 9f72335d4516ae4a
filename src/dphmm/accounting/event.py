"""What was spent, described and not yet accounted for.

An event holds the public parameters that are necessary and sufficient to account for what happened; which
theorem turns them into a total is decided elsewhere (``composition``). Meanings never change; unknown events
are refused. (The idea is dp_accounting's ``DpEvent``.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from dphmm.accounting.records import Entry, SessionHeader, check_exact
from dphmm.errors import InvalidInput
from dphmm.types import Loss


@dataclass(frozen=True)
class ReleaseEvent:
    """One answer about one step.

    ``epsilon``: the DPHMM promise of this release given the past. ``cost``: the mechanism's largest loss over
    pairs of the plan set. ``scope``: "global" or "component". ``constant``: the answer was public.
    ``secure``: False for any other bits than the package's own system bits.
    """

    epsilon: Fraction
    cost: Loss
    scope: str
    constant: bool
    secure: bool

    def __post_init__(self) -> None:
        check_exact(self.epsilon, "epsilon")
        if not (isinstance(self.cost, float) and self.cost == math.inf):
            check_exact(self.cost, "cost")


@dataclass(frozen=True)
class SkipEvent:
    """Time passed and nothing was published."""


@dataclass(frozen=True)
class ComposedEvents:
    """Events that happened to one subject, in order."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        for event in self.events:
            if not isinstance(event, (ReleaseEvent, SkipEvent, ComposedEvents)):
                raise InvalidInput("events", type(event).__name__, "release, skip or composed events")


Event: TypeAlias = ReleaseEvent | SkipEvent | ComposedEvents


def leaves(event: Event) -> Iterator[ReleaseEvent | SkipEvent]:
    """The releases and skips of an event, in order, however they were composed."""
    if isinstance(event, ComposedEvents):
        for part in event.events:
            yield from leaves(part)
    else:
        yield event


def event_of(entry: Entry, header: SessionHeader | None = None) -> ReleaseEvent | SkipEvent:
    """The event that a ledger entry records; the scope stands in the session's header ("global" if not)."""
    if entry.epsilon is None or entry.cost is None:
        return SkipEvent()
    scope = "global" if header is None else header.options.get("scope", "global")
    return ReleaseEvent(entry.epsilon, entry.cost, scope, entry.constant, entry.secure)


def compose(events: Iterable[Event]) -> ComposedEvents:
    """Events in order, as one."""
    return ComposedEvents(tuple(events))
