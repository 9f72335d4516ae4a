"""Pictures of releases for notebooks: each function draws one chart on a matplotlib Axes and returns it.

- a report (`dphmm.report.read_report`), with the colours, words and figures of the page: `belief`, `day`, `error`,
  `nights`, `sureness`, `budget`, `strip`; a policy's set: `indistinguishable`
- a released table: `release_map`, `error_over_time`, `spent`
- what hides a state: `hull`, `policy`, `degree_of_protection`
- what a budget buys, before it is spent: `ladder`, `nights`, `sureness`
- queries over dependent records: `scales`

Needs matplotlib (``pip install 'dphmm[plot]'``), which is loaded when the first picture is drawn. ``ax=None`` makes a
new figure. Every line and mark differs in more than its colour.
"""

from dphmm.plot._bodies import degree_of_protection, hull, policy
from dphmm.plot._lines import error_over_time, ladder, scales, spent
from dphmm.plot._maps import release_map
from dphmm.plot._releases import belief, budget, day, error, indistinguishable, nights, strip
from dphmm.plot._releases import sureness_bars as sureness

__all__ = [
    "belief",
    "budget",
    "day",
    "degree_of_protection",
    "error",
    "error_over_time",
    "hull",
    "indistinguishable",
    "ladder",
    "nights",
    "policy",
    "release_map",
    "scales",
    "spent",
    "strip",
    "sureness",
]
