"""How well a density, flows and shares are told from released answers of real people: two Markdown tables.

    python benchmarks/population.py --data FOLDER [--people 10000,60000] [--epsilons 0.5,1,2] [--flows]

Check-ins of Gowalla in Los Angeles, in the box of 20 by 20 cells of 600 m that has most of them. Every second person is
fitted on. Of the others as many check-ins are drawn as people are asked for, each answered once with noise that hides
it among 8 neighbouring cells. Off: total variation from the density of those who answered. Ranges: the mean error of
the counts of all blocks of 5 by 5 cells, as a share of their mean. Beside them the baselines: answers as they are, the
density of the model that was fitted on others, and for flows the product of the two densities. Flows are those of two
check-ins that follow each other, in cells of 1.2 km.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

# Run as a script, the folder of this file is on the path, not the one above it.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import dphmm
from dphmm.reconstruction.aggregates import public_guess, public_starts
from dphmm.reconstruction.answers import Answers
from dphmm.reconstruction.density import density
from dphmm.reconstruction.flows import flows
from dphmm.reconstruction.regions import default_regions
from dphmm.reconstruction.shares import LinearEstimates, Share, region_shares

#: South-west corner and size in degrees of the box with most check-ins.
SOUTH, WEST, NORTH, EAST = 34.04, -118.38, 34.148, -118.25
SEED = 1


class Town(NamedTuple):
    """A grid, the model of every second person on it, the policy, and the trips of the others as states."""

    grid: dphmm.Grid
    model: dphmm.MarkovModel
    policy: object
    trips: list[np.ndarray]

    @property
    def states(self) -> np.ndarray:
        """All check-ins of the others."""
        return np.concatenate(self.trips)


def town(data: Path, cell: float = 600) -> Town:
    """The check-ins of the box on cells of so many metres."""
    rows = pd.read_parquet(data / "gowalla_la_sequence.parquet", columns=["block", "k", "lat", "lon"])
    grid = dphmm.Grid.from_bounds(WEST, SOUTH, EAST, NORTH, cell)
    rows = rows.assign(state=grid.locate(rows.lat.to_numpy(), rows.lon.to_numpy())).sort_values(["block", "k"])
    rows = rows[rows.state >= 0]
    trips = [(block, part.to_numpy()) for block, part in rows.groupby("block").state]
    known, others = ([trip for block, trip in trips if block % 2 == half] for half in (0, 1))
    near_pairs = {"smoothing": 1, "smoothing_support": "neighbours"}
    model = dphmm.MarkovModel.fit(known, grid.n_states, initial="occupancy", space=grid, **near_pairs)
    column, row = grid.lattice.T
    near = (np.abs(column[:, None] - column) <= 1) & (np.abs(row[:, None] - row) <= 1)
    policy = dphmm.policy.from_edges(np.argwhere(np.triu(near, 1)), grid.n_states)
    return Town(grid, model, policy, others)


def answers_of(place: Town, states: np.ndarray, epsilon: str, person: np.ndarray | None = None) -> Answers:
    """Answers of people in some states, each drawn under the plan of the first step."""
    setting = dphmm.ReleaseSession(place.model, place.policy, place.grid, epsilon=epsilon, bits=dphmm.ReplayBits(SEED))
    plan, n = setting.plan, len(states)
    z = plan.mechanism.answer(plan.image[states], dphmm.ReplayBits(SEED))
    of = np.arange(n) if person is None else person
    names = [f"person {number}" for number in range(int(of.max()) + 1)]
    return Answers([plan], np.zeros(n, np.int64), z, np.arange(n), np.arange(n), of, names, True)


def histogram(place: Town, answers: Answers) -> np.ndarray:
    """The shares of answers as they are, those outside in the nearest cell."""
    high = [place.grid.columns - 1, place.grid.rows - 1]
    column, row = np.clip(answers.z, 0, high).T
    counts = np.bincount(row * place.grid.columns + column, minlength=place.grid.n_states)
    return counts / counts.sum()


def off(found: np.ndarray, truth: np.ndarray) -> float:
    """Total variation."""
    return float(np.abs(found - truth).sum() / 2)


def ranges(place: Town, found: np.ndarray, truth: np.ndarray) -> float:
    """The error of the counts of all 5 x 5 blocks as a share of their mean."""

    def sums(q: np.ndarray) -> np.ndarray:
        return sliding_window_view(q.reshape(place.grid.rows, place.grid.columns), (5, 5)).sum(axis=(2, 3))

    return float(np.abs(sums(found) - sums(truth)).mean() / sums(truth).mean())


class Measured(NamedTuple):
    """One line of the table; pairs are total variation and the error of ranges."""

    as_they_are: tuple[float, float]
    model: tuple[float, float]
    even: tuple[float, float]
    chosen: tuple[float, float]
    iterations: int
    start: int
    shares: tuple[Share, ...]
    truth: np.ndarray


def measured(place: Town, people: int, epsilon: str) -> Measured:
    """Both estimates of people drawn from the check-ins of others than the model's."""
    states = np.random.default_rng(SEED).choice(place.states, people)
    truth = np.bincount(states, minlength=place.grid.n_states) / people
    answers = answers_of(place, states, epsilon)
    starts = public_starts(place.model)
    even, chosen = density(answers, starts[:1]), density(answers, starts)
    assert even is not None and chosen is not None
    linear = LinearEstimates(
        answers.plans, default_regions(place.grid, answers.plans), public_guess(place.model), place.grid
    )

    def both(q: np.ndarray) -> tuple[float, float]:
        return off(q, truth), ranges(place, q, truth)

    shares = region_shares(answers, linear, chosen)
    found = both(histogram(place, answers)), both(starts[-1]), both(even.q), both(chosen.q)
    return Measured(*found, chosen.iterations, chosen.start, shares, truth @ linear.masks)


