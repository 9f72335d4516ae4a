"""Records of options, as they are typed; --bbox: where its limits are, and what is said of a box that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import click
import pytest

from dphmm.cli.options import Box, MessageOptions, argument, command, flag, option, options_of, parse_box
from dphmm.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("-118.6,33.7,-117.9,34.3", (-118.6, 33.7, -117.9, 34.3)),
        (" 1, 2 ,3,4 ", (1, 2, 3, 4)),
        ("-90,-90,90,90", (-90, -90, 90, 90)),
        ("170,-10,-170,10", (170, -10, -170, 10)),
        ("100,-10,-80,10", (100, -10, -80, 10)),
    ],
)
def test_boxes_up_to_half_the_globe_and_across_the_antimeridian(text, box):
    assert parse_box(text) == Box(*box)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1,2,3", "expected four numbers"),
        ("1,2,3,x", "--bbox N"),
        ("1,2,nan,4", "--bbox E"),
        ("0,-90.5,1,4", "-90.5 is no latitude"),
        ("0,4,1,90.5", "90.5 is no latitude"),
        ("0,4,1,4", "with north more than south: 4 is not"),
        (
            "-90,0,90.5,1",
            "which is 180.5 degrees wide; expected W,S,E,N: west, south, east, north, in degrees, at most",
        ),
        ("100,0,-79.5,1", "which is 180.5 degrees wide: W > E means across the antimeridian"),
    ],
)
def test_what_is_wrong_is_named(text, told):
    with pytest.raises(InvalidInput) as refusal:
        parse_box(text)
    assert told in str(refusal.value) and "\n" not in str(refusal.value)


@dataclass(frozen=True, kw_only=True)
class Asked(MessageOptions):
    rows: str = argument("ROWS")
    size: int = option("How many.", "N", required=True)
    kind: Literal["a", "b"] = option("Which.", default="a")
    place: str | None = option("Where.", "FILE", "-p", "--at")
    several: tuple[str, ...] = option("Several.", default=())
    pair: tuple[str, int] | None = option("Two.")
    look: bool = flag("Do not look.", default=True)
    wide: bool | None = flag("Wide.", default=None)


def test_options_are_a_record_of_what_was_typed():
    asked = command("ask", Asked)(lambda options: 0)

    def read(line):
        return options_of(asked, Asked, ["ask", *line.split()])

    assert read("r.csv --size 3") == Asked(rows="r.csv", size=3)
    every = "r.csv --size 3 --kind b -p x --several u --several v --pair y 4 --no-look --wide --json -q"
    given = {"place": "x", "several": ("u", "v"), "pair": ("y", 4), "look": False, "as_json": True, "quiet": True}
    assert read(every) == Asked(rows="r.csv", size=3, kind="b", wide=True, **given)
    for wrong in ("r.csv", "--size 3", "r.csv --size x", "r.csv --size 3 --look"):
        with pytest.raises(click.UsageError):
            read(wrong)
    with pytest.raises(InvalidInput, match=r"^--kind: got c; expected one of a, b$"):
        read("r.csv --size 3 --kind c")
