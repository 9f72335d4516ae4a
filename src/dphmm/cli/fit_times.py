"""Time steps, gaps and speeds of a fit, from its options and the columns of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dphmm.cli.console import Console
from dphmm.cli.fit_options import DEFAULT_SPEED
from dphmm.errors import InvalidInput


def times(given: Mapping[str, Any]) -> dict[str, Any]:
    """step, gap and hold, in seconds and steps."""
    from dphmm.cli.quantities import duration

    step = None if given["step"] is None else duration(given["step"], "--step")
    gap = None if given["gap"] is None else duration(given["gap"], "--gap")
    if step is None or gap is None:
        return {"step": step, "gap": gap}
    if gap < step:
        raise InvalidInput("--gap", given["gap"], f"at least the step, {given['step']}")
    longest = given.get("max_length")
    if longest is not None and gap // step > longest:
        # Filled, such a hole would pass the cap by itself, and take memory that no cap bounds.
        raise InvalidInput("--gap", given["gap"], f"at most {longest} steps of {given['step']}, as --max-length says")
    return {"step": step, "hold": gap // step - 1}


def check_times(step: str | None, timed: bool, columns: Sequence[str]) -> None:
    """A time step needs times, or the numbers of time bins."""
    from dphmm.storage.csv_files import listed

    if step is not None and not timed and "step" not in columns:
        expected = "a column t of times (dphmm import csv with --time-column makes it), or no --step: every row is one"
        raise InvalidInput("--step", f"{step}, and columns {listed(list(columns))}", expected)


def bins_of(step: int | None, columns: Sequence[str]) -> int | None:
    """The time step of which the column step has the numbers, if it stands beside times; alone it is refused later."""
    return step if "t" in columns else None


def warn_of_order(path: Path, console: Console) -> None:
    """Say so where no column tells in which order the rows of a user are."""
    from dphmm.storage.tables import column_names

    if not {"t", "step"} & set(column_names(path)):
        console.warn(
            "no column t or step: rows are taken in file order (dphmm import csv --time-column makes a column t)"
        )


def speed_limit(given: Mapping[str, Any], timed: bool, placed: bool) -> object:
    """Metres per second, or None. The default is for what it fits; asked for, it is refused where it cannot be kept."""
    from dphmm.cli.quantities import speed

    asked = given["max_speed"]
    if asked == "none":
        return None
    if asked is None:
        there = timed and placed and given["state_column"] is None
        return speed(DEFAULT_SPEED, "--max-speed") if there else None
    return speed(asked, "--max-speed")
