"""Options that several commands share, how their texts are read, and the files that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from fractions import Fraction
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints
from zipfile import is_zipfile

import click

from dphmm._checks import exact_epsilon, finite_number
from dphmm.accounting.person import SPELLINGS
from dphmm.accounting.promise import SequencePromise
from dphmm.cli.console import fields_named
from dphmm.cli.help import CONTEXT, Command
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


class OneOf(click.Choice[str]):
    """One of a few words. A wrong one is an error as all others are, of the option or the member of a pipeline."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word. Raises InvalidInput for any other."""
        if value in self.choices:
            return str(value)
        raise InvalidInput("" if param is None else param.opts[0], value, f"one of {', '.join(self.choices)}")


def option(
    help: str,
    metavar: str | None = None,
    *flags: str,
    default: Any = None,
    required: bool = False,
    type: click.ParamType[Any] | None = None,
) -> Any:
    """A field of an options record, as it is typed: its ``flags`` are by default --NAME.

    The annotation of the field makes a number, a choice (Literal), or several values (tuple) of it.
    """
    typed = {"help": help, "metavar": metavar, "flags": flags, "type": type}
    return field(metadata=typed) if required else field(default=default, metadata=typed)


def flag(help: str, *flags: str, default: bool | None = False) -> Any:
    """A field of an options record that is on or off; one that is on by default is typed as --no-NAME."""
    return option(help, None, *flags, default=default)


def argument(metavar: str, required: bool = True) -> Any:
    """A field of an options record that is an argument."""
    return option("", metavar, "", required=required)


def output(metavar: str) -> Callable[[F], F]:
    """-o FILE."""
    return click.option("-o", "--output", required=True, metavar=metavar, help="The file to write.")


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Options as one decorator, in the order in which help shows them."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


#: Of a public table of names.
NAMES_ANSWERED = (
    "The answers of names: the names themselves, 0, 1, ... in order, or a table of numbers.  "
    "[default: labels; ordinal where all names are numbers]"
)
#: Of a command that writes a file.
FORCE = "Replace an output that exists."
force = click.option("--force", is_flag=True, help=FORCE)


def new_output(path: PathLike, inputs: Iterable[PathLike], replace: bool) -> None:
    """Refuse an output that cannot be written, that is an input, or that exists (unless ``replace``)."""
    if checked_output(path, inputs, "-o").exists() and not replace:
        raise InvalidInput("-o", f"{path}, which exists", "another name, or --force to replace it")


@dataclass(frozen=True, kw_only=True)
class MessageOptions:
    """Options of every command about what it prints."""

    as_json: bool = flag("Print one JSON object on standard output.", "--json")
    quiet: bool = flag("No progress and no summary; warnings stay.", "-q", "--quiet")


R = TypeVar("R", bound=MessageOptions)


def command(
    name: str, record: type[R], hidden: Sequence[str] = ()
) -> Callable[[Callable[[R], int | None]], click.Command]:
    """A command whose options are the fields of a record: it runs a function of that record, whose docstring helps.

    ``hidden``: the options that another command's help has.
    """
    params = sorted(params_of(record, hidden), key=lambda param: not param.required)

    def made(run: Callable[[R], int | None]) -> click.Command:
        def call(**values: Any) -> int | None:
            return run(record(**values))

        text = cleandoc(run.__doc__ or "")
        return Command(name, params=params, callback=call, help=text, context_settings=CONTEXT)

    return made


def params_of(record: type[MessageOptions], hidden: Sequence[str] = ()) -> list[click.Parameter]:
    """The options of a record, in the order of its fields."""
    hints = get_type_hints(record)
    return [_param(each, hints[each.name], each.name in hidden) for each in fields(record) if each.metadata]


def options_of(typed: click.Command, record: type[R], words: Sequence[str]) -> R:
    """The options record of the words of a command, its name first. Raises as the command line does."""
    return record(**typed.make_context(words[0], list(words[1:])).params)


def _param(each: Field[Any], kind: Any, hidden: bool) -> click.Parameter:
    required = each.default is MISSING
    default, flags = None if required else each.default, each.metadata["flags"]
    if flags == ("",):
        return click.Argument([each.name], metavar=each.metadata["metavar"], required=required)
    if NoneType in get_args(kind):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    typed, parts = "--" + each.name.replace("_", "-"), get_args(kind)
    more: dict[str, Any] = {"type": each.metadata["type"] or kind, "metavar": each.metadata["metavar"]}
    if kind is bool:
        more = {"is_flag": True} | ({"flag_value": False} if default else {})
        typed = f"--no-{each.name}" if default else typed
    elif get_origin(kind) is Literal:
        more["type"] = OneOf(parts)
    elif get_origin(kind) is tuple:
        more |= {"type": parts[0], "multiple": True} if ... in parts else {"type": parts, "nargs": len(parts)}
    # A required option that has a default, even None, is never missed.
    shown = kind is not bool and default not in (None, ())
    more |= {"required": True} if required else {"default": default, "show_default": shown}
    return click.Option([*(flags or (typed,)), each.name], help=each.metadata["help"], hidden=hidden, **more)


