"""A setting of releases (the states, the public model, the policy), and a plan of when people are asked under it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dphmm._checks import exact_epsilon, one_of
from dphmm._notebook import html_lines
from dphmm._progress import Progress, shown
from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.person import checked_noun
from dphmm.accounting.promise import KINDS, Schedule, SequencePromise
from dphmm.accounting.records import in_short
from dphmm.errors import InvalidInput
from dphmm.evaluation.table_check import TableCheck, check_table
from dphmm.markov.model import MarkovModel
from dphmm.policy import areas as areas_of
from dphmm.policy import complete, radius, union, with_end
from dphmm.policy.graph import PolicyGraph
from dphmm.release.batch import Batch
from dphmm.session.options import PlanChoices
from dphmm.session.setting import Setting, check_same_states
from dphmm.setup.person import Person
from dphmm.setup.releasing import FolderRelease, check_spelling, kept_ledger, new_ledger_words
from dphmm.statement.origin import whom, whom_of
from dphmm.statement.release import CoveredDistance
from dphmm.statement.sentences import block_words, lasting, plural, within
from dphmm.statement.warnings import no_limit
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.maps import MapSpace, parse_duration
from dphmm.states.space import StateSpace
from dphmm.storage.fits import fit
from dphmm.storage.geo_files import read_areas, read_zones
from dphmm.storage.inputs import PathLike
from dphmm.storage.publications import fit_once
from dphmm.storage.release_folder import TABLES, ReleaseFolder
from dphmm.storage.tables import is_path
from dphmm.storage.trajectories import load_visits
from dphmm.types import Bits, Exact

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.choose.schedule_plan import SchedulePlan
    from dphmm.setup.released import Released


class SetupChoices(PlanChoices, total=False):
    """The choices of a setting that have defaults."""

    noun: str


@dataclass(frozen=True, eq=False)
class Setup:
    """The public setting of a release: the states, the model of how people move, and the policy.

    Nothing of it may be taken from the rows that are released: each part is public in every proof. `grid`, `labels` and
    `fit` make one, `plan` chooses a schedule for a budget.

    Parameters
    ----------
    model : the public Markov model, with its states.
    policy : the pairs of states that must look alike.
    space : the states, by default those of the model; of a policy that merges some, with these merged.
    constraint, mechanism, protection, start : as `dphmm.ReleaseSession` has them.
    noun : the noun for a subject of the rows: vessel, case, device.

    Raises
    ------
    InvalidInput : a model without states, or parts that are not of the same states.

    Examples
    --------
    >>> import dphmm
    >>> box = (13.30, 52.48, 13.40, 52.54)
    >>> setup = dphmm.Setup.grid(box, cell="500m", step="10min", max_speed="20km/h", covers="1km")
    >>> setup
    Setup: 196 cells of a map, steps of 10 minutes
    places up to 1,000 m apart look alike
    """

    model: MarkovModel
    policy: PolicyGraph
    space: StateSpace = field(default=None)  # type: ignore[assignment]
    constraint: Any = "support"
    mechanism: Any = "auto"
    protection: str = "auto"
    start: str | None = None
    noun: str = "person"

    def __post_init__(self) -> None:
        if self.space is None:
            if self.model.space is None:
                raise InvalidInput("model", "one without states", "a model with its space, or the space beside it")
            object.__setattr__(self, "space", self.model.space)
        object.__setattr__(self, "noun", checked_noun(self.noun))
        check_same_states(self.model, self.policy, self.space)

    @property
    def covered(self) -> float | None:
        """The covered distance in metres; None for labels, and if no distance, or every distance, is covered."""
        distance = CoveredDistance.of([self.policy], self.space)
        metres = None if distance is None else distance.metres
        return float(metres) if isinstance(metres, (int, float)) and metres > 0 else None

    @property
    def choices(self) -> PlanChoices:
        """The keywords of a release under it, but for epsilon."""
        return PlanChoices(
            constraint=self.constraint, mechanism=self.mechanism, protection=self.protection, start=self.start
        )

    @classmethod
    def grid(
        cls,
        box: Sequence[float],
        *,
        cell: object,
        step: object,
        max_speed: object,
        covers: object = None,
        areas: PathLike | None = None,
        policy: PolicyGraph | None = None,
        stay: object = 0.9,
        jump: object = 0.001,
        **choices: Unpack[SetupChoices],
    ) -> Setup:
        """Square cells over a box, and people who stay or move within reach, the same everywhere.

        Parameters
        ----------
        box : (west, south, east, north) in degrees; public, never taken from the rows.
        cell : metres, or "340m", "1km".
        step : seconds, or "10min": one answer a step at most.
        max_speed : metres per second, or "20km/h".
        covers : places up to this distance look alike.
        areas : a file of polygons; cells whose centre lies in one look alike, beside those of ``covers``, if given.
        policy : in place of both.
        stay, jump : as `dphmm.MarkovModel.from_geometry` has them.

        Raises
        ------
        InvalidInput : naming the argument.
        """
        space = Grid.from_bounds(*_checked_box(box), cell)
        model = MarkovModel.from_geometry(space, step, max_speed, stay=stay, jump=jump)
        return cls(model, _policy(space, covers, areas, policy), space, **choices)

    @classmethod
    def h3(
        cls,
        box: Sequence[float],
        *,
        resolution: int,
        step: object,
        max_speed: object,
        covers: object = None,
        areas: PathLike | None = None,
        policy: PolicyGraph | None = None,
        stay: object = 0.9,
        jump: object = 0.001,
        **choices: Unpack[SetupChoices],
    ) -> Setup:
        """Hexagons of H3 over a box, in place of the squares of `grid`; needs the extra "h3".

        ``resolution`` : of the cells, 8 for about 460 m from the middle to a corner. The other arguments, and errors,
        are those of `grid`.
        """
        space = H3.over(*_checked_box(box), resolution)
        model = MarkovModel.from_geometry(space, step, max_speed, stay=stay, jump=jump)
        return cls(model, _policy(space, covers, areas, policy), space, **choices)

    @classmethod
    def zones(
        cls,
        file: PathLike,
        *,
        name: str,
        step: object,
        max_speed: object,
        policy: PolicyGraph | None = None,
        stay: object = 0.9,
        jump: object = 0.001,
        **choices: Unpack[SetupChoices],
    ) -> Setup:
        """Zones of a map, such as wards: polygons of a ``file``, called by its column ``name``; needs the extra "geo".

        ``policy`` : by default every two zones look alike; zones have no covered distance. The other arguments are
        those of `grid`. Raises InvalidInput naming the argument.
        """
        space = read_zones(file, name)
        model = MarkovModel.from_geometry(space, step, max_speed, stay=stay, jump=jump)
        return cls(model, complete(space.n_states) if policy is None else policy, space, **choices)

    @classmethod
    def labels(
        cls,
        names: Sequence[str],
        *,
        moves: Any = None,
        first: Any = None,
        step: object = None,
        policy: PolicyGraph | None = None,
        **choices: Unpack[SetupChoices],
    ) -> Setup:
        """States that are names, and answers that are names.

        Parameters
        ----------
        names : of all states (N,), public.
        moves : weights (N, N) of moves, from each row's state; by default every move alike.
        first : weights (N,) of first states, by default all alike.
        step : seconds, or "1d"; None where every row is a step.
        policy : by default every two labels look alike. END is joined to all of them.

        Raises
        ------
        InvalidInput : naming the argument.

        >>> import dphmm
        >>> dphmm.Setup.labels(["home", "work", "away"])
        Setup: 3 labels, a step for each row
        every two labels look alike
        """
        space = StateSpace.labels(names)
        n = space.n_states
        weights = np.ones((n, n)) if moves is None else np.asarray(moves, dtype=np.float64)
        begins = np.ones(n) if first is None else np.asarray(first, dtype=np.float64)
        if weights.shape != (n, n) or not (weights >= 0).all() or not (weights.sum(axis=1) > 0).all():
            raise InvalidInput("moves", f"an array {weights.shape}", f"weights ({n}, {n}), each row with one above 0")
        if begins.shape != (n,) or not (begins >= 0).all() or not begins.sum() > 0:
            raise InvalidInput("first", f"an array {begins.shape}", f"weights ({n},), one of them above 0")
        law, matrix = begins / begins.sum(), weights / weights.sum(axis=1, keepdims=True)
        seconds = None if step is None else parse_duration(step, "step")
        model = MarkovModel(law, matrix, space=space, start="at", step=seconds)
        return cls(model, complete(n) if policy is None else with_end(policy, space), space, **choices)

    @classmethod
    def fit(
        cls,
        table: Any,
        space: StateSpace,
        *,
        epsilon: Exact | None,
        max_length: int | None = None,
        max_sequences: int = 1,
        step: object = None,
        covers: object = None,
        policy: PolicyGraph | None = None,
        timezone: str | None = None,
        ledger: Ledger | None = None,
        id: str = "model",
        **choices: Unpack[SetupChoices],
    ) -> Setup:
        """A model that is fitted to a table; with ``epsilon`` privately.

        Parameters
        ----------
        table : rows of ``user``, ``t`` or none, and ``lat``, ``lon`` or ``state``.
        space : the states, public.
        epsilon : the privacy loss of the fit; None fits without privacy, on other people than those to be released.
        max_length, max_sequences : with epsilon, so many steps of so many sequences of a person count.
        ledger, id : the ledger that counts a private fit for everybody, and its id there; without one nobody counts it.
        step, covers, policy : as of `grid`; timezone : as of `dphmm.storage.fit`.

        Raises
        ------
        InvalidInput : naming the argument. BudgetExceeded : for a ledger without room for the fit.
        """
        options: dict[str, Any] = {"step": step, "timezone": timezone}
        if epsilon is not None:
            options |= {"epsilon": epsilon, "max_length": max_length, "max_sequences": max_sequences}
        if ledger is None:
            model = fit(table, space, **options)
        elif epsilon is None:
            raise InvalidInput("ledger", "one, for a fit without privacy", "an epsilon, which the ledger counts")
        else:
            model = fit_once(ledger, id, lambda admit: fit(table, space, admit=admit, **options))
        states = space if model.space is None else model.space
        made = (
            _policy(states, covers, None, policy)
            if isinstance(states, MapSpace)
            else policy or complete(states.n_states)
        )
        return cls(model, with_end(made, states), states, **choices)

    def plan(
        self,
        budget: Exact | None = None,
        per: int | str | None = None,
        *,
        steps: int | None = None,
        window: int | None = None,
        zone: str = "+00:00",
        epsilon: Exact | None = None,
        schedule: str = "planned",
        hours: str | None = None,
        people: int = 100,
        seed: int = 1,
        progress: bool | Progress = True,
    ) -> Plan:
        """Choose a schedule for a budget, from the model alone: nobody's rows are looked at, and nothing is spent.

        Parameters
        ----------
        budget : the bound on the loss of all answers about a person in a block of ``per`` ("1d", or a number of steps),
            in a ``window`` of so many steps in a row, or over a sequence of so many ``steps``.
        zone : the clock of blocks of days: "+01:00", "Europe/Berlin".
        epsilon : of one answer; by default that of least error. Without a ``budget`` every step has an answer, and
            nothing limits their joint loss.
        schedule : "planned": fixed public times. "staggered": as many, moved by each person and day. "paced": times
            chosen from what was published before. "every": every step has an answer, of an equal part of the budget.
        hours : as "7-21": only these hours are asked.
        people, seed : the number of simulated people, whose errors are told, and their seed.

        Raises
        ------
        InvalidInput : naming the argument. DphmmError : if no schedule that was tried is advised.
        """
        from dphmm.choose.planning import plan

        one_of(schedule, (*KINDS, "every"), "schedule")
        if budget is None:
            if epsilon is None:
                raise InvalidInput("budget", "nothing", "what all answers of a day may lose together, with per='1d'")
            return Plan(self, epsilon=epsilon)
        promise = SequencePromise(budget, steps=steps, window=window, per=per, zone=zone)
        if schedule == "every":
            return Plan(self, promise=promise, epsilon=promise.each(self.model.step) if epsilon is None else epsilon)
        public = (self.model, self.policy, self.space, promise)
        planned = plan(
            *public,
            schedule=schedule,
            hours=hours,
            epsilon=epsilon,
            people=people,
            seed=seed,
            progress=progress,
            **self.choices,
        )
        return Plan(self, promise=promise, planned=planned)

    def _lines(self) -> list[str]:
        """The setting in words of the field."""

        n, step = self.space.n_states, self.model.step
        of = "labels" if self.space.has_labels else "cells of a map" if isinstance(self.space, MapSpace) else "states"
        steps = "a step for each row" if step is None else f"steps of {lasting(step)}"
        if self.policy.describe()["kind"] == "complete":
            alike = f"every two {of.split(' ')[0]} look alike"
        elif self.covered is not None:
            alike = f"places up to {self.covered:,.0f} m apart look alike"
        else:
            alike = f"{self.policy.describe()['kind']} policy"
        noun = f", one {self.noun} after the other" if self.noun != "person" else ""
        return [f"Setup: {n:,} {of}, {steps}{noun}", alike]

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return html_lines(self._lines())


@dataclass(frozen=True, eq=False)
class Plan:
    """A schedule and an epsilon for releases under a setting: the result of `Setup.plan`.

    setup : the setting.
    promise : the bound on the loss of all answers about a person together; None without a limit.
    epsilon : of each answer, if every step has one.
    planned : the schedule, its candidates, and a reader's findings; None if every step has an answer.

    Examples
    --------
    >>> import dphmm
    >>> setup = dphmm.Setup.labels(["home", "work"], moves=[[9, 1], [1, 9]])
    >>> plan = setup.plan(2, per=8, epsilon=1, people=20, progress=False)
    >>> print(plan.lines[0])
    2 answers of epsilon 1 each in each 8 steps: at most 2 for each person
    """

    setup: Setup
    promise: SequencePromise | None = None
    epsilon: Exact | None = None
    planned: SchedulePlan | None = None

    @property
    def schedule(self) -> Schedule | None:
        """The steps that are asked; None for all."""
        return None if self.planned is None else self.planned.schedule

    def check(self, table: Any, ledger: Ledger | None = None, *, timezone: str | None = None) -> TableCheck:
        """The check of a table for a release by this plan, for its owner alone; nothing is spent or written.

        ``ledger`` : the ledger with these people's remaining budgets. Raises as `dphmm.evaluation.check_table`.
        """
        setup = self.setup
        return check_table(
            *(table, setup.model, setup.policy, setup.space, self.epsilon),
            timezone=timezone,
            ledger=ledger,
            promise=self.promise,
            schedule=self.schedule,
            **setup.choices,
        )

    def release(
        self,
        table: Any,
        folder: PathLike,
        *,
        ledger: PathLike | None = None,
        new: bool = False,
        query: str = "state",
        answer: str = "last",
        model_people: str | None = None,
        case_names: str | None = None,
        times: str = "none",
        length: int | None = None,
        timezone: str | None = None,
        spelling: str | None = None,
        check: bool = True,
        although: bool = False,
        min_people: int = 1,
        bits: Bits | None = None,
        progress: bool | Progress = True,
    ) -> Released:
        """Release a table: a noisy answer for each person and step that is asked, in a folder.

        Every answer is stored in the ledger before it can be seen. A person whom the ledger knows is continued: stored
        answers come back, and only new rows are asked and paid for, so the same call twice spends once.

        Parameters
        ----------
        table : rows of ``user``, ``t`` and ``lat``, ``lon`` or ``state``: a pandas, polars or Arrow table, or the path
            of a file.
        folder : of the files to publish, "out/"; those for you alone lie in "out.owner/" beside it.
        ledger : the file that counts what was spent; by default the one that the folder was released with, else
            ledger.db beside the folder.
        new : refuse people whom the ledger knows.
        query : another question about the same people has a name and a folder of its own.
        answer : of several rows of a person in one step the "last" or the "first" is answered.
        model_people : the people that the model was fitted on: "others", the "same" people, or "unknown".
        case_names, times : for cases as ``import_trajectories(source, "events")`` reads them: names "random" or
            "kept", and the published times of events, "none", their "day" or "exact".
        length : for cases that were read with this ``length``: every case has so many rows.
        timezone : of times without a zone.
        spelling : the rule of a new ledger: spellings of a name are the "same" person, or "exact" names are several.
        check, although, min_people : as `dphmm.release_many` has them.
        bits : a source of noise that can be replayed, for tests: such a release is marked as not private.

        Raises
        ------
        InvalidInput : before anything is drawn, for rows that cannot be read or lie in the folder, a table that cannot
            be meant, a folder of another release, or one whose ledger is missing. BudgetExceeded, Unprotectable,
            LedgerBusy : as `dphmm.release_many`.
        """
        setup, place = self.setup, ReleaseFolder.of(folder)
        place.check()
        if is_path(table):
            place.check_source(table)
        counted, public = place.ledger(ledger), (setup.model, setup.policy, setup.space, self.epsilon)
        people = whom_of(setup.model.provenance, whom(model_people, None))
        with kept_ledger(counted, spelling) as store:
            held = store or MemoryLedger(spelling or "same")
            batch = Batch(
                *public,
                promise=self.promise,
                schedule=self.schedule,
                query=query,
                answer=answer,
                ledger=held,
                check=check,
                although=although,
                min_people=min_people,
                noun=setup.noun,
                case_names=case_names,
                times=times,
                length=length,
                **setup.choices,
            )
            loaded = load_visits(
                table, setup.space, setup.model.step, answer, timezone=timezone, spelling=held.spelling
            )
            if len(loaded.rejected) and not is_path(table):
                unread = f"{len(loaded.rejected)} rows that cannot be read"
                raise InvalidInput("table", unread, "a user, a time and a place or state in every row")
            check_spelling(spelling, counted, loaded.visits.users, loaded.alike)
            batch.check_meant(loaded.visits)
        if (words := new_ledger_words(counted)) is not None:
            print(words, file=sys.stderr)
        release = FolderRelease(batch, self.planned, place, place.table_or(TABLES[0]), counted, spelling, new, bits)
        source = str(table) if is_path(table) else None
        done = release.write(loaded, people, source, lambda _: shown(progress, "release"))
        if done.unanswered is not None:
            warnings.warn(done.unanswered, UserWarning, stacklevel=2)
        done.released.learn(keep=True, progress=progress)
        return done.released

    def person(self, name: str, ledger: Ledger, *, query: str = "state") -> Person:
        """A person who is asked by this plan as time goes by; one whom the ledger knows is continued."""
        setup = self.setup
        batch = Batch(
            *(setup.model, setup.policy, setup.space, self.epsilon),
            promise=self.promise,
            schedule=self.schedule,
            query=query,
            answer="first",
            ledger=ledger,
            check=False,
            **setup.choices,
        )
        return Person(name, batch)

    # -- what is told -----------------------------------------------------------------------------------------------

    @property
    def _setting(self) -> Setting:
        setup = self.setup
        assert self.epsilon is not None
        return Setting.of(setup.model, setup.policy, setup.space, self.epsilon, **setup.choices)

    @property
    def lines(self) -> list[str]:
        """The planned answers, and a reader's findings about people who move as the model says, in words."""
        from dphmm.choose.planning import without_limit

        noun = self.setup.noun
        if self.promise is None:
            assert self.epsilon is not None
            each = in_short(exact_epsilon(self.epsilon))
            return [f"an answer of epsilon {each} at every step", no_limit(without_limit(self._setting))]
        total, of = in_short(self.promise.exact), block_words(self.promise)
        if self.planned is None:
            assert self.epsilon is not None
            each = in_short(exact_epsilon(self.epsilon))
            return [f"an answer of epsilon {each} at every step: at most {total} {within(of)} for each {noun}"]
        at = self.planned.schedule
        asked = f"{plural(at.releases, 'answer')} of epsilon {in_short(at.exact)} each"
        return [f"{asked} {within(of)}: at most {total} for each {noun}", *self.planned.found.lines]

    def __repr__(self) -> str:
        return "\n".join(["Plan: " + self.lines[0], *self.lines[1:]][:5])

    def _repr_html_(self) -> str:
        ladder = "" if self.planned is None else self.planned._repr_html_()
        return html_lines(self.lines) + ladder


def _checked_box(box: Sequence[float]) -> tuple[float, float, float, float]:
    if len(box) != 4:
        raise InvalidInput("box", box, "(west, south, east, north) in degrees")
    west, south, east, north = box
    return west, south, east, north


def _policy(space: StateSpace, covers: object, areas: PathLike | None, policy: PolicyGraph | None) -> PolicyGraph:
    if (covers is None and areas is None) == (policy is None):
        both = "nothing" if policy is None else "both covers or areas and a policy"
        raise InvalidInput(
            "covers", both, "covers, a distance such as '1km', or areas, a file; or policy in their place"
        )
    if policy is not None:
        return policy
    parts = [] if covers is None else [radius(space, covers=covers)]
    drawn = [] if areas is None else [areas_of(list(read_areas(areas, space).values()), space.n_states)]
    return union(*parts, *drawn)
