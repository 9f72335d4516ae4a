"""The story of a release: verdict, published rows, findings, guarantee, spending, and the limits of protection.

Every figure is public or comes from a plan, never from true states. A guarantee is rounded upwards, a covered distance
downwards, an error to the nearest. Words about the promise itself are those of `dphmm.statement.release`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from msgspec import UNSET

from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.statement.doubt import doubt
from dphmm.statement.parts import Holds, Part, document
from dphmm.statement.release import ReleaseStatement
from dphmm.statement.sentences import block_words, rendered, wrapped_row
from dphmm.statement.verdict import ReaderFindings, ReleaseVerdict, verdict
from dphmm.states.space import LABELS_WRONG


def after_sequence_words(after: int, rows: int, steps: int) -> str:
    """The message that some rows lie after the steps of a total over a sequence, if none of them has an answer.

    >>> after_sequence_words(7, 35, 10)
    '7 of 35 rows are after step 10, the last of the sequence that the total is of: they have no answer'
    """
    of = f"{after:,} of {rows:,} rows"
    return f"{of} are after step {steps:,}, the last of the sequence that the total is of: they have no answer"


def stay_words(unit: str) -> str:
    """The words for the people of the figures of stays: one place, or state, in all answers of whole blocks."""
    if unit == LABELS_WRONG:
        return "who keeps one label"
    return "who stays at one place" if unit == "m" else "who stays in one state"


def after_words(what: str, count: int) -> str:
    """For how long: "1 day", "7 blocks", "the sequence"."""
    return f"the {what}" if what == "sequence" else f"{count:,} {what}{'s' * (count != 1)}"


@dataclass(frozen=True)
class InLedger:
    """The ledger's account of a file's people over all its files and queries, for the person with most.

    ``largest``: the sum in a block or window of the promise, or in all without one; ``in_all``: the sum of everything.
    ``queries``: the number of other queries with answers about them; ``others``: True if other answers exist at all.
    """

    largest: Fraction
    in_all: Fraction
    queries: int = 0
    others: bool = False

    @property
    def more(self) -> str:
        """The other queries and files with answers, and the consequence for a reader; empty if there are none."""
        if not self.others:
            return ""
        asks = {0: "another file answers too", 1: "another query asks too"}
        who = asks.get(self.queries, f"{self.queries} other queries ask too")
        return f"{who}, and a reader of {'all' if self.queries > 1 else 'both'} finds more"


class AnswerCounts(Part, frozen=True, kw_only=True):
    """The counts of what was published.

    asked : Every step, planned, staggered or paced.
    most_answers : Of a person in a sequence, block or window; null without a promise.
    of : The name of that block, "a day".
    people_answered : Null where it is not known, or everybody has an answer.
    noun : The name of an answer.
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

    says: ClassVar[Mapping[str, str]] = {
        "asked": "{% if asked == 'every' %}at every step{% elif asked == 'paced' %}at times chosen from what "
        "was already published{% else %}at fixed public {{ moments }}{% endif %}",
        "constants": "{% if public_constants == 1 %}1 of these answers has no noise and costs nothing"
        "{% else %}{{ '{:,}'.format(public_constants) }} of these answers have no noise and cost nothing{% endif %}: "
        "one state alone is possible there",
        "meaning": """
{{ plural(answers, noun) }} of {% if people_answered %}{{ "{:,}".format(people_answered) }} of {% endif %}\
{{ plural(people, noun_words.noun, noun_words.people) }}, {{ part.sentence("asked", moments="times") }}\
{% if most_answers is not none %}, at most {{ "{:,}".format(most_answers) }} {{ within(of) }} for each \
{{ noun_words.noun }}\
{% endif %}; {{ plural(rows, "row") }}
{% if public_constants %}{{ part.sentence("constants") }}{% endif +%}
""",
    }


class Bound(Part, frozen=True, kw_only=True):
    """A bound on what answers tell of two states, or ways, that look alike.

    doubt : At least 1 in so much doubt is left where both seemed equally likely; null where that is no useful limit.
    answers : How many of a block; null where other queries may add to them.
    of : The block of the answers, "a day", or "ledger" of all its files and queries; null of one answer, and of a file.
    """

    epsilon: str
    doubt: int | None
    answers: int | None = None
    of: str | None = None

    @classmethod
    def at(cls, epsilon: Fraction, answers: int | None = None, of: str | None = None) -> Bound:
        """The bound of answers of so much epsilon in all."""
        return cls(epsilon=str(epsilon), doubt=doubt(epsilon), answers=answers, of=of)


