"""Cells of people's rows: the roles of columns, the reading of cells, and the rows that are set aside.

Each cell is judged by itself; nobody's row decides about another person's. Rows are numbered before any is dropped.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphmm.accounting.person import key_by
from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import no_time_bins, not_of_time_bins
from dphmm.storage import columns
from dphmm.storage.columns import REASONS as TIME_REASONS
from dphmm.storage.columns import Numbering, Times
from dphmm.storage.csv_files import listed, looks_like_data
from dphmm.storage.layouts import LIFECYCLE, PLAIN, ROLES, Layout
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


#: Why a row is rejected, in the order of the checks.
REASONS = (
    "",
    "missing_user",
    *TIME_REASONS,
    "invalid_step",
    "invalid_order",
    "invalid_place",
    "missing_state",
    "ragged_row",
    "invalid_state",
    "wrong_encoding",
    "missing_points",
    "invalid_interval",
    "too_many_steps",
)
#: What a reason does not say by its name.
_MEANINGS = {"invalid_place": "lat -90..90, lon -180..180 or 0..360"}
#: The column of users that are said by the layout or by the name of a file, which no header has.
OWNER = "\x00user"
# Names under which a place is found when none is given.
LATITUDES, LONGITUDES = ("lat", "latitude"), ("lon", "lng", "long", "longitude")
#: Names of a column of transitions, which an event log has.
_LIFECYCLE = re.compile(r"(?i)lifecycle(?:[\W_]?(?:transition|id|status))?")


def explained(reason: str) -> str:
    """A reason for people: with the ranges of places, which its name does not tell."""
    return f"{reason} (not {_MEANINGS[reason]})" if reason in _MEANINGS else reason


@dataclass(frozen=True)
class Roles:
    """The column of the table for each role; None for a role without one."""

    user: str
    time: str | None = None
    step: str | None = None
    order: str | None = None
    lat: str | None = None
    lon: str | None = None
    state: str | None = None
    trip: str | None = None
    lifecycle: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns to read, each once."""
        marks = (self.time, self.step, self.order)
        names = (self.user, *marks, self.lat, self.lon, self.state, self.trip, self.lifecycle)
        return list(dict.fromkeys(name for name in names if name is not None))


def user_column(names: Sequence[str], layout: Layout) -> str:
    """The column of users; `OWNER` where the layout says whose rows they are.

    Raises InvalidInput where nothing says it, or another delimiter cuts the only column.
    """
    if layout.user_name is not None or layout.user_from is not None:
        return OWNER
    user = layout.columns.get("user") or "user"
    if user in names:
        return user
    if (delimiter := delimiter_within(names)) is not None:
        raise InvalidInput("user", "one column alone", f"cells that are separated by {delimiter}: delimiter=")
    if layout.columns.get("user") is not None:
        raise InvalidInput("user_column", user, "one of " + listed(names))
    expected = "a column user, or user_column="
    if layout.importing:
        expected = "user_column=, user_name= for one person, or user_from=file-name"
        if looks_like_data(names):
            expected += "; names= where the first row is none of names"
    raise InvalidInput("user", "no such column among " + listed(names), expected)


def delimiter_within(names: Sequence[str]) -> str | None:
    """Another delimiter, as ``delimiter`` takes it, that cuts the name of the only column; None where none does."""
    sign = next((sign for sign in ";\t| ," if sign in names[0]), None) if len(names) == 1 else None
    return None if sign is None else {";": "semicolon", "\t": "tab", " ": "space", ",": "comma"}.get(sign, sign)


def column_roles(names: Sequence[str], layout: Layout = PLAIN, space: StateSpace | None = None) -> Roles:
    """The column of each role, from the names of the table and those that the layout gives.

    ``space`` : the space of the rows' states; then only the columns of states or places in it are taken. Raises
    InvalidInput for a column that is not there, and for a table that cannot be of the states of the space.
    """
    chosen = {role: layout.columns.get(role) for role in ROLES}

    def named(role: str, *usual: str) -> str | None:
        return chosen[role] or next((name for name in usual if name in names), None)

    user = user_column(names, layout)
    for role, name in chosen.items():
        if name is not None and name not in names:
            raise InvalidInput(f"{role}_column", name, "one of " + listed(names))
    ordered = chosen["order"] is not None or (chosen["time"] is None and not {"t", "step"} & set(names))
    order = named("order", "order") if ordered else None
    lat, lon = named("lat", *LATITUDES), named("lon", *LONGITUDES)
    if (chosen["state"] is not None and chosen["lat"] is None) or lat is None or lon is None:
        lat = lon = None
    lifecycle = None
    if layout.lifecycle not in (None, "all"):
        lifecycle = lifecycle_column(names)
        if lifecycle is None and layout.lifecycle != "complete":
            raise InvalidInput("lifecycle", f"{layout.lifecycle} of columns {listed(names)}", f"a column {LIFECYCLE}")
    roles = Roles(
        user,
        named("time", *(() if order else ("t",))),
        None if order or "step" not in names else "step",
        order,
        lat,
        lon,
        named("state", "state"),
        named("trip", "trip"),
        lifecycle,
    )
    if lat is None and roles.state is None:
        raise InvalidInput("place", "columns " + listed(names), "lat and lon, or state (state_column=)")
    if layout.no_times:
        roles = replace(roles, time=None)
    if space is None:
        return roles
    if space.on_map:
        return roles if lat is None else replace(roles, state=None)
    if roles.state is None:
        raise InvalidInput("lat, lon", "places", "a state column: the model's states are not places")
    return replace(roles, lat=None, lon=None)


