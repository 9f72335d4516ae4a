"""Checks a released file of dphmm without dphmm: this file, Python 3.11 or newer, and nothing else.

    python3 -I -S verify_release.py released.csv --model model.npz --policy policy.json --plans plans.json

It shares no code with dphmm and imports the standard library alone. It reads a released file (.csv, .csv.gz, or the
lines of a stream, .jsonl or .ndjson) with its privacy statement, and any of the public inputs, and computes again what
can be computed from them, with whole numbers and fractions. Each check prints one line: ok, wrong, or cannot tell, with
the figure. What no line is about was not checked. `dphmm export released.parquet -o released.csv` writes the rows of a
Parquet file, which the standard library cannot read; `dphmm audit ... --plans plans.json` writes the plans.

Exit code 0: every check is ok. 1: one is wrong. 2: none is wrong, but one cannot be told, or a file cannot be read.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import hashlib
import json
import math
import re
import sqlite3
import struct
import sys
import zipfile
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

NANO = 10**9
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
MAPS = ("grid", "h3", "zones")
#: Degrees may differ by rounding, and estimates are sums of floats.
DEGREES, RELATIVE = 1e-9, 1e-6
#: Chances of a law of moves that are the same.
ALIKE = 1e-12
#: Pairs of states that are looked at one by one, and multiplications of the filter.
MOST_PAIRS, MOST_PRODUCTS = 20_000_000, 300_000_000
MOST_MOVES = 100_000
#: What no file shows, or this program does not look at.
NOT_CHECKED = (
    "not checked: the sentences of the statement and its covered distance; whether noise was drawn freshly; whether "
    "the ledger is honest; whom the model was fitted on; whether its file says truly how it was made; whether people "
    "are told apart by their names and times"
)
Point = tuple[int, ...]


class Unreadable(Exception):
    """A file that cannot be read, in one line."""


class Unknown(Exception):
    """Why something cannot be told."""


class Report:
    """What the checks found."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []

    def add(self, word: str, check: str, figure: str) -> None:
        self.lines.append((word, check, printable(figure)))

    def require(self, right: bool, check: str, figure: str, wrong: str | None = None) -> bool:
        self.add("ok" if right else "wrong", check, figure if right or wrong is None else wrong)
        return right

    def cannot(self, check: str, why: str) -> None:
        self.add("cannot tell", check, why)

    @property
    def code(self) -> int:
        words = {word for word, _, _ in self.lines}
        return 1 if "wrong" in words else 2 if "cannot tell" in words or not words else 0


def printable(text: str) -> str:
    """Text of a file on one line of a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:400])


def some(names: Sequence[Any]) -> str:
    """The first of some names."""
    return ", ".join(map(str, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class Row(NamedTuple):
    """One released row; ``cells`` are its texts, "" where a cell is empty."""

    number: int
    user: str
    step: int
    cells: dict[str, str]

    @property
    def asked(self) -> bool:
        return self.cells["plan"] != ""

    @property
    def where(self) -> str:
        return f"user {self.user!r}, step {self.step}"


class Release:
    """The rows of a released file, in its order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = hashlib.sha256(read_bytes(path)).hexdigest()
        name = path.name.lower()
        self.stream = name.endswith((".jsonl", ".ndjson"))
        if name.endswith(".parquet"):
            raise Unreadable(
                f"{path}: got a Parquet file; expected .csv or .jsonl: `dphmm export {path.name} -o released.csv` "
                "writes its rows and statement, which this program reads without any package"
            )
        if not name.endswith((".csv", ".csv.gz", ".jsonl", ".ndjson")):
            raise Unreadable(f"{path}: got another suffix; expected .csv, .csv.gz, .jsonl or .ndjson")
        text = self._text()
        found = self._of_lines(text) if self.stream else self._of_csv(text)
        self.columns, self.rows = found
        self.users: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            self.users[row.user].append(row)

    def _text(self) -> str:
        data = read_bytes(self.path)
        try:
            return (gzip.decompress(data) if self.path.name.lower().endswith(".gz") else data).decode("utf-8")
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise Unreadable(f"{self.path}: got bytes that cannot be read ({error}); expected UTF-8 text") from None

    def _of_csv(self, text: str) -> tuple[list[str], list[Row]]:
        reader = csv.reader(text.splitlines(keepends=True), strict=True)
        try:
            header, *cells = list(reader)
        except (csv.Error, ValueError) as error:
            raise Unreadable(f"{self.path}: got no table ({error}); expected a released CSV file") from None
        odd = next((n for n, row in enumerate(cells, 2) if len(row) != len(header)), None)
        if odd is not None or len(set(header)) < len(header):
            raise Unreadable(f"{self.path}: got row {odd} of another length, or a column twice; expected a table")
        # Texts that a spreadsheet would take for formulas begin with an apostrophe that is not theirs.
        plain = ([re.sub("^'('*[=@+\\-\t\r])", "\\1", cell) for cell in row] for row in cells)
        return header, [self._row(n, dict(zip(header, row, strict=True))) for n, row in enumerate(plain, 2)]

    def _of_lines(self, text: str) -> tuple[list[str], list[Row]]:
        rows: list[Row] = []
        known: dict[tuple[str, int], dict[str, str]] = {}
        columns: list[str] = []
        for n, line in enumerate(text.splitlines(), 1):
            try:
                members = json.loads(line, parse_float=str, parse_int=str)
                if not isinstance(members, dict) or any(isinstance(v, (dict, list, bool)) for v in members.values()):
                    raise ValueError("no answer")
            except ValueError as error:
                raise Unreadable(f"{self.path}: got line {n} that is no answer ({error}); expected JSON") from None
            cells = {name: "" if value is None else value for name, value in members.items()}
            columns = columns or list(cells)
            row = self._row(n, cells)
            # A step that was asked again has the same answer, and counts once.
            if known.setdefault((row.user, row.step), cells) is cells:
                rows.append(row)
            elif known[row.user, row.step] != cells:
                raise Unreadable(f"{self.path}: got another answer to {row.where} in line {n}; expected the same again")
        return columns, rows

    def _row(self, number: int, cells: dict[str, str]) -> Row:
        missing = next((name for name in ("user", "step", "epsilon", "cost", "plan") if name not in cells), None)
        if missing is not None:
            raise Unreadable(f"{self.path}: got line {number} without {missing!r}; expected a released file")
        if not re.fullmatch("[1-9][0-9]{0,17}", cells["step"]):
            raise Unreadable(f"{self.path}: got step {cells['step'][:40]!r} in line {number}; expected 1, 2, ...")
        return Row(number, cells["user"], int(cells["step"]), cells)

    def number(self, row: Row, name: str) -> float:
        """A cell as the float that was released."""
        try:
            return float(row.cells[name])
        except (KeyError, ValueError):
            raise Unreadable(
                f"{self.path}: got {row.cells.get(name, 'nothing')[:40]!r} as {name} of {row.where}; expected a number"
            ) from None

    def moment(self, row: Row) -> int | None:
        """Microseconds since 1970 UTC; None without a time."""
        text = row.cells.get("t", "")
        if not text:
            return None
        try:
            told = datetime.fromisoformat(text)
            told = told.replace(tzinfo=UTC) if told.tzinfo is None else told
            return (told - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        except (ValueError, OverflowError):
            raise Unreadable(f"{self.path}: got {text[:40]!r} as t of {row.where}; expected a time") from None


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: got {error.strerror}; expected a file") from None


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        raise Unreadable(f"{path}: got no JSON; expected a file as dphmm writes it") from None


def fraction(text: Any) -> Fraction:
    """An exact number of a statement. Raises Unknown for a number that was shortened."""
    if text is None:
        raise TypeError("a member that is missing")
    try:
        return Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        raise Unknown(f"{str(text)[:40]!r} is no exact number") from None


def spelled(name: str, text: str) -> bool:
    """Whether a cell is written as a release writes it: another spelling of the same number can say something."""
    if name == "t":
        return re.fullmatch(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00))?", text) is not None
    if text == "" or not (name in ("epsilon", "cost", "confidence") or re.match("(z|estimate)_", name)):
        return True
    if not re.fullmatch(r"-?\d+(\.\d+)?(e[-+]?\d+)?", text):
        return False
    short = repr(float(text))
    if "e" in short or "e" in text:
        # Writers differ in where they begin to write powers of ten.
        return Decimal(text) == Decimal(short)
    return text in (short, short.removesuffix(".0"))


def clock(told: dict[str, Any]) -> tuple[int, int]:
    """Of blocks of a time how many seconds one has, and by how many the clock is ahead of UTC. Raises Unknown."""
    number = re.fullmatch("([0-9]+)(s|min|h|d)", str(told.get("per")))
    zone = re.fullmatch("([+-])([0-9]{2}):([0-9]{2})", str(told.get("zone") or "+00:00"))
    if number is None or zone is None:
        raise Unknown(f"a block of {str(told.get('per'))[:40]} by the clock {str(told.get('zone'))[:40]}")
    ahead = int(zone[2]) * 3600 + int(zone[3]) * 60
    return int(number[1]) * SECONDS[number[2]], -ahead if zone[1] == "-" else ahead


