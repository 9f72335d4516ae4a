"""People's walks over the cells of a map, and models fitted to other people: what the papers' figures are about.

A study is a data set with what its papers say of it. Walks are split into folds; the model of a fold is fitted to
everybody but the people of that fold, so that the promise to them stands. The papers fitted one model to everybody, the
released people included; that way is there for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dphmm.markov.model import MarkovModel
from dphmm.markov.trajectories import fit_trajectories, state_sequences
from dphmm.states.grid import Grid
from dphmm.states.trajectory import Trajectories
from dphmm.types import FloatArray, IntArray

#: How models are fitted: to other people, or as the papers did to all people and by counts alone.
OTHERS, EVERYBODY = "others", "everybody"
STEPS, WALKS = 100, 20


@dataclass(frozen=True, eq=False)
class Rules:
    """What a data set's walks are made by. Speeds are m/s, lengths metres, ``step`` seconds.

    ``hold``: so many steps without a row keep the state before. ``fitted_at_most``: the speed above which rows are not
    fitted to.
    """

    grid: Grid
    step: int | None = None
    hold: int = 0
    smoothing: float = 0.0
    fitted_at_most: float | None = None


@dataclass(frozen=True, eq=False)
class Fold:
    """A model, and how its states and the cells of the whole grid translate into each other."""

    model: MarkovModel
    #: The state (cells,) that answers for each cell of the grid: its own, or the nearest.
    state_of: IntArray
    #: The cell (N,) of each state.
    cell_of: IntArray

    @classmethod
    def fitted(cls, rows: Trajectories, rules: Rules, smoothing: float) -> Fold:
        """The fold of a model fitted to some people's rows."""
        model, _ = fit_trajectories(
            rows,
            rules.grid,
            step=rules.step,
            hold=rules.hold,
            max_speed=rules.fitted_at_most,
            smoothing=smoothing,
            smoothing_support="neighbours" if smoothing else None,
        )
        space, grid = model.space, rules.grid
        assert isinstance(space, Grid)
        cell_of = space.lattice[:, 1] * grid.columns + space.lattice[:, 0]
        return cls(model, space.nearest(*grid.to_latlon(grid.answers)), cell_of)

    @property
    def space(self) -> Grid:
        """The cells that are states."""
        assert isinstance(self.model.space, Grid)
        return self.model.space

    def known_start(self, cell: int) -> MarkovModel:
        """The model of somebody whose cell at t = 0 is known."""
        initial = np.zeros(self.model.n_states)
        initial[self.state_of[cell]] = 1.0
        return MarkovModel(initial, self.model.matrix, space=self.space, step=self.model.step, jump=self.model.jump)


@dataclass(frozen=True, eq=False)
class Walk:
    """The cells (T + 1,) of somebody at t = 0..T, and the numbers of all users who are this person."""

    cells: IntArray
    owners: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Study:
    """A data set: its people's rows, the walks to release, and places of interest (m, 2) in metres.

    ``n_folds`` 0: the rows are of other people than the walks.
    """

    name: str
    rules: Rules
    rows: Trajectories
    walks: tuple[Walk, ...]
    places: FloatArray
    n_folds: int = 2

    def fold_of(self, number: int, fit: str) -> int:
        """The fold of a walk by number."""
        return number % max(1, self.n_folds) if fit == OTHERS else 0

    def fold(self, number: int, fit: str = OTHERS) -> Fold:
        """The model of a fold; fitted when it is first asked for."""
        key = (number, fit)
        if key not in self._folds:
            if fit == EVERYBODY:
                self._folds[key] = Fold.fitted(self.rows, self.rules, 0.0)
            else:
                self._folds[key] = Fold.fitted(self._others(number), self.rules, self.rules.smoothing)
        return self._folds[key]

    def _others(self, number: int) -> Trajectories:
        """The rows of everybody who is not released in this fold."""
        own = [walk.owners for k, walk in enumerate(self.walks) if self.n_folds and k % self.n_folds == number]
        released = np.array(sorted({user for owners in own for user in owners}), dtype=np.int64)
        return self.rows.take(np.flatnonzero(~np.isin(self.rows.user, released)))

    @cached_property
    def _folds(self) -> dict[tuple[int, str], Fold]:
        return {}

    def truth(self, walk: Walk) -> FloatArray:
        """The true answers (T, 2) of a walk, from t = 1."""
        answers: FloatArray = self.rules.grid.answers[walk.cells[1:]]
        return answers

    def cut(self, walks: int, steps: int) -> Study:
        """The same with fewer and shorter walks; models are fitted to everybody but these."""
        shorter = tuple(Walk(walk.cells[: steps + 1], walk.owners) for walk in self.walks[:walks])
        return replace(self, walks=shorter)


def first_walks(
    rows: Trajectories, rules: Rules, *, people: IntArray | None = None, walks: int = WALKS, steps: int = STEPS
) -> tuple[Walk, ...]:
    """The first ``steps`` + 1 states in a row of each person who has so many, of ``walks`` people evenly chosen.

    ``people`` (users,): the person that each user number is; each is one of its own without.
    """
    person = np.arange(rows.n_users, dtype=np.int64) if people is None else people
    _, sequences, _ = state_sequences(rows, rules.grid, step=rules.step, hold=rules.hold)
    first: dict[int, IntArray] = {}
    for cells, user in zip(sequences.sequences, sequences.owners.tolist(), strict=True):
        if len(cells) > steps:
            first.setdefault(int(person[user]), cells[: steps + 1])
    known = sorted(first)
    chosen = np.linspace(0, len(known) - 1, min(walks, len(known))).round().astype(np.int64)
    found = [known[k] for k in chosen.tolist()]
    return tuple(Walk(first[one], tuple(np.flatnonzero(person == one).tolist())) for one in found)


def popular_squares(rows: Trajectories, grid: Grid, side: float = 100.0, least: int = 10) -> FloatArray:
    """The middles (m, 2) of squares with at least ``least`` rows, for maps without known places. ``side``: metres."""
    metres = grid.projection.to_metres(*rows.places_for("places"))
    squares, counts = np.unique(np.floor(metres / side), axis=0, return_counts=True)
    middles: FloatArray = (squares[counts >= least] + 0.5) * side
    return middles
