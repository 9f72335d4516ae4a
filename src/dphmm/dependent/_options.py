"""Public choices of a question: how each is described, and what its text or its Python value says.

The command line gives text, Python the value itself. ``option`` is what the caller calls a choice, for messages.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dphmm._checks import exact_number
from dphmm.errors import InvalidInput

_FARTHEST = 10**15
#: How a caller writes the name of an option: "windows" in Python, "--windows" on the command line.
Called: TypeAlias = Callable[[str], str]
BOX = "the public box, LOW:HIGH for each column: unbounded numbers cannot be protected"


@dataclass(frozen=True)
class Option:
    """A public choice of a question, as Python and the command line offer it.

    ``kind``: the type of its value on the command line; a bool is a flag. ``flags``: how the command line writes it,
    "--name" if not given. ``shown``: whether help tells the default.
    """

    name: str
    help: str
    metavar: str | None = None
    kind: type = str
    default: Any = None
    flags: tuple[str, ...] = ()
    shown: bool = False

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.flags[0].partition("/")[0] if self.flags else "--" + self.name.replace("_", "-")


MAX_ROWS = Option(
    "max_rows_per_user",
    "A public number: the first K rows of each person count. Needed with group and friends; group:K says it too.",
    "K",
    int,
)


def needed(value: Any, option: str, expected: str) -> Any:
    """A choice that must be made."""
    if value is None:
        raise InvalidInput(option, "nothing", expected)
    return value


def counting(value: Any, option: str, expected: str, least: int = 1, most: int = 10**9) -> int:
    """A whole number that must be given."""
    plain = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not plain or not least <= value <= most:
        raise InvalidInput(option, "nothing" if value is None else value, expected)
    return int(value)


def finite(value: Any, option: str) -> float:
    """A finite number."""
    exact = exact_number(value.strip() if isinstance(value, str) else value, option)
    if abs(exact) > _FARTHEST:
        raise InvalidInput(option, value, "a number within 1e15 of 0")
    return float(exact)


def names(value: Any, option: str, expected: str) -> list[str]:
    """A list without repetitions, or as text: a,b,c."""
    found = [name.strip() for name in value.split(",")] if isinstance(value, str) else list(sequence(value))
    if not found or not all(isinstance(name, str) and name for name in found) or len(set(found)) < len(found):
        raise InvalidInput(option, value, expected)
    return found


def box(value: Any, columns: Sequence[str], option: str) -> tuple[list[float], list[float]]:
    """(low, high), two lists of a number for each column; as text LOW:HIGH for each."""
    expected = f"LOW:HIGH for each of {len(columns)} columns, as 0:1,-5:5"
    if isinstance(value, str):
        parts: list[Sequence[Any]] = [part.split(":") for part in value.split(",")]
    else:
        low, high = (list(sequence(side)) for side in value) if len(sequence(value)) == 2 else ([], [None])
        parts = list(zip(low, high, strict=True)) if len(low) == len(high) else []
    if len(parts) != len(columns) or any(len(part) != 2 for part in parts):
        raise InvalidInput(option, value, expected)
    low, high = ([finite(part[side], option) for part in parts] for side in (0, 1))
    if not all(a < b for a, b in zip(low, high, strict=True)):
        raise InvalidInput(option, value, f"{expected}, LOW < HIGH")
    return low, high


def sequence(value: Any) -> Sequence[Any]:
    """A list, tuple or array as it is; nothing of what is none."""
    return value.tolist() if isinstance(value, np.ndarray) else value if isinstance(value, (list, tuple)) else ()
