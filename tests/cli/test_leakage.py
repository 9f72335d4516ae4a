"""dphmm leakage: the odds of an event, and the bound of two paths, from a released file.

Claims: the command says what `dphmm.event_odds` says, with the options that the statement names; times of day are the
steps that begin in the window; bad input is one line that names the option; nothing is written. Fails where an option
is not handed on, where a window is a step too long, or where a refusal is a traceback.
"""

from __future__ import annotations

import math

import pandas as pd
import pytest

import dphmm
from cli.conftest import CHOICES


@pytest.fixture(scope="module")
def leakage_of(town, places, run):
    def arguments(*more, name="plain", code=0, policy="radius.json"):
        files = [places[name] / "released.csv", "--model", town / "model.npz", "--policy", town / policy]
        return run("leakage", *files, *more, code=code)

    return arguments


def library(town, folder, states, first, last, always=False, **choices):
    model = dphmm.load_model(town / "model.npz")
    policy = dphmm.load_policy(town / "radius.json", model=model)
    released = pd.read_csv(folder / "released.csv")
    numbers = model.space.indices_of(states)
    return dphmm.event_odds(released, model, policy, model.space, numbers, first, last, always=always, **choices)


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("always", [False, True])
def test_equal_to_the_library(name, always, town, places, leakage_of, one_json):
    more = ["--event", "x1y1,x2y1", "--from", "3", "--to", "5", *(["--always"] if always else [])]
    document = one_json(leakage_of(*more, "--json", name=name))
    expected = library(town, places[name], ["x1y1", "x2y1"], 3, 5, always, **CHOICES[name])
    assert [found["subject"] for found in document["subjects"]] == ["u1", "u2", "u3"]
    for found, odds in zip(document["subjects"], expected, strict=True):
        assert found["prior"] == odds.prior.probability and found["posterior"] == odds.posterior.probability
        assert found["loss"] == odds.loss != 0
        assert found["answers"] == 12 and abs(found["loss"]) <= found["bound"]
        assert found["verdict"] == "possible"
    assert document["event"] == {"states": 2, "from": 3, "to": 5, "always": always}
    assert document["options_from"] == "released.csv.privacy.json" and document["left_out"] == 0


def test_times_are_the_steps_that_begin_in_the_window(town, places, leakage_of, one_json):
    """08:10 is step 3 of five minutes, and 08:25 is no longer part of a window that ends then."""
    event = ["--event", "x1y1", "--user", "u2", "--json"]
    by_step = one_json(leakage_of(*event, "--from", "3", "--to", "5"))["subjects"]
    for first, last in (("08:10Z", "08:25Z"), ("08:12Z", "08:20:01Z"), ("10:10+02:00", "10:25+02:00")):
        by_time = one_json(leakage_of(*event, "--from", f"2024-05-06T{first}", "--to", f"2024-05-06T{last}"))
        assert by_time["subjects"] == by_step
    longer = ("--from", "2024-05-06T08:10Z", "--to", "2024-05-06T08:25:01Z")
    assert one_json(leakage_of(*event, *longer))["subjects"] != by_step
    assert library(town, places["plain"], ["x1y1"], "2024-05-06T08:10Z", "2024-05-06T08:25Z")[1].subject == "u2"


def test_lines_for_people(leakage_of):
    result = leakage_of("--event", "x1y1", "--from", "3", "--to", "5", "-q")
    assert result.stderr == "" and result.stdout.count("\n") == 4
    assert "odds times" in result.stdout and "after 12 answers" in result.stdout


def test_a_table_of_states(leakage_of, tmp_path, one_json):
    (tmp_path / "park.csv").write_text("state\nx1y1\nx2y1\n")
    window = ("--from", "1", "--to", "12", "--json")
    named = one_json(leakage_of("--event", "x1y1,x2y1", *window))
    assert one_json(leakage_of("--event", tmp_path / "park.csv", *window)) == named


def test_two_paths(leakage_of, one_json):
    """Twelve steps apart lose more than one step apart; the same path loses nothing."""
    still, away = ",".join(["x1y1"] * 12), ",".join(["x2y1"] * 12)
    once = ",".join(["x2y1"] + ["x1y1"] * 11)
    bounds = [
        one_json(leakage_of("--paths", still, other, "--user", "u1", "--json"))["subjects"][0]["bound"]
        for other in (still, once, away)
    ]
    assert bounds[0] == 0 < bounds[1] < bounds[2] <= 12 + 1e-9
    assert math.isclose(bounds[2], 12 * bounds[1], rel_tol=1e-9)
    assert "bound" in leakage_of("--paths", still, away).stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "--event: got neither it nor --paths"),
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
        (["--event", "x1y1", "--from", "1", "--to", "2", "--epsilon", "2"], "drawn under plan"),
        (["--paths", "x1y1", "x1y1"], "--paths: got 1 states"),
        (["--paths", "x1y1", "x1y1", "--from", "1"], "--from: got 1"),
        (["--paths", "x1y1", "x1y1", "--always"], "--always: got given"),
    ],
)
def test_bad_input_is_one_line(more, words, leakage_of):
    result = leakage_of(*more, code=2)
    assert words in result.stderr and result.stderr.count("\n") == 1 and result.stdout == ""


def test_subjects_whose_first_step_is_later_are_left_out(town, places, run, tmp_path, one_json):
    table = pd.read_csv(places["plain"] / "released.csv", dtype=str)
    later = table.user == "u3"
    table.loc[later, "t"] = table.loc[later, "t"].str.replace(r"([T ])08:", r"\g<1>09:", regex=True)
    table.to_csv(tmp_path / "released.csv", index=False)
    window = ("--from", "2024-05-06T08:10:00Z", "--to", "2024-05-06T08:25:00Z")
    result = run(
        "leakage", tmp_path / "released.csv", "--model", town / "model.npz", "--policy", town / "radius.json",
        "--event", "x1y1", *window, "--json",
    )  # fmt: skip
    document = one_json(result)
    assert [found["subject"] for found in document["subjects"]] == ["u1", "u2"] and document["left_out"] == 1
    assert "1 subjects are left out" in result.stderr
