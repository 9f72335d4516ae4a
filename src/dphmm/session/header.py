"""The public parameters of a session, as a ledger keeps and compares them.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from dphmm.accounting.ledger import SessionHeader
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
            raise InvalidInput(name, value, f"the {name} of the history, {kept.options.get(name)}")
