"""Tables as files, Parquet or CSV by suffix: .parquet, .csv, .csv.gz. Written at once or not at all.

Parquet has plain columns: no extension types, no metadata taken from the file.

`read_rows` reads CSV for people's records, by any delimiter: every cell as text, and no row decides about another one.
A row with another number of cells than the header is left out and numbered; a byte that is not UTF-8 makes the cell
that it is in unreadable. Only a broken header or a quote that nothing closes refuses the file.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import (
    Layout,
    _unescape_columns,
    csv_header,
    csv_names,
    escape_columns,
    listed,
    ragged_row,
    read_csv,
    repeated_name,
)
from dphmm.storage.inputs import Legible, Paced, PathLike, checked_input, checked_output, open_bytes, replacing, steady

if TYPE_CHECKING:
    import pyarrow as pa

#: Most rows of a file: a few bytes of Parquet can claim any number of equal ones.
MOST_ROWS = 10**9
_MAGIC = b"PAR1"


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A pyarrow ParquetFile with distinct plain columns; InvalidInput for anything else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check_ends(path)
    try:
        file = pq.ParquetFile(path)
    except UnicodeEncodeError:
        raise InvalidInput("path", ascii(path.name), "a name in UTF-8, which Parquet files need") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise InvalidInput(str(path), "a damaged Parquet file", "a whole one") from None
    with file:
        try:
            schema = file.schema_arrow
            names = list(schema.names)
            # Zones too are text of the file.
            _ = [field.type.tz for field in schema if pa.types.is_timestamp(field.type)]
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise InvalidInput(str(path), "a damaged Parquet file", "a whole one") from None
        _check_schema(path, schema, names)
        if file.metadata.num_rows > MOST_ROWS:
            raise InvalidInput(str(path), f"{file.metadata.num_rows} rows", f"at most {MOST_ROWS}")
        yield file


def read_parquet(path: Path, columns: Sequence[str] | None, rows: int) -> Iterator[pa.Table]:
    """Tables of up to ``rows`` rows each, one row group at a time in memory; at least one, perhaps empty."""
    import pyarrow as pa

    with open_parquet(path) as file:
        names = list(file.schema_arrow.names)
        kept = names if columns is None else list(columns)
        missing = next((name for name in kept if name not in names), None)
        if missing is not None:
            raise InvalidInput("column", missing, "one of " + listed(names))
        plain = pa.schema([file.schema_arrow.field(name).remove_metadata() for name in kept])
        given = False
        try:
            for batch in file.iter_batches(rows, columns=kept):
                given = True
                part = pa.table([batch.column(name) for name in kept], schema=plain)
                # Text that is not UTF-8 would only be noticed where it is used.
                part.validate(full=True)
                yield part
        except (pa.ArrowException, OSError):
            raise InvalidInput(str(path), "a damaged Parquet file", "a whole one") from None
        if not given:
            yield plain.empty_table()


def _check_ends(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(max(0, size - 4))
        end = file.read(4)
    if size == 0:
        raise InvalidInput(str(path), "an empty file (0 rows)", "a Parquet file")
    if start == b"PARE" or end == b"PARE":
        raise InvalidInput(str(path), "an encrypted Parquet file", "a plain one")
    if start != _MAGIC:
        raise InvalidInput(str(path), "a file that is not Parquet", "a Parquet file")
    if size < 12 or end != _MAGIC:
        raise InvalidInput(str(path), "a truncated Parquet file", "a whole one")


def _check_schema(path: Path, schema: pa.Schema, names: list[str]) -> None:
    repeated = repeated_name(names)
    if repeated is not None:
        raise InvalidInput(str(path), repeated, "distinct column names")
    for field in schema:
        if _has_extension(field):
            raise InvalidInput(field.name, "an extension type", "a plain column of text, numbers or times")


def _has_extension(field: pa.Field) -> bool:
    import pyarrow as pa

    if isinstance(field.type, pa.BaseExtensionType) or b"ARROW:extension:name" in (field.metadata or {}):
        return True
    inner = [field.type.field(i) for i in range(field.type.num_fields)]
    return any(_has_extension(child) for child in inner)


SUFFIXES = (".parquet", ".csv", ".csv.gz")
#: Rows in memory at a time where a table is streamed.
ROWS = 1 << 20


def table_format(path: PathLike, field: str = "path") -> str:
    """The suffix that says how a table is stored; InvalidInput for any other."""
    name = Path(path).name.lower()
    suffix = next((suffix for suffix in SUFFIXES[::-1] if name.endswith(suffix)), None)
    if suffix is None:
        raise InvalidInput(field, str(path), "a name ending in .parquet, .csv or .csv.gz")
    return suffix


def column_names(path: PathLike) -> list[str]:
    """Names of a table's columns, in order."""
    file = checked_input(path)
    if table_format(file) != ".parquet":
        return csv_names(file)
    with open_parquet(file) as opened:
        return list(opened.schema_arrow.names)


