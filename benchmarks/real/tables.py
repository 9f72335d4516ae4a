"""The results in Markdown."""

from __future__ import annotations

from typing import Any

from benchmarks.real.matrix import Cell

_HEAD = (
    "data | model | policy | constraint | people | rows in | rows released | skipped steps | drift | error of z | "
    "error of estimate | error of a blind guess | ε | cost per release (mean; most) | mechanism | s"
)


def table(results: list[tuple[Cell, dict[str, Any]]]) -> str:
    """The results in Markdown."""
    lines = [f"| {_HEAD} |", "|" + "---|" * len(_HEAD.split("|"))]
    for cell, found in results:
        mechanisms = ", ".join(f"{name} {rows}" for name, rows in sorted(found["mechanisms"].items()))
        columns = [
            cell.name, cell.model, cell.policy, cell.constraint, found["people"], found["rows"], found["released"],
            found["skipped"], f"{100 * found['drifted']:.1f} %", _error(found["raw"], found["unit"]),
            _error(found["estimate"], found["unit"]), _error(found["blind"], found["unit"]), found["epsilon"],
            f"{found['cost_mean']:.1f}; {found['cost_max']:.1f}", mechanisms, f"{found['seconds']:.0f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(map(str, columns)) + " |")
    return "\n".join(lines)


def stay_table(results: list[tuple[Cell, dict[str, float]]]) -> str:
    """Stays in Markdown."""
    head = "data | model | policy | constraint | all rows | just arrived | after an hour in one cell | rows of these"
    lines = [f"| {head} |", "|" + "---|" * len(head.split("|"))]
    for cell, found in results:
        medians = [_error(found[name], "m") for name in ("all", "first", "hour")]
        columns = [cell.name, cell.model, cell.policy, cell.constraint, *medians, found["rows"]]
        lines.append("| " + " | ".join(map(str, columns)) + " |")
    return "\n".join(lines)


def _error(value: float, unit: str) -> str:
    return f"{value:,.0f} m" if unit == "m" else f"{value:.2f}"
