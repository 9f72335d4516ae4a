"""Five answers about a release: what it published, guarantees, leaves to be found, does not protect, and has cost.

Every figure is public or comes from a plan, never from true states. A guarantee is rounded upwards, a covered distance
downwards, an error to the nearest. Words about the promise itself are those of `dphmm.statement.release`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from msgspec import UNSET

from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.accounting.records import in_short
from dphmm.statement.parts import Part, Verdict, document
from dphmm.statement.release import ReleaseStatement
from dphmm.statement.sentences import (
    clock,
    lasting,
    length,
    off,
    sureness,
    wrapped_row,
)
from dphmm.states.space import LABELS_WRONG

#: An error of at most so many times that of somebody who knows the state is told as the state found.
_AS_STATE = 1.1
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
SO_STATED = " (so the statement says; dphmm check-release follows every choice)"
#: Of whom all figures are where somebody may know the random words.
REPLAYABLE = "for a reader who does not know the random words of the noise: who knows them finds the true states"
#: Of one state of a step: answers of other steps can tell more of it.
ONE_ANSWER = "after the answer of that moment"
#: What rests on the model holds for nobody who knows better how somebody moves.
IF_BELIEVED = "for a reader who believes the model"
OTHER_MOMENTS = "answers of other moments can tell more about that moment"
#: Kinds of states whose answers are places on a map.
_ON_MAPS = ("grid", "h3", "zones")


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


#: When people were asked; ``moments``: the public times, or steps, of a file.
_ASKED = """\
{% if asked == "every" %}at every step{% elif asked == "planned" %}at fixed public {{ moments }}\
{% else %}at times chosen from what was already published{% if as_stated %}{{ SO_STATED }}{% endif %}{% endif %}\
"""


class Published(Part, frozen=True, kw_only=True):
    """The counts of what was published.

    asked : every step, planned or paced.
    most_answers : of a person in a sequence, block or window; null without a promise.
    of : the name of that block, "a day".
    people_answered : null where it is not known, or everybody has an answer.
    noun : the name of an answer.
    as_stated : whether that paced times follow from what was published is the statement's word alone.
    unchecked : whether nothing confirms the most answers.
    """

    answers: int
    rows: int
    people: int
    people_answered: int | None
    public_constants: int
    asked: str
    most_answers: int | None
    of: str | None
    noun: str
    as_stated: bool
    unchecked: bool

    says: ClassVar[Mapping[str, str]] = {
        "asked": _ASKED,
        "meaning": """
{{ plural(answers, noun) }} of {% if people_answered %}{{ "{:,}".format(people_answered) }} of {% endif %}\
{{ plural(people, "person", "people") }}, """
        + _ASKED
        + """\
{% if most_answers is not none %}, at most {{ "{:,}".format(most_answers) }} {{ within(of) }} for each person\
{% if unchecked %} (so the statement says){% endif %}{% endif %}; {{ plural(rows, "row") }}
{% if public_constants %}{{ constants_words(public_constants) }}{% endif +%}
""",
    }

    @classmethod
    def stated(
        cls,
        statement: ReleaseStatement,
        schedule: Schedule | None,
        most: int | None,
        block: str | None,
        answered: int | None,
        *,
        as_stated: bool,
        unchecked: bool,
    ) -> Published:
        """The counts of a statement, at ``most`` so many answers in a block; ``answered``: people with an answer."""
        counts, labels = statement.published, statement.space.kind == "labels"
        return cls(
            answers=counts.rows - (statement.schedule.not_asked if statement.schedule is not UNSET else 0),
            rows=counts.rows,
            people=counts.subjects,
            people_answered=answered if answered is not None and 0 < answered < counts.subjects else None,
            public_constants=counts.public_constants,
            asked="every" if schedule is None else schedule.kind,
            most_answers=most,
            of=block,
            noun="noisy position" if on_map(statement) else f"noisy {'label' if labels else 'answer'}",
            as_stated=as_stated,
            unchecked=unchecked,
        )


class Bound(Part, frozen=True, kw_only=True):
    """A bound on what answers tell of two states, or paths, that hide each other.

    answers : how many, null of one.
    of : the block of the answers, "a day".
    sureness : the largest posterior after even odds.
    """

    epsilon: str
    sureness: str
    answers: int | None = None
    of: str | None = None


class Guaranteed(Part, frozen=True, kw_only=True):
    """The bounds that hold for whoever is released.

    holds : as private in the statement.
    one_answer, all_answers : null where nothing holds; all_answers also without a promise over the sequence.
    covered_distance : of places, or how far apart states are that the policy joins.
    only_possible : whether it is of states alone that the model and all earlier answers leave possible.
    """

    holds: Verdict
    covered_distance: dict[str, Any] | None
    one_answer: Bound | None
    all_answers: Bound | None
    only_possible: bool | None

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if holds is false %}
NOT PRIVATE: {{ whole.why }}
{% else %}
{{ where }}: {{ at_most(one_answer.sureness) }} sure {{ ONE_ANSWER }} (50 % before)
{% if all_answers and (all_answers.answers != 1 or total != each) %}
two paths that {% if not promise.steps %}differ within \
{{ all_answers.of if not promise.window else "{:,} steps".format(promise.window) }} only and {% endif %}\
are equal or joined so at every step: {{ at_most(all_answers.sureness) }} after \
{% if total == all_answers.answers * each and each == least %}all {{ "{:,}".format(all_answers.answers) }}\
{% else %}all answers of all queries{% endif %} of {{ all_answers.of }}; \
{% if promise.steps and whole.sequence and whole.sequence.couples is true %}and so two states of one step, \
{{ IF_BELIEVED }}{% else %}two states of one step can lose more{% endif +%}
{% elif all_answers and not promise.steps %}
one answer {{ within(all_answers.of) }}, and no limit over longer times: each allows {{ one_answer.sureness }}
{{ OTHER_MOMENTS }}
{% endif %}
{% if not confirmed %}
so the statement says; without the policy nothing confirms it, nor a bound on all answers
{% elif not all_answers %}
{% if alone %}no limit for further answers; this one allows {{ one_answer.sureness }}\
{% else %}no limit for {{ "the whole sequence" if whole.model.step_seconds is none else "a day" }}: \
{% if counted %}{{ "{:,}".format(counted) }} answers about one person in all, {% endif %}\
each allows {{ one_answer.sureness }}{% endif %}{% if more %} of this file; {{ more }}{% endif +%}
{{ OTHER_MOMENTS }}
{% endif %}
{% if only_possible %}
{{ ONLY_POSSIBLE }}
{% endif %}
{% if by_statement %}
{{ ORIGIN }}
{% if not ledger and whole.randomness.replayable_rows == 0 %}
{{ NOISE }}
{% endif %}
{% endif %}
{% if holds == "unknown" %}
whether this holds is not known: {{ whole.why }}
{% endif %}
{% endif %}
""",
    }

    @classmethod
    def stated(
        cls, statement: ReleaseStatement, published: Published, promise: SequencePromise | None, *, all_possible: bool
    ) -> Guaranteed:
        """The bounds of what was published; none where nothing was, or where it is not private."""
        one = every = None
        bounded = published.answers and statement.private is not False
        if bounded:
            each = statement.epsilons[1]
            one = Bound(epsilon=str(each), sureness=sureness(each))
        if bounded and promise is not None:
            total, most = promise.exact, published.most_answers
            every = Bound(epsilon=str(total), sureness=sureness(total), answers=most, of=published.of)
        return cls(
            holds=statement.private,
            covered_distance=_covered(statement) if published.answers else None,
            one_answer=one,
            all_answers=every,
            only_possible=not all_possible if bounded else None,
        )


