"""The map of what directly follows what, from noisy counts of moves."""

from __future__ import annotations

import json
import math
from textwrap import wrap
from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.report.svg import Drawing, Figure, number
from dphmm.statement.files import statement_path
from dphmm.statement.sentences import plural
from dphmm.storage.inputs import checked_input, file_digest
from dphmm.storage.tables import is_path, read_table

#: Noise is beyond the interval of a count once in so many times, and beyond the least count of a map as seldom.
_ONCE_IN = 10
#: A box of an activity, how far boxes are apart, and the letters in each of its two lines.
_WIDE, _HIGH, _DOWN = 240.0, 40.0, 80.0
_LETTERS = 30
#: How far a line bends out for each box that it passes, and what its number needs beside it.
_BEND, _LABEL = 44.0, 52.0


def directly_follows(flows: Any) -> Figure:
    """The activities and how often one directly follows another, with the noisy counts and their 90 % intervals.

    Drawn are the counts above the least that noise alone passes anywhere in at most one of ten such maps.

    Parameters
    ----------
    flows : the result of ``dphmm.query("flows", ..., ends=True)``, or the file that ``dphmm query flows --ends`` wrote,
        with its statement beside it. Without ``ends`` there are no beginnings and ends.

    Raises
    ------
    InvalidInput : for another answer, a file that was changed, and where no count is above the noise.

    Examples
    --------
    >>> import dphmm, numpy as np
    >>> rows = {"user": np.repeat(np.arange(90), 2), "state": ["register", "decide"] * 90}
    >>> import pandas as pd
    >>> options = {"states": ["register", "decide"], "ends": True, "bits": dphmm.ReplayBits(1)}
    >>> flows = dphmm.query("flows", pd.DataFrame(rows), "group:3", 2, neighbours="add-remove", **options)
    >>> dphmm.plot.directly_follows(flows).table["origin"]
    ['(start)', 'register', 'decide']
    """
    table, statement = getattr(flows, "table", None), getattr(flows, "statement", {})
    if is_path(flows):
        table = read_table(flows, text=_COLUMNS[:2]).to_pandas()
        path = checked_input(statement_path(flows), "flows")
        try:
            statement = json.loads(path.read_text(encoding="utf-8"))
            changed, _ = statement["file"]["sha256"] != file_digest(flows), float(statement["noise"][0]["scale"])
        except (ValueError, LookupError, TypeError, RecursionError):
            raise InvalidInput("flows", str(path), "the statement that dphmm query flows wrote beside it") from None
        if changed:
            raise InvalidInput("flows", f"{flows}, which was changed", "the file as dphmm query flows wrote it")
    if table is None or statement.get("query") != "flows":
        raise InvalidInput("flows", type(flows).__name__, 'what dphmm.query("flows", ...) gives')
    scale = float(statement["noise"][0]["scale"])
    reach, least = _reach(scale, 1), _reach(scale, len(table))
    shown = table[table["count"] > least]
    if not len(shown):
        raise InvalidInput("flows", f"no count above {least:,}, which noise reaches", "more people, a larger epsilon")
    counts = {(str(a), str(b)): int(n) for a, b, n in zip(*(shown[name] for name in _COLUMNS), strict=True)}
    order = _in_order(counts)
    counts = dict(sorted(counts.items(), key=lambda each: (order.index(each[0][0]), order.index(each[0][1]))))
    drawing = _drawn(counts, order, reach)
    heading = f"{plural(len(counts), 'move')} above the noise"
    caption = (
        f"Counts, each within {reach:,} of the number without noise with 90 %. Drawn are counts above {least:,}: in at "
        f"most 1 of 10 such maps noise alone makes one. A move that is not drawn has up to {least + reach:,} with 90 %."
    )
    rows = [[a, b, f"{n}", f"{n - reach}", f"{n + reach}"] for (a, b), n in counts.items()]
    return Figure("directly-follows", heading, [drawing], caption, [*_COLUMNS, "low", "high"], rows)


_COLUMNS = ("origin", "destination", "count")


def _reach(scale: float, counts: int) -> int:
    """The largest discrete Laplace noise among so many counts, exceeded at most once in ten times (a union bound)."""
    # The chance to be beyond is 2 q^(reach + 1) / (1 + q).
    q = math.exp(-1 / scale)
    return max(0, math.ceil(scale * math.log(2 * counts * _ONCE_IN / (1 + q))) - 1)


