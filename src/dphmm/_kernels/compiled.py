"""The one decorator of the kernels, and the on-disk cache of what it compiles.

Numba's own cache does not notice that another file of the kernels was edited, so the cache lives in a folder named
by a hash of all their sources: an edit compiles afresh, an upgrade never runs stale machine code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import platformdirs
from numba.core import event

from dphmm._kernels import announced

P = ParamSpec("P")
R = TypeVar("R")


def _source_hash() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_here() -> bool:
    config: Any = numba.config
    if config.CACHE_DIR:
        return True
    folder = Path(platformdirs.user_cache_dir("dphmm")) / "kernels" / _source_hash()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    config.CACHE_DIR = str(folder)
    return True


_CACHED = _cache_here()


class _Announcer(event.Listener):
    """Numba broadcasts what it compiles, not what it finds on disk."""

    def on_start(self, _: event.Event) -> None:
        if announced.tell is not None:
            announced.tell(_CACHED)

    def on_end(self, _: event.Event) -> None:
        """Nothing to say."""


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on first use; its machine code is kept on disk between processes."""
    return cast("Callable[P, R]", numba.njit(cache=_CACHED, nogil=True)(function))
