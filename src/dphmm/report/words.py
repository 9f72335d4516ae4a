"""The sentences of a page. Figures are those of the terminal and of ``--json``: from the statement and `release_words`.

The subject is a reader of the file, who finds, is sure, or is off. A guarantee is rounded upwards.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.records import in_short
from dphmm.report.content import ReleaseReport
from dphmm.states.space import LABELS_WRONG
from dphmm.states.zones import Zones
from dphmm.storage.promises import factor_number, length, places_words
from dphmm.storage.release_words import (
    IF_BELIEVED,
    ONE_ANSWER,
    REPLAYABLE,
    SO_STATED,
    Found,
    clock,
    constants_words,
    epsilon_words,
    joined_words,
    lasting,
    off,
    stay_words,
    sureness,
    unprotected_fit,
)
from dphmm.storage.statement_types import document, epsilons_of

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_BLOCKS = {"1d": "a day", "7d": "a week", "1h": "an hour"}
_HUGE = 10**9
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
#: What the bars of several answers are of.
SEVERAL = "Several answers: of two ways that are, at every moment, equal or joined by the policy."
#: What a bar is called that is of all answers of all queries, for which it has no room.
ALL = "all queries"
#: Of a cap that no ledger confirms.
CAP_AS_STATED = "The cap is the statement's; give --ledger to check it."
#: Between how sure somebody is and the factor of the odds.
ODDS = ", odds × "


def all_words(name: str) -> str:
    """The name of a bar as the terminal has it."""
    return "all answers of all queries" if name == ALL else name


def counted(number: int) -> str:
    """A number as a word up to twelve."""
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else f"{number:,}"


def plural(number: int, one: str, more: str | None = None) -> str:
    """ "1 answer", "6 answers"."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def factor_words(epsilon: Fraction) -> str:
    """exp(epsilon) rounded up, as a statement has it; a power of ten where there are many digits."""
    if epsilon < math.log(_HUGE):
        return factor_number(epsilon)
    return "10" + str(math.ceil(float(epsilon) / math.log(10))).translate(_RAISED)


@dataclass(frozen=True)
class Counts:
    """How many answers there are: of whom, in which blocks, of how much epsilon."""

    answers: int
    rows: int
    people: int
    most: int
    alike: bool
    block: str


def counts_of(report: ReleaseReport) -> Counts:
    """What the file has."""
    rows, promise, schedule = report.rows, report.promise, report.schedule
    most, alike = _most_of(report.in_file)
    block = ""
    if promise is not None and promise.per is not None:
        block = _BLOCKS.get(str(promise.per), f"each {promise.per}" + " steps" * isinstance(promise.per, int))
    elif promise is None and (schedule is None or not report.confirmed) and rows.time is not None:
        block = "a day"
    return Counts(int(rows.asked.sum()), len(rows), len(rows.by_user), most, alike, block)


def _most_of(told: Sequence[tuple[str, Sequence[tuple[int, int, Fraction]]]]) -> tuple[int, bool]:
    """The most answers in a block of anybody, and whether every block has so many."""
    counts = [count for _, blocks in told for _, count, _ in blocks]
    most = max(counts, default=0)
    return most, all(count == most for count in counts)


def noun(report: ReleaseReport) -> str:
    """What an answer is called."""
    return "label" if report.space.has_labels else "position" if report.on_map else "answer"


def headline(report: ReleaseReport) -> str:
    """What was published, as a count per person and day."""
    counts, what = counts_of(report), noun(report)
    if counts.answers == 0:
        return "No answer has been published."
    some = f"{report.people_answered:,} of " * (report.people_answered < counts.people)
    whom = f"for each of {some}{plural(counts.people, 'person', 'people')}" if counts.people > 1 else "of one person"
    if counts.rows == 1:
        return f"One noisy {what} of one person"
    step = report.made.model.step
    if report.schedule is None and report.promise is None and step is not None and _without_gaps(report):
        return f"A noisy {what} every {span(step)} {whom}"
    number = counted(counts.most)
    first = f"{number if counts.alike else f'up to {number}'} noisy {what}{'s' * (counts.most != 1)}"
    block = f" {counts.block}" if counts.block.startswith(("a ", "an ")) else f" in {counts.block}" * bool(counts.block)
    return f"{first[0].upper()}{first[1:]}{block} {whom}"


