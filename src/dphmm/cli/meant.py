"""Did you mean: one table of names that users try, and the nearest of those that there are."""

from __future__ import annotations

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
