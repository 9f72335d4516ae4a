"""One operation at one size, alone in a process: `python -m benchmarks.speed.growth_child OPERATION SIDE REPEATS`.

Prints JSON: seconds of the first call on the world, seconds of the repeats, and resident memory: held before, and its
peak during the first call (VmHWM of the process; tracemalloc would miss what compiled code takes).
"""

# Thread pools are sized when NumPy is loaded, so this import comes first.
import benchmarks.speed.one_thread  # noqa: F401, I001

import json
import sys
import time
from pathlib import Path

from benchmarks.speed.operations import ALL, Operation
from benchmarks.speed.timing import timed
from benchmarks.speed.worlds import GridWorld

_SMALL = 12
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main() -> None:
    """Warm up on a small world, then measure on a world of SIDE."""
    name, side, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    _repeated(ALL[name], GridWorld(_SMALL), 2)
    world = GridWorld(side)
    prepare, call = ALL[name](world)
    given = prepare(0)
    # The peak so far was of making the world.
    forget_peak()
    before = memory("VmRSS")
    began = time.perf_counter()
    call(given)
    first = time.perf_counter() - began
    peak = memory("VmHWM")
    del given
    seconds = [timed(call, 1, warmups=0, prepare=lambda n=n: prepare(n)).median for n in range(1, repeats + 1)]
    print(json.dumps({"first": first, "seconds": seconds, "peak_gib": peak, "before_gib": before}))


def _repeated(operation: Operation, world: GridWorld, repeats: int) -> None:
    prepare, call = operation(world)
    for number in range(repeats):
        call(prepare(number))


def forget_peak() -> None:
    """Begin a new peak of this process's memory."""
    _CLEAR.write_text("5")


def memory(field: str) -> float:
    """A field of this process's status, in GiB."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 2**20


if __name__ == "__main__":
    main()