@dataclass(frozen=True, kw_only=True)
class PromiseOptions(MessageOptions):
    """Options of a promise over paths."""

    path_epsilon: str | None = option(
        "What two neighbouring paths of a subject may lose over --steps T, any --window W of steps, or --per 1d: "
        "the sum of its epsilons, over all queries, for ever.",
        "E",
    )
    steps: int | None = option("With --path-epsilon: the largest number of steps of a subject.", "T")
    window: int | None = option("With --path-epsilon: any W steps in a row.", "W")
    per: str | None = option("With --path-epsilon: each block of 1d, 12h or 30min, or of so many steps.", "TIME")
    zone: str | None = option(
        "With --per: the clock at whose midnight blocks begin, an offset from UTC; or, per days, a zone whose "
        "clocks are put forward and back, as Europe/Berlin  [default: +00:00]",
        "ZONE",
    )

    @property
    def promise(self) -> SequencePromise | None:
        """The promise over paths that the options name, None for none. InvalidInput names the option."""
        if self.path_epsilon is None:
            return None
        named: dict[str, Any] = {"steps": self.steps, "window": self.window, "per": self.per}
        lengths = {name: value for name, value in named.items() if value is not None}
        if len(lengths) != 1:
            both = " and ".join(f"--{name}" for name in lengths) or "nothing"
            raise InvalidInput("--path-epsilon", f"{both} with it", "exactly one of --steps T, --window W and --per 1d")
        if self.zone is not None and "per" not in lengths:
            raise InvalidInput("--zone", self.zone, "--per with it, a time")
        if "per" in lengths and lengths["per"].isdecimal():
            lengths["per"] = int(lengths["per"])
        zone: dict[str, Any] = {} if self.zone is None else {"zone": self.zone}
        return SequencePromise(exact_epsilon(self.path_epsilon, "--path-epsilon"), **lengths, **zone)


@dataclass(frozen=True, kw_only=True)
class PlanOptions(PromiseOptions):
    """The options of dphmm plan."""

    model: str = argument("MODEL")
    policy: str | None = option("The policy, as dphmm policy writes it.", "P")
    schedule: Literal["planned", "staggered", "paced"] = option(
        "At fixed public steps, for the least smoothed error; as many, moved by a public offset of each person and "
        "day; or at steps chosen from what was published before, for the least error as answers come.",
        default="planned",
    )
    hours: str | None = option("Ask only at steps that begin in these hours of the clock, as 7-21.", "A-B")
    epsilon: str | None = option("The epsilon of each release  [default: the best of a few]", "E")
    reserve: str = option("Leave this share of each total for later questions: 0.25.", "SHARE", default="0")
    people: int = option("Invented people to try schedules on.", default=100)
    target_error: str | None = option("Search settings: a reader errs by this at most (95 %).", "LENGTH")
    target_doubt: int | None = option("Search settings: one answer leaves at least 1 in N doubt.", "N")
    target_stay: str | None = option("Search settings: a stay of seven days is found no nearer than this.", "LENGTH")
    details: bool = flag(
        "Also what model and policy are, what was tried, and what would help; alone with --steps T, what T "
        "releases lose together at the edges of P."
    )
    states: bool = flag("Of --details also every state: number, name, answer, place.")
    by: tuple[str, int] | None = option(
        "Of --details: how far off shares of N people will be, in blocks or a table (state, region).", "REGIONS N"
    )
    output: str | None = option("Write the plan, for release --plan.", "plan.json", "-o", "--output")
    plot: str | None = option("Draw the errors of all schedules that were tried (.svg).", "FILE")
    force: bool = flag(FORCE)


messages = together(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output."),
    click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; warnings stay."),
)
#: By which rule names are of one person.
SPELLING = "Spellings of a name are the same person, or exact names are several.  [default: the ledger's, else same]"
spelling = click.option("--spelling", type=OneOf(SPELLINGS), help=SPELLING)


def opened(folder: str, option: str = "OUT") -> Released:
    """The release in a folder that an option names. Raises InvalidInput for anything else."""
    from dphmm.setup.released import open as open_folder

    with fields_named({"released": option}):
        return open_folder(folder)


def spelling_of(spelling: str | None, ledger: str | None = None) -> str:
    """The rule that was given, else that of the ledger that is named, else "same"."""
    stored = None if spelling is not None or ledger is None else stored_spelling(ledger)
    return spelling or stored or "same"


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
        got = f"{text}, which is {width:g} degrees wide: W > E means across the antimeridian"
        raise InvalidInput("--bbox", got, f"{_ORDER}, with W less than E for other boxes")
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
