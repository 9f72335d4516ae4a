"""diffprivlib's discrete Laplace noise, timed by a Python that has it: `python diffprivlib_child.py COUNT REPEATS`.

It imports nothing of this project, so that it runs in an environment of its own. Prints JSON.
"""

import json
import platform
import sys
import time
from importlib.metadata import version


def main() -> None:
    """Time REPEATS times COUNT draws, after one warm-up."""
    from diffprivlib.mechanisms import Geometric

    count, repeats = int(sys.argv[1]), int(sys.argv[2])
    mechanism = Geometric(epsilon=1.0, sensitivity=1)
    seconds = []
    for _ in range(1 + repeats):
        began = time.perf_counter()
        for _ in range(count):
            mechanism.randomise(0)
        seconds.append(time.perf_counter() - began)
    told = {
        "count": count,
        "seconds": seconds[1:],
        "version": version("diffprivlib"),
        "python": platform.python_version(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
