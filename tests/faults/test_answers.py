"""The judges of the fault tables can fail: each is shown an outcome that is wrong in one way."""

from __future__ import annotations

import pytest

from dphmm.errors import InvalidInput, Unprotectable
from faults.answers import Accepted, Same, SetAside, judge_call, judge_command, refused
from faults.catalogue import command, library
from faults.place import RELEASE, STATE

MISSING = "import csv none.csv -o t.csv"


def raising(error):
    def call(place):
        raise error

    return call


WRONG_CALLS = {
    "accepted": library(lambda place: 1, refused("x")),
    "another field": library(raising(InvalidInput("y", 1, "2")), refused("x")),
    "another error": library(raising(Unprotectable("x")), refused("x")),
    "a word missing": library(raising(InvalidInput("x", 1, "2")), refused("x", "3")),
    "two lines": library(raising(Unprotectable("x\ny")), refused("x", error=Unprotectable)),
    "a secret told": library(raising(InvalidInput("x", STATE, "2")), refused("x")),
    "a file left": library(
        lambda place: (place / "new").touch() or raising(InvalidInput("x", 1, "2"))(place), refused("x")
    ),
    "a wrong value": library(lambda place: 1, Accepted(lambda value: value == 2)),
    "not the same": library(lambda place: [1, 2], Same()),
    "too few to compare": library(lambda place: [1], Same()),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_is_caught(name, place):
    with pytest.raises(AssertionError):
        judge_call(WRONG_CALLS[name], place)


def test_other_errors_are_not_taken_for_refusals(place):
    with pytest.raises(ZeroDivisionError):
        judge_call(library(lambda place: 1 / 0, refused("x")), place)


WRONG_COMMANDS = {
    "done": command("plan --details model.npz", refused("model")),
    "another exit code": command(MISSING, refused("none.csv", error=Unprotectable)),
    "a word missing": command(MISSING, refused("none.csv", "antimeridian")),
    "another field": command(MISSING, refused("--epsilon")),
    "refused": command(MISSING, Accepted(lambda result, place: True)),
    "a wrong outcome": command("plan --details model.npz", Accepted(lambda result, place: False)),
    "nothing set aside": command("import csv walks.csv -o t.csv", SetAside({1: "invalid_time"})),
}


@pytest.mark.parametrize("name", WRONG_COMMANDS)
def test_a_wrong_command_is_caught(name, place):
    with pytest.raises(AssertionError):
        judge_command(WRONG_COMMANDS[name], place)


def test_a_secret_in_an_output_is_caught(place):
    place.append("visits.csv", f"v9,{STATE}")
    with pytest.raises(AssertionError, match=STATE):
        judge_command(command("import csv visits.csv -o t.csv", Accepted(lambda result, place: True)), place)


def test_something_written_beside_a_refusal_is_caught(place, monkeypatch):
    monkeypatch.setattr("dphmm.cli.options.Path", lambda path: (place / "left").touch() or place / path)
    with pytest.raises(AssertionError):
        judge_command(command(RELEASE.replace("radius.json", "pages.json"), refused("policy")), place)
