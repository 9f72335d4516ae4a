"""How a source of rows is laid out, and one reader of all such sources.

A `Layout` says how a text is split into records, what the columns are, whose rows they are and how times are written.
Every importer of rows is a layout, or makes one of its options. A source is a table (delimited text or Parquet), or a
folder or archive of texts of one layout. `read_source` goes through it once: the text becomes CSV, the parser makes
columns of text of it, names of people are added where files have them, and `Cells` judges each cell. No row decides
about another one.

Example: of Cabspotting's new_abboip.txt the line ``37.75134 -122.39488 0 1213084687`` is cut at blanks into lat, lon,
occupied and t; the user is abboip, after the file; t is in Unix seconds: one row of the table.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.space import check_names
from dphmm.storage import columns
from dphmm.storage.columns import Times
from dphmm.storage.csv_files import (
    TextFile,
    TextLayout,
    TextMember,
    csv_header,
    csv_names,
    lines_of_rows,
    listed,
    looks_like_data,
    text_parts,
)
from dphmm.storage.inputs import PathLike, checked_input, members, unpacked_bytes
from dphmm.storage.tables import open_parquet, read_batches
from dphmm.storage.trajectories import ROLES, Assembler, Cells, Loaded, Roles, column_roles, explained
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


#: Called with (done, total), in files or bytes, as the work goes on.
Progress = Callable[[int, int], object]
#: Whose rows a file has, where no column says it.
USER_FROM = ("file-name", "folder-name")
#: The column of such users, which no header has.
OWNER = "\x00user"
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
_TEXTS = re.compile(r"(?:^|/)[^./][^/]*\.(?:txt|csv|tsv|dat|data|log)(?:\.gz)?$", re.IGNORECASE)
# Rows gathered from small files before their cells are read together.
_ENOUGH = 1 << 19


@dataclass(frozen=True)
class Layout(TextLayout):
    """How a source of rows is laid out, beyond how its texts are split into records.

    ``columns`` : role (user, time, order, trip, state, lat, lon) -> name of a column; the others are found by name.
    ``user_name`` : whose all rows are. ``user_from`` : file-name or folder-name, of which the first group of
    ``user_pattern`` is the user; files whose name it does not match are left out. ``time_format`` as `Times` takes it.
    ``no_times`` : rows are taken in the order of the file. ``spelling`` as in `load_trajectories`. ``files`` : which
    members of an archive are read.

    Raises InvalidInput for parts that contradict each other.
    """

    columns: Mapping[str, str | None] = field(default_factory=dict)
    user_name: str | None = None
    user_from: str | None = None
    user_pattern: str | None = None
    time_format: str = "auto"
    assume_utc: bool = False
    timezone: str | None = None
    no_times: bool = False
    spelling: str = "same"
    files: re.Pattern[str] = _TEXTS
    #: What mends latitudes and longitudes that are swapped.
    unswapping: str = "lat_column=, lon_column="
    other_encoding: ClassVar[str] = "encoding UTF-8; encoding=latin-1, cp1252 or utf-16, perhaps"

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [
            name
            for name, value in (
                ("user_column", self.columns.get("user")),
                ("user_name", self.user_name),
                ("user_from", self.user_from),
            )
            if value is not None
        ]
        if len(given) > 1:
            raise InvalidInput(given[1], f"a second rule beside {given[0]}", "one rule of whose rows they are")
        if self.user_name is not None:
            check_names([self.user_name], 1)
        if self.user_from is not None and self.user_from not in USER_FROM:
            raise InvalidInput("user_from", self.user_from, " or ".join(USER_FROM))
        if self.user_pattern is not None:
            if self.user_from is None:
                raise InvalidInput("user_pattern", self.user_pattern, "user_from= with it")
            try:
                groups = re.compile(self.user_pattern).groups
            except re.error:
                groups = 0
            if groups < 1:
                raise InvalidInput("user_pattern", self.user_pattern, "a regular expression with a group: new_(.+)")
        if self.no_times and self.columns.get("time") is not None:
            raise InvalidInput("no_times", "both times and none", "either")

    def owner_of(self, name: str) -> str | None:
        """The user of a file by its name inside the source; None for a file that is left out."""
        path = PurePosixPath(name)
        part = path.parent.name if self.user_from == "folder-name" else _stem(path.name)
        if self.user_pattern is None:
            return part
        found = re.fullmatch(self.user_pattern, part)
        return None if found is None else found[1]

    def changed(self, **options: Any) -> Layout:
        """This layout with options of the command line or of an importer, by the names that these have.

        ``user_column`` and so on name columns, ``names`` may be one text with commas, ``skip_lines`` is ``skip``,
        ``user`` is ``user_name``, and ``delimiter`` may be comma, semicolon, tab, tabs (several are one) or space
        (several blanks and tabs are one). Options that are None stay as they are. Raises InvalidInput for others.
        """
        given = {name: value for name, value in options.items() if value is not None}
        unknown = sorted(given.keys() - _OPTIONS)
        if unknown:
            raise InvalidInput("options", unknown[0], "one of " + ", ".join(sorted(_OPTIONS)))
        if "user" in given:
            given["user_name"] = given.pop("user")
        columns = {role: given.pop(f"{role}_column") for role in ROLES if f"{role}_column" in given}
        if columns:
            given["columns"] = {**self.columns, **columns}
        if "skip_lines" in given:
            given["skip"] = given.pop("skip_lines")
        if isinstance(given.get("names"), str):
            given["names"] = tuple(name.strip() for name in given["names"].split(","))
        if "delimiter" in given:
            named = _DELIMITERS.get(given["delimiter"], given["delimiter"])
            given |= {"delimiter": named, "runs": given["delimiter"] in ("tabs", "space", " ")}
        return replace(self, **given)


#: What `Layout.changed` takes.
_OPTIONS = {f"{role}_column" for role in ROLES} | {
    "assume_utc", "comment", "delimiter", "encoding", "names", "no_times", "quoted", "skip_lines", "spelling",
    "time_format", "timezone", "user", "user_from", "user_name", "user_pattern",
}  # fmt: skip
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "tabs": "\t", "\\t": "\t", "space": " "}


def _stem(name: str) -> str:
    """A file's name without its ending, and without .gz before that."""
    plain = name[:-3] if name.lower().endswith(".gz") else name
    return plain.rpartition(".")[0] or plain


