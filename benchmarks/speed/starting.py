"""Starting: `import dphmm` in a fresh process, all its names, and a first release with and without compiled code."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, below
from benchmarks.speed.timing import Spread

TARGET = below(0.5)

_IMPORT = "import dphmm"
_EVERY_NAME = "import dphmm\nfor name in dphmm.__all__: getattr(dphmm, name)"
_FIRST_RELEASE = """
import numpy as np, dphmm
points = np.stack(np.divmod(np.arange(400), 20), axis=1)
model = dphmm.MarkovModel(np.full(400, 1 / 400), np.full((400, 400), 1 / 400))
policy, space = dphmm.policy.radius(points, 3), dphmm.StateSpace(points)
dphmm.ReleaseSession(model, policy, space, 1).release(7)
"""
#: What is timed inside a fresh process, and what it should take.
SCRIPTS = {
    "import dphmm": (_IMPORT, TARGET),
    "import dphmm and every public name": (_EVERY_NAME, None),
    "import dphmm and a first release (400 states)": (_FIRST_RELEASE, None),
}
_TIMED = "import time; began = time.perf_counter()\n{script}\nprint(time.perf_counter() - began)"


def figures(effort: Effort) -> Iterator[Figure]:
    """Each script in fresh processes, after one that fills the caches on disk; then once with an empty cache."""
    for name, (script, target) in SCRIPTS.items():
        taken = [_fresh(script) for _ in range(1 + effort.pick(3, 9))]
        yield Figure("import", name, Spread.of(taken[1:]), "s", target)
    with tempfile.TemporaryDirectory() as empty:
        once = Spread.of([_fresh(_FIRST_RELEASE, DPHMM_KERNELS=empty)])
    note = "once after an installation or an upgrade"
    yield Figure("import", "the same with nothing compiled yet", once, "s", None, note)


def _fresh(script: str, **environment: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(script=script)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return float(done.stdout)
