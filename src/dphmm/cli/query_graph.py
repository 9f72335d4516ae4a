"""dphmm query degree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
    from dphmm.cli.query_edges import private_edges

    console = Console(given["quiet"])
    promised = epsilon(given["epsilon"])
    level = given["level"]
    if level not in _LEVELS:
        expected = "edge (hides one edge) or node (hides all edges of one person)"
        raise InvalidInput("--level", "nothing" if level is None else level, expected)
    if given["dependence"] == "group":
        raise InvalidInput("--dependence", "group", "group:K, K how many may depend on each other: group:3")
    dependence = Dependence.of(given, console, _LEVELS[level], bounded=False)
    cap = counting(given["cap"], "--cap", "a public number of edges to count up to, 1 to 1000000", 1, 1_000_000)
    columns = None if given["columns"] is None else names(given["columns"], "--columns", "two columns: a,b")
    people = _people(given["people"], given["data"])
    dependence.refuse_data(given["data"], columns)
    tables = [given["people"]] if not isinstance(people, int) else []
    inputs = [given["data"], *dependence.inputs, *tables]
    check_output(given, inputs)
    n = people if isinstance(people, int) else len(people)
    between = dependence.between(of_people=False)
    pairs, aside = private_edges(given["data"], people, columns)
    answered = asked(
        lambda: dependent.query(
            "degree", pairs, between, promised, n=n, level=level, cap=cap, consistent=given["consistent"]
        ),
        {"level": "--level", "cap": "--cap"},
    )
    domain = {"people": n, "level": level, "cap": cap, "consistent": given["consistent"]}
    told = [_EDGE_ONLY] if level == "edge" else []
    unit = dependence.unit(answered.event.record, of_people=False)
    write_answer(
        answered, given, inputs, dependence, domain, console, aside, unit=unit, by_person=False, not_protected=told
    )
    return 0


def _people(text: str | None, data: str) -> int | list[str]:
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
    from dphmm.storage.public_files import refuse_private

    refuse_private(text, data, "--people")
    found = labels(text, columns_of(text, "--people")[0], "--people")
    if len(set(found)) < len(found):
        raise InvalidInput("--people", f"{text}, with a name twice", "different people")
    return found