def in_text(value: Fraction | float) -> str:
    return "unbounded" if value == math.inf else str(value) if len(str(value)) < 30 else f"{float(value):.9g}"


def in_words(kept: dict[str, Any] | None) -> str:
    """A promise of a ledger, as short as it is there."""
    return "none" if kept is None else ", ".join(f"{name} {value}" for name, value in sorted(kept.items()))


def first_step(kept: Kept) -> int | None:
    """The number of a person's step 1 in steps since 1970, None where the ledger has none."""
    origin = str(kept.options.get("origin", ""))
    return int(origin) if re.fullmatch("-?[0-9]{1,18}", origin) else None


class Model:
    """A model file: the chain and the states, read as a ZIP file of arrays."""

    def __init__(self, path: Path) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                self.arrays = {name: self._array(archive.read(name)) for name in archive.namelist() if name != "sha256"}
        except (OSError, zipfile.BadZipFile, ValueError, SyntaxError, struct.error, KeyError) as error:
            raise Unreadable(f"{path}: got no model ({error}); expected a model file of dphmm") from None
        try:
            self.meta = json.loads(bytes(self.arrays["meta.npy"][1]))
            self.initial = self._values("initial")
            self.indptr, self.indices, self.data = map(self._values, ("indptr", "indices", "data"))
            shape, flat = self.arrays["space/lattice.npy"]
            self.space = self.meta["space"]
            self.jump = self.meta.get("jump")
            self.start, self.step = self.meta["start"], self.meta["step"]
        except (KeyError, ValueError):
            raise Unreadable(f"{path}: got a file without a chain and its states; expected a model of dphmm") from None
        self.n, self.dimension = shape
        d = self.dimension
        self.own: list[Point] = [tuple(flat[i * d : i * d + d]) for i in range(self.n)]
        self.merges: list[list[int]] = []
        if "space/merges.npy" in self.arrays:
            pairs = self._values("space/merges")
            self.merges = [list(pairs[i : i + 2]) for i in range(0, len(pairs), 2)]

    @staticmethod
    def _array(data: bytes) -> tuple[tuple[int, ...], Sequence[Any]]:
        if data[:6] != b"\x93NUMPY":
            raise ValueError("a member that is no array")
        size = struct.unpack("<H" if data[6] == 1 else "<I", data[8 : 10 if data[6] == 1 else 12])[0]
        begin = (10 if data[6] == 1 else 12) + size
        header = ast.literal_eval(data[begin - size : begin].decode("latin-1"))
        shape, kind = header["shape"], header["descr"]
        formats = {"<f8": "d", "<i8": "q", "<i4": "i", "<i2": "h", "|u1": "B", "|b1": "?", "<u8": "Q", "|i1": "b"}
        if kind not in formats or header["fortran_order"]:
            return shape, data[begin:]
        count = math.prod(shape)
        return shape, struct.unpack(f"<{count}{formats[kind]}", data[begin:])

    def _values(self, name: str) -> Sequence[Any]:
        return self.arrays[f"{name}.npy"][1]

    def merge(self, pairs: list[list[int]]) -> None:
        """Merge what a policy file lists too."""
        self.merges = sorted([*self.merges, *(pair for pair in pairs if pair not in self.merges)])

    @property
    def lattice(self) -> list[Point]:
        """The answer of each state: a merged one has that of another."""
        into = dict(self.merges)
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
        header = {"model": 1, "n": self.n, "nnz": len(self.data), "start": self.start, "step": self.step}
        if self.jump is not None:
            header["jump"] = self.jump
        sha = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        parts: list[tuple[Sequence[Any], str]] = [
            (self.initial, "d"),
            (self.indptr, "q"),
            (self.indices, "q"),
            (self.data, "d"),
        ]
        if self.jump is not None:
            parts.append((self._values("jump"), "d"))
        for values, kind in parts:
            sha.update(struct.pack(f"<{len(values)}{kind}", *values))
        return sha.hexdigest()

    def space_digest(self) -> str:
        """That of the states. Raises Unknown for kinds whose place is not computed here."""
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
            raise Unknown(f"the hash of {kind} cells is not computed here")
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
            raise Unknown(f"degrees of {self.space['kind']} cells are not computed here")
        west, south, _, (north_, east_) = self._box()
        return min(90.0, max(-90.0, y / north_ + south)), (x / east_ + west + 180.0) % 360.0 - 180.0

    def place(self, point: Sequence[int]) -> list[float]:
        """The answer of a lattice point, as it is published."""
        axes = zip(self.space["origin"], self.space["pitch"], point, strict=True)
        return [origin + k * pitch for origin, pitch, k in axes]

    @property
    def provenance(self) -> dict[str, Any]:
        """What the file says of how the model was made."""
        return dict(self.meta.get("provenance") or {})

    def couples(self) -> bool:
        """Whether it is known to couple along every radius policy.

        So is a model of a whole grid with one law of moves, of at most two cells on an axis and as likely one way as
        the other, where people begin anywhere alike. Raises Unknown where states have the answers of others.
        """
        if self.merges:
            raise Unknown("whether a model with merged states couples")
        if self.space["kind"] != "grid":
            return False
        least = [min(point[j] for point in self.own) for j in range(2)]
        width = [max(point[j] for point in self.own) - least[j] + 1 for j in range(2)]
        even = [self.initial, *([] if self.jump is None else [self._values("jump")])]
        if min(width) < 5 or math.prod(width) != self.n or any(len(set(values)) > 1 for values in even):
            return False
        at: dict[Point, int] = {(x - least[0], y - least[1]): s for s, (x, y) in enumerate(self.own)}
        law = self._law_of_moves(at, (width[0] // 2, width[1] // 2))
        if any(max(abs(x), abs(y)) > 2 for x, y in law):
            return False
        turned = [(p, to) for (x, y), p in law.items() for to in ((-x, y), (x, -y))]
        if any(abs(p - law.get(to, 0.0)) > ALIKE for p, to in turned):
            return False
        return all(self._moves_by(law, at, place, width) for place in at)

    def _law_of_moves(self, at: dict[Point, int], place: Point) -> dict[Point, float]:
        points = {s: point for point, s in at.items()}
        moves = self.moves[at[place]]
        return {(points[j][0] - place[0], points[j][1] - place[1]): p for j, p in moves}

    def _moves_by(self, law: dict[Point, float], at: dict[Point, int], place: Point, width: list[int]) -> bool:
        """Whether a cell has these moves; what would leave the grid is not made, axis by axis."""
        due: dict[int, float] = defaultdict(float)
        for move, p in law.items():
            to = (x + d if 0 <= x + d < w else x for x, d, w in zip(place, move, width, strict=True))
            due[at[tuple(to)]] += p
        found = dict(self.moves[at[place]])
        return all(abs(due.get(s, 0.0) - found.get(s, 0.0)) <= ALIKE for s in {*due, *found})

    @cached_property
    def moves(self) -> list[list[tuple[int, float]]]:
        found = []
        for s in range(self.n):
            a, b = self.indptr[s], self.indptr[s + 1]
            found.append([(j, p) for j, p in zip(self.indices[a:b], self.data[a:b], strict=True) if p > 0])
        return found

    def support_at(self, t: int) -> frozenset[int]:
        """The states that can be possible at step t of a subject, whatever was answered."""
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
        return [self._moved(first) if self.start == "before" else first]

    def _moved(self, states: frozenset[int]) -> frozenset[int]:
        if self.jump is not None:
            return frozenset(range(self.n))
        return frozenset(j for s in states for j, _ in self.moves[s])

    def predicted(self, p: list[float]) -> list[float]:
        """A belief one step later."""
        after = [0.0] * self.n
        for mass, moves in zip(p, self.moves, strict=True):
            if mass > 0:
                for j, q in moves:
                    after[j] += mass * q
        if self.jump is not None:
            into = self._values("jump")
            after = [(1 - self.jump) * a + self.jump * u for a, u in zip(after, into, strict=True)]
        return after


def sha_of_integers(rows: Sequence[Sequence[int]], shape: str) -> str:
    flat = [number for row in rows for number in row]
    return hashlib.sha256(f"{shape}\n".encode() + struct.pack(f"<{len(flat)}q", *flat)).hexdigest()


def policy_digest(kind: str, parameters: dict[str, Any]) -> str:
    """The hash of a policy. Raises Unknown for kinds whose hash is of a longer list."""
    told = dict(parameters)
    if kind == "edges":
        pairs = sorted(sorted(pair) for pair in told["edges"])
        told["edges"] = sha_of_integers(pairs, f"({len(pairs)}, 2)")
    elif kind not in ("radius", "complete"):
        raise Unknown(f"the hash of a {kind} policy is not computed here")
    return hashlib.sha256(json.dumps({**told, "kind": kind}, sort_keys=True).encode()).hexdigest()


class Policy:
    """A policy file: which states must not be told apart."""

    def __init__(self, path: Path) -> None:
        self.document = read_json(path)
        try:
            self.kind, self.parameters = self.document["kind"], self.document["parameters"]
            self.merges = [list(map(int, pair)) for pair in self.document.get("merges", [])]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Unreadable(f"{path}: got no policy; expected a policy file of dphmm") from None

    @property
    def digest(self) -> str:
        """Raises Unknown for kinds whose hash is of a longer list."""
        return policy_digest(self.kind, self.parameters)

    def edges(self, model: Model) -> Iterator[tuple[int, int]]:
        """All edges. Raises Unknown for kinds that this program does not know, and for too many pairs."""
        return self._edges(self.kind, self.parameters, model)

    def _edges(self, kind: str, told: dict[str, Any], model: Model) -> Iterator[tuple[int, int]]:
        n = model.n
        if kind == "complete":
            self._few(n * (n - 1) // 2)
            yield from ((a, b) for a in range(n) for b in range(a))
        elif kind == "categorical":
            groups = defaultdict(list)
            for s, label in enumerate(told["labels"]):
                groups[label].append(s)
            yield from self._of_cliques(groups.values())
        elif kind == "edges":
            yield from ((int(a), int(b)) for a, b in told["edges"])
        elif kind == "transition":
            yield from self._of_cliques([j for j, _ in row] for row in model.moves)
        elif kind == "radius":
            yield from self._near(told, model)
        elif kind == "union":
            for part in told["parts"]:
                yield from self._edges(part["kind"], part, model)
        else:
            raise Unknown(f"the edges of a {kind} policy are not computed here")

    def _of_cliques(self, groups: Any) -> Iterator[tuple[int, int]]:
        listed = [list(group) for group in groups]
        self._few(sum(len(group) ** 2 for group in listed) // 2)
        for group in listed:
            yield from ((a, b) for i, a in enumerate(group) for b in group[:i])

    def _near(self, told: dict[str, Any], model: Model) -> Iterator[tuple[int, int]]:
        pitch = [Fraction(repr(float(p))) for p in model.space["pitch"]]
        points = next((p for p in (model.own, model.lattice) if self._same(p, pitch, told["answers"])), None)
        if points is None:
            raise Unknown("the distances of this policy are not those of the lattice")
        r = Fraction(told["r"])
        at: dict[Point, list[int]] = defaultdict(list)
        for s, point in enumerate(points):
            at[point].append(s)
        reach = [min(int(r / p), max(q[j] for q in points) - min(q[j] for q in points)) for j, p in enumerate(pitch)]
        offsets = [v for v in box(reach) if self._within(v, pitch, r, told["closed"])]
        self._few(len(offsets) * model.n)
        for a, point in enumerate(points):
            for v in offsets:
                for b in at.get(tuple(x + y for x, y in zip(point, v, strict=True)), ()):
                    if b < a:
                        yield a, b

    @staticmethod
    def _same(points: list[Point], pitch: list[Fraction], told: str) -> bool:
        least = [min(p[j] for p in points) for j in range(len(pitch))]
        moved = [[x - low for x, low in zip(p, least, strict=True)] for p in points]
        own = sha_of_integers(moved, f"({len(points)}, {len(pitch)})")
        return hashlib.sha256(f"{','.join(map(str, pitch))} {own}".encode()).hexdigest() == told

    @staticmethod
    def _within(v: Point, pitch: list[Fraction], r: Fraction, closed: bool) -> bool:
        square = sum((p * x) ** 2 for p, x in zip(pitch, v, strict=True))
        return square <= r * r if closed else square < r * r

    @staticmethod
    def _few(pairs: int) -> None:
        if pairs > MOST_PAIRS:
            raise Unknown(f"{pairs:,} pairs of states, more than {MOST_PAIRS:,}")


def box(reach: Sequence[int]) -> Iterator[Point]:
    """All integer vectors with |v_j| <= reach_j."""
    if not reach:
        yield ()
        return
    for first in range(-reach[0], reach[0] + 1):
        for rest in box(reach[1:]):
            yield (first, *rest)


class Plan:
    """One plan in plain form: the law of the answers, and for which states it was made."""

    def __init__(self, told: dict[str, Any]) -> None:
        try:
            self.hash: str = told["hash"]
            self.inputs: str = told["inputs"]
            self.description: str = told["description"]
            self.bodies = told["bodies"]
            self.packed = bytes.fromhex(told["support"]), bytes.fromhex(told["plan_set"])
            self.given = [(int(a), int(b)) for a, b in told["given"]]
            self.surrogate = None if told["surrogate"] is None else list(map(int, told["surrogate"]))
            self.shared = json.loads(self.inputs)
            self.n = int(told["states"])
            self.chosen = json.loads(self.description)
            self.support, self.plan_set = (frozenset(self._states(bits)) for bits in self.packed)
            self.cost = Fraction(self.chosen["cost"])
            self.law = self.chosen["mechanisms"][0]
            self.name, self.epsilon = self.law["name"], Fraction(self.law["epsilon"])
            self.offset = Fraction(self.law.get("offset", "0"))
            merged = dict(self.chosen.get("merged", []))
            before = list(range(self.n)) if self.surrogate is None else self.surrogate
            self.answered_as = [merged.get(s, s) for s in before]
            self.merged = merged
        except (KeyError, TypeError, ValueError, ZeroDivisionError, IndexError, AttributeError):
            raise Unreadable("plans: got a plan without its parts; expected `dphmm audit ... --plans FILE`") from None

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

    def check_known(self) -> None:
        """Raises Unknown for a law that this program does not compute."""
        if len(self.bodies) != 1 or len(self.chosen["mechanisms"]) != 1:
            raise Unknown("several laws")
        if self.name not in ("discrete-knorm", "staircase", "discrete-laplace", "constant"):
            raise Unknown(f"the mechanism {self.name}")
        body = self.bodies[0]
        if not self.constant and len(body["basis"][0]) != len(body["pitch"]):
            raise Unknown("a flat body")
        if any(offset <= 0 for offset in body["offsets"]):
            raise Unknown("a body with an empty facet")

    def norm(self, v: Sequence[int]) -> Fraction:
        """The least factor by which the body must grow to contain v."""
        body = self.bodies[0]
        values = (abs(sum(a * x for a, x in zip(row, v, strict=True))) for row in body["normals"])
        return max(Fraction(value, b) for value, b in zip(values, body["offsets"], strict=True))

    def loss_of_norm(self, norm: Fraction) -> Fraction:
        return self.epsilon * (math.ceil(norm) if self.name == "staircase" else norm)

    def widest(self, answers: Sequence[Point]) -> Fraction:
        """The largest norm of the difference of two of these answers."""
        worst, body = Fraction(0), self.bodies[0]
        for row, b in zip(body["normals"], body["offsets"], strict=True):
            along = [sum(a * x for a, x in zip(row, point, strict=True)) for point in answers]
            worst = max(worst, Fraction(max(along) - min(along), b))
        return worst

    def exponent(self, v: Sequence[int]) -> float:
        """-log of the probability of a noise, up to a constant."""
        norm = self.norm(v)
        return float(self.epsilon * (max(0, math.ceil(norm - self.offset)) if self.name == "staircase" else norm))


class Kept(NamedTuple):
    """What a ledger keeps of one person, beside the releases."""

    promise: dict[str, Any] | None
    options: dict[str, Any]


class Checker:
    """All checks of one released file."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.report = Report()
        self.file = Release(Path(given.released))
        path = Path(given.statement or f"{given.released}.privacy.json")
        self.statement = read_json(path) if given.statement or path.exists() else None
        self.model = None if given.model is None else Model(Path(given.model))
        self.policy = None if given.policy is None else Policy(Path(given.policy))
        if self.model is not None and self.policy is not None and self.policy.merges:
            self.model.merge(self.policy.merges)
        self.plans = None if given.plans is None else self._plans(Path(given.plans))
        self.ledger = None if given.ledger is None else Path(given.ledger)
        if self.ledger is not None and not self.ledger.is_file():
            raise Unreadable(f"{self.ledger}: got no such file; expected a ledger file")

    @staticmethod
    def _plans(path: Path) -> dict[str, Plan]:
        told = read_json(path)
        if not isinstance(told, dict) or told.get("kind") != "plans of a dphmm release" or told.get("format") != 1:
            raise Unreadable(f"{path}: got another document; expected `dphmm audit ... --plans FILE`")
        return {plan.hash: plan for plan in map(Plan, told["plans"])}

    def run(self) -> Report:
        """Every check, each on its own."""
        for check, what in (
            ("rows", self.rows),
            ("columns", self.columns),
            ("statement", self.of_statement),
            ("epsilons", self.epsilons),
            ("chosen steps", self.chosen_steps),
            ("other files", self.other_files),
            ("sums", self.sums),
            ("promise", self.promise),
            ("promise", self.kept_promise),
            ("couples", self.couples),
            ("schedule", self.schedule),
            ("schedule", self.kept_schedule),
            ("times", self.times),
            ("model", self.of_model),
            ("policy", self.of_policy),
            ("answers", self.answers),
            ("places", self.places),
            ("plans", self.of_plans),
            ("ledger", self.of_ledger),
            ("ledger", self.kept_options),
            ("learning", self.learning),
            ("estimates", self.estimates),
        ):
            try:
                what()
            except Unknown as error:
                self.report.cannot(check, str(error))
            except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError, struct.error) as error:
                if self.statement is None:
                    raise
                self.report.add("wrong", check, f"a member is missing or of another form ({type(error).__name__})")
        return self.report

    def stated(self, path: str) -> Any:
        """A member of the statement, None where it is absent. Raises Unknown without a statement."""
        if self.statement is None:
            raise Unknown("no privacy statement: name it by --statement")
        found = self.statement
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    def same(self, check: str, path: str, due: Any) -> None:
        """One member of the statement against what was computed."""
        told = self.stated(path)
        wrong = f"{path} is {str(due)[:70]}, and the statement says {str(told)[:70]}"
        self.report.require(told == due, check, f"{path} is {str(due)[:70]}", wrong)

    def rows(self) -> None:
        rows, users = self.file.rows, self.file.users
        keys = [(row.user, row.step) for row in rows]
        self.report.require(bool(rows), "rows", f"{len(rows):,} rows of {len(users):,} people", "no row")
        twice = len(keys) - len(set(keys))
        self.report.require(not twice, "rows", "each person and step once", f"{twice} steps of a person stand twice")
        if not self.file.stream and rows:
            blocks = [user for n, user in enumerate(row.user for row in rows) if n == 0 or rows[n - 1].user != user]
            ordered = len(blocks) == len(set(blocks)) and all(
                a.user != b.user or a.step < b.step for a, b in pairwise(rows)
            )
            self.report.require(
                ordered, "rows", "in the order of person and step", "in an order that may say something"
            )
        odd = [f"{name} of {row.where}" for row in rows for name, text in row.cells.items() if not spelled(name, text)]
        self.report.require(
            not odd, "rows", "numbers and times in the one spelling of a release", f"in another spelling: {some(odd)}"
        )
        counts = [sum(row.asked for row in of) for of in users.values()] or [0]
        self.report.add(
            "ok", "rows", f"{sum(counts):,} answers, {min(counts):,} to {max(counts):,} of a person (counted)"
        )
        odd = [
            row
            for row in rows
            if not row.asked and (float(row.cells["epsilon"] or "nan"), float(row.cells["cost"] or "nan")) != (0.0, 0.0)
        ]
        self.report.require(not odd, "rows", "no row without a plan costs anything", f"{some([r.where for r in odd])}")

    def columns(self) -> None:
        kind, d = self.stated("space.kind"), self.stated("space.dimension")
        columns = self.file.columns
        estimated = any(name.startswith(("estimate", "confidence")) for name in columns)
        points = ["z", "estimate"] if estimated else ["z"]
        due = ["user", *(["t"] if "t" in columns else []), "step"]
        if kind == "labels":
            due += ["z", *(["estimate", "confidence"] if estimated else [])]
        else:
            due += [f"{name}_{j}" for name in points for j in range(d)] + (["estimate"] if estimated else [])
            due += [f"{name}_{axis}" for name in points for axis in ("lat", "lon")] if kind in MAPS else []
        due += ["epsilon", "cost", "plan"]
        extra = [name for name in columns if name not in due]
        wrong = f"columns that no release has: {some(extra)}" if extra else f"expected {', '.join(due)}"
        alike = all(list(row.cells) == columns or set(row.cells) == set(columns) for row in self.file.rows)
        self.report.require(columns == due and alike, "columns", f"the {len(due)} of a release of {kind}", wrong)

    def _members(self) -> None:
        """Members of the statement against each other, and its exact numbers as they are written."""
        private, over, noise = self.stated("private"), self.stated("sequence"), self.stated("randomness")
        held = [self.stated("promise.holds"), *([] if over is None else [over["holds"]])]
        reasons = bool(self.stated("not_private_because")), bool(self.stated("unknown_because"))
        numbers = [self.stated("epsilon"), *([] if over is None else [over["total"]])]
        numbers += [one["epsilon"] for one in (self.stated("varied") or {"chosen": []})["chosen"]]
        wrong = {
            "another verdict in promise or sequence than private": any(
                json.dumps(one) != json.dumps(private) for one in held
            ),
            "private with other reasons than it has": reasons != (private is False, private == "unknown"),
            "secure noise with replayable rows, or the reverse": noise["secure"] is (noise["replayable_rows"] > 0),
            "an epsilon or a total that is no fraction as it is written": not all(
                one is None or (re.fullmatch("[0-9]+(/[1-9][0-9]*)?", one) and str(Fraction(one)) == one)
                for one in numbers
            ),
        }
        odd = [what for what, found in wrong.items() if found]
        self.report.require(not odd, "statement", "its members agree with each other", "; ".join(odd))

    def of_statement(self) -> None:
        self._members()
        self.same("file", "file.sha256", self.file.sha256)
        self.same("rows", "published.rows", len(self.file.rows))
        self.same("rows", "published.subjects", len(self.file.users))
        unasked = sum(not row.asked for row in self.file.rows)
        told = (self.stated("schedule") or {"not_asked": 0})["not_asked"]
        self.report.require(
            told == unasked, "rows", f"{unasked:,} without an answer, as stated", f"{unasked}, stated {told}"
        )
        hashes = sorted({row.cells["plan"] for row in self.file.rows} - {""})
        self.same("plans", "plans.count", len(hashes))
        self.same("plans", "plans.sha256", hashlib.sha256("\n".join(hashes).encode()).hexdigest())
        if self.stated("plans.hashes") is not None:
            self.same("plans", "plans.hashes", hashes)
        chosen = sum(self.stated("mechanism.chosen").values())
        self.report.require(
            chosen == len(self.file.rows) - unasked, "answers", f"mechanisms answered {chosen:,} rows, as stated"
        )
        private = self.stated("private")
        if private is True:
            wrong = "the statement promises something of noise that it does not call secure"
            self.report.require(self.stated("randomness.secure") is True, "private", "of secure noise", wrong)
        if private is True and self.stated("model.people_known_by") == "model":
            self.report.add("ok", "private", "the statement says that the model was made without data (see model)")
        elif private is True and (self.stated("learning") or {}).get("private"):
            self.report.cannot("private", "the statement says that the model was learned privately; no file shows it")
        elif private is True:
            wrong = "the statement promises something of a model that it does not call one of other people"
            if self.stated("model.people") == "others":
                self.report.cannot("private", "the statement says that the model is of other people; no file shows it")
            else:
                self.report.require(False, "private", "", wrong)
        else:
            why = self.stated("not_private_because") or self.stated("unknown_because") or []
            self.report.cannot("private", f"the statement promises nothing: {some(why)}")

    @cached_property
    def _exact(self) -> dict[float, Fraction]:
        """The exact epsilon of each float that a row may have."""
        told = [Fraction(0), fraction(self.stated("epsilon"))]
        chosen = (self.stated("varied") or {"chosen": []})["chosen"]
        told += [fraction(each["epsilon"]) for each in chosen if each["epsilon"] is not None]
        return {float(value): value for value in told}

    def _epsilon(self, row: Row) -> Fraction:
        """Exactly. Raises Unknown for one that the statement does not tell."""
        found = self._exact.get(self.file.number(row, "epsilon"))
        if found is None:
            raise Unknown("an epsilon that the statement does not tell")
        return found

    @cached_property
    def left_out(self) -> dict[str, int]:
        """Of each person how many steps before the last row have no row."""
        steps = {user: {row.step for row in rows} for user, rows in self.file.users.items()}
        return {user: max(own) - len(own) for user, own in steps.items()}

    @cached_property
    def earlier(self) -> int:
        """From how many answers of other files estimates follow, too, as the statement says."""
        told = self.stated("published.earlier_answers")
        return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else 0

    def other_files(self) -> None:
        told = self.stated("published.earlier_answers")
        if told is None:
            return
        estimated = any(name.startswith("estimate") for name in self.file.columns)
        room = sum(self.left_out.values()) if estimated else 0
        self.report.require(
            0 < self.earlier <= room,
            "other files",
            f"{self.earlier:,} earlier answers, at no more steps than the file leaves out",
            f"{told} earlier answers, and room for {room:,} between the rows",
        )

    def epsilons(self) -> None:
        exact = self._exact
        odd = [row.where for row in self.file.rows if self.file.number(row, "epsilon") not in exact]
        shown = ", ".join(sorted(str(value) for value in exact.values() if value))
        self.report.require(not odd, "epsilon", f"every answer has {shown}, or 0", f"another one: {some(odd)}")
        zero = sum(row.asked and self.file.number(row, "epsilon") == 0 for row in self.file.rows)
        told = self.stated("published.public_constants")
        self.report.require(zero == told, "epsilon", f"{zero} public constants, as stated", f"{zero}, stated {told}")

    def chosen_steps(self) -> None:
        """Steps for which something was chosen have it, and all others what the statement says."""
        varied = self.stated("varied")
        if varied is None:
            return
        given = [(*run, number) for number, one in enumerate(varied["chosen"]) for run in one["steps"]]
        used = {name for one in varied["chosen"] for name in one if name != "steps" and one[name] is not None}
        if not used <= {*varied["names"]} or any(type(number) is not int for run in given for number in run):
            self.report.add("wrong", "chosen steps", "something is chosen that does not vary, or steps are no numbers")
            return
        runs = sorted(given)
        apart = all(first <= last for first, last, _ in runs) and all(one[1] < two[0] for one, two in pairwise(runs))
        if not apart:
            self.report.add("wrong", "chosen steps", "runs of steps that overlap")
            return
        self._unseen(varied)
        seconds, begins = self.stated("model.step_seconds"), [first for first, _, _ in runs]
        if "t" not in self.file.columns or not seconds:
            raise Unknown("which rows are of the chosen steps is told by times, and rows have none")
        odd = []
        for row in self.file.rows:
            moment = self.file.moment(row)
            if moment is None:
                raise Unknown("some rows have no time")
            number = moment // (seconds * 10**6)
            run = bisect_right(begins, number) - 1
            inside = run >= 0 and number <= runs[run][1]
            other = self._not_due(row, varied["chosen"][runs[run][2]] if inside else {})
            odd += [f"{other} of {row.where}"] if other else []
        what = "epsilon" if self.plans is None else "epsilon and policy, by its hash,"
        figure = f"answers at the chosen steps have the {what} that was chosen, all others those of the statement"
        self.report.require(not odd, "chosen steps", figure, f"not what was chosen: {some(odd)}")

    def _unseen(self, varied: dict[str, Any]) -> None:
        """What is said of chosen steps and not compared; kind and parameters of a policy against its hash."""
        unseen = sorted({*varied["names"]} & {"partners", "protection"})
        if "policy" in varied["names"] and self.plans is None:
            unseen.append("policy (no --plans)")
        odd, same = [], 0
        for policy in (one["policy"] for one in varied["chosen"] if one.get("policy") is not None):
            try:
                right = self._hashed(policy)
                odd += [] if right else [f"{policy['kind']} of {policy['sha256'][:12]}"]
                same += right
            except Unknown:
                unseen.append(f"kind and parameters of policy {policy['sha256'][:12]}")
        if unseen:
            self.report.cannot("chosen steps", f"{some(unseen)}: `dphmm.audit.check_released` compares them")
        if odd or same:
            figure = f"{same} policies of steps have the hash of their kind and parameters"
            self.report.require(not odd, "chosen steps", figure, f"policies of another hash: {some(odd)}")

    @staticmethod
    def _hashed(policy: dict[str, Any]) -> bool:
        """Whether a policy that a statement describes has its hash. Raises Unknown where that is not computed here."""
        if policy["parameters"] is None:
            raise Unknown("parameters that are left out")
        return bool(policy_digest(policy["kind"], policy["parameters"]) == policy["sha256"])

    def _not_due(self, row: Row, chosen: dict[str, Any]) -> str:
        """What a row's answer was made with that is not what its step has; "" where it is."""
        epsilon = self._epsilon(row)
        if epsilon and epsilon != fraction(chosen.get("epsilon") or self.stated("epsilon")):
            return "another epsilon"
        plan = None if self.plans is None else self.plans.get(row.cells["plan"])
        if plan is None:
            return ""
        policy = (chosen.get("policy") or self.stated("policy"))["sha256"]
        if plan.shared["policy"] != policy:
            return "another policy"
        joined = any(chosen.get(name) is not None for name in ("partners", "protection"))
        return "other partners" if joined != ("joins" in plan.chosen.get("chosen", {})) else ""

    def sums(self) -> None:
        exact = self._exact
        count: dict[str, Fraction] = {}
        costs: dict[str, Fraction] = {}
        for user, rows in self.file.users.items():
            count[user] = sum((exact.get(self.file.number(row, "epsilon"), Fraction(0)) for row in rows), Fraction(0))
            floats = [self.file.number(row, "cost") for row in rows]
            bad = not all(0 <= value < math.inf for value in floats)
            if bad:
                self.report.add("wrong", "cost", f"a cost that is none, user {user!r}")
                return
            costs[user] = sum(map(Fraction, floats), Fraction(0))
        most = max(count.values())
        told = fraction(self.stated("totals.epsilon_sum"))
        wrong = f"stated {told}, and it is {most}"
        if self.earlier and told >= most:
            self.report.cannot("sum of epsilons", f"most of a person {most}, {told} with answers of other files")
        else:
            self.report.require(told == most, "sum of epsilons", f"most of a person {most}, as stated", wrong)
        largest, text = max(costs.values()), self.stated("totals.cost_sum")
        # Costs in a file are floats, those of the total fractions rounded up to 1e-9.
        slack = largest / 10**12 + len(self.file.rows) * Fraction(2, NANO)
        near = abs(fraction(text) - largest) <= slack
        if self.earlier and fraction(text) >= largest - slack:
            self.report.cannot("sum of costs", f"stated {text}, with answers of other files")
            return
        shown = in_text(largest)
        wrong = f"stated {text}, and it is {shown}"
        self.report.require(near, "sum of costs", f"most of a person {shown}, as stated (to 1e-9 a row)", wrong)

    def _block(self, told: dict[str, Any], row: Row) -> tuple[int, int]:
        """The number of the block of a row, and its place in it, from 0, in steps."""
        if told.get("steps") is not None:
            return 0, row.step - 1
        length = told.get("window") or told.get("per")
        if isinstance(length, int):
            return divmod(row.step - 1, length)
        length, ahead = clock(told)
        moment, seconds = self.file.moment(row), self.stated("model.step_seconds")
        if moment is None or not seconds:
            raise Unknown("blocks are of a time, and rows have no times")
        block, within = divmod(moment + ahead * 10**6, length * 10**6)
        return block, within // (seconds * 10**6)

    def promise(self) -> None:
        told = self.stated("sequence")
        if told is None:
            self.report.add("ok", "promise", "none over the sequence is stated: answers promise one by one")
            return
        lengths = [name for name in ("steps", "window", "per") if told.get(name) is not None]
        if len(lengths) != 1 or told["over"] != "paths":
            said = f"over {str(told['over'])[:40]}, with {' and '.join(lengths) or 'no length'}"
            self.report.add("wrong", "promise", f"{said}: a promise is over paths, and has one length")
            return
        total, worst = fraction(told["total"]), Fraction(0)
        for rows in self.file.users.values():
            spent = sorted((row.step, self._epsilon(row), row) for row in rows if row.asked)
            if told.get("window") is not None:
                steps = [t for t, _, _ in spent]
                added = [Fraction(0), *accumulate(e for _, e, _ in spent)]
                ends = [bisect_left(steps, t + told["window"]) for t in steps]
                sums = [added[end] - added[first] for first, end in enumerate(ends)]
            else:
                blocks: dict[int, Fraction] = defaultdict(Fraction)
                for _, e, row in spent:
                    blocks[self._block(told, row)[0]] += e
                sums = list(blocks.values())
            worst = max([worst, *map(Fraction, sums)])
            late = told.get("steps") is not None and spent and spent[-1][0] > told["steps"]
            if late:
                self.report.add("wrong", "promise", f"an answer after the last step: {spent[-1][2].where}")
                return
        over = f"{told['steps']} steps" if told.get("steps") else f"each {told.get('window') or told.get('per')}"
        self.report.require(
            worst <= total, "promise", f"{over}: most {worst} of {total}", f"{over}: {worst}, more than {total}"
        )

    def kept_promise(self) -> None:
        """The promise that is stated against that which the ledger keeps each person of the file to."""
        told = self.stated("sequence")
        if told is None:
            return
        if self.ledger is None:
            raise Unknown("whether people are kept to it over all files and queries: no --ledger")
        odd = []
        for user in self.file.users:
            kept = self.kept.get(user)
            if kept is None or kept.promise is None or kept.promise != self._in_steps(told, kept):
                odd.append(f"{user!r} to {in_words(kept and kept.promise)}")
        figure = f"the ledger keeps all {len(self.file.users):,} people to it, over all their queries and files"
        self.report.require(not odd, "promise", figure, f"the ledger keeps {some(odd)}")

    def _in_steps(self, told: dict[str, Any], kept: Kept) -> dict[str, Any] | None:
        """A stated promise as a ledger keeps it, in steps of one person; None where nothing says when these begin."""
        (name,) = (name for name in ("steps", "window", "per") if told.get(name) is not None)
        due: dict[str, Any] = {"total": str(fraction(told["total"])), name: told[name]}
        if name != "per":
            return due
        if type(told["per"]) is int:
            return {**due, "passed": 0}
        length, ahead = clock(told)
        seconds, begins = self.stated("model.step_seconds"), first_step(kept)
        if begins is None or not seconds or length % seconds or ahead % seconds:
            return None
        block = int(length // seconds)
        return {**due, "per": block, "passed": (begins + int(ahead // seconds)) % block}

    def couples(self) -> None:
        """That sums of epsilons bound what is told of one step is stated of models that couple alone."""
        sequence = self.stated("sequence")
        told = None if sequence is None else sequence.get("couples")
        if sequence is None or told == "unknown":
            return
        if told is not True:
            self.report.add("wrong", "couples", f"sequence.couples is {str(told)[:40]}: true or unknown")
            return
        if self.model is None or self.policy is None:
            raise Unknown("whether the model couples along the policy: no --model or no --policy")
        varied = {*(self.stated("varied") or {"names": ()})["names"]} - {"epsilon"}
        other = varied or self.stated("beginnings") is not None
        known = not other and self.policy.kind == "radius" and self.model.couples()
        wrong = "that the model couples is not known of this model, policy and release, and the statement says so"
        self.report.require(bool(known), "couples", "the model is of those that couple along a radius policy", wrong)

    def kept_schedule(self) -> None:
        """The schedule that is stated against that which the ledger has of each person."""
        told = self.stated("schedule")
        if told is None or self.ledger is None:
            return
        over = self.stated("sequence") or {}
        due = {name: over[name] for name in ("total", "steps", "window", "per") if over.get(name) is not None}
        due |= {"zone": over["zone"]} if isinstance(over.get("per"), str) else {}
        due |= {"schedule": told["name"], "epsilon": self.stated("epsilon"), "at": told["at"]}
        due |= {"spreads": told["spreads"]} if told["spreads"] else {}
        odd = [
            repr(user)
            for user in self.file.users
            if user not in self.kept or json.loads(self.kept[user].options.get("schedule", "null")) != due
        ]
        figure = "the ledger asks everybody by the one that is stated"
        self.report.require(not odd, "schedule", figure, f"the ledger asks by another one, or none: {some(odd)}")

    def schedule(self) -> None:
        told = self.stated("schedule")
        unasked = [row for row in self.file.rows if not row.asked]
        if told is None:
            wrong = f"{len(unasked)} rows without an answer, and no schedule"
            self.report.require(not unasked, "schedule", "every row has an answer", wrong)
            return
        if told["name"] not in ("planned", "paced"):
            self.report.add("wrong", "schedule", f"the statement says {str(told['name'])[:70]}: planned or paced")
            return
        named: set[int] = set()
        for part in told["at"].split(","):
            first, _, last = part.partition("-")
            named |= set(range(int(first), int(last or first) + 1))
        promise = self.stated("sequence") or {}
        odd = []
        for row in self.file.rows:
            may = self._block(promise, row)[1] + 1 in named
            if row.asked != may and (row.asked or told["name"] == "planned"):
                odd.append(row.where)
        most = max(Counter((row.user, self._block(promise, row)[0]) for row in self.file.rows if row.asked).values())
        room = told["releases"] * fraction(self.stated("epsilon")) <= fraction(promise["total"])
        figure = f"at most {most} answers of a person in a block, and room for {told['releases']}"
        self.report.require(most <= told["releases"] and room, "schedule", figure)
        figure = f"{told['name']}: answers at the steps that it names, {len(named)} of a block"
        self.report.require(not odd, "schedule", figure, f"asked, or not asked, other than it says: {some(odd)}")
        if told["name"] == "paced":
            self.report.cannot("schedule", "which of the named steps a paced schedule asks follows from beliefs")

    def times(self) -> None:
        if "t" not in self.file.columns:
            return
        seconds = self.stated("model.step_seconds")
        if not seconds:
            raise Unknown("times of a model without a time step are those of the data")
        odd = []
        for rows in self.file.users.values():
            first: int | None = None
            for row in rows:
                moment = self.file.moment(row)
                if moment is None:
                    raise Unknown("some rows have no time")
                begin = moment - row.step * seconds * 10**6
                first = begin if first is None else first
                if moment % (seconds * 10**6) or begin != first:
                    odd.append(row.where)
        figure = f"each the beginning of its {seconds} s, and as far apart as the steps"
        self.report.require(not odd, "times", figure, f"other ones: {some(odd)}")

    def of_model(self) -> None:
        if self.model is None:
            raise Unknown("no model: name it by --model")
        self.same("model", "model.sha256", self.model.digest)
        if self.stated("model.people_known_by") == "model":
            method = self.model.provenance.get("method")
            self.report.require(
                method == "geometry", "model", "made without data, as its file says", f"made by {method}"
            )
        self.same("model", "model.step_seconds", self.model.step)
        self.same("model", "model.method", str(self.model.provenance.get("method", "unknown")))
        private = self.model.provenance.get("private")
        self.same("model", "model.private", private if isinstance(private, bool) else None)
        for name, due in (("kind", self.model.space["kind"]), ("dimension", self.model.dimension)):
            self.same("states", f"space.{name}", due)
        self.same("states", "space.pitch", self.model.space["pitch"])
        self.same("states", "space.states", self.model.n)
        self.same("states", "space.sha256", self.model.space_digest())

    def of_policy(self) -> None:
        if self.policy is None:
            raise Unknown("no policy: name it by --policy")
        self.same("policy", "policy.kind", self.policy.kind)
        if self.policy.kind in ("radius", "complete"):
            self.same("policy", "policy.parameters", self.policy.parameters)
        if self.policy.kind in ("radius", "complete", "edges"):
            self.same("policy", "policy.sha256", self.policy.digest)
            return
        raise Unknown(f"the hash of a {self.policy.kind} policy is not computed here")

    def _lattice(self, row: Row) -> Point | None:
        """The lattice point of an answer; None where it is on none."""
        assert self.model is not None
        if self.model.space["kind"] == "labels":
            name = row.cells.get("z", "")
            return self.model.own[self.model.names.index(name)] if name in self.model.names else None
        found = []
        for j, (origin, pitch) in enumerate(zip(self.model.space["origin"], self.model.space["pitch"], strict=True)):
            z = self.file.number(row, f"z_{j}")
            if not math.isfinite(z):
                return None
            k = round((Fraction(z) - Fraction(origin)) / Fraction(pitch))
            if origin + k * pitch != z:
                return None
            found.append(k)
        return tuple(found)

    def answers(self) -> None:
        names = [name for name in self.file.columns if name == "z" or name.startswith("z_")]
        odd = [row.where for row in self.file.rows if any((row.cells[name] == "") == row.asked for name in names)]
        if not self.report.require(
            not odd, "answers", "an answer where there is a plan, and nowhere else", f"not so: {some(odd)}"
        ):
            return
        if self.model is None:
            raise Unknown("whether answers are on the lattice: no --model")
        odd = [row.where for row in self.file.rows if row.asked and self._lattice(row) is None]
        kind = "one of the labels" if self.model.space["kind"] == "labels" else "on the lattice, to the last digit"
        self.report.require(not odd, "answers", f"every one is {kind}", f"not {kind}: {some(odd)}")

    def places(self) -> None:
        if self.stated("space.kind") not in MAPS:
            return
        if self.model is None:
            raise Unknown("degrees of the answers: no --model")
        odd = []
        for row in self.file.rows:
            for name in ("z", "estimate"):
                if f"{name}_lat" not in row.cells or (name == "z" and not row.asked):
                    continue
                numbers = [self.file.number(row, f"{name}_{axis}") for axis in ("0", "1", "lat", "lon")]
                lat, lon = self.model.degrees(*numbers[:2])
                if not (abs(lat - numbers[2]) <= DEGREES and abs(lon - numbers[3]) <= DEGREES):
                    odd.append(row.where)
        figure = f"degrees are those of the metres, to {DEGREES:g}"
        self.report.require(not odd, "places", figure, f"they are others: {some(odd)}")

    def of_plans(self) -> None:
        named = sorted({row.cells["plan"] for row in self.file.rows} - {""})
        if self.plans is None:
            raise Unknown("no plans, so losses of the answers are not computed: name them by --plans")
        missing = [name for name in named if name not in self.plans]
        if missing:
            self.report.cannot("plans", f"{len(missing)} of {len(named)} plans are not in the file of plans")
        held = [self.plans[name] for name in named if name in self.plans]
        odd = [plan.hash[:12] for plan in held if plan.made != plan.hash]
        figure = f"{len(held)} of {len(named)}: the hash in the rows is that of the plan's parts"
        if not self.report.require(not odd, "plans", figure, f"parts of another hash: {some(odd)}"):
            return
        self._inputs(held)
        known, notes = [], set[str]()
        for plan in held:
            try:
                plan.check_known()
                known.append(plan)
            except Unknown as error:
                notes.add(str(error))
        if notes:
            self.report.cannot("losses", f"of {len(held) - len(known)} plans: {some(sorted(notes))}")
        by_hash = {plan.hash: plan for plan in held}
        self._mechanisms(by_hash)
        self._of_rows(by_hash)
        if self.model is None or self.policy is None:
            raise Unknown("whether the bodies hide what they must: no --model or no --policy")
        if known:
            self._support(by_hash)
            chosen = "policy" in (self.stated("varied") or {"names": ()})["names"]
            own = [plan for plan in known if not chosen or plan.shared["policy"] == self.policy.digest]
            if len(own) < len(known):
                self.report.cannot("losses", f"{len(known) - len(own):,} plans are of policies of their own")
            if own:
                self._losses(own)

    def _inputs(self, held: list[Plan]) -> None:
        """What the plans say that they were made for, against the statement."""
        due = {
            "space": self.stated("space.sha256"),
            "policy": self.stated("policy.sha256"),
            "constraint": self.stated("constraint.name"),
            "mechanism": self.stated("mechanism.asked"),
            "protection": self.stated("mechanism.protection"),
            "start": self.stated("mechanism.start"),
        }
        varied = set((self.stated("varied") or {"names": []})["names"])
        odd = []
        for plan in held:
            told = {**plan.shared["options"], **{name: plan.shared[name] for name in ("space", "policy")}}
            odd += [
                f"{name} of {plan.hash[:12]}"
                for name, value in due.items()
                if told[name] != value and name not in varied
            ]
            exact = self._exact.values()
            odd += [f"epsilon of {plan.hash[:12]}"] * (Fraction(told["epsilon"]) not in exact)
            odd += [f"law of {plan.hash[:12]}"] * (plan.epsilon != Fraction(told["epsilon"]))
        figure = "states, policy, epsilon and options are those of the statement"
        self.report.require(not odd, "plans", figure, f"not those of the statement: {some(odd)}")

    def _mechanisms(self, plans: dict[str, Plan]) -> None:
        """How many rows each mechanism answered."""
        asked = [row.cells["plan"] for row in self.file.rows if row.asked]
        if all(plan in plans for plan in asked):
            self.same("answers", "mechanism.chosen", dict(sorted(Counter(plans[plan].name for plan in asked).items())))

    def _of_rows(self, plans: dict[str, Plan]) -> None:
        """Epsilon and cost of each row, and exact sums of costs, by its plan."""
        odd, sums = [], dict[str, Fraction]()
        complete = True
        for row in self.file.rows:
            plan = plans.get(row.cells["plan"])
            if plan is None:
                complete = complete and not row.asked
                continue
            epsilon = Fraction(0) if plan.constant else plan.epsilon
            told = self.file.number(row, "epsilon"), self.file.number(row, "cost")
            cost = float(plan.cost)
            if Fraction(cost) < plan.cost:
                cost = math.nextafter(cost, math.inf)
            if told != (float(epsilon), cost):
                odd.append(row.where)
            sums[row.user] = sums.get(row.user, Fraction(0)) + Fraction(math.ceil(plan.cost * NANO), NANO)
        figure = "epsilon and cost of every answer are those of its plan"
        self.report.require(not odd, "losses", figure, f"they are others: {some(odd)}")
        if complete and sums:
            most, told = max(sums.values()), fraction(self.stated("totals.cost_sum"))
            shown = in_text(most)
            if self.earlier and told >= most:
                return
            self.report.require(
                told == most, "sum of costs", f"exactly {shown} by the plans", f"stated {in_text(told)}, not {shown}"
            )

    def _support(self, plans: dict[str, Plan]) -> None:
        """The states that a plan says are possible are those that the model leaves possible."""
        assert self.model is not None
        if self.stated("beginnings") is not None:
            self.report.cannot("possible states", "people begin elsewhere than the model says")
            return
        odd, seen = [], set[tuple[str, int]]()
        for row in self.file.rows:
            plan = plans.get(row.cells["plan"])
            if plan is None or (plan.hash, row.step) in seen:
                continue
            seen.add((plan.hash, row.step))
            if plan.support != self.model.support_at(row.step):
                odd.append(row.where)
        sizes = [len(plan.support) for plan in plans.values()]
        figure = f"{min(sizes):,} to {max(sizes):,}, those that the model can reach at each step"
        self.report.require(not odd, "possible states", figure, f"others than the model can reach: {some(odd)}")
        whole = all(plan.plan_set == plan.support for plan in plans.values())
        if self.stated("constraint.name") == "support":
            self.report.require(whole, "possible states", "each is planned for", "some are not planned for")
        else:
            self.report.cannot("planned states", "which states a delta-set holds follows from beliefs")

    def _losses(self, plans: list[Plan]) -> None:
        """Every pair that must be hidden loses at most epsilon; no two planned states lose more than the cost."""
        assert self.model is not None and self.policy is not None
        lattice = self.model.lattice
        edges = list(self.policy.edges(self.model))
        if len(edges) * len(plans) > MOST_PAIRS:
            self.report.cannot("losses", f"{len(edges):,} edges for {len(plans):,} plans: more than {MOST_PAIRS:,}")
            return
        pairs, worst, odd, alone_ = 0, Fraction(0), list[str](), 0
        dearest, cheap = Fraction(0), list[str]()
        for plan in plans:
            image = [lattice[s] for s in plan.answered_as]
            planned = sorted(plan.plan_set - set(plan.merged))
            if any(plan.answered_as[s] not in plan.plan_set for s in plan.support):
                odd.append(f"a state of {plan.hash[:12]} is answered as one that is not planned")
            if any(plan.answered_as[s] != s for s in planned):
                odd.append(f"a planned state of {plan.hash[:12]} is answered as another")
            norms: dict[Point, Fraction] = {}
            joined = set[int]()

            def loss(a: int, b: int, plan: Plan = plan, norms: Any = norms, image: Any = image) -> Fraction | float:
                v = tuple(x - y for x, y in zip(image[a], image[b], strict=True))
                if plan.constant:
                    return math.inf if any(v) else Fraction(0)
                v = max(v, tuple(-x for x in v))
                if v not in norms:
                    norms[v] = plan.norm(v)
                return plan.loss_of_norm(norms[v])

            for a, b in [*edges, *plan.given]:
                if a not in plan.support or b not in plan.support:
                    continue
                pairs += 1
                joined |= (
                    {plan.answered_as[a], plan.answered_as[b]} if plan.answered_as[a] != plan.answered_as[b] else set()
                )
                lost = loss(a, b)
                worst = max(worst, lost)
                if lost > plan.epsilon:
                    odd.append(f"states {a} and {b} lose {in_text(lost)} under {plan.hash[:12]}")
            partners = {int(a): int(b) for a, b in plan.chosen["partners"]}
            for s in [] if plan.constant else sorted(plan.plan_set - joined):
                alone_ += 1
                other = partners.get(s)
                if other is None or other == s or other not in plan.support or loss(s, other) > plan.epsilon:
                    odd.append(f"state {s} hides behind nobody under {plan.hash[:12]}")
            cost = Fraction(0) if plan.constant else plan.loss_of_norm(plan.widest([image[s] for s in planned]))
            dearest = max(dearest, cost)
            if cost != plan.cost:
                cheap.append(f"{plan.hash[:12]} says {in_text(plan.cost)}, and it is {in_text(cost)}")
        figure = f"{pairs:,} pairs joined by the policy lose at most {in_text(worst)}, by the facets of the bodies"
        if alone_:
            figure += f"; {alone_:,} states without such a pair have a partner"
        self.report.require(not odd, "losses", figure, some(odd))
        figure = f"any two planned states lose at most {in_text(dearest)}, the cost"
        self.report.require(not cheap, "losses", figure, f"another cost: {some(cheap)}")

    def _read(self, *queries: str) -> list[list[Any]]:
        """Rows of the ledger, of one moment. Raises Unknown where it is none."""
        assert self.ledger is not None
        try:
            with sqlite3.connect(f"{self.ledger.resolve().as_uri()}?mode=ro", uri=True) as opened:
                opened.execute("BEGIN")
                found = [opened.execute(query).fetchall() for query in queries]
                opened.rollback()
                return found
        except sqlite3.Error as error:
            raise Unknown(f"{self.ledger} cannot be read as a ledger of format 2 ({error})") from None

    @cached_property
    def kept(self) -> dict[str, Kept]:
        """What the ledger keeps of everybody who was asked the query of the statement."""
        query = self.stated("query")
        (rows,) = self._read(
            "SELECT a.subject, s.query, p.text, o.text FROM account a JOIN session s ON s.account = a.id "
            "JOIN document o ON o.id = s.options LEFT JOIN document p ON p.id = a.promise"
        )
        texts = {user: told for user, own, *told in rows if own == query}
        return {user: Kept(*(text and json.loads(text) for text in told)) for user, told in texts.items()}

    def _of_file(self) -> list[Kept]:
        """What the ledger keeps of the people of the file."""
        return [self.kept[user] for user in self.file.users if user in self.kept]

    def kept_options(self) -> None:
        """Which of several rows was answered, and when people begin, as the ledger says."""
        if self.ledger is None:
            return
        rule = self.stated("answer.name")
        answered = {kept.options["answer"] for kept in self._of_file() if "answer" in kept.options}
        if rule is not None:
            figure = f"answer.name {str(rule)[:40]}, and in the ledger {some(sorted(answered)) or 'nothing'}"
            self.report.require(answered <= {rule}, "ledger", figure)
        seconds = self.stated("model.step_seconds")
        if not seconds:
            return
        odd, seen = [], 0
        for user, rows in self.file.users.items():
            moment, kept = self.file.moment(rows[0]), self.kept.get(user)
            begins = None if kept is None else first_step(kept)
            if moment is None or begins is None:
                continue
            seen += 1
            if moment // (seconds * 10**6) - rows[0].step + 1 != begins:
                odd.append(repr(user))
        if seen:
            figure = f"steps of {seen:,} people begin when the times of their rows say"
            self.report.require(not odd, "ledger", figure, f"steps begin at other times: {some(odd)}")

    def learning(self) -> None:
        """What learning the model lost, as far as the model's file tells."""
        told = self.stated("learning")
        if told is None:
            return
        if self.model is not None and self.model.provenance.get("privacy") is None:
            self.report.add("wrong", "learning", "the model's file has no record of it")
            return
        self.report.cannot(
            "learning", "what learning the model lost: `dphmm audit` compares it with the model's record"
        )

    def of_ledger(self) -> None:
        if self.ledger is None:
            raise Unknown("no ledger, so rows may be there that were never paid for: name it by --ledger")
        if self.model is None:
            raise Unknown("answers in the ledger are lattice points: no --model")
        query = self.stated("query")
        told, accounts = self._read(
            "SELECT a.subject, s.query, r.t, r.steps, r.z, p.hash, t.epsilon, t.cost, t.secure FROM release r "
            "JOIN session s ON s.id = r.session JOIN account a ON a.id = s.account "
            "JOIN terms t ON t.id = r.terms LEFT JOIN plan p ON p.id = r.plan",
            "SELECT subject, epsilon, cost_nanos, cap_epsilon, cap_cost FROM account",
        )
        stored = {
            (user, t + steps - 1): (z, plan, secure)
            for user, own, t, steps, z, plan, _, _, secure in told
            if own == query
        }
        odd, replayable = [], 0
        for row in self.file.rows:
            found = stored.get((row.user, row.step))
            point = self._lattice(row) if row.asked else None
            due = None if point is None else ",".join(map(str, point)), row.cells["plan"]
            if found is None or (found[0], found[1].hex() if found[1] else "") != due:
                odd.append(row.where)
            elif row.asked:
                replayable += not found[2]
        shown = len(self.file.rows)
        self.report.require(not odd, "ledger", f"{shown:,} rows with the same answer and plan", f"not so: {some(odd)}")
        if replayable:
            self.report.add(
                "wrong", "ledger", f"{replayable:,} answers drawn from replayable bits, which promise nothing"
            )
        else:
            self.report.add("ok", "ledger", "it says that all noise was the operating system's")
        self._accounts(told, accounts)

    def _accounts(self, told: list[Any], accounts: list[Any]) -> None:
        """Each account is the sum of its releases, over all queries, and within its caps."""
        sums: dict[str, list[Any]] = defaultdict(lambda: [Fraction(0), 0])
        for user, _, _, _, z, _, epsilon, cost, _ in told:
            if z is None:
                continue
            own = sums[user]
            own[0] += Fraction(epsilon)
            own[1] += math.ceil(Fraction(cost) * NANO)
        odd, over, most = [], [], Fraction(0)
        for user, epsilon, nanos, cap_epsilon, cap_cost in accounts:
            if user not in self.file.users:
                continue
            own = sums[user]
            most = max(most, own[0])
            if (Fraction(epsilon), int(nanos)) != tuple(own):
                odd.append(repr(user))
            passed = cap_epsilon is not None and own[0] > Fraction(cap_epsilon)
            passed = passed or (cap_cost is not None and Fraction(own[1], NANO) > Fraction(cap_cost))
            over += [repr(user)] * bool(passed)
        figure = f"each account is the sum of its releases; most epsilon {most}"
        self.report.require(not odd, "account", figure, f"other sums: {some(odd)}")
        self.report.require(not over, "account", "none is above its caps", f"above its caps: {some(over)}")

    def estimates(self) -> None:
        if not any(name.startswith("estimate") for name in self.file.columns):
            return
        if self.model is None or self.plans is None:
            raise Unknown("estimates follow from model and plans: name --model and --plans")
        if self.stated("beginnings") is not None:
            raise Unknown("beliefs of people who begin elsewhere are not computed here")
        steps = sum(max(row.step for row in rows) for rows in self.file.users.values())
        work = steps * (len(self.model.data) + self.model.n)
        if work > MOST_PRODUCTS:
            raise Unknown(
                f"{work:,} products for the beliefs, more than {MOST_PRODUCTS:,}: `dphmm audit` computes them"
            )
        for plan in {
            self.plans[row.cells["plan"]].hash: self.plans[row.cells["plan"]]
            for row in self.file.rows
            if row.asked and row.cells["plan"] in self.plans
        }.values():
            plan.check_known()
        unknown = {user for user in self.file.users if self.earlier and self.left_out[user]}
        odd = [
            row.where
            for user, rows in self.file.users.items()
            if user not in unknown
            for row in self._other_estimates(sorted(rows, key=lambda r: r.step))
        ]
        if unknown:
            self.report.cannot("estimates", f"those of {len(unknown):,} people follow from answers of other files, too")
        if len(unknown) == len(self.file.users):
            return
        figure = f"they follow from the answers, to {RELATIVE:g} of the largest answer (beliefs in floats)"
        self.report.require(not odd, "estimates", figure, f"they do not follow: {some(odd)}")

    def _other_estimates(self, rows: list[Row]) -> Iterator[Row]:
        """The rows of one person whose estimates are not those of the public belief."""
        model, plans = self.model, self.plans
        assert model is not None and plans is not None
        belief, t = list(model.initial), 1
        if model.start == "before":
            belief = model.predicted(belief)
        lattice = model.lattice
        places = [model.place(point) for point in model.own]
        scale = max(abs(x) for place in places for x in place) + 1
        index = {name: s for s, name in enumerate(model.names)}
        for row in rows:
            for _ in range(row.step - t):
                belief = model.predicted(belief)
            t = row.step
            if row.asked:
                plan, z = plans.get(row.cells["plan"]), self._lattice(row)
                if plan is None or z is None:
                    raise Unknown(f"the belief after {row.where}")
                belief = self._given(belief, plan, [lattice[s] for s in plan.answered_as], z)
            state = index.get(row.cells["estimate"], -1)
            right = state >= 0 and belief[state] >= max(belief) - RELATIVE
            if model.space["kind"] == "labels":
                right = right and abs(self.file.number(row, "confidence") - max(belief)) <= RELATIVE
            else:
                for j in range(model.dimension):
                    mean = math.fsum(p * place[j] for p, place in zip(belief, places, strict=True))
                    right = right and abs(self.file.number(row, f"estimate_{j}") - mean) <= RELATIVE * scale
            if not right:
                yield row

    @staticmethod
    def _given(belief: list[float], plan: Plan, image: list[Point], z: Point) -> list[float]:
        """A belief given an answer."""
        if plan.constant:
            return belief
        known: dict[Point, float] = {}
        logs = []
        for p, point in zip(belief, image, strict=True):
            if point not in known:
                known[point] = -plan.exponent([x - y for x, y in zip(z, point, strict=True)])
            logs.append(known[point] + math.log(p) if p > 0 else -math.inf)
        top = max(logs)
        weights = [math.exp(value - top) for value in logs]
        total = math.fsum(weights)
        return [weight / total for weight in weights]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="verify_release.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("released", help="the released file: .csv, .csv.gz, .jsonl or .ndjson")
    parser.add_argument("--statement", help="its privacy statement, if not beside it")
    parser.add_argument("--model", help="the public model, model.npz")
    parser.add_argument("--policy", help="the public policy, policy.json")
    parser.add_argument("--plans", help="the plans, as `dphmm audit ... --plans FILE` writes them")
    parser.add_argument("--ledger", help="the ledger, ledger.db, which its owner has")
    try:
        report = Checker(parser.parse_args(arguments)).run()
    except Unreadable as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 2
    for word, check, figure in report.lines:
        print(f"{word:<11}  {check}: {figure}")
    print(NOT_CHECKED)
    return report.code


if __name__ == "__main__":
    raise SystemExit(main())
