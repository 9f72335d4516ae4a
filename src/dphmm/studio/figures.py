"""The meaning of a draft: its map, its cells, and the errors under budgets. All of it is public.

Figures come from `dphmm.Setup` and the plans of `dphmm.choose`, pictures from `dphmm.report`. A browser gets ready
paths, numbers and sentences: it computes nothing but the place of a pointer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dphmm._cached import cached_property
from dphmm._progress import Progress
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.records import in_short
from dphmm.choose.planning import World, state_name
from dphmm.choose.schedule_plan import SchedulePlan, WorthTable
from dphmm.errors import InvalidInput
from dphmm.evaluation.city import City
from dphmm.policy.constraint import Constraint
from dphmm.report import figures, maps
from dphmm.report.backdrop import box_of, read_backdrop
from dphmm.report.beliefs import DrawnCells, levels
from dphmm.report.content import Backdrop
from dphmm.report.maps import View
from dphmm.samplers.entropy import ReplayBits
from dphmm.sensitivity import sensitivity_hull
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting
from dphmm.setup.setup import Setup
from dphmm.statement.doubt import doubt
from dphmm.statement.sentences import all_words, block_words, by_chance, doubt_words, off, plural, within
from dphmm.statement.story import stay_words
from dphmm.statement.verdict import WARNS, verdict
from dphmm.states.grid import Grid
from dphmm.states.maps import metres_per_degree
from dphmm.studio.draft import Box, Draft, cells_of
from dphmm.types import Exact, FloatArray, IntArray

#: Room around the box of a map, as a share of it, into which a new box may be drawn.
_AROUND = 0.06
#: Degrees between two lines of the map of the world.
_LINES = 30
#: Invented people of a preview, and of the figures that stay: those of ``dphmm plan``.
PREVIEW, FINAL = 10, 100
#: Columns of the grid over a backdrop without a box.
_COARSE = 20


class Layer(msgspec.Struct, frozen=True):
    """A path of the picture, and its style."""

    style: str
    path: str


class Named(msgspec.Struct, frozen=True):
    """A name at a place of the picture."""

    x: float
    y: float
    text: str


class Map(msgspec.Struct, frozen=True):
    """A picture, ``width`` by ``height``.

    frame : the degrees of its edges. columns, rows, x, y, side : of the cells, from the south-west; 0 before a box is
    drawn. areas : the names of drawn areas where they are.
    """

    width: float
    height: float
    frame: Box
    layers: list[Layer]
    names: list[Named]
    areas: list[Named]
    columns: int = 0
    rows: int = 0
    x: float = 0.0
    y: float = 0.0
    side: float = 0.0


class LabelBelief(msgspec.Struct, frozen=True):
    """A label with the reader's belief in it; ``alike`` if it looks like the chosen one."""

    name: str
    share: float
    alike: bool


class State(msgspec.Struct, frozen=True):
    """A state that was chosen to look at: sentences, and of cells layers, of labels shares."""

    number: int
    name: str
    lines: list[str]
    layers: list[Layer]
    shares: list[LabelBelief]


class Sentence(msgspec.Struct, frozen=True):
    """A sentence, and whether it warns."""

    text: str
    warns: bool


class BudgetView(msgspec.Struct, frozen=True):
    """The errors of a reader under a budget, and the doubt that it leaves.

    people : the number simulated. total : the final number of rows. who : the people of the columns of stays.
    pictures : SVG by heading, once every total is there.
    """

    people: int
    total: int
    of: str
    who: str
    worth: WorthTable
    verdict: list[Sentence]
    doubt: list[str]
    notes: list[str]
    pictures: dict[str, str]


@dataclass(frozen=True, eq=False)
class Ground:
    """A public map to draw on: shapes in metres of a grid. Without a grid there are none."""

    below: Backdrop = field(default_factory=Backdrop)
    grid: Grid | None = None

    @classmethod
    def read(cls, path: str | Path) -> Ground:
        """The shapes of a GeoJSON file. Raises InvalidInput as `dphmm.report.read_backdrop`."""
        west, south, east, north = box_of(path)
        north_south, east_west = metres_per_degree((south + north) / 2)
        side = max((east - west) * east_west, (north - south) * north_south)
        grid = Grid(west, south, east, north, side / _COARSE)
        return cls(read_backdrop(path, grid), grid)

    @classmethod
    def of_city(cls, city: City) -> Ground:
        """The river, the bridges and the quarters of a simulated city."""
        return cls(Backdrop([city.river], list(city.bridges), city.quarters), city.grid)

    def drawn(self, grid: Grid, view: View) -> Map:
        """A picture of it, where ``view`` has the metres of ``grid``."""

        def placed(points: FloatArray) -> FloatArray:
            lat, lon = (self.grid or grid).to_latlon(np.nan_to_num(points))
            return view(np.where(np.isnan(points), np.nan, grid.projection.to_metres(lat, lon)))

        layers = []
        for style, lines in (("water", self.below.water), ("road", self.below.roads)):
            layers.append(Layer(style, "".join(_path(placed(line), close=style == "water") for line in lines)))
        at = placed(np.reshape([place for _, *place in self.below.names], (-1, 2))).tolist()
        low, high = view.north - view.side / view.scale, view.west + view.side / view.scale
        (south, north), (west, east) = grid.to_latlon(np.array([[view.west, low], [high, view.north]]))
        named = zip(at, self.below.names, strict=True)
        names = [Named(x, y, name) for (x, y), (name, *_) in named if 0 < x < view.side and 0 < y < view.side]
        return Map(view.side, view.side, (float(west), float(south), float(east), float(north)), layers, names, [])


