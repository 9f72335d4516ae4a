"""A small made-up world, and the commands that a data owner may run on it: between them they need every kernel."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

_BBOX = "10.0,50.0,10.056,50.036"
_PAGES = ("alpha", "beta", "gamma", "delta")
#: More subjects than are moved side by side.
_PEOPLE = 10
_STEPS = 8
#: Model, a policy of its own, and how far that reaches: answers in two dimensions, in one, and in three.
_SPACES = {"map": ("walks.csv", "1500m"), "line": ("visits.csv", "1"), "solid": ("visits.csv", "2")}


def write_world(folder: Path) -> None:
    """The files that the commands read."""
    rng = np.random.default_rng(7)
    table(folder / "people.csv", "user,t,lat,lon", walks(rng, 24))
    rows = list(walks(rng, _STEPS))
    # By time, as rows come: those of a user have to be brought together.
    table(folder / "walks.csv", "user,t,lat,lon", sorted(rows, key=lambda row: str(row[1])))
    lines = [json.dumps(dict(zip(("user", "t", "lat", "lon"), row, strict=True))) for row in rows[:_STEPS]]
    (folder / "walks.jsonl").write_text("\n".join(lines) + "\n")
    visits = [(f"u{user}", _PAGES[page]) for user in range(_PEOPLE) for page in rng.integers(0, 4, _STEPS)]
    table(folder / "visits.csv", "user,state", visits)
    table(folder / "pages.csv", "symbol,state", zip(_PAGES, _PAGES, strict=True))
    table(folder / "solid-answers.csv", "state,x,y,z", [("alpha", 0, 0, 0), ("beta", 1, 0, 0), ("gamma", 0, 1, 0),
                                                        ("delta", 0, 0, 1)])  # fmt: skip
    table(folder / "labels.csv", "state,label", [(page, at % 2) for at, page in enumerate(_PAGES)])
    table(folder / "points.csv", "user,x,y,c", [(at // 2, at, at**2 % 9, ("no", "yes")[at % 2]) for at in range(8)])
    table(folder / "edges.csv", "a,b", [(0, 1), (1, 2), (2, 3)])
    table(folder / "graph.csv", "a,b", [("alpha", "beta"), ("gamma", "delta")])
    table(folder / "far.csv", "a,b", [("alpha", "delta")])


def walks(rng: np.random.Generator, steps: int) -> Iterator[tuple[Any, ...]]:
    """Rows user, t, lat, lon of walkers on 4 x 4 cells of 1 km, one every five minutes."""
    for user in range(_PEOPLE):
        cell = rng.integers(0, 4, 2)
        for step in range(steps):
            cell = np.clip(cell + rng.integers(-1, 2, 2), 0, 3)
            clock = f"2024-05-06T{8 + step // 12:02d}:{5 * (step % 12):02d}:00Z"
            yield (
                f"u{user}",
                clock,
                round(50.0 + (cell[1] + 0.5) * 0.0089, 6),
                round(10.0 + (cell[0] + 0.5) * 0.0139, 6),
            )


def table(path: Path, header: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """A CSV file."""
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def commands() -> list[str]:
    """Command lines in an order that works; files are in the world's folder."""
    return [*_models(), *_policies(), *_releases(), *_questions()]


def _models() -> Iterator[str]:
    grid = f"--grid 1km --bbox {_BBOX} --step 5min"
    hidden = "fit visits.csv --states 2 --symbols state"
    private = "--symbols-file pages.csv --epsilon 1 --max-length 8"
    yield f"fit people.csv -o map.npz {grid} --all-cells --smoothing 0.1"
    yield f"fit people.csv -o learned.npz {grid} --epsilon 1 --max-length 24"
    yield f"model grid --bbox {_BBOX} --cell 1km --step 5min --max-speed 20km/h -o jumps.npz"
    yield "fit visits.csv -o line.npz --state-column state"
    yield "fit visits.csv -o solid.npz --state-column state --answers solid-answers.csv"
    yield f"{hidden} -o hidden.npz --starts 2 --iterations 3"
    for method in ("ngrams", "every-iteration"):
        yield f"{hidden} -o {method}.npz {private} --method {method} --iterations 2"


