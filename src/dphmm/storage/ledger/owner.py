"""A folder beside a ledger for the data owner alone: LEDGER.owner, and the key of the digests that are in it.

A digest without a key confirms a guess of somebody's rows. The ledger may be shown to whoever checks a release; this
folder may not.

Proof: docs/proofs/account.md.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from tempfile import mkstemp

from dphmm.errors import InvalidInput
from dphmm.storage.inputs import PathLike

_KEY = "key"
_BYTES = 32


def owner_folder(ledger: PathLike) -> Path:
    """Where files for the owner of a ledger are."""
    return Path(f"{os.fspath(ledger)}.owner")


def owner_key(ledger: PathLike, create: bool) -> bytes | None:
    """The owner's key of a ledger, 32 random bytes; where there is none yet, a new one (``create``) or None.

    Raises InvalidInput for a file that is no key.
    """
    folder = owner_folder(ledger)
    path = folder / _KEY
    if create and not path.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        opened, temporary = mkstemp(prefix=f".{_KEY}.", dir=folder)
        try:
            with os.fdopen(opened, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
                os.fsync(file.fileno())
            # Of several programs that make one at once the first is heeded by all.
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            Path(temporary).unlink()
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != _BYTES:
        raise InvalidInput(str(path), f"{len(key)} bytes", f"the key of {_BYTES} bytes that dphmm wrote")
    return key
