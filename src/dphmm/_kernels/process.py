"""The state that compiled loops share with the process around them: messages about the compiler, and threads.

Apart from `dphmm._kernels.compiled`: to ask for it loads no compiler.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

#: Called before each kernel that the cache on disk does not have: with whether it will have it then.
tell: Callable[[bool], None] | None = None
#: Called with the one line that says why compiled kernels are not kept; None is Python's own warnings.
warn: Callable[[str], None] | None = None
#: Calls of LLVM that have not returned. It drops an exception that is raised in Python code that it calls back.
llvm_calls = 0
_refused: set[Path] = set()


def unkept(folder: Path, error: OSError) -> None:
    """Warn, once for a folder, that compiled code cannot be written to it."""
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


P = ParamSpec("P")
R = TypeVar("R")


def cores() -> int:
    """The number of cores that this process may use; fewer where ``OMP_NUM_THREADS`` says so, as for other libraries.

    Spark sets it for its Python workers: each task has its own share of a machine, and all tasks run at once.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wished = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(usable, int(wished)) if wished.isdecimal() and int(wished) else usable


def on_one_thread(work: Callable[P, R]) -> Callable[P, R]:
    """The same function, during which BLAS uses one thread.

    The threads of many small products mostly wait for each other, on a busy machine for the cores as well: a report
    that takes 6 s of one core took six minutes of two.
    """

    @wraps(work)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return work(*args, **kwargs)

    return limited


@cache
def _controller() -> Any:
    # What compiled kernels call: it has to be loaded to be found.
    import scipy.linalg.cython_blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
