"""Checks a released file of dphmm without dphmm: this file, Python 3.11 or newer, and nothing else.

    python3 -I -S verify_release.py released.csv --model model.npz --policy policy.json --plans plans.json

It shares no code with dphmm, imports the standard library alone, and runs nothing that a file holds. It reads a
released file (.csv, .csv.gz, or the lines of a stream, .jsonl or .ndjson) with its privacy statement, and any of the
public inputs, and computes again what can be computed from them, with whole numbers and fractions. Facts of the
statement are compared as they are. Each check prints one line: ok, wrong, stated (the statement says so, and no file
shows it), by facts (so says --facts, which is believed), or not looked at, with the figure. `dphmm check-release`
prepares what this program needs and cannot make: the rows of a Parquet file as CSV, the plans, and facts that follow
from model and policy (plans.json, facts.json). Believe facts of your own, or of somebody whom you would believe anyhow.

Exit code 0: no check is wrong or left out. 1: one is wrong. 2: a file cannot be read. 5: none is wrong, and something
was not looked at.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import math
import re
import sqlite3
import struct
import sys
import unicodedata
import zipfile
import zlib
import zoneinfo
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

FORMAT = 3
NANO = 10**9
#: A zone by its name, and no offset from UTC.
ZONE_NAME = "(?!posix/|right/)[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){1,2}"
#: Hours of a file's time in which clocks are looked at one by one for when they are put forward or back.
MOST_HOURS = 2 * 10**6
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
MAPS = ("grid", "h3", "zones")
#: Degrees may differ by rounding.
DEGREES = 1e-12
#: Chances of a law of moves that are the same.
ALIKE = 1e-12
#: Pairs of states that are looked at one by one.
MOST_PAIRS = 20_000_000
#: Pairs of states that are listed.
MOST_EDGES = 4_000_000
MOST_MOVES = 100_000
#: Bytes of a file, unpacked; operations of a ledger's database; steps that a schedule names.
MOST_BYTES, MOST_OPERATIONS, MOST_NAMED = 2**31, 10**10, 10**6
#: Exit codes.
OK, WRONG, UNREADABLE, NOT_LOOKED_AT = 0, 1, 2, 5
_TRUE, _OTHER, _STATED, _LEFT = "ok", "wrong", "stated", "not looked at"
#: The outcome of a check that the facts of `dphmm check-release` decide.
BY_FACTS = "by facts"
#: What no file shows.
NOT_CHECKED = (
    "no file shows: whether noise was drawn freshly; whether the ledger is honest; whom the model was fitted on; "
    "whether its file says truly how it was made; whether people are told apart by their names and times"
)
Point = tuple[int, ...]


class Unreadable(Exception):
    """A file that cannot be read, in one line."""


#: The errors of reading a document of another form.
MALFORMED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class Unknown(Exception):
    """A reason why something cannot be told; ``key``: the check that another program may have made."""

    def __init__(self, why: str, key: str = "") -> None:
        super().__init__(why)
        self.key = key


class Report:
    """The findings of the checks. ``elsewhere``: by key, the findings of the program that made the facts."""

    def __init__(self, elsewhere: Mapping[str, str] | None = None) -> None:
        self.lines: list[tuple[str, str, str]] = []
        self.elsewhere = dict(elsewhere or {})

    def add(self, word: str, check: str, figure: str) -> None:
        self.lines.append((word, check, printable(figure)))

    def require(self, right: bool, check: str, figure: str, wrong: str | None = None, word: str = _TRUE) -> bool:
        self.add(word if right else _OTHER, check, figure if right or wrong is None else wrong)
        return right

    def require_none(self, odd: Sequence[Any], check: str, figure: str, wrong: str) -> bool:
        """Require that nothing is odd."""
        return self.require(not odd, check, figure, f"{wrong}: {some(odd)}")

    def leave(self, check: str, why: str, key: str = "") -> None:
        """Note something that is not looked at here."""
        known = self.elsewhere.get(key) if key else None
        self.add(_LEFT if known is None else BY_FACTS, check, why if known is None else known)

    @property
    def code(self) -> int:
        words = {word for word, _, _ in self.lines}
        return WRONG if _OTHER in words else NOT_LOOKED_AT if _LEFT in words or not words else OK


def printable(text: str) -> str:
    """Text of a file on one line of a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:400])


