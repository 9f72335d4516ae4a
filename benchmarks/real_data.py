"""Real trajectories, web sessions and careers through the commands: errors, drift and cost, as a Markdown table.

    python benchmarks/real_data.py --data FOLDER --out DIR [--only NAME,...] [--users N]

Every step is a `dphmm` command; what a data owner does outside of it (splitting people into halves, and joining the
truth to the released file for measuring) is done here. Interrupted, the same command goes on: a finished cell of the
table lies in DIR as JSON and is not run again. Progress is on standard error, the table on standard output.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

EARTH_METRES = 6371008.8
CONSTRAINTS = ("support", "delta=0.01")
POLICIES_OF_A_MAP = {"transition": ("transition",), "complete": ("complete",)}
# Public boxes: Beijing's third ring, Los Angeles, Austin.
BEIJING = ("--grid", "0.34km", "--bbox", "116.28,39.85,116.48,39.99", "--step", "5min")
LOS_ANGELES = ("--grid", "0.89km", "--bbox", "-118.58,33.70,-118.19,34.32")
AUSTIN = ("--grid", "1km", "--bbox", "-97.95,30.10,-97.50,30.55")


@dataclass(frozen=True)
class Input:
    """One real input: how it is imported, fitted and released, and how many people are released by default."""

    source: str
    importing: tuple[str, ...]
    fitting: tuple[str, ...]
    policies: dict[str, tuple[str, ...]]
    users: int
    models: tuple[str, ...] = ("counts",)
    box: tuple[float, float, float, float] | None = None
    answers: Callable[[], pd.DataFrame] | None = None
    labels: dict[str, str] | None = None

    @property
    def unit(self) -> str:
        """Unit of an error."""
        return "m" if "--grid" in self.fitting else "units"


#: Options of `dphmm fit` by the name of the model in the table.
MODELS = {"counts": (), "smoothed": ("--smoothing", "1")}

#: Which pages link to each other, written by hand from what such a site's menus look like; no visit was looked at.
SITE_MAP = {
    "frontpage": "news tech local opinion on-air misc weather health living business sports summary bbs travel",
    "news": "local opinion summary msn-news weather",
    "tech": "business bbs news",
    "local": "weather on-air sports",
    "opinion": "bbs on-air",
    "on-air": "summary",
    "misc": "bbs",
    "weather": "travel",
    "msn-news": "msn-sports",
    "health": "living",
    "living": "travel misc",
    "business": "summary",
    "msn-sports": "sports",
    "sports": "on-air",
    "summary": "",
    "bbs": "",
    "travel": "",
}
PAGES = list(SITE_MAP)
#: What a career month is about, for the categorical policy.
CAREER_LABELS = {
    "school": "education",
    "FE": "education",
    "HE": "education",
    "training": "work",
    "employment": "work",
    "joblessness": "work",
}


def site_map_answers() -> pd.DataFrame:
    """state, x, y: the leading coordinates of a spectral embedding of the site map, in integers from 0 to 100."""
    number = {page: i for i, page in enumerate(PAGES)}
    linked = np.zeros((len(PAGES), len(PAGES)))
    for page, others in SITE_MAP.items():
        for other in others.split():
            linked[number[page], number[other]] = linked[number[other], number[page]] = 1.0
    degree = linked.sum(axis=1)
    laplacian = np.eye(len(PAGES)) - linked / np.sqrt(np.outer(degree, degree))
    _, vectors = np.linalg.eigh(laplacian)
    places = vectors[:, 1:3] / np.sqrt(degree)[:, None]
    # An eigenvector's sign means nothing: the largest coordinate is made positive, so that all machines agree.
    places *= np.sign(places[np.abs(places).argmax(axis=0), (0, 1)])
    places -= places.min(axis=0)
    whole = np.rint(100 * places / places.max(axis=0)).astype(int)
    return pd.DataFrame({"state": PAGES, "x": whole[:, 0], "y": whole[:, 1]})


INPUTS = {
    "geolife-plt": Input(
        "raw/geolife_plt_sample.tar.gz",
        ("geolife",),
        BEIJING,
        {"radius": ("radius", "--radius", "1km"), **POLICIES_OF_A_MAP},
        users=8,
        models=("smoothed",),
        box=(116.28, 39.85, 116.48, 39.99),
    ),
    "geolife-beijing": Input(
        "geolife_beijing.parquet",
        ("csv",),
        BEIJING,
        {"radius": ("radius", "--radius", "1km"), **POLICIES_OF_A_MAP},
        users=15,
        models=("counts", "smoothed"),
    ),
    "gowalla-los-angeles": Input(
        "gowalla_la_sequence.parquet",
        ("csv", "--user-column", "block", "--order-column", "k"),
        LOS_ANGELES,
        {"radius": ("radius", "--radius", "2km"), "transition": ("transition",)},
        users=150,
    ),
    "gowalla-austin": Input(
        "raw/loc-gowalla_totalCheckins.head10k.txt.gz",
        ("gowalla",),
        AUSTIN,
        {"radius": ("radius", "--radius", "2km"), "complete": ("complete",)},
        users=24,
        models=("counts", "smoothed"),
        box=(-97.95, 30.10, -97.50, 30.55),
    ),
    "msnbc-ordinal": Input(
        "msnbc323.seq.gz",
        ("sequences",),
        ("--state-column", "state", "--answers", "ordinal"),
        {"radius": ("radius", "--radius", "3"), "transition": ("transition",), "complete": ("complete",)},
        users=161,
    ),
    "msnbc-site-map": Input(
        "msnbc323.seq.gz",
        ("sequences",),
        ("--state-column", "state"),
        {"radius": ("radius", "--radius", "25"), "transition": ("transition",), "complete": ("complete",)},
        users=161,
        answers=site_map_answers,
    ),
    "mvad": Input(
        "mvad.csv.gz",
        ("sequences", "--columns", "Jul.93:Jun.99", "--user-column", "id"),
        ("--state-column", "state", "--answers", "ordinal"),
        {"categorical": ("categorical",), "transition": ("transition",), "complete": ("complete",)},
        users=356,
        labels=CAREER_LABELS,
    ),
}


@dataclass(frozen=True)
class Cell:
    """One row of the table: an input, a model, a policy and a constraint."""

    name: str
    model: str
    policy: str
    constraint: str

    @property
    def file(self) -> str:
        """A name for its files."""
        return "-".join((self.name, self.model, self.policy, self.constraint.replace("=", "")))


def cells(name: str) -> Iterator[Cell]:
    """The rows of the table that are about an input."""
    known = INPUTS[name]
    for model, policy, constraint in itertools.product(known.models, known.policies, CONSTRAINTS):
        yield Cell(name, model, policy, constraint)


def halves(trajectories: Path, users: int, box: tuple[float, float, float, float] | None = None) -> tuple[Path, Path]:
    """Two files beside the trajectories: every second user's rows to fit on, and the first of the others to release.

    With a box only rows inside it are released: the owner's choice, which says of each row that it was inside.
    """
    rows = pd.read_parquet(trajectories)
    if box is not None:
        west, south, east, north = box
        inside = rows.lat.between(south, north) & rows.lon.between(west, east)
    names = list(dict.fromkeys(rows.user))
    fitted, others = set(names[0::2]), names[1::2]
    to_fit = rows[rows.user.isin(fitted)]
    rest = rows[rows.user.isin(others) & inside] if box is not None else rows[rows.user.isin(others)]
    released = rest[rest.user.isin(list(dict.fromkeys(rest.user))[:users])]
    paths = trajectories.with_name("fit.parquet"), trajectories.with_name("release.parquet")
    for path, part in zip(paths, (to_fit, released), strict=True):
        part.to_parquet(path, index=False)
    return paths


def prepare(given: Input, data: Path, folder: Path, users: int, run: Callable[..., Any]) -> None:
    """Import, split, fit each model and write each policy into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "all.parquet").exists():
        run("import", given.importing[0], data / given.source, "-o", folder / "all.parquet", *given.importing[1:])
    to_fit, _ = halves(folder / "all.parquet", users, given.box)
    fitting: list[Any] = list(given.fitting)
    if given.answers is not None:
        given.answers().to_csv(folder / "answers.csv", index=False)
        fitting += ["--answers", folder / "answers.csv"]
    labelled: list[Any] = []
    if given.labels is not None:
        pd.DataFrame(given.labels.items(), columns=["state", "label"]).to_csv(folder / "labels.csv", index=False)
        labelled = ["--labels", folder / "labels.csv"]
    for model in given.models:
        fitted = folder / f"{model}.npz"
        run("fit", to_fit, "-o", fitted, *fitting, *MODELS[model])
        for policy, (kind, *options) in given.policies.items():
            more = labelled if kind == "categorical" else []
            run("policy", kind, fitted, "-o", folder / f"{model}-{policy}.json", *options, *more)


