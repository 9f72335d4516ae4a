"""CSV (RFC 4180, UTF-8) with ids that a spreadsheet cannot take for formulas.

Messages and lists of rows say on which lines records begin, as an editor counts them. Names of columns are public in
messages, unless the first row is data instead of a header.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.states.space import LONGEST_NAME
from dphmm.storage.inputs import Legible, Paced, Tapped, open_bytes, steady

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Layout:
    """How a text is split into records. A record with another number of fields than ``fields`` is not counted."""

    delimiter: str = ","
    header: bool = True
    quoted: bool = True
    fields: int | None = None


#: A CSV file with a header.
CSV = Layout()


def lines_of_rows(path: Path, rows: Sequence[int], layout: Layout = CSV) -> list[int]:
    """The lines, from 1, on which rows begin; rows count from 1, after the header."""
    return lines_of_records(path, [row + layout.header for row in rows], layout)


def lines_of_records(path: Path, records: Sequence[int], layout: Layout = CSV) -> list[int]:
    """The lines, from 1, on which records begin; a header is a record, an empty line is none."""
    wanted = set(records)
    found: dict[int, int] = {}
    for record, line in enumerate(_beginnings(path, layout), start=1):
        if record in wanted:
            found[record] = line
        if len(found) == len(wanted):
            break
    return [found.get(record, record) for record in records]


_UNQUOTED: Any = {"quoting": csv.QUOTE_NONE}


def _beginnings(path: Path, layout: Layout) -> Iterator[int]:
    with io.TextIOWrapper(open_bytes(path), "utf-8-sig", errors="replace", newline="") as text:
        records = csv.reader(text, delimiter=layout.delimiter, **({} if layout.quoted else _UNQUOTED))
        before = 0
        try:
            for record in records:
                if record and layout.fields in (None, len(record)):
                    yield before + 1
                before = records.line_num
        except csv.Error:
            # A cell of more than 128 KiB: what comes after it is counted in records.
            return


# A cell of a row rather than a name: nothing, a number; or in it a decimal fraction, a date, a time, many digits.
_DATUM = re.compile(r"\s*([+-]?[0-9]+([eE][+-]?[0-9]+)?)?\s*")
_MEASURED = re.compile(r"[0-9]\.[0-9]{2}|[0-9]:[0-9]{2}|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]|[0-9]{6}")
_LONGEST = 400


def looks_like_data(names: Sequence[str]) -> bool:
    """Whether a first row is a row of data, or holds several rows: then no message may show any of it."""
    return any(
        _DATUM.fullmatch(name) or _MEASURED.search(name) or len(name) > LONGEST_NAME or not name.isprintable()
        for name in names
    )


def listed(names: Sequence[str]) -> str:
    """Names of columns for a message; only their number where they look like a row of data."""
    if looks_like_data(names):
        return f"{len(names)} columns (the first row looks like data: is there a header?)"
    text = ", ".join(names)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(names)} columns)"


def repeated_name(names: Sequence[str]) -> str | None:
    """The words for a repeated name in a message; None without one."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return "two columns of one name" if looks_like_data(names) else f"two columns {name!r}"
        seen.add(name)
    return None


# A text that a spreadsheet would evaluate, with any apostrophes before it.
_FORMULA = r"^'*[=@+\-\t\r]"
_ESCAPED = r"^'('*[=@+\-\t\r])"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FOREIGN = {
    b"PAR1": "Parquet",
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x80\x04": "pickle",
    b"\x80\x05": "pickle",
}
_LONGEST_HEADER = 1 << 20
_ROW_BLOCK = 1 << 24


def csv_header(path: Path, delimiter: str = ",") -> list[str]:
    """Column names of a CSV file. Raises InvalidInput for an empty file, a repeated name, an encoding."""
    names = first_row(path, delimiter)
    repeated = repeated_name(names)
    if repeated is not None:
        raise InvalidInput(str(path), repeated, "distinct column names")
    return names


