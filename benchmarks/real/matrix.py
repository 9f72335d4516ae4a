"""The rows of the table: every input with each of its models and policies, under each constraint."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.real.inputs import INPUTS

CONSTRAINTS = ("support", "delta=0.01")


@dataclass(frozen=True)
class Cell:
    """One row of the table: an input, a model, a policy and a constraint."""

    name: str
    model: str
    policy: str
    constraint: str

    @property
    def file(self) -> str:
        """A name for its files."""
        return "-".join((self.name, self.model, self.policy, self.constraint.replace("=", "")))


def cells(name: str) -> Iterator[Cell]:
    """The rows of the table that are about an input."""
    known = INPUTS[name]
    for model, policy, constraint in itertools.product(known.models, known.policies, CONSTRAINTS):
        yield Cell(name, model, policy, constraint)


def release_arguments(cell: Cell, folder: Path) -> list[Any]:
    """The release of one cell, whose constraint is written beside its policy."""
    policy = folder / f"{cell.file}.policy.json"
    document = json.loads((folder / f"{cell.model}-{cell.policy}.json").read_text())
    policy.write_text(json.dumps({**document, "setting": {"constraint": cell.constraint}}))
    return [
        "release", folder / "release.parquet", "--model", folder / f"{cell.model}.npz",
        "--policy", policy, "--epsilon", "1",
        "-o", folder / cell.file, "--format", "parquet", "--ledger", folder / f"{cell.file}.db",
        "--model-people", "others", "--json", "--yes",
    ]  # fmt: skip


def table_of(cell: Cell, folder: Path) -> Path:
    """The released rows of one cell."""
    return folder / cell.file / "released.parquet"


def counts_of(cell: Cell, folder: Path) -> Path:
    """The counts of one cell for the owner alone."""
    return folder / f"{cell.file}.owner" / "counts.json"
