"""The display of results in a notebook: tables and lines as HTML, with every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(head: Sequence[str], rows: Iterable[Iterable[Any]], caption: str = "") -> str:
    """A table; numbers with four digits, what is missing as an empty cell.

    >>> html_table(["a"], [[0.51239], [None]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>0.5124</td></tr><tr><td></td></tr></tbody></table>'
    """
    over = f"<caption>{escape(caption)}</caption>" if caption else ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table>{over}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def html_lines(lines: Iterable[str]) -> str:
    """Lines of prose, as they are printed.

    >>> html_lines(["a < b"])
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))
