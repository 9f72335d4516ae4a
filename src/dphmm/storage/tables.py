"""Tables as files, Parquet or CSV by suffix: .parquet, .csv, .csv.gz. Written at once or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.storage.csv_files import csv_names, escape_columns, read_csv
from dphmm.storage.inputs import PathLike, checked_input, checked_output, replacing, steady
from dphmm.storage.parquet_files import open_parquet, read_parquet

if TYPE_CHECKING:
    import pyarrow as pa

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