def _policies() -> Iterator[str]:
    for model, (_, radius) in _SPACES.items():
        yield f"policy radius {model}.npz -o {model}-radius.json --radius {radius}"
        yield f"policy complete {model}.npz -o {model}-complete.json"
        yield f"policy transition {model}.npz -o {model}-transition.json"
    yield "policy radius jumps.npz -o jumps-radius.json --radius 1500m"
    yield "policy radius map.npz -o covering.json --covers 1km --merge-lonely"
    yield "policy categorical line.npz -o categorical.json --labels labels.csv"
    yield "policy edges line.npz -o edges.json --graph graph.csv"
    yield "policy edges line.npz -o far.json --graph far.csv"
    yield "policy union line.npz line-radius.json edges.json -o union.json"


def _releases() -> Iterator[str]:
    from dphmm.mechanisms import MECHANISM_CHOICES

    for model, policy, constraint in product(_SPACES, ("radius", "complete", "transition"), ("support", "delta=0.1")):
        name = f"{model}-{policy}-{constraint.partition('=')[0]}"
        yield from _release(name, model, f"{model}-{policy}.json", f"--constraint {constraint}")
    for mechanism in MECHANISM_CHOICES[1:]:
        model = "line" if mechanism.startswith("optimal") else "map"
        yield from _release(mechanism, model, f"{model}-radius.json", f"--mechanism {mechanism}")
    yield from _release("component", "line", "edges.json", "--scope component --flat allow")
    for at, (model, policy) in enumerate((("map", "map-radius"), ("line", "categorical"), ("map", "map-complete"))):
        for constraint in ("support", "delta=0.1"):
            choices = f"--scope component --constraint {constraint}"
            yield from _release(f"component{at}-{constraint[:5]}", model, f"{policy}.json", choices)
    yield from _release("categorical", "line", "categorical.json", "--constraint delta=0.1")
    # The two states between have no edge and are hidden by the body that the edge makes.
    yield from _release("far", "line", "far.json", "")
    yield from _release("union", "line", "union.json", "")
    yield from _release("jump", "jumps", "jumps-radius.json", "--constraint delta=0.1")
    yield "release - --model map.npz --policy map-radius.json --epsilon 1 --ledger stream.db"
    yield "release - --model map.npz --policy map-radius.json --epsilon 1 --ledger sets.db --constraint delta=0.1"


def _release(name: str, model: str, policy: str, choices: str) -> Iterator[str]:
    given = f"--model {model}.npz --policy {policy}"
    planned = f"{given} --epsilon 1 {choices}"
    rows = _SPACES.get(model, _SPACES["map"])[0]
    yield f"release {rows} {planned} -o {name}.parquet --ledger {name}.db --quiet"
    yield f"smooth {name}.parquet {given} -o {name}-smoothed.parquet --marginals"
    yield f"audit {planned} --released {name}.parquet --ledger {name}.db --truth {rows} --draws 200"
    yield f"inspect {model}.npz --policy {policy} --epsilon 1 {choices}"


def _questions() -> Iterator[str]:
    given = "--model map.npz --policy map-radius.json"
    yield "inspect map.npz --policy map-radius.json --epsilon 1 --steps 4 --states"
    yield f"account map-radius-support.db --temporal {given}"
    yield "account line-radius-support.db --temporal --model line.npz --policy line-radius.json"
    yield f"release walks.csv {given} --total-epsilon 4 --steps 8 -o total.parquet --ledger total.db --quiet"
    yield "optimize map.npz --policy map-radius.json --epsilon 1 -o made.npz --quiet"
    yield from _release("made", "map", "map-radius.json", "--mechanism made.npz")
    line = "--model line.npz --policy line-radius.json"
    yield f"leakage line-radius-support.parquet {line} --event alpha --from 2 --to 3 --quiet"
    yield "report map-radius-support.parquet --model map.npz -o report.html"
    yield "tune map.npz --target-error 5km --radius 1500m --epsilon 1 --steps 3 --runs 2 --quiet"
    yield "plan map.npz --policy map-radius.json --path-epsilon 2 --steps 6 --people 3 --quiet"
    histogram = "query histogram visits.csv --epsilon 1 --times 8 --consistent"
    named = "--states line.npz"
    for at, records in enumerate(("markov:line.npz", f"group {named} --max-rows-per-user 8", f"independent {named}")):
        yield f"{histogram} -o counts{at}.csv --dependence {records}"
    points = "points.csv --epsilon 1 --dependence group:2 --box 0:10,0:10"
    yield f"query kmeans {points} --columns x,y --start 1,1;9,9 -o centres.csv"
    yield f"query svm {points} --features x,y --label c --classes no,yes -o weights.csv"
    for level in ("edge", "node"):
        yield f"query degree edges.csv --epsilon 1 --people 5 --level {level} --cap 3 -o {level}.csv"
