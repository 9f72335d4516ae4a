"""The content of a report: released rows, the promise, a reader's beliefs, and the expected findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np
from msgspec import UNSET
from scipy.special import stdtrit

from dphmm._cached import cached_property
from dphmm.accounting.clock import seconds_ahead
from dphmm.accounting.edge_leakage import losses_between
from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.choose.planning import STAYERS, Expected, error_of_known_states, state_name
from dphmm.choose.schedule_plan import SchedulePlan, Stays
from dphmm.choose.simulated import ModelGuesses, laws_of_steps
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.report.beliefs import DrawnCells, Levels
from dphmm.session.plan import StepPlan
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.setting import Subjects
from dphmm.statement.release import ReleaseStatement
from dphmm.statement.sentences import clock, off
from dphmm.statement.story import ANSWERS, InLedger, Story, story
from dphmm.statement.verdict import LINES, ReaderFindings
from dphmm.states.grid import Grid
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray

_DAY = 86_400
#: Pairs of more states, or of more plans, than these are not compared one by one.
_MOST_COMPARED, _MOST_PLANS = 500, 5
#: Metres from where the day began, from which on somebody has left home.
AWAY = 500.0
#: How much further apart than the covered distance the places are of which a page says what an answer may tell.
_FURTHER = 3


#: Why nothing is told of who stays.
OTHER_TIMES = "answers of later blocks are made otherwise than those from step 1 on, which alone are simulated"
#: The same of a file that has no blocks of any length.
NO_BLOCKS = "nothing says for how long; a promise over the sequence does (--path-epsilon)"


def rounded_down(value: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above a positive value."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-12)
    return max(digit * power for digit in (1, 2, 5) if digit * power <= value * (1 + 1e-9))


@dataclass(frozen=True, eq=False)
class Made:
    """The inputs and the statement of a release; without ``subjects`` (no policy is known) nothing can be smoothed."""

    model: MarkovModel
    space: StateSpace
    statement: ReleaseStatement
    subjects: Subjects | None = None

    @property
    def policy(self) -> PolicyGraph | None:
        """The policy, where it is known."""
        return None if self.subjects is None else self.subjects.setting.policy


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows (n,) of a released file in its order.

    ``z`` (n, d): released answers, of labels the numbers of their states; nothing is meant by those of rows that were
    not ``asked`` (n,). ``time`` (n,): seconds since 1970 UTC; None without times.
    """

    user: Sequence[str]
    step: IntArray
    time: IntArray | None
    z: FloatArray
    asked: BoolArray
    epsilon: FloatArray

    def __len__(self) -> int:
        return len(self.user)

    @cached_property
    def by_user(self) -> dict[str, IntArray]:
        """Each user's row numbers by step, users in order of their names."""
        rows: dict[str, list[int]] = {}
        for row in np.argsort(self.step, kind="stable").tolist():
            rows.setdefault(self.user[row], []).append(row)
        return {user: np.array(rows[user], dtype=np.int64) for user in sorted(rows)}


