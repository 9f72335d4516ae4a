"""Files of public side information: states, people, friendships, centroids, symbols. The private table is none.

A file is refused where it is DATA: by its path (links followed), by its bytes, packed or not, and by its rows, in any
order, with their cells in any order, in any format that is read here. Not noticed, and the owner's to know: a part
of the rows, one row more or less, names or times written in another way, and anything else that was computed from DATA.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path

from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.edges import TEXT, edge_rows
from dphmm.storage.inputs import PathLike, file_digest, open_bytes
from dphmm.storage.private_rows import PrivateRows, PrivateTable, private_names
from dphmm.storage.tables import SUFFIXES


def refuse_private(
    path: PathLike,
    private: PathLike | PrivateTable,
    field: str,
    columns: Sequence[str] | None = None,
    called: str = "DATA",
) -> None:
    """InvalidInput where the public file ``path`` is the table ``private``, or has its rows.

    ``columns``: those of the private file that are asked about; a file that has the rows of these columns alone is
    refused too. ``called``: what the private file is in the message. A file that is missing or cannot be read passes:
    whoever reads it says what is wrong with it.
    """
    expected = f"public information: {called} is private, and so is whatever is made of it"
    file = Path(path)
    data = _path_or_frame(private)
    if not file.is_file() or (isinstance(data, Path) and not data.is_file()):
        return
    if isinstance(data, Path):
        if file.samefile(data):
            raise InvalidInput(field, f"{file.name}, which is {called}", expected)
        if file_digest(file) == file_digest(data) or _unpacked(file) == _unpacked(data):
            raise InvalidInput(field, f"{file.name}, a copy of {called}", expected)
    if any(_same_rows(file, data, chosen) for chosen in (None, columns)):
        raise InvalidInput(field, f"{file.name}, with the rows of {called}", expected)


def _path_or_frame(private: PathLike | PrivateTable) -> Path | PrivateTable:
    table = private if isinstance(private, PrivateTable) else PrivateTable(private)
    return table.path or table


def _same_rows(file: Path, data: Path | PrivateTable, columns: Sequence[str] | None) -> bool:
    try:
        all_columns = _columns(data)
        chosen = all_columns if columns is None else list(columns)
        if len(_columns(file)) != len(chosen):
            return False
        # A text of edges has no header: that of the table it was made from is a row of it.
        headers = _header(file) | _header(data)
        rows = _rows(file, _columns(file)) - headers
        return bool(rows) and rows == _rows(data, chosen) - headers
    except InvalidInput:
        return False


def _columns(file: Path | PrivateTable) -> list[str]:
    """Names of the columns; those of the ends of a text of edges."""
    if isinstance(file, PrivateTable):
        return file.columns()
    name = file.name.lower()
    if name.endswith(TEXT):
        return ["a", "b"]
    if not name.endswith(SUFFIXES):
        raise InvalidInput("path", name, "a table or a text of edges")
    return private_names(file)


def _header(file: Path | PrivateTable) -> set[tuple[str, ...]]:
    """The names of a table's columns as a row; none of a text of edges."""
    return set() if _is_text(file) else {tuple(sorted(map(_plain, _columns(file))))}


def _unpacked(file: Path) -> str:
    """Hex SHA-256 of what the file holds, unpacked where its name ends in .gz; of its bytes where that fails."""
    try:
        with open_bytes(file) as unpacked:
            return hashlib.file_digest(unpacked, "sha256").hexdigest()
    except (DphmmError, OSError, EOFError, zlib.error):
        return file_digest(file)


def _is_text(file: Path | PrivateTable) -> bool:
    return isinstance(file, Path) and file.name.lower().endswith(TEXT)


def _rows(file: Path | PrivateTable, columns: Sequence[str]) -> set[tuple[str, ...]]:
    """The rows as sorted cells."""
    table = file if isinstance(file, PrivateTable) else PrivateTable(file)
    read: PrivateRows = edge_rows(table.source, None) if _is_text(file) else table.read(columns)
    cells = [[_plain(cell) for cell in read.table.column(name).to_pylist()] for name in columns]
    return {tuple(sorted(row)) for row in zip(*cells, strict=True)}


def _plain(cell: object) -> str:
    """A cell as text, numbers alike however they are written."""
    text = "" if cell is None else str(cell).strip()
    try:
        return repr(float(text))
    except ValueError:
        return text
