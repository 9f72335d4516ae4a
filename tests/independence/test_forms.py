"""Whether a row belongs to a model is decided by columns and the form of its names, never by where somebody is.

Claim, for every kind of states and every reader (CSV, Parquet, JSON lines). Names of the right form, of states or of
none, are released alike: with the same answers the exit code, all messages and every published byte are the same. A
name that cannot be a state's is set aside by its line and a reason code, like an unreadable time (exit 3). A table of
nothing else, or without the columns that the states need, is refused (exit 2): no ledger, no output, no row. A text is
a cell of H3 where the h3 package says so, though that is not asked. It would fail for a drift that is set aside, a file
of labels that is released as rows of a map, and a refusal that comes after the ledger was made.
"""

from __future__ import annotations

import json

import h3
import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from independence import commands
from independence.commands import GRID, HEXES, PAGES, TIMES, places, release_arguments, shown_by
from independence.test_bytes import differing, given_answers

#: Commands and files draw here: each test replays words of its own.
pytestmark = pytest.mark.replayed_words

ELSEWHERE = [h3.latlng_to_cell(lat, lon, 8) for lat, lon in ((0.0, 0.0), (-33.9, 151.2), (90.0, 0.0))]
#: Of every kind of states: names that can be a state's, of states and of none, and texts that cannot.
WELL = {
    "town": [*GRID.names[::4], "x99y0", "x0y7", "x12345678901234567890y0"],
    "site": commands.NAMES,
    "hive": [*HEXES.names[::3], *ELSEWHERE, h3.get_pentagons(8)[0]],
}
ILL = {
    "town": ["home", "0", "x01y0", "x1", "x1y", "y0x1", "X1Y1", "x-1y0", "x1y0 ", " x1y0", "x1.0y0", "x١y0", "a" * 200],
    "hive": [
        "home", "x1y0", "8" * 15, HEXES.names[0].upper(), f"{HEXES.names[0]}f", f"0{HEXES.names[0]}",
        f"0x{HEXES.names[0]}", h3.cell_to_parent(HEXES.names[0], 7), h3.cell_to_center_child(HEXES.names[0], 9),
        h3.get_res0_cells()[0],
    ],
}  # fmt: skip
#: What no reader takes for a name.
NO_NAME = ["", "a\u202eb", "x" * 201, "\x07"]
READERS = ("rows.csv", "rows.parquet", "-")


def rows_of(kind, names):
    """Rows of one person, one a step, as CSV and as JSON lines."""
    times = [f"2024-05-06T{8 + k // 12:02d}:{5 * (k % 12):02d}:10Z" for k in range(len(names))]
    timed = kind == "town"
    header = "user,t,state" if timed else "user,state"
    cells = [f"ann,{t},{name}" if timed else f"ann,{name}" for t, name in zip(times, names, strict=True)]
    lines = [
        json.dumps({"user": "ann", "state": name} | ({"t": t} if timed else {"step": step}))
        for step, (t, name) in enumerate(zip(times, names, strict=True))
    ]
    return "\n".join([header, *cells, ""]), "\n".join([*lines, ""])