@dataclass(frozen=True)
class Expansion:
    """What a layout whose rows are trips or intervals makes of them: other rows, of the columns of ``roles``.

    ``read`` : the columns that it takes. ``expand`` gives a table, for each of its rows the number of the row, from 0,
    that it is of, and the rows, by reason, that make none. ``times`` : what it reads times with.
    """

    read: tuple[str, ...]
    roles: Roles
    expand: Callable[[pa.Table], tuple[pa.Table, IntArray, dict[str, IntArray]]]
    times: Times


#: Of the names of the columns and a layout, the expansion.
Expanding = Callable[[Sequence[str], Layout], Expansion]


class SourceRows(NamedTuple):
    """What was read of a source: how many ``rows`` in how many ``files``, and ``notes`` to tell of it."""

    loaded: Loaded
    rows: int
    files: int
    notes: tuple[str, ...]
    #: The names of the columns, and whether one of them numbers steps.
    names: tuple[str, ...]
    stepped: bool


class OpenedMember(Protocol):
    """A file of a folder or an archive: what is read of it. All raise InvalidInput for one that cannot be read."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        ...

    def names(self) -> Sequence[str]:
        """The names of its columns."""
        ...

    def tables(self, columns: Sequence[str]) -> tuple[list[pa.Table], list[int]]:
        """Some of its columns, in parts; and its rows, by number, that are in none: they have other cells."""
        ...


class MemberKind(NamedTuple):
    """How files of a folder or an archive are opened, by name and bytes, and how those that are read are named."""

    open: Callable[[str, bytes, Layout], OpenedMember]
    named: str


class _OpenedText:
    """A member that is a text of rows."""

    def __init__(self, name: str, data: bytes, layout: Layout) -> None:
        self._text, self._layout = _member(name, data), layout

    @property
    def is_empty(self) -> bool:
        return not self._text.data.strip()

    def names(self) -> Sequence[str]:
        return csv_names(self._text, self._layout)

    def tables(self, columns: Sequence[str]) -> tuple[list[pa.Table], list[int]]:
        ragged = list[int]()
        written = dict(zip(self.names(), csv_header(self._text, self._layout), strict=True))
        return list(text_parts(self._text, self._layout, written, columns, ragged)), ragged


_TEXT_MEMBERS = MemberKind(_OpenedText, "*.txt, *.csv, *.tsv, *.dat, *.data or *.log")


def read_source(
    source: PathLike,
    layout: Layout,
    *,
    expanding: Expanding | None = None,
    kind: MemberKind = _TEXT_MEMBERS,
    progress: Progress | None = None,
) -> SourceRows:
    """The rows of a table, a folder or an archive of one layout; of the latter two ``kind`` says what files are.

    ``rejected`` has (row, reason), and of a folder or an archive (file, row, reason): rows of a file count from 1 after
    its header. Raises InvalidInput for a source without rows that can be read, with the commonest reason, and as
    `load_trajectories`.
    """
    path = Path(source)
    if is_many(path):
        return _read_many(path, layout, expanding, kind, progress)
    file = checked_input(path, "source")
    owner = _owner_of_all(file.name, layout)
    if file.suffix.lower() == ".parquet":
        _check_plain(layout)
        with open_parquet(file) as opened:
            types = {each.name: each.type for each in opened.schema_arrow}
        found = _Found(list(types), layout, str(path), expanding, types)
        for part in read_batches(file, columns=found.read):
            found.add(part, owner)
    else:
        text = TextFile(file)
        names, ragged = csv_names(text, layout), list[int]()
        found = _Found(names, layout, str(path), expanding)
        written = dict(zip(names, csv_header(text, layout), strict=True))
        for part in text_parts(text, layout, written, found.read, ragged):
            found.add(part, owner)
        found.end_of_file(file.name, dict.fromkeys(ragged, "ragged_row"))
    if progress is not None:
        progress(1, 1)
    rows = found.finish(())
    return rows._replace(files=1, loaded=rows.loaded._replace(rejected=rows.loaded.rejected.drop_columns(["file"])))


def read_rows_of(table: pa.Table, layout: Layout, source: PathLike, times: Collection[str] = ()) -> SourceRows:
    """The same of the rows of an Arrow table that was read from a source without lines.

    ``times`` : columns of text that the source declares to be times.
    """
    import pyarrow as pa

    types = {each.name: pa.timestamp("us") if each.name in times else each.type for each in table.schema}
    found = _Found(table.column_names, layout, str(source), None, types)
    found.add(table.select(found.read), _owner_of_all(Path(source).name, layout))
    rows = found.finish(())
    return rows._replace(files=1, loaded=rows.loaded._replace(rejected=rows.loaded.rejected.drop_columns(["file"])))


def is_many(source: PathLike) -> bool:
    """Whether a source is a folder or an archive."""
    path = Path(source)
    return path.is_dir() or path.name.lower().endswith(_ARCHIVES)


def _owner_of_all(name: str, layout: Layout) -> str | None:
    """The user of all rows of one file, where no column says it."""
    if layout.user_from is None:
        return layout.user_name
    if layout.user_from == "folder-name":
        raise InvalidInput("user_from", layout.user_from, "a folder or an archive with it; file-name for one file")
    owner = layout.owner_of(name)
    if owner is None:
        raise InvalidInput("user_pattern", layout.user_pattern, "one that the name of the file matches")
    return owner


def _check_plain(layout: Layout) -> None:
    """Options of text that a Parquet file has no use for."""
    for name in ("delimiter", "names", "encoding", "comment", "skip"):
        if getattr(layout, name) != getattr(_PLAIN, name):
            option = "skip_lines" if name == "skip" else name
            raise InvalidInput(option, getattr(layout, name), "a text with it: Parquet has columns of its own")


_PLAIN = TextLayout()


def _read_many(
    source: Path, layout: Layout, expanding: Expanding | None, kind: MemberKind, progress: Progress | None
) -> SourceRows:
    """Every file of a folder or an archive, in the order in which it has them.

    A file that cannot be read, or lacks a column that is needed, is left out with all its rows; the others are read.
    """
    found = _Found(_common_names(source, layout, expanding, kind), layout, str(source), expanding)
    left_out, owners, empty, lacking = list[str](), dict[str, int](), list[str](), dict[str, list[str]]()
    for member in members(source, layout.files):
        if progress is not None:
            progress(member.done, member.total)
        if layout.user_from is not None and layout.owner_of(member.name) is None:
            left_out.append(member.name)
            continue
        owner = layout.user_name if layout.user_from is None else layout.owner_of(member.name)
        try:
            opened = kind.open(member.name, member.data, layout)
            if opened.is_empty:
                empty.append(member.name)
                continue
            parts, ragged, missing = _parts_of(opened, found)
        except InvalidInput:
            # It is one person's, and decides about nobody else's rows.
            found.end_of_file(member.name, {1: "unreadable_file"})
            continue
        if missing:
            lacking[member.name] = missing
            rows = sum(map(len, parts)) + len(ragged)
            found.end_of_file(member.name, dict.fromkeys(range(1, rows + 1), "missing_column") | ragged)
            continue
        if not any(map(len, parts)) and not ragged:
            empty.append(member.name)
        for part in parts:
            found.add(part, owner)
        found.end_of_file(member.name, ragged)
        if layout.user_from is not None and owner is not None:
            owners[owner] = owners.get(owner, 0) + 1
    several = sum(count > 1 for count in owners.values())
    notes = [f"{several} user(s) have several files: all files of one name are one person's"] if several else []
    notes += files_told(left_out, f"left out, whose names do not match {layout.user_pattern}")
    notes += files_told(empty, "without a row")
    return found.finish([*notes, *_lacking_told(lacking)])


def _parts_of(opened: OpenedMember, found: _Found) -> tuple[list[pa.Table], dict[int, str], list[str]]:
    """The rows of a file, those of its rows that are in no part, and the columns that it needs and lacks.

    A column that may be missing is empty in all of its rows. Raises InvalidInput for a file that cannot be read.
    """
    import pyarrow as pa

    names = opened.names()
    own = [name for name in found.read if name in names]
    parts, ragged = opened.tables(own or names[:1])
    lacking = [name for name in found.read if name not in names]
    missing = [name for name in lacking if name not in found.optional]
    if not missing:
        for name in lacking:
            parts = [part.append_column(name, pa.nulls(len(part), pa.string())) for part in parts]
        parts = [part.select(found.read) for part in parts]
    return parts, dict.fromkeys(ragged, "ragged_row"), missing


def _common_names(source: Path, layout: Layout, expanding: Expanding | None, kind: MemberKind) -> Sequence[str]:
    """The names of the columns that the files of a folder or an archive have.

    Without a header those of the layout. Of files with headers, those that most people's files have what is read by;
    files count where no file is one person's. A file that lacks a column that is named has no vote: it is left out.
    Raises InvalidInput where there is no file with rows, where what most of them have cannot be read, and where fewer
    than two more have the first columns than any others: then one person decides which rows are read of all others.
    """
    votes: dict[Any, dict[str, tuple[str, ...]]] = {}
    errors: dict[Any, InvalidInput] = {}
    readable: dict[Any, _Found] = {}
    voted, left_out, unread = set[str](), 0, None
    for member in members(source, layout.files):
        owner = member.name if layout.user_from is None else layout.owner_of(member.name)
        if owner is None:
            left_out += 1
            continue
        try:
            opened = kind.open(member.name, member.data, layout)
            if owner in voted or opened.is_empty:
                continue
            names = tuple(opened.names())
        except InvalidInput as error:
            unread = unread or error
            continue
        voted.add(owner)
        if not layout.header:
            return names
        try:
            rows = _Found(names, layout, str(source), expanding)
            read: Any = (True, len(rows.read), *rows.read)
            readable[read] = rows
        except InvalidInput as error:
            if error.field in _NAMED and layout.columns.get(error.field.removesuffix("_column")) is not None:
                unread = unread or error
                continue
            read = (False, 0, str(error))
            errors[read] = error
        votes.setdefault(read, {})[owner] = names
    if not votes:
        if unread is not None:
            raise unread
        expected = f"files named {kind.named}"
        more = f" ({left_out} left out by user_pattern=)" if left_out else ""
        raise InvalidInput("source", f"{source}, without a file that has rows", expected + more)
    chosen, *others = sorted(votes, key=lambda read: (len(votes[read]), read), reverse=True)
    if chosen in errors:
        raise errors[chosen]
    second = next((read for read in others if read in readable), None)
    if second is not None and len(votes[chosen]) - len(votes[second]) < _LEAD:
        raise _nobody_leads(readable[chosen], len(votes[chosen]), readable[second], len(votes[second]))
    return min(votes[chosen].values())


#: With so many more files of one kind than of any other no single person decides.
_LEAD = 2
_NAMED = frozenset(f"{role}_column" for role in ROLES)


def _nobody_leads(first: _Found, many: int, second: _Found, fewer: int) -> InvalidInput:
    """That files of different columns are about as many, and which columns to name."""
    named = [
        f"{role}_column={has}"
        for role in ROLES
        if (has := getattr(first.roles, role) or getattr(second.roles, role)) not in (None, OWNER)
        and getattr(first.roles, role) != getattr(second.roles, role)
    ]
    counts = f"columns {listed(first.read)} in {many} of the files, and {listed(second.read)} in {fewer}"
    expected = f"{_LEAD} more files of one kind than of any other, or columns that are named"
    return InvalidInput("source", counts, expected + (": " + ", ".join(named) if named else ""))


def files_told(names: Sequence[str], what: str) -> list[str]:
    """How many files are so, and the first few by name; nothing where none is."""
    if not names:
        return []
    more = f" and {len(names) - _FILES_TOLD} more" if len(names) > _FILES_TOLD else ""
    files = "1 file" if len(names) == 1 else f"{len(names)} files"
    return [f"{files} {what}: {', '.join(f'{name!a}' for name in names[:_FILES_TOLD])}{more}"]


def _lacking_told(lacking: Mapping[str, Sequence[str]]) -> list[str]:
    """Which files lack a column that is needed: the first few by name."""
    told = [
        f"file {name!a}: no column {listed(missing)}, its rows are left out"
        for name, missing in list(lacking.items())[:_FILES_TOLD]
    ]
    more = len(lacking) - len(told)
    return [*told, f"{more} more file(s) without a column that is read"] if more else told


#: Files that are told by name.
_FILES_TOLD = 3


def _member(name: str, data: bytes) -> TextMember:
    return TextMember(name, unpacked_bytes(data, name) if name.lower().endswith(".gz") else data)


class RowsByFile:
    """Where the rows of several files stand: rows of the parts that were read, and those that were in no part."""

    def __init__(self) -> None:
        # Rows in no part by their number in the order of all, and where each file ends in that order.
        self._ragged, self._ends = list[tuple[int, str]](), list[int]()
        self.files = list[str]()

    @property
    def lost(self) -> int:
        """How many rows were in no part."""
        return len(self._ragged)

    def end_of_file(self, name: str, rows: int, ragged: Mapping[int, str]) -> None:
        """A file has ended, and ``rows`` were in parts so far; ``ragged`` are its rows that were in none, and why."""
        start = self._ends[-1] if self._ends else 0
        self.files.append(_as_utf8(name))
        self._ragged += [(start + row, ragged[row]) for row in sorted(ragged)]
        self._ends.append(rows + len(self._ragged))

    def rejected(self, rows: IntArray, reasons: Sequence[str]) -> pa.Table:
        """(file, row, reason) of the rows that were left out, in the order of the source, each reason once.

        ``rows`` : those of the parts, from 0, and ``reasons`` why. A row of a file counts from 1.
        """
        import pyarrow as pa

        # Rows of the parts are numbered without the ragged rows before them.
        lost = np.array([row for row, _ in self._ragged], dtype=np.int64) - 1
        rows = rows + np.searchsorted(lost - np.arange(len(lost)), rows, side="right")
        found = sorted({*zip(rows.tolist(), reasons, strict=True), *((row - 1, why) for row, why in self._ragged)})
        at = np.array([row for row, _ in found], dtype=np.int64)
        ends = np.array(self._ends, dtype=np.int64)
        which = np.searchsorted(ends, at, side="right")
        starts = np.concatenate([[0], ends])
        names = pa.array([*self.files, ""], pa.string()).take(pa.array(which, pa.int64()))
        reason = pa.array([reason for _, reason in found], pa.string())
        return pa.table({"file": names, "row": pa.array(at - starts[which] + 1, pa.int64()), "reason": reason})


class _Found:
    """Gathers the rows of a source: numbers them by file, gives them their users, and reads their cells."""

    def __init__(
        self,
        names: Sequence[str],
        layout: Layout,
        source: str,
        expanding: Expanding | None,
        types: Mapping[str, Any] | None = None,
    ) -> None:
        self._source, self._names, self._unswapping = source, tuple(names), layout.unswapping
        self._expansion = None if expanding is None else expanding(names, layout)
        self._notes = list[str]()
        if self._expansion is None:
            self.roles = _roles(names, layout, types or {}, self._notes)
            times = (layout.assume_utc, layout.timezone)
            self._cells = Cells(self.roles, *times, time_format=layout.time_format, spelling=layout.spelling)
            self._times, wanted = self._cells.times, self.roles.names
        else:
            self.roles = self._expansion.roles
            self._cells = Cells(self.roles, time_format="unix-us", spelling=layout.spelling)
            self._times, wanted = self._expansion.times, list(self._expansion.read)
        self.read = [name for name in wanted if name != OWNER]
        #: Columns that a file of a folder may lack.
        self.optional = {self.roles.trip} if self._expansion is None else set()
        self._needs_owner = OWNER in wanted
        self._assembler = Assembler(self._cells)
        self._waiting, self._gathered = list[Any](), 0
        self._sample: Any = None
        # Of every row that was read its number in the source, where these are not the same.
        self._origins, self._lost = list[IntArray](), list[tuple[int, str]]()
        self._rows, self._by_file = 0, RowsByFile()

    def add(self, part: pa.Table, owner: str | None) -> None:
        """The next rows of a file, and whose they are where no column says it."""
        import pyarrow as pa

        if self._needs_owner:
            name = pa.scalar(_legible_name(owner), pa.string())
            part = part.append_column(OWNER, pa.repeat(name, len(part)))
        if not len(part):
            return
        self._waiting.append(part)
        self._gathered += len(part)
        if self._gathered >= _ENOUGH:
            self._read_cells()

    def end_of_file(self, name: str, ragged: Mapping[int, str]) -> None:
        """What comes next is of another file; ``ragged`` are the rows of this one that were in no part, and why."""
        self._by_file.end_of_file(name, self._rows + self._gathered, ragged)

    def _read_cells(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        rows = pa.concat_tables(self._waiting)
        self._waiting.clear()
        self._gathered = 0
        if self._sample is None:
            self._sample = rows.slice(0, _SAMPLE)
        first = self._rows
        self._rows += len(rows)
        if self._expansion is not None:
            rows, origin, lost = self._expansion.expand(rows)
            self._origins.append(origin + first)
            self._lost += [(first + int(row), reason) for reason, of in lost.items() for row in of]
        self._assembler.add(rows)

    def finish(self, notes: Sequence[str]) -> SourceRows:
        """All rows, and what to tell of them. Raises InvalidInput where none is left."""
        import pyarrow as pa

        self._read_cells()
        if not self._rows:
            self._assembler.add(pa.table({name: pa.array([], pa.string()) for name in self.roles.names}))
        loaded = self._assembler.finish(self._source, may_be_empty=True)
        rejected = self._rejected(loaded)
        total = self._rows + self._by_file.lost
        if not len(loaded.trajectories):
            swapped = _swapped(self._sample, self.roles, self._unswapping)
            raise nothing_left(self._source, rejected, total, self._times, self._sample, self.roles, swapped)
        notes = (*self._notes, *notes, *_units_told(self._times, self.roles))
        notes += tuple(_swapped(self._sample, self.roles, self._unswapping))
        stepped = self.roles.step is not None
        found = loaded._replace(rejected=rejected)
        return SourceRows(found, total, len(self._by_file.files), notes, self._names, stepped)

    def _rejected(self, loaded: Loaded) -> pa.Table:
        """(file, row, reason) of the rows that were left out, in the order of the source, each reason once."""
        rows = loaded.rejected.column("row").to_numpy().astype(np.int64) - 1
        if self._expansion is not None:
            rows = np.concatenate([*self._origins, np.empty(0, np.int64)])[rows]
        reasons = loaded.rejected.column("reason").to_pylist()
        rows = np.concatenate([rows, np.array([row for row, _ in self._lost], dtype=np.int64)])
        reasons += [reason for _, reason in self._lost]
        return self._by_file.rejected(rows, reasons)


def _legible_name(name: str | None) -> str | None:
    """The name of a file as a user; none where its bytes are not UTF-8, which no table holds."""
    try:
        (name or "").encode()
    except UnicodeEncodeError:
        return None
    return name


def _as_utf8(name: str) -> str:
    """The name of a file as a table can hold it: bytes that are not UTF-8 as Python writes them."""
    return name.encode(errors="backslashreplace").decode()


#: Rows that are looked at for the form of what cannot be read.
_SAMPLE = 200
_TIME_WORDS = frozenset({"t", "ts", "time", "times", "date", "day", "when", "moment", "epoch", "unix", "utc"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def looks_like_times(name: str) -> bool:
    """Whether a column's name says that it has times: t_local, timestamp, pickup_datetime, eventTime."""
    words = [word.lower() for word in _WORD.findall(name)]
    return any(word in _TIME_WORDS or word.endswith(("time", "stamp", "times")) for word in words)


