"""The commands on real data, one cell of input, model, policy and constraint for each seed.

Import, fit, policy, release, account, read and check-release run in one process under replayed words, in a folder of
their own. Told are exit codes, what was printed, the released and read tables, the ledger and the statement. Wall
times, versions and digests of files with floats are left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
from benchmarks.real import matrix
from benchmarks.real.inputs import INPUTS
from benchmarks.real.matrix import Cell
from benchmarks.real.preparing import prepare
from click.testing import CliRunner

import dphmm
from dphmm.cli.release import release
from frozen.worlds import PATH_ON_REQUEST, Told, tell_ledger, tell_table

#: What may differ between two runs of the same code.
_UNSTABLE = re.compile(r"sha256|digest|seconds|version|created|time_taken")
_FEW_ROWS, _FEW_USERS = 60, 3


def data_folder() -> Path:
    """The folder of real data; exits where there is none."""
    folder = Path(os.environ.get("DPHMM_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not folder.is_dir():
        raise SystemExit("no real data here: set DPHMM_DATA to its folder, or name other --families")
    return folder


def cells() -> list[Cell]:
    """Every row of the table of real data, those of one input apart, so that few seeds meet all inputs."""
    by_input = [list(matrix.cells(name)) for name in INPUTS]
    longest = max(map(len, by_input))
    return [some[place] for place in range(longest) for some in by_input if place < len(some)]


def real_commands(seed: int) -> Told:
    """One cell, from its prepared files to the smoothed release."""
    told = Told()
    cell = cells()[seed % len(cells())]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "cell"
        shutil.copytree(_prepared(cell.name), folder)
        rows, fitted = folder / "few.parquet", folder / f"{cell.model}.npz"
        allowed = folder / f"{cell.model}-{cell.policy}.json"
        _few(folder / "release.parquet", cell.constraint).to_parquet(rows, index=False)
        out, ledger, smoothed = folder / "out", folder / "ledger.db", folder / "smoothed.csv"
        public = ("--model", fitted, "--policy", allowed)
        # In earlier commits it is an option, in later ones the policy's file has it.
        given = {option.name for option in release.params}
        options = ["--constraint", cell.constraint] if "constraint" in given else []
        told.exact.append(["policy", json.loads(allowed.read_text())])
        if "constraint" not in given and cell.constraint != "support":
            allowed.write_text(
                json.dumps({**json.loads(allowed.read_text()), "setting": {"constraint": cell.constraint}})
            )
        # Earlier commits ask nothing where no limit is set.
        options += ["--yes"] * any(option.name == "yes" for option in release.params)
        told.exact.append([cell.file])
        told.exact.append(["model", dphmm.storage.load_model(fitted).digest])
        commands: list[tuple[Any, ...]] = [
            ("release", rows, *public, "--epsilon", "1", "-o", out, "--ledger", ledger, "--json", "-q", *options),
            ("release", rows, *public, "--epsilon", "1", "-o", out, "--ledger", ledger, "-q", *options),
            ("account", ledger, "--json"),
            ("read", out, "--estimates", "-o", smoothed, "--json", *(("--path",) if PATH_ON_REQUEST else ())),
            ("check-release", out, "--json"),
        ]
        for command in commands:
            _tell_run(told, folder, command)
        for path in (out / "released.csv", smoothed):
            told.exact.append([path.name, path.exists()])
            if path.exists():
                tell_table(told, pd.read_csv(path))
        if ledger.exists():
            with dphmm.open_ledger(ledger) as stored:
                tell_ledger(told, stored)
    return told


@cache
def _prepared(name: str) -> Path:
    """The folder of one input, imported, fitted and with its policies; it lasts as long as the process."""
    folder = Path(_lasting()) / name
    prepare(INPUTS[name], data_folder(), folder, _FEW_USERS, lambda *given: _run(given))
    return folder


@cache
def _lasting() -> str:
    return tempfile.mkdtemp(prefix="frozen-")


def _few(path: Path, constraint: str) -> pd.DataFrame:
    """The first rows of each person; of one alone where the order in which several read words is not a promise."""
    rows = pd.read_parquet(path)
    few = rows if constraint == "support" else rows[rows.user == rows.user.iloc[0]]
    return few.groupby("user", sort=False).head(_FEW_ROWS)


def _run(given: tuple[Any, ...]) -> Any:
    from dphmm.cli.app import app

    result = CliRunner().invoke(app, [str(value) for value in given])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def _tell_run(told: Told, folder: Path, command: tuple[Any, ...]) -> None:
    """One command under replayed words: its exit code and what it printed."""
    from dphmm.samplers import entropy

    bits = dphmm.ReplayBits(1)
    with patch.object(entropy.SystemBits, "uint64", lambda _, n: bits.uint64(n)):
        result = _run(command)
    told.exact.append(["exit", command[0], result.exit_code])
    printed, warned = (text.replace(str(folder), "FOLDER") for text in (result.stdout, result.stderr))
    told.exact.append([line for line in warned.splitlines() if not _UNSTABLE.search(line)])
    try:
        _tell_json(told, json.loads(printed), command[0])
    except ValueError:
        told.exact.append([line for line in printed.splitlines() if not _UNSTABLE.search(line)])


def _tell_json(told: Told, value: Any, path: str) -> None:
    """Members by their paths: floats in their class, all else exactly."""
    if isinstance(value, dict):
        for name in sorted(value):
            if not _UNSTABLE.search(name):
                _tell_json(told, value[name], f"{path}.{name}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _tell_json(told, each, f"{path}[{number}]")
    elif isinstance(value, float):
        told.floats.append([path, value])
    else:
        told.exact.append([path, value])
