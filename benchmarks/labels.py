"""How often labels are right, as released, as estimated, with later answers, beside numbers for the names: a table.

    python benchmarks/labels.py [--data FOLDER] [--epsilon 1] [--seed 1]

The model is fitted to one half of the people and the other half is released under the complete policy: as labels, and
as numbers in the order of the names, where the nearest number counts as the label. Both keep the same promise. The log
is simulated: nine activities, each kept for two steps on average. Words are replayed, so nothing is private.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from pathlib import Path

import numpy as np
import pandas as pd

import dphmm
from dphmm.samplers.entropy import ReplayBits

#: People and steps of each that are released, at most.
PEOPLE, STEPS = 150, 30
ACTIVITIES = ("sleep", "breakfast", "shower", "work", "lunch", "groceries", "dinner", "tv", "toilet")


def simulated_log(generator: np.random.Generator) -> tuple[list[str], list[np.ndarray]]:
    """Days of people over nine activities; some follow each other often."""
    n = len(ACTIVITIES)
    moves = 0.5 * np.eye(n) + 0.5 * generator.dirichlet(np.full(n, 0.5), n)
    running, days = np.cumsum(moves, axis=1), []
    for _ in range(2 * PEOPLE):
        state, day = int(generator.integers(n)), []
        for _ in range(STEPS):
            day.append(state)
            state = min(int(np.searchsorted(running[state], generator.random())), n - 1)
        days.append(np.array(day))
    return list(ACTIVITIES), days


def mvad(folder: Path) -> tuple[list[str], list[np.ndarray]]:
    """From school to work: the months of 712 people, 6 states."""
    with gzip.open(folder / "mvad.csv.gz", "rt") as file:
        rows = [row[14:] for row in csv.reader(file)][1:]
    names = sorted({state for row in rows for state in row})
    return names, [np.array([names.index(state) for state in row]) for row in rows]


def msnbc(folder: Path) -> tuple[list[str], list[np.ndarray]]:
    """Pages of 323 visits, 17 categories."""
    with gzip.open(folder / "msnbc323.seq.gz", "rt") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("%")]
    return lines[0].split(), [np.array(list(map(int, line.split()))) - 1 for line in lines[1:]]


def shares(space: dphmm.StateSpace, states: list[np.ndarray], epsilon: str, seed: int) -> tuple[float, float, float]:
    """Shares of labels that are right as released, as estimated, and with later answers."""
    half, n = len(states) // 2, space.n_states
    model = dphmm.MarkovModel.fit(states[:half], n, smoothing=0.1, initial="occupancy", space=space)
    policy = dphmm.policy.complete(n)
    rows = [
        (f"{user:04d}", step, space.names[state])
        for user, path in enumerate(states[half : half + PEOPLE])
        for step, state in enumerate(path[:STEPS], start=1)
    ]
    table = pd.DataFrame(rows, columns=["user", "step", "state"])
    bits = ReplayBits(f"labels {seed}".encode())
    released = dphmm.release_many(table, model, policy, space, epsilon, bits=bits, progress=False)
    smoothed = dphmm.reconstruction.smooth(released, model, policy, space, progress=False)
    true = table.set_index(["user", "step"]).loc[list(zip(released.user, released.step, strict=True))].state.to_numpy()
    if space.has_labels:
        named = released.z.to_numpy()
    else:
        nearest = np.clip(np.rint(released.z_0), 0, n - 1).astype(int)
        named = np.array(space.names, dtype=object)[nearest]
    found = (named, smoothed.smoothed.to_numpy())
    return tuple(float((one == true).mean()) for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of real data; without it the simulated log alone")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    worlds = {"simulated log": simulated_log(np.random.default_rng(given.seed))}
    if given.data is not None:
        worlds |= {"mvad": mvad(given.data), "msnbc": msnbc(given.data)}
    print("| data | labels | answers | right as released | with later answers | the commonest label |")
    print("|---|---|---|---|---|---|")
    for name, (names, states) in worlds.items():
        np.random.default_rng(given.seed).shuffle(states)
        whole = np.concatenate([path[:STEPS] for path in states[len(states) // 2 :][:PEOPLE]])
        common = float(np.bincount(whole).max() / len(whole))
        spaces = {"labels": dphmm.StateSpace.labels(names), "numbers": dphmm.StateSpace.categories(names)}
        for kind, space in spaces.items():
            right = " | ".join(f"{share:.1%}" for share in shares(space, states, given.epsilon, given.seed))
            print(f"| {name} | {len(names)} | {kind} | {right} | {common:.1%} |", flush=True)


if __name__ == "__main__":
    main()
