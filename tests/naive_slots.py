"""Slots as definitions say them: the clock on the wall is read by the standard library, every path is written out.

A chain is (initial, matrices, secrets): lists over states, a matrix for each slot. ``slots`` are those of the steps
that moves leave: of the move to step 1 first.
"""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo


def on_the_wall(second, zone):
    """What clocks of a zone show at a second since 1970."""
    hours = None if zone[0] not in "+-" else int(zone[0] + "1") * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
    clock = ZoneInfo(zone) if hours is None else timezone(hours)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).astimezone(clock)


def slot_by_clock(step, seconds, zone, begins, week=False):
    """The slot of a step: the last one that has begun by the clock, since midnight or since Monday."""
    shown = on_the_wall(step * seconds, zone)
    passed = shown.hour * 3600 + shown.minute * 60 + shown.second + week * shown.weekday() * 86400
    begun = [slot for slot, begin in enumerate(begins) if begin <= passed]
    return begun[-1] if begun else len(begins) - 1


def paths(chain, slots, steps):
    """Every path from step 1 on that the chain can take, with its probability."""
    initial, matrices, _ = chain
    states = range(len(initial))
    for path in itertools.product(states, repeat=steps):
        chance = math.fsum(initial[x] * matrices[slots[0]][x][path[0]] for x in states)
        for slot, (x, y) in zip(slots[1:], itertools.pairwise(path), strict=False):
            chance *= matrices[slot][x][y]
        if chance > 0:
            yield path, chance


def masses(chain, slots, step, steps, likelihoods):
    """How likely each secret is at a step (from 0), given answers of the steps that have a likelihood."""
    _, _, secrets = chain
    found = [0.0] * (max(secrets) + 1)
    for path, chance in paths(chain, slots, steps):
        seen = zip(path, likelihoods, strict=False)
        found[secrets[path[step]]] += chance * math.prod(one[secrets[x]] for x, one in seen if one is not None)
    total = math.fsum(found)
    return [mass / total for mass in found]


def counts(sequences, slots_of_sequences, n_slots, n_states):
    """How often each move left a step of each slot."""
    table = [[[0] * n_states for _ in range(n_states)] for _ in range(n_slots)]
    for states, slots in zip(sequences, slots_of_sequences, strict=True):
        for at in range(len(states) - 1):
            table[slots[at]][states[at]][states[at + 1]] += 1
    return table
