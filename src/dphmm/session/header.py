"""The public parameters of a session, as a ledger keeps and compares them.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from dphmm._checks import written_fraction
from dphmm.accounting.ledger import SessionHeader
from dphmm.accounting.records import in_short
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.session.planner import Planner


def session_header(model: MarkovModel, planner: Planner, subject: str, query: str, origin: str) -> SessionHeader:
    """What the steps of one (subject, query) are released under."""
    options = {
        "model": model.digest,
        "space": planner.space.digest,
        "policy": planner.policy.digest,
        "origin": origin,
        **planner.options.written(),
    }
    return SessionHeader(subject, query, options)


def check_header(own: SessionHeader, kept: SessionHeader) -> None:
    """Raises InvalidInput naming the first parameter in which a history differs."""
    for name, value in own.options.items():
        if kept.options.get(name) != value:
            came, stored = option_words(name, value), option_words(name, kept.options.get(name))
            raise InvalidInput(name, came, f"the {name} of the history, {stored}")


def option_words(name: str, value: str | None) -> str:
    """An option of a header for people: an epsilon as a decimal."""
    try:
        return in_short(written_fraction(str(value))) if name == "epsilon" else str(value)
    except ValueError:
        return str(value)