def given_columns(names: Sequence[str], layout: Layout) -> tuple[list[str], dict[str, str | None]]:
    """The names of all columns, with that of a file's user, and those that the layout says, by role.

    Raises InvalidInput where nothing says whose rows they are.
    """
    given: dict[str, str | None] = {role: layout.columns.get(role) for role in ROLES}
    if layout.user_name is not None or layout.user_from is not None:
        return [*names, OWNER], given | {"user": OWNER}
    if given["user"] is None and "user" not in names:
        expected = "user_column=, user_name= for one person, or user_from=file-name"
        _check_cut(names, "user")
        if looks_like_data(names):
            expected += "; names= where the first row is none of names"
        raise InvalidInput("user", "no such column among " + listed(names), expected)
    return list(names), given


def _check_cut(names: Sequence[str], field: str) -> None:
    """Raises InvalidInput where the only column is a row that another delimiter cuts."""
    if (delimiter := delimiter_within(names)) is not None:
        raise InvalidInput(field, "one column alone", f"cells that are separated by {delimiter}: delimiter=")


def delimiter_within(names: Sequence[str]) -> str | None:
    """Another delimiter, as ``delimiter`` takes it, that cuts the name of the only column; None where none does."""
    sign = next((sign for sign in ";\t| ," if sign in names[0]), None) if len(names) == 1 else None
    return None if sign is None else _DELIMITER_NAMES.get(sign, sign)


