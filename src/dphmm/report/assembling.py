"""From a released file and what it was made with to a report: beliefs, expected figures, shares, all of public data.

The truth is looked at only where it is given, and then for the errors and marks of a page that says so.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from dphmm._progress import Progress, shown
from dphmm.accounting.budget import float_above
from dphmm.accounting.clock import seconds_ahead
from dphmm.accounting.ledger import Ledger
from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.audit.attacks.truth import answer_of, begins_of, truth_of
from dphmm.audit.check import require_confirmed
from dphmm.audit.released import ReleasedFile
from dphmm.audit.replay import number_of
from dphmm.choose.planning import LONGER, World, block_length, work_of
from dphmm.choose.schedule_plan import SchedulePlan
from dphmm.choose.simulated import Guesses, ModelGuesses, middles, places_of_states
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.reconstruction.answers import outcome_table
from dphmm.reconstruction.kernel import Timed, least_error
from dphmm.reconstruction.linear import shares_of_outcomes
from dphmm.reconstruction.lines import PersonAnswers, nearer_than_guesses
from dphmm.report.beliefs import DrawnCells, levels, spreads
from dphmm.report.content import (
    Backdrop,
    FileRows,
    Hour,
    LabelShares,
    Made,
    PersonBelief,
    Prospects,
    ReleaseReport,
    TruePlaces,
)
from dphmm.session.believing import believed_model
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting, StepChoices, Subjects
from dphmm.session.smoothing import AnswerHistory, SmoothedSteps, Smoother, Smoothers, likelihood_rows, smooth_people
from dphmm.statement.files import load_statement
from dphmm.statement.parts import member
from dphmm.states.space import END, FORBIDDEN, LONGEST_NAME, StateSpace
from dphmm.storage.inputs import PathLike
from dphmm.types import FloatArray, IntArray

#: Up to so many rows everybody can be looked at; of more, so many people.
MOST_ROWS, FEW_PEOPLE = 20_000, 20
#: Numbers of the runs that beliefs are written in, all people together: about two megabytes.
MOST_WRITTEN = 1_500_000
#: Rows of which people by hour are counted.
MOST_COUNTED = 1_000_000
#: Multiplications that the figures of one schedule may take: half a minute.
_MOST_WORK = 10**11
#: Costs of guesses without the file that are kept: so many numbers.
_KEPT_COSTS = 2**23
_HOURS = (3, 8, 14, 20)
_DAY = 86_400
_INVENTED = 100
#: Days or blocks that are shown of an answer at every step, where a place is found at once, and where no schedule is.
_AT_EVERY_STEP, _WITHOUT_SCHEDULE = (1, 2, 3), (1, 2, 3, 4, 5, 6, 7)
_UNKNOWN = Prospects(
    missing="the file leaves out steps that the stated schedule asks, or nothing says when its steps were: other "
    "queries of the same people may be why, or another schedule than the statement's",
    partial=True,
)
#: Beliefs are divided by no less: a state that an answer nearly excludes stays excluded.
_LEAST_LIKELY = 1e-250


class ReportChoices(TypedDict, total=False):
    """The choices of a reader for a report.

    users : the people to show, in order. truth : trajectories as they were released, a file or a table: the report is
    then for the data owner alone. title : the page's heading. backdrop : a public map to lie under the page's.
    """

    users: Sequence[str]
    truth: Any
    title: str
    backdrop: Backdrop | None


def confirmed_report(
    table: Path,
    file: ReleasedFile,
    made: Made,
    policy: PolicyGraph | None,
    *,
    ledger: Ledger | None = None,
    plan: SchedulePlan | None = None,
    believe: MarkovModel | None = None,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
    stage: Callable[[str], None] | None = None,
    **choices: Unpack[ReportChoices],
) -> ReleaseReport:
    """The report of a released table whose statement is confirmed by what it was made with.

    Everybody is shown step by step unless ``users`` are named, or every n-th by name if there are many rows.

    ``ledger``: counts what was spent over all files and queries; each shown row must be in it. ``plan``: the one that
    the file was released by, with those of other totals. ``believe``: the model that reads the answers, in place of the
    plan model. ``progress`` hears (done, total) of each stage, and ``stage`` what it is called.

    Raises InvalidInput for a title that no name could be, for a statement that says something else, for an unknown
    user, for an answer that was drawn under another plan than these public data make, and for a ledger that does not
    hold it.
    """
    title, users, space = choices.get("title", "What was released"), choices.get("users", ()), made.space
    checked_title(title)
    statement, left = require_confirmed(made.statement, table, file, made.model, space, policy, made.subjects, ledger)
    made, truth = replace(made, statement=statement), choices.get("truth")
    if truth is not None and not isinstance(truth, TruePlaces):
        begins, rule = begins_of(ledger, statement.query, file), answer_of(ledger, statement.query, file, statement)
        known = truth_of(file, truth, made.model, space, begins, rule)
        truth = TruePlaces(known.answers, known.outside)
    if plan is not None and plan.schedule != statement.asking:
        got = f"a plan of {plan.schedule.promise}, or of other steps"
        raise InvalidInput("plan", got, "the plan that the file was released by")
    seconds = None if file.times is None else np.asarray(file.times // 1_000_000)
    rows = FileRows(file.users, file.step, seconds, space.frame.to_answers(file.lattice), file.asked, file.epsilon)
    cells = DrawnCells.of_space(space) if space.dimension == 2 and not space.has_labels else None
    apart = -(-len(rows.by_user) // FEW_PEOPLE) if len(rows) > MOST_ROWS else 1
    named = list(rows.by_user)[::apart]
    unknown = next((user for user in users if user not in rows.by_user), None)
    if unknown is not None:
        raise InvalidInput("user", repr(unknown), f"a user of the released file, such as {named[0]!r}")
    shown = list(dict.fromkeys(users)) or named
    begin = stage or (lambda name: None)
    begin("smoothing the answers")
    if believe is not None and believe.digest == made.model.digest:
        believe = None
    reading = _Reading(file, rows, made, cells, ledger, believe, progress)
    # The people of the figures are chosen without the truth.
    whole = made.subjects is not None and MOST_ROWS < len(rows) <= MOST_COUNTED
    people = reading.people(shown, set(rows.by_user) if whole else set(named), by_hour=whole, truth=truth)
    if made.subjects is not None:
        _require_plans(file, reading.plans, statement.mechanism.chosen)
    begin("finding what is expected")
    if truth is not None:
        truth = replace(truth, errors=reading.errors)
        off = space.distances(reading.guesses_alone[truth.counted], truth.places[truth.counted])
        kernel = None if rows.time is None or cells is None else _by_time(rows, truth, space)
        truth = replace(truth, without=float(off.mean()) if len(off) else np.nan, kernel=kernel)
    elsewhere, queries = (None, 0) if ledger is None else _elsewhere(ledger, rows, statement.query)
    lines = None
    if reading.answered:
        inside = space.distances(middles(space)[:, None], places_of_states(space)) ** 2
        lines = nearer_than_guesses(reading.answered, space.distances, float(inside.mean()))
    report = ReleaseReport(
        title,
        # A file's name is somebody else's text, which may turn what stands around it about.
        "".join(c if c.isprintable() else ascii(c)[1:-1] for c in table.name),
        rows,
        made,
        reading.spreads,
        reading.alone,
        persons=people,
        plans=reading.all_plans,
        cells=cells,
        lines=lines,
        chosen=bool(users),
        truth=truth,
        shares=_shares(rows, file, reading, space) if space.has_labels else (),
        hours=reading.hours(),
        backdrop=choices.get("backdrop") or Backdrop(),
        notes=[*notes, *(f"Not compared: {part}." for part in left)],
        wanted=len(shown),
        apart=apart,
        remade=reading.remade,
        unplaced=reading.unplaced,
        believe=believe,
        elsewhere=elsewhere,
        queries=queries,
    )
    return replace(report, prospects=_UNKNOWN if reading.off_schedule else prospects_of(made, plan, report.begins))


def _by_time(rows: FileRows, truth: TruePlaces, space: StateSpace) -> float | None:
    """The measured error of a reader without a model, who weighs answers by their time."""
    assert rows.time is not None
    hours, people = rows.time / 3600, []
    for at in rows.by_user.values():
        counted, asked = at[~truth.outside[at]], at[rows.asked[at]]
        people.append(Timed(hours[counted], truth.places[counted], hours[asked], rows.z[asked]))
    return least_error(people, space.distances)


def checked_title(title: str, field: str = "title") -> None:
    """Refuse a title that a name could not be: it stands in the page's heading, and in its title for the system."""
    expected = f"1 to {LONGEST_NAME} characters, without control characters or text-direction marks"
    if len(title) > LONGEST_NAME:
        raise InvalidInput(field, f"{len(title):,} characters", expected)
    if not title.strip() or re.search(FORBIDDEN, title):
        raise InvalidInput(field, ascii(title), expected)


