"""A text of JSON that says two things, or none, is refused."""

from __future__ import annotations

import pytest

from dphmm.storage.json_lines import is_json_lines, strict_json

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
