"""Pictures of releases for notebooks: each function draws on a matplotlib Axes and returns it.

- a release: `release_map`, `error_over_time`, `spent`
- what hides a state: `hull`, `policy`, `degree_of_protection`
- what a budget buys, before it is spent: `ladder`
- queries over dependent records: `scales`

Needs matplotlib (``pip install 'dphmm[plot]'``), which is loaded when the first picture is drawn. ``ax=None`` makes a
new figure. Colours are Okabe and Ito's, and every line and mark differs in more than its colour.
"""

from dphmm.plot._bodies import degree_of_protection, hull, policy
from dphmm.plot._lines import error_over_time, ladder, scales, spent
from dphmm.plot._maps import release_map

__all__ = ["degree_of_protection", "error_over_time", "hull", "ladder", "policy", "release_map", "scales", "spent"]
