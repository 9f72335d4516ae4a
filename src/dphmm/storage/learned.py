"""What learning a model cost the people it was learned from: from its provenance to sentences and JSON.

Two promises stand side by side. Learning: any two data sets that differ by one person's record give almost the same
model. Releasing: the answers about a person, given the model. ``together`` bounds both, for one person who was in both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dphmm.accounting.composition import Guarantee
from dphmm.accounting.learning import LearningEvent, NotPrivateEvent, event_from, learned, together
from dphmm.accounting.records import shown
from dphmm.errors import InvalidInput
from dphmm.types import Loss

NOT_COVERED = (
    "What was chosen before the fit and is taken to be public: the file's name, states and symbols, step, box, caps, "
    "seeds, and all other options.",
    "More than one person at a time: k people who belong together lose up to k times as much.",
    "Other models learned from the same people: what each of them costs adds up.",
    "Releases made with the model: they have a promise of their own, and its cost adds to this one.",
    "What holds of people in general: a model that is any good tells it, whether or not a person took part.",
)
COSTS = "those of the subject with the largest total in this file; the ledger has everyone's, over all files"
REPLAYABLE = "NOT PRIVATE: the noise can be replayed by whoever knows the seed. For tests and simulations only."


def learning_event(provenance: Mapping[str, Any]) -> LearningEvent | NotPrivateEvent | None:
    """The record of a fit with noise, or of one that says it has no privacy; None where there is none.

    Raises InvalidInput for a record that contradicts itself, or what the provenance says beside it.
    """
    if provenance.get("privacy") is None:
        return None
    event = event_from(provenance["privacy"])
    private = isinstance(event, LearningEvent) and event.secure
    if provenance.get("private") is not private:
        raise InvalidInput("private", provenance.get("private"), f"{private}, as its own record of the fit says")
    return event


def learning_document(event: LearningEvent, sum_cost: Loss | None = None) -> dict[str, Any]:
    """The guarantee of a fit, for JSON; with the sum of one person's costs also what both lose together."""
    guarantee = learned(event)
    document: dict[str, Any] = {
        "private": event.secure,
        "epsilon": shown(guarantee.value),
        "delta": shown(event.delta),
        "neighbours": event.neighbours,
        "max_length": event.max_length,
        "max_sequences": event.max_sequences,
        "meaning": meaning(event),
        "record": record_words(event),
        "not_covered": list(NOT_COVERED),
    }
    if sum_cost is not None:
        document["together"] = _together(event, sum_cost)
    return document


def meaning(event: LearningEvent) -> str:
    """What the epsilon of a fit bounds, and where that is proved."""
    guarantee = learned(event)
    return f"{guarantee.statement} ({guarantee.citation})"


def record_words(event: LearningEvent) -> str:
    """What was kept of a person."""
    longest = f"{event.max_length} step" + ("" if event.max_length == 1 else "s")
    if event.unit == "sequence":
        return f"one sequence, of at most {longest}; whose sequences are whose was not said"
    if event.max_sequences == 1:
        return f"of each person the first sequence, of at most {longest}"
    return f"of each person the first {event.max_sequences} sequences, each of at most {longest}"


def replacing_epsilon(event: LearningEvent) -> str:
    """What the fit loses where a person's record is replaced: this is what adds to the costs of releases."""
    return shown(event.for_replacement().epsilon)


def _together(event: LearningEvent, sum_cost: Loss) -> dict[str, Any]:
    both: Guarantee = together(event, sum_cost)
    return {
        "epsilon": "unbounded" if both.value == math.inf else shown(both.value),
        "delta": shown(event.delta),
        "meaning": f"{both.statement} ({both.citation})",
        "costs": COSTS,
    }
