"""--bbox W,S,E,N: four numbers in degrees, and what is most often wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.states.grid import Grid
    from dphmm.states.trajectory import Trajectories

_ORDER = "W,S,E,N: west, south, east, north, in degrees"
#: Wider boxes are more likely a mistake than half the globe.
_WIDEST = 180


class Box(NamedTuple):
    """Degrees. ``west`` above ``east`` is a box across the antimeridian."""

    west: float
    south: float
    east: float
    north: float


def parse_box(text: str) -> Box:
    """The box of an option; InvalidInput says which number is wrong, and what the order is."""
    from dphmm._checks import finite_number

    parts = text.split(",")
    if len(parts) != 4:
        raise InvalidInput("--bbox", text, f"four numbers {_ORDER}")
    box = Box(*(finite_number(part.strip(), f"--bbox {side}") for side, part in zip("WSEN", parts, strict=True)))
    for latitude in (box.south, box.north):
        if abs(latitude) > 90:
            raise InvalidInput("--bbox", text, f"{_ORDER}; {latitude:g} is no latitude, are lat and lon swapped?")
    if box.south >= box.north:
        raise InvalidInput("--bbox", text, f"{_ORDER}, with north more than south: {box.north:g} is not")
    width = box.east - box.west + (360 if box.west > box.east else 0)
    if box.west > box.east and width > _WIDEST:
        came = f"{text}, which is {width:g} degrees wide: W > E means across the antimeridian"
        raise InvalidInput("--bbox", came, f"{_ORDER}, with W less than E for other boxes")
    if width > _WIDEST:
        raise InvalidInput("--bbox", f"{text}, which is {width:g} degrees wide", f"{_ORDER}, at most {_WIDEST} wide")
    return box


def check_inside(grid: Grid, trajectories: Trajectories, text: str) -> None:
    """Refuse a box in which no row lies: then it is most often the box that is wrong."""
    if trajectories.lat is None or trajectories.lon is None:
        return
    if not (grid.locate(trajectories.lat, trajectories.lon) >= 0).any():
        raise InvalidInput("--bbox", f"{text}, with none of the {len(trajectories)} rows inside", _ORDER)
