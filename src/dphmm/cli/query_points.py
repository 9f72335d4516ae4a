"""dphmm query kmeans and dphmm query svm: questions about rows of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dphmm.cli.console import Console
from dphmm.cli.query_answer import check_output, feature_columns, write_answer
from dphmm.cli.query_dependence import Dependence, asked
from dphmm.cli.query_options import box, centroids, counting, epsilon, names, number
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray

_KINDS = ("friends", "group", "independent")
_BOX = "the public box, LOW:HIGH for each column: unbounded numbers cannot be protected"


def kmeans_of(given: Mapping[str, Any]) -> int:
    """Centroids of the points in the box."""
    from dphmm import dependent
    from dphmm.cli.query_centroids import below_noise, rounded, warn_of_noise
    from dphmm.cli.query_tables import numbers

    console = Console(given["quiet"])
    promised = epsilon(given["epsilon"])
    dependence = Dependence.of(given["dependence"], console, _KINDS)
    columns = feature_columns(given["columns"], "--columns")
    low, high = box(_given(given, "box", _BOX), columns)
    start = centroids(_given(given, "start", "public centroids: 0,0;1,1 or a table with the columns"), columns)
    _check_start(given, start, low, high)
    rounds = counting(given["iterations"], "--iterations", "a public number of rounds, 1 to 1000", 1, 1000)
    inputs = [given["data"], *dependence.inputs]
    check_output(given, inputs)
    points = numbers(given["data"], columns, "--columns")
    between = _between(dependence, given, len(points))
    answered = asked(
        lambda: dependent.query(
            "kmeans", points, between, promised, box=(low, high), start=np.array(start), iterations=rounds
        ),
        {"start": "--start", "box": "--box"},
    )
    coordinates = {f"x{axis}": name for axis, name in enumerate(columns)}
    answered = _renamed(rounded(answered, low, high), coordinates)
    domain = {"columns": columns, "box": {"low": low, "high": high}, "start": start, "iterations": rounds}
    domain["records"] = len(points)
    told = {"clusters_below_noise": below_noise(answered)}
    write_answer(answered, given, inputs, dependence, domain, console, extra=told)
    warn_of_noise(answered, console)
    return 0


def _check_start(given: Mapping[str, Any], start: list[list[float]], low: list[float], high: list[float]) -> None:
    """The start is public: in the public box, and not the very points."""
    if Path(given["start"]).exists() and Path(given["start"]).samefile(given["data"]):
        raise InvalidInput("--start", given["start"], "public centroids, not DATA: they are private")
    if not all(a <= x <= b for row in start for a, x, b in zip(low, row, high, strict=True)):
        raise InvalidInput("--start", given["start"], "centroids within --box")


def classifier_of(given: Mapping[str, Any]) -> int:
    """A linear classifier of rows that were moved to the box, in the features' own units."""
    from dphmm import dependent
    from dphmm.cli.query_tables import labels, numbers

    console = Console(given["quiet"])
    promised = epsilon(given["epsilon"])
    dependence = Dependence.of(given["dependence"], console, _KINDS)
    if given["kind"] not in ("svm", "logistic"):
        raise InvalidInput("--kind", given["kind"], "svm or logistic")
    columns = feature_columns(given["features"], "--features")
    low, high = (np.array(side) for side in box(_given(given, "box", _BOX), columns))
    label = _given(given, "label", "the column of classes")
    classes = names(_given(given, "classes", "the two public classes: no,yes"), "--classes", "two classes: no,yes")
    if len(classes) != 2:
        raise InvalidInput("--classes", given["classes"], "two classes: no,yes")
    if label in columns:
        raise InvalidInput("--label", label, "a column that is not among the --features")
    strength = number(given["regularisation"], "--regularisation")
    inputs = [given["data"], *dependence.inputs]
    check_output(given, inputs)
    rows = 2 * (np.clip(numbers(given["data"], columns, "--features"), low, high) - low) / (high - low) - 1
    truth = labels(given["data"], label, "--label")
    _check_classes(given["data"], label, truth, classes)
    answered = asked(
        lambda: dependent.query(
            given["kind"],
            (rows, truth),
            _between(dependence, given, len(rows)),
            promised,
            classes=np.array(classes, dtype=object),
            regularization=strength,
            norm=float(np.sqrt(len(columns))),
        ),
        {"regularization": "--regularisation", "kind": "--kind"},
    )
    answered = _in_own_units(answered, columns, low, high)
    domain = {
        "features": columns,
        "box": {"low": low.tolist(), "high": high.tolist()},
        "classes": classes,
        "decision": f"{classes[1]} where the sum of weight x feature, plus the intercept, is greater than 0",
        "regularisation": strength,
        "records": len(rows),
    }
    write_answer(answered, given, inputs, dependence, domain, console)
    return 0


def _between(dependence: Dependence, given: Mapping[str, Any], rows: int) -> Any:
    """What depends on what among rows; only where it matters are their users read."""
    from dphmm.cli.query_tables import owners

    if not dependence.by_user:
        return dependence.between((), np.array([rows]))
    users, whose = owners(given["data"], given["user_column"] or "user")
    return dependence.between(users, np.bincount(whose, minlength=len(users)))


def _check_classes(path: str, column: str, truth: Any, classes: list[str]) -> None:
    from dphmm.cli.query_tables import refuse

    refuse(path, column, ~np.isin(truth.astype(str), classes), "one of the two --classes")


def _in_own_units(answered: Any, columns: list[str], low: FloatArray, high: FloatArray) -> Any:
    """Weights for the features as they are in the table, from those for features between -1 and 1."""
    from dataclasses import replace

    weights = answered.table["weight"].to_numpy()
    slopes = weights[:-1] * 2 / (high - low)
    intercept = weights[-1] - float((weights[:-1] * (high + low) / (high - low)).sum())
    table = answered.table.assign(feature=[*columns, "intercept"], weight=[*slopes, intercept])
    return replace(answered, table=table)


def _renamed(answered: Any, names_of: Mapping[str, str]) -> Any:
    from dataclasses import replace

    taken = {"cluster", "count"} & set(names_of.values())
    if taken:
        raise InvalidInput("--columns", min(taken), "coordinates of other names than cluster and count")
    return replace(answered, table=answered.table.rename(columns=dict(names_of)))


def _given(given: Mapping[str, Any], name: str, what: str) -> str:
    value: str | None = given[name]
    if value is None:
        raise InvalidInput(f"--{name}", "nothing", what)
    return value
