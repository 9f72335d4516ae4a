"""Policies worth trying for a model, by name: everyone, the model's own moves, and a few radii."""

from __future__ import annotations

import numpy as np

from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy import complete, radius, transition
from dphmm.policy.graph import PolicyGraph
from dphmm.states.space import StateSpace
from dphmm.types import Exact, FloatArray

#: Radii that are tried by themselves, in multiples of what lies between neighbouring answers.
MULTIPLES = (1, 2, 4, 8)
_MOST_LOOKED_AT = 4096


def candidate_policies(
    model: MarkovModel, space: StateSpace, radii: tuple[Exact, ...] | None = None, unit: str = ""
) -> dict[str, PolicyGraph]:
    """Complete, transition, and a radius policy for each of ``radii`` (answer units; None: a few by themselves).

    Labels have no distances, so no radius policy is among theirs. Of a model with a jump, whose states all move to each
    other, the transition policy would be the complete one.
    Raises InvalidInput for a radius that is not greater than 0.
    """
    tried = usual_radii(space) if radii is None else tuple(exact_number(r, "radius") for r in radii)
    if any(r <= 0 for r in tried):
        raise InvalidInput("radius", str(min(tried)), "a length greater than 0")
    found: dict[str, PolicyGraph] = {"complete": complete(model.n_states)}
    if model.jump is None:
        found["transition"] = transition(model)
    return found | {f"radius {float(r):g}{unit}": radius(space, r) for r in tried}


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
