"""Small releases of every kind of states, made by the commands: what a page must be able to show."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import Result

import dphmm
from commands import BBOX, edited, run, walk_rows, write_rows
from crafted_bits import keyed_system_bits
from dphmm.report import read_report, write_report
from dphmm.storage.release_folder import ReleaseFolder

FIT = ("--grid", "1km", "--bbox", BBOX, "--step", "5min")
EVIL = "<img src=x onerror=alert(1)>&\"'"
TRAP = "</script><script>alert(2)</script>"


def fitted(folder: Path, users: Iterable[str], fit: tuple[object, ...] = FIT, steps: int = 12) -> None:
    """Walks of users, and a model of other people's."""
    header = ["user", "t", "lat", "lon"]
    write_rows(folder / "people.csv", header, walk_rows([f"p{i}" for i in range(12)], 24, 3))
    write_rows(folder / "walks.csv", header, walk_rows(users, steps))
    run("fit", folder / "people.csv", "-o", folder / "model.npz", *fit)


def released(
    folder: Path,
    *options: object,
    rows: str = "walks.csv",
    epsilon: int | None = 1,
    smoothed: bool = True,
    code: int = 0,
) -> Path:
    """Release a folder's rows under its model and policy, with the same noise every time; the folder.

    ``code``: 3 where the schedule leaves somebody without an answer.
    """
    bits = keyed_system_bits(11)
    with patch("dphmm.samplers.entropy._process_bits", lambda: bits):
        run(
            "release", folder / rows, "--model", folder / "model.npz", "--policy", folder / "policy.json",
            "-o", folder / "released", "--format", "parquet", "--ledger", folder / "ledger.db",
            *(() if epsilon is None else ("--epsilon", epsilon)), *options, code=code,
        )  # fmt: skip
    if smoothed:
        run(
            "read", folder / "released", "--estimates", "-o", folder / "smoothed.parquet", "--force",
        )  # fmt: skip
    return folder


def of_places(
    folder: Path, rows: list[list[Any]], people: list[list[Any]], fit: tuple[Any, ...], radius: str, *options: object
) -> Path:
    """Rows user, t, lat, lon released under a model of other people's and a radius policy."""
    header = ["user", "t", "lat", "lon"]
    write_rows(folder / "people.csv", header, people)
    write_rows(folder / "walks.csv", header, rows)
    run("fit", folder / "people.csv", "-o", folder / "model.npz", *fit)
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", radius)
    return released(folder, *options)


def grid(
    folder: Path, *options: object, users: tuple[str, ...] = ("u1", "u2", "u3"), constraint: str = "support"
) -> Path:
    """Walkers on a grid, under a radius policy."""
    fitted(folder, users)
    setting = ("--setting", "constraint", constraint)
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", "1.5km", *setting)
    return released(folder, *options)


def delta(folder: Path) -> Path:
    """The same on delta-sets: every step of every subject has a plan of its own."""
    return grid(folder, constraint="delta=0.2")


def components(folder: Path) -> Path:
    """Two groups of cells that need not be hidden among each other, two groups of the policy."""
    fitted(folder, ["u1"])
    names = dphmm.storage.load_model(folder / "model.npz").space.names
    write_rows(folder / "labels.csv", ["state", "label"], [[n, "west" if n[1] in "01" else "east"] for n in names])
    labels = ("--labels", folder / "labels.csv")
    run("policy", "categorical", folder / "model.npz", "-o", folder / "policy.json", *labels)
    return released(folder)


def lonely(folder: Path) -> Path:
    """One policy edge: all other states are joined to a partner by protection."""
    fitted(folder, ["u1", "u2"])
    write_rows(folder / "edges.csv", ["source", "target"], [["x0y0", "x1y0"]])
    run("policy", "edges", folder / "model.npz", "-o", folder / "policy.json", "--graph", folder / "edges.csv")
    return released(folder)


