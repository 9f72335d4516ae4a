"""A finished release, read from its folder: its statement, and a reader's estimates from its answers.

Nothing here is drawn or spent: it is made of published answers and public data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dphmm._checks import whole
from dphmm._notebook import html_lines
from dphmm._progress import Progress, shown
from dphmm.accounting.records import in_short
from dphmm.audit.released import ReleasedFile, table_of_lines
from dphmm.errors import InvalidInput
from dphmm.mechanisms import make_known
from dphmm.session.plan import ALGORITHM_VERSION
from dphmm.session.setting import Setting, Subjects
from dphmm.setup.publishing import PublicSide
from dphmm.statement.files import changed_words, load_statement, statement_path, write_statement
from dphmm.statement.parts import member
from dphmm.storage.inputs import PathLike, file_digest
from dphmm.storage.json_lines import is_json_lines
from dphmm.storage.made_tables import load_table
from dphmm.storage.models import load_model
from dphmm.storage.policies import load_policy, load_policy_space
from dphmm.storage.release_folder import INDEX, LEARNED, MADE_TABLE, MODEL, PLAN, POLICY, ReleaseFolder
from dphmm.storage.released import ReleasedRows, as_released, released_rows, text_columns
from dphmm.storage.tables import read_table, to_arrow, write_table
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from dphmm.accounting.ledger import Ledger
    from dphmm.accounting.promise import Schedule
    from dphmm.audit.attacks.attack import AttackReport
    from dphmm.audit.check import CheckedRelease
    from dphmm.choose.schedule_plan import SchedulePlan
    from dphmm.learning.learn import Drawn, Learned
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.reconstruction.aggregates import Population
    from dphmm.report.assembling import ReportChoices
    from dphmm.report.content import ReleaseReport
    from dphmm.report.svg import Figure
    from dphmm.session.odds import EventOdds
    from dphmm.session.own_places import OwnPlaces
    from dphmm.session.smoothing import SmoothedSteps
    from dphmm.statement.release import ReleaseStatement
    from dphmm.statement.story import Story
    from dphmm.statement.verdict import ReaderFindings
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

    folder : its place; ``folder.path`` has the files that may be published, ``folder.owner`` the others.
    """

    folder: ReleaseFolder

    @classmethod
    def write(
        cls,
        folder: PathLike,
        rows: Any,
        statement: ReleaseStatement,
        public: tuple[MarkovModel, PolicyGraph, StateSpace],
    ) -> Released:
        """Write rows that were released elsewhere, as by Spark, into a folder of their own.

        rows : a pandas, polars or Arrow table of `dphmm.release_many`, by person and step. statement: their
        privacy statement. public: model, policy and space. Raises InvalidInput for a folder that has files.
        """
        place = ReleaseFolder.of(folder)
        if (place.path / INDEX).exists():
            raise InvalidInput("folder", f"{place.path}, which has a release", "a new folder")
        place.create()
        PublicSide(*public, mechanism=statement.choices["mechanism"]).save(place)
        table = place.path / "released.parquet"
        write_table(str(table), to_arrow(rows))
        write_statement(table, statement)
        place.keep([table.name, statement_path(table).name])
        return cls(place)

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
        """The policy graph: the pairs of states that must look alike."""
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
        table: pd.DataFrame = as_released(self._table).to_pandas()
        return table

    @cached_property
    def _table(self) -> Any:
        import pyarrow.compute as pc

        path = self.folder.table
        if is_json_lines(path):
            return as_released(table_of_lines(path))
        table = as_released(read_table(path, text=set(text_columns(self.space))))
        # Text cannot tell an empty cell from none.
        at, plans = table.column_names.index("plan"), table.column("plan")
        return table.set_column(at, "plan", pc.if_else(pc.equal(plans, ""), None, plans))

    @cached_property
    def answers(self) -> ReleasedRows:
        """The rows as a reader has them. Raises InvalidInput for a table that is no release of these states."""
        return released_rows(self._table, self.space)

    @cached_property
    def subjects(self) -> Subjects:
        """The setting that everybody was released under, by the privacy statement.

        Raises InvalidInput for a statement about another model, policy or map, or of another version of the algorithm,
        and for choices of single steps and beginnings of people, which only a program can name.
        """
        statement = self.statement
        self._check_stated()
        for name in ("varied", "beginnings"):
            if member(statement, name) is not None:
                expected = "a release without; functions of dphmm in Python take its step_choices and initials"
                raise InvalidInput("released", f"{self.folder.path.name}, whose statement has {name}", expected)
        return Subjects(Setting.read(statement.choices, self.model, self.policy, self.space))

    def _check_stated(self) -> None:
        statement = self.statement
        if statement.algorithm_version != ALGORITHM_VERSION:
            fault = f"one of algorithm version {statement.algorithm_version} ({statement.software.version})"
            raise InvalidInput("statement", fault, f"version {ALGORITHM_VERSION}: other versions make other plans")
        for part, stated, digest in (
            ("model", statement.model.sha256, self.model.digest),
            ("policy", statement.policy.sha256, self.policy.digest),
            ("space", statement.space.sha256, self.space.digest),
        ):
            if stated != digest:
                fault = f"{self.folder.path.name}, which has another {part} than its privacy statement names"
                raise InvalidInput("released", fault, f"the {part} of the release")

    @property
    def changed(self) -> str | None:
        """A warning if the table is not the one of the privacy statement; None if it is."""
        table = self.folder.table
        return changed_words(self.statement, statement_path(table), table, file_digest(table))

    @cached_property
    def story(self) -> Story:
        """The verdict, what was published, found, guaranteed, spent, and not protected; facts, with their sentences."""
        from dphmm.statement.story import COMPUTED_BY_REPORT, story

        statement = self.statement
        setting = Setting.read(statement.choices, self.model, self.policy, self.space)
        rows = self.answers
        asked = {user for user, plan in zip(rows.users, rows.plans, strict=True) if plan}
        page = ", and report.html has its last figures" if "report.html" in self.folder.files() else ""
        return story(
            statement,
            statement.promise,
            statement.asking,
            None if self.plan is None else found_in(rows, self.plan, self.model.step),
            missing=COMPUTED_BY_REPORT + page,
            all_possible=setting.excludes_no_state,
            answered=len(asked),
        )

    # -- what a reader makes of it ------------------------------------------------------------------------------------

    def smoothed(
        self,
        *,
        beside: Sequence[Released] = (),
        path: bool = False,
        marginals: bool = False,
        own_places: bool = False,
        believe: MarkovModel | None = None,
        progress: Progress | None = None,
    ) -> tuple[SmoothedSteps, OwnPlaces | None]:
        """Each row's estimate from all answers of the person, also in releases ``beside``; and people's own places.

        ``believe``: as of `estimates`. Raises as `dphmm.reconstruction.smooth`.
        """
        from dphmm.release.decoding import own_places_of, smooth_rows

        believe = self.learned.model if believe is None else believe
        others = [(release.answers, release.subjects) for release in beside]
        places = own_places_of(self.answers, self.subjects, others, believe) if own_places else None
        steps = smooth_rows(
            *(self.answers, self.subjects, believe),
            beside=others,
            path=path,
            marginals=marginals,
            places=places,
            progress=progress,
        )
        return steps, places

    @cached_property
    def learned(self) -> Learned:
        """The model learned when the release was made: answers are read with its ``model``.

        The public model, with the reason, if nothing was learned from this table.
        """
        from dphmm.learning.learn import Learned

        path, table = self.folder.path / LEARNED, self.folder.table
        stored = Learned.stored(load_model(path), self.model, file_digest(table)) if path.exists() else None
        return stored or Learned.public(self.model, 0, "the folder has no model that was learned from its table")

    @cached_property
    def drawn(self) -> Drawn:
        """The people whose answers `learn` learns from, and how long that takes."""
        from dphmm.learning.learn import Drawn

        return Drawn.of(self.answers, self.model)

    def learn(
        self, *, beside: Sequence[Released] = (), keep: bool = False, progress: bool | Progress = True
    ) -> Learned:
        """Learn from all answers how people move: the result's ``model`` is to read with, as ``believe``.

        ``beside`` : other releases about the same people. ``keep``: in the folder, whose readers take it from then on.
        Raises as `dphmm.reconstruction.learn`; the public model is kept if plans cannot be made again.
        """
        from dphmm.learning.learn import Learned, learn_rows

        try:
            with shown(progress, "learn") as report:
                learned = learn_rows(
                    *(self.answers, self.subjects),
                    beside=[(release.answers, release.subjects) for release in beside],
                    files=[file_digest(release.folder.table) for release in (self, *beside)],
                    drawn=self.drawn,
                    progress=report,
                )
        except InvalidInput as error:
            if not keep:
                raise
            learned = Learned.public(self.model, 0, str(error))
        if keep:
            self._keep(learned)
        return learned

    def _keep(self, learned: Learned) -> None:
        """Have the folder's readers take what was learned; of the public model there is no file, nor an older one."""
        from dphmm.storage.models import save_model

        self.__dict__["learned"], path = learned, self.folder.path / LEARNED
        if learned.model is not self.model:
            save_model(learned.model, path)
        elif path.exists():
            path.unlink()
        else:
            return
        self.folder.keep([LEARNED])

    def estimates(
        self,
        *,
        beside: Sequence[Released] = (),
        path: bool = False,
        own_places: bool = False,
        believe: MarkovModel | None = None,
        progress: bool = True,
    ) -> pd.DataFrame:
        """The estimated places of people, given all their answers: a row for each released one.

        ``beside`` : other releases about the same people, whose answers count too. ``path``: also the likeliest path.
        ``own_places``: learn the places that each person returns to, if that helps. ``believe``: a model to read
        with in place of the `learned` one; ``model`` is the public one. Raises as `dphmm.reconstruction.smooth`, which
        describes the columns.
        """
        from dphmm.storage.released import smoothed_table

        with shown(progress, "smooth") as report:
            steps, _ = self.smoothed(beside=beside, path=path, own_places=own_places, believe=believe, progress=report)
        table: pd.DataFrame = smoothed_table(self.answers, steps, self.space).to_pandas()
        return table

    def at(self, person: str, moment: int | str) -> Moment:
        """The answer about a person at a moment: a number of a step, "14:00" (UTC), or a time.

        Of several days "14:00" is the first that has a row then. Raises InvalidInput for a person or a moment without a
        row.

        Examples
        --------
        ``dphmm.open("out/").at("anna", "14:00").map()`` draws the answer, and where a reader believes her to be.
        """
        import pandas as pd

        rows = self.rows
        of_person = rows[rows["user"] == person].reset_index(drop=True)
        if not len(of_person):
            raise InvalidInput("person", repr(person), f"one who was released, such as {rows['user'].iloc[0]!r}")
        if isinstance(moment, int) or "t" not in of_person.columns:
            there = of_person["step"].astype(str) == str(moment)
        else:
            times = pd.to_datetime(of_person["t"], utc=True)
            is_clock = re.fullmatch("[0-9]{2}:[0-9]{2}", moment) is not None
            there = times.dt.strftime("%H:%M") == moment if is_clock else times == _utc(moment)
        if not there.any():
            known = of_person["t"].iloc[0] if "t" in of_person.columns else of_person["step"].iloc[0]
            raise InvalidInput("moment", repr(moment), f"one of a row of {person}, such as {known}")
        row = {str(name): value for name, value in of_person[there].iloc[0].items()}
        return Moment(self, person, int(there.to_numpy().argmax()), row)

    def population(
        self,
        regions: Any = None,
        *,
        per: str = "all",
        flows: bool = False,
        zone: str = "+00:00",
        believe: MarkovModel | None = None,
        progress: bool | Progress = True,
    ) -> Population:
        """The shares of people in regions, with intervals, as `population` has them.

        ``believe``: the model from which the likeliest density and flows start, as of `estimates`. Raises as
        `population`.
        """
        from dphmm.reconstruction.aggregates import population_of_rows
        from dphmm.reconstruction.regions import checked_regions

        asking = self.statement.asking
        with shown(progress, "population") as report:
            return population_of_rows(
                self.answers,
                self.subjects,
                None if regions is None else checked_regions(regions, self.space),
                flows=flows,
                per=per,
                zone=zone,
                schedule="planned" if asking is None else asking.kind,
                believe=self.learned.model if believe is None else believe,
                progress=report,
            )

    def by_position(self, steps: int, *, believe: MarkovModel | None = None) -> pa.Table:
        """The shares of states at positions 1 to ``steps``, asked or not: columns position, state, share.

        They are the marginals of the model that answers are read with, and as public as it is. ``believe``: as of
        `estimates`. Raises InvalidInput for a model whose steps are times.
        """
        import pyarrow as pa

        from dphmm.choose.simulated import laws_of_steps

        model = self.learned.model if believe is None else believe
        if model.step is not None:
            raise InvalidInput("model", f"steps of {model.step} s", "a model without a step, whose steps are positions")
        at = np.arange(1, whole(steps, "steps", 1) + 1)
        shares = np.concatenate(list(laws_of_steps(model, at, self.subjects.setting.options.start)))
        names = list(self.space.names) * len(at)
        return pa.table({"position": np.repeat(at, self.space.n_states), "state": names, "share": shares})

    def odds(
        self,
        states: Sequence[str],
        first: int | str,
        last: int | str,
        *,
        always: bool = False,
        beside: Sequence[Released] = (),
        users: Sequence[str] | None = None,
        believe: MarkovModel | None = None,
        progress: Progress | None = None,
    ) -> list[EventOdds]:
        """The change, by the answers, of the odds that somebody was in states of these names, at steps first to last.

        Raises as `dphmm.reconstruction.event_odds`, and InvalidInput for a name of no state.
        """
        from dphmm.release.decoding import odds_of_rows

        numbers = named_states(self.space, states, "states")
        others = [(release.answers, release.subjects) for release in beside]
        event = (self.answers, self.subjects, numbers, first, last)
        return odds_of_rows(*event, always=always, beside=others, users=users, believe=believe, progress=progress)

    def read_report(
        self,
        *,
        ledger: Ledger | None = None,
        believe: MarkovModel | None = None,
        progress: bool | Progress = True,
        stage: Callable[[str], None] | None = None,
        **choices: Unpack[ReportChoices],
    ) -> ReleaseReport:
        """The report, as it is shown in a notebook; with the ``truth`` for the owner alone.

        ``ledger`` : counts what was spent over all files and queries. ``believe``: as of `estimates`; the page says
        with which model answers were read. ``choices`` and errors are those of `dphmm.report.read_report`.
        """
        from dphmm.report.assembling import confirmed_report
        from dphmm.report.content import Made

        table = self.folder.table
        notes = [f"{table.name} was changed since its privacy statement was written."] * (self.changed is not None)
        file, made = ReleasedFile.read(table, self.space), Made(self.model, self.space, self.statement, self.subjects)
        with shown(progress, "report") as report:
            return confirmed_report(
                *(table, file, made, self.policy),
                ledger=ledger,
                plan=self.plan,
                notes=notes,
                believe=self.learned.model if believe is None else believe,
                progress=report,
                stage=stage,
                **choices,
            )

    def report(
        self,
        path: PathLike | None = None,
        *,
        ledger: Ledger | None = None,
        believe: MarkovModel | None = None,
        progress: bool | Progress = True,
        **choices: Unpack[ReportChoices],
    ) -> Path:
        """Write the report as one page, and return its path: by default report.html in the folder.

        With a ``truth`` it is for the owner alone, and lies in the owner's folder. ``choices`` and errors are those of
        `read_report`.
        """
        from dphmm.report.page import write_report

        made = self.read_report(ledger=ledger, believe=believe, progress=progress, **choices)
        if path is not None:
            return write_report(path, made)
        return self.written_report(made)

    def written_report(self, made: ReleaseReport) -> Path:
        """The path of a report that is written where it belongs."""
        from dphmm.report.page import write_report

        if made.owner_only:
            return write_report(self.folder.owner / "report.owner.html", made)
        page = write_report(self.folder.path / "report.html", made)
        self.folder.keep([page.name])
        return page

    def attacked(self, truth: Any, ledger: Ledger | None = None) -> AttackReport:
        """The success of attacks on the answers, measured by the ``truth``, for the owner alone.

        One adversary reads with the `learned` model, if there is one. Raises as `dphmm.audit.attack`.
        """
        from dphmm.audit.attacks.attack import attack

        statement, options = self.statement, self.subjects.setting.options
        public = (self.model, self.policy, self.space, options.epsilon)
        with_model: dict[str, Any] = {"ledger": ledger, "query": statement.query, "believe": self.learned.model}
        return attack(self.folder.table, truth, *public, **with_model, **options.choices)

    def check(self, ledger: PathLike | None = None) -> CheckedRelease:
        """The checks of the release's rows, plans and statement, and with a ledger of its charges.

        Raises as `dphmm.audit.check_release`.
        """
        from dphmm.storage.ledger import open_ledger

        with ExitStack() as held:
            opened = None if ledger is None else held.enter_context(open_ledger(ledger, read_only=True))
            return self.checked(opened, None if ledger is None else Path(ledger))

    def checked(
        self, ledger: Ledger | None = None, ledger_file: Path | None = None, plain: PathLike | None = None
    ) -> CheckedRelease:
        """The same with a ledger that is open; ``plain``: a folder to keep what `verify_release.py` reads."""
        from dphmm.audit.check import WRONG, check_release

        public = self.model, self.policy, self.space
        file = ledger_file if ledger_file is not None and ledger_file.is_file() else None
        verdict = check_release(self.folder.table, *public, ledger=ledger, ledger_file=file, plain=plain)
        others = [(WRONG, "folder", line) for line in self.folder.others()]
        if not (verdict.convicted or others) and verdict.rows:
            return verdict.beside([("stated", "account", self.account)])
        return verdict.beside(others)

    @property
    def account(self) -> str:
        """The sums of epsilons of the people of this file, and of a promise over blocks those of every block, in words.

        30 people, all alike: 36 each, 12 of 12 every day. Of the file alone; a ledger may count others.
        """
        rows, promise, step = self.answers, self.statement.promise, self.model.step
        sums, blocks = list[float](), list[float]()
        for _, numbers in rows.by_user():
            spent = rows.epsilon[numbers]
            sums.append(float(spent.sum()))
            if promise is not None and promise.per is not None:
                begins, _ = promise.in_steps(step, int(rows.origin(numbers, step) or 1)).bounds(rows.step[numbers])
                blocks += np.bincount(np.unique(begins, return_inverse=True)[1], weights=spent).tolist()

        def words(spent: Sequence[float]) -> str:
            least, most = min(spent), max(spent)
            return f"{most:.6g}" if most - least <= 1e-9 * most else f"{least:.6g} to {most:.6g}"

        noun = self.statement.subjects.words["people" if len(sums) != 1 else "noun"]
        alike = ", all alike" * (len(sums) > 1 and "to" not in words(sums))
        people = f"{len(sums):,} {noun}{alike}: {words(sums)}{' each' * (len(sums) > 1)}"
        if promise is None or not blocks:
            return people
        block = {"1d": "day", "7d": "week"}.get(str(promise.per), f"block of {promise.per}")
        return f"{people}, {words(blocks)} of {in_short(promise.exact)} every {block}"

    # -- what is told -------------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The facts of the story, for JSON."""
        return self.story.document()

    def __repr__(self) -> str:
        words = self.story.words
        lines = [f"Released: {line}" for line in words("published")[:1]] + words("verdict")
        spent = [f"spent: {line}" for line in words("spent")[:1]]
        return "\n".join([*lines[:4], *spent])

    def _repr_html_(self) -> str:
        return html_lines(f"{label:<14} {line}" for label, line in self.story.rows())