def _in_order(counts: dict[tuple[str, str], int]) -> list[str]:
    """The activities from first to last, so that most moves go forward.

    Source: Eades, Lin and Smyth, A fast and effective heuristic for the feedback arc set problem, 1993.
    """
    left = dict.fromkeys(name for pair in counts for name in pair)
    first, last = list[str](), list[str]()
    while left:
        flows = {name: [0, 0] for name in left}
        for (a, b), n in counts.items():
            if a != b and a in left and b in left:
                flows[a][0] += n
                flows[b][1] += n
        sinks = [name for name, (out, _) in flows.items() if not out]
        chosen = (
            sinks[0] if sinks else max(flows, key=lambda name: (not flows[name][1], flows[name][0] - flows[name][1]))
        )
        (last if sinks else first).append(chosen)
        del left[chosen]
    return first + last[::-1]


def _drawn(counts: dict[tuple[str, str], int], order: list[str], reach: int) -> Drawing:
    """Boxes one below the other, and a line for each count, the wider the larger: forward right, back left."""
    row = {name: at for at, name in enumerate(order)}
    ahead = max([row[b] - row[a] for a, b in counts], default=0)
    back = max([row[a] - row[b] for a, b in counts], default=0)
    left, right = (_BEND * span + _LABEL if span > 0 else _LABEL for span in (back, ahead))
    middle = left + _WIDE / 2
    finding = f"Map of {plural(len(counts), 'move')} between {plural(len(order), 'activity', 'activities')}."
    drawing = Drawing(left + _WIDE + right, (len(order) - 1) * _DOWN + _HIGH + 4, finding, "chart")
    most, labels = max(counts.values()), list[tuple[float, float, str, str]]()
    for (a, b), n in sorted(counts.items(), key=lambda each: each[1]):
        span, y, down = row[b] - row[a], _HIGH / 2 + 2 + row[a] * _DOWN, _HIGH / 2 + 2 + row[b] * _DOWN
        # The next box is straight below; others are reached around a side.
        side = 1 if span >= 0 else -1
        edge, beyond = middle + side * _WIDE / 2, middle + side * (_WIDE / 2 + 14 + _BEND * max(abs(span), 0.6))
        begin, end = (edge, y + (6 if span else -9)), (edge + 7 * side, down + (-6 if span > 0 else 6 if span else 9))
        corners, point = [(beyond, begin[1]), (beyond, end[1]), end], [(-7 * side, 0), (0, -5), (0, 5)]
        if span == 1:
            begin, end = (middle, y + _HIGH / 2), (middle, down - _HIGH / 2 - 7)
            corners, point = [begin, end, end], [(0, 7), (-5, 0), (5, 0)]
        curve = " ".join(f"{number(u)} {number(v)}" for u, v in corners)
        drawing.raw(
            f'<path class="line-main" style="stroke-width:{number(1 + 5 * n / most)}" '
            f'd="M{number(begin[0])} {number(begin[1])}C{curve}"/>'
        )
        drawing.line(np.array(end) + np.array(point), "line-main", close=True)
        # Beside a straight line, on a bent one, and over a loop: longer lines have theirs beside it.
        at, over = middle + 8 if span == 1 else (edge + 3 * beyond) / 4, 0 if span else 17
        labels.append((at, (begin[1] + end[1]) / 2 - over, f"{n:,} ± {reach:,}", "start" if span == 1 else "middle"))
    for name, at in row.items():
        y = _HIGH / 2 + 2 + at * _DOWN
        frame = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * (_WIDE / 2, _HIGH / 2) + (middle, y)
        drawing.frame(middle - _WIDE / 2, y - _HIGH / 2, _WIDE, _HIGH, "inside")
        drawing.line(frame, "outline", close=True)
        # A capital is about half as wide again.
        letters = 2 * _LETTERS * len(name) // (2 * len(name) + sum(map(str.isupper, name)))
        lines = wrap(name, letters, max_lines=2, placeholder="…")
        for line, words in enumerate(lines):
            drawing.text(middle, y + 5 + 16 * line - 8 * (len(lines) - 1), words, "", "middle")
    for x, y, words, anchor in labels:
        drawing.text(x, y + 4, words, "in-strip", anchor)
    return drawing
