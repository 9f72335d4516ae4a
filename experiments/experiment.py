"""What an experiment is: cells to measure, and the tables and figures that are made of their rows.

A cell is one setting of the experiment's parameters. Its randomness depends on the seed and the cell alone. So results
do not depend on the order of the work, on interruptions, or on how many processes share it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dphmm import ReplayBits
from experiments.drawing import Figure
from experiments.printed import Printed

if TYPE_CHECKING:
    import pandas as pd

Value: TypeAlias = str | int | float | bool | None
Cell: TypeAlias = Mapping[str, Value]
Row: TypeAlias = dict[str, Value]


@dataclass(frozen=True)
class Own:
    """Somebody's own walks on a map, and the public numbers of the papers' settings.

    ``box``: west, south, east, north. ``cell`` and ``radius`` (of Gutil): metres. ``step``: seconds. ``length``: steps
    of each walk.
    """

    file: Path
    box: tuple[float, float, float, float]
    cell: float
    step: int
    radius: float
    length: int = 100

    @property
    def name(self) -> str:
        """The name of the data in tables and titles. It says the setting."""
        return f"{self.file.stem}, cells of {self.cell:g} m, steps of {self.step} s, r = {self.radius:g} m"


@dataclass(frozen=True)
class OwnSequences:
    """Somebody's own sequences of symbols, and the public numbers of a hidden model of them.

    ``symbols``: how many there are at most. ``states``: hidden ones. ``length``: longer sequences are cut.
    """

    file: Path
    symbols: int
    states: int
    length: int = 100

    @property
    def name(self) -> str:
        """The name of the data in tables and titles. It says the setting."""
        return f"{self.file.stem}, {self.symbols} symbols, {self.states} hidden states, at most {self.length} steps"


@dataclass(frozen=True)
class OwnGraph:
    """Somebody's own pairs of people, of whom each depends on the other by a public ``coefficient``, 0 to 1."""

    file: Path
    coefficient: float

    @property
    def name(self) -> str:
        """The name of the data in tables and titles. It says the setting."""
        return f"{self.file.stem}, coefficient {self.coefficient:g}"


#: All kinds of rows of one's own.
OwnRows: TypeAlias = Own | OwnSequences | OwnGraph


@dataclass(frozen=True)
class Settings:
    """What a user chooses: the seed, the folder of the real data sets or rows of one's own, and whether to be quick."""

    seed: int = 1
    data: Path | None = None
    quick: bool = False
    own: OwnRows | None = None

    def missing(self, *files: str) -> str | None:
        """Why these files of the data sets cannot be read; None where all are there."""
        if self.data is None:
            return "no folder of data: --data or DPHMM_DATA"
        absent = [file for file in files if not (self.data / file).is_file()]
        return f"no {' and no '.join(absent)} in the folder of data" if absent else None

    def written(self) -> dict[str, Value]:
        """What results depend on. Where the data lie is not part of it."""
        own = None if self.own is None else self.own.name
        if isinstance(self.own, Own):
            own = f"{own}, box {self.own.box}, walks of {self.own.length} steps"
        return {"seed": self.seed, "quick": self.quick, "data": self.data is not None, "trajectories": own}


@dataclass(frozen=True)
class Experiment:
    """A named experiment.

    ``cells``: what is to be measured. ``measure``: the rows of one cell; a function of a module, so that other
    processes find it. ``tables``: the named tables that are made of all rows, a frame with the columns of cells and
    rows. ``printed``: the tables of its page of results, made of these tables. ``setting``: what all figures have in
    common; their titles end with it. ``files``: the real data sets that it can use. ``needs_data``: whether it can be
    run only on these. ``takes_own``: the rows of somebody's own that it can be run on.
    """

    name: str
    title: str
    source: str
    cells: Callable[[Settings], Sequence[Cell]]
    measure: Callable[[Settings, Cell, np.random.SeedSequence], list[Row]]
    tables: Callable[[pd.DataFrame], dict[str, pd.DataFrame]]
    printed: Callable[[dict[str, pd.DataFrame]], dict[str, Printed]] | None = None
    figures: tuple[Figure, ...] = ()
    setting: str = ""
    files: tuple[str, ...] = ()
    needs_data: bool = False
    takes_own: type[OwnRows] | None = None


def key_of(cell: Cell) -> str:
    """The cell as text, the same however its parameters are ordered."""
    return json.dumps(dict(cell), sort_keys=True, allow_nan=False)


def seed_of(settings: Settings, experiment: str, cell: Cell) -> np.random.SeedSequence:
    """The cell's own randomness."""
    digest = hashlib.sha256(f"{experiment} {settings.seed} {key_of(cell)}".encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest, "little"))


def bits_of(seed: np.random.SeedSequence, *label: object) -> ReplayBits:
    """Noise of one answer or one fit: of the cell's randomness and its own name alone."""
    return ReplayBits(seed.generate_state(8).tobytes() + " ".join(map(str, label)).encode())


def skipped(data: str, reason: str) -> Cell:
    """The cell of a data set that is left out, which says why."""
    return {"part": "skipped", "data": data, "reason": reason}


def groups(rows: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """The rows of each combination of values, in the order in which they come."""
    return iter(rows.groupby(list(names), sort=False))
