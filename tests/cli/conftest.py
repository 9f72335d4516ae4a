"""A small town, its files, and a way to run commands."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

import commands
from commands import BBOX, Run, walk_rows, write_rows

PAGES = ("alpha", "beta", "gamma", "delta")


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command: run("fit", path, "--h3", 8, code=2); the exit code is checked."""
    return commands.run


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
    """The arguments of a release in a folder, or of rows elsewhere: release_of(town, out) + more."""

    def arguments(folder: Path, out: Path, rows: str | Path = "walks.csv", policy: str = "radius.json") -> list[str]:
        return [
            "release", str(folder / rows), "--model", str(folder / "model.npz"),
            "--policy", str(folder / policy), "--epsilon", "1",
            "-o", str(out / "released"), "--ledger", str(out / "ledger.db"),
        ]  # fmt: skip

    return arguments


@pytest.fixture(scope="session")
def released(
    town: Path, tmp_path_factory: pytest.TempPathFactory, run: Run, release_of: Callable[..., list[str]]
) -> Path:
    """A folder with a release of the town's walks in released, and ledger.db; no test changes them."""
    folder = tmp_path_factory.mktemp("released")
    run(*release_of(town, folder))
    return folder


#: Choices of a release, by the name of its folder in `places`.
CHOICES = {"plain": {}, "choices": {"constraint": "delta=0.05", "mechanism": "discrete-knorm", "start": "at"}}


@pytest.fixture(scope="session")
def places(
    town: Path, tmp_path_factory: pytest.TempPathFactory, run: Run, release_of: Callable[..., list[str]]
) -> dict[str, Path]:
    """A folder for each set of choices, with a release of the town's walks, twelve steps from 08:00 on."""
    folders = {name: tmp_path_factory.mktemp(name) for name in CHOICES}
    for name, folder in folders.items():
        asked = release_of(town, folder)
        run(*(commands.set_in(asked, **CHOICES[name]) if CHOICES[name] else asked))
    return folders


def altered(folder: Path, out: Path, change: Callable[[Any, Any], Any]) -> Path:
    """A copy of a public folder whose rows or statement are changed, as its index says too."""
    if out != folder:
        shutil.copytree(folder / "released", out / "released")
    place = out / "released"
    table = pd.read_csv(place / "released.csv", dtype=str)
    statement = json.loads((place / "released.csv.privacy.json").read_text())
    found = change(table, statement)
    commands.edited(place, "released.csv", (table if found is None else found).to_csv(index=False))
    commands.edited(place, "released.csv.privacy.json", json.dumps(statement))
    return out


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """A list of the site's pages, which are public."""
    return write_rows(tmp_path / "names.csv", ["state"], [[name] for name in PAGES])


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
