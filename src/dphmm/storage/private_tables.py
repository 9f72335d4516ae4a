"""Private tables and edge lists: each row is read by itself, and no public file may be one of them.

How one row is read never depends on another row. Rows with another number of fields than the header are reported by
their place; bytes that are not UTF-8 become signs that are in no public name. A file is refused only for what is
wrong with it as a whole: a missing or repeated column, no header, another format.

An edge list has two people a row, in a table or in SNAP's text: two names, a tab or blanks between them, # before
remarks. Each line of a text is split by itself: at tabs where it has one, else at commas, else at blanks.

`refuse_private` compares files of public side information (states, people, friendships, centroids, symbols) with DATA:
by path (links resolved), by bytes, packed or not, and by rows, in any order, with their cells in any order, in any
format that is read here. It does not notice a part of the rows, one row more or less, names or times written in another
way, and anything else that was computed from DATA: those are the owner's to know.

Files for the data owner alone are written here too: counts that depend on where people are, and rows that could not be
read. What is printed depends on no count. Of a row the file says where it is and why it was left out, never a value.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.accounting.person import key_by
from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.columns import Numbering, as_text, plain_type
from dphmm.storage.csv_files import (
    CSV,
    Encoding,
    TextLayout,
    cells_of_any_length,
    lines_of_rows,
    listed,
    open_quote_in,
    repeated_name,
    unescape,
    unescape_columns,
)
from dphmm.storage.inputs import PathLike, checked_input, file_digest, open_bytes, replacing, steady
from dphmm.storage.layouts import Layout, lines_by_file
from dphmm.storage.tables import (
    SUFFIXES,
    column_list,
    column_names,
    open_parquet,
    read_table,
    read_whole,
    table_format,
    table_kind,
    to_arrow,
)
from dphmm.storage.trajectories import explained
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Replaces bytes that are not UTF-8. A cell with it counts as missing: otherwise the names of two people could become
#: equal, and they would share one cap.
_NO_TEXT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, eq=False, repr=False)
class PrivateRows:
    """n rows of the columns that were asked for, and where they are in the file.

    ``places`` (n,): the line on which each row begins, in a text; its number from 1 in Parquet. ``odd``: the places of
    rows that have another number of fields than there are columns. ``word``: "line" or "row". ``spelling``: by which
    rule names are of one person.
    """

    table: pa.Table
    places: IntArray
    odd: tuple[int, ...]
    word: str
    spelling: str = "same"

    @property
    def n_rows(self) -> int:
        """How many rows the file has, those that cannot be read among them."""
        return len(self.places) + len(self.odd)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable:
    """The table that a query asks about: a file (``path``), or a pandas, polars or Arrow frame.

    Cells of a pandas frame are read one by one, as the text that they print as: the type of such a column follows from
    its cells. The types of an Arrow or a polars column are public, as those of Parquet. ``spelling`` as `PrivateRows`.
    """

    source: Any
    spelling: str = "same"

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", read_whole(self.source))

    @property
    def path(self) -> Path | None:
        """The file, None of a frame."""
        return Path(self.source) if isinstance(self.source, (str, os.PathLike)) else None

    @property
    def name(self) -> str:
        """What messages call it: the name of the file, or "the table"."""
        return "the table" if self.path is None else self.path.name

    def columns(self) -> list[str]:
        """Names of the columns. Raises InvalidInput for what is no table with a header."""
        return column_list(self.source) if self.path is None else private_names(self.source)

    def blank(self, n: int = 0) -> PrivateTable:
        """A table of the same columns and types with ``n`` rows in which nothing stands: no row is read for it."""
        import pyarrow as pa

        if self.path is None and table_kind(self.source) == "pandas":
            return replace(self, source=self.source.iloc[:0].reindex(range(n)))
        names = _columns(self.path or self)
        types = dict.fromkeys(names, pa.string())
        if self.path is None:
            types = {field.name: field.type for field in to_arrow(self.source[:0], names).schema}
        elif self.path.name.lower().endswith(".parquet"):
            with open_parquet(self.path) as opened:
                types = {field.name: field.type for field in opened.schema_arrow}
        return replace(self, source=pa.table({name: pa.nulls(n, kind) for name, kind in types.items()}))

    def read(self, columns: Sequence[str]) -> PrivateRows:
        """The rows of these columns, in a frame numbered from 1. Raises InvalidInput for a column that is missing."""
        if self.path is not None:
            return replace(read_private(self.source, columns), spelling=self.spelling)
        kept = list(dict.fromkeys(columns))
        _check_columns(self.columns(), kept)
        table = _of_pandas(self.source, kept) if table_kind(self.source) == "pandas" else to_arrow(self.source, kept)
        return PrivateRows(table, np.arange(1, len(table) + 1), (), "row", self.spelling)


def private_names(path: PathLike, field: str = "DATA") -> list[str]:
    """Names of the columns, for which no row is looked at. Raises InvalidInput for what is no table with a header."""
    file = checked_input(path, field)
    if table_format(file, field) == ".parquet":
        return column_names(file)
    with open_bytes(file) as opened:
        Encoding(file)(opened.read(4))
    with _records(file) as text:
        header: list[str] = next((record for record in _cells(text) if record), [])
    names = [unescape(name) for name in header]
    if any(_NO_TEXT in name for name in names):
        raise InvalidInput(field, f"{file.name}, whose header is not UTF-8", "encoding UTF-8")
    repeated = repeated_name(names)
    if not names or repeated is not None:
        raise InvalidInput(field, f"{file.name}: {repeated or 'an empty file'}", "a header row of distinct names")
    return names


def read_private(path: PathLike, columns: Sequence[str], field: str = "DATA") -> PrivateRows:
    """The rows of a table; of a CSV file all cells are text.

    Raises InvalidInput as private_names, and for a column that is not there.
    """
    file = checked_input(path, field)
    names = private_names(file, field)
    kept = list(dict.fromkeys(columns))
    _check_columns(names, kept)
    if table_format(file, field) == ".parquet":
        table = read_table(file, columns=kept)
        return PrivateRows(table, np.arange(1, len(table) + 1), (), "row")
    with steady(file):
        return _of_csv(file, names, kept)


def _check_columns(there: Sequence[str], wanted: Sequence[str]) -> None:
    missing = next((name for name in wanted if name not in there), None)
    if missing is not None:
        raise InvalidInput("column", missing, "one of " + listed(there))


def text_rows(
    columns: Sequence[str], cells: Sequence[Sequence[str | None]], places: list[int], odd: list[int]
) -> PrivateRows:
    """Rows of text: ``cells`` are columns of cells."""
    import pyarrow as pa

    table = pa.table([pa.array(column, pa.string()) for column in cells], names=list(columns))
    return PrivateRows(table, np.array(places, dtype=np.int64), tuple(odd), "line")


def _of_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    cells = {name: frame[name].astype(object) for name in columns}
    return pa.table(
        {
            name: pa.array(
                [None if missing else _printed(cell) for cell, missing in zip(column, column.isna(), strict=True)],
                pa.string(),
            )
            for name, column in cells.items()
        }
    )


def _printed(cell: Any) -> str | None:
    """A cell as text: 3 and 3.0 are one, an infinite number is beyond all floats; None for what cannot be printed."""
    if isinstance(cell, (float, np.floating)):
        number = float(cell)
        if math.isinf(number):
            return "1e999" if number > 0 else "-1e999"
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    if isinstance(cell, bytes):
        return None
    try:
        return str(cell).encode().decode()
    except Exception:
        # Whatever one cell raises, the rows of others are read.
        return None


def _of_csv(file: Path, names: list[str], kept: list[str]) -> PrivateRows:
    at = [names.index(name) for name in kept]
    columns: list[list[str | None]] = [[] for _ in kept]
    places: list[int] = []
    odd: list[int] = []
    width, header, begun, line = len(names), True, 0, 0
    with _records(file) as text, cells_of_any_length():
        # A last row of two cells, unless a quote before it is open: then it is in a cell, as the rows of others are.
        end = [","]
        reader = csv.reader(chain(text, (end.pop() for _ in range(1))))
        for record in reader:
            if not end and record == ["", ""]:
                break
            begun, line = line + 1, reader.line_num
            if header and record:
                header = False
            elif len(record) == width:
                places.append(begun)
                for column, number in zip(columns, at, strict=True):
                    cell = record[number]
                    column.append(None if _NO_TEXT in cell else cell)
            elif record:
                odd.append(begun)
        else:
            raise open_quote_in(begun)
    found = text_rows(kept, columns, places, odd)
    return PrivateRows(unescape_columns(found.table), found.places, found.odd, "line")


def _records(file: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_bytes(file), "utf-8-sig", errors="replace", newline="")


def _cells(text: Any) -> Any:
    try:
        yield from csv.reader(text)
    except csv.Error:
        return


TEXT = (".txt", ".txt.gz")


def read_edges(path: PathLike, columns: Sequence[str] | None = None, field: str = "edges") -> pa.Table:
    """An Arrow table of two columns of text, the names of both ends; a table's first two columns if not named.

    Raises InvalidInput, without a name of anybody, for what `read_table` refuses, columns that are not there, and lines
    of a text that are not two names.
    """
    import pyarrow as pa

    file = checked_input(path, field)
    if _is_text(file):
        _check_no_columns(columns)
        with steady(file):
            try:
                rows = _text(file, errors="strict")
            except UnicodeDecodeError:
                raise InvalidInput(field, f"{file.name}, with bytes that are not UTF-8", "encoding UTF-8") from None
        if rows.odd:
            expected = "two names a line, a tab or a blank between them, and # before remarks"
            raise InvalidInput(field, f"{file.name}, with a line that is not two names", expected)
        return rows.table
    chosen = _chosen(column_names(file), columns, file, field)
    table = read_table(file, columns=chosen, text=chosen)
    return pa.table([as_text(table.column(name), name) for name in chosen], names=["a", "b"])


def edge_rows(path: PathLike, columns: Sequence[str] | None = None, field: str = "DATA") -> PrivateRows:
    """The same of a private file: two columns of text, a and b, and the places of rows that cannot be read.

    Raises InvalidInput for what is wrong with the file as a whole.
    """
    import pyarrow as pa

    file = checked_input(path, field)
    if _is_text(file):
        _check_no_columns(columns)
        with steady(file):
            return _text(file, errors="replace")
    chosen = _chosen(private_names(file, field), columns, file, field)
    rows = read_private(file, chosen, field)
    table = pa.table([as_text(rows.table.column(name), name) for name in chosen], names=["a", "b"])
    return PrivateRows(table, rows.places, rows.odd, rows.word)


class Members:
    """The people of a public list, as edges name them: by the keys of their names (`person_key`).

    Of several listed names of one person the first stands for all.
    """

    def __init__(self, names: Sequence[str], spelling: str = "same") -> None:
        self._people = Numbering(key_by(spelling))
        listed = [self._people.number(name) for name in names]
        # Number -1 is the last place.
        self._place = np.full(len(names) + 1, -1, dtype=np.int64)
        self._place[listed[::-1]] = np.arange(len(names))[::-1]
        self._place[-1] = -1

    def __contains__(self, name: str) -> bool:
        return self._people.known(name) >= 0

    def ends(self, edges: pa.Table) -> IntArray:
        """Edges as places (m, 2) in the list, -1 for a missing name and for somebody who is not in it."""
        return np.stack([self._place[self._people.find(edges.column(side), side)] for side in ("a", "b")], axis=1)


def _check_no_columns(columns: Sequence[str] | None) -> None:
    if columns is not None:
        raise InvalidInput("--columns", ",".join(columns), "no columns: this text has none")


def _chosen(names: Sequence[str], columns: Sequence[str] | None, file: Path, field: str) -> list[str]:
    chosen = list(names[:2]) if columns is None else list(columns)
    if len(chosen) != 2 or not set(chosen) <= set(names) or chosen[0] == chosen[1]:
        raise InvalidInput(field, f"{file.name}, with columns {listed(names)}", "two columns, one for each end")
    return chosen


def _text(file: Path, errors: str) -> PrivateRows:
    cells: tuple[list[str], list[str]] = ([], [])
    places: list[int] = []
    odd: list[int] = []
    with io.TextIOWrapper(open_bytes(file), "utf-8-sig", errors=errors) as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith("#") or not line.strip():
                continue
            ends = _ends(line)
            if len(ends) != 2 or not all(ends):
                odd.append(number)
                continue
            places.append(number)
            for column, end in zip(cells, ends, strict=True):
                column.append(end)
    return text_rows(("a", "b"), cells, places, odd)


def _ends(line: str) -> list[str]:
    between = next((sign for sign in ("\t", ",") if sign in line.strip()), None)
    return [end.strip() for end in line.strip().split(between)]


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
    if _is_text(file):
        return ["a", "b"]
    if not file.name.lower().endswith(SUFFIXES):
        raise InvalidInput("path", file.name.lower(), "a table or a text of edges")
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


#: Rows whose cells are hashed together.
_HASHED = 2**16


def keyed_digest(data: PrivateTable, key: bytes) -> str:
    """HMAC-SHA256 (hex) of all rows in their order, columns by name, cells as text: of a CSV and a Parquet file alike.

    Numbers are alike however they are written, and so are an empty cell and a missing one.
    """
    import pyarrow as pa

    edges = data.path is not None and _is_text(data.path)
    names = _columns(data.path) if edges and data.path is not None else sorted(data.columns())
    rows = edge_rows(data.source) if edges else data.read(names)
    cells = pa.table([_plain_cells(rows.table.column(name)) for name in names], names=names)
    digest = hmac.new(key, json.dumps([names, len(cells), len(rows.odd)]).encode(), "sha256")
    for first in range(0, len(cells), _HASHED):
        part = cells.slice(first, _HASHED)
        digest.update(json.dumps([column.to_pylist() for column in part.columns]).encode())
    return digest.hexdigest()


def _plain_cells(column: pa.ChunkedArray) -> pa.Array:
    """The cells as `_plain` has them, each value that occurs once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(plain_type(column).combine_chunks())
    values = pa.array([_plain(value) for value in encoded.dictionary.to_pylist()], pa.large_string())
    return pc.fill_null(values.take(encoded.indices), "")


