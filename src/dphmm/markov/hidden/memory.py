"""What a fit left on a model, kept as digests: copies, pickles and changes in place can be told from it.

Parameters that a fit learned are no public start of another one, and an event is of the parameters it came with alone.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from dphmm.accounting.event import LearningEvent, NotPrivateEvent
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
        dimensions, rows = np.ndim(value), _non_zeros(value)
    except (TypeError, ValueError):
        return "no numbers"
    digest = hashlib.sha256(repr((dimensions, rows.shape)).encode())
    for part in (rows.indptr, rows.indices):
        digest.update(part.astype(np.int64).tobytes())
    digest.update(rows.data.tobytes())
    return digest.hexdigest()


def _non_zeros(value: Any) -> Any:
    """Numbers as the one csr_array that equal numbers have: a large sparse table is never made dense."""
    if not sparse.issparse(value) or value.ndim == 1:
        dense = value.toarray() if sparse.issparse(value) else value
        value = np.atleast_2d(np.asarray(dense, dtype=np.float64))
    rows = sparse.csr_array(value).astype(np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
