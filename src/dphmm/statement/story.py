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
from dphmm.statement.advice import finds_state
from dphmm.statement.parts import Part, Verdict, document
from dphmm.statement.release import ReleaseStatement
from dphmm.statement.sentences import block_words, clock, lasting, off, rendered, sureness, wrapped_row
from dphmm.states.space import LABELS_WRONG

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
    def time(self) -> str:
        """The guess for all, to ten minutes: "7:50"."""
        return clock(round(self.guess / 600) * 600)

    @property
    def beside(self) -> str:
        """The other one, which may be nearer: what this reader does is no bound on what others can do."""
        return f"{_hours(self.without)} by guessing {self.time} {'UTC' if self.zone == '+00:00' else f'({self.zone})'}"

    def document(self) -> dict[str, Any]:
        """The figures for JSON."""
        told = {"error_seconds": self.error, "guess_seconds": self.without}
        return {**told, "guess": self.time, "zone": self.zone}


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
    return next((after for after, error in stays if finds_state(error, known)), 0)


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
        who = stay_words(self.unit) + ", from the first row on" * (self.from_start and self.what != "sequence")
        told = {"who": who, "unsure": by_chance(self.chance), "after_words": after_words}
        return rendered(_FOUND, {**vars(self), **told, "found": self, "labels": self.unit == LABELS_WRONG})

    @property
    def stays_known(self) -> bool:
        """Whether who stays is known without the file: the model has everybody at one place then."""
        return off(self.stays_without, self.unit) == off(0, self.unit)

    @property
    def with_answers(self) -> str:
        """Of how many answers in each block the figures are that are planned."""
        each = "" if self.what == "sequence" else f" in each {self.what}"
        return f"{self.answers:,} answer{'s' * (self.answers != 1)}{each}" if self.answers else ""

    @property
    def in_units(self) -> str:
        """In which units a figure is that has no name of one."""
        return "" if self.unit in ("", "m", LABELS_WRONG) else f", in {self.unit}"

    def ends(self, planned: bool, spelled: Callable[[int], str] = "{:,}".format) -> list[tuple[int, float, str, str]]:
        """Of each figure of who stays, or of those ``planned``: blocks, error, how long, and that the state is found.

        How long: "1 day", "the 3 days of this file", "7 such days" (more than the file has are supposed ones), "1
        window (12 hours)". The first figure alone that is as near as knowing the state says that it is found.
        """
        told = []
        reached = 0 if planned else next((count for count, _ in self.stays if 0 < self.found_after <= count), 0)
        blocks, own = (0, False) if planned else (self.blocks, not self.blocks and self.answers > 0)
        for number, (count, error) in enumerate(self.planned if planned else self.stays):
            what, name, found = f"{self.what}{'s' * (count != 1)}", "the sequence", ""
            if self.what != "sequence":
                name = f"{spelled(count)} such {what}" if 0 < blocks < count else f"{spelled(count)} {what}"
                name = f"the {name} of this file" if count == blocks > 1 else name
                # Nobody has such a block in the file: as many answers about one place tell as much.
                name += f" of {spelled(self.answers)} answer{'s' * (self.answers != 1)}" * own
            if not number and self.seconds is not None and self.what not in OF_A_CLOCK:
                name += f" ({lasting(self.seconds)}{' each' * (count > 1)})"
            if count == reached:
                since = "" if count == self.found_after else f" after {spelled(self.found_after)}"
                found = f": its {self.state} is found{' by then' if self.by_then and number else since}"
            told.append((count, error, name, found))
        return told

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
            "leaving": None if self.leaving is None else self.leaving.document(),
        }


