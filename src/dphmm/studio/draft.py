"""Everything that is chosen in the studio, and the pipeline file (release.toml) that says the same.

A `Draft` has texts as they are typed; the library reads them. `ReleaseFile` puts a draft beside the members of a file
that the studio does not show, which stay as they are. Options that change figures and have no place on the page are
refused: the page would show the figures of another release.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import shapely
from scipy import sparse

from dphmm.accounting.promise import SequencePromise
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.model import MarkovModel, uniform_parts
from dphmm.policy import areas, complete, from_edges, radius, union
from dphmm.policy.graph import PolicyGraph
from dphmm.setup.setup import Setup
from dphmm.states import space_of_names
from dphmm.states.grid import Grid
from dphmm.states.maps import parse_duration
from dphmm.storage.geo_files import states_in
from dphmm.types import IntArray

#: The jump of `dphmm model` where none is named.
_JUMP = "0.001"
#: More labels than these have no page that shows them, and more cells no picture that is drawn in a second.
MOST_LABELS, MOST_CELLS = 200, 10_000
#: Members of each table that the page shows or that change no figure; a file with others is refused.
_SHOWN = {
    "model": ("kind", "bbox", "cell", "step", "max-speed", "stay", "jump", "file"),
    "policy": ("kind", "covers", "areas", "graph"),
    "plan": ("path-epsilon", "per", "steps", "zone", "hours", "epsilon"),
    "release": ("noun", "model-people", "answer", "min-people", "although", "no-check", "query", "yes"),
}
_KEPT = ("data", "split", "release", "estimates", "population", "report")

Text = Annotated[str, msgspec.Meta(max_length=60)]
#: West, south, east, north, in degrees.
Box = tuple[float, float, float, float]


class Area(msgspec.Struct, frozen=True):
    """A drawn area: any two cells whose centre lies in it look alike."""

    name: Text
    box: Box


class Draft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that is chosen.

    kind : squares of a map, or a list of labels.
    box, cell, max_speed, covers, areas : of a map; the box is None before one is drawn.
    labels, pairs : the names, and those that look alike; pairs None: every two.
    step : of time; empty where every row is a step.
    budget, per, steps, zone, hours, epsilon : of `dphmm.Setup.plan`; steps in place of per; empty for the default.
    data : the options to read the table, as `[data]` of a pipeline has them.
    """

    kind: Literal["grid", "labels"] = "grid"
    box: Box | None = None
    cell: Text = "500m"
    max_speed: Text = "60km/h"
    covers: Text = "1km"
    areas: Annotated[tuple[Area, ...], msgspec.Meta(max_length=50)] = ()
    labels: Annotated[tuple[Text, ...], msgspec.Meta(max_length=MOST_LABELS)] = ()
    pairs: Annotated[tuple[tuple[Text, Text], ...], msgspec.Meta(max_length=20_000)] | None = None
    step: Text = "10min"
    budget: Text = "12"
    per: Text = "1d"
    steps: Text = ""
    zone: Text = ""
    hours: Text = ""
    epsilon: Text = ""
    data: dict[Text, str | int | bool | list[str]] = {}

    @property
    def missing(self) -> str:
        """The choice that is still open; empty where there is none."""
        if self.kind == "grid" and self.box is None:
            return "a box: draw one on the map"
        if self.kind == "labels" and len(self.labels) < 2:
            return "two labels or more: type their names"
        return "" if self.steps or self.per else "per, such as 1d, or steps: the budget is of so many rows"

    @property
    def promise(self) -> SequencePromise:
        """The bound on the loss of all answers about a person together. Raises InvalidInput naming the choice."""
        if self.steps:
            return SequencePromise(self.budget, steps=_whole(self.steps, "steps"))
        per = int(self.per) if self.per.isdecimal() else self.per
        return SequencePromise(self.budget, per=per, zone=self.zone or "+00:00")


def _whole(text: str, name: str) -> int:
    if not text.isdecimal():
        raise InvalidInput(name, repr(text), "a whole number")
    return int(text)


def setup_of(draft: Draft, members: Mapping[str, Mapping[str, Any]]) -> Setup:
    """The setting of a draft; ``members``: those of a file beside it (stay and jump of the model, noun).

    Raises InvalidInput naming the choice.
    """
    if draft.missing:
        raise InvalidInput("draft", "not finished", draft.missing)
    noun = str(members.get("release", {}).get("noun", "person"))
    model = members.get("model", {})
    if draft.kind == "labels":
        space = space_of_names(draft.labels)
        n, step = space.n_states, parse_duration(draft.step, "step") if draft.step else None
        alike = sparse.csr_array(np.full((n, n), 1 / n))
        made = MarkovModel(**uniform_parts(space, alike, step, model.get("jump", _JUMP), {"method": "given"})._asdict())
        policy = complete(n) if draft.pairs is None else from_edges(_numbers(draft.pairs, draft.labels), n)
        return Setup(made, policy, space, noun=noun)
    assert draft.box is not None
    grid = Grid.from_bounds(*draft.box, cell=draft.cell)
    if not 2 <= grid.n_states <= MOST_CELLS:
        raise InvalidInput("cell", f"{grid.n_states:,} cells", f"2 to {MOST_CELLS:,}: another cell, or another box")
    moves = {name: model[name] for name in ("stay", "jump") if name in model}
    chosen = {"cell": draft.cell, "step": draft.step, "max_speed": draft.max_speed, "noun": noun, **moves}
    return Setup.grid(draft.box, policy=policy_of(draft, grid), **chosen)


