"""Private tables and edge lists: each row is read by itself, and no public file may be one of them.

The reading of a row never depends on another row. Rows with another number of fields than the header are reported by
their place; bytes that are not UTF-8 become signs that are in no public name. A file is refused only for what is
wrong with it as a whole: a missing or repeated column, no header, another format.

An edge list has two people a row, in a table or in SNAP's text: two names, a tab or blanks between them, # before
remarks. Each line of a text is split by itself: at tabs where it has one, else at commas, else at blanks.

`refuse_private` compares files of public side information (states, people, friendships, centroids, symbols) with DATA:
by path (links resolved), by bytes, packed or not, and by rows, in any order, with their cells in any order, in any
format that is read here. It does not notice a part of the rows, one row more or less, names or times written in another
way, and anything else that was computed from DATA: those are the owner's to know.

Files for the data owner alone are written here too: counts that depend on where people are, and rows that could not be
read. Messages depend on no count. The file says of a row where it is and why it was left out, never a value.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.accounting.person import key_by
from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.cells import explained
from dphmm.storage.columns import Numbering, as_text, plain_type
from dphmm.storage.csv_files import CSV, TextLayout, chosen_columns, lines_of_rows, listed
from dphmm.storage.inputs import SUBSTITUTE, PathLike, checked_input, file_digest, open_bytes, replacing, steady
from dphmm.storage.tables import Rows, read_rows, read_table, read_whole, table_format
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


#: What a text of edges is named, and what the columns of its ends are called.
TEXT = (".txt", ".txt.gz")
_ENDS = ("a", "b")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateRows:
    """n rows of the columns that were asked for, and where they are in the file.

    ``places`` (n,): the number of each row, from 1; in a text of edges its line. ``odd``: the places of rows that have
    another number of fields than there are columns. ``word``: by what the owner finds them, "line" or "row".
    ``spelling``: by which rule names are of one person. ``text``: the CSV file that has these rows.
    """

    table: pa.Table
    places: IntArray
    odd: tuple[int, ...]
    word: str
    spelling: str = "same"
    text: Path | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows in the file, including those that cannot be read."""
        return len(self.places) + len(self.odd)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable:
    """The table that a query asks about: a file (``path``), or a pandas, polars or Arrow frame.

    Cells of a pandas frame are read one by one, as the text that they print as: the type of such a column follows from
    its cells. The types of an Arrow or a polars column are public, as those of Parquet. ``spelling`` as `PrivateRows`.
    ``edges``: a text of edges is a table, too.
    """

    source: Any
    spelling: str = "same"
    edges: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", read_whole(self.source))

    @property
    def path(self) -> Path | None:
        """The file, None of a frame."""
        return Path(self.source) if isinstance(self.source, (str, os.PathLike)) else None

    @property
    def name(self) -> str:
        """The name of the table in messages: that of the file, or "the table"."""
        return "the table" if self.path is None else self.path.name

    def columns(self) -> list[str]:
        """Names of the columns; for a text of edges a and b. Raises InvalidInput for what is no table with a header."""
        return list(_ENDS if self.is_edges else self._rows().names)

    @property
    def is_edges(self) -> bool:
        """True if it is a text of edges, which has no header."""
        return self.edges and self.path is not None and self.path.name.lower().endswith(TEXT)

    def _rows(self) -> Rows:
        if self.path is not None:
            table_format(checked_input(self.path, "DATA"), "DATA")
        return read_rows(self.source, private=True, field="DATA")

    def blank(self, n: int = 0) -> PrivateTable:
        """A table of the same columns and types with ``n`` rows in which nothing stands: no row is read for it."""
        import pyarrow as pa

        data = replace(self, edges=True)
        names = data.columns()
        types = {} if data.is_edges else data._rows().types
        return replace(self, source=pa.table({name: pa.nulls(n, types.get(name, pa.string())) for name in names}))

    def read(self, columns: Sequence[str]) -> PrivateRows:
        """The rows of these columns. Raises InvalidInput for a column that is missing, and as `columns`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.path is not None and self.is_edges:
            return replace(_edges(checked_input(self.path, "DATA"), SUBSTITUTE), spelling=self.spelling)
        rows = self._rows()
        chosen = chosen_columns(rows.names, list(dict.fromkeys(columns)))
        table = pa.concat_tables(rows.parts(chosen))
        places = np.delete(np.arange(1, len(table) + len(rows.ragged) + 1), np.array(rows.ragged, np.int64) - 1)
        if rows.text is None:
            return PrivateRows(table, places, (), "row", self.spelling)
        # Bytes of another encoding make a cell missing: two people could have one name by them.
        cells = [pc.if_else(pc.match_substring(column, "\x1a"), None, column) for column in table.columns]
        table = pa.table(cells, names=table.column_names)
        return PrivateRows(table, places, tuple(rows.ragged), "line", self.spelling, self.path)


class Members:
    """The people of a public list, as edges name them: by the keys of their names (`person_key`).

    The first of several listed names of one person stands for all.
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


