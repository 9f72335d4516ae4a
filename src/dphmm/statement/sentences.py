"""From facts to sentences: Jinja templates, and numbers as people read them.

A guarantee is rounded upwards, a covered distance downwards, an error to the nearest.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache
from inspect import isfunction
from textwrap import wrap
from types import ModuleType
from typing import Any

import jinja2

from dphmm.accounting.event import dependent_words, learned_words, together_words
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.records import in_short
from dphmm.states.space import LABELS_WRONG

#: The names of blocks of a clock.
BLOCKS = {"1d": "a day", "7d": "a week", "1h": "an hour"}
#: The distance of a policy that joins every two cells.
ANY = "any"
#: Characters of a line beside its label: a terminal has 80 columns.
_WIDTH = 64
#: Factors above this are shown as a power of e alone.
_LARGEST_FACTOR = Fraction(13)
#: Factors from here on are shown as a power of ten.
_HUGE, _RAISED = 10**9, str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_KILOMETRES, _METRES, _TENTHS = 10_000.0, 99.5, 10.0
_NO_ERROR, _LEAST_TOLD = 1e-9, 0.001
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
#: An error that may be so much off by chance is told as that.
CHANCE_TOLD = 0.05
#: Phrases that sentences of several parts share.
PHRASES: dict[str, Any] = {
    # Of one state of a step: answers of other steps can tell more of it.
    "OTHER_MOMENTS": "answers of other moments can tell more about that moment",
    # What rests on the model holds for nobody who knows better how somebody moves.
    "IF_BELIEVED": "for a reader who believes the model",
    # What no reader of a file can check: provenance is in no hash.
    "ORIGIN": "only the statement and the model file say where the model came from: no hash confirms it",
    # Of whom all figures are where somebody may know the random words.
    "REPLAYABLE": "for a reader who does not know the random words of the noise: who knows them finds the true states",
}
#: Between a number and its unit.
UNIT_GAP = re.compile(r"(?<=[0-9]) (?=(?:k?m|%)(?![a-z]))")


def rendered(template: str, facts: Mapping[str, Any]) -> list[str]:
    """The sentences of a template, one a line.

    >>> rendered("{{ plural(n, 'row') }} of {{ counted(p) }}", {"n": 1, "p": 3})
    ['1 row of three']
    """
    lines = (line.strip() for line in _template(template).render(facts).split("\n"))
    return [line for line in lines if line]


@cache
def _template(text: str) -> jinja2.Template:
    return _environment().from_string(text)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= PHRASES | functions_of(sys.modules[__name__])
    environment.globals |= {word.__name__: word for word in (dependent_words, learned_words, together_words, in_short)}
    environment.filters["exact"] = lambda told: Fraction(told.removeprefix("about "))
    return environment


def functions_of(module: ModuleType) -> dict[str, Any]:
    """The public functions that a module defines, by name: templates may call all of them."""
    public = {name: value for name, value in vars(module).items() if isfunction(value) and not name.startswith("_")}
    return {name: value for name, value in public.items() if value.__module__ == module.__name__}


def plural(number: int, one: str, more: str | None = None) -> str:
    """ "1 answer", "6 answers", "1,000 people"."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def counted(number: int) -> str:
    """A number as a word up to twelve."""
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else f"{number:,}"


def every_nth(number: int) -> str:
    """ "every second", "every 12th", "every 21st"."""
    if 2 <= number < 2 + len(_ORDINALS):
        return f"every {_ORDINALS[number - 2]}"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"every {number:,}{ending}"


def factor(epsilon: Fraction) -> str:
    """exp(ε), and as a number of three digits, rounded up, where that is not too large: "exp(1) = 2.72"."""
    power = f"exp({in_short(epsilon)})"
    return power if epsilon > _LARGEST_FACTOR else f"{power} = {factor_words(epsilon)}"


def factor_words(epsilon: Fraction) -> str:
    """exp(ε) rounded up: three digits below 1,000, then whole, and a power of ten where there are many digits."""
    if epsilon == 0:
        return "1"
    if epsilon >= math.log(_HUGE):
        return "10" + str(math.ceil(float(epsilon) / math.log(10))).translate(_RAISED)
    exact = Context(prec=30)
    value = exact.exp(exact.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))
    # The quotient and its power are rounded to nearest, by less than this.
    value = exact.next_plus(exact.next_plus(value))
    rounded = Context(prec=3, rounding=ROUND_CEILING).plus(value)
    return f"{rounded:f}" if rounded < 1000 else f"{math.ceil(value):,}"


def length(metres: float) -> str:
    """A distance, rounded down: metres below 10 km, centimetres below 10 m."""
    if metres >= _KILOMETRES:
        return f"{math.floor(metres / 100) / 10:,.1f} km"
    return f"{math.floor(metres):,} m" if metres >= 10 else f"{math.floor(metres * 100) / 100:g} m"


