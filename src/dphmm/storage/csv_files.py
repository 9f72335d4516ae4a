"""CSV (RFC 4180, UTF-8) with ids that a spreadsheet cannot take for formulas, and other delimited text.

A `TextLayout` says how a text is split into records; whatever it is, the parser reads UTF-8 CSV that `opened` makes of
it. Messages and lists of rows say on which lines records begin, as an editor counts them. Names of columns are public
in messages, unless the first row is data instead of a header.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Protocol, cast

from dphmm.errors import InvalidInput
from dphmm.states.space import LONGEST_NAME
from dphmm.storage.inputs import Chained, Legible, Paced, Reshaped, Tapped, open_bytes, steady

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TextLayout:
    """How a text is split into records.

    ``names`` are those of the columns where no row has them. ``skip`` lines at the start are left out, and every line
    that begins with ``comment``, whatever is in it. With ``runs`` several delimiters in a row are one, and those at the
    ends of a line are none. ``underlined``: a second line of dashes and blanks alone is left out too.
    """

    delimiter: str = ","
    names: tuple[str, ...] | None = None
    quoted: bool = True
    encoding: str = "utf-8"
    comment: str | None = None
    skip: int = 0
    runs: bool = False
    underlined: bool = False
    #: What a text that is not UTF-8 needs.
    other_encoding: ClassVar[str] = "encoding UTF-8"

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n' or not self.delimiter.isascii():
            raise InvalidInput("delimiter", self.delimiter, "one character, such as ; or a tab")
        if self.names is not None and (not self.names or repeated_name(self.names) is not None):
            raise InvalidInput("names", ",".join(self.names), "distinct names, one per column: lat,lon,occupied,t")
        if self.comment is not None and (not self.comment.strip() or not self.comment.isprintable()):
            raise InvalidInput("comment", self.comment, "what such a line begins with: #")
        if self.skip < 0:
            raise InvalidInput("skip_lines", self.skip, "a number of lines, 0 or more")
        try:
            known = "x".encode(self.encoding).decode(self.encoding) == "x"
        except (LookupError, ValueError):
            known = False
        if not known:
            raise InvalidInput("encoding", self.encoding, "the name of one: utf-8, latin-1, cp1252, utf-16")

    @property
    def header(self) -> bool:
        """Whether the first record has the names of the columns."""
        return self.names is None

    @property
    def is_utf8(self) -> bool:
        """Whether the text is UTF-8."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    @property
    def codec(self) -> str:
        """The codec that reads it: a mark of UTF-8 at the start of a file is no part of its first cell."""
        return "utf-8-sig" if self.is_utf8 else self.encoding

    def cleaned(self, line: str) -> str:
        """A line as the parser has it: nothing but its end where it is no record."""
        body = line.rstrip("\r\n")
        if self.comment is not None and body.startswith(self.comment):
            return line[len(body) :]
        if not self.runs:
            return line
        between = "[ \t]" if self.delimiter == " " else re.escape(self.delimiter)
        cells = [cell.strip(" ") for cell in re.split(between, body)]
        return self.delimiter.join(filter(None, cells)) + line[len(body) :]

    def leaves_out(self, number: int, line: bytes) -> bool:
        """Whether a line, from 0, is one of those at the start that are no records."""
        return number < self.skip or (
            self.underlined and number == self.skip + 1 and _UNDERLINE.fullmatch(line) is not None
        )


