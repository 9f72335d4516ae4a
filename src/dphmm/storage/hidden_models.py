"""Hidden Markov models as files: ``hmm.npz``, arrays and one JSON text, no pickles.

Members beside those of every file of arrays (dphmm.storage.models): ``meta`` (JSON: symbols, provenance),
``startprob``, ``emissionprob``, and ``transmat``, or ``indptr``, ``indices`` and ``data`` where the moves are sparse.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dphmm.accounting.event import LearningEvent, NotPrivateEvent, described, learning_event
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.hmm import CategoricalHMM
from dphmm.markov.hidden.parameters import ATTRIBUTES, CHANGED, event_of, is_as_left, remember, was_fitted
from dphmm.states.space import check_names
from dphmm.storage import models
from dphmm.storage.models import Arrays, check_members, compressed_rows, description, read_arrays, write_arrays
from dphmm.types import IntArray

#: Raised whenever an older dphmm could misread a file.
FORMAT = 1
_ROWS = ("indptr", "indices", "data")
WITHOUT_PRIVACY = "fitted without privacy: the model can show one person's sequence"


def save_hidden_model(
    hmm: CategoricalHMM,
    path: str | os.PathLike[str],
    *,
    symbols: Sequence[str] | None = None,
    provenance: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to ``path``: at once or not at all, byte for byte the same for equal models.

    symbols : the meaning of the columns of ``emissionprob_``; by default ``hmm.symbols_`` if a loaded model has them.
    provenance : the origin of the model, kept as JSON. The loss of its learning is added from the model itself.
    """
    if not isinstance(hmm, CategoricalHMM):
        raise InvalidInput("hmm", type(hmm).__name__, "a CategoricalHMM; save_model writes Markov models")
    parameters = hmm.parameters
    names = getattr(hmm, "symbols_", None) if symbols is None else symbols
    arrays: Arrays = {"startprob": parameters.initial, "emissionprob": parameters.emission}
    if parameters.is_sparse:
        moves = parameters.transition
        arrays |= {"indptr": moves.indptr, "indices": moves.indices, "data": moves.data}
    else:
        arrays["transmat"] = parameters.transition
    meta = {
        "symbols": None if names is None else list(check_names(names, parameters.n_symbols)),
        "provenance": _provenance(hmm, provenance),
    }
    write_arrays(Path(path), meta, arrays, FORMAT)


def load_hidden_model(path: str | os.PathLike[str]) -> CategoricalHMM:
    """Read a model written by :func:`save_hidden_model`; it can be used at once.

    Sets ``symbols_`` (names, or None), ``provenance_``, and ``privacy_`` for a model that was learned: the event of a
    private fit, or a NotPrivateEvent. Raises InvalidInput as :func:`load_model` does.
    """
    path = Path(path)
    arrays = read_arrays(path, FORMAT, "save_hidden_model")
    if "emissionprob" not in arrays and "initial" in arrays:
        raise InvalidInput(
            str(path), "a Markov model of observed states", "a hidden Markov model (load_model reads it)"
        )
    check_members(path, arrays, ("format", "meta", "startprob", "emissionprob"))
    symbols, provenance = description(path, arrays, ("symbols", "provenance"))
    if not isinstance(provenance, dict):
        raise InvalidInput(str(path), "a provenance that is none", "a model file")
    event = learning_event(provenance, str(path))
    hmm: Any = _model(path, arrays)
    hmm.symbols_ = None if symbols is None else _names(path, symbols, hmm.emissionprob_.shape[1])
    hmm.provenance_ = provenance
    if isinstance(event, NotPrivateEvent):
        # How many symbols there are may be what the data showed: no public number.
        hmm.n_features = None
    # What was learned must not be taken for public start values of another fit.
    remember(hmm, "".join(ATTRIBUTES), event)
    loaded: CategoricalHMM = hmm
    return loaded


def holds_hidden_model(path: str | os.PathLike[str]) -> bool:
    """True if a file of models holds a hidden model. Raises InvalidInput for a file that is no model."""
    return "emissionprob" in read_arrays(Path(path), models.FORMAT, "save_model")


def learning_of(hmm: CategoricalHMM) -> LearningEvent | NotPrivateEvent | None:
    """The event that records how these very parameters were learned; None if they were not learned."""
    if not was_fitted(hmm):
        return None
    if not all(is_as_left(hmm, name) for name in ATTRIBUTES.values()):
        return NotPrivateEvent(CHANGED)
    known = event_of(hmm)
    if known is None and hasattr(hmm, "monitor_"):
        return NotPrivateEvent(WITHOUT_PRIVACY)
    return known


def _provenance(hmm: CategoricalHMM, given: dict[str, Any] | None) -> dict[str, Any]:
    event = learning_of(hmm)
    record: dict[str, Any] = {"private": None, "privacy": None}
    if event is not None:
        record = {"private": isinstance(event, LearningEvent) and event.secure, "privacy": described(event)}
    whole = {**(given or {}), **record}
    try:
        json.dumps(whole, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput("provenance", str(error), "a dict that JSON can hold") from None
    return whole


def _model(path: Path, arrays: Arrays) -> CategoricalHMM:
    transition = arrays["transmat"] if "transmat" in arrays else _sparse_moves(path, arrays)
    for name, axes in (("startprob", 1), ("emissionprob", 2)):
        if arrays[name].ndim != axes or 0 in arrays[name].shape:
            raise InvalidInput(str(path), f"{name} of shape {arrays[name].shape}", "a model file")
    n, v = arrays["emissionprob"].shape
    hmm: Any = CategoricalHMM(n, n_features=v)
    # Copies: what was read cannot be written to, and belongs to the file's bytes.
    hmm.startprob_, hmm.emissionprob_ = arrays["startprob"].copy(), arrays["emissionprob"].copy()
    hmm.transmat_ = transition if sparse.issparse(transition) else np.array(transition)
    checked = hmm.parameters
    hmm.startprob_, hmm.transmat_, hmm.emissionprob_ = checked.initial, checked.transition, checked.emission
    model: CategoricalHMM = hmm
    return model


def _sparse_moves(path: Path, arrays: Arrays) -> Any:
    check_members(path, arrays, _ROWS)
    indptr, indices, data = (arrays[name] for name in _ROWS)
    # With indices out of place, compiled code would read beyond the arrays.
    if not (indptr.ndim == indices.ndim == data.ndim == 1 and _in_place(indptr, indices, len(data))):
        raise InvalidInput(str(path), "rows that are no sparse matrix", "a model file")
    return compressed_rows(path, arrays)


def _in_place(indptr: IntArray, indices: IntArray, entries: int) -> bool:
    """True if rows follow each other to the last entry, each with columns that exist and increase."""
    if len(indptr) == 0 or indptr.dtype.kind != "i" or indices.dtype.kind != "i" or len(indices) != entries:
        return False
    if indptr[0] != 0 or indptr[-1] != entries or (indptr[:-1] > indptr[1:]).any():
        return False
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    again = (rows[1:] == rows[:-1]) & (indices[1:] <= indices[:-1])
    return not again.any() and bool(((indices >= 0) & (indices < len(indptr) - 1)).all())


def _names(path: Path, symbols: Any, n: int) -> tuple[str, ...]:
    if not isinstance(symbols, list):
        raise InvalidInput(str(path), "symbols that are no names", "a model file")
    return check_names(symbols, n)
