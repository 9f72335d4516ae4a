"""Degrees of a random graph, alone in a process: `python -m benchmarks.speed.dependence_child LEVEL EDGES`.

Prints JSON: seconds, the memory held before, and the peak of the whole process (VmHWM).
"""

# Thread pools are sized when NumPy is loaded, so this import comes first.
import benchmarks.speed.one_thread  # noqa: F401, I001

import json
import sys
import time

import numpy as np

from benchmarks.speed.growth_child import forget_peak, memory
from dphmm.dependent import degree_distribution

_CAP = 100


def main() -> None:
    """Warm up on a small graph, then measure one with ten edges to a person."""
    level, count = sys.argv[1], int(sys.argv[2])
    _degrees(_graph(1000), level)
    edges = _graph(count)
    forget_peak()
    before = memory("VmRSS")
    began = time.perf_counter()
    _degrees(edges, level)
    taken = time.perf_counter() - began
    print(json.dumps({"seconds": taken, "before_gib": before, "peak_gib": memory("VmHWM")}))


def _graph(count: int) -> np.ndarray:
    """Pairs of different people, of whom some have many more friends than others."""
    chance, people = np.random.default_rng(2), count // 10
    ends = (people * chance.random((count, 2)) ** 1.5).astype(np.int64)
    ends[:, 1] += ends[:, 0] == ends[:, 1]
    return ends % people


def _degrees(edges: np.ndarray, level: str) -> None:
    degree_distribution(edges, int(edges.max()) + 1, "independent", 1, level=level, cap=_CAP)


if __name__ == "__main__":
    main()
