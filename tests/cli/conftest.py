"""A small town, its files, and a way to run commands."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

Run = Callable[..., Result]

BBOX = "10.0,50.0,10.056,50.036"
PAGES = ("alpha", "beta", "gamma", "delta")


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command: run("fit", path, "--h3", 8, code=2); the exit code is checked."""
    from dphmm.cli.app import app

    def invoke(*args: object, code: int = 0, input: str | None = None) -> Result:
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.stderr
        return result

    return invoke


def walk_rows(users: tuple[str, ...] = ("u1", "u2", "u3"), steps: int = 12, seed: int = 7) -> list[list[Any]]:
    """Rows user, t, lat, lon of walkers on a 4 x 4 grid of 1 km cells, one every five minutes."""
    rng = np.random.default_rng(seed)
    rows: list[list[Any]] = []
    for user in users:
        cell = rng.integers(0, 4, 2)
        for step in range(steps):
            cell = np.clip(cell + rng.integers(-1, 2, 2), 0, 3)
            lat, lon = 50.0 + (cell[1] + 0.5) * 0.0089, 10.0 + (cell[0] + 0.5) * 0.0139
            clock = f"2024-05-06T{8 + step // 12:02d}:{5 * (step % 12):02d}:00Z"
            rows.append([user, clock, f"{lat:.6f}", f"{lon:.6f}"])
    return rows


def write_rows(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """A folder with people.csv (to fit on), walks.csv (to release), a model and two policies."""
    folder = tmp_path_factory.mktemp("town")
    people = tuple(f"p{i}" for i in range(12))
    write_rows(folder / "people.csv", ["user", "t", "lat", "lon"], walk_rows(people, 24, seed=3))
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows())
    model = folder / "model.npz"
    fit = ("--grid", "1km", "--bbox", BBOX, "--step", "5min")
    run("fit", folder / "people.csv", "-o", model, *fit)
    run("policy", "radius", model, "-o", folder / "radius.json", "--radius", "1.5km")
    run("policy", "complete", model, "-o", folder / "complete.json")
    return folder


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """A folder with visits.csv of pages without times, model.npz and complete.json."""
    folder = tmp_path_factory.mktemp("site")
    rng = np.random.default_rng(5)
    rows = [[f"v{user}", PAGES[page]] for user in range(6) for page in rng.integers(0, 4, 15)]
    write_rows(folder / "visits.csv", ["user", "state"], rows)
    run("fit", folder / "visits.csv", "-o", folder / "model.npz", "--state-column", "state", "--answers", "ordinal")
    run("policy", "complete", folder / "model.npz", "-o", folder / "complete.json")
    return folder


@pytest.fixture(scope="session")
def release_of() -> Callable[..., list[str]]:
    """The arguments of a release in a folder: release_of(town, out) + more."""

    def arguments(folder: Path, out: Path, rows: str = "walks.csv", policy: str = "radius.json") -> list[str]:
        return [
            "release", str(folder / rows), "--model", str(folder / "model.npz"),
            "--policy", str(folder / policy), "--epsilon", "1",
            "-o", str(out / "released.csv"), "--ledger", str(out / "ledger.db"),
        ]  # fmt: skip

    return arguments


@pytest.fixture(scope="session")
def rows_of() -> Callable[[Path], list[dict[str, str]]]:
    """The rows of a CSV file."""

    def read(path: Path) -> list[dict[str, str]]:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    return read


@pytest.fixture(scope="session")
def one_json() -> Callable[[Result], dict[str, Any]]:
    """The one JSON object on standard output, and nothing else there."""

    def read(result: Result) -> dict[str, Any]:
        assert result.stdout.count("\n") == 1
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    return read
