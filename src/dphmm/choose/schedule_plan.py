"""A schedule that was chosen from a public model, what it was chosen from, and the file that keeps both."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dphmm._checks import written_fraction
from dphmm._notebook import html_lines, html_table
from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.accounting.records import in_short
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms.answer_table import is_reference
from dphmm.policy._edges import read_json
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import Options
from dphmm.session.setting import check_same_states
from dphmm.statement.sentences import epsilon_words, off
from dphmm.statement.story import after_words
from dphmm.statement.verdict import OF_A_CLOCK, SIMULATED, ReaderFindings, Stay
from dphmm.states.space import StateSpace
from dphmm.storage.inputs import replacing

#: Raised whenever another dphmm could misread a file.
FORMAT = 2
#: Blocks or windows that people stay at most in the figures of a plan, and those of a table.
LONGEST_STAY, AFTER = 366, (1, 7)
#: So many steps at least are simulated for each of the invented people. Where sequences go on, a reader knows less at
#: their first and last steps, and of short blocks and windows these would be all; of short sequences more people walk.
SETTLED = 192
#: The name of a block of so many seconds as a time that people stay for.
CALLED = {3600: "hour", 86_400: "day", 7 * 86_400: "week"}
#: Standard errors on each side of a figure: of a 95 % interval at least.
CHANCE = 2
_MEMBERS = {
    "format", "model", "policy", "space", "options", "schedule", "hours", "unit", "people", "seed", "ladder", "without",
    "stays", "others",
}  # fmt: skip


@dataclass(frozen=True)
class TriedSchedule:
    """A schedule that was tried: its mean errors, in metres on maps and in answer units elsewhere.

    ``releases`` of ``epsilon`` in each sequence, block or window (at most, if paced); ``asked``: their number
    on average. ``online``: the error of the estimates given the answers so far; ``smoothed``: given all of them.
    ``deviation``: the standard error of the latter, over simulated people and noise. ``people``: the
    number followed; of a large map no more than it takes to see that another schedule is better.
    """

    epsilon: Fraction
    releases: int
    asked: float
    online: float
    smoothed: float
    deviation: float
    chosen: bool = False
    people: int = 0


@dataclass(frozen=True)
class Stays:
    """A reader's errors about people who stay at one place for whole blocks, or for a "sequence" or "window".

    They stay from step 1 on; of a file's page from where its blocks begin.
    ``what``: a "day", "week" or "hour", of blocks of that time; a "block" of any other.
    ``found``: in order; where every answer has a plan of its own, stays that would take too many plans are left out.

    ``without``: the mean distance of the best guess without the file. ``known``: the mean distance if the ``state`` is
    known, as "cell" or "zone"; 0 if states are no places. ``uncomputed``: the reason if there are no figures.
    """

    what: str
    without: float
    found: tuple[Stay, ...]
    known: float = 0.0
    state: str = "cell"
    uncomputed: str = ""

    @property
    def told(self) -> list[tuple[int, float]]:
        """(after, error) of each stay in which somebody was asked: of another the file says nothing."""
        return [(stay.after, stay.error) for stay in self.found if stay.answers]

    def after(self, time: int, unit: str) -> str:
        """The error after so many blocks, in words; also that nobody is asked by then, or that it is not computed."""
        stay = next((stay for stay in self.found if stay.after == time), None)
        if stay is None:
            return "not computed"
        return off(stay.error, unit) if stay.answers else "not asked"


@dataclass(frozen=True)
class SchedulePlan:
    """A schedule that was chosen from a public model, and its alternatives. All of it is public.

    schedule : the steps to ask, and their epsilon.
    ladder : the schedules that were tried, by the number of releases.
    without : the mean error of the best estimate without any answer, as the errors of the ladder.
    stays : the errors of a reader about people who stay.
    options : the options of the releases' plans (`dphmm.session.Options.written`).
    digests : of "model", "policy" and "space".
    others : the plans of other totals, which were found in the same world.

    Examples
    --------
    >>> import dphmm
    >>> space = dphmm.StateSpace([0, 1, 2, 3])
    >>> model = dphmm.MarkovModel([0.25] * 4, [[.8, .2, 0, 0], [.2, .6, .2, 0], [0, .2, .6, .2], [0, 0, .2, .8]])
    >>> promise = dphmm.SequencePromise(3, steps=12)
    >>> found = dphmm.choose.plan(model, dphmm.policy.radius(space, 1), space, promise, people=20)
    >>> found.schedule.promise.total
    Fraction(3, 1)

    Source: docs/proofs/schedules.md.
    """

    schedule: Schedule
    ladder: tuple[TriedSchedule, ...]
    without: float
    stays: Stays
    options: Mapping[str, str]
    digests: Mapping[str, str]
    unit: str
    people: int
    seed: int
    hours: str | None = None
    step: int | None = None
    others: tuple[SchedulePlan, ...] = ()

    @property
    def by_total(self) -> list[SchedulePlan]:
        """This plan and those of other totals, the smallest total first."""
        return sorted((self, *self.others), key=lambda plan: plan.schedule.promise.exact)

    @property
    def chosen(self) -> TriedSchedule:
        """The row of the ladder that was taken."""
        return next(row for row in self.ladder if row.chosen)

    @property
    def expected_error(self) -> float:
        """The expected error of a reader of the whole file, which is that of smoothed estimates."""
        return self.chosen.smoothed

    @property
    def chance(self) -> float:
        """The share of `expected_error` that it may be off by chance: two standard errors."""
        return 2 * self.chosen.deviation / self.expected_error if self.expected_error > 0 else 0.0

    @property
    def online_error(self) -> float:
        """The expected error as it is released: of the estimates given the answers so far. Paced ones have the least.

        A paced schedule is chosen by it: the same belief decides if somebody is asked.
        """
        return self.chosen.online

    @property
    def left(self) -> Fraction:
        """The epsilon of each sequence, block or window left for later questions; a paced schedule may spend all."""
        if self.schedule.kind == "paced":
            return Fraction(0)
        return self.schedule.promise.exact - self.schedule.releases * self.schedule.exact

    @property
    def times(self) -> tuple[int, ...]:
        """Seconds after the beginning of a block at which the bins of the named steps begin; () without a clock."""
        if self.step is None or not isinstance(self.schedule.promise.per, str):
            return ()
        return tuple((step - 1) * self.step for step in self.schedule.at)

    @property
    def found(self) -> ReaderFindings:
        """The findings of a reader of a file released by this plan, if people move as the model says."""
        return found_of(self.stays, self.expected_error, self.chosen.deviation, self.without, self.unit, self.seconds)

    @property
    def over(self) -> str:
        """Over what the errors are: "a file of 4 whole days"; step 1 begins a block, by the clock at its first hour."""
        promise = self.schedule.promise
        if promise.steps is not None:
            return "the sequence"
        length = promise.length(self.step)
        blocks = simulated_blocks(promise, length)
        return f"a file of {f'{blocks * length:,} steps' if promise.window else f'{blocks:,} whole {self.stays.what}s'}"

    @property
    def seconds(self) -> int | None:
        """The length of a sequence, block or window in seconds, if its name does not say it."""
        promise = self.schedule.promise
        if self.step is None or isinstance(promise.per, str):
            return None
        return self.step * (promise.steps or promise.window or promise.per or 0)

    def document(self) -> dict[str, Any]:
        """The plan for JSON, as `save_plan` writes it."""
        others = [other._figures() for other in self.others]
        return {"format": FORMAT, **self.digests, **self._figures(), "others": others}

    def _figures(self) -> dict[str, Any]:
        return {
            "options": dict(self.options),
            "schedule": self.schedule.document(),
            "hours": self.hours,
            "unit": self.unit,
            "people": self.people,
            "seed": self.seed,
            "ladder": [{**vars(row), "epsilon": str(row.epsilon)} for row in self.ladder],
            "without": self.without,
            "stays": {**vars(self.stays), "found": [stay._asdict() for stay in self.stays.found]},
        }

    def _repr_html_(self) -> str:
        rows = ((row.releases, f"{in_short(row.epsilon)}{' (chosen)' * row.chosen}", row.online, row.smoothed)
                for row in self.ladder)  # fmt: skip
        heads = ("answers", "epsilon of each", "error by the answers so far", "error by all answers")
        caption = f"what was tried for a total of {in_short(self.schedule.promise.exact)}; {self.unit}"
        return html_lines(self.found.lines) + html_table(heads, rows, caption)


@dataclass(frozen=True)
class Worth:
    """A total and what it buys, in words.

    answers : their number and epsilon. error, online : a reader's, by all answers and by the answers so far.
    stays : a reader's errors about people who stay, for each time of a table. own : True of the total that was given.
    against : the reasons for which it is no advice.
    """

    total: str
    answers: str
    error: str
    online: str
    stays: Sequence[str]
    own: bool = False
    against: Sequence[str] = ()


@dataclass(frozen=True)
class WorthTable:
    """The worth of several totals, and of no file. stays : the times that people stay, as "1 day", "7 days"."""

    stays: Sequence[str]
    rows: Sequence[Worth]
    without: Worth

    @classmethod
    def of(cls, plans: Sequence[SchedulePlan], own: Fraction, against: Sequence[Sequence[str]] = ()) -> WorthTable:
        """The table of plans of one world, for the ``own`` total that was given; ``against``: of each plan."""
        unit, stays = plans[0].unit, plans[0].stays
        times = sorted({stay.after for plan in plans for stay in plan.stays.found if stay.after in AFTER} or {1})
        rows = []
        for plan, reasons in zip(plans, against or [()] * len(plans), strict=True):
            schedule, total = plan.schedule, plan.schedule.promise.exact
            most = "at most " * (schedule.kind == "paced")
            answers = f"{most}{schedule.releases} × {epsilon_words(schedule.exact)}"
            errors = off(plan.expected_error, unit), off(plan.online_error, unit)
            ends = [plan.stays.after(time, unit) for time in times]
            rows.append(Worth(in_short(total), answers, *errors, ends, total == own, reasons))
        base = off(plans[0].without, unit)
        without = Worth("", "without the file", base, base, [off(stays.without, unit)] * len(times))
        return cls([after_words(stays.what, time) for time in times], rows, without)


def found_of(
    stays: Stays, error: float, deviation: float, without: float, unit: str, seconds: int | None
) -> ReaderFindings:
    """The findings of a reader about simulated people, whose mean error has a standard ``deviation``."""
    ends = (error - CHANCE * deviation, error + CHANCE * deviation)
    return ReaderFindings(
        error,
        without,
        unit,
        people=SIMULATED,
        ratio=(ends[0] / without, ends[1] / without) if without > 0 else None,
        known=stays.known,
        state=stays.state,
        stays=stays.found,
        stays_without=stays.without,
        block=stays.what,
        seconds=None if stays.what in OF_A_CLOCK else seconds,
        uncomputed=stays.uncomputed,
    )


def simulated_blocks(promise: SequencePromise, length: int) -> int:
    """The number of blocks or windows of so many steps, from step 1 on, in the figures of a plan."""
    return 1 if promise.steps is not None else max(2, -(-SETTLED // length))


def save_plan(found: SchedulePlan, path: str | os.PathLike[str]) -> None:
    """Write a plan as JSON, replacing what is there at once or not at all.

    Its figures belong to its schedule, so the file has a digest of both: `read_plan` refuses one that was edited.
    """
    document = found.document()
    text = json.dumps({**document, "sha256": _digest(document)}, sort_keys=True, allow_nan=False) + "\n"
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def read_plan(path: str | os.PathLike[str], model: MarkovModel, policy: PolicyGraph, space: StateSpace) -> SchedulePlan:
    """A plan that `save_plan` wrote, for the model, policy and space that it was made for.

    Raises InvalidInput for a file that is no plan, is damaged or of another format, and for another model, policy or
    space, naming both hashes.
    """
    check_same_states(model, policy, space)
    document = read_json(path)
    expected = "a plan as dphmm plan writes it"
    if not isinstance(document, dict) or type(document.get("format")) is not int or document["format"] < FORMAT:
        raise InvalidInput(str(path), f"no plan of format {FORMAT}", expected)
    if document["format"] > FORMAT:
        raise InvalidInput(str(path), f"plan format {document['format']}", f"{FORMAT}: upgrade dphmm to read it")
    digest = document.pop("sha256", None)
    if document.keys() != _MEMBERS:
        raise InvalidInput(str(path), "members missing, or others", expected)
    if digest != _digest(document):
        got = "a plan that was changed after it was written, so its figures may be of another one"
        raise InvalidInput(str(path), got, "one as dphmm plan writes it: run dphmm plan with what you want instead")
    digests = {"model": model.digest, "policy": policy.digest, "space": space.digest}
    for name, digest in digests.items():
        if document[name] != digest:
            got = f"a plan made for another {name}, of hash {str(document[name])[:16]}"
            raise InvalidInput(str(path), got, f"one for the {name} of hash {digest[:16]}")
    try:
        plan = _restored(document, digests, space, model.step)
        same = plan.document() == document
    except InvalidInput as error:
        if error.field == "mechanism" and is_reference(str(document["options"]["mechanism"])):
            # The plan is sound, and the table that it was made with is not at hand.
            raise
        raise InvalidInput(f"{path} {error.field}", "a value that is none", expected) from None
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        raise InvalidInput(str(path), "a member that is not as it is written", expected) from None
    if not same:
        raise InvalidInput(str(path), "members that are not as they are written", expected)
    return plan


def _digest(told: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a plan's members as canonical JSON."""
    return hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _possible(without: float, stays: Stays, rows: tuple[TriedSchedule, ...]) -> bool:
    """True if a plan can have these figures: finite, none above that without the file, longer stays in order."""
    errors = [(number, without) for row in rows for number in (row.online, row.smoothed)]
    errors += [(error, stays.without) for stay in stays.found for error in (stay.error, stay.tenth)]
    after = [stay.after for stay in stays.found]
    fits = all(0 <= error <= most * (1 + 1e-12) < math.inf for error, most in errors)
    return fits and after == sorted(set(after)) and all(1 <= blocks <= LONGEST_STAY for blocks in after)


