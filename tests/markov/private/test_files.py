"""What a private fit counts of neighbouring files differs by no more than the sensitivity that its noise is made for.

By enumeration of small files: the lines of one person, good or odd, in every way between those of the others, through
the functions that `import` reads with and `fit --epsilon` counts with. The arrays of `test_sensitivity.py` are made of
sequences that have owners already; here the files decide which sequences there are, whose, and which comes first.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

from dphmm.cli.app import app
from dphmm.cli.fit_data import records_of, times
from dphmm.markov.private import planned, sensitivity
from dphmm.markov.private.ngrams import count_ngrams
from dphmm.markov.private.planned import masked
from dphmm.markov.private.sensitivity import RecordBounds, kept_records
from dphmm.markov.private.transition_counts import counts_of
from dphmm.states import Grid, StateSpace
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.trajectories import save_trajectories
from neighbouring_files import placed, text

#: Commands and files draw here: each test replays words of its own.
pytestmark = pytest.mark.replayed_words

NAMES = StateSpace.categories(["a", "b"])
GRID = Grid.from_bounds(10.0, 50.0, 10.029, 50.009, cell=1000.0)
GIVEN: dict[str, Any] = {
    "step": None,
    "gap": None,
    "max_speed": None,
    "state_column": None,
    "max_length": 100,
    "spelling": None,
    "ledger": None,
}
CAPS = [RecordBounds(2), RecordBounds(3), RecordBounds(2, 2), RecordBounds(3, 2)]


def counted(folder, data, given, space, shortest=1):
    """The vectors that get noise, by what they are and their caps, of a file as `fit --epsilon` reads it."""
    (folder / "fit.csv").write_bytes(data)
    chosen = {**GIVEN, **given}
    column = chosen["state_column"]
    records, _ = records_of(folder / "fit.csv", chosen, space, times(chosen), column, shortest)
    every = sparse.csr_array(np.ones((space.n_states, space.n_states)))
    found = {}
    for caps in CAPS:
        kept = kept_records(records.sequences, space.n_states, caps, records.owners)
        counts = counts_of(kept, space.n_states, caps, "owner")
        found["transitions", caps] = masked(counts, every, False)
        found["starts", caps] = masked(counts, every, True)
        found["words", caps] = count_ngrams(kept, space.n_states, 2)
    return found


def most(kind, caps):
    blocks = sensitivity.ngrams(caps, 2) if kind == "words" else sensitivity.transitions(caps, first=kind == "starts")
    return int(sensitivity.l1(blocks, caps))


def largest(folder, header, others, added, read):
    """The largest L1 difference of each vector between the others' file and those with lines of one more person."""
    alone = read(text(header, others))
    differences = dict.fromkeys(alone, 0)
    for lines in added:
        for neighbour in placed(others, lines):
            for key, vector in read(text(header, neighbour)).items():
                differences[key] = max(differences[key], int(np.abs(vector - alone[key]).sum()))
    return differences


def lines_of(good, odd, longest):
    """Every sequence of good lines up to a length, and each odd one before and after a good one."""
    plain = [lines for n in range(1, longest + 1) for lines in itertools.product(good, repeat=n)]
    return [*plain, *((line, good[0]) for line in odd), *((good[0], line) for line in odd)]


