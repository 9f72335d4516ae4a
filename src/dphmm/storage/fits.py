"""`fit`: a Markov model of the rows of a table, without privacy, as `dphmm fit` makes it of a file."""

from __future__ import annotations

from typing import Any

from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.markov.trajectories import fit_trajectories
from dphmm.states.maps import parse_duration, parse_speed
from dphmm.states.space import StateSpace
from dphmm.storage.trajectories import trajectories_from_table

#: Faster than this nobody is taken to move, where rows have places and times.
DEFAULT_SPEED = "150km/h"


def fit(
    table: Any,
    space: StateSpace,
    *,
    step: object = None,
    max_speed: object = DEFAULT_SPEED,
    smoothing: float = 0.0,
    initial: str = "occupancy",
    min_count: int = 1,
    all_cells: bool = False,
    merge_rare: int | None = None,
    gap: float | None = None,
) -> MarkovModel:
    """A Markov model fitted to the rows of a pandas, polars, Arrow table or GeoDataFrame, WITHOUT privacy.

    Its possible moves can show one person's: fit it on other people than those who are released (`split_people`), or
    learn it with noise (`MarkovModel.fit_private`). The table stays as it is.

    Parameters
    ----------
    table : rows of ``user``, a time ``t`` or none, and ``lat`` and ``lon``, points, or ``state``.
    space : the states there are; the model's are those that were visited, all with ``all_cells``.
    step : seconds, or "5min": rows become time bins. None: every row is a step.
    max_speed : rows that cannot be reached at this speed are left out, where rows have places and times; None: none.
    smoothing : added to the counts of moves, on a grid of those to the same and neighbouring cells, else of all pairs.
    initial, min_count, merge_rare, gap : as `dphmm fit` has them.

    Raises
    ------
    InvalidInput : a table of another kind or without its columns, rows that cannot be read or are in no state.

    Examples
    --------
    >>> import dphmm, pandas as pd
    >>> rows = pd.DataFrame({"user": ["ann"] * 4, "step": range(4), "state": ["a", "b", "a", "a"]})
    >>> model = dphmm.fit(rows, dphmm.StateSpace.labels(["a", "b"]))
    >>> model.n_states, model.provenance["private"]
    (2, False)

    Source: docs/learning.md.
    """
    if not isinstance(space, StateSpace):
        raise InvalidInput("space", type(space).__name__, "a StateSpace, such as dphmm.Grid")
    loaded = trajectories_from_table(table, space=space)
    if len(loaded.rejected):
        came = f"{len(loaded.rejected)} rows that cannot be read"
        raise InvalidInput("table", came, "a user, a time and a place or state in every row")
    rows = loaded.trajectories
    moving = rows.time is not None and rows.lat is not None
    model, _ = fit_trajectories(
        rows,
        space,
        step=None if step is None else parse_duration(step, "step"),
        max_speed=None if max_speed is None or not moving else float(parse_speed(max_speed, "max_speed")),
        smoothing=smoothing,
        # Of a grid moves to cells nearby become possible, not to every cell there is.
        smoothing_support="neighbours" if space.kind == "grid" else None,
        initial=initial,
        min_count=min_count,
        all_cells=all_cells,
        merge_rare=merge_rare,
        gap=gap,
    )
    return model
