"""Tables of what was measured. Intervals are bootstraps over data sets (splits), draws of noise averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.evaluation import bootstrap_mean
from experiments.experiment import groups
from experiments.hmm_privacy.methods import EVERY, LAST

if TYPE_CHECKING:
    import pandas as pd

_PLACE = ("states", "length", "sequences")
_MEASURES = ("similarity", "paths", "loglik", "change")
_GUARANTEE = ("guarantee", "epsilon", "true_epsilon", "delta")
#: Columns of the tables about the casino.
CASINO = (
    *("panel", "panel_of_length", *_PLACE, "method", *_GUARANTEE, "data_sets"),
    *("similarity", "low", "high", "paths", "paths_low", "paths_high"),
    *("loglik", "change", "change_low", "change_high", "perplexity"),
)
REAL = ("data", "method", *_GUARANTEE, "splits", "loglik", "low", "high", "change", "change_low", "change_high")
NORMAL = (*_PLACE, "method", "data_sets", "similarity", "low", "high", "paths", "loglik", "loglik_low", "loglik_high")
LOSS = (*_PLACE, "removals", "claimed", "median", "low", "high", "largest", "beyond_claim")
#: Columns of rows that a run may lack: without the casino, or without real data.
_USED = (*_PLACE, "data_set", "data", "split", "reason", "method", *_GUARANTEE, *_MEASURES, "loss")
#: Up to this many sequences are the paper's.
_PAPERS = 300


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table, from all rows."""
    import pandas as pd

    rows = rows.reindex(columns=[*rows.columns, *(name for name in _USED if name not in rows)])
    casino, real, skipped = (rows[rows["part"] == part] for part in ("casino", "real", "skipped"))
    lost, noisy = casino["loss"].notna(), casino["epsilon"].notna()
    compared = pd.DataFrame(list(_compared(casino[~lost & noisy])), columns=list(CASINO))
    papers = compared[compared["sequences"] <= _PAPERS]
    found = {
        "overview": _overview(papers),
        "last": papers[papers["method"] == LAST.name],
        "last-loss": pd.DataFrame(list(_losses(casino[lost])), columns=list(LOSS)),
        "every": papers[papers["method"] == EVERY.name],
        "methods-2-states": papers[papers["states"] == 2],
        "methods-3-states": papers[papers["states"] == 3],
        "more-people": compared[(compared["length"] == 20) & (compared["sequences"].isin((_PAPERS, 3000)))],
        "normal": pd.DataFrame(list(_normal(casino[~lost & ~noisy])), columns=list(NORMAL)),
        "real": pd.DataFrame(list(_real(real)), columns=list(REAL)),
        "skipped": skipped[["data", "reason"]].astype(str),
    }
    return {name: table.reset_index(drop=True) for name, table in found.items()}


def _compared(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for (states, length, n), place in groups(rows, _PLACE):
        for (method, _), part in groups(place, ("method", "epsilon")):
            line = {"panel": f"{states:.0f} states, {n:.0f} sequences of {length:.0f}", "method": method}
            line["panel_of_length"] = f"{states:.0f} states, L = {length:.0f}"
            line |= {"states": int(states), "length": int(length), "sequences": int(n)}
            line |= {name: part[name].iloc[0] for name in _GUARANTEE} | {"data_sets": part["data_set"].nunique()}
            mean = _means(part, "data_set")
            line |= _interval(mean("similarity"), "similarity", "low", "high")
            line |= _interval(mean("paths"), "paths", "paths_low", "paths_high")
            line |= _interval(mean("change"), "change", "change_low", "change_high")
            loglik = float(np.mean(mean("loglik")))
            yield line | {"loglik": loglik, "perplexity": float(np.exp(-loglik))}


def _losses(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Removals of one sequence: losses in multiples of the nominal epsilon, and how many are beyond the claim."""
    for (states, length, n), part in groups(rows, _PLACE):
        values, claimed = part["loss"].to_numpy(dtype=np.float64), 2 - 1 / length
        line: dict[str, Any] = {"states": int(states), "length": int(length), "sequences": int(n)}
        line |= {
            "removals": len(values),
            "claimed": claimed,
            "median": float(np.median(values)),
            "largest": float(values.max()),
        }
        low, high = np.quantile(values, [0.1, 0.9])
        yield line | {"low": float(low), "high": float(high), "beyond_claim": float((values > claimed).mean())}


def _normal(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Without noise: the normally trained model, and how far the true one is from it."""
    for (states, length, n, method), part in groups(rows, (*_PLACE, "method")):
        line = {"states": int(states), "length": int(length), "sequences": int(n), "method": method}
        line |= {"data_sets": len(part), "paths": float(part["paths"].mean())}
        line |= _interval(part["similarity"], "similarity", "low", "high")
        yield line | _interval(part["loglik"], "loglik", "loglik_low", "loglik_high")


def _real(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for (data, method, _), part in groups(rows, ("data", "method", "epsilon")):
        mean = _means(part, "split")
        line = {"data": data, "method": method} | {name: part[name].iloc[0] for name in _GUARANTEE}
        line |= {"splits": part["split"].nunique()} | _interval(mean("loglik"), "loglik", "low", "high")
        yield line | _interval(mean("change"), "change", "change_low", "change_high")


def _overview(papers: pd.DataFrame) -> pd.DataFrame:
    """Means over all lengths and numbers of sequences: a line per method and measure, a column per nominal epsilon."""
    import pandas as pd

    lines = []
    for (states, method), part in groups(papers, ("states", "method")):
        for measure in ("similarity", "paths", "change"):
            means = part.groupby("epsilon", sort=True)[measure].mean()
            line = {"states": states, "method": method, "guarantee": part["guarantee"].iloc[0], "measure": measure}
            lines.append(line | {f"epsilon {epsilon:g}": value for epsilon, value in means.items()})
    return pd.DataFrame(lines)


def _means(rows: pd.DataFrame, unit: str) -> Callable[[str], Any]:
    """Means of a column within each unit."""
    return lambda column: rows.groupby(unit, sort=True)[column].mean().to_numpy()


def _interval(values: Any, name: str, low: str, high: str) -> dict[str, float]:
    return dict(zip((name, low, high), bootstrap_mean(values), strict=True))
