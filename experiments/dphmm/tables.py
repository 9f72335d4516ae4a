"""Tables of the experiment "dphmm", each a selection of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.printed import Printed, beside, crossed, figure, listed, named, of
from experiments.walks.releases import UTIL
from experiments.walks.studies import OTHERS, radii
from experiments.walks.tables import (
    NAMES,
    OVERALL,
    PAPERS_MECHANISM,
    WITH_INTERVALS,
    at_steps,
    intervals,
    mechanisms,
    with_columns,
)

if TYPE_CHECKING:
    import pandas as pd

_SWEPT = ("data", "method", "mechanism", "epsilon")
ANALYTICS = ("density", "flows", "ends", "visits", "gyration")


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table, from all rows."""
    rows = with_columns(
        rows, ("kind", "reason", "seconds", "what", "t", "reading", "plan_size", *OVERALL, *intervals(ANALYTICS))
    )
    overall = rows[rows["kind"] == "overall"].copy()
    overall["epsilon"] = overall["epsilon"].astype(float)
    found = {
        "epsilon": _shown(_as_the_paper(overall), _SWEPT, (*WITH_INTERVALS, "drift"), more=("least_degree",)),
        "radius": _radius(overall),
        "over-time": _over_time(rows),
        "runtime": rows.loc[rows["kind"] == "runtime", ["data", "method", "what", "t", "seconds", "plan_size"]],
        "mechanisms": mechanisms(_defaults(overall)),
        "choices": overall.loc[(overall["epsilon"] == 1) & _default_radius(overall), list(OVERALL)],
        "analytics": _analytics(rows),
        "overall": overall[list(OVERALL)],
        "skipped": rows.loc[rows["part"] == "skipped", ["data", "reason"]].astype(str),
    }
    return {name: table.reset_index(drop=True) for name, table in found.items()}


def _as_the_paper(rows: pd.DataFrame) -> pd.DataFrame:
    defaults = _defaults(rows)
    found: pd.DataFrame = defaults[defaults["mechanism"] == PAPERS_MECHANISM]
    return found


def _defaults(overall: pd.DataFrame) -> pd.DataFrame:
    """Without variations: the policies on their own plan sets, with their own radius."""
    usual = (overall["fit"] == OTHERS) & _default_radius(overall)
    found: pd.DataFrame = overall[usual & (overall["delta"].isna() == (overall["policy"] != "complete"))]
    return found


def _default_radius(overall: pd.DataFrame) -> Any:
    radius = overall["data"].map(lambda name: radii(name)[0])
    return overall["radius"].isna() | (overall["radius"] == radius)


def _radius(overall: pd.DataFrame) -> pd.DataFrame:
    """Gutil by radius, and DPLS, which has none, beside each."""
    import pandas as pd

    one = overall[(overall["epsilon"] == 1) & (overall["fit"] == OTHERS)]
    one = one[one["mechanism"].isin((PAPERS_MECHANISM, "auto", "planar-laplace"))]
    util = one[(one["policy"] == UTIL) & one["delta"].isna()]
    lines = [util.assign(method=util["method"] + ", " + util["mechanism"])]
    others = one[one["method"] == "DPLS"]
    for radius in sorted(util["radius"].unique()):
        of = others[others["data"].isin(util.loc[util["radius"] == radius, "data"])]
        lines.append(of[of["mechanism"] == PAPERS_MECHANISM].assign(radius=radius))
    found = pd.concat(lines) if lines else util
    found = found.assign(radius_km=found["radius"] / 1000)
    return _shown(
        found, ("data", "method", "mechanism", "radius_km"), (*WITH_INTERVALS, "drift"), more=("least_degree",)
    )


def _over_time(rows: pd.DataFrame) -> pd.DataFrame:
    steps = _as_the_paper(rows[rows["kind"] == "step"])
    return _shown(steps, ("data", "method", "t"), (*WITH_INTERVALS, "support_size", "drift"))


def _analytics(rows: pd.DataFrame) -> pd.DataFrame:
    return _shown(rows[rows["kind"] == "analytics"], ("data", "method", "mechanism", "reading"), ANALYTICS)


def _shown(rows: pd.DataFrame, names: Sequence[str], values: Sequence[str], more: Sequence[str] = ()) -> pd.DataFrame:
    shown: pd.DataFrame = rows[[*names, *intervals(values), *more]]
    return shown


def printed(tables: dict[str, pd.DataFrame]) -> dict[str, Printed]:
    """The tables of the page."""
    measured = {name: table for name, table in tables.items() if "method" in table}
    found = {name: table.assign(data=table["data"].replace(NAMES)) for name, table in measured.items()}
    found = {name: named(table, "who", "{data} {method}") for name, table in found.items()}
    by_epsilon = found["epsilon"].sort_values("epsilon", kind="stable")
    one, steps = by_epsilon[by_epsilon["epsilon"] == 1], at_steps(found["over-time"])
    readings = found["mechanisms"][found["mechanisms"]["epsilon"] == 1]
    by_radius = found["radius"][found["radius"]["method"].str.startswith(UTIL)]
    by_radius = by_radius[by_radius["mechanism"] == PAPERS_MECHANISM].sort_values(["data", "radius_km"])
    by_radius = named(by_radius, "r", "{data}, r = {radius_km:g} km")
    runtime = found["runtime"].groupby(["data", "what", "method"], sort=False)["seconds"].median().reset_index()
    uses = found["analytics"][found["analytics"]["mechanism"] == "auto"]
    uses = uses[uses["method"].isin(one["method"])]
    return {
        "by-epsilon": crossed(
            named(by_epsilon, "epsilon", "{epsilon:g}"),
            *("ε", "epsilon", "who"),
            lambda row: f"{figure(row['error_z'])} ({figure(row['error_estimate'])})",
        ),
        "by-radius": listed(by_radius, "", "r", {"degree": of("degree", 2), "error": of("error_z")}),
        "mechanisms": beside(
            crossed(readings, "error, km", "who", "reading", of("error")),
            listed(one, "", "who", {"PIM: smoothed": of("error_smoothed")}),
        ),
        "over-time": beside(
            crossed(named(steps, "what", "degree, {method}"), "", "step", "what", of("degree", 2)),
            crossed(named(steps, "what", "error, {method}"), "", "step", "what", of("error_z")),
            listed(steps[steps["method"] == UTIL], "", "step", {"possible cells": of("support_size")}),
        ),
        "runtime": crossed(runtime, *("milliseconds", "data", "what"), lambda row: figure(1000 * row["seconds"], 2)),
        "uses": beside(
            *(
                listed(
                    uses[uses["reading"] == reading],
                    *("", "who"),
                    {f"{reading}: {name}": of(name) for name in ("density", "flows", "visits", "gyration")},
                )
                for reading in ("z", "smoothed")
            )
        ),
    }