def lifecycle_column(names: Sequence[str]) -> str | None:
    """The column of transitions in a lifecycle: lifecycle, lifecycle:transition, lifecycle_id, ..."""
    return next(filter(_LIFECYCLE.fullmatch, names), None)


def times_of(layout: Layout, field: str) -> Times:
    """The reader of a column of times, by the layout."""
    return Times(field, layout.timezone, layout.time_format, layout.fold)


class CellReader:
    """Reads the parts of one table in turn, and keeps which rows of all of them are rejected.

    ``layout`` says how users, times and numbers are written. ``bins``: steps are checked to be time bins of so many
    seconds. ``well_formed``: the possible names of states. ``ranked``: rows will be ranked by trip and order, so
    trips are kept. Otherwise only the type of the column of trips is checked.

    A row whose user and moment can be read keeps its step where steps are the ranks of rows, without a place: latitude
    and longitude NaN, state -1. It is rejected unless its cells are empty, as `import` writes them.
    """

    def __init__(
        self,
        roles: Roles,
        layout: Layout = PLAIN,
        *,
        bins: int | None = None,
        well_formed: Callable[[str], bool] | None = None,
        ranked: bool = True,
    ) -> None:
        self.roles, self.bins = roles, bins
        self._ranked, self._well_formed, self._decimal = ranked, well_formed, layout.decimal
        self._ranks_steps, self._importing = bins is None and roles.step is None, layout.importing
        self.times = times_of(layout, roles.time or "t")
        self.users, self.states, self.trips = Numbering(key_by(layout.spelling)), Numbering(), Numbering()
        self.lifecycle = layout.lifecycle
        #: How many rows are of events of another transition, and left out.
        self.of_others = 0
        #: How many rows were read.
        self.n_rows = 0
        #: How many of them have empty cells in the place of a place or state, and are not rejected.
        self.without_place = 0
        # Numbers of the rejected rows, from 0, and the reasons.
        self._rejected, self._why = list[IntArray](), list[NDArray[np.int8]]()

    def read(self, table: pa.Table) -> dict[str, NDArray[Any]]:
        """The columns of the next rows, without the rejected ones; users, states and trips by number.

        Raises InvalidInput for a column of a wrong type or of timestamps without a zone.
        """
        part: dict[str, NDArray[Any]] = {}
        why = np.zeros(len(table), dtype=np.int8)

        def mark(bad: BoolArray, reason: str) -> None:
            why[bad & (why == 0)] = REASONS.index(reason)

        roles = self.roles
        part["user"], bad = self.users.add(table.column(roles.user), roles.user)
        mark(bad, "missing_user")
        if roles.time is not None:
            part["time"], marks = self.times.add(table.column(roles.time))
            for reason in TIME_REASONS:
                mark(marks.get(reason, why > 0), reason)
        if roles.step is not None:
            part["step"], bad = columns.integers(table.column(roles.step), roles.step)
            mark(bad, "invalid_step")
        if roles.order is not None:
            part["order"], bad = columns.integers(table.column(roles.order), roles.order)
            mark(bad, "invalid_order")
        if self.bins is not None and "step" in part:
            mark(not_of_time_bins(part["step"], part.get("time"), self.bins), "invalid_step")
        timed = why == 0
        # What is imported is raw: there a cell is empty because nobody has looked at it.
        empty = timed & (not self._importing)
        if roles.lat is not None and roles.lon is not None:
            part["lat"], part["lon"], bad = places_of(table, roles.lat, roles.lon, self._decimal)
            mark(bad, "invalid_place")
            empty &= columns.nothing(table.column(roles.lat)) & columns.nothing(table.column(roles.lon))
        if roles.state is not None:
            part["state"], bad = self.states.add(table.column(roles.state), roles.state)
            mark(bad, "missing_state")
            empty &= columns.nothing(table.column(roles.state))
            if self._well_formed is not None:
                ill = [not self._well_formed(label) for label in self.states.labels]
                # Number -1, of a missing state, is the last place.
                mark(np.array([*ill, True])[part["state"]], "invalid_state")
        if roles.trip is not None:
            trips = table.column(roles.trip)
            part["trip"], _ = self.trips.add(trips if self._ranked else trips.slice(0, 0), roles.trip)
        if not self._ranked:
            part.pop("trip", None)
        others = np.zeros(len(why), dtype=np.bool_)
        if roles.lifecycle is not None:
            transitions = table.column(roles.lifecycle)
            words = columns.as_text(transitions, roles.lifecycle)
            others = ~columns.matches(words, rf"^\s*(?i:{self.lifecycle})\s*$")
            if self.lifecycle == "complete":
                others &= ~columns.nothing(transitions)
        self.of_others += int(others.sum())
        why[others] = 0
        blank = timed & (why > 0)
        for name, nothing in (("lat", np.nan), ("lon", np.nan), ("state", -1)):
            if name in part:
                part[name] = np.where(blank, nothing, part[name])
        empty &= blank
        why[empty] = 0
        self.without_place += int(empty.sum())
        rejected = np.flatnonzero(why)
        if len(rejected):
            why[rejected[_illegible(table.select(roles.names).take(rejected))]] = REASONS.index("wrong_encoding")
        self._rejected.append(rejected + self.n_rows)
        self._why.append(why[rejected])
        self.n_rows += len(why)
        keep = (why == 0) & ~blank | (blank & self._ranks_steps)
        keep &= ~others
        return part if keep.all() else {name: column[keep] for name, column in part.items()}

    @property
    def alike(self) -> dict[str, str]:
        """Spellings of names that were taken for other ones, and these."""
        return {other: self.users.labels[number] for other, number in self.users.others.items()}

    def rejected(self) -> tuple[IntArray, list[str]]:
        """The rejected rows, from 0 among those that were read, and why."""
        why = np.concatenate([*self._why, np.empty(0, np.int8)])
        return np.concatenate([*self._rejected, np.empty(0, np.int64)]), [REASONS[code] for code in why.tolist()]