def read_edges(path: PathLike, columns: Sequence[str] | None = None, field: str = "edges") -> pa.Table:
    """An Arrow table of two columns of text, a and b: the names of both ends; a table's first two columns if not named.

    Raises InvalidInput, without a name of anybody, for what `read_table` refuses, columns that are not there, and lines
    of a text that are not two names.
    """
    import pyarrow as pa

    file = checked_input(path, field)
    chosen = _chosen(PrivateTable(file, edges=True), columns, field)
    if chosen is None:
        try:
            rows = _edges(file, "strict")
        except UnicodeDecodeError:
            raise InvalidInput(field, f"{file.name}, with bytes that are not UTF-8", "encoding UTF-8") from None
        if rows.odd:
            expected = "two names a line, a tab or a blank between them, and # before remarks"
            raise InvalidInput(field, f"{file.name}, with a line that is not two names", expected)
        return rows.table
    table = read_table(file, columns=chosen, text=chosen)
    return pa.table([as_text(table.column(name), name) for name in chosen], names=_ENDS)


def edge_rows(data: PrivateTable, columns: Sequence[str] | None = None, field: str = "DATA") -> PrivateRows:
    """The same of a private table: two columns of text, a and b, and the places of rows that cannot be read.

    Raises InvalidInput for what is wrong with it as a whole.
    """
    import pyarrow as pa

    data = replace(data, edges=True)
    chosen = _chosen(data, columns, field)
    rows = data.read(_ENDS if chosen is None else chosen)
    cells = [as_text(column, name) for name, column in zip(rows.table.column_names, rows.table.columns, strict=True)]
    return replace(rows, table=pa.table(cells, names=_ENDS))


def _chosen(data: PrivateTable, columns: Sequence[str] | None, field: str) -> list[str] | None:
    """The columns of both ends; None of a text, which has none."""
    if data.is_edges:
        if columns is not None:
            raise InvalidInput("--columns", ",".join(columns), "no columns: this text has none")
        return None
    names = data.columns()
    chosen = names[:2] if columns is None else list(columns)
    if len(chosen) != 2 or not set(chosen) <= set(names) or chosen[0] == chosen[1]:
        raise InvalidInput(field, f"{data.name}, with columns {listed(names)}", "two columns, one for each end")
    return chosen


def _edges(file: Path, errors: str) -> PrivateRows:
    """The edges of a text, and the lines that are none. Raises UnicodeDecodeError where ``errors`` are strict."""
    import pyarrow as pa

    ends, places, odd = list[list[str]](), list[int](), list[int]()
    with steady(file), io.TextIOWrapper(open_bytes(file), "utf-8-sig", errors=errors) as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith("#") or not line.strip():
                continue
            between = next((sign for sign in ("\t", ",") if sign in line.strip()), None)
            both = [end.strip() for end in line.strip().split(between)]
            if len(both) != len(_ENDS) or not all(both):
                odd.append(number)
                continue
            places.append(number)
            ends.append(both)
    table = pa.table([pa.array([both[side] for both in ends], pa.string()) for side in range(2)], names=_ENDS)
    return PrivateRows(table, np.array(places, dtype=np.int64), tuple(odd), "line")


def refuse_private(
    path: PathLike,
    private: PathLike | PrivateTable,
    field: str,
    columns: Sequence[str] | None = None,
    called: str = "DATA",
) -> None:
    """InvalidInput where the public file ``path`` is the table ``private``, or has its rows.

    ``columns``: those of the private file that are asked about; a file that has the rows of these columns alone is
    refused too. ``called``: the name of the private file in the message. A missing or unreadable file passes:
    its reader says what is wrong with it.
    """
    expected = f"public information: {called} is private, and so is whatever is made of it"
    file = Path(path)
    data = replace(private if isinstance(private, PrivateTable) else PrivateTable(private), edges=True)
    if not file.is_file() or (data.path is not None and not data.path.is_file()):
        return
    if data.path is not None:
        if file.samefile(data.path):
            raise InvalidInput(field, f"{file.name}, which is {called}", expected)
        if file_digest(file) == file_digest(data.path) or _unpacked(file) == _unpacked(data.path):
            raise InvalidInput(field, f"{file.name}, a copy of {called}", expected)
    if any(_same_rows(PrivateTable(file, edges=True), data, chosen) for chosen in (None, columns)):
        raise InvalidInput(field, f"{file.name}, with the rows of {called}", expected)


