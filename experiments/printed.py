"""The tables of an experiment's page as text: docs/results holds these files as a run writes them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

#: The header, then the rows.
Printed: TypeAlias = list[list[str]]


def figure(value: float, digits: int = 3) -> str:
    """A number with some significant digits; an integer part is never cut: .503, 1.64, 19.5, 1,043."""
    if np.isnan(value):
        return "–"
    rounded = float(f"{value:.{digits}g}") if abs(value) < 10**digits else float(round(value))
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(rounded))))) if rounded else 0
    text = f"{abs(rounded):,.{decimals}f}"
    return "-" * (rounded < 0) + (text.removeprefix("0") if text.startswith("0.") else text)


def of(column: str, digits: int = 3) -> Callable[[pd.Series[Any]], str]:
    """How a column is shown: its number with some significant digits."""
    return lambda row: figure(row[column], digits)


def percent(value: float) -> str:
    """A share with two digits: 14 %, .65 %."""
    return f"{figure(100 * value, 2)} %"


def named(table: pd.DataFrame, column: str, pattern: str) -> pd.DataFrame:
    """The table with a column of names, made of the other columns by a pattern: "{data}, t = {t:.0f}"."""
    return table.assign(**{column: [pattern.format_map(row) for _, row in table.iterrows()]})


def crossed(table: pd.DataFrame, corner: str, down: str, across: str, show: Callable[[pd.Series[Any]], str]) -> Printed:
    """A row for each value of the column ``down`` and a column for each of ``across``, in the order of the table."""
    rows: list[Hashable] = list(dict.fromkeys(table[down]))
    columns: list[Hashable] = list(dict.fromkeys(table[across]))
    shown = {(row[down], row[across]): show(row) for _, row in table.iterrows()}
    body = [[str(row), *(shown.get((row, column), "–") for column in columns)] for row in rows]
    return [[corner, *map(str, columns)], *body]


def listed(table: pd.DataFrame, corner: str, down: str, columns: dict[str, Callable[[pd.Series[Any]], str]]) -> Printed:
    """A row for each line of the table, by the column ``down``, and named columns."""
    body = [[str(row[down]), *(show(row) for show in columns.values())] for _, row in table.iterrows()]
    return [[corner, *columns], *body]


def beside(*tables: Printed) -> Printed:
    """Tables side by side, rows joined by their first cell; a row that a table lacks has dashes there.

    Raises InvalidInput for a table with two rows of one name.
    """
    names = list(dict.fromkeys(row[0] for table in tables for row in table[1:]))
    rows = {name: [name] for name in names}
    for header, *body in tables:
        cells = {row[0]: row[1:] for row in body}
        if len(cells) < len(body):
            raise InvalidInput("rows", ", ".join(row[0] for row in body), "names that differ")
        for name in names:
            rows[name] += cells.get(name, ["–"] * (len(header) - 1))
    return [[tables[0][0][0], *(cell for header, *_ in tables for cell in header[1:])], *rows.values()]