def _illegible(table: pa.Table) -> BoolArray:
    """Rows (n,) with bytes, in a column of text, that are not of the text's encoding."""
    import pyarrow as pa

    illegible = np.zeros(len(table), dtype=np.bool_)
    for column in table.columns:
        plain = columns.plain_type(column)
        if pa.types.is_string(plain.type):
            illegible |= columns.matches(plain, "\x1a")
    return illegible


def places_of(table: pa.Table, lat: str, lon: str, decimal: str = ".") -> tuple[FloatArray, FloatArray, BoolArray]:
    """Latitudes and longitudes (n,) in degrees, the latter from -180 to 180, and which of them are no places."""
    latitudes, bad = columns.decimals(table.column(lat), lat, decimal)
    longitudes, also_bad = columns.decimals(table.column(lon), lon, decimal)
    bad = bad | also_bad
    with np.errstate(invalid="ignore"):
        # Longitudes may be written from 0 to 360.
        bad |= ~(np.abs(latitudes) <= 90) | ~((longitudes >= -180) & (longitudes <= 360))
        longitudes = np.where(longitudes > 180, longitudes - 360, longitudes)
    return latitudes, longitudes, bad


class Places:
    """The places of rows in one or several files, including the rows that were in no part."""

    def __init__(self) -> None:
        # Rows in no part by their number in the order of all, and where each file ends in that order.
        self._ragged, self._ends = list[tuple[int, str]](), list[int]()
        self.files = list[str]()

    @property
    def lost(self) -> int:
        """The number of rows that were in no part."""
        return len(self._ragged)

    def end_of_file(self, name: str, rows: int, ragged: Mapping[int, str]) -> None:
        """A file has ended, and ``rows`` were in parts so far; ``ragged`` are its rows that were in none, and why."""
        start = self._ends[-1] if self._ends else 0
        self.files.append(as_utf8(name))
        self._ragged += [(start + row, ragged[row]) for row in sorted(ragged)]
        self._ends.append(rows + len(self._ragged))

    def rejected(self, rows: IntArray, reasons: Sequence[str], several: bool) -> pa.Table:
        """(row, reason) of the rows that were left out, in the order of the source, each reason once.

        ``rows`` : those of the parts, from 0, and ``reasons`` why. A row of a file counts from 1. For ``several`` files
        the name of the file is the first column.
        """
        import pyarrow as pa

        # Rows of the parts are numbered without the ragged rows before them.
        lost = np.array([row for row, _ in self._ragged], dtype=np.int64) - 1
        rows = rows + np.searchsorted(lost - np.arange(len(lost)), rows, side="right")
        rows = np.concatenate([rows, np.array([row - 1 for row, _ in self._ragged], dtype=np.int64)])
        every = np.array([*reasons, *(reason for _, reason in self._ragged)], dtype=np.str_)
        names, why = np.unique(every, return_inverse=True)
        each = np.unique(rows * max(1, len(names)) + why)
        at, why = np.divmod(each, max(1, len(names)))
        ends = np.array(self._ends, dtype=np.int64)
        which = np.searchsorted(ends, at, side="right")
        row = at - np.concatenate([[0], ends])[which] + 1
        arrays = {
            "row": pa.array(row, pa.int64()),
            "reason": pa.array(names, pa.string()).take(pa.array(why, pa.int64())),
        }
        if several:
            arrays = {"file": pa.array([*self.files, ""], pa.string()).take(pa.array(which, pa.int64()))} | arrays
        return pa.table(arrays)