ODD = (b"x", b"x,b,a,x,x,x", b"\xff,\xfe", b" ", b"x\0,b", b",b", b"x,")
FILES = {
    "rows in the order of the file": (
        b"user,state",
        (b"u,a", b"v,b", b"u,b", b"v,b"),
        lines_of((b"x,a", b"x,b"), (*ODD, b"x,nowhere", b"y\x01,b"), 3),
        {"state_column": "state"},
        NAMES,
    ),
    "trips": (
        b"user,trip,state",
        (b"u,7,a", b"u,7,b", b"v,2,b", b"v,1,b"),
        lines_of((b"x,1,a", b"x,2,b", b"x,home,b"), (*ODD, b"x,,b", b"x,03,b", b"x,99999999999,a"), 2),
        {"state_column": "state"},
        NAMES,
    ),
    "times in steps": (
        b"user,t,state",
        (b"u,2024-05-06T08:05:00Z,a", b"u,2024-05-06T08:00:00Z,b", b"v,2024-05-06T08:00:00Z,b"),
        lines_of(
            (b"x,2024-05-06T08:00:00Z,a", b"x,2024-05-06T08:05:00Z,b", b"x,2024-05-06T08:15:00Z,a"),
            (*ODD, b"x,2024-05-06T08:05:00,b", b"x,never,b", b"x,2024-02-30T08:05:00Z,a", b"x,2024-05-06 08:05Z,"),
            2,
        ),
        {"state_column": "state", "step": "5min", "gap": "10min"},
        NAMES,
    ),
    "steps beside times": (
        b"user,t,step,state",
        (b"u,2024-05-06T08:05:00Z,5716609,a", b"u,2024-05-06T08:00:00Z,5716608,b", b"v,2024-05-06T08:00:00Z,5716608,b"),
        lines_of(
            (b"x,2024-05-06T08:00:00Z,5716608,a", b"x,2024-05-06T08:05:00Z,5716609,b"),
            (*ODD, b"x,2024-05-06T08:05:00Z,1,b", b"x,2024-05-06T08:05:00Z,,b", b"x,2024-05-06T08:05:00Z,+5716609,a"),
            2,
        ),
        {"state_column": "state", "step": "5min"},
        NAMES,
    ),
    "places": (
        b"user,t,lat,lon",
        (b"u,2024-05-06T08:05:00Z,50.004,10.004", b"u,2024-05-06T08:00:00Z,50.004,10.02"),
        lines_of(
            (b"x,2024-05-06T08:00:00Z,50.004,10.004", b"x,2024-05-06T08:05:00Z,50.004,10.02"),
            (*ODD, b"x,2024-05-06T08:05:00Z,1e999,nan", b"x,2024-05-06T08:05:00Z,80,10", b"x,2024-05-06T08:05,50,10"),
            3,
        ),
        {"step": "5min"},
        GRID,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_one_person_moves_counts_by_the_sensitivity_at_most(name, tmp_path):
    header, others, added, given, space = FILES[name]
    found = largest(tmp_path, header, others, added, lambda data: counted(tmp_path, data, given, space))
    for (kind, caps), difference in found.items():
        assert difference <= most(kind, caps), (kind, caps)
    # Somebody with two steps in two states reaches it, so that the files are looked at where it matters.
    assert found["starts", CAPS[0]] == most("starts", CAPS[0])


def imported(folder, data, **options):
    (folder / "import.csv").write_bytes(data)
    rows = IMPORTERS["csv"](folder / "import.csv", **options).trajectories
    save_trajectories(folder / "imported.csv", rows)
    return (folder / "imported.csv").read_bytes()


@pytest.mark.slow
def test_trips_in_the_order_of_a_column_through_import(tmp_path):
    """Which trip is first, and so counts, is said by the person's own names of trips."""
    options = {"order_column": "k", "trip_column": "leg", "state_column": "state"}
    others = (b"u,1,10,b", b"u,2,10,b", b"u,1,2,a", b"u,2,2,a")
    good = (b"x,1,1,a", b"x,2,1,b", b"x,2,0,b")
    odd = (b"x,1,home,a", b"x,1,,b", b"x,1,02,a", b"x,+2,1,b", b"x,one,1,b", *ODD)

    def read(data):
        return counted(tmp_path, imported(tmp_path, data, **options), {"state_column": "state"}, NAMES)

    found = largest(tmp_path, b"user,k,leg,state", others, lines_of(good, odd, 2), read)
    assert all(difference <= most(*key) for key, difference in found.items())
    assert found["starts", CAPS[0]] == most("starts", CAPS[0])


def test_one_row_among_two_hundred_people_moves_one_person_at_most(tmp_path, run_fit):
    """The first trip of everybody was another one when the trips of one more person were no numbers."""
    rows = [
        b"u%d,%d,%d,%s" % (u, k, leg, b"ab"[leg - 2 : leg - 1] or b"b")
        for u in range(200)
        for leg in (10, 2)
        for k in range(4)
    ]
    before, after = run_fit(rows), run_fit([*rows[:801], b"x,1,home,a", *rows[801:]])
    assert np.abs(before).sum() >= 200 * 3
    assert np.abs(after - before).sum() <= 3


@pytest.fixture
def run_fit(tmp_path, monkeypatch):
    """The counts of `import csv` and then `fit --epsilon 1 --max-length 4`, as they are handed to the noise."""
    seen = []
    noisy = planned.release
    monkeypatch.setattr(planned, "release", lambda counts, *rest: seen.append(counts.copy()) or noisy(counts, *rest))
    (tmp_path / "states.csv").write_text("state\na\nb\n")

    def ran(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.stderr

    def counts(rows):
        (tmp_path / "x.csv").write_bytes(text(b"user,k,leg,state", rows))
        columns = ("--order-column", "k", "--trip-column", "leg", "--state-column", "state")
        ran("import", "csv", tmp_path / "x.csv", "-o", tmp_path / "t.parquet", *columns, "--force", "-q")
        states = ("--state-column", "state", "--states-file", tmp_path / "states.csv")
        private = ("--epsilon", "1", "--max-length", "4")
        ran("fit", tmp_path / "t.parquet", "-o", tmp_path / "m.npz", *states, *private, "--force", "-q")
        return seen.pop()

    return counts


def test_rows_of_any_kind_change_neither_exit_nor_words(tmp_path):
    """All that a private fit says is said of any rows, and where one cannot be read only the owner's list tells."""
    (tmp_path / "states.csv").write_text("state\na\nb\n")
    header, said = b"user,t,state", set()
    good = b"u,2024-05-06T08:05:00Z,a"
    rows = [
        (), (good,), (good, b"x,2024-05-06T08:05:00,a"), (b"x,2024-05-06T08:05:00,a",), (good, b"x"), (b"x,x,x,x,x",),
        (good, b"\xff\xfe,,"), (good, b"x,never,a"), (good, b"x,2024-05-06T08:05:00Z,CANARY"), (b",,",),
        (good, b"x\0,1,a"), (good, b"x,+1,a", b"", b" "),
    ]  # fmt: skip
    states = ("--state-column", "state", "--states-file", tmp_path / "states.csv", "--step", "5min")
    hidden = ("--states", "2", "--symbols", "state", "--symbols-file", tmp_path / "symbols.csv", "--iterations", "2")
    (tmp_path / "symbols.csv").write_text("symbol\na\nb\n")
    for options, lines in itertools.product((states, hidden), rows):
        (tmp_path / "x.csv").write_bytes(text(header, lines))
        arguments = ("fit", tmp_path / "x.csv", "-o", tmp_path / "m.npz", *options, "--force", "--json")
        private = ("--epsilon", "1", "--max-length", "4")
        result = CliRunner().invoke(app, [str(argument) for argument in (*arguments, *private)])
        assert result.exit_code == 0, (lines, result.stderr)
        assert (tmp_path / "m.npz.rejected.csv").exists()
        said.add((options is hidden, result.stdout, result.stderr))
    assert len(said) == 2