def first_row(path: Path, delimiter: str = ",") -> list[str]:
    """The cells of the first row, whatever they are and what follows.

    Raises InvalidInput for an empty file and an encoding.
    """
    with open_bytes(path) as file:
        head = file.read(_LONGEST_HEADER)
    rows = csv.reader(io.StringIO(head.decode("utf-8-sig", errors="ignore"), newline=""), delimiter=delimiter)
    try:
        names = next((row for row in rows if row), [])
    except csv.Error:
        names = None
    # Only these lines: a byte further down is about the row that it is in.
    Encoding(path)(b"".join(head.splitlines(keepends=True)[: max(1, rows.line_num)]))
    if names is None:
        raise InvalidInput(str(path), "a header that cannot be read", "column names in the first row")
    if not names:
        raise InvalidInput(str(path), "an empty file (0 rows)", "a header row and rows")
    return names


def csv_names(path: Path, delimiter: str = ",") -> list[str]:
    """Names of the columns as they were before a formula among them was escaped. Raises InvalidInput as csv_header."""
    names = [unescape(name) for name in csv_header(path, delimiter)]
    repeated = repeated_name(names)
    if repeated is not None:
        raise InvalidInput(str(path), repeated, "distinct column names")
    return names


def read_csv(path: Path, columns: Sequence[str] | None, text: Collection[str] | None) -> pa.Table:
    """The table of a CSV file; ``text`` columns (None: all) stay as written, others get the type they look like.

    Raises InvalidInput for ragged rows (with the line of the file), wrong columns and encodings.
    """
    written = dict(zip(csv_names(path), csv_header(path), strict=True))
    names = list(written)
    kept = names if columns is None else list(columns)
    missing = next((name for name in kept if name not in written), None)
    if missing is not None:
        raise InvalidInput("column", missing, "one of " + listed(names))
    literal = [written[name] for name in names if text is None or name in text]
    table = _parse(path, list(written.values()), [written[name] for name in kept], literal)
    return table.rename_columns([name for name in names if name in kept]).select(kept)


def read_headless(path: Path, names: Sequence[str]) -> pa.Table:
    """The table of a CSV file whose first row is a row like all others, with these names for its columns.

    Raises InvalidInput as read_csv.
    """
    return _parse(path, list(names), list(names), [], headless=True)


def _parse(
    path: Path, names: list[str], kept: list[str], literal: list[str], *, threads: bool = True, headless: bool = False
) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append((row.number, row.actual_columns))
        return "error"

    in_order = [name for name in names if name in kept]
    try:
        with open_bytes(path) as file:
            table = arrow_csv.read_csv(
                Tapped(file, Encoding(path)),
                read_options=arrow_csv.ReadOptions(
                    use_threads=threads, block_size=_ROW_BLOCK, column_names=names if headless else None
                ),
                parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=in_order, column_types=dict.fromkeys(literal, pa.string())
                ),
            )
    except pa.ArrowInvalid:
        # Arrow's own message quotes the row, which is private.
        if ragged and threads:
            return _parse(path, names, kept, literal, threads=False, headless=headless)
        if ragged:
            number, came = ragged[0]
            raise ragged_row(path, number, came, len(names)) from None
        raise InvalidInput(str(path), "rows that cannot be read", "CSV with closed quotes") from None
    return unescape_columns(table)


def text_parts(
    file: Path, delimiter: str, written: Mapping[str, str], columns: Sequence[str], ragged: list[int]
) -> Iterator[pa.Table]:
    """Parts of the ``columns`` of a CSV file, whose names are ``written`` so; fills ``ragged`` after the last."""
    names = list(written.values())
    with steady(file):
        rows, lost = 0, list[Any]()
        for part in _cells(file, delimiter, names, [written[name] for name in columns], lost):
            rows += len(part)
            yield unescape_columns(part.rename_columns(list(columns)))
        if lost:
            # Only one thread knows the numbers of the rows.
            lost = []
            for _ in _cells(file, delimiter, names, names[:1], lost, threads=False):
                pass
            if lost[-1].number == rows + len(lost) + 1 and _is_open(lost[-1].text, delimiter):
                raise ragged_row(file, lost[-1].number, lost[-1].actual_columns, len(names), Layout(delimiter))
            ragged += [row.number - 1 for row in lost]


