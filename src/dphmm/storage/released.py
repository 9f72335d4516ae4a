"""Released rows: as a table, added up for their statement, read back, and smoothed.

Nothing in a released table depends on the truth but z and what z gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dphmm._cached import cached_property
from dphmm._checks import written_fraction
from dphmm.accounting.budget import EMPTY, Account, float_above
from dphmm.errors import InvalidInput
from dphmm.session.releases import NOT_ASKED, ReleasedRow, Releases
from dphmm.states.space import Labels, StateSpace
from dphmm.states.trajectory import MICROSECONDS
from dphmm.storage.columns import Times, as_text, decimals, integers
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike
from dphmm.storage.tables import column_list, column_names, read_batches, read_whole, to_arrow
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

    from dphmm.session.smoothing import SmoothedSteps


def released_table(rows: Sequence[ReleasedRow], space: StateSpace) -> Any:
    """An Arrow table of released rows; columns as in the contract of released.parquet.

    user, t (UTC; absent without times), step, z_0.. in answer units (of labels z, their names), for maps z_lat and
    z_lon, then epsilon, cost and plan. A row that was not asked has null for z and plan, and 0 for epsilon and cost.
    """
    import pyarrow as pa

    releases = Releases.of(rows)
    columns: dict[str, Any] = {"user": pa.array(releases.users, pa.string())}
    if releases.times is not None:
        columns["t"] = pa.array(releases.times, pa.timestamp("us", tz="UTC"))
    columns["step"] = pa.array(releases.t, pa.int64())
    if isinstance(space, Labels):
        columns["z"] = pa.array(space.labels_of(releases.z_lattice), pa.string(), mask=~releases.asked)
    else:
        columns |= _answers(releases, space)
    columns["epsilon"] = _each([float(term.epsilon) for term in releases.terms], float, releases.term)
    columns["cost"] = _each([float_above(term.cost) for term in releases.terms], float, releases.term)
    hashes = [term.plan_hash or None for term in releases.terms]
    columns["plan"] = pa.array(_each(hashes, object, releases.term), pa.string())
    return pa.table(columns)


def _answers(releases: Releases, space: StateSpace) -> dict[str, Any]:
    """The columns of answers that are numbers."""
    import pyarrow as pa

    # Rows none of which was asked do not tell of how many axes their answers would be.
    z = releases.z if releases.asked.any() else np.zeros((len(releases), space.dimension))
    z = z.reshape(-1, space.dimension)
    columns = {f"z_{j}": z[:, j] for j in range(space.dimension)}
    place = space.to_latlon(z)
    if place is not None:
        columns |= {"z_lat": place[0], "z_lon": place[1]}
    return {name: pa.array(values, mask=~releases.asked) for name, values in columns.items()}


def _each(values: Sequence[Any], dtype: type, numbers: IntArray) -> Any:
    return np.array(values, dtype=dtype)[numbers]


#: Of so many different totals it is known which users share them.
_MOST_ALIKE = 4096


def text_columns(space: StateSpace) -> list[str]:
    """The columns of a released CSV file that are text, whatever they look like: a label may be 01, or a date."""
    return ["user", "plan", *(["z"] if space.has_labels else [])]


def last_answers(released: PathLike, space: StateSpace) -> list[tuple[str, int, list[int]]]:
    """The last step of every user of a released file that was asked, by name, and its lattice answer.

    Raises InvalidInput for a file that is no released one of these states.
    """
    axes = answer_columns(space)
    if not {"user", "step", "plan", *axes} <= set(column_names(released)):
        raise InvalidInput("output", f"{released}, which is no released file", "the file to rewrite, or a new one")
    last: dict[str, tuple[int, list[int]]] = {}
    for table in read_batches(released, columns=["user", "step", "plan", *axes], text=text_columns(space)):
        for user, step, z in _last_of(table, space):
            if user not in last or step >= last[user][0]:
                last[user] = step, z
    return [(user, *last[user]) for user in sorted(last)]


def _last_of(table: pa.Table, space: StateSpace) -> Iterator[tuple[str, int, list[int]]]:
    """The last of each user's asked rows in a part of a released table."""
    import pyarrow as pa

    plans = as_text(table.column("plan"), "plan").to_pylist()
    table = table.filter(pa.array([bool(plan) for plan in plans], pa.bool_()))
    steps, _ = integers(table.column("step"), "step")
    z = read_answers(table, space, np.ones(len(steps), dtype=np.bool_))
    rows = pa.table({"user": as_text(table.column("user"), "user"), "step": steps, "row": np.arange(len(steps))})
    rows = rows.sort_by([("user", "ascending"), ("step", "ascending")])
    users = rows.column("user").dictionary_encode().combine_chunks().indices.to_numpy(zero_copy_only=False)
    last = rows.take(np.flatnonzero(np.diff(users, append=-1)))
    for user, step, row in zip(*last.to_pydict().values(), strict=True):
        yield user, step, z[row].tolist()


