"""Every command has a function of the library, or the page of the reference says that it has none.

It would fail for a new command that the page does not name, for a name there that does not exist, and for a function
whose default is not that of the command's option of the same name.
"""

from __future__ import annotations

import inspect
import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import click
import pytest

import dphmm
from dphmm.cli.app import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "api" / "README.md").read_text()
ROWS = dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", PAGE, re.MULTILINE))
NAMES = re.compile(r"`dphmm\.([\w.]+)`")


def named(path):
    return reduce(getattr, path.split("."), dphmm)


def test_the_page_has_every_command_and_names_that_exist():
    assert list(ROWS) == list(COMMANDS)
    for command, told in ROWS.items():
        names = NAMES.findall(told)
        assert names or told.startswith("none: "), command
        assert [name for name in names if named(name) is None] == []


def options(command):
    """{name: default} of the options of a command that say one."""
    module, _, name = COMMANDS[command][0].partition(":")
    found = getattr(import_module(module), name)
    return {
        option.name: option.default
        for option in found.params
        if isinstance(option, click.Option) and isinstance(option.default, str | int | float) and not option.is_flag
    }


ALONE = ["split", "plan", "optimize", "release", "synthesize", "export", "read"]


@pytest.mark.parametrize("command", ALONE)
def test_defaults_are_those_of_the_command(command):
    twin = named(NAMES.findall(ROWS[command])[0])
    given = {
        name: parameter.default
        for name, parameter in inspect.signature(twin).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    both = options(command).keys() & given.keys()
    assert {name: str(options(command)[name]) for name in both} == {name: str(given[name]) for name in both}