_DELIMITER_NAMES = {";": "semicolon", "\t": "tab", " ": "space", ",": "comma"}


def _roles(names: Sequence[str], layout: Layout, types: Mapping[str, Any], notes: list[str]) -> Roles:
    """Which column is what. Raises InvalidInput where times are likely in a column that nobody named."""
    import pyarrow as pa

    every, given = given_columns(names, layout)
    try:
        roles = column_roles(every, given)
    except InvalidInput as error:
        _check_cut(names, error.field)
        raise
    others = set(names).difference(replace(roles, time=None).names if layout.no_times else roles.names)
    likely = [
        name
        for name in names
        if name in others and (looks_like_times(name) or pa.types.is_timestamp(types.get(name, pa.null())))
    ]
    if layout.no_times:
        if likely and layout.header:
            notes.append(f"{listed(likely)}: not read, rows are in the order of the file")
        return replace(roles, time=None)
    if roles.time is not None or given["order"] is not None:
        return roles
    if likely and not looks_like_data(names):
        first = listed(likely[:1])
        if roles.step is None:
            expected = f"time_column={first}, or no_times=True to take rows in the order of the file"
            raise InvalidInput("time", f"no column t, but {listed(likely)}", expected)
        notes.append(f"{listed(likely)}: not read, steps count; time_column={first} takes it")
    return roles