def span(seconds: int) -> str:
    """A length of time after "every": "10 minutes", "hour"."""
    return lasting(seconds).removeprefix("1 ")


def lead(report: ReleaseReport) -> str:
    """When, how many, and what the other rows are."""
    counts = counts_of(report)
    if counts.answers == 0:
        return _nothing_asked(report, counts)
    dates = days_words(report)
    kind = "every" if report.schedule is None else report.schedule.kind
    times = {
        "every": "at every step",
        "planned": f"at fixed public {'times' if report.rows.time is not None else 'steps'}",
        "paced": "at times chosen from what was already published" + SO_STATED * (not report.follows_choices),
    }[kind]
    if counts.rows == 1:
        return f"{f'{dates}. ' if dates else ''}Nothing else about this person is in the file: there is no path."
    told = f"{dates}, {times}" if dates else times[0].upper() + times[1:]
    others = counts.rows - counts.answers
    if report.earlier:
        follow = f"{report.earlier:,} earlier answers of other files, and tell of those, too"
        rest = f" Estimates of all rows follow from these answers and from {follow}."
    elif others:
        # Without the policy nothing is compared.
        follow = "; what is estimated there follows from these answers, and costs no privacy beyond them"
        rest = f" The file's other {others:,} rows have no answer{follow if report.confirmed else ''}."
    else:
        rest = ""
    constants = report.statement.published.public_constants
    if constants:
        rest += f" {constants_words(constants)[0].upper()}{constants_words(constants)[1:]}."
    return f"{told}: {plural(counts.answers, 'answer')}.{rest}"


def _nothing_asked(report: ReleaseReport, counts: Counts) -> str:
    schedule, promise = report.schedule, report.promise
    whose = plural(counts.people, "person", "people")
    told = f"The file has {plural(counts.rows, 'row')} of {whose}, none with an answer. "
    if report.elsewhere is not None and report.in_all:
        return f"{told}It spends nothing; other files and queries of the ledger spend {in_short(report.in_all)} in all."
    if schedule is None or promise is None:
        return told + "Nothing is spent."
    block = _BLOCKS.get(str(promise.per), "in each block") if promise.per is not None else "in all"
    most = "up to " * (schedule.kind == "paced")
    times = "once" if schedule.releases == 1 else f"{counted(schedule.releases)} times"
    step = report.made.model.step
    first = f"step {schedule.at[0]}" if promise.per != "1d" or step is None else clock((schedule.at[0] - 1) * step)
    return (
        f"{told}The plan asks {most}{times} {block}, first at {first}. "
        f"Nothing is spent: 0 of {in_short(promise.exact)}."
    )


def days_words(report: ReleaseReport) -> str:
    """The days of the file: "4 to 6 March 2030"; nothing without times."""
    if report.rows.time is None or not len(report.rows):
        return ""
    first, last = (_date(int(moment) + report.zone) for moment in (report.rows.time.min(), report.rows.time.max()))
    (year, month, day), (other_year, other_month, other_day) = first, last
    if len(report.rows) == 1:
        return f"{day} {month} {year}, {clock(int(report.rows.time[0]) + report.zone)}"
    end = f"{other_day} {other_month} {other_year}"
    if first == last:
        return end
    if (year, month) == (other_year, other_month):
        return f"{day} to {end}"
    return f"{day} {month} to {end}" if year == other_year else f"{day} {month} {year} to {end}"


def _date(seconds: int) -> tuple[int, str, int]:
    """Year, month and day of a time since 1970, however far away."""
    moment = np.datetime64(seconds, "s")
    months = int(moment.astype("datetime64[M]").astype(np.int64))
    day = int(
        (moment.astype("datetime64[D]") - moment.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64)
    )
    return 1970 + months // 12, _MONTHS[months % 12], day + 1


def year_name(seconds: int) -> str:
    """ "2030"."""
    return str(_date(seconds)[0])


def day_name(seconds: int, year: bool = False) -> str:
    """ "4 March", with its ``year`` "4 March 2030"."""
    of, month, day = _date(seconds)
    return f"{day} {month}" + f" {of}" * year


def several_years(report: ReleaseReport) -> bool:
    """Whether the rows lie in more than one year, so that a day and a month alone would be of several days."""
    time = report.rows.time
    return time is not None and len({year_name(int(end) + report.zone) for end in (time.min(), time.max())}) > 1


# -- guaranteed ---------------------------------------------------------------------------------------------------


