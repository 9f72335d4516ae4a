"""--bbox: where its limits are, and what is said of a box that is wrong."""

from __future__ import annotations

import pytest

from dphmm.cli.options import Box, parse_box
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
