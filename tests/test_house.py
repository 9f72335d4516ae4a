"""The gauges of the source: each counts the fault that it is for, and this tree is within their limits.

It could fail where a file imports one that imports it, at once, later in a function or by a name in a text, where code,
tests or documents grow, and where a gauge no longer sees its fault.
"""

from __future__ import annotations

import pytest
from benchmarks import house as gauges
from benchmarks.house import GAUGES, LIMITS, ROOT, House, banned, exceeded, figure, table
from benchmarks.source import reached

PLAIN = '"""Doc."""\n'
GLOSSARY = "## Words that are not used\n\n| not | but |\n|---|---|\n| crowd, lane | people |\n| Followed | next |\n"
APP = """import click
@click.group()
def app(): pass
@app.command()
@click.option("--a")
@click.option("--b")
def small(a, b): pass
"""
PIPELINE = """from typing import NamedTuple
class Stage(NamedTuple):
    words: tuple
    def members(self, options):
        return [one for one in options if one != "b"]
STAGES = {"data": Stage(("small",))}
"""
COMMANDS = {"cli/app.py": APP, "cli/pipeline.py": PIPELINE, "session/options.py": "PLAN_CHOICES = ()"}


@pytest.fixture
def tree(tmp_path):
    """Make a tree of some files: those of the package by their names below it, others from the root on (/)."""

    def made(files):
        for name, text in {"__init__.py": "", "/docs/glossary.md": GLOSSARY, "/README.md": "", **files}.items():
            path = tmp_path / name[1:] if name.startswith("/") else tmp_path / "src" / "dphmm" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return House(tmp_path)

    return made


