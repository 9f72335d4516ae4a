"""The layout of a source of rows: the cut of texts, columns, users, and the form of times.

Every importer of rows is a layout, or makes one of its options.

Example: in Cabspotting's new_abboip.txt the line ``37.75134 -122.39488 0 1213084687`` is cut at blanks into lat, lon,
occupied and t; the user is abboip, after the file; t is in Unix seconds: one row of the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, ClassVar

from dphmm._checks import one_of
from dphmm.errors import InvalidInput
from dphmm.states.space import check_names
from dphmm.storage.csv_files import TextLayout

#: Called with (done, total), in files or bytes, as the work goes on.
Progress = Callable[[int, int], object]
#: Whose rows a file has, where no column says it.
USER_FROM = ("file-name", "folder-name")
#: The transition in the lifecycle of an activity that an event must have to be read, or all of them.
TRANSITIONS = ("complete", "start", "all")
#: Where an event log has it (IEEE 1849).
LIFECYCLE = "lifecycle:transition"
#: What a column may be.
ROLES = ("user", "time", "order", "trip", "state", "lat", "lon")
_TEXTS = re.compile(r"(?:^|/)[^./][^/]*\.(?:txt|csv|tsv|dat|data|log)(?:\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Layout(TextLayout):
    """The layout of a source of rows, beyond the rules that split its texts into records.

    ``columns`` : role (user, time, order, trip, state, lat, lon) -> name of a column; the others are found by name.
    ``user_name`` : the user of all rows. ``user_from`` : file-name or folder-name, of which the first group of
    ``user_pattern`` is the user; files whose name it does not match are left out. ``time_format`` as `Times` takes it.
    ``no_times`` : rows are taken in the order of the file. ``spelling`` as in `load_trajectories`. ``files`` : the
    members of an archive that are read. ``importing`` : unnamed times are refused, and options say whose rows
    they are. ``lifecycle`` : of `TRANSITIONS`; complete takes rows without a transition too. None is all.

    Raises InvalidInput for parts that contradict each other.
    """

    columns: Mapping[str, str | None] = field(default_factory=dict)
    user_name: str | None = None
    user_from: str | None = None
    user_pattern: str | None = None
    time_format: str = "iso"
    timezone: str | None = None
    fold: str | None = None
    no_times: bool = False
    spelling: str = "same"
    importing: bool = False
    lifecycle: str | None = None
    files: re.Pattern[str] = _TEXTS
    #: What mends latitudes and longitudes that are swapped.
    unswapping: str = "lat_column=, lon_column="
    other_encoding: ClassVar[str] = "encoding UTF-8; encoding=latin-1, cp1252 or utf-16, perhaps"

    def __post_init__(self) -> None:
        super().__post_init__()
        rules = {
            "user_column": self.columns.get("user"),
            "user_name": self.user_name,
            "user_from": self.user_from,
        }
        chosen = [name for name, rule in rules.items() if rule is not None]
        if len(chosen) > 1:
            raise InvalidInput(chosen[1], f"a second rule beside {chosen[0]}", "one rule of whose rows they are")
        if self.user_name is not None:
            check_names([self.user_name], 1)
        if self.lifecycle is not None:
            one_of(self.lifecycle, TRANSITIONS, "lifecycle")
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
        match = re.fullmatch(self.user_pattern, part)
        return None if match is None else match[1]

    def changed(self, **options: Any) -> Layout:
        """This layout with options of the command line or of an importer, by the names that these have.

        ``user_column`` and so on name columns, ``names`` may be one text with commas, ``skip_lines`` is ``skip``,
        ``user`` is ``user_name``, and ``delimiter`` may be comma, semicolon, tab, tabs (several are one) or space
        (several blanks and tabs are one). Options that are None stay as they are. Raises InvalidInput for others.
        """
        changes = {name: value for name, value in options.items() if value is not None}
        unknown = sorted(changes.keys() - _OPTIONS)
        if unknown:
            raise InvalidInput("options", unknown[0], "one of " + ", ".join(sorted(_OPTIONS)))
        if "user" in changes:
            changes["user_name"] = changes.pop("user")
        columns = {role: changes.pop(f"{role}_column") for role in ROLES if f"{role}_column" in changes}
        if columns:
            changes["columns"] = {**self.columns, **columns}
        if "skip_lines" in changes:
            changes["skip"] = changes.pop("skip_lines")
        if isinstance(changes.get("names"), str):
            changes["names"] = tuple(name.strip() for name in changes["names"].split(","))
        if "delimiter" in changes:
            named = _DELIMITERS.get(changes["delimiter"], changes["delimiter"])
            changes |= {"delimiter": named, "runs": changes["delimiter"] in ("tabs", "space", " ")}
        if "decimal" in changes:
            changes["decimal"] = {"comma": ",", "point": "."}.get(changes["decimal"], changes["decimal"])
        return replace(self, **changes)


#: What `Layout.changed` takes.
_OPTIONS = {f"{role}_column" for role in ROLES} | {
    "comment", "decimal", "delimiter", "encoding", "fold", "lifecycle", "names", "no_times", "quoted", "skip_lines",
    "spelling", "time_format", "timezone", "user", "user_from", "user_name", "user_pattern",
}  # fmt: skip
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "tabs": "\t", "\\t": "\t", "space": " "}


def _stem(name: str) -> str:
    """A file's name without its ending, and without .gz before that."""
    plain = name[:-3] if name.lower().endswith(".gz") else name
    return plain.rpartition(".")[0] or plain


#: What rows of a file are imported by, unless a format says otherwise.
IMPORTED = Layout(time_format="auto", importing=True)
#: A table as this package writes it.
PLAIN = Layout()
