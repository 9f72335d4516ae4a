"""Who is told of the compiler's work. Apart from `compiled`: to ask for it loads no compiler."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

#: Called before each kernel that the cache on disk does not have: with whether it will have it then.
tell: Callable[[bool], None] | None = None
#: Called with the one line that says why compiled kernels are not kept; None is Python's own warnings.
warn: Callable[[str], None] | None = None
#: Calls of LLVM that have not returned. It drops an exception that is raised in Python code that it calls back.
llvm_calls = 0
_refused: set[Path] = set()


def unkept(folder: Path, error: OSError) -> None:
    """Say, once for a folder, that what was compiled cannot be written to it."""
    if folder in _refused:
        return
    _refused.add(folder)
    why = error.strerror or type(error).__name__
    line = f"compiled kernels cannot be kept in {folder} ({why}), so every process compiles them again"
    line += "; remedy: dphmm warm --to DIR, and DPHMM_KERNELS=DIR"
    if warn is None:
        warnings.warn(line, RuntimeWarning, stacklevel=2)
    else:
        warn(line)
