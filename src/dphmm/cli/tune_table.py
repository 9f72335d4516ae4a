"""The trade-off that `dphmm tune` found, as lines, as JSON and as a picture."""

from __future__ import annotations

import math
import shlex
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from dphmm.plot.figures import Figure

if TYPE_CHECKING:
    import pandas as pd

    from dphmm.evaluation.tune import Targets
    from dphmm.states.space import StateSpace

FIGURE = Figure(
    name="trade-off",
    title="Error of the estimate by epsilon, for each policy",
    table="settings",
    x="epsilon",
    y="estimate_error",
    by="policy",
    x_label="epsilon of each release",
    y_label="root mean square error",
    panels="mechanism",
    low="estimate_error_low",
    high="estimate_error_high",
    log_x=True,
    log_y=True,
)
_HEADS = (
    "policy", "mechanism", "epsilon", "error of z", "of the estimate", "at most", "least DoP", "mean DoP", "cost", "",
)  # fmt: skip


#: What the errors of walks of the model leave out.
_ON_A_MAP = (
    ", from the middle of the cells of people who move as the model says (report --truth measures from the places of "
    "real ones, and tells the share of rows in no cell)"
)


def told(table: pd.DataFrame, best: int | None, space: StateSpace) -> list[str]:
    """The table in columns, errors in answer units; what no other setting beats is marked, the recommended one too."""
    from dphmm.evaluation.tune import efficient

    marks = efficient(table)
    rows: list[tuple[str, ...]] = [_HEADS]
    for number, row in enumerate(table.itertuples(index=False)):
        mark = "recommended" if number == best else "*" if marks[number] else ""
        rows.append((str(row.policy), str(row.mechanism), _written(row.epsilon), *_numbers(row), mark))
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEADS) - 1)]
    lines = ["  ".join([*map(_padded, row, widths, range(len(widths))), row[-1]]).rstrip() for row in rows]
    unit = space.unit
    whose = _ON_A_MAP if space.on_map else ""
    kind = "shares" if space.has_labels else "root mean squares,"
    return [
        *lines,
        f"errors: {kind} {unit}{whose}; *: no other setting tried is better in every way",
        "at most: the upper end of the 95 % interval of the estimate's error, which is what must reach a target error",
    ]


def headline(
    table: pd.DataFrame, targets: Targets | None, best: int | None, space: StateSpace, given: Mapping[str, Any]
) -> list[str]:
    """What is recommended, by which rule, and what to do with it."""
    if targets is None:
        return ["no targets: --target-error or --target-dop, and one of these is recommended"]
    if best is None:
        return []
    row = table.to_dict("records")[best]
    lines = [f"recommended: {words(row, space)}", f"rule: {targets.rule}"]
    if given["output"] is not None:
        chosen = f"--policy {shlex.quote(given['output'])} --epsilon {_written(row['epsilon'])} "
        chosen += f"--mechanism {row['mechanism']}"
        kept = {"constraint": "support", "scope": "global", "flat": "thicken", "start": None, "protection": None}
        extra = [f"--{name} {given[name]}" for name, usual in kept.items() if given[name] != usual]
        lines.append(f"written to {given['output']}; release with {' '.join([chosen, *extra])}")
    return lines


def document(
    table: pd.DataFrame, targets: Targets | None, best: int | None, space: StateSpace, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything as one JSON object; a missing number is null, an unbounded cost "unbounded"."""
    from dphmm.evaluation.tune import efficient

    rows = [{name: _plain(value) for name, value in row.items()} for row in table.to_dict("records")]
    for row, mark in zip(rows, efficient(table).tolist(), strict=True):
        row["efficient"] = mark
    return {
        "unit": space.unit,
        "runs": given["runs"],
        "steps": given["steps"],
        "seed": given["seed"],
        "target_error": None if targets is None else targets.error,
        "target_dop": None if targets is None else targets.dop,
        "rule": None if targets is None else targets.rule,
        "recommended": None if best is None else rows[best],
        "policy": given["output"] if best is not None else None,
        "settings": rows,
    }


def words(row: Mapping[Hashable, Any], space: StateSpace) -> str:
    """One setting in a line."""
    return (
        f"policy {row['policy']}, {row['mechanism']}, epsilon {_written(row['epsilon'])}: error "
        f"{row['estimate_error']:.4g} {space.unit} (at most {row['estimate_error_high']:.4g} at 95 %), "
        f"least DoP {int(row['least_dop'])}"
    )


def wanted(targets: Targets, space: StateSpace) -> str:
    """The targets in words."""
    parts = [] if targets.error is None else [f"an error of {targets.error:g} {space.unit}"]
    parts += [] if targets.dop is None else [f"a degree of protection of {targets.dop}"]
    return " and ".join(parts)


def _numbers(row: Any) -> tuple[str, ...]:
    if row.refused is not None:
        return "refused", "", "", "", "", ""
    cost = "unbounded" if math.isinf(row.cost) else f"{row.cost:.4g}"
    return (
        f"{row.release_error:.4g}",
        f"{row.estimate_error:.4g}",
        f"{row.estimate_error_high:.4g}",
        f"{int(row.least_dop)}",
        f"{row.mean_dop:.1f}",
        cost,
    )


def _written(epsilon: Any) -> str:
    """As it would be typed: 1 rather than 1.0, and every digit."""
    return str(int(epsilon)) if epsilon == int(epsilon) else str(epsilon)


def _padded(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else "unbounded" if math.isinf(value) else value
    return value
