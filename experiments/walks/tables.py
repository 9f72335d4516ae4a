"""What the tables of both experiments on walks have in common: columns, intervals, a line for each reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from experiments.drawing import Figure
from experiments.printed import named
from experiments.walks.cells import READINGS

if TYPE_CHECKING:
    import pandas as pd

_CHOICES = ("policy", "mechanism", "epsilon", "delta", "radius", "fit")
WITH_INTERVALS = (
    "error_z",
    "error_estimate",
    "error_smoothed",
    "error_blind",
    "degree",
    "degree_possible",
    "plan_size",
)
_SHARES = ("support_size", "drift", "constant")
_ROOTS = ("rms_z", "rms_estimate", "rms_smoothed", "rms_blind")
#: The DPHMM paper's mechanism.
PAPERS_MECHANISM = "planar-isotropic"
#: Mechanisms by short names, for figures.
SHORT = {PAPERS_MECHANISM: "PIM", "planar-laplace": "planar Laplace", "laplace": "Laplace", "auto": "auto"}
#: The smoothed reading is shown for this mechanism alone, so that a figure can still be read.
_SMOOTHED_TOO = "auto"


def intervals(names: Sequence[str]) -> list[str]:
    """The columns of measures and of their intervals."""
    return [f"{name}{end}" for name in names for end in ("", "_low", "_high")]


#: Columns of the table of everything that was measured over all steps.
OVERALL = (
    *("data", "method", *_CHOICES, "steps", *intervals(WITH_INTERVALS)),
    *(*_ROOTS, "least_degree", *_SHARES, "cost"),
)


def with_interval(
    name: str,
    title: str,
    table: str,
    x: tuple[str, str],
    y: str,
    y_label: str,
    *,
    by: str,
    panels: str = "data",
    log_y: bool = False,
) -> Figure:
    """A figure of a measure with its interval over ``x``, a column and its label."""
    low, high = intervals((y,))[1:]
    return Figure(name, title, table, x[0], y, by, x[1], y_label, panels=panels, low=low, high=high, log_y=log_y)


def with_columns(rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The rows with columns that a run may lack: without data, or without times."""
    return rows.reindex(columns=[*rows.columns, *dict.fromkeys(name for name in names if name not in rows)])


def mechanisms(overall: pd.DataFrame) -> pd.DataFrame:
    """A line for every reading of every mechanism: what a figure of errors is drawn from."""
    import pandas as pd

    return pd.DataFrame(
        list(_readings(overall)),
        columns=["panel", "data", "method", "mechanism", "reading", "epsilon", *intervals(("error",)), "rms"],
    )


def _readings(overall: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for _, row in overall[overall["mechanism"].isin(SHORT)].iterrows():
        for reading in READINGS if row["mechanism"] == _SMOOTHED_TOO else READINGS[:2]:
            line = {name: row[name] for name in ("data", "method", "mechanism", "epsilon")}
            line |= {
                "panel": f"{row['data']}: {row['method']}",
                "reading": f"{SHORT[row['mechanism']]}: {reading}",
            }
            line |= {f"error{end}": row[f"error_{reading}{end}"] for end in ("", "_low", "_high")}
            yield line | {"rms": row[f"rms_{reading}"]}


#: Data sets by the names of the printed tables.
NAMES = {"geolife": "Geolife", "gowalla": "Gowalla"}
#: Steps of a printed table: on Gowalla all cells are soon possible.
_STEPS, _GOWALLA_STEPS = (1, 5, 10, 30, 100), (1, 10, 100)


def at_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """The lines of a printed table over time, with the data set and the step in a column ``step``."""
    few = steps["data"].eq(NAMES["gowalla"])
    there = steps["t"].isin(_GOWALLA_STEPS) | (~few & steps["t"].isin(_STEPS))
    return named(steps[there], "step", "{data}, t = {t:.0f}")
