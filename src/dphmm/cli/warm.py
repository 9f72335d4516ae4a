"""dphmm warm: compile ahead what commands need, here or for another machine of the same kind.

Every command runs on a small made-up world: between them they need every kernel.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import click
import numpy as np
from click.testing import CliRunner

from dphmm._kernels import process, smoothing
from dphmm.cli.app import COMMANDS
from dphmm.cli.console import FAILED, SECONDS_BETWEEN_LINES, Console, print_json
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import messages
from dphmm.errors import InvalidInput


@click.command(cls=Command, context_settings=CONTEXT)
@click.option("--to", metavar="DIR", help="The folder to fill  [default: $DPHMM_KERNELS, else the user's cache]")
@messages
def warm(to: str | None, quiet: bool, as_json: bool) -> int | None:
    """Compile the kernels that commands need, so that no command has to wait for them.

    Runs every command on a small made-up world. What is compiled serves every installation with the same kernels,
    Python, Numba and processor, wherever it is installed: name the folder there in DPHMM_KERNELS; it may be read-only.
    """
    from dphmm._kernels.compiled import KERNELS, VARIABLE, compiles, folder, writable

    console = Console(quiet=quiet or as_json)
    if not compiles():
        raise InvalidInput("NUMBA_DISABLE_JIT", "1, with which nothing is compiled", "none")
    with _kept_in(VARIABLE, to):
        if not writable(folder()):
            raise InvalidInput("--to" if to else VARIABLE, str(folder()), "a folder that can be written")
        # What else is said of the compiler is this command's own work.
        process.tell = None
        refused: list[str] = []
        process.warn = refused.append
        began, printed = monotonic(), monotonic()
        done = compiled = cached = 0
        for done, total in _run_everything():
            compiled = sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS)
            cached = sum(sum(kernel.stats.cache_hits.values()) for kernel in KERNELS)
            if monotonic() - printed >= SECONDS_BETWEEN_LINES:
                printed = monotonic()
                console.say([("", f"warm: {done} of {total} commands, {compiled} kernels compiled")])
        seconds, where = monotonic() - began, folder()
    if refused:
        console.warn(refused[0])
        return FAILED
    if as_json:
        print_json({"folder": str(where), "compiled": compiled, "found": cached, "seconds": round(seconds, 1)})
        return None
    console.say([("compiled", f"{compiled} kernels, in {seconds:.0f} s"), ("there before", f"{cached}")])
    click.echo(where)
    return None


@contextmanager
def _kept_in(variable: str, given: str | None) -> Iterator[None]:
    before = os.environ.get(variable)
    if given is not None:
        os.environ[variable] = str(Path(given).absolute())
    try:
        yield
    finally:
        if given is not None:
            os.environ.pop(variable)
            os.environ.update({} if before is None else {variable: before})


def _run_everything() -> Iterator[tuple[int, int]]:
    """Run all commands of the small world; tell after each how many are done."""
    # Only the plan of a large world moves beliefs in blocks.
    nothing = smoothing.Fours(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.uint64), np.zeros((0, 4)))
    smoothing.times_fours(nothing, np.zeros((1, 16)), np.zeros((1, 16)))
    lines = commands()
    with TemporaryDirectory(prefix="dphmm-warm-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        write_world(folder)
        for at, line in enumerate(lines, 1):
            _run(line, folder)
            yield at, len(lines)


def _run(line: str, folder: Path) -> None:
    name, *words = shlex.split(line)
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: Any = getattr(import_module(module), attribute)
    stdin = (folder / "walks.jsonl").read_text() if words[0] == "-" else None
    result = CliRunner().invoke(command, [_placed(word, folder) for word in words], stdin, standalone_mode=False)
    if result.exception is not None:
        raise result.exception


def _placed(word: str, folder: Path) -> str:
    """A word of a command line, where it names a file or a release in the folder of the world."""
    before, colon, name = word.rpartition(":")
    return f"{before}{colon}{folder / name}" if Path(name).suffix in _FILES else word


_FILES = frozenset((".csv", ".npz", ".json", ".jsonl", ".parquet", ".db", ".html", ".out"))


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
    table(folder / "line-answers.csv", "state,x", ((page, at) for at, page in enumerate(_PAGES)))
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
    for model in ("line", "solid"):
        yield f"fit visits.csv -o {model}.npz --state-column state --answers {model}-answers.csv"
    yield f"{hidden} -o hidden.npz --starts 2 --iterations 3"
    for method in ("ngrams", "every-iteration"):
        yield f"{hidden} -o {method}.npz {private} --method {method} --iterations 2"


def _policies() -> Iterator[str]:
    for model, (_, radius) in _SPACES.items():
        yield f"policy radius {model}.npz -o {model}-radius.json --radius {radius}"
    yield "policy radius map.npz -o covering.json --covers 1km --merge-lonely"
    yield "policy edges line.npz -o edges.json --graph graph.csv"


def _releases() -> Iterator[str]:
    from dphmm.mechanisms import MECHANISM_CHOICES

    for model, policy, constraint in product(_SPACES, ("radius", "complete", "transition"), ("support", "delta=0.1")):
        name = f"{model}-{policy}-{constraint.partition('=')[0]}"
        radius = f" --radius {_SPACES[model][1]}" if policy == "radius" else ""
        yield from _release(name, model, f"{policy} {model}.npz{radius}", f"--setting constraint {constraint}")
    for mechanism in MECHANISM_CHOICES[1:]:
        model = "line" if mechanism == "optimal-table" else "map"
        radius = f"radius {model}.npz --radius {_SPACES[model][1]}"
        yield from _release(mechanism, model, radius, f"--setting mechanism {mechanism}")
    delta = "--setting constraint delta=0.1"
    yield from _release("categorical", "line", "categorical line.npz --labels labels.csv", delta)
    # The two states between have no edge and are hidden by the body that the edge makes.
    yield from _release("far", "line", "edges line.npz --graph far.csv")
    yield from _release("union", "line", "union line.npz line-radius.json edges.json")
    yield from _release("jump", "jumps", "radius jumps.npz --radius 1500m", delta)
    yield "release - --model map.npz --policy map-radius.json --epsilon 1 --ledger stream.db --yes"
    yield "policy radius map.npz -o sets.json --radius 1500m --setting constraint delta=0.1"
    yield "release - --model map.npz --policy sets.json --epsilon 1 --ledger sets.db --yes"


def _release(name: str, model: str, policy: str, setting: str = "") -> Iterator[str]:
    yield f"policy {policy} {setting} -o {name}-policy.json"
    planned = f"--model {model}.npz --policy {name}-policy.json --epsilon 1"
    rows = _SPACES.get(model, _SPACES["map"])[0]
    yield f"release {rows} {planned} -o {name}.out --format parquet --ledger {name}.db --quiet --yes"
    yield f"read {name}.out --estimates -o {name}-smoothed.parquet --marginals"
    yield f"verify {planned} --draws 200"
    yield f"report {name}.out --truth {rows} --quiet"
    yield f"plan {model}.npz --details --policy {name}-policy.json --epsilon 1"


def _questions() -> Iterator[str]:
    of_map = "--model map.npz --policy map-radius.json"
    for model in _SPACES:
        yield f"check-release {model}-radius-support.out"
    yield "plan map.npz --details --policy map-radius.json --epsilon 1 --steps 4 --states"
    yield f"account map-radius-support.db --temporal {of_map}"
    yield "account line-radius-support.db --temporal --model line.npz --policy line-radius.json"
    yield "optimize map.npz --policy map-radius.json --epsilon 1 -o made.npz --quiet"
    yield from _release("made", "map", "radius map.npz --radius 1500m", "--setting mechanism made.npz")
    yield "read line-radius-support.out --event alpha --from 2 --to 3 --quiet"
    yield "report map-radius-support.out -o report.html"
    yield "read map-radius-support.out --by blocks -o where.csv --flows between.csv --quiet"
    yield "read map-radius-support.out --estimates -o own.parquet --own-places --quiet"
    yield "synthesize map.npz --people 3 --steps 4 -o synthetic.parquet --quiet"
    yield "plan map.npz --target-error 50km --path-epsilon 2 --steps 3 --epsilon 1 --people 2 --quiet"
    yield "plan map.npz --policy map-radius.json --path-epsilon 2 --steps 6 --people 3 --quiet"
    histogram = "query histogram visits.csv --epsilon 1 --times 8 --consistent"
    named = "--states line.npz"
    for at, records in enumerate(("markov:line.npz", f"group {named} --max-rows-per-user 8", f"independent {named}")):
        yield f"{histogram} -o counts{at}.csv --dependence {records}"
    points = "points.csv --epsilon 1 --dependence group:2 --box 0:10,0:10"
    yield f"query kmeans {points} --columns x,y --start 1,1;9,9 -o centres.csv"
    yield f"query svm {points} --columns x,y --label c --classes no,yes -o weights.csv"
    for level in ("edge", "node"):
        yield f"query degree edges.csv --epsilon 1 --people 5 --level {level} --cap 3 -o {level}.csv"
