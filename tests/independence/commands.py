"""Files of a small town and a small site, and commands run in this process on any truth, in a folder of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet
from pyarrow.csv import ConvertOptions, read_csv

import dphmm
from dphmm.cli.app import app
from independence.observing import overheard

BOX = (10.0, 50.0, 10.042, 50.027)
GRID = dphmm.Grid.from_bounds(*BOX, cell=1000.0)
PAGES = dphmm.StateSpace.categories(["home", "news", "shop", "help"], [[0], [2], [3], [7]])
HEXES = dphmm.states.H3.covering(*np.meshgrid([50.0, 50.01, 50.02], [10.0, 10.01, 10.02, 10.03]), 8)
MODELS = ("town", "site", "hive")
#: Users and steps of every input; the truths of "ann" are what varies.
USERS = ("ann", "bob")
TIMES = tuple(f"2024-05-06T08:{minute:02d}:10Z" for minute in (0, 5, 20))


def narrow(n: int, **more: object) -> dphmm.MarkovModel:
    """From the first state to itself and the next two, cyclically: the others are drift at the first steps."""
    moves = sum(np.roll(np.eye(n), k, axis=1) for k in range(3)) / 3
    return dphmm.MarkovModel(np.eye(n)[0], moves, **more)


def write_public_files(folder: Path, setting: Mapping[str, str] | None = None) -> None:
    """Models and policies of the town (a map with time steps), and of the site and the hive (pages and hexagons, every
    row a step). ``setting``: what the policies' files say of plans.
    """
    town = narrow(GRID.n_states, space=GRID, step=300)
    site = narrow(PAGES.n_states, space=PAGES)
    hive = narrow(HEXES.n_states, space=HEXES)
    for kind, model in zip(MODELS, (town, site, hive), strict=True):
        dphmm.storage.save_model(model, folder / f"{kind}.npz")
    pairs = dphmm.policy.from_edges([(0, 1), (2, 3)], 4)
    dphmm.storage.save_policy(dphmm.policy.radius(GRID, 1500), folder / "town.json", GRID, setting=setting)
    dphmm.storage.save_policy(pairs, folder / "site.json", PAGES, setting=setting)
    dphmm.storage.save_policy(dphmm.policy.radius(HEXES, 1500), folder / "hive.json", HEXES, setting=setting)


def places() -> list[tuple[float, float]]:
    """Latitudes and longitudes: one in every cell, and outside: near, far, at the poles and at the antimeridian."""
    lat, lon = GRID.to_latlon(GRID.answers)
    outside = [
        (50.0271, 10.02),
        (49.99, 9.99),
        (-33.9, 151.2),
        (90.0, 0.0),
        (-90.0, 180.0),
        (50.01, -180.0),
        (50.01, 359.9),
    ]
    return [*zip(lat.round(6).tolist(), lon.round(6).tolist(), strict=True), *outside]


def town_rows(truth: tuple[float, float]) -> str:
    """CSV of the town in which ann is at one place all the time, bob in the first cell."""
    where = {"ann": truth, "bob": (50.004, 10.006)}
    rows = [f"{user},{t},{lat:.6f},{lon:.6f}" for user, (lat, lon) in where.items() for t in TIMES]
    return "\n".join(["user,t,lat,lon", *rows, ""])


def site_rows(truth: str) -> str:
    """CSV of the site in which ann's first and second pages are the truth."""
    return f"user,state\nann,{truth}\nbob,news\nann,{truth}\nann,shop\nbob,home\n"


#: Names that may stand in a file: the pages, and what no model knows.
NAMES = [*PAGES.names, "checkout", "HOME", "0", "nan", "NULL", "x" * 200, "=cmd()", "ὁ", "home ", " home"]


def release_arguments(kind: str, output: str, *more: str) -> list[str]:
    """The arguments of a release of rows.csv in the folder of the public files; with "out.csv" into out, as CSV.

    With "-" it has no output, as a stream that nobody states anything of.
    """
    folder, _, suffix = output.partition(".")
    written = () if output == "-" else ("-o", folder, *(("--format", suffix) if suffix else ()))
    return [
        "release", "rows.csv", "--model", f"{kind}.npz", "--policy", f"{kind}.json", "--epsilon", "1",
        *written, "--ledger", "ledger.db", "--yes", *more,
    ]  # fmt: skip


def run(arguments: list[str], input: str | None = None) -> Result:
    """A command, in this process and folder."""
    result = CliRunner().invoke(app, arguments, input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def shown_by(
    folder: Path, rows: str, arguments: list[str], input: str | None = None, setting: Mapping[str, str] | None = None
) -> dict[str, object]:
    """All that a command shows of rows, run in a new folder: exit code, streams, what else is heard, files."""
    write_public_files(folder, setting)
    (folder / "rows.csv").write_text(rows, encoding="utf-8")
    if "rows.parquet" in arguments:
        as_text = ConvertOptions(column_types={"user": pa.string(), "state": pa.string()})
        parquet.write_table(read_csv(folder / "rows.csv", convert_options=as_text), folder / "rows.parquet")
    private = {"rows.csv", "rows.parquet", *(f"{kind}.{part}" for kind in MODELS for part in ("npz", "json"))}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with overheard() as heard:
            result = run(arguments, input)
    made = {path.name: path for path in _files(folder) if path.name not in private}
    # What the counts for the owner alone say depends on the truth; that they are there, and for whom, does not.
    own = [
        name
        for name, path in made.items()
        if name.endswith(".owner.json") or (path.parent.suffix == ".owner" and name != "rejected.csv")
    ]
    counts = {name: made.pop(name).stat().st_mode for name in own}
    return {
        "for the owner": counts,
        "exit": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        **{f"heard {name}": value for name, value in heard.items()},
        "names": {name: (path.stat().st_mode, path.stat().st_size) for name, path in made.items()},
        **{name: path.read_bytes() for name, path in made.items()},
    }


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        yield from (Path(root) / name for name in names)
