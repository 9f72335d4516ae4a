"""CSV (RFC 4180, UTF-8) with ids that a spreadsheet cannot take for formulas, and other delimited text.

A `TextLayout` says how a text is split into records. `records` cuts it at line ends outside quotes; the parser makes
cells of text of each part, so that the number of every record in the text is known. Messages and lists of rows say on
which lines records begin, as an editor counts them. Names of columns are public in messages, unless the first row is
data instead of a header.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.space import LONGEST_NAME
from dphmm.storage.columns import plain_type
from dphmm.storage.inputs import SUBSTITUTE, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa


#: Encodings in which no sign decides how the next line is read. Others shift: ISO 2022, HZ, UTF-7, escapes.
_ENCODINGS = re.compile(
    r"utf-8(-sig)?|utf-(16|32)(-[lb]e)?|ascii|iso8859-\d+|cp\d+|mac-\w+|koi8-[rtu]|gb2312|gbk|gb18030|big5(hkscs)?"
    r"|shift_jis(_2004|x0213)?|euc_jp|euc_kr|euc_jis_2004|euc_jisx0213|johab|tis-620|kz1048|ptcp154|hp-roman8"
)


@dataclass(frozen=True)
class TextLayout:
    """The rules that split a text into records, and the form of its numbers.

    ``names`` are those of the columns if no row has them. ``skip`` lines at the start are left out, and every line
    that begins with ``comment``, whatever is in it. With ``runs`` several delimiters in a row are one, and those at the
    ends of a line are none. ``underlined``: a second line of dashes and blanks alone is left out too. ``decimal``: the
    sign before the fraction of a number. Blanks around the name of a column are no part of it.
    """

    delimiter: str = ","
    names: tuple[str, ...] | None = None
    quoted: bool = True
    encoding: str = "utf-8"
    comment: str | None = None
    skip: int = 0
    runs: bool = False
    underlined: bool = False
    decimal: str = "."
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
        if self.decimal not in (".", ","):
            raise InvalidInput("decimal", self.decimal, "point or comma")
        try:
            known = _ENCODINGS.fullmatch(codecs.lookup(self.encoding).name)
        except (LookupError, ValueError):
            known = None
        if known is None:
            raise InvalidInput("encoding", self.encoding, "the name of one: utf-8, latin-1, cp1252, utf-16")

    @property
    def header(self) -> bool:
        """True if the first record has the names of the columns."""
        return self.names is None

    @property
    def is_utf8(self) -> bool:
        """True if the text is UTF-8."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")


@dataclass(frozen=True)
class TextMember:
    """A text in memory: a member of an archive, a file of a folder."""

    name: str
    data: bytes


#: A file, perhaps packed by gzip, or a text in memory. It can be read from its start again and again.
Text = Path | TextMember
#: A CSV file with a header.
CSV = TextLayout()
#: Bytes that are read at a time, and most bytes of one record.
_ROW_BLOCK = 1 << 24
_LONGEST_RECORD = 1 << 28
#: What csv takes for the length of a cell at most: as much as fits into a C long everywhere.
_LONGEST_CELL = 2**31 - 1
#: Parts that are parsed at the same time, each of them in memory.
_MOST_THREADS = 4
_FOREIGN = {
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
    b"PAR1": "a Parquet file named as CSV",
    b"\x1f\x8b": "a gzip file named as CSV",
    b"PK\x03\x04": "a zip file named as CSV",
    b"\x80\x04": "a pickle file named as CSV",
    b"\x80\x05": "a pickle file named as CSV",
}


