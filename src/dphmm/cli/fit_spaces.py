"""What the states of a fitted model are: cells of a map, or names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.cli.box import Box
    from dphmm.states.grid import Grid
    from dphmm.states.hexes import H3
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Trajectories
    from dphmm.storage.inputs import PathLike
    from dphmm.types import FloatArray

#: Points are laid over a box at this share of the edge of its cells: no cell but a sliver at the rim goes unseen.
_SPACING = 0.4
#: Of H3 cells every pair is a move that gets noise.
MOST_CELLS = 3_000


def check_states(given: Mapping[str, Any]) -> None:
    """Exactly one kind of states, and nothing that belongs to another."""
    chosen = [name for name in ("grid", "h3", "state_column") if given[name] is not None]
    if len(chosen) != 1:
        came = " and ".join("--" + name.replace("_", "-") for name in chosen) or "none"
        raise InvalidInput("states", came, "one of --grid LENGTH --bbox W,S,E,N; --h3 RES; --state-column COL")
    if given["grid"] is not None and given["bbox"] is None:
        raise InvalidInput(
            "--bbox",
            "nothing",
            "W,S,E,N with --grid: taking it from the data would publish the data's extent",
        )
    if given["state_column"] is not None and given["all_cells"]:
        raise InvalidInput("--all-cells", "with --state-column", "--grid, or --h3 with --bbox: names are no cells")
    boxed = given["grid"] is not None or (given["h3"] is not None and (given["epsilon"] or given["all_cells"]))
    if not boxed and given["bbox"] is not None:
        raise InvalidInput("--bbox", given["bbox"], "--grid with it")
    for name in ("answers", "states_file"):
        if given["state_column"] is None and given[name] is not None:
            raise InvalidInput("--" + name.replace("_", "-"), given[name], "--state-column with it")
    if given["states_file"] is not None and is_table(given["answers"]):
        raise InvalidInput("--states-file", given["states_file"], "none: --answers FILE lists the names already")


def space_of(given: Mapping[str, Any], trajectories: Trajectories) -> StateSpace:
    """The states of a fit without privacy, which may be taken from the data."""
    from dphmm.states import H3, ordered_labels, space_of_names

    if given["grid"] is not None:
        from dphmm.cli.box import check_inside

        grid = _grid(given)
        check_inside(grid, trajectories, given["bbox"])
        return grid
    if given["h3"] is not None and given["all_cells"]:
        return _cells_of_box(given)
    if given["h3"] is not None:
        if trajectories.lat is None or trajectories.lon is None:
            raise InvalidInput("--h3", "rows without places", "columns lat and lon")
        return H3.covering(trajectories.lat, trajectories.lon, given["h3"])
    listed = _listed(given)
    if listed is not None:
        return listed
    assert trajectories.state is not None
    return space_of_names(ordered_labels(trajectories.state.tolist()), given["answers"])


def is_table(answers: str | None) -> bool:
    """Whether --answers names a table of numbers."""
    from dphmm.states.space import ANSWERS_OF_NAMES

    return answers is not None and answers not in ANSWERS_OF_NAMES


def public_space(given: Mapping[str, Any], private: PathLike) -> StateSpace:
    """The states of a fit with privacy: all of them, and none from the data, the file ``private``."""
    from dphmm.storage.private_tables import refuse_private

    for name in ("states_file", "answers"):
        if given[name] is not None and not (name == "answers" and not is_table(given[name])):
            refuse_private(given[name], private, "--" + name.replace("_", "-"), called="TRAJ")

    if given["grid"] is not None:
        return _grid(given)
    if given["h3"] is not None:
        return _cells_of_box(given)
    listed = _listed(given)
    if listed is None:
        expected = (
            "a table of the names there can be, with --epsilon: those in the data are not public (or --answers FILE)"
        )
        raise InvalidInput("--states-file", "nothing", expected)
    return listed


def _cells_of_box(given: Mapping[str, Any]) -> H3:
    from dphmm.cli.box import parse_box

    if given["bbox"] is None:
        expected = (
            "W,S,E,N with --h3 and --epsilon or --all-cells: the cells that were visited are not public, "
            "those of a box are"
        )
        raise InvalidInput("--bbox", "nothing", expected)
    return cells_over(parse_box(given["bbox"]), given["h3"])


def cells_over(box: Box, resolution: int, option: str = "--h3", why: str = ", of which every pair gets noise") -> H3:
    """The H3 cells over a box: those of points laid closely over it, rims included."""
    from dphmm.states import H3

    spacing = _SPACING * _edge(resolution)
    west, east = box.west, box.east if box.east > box.west else box.east + 360.0
    lats = _points(box.south, box.north, spacing / 111_000.0)
    widest = float(np.cos(np.radians(0.0 if box.south < 0 < box.north else min(abs(box.south), abs(box.north)))))
    lons = _points(west, east, spacing / (111_400.0 * max(widest, 1e-3)))
    # Some 16 points fall into a cell.
    if len(lats) * len(lons) > 40 * MOST_CELLS:
        raise _too_many(resolution, option, why)
    lat, lon = np.meshgrid(lats, (lons + 180.0) % 360.0 - 180.0, indexing="ij")
    space = H3.covering(lat.ravel(), lon.ravel(), resolution)
    if space.n_states > MOST_CELLS:
        raise _too_many(resolution, option, why)
    return space


def _edge(resolution: int) -> float:
    """Mean edge of a cell in metres; an edge shrinks by the square root of 7 with each resolution."""
    return float(1_281_256.0 / 7.0 ** (min(max(resolution, 0), 15) / 2))


def _points(low: float, high: float, spacing: float) -> FloatArray:
    count = min(int(np.ceil((high - low) / spacing)) + 1, 10**6)
    return np.linspace(low, high, max(count, 2))


def _too_many(resolution: int, option: str, why: str) -> InvalidInput:
    expected = f"at most {MOST_CELLS}{why}: a coarser RES or a smaller --bbox"
    return InvalidInput(option, f"{resolution}, with more cells in the box", expected)


def _grid(given: Mapping[str, Any]) -> Grid:
    from dphmm.cli.box import parse_box
    from dphmm.cli.quantities import length
    from dphmm.states import Grid

    return Grid.from_bounds(*parse_box(given["bbox"]), cell=length(given["grid"], "--grid"))


def _listed(given: Mapping[str, Any]) -> StateSpace | None:
    """The states of --answers FILE or --states-file."""
    from dphmm.states import space_of_names

    if is_table(given["answers"]):
        from dphmm.cli.answers import space_of_answers

        return space_of_answers(given["answers"])
    if given["states_file"] is None:
        return None
    return space_of_names(listed_names(given["states_file"], "--states-file", "state"), given["answers"])


def listed_columns(path: str, option: str, columns: Sequence[str]) -> list[list[Any]]:
    """The texts in these columns of a public table with rows, in its order; None for an empty cell."""
    from dphmm.storage.columns import as_text
    from dphmm.storage.csv_files import listed
    from dphmm.storage.inputs import checked_input
    from dphmm.storage.tables import column_names, read_table

    found = column_names(checked_input(path, option))
    for column in columns:
        if column not in found:
            raise InvalidInput(option, f"columns {listed(found)}", f"a column {column} that lists the names")
    table = read_table(path, columns=list(columns), text=None)
    if not table.num_rows:
        raise InvalidInput(option, f"{path}, with no rows", f"the names there can be, in column {columns[0]}")
    return [as_text(table.column(column), column).to_pylist() for column in columns]


def listed_names(path: str, option: str, column: str) -> list[str]:
    """The names in one column of a table, in its order; no message repeats one, in case the table is the data."""
    from dphmm.states.space import check_names

    (names,) = listed_columns(path, option, (column,))
    try:
        return list(check_names(names, len(names)))
    except InvalidInput:
        expected = "each name once, with no control characters: a list of the names there can be, not data"
        raise InvalidInput(option, f"{path}, with names that cannot be or that repeat", expected) from None
