"""What `release` refuses from its options alone, before it reads a row or makes a ledger."""

from __future__ import annotations

import pytest

from dphmm.cli.release_job import Job
from dphmm.errors import InvalidInput


@pytest.mark.parametrize("choice", [{"constraint": "delta=0.1"}, {"flat": "allow"}])
def test_a_total_for_plans_that_hang_on_answers_is_refused_from_the_options(town, choice):
    """The search for an epsilon refuses it too, but only after the rows have been read."""
    asked = (
        "trajectories",
        "epsilon",
        "query",
        "answer",
        "constraint",
        "mechanism",
        "scope",
        "flat",
        "start",
        "protection",
        "resume",
        "ledger",
    )
    promise = ("path_epsilon", "window", "per", "zone", "choices", "initials")
    given = dict.fromkeys(
        (
            *asked,
            *promise,
            "cap_epsilon",
            "cap_cost",
            "no_estimates",
            "raise_cap",
            "plan",
            "groups",
            "cap_group",
            "choices",
            "initials",
        )
    )
    given |= {"model": town / "model.npz", "policy": town / "radius.json", "total_epsilon": "1", "steps": 3}
    given["schedule"] = "every"
    assert Job.of(given).steps == 3
    with pytest.raises(InvalidInput, match="plans that do not depend on answers"):
        Job.of(given | choice)


def test_an_output_that_is_no_table_is_refused_before_a_ledger_is_made(town, run, tmp_path):
    public = ("--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", 1)
    written = ("-o", tmp_path / "released.txt", "--ledger", tmp_path / "l.db")
    result = run("release", town / "walks.csv", *public, *written, code=2)
    assert result.stderr.startswith("error: -o: got ") and "a name ending in .parquet" in result.stderr
    assert list(tmp_path.iterdir()) == []
