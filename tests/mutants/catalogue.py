"""The seeded bugs: each is a few replacements in the source and the tests that must fail because of them.

A replacement names text that occurs exactly once in its file, so it either fits the code as it is now or is refused;
it survives any change of the lines around it.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SEEDED = Path(__file__).parent / "seeded"


class DoesNotApply(Exception):
    """A replacement whose text is not there, or is there more than once."""


@dataclass(frozen=True)
class Edit:
    """Text of a file, and what stands there instead."""

    file: str
    find: str
    replace: str

    def applied(self, text: str) -> str:
        """The file's text after the edit. Raises DoesNotApply."""
        if text.count(self.find) != 1:
            raise DoesNotApply(f"{self.file}: the text to replace occurs {text.count(self.find)} times")
        return text.replace(self.find, self.replace)


@dataclass(frozen=True)
class Mutant:
    """One bug. Where ``absent`` says why there is no code that could have it, ``killers`` are tests that pin the reason
    and must pass.
    """

    number: str
    bug: str
    killers: tuple[str, ...]
    edits: tuple[Edit, ...]
    absent: str

    @classmethod
    def of(cls, record: dict[str, Any]) -> Mutant:
        """A mutant from its record. Raises ValueError where a part is missing or unknown."""
        unknown = record.keys() - {"number", "bug", "killers", "edit", "absent"}
        edits = tuple(Edit(**edit) for edit in record.get("edit", ()))
        made = cls(record["number"], record["bug"], tuple(record["killers"]), edits, record.get("absent", ""))
        if unknown or bool(edits) == bool(made.absent) or (edits and not made.killers):
            raise ValueError(f"{made.number}: edits and killers, or why it is absent")
        return made

    def changed(self, root: Path) -> dict[str, str]:
        """The files it changes, with their new text. Raises DoesNotApply."""
        texts: dict[str, str] = {}
        for edit in self.edits:
            before = texts.get(edit.file) or (root / edit.file).read_text()
            texts[edit.file] = edit.applied(before)
        return texts


def catalogue() -> list[Mutant]:
    """All seeded bugs, by family and number."""
    found = [
        Mutant.of(record) for path in SEEDED.glob("*.toml") for record in tomllib.loads(path.read_text())["mutant"]
    ]
    return sorted(found, key=lambda mutant: _order(mutant.number))


def _order(number: str) -> tuple[str, int]:
    match = re.fullmatch(r"([A-Z])(\d+)", number)
    if match is None:
        raise ValueError(f"{number}: a letter and a number")
    return match[1], int(match[2])
