"""Run an experiment cell by cell, and write its tables, its figures and one page of Markdown.

Results are stored as they come, so a run can be stopped at any time and resumed. In the folder: ``settings.json`` (what
the results depend on) and ``cells.jsonl`` (a line for each cell that is done).
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput

# The package's own safe writing of files: there is no public name for it.
from dphmm.storage.inputs import replacing
from dphmm.storage.tables import write_table
from experiments.drawing import can_draw, lines, save
from experiments.experiment import Cell, Experiment, OwnGraph, Row, Settings, key_of, seed_of
from experiments.journal import Journal

if TYPE_CHECKING:
    import pandas as pd


#: A new number when results of before and after must not be mixed.
VERSION = 1
#: Longer tables are in the files only.
_MOST_LINES = 60


@dataclass(frozen=True)
class Results:
    """All rows of an experiment, cells in the experiment's order, and the tables made of them."""

    rows: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    seconds: float


def run(
    experiment: Experiment,
    settings: Settings,
    folder: Path,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Measure the cells that the folder does not have yet, and make the tables.

    Raises InvalidInput for a folder with results of another experiment or of other settings, for a folder of data
    without a file of the experiment, and for rows of one's own that the experiment cannot use.
    """
    _check_data(experiment, settings)
    cells = list(experiment.cells(settings))
    _claim(folder, experiment, settings)
    journal = Journal(folder / "cells.jsonl")
    done = {key_of(line["cell"]): line for line in journal.lines}
    missing = [cell for cell in cells if key_of(cell) not in done]
    _report(progress, len(cells) - len(missing), len(cells))
    for line in _measured(experiment, settings, missing, jobs):
        journal.append(line)
        done[key_of(line["cell"])] = line
        _report(progress, len(done), len(cells))
    lines = [done[key_of(cell)] for cell in cells]
    rows = _frame(lines)
    return Results(rows, experiment.tables(rows), sum(line["seconds"] for line in lines))


def _check_data(experiment: Experiment, settings: Settings) -> None:
    if settings.own is not None:
        if experiment.takes_own is not type(settings.own):
            takers = "dphmm, location-sets, steps, synthesis, with --symbols hmm-privacy, or with --graph dependence"
            raise InvalidInput("--trajectories", f"rows for {experiment.name}", takers)
        if not settings.own.file.is_file():
            option = "--graph" if isinstance(settings.own, OwnGraph) else "--trajectories"
            raise InvalidInput(option, str(settings.own.file), "an existing file")
        return
    if experiment.needs_data and settings.data is None:
        raise InvalidInput("--data", "nothing", "the folder of the data sets: this experiment is about real data")
    if settings.data is not None and experiment.files and all(map(settings.missing, experiment.files)):
        names = ", ".join(experiment.files)
        raise InvalidInput("--data", f"{settings.data}, with none of {names}", "a folder with one, or --trajectories")


def _claim(folder: Path, experiment: Experiment, settings: Settings) -> None:
    """The folder is this experiment's, from now on if it is new."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("-o", str(folder), "a folder")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "settings.json"
    own = {"experiment": experiment.name, "version": VERSION, **settings.written()}
    if not path.exists():
        if any(folder.iterdir()):
            raise InvalidInput("-o", f"{folder}, which holds other files", "a new folder, or one of this experiment")
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(own, sort_keys=True) + "\n")
        return
    try:
        found = json.loads(path.read_text())
    except (ValueError, RecursionError):
        found = {}
    for name, value in own.items():
        if not isinstance(found, dict) or found.get(name) != value:
            raise _other_settings(folder, name, found)


def _other_settings(folder: Path, name: str, found: Any) -> InvalidInput:
    if name == "data" and isinstance(found, dict) and isinstance(found.get("data"), bool):
        there, remedy = ("with", "--data as there") if found["data"] else ("without", "no --data and no DPHMM_DATA")
        return InvalidInput("-o", f"{folder}, which holds results {there} data", f"a new folder, or {remedy}")
    came = f"{folder}, which holds results with another {name}"
    return InvalidInput("-o", came, f"a new folder, or {name} as it was there")


