"""Policy graphs: the states that must not be told apart.

- `complete`: every two states
- `categorical`: states with one label
- `areas`: all states of an area; areas may overlap
- `radius`: states whose answers lie within a distance
- `knn`: every state and its k nearest others
- `transition`: states that one state can move to
- `from_edges`: given pairs; also `from_adjacency`, `from_networkx`, `from_graphml`, `from_edge_list`, `from_node_link`
- `union`: the edges of several policies; `with_end`: END joined to every label, if it is not (`joins_end`)
- `covered_distance`: up to which distance two places on a map are hidden from each other
- `PolicyGraph`: the questions that every policy answers
- `from_description`: a policy rebuilt from its ``describe``
- `Constraint`: support, plan set and surrogate map of a step; also `DeltaSet`, `Support`, `delta_states`,
  `parse_constraint`
"""

from dphmm.policy._cliques import areas, categorical, complete, transition
from dphmm.policy._edges import (
    from_adjacency,
    from_edge_list,
    from_edges,
    from_graphml,
    from_networkx,
    from_node_link,
    joins_end,
    with_end,
)
from dphmm.policy._radius import covered_distance, knn, radius
from dphmm.policy.constraint import Constraint, DeltaSet, Support, delta_states, parse_constraint
from dphmm.policy.graph import PolicyGraph, from_description, union

__all__ = [
    "Constraint",
    "DeltaSet",
    "PolicyGraph",
    "Support",
    "areas",
    "categorical",
    "complete",
    "covered_distance",
    "delta_states",
    "from_adjacency",
    "from_description",
    "from_edge_list",
    "from_edges",
    "from_graphml",
    "from_networkx",
    "from_node_link",
    "joins_end",
    "knn",
    "parse_constraint",
    "radius",
    "transition",
    "union",
    "with_end",
]
