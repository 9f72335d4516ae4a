"""Experiment "steps": the DPHMM paper's ordering of its policies, by the length of a step and by whom models know.

The paper says neither how long a step is nor whom its model was fitted to, and its verdicts hang on both. Geolife in
its published layout has 16 people with a row every 1 to 5 seconds; 51 people with a row every 30. Released are up to
eight walks of 50 steps inside Beijing's third ring, cells of 340 m, ε = 1, the paper's mechanism. Of one's own rows
steps are once to ten times as long as the one that is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dphmm import Grid
from dphmm.errors import InvalidInput
from dphmm.storage import import_trajectories, load_trajectories
from experiments.drawing import Figure
from experiments.experiment import Cell, Experiment, Own, Row, Settings, bits_of, groups, skipped
from experiments.walks.cells import DPLS, distances, mean, name_of, policies
from experiments.walks.releases import TRANS, UTIL, release
from experiments.walks.studies import (
    EVERYBODY,
    FILES,
    GEOLIFE,
    OTHERS,
    OWN,
    THIRD_RING,
    Study,
    first_walks,
    own_study,
    paced,
)

if TYPE_CHECKING:
    import pandas as pd

RAW = "raw/geolife_plt_sample.tar.gz"
#: Seconds of a step, by file: the raw rows of 16 people, thinned ones of 51.
STEPS = {RAW: (2, 5, 10, 20, 30, 60), FILES[GEOLIFE]: (30, 60)}
#: Of one's own rows so many times the step that is named.
TIMES = (1, 2, 4, 10)
FITS = (OWN, OTHERS, EVERYBODY)
WALKS, LENGTH, EARLY = 8, 50, 20
MEASURES = ("degree", "error", "possible")
_ENDS = ("", "_low", "_high")


def cells(settings: Settings) -> list[Cell]:
    """A cell for each file, step, fit and policy; of a file that is not there, one that says so."""
    if isinstance(settings.own, Own):
        return _own_cells(settings.own, TIMES[:2] if settings.quick else TIMES)
    found: list[Cell] = []
    for file, steps in STEPS.items():
        if reason := settings.missing(file):
            found.append(skipped(file, reason))
            continue
        for step in (5, 60) if settings.quick and file == RAW else steps:
            found += _of_step(file, step)
    return found


def _own_cells(own: Own, times: Sequence[int]) -> list[Cell]:
    """Of steps that are too long for two walks a cell that says so. Raises InvalidInput where the first one is."""
    own_study(own)
    found = _of_step(own.file.stem, own.step)
    for longer in (replace(own, step=own.step * number) for number in times[1:]):
        try:
            own_study(longer)
            found += _of_step(own.file.stem, longer.step)
        except InvalidInput as error:
            found.append(skipped(f"{own.file.stem}, steps of {longer.step} s", str(error)))
    return found


def _of_step(data: str, step: int) -> list[Cell]:
    numbers = range(len(policies(GEOLIFE, "planar-isotropic")))
    return [{"part": "walks", "data": data, "step": step, "fit": fit, "policy_number": number}
            for fit in FITS for number in numbers]  # fmt: skip


@lru_cache(maxsize=2)
def _study(path: Path, step: int, quick: bool) -> Study:
    rows = (import_trajectories(path, "geolife") if path.suffix == ".gz" else load_trajectories(path)).trajectories
    rules = paced(Grid.from_bounds(*THIRD_RING, cell=340), step)
    walks = first_walks(rows, rules, walks=2 if quick else WALKS, steps=10 if quick else LENGTH)
    return Study(GEOLIFE, rules, rows, walks, np.empty((0, 2)))


def measure(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> list[Row]:
    """Degrees and errors of one policy, over all steps and over the first ones."""
    if cell["part"] == "skipped":
        return [{"method": "skipped"}]
    step = int(str(cell["step"]))
    if isinstance(settings.own, Own):
        study = own_study(replace(settings.own, step=step)).cut(2 if settings.quick else WALKS, settings.own.length)
    else:
        assert settings.data is not None
        study = _study(settings.data / str(cell["data"]), step, settings.quick)
    choices = policies(study.name, "planar-isotropic", fit=str(cell["fit"]))[int(str(cell["policy_number"]))]
    steps = release(study, choices, [bits_of(seed, number) for number in range(len(study.walks))])
    measured = dict(zip(MEASURES, (steps.degree, distances(steps, "z"), steps.support_size), strict=True))
    rows: list[Row] = []
    for when, some in (("all steps", steps.t > 0), (f"first {EARLY} steps", steps.t <= EARLY)):
        row: Row = {"method": name_of(choices).partition(",")[0], "when": when, "people": study.rows.n_users}
        row |= {"walks": len(study.walks)}
        for name, values in measured.items():
            told = mean(values[some], steps.walk[some])
            row |= {f"{name}{end}": float(value) for end, value in zip(_ENDS, told, strict=True)}
        rows.append(row)
    return rows


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every measure, and beside each setting whether the paper's three claims hold there."""
    import pandas as pd

    columns = ["method", "when", "people", "walks", "step", "fit", *(f"{m}{end}" for m in MEASURES for end in _ENDS)]
    rows = rows.reindex(columns=[*rows.columns, *(name for name in [*columns, "reason"] if name not in rows.columns)])
    measured = rows[rows["part"] == "walks"].copy()
    by = zip(*(measured[name] for name in ("when", "people", "fit")), strict=True)
    measured["panel"] = [f"{when}, {people:g} people, fitted to {fit}" for when, people, fit in by]
    return {
        "steps": measured[["panel", *columns]].reset_index(drop=True),
        "claims": pd.DataFrame(list(_claims(measured))),
        "skipped": rows.loc[rows["part"] == "skipped", ["data", "reason"]].astype(str).reset_index(drop=True),
    }