def off(value: float, unit: str) -> str:
    """An error: metres to ten, below 100 to one, below 10 to a tenth; kilometres to one decimal from 10 km on.

    Three digits of other units; for labels, the error rate.
    """
    if unit == LABELS_WRONG:
        share = "less than 1" if 0 < value < 0.005 else "more than 99" if 0.995 < value < 1 else f"{100 * value:.0f}"
        return f"{share} % wrong"
    if unit != "m":
        # Less is rounding of sums.
        digits = f"{value:.3g}" if value >= _LEAST_TOLD else f"less than {_LEAST_TOLD}"
        return digits if value > _NO_ERROR else "0"
    if value < _METRES:
        return f"{value:.1f} m" if _NO_ERROR < round(value, 1) < _TENTHS else f"{value:.0f} m"
    if round(value, -1) >= _KILOMETRES:
        return f"{value / 1000:,.1f} km"
    return f"{round(value, -1):,.0f} m"


def noun_words(noun: str) -> dict[str, str]:
    """The forms of the noun for one and for several subjects of the rows: "person", or a noun of one word.

    >>> noun_words("person")["somebody"], noun_words("animal")["somebody"], noun_words("case")["people"]
    ('somebody', 'an animal', 'cases')
    """
    if noun == "person":
        return {"noun": noun, "people": "people", "somebody": "somebody", "Somebody": "Somebody", "who": "who"}
    article = "an" if noun[0] in "aeiou" else "a"
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        plural = f"{noun[:-1]}ies"
    else:
        plural = f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"
    singular = f"{article} {noun}"
    return {"noun": noun, "people": plural, "somebody": singular, "Somebody": singular.capitalize(), "who": "that"}


def by_chance(chance: float) -> str:
    """The share by which expected errors may be off by chance, in words; "" if it is small."""
    if chance < CHANCE_TOLD:
        return ""
    if chance >= 1:
        return "by chance an error may be many times as large: few people make most of it"
    return f"by chance an error may be {100 * chance:.0f} % off"


def all_words(answers: int | None) -> str:
    """ "both", "all six"; "all" where it is not told how many there are."""
    return "all" if answers is None else "both" if answers == 2 else f"all {counted(answers)}"


def doubt_words(least: int | None) -> str:
    """The doubt that is left (`dphmm.statement.doubt.doubt`): "at least 1 in 9 doubt", "no useful limit"."""
    return "no useful limit" if least is None else f"at least 1 in {least:,} doubt"


def right(wrong: float) -> str:
    """The number of rows in 100 that are named right, for a share of wrong ones; 0 and 100 if no row is in doubt.

    >>> right(0.38), right(0.004), right(0.0)
    ('62', 'more than 99', '100')
    """
    share = 1.0 - wrong
    return "less than 1" if 0 < share < 0.005 else "more than 99" if 0.995 < share < 1 else f"{100 * share:.0f}"


def epsilon_words(epsilon: Fraction) -> str:
    """An epsilon, exactly where that is short: "1.5", "10/3".

    Several of one that is rounded up would pass the total that they are of.
    """
    short = f"{epsilon.numerator}/{epsilon.denominator}"
    rounded = in_short(epsilon)
    return rounded if Fraction(rounded) == epsilon or len(short) > len(rounded) else short


def clock(seconds: int) -> str:
    """ "14:00"."""
    return f"{seconds // 3600 % 24}:{seconds // 60 % 60:02d}"


def lasting(seconds: int) -> str:
    """A length of time: "10 minutes", "1 hour", "5 days"."""
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            return f"{seconds // unit:,} {name}{'s' * (seconds != unit)}"
    return f"{seconds:,} seconds"


def block_words(promise: SequencePromise) -> str:
    """The stretch that the total of a promise is over: "a day", "any 12 steps", "each 24 steps", "100 steps"."""
    if isinstance(promise.per, str):
        return BLOCKS.get(promise.per, f"each {promise.per}")
    if promise.steps is not None:
        return f"{promise.steps:,} steps"
    which, steps = ("each", promise.per) if promise.window is None else ("any", promise.window)
    return f"{which} {steps:,} steps" if steps != 1 else f"{which} step"


def within(block: str) -> str:
    """ "a day", "in any 12 steps"."""
    return block if block.startswith("a") and not block.startswith("any") else f"in {block}"


def wrapped_row(label: str, *sentences: str) -> list[tuple[str, str]]:
    """The lines of sentences for a terminal of 80 columns, the label beside the first; a number stays with its unit."""
    lines = [
        line.replace("\u00a0", " ")
        for sentence in sentences
        for line in wrap(UNIT_GAP.sub("\u00a0", sentence), _WIDTH, break_long_words=False, break_on_hyphens=False)
    ]
    return [(label if number == 0 else " ", line) for number, line in enumerate(lines)]
