"""Messages of the library in the words of the command line; what users gave stays as it is."""

from __future__ import annotations

import pytest

from dphmm.cli.outcomes import named, on_the_command_line
from dphmm.errors import BudgetExceeded, DegenerateHull, InvalidInput


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InvalidInput("min_count", 0, "a whole number"), "--min-count: got 0; expected a whole number"),
        (InvalidInput("user_column", "x", "y"), "--user-column: got x; expected y"),
        (InvalidInput("--gap", "1", "2"), "--gap: got 1; expected 2"),
        (InvalidInput("f/state_column.csv", "min_count", "x"), "f/state_column.csv: got min_count; expected x"),
        (
            InvalidInput("ledger", "releases of 2 users", "a new ledger, or resume to continue them"),
            "ledger: got releases of 2 users; expected a new ledger, or --resume to continue them",
        ),
        (
            InvalidInput("m.npz", "no model", "a model file written by save_model"),
            "m.npz: got no model; expected a model file written by dphmm fit",
        ),
        (
            InvalidInput("constraint", "all", '"support", "delta=0.01" or a DeltaSet'),
            "--constraint: got all; expected support or delta=0.01",
        ),
        (BudgetExceeded("cap_epsilon: user 'a' needs 2"), "--cap-epsilon: user 'a' needs 2"),
        (DegenerateHull('use flat="thicken", or "allow" to'), "use --flat thicken, or --flat allow to"),
    ],
)
def test_arguments_become_options(error, told):
    assert on_the_command_line(error) == told


def test_a_command_names_its_own_option():
    error = named(InvalidInput("step", "300 s", "no step; or none"), {"step": "--step"})
    assert isinstance(error, InvalidInput)
    assert str(error) == "--step: got 300 s; expected no step; or none"
    assert on_the_command_line(error) == str(error)
