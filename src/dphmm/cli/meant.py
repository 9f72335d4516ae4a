"""Did you mean: tables of names and units that users try, and the nearest of those that there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

#: Of names of commands and of options what does their work, the first that there is.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "smooth": ("dphmm read OUT --estimates",),
    "estimate": ("dphmm read OUT --estimates",),
    "decode": ("dphmm read OUT --estimates",),
    "population": ("dphmm read OUT --by REGIONS",),
    "leakage": ("dphmm read OUT --event STATES",),
    "audit": ("dphmm verify",),
    "verify-release": ("dphmm check-release",),
    "inspect": ("dphmm plan --details",),
    "tune": ("dphmm plan --target-error",),
    "budget": ("dphmm plan",),
    "ledger": ("dphmm account",),
    "anonymize": ("dphmm release",),
    "anonymise": ("dphmm release",),
    "privatize": ("dphmm release",),
    "stream": ("dphmm release -",),
    "simulate": ("dphmm synthesize",),
    "convert": ("dphmm import",),
    "start": ("dphmm init",),
    "help": ("dphmm -h",),
    "count": ("histogram",),
    "counts": ("histogram",),
    "--eps": ("--epsilon",),
    "--budget": ("--path-epsilon", "--epsilon"),
    "--total": ("--path-epsilon",),
    "--total-epsilon": ("--path-epsilon",),
    "--out": ("--output",),
    "--overwrite": ("--force",),
    "--separator": ("--delimiter",),
    "--sep": ("--delimiter",),
    "--tz": ("--timezone", "--zone"),
    "--time-zone": ("--timezone", "--zone"),
    "--lat": ("--lat-column",),
    "--latitude": ("--lat-column",),
    "--lon": ("--lon-column",),
    "--lng": ("--lon-column",),
    "--longitude": ("--lon-column",),
    "--time": ("--time-column",),
    "--timestamp": ("--time-column",),
    "--state": ("--state-column",),
    "--id-column": ("--user-column",),
    "--person": ("--user-column", "--user"),
    "--box": ("--bbox",),
    "--size": ("--cell", "--grid"),
    "--cell-size": ("--cell", "--grid"),
    "--grid": ("--cell",),
    "--cell": ("--grid",),
    "--speed": ("--max-speed",),
    "--distance": ("--covers",),
    "--day": ("--per",),
    "--region": ("--by",),
    "--regions": ("--by",),
    "--until": ("--to",),
}
#: Other names of units, by the unit that options take. A minute may be "m" where no length is expected.
UNITS: Mapping[str, str] = {
    "s": "sec secs second seconds",
    "min": "mins minute minutes m",
    "h": "hr hrs hour hours hourly",
    "d": "day days daily",
    "m": "metre metres meter meters",
    "km": "kms kilometre kilometres kilometer kilometers",
    "m/s": "mps",
    "km/h": "kmh kmph kph",
}
_AMOUNT = re.compile(r"([0-9]*(?:\.[0-9]+)?) *([a-z/]+)")
#: A unit in an example of what is expected: 340m, 1km/h.
_EXAMPLE = re.compile(r"\b[0-9]+([a-z/]+)")
#: A word of a list: one of a, b or c.
_LISTED = re.compile(r"(?:one of |or |, |^)([A-Za-z][\w:./-]*)(?=,|;| or |$)")
#: Names that are less alike than this are not the same name misspelt.
_ALIKE = 0.65


def meant(name: str, known: Iterable[str]) -> str:
    """The substitute for a name that does not exist, else the nearest of the known ones; "" if none is near.

    Examples
    --------
    >>> meant("--eps", ["--epsilon", "--help"]), meant("gird", ["grid", "matrix"]), meant("--xyz", ["--zone"])
    ('--epsilon', 'grid', '')
    """
    there = list(known)
    others = [other for other in OTHER_NAMES.get(name, ()) if other in there or other.startswith("dphmm ")]
    return (*others, *get_close_matches(name.lower().replace("_", "-"), there, 1, _ALIKE), "")[0]


def said(what: str, name: str, known: Sequence[str], before: str = "") -> str:
    """The message about an unknown command or option, with the name meant, if found; ``before`` a known name."""
    near = meant(name, known)
    return f"no {what} {name}" + (f"; did you mean {before * (near in known)}{near}?" if near else "")


def value_meant(came: str, expected: str) -> str:
    """The valid value nearest to a refused one, by the units or the list of the expected ones; "" if none is near.

    Examples
    --------
    >>> value_meant("1day", "a number of steps, or a time as 1d, 12h or 30min")
    '1d'
    >>> value_meant("pased", "one of planned, staggered, paced"), value_meant("2 miles", "a length such as 340m or 1km")
    ('paced', '')
    """
    typed = came.split(",")[0].strip().strip("'\"").lower()
    units = [unit for unit in _EXAMPLE.findall(expected) if unit in UNITS]
    if (amount := _AMOUNT.fullmatch(typed)) is not None:
        number, written = re.sub("^0+(?=[0-9])", "", amount[1]) or "1", amount[2]
        unit = next((unit for unit in units if written == unit or written in UNITS.get(unit, "").split()), None)
        if unit == "h" and "d" in units and number.isdecimal() and int(number) % 24 == 0:
            number, unit = str(int(number) // 24), "d"
        if unit is not None and float(number) and (number.isdecimal() or unit not in ("s", "min", "h", "d")):
            return f"{number}{unit}" * (f"{number}{unit}" != came)
    if " " in typed or len(typed) < 2 or typed in ("nothing", "none"):
        # A sentence about what came is no value that was typed.
        return ""
    known = {word.lower(): word for word in _LISTED.findall(expected)}
    longer = [word for word in known if len(typed) > 2 and word.startswith(typed)]
    near = longer if len(longer) == 1 else get_close_matches(typed, known, 1, _ALIKE)
    return known[near[0]] * (known[near[0]] != came) if near else ""