class NotProtected(Part, frozen=True, kw_only=True):
    """What these releases do not hide: the codes of the statement."""

    codes: list[str]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if on_map %}places one returns to; the part of town{% else %}states one returns to\
{% if whole.policy.kind != "complete" %}; states that the policy does not join{% endif %}{% endif %}\
{% if unprotected_fit %}; those whom the model was fitted on{% endif %}\
{% if not all_possible %}; moves that the model calls impossible{% endif %}; who is in the file, and \
{{ "at which steps" if whole.model.step_seconds is none else "when" }}
""",
    }


class Spent(Part, frozen=True, kw_only=True):
    """The budget that is spent, and its limits.

    most : of a person in a block, at most; null without a promise.
    total : the promise over paths.
    of : its block.
    epsilon_sum : of the person with most, over all time.
    counted_in : file, or ledger.
    cap : of the sum over all time.
    enforced_by : what keeps the total: the ledger, or the statement says so.
    """

    most: str | None
    total: str | None
    of: str | None
    epsilon_sum: str
    counted_in: str
    cap: str | None
    enforced_by: str | None

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% set all = in_short(epsilon_sum) %}
{% set ledger = counted_in == "ledger" %}
{% if not confirmed %}
epsilon sum {{ all }} of the person with most answers, {% if ledger %}of all files and queries of the ledger\
{% else %}by the statement, which nothing confirms{% endif %}; give --policy
{% else %}
{% set over %}{% if ledger %} (all files and queries of the ledger){% else %}, by the answers of this file\
{% if earlier %} and the {{ "{:,}".format(earlier) }} earlier ones that its estimates follow from{% endif %}\
{% endif %}{% endset %}
{% if total is none %}
epsilon sum {{ all }} of the person with most answers{{ over }}, {% if cap is not none %}the cap is \
{{ in_short(cap) }}{% elif by_statement %}no cap is stated{% else %}no cap{% endif +%}
{% else %}
{% set whose = " by this file" if counts else "" if ledger or own else " by this query" %}
{% if not ledger and nothing %}\
nothing of {{ in_short(total) }} {{ within(of) }} for each person{{ whose }}\
{% elif not ledger and partly %}\
at most {{ all }} in all for each person{{ over }}; the cap is {{ in_short(total) }} {{ within(of) }}{{ whose }}\
{% else %}\
at most {{ in_short(spent_in_block) }} of {{ in_short(total) }} {{ within(of) }} for each person{{ whose }}; \
in all at most {{ all }}{{ over }}\
{% endif %}\
{% if enforced_by == "as stated" %}{{ CAP }}{% endif +%}
{% endif %}
{% endif %}
""",
    }

    @classmethod
    def stated(
        cls,
        statement: ReleaseStatement,
        promise: SequencePromise | None,
        block: str | None,
        most: Fraction | None,
        cap: Fraction | None,
        ledger: InLedger | None,
        *,
        confirmed: bool,
        unchecked: bool,
    ) -> Spent:
        """The budget of a release by its statement or, where there is one, by a ledger."""
        if not confirmed:
            # No limit is told of a policy that nobody knows.
            promise = block = most = cap = None
        return cls(
            most=None if most is None else str(most),
            total=None if promise is None else str(promise.exact),
            of=block,
            epsilon_sum=statement.totals.epsilon_sum if ledger is None else str(ledger.in_all),
            counted_in="file" if ledger is None else "ledger",
            cap=None if cap is None else str(cap),
            enforced_by=None if promise is None else "as stated" if unchecked else "ledger",
        )


