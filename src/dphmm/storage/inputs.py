"""Open what users name: plain files, the same at the end as at the start; write at once or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dphmm.errors import InvalidInput

PathLike = str | os.PathLike[str]
# What pickle, joblib and NumPy's object arrays come in: loading them runs code.
_PICKLES = (".pkl", ".pickle", ".joblib", ".p", ".npy", ".npz", ".dill")


def checked_input(path: PathLike, field: str = "path") -> Path:
    """The path of an existing plain file that may be read.

    Raises InvalidInput for a missing file, a folder, a device, a FIFO or socket, and formats that carry code.
    """
    file = Path(path)
    if "\0" in str(file):
        raise InvalidInput(field, ascii(str(file)), "a path without NUL")
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise InvalidInput(field, str(file), f"a file that exists ({error.strerror})") from None
    if stat.S_ISDIR(mode):
        raise InvalidInput(field, str(file), "a file, not a folder")
    if not stat.S_ISREG(mode):
        raise InvalidInput(field, str(file), "a plain file, not a device or a pipe")
    if file.suffix.lower() in _PICKLES:
        raise InvalidInput(field, str(file), "a table; pickles are never loaded")
    if not os.access(file, os.R_OK):
        raise InvalidInput(field, str(file), "a file that may be read")
    return file


def checked_output(path: PathLike, inputs: Iterable[PathLike] = (), field: str = "output") -> Path:
    """A path that may be written: its folder exists and it is none of the inputs.

    Raises InvalidInput; call it before any work.
    """
    file = Path(path)
    if not file.parent.is_dir():
        raise InvalidInput(field, str(file), "a file in a folder that exists")
    if file.exists() and not file.is_file():
        raise InvalidInput(field, str(file), "a plain file")
    if not os.access(file.parent, os.W_OK):
        raise InvalidInput(field, str(file), "a file in a folder that may be written")
    for given in inputs:
        if file.exists() and Path(given).exists() and file.samefile(given):
            raise InvalidInput(field, str(file), "another file than the input")
    return file


@contextmanager
def steady(path: PathLike) -> Iterator[str]:
    """Hex SHA-256 of a file that must not change inside the block; InvalidInput if it did."""
    before = file_digest(path)
    yield before
    if file_digest(path) != before:
        raise InvalidInput(str(path), "a file that changed while it was read", "a file nobody is writing to")


def file_digest(path: PathLike) -> str:
    """Hex SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: PathLike, *, private: bool = False) -> Iterator[Path]:
    """A temporary file in the same folder that becomes ``path`` when the block ends well, else disappears.

    ``private``: readable by its owner alone.
    """
    final = checked_output(path)
    # Named before it is made, so that there is no moment at which a signal leaves a file that nobody removes.
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(8)}.part")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(final)
    except OSError as error:
        # What fails while it is written to does not say what it is.
        if error.errno is not None and error.filename in (None, str(temporary)):
            error.filename = str(final)
        raise
    finally:
        temporary.unlink(missing_ok=True)