class Guaranteed(Part, frozen=True, kw_only=True):
    """The bounds that hold for whoever is released.

    holds : As private in the statement.
    one_answer, block, file : Null where nothing holds; block also without a promise over the sequence, or where it has
        one answer; file also where it has no more than the block.
    covered_distance : Of places, or how far apart states are that the policy joins.
    only_possible : Whether it is of states alone that the model and all earlier answers leave possible.
    """

    holds: Holds
    covered_distance: dict[str, Any] | None
    one_answer: Bound | None
    block: Bound | None
    file: Bound | None
    only_possible: bool | None

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if holds is false %}
NOT PRIVATE: {{ whole.why }}
{% else %}
if {{ whole.pair }} seem equally likely, one answer leaves {{ doubt_words(one_answer.doubt) }}
{% if block %}{{ all_words(block.answers) }} answers of {{ block.of }}: \
{{ doubt_words(block.doubt) }}{% if block.doubt %}{{ between_ways }}{% endif %}{% endif +%}
{% if file %}{{ "all files and queries" if file.of else "the whole file" }}: {{ doubt_words(file.doubt) }}\
{% if file.doubt %}{{ between_ways }}{% endif %}{% endif +%}
{% if only_possible %}
only of {{ "places" if whole.on_map else "states" }} that the model and all earlier answers leave possible
{% endif %}
{% if holds == "unknown" %}
whether this holds is not known: {{ whole.why }}
{% endif %}
{% endif %}
""",
    }


class NotProtected(Part, frozen=True, kw_only=True):
    """The codes of the statement for the things that these releases do not hide."""

    codes: list[str]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if whole.on_map %}places {{ noun_words.somebody }} returns to; the part of town{% else %}states that last\
{% if whole.policy.kind != "complete" %}; states that the policy does not join{% endif %}{% endif %}\
{% if whole.unprotected_fit %}; {{ noun_words.people }} that the model was fitted on{% endif %}\
{% if not all_possible %}; moves that the model calls impossible{% endif %}; who is in the file, and \
{{ "at which steps" if whole.model.step_seconds is none else "when" }}
""",
    }


