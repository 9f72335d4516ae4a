"""Parquet with plain columns: no extension types, no metadata taken from the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.storage.headers import listed, repeated_name

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
