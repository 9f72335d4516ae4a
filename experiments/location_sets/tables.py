"""Tables of the experiment "location-sets", each a selection of what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.walks.releases import COMPLETE
from experiments.walks.tables import OVERALL, intervals, mechanisms, with_columns

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