#: By gauge: the files of a tree, and what the gauge says of it.
FAULTS = {
    "files": ({"a.py": ""}, 2),
    "code lines": ({"a.py": f"{PLAIN}# Why.\n\nx = [\n    1,\n]\n"}, 3),
    "code lines of the core": ({"a.py": "x = 1\n", "spark/a.py": "x = 1\n"}, 1),
    "code lines of experiments": ({"/experiments/a/b.py": "x = 1\n"}, 1),
    "code lines of tests": ({"/tests/a/test_b.py": 'def test():\n    """Doc."""\n    assert True\n'}, 2),
    "lines of templates, script and style": ({"report/page.css": "a {\n\n}\n", "report/page.js": "x\n"}, 3),
    "characters per code line": ({"a.py": "if x:\n    joined = 1; lines = 2\n"}, 13),
    "characters per code line of tests": ({"/tests/a.py": "x = 1; y = 2\n"}, 12),
    "characters per line of templates": ({"page.html": "<p>\n"}, 3),
    "words of docs": ({"/docs/glossary.md": "", "/docs/a/b.md": "two words\n"}, 2),
    "words of results": ({"/experiments/a/results.md": "now three words\n"}, 3),
    "words of docstrings and comments": ({"a.py": f"{PLAIN}# Moved here.\nx = '# no comment'\n"}, 4),
    "functions": ({"a.py": "def f(): pass\n"}, 1),
    "circles of imports": (
        {"a.py": "from dphmm import b\n", "b.py": "def f():\n    import dphmm.a\n"},
        ["dphmm.a dphmm.b"],
    ),
    "circles with types": (
        {"a.py": "import dphmm.b\n", "b.py": "if TYPE_CHECKING:\n    import dphmm.a\n"},
        ["dphmm.a dphmm.b"],
    ),
    "imports by computed names": (
        {"a.py": "import_module(name)\nimport_module('b')\n", "cli/a.py": "import_module(name)\n"},
        ["src/dphmm/a.py:1 import_module(name)"],
    ),
    "imports in functions": (
        {"a.py": "", "b.py": "import h3\n", "c.py": "def f():\n    import dphmm.a, dphmm.b, h3\n"},
        ["src/dphmm/c.py:2 dphmm.a"],
    ),
    "commands with many options": (COMMANDS, ["2 small"]),
    "options of all commands": (COMMANDS, 2),
    "keys of release.toml": (COMMANDS, ["[data] a"]),
    "functions with many parameters": (
        {"a.py": "class C:\n    def f(self, a, *, b): pass\n    def g(self, a): pass\ndef _f(a, b): pass\n"},
        ["2 src/dphmm/a.py:2 f"],
    ),
    "functions with any parameters": (
        {"a.py": "def f(**choices): pass\ndef _f(**choices): pass\n"},
        ["src/dphmm/a.py:1 f"],
    ),
    "docstrings that begin with a clause": (
        {"a.py": '"""What it is."""\ndef f():\n    """Return one."""\n'},
        ["src/dphmm/a.py:1 What"],
    ),
    "docstrings that begin with a clause, %": ({"a.py": '"""What it is."""\ndef f():\n    """Return one."""\n'}, 50),
    "names that say nothing": (
        {"a.py": "def f():\n    told, density = 1, 2\n    return told\n"},
        ["src/dphmm/a.py:2 told"],
    ),
    "class names with several meanings": (
        {"a.py": "class Rows: ...\nclass One: ...\n", "b.py": "class Rows: ...\n"},
        ["Rows: dphmm.a, dphmm.b"],
    ),
    "short private functions used once": (
        {"a.py": "def _once(): return 1\ndef _often(): return 1\nx = _once() + _often() + _often()\n"},
        ["src/dphmm/a.py:1 _once"],
    ),
    "modules without a mirrored test": (
        {"_rooms/_a.py": "", "_rooms/b.py": "", "/tests/rooms/test_a.py": ""},
        ["src/dphmm/_rooms/b.py"],
    ),
    "banned words": (
        {"a.py": 'class CrowdView: ...\ngiven_partners = "given_partners"\n', "/README.md": "plane, Followed\n"},
        ["src/dphmm/a.py:1 Crowd", "src/dphmm/a.py:2 given_partners", "README.md:1 Followed"],
    ),
    "test files without a default test": (
        {
            "/tests/test_a.py": "pytestmark = pytest.mark.long\ndef test_a(): pass\n",
            "/tests/test_b.py": "@pytest.mark.slow\ndef test_a(): pass\nclass TestC:\n    def test_d(self): pass\n",
            "/tests/test_c.py": "@pytest.mark.long\nclass TestC:\n    def test_d(self): pass\n",
            "/tests/test_d.py": "TestMachine = Machine.TestCase\n",
        },
        ["tests/test_a.py", "tests/test_c.py"],
    ),
    "processor seconds of the tests": ({"/build/tests-cpu.txt": "361\n"}, 361),
    "seeded bugs that are live": (
        {"/tests/mutants/seeded/a.toml": "[[mutant]]\nnumber = 'A1'\n[[mutant]]\nabsent = 'why'\n"},
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("gauge", GAUGES)
def test_a_gauge_counts_its_fault(gauge, tree, monkeypatch):
    monkeypatch.setattr(gauges, "MOST_OPTIONS", 1)
    monkeypatch.setattr(gauges, "MOST_PARAMETERS", 1)
    files, expected = FAULTS[gauge]
    house = tree(files)
    assert GAUGES[gauge](house) == expected
    assert figure(house, gauge) == (len(expected) if isinstance(expected, list) else expected)


@pytest.fixture(scope="module")
def own():
    """This tree, read once."""
    return House(ROOT)


def test_this_tree_is_within_the_limits(own):
    assert exceeded(own) == []


def test_a_gauge_beyond_its_limit_is_named(tree, monkeypatch):
    monkeypatch.setattr(gauges, "LIMITS", {"files": 1, "circles of imports": 0, "seeded bugs that are live": 1})
    house = tree({"a.py": ""})
    assert exceeded(house) == ["files: 2; the limit is 1", "seeded bugs that are live: 0; the limit is 1"]
    assert set(LIMITS) <= set(GAUGES)


def test_a_table_has_a_column_for_each_tree_and_says_what_is_not_measured(tree):
    lines = list(table([tree({"spark/a.py": "x = 1\n"})] * 2))
    assert len(lines) == len(GAUGES) + 2
    assert lines[0].split() == ["files", "2", "2"] and lines[-1].split() == ["spark", "1", "1"]
    assert sum("not measured" in line for line in lines) == 4


LOADS = 'from importlib import import_module\ndef f():\n    import_module("dphmm.b")\n'


@pytest.mark.parametrize(
    ("files", "circle"),
    [
        ({"a.py": LOADS, "b.py": "import dphmm.a\n"}, "dphmm.a dphmm.b"),
        ({"a.py": 'TABLE = {"f": "dphmm.b:name"}\n', "b.py": "import dphmm.a\n"}, "dphmm.a dphmm.b"),
        ({"a.py": 'name = f"dphmm.b.{one}"\n', "b/c.py": "import dphmm.a\n"}, "dphmm.a dphmm.b.c"),
        # A name of a lazy `__init__` is one of its home.
        (
            {
                "b/__init__.py": "if TYPE_CHECKING:\n    from dphmm.b.c import C as C\n",
                "b/c.py": "import dphmm.a\n",
                "a.py": "from dphmm.b import C\n",
            },
            "dphmm.a dphmm.b.c",
        ),
        # A package may name its own modules, and commands are loaded by name.
        ({"b/__init__.py": 'HOMES = {"C": "dphmm.b.c"}\n', "b/c.py": "import dphmm.b\n"}, None),
        ({"cli/a.py": 'COMMANDS = ["dphmm.cli.b:b"]\n', "cli/b.py": "import dphmm.cli.a\n"}, None),
        ({"a.py": '"""The text of dphmm.b."""\nx = "dphmm.b is"\n', "b.py": "import dphmm.a\n"}, None),
    ],
)  # fmt: skip
def test_circles_are_closed_also_by_texts(files, circle, tree):
    expected = [] if circle is None else [circle]
    assert tree({"b/__init__.py": "", **files} if "b.py" not in files else files).package.circles() == expected


def test_a_graph_leads_back_to_the_start_through_a_circle_alone():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d"}}
    assert reached(graph, "a") == {"a", "b", "c", "d"} and reached(graph, "e") == {"d"}


def test_an_import_in_a_function_may_load_a_heavy_library_through_ours(tree):
    house = tree({
        "heavy.py": "from dphmm.deeper import x",
        "deeper.py": "import numba\nx = 1",
        "later.py": "def f():\n    import numba",
        "user.py": "def f():\n    import dphmm.heavy\n    import dphmm.later",
    })  # fmt: skip
    assert [found.split()[1] for found in house.package.light()] == ["dphmm.later"]


def test_the_words_that_are_not_used_are_those_of_the_glossary(own):
    words = banned(own)
    assert {"crowd", "set_aside", "woven"} <= set(words) and "not" not in words
    assert all(word == word.strip() != "" for word in words)


def test_a_run_of_pytest_keeps_its_processor_time_when_it_is_asked(tmp_path, monkeypatch):
    import conftest

    monkeypatch.setattr(conftest, "CPU", tmp_path / "build" / "cpu.txt")
    monkeypatch.setattr(conftest.hooks, "end", lambda: None)

    class Config:
        def __init__(self, asked):
            self.asked = asked

        def getoption(self, name):
            return self.asked if name == "cpu" else None

    conftest.pytest_unconfigure(Config(False))
    assert not (tmp_path / "build").exists()
    conftest.pytest_unconfigure(Config(True))
    assert float((tmp_path / "build" / "cpu.txt").read_text()) >= 0
