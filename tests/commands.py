"""Commands run in this process, and the walkers whose rows they read."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

from dphmm.cli.app import app
from dphmm.storage.release_folder import ReleaseFolder
from dphmm.storage.tables import read_table, write_table

Run = Callable[..., Result]
BBOX = "10.0,50.0,10.056,50.036"
#: A release.toml for `walk_rows` in walks.csv, which names no limit.
PIPELINE = """
[data]
file = "walks.csv"

[model]
bbox = "10.0,50.0,10.056,50.036"
cell = "1km"
step = "5min"
max-speed = "20km/h"

[policy]
radius = "1.5km"

[release]
epsilon = 0.5
"""


def run(*arguments: object, code: int = 0, input: str | None = None) -> Result:
    """Run a command: run("fit", path, "--h3", 8, code=2); the exit code is checked."""
    return typed(*going_on([str(argument) for argument in arguments]), code=code, input=input)


def going_on(words: Sequence[str]) -> list[str]:
    """The words of a command, which goes on without a limit: that it would ask is tested in cli/test_no_limit.py."""
    return [*words, *["--yes"] * (words[0] in ("release", "run"))]


def typed(*arguments: object, code: int = 0, input: str | None = None) -> Result:
    """The same with these words and no others."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.stderr
    return result


def set_in(words: Sequence[object], **setting: object) -> list[str]:
    """The words of a command whose --policy also says this of plans, as dphmm policy --setting writes it."""
    found = list(map(str, words))
    at = found.index("--policy") + 1
    document = json.loads(Path(found[at]).read_text())
    document["setting"] = {name: str(value) for name, value in setting.items()}
    named = "-".join(str(value).replace("/", "_") for value in setting.values())
    path = Path(found[at]).with_name(f"{Path(found[at]).stem}-{named}.json")
    path.write_text(json.dumps(document))
    return [*found[:at], str(path), *found[at + 1 :]]


def write_rows(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def walk_rows(
    users: Iterable[str] = ("u1", "u2", "u3"), steps: int = 12, seed: int = 7, side: int = 4
) -> list[list[Any]]:
    """Rows user, t, lat, lon of walkers on a square of 1 km cells, one every five minutes."""
    rng = np.random.default_rng(seed)
    rows: list[list[Any]] = []
    for user in users:
        cell = rng.integers(0, side, 2)
        for step in range(steps):
            cell = np.clip(cell + rng.integers(-1, 2, 2), 0, side - 1)
            lat, lon = 50.0 + (cell[1] + 0.5) * 0.0089, 10.0 + (cell[0] + 0.5) * 0.0139
            clock = f"2024-05-06T{8 + step // 12:02d}:{5 * (step % 12):02d}:00Z"
            rows.append([user, clock, f"{lat:.6f}", f"{lon:.6f}"])
    return rows


def edited(folder: Path, name: str, text: str | bytes) -> Path:
    """Write a file of a release anew, and its digest into the index: what is wrong then is what the file says."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    ReleaseFolder.of(folder).keep([name])
    return path


def as_parquet(folder: Path, out: Path) -> Path:
    """A copy of the folder of a release whose table is Parquet; its statement is about the CSV file."""
    shutil.copytree(folder, out)
    statement = (out / "released.csv.privacy.json").read_text()
    write_table(out / "released.parquet", read_table(out / "released.csv", text=("user", "plan")))
    for name in ("released.csv", "released.csv.privacy.json"):
        (out / name).unlink()
    edited(out, "released.parquet.privacy.json", statement)
    ReleaseFolder.of(out).keep(["released.parquet", "released.csv", "released.csv.privacy.json"])
    return out
