"""A name that there is not is answered in one line, with the nearest that there is.

It would fail for a name of the table that leads nowhere, and for a suggestion that is no name of the command.
"""

from __future__ import annotations

import click
import pytest

from commands import PIPELINE, typed, walk_rows, write_rows
from dphmm.cli.app import COMMANDS, app
from dphmm.cli.meant import OTHER_NAMES, meant, value_meant


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


KINDS = "areas, categorical, complete, edges, knn, radius, transition, union"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[policy]", "[polices]", "[polices]: got an unknown table; expected policy, the nearest name"),
        ("cell =", "grid =", "[model] grid: got an unknown option; expected cell, the nearest name"),
        ("max-speed =", "speed =", "[model] speed: got an unknown option; expected max-speed, the nearest name"),
        ("epsilon = 0.5", "eps = 0.5", "[release] eps: got an unknown option; expected epsilon, the nearest name"),
        (
            "radius =",
            "kind = 'radious'\nradius =",
            f"[policy] kind: got 'radious'; expected one of {KINDS}; did you mean radius?",
        ),
    ],
)
def test_so_does_a_key_of_a_pipeline(tmp_path, old, new, told):
    (tmp_path / "release.toml").write_text(PIPELINE.replace(old, new))
    assert typed("run", tmp_path / "release.toml", code=2).stderr == f"error: {told}\n"


def test_nothing_is_near_what_is_too_far():
    assert meant("--seed", ["--schedule", "--steps"]) == ""


OF_TIME, OF_LENGTH = "a number of steps, or a time as 1d, 12h or 30min", "a length such as 340m or 1km"


@pytest.mark.parametrize(
    ("came", "expected", "near"),
    [
        *(
            (day, OF_TIME, "1d")
            for day in ("1day", "1 day", "day", "daily", "1D", "01day", "24hours", "24 h", "24 hrs")
        ),
        ("36 Hours", OF_TIME, "36h"),
        ("90 minutes", OF_TIME, "90min"),
        ("5m", OF_TIME, "5min"),
        ("5m", OF_LENGTH, ""),
        ("0.5 kilometres", OF_LENGTH, "0.5km"),
        ("20kmh", "a speed such as 150km/h or 40m/s", "20km/h"),
        # No valid value, or none that is meant for sure.
        *((other, OF_TIME, "") for other in ("1.5day", "0days", "30s", "1 week", "d1", "12h", "-1day", "")),
        ("2 miles", OF_LENGTH, ""),
        ("block, which is no file", "a table (state, region), GeoJSON, or blocks", "blocks"),
        ("indep", "independent, group, group:K, friends:EDGES or markov:MODEL", "independent"),
        ("Exact", "one of same, exact", "exact"),
        ("usr", "one of user, t, lat", "user"),
        ("home", "one of user, t, lat", ""),
        ("a", "one of at, b", ""),
        ("nothing", "something", ""),
        ("no rows", "rows, or none", ""),
    ],
)
def test_a_value_that_is_refused_has_a_near_one_or_none(came, expected, near):
    assert value_meant(came, expected) == near


def test_a_value_of_an_option_is_answered_in_one_line_with_the_nearest():
    told = typed("plan", "m.npz", "--path-epsilon", 4, "--per", "1d", "--schedule", "plan", code=2).stderr
    assert told == "error: --schedule: got plan; expected one of planned, staggered, paced; did you mean planned?\n"
    told = typed("model", "grid", "--bbox", "10,50,11,51", "--cell", "500 metres", "--step", "1min",
                 "--max-speed", "9m/s", "-o", "m.npz", code=2).stderr  # fmt: skip
    assert told == "error: --cell: got 500 metres; expected a length such as 340m or 1km; did you mean 500m?\n"


@pytest.mark.parametrize(
    ("members", "told"),
    [
        (
            "path-epsilon = 4\nper = '24hours'",
            "per: got 24hours; expected a number of steps, or a time as 1d, 12h or 30min; did you mean 1d?",
        ),
        ("answer = 'lst'", "answer: got lst; expected one of last, first; did you mean last?"),
    ],
)
def test_so_is_a_value_of_a_pipeline(tmp_path, members, told):
    write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon"], walk_rows())
    (tmp_path / "release.toml").write_text(f"{PIPELINE}\n{members}\n")
    assert typed("run", tmp_path / "release.toml", "-q", code=2).stderr == f"error: [release] {told}\n"
