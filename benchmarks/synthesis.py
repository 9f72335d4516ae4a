"""CPU time of inventing people: rows of `synthesize` on a map, after a first call has loaded and compiled all.

    python benchmarks/synthesis.py [--people 1000] [--steps 1000] [--states 3600] [--repeats 3] [--most 5]

The model is made from the map alone: square cells of 1 km, steps of ten minutes, at most 60 km/h, and a jump. The last
line is the least of the repeats; the exit code is 1 where it is above ``--most`` seconds.
"""

from __future__ import annotations

import argparse
import time

import dphmm

#: Degrees of a kilometre in Berlin, to the east and to the north.
_EAST, _NORTH = 0.0147, 0.00899


def model_of(states: int) -> dphmm.MarkovModel:
    """A model of about so many cells, nobody's data in it."""
    side = round(states**0.5)
    box = (13.0, 52.3, 13.0 + side * _EAST, 52.3 + side * _NORTH)
    return dphmm.MarkovModel.from_geometry(dphmm.Grid.from_bounds(*box, cell=1000.0), step=600, max_speed="60km/h")


def main() -> int:
    """Print each repeat and the least time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--states", type=int, default=3600)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most", type=float, default=5.0)
    given = parser.parse_args()
    model = model_of(given.states)
    dphmm.evaluation.synthesize(model, 2, 2, seed=1)
    taken = []
    for seed in range(given.repeats):
        before = time.process_time()
        rows = dphmm.evaluation.synthesize(model, given.people, given.steps, seed=seed)
        taken.append(time.process_time() - before)
        print(f"{len(rows):,} rows on {model.n_states:,} states, {model.matrix.nnz:,} moves: {taken[-1]:.2f} s of CPU")
    print(f"least {min(taken):.2f} s (at most {given.most:g})")
    return int(min(taken) > given.most)


if __name__ == "__main__":
    raise SystemExit(main())