def release_arguments(cell: Cell, folder: Path) -> list[Any]:
    """The release of one cell."""
    return [
        "release", folder / "release.parquet", "--model", folder / f"{cell.model}.npz",
        "--policy", folder / f"{cell.model}-{cell.policy}.json", "--epsilon", "1", "--constraint", cell.constraint,
        "-o", folder / f"{cell.file}.parquet", "--ledger", folder / f"{cell.file}.db",
        "--model-people", "others", "--owner-view", "--json",
    ]  # fmt: skip


def joined(rows: pd.DataFrame, released: pd.DataFrame, step_seconds: int | None) -> pd.DataFrame:
    """The released rows with their owner's truth beside them, by user and step."""
    truth = rows.copy()
    if step_seconds is not None:
        truth["t"] = truth.t.dt.floor(f"{step_seconds}s").astype(released.t.dtype)
        truth = truth.groupby(["user", "t"], as_index=False).last()
        both = released.merge(truth, on=["user", "t"], validate="one_to_one")
    else:
        if "step" in truth:
            first = truth.groupby("user").step.transform("min")
            truth["step"] = truth.step - first + 1
        else:
            truth["step"] = truth.groupby("user").cumcount() + 1
        both = released.merge(truth.drop(columns="t", errors="ignore"), on=["user", "step"], validate="one_to_one")
    if len(both) != len(released):
        raise SystemExit(f"{len(released) - len(both)} released rows without a truth")
    return both


