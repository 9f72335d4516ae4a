"""Event logs as XES (IEEE 1849) files, of released cases: other programs of process mining read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.space import END
from dphmm.storage.inputs import PathLike, replacing
from dphmm.types import IntArray

#: What no XML document holds.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DAY = 86_400 * 10**6
#: What is said of times that nobody published.
_INVENTED = "invented: a day for each position, from 1970 on"
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xes.features="">
<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
<extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
"""


def write_xes(
    path: PathLike,
    users: Sequence[str],
    steps: IntArray,
    names: Sequence[str | None],
    times: IntArray | None,
    made: str,
) -> int:
    """Write the rows (n,) of cases as events, by case and step; return their number.

    Rows without a name are left out, and so is every row of a case from the first END on.

    Parameters
    ----------
    users, steps, names : the case of each row, its position, and its activity.
    times : microseconds since 1970 UTC; None where none were published: then each position has a day of its own, which
        an attribute of the log and one of each event say.
    made : where the activities come from, for an attribute of the log.

    Raises
    ------
    InvalidInput : for a name that XML cannot hold.
    """
    whose = np.unique(np.asarray(users, dtype=np.str_), return_inverse=True)[1]
    order, ended, events = np.lexsort((steps, whose)), set[str](), 0
    cases: dict[str, list[str]] = {}
    said = "" if times is not None else f"\n{_text('dphmm:times', _INVENTED)}"
    for row in order.tolist():
        user, name = users[row], names[row]
        if name == END:
            ended.add(user)
        if user in ended or name is None:
            continue
        moment = (int(steps[row]) - 1) * _DAY if times is None else int(times[row])
        stamp = np.datetime_as_string(np.datetime64(moment, "us").astype("datetime64[ms]"))
        date = f'<date key="time:timestamp" value="{stamp}+00:00"/>'
        cases.setdefault(user, []).append(f"<event>{_text('concept:name', name)}{date}{said.strip()}</event>")
        events += 1
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(f"{_HEAD}{_text('dphmm:activities', made)}{said}\n")
        for user, rows in cases.items():
            file.write("\n".join([f"<trace>{_text('concept:name', user)}", *rows, "</trace>\n"]))
        file.write("</log>\n")
    return events


def _text(key: str, value: Any) -> str:
    if _ILLEGAL.search(value):
        raise InvalidInput("output", "a name with a character that XML cannot hold", ".csv or .parquet")
    return f'<string key="{key}" value={quoteattr(value, {chr(10): "&#10;", chr(13): "&#13;", chr(9): "&#9;"})}/>'