_FOUND = """
{% macro after(planned) %}
{% for count, error, name, state_found in found.ends(planned) %}
{{ ", " * (not loop.first) }}{{ off(error, unit) }} after \
{{ "{:,}".format(count) if not loop.first and name == after_words(what, count) else name }}{{ state_found }}\
{% endfor %}
{% endmacro %}
{% set base = " (" ~ off(stays_without, unit) ~ " without)" %}
{% if labels %}which label somebody has: {{ off(error, unit) }}{% else %}\
where somebody is: {{ off(error, unit) }} off{% endif %} \
{% if measured %}on average{% else %}expected{% if rows %} over {{ rows }}{% endif %}{% endif %}\
{{ found.in_units }} ({{ off(without, unit) }} without the file)
{% if stays and found.stays_known %}
{{ who }}: known without the file
{% elif stays %}
{{ who }}: {{ after(False) }}{{ base }}
{% elif uncomputed %}
{{ who }}: not computed: {{ uncomputed }}
{% elif planned %}
{{ who }}, of people with rows of {{ "the whole sequence" if what == "sequence" else "whole " ~ what ~ "s" }}\
{% if answers %} and {{ found.with_answers }}{% endif %}: {{ after(True) }}{{ base if stays_without == stays_without }}
{% endif %}
{% if leaving %}when somebody left home: {{ leaving.figure }} off ({{ leaving.beside }}){% endif +%}
{% if by_plan %}
so its plan says of invented people{% if unsure %} ({{ unsure }}){% endif %}; dphmm report tells it of the rows
{% endif %}
"""


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


class Published(Part, frozen=True, kw_only=True):
    """The counts of what was published.

    asked : Every step, planned or paced.
    most_answers : Of a person in a sequence, block or window; null without a promise.
    of : The name of that block, "a day".
    people_answered : Null where it is not known, or everybody has an answer.
    noun : The name of an answer.
    as_stated : Whether that paced times follow from what was published is the statement's word alone.
    unchecked : Whether nothing confirms the most answers.
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
        "asked": "{% if asked == 'every' %}at every step{% elif asked == 'planned' %}at fixed public {{ moments }}"
        "{% else %}at times chosen from what was already published{% if as_stated %} (so the statement says; dphmm "
        "check-release follows every choice){% endif %}{% endif %}",
        "constants": "{% if public_constants == 1 %}1 of these answers has no noise and costs nothing"
        "{% else %}{{ '{:,}'.format(public_constants) }} of these answers have no noise and cost nothing{% endif %}: "
        "one state alone is possible there",
        "meaning": """
{{ plural(answers, noun) }} of {% if people_answered %}{{ "{:,}".format(people_answered) }} of {% endif %}\
{{ plural(people, "person", "people") }}, {{ part.sentence("asked", moments="times") }}\
{% if most_answers is not none %}, at most {{ "{:,}".format(most_answers) }} {{ within(of) }} for each person\
{% if unchecked %} (so the statement says){% endif %}{% endif %}; {{ plural(rows, "row") }}
{% if public_constants %}{{ part.sentence("constants") }}{% endif +%}
""",
    }


class Bound(Part, frozen=True, kw_only=True):
    """A bound on what answers tell of two states, or paths, that hide each other.

    answers : How many, null of one.
    of : The block of the answers, "a day".
    sureness : The largest posterior after even odds.
    """

    epsilon: str
    sureness: str
    answers: int | None = None
    of: str | None = None


class Guaranteed(Part, frozen=True, kw_only=True):
    """The bounds that hold for whoever is released.

    holds : As private in the statement.
    one_answer, all_answers : Null where nothing holds; all_answers also without a promise over the sequence.
    covered_distance : Of places, or how far apart states are that the policy joins.
    only_possible : Whether it is of states alone that the model and all earlier answers leave possible.
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
{{ whole.where }}: {{ at_most(one_answer.sureness) }} sure {{ ONE_ANSWER }} (50 % before)
{% if all_answers and (all_answers.answers != 1 or all_answers.epsilon != one_answer.epsilon) %}
two paths that {% if not promise.steps %}differ within \
{{ all_answers.of if not promise.window else "{:,} steps".format(promise.window) }} only and {% endif %}\
are equal or joined so at every step: {{ at_most(all_answers.sureness) }} after \
{% if each * all_answers.answers == all_answers.epsilon | exact and each == whole.epsilons[0] %}\
all {{ "{:,}".format(all_answers.answers) }}{% else %}all answers of all queries{% endif %} of {{ all_answers.of }}; \
{% if promise.steps and whole.sequence and whole.sequence.couples is true %}and so two states of one step, \
{{ IF_BELIEVED }}{% else %}two states of one step can lose more{% endif +%}
{% elif all_answers and not promise.steps %}
one answer {{ within(all_answers.of) }}, and no limit over longer times: each allows {{ one_answer.sureness }}
{{ OTHER_MOMENTS }}
{% endif %}
{% if not confirmed %}
so the statement says; without the policy nothing confirms it, nor a bound on all answers
{% elif not all_answers %}
{% if counted == 1 %}no limit for further answers; this one allows {{ one_answer.sureness }}\
{% else %}no limit for {{ "the whole sequence" if whole.model.step_seconds is none else "a day" }}: \
{% if counted %}{{ "{:,}".format(counted) }} answers about one person in all, {% endif %}\
each allows {{ one_answer.sureness }}{% endif %}{% if more %} of this file; {{ more }}{% endif +%}
{{ OTHER_MOMENTS }}
{% endif %}
{% if only_possible %}
only of states that the model and all earlier answers leave possible: another one is answered as its surrogate, and \
may be told from its policy neighbours
{% endif %}
{% if by_statement %}
{{ ORIGIN }}
{% if not ledger and whole.randomness.secure %}
only the statement says that the noise came from the operating system; give --ledger to check it
{% endif %}
{% endif %}
{% if holds == "unknown" %}
whether this holds is not known: {{ whole.why }}
{% endif %}
{% endif %}
""",
    }


class NotProtected(Part, frozen=True, kw_only=True):
    """What these releases do not hide: the codes of the statement."""

    codes: list[str]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if whole.on_map %}places one returns to; the part of town{% else %}states one returns to\
{% if whole.policy.kind != "complete" %}; states that the policy does not join{% endif %}{% endif %}\
{% if whole.unprotected_fit %}; those whom the model was fitted on{% endif %}\
{% if not all_possible %}; moves that the model calls impossible{% endif %}; who is in the file, and \
{{ "at which steps" if whole.model.step_seconds is none else "when" }}
""",
    }


