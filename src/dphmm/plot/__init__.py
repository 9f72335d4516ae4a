"""Pictures of releases for notebooks: each function draws one chart on a matplotlib Axes and returns it.

- a report (`dphmm.report.read_report`), with the colours, words and figures of the page: `belief`, `day`, `error`,
  `nights`, `sureness`, `budget`, `strip`; a policy's set: `indistinguishable`
- a released table: `release_map`, `error_over_time`, `spent`
- what hides a state: `hull`, `policy`, `degree_of_protection`
- what a budget buys, before it is spent: `ladder`, `nights`, `sureness`; what `dphmm.tune` tried: `trade_off`
- a population: `shares`; what adversaries find: `attacks`

Needs matplotlib (``pip install 'dphmm[plot]'``), which is loaded when the first picture is drawn. ``ax=None`` makes a
new figure. Every line and mark differs in more than its colour. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.plot._bodies import degree_of_protection as degree_of_protection
    from dphmm.plot._bodies import hull as hull
    from dphmm.plot._bodies import policy as policy
    from dphmm.plot._releases import belief as belief
    from dphmm.plot._releases import budget as budget
    from dphmm.plot._releases import day as day
    from dphmm.plot._releases import error as error
    from dphmm.plot._releases import indistinguishable as indistinguishable
    from dphmm.plot._releases import ladder as ladder
    from dphmm.plot._releases import nights as nights
    from dphmm.plot._releases import strip as strip
    from dphmm.plot._releases import sureness as sureness
    from dphmm.plot._tables import attacks as attacks
    from dphmm.plot._tables import error_over_time as error_over_time
    from dphmm.plot._tables import release_map as release_map
    from dphmm.plot._tables import shares as shares
    from dphmm.plot._tables import spent as spent
    from dphmm.plot._tables import trade_off as trade_off

_NAMES = {
    "_bodies": ("degree_of_protection", "hull", "policy"),
    "_releases": ("belief", "budget", "day", "error", "indistinguishable", "ladder", "nights", "strip", "sureness"),
    "_tables": ("attacks", "error_over_time", "release_map", "shares", "spent", "trade_off"),
}
_HOMES = {name: f"dphmm.plot.{module}" for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphmm.plot' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
