"""The cases by name: each is one function of how much to measure, and gives its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.speed import (
    audits,
    delta,
    dependence,
    draws,
    events,
    growth,
    hmm,
    learning,
    ledgers,
    many,
    noise,
    private_learning,
    readers,
    starting,
    step,
)
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure

CASES: dict[str, Callable[[Effort], Iterator[Figure]]] = {
    "step": step.figures,
    "delta": delta.figures,
    "draws": draws.figures,
    "many": many.figures,
    "ledger": ledgers.figures,
    "growth": growth.figures,
    "fit": learning.figures,
    "learning": readers.figures,
    "hmm": hmm.figures,
    "dependence": dependence.figures,
    "audit": audits.figures,
    "import": starting.figures,
    "noise": noise.figures,
    "private-learning": private_learning.figures,
    "events": events.figures,
}
