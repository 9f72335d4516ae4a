"""Every error is one line that names a field, and has the exit code that the command line documents."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from dphmm import errors
from dphmm.errors import BudgetExceeded, DphmmError, InvalidInput, LedgerBusy, Refused, Unprotectable

EXIT_CODES = {DphmmError: 1, InvalidInput: 2, Refused: 1, Unprotectable: 1, BudgetExceeded: 1}
EXIT_CODES |= {LedgerBusy: 4}


def test_all_errors_and_their_exit_codes_are_these():
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DphmmError)}
    assert {kind: kind.exit_code for kind in kinds} == EXIT_CODES


def test_the_page_of_the_commands_has_every_exit_code():
    page = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()
    missing = [code for code in set(EXIT_CODES.values()) if f"| {code} |" not in page]
    assert missing == []


def test_a_wrong_input_is_a_value_error_and_a_refusal_is_none():
    assert issubclass(InvalidInput, ValueError) and not issubclass(InvalidInput, Refused)
    assert not issubclass(Refused, ValueError) and not issubclass(LedgerBusy, Refused)


@pytest.mark.parametrize(
    "came",
    ["two\nlines\x0b and\u2028more", ["a\n"] * 900, 10**5000, b"\n" * 500, "x" * 10**6],
    ids=["text", "list", "integer", "bytes", "long"],
)
def test_a_message_is_one_short_line_whatever_came(came):
    message = str(InvalidInput("a\nfield" * 200, came, "text\r\nof any length " * 500))
    assert len(message.splitlines()) == 1 and len(message) < 1_600


def test_the_end_of_a_long_path_is_kept():
    error = InvalidInput("/a" * 500 + "/rows.csv", "0 rows", "rows")
    assert error.field.endswith("/rows.csv") and len(error.field) == 400


def test_the_field_is_a_part_of_the_message():
    error = InvalidInput("epsilon", -1, "a number greater than 0")
    assert (error.field, str(error)) == ("epsilon", "epsilon: got -1; expected a number greater than 0")


@pytest.mark.parametrize("kind", [Refused, Unprotectable, BudgetExceeded, LedgerBusy])
def test_refusals_survive_being_sent_between_processes(kind):
    again = pickle.loads(pickle.dumps(kind("why")))
    assert type(again) is kind and str(again) == "why"
