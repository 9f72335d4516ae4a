"""A finished release, read from its folder: what it says, and what a reader makes of its answers.

Nothing here is drawn or spent: it is made of what was published and of public data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._notebook import html_lines
from dphmm._progress import Progress
from dphmm.audit.released import ReleasedFile
from dphmm.errors import InvalidInput
from dphmm.mechanisms import make_known
from dphmm.session.setting import Setting
from dphmm.statement.files import load_statement
from dphmm.storage.inputs import PathLike
from dphmm.storage.made_tables import load_table
from dphmm.storage.models import load_model
from dphmm.storage.policies import load_policy, load_policy_space
from dphmm.storage.release_folder import MADE_TABLE, MODEL, PLAN, POLICY, ReleaseFolder
from dphmm.storage.released import as_released
from dphmm.storage.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

    from dphmm.accounting.promise import Schedule
    from dphmm.audit.check import CheckedRelease
    from dphmm.choose.schedule_plan import SchedulePlan
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.reconstruction.population import Population
    from dphmm.report.content import ReleaseReport
    from dphmm.session.odds import EventOdds
    from dphmm.statement.release import ReleaseStatement
    from dphmm.statement.story import Story
    from dphmm.statement.verdict import Found
    from dphmm.states.space import StateSpace


def open(folder: PathLike) -> Released:
    """The release in a folder that `Plan.release` or ``dphmm release`` wrote.

    Raises InvalidInput for anything else.

    Examples
    --------
    ``out = dphmm.open("out/")``; then ``out`` says what was published, and ``out.estimates()`` where people were.
    """
    place = ReleaseFolder.opened(folder)
    if (place.path / MADE_TABLE).exists():
        # A plan is made again only with a table that is known.
        make_known(load_table(place.path / MADE_TABLE))
    return Released(place)


@dataclass(frozen=True, eq=False)
class Released:
    """A release in its folder.

    folder : where it is; ``folder.path`` has what may be published, ``folder.owner`` what may not.
    """

    folder: ReleaseFolder

    @cached_property
    def statement(self) -> ReleaseStatement:
        """The privacy statement."""
        return load_statement(self.folder.table)

    @cached_property
    def model(self) -> MarkovModel:
        """The public model that the plans were made with."""
        return load_model(self.folder.path / MODEL)

    @cached_property
    def space(self) -> StateSpace:
        """The states, with those merged that the policy lists."""
        assert self.model.space is not None
        return load_policy_space(self.folder.path / POLICY, self.model.space)

    @cached_property
    def policy(self) -> PolicyGraph:
        """Which states must look alike."""
        return load_policy(self.folder.path / POLICY, self.space, self.model)

    @cached_property
    def plan(self) -> SchedulePlan | None:
        """The schedule, and what it was chosen from; None where every step has an answer."""
        from dphmm.choose.schedule_plan import read_plan

        path = self.folder.path / PLAN
        return read_plan(path, self.model, self.policy, self.space) if path.exists() else None

    @property
    def rows(self) -> pd.DataFrame:
        """The released rows: user, t, step, answers, epsilon, cost, plan. Rows that were not asked have no plan."""
        table: pd.DataFrame = self._table.to_pandas()
        return table

    @cached_property
    def _table(self) -> Any:
        return as_released(read_table(self.folder.table, text={"user", "plan", *["z"] * self.space.has_labels}))

    @cached_property
    def story(self) -> Story:
        """The verdict, what was published, found, guaranteed, spent, and not protected; facts, with their sentences."""
        from dphmm.statement.story import story

        statement = self.statement
        setting = Setting.read(statement.choices, self.model, self.policy, self.space)
        file = ReleasedFile.read(self.folder.table, self.space)
        asked = {user for user, plan in zip(file.users, file.plans, strict=True) if plan}
        return story(
            statement,
            statement.promise,
            statement.asking,
            None if self.plan is None else found_in(file, self.plan, self.model.step),
            missing="report() computes it for these rows",
            all_possible=setting.excludes_no_state,
            answered=len(asked),
        )

    # -- what a reader makes of it ------------------------------------------------------------------------------------

    def estimates(
        self, *, path: bool = False, own_places: bool = False, progress: bool | Progress = True
    ) -> pd.DataFrame:
        """Where people were, given all their answers: a row for each released one.

        Raises as `dphmm.smooth`, which says what the columns are.
        """
        from dphmm.decoding import smooth

        public, choices = self._public
        estimates: pd.DataFrame = smooth(
            self.rows, *public, path=path, own_places=own_places, progress=progress, **choices
        )
        return estimates

    def population(
        self, regions: Any = None, *, per: str = "all", flows: bool = False, zone: str = "+00:00",
        progress: bool | Progress = True,
    ) -> Population:  # fmt: skip
        """The shares of people in regions, with intervals, for all times, each "day", or "hour-of-day".

        Raises as `dphmm.population`.
        """
        from dphmm.reconstruction.population import population

        public, choices = self._public
        asking = self.statement.asking
        plan_choices = {name: choices[name] for name in choices if name not in ("query", "answer", "schedule")}
        return population(
            self.rows,
            *public,
            regions=regions,
            flows=flows,
            per=per,
            zone=zone,
            schedule=None if asking is None else asking.kind,
            progress=progress,
            **plan_choices,
        )

    def odds(
        self, states: Sequence[str], first: int | str, last: int | str, *, always: bool = False
    ) -> list[EventOdds]:
        """How the answers changed the odds that somebody was in states of these names, at the steps first to last.

        Raises as `dphmm.event_odds`, and InvalidInput for a name of no state.
        """
        from dphmm.decoding import event_odds

        numbers = [self.space.index_of(name) for name in states]
        if -1 in numbers:
            raise InvalidInput("states", repr(states[numbers.index(-1)]), "names of states of the model")
        public, choices = self._public
        return event_odds(self.rows, *public, numbers, first, last, always=always, **choices)

    def read_report(
        self, *, users: Sequence[str] = (), truth: Any = None, title: str = "What was released",
        progress: bool | Progress = True,
    ) -> ReleaseReport:  # fmt: skip
        """The report, as it is shown in a notebook; with the ``truth`` for the owner alone.

        Raises as `dphmm.report.read_report`.
        """
        from dphmm.report.assembling import read_report

        return read_report(
            self.folder.table, self.model, self.policy, title=title, users=users, truth=truth, plan=self.plan,
            progress=progress,
        )  # fmt: skip

    def report(
        self, path: PathLike | None = None, *, users: Sequence[str] = (), truth: Any = None,
        title: str = "What was released", progress: bool | Progress = True,
    ) -> Path:  # fmt: skip
        """Write the report as one page; by default report.html in the folder. Its path.

        With the ``truth`` it is for the owner alone, and lies in the owner's folder. Raises as `read_report`.
        """
        from dphmm.report.page import write_report

        made = self.read_report(users=users, truth=truth, title=title, progress=progress)
        if path is not None:
            return write_report(path, made)
        place = self.folder.path if truth is None else self.folder.owner
        written = write_report(place / ("report.html" if truth is None else "report.owner.html"), made)
        if truth is None:
            self.folder.keep([written.name])
        return written

    def check(self, ledger: PathLike | None = None) -> CheckedRelease:
        """Whether the release is what it says it is: rows, plans, statement, and with a ledger what was paid.

        Raises as `dphmm.audit.check_release`.
        """
        from dphmm.audit.check import WRONG, check_release
        from dphmm.storage.ledger import open_ledger

        with ExitStack() as held:
            opened = None if ledger is None else held.enter_context(open_ledger(ledger, read_only=True))
            file = None if ledger is None else Path(ledger)
            public = self.model, self.policy, self.space
            checked = check_release(self.folder.table, *public, ledger=opened, ledger_file=file)
            return checked.beside([(WRONG, "folder", line) for line in self.folder.others()])

    @property
    def _public(self) -> tuple[tuple[MarkovModel, PolicyGraph, StateSpace], dict[str, Any]]:
        """Model, policy and space, and the choices that the statement names."""
        statement, choices = self.statement, dict(self.statement.choices)
        choices.pop("epsilon", None)
        public = self.model, self.policy, self.space
        return public, {**choices, "query": statement.query, "answer": statement.answer or None,
                        "schedule": statement.asking}  # fmt: skip

    # -- what is told -------------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The facts of the story, for JSON."""
        return json.loads(json.dumps(self.story.document(), default=str))  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        words = self.story.words
        lines = [f"Released: {line}" for line in words("published")[:1]] + words("verdict")
        spent = [f"spent: {line}" for line in words("spent")[:1]]
        return "\n".join([*lines[:4], *spent])

    def _repr_html_(self) -> str:
        return html_lines(f"{label:<14} {line}" for label, line in self.story.rows())


