"""Release one row of the table by its command, and measure what came out."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.real.errors import answers_of, estimated, joined, mean_errors
from benchmarks.real.inputs import INPUTS
from benchmarks.real.matrix import Cell, counts_of, release_arguments


def measured(cell: Cell, folder: Path, document: dict[str, Any], drifted: int, seconds: float) -> dict[str, Any]:
    """What the table shows of one cell."""
    given = INPUTS[cell.name]
    released = estimated(cell, folder)
    both = joined(pd.read_parquet(folder / "release.parquet"), released, 300 if "--step" in given.fitting else None)
    raw, estimate = mean_errors(both, answers_of(given, folder))
    return {
        "rows": document["rows"],
        "people": document["subjects"],
        "released": document["released"],
        "skipped": document["skipped_steps"],
        "drifted": drifted / document["released"],
        "raw": raw,
        "estimate": estimate,
        "unit": given.unit,
        "epsilon": document["epsilon_per_release"],
        "cost_mean": float(released.cost.mean()),
        "cost_max": float(released.cost.max()),
        "mechanisms": document["mechanisms"],
        "plans": document["plans"],
        "seconds": seconds,
    }


def drift_in(counts: Path) -> int:
    """How many new releases were of a surrogate, from the owner's file."""
    return int(json.loads(counts.read_text())["drifted"])


def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run one dphmm command; its failure is ours."""
    done = subprocess.run(
        [sys.executable, "-m", "dphmm", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"dphmm {arguments[0]} failed ({done.returncode}): {done.stderr.strip()}")
    return done


def run_cell(cell: Cell, folder: Path) -> dict[str, Any]:
    """Release one cell and measure it, unless that was done before."""
    result = folder / f"{cell.file}.result.json"
    if result.exists():
        found: dict[str, Any] = json.loads(result.read_text())
        return found
    # What an interrupted run left is no result: it is started anew, so that the time is that of a whole run.
    for left in (folder / cell.file, *folder.glob(f"{cell.file}.*")):
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    began = time.perf_counter()
    done = command(*release_arguments(cell, folder))
    seconds = time.perf_counter() - began
    found = measured(cell, folder, json.loads(done.stdout), drift_in(counts_of(cell, folder)), seconds)
    result.write_text(json.dumps(found))
    return found
