"""Models as files: ``model.npz``, arrays and one JSON text, no pickles.

Members beside those of every file of arrays (dphmm.storage.arrays): ``meta`` (JSON: step, start, provenance, the
space's description), ``initial``, ``indptr``, ``indices``, ``data`` and the space's arrays under ``space/``. A model
with a jump has its rate as ``jump`` in ``meta``, and an array ``jump``: where it leads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.jump import Jump
from dphmm.markov.model import MarkovModel
from dphmm.storage.arrays import Arrays, check_members, compressed_rows, description, read_arrays, write_arrays

#: Raised whenever an older dphmm could misread a file: 2 is a model with merged states, 3 one with a jump, others 1.
FORMAT = 3
_MODEL = ("format", "meta", "initial", "indptr", "indices", "data")


def save_model(model: MarkovModel, path: str | os.PathLike[str]) -> None:
    """Write the model to ``path``: at once or not at all, byte for byte the same for equal models."""
    if not isinstance(model, MarkovModel):
        raise InvalidInput("model", type(model).__name__, "a MarkovModel; save_hidden_model writes hidden ones")
    meta: dict[str, Any] = {
        "step": model.step,
        "start": model.start,
        "provenance": model.provenance,
        "space": None,
    }
    transition = model.matrix
    arrays: Arrays = {
        "initial": model.initial,
        "indptr": transition.indptr,
        "indices": transition.indices,
        "data": transition.data,
    }
    if model.space is not None:
        meta["space"], space_arrays = model.space.describe()
        arrays |= {f"space/{name}": np.asarray(array) for name, array in space_arrays.items()}
    number = 2 if model.space is not None and len(model.space.merges) else 1
    if model.jump is not None:
        meta["jump"], arrays["jump"], number = model.jump.rate, model.jump.into, FORMAT
    write_arrays(Path(path), meta, arrays, number)


def load_model(path: str | os.PathLike[str]) -> MarkovModel:
    """Read a model written by :func:`save_model`.

    Raises InvalidInput, in one line naming the file: not a file, not a model, cut short or changed (with the
    hash that was expected), written in a newer format, or a hidden Markov model; and as MarkovModel does.
    """
    path = Path(path)
    arrays = read_arrays(path, FORMAT, "save_model")
    if "emissionprob" in arrays:
        expected = "a Markov model of observed states (load_hidden_model reads hidden ones)"
        raise InvalidInput(str(path), "a hidden Markov model", expected)
    check_members(path, arrays, _MODEL)
    step, start, provenance, described = description(path, arrays, ("step", "start", "provenance", "space"))
    return MarkovModel(
        arrays["initial"],
        compressed_rows(path, arrays),
        space=_space(described, arrays),
        step=step,
        start=start,
        provenance=provenance,
        jump=_jump(path, arrays),
    )


def _jump(path: Path, arrays: Arrays) -> Jump | None:
    if "jump" not in arrays:
        return None
    (rate,) = description(path, arrays, ("jump",))
    return Jump.of(rate, len(arrays["initial"]), arrays["jump"])


def _space(described: Any, arrays: Arrays) -> Any:
    if described is None:
        return None
    if not isinstance(described, dict):
        raise InvalidInput("space", type(described).__name__, "the description of a space")
    from dphmm.states.space import StateSpace

    prefix = "space/"
    return StateSpace.from_description(
        described, {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
    )
