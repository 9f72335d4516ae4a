"""Ways of spoiling a valid file: bytes anywhere, and by structure, so that what is spoiled still reaches deep checks.

Every function takes a ``random.Random`` (Hypothesis' own or a seeded one) and gives new contents.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]

TOKENS = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\n",
    b"\r\n",
    b"\r",
    b'"',
    b"'",
    b",",
    b";",
    b"\t",
    b"nan",
    b"NaN",
    b"inf",
    b"-Infinity",
    b"1e999",
    b"-0.0",
    b"5e-324",
    b"9" * 25,
    b"9" * 5000,
    b"-1",
    b"1.5",
    b"0x10",
    b"1_0",
    b"true",
    b"null",
    b"{",
    b"[" * 2000,
    b"]",
    b"}",
    "\u202e".encode(),
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    "\u0661".encode(),
    b"=cmd()",
    b"2024-02-30T00:00:00Z",
    b"9999-12-31T23:59:60Z",
    b"../../etc/passwd",
    b"\x80\x04.",
    b"PK\x03\x04",
    b"PAR1",
    b"\x1f\x8b",
    b"\x93NUMPY",
    b"x" * 300,
)


def bytes_anywhere(data: bytes, rng: random.Random) -> bytes:
    """One flip, cut, swap, repetition or inserted token."""
    at = rng.randrange(len(data) + 1)
    until = min(len(data), at + rng.choice((1, 1, 2, 4, 16, 64, 1024)))
    match rng.randrange(7):
        case 0 if at < len(data):
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        case 1 if at < len(data):
            return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        case 2:
            return data[:at]
        case 3:
            return data[:at] + data[until:]
        case 4:
            return data[:until] + data[at:until] * rng.choice((1, 2, 40)) + data[until:]
        case 5:
            other = rng.randrange(len(data) + 1)
            first, second = sorted((at, other))
            return data[second:] + data[first:second] + data[:first]
    return data[:at] + rng.choice(TOKENS) + data[at:]


def _odd(rng: random.Random) -> Any:
    return rng.choice(
        (
            None,
            True,
            -1,
            0,
            1,
            1.5,
            2**53,
            2**63,
            10**400,
            1e308,
            float("nan"),
            float("-inf"),
            "",
            "x" * 10_000,
            "nan",
            "1/0",
            "0",
            "-1/3",
            "1e9",
            "a\nb",
            "\u202e",
            "\ud800",
            [],
            {},
            [[]],
            [0] * 1000,
            {"kind": "complete"},
            "union",
            "support",
            {"parts": [{"parts": [{"parts": []}]}]},
            [[0, 1], [1]],
            [[0, 10**30]],
            [[True, False]],
        )
    )


def _places(document: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    if isinstance(document, dict | list):
        keys = list(document) if isinstance(document, dict) else range(min(len(document), 50))
        for key in keys:
            found.append((document, key))
            _places(document[key], found)
    return found


def json_tree(document: Any, rng: random.Random) -> Any:
    """The document with one value replaced, removed, repeated, moved or renamed."""
    document = json.loads(json.dumps(document))
    places = _places(document, [])
    if not places:
        return _odd(rng)
    holder, key = rng.choice(places)
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice((key + "s", "", "kind", "format", "weight", "\0"))] = holder.pop(key)
        case 2 if isinstance(holder, list):
            holder.insert(key, holder[key])
        case 3:
            other_holder, other = rng.choice(places)
            try:
                holder[key] = json.loads(json.dumps(other_holder[other]))
            except (KeyError, IndexError):
                return document
        case _:
            holder[key] = _odd(rng)
    return document


def json_text(data: bytes, rng: random.Random) -> bytes:
    """A JSON text: its tree spoiled, or a key written twice."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return bytes_anywhere(data, rng)
    text = json.dumps(json_tree(document, rng))
    if rng.randrange(8) == 0 and text.startswith("{") and ":" in text:
        text = "{" + text[1 : text.index(":")] + ": 0, " + text[1:]
    return text.encode("utf-8", "surrogatepass")


def json_lines(data: bytes, rng: random.Random) -> bytes:
    """Lines of JSON of which one is spoiled."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return bytes_anywhere(data, rng)
    at = rng.randrange(len(lines))
    lines[at] = json_text(lines[at], rng) + b"\n"
    return b"".join(lines)


def table_text(delimiter: str) -> Mutation:
    """Cells, rows and columns of delimited text."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        text = data.decode("utf-8", "replace")
        rows = [line.split(delimiter) for line in text.split("\n")]
        at = rng.randrange(len(rows))
        column = rng.randrange(max(1, len(rows[at])))
        token = rng.choice(TOKENS).decode("utf-8", "replace")
        match rng.randrange(9):
            case 0:
                rows[at][column : column + 1] = [token]
            case 1:
                del rows[at][column : column + 1]
            case 2:
                rows[at].insert(column, token)
            case 3:
                del rows[at]
            case 4:
                rows.insert(at, rows[rng.randrange(len(rows))])
            case 5:
                del rows[0]
            case 6:
                for row in rows:
                    del row[column : column + 1]
            case 7:
                for row in rows[1:]:
                    row[column : column + 1] = [token]
            case _:
                rows[0][column % max(1, len(rows[0])) :][:1] = [token]
                rows[at] = [f'"{cell}' for cell in rows[at]]
        return "\n".join(delimiter.join(row) for row in rows).encode("utf-8", "replace")

    return mutate


def quoted_cells(data: bytes, rng: random.Random) -> bytes:
    """A well-formed CSV in which cells hold quotes, separators and line ends."""
    rows = [line.split(",") for line in data.decode("utf-8", "replace").splitlines()]
    for row in rows[1:]:
        if row and rng.randrange(3) == 0:
            row[rng.randrange(len(row))] += rng.choice(('"', ",", "\n", "\r\n", "a\nb", "=1+1", "\t", "\u2028"))
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def inside_gzip(inner: Mutation) -> Mutation:
    """What is packed is spoiled and packed again; or the packed bytes are."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        try:
            plain = gzip.decompress(data)
        except (OSError, EOFError, ValueError):
            return bytes_anywhere(data, rng)
        except Exception as error:
            if type(error).__module__ != "zlib":
                raise
            return bytes_anywhere(data, rng)
        return gzip.compress(inner(plain, rng), compresslevel=1, mtime=0)

    return mutate


def some_token(data: bytes, rng: random.Random) -> bytes:
    """A file that is one token and nothing else."""
    return rng.choice(TOKENS)
