"""What releases of a model with slots take beside its first matrix alone: a Markdown table.

    python benchmarks/slots.py [--side 20] [--people 60] [--steps 96] [--turns 5]

A grid of side·side cells, a walk to neighbouring cells at steps of 10 minutes, and six slots of 4 hours in Berlin whose
matrices have the same moves; the policy joins neighbours, ε = 1. Sessions are of one subject, tables of all people,
smoothing is of that table. CPU time, the least of so many turns, each of both models one after the other; the ratio is
the median over turns.
"""

# Thread pools are sized when NumPy is loaded, so this import comes first.
import benchmarks.speed.one_thread  # noqa: F401  # isort: skip

import argparse

import dphmm
from benchmarks.second_order import compare

STEP, SLOTS = 600, dphmm.markov.Slots(period="1d", width="4h", zone="Europe/Berlin")


def models(side: int) -> tuple[dphmm.Grid, dphmm.MarkovModel, dphmm.MarkovModel]:
    """A grid, the model of one matrix, and that of six which stay more or less than it."""
    grid = dphmm.Grid.from_bounds(116.28, 39.85, 116.28 + 0.004 * side, 39.85 + 0.003 * side, 340)
    stays = (0.5, 0.9, 0.4, 0.3, 0.4, 0.7)
    made = [dphmm.MarkovModel.from_geometry(grid, STEP, "3km/h", stay=stay, jump=0) for stay in stays]
    several = dphmm.MarkovModel(made[0].initial, [one.matrix for one in made], slots=SLOTS, step=STEP, space=grid)
    return grid, made[0], several


def main() -> None:
    """Read the options and print the table."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("side", 20), ("people", 60), ("steps", 96), ("turns", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    grid, one, several = models(args.side)
    print(f"{grid.n_states} cells; {one!r}; {several!r}\n")
    print("| what | one matrix, µs a row | slots, µs a row | ratio (all turns) |")
    compare(grid, (one, several), args.people, args.steps, args.turns)


if __name__ == "__main__":
    main()
