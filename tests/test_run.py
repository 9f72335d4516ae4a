"""`run.py` sets up what a command needs, once, and runs it; the slow tests on request alone."""

from __future__ import annotations

import os
import tomllib

import pytest
import run

MADE_OF = tomllib.loads(run.PROJECT.read_text())["project"]["optional-dependencies"]


@pytest.fixture
def asked(monkeypatch):
    """What is set up and run; nothing is."""
    found = []
    monkeypatch.setattr(run.Environment, "set_up", lambda self, extra: found.append(extra))
    monkeypatch.setattr(run.Environment, "run", lambda self, *words: found.append(" ".join(words)))
    return found


def test_the_demo_needs_the_package_alone(asked):
    run.main(["demo"])
    assert asked == ["", "dphmm demo --out demo-out"]


@pytest.mark.parametrize(
    ("words", "extra", "marks", "rest"),
    [([], "test", "not long and not slow", []), (["-x", "--all", "-k", "y"], "dev", "not long", ["-x", "-k", "y"])],
)
def test_slow_tests_run_with_all(words, extra, marks, rest, asked):
    run.main(["test", *words])
    assert asked == [extra, " ".join(["python -m pytest -n 2 -m", marks, *rest])]


def test_every_extra_is_one_of_the_project():
    assert set(run.EXTRAS.values()) - {""} <= set(MADE_OF)
    assert not any("sphinx" in one or "mypy" in one for one in MADE_OF["test"])


@pytest.mark.parametrize("words", [["no"], ["demo", "--all"], []])
def test_an_unknown_command_prints_the_commands(words, asked):
    with pytest.raises(SystemExit, match=r"run\.py demo"):
        run.main(words)
    assert asked == []


def test_an_extra_is_installed_once_and_again_after_the_project_changed(monkeypatch, tmp_path):
    project, ran = tmp_path / "pyproject.toml", []
    project.touch()
    monkeypatch.setattr(run, "PROJECT", project)
    environment = run.Environment(tmp_path / "env")
    environment.programs.mkdir(parents=True)
    monkeypatch.setattr(run.Environment, "run", lambda self, *words: ran.append(words[-1]))
    for extra in ("", "test", "", "test"):
        environment.set_up(extra)
    assert ran == [".", ".[test]"]
    later = project.stat().st_mtime + 10
    os.utime(project, (later, later))
    environment.set_up("test")
    assert ran[2:] == [".[test]"]
