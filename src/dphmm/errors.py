"""Everything dphmm raises on purpose, and the exit code each becomes on the command line.

DphmmError
├── InvalidInput        exit 2   a field of the caller's is wrong: field, what came, what was expected
├── Refused             exit 1   the promise forbids it; decided from public data alone
│   ├── Unprotectable            no mechanism can protect the plan set as asked
│   └── BudgetExceeded           a cap would be passed; nothing was drawn or spent
└── LedgerBusy          exit 4   another process holds the ledger, or has the turn of a release table

A message is one line. It never contains a true state or anything computed from one.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

__all__ = ["BudgetExceeded", "DphmmError", "InvalidInput", "LedgerBusy", "Refused", "Unprotectable"]


class DphmmError(Exception):
    """Base of every deliberate error; ``exit_code`` is what the command line returns."""

    exit_code = 1


class InvalidInput(DphmmError, ValueError):
    """A public input is wrong: ``field`` names it, ``came`` and ``expected`` say how."""

    exit_code = 2

    def __init__(self, field: str, came: object, expected: str) -> None:
        # Paths and names of columns may be long and have line ends too.
        self.field = _one_line(field, 400)
        super().__init__(f"{self.field}: got {_one_line(came, 120)}; expected {_one_line(expected, 1000)}")

    def __reduce__(self) -> tuple[Any, ...]:
        # A message cannot be taken apart again.
        return _remade, (str(self), self.field)


def _remade(message: str, field: str) -> InvalidInput:
    """The error that another process raised."""
    error = InvalidInput(field, "", "")
    error.args = (message,)
    return error


class Refused(DphmmError):
    """The promise forbids the request."""

    exit_code = 1


class Unprotectable(Refused):
    """No state to hide among, from public data alone."""


class BudgetExceeded(Refused):
    """A release would pass a cap; nothing was drawn and nothing was spent."""


class LedgerBusy(DphmmError):
    """The ledger, or the turn of a release table, is in use by another process."""

    exit_code = 4


def _one_line(value: object, most: int) -> str:
    try:
        text = str(value) if isinstance(value, (str, Fraction)) else repr(value)
    except ValueError:
        # Python does not print integers of thousands of digits.
        text = f"{type(value).__name__} of too many digits to print"
    text = " ".join(text.split())
    # The end of a path is the name of its file.
    return text if len(text) <= most else f"{text[: most - 3 - most // 2]}...{text[-(most // 2) :]}"
