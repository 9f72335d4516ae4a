"""What a fit left on a model, kept as digests: copies, pickles and changes in place can be told from it.

Parameters that a fit learned are no public start of another one, and an event is of the parameters it came with alone.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from dphmm.markov.hidden.starting import ATTRIBUTES

_PLACE = "_last_fit"


def remember(hmm: Any, letters: str) -> None:
    """Note the three attributes as they are now, and which of them the fit has learned."""
    learned = [name for letter, name in ATTRIBUTES.items() if letter in letters]
    hmm.__dict__[_PLACE] = {name: (_digest(getattr(hmm, name)), name in learned) for name in ATTRIBUTES.values()}


def was_fitted(hmm: Any) -> bool:
    """Whether a fit has left anything here."""
    return _PLACE in hmm.__dict__


def is_as_left(hmm: Any, name: str) -> bool:
    """Whether an attribute has the value that the last fit left there."""
    found = hmm.__dict__.get(_PLACE, {}).get(name)
    return found is not None and hasattr(hmm, name) and found[0] == _digest(getattr(hmm, name))


def is_learned(hmm: Any, name: str) -> bool:
    """Whether an attribute has the value that the last fit learned."""
    return is_as_left(hmm, name) and bool(hmm.__dict__[_PLACE][name][1])


def _digest(value: Any) -> str:
    """The same for equal numbers, in whatever they are stored."""
    try:
        dense = value.toarray() if sparse.issparse(value) else np.asarray(value, dtype=np.float64)
        numbers = np.ascontiguousarray(dense, dtype=np.float64)
    except (TypeError, ValueError):
        return "no numbers"
    return hashlib.sha256(repr(numbers.shape).encode() + (numbers + 0.0).tobytes()).hexdigest()