def _measured(experiment: Experiment, settings: Settings, cells: Sequence[Cell], jobs: int) -> Iterator[dict[str, Any]]:
    if jobs <= 1 or len(cells) <= 1:
        for cell in cells:
            yield measured(experiment, settings, cell)
        return
    with ProcessPoolExecutor(min(jobs, len(cells)), mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(measured, experiment, settings, cell) for cell in cells]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def measured(experiment: Experiment, settings: Settings, cell: Cell) -> dict[str, Any]:
    """The line of one cell."""
    began = time.perf_counter()
    rows = experiment.measure(settings, cell, seed_of(settings, experiment.name, cell))
    return {"cell": dict(cell), "rows": rows, "seconds": round(time.perf_counter() - began, 3)}


def _frame(lines: Sequence[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    rows: list[Row] = [{**line["cell"], **row} for line in lines for row in line["rows"]]
    return pd.DataFrame(rows)


def _report(progress: Callable[[int, int], None] | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


def write_results(experiment: Experiment, settings: Settings, results: Results, folder: Path) -> list[Path]:
    """Write everything that is made of an experiment's rows; the files that were written."""
    import pyarrow as pa

    paths = []
    for name, table in {"rows": results.rows, **results.tables}.items():
        for suffix in (".parquet", ".csv"):
            path = folder / f"{name}{suffix}"
            write_table(path, pa.Table.from_pandas(table, preserve_index=False))
            paths.append(path)
    for name, printed in (experiment.printed(results.tables) if experiment.printed else {}).items():
        if len(printed) == 1:
            continue
        path = folder / f"{experiment.name}-{name}.csv"
        with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(printed)
        paths.append(path)
    figures = []
    if can_draw():
        for figure in experiment.figures:
            if len(lines(figure, results.tables[figure.table])):
                titled = replace(figure, title=f"{figure.title}. {_setting(experiment, settings)}")
                figures += save(titled, results.tables[figure.table], folder)
    page = folder / "results.md"
    with replacing(page) as temporary:
        temporary.write_text(_page(experiment, settings, results, figures), encoding="utf-8")
    return [*paths, *figures, page]


def _setting(experiment: Experiment, settings: Settings) -> str:
    """The end of every title: what is the same in all figures, one's own rows, and the seed."""
    quick = ", a quick run" * settings.quick
    same = [one for one in (experiment.setting, settings.own.name if settings.own else "") if one]
    return "; ".join([*same, f"{'seed' if same else 'Seed'} {settings.seed}{quick}"])


def _page(experiment: Experiment, settings: Settings, results: Results, figures: list[Path]) -> str:
    quick = ", quick" if settings.quick else ""
    parts = [
        f"# {experiment.title}",
        f"{experiment.source}. `python -m experiments {experiment.name}`, seed {settings.seed}{quick}; "
        f"{len(results.rows)} rows measured.",
    ]
    for name, table in results.tables.items():
        parts += [f"## {name}", markdown_table(table)]
    drawn = {path.stem for path in figures}
    parts += [f"![{figure.title}]({figure.name}.svg)" for figure in experiment.figures if figure.name in drawn]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: pd.DataFrame) -> str:
    """The first lines of a table in Markdown, numbers with four significant digits."""
    shown = table.head(_MOST_LINES)
    lines = ["| " + " | ".join(map(str, shown.columns)) + " |", "|" + "---|" * len(shown.columns)]
    lines += ["| " + " | ".join(_text(value) for value in row) + " |" for row in shown.itertuples(index=False)]
    if len(table) > _MOST_LINES:
        lines.append(f"\n{len(table) - _MOST_LINES} more lines are in the table's files.")
    return "\n".join(lines)


def _text(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{float(value):.4g}"
    return str(value).replace("|", "\\|")
