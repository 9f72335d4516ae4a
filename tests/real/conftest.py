"""Real inputs, run by the commands alone; files stay in temporary folders."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from click.testing import Result

import commands
from commands import Run
from dphmm.storage.release_folder import ReleaseFolder

# Rows of each person in the tests of a few people; a receiver that was read every five seconds gives few steps.
FEW_ROWS = {"geolife-plt": 3000}


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command in this process: run("fit", path, "--h3", 8, code=2); the exit code is checked."""
    return commands.run


@pytest.fixture(scope="session")
def matrix() -> ModuleType:
    """benchmarks/real_data.py: the inputs, their options, the split of people and the owner's join."""
    path = Path(__file__).parents[2] / "benchmarks" / "real_data.py"
    spec = importlib.util.spec_from_file_location("real_data", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Done:
    """A finished release: where its files are, what was said, what was published."""

    input: Any
    cell: Any
    folder: Path
    said: Result
    #: How many releases were of a surrogate, from the owner's file.
    drifted: int

    @property
    def document(self) -> dict[str, Any]:
        """What --json printed."""
        found: dict[str, Any] = json.loads(self.said.stdout)
        return found

    @property
    def place(self) -> ReleaseFolder:
        """The folder of the release, and its owner's."""
        return ReleaseFolder(self.folder / self.cell.file)

    @property
    def table(self) -> Path:
        """The released rows; the statement is beside them."""
        return self.place.path / "released.parquet"

    @property
    def ledger(self) -> Path:
        """Where the release is counted."""
        return self.folder / f"{self.cell.file}.db"

    @property
    def released(self) -> pd.DataFrame:
        """The released rows as a table."""
        return pd.read_parquet(self.table)

    @property
    def truth(self) -> pd.DataFrame:
        """The owner's rows."""
        return pd.read_parquet(self.folder / "release.parquet")

    @property
    def step_seconds(self) -> int | None:
        """The time step of the model."""
        return 300 if "--step" in self.input.fitting else None


@pytest.fixture(scope="session")
def prepared(
    data_folder: Path, matrix: ModuleType, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, int], Path]:
    """A folder with an input imported, split by person, fitted, and its policies written; made once each."""
    folders: dict[tuple[str, int], Path] = {}

    def make(name: str, users: int) -> Path:
        if (name, users) not in folders:
            folder = tmp_path_factory.mktemp(name)
            matrix.prepare(matrix.INPUTS[name], data_folder, folder, users, run)
            if users < matrix.INPUTS[name].users:
                rows = pd.read_parquet(folder / "release.parquet").groupby("user").head(FEW_ROWS.get(name, 500))
                rows.to_parquet(folder / "release.parquet", index=False)
            folders[name, users] = folder
        return folders[name, users]

    return make


@pytest.fixture(scope="session")
def released(prepared: Callable[[str, int], Path], matrix: ModuleType, run: Run) -> Callable[..., Done]:
    """Release one cell of the matrix, once."""
    finished: dict[tuple[object, ...], Done] = {}

    def make(name: str, users: int | None, model: str, policy: str, constraint: str) -> Done:
        given = matrix.INPUTS[name]
        people = given.users if users is None else users
        cell = matrix.Cell(name, model, policy, constraint)
        if (people, cell) not in finished:
            folder = prepared(name, people)
            said = run(*matrix.release_arguments(cell, folder))
            drifted = matrix.drift_in(matrix.counts_of(cell, folder))
            finished[people, cell] = Done(given, cell, folder, said, drifted)
        return finished[people, cell]

    return make
