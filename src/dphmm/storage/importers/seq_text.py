"""The .seq text of UCI's MSNBC.com Anonymous Web Data."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.states.space import check_names
from dphmm.states.trajectory import Counts, Trajectories, ranks
from dphmm.storage.importers.imported import Imported, ImportReport
from dphmm.storage.inputs import open_bytes


def read_seq(path: Path, named: bool = True) -> Imported:
    """Sequences of a .seq or .seq.gz file; a sequence with anything but category numbers is set aside whole.

    ``named``: the first line has the names of the categories; else it is a sequence like all others.
    """
    import pyarrow as pa

    lines = _lines(path)
    if not lines:
        raise InvalidInput(str(path), "0 sequences", "a line of category names and one line per sequence")
    names = _categories(path, lines[0]) if named else None
    sequences = lines if names is None else lines[1:]
    items = [line.split() for line in sequences]
    most = len(names) if names is not None else np.iinfo(np.int32).max
    good = [all(_is_category(item, most) for item in sequence) for sequence in items]
    kept = [number for number, fine in enumerate(good) if fine]
    if not kept:
        raise InvalidInput(str(path), f"0 sequences that can be read of {len(items)}", "numbers of categories")
    numbers = np.array([int(item) for number in kept for item in items[number]], dtype=np.int64)
    lengths = [len(items[number]) for number in kept]
    owner = np.repeat(np.arange(len(kept), dtype=np.int32), lengths)
    users = tuple(str(number + 1) for number in kept)
    rows = Trajectories(users, owner, step=ranks(owner), state=_labels(numbers, names))
    total = sum(map(len, items))
    lost = Counts({"bad_sequence": total - len(rows)})
    rejected = {
        "row": pa.array([number + 1 for number, fine in enumerate(good) if not fine], pa.int64()),
        "reason": pa.array(["bad_sequence"] * (len(good) - len(kept)), pa.string()),
    }
    return Imported(rows, ImportReport("sequences", 1, total, len(rows), len(users), lost), pa.table(rejected))


def _lines(path: Path) -> list[str]:
    """Lines with something on them that are no comments; what is not ASCII stands for itself in no category."""
    with open_bytes(path) as file:
        text = file.read().decode("ascii", errors="replace")
    lines = io.StringIO(text, newline=None)
    return [line for line in lines if line.strip() and not line.lstrip().startswith("%")]


def _categories(path: Path, line: str) -> tuple[str, ...]:
    """The names on the first line, which must not be somebody's sequence."""
    words = line.split()
    if not line.isascii():
        raise InvalidInput(str(path), "bytes that are not ASCII in its names", "a .seq text")
    if all(word.isdigit() for word in words):
        expected = "names of categories; or names=False for a file of sequences alone"
        raise InvalidInput(str(path), "numbers in its first line", expected)
    return check_names(words, len(words))


def _is_category(item: str, most: int) -> bool:
    # Longer numbers are no categories, and thousands of digits would take long to read.
    return item.isdigit() and len(item) <= 9 and 0 < int(item) <= most


def _labels(numbers: NDArray[np.int64], names: tuple[str, ...] | None) -> NDArray[np.object_]:
    if names is not None:
        return np.array(names, dtype=object)[numbers - 1]
    distinct, inverse = np.unique(numbers, return_inverse=True)
    return np.array([str(number) for number in distinct], dtype=object)[inverse]
