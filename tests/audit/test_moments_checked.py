"""The checker and moments: of a model without a time step each step is a time of its own, and that of the ledger.

What fails if rows of one moment, or steps that the ledger keeps for other times, were believed.
"""

from __future__ import annotations

import hashlib
import json

import pandas as pd
import pytest

import dphmm
from dphmm.audit import check_release
from dphmm.audit.attacks.truth import begins_of, truth_of
from dphmm.audit.released import ReleasedFile
from dphmm.errors import InvalidInput
from dphmm.release.batch import release_many
from dphmm.storage.ledger import open_ledger

PAGES = dphmm.StateSpace.categories(list("abcdefghi"))
MODEL = dphmm.MarkovModel([1 / 9] * 9, [[1 / 9] * 9] * 9, space=PAGES)
POLICY = dphmm.policy.complete(9)
DAY = pd.Timestamp("2024-05-06T08:00:00Z")


def rows(minutes):
    times = [DAY + pd.Timedelta(minute, "min") for minute in minutes]
    return pd.DataFrame({"user": ["ann"] * len(minutes), "t": times, "state": [PAGES.names[m % 9] for m in minutes]})


@pytest.fixture
def released(tmp_path):
    """A release with a late row, by two runs: its file and its ledger."""
    path, ledger = tmp_path / "released.csv", tmp_path / "ledger.db"
    with open_ledger(ledger) as opened:
        for resume, minutes in ((False, [1, 5]), (True, [1, 3, 5, 7])):
            release_many(
                rows(minutes), MODEL, POLICY, PAGES, 1, output=path, ledger=opened, resume=resume,
                model_people="others", bits=dphmm.ReplayBits(4), progress=False,
            )  # fmt: skip
    return path, ledger


def found(path, ledger):
    with open_ledger(ledger, read_only=True) as opened:
        return check_release(path, MODEL, POLICY, PAGES, ledger=opened, ledger_file=ledger)


def edit(path, change):
    """Change a released file, and its hash in the statement."""
    table = pd.read_csv(path, dtype=str)
    change(table)
    table.to_csv(path, index=False, lineterminator="\n")
    statement = path.with_name(f"{path.name}.privacy.json")
    told = json.loads(statement.read_text())
    told["file"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    statement.write_text(json.dumps(told))


def test_a_file_by_times_and_its_ledger_agree(released):
    path, ledger = released
    assert pd.read_csv(path)["step"].tolist() == [1, 2, 3]
    told = found(path, ledger)
    assert told.findings == ()
    right = {f"{check}: {figure}" for word, check, figure in told.checks if word == "ok"}
    assert {
        "times: each later than that of the step before",
        "ledger: steps of 1 people stand for the times of their rows",
    } <= right
    # Rows as a ledger's own, as those of a release table are read.
    with open_ledger(ledger, read_only=True) as opened:
        assert check_release(path, MODEL, POLICY, PAGES, ledger=opened).findings == ()


@pytest.mark.parametrize(
    ("times", "checks"),
    [
        (["08:01", "08:05", "08:05"], {"times", "ledger"}),
        (["08:05", "08:01", "08:07"], {"times", "ledger"}),
        (["08:01", "08:06", "08:07"], {"ledger"}),
    ],
)
def test_steps_that_stand_for_another_time_are_convicted(released, times, checks):
    path, ledger = released

    def change(table):
        table["t"] = [f"2024-05-06T{time}:00Z" for time in times]

    edit(path, change)
    assert {finding.partition(":")[0] for finding in found(path, ledger).findings} == checks


def test_an_attack_finds_the_true_row_of_each_time(released):
    """The late row, which was left out, shifts no truth."""
    path, ledger = released
    file = ReleasedFile.read(path, PAGES)
    assert truth_of(file, rows([1, 3, 5, 7]), MODEL, PAGES).states.tolist() == [1, 5, 7]
    with open_ledger(ledger, read_only=True) as opened:
        assert begins_of(opened, "state", file) == {"ann": "1@times"}
    with pytest.raises(InvalidInput, match="no row for 1 of 3 released rows"):
        truth_of(file, rows([1, 3, 5]), MODEL, PAGES)


@pytest.mark.parametrize("answer", ["first", "last"])
def test_the_truth_of_a_time_is_the_row_that_was_answered(tmp_path, answer):
    table = rows([1, 1, 5])
    table["state"] = list("abc")
    path = tmp_path / "released.csv"
    release_many(
        table, MODEL, POLICY, PAGES, 1, output=path, model_people="others", answer=answer, bits=dphmm.ReplayBits(4),
        progress=False,
    )  # fmt: skip
    true = truth_of(ReleasedFile.read(path, PAGES), table, MODEL, PAGES, answer=answer)
    assert true.states.tolist() == [0 if answer == "first" else 1, 2]
