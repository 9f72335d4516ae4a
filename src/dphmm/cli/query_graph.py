"""dphmm query degree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dphmm.cli.console import Console
from dphmm.cli.query_answer import check_output, write_answer
from dphmm.cli.query_dependence import Dependence, asked
from dphmm.cli.query_options import counting, epsilon, names
from dphmm.errors import InvalidInput

_LEVELS = {"edge": ("group", "independent"), "node": ("friends", "group", "independent")}
_EDGE_ONLY = "A person: epsilon is about one edge, and a person may have many."


def degrees_of(given: Mapping[str, Any]) -> int:
    """The degree distribution of the edges in DATA."""
    from dphmm import dependent
    from dphmm.cli.query_edges import edges_between

    console = Console(given["quiet"])
    promised = epsilon(given["epsilon"])
    level = given["level"]
    if level not in _LEVELS:
        expected = "edge (hides one edge) or node (hides all edges of one person)"
        raise InvalidInput("--level", "nothing" if level is None else level, expected)
    dependence = Dependence.of(given["dependence"], console, _LEVELS[level])
    if dependence.kind == "group" and dependence.size is None:
        raise InvalidInput("--dependence", "group", "group:K, K how many may depend on each other: group:3")
    cap = counting(given["cap"], "--cap", "a public number of edges to count up to, 1 to 1000000", 1, 1_000_000)
    people = _people(given["people"])
    columns = None if given["columns"] is None else names(given["columns"], "--columns", "two columns: a,b")
    tables = [given["people"]] if not isinstance(people, int) else []
    inputs = [given["data"], *dependence.inputs, *tables]
    check_output(given, inputs)
    n = people if isinstance(people, int) else len(people)
    pairs = edges_between(given["data"], people, "DATA", columns)
    called = people if not isinstance(people, int) or dependence.kind != "friends" else [str(i) for i in range(people)]
    between = dependence.between(called if not isinstance(called, int) else (), np.ones(n, dtype=np.int64))
    answered = asked(
        lambda: dependent.query(
            "degree", pairs, between, promised, n=n, level=level, cap=cap, consistent=given["consistent"]
        ),
        {"edges": "DATA", "level": "--level", "cap": "--cap"},
    )
    domain = {"people": n, "level": level, "cap": cap, "consistent": given["consistent"]}
    told = [_EDGE_ONLY] if level == "edge" else []
    write_answer(answered, given, inputs, dependence, domain, console, not_protected=told)
    return 0


def _people(text: str | None) -> int | list[str]:
    """How many there are, or their names: public, or edges would tell who is there."""
    if text is None:
        raise InvalidInput("--people", "nothing", "the public people: a number, or a table of names")
    if re.fullmatch(r"[1-9][0-9]{0,8}", text):
        return int(text)
    from dphmm.cli.query_tables import columns_of, labels
    from dphmm.storage.tables import SUFFIXES

    if not text.lower().endswith(tuple(SUFFIXES)):
        expected = "a number from 1 to 999999999, or a table of names (.parquet, .csv, .csv.gz)"
        raise InvalidInput("--people", text, expected)
    found = labels(text, columns_of(text, "--people")[0], "--people", "--people").tolist()
    if len(set(found)) < len(found):
        raise InvalidInput("--people", f"{text}, with a name twice", "different people")
    return [str(name) for name in found]
