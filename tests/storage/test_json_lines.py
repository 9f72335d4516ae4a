"""A text of JSON that says two things, or none, is refused."""

from __future__ import annotations

import io

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage import json_lines
from dphmm.storage.json_lines import cell, is_json_lines, lines, part, strict_json, written_json

WRONG = {
    "cut short": '{"user": "ann"',
    "empty": "",
    "a member twice": '{"a": 1, "a": 2}',
    "deeper, twice": '{"b": [{"a": 1, "a": 2}]}',
    "not a number": '{"a": NaN}',
    "infinite": '{"a": -Infinity}',
    "deep": "[" * 10_000,
    "not UTF-8": b'{"a": "\xff"}',
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_json_is_refused(name):
    with pytest.raises((ValueError, RecursionError)):
        strict_json(WRONG[name])


def test_names_of_files_of_lines():
    assert strict_json('{"a": [1, "b"]}') == {"a": [1, "b"]}
    assert is_json_lines("rows.jsonl") and is_json_lines("X.NDJSON") and not is_json_lines("rows.json")


def test_a_document_of_others_is_the_text_that_stands_there():
    """No number is rounded, however long; a byte that is no UTF-8 is a sign that no name has, in its own place."""
    big = "9" * 5000
    document = written_json(b'\xef\xbb\xbf{"a": 7.0, "b": [1e400, %s], "c": "\xff", "a": 8.10}' % big.encode())
    assert document == {"a": "8.10", "b": ["1e400", big], "c": "\x1a"}
    assert cell(document["a"]) == "8.10" and cell(written_json(b"7.0")) == "7" and cell("7.0") == "7.0"
    assert [cell(value) for value in (True, False, None, [1], {})] == ["true", "false", None, None, None]
    assert cell("\ud83d") == "\x1a"
    for wrong in (b"[" * 100_000, b'{"a"', b"", b"\0"):
        with pytest.raises(ValueError, match=r"deeply|Expecting|delimiter"):
            written_json(wrong)


def test_members_that_are_others_are_empty():
    assert part({"a": {"b": 1}}, "a", dict) == {"b": 1} and part({"a": [1]}, "a", list) == [1]
    for value in (None, [], "a", {"a": 5}, {"a": None}, {}):
        assert part(value, "a", dict) == {} and part(value, "a", list) == []


def test_lines_are_bounded_and_blank_ones_are_none(monkeypatch):
    monkeypatch.setattr(json_lines, "MOST_LINE", 5)
    assert list(lines("x", io.BytesIO(b"ab\n\n \r\ncd"))) == [b"ab\n", b"cd"]
    with pytest.raises(InvalidInput, match="x, with a line of more than 5 bytes"):
        list(lines("x", io.BytesIO(b"ab\nabcdef")))