class Opening(Protocol):
    """A text by its name, which can be read from its start again and again: a file, or a member of an archive."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def open_bytes(self) -> IO[bytes]:
        """Its bytes, unpacked."""
        ...


@dataclass(frozen=True)
class TextFile:
    """A text file, perhaps packed by gzip."""

    path: Path

    @property
    def name(self) -> str:
        """Its path."""
        return str(self.path)

    def open_bytes(self) -> IO[bytes]:
        """Its bytes, unpacked."""
        return open_bytes(self.path)


@dataclass(frozen=True)
class TextMember:
    """A text in memory: a member of an archive, a file of a folder."""

    name: str
    data: bytes

    def open_bytes(self) -> IO[bytes]:
        """Its bytes."""
        return io.BytesIO(self.data)


@contextmanager
def opened(text: Opening, layout: TextLayout) -> Iterator[io.RawIOBase]:
    """The text as UTF-8 with one delimiter between cells and nothing but records: what the parser reads.

    Bytes that are none of the encoding become U+001A, which no name, number or time has.
    """
    with text.open_bytes() as file:
        legible: io.RawIOBase = Legible(file, layout.codec)
        if layout.skip or layout.underlined or layout.comment is not None or layout.runs:
            legible = Reshaped(cast("IO[bytes]", legible), _cleaning(layout))
        yield legible


def _cleaning(layout: TextLayout) -> Callable[[bytes], bytes]:
    """A function of whole lines, in order, that makes of them what `TextLayout.cleaned` makes of each."""
    delimiter = layout.delimiter.encode()
    comment = b"" if layout.comment is None else re.escape(layout.comment.encode())
    comments = re.compile(_LINE_START + comment + b"[^\r\n]*")
    blanks = b"[ " + (b"\t" if delimiter == b" " else re.escape(delimiter)) + b"]"
    runs = re.compile(blanks + b"+" if delimiter == b" " else b" *" + re.escape(delimiter) + blanks + b"*")
    ends = re.compile(blanks + rb"+(?=[\r\n]|\Z)|" + _LINE_START + blanks + b"+")
    number = 0

    def clean(lines: bytes) -> bytes:
        nonlocal number
        if number <= layout.skip + 1 and (layout.skip or layout.underlined):
            whole = lines.splitlines(keepends=True)
            lines = b"".join(line for at, line in enumerate(whole, start=number) if not layout.leaves_out(at, line))
            number += len(whole)
        if comment:
            lines = comments.sub(b"", lines)
        return runs.sub(delimiter, ends.sub(b"", lines)) if layout.runs else lines

    return clean


_LINE_START = b"(?<![^\r\n])"
_UNDERLINE = re.compile(rb"[-=\s]*[-=]{2}[-=\s]*")

#: A CSV file with a header.
CSV = TextLayout()


def lines_of_rows(text: Path | Opening, rows: Sequence[int], layout: TextLayout = CSV) -> list[int]:
    """The lines, from 1, on which rows begin; rows count from 1, after the header."""
    return lines_of_records(text, [row + layout.header for row in rows], layout)


def lines_of_records(text: Path | Opening, records: Sequence[int], layout: TextLayout = CSV) -> list[int]:
    """The lines, from 1, on which records begin; a header is a record, an empty line is none."""
    wanted = set(records)
    found: dict[int, int] = {}
    for record, line in enumerate(_beginnings(TextFile(text) if isinstance(text, Path) else text, layout), start=1):
        if record in wanted:
            found[record] = line
        if len(found) == len(wanted):
            break
    return [found.get(record, record) for record in records]


_UNQUOTED: Any = {"quoting": csv.QUOTE_NONE}


def _beginnings(text: Opening, layout: TextLayout) -> Iterator[int]:
    with io.TextIOWrapper(text.open_bytes(), layout.codec, errors="replace", newline="") as lines:
        begun = list[int]()
        records = csv.reader(
            _numbered(lines, layout, begun), delimiter=layout.delimiter, **({} if layout.quoted else _UNQUOTED)
        )
        try:
            for record in records:
                if record:
                    yield begun[0]
                begun.clear()
        except csv.Error:
            # A cell of more than 128 KiB: what comes after it is counted in records.
            return


def _numbered(lines: Iterable[str], layout: TextLayout, begun: list[int]) -> Iterator[str]:
    """The lines as the parser has them; the number of each that is given goes to ``begun``."""
    for number, line in enumerate(lines):
        if not layout.leaves_out(number, line.encode()):
            begun.append(number + 1)
            yield layout.cleaned(line)


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


def csv_header(text: Path | Opening, layout: TextLayout = CSV) -> list[str]:
    """Column names of a text. Raises InvalidInput for an empty file, a repeated name, an encoding."""
    names = first_row(text, layout) if layout.names is None else list(layout.names)
    repeated = repeated_name(names)
    if repeated is not None:
        raise InvalidInput(_name_of(text), repeated, "distinct column names")
    return names


def _name_of(text: Path | Opening) -> str:
    return str(text) if isinstance(text, Path) else text.name


def first_row(text: Path | Opening, layout: TextLayout = CSV) -> list[str]:
    """The cells of the first row, whatever they are and what follows.

    Raises InvalidInput for an empty file and an encoding.
    """
    source = TextFile(text) if isinstance(text, Path) else text
    with source.open_bytes() as file:
        head = file.read(_LONGEST_HEADER)
    begun = list[int]()
    lines = io.StringIO(head.decode(layout.codec, errors="ignore" if layout.is_utf8 else "replace"), newline="")
    rows = csv.reader(_numbered(lines, layout, begun), delimiter=layout.delimiter)
    try:
        names = next((row for row in rows if row), [])
    except csv.Error:
        names = None
    if layout.is_utf8:
        # Only these lines: a byte further down is about the row that it is in.
        first = head.splitlines(keepends=True)[layout.skip : max([1, *begun])]
        Encoding(source.name, layout.other_encoding)(b"".join(first))
    elif any("\ufffd" in name for name in names or ()):
        raise InvalidInput(source.name, f"names of columns that are not {layout.encoding}", "its encoding")
    if names is None:
        raise InvalidInput(source.name, "a header that cannot be read", "column names in the first row")
    if not names:
        raise InvalidInput(source.name, "an empty file (0 rows)", "a header row and rows")
    return names


def csv_names(text: Path | Opening, layout: TextLayout = CSV) -> list[str]:
    """Names of the columns as they were before a formula among them was escaped. Raises InvalidInput as csv_header."""
    names = [unescape(name) for name in csv_header(text, layout)]
    repeated = repeated_name(names)
    if repeated is not None:
        raise InvalidInput(_name_of(text), repeated, "distinct column names")
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
    end = EndOfText(",", len(names))

    def refuse(row: Any) -> str:
        if end.is_row(row):
            return "skip"
        ragged.append((row.number, row.actual_columns))
        return "error"

    in_order = [name for name in names if name in kept]
    try:
        with open_bytes(path) as file:
            table = arrow_csv.read_csv(
                end.after(Tapped(file, Encoding(path))),
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
    if not end.seen:
        raise open_quote(path)
    return unescape_columns(table)


def text_parts(
    text: Path | Opening, layout: TextLayout, written: Mapping[str, str], columns: Sequence[str], ragged: list[int]
) -> Iterator[pa.Table]:
    """Parts of the ``columns`` of a text, whose names are ``written`` so; fills ``ragged`` after the last."""
    source = TextFile(text) if isinstance(text, Path) else text
    if isinstance(source, TextFile):
        with steady(source.path):
            yield from _text_parts(source, layout, written, columns, ragged)
    else:
        yield from _text_parts(source, layout, written, columns, ragged)


def _text_parts(
    source: Opening, layout: TextLayout, written: Mapping[str, str], columns: Sequence[str], ragged: list[int]
) -> Iterator[pa.Table]:
    names = list(written.values())
    lost = list[Any]()
    small = isinstance(source, TextMember) and len(source.data) < _ROW_BLOCK
    for part in _cells(source, layout, names, [written[name] for name in columns], lost, threads=not small):
        yield unescape_columns(part.rename_columns(list(columns)))
    if lost:
        if not small:
            # Only one thread knows the numbers of the rows.
            lost = []
            for _ in _cells(source, layout, names, names[:1], lost, threads=False):
                pass
        ragged += [row.number - layout.header for row in lost]


def _cells(
    source: Opening, layout: TextLayout, names: list[str], columns: list[str], lost: list[Any], threads: bool = True
) -> Iterator[pa.Table]:
    """Parts of some columns as text, at least one; rows with another number of cells go to ``lost``.

    Raises InvalidInput, after the last part, for a quote that is never closed.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    end = EndOfText(layout.delimiter, len(names))

    def leave_out(row: Any) -> str:
        if not end.is_row(row):
            lost.append(row)
        return "skip"

    try:
        with (
            opened(source, layout) as file,
            Paced(end.after(file)) as text,
            arrow_csv.open_csv(
                text,
                read_options=arrow_csv.ReadOptions(
                    use_threads=threads, block_size=_ROW_BLOCK, column_names=None if layout.header else names
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=layout.delimiter,
                    newlines_in_values=layout.quoted,
                    quote_char='"' if layout.quoted else False,
                    double_quote=layout.quoted,
                    invalid_row_handler=leave_out,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=columns, column_types=dict.fromkeys(names, pa.string())
                ),
            ) as reader,
        ):
            yield reader.schema.empty_table()
            for batch in text.taken(reader):
                yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid as error:
        if str(error) == "Empty CSV file":
            yield pa.table({name: pa.array([], pa.string()) for name in columns})
            return
        # Arrow's own message quotes the row, which is private.
        raise InvalidInput(source.name, "rows that cannot be read", "CSV with closed quotes") from None
    if not end.seen:
        raise open_quote(source, layout)


