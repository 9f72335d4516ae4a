"""Spoiling model files: zip members of arrays and one JSON text, most often with a hash that fits."""

from __future__ import annotations

import io
import json
import os
import random
import re
import zipfile
from typing import Any

import numpy as np

from faults.forging import content_hash, npy, text_array
from fuzz.archive_files import NAMES
from fuzz.mutations import bytes_anywhere, json_tree

_DTYPES = (
    "<f8",
    "<f4",
    "<i8",
    "<i4",
    "|b1",
    "|O",
    "<U1",
    "|S3",
    "<c16",
    "<M8[s]",
    "<f2",
    "|u1",
    ">f8",
    "<U999999999",
    "V8",
)
_SHAPES = (
    "()",
    "(0,)",
    "(1,)",
    "(2, 2)",
    "(-1,)",
    "(1000000000000,)",
    "(4611686018427387904, 4)",
    "(3, 0)",
    "(1, 1, 1, 1, 1)",
)


class Canary:
    """Harmless when it is unpickled; the watch sees it being looked up."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (os.fspath, ("unpickled",))


def model_file(data: bytes, rng: random.Random) -> bytes:
    """A model file with a member spoiled, and most often a hash that fits."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist() if name != "sha256"}
    except Exception:
        return bytes_anywhere(data, rng)
    if not members:
        return bytes_anywhere(data, rng)
    name = rng.choice(sorted(members))
    match rng.randrange(8):
        case 0:
            del members[name]
        case 1:
            members[rng.choice((*NAMES, name + "x", "sha256.npy"))] = members.pop(name)
        case 2 | 3:
            members[name] = _header(members[name], rng)
        case 4:
            members[name] = _array(rng)
        case 5 if "meta.npy" in members:
            members["meta.npy"] = _meta(members["meta.npy"], rng)
        case 6:
            members[name] = _values(members[name], rng)
        case _:
            members[name] = bytes_anywhere(members[name], rng)
    return _zipped(members, rng)


def _header(content: bytes, rng: random.Random) -> bytes:
    kind, shape = rng.choice(_DTYPES).encode(), rng.choice(_SHAPES).encode()
    if rng.randrange(2):
        return re.sub(rb"'descr': '[^']*'", b"'descr': '" + kind + b"'", content, count=1)
    return re.sub(rb"'shape': \([^)]*\)", b"'shape': " + shape, content, count=1)


def _array(rng: random.Random) -> bytes:
    values: Any = rng.choice(
        (
            [],
            0,
            [0.5, 0.5],
            [[1, 2], [3, 4]],
            [float("nan")],
            [1e308, -1e308],
            [2**62, -(2**62)],
            ["a"],
            [True],
            [-1, 7],
        )
    )
    if rng.randrange(4) == 0:
        return npy(np.array([Canary()], dtype=object), pickled=True)
    return npy(values)


def _values(content: bytes, rng: random.Random) -> bytes:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False).copy()
    except Exception:
        return bytes_anywhere(content, rng)
    flat = array.reshape(-1)
    if flat.size and flat.dtype.kind in "iuf":
        odd = (
            (0, 1, 2, 200, 2**31 - 1)
            if flat.dtype.kind in "iu"
            else (0.0, -0.0, 1.0, -1e-17, np.nan, np.inf, 1e308, 5e-324)
        )
        with np.errstate(all="ignore"):
            flat[rng.randrange(flat.size)] = np.array(rng.choice(odd)).astype(flat.dtype)
    return npy(array)


def _meta(content: bytes, rng: random.Random) -> bytes:
    start = 10 + int.from_bytes(content[8:10], "little")
    try:
        document = json.loads(content[start:])
    except (ValueError, RecursionError):
        return bytes_anywhere(content, rng)
    try:
        return text_array(json.dumps(json_tree(document, rng)))
    except UnicodeEncodeError:
        return bytes_anywhere(content, rng)


def _zipped(members: dict[str, bytes], rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    packed = zipfile.ZIP_DEFLATED if rng.randrange(12) == 0 else zipfile.ZIP_STORED
    digest = "0" * 64 if rng.randrange(12) == 0 else content_hash(members)
    with zipfile.ZipFile(buffer, "w", packed) as archive:
        archive.writestr(zipfile.ZipInfo("sha256"), f"sha256:{digest}\n")
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, packed)
    return buffer.getvalue()
