"""Made tables as files: ``table.npz``, whole numbers and one JSON text, no pickles.

Members beside those of every file of arrays (dphmm.storage.models): ``meta`` (JSON: epsilon, the space's SHA-256,
whether answers are names, how the table was made, the SHA-256 of its contents), ``answers`` (n, d), ``edges`` (m, 2),
``prior`` (n,), ``pitch`` and ``origin`` (d,), and ``weights`` (n, n, k): every whole number in k bytes, the highest
first.

Whatever a file says, a table is certified from its numbers when it is read: it keeps ε on its edges, or is refused.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._checks import written_fraction
from dphmm.errors import InvalidInput
from dphmm.mechanisms.answer_table import MadeTable, Making, digits_for, make_known
from dphmm.mechanisms.base import Uncertified
from dphmm.states.lattice import Lattice
from dphmm.storage.models import Arrays, check_members, description, read_arrays, write_arrays

#: Raised whenever an older dphmm could misread a file.
FORMAT = 1
_MEMBERS = ("format", "meta", "answers", "edges", "prior", "pitch", "origin", "weights")
_WHAT = "table"


def save_table(table: MadeTable, path: str | os.PathLike[str]) -> None:
    """Write a made table to ``path``, at once or not at all; equal tables give equal files, byte for byte."""
    if not isinstance(table, MadeTable):
        raise InvalidInput("table", type(table).__name__, "a MadeTable: what dphmm.choose.optimize makes")
    meta = {
        "epsilon": str(table.epsilon),
        "space": table.space_digest,
        "labels": table.of_labels,
        "making": None if table.making is None else asdict(table.making),
        "table": table.digest,
    }
    law = table.law
    size = law.bits // 8 + 1
    numbers = b"".join(weight.to_bytes(size, "big") for row in law.weights.tolist() for weight in row)
    n = len(law.points)
    arrays: Arrays = {
        "answers": law.points.astype("<i8"),
        "edges": table.edges.astype("<i8"),
        "prior": table.prior.astype("<f8"),
        "pitch": table.frame.pitch,
        "origin": table.frame.origin,
        "weights": np.frombuffer(numbers, dtype=np.uint8).reshape(n, n, size),
    }
    write_arrays(Path(path), meta, arrays, FORMAT)


def load_table(path: str | os.PathLike[str]) -> MadeTable:
    """Read a table that `save_table` wrote, and certify it again from its whole numbers.

    A release takes it as ``mechanism``; releases with it are resumed, audited and smoothed once it was read.
    Raises InvalidInput, in one line naming the file: no table, cut short or changed, or one that does not keep its
    epsilon on its edges.
    """
    path = Path(path)
    arrays = read_arrays(path, FORMAT, "save_table", _WHAT)
    check_members(path, arrays, _MEMBERS, _WHAT)
    epsilon, space, labels, making, digest = description(
        path, arrays, ("epsilon", "space", "labels", "making", "table"), _WHAT
    )
    try:
        exact = written_fraction(epsilon)
        table = MadeTable(
            arrays["answers"],
            arrays["edges"],
            exact,
            _numbers(arrays["weights"], digits_for(exact) // 8 + 1),
            space=str(space),
            frame=Lattice(arrays["pitch"], arrays["origin"]),
            prior=arrays["prior"],
            making=None if making is None else _making(making),
            labels=labels is True,
        )
    except Uncertified as error:
        raise InvalidInput(
            str(path), str(error), "a table that keeps its epsilon on its edges: make it again"
        ) from None
    except InvalidInput as error:
        raise InvalidInput(str(path), f"a table with {error}", "a table file as dphmm optimize writes it") from None
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InvalidInput(str(path), "what is no table", "a table file as dphmm optimize writes it") from None
    if table.digest != digest:
        fault = f"contents of another table ({table.digest[:12]})"
        raise InvalidInput(str(path), fault, f"those of table {str(digest)[:12]}: it was changed")
    make_known(table)
    return table


def _numbers(weights: NDArray[Any], size: int) -> NDArray[np.object_]:
    """Whole numbers (n, n) from their bytes (n, n, k)."""
    n = len(weights)
    if weights.dtype != np.uint8 or weights.shape != (n, n, size):
        raise ValueError("weights of another shape")
    content = weights.tobytes()
    flat = [int.from_bytes(content[at : at + size], "big") for at in range(0, n * n * size, size)]
    numbers = np.empty(n * n, dtype=object)
    numbers[:] = flat
    return numbers.reshape(n, n)


def _making(told: Any) -> Making:
    """The figures of a table's making. Raises ValueError or TypeError for another description."""
    cost, bound = float(told["cost"]), float(told["bound"])
    if not (np.isfinite(cost) and np.isfinite(bound) and cost >= 0 and bound >= 0):
        raise ValueError("costs that are none")
    return Making(str(told["loss"]), cost, bound, str(told["method"]))
