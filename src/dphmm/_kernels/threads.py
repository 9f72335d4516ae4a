"""How many threads compiled loops and products of matrices may use."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def cores() -> int:
    """How many cores this process may use; fewer where ``OMP_NUM_THREADS`` says so, as for other libraries.

    Spark sets it for its Python workers: each task has its own share of a machine, and all tasks run at once.
    """
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(own, int(given)) if given.isdecimal() and int(given) else own


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
