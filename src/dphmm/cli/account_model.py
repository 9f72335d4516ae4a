"""What learning a model cost, as dphmm account --model tells it: of a Markov model, hidden or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.cli.console import aligned

if TYPE_CHECKING:
    from dphmm.accounting.learning import LearningEvent, NotPrivateEvent


def model_document(path: str) -> dict[str, Any]:
    """The model's name, whether it was learned with privacy, and the guarantee or why there is none."""
    from dphmm.accounting.learning import LearningEvent, NotPrivateEvent
    from dphmm.storage.learned import learning_document

    provenance, event = _read(path)
    return {
        "model": Path(path).name,
        "private": provenance.get("private"),
        "method": str(provenance.get("method", "unknown")),
        "learning": learning_document(event) if isinstance(event, LearningEvent) else None,
        "not_private_because": event.reason if isinstance(event, NotPrivateEvent) else None,
    }


def model_lines(document: Mapping[str, Any] | None) -> list[str]:
    """The same for people."""
    from dphmm.cli.learned_words import guarantee_rows
    from dphmm.storage.learned import REPLAYABLE

    if document is None:
        return []
    name = f"model {document['model']}"
    learning = document["learning"]
    if learning is not None:
        lines = [f"{name}, learned with noise", *aligned(guarantee_rows(learning, covered=True))]
        return lines if learning["private"] else [*lines, f"warning: {REPLAYABLE}"]
    if document["private"] is False:
        because = document["not_private_because"] or "it was fitted without privacy"
        return [f"{name}: NO PRIVACY: {because}"]
    if document["private"] is True:
        return [f"{name}: says that it was learned with privacy, but no epsilon is recorded"]
    return [f"{name}: given, not learned by dphmm; nothing is known of what it cost anybody"]


def _read(path: str) -> tuple[dict[str, Any], LearningEvent | NotPrivateEvent | None]:
    from dphmm.storage.hidden_models import holds_hidden_model, load_hidden_model
    from dphmm.storage.learned import learning_event
    from dphmm.storage.models import load_model

    if holds_hidden_model(path):
        hidden: Any = load_hidden_model(path)
        return hidden.provenance_, learning_event(hidden.provenance_)
    provenance = load_model(path).provenance
    return provenance, learning_event(provenance)
