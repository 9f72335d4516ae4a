"""Tables of the experiment "optimum", from its rows: distances, ratios to the optimum, and where they are too large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.optimum.mechanisms import (
    AUTO,
    DISCRETE,
    DISTANCE_STAIRCASE,
    KNORM,
    NOISES,
    OWN,
    PLANAR,
    TABLE,
)

if TYPE_CHECKING:
    import pandas as pd

#: What the best of our mechanisms, with the estimate, is to stay under.
GOAL = 1.12
_PLACE = ["side", "radius", "prior", "epsilon"]
_DIGITS = 4
#: The comparison of experiments/optimum/results.md: raw distance, and after the estimate.
_COLUMNS = {
    KNORM: "K-norm",
    DISCRETE: "DiscreteKNorm",
    DISTANCE_STAIRCASE: "Staircase",
    PLANAR: "planar Laplace",
}
#: What the figure shows besides the best of ours.
_LINES = {PLANAR: "planar Laplace", KNORM: "K-norm (paper)", AUTO: "auto", TABLE: "OptimalTable, uniform prior"}
_BEST_NOISE = "best noise of ours"


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of the experiment, by name.

    ``distances``: everything. ``best``, ``best_noise``: our best mechanism in every place, and the best that adds
    noise. ``missed``, ``missed_by_noise``: where they miss the goal; ``missed_by_table``: where the table for a uniform
    prior does. ``ratios``, ``worst``: by method; ``lines``: the few of the figure. ``peak``: raw and after the estimate
    side by side. ``edge``: growing grids.
    """
    found = rows.copy()
    for name in ("radius", "epsilon"):
        found[name] = found[name].astype(float)
    found["ratio_raw"], found["ratio"] = found["raw"] / found["optimum"], found["estimate"] / found["optimum"]
    grids, edge = found[found["part"] != "edge"], found[found["part"] == "edge"]
    measures = ["optimum", "raw", "estimate", "ratio_raw", "ratio"]
    best, best_noise, even = (_best(grids, methods) for methods in (OWN, NOISES, (TABLE,)))
    return {
        "peak": _peak(grids),
        "best": best,
        "best_noise": best_noise,
        "missed": _missed(best),
        "missed_by_noise": _missed(best_noise),
        "missed_by_table": _missed(even),
        "ratios": _ratios(grids),
        "lines": _lines(grids, best_noise),
        "worst": _worst(grids),
        "edge": edge[[*_PLACE, "method", *measures]].round(_DIGITS).reset_index(drop=True),
        "distances": grids[[*_PLACE, "method", *measures]].round(_DIGITS).reset_index(drop=True),
    }


def _missed(best: pd.DataFrame) -> pd.DataFrame:
    return best[best["ratio"] > GOAL].reset_index(drop=True)


def _best(grids: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """For each place that of some methods with the least distance after the estimate, the first of equals."""
    own = grids[grids["method"].isin(methods)].reset_index(drop=True)
    own["rounded"] = own["estimate"].round(9)
    at = own.groupby(_PLACE, sort=False)["rounded"].idxmin()
    found = own.loc[at, [*_PLACE, "optimum", "method", "estimate", "ratio"]]
    return found.round(_DIGITS).reset_index(drop=True)


def _ratios(grids: pd.DataFrame) -> pd.DataFrame:
    """The worst ratio over the priors, for each grid, method and epsilon."""
    by = _named(grids).groupby(["grid", "method", "epsilon"], sort=False, as_index=False)
    return by[["ratio_raw", "ratio"]].max().round(_DIGITS)


def _lines(grids: pd.DataFrame, noise: pd.DataFrame) -> pd.DataFrame:
    """The same of a few methods, and of our best noise in each place."""
    import pandas as pd

    few = grids[grids["method"].isin(_LINES)]
    both = pd.concat([few.assign(method=few["method"].map(_LINES)), noise.assign(method=_BEST_NOISE)])
    by = _named(both).groupby(["grid", "method", "epsilon"], sort=False, as_index=False)
    return by[["ratio"]].max().round(_DIGITS)


def _named(places: pd.DataFrame) -> pd.DataFrame:
    """With a column that names the grid."""
    names = [f"{s} x {s}, r = {r:g}" for s, r in zip(places["side"], places["radius"], strict=True)]
    return places.assign(grid=names)


def _worst(grids: pd.DataFrame) -> pd.DataFrame:
    """For each method its worst place."""
    places = grids.reset_index(drop=True)
    at = places.groupby("method", sort=False)["ratio"].idxmax()
    return places.loc[at, ["method", *_PLACE, "ratio_raw", "ratio"]].round(_DIGITS).reset_index(drop=True)


def _peak(grids: pd.DataFrame) -> pd.DataFrame:
    """The bell in the middle: for each method, raw / after the estimate."""
    import pandas as pd

    lines = []
    for (side, radius, epsilon), group in grids[grids["prior"] == "peak"].groupby(["side", "radius", "epsilon"]):
        by = group.set_index("method")
        line = {"side": side, "radius": radius, "epsilon": epsilon, "optimum": f"{by['optimum'].iloc[0]:.3f}"}
        for method, short in _COLUMNS.items():
            line[short] = f"{by['raw'][method]:.3f} / {by['estimate'][method]:.3f}"
        lines.append(line)
    return pd.DataFrame(lines)
