"""What releases of a chain of second order take beside a chain of first order with as many moves: a Markdown table.

    python benchmarks/second_order.py [--side 20] [--people 60] [--steps 40] [--turns 5]

A grid of side·side cells; the chain of second order is over the moves of a walk to neighbouring cells, the other one
moves about as often farther, so that its matrix has as many entries; the policy joins neighbours, ε = 1. Sessions are
of one subject, tables of all people, smoothing is of that table. CPU time, the least of so many turns, each of both
models one after the other; the ratio is the median over turns.
"""

# Thread pools are sized when NumPy is loaded, so this import comes first.
import benchmarks.speed.one_thread  # noqa: F401  # isort: skip

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

import dphmm
from dphmm.accounting.ledger import MemoryLedger

CONSTRAINTS = ("support", "delta=0.05")
#: The first step, in minutes since 1970.
BEGIN = 28_400_000


def models(side: int) -> tuple[dphmm.Grid, dphmm.MarkovModel, dphmm.MarkovModel]:
    """A grid, a chain of second order over it, and one of first order with about as many moves."""
    grid = dphmm.Grid.from_bounds(116.28, 39.85, 116.28 + 0.004 * side, 39.85 + 0.003 * side, 340)
    base = dphmm.MarkovModel.from_geometry(grid, 60, "30km/h", stay=0.5, jump=0)
    second = dphmm.MarkovModel.second_order(base)
    speeds = range(40, 400, 5)
    made = (dphmm.MarkovModel.from_geometry(grid, 60, f"{speed}km/h", stay=0.5, jump=0) for speed in speeds)
    first = next(model for model in made if model.n_transitions >= second.n_transitions)
    return grid, first, second


def sessions(grid: dphmm.Grid, model: dphmm.MarkovModel, constraint: str, steps: int) -> Callable[[], None]:
    """Releases of one subject, one by one."""
    policy = dphmm.policy.radius(grid, 500)
    states = np.random.default_rng(1).integers(grid.n_states, size=steps).tolist()

    def work() -> None:
        given = {"constraint": constraint, "ledger": MemoryLedger(), "subject": "a", "bits": dphmm.ReplayBits(1)}
        session = dphmm.ReleaseSession(model, policy, grid, 1, **given)
        for state in states:
            session.release(state)

    return work


def tables(
    grid: dphmm.Grid, model: dphmm.MarkovModel, constraint: str, people: int, steps: int
) -> tuple[Callable[[], None], Callable[[], None]]:
    """The release of a table, and the smoothing of it."""
    policy, rng = dphmm.policy.radius(grid, 500), np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "user": np.repeat([f"u{n}" for n in range(people)], steps),
            "step": np.tile(BEGIN * 60 // (model.step or 60) + np.arange(steps), people),
            "state": np.array(grid.names, dtype=object)[rng.integers(grid.n_states, size=people * steps)],
        }
    )
    given = {"constraint": constraint, "progress": False}

    def release() -> None:
        made["table"] = dphmm.release_many(
            table, model, policy, grid, 1, bits=dphmm.ReplayBits(1), ledger=MemoryLedger(), **given
        )

    def smooth() -> None:
        dphmm.reconstruction.smooth(made["table"], model, policy, grid, 1, **given)

    made: dict[str, object] = {}
    return release, smooth


def seconds(work: Callable[[], None]) -> float:
    """CPU time of a turn."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Read the options and print the table."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=20, help="cells along a side of the grid")
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    grid, first, second = models(args.side)
    print(f"{grid.n_states} cells; {first.n_transitions:,} moves of first order; {second!r}\n")
    print("| what | first order, µs a row | second order, µs a row | ratio (all turns) |")
    compare(grid, (first, second), args.people, args.steps, args.turns)


def compare(
    grid: dphmm.Grid, models: tuple[dphmm.MarkovModel, dphmm.MarkovModel], people: int, steps: int, turns: int
) -> None:
    """Print the rows of the table: what each of two models takes, by turns."""
    print("|---|---|---|---|")
    for constraint in CONSTRAINTS:
        work: dict[str, list[Callable[[], None]]] = {"session": [], "table": [], "smooth": []}
        for model in models:
            # A session has no clock: its steps are counted from one.
            work["session"].append(sessions(grid, model.counted_from(), constraint, steps))
            release, smooth = tables(grid, model, constraint, people, steps)
            work["table"].append(release)
            work["smooth"].append(smooth)
        for name, (one, other) in work.items():
            one(), other()
            taken = [(seconds(one), seconds(other)) for _ in range(turns)]
            ratios = sorted(b / a for a, b in taken)
            rows = steps * (1 if name == "session" else people)
            least = [1e6 * min(turn[k] for turn in taken) / rows for k in range(2)]
            spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            print(f"| {name}, {constraint} | {least[0]:.0f} | {least[1]:.0f} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
