"""Rows of headerless delimited text, all cells as text.

Rows with another number of cells are counted and left out, and a byte that is not UTF-8 makes its cell unreadable: no
row decides about another one.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.storage.inputs import Legible, legible

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 23


class RowReader:
    """Reads text of fixed columns; ``ragged`` counts the rows that were left out so far."""

    def __init__(self, names: Sequence[str], keep: Sequence[str], delimiter: str) -> None:
        import pyarrow as pa
        from pyarrow import csv

        self.ragged = 0
        self._keep = list(keep)
        self._options: dict[str, Any] = {
            "read_options": csv.ReadOptions(column_names=list(names), block_size=_BLOCK, use_threads=False),
            "parse_options": csv.ParseOptions(
                delimiter=delimiter, quote_char=False, double_quote=False, invalid_row_handler=self._skip
            ),
            "convert_options": csv.ConvertOptions(
                include_columns=self._keep, column_types=dict.fromkeys(names, pa.string())
            ),
        }

    def read(self, data: bytes, name: str) -> pa.Table:
        """The table of a text in memory, perhaps without rows."""
        import pyarrow as pa
        from pyarrow import csv

        # A mark of UTF-8 with nothing behind it is an empty file to Arrow, which refuses those.
        if not data.removeprefix(codecs.BOM_UTF8).strip():
            return pa.table({column: pa.array([], pa.string()) for column in self._keep})
        try:
            return csv.read_csv(pa.BufferReader(legible(data)), **self._options)
        except pa.ArrowInvalid:
            raise InvalidInput(name, "rows that cannot be read", "the format's own files") from None

    def stream(self, file: IO[bytes], name: str) -> Iterator[pa.Table]:
        """Tables of some 8 MiB of text each."""
        import pyarrow as pa
        from pyarrow import csv

        try:
            for batch in csv.open_csv(Legible(file), **self._options):
                yield pa.Table.from_batches([batch])
        except pa.ArrowInvalid:
            raise InvalidInput(name, "an empty file or rows that cannot be read", "the format's own files") from None

    def _skip(self, row: Any) -> str:
        self.ragged += 1
        return "skip"
