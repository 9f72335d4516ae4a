"""The answers of a stream as the table that a release of a file would have been, and what is odd about its lines.

Lines stand in the order of what was asked, and a step that was asked for again was answered by the same line again.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dphmm.audit.findings import Findings
from dphmm.errors import InvalidInput
from dphmm.storage.json_lines import JsonLine, read_json_lines

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = ("user", "z", "estimate", "plan")
_EXPECTED = "lines as dphmm release - prints them"
_LARGEST = 2**63 - 1
#: The columns of a release with estimates, and those of a release without.
Forms = tuple[list[str], list[str]]


def table_of_lines(path: str | os.PathLike[str], forms: Forms, findings: Findings) -> pa.Table:
    """The distinct answers of a stream in the order of their first lines, with the columns of a release.

    ``forms``: those columns with estimates, and without; ``t`` is among them, and null where a line has no time. All
    lines have the form of the first one. Findings tell of members that no answer has, of lines that a stream would
    write otherwise, and of steps that were answered twice and not alike. Raises InvalidInput for a line that is no
    answer of this space, and for answers with estimates beside answers without.
    """
    expected, _ = forms
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for line in read_json_lines(path, "released"):
        form = form_of(line.members, forms)
        if rows and form != expected:
            came = "answers with estimates beside answers without"
            raise InvalidInput(f"line {line.number}", came, "the lines of one run")
        expected = form
        row = _row(line, expected, findings)
        where = f"line {line.number}"
        first = rows.setdefault((row["user"], row["step"]), row)
        findings.require(first == row, "a step of a user that is answered twice, and not alike", where)
    timed = any("t" in row for row in rows.values())
    return _table(list(rows.values()), [name for name in expected if timed or name != "t"])


def form_of(names: Collection[str], forms: Forms) -> list[str]:
    """The form that a table or a line with these names must have: with all estimates where it has one of them."""
    estimated, alone = forms
    return alone if set(estimated).difference(alone).isdisjoint(names) else estimated


def _row(line: JsonLine, expected: list[str], findings: Findings) -> dict[str, Any]:
    told, where = line.members, f"line {line.number}"
    names = [name for name in expected if name in told or name != "t"]
    missing = next((name for name in names if name not in told), None)
    if missing is not None:
        raise InvalidInput(where, f"an answer without {missing!r}", "an answer of this model: " + ", ".join(expected))
    extra = [name for name in told if name not in names]
    if extra:
        findings.add("members that no answer has, and that may depend on the truth", f"{where}, {_listed(extra)}")
    unasked = told["plan"] is None
    row = {name: None if unasked and _is_asked(name) else _value(name, told[name], where) for name in names}
    if unasked and any(told[name] is not None for name in names if _is_asked(name)):
        raise InvalidInput(where, "an answer without a plan", _EXPECTED)
    if not extra:
        written = json.dumps({name: _written(value) for name, value in row.items()}, ensure_ascii=True) + "\n"
        kind = "a line that is not written as a stream writes it: spaces, digits and orders can say something"
        findings.require(line.text == written, kind, where)
    return row


def _is_asked(name: str) -> bool:
    """Whether a member is null in a row that was not asked."""
    return name in ("plan", "z") or name.startswith("z_")


def _value(name: str, value: Any, where: str) -> Any:
    if name in _TEXTS:
        return _text(value, name, where)
    if name == "t":
        return _time(value, where)
    if name == "step":
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
            raise InvalidInput(where, "a step that is none", "whole numbers from 1, as they were released")
        return value
    if name == "cost" and value is None:
        return math.inf
    return _number(value, name, where)


def _text(value: Any, name: str, where: str) -> str:
    try:
        if isinstance(value, str) and value.encode("utf-8"):
            return value
    except UnicodeEncodeError:
        pass
    raise InvalidInput(where, f"a {name} that is no text", _EXPECTED)


def _number(value: Any, name: str, where: str) -> float:
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise InvalidInput(where, f"a {name} that is no finite number", _EXPECTED)


def _time(value: Any, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        # Timestamps have 64 bits.
        if moment.tzinfo is not None and 1678 <= moment.year < 2262:
            return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInput(where, "a t that is no time", _EXPECTED)


def _written(value: Any) -> Any:
    """A value as the stream writes it: times as text, an unbounded cost as null."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return None if value == math.inf else value


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _table(rows: list[dict[str, Any]], names: list[str]) -> pa.Table:
    import pyarrow as pa

    kinds = {"step": pa.int64(), "t": pa.timestamp("us", tz="UTC"), **dict.fromkeys(_TEXTS, pa.string())}
    columns = {name: pa.array([row.get(name) for row in rows], kinds.get(name, pa.float64())) for name in names}
    return pa.table(columns)