#: What sentences of several parts say.
_PHRASES = {
    "SO_STATED": SO_STATED,
    "ONE_ANSWER": ONE_ANSWER,
    "IF_BELIEVED": IF_BELIEVED,
    "OTHER_MOMENTS": OTHER_MOMENTS,
    "ONLY_POSSIBLE": ONLY_POSSIBLE,
    "ORIGIN": ORIGIN,
    "NOISE": NOISE,
    "CAP": CAP,
}


#: The five answers, in the order in which they are told.
ANSWERS = ("published", "guaranteed", "still_found", "not_protected", "spent")


@dataclass(frozen=True)
class Story:
    """The five answers about one release: facts, and what their sentences need to know besides."""

    published: Published
    guaranteed: Guaranteed
    still_found: Found | None
    not_protected: NotProtected
    spent: Spent
    statement: ReleaseStatement
    known: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """The members that ``--json`` gains."""
        found = self.still_found
        return {
            "published": document(self.published),
            "guaranteed": document(self.guaranteed),
            "still_found": None if found is None else found.document(),
            "not_protected": document(self.not_protected),
            "spent": document(self.spent),
        }

    def words(self, name: str) -> list[str]:
        """The sentences of one of the five answers."""
        if name in ("guaranteed", "still_found") and self.published.answers == 0:
            return [_NOTHING]
        if name == "still_found":
            return [] if self.still_found is None else [*self.still_found.lines, *self.known["beside"]]
        part: Part = getattr(self, name)
        return part.said("meaning", self.statement, **self.known)

    def sentence(self, answer: str, name: str, **known: Any) -> str:
        """One named sentence of one of the five answers, of which other facts may be known."""
        part: Part = getattr(self, answer)
        return part.sentence(name, self.statement, **{**self.known, **known})

    def rows(self, missing: str = "") -> list[tuple[str, str]]:
        """Labels and lines for a terminal of 80 columns, in the order in which they are told.

        ``missing``: what is told in place of figures of what is still found, where there are none.
        """
        told: list[tuple[str, str]] = []
        for name in ANSWERS:
            words = self.words(name)
            if not words and name == "still_found" and missing:
                words = [missing]
            told += wrapped_row(name.replace("_", " "), *words)
        return told


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
    (least, each), step = statement.epsilons, statement.model.step_seconds
    most, block = (None, None) if promise is None else _block(promise, schedule, least, step)
    total = None if promise is None else promise.exact
    # What a ledger would confirm.
    unchecked, more = as_stated and ledger is None, "" if ledger is None else ledger.more
    in_all = Fraction(statement.totals.epsilon_sum) if ledger is None else ledger.in_all
    bound, needed = None, Fraction(0)
    if promise is not None and most is not None:
        # Of a sequence that ends, the sum of the rows is its own.
        needed = max(min(most * each, promise.exact), in_all if promise.steps is not None else Fraction(0))
        bound = ledger.largest if ledger is not None else needed if largest is None else largest
    beside = [f"of this file; {more}"] if more else []
    count = in_all_counted(statement, each)
    known = {
        **_PHRASES,
        "moments": "times",
        "within": within,
        "constants_words": constants_words,
        "promise": promise,
        "least": least,
        "each": each,
        "total": total,
        "confirmed": confirmed,
        "all_possible": all_possible,
        "by_statement": as_stated,
        "ledger": ledger,
        "more": more,
        "where": _where(statement),
        "alone": count == 1,
        "counted": count,
        "on_map": on_map(statement),
        "unprotected_fit": unprotected_fit(statement),
        "earlier": statement.published.earlier_answers or 0,
        "counts": ledger is None and largest is not None,
        "own": needed == total,
        "nothing": in_all == 0,
        # How much of it lies in one block the statement does not say.
        "partly": bound is not None and in_all < bound,
        "spent_in_block": None if bound is None else min(bound, in_all),
        "beside": beside if statement.randomness.secure else [*beside, REPLAYABLE],
    }
    published = Published.stated(
        statement, schedule, most, block, answered, as_stated=as_stated and not followed, unchecked=unchecked
    )
    return Story(
        published=published,
        guaranteed=Guaranteed.stated(statement, published, promise, all_possible=all_possible),
        still_found=found if published.answers else None,
        not_protected=NotProtected(codes=list(statement.not_protected)),
        spent=Spent.stated(statement, promise, block, bound, cap, ledger, confirmed=confirmed, unchecked=unchecked),
        statement=statement,
        known=known,
    )


