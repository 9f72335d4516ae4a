"""Numbers for people are decimals, and what is lost is never told as less than it is; --json has it exactly.

Fails where a line has a fraction such as 2475880078570761/1125899906842624, or the exact value is lost for machines.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest

from commands import set_in

_FRACTION = re.compile(r"(?<![\w/.])\d+/\d+(?![\w/])")


@pytest.fixture(scope="module")
def released(town, tmp_path_factory, run):
    """A release at an epsilon and at costs that are no short decimals."""
    out = tmp_path_factory.mktemp("numbers")
    told = run("release", town / "walks.csv", *_public(town), "-o", out / "released", "--ledger", out / "ledger.db")
    return out, told.stdout + told.stderr


def _public(town, epsilon="0.3"):
    return ("--model", town / "model.npz", "--policy", town / "radius.json", "--epsilon", epsilon)


def lines_of(command, town, released, run):
    out, told = released
    if command == "release":
        return told
    words = {
        "dry run": ("release", town / "walks.csv", *_public(town), "--dry-run"),
        "attacks": ("report", out / "released", "--truth", town / "walks.csv", "--force"),
        "verify": ("verify", *_public(town)),
        "table": set_in(("verify", *_public(town)), mechanism="optimal-table"),
        "inspect": ("plan", "--details", town / "model.npz", *_public(town)[2:], "--steps", "3"),
        "account": ("account", out / "ledger.db"),
    }
    result = run(*words[command])
    return result.stdout + result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["release", "dry run", "attacks", "verify", "table", "inspect", "account"])
def test_lines_for_people_have_no_fractions(command, town, released, run):
    told = lines_of(command, town, released, run)
    # Of twelve answers of 0.3 a release says the sum.
    said = {"account": "3.6", "release": "3.6", "attacks": "degree of protection of the truth 6."}
    assert said.get(command, "0.3") in told
    assert [found[0] for found in _FRACTION.finditer(told)] == []


def test_a_learned_model_is_told_in_decimals(town, tmp_path, run):
    """Three noisy vectors of one third of 0.1 each; of noise less is told, of a loss more."""
    box = ("--grid", "1km", "--bbox", "10.0,50.0,10.056,50.036", "--step", "5min")
    private = ("--epsilon", "0.7", "--max-length", "13", "--max-sequences", "3", "--initial", "first")
    told = run("fit", town / "people.csv", "-o", tmp_path / "m.npz", *box, *private).stderr
    told += run("account", "--model", tmp_path / "m.npz").stdout
    assert "scale" in told
    assert [found[0] for found in _FRACTION.finditer(told)] == []


def test_machines_get_the_exact_value(town, run):
    command = set_in(("verify", *_public(town)), mechanism="optimal-table")
    document = json.loads(run(*command, "--json").stdout)["step 1"]
    cost = Fraction(document["cost"])
    assert document["epsilon"] == "3/10" and cost.denominator > 10**6
    said = Fraction(re.search("cost ([0-9.]+),", run(*command).stdout)[1])
    assert cost <= said < cost * (1 + Fraction(1, 10**5))