def flows_measured(place: Town, people: int, epsilon: str) -> tuple[float, float, float, int]:
    """Total variation of flows: answers as they are, the product of densities, and the likeliest flows."""
    pairs = np.concatenate([np.stack([trip[:-1], trip[1:]], axis=1) for trip in place.trips if len(trip) > 1])
    drawn, n = pairs[np.random.default_rng(SEED).integers(0, len(pairs), people)], place.grid.n_states
    truth = np.zeros((n, n))
    np.add.at(truth, tuple(drawn.T), 1 / people)
    answers = answers_of(place, drawn.ravel(), epsilon, np.repeat(np.arange(people), 2))
    as_it_is = np.zeros((n, n))
    high = [place.grid.columns - 1, place.grid.rows - 1]
    column, row = np.clip(answers.z, 0, high).T
    cells = row * place.grid.columns + column
    np.add.at(as_it_is, (cells[::2], cells[1::2]), 1 / people)
    fitted = density(answers, public_starts(place.model))
    assert fitted is not None
    found = flows(answers, fitted.q, place.model, place.grid)
    assert found is not None
    return off(as_it_is, truth), off(np.outer(fitted.q, fitted.q), truth), off(found.q, truth), found.iterations


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of real data")
    parser.add_argument("--people", default="10000,60000")
    parser.add_argument("--epsilons", default="0.5,1,2")
    parser.add_argument("--flows", action="store_true", help="also measure flows, which takes minutes")
    given = parser.parse_args()
    cases = [(int(people), epsilon) for people in given.people.split(",") for epsilon in given.epsilons.split(",")]
    place = town(given.data)
    print("| people | ε | as they are | the model's | even start | likeliest | iterations, start | mean width | held |")
    print("|---" * 9 + "|")
    for people, epsilon in cases:
        one = measured(place, people, epsilon)
        pairs = [f"{a:.3f} / {b:.3f}" for a, b in (one.as_they_are, one.model, one.even, one.chosen)]
        both = zip(one.shares, one.truth, strict=True)
        told = [(share.low, share.high, truth) for share, truth in both if share.low is not None]
        width = np.mean([high - low for low, high, _ in told])
        held = np.mean([low <= truth <= high for low, high, truth in told])
        start = ("even", "model")[one.start]
        cells = [f"{people:,}", epsilon, *pairs, f"{one.iterations}, {start}", f"{width:.4f}", f"{held:.0%}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    if not given.flows:
        return
    place = town(given.data, 1200)
    print("\n| people | ε | answers as they are | product of densities | likeliest flows | iterations |")
    print("|---" * 6 + "|")
    for people, epsilon in cases:
        *three, iterations = flows_measured(place, people, epsilon)
        cells = [f"{people:,}", epsilon, *(f"{one:.3f}" for one in three), str(iterations)]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
