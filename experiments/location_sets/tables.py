"""Tables of the experiment "location-sets", each a selection of what was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from experiments.printed import Printed, beside, crossed, figure, listed, named, of, percent
from experiments.walks.releases import COMPLETE, UTIL
from experiments.walks.tables import NAMES, OVERALL, SHORT, at_steps, intervals, mechanisms, with_columns

if TYPE_CHECKING:
    import pandas as pd

_MEASURED = ("error_z", "error_estimate", "error_smoothed", "error_blind", "plan_size", "drift")
_PLACES = ("reading", "k", "returned", *intervals(("precision", "recall")))
_DELTA = "0.01"


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table, from all rows."""
    rows = with_columns(rows, ("kind", "reason", "t", *_PLACES, *OVERALL, *intervals(_MEASURED)))
    overall = rows[rows["kind"] == "overall"].copy()
    overall["epsilon"] = overall["epsilon"].astype(float)
    sets = overall[overall["policy"] == COMPLETE]
    paper, one = sets[sets["delta"] == _DELTA], sets[sets["epsilon"] == 1]
    steps = rows[(rows["kind"] == "step") & (rows["delta"] == _DELTA)]
    by_delta = one.assign(delta_=one["delta"].fillna("0").astype(float)).sort_values(["data", "mechanism", "delta_"])
    places = rows[rows["kind"] == "places"]
    found = {
        "epsilon": paper[["data", "mechanism", "epsilon", *intervals(_MEASURED)]],
        "delta": by_delta[["data", "mechanism", "delta_", *intervals(_MEASURED), "degree"]],
        "over-time": steps[["data", "mechanism", "t", *intervals(_MEASURED), "support_size"]],
        "mechanisms": mechanisms(paper),
        "places": places[["data", "method", "mechanism", "epsilon", *_PLACES]],
        "ten-places": _ten(places),
        "overall": overall[list(OVERALL)],
        "skipped": rows.loc[rows["part"] == "skipped", ["data", "reason"]].astype(str),
    }
    return {name: table.reset_index(drop=True) for name, table in found.items()}


def _ten(places: pd.DataFrame) -> pd.DataFrame:
    """The ten nearest places at epsilon 1: the answers themselves, and the best that is made of them."""
    found = places[(places["k"] == 10) & (places["epsilon"] == "1")]
    found = found[found["reading"].isin(("z", "smoothed")) & found["mechanism"].isin(("planar-isotropic", "auto"))]
    usual = found["delta"].eq(_DELTA) | (found["policy"] != COMPLETE)
    found = found[usual]
    who = found["method"] + ", " + found["mechanism"] + ", " + found["reading"]
    return found.assign(who=who)[["data", "who", *_PLACES]]


#: The readings of the printed table of places, by mechanism.
_PRINTED_READINGS = {"PIM": ("z", "estimate"), "auto": ("smoothed",)}


def printed(tables: dict[str, pd.DataFrame]) -> dict[str, Printed]:
    """The tables of the page: the paper's mechanism, where none is named."""
    found = {
        name: table.assign(data=table["data"].replace(NAMES), mechanism=table["mechanism"].map(SHORT))
        for name, table in tables.items()
        if "mechanism" in table
    }
    by_epsilon, by_delta = found["epsilon"].sort_values("epsilon", kind="stable"), _papers(found["delta"])
    places = found["places"]
    places = places[(places["k"] == 10) & (places["epsilon"] == "1") & places["method"].isin(("DPLS", UTIL))]
    wanted = [
        reading in _PRINTED_READINGS.get(mechanism, ())
        for reading, mechanism in zip(places["reading"], places["mechanism"], strict=True)
    ]
    places = places[wanted].sort_values("method", kind="stable")
    places = named(named(places, "who", "{method}, {mechanism}: {reading}"), "near", "{data}, {returned:.0f}")
    columns: dict[str, Callable[[pd.Series[Any]], str]] = {
        "cells in the set": of("plan_size"),
        "possible": of("support_size"),
        "drift": lambda row: percent(row["drift"]),
        "error of z, km": of("error_z"),
        "of the estimate": of("error_estimate"),
        "without release": of("error_blind"),
    }
    of_deltas = {name: show for name, show in columns.items() if name not in ("possible", "without release")}
    return {
        "by-delta": beside(
            *(
                listed(
                    named(by_delta[by_delta["data"] == data], "delta", "{delta_:g}"),
                    *("δ", "delta"),
                    {f"{data}: {name}": show for name, show in of_deltas.items()},
                )
                for data in dict.fromkeys(by_delta["data"])
            )
        ),
        "by-epsilon": crossed(
            named(named(by_epsilon, "who", "{data}, {mechanism}"), "epsilon", "{epsilon:g}"),
            *("ε", "epsilon", "who"),
            lambda row: f"{figure(row['error_z'])} ({figure(row['error_estimate'])})",
        ),
        "nearest-places": crossed(places, "recall", "who", "near", lambda row: figure(row["recall"], 2)),
        "over-time": listed(at_steps(_papers(found["over-time"])), "", "step", columns),
    }


def _papers(table: pd.DataFrame) -> pd.DataFrame:
    found: pd.DataFrame = table[table["mechanism"] == "PIM"]
    return found