class EndOfText:
    """A last row that no text has, with one cell too many: it is no row of its own where a quote before it is open.

    Whatever follows such a quote would be part of its cell: the rows of other people.
    """

    def __init__(self, delimiter: str, width: int) -> None:
        self._before = hashlib.sha256()
        self._cells = delimiter * width
        #: Whether the row was met, and so every quote is closed.
        self.seen = False

    def after(self, text: io.RawIOBase) -> io.RawIOBase:
        """A text with this row behind it."""
        return Chained(Tapped(cast("IO[bytes]", text), self._before.update), lambda: f"\n{self._row}\n".encode())

    @property
    def _row(self) -> str:
        """It has the digest of what comes before: nobody can write it into a text."""
        return self._before.hexdigest()[:16] + self._cells

    def is_row(self, row: Any) -> bool:
        """Whether this row with another number of cells is the last one."""
        last: bool = row.actual_columns == len(self._cells) + 1 and row.text == self._row
        self.seen |= last
        return last


def open_quote(text: Path | Opening, layout: TextLayout = CSV) -> InvalidInput:
    """The error of a text with a quote that is never closed."""
    with cells_of_any_length():
        *_, line = _beginnings(TextFile(text) if isinstance(text, Path) else text, layout)
    return open_quote_in(line)