_MEANING = "counts for the data owner alone: they depend on where people are, and are never to be published"


def owner_path(output: str) -> Path:
    """Where the counts of a release to ``output`` are; of a stream, which has none, they are beside its ledger."""
    return Path(f"{output}.owner.json")


def owner_counts(rows: int, outside: int, releases: int, drifted: int, rejected: Mapping[str, int]) -> dict[str, Any]:
    """The document: of ``rows`` in no state of the model, of new ``releases`` drifted from their plan set."""
    return {
        "meaning": _MEANING,
        "rows": rows,
        "rows_in_no_state": outside,
        "share_in_no_state": outside / rows if rows else None,
        "new_releases": releases,
        "drifted": drifted,
        "share_drifted": drifted / releases if releases else None,
        "rejected": dict(rejected),
    }


def write_counts(path: Path, counts: Mapping[str, Any]) -> None:
    """Write the counts, at once or not at all, readable by their owner only."""
    with replacing(path, private=True) as temporary:
        temporary.write_text(json.dumps(counts, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def rejected_path(output: str) -> Path:
    """Where the rows set aside on the way to ``output`` are listed."""
    return Path(f"{output}.rejected.csv")


def write_rejected(
    path: Path, rejected: Any, source: str, layout: TextLayout | None = None, *, always: bool = False
) -> None:
    """Write (line, reason), of a folder or an archive (file, line, reason), at once or not at all, for the owner only.

    No file where no row was set aside, unless ``always``.

    The line is that of the text file ``source``, as an editor shows it; of a source without lines it is the row.
    ``layout`` says how a text that is not CSV is cut into rows.
    """
    if not len(rejected) and not always:
        # What an earlier run has left there is not about this one.
        path.unlink(missing_ok=True)
        return
    if isinstance(layout, Layout) and "file" in rejected.column_names:
        write_list(path, "file,line", lines_by_file(source, rejected, layout))
        return
    if "file" in rejected.column_names:
        write_list(path, "file,row", (row.values() for row in rejected.to_pylist()))
        return
    word, numbers = _places(source, rejected.column("row").to_pylist(), layout)
    write_list(path, word, zip(numbers, rejected.column("reason").to_pylist(), strict=True))


def write_list(path: Path, word: str, rows: Iterable[Sequence[object]]) -> None:
    """Write (place, reason), at once or not at all, for the owner only; also where there are none.

    ``word``: line or row, or of several files "file,line".
    """
    with replacing(path, private=True) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*word.split(","), "reason"))
        writer.writerows(rows)


def list_rejected(output: str, rejected: Any, source: Path) -> None:
    """The same file, which is also there where no row was set aside: that there is one says nothing."""
    write_rejected(rejected_path(output), rejected, str(source), always=True)


def _places(source: str, rows: list[int], layout: TextLayout | None) -> tuple[str, list[int]]:
    if layout is None and source.lower().endswith((".csv", ".csv.gz")):
        layout = CSV
    return ("row", rows) if layout is None else ("line", lines_of_rows(Path(source), rows, layout))


def by_reason(rejected: Any) -> dict[str, int]:
    """How many rows were set aside for each reason."""
    counted = rejected.column("reason").value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in sorted(counted, key=lambda each: str(each["values"]))}


def in_words(counts: dict[str, int]) -> str:
    """Counts as a line says them: 2 invalid_time, 1 missing_user."""
    return ", ".join(f"{rows} {explained(reason)}" for reason, rows in counts.items())
