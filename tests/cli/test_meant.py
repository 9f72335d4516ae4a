"""A name that there is not is answered in one line, with the nearest that there is.

It would fail for a name of the table that leads nowhere, and for a suggestion that is no name of the command.
"""

from __future__ import annotations

import click
import pytest

from commands import PIPELINE, typed
from dphmm.cli.app import COMMANDS, app
from dphmm.cli.meant import OTHER_NAMES, meant


def commands(command, words=()):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*words, name))
    else:
        yield words, [option for param in command.params for option in param.opts]


def test_every_other_name_leads_to_one_that_there_is_and_is_none_itself():
    options = {option for _, taken in commands(app) for option in taken}
    kinds = {words[-1] for words, _ in commands(app)}
    for name, others in OTHER_NAMES.items():
        assert name not in COMMANDS and others
        for other in others:
            _, *words = other.split() if other.startswith("dphmm ") else ("", other)
            assert all(word in options for word in words if word.startswith("--")), other
            assert words[0] in COMMANDS or words[0] in options | kinds | {"-h"}, other
            assert name != other


@pytest.mark.parametrize(
    ("words", "where", "near"),
    [
        ("relase", "dphmm: no command relase", "dphmm release"),
        ("tune", "dphmm: no command tune", "dphmm plan --target-error"),
        ("import cvs t.csv", "dphmm import: no kind cvs", "csv"),
        ("query count", "dphmm query: no kind count", "histogram"),
        ("release t.csv --eps 1", "dphmm release: no option --eps", "--epsilon"),
        ("plan m.npz --budget 12", "dphmm plan: no option --budget", "--path-epsilon"),
        ("fit t.csv --cell 1km", "dphmm fit: no option --cell", "--grid"),
        ("model grid --grid 1km", "dphmm model grid: no option --grid", "--cell"),
        ("plan m.npz --path_epsilon 3", "dphmm plan: no option --path_epsilon", "--path-epsilon"),
        ("release t.csv --seed 1", "dphmm release: no option --seed", ""),
        ("xyz", "dphmm: no command xyz", ""),
    ],
)
def test_one_line_says_what_was_meant(words, where, near):
    told = typed(*words.split(), code=2).stderr
    command = where.partition(":")[0]
    assert told == f"error: {where}{f'; did you mean {near}?' if near else ''}; see {command} -h\n"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[policy]", "[polices]", "[polices]: got a table that there is not; expected policy?"),
        ("cell =", "grid =", "[model] grid: got no option of it; expected cell?"),
        ("max-speed =", "speed =", "[model] speed: got no option of it; expected max-speed?"),
        ("epsilon = 0.5", "eps = 0.5", "[release] eps: got no option of it; expected epsilon?"),
        ("radius =", "kind = 'radious'\nradius =", "[policy] kind: got 'radious'; expected radius?"),
    ],
)
def test_so_does_a_key_of_a_pipeline(tmp_path, old, new, told):
    (tmp_path / "release.toml").write_text(PIPELINE.replace(old, new))
    assert typed("run", tmp_path / "release.toml", code=2).stderr == f"error: {told}\n"


def test_nothing_is_near_what_is_too_far():
    assert meant("--seed", ["--schedule", "--steps"]) == ""