def constant(folder: Path) -> Path:
    """Everybody begins in one known state: the first answer is a public constant."""
    names = ("home", "street", "work", "shop")
    visits = [[f"v{user}", name] for user in range(3) for name in ("home", "street", names[user + 1], "street", "home")]
    write_rows(folder / "walks.csv", ["user", "state"], visits)
    given = ("--state-column", "state", "--answers", "ordinal", "--initial", "first")
    run("fit", folder / "walks.csv", "-o", folder / "model.npz", *given)
    run("policy", "complete", folder / "model.npz", "-o", folder / "policy.json", "--setting", "start", "at")
    return released(folder)


def hexagons(folder: Path) -> Path:
    """H3 cells."""
    fitted(folder, ["u1", "u2"], ("--h3", 8, "--step", "5min"))
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", "2km")
    return released(folder)


def planned(folder: Path) -> Path:
    """Three people who are asked a few times an hour, at steps that a plan chose."""
    fitted(folder, ["u1", "u2", "u3"], steps=24)
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", "1.5km")
    public = (folder / "model.npz", "--policy", folder / "policy.json")
    run("plan", *public, "--path-epsilon", 4, "--per", "1h", "--people", 20, "-o", folder / "plan.json")
    return released(folder, "--plan", folder / "plan.json", epsilon=None)


def of_names(folder: Path, visits: list[list[Any]], *fit: object, spelling: str = "same") -> Path:
    """A release of states by name, of which every two are joined."""
    write_rows(folder / "walks.csv", ["user", "state"], visits)
    run("fit", folder / "walks.csv", "-o", folder / "model.npz", "--state-column", "state", *fit)
    run("policy", "complete", folder / "model.npz", "-o", folder / "policy.json")
    return released(folder, "--spelling", spelling)


def pages(folder: Path, names: tuple[str, ...] = ("alpha", "beta", "gamma", "delta")) -> Path:
    """Pages of a site without times, numbered in order: answers of one number."""
    rng = np.random.default_rng(5)
    visits = [[f"v{user}", names[page]] for user in range(6) for page in rng.integers(0, len(names), 15)]
    return of_names(folder, visits, "--answers", "ordinal")


def hostile(folder: Path) -> Path:
    """Names of states and people that would be markup, or code, where a page let them."""
    names = (EVIL, TRAP, "{{7*7}}", "javascript:alert(3)")
    rng = np.random.default_rng(5)
    users = (EVIL, TRAP, "$x^2$", "'+alert(4)+'")
    visits = [[user, names[page]] for user in users for page in rng.integers(0, len(names), 15)]
    return of_names(folder, visits, "--answers", "ordinal")


def labels(folder: Path) -> Path:
    """Hostile names again, as labels: what is released is a name."""
    names = (EVIL, TRAP, "{{7*7}}", "javascript:alert(3)")
    rng = np.random.default_rng(5)
    visits = [[f"v{user}", names[page]] for user in range(4) for page in rng.integers(0, len(names), 15)]
    return of_names(folder, visits)


#: Names that are something else to JavaScript, HTML, CSS, JSON, templates or TeX; all of them are legal here.
ODD = (
    "__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "null", "NaN", "0", "-1", "<!--", "-->", "]]>",
    "</style>", "</title><svg/onload=alert(1)>", "\\u003cscript\\u003e", "&lt;b&gt;", "${alert(1)}", "`", "*/",
    "');alert(1)//",
    "data:text/html,x", "//evil.example/x", "$\\frac{$", "\u05d0\u05d1\u05d2 (1)", "e\u0301\u0301\u0301", "\U0001f600",
    "\ufeffx",
    "\u00adx", "W" * 200,
)  # fmt: skip


def odd(folder: Path) -> Path:
    """States and people with the oddest names that a release takes."""
    rng = np.random.default_rng(5)
    visits = [[user, ODD[page]] for user in ODD for page in [*rng.integers(0, len(ODD), 2), ODD.index(user)]]
    return of_names(folder, visits, "--answers", "ordinal", spelling="exact")


def solid(folder: Path) -> Path:
    """Answers of three numbers."""
    rng = np.random.default_rng(6)
    names = [f"job {i}" for i in range(9)]
    answers = [[name, *rng.integers(0, 6, 3).tolist()] for name in names]
    write_rows(folder / "answers.csv", ["state", "pay", "hours", "rank"], answers)
    visits = [[f"v{user}", names[job]] for user in range(3) for job in rng.integers(0, len(names), 15)]
    return of_names(folder, visits, "--answers", folder / "answers.csv")