def read_table(path: PathLike, *, columns: Sequence[str] | None = None, text: Collection[str] | None = ()) -> pa.Table:
    """A whole table. In CSV the columns named in ``text`` (None: all) stay text; others get the type they look like.

    Raises InvalidInput, in one line and without a value of a row, for: a missing, truncated or changing file;
    a folder, device or pipe; a pickle; an extension type; a missing or repeated column; ragged rows; a wrong
    encoding.
    """
    import pyarrow as pa

    return pa.concat_tables(read_batches(path, columns=columns, text=text))


def read_batches(
    path: PathLike,
    *,
    columns: Sequence[str] | None = None,
    text: Collection[str] | None = (),
    rows: int = ROWS,
) -> Iterator[pa.Table]:
    """The table in parts of at most ``rows`` rows, at least one part. Parquet is streamed, CSV is read whole.

    The file is hashed before the first part and after the last; InvalidInput if it changed.
    """
    file = checked_input(path)
    suffix = table_format(file)
    with steady(file):
        if suffix == ".parquet":
            yield from read_parquet(file, columns, rows)
            return
        table = read_csv(file, columns, text)
        for start in range(0, max(1, len(table)), rows):
            yield table.slice(start, rows)


def write_table(path: PathLike, table: pa.Table, *, inputs: Iterable[PathLike] = ()) -> None:
    """Write a table, replacing none of ``inputs``; ids in CSV that look like formulas are escaped."""
    with table_writer(path, table.schema, inputs=inputs) as write:
        write(table)


@contextmanager
def table_writer(
    path: PathLike, schema: pa.Schema, *, inputs: Iterable[PathLike] = ()
) -> Iterator[Callable[[pa.Table], None]]:
    """A function that appends tables of one schema; the file appears when the block ends without an error."""
    suffix = table_format(path, "output")
    checked_output(path, inputs)
    with replacing(path) as temporary, ExitStack() as stack:
        if suffix == ".parquet":
            yield _parquet_appender(temporary, schema.remove_metadata(), stack)
        else:
            yield _csv_appender(temporary, schema, suffix, stack)


def _parquet_appender(path: Path, schema: pa.Schema, stack: ExitStack) -> Callable[[pa.Table], None]:
    import pyarrow.parquet as pq

    writer = stack.enter_context(pq.ParquetWriter(path, schema, compression="zstd"))

    def append(table: pa.Table) -> None:
        writer.write_table(table.replace_schema_metadata(None), row_group_size=ROWS)

    return append


def _csv_appender(path: Path, schema: pa.Schema, suffix: str, stack: ExitStack) -> Callable[[pa.Table], None]:
    import pyarrow as pa
    from pyarrow import csv

    packing: Any = "gzip" if suffix.endswith(".gz") else None
    stream = stack.enter_context(pa.output_stream(str(path), compression=packing))
    writer = stack.enter_context(csv.CSVWriter(stream, escape_columns(schema.empty_table()).schema))

    def append(table: pa.Table) -> None:
        writer.write_table(escape_columns(table))

    return append


_BLOCK = 1 << 24


class Rows(NamedTuple):
    """The rows of a table in parts, and the numbers, from 1, of those with another number of cells (not in parts).

    The numbers are there when the last part has been read.
    """

    parts: Iterable[pa.Table]
    ragged: Sequence[int]


def delimited_names(path: PathLike, delimiter: str = ",") -> list[str]:
    """Names of a table's columns, in order."""
    file = checked_input(path)
    if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
        raise InvalidInput("delimiter", delimiter, "one character, such as ; or a tab")
    if table_format(file) != ".parquet":
        return csv_names(file, delimiter)
    if delimiter != ",":
        raise InvalidInput("delimiter", delimiter, "a .csv or .csv.gz file with it")
    return column_names(file)


def read_rows(path: PathLike, columns: Sequence[str], delimiter: str = ",") -> Rows:
    """Some columns of a table: of Parquet as they are, of CSV as text.

    Raises InvalidInput as read_table does for Parquet; of CSV for a file that is none, a header that cannot be read
    and, with the line, for a quote that is never closed.
    """
    file = checked_input(path)
    names = delimited_names(file, delimiter)
    if table_format(file) == ".parquet":
        return Rows(read_batches(file, columns=columns), ())
    written, ragged = dict(zip(names, csv_header(file, delimiter), strict=True)), list[int]()
    return Rows(_text_parts(file, delimiter, written, columns, ragged), ragged)


def _text_parts(
    file: Path, delimiter: str, written: Mapping[str, str], columns: Sequence[str], ragged: list[int]
) -> Iterator[pa.Table]:
    """Parts of the ``columns`` of a CSV file, whose names are ``written`` so; fills ``ragged`` after the last."""
    names = list(written.values())
    with steady(file):
        rows, lost = 0, list[Any]()
        for part in _cells(file, delimiter, names, [written[name] for name in columns], lost):
            rows += len(part)
            yield _unescape_columns(part.rename_columns(list(columns)))
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
                read_options=arrow_csv.ReadOptions(use_threads=threads, block_size=_BLOCK),
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
        # Arrow's own message quotes the row, which is somebody's.
        raise InvalidInput(str(file), "rows that cannot be read", "CSV with closed quotes") from None


def _is_open(text: str, delimiter: str) -> bool:
    """Whether a quote in the last row of a file is never closed, so that the row holds whatever came after it."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False
