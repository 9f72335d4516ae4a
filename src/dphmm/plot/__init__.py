"""Pictures for notebooks.

- a report (`dphmm.report.read_report`), with the figures of its page: `belief`, `day`, `error`, `nights`, `strip`,
  `people`, `shares`; a policy's set: `indistinguishable`
- counts of moves (`dphmm.query("flows", ...)`): the map `directly_follows`
- the worth of a budget, before it is spent: `ladder`, `nights`; a population: `shares`
- the protection of a state: `hull`, `policy`, `degree_of_protection`; the findings of adversaries: `attacks`

Those of the first three lines are SVG (`dphmm.report.Figure`): a notebook shows them, ``.save("x.svg")`` writes one,
and ``.table`` has its numbers. The others are drawn on a matplotlib Axes, which they return (``pip install
'dphmm[plot]'``; ``ax=None`` makes a new figure). Every line and mark differs in more than its colour.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.plot._bodies import degree_of_protection as degree_of_protection
    from dphmm.plot._bodies import hull as hull
    from dphmm.plot._bodies import policy as policy
    from dphmm.plot._flows import directly_follows as directly_follows
    from dphmm.plot._measured import attacks as attacks
    from dphmm.plot._reports import belief as belief
    from dphmm.plot._reports import day as day
    from dphmm.plot._reports import error as error
    from dphmm.plot._reports import indistinguishable as indistinguishable
    from dphmm.plot._reports import ladder as ladder
    from dphmm.plot._reports import nights as nights
    from dphmm.plot._reports import people as people
    from dphmm.plot._reports import shares as shares
    from dphmm.plot._reports import strip as strip

_NAMES = {
    "_bodies": ("degree_of_protection", "hull", "policy"),
    "_flows": ("directly_follows",),
    "_measured": ("attacks",),
    "_reports": (
        "belief",
        "day",
        "error",
        "indistinguishable",
        "ladder",
        "nights",
        "people",
        "shares",
        "strip",
    ),
}
_HOMES = {name: f"dphmm.plot.{module}" for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphmm.plot' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
