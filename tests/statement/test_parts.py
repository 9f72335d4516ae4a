"""One definition of a privacy statement: the schema and the page are made from it, and readers demand its types.

Claims: the schema file says what the types say, and docs/files.md has a table of each; the schema refuses one with a
member missing, added, of another type or of a forbidden value, and one that contradicts itself about whether it is
private; a reader refuses a member that is missing or of another type in one line that names it. It would fail for
a type that was changed without its schema or page, for a rule that was lost, and for a reader that hands on a statement
of which a part is not there.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import jsonschema
import pytest
from docs.statement_members import STATEMENTS, members
from msgspec import UNSET, UnsetType

from dphmm.errors import InvalidInput
from dphmm.statement.files import read_statement
from dphmm.statement.origin import AGAINST, DOUBTS, verdict
from dphmm.statement.parts import Count, Part, document, rule, schema, typed
from dphmm.statement.query import QueryStatement
from dphmm.statement.release import ReleaseStatement, statement_schema
from statement.pages import SCHEMA, schema_text

FOLDER = Path(__file__).parent / "kept"
AGAIN = "write it again: PYTHONPATH=tests python -m statement.pages"
KEPT = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
QUERIES = [name for name in KEPT if name.startswith("query-")]
RELEASES = [name for name in KEPT if name not in QUERIES]
#: Of these every member of a release is an object in one.
RICHEST = ("map", "merged", "learned")
#: Members that may hold anything: what a policy is made from.
FREE = ("policy", "parameters")


def test_the_schema_file_is_that_of_the_types() -> None:
    jsonschema.Draft202012Validator.check_schema(statement_schema())
    assert SCHEMA.read_text() == schema_text(), AGAIN


def test_the_page_has_a_table_of_each_statement() -> None:
    """The site makes the tables from the types."""
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text()
    assert re.findall(r"^```\{members\} (\w+)\n```$", page, re.MULTILINE) == list(STATEMENTS)


@pytest.mark.parametrize("found", STATEMENTS.values(), ids=STATEMENTS)
def test_every_member_says_what_it_is(found: dict[str, Any]) -> None:
    assert [path for path, _, meaning in members(found) if not meaning or "\n" in meaning] == []


def test_what_is_written_keeps_the_schema_and_is_read_as_it_is() -> None:
    check = jsonschema.Draft202012Validator(statement_schema())
    read = {name: read_statement(FOLDER / f"{name}.json") for name in RELEASES}
    assert [name for name in RELEASES if not check.is_valid(KEPT[name])] == []
    assert [name for name in RELEASES if json.dumps(document(read[name])) != json.dumps(KEPT[name])] == []
    assert [name for name in RELEASES if typed(document(read[name]), ReleaseStatement) != read[name]] == []


def test_statements_of_answers_keep_theirs() -> None:
    check = jsonschema.Draft202012Validator(schema(QueryStatement))
    assert [name for name in QUERIES if not check.is_valid(KEPT[name])] == []
    assert [name for name in QUERIES if document(typed(KEPT[name], QueryStatement)) != KEPT[name]] == []
    assert [
        (name, path)
        for name in QUERIES
        for path in paths(KEPT[name])
        if path[0] != "domain" and check.is_valid(without(KEPT[name], path))
    ] == []


def paths(found: Any, inside: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member of an object by its path, those of free members left out."""
    for name, value in found.items():
        yield (*inside, name)
        if isinstance(value, dict) and (*inside, name) not in (FREE, ("mechanism", "chosen"), ("domain",)):
            yield from paths(value, (*inside, name))


