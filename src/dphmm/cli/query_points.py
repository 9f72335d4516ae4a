"""dphmm query kmeans and dphmm query svm: questions about rows of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.cli.console import Console
from dphmm.cli.query_answer import check_output, feature_columns, write_answer
from dphmm.cli.query_dependence import Dependence, asked
from dphmm.cli.query_options import box, centroids, counting, epsilon, names, number
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray

if TYPE_CHECKING:
    from dphmm.cli.query_tables import Aside
    from dphmm.storage.private_rows import PrivateRows

_KINDS = ("friends", "group", "independent")
_ROWS = (
    "How many rows DATA have: the noise is calculated from it, and it is told in this statement. Rows that cannot be "
    "used, and those beyond --max-rows-per-user, are counted in it and have no weight."
)
_BOX = "the public box, LOW:HIGH for each column: unbounded numbers cannot be protected"


def kmeans_of(given: Mapping[str, Any]) -> int:
    """Centroids of the points in the box."""
    from dphmm import dependent
    from dphmm.cli.query_centroids import below_noise, rounded, warn_of_noise
    from dphmm.cli.query_tables import Aside, data_numbers

    console = Console(given["quiet"])
    promised = epsilon(given["epsilon"])
    dependence = Dependence.of(given, console, _KINDS)
    dependence.refuse_data(given["data"])
    columns = feature_columns(given["columns"], "--columns")
    low, high = box(_given(given, "box", _BOX), columns)
    _check_public_start(given, columns)
    start = centroids(_given(given, "start", "public centroids: 0,0;1,1 or a table with the columns"), columns)
    _check_start(given, start, low, high)
    rounds = counting(given["iterations"], "--iterations", "a public number of rounds, 1 to 1000", 1, 1000)
    inputs = [given["data"], *dependence.inputs]
    check_output(given, inputs)
    between = dependence.between()
    rows = _rows(given, dependence, [(name, "--columns") for name in columns])
    aside = Aside.of(rows)
    points, owned = data_numbers(rows, columns, aside), _owned(rows, given, dependence, aside)
    answered = asked(
        lambda: dependent.query(
            "kmeans", points, between, promised, box=(low, high), start=np.array(start), iterations=rounds, **owned
        ),
        {"start": "--start", "box": "--box"},
    )
    coordinates = {f"x{axis}": name for axis, name in enumerate(columns)}
    answered = _renamed(rounded(answered, low, high), coordinates)
    domain = {"columns": columns, "box": {"low": low, "high": high}, "start": start, "iterations": rounds}
    told = {"clusters_below_noise": below_noise(answered)}
    unit = dependence.unit(answered.event.record)
    write_answer(
        answered,
        given,
        inputs,
        dependence,
        domain,
        console,
        aside,
        unit=unit,
        by_person=dependence.by_person,
        extra=told,
    )
    warn_of_noise(answered, console)
    return 0


def _check_public_start(given: Mapping[str, Any], columns: list[str]) -> None:
    """The start is public, and not the very points."""
    from dphmm.storage.public_files import refuse_private

    if given["start"] is not None:
        refuse_private(given["start"], given["data"], "--start", columns)


def _check_start(given: Mapping[str, Any], start: list[list[float]], low: list[float], high: list[float]) -> None:
    """The start is in the public box."""
    if not all(a <= x <= b for row in start for a, x, b in zip(low, row, high, strict=True)):
        raise InvalidInput("--start", given["start"], "centroids within --box")


def classifier_of(given: Mapping[str, Any]) -> int:
    """A linear classifier of rows that were moved to the box, in the features' own units."""
    from dphmm import dependent
    from dphmm.cli.query_tables import Aside, data_labels, data_numbers

    console = Console(given["quiet"])
    promised = epsilon(given["epsilon"])
    dependence = Dependence.of(given, console, _KINDS)
    dependence.refuse_data(given["data"])
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
    between = dependence.between()
    rows = _rows(given, dependence, [(label, "--label"), *((name, "--features") for name in columns)])
    aside = Aside.of(rows)
    features, owned = data_numbers(rows, columns, aside), _owned(rows, given, dependence, aside)
    truth = data_labels(rows, label)
    aside.add(rows.places[~np.isin(truth, classes)], "unknown_class")
    # A row of another number of fields has no weight, and is counted: how many rows there are is public.
    odd = len(rows.odd)
    if odd and "users" in owned:
        owned["users"] = np.append(owned["users"], [None] * odd)
    answered = asked(
        lambda: dependent.query(
            given["kind"],
            (np.vstack([_scaled(features, low, high), np.zeros((odd, len(columns)))]), np.append(truth, [None] * odd)),
            between,
            promised,
            classes=np.array(classes, dtype=object),
            regularization=strength,
            norm=float(np.sqrt(len(columns))),
            **owned,
        ),
        {"regularization": "--regularisation", "kind": "--kind", "X": "DATA"},
    )
    answered = _in_own_units(answered, columns, low, high)
    domain = {
        "features": columns,
        "box": {"low": low.tolist(), "high": high.tolist()},
        "classes": classes,
        "decision": f"{classes[1]} where the sum of weight x feature, plus the intercept, is greater than 0",
        "regularisation": strength,
        "records": rows.n_rows,
    }
    unit = dependence.unit(answered.event.record, rows_public=True)
    write_answer(
        answered,
        given,
        inputs,
        dependence,
        domain,
        console,
        aside,
        unit=unit,
        by_person=dependence.by_person,
        not_protected=[_ROWS],
    )
    return 0


def _rows(given: Mapping[str, Any], dependence: Dependence, columns: list[tuple[str, str]]) -> PrivateRows:
    """The columns of DATA that are asked about, and the users only where it matters whose a row is."""
    from dphmm.cli.query_tables import data_rows

    users = [] if dependence.most is None else [(_user_column(given), "--user-column")]
    return data_rows(given["data"], [*columns, *users])


def _owned(rows: PrivateRows, given: Mapping[str, Any], dependence: Dependence, aside: Aside) -> dict[str, Any]:
    """What the library is told of people: whose each row is, and how many of each count."""
    from dphmm.cli.query_tables import data_users

    if dependence.most is None:
        return {}
    users = data_users(rows, _user_column(given), dependence.most, aside)
    return {"users": users, "max_rows_per_user": dependence.most}


def _user_column(given: Mapping[str, Any]) -> str:
    return given["user_column"] or "user"


def _scaled(features: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Features moved to the box, from -1 to 1; what is no number is in the middle."""
    middle = np.where(np.isnan(features), (low + high) / 2, features)
    scaled: FloatArray = 2 * (np.clip(middle, low, high) - low) / (high - low) - 1
    return scaled


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