def read_report(
    released: PathLike,
    model: MarkovModel,
    policy: PolicyGraph | None = None,
    *,
    initials: Mapping[str, Any] | None = None,
    step_choices: StepChoices | None = None,
    plan: SchedulePlan | None = None,
    progress: bool | Progress = True,
    **choices: Unpack[ReportChoices],
) -> ReleaseReport:
    """The report of a released file with its privacy statement beside it, for notebooks and `write_report`.

    Parameters
    ----------
    released : the file that ``dphmm release`` or `release_many` wrote.
    model, policy : those of the release; without a policy nothing is smoothed.
    initials, step_choices : those of the release, as `release_many` takes them.
    plan : the one that it was released by, as `read_plan` gives it: the worth of other totals is then told too.
    progress : a bar on a terminal, or a function that is called with (done, total).
    choices : users, truth, title, backdrop, as `ReportChoices` has them.

    Raises
    ------
    InvalidInput : for a title that no name could be; for a file that is no release, or of another model or policy; for
        other choices for steps, or other beginnings, than those of the release.

    Examples
    --------
    ``report = dphmm.report.read_report("released.parquet", model, policy)`` with a ``model`` and a ``policy`` as
    `dphmm.storage` loads them; then ``dphmm.report.write_report("report.html", report)``. A notebook shows the report.

    Source: docs/report.md.
    """
    if not isinstance(released, (str, os.PathLike)):
        expected = "the path of a released file, which has its privacy statement beside it"
        raise InvalidInput("released", f"a {type(released).__name__}", expected)
    path, space = Path(released), model.space
    if space is None:
        raise InvalidInput("model", "one without states", "a model with its space, as load_model reads it")
    statement = load_statement(path)
    pairs = member(statement, "space.merged.pairs")
    space = space.merged(pairs) if pairs else space
    file = ReleasedFile.read(path, space)
    chosen = [choice["policy"] for choice in (step_choices or {}).values() if "policy" in choice]
    subjects = None
    if policy is not None:
        varies = {"varies": ",".join(statement.varied.names)} if statement.varied else {}
        setting = Setting.read(statement.choices | varies, model, policy, space, policies=chosen)
        subjects = Subjects(setting, initials, step_choices)
        statement.check_subjects(subjects)
    made = Made(model, space, statement, subjects)
    with shown(progress, "report") as report:
        return confirmed_report(path, file, made, policy, plan=plan, progress=report, **choices)


