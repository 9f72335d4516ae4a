"""The sentences of every kind of statement and story, each once: what ``lines.txt`` holds.

``PYTHONPATH=tests python -m statement.lines`` writes the file again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

from crafted_bits import keyed_system_bits
from dphmm.statement.query import QueryStatement
from dphmm.statement.story import ANSWERS
from statement.told import queries, statements, stories

KEPT = Path(__file__).parent / "lines.txt"


def text() -> str:
    """Every sentence under the first statement or story that has it, after the number of those that have it."""
    words = keyed_system_bits(11)
    with patch("dphmm.samplers.entropy._process_bits", lambda: words):
        every = statements()
        said = [(name, list(statement.rows())) for name, statement in every.items()]
        told = [
            (
                name,
                [(answer.replace("_", " "), line) for answer in ("verdict", *ANSWERS) for line in told.words(answer)],
            )
            for name, told in stories(every)
        ]
        asked = [(name, list(_of_query(statement))) for name, statement in queries().items()]
    sections = (("statements", said), ("stories", told), ("queries", asked))
    return "".join(line + "\n" for title, kinds in sections for line in _section(title, kinds))


def _of_query(statement: QueryStatement) -> Iterator[tuple[str, str]]:
    yield "promise", statement.sentence()
    yield "unit of privacy", statement.unit.sentence(whole=statement)
    yield "subjects", statement.subjects.sentence()
    yield "per record", statement.sentence("per record", change=statement.change)
    yield "dependence", statement.dependence.sentence()
    yield from (("reason", sentence) for sentence in statement.whys)
    yield from (("not protected", sentence) for sentence in statement.hides_not)


def _section(title: str, kinds: Iterable[tuple[str, list[tuple[str, str]]]]) -> Iterator[str]:
    """The lines of one part of the file."""
    kinds = [(name, list(dict.fromkeys(rows))) for name, rows in kinds]
    having: dict[tuple[str, str], int] = {}
    for _, rows in kinds:
        for row in rows:
            having[row] = having.get(row, 0) + 1
    yield f"== {title}: {len(kinds)}"
    seen: set[tuple[str, str]] = set()
    for name, rows in kinds:
        new = [row for row in rows if row not in seen]
        seen |= set(new)
        if new:
            yield f"-- {name}"
            yield from (f"{having[row]:3} {': '.join(row)}" for row in new)


if __name__ == "__main__":
    KEPT.write_text(text())
