"""States: names, answers on a lattice, maps (grids, H3 cells, zones), categories; and trajectories of them."""

from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.lattice import Lattice
from dphmm.states.maps import MapSpace, parse_duration, parse_length, parse_speed
from dphmm.states.space import (
    SPACES,
    Labels,
    StateSpace,
    category_space,
    from_description,
    lattice_answers,
    ordered_labels,
    space_of_names,
)
from dphmm.states.trajectory import Counts, Sequences, Trajectories, Visit
from dphmm.states.zones import Zones

__all__ = [
    "H3",
    "SPACES",
    "Counts",
    "Grid",
    "Labels",
    "Lattice",
    "MapSpace",
    "Sequences",
    "StateSpace",
    "Trajectories",
    "Visit",
    "Zones",
    "category_space",
    "from_description",
    "lattice_answers",
    "ordered_labels",
    "parse_duration",
    "parse_length",
    "parse_speed",
    "space_of_names",
]