def _same_rows(public: PrivateTable, data: PrivateTable, columns: Sequence[str] | None) -> bool:
    try:
        chosen = data.columns() if columns is None else list(columns)
        if len(public.columns()) != len(chosen):
            return False
        # A text of edges has no header: that of the table it was made from is a row of it.
        headers = {tuple(sorted(map(_plain, each.columns()))) for each in (public, data) if not each.is_edges}
        rows = _rows(public, public.columns()) - headers
        return bool(rows) and rows == _rows(data, chosen) - headers
    except InvalidInput:
        return False


def _unpacked(file: Path) -> str:
    """Hex SHA-256 of the file's content, unpacked if its name ends in .gz; of its bytes if that fails."""
    try:
        with open_bytes(file) as unpacked:
            return hashlib.file_digest(unpacked, "sha256").hexdigest()
    except (DphmmError, OSError, EOFError, zlib.error):
        return file_digest(file)


def _rows(table: PrivateTable, columns: Sequence[str]) -> set[tuple[str, ...]]:
    """The rows as sorted cells."""
    read = table.read(columns).table
    cells = [[_plain(cell) for cell in read.column(name).to_pylist()] for name in columns]
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
    """HMAC-SHA256 (hex) of all rows in their order, columns by name, cells as text: the same for CSV and Parquet.

    Numbers are alike however they are written, and so are an empty cell and a missing one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    data = replace(data, edges=True)
    names = sorted(data.columns())
    rows = data.read(names)
    columns = []
    for name in names:
        # Each value that occurs, once.
        encoded = pc.dictionary_encode(plain_type(rows.table.column(name)).combine_chunks())
        values = pa.array([_plain(value) for value in encoded.dictionary.to_pylist()], pa.large_string())
        columns.append(pc.fill_null(values.take(encoded.indices), ""))
    cells = pa.table(columns, names=names)
    digest = hmac.new(key, json.dumps([names, len(cells), len(rows.odd)]).encode(), "sha256")
    for first in range(0, len(cells), _HASHED):
        part = cells.slice(first, _HASHED)
        digest.update(json.dumps([column.to_pylist() for column in part.columns]).encode())
    return digest.hexdigest()


_MEANING = "counts for the data owner alone: they depend on where people are, and are never to be published"


def owner_path(output: str) -> Path:
    """The path of the owner's counts for a release to ``output``; those of a stream are beside its ledger."""
    return Path(f"{output}.owner.json")


def owner_counts(rows: int, outside: int, releases: int, drifted: int, rejected: Mapping[str, int]) -> dict[str, Any]:
    """The document: counts of ``rows`` in no state of the model, and of ``releases`` drifted from their plan set."""
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
    """The path of the list of rows that were set aside on the way to ``output``."""
    return Path(f"{output}.rejected.csv")


def write_rejected(
    path: Path, rejected: Any, source: str, layout: TextLayout | None = None, *, always: bool = False
) -> None:
    """Write (line, reason), of several files (file, row, reason), at once or not at all, for the owner only.

    No file where no row was set aside, unless ``always``.

    The line is that of the text file ``source``, as an editor shows it; for a source without lines it is the row.
    ``layout`` says how a text that is not CSV is cut into rows.
    """
    if not len(rejected) and not always:
        # What an earlier run has left there is not about this one.
        path.unlink(missing_ok=True)
        return
    if "file" in rejected.column_names:
        write_list(path, "file,row", (row.values() for row in rejected.to_pylist()))
        return
    if layout is None and source.lower().endswith((".csv", ".csv.gz")):
        layout = CSV
    rows, reasons = rejected.column("row").to_pylist(), rejected.column("reason").to_pylist()
    places = rows if layout is None else lines_of_rows(Path(source), rows, layout)
    write_list(path, "row" if layout is None else "line", zip(places, reasons, strict=True))


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


def in_words(counts: dict[str, int]) -> str:
    """Counts as a line says them: 2 invalid_time, 1 missing_user."""
    return ", ".join(f"{rows} {explained(reason)}" for reason, rows in counts.items())
