"""The table of a plan: its answers, and the pairs of them that a release must keep, as public data make them.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dphmm.mechanisms import OptimalTable
from dphmm.mechanisms.table_inputs import checked_points
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.states.lattice import Lattice
from dphmm.types import IntArray


def planned_table(
    policy: PolicyGraph, constraint: Constraint, image: IntArray, frame: Lattice, epsilon: Fraction
) -> OptimalTable:
    """The best table for a uniform prior over a plan's answers and mean squared error.

    It keeps ε for every edge of ``policy``, contracted along the surrogates, whose ends have different answers.
    ``image`` (N, d): the lattice answer of every state's surrogate. Raises InvalidInput where it would be too large.
    """
    planned = constraint.plan_states
    points, number = np.unique(image[planned], axis=0, return_inverse=True)
    checked_points(points)
    place = np.full(len(image), -1, dtype=np.int64)
    place[planned] = number.reshape(-1)
    edges = place[policy.edges(constraint)]
    return OptimalTable(points, edges[edges[:, 0] != edges[:, 1]], epsilon, frame=frame)
