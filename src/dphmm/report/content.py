"""What a report is about: a released table, what was promised, and, for its owner or of simulations, the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.policy.graph import PolicyGraph
from dphmm.report.timeline import Timeline
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.storage.statement_types import ReleaseStatement
from dphmm.types import BoolArray, FloatArray, IntArray

#: Rows of one subject that are pictured unless others are chosen.
_PICTURED = 150


class Total(NamedTuple):
    """Something that was spent: of what, how much, and the sentence that says what the number is."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True, eq=False)
class Scenery:
    """What lies under a map, in answer units: filled ``water`` (n, 2), ``roads`` as lines (n, 2)."""

    water: Sequence[FloatArray] = ()
    roads: Sequence[FloatArray] = ()


@dataclass(frozen=True, eq=False)
class ReleaseReport:
    """One released file and everything a page about it needs.

    ``released``: Arrow table with the columns of released.parquet. ``statement``: its privacy statement.
    ``policy`` and ``hull``: of a typical step, for the picture of who hides among whom. ``weights`` (N,): how
    much the public model expects each state; shades the map. ``truth`` (n, d): the true answers, row by row, NaN
    where a row's true state has none; a page with the truth of real people, who are not ``simulated``, is for the
    data owner alone and says so. On a map the true answers are the true places, in metres of its projection.
    ``true_states`` (n,) are the numbers of the true states, where they are known, -1 for one that the space does not
    have; ``outside`` (n,) says which rows are in no state: their errors are told apart. ``smoothed`` (n, d): what all
    answers together say of each row. ``pictured``: the rows of one subject that are drawn. ``explored``: the rows of
    each subject, by step, that can be looked at step by step, and ``timeline``: their plans. ``totals``: what was
    spent, beside the statement's own totals.
    ``notes``: sentences for the top of the page.

    Raises InvalidInput where the parts do not fit together.
    """

    title: str
    released: Any
    space: StateSpace
    statement: ReleaseStatement
    policy: PolicyGraph | None = None
    hull: SensitivityHull | None = None
    weights: FloatArray | None = None
    truth: FloatArray | None = None
    true_states: IntArray | None = None
    outside: BoolArray | None = None
    simulated: bool = False
    smoothed: FloatArray | None = None
    pictured: IntArray | None = None
    explored: Sequence[IntArray] = ()
    timeline: Timeline | None = None
    totals: Sequence[Total] = ()
    scenery: Scenery = field(default_factory=Scenery)
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        missing = {"user", "step", "z_0", "estimate_0", "epsilon", "cost"} - set(self.released.column_names)
        if missing:
            raise InvalidInput("released", f"no column {min(missing)}", "a table as dphmm release writes it")
        shape = (len(self.released), self.space.dimension)
        for name, given in (("truth", self.truth), ("smoothed", self.smoothed)):
            if given is not None and given.shape != shape:
                raise InvalidInput(name, f"an array of shape {given.shape}", f"shape {shape}")
        states = self.true_states
        if states is not None and (self.truth is None or states.shape != shape[:1]):
            raise InvalidInput("true_states", f"an array of shape {states.shape}", f"shape {shape[:1]}, and the truth")
        if self.outside is not None and (self.truth is None or self.outside.shape != shape[:1]):
            came = f"an array of shape {self.outside.shape}"
            raise InvalidInput("outside", came, f"shape {shape[:1]}, and the truth")

    @cached_property
    def z(self) -> FloatArray:
        """Released answers (n, d)."""
        return self._answers("z")

    @cached_property
    def estimate(self) -> FloatArray:
        """Bayes estimates (n, d)."""
        return self._answers("estimate")

    @cached_property
    def time(self) -> IntArray | None:
        """Published times (n,), seconds since 1970 UTC; None without times."""
        if "t" not in self.released.column_names:
            return None
        stamps = self.released.column("t").to_numpy().astype("datetime64[s]")
        return np.asarray(stamps.astype(np.int64))

    @cached_property
    def rows(self) -> IntArray:
        """The pictured rows."""
        if self.pictured is not None:
            return self.pictured
        users = self.released.column("user").to_numpy(zero_copy_only=False)
        first = np.flatnonzero(users == users[0]) if len(users) else np.zeros(0, dtype=np.int64)
        return first[:_PICTURED].astype(np.int64)

    @property
    def owner_only(self) -> bool:
        """Whether the page shows where real people truly were."""
        return self.truth is not None and not self.simulated

    @cached_property
    def known(self) -> BoolArray:
        """The rows (n,) whose true answer is known; needs the truth."""
        return np.asarray(~np.isnan(self._true()).any(axis=1))

    @cached_property
    def elsewhere(self) -> BoolArray:
        """The rows (n,) in no state; needs the truth."""
        return ~self.known if self.outside is None else self.outside

    @cached_property
    def inside(self) -> BoolArray:
        """The rows (n,) in a state, whose errors are the page's figures; needs the truth."""
        return self.known & ~self.elsewhere

    @cached_property
    def visited(self) -> FloatArray:
        """Where the truth (n, d) is drawn on a map of states: rows of one cell at one point. Needs the truth."""
        if self.true_states is None:
            return self._true()
        return np.where(self.inside[:, None], self.space.answers[self.true_states], self._true())

    @property
    def on_map(self) -> bool:
        """Whether answers are metres on a map."""
        return isinstance(self.space, MapSpace)

    def shown(self, distance: float) -> str:
        """A distance between answers, with its unit, on the same line, where there is one; of labels a share."""
        if self.space.has_labels:
            return f"{distance:.0%}\N{NO-BREAK SPACE}wrong"
        return f"{distance:,.0f}\N{NO-BREAK SPACE}m" if self.on_map else f"{distance:,.3g}"

    @property
    def subject(self) -> str:
        """Whose rows are pictured."""
        return str(self.released.column("user")[int(self.rows[0])]) if len(self.rows) else ""

    def errors(self, answers: FloatArray, rows: IntArray | BoolArray | None = None) -> FloatArray:
        """Distance of answers (n, d) to the truth, of all rows or some: answer units, on a map metres on the ground.

        NaN where the truth is unknown. Needs the truth.
        """
        chosen = slice(None) if rows is None else rows
        return self.space.distances(answers[chosen], self._true()[chosen])

    def mean_error(self, answers: FloatArray) -> float:
        """The mean of the errors of rows in a state; NaN where no row is."""
        errors = self.errors(answers, self.inside)
        return float(errors.mean()) if len(errors) else float("nan")

    def _true(self) -> FloatArray:
        if self.truth is None:
            raise InvalidInput("truth", None, "the true answers")
        return self.truth

    def _answers(self, name: str) -> FloatArray:
        axes = range(self.space.dimension)
        return np.stack([self.released.column(f"{name}_{j}").to_numpy() for j in axes], axis=1).astype(np.float64)