class Spent(Part, frozen=True, kw_only=True):
    """The budget that is spent, and its limits.

    most : Of a person in a block, at most; null without a promise.
    total : The promise over paths.
    of : Its block.
    epsilon_sum : Of the person with most, over all time.
    counted_in : File, or ledger.
    cap : Of the sum over all time.
    enforced_by : What keeps the total: the ledger, or the statement says so.
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
{% endif %}{% endset %}
{% if total is none %}
epsilon sum {{ all }} of the person with most answers{{ over }}, {% if cap is not none %}the cap is \
{{ in_short(cap) }}{% elif by_statement %}no cap is stated{% else %}no cap{% endif +%}
{% else %}
{% set spent = epsilon_sum | exact %}
{% set whose = "" if ledger else " by this file" if by_rows else "" if most == total else " by this query" %}
{% if not ledger and spent == 0 %}\
nothing of {{ in_short(total) }} {{ within(of) }} for each person{{ whose }}\
{# How much of it lies in one block the statement does not say. #}\
{% elif not ledger and spent < most | exact %}\
at most {{ all }} in all for each person{{ over }}; the cap is {{ in_short(total) }} {{ within(of) }}{{ whose }}\
{% else %}\
at most {{ in_short([most | exact, spent] | min) }} of {{ in_short(total) }} {{ within(of) }} for each person\
{{ whose }}; in all at most {{ all }}{{ over }}\
{% endif %}\
{% if enforced_by == "as stated" %}; the cap is the statement's: give --ledger to check it{% endif +%}
{% endif %}
{% endif %}
""",
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
        parts = {name: getattr(self, name) for name in ANSWERS}
        found = None if self.still_found is None else self.still_found.document()
        return {name: document(part) if isinstance(part, Part) else found for name, part in parts.items()}

    def words(self, name: str) -> list[str]:
        """The sentences of one of the five answers."""
        if name in ("guaranteed", "still_found") and self.published.answers == 0:
            return ["nothing: no answer has been published"]
        if name != "still_found":
            part: Part = getattr(self, name)
            return part.said("meaning", self.statement, **self.known)
        if self.still_found is None:
            return []
        beside = "{% if more %}of this file; {{ more }}{% endif +%}{% if not secure %}{{ REPLAYABLE }}{% endif %}"
        return [*self.still_found.lines, *rendered(beside, {**self.known, "secure": self.statement.randomness.secure})]

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
            words = self.words(name) or [missing] * bool(missing)
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
    noun = "label" if statement.space.kind == "labels" else "answer"
    (least, each), counts = statement.epsilons, statement.published
    answers = counts.rows - (statement.schedule.not_asked if statement.schedule is not UNSET else 0)
    # What a ledger would confirm.
    unchecked = as_stated and ledger is None
    in_all = Fraction(statement.totals.epsilon_sum) if ledger is None else ledger.in_all
    bounded = answers and statement.private is not False
    most = block = bound = every = None
    if promise is not None:
        total = promise.exact
        # A local day may be longer than others.
        length = total // least if promise.is_local else promise.length(statement.model.step_seconds)
        most = int(min(length, total // least)) if schedule is None else schedule.releases
        block = block_words(promise)
        # Of a sequence that ends, the sum of the rows is its own.
        bound = max(min(most * each, total), in_all if promise.steps is not None else Fraction(0))
        bound = ledger.largest if ledger is not None else bound if largest is None else largest
        if bounded:
            every = Bound(epsilon=str(total), sureness=sureness(total), answers=most, of=block)
    # Public constants have an answer and no epsilon, and steps may have one of their own; a sum may be rounded up.
    counted = Fraction(statement.totals.epsilon_sum) / each
    # No limit is told of a policy that nobody knows.
    limit = promise if confirmed else None
    return Story(
        published=Published(
            answers=answers,
            rows=counts.rows,
            people=counts.subjects,
            people_answered=answered if answered is not None and 0 < answered < counts.subjects else None,
            public_constants=counts.public_constants,
            asked="every" if schedule is None else schedule.kind,
            most_answers=most,
            of=block,
            noun=f"noisy {'position' if statement.on_map else noun}",
            as_stated=as_stated and not followed,
            unchecked=unchecked,
        ),
        guaranteed=Guaranteed(
            holds=statement.private,
            covered_distance=_covered(statement) if answers else None,
            one_answer=Bound(epsilon=str(each), sureness=sureness(each)) if bounded else None,
            all_answers=every,
            only_possible=not all_possible if bounded else None,
        ),
        still_found=found if answers else None,
        not_protected=NotProtected(codes=list(statement.not_protected)),
        spent=Spent(
            most=None if limit is None else str(bound),
            total=None if limit is None else str(limit.exact),
            of=None if limit is None else block,
            epsilon_sum=statement.totals.epsilon_sum if ledger is None else str(ledger.in_all),
            counted_in="file" if ledger is None else "ledger",
            cap=str(cap) if confirmed and cap is not None else None,
            enforced_by=None if limit is None else "as stated" if unchecked else "ledger",
        ),
        statement=statement,
        known={
            "promise": promise,
            "ledger": ledger,
            "each": each,
            "confirmed": confirmed,
            "all_possible": all_possible,
            "by_statement": as_stated,
            "by_rows": largest is not None,
            "counted": int(counted) if counted.denominator == 1 and least == each else None,
            "more": "" if ledger is None else ledger.more,
        },
    )


def _covered(statement: ReleaseStatement) -> dict[str, Any] | None:
    """The covered distance, or else how far apart states are that the policy joins; None where neither is known."""
    covered, reach = statement.covered_distance, statement.reach
    facts = None if covered is None else document(covered)
    if reach is None or (covered is not None and covered.metres != 0):
        return facts
    return (facts or {"metres": None, "ground_metres": None}) | reach