class _Reading:
    """Smooths people one after the other, and keeps of each what the page needs."""

    def __init__(
        self,
        file: ReleasedFile,
        rows: FileRows,
        made: Made,
        cells: DrawnCells | None,
        ledger: Ledger | None,
        believe: MarkovModel | None,
        progress: Progress | None,
    ) -> None:
        self._file, self._rows, self._made, self._cells = file, rows, made, cells
        self._ledger, self._believe, self._progress = ledger, believe, progress
        self._setting = None if made.subjects is None else made.subjects.setting
        self._smoothers = None
        if made.subjects is not None:
            self._smoothers = Smoothers(made.subjects, believed_model(made.subjects.setting, believe))
        self.plans: dict[str, StepPlan] = {}
        #: The measured errors; those that a reader expects at the rows of everybody who counts, NaN for others; the
        #: same of the best guesses without the file.
        self.errors, self.spreads, self.alone = (np.full(len(rows), np.nan) for _ in range(3))
        self._there, self._guesses = places_of_states(made.space), Guesses(made.space)
        #: Where people are guessed to be without it; those who begin where it is publicly known as others.
        self.guesses_alone, alone = np.full_like(rows.z, np.nan, dtype=np.float64), ModelGuesses(made.space)
        if self._setting is not None:
            start = self._setting.options.start
            if not made.model.example_origin:
                self.guesses_alone = alone.at(made.model, rows.step, start)[0]
            else:
                # Hours of their own, by which the model has people elsewhere.
                for at in file.by_user().values():
                    model = made.model.counted_from(file.origin(at[0], made.model.step))
                    self.guesses_alone[at] = alone.at(model, rows.step[at], start)[0]
        # Such guesses are few, and those of one step are everybody's.
        most = max(1, _KEPT_COSTS // made.model.n_states)
        self._costs_alone = lru_cache(maxsize=most)(lambda place: alone.costs(np.array(place)))
        self._written = 0
        #: True if some rows have no number that tells the choices for their steps.
        self.unplaced = False
        #: The number of people whose plans were made again.
        self.remade = 0
        schedule = made.statement.asking
        #: The schedule whose steps depend on the answers; None for any other.
        self._paced = schedule if schedule is not None and schedule.kind == "paced" else None
        #: True if rows that the stated schedule asks are left out, or if nothing tells whether they are.
        self.off_schedule = False
        #: The answers of those in the figures, where they can be held out: no plan and no time hangs on an answer.
        self.answered: list[PersonAnswers] = []
        planar = made.space.dimension <= 2 and not made.space.has_labels
        self._holds_out = self._setting is not None and not self._setting.needs_beliefs and planar
        self._hours: dict[int, FloatArray] = {}
        self._days: set[int] = set()

    @property
    def all_plans(self) -> list[StepPlan]:
        """The different plans of the file's answers; none where not all of them were made again."""
        return list(self.plans.values()) if set(self._file.plans) - {""} <= set(self.plans) else []

    def people(
        self, shown: Sequence[str], counted: Set[str], *, by_hour: bool, truth: TruePlaces | None
    ) -> list[PersonBelief]:
        """Those who are ``shown``, as far as the page has room; the figures over people are of all who are counted."""
        by_user, people, first, done = self._rows.by_user, list[PersonBelief](), set(shown), 0
        users = [*shown, *(user for user in by_user if user in counted - first)]
        total = sum(len(by_user[user]) for user in users)
        if self._smoothers is None:
            return [PersonBelief(user, by_user[user]) for user in shown]
        waiting = deque[tuple[str, IntArray]]()
        for smoothed in smooth_people(self._histories(users, counted, waiting), marginals=True):
            user, at = waiting.popleft()
            wanted = user in first and self._written < MOST_WRITTEN
            if wanted or user in counted:
                person = self._person(user, smoothed.at(at), truth, wanted, user in counted, by_hour)
                people += [] if person is None else [person]
            done += len(at)
            if self._progress is not None:
                self._progress(done, total)
        return people

    def _histories(
        self, users: Sequence[str], counted: Set[str], waiting: deque[tuple[str, IntArray]]
    ) -> Iterator[tuple[Smoother, AnswerHistory, tuple[()]]]:
        """The answers to be smoothed of each user; each answer's plan is made again and must be its own.

        ``waiting`` gets the user, and which steps are those of the rows.
        """
        assert self._smoothers is not None
        for user in users:
            if user not in counted and self._written >= MOST_WRITTEN:
                continue
            rows, smoother = self._rows.by_user[user], self._smoothers.of(user)
            published = self._published(user, rows, beside=smoother.setting.needs_beliefs)
            steps = smoother.steps(published)
            for _, plan in steps.plans:
                self.plans.setdefault(plan.hash, plan)
            if self._paced is not None:
                self._follow(self._paced, published, smoother.spreads(published, steps))
            waiting.append((user, np.searchsorted(published.t, self._file.step[rows])))
            yield smoother, published, ()

    def _person(
        self, user: str, smoothed: SmoothedSteps, truth: TruePlaces | None, shown: bool, counted: bool, by_hour: bool
    ) -> PersonBelief | None:
        """A counted person, with the page's data about them if they are ``shown``."""
        self.remade += 1
        assert smoothed.marginals is not None
        rows, space, cells = self._rows.by_user[user], self._made.space, self._cells
        guess, _ = self._guesses.of(smoothed.marginals.T)
        if truth is not None:
            self.errors[rows] = space.distances(guess, truth.places[rows])
        drawn = smoothed.marginals if cells is None else cells.gathered(smoothed.marginals)
        if by_hour:
            self._count(rows, drawn)
        spread = spreads(space, self._there, smoothed.marginals, guess)
        if counted:
            self.spreads[rows] = spread
            # By the same belief: a guess without answers is not judged by what they contradict.
            guessed = zip(self.guesses_alone[rows].tolist(), smoothed.marginals, strict=True)
            self.alone[rows] = [belief @ self._costs_alone(tuple(place)) for place, belief in guessed]
            if self._holds_out:
                self.answered.append(self._held_out(rows, smoothed.marginals))
        if not shown:
            return None
        level = levels(drawn)
        self._written += int(np.count_nonzero(np.diff(level.astype(np.int8), axis=1))) + level.shape[0]
        return PersonBelief(user, rows, level, guess, smoothed.state, smoothed.probability, spread)

    def _held_out(self, rows: IntArray, marginals: FloatArray) -> PersonAnswers:
        """A person's answers, and the belief at each from all others, without its own answer."""
        file, asked = self._file, np.flatnonzero(self._rows.asked[rows])
        at, beliefs, noise = rows[asked], marginals[asked].copy(), np.empty(len(asked))
        names = np.array([file.plans[row] for row in at.tolist()])
        for name in np.unique(names).tolist():
            of_plan, plan = np.flatnonzero(names == name), self.plans[name]
            likelihoods = likelihood_rows(plan, file.lattice[at[of_plan]], self._believe is not None)
            beliefs[of_plan] /= np.maximum(np.exp(likelihoods.logs[likelihoods.which]), _LEAST_LIKELY)
            noise[of_plan] = plan.expected_error
        guessed = self._guesses.of(beliefs.T)[0]
        return PersonAnswers(file.step[at].astype(np.float64), self._rows.z[at], noise, guessed, file.step[rows])

    def _follow(self, schedule: Schedule, published: AnswerHistory, spreads: FloatArray) -> None:
        """Follow a paced schedule: an edited statement may name another one, of which other figures are expected.

        Other queries of the subject, of which the file says nothing, can leave out a row, and ask none. Where steps
        have no row, other files may have answers, which only the ledger tells.
        Raises InvalidInput for an answer that the stated schedule does not ask for.
        """
        if isinstance(schedule.promise.per, str) and not published.origin:
            self.off_schedule = True
            return
        due = schedule.in_steps(self._made.model.step, int(published.origin or 1))
        if self._ledger is not None and due.promise.local is not None:
            due = due.beside(self._ledger.blocks(published.subject))
        spent = list[tuple[int, Fraction]]()
        answers = zip(published.t.tolist(), published.plans, spreads.tolist(), strict=True)
        for place, (t, plan, spread) in enumerate(answers):
            room, asked = due.promise.room(spent, t), plan != ""
            if asked and True not in due.may_choose(t, spread, room, shared=True):
                if self._ledger is None and place < t - 1:
                    self.off_schedule = True
                    return
                got = f"a schedule that does not ask at {published.at(t)}"
                raise InvalidInput("schedule", got, "that of the release, as its privacy statement was written")
            self.off_schedule |= asked not in due.may_choose(t, spread, room)
            if asked:
                spent.append((t, due.exact))

    def _published(self, user: str, rows: IntArray, *, beside: bool) -> AnswerHistory:
        """The answers of the file; ``beside`` all earlier ones that the ledger has of the query.

        Choices are known for the rows alone: another file may have had other ones. The number of a step, by its time
        or the ledger, selects its choice.
        """
        file, query, by_step = self._file, self._made.statement.query, dict[int, tuple[Any, str, float, int | None]]()
        if beside and self._ledger is not None:
            last = int(file.step[rows].max())
            for entry in self._ledger.entries(user, query):
                if entry.z and entry.t < last:
                    by_step[entry.t] = (entry.z, str(entry.plan_hash), float(entry.epsilon or 0), None)
        origin = counted_from = file.origin(int(rows[0]), self._made.model.step)
        if not origin and self._ledger is not None:
            header = self._ledger.header(user, query)
            counted_from = "" if header is None else header.options.get("origin", "")
        for row, step in zip(rows.tolist(), file.step[rows].tolist(), strict=True):
            z, number = tuple(file.lattice[row].tolist()), number_of(counted_from, step)
            by_step[step] = (z, file.plans[row], float(file.epsilon[row]), number)
            self.unplaced |= number is None
        steps = sorted(by_step)
        z, plans, epsilon, numbers = zip(*(by_step[step] for step in steps), strict=True)
        answers = np.array(z, dtype=np.int64), plans, np.array(epsilon)
        return AnswerHistory(user, np.array(steps), *answers, numbers, origin)

    def _count(self, rows: IntArray, drawn: FloatArray) -> None:
        """Add a person to the maps by hour."""
        time = self._rows.time
        if self._cells is None or time is None:
            return
        local, promise = time[rows], self._made.statement.promise
        local = local if promise is None else local + seconds_ahead(promise.zone, local)
        self._days.update(np.unique(local // _DAY).tolist())
        step = self._made.model.step or 3600
        for hour in _HOURS:
            at = local % _DAY // step == hour * 3600 // step
            if at.any():
                self._hours[hour] = self._hours.get(hour, 0.0) + drawn[at].sum(axis=0)

    def hours(self) -> list[Hour]:
        """The expected people at some hours, mean over the days."""
        return [Hour(hour * 3600, people / len(self._days)) for hour, people in sorted(self._hours.items())]


def _require_plans(file: ReleasedFile, plans: Mapping[str, StepPlan], stated: Mapping[str, int]) -> None:
    """Epsilon and cost of rows are those of their plans, where these were made again; where all were, ``stated`` too.

    ``stated`` are the rows by mechanism.
    """
    due = {plan.hash: (float(plan.promised), float_above(plan.cost)) for plan in plans.values()}
    for row, (plan, *terms) in enumerate(zip(file.plans, file.epsilon.tolist(), file.cost.tolist(), strict=True)):
        if tuple(terms) != due.get(plan, tuple(terms)):
            got = f"an epsilon or a cost that is not its plan's, of {file.where(row)}"
            raise InvalidInput("released", got, "the numbers that dphmm release wrote")
    asked = [plan for plan in file.plans if plan]
    if set(asked) <= set(plans) and Counter(plans[plan].mechanism_name for plan in asked) != stated:
        got = "a privacy statement with another mechanism.chosen than its plans'"
        raise InvalidInput("statement", got, "the statement as dphmm release wrote it")


def _elsewhere(ledger: Ledger, rows: FileRows, query: str) -> tuple[dict[str, list[tuple[int, Fraction]]], int]:
    """The answers about each person that a ledger has beside the file's, from other files and other queries.

    Also the number of these queries.
    """
    answered = {user: set(rows.step[at[rows.asked[at]]].tolist()) for user, at in rows.by_user.items()}
    elsewhere: dict[str, list[tuple[int, Fraction]]] = {}
    queries = set()
    for user, name in ledger.sessions_of(list(answered)):
        for entry in ledger.entries(user, name):
            if entry.z is not None and not entry.constant and (name != query or entry.t not in answered[user]):
                elsewhere.setdefault(user, []).append((entry.t, entry.epsilon or Fraction(0)))
                queries |= {name} - {query}
    return elsewhere, len(queries)


# -- what is expected of who stays ---------------------------------------------------------------------------------


def prospects_of(
    made: Made, plan: SchedulePlan | None = None, begins: Callable[[int], IntArray] | None = None
) -> Prospects:
    """The expected findings of a reader, simulated from the public model; for other totals those of ``plan``.

    ``begins``: the steps at which blocks of so many steps begin; people stay from step 1 on if it is None.
    """
    if made.subjects is None:
        return Prospects(missing="give the policy")
    if made.statement.beginnings:
        # The invented people begin as the model says, and not where these are known to begin.
        return Prospects(missing="it is not computed for people who begin where it is publicly known")
    setting, model, schedule = made.subjects.setting, made.model, made.statement.asking
    try:
        if schedule is None:
            # All steps; without a promise those of a day, where there are days.
            (_, epsilon), step = made.statement.epsilons, model.step
            days = step is not None and _DAY % step == 0
            promise = made.statement.promise or SequencePromise(1, per="1d" if days else 100)
            length = promise.length(step)
            if made.statement.promise is None:
                promise = replace(promise, total=epsilon * length)
            schedule = Schedule(promise, epsilon, range(1, min(length, int(promise.exact // epsilon)) + 1))
        # A paced schedule names all steps at which its plan may ask; of a planned one nothing tells the hours.
        at = schedule.at if schedule.kind == "paced" else None
        steps = None if begins is None else begins(block_length(schedule.promise, model.step))
        public, choices = (model, setting.policy, made.space, schedule.promise), setting.options.choices
        world = World(*public, schedule.kind, people=_INVENTED, choices=choices, at=at, begins=steps)
    except DphmmError:
        return Prospects(missing="it is not computed for these choices")
    if setting.varies:
        return Prospects(missing="it is not computed for these choices")
    if _INVENTED * work_of(model, world.paths.shape[1]) > _MOST_WORK:
        return Prospects(missing=f"{made.space.n_states:,} states take too long here; dphmm plan computes it")
    try:
        return prospects_in(world, schedule, plan, scheduled=made.statement.asking is not None)
    except DphmmError as error:
        return Prospects(missing=str(error))


def prospects_in(
    world: World, schedule: Schedule, plan: SchedulePlan | None = None, *, scheduled: bool = True
) -> Prospects:
    """The expected findings under a schedule among invented people; ``scheduled``: False if answers have none.

    ``plan``: the plan of the schedule, with plans of other totals. Raises as the planner does.
    """
    stays = world.stays(schedule, LONGER if scheduled else _WITHOUT_SCHEDULE)
    expected, stayers = world.expected(schedule, stays), world.stayers(schedule)
    unlimited = None
    if scheduled:
        # Every step has an answer of the same epsilon: where that is no promise, nothing is told of it.
        with suppress(DphmmError):
            unlimited = world.stays(world.every_step(schedule.exact), _AT_EVERY_STEP)
    ladder = () if plan is None else plan.by_total
    return Prospects(expected, stays, unlimited, ladder, people=world.people, stayers=stayers)


# -- shares of labels ---------------------------------------------------------------------------------------------


def _shares(rows: FileRows, file: ReleasedFile, reading: _Reading, space: StateSpace) -> list[LabelShares]:
    """At each step that is asked, the shares of labels corrected for the noise, if the step has one plan.

    They are among what has not ended; that of END is among all.
    """
    shares, asked = [], rows.asked
    end = space.index_of(END) if END in space.names else None
    moments = rows.step if rows.time is None else rows.time
    for when in np.unique(moments[asked]).tolist():
        at = np.flatnonzero(asked & (moments == when))
        plans = {file.plans[row] for row in at.tolist()}
        plan = reading.plans.get(next(iter(plans))) if len(plans) == 1 else None
        if plan is None or len(at) < 2 or len({rows.user[row] for row in at.tolist()}) != len(at):
            continue
        try:
            outcomes = outcome_table(plan)
            table, drawn = outcomes.table[outcomes.law_of], outcomes.numbers(file.lattice[at])
            share, low, high = shares_of_outcomes(table, drawn, end=end)
        except InvalidInput:
            continue
        shares.append(LabelShares(int(when), len(at), share, low, high))
    return shares