def _units_told(times: Times, roles: Roles) -> Iterator[str]:
    if times.units:
        told = " and ".join(f"{called} ({rows} rows)" for called, rows in times.units.items())
        yield f"{'times' if roles.time == OWNER else times.field}: taken as {told}"


def _swapped(sample: pa.Table | None, roles: Roles, remedy: str) -> list[str]:
    """A hint, where most latitudes are beyond 90 and their longitudes are not."""
    if sample is not None and roles.lat in sample.column_names and roles.lon in sample.column_names:
        lat, lon = (columns.decimals(sample.column(name), str(name))[0] for name in (roles.lat, roles.lon))
        with np.errstate(invalid="ignore"):
            odd = (np.abs(lat) > 90) & (np.abs(lat) <= 360) & (np.abs(lon) <= 90)
        if 2 * odd.sum() > len(sample):
            return [f"{roles.lat} is beyond 90 where {roles.lon} is not: are they swapped ({remedy})?"]
    return []


def nothing_left(
    source: str,
    rejected: pa.Table,
    rows: int,
    times: Times,
    sample: pa.Table | None,
    roles: Roles,
    swapped: Sequence[str],
) -> InvalidInput:
    """The error of a source of which no row can be read: the reasons, and what mends the commonest one."""
    if not rows:
        return InvalidInput(source, "0 rows", "at least one row with its columns, below the header if there is one")
    counted = Counter(rejected.column("reason").to_pylist())
    if counted["time_without_zone"]:
        return times.zone_missing()
    by_reason = ", ".join(f"{count} {explained(reason)}" for reason, count in counted.most_common())
    remedy = _remedy(next(iter(counted.most_common()), ("", 0))[0], times, sample, swapped)
    return InvalidInput(
        source, f"0 rows that can be read of {rows}", f"rows ({by_reason})" + (remedy and f": {remedy}")
    )


