"""Documents of XML or JSON: each is parsed into rows of text, of one file, or of each file of a folder or an archive.

A `DocumentKind` is a format: it says how files are named and what the rows of one are. From there on they are read as
rows of a table are. A row that no cells can be made of is numbered and left out. No row decides about another one.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dphmm.errors import InvalidInput
from dphmm.storage.importers.folders import MemberKind, is_many, read_files
from dphmm.storage.importers.imported import Imported, Importer, imported_rows
from dphmm.storage.inputs import PathLike, checked_input, open_bytes, steady, unpacked_bytes
from dphmm.storage.layouts import IMPORTED, Layout, Progress
from dphmm.storage.tables import Rows
from dphmm.storage.trajectories import SourceRows, read_source

if TYPE_CHECKING:
    import pyarrow as pa


class Document(NamedTuple):
    """The rows of a document as columns; by number, from 1, those that are in no column; and what else was in it.

    ``others`` : the numbers of things that are no rows, by the words for them.
    """

    table: pa.Table
    ragged: Sequence[int] = ()
    others: Mapping[str, int] = {}


#: Of the name of a document and its bytes, its rows. Raises InvalidInput for one that cannot be read.
Parser: TypeAlias = "Callable[[str, IO[bytes]], Document]"


class DocumentRows:
    """Gathers rows of text of these columns."""

    def __init__(self, names: Sequence[str]) -> None:
        self._columns: dict[str, list[str | None]] = {name: [] for name in names}
        self._ragged, self._count = list[int](), 0

    def add(self, cells: Sequence[str | None] | None) -> None:
        """The next row; None for one that cannot be read."""
        self._count += 1
        if cells is None:
            self._ragged.append(self._count)
            return
        for column, cell in zip(self._columns.values(), cells, strict=True):
            column.append(cell)

    def document(self, others: Mapping[str, int] | None = None) -> Document:
        """All rows; ``others`` as of `Document`."""
        import pyarrow as pa

        columns = {name: pa.array(cells, pa.string()) for name, cells in self._columns.items()}
        return Document(pa.table(columns), self._ragged, others or {})


@dataclass(frozen=True)
class DocumentKind:
    """A format: the ends of its files' names, what one line of help says, and the options that its command has.

    ``parse`` : of a layout, and as a `Parser`, the rows of a document. ``columns`` : those that are read, by option, if
    no option names others.
    """

    suffixes: tuple[str, ...]
    help: str
    options: tuple[str, ...]
    parse: Callable[[Layout, str, IO[bytes]], Document]
    columns: Mapping[str, str] = field(default_factory=dict)
    layout: Layout = IMPORTED

    def importer(self, name: str) -> Importer:
        """The importer of this format."""
        files = re.compile(rf"(?:^|/)[^./][^/]*\.(?:{'|'.join(self.suffixes)})(?:\.gz)?$", re.IGNORECASE)
        named = " or ".join(f"*.{suffix}" for suffix in self.suffixes)

        def read(source: PathLike, *, progress: Progress | None = None, **options: Any) -> Imported:
            chosen = {**options, **unless_named(options, self.columns)}
            layout = replace(self.layout, files=files).changed(**chosen)
            if "user_column" not in self.options and layout.user_name is None and layout.user_from is None:
                raise InvalidInput("user_name", "nothing", "user_name= for one person, or user_from=file-name")
            rows = read_documents(source, layout, partial(self.parse, layout), named, progress=progress)
            return imported_rows(name, rows, None, source)

        read.__name__ = f"import_{name}"
        return read


def unless_named(options: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, str]:
    """The columns of a format, by option, that ``options`` do not replace.

    No user column beside another rule of whose rows they are, and no times beside another order.
    """
    chosen = {name for name, value in options.items() if value}
    if chosen & {"user", "user_name", "user_from"}:
        chosen.add("user_column")
    if chosen & {"no_times", "order_column"}:
        chosen.add("time_column")
    return {option: column for option, column in columns.items() if option not in chosen}


def read_documents(
    source: PathLike, layout: Layout, parse: Parser, named: str, progress: Progress | None = None
) -> SourceRows:
    """The rows of a document, or of those of a folder or an archive, whose files are ``named`` so.

    Raises InvalidInput as `read_source`, and for a document that cannot be read.
    """
    others = Counter[str]()

    def opened(name: str, stream: IO[bytes]) -> Rows:
        document = parse(name, stream)

        def parts(columns: Sequence[str]) -> Iterator[pa.Table]:
            others.update(document.others)
            yield document.table.select(columns)

        return Rows(name, tuple(document.table.column_names), {}, parts, list(document.ragged))

    def member(name: str, data: bytes, layout: Layout) -> Rows | None:
        if not data.strip():
            return None
        return opened(name, io.BytesIO(unpacked_bytes(data, name) if name.lower().endswith(".gz") else data))

    if is_many(source):
        rows = read_files(source, layout, kind=MemberKind(member, named), progress=progress)
    else:
        file = checked_input(source, "source")
        with steady(file), open_bytes(file) as stream:
            document = opened(str(file), stream)
        if not any(map(len, document.parts(document.names))):
            raise InvalidInput("source", f"{file}, without a row that can be read", f"rows in it: {named}")
        others.clear()
        rows = read_source(document, layout, progress=progress)
    return rows._replace(notes=(*rows.notes, *(f"{count:,} {what}" for what, count in sorted(others.items()))))


def short_digest(name: str) -> str:
    """A document in the names of its trips: those of one number in two documents of one person are two trips."""
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:16]
