"""The statement beside the answer of a query: what is promised of one record, under which dependence, and what is not.

Everything in it is public: the options, hashes of public inputs, and what the answer's event says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from dphmm.accounting.dependent import DependentEvent
from dphmm.accounting.records import shown

FORMAT = 1
PROOF = "docs/proofs/dependent-markov.md"
_REPLAYABLE = "replayable bits: whoever knows the seed can take the noise away"
_UNPROVED = "nothing is proved for dependent records"
_SAME_MODEL = "the model of dependence was fitted without privacy on these very records"

_NEVER = (
    "Which records there are: who is in the data, when, and how many records there are.",
    "Anything but one record at a time: a record is hidden together with what the named dependence makes follow from "
    "it. Dependence of another kind, or a stronger one, is not covered.",
    "One record from somebody who knows others that it depends on for certain: against them only the loss of replacing "
    "that record alone is bounded.",
    "What several answers about the same records show together: their epsilons do not add up under dependence. Their "
    "losses per record do, and dphmm.dependent.together says what the sum means under a chain or a tree.",
)


def query_statement(
    event: DependentEvent,
    *,
    dependence: Mapping[str, Any],
    domain: Mapping[str, Any],
    not_protected: Sequence[str] = (),
    same_model: bool = False,
) -> dict[str, Any]:
    """The statement of one answer, ready for JSON.

    ``dependence``: how it was given, with hashes of its files. ``domain``: the public options of the question.
    ``same_model``: whether the model of dependence was fitted without privacy on the records asked about.
    """
    reasons = [_REPLAYABLE] * (not event.secure) + [_UNPROVED] * (event.claimed is None) + [_SAME_MODEL] * same_model
    return {
        "format": FORMAT,
        "kind": "query",
        "software": {"name": "dphmm", "version": version("dphmm")},
        "query": event.query,
        "private": not reasons,
        "not_private_because": reasons,
        "unit_of_privacy": f"one record: {event.record}; neighbouring data differ in it and nowhere else",
        "epsilon": None if event.claimed is None else str(event.claimed),
        "promise": event.statement,
        "per_record": {
            "epsilon": shown(event.per_record),
            "meaning": "what replacing one record and no other loses, whatever depends on it; adds up over answers",
        },
        "dependence": {**dependence, "model": event.dependence},
        "mechanism": {"name": event.mechanism, "noise": [_noise(part) for part in event.parts]},
        "proved": {"by": event.why, "where": PROOF},
        "domain": dict(domain),
        "randomness": {"secure": event.secure, "source": "the operating system" if event.secure else "replayable bits"},
        "not_protected": [*_NEVER, *not_protected],
    }


def _noise(part: Any) -> dict[str, str]:
    return {
        "of": part.name,
        "distribution": "discrete Laplace, exactly: P(z) proportional to exp(-|z|/scale) on the integers",
        "sensitivity": shown(part.sensitivity),
        "scale": shown(part.scale),
    }