@dataclass(frozen=True, eq=False)
class PersonBelief:
    """One person as the page shows them: numbers of rows by step, and what a reader believes at each of them (n,).

    ``levels`` (n, cells) as `beliefs.levels` gives them, of drawn cells in the plane and of states elsewhere; ``guess``
    (n, d): the reader's guess of their place (`dphmm.choose.simulated.Guesses.better`), for labels the likeliest;
    ``state`` and ``probability`` (n,): the likeliest state; ``spread`` (n,): the error that a reader expects of
    the guess. All are None if no policy is known.
    """

    name: str
    rows: IntArray
    levels: Levels | None = None
    guess: FloatArray | None = None
    state: IntArray | None = None
    probability: FloatArray | None = None
    spread: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class TruePlaces:
    """The true places of the rows (n, d), for the data owner, or of ``simulated`` people.

    On a map these are places in metres of its projection, elsewhere answers of the true states; NaN where a row has no
    such answer. ``outside`` (n,): rows in no state, which are in no error.

    Of a report: ``errors`` (n,): those of a reader's guesses; NaN where nothing is known. ``without``: the mean
    distance of the best single place. ``kernel``: the mean error of a reader without a model
    (`dphmm.reconstruction.kernel`); None where none was measured.
    """

    places: FloatArray
    outside: BoolArray
    simulated: bool = False
    errors: FloatArray = field(default_factory=lambda: np.zeros(0))
    without: float = math.nan
    kernel: float | None = None

    @property
    def counted(self) -> BoolArray:
        """The rows whose errors are the figures of the page."""
        return np.asarray(~np.isnan(self.errors) & ~self.outside)

    def document(self) -> dict[str, Any]:
        """The measured figures for JSON."""
        without = None if math.isnan(self.without) else self.without
        return {"error": self.mean, "error_without": without, "error_of_kernel": self.kernel}

    @property
    def mean(self) -> float | None:
        """The measured error; None where no row counts."""
        return float(self.errors[self.counted].mean()) if self.counted.any() else None

    @property
    def of_nine_in_ten(self) -> float:
        """The largest error of nine in ten rows."""
        return float(np.quantile(self.errors[self.counted], 0.9))


def leaving_words(error: float, without: float, guess: float, zone: str, somebody: str) -> str:
    """The reader's error about when people leave home, in words: with the file, and by one guess for all.

    ``error`` and ``without`` (the file) in seconds; ``guess``: a time of day in the time ``zone``. ``somebody``: one
    of these people.

    >>> leaving_words(3600.0, 1800.0, 27_600.0, "+00:00", "somebody")
    'nothing about when somebody leaves home: guessing 7:40 is better'
    """
    time = f"{clock(round(guess / 600) * 600)}{'' if zone == '+00:00' else f' ({zone})'}"
    if error >= without:
        return f"nothing about when {somebody} leaves home: guessing {time} is better"
    hours, other = (f"{seconds / 3600:.1f}\u00a0h" for seconds in (error, without))
    return f"{hours} off about when {somebody} leaves home ({other} by guessing {time})"


@dataclass(frozen=True, eq=False)
class Backdrop:
    """The layers under a map, in answer units: ``water`` (n, 2), ``roads`` as lines (n, 2), names at points.

    Water is filled by the even-odd rule; a row of NaN stands before each hole.
    """

    water: Sequence[FloatArray] = ()
    roads: Sequence[FloatArray] = ()
    names: Sequence[tuple[str, float, float]] = ()


#: People are where they are at step 1 where the model's law differs by so little (total variation), and where those who
#: are elsewhere make this share of the error without a file at most: a few may be far away.
_ELSEWHERE, _FURTHER_OFF = 0.1, 0.15


#: What stands before the name of whatever shows where real people truly were.
OWNER_ONLY = "OWNER ONLY: "


@dataclass(frozen=True, eq=False)
class Prospects:
    """The expected findings of a release before it was made, from public data alone.

    ``expected``: for this schedule. ``stays``: about people who stay, by number of days or blocks; ``unlimited``
    the same for an answer at every step. ``ladder``: plans of other totals, with theirs from step 1 on.
    ``missing``: the reason if there are none. ``partial``: True if rows that tell people's places are missing.
    ``people`` and ``stayers``: the numbers of invented people who move as the model says, and who stay.
    """

    expected: Expected | None = None
    stays: Stays | None = None
    unlimited: Stays | None = None
    ladder: Sequence[SchedulePlan] = ()
    missing: str = ""
    partial: bool = False
    people: int = 0
    stayers: int = STAYERS


@dataclass(frozen=True, eq=False)
class LabelShares:
    """The estimated share of people with each label (K,) among those asked at one time, with 90 % intervals.

    A share is that of the linear estimate, which may lie outside 0 to 1; its interval does not.
    """

    when: int
    people: int
    share: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Hour:
    """The expected number of people in each drawn cell at an hour of the day, mean over the days."""

    seconds: int
    people: FloatArray


