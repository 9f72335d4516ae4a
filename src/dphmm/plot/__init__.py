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

from typing import TYPE_CHECKING

from dphmm._lazy import lazy

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

__getattr__, __dir__, __all__ = lazy(__name__)
