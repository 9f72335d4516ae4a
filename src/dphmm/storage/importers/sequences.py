"""Sequences of states: MSNBC's .seq text, and wide tables with one person a row and one step a column."""

from __future__ import annotations

from pathlib import Path

from dphmm.errors import InvalidInput
from dphmm.storage.importers.imported import Imported, Progress
from dphmm.storage.importers.seq_text import read_seq
from dphmm.storage.importers.wide_table import read_wide
from dphmm.storage.inputs import PathLike, checked_input, steady
from dphmm.storage.tables import SUFFIXES

_SEQ = (".seq", ".seq.gz")


def import_sequences(
    source: PathLike,
    *,
    columns: str | None = None,
    user_column: str | None = None,
    names: bool = True,
    progress: Progress | None = None,
) -> Imported:
    """State sequences of a .seq or .seq.gz file, or of a wide .csv, .csv.gz or .parquet table.

    A .seq file (UCI MSNBC Anonymous Web Data) has comment lines that start with %, a line of category names,
    (with ``names=False`` there is none) and one sequence of category numbers from 1 per line; users are the numbers of
    the sequences. Of a wide table ``columns`` "A:B" names the first and the last column of states, and ``user_column``
    the one with the person (default: the number of the row). Dropped: bad_sequence (whole, with a number that is no
    category); missing_state (an empty cell, a gap); missing_user; repeated_user (a person's second row); ragged_row.
    Raises InvalidInput for other files.
    """
    path = checked_input(source, "source")
    name = path.name.lower()
    if name.endswith(_SEQ):
        if columns is not None or user_column is not None:
            raise InvalidInput("columns", columns or user_column, "none: a .seq file has no columns")
        with steady(path):
            return _told(read_seq(path, names), progress)
    if not names:
        raise InvalidInput("names", names, "a .seq file with it: a table has names of columns")
    if name.endswith(SUFFIXES):
        if columns is None:
            raise InvalidInput("columns", "nothing", "FIRST:LAST, the first and the last column of states")
        return _told(read_wide(path, columns, user_column), progress)
    raise InvalidInput("source", str(Path(source)), "a name ending in " + ", ".join((*_SEQ, *SUFFIXES)))


def _told(imported: Imported, progress: Progress | None) -> Imported:
    if progress is not None:
        progress(1, 1)
    return imported
