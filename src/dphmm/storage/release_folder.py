"""A release is a folder: its public files lie in it, and its owner's in a second folder beside it.

    out/         index.json, released.csv, released.csv.privacy.json, model.npz, policy.json, plan.json, plans.json,
                 learned.npz, report.html
    out.owner/   owner.json, counts.json, rejected.csv: readable by the owner alone

The index has the SHA-256 of every file of the release, so that a file that does not belong to it is found. The ledger
that counts the release is the owner's: a name in owner.json, and an id by which another file of that name is noticed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dphmm.errors import InvalidInput
from dphmm.storage.inputs import PathLike, file_digest, replacing
from dphmm.storage.ledger.sqlite import opened_if_made

INDEX, OWNER = "index.json", "owner.json"
MODEL, POLICY, PLAN, MADE_TABLE = "model.npz", "policy.json", "plan.json", "mechanism.npz"
#: The distinct plans of the answers in plain form, where none hangs on an answer.
PLANS = "plans.json"
#: A model that was learned from the answers, to read them with.
LEARNED = "learned.npz"
COUNTS, REJECTED = "counts.json", "rejected.csv"
#: The table of a release has one of these names.
TABLES = ("released.csv", "released.parquet", "released.jsonl")
#: Where the answers of people are counted, in the folder that holds that of the release.
LEDGER = "ledger.db"
_FORMAT = 1
#: Files of a release while they are written, which are finished under their names or not at all.
_OF_A_RELEASE = tuple(
    f".{name}." for name in (*TABLES, INDEX, OWNER, MODEL, POLICY, PLAN, MADE_TABLE, PLANS, LEARNED, COUNTS, REJECTED)
)


@dataclass(frozen=True)
class ReleaseFolder:
    """The folder of a release.

    path : that of the public files; ``owner`` is that of the others.

    Examples
    --------
    >>> from dphmm.storage.release_folder import ReleaseFolder
    >>> ReleaseFolder.of("out/").owner.name
    'out.owner'
    """

    path: Path

    @classmethod
    def of(cls, path: PathLike) -> ReleaseFolder:
        """The folder of a name, which need not exist; for the table in it, the folder that the table is in."""
        named = Path(path).absolute()
        return cls(named.parent if named.name in TABLES else named)

    @classmethod
    def opened(cls, path: PathLike, field: str = "released") -> ReleaseFolder:
        """The folder of a release that exists. Raises InvalidInput naming the field for anything else."""
        folder = cls.of(path)
        if not (folder.path / INDEX).is_file():
            is_what = "is no folder of a release" if folder.path.exists() else "does not exist"
            raise InvalidInput(field, f"{path}, which {is_what}", "the folder that dphmm release wrote (-o)")
        folder.files()
        return folder

    @property
    def owner(self) -> Path:
        """The folder of what is the owner's alone."""
        return self.path.with_name(f"{self.path.name}.owner")

    @property
    def default_ledger(self) -> Path:
        """The ledger beside the folder, never in it."""
        return self.path.parent / LEDGER

    def check(self) -> None:
        """Raise InvalidInput for a folder that cannot be made, and for one that has other files than a release."""
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInput("folder", str(self.path), "a folder")
        names = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
        # On another disk than the owner's folder a kill may have left the beginning of the index here.
        if INDEX not in names and any(not name.startswith(f".{INDEX}.") for name in names):
            fault = f"{self.path}, which has files and is no release"
            raise InvalidInput("folder", fault, "a new folder, or an empty one")
        if not self.path.parent.is_dir():
            raise InvalidInput("folder", str(self.path), "a folder in one that exists")

    def check_source(self, source: PathLike) -> None:
        """Raise InvalidInput for rows that lie in the folder, or that are a file which a release writes for its owner.

        The rows that a release is made of are never among what is published.
        """
        path, published = Path(source).resolve(), self.path.resolve()
        is_written = path.parent == self.owner.resolve() and path.name in (COUNTS, REJECTED, OWNER)
        if is_written or path == published or published in path.parents:
            raise InvalidInput("folder", str(self.path), "another folder than that of the rows")

    def create(self) -> None:
        """Make both folders, where there are none. Raises as `check`."""
        self.check()
        try:
            self.path.mkdir(exist_ok=True)
            self.owner.mkdir(mode=0o700, exist_ok=True)
        except PermissionError:
            raise InvalidInput("folder", str(self.path), "a folder in one that may be written to") from None
        if not (self.path / INDEX).exists():
            self.keep([])

    def files(self) -> dict[str, str]:
        """The SHA-256 of each file of the release, by name. Raises InvalidInput for an index that is none."""
        path = self.path / INDEX
        if not path.exists():
            return {}
        return {str(name): str(sha256) for name, sha256 in _read(path, "files", Mapping).items()}

    def keep(self, names: Iterable[str]) -> None:
        """Take files that were written into the index; one that there is not is taken out of it."""
        digests = self.files()
        for name in names:
            digests.pop(name, None)
            if (self.path / name).exists():
                digests[name] = file_digest(self.path / name)
        _write(self.path / INDEX, {"format": _FORMAT, "files": dict(sorted(digests.items()))})

    @property
    def table(self) -> Path:
        """The released rows. Raises InvalidInput where there are none yet."""
        table = self.table_or("")
        if table == self.path:
            fault = f"{self.path} without {' or '.join(TABLES[:2])}"
            raise InvalidInput("released", fault, "a release that was finished")
        return table

    def table_or(self, new: str) -> Path:
        """The released rows; where there are none yet, the file of this name."""
        return next((self.path / name for name in TABLES if (self.path / name).exists()), self.path / new)

    def others(self) -> list[str]:
        """A line for each file of the folder that the index does not name, that was changed, or that is missing."""
        digests, lines = self.files(), []
        for path in sorted(path for path in self.path.rglob("*") if not path.is_dir()):
            name = path.relative_to(self.path).as_posix()
            if name == INDEX:
                continue
            if name not in digests:
                lines.append(f"{name}, which the index does not name")
            elif file_digest(path) != digests[name]:
                lines.append(f"{name}, which was changed since it was written")
        return lines + [f"{name}, which is missing" for name in digests if not (self.path / name).exists()]

    # -- the owner's ----------------------------------------------------------------------------------------------

    def keep_ledger(self, ledger: PathLike) -> None:
        """Record which ledger counts this release, by its name and id, and remove what a killed run left unfinished.

        Whoever calls it holds the ledger's lease of commands: nobody else writes a release there.
        """
        for left in (*self.path.glob(".*.part"), *self.owner.glob(".*.part")):
            if left.name.startswith(_OF_A_RELEASE):
                left.unlink(missing_ok=True)
        path = Path(ledger).absolute()
        record = {"format": _FORMAT, "ledger": os.path.relpath(path, self.path.parent), "id": _id_of(path)}
        _write(self.owner / OWNER, record, private=True)

    def ledger(self, given: PathLike | None = None) -> Path:
        """The ledger that counts this release: as recorded, else ``given``, else the one beside the folder.

        Raises InvalidInput where something was released and it is missing, or where it is another ledger than the
        recorded one: it would count nothing of what was spent. A copy of a ledger is the same ledger.
        """
        record, expected = self.owner / OWNER, f"the ledger that the answers in {self.path.name} are counted in"
        name, known = None, None
        if record.exists():
            name, known = _read(record, "ledger", str), _read(record, "id", str)
            expected = f"{expected}, {name}"
        path = self.default_ledger if name is None else Path(os.path.normpath(self.path.parent / name))
        path = path if given is None else Path(given).absolute()
        released = known is not None or self.table_or("") != self.path
        if released and not path.exists():
            raise InvalidInput("ledger", f"{path}, which does not exist", expected)
        if known is not None and _id_of(path) != known:
            raise InvalidInput("ledger", f"{path}, which is another ledger", expected)
        return path


def folder_of(table: PathLike) -> ReleaseFolder | None:
    """The folder of a release whose table this is; None for another file."""
    path = Path(table).absolute()
    return ReleaseFolder(path.parent) if path.name in TABLES and (path.parent / INDEX).exists() else None


def _id_of(path: Path) -> str:
    with opened_if_made(path) as ledger:
        return "" if ledger is None else ledger.id


def _read(path: Path, member: str, kind: type) -> Any:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        value = document[member] if document["format"] == _FORMAT else None
    except (ValueError, KeyError, TypeError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise InvalidInput(str(path), "a file that is none", f"{path.name} as dphmm wrote it")
    return value


def _write(path: Path, document: Mapping[str, Any], *, private: bool = False) -> None:
    with replacing(path, private=private) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
