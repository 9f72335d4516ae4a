"""What the crashed processes work on: a small grid, its files, true states that any process can recompute."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import dphmm

SIDE = 4
STEP = 300
USERS = ("ann", "bob", "cid")
ROWS = 12
#: The number of the time bin of step 1 of every user: 2024-05-06T08:00:00Z.
FIRST_BIN = 1_714_982_400 // STEP


def parts() -> tuple[Any, Any, Any]:
    """(model, policy, space): moves between neighbouring cells of 1 km, radius 1.5 km."""
    space = dphmm.Grid.from_bounds(10.0, 50.0, 10.055, 50.0355, cell=1000.0)
    cells = np.array([divmod(state, SIDE) for state in range(SIDE * SIDE)])
    near = np.abs(cells[:, None, :] - cells[None, :, :]).max(axis=2) <= 1
    # Staying is likelier than moving, so that a belief is not uniform and a delta-set says something.
    weights = near * (1.0 + 3.0 * np.eye(SIDE * SIDE))
    transition = weights / weights.sum(axis=1, keepdims=True)
    initial = np.full(SIDE * SIDE, 1 / (SIDE * SIDE))
    model = dphmm.MarkovModel(initial, transition, space=space, step=STEP)
    return model, dphmm.policy.radius(space, 1500), space


def truth(user: str, t: int) -> int:
    """The true state of a user's step: any state, so that drift is released too."""
    return hashlib.sha256(f"{user} {t}".encode()).digest()[0] % (SIDE * SIDE)


def observed(user: str) -> list[int]:
    """The steps at which a user has a row: gaps differ between users, and are skipped by a batch."""
    gap = 3 + USERS.index(user)
    return [t for t in range(1, ROWS + 1) if t == 1 or t % gap]


def batch_rows() -> Any:
    """All rows of all users as Trajectories with true states and times."""
    keys = [(user, t) for user in USERS for t in observed(user)]
    return dphmm.states.Trajectories.from_labels(
        [user for user, _ in keys],
        time=np.array([clock(t) for _, t in keys], dtype=np.int64),
        state=np.array([str(parts()[2].names[truth(user, t)]) for user, t in keys]),
    )


def clock(t: int) -> int:
    """Microseconds since 1970 of a step."""
    return (FIRST_BIN + t - 1) * STEP * 1_000_000


def write_files(folder: Path) -> None:
    """model.npz, policy.json, and the rows of all users twice: walks.csv, and lines.jsonl in order of time."""
    model, policy, space = parts()
    dphmm.storage.save_model(model, folder / "model.npz")
    dphmm.storage.save_policy(policy, folder / "policy.json", space=space, model=model)
    with (folder / "walks.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("user", "t", "lat", "lon"))
        for user in USERS:
            writer.writerows((user, iso(t), *place(space, truth(user, t))) for t in observed(user))
    with (folder / "lines.jsonl").open("w", encoding="utf-8") as file:
        for t, who in sorted((t, user) for user in USERS for t in observed(user)):
            lat, lon = map(float, place(space, truth(who, t)))
            file.write(json.dumps({"user": who, "t": iso(t), "lat": lat, "lon": lon}) + "\n")


def iso(t: int) -> str:
    """The time of a step as text."""
    return str(np.datetime64(clock(t), "us").astype("datetime64[s]")) + "Z"


def place(space: Any, state: int) -> tuple[str, str]:
    """Latitude and longitude of the middle of a cell, as text."""
    lat, lon = space.to_latlon(np.array([space.answers[state]]))
    return f"{float(lat[0]):.6f}", f"{float(lon[0]):.6f}"


def lattice(space: Any, answer: list[float]) -> tuple[int, ...]:
    """The lattice point of a published answer; AssertionError if it is the answer of none."""
    point = np.rint((np.array(answer) - space.answers[0]) / space.pitch + space.lattice[0]).astype(np.int64)
    assert space.frame.to_answers(point).tolist() == answer
    return tuple(point.tolist())
