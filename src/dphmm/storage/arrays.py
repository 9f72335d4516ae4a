"""Arrays in one file: a ZIP of plain NumPy arrays with a hash over them, no pickles.

Members: ``sha256`` (of all the others), ``format``, and arrays ``<name>.npy``, of which ``meta`` is a JSON text. They
are stored, not compressed: a file cannot unpack to more than its own size. The hash finds accidents, not forgery; what
a forged file says still has to pass the checks of whatever it claims to be.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.storage.inputs import replacing

_MEMBERS = 64
_HASH = re.compile(rb"sha256:([0-9a-f]{64})")
# The header exactly as numpy writes it, for plain numbers and text: nothing is evaluated, objects cannot be
# named.
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufUS][0-9]{1,9})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n"
)

Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, meta: dict[str, Any], arrays: Arrays, format_number: int) -> None:
    """Write at once or not at all, byte for byte the same for equal arrays and descriptions."""
    if not path.parent.is_dir():
        raise InvalidInput("path", str(path), "a file in a folder that exists")
    text = json.dumps(meta, sort_keys=True, allow_nan=False)
    whole = {
        "format": np.array(format_number, dtype=np.int64),
        **arrays,
        "meta": np.frombuffer(text.encode(), dtype=np.uint8),
    }
    _replace(path, {f"{name}.npy": _encoded(array) for name, array in whole.items()})


def read_arrays(path: Path, latest_format: int, writer: str, what: str = "model") -> Arrays:
    """The arrays of a file that ``writer`` wrote; ``what`` it is called.

    Raises InvalidInput, in one line naming the file: not a file, none of this kind, cut short or changed (with the hash
    that was expected), or written in a newer format.
    """
    if not path.is_file():
        raise InvalidInput(what, str(path), f"an existing {what} file")
    with path.open("rb") as file:
        return _read(path, file, latest_format, writer, what)


def check_members(path: Path, arrays: Arrays, needed: Sequence[str], what: str = "model") -> None:
    """InvalidInput naming the first array that is not there."""
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise InvalidInput(str(path), f"an archive without {missing[0]}", f"a {what} file")


def description(path: Path, arrays: Arrays, keys: Sequence[str], what: str = "model") -> list[Any]:
    """The values of the JSON text ``meta`` under these keys."""
    try:
        meta = json.loads(arrays["meta"].tobytes())
        return [meta[key] for key in keys]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidInput(str(path), f"a description that is not JSON of a {what}", f"a {what} file") from None


def compressed_rows(path: Path, arrays: Arrays) -> Any:
    """The square csr_array of ``indptr``, ``indices`` and ``data``."""
    indptr, indices = arrays["indptr"], arrays["indices"]
    try:
        if indptr.dtype.kind == "i" and indices.dtype.kind == "i":
            n = len(indptr) - 1
            return sparse.csr_array((arrays["data"], indices, indptr), shape=(n, n), copy=True)
    except (ValueError, TypeError):
        pass
    raise InvalidInput(str(path), "rows that are no sparse matrix", "a model file")


def content_hash(contents: dict[str, bytes]) -> str:
    """Hex SHA-256 of all members, by name."""
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(f"{name} {len(contents[name])}\n".encode() + contents[name])
    return digest.hexdigest()


def _replace(path: Path, contents: dict[str, bytes]) -> None:
    # The hash comes first, so that even a file cut short can say which contents it should have had.
    members = {"sha256": f"sha256:{content_hash(contents)}\n".encode(), **contents}
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            # A ZipInfo of its own date (1980): equal models give equal files.
            archive.writestr(zipfile.ZipInfo(name), content)


def _read(path: Path, file: IO[bytes], latest_format: int, writer: str, what: str) -> Arrays:
    expected = _expected(file, writer, what)
    unreadable = InvalidInput(str(path), f"a file that cannot be read as a {what}", expected)
    try:
        with zipfile.ZipFile(file) as archive:
            contents = {name: archive.read(name) for name in _names(path, archive)}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, struct.error):
        raise unreadable from None
    except (ValueError, OSError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise unreadable from None
    _check_format(path, contents, latest_format, what)
    written = contents.pop("sha256", b"")
    found = content_hash(contents)
    if written != f"sha256:{found}\n".encode():
        raise InvalidInput(str(path), f"contents with SHA-256 {found[:16]}", expected)
    return {name.removesuffix(".npy"): _decoded(path, name, content) for name, content in contents.items()}


def _expected(file: IO[bytes], writer: str, what: str) -> str:
    match = _HASH.search(file.read(1024))
    file.seek(0)
    if match is None:
        return f"a {what} file written by {writer}"
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


def _check_format(path: Path, contents: dict[str, bytes], latest: int, what: str) -> None:
    # Before the hash: a newer format may hash its members in another way.
    if "format.npy" not in contents:
        raise InvalidInput(str(path), "an archive without a format number", f"a {what} file")
    number = _decoded(path, "format.npy", contents["format.npy"])
    if number.shape != () or number.dtype.kind != "i" or number < 1:
        raise InvalidInput(str(path), "a format number that is none", f"a {what} file")
    if number > latest:
        raise InvalidInput(str(path), f"{what} format {int(number)}", f"at most {latest}: upgrade dphmm to read it")


def _encoded(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _decoded(path: Path, name: str, content: bytes) -> NDArray[Any]:
    start = 10 + int.from_bytes(content[8:10], "little")
    header = _HEADER.fullmatch(content[10:start])
    if content[:8] != b"\x93NUMPY\x01\x00" or header is None:
        raise InvalidInput(str(path), f"{name!r}, which is no plain array", "numbers and text only")
    try:
        dtype = np.dtype(header[1].decode())
    except TypeError:
        raise InvalidInput(str(path), f"{name!r} of an unknown type", "numbers and text only") from None
    shape = tuple(int(length) for length in header[3].split(b",") if length.strip())
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise InvalidInput(str(path), f"{name!r} of another size than it says", "a file as dphmm wrote it")
    return np.ndarray(shape, dtype, content, start, order="F" if header[2] == b"True" else "C")