def _cells(
    file: Path, delimiter: str, names: list[str], columns: list[str], lost: list[Any], threads: bool = True
) -> Iterator[pa.Table]:
    """Parts of some columns as text, at least one; rows with another number of cells go to ``lost``."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    def leave_out(row: Any) -> str:
        lost.append(row)
        return "skip"

    try:
        with (
            open_bytes(file) as opened,
            Paced(Legible(opened)) as text,
            arrow_csv.open_csv(
                text,
                read_options=arrow_csv.ReadOptions(use_threads=threads, block_size=_ROW_BLOCK),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=leave_out
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=columns, column_types=dict.fromkeys(names, pa.string())
                ),
            ) as reader,
        ):
            yield reader.schema.empty_table()
            for batch in text.taken(reader):
                yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid:
        # Arrow's own message quotes the row, which is private.
        raise InvalidInput(str(file), "rows that cannot be read", "CSV with closed quotes") from None


def _is_open(text: str, delimiter: str) -> bool:
    """Whether a quote in the last row of a file is never closed, so that the row holds whatever came after it."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def ragged_row(path: Path, record: int, came: int, expected: int, layout: Layout = CSV) -> InvalidInput:
    """The error of a record with too few or too many fields, named by its line; the header is record 1."""
    (line,) = lines_of_records(path, [record], layout)
    return InvalidInput(f"line {line}", f"{came} fields", f"{expected}, as in the header")


class Encoding:
    """Checks every block of a file. Raises InvalidInput, with the line, for bytes that are not UTF-8 text."""

    def __init__(self, path: Path | str) -> None:
        self._name = str(path)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line = 1
        self._begun = False

    def __call__(self, block: bytes) -> None:
        if not self._begun and block:
            self._begun = True
            self._check_start(block)
        try:
            self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            line = self._line + error.object[: error.start].count(b"\n")
            raise InvalidInput(self._name, f"bytes that are not UTF-8 in line {line}", "encoding UTF-8") from None
        nul = block.find(b"\0")
        if nul >= 0:
            line = self._line + block.count(b"\n", 0, nul)
            raise InvalidInput(self._name, f"a NUL in line {line}", "encoding UTF-8 without NUL")
        self._line += block.count(b"\n")

    def _check_start(self, block: bytes) -> None:
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InvalidInput(self._name, "UTF-16", "encoding UTF-8")
        kind = next((name for magic, name in _FOREIGN.items() if block.startswith(magic)), None)
        if kind is not None:
            raise InvalidInput(self._name, f"a {kind} file named as CSV", "CSV text")


def escape_columns(table: pa.Table) -> pa.Table:
    """Text that looks like a formula, names included, gets a leading apostrophe; plain numbers do not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise InvalidInput(name, f"type {column.type}", "a column of text or numbers for CSV; or .parquet")
        if _is_text(column.type):
            looks = pc.match_substring_regex(column, _FORMULA)
            risky = pc.and_(looks, pc.invert(pc.match_substring_regex(column, _NUMBER)))
            if pc.any(risky).as_py():
                column = pc.if_else(risky, _escaped(column), column)
        columns.append(column)
    return pa.table(columns, names=[_escape(name) for name in table.column_names])


def _escaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    mark, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
    return pc.binary_join_element_wise(mark, column, nothing)


def unescape_columns(table: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    for at, column in enumerate(table.columns):
        if _is_text(column.type) and pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
            plain = pc.replace_substring_regex(column, _ESCAPED, r"\1", max_replacements=1)
            table = table.set_column(at, table.column_names[at], plain)
    return table


def _is_text(type_: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _escape(name: str) -> str:
    return "'" + name if name.lstrip("'").startswith(("=", "@", "+", "-", "\t", "\r")) else name


def unescape(name: str) -> str:
    return name[1:] if name.startswith("'") and _escape(name[1:]) != name[1:] else name