def without(found: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """A copy that has not this member."""
    changed = copy.deepcopy(found)
    part = changed
    for name in path[:-1]:
        part = part[name]
    del part[path[-1]]
    return changed


def changed(found: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy with another value of a member, or one member more."""
    other = copy.deepcopy(found)
    part = other
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return other


def test_the_schema_refuses_a_member_left_out_or_added_at_every_depth() -> None:
    check = jsonschema.Draft202012Validator(statement_schema())
    accepted: list[tuple[str, Any]] = []
    for name in RICHEST:
        found = KEPT[name]
        for path in paths(found):
            if check.is_valid(without(found, path)) is not (path == ("space", "merged")):
                accepted.append((name, path))
            filled = isinstance(member_at(found, path), dict) and path not in (FREE, ("mechanism", "chosen"))
            if filled and check.is_valid(changed(found, (*path, "true_state"), "x0y0")):
                accepted.append((name, (*path, "true_state")))
        if check.is_valid({**found, "true_state": "x0y0"}):
            accepted.append((name, "true_state"))
    assert accepted == []


def member_at(found: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        found = found[name]
    return found


#: Values that a member cannot have, by the type of a value that it has.
WRONG = {
    str: (None, 1, True, [], {}),
    bool: (1, "yes", "", {}),
    int: (1.5, "1", True),
    float: ("far", True, []),
    type(None): ([1],),
}


def test_the_schema_refuses_another_type_at_every_depth() -> None:
    check = jsonschema.Draft202012Validator(statement_schema())
    assert [
        (name, path, wrong)
        for name in RICHEST
        for path in paths(KEPT[name])
        for wrong in WRONG.get(type(member_at(KEPT[name], path)), (3, "text", True))
        if check.is_valid(changed(KEPT[name], path, wrong))
    ] == []


FORBIDDEN = {
    "format": (0, 1, 2, 4),
    "software.name": ("other",),
    "software.version": ("",),
    "algorithm_version": (0,),
    "private": (None, "true"),
    "reasons": (["replayable bits"], ["unknown origin"], ["a reason"], [""]),
    "definition": ("differential privacy",),
    "answer": ("both", "", None),
    "constraint": ("",),
    "epsilon": ("0.1", "", "1/", "-1", "1 "),
    "policy.kind": ("",),
    "policy.sha256": ("feed", "A" * 64, "a" * 65),
    "covered_distance.metres": (-1, "far", True),
    "covered_distance.ground_metres": (-0.5, ""),
    "mechanism.chosen": ({"staircase": 0}, {"staircase": "6"}),
    "mechanism.start": ("later",),
    "space.states": (0,),
    "space.dimension": (0,),
    "space.pitch": ([], [0], [-1.0], ["1"]),
    "space.merged": ({"count": 0, "pairs": None}, {"count": 1, "pairs": [[1]]}, None),
    "model.step_seconds": (0, 1.5),
    "model.private": ("unknown",),
    "model.people": ("everybody", "unknown"),
    "model.people_known_by": ("hearsay", None),
    "plans.count": (-1,),
    "plans.hashes": (["feed"],),
    "published.rows": (-1,),
    "totals.cost_sum": ("", 3),
    "randomness.replayable_rows": (-1,),
    "randomness.words": ("a seed", None),
    "not_protected": (["presence", "many releases"], ["presence", "2", "3", "4", "5"]),
    "file.name": ("",),
    "file.sha256": ("feed",),
    "learning": ({}, "much"),
}


def test_the_schema_refuses_forbidden_values() -> None:
    check = jsonschema.Draft202012Validator(statement_schema())
    assert check.is_valid(KEPT["map"])
    assert [
        (path, value)
        for path, values in FORBIDDEN.items()
        for value in values
        if check.is_valid(changed(KEPT["map"], tuple(path.split(".")), value))
    ] == []


@pytest.mark.parametrize(("name", "private"), [("map", True), ("replayable", False), ("plain", "unknown")])
def test_the_schema_refuses_contradictions_about_privacy(name: str, private: bool | str) -> None:
    check, found = jsonschema.Draft202012Validator(statement_schema()), KEPT[name]
    assert check.is_valid(found) and found["private"] == private
    for other in (True, False, "unknown"):
        assert check.is_valid({**found, "private": other}) is (other == private)
    assert check.is_valid({**found, "reasons": []}) is (private is True)
    for holds, reasons in ((False, AGAINST), ("unknown", DOUBTS)):
        assert {check.is_valid({**found, "reasons": [code]}) for code in reasons} == {private == holds}


@pytest.mark.parametrize(("name", "private"), [("map", True), ("replayable", False), ("plain", "unknown")])
def test_a_reader_refuses_contradictions_about_privacy(name: str, private: bool | str, tmp_path: Path) -> None:
    found = KEPT[name]
    for other in {True, False, "unknown"} - {private}:
        assert refused({**found, "private": other}, tmp_path).startswith(f"with private {other!r}, and other reasons")
    for codes in [[], *([code] for code in AGAINST | DOUBTS)]:
        if verdict(codes) != private:
            assert refused({**found, "reasons": codes}, tmp_path).startswith(f"with private {private!r}, and other")


def test_a_reader_refuses_codes_that_it_does_not_know(tmp_path: Path) -> None:
    assert refused({**KEPT["map"], "reasons": ["a lie"]}, tmp_path) == "with reasons 'a lie'"
    other = [*KEPT["map"]["not_protected"], "a lie"]
    assert refused({**KEPT["map"], "not_protected": other}, tmp_path) == "with not_protected 'a lie'"


def refused(found: Any, folder: Path) -> str:
    """What a reader says of it, after the name of the file."""
    path = folder / "released.csv.privacy.json"
    path.write_text(json.dumps(found))
    with pytest.raises(InvalidInput) as refusal:
        read_statement(path)
    said = str(refusal.value)
    assert "\n" not in said and said.endswith("; expected a privacy statement as dphmm release wrote it")
    return said.partition("got released.csv.privacy.json ")[2].partition("; expected")[0]


#: Members that a statement has only sometimes.
SOMETIMES = {"space.merged", "file", "learning.together"}


def test_a_reader_names_the_member_that_is_missing(tmp_path: Path) -> None:
    due = {
        (name, ".".join(path)): without(KEPT[name], path)
        for name in RICHEST
        for path in paths(KEPT[name])
        if path != ("format",) and path[0] != "software" and ".".join(path) not in SOMETIMES
    }
    said = {(name, told): refused(found, tmp_path) for (name, told), found in due.items()}
    assert said == {(name, told): f"without {told}" for name, told in due}


#: Members with a value of another type, and what a reader says of them.
MISTYPED: list[tuple[str, Any, str]] = [
    ("private", 1, "with private 1"),
    ("policy", "all", "with policy 'all'"),
    ("mechanism.start", None, "with mechanism.start None"),
    ("epsilon", 0.1, "with epsilon 0.1"),
    ("totals.cost_sum", 12, "with totals.cost_sum 12"),
    ("not_protected", ["a", 1], "with no text in not_protected"),
    ("mechanism.chosen", {"x": "y"}, "with no counts of mechanisms"),
    ("covered_distance.metres", True, "with covered_distance.metres True"),
    (
        "software.version",
        ["ü\n" * 100],
        r"with software.version ['\xfc\n\xfc\n\xfc\n\xfc\n\xfc\n\xfc\n\x...",
    ),
    ("published.rows", True, "with published.rows True"),
    ("space.states", 1e3, "with space.states 1000.0"),
    ("space.pitch", [1.0, "1"], "with space.pitch [1.0, '1']"),
    ("space.merged", {"count": 1, "pairs": [[1, None]]}, "with space.merged.pairs [[1, None]]"),
    ("file.sha256", 3, "with file.sha256 3"),
]


def test_a_reader_names_the_member_of_another_type(tmp_path: Path) -> None:
    found = [refused(changed(KEPT["map"], tuple(path.split(".")), value), tmp_path) for path, value, _ in MISTYPED]
    assert found == [said for _, _, said in MISTYPED]


@pytest.mark.parametrize("path", ["\ud800", "totals.\ud800"])
def test_names_of_members_that_are_no_text_are_refused(path: str, tmp_path: Path) -> None:
    """JSON can write half of a letter."""
    assert refused(changed(KEPT["map"], tuple(path.split(".")), 1), tmp_path) == "with a name that is no text"


def test_a_reader_leaves_out_members_that_it_does_not_know(tmp_path: Path) -> None:
    found = changed({**KEPT["map"], "later": [1]}, ("totals", "later"), {"deep": None})
    (tmp_path / "s.json").write_text(json.dumps(found))
    assert document(read_statement(tmp_path / "s.json")) == KEPT["map"]


def test_the_policy_of_a_statement_cannot_nest_without_end(tmp_path: Path) -> None:
    deep: Any = None
    for _ in range(600):
        deep = {"in": deep}
    (tmp_path / "s.json").write_text(json.dumps(changed(KEPT["map"], FREE, deep)))
    try:
        assert read_statement(tmp_path / "s.json").policy.parameters == deep
    except InvalidInput as error:
        assert "too deep" in str(error)


class Weather(Part, frozen=True, kw_only=True):
    """The weather of the day.

    rain : Millimetres of it.
    name : Its name, as people
        call it.
    """

    rain: Count
    name: Annotated[str, rule(enum=["dry", "wet"])]

    says: ClassVar[Mapping[str, str]] = {
        "meaning": "It was {{ name }}{% if rain %}, with {{ rain }} mm of rain, for {{ whole.query }}{% endif %}."
    }


class Diary(ReleaseStatement, frozen=True, kw_only=True):
    """A statement with a member more.

    weather : Only where somebody looked.
    """

    weather: Weather | UnsetType = UNSET


def test_a_member_is_defined_in_one_place(tmp_path: Path) -> None:
    """Its type, its description and its sentence: its JSON, its schema, its line of the page and its words follow."""
    plain = read_statement(FOLDER / "map.json")
    members_of = {name: getattr(plain, name) for name in plain.__struct_fields__}
    diary = Diary(**members_of, weather=Weather(rain=3, name="wet"))

    assert document(diary) == {**KEPT["map"], "weather": {"rain": 3, "name": "wet"}}
    assert document(Diary(**members_of)) == KEPT["map"]
    assert typed(document(diary), Diary) == diary
    assert diary.weather.sentence(whole=diary) == "It was wet, with 3 mm of rain, for state."

    found = schema(Diary)
    assert [row for row in members(found) if row[0].startswith("weather")] == [
        ("weather", "object, or absent", "Only where somebody looked."),
        ("weather.rain", "whole number", "Millimetres of it."),
        ("weather.name", '`"dry"` or `"wet"`', "Its name, as people call it."),
    ]
    check = jsonschema.Draft202012Validator(found)
    assert check.is_valid(document(diary)) and check.is_valid(KEPT["map"])
    for wrong in ({}, {"rain": -1, "name": "wet"}, {"rain": 3, "name": "fog"}, {"rain": 3, "name": "wet", "sun": 1}):
        assert not check.is_valid({**document(diary), "weather": wrong})