def mean_errors(both: pd.DataFrame, answers: pd.DataFrame | None) -> tuple[float, float]:
    """Mean distance from the truth, of z and of the estimate: metres on a map, else in answer units."""
    of_z, of_estimate = errors(both, answers)
    return float(of_z.mean()), float(of_estimate.mean())


def errors(both: pd.DataFrame, answers: pd.DataFrame | None) -> tuple[np.ndarray, np.ndarray]:
    """The distances of every row."""
    if "z_lat" in both:
        there = np.radians(both[["lat", "lon"]].to_numpy())
        found = [np.radians(both[[f"{name}_lat", f"{name}_lon"]].to_numpy()) for name in ("z", "estimate")]
        return _great_circle(there, found[0]), _great_circle(there, found[1])
    assert answers is not None
    axes = [column for column in answers if column != "state"]
    true = answers.set_index("state")[axes].loc[both.state].to_numpy()
    found = [both[[f"{name}_{j}" for j in range(len(axes))]].to_numpy() for name in ("z", "estimate")]
    return np.linalg.norm(found[0] - true, axis=1), np.linalg.norm(found[1] - true, axis=1)


def _great_circle(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    half = np.sin((two - one) / 2) ** 2
    inner = half[:, 0] + np.cos(one[:, 0]) * np.cos(two[:, 0]) * half[:, 1]
    metres: np.ndarray = 2 * EARTH_METRES * np.arcsin(np.sqrt(inner))
    return metres


def answers_of(given: Input, folder: Path) -> pd.DataFrame | None:
    """The numbers of the states by name; None on a map."""
    if given.unit == "m":
        return None
    if given.answers is not None:
        return given.answers()
    # Ordinal answers are 0, 1, ... in the order of the names, as `dphmm fit` says.
    names = sorted(pd.read_parquet(folder / "fit.parquet").state.unique())
    return pd.DataFrame({"state": names, "x": range(len(names))})


def blind_error(cell: Cell, folder: Path) -> float:
    """Mean error of one guess that needs no release: the mean answer under the model's initial distribution."""
    from dphmm import load_model

    given = INPUTS[cell.name]
    model = load_model(folder / f"{cell.model}.npz")
    assert model.space is not None
    guess = (model.initial @ model.space.answers)[None, :]
    released = pd.read_parquet(folder / f"{cell.file}.parquet")
    place = model.space.to_latlon(guess)
    for name in ("z", "estimate"):
        for j in range(guess.shape[1]):
            released[f"{name}_{j}"] = guess[0, j]
        if place is not None:
            released[f"{name}_lat"], released[f"{name}_lon"] = place[0][0], place[1][0]
    truth = pd.read_parquet(folder / "release.parquet")
    both = joined(truth, released, 300 if "--step" in given.fitting else None)
    return mean_errors(both, answers_of(given, folder))[0]


def stay_errors(cell: Cell, folder: Path) -> dict[str, float]:
    """Median errors of the estimate when someone has just come into a cell, and after an hour in it without a gap."""
    from dphmm import load_model

    released = pd.read_parquet(folder / f"{cell.file}.parquet")
    both = joined(pd.read_parquet(folder / "release.parquet"), released, 300).sort_values(["user", "step"])
    space: Any = load_model(folder / f"{cell.model}.npz").space
    where = pd.Series(space.locate(both.lat.to_numpy(), both.lon.to_numpy()), index=both.index)
    same = (where == where.shift()) & (both.user == both.user.shift()) & (both.step == both.step.shift() + 1)
    stayed = (~same).groupby((~same).cumsum()).cumcount()
    error = pd.Series(errors(both, None)[1], index=both.index)
    hour = stayed >= 3600 // 300
    return {
        "all": float(error.median()),
        "first": float(error[stayed == 0].median()),
        "hour": float(error[hour].median()),
        "rows": int(hour.sum()),
    }


def measured(cell: Cell, folder: Path, document: dict[str, Any], drifted: int, seconds: float) -> dict[str, Any]:
    """What the table shows of one cell."""
    given = INPUTS[cell.name]
    released = pd.read_parquet(folder / f"{cell.file}.parquet")
    both = joined(pd.read_parquet(folder / "release.parquet"), released, 300 if "--step" in given.fitting else None)
    raw, estimate = mean_errors(both, answers_of(given, folder))
    return {
        "rows": document["rows"],
        "people": document["subjects"],
        "released": document["released"],
        "skipped": document["skipped_steps"],
        "drifted": drifted / document["released"],
        "raw": raw,
        "estimate": estimate,
        "unit": given.unit,
        "epsilon": document["epsilon_per_release"],
        "cost_mean": float(released.cost.mean()),
        "cost_max": float(released.cost.max()),
        "mechanisms": document["mechanisms"],
        "plans": document["plans"],
        "seconds": seconds,
    }


def drift_in(stderr: str) -> int:
    """How many new releases were of a surrogate, from what --owner-view says."""
    found = re.search(r"(\d+) of \d+ new releases", stderr)
    if found is None:
        raise SystemExit("no owner view on standard error")
    return int(found[1])


def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run one dphmm command; its failure is ours."""
    done = subprocess.run(
        [sys.executable, "-m", "dphmm", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"dphmm {arguments[0]} failed ({done.returncode}): {done.stderr.strip()}")
    return done


def run_cell(cell: Cell, folder: Path) -> dict[str, Any]:
    """Release one cell and measure it, unless that was done before."""
    result = folder / f"{cell.file}.result.json"
    if result.exists():
        found: dict[str, Any] = json.loads(result.read_text())
        return found
    # What an interrupted run left is no result: it is started anew, so that the time is that of a whole run.
    for left in folder.glob(f"{cell.file}.*"):
        left.unlink()
    began = time.perf_counter()
    done = command(*release_arguments(cell, folder))
    seconds = time.perf_counter() - began
    found = measured(cell, folder, json.loads(done.stdout), drift_in(done.stderr), seconds)
    result.write_text(json.dumps(found))
    return found


_HEAD = (
    "data | model | policy | constraint | people | rows in | rows released | skipped steps | drift | error of z | "
    "error of estimate | error of a blind guess | ε | cost per release (mean; most) | mechanism | s"
)


def table(results: list[tuple[Cell, dict[str, Any]]]) -> str:
    """The results in Markdown."""
    lines = [f"| {_HEAD} |", "|" + "---|" * len(_HEAD.split("|"))]
    for cell, found in results:
        mechanisms = ", ".join(f"{name} {rows}" for name, rows in sorted(found["mechanisms"].items()))
        columns = [
            cell.name, cell.model, cell.policy, cell.constraint, found["people"], found["rows"], found["released"],
            found["skipped"], f"{100 * found['drifted']:.1f} %", _error(found["raw"], found["unit"]),
            _error(found["estimate"], found["unit"]), _error(found["blind"], found["unit"]), found["epsilon"],
            f"{found['cost_mean']:.1f}; {found['cost_max']:.1f}", mechanisms, f"{found['seconds']:.0f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(map(str, columns)) + " |")
    return "\n".join(lines)


def stay_table(results: list[tuple[Cell, dict[str, float]]]) -> str:
    """Stays in Markdown."""
    head = "data | model | policy | constraint | all rows | just arrived | after an hour in one cell | rows of these"
    lines = [f"| {head} |", "|" + "---|" * len(head.split("|"))]
    for cell, found in results:
        medians = [_error(found[name], "m") for name in ("all", "first", "hour")]
        columns = [cell.name, cell.model, cell.policy, cell.constraint, *medians, found["rows"]]
        lines.append("| " + " | ".join(map(str, columns)) + " |")
    return "\n".join(lines)


def _error(value: float, unit: str) -> str:
    return f"{value:,.0f} m" if unit == "m" else f"{value:.2f}"


def main() -> None:
    """Run the matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of real data")
    parser.add_argument("--out", type=Path, required=True, help="where files and results go; finished cells are kept")
    parser.add_argument("--only", default=",".join(INPUTS), help="names of inputs, by commas")
    parser.add_argument("--users", type=int, help="how many people are released of each input")
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := set(names) - set(INPUTS):
        parser.error(f"--only {min(unknown)}: one of {', '.join(INPUTS)}")
    results, stays = [], []
    for name in names:
        users = given.users or INPUTS[name].users
        folder = given.out / f"{name}-{users}"
        prepared = folder / "prepared"
        if not prepared.exists():
            prepare(INPUTS[name], given.data, folder, users, command)
            prepared.touch()
        for cell in cells(name):
            print(cell.file, file=sys.stderr, flush=True)
            results.append((cell, {**run_cell(cell, folder), "blind": blind_error(cell, folder)}))
            if "--step" in INPUTS[name].fitting:
                stays.append((cell, stay_errors(cell, folder)))
    print(table(results))
    if stays:
        print(f"\nMedian errors of the estimate:\n\n{stay_table(stays)}")


if __name__ == "__main__":
    main()