class RecordParts:
    """Parts of a text, each of whole records in UTF-8; a line that is no record is empty.

    A byte that is none of the encoding becomes U+001A, which no name, number or time has; where the text is ``strict``
    it is refused with its line, as a NUL is. Raises InvalidInput, with the line, for a quote that is never closed:
    whatever follows it would be part of its cell, the rows of other people.
    """

    def __init__(self, text: Text, layout: TextLayout = CSV, strict: bool = False) -> None:
        self._text, self._layout, self._strict = text, layout, strict
        self.name = str(text) if isinstance(text, Path) else text.name

    def __iter__(self) -> Iterator[bytes]:
        """The parts, in order, at least one; none but the first is empty."""
        clean, begun, line, rest, waiting = _cleaning(self._layout), False, 1, b"", b""
        text = self._text
        with open_bytes(text) if isinstance(text, Path) else io.BytesIO(text.data) as file:
            for lines, ended in self._decoded(file):
                rest += lines
                # A line feed that follows belongs to the line that a carriage return ends.
                end = len(rest) if ended else max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, len(rest) - 1)) + 1
                waiting, rest = waiting + clean(rest[:end]), rest[end:]
                closed = _end_of_closed(waiting, self._layout)
                part, waiting = waiting[:closed], waiting[closed:]
                if part or not begun:
                    begun = True
                    yield part
                    line += part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
                if len(rest) + len(waiting) > _LONGEST_RECORD:
                    expected = f"records of at most {_LONGEST_RECORD} bytes"
                    raise InvalidInput(self.name, f"a longer record in line {line}", expected)
        if waiting:
            raise InvalidInput(f"line {line}", "a quote that is never closed", "CSV with closed quotes")

    def _decoded(self, file: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
        """The text as UTF-8, and whether it has ended."""
        layout, line, ended = self._layout, 1, False
        # A mark of UTF-8 at the start of a file is no part of its first cell.
        codec = "utf-8-sig" if layout.is_utf8 else layout.encoding
        decoder = codecs.getincrementaldecoder(codec)("strict" if self._strict else SUBSTITUTE)
        looks = layout.is_utf8 and (layout.header or self._strict)
        while not ended:
            block = file.read(_ROW_BLOCK)
            ended = not block
            kind = next((name for magic, name in _FOREIGN.items() if looks and block.startswith(magic)), None)
            if kind is not None:
                raise InvalidInput(self.name, kind, layout.other_encoding if kind == "UTF-16" else "CSV text")
            looks = False
            try:
                text = decoder.decode(block, final=ended)
            except UnicodeDecodeError as error:
                if not self._strict:
                    raise
                line += error.object.count(b"\n", 0, error.start)
                fault = f"bytes that are not UTF-8 in line {line}"
                raise InvalidInput(self.name, fault, layout.other_encoding) from None
            except UnicodeError:
                # Of a text as a whole: a cell that is none of the encoding is substituted.
                both = " or ".join(f"{layout.encoding}-{end}" for end in ("le", "be"))
                fault = f"{layout.encoding}, of a text without a mark of its byte order"
                raise InvalidInput("encoding", fault, both) from None
            if self._strict:
                if (nul := text.find("\0")) >= 0:
                    line += text.count("\n", 0, nul)
                    raise InvalidInput(self.name, f"a NUL in line {line}", "encoding UTF-8 without NUL")
                line += text.count("\n")
            yield text.encode(), ended

    def first(self) -> list[str]:
        """The cells of the first record, whatever they are and what follows.

        Raises InvalidInput for an empty text, and for cells that are not of its encoding.
        """
        line, row = next(((line, row) for line, row in self.in_lines() if row), (1, []))
        layout, cells = self._layout, "".join(row)
        if not row:
            raise InvalidInput(self.name, "an empty file (0 rows)", "a header row and rows")
        if layout.is_utf8 and ("\x1a" in cells or "\0" in cells):
            kind = "a NUL" if "\0" in cells else "bytes that are not UTF-8"
            raise InvalidInput(self.name, f"{kind} in line {line}", layout.other_encoding)
        if "\x1a" in cells:
            raise InvalidInput(self.name, f"names of columns that are not {layout.encoding}", "its encoding")
        return [cell.strip(" \t") for cell in row]

    def in_lines(self) -> Iterator[tuple[int, list[str]]]:
        """The line on which each record begins, and its cells; none for an empty line."""
        layout, line = self._layout, 1
        quotes: Any = {} if layout.quoted else {"quoting": csv.QUOTE_NONE}
        # With a limit a reader stops inside a long quoted cell and takes the lines of others for it.
        limit = csv.field_size_limit(_LONGEST_CELL)
        try:
            for part in self:
                rows = csv.reader(io.StringIO(part.decode(), newline=""), delimiter=layout.delimiter, **quotes)
                before = 0
                for row in rows:
                    yield line + before, row
                    before = rows.line_num
                line += before
        finally:
            csv.field_size_limit(limit)


def _end_of_closed(text: bytes, layout: TextLayout) -> int:
    """The end of the last record before which no quote is open."""
    if not layout.quoted or b'"' not in text:
        return len(text)
    signs = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(signs == ord('"'))
    opening = quotes[::2]
    before = signs[opening[opening > 0] - 1]
    if not np.isin(before, np.frombuffer(f'{layout.delimiter}\r\n"'.encode(), np.uint8)).all():
        # Some quote stands inside a cell, and quotes nothing.
        before_it = re.escape(layout.delimiter.encode())
        cells = re.finditer(rb'(?:\A|(?<=[%b\r\n]))"(?:[^"]++|"")*+(")?' % before_it, text)
        ends = [(cell.start(), cell.end() - 1) if cell[1] else (cell.start(),) for cell in cells]
        quotes = np.array([end for both in ends for end in both], dtype=np.int64)
    if len(quotes) % 2 == 0:
        return len(text)
    line_ends = np.flatnonzero((signs[: quotes[-1]] == 10) | (signs[: quotes[-1]] == 13))
    outside = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def _cleaning(layout: TextLayout) -> Callable[[bytes], bytes]:
    """A function of whole lines, in order, that makes an empty line of each that is no record, and joins delimiters.

    Lines of what it gives end in LF: the LF of an empty line would be part of a CR before it, and the lines one fewer.
    """
    if not (layout.skip or layout.underlined or layout.comment is not None or layout.runs):
        return bytes
    delimiter = layout.delimiter.encode()
    comment = b"" if layout.comment is None else re.escape(layout.comment.encode())
    comments = re.compile(rb"(?m)^" + comment + b".*")
    blanks = b"[ " + (b"\t" if delimiter == b" " else re.escape(delimiter)) + b"]"
    runs = re.compile(blanks + b"+" if delimiter == b" " else b" *" + re.escape(delimiter) + blanks + b"*")
    ends = re.compile(rb"(?m)" + blanks + b"+$|^" + blanks + b"+")
    number = 0

    def clean(lines: bytes) -> bytes:
        nonlocal number
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if number <= layout.skip + 1 and (layout.skip or layout.underlined):
            whole = lines.splitlines(keepends=True)
            for at, line in enumerate(whole):
                after = number + at - layout.skip
                if after < 0 or (layout.underlined and after == 1 and _UNDERLINE.fullmatch(line)):
                    whole[at] = line[len(line.rstrip(b"\n")) :]
            lines, number = b"".join(whole), number + len(whole)
        if comment:
            lines = comments.sub(b"", lines)
        return runs.sub(delimiter, ends.sub(b"", lines)) if layout.runs else lines

    return clean


_UNDERLINE = re.compile(rb"[-=\s]*[-=]{2}[-=\s]*")


def lines_of_rows(text: Text, rows: Sequence[int], layout: TextLayout = CSV) -> list[int]:
    """The lines, from 1, on which rows begin; rows count from 1, after the header, and an empty line is none."""
    wanted, lines = set(rows), dict[int, int]()
    begins = (line for line, row in RecordParts(text, layout).in_lines() if row)
    for number, line in enumerate(begins, start=1 - layout.header):
        if number in wanted:
            lines[number] = line
            if len(lines) == len(wanted):
                break
    return [lines.get(row, row + layout.header) for row in rows]


# A cell of a row rather than a name: nothing, a number; or in it a decimal fraction, a date, a time, many digits.
_DATUM = re.compile(r"\s*([+-]?[0-9]+([eE][+-]?[0-9]+)?)?\s*")
_MEASURED = re.compile(r"[0-9]\.[0-9]{2}|[0-9]:[0-9]{2}|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]|[0-9]{6}")
_LONGEST = 400


def looks_like_data(names: Sequence[str]) -> bool:
    """True if a first row is a row of data, or holds several rows: then no message may show any of it."""
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


def chosen_columns(names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The ``columns`` (default all) of those with these ``names``. Raises InvalidInput for one that is not there."""
    chosen = list(names if columns is None else columns)
    missing = next((name for name in chosen if name not in names), None)
    if missing is not None:
        raise InvalidInput("column", missing, "one of " + listed(names))
    return chosen


def csv_names(text: Text, layout: TextLayout = CSV) -> list[str]:
    """Names of the columns, as they were before a formula among them was escaped.

    Raises InvalidInput for an empty text, a repeated name, and names that are not of its encoding.
    """
    records = RecordParts(text, layout)
    names = list(layout.names) if layout.names is not None else [unescape(name) for name in records.first()]
    repeated = repeated_name(names)
    if repeated is not None:
        raise InvalidInput(records.name, repeated, "distinct column names")
    return names


def text_parts(
    text: Text, layout: TextLayout, columns: Sequence[str] | None, ragged: list[int], strict: bool = False
) -> Iterator[pa.Table]:
    """Parts of some columns (default all) of a text, at least one; all cells are text.

    Rows with another number of cells go to ``ragged``, by their numbers from 1. If the text is ``strict`` they raise
    InvalidInput with their line. Raises InvalidInput for a column that is not there, and as `RecordParts`. Callers hold
    a file `steady` for as long as they use what is read of it.
    """
    names = csv_names(text, layout)
    chosen = chosen_columns(names, columns)
    numbers = [names.index(name) for name in chosen]
    records, before = RecordParts(text, layout, strict), 0

    def parse(part: bytes) -> _Parsed:
        return _parsed(part, records.name, layout, len(names), numbers)

    for cells, odd, many in _in_turn(records, parse):
        if strict and odd:
            number, width = odd[0]
            (line,) = lines_of_rows(text, [before + number - layout.header], layout)
            raise InvalidInput(f"line {line}", f"{width} fields", f"{len(names)}, as in the header")
        ragged += [before + number - layout.header for number, _ in odd]
        rows = cells.slice(1) if layout.header and not before and many else cells
        before += many
        yield rows.rename_columns(chosen)


class _Parsed(NamedTuple):
    """The records of a part of a text: their cells, those with another number of cells, and how many there are."""

    cells: pa.Table
    #: By number, from 1, with the number of their cells.
    odd: list[tuple[int, int]]
    many: int


def _parsed(part: bytes, name: str, layout: TextLayout, width: int, columns: Sequence[int]) -> _Parsed:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    odd, names = list[tuple[int, int]](), [str(number) for number in range(width)]
    chosen = [names[number] for number in columns]

    def leave_out(row: Any) -> str:
        odd.append((row.number, row.actual_columns))
        return "skip"

    # Arrow takes a mark of UTF-8 off the start of whatever it reads; an empty line before it is no record.
    whole = b"\n" + part if part.startswith(codecs.BOM_UTF8) else part
    try:
        cells = arrow_csv.read_csv(
            pa.BufferReader(whole),
            # One thread alone knows the numbers of the rows; other parts are parsed at the same time.
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(whole) + 1, column_names=names),
            parse_options=arrow_csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=layout.quoted,
                quote_char='"' if layout.quoted else False,
                double_quote=layout.quoted,
                invalid_row_handler=leave_out,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=chosen, column_types=dict.fromkeys(names, pa.string())
            ),
        )
    except pa.ArrowInvalid as error:
        if str(error) != "Empty CSV file":
            # Arrow's own message quotes the row, which is private.
            raise InvalidInput(name, "rows that cannot be read", "CSV with closed quotes") from None
        cells = pa.table([pa.array([], pa.string())] * len(chosen), names=chosen)
    many = len(cells) + len(odd)
    return _Parsed(unescape_columns(cells) if b"'" in part else cells, odd, many)


def _in_turn(parts: Iterable[bytes], parse: Callable[[bytes], _Parsed]) -> Iterator[_Parsed]:
    """The parts as they are parsed, in order; a few at the same time, and no more than these in memory."""
    first, *others = islice(iterator := iter(parts), 2)
    if not others:
        yield parse(first)
        return
    most = min(_MOST_THREADS, os.cpu_count() or 1)
    with ThreadPoolExecutor(most) as pool:
        waiting = deque[Future[_Parsed]]()
        for part in chain((first, *others), iterator):
            waiting.append(pool.submit(parse, part))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def typed(table: pa.Table, text: Collection[str] | None) -> pa.Table:
    """A table of text with each column, but those that stay ``text`` (None: all), of the type that all its cells have.

    An empty cell is missing there. Types are whole numbers, numbers, truth values and times.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    types = (pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us", "UTC"), pa.timestamp("us"))
    for at, name in enumerate(table.column_names):
        if text is None or name in text:
            continue
        cells = pc.utf8_trim(table.column(at), " \t")
        cells = pc.if_else(pc.equal(cells, ""), None, cells)
        if cells.null_count == len(cells):
            table = table.set_column(at, name, pa.nulls(len(cells)))
            continue
        for kind in types:
            try:
                table = table.set_column(at, name, cells.cast(kind))
                break
            except pa.ArrowInvalid:
                continue
    return table


# A text that a spreadsheet would evaluate, with any apostrophes before it.
_FORMULA = r"^'*[=@+\-\t\r]"
_ESCAPED = r"^'('*[=@+\-\t\r])"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def escape_columns(table: pa.Table) -> pa.Table:
    """Text that looks like a formula, names included, gets a leading apostrophe; plain numbers do not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        column = plain_type(column)
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise InvalidInput(name, f"type {column.type}", "a column of text or numbers for CSV; or .parquet")
        if pa.types.is_string(column.type):
            looks = pc.match_substring_regex(column, _FORMULA)
            risky = pc.and_(looks, pc.invert(pc.match_substring_regex(column, _NUMBER)))
            if pc.any(risky).as_py():
                mark, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
                column = pc.if_else(risky, pc.binary_join_element_wise(mark, column, nothing), column)
        columns.append(column)
    return pa.table(columns, names=[_escape(name) for name in table.column_names])


def unescape_columns(table: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    for at, column in enumerate(table.columns):
        if pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
            plain = pc.replace_substring_regex(column, _ESCAPED, r"\1", max_replacements=1)
            table = table.set_column(at, table.column_names[at], plain)
    return table


def _escape(name: str) -> str:
    return "'" + name if name.lstrip("'").startswith(("=", "@", "+", "-", "\t", "\r")) else name


def unescape(name: str) -> str:
    return name[1:] if name.startswith("'") and _escape(name[1:]) != name[1:] else name
