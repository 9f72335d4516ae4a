"""Tables of the experiment "dphmm", each a selection of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.walks.releases import UTIL
from experiments.walks.studies import OTHERS, radii
from experiments.walks.tables import OVERALL, PAPERS_MECHANISM, WITH_INTERVALS, intervals, mechanisms, with_columns

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
