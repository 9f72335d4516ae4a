"""Spoiling Parquet: columns of other types and names, and the file's own bytes."""

from __future__ import annotations

import io
import pickle
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.model_files import Canary
from fuzz.mutations import bytes_anywhere


def _column(rng: random.Random, n: int) -> Any:
    stamps = pa.array([0, 2**62, -(2**62)] * n, pa.int64())[:n]
    choices = (
        lambda: pa.array([None] * n, pa.null()),
        lambda: pa.array([float("nan"), 1e308, -0.0] * n)[:n],
        lambda: pa.array([2**63 - 1, -(2**63), 0] * n)[:n],
        lambda: pa.array([True, None, False] * n)[:n],
        lambda: pa.array(["", "a\nb", "\u202e", "x" * 300] * n)[:n],
        lambda: pa.array([b"\xff", b"", None] * n)[:n],
        lambda: stamps.cast(pa.timestamp("s")),
        lambda: stamps.cast(pa.timestamp("us", "UTC")),
        lambda: stamps.cast(pa.timestamp("ns", "Europe/Berlin")),
        lambda: pa.array([1, 2, 3] * n, pa.date32())[:n],
        lambda: pa.array([[1], None, []] * n)[:n],
        lambda: pa.array([{"a": 1}, None, {}] * n)[:n],
        lambda: pa.array(["a", "b"] * n)[:n].dictionary_encode(),
        lambda: pa.array(["1", "2.5", "nan"] * n)[:n],
        lambda: pa.array([Decimal("1.5"), None] * n, pa.decimal128(20, 3))[:n],
        lambda: pa.array(["a", None] * n, pa.large_string())[:n],
        lambda: pa.array([1, 2] * n, pa.uint64())[:n],
        lambda: pa.array([1, 2] * n, pa.duration("s"))[:n],
        lambda: pa.array([1, 2] * n, pa.int8())[:n],
        lambda: pa.array(["a"] * n, pa.string_view()),
        lambda: pa.array([np.float16(1)] * n),
        lambda: pa.array([1, 2] * n, pa.time64("us"))[:n],
        lambda: (
            pa.array([{"k": 1}] * n, pa.map_(pa.string(), pa.int64()))
            if not n
            else pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64()))
        ),
    )
    return rng.choice(choices)()


def parquet_file(data: bytes, rng: random.Random) -> bytes:
    """A table whose columns have other types, names or order; or the file's own bytes, most often its end."""
    if rng.randrange(3) == 0:
        tail = max(0, len(data) - rng.choice((12, 200, 1000, len(data))))
        return data[:tail] + bytes_anywhere(data[tail:], rng)
    try:
        table = pq.read_table(io.BytesIO(data))
    except Exception:
        return bytes_anywhere(data, rng)
    try:
        names = table.column_names
    except UnicodeDecodeError:  # spoiled before
        return bytes_anywhere(data, rng)
    columns = dict(zip(names, table.columns, strict=True)) if len(set(names)) == table.num_columns else {}
    if not columns:
        return bytes_anywhere(data, rng)
    name = rng.choice(list(columns))
    match rng.randrange(5):
        case 0:
            del columns[name]
        case 1:
            columns[rng.choice(("user", "lat", "state", "", "a\nb", "\u202e", "t"))] = columns.pop(name)
        case _:
            columns[name] = _column(rng, table.num_rows)
    made = pa.table(columns)
    if rng.randrange(8) == 0:
        made = made.replace_schema_metadata({rng.choice((b"pandas", b"ARROW:schema", b"geo")): pickle.dumps(Canary())})
    buffer = io.BytesIO()
    try:
        pq.write_table(made, buffer, compression=rng.choice(("none", "zstd", "snappy", "gzip")))
    except (pa.ArrowException, ValueError):
        return bytes_anywhere(data, rng)
    return buffer.getvalue()
