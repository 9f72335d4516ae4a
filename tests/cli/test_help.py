"""Help in two lengths: short for most days, long for every option; examples are lines that commands take.

It fails for an example with an option that there is not, a short help of more than ten options, an option in no help,
and options that every command takes said again in each.
"""

from __future__ import annotations

import shlex

import click
import pytest

from commands import typed
from dphmm.cli.app import COMMANDS, GROUPS, MORE, app
from dphmm.cli.help import COMMON, EXAMPLES, FIRST, Kinds, own_options


def every():
    """All commands by what is typed: "model grid"."""
    context = click.Context(app)
    for name in COMMANDS:
        command = app.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (
                (f"{name} {part}", command.get_command(context, part)) for part in command.list_commands(context)
            )
        else:
            yield name, command


EVERY = dict(every())


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_a_line_that_its_command_takes(line):
    words = shlex.split(line.removeprefix("dphmm "))
    name = next(name for name in EVERY if words[: len(name.split())] == name.split())
    # Options and arguments are read; nothing is run, and no file is opened.
    assert EVERY[name].make_context(name, words[len(name.split()) :]).params


def test_names_in_the_tables_are_commands_and_options():
    assert set(EXAMPLES) | set(FIRST) <= set(EVERY) and all(1 <= len(lines) <= 3 for lines in EXAMPLES.values())
    for name, first in FIRST.items():
        assert set(first) <= {param.name for param in EVERY[name].params}, name


@pytest.mark.parametrize("name", EVERY)
def test_short_help_has_at_most_ten_options_and_the_long_one_all(name):
    short, whole = (typed(*name.split(), option).stdout for option in ("-h", "--help-all"))
    context = click.Context(EVERY[name])
    options = [record[0] for _, record in own_options(EVERY[name], context)]
    assert sum(line.startswith("  -") for line in short.splitlines()) <= 10
    assert all(f"\n  {option}" in whole for option in options)
    common = [param for param in EVERY[name].params if param.name in COMMON]
    assert not any(f"\n  {param.opts[0]}" in whole for param in common)
    assert ("As every command" in short) == bool(common)


def test_the_overview_has_twelve_commands_and_names_the_others():
    told = typed("-h").stdout
    assert sum(len(group) for group in GROUPS.values()) <= 13
    assert all(f"\n  {name} " in told for group in GROUPS.values() for name in group)
    more = typed("more").stdout
    assert all(f"  {name} " in more for name in MORE) and "More (dphmm more)" in told
    assert all(word.split(":")[0].split(",")[0] in told for word in COMMON.values())


def test_all_long_helps_together_have_few_options():
    """Where kinds of a command share an option it stands once, on the page of all of them."""
    lines = 0
    for name in COMMANDS:
        command = app.get_command(click.Context(app), name)
        context = click.Context(command, info_name=name)
        lines += len(command.options(context)) if isinstance(command, Kinds) else len(own_options(command, context))
    assert lines <= 250


def test_a_kind_s_long_help_is_the_page_of_all_kinds():
    page = typed("policy", "--help-all").stdout
    assert typed("policy", "radius", "--help-all").stdout == page
    assert "--covers LENGTH" in page and "[radius]" in page and page.count("--merge-lonely  ") == 1
    assert "dphmm policy KIND -h" in typed("policy", "-h").stdout
