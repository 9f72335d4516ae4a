"""What is measured of the source, and what must not come back: circles of imports.

It could fail where a file imports one that imports it, at once or later in a function.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from benchmarks.house import SOURCE, House, Module, banned, components, pages, words


def module(name, text):
    return Module(name, Path(f"{name.replace('.', '/')}.py"), text, ast.parse(text))


@pytest.fixture(scope="module")
def own():
    """The package, read once."""
    return House.read()


def test_no_files_import_each_other(own):
    assert own.circles() == []


def test_a_circle_is_found_also_where_a_function_closes_it():
    one = module("dphmm.one", "from dphmm.two import b\n")
    two = module("dphmm.two", "def f():\n    from dphmm import one\n")
    types = module("dphmm.three", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dphmm.one\n")
    house = House([one, two, types])
    assert house.circles() == [["dphmm.one", "dphmm.two"]]
    assert house.graph["dphmm.three"] == set()


def test_components_are_those_of_the_graph():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"e"}}
    assert sorted(components(graph), key=len, reverse=True)[0] == ["a", "b", "c"]


def test_lines_of_code_are_counted_without_docstrings_and_comments():
    text = '"""What it is.\n\nMore."""\n\n# Why.\nx = [\n    1,\n]\n\n\ndef f():\n    """Doc."""\n    return x\n'
    assert module("dphmm.x", text).code_lines() == 5


def test_the_words_that_are_not_used_are_those_of_the_glossary():
    assert {"crowd", "set_aside", "woven"} <= set(banned())
    assert "not" not in banned()
    assert all(word == word.strip() != "" for word in banned())


def test_a_banned_word_is_found_in_prose_and_in_names(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.house.ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text("class CrowdView: ...\nlane_of = 1\nplanes = 2\n# a crowd of people\n")
    assert [found.split(":")[1] for found in words([path])] == ["1 Crowd", "2 lane", "4 crowd"]


def test_a_capital_means_a_name_and_a_key_of_stored_plans_may_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.house.ROOT", tmp_path)
    path = tmp_path / "a.py"
    path.write_text('class Followed: ...\n# one followed by another\ngiven_partners = 1\nkey = "given_partners"\n')
    assert [found.split(":")[1] for found in words([path])] == ["1 Followed", "3 given_partners"]


def test_no_banned_word_stands_in_the_source_or_on_a_page():
    assert words([*sorted(SOURCE.rglob("*.py")), *pages()]) == []


def test_four_of_five_modules_have_their_test_at_the_mirrored_path(own):
    modules = [name for name, module in own.modules.items() if module.path.name not in ("__init__.py", "__main__.py")]
    assert 5 * len(own.unmirrored()) <= len(modules)


def test_an_import_in_a_function_may_load_a_heavy_library_through_ours_and_nothing_light(monkeypatch):
    monkeypatch.setattr("benchmarks.house.ROOT", Path())
    ours = [
        module("dphmm.light", "import numpy"),
        module("dphmm.heavy", "from dphmm.deeper import x"),
        module("dphmm.deeper", "import numba\nx = 1"),
        module("dphmm.later", "def f():\n    import numba"),
        module("dphmm.user", "def f():\n    import dphmm.light\n    import dphmm.heavy\n    import dphmm.later"),
    ]
    assert [found.split()[1] for found in House(ours).inner()] == ["dphmm.light", "dphmm.later"]


def test_no_function_imports_what_is_light(own):
    assert own.inner() == []