def policy_of(draft: Draft, grid: Grid) -> PolicyGraph:
    """Places up to the covered distance look alike, and those of each area. Raises InvalidInput for an empty one."""
    near = radius(grid, covers=draft.covers)
    return union(areas(list(cells_of(draft.areas, grid)), grid.n_states), near) if draft.areas else near


def cells_of(drawn: Sequence[Area], grid: Grid) -> Iterable[IntArray]:
    """The cells of each area. Raises InvalidInput as `dphmm.storage.geo_files.states_in`."""
    return states_in([(area.name, shapely.box(*area.box)) for area in drawn], grid).values()


def _numbers(pairs: tuple[tuple[str, str], ...], labels: tuple[str, ...]) -> IntArray:
    number = {name: at for at, name in enumerate(labels)}
    unknown = next((name for pair in pairs for name in pair if name not in number), None)
    if unknown is not None:
        raise InvalidInput("pairs", repr(unknown), "labels of the list")
    return np.array([[number[a], number[b]] for a, b in pairs], dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class ReleaseFile:
    """A draft beside the members of a pipeline file that no page shows.

    members : of each table those that are kept. folder, ledger : as the file has them.
    """

    draft: Draft
    members: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: str = "out"
    ledger: str | None = None

    @classmethod
    def read(cls, text: str, name: str, beside: Path) -> ReleaseFile:
        """The file of a text, as ``dphmm run`` reads it; files that it names lie ``beside`` it.

        Questions that ``dphmm init`` left open are open choices; a fit that nothing was answered of becomes a list of
        labels. Raises InvalidInput for no TOML, and for members that the page has no place for.
        """
        try:
            tables = tomllib.loads(text, parse_float=str)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidInput(name, f"no TOML: {error}", "a pipeline as dphmm init writes it") from None
        folder, ledger = str(tables.pop("folder", "out")), tables.pop("ledger", None)
        known = {*_SHOWN, *_KEPT, "fit"}
        wrong = next((table for table in tables if table not in known or not isinstance(tables[table], dict)), None)
        if wrong is not None:
            expected = f"one of {', '.join(sorted(known))}"
            raise InvalidInput(f"[{wrong}]", "a table that the studio does not have", expected)
        if "fit" in tables:
            if not _is_open(tables["fit"]):
                raise InvalidInput("[fit]", "a model that is fitted to people", "dphmm run: the studio has no fits")
            tables.pop("split", None)
        for table, shown in _SHOWN.items():
            other = next((member for member in tables.get(table, {}) if member not in shown), None)
            if other is not None:
                got = "an option that the studio does not show"
                raise InvalidInput(f"[{table}] {other}", got, "dphmm run, which has it; or a file without it")
        members = {table: tables[table] for table in _KEPT if table in tables and table != "data"}
        model = tables.get("model", {})
        members["model"] = {member: str(model[member]) for member in ("stay", "jump") if member in model}
        try:
            draft = cls(_draft(tables, name, beside), members, folder, None if ledger is None else str(ledger))
        except DphmmError:
            raise
        except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
            expected = "a pipeline as dphmm init or the studio writes it, beside the files that it names"
            raise InvalidInput(name, f"{type(error).__name__}: {error}", expected) from None
        for other, written in draft.others(name).items():
            path = beside / other
            if path.exists() and path.read_text(encoding="utf-8") != written:
                raise InvalidInput(other, "another file than the studio writes", f"{name} as the studio saved it")
        return draft

    def text(self, name: str) -> str:
        """The pipeline file; files that it names are `others`."""
        draft, members, stem = self.draft, self.members, Path(name).stem
        tables: dict[str, Mapping[str, Any]] = {"data": draft.data or {"file": "people.csv"}}
        if draft.kind == "grid":
            box = "WEST,SOUTH,EAST,NORTH" if draft.box is None else ",".join(f"{side!r}" for side in draft.box)
            moves = {"step": draft.step, "max-speed": draft.max_speed}
            tables["model"] = {"kind": "grid", "bbox": box, "cell": draft.cell, **moves, **members.get("model", {})}
            drawn = {"kind": "areas", "areas": f"{stem}-areas.geojson"} if draft.areas else {"kind": "radius"}
            tables["policy"] = {**drawn, "covers": draft.covers}
        else:
            step = {"step": draft.step} if draft.step else {}
            tables["model"] = {"kind": "matrix", "file": f"{stem}-labels.csv", **step, **members.get("model", {})}
            of_pairs = {"kind": "edges", "graph": f"{stem}-alike.csv"}
            tables["policy"] = {"kind": "complete"} if draft.pairs is None else of_pairs
        of_block = {"steps": draft.steps} if draft.steps else {"per": draft.per}
        beside = {option: getattr(draft, option) for option in ("zone", "hours", "epsilon") if getattr(draft, option)}
        tables["plan"] = {"path-epsilon": draft.budget, **of_block, **beside}
        tables |= {"release": {}, "report": {}} | {table: members[table] for table in _KEPT if table in members}
        lines = [f"folder = {_toml(self.folder)}", *([] if self.ledger is None else [f"ledger = {_toml(self.ledger)}"])]
        for table, of_table in tables.items():
            lines += ["", f"[{table}]", *(f"{member} = {_toml(value)}" for member, value in of_table.items())]
        return "\n".join(lines) + "\n"

    def files(self, name: str) -> dict[str, str]:
        """The texts of the files that it names and of itself, by name."""
        return self.others(name) | {name: self.text(name)}

    def others(self, name: str) -> dict[str, str]:
        """The files that the pipeline file names, by name: labels, the pairs of them that look alike, drawn areas."""
        draft, stem, files = self.draft, Path(name).stem, dict[str, str]()
        if draft.missing:
            return files
        if draft.kind == "labels":
            rows = [list(draft.labels), *(["1"] * len(draft.labels) for _ in draft.labels)]
            files[f"{stem}-labels.csv"] = _csv(rows)
            if draft.pairs is not None:
                files[f"{stem}-alike.csv"] = _csv([["from", "to"], *map(list, draft.pairs)])
        elif draft.areas:
            shapes = [(area, shapely.geometry.mapping(shapely.box(*area.box))) for area in draft.areas]
            features = [
                {"type": "Feature", "bbox": area.box, "properties": {"name": area.name}, "geometry": shape}
                for area, shape in shapes
            ]
            text = json.dumps({"type": "FeatureCollection", "features": features}, indent=1)
            files[f"{stem}-areas.geojson"] = text + "\n"
        return files


def _draft(tables: Mapping[str, Mapping[str, Any]], name: str, beside: Path) -> Draft:
    """The draft of the tables of a pipeline."""
    model, policy, plan = (tables.get(table, {}) for table in ("model", "policy", "plan"))
    chosen: dict[str, Any] = {"data": dict(tables.get("data", {})), "budget": str(plan.get("path-epsilon", "12"))}
    chosen |= {key: _answered(plan[key]) for key in ("per", "steps", "zone", "hours", "epsilon") if key in plan}
    chosen |= {"per": ""} if "steps" in plan else {}
    kind, how = model.get("kind", "grid"), policy.get("kind", "radius")
    if "fit" in tables or kind == "matrix":
        chosen |= {"kind": "labels", "step": _answered(model.get("step", tables.get("fit", {}).get("step", "")))}
        if "file" in model:
            with (beside / model["file"]).open(encoding="utf-8", newline="") as file:
                chosen["labels"] = tuple(next(csv.reader(file), ()))
        if how == "edges":
            with (beside / policy["graph"]).open(encoding="utf-8", newline="") as file:
                chosen["pairs"] = tuple(map(tuple, list(csv.reader(file))[1:]))
        elif how not in ("complete", "radius"):
            raise InvalidInput("[policy] kind", how, "complete, or edges that the studio wrote")
    elif kind == "grid":
        members = (("cell", "cell"), ("step", "step"), ("max-speed", "max_speed"))
        chosen |= {field: str(model[member]) for member, field in members if member in model}
        box = _answered(model.get("bbox", ""))
        chosen["box"] = tuple(map(float, box.split(","))) if box else None
        if policy and (how not in ("areas", "radius") or "covers" not in policy):
            raise InvalidInput("[policy] kind", how, "radius with covers, or areas with covers that the studio wrote")
        chosen |= {"covers": str(policy["covers"])} if policy else {}
        if how == "areas":
            collection = json.loads((beside / policy["areas"]).read_text(encoding="utf-8"))
            chosen["areas"] = [{"name": of["properties"]["name"], "box": of["bbox"]} for of in collection["features"]]
    else:
        raise InvalidInput("[model] kind", kind, "grid, or a matrix of labels that the studio wrote")
    return msgspec.convert(chosen, Draft)


def _is_open(fit: Mapping[str, Any]) -> bool:
    """True if the fit is the one of ``dphmm init``, with its questions as they were."""
    return fit.get("step", "STEP") == "STEP" and fit.get("states-file") == "states.csv"


def _answered(value: Any) -> str:
    """A value of the file; nothing where it is a question that ``dphmm init`` left open."""
    return "" if value in ("STEP", "STEPS", "WEST,SOUTH,EAST,NORTH") else str(value)


def _csv(rows: list[list[str]]) -> str:
    text = StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _toml(value: Any) -> str:
    """A value as TOML has it: a number that is typed as one is written as one."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str) and value.isascii() and value.isdecimal() and (value == "0" or value[0] != "0"):
        return value
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