def found_in(file: ReleasedFile, planned: SchedulePlan, step: int | None) -> Found | None:
    """What a reader finds of a released file by its plan, whose invented people have a row at every step from 1 on.

    None where somebody of the file has a hole in their rows, earlier answers in another file, or no whole block.
    """
    users, which = np.unique(np.array(file.users), return_inverse=True)
    order = np.lexsort((file.step, which))
    begins = np.searchsorted(which[order], np.arange(len(users) + 1))
    asked = np.bincount(which[file.asked], minlength=len(users)) if len(users) else np.zeros(1)
    blocks = 0
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        rows = order[begin:end]
        steps = file.step[rows]
        if steps[0] != 1 or steps[-1] != len(steps):
            return None
        whole = whole_blocks(planned.schedule, step, int(file.origin(int(rows[0]), step) or 1), len(steps))
        if not whole:
            return None
        blocks = max(blocks, whole)
    # Answers of parts of days about one place find it as those of whole ones.
    most = int(asked.max()) // max(1, planned.schedule.releases)
    return replace(planned.found, blocks=max(blocks, most))


def whole_blocks(schedule: Schedule, step: int | None, origin: int, steps: int) -> int:
    """How many whole blocks, or windows after one another, so many steps have whose first is the ``origin``-th."""
    promise = schedule.promise.in_steps(step, origin)
    if promise.local is not None:
        begins, ends = promise.bounds(np.arange(1, steps + 1))
        return len(np.unique(begins[(begins >= 1) & (ends <= steps + 1)]))
    length = promise.length(step)
    # What lies before the first block that begins in the rows.
    before = -promise.passed % length if promise.per is not None else 0
    return max(0, (steps - before) // length)
