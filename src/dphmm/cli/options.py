"""Options that several commands share, how their texts are read, and the files that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zipfile import is_zipfile

import click

from dphmm._checks import finite_number
from dphmm.accounting.person import SPELLINGS
from dphmm.cli.console import fields_named
from dphmm.errors import InvalidInput
from dphmm.states.maps import parse_duration, parse_length, parse_speed
from dphmm.storage.geo_files import read_zones
from dphmm.storage.inputs import checked_output
from dphmm.storage.ledger import stored_spelling

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.setup.released import Released
    from dphmm.states.grid import Grid
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Trajectories
    from dphmm.storage.inputs import PathLike


F = TypeVar("F", bound=Callable[..., Any])

#: What the context of a command holds that runs within dphmm run: it names no next command.
ONE_OF_MANY = "one of many"


def output(metavar: str, required: bool = True) -> Callable[[F], F]:
    """-o FILE."""
    return click.option("-o", "--output", required=required, metavar=metavar, help="The file to write.")


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Options as one decorator, in the order in which help shows them."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


force = click.option("--force", is_flag=True, help="Replace an output that exists.")


def new_output(path: PathLike, inputs: Iterable[PathLike], replace: bool) -> None:
    """Refuse an output that cannot be written, that is an input, or that exists (unless ``replace``)."""
    if checked_output(path, inputs, "-o").exists() and not replace:
        raise InvalidInput("-o", f"{path}, which exists", "another name, or --force to replace it")


messages = together(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output."),
    click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; warnings stay."),
)
#: By which rule names are of one person.
spelling = click.option(
    "--spelling",
    type=click.Choice(SPELLINGS),
    help="Spellings of a name are the same person, or exact names are several.  [default: the ledger's, else same]",
)


def opened(folder: str, option: str = "OUT") -> Released:
    """The release in a folder that an option names. Raises InvalidInput for anything else."""
    from dphmm.setup.released import open as open_folder

    with fields_named({"released": option}):
        return open_folder(folder)


def spelling_of(given: Mapping[str, Any]) -> str:
    """The rule that was given, else that of the ledger that is named, else "same"."""
    path = given.get("ledger")
    kept = None if given["spelling"] is not None or path is None else stored_spelling(path)
    return str(given["spelling"] or kept or "same")


def loaded_setting(path: str | None, space: StateSpace) -> dict[str, str]:
    """The settings of plans in a policy's file, as `dphmm.storage.load_setting`; empty without one."""
    from dphmm.storage.policies import load_setting

    with fields_named({"table": "--setting mechanism"}):
        return {} if path is None else load_setting(path, space.has_labels)


def loaded_model(path: str) -> tuple[MarkovModel, StateSpace]:
    """A model file and the space that its states are of."""
    from dphmm.storage.models import load_model

    model = load_model(path)
    if model.space is None:
        raise InvalidInput("model", f"{path}, without a state space", "a model written by dphmm fit")
    return model, model.space


def loaded_policy(path: str, model: MarkovModel) -> tuple[PolicyGraph, StateSpace]:
    """A policy file for a model and the space that it is about, in which lonely states may be merged.

    InvalidInput for a policy that was made for another model, and for an archive, such as a model.
    """
    from dphmm.storage.policies import load_policy, load_policy_space

    assert model.space is not None
    if is_zipfile(path):
        raise InvalidInput("--policy", f"{path}, an archive such as a model", "a policy, as dphmm policy writes it")
    try:
        space = load_policy_space(path, model.space)
        return load_policy(path, space, model), space
    except InvalidInput as error:
        if error.field not in ("space", "model", "merges"):
            raise
        what = "another model" if error.field == "model" else "another model's states"
        hashed = (model if error.field == "model" else model.space).digest[:12]
        expected = f"one that dphmm policy made for this model (hash {hashed})"
        raise InvalidInput("policy", f"{Path(path).name}, made for {what}", expected) from None


#: Of a file of polygons.
zone_options = together(
    click.option("--zone-id", metavar="COL", help="The column with the names of the zones."),
    click.option("--zone-crs", metavar="CRS", help="Coordinates of a file that does not say them: EPSG:25833."),
    click.option(
        "--mend-zones", is_flag=True, default=None, help="Mend outlines that cross themselves (shapely.make_valid)."
    ),
)


def zones_of(path: str, given: Mapping[str, Any], option: str) -> StateSpace:
    """The zones of a file, by `zone_options`."""
    if given["zone_id"] is None:
        raise InvalidInput("--zone-id", "nothing", "the column of FILE with the names of the zones")
    with fields_named({"zones": option, "zone_id": "--zone-id", "crs": "--zone-crs"}):
        return read_zones(path, given["zone_id"], crs=given["zone_crs"], mend=bool(given["mend_zones"]))


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


_BARE = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?")


def length(text: str, option: str) -> Fraction:
    """Metres; InvalidInput for a number without m or km."""
    _check_unit(text, option, "m or km", "340m or 1km")
    return parse_length(text, option)


def duration(text: str, option: str) -> int:
    """Seconds; InvalidInput for a number without s, min, h or d."""
    _check_unit(text, option, "s, min, h or d", "30s or 5min")
    return parse_duration(text, option)


def speed(text: str, option: str) -> Fraction:
    """Metres per second; InvalidInput for a number without m/s or km/h."""
    _check_unit(text, option, "m/s or km/h", "40m/s or 150km/h")
    return parse_speed(text, option)


def _check_unit(text: str, option: str, units: str, examples: str) -> None:
    if _BARE.fullmatch(text.strip()):
        raise InvalidInput(option, text, f"a unit after the number, {units}: {examples}")
