"""Five answers about a release: what it published, guarantees, leaves to be found, does not protect, and has cost.

Before it, warnings: what can be said against a release before anything is drawn, from public data alone.

Every figure is public or comes from a plan, never from true states. A guarantee is rounded upwards, a covered distance
downwards, an error to the nearest. Words about the promise itself are those of `dphmm.storage.promises`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from textwrap import wrap
from typing import Any, NamedTuple

from msgspec import UNSET

from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.accounting.records import in_short
from dphmm.errors import Refused
from dphmm.markov.model import MarkovModel, absorbing_states
from dphmm.policy.constraint import Support
from dphmm.session.options import Options
from dphmm.session.plan import Plan
from dphmm.session.setting import Setting
from dphmm.states.space import LABELS_WRONG
from dphmm.storage.promises import length, places_words
from dphmm.storage.statement_types import ReleaseStatement, document, earlier_answers_of, epsilons_of

#: Characters of a line beside its label: a terminal has 80 columns.
_WIDTH = 64
_KILOMETRES, _METRES, _TENTHS = 10_000.0, 99.5, 10.0
_NO_ERROR = 1e-9
_LEAST_TOLD = 0.001
#: An error of at most so many times that of somebody who knows the state is told as the state found.
_AS_STATE = 1.1
#: Between a number and its unit.
UNIT_GAP = re.compile(r"(?<=[0-9]) (?=(?:k?m|%)(?![a-z]))")
_NEAREST_TO_SURE = "more than 99.9999 %"
_NOTHING = "nothing: no answer has been published"
#: Of which states a guarantee is, where a model excludes some of them at some step.
ONLY_POSSIBLE = (
    "only of states that the model and all earlier answers leave possible: another one is answered as its surrogate, "
    "and may be told from its policy neighbours"
)
#: What no reader of a file can check: provenance is in no hash.
ORIGIN = "only the statement and the model file say where the model came from: no hash confirms it"
#: Nor, without a ledger, these two.
NOISE = "only the statement says that the noise came from the operating system; give --ledger to check it"
CAP = "; the cap is the statement's: give --ledger to check it"
SO_STATED = " (so the statement says; dphmm audit follows every choice)"
#: Of whom all figures are where somebody may know the random words.
REPLAYABLE = "for a reader who does not know the random words of the noise: who knows them finds the true states"
#: Kinds of states whose answers are places on a map.
_ON_MAPS = ("grid", "h3", "zones")


def sureness(epsilon: Fraction) -> str:
    """The largest posterior of a state with prior 50 % after answers of ``epsilon`` in all, rounded up: "88.1 %".

    With one decimal up to 99.9, then with four; "more than 99.9999 %" where no such number is an upper bound.
    """
    exact = Context(prec=60)
    power = exact.exp(-exact.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))
    # More than all rounding above: what is rounded up stays an upper bound.
    percent = exact.add(exact.divide(Decimal(100), exact.add(1, power)), Decimal("1e-40"))
    for decimals, most in (("0.1", "99.9"), ("0.0001", "99.9999")):
        shown = percent.quantize(Decimal(decimals), rounding=ROUND_CEILING, context=exact)
        if shown <= Decimal(most):
            return f"{shown} %"
    return _NEAREST_TO_SURE


def off(value: float, unit: str) -> str:
    """An error for people: metres to ten, below 100 to one, below 10 to a tenth; kilometres to one decimal.

    Kilometres from 10 km on. Three digits of other units.

    Of labels the share that is wrong.
    """
    if unit == LABELS_WRONG:
        share = "less than 1" if 0 < value < 0.005 else "more than 99" if 0.995 < value < 1 else f"{100 * value:.0f}"
        return f"{share} % wrong"
    if unit != "m":
        # Less is rounding of sums.
        told = f"{value:.3g}" if value >= _LEAST_TOLD else f"less than {_LEAST_TOLD}"
        return told if value > _NO_ERROR else "0"
    if value < _METRES:
        return f"{value:.1f} m" if _NO_ERROR < round(value, 1) < _TENTHS else f"{value:.0f} m"
    if round(value, -1) >= _KILOMETRES:
        return f"{value / 1000:,.1f} km"
    return f"{round(value, -1):,.0f} m"


#: Why nothing is told of who stays.
OTHER_TIMES = "answers of later blocks are made otherwise than those from step 1 on, which alone are simulated"


#: The same of a file that has no blocks of any length.
NO_BLOCKS = "nothing says for how long; a promise over the sequence does (--path-epsilon)"

#: An error that may be so much off by chance is told as that.
_CHANCE_TOLD = 0.05


def by_chance(chance: float) -> str:
    """How far off expected errors may be by chance, as a share of them, in words; "" where that is little."""
    if chance < _CHANCE_TOLD:
        return ""
    if chance >= 1:
        return "by chance an error may be many times as large: few people make most of it"
    return f"by chance an error may be {100 * chance:.0f} % off"


def clock(seconds: int) -> str:
    """ "14:00"."""
    return f"{seconds // 3600 % 24}:{seconds // 60 % 60:02d}"


_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def every_nth(number: int) -> str:
    """ "every second", "every 12th", "every 21st"."""
    if 2 <= number < 2 + len(_ORDINALS):
        return f"every {_ORDINALS[number - 2]}"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"every {number:,}{ending}"


def epsilon_words(epsilon: Fraction) -> str:
    """An epsilon, exactly where that is short: "1.5", "10/3".

    Several of one that is rounded up would pass the total that they are of.
    """
    short = f"{epsilon.numerator}/{epsilon.denominator}"
    rounded = in_short(epsilon)
    return rounded if Fraction(rounded) == epsilon or len(short) > len(rounded) else short


def lasting(seconds: int) -> str:
    """A length of time: "10 minutes", "1 hour", "5 days"."""
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            return f"{seconds // unit:,} {name}{'s' * (seconds != unit)}"
    return f"{seconds:,} seconds"


class Leaving(NamedTuple):
    """How far off a reader is about when somebody left home: with the file, and by one guess for all.

    ``error`` and ``without`` (the file) in seconds; ``guess``: a time of day in the time ``zone``, the median of the
    true ones. Home is where the day begins, and who is 500 m from there has left.
    """

    error: float
    without: float
    guess: float
    zone: str = "+00:00"

    @property
    def figure(self) -> str:
        """The error with the file: "2.4 h", "30 min"."""
        return _hours(self.error)

    @property
    def beside(self) -> str:
        """The other one, which may be nearer: what this reader does is no bound on what others can do."""
        zone = "UTC" if self.zone == "+00:00" else f"({self.zone})"
        return f"{_hours(self.without)} by guessing {clock(round(self.guess / 600) * 600)} {zone}"


def _hours(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{seconds / 3600:.1f}\u00a0h"
    return f"{minutes}\u00a0min" if minutes else "less than a minute"


def after_sequence_words(after: int, rows: int, steps: int) -> str:
    """That some rows lie after the steps that a total over a sequence is of, where none of them has an answer.

    >>> after_sequence_words(7, 35, 10)
    '7 of 35 rows are after step 10, the last of the sequence that the total is of: they have no answer'
    """
    of = f"{after:,} of {rows:,} rows"
    return f"{of} are after step {steps:,}, the last of the sequence that the total is of: they have no answer"


def first_that_finds(stays: Sequence[tuple[int, float]], known: float) -> int:
    """After how many blocks a reader first is as near as who knows the state; 0 where no figure says so.

    ``known``: how far off that one is, 0 where states are no places.
    """
    return next((after for after, error in stays if known > 0 and error <= _AS_STATE * known), 0)


def ends_told(stays: Sequence[tuple[int, float]], blocks: int, last: int) -> list[tuple[int, float]]:
    """Of all that is known of who stays what is told: after the file's own ``blocks``, and after ``last``.

    After one in place of the file's own where it has as many, or nothing is known of so many. A file of more has the
    figure after ``last`` first.
    """
    kept, longer = ([stay for stay in stays if stay[0] <= most] for most in (last, blocks))
    if len(longer) > len(kept) > 0:
        return [kept[-1], longer[-1]]
    if len(kept) < 2:
        return kept
    own = [stay for stay in kept[:-1] if stay[0] <= blocks] if blocks < kept[-1][0] else []
    return [own[-1] if own else kept[0], kept[-1]]


@dataclass(frozen=True)
class Found:
    """What a reader of the file still finds, each figure beside its baseline without the file.

    ``error`` and ``without``: mean distances of where somebody is; ``measured`` where the truth was known, else
    expected over ``rows``: those of a file, or of people who move as the model says from step 1 on (``from_start``).
    ``stays``: (after so many of ``what``, mean distance of who stays at one place all that time); where nothing is
    known of them it is empty and ``stays_without`` NaN. ``uncomputed``: why it is empty, where nobody computed them.
    ``planned``: the same of whole blocks, where the file has none, of so many ``answers``. ``by_plan``: whether it is
    the file of a plan that says so. ``chance``: how far off an expected error may be by chance, as a share of it.

    ``state``: what a state is called whose finding is told, "cell" or "zone"; it is found ``found_after`` so many of
    ``what``, 0 where it is not, or nothing is known of it; with ``by_then`` it may have been before. ``blocks``: how
    many whole ones the file has of anybody, 0 where that is not known. ``seconds``: how long one is, where it has a
    name that does not say so. ``leaving``: of when somebody left home.
    """

    error: float
    without: float
    unit: str
    what: str
    stays: Sequence[tuple[int, float]]
    stays_without: float
    measured: bool = False
    rows: str = ""
    from_start: bool = False
    uncomputed: str = ""
    planned: Sequence[tuple[int, float]] = ()
    answers: int = 0
    by_plan: bool = False
    chance: float = 0.0
    state: str = "cell"
    found_after: int = 0
    by_then: bool = False
    blocks: int = 0
    seconds: int | None = None
    leaving: Leaving | None = None

    @property
    def lines(self) -> list[str]:
        """The figures in words."""
        error, without = off(self.error, self.unit), off(self.without, self.unit)
        labels = self.unit == LABELS_WRONG
        over = f" over {self.rows}" * bool(self.rows)
        how = "off " * (not labels) + ("on average" if self.measured else f"expected{over}")
        what = "which label somebody has" if labels else "where somebody is"
        lines = [f"{what}: {error} {how}{self.in_units} ({without} without the file)"]
        who = stay_words(self.unit) + ", from the first row on" * (self.from_start and self.what != "sequence")
        if self.stays:
            if self.stays_known:
                lines.append(f"{who}: known without the file")
            else:
                ends = self._ends(self.stays)
                lines.append(f"{who}: {ends} ({off(self.stays_without, self.unit)} without)")
        elif self.uncomputed:
            lines.append(f"{who}: not computed: {self.uncomputed}")
        elif self.planned:
            whom = f"of people with rows of {self._whole}{' and ' * bool(self.answers)}{self.with_answers}"
            base = f" ({off(self.stays_without, self.unit)} without)" * (not math.isnan(self.stays_without))
            lines.append(f"{who}, {whom}: {self._ends(self.planned)}{base}")
        if self.leaving is not None:
            lines.append(f"when somebody left home: {self.leaving.figure} off ({self.leaving.beside})")
        if self.by_plan:
            unsure = f" ({by_chance(self.chance)})" * bool(by_chance(self.chance))
            lines.append(f"so its plan says of invented people{unsure}; dphmm report tells it of the rows")
        return lines

    @property
    def stays_known(self) -> bool:
        """Whether who stays is known without the file: the model has everybody at one place then."""
        return off(self.stays_without, self.unit) == off(0, self.unit)

    @property
    def with_answers(self) -> str:
        """Of how many answers in each block the figures are that are planned."""
        if not self.answers:
            return ""
        each = "" if self.what == "sequence" else f" in each {self.what}"
        return f"{self.answers:,} answer{'s' * (self.answers != 1)}{each}"

    @property
    def _whole(self) -> str:
        return "the whole sequence" if self.what == "sequence" else f"whole {self.what}s"

    @property
    def in_units(self) -> str:
        """In which units a figure is that has no name of one."""
        return "" if self.unit in ("", "m", LABELS_WRONG) else f", in {self.unit}"

    def _ends(self, stays: Sequence[tuple[int, float]]) -> str:
        told = []
        for number, (count, error) in enumerate(stays):
            name = self.after(stays, number, "{:,}".format)
            plain = number > 0 and name == after_words(self.what, count)
            told.append(f"{off(error, self.unit)} after {f'{count:,}' if plain else name}")
        return ", ".join(
            one + (self.state_found(stays, number, "{:,}".format) if stays == self.stays else "")
            for number, one in enumerate(told)
        )

    def after(self, stays: Sequence[tuple[int, float]], number: int, spelled: Callable[[int], str]) -> str:
        """For how long a figure is: "1 day", "the 3 days of this file", "7 such days", "1 window (12 hours)".

        More of them than the file has are supposed ones.
        """
        count, of_file = stays[number][0], stays == self.stays and self.blocks
        what = f"{self.what}{'s' * (count != 1)}"
        name = "the sequence" if self.what == "sequence" else f"{spelled(count)} {what}"
        if of_file and self.what != "sequence":
            name = f"the {name} of this file" if count == of_file > 1 else name
            name = f"{spelled(count)} such {what}" if count > of_file else name
        if stays == self.stays and not self.blocks and self.answers and self.what != "sequence":
            # Nobody has such a block in the file: as many answers about one place tell as much.
            name += f" of {spelled(self.answers)} answer{'s' * (self.answers != 1)}"
        if number or self.seconds is None or self.what in OF_A_CLOCK:
            return name
        return f"{name} ({lasting(self.seconds)}{' each' * (count > 1)})"

    def state_found(self, stays: Sequence[tuple[int, float]], number: int, spelled: Callable[[int], str]) -> str:
        """What follows the first figure that is as near as knowing the state; empty for others."""
        reached = [count for count, _ in stays if 0 < self.found_after <= count]
        if not reached or reached[0] != stays[number][0]:
            return ""
        if self.by_then and number:
            return f": its {self.state} is found by then"
        since = "" if reached[0] == self.found_after else f" after {spelled(self.found_after)}"
        return f": its {self.state} is found{since}"

    def document(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "error": self.error,
            "error_without": self.without,
            "unit": self.unit,
            "measured": self.measured,
            "over": self.rows or None,
            "from_step_1": self.from_start,
            "stays": {
                "what": self.what,
                "error_without": self.stays_without if self.stays and not math.isnan(self.stays_without) else None,
                "found": [{"after": after, "error": error} for after, error in self.stays],
                "state_found_after": (self.found_after or None) if self.stays and not self.by_then else None,
                "in_file": self.blocks or None,
            },
            "leaving": None
            if self.leaving is None
            else {
                "error_seconds": self.leaving.error,
                "guess_seconds": self.leaving.without,
                "guess": clock(round(self.leaving.guess / 600) * 600),
                "zone": self.leaving.zone,
            },
            "words": self.lines,
        }


def stay_words(unit: str) -> str:
    """Of whom the figures of stays are: all answers of whole blocks are about one place, or one state."""
    if unit == LABELS_WRONG:
        return "who keeps one label"
    return "who stays at one place" if unit == "m" else "who stays in one state"


#: Blocks of a clock that have names.
OF_A_CLOCK = ("hour", "day", "week")


def why_no_stays(public_plans: bool) -> str:
    """Why nothing is computed of who stays."""
    return "no state is possible at every step" if public_plans else "every answer has a plan of its own"


def after_words(what: str, count: int) -> str:
    """For how long: "1 day", "7 blocks", "the sequence"."""
    return f"the {what}" if what == "sequence" else f"{count:,} {what}{'s' * (count != 1)}"


@dataclass(frozen=True)
class InLedger:
    """What a ledger counts of the people of a file, over all its files and queries, of the person with most.

    ``largest``: in a block or window of the promise, or in all without one; ``in_all``: of everything. ``queries``: how
    many other queries have answers about them; ``others``: whether there are other answers at all.
    """

    largest: Fraction
    in_all: Fraction
    queries: int = 0
    others: bool = False

    @property
    def more(self) -> str:
        """Which other queries and files have answers, and what follows for a reader; empty without any."""
        if not self.others:
            return ""
        asks = {0: "another file answers too", 1: "another query asks too"}
        who = asks.get(self.queries, f"{self.queries} other queries ask too")
        return f"{who}, and a reader of {'all' if self.queries > 1 else 'both'} finds more"


@dataclass(frozen=True)
class Story:
    """The five answers about one release, each a document for JSON whose ``words`` are its lines for people."""

    published: Mapping[str, Any]
    guaranteed: Mapping[str, Any]
    still_found: Mapping[str, Any] | None
    not_protected: Mapping[str, Any]
    spent: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """The members that ``--json`` gains."""
        return {name: None if part is None else dict(part) for name, part in vars(self).items()}

    def rows(self, missing: str = "") -> list[tuple[str, str]]:
        """Labels and lines for a terminal of 80 columns, in the order in which they are told.

        ``missing``: what is told in place of figures of what is still found, where there are none.
        """
        told: list[tuple[str, str]] = []
        for name, part in vars(self).items():
            words = part["words"] if part is not None else [missing] if missing else []
            if words:
                told += wrapped_row(name.replace("_", " "), *words)
        return told


def wrapped_row(label: str, *sentences: str) -> list[tuple[str, str]]:
    """The lines of sentences for a terminal of 80 columns, the label beside the first."""
    lines = [line for sentence in sentences for line in _wrapped(sentence)]
    return [(label if number == 0 else " ", line) for number, line in enumerate(lines)]


def _wrapped(sentence: str) -> list[str]:
    """Lines of a sentence; a number stays with its unit."""
    lines = wrap(UNIT_GAP.sub("\u00a0", sentence), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def story(
    statement: ReleaseStatement,
    promise: SequencePromise | None = None,
    schedule: Schedule | None = None,
    found: Found | None = None,
    cap: Fraction | None = None,
    ledger: InLedger | None = None,
    *,
    confirmed: bool = True,
    all_possible: bool = False,
    as_stated: bool = False,
    answered: int | None = None,
    followed: bool = False,
    largest: Fraction | None = None,
) -> Story:
    """The five answers of a release that is stated, with its promise and schedule.

    ``found``: what a plan, or the truth of simulated people, says; left out without it. ``cap``: of the sum of
    epsilons. ``ledger``: what was spent by its count, in place of the file's. ``confirmed``: whether the policy is
    known; without it no bound on several answers is told. ``all_possible``: whether the model excludes no state at any
    step (`dphmm.session.setting.Setting.excludes_no_state`). ``as_stated``: told by a reader of the statement, who
    knows of the model's origin and of paced times only what it says. ``answered``: how many people have an answer.
    ``followed``: whether every choice of a paced schedule was followed, beside the ledger. ``largest``: what the rows
    of anybody in a block sum to, where the file tells it; else it is bounded.
    """
    asked = statement.published.rows - (statement.schedule.not_asked if statement.schedule is not UNSET else 0)
    (least, epsilon), step = epsilons_of(statement), statement.model.step_seconds
    most, block = (None, "") if promise is None else _block(promise, schedule, least, step)
    # What a ledger would confirm.
    unchecked = as_stated and ledger is None
    return Story(
        published=_published(statement, asked, schedule, most, block, as_stated and not followed, unchecked, answered),
        guaranteed=_guaranteed(statement, promise, epsilon, most, block, ledger, confirmed, all_possible, as_stated)
        if asked
        else _nothing_guaranteed(statement),
        still_found=_found(found, ledger, statement) if asked else dict.fromkeys(_FIGURES) | {"words": [_NOTHING]},
        not_protected=_not_protected(statement, all_possible),
        spent=_spent(statement, promise, epsilon, most, block, cap, ledger, as_stated, largest)
        if confirmed
        else _not_confirmed(statement, ledger),
    )


#: The members of `Found.document` beside its words.
_FIGURES = ("error", "error_without", "unit", "measured", "stays", "leaving")


def _found(found: Found | None, ledger: InLedger | None, statement: ReleaseStatement) -> dict[str, Any] | None:
    """What a reader of this file finds; who reads other answers, too, finds more."""
    if found is None:
        return None
    told = found.document()
    more = "" if ledger is None else ledger.more
    beside = [f"of this file; {more}"] if more else []
    if not statement.randomness.secure:
        beside.append(REPLAYABLE)
    return {**told, "words": [*told["words"], *beside]}


#: Of one state of a step: answers of other steps can tell more of it.
ONE_ANSWER = "after the answer of that moment"
#: What rests on the model holds for nobody who knows better how somebody moves.
IF_BELIEVED = "for a reader who believes the model"
OTHER_MOMENTS = "answers of other moments can tell more about that moment"
#: What is told of a guarantee, in this order.
_GUARANTEES = ("holds", "covered_distance", "one_answer", "all_answers", "only_possible", "words")


def _nothing_guaranteed(statement: ReleaseStatement) -> dict[str, Any]:
    """Where no answer has been published nothing is guaranteed of one."""
    return dict.fromkeys(_GUARANTEES) | {"holds": statement.private, "words": [_NOTHING]}


def _block(promise: SequencePromise, schedule: Schedule | None, epsilon: Fraction, step: int | None) -> tuple[int, str]:
    """How many answers a sequence, block or window has at most, and what it is called: (6, "a day")."""
    length = promise.steps or promise.window or promise.in_steps(step, 0).per
    assert isinstance(length, int)
    most = min(length, int(promise.exact // epsilon)) if schedule is None else schedule.releases
    if promise.steps is not None:
        return most, f"{promise.steps:,} steps"
    if promise.window is not None:
        return most, f"any {promise.window:,} steps" if promise.window > 1 else "any step"
    if isinstance(promise.per, str):
        return most, {"1d": "a day", "7d": "a week", "1h": "an hour"}.get(promise.per, promise.per)
    return most, f"each {length:,} steps" if length > 1 else "each step"


def _published(
    statement: ReleaseStatement,
    asked: int,
    schedule: Schedule | None,
    most: int | None,
    block: str,
    as_stated: bool,
    unchecked: bool,
    answered: int | None,
) -> dict[str, Any]:
    counts = statement.published
    labels, on_map = statement.space.kind == "labels", _on_map(statement)
    what = "noisy positions" if on_map else "noisy labels" if labels else "noisy answers"
    kind = "every" if schedule is None else schedule.kind
    times = {
        "every": "at every step",
        "planned": "at fixed public times",
        "paced": "at times chosen from what was already published" + SO_STATED * as_stated,
    }[kind]
    each = f", at most {most:,} {_in(block)} for each person" if most is not None else ""
    if each and unchecked:
        each += " (so the statement says)"
    people = "1 person" if counts.subjects == 1 else f"{counts.subjects:,} people"
    if answered is not None and 0 < answered < counts.subjects:
        people = f"{answered:,} of {people}"
    answers, rows = (f"{asked:,} {what[:-1] if asked == 1 else what}", f"{counts.rows:,} row{'s' * (counts.rows != 1)}")
    words = [f"{answers} of {people}, {times}{each}; {rows}"]
    if counts.public_constants:
        words.append(constants_words(counts.public_constants))
    return {
        "answers": asked,
        "rows": counts.rows,
        "people": counts.subjects,
        "asked": kind,
        "most_answers": most,
        "of": block or None,
        "words": words,
    }


def constants_words(count: int) -> str:
    """That some of the answers are of steps at which one state alone is possible."""
    if count == 1:
        return "1 of these answers has no noise and costs nothing: one state alone is possible there"
    return f"{count:,} of these answers have no noise and cost nothing: one state alone is possible there"


def _on_map(statement: ReleaseStatement) -> bool:
    """Whether answers are places on a map, whether or not a distance between them is known to be covered."""
    return bool(statement.covered_distance) or statement.space.kind in _ON_MAPS


def _reach(statement: ReleaseStatement) -> tuple[str, str, bool] | None:
    """What a policy of distance joins: ("zones whose centres are", "3,000 m", whether those exactly so far apart too).

    Nothing of policies of another kind, or of single steps, and where states are answered as others. A distance is
    rounded down.
    """
    policy, varied, space = statement.policy, statement.varied, statement.space
    if policy.kind != "radius" or not policy.parameters or space.merged is not UNSET:
        return None
    if varied is not UNSET and "policy" in varied.names:
        return None
    try:
        apart, closed = Fraction(str(policy.parameters["r"])), policy.parameters["closed"] is True
    except (KeyError, ValueError, ZeroDivisionError):
        return None
    if space.kind in _ON_MAPS:
        return f"{'zones' if space.kind == 'zones' else 'cells'} whose centres are", length(float(apart)), closed
    return "states", in_short(apart, down=True), closed


def joined_words(statement: ReleaseStatement) -> str:
    """Of which two states a guarantee is: "any two states up to 3 apart", "any two of the 7 labels".

    Of places that a covered distance is known of `places_words` says more.
    """
    kind = statement.space.kind
    what = {"labels": "labels", "zones": "zones"}.get(kind, "cells" if kind in _ON_MAPS else "states")
    if statement.varied is not UNSET and "policy" in statement.varied.names:
        return f"any two {what} that the policy of their step joins"
    if statement.policy.kind == "complete":
        return f"any two of the {statement.space.states:,} {what}"
    reach = _reach(statement)
    if reach is None:
        return f"any two {what} that the policy joins"
    which, apart, closed = reach
    on_map = " on the map" * (kind in _ON_MAPS)
    return f"any two {which} {'up to' if closed else 'less than'} {apart} apart{on_map}"


def _in(block: str) -> str:
    return block if block.startswith("a") and not block.startswith("any") else f"in {block}"


def _guaranteed(
    statement: ReleaseStatement,
    promise: SequencePromise | None,
    epsilon: Fraction,
    most: int | None,
    block: str,
    ledger: InLedger | None,
    confirmed: bool,
    all_possible: bool,
    as_stated: bool,
) -> dict[str, Any]:
    covered = statement.covered_distance
    facts = None if covered is None else document(covered)
    # Places in one cell have one and the same answer: the guarantee is of more than those.
    where = joined_words(statement) if facts is None or facts["metres"] == 0 else places_words(facts)
    if (reach := _reach(statement)) is not None and (facts is None or facts["metres"] == 0):
        facts = {"metres": None, "ground_metres": None} if facts is None else facts
        facts |= {"between": reach[0], "apart": reach[1], "closed": reach[2], "meaning": joined_words(statement)}
    # Other queries of a person may spend what this one leaves of the promise.
    total = None if promise is None else promise.exact
    one, every = sureness(epsilon), None if total is None else sureness(total)
    words = [f"{where}: {_most(one)} sure {ONE_ANSWER} (50 % before)"]
    if every is not None and most is not None and (most != 1 or total != epsilon):
        # Two states of one step can be told apart by later answers too, where they lead to paths that part.
        after = (
            f"all {most:,}"
            if total == most * epsilon == most * epsilons_of(statement)[0]
            else "all answers of all queries"
        )
        together = f"{_most(every)} after {after} of {block}"
        couples = statement.sequence is not UNSET and statement.sequence.couples is True
        # Answers of other blocks tell of a step, too.
        whole = couples and promise is not None and promise.steps is not None
        states = f"and so two states of one step, {IF_BELIEVED}" if whole else "two states of one step can lose more"
        # Windows overlap, and by the model answers of other blocks tell of one: paths that differ longer lose more.
        within = ""
        if promise is not None and promise.steps is None:
            within = f"differ within {block if promise.window is None else f'{promise.window:,} steps'} only and "
        words.append(f"two paths that {within}are equal or joined so at every step: {together}; {states}")
    elif promise is not None and promise.steps is None:
        words.append(f"one answer {_in(block)}, and no limit over longer times: each allows {one}")
        words.append(OTHER_MOMENTS)
    if not confirmed:
        words.append("so the statement says; without the policy nothing confirms it, nor a bound on all answers")
    elif most is None:
        more = "" if ledger is None else ledger.more
        words.append(_no_limit(statement, epsilon, one) + (f" of this file; {more}" if more else ""))
        words.append(OTHER_MOMENTS)
    if not all_possible:
        words.append(ONLY_POSSIBLE)
    if as_stated:
        words.append(ORIGIN)
        if ledger is None and statement.randomness.secure:
            words.append(NOISE)
    if statement.private is False:
        words = [f"NOT PRIVATE: {'; '.join(statement.not_private_because)}"]
        return dict.fromkeys(_GUARANTEES) | {"holds": False, "covered_distance": facts, "words": words}
    if statement.private == "unknown":
        words.append(f"whether this holds is not known: {'; '.join(statement.unknown_because)}")
    return {
        "holds": statement.private,
        "covered_distance": facts,
        "one_answer": {"epsilon": str(epsilon), "sureness": one},
        "all_answers": None if most is None else _all(most, block, total, every),
        "only_possible": not all_possible,
        "words": words,
    }


def _all(most: int, block: str, total: Fraction | None, every: str | None) -> dict[str, Any]:
    return {"over": "paths", "answers": most, "of": block, "epsilon": str(total), "sureness": every}


def _most(sure: str) -> str:
    return f"can be {sure}" if sure == _NEAREST_TO_SURE else f"at most {sure}"


def _no_limit(statement: ReleaseStatement, epsilon: Fraction, one: str) -> str:
    """The sentence where no promise bounds a day, or the sequence."""
    over = "a day" if statement.model.step_seconds is not None else "the whole sequence"
    # Public constants have an answer and no epsilon, and steps may have one of their own; a sum may be rounded up.
    count, one_epsilon = Fraction(statement.totals.epsilon_sum) / epsilon, len(set(epsilons_of(statement))) == 1
    if count == 1 and one_epsilon:
        return f"no limit for further answers; this one allows {one}"
    known = count.denominator == 1 and one_epsilon
    answers = f"{int(count):,} answers about one person in all, " if known else ""
    return f"no limit for {over}: {answers}each allows {one}"


def unprotected_fit(statement: ReleaseStatement) -> bool:
    """Whether the model was fitted on people whom nothing protects."""
    learning = statement.learning
    fitted = statement.model.people in ("others", "same") and statement.model.people_known_by != "model"
    return fitted and not (learning and learning.private)


def _not_protected(statement: ReleaseStatement, all_possible: bool) -> dict[str, Any]:
    on_map = _on_map(statement)
    here = ["places one returns to", "the part of town"] if on_map else ["states one returns to"]
    if not on_map and statement.policy.kind != "complete":
        here.append("states that the policy does not join")
    if unprotected_fit(statement):
        here.append("those whom the model was fitted on")
    if not all_possible:
        here.append("moves that the model calls impossible")
    here.append(f"who is in the file, and {'when' if statement.model.step_seconds is not None else 'at which steps'}")
    return {"sentences": list(statement.not_protected), "words": ["; ".join(here)]}


def _spent(
    statement: ReleaseStatement,
    promise: SequencePromise | None,
    epsilon: Fraction,
    most: int | None,
    block: str,
    cap: Fraction | None,
    ledger: InLedger | None,
    as_stated: bool,
    largest: Fraction | None,
) -> dict[str, Any]:
    unchecked = as_stated and ledger is None
    spent_in_all = Fraction(statement.totals.epsilon_sum) if ledger is None else ledger.in_all
    # Of a sequence that ends, the sum of the rows is its own.
    least_spent = spent_in_all if promise is not None and promise.steps is not None else Fraction(0)
    in_all, counted = in_short(spent_in_all), " (all files and queries of the ledger)" * (ledger is not None)
    earlier = earlier_answers_of(statement)
    with_earlier = f" and the {earlier:,} earlier ones that its estimates follow from" if earlier else ""
    over = f", by the answers of this file{with_earlier}" if ledger is None else counted
    bound = None
    if promise is None or most is None:
        # What caps a ledger keeps no file tells.
        limit = ("no cap is stated" if as_stated else "no cap") if cap is None else f"the cap is {in_short(cap)}"
        words = [f"epsilon sum {in_all} of the person with most answers{over}, {limit}"]
    else:
        needed, total = max(_needed(promise, epsilon, most), least_spent), in_short(promise.exact)
        whose = "" if needed == promise.exact or ledger is not None else " by this query"
        bound = ledger.largest if ledger is not None else needed if largest is None else largest
        counts = ledger is None and largest is not None
        # What other files and queries have spent no file tells.
        whose = " by this file" if counts else whose
        spent = f"{in_short(min(bound, spent_in_all))} of {total} {_in(block)}"
        words = [f"at most {spent} for each person{whose}; in all at most {in_all}{over}"]
        if ledger is None and spent_in_all == 0:
            words = [f"nothing of {total} {_in(block)} for each person{whose}"]
        elif ledger is None and spent_in_all < bound:
            # How much of it lies in one block the statement does not say.
            words = [f"at most {in_all} in all for each person{over}; the cap is {total} {_in(block)}{whose}"]
        words[0] += CAP * unchecked
    return {
        "most": None if bound is None else str(bound),
        "total": None if promise is None else str(promise.exact),
        "of": block or None,
        "epsilon_sum": statement.totals.epsilon_sum if ledger is None else str(ledger.in_all),
        "counted_in": "file" if ledger is None else "ledger",
        "cap": None if cap is None else str(cap),
        "block_cap": None if promise is None or most is None else _block_cap(promise, block, unchecked),
        "words": words,
    }


def _block_cap(promise: SequencePromise, block: str, stated: bool) -> dict[str, str]:
    """The cap of a block, or of a sequence or window; ``cap`` is of the sum over all time."""
    return {"epsilon": str(promise.exact), "of": block, "enforced_by": "as stated" if stated else "ledger"}


def _not_confirmed(statement: ReleaseStatement, ledger: InLedger | None) -> dict[str, Any]:
    """What is spent where the policy is not known: the ledger's count, or what the file's rows say."""
    total = statement.totals.epsilon_sum if ledger is None else str(ledger.in_all)
    whose = "by the statement, which nothing confirms" if ledger is None else "of all files and queries of the ledger"
    return {
        "most": None,
        "total": None,
        "of": None,
        "epsilon_sum": total,
        "counted_in": "file" if ledger is None else "ledger",
        "cap": None,
        "block_cap": None,
        "words": [f"epsilon sum {in_short(Fraction(total))} of the person with most answers, {whose}; give --policy"],
    }


def _needed(promise: SequencePromise, epsilon: Fraction, most: int) -> Fraction:
    """What so many answers of at most ``epsilon`` each may spend of a promise."""
    return min(most * epsilon, promise.exact)


#: A cost above this many epsilons is worth a warning: states that no edge joins can be told apart that well.
_FAR_ABOVE = 20


def release_warnings(setting: Setting) -> list[str]:
    """Warnings about a release under a setting, from its first plan; none where that plan will be refused.

    They say which states had to be joined or merged, where the cost is far above epsilon, and where a
    delta-set can end on one absorbing state. Nothing is drawn or stored; the plan stays with the setting.

    >>> import dphmm
    >>> from dphmm.session.setting import Setting
    >>> space = dphmm.StateSpace.categories(["a", "b", "c"])
    >>> model = dphmm.MarkovModel([1, 0, 0], [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]], space=space)
    >>> setting = Setting.of(model, dphmm.policy.complete(3), space, 1, constraint="delta=0.1")
    >>> [warning[:40] for warning in release_warnings(setting)]
    ['the model has 1 absorbing state: with de']
    """
    try:
        plan = setting.first_plan()
    except Refused:
        return []
    return [*plan_warnings(plan, setting.options), *trapped_belief(setting.model, setting.options)]


def plan_warnings(plan: Plan, options: Options) -> list[str]:
    """Sentences about the states that had to be joined, and about a cost far above epsilon."""
    said = []
    if len(plan.merged):
        said.append(
            f"{len(plan.merged)} of {int(plan.plan_set.sum())} planned states are hidden by nothing at the first step: "
            "each is answered as its nearest state (--protection merge), which raises the noise for nobody and is off "
            "by the way there for those who are in it"
        )
    if len(plan.joins):
        table = options.made_from == "answers"
        cost = (
            "and the table keeps these pairs too" if table else "which widens the hull, and so the noise, for everyone"
        )
        isolated = " --isolated" if table else ""
        found = "without an edge in" if table else "exposed by"
        partner = "a nearest partner"
        remedy = f"remedy where it lowers the error, as dphmm inspect says: dphmm policy ... --merge-lonely{isolated}"
        if getattr(plan.mechanism, "of_labels", False):
            partner, remedy = "another label", "remedy: a policy with an edge for each of them"
        said.append(
            f"{len(plan.joins)} of {int(plan.constraint.plan.sum())} planned states are {found} the policy at the "
            f"first step: each is joined to {partner}, {cost}; {remedy}"
        )
    if plan.cost > _FAR_ABOVE * options.epsilon:
        times = float(plan.cost / options.epsilon)
        said.append(
            f"the cost of the first step is {times:.3g} epsilon: states that are far apart and that no edge of the "
            "policy joins can be told apart that well; a policy with longer edges, or a smaller epsilon, lowers it"
        )
    return said


def trapped_belief(model: MarkovModel, options: Options) -> list[str]:
    """A δ-set may end on one absorbing state, whose answer is then a public constant for ever."""
    absorbing = 0 if model.jump is not None else len(absorbing_states(model.matrix))
    if not absorbing or isinstance(options.constraint, Support):
        return []
    many, which = ("states", "one of them") if absorbing > 1 else ("state", "it")
    return [
        f"the model has {absorbing} absorbing {many}: with {options.constraint} the belief can lock onto {which}, and "
        "every later answer is then the same public constant; smooth the model, or plan on the support"
    ]
