"""The judgement of a release: one headline, the same on every page and terminal, from public figures alone.

The rules stand in one order; the first that holds is the headline, and the others follow. Figures are of people who are
simulated from the public model, or expected of the published rows: none of them follows from true states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import msgspec

from dphmm.statement.advice import LEAST_DOUBT, finds_state
from dphmm.statement.parts import Part
from dphmm.statement.sentences import lasting, noun_words, plural, rendered
from dphmm.states.space import LABELS_WRONG

#: A reader is no nearer with a file where the whole interval of the ratio of the errors lies above this.
_NO_NEARER = 0.95
#: What is told in the colour of a warning; the rules of a place that somebody returns to.
WARNS = ("replayable", "unlimited", "tells", "tells labels", "returns")
OF_STAYS = ("returns", "will return", "not within", "stays unknown")
#: The best reader, where it is not the one who believes the public model.
LINES = "straight lines between answers"
#: Whose figures the simulated ones are.
SIMULATED = "people simulated from the public model"
#: Blocks of a clock that have names.
OF_A_CLOCK = ("hour", "day", "week")


class Stay(NamedTuple):
    """The figures of people who stay at one place for so many blocks.

    ``answers`` : the number about each of them, 0 if nobody was asked in that time.
    ``error`` : the mean distance of a reader's guess; for labels, the error rate. ``tenth`` : one person in ten
    is missed by no more.
    """

    after: int
    answers: float
    error: float
    tenth: float


@dataclass(frozen=True)
class ReaderFindings:
    """The expected findings of a reader of a release, each figure beside that of a reader without it.

    error, without : mean distances from the true place, with and without the file; for labels, error rates.
    unit : the unit of these, "m" on a map.
    people : the people of these figures: `SIMULATED`, "the rows of this file".
    ratio : a 95 % interval over people of error / without; None for too few people.
    halved : the number of ``counted`` people whose error the file at least halves, or None.
    known : the error of somebody who knows the state; 0 if states are no places. ``state`` : the noun for a state.
    stays : the figures of people who stay at one place, in order of the time; ``stays_without`` the file.
    block : the unit of ``stays``: "day", "sequence", "window". ``seconds`` : its length, if known.
    blocks : the number of whole blocks in the file, for the person with most.
    uncomputed : the reason for no ``stays``; "" if nobody can stay anywhere.
    noun : the noun for a subject of the rows.
    reader : the best reader, unless it is the one who believes the public model: `LINES`.
    """

    error: float
    without: float
    unit: str
    people: str = ""
    ratio: tuple[float, float] | None = None
    halved: int | None = None
    counted: int = 0
    known: float = 0.0
    state: str = "cell"
    stays: Sequence[Stay] = ()
    stays_without: float = math.nan
    block: str = ""
    blocks: int = 0
    seconds: int | None = None
    uncomputed: str = ""
    noun: str = "person"
    reader: str = ""

    @property
    def labels(self) -> bool:
        """True if states are labels, which have no distances."""
        return self.unit == LABELS_WRONG

    @property
    def chance(self) -> float:
        """The share by which the error of simulated people may be off by chance."""
        if self.ratio is None or self.people != SIMULATED or not self.error > 0:
            return 0.0
        return (self.ratio[1] - self.ratio[0]) / 2 * self.without / self.error

    @property
    def own_stay(self) -> Stay | None:
        """The figures of people who stay for the whole file: after the most blocks that the file has."""
        return next((stay for stay in reversed(self.stays) if stay.after <= self.blocks and stay.answers), None)

    @property
    def lines(self) -> list[str]:
        """The figures in words."""
        stay = self.own_stay
        lasts = "" if stay is None else self.lasting(stay.after)
        beside = {"labels": self.labels, "stay": stay, "lasts": lasts, "chance": self.chance}
        return rendered(_FOUND, {**vars(self), **beside, **noun_words(self.noun)})

    def lasting(self, blocks: int) -> str:
        """For how long somebody stays: "one day", "all 3 days of this file", "one window (12 hours)"."""
        if self.block == "sequence":
            return "the whole sequence"
        span = f"one {self.block}" if blocks == 1 else f"{blocks:,} {self.block}s"
        if self.seconds is not None and self.block not in OF_A_CLOCK:
            span += f" ({lasting(self.seconds)}{' each' * (blocks != 1)})"
        return f"all {span} of this file" if blocks == self.blocks > 1 else span

    def document(self) -> dict[str, Any]:
        """The figures for JSON."""
        stays = [stay._asdict() for stay in self.stays if stay.answers]
        return {
            "error": self.error,
            "error_without": self.without,
            "unit": self.unit,
            "of": self.people or None,
            "reader": self.reader or "the public model",
            "ratio": None if self.ratio is None else list(self.ratio),
            "halved": self.halved,
            "stays": {
                "block": self.block or None,
                "in_file": self.blocks,
                "error_without": None if math.isnan(self.stays_without) else self.stays_without,
                "found": stays,
                "uncomputed": self.uncomputed or None,
            },
        }


_FOUND = """
{% set place = "place" if unit == "m" else "state" %}
{% if labels %}
a reader names the right label in {{ right(error) }} of 100 rows ({{ right(without) }} without the file)
{% else %}
a reader misses {{ somebody }}'s {{ place }} by {{ off(error, unit) }} on average\
{{ ", with " ~ reader if reader }}\
{{ ", in " ~ unit if unit not in ("", "m") }} ({{ off(without, unit) }} without the file)
{% endif %}
{% if stay and labels %}
and that of {{ somebody }} {{ who }} keeps one label for {{ lasts }} in {{ right(stay.error) }} of 100 \
({{ right(stays_without) }} without)
{% elif stay and off(stays_without, unit) == off(0, unit) %}
the {{ place }} of {{ somebody }} {{ who }} stays in one is known without the file
{% elif stay %}
a reader gets within {{ off(stay.error, unit) }} of {{ somebody }} {{ who }} stays in one {{ place }} for {{ lasts }} \
({{ off(stays_without, unit) }} without)
{% endif %}
{{ by_chance(chance) }}
"""


class ReleaseVerdict(Part, frozen=True, kw_only=True):
    """One judgement of a release.

    rules : The rules that hold, in their order: the first is the headline.
    error : What a reader misses somebody's place or state by; of labels the share guessed wrong.
    without : The same without the file.
    unit : Of the error.
    state : What a state is called.
    near : Who returns to one place is found where a reader is as near as this.
    block : What is counted until then.
    after : After how many of them a reader is as near.
    tenth_after : After how many one person in ten is.
    tried : The most of them that were tried.
    why : Why something is not known.
    more : Which other files or queries answer about the same people.
    noun : What one is called whom the rows are about.
    halved : For how many people the error is at most half, though on average it is not less.
    counted : Of how many.
    """

    rules: list[str]
    error: float | None = None
    without: float | None = None
    unit: str = ""
    state: str = "cell"
    near: float | None = None
    block: str = ""
    after: int | None = None
    tenth_after: int | None = None
    tried: int | None = None
    why: str | None = None
    more: str | None = None
    noun: str = "person"
    halved: int | None = None
    counted: int | None = None

    says: ClassVar[dict[str, str]] = {
        "replayable": "Not private: made with a known seed.",
        "nothing": "No answer has been published.",
        "unlimited": "No limit is set.",
        "unknown": "What a reader finds is not known here: {{ why }}.",
        "tells": "Tells where {{ somebody }} is, to the {{ state }}.",
        "tells labels": "Tells what label {{ somebody }} has.",
        "no nearer": "On average a reader is no nearer with this file than without it. This is no limit"
        "{% if halved %}: for {{ halved }} of {{ counted }} {{ people }} the error is at most half{% endif %}.",
        "returns": "A place that {{ somebody }} returns to is found.",
        "will return": "{{ Somebody }} {{ who }} returns to one place is found, to within {{ length(near) }}, after "
        "about {{ plural(after, block) }} of answers like these (by our readers, on simulated {{ people }}"
        "{% if tenth_after %}; one in ten after {{ tenth_after }}{% endif %}).",
        "not within": "{{ Somebody }} {{ who }} returns to one place is not found to within {{ length(near) }} in "
        "{{ plural(tried, block) }} of answers like these (by our readers, on simulated {{ people }}"
        "{% if tenth_after %}; one in ten after {{ tenth_after }}{% endif %}).",
        "stays unknown": "Whether a place that {{ somebody }} returns to is found is not known: {{ why }}.",
        "blurs": "Blurs a moment to about {{ off(error, unit) }}; without the file {{ off(without, unit) }}.",
        "labels": "A reader names the right label in {{ right(error) }} of 100 rows; without the file in "
        "{{ right(without) }}.",
        "more": "This is of one file: {{ more }}.",
    }

    @property
    def lines(self) -> list[str]:
        """The judgement in words: the headline, and what follows."""
        return [self._said(rule) for rule in self.rules]

    @property
    def about_stays(self) -> str:
        """The sentence about a place that somebody returns to; "" if there is none."""
        return next((self._said(rule) for rule in self.rules if rule in OF_STAYS), "")

    def _said(self, rule: str) -> str:
        (only,) = self.said(rule, None, **noun_words(self.noun))
        return only


def verdict(
    answers: int,
    *,
    replayable: bool,
    limited: bool,
    found: ReaderFindings | None,
    covered: float | None = None,
    missing: str = "",
    more: str = "",
) -> ReleaseVerdict:
    """The judgement of a release with so many answers.

    Parameters
    ----------
    replayable : True if its noise was made with a known seed.
    limited : True if a promise or a cap bounds the sum of somebody's answers.
    found : the findings of a reader; without them ``missing`` says why.
    covered : the covered distance in metres; None where there is none, or every two cells are joined.
    more : the other files or queries that answer about the same people, by a ledger.

    Examples
    --------
    >>> found = ReaderFindings(143.0, 2530.0, "m", known=130.0)
    >>> verdict(432, replayable=False, limited=False, found=found).lines
    ['No limit is set.', 'Tells where somebody is, to the cell.']
    """
    unlimited = ["unlimited"] * (not limited)
    if answers == 0:
        return ReleaseVerdict(rules=["nothing", *unlimited])
    rules, others = ["replayable"] * replayable + unlimited, ["more"] * bool(more)
    if found is None:
        return ReleaseVerdict(rules=[*rules, "unknown", *others], why=missing, more=more or None)
    of_labels = ["tells labels"] * (found.error <= float(LEAST_DOUBT) and found.error < found.without / 2)
    judgement = ReleaseVerdict(
        rules=[*rules, *of_labels, "labels", *others],
        error=found.error,
        without=found.without,
        unit=found.unit,
        state=found.state,
        more=more or None,
        noun=found.noun,
    )
    if found.labels:
        return judgement
    tells = finds_state(found.error, found.known)
    # Above 1 the answers surprise: the guess without them is of other people than those of the rows.
    nothing = found.ratio is not None and _NO_NEARER < found.ratio[0] <= 1
    rules += ["tells"] * tells + ["no nearer"] * (nothing and not tells)
    rule, facts = _of_stays(found, covered)
    if nothing and found.halved:
        # The mean over many people hides one whom the file tells of.
        facts |= {"halved": found.halved, "counted": found.counted}
    # A sentence about the same moment says it once.
    rules += [rule] * bool(rule) + ["blurs"] * (not tells and not nothing) + others
    return msgspec.structs.replace(judgement, rules=rules, **facts)


def _of_stays(found: ReaderFindings, covered: float | None) -> tuple[str, dict[str, Any]]:
    """The rule for a place that somebody returns to, and the facts of its sentence; "" if nothing can be said."""
    if found.uncomputed:
        return "stays unknown", {"why": found.uncomputed}
    stays = [stay for stay in found.stays if stay.answers]
    # Who knows the cell has found the place, however little is covered, or where a guess is within what is covered.
    near = max(covered or 0.0, found.known * 1.1)
    if found.stays_without <= near:
        near = found.known * 1.1
    if not stays or near == 0 or found.stays_without <= near:
        return "", {}
    after = next((stay.after for stay in stays if stay.error <= near), None)
    tenth = next((stay.after for stay in stays if stay.tenth <= near), None)
    facts = {"near": near, "block": found.block, "after": after, "tenth_after": tenth, "tried": stays[-1].after}
    if after is None and stays[-1].after < found.blocks:
        tried = f"no more than {plural(stays[-1].after, found.block)} was tried, and the file has {found.blocks:,}"
        return "stays unknown", {"why": tried}
    if after is None:
        return "not within", facts
    return "returns" if after <= found.blocks else "will return", facts
