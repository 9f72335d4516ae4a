"""Tables of what was measured.

Intervals are bootstraps: over samples of records where there are several, over people where bits are about people, else
over draws of noise, since there is one Gowalla and one Facebook graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.evaluation import bootstrap_mean
from experiments.dependence.mechanisms import DPM, OVER, UNDER
from experiments.experiment import groups

if TYPE_CHECKING:
    import pandas as pd

SCALES = ("model", "epsilon", "mechanism", "scale", "true_epsilon", "ratio", "proved", "why")
ROBUST = ("model", "epsilon", "mechanism", "scale", "true_epsilon", "ratio")
ACCURACY = ("model", "epsilon", "panel", "mechanism", "guarantee", "alpha", "beta", "drawn")
MEASURED = ("epsilon", "mechanism", "guarantee", "noise", "draws", "accuracy", "low", "high")
KMEANS = (*MEASURED, "cost")
DEGREES = ("level", *MEASURED)
LEAK = (
    *("data", "adversary", "epsilon", "mechanism", "guarantee", "noise", "true_epsilon"),
    *("leaked", "low", "high", "by_friends", "by_release", "right"),
)
_USED = {*SCALES, *ACCURACY, *KMEANS, *LEAK, "part", "kind", "draw", "split", "reason", "level"}


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table, from all rows."""
    rows = rows.reindex(columns=[*rows.columns, *sorted(_USED - set(rows.columns))]).copy()
    rows["epsilon"] = rows["epsilon"].astype("float64")
    scales, leak, accuracy = (rows[rows["part"] == part].copy() for part in ("scales", "leak", "accuracy"))
    scales["ratio"] = scales["true_epsilon"].astype("float64") / scales["epsilon"]
    accuracy["panel"] = [f"{model}, ε = {e:g}" for model, e in zip(accuracy["model"], accuracy["epsilon"], strict=True)]
    factors = scales["mechanism"].isin((*UNDER, *OVER))
    found = {
        "scales": scales[~factors][list(SCALES)],
        "robust": scales[factors | (scales["mechanism"] == DPM)][list(ROBUST)],
        "accuracy": accuracy[accuracy["kind"] == "beta of alpha"][list(ACCURACY)],
        "accuracy-needed": accuracy[accuracy["kind"] == "alpha of beta"][list(ACCURACY)],
        "kmeans": _frame(_averaged(rows[rows["part"] == "kmeans"], (), "draw"), KMEANS),
        "classifier": _frame(_averaged(rows[rows["part"] == "classifier"], (), "split"), MEASURED),
        "degrees": _frame(_averaged(rows[rows["part"] == "degrees"], ("level",), "draw"), DEGREES),
        "leak": leak[leak["data"] != "Gowalla"][list(LEAK)].drop(columns="right"),
        "leak-gowalla": leak[leak["data"] == "Gowalla"][list(LEAK)],
        "leak-overview": _overview(leak),
        "skipped": rows[rows["part"] == "skipped"][["data", "reason"]].astype(str),
    }
    return {name: table.reset_index(drop=True) for name, table in found.items()}


def _averaged(rows: pd.DataFrame, keys: tuple[str, ...], unit: str) -> Iterator[dict[str, Any]]:
    """Means over draws of noise; intervals over ``unit``."""
    for values, part in groups(rows, (*keys, "epsilon", "mechanism")):
        of_units = part.groupby(unit, sort=True)["accuracy"].mean().to_numpy(dtype=np.float64)
        mean, low, high = bootstrap_mean(of_units)
        line = dict(zip((*keys, "epsilon", "mechanism"), values, strict=True))
        line |= {"guarantee": part["guarantee"].iloc[0], "noise": part["noise"].astype("float64").mean()}
        yield line | {
            "draws": len(part), "accuracy": mean, "low": low, "high": high,
            "cost": part["cost"].astype("float64").mean(),
        }  # fmt: skip


def _overview(leak: pd.DataFrame) -> pd.DataFrame:
    """Bits leaked at every ε, and how many of them the release adds: a line per data, adversary and mechanism."""
    import pandas as pd

    lines = []
    for (data, adversary, mechanism), part in groups(leak, ("data", "adversary", "mechanism")):
        for measure in ("leaked", "by_release"):
            line = {"data": data, "adversary": adversary, "mechanism": mechanism, "measure": measure}
            by_epsilon = zip(part["epsilon"], part[measure].astype("float64"), strict=True)
            lines.append(line | {f"epsilon {epsilon:g}": value for epsilon, value in by_epsilon})
    return pd.DataFrame(lines)


def _frame(lines: Iterator[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(lines), columns=list(columns))
