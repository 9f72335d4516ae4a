"""One iteration on one long sequence, alone in a process: `python -m benchmarks.speed.hmm_child CHECKPOINT LENGTH`.

Prints JSON: its seconds, the memory held before it, and how much more it took at its peak (VmHWM).
"""

# Thread pools are sized when NumPy is loaded, so this import comes first.
import benchmarks.speed.one_thread  # noqa: F401, I001

import json
import sys
import time
from typing import Any

import dphmm
from benchmarks.speed.growth_child import forget_peak, memory
from benchmarks.speed.hmm import Shape, Start

_STATES = 50


def main() -> None:
    """Warm up on a short sequence, then measure on one of LENGTH."""
    checkpoint, length = sys.argv[1] == "yes", int(sys.argv[2])
    _iteration(Start.of(Shape(_STATES, 1, 1000)), checkpoint)
    start = Start.of(Shape(_STATES, 1, length))
    forget_peak()
    before = memory("VmRSS")
    began = time.perf_counter()
    _iteration(start, checkpoint)
    taken = time.perf_counter() - began
    print(json.dumps({"seconds": taken, "before_gib": before, "added_gib": memory("VmHWM") - before}))


def _iteration(start: Start, checkpoint: bool) -> Any:
    model = dphmm.markov.CategoricalHMM(_STATES, n_features=6, n_iter=1, init_params="", checkpoint=checkpoint)
    model.startprob_, model.transmat_, model.emissionprob_ = start.startprob, start.transmat, start.emissionprob
    return model.fit(start.symbols)


if __name__ == "__main__":
    main()
