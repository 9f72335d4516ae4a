"""Facts about a state space and a model, for people and for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.states.space import StateSpace


def space_facts(space: StateSpace) -> dict[str, Any]:
    """What the states are."""
    return {
        "kind": space.kind,
        "states": space.n_states,
        "dimension": space.dimension,
        "pitch": [float(pitch) for pitch in space.pitch],
        "snapping_error": [float(error) for error in space.snap_error],
        "sha256": space.digest,
    }


def model_facts(model: MarkovModel) -> dict[str, Any]:
    """Where subjects can go, and where the model is from."""
    from dphmm.markov.notes import absorbing_states, closed_classes

    provenance = model.provenance
    return {
        "possible_moves": model.n_transitions,
        "step_seconds": model.step,
        "start": model.start,
        "possible_at_start": int(model.support_at_start.sum()),
        "absorbing_states": len(absorbing_states(model.transition)),
        "closed_classes": int(closed_classes(model.transition).max()) + 1,
        "method": str(provenance.get("method", "unknown")),
        "private": provenance.get("private"),
        "fitted_on_people": provenance.get("n_users"),
        "sha256": model.digest,
        "notes": list(model.notes),
    }