def _first_away(space: StateSpace, places: FloatArray) -> int | None:
    """The first of some places (n, 2) that is far from where they begin; None where none is."""
    known = np.flatnonzero(~np.isnan(places).any(axis=1))
    if not len(known) or known[0] != 0:
        return None
    apart = space.distances(places[known], np.broadcast_to(places[0], places[known].shape))
    away = known[apart > AWAY]
    return int(away[0]) if len(away) else None


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseReport:
    """One released file and everything a page about it needs.

    ``name``: the file's. ``persons``: those who can be looked at; the first is shown. ``chosen``: True if the maker of
    the page named them. ``spreads`` (n,): the error that a reader expects at the rows of everybody in the figures,
    whoever is shown; NaN for others; ``alone`` (n,) the same of the best guesses without the file.
    ``lines``: the mean error of straight lines between answers, where held-out answers are nearer to them.
    ``plans``: the different plans of the file's answers; empty where not all of them were made again.
    ``elsewhere``: (step, epsilon) of each answer about a person that a ledger has beside those of the
    file; None without a ledger. ``queries``: the number of other queries among them.
    ``wanted``: the number of people to be shown, of all every ``apart``-th by name. ``remade``: the number of people
    whose plans were made again; ``unplaced``: True if the numbers of some steps, and so their choices, are not known.
    ``believe``: the model by which answers were read, if it is not that of the plans.
    """

    title: str
    name: str
    rows: FileRows
    made: Made
    spreads: FloatArray
    alone: FloatArray
    persons: Sequence[PersonBelief] = ()
    chosen: bool = False
    lines: float | None = None
    plans: Sequence[StepPlan] = ()
    cells: DrawnCells | None = None
    truth: TruePlaces | None = None
    prospects: Prospects = field(default_factory=Prospects)
    shares: Sequence[LabelShares] = ()
    hours: Sequence[Hour] = ()
    backdrop: Backdrop = field(default_factory=Backdrop)
    notes: Sequence[str] = ()
    elsewhere: Mapping[str, Sequence[tuple[int, Fraction]]] | None = None
    queries: int = 0
    wanted: int = 0
    apart: int = 1
    remade: int = 0
    unplaced: bool = False
    believe: MarkovModel | None = None

    @property
    def space(self) -> StateSpace:
        """The states."""
        return self.made.space

    @property
    def statement(self) -> ReleaseStatement:
        """The privacy statement of the release."""
        return self.made.statement

    @property
    def called(self) -> dict[str, str]:
        """The forms of the noun for the subjects of the rows."""
        return self.statement.subjects.words

    @property
    def owner_only(self) -> bool:
        """True if the page shows true places of real people."""
        return self.truth is not None and not self.truth.simulated

    @property
    def on_map(self) -> bool:
        """True if answers are metres on a map."""
        return isinstance(self.space, MapSpace)

    @property
    def planar(self) -> bool:
        """True if answers are drawn on a plane."""
        return self.space.dimension == 2 and not self.space.has_labels

    @property
    def confirmed(self) -> bool:
        """True if the policy is known; without it nothing bounds what several answers tell together."""
        return self.made.subjects is not None

    @property
    def one_policy(self) -> PolicyGraph | None:
        """The policy that every answer of the file was released under; None where steps have others, or none is known.

        Under the policy of another step answers may tell of states that this one joins.
        """
        varied = self.statement.varied
        return None if varied is not UNSET and "policy" in varied.names else self.made.policy

    @cached_property
    def all_possible(self) -> bool:
        """True if the model is known to exclude no state at any step; False without the policy."""
        subjects = self.made.subjects
        return subjects is not None and subjects.setting.excludes_no_state and not self.statement.beginnings

    @cached_property
    def promise(self) -> SequencePromise | None:
        """The promise over paths, where there is one; None where no policy confirms what it is a promise of."""
        return self.statement.promise if self.confirmed else None

    @cached_property
    def schedule(self) -> Schedule | None:
        """The schedule of asked steps; None for every step."""
        return self.statement.asking

    @property
    def names_blocks(self) -> bool:
        """True if a promise or a clock defines a block; without both no figure is about whole blocks."""
        return self.promise is not None or self.made.model.step is not None

    @cached_property
    def whole_blocks(self) -> int:
        """The number of whole blocks in the file, with a row at every step, for the person with most.

        If neither a clock nor a promise says where blocks begin: the number in a run of consecutive steps.
        """
        expected, rows, blocks = self.prospects.expected, self.rows, list[int]()
        if expected is None or not self.names_blocks:
            return 0
        for user, at in rows.by_user.items():
            steps = np.unique(rows.step[at])
            if self.promise is not None and self.promise.steps is not None:
                blocks.append(int(np.isin(np.arange(1, expected.steps + 1), steps).all()))
            elif self._in_runs:
                runs = np.split(steps, np.flatnonzero(np.diff(steps) != 1) + 1)
                blocks.append(max(map(len, runs)) // expected.steps)
            else:
                counts = np.unique(self.block(user, steps), return_counts=True)[1]
                blocks.append(int(np.count_nonzero(counts >= expected.steps)))
        return max(blocks, default=0)

    @property
    def _in_runs(self) -> bool:
        """True if any consecutive steps make a window or block: nothing says where those of the figures begin."""
        if self.promise is None:
            return self.rows.time is None or self.made.model.step is None
        return self.promise.window is not None

    @property
    def _known_blocks(self) -> bool:
        """True if it is known where blocks begin: a file without times does not say it for blocks of a clock."""
        promise = self.promise
        return not self._in_runs and (self.rows.time is not None or promise is None or not isinstance(promise.per, str))

    def begins(self, length: int) -> IntArray:
        """The steps (k,) from 1 at which blocks of so many steps with rows begin, ascending.

        All steps where that may be any of them.
        """
        if self.promise is not None and self.promise.steps is not None:
            return np.ones(1, dtype=np.int64)
        if not self._known_blocks:
            return np.unique(self.rows.step)
        starts = set[int]()
        for user, at in self.rows.by_user.items():
            steps = self.rows.step[at]
            first = int(self.block(user, steps[:1])[0])
            starts.update((steps - (steps - first) % length).tolist())
        return np.array(sorted(step for step in starts if step >= 1), dtype=np.int64)

    @cached_property
    def begins_alike(self) -> bool:
        """True if the findings about people who stay hold for blocks that begin as those of the file do.

        If beliefs decide when or on what people are asked, these were followed from step 1, so the model must have
        people alike at both, and plan their blocks alike.
        """
        subjects, expected = self.made.subjects, self.prospects.expected
        if subjects is None or expected is None:
            return False
        if not expected.follows:
            return True
        if subjects.setting.model.slots is not None:
            return False
        setting, steps = subjects.setting, np.union1d([1], self.begins(expected.steps))
        block, plans = np.arange(expected.steps if self._known_blocks else 1), PlanSchedule(setting)
        first_plans = plans.numbers(1 + block)
        if any((plans.numbers(step + block) != first_plans).any() for step in steps.tolist()):
            return False
        # Of those who can stay: of all people they may be few.
        laws = (law * expected.possible for law in laws_of_steps(setting.model, steps, setting.options.start))
        laws = (law / (law.sum() or 1.0) for law in laws)
        first = next(laws)
        alone = ModelGuesses(self.space)
        # A few people may be all of an error: each state also counts by how far a guess without a file is off there.
        off = np.stack([np.ones(len(first)), alone.costs(alone.place(first))])
        most = np.array([_ELSEWHERE, _FURTHER_OFF * float(off[1] @ first)])
        return all((off @ np.abs(law - first) / 2 <= most).all() for law in laws)

    @cached_property
    def found(self) -> ReaderFindings | None:
        """The expected findings of a reader of the file; None if they are not known (``prospects.missing``).

        About places: from the file's rows, by public model and answers. About people who stay at one place: from
        simulated people. None of it depends on true states, also where they are known.
        """
        (at, spreads), expected, known = self.believed, self.prospects.expected, self.prospects.stays
        if self.prospects.partial or not len(at) or not self.rows.asked.any():
            return None
        error, without = float(spreads.mean()), float(self.alone[at].mean())
        if expected is None:
            # Of who stays nothing was simulated; of the rows the answers themselves tell.
            off, state = error_of_known_states(self.space), state_name(self.space)
            return ReaderFindings(
                error, without, self.space.unit, self.rows_told, self._ratio,
                known=off, state=state, uncomputed=self.prospects.missing,
            )  # fmt: skip
        each, alone = self._errors_of_people
        whose = replace(
            expected.found, error=error, without=without, people=self.rows_told, ratio=self._ratio,
            halved=int(((each <= alone / 2) & (each < alone)).sum()), counted=len(each),
            noun=self.statement.subjects.noun,
        )  # fmt: skip
        if self.lines is not None and self.lines < error:
            # Which reader is the best is told by answers that were held out.
            whose = replace(whose, error=self.lines, ratio=None, reader=LINES)
        if not self.names_blocks:
            return replace(whose, stays=(), uncomputed=NO_BLOCKS if self.most_of_one > 1 else "")
        if not self.begins_alike:
            return replace(whose, stays=(), uncomputed=OTHER_TIMES)
        # Answers of parts of days about one place find it as those of whole ones.
        blocks = max(self.whole_blocks, self.most_of_one // max(1, expected.answers))
        return replace(whose, stays=whose.stays if known is None else known.found, blocks=blocks)

    @cached_property
    def _errors_of_people(self) -> FloatArray:
        """The reader's error (2, n) for each person, summed over rows: with the file, and without it."""
        counted = ~np.isnan(self.spreads) & ~np.isnan(self.alone)
        sums = [(self.spreads[known].sum(), self.alone[known].sum()) for at in self.rows.by_user.values()
                if len(known := at[counted[at]])]  # fmt: skip
        return np.array(sums).T if sums else np.zeros((2, 0))

    @property
    def _ratio(self) -> tuple[float, float] | None:
        """A 95 % interval over people of what a reader misses them by, as a share of that without the file."""
        errors, without = self._errors_of_people
        n = len(errors)
        if n < 2 or not without.sum() > 0:
            return None
        ratio = float(errors.sum() / without.sum())
        # The ratio of two sums over people, linear about its value.
        error = math.sqrt(n / (n - 1) * float(((errors - ratio * without) ** 2).sum())) / float(without.sum())
        most = float(stdtrit(n - 1, 0.975)) * error
        return ratio - most, ratio + most

    @cached_property
    def believed(self) -> tuple[IntArray, FloatArray]:
        """The rows (k,) of the people in the figures, and how far off (k,) a reader expects to be there."""
        at = np.flatnonzero(~np.isnan(self.spreads))
        return at, self.spreads[at]

    @cached_property
    def rows_told(self) -> str:
        """The words for the rows that the figures of places are about."""
        at, people = self.believed[0], len(self.rows.by_user)
        of = len({self.rows.user[row] for row in at.tolist()})
        return "the rows of this file" if of == people else f"the rows of {of:,} of {people:,} {self.called['people']}"

    @cached_property
    def story(self) -> Story:
        """The story of the release, as the terminal and ``--json`` have it."""
        return story(
            self.statement,
            self.promise,
            self.schedule,
            self.found,
            ledger=self.in_ledger,
            missing=self.prospects.missing,
            confirmed=self.confirmed,
            all_possible=self.all_possible,
            as_stated=True,
            answered=self.people_answered,
            largest=self._largest_of_rows,
        )

    @property
    def _largest_of_rows(self) -> Fraction | None:
        """The largest sum of epsilons of anybody in a block; None where the file does not tell it."""
        promise = self.promise
        if promise is None or (self.rows.time is None and isinstance(promise.per, str)):
            return None
        return max(self.largest_of.values(), default=None)

    @property
    def after_sequence(self) -> int:
        """The number of rows after the steps of a total over a sequence; 0 where one of them has an answer."""
        promise = self.statement.promise
        after = self.rows.step > (math.inf if promise is None or promise.steps is None else promise.steps)
        return 0 if self.rows.asked[after].any() else int(after.sum())

    @cached_property
    def people_answered(self) -> int:
        """The number of people with an answer."""
        return sum(bool(self.rows.asked[at].any()) for at in self.rows.by_user.values())

    @cached_property
    def in_ledger(self) -> InLedger | None:
        """The ledger's account of the person with most answers; None without a ledger."""
        if self.elsewhere is None:
            return None
        largest = max(self.largest_of.values(), default=Fraction(0))
        return InLedger(largest, self.in_all, self.queries, any(self.elsewhere.values()))

    @cached_property
    def in_all(self) -> Fraction:
        """The largest sum of epsilons of a person, over everything in the file; the ledger's where there is one."""
        sums = [sum((total for _, _, total in blocks), Fraction(0)) for _, blocks in self.spent]
        return max(sums, default=Fraction(0))

    @property
    def measured_words(self) -> list[str]:
        """The sentences on the measured error if the truth is known, apart from the expected one."""
        truth, unit = self.truth, self.space.unit
        if truth is None or truth.mean is None:
            return []
        whose = f"simulated {self.called['people']}" if truth.simulated else "true rows: for the owner alone"
        sentence = f"{off(truth.mean, unit)} off on average ({off(truth.without, unit)} without the file), of {whose}"
        if truth.kernel is not None:
            sentence += f"; {off(truth.kernel, unit)} without a model, of answers weighed by their time of day"
        return [sentence, *([self.leaving] if self.leaving else [])]

    @cached_property
    def leaving(self) -> str:
        """The reader's error about times of leaving home in words, on a map with truth and times; empty if unknown.

        Home is the first place of the day; 500 m from it is away. The guess is the median of the true times.
        """
        time, truth = self.rows.time, self.truth
        if time is None or truth is None or not self.on_map:
            return ""
        local, pairs = self.local(time), []
        for person in self.persons:
            days = local[person.rows] // _DAY
            for day in np.unique(days).tolist() if person.guess is not None else ():
                at = np.flatnonzero(days == day)
                left = _first_away(self.space, truth.places[person.rows[at]])
                if left is None:
                    continue
                assert person.guess is not None
                seen = _first_away(self.space, person.guess[at])
                seconds = local[person.rows[at]] % _DAY
                pairs.append((float(seconds[left]), np.nan if seen is None else float(seconds[seen])))
        if not pairs:
            return ""
        truly, seen_at = np.array(pairs).T
        guess = float(np.median(truly))
        file = float(np.abs(np.where(np.isnan(seen_at), guess, seen_at) - truly).mean())
        without = float(np.abs(guess - truly).mean())
        return leaving_words(file, without, guess, self.zone_name, self.called["somebody"])

    @cached_property
    def further(self) -> list[tuple[float, Fraction]]:
        """Distances beyond the covered one, and what one answer may tell at most of places so far apart (epsilon).

        The most that any two cells lose that have places no further apart, under any plan of the file's answers. Of
        grids of few cells and few plans; empty for others, and where not every plan was made again.
        """
        covered, space = self.statement.covered_distance, self.space.unmerged
        metres = covered.metres if covered else None
        if not isinstance(metres, float) or not metres > 0 or not isinstance(space, Grid) or not self.plans:
            return []
        n = space.n_states
        if n > _MOST_COMPARED or len(self.plans) > _MOST_PLANS:
            return []
        first, second = (part.astype(np.int64) for part in np.triu_indices(n, 1))
        gaps = np.abs(space.own_answers[first] - space.own_answers[second])
        apart = np.hypot(*np.maximum(0.0, np.rint(gaps / space.cell) - 1).T) * space.cell
        losses = np.max([losses_between(plan, first, second, n) for plan in self.plans], axis=0)
        bounds = []
        for far in (rounded_down(_FURTHER * metres), 2 * rounded_down(_FURTHER * metres)):
            most = float(losses[apart <= far].max(initial=0.0))
            if far > metres and math.isfinite(most) and (apart > far).any():
                bounds.append((far, Fraction(most)))
        return bounds

    def __repr__(self) -> str:
        return f"ReleaseReport({self.name}: {len(self.rows)} rows of {len(self.rows.by_user)} people)"

    def _repr_html_(self) -> str:
        """The story as a table, for notebooks: a row for each sentence, which the notebook breaks."""
        rows = "".join(
            f"<tr><th scope=row>{escape(name.replace('_', ' '))}</th><td>{escape(sentence)}</td></tr>"
            for name in ("verdict", *ANSWERS)
            for sentence in self.story.words(name)
        )
        caption = f"{OWNER_ONLY * self.owner_only}{self.title}: {self.name}"
        return f"<table><caption>{escape(caption)}</caption><tbody>{rows}</tbody></table>"

    @property
    def zone_name(self) -> str:
        """The clock of the page: that of the promise, as "+08:00" or "Europe/Berlin"."""
        return "+00:00" if self.promise is None else self.promise.zone

    def local(self, moments: Any) -> Any:
        """The page's local time at moments in seconds since 1970 UTC: in seconds as if it were UTC."""
        ahead = seconds_ahead(self.zone_name, np.atleast_1d(np.asarray(moments, dtype=np.int64)))
        return moments + (ahead if np.ndim(moments) else int(ahead[0]))

    @property
    def clock_changes(self) -> list[tuple[int, int]]:
        """From which row's time on the clock is how many seconds ahead of UTC."""
        times = np.zeros(1, dtype=np.int64) if self.rows.time is None else np.unique(self.rows.time)
        ahead = self.local(times) - times
        at = np.flatnonzero(np.diff(ahead, prepend=ahead[:1] - 1))
        return list(zip(times[at].tolist(), ahead[at].tolist(), strict=True))

    @property
    def clock_name(self) -> str:
        """The clock in words: "UTC", "UTC+08:00", "in Europe/Berlin"."""
        if self.promise is not None and self.promise.is_local:
            return f"in {self.zone_name}"
        return "UTC" + self.zone_name * (self.zone_name != "+00:00")

    def block(self, user: str, steps: IntArray) -> IntArray:
        """The beginning of the block of each step (n,) of a person: of the promise, else of the day, or of all."""
        promise, rows, each = self.promise, self.rows, self.made.model.step
        at = rows.by_user[user]
        if promise is None or promise.per is None:
            if promise is not None or rows.time is None:
                return np.zeros(len(steps), dtype=np.int64)
            if each is None:
                known = rows.time[at][np.searchsorted(rows.step[at], steps).clip(max=len(at) - 1)]
                return np.asarray(known // _DAY)
            time = rows.time[at[0]] + (steps - rows.step[at[0]]) * each
            return np.asarray(steps - time % _DAY // each)
        if isinstance(promise.per, str) and rows.time is None:
            length = promise.length(each)
            passed = passed_without_times(rows.step[at][rows.asked[at]], length)
            promise = SequencePromise(promise.total, per=length, passed=passed)
        elif isinstance(promise.per, str):
            assert rows.time is not None and each is not None
            promise = promise.in_steps(each, int(rows.time[at[0]] // each - rows.step[at[0]]) + 1)
        return promise.bounds(steps)[0]

    def spending(self, user: str, *, alone: bool = False) -> list[tuple[int, int, int, Fraction]]:
        """The steps of a person in order: (block, step, answers, sum of epsilons).

        The ledger's where there is one, unless the file is looked at ``alone``.
        """
        rows, at, exact = self.rows, self.rows.by_user[user], self.statement.exact_epsilons
        answers = dict(zip(rows.step[at].tolist(), rows.asked[at].astype(int).tolist(), strict=True))
        epsilons = (exact.get(epsilon) or Fraction(epsilon) for epsilon in rows.epsilon[at].tolist())
        sums = dict(zip(answers, epsilons, strict=True))
        for step, epsilon in () if alone else (self.elsewhere or {}).get(user, ()):
            answers[step], sums[step] = answers.get(step, 0) + 1, sums.get(step, Fraction(0)) + epsilon
        steps = sorted(answers)
        blocks = self.block(user, np.array(steps, dtype=np.int64)).tolist()
        return [(block, step, answers[step], sums[step]) for block, step in zip(blocks, steps, strict=True)]

    @cached_property
    def spent(self) -> list[tuple[str, list[tuple[int, int, Fraction]]]]:
        """Each person's blocks in order: (block, answers, sum of epsilons); the ledger's if there is one."""
        return self._in_blocks(alone=False)

    @cached_property
    def in_file(self) -> list[tuple[str, list[tuple[int, int, Fraction]]]]:
        """The same for the file alone, as its reader sees it."""
        return self._in_blocks(alone=True) if self.elsewhere else self.spent

    def _in_blocks(self, *, alone: bool) -> list[tuple[str, list[tuple[int, int, Fraction]]]]:
        people = []
        for user in self.rows.by_user:
            block, _, answers, epsilon = np.array(self.spending(user, alone=alone), dtype=object).T
            starts = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
            sums = (block[starts], np.add.reduceat(answers, starts), np.add.reduceat(epsilon, starts))
            people.append((user, list(zip(*sums, strict=True))))
        return people

    @cached_property
    def sums(self) -> dict[str, list[tuple[int, Fraction]]]:
        """Each person's answers and sum of epsilons in each block, or in the window that ends with each step."""
        window = None if self.promise is None else self.promise.window
        if window is None:
            return {user: [(answers, total) for _, answers, total in blocks] for user, blocks in self.spent}
        people = {}
        for user in self.rows.by_user:
            _, step, *counts = np.array(self.spending(user), dtype=object).T
            before = np.searchsorted(step.astype(np.int64), step.astype(np.int64) - window, side="right")
            sums = [np.append(0, np.cumsum(count)) for count in counts]
            people[user] = list(zip(*(cumulative[1:] - cumulative[before] for cumulative in sums), strict=True))
        return people

    @cached_property
    def largest_of(self) -> dict[str, Fraction]:
        """The largest sum of epsilons of each person in a block, or in any window, of the promise."""
        return {user: max((total for _, total in sums), default=Fraction(0)) for user, sums in self.sums.items()}

    @cached_property
    def answers_of(self) -> dict[str, int]:
        """The most answers of each person in a block, or in any window, of the promise."""
        return {user: max((answers for answers, _ in sums), default=0) for user, sums in self.sums.items()}

    @property
    def most_of_one(self) -> int:
        """The most answers of anybody in the file."""
        asked = self.rows.asked
        return max((int(asked[at].sum()) for at in self.rows.by_user.values()), default=0)


def passed_without_times(asked: IntArray, length: int) -> int:
    """The number of steps (0 to ``length`` - 1) of its block that had passed before step 1, if no time tells.

    ``asked`` (k,) are the steps with an answer. The result is one that no reader can deny: the place of step 1 with
    fewest answers in the block with most. One of the places that a promise allows is always among these.

    >>> passed_without_times(np.array([1, 3, 5, 7]), 4), passed_without_times(np.array([2, 3]), 4)
    (0, 2)
    """
    if not len(asked):
        return 0
    most = [int(np.unique((asked - 1 + passed) // length, return_counts=True)[1].max()) for passed in range(length)]
    return int(np.argmin(most))