@dataclass(frozen=True, eq=False)
class Figures:
    """A setting as it is looked at: the common parts of every request about it."""

    setup: Setup
    draft: Draft
    ground: Ground
    #: The plans by the number of people, for drafts that differ in their budget alone.
    made: dict[int, dict[Any, SchedulePlan]] = field(default_factory=dict)

    @cached_property
    def cells(self) -> DrawnCells:
        """The cells of a map, as they are drawn."""
        return DrawnCells.of_space(self.setup.space)

    @cached_property
    def view(self) -> View:
        """The view of the picture that holds the cells, with room around them."""
        room = _AROUND * float((self.cells.high - self.cells.low).max())
        return View.around(self.cells.low - room, self.cells.high + room)

    @cached_property
    def hull(self) -> FloatArray:
        """The corners (n, 2) of the sensitivity hull in metres around a cell; none of labels."""
        space, policy = self.setup.space, self.setup.policy
        if space.has_labels:
            return np.zeros((0, 2))
        everywhere = np.ones(space.n_states, dtype=np.bool_)
        return sensitivity_hull(policy, space, Constraint.surrogated(everywhere, everywhere, space)).vertices[:, :2]

    def lines(self) -> list[str]:
        """The setting in words."""
        setup = self.setup
        alone = int((~setup.policy.has_neighbor(None)).sum())
        words = [*repr(setup).splitlines(), *[f"{alone:,} have none that looks like them"] * bool(alone)]
        return [*words, *setup.model.notes, *setup.policy.notes]

    def map(self) -> Map | None:
        """The map of the setting; None of labels."""
        grid = self.setup.space
        if not isinstance(grid, Grid):
            return None
        view, cells = self.view, self.cells
        below = self.ground.drawn(grid, view)
        below.layers.append(Layer("any-cell", maps.shape(view, cells, np.arange(len(cells)))))
        for area, inside in zip(self.draft.areas, cells_of(self.draft.areas, grid), strict=True):
            below.layers.append(Layer("area", maps.shape(view, cells, np.unique(cells.of[inside]))))
            x, y = view(grid.projection.to_metres(area.box[3], area.box[0])).tolist()
            below.areas.append(Named(x, y, area.name))
        x, y = view(cells.low).tolist()
        side = grid.cell * view.scale
        return msgspec.structs.replace(below, columns=grid.columns, rows=grid.rows, x=x, y=y, side=side)

    def state(self, number: int, epsilon: Exact, draw: int) -> State:
        """The facts of one state, and a reader's findings from one answer about a simulated person in it.

        ``draw`` : the number of the answer, which replays it. Raises InvalidInput for no state of the setting, and as a
        release would.
        """
        setup, space = self.setup, self.setup.space
        if not 0 <= number < space.n_states:
            raise InvalidInput("state", number, f"0 to {space.n_states - 1}")
        near = np.setdiff1d(setup.policy.neighbors(number), [number]).astype(np.int64)
        setting = Setting.of(setup.model, setup.policy, space, epsilon, **setup.choices)
        session = ReleaseSession.of(setting, bits=ReplayBits(f"studio {number} {draw}".encode()))
        plan = setting.plan(setting.first())
        answer = session.release(space.names[number])
        assert session.posterior is not None and answer.z is not None
        belief, degree = np.exp(session.posterior.log_probability), int(plan.degrees()[number])
        what, name = "label" if space.has_labels else state_name(space), space.names[number]
        lines = [
            f"{name} looks like {plural(len(near), f'other {what}')}",
            f"degree of protection: {degree} ({what}s that one answer hides it among, itself counted)",
            f"one answer of epsilon {in_short(setting.options.epsilon)} about an invented person there: "
            f"{in_words(belief, space, number)}",
        ]
        if space.has_labels:
            alike = np.isin(np.arange(space.n_states), [*near, number]).tolist()
            shares = [LabelBelief(*row) for row in zip(space.names, belief.tolist(), alike, strict=True)]
            return State(number, name, [*lines, f"the answer says {answer.z}"], [], shares)
        return State(number, name, lines, self._layers(number, near, belief, np.asarray(answer.z)), [])

    def _layers(self, number: int, near: IntArray, belief: FloatArray, z: FloatArray) -> list[Layer]:
        view, cells, layers = self.view, self.cells, []
        level = levels(cells.gathered(belief[None]))[0]
        for rank, style in enumerate(("b95", "b80", "b50"), 1):
            layers.append(Layer(style, maps.shape(view, cells, np.flatnonzero(level == rank))))
        layers.append(Layer("joined", maps.shape(view, cells, np.unique(cells.of[near]))))
        layers.append(Layer("chosen", maps.shape(view, cells, cells.of[[number]])))
        corners = view(self.setup.space.own_answers[number] + self.hull)
        layers.append(Layer("hull", _path(corners, close=True)))
        at, _ = view.kept(view(z[None]))
        x, y = at[0].tolist()
        layers.append(Layer("cross", f"M{x - 7:.1f} {y - 7:.1f}l14 14m0-14l-14 14"))
        return layers

    def plans_alike(self, other: Figures) -> bool:
        """True for drafts that differ in their budget alone."""
        same = msgspec.structs.replace(self.draft, budget=other.draft.budget) == other.draft
        return same and self.setup.model.digest == other.setup.model.digest

    def budgets(self, people: int, progress: Progress) -> Iterator[tuple[BudgetView, SchedulePlan]]:
        """The figures of the budget and of its alternatives, again and again: first its own, then beside the others.

        Raises InvalidInput and Unprotectable as `dphmm.choose.plan`, and whatever ``progress`` raises.
        """
        setup, draft = self.setup, self.draft
        promise = draft.promise
        world = World(
            *(setup.model, setup.policy, setup.space, promise),
            hours=draft.hours or None,
            epsilon=draft.epsilon or None,
            people=people,
            choices=setup.choices,
        )
        totals = world.totals(promise.exact)
        plans: list[SchedulePlan] = []
        for plan in world.plans(totals, progress, self.made.setdefault(people, {})):
            plans.append(plan)
            chosen = replace(plans[0], others=tuple(plans[1:]))
            yield self._budget(chosen, world, len(totals)), chosen

    def _budget(self, chosen: SchedulePlan, world: World, total: int) -> BudgetView:
        promise, findings = chosen.schedule.promise, replace(chosen.found, noun=self.setup.noun)
        answers = chosen.schedule.releases
        judged = verdict(answers, replayable=False, limited=True, found=findings, covered=self.setup.covered)
        limits = [f"one answer leaves {doubt_words(doubt(chosen.schedule.exact))}"]
        if answers > 1:
            every = f"{all_words(answers)} answers of {block_words(promise)}"
            limits.append(f"{every}: {doubt_words(doubt(promise.exact))}")
        return BudgetView(
            people=chosen.people,
            total=total,
            of=within(block_words(promise)),
            who=stay_words(chosen.unit),
            worth=WorthTable.of(chosen.by_total, promise.exact, [world.not_advised(plan) for plan in chosen.by_total]),
            verdict=[Sentence(line, rule in WARNS) for rule, line in zip(judged.rules, judged.lines, strict=True)],
            doubt=limits,
            notes=[note for note in (by_chance(chosen.chance),) if note],
            pictures=pictures(chosen) if len(chosen.by_total) == total else {},
        )


