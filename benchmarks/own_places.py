"""How much places of people's own lower the error of a smoothed release of real people: a Markdown table.

    python benchmarks/own_places.py --data FOLDER [--people 120] [--epsilons 0.5,1,2] [--sets gowalla,geolife]

Every second person is fitted on, others are released, each answer hidden among 8 neighbouring cells of 1 km. Gowalla in
Los Angeles: steps are check-ins, at most 200 of each person with 20 or more. Geolife in Beijing: rows 15 minutes apart
or more, as if they were so. Error: the mean distance of the smoothed place from the middle of the true cell, in cells.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import dphmm
from dphmm.release.decoding import own_places_of, smooth_rows
from dphmm.session.setting import Setting, Subjects
from dphmm.storage.released import released_rows

SEED = 1
#: South-west corner and north-east corner in degrees.
BOXES = {"gowalla": (-118.38, 34.04, -118.25, 34.148), "geolife": (116.28, 39.85, 116.48, 39.99)}


def trips(data: Path, name: str) -> tuple[dphmm.Grid, list[np.ndarray], list[np.ndarray]]:
    """A grid, the states of every second person, and those of the others."""
    grid = dphmm.Grid.from_bounds(*BOXES[name], 1000)
    if name == "gowalla":
        rows = pd.read_parquet(data / "gowalla_la_sequence.parquet", columns=["block", "k", "lat", "lon"])
        rows = rows.rename(columns={"block": "user", "k": "step"})
    else:
        rows = pd.read_parquet(data / "geolife_beijing.parquet", columns=["user", "t", "lat", "lon"])
        rows["step"] = rows.t.astype("datetime64[s, UTC]").astype("int64") // 900
        rows = rows.drop_duplicates(["user", "step"], keep="last")
    rows["state"] = grid.locate(rows.lat.to_numpy(), rows.lon.to_numpy())
    rows = rows[rows.state >= 0].sort_values(["user", "step"])
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for number, (_, part) in enumerate(rows.groupby("user")):
        found[number % 2].append(part.state.to_numpy())
    return grid, *found


def measured(data: Path, name: str, people: int, epsilon: str) -> tuple[float, float, str, int]:
    """The smoothed errors without and with own places, what was chosen, and how many rows."""
    grid, known, others = trips(data, name)
    near_pairs = {"smoothing": 1, "smoothing_support": "neighbours"}
    model = dphmm.MarkovModel.fit(known, grid.n_states, initial="occupancy", space=grid, **near_pairs)
    column, row = grid.lattice.T
    near = (np.abs(column[:, None] - column) <= 1) & (np.abs(row[:, None] - row) <= 1)
    policy = dphmm.policy.from_edges(np.argwhere(np.triu(near, 1)), grid.n_states)
    chosen = [trip[:200] for trip in others if len(trip) >= 20][:people]
    user = np.repeat([f"person {number}" for number in range(len(chosen))], [len(trip) for trip in chosen])
    states = np.concatenate(chosen)
    table = pd.DataFrame({"user": user, "state": np.array(grid.names, dtype=object)[states]})
    released = dphmm.release_many(table, model, policy, grid, epsilon, bits=dphmm.ReplayBits(SEED), progress=False)
    rows = released_rows(released, grid)
    subjects = Subjects(Setting.of(model, policy, grid, epsilon), None, None)
    places = own_places_of(rows, subjects)
    order = np.lexsort((rows.step, rows.users))
    truth = np.empty(len(states), dtype=np.int64)
    truth[order] = states[np.lexsort((np.arange(len(user)), user))]
    errors = []
    for one in (None, places):
        mean = smooth_rows(rows, subjects, places=one).mean
        errors.append(float(np.linalg.norm(mean - grid.answers[truth], axis=1).mean() / grid.cell))
    told = "none" if places is None else f"rate {places.rate}, weight {places.weight}"
    return errors[0], errors[1], told, len(states)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of real data")
    parser.add_argument("--people", type=int, default=120)
    parser.add_argument("--epsilons", default="0.5,1,2")
    parser.add_argument("--sets", default="gowalla,geolife")
    given = parser.parse_args()
    print("| data | rows | ε | smoothed | with own places | ratio | chosen |")
    print("|---" * 7 + "|")
    for name in given.sets.split(","):
        for epsilon in given.epsilons.split(","):
            before, after, told, rows = measured(given.data, name, given.people, epsilon)
            ratio = f"{after / before:.3f}"
            print(f"| {name} | {rows:,} | {epsilon} | {before:.3f} | {after:.3f} | {ratio} | {told} |", flush=True)


if __name__ == "__main__":
    main()
