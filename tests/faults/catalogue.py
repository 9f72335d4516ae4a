"""The words in which faults are told: one row of a table is one fault, with what comes in and what must happen.

A row has cases on two surfaces: calls of the library and commands of ``dphmm``. ``make`` gets a Place (a folder with
good files) and spoils something; for a command it returns the arguments. What must happen is one of the answers of
``faults.answers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from faults.answers import Answer
    from faults.place import Place

LIBRARY, COMMAND = "library", "command"


@dataclass(frozen=True)
class Case:
    """One way in which a fault comes in; ``known`` says why the software does not yet answer as it must."""

    surface: str
    make: Callable[[Place], Any]
    answer: Answer
    known: str = ""


@dataclass(frozen=True)
class Fault:
    """A row: number, what comes in, what happens, and the cases that show it."""

    number: int
    comes: str
    happens: str
    cases: tuple[Case, ...]


def fault(number: int, comes: str, happens: str, *cases: Case) -> Fault:
    """A row of the catalogue."""
    assert cases, number
    return Fault(number, comes, happens, cases)


def library(make: Callable[[Place], Any], answer: Answer, known: str = "") -> Case:
    """A call of the library."""
    return Case(LIBRARY, make, answer, known)


def command(make: Callable[[Place], str] | str, answer: Answer, known: str = "") -> Case:
    """A command line, or a function that prepares files and gives one."""
    return Case(COMMAND, (lambda place: make) if isinstance(make, str) else make, answer, known)


def cases_of(faults: Iterable[Fault], surface: str) -> list[Any]:
    """The cases of one surface for ``pytest.mark.parametrize``, named by the fault's number."""
    found = []
    for row in faults:
        cases = [case for case in row.cases if case.surface == surface]
        for at, case in enumerate(cases, start=1):
            marks = [pytest.mark.xfail(strict=True, reason=case.known)] if case.known else []
            name = f"{row.number}" if len(cases) == 1 else f"{row.number}.{at}"
            found.append(pytest.param(case, id=name, marks=marks))
    return found