def _claims(measured: pd.DataFrame) -> Iterator[dict[str, object]]:
    for (people, step, fit, when), part in groups(measured, ["people", "step", "fit", "when"]):
        by = part.set_index("method")
        yield {
            "people": people, "step": step, "fit": fit, "when": when,
            "Gutil hides among more than DPLS": _more(by, "degree", UTIL, DPLS),
            "Gutil errs less than DPLS": _more(by, "error", DPLS, UTIL),
            "Gtrs hides among more than DPLS": _more(by, "degree", TRANS, DPLS),
            "states of Gtrs": by.loc[TRANS, "degree"], "low": by.loc[TRANS, "degree_low"],
            "high": by.loc[TRANS, "degree_high"],
        }  # fmt: skip


def _more(by: pd.DataFrame, name: str, first: str, second: str) -> str:
    """Whether a mean is larger: "open" where the intervals meet."""
    low, high = by[f"{name}_low"].to_dict(), by[f"{name}_high"].to_dict()
    return "yes" if low[first] > high[second] else "no" if high[first] < low[second] else "open"


def _figure(name: str, title: str, y: str, label: str) -> Figure:
    return Figure(name, title, "steps", x="step", y=y, by="method", x_label="length of a step, s", y_label=label,
                  panels="panel", low=f"{y}_low", high=f"{y}_high", log_x=True, log_y=True)  # fmt: skip


FIGURES: Sequence[Figure] = (
    _figure("degree", "Degree of protection by the length of a step", "degree", "cells hidden among"),
    _figure("error", "Error of z by the length of a step", "error", "error, km"),
)
EXPERIMENT = Experiment(
    name="steps",
    title="Verdicts by the length of a step and by the people that models know",
    source="DPHMM: Customizable Data Release with Differential Privacy via Hidden Markov Model (2016), Section 8.2",
    cells=cells,
    measure=measure,
    tables=tables,
    figures=tuple(FIGURES),
    setting="ε = 1, planar isotropic mechanism",
    files=tuple(STEPS),
    needs_data=True,
    takes_own=Own,
)
