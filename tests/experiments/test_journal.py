"""A journal that a crash cuts off at a whole line.

It would fail for one that loses a line which was on the disk or keeps one that was not whole.
"""

from __future__ import annotations

import json

import pytest

from dphmm.errors import InvalidInput
from experiments.journal import Journal


def test_a_journal_cut_anywhere_keeps_its_whole_lines_and_goes_on(tmp_path):
    path, lines = tmp_path / "journal.jsonl", [{"cell": k, "value": "é" * k} for k in range(3)]
    journal = Journal(path)
    for line in lines:
        journal.append(line)
    whole = path.read_bytes()
    assert journal.lines == lines == Journal(path).lines
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        again = Journal(path)
        assert again.lines == lines[: whole[:length].count(b"\n")]
        again.append({"more": True})
        assert Journal(path).lines == again.lines
        assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_journal_of_something_else_is_refused(tmp_path):
    (tmp_path / "x").write_text('{"a": 1}\n[2]\n')
    with pytest.raises(InvalidInput, match="line 2, which is no JSON object"):
        Journal(tmp_path / "x")