class SpentBudget(Part, frozen=True, kw_only=True):
    """The budget that is spent, and its limits.

    most : Of a person in a block, at most; null without a promise.
    total : The promise over paths.
    of : Its block.
    epsilon_sum : Of the person with most, over all time.
    counted_in : File, or ledger.
    cap : Of the sum over all time.
    """

    most: str | None
    total: str | None
    of: str | None
    epsilon_sum: str
    counted_in: str
    cap: str | None

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% set by = "by all files and queries of the ledger" if counted_in == "ledger" else "by this file" %}
{% if total is none %}
epsilon {{ in_short(epsilon_sum) }} so far, for the {{ noun_words.noun }} with most answers ({{ by }}); \
{% if cap is not none %}the limit is {{ in_short(cap) }}\
{% elif whole.totals.cost_cap is not none %}the limit of costs is {{ in_short(whole.totals.cost_cap) }}\
{% elif not whole.totals.limited %}no limit is set\
{% else %}{{ "the ledger keeps a limit" if confirmed else "no policy confirms the limit" }}{% endif +%}
{% elif epsilon_sum | exact == 0 %}
nothing of {{ in_short(total) }} {{ within(of) }} for each {{ noun_words.noun }}, {{ by }}
{% else %}
at most {{ in_short(most) }} of {{ in_short(total) }} {{ within(of) }} for each {{ noun_words.noun }}\
{% if epsilon_sum != most %}, {{ in_short(epsilon_sum) }} in all{% endif %}, {{ by }}
{% endif %}
""",
    }


class NotChecked(Part, frozen=True, kw_only=True):
    """The things that a reader of the files cannot check: the model's origin, and facts of policy and ledger."""

    codes: list[str]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if "policy" in codes %}the policy, and with it every limit{% endif +%}
{% if "origin" in codes %}the model's origin: only its file says it{% endif +%}
{% if "ledger" in codes %}the limit, and that the noise came from the operating system{% endif +%}
""",
    }


#: Of what a bound of several answers is: earlier and later answers tell more of the places of one moment.
_BETWEEN_WAYS = " between two ways that look alike at every moment"
#: What is told after the verdict, in order.
ANSWERS = ("published", "found", "guaranteed", "spent", "not_protected", "not_checked")


@dataclass(frozen=True)
class Story:
    """The facts about one release, and the further facts that their sentences need."""

    verdict: ReleaseVerdict
    published: AnswerCounts
    found: ReaderFindings | None
    guaranteed: Guaranteed
    spent: SpentBudget
    not_protected: NotProtected
    not_checked: NotChecked
    statement: ReleaseStatement
    known: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """The members that ``--json`` gains: facts alone."""
        parts = {name: getattr(self, name) for name in ("verdict", *ANSWERS)}
        figures = None if self.found is None else self.found.document()
        return {name: document(part) if isinstance(part, Part) else figures for name, part in parts.items()}

    def words(self, name: str) -> list[str]:
        """The sentences of one of the answers; for "verdict" the headline and its consequences."""
        if name == "verdict":
            return self.verdict.lines
        if name in ("guaranteed", "found") and self.published.answers == 0:
            return []
        if name == "found":
            beside = "{% if more %}of this file; {{ more }}{% endif +%}{% if not secure %}{{ REPLAYABLE }}{% endif %}"
            others = rendered(beside, {**self.known, "secure": self.statement.randomness.secure})
            return [] if self.found is None else [*self.found.lines, *others]
        part: Part = getattr(self, name)
        return part.said("meaning", self.statement, **self.known)

    def sentence(self, answer: str, name: str, **known: Any) -> str:
        """One named sentence of one of the answers, of which other facts may be known."""
        part: Part = getattr(self, answer)
        return part.sentence(name, self.statement, **{**self.known, **known})

    def rows(self) -> list[tuple[str, str]]:
        """Labels and lines for a terminal of 80 columns, in the order in which they are told."""
        rows: list[tuple[str, str]] = []
        for name in ("verdict", *ANSWERS):
            rows += wrapped_row(name.replace("_", " "), *self.words(name))
        return rows


#: Why a release alone has no findings of a reader.
COMPUTED_BY_REPORT = "dphmm report computes it for these rows"


def story(
    statement: ReleaseStatement,
    promise: SequencePromise | None = None,
    schedule: Schedule | None = None,
    found: ReaderFindings | None = None,
    ledger: InLedger | None = None,
    *,
    missing: str = COMPUTED_BY_REPORT,
    confirmed: bool = True,
    all_possible: bool = False,
    as_stated: bool = False,
    answered: int | None = None,
    largest: Fraction | None = None,
) -> Story:
    """The story of a stated release, with its promise and schedule.

    ``found``: the findings of a reader; without them ``missing`` says why. ``ledger``: the spending by its
    count, in place of the file's. ``confirmed``: True if the policy is known; else no limit is told.
    ``all_possible``: True if the model excludes no state at any step
    (`dphmm.session.setting.Setting.excludes_no_state`). ``as_stated``: told by a reader of the statement. ``answered``:
    the number of people with an answer. ``largest``: the largest sum of a person's rows in a block, if the file has it;
    else it is bounded.
    """
    noun = "label" if statement.space.kind == "labels" else "answer"
    (least, each), counts, totals = statement.epsilons, statement.published, statement.totals
    answers = counts.rows - (statement.schedule.not_asked if statement.schedule is not UNSET else 0)
    figures = None if found is None else replace(found, noun=statement.subjects.noun)
    in_all = Fraction(totals.epsilon_sum) if ledger is None else ledger.in_all
    promised = bool(answers) and statement.private is not False
    most = block = bound = every = None
    if promise is not None:
        total = promise.exact
        # A local day may be longer than others.
        length = total // least if promise.is_local else promise.length(statement.model.step_seconds)
        most = int(min(length, total // least)) if schedule is None else schedule.releases
        block = block_words(promise)
        # Of a sequence that ends, the sum of the rows is its own.
        bound = max(min(most * each, total), in_all if promise.steps is not None else Fraction(0))
        bound = ledger.largest if ledger is not None else min(in_all, bound if largest is None else largest)
        if promised and (most != 1 or total != each):
            # Other queries may use what this one leaves of the promise.
            every = Bound.at(total, most if most * each == total == most * least else None, block)
    # No limit is told of a policy that nobody knows.
    limit = promise if confirmed else None
    covered = _covered(statement) if answers else None
    metres = None if statement.covered_distance is None else statement.covered_distance.metres
    more_than_one = in_all > max(each, Fraction(0) if every is None else Fraction(every.epsilon))
    codes = {"policy": not confirmed, "origin": as_stated, "ledger": as_stated and ledger is None}
    return Story(
        verdict=verdict(
            answers,
            replayable=bool(statement.randomness.replayable_rows),
            limited=totals.limited,
            found=figures,
            covered=float(metres) if isinstance(metres, (int, float)) else None,
            missing=missing,
            more="" if ledger is None else ledger.more,
        ),
        published=AnswerCounts(
            answers=answers,
            rows=counts.rows,
            people=counts.subjects,
            people_answered=answered if answered is not None and 0 < answered < counts.subjects else None,
            public_constants=counts.public_constants,
            asked="every" if schedule is None else schedule.kind,
            most_answers=most,
            of=block,
            noun=f"noisy {'position' if statement.on_map else noun}",
        ),
        found=figures if answers else None,
        guaranteed=Guaranteed(
            holds=statement.private,
            covered_distance=covered,
            one_answer=Bound.at(each) if promised else None,
            block=every if confirmed else None,
            file=Bound.at(in_all, of=None if ledger is None else "ledger") if promised and more_than_one else None,
            only_possible=not all_possible if promised else None,
        ),
        spent=SpentBudget(
            most=None if limit is None else str(bound),
            total=None if limit is None else str(limit.exact),
            of=None if limit is None else block,
            epsilon_sum=totals.epsilon_sum if ledger is None else str(ledger.in_all),
            counted_in="file" if ledger is None else "ledger",
            cap=totals.cap,
        ),
        not_protected=NotProtected(codes=list(statement.not_protected)),
        not_checked=NotChecked(codes=[name for name, holds in codes.items() if holds]),
        statement=statement,
        known={
            "all_possible": all_possible,
            "confirmed": confirmed,
            "between_ways": _BETWEEN_WAYS,
            "noun_words": statement.subjects.words,
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