def _called(promise: SequencePromise, step: int | None) -> str:
    """The name of the time that people stay for under a promise, if the model's step is so many seconds."""
    if promise.per is None:
        return "sequence" if promise.steps is not None else "window"
    if not isinstance(promise.per, str) or step is None:
        return "block"
    return CALLED.get(promise.length(step) * step, "block")


def _restored(told: Mapping[str, Any], digests: Mapping[str, str], space: StateSpace, step: int | None) -> SchedulePlan:
    rows = tuple(TriedSchedule(**{**row, "epsilon": written_fraction(row["epsilon"])}) for row in told["ladder"])
    staying = tuple(Stay(**stay) for stay in told["stays"]["found"])
    stays = Stays(**{**told["stays"], "found": staying})
    numbers = [told["without"], stays.without, stays.known, *(number for stay in staying for number in stay[1:])]
    numbers += [number for row in rows for number in (row.asked, row.online, row.smoothed, row.deviation)]
    names = [told["unit"], stays.what, stays.state, stays.uncomputed, told["hours"] or ""]
    counts = [
        told["people"],
        told["seed"],
        *(row.releases for row in rows),
        *(row.people for row in rows),
        *(stay.after for stay in staying),
    ]
    for values, kind in ((numbers, float), (names, str), (counts, int), ([row.chosen for row in rows], bool)):
        if any(type(value) is not kind for value in values):
            raise ValueError("a member of another kind")
    if told["unit"] != space.unit or not _possible(told["without"], stays, rows):
        raise ValueError("figures that no plan has")
    schedule = Schedule.of_document(told["schedule"])
    options = Options.read(told["options"], space.has_labels)
    chosen = [(row.epsilon, row.releases) for row in rows if row.chosen]
    if chosen != [(schedule.exact, schedule.releases)] or options.epsilon != schedule.exact:
        raise ValueError("another schedule than the one that was chosen")
    by_clock = isinstance(schedule.promise.per, str)
    if stays.what != _called(schedule.promise, step) or (told["hours"] is not None and not by_clock):
        raise ValueError("times that the promise does not have")
    if told["people"] < 2:
        raise ValueError("what dphmm plan refuses")
    others = tuple(_restored({**other, "others": []}, digests, space, step) for other in told["others"])
    totals = [schedule.promise.exact, *(other.schedule.promise.exact for other in others)]
    promises = {replace(other.schedule.promise, total=schedule.promise.total) for other in others}
    if len(set(totals)) < len(totals) or promises - {schedule.promise}:
        raise ValueError("plans that are not of other totals")
    return SchedulePlan(
        schedule=schedule,
        ladder=rows,
        without=told["without"],
        stays=stays,
        options=options.written(),
        digests=digests,
        unit=told["unit"],
        people=told["people"],
        seed=told["seed"],
        hours=told["hours"],
        step=step,
        others=others,
    )
