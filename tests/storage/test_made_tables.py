"""Made tables as files: the same table back, the same bytes for equal tables, and no table that breaks its epsilon.

It would fail for a reader that trusts what a file says of its epsilon, or that takes a changed file for the one it was.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.mechanisms.answer_table import known_table
from dphmm.storage.made_tables import FORMAT, load_table, save_table
from dphmm.storage.models import read_arrays, write_arrays


@pytest.fixture(scope="module")
def table():
    space = dphmm.StateSpace([0, 1, 2])
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3))
    return dphmm.choose.optimize(model, dphmm.policy.complete(3), space, 3)


def test_a_table_comes_back_whole_and_is_known_from_then_on(table, tmp_path):
    save_table(table, tmp_path / "t.npz")
    back = load_table(tmp_path / "t.npz")
    assert (back.digest, back.epsilon, back.making, back.space_digest) == (
        table.digest, table.epsilon, table.making, table.space_digest,
    )  # fmt: skip
    assert back.law.weights.tolist() == table.law.weights.tolist() and back.edges.tolist() == table.edges.tolist()
    assert known_table(back.reference) is back
    save_table(back, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "t.npz").read_bytes()


def test_a_file_that_says_what_its_numbers_do_not_keep_is_refused(table, tmp_path):
    """The hash over the file is right in each of them: what refuses is the certificate."""
    save_table(table, tmp_path / "t.npz")
    found = read_arrays(tmp_path / "t.npz", FORMAT, "save_table", "table")
    meta = json.loads(found.pop("meta").tobytes())
    del found["format"]
    swapped = {**found, "weights": found["weights"][[1, 0, 2]]}
    forged = {
        "rows that lose more": (swapped, meta),
        "an edge less": ({**found, "edges": found["edges"][1:]}, meta),
        "a smaller epsilon": (found, {**meta, "epsilon": "5/2"}),
        "another space": (found, {**meta, "space": "0" * 64}),
        "an epsilon that is none": (found, {**meta, "epsilon": "a"}),
        "no weights": ({name: array for name, array in found.items() if name != "weights"}, meta),
        "another making": (found, {**meta, "making": {}}),
    }
    accepted = []
    for name, (arrays, told) in forged.items():
        write_arrays(tmp_path / "x.npz", told, arrays, FORMAT)
        try:
            accepted.append((name, load_table(tmp_path / "x.npz")))
        except InvalidInput as error:
            assert str(error).startswith(str(tmp_path / "x.npz")) and "\n" not in str(error), name
    assert accepted == []


def test_what_is_no_made_table_is_not_written(tmp_path):
    with pytest.raises(InvalidInput, match="a MadeTable"):
        save_table(np.eye(3), tmp_path / "t.npz")
    assert list(tmp_path.iterdir()) == []
