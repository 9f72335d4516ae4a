"""JSON lines: an object a line, read by itself; the names of the first object, and those of options, are columns."""

from __future__ import annotations

import gzip

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS

TIME = '"t": "2024-05-06T08:00:00Z"'


def read(tmp_path, *lines, name="x.jsonl", **options):
    """The rows without their times or places in the file, and what is rejected."""
    data = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    imported = IMPORTERS["jsonl"](tmp_path / name, **options)
    table = imported.trajectories.placed.to_arrow()
    rows = [tuple(row[name] for name in table.column_names if name != "t") for row in table.to_pylist()]
    return rows, [(row["row"], row["reason"]) for row in imported.rejected.to_pylist()]


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson.gz"])
def test_names_inside_objects_are_joined_by_dots(tmp_path, name):
    line = '{{"who": {{"id": {}}}, "at": {{"place": {{"y": 52.5, "x": 13.4}}}}, {}}}'
    rows, rejected = read(
        tmp_path, line.format('"ann"', TIME), line.format("9007199254740993", TIME), line.format("[1]", TIME),
        name=name, user_column="who.id", lat_column="at.place.y", lon_column="at.place.x",
    )  # fmt: skip
    assert rows == [("9007199254740993", 52.5, 13.4), ("ann", 52.5, 13.4)]
    assert rejected == [(3, "missing_user")]


def test_a_line_that_is_no_object_is_set_aside_whatever_it_is(tmp_path):
    good = '{"user": "a", "state": "home", "step": 1}'
    wrong = ["{", "[]", "null", "5", '"x"', "[" * 100_000, b"\xff\xfe", b"\0", good[:-1], good + good]
    rows, rejected = read(tmp_path, *wrong, "", good, *wrong, good.replace("1}", "2}"), "  ")
    assert rows == [("a", 1, "home"), ("a", 2, "home")]
    assert rejected == [(row, "ragged_row") for row in (*range(1, 11), *range(12, 22))]


def test_cells_that_cannot_be_read_are_those_of_their_row(tmp_path):
    line = '{{"user": {}, "state": {}, "step": {}}}'
    rows, rejected = read(
        tmp_path, line.format('"a"', '"x"', 1), line.format("7.0", "true", '"2"'), line.format('"a"', "null", 3),
        line.format('"a"', '"\\ud800"', 3), line.format('"a"', '"\xe9"', 3).encode("latin-1"),
        line.format('"a"', '"y"', "9" * 5000), line.format('"a"', '"y"', "1.5"), line.format("null", '"y"', 3), "{}",
    )  # fmt: skip
    assert rows == [("7", 2, "true"), ("a", 1, "x")]
    assert rejected == [
        (3, "missing_state"), (4, "wrong_encoding"), (5, "wrong_encoding"), (6, "invalid_step"), (7, "invalid_step"),
        (8, "missing_user"), (9, "missing_user"),
    ]  # fmt: skip


def test_columns_are_names_of_the_first_object_and_of_options(tmp_path):
    lines = ('{"z": {}}', '{"user": "a", "state": "x"}', '{"user": "b", "state": "y", "step": 3, "k": 1}')
    assert read(tmp_path, *lines)[0] == [("a", "x"), ("b", "y")]
    assert read(tmp_path, *lines, order_column="k") == ([("b", "y", 1)], [(1, "missing_user"), (2, "invalid_order")])
    with pytest.raises(InvalidInput, match="order_column: got nope; expected one of user, state"):
        read(tmp_path, *lines, order_column="nope")
    with pytest.raises(InvalidInput, match="no column t, but when"):
        read(tmp_path, '{"user": "a", "state": "x", "when": 5}')
    deep = '{"a": ' * 30 + "1" + "}" * 30
    assert read(tmp_path, '{"user": "a", "state": "x", "more": ' + deep + "}")[0] == [("a", "x")]
    with pytest.raises(InvalidInput, match="without an object; expected a JSON object a line"):
        read(tmp_path, "5", "{", "{}")


def test_files_of_a_folder_are_read_by_what_most_of_them_have(tmp_path):
    (tmp_path / "logs").mkdir()
    for name in "abc":
        (tmp_path / "logs" / f"{name}.jsonl").write_text('{"state": "x", "step": 1}\n{\n')
    (tmp_path / "logs" / "d.jsonl").write_text('{"step": 1}\n')
    (tmp_path / "logs" / "e.jsonl").write_text("{\n")
    imported = IMPORTERS["jsonl"](tmp_path / "logs", user_from="file-name")
    assert imported.trajectories.users == ("a", "b", "c")
    assert imported.report.dropped == {"ragged_row": 3, "missing_column": 1, "unreadable_file": 1}