def _remedy(reason: str, times: Times, sample: pa.Table | None, swapped: Sequence[str]) -> str:
    if reason == "unclear_unit":
        return "numbers as times need time_format=unix-s, unix-ms or unix-us; rows without times have order_column="
    if reason == "wrong_encoding":
        return "bytes that are not of the encoding; encoding=latin-1 or cp1252, perhaps"
    if reason == "ragged_row":
        return "another number of cells than columns; delimiter=, names= or skip_lines= may say how lines are cut"
    if reason == "invalid_place":
        return next(iter(swapped), "degrees, with a point before decimals")
    if reason == "invalid_time" and sample is not None and times.field in sample.column_names:
        return _form_of_times(sample.column(times.field))
    return ""


def _form_of_times(cells: pa.ChunkedArray) -> str:
    """What texts that are no times look like, 9 for every digit and a for every letter, and a format that may fit."""
    text = next((str(cell).strip() for cell in cells.to_pylist() if cell is not None and str(cell).strip()), "")
    form = re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))[:40]
    if not form.isprintable() or not form:
        return "times in ISO 8601, such as 2008-10-23T02:53:04Z"
    found = [(re.fullmatch(known, form), pattern) for known, pattern in _KNOWN_FORMS]
    formats = [match.expand(pattern) for match, pattern in found if match is not None]
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


def lines_by_file(source: PathLike, rejected: pa.Table, layout: Layout) -> list[tuple[str, int, str]]:
    """(file, line, reason) of the rejected rows of a folder or an archive, which is read once more."""
    wanted: dict[str, list[tuple[int, str]]] = {}
    for row in rejected.to_pylist():
        wanted.setdefault(row["file"], []).append((row["row"], row["reason"]))
    found = []
    for member in members(Path(source), layout.files):
        if rows := wanted.pop(_as_utf8(member.name), None):
            try:
                lines = lines_of_rows(_member(member.name, member.data), [row for row, _ in rows], layout)
            except InvalidInput:
                # A file that cannot be unpacked has no lines.
                lines = [row for row, _ in rows]
            found += [(member.name, line, reason) for line, (_, reason) in zip(lines, rows, strict=True)]
    return found
