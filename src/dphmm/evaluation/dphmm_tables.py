"""Tables of the experiment "dphmm", each a selection of what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dphmm.evaluation.walk_measures import READINGS
from dphmm.evaluation.walk_releases import UTIL
from dphmm.evaluation.walk_sources import RADII
from dphmm.evaluation.walk_studies import OTHERS

if TYPE_CHECKING:
    import pandas as pd

_CHOICES = ("policy", "mechanism", "epsilon", "delta", "radius", "scope", "fit")
_WITH_INTERVALS = (
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
#: Columns of the table of everything that was measured over all steps.
OVERALL = (
    "data",
    "method",
    *_CHOICES,
    "steps",
    *(f"{name}{end}" for name in _WITH_INTERVALS for end in ("", "_low", "_high")),
)
OVERALL = (*OVERALL, *_ROOTS, "least_degree", *_SHARES, "cost")
_SWEPT = ("data", "method", "mechanism", "epsilon")
ANALYTICS = ("density", "flows", "ends", "visits", "gyration")
#: The policies' own plan sets, and the paper's mechanism.
PAPERS_MECHANISM = "planar-isotropic"
_NAMES = {"z": "z", "estimate": "estimate", "smoothed": "smoothed"}
#: Short ones, for figures.
_SHORT = {PAPERS_MECHANISM: "PIM", "planar-laplace": "planar Laplace", "laplace": "Laplace", "auto": "auto"}
#: Of every ε; smoothed for the best of them, so that a figure can still be read.
_IN_HINDSIGHT = "auto"


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table, from all rows."""
    rows = with_columns(
        rows, ("kind", "reason", "seconds", "what", "t", "reading", "plan_size", *OVERALL, *intervals(ANALYTICS))
    )
    overall = rows[rows["kind"] == "overall"].copy()
    overall["epsilon"] = overall["epsilon"].astype(float)
    found = {
        "epsilon": _shown(_as_the_paper(overall), _SWEPT, (*_WITH_INTERVALS, "drift"), more=("least_degree",)),
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


def with_columns(rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The rows with columns that a run may lack: without data, or without times."""
    return rows.reindex(columns=[*rows.columns, *dict.fromkeys(name for name in names if name not in rows)])


def mechanisms(overall: pd.DataFrame) -> pd.DataFrame:
    """A line for every reading of every mechanism: what a figure of errors is drawn from."""
    import pandas as pd

    return pd.DataFrame(
        list(_readings(overall)),
        columns=[
            "panel",
            "data",
            "method",
            "mechanism",
            "reading",
            "epsilon",
            "error",
            "error_low",
            "error_high",
            "rms",
        ],
    )


def _readings(overall: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for _, row in overall[overall["mechanism"].isin(_SHORT)].iterrows():
        for reading in READINGS if row["mechanism"] == _IN_HINDSIGHT else READINGS[:2]:
            line = {name: row[name] for name in ("data", "method", "mechanism", "epsilon")}
            line |= {
                "panel": f"{row['data']}: {row['method']}",
                "reading": f"{_SHORT[row['mechanism']]}: {_NAMES[reading]}",
            }
            line |= {f"error{end}": row[f"error_{reading}{end}"] for end in ("", "_low", "_high")}
            yield line | {"rms": row[f"rms_{reading}"]}


def _as_the_paper(rows: pd.DataFrame) -> pd.DataFrame:
    defaults = _defaults(rows)
    found: pd.DataFrame = defaults[defaults["mechanism"] == PAPERS_MECHANISM]
    return found


def _defaults(overall: pd.DataFrame) -> pd.DataFrame:
    """Without variations: the policies on their own plan sets, with their own radius."""
    usual = (overall["scope"] == "global") & (overall["fit"] == OTHERS) & _default_radius(overall)
    found: pd.DataFrame = overall[usual & (overall["delta"].isna() == (overall["policy"] != "complete"))]
    return found


def _default_radius(overall: pd.DataFrame) -> Any:
    radius = overall["data"].map({name: default for name, (default, _) in RADII.items()})
    return overall["radius"].isna() | (overall["radius"] == radius)


def _radius(overall: pd.DataFrame) -> pd.DataFrame:
    """Gutil by radius, and DPLS, which has none, beside each."""
    import pandas as pd

    one = overall[(overall["epsilon"] == 1) & (overall["scope"] == "global") & (overall["fit"] == OTHERS)]
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
        found, ("data", "method", "mechanism", "radius_km"), (*_WITH_INTERVALS, "drift"), more=("least_degree",)
    )


def _over_time(rows: pd.DataFrame) -> pd.DataFrame:
    steps = _as_the_paper(rows[rows["kind"] == "step"])
    return _shown(steps, ("data", "method", "t"), (*_WITH_INTERVALS, "support_size", "drift"))


def _analytics(rows: pd.DataFrame) -> pd.DataFrame:
    return _shown(rows[rows["kind"] == "analytics"], ("data", "method", "mechanism", "reading"), ANALYTICS)


def _shown(rows: pd.DataFrame, names: Sequence[str], values: Sequence[str], more: Sequence[str] = ()) -> pd.DataFrame:
    shown: pd.DataFrame = rows[[*names, *intervals(values), *more]]
    return shown


def intervals(names: Sequence[str]) -> list[str]:
    """The columns of measures and of their intervals."""
    return [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