def in_all_counted(statement: ReleaseStatement, each: Fraction) -> int | None:
    """How many answers the person with most has, where the sum of their epsilons tells; else None."""
    # Public constants have an answer and no epsilon, and steps may have one of their own; a sum may be rounded up.
    count = Fraction(statement.totals.epsilon_sum) / each
    return int(count) if count.denominator == 1 and len(set(statement.epsilons)) == 1 else None


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


def within(block: str) -> str:
    """ "a day", "in any 12 steps"."""
    return block if block.startswith("a") and not block.startswith("any") else f"in {block}"


def constants_words(count: int) -> str:
    """That some of the answers are of steps at which one state alone is possible."""
    if count == 1:
        return "1 of these answers has no noise and costs nothing: one state alone is possible there"
    return f"{count:,} of these answers have no noise and cost nothing: one state alone is possible there"


def on_map(statement: ReleaseStatement) -> bool:
    """Whether answers are places on a map, whether or not a distance between them is known to be covered."""
    return bool(statement.covered_distance) or statement.space.kind in _ON_MAPS


def _reach(statement: ReleaseStatement) -> tuple[str, str, bool] | None:
    """What a policy of distance joins: ("zones whose centres are", "3,000 m", whether those exactly so far apart too).

    Nothing of policies of another kind, or of single steps, and where states are answered as others. A distance is
    rounded down.
    """
    policy, space = statement.policy, statement.space
    if policy.kind != "radius" or not policy.parameters or space.merged is not UNSET or "policy" in statement.varies:
        return None
    try:
        apart, closed = Fraction(str(policy.parameters["r"])), policy.parameters["closed"] is True
    except (KeyError, ValueError, ZeroDivisionError):
        return None
    if space.kind in _ON_MAPS:
        return f"{'zones' if space.kind == 'zones' else 'cells'} whose centres are", length(float(apart)), closed
    return "states", in_short(apart, down=True), closed


