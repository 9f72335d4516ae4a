"""What learning a model cost, as dphmm account --model tells it: of a Markov model, hidden or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.cli.console import aligned
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.accounting.event import LearningEvent, NotPrivateEvent


#: How the noise was made, beside the parts themselves: public choices that a file keeps.
_CHOICES = ("order", "starts")


def model_document(path: str) -> tuple[dict[str, Any], LearningEvent | None]:
    """The model's name, whether it was learned with privacy, and the guarantee or why there is none; and its event."""
    from dphmm.accounting.event import LearningEvent, NotPrivateEvent
    from dphmm.storage.learned import learning_document, made_without_data, published_parts

    provenance, event = _read(path)
    private = event if isinstance(event, LearningEvent) else None
    document = {
        "model": Path(path).name,
        "private": provenance.get("private"),
        "made_without_data": made_without_data(provenance),
        "method": str(provenance.get("method", "unknown")),
        "learning": None if private is None else learning_document(private),
        "choices": {name: provenance[name] for name in _CHOICES if name in provenance},
        "published": [] if private is None else published_parts(private),
        "not_private_because": event.reason if isinstance(event, NotPrivateEvent) else None,
    }
    return document, private


def model_lines(document: Mapping[str, Any] | None, event: LearningEvent | None) -> list[str]:
    """The same for people."""
    from dphmm.cli.public_warnings import guarantee_rows, published_rows, together_row
    from dphmm.storage.learned import REPLAYABLE, published_words

    if document is None:
        return []
    name = f"model {document['model']}"
    learning = document["learning"]
    if learning is not None and event is not None:
        rows = [
            *guarantee_rows(learning, covered=True),
            *published_rows(published_words(event), document["choices"]),
        ]
        if "together" in learning:
            rows += [together_row(learning["together"]), ("costs", learning["together"]["costs"])]
        lines = [f"{name}, learned with noise", *aligned(rows)]
        return lines if learning["private"] else [*lines, f"warning: {REPLAYABLE}"]
    if document["private"] is False:
        because = document["not_private_because"] or "it was fitted without privacy"
        return [f"{name}: NO PRIVACY: {because}"]
    if document["private"] is True:
        return [f"{name}: says that it was learned with privacy, but no epsilon is recorded"]
    if document["made_without_data"]:
        return [
            f"{name}: made from geometry alone, as its file says; nobody's data is in it, so it cost nobody anything"
        ]
    return [f"{name}: given, not learned by dphmm; nothing is known of what it cost anybody"]


def _read(path: str) -> tuple[dict[str, Any], LearningEvent | NotPrivateEvent | None]:
    from dphmm.cli.outcomes import named
    from dphmm.storage.hidden_models import holds_hidden_model, load_hidden_model
    from dphmm.storage.learned import learning_event
    from dphmm.storage.models import load_model

    if holds_hidden_model(path):
        try:
            hidden: Any = load_hidden_model(path)
        except InvalidInput as error:
            raise named(error, {"privacy": path}) from None
        return hidden.provenance_, learning_event(hidden.provenance_)
    provenance = load_model(path).provenance
    return provenance, learning_event(provenance, path)
