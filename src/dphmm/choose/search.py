"""The covered distances, cells, budgets and schedules that reach a target, from the public model alone."""

from __future__ import annotations

import numpy as np

from dphmm.states.space import StateSpace
from dphmm.types import FloatArray

#: Radii that are tried by themselves, in multiples of what lies between neighbouring answers.
MULTIPLES = (1, 2, 4, 8)
_MOST_LOOKED_AT = 4096


def usual_radii(space: StateSpace) -> tuple[float, ...]:
    """Multiples of the typical distance of neighbouring answers, as far as they leave somebody out."""
    from scipy.spatial import cKDTree

    answers = np.unique(space.answers, axis=0)
    if len(answers) < 2 or space.has_labels:
        return ()
    looked_at = answers[:: max(1, len(answers) // _MOST_LOOKED_AT)]
    apart = float(np.median(cKDTree(answers).query(looked_at, k=2)[0][:, 1]))
    return tuple(_rounded_up(k * apart) for k in MULTIPLES if k * apart < _extent(answers))


def _extent(answers: FloatArray) -> float:
    return float(np.linalg.norm(np.ptp(answers, axis=0)))


def _rounded_up(length: float) -> float:
    """Three digits, upwards: a neighbour at exactly the distance stays within."""
    unit = 10.0 ** (np.floor(np.log10(length)) - 2)
    return float(f"{np.ceil(length / unit * (1 - 1e-12)) * unit:.6g}")
