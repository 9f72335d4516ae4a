"""Models as files: ``model.npz``, arrays and one JSON text, no pickles.

Members: ``sha256`` (of all the others), ``format``, ``meta`` (JSON: step, start, provenance, the space's
description), ``initial``, ``indptr``, ``indices``, ``data`` and the space's arrays under ``space/``. They are
stored, not compressed: a file cannot unpack to more than its own size. The hash finds accidents, not forgery;
what a forged file says still has to pass the checks of MarkovModel and of the space.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.storage.inputs import replacing

#: Raised whenever an older dphmm could misread a file.
FORMAT = 1
_MEMBERS = 64
_MODEL = ("format", "meta", "initial", "indptr", "indices", "data")
_HASH = re.compile(rb"sha256:([0-9a-f]{64})")
# The header exactly as numpy writes it, for plain numbers and text: nothing is evaluated, objects cannot be
# named.
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufUS][0-9]{1,9})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n"
)

Arrays = dict[str, NDArray[Any]]


def save_model(model: MarkovModel, path: str | os.PathLike[str]) -> None:
    """Write the model to ``path``: at once or not at all, byte for byte the same for equal models."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InvalidInput("path", str(path), "a file in a folder that exists")
    meta: dict[str, Any] = {
        "step": model.step,
        "start": model.start,
        "provenance": model.provenance,
        "space": None,
    }
    transition = model.transition
    arrays: Arrays = {
        "format": np.array(FORMAT, dtype=np.int64),
        "initial": model.initial,
        "indptr": transition.indptr,
        "indices": transition.indices,
        "data": transition.data,
    }
    if model.space is not None:
        meta["space"], space_arrays = model.space.describe()
        arrays |= {f"space/{name}": np.asarray(array) for name, array in space_arrays.items()}
    text = json.dumps(meta, sort_keys=True, allow_nan=False)
    arrays["meta"] = np.frombuffer(text.encode(), dtype=np.uint8)
    contents = {f"{name}.npy": _encoded(array) for name, array in arrays.items()}
    _replace(path, contents)


def load_model(path: str | os.PathLike[str]) -> MarkovModel:
    """Read a model written by :func:`save_model`.

    Raises InvalidInput, in one line naming the file: not a file, not a model, cut short or changed (with the
    hash that was expected), or written in a newer format; and as MarkovModel does.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidInput("model", str(path), "an existing model file")
    with path.open("rb") as file:
        arrays = _read(path, file)
    try:
        meta = json.loads(arrays["meta"].tobytes())
        step, start, provenance, described = (meta[key] for key in ("step", "start", "provenance", "space"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidInput(str(path), "a description that is not JSON of a model", "a model file") from None
    return MarkovModel(
        arrays["initial"],
        _transition(path, arrays),
        space=_space(described, arrays),
        step=step,
        start=start,
        provenance=provenance,
    )


def _transition(path: Path, arrays: Arrays) -> Any:
    indptr, indices = arrays["indptr"], arrays["indices"]
    try:
        if indptr.dtype.kind == "i" and indices.dtype.kind == "i":
            n = len(indptr) - 1
            return sparse.csr_array((arrays["data"], indices, indptr), shape=(n, n), copy=True)
    except (ValueError, TypeError):
        pass
    raise InvalidInput(str(path), "rows that are no sparse matrix", "a model file")


def _space(described: Any, arrays: Arrays) -> Any:
    if described is None:
        return None
    if not isinstance(described, dict):
        raise InvalidInput("space", type(described).__name__, "the description of a space")
    from dphmm.states.space import StateSpace

    prefix = "space/"
    return StateSpace.from_description(
        described, {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
    )


def _content_hash(contents: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(f"{name} {len(contents[name])}\n".encode() + contents[name])
    return digest.hexdigest()


def _replace(path: Path, contents: dict[str, bytes]) -> None:
    # The hash comes first, so that even a file cut short can say which contents it should have had.
    members = {"sha256": f"sha256:{_content_hash(contents)}\n".encode(), **contents}
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            # A ZipInfo of its own date (1980): equal models give equal files.
            archive.writestr(zipfile.ZipInfo(name), content)


def _read(path: Path, file: IO[bytes]) -> Arrays:
    expected = _expected(file)
    try:
        with zipfile.ZipFile(file) as archive:
            contents = {name: archive.read(name) for name in _names(path, archive)}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, struct.error):
        raise InvalidInput(str(path), "a file that cannot be read as a model", expected) from None
    except (ValueError, OSError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(str(path), "a file that cannot be read as a model", expected) from None
    _check_format(path, contents)
    written = contents.pop("sha256", b"")
    found = _content_hash(contents)
    if written != f"sha256:{found}\n".encode():
        raise InvalidInput(str(path), f"contents with SHA-256 {found[:16]}", expected)
    missing = [name for name in _MODEL if f"{name}.npy" not in contents]
    if missing:
        raise InvalidInput(str(path), f"an archive without {missing[0]}", "a model file")
    return {name.removesuffix(".npy"): _decoded(path, name, content) for name, content in contents.items()}


def _expected(file: IO[bytes]) -> str:
    match = _HASH.search(file.read(1024))
    file.seek(0)
    if match is None:
        return "a model file written by save_model"
    return f"contents with SHA-256 {match[1][:16].decode()}: it was cut short or changed"


def _names(path: Path, archive: zipfile.ZipFile) -> list[str]:
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(members) > _MEMBERS or len(set(names)) < len(names):
        raise InvalidInput(str(path), f"{len(members)} members", f"at most {_MEMBERS}, each once")
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise InvalidInput(str(path), f"{member.filename!r} compressed", "members stored uncompressed")
    # Members that overlap would still make a small file long to read.
    total = sum(member.file_size for member in members)
    if total > path.stat().st_size:
        raise InvalidInput(str(path), f"{total} bytes in members", "at most the file's own size")
    return names


def _check_format(path: Path, contents: dict[str, bytes]) -> None:
    # Before the hash: a newer format may hash its members in another way.
    if "format.npy" not in contents:
        raise InvalidInput(str(path), "an archive without a format number", "a model file")
    number = _decoded(path, "format.npy", contents["format.npy"])
    if number.shape != () or number.dtype.kind != "i" or number < 1:
        raise InvalidInput(str(path), "a format number that is none", "a model file")
    if number > FORMAT:
        raise InvalidInput(str(path), f"model format {int(number)}", f"at most {FORMAT}: upgrade dphmm to read it")


def _encoded(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _decoded(path: Path, name: str, content: bytes) -> NDArray[Any]:
    start = 10 + int.from_bytes(content[8:10], "little")
    header = _HEADER.fullmatch(content[10:start])
    if content[:8] != b"\x93NUMPY\x01\x00" or header is None:
        raise InvalidInput(str(path), f"{name!r}, which is no plain array", "numbers and text only")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(length) for length in header[3].split(b",") if length.strip())
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise InvalidInput(str(path), f"{name!r} of another size than it says", "a model file")
    return np.ndarray(shape, dtype, content, start, order="F" if header[2] == b"True" else "C")
