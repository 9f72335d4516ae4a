"""The Dockerfile: what it copies is there and not ignored, its commands exist, it ends as a user who is not root.

It is read as text, for there is not always a builder: that the image is built is not tested. It could fail where a
command or an option is renamed, a file moves, or the kernels are looked for where they were not compiled.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from dphmm.cli.app import COMMANDS, app

ROOT = Path(__file__).parents[1]


def instructions(text):
    """(instruction, rest) of each line, continued lines joined, comments left out."""
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def ignored(name, rules):
    """Whether a name of the first level is left out: the last rule that fits decides."""
    found = False
    for rule in rules:
        if fnmatch(name, rule.removeprefix("!")):
            found = not rule.startswith("!")
    return found


def commands(steps):
    """The words of every dphmm command that is run."""
    for kind, rest in steps:
        if kind == "RUN":
            yield from (shlex.split(part) for part in re.split(r"&&|;", rest) if part.split()[0] == "dphmm")


STEPS = instructions((ROOT / "Dockerfile").read_text())
IGNORE = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]


def test_what_is_copied_is_there_and_nothing_else_reaches_the_builder():
    copied = [name for kind, rest in STEPS if kind == "COPY" and "--from" not in rest for name in rest.split()[:-1]]
    assert {"pyproject.toml", "README.md", "LICENSE", "src"} == set(copied)
    assert all((ROOT / name).exists() and not ignored(name, IGNORE) for name in copied)
    assert all(ignored(name, IGNORE) for name in ("tests", ".venv", "demo-out", "ledger.db", "people.parquet", ".git"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {project["readme"], *project["license-files"]} <= set(copied)


def test_both_stages_begin_with_one_slim_python_that_the_project_supports():
    bases = [rest.split()[0] for kind, rest in STEPS if kind == "FROM"]
    assert len(bases) == 2 and len(set(bases)) == 1
    minor = re.fullmatch(r"python:3\.(\d+)-slim", bases[0])
    assert minor is not None and int(minor[1]) >= 11


def test_its_commands_and_their_options_exist():
    found = list(commands(STEPS))
    assert found
    for _, name, *rest in found:
        assert name in COMMANDS
        options = {option for parameter in app.get_command(None, name).params for option in parameter.opts}
        assert {word for word in rest if word.startswith("-")} <= options, name


def test_kernels_are_compiled_where_they_are_looked_for_before_root_leaves():
    kinds = [kind for kind, _ in STEPS]
    (environment,) = [rest for kind, rest in STEPS if kind == "ENV"]
    ((_, name, option, folder, *_),) = commands(STEPS)
    assert (name, option) == ("warm", "--to") and environment == f"DPHMM_KERNELS={folder}"
    assert kinds.index("USER") > max(at for at, kind in enumerate(kinds) if kind == "RUN")
    ends = dict(STEPS)
    assert ends["USER"] not in ("root", "0") and f"useradd --create-home {ends['USER']}" in [r for _, r in STEPS]
    assert ends["ENTRYPOINT"] == '["dphmm"]'


@pytest.mark.parametrize(("rule", "name", "out"), [("*", "a", True), ("!a", "a", False), ("b", "a", False)])
def test_the_last_rule_decides(rule, name, out):
    assert ignored(name, [rule]) is out
    assert ignored(name, ["*", "!a"]) is (name != "a")


def test_lines_are_joined_and_comments_left_out():
    assert instructions("# x\nRUN a \\\n  b\n\nUSER c\n") == [("RUN", "a    b"), ("USER", "c")]
    assert list(commands([("RUN", "pip x && dphmm warm --to y"), ("ENV", "dphmm z")])) == [
        ["dphmm", "warm", "--to", "y"]
    ]
