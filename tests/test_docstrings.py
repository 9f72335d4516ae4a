"""Docstrings read well in `help`: a summary on the first line, lists and tables line by line, examples that run.

A formatter once wrapped summaries in the middle of a sentence and joined the lines of lists into paragraphs. All
docstrings under src are looked at, private ones too. It fails for a summary that goes on in the second line, for a
list or table that was joined, for a section that lost its heading, and for an example that does not stand on its own
line or does not give what it says; `test_the_check_can_fail` shows each.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pydoc
import re
from pathlib import Path

import pytest

import dphmm

SRC = Path(__file__).parents[1] / "src"
_SECTION = r"(Parameters|Returns|Yields|Raises|Examples?|Notes?)"
#: Two or more spaces between words: a column of a table.
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")


def docstrings():
    """(place, text) of every docstring."""
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield f"{path.relative_to(SRC)}:{getattr(node, 'name', 'module')}", text


def faults(text):
    """What is wrong with the lines of a docstring."""
    first, *rest = text.splitlines()
    if not first.rstrip().endswith((".", ":", "?", "!")):
        yield "a summary that does not end on the first line"
    if len(_SECTION_WITHOUT_LINE.findall(text)):
        yield "a section whose heading has no line of its own"
    if any(">>>" in line and not line.lstrip().startswith(">>>") for line in (first, *rest)):
        yield "an example that does not begin its line"
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if len(lines) > 1 and any("- " in line and len(re.findall(r"(?:^| )- `", line)) > 1 for line in lines):
            yield "a list whose items were joined"
        if not _is_table(lines):
            yield "columns that are not below each other"


_SECTION_WITHOUT_LINE = re.compile(rf"{_SECTION} +-{{3,}}|^{_SECTION}\n-{{3,}} +\S|\S +{_SECTION}\n-{{3,}}$", re.M)


def _is_table(lines):
    """Whether every column of a paragraph, if it has any, begins in two lines or more at one place."""
    ends = [[gap.end() for gap in _GAP.finditer(line)] for line in lines if not line.startswith((" ", ">>>", "..."))]
    found = [end for line in ends for end in line]
    return all(found.count(end) > 1 for end in found)


def test_every_docstring_keeps_its_lines():
    assert [f"{place}: {fault}" for place, text in docstrings() for fault in faults(text)] == []


def test_help_on_policy_lists_what_there_is():
    shown = pydoc.plain(pydoc.render_doc(dphmm.policy))
    description = shown[shown.index("DESCRIPTION") : shown.index("PACKAGE CONTENTS")]
    items = [line.strip() for line in description.splitlines() if line.strip().startswith("- ")]
    listed = {
        name for item in re.findall(r"- .*(?:\n {4,}  .*)*", description) for name in re.findall(r"`(\w+)`", item)
    }
    assert set(dphmm.policy.__all__) <= listed
    assert all(re.match(r"- `\w+`: \w", item) for item in items)
    for name in dphmm.policy.__all__:
        summary = inspect.getdoc(getattr(dphmm.policy, name)).splitlines()[0]
        assert summary.endswith(".") and summary in shown, name


def test_examples_run():
    """Those of the library's docstrings; whatever is written there is what comes out."""
    modules = {place.split(":")[0] for place, text in docstrings() if ">>>" in text}
    for path in sorted(modules):
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert doctest.testmod(importlib.import_module(name)).failed == 0, name


WRONG = {
    "a summary that does not end on the first line": "The states that an edge joins to\nanother.",
    "columns that are not below each other": (
        "Graphs.\n\ncomplete         every two states categorical      states with one label\n"
        "radius           near ones transition       moves"
    ),
    "a list whose items were joined": "Graphs.\n\n- `complete`: every two - `radius`: near\n  ones",
    "a section whose heading has no line of its own": "Draws.\n\nParameters ---------- bits : words.",
    "an example that does not begin its line": "Adds.\n\nFor example >>> 1 + 1\n2",
}


@pytest.mark.parametrize("fault", WRONG)
def test_the_check_can_fail(fault):
    assert fault in faults(WRONG[fault])


def test_tables_lists_and_examples_may_stand():
    right = (
        "Graphs.\n\ncomplete   every two\nradius     near ones\n\n- `a`: one\n- `b`: two\n\n"
        "Parameters\n----------\nn : how many.\n\n>>> 1 + 1  # two\n2"
    )
    assert list(faults(right)) == []
