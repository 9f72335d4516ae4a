"""What is released: people who move on a square grid, to one of nine cells at a step, under one of four policies."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

import dphmm
from benchmarks.speed.plain import naive_release as plain

POLICIES = ("complete", "categorical", "radius", "transition")
#: Cells: the radius of the radius policy, and the side of a district of the categorical one.
RADIUS = 5
DISTRICT = 10


@dataclass(frozen=True, eq=False)
class GridWorld:
    """side² cells; from each a person stays or goes to one of its eight neighbours, with fixed unequal chances."""

    side: int

    @property
    def n_states(self) -> int:
        return self.side**2

    @cached_property
    def points(self) -> np.ndarray:
        """Column and row of each cell (N, 2)."""
        row, column = np.divmod(np.arange(self.n_states), self.side)
        return np.stack([column, row], axis=1)

    @cached_property
    def labels(self) -> np.ndarray:
        """The district of each cell, for the categorical policy."""
        districts = -(-self.side // DISTRICT)
        return self.points[:, 0] // DISTRICT + districts * (self.points[:, 1] // DISTRICT)

    @cached_property
    def model(self) -> dphmm.MarkovModel:
        return dphmm.MarkovModel(np.full(self.n_states, 1 / self.n_states), moves(self.side))

    @cached_property
    def space(self) -> dphmm.StateSpace:
        return dphmm.StateSpace(self.points)

    def policy(self, name: str, space: dphmm.StateSpace | None = None) -> Any:
        """A new policy object of one of the four kinds."""
        if name == "complete":
            return dphmm.policy.complete(self.n_states)
        if name == "categorical":
            return dphmm.policy.categorical(self.labels)
        if name == "radius":
            # The radius is in answer units, which `scaled` may have stretched.
            chosen = self.space if space is None else space
            return dphmm.policy.radius(chosen, RADIUS * chosen.frame.exact_pitch[0])
        return dphmm.policy.transition(self.model)

    def scaled(self, factor: Fraction) -> dphmm.StateSpace:
        """The same cells in another unit: nothing remembered for one space serves the other."""
        return dphmm.StateSpace(self.points * float(factor), pitch=np.full(2, float(factor)))

    def joined(self, name: str) -> Any:
        """A policy for the plain version."""
        if name == "complete":
            return plain.complete()
        if name == "categorical":
            return plain.categorical(self.labels)
        if name == "radius":
            return plain.radius(self.points, RADIUS)
        return plain.transition(self.dense)

    @cached_property
    def dense(self) -> np.ndarray:
        """The moves as the plain version wants them."""
        return self.model.transition.toarray()

    def walk(self, steps: int, start: int | None = None, seed: int = 1) -> list[int]:
        """The states of one person, from the middle of the grid unless told otherwise."""
        chances = np.random.default_rng(seed).random(steps)
        matrix = self.model.transition
        state = self.n_states // 2 + self.side // 2 if start is None else start
        path = []
        for chance in chances:
            row = slice(matrix.indptr[state], matrix.indptr[state + 1])
            sums = np.cumsum(matrix.data[row])
            state = int(matrix.indices[row][np.searchsorted(sums[:-1], chance)])
            path.append(state)
        return path


def moves(side: int) -> Any:
    """The moves as a sparse matrix; nobody keeps it but the model."""
    row, column = np.divmod(np.arange(side**2), side)
    chance = np.random.default_rng(1)
    parts = []
    for dx, dy in np.ndindex(3, 3):
        x, y = column + dx - 1, row + dy - 1
        inside = (x >= 0) & (x < side) & (y >= 0) & (y < side)
        cells = np.flatnonzero(inside)
        parts.append((chance.uniform(0.5, 1.5, len(cells)), cells, (y * side + x)[inside]))
    values, sources, targets = (np.concatenate(part) for part in zip(*parts, strict=True))
    weights = sparse.csr_array((values, (sources, targets)), shape=(side**2, side**2))
    weights.data /= np.repeat(weights.sum(axis=1), np.diff(weights.indptr))
    return weights
