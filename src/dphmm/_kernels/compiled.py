"""The one decorator of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import event

from dphmm._kernels import announced
from dphmm._kernels.cache import KernelCache, writable

P = ParamSpec("P")
R = TypeVar("R")

#: Every kernel that was imported; none where Numba is told to compile nothing.
KERNELS: list[Any] = []
_OPTIONS: dict[str, Any] = {"nogil": True}


class _Announcer(event.Listener):
    """Numba broadcasts what it compiles, not what it finds on disk."""

    def on_start(self, started: event.Event) -> None:
        if announced.tell is not None:
            cache = getattr(started.data["dispatcher"], "_cache", None)
            announced.tell(isinstance(cache, KernelCache) and writable(cache.cache_path))

    def on_end(self, _: event.Event) -> None:
        """Nothing to say."""


class _Calls(event.Listener):
    """Numba broadcasts when it takes the lock of LLVM, and when it gives it back."""

    def on_start(self, _: event.Event) -> None:
        announced.llvm_calls += 1

    def on_end(self, _: event.Event) -> None:
        announced.llvm_calls -= 1


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
event.register("numba:llvm_lock", _Calls())  # type: ignore[no-untyped-call]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on first use; its machine code is kept on disk between processes."""
    return _compiled(function, _OPTIONS)


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """The same for a short loop that other kernels call: they compile it as a part of their own code.

    A call by itself took up to a third longer.
    """
    return _compiled(function, {**_OPTIONS, "inline": "always"})


def _compiled(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    compiled: Any = numba.njit(**options)(function)
    if compiled is not function:
        compiled._cache = KernelCache(function, options)
        KERNELS.append(compiled)
    return cast("Callable[P, R]", compiled)


def compiles() -> bool:
    """Whether kernels are compiled at all: with NUMBA_DISABLE_JIT=1 they are plain Python."""
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
