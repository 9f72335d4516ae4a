"""The catalogue is complete and docs/results/faults.csv says what the tables say.

Fails if a number is in no table or in two, in another area's table, without a case, or if the page is stale.
"""

from __future__ import annotations

from collections import Counter

import pytest

from faults import page
from faults.answers import Accepted
from faults.catalogue import COMMAND, LIBRARY, Case, fault, library

WANTED = {*range(1, 105), 128, 129}
#: Faults that have no file or command to come in by, and why.
NO_COMMAND = {
    24: "files are sparse",
    35: "a constraint is no option",
    36: "a policy file of any size is one line",
    37: "as 38",
    41: "an option is a length",
    44: "decided inside a plan",
    45: "decided inside a plan",
    49: "decided inside a plan",
    50: "as 38",
    51: "decided inside a plan",
    55: "as 54",
    56: "decided inside a space",
    58: "decided inside a hull",
    59: "decided inside a hull",
    60: "as 52",
    62: "as 38",
    65: "a file holds no functions",
    72: "a plan is the same",
    77: "an account's sum",
    92: "measured in the library",
    101: "needs somebody who writes at the same time",
    128: "the case runs commands in processes of its own",
}


def missing_and_repeated(faults):
    numbers = Counter(row.number for row in faults)
    return WANTED - numbers.keys(), {number for number, count in numbers.items() if count > 1}


def everything():
    return [row for _, faults in page.tables() for row in faults]


def test_every_fault_is_in_one_table():
    assert missing_and_repeated(everything()) == (set(), set())
    assert {row.number for row in everything()} == WANTED


def test_a_fault_left_out_or_told_twice_is_noticed():
    rows = everything()
    assert missing_and_repeated(rows[1:]) == ({rows[0].number}, set())
    assert missing_and_repeated([*rows, rows[5]]) == (set(), {rows[5].number})


@pytest.mark.parametrize("area", page.AREAS)
def test_every_fault_is_in_the_table_of_its_area(area):
    assert [row.number for row in dict(page.tables())[area]] == list(page.AREAS[area])


def test_every_fault_comes_in_on_every_surface_it_can():
    surfaces = {row.number: {case.surface for case in row.cases} for row in everything()}
    without_command = {number for number, found in surfaces.items() if COMMAND not in found}
    assert without_command == NO_COMMAND.keys()
    assert all(LIBRARY in found or COMMAND in found for found in surfaces.values())


def test_a_fault_without_a_case_cannot_be_told():
    with pytest.raises(AssertionError):
        fault(1, "something", "nothing")
    assert isinstance(library(lambda place: 1, Accepted(bool)), Case)


def test_the_page_is_made_from_the_tables():
    assert page.PAGE.read_text() == page.page(), "run: python tests/faults/page.py > docs/results/faults.csv"
