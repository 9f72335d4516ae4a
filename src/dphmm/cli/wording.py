"""The library's messages in the words of the command line: --min-count for min_count."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dphmm.errors import DphmmError, InvalidInput

#: Fields of the library that are options; --cap-epsilon and others with an underscore follow by themselves.
_FIELDS = {
    "cell": "--grid", "constraint": "--constraint", "delimiter": "--delimiter", "delta": "--constraint delta",
    "east": "--bbox east", "epsilon": "--epsilon", "flat": "--flat", "mechanism": "--mechanism",
    "max speed": "--max-speed", "north": "--bbox north", "output": "-o", "query": "--query",
    "resolution": "--h3", "scope": "--scope",
    "smoothing": "--smoothing", "source": "SRC", "south": "--bbox south", "start": "--start", "steps": "--steps",
    "timezone": "--timezone", "west": "--bbox west",
}  # fmt: skip
_UNDERSCORED = re.compile(
    r"\b(cap_epsilon|cap_cost|total_epsilon|min_count|max_speed|assume_utc|(?:user|time|order|trip|state|lat|lon)_column)\b=?"
)
_COMMANDS = {"model": "fit", "policy": "policy"}
#: What the library says, and what a user of the command line can do.
_PHRASES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"assume_utc=True, or timezone='([^']*)'", r"dphmm import csv with --assume-utc, or with --timezone \1"),
    (r"or names=False for", "or --no-names for"),
    (r"(?:a )?new ledger, or resume to continue", "a new ledger, or --resume to continue"),
    (r"; skip\(\) lets steps pass", ""),
    (r" written by save_(model|policy)", lambda found: f" written by dphmm {_COMMANDS[found[1]]}"),
    (r", or user_column=", ", or dphmm import csv with --user-column"),
    (r"a number, a Fraction or a decimal string", "a number"),
    (r"(.*) or a DeltaSet", lambda found: found[1].replace('", "', '" or "').replace('"', "")),
    (r'flat="(\w+)", or "(\w+)"', r"--flat \1, or --flat \2"),
    (r"remedy: smoothing=1,", "remedy: --smoothing 1,"),
    (r"\ba larger cell\b", "a larger --grid"),
    (r"\b(?:give )?a larger pitch=", "answers with larger gaps"),
    (r"; give pitch=, such as \S+", ": answers with larger gaps, or a smaller span"),
    (r'smoothing_support="neighbours" or a sparse mask above', "--smoothing 0 above"),
)


def on_the_command_line(error: DphmmError) -> str:
    """The message of an error with options where the library has arguments. What the user gave stays as it is."""
    if not isinstance(error, InvalidInput):
        return reworded(str(error))
    came, expected = _parts(error)
    # Other fields are options already, columns, or files: they stay as they are.
    field = _option(error.field) if _UNDERSCORED.fullmatch(error.field) else _FIELDS.get(error.field, error.field)
    return f"{field}: got {came}; expected {reworded(expected)}"


def named(error: InvalidInput, names: Mapping[str, str]) -> InvalidInput:
    """The same error about another field: the option that one command has for an argument of the library."""
    return InvalidInput(names.get(error.field, error.field), *_parts(error))


def reworded(text: str) -> str:
    """A sentence of the library in the words of the command line."""
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    return _UNDERSCORED.sub(lambda found: _option(found[1]), text)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _parts(error: InvalidInput) -> tuple[str, str]:
    """What came and what was expected."""
    came, _, expected = str(error).removeprefix(f"{error.field}: got ").rpartition("; expected ")
    return came, expected