def pictures(plan: SchedulePlan) -> dict[str, str]:
    """The pictures of a plan, SVG by heading: the errors about people who stay, and those of each total."""
    drawn = (figures.nights_of_plan(plan), figures.ladder_of_plans(plan.by_total) if plan.others else None)
    return {figure.heading: str(figure.svg) for figure in drawn if figure is not None}


def in_words(belief: FloatArray, space: Any, number: int) -> str:
    """The mean error of a reader by a belief (N,), or the belief in the right label, in words."""
    if space.has_labels:
        return f"a reader is {100 * belief[number]:.0f} % sure of it"
    apart = space.distances(space.own_answers[number][None], space.own_answers)
    return f"a reader misses it by {off(float(belief @ apart), space.unit)} on average"


def open_map(ground: Ground) -> Map:
    """The map before a box is drawn: of the backdrop, or of the world."""
    if (grid := ground.grid) is not None:
        return ground.drawn(grid, View.around(np.zeros(2), np.array([grid.columns, grid.rows]) * grid.cell))
    width, height = maps.SIDE, maps.SIDE / 2
    x, y = (np.arange(_LINES, end, _LINES) / 360 * width for end in (360, 180))
    lines = [f"M{at:.1f} 0V{height:g}" for at in x] + [f"M0 {at:.1f}H{width:g}" for at in y]
    return Map(width, height, (-180.0, -90.0, 180.0, 90.0), [Layer("graticule", "".join(lines))], [], [])


def _path(points: FloatArray, *, close: bool) -> str:
    """A line through points (n, 2); a row of NaN begins another."""
    gaps = np.flatnonzero(np.isnan(points).any(axis=1))
    parts = (part[~np.isnan(part).any(axis=1)] for part in np.split(points, gaps))
    return "".join(
        "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in part.tolist()) + "Z" * close for part in parts if len(part)
    )


def written(promise: SequencePromise, noun: str, people: int, called: str) -> str:
    """The sentence on the spending of a release, before it is agreed to."""
    most = f"up to {in_short(promise.exact)} {within(block_words(promise))}"
    return f"This spends {most} of each of {plural(people, noun, called)}. It cannot be undone: the ledger keeps it."
