"""Folders and archives of files of one layout: the common columns, and each file's rows as its own.

If files have headers, each person has one vote on the columns, so that nobody decides for others. A file
that cannot be read, or lacks a column, is left out with its own rows.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dphmm.accounting.person import key_by
from dphmm.errors import InvalidInput
from dphmm.storage.cells import OWNER, as_utf8
from dphmm.storage.columns import Numbering
from dphmm.storage.csv_files import TextMember, lines_of_rows, listed
from dphmm.storage.inputs import PathLike, checked_input, members, steady, unpacked_bytes
from dphmm.storage.layouts import ROLES, Layout, Progress
from dphmm.storage.private_tables import write_list, write_rejected
from dphmm.storage.tables import Rows, read_rows
from dphmm.storage.trajectories import Expanding, Reader, SourceRows, read_source

if TYPE_CHECKING:
    import pyarrow as pa


class MemberKind(NamedTuple):
    """The opener of a file in a folder or an archive, by its name and bytes; it gives None for a file without rows.

    ``named`` : the names of the files that are read. Opening raises InvalidInput for a file that cannot be read.
    """

    open: Callable[[str, bytes, Layout], Rows | None]
    named: str


def text_member(name: str, data: bytes) -> TextMember:
    return TextMember(name, unpacked_bytes(data, name) if name.lower().endswith(".gz") else data)


def _open_text(name: str, data: bytes, layout: Layout) -> Rows | None:
    text = text_member(name, data)
    return read_rows(text, layout) if text.data.strip() else None


_TEXT_MEMBERS = MemberKind(_open_text, "*.txt, *.csv, *.tsv, *.dat, *.data or *.log")
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


def read_files(
    source: PathLike,
    layout: Layout,
    *,
    expanding: Expanding | None = None,
    kind: MemberKind = _TEXT_MEMBERS,
    progress: Progress | None = None,
) -> SourceRows:
    """The rows of a file as `read_source` has them, or of all files of a folder or an archive, in their order.

    ``kind`` says how files are opened. ``rejected`` of several files has (file, row, reason): rows of a file count from
    1 after its header. Raises InvalidInput as `read_source`, and where nobody leads in the vote on the columns.
    """
    if is_many(source):
        path = Path(source)
        # The columns that files vote for are of the version whose rows are read.
        with nullcontext() if path.is_dir() else steady(checked_input(path)):
            return _read_many(path, layout, expanding, kind, progress)
    return read_source(source, layout, expanding=expanding, progress=progress)


def is_many(source: PathLike) -> bool:
    """True if a source is a folder or an archive."""
    path = Path(source)
    return path.is_dir() or path.name.lower().endswith(_ARCHIVES)


def _read_many(
    source: Path, layout: Layout, expanding: Expanding | None, kind: MemberKind, progress: Progress | None
) -> SourceRows:
    """Every file of a folder or an archive, in the order in which it has them.

    A file that cannot be read, or lacks a column that is needed, is left out with all its rows; the others are read.
    """
    import pyarrow as pa

    reader = Reader(_common_names(source, layout, expanding, kind), {}, layout, str(source), expanding)
    left_out, owners, empty, lacking = list[str](), dict[str, int](), list[str](), dict[str, list[str]]()
    for member in members(source, layout.files):
        if progress is not None:
            progress(member.done, member.total)
        owner = layout.user_name if layout.user_from is None else layout.owner_of(member.name)
        if layout.user_from is not None and owner is None:
            left_out.append(member.name)
            continue
        try:
            rows = kind.open(member.name, member.data, layout)
            if rows is None:
                empty.append(member.name)
                continue
            there = [name for name in reader.read if name in rows.names]
            parts = list(rows.parts(there or rows.names[:1]))
        except InvalidInput:
            # It is one person's, and decides about nobody else's rows.
            reader.end_of_file(member.name, {1: "unreadable_file"})
            continue
        ragged = dict.fromkeys(rows.ragged, "ragged_row")
        if missing := [name for name in reader.read if name not in rows.names and name not in reader.optional]:
            lacking[member.name] = missing
            every = dict.fromkeys(range(1, sum(map(len, parts)) + len(ragged) + 1), "missing_column")
            reader.end_of_file(member.name, every | ragged)
            continue
        if not any(map(len, parts)) and not ragged:
            empty.append(member.name)
        for part in parts:
            for name in reader.optional.difference(rows.names) & set(reader.read):
                # A column that may be missing is empty in all of its rows.
                part = part.append_column(name, pa.nulls(len(part), pa.string()))
            reader.add(part.select(reader.read), owner)
        reader.end_of_file(member.name, ragged)
        if layout.user_from is not None and owner is not None:
            owners[owner] = owners.get(owner, 0) + 1
    several = sum(count > 1 for count in owners.values())
    notes = [f"{several} user(s) have several files: all files of one name are one person's"] if several else []
    notes += files_told(left_out, f"left out, whose names do not match {layout.user_pattern}")
    notes += files_told(empty, "without a row")
    for name, missing in list(lacking.items())[:_FILES_TOLD]:
        notes.append(f"file {name!a}: no column {listed(missing)}, its rows are left out")
    if len(lacking) > _FILES_TOLD:
        notes.append(f"{len(lacking) - _FILES_TOLD} more file(s) without a column that is read")
    return reader.finish(notes, several=True)


def _common_names(source: Path, layout: Layout, expanding: Expanding | None, kind: MemberKind) -> Sequence[str]:
    """The names of the columns that the files of a folder or an archive have.

    Without a header those of the layout. Of files with headers, those that most people's files have what is read by;
    files count where no file is one person's. A file that lacks a column that is named has no vote: it is left out.
    Raises InvalidInput where there is no file with rows, where what most of them have cannot be read, and where fewer
    than two more have the first columns than any others: then one person decides which rows are read of all others.
    """
    votes: dict[Any, dict[str, tuple[str, ...]]] = {}
    errors: dict[Any, InvalidInput] = {}
    readable: dict[Any, Reader] = {}
    voted, left_out, unread, people = set[str](), 0, None, Numbering(key_by(layout.spelling))
    for member in members(source, layout.files):
        owner = member.name if layout.user_from is None else layout.owner_of(member.name)
        if owner is None:
            left_out += 1
            continue
        if layout.user_from is not None and (person := people.number(owner)) >= 0:
            owner = people.labels[person]
        try:
            rows = None if owner in voted else kind.open(member.name, member.data, layout)
        except InvalidInput as error:
            unread = unread or error
            continue
        if rows is None:
            continue
        voted.add(owner)
        if not layout.header:
            return rows.names
        try:
            reader = Reader(rows.names, {}, layout, str(source), expanding)
            read: Any = (True, len(reader.read), *reader.read)
            readable[read] = reader
        except InvalidInput as error:
            if error.field in _NAMED and layout.columns.get(error.field.removesuffix("_column")) is not None:
                unread = unread or error
                continue
            read = (False, 0, str(error))
            errors[read] = error
        votes.setdefault(read, {})[owner] = rows.names
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


def _nobody_leads(first: Reader, many: int, second: Reader, fewer: int) -> InvalidInput:
    """The error that files of different columns are about as many, with the columns to name."""
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
    """The number of such files, and the first few by name, in a line; nothing if there is none."""
    if not names:
        return []
    more = f" and {len(names) - _FILES_TOLD} more" if len(names) > _FILES_TOLD else ""
    files = "1 file" if len(names) == 1 else f"{len(names)} files"
    return [f"{files} {what}: {', '.join(f'{name!a}' for name in names[:_FILES_TOLD])}{more}"]


#: Files that are told by name.
_FILES_TOLD = 3


def lines_by_file(source: PathLike, rejected: pa.Table, layout: Layout) -> list[tuple[str, int, str]]:
    """(file, line, reason) of the rejected rows of a folder or an archive, which is read once more."""
    wanted: dict[str, list[tuple[int, str]]] = {}
    for row in rejected.to_pylist():
        wanted.setdefault(row["file"], []).append((row["row"], row["reason"]))
    places = []
    for member in members(Path(source), layout.files):
        if rows := wanted.pop(as_utf8(member.name), None):
            try:
                lines = lines_of_rows(text_member(member.name, member.data), [row for row, _ in rows], layout)
            except InvalidInput:
                # A file that cannot be unpacked has no lines.
                lines = [row for row, _ in rows]
            places += [(member.name, line, reason) for line, (_, reason) in zip(lines, rows, strict=True)]
    return places


def list_left_out(path: Path, rejected: pa.Table, source: PathLike, layout: Layout | None) -> None:
    """Write the rejected rows as `write_rejected`; for several texts (file, line, reason)."""
    if layout is None or "file" not in rejected.column_names or not len(rejected):
        write_rejected(path, rejected, str(source), layout)
    else:
        write_list(path, "file,line", lines_by_file(source, rejected, layout))
