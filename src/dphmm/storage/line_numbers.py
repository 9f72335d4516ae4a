"""On which lines the records of a text file begin, as an editor counts them: for messages and lists of rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dphmm.storage.unpacking import open_bytes


@dataclass(frozen=True)
class Layout:
    """How a text is cut into records. Records of another number of ``fields`` than is given are none."""

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
