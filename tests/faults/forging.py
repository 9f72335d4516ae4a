"""Model files made by hand, byte by byte: whatever they say, with a hash that fits, so that deeper checks are reached.

Written from the description of the format, not with the library's own writer.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse


def npy(array: Any, pickled: bool = False) -> bytes:
    """An array as the bytes of a .npy file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), version=(1, 0), allow_pickle=pickled)
    return buffer.getvalue()


def text_array(text: str) -> bytes:
    """A text as a .npy file of bytes."""
    return npy(np.frombuffer(text.encode(), dtype=np.uint8))


def model_members(
    initial: Any, transition: Any, names: Sequence[str] | None = None, answers: Any = None, **meta: Any
) -> dict[str, bytes]:
    """The members of a model file; states 0..N-1 with answers 0..N-1 unless given."""
    matrix = sparse.csr_array(transition)
    n = matrix.shape[0]
    lattice = np.arange(n, dtype=np.int64)[:, None] if answers is None else np.asarray(answers, dtype=np.int64)
    d = lattice.shape[1]
    space: dict[str, Any] = {"kind": "plain", "pitch": [1.0] * d, "origin": [0.0] * d}
    if names is not None:
        space["names"] = list(names)
    described = {"step": None, "start": "before", "provenance": {"method": "given"}, "space": space, **meta}
    return {
        "format.npy": npy(np.int64(1)),
        "meta.npy": text_array(json.dumps(described)),
        "initial.npy": npy(initial),
        "indptr.npy": npy(matrix.indptr.astype(np.int32)),
        "indices.npy": npy(matrix.indices.astype(np.int32)),
        "data.npy": npy(matrix.data),
        "space/lattice.npy": npy(lattice),
    }


def content_hash(members: Mapping[str, bytes]) -> str:
    """The hash that a model file says of its members."""
    digest = hashlib.sha256()
    for name in sorted(members):
        digest.update(f"{name} {len(members[name])}\n".encode() + members[name])
    return digest.hexdigest()


def write_members(path: Path, members: Mapping[str, bytes], sha256: str | None = None) -> Path:
    """A model file of these members, with their hash unless another is given."""
    digest = content_hash(members) if sha256 is None else sha256
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("sha256"), f"sha256:{digest}\n")
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def write_model(path: Path, initial: Any, transition: Any, **given: Any) -> Path:
    """A model file."""
    return write_members(path, model_members(initial, transition, **given))


def read_members(path: Path) -> dict[str, bytes]:
    """The members of a model file without its hash."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "sha256"}
