"""How many threads compiled loops may use."""

from __future__ import annotations

import os


def cores() -> int:
    """How many cores this process may use; fewer where ``OMP_NUM_THREADS`` says so, as for other libraries.

    Spark sets it for its Python workers: each task has its own share of a machine, and all tasks run at once.
    """
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(own, int(given)) if given.isdecimal() and int(given) else own
