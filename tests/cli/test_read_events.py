"""dphmm read --event and --paths: the odds of an event, and the bound of two paths, from the folder of a release.

Claims: the command says what `event_odds` says, with the options that the statement names; times of day are the
steps that begin in the window; bad input is one line that names the option; nothing is written. Fails where an option
is not handed on, where a window is a step too long, or where a refusal is a traceback.
"""

from __future__ import annotations

import math

import pandas as pd
import pytest

import dphmm
from cli.conftest import CHOICES, altered


@pytest.fixture(scope="module")
def read(places, run):
    def arguments(*more, name="plain", code=0):
        return run("read", places[name] / "released", *more, code=code)

    return arguments


def library(town, folder, states, first, last, always=False, **choices):
    model = dphmm.storage.load_model(town / "model.npz")
    policy = dphmm.storage.load_policy(town / "radius.json", model=model)
    released = pd.read_csv(folder / "released" / "released.csv")
    numbers = model.space.indices_of(states)
    return dphmm.reconstruction.event_odds(
        released, model, policy, model.space, numbers, first, last, always=always, **choices
    )


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("always", [False, True])
def test_equal_to_the_library(name, always, town, places, read, one_json):
    more = ["--event", "x1y1,x2y1", "--from", "3", "--to", "5", *(["--always"] if always else [])]
    document = one_json(read(*more, "--json", name=name))
    expected = library(town, places[name], ["x1y1", "x2y1"], 3, 5, always, **CHOICES[name])
    assert [found["subject"] for found in document["subjects"]] == ["u1", "u2", "u3"]
    for found, odds in zip(document["subjects"], expected, strict=True):
        assert found["prior"] == odds.prior.probability and found["posterior"] == odds.posterior.probability
        assert found["loss"] == odds.loss != 0
        assert found["answers"] == 12 and abs(found["loss"]) <= found["bound"]
        assert found["verdict"] == "possible"
    assert document["event"] == {"states": 2, "from": 3, "to": 5, "always": always}
    assert document["left_out"] == 0


def test_times_are_the_steps_that_begin_in_the_window(town, places, read, one_json):
    """08:10 is step 3 of five minutes, and 08:25 is no longer part of a window that ends then."""
    event = ["--event", "x1y1", "--user", "u2", "--json"]
    by_step = one_json(read(*event, "--from", "3", "--to", "5"))["subjects"]
    for first, last in (("08:10Z", "08:25Z"), ("08:12Z", "08:20:01Z"), ("10:10+02:00", "10:25+02:00")):
        by_time = one_json(read(*event, "--from", f"2024-05-06T{first}", "--to", f"2024-05-06T{last}"))
        assert by_time["subjects"] == by_step
    longer = ("--from", "2024-05-06T08:10Z", "--to", "2024-05-06T08:25:01Z")
    assert one_json(read(*event, *longer))["subjects"] != by_step
    assert library(town, places["plain"], ["x1y1"], "2024-05-06T08:10Z", "2024-05-06T08:25Z")[1].subject == "u2"


def test_lines_for_people(read):
    result = read("--event", "x1y1", "--from", "3", "--to", "5", "-q")
    assert result.stderr == "" and result.stdout.count("\n") == 4
    assert "odds times" in result.stdout and "after 12 answers" in result.stdout


def test_a_table_of_states(read, tmp_path, one_json):
    (tmp_path / "park.csv").write_text("state\nx1y1\nx2y1\n")
    window = ("--from", "1", "--to", "12", "--json")
    named = one_json(read("--event", "x1y1,x2y1", *window))
    assert one_json(read("--event", tmp_path / "park.csv", *window)) == named


def test_two_paths(read, one_json):
    """Twelve steps apart lose more than one step apart; the same path loses nothing."""
    still, away = ",".join(["x1y1"] * 12), ",".join(["x2y1"] * 12)
    once = ",".join(["x2y1"] + ["x1y1"] * 11)
    bounds = [
        one_json(read("--paths", still, other, "--user", "u1", "--json"))["subjects"][0]["bound"]
        for other in (still, once, away)
    ]
    assert bounds[0] == 0 < bounds[1] < bounds[2] <= 12 + 1e-9
    assert math.isclose(bounds[2], 12 * bounds[1], rel_tol=1e-9)
    assert "bound" in read("--paths", still, away).stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--from", "1"], "--from: got it alone; expected --event with it"),
        (["--event", "x1y1", "--paths", "x1y1", "x1y1"], "--paths: got it and --event"),
        (["--event", "x1y1"], "--from: got nothing"),
        (["--event", "x1y1", "--from", "1"], "--to: got nothing"),
        (["--event", "nowhere", "--from", "1", "--to", "2"], "--event: got 'nowhere'"),
        (["--event", "x1y1", "--from", "3", "--to", "2"], "--to: got 2, before 3"),
        (["--event", "x1y1", "--from", "0", "--to", "2"], "--from: got 0"),
        (["--event", "x1y1", "--from", "nine", "--to", "ten"], "--from: got nine"),
        (["--event", "x1y1", "--from", "2024-05-06T09:00", "--to", "2024-05-06T10:00"], "--from: got 2024-05-06T09:00"),
        (["--event", "x1y1", "--from", "2024-05-06T09:00Z", "--to", "2024-05-06T08:00Z"], "--to: got"),
        (["--event", "x1y1", "--from", "2024-05-05T09:00Z", "--to", "2024-05-05T10:00Z"], "--from: got"),
        (["--event", "x1y1", "--from", "1", "--to", "2024-05-06T08:00Z"], "--to: got"),
        (["--event", "x1y1", "--from", "1", "--to", "2", "--user", "nobody"], "--user: got nobody"),
        (["--paths", "x1y1", "x1y1"], "--paths: got 1 states"),
        (["--paths", "x1y1", "nowhere"], "--paths: got 'nowhere'"),
        (["--paths", "x1y1", "x1y1", "--from", "1"], "--from: got it alone; expected --event with it"),
        (["--paths", "x1y1", "x1y1", "--always"], "--always: got it alone; expected --event with it"),
    ],
)
def test_bad_input_is_one_line(more, words, read):
    result = read(*more, code=2)
    assert words in result.stderr and result.stderr.count("\n") == 1 and result.stdout == ""


def test_people_whose_first_step_is_later_are_left_out(places, run, tmp_path, one_json):
    def later(table, _):
        last = table.user == "u3"
        table.loc[last, "t"] = table.loc[last, "t"].str.replace(r"([T ])08:", r"\g<1>09:", regex=True)

    folder = altered(places["plain"], tmp_path, later) / "released"
    window = ("--from", "2024-05-06T08:10:00Z", "--to", "2024-05-06T08:25:00Z")
    result = run("read", folder, "--event", "x1y1", *window, "--json")
    document = one_json(result)
    assert [found["subject"] for found in document["subjects"]] == ["u1", "u2"] and document["left_out"] == 1
    assert "1 people are left out" in result.stderr