def some(names: Sequence[Any]) -> str:
    """The first of some names."""
    return ", ".join(map(str, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


#: Characters that a name may have or leave out (Default_Ignorable_Code_Point of Unicode), first and last of each run.
IGNORED = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip


def key_of(name: str, rule: str) -> str:
    """The key of all names of one person, by the rule "same"; by "exact" the name. Raises Unknown."""
    if any(unicodedata.category(character) == "Cn" for character in name):
        raise Unknown(f"characters that Unicode {unicodedata.unidata_version}, which this Python has, does not have")
    if rule == "exact":
        return name
    seen = set[str]()
    while name not in seen:
        seen.add(name)
        shown = (c for c in name if not any(first <= ord(c) <= last for first, last in IGNORED))
        name = " ".join(unicodedata.normalize("NFKC", "".join(shown)).casefold().split())
    whole, point, rest = name.partition(".")
    number = re.fullmatch("[+-]?[0-9]+", whole) is not None and point and rest and not rest.strip("0")
    return whole if number else name


def alike(one: Any, other: Any) -> bool:
    """True if two values of JSON are equal, and of one type: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


_EXACT = re.compile("(-?[0-9]{1,4000})(?:/([1-9][0-9]{0,3999}))?")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?")


def exact(text: Any) -> Fraction:
    """A fraction of whole numbers, 1 or 1/3. Raises ValueError for anything else."""
    match = _EXACT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("no exact number")
    return Fraction(int(match[1]), int(match[2] or 1))


def total(text: Any) -> Fraction:
    """A total of a statement. Raises Unknown for one that was shortened, ValueError for one that is no number."""
    if isinstance(text, str) and text.startswith("about "):
        raise Unknown(f"{text[:40]!r} is no exact number")
    return Fraction(text) if isinstance(text, str) and _DECIMAL.fullmatch(text) else exact(text)


def shown(value: Fraction) -> str:
    """A total as a statement writes it."""
    places = next((n for n in range(31) if 10**n % value.denominator == 0), None)
    if places is None:
        text = str(value) if value.denominator.bit_length() < 100 else ""
    else:
        digits = str(value.numerator * (10**places // value.denominator)).zfill(places + 1)
        text = digits[: len(digits) - places] + ("." + digits[len(digits) - places :] if places else "")
    return text if 0 < len(text) <= 60 else f"about {Decimal(value.numerator) / Decimal(value.denominator):.6g}"


def read_bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Unreadable(f"{path}: got more than {MOST_BYTES:,} bytes; expected a smaller file")
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: got {error.strerror}; expected a file") from None


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member twice")
    return members


def no_constant(name: str) -> Any:
    raise ValueError(name)


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError, also for a member twice, NaN or an infinity; RecursionError."""
    return json.loads(text, object_pairs_hook=distinct, parse_constant=no_constant)


def read_json(path: Path) -> Any:
    try:
        return parsed(read_bytes(path))
    except (ValueError, RecursionError):
        raise Unreadable(f"{path}: got no JSON; expected a file as dphmm writes it") from None


def unpacked(path: Path, data: bytes) -> bytes:
    """The text of a gzip file of one member, and nothing after it."""
    stream = zlib.decompressobj(31)
    try:
        text = stream.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise Unreadable(f"{path}: got bytes that cannot be read ({error}); expected a gzip file") from None
    if stream.unconsumed_tail or not stream.eof:
        raise Unreadable(f"{path}: got a gzip file that is cut short, or too large; expected a released file")
    return text


def packed(text: bytes) -> bytes:
    """As a release packs it."""
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    return stream.compress(text) + stream.flush()


def notes_of_gzip(data: bytes) -> str:
    """The parts of a gzip file beside its text: a name, a comment, other fields, a time, or bytes at its end."""
    parts = [
        name for bit, name in ((4, "fields"), (8, "a name"), (16, "a comment"), (2, "a checksum")) if data[3] & bit
    ]
    parts += ["a time"] * any(data[4:8])
    stream = zlib.decompressobj(31)
    stream.decompress(data)
    return ", ".join([*parts, *["bytes after its end"] * bool(stream.unused_data)])


_FLOAT = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?", re.ASCII)
_TIME = re.compile(r"(-?\d{4,6}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00))?", re.ASCII)
_NUMBERS = re.compile("z_([0-9]+|lat|lon)|epsilon|cost")
_FORMULA = re.compile("'*[=@+\\-\t\r]")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_KINDS = ("user", "plan", "z")


def spelled(name: str, text: str) -> bool:
    """True if a cell is written as a release writes it: another spelling of the same number can say something."""
    if name == "t":
        return _TIME.fullmatch(text) is not None
    if text == "" or not _NUMBERS.fullmatch(name):
        return True
    if not _FLOAT.fullmatch(text) or len(text) > 400 or (text[0] == "-" and float(text) == 0):
        return False
    short = repr(float(text))
    if "e" in short or "e" in text:
        # Writers differ in where they begin to write powers of ten.
        return Decimal(text) == Decimal(short)
    return text in (short, short.removesuffix(".0"))


def float_in_csv(value: float) -> str:
    """A float as a release writes it: the shortest digits, powers of ten from 1e10 on and below 1e-6."""
    number = Decimal(repr(value)).normalize()
    power = number.adjusted()
    return f"{number:f}" if -6 <= power < 10 else f"{number.scaleb(-power).normalize():f}e{power:+d}"


def in_csv(name: str, text: str) -> str:
    """A cell as a release writes it in CSV, from its value. Raises ValueError for a cell that has none."""
    if text == "":
        return ""
    if name == "t":
        stated = datetime.fromisoformat(text)
        return stated.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0") + "Z"
    if name in _KINDS:
        plain = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
        return '"' + ("'" + text if plain else text).replace('"', '""') + '"'
    return float_in_csv(float(text)) if _NUMBERS.fullmatch(name) else str(int(text))


def in_json(name: str, text: str) -> Any:
    """A cell as a stream writes it in JSON, from its value. Raises ValueError for a cell that has none."""
    if text == "" and name != "user":
        return None
    if name == "t":
        stated = datetime.fromisoformat(text)
        stated = stated.replace(tzinfo=UTC) if stated.tzinfo is None else stated.astimezone(UTC)
        return stated.isoformat().replace("+00:00", "Z")
    if name in _KINDS:
        return text
    return float(text) if _NUMBERS.fullmatch(name) else int(text)


class ReleaseColumns:
    """The rows of a released file, in its order, by column: ``cells`` are texts, "" where a cell is empty."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        name = path.name.lower()
        self.stream = name.endswith((".jsonl", ".ndjson"))
        if name.endswith(".parquet"):
            raise Unreadable(
                f"{path}: got a Parquet file; expected .csv or .jsonl: `dphmm export {path} -o released.csv` "
                "writes its rows and statement, which this program reads without any package"
            )
        if not name.endswith((".csv", ".csv.gz", ".jsonl", ".ndjson")):
            raise Unreadable(f"{path}: got another suffix; expected .csv, .csv.gz, .jsonl or .ndjson")
        self.data = read_bytes(path)
        self.sha256 = hashlib.sha256(self.data).hexdigest()
        self.packed = name.endswith(".gz")
        self.text = unpacked(path, self.data) if self.packed else self.data
        try:
            text = self.text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unreadable(f"{path}: got bytes that cannot be read ({error}); expected UTF-8 text") from None
        self.as_written = True
        self.columns, self.cells = self._of_lines(text) if self.stream else self._of_csv(text)
        self._check_columns()

    def _of_csv(self, text: str) -> tuple[list[str], dict[str, list[str]]]:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        known: dict[str, str] = {}
        try:
            header = next(reader, [])
            if len(set(header)) < len(header):
                raise Unreadable(f"{self.path}: got a column twice; expected a released CSV file")
            cells: list[list[str]] = [[] for _ in header]
            for row in reader:
                if len(row) != len(header):
                    raise Unreadable(f"{self.path}: got line {reader.line_num} of another length; expected a table")
                for column, cell in zip(cells, row, strict=True):
                    column.append(known.setdefault(cell, cell))
        except (csv.Error, ValueError) as error:
            raise Unreadable(f"{self.path}: got no table ({error}); expected a released CSV file") from None
        # Texts that a spreadsheet would take for formulas begin with an apostrophe that is not theirs.
        for n, name in enumerate(header):
            if name in _KINDS:
                plain = {cell: re.sub("^'('*[=@+\\-\t\r])", "\\1", cell) for cell in set(cells[n])}
                cells[n] = [plain[cell] for cell in cells[n]]
        return header, dict(zip(header, cells, strict=True))

    def _of_lines(self, text: str) -> tuple[list[str], dict[str, list[str]]]:
        known: dict[tuple[str, str], dict[str, str]] = {}
        columns: list[str] = []
        for n, line in enumerate(io.StringIO(text, newline="\n"), 1):
            try:
                members = json.loads(
                    line, parse_float=str, parse_int=str, object_pairs_hook=distinct, parse_constant=no_constant
                )
                if not isinstance(members, dict) or any(isinstance(v, (dict, list, bool)) for v in members.values()):
                    raise ValueError("no answer")
            except (ValueError, RecursionError):
                raise Unreadable(f"{self.name}: got line {n} that is no answer; expected JSON") from None
            cells = {name: "" if value is None else value for name, value in members.items()}
            columns = columns or list(cells)
            if list(cells) != columns:
                raise Unreadable(f"{self.name}: got other members in line {n} than in the first; expected one run")
            # A step that was asked again has the same answer, and counts once.
            key = cells.get("user", ""), cells.get("step", "")
            if known.setdefault(key, cells) != cells:
                raise Unreadable(f"{self.name}: got another answer to a step in line {n}; expected the same again")
            try:
                stated = {name: in_json(name, cell) for name, cell in cells.items()}
                self.as_written &= json.dumps(stated) + "\n" == line
            except (ValueError, OverflowError):
                self.as_written = False
        return columns, {name: [cells[name] for cells in known.values()] for name in columns}

    def _check_columns(self) -> None:
        missing = next((name for name in ("user", "step", "epsilon", "cost", "plan") if name not in self.cells), None)
        if missing is not None:
            raise Unreadable(f"{self.path}: got rows without {missing!r}; expected a released file")
        odd = next((s for s in set(self.cells["step"]) if not re.fullmatch("[1-9][0-9]{0,17}", s)), None)
        if odd is not None:
            raise Unreadable(f"{self.path}: got step {odd[:40]!r}; expected 1, 2, ...")
        self.user = self.cells["user"]
        self.step = list(map(int, self.cells["step"]))
        self.plan = self.cells["plan"]
        self.asked = [plan != "" for plan in self.plan]
        #: The rows of each person, in the order of the file.
        self.users: dict[str, list[int]] = {}
        for row, user in enumerate(self.user):
            self.users.setdefault(user, []).append(row)

    def __len__(self) -> int:
        return len(self.user)

    def where(self, row: int) -> str:
        return f"user {self.user[row][:60]!r}, step {self.step[row]}"

    def rewritten(self) -> bool:
        """True if the file, written again from its values, is the same, byte for byte."""
        if self.stream:
            return self.as_written
        try:
            texts = {name: {cell: in_csv(name, cell) for cell in set(column)} for name, column in self.cells.items()}
        except ValueError:
            # A cell that has no value of its column is not written again.
            return False
        columns = [[texts[name][cell] for cell in column] for name, column in self.cells.items()]
        header = ",".join(f'"{name}"' for name in self.columns)
        again = "\n".join([header, *map(",".join, zip(*columns, strict=True)), ""]).encode()
        return again == self.text and (not self.packed or packed(self.text) == self.data)

    def numbers(self, name: str) -> list[float]:
        """A column as the floats that were released."""
        if name not in self.cells:
            raise Unreadable(f"{self.path}: got no column {name}; expected a released file")
        stated = {}
        for cell in set(self.cells[name]):
            try:
                stated[cell] = float(cell)
            except ValueError:
                raise Unreadable(f"{self.path}: got {cell[:40]!r} as {name}; expected a number") from None
        return [stated[cell] for cell in self.cells[name]]

    @cached_property
    def epsilon(self) -> list[float]:
        return self.numbers("epsilon")

    @cached_property
    def cost(self) -> list[float]:
        return self.numbers("cost")

    @cached_property
    def moments(self) -> list[int | None]:
        """Microseconds since 1970 UTC; None without a time."""
        if "t" not in self.cells:
            return [None] * len(self)
        stated = {text: self._moment(text) for text in set(self.cells["t"])}
        return [stated[text] for text in self.cells["t"]]

    def _moment(self, text: str) -> int | None:
        if not text:
            return None
        try:
            stated = datetime.fromisoformat(text)
            stated = stated.replace(tzinfo=UTC) if stated.tzinfo is None else stated
            return (stated - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        except (ValueError, OverflowError):
            if _TIME.fullmatch(text):
                raise Unknown(f"times beyond the years that are computed here: {text[:40]}", "times") from None
            raise Unreadable(f"{self.path}: got {text[:40]!r} as a time; expected one as it was released") from None


# The privacy statement: its members and their forms. A form is a type, a pattern of text, the values that may stand
# there, a list of one form, or members by name ("name?": may be absent).
_HASH, _NAME, _ANY = re.compile("[0-9a-f]{64}"), re.compile(r"[^\x00-\x1f]{1,400}"), object
_FRACTION = re.compile("[0-9]+(/[1-9][0-9]*)?")
_TOTAL = re.compile(r"(about )?[0-9.e+\-/]{1,60}|unbounded")
_KIND = re.compile("categorical|complete|edges|knn|radius|transition|union")
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}((a|b|rc|\.post|\.dev)[0-9]{1,4})?")
_POLICY = {"kind": _KIND, "parameters": (dict, None), "sha256": _HASH}
REASONS = {
    False: ("replayable bits", "fitted on released"),
    "unknown": ("no epsilon of the fit", "made from released", "fitted on unknown people", "unknown origin"),
}
KNOWN_BY = {"unknown": (None,), "others": ("owner", "names", "model"), "same": ("owner", "names", "file")}
#: What releases never hide, and mechanisms that tell more: their answers are among the answers of states.
NEVER_HIDDEN = ["presence", "states no edge joins", "many releases", "impossible moves", "a stronger adversary"]
TELL_MORE = ("hops", "optimal-table", "made-table")
MECHANISMS = ("constant", "discrete-knorm", "discrete-laplace", "hops", "made-table", "optimal-table", "staircase")
_ASKED = re.compile(f"auto|{'|'.join(MECHANISMS)}|made-table:[0-9a-f]{{64}}")
_LENGTH = (int, None)
MEMBERS: dict[str, Any] = {
    "format": (FORMAT,),
    "software": {"name": ("dphmm",), "version": _VERSION},
    "algorithm_version": int,
    "private": (True, False, "unknown"),
    "reasons": [tuple(code for codes in REASONS.values() for code in codes)],
    "definition": ("{epsilon, G, C_t}-DPHMM",),
    "query": _NAME,
    "answer?": ("last", "first"),
    "subjects": {"spelling": ("same", "exact"), "noun": re.compile("[a-z]{2,20}")},
    "checked": bool,
    "epsilon": _FRACTION,
    "policy": _POLICY,
    "covered_distance": ({"metres": (float, int, "any"), "ground_metres": (float, int, "any")}, None),
    "constraint": re.compile(r"support|delta=[0-9./e\-]{1,40}"),
    "mechanism": {
        "asked": _ASKED,
        "chosen": dict,
        "protection": _NAME,
        "start": ("before", "at"),
    },
    "space": {
        "kind": _NAME,
        "states": int,
        "dimension": int,
        "pitch": [(float, int)],
        "sha256": _HASH,
        "merged?": {"count": int, "pairs": ([[int]], None)},
    },
    "model": {
        "sha256": _HASH,
        "step_seconds": (int, None),
        "latent_states?": int,
        "slots?": int,
        "method": str,
        "private": (True, False, None),
        "because?": _NAME,
        "people": tuple(KNOWN_BY),
        "people_known_by": ("owner", "names", "file", "model", None),
    },
    "learning": (
        {
            "private": bool,
            "epsilon": _TOTAL,
            "delta": _TOTAL,
            "neighbours": ("add-remove", "replace"),
            "unit": ("owner", "sequence"),
            "max_length": int,
            "max_sequences": int,
            "together": ({"epsilon": _TOTAL, "delta": _TOTAL}, None),
        },
        None,
    ),
    "plans": {"count": int, "sha256": _HASH, "hashes": ([_HASH], None)},
    "published": {"rows": int, "subjects": int, "public_constants": int},
    "totals": {
        "epsilon_sum": _TOTAL,
        "cost_sum": _TOTAL,
        "cap": (_FRACTION, None),
        "cost_cap": (_FRACTION, None),
        "limited": bool,
    },
    "sequence?": {
        "total": _FRACTION,
        "steps": _LENGTH,
        "window": _LENGTH,
        "per": (int, re.compile("[0-9]{1,9}(s|min|h|d)"), None),
        "zone": re.compile(f"[+-][0-9]{{2}}:[0-9]{{2}}|{ZONE_NAME}"),
        "couples": (True, "unknown"),
    },
    "schedule?": {
        "name": ("planned", "staggered", "paced"),
        "seed?": re.compile("[0-9A-Za-z._-]{1,64}"),
        "at?": re.compile("[0-9]{1,16}(-[0-9]{1,16})?(,[0-9]{1,16}(-[0-9]{1,16})?)*"),
        "hours?": [re.compile("([01][0-9]|2[0-3]):[0-5][0-9]")],
        "spreads": [(float, int)],
        "releases": int,
        "not_asked": int,
    },
    "varied?": {
        "names": [("epsilon", "partners", "policy", "protection")],
        "chosen": [
            {
                "steps": [[int]],
                "epsilon": (_FRACTION, None),
                "policy": (_POLICY, None),
                "protection": (_NAME, None),
                "partners": ([[_NAME]], None),
            }
        ],
    },
    "beginnings?": {"subjects": int, "sha256": _HASH},
    "events?": {
        "case_names": ("random", "kept"),
        "times": ("none", "day", "exact"),
        "length": _LENGTH,
        "length_hidden": bool,
    },
    "randomness": {"replayable_rows": int, "words": ("system", "job key")},
    "not_protected": [
        (
            *NEVER_HIDDEN,
            "what a secret leaves out",
            "more by the mechanism",
            "people of a learned model",
            "people of the model",
        )
    ],
    # A statement in a commit has none.
    "file?": {"name": _NAME, "sha256": _HASH},
}


def faults(found: Any, form: Any, path: str = "") -> Iterator[str]:
    """The members of a statement that are missing, that no release has, or that are of another form."""
    if isinstance(form, tuple):
        if all(any(True for _ in faults(found, option, path)) for option in form):
            # Of several forms only one is of members: their faults say more.
            inner = [option for option in form if isinstance(option, dict) and isinstance(found, dict)]
            yield from faults(found, inner[0], path) if inner else (path,)
    elif isinstance(form, dict):
        if not isinstance(found, dict):
            yield path
            return
        known = {name.removesuffix("?"): name for name in form}
        yield from (f"{path}.{name[:40]}, which no release has" for name in found if name not in known)
        for name, stated in known.items():
            if name in found:
                yield from faults(found[name], form[stated], f"{path}.{name}")
            elif name == stated:
                yield f"{path}.{name}, which is missing"
    elif isinstance(form, list):
        parts = found if isinstance(found, list) else [Ellipsis]
        yield from (fault for part in parts for fault in faults(part, form[0], path))
    elif isinstance(form, re.Pattern):
        if not isinstance(found, str) or form.fullmatch(found) is None:
            yield path
    elif isinstance(form, type):
        if not isinstance(found, form) or (isinstance(found, bool) and form is not bool):
            yield path
    elif not alike(form, found if isinstance(found, (str, int, float, type(None))) else [0]):
        yield path


def in_order(found: Any, form: Any) -> Any:
    """A statement with its members in the order in which they are written."""
    inner = [option for option in form if isinstance(option, dict)] if isinstance(form, tuple) else []
    form = inner[0] if inner else form
    if isinstance(form, list) and isinstance(found, list):
        return [in_order(part, form[0]) for part in found]
    if not (isinstance(form, dict) and isinstance(found, dict)):
        return found
    known = [(name.removesuffix("?"), nested) for name, nested in form.items()]
    return {name: in_order(found[name], nested) for name, nested in known if name in found}


def most_within(promise: Mapping[str, Any], spent: list[tuple[int, Any]]) -> Any:
    """The largest sum of (step, epsilon) within the steps, any window, or a block of a promise in steps."""
    spent, window = sorted(spent), promise.get("window")
    if window is not None:
        added = [0, *accumulate(e for _, e in spent)]
        ends = [bisect_left(spent, (t + window, 0)) for t, _ in spent]
        return max((added[end] - added[first] for first, end in enumerate(ends)), default=0)
    of_block, length = Counter[int](), promise.get("per") or MOST_OPERATIONS
    for t, e in spent:
        of_block[(t - 1 + promise.get("passed", 0)) // length] += e
    return max(of_block.values(), default=0)


def clock(stated: dict[str, Any]) -> tuple[int, int]:
    """The seconds of a block of a time, and the seconds that its clock is ahead of UTC. Raises Unknown."""
    number = re.fullmatch("([0-9]{1,9})(s|min|h|d)", str(stated.get("per")))
    zone = re.fullmatch("([+-])([0-9]{2}):([0-9]{2})", str(stated.get("zone") or "+00:00"))
    if number is None or zone is None or int(number[1]) == 0:
        raise Unknown(f"a block of {str(stated.get('per'))[:40]} by the clock {str(stated.get('zone'))[:40]}")
    ahead = int(zone[2]) * 3600 + int(zone[3]) * 60
    return int(number[1]) * SECONDS[number[2]], -ahead if zone[1] == "-" else ahead


def is_local(stated: Mapping[str, Any]) -> bool:
    """True if blocks are days of clocks that are put forward and back."""
    return isinstance(stated.get("per"), str) and re.fullmatch(ZONE_NAME, str(stated.get("zone"))) is not None


def zone_table(name: str) -> str:
    """The name of the table in which this machine has a zone."""
    for folder in map(Path, zoneinfo.TZPATH):
        if (folder / name).is_file():
            for note in ("tzdata.zi", "+VERSION"):
                if (folder / note).is_file():
                    with (folder / note).open(encoding="utf-8", errors="replace") as opened:
                        return f"zone table {opened.readline(64).removeprefix('# version').strip()} of this system"
            return "zone table of this system, which does not say its version"
    for place in (Path(folder) / "tzdata" / "__init__.py" for folder in sys.path):
        if place.is_file():
            version = re.search(
                'IANA_VERSION = "([0-9a-z]{1,10})"', place.read_text(encoding="utf-8", errors="replace")
            )
            return f"zone table {version[1] if version else 'of no known version'} of the package tzdata"
    return "zone table that does not say its version"


class ZoneClock:
    """The clocks of a zone between two moments, in seconds since 1970 UTC, and the beginnings of their days.

    ``parts``: (begin, end, seconds ahead of UTC). Those of a zone by name are read once an hour, and
    a change is narrowed down to the second. A day begins when clocks first show its date, or a later one.
    """

    def __init__(self, zone: str, first: int, last: int) -> None:
        first, last = first - 4 * 86400, last + 4 * 86400
        if re.fullmatch(ZONE_NAME, zone) is None:
            _, ahead = clock({"per": "1d", "zone": zone})
            self.parts, self.table = [(first, last, ahead)], "an offset from UTC"
        else:
            self.parts, self.table = self._read(zone, first, last), zone_table(zone)
        begins: dict[int, int] = {}
        for begin, end, ahead in self.parts:
            for day in range((begin + ahead) // 86400, (end - 1 + ahead) // 86400 + 1):
                begins[day] = min(begins.get(day, end), max(begin, day * 86400 - ahead))
        self.begins, following = dict[int, int](), last
        for day in range(max(begins), min(begins) - 1, -1):
            self.begins[day] = following = min(begins.get(day, following), following)

    @staticmethod
    def _read(zone: str, first: int, last: int) -> list[tuple[int, int, int]]:
        if (last - first) // 3600 > MOST_HOURS:
            raise Unknown(f"days of {zone[:40]} over {(last - first) // 86400:,} days", "blocks")
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        try:
            rules = zoneinfo.ZoneInfo(zone)

            def ahead(moment: int) -> int:
                offset = (epoch + timedelta(seconds=moment)).astimezone(rules).utcoffset()
                return 0 if offset is None else offset // timedelta(seconds=1)

            changes = [first]
            for hour in range(first, last, 3600):
                if ahead(hour) != ahead(hour + 3600):
                    before, after = hour, hour + 3600
                    while after - before > 1:
                        middle = (before + after) // 2
                        before, after = (middle, after) if ahead(middle) == ahead(hour) else (before, middle)
                    changes.append(after)
            return [(begin, end, ahead(begin)) for begin, end in pairwise([*changes, last])]
        except (LookupError, OSError, OverflowError, ValueError):
            raise Unknown(f"days of {zone[:40]}: this machine's zone table has none", "blocks") from None

    def starts(self, seconds: int, days: int) -> list[int]:
        """The bins of ``seconds`` in which blocks of so many days begin, ascending."""
        return sorted({-(-begin // seconds) for day, begin in self.begins.items() if day % days == 0})

    def shows(self, hour: str, seconds: int) -> list[int]:
        """The bins that begin when clocks show a time of day, or next, ascending."""
        second = int(hour[:2]) * 3600 + int(hour[3:]) * 60
        return sorted(
            -(-moment // seconds)
            for begin, until, ahead in self.parts
            for day in range((begin + ahead) // 86400, (until - 1 + ahead) // 86400 + 1)
            if begin <= (moment := day * 86400 + second - ahead) < until
        )


def beside(block: tuple[int, int], number: int, stored: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The block that a bin is in where some are stored: a stored one, or the part of its own that lies between them."""
    first, end = block
    for begin, until in stored:
        if begin <= number < until:
            return begin, until
        if until <= number:
            first = max(first, until)
        if begin > number:
            end = min(end, begin)
    return first, end


def in_text(value: Fraction | float) -> str:
    return "unbounded" if value == math.inf else str(value) if len(str(value)) < 30 else f"{float(value):.9g}"


def in_words(kept: dict[str, Any] | None) -> str:
    """A promise of a ledger, as short as it is there."""
    return "none" if kept is None else ", ".join(f"{name} {value}" for name, value in sorted(kept.items()))


def first_step(kept: KeptSession) -> int | None:
    """The number of a person's step 1 in steps since 1970, None where the ledger has none."""
    origin = str(kept.options.get("origin", ""))
    return int(origin) if re.fullmatch("-?[0-9]{1,18}", origin) else None


_HEADER = re.compile(r"\{'descr': '([^']{1,20})', 'fortran_order': (True|False), 'shape': \(([0-9, ]{0,80})\),? ?\}\s*")
_TYPES = {"<f8": "d", "<i8": "q", "<i4": "i", "<i2": "h", "|u1": "B", "|b1": "?", "<u8": "Q", "|i1": "b"}


class ModelFile:
    """A model file: the chain and the states, read as a ZIP file of arrays."""

    def __init__(self, path: Path) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                    raise ValueError("more than it may hold")
                self.arrays = {name: self._array(archive.read(name)) for name in archive.namelist() if name != "sha256"}
        except (OSError, *MALFORMED) as error:
            raise Unreadable(f"{path}: got no model ({error}); expected a model file of dphmm") from None
        try:
            self.meta = parsed(bytes(self.arrays["meta.npy"][1]))
            self.initial = self._values("initial")
            self.indptr, self.indices, self.data = map(self._values, ("indptr", "indices", "data"))
            shape, flat = self.arrays["space/lattice.npy"]
            self.space = self.meta["space"]
            self.jump = self.meta.get("jump")
            self.start, self.step = self.meta["start"], self.meta["step"]
            #: Whether a release takes the first law for that of the step before the first one.
            self.begins = self.start
            self.n, self.dimension = shape
            d = self.dimension
            if d < 1 or self.n * d != len(flat):
                raise ValueError("states without answers")
            self.own: list[Point] = [tuple(flat[i * d : i * d + d]) for i in range(self.n)]
            #: The hidden states of the chain, and the released state of each.
            self.latent = len(self.initial)
            #: How the matrix of a step is chosen, and how many there are, their rows one after another.
            self.slots = self.meta.get("slots")
            self.matrices = 1 if self.slots is None else len(self.slots["begins"])
            hidden = self._values("secrets") if "secrets.npy" in self.arrays else range(self.n)
            self.secrets: list[int] = list(hidden)
            self._require_chain()
            self.merges: list[list[int]] = []
            if "space/merges.npy" in self.arrays:
                pairs = self._values("space/merges")
                self.merge([list(pairs[i : i + 2]) for i in range(0, len(pairs), 2)])
        except MALFORMED:
            raise Unreadable(f"{path}: got a file without a chain and its states; expected a model of dphmm") from None

    def _require_chain(self) -> None:
        """Raises ValueError for arrays that are no chain of these states."""
        n, rows = self.latent, list(self.indptr)
        right = n > 0 and len(self.own) == self.n and len(self.secrets) == n and rows[0] == 0
        right = right and self.matrices > 0 and len(rows) == self.matrices * n + 1
        right = right and set(self.secrets) == set(range(self.n))
        right = right and rows == sorted(rows) and rows[-1] == len(self.indices) == len(self.data)
        right = right and all(0 <= j < n for j in self.indices) and all(type(x) is int for p in self.own for x in p)
        if not right or not all(math.isfinite(p) for p in [*self.initial, *self.data]):
            raise ValueError("no chain")

    @staticmethod
    def _array(data: bytes) -> tuple[tuple[int, ...], Sequence[Any]]:
        if data[:6] != b"\x93NUMPY":
            raise ValueError("a member that is no array")
        size = struct.unpack("<H" if data[6] == 1 else "<I", data[8 : 10 if data[6] == 1 else 12])[0]
        begin = (10 if data[6] == 1 else 12) + size
        header = _HEADER.fullmatch(data[begin - size : begin].decode("latin-1"))
        if header is None:
            raise ValueError("a member that is no plain array")
        shape = tuple(int(length) for length in header[3].split(",") if length.strip())
        if header[1] not in _TYPES or header[2] == "True":
            return shape, data[begin:]
        count = math.prod(shape)
        kind = _TYPES[header[1]]
        if count * struct.calcsize(f"<{kind}") != len(data) - begin:
            raise ValueError("an array of another length")
        return shape, struct.unpack(f"<{count}{kind}", data[begin:])

    def _values(self, name: str) -> Sequence[Any]:
        return self.arrays[f"{name}.npy"][1]

    def merge(self, pairs: list[list[int]]) -> None:
        """Merge what a policy file lists too. Raises ValueError for states that are none."""
        if any(not 0 <= state < self.n for pair in pairs for state in pair):
            raise ValueError("a state that is none")
        self.merges = sorted([*self.merges, *(pair for pair in pairs if pair not in self.merges)])

    @property
    def lattice(self) -> list[Point]:
        """The answer of each state: a merged one has that of another."""
        into = {pair[0]: pair[1] for pair in self.merges}
        return [self.own[into.get(s, s)] for s in range(self.n)]

    @cached_property
    def names(self) -> list[str]:
        if "names" in self.space:
            return list(self.space["names"])
        if self.space["kind"] == "grid":
            return [f"x{x}y{y}" for x, y in self.own]
        if self.space["kind"] == "plain":
            return [str(s) for s in range(self.n)]
        raise Unknown(f"names of {self.space['kind']} cells")

    @cached_property
    def digest(self) -> str:
        moves = sum(map(len, self.moves)) if self.slots else len(self.data)
        header = {"model": 1, "n": self.latent, "nnz": moves, "start": self.start, "step": self.step}
        if self.jump is not None:
            header["jump"] = self.jump
        if self.has_secrets:
            header["secrets"] = self.n
        if self.slots is not None:
            rule = repr((self.slots["period"], tuple(self.slots["begins"]), self.slots["zone"])).encode()
            changes = self._values("changes")
            header["slots"] = hashlib.sha256(rule + struct.pack(f"<{len(changes)}q", *changes)).hexdigest()
        sha = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        parts: list[tuple[Sequence[Any], str]] = [(self.initial, "d")]
        for first in range(0, self.matrices * self.latent, self.latent):
            ends = self.indptr[first : first + self.latent + 1]
            entries = slice(ends[0], ends[-1])
            parts += [([end - ends[0] for end in ends], "q"), (self.indices[entries], "q"), (self.data[entries], "d")]
        if self.jump is not None:
            parts.append((self._values("jump"), "d"))
        if self.has_secrets:
            parts.append((self.secrets, "q"))
        for values, kind in parts:
            sha.update(struct.pack(f"<{len(values)}{kind}", *values))
        return sha.hexdigest()

    @property
    def has_secrets(self) -> bool:
        """True if states of the chain are other ones than those of the release."""
        return "secrets.npy" in self.arrays

    def space_digest(self) -> str:
        """The hash of the states. Raises Unknown for kinds whose hash is not computed here."""
        where, kind = "", self.space["kind"]
        if kind == "labels":
            where = "labels"
        elif kind == "grid":
            west, south, width, metres = self._box()
            where = (
                f"\nProjection(south={south!r}, west={west!r}, middle={west + width / 2!r}, "
                f"metres_north={metres[0]!r}, metres_east={metres[1]!r})"
            )
        elif kind != "plain":
            raise Unknown(f"the hash of {kind} cells is not computed here", "space")
        sha = hashlib.sha256(f"dphmm space 1 ({self.n}, {self.dimension})".encode())
        flat = [number for point in self.own for number in point]
        sha.update(struct.pack(f"<{len(flat)}q", *flat))
        for axis in ("pitch", "origin"):
            sha.update(struct.pack(f"<{self.dimension}d", *self.space[axis]))
        sha.update("\n".join(self.names).encode())
        sha.update(where.encode())
        if not self.merges:
            return sha.hexdigest()
        return hashlib.sha256(f"{sha.hexdigest()} merged {self.merges}".encode()).hexdigest()

    def _box(self) -> tuple[float, float, float, tuple[float, float]]:
        west, south, east, north = (float(self.space[name]) for name in ("west", "south", "east", "north"))
        width = east - west if east > west else east - west + 360.0
        # WGS84: the length of a degree at the middle latitude.
        phi, e2, a = math.radians((south + north) / 2), 6.694_379_990_141_317e-3, 6_378_137.0
        curvature = 1 - e2 * math.sin(phi) ** 2
        north_ = math.radians(a * (1 - e2) / curvature**1.5)
        return west, south, width, (north_, math.radians(a / math.sqrt(curvature) * math.cos(phi)))

    def degrees(self, x: float, y: float) -> tuple[float, float]:
        """Latitude and longitude of an answer on a grid."""
        if self.space["kind"] != "grid":
            raise Unknown(f"degrees of {self.space['kind']} cells are not computed here", "places")
        west, south, _, (north_, east_) = self._box()
        return min(90.0, max(-90.0, y / north_ + south)), (x / east_ + west + 180.0) % 360.0 - 180.0

    @property
    def provenance(self) -> dict[str, Any]:
        """The file's record of how the model was made."""
        return dict(self.meta.get("provenance") or {})

    def couples(self) -> bool:
        """True if the model is known to couple along every radius policy.

        That holds for a whole grid with one law of moves, of at most two cells on an axis and as likely one way as
        the other, and a uniform beginning. A rare move is compared relative to itself, too.
        """
        if self.space["kind"] != "grid" or self.has_secrets or self.slots is not None:
            return False
        least = [min(point[j] for point in self.own) for j in range(2)]
        width = [max(point[j] for point in self.own) - least[j] + 1 for j in range(2)]
        even = [self.initial, *([] if self.jump is None else [self._values("jump")])]
        if min(width) < 5 or math.prod(width) != self.n or any(len(set(values)) > 1 for values in even):
            return False
        at: dict[Point, int] = {(x - least[0], y - least[1]): s for s, (x, y) in enumerate(self.own)}
        points, (a, b) = {s: point for point, s in at.items()}, (width[0] // 2, width[1] // 2)
        law: dict[Point, float] = {(points[j][0] - a, points[j][1] - b): p for j, p in self.moves[at[a, b]]}
        if any(max(abs(x), abs(y)) > 2 for x, y in law):
            return False
        turned = [(p, to) for (x, y), p in law.items() for to in ((-x, y), (x, -y))]
        if any(abs(p - law.get(to, 0.0)) > ALIKE * p for p, to in turned):
            return False
        return all(self._moves_by(law, at, place, width) for place in at)

    def _moves_by(self, law: dict[Point, float], at: dict[Point, int], place: Point, width: list[int]) -> bool:
        """True if a cell has these moves; those that would leave the grid are not made, axis by axis."""
        due: dict[int, float] = defaultdict(float)
        for move, p in law.items():
            to = (x + d if 0 <= x + d < w else x for x, d, w in zip(place, move, width, strict=True))
            due[at[tuple(to)]] += p
        stored = dict(self.moves[at[place]])
        pairs = [(due.get(s, 0.0), stored.get(s, 0.0)) for s in {*due, *stored}]
        return all(abs(p - q) <= ALIKE * max(p, q) for p, q in pairs)

    @cached_property
    def moves(self) -> list[list[tuple[int, float]]]:
        """The moves from each state, with a probability that one slot or another gives each."""
        moves: list[dict[int, float]] = [{} for _ in range(self.latent)]
        for row in range(self.matrices * self.latent):
            a, b = self.indptr[row], self.indptr[row + 1]
            moves[row % self.latent] |= {j: p for j, p in zip(self.indices[a:b], self.data[a:b], strict=True) if p > 0}
        return [sorted(row.items()) for row in moves]

    @property
    def moves_alike(self) -> bool:
        """True if every slot has the same possible moves, so that a support does not depend on the hour."""
        ends = [len(self.moves[s]) for s in range(self.latent)] * self.matrices
        return ends == [b - a for a, b in zip(self.indptr, self.indptr[1:], strict=False)]

    def support_at(self, t: int) -> frozenset[int]:
        """The states that can be possible at step t of a subject, whatever was answered."""
        return frozenset(self.secrets[s] for s in self._latent_at(t))

    def _latent_at(self, t: int) -> frozenset[int]:
        known: list[frozenset[int]] = self._supports
        while len(known) < t:
            if len(known) > 1 and known[-1] == known[-2]:
                return known[-1]
            if len(known) >= MOST_MOVES:
                raise Unknown(f"the states possible at step {t}: more than {MOST_MOVES:,} moves")
            known.append(self._moved(known[-1]))
        return known[t - 1]

    @cached_property
    def _supports(self) -> list[frozenset[int]]:
        first = frozenset(s for s, p in enumerate(self.initial) if p > 0)
        return [self._moved(first) if self.begins == "before" else first]

    def _moved(self, states: frozenset[int]) -> frozenset[int]:
        if self.jump is not None:
            return frozenset(range(self.latent))
        return frozenset(j for s in states for j, _ in self.moves[s])


def sha_of_integers(rows: Sequence[Sequence[int]], shape: str) -> str:
    flat = [number for row in rows for number in row]
    return hashlib.sha256(f"{shape}\n".encode() + struct.pack(f"<{len(flat)}q", *flat)).hexdigest()


def policy_digest(kind: str, parameters: dict[str, Any] | None) -> str:
    """The hash of a policy. Raises Unknown for kinds whose hash is of a longer list, and for parameters left out."""
    if parameters is None:
        raise Unknown("the hash of a policy whose parameters are left out", "policy")
    stated = dict(parameters)
    if kind == "edges":
        pairs = sorted(sorted(pair) for pair in stated["edges"])
        stated["edges"] = sha_of_integers(pairs, f"({len(pairs)}, 2)")
    elif kind not in ("radius", "complete"):
        raise Unknown(f"the hash of a {kind} policy is not computed here", "policy")
    return hashlib.sha256(json.dumps({**stated, "kind": kind}, sort_keys=True).encode()).hexdigest()


class PolicyFile:
    """A policy file: the pairs of states that must not be told apart."""

    def __init__(self, path: Path) -> None:
        self.document = read_json(path)
        try:
            self.kind, self.parameters = self.document["kind"], self.document["parameters"]
            self.merges = [list(map(int, pair)) for pair in self.document.get("merges", [])]
            if not isinstance(self.parameters, dict) or any(len(pair) != 2 for pair in self.merges):
                raise TypeError("no policy")
        except MALFORMED:
            raise Unreadable(f"{path}: got no policy; expected a policy file of dphmm") from None

    @property
    def digest(self) -> str:
        """Raises Unknown for kinds whose hash is of a longer list."""
        return policy_digest(self.kind, self.parameters)

    def edges(self, model: ModelFile) -> Iterator[tuple[int, int]]:
        """All edges. Raises Unknown for kinds that this program does not know, and for too many pairs."""
        return self._edges(self.kind, self.parameters, model)

    def _edges(self, kind: str, stated: dict[str, Any], model: ModelFile) -> Iterator[tuple[int, int]]:
        n = model.n
        if kind == "complete":
            self._few(n * (n - 1) // 2)
            yield from ((a, b) for a in range(n) for b in range(a))
        elif kind == "categorical":
            groups = defaultdict(list)
            for s, label in enumerate(stated["labels"]):
                groups[label].append(s)
            yield from self._of_cliques(groups.values())
        elif kind == "edges":
            yield from ((int(a), int(b)) for a, b in stated["edges"])
        elif kind == "transition":
            sources: dict[int, set[int]] = defaultdict(set)
            for s, row in enumerate(model.moves):
                source = s if stated.get("order") == 2 else model.secrets[s]
                sources[source] |= {model.secrets[j] for j, _ in row}
            yield from self._of_cliques(map(sorted, sources.values()))
        elif kind == "radius":
            yield from self._near(stated, model)
        elif kind == "union":
            for part in stated["parts"]:
                yield from self._edges(part["kind"], part, model)
        else:
            raise Unknown(f"the edges of a {kind} policy are not computed here", "losses")

    def _of_cliques(self, groups: Any) -> Iterator[tuple[int, int]]:
        listed = [list(group) for group in groups]
        self._few(sum(len(group) ** 2 for group in listed) // 2)
        for group in listed:
            yield from ((a, b) for i, a in enumerate(group) for b in group[:i])

    def _near(self, stated: dict[str, Any], model: ModelFile) -> Iterator[tuple[int, int]]:
        points, offsets = self._offsets(stated, model)
        at: dict[Point, list[int]] = defaultdict(list)
        for s, point in enumerate(points):
            at[point].append(s)
        self._few(len(offsets) * model.n)
        for a, point in enumerate(points):
            for v in offsets:
                for b in at.get(tuple(x + y for x, y in zip(point, v, strict=True)), ()):
                    if b < a:
                        yield a, b

    def offsets(self, model: ModelFile) -> list[Point]:
        """The differences of answers within the radius, of a policy whose answers are those of the lattice."""
        points, offsets = self._offsets(self.parameters, model)
        if points != model.lattice:
            raise Unknown("a radius between the states as they were before they were merged", "losses")
        return [v for v in offsets if any(v)]

    def _offsets(self, stated: dict[str, Any], model: ModelFile) -> tuple[list[Point], list[Point]]:
        """The places that a radius is between, and the differences within it."""
        pitch = [Fraction(repr(float(p))) for p in model.space["pitch"]]
        points = next((p for p in (model.own, model.lattice) if self._same(p, pitch, stated["answers"])), None)
        if points is None:
            raise Unknown("the distances of this policy are not those of the lattice", "losses")
        r = total(stated["r"])
        reach = [min(int(r / p), max(q[j] for q in points) - min(q[j] for q in points)) for j, p in enumerate(pitch)]
        self._few(math.prod(2 * length + 1 for length in reach))
        return points, [v for v in box(reach) if self._within(v, pitch, r, stated["closed"])]

    @staticmethod
    def _same(points: list[Point], pitch: list[Fraction], stated: str) -> bool:
        least = [min(p[j] for p in points) for j in range(len(pitch))]
        moved = [[x - low for x, low in zip(p, least, strict=True)] for p in points]
        digest = sha_of_integers(moved, f"({len(points)}, {len(pitch)})")
        return hashlib.sha256(f"{','.join(map(str, pitch))} {digest}".encode()).hexdigest() == stated

    @staticmethod
    def _within(v: Point, pitch: list[Fraction], r: Fraction, closed: bool) -> bool:
        square = sum((p * x) ** 2 for p, x in zip(pitch, v, strict=True))
        return square <= r * r if closed else square < r * r

    @staticmethod
    def _few(pairs: int) -> None:
        if pairs > MOST_EDGES:
            raise Unknown(f"{pairs:,} pairs of states, more than {MOST_EDGES:,}", "losses")


def box(reach: Sequence[int]) -> Iterator[Point]:
    """All integer vectors with |v_j| <= reach_j."""
    if not reach:
        yield ()
        return
    for first in range(-reach[0], reach[0] + 1):
        for rest in box(reach[1:]):
            yield (first, *rest)


class PlainTable:
    """The law of a plan that is a table: for each answer a row of weights over the same answers."""

    def __init__(self, stated: dict[str, Any], law: dict[str, str]) -> None:
        self.points = [tuple(map(int, point)) for point in stated["points"]]
        self.weights, self.bits = [list(map(int, row)) for row in stated["weights"]], int(stated["bits"])
        first = self.points[0]
        moved = [[x - y for x, y in zip(point, first, strict=True)] for point in self.points]
        digest = hashlib.sha256(repr([1, moved, self.weights, self.bits]).encode()).hexdigest()
        made = [
            str(exact(law["epsilon"])),
            stated["space"],
            list(map(list, self.points)),
            stated["edges"],
            stated["labels"],
        ]
        whole = hashlib.sha256(repr([*made, digest]).encode()).hexdigest()
        if law.get("weights", law.get("table")) != (digest if "weights" in law else whole):
            raise ValueError("another table than that of the plan")
        n, rows = len(self.points), self.weights
        if any(len(row) != n or min(row) < 1 or sum(row) != 1 << self.bits for row in rows) or len(rows) != n:
            raise ValueError("weights that are no laws")
        self.row = {point: number for number, point in enumerate(self.points)}
        self._logs = [list(map(math.log, row)) for row in rows]
        self._known: dict[tuple[int, int], float] = {}

    def loss(self, a: Point, b: Point) -> float:
        """The loss between two answers, in floats."""
        pair = self.row[a], self.row[b]
        if pair not in self._known:
            logs_a, logs_b = self._logs[pair[0]], self._logs[pair[1]]
            self._known[pair] = max(abs(x - y) for x, y in zip(logs_a, logs_b, strict=True))
        return self._known[pair]

    def passes(self, a: Point, b: Point, epsilon: Fraction) -> bool:
        """True if two answers lose more than epsilon: decided by the weights where floats are near."""
        if self.loss(a, b) <= float(epsilon) - 1e-9:
            return False
        row_a, row_b = self.weights[self.row[a]], self.weights[self.row[b]]
        most = exponential(epsilon)
        return any(max(x, y) > most * min(x, y) for x, y in zip(row_a, row_b, strict=True))

    @property
    def widest(self) -> Fraction:
        """The largest quotient of what two answers make likely."""
        return max(Fraction(max(column), min(column)) for column in zip(*self.weights, strict=True))


def exponential(epsilon: Fraction) -> Fraction:
    """exp(epsilon) to 60 digits. Raises ValueError for one that no table has."""
    if not 0 <= epsilon <= 2**12:
        raise ValueError("an epsilon that no table has")
    digits = Context(prec=80 + int(epsilon))
    return Fraction(digits.exp(digits.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))


class PlainPlan:
    """One plan in plain form: the law of the answers, and for which states it was made."""

    def __init__(self, stated: dict[str, Any]) -> None:
        try:
            self.hash: str = stated["hash"]
            self.inputs: str = stated["inputs"]
            self.description: str = stated["description"]
            self.bodies = stated["bodies"]
            self.packed = bytes.fromhex(stated["support"]), bytes.fromhex(stated["plan_set"])
            self.given = [(int(a), int(b)) for a, b in stated["given"]]
            self.surrogate = None if stated["surrogate"] is None else list(map(int, stated["surrogate"]))
            self.shared = parsed(self.inputs)
            self.n = int(stated["states"])
            if any(len(bits) != (self.n + 7) // 8 for bits in self.packed):
                raise ValueError("a bit for each state")
            self.chosen = parsed(self.description)
            self.support, self.plan_set = (frozenset(self._states(bits)) for bits in self.packed)
            self.cost = exact(self.chosen["cost"])
            self.laws = self.chosen["mechanisms"]
            self.name, self.epsilon = self.laws[0]["name"], exact(self.laws[0]["epsilon"])
            self.offset = exact(self.laws[0].get("offset", "0"))
            self.merged = {int(a): int(b) for a, b in self.chosen.get("merged", [])}
            before = list(range(self.n)) if self.surrogate is None else self.surrogate
            self.answered_as = [self.merged.get(s, s) for s in before]
            if len(before) != self.n or any(
                not 0 <= s < self.n for s in [*self.answered_as, *(s for pair in self.given for s in pair)]
            ):
                raise ValueError("a state that is none")
            self.table = None if stated.get("table") is None else PlainTable(stated["table"], self.laws[0])
        except MALFORMED as error:
            raise Unreadable(
                f"plans: got a plan without its parts ({error}); expected those that dphmm check-release writes"
            ) from None

    def _states(self, bits: bytes) -> Iterator[int]:
        return (s for s in range(self.n) if bits[s // 8] >> (7 - s % 8) & 1)

    @property
    def made(self) -> str:
        """The hash of its parts."""
        code = next(c for s, c in ((2, "h"), (4, "i"), (8, "q")) if self.n <= 2 ** (8 * s - 1))
        states = range(self.n) if self.surrogate is None else self.surrogate
        sha = hashlib.sha256(self.inputs.encode())
        for part in self.packed:
            sha.update(part)
        sha.update(struct.pack(f"<{self.n}{code}", *states))
        sha.update(struct.pack(f"<{2 * len(self.given)}q", *[s for pair in self.given for s in pair]))
        bodies = "".join(self._of_body(body) for body in self.bodies)
        return hashlib.sha256(sha.digest() + (bodies + self.description).encode()).hexdigest()

    @staticmethod
    def _of_body(body: dict[str, Any]) -> str:
        d, rank = len(body["pitch"]), len(body["basis"][0])
        sha = hashlib.sha256(f"{d},{rank},{len(body['normals'])}".encode())
        sha.update(struct.pack(f"<{d}d", *body["pitch"]))
        for name in ("basis", "coordinates", "normals", "offsets"):
            if name in body["long"]:
                sha.update(repr(body[name]).encode())
                continue
            flat = [x for row in body[name] for x in (row if isinstance(row, list) else [row])]
            sha.update(struct.pack(f"<{len(flat)}q", *flat))
        return sha.hexdigest()

    @property
    def constant(self) -> bool:
        return bool(self.name == "constant")

    @property
    def promised(self) -> Fraction:
        """The charge for an answer: 0 for a public constant, which says nothing."""
        return Fraction(0) if self.constant else self.epsilon

    def check_known(self) -> None:
        """Raises Unknown for a law that this program does not compute."""
        if len(self.bodies) != 1 or len(self.laws) != 1:
            raise Unknown("several laws", "losses")
        if self.table is not None:
            return
        if self.name not in ("discrete-knorm", "staircase", "discrete-laplace", "constant"):
            raise Unknown(f"the mechanism {self.name}", "losses")
        body = self.bodies[0]
        if not self.constant and len(body["basis"][0]) != len(body["pitch"]):
            raise Unknown("a flat body", "losses")
        if any(offset <= 0 for offset in body["offsets"]):
            raise Unknown("a body with an empty facet", "losses")

    def norm(self, v: Sequence[int]) -> Fraction:
        """The least factor by which the body must grow to contain v."""
        body = self.bodies[0]
        values = (abs(sum(a * x for a, x in zip(row, v, strict=True))) for row in body["normals"])
        return max(Fraction(value, b) for value, b in zip(values, body["offsets"], strict=True))

    def loss_of_norm(self, norm: Fraction) -> Fraction:
        return self.epsilon * (math.ceil(norm) if self.name == "staircase" else norm)

    def widest(self, answers: Sequence[Point]) -> Fraction:
        """The largest norm of the difference of two of these answers."""
        worst, body, ends = Fraction(0), self.bodies[0], outermost(answers)
        for row, b in zip(body["normals"], body["offsets"], strict=True):
            along = [sum(a * x for a, x in zip(row, point, strict=True)) for point in ends]
            worst = max(worst, Fraction(max(along) - min(along), b))
        return worst


def outermost(points: Sequence[Point]) -> Sequence[Point]:
    """Points of two axes without those that lie between others."""
    ordered = sorted(set(points))
    if len(ordered) < 3 or len(ordered[0]) != 2:
        return ordered
    hull: list[Point] = []
    for walk in (ordered, ordered[::-1]):
        chain: list[Point] = []
        for p in walk:
            while len(chain) > 1 and turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        hull += chain[:-1]
    return hull


def turn(a: Point, b: Point, c: Point) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


class KeptSession(NamedTuple):
    """The session of one person in a ledger, beside the releases."""

    promise: dict[str, Any] | None
    options: dict[str, Any]


class PairChecks:
    """The losses of the pairs that the policy joins: each by itself, or, of too many, by the body that all share.

    ``odd``: faults, ``cheap``: plans of another cost, ``dearest``: the largest cost, ``left``: plans that were
    not looked at.
    """

    def __init__(self, model: ModelFile, policy: PolicyFile, plans: int) -> None:
        self.model, self.policy, self.lattice = model, policy, model.lattice
        self.odd, self.cheap, self.dearest = list[str](), list[str](), Fraction(0)
        self.worst: Fraction | float = Fraction(0)
        self.pairs = self.alone = self.left = 0
        self.by_body, self._edges = False, list[tuple[int, int]]()
        try:
            self._edges = list(policy.edges(model))
        except Unknown:
            if policy.kind not in ("radius", "complete"):
                raise
            self.by_body = True
        self.by_body |= len(self._edges) * plans > MOST_PAIRS
        self._offsets = policy.offsets(model) if self.by_body and policy.kind == "radius" else []

    @property
    def figure(self) -> str:
        """The findings in words."""
        of = "by the facets of the bodies"
        stated = f"{self.pairs:,} pairs joined by the policy" if not self.by_body else "all pairs joined by the policy"
        alone = f"; {self.alone:,} states without such a pair have a partner" if self.alone else ""
        return f"{stated} lose at most {in_text(self.worst)}, {of}{alone}"

    def add(self, plan: PlainPlan) -> None:
        """Look at one plan."""
        name, planned = plan.hash[:12], sorted(plan.plan_set - set(plan.merged))
        if any(plan.answered_as[s] not in plan.plan_set for s in plan.support):
            self.odd.append(f"a state of {name} is answered as one that is not planned")
        if any(plan.answered_as[s] != s for s in planned):
            self.odd.append(f"a planned state of {name} is answered as another")
        image = [self.lattice[s] for s in plan.answered_as]
        known: dict[Point, Fraction] = {}

        def loss(a: int, b: int) -> Fraction | float:
            if plan.constant:
                return math.inf if image[a] != image[b] else Fraction(0)
            if plan.table is not None:
                over = plan.table.passes(image[a], image[b], plan.epsilon)
                return math.inf if over else min(plan.table.loss(image[a], image[b]), float(plan.epsilon))
            v = tuple(x - y for x, y in zip(image[a], image[b], strict=True))
            v = max(v, tuple(-x for x in v))
            if v not in known:
                known[v] = plan.norm(v)
            return plan.loss_of_norm(known[v])

        joined = self._by_body(plan, image) if self.by_body else self._each(plan, self._edges, loss)
        if joined is None:
            self.left += 1
            return
        joined |= self._each(plan, plan.given, loss)
        partners = {int(a): int(b) for a, b in plan.chosen["partners"]}
        for s in [] if plan.constant else sorted(plan.plan_set - joined):
            self.alone += 1
            other = partners.get(s)
            if other is None or other == s or other not in plan.support or loss(s, other) > plan.epsilon:
                self.odd.append(f"state {s} hides behind nobody under {name}")
        self._price(plan, [image[s] for s in planned])

    def _each(self, plan: PlainPlan, edges: Sequence[tuple[int, int]], loss: Any) -> set[int]:
        """Look at pairs one by one; the states that one of them hides."""
        joined, support, answered_as = set[int](), plan.support, plan.answered_as
        for a, b in edges:
            if a not in support or b not in support:
                continue
            self.pairs += 1
            if answered_as[a] != answered_as[b]:
                joined.add(answered_as[a])
                joined.add(answered_as[b])
            lost = loss(a, b)
            self.worst = max(self.worst, lost)
            if lost > plan.epsilon:
                self.odd.append(f"states {a} and {b} lose {in_text(lost)} under {plan.hash[:12]}")
        return joined

    def _by_body(self, plan: PlainPlan, image: list[Point]) -> set[int] | None:
        """Look at the differences of answers that pairs can have; None where states are answered as others."""
        plain = all(plan.answered_as[s] == s for s in plan.support) and len(set(image)) == len(image)
        if not plain or plan.table is not None or plan.constant:
            return None
        at = {image[s]: s for s in plan.support}
        if self.policy.kind == "complete":
            widest = plan.loss_of_norm(plan.widest(list(at)))
            self.worst = max(self.worst, widest)
            self.odd += [f"two states lose {in_text(widest)} under {plan.hash[:12]}"] * (widest > plan.epsilon)
            return set(plan.support) if len(at) > 1 else set()
        for v in self._offsets:
            lost = plan.loss_of_norm(plan.norm(v))
            if (lost > self.worst or lost > plan.epsilon) and any(_moved(point, v) in at for point in at):
                self.worst = max(self.worst, lost)
                self.odd += [f"states {v} apart lose {in_text(lost)} under {plan.hash[:12]}"] * (lost > plan.epsilon)
        return {s for point, s in at.items() if any(_moved(point, v) in at for v in self._offsets)}

    def _price(self, plan: PlainPlan, answers: Sequence[Point]) -> None:
        """The cost is what the two planned states that are furthest apart lose."""
        if plan.table is not None:
            # A cost is a whole number of 2**-40 above what is lost, by two of them at most.
            widest, step = plan.table.widest, Fraction(2, 2**40)
            right = exponential(max(plan.cost - step, Fraction(0))) <= widest <= exponential(plan.cost)
            self.dearest = max(self.dearest, plan.cost)
            self.cheap += [f"{plan.hash[:12]} says {in_text(plan.cost)}"] * (not right)
            return
        cost = Fraction(0) if plan.constant else plan.loss_of_norm(plan.widest(answers))
        self.dearest = max(self.dearest, cost)
        if cost != plan.cost:
            self.cheap.append(f"{plan.hash[:12]} says {in_text(plan.cost)}, and it is {in_text(cost)}")


def _moved(point: Point, v: Point) -> Point:
    return tuple(x + y for x, y in zip(point, v, strict=True))


#: Members that follow from model and policy alone, and are not computed here.
_BY_FACTS = ("covered_distance", "beginnings", "model.because")


class LedgerRows(NamedTuple):
    """The rows of a ledger: its rule of names, its sessions, releases and accounts, and the key of each account.

    ``moments``: for people whose steps are ranks of times, the time of each, in microseconds since 1970 UTC.
    """

    spelling: Any
    unicode: Any
    sessions: list[Any]
    releases: list[Any]
    accounts: list[Any]
    keys: list[Any]
    moments: dict[str, list[int]]


class Checker:
    """All checks of one released file. ``facts``: those that a program with dphmm computed from model and policy."""

    def __init__(
        self,
        file: ReleaseColumns,
        statement: Any = None,
        model: ModelFile | None = None,
        policy: PolicyFile | None = None,
        plans: dict[str, PlainPlan] | None = None,
        ledger: Path | dict[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        stated = facts or {}
        self.report = Report(stated.get("looked_at"))
        self.facts: dict[str, Any] = dict(stated.get("members") or {})
        self.file, self.statement, self.statement_text = file, statement, b""
        self.model, self.policy, self.plans, self.ledger = model, policy, plans, ledger
        #: Whether the rows may be a part of those of the statement.
        self.partial = False
        #: Keys of names, and the names of which there is none here.
        self._persons: dict[str, str] = {}
        self.unread = set[str]()
        if model is not None and policy is not None and policy.merges:
            model.merge(policy.merges)
        if model is not None and isinstance(statement, dict):
            model.begins = self.stated("mechanism.start") or model.start

    @classmethod
    def of(cls, given: argparse.Namespace) -> Checker:
        """The files of a command line. Raises Unreadable."""
        file, path = ReleaseColumns(Path(given.released)), Path(given.statement or f"{given.released}.privacy.json")
        text = read_bytes(path) if given.statement or path.exists() else None
        statement = None if text is None else read_json(path)
        if text is not None and not isinstance(statement, dict):
            raise Unreadable(f"{path}: got no statement; expected one as dphmm writes it")
        facts = None if given.facts is None else read_json(Path(given.facts))
        if facts is not None and (not isinstance(facts, dict) or facts.get("kind") != "facts of a dphmm release"):
            raise Unreadable(f"{given.facts}: got another document; expected the facts that dphmm check-release writes")
        ledger = None if given.ledger is None else Path(given.ledger)
        if ledger is not None and not ledger.is_file():
            raise Unreadable(f"{ledger}: got no such file; expected a ledger file")
        try:
            checker = cls(
                file,
                statement,
                None if given.model is None else ModelFile(Path(given.model)),
                None if given.policy is None else PolicyFile(Path(given.policy)),
                None if given.plans is None else plans_of(Path(given.plans)),
                ledger,
                facts,
            )
        except ValueError:
            raise Unreadable(f"{given.policy}: got states that the model does not have; expected its policy") from None
        checker.statement_text = text or b""
        return checker

    def run(self, *checks: str) -> Report:
        """Every check, each on its own, or those that are named."""
        for check, what in (
            ("rows", self.rows),
            ("people", self.told_apart),
            ("columns", self.column_names),
            ("bytes", self.bytes),
            ("statement", self.of_statement),
            ("counts", self.counts),
            ("cases", self.cases),
            ("private", self.private),
            ("epsilon", self.epsilons),
            ("chosen steps", self.chosen_steps),
            ("sums", self.sums),
            ("days", self.local_days),
            ("promise", self.promise),
            ("promise of the ledger", self.kept_promise),
            ("couples", self.couples),
            ("schedule", self.schedule),
            ("schedule of the ledger", self.kept_schedule),
            ("times", self.times),
            ("model", self.of_model),
            ("policy", self.of_policy),
            ("members", self.members),
            ("answers", self.answers),
            ("places", self.places),
            ("plans", self.of_plans),
            ("ledger", self.of_ledger),
            ("ledger", self.kept_options),
        ):
            if checks and check not in checks:
                continue
            try:
                what()
            except Unknown as error:
                self.report.leave(check.removesuffix(" of the ledger"), str(error), error.key)
            except MALFORMED as error:
                self.report.add("wrong", check, f"a part is missing or of another form ({type(error).__name__})")
        return self.report

    @property
    def query(self) -> str:
        """The query of the rows."""
        return str(self.facts.get("query", "state") if self.statement is None else self.stated("query"))

    def stated(self, path: str) -> Any:
        """A member of the statement, None where it is absent. Raises Unknown without a statement."""
        if self.statement is None:
            raise Unknown("no privacy statement: name it by --statement")
        member = self.statement
        for name in path.split("."):
            member = member.get(name) if isinstance(member, dict) else None
        return member

    def same(self, check: str, path: str, due: Any, word: str = _TRUE) -> bool:
        """One member of the statement against what was computed."""
        stated = self.stated(path)
        wrong = f"{path} is {str(due)[:70]}, and the statement says {str(stated)[:70]}"
        return self.report.require(alike(stated, due), check, f"{path} is {str(due)[:70]}", wrong, word)

    def rows(self) -> None:
        file = self.file
        self.report.require(len(file) > 0, "rows", f"{len(file):,} rows of {len(file.users):,} people", "no row")
        twice = len(file) - len(set(zip(file.user, file.step, strict=True)))
        self.report.require(not twice, "rows", "each person and step once", f"{twice} steps of a person stand twice")
        blocks = sum(a != b for a, b in pairwise(file.user)) + 1
        ordered = all(a < b for rows in file.users.values() for a, b in pairwise([file.step[row] for row in rows]))
        ordered &= file.stream or blocks <= max(1, len(file.users))
        figure = "those of a person by step" + ", one after another" * (not file.stream)
        self.report.require(ordered, "rows", figure, "in an order that may say something")
        self.report.add(_STATED, "rows", "the order of people: that of the data")
        odd = []
        for name, column in file.cells.items():
            wrong = {text for text in set(column) if not spelled(name, text)}
            odd += [f"{name} of {file.where(row)}" for row, text in enumerate(column) if text in wrong] if wrong else []
        self.report.require_none(
            odd, "rows", "numbers and times in the one spelling of a release", "in another spelling"
        )
        odd = [user[:60] for user in file.users if not user or len(user) > 400 or re.search("[\\x00-\\x1f]", user)]
        self.report.require_none(odd, "rows", "names of people as a release has them", "other names")
        counts = [sum(file.asked[row] for row in rows) for rows in file.users.values()] or [0]
        self.report.add(
            "ok", "rows", f"{sum(counts):,} answers, {min(counts):,} to {max(counts):,} of a person (counted)"
        )
        stated = zip(file.asked, file.epsilon, file.cost, strict=True)
        odd = [file.where(row) for row, (asked, *spent) in enumerate(stated) if not asked and spent != [0.0, 0.0]]
        self.report.require_none(odd, "rows", "no row without a plan costs anything", "a cost without a plan")

    @cached_property
    def rule(self) -> str:
        """By which rule names are of one person: as it is stated, else that of the ledger. Raises Unknown."""
        stated = None if self.ledger is None else self._stored.spelling
        rule = stated if self.statement is None and stated else self.stated("subjects.spelling")
        if rule not in ("same", "exact"):
            raise Unknown(f"people told apart by the rule {str(rule)[:40]!r}")
        return str(rule)

    def person(self, name: str) -> str:
        """The key of a person; the name where it has characters that are not known here, as `told_apart` says."""
        rule = self.rule
        if name not in self._persons:
            try:
                self._persons[name] = key_of(name, rule)
            except Unknown:
                self._persons[name] = name
                self.unread.add(name)
        return self._persons[name]

    @cached_property
    def people(self) -> dict[str, str]:
        """The people of the file by their keys, each as it is called there first."""
        names: dict[str, str] = {}
        for user in self.file.users:
            names.setdefault(self.person(user), user)
        return names

    def told_apart(self) -> None:
        """Check that each person has one name in the file."""
        names, version = [*self.file.users], unicodedata.unidata_version
        odd = [
            f"{user[:60]!r} and {first[:60]!r}" for user in names if (first := self.people[self.person(user)]) != user
        ]
        figure = f"{len(names):,} names are of as many people by the rule {self.rule!r} of spelling (Unicode {version})"
        self.report.require_none(odd, "people", figure, f"by the rule {self.rule!r} of spelling of one person")
        unread = sorted(self.unread & {*names})
        if unread:
            why = f"{len(unread):,} names have characters that Unicode {version} of this Python does not have"
            self.report.leave("people", f"{why}, so whether they are of different people: {some(unread)}")

    def column_names(self) -> None:
        if self.statement is None and self.model is not None:
            kind, d = self.model.space["kind"], self.model.dimension
        else:
            kind, d = self.stated("space.kind"), self.stated("space.dimension")
        columns = self.file.columns
        axes = ["z"] if kind == "labels" else [f"z_{j}" for j in range(d)] if d < 100 else []
        places = ["z_lat", "z_lon"] if kind in MAPS else []
        due = ["user", *(["t"] if "t" in columns else []), "step", *axes, *places, "epsilon", "cost", "plan"]
        extra = [name for name in columns if name not in due]
        wrong = f"columns that no release has: {some(extra)}" if extra else f"expected {', '.join(due)}"
        self.report.require(columns == due, "columns", f"the {len(due)} of a release of {kind}", wrong)

    def bytes(self) -> None:
        """The file written again from its values, and the statement from its members."""
        file, again = self.file, "written again from its values it is the same, byte for byte"
        if file.packed:
            notes = notes_of_gzip(file.data)
            self.report.require(
                not notes, "bytes", "nothing beside the packed text", f"beside the packed text: {notes}"
            )
        # Rows that came in another form were written anew: their spelling says nothing.
        if "file" not in self.facts:
            if file.rewritten():
                self.report.add("ok", "bytes", again)
            else:
                why = "written again from its values it is another file: what quoting, digits, ends of lines or packing"
                self.report.leave("bytes", f"{why} say is not looked at")
        if self.statement_text:
            text = json.dumps(in_order(self.statement, MEMBERS), indent=2, ensure_ascii=True) + "\n"
            if text.encode() == self.statement_text:
                self.report.add("ok", "bytes", f"of the statement: {again}")
            else:
                self.report.leave("bytes", "the statement is written in another way than by dphmm")

    def of_statement(self) -> None:
        if self.statement is None:
            raise Unknown("no privacy statement: name it by --statement")
        odd = [fault.removeprefix(".") for fault in faults(self.statement, MEMBERS)]
        wrong = f"of another form: {some(odd)}"
        self.report.require(not odd, "statement", "all of its members are those of a release", wrong)
        self._written()
        of_ledger = ["query", "answer", "totals.limited"] if self.ledger is None else []
        for name in ("software.version", "randomness.words", "checked", *of_ledger):
            self.report.add(_STATED, "statement", f"{name} is {str(self.stated(name))[:60]}")

    def counts(self) -> None:
        """Check the file that the statement is about, and its numbers of rows, people and plans."""
        self._of_file()
        self.same("rows", "published.rows", len(self.file))
        self.same("rows", "published.subjects", len(self.file.users))
        unasked = len(self.file) - sum(self.file.asked)
        stated = (self.stated("schedule") or {"not_asked": 0})["not_asked"]
        wrong = f"{unasked:,} rows without an answer, and the statement says {stated}"
        self.report.require(stated == unasked, "rows", f"{unasked:,} without an answer, as stated", wrong)
        hashes = sorted({*self.file.plan} - {""})
        self.same("plans", "plans.count", len(hashes))
        self.same("plans", "plans.sha256", hashlib.sha256("\n".join(hashes).encode()).hexdigest())
        self.same("plans", "plans.hashes", hashes if len(hashes) <= 1000 else None)
        chosen = self.stated("mechanism.chosen")
        right = sum(chosen.values()) == len(self.file) - unasked and chosen.keys() <= {*MECHANISMS}
        wrong = "mechanisms that answered other numbers of rows, or that there are not"
        self.report.require(right, "answers", f"mechanisms answered {sum(chosen.values()):,} rows, as stated", wrong)

    def cases(self) -> None:
        """Check the facts that rows of cases tell beside their answers: names, times, lengths."""
        stated = self.stated("events")
        if stated is None:
            return
        moments = [moment for moment in self.file.moments if moment is not None]
        days = all(moment % (86_400 * 10**6) == 0 for moment in moments)
        times = ["none"] if "t" not in self.file.columns else ["exact", *["day"] * days]
        wrong = f"times are {times[-1]}, and the statement says {str(stated['times'])[:20]}"
        self.report.require(stated["times"] in times, "cases", f"times: {stated['times']}, as stated", wrong)
        names = list(self.file.users)
        drawn = names == sorted(names) and all(re.fullmatch("[bcdfghjklmnpqrst]{12}", name) for name in names)
        plain = stated["case_names"] == "kept"
        wrong = "names that were not drawn, or an order that is not theirs"
        self.report.require(plain or drawn, "cases", f"names are {'kept' if plain else 'drawn'}, as stated", wrong)
        lengths = {len(rows) for rows in self.file.users.values()}
        disclosed = stated["length"] is None and stated["length_hidden"] is False
        wrong = f"cases of {some(sorted(map(str, lengths)))} rows, and the statement says {str(stated['length'])[:20]}"
        alike = f"the length of a case is {'told' if disclosed else 'that of all'}, as stated"
        self.report.require(disclosed or lengths == {stated["length"]}, "cases", alike, wrong)
        if not disclosed:
            self.report.add(_STATED, "cases", f"whether lengths hide each other: {stated['length_hidden']}")

    def _of_file(self) -> None:
        """Check the file that the statement is about."""
        identity = {"name": "-" if self.file.stream else self.file.name, "sha256": self.file.sha256}
        due, name = self.facts.get("file", identity), str(self.stated("file.name"))
        if due is None:
            self.report.leave("file", "a table has no bytes, so whether the statement is about these answers", "file")
        elif "file" not in self.facts and name.endswith(".parquet"):
            self.report.leave("file", f"{name[:60]} is not here: whether these are its rows, dphmm export tells")
        else:
            for member in ("name", "sha256"):
                self.same("file", f"file.{member}", due[member], BY_FACTS if "file" in self.facts else _TRUE)

    def _written(self) -> None:
        """Exact numbers as they are written."""
        over = self.stated("sequence")
        numbers = [self.stated("epsilon"), *([] if over is None else [over["total"]])]
        numbers += [choice["epsilon"] for choice in self._chosen]
        odd = [number for number in numbers if number is not None and str(exact(number)) != number]
        self.report.require(not odd, "statement", "its exact numbers are fractions in lowest terms", some(odd))

    def _origin(self) -> tuple[Any, Any, Any]:
        """The model's method, its privacy, and the record of it: as its file says, else the statement."""
        if self.model is None:
            return self.stated("model.method"), self.stated("model.private"), self.stated("learning")
        stated = self.model.provenance
        return stated.get("method"), stated.get("private"), stated.get("privacy")

    def private(self) -> None:
        """Check the verdict on privacy, its reasons and the facts not hidden: they follow from other members."""
        method, fitted, learned = self._origin()
        people, known_by = self.stated("model.people"), self.stated("model.people_known_by")
        jumps = self.model is not None and "jump_into" in self.model.provenance
        # Of a jump of its own the statement says nothing.
        made = method == "geometry" and fitted is None and not jumps
        right = known_by in KNOWN_BY.get(people, ())
        right = right and ((known_by == "model") == made or (self.model is None and known_by != "model"))
        right = right and (known_by not in ("names", "file") or fitted is False)
        figure = f"the model is of {people} people, known by {known_by}"
        self.report.require(right, "private", figure, f"{figure}: that does not follow from how it was made")
        due = ["replayable bits"] * (self.stated("randomness.replayable_rows") > 0)
        due += ["fitted on released"] * (people == "same" and fitted is False)
        if not due and people != "others":
            if fitted is True:
                due = [] if learned is not None else ["no epsilon of the fit"]
            elif people == "same":
                due = ["made from released"]
            else:
                due = ["fitted on unknown people" if fitted is False else "unknown origin"]
        verdict = next((truth for truth, codes in REASONS.items() if due and due[0] in codes), True)
        self.same("private", "private", verdict)
        self.same("private", "reasons", due)
        asked = self.stated("mechanism.asked")
        latent = self.stated("model.latent_states") is not None
        hidden = [
            *NEVER_HIDDEN,
            *["what a secret leaves out"] * latent,
            *["more by the mechanism"] * (asked.partition(":")[0] in TELL_MORE),
        ]
        if fitted is True:
            hidden.append("people of a learned model")
        elif (people, known_by) != ("others", "model"):
            hidden.append("people of the model")
        self.same("private", "not_protected", hidden)
        if known_by == "owner" or known_by == "names":
            self.report.add("stated", "private", f"the model is of {people} people: no file shows it")

    @property
    def _varies(self) -> set[str]:
        """The names of the choices that single steps may have of their own, by the statement."""
        return {*self.stated("varied.names")} if self.stated("varied") is not None else set()

    @property
    def _chosen(self) -> list[dict[str, Any]]:
        """The stated choices for some steps, with their steps."""
        return list(self.stated("varied.chosen")) if self.stated("varied") is not None else []

    @cached_property
    def _exact(self) -> dict[float, Fraction]:
        """The exact epsilon of each float that a row may have."""
        stated = [Fraction(0), exact(self.stated("epsilon"))]
        stated += [exact(each["epsilon"]) for each in self._chosen if each["epsilon"] is not None]
        return {float(value): value for value in stated}

    @cached_property
    def _units(self) -> tuple[list[int], int]:
        """The epsilon of each row in parts of 1, and how many parts. Raises Unknown for one that is not stated."""
        known = self._exact
        if not set(self.file.epsilon) <= known.keys():
            raise Unknown("an epsilon that the statement does not tell")
        parts = math.lcm(*(value.denominator for value in known.values()))
        units = {stated: int(value * parts) for stated, value in known.items()}
        return [units[stated] for stated in self.file.epsilon], parts

    def epsilons(self) -> None:
        known, file = self._exact, self.file
        others = set(file.epsilon) - known.keys()
        odd = [file.where(row) for row, stated in enumerate(file.epsilon) if stated in others] if others else []
        listed = ", ".join(sorted(str(value) for value in known.values() if value))
        self.report.require_none(odd, "epsilon", f"every answer has {listed}, or 0", "another one")
        zero = sum(asked and stated == 0 for asked, stated in zip(file.asked, file.epsilon, strict=True))
        self.same("epsilon", "published.public_constants", zero)

    def chosen_steps(self) -> None:
        """Check that chosen steps have their choices, and that all other steps have those of the statement."""
        if self.stated("varied") is None:
            return
        chosen = self._chosen
        spans = [(*run, number) for number, choice in enumerate(chosen) for run in choice["steps"]]
        used = {name for choice in chosen for name in choice if name != "steps" and choice[name] is not None}
        odd = any(len(run) != 3 or any(type(number) is not int for number in run) for run in spans)
        if odd or not used <= self._varies:
            self.report.add("wrong", "chosen steps", "something is chosen that does not vary, or steps are no numbers")
            return
        runs = sorted(spans)
        apart = all(first <= last for first, last, _ in runs) and all(a[1] < b[0] for a, b in pairwise(runs))
        if not apart:
            self.report.add("wrong", "chosen steps", "runs of steps that overlap")
            return
        self._unseen()
        seconds, begins = self.stated("model.step_seconds"), [first for first, _, _ in runs]
        if "t" not in self.file.columns or not seconds:
            raise Unknown("which rows are of the chosen steps is told by times, and rows have none", "chosen steps")
        odd_rows, known = [], dict[tuple[int, float, str], str]()
        for row, moment in enumerate(self.file.moments):
            if moment is None:
                raise Unknown("some rows have no time", "chosen steps")
            number = moment // (seconds * 10**6)
            run = bisect_right(begins, number) - 1
            which = runs[run][2] if run >= 0 and number <= runs[run][1] else -1
            key = which, self.file.epsilon[row], self.file.plan[row]
            if key not in known:
                known[key] = self._not_due(key[1], key[2], {} if which < 0 else chosen[which])
            odd_rows += [f"{known[key]} of {self.file.where(row)}"] if known[key] else []
        what = "epsilon" if self.plans is None else "epsilon and policy, by its hash,"
        figure = f"answers at the chosen steps have the {what} that was chosen, all others those of the statement"
        self.report.require_none(odd_rows, "chosen steps", figure, "not what was chosen")

    def _unseen(self) -> None:
        """Note the choices of steps that are not compared; check kind and parameters of a policy against its hash."""
        unseen = sorted(self._varies & {"partners", "protection"})
        if "policy" in self._varies and self.plans is None:
            unseen.append("policy (no --plans)")
        odd, same = [], 0
        for policy in (choice["policy"] for choice in self._chosen if choice.get("policy") is not None):
            try:
                right = policy_digest(policy["kind"], policy["parameters"]) == policy["sha256"]
                odd += [] if right else [f"{policy['kind']} of {policy['sha256'][:12]}"]
                same += right
            except Unknown:
                unseen.append(f"kind and parameters of policy {policy['sha256'][:12]}")
        if unseen:
            self.report.leave("chosen steps", some(unseen), "chosen steps")
        if odd or same:
            figure = f"{same} policies of steps have the hash of their kind and parameters"
            self.report.require_none(odd, "chosen steps", figure, "policies of another hash")

    def _not_due(self, epsilon: float, plan_hash: str, chosen: dict[str, Any]) -> str:
        """The part in the making of an answer that is not due at its step; "" if there is none."""
        stated = self._exact.get(epsilon)
        if stated is None or (stated and stated != exact(chosen.get("epsilon") or self.stated("epsilon"))):
            return "another epsilon"
        plan = None if self.plans is None else self.plans.get(plan_hash)
        if plan is None:
            return ""
        policy = (chosen.get("policy") or self.stated("policy"))["sha256"]
        if plan.shared["policy"] != policy:
            return "another policy"
        joined = any(chosen.get(name) is not None for name in ("partners", "protection"))
        return "other partners" if joined != ("joins" in plan.chosen.get("chosen", {})) else ""

    def sums(self) -> None:
        units, parts = self._units
        most = max(Fraction(sum(units[row] for row in rows), parts) for rows in self.file.users.values())
        cap = self.stated("totals.cap")
        if cap is not None:
            held, wrong = most <= Fraction(cap), f"a person has {shown(most)}, and the limit is {shown(Fraction(cap))}"
            self.report.require(held, "limit of the sum", f"nobody has more than {shown(Fraction(cap))}", wrong)
        if self.partial and total(self.stated("totals.epsilon_sum")) >= most:
            self.report.leave("sum of epsilons", f"most of a person {most}, more with answers of other files", "totals")
        else:
            self.same("sum of epsilons", "totals.epsilon_sum", shown(most))
        if not all(0 <= value < math.inf for value in set(self.file.cost)):
            self.report.add("wrong", "cost", "a cost that is none")
            return
        values = {value: Fraction(value) for value in set(self.file.cost)}
        parts = math.lcm(*(value.denominator for value in values.values()))
        costs = {value: int(stated * parts) for value, stated in values.items()}
        sums = (sum(costs[self.file.cost[row]] for row in rows) for rows in self.file.users.values())
        largest = Fraction(max(sums), parts)
        # Costs in a file are floats, those of the total fractions rounded up to 1e-9.
        stated, slack = total(self.stated("totals.cost_sum")), largest / 10**12 + len(self.file) * Fraction(2, NANO)
        figure = f"most of a person {in_text(largest)}"
        if self.partial and stated >= largest - slack:
            self.report.leave("sum of costs", f"{figure}, more with answers of other files", "totals")
        else:
            near, wrong = abs(stated - largest) <= slack, f"stated {in_text(stated)}, and it is {in_text(largest)}"
            self.report.require(near, "sum of costs", f"{figure}, as stated (to 1e-9 a row)", wrong)

    @cached_property
    def _clock(self) -> ZoneClock:
        """The clock of the promise, around the times of all rows. Raises Unknown where there are none."""
        stated = self.stated("sequence")
        moments = [moment // 10**6 for moment in self.file.moments if moment is not None]
        if not self.stated("model.step_seconds") or len(moments) < len(self.file):
            raise Unknown("blocks are of a time, and rows have no times", "blocks")
        longest = clock({**stated, "zone": None})[0]
        return ZoneClock(str(stated["zone"]), min(moments) - longest, max(moments) + longest)

    @property
    def _starts(self) -> list[int]:
        """The bins in which blocks of days begin, by the zone table, ascending."""
        days = clock({**self.stated("sequence"), "zone": None})[0] // 86400
        return self._clock.starts(self.stated("model.step_seconds"), days)

    @cached_property
    def _bins(self) -> list[int]:
        """The bin of each row since 1970. Raises Unknown for rows without times."""
        seconds = self.stated("model.step_seconds")
        if not seconds or None in self.file.moments:
            raise Unknown("blocks are of a time, and rows have no times", "blocks")
        return [(moment or 0) // (seconds * 10**6) for moment in self.file.moments]

    @cached_property
    def stored_blocks(self) -> dict[str, list[tuple[int, int]]]:
        """The bounds of blocks of local days, in bins since 1970, that the ledger stored with answers, by person."""
        stored: dict[str, list[tuple[int, int]]] = defaultdict(list)
        if isinstance(self.ledger, dict) or (self.ledger is not None and self.ledger.name.endswith(".json")):
            rows = (self.ledger if isinstance(self.ledger, dict) else read_json(self.ledger)).get("blocks", [])
        elif self.ledger is not None:
            (rows,) = self._read('SELECT a.subject, b.first, b."end" FROM block b JOIN account a ON a.id = b.account')
        else:
            rows = []
        for user, first, end in rows:
            stored[self.person(user)].append((int(first), int(end)))
        return {user: sorted(blocks) for user, blocks in stored.items()}

    def _local_blocks(self) -> list[tuple[int, int]]:
        """The block of each row, from which bin to which, by local days: as the ledger stored it, else by the table."""
        bins, starts, stored = self._bins, self._starts, self.stored_blocks
        places = {number: bisect_right(starts, number) for number in {*bins}}
        known = {number: (starts[place - 1], starts[place]) for number, place in places.items()}
        rows = zip(self.file.user, bins, strict=True)
        return [beside(known[number], number, stored.get(self.person(user), ())) for user, number in rows]

    def local_days(self) -> None:
        """Check the days of the ledger, and name the zone table that local days begin by."""
        stated = self.stated("sequence")
        if stated is None or not is_local(stated):
            return
        file, blocks = self.file, self._local_blocks()
        lengths = sorted({end - first for first, end in blocks})
        long = f"{lengths[0]:,} to {lengths[-1]:,}" if len(lengths) > 1 else f"{lengths[0]:,}"
        figure = f"{len(set(blocks)):,} blocks of days of {stated['zone']}, of {long} steps"
        self.report.add(_STATED, "days", f"that clocks were as the {self._clock.table} has them")
        if self.ledger is None:
            self.report.add(_TRUE, "days", figure)
            return
        odd = [
            repr(self.people[key])
            for key, days in self.stored_blocks.items()
            if key in self.people and (any(a >= b for a, b in days) or any(a[1] > b[0] for a, b in pairwise(days)))
        ]
        if not self.report.require(not odd, "days", f"{figure}, as the ledger has them", f"overlap: {some(odd)}"):
            return
        rows = zip(file.user, blocks, file.asked, strict=True)
        stored = self.stored_blocks
        odd = [repr(user) for user, block, asked in rows if asked and block not in stored.get(self.person(user), ())]
        self.report.require_none(odd, "days", "each answer is in a day that the ledger has", "answers of no stored day")
        starts = {*self._starts}
        other = sum(not {first, end} <= starts for first, end in {*blocks})
        self.report.add(_TRUE, "days", f"{other:,} of them are other days than by the zone table")

    def _blocks(self, stated: dict[str, Any]) -> list[tuple[int, int]]:
        """For each row the number of its block and its place in the block, in steps from 0. Raises Unknown."""
        if is_local(stated):
            return [(first, step - first) for (first, _), step in zip(self._local_blocks(), self._bins, strict=True)]
        if stated.get("steps") is not None:
            return [(0, step - 1) for step in self.file.step]
        length = stated.get("window") or stated.get("per")
        if type(length) is int and length > 0:
            return [divmod(step - 1, length) for step in self.file.step]
        length, ahead = clock(stated)
        seconds = self.stated("model.step_seconds")
        if not seconds or None in self.file.moments:
            raise Unknown("blocks are of a time, and rows have no times", "blocks")
        known = {}
        for moment in set(self.file.moments):
            assert moment is not None
            block, within = divmod(moment + ahead * 10**6, length * 10**6)
            known[moment] = block, within // (seconds * 10**6)
        return [known[moment] for moment in self.file.moments if moment is not None]

    def promise(self) -> None:
        stated = self.stated("sequence")
        if stated is None:
            self.report.add("ok", "promise", "none over the sequence is stated: answers promise one by one")
            return
        lengths = [name for name in ("steps", "window", "per") if stated.get(name) is not None]
        if len(lengths) != 1:
            said = f"with {' and '.join(lengths) or 'no length'}"
            self.report.add("wrong", "promise", f"{said}: a promise over paths has one length")
            return
        units, parts = self._units
        room, file = exact(stated["total"]), self.file
        if isinstance(stated["per"], str) and not self._any_block_has_room(stated, room):
            return
        last, window = stated.get("steps"), stated.get("window")
        late = next((row for row, t in enumerate(file.step) if last is not None and t > last and file.asked[row]), None)
        if late is not None:
            self.report.add("wrong", "promise", f"an answer after the last step: {file.where(late)}")
            return
        if window is not None:
            spent = ([(file.step[row], units[row]) for row in rows] for rows in file.users.values())
            worst = max((most_within(stated, each) for each in spent), default=0)
        else:
            of_block = Counter[tuple[str, int]]()
            for user, (block, _), e in zip(file.user, self._blocks(stated), units, strict=True):
                of_block[user, block] += e
            worst = max(of_block.values(), default=0)
        most = Fraction(worst, parts)
        over = f"{last} steps" if last else f"each {window or stated.get('per')}"
        wrong = f"{over}: {most}, more than {room}"
        self.report.require(most <= room, "promise", f"{over}: most {most} of {room}", wrong)

    def _any_block_has_room(self, stated: dict[str, Any], room: Fraction) -> bool:
        """True if a promise whose blocks are of a time may hold, wherever in a block the rows begin."""
        if is_local(stated):
            return True
        length, ahead = clock(stated)
        seconds, (units, parts), file = self.stated("model.step_seconds"), self._units, self.file
        whole = type(seconds) is int and seconds > 0 and length % seconds == ahead % seconds == 0
        if not whole or abs(ahead) >= 86400:
            self.report.add("wrong", "promise", "blocks that are not of whole steps")
            return False
        for user, rows in file.users.items():
            steps, spent = [file.step[row] for row in rows], [units[row] for row in rows]
            most = (max(steps) - min(steps)) // (length // seconds) + 2
            if sum(spent) > room * parts * most or max(spent) > room * parts:
                self.report.add("wrong", "promise", f"more than {room} in a block, wherever it begins: {user[:60]!r}")
                return False
        return True

    def kept_promise(self) -> None:
        """The promise that is stated against that which the ledger keeps each person of the file to."""
        stated = self.stated("sequence")
        if stated is None:
            return
        if self.ledger is None:
            raise Unknown("whether it is kept over all files and queries: no --ledger")
        odd = []
        for key, user in self.people.items():
            session = self.kept.get(key)
            if session is None or session.promise is None or session.promise != self._in_steps(stated, session):
                odd.append(f"{user!r} to {in_words(session and session.promise)}")
        figure = f"the ledger keeps all {len(self.file.users):,} people to it, over all their queries and files"
        if not self.report.require(not odd, "promise", figure, f"the ledger keeps {some(odd)}"):
            return
        spent: dict[str, list[tuple[int, Fraction]]] = defaultdict(list)
        for user, _, t, _, z, _, epsilon, *_ in self._stored.releases:
            key = self.person(user)
            if z is not None and key in self.kept:
                spent[key].append((t, exact(epsilon)))
        keeps = {key: self._keeps(key, self.kept[key].promise or {}, charges) for key, charges in spent.items()}
        over = [repr(self.people[key]) for key, within in keeps.items() if not within]
        self.report.require_none(over, "promise", "what the ledger has of them keeps it", "the ledger has more of")

    def _keeps(self, key: str, promise: Mapping[str, Any], spent: list[tuple[int, Fraction]]) -> bool:
        if is_local(promise):
            sums, stored = defaultdict[tuple[int, int], Fraction](Fraction), self.stored_blocks.get(key, [])
            for t, e in spent:
                number = t + promise["origin"] - 1
                # An answer in no stored day is an hour of its own, which `local_days` convicts.
                sums[beside((number, number + 1), number, stored)] += e
            return max(sums.values()) <= exact(promise["total"])
        late = promise.get("steps") is not None and max(spent)[0] > promise["steps"]
        return not late and most_within(promise, spent) <= exact(promise["total"])

    def _in_steps(self, stated: dict[str, Any], kept: KeptSession) -> dict[str, Any] | None:
        """A stated promise as a ledger keeps it, in steps of one person; None where nothing says when these begin."""
        (name,) = (name for name in ("steps", "window", "per") if stated.get(name) is not None)
        due: dict[str, Any] = {"total": str(exact(stated["total"])), name: stated[name]}
        if name != "per":
            return due
        if type(stated["per"]) is int:
            return {**due, "passed": 0}
        seconds, begins = self.stated("model.step_seconds"), first_step(kept)
        if is_local(stated):
            return {**due, "zone": stated["zone"], "step": seconds, "origin": begins}
        length, ahead = clock(stated)
        if begins is None or not seconds or length % seconds or ahead % seconds:
            return None
        block = int(length // seconds)
        return {**due, "per": block, "passed": (begins + int(ahead // seconds)) % block}

    def couples(self) -> None:
        """Check that only models that couple are stated to bound the loss of one step by sums of epsilons."""
        stated = self.stated("sequence.couples")
        if self.stated("sequence") is None or stated == "unknown":
            return
        known = [self.facts["sequence.couples"]] if "sequence.couples" in self.facts else []
        if self.model is not None and self.policy is not None and not self.model.merges:
            other = self._varies - {"epsilon"} or self.stated("beginnings") is not None
            known.append(not other and self.policy.kind == "radius" and self.model.couples())
        if not known:
            raise Unknown("whether the model couples along the policy: no --model or no --policy, or merged states")
        right = stated is True and all(holds is True for holds in known)
        wrong = "that the model couples is not known of this model, policy and release, and the statement says so"
        self.report.require(right, "couples", "the model is of those that couple along a radius policy", wrong)

    def kept_schedule(self) -> None:
        """The schedule that is stated against that which the ledger has of each person."""
        stated = self.stated("schedule")
        if self.ledger is None:
            return
        over, due = self.stated("sequence") or {}, None
        if stated is not None:
            due = {name: over[name] for name in ("total", "steps", "window", "per") if over.get(name) is not None}
            due |= {"zone": over["zone"]} if isinstance(over.get("per"), str) else {}
            due |= {"schedule": stated["name"], "epsilon": self.stated("epsilon")}
            due |= {name: stated[name] for name in ("at", "hours", "seed") if name in stated}
            due |= {"spreads": stated["spreads"]} if stated["spreads"] else {}
        odd = [
            repr(user)
            for key, user in self.people.items()
            if key not in self.kept or parsed(self.kept[key].options.get("schedule", "null")) != due
        ]
        figure = "the ledger asks everybody by the one that is stated"
        self.report.require_none(odd, "schedule", figure, "the ledger asks by another one, or none")

    def schedule(self) -> None:
        stated, file = self.stated("schedule"), self.file
        unasked = len(file) - sum(file.asked)
        if stated is None:
            wrong = f"{unasked} rows without an answer, and no schedule"
            self.report.require(not unasked, "schedule", "every row has an answer", wrong)
            return
        if ("at" in stated) == ("hours" in stated):
            self.report.add("wrong", "schedule", "steps and times of a day, or none of the two")
            return
        named, work, promise = set[int](), 0, self.stated("sequence") or {}
        for part in stated["at"].split(",") if "at" in stated else ():
            first, _, last = part.partition("-")
            low, high = int(first), int(last or first)
            work += high - low + 1
            if not 0 < low <= high or work > MOST_NAMED:
                raise Unknown(f"a schedule of {part[:40]}")
            named |= set(range(low, high + 1))
        hours = stated.get("hours", [])
        if hours and (promise.get("per") != "1d" or hours != sorted({*hours})):
            self.report.add("wrong", "schedule", "times of a day that do not ascend, or in blocks that are no days")
            return
        room = stated["releases"] * exact(self.stated("epsilon")) <= exact(promise["total"])
        due = min(len(named) + len(hours), int(exact(promise["total"]) / exact(self.stated("epsilon"))))
        wrong = f"room for {stated['releases']} answers in a block is stated, and it is {due}"
        self.report.require(stated["releases"] == due and room, "schedule", f"room for {due} answers in a block", wrong)
        right = (stated["name"] == "paced") == bool(stated["spreads"])
        self.report.require(right, "schedule", "spreads are those of its kind", "spreads, of another kind of schedule")
        right = (stated["name"] == "staggered") == ("seed" in stated) and not (
            "seed" in stated and promise.get("window") is not None
        )
        self.report.require(right, "schedule", "a seed is that of its kind", "a seed, of another kind of schedule")
        blocks, odd, counts = self._blocks(promise), [], Counter[tuple[str, int]]()
        timed = self._named_rows(promise, blocks, named, hours, stated.get("seed"))
        for row, (block, _) in enumerate(blocks):
            asked, may = file.asked[row], timed[row]
            if asked != may and (asked or stated["name"] != "paced"):
                odd.append(file.where(row))
            if asked:
                counts[file.user[row], block] += 1
        most = max(counts.values(), default=0)
        figure = f"at most {most} answers of a person in a block, and room for {stated['releases']}"
        self.report.require(most <= stated["releases"], "schedule", figure)
        figure = f"{stated['name']}: answers at the steps that it names, {len(named) + len(hours)} of a block"
        self.report.require_none(odd, "schedule", figure, "asked, or not asked, other than it says")
        if stated["name"] == "paced":
            self.report.leave(
                "schedule", "which of the named steps a paced schedule asks follows from beliefs", "paced steps"
            )

    def _named_rows(
        self, promise: dict[str, Any], blocks: list[tuple[int, int]], places: set[int], hours: list[str], seed: Any
    ) -> list[bool]:
        """True where the step of a row is named: by ``places`` in its block or by times of its day, and staggered."""
        if not hours and seed is None:
            return [place + 1 in places for _, place in blocks]
        seconds, timed = self.stated("model.step_seconds"), isinstance(promise.get("per"), str)
        numbers = self._bins if timed else self.file.step
        if is_local(promise):
            spans = self._local_blocks()
        else:
            length = clock(promise)[0] // seconds if timed else int(promise.get("steps") or promise["per"])
            firsts = [number - place for number, (_, place) in zip(numbers, blocks, strict=True)]
            spans = [(first, first + length) for first in firsts]
        shown = [self._clock.shows(hour, seconds) for hour in hours]
        keys = {} if seed is None else {user: key_of(user, "same") for user in self.file.users}
        users = [keys.get(user) for user in self.file.user]
        named = dict[tuple[Any, int, int], set[int]]()
        due = {(user, *span) for user, span in zip(users, spans, strict=True)}
        if len(due) * len(places) > MOST_OPERATIONS // 100:
            raise Unknown("a staggered schedule of so many steps")
        for user, first, end in due:
            ahead = [(times, bisect_left(times, first)) for times in shown]
            bins = sorted({times[at] for times, at in ahead if at < len(times) and times[at] < end})
            bins = bins if hours else sorted(first + place - 1 for place in places if first + place - 1 < end)
            if seed is not None and bins:
                least = min(later - step for step, later in pairwise([*bins, bins[0] + end - first]))
                digest = hashlib.sha256(json.dumps([seed, user, first]).encode()).hexdigest()
                moved = int(digest, 16) % least - least // 2
                bins = [first + (step + moved - first) % (end - first) for step in bins]
            named[user, first, end] = {*bins}
        return [number in named[user, *span] for user, span, number in zip(users, spans, numbers, strict=True)]

    def times(self) -> None:
        if "t" not in self.file.columns:
            return
        seconds, file = self.stated("model.step_seconds"), self.file
        if not seconds:
            odd = []
            for rows in file.users.values():
                for before, row in pairwise(sorted(rows, key=lambda row: file.step[row])):
                    earlier, later = file.moments[before], file.moments[row]
                    if earlier is None or later is None:
                        raise Unknown("some rows have no time")
                    # A step is one moment, and a later step a later one.
                    if (earlier, file.step[before]) != (later, file.step[row]) and (
                        earlier >= later or file.step[before] == file.step[row]
                    ):
                        odd.append(file.where(row))
            self.report.require_none(odd, "times", "each later than that of the step before", "steps that share one")
            self.report.add("stated", "times", "of a model without a time step they are those of the data")
            return
        odd, length = [], seconds * 10**6
        for rows in file.users.values():
            first: int | None = None
            for row in rows:
                moment = file.moments[row]
                if moment is None:
                    raise Unknown("some rows have no time")
                begin = moment - file.step[row] * length
                first = begin if first is None else first
                if moment % length or begin != first:
                    odd.append(file.where(row))
        figure = f"each the beginning of its {seconds} s, and as far apart as the steps"
        self.report.require_none(odd, "times", figure, "other ones")

    def of_model(self) -> None:
        if self.model is None:
            raise Unknown("no model: name it by --model")
        stated = self.model.provenance
        self.same("model", "model.sha256", self.model.digest)
        self.same("model", "model.step_seconds", self.model.step)
        if self.model.has_secrets or self.stated("model.latent_states") is not None:
            self.same("model", "model.latent_states", self.model.latent if self.model.has_secrets else None)
        if self.model.slots is not None or self.stated("model.slots") is not None:
            self.same("model", "model.slots", self.model.matrices if self.model.slots is not None else None)
            alike = self.model.jump is not None or self.model.moves_alike
            self.report.require(alike, "model", "every slot has the same moves", "a slot with other moves than another")
        self.same("model", "model.method", str(stated.get("method", "unknown")))
        private = stated.get("private")
        self.same("model", "model.private", private if isinstance(private, bool) else None)
        for name, due in (("kind", self.model.space["kind"]), ("dimension", self.model.dimension)):
            self.same("states", f"space.{name}", due)
        self.same("states", "space.pitch", [float(pitch) for pitch in self.model.space["pitch"]])
        self.same("states", "space.states", self.model.n)
        merges = sorted(self.model.merges)
        merged = {"count": len(merges), "pairs": merges if len(json.dumps(merges)) <= 4096 else None}
        self.same("states", "space.merged", merged if merges else None)
        try:
            self.same("states", "space.sha256", self.model.space_digest())
        except Unknown:
            if "space.sha256" not in self.facts:
                raise

    def of_policy(self) -> None:
        if self.policy is None:
            raise Unknown("no policy: name it by --policy")
        self.same("policy", "policy.kind", self.policy.kind)
        stated = self.policy.parameters
        self.same("policy", "policy.parameters", stated if len(json.dumps(stated)) <= 4096 else None)
        try:
            self.same("policy", "policy.sha256", self.policy.digest)
        except Unknown:
            if "policy.sha256" not in self.facts:
                raise

    def members(self) -> None:
        """Members that follow from model and policy, and are computed by the program that made the facts."""
        for path, due in self.facts.items():
            if path not in ("file", "sequence.couples"):
                self.same("members", path, due, BY_FACTS)
        for path in (*_BY_FACTS, *(f"learning.{name}" for name in self.stated("learning") or ())):
            if path not in self.facts and self.stated(path) is not None:
                self.report.leave("members", f"{path} is not computed here: dphmm check-release compares it")

    @cached_property
    def lattice(self) -> list[Point | None]:
        """The lattice point of each answer; None where it is on none."""
        assert self.model is not None
        space, cells = self.model.space, self.file.cells
        if space["kind"] == "labels":
            by_name = dict(zip(self.model.names, self.model.own, strict=True))
            return [by_name.get(name) for name in cells["z"]]
        axes = []
        for j, (origin, pitch) in enumerate(zip(space["origin"], space["pitch"], strict=True)):
            known = {text: self._number(text, origin, pitch) for text in set(cells[f"z_{j}"])}
            axes.append([known[text] for text in cells[f"z_{j}"]])
        points: dict[tuple[int | None, ...], Point | None] = {}
        answers = []
        for point in zip(*axes, strict=True):
            if point not in points:
                points[point] = None if None in point else tuple(k for k in point if k is not None)
            answers.append(points[point])
        return answers

    @staticmethod
    def _number(text: str, origin: float, pitch: float) -> int | None:
        z = float(text or "nan")
        if not math.isfinite(z):
            return None
        k = round((Fraction(z) - Fraction(origin)) / Fraction(pitch))
        return k if origin + k * pitch == z else None

    def answers(self) -> None:
        file = self.file
        names = [name for name in file.columns if name == "z" or re.fullmatch("z_([0-9]+|lat|lon)", name)]
        odd = [
            file.where(row)
            for name in names
            for row, (text, asked) in enumerate(zip(file.cells[name], file.asked, strict=True))
            if (text == "") == asked
        ]
        if not self.report.require_none(odd, "answers", "an answer where there is a plan, and nowhere else", "not so"):
            return
        if self.model is None:
            raise Unknown("whether answers are on the lattice: no --model")
        stated = zip(file.asked, self.lattice, strict=True)
        odd = [file.where(row) for row, (asked, point) in enumerate(stated) if asked and point is None]
        kind = "one of the labels" if self.model.space["kind"] == "labels" else "on the lattice, to the last digit"
        self.report.require_none(odd, "answers", f"every one is {kind}", f"not {kind}")

    def places(self) -> None:
        if self.stated("space.kind") not in MAPS:
            return
        if self.model is None:
            raise Unknown("degrees of the answers: no --model")
        odd, known = [], dict[tuple[str, str], tuple[str, str]]()
        columns = [self.file.cells[f"z_{axis}"] for axis in ("0", "1", "lat", "lon")]
        for row, (x, y, lat, lon) in enumerate(zip(*columns, strict=True)):
            # Last digits of a place would say something if an answer had several.
            if known.setdefault((x, y), (lat, lon)) != (lat, lon):
                odd.append(self.file.where(row))
        for (x, y), (lat, lon) in known.items():
            due = self.model.degrees(float(x), float(y)) if x and y and lat and lon else ()
            near = all(abs(a - float(b)) <= DEGREES for a, b in zip(due, (lat, lon), strict=False))
            odd += [] if near and (due or not (x or y or lat or lon)) else [f"{lat}, {lon} of {x}, {y}"]
        figure = f"each answer has one, and its degrees are those of its metres, to {DEGREES:g}"
        self.report.require_none(odd, "places", figure, "not those of the answers")

    def of_plans(self) -> None:
        named = sorted({*self.file.plan} - {""})
        if self.plans is None:
            raise Unknown("no plans, so losses of the answers are not computed: name them by --plans")
        missing = [name for name in named if name not in self.plans]
        if missing:
            self.report.leave("plans", f"{len(missing)} of {len(named)} plans are not in the file of plans")
        held = [self.plans[name] for name in named if name in self.plans]
        odd = [plan.hash[:12] for plan in held if plan.made != plan.hash]
        figure = f"{len(held)} of {len(named)}: the hash in the rows is that of the plan's parts"
        if not self.report.require_none(odd, "plans", figure, "parts of another hash"):
            return
        self._inputs(held)
        known, notes = [], dict[str, str]()
        for plan in held:
            try:
                plan.check_known()
                known.append(plan)
            except Unknown as error:
                notes[str(error)] = error.key
        for note, key in sorted(notes.items()):
            self.report.leave("losses", f"of {len(held) - len(known)} plans: {note}", key)
        by_hash = {plan.hash: plan for plan in held}
        self._mechanisms(by_hash)
        self._of_rows(by_hash)
        if self.model is not None:
            self._possible(by_hash)
        if self.model is None or self.policy is None:
            raise Unknown("whether the bodies hide what they must: no --model or no --policy", "losses")
        if known:
            self._support(by_hash)
            fixed = "policy" not in self._varies
            due = [plan for plan in known if fixed or plan.shared["policy"] == self.stated("policy.sha256")]
            if len(due) < len(known):
                self.report.leave("losses", f"{len(known) - len(due):,} plans are of policies of their own", "losses")
            if due:
                self._losses(due)

    @property
    def _options(self) -> dict[str, Any]:
        """The options of plans and sessions, as the statement says."""
        return {
            "space": self.stated("space.sha256"),
            "policy": self.stated("policy.sha256"),
            "constraint": self.stated("constraint"),
            "mechanism": self.stated("mechanism.asked"),
            "protection": self.stated("mechanism.protection"),
            "start": self.stated("mechanism.start"),
        }

    def _inputs(self, held: list[PlainPlan]) -> None:
        """Check the inputs that the plans record against the statement."""
        due = {"version": self.stated("algorithm_version"), **self._options}
        varied = self._varies
        odd = []
        for plan in held:
            stated = {**plan.shared["options"], **{name: plan.shared[name] for name in ("version", "space", "policy")}}
            odd += [
                f"{name} of {plan.hash[:12]}"
                for name, value in due.items()
                if stated[name] != value and name not in varied
            ]
            epsilon = exact(stated["epsilon"])
            odd += [f"epsilon of {plan.hash[:12]}"] * (epsilon not in self._exact.values())
            odd += [f"law of {plan.hash[:12]}"] * (plan.epsilon != epsilon)
            asked = stated["mechanism"].partition(":")[0]
            odd += [f"mechanism of {plan.hash[:12]}"] * (asked not in ("auto", plan.name) and not plan.constant)
        figure = "states, policy, epsilon and options are those of the statement"
        self.report.require_none(odd, "plans", figure, "not those of the statement")

    def _mechanisms(self, plans: dict[str, PlainPlan]) -> None:
        """Check the number of rows that each mechanism answered."""
        asked = Counter(plan for plan in self.file.plan if plan)
        if all(plan in plans for plan in asked):
            counts = Counter[str]()
            for plan, count in asked.items():
                counts[plans[plan].name] += count
            self.same("answers", "mechanism.chosen", dict(sorted(counts.items())))

    def _of_rows(self, plans: dict[str, PlainPlan]) -> None:
        """Epsilon and cost of each row, and exact sums of costs, by its plan."""
        file, due, nanos = self.file, dict[str, tuple[float, float]](), {"": 0}
        for plan in plans.values():
            cost = float(plan.cost)
            cost = cost if Fraction(cost) >= plan.cost else math.nextafter(cost, math.inf)
            due[plan.hash] = float(plan.promised), cost
            nanos[plan.hash] = math.ceil(plan.cost * NANO)
        stated = zip(file.plan, zip(file.epsilon, file.cost, strict=True), strict=True)
        odd = [file.where(row) for row, (plan, spent) in enumerate(stated) if due.get(plan, spent) != spent]
        figure = "epsilon and cost of every answer are those of its plan"
        self.report.require_none(odd, "losses", figure, "they are others")
        if {*file.plan} <= nanos.keys():
            most = Fraction(max(sum(nanos[file.plan[row]] for row in rows) for rows in file.users.values()), NANO)
            self.same("sum of costs", "totals.cost_sum", shown(most))

    def _possible(self, plans: dict[str, PlainPlan]) -> None:
        """Answers of a public constant are that answer, those of a table are among its own: noise goes everywhere."""
        assert self.model is not None
        lattice, points = self.model.lattice, dict[str, set[Point]]()
        for plan in plans.values():
            if plan.constant:
                points[plan.hash] = {lattice[plan.answered_as[s]] for s in plan.support}
            elif plan.table is not None:
                points[plan.hash] = set(plan.table.row)
        if points:
            stated = zip(self.file.plan, self.lattice, strict=True)
            odd = [
                self.file.where(row) for row, (plan, z) in enumerate(stated) if plan in points and z not in points[plan]
            ]
            self.report.require_none(odd, "answers", "possible ones of their plans", "impossible ones")

    def _support(self, plans: dict[str, PlainPlan]) -> None:
        """The states that a plan says are possible are those that the model leaves possible."""
        assert self.model is not None
        if self.stated("beginnings") is not None:
            self.report.leave("possible states", "people begin elsewhere than the model says", "possible states")
            return
        odd = []
        for name, step in sorted(set(zip(self.file.plan, self.file.step, strict=True))):
            plan = plans.get(name)
            if plan is not None and plan.support != self.model.support_at(step):
                odd.append(f"step {step}")
        sizes = [len(plan.support) for plan in plans.values()]
        figure = f"{min(sizes):,} to {max(sizes):,}, those that the model can reach at each step"
        self.report.require_none(odd, "possible states", figure, "others than the model can reach")
        whole = all(plan.plan_set == plan.support for plan in plans.values())
        if self.stated("constraint") == "support":
            self.report.require(whole, "possible states", "each is planned for", "some are not planned for")
        else:
            self.report.leave("planned states", "which states a delta-set holds follows from beliefs", "planned states")

    def _losses(self, plans: list[PlainPlan]) -> None:
        """Every pair that must be hidden loses at most epsilon; no two planned states lose more than the cost."""
        assert self.model is not None and self.policy is not None
        pairs = PairChecks(self.model, self.policy, len(plans))
        for plan in plans:
            pairs.add(plan)
        self.report.require(not pairs.odd, "losses", pairs.figure, some(pairs.odd))
        figure = f"any two planned states lose at most {in_text(pairs.dearest)}, the cost"
        self.report.require(not pairs.cheap, "losses", figure, f"another cost: {some(pairs.cheap)}")
        if pairs.left:
            why = f"{pairs.left:,} plans, of more than {MOST_PAIRS:,} pairs in all"
            self.report.leave("losses", f"{why}, whose states are answered as others", "losses")

    def _read(self, *queries: str) -> list[list[Any]]:
        """Rows of the ledger, of one moment. Raises Unknown where it is none."""
        assert isinstance(self.ledger, Path)
        operations = iter(range(MOST_OPERATIONS // 10**6))
        try:
            with sqlite3.connect(f"{self.ledger.resolve().as_uri()}?mode=ro", uri=True) as opened:
                # What a file's own views compute ends, too.
                opened.set_progress_handler(lambda: next(operations, None) is None, 10**6)
                opened.execute("BEGIN")
                tables = [opened.execute(query).fetchall() for query in queries]
                opened.rollback()
                return tables
        except sqlite3.Error as error:
            raise Unknown(f"{self.ledger} cannot be read as a ledger of format 3 ({error})") from None

    @cached_property
    def _stored(self) -> LedgerRows:
        """The rows of the ledger: from a database, or from these rows as JSON, which has no keys."""
        assert self.ledger is not None
        if isinstance(self.ledger, dict) or self.ledger.name.endswith(".json"):
            stated = self.ledger if isinstance(self.ledger, dict) else read_json(self.ledger)
            sessions, releases, accounts = (stated[name] for name in ("sessions", "releases", "accounts"))
            named = stated["spelling"], stated["unicode"]
            return LedgerRows(*named, sessions, releases, accounts, [], stated["moments"])
        pairs, sessions, releases, accounts, keys, packed = self._read(
            "SELECT key, value FROM meta",
            "SELECT a.subject, s.query, p.text, o.text FROM account a JOIN session s ON s.account = a.id "
            "JOIN document o ON o.id = s.options LEFT JOIN document p ON p.id = a.promise",
            "SELECT a.subject, s.query, r.t, r.steps, r.z, lower(hex(p.hash)), t.epsilon, t.cost, t.secure "
            "FROM release r JOIN session s ON s.id = r.session JOIN account a ON a.id = s.account "
            "JOIN terms t ON t.id = r.terms LEFT JOIN plan p ON p.id = r.plan",
            "SELECT subject, epsilon, cost_nanos, cap_epsilon, cap_cost FROM account",
            "SELECT subject, key FROM account",
            "SELECT a.subject, m.moments FROM moment m JOIN account a ON a.id = m.account ORDER BY a.id, m.t",
        )
        moments = defaultdict[str, list[int]](list)
        for user, part in packed:
            moments[user] += [moment for (moment,) in struct.iter_unpack("<q", part)]
        meta = dict(pairs)
        return LedgerRows(meta.get("spelling"), meta.get("unicode"), sessions, releases, accounts, keys, dict(moments))

    @cached_property
    def kept(self) -> dict[str, KeptSession]:
        """The ledger's sessions of everybody who was asked the query of the statement, by the keys of people."""
        people, query = self.people, self.query
        texts = {
            key: stated
            for user, name, *stated in self._stored.sessions
            if name == query and (key := self.person(user)) in people
        }
        known: dict[Any, Any] = {text: text and parsed(text) for stated in texts.values() for text in stated}
        return {key: KeptSession(*(known[text] for text in stated)) for key, stated in texts.items()}

    def kept_options(self) -> None:
        """Check the ledger's rule for several rows, its choices, and the first steps of people."""
        if self.ledger is None:
            return
        due = {"answer": self.stated("answer"), "epsilon": self.stated("epsilon")}
        due |= {"model": self.stated("model.sha256"), **self._options}
        odd: list[str] = []
        for name, value in due.items():
            # A session that was given states one by one has no rule of rows.
            values = {session.options[name] for session in self.kept.values() if name in session.options}
            odd += [f"{name} {str(other)[:40]}" for other in values - {value} if value is not None]
        names = {session.options.get("varies", "") for session in self.kept.values()}
        odd += [f"varies {name[:40]!r}" for name in names if {*name.split(",")} - {""} != self._varies]
        figure = "sessions of these people have the choices that are stated"
        self.report.require_none(odd, "ledger", figure, "sessions have other choices than the stated")
        seconds = self.stated("model.step_seconds")
        if not seconds:
            self._steps_of_moments()
            return
        odd, seen = [], 0
        for user, rows in self.file.users.items():
            moment, stored = self.file.moments[rows[0]], self.kept.get(self.person(user))
            begins = None if stored is None else first_step(stored)
            if moment is None or begins is None:
                continue
            seen += 1
            if moment // (seconds * 10**6) - self.file.step[rows[0]] + 1 != begins:
                odd.append(repr(user))
        if seen:
            figure = f"steps of {seen:,} people begin when the times of their rows say"
            self.report.require_none(odd, "ledger", figure, "steps begin at other times")

    def _steps_of_moments(self) -> None:
        """Check the time of each step in the ledger, for a model without a time step: that of its row."""
        file, odd, seen = self.file, [], 0
        moments_of = {self.person(user): moments for user, moments in self._stored.moments.items()}
        for user, rows in file.users.items():
            session = self.kept.get(self.person(user))
            if session is None or session.options.get("origin") != "1@times":
                continue
            moments = moments_of.get(self.person(user), [])
            seen += 1
            odd += [file.where(row) for row in rows if [file.moments[row]] != moments[file.step[row] - 1 :][:1]]
        if seen:
            figure = f"steps of {seen:,} people stand for the times of their rows"
            self.report.require_none(odd, "ledger", figure, "steps that stand for other times")

    def of_ledger(self) -> None:
        if self.ledger is None:
            raise Unknown("no ledger, so rows may be there that were never paid for: name it by --ledger")
        if self.model is None:
            raise Unknown("answers in the ledger are lattice points: no --model")
        self._names_of_ledger()
        query, file, stated = self.query, self.file, self._stored.releases
        stored = {
            (self.person(user), t + steps - 1): (z, plan or "", secure)
            for user, name, t, steps, z, plan, _, _, secure in stated
            if name == query
        }
        texts = {point: point and ",".join(map(str, point)) for point in {*self.lattice}}
        odd, replayable = [], 0
        for row, asked in enumerate(file.asked):
            entry = stored.get((self.person(file.user[row]), file.step[row]))
            due = (texts[self.lattice[row]] if asked else None), file.plan[row]
            if entry is None or (entry[0], entry[1]) != due:
                odd.append(file.where(row))
            elif asked:
                replayable += not entry[2]
        self.report.require_none(odd, "ledger", f"{len(file):,} rows with the same answer and plan", "not those of")
        if replayable:
            why = "whoever knows the seed can take the noise away, so nothing is promised"
            self.report.leave("ledger", f"{replayable:,} answers were drawn from replayable bits: {why}")
        else:
            self.report.add("ok", "ledger", "it says that no noise can be replayed")
        self._accounts()
        self._charges(stated)
        self.same("ledger", "randomness.replayable_rows", replayable)
        known = set(zip(map(self.person, file.user), file.step, strict=True))
        more = sum(
            key in self.people and z is not None for (key, t), (z, *_) in stored.items() if (key, t) not in known
        )
        if more:
            self.report.add("ok", "ledger", f"{more:,} answers of these people that this file does not show")

    def _names_of_ledger(self) -> None:
        """Check that the ledger tells people apart as it is stated, each by one name and one account."""
        stored = self._stored
        figure = f"it compares names by the rule {self.rule!r}"
        wrong = f"it compares names by the rule {str(stored.spelling)[:40]!r}, and {self.rule!r} is stated"
        self.report.require(stored.spelling == self.rule, "ledger", figure, wrong)
        if stored.unicode != unicodedata.unidata_version:
            figure = f"it read names by Unicode {str(stored.unicode)[:20]}, and this Python by another version"
            self.report.add(_STATED, "ledger", f"{figure}: keys of characters that both have are the same")
        called: dict[str, list[str]] = defaultdict(list)
        for name, *_ in stored.accounts:
            called[self.person(name)].append(name)
        odd = [" and ".join(repr(name[:60]) for name in names) for names in called.values() if len(names) > 1]
        odd += [repr(name[:60]) for name, key in stored.keys if name not in self.unread and self.person(name) != key]
        self.report.require_none(odd, "ledger", "each person has one account", "several accounts, or another key, of")
        odd = [repr(user[:60]) for key, user in self.people.items() if called.get(key, [user])[0] != user]
        figure = "people are called as they are there"
        self.report.require_none(odd, "ledger", figure, "called otherwise than in the file")

    def _charges(self, stated: list[Any]) -> None:
        """Check that the ledger charged for each answer the cost of its plan."""
        plans, odd = self.plans or {}, []
        charged = {(plan or "", epsilon, cost) for *_, z, plan, epsilon, cost, _ in stated if z is not None}
        for name, epsilon, cost in sorted(charged):
            plan = plans.get(name)
            if plan is not None and (exact(epsilon), exact(cost)) != (plan.promised, plan.cost):
                odd.append(f"{name[:12]} for {epsilon} and {cost}")
        if plans:
            self.report.require(not odd, "account", "answers are charged what their plans cost", some(odd))

    def _accounts(self) -> None:
        """Check that each account is the sum of the person's releases over all queries, and within its caps."""
        sums: dict[str, list[Any]] = defaultdict(lambda: [Fraction(0), 0])
        known: dict[tuple[str, str], tuple[Fraction, int]] = {}
        for user, _, _, _, z, _, epsilon, cost, _ in self._stored.releases:
            key = self.person(user)
            if z is None or key not in self.people:
                continue
            if (epsilon, cost) not in known:
                known[epsilon, cost] = exact(epsilon), math.ceil(exact(cost) * NANO)
            spent, (more, nanos) = sums[key], known[epsilon, cost]
            spent[0] += more
            spent[1] += nanos
        odd, over, most = [], [], Fraction(0)
        for user, epsilon, nanos, cap_epsilon, cap_cost in self._stored.accounts:
            key = self.person(user)
            if key not in self.people:
                continue
            spent = sums[key]
            most = max(most, spent[0])
            if (exact(epsilon), int(nanos)) != tuple(spent):
                odd.append(repr(user))
            passed = cap_epsilon is not None and spent[0] > exact(cap_epsilon)
            passed = passed or (cap_cost is not None and Fraction(spent[1], NANO) > exact(cap_cost))
            over += [repr(user)] * bool(passed)
        figure = f"each account is the sum of its releases; most epsilon {most}"
        self.report.require_none(odd, "account", figure, "other sums")
        self.report.require_none(over, "account", "none is above its caps", "above its caps")
        if self.stated("totals.limited"):
            held = {self.person(user) for user, _, promise, _ in self._stored.sessions if promise}
            held |= {self.person(user) for user, _, _, *caps in self._stored.accounts if caps != [None, None]}
            unheld = self.people.keys() - held
            free = [repr(user) for user, *_ in self._stored.accounts if self.person(user) in unheld]
            self.report.require_none(
                free, "account", "each has a limit, as stated", "have no limit, though one is stated"
            )


def plans_of(path: Path) -> dict[str, PlainPlan]:
    """The plans of a file of them, by hash."""
    stated = read_json(path)
    if not isinstance(stated, dict) or stated.get("kind") != "plans of a dphmm release" or stated.get("format") != 1:
        raise Unreadable(f"{path}: got another document; expected the plans that dphmm check-release writes")
    if not isinstance(stated.get("plans"), list):
        raise Unreadable(f"{path}: got no plans; expected those that dphmm check-release writes")
    return {plan.hash: plan for plan in map(PlainPlan, stated["plans"])}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="verify_release.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("released", help="the released file: .csv, .csv.gz, .jsonl or .ndjson")
    parser.add_argument("--statement", help="its privacy statement, if not beside it")
    parser.add_argument("--model", help="the public model, model.npz")
    parser.add_argument("--policy", help="the public policy, policy.json")
    parser.add_argument("--plans", help="the plans, as `dphmm check-release --plain FOLDER` writes them")
    parser.add_argument("--ledger", help="the ledger, ledger.db, which its owner has")
    parser.add_argument("--facts", help="what follows from model and policy, as `dphmm check-release` computes it")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object: code, counts, and lines of three texts"
    )
    options = parser.parse_args(arguments)
    try:
        checker = Checker.of(options)
        report, file = checker.run(), checker.file
    except Unreadable as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return UNREADABLE
    if options.json:
        counts = {"rows": len(file), "users": len(file.users), "plans": len({*file.plan} - {""})}
        print(json.dumps({"code": report.code, **counts, "lines": report.lines}))
        return report.code
    for word, check, figure in report.lines:
        print(f"{word:<13}  {check}: {figure}")
    print(NOT_CHECKED)
    return report.code


if __name__ == "__main__":
    raise SystemExit(main())
