"""Good files, made once: a town of 4 x 4 cells with walkers, and a site of four pages with visitors."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from faults.place import Place

GRID = "--grid 1km --bbox 10.0,50.0,10.056,50.036 --step 5min"
PAGES = ("alpha", "beta", "gamma", "delta")


def walk(users: int, steps: int, seed: int) -> str:
    """Rows of walkers, one every five minutes."""
    rng = np.random.default_rng(seed)
    lines = ["user,t,lat,lon"]
    for user in range(users):
        cell = rng.integers(0, 4, 2)
        for step in range(steps):
            cell = np.clip(cell + rng.integers(-1, 2, 2), 0, 3)
            clock = f"2024-05-06T{8 + step // 12:02d}:{5 * (step % 12):02d}:00Z"
            lines.append(f"w{user},{clock},{50.0 + (cell[1] + 0.5) * 0.0089:.6f},{10.0 + (cell[0] + 0.5) * 0.0139:.6f}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def good_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """people.csv, walks.csv, model.npz, radius.json, complete.json; visits.csv, pages.npz, pages.json."""
    place = Place(tmp_path_factory.mktemp("good"))
    place.write("people.csv", walk(12, 24, seed=3))
    place.write("walks.csv", walk(3, 4, seed=7))
    place.done(f"fit people.csv -o model.npz {GRID}")
    place.done("policy radius model.npz -o radius.json --radius 1.5km")
    place.done("policy complete model.npz -o complete.json")
    rng = np.random.default_rng(5)
    visits = [f"v{user},{PAGES[page]}" for user in range(6) for page in rng.integers(0, 4, 15)]
    place.write("all_visits.csv", "\n".join(["user,state", *visits]) + "\n")
    place.write("visits.csv", "\n".join(["user,state", *visits[:5], *visits[15:20]]) + "\n")
    place.done("fit all_visits.csv -o pages.npz --state-column state --answers ordinal")
    place.done("policy complete pages.npz -o pages.json")
    return place.folder


@pytest.fixture
def place(good_files: Path, tmp_path: Path) -> Place:
    """A copy of the good files that a case may spoil."""
    folder = tmp_path / "files"
    shutil.copytree(good_files, folder)
    return Place(folder)
