"""The rows that a release answers, read from a file in parts: of each row a user, a state and a time or step is kept.

What becomes of a row is what `load_trajectories` says; the rows are put in order in the memory that they are in.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphmm.states.space import StateSpace
from dphmm.states.trajectory import Trajectories, true_states
from dphmm.states.visit_table import Gathering, VisitTable
from dphmm.storage.inputs import PathLike
from dphmm.storage.tables import delimited_names, read_rows
from dphmm.storage.trajectories import ROLES, Cells, column_roles, needed_roles
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


class LoadedVisits(NamedTuple):
    """The rows to answer, and ``rejected`` (row, reason): row numbers from 1, no values."""

    visits: VisitTable
    rejected: pa.Table


def load_visits(
    path: PathLike,
    space: StateSpace,
    seconds: int | None = None,
    answer: str = "last",
    *,
    state_column: str | None = None,
) -> LoadedVisits:
    """The rows of a Parquet or CSV file that a model with steps of so many ``seconds`` answers.

    As ``VisitTable.of(load_trajectories(path, ...).trajectories, space, seconds, answer)``, without holding the rows:
    12 to 20 bytes are kept of each. A column of steps that are those of the times, as they must be, is not kept.

    Raises InvalidInput as `load_trajectories` and `VisitTable.of`.
    """
    given = dict.fromkeys(ROLES) | {"state": state_column}
    roles = needed_roles(column_roles(delimited_names(path), given), space)
    cells = Cells(roles, bins=seconds, well_formed=space.well_formed, trips=False)
    gathering = Gathering(space, seconds, answer)
    rows = read_rows(path, roles.names)
    stepped = roles.step is not None and (roles.time is None or seconds is None)
    for table in rows.parts:
        part = cells.read(table)
        codes = gathering.codes_of(*_states(part, cells.states.labels, space))
        gathering.add(part["user"], codes, part.get("time"), part["step"] if stepped else None)
    rejected = cells.rejected(str(path), rows.ragged)
    in_bins = seconds is not None and roles.step is None
    return LoadedVisits(gathering.finish(cells.users.labels, in_bins=in_bins), rejected)


def _states(part: dict[str, NDArray[Any]], labels: tuple[str, ...], space: StateSpace) -> tuple[IntArray, BoolArray]:
    """The states of the rows (n,) of a part, and which of them are in none."""
    if "state" in part and not ("lat" in part and space.on_map):
        numbers = np.array([space.index_of(label) for label in labels], dtype=np.int64)
        states = numbers[part["state"]]
        return states, states < 0
    rows = Trajectories(("",), np.zeros(len(part["user"]), np.int32), lat=part.get("lat"), lon=part.get("lon"))
    return true_states(rows, space)
