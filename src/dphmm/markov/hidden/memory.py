"""What a fit left on a model, kept as digests: copies, pickles and changes in place can be told from it.

Parameters that a fit learned are no public start of another one, and an event is of the parameters it came with alone.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from dphmm.accounting.learning import LearningEvent, NotPrivateEvent
from dphmm.markov.hidden.starting import ATTRIBUTES

Event: TypeAlias = LearningEvent | NotPrivateEvent
CHANGED = "parameters were set by hand after they were learned: nothing bounds what they show"
_PLACE = "_last_fit"


def remember(hmm: Any, letters: str, event: Event | None = None) -> None:
    """Note the three attributes as they are now, which of them the fit has learned, and what that cost."""
    digests = {name: _digest(getattr(hmm, name)) for name in ATTRIBUTES.values()}
    hmm.__dict__[_PLACE] = (digests, [ATTRIBUTES[letter] for letter in letters], event)


def event_of(hmm: Any) -> Event | None:
    """What learning the parameters that are there now cost; None where no fit has said."""
    event: Event | None = hmm.__dict__[_PLACE][2] if was_fitted(hmm) else None
    if event is not None and not all(is_as_left(hmm, name) for name in ATTRIBUTES.values()):
        return NotPrivateEvent(CHANGED)
    return event


def was_fitted(hmm: Any) -> bool:
    """Whether a fit has left anything here."""
    return _PLACE in hmm.__dict__


def is_as_left(hmm: Any, name: str) -> bool:
    """Whether an attribute has the value that the last fit left there."""
    return was_fitted(hmm) and hasattr(hmm, name) and hmm.__dict__[_PLACE][0][name] == _digest(getattr(hmm, name))


def is_learned(hmm: Any, name: str) -> bool:
    """Whether an attribute has the value that the last fit learned."""
    return is_as_left(hmm, name) and name in hmm.__dict__[_PLACE][1]


def _digest(value: Any) -> str:
    """The same for equal numbers, in whatever they are stored."""
    try:
        dense = value.toarray() if sparse.issparse(value) else np.asarray(value, dtype=np.float64)
        numbers = np.ascontiguousarray(dense, dtype=np.float64)
    except (TypeError, ValueError):
        return "no numbers"
    return hashlib.sha256(repr(numbers.shape).encode() + (numbers + 0.0).tobytes()).hexdigest()