def _one_cell(statement: ReleaseStatement) -> bool:
    """Whether no distance between places is covered; those in one cell have one and the same answer anyhow."""
    covered = statement.covered_distance
    return covered is None or covered.metres == 0


def _covered(statement: ReleaseStatement) -> dict[str, Any] | None:
    """The covered distance, or else how far apart states are that the policy joins; None where neither is known."""
    covered, reach = statement.covered_distance, _reach(statement)
    facts = None if covered is None else document(covered)
    if not _one_cell(statement) or reach is None:
        return facts
    between, apart, closed = reach
    none = {"metres": None, "ground_metres": None}
    return (facts or none) | {"between": between, "apart": apart, "closed": closed}


def _where(statement: ReleaseStatement) -> str:
    """Of which two states a guarantee is."""
    covered = statement.covered_distance
    return joined_words(statement) if covered is None or covered.metres == 0 else covered.places


def joined_words(statement: ReleaseStatement) -> str:
    """Of which two states a guarantee is: "any two states up to 3 apart", "any two of the 7 labels".

    Of places that a covered distance is known of `CoveredDistance.places` says more.
    """
    kind = statement.space.kind
    what = {"labels": "labels", "zones": "zones"}.get(kind, "cells" if kind in _ON_MAPS else "states")
    if "policy" in statement.varies:
        return f"any two {what} that the policy of their step joins"
    if statement.policy.kind == "complete":
        return f"any two of the {statement.space.states:,} {what}"
    reach = _reach(statement)
    if reach is None:
        return f"any two {what} that the policy joins"
    which, apart, closed = reach
    place = " on the map" * (kind in _ON_MAPS)
    return f"any two {which} {'up to' if closed else 'less than'} {apart} apart{place}"


def unprotected_fit(statement: ReleaseStatement) -> bool:
    """Whether the model was fitted on people whom nothing protects."""
    learning = statement.learning
    fitted = statement.model.people in ("others", "same") and statement.model.people_known_by != "model"
    return fitted and not (learning and learning.private)
