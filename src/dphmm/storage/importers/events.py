"""Sequences that begin and end: event logs, sessions, careers, patients. An event is a row, a trace a person.

Steps are positions. Rows of a case are in the order of their times, ties by their place in the source; a time is
kept as the moment of its row (`dphmm.accounting.moments.event_moments`), which a ledger goes by and no release shows
unless it is asked to. Cases have random names and are sorted by them, because names and order tell when a case began.
With a ``length`` every case has as many rows, END after its last event, and moments are positions: then nothing but
answers says how long a case is.

Proof: docs/proofs/lengths.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dphmm._checks import one_of, whole
from dphmm.accounting.moments import TIES, event_moments
from dphmm.errors import InvalidInput
from dphmm.states.trajectory import Counts, Trajectories
from dphmm.storage.case_names import random_names
from dphmm.storage.importers.documents import unless_named
from dphmm.storage.importers.folders import is_many
from dphmm.storage.importers.imported import Imported, sorted_by_name_and_time
from dphmm.storage.importers.rows import import_csv
from dphmm.storage.importers.sequences import import_sequences
from dphmm.storage.importers.xes import XES
from dphmm.storage.inputs import PathLike
from dphmm.storage.layouts import Progress
from dphmm.types import Bits

#: How cases are called.
CASE_NAMES = ("random", "kept")
#: Milliseconds around 1970, or cells of an order, whose moments an order column holds exactly.
_FARTHEST = 2**53 // TIES
_XES = (".xes", ".xes.gz")


def import_events(
    source: PathLike,
    *,
    columns: str | None = None,
    length: int | None = None,
    case_names: str = "random",
    names_file: PathLike | None = None,
    bits: Bits | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Imported:
    """Cases of an event log: XES, a table with the standard names of its columns, or with ``columns`` a wide table.

    Parameters
    ----------
    source : a .xes file, a folder or archive of them, or a .csv, .csv.gz, .txt or .parquet table, whose columns are
        ``case:concept:name``, ``concept:name`` and ``time:timestamp`` unless options name others.
    columns : "A:B", the first and the last column of states in a wide table, one case a row.
    length : a public number: every case has so many rows. Longer ones are cut, and END stands after shorter ones.
    case_names : "random", or "kept", as in the source.
    names_file : the table of random names, for you alone; known cases keep theirs.
    bits : a source of words that can be replayed, for tests.
    options : as `dphmm.storage.import_trajectories` takes them of the format that is read. ``lifecycle`` is "complete"
        (the default), "start" or "all": the events that are read where a log has transitions. Without one it is
        complete.

    Events of a case beyond 1,000 of one millisecond are dropped, and so are those before 1685 and after 2254; they are
    counted as same_moment.

    Raises
    ------
    InvalidInput : as the importers of these formats; for random names without a ``names_file``.
    """
    one_of(case_names, CASE_NAMES, "case_names")
    if length is not None:
        length = whole(length, "length", 1)
    if case_names == "random" and names_file is None:
        raise InvalidInput("names_file", "nothing", "where random names are kept; or case_names=kept")
    options = {name: value for name, value in options.items() if value is not None}
    if columns is not None:
        if beside := sorted(options.keys() - {"user_column", "spelling"}):
            raise InvalidInput(
                beside[0], "an option beside columns", "user_column= alone: a row of a wide table is a case"
            )
        read = import_sequences(source, columns=columns, progress=progress, **options)
    elif is_many(source) or Path(source).name.lower().endswith(_XES):
        read = XES.importer("events")(source, progress=progress, **{"lifecycle": "complete", **options})
    else:
        options = {"lifecycle": "complete", **unless_named(options, XES.columns), **options}
        read = import_csv(source, progress=progress, **options)
    cases, dropped = in_positions(read.trajectories, length)
    if case_names == "random":
        assert names_file is not None
        spelling = options.get("spelling") or "same"
        names = random_names(cases.users, names_file, spelling=spelling, bits=bits)
        cases = sorted_by_name_and_time(replace(cases, users=tuple(names)))
    padded = [] if length is None else [f"every case has {length} rows, END after its last event"]
    counts = {**read.report.dropped, **dropped}
    report = replace(read.report, format="events", kept=len(cases), users=cases.n_users, dropped=Counts(counts))
    return Imported(cases, replace(report, notes=(*report.notes, *padded)), read.rejected)


def in_positions(rows: Trajectories, length: int | None = None) -> tuple[Trajectories, Counts]:
    """Events in the order of their moments, or with a ``length`` of their positions; the number dropped.

    Rows are by user and time, as importers give them. Without times, order or steps they stay as they stand.
    """
    events = rows.placed
    mark = events.order if events.time is None else np.floor_divide(events.time, 1000)
    if mark is None:
        mark = events.step
    dropped = Counts({})
    if mark is not None:
        same = np.concatenate([[False], (mark[1:] == mark[:-1]) & (events.user[1:] == events.user[:-1])])[: len(mark)]
        place = np.arange(len(mark)) - np.maximum.accumulate(np.where(same, 0, np.arange(len(mark))))
        fits = (place < TIES) & (np.abs(mark) < _FARTHEST)
        dropped = Counts({"same_moment": int((~fits).sum())})
        events, mark, place = events.take(fits), mark[fits], place[fits]
        events = replace(events, time=None, step=None, trip=None, order=event_moments(mark, place), counted=True)
    here, user = np.unique(events.user, return_inverse=True)
    users = tuple(events.users[number] for number in here.tolist())
    events = replace(events, users=users, user=user.astype(np.int32))
    if length is not None:
        events = events.padded(length)
    return events, dropped