@dataclass(frozen=True, eq=False)
class Moment:
    """A row of a release: the answer about a ``person`` then.

    ``number``: its place among the person's, from 0. ``row``: its columns; without an answer its plan is None.
    """

    released: Released
    person: str
    number: int
    row: Mapping[str, Any]

    def map(self) -> Figure:
        """The map of the moment: the published answer, and where a reader of all answers believes the person to be.

        Raises InvalidInput for answers that are not in the plane.
        """
        from dphmm.report.figures import belief

        report = self.released.read_report(users=[self.person], progress=False)
        shown = next((person for person in report.persons if person.name == self.person), None)
        figure = None if shown is None else belief(report, shown, self.number)
        if figure is None:
            expected = "answers on a map, or of two numbers"
            raise InvalidInput("released", f"answers of kind {self.released.space.kind}", expected)
        return figure

    def __repr__(self) -> str:
        when = self.row.get("t", f"step {self.row['step']}")
        answer = [f"{name} {value}" for name, value in self.row.items() if name.startswith("z")]
        asked = self.row["plan"] is not None
        return f"{self.person}, {when}: {', '.join(answer) if asked else 'no answer'}"


def named_states(space: StateSpace, names: Sequence[str], field: str) -> IntArray:
    """The numbers of states of these names. Raises InvalidInput with the nearest name for one that no state has."""
    numbers = space.indices_of(list(names))
    if len(numbers) and (numbers >= 0).all():
        return numbers
    unknown = names[int((numbers < 0).argmax())] if len(numbers) else ""
    near = get_close_matches(unknown, space.names, 1) or space.names
    raise InvalidInput(field, repr(unknown) if len(numbers) else "no state", f"states of the model, such as {near[0]}")