def as_utf8(name: str) -> str:
    """The name of a file as a table can hold it: bytes that are not UTF-8 as Python writes them."""
    return name.encode(errors="backslashreplace").decode()


def nothing_left(
    source: str,
    rows: int,
    reasons: Sequence[str],
    cells: CellReader,
    times: Times,
    sample: pa.Table | None,
    swapped: Sequence[str],
) -> InvalidInput:
    """The error of a source of which no row can be read: the reasons, and what mends the commonest one."""
    if not rows:
        return InvalidInput(source, "0 rows", "at least one row with its columns, below the header if there is one")
    counted = Counter(reasons) + Counter(without_place=cells.without_place, other_transition=cells.of_others)
    if counted["time_without_zone"]:
        return times.zone_missing()
    if counted["invalid_step"] and cells.bins is not None:
        return no_time_bins(cells.bins, cells.roles.time is not None)
    by_reason = ", ".join(f"{count} {explained(reason)}" for reason, count in counted.most_common())
    commonest = next(iter(counted.most_common()), ("", 0))[0]
    remedies = {
        "unclear_unit": "numbers as times need time_format=unix-s, unix-ms or unix-us; "
        "rows without times have order_column=",
        "wrong_encoding": "bytes that are not of the encoding; encoding=latin-1 or cp1252, perhaps",
        "ragged_row": "another number of cells than columns; "
        "delimiter=, names= or skip_lines= may say how lines are cut",
        "other_transition": f"events of another transition than {cells.lifecycle}; lifecycle=all keeps them",
        "invalid_place": next(iter(swapped), "degrees, with a point before decimals; or decimal=comma"),
        "invalid_state": "columns lat and lon, or names such as the model's cells have: "
        "dphmm plan --details --states lists them",
    }
    remedy = remedies.get(commonest, "")
    if commonest == "invalid_time" and sample is not None and times.field in sample.column_names:
        remedy = _form_of_times(sample.column(times.field))
    expected = f"rows ({by_reason})" + (remedy and f": {remedy}")
    return InvalidInput(source, f"0 rows that can be read of {rows}", expected)


def _form_of_times(cells: pa.ChunkedArray) -> str:
    """The form of texts that are not times, 9 for every digit and a for every letter, and a format that may fit."""
    text = next((str(cell).strip() for cell in cells.to_pylist() if cell is not None and str(cell).strip()), "")
    form = re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))[:40]
    if not form.isprintable() or not form:
        return "times in ISO 8601, such as 2008-10-23T02:53:04Z"
    matches = [(re.fullmatch(known, form), pattern) for known, pattern in _KNOWN_FORMS]
    formats = [match.expand(pattern) for match, pattern in matches if match is not None]
    likely = " or ".join(f'"{each}"' for each in formats) or "as strptime has it"
    return f"times have the form {form}; time_format={likely}"


_CLOCKS = ((r"[ T]99?:99:99", " %H:%M:%S"), (r"[ T]99?:99", " %H:%M"), ("", ""))
_KNOWN_FORMS = [
    (date + clock, pattern + time)
    for clock, time in _CLOCKS
    for date, pattern in (
        (r"99?([/.-])99?\1(?:9999)", r"%d\1%m\1%Y"),
        (r"99?(/)99?\1(?:9999)", r"%m\1%d\1%Y"),
        (r"9999([/.-])99?\1(?:99?)", r"%Y\1%m\1%d"),
        (r"(9)9{7}", "%Y%m%d"),
    )
]
