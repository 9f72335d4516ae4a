"""Sensitivity hulls, degrees of protection, protectable graphs.

- how far a release must blur: `sensitivity_hull`, `l1_sensitivity`, `thicken`, `largest_norm`
- who hides among whom: `degree_of_protection`, `exposed_states`
- edges for those who would be exposed: `protectable_graph`, `protect`
- or their nearest state's answer: `merge_lonely`, `lonely_pairs`, `lonely_states`
"""

from dphmm.sensitivity.exact_hull import PolicyDifferences
from dphmm.sensitivity.hull import SensitivityHull, hull_of, l1_sensitivity, largest_norm, sensitivity_hull, thicken
from dphmm.sensitivity.protection import (
    Merged,
    Protection,
    degree_of_protection,
    exposed_states,
    lonely_pairs,
    lonely_states,
    merge_lonely,
    protect,
    protectable_graph,
)

__all__ = [
    "Merged",
    "PolicyDifferences",
    "Protection",
    "SensitivityHull",
    "degree_of_protection",
    "exposed_states",
    "hull_of",
    "l1_sensitivity",
    "largest_norm",
    "lonely_pairs",
    "lonely_states",
    "merge_lonely",
    "protect",
    "protectable_graph",
    "sensitivity_hull",
    "thicken",
]