def _utc(moment: str) -> Any:
    import pandas as pd

    try:
        stamp = pd.Timestamp(moment)
    except ValueError:
        raise InvalidInput("moment", repr(moment), 'a step, "14:00", or a time, 2024-05-06T14:00Z') from None
    return stamp.tz_localize("UTC") if stamp.tzinfo is None else stamp.tz_convert("UTC")


def found_in(rows: ReleasedRows, planned: SchedulePlan, step: int | None) -> ReaderFindings | None:
    """A reader's findings about a released file by its plan, whose simulated people have a row at every step from 1 on.

    None if somebody of the file has a hole in their rows, earlier answers in another file, or no whole block.
    """
    blocks = 0
    for _, which in rows.by_user():
        steps = rows.step[which]
        whole = whole_blocks(planned.schedule, step, int(rows.origin(which, step) or 1), len(steps))
        if steps[0] != 1 or steps[-1] != len(steps) or not whole:
            return None
        # Answers of parts of days about one place find it as those of whole ones.
        answers = sum(rows.plans[row] != "" for row in which.tolist())
        blocks = max(blocks, whole, answers // max(1, planned.schedule.releases))
    return replace(planned.found, blocks=blocks)


def whole_blocks(schedule: Schedule, step: int | None, origin: int, steps: int) -> int:
    """The number of whole blocks, or windows in a row, in so many steps from the ``origin``-th on."""
    promise = schedule.promise.in_steps(step, origin)
    if promise.local is not None:
        begins, ends = promise.bounds(np.arange(1, steps + 1))
        return len(np.unique(begins[(begins >= 1) & (ends <= steps + 1)]))
    length = promise.length(step)
    # What lies before the first block that begins in the rows.
    before = -promise.passed % length if promise.per is not None else 0
    return max(0, (steps - before) // length)
