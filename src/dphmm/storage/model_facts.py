"""Facts about a state space and a model, for people and for JSON."""

from __future__ import annotations

import re
from typing import Any

from dphmm.accounting.event import LearningEvent
from dphmm.markov.model import MarkovModel, absorbing_states, closed_classes
from dphmm.states.space import StateSpace
from dphmm.storage.learned import learning_document, learning_event

# As the remarks list states: (0, 4, 7) or (0, 1, 2, 3, 4, ...).
_NUMBERS = re.compile(r"\([0-9]+(, [0-9]+)*(, \.\.\.)?\)")
_NUMBER = re.compile("[0-9]+")


def space_facts(space: StateSpace) -> dict[str, Any]:
    """What the states are."""
    if space.has_labels:
        told = {"kind": space.kind, "states": space.n_states, "answers": "the names themselves"}
        return {**told, "answer_unit": space.unit, "sha256": space.digest}
    return {
        "kind": space.kind,
        "states": space.n_states,
        "dimension": space.dimension,
        "answer_unit": space.unit,
        "pitch": [float(pitch) for pitch in space.pitch],
        "snapping_error": [float(error) for error in space.snap_error],
        "sha256": space.digest,
    }


def model_facts(model: MarkovModel, source: str = "privacy") -> dict[str, Any]:
    """Where subjects can go, and where the model is from. ``source``: the file that an error names."""
    provenance = model.provenance
    learning = learning_of(model, source)
    if learning is not None:
        del learning["not_covered"]
    return {
        "possible_moves": model.n_transitions,
        "step_seconds": model.step,
        "start": model.start,
        "possible_at_start": int(model.support_at_start.sum()),
        "jump": None if model.jump is None else model.jump.rate,
        "absorbing_states": 0 if model.jump is not None else len(absorbing_states(model.matrix)),
        "closed_classes": 1 if model.jump is not None else int(closed_classes(model.matrix).max()) + 1,
        "method": str(provenance.get("method", "unknown")),
        "private": provenance.get("private"),
        "fitted_on_people": provenance.get("n_users"),
        "moves_impossible_for_others": provenance.get("moves_impossible_for_others") if model.jump is None else 0.0,
        "learning": learning,
        "sha256": model.digest,
        "notes": [by_name(note, model.space) for note in model.notes],
    }


def state_list(model: MarkovModel, space: StateSpace) -> list[dict[str, Any]]:
    """Every state: number, name, answer, on a map latitude and longitude, and whether no move leaves it."""
    absorbing = set() if model.jump is not None else set(absorbing_states(model.matrix).tolist())
    states: list[dict[str, Any]] = [
        {"number": number, "name": name, "answer": answer, "absorbing": number in absorbing}
        for number, (name, answer) in enumerate(zip(space.names, space.own_answers.tolist(), strict=True))
    ]
    places = space.to_latlon(space.own_answers)
    if places is not None:
        for state, lat, lon in zip(states, *(degrees.tolist() for degrees in places), strict=True):
            state |= {"lat": round(lat, 7), "lon": round(lon, 7)}
    return states


def by_name(note: str, space: StateSpace | None) -> str:
    """A remark about states with their names where it has their numbers."""
    if space is None:
        return note
    names = space.names
    return _NUMBERS.sub(lambda found: _NUMBER.sub(lambda number: names[int(number[0])], found[0]), note)


def learning_of(model: MarkovModel, source: str = "privacy") -> dict[str, Any] | None:
    """The guarantee of a model's fit for JSON; None if it was not learned with noise."""
    event = event_of(model, source)
    return None if event is None else learning_document(event)


def event_of(model: MarkovModel, source: str = "privacy") -> LearningEvent | None:
    """The event of a model learned with noise."""
    event = learning_event(model.provenance, source)
    return event if isinstance(event, LearningEvent) else None