def which(report: ReleaseReport) -> str:
    """Of which two a reader may be torn: "two places in cells of the model up to 680 m apart on the map"."""
    covered = report.statement.covered_distance
    # Places in one cell have one and the same answer: the guarantee is of more than those.
    if not covered or covered.metres == 0:
        told = joined_words(report.statement)
        return told if _complete(report) and not report.varies_policy else told.removeprefix("any ")
    facts = document(covered)
    words = places_words(facts).removeprefix("any two ")
    return "two " + words.split(" (")[0]


def possible(report: ReleaseReport) -> str:
    """Of which of these a guarantee is, where the model excludes some at a step."""
    return "" if report.all_possible else ", both possible by the model and all earlier answers"


def _complete(report: ReleaseReport) -> bool:
    return report.statement.policy.kind == "complete"


@dataclass(frozen=True)
class Guarantee:
    """The words of the guarantee: the largest figure, a sentence, and the bars of (answers, share, text)."""

    big: str
    words: str
    bars: Sequence[tuple[str, float, str]]
    long_bars: Sequence[tuple[str, float, str]]
    note: str


def guarantee(report: ReleaseReport) -> Guarantee:
    """What one answer, and all of a block, can tell at most."""
    statement, counts = report.statement, counts_of(report)
    (_, one), promise = epsilons_of(statement), report.promise
    sure = sureness(one)
    most = (report.schedule.releases if report.schedule is not None else None) if promise is not None else None
    if promise is not None and most is None:
        most = max(1, int(promise.exact // epsilons_of(statement)[0]))
        most = min(most, counts.most) if promise.per is None or counts.most else most
    short = [("before", 0.5, "50 %"), ("one answer", _share(one), sure)]
    long = [("0 answers", 0.5, _odds("50 %", Fraction(0)))]
    # Of one answer the bound always stands, also where a block has no more.
    several = max(2, 1 + min(3 if report.confirmed else 1, counts.most) if most is None else min(4, most))
    for number in range(1, several):
        total = one * number
        long.append((plural(number, "answer"), _share(total), _odds(sureness(total), total)))
    note = ""
    more = "" if report.in_ledger is None else report.in_ledger.more
    if promise is not None and most is not None and (most > 1 or promise.exact > one):
        every = sureness(promise.exact)
        # Other queries of a person may spend what this one leaves of the promise.
        own = promise.exact == most * one == most * epsilons_of(statement)[0]
        name, whole = (f"{counted(most)} answers", f"all {most}") if own and most > 1 else (ALL, ALL)
        if promise.window is not None:
            name = whole = f"any {promise.window} steps"
        if own and promise.window is None and 1 <= counts.most < most and not report.elsewhere:
            # What the file has is less than what may be asked.
            spent = one * counts.most
            if counts.most > 1:
                short.append((f"{counted(counts.most)} answers", _share(spent), sureness(spent)))
            name = f"the cap, {counted(most)}"
        short.append((name, _share(promise.exact), every))
        long.append((whole, _share(promise.exact), _odds(every, promise.exact)))
        # Of two states of one step it is a bound where the model couples, and for who believes it.
        if promise.window is not None:
            two = f"two paths that differ within {promise.window} steps in a row"
        elif promise.per is None:
            two = "two paths"
        else:
            two = "two ways that differ on one day" if promise.per == "1d" else "two paths that differ in one block"
        note = f"The last bar is of {two}"
        if float(promise.exact) > 5:
            note += ": near certainty"
            if report.found is not None:
                block = "a day" if promise.per == "1d" else "all answers"
                block = block if promise.window is None else "longer times"
                labels = report.found.unit == LABELS_WRONG
                judged = "often a reader is still wrong" if labels else "far off a reader still is"
                note += f". Judge {block} by how {judged}"
        note += "."
    elif not report.confirmed:
        note = (
            "So the statement says. What all answers tell together is not told: give the policy (--policy), without "
            "which nothing confirms it."
        )
    elif promise is None:
        # Of one answer in all it is not known that there is one each day.
        by_day = counts.block == "a day" and counts.answers > 1
        note = f"No limit {'for a day' if by_day else 'for all answers'}: {plural(counts.most, 'answer')}"
        note += " a day" * by_day
        note += " of this file" * bool(more) + f", {'it' if counts.most == 1 else 'each'} allows {sure}"
        if counts.answers == 1 and not more:
            note = f"No limit for further answers: this one allows {sure}"
        note += f"; {more}." if more else "."
    big = f"at most {sure} sure" if sure[0].isdigit() else f"{sure} sure"
    can = "is" if sure[0].isdigit() else "can be"
    only = possible(report)
    pair = f"{which(report)}{only}{',' * bool(only)}"
    words = f"Whoever, by all they know, is torn 50\u00a0:\u00a050 between {pair} {can} {big} {ONE_ANSWER}."
    if statement.private is False:
        big, words = "nothing", f"NOT PRIVATE: {'; '.join(statement.not_private_because)}."
        note = f"But for that: at most {sure} sure {ONE_ANSWER}."
    elif statement.private == "unknown":
        note = f"It is not known whether this holds: {'; '.join(statement.unknown_because or ())}. {note}"
    return Guarantee(big, words, short, long, note)


def _odds(sure: str, epsilon: Fraction) -> str:
    return f"{sure}{ODDS}{factor_words(epsilon)}"


def _share(epsilon: Fraction) -> float:
    return 1 / (1 + math.exp(-min(700.0, float(epsilon))))


def block_words(report: ReleaseReport) -> list[str]:
    """The guarantee over a day, or all answers, in sentences."""
    promise, counts = report.promise, counts_of(report)
    pair = f"{which(report)}{possible(report)}"
    moment = f"about {'where somebody is' if report.on_map else 'the state of somebody'} at one moment"
    if promise is None:
        together = "Nothing bounds what all answers tell together."
        if not report.confirmed:
            together = "What all answers tell together is not told: without the policy nothing confirms it."
        sentence = (
            f"Take {pair}: the answer of a moment changes the odds between them, {moment.replace('one', 'that')}, by "
            f"at most the factor of one answer below{', given all answers before it' * (counts.answers > 1)}. "
        )
        if counts.answers > 1:
            sentence += (
                "Answers of other moments tell of it as well, and may tell more: the factor of several answers is of "
                f"two ways somebody could have spent their time that are, at every moment, equal or {pair}. "
            )
        return [sentence + together]
    # Windows overlap, and by the model answers of other blocks tell of one, too: ways that differ for longer than the
    # cap is of are not bounded by it.
    apart = ""
    if promise.steps is None:
        block = "one day" if promise.per == "1d" else "one block"
        apart = f" that differ within {block if promise.window is None else _in_a_row(promise.window)} only, and"
    told = [
        f"Take any two ways somebody could have spent the whole time{apart} that are, at every moment, equal or "
        f"{pair}. Whatever this file says, the odds between the two change by at most a factor that depends on how "
        "many of the answers fall where the two ways differ."
    ]
    couples = report.statement.sequence and report.statement.sequence.couples is True
    told.append(
        f"So do, by the factor of all answers at most, the odds between {pair}, {moment}, {IF_BELIEVED}."
        if couples and promise.steps is not None
        else f"This compares whole ways. {moment[0].upper()}{moment[1:]} two states of one step can lose more, because "
        "earlier and later answers tell of it as well."
    )
    if report.schedule is not None and counts.most:
        what = "A detour" if report.on_map else "What happens"
        back = ", back in time for the next" if report.on_map else " and is over before the next"
        told.append(f"{what} between two answers{back}: factor 1, nothing is published about it.")
    if promise.window is not None:
        told.append(
            f"Ways that differ for longer lose more: each further {_in_a_row(promise.window)} may add "
            f"{in_short(promise.exact)}. Nothing bounds what all answers tell together."
        )
    if promise.per is not None:
        blocks = max((len(blocks) for _, blocks in report.in_file), default=0)
        # Of a file of one day, too, it must be said what more days would tell.
        number = blocks if blocks > 1 else 7
        days = "days" if promise.per == "1d" else "blocks"
        if blocks > 1:
            first = f"Ways that differ in {counted(number)} {days} lose more"
        else:
            first = f"In a file of more {days}, ways that differ in {counted(number)} of them would lose more"
        most, spent = number * promise.exact, report.in_all
        own = f", of which at most {_grouped(spent)} was spent" * (blocks > 1 and spent < most)
        told.append(f"{first}. Totals add: {number:,} times {in_short(promise.exact)}, which is {_grouped(most)}{own}.")
    return told


def _grouped(total: Fraction) -> str:
    """A sum of epsilons with separators of thousands: "5,976"."""
    whole, point, rest = in_short(total).partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.isdigit() else whole + point + rest


def _in_a_row(steps: int) -> str:
    return f"{steps} steps in a row" if steps > 1 else "one step"


def over_words(promise: SequencePromise) -> str:
    """What the total of a promise is of: "a day", "in all", "in any 4 steps"."""
    if promise.window is not None:
        return f"in any {promise.window} steps" if promise.window > 1 else "in any step"
    if promise.per is None:
        return "in all"
    return {"1d": "a day", "7d": "a week", "1h": "an hour"}.get(str(promise.per), f"per {promise.per}")


def cells_name(report: ReleaseReport) -> str:
    """What the states of a map are called: "cells", "zones"."""
    return "zones" if isinstance(report.space.unmerged, Zones) else "cells"


def set_words(report: ReleaseReport, joined: int) -> str:
    """What the picture of the joined cells says."""
    (_, one) = epsilons_of(report.statement)
    if joined == 1:
        one_cell = cells_name(report)[:-1]
        return (
            f"The policy joins no other {one_cell} to the one in the middle: of how it differs from others nothing is "
            "said."
        )
    cells = cells_name(report)
    told = f"From each of these {cells} every answer is at most {factor_words(one)} times more or less likely "
    told += "than from the one in the middle" + ", where both are possible" * (not report.all_possible) + "."
    covered = report.statement.covered_distance
    if covered and isinstance(covered.metres, float) and covered.metres > 0:
        told += (
            f" Of places in {cells} of the model every pair up to {length(covered.metres)} apart on the map is "
            "covered. Further away the factor grows"
        )
        more = [f"two places {_far(far)} apart on it up to {factor_words(loss)}" for far, loss in report.further]
        told += (": " + ", ".join(more) if more else "") + "."
    return told if report.statement.randomness.secure else f"{told} All of it {REPLAYABLE}."


def _further_words(report: ReleaseReport) -> str:
    """What answers may tell of places beyond what is covered.

    Two ways that are everywhere so far apart at most lose the sum of what each answer loses. Of the
    places of one moment, answers of other moments can tell more.
    """
    (far, loss), counts = report.further[0], counts_of(report)
    told = f"of two places {_far(far)} apart on the map one answer can multiply the odds by {factor_words(loss)}"
    if counts.most < 2:
        return told
    every = f"all {counts.most:,} of {counts.block or 'this file'}"
    return f"{told}; {every}, of two ways so far apart, by {factor_words(counts.most * loss)}"


def _without_gaps(report: ReleaseReport) -> bool:
    """Whether the file has an answer at every step of everybody, from their first to their last."""
    rows = report.rows
    return bool(rows.asked.all()) and all(len(own) > np.ptp(rows.step[own]) for own in rows.by_user.values())


def _far(metres: float) -> str:
    return f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m"


# -- still found, not protected, spent -----------------------------------------------------------------------------


def found_lines(report: ReleaseReport) -> tuple[list[tuple[str, str]], str]:
    """What a reader can still find: (figure, words), and where the figures are from."""
    found = report.found
    if found is None:
        return [], report.prospects.missing
    unit, guess = found.unit, "wrong" if found.unit == LABELS_WRONG else "off"
    if unit == LABELS_WRONG:
        how = "are" if found.measured else "are expected to be"
        told = f"of steps {how} guessed wrong ({_wrong(found.without)} without the file)"
        if len(report.rows) == 1 and not found.measured:
            told = f"expected chance that this step is guessed wrong ({_wrong(found.without)} without the file)"
        lines = [(_wrong(found.error), told)]
    else:
        how = "on average" if found.measured else "expected"
        base = off(found.without, unit)
        told = f"off {how}{found.in_units}, about where somebody is ({base} without the file)"
        lines = [(off(found.error, unit), told)]
    stays = [] if found.stays_known else found.stays
    if found.stays and found.stays_known:
        lines.append(("\u2013", f"{stay_words(unit)}: known without the file"))
    for number, (_, error) in enumerate(stays):
        name = found.after(stays, number, counted)
        figure = _wrong(error) if unit == LABELS_WRONG else off(error, unit)
        there = " there" * (unit != LABELS_WRONG and not re.search(" such | of this file", name))
        told = f"{guess} about {stay_words(unit)}, after {name}" if number == 0 else f"{guess} after {name}{there}"
        ends = number == len(stays) - 1
        told += found.state_found(stays, number, counted)
        base = _wrong(found.stays_without) if unit == LABELS_WRONG else off(found.stays_without, unit)
        lines.append((figure, told + (f" ({base} without)" if ends else "")))
    if found.uncomputed:
        lines.append(("\u2013", f"{stay_words(unit)}: not computed: {found.uncomputed}"))
    more = "" if report.in_ledger is None else report.in_ledger.more
    of_all = f" Of this file; {more}." if more else ""
    return [*lines, *_leaving(report)], _where_from(report, found) + of_all


def _leaving(report: ReleaseReport) -> list[tuple[str, str]]:
    """How well the file tells when somebody left home, beside a guess that is the same for everybody."""
    told = None if report.found is None else report.found.leaving
    if told is None:
        return []
    return [(told.figure, f"off about when somebody left home ({told.beside})")]


def _wrong(share: float) -> str:
    return off(share, LABELS_WRONG).removesuffix(" wrong")


def _where_from(report: ReleaseReport, found: Found) -> str:
    if not report.statement.randomness.secure:
        return f"{_from_whom(report, found)} All of it {REPLAYABLE}."
    return _from_whom(report, found)


def _from_whom(report: ReleaseReport, found: Found) -> str:
    if found.measured and report.truth is not None:
        whom = "simulated" if report.truth.simulated else "real"
        if not found.stays:
            told = f"Measured on the {whom} people; without the file: the guesses best by the model."
            return told + _planned_words(found, f"Of people with rows of {_a_whole(found)}")
        return f"Measured on the {whom} people. Who stays: from public data alone."
    told = f"A reader who believes the model expects this of {report.rows_told}"
    if not report.some_whole:
        first = f"{told}; nobody has rows of {_a_whole(found)}" * report.names_blocks or told
        return f"{first}.{_planned_words(found, 'Of people who have')}"
    who = stay_words(found.unit)
    return f"{told}.{f' {who[0].upper()}{who[1:]}: from public data alone.' * bool(found.stays)}"


def _planned_words(found: Found, whom: str) -> str:
    """What would be found of who stays where a file had whole blocks; empty where nothing is known of it."""
    told = stays_words(found, found.planned)
    if not told:
        return ""
    answers = f", with {found.with_answers}" * bool(found.answers)
    base = "" if math.isnan(found.stays_without) else f" ({off(found.stays_without, found.unit)} without the file)"
    return f" {whom}{answers}, {stay_words(found.unit)} is found to {told}{base}."


def _a_whole(found: Found) -> str:
    return "the whole sequence" if found.what == "sequence" else f"a whole {found.what}"


def stays_words(found: Found, stays: Sequence[tuple[int, float]] | None = None) -> str:
    """ "400 m in one day, 140 m in seven days"; of the file's own blocks, or of these."""
    if found.unit == LABELS_WRONG:
        return ""
    parts = [
        f"{off(error, found.unit)} in {counted(after)} {found.what}{'s' * (after != 1)}"
        for after, error in (found.stays if stays is None else stays)
    ]
    return ", ".join(parts)


def more_answers_words(report: ReleaseReport) -> str:
    """Of how many answers the figures of who stays are, where nobody has so many; "" where somebody has."""
    found = report.found
    if found is None or report.most_answers >= found.answers:
        return ""
    return f", with {found.with_answers}"


def not_protected(report: ReleaseReport) -> list[tuple[str, str, str]]:
    """What is not protected, what that means here, and what helps."""
    found, rows, several = report.found, [], report.most_of_one > 1
    place = "Places one returns to" if report.on_map else "What lasts"
    if report.found is not None and found is not None and stays_words(found):
        who = stay_words(found.unit)
        shorter = "a shorter sequence" if found.what == "sequence" else f"fewer {found.what}s"
        told = f"{who[0].upper()}{who[1:]} is found to {stays_words(found)}{more_answers_words(report)}."
        rows.append((place, told, f"{shorter}, a smaller budget"))
    elif several:
        rows.append((place, "It shows again in every answer, and answers add up.", "fewer answers, a smaller budget"))
    else:
        told = "Another answer about it would add to this one." if report.most_of_one else "Answers about it add up."
        rows.append((place, told, "fewer answers, a smaller budget"))
    if report.on_map:
        told = "The further apart two places are, the more one answer may tell of them."
        if report.further:
            further = _further_words(report)
            told = f"{further[0].upper()}{further[1:]}."
        rows.append(("The part of town", told, "a larger radius"))
    elif not _complete(report):
        rows.append(
            ("States that the policy does not join", "One answer may tell them apart.", "a policy of more edges")
        )
    if report.statement.constraint.name.startswith("delta"):
        told = (
            "A state outside the set is answered as its surrogate, the nearest state inside. Every policy edge among "
            "possible states keeps epsilon: delta does not weaken the guarantee. The answer is less exact."
        )
        rows.append(("Rows outside the delta-set: how exact they are", told, "a smaller delta, or the support"))
    times = (
        "Names, days and times of all rows are public, answered or not."
        if report.rows.time is not None
        else "Names and steps of all rows are public, answered or not."
    )
    if unprotected_fit(report.statement):
        rows.append(
            (
                "Whom the model was fitted on",
                "The model is public, and tells of them.",
                f"a model {'of the map' if report.on_map else 'without data'}, or learned privately",
            )
        )
    if not report.all_possible:
        told = (
            "The guarantee is of states that the model and all earlier answers leave possible at a step. Who is in "
            "another one is answered as if in its surrogate, the nearest possible one, and may be told from those that "
            "the policy joins to the true one."
        )
        rows.append(("Moves that the model calls impossible", told, "a model with a jump, in which all is possible"))
    rows.append(("Being in the file", times, "publish pseudonyms; the same times for all"))
    promise = report.promise
    if promise is not None:
        total = in_short(2 * promise.exact)
        block = f" {_BLOCKS[str(promise.per)]}" if str(promise.per) in _BLOCKS else ""
        block = block if promise.window is None else f" {over_words(promise)}"
        who = "People who travel together" if report.on_map else "People with one path"
        rows.append((who, f"Two people on one path: their budgets add, {total}{block}.", "one budget for a household"))
    return rows


def not_protected_short(report: ReleaseReport) -> list[str]:
    """The same for the first screen."""
    more, several = report.further, report.most_of_one > 1
    first = "A place somebody returns to: the budget starts anew each day, and days add up." if (
        report.promise is not None and report.promise.per == "1d"
    ) else "A place somebody returns to: it shows again in every answer."  # fmt: skip
    if not report.on_map:
        first = "A state that lasts shows again in every answer."
    if not several:
        first = f"{'A place somebody returns to' if report.on_map else 'A state that lasts'}: answers about it add up."
    lines = [first]
    if report.on_map:
        lines.append(
            f"Which part of town: {_further_words(report)}."
            if more
            else "Which part of town: the further apart two places are, the more an answer tells."
        )
    elif not _complete(report):
        lines.append("States that the policy does not join: one answer may tell them apart.")
    if unprotected_fit(report.statement):
        lines.append("Whom the model was fitted on.")
    if not report.all_possible:
        lines.append("Who moves as the model calls impossible: only of possible states anything is guaranteed.")
    lines.append(f"Who is in the file, and {'when' if report.rows.time is not None else 'at which steps'}.")
    return lines


@dataclass(frozen=True)
class Spent:
    """The words of what was spent."""

    big: str
    words: str
    note: str


def spent(report: ReleaseReport) -> Spent:
    """What was spent of what there is, for whom."""
    counts, promise, told = counts_of(report), report.promise, report.spent
    largest = max(report.largest_of.values(), default=Fraction(0))
    in_all = report.in_all
    least, most = epsilons_of(report.statement)
    each = f"epsilon\u00a0{epsilon_words(least)}" if least == most else f"at most epsilon\u00a0{epsilon_words(most)}"
    days = max((len(blocks) for _, blocks in told), default=0)
    most_answers, alike = _most_of(told)
    # Other queries have other epsilons.
    answers = f"{plural(most_answers, 'answer')}" + f" at {each}" * (not report.elsewhere)
    if not report.confirmed:
        whose = "by the statement, which nothing confirms" if report.elsewhere is None else "of the whole ledger"
        big = f"{plural(most_answers, 'answer')}{' a day' * (counts.block == 'a day')}"
        words = f"Epsilon sum {in_short(in_all)} of the person with most answers, {whose}; give --policy."
    elif promise is None:
        once = counts.answers == 1 and not report.elsewhere
        big = f"{plural(most_answers, 'answer')}{' a day' * (counts.block == 'a day' and not once)}, no cap stated"
        each = "" if report.elsewhere else f"Each answer at {each}. "
        most_spent = f"{in_short(in_all)} of the person with most answers"
        words = f"{each}No promise limits their sum, {most_spent}."
    else:
        block = f" {counts.block}" if counts.block.startswith("a") else f" in {counts.block}" * bool(counts.block)
        if promise.window is not None:
            block = f" {over_words(promise)}"
        big = f"{in_short(largest)} of {in_short(promise.exact)}{block}"
        person = "Every person" if counts.people > 1 else "One person"
        daily = ", every day" * (promise.per == "1d" and (days > 1 or counts.people > 1))
        who = f"{person}{daily}" if alike else "Nobody spent more"
        if report.elsewhere is None:
            # What other files and queries have spent it does not tell.
            who = f"By this file {who[0].lower()}{who[1:]}"
        together = f", together {in_short(largest)}" * (alike and most_answers > 1 and not report.elsewhere)
        words = f"{who}: {'' if alike else 'at most '}{answers}{together}."
        if promise.window is not None:
            within = f"{report.most_answers} of them, together {in_short(largest)}, {over_words(promise)}"
            words = f"{who}: {'' if alike else 'at most '}{answers}; at most {within}."
        if days > 1:
            sums = {sum((part for _, _, part in blocks), Fraction(0)) for _, blocks in told}
            over = f"{counted(days)} {'days' if promise.per == '1d' else 'blocks'}: "
            over += f"{'at most ' * (len(sums) > 1)}{in_short(max(sums))}."
            words += f" Over {over}" if report.elsewhere is None else f" In the ledger, over {over}"
        if report.earlier and report.elsewhere is None:
            others = f"{report.earlier:,} earlier answers of other files, about all people"
            words += f" With those of the {others}: at most {in_short(in_all)} for one person."
        elif promise.window is not None:
            words += f" All together: {in_short(in_all)}."
    # The bar names the ledger where it is counted.
    if report.elsewhere is None and promise is not None:
        words += f" {CAP_AS_STATED}"
    return Spent(big, words, model_words(report))


def model_words(report: ReleaseReport) -> str:
    """Whose data the model is made from, and who says so."""
    told = _made_from(report)
    learning = report.statement.learning
    # Nobody gains by saying falsely that something is not private.
    confessed = report.statement.private is False or (learning is not None and not learning.private)
    return told if confessed else f"{told} So the files say; this page cannot check it."


def _made_from(report: ReleaseReport) -> str:
    model, learning = report.statement.model, report.statement.learning
    if learning is not None and not learning.private:
        return "The model was learned with noise that can be replayed: nothing protects those it was learned from."
    if learning is not None:
        return f"The model was learned with differential privacy, at ε\u00a0{learning.epsilon}."
    if report.made.model.provenance.get("method") == "geometry":
        return "No fit on anybody's data: the model is made from the map alone."
    return {
        "others": "The model comes from other people's data and does not protect them.",
        "same": "The model was fitted on these people's own data.",
    }.get(model.people, "Nobody has said whose data the model is made from.")


def spending_groups(report: ReleaseReport) -> list[tuple[str, str, str, str]]:
    """People who spent alike, at most six lines: (who, answers a block, largest block, all)."""
    groups: Counter[tuple[int, Fraction, Fraction]] = Counter()
    for user, blocks in report.spent:
        most = report.answers_of[user]
        groups[most, report.largest_of[user], sum((total for _, _, total in blocks), Fraction(0))] += 1
    n, rows = sum(groups.values()), []
    ordered = sorted(groups.items(), key=lambda item: (-item[1], -item[0][2]))
    # One line of others takes as much room as one of its own.
    shown = 7 if len(ordered) == 7 else 6
    for (most, largest, total), people in ordered[:shown]:
        who = f"all {n:,}, alike" if people == n and n > 1 else f"{people:,} alike" if people > 1 else "1 person"
        rows.append((who, str(most), in_short(largest), in_short(total)))
    if len(ordered) > shown:
        rest = ordered[shown:]
        told = [max(key[at] for key, _ in rest) for at in range(3)]
        rows.append(
            (f"{sum(count for _, count in rest):,} others, at most", str(told[0]), in_short(Fraction(told[1])),
             in_short(Fraction(told[2])))
        )  # fmt: skip
    return rows
