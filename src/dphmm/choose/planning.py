"""Choose a schedule for a budget from the public model alone, before any of it is spent.

For each of a few numbers of releases the errors of invented people are simulated, and the best is taken. Beside it
stands the remaining error of a reader of the file about somebody who stays at one place, after one block (say a
day) and after seven. All figures are of a file that begins at step 1 with people as the model has them there, and of
as many blocks as were simulated: of other hours, later blocks or longer files they can be larger or smaller. Nobody's
data are looked at, so a choice made here costs nothing and discloses nothing. The errors are those of people who move
as the model says; of others they can be larger.

Source: docs/proofs/schedules.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple, Unpack

import numpy as np
from scipy.special import ndtr, stdtrit

from dphmm._cached import cached_property
from dphmm._checks import EPSILON_MAX, EPSILON_MIN, exact_epsilon, exact_number, one_of, whole
from dphmm._kernels.process import on_one_thread
from dphmm._progress import Progress, shown
from dphmm.accounting.promise import KINDS, MOST_SCHEDULED, Schedule, SequencePromise
from dphmm.accounting.records import check_exact
from dphmm.accounting.records import shown as written
from dphmm.choose.schedule_plan import (
    AFTER,
    CALLED,
    CHANCE,
    SETTLED,
    SchedulePlan,
    Stays,
    TriedSchedule,
    found_of,
    simulated_blocks,
)
from dphmm.choose.simulated import (
    RAREST,
    Errors,
    Guesses,
    ModelGuesses,
    Moves,
    SimulatedReleases,
    laws_of_steps,
    middles,
    most_side_by_side,
    places,
    places_of_states,
    side_by_side,
    steps_side_by_side,
    walks,
)
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms import OptimalTable, chosen_kind
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import ReplayBits
from dphmm.session.answer import answer_under
from dphmm.session.options import PlanChoices, check_begins
from dphmm.session.plan import StepPlan
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.setting import Setting
from dphmm.session.smoothing import likelihood_rows
from dphmm.statement.advice import MOST_EPSILON, not_advised
from dphmm.statement.sentences import CHANCE_TOLD
from dphmm.statement.verdict import ReaderFindings, Stay
from dphmm.states.space import StateSpace
from dphmm.states.zones import Zones
from dphmm.types import Bits, BoolArray, Exact, FloatArray, IntArray

#: Epsilons of a release that are tried; each is raised until the whole total is spent.
LADDER = tuple(Fraction(half, 2) for half in (1, 2, 3, 4, 6, 8, 12))
#: A paced schedule may ask as wide a belief as there is after this share of the time until a release is due.
SOONER = 0.8
#: Answers times other steps, where each answer of a sequence is moved by itself: some seconds.
_MOST_POSITIONS = 100
#: Totals that a plan is compared with, as shares of its own.
COMPARED = (Fraction(1, 4), Fraction(1, 2), Fraction(2))
#: Steps of all invented people together.
MOST_STEPS = 4 * 10**6
#: Invented people who stay at one place.
STAYERS = 300
#: Where plans hang on answers, each answer of somebody who stays needs a plan: at most so many for one figure's people
#: together, who are no fewer than these: seven days of an answer every half hour. What needs more is not computed.
MOST_STAYING_PLANS, FEWEST_STAYERS = 8_400, 25
#: Longer stays than those of `AFTER` are computed where people, answers and states together are no more: some seconds.
_MOST_STAYING = 10**9
#: Why too much work is not done.
_OWN_PLANS = "every answer has a plan of its own"
#: The share of people that the figure of the nearest is about.
_TENTH = 0.1
#: People stay from at most so many different steps on, where blocks of a file begin at more.
_MOST_BEGINNINGS = 24
#: Places that a guess of somebody who stays is averaged over, all states together; one of each where there are more.
_PLACES_OF_STAYERS = 2000
#: How many blocks or windows people stay in the figures of a plan.
LONGER = (1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 30)
_DAY = 86400
#: Who is followed for what is found without a limit: so many people at so many steps, fewer people where that takes
#: more multiplications than these (some seconds), and nobody where it would be fewer than `_FEWEST_FOLLOWED`.
_FOLLOWED, _ANSWERED, _FEWEST_FOLLOWED, _MOST_WORK = 100, SETTLED, 10, 5 * 10**9
#: So many people are followed first in a large world: moves of as many side by side take least.
_FIRST_FOLLOWED = 16
#: Measured in large worlds, for the forecast: moves for each step, and how much longer it takes as more people join.
_MOVES_OF_A_STEP, _MORE_FOLLOWED = 0.35, 1.6
#: Steps whose guesses are looked at in a large world, and by which share of a part the step of each part is later in it
#: than that of the part before: of the shares tried, periods of 2 to 144 steps are met most evenly by this one.
_MOST_LOOKED_AT, _LATER = 64, 0.635
#: A smaller share of a belief moves no printed figure.
_UNLIKELY = 1e-15
#: What is computed together: so many likelihoods of answers at most, of which many are equal; so many distances.
_MOST_ADDED, _TOGETHER = 2**24, 2 * 10**6
_HOURS = re.compile(r"([0-9]{1,2})-([0-9]{1,2})")


def plan(
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    promise: SequencePromise,
    *,
    schedule: str = "planned",
    hours: str | None = None,
    epsilon: Exact | None = None,
    reserve: Exact = 0,
    people: int = 100,
    seed: int = 1,
    progress: bool | Progress = True,
    **choices: Unpack[PlanChoices],
) -> SchedulePlan:
    """The schedule of least expected error that keeps a promise, chosen from the public model alone.

    Only what is advised (`dphmm.statement.advice`) is chosen, and an epsilon that was named is taken.

    Parameters
    ----------
    promise : the bound on the loss of all releases of a sequence, of each block or of any window together.
    schedule : "planned": fixed public steps, of least smoothed error. "staggered": as many public steps, moved by
        an offset of each person and block (`dphmm.accounting.Schedule`). "paced": steps chosen from what was published
        before, of least error online.
    hours : as "7-21": only steps are asked whose bin begins in these hours of the clock of the promise, whose blocks
        must be whole days; staggered they may not run over midnight.
    epsilon : of each release; tried are several without it.
    reserve : the share of the total that is left for later questions about the same people.
    people : invented ones; ``seed`` names them, their noise, staggered times. The same input gives the same
        plan, but for the last digits of its figures: they hang on the linear algebra of the machine.
    progress : a bar on a terminal, or a function that is called with (candidates done, all candidates).
    choices : constraint, mechanism, protection, start, as for a `dphmm.ReleaseSession`.

    Raises
    ------
    InvalidInput : naming the argument. Unprotectable : as the first release would. DphmmError : no schedule is advised.

    Examples
    --------
    >>> import dphmm
    >>> space = dphmm.StateSpace([0, 1])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> promise = dphmm.SequencePromise(2, per=8)
    >>> dphmm.choose.plan(model, dphmm.policy.complete(2), space, promise, epsilon=1, people=20).schedule.at
    (3, 7)

    Source: docs/proofs/schedules.md.
    """
    world = World(model, policy, space, promise, schedule, hours, epsilon, people, seed, choices, reserve=reserve)
    with shown(progress, "plan") as report:
        planned = world.plan(world.promise.exact, report)
    world.check_advised(planned)
    return planned


def without_limit(setting: Setting, seed: int = 1) -> ReaderFindings | str:
    """The findings of a reader if every step has an answer and no limit ends it; else the reason, in words.

    It is simulated from the setting alone, which is public: people who move as its model says are asked at each of 192
    steps, of fewer where so many answers have no epsilon together. ``seed`` names the people and their noise.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.session.setting import Setting
    >>> space = dphmm.StateSpace.categories(["home", "work"])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], space=space)
    >>> found = without_limit(Setting.of(model, dphmm.policy.complete(2), space, 4))
    >>> found.error < 0.02, round(found.without, 2)
    (True, 0.5)

    Source: docs/proofs/schedules.md.
    """
    if not setting.has_public_plans:
        return _OWN_PLANS
    epsilon = setting.options.epsilon
    steps = min(_ANSWERED, int(EPSILON_MAX // epsilon))
    numbers = PlanSchedule(setting).numbers(np.arange(1, steps + 1))
    if chosen_kind(setting.options.mechanism) is OptimalTable and np.ptp(numbers):
        return "the table of every plan takes long"
    people = min(_FOLLOWED, _MOST_WORK // work_of(setting.model, steps))
    if people < _FEWEST_FOLLOWED:
        return f"{setting.model.n_states:,} states take too long"
    try:
        promise = SequencePromise(epsilon * steps, steps=steps)
        public = setting.model, setting.policy, setting.space, promise
        world = World(*public, people=people, seed=seed, choices=setting.options.choices)
        # Plans that a release with this setting needs are made once.
        world._settings[epsilon] = setting
        return world.expected(world.every_step(epsilon)).found
    except DphmmError as error:
        return str(error)


def work_of(model: MarkovModel, steps: int) -> int:
    """The number of multiplications to follow one simulated person for so many steps."""
    return steps * max(int(model.matrix_at(1).nnz), 16 * model.n_states)


def _add_answers(logs: FloatArray, plan: StepPlan, states: IntArray, count: int, bits: Bits) -> None:
    """Add to beliefs in logs (N, n) what so many answers of each of some states (n,) under one plan say."""
    while count:
        # The likelihoods of many answers are computed in one call.
        steps = min(count, max(1, _MOST_ADDED // logs.size))
        drawn = np.concatenate([answer_under(plan, states, bits)[0] for _ in range(steps)])
        likely = likelihood_rows(plan, drawn)
        each = likely.values
        np.log(np.maximum(each, RAREST), out=each, where=~likely.logged[:, None])
        for rows in np.split(likely.which, steps):
            logs.T[:] += each[rows]
        count -= steps


def error_of_known_states(space: StateSpace) -> float:
    """The mean distance of a guess from people whose state is known and whose place in it is not, all states alike."""
    cells = space.unmerged
    return float(cells.distances(middles(cells)[:, None], places_of_states(cells)).mean())


def _groups_of(people: int, work: int) -> tuple[IntArray, tuple[int, ...]]:
    """The order (n,) in which people are followed, each with so much ``work``, and the sizes of the growing groups.

    Those of each group stand as far from each other as they can, so that it has people from everywhere.
    """
    counts = [people]
    while people * work > _MOST_WORK and _FIRST_FOLLOWED * 2 ** (len(counts) - 1) < people:
        counts.insert(-1, _FIRST_FOLLOWED * 2 ** (len(counts) - 1))
    spread = [np.arange(count) * people // count for count in counts]
    return np.array(list(dict.fromkeys(np.concatenate(spread).tolist()))), tuple(counts)


def _looked_at(steps: int) -> IntArray:
    """Some of so many steps: one in each of `_MOST_LOOKED_AT` equal parts, at no period that a schedule could have."""
    most = min(steps, _MOST_LOOKED_AT)
    parts = np.arange(most)
    return np.asarray(1 + (parts + parts * _LATER % 1) * steps // most, dtype=np.int64)


def state_name(space: StateSpace) -> str:
    """The word for a state in figures: zone or cell."""
    return "zone" if isinstance(space.unmerged, Zones) else "cell"


class Expected(NamedTuple):
    """The expected findings of a reader of a file from step 1 on.

    ``steps``: those of a sequence, block or window. ``possible`` (N,): True for the states that somebody may stay at.
    ``answers``: the most that somebody has in a block. ``follows``: True if beliefs decide the steps or the plans of
    answers.
    """

    found: ReaderFindings
    steps: int
    possible: BoolArray
    answers: int = 0
    follows: bool = False


class World:
    """The parts that plans of several totals share: simulated people, the steps that may be asked, and results so far.

    ``length`` : the steps of a sequence, block or window; the people are seen for several blocks or windows from step
    1 on, and figures are of a file of these. ``at``: the steps that may be named, where not those of ``hours``.
    ``begins`` (k,): the steps at which the blocks of a file begin, from which on people stay; step 1 by default.

    Raises InvalidInput naming the argument.
    """

    def __init__(
        self,
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        promise: SequencePromise,
        schedule: str = "planned",
        hours: str | None = None,
        epsilon: Exact | None = None,
        people: int = 100,
        seed: int = 1,
        choices: PlanChoices | None = None,
        at: Sequence[int] | None = None,
        begins: IntArray | None = None,
        reserve: Exact = 0,
    ) -> None:
        if not isinstance(promise, SequencePromise):
            raise InvalidInput("promise", type(promise).__name__, "a dphmm.SequencePromise")
        check_begins(promise)
        self.promise = promise
        self.kind = one_of(schedule, KINDS, "schedule")
        self._spends = 1 - _checked_reserve(reserve, self.kind)
        self.people, self.seed = whole(people, "people", 2), whole(seed, "seed", 0)
        self.setting = Setting.of(model, policy, space, promise.exact, **(choices or PlanChoices()))
        self._settings: dict[Fraction, Setting] = {}
        self._followed_so_far: dict[Schedule, FloatArray] = {}
        self.length = block_length(promise, model.step)
        self.hours = hours
        self.at = allowed_steps(promise, model.step, hours) if at is None else np.asarray(at, dtype=np.int64)
        self._stagger = str(seed) if self.kind == "staggered" else ""
        if self._stagger and np.ptp(self.at) >= len(self.at):
            raise InvalidInput("hours", hours, "hours that do not run over midnight: times are moved between them")
        self.epsilon = None if epsilon is None else exact_epsilon(epsilon)
        if self.epsilon is not None:
            check_exact(self.epsilon, "epsilon")
            if self.epsilon > promise.exact * self._spends:
                raise InvalidInput("epsilon", written(self.epsilon), self._at_most(promise))
        every = np.ones(1, dtype=np.int64) if begins is None or not len(begins) else np.unique(begins)
        #: Some of the steps at which blocks begin.
        self.begins = every[np.unique(np.linspace(0, len(every) - 1, _MOST_BEGINNINGS).astype(np.int64))]
        self._blocks = simulated_blocks(promise, self.length)
        # Of short sequences there are more people instead of more blocks: as many steps in all.
        walked = self.people * (-(-SETTLED // self.length) if promise.steps is not None else 1)
        steps = self.length * self._blocks
        if steps * walked > MOST_STEPS:
            name = next(name for name in ("steps", "window", "per") if getattr(promise, name) is not None)
            expected = f"at most {MOST_STEPS} steps of all {self.people} people: a shorter one, or fewer people"
            raise InvalidInput(name, f"{steps} simulated steps", expected)
        #: In which order people are followed under each schedule, and how many of them before more are.
        self._order, self._groups = _groups_of(walked, work_of(model, steps))
        self._is_large = len(self._groups) > 1
        self.moves = Moves(model, often=self._is_large)
        generator = np.random.default_rng(self.seed)
        begin, self.weights = self._beginnings(walked, generator)
        self.paths = walks(model, walked, steps, generator, self.setting.options.start, first=begin)
        self.there = places(space, self.paths, generator)

    def _beginnings(self, people: int, generator: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """The states (n,) in which invented people begin, and for how many each of them stands (n,).

        Half of them are as the model has people, half by how far off a guess without a file is: few people may be most
        of an error.
        """
        law = self.setting.model.summed(self.setting.model.initial)
        order, far = self._far(law)
        drawn = (law + far / far.sum()) / 2 if far.any() else law
        shares = (np.arange(people) + generator.random(people)) / people * drawn.sum()
        states = order[np.searchsorted(np.cumsum(drawn[order]), shares, side="right").clip(max=len(law) - 1)]
        return states, law[states] / drawn[states]

    def _far(self, law: FloatArray) -> tuple[IntArray, FloatArray]:
        """The states in order of how far off a guess without a file is there, and their parts (N,) of that error."""
        costs = self._alone.costs(self._alone.place(law))
        return np.argsort(costs, kind="stable"), law * costs

    # -- candidates -----------------------------------------------------------------------------------------------

    def allows(self, total: Fraction) -> bool:
        """True if a total can be kept: it is an epsilon, and has room for a release."""
        spent = total * self._spends
        return spent >= EPSILON_MIN and total <= EPSILON_MAX and (self.epsilon is None or self.epsilon <= spent)

    def _at_most(self, promise: SequencePromise) -> str:
        """The most that an epsilon may be."""
        reserve = f" without the reserve: {written(promise.exact * self._spends)}" if self._spends < 1 else ""
        return f"at most {promise}, the promise{reserve}"

    def plans(
        self, totals: Sequence[Fraction], progress: Progress | None = None, made: dict[Any, SchedulePlan] | None = None
    ) -> Iterator[SchedulePlan]:
        """The plans of several totals, each the one that it has by itself. ``progress`` as for `plan`.

        In a large world people stay longer than `AFTER` in the figures of the first alone. ``made`` keeps the plans for
        worlds that differ in their total alone.
        """
        made = {} if made is None else made
        counts = [len(self._counts(total)) for total in totals]
        for number, total in enumerate(totals):
            before = sum(counts[:number])
            after = AFTER if number and self._is_large else LONGER
            if (total, after) not in made:
                added = None if progress is None else _added(progress, before, sum(counts))
                made[total, after] = self.plan(total, added, after)
            yield made[total, after]

    def totals(self, total: Fraction) -> list[Fraction]:
        """A total, and a quarter, half and twice as much, with which it is compared, as far as these can be kept."""
        return [total, *(each for share in COMPARED if self.allows(each := total * share))]

    def compared(self, total: Fraction, progress: Progress | None = None) -> SchedulePlan:
        """The plan of a total, with those of other totals. ``progress`` as for `plan`."""
        chosen, *others = self.plans(self.totals(total), progress)
        return replace(chosen, others=tuple(others))

    @on_one_thread
    def forecast(self, totals: Sequence[Fraction]) -> float:
        """About how many seconds the plans of some totals take: moves and guesses are timed here, on some people."""
        people, steps = self._groups[0], self.paths.shape[1]
        beliefs = np.repeat(self.setting.model.initial[:, None], min(people, _FIRST_FOLLOWED), axis=1)
        seconds: list[float] = []
        # The first time is that of the compiler.
        for _ in range(2):
            begun = [perf_counter()]
            for work in (self.moves.ahead, lambda rows, _: self._guesses.of(self.setting.model.summed(rows))):
                work(beliefs, 2)
                begun.append(perf_counter())
            seconds = np.diff(begun).tolist()
        looked = _MOST_LOOKED_AT if self._is_large else steps
        moves = _MOVES_OF_A_STEP * steps if self._is_large else steps
        schedules = sum(len(self._counts(total)) for total in totals)
        each = 2 * (moves * seconds[0] + looked * seconds[1]) * people / beliefs.shape[1]
        return float(schedules * each * (_MORE_FOLLOWED if self._is_large else 1))

    @on_one_thread
    def plan(self, total: Exact, progress: Progress | None = None, after: Sequence[int] = LONGER) -> SchedulePlan:
        """The plan of one total. Raises InvalidInput for one below the epsilon of a release.

        ``after``: as for `stays`.
        """
        schedule, ladder = self._by_position(*self.choose(total, progress))
        setting = self.setting
        return SchedulePlan(
            schedule=schedule,
            ladder=ladder,
            without=self.without,
            stays=self.stays(schedule, after),
            options=self._at(schedule.exact).options.written(),
            digests={"model": setting.model.digest, "policy": setting.policy.digest, "space": setting.space.digest},
            unit=setting.space.unit,
            people=self.people,
            seed=self.seed,
            hours=self.hours,
            step=setting.model.step,
        )

    def choose(self, total: Exact, progress: Progress | None = None) -> tuple[Schedule, tuple[TriedSchedule, ...]]:
        """The schedule of one total, and all that were tried. Raises as `plan`."""
        promise = replace(self.promise, total=exact_epsilon(total, "total"))
        if self.epsilon is not None and self.epsilon > promise.exact * self._spends:
            raise InvalidInput("epsilon", written(self.epsilon), self._at_most(promise))
        counts = self._counts(promise.exact)
        tried: list[Schedule] = []
        room = most_side_by_side(self.paths.shape[1], self.setting.model.n_states)
        together = 1 if self._is_large else max(1, room // len(self.paths))
        while len(tried) < len(counts):
            more = [self._tried(promise, *count) for count in counts[len(tried) : len(tried) + together]]
            self._follow(more, 1)
            tried += more
            if progress is not None:
                progress(len(tried), len(counts))
            chosen = tried[self._best(tried)]
            if self._is_large and chosen.exact <= MOST_EPSILON and self._is_worse(tried[-1], chosen):
                # More answers of less epsilon each cost most to follow, and err more from here on.
                break
        for groups in range(2, len(self._groups) + 1):
            best = self._best(tried)
            if self._is_sure(tried[best]):
                break
            for number, schedule in enumerate(tried):
                if number == best or not self._is_worse(schedule, tried[best]):
                    self._follow([schedule], groups)
        best = self._best(tried)
        if self.kind == "paced":
            tried[best] = self._sooner(tried[best])
        ladder = []
        for number, ((releases, epsilon), schedule) in enumerate(zip(counts, tried, strict=False)):
            errors, people = self._per_length(self._known_errors(schedule)), len(self._followed_so_far[schedule])
            figures = (errors.asked, errors.online, errors.smoothed, errors.deviation)
            ladder.append(TriedSchedule(epsilon, releases, *figures, number == best, people))
        return tried[best], tuple(ladder)

    def _by_position(
        self, schedule: Schedule, ladder: tuple[TriedSchedule, ...]
    ) -> tuple[Schedule, tuple[TriedSchedule, ...]]:
        """The planned schedule of a short sequence with each answer where it helps most, and the ladder with it.

        One answer at a time is moved to the step with the least error, in as many rounds as there are answers, if it
        gains more than the best of as many moves would by chance: where all steps are alike, answers stay even.
        """
        moves = schedule.releases * (len(self.at) - schedule.releases)
        if self.kind != "planned" or self.promise.steps is None or not 0 < moves <= _MOST_POSITIONS:
            return schedule, ladder
        even = schedule
        for _ in range(schedule.releases):
            before = schedule
            for number in range(schedule.releases):
                rest = [*schedule.at[:number], *schedule.at[number + 1 :]]
                tried = [replace(schedule, at=sorted([*rest, step])) for step in self.at.tolist() if step not in rest]
                best = min(tried, key=lambda each: self._errors(each).smoothed)
                if self._is_worse(schedule, best, moves):
                    schedule = best
            if schedule == before:
                break
        if schedule == even:
            return schedule, ladder
        errors = self._per_length(self._known_errors(schedule))
        figures = {name: getattr(errors, name) for name in ("asked", "online", "smoothed", "deviation")}
        return schedule, tuple(replace(row, **figures) if row.chosen else row for row in ladder)

    def _best(self, tried: Sequence[Schedule]) -> int:
        """The number of the best schedule, by the people followed so far: by what speaks against it, then by error."""
        figures = [self._per_length(self._known_errors(schedule)) for schedule in tried]
        errors = [each.online if self.kind == "paced" else each.smoothed for each in figures]
        against = [len(not_advised(at.exact, e.smoothed, self.known)) for at, e in zip(tried, figures, strict=True)]
        # The fewest releases come first, and keep their place where another is as good.
        return int(np.lexsort((errors, against))[0])

    def _is_worse(self, schedule: Schedule, best: Schedule, tried: int = 1) -> bool:
        """True if a schedule errs more than the best one, beyond chance, over the people followed under both.

        ``tried``: the number of schedules of which the best one has the least error over these people.
        """
        errors, least = self._followed_so_far[schedule], self._followed_so_far[best]
        both = min(len(errors), len(least))
        more = self.simulated(schedule).of_people(self._order[:both], errors[:both] - least[:both])
        beyond = CHANCE if tried == 1 else -float(stdtrit(both - 1, ndtr(-CHANCE) / tried))
        return (more.online if self.kind == "paced" else more.smoothed) > beyond * more.deviation

    def not_advised(self, planned: SchedulePlan) -> tuple[str, ...]:
        """The reasons for which a plan of these people is no advice: also where it is the best that was tried."""
        return not_advised(planned.schedule.exact, planned.expected_error, self.known)

    def check_advised(self, planned: SchedulePlan) -> None:
        """Raise DphmmError for a plan that is no advice, unless its epsilon was named."""
        if self.epsilon is None and (reasons := self.not_advised(planned)):
            would = "a smaller total or larger cells would be; an epsilon that you name is taken as it is"
            raise DphmmError(f"no schedule that was tried is advised: {' and '.join(reasons)}; {would}")

    @cached_property
    def known(self) -> float:
        """The mean distance of a guess from people whose states are known, by the model's law; 0 without places."""
        law = self.stay_law if self.stay_law.any() else self.setting.model.summed(self.setting.model.initial)
        apart = self.setting.space.distances(self._guesses.points[:, None], self._somewhere)
        return float(law @ apart.mean(axis=1))

    def _counts(self, total: Fraction) -> list[tuple[int, Fraction]]:
        """The numbers of releases to try, with their epsilon, the fewest first; at most the steps that may be named."""
        most, total = len(self.at), total * self._spends
        if self.epsilon is not None:
            return [(min(most, int(total // self.epsilon)), self.epsilon)]
        counts = sorted({min(most, max(1, int(total // epsilon))) for epsilon in LADDER})
        tried = [(count, total / count) for count in counts]
        over = [count for count, epsilon in tried if epsilon > MOST_EPSILON]
        if over and (over == counts or self.promise.steps is not None):
            # The steps are too few for the whole total, or a sequence has few answers: as much as is advised for each.
            tried.insert(len(over), (over[-1], MOST_EPSILON))
        return tried

    def candidate(self, promise: SequencePromise, releases: int, epsilon: Fraction) -> Schedule:
        """The planned schedule of so many releases: at the middles of equal parts of the steps that may be named."""
        middles = (2 * np.arange(releases) + 1) * len(self.at) // (2 * releases)
        return Schedule(promise, epsilon, self.at[middles].tolist(), seed=self._stagger)

    def every_step(self, epsilon: Fraction) -> Schedule:
        """The schedule that asks at every step. Raises InvalidInput where the sum of these epsilons is none."""
        promise = replace(self.promise, total=epsilon * self.length)
        return Schedule(promise, epsilon, range(1, self.length + 1))

    def in_steps(self, schedule: Schedule) -> Schedule:
        """The schedule for people whose step 1 begins a block, each of whose days has 24 hours."""
        return schedule.of_regular_blocks(self.setting.model.step, self.length)

    def _at(self, epsilon: Fraction) -> Setting:
        """The setting at an epsilon; its plans are made once."""
        return self._settings.setdefault(epsilon, self.setting.with_epsilon(epsilon))

    def simulated(self, schedule: Schedule) -> SimulatedReleases:
        """The invented people under a schedule."""
        return SimulatedReleases(
            self._at(schedule.exact),
            self.in_steps(schedule),
            self.paths,
            self.there,
            self.moves,
            self.seed,
            self.weights,
            self._guesses,
            _looked_at(self.paths.shape[1]) if self._is_large else None,
        )

    @cached_property
    def _guesses(self) -> Guesses:
        return Guesses(self.setting.space)

    def _tried(self, promise: SequencePromise, releases: int, epsilon: Fraction) -> Schedule:
        """A schedule of so many releases."""
        schedule = self.candidate(promise, releases, epsilon)
        if self.kind != "paced":
            return schedule
        spreads = self.simulated(schedule).spreads(self.length, np.sort(self._order[: self._groups[0]]))
        return Schedule(promise, epsilon, self.at.tolist(), _rounded_down(spreads))

    def _sooner(self, schedule: Schedule) -> Schedule:
        """A paced schedule, or if that errs less one with the spreads of `SOONER` of its times."""
        spreads = np.array(schedule.spreads)
        times = np.arange(1, len(spreads) + 1)
        other = replace(schedule, spreads=tuple(np.interp(times * SOONER, times, spreads).tolist()))
        errors = [self._per_length(self._errors(each)).online for each in (schedule, other)]
        return other if errors[1] < errors[0] else schedule

    def _errors(self, schedule: Schedule) -> Errors:
        """The errors of the people under a schedule: of as many as it takes for chance to be little, or of all."""
        for groups in range(1, len(self._groups) + 1):
            self._follow([schedule], groups)
            if self._is_sure(schedule):
                break
        return self._known_errors(schedule)

    def _follow(self, schedules: Sequence[Schedule], groups: int) -> None:
        """Follow the people of the first groups under some schedules, as far as they have not been.

        Those of as many people are followed side by side.
        """
        for begin, end in pairwise([0, *self._groups[:groups]]):
            behind = [each for each in schedules if len(self._followed_so_far.get(each, ())) == begin]
            if behind:
                who = np.sort(self._order[begin:end])
                errors = side_by_side([self.simulated(schedule) for schedule in behind], who)
                for schedule, more in zip(behind, errors, strict=True):
                    known = self._followed_so_far.get(schedule, more[:0])
                    self._followed_so_far[schedule] = np.concatenate([known, more])

    def _known_errors(self, schedule: Schedule) -> Errors:
        """The errors of the people who have been followed under a schedule."""
        each = self._followed_so_far[schedule]
        who = self._order[: len(each)]
        errors = self.simulated(schedule).of_people(who, each)
        return errors._replace(deviation=math.hypot(errors.deviation, self._unseen(len(each)) * self.without))

    def _is_sure(self, schedule: Schedule) -> bool:
        """True if chance moves the error of a schedule by so little that it is not mentioned."""
        errors = self._known_errors(schedule)
        return CHANCE * errors.deviation < CHANCE_TOLD * errors.smoothed

    def _per_length(self, found: Errors) -> Errors:
        """With the steps that are asked in one sequence, block or window."""
        return self._no_worse(found)._replace(asked=found.asked * self.length / self.paths.shape[1])

    def _no_worse(self, found: Errors) -> Errors:
        """No larger than without the file: a reader may leave it unread, so what lies above is noise of few people."""
        return found._replace(
            # Below 0 is rounding.
            online=max(0.0, min(found.online, self.without)),
            smoothed=max(0.0, min(found.smoothed, self.without)),
        )

    # -- without the file, and in spite of everything -------------------------------------------------------------

    @cached_property
    def _steps(self) -> IntArray:
        """All simulated steps."""
        return np.arange(1, self.length * self._blocks + 1)

    def _laws_at(self, steps: IntArray) -> Iterator[FloatArray]:
        return laws_of_steps(self.setting.model, steps, self.setting.options.start)

    def _unseen(self, people: int) -> float:
        """The share of the error without the file at states that none of so many simulated people visits.

        Counted in tenths by a guess's distance: few people who move far may make up the error, none of them simulated.
        """
        order, far = self._far_at_all_steps
        parts = far[order] / (float(far.sum()) or 1.0)
        tenth = np.empty(len(far), dtype=np.int64)
        tenth[order] = (10 * (np.cumsum(parts) - parts / 2)).astype(np.int64).clip(max=9)
        seen = np.zeros(10, dtype=np.bool_)
        seen[tenth[self.paths[self._order[:people]]]] = True
        return float(parts[~seen[tenth[order]]].sum())

    @cached_property
    def _far_at_all_steps(self) -> tuple[IntArray, FloatArray]:
        return self._far(np.mean(list(self._laws_at(self._steps)), axis=0))

    def _possible_from(self, begin: int) -> BoolArray:
        """The states (N,) that are possible at all of as many steps as are simulated, from ``begin`` on."""
        plans = PlanSchedule(self.setting)
        steps = begin - 1 + self._steps
        others = steps[np.unique(plans.numbers(steps), return_index=True)[1]]
        return np.asarray(np.all([plans.support(step) for step in others.tolist()], axis=0))

    @cached_property
    def _stays_from(self) -> dict[int, FloatArray]:
        """The model's law of states (N,) when a block begins, of those who can stay; by beginning, if there are any."""
        steps = zip(self.begins.tolist(), self._laws_at(self.begins), strict=True)
        laws = ((begin, law * self._possible_from(begin)) for begin, law in steps)
        return {begin: law / law.sum() for begin, law in laws if law.any()}

    @cached_property
    def _stay_laws(self) -> FloatArray:
        """The same in rows (k, N)."""
        return np.array(list(self._stays_from.values())).reshape(-1, self.setting.space.n_states)

    @cached_property
    def stay_law(self) -> FloatArray:
        """The model's law of states (N,) of people who stay, over all beginnings; all 0 if nobody can."""
        laws = self._stay_laws
        return np.asarray(laws.mean(axis=0) if len(laws) else np.zeros(laws.shape[1]))

    @cached_property
    def _alone(self) -> ModelGuesses:
        return ModelGuesses(self.setting.space)

    @cached_property
    def without(self) -> float:
        """The mean error of the best guess of each step by the model alone.

        It depends on the model alone, however few people are invented: the mean is over the states as the model has
        people in them, and over places in each state's cell.
        """
        model, start = self.setting.model, self.setting.options.start
        return float(self._alone.at(model, self._steps, start)[1].mean())

    @cached_property
    def _stayers(self) -> tuple[IntArray, FloatArray, IntArray]:
        """States (n,) and places (n, d) of people who stay, and the numbers (n,) of their beginnings.

        Each state has its share of people of each law. Their order tells nothing: fewer of them are followed if
        that takes long.
        """
        generator = np.random.default_rng(self.seed + 1)
        which = np.arange(STAYERS) * len(self._stay_laws) // STAYERS
        states = np.empty(STAYERS, dtype=np.int64)
        for number, law in enumerate(self._stay_laws):
            people = np.flatnonzero(which == number)
            shares = (np.arange(len(people)) + generator.random()) / max(1, len(people)) * law.sum()
            states[people] = np.searchsorted(np.cumsum(law), shares, side="right").clip(max=len(law) - 1)
        order = generator.permutation(STAYERS)
        states, which = states[order], which[order]
        return states, places(self.setting.space, states, generator), which

    def _ends_of(self, after: Sequence[int]) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The name of the time that people stay for, and (after, the steps from the first of a block until then)."""
        length, step = self.length, self.setting.model.step
        if self.promise.steps is not None:
            return "sequence", ((1, length),)
        what = "block" if self.promise.per is not None else "window"
        if isinstance(self.promise.per, str) and step is not None:
            what = CALLED.get(length * step, what)
        return what, tuple((blocks, blocks * length) for blocks in after)

    @on_one_thread
    def stays(self, schedule: Schedule, after: Sequence[int] = LONGER) -> Stays:
        """A reader's errors about people who stay at one place for so many whole blocks or windows, from a start on.

        ``after`` ascends.

        A reader multiplies the likelihoods of all answers of that time, whatever their hours: somebody who stays and
        is asked at noon is found as well as others. Somebody who is elsewhere for a part of the time is found
        no better. Figures of the same number of blocks are the same for every list. If plans depend on
        answers, those of more blocks than can be computed are left out, all of them if need be.
        """
        what, ends = self._ends_of(after)
        state = state_name(self.setting.space)
        if not self.stay_law.any():
            return Stays(what, self.without, (), self.known, state, "no state is possible at every step")
        ends = tuple(end for end in ends if self._is_computed(schedule, end[1]))
        without = float(np.mean([self._alone.off(law) for law in self._stay_laws]))
        setting = self._at(schedule.exact)
        weights = self._followed if self._follows(schedule) else self._planned
        stays = []
        for number, answers, columns in weights(setting, self.in_steps(schedule), ends):
            off = self._found(columns) if answers else np.full(1, without)
            # As of the others: a reader may leave the file unread.
            tenth = float(np.quantile(off, _TENTH))
            stays.append(Stay(number, answers, min(float(off.mean()), without), min(tenth, without)))
        uncomputed = "" if stays else _OWN_PLANS
        return Stays(what, without, tuple(stays), self.known, state, uncomputed)

    def _is_computed(self, schedule: Schedule, end: int) -> bool:
        """True if the figures of people who stay until a step take little enough work."""
        people, answers = self.stayers(schedule), self._most_answers(schedule, end)
        if not self.setting.has_public_plans:
            return people * answers <= MOST_STAYING_PLANS
        if end <= AFTER[-1] * self.length:
            return True
        steps = end if self._follows(schedule) else answers
        return people * steps * self.setting.space.n_states <= _MOST_STAYING

    @on_one_thread
    def expected(self, schedule: Schedule, stays: Stays | None = None) -> Expected:
        """The findings of a reader of a file released by a schedule, if people move as the model says.

        ``stays``: the result of `stays`, if known. Raises as the planner does.
        """
        stays = stays or self.stays(schedule)
        errors, step = self._no_worse(self._errors(schedule)), self.setting.model.step
        seconds = None if step is None else step * self.length
        unit = self.setting.space.unit
        findings = found_of(stays, errors.smoothed, errors.deviation, self.without, unit, seconds)
        return Expected(findings, self.length, self._possible_from(1), schedule.releases, self._follows(schedule))

    def _planned(self, setting: Setting, schedule: Schedule, ends: Any) -> Any:
        """After each end the mean number of answers about the place, and the tracker's beliefs (N, n)."""
        plans, (states, _, which) = PlanSchedule(setting), self._stayers
        # Staggered answers are as many, and tell the same about people who stay.
        schedule = replace(schedule, seed="")
        asked = np.flatnonzero(schedule.may_ask(np.arange(1, ends[-1][1] + 1))) + 1
        # Of people whose blocks begin at some step: alike where all answers are planned alike.
        alike: dict[bytes, tuple[IntArray, list[int]]] = {}
        for at, begin in enumerate(self._stays_from):
            numbers = plans.numbers(asked + begin - 1)
            alike.setdefault(numbers.tobytes(), (numbers, []))[1].append(at)
        bits, prior = ReplayBits(f"{self.seed} staying".encode()), self._prior(len(states))
        people = ((numbers, np.flatnonzero(np.isin(which, begins))) for numbers, begins in alike.values())
        groups = [(numbers, members) for numbers, members in people if len(members)]
        logs, done = [prior.T[members].T for _, members in groups], 0
        for after, end in ends:
            until = int(np.searchsorted(asked, end, side="right"))
            for (numbers, whose), log in zip(groups, logs, strict=True):
                for number, count in zip(*np.unique(numbers[done:until], return_counts=True), strict=True):
                    _add_answers(log, plans.plan(int(number)), states[whose], int(count), bits)
            done = until
            weights = np.empty_like(prior)
            for (_, whose), log in zip(groups, logs, strict=True):
                weights[:, whose] = np.exp(log - log.max(axis=0))
            yield after, float(until), weights

    def _follows(self, schedule: Schedule) -> bool:
        """True if beliefs of people who stay are followed step by step."""
        return schedule.kind == "paced" or not self.setting.has_public_plans

    def stayers(self, schedule: Schedule) -> int:
        """The number of people who stay, in the figures of `stays`."""
        return self._followed_people(schedule) if self._follows(schedule) else STAYERS

    def _followed_people(self, schedule: Schedule) -> int:
        """The number of stayers with followed beliefs, for any list of blocks; fewer if every answer needs a plan."""
        people = min(self.people, STAYERS)
        if self.setting.has_public_plans:
            return people
        most = max(1, self._most_answers(schedule, self._ends_of(AFTER)[1][-1][1]))
        return min(people, max(FEWEST_STAYERS, MOST_STAYING_PLANS // most))

    def _most_answers(self, schedule: Schedule, end: int) -> int:
        """The most answers of one person until a step that ends a block or window."""
        if schedule.kind == "paced":
            return schedule.releases * (end // self.length)
        alike = replace(self.in_steps(schedule), seed="")
        return int(np.count_nonzero(alike.may_ask(np.arange(1, end + 1))))

    def _followed(self, setting: Setting, schedule: Schedule, ends: Any) -> Any:
        """The same where beliefs decide who is asked, or on what an answer is planned: of people who stay.

        These plans are those of the release: on what is believed of people who move as the model says.
        """
        if not ends:
            return
        people = self._followed_people(schedule)
        states, there = self._stayers[0][:people], self._stayers[1][:people]
        paths = np.repeat(states[:, None], ends[-1][1], axis=1)
        simulated = SimulatedReleases(
            setting, schedule, paths, there, self.moves, self.seed + 1, np.ones(people), self._guesses
        )
        logs, asked = self._prior(len(paths)), 0
        stops = {end: after for after, end in ends}
        for t, _, answers in steps_side_by_side([simulated], np.arange(len(paths))):
            if len(answers.who):
                logs[:, answers.who] += np.log(answers.likelihood)
                asked += len(answers.who)
            if t in stops:
                yield stops[t], asked / len(paths), np.exp(logs - logs.max(axis=0))

    def _prior(self, people: int) -> FloatArray:
        """A reader's log beliefs (N, n) of the first who stay: the file says when their blocks begin."""
        with np.errstate(divide="ignore"):
            return np.log(self._stay_laws)[self._stayers[2][:people]].T

    @cached_property
    def _somewhere(self) -> FloatArray:
        """Some places (N, k, d) of every state."""
        return places_of_states(self.setting.space, _PLACES_OF_STAYERS)

    def _found(self, weights: FloatArray) -> FloatArray:
        """The mean distances (n,) of the best guesses, by the beliefs (N, n) of a reader who knows that people stay.

        For labels: the probability that the likeliest is wrong. This is a mean over states given the answers: only
        the answers are left to chance. Few people are followed, and a single one far off would weigh too much.
        """
        shares = weights / weights.sum(axis=0)
        if self.setting.space.has_labels:
            return np.asarray(1 - shares.max(axis=0))
        guesses, errors = self._guesses.of(shares)[0], np.empty(shares.shape[1])
        # The distances from many guesses are computed in one call.
        together = max(1, _TOGETHER // self._somewhere[..., 0].size)
        for first in range(0, len(errors), together):
            part = shares[:, first : first + together]
            states, people = np.nonzero(part > _UNLIKELY)
            apart = self.setting.space.distances(guesses[first + people, None], self._somewhere[states]).mean(axis=1)
            errors[first : first + together] = np.bincount(people, apart * part[states, people], part.shape[1])
        return errors


def block_length(promise: SequencePromise, step: int | None) -> int:
    """Steps of the sequence, block or window. Raises InvalidInput as `SequencePromise.in_steps`, and for too many."""
    length = promise.length(step)
    if length > MOST_SCHEDULED:
        name = next(name for name in ("steps", "window", "per") if getattr(promise, name) is not None)
        raise InvalidInput(name, length, f"at most {MOST_SCHEDULED} steps: a schedule names them one by one")
    return length


def allowed_steps(promise: SequencePromise, step: int | None, hours: str | None) -> IntArray:
    """The steps of a sequence, block or window that a plan may name: of a model's ``step``, in ``hours`` of the clock.

    Raises InvalidInput for other hours, and as `block_length`.
    """
    length = block_length(promise, step)
    every = np.arange(1, length + 1)
    if hours is None:
        return every
    matched = _HOURS.fullmatch(hours) if isinstance(hours, str) else None
    first, last = (int(matched[1]), int(matched[2])) if matched else (0, 0)
    if first == last or max(first, last) > 24:
        raise InvalidInput("hours", hours, "two different hours of the day, 0 to 24, as 7-21")
    if not isinstance(promise.per, str) or step is None or length * step % _DAY:
        raise InvalidInput("hours", hours, "blocks of whole days with it, as per 1d: hours are of a clock")
    within: IntArray = every[_in_hours((every - 1) * step, first, last)]
    if not len(within):
        raise InvalidInput("hours", hours, f"hours in which a step begins: the model's are of {step} s")
    return within


def _checked_reserve(reserve: Exact, kind: str) -> Fraction:
    """The share of each total that is left for later questions. Raises InvalidInput for one that is no such share."""
    share = exact_number(reserve, "reserve")
    if not 0 <= share < 1:
        raise InvalidInput("reserve", reserve, "a share of the total from 0 to less than 1, such as 0.25")
    if share and kind == "paced":
        raise InvalidInput("reserve", reserve, "a planned schedule: a paced one asks as long as the total has room")
    return share


def _in_hours(seconds: IntArray, first: int, last: int) -> Any:
    """True where a time of day lies in the hours from ``first`` to ``last``, over midnight if they run so."""
    hour = seconds % _DAY / 3600
    return (hour >= first) & (hour < last) if first < last else (hour >= first) | (hour < last)


def _added(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)


def _rounded_down(spreads: FloatArray) -> tuple[float, ...]:
    """To six digits, and less: a belief that has settled must pass the last of them."""
    return tuple(float(f"{value * (1 - 1e-5):.6g}") for value in spreads.tolist())
