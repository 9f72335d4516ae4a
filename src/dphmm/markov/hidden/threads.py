"""One BLAS thread where many small matrix products follow each other: more would mostly wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def on_one_thread(work: Callable[P, R]) -> Callable[P, R]:
    """The same function, during which BLAS uses one thread."""

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
