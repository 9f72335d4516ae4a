"""How fast a release is smoothed: people side by side in floats, and one by one in logs, in turns of one run.

    python benchmarks/side_by_side.py [--side 20] [--people 200] [--steps 100]

Prints rows per CPU second of both, and their ratio: the best of three turns each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

import dphmm
from dphmm.choose.simulated import walks
from dphmm.markov import smoothing


def main() -> None:
    """Release, and smooth in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("side", 20), ("people", 200), ("steps", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    cells = np.stack(np.divmod(np.arange(given.side**2), given.side), axis=1)
    near = np.abs(cells[:, None] - cells).max(axis=2) <= 1
    model = dphmm.MarkovModel(np.full(len(cells), 1 / len(cells)), near / near.sum(axis=1, keepdims=True))
    space = dphmm.StateSpace(cells)
    public = model, dphmm.policy.radius(space, 3), space
    states = walks(model, given.people, given.steps, np.random.default_rng(0)).ravel()
    users = np.repeat([f"u{number}" for number in range(given.people)], given.steps)
    rows = pd.DataFrame({"user": users, "step": np.tile(np.arange(1, given.steps + 1), given.people), "state": states})
    rows["state"] = rows.state.astype(str)
    released = dphmm.release_many(rows, *public, epsilon=1, bits=dphmm.ReplayBits(1), progress=False)
    times = {doubt: min(seconds(released, public, doubt)) for doubt in (smoothing.DOUBT, 0.0)}
    floats, logs = times.values()
    print(f"{len(cells)} states: {len(rows) / floats:,.0f} rows per CPU second side by side in floats,", end=" ")
    print(f"{len(rows) / logs:,.0f} one by one in logs: {logs / floats:.1f} times")


def seconds(released: pd.DataFrame, public: tuple[dphmm.MarkovModel, object, object], doubt: float) -> Iterator[float]:
    """CPU seconds of three passes, after one that nobody times; without doubt everybody is smoothed in logs as well."""
    smoothing.DOUBT = doubt
    for turn in range(4):
        began = time.process_time()
        dphmm.reconstruction.smooth(released, *public, progress=False)
        if turn:
            yield time.process_time() - began


if __name__ == "__main__":
    main()