def open_quote_in(line: int) -> InvalidInput:
    """The same by the line on which the row with the quote begins."""
    return InvalidInput(f"line {line}", "a quote that is never closed", "CSV with closed quotes")


#: What csv takes for the length of a cell at most: as much as fits into a C long everywhere.
_LONGEST_CELL = 2**31 - 1


@contextmanager
def cells_of_any_length() -> Iterator[None]:
    """Without a limit a reader never stops inside a long quoted cell and takes the lines of others for it."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def ragged_row(text: Path | Opening, record: int, came: int, expected: int, layout: TextLayout = CSV) -> InvalidInput:
    """The error of a record with too few or too many fields, named by its line; the header is record 1."""
    (line,) = lines_of_records(text, [record], layout)
    return InvalidInput(f"line {line}", f"{came} fields", f"{expected}, as in the header")


class Encoding:
    """Checks every block of a file. Raises InvalidInput, with the line, for bytes that are not UTF-8 text."""

    def __init__(self, path: Path | str, expected: str = TextLayout.other_encoding) -> None:
        self._name, self._expected = str(path), expected
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
            raise InvalidInput(self._name, f"bytes that are not UTF-8 in line {line}", self._expected) from None
        nul = block.find(b"\0")
        if nul >= 0:
            line = self._line + block.count(b"\n", 0, nul)
            raise InvalidInput(self._name, f"a NUL in line {line}", "encoding UTF-8 without NUL")
        self._line += block.count(b"\n")

    def _check_start(self, block: bytes) -> None:
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InvalidInput(self._name, "UTF-16", self._expected)
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
