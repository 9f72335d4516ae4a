"""Lines of JSON: read by their numbers, and journals that a crash cuts off at a whole line.

It would fail for a reader that takes a line for an object that it is not, or shows what stands in it, and for a journal
that loses a line which was on the disk or keeps one that was not whole.
"""

from __future__ import annotations

import json

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.json_lines import Journal, is_json_lines, read_json_lines

CANARY = "CANARY_7f3a"


def test_lines_come_with_their_numbers_and_their_text(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes('{"user": "ann", "t": 1}\n{"user": "zoë"}\r\n{}'.encode())
    found = list(read_json_lines(path))
    assert [line.number for line in found] == [1, 2, 3]
    assert [line.members for line in found] == [{"user": "ann", "t": 1}, {"user": "zoë"}, {}]
    assert "".join(line.text for line in found).encode() == path.read_bytes()
    assert is_json_lines(path) and is_json_lines("X.NDJSON") and not is_json_lines("rows.json")


def test_a_line_that_is_no_object_is_refused_by_its_number_alone(tmp_path):
    wrong = {
        "cut short": f'{{"user": "{CANARY}"',
        "empty": "",
        "a list": f'["{CANARY}"]',
        "a member twice": f'{{"a": "{CANARY}", "a": 2}}',
        "not a number": '{"a": NaN}',
        "infinite": '{"a": -Infinity}',
        "deep": "[" * 10_000,
        "too long": '{"a": "' + "x" * (1 << 16) + '"}',
        "not UTF-8": b'{"a": "\xff"}',
    }
    accepted = []
    for name, text in wrong.items():
        line = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "x.jsonl").write_bytes(b'{"a": 1}\n' + line + b"\n")
        try:
            accepted.append((name, list(read_json_lines(tmp_path / "x.jsonl"))))
        except InvalidInput as error:
            assert str(error).startswith("line 2: got text that is no JSON object") and CANARY not in str(error)
    assert accepted == []


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
