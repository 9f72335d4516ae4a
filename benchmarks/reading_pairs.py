"""How much nearer a chain of second order reads released answers than one of first order: a Markdown table.

    python benchmarks/reading_pairs.py --data FOLDER [--step 30] [--every 1,4] [--epsilons 0.5,1,2] [--stretches 60]

Geolife in Beijing: stretches of rows one step apart, of 40 rows or more, at most 120 are read. Models are counted on
every second person; stretches of the others are released under one plan, cells within two sides of each other joined,
and smoothed by each model given the same answers. All models have a jump of .001. Error: mean distance in metres of the
smoothed place from the middle of the true cell; the difference of second and first order is a mean over stretches, with
its standard error.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import dphmm
from dphmm.markov.filtering import Belief, ObservationTable
from dphmm.markov.smoothing import Observed, smooth
from dphmm.session.answer import answer_under
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting
from dphmm.session.smoothing import likelihood_rows

SEED, LEAST, MOST = 1, 40, 120
BOX = (116.28, 39.85, 116.48, 39.99)


def stretches(data: Path, grid: dphmm.Grid, step: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows one step apart as states: of every second person, and of the others."""
    rows = pd.read_parquet(data / "geolife_beijing.parquet", columns=["user", "t", "lat", "lon"])
    rows["bin"] = rows.t.astype("datetime64[s, UTC]").astype("int64") // step
    rows = rows.drop_duplicates(["user", "bin"], keep="last").sort_values(["user", "bin"])
    rows["state"] = grid.locate(rows.lat.to_numpy(), rows.lon.to_numpy())
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for number, (_, person) in enumerate(rows[rows.state >= 0].groupby("user")):
        breaks = np.flatnonzero(np.diff(person.bin.to_numpy()) != 1) + 1
        pieces = np.split(person.state.to_numpy(), breaks)
        parts[number % 2].extend(piece for piece in pieces if len(piece) >= LEAST)
    return parts


def models(grid: dphmm.Grid, known: list[np.ndarray], step: int) -> dict[str, dphmm.MarkovModel]:
    """From geometry, of first order, and of second order around the first."""
    moved = float(np.concatenate([piece[1:] != piece[:-1] for piece in known]).mean())
    geometry = dphmm.MarkovModel.from_geometry(grid, step, f"{2400 / step:g}m/s", stay=1 - moved)
    near = {"smoothing": 1, "smoothing_support": "neighbours", "initial": "occupancy"}
    first = dphmm.MarkovModel.fit(known, grid.n_states, space=grid, step=step, **near).with_jump(0.001)
    return {"geometry": geometry, "first order": first, "second order": dphmm.MarkovModel.second_order(first, known)}


def errors(
    model: dphmm.MarkovModel, plan: StepPlan, drawn: list[np.ndarray], pieces: list[np.ndarray], every: int
) -> np.ndarray:
    """The mean error over each stretch."""
    people = []
    for z, piece in zip(drawn, pieces, strict=True):
        rows = likelihood_rows(plan, z)
        which = np.full(len(piece), -1)
        which[::every] = rows.which
        moves = np.minimum(np.arange(len(piece)), 1)
        prior = Belief.initial(model)
        people.append(Observed(prior.latent, ObservationTable(prior.lifted(rows.values), which, moves, rows.logged)))
    own = model.space.own_answers
    means = [found.mean for found in smooth(model, people, own)]
    return np.array(
        [np.linalg.norm(mean - own[piece], axis=1).mean() for mean, piece in zip(means, pieces, strict=True)]
    )


def main() -> None:
    """Read the options and print the table."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--step", type=int, default=30, help="seconds")
    parser.add_argument("--cell", type=float, default=340.0, help="metres")
    parser.add_argument("--every", default="1,4", help="one answer in so many steps")
    parser.add_argument("--epsilons", default="0.5,1,2")
    parser.add_argument("--stretches", type=int, default=60)
    args = parser.parse_args()
    grid = dphmm.Grid.from_bounds(*BOX, args.cell)
    known, others = stretches(args.data, grid, args.step)
    made = models(grid, known, args.step)
    order = np.random.default_rng(SEED).permutation(len(others))[: args.stretches]
    pieces = [others[number][:MOST] for number in order]
    print(f"{len(known)} stretches counted, {len(pieces)} read; {made['second order']!r}\n")
    print(f"| epsilon | one answer in | {' | '.join(made)} | second less first |")
    print("|---|---|" + "---|" * (len(made) + 1))
    policy, everywhere = dphmm.policy.radius(grid, 2 * args.cell), np.ones(grid.n_states, dtype=bool)
    for epsilon in args.epsilons.split(","):
        plan = Setting.of(made["first order"], policy, grid, epsilon).planner.plan(everywhere, everywhere)
        for every in map(int, args.every.split(",")):
            bits = dphmm.ReplayBits(SEED)
            drawn = [answer_under(plan, piece[::every], bits)[0] for piece in pieces]
            each = {name: errors(model, plan, drawn, pieces, every) for name, model in made.items()}
            gain = each["second order"] - each["first order"]
            means = " | ".join(f"{found.mean():.0f}" for found in each.values())
            print(
                f"| {epsilon} | {every} | {means} | {gain.mean():.0f} ± {gain.std() / len(gain) ** 0.5:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