@pytest.fixture
def shown(tmp_path_factory):
    """All that a release of names shows."""

    def show(kind, reader, names, *more):
        text, lines = rows_of(kind, names)
        arguments = release_arguments(kind, "-" if reader == "-" else "out.csv", *more)
        arguments[1] = reader
        found = shown_by(tmp_path_factory.mktemp(kind), text, arguments, lines if reader == "-" else None)
        del found["heard logged"]
        return found

    return show


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", WELL)
def test_every_name_of_the_right_form_is_released_alike(shown, kind, reader):
    first, dimension = WELL[kind][0], {"site": 1}.get(kind, 2)
    runs = []
    for name in WELL[kind]:
        with given_answers(dimension):
            runs.append(shown(kind, reader, [name, first, name]))
    assert differing(runs) == set()
    assert runs[0]["exit"] == 0
    published = runs[0]["stdout"] if reader == "-" else runs[0]["released.csv"].decode().partition("\n")[2]
    assert published.count("\n") == 3


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", WELL)
def test_a_name_that_cannot_be_is_set_aside_like_any_syntax_error(shown, kind, reader):
    well, ill = WELL[kind], ILL.get(kind, [])
    no_name = [name for name in NO_NAME if reader == "-" or name]
    names = [well[0], *ill, well[-1], *no_name]
    run = shown(kind, reader, names, "--quiet")
    expected = ["invalid_state"] * len(ill) + ["missing_state"] * len(no_name)
    at = [*range(2, 2 + len(ill)), *range(3 + len(ill), 3 + len(ill) + len(no_name))]
    assert run["exit"] == 3
    if reader == "-":
        told = [line for line in run["stderr"].splitlines() if line.startswith("line ")]
        assert told == [f"line {line}: {reason}" for line, reason in zip(at, expected, strict=True)]
        assert run["stdout"].count("\n") == 2
    else:
        word, shift = ("line", 1) if reader == "rows.csv" else ("row", 0)
        listed = [f"{line + shift},{reason}" for line, reason in zip(at, expected, strict=True)]
        assert run["rejected.csv"].decode().splitlines() == [f"{word},reason", *listed]
        assert run["released.csv"].decode().count("\n") == 3
    for name in ill:
        assert len(name) < 4 or name not in run["stderr"] + run["stdout"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", WELL)
def test_nothing_but_what_cannot_be_is_refused_before_anything_is_spent(shown, kind, reader):
    names = [*ILL.get(kind, []), *NO_NAME[1:]]
    runs = [shown(kind, reader, names), shown(kind, reader, names[::-1])]
    for run in runs:
        assert run["exit"] == 2
        assert run["names"] == {} and run["for the owner"] == {} and run["stdout"] == ""
    if reader != "-":
        assert runs[0]["stderr"] == runs[1]["stderr"]
    error = runs[0]["stderr"].splitlines()[-1]
    assert error.startswith("error: ") and f"{len(names)}" in error


def test_a_table_without_the_columns_that_states_need_is_refused(tmp_path_factory):
    """Places for pages, and neither places nor names of cells for maps; the same whatever the values are."""
    for kind, header, values in (
        ("site", "user,lat,lon", [f"ann,{lat},{lon}" for lat, lon in places()[::5]]),
        ("town", "user,t,page", [f"ann,{TIMES[0]},{name}" for name in ("x0y0", "home")]),
        ("hive", "user,lat", ["ann,50.0", "ann,0.0"]),
    ):
        told = set()
        for value in values:
            folder = tmp_path_factory.mktemp(kind)
            run = shown_by(folder, f"{header}\n{value}\n", release_arguments(kind, "out.csv"))
            assert (run["exit"], run["names"], run["for the owner"]) == (2, {}, {})
            told.add(run["stderr"])
        assert len(told) == 1


def test_on_a_map_places_count_before_names_and_elsewhere_names_do(tmp_path_factory):
    """What is in the column that does not count cannot set a row aside."""
    for kind, rows in (
        ("town", [f"ann,{TIMES[0]},50.01,10.01,{name}" for name in ("x0y0", "home", "", "x9y9")]),
        ("site", [f"ann,{TIMES[0]},{lat},10.01,home" for lat in (50.01, "", "north", 999)]),
    ):
        runs = []
        for row in rows:
            with given_answers({"site": 1}.get(kind, 2)):
                arguments = release_arguments(kind, "out.csv")
                runs.append(shown_by(tmp_path_factory.mktemp(kind), f"user,t,lat,lon,state\n{row}\n", arguments))
            del runs[-1]["heard logged"]
        assert differing(runs) == set() and runs[0]["exit"] == 0


class TestTables:
    """The library decides as the commands do."""

    @staticmethod
    def released(kind, names):
        import pandas as pd

        space = {"town": GRID, "site": PAGES, "hive": HEXES}[kind]
        ledger = dphmm.accounting.MemoryLedger()
        table = pd.DataFrame({"user": "ann", "state": names})
        given = (commands.narrow(space.n_states, space=space), dphmm.policy.complete(space.n_states), space, 1)
        try:
            return len(dphmm.release_many(table, *given, ledger=ledger, progress=False)), len(ledger.sessions())
        except InvalidInput as error:
            assert not any(name in str(error) for name in names if len(name) > 3)
            return "refused", len(ledger.sessions())

    @pytest.mark.parametrize("kind", WELL)
    def test_a_table_is_released_or_refused_by_form(self, kind):
        for name in WELL[kind]:
            assert self.released(kind, [name, WELL[kind][0]]) == (2, 1)
        for name in ILL.get(kind, []):
            assert self.released(kind, [name, WELL[kind][0]]) == ("refused", 0)


def test_a_cell_of_h3_is_what_the_package_calls_one():
    """Indexes near to real ones, pentagons among them: each bit changed in turn."""
    rng = np.random.default_rng(3)
    tried = 0
    for resolution in (0, 1, 8, 15):
        space = dphmm.states.H3.covering([0.0], [0.0], resolution)
        cells = [h3.latlng_to_cell(*place, resolution) for place in rng.uniform(-89, 89, (20, 2)).tolist()]
        cells += h3.get_pentagons(resolution)
        for cell in cells:
            assert space.well_formed(cell)
            for bit in range(64):
                name = f"{int(cell, 16) ^ (1 << bit):x}"
                valid = h3.is_valid_cell(name) and h3.get_resolution(name) == resolution
                assert space.well_formed(name) == valid, name
                tried += valid
    assert tried > 500
