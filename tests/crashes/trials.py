"""The trials that the tests and the long run share."""

from __future__ import annotations

from fractions import Fraction

from crashes import autopsy, work, world
from crashes.campaign import Trial
from crashes.protocols import PROTOCOLS
from dphmm import SequencePromise
from dphmm.accounting import Schedule

CAP = Fraction("1.1")
#: At most sixteen of twenty steps, and three of the twelve that users have rows at.
PACED = Schedule(SequencePromise("1.6", steps=22), work.EPSILON, range(1, 23), (0.0, 0.0, 1000.0, 1300.0))
PLANNED = Schedule(SequencePromise("0.3", per="1d"), work.EPSILON, [97, 101, 108])
_COMMAND = {"arguments": work.release_arguments()}
_STREAM = {"arguments": work.release_arguments("-")}

SESSIONS = {
    "session": Trial("session", whole=False),
    "session, delta-set, keyed": Trial("session", {"constraint": "0.05", "keyed": True}, compare="all", whole=False),
    "session, capped": Trial("session", {"cap": str(float(CAP))}, caps={"ann": CAP}, good=(3,), whole=False),
    "session, paced, keyed": Trial(
        "session",
        {"schedule": PACED.written(), "keyed": True},
        compare="all",
        caps={"ann": PACED.promise.exact},
        whole=False,
    ),
    "two sessions of one key": Trial("session", {"again": 20}, crowd=2, whole=False),
}
BATCHES = {
    "batch": Trial("batch"),
    "batch, delta-set": Trial("batch", {"constraint": "0.05"}, compare="given"),
    "batch, planned": Trial(
        "batch", {"schedule": PLANNED.written()}, caps=dict.fromkeys(world.USERS, PLANNED.promise.exact)
    ),
    "release_many": Trial("many"),
}
COMMANDS = {
    "dphmm release": Trial("command", _COMMAND, files=True),
    "dphmm release -": Trial("command", _STREAM, stdin="lines.jsonl"),
}
TRIALS = {**SESSIONS, **BATCHES, **COMMANDS}

#: The library over a database that breaks its word: shown first, committed later.
LATE = Trial("session", {"limits": {"late_commits": 1}}, compare="")

#: The simulated ledgers under the same deaths: A to C must be convicted, E must not. C is wrong between two processes.
SIMULATED = {
    name: Trial(
        "protocol",
        {"name": name, "steps": 20, "again": 20 if name in "CE" else work.AGAIN},
        crowd=2 if name in "CE" else 1,
        view=autopsy.protocol_view,
        prepare=lambda folder: None,
        compare="",
    )
    for name in PROTOCOLS
}