#: Columns of a released table that are numbers with a fraction, whatever the numbers in a file are.
_FLOATS = re.compile("z_([0-9]+|lat|lon)|epsilon|cost")


def as_released(table: pa.Table) -> pa.Table:
    """A released table that was read, with the types that a release writes: text tells none of whole numbers.

    Raises InvalidInput for a column of numbers with a cell that is none, and as `as_times`.
    """
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if _FLOATS.fullmatch(field.name):
            try:
                table = table.set_column(at, field.name, table.column(at).cast(pa.float64()))
            except pa.ArrowInvalid:
                raise InvalidInput(field.name, "a cell that is no number", "numbers, as they were released") from None
        elif field.name == "t":
            table = table.set_column(at, field.name, as_times(table.column(at)))
    return table


def as_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times that were read, as a release writes them: UTC, in microseconds. Text stays as it is.

    Raises InvalidInput for a time that is no whole microsecond.
    """
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type):
        return column
    try:
        return column.cast(pa.timestamp("us", tz="UTC"))
    except pa.ArrowInvalid:
        raise InvalidInput("t", "a time that is no whole microsecond", "times, as they were released") from None


class Counted(msgspec.Struct, frozen=True):
    """The sums over some rows of a file, as data: parts that share no user make a `FileSums` (`of_parts`).

    ``epsilon`` and ``nanos`` are those of `FileSums.largest`.
    """

    rows: int
    not_asked: int
    constants: int
    replayable: int
    mechanisms: dict[str, int]
    plans: list[str]
    subjects: int
    epsilon: str
    nanos: str


class FileSums:
    """The sums over a published file, added up as it is written: counts and sums over public rows."""

    def __init__(self, rows: Iterable[ReleasedRow] = ()) -> None:
        self.rows = self.not_asked = self.constants = self.replayable = 0
        self.mechanisms: Counter[str] = Counter()
        self.plans: set[str] = set()
        self._accounts: dict[str, Account] = {}
        self._alike: dict[Account, Account] = {}
        #: Of parts that were counted elsewhere: how many users they have, and their largest totals.
        self._elsewhere = 0, EMPTY
        self.add(rows)

    @classmethod
    def of_parts(cls, parts: Iterable[Counted]) -> FileSums:
        """The sums over several parts of a file; no user has rows in two of them."""
        together = cls()
        for part in parts:
            together.rows += part.rows
            together.not_asked += part.not_asked
            together.constants += part.constants
            together.replayable += part.replayable
            together.mechanisms.update(part.mechanisms)
            together.plans.update(part.plans)
            subjects, largest = together._elsewhere
            account = Account(written_fraction(part.epsilon), int(part.nanos))
            together._elsewhere = subjects + part.subjects, _largest((largest, account))
        return together

    def counted(self) -> Counted:
        """The same as data, without names of users."""
        largest = self.largest
        return Counted(
            rows=self.rows,
            not_asked=self.not_asked,
            constants=self.constants,
            replayable=self.replayable,
            mechanisms=dict(self.mechanisms),
            plans=sorted(self.plans),
            subjects=self.subjects,
            epsilon=str(largest.epsilon),
            nanos=str(largest.nanos),
        )

    def add(self, rows: Iterable[ReleasedRow]) -> None:
        """Count some more rows."""
        releases = rows if isinstance(rows, Releases) else Releases.of(list(rows))
        self.rows += len(releases)
        self.replayable += int(np.count_nonzero(~releases.secure & releases.asked))
        for number, count in Counter(releases.term.tolist()).items():
            terms = releases.terms[number]
            if terms == NOT_ASKED:
                self.not_asked += count
                continue
            self.constants += count * terms.constant
            self.mechanisms[terms.mechanism] += count
            self.plans.add(terms.plan_hash)
        for user, number, count in _runs(releases):
            terms = releases.terms[number]
            account = self._accounts.get(user, EMPTY)
            self._accounts[user] = account.plus_times(terms.epsilon, terms.cost, count)
        # Most users of a table have the same totals as others: each is kept once.
        alike: dict[Account, Account] = self._alike if len(self._alike) < _MOST_ALIKE else {}
        for user in set(releases.users) & self._accounts.keys():
            account = self._accounts[user]
            self._accounts[user] = alike.setdefault(account, account)
        self._alike = alike

    @property
    def users(self) -> Iterable[str]:
        """The names of the users that have rows."""
        return self._accounts.keys()

    @property
    def subjects(self) -> int:
        """The number of users with rows."""
        return len(self._accounts) + self._elsewhere[0]

    @property
    def unanswered(self) -> int:
        """The number of users with rows and no spending: if nothing is a constant, those without an answer."""
        return sum(account == EMPTY for account in self._accounts.values())

    @property
    def largest(self) -> Account:
        """The largest total epsilon, and the largest total cost, of any one subject."""
        return _largest([*self._accounts.values(), self._elsewhere[1]])


def _runs(releases: Releases) -> Iterator[tuple[str, int, int]]:
    """(user, number of terms, rows) of rows that follow each other and are alike in both."""
    names = np.array(releases.users, dtype=np.object_)
    first = run_starts(names, releases.term)
    counts = np.diff(first, append=len(names))
    yield from zip(names[first].tolist(), releases.term[first].tolist(), counts.tolist(), strict=True)


def _largest(accounts: Collection[Account]) -> Account:
    """The largest of each total."""
    return Account(
        max(account.epsilon for account in accounts),
        max(account.nanos for account in accounts),
    )


def run_starts(*columns: NDArray[Any]) -> IntArray:
    """The rows, from 0, at which any of these columns (n,) changes; the first row is one of them."""
    change = np.ones(len(columns[0]), dtype=np.bool_)
    change[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(change)


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """The rows (n,) of a released table in its order; ``times`` is its column t (`as_times`), None without one.

    A row that was not asked has no plan, "", and 0 as z.
    """

    users: list[str]
    times: Any
    step: IntArray
    z: IntArray
    epsilon: FloatArray
    plans: list[str]

    def origin(self, rows: IntArray, seconds: int | None) -> str:
        """The number of step 1's time bin of a user with these rows (n,); "" without a time that can be read."""
        if seconds is None or self.times is None:
            return ""
        micros, known = self._moments
        timed = rows[known[rows]]
        if not len(timed):
            return ""
        return str(int(micros[timed[0]] // (seconds * MICROSECONDS)) - int(self.step[timed[0]]) + 1)

    @cached_property
    def _moments(self) -> tuple[IntArray, BoolArray]:
        """The microseconds (n,) since 1970 of the rows, and which have a time."""
        micros, marks = Times("t", "UTC").add(self.times)
        return micros, ~np.logical_or.reduce(list(marks.values()))

    def by_user(self) -> list[tuple[str, IntArray]]:
        """Each user's row numbers in order of step, users in order of their names."""
        _, first, number = np.unique(np.array(self.users, dtype=object), return_index=True, return_inverse=True)
        order = np.lexsort((self.step, number))
        parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
        return [(self.users[at], rows) for at, rows in zip(first.tolist(), parts, strict=True)]


def columns_needed(space: StateSpace) -> list[str]:
    """The columns of a released table that smoothing reads, t apart."""
    return ["user", "step", *answer_columns(space), "epsilon", "plan"]


def answer_columns(space: StateSpace) -> list[str]:
    """The columns of released answers: z for labels, z_0.. for numbers."""
    return ["z"] if space.has_labels else [f"z_{j}" for j in range(space.dimension)]


def read_answers(table: Any, space: StateSpace, asked: BoolArray) -> IntArray:
    """The lattice answers (n, d) in the columns of an Arrow table; 0 where a row was not ``asked`` (n,).

    Raises InvalidInput for a cell that cannot be read, or is none of the space's, and for an answer that was not asked.
    """
    values: list[Any] = []
    for name in answer_columns(space):
        if space.has_labels:
            cells = [cell or "" for cell in as_text(table.column(name), name).to_pylist()]
            column: Any = space.indices_of(np.array(cells, dtype=object))
            empty = np.array([not cell for cell in cells], dtype=np.bool_)
            bad = column < 0
        else:
            column, bad = decimals(table.column(name), name)
            empty = bad
        _refuse(name, bad & asked)
        if (~empty & ~asked).any():
            fault = f"{int((~empty & ~asked).sum())} answers in rows without a plan"
            raise InvalidInput(name, fault, "none in a row that was not asked, as released")
        values.append(column)
    z = np.stack(values, axis=1)
    answers = np.zeros(z.shape, dtype=np.int64)
    try:
        answers[asked] = space.frame.to_lattice(z[asked].astype(np.float64))
    except InvalidInput:
        fault = "an answer off the lattice of the space"
        raise InvalidInput("z_0", fault, "answers as they were released, from this space") from None
    return answers


def check_columns(names: Sequence[str], space: StateSpace) -> None:
    """Refuse a table that is no released table of this space."""
    missing = next((name for name in columns_needed(space) if name not in names), None)
    if missing is not None:
        raise InvalidInput(missing, f"columns {listed(list(names))}", "a released table, with the column " + missing)
    if not space.has_labels and f"z_{space.dimension}" in names:
        fault = f"answers of more than {space.dimension} dimensions"
        raise InvalidInput(f"z_{space.dimension}", fault, "a table released from this space")


def released_rows(table: Any, space: StateSpace) -> ReleasedRows:
    """The rows of a released pandas, polars or Arrow table.

    Raises InvalidInput for a missing column, a cell that cannot be read, answers off the lattice, and no row at all.
    """
    table = read_whole(table)
    names = column_list(table)
    check_columns(names, space)
    timed = ["t"] if "t" in names else []
    arrow = to_arrow(table, [*columns_needed(space), *timed])
    if not len(arrow):
        raise InvalidInput("table", "0 rows", "at least one released row")
    steps, bad = integers(arrow.column("step"), "step")
    _refuse("step", bad)
    plans = [plan or "" for plan in as_text(arrow.column("plan"), "plan").to_pylist()]
    asked = np.array([plan != "" for plan in plans], dtype=np.bool_)
    z = read_answers(arrow, space, asked)
    epsilon, bad = decimals(arrow.column("epsilon"), "epsilon")
    _refuse("epsilon", bad)
    users = as_text(arrow.column("user"), "user").to_pylist()
    _refuse("user", np.array([user is None for user in users]))
    times = as_times(arrow.column("t")) if timed else None
    return ReleasedRows(users, times, steps, z, epsilon, plans)


def smoothed_table(rows: ReleasedRows, smoothed: SmoothedSteps, space: StateSpace) -> Any:
    """An Arrow table of the released rows, smoothed.

    user, t (where there are times), step, smoothed_0.. (posterior mean, answer units; not of labels), smoothed (the
    likeliest state's name), probability (of that state), for maps smoothed_lat and smoothed_lon; where they were asked
    for, path (the state on the likeliest path), for maps path_lat and path_lon, and marginals (a list of N).
    """
    import pyarrow as pa

    columns: dict[str, Any] = {"user": pa.array(rows.users, pa.string())}
    if rows.times is not None:
        columns["t"] = rows.times
    columns["step"] = pa.array(rows.step, pa.int64())
    if not space.has_labels:
        columns |= {f"smoothed_{j}": smoothed.mean[:, j] for j in range(space.dimension)}
    names = np.array(space.names, dtype=object)
    columns["smoothed"] = pa.array(names[smoothed.state], pa.string())
    columns["probability"] = smoothed.probability
    places = {"smoothed": smoothed.mean}
    if smoothed.path is not None:
        columns["path"] = pa.array(names[smoothed.path], pa.string())
        places["path"] = space.own_answers[smoothed.path]
    for name, points in places.items():
        place = space.to_latlon(points)
        if place is not None:
            columns[f"{name}_lat"], columns[f"{name}_lon"] = place
    if smoothed.marginals is not None:
        flat = pa.array(smoothed.marginals.ravel(), pa.float64())
        columns["marginals"] = pa.FixedSizeListArray.from_arrays(flat, space.n_states).cast(pa.list_(pa.float64()))
    return pa.table(columns)


def _refuse(name: str, bad: Any) -> None:
    if bad.any():
        raise InvalidInput(name, f"{int(bad.sum())} cells that cannot be read", "a value in every row, as released")
