"""The facts that the sentences of a page are made from, and its names of days, sums and distances.

The sentences are those of ``templates/words.html``. Figures are those of the terminal and of ``--json``: from the
statement and `dphmm.statement.story`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.records import in_short
from dphmm.choose.planning import state_name
from dphmm.report.content import ReleaseReport
from dphmm.statement.sentences import block_words, clock, within

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def grouped(total: Fraction) -> str:
    """A sum of epsilons with separators of thousands: "5,976"."""
    whole, point, rest = in_short(total).partition(".")
    return f"{int(whole):,}{point}{rest}" if whole.isdigit() else whole + point + rest


def over_words(promise: SequencePromise) -> str:
    """The stretch that the total of a promise is over: "a day", "in all", "in any 4 steps"."""
    return "in all" if promise.steps is not None else within(block_words(promise))


def in_a_row(steps: int) -> str:
    """The length of a window: "4 steps in a row"."""
    return f"{steps} steps in a row" if steps > 1 else "one step"


def far(metres: float) -> str:
    """A round distance: "2 km", "500 m"."""
    return f"{metres / 1000:g} km" if metres >= 1000 else f"{metres:g} m"


def cells_name(report: ReleaseReport) -> str:
    """The plural name of the states of a map: "cells", "zones"."""
    return f"{state_name(report.space)}s"


# -- counts and days -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockCounts:
    """The counts of the blocks of a file.

    ``most``: answers in a block of anybody; ``alike``: every block has so many. ``blocks``: of the person with most.
    ``block``: its name, "a day"; empty where none is known. ``regular``: an answer at every step of everybody, from
    their first to their last.
    """

    most: int
    alike: bool
    blocks: int
    block: str
    regular: bool


def counts_of(report: ReleaseReport) -> BlockCounts:
    """The counts of the blocks of the file of a report."""
    rows, promise, schedule = report.rows, report.promise, report.schedule
    block = ""
    if promise is not None and promise.per is not None:
        block = block_words(promise)
    elif promise is None and (schedule is None or not report.confirmed) and rows.time is not None:
        block = "a day"
    regular = bool(rows.asked.all()) and all(len(at) > np.ptp(rows.step[at]) for at in rows.by_user.values())
    counts = [count for _, blocks in report.in_file for _, count, _ in blocks]
    blocks = max((len(blocks) for _, blocks in report.in_file), default=0)
    return BlockCounts(max(counts, default=0), len(set(counts)) <= 1, blocks, block, regular)


def days_words(report: ReleaseReport) -> str:
    """The days of the file: "4 to 6 March 2030"; nothing without times."""
    if report.rows.time is None or not len(report.rows):
        return ""
    first, last = (_date(report.local(int(moment))) for moment in (report.rows.time.min(), report.rows.time.max()))
    (year, month, day), (other_year, other_month, other_day) = first, last
    if len(report.rows) == 1:
        return f"{day} {month} {year}, {clock(report.local(int(report.rows.time[0])))}"
    end = f"{other_day} {other_month} {other_year}"
    if first == last:
        return end
    if (year, month) == (other_year, other_month):
        return f"{day} to {end}"
    return f"{day} {month} to {end}" if year == other_year else f"{day} {month} {year} to {end}"


def _date(seconds: int) -> tuple[int, str, int]:
    """Year, month and day of a time since 1970, however far away."""
    year, month, day = str(np.datetime64(seconds, "s").astype("datetime64[D]")).rsplit("-", 2)
    return int(year), _MONTHS[int(month) - 1], int(day)


def year_name(seconds: int) -> str:
    """ "2030"."""
    return str(_date(seconds)[0])


def day_name(seconds: int, year: bool = False) -> str:
    """ "4 March", with its ``year`` "4 March 2030"."""
    of, month, day = _date(seconds)
    return f"{day} {month}" + f" {of}" * year


def short_day(seconds: int, year: bool) -> str:
    """A day as a small chart has room for it: a month is cut where the year stands as well."""
    day, month, *of = day_name(seconds, year).split()
    return " ".join([day, month[:3] if of else month, *of])


def several_years(report: ReleaseReport) -> bool:
    """True if the rows lie in more than one year, so that a day and a month alone would be of several days."""
    time = report.rows.time
    return time is not None and len({year_name(report.local(int(end))) for end in (time.min(), time.max())}) > 1


# -- spent ---------------------------------------------------------------------------------------------------------


def spending_groups(report: ReleaseReport) -> list[tuple[str, str, str, str]]:
    """People who spent alike, at most six lines: (who, answers a block, largest block, all)."""
    groups = Counter(
        (report.answers_of[user], report.largest_of[user], sum((total for _, _, total in blocks), Fraction(0)))
        for user, blocks in report.spent
    )
    ordered = sorted(groups.items(), key=lambda item: (-item[1], -item[0][2]))
    # One line of others takes as much room as one of its own.
    shown, everybody, rows = 7 if len(ordered) == 7 else 6, sum(groups.values()), list[tuple[str, str, str, str]]()
    for (most, largest, total), people in ordered[:shown]:
        who = f"{people:,} alike" if people < everybody else f"all {people:,}, alike"
        who = who if people > 1 else f"1 {report.called['noun']}"
        rows.append((who, str(most), in_short(largest), in_short(total)))
    if rest := ordered[shown:]:
        answers, *sums = (max(key[at] for key, _ in rest) for at in range(3))
        who = f"{sum(people for _, people in rest):,} others, at most"
        rows.append((who, str(answers), in_short(Fraction(sums[0])), in_short(Fraction(sums[1]))))
    return rows
