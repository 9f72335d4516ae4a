"""Cells of the two experiments on walks: a release by given choices, and the rows that it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from dphmm.evaluation.experiment import Cell, Row, Settings
from dphmm.evaluation.walk_releases import COMPLETE, TRANS, UTIL, Choices, Released, release
from dphmm.evaluation.walk_sources import RADII, skipped, study, there
from dphmm.evaluation.walk_studies import EVERYBODY, Study
from dphmm.samplers.entropy import ReplayBits

#: The paper's δ.
DELTA = "0.01"
#: What a release is called that hides among all states of a δ-location set (CCS 2015).
DPLS = "DPLS"


def studied(settings: Settings, choices: Callable[[str], Iterable[Choices]]) -> Iterator[Cell]:
    """A cell for every data set and every choice, and cells that say what is left out."""
    yield from skipped(settings)
    for data in there(settings):
        for one in choices(data):
            yield {"part": "release", "data": data, **asdict(one)}


def released(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> tuple[Study, Choices, Released]:
    """The release of a cell, by noise of the cell and the walk's number alone."""
    given: dict[str, Any] = {field.name: cell[field.name] for field in fields(Choices)}
    choices, of = Choices(**given), study(settings, str(cell["data"]))
    return of, choices, release(of, choices, [bits_of(seed, number) for number in range(len(of.walks))])


def bits_of(seed: np.random.SeedSequence, *label: object) -> ReplayBits:
    """Noise of one walk: of the cell's randomness and the walk alone."""
    return ReplayBits(seed.generate_state(8).tobytes() + " ".join(map(str, label)).encode())


def labelled(rows: Iterable[Row], choices: Choices) -> list[Row]:
    """Rows with the method's name."""
    return [{"method": name_of(choices), **row} for row in rows]


def name_of(choices: Choices) -> str:
    """What the papers call it, and what is not as in the papers."""
    if choices.policy == COMPLETE and choices.delta == DELTA:
        name = DPLS
    elif choices.policy == COMPLETE:
        name = "all possible states" if choices.delta is None else f"DPLS, δ = {choices.delta}"
    else:
        name = choices.policy if choices.delta is None else f"{choices.policy}, δ = {choices.delta}"
    name += ", by component" if choices.scope == "component" else ""
    return name + (", fitted to everybody" if choices.fit == EVERYBODY else "")


def policies(data: str, mechanism: str) -> tuple[Choices, Choices, Choices]:
    """The DPHMM paper's three: Gutil, Gtrs, and DPLS on δ-location sets."""
    util = Choices(UTIL, mechanism, radius=RADII[data][0])
    return util, Choices(TRANS, mechanism), Choices(COMPLETE, mechanism, delta=DELTA)
