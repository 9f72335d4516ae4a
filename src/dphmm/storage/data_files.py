"""The data files of a release table: their names, how they are written and described, and whether they are as told.

Workers write them without the table: a name is made of the job, the partition and random digits, so no two attempts
have the same. Before a worker draws it says under which context, so that a job whose attempts saw different rows is
found, also where one of them never came to its end.

Proof: docs/proofs/table-commit.md.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm._checks import whole
from dphmm.errors import InvalidInput
from dphmm.storage.commit_log import DATA_NAME, Committed, TableFile, of_one_job
from dphmm.storage.stores import opened_plain, sync_folder

if TYPE_CHECKING:
    import pyarrow as pa


def entry_name(job: str, partition: int, attempt_random: str | None = None) -> str:
    """The name of a data file: job, partition (from 0) and 32 random hex digits, the system's where none are given.

    >>> entry_name("0" * 32, 7, "f" * 32)
    '00000000000000000000000000000000-00007-ffffffffffffffffffffffffffffffff.parquet'
    """
    number = whole(partition, "partition", 0, 999_999_999)
    name = f"{job}-{number:05d}-{secrets.token_hex(16) if attempt_random is None else attempt_random}.parquet"
    if not DATA_NAME.fullmatch(name):
        raise InvalidInput("attempt_random", name, "32 hex digits of the job and 32 random ones")
    return name


#: Job, partition, and the tag of the context.
ATTEMPT_NAME = re.compile(r"([0-9a-f]{32})-([0-9]{5,9})-([0-9a-f]{64})")


def say_attempt(folder: Path, job: str, partition: int, tag: bytes) -> str:
    """Leave the tag (32 bytes) of the context that an attempt is about to draw under; the tag as hex digits.

    The tag is an HMAC under the key of the job: without it nobody can tell anything from the name.
    """
    name = f"{job}-{whole(partition, 'partition', 0, 999_999_999):05d}-{tag.hex()}"
    if not ATTEMPT_NAME.fullmatch(name):
        raise InvalidInput("attempt", f"{len(tag)} bytes", "32 hex digits of the job and a tag of 32 bytes")
    (folder / name).touch()
    return tag.hex()


def write_rows(rows: pa.Table, path: Path) -> TableFile:
    """Write a data file that is not there yet, durably, and describe it. Raises FileExistsError."""
    import pyarrow.parquet as pq

    with path.open("xb") as file:
        pq.write_table(rows, file)
        file.flush()
        os.fsync(file.fileno())
    return table_file(path)


def table_file(path: Path) -> TableFile:
    """Describe a data file that is written. Raises InvalidInput where it is no whole Parquet file."""
    if not DATA_NAME.fullmatch(path.name):
        raise InvalidInput("files", path.name, "a name of entry_name")
    with opened_plain(path, path.name) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size, rows = file.tell(), _parquet(file, path.name).num_rows
    return TableFile(name=path.name, sha256=digest, rows=rows, bytes=size)


def check_files(data: Path, entry: Committed, rows: int | None) -> None:
    """Raise InvalidInput unless the files of an entry are as told; afterwards they are on the disk."""
    if not of_one_job(entry):
        raise InvalidInput("files", "a file of another job, or two of a partition", "one file of this job for each")
    total = sum(file.rows for file in entry.files)
    if rows is not None and total != rows:
        raise InvalidInput("files", f"{total} rows", f"{rows} rows")
    schemas = [check_file(data, file, True) for file in entry.files]
    if any(not schema.equals(schemas[0]) for schema in schemas):
        raise InvalidInput("files", "files with different columns", "the same columns in all files of a job")
    sync_folder(data)


def check_file(data: Path, told: TableFile, verify: bool) -> Any:
    """The Arrow schema of a file that is as its entry says, None unless ``verify``. Raises InvalidInput."""
    try:
        with opened_plain(data / told.name, told.name) as file:
            if os.fstat(file.fileno()).st_size != told.bytes:
                raise InvalidInput("files", f"{told.name} of another size", f"the {told.bytes} bytes it was told of")
            if not verify:
                return None
            if hashlib.file_digest(file, "sha256").hexdigest() != told.sha256:
                raise InvalidInput("files", f"{told.name} with other bytes", "the SHA-256 it was told of")
            os.fsync(file.fileno())
            found = _parquet(file, told.name)
            if found.num_rows != told.rows:
                raise InvalidInput("files", f"{told.name} of {found.num_rows} rows", f"the {told.rows} it was told of")
            return found.schema.to_arrow_schema()
    except FileNotFoundError:
        raise InvalidInput("files", told.name, "a file that exists in the table's data folder") from None


def _parquet(file: io.BufferedReader, name: str) -> Any:
    """The metadata of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file).metadata
    except (pa.ArrowException, OSError):
        raise InvalidInput("files", name, "a whole Parquet file") from None
