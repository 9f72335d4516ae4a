"""Small random worlds whose steps have plans of their own, released with blocks and without."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import dphmm
from crafted_bits import CountedBits
from dphmm.accounting.ledger import MemoryLedger
from dphmm.session.block import Blocks
from dphmm.session.planner import Planner
from dphmm.session.setting import Setting

EPSILONS = ("0.01", "0.1", "0.3", "1", "2.5", "10")
PITCHES = ([1.0, 1.0], [0.25, 0.3], [340.0, 7.0])


@dataclass
class World:
    """Public data of a release, and a table of who was where."""

    model: Any
    space: Any
    policy: Any
    epsilon: str
    options: dict[str, Any]
    table: Any
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def numbered(cls, seed, **given):
        """A grid, mostly with holes and its cells in any order, and a few subjects with gaps between their rows."""
        rng = np.random.default_rng(seed)
        width, height = (int(side) for side in rng.integers(3, 8, size=2))
        points = np.stack(np.divmod(np.arange(width * height), height), axis=1)
        if rng.random() < 0.7:
            points = rng.permutation(points)[: max(6, int(len(points) * rng.uniform(0.6, 1.0)))]
        pitch = PITCHES[int(rng.integers(len(PITCHES)))]
        space = dphmm.StateSpace(points * np.array(pitch), pitch=pitch)
        near = np.abs(points[:, None] - points[None]).max(axis=2) <= rng.integers(1, 3)
        moves = near * rng.random(near.shape) ** rng.integers(1, 6) + 1e-9 * near
        initial = rng.random(len(points)) ** 4 + 1e-6
        model = dphmm.MarkovModel(initial / initial.sum(), moves / moves.sum(axis=1, keepdims=True))
        radius = float(rng.choice([1.0, 1.5, 2.0, 3.0])) * max(pitch)
        options = {
            "constraint": f"delta={rng.choice([0.02, 0.05, 0.2, 0.5])}",
            "mechanism": str(rng.choice(["auto", "discrete-knorm", "staircase"], p=[0.6, 0.2, 0.2])),
            "protection": str(rng.choice(["auto", "nearest", "merge"])),
        }
        rows = [
            (f"u{user}", int(step), int(rng.integers(len(points))))
            for user in range(int(rng.integers(2, 7)))
            for step in np.flatnonzero(rng.random(6) < 0.8) + 1
        ]
        table = pd.DataFrame(rows, columns=["user", "step", "state"])
        policy = dphmm.policy.radius(space, str(radius), closed=bool(rng.random() < 0.7))
        return cls(model, space, policy, str(rng.choice(EPSILONS)), options | given, table)

    @property
    def setting(self):
        return Setting.of(self.model, self.policy, self.space, self.epsilon, **self.options)

    def planner(self):
        """A planner that has made nothing yet."""
        setting = self.setting
        return Planner(self.policy, self.space, setting.options, weights=self.model.occupancy_weights)


@dataclass
class Told:
    """All that a release told: the table, what the ledger keeps, how many words were read, and the words after them."""

    table: Any
    ledger: Any
    served: int
    following: list[int]

    def same(self, other):
        """Fails at the first difference."""
        pd.testing.assert_frame_equal(self.table, other.table, check_exact=True)
        assert (self.served, self.following) == (other.served, other.following)
        for user in self.table.user.unique():
            entries = self.ledger.entries(user, "state")
            assert entries == other.ledger.entries(user, "state")
            assert self.ledger.spent(user) == other.ledger.spent(user)
            for entry in entries:
                if entry.plan_hash is not None:
                    assert self.ledger.plan(entry.plan_hash) == other.ledger.plan(entry.plan_hash)


def released(world, bits, ledger=None, **extra):
    """Release the table of a world; ``ledger`` is one to resume from."""
    counted, resume, ledger = CountedBits(bits), ledger is not None, ledger or MemoryLedger()
    public = world.model, world.policy, world.space, world.epsilon
    table = dphmm.release_many(
        world.table, *public, ledger=ledger, bits=counted, progress=False, resume=resume, **{**world.options, **extra}
    )
    return Told(table, ledger, counted.served, counted.bits.uint64(4).tolist())


@contextmanager
def without_blocks():
    """Every plan is the planner's."""
    with patch.object(Blocks, "of", lambda planner: None):
        yield


@contextmanager
def counted_plans():
    """How many rows blocks have decided, and how many they have left to the planner."""
    counts = {"decided": 0, "left": 0}
    plan = Blocks.plan

    def counting(self, priors):
        block = plan(self, priors)
        left = sum(one is None for one in block.plans)
        counts["left"] += left
        counts["decided"] += len(block.plans) - left
        return block

    with patch.object(Blocks, "plan", counting):
        yield counts