WORLDS: dict[str, Callable[[Path], Path]] = {
    "grid": grid,
    "delta": delta,
    "components": components,
    "lonely": lonely,
    "constant": constant,
    "hexagons": hexagons,
    "pages": pages,
    "hostile": hostile,
    "solid": solid,
    "labels": labels,
    "planned": planned,
}


def report(folder: Path, out: Path, *options: object, ledger: bool = False, code: int = 0) -> Result:
    """dphmm report of a world, as somebody sees it who has no ledger, or with that of its owner."""
    alone = () if ledger else ("--no-ledger",)
    return run("report", folder / "released", "-o", out, *alone, *options, code=code)


def public(folder: Path) -> tuple[Any, Any]:
    """The model and the policy of a world."""
    model = dphmm.storage.load_model(folder / "model.npz")
    return model, dphmm.storage.load_policy(folder / "policy.json", model=model)


def without_policy(folder: Path, out: Path) -> Any:
    """The report of a world for somebody who has the table and the model alone, on a page too."""
    found = read_report(folder / "released" / "released.parquet", public(folder)[0])
    write_report(out, found)
    return found


def plan_of(folder: Path) -> Any:
    """The plan that a world was released by."""
    model, policy = public(folder)
    return dphmm.choose.read_plan(folder / "plan.json", model, policy, model.space)


def read(folder: Path, **options: Any) -> Any:
    """The report of a world, or of a table that a test released by the library, without a folder of its own."""
    table, alone = folder / "released" / "released.parquet", folder / "released.parquet"
    return read_report(alone if alone.exists() else table, *public(folder), **options)


def wide(folder: Path) -> Path:
    """30,000 cells: too many to be drawn one by one."""
    import pandas as pd
    from scipy import sparse

    grid = dphmm.Grid.from_bounds(10.0, 50.0, 10.0 + 200 * 0.00279, 50.0 + 150 * 0.001798, 200.0)
    n, across = grid.n_states, grid.columns
    assert n > 20_000
    ring = [sparse.eye_array(n, k=k) for k in (-across - 1, -across, -1, 0, 1, across, across + 1)]
    moves = sparse.csr_array(sum(ring))
    moves = sparse.csr_array(moves.multiply(1 / moves.sum(axis=1)[:, None]))
    initial = np.zeros(n)
    initial[n // 2 + across // 2] = 1
    dphmm.storage.save_model(dphmm.MarkovModel(initial, moves, space=grid), folder / "model.npz")
    lat, lon = grid.to_latlon(grid.answers[n // 2 + across // 2 + np.arange(6)])
    pd.DataFrame({"user": "u1", "step": np.arange(6), "lat": lat, "lon": lon}).to_csv(folder / "walks.csv", index=False)
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", "500m")
    return released(folder)


def put(document: dict[str, Any], path: str, value: object) -> None:
    """Give a member another value: put(statement, "totals.epsilon_sum", "7")."""
    *parents, last = path.split(".")
    for parent in parents:
        document = document[parent]
    document[last] = value


def altered(
    folder: Path, into: Path, tell: Callable[[Any], object], rows: Callable[[pa.Table], pa.Table] | None = None
) -> Path:
    """A copy of a release with another statement, and with other rows, whose hash the statement has."""
    shutil.copytree(folder, into, ignore=shutil.ignore_patterns("*.html"), dirs_exist_ok=True)
    file, beside = into / "released" / "released.parquet", into / "released" / "released.parquet.privacy.json"
    told = json.loads(beside.read_text())
    tell(told)
    if rows is not None:
        pq.write_table(rows(pq.read_table(file)), file)
        told["file"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    edited(file.parent, beside.name, json.dumps(told))
    ReleaseFolder.of(file).keep([file.name])
    return into


def with_column(table: pa.Table, name: str, cells: pa.Array) -> pa.Table:
    """A table with other cells in a column, of the same type."""
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), cells)
