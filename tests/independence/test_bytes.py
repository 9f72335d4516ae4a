"""Every byte that is written depends on the truth through z alone: commands, tables, statements, ledgers, streams.

Claim. Let the answers z be the same for all truths (each draw is made as always, and then replaced): then exit code,
standard output, standard error, logs, warnings, names, modes and lengths of files, and every byte of the released
file (CSV, Parquet, gzip), the privacy statement and the ledger are the same, for every place inside and outside of
the map and every name known and unknown. So the length of an output, which does vary with the digits of z, says nothing
that z does not say. The counts for the owner alone are always there, under the same name, and only the owner can read
them. With fresh answers and secure randomness all columns but z, all messages, and
all rows of the ledger but z are the same. z is written as the float of a lattice point: no digit below the pitch.

It would fail for a missing row, a flag, a count, a warning or an exit code about drift, a column computed from the
truth, low-order digits of a place, or a file that some truths alone leave behind.
"""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest

import dphmm
from dphmm.storage.ledger import open_ledger
from independence import commands
from independence.commands import GRID, NAMES, PAGES, places, release_arguments, shown_by, site_rows, town_rows
from independence.ledger_files import rows_of, without_answers
from independence.observing import around_draws, attributes_of, replaced_draws

pytestmark = pytest.mark.replayed_words

KINDS = {"town": ([town_rows(place) for place in places()], 2), "site": ([site_rows(name) for name in NAMES], 1)}
#: A lock's address and folder are not the same twice.
#: What the folder of a release has.
PUBLIC = ("index.json", "model.npz", "plans.json", "policy.json", "released.csv", "released.csv.privacy.json")
_ADDRESS = re.compile(r"\d{9,}|/\S*/")


@pytest.fixture
def shown(tmp_path_factory):
    """All that a release of rows shows."""

    def show(kind: str, rows: str, *more: str, output: str = "out.csv", **how):
        found = shown_by(tmp_path_factory.mktemp(kind), rows, release_arguments(kind, output, *more), **how)
        found["heard logged"] = [(*line[:3], _ADDRESS.sub("", line[3])) for line in found["heard logged"]]
        return found

    return show


def given_answers(dimension: int):
    """Answers that all truths are given: far from each other, negative ones among them."""
    return replaced_draws([(7 - 3 * k,) * dimension for k in range(12)])


def differing(runs: list[dict[str, object]]) -> set[str]:
    return {name for run in runs for name in run.keys() | runs[0].keys() if run.get(name) != runs[0].get(name)}


@pytest.mark.parametrize("kind", KINDS)
def test_with_the_same_answers_every_byte_is_the_same(shown, kind):
    rows, dimension = KINDS[kind]
    runs = []
    for text in rows:
        with given_answers(dimension):
            runs.append(shown(kind, text))
    assert differing(runs) == set()
    assert runs[0]["exit"] == 0
    assert {*PUBLIC, "ledger.db", "ledger.db.commands.lock"} == runs[0]["names"].keys()
    # Rows without times are kept as digests in the owner's folder.
    own = ["counts.json", "owner.json", *(["key", "rows.db"] if kind == "site" else [])]
    assert runs[0]["for the owner"] == dict.fromkeys(own, 0o100600)


@pytest.mark.parametrize("output", ["out.parquet"])
@pytest.mark.parametrize("more", [{"constraint": "delta=0.2"}, {"mechanism": "staircase"}])
def test_so_is_every_byte_of_other_formats_and_choices(shown, output, more):
    rows, dimension = KINDS["town"]
    runs = []
    for text in (rows[0], rows[7], rows[-4], rows[-1]):
        with given_answers(dimension):
            runs.append(shown("town", text, output=output, setting=more))
    assert differing(runs) == set()
    assert runs[0]["exit"] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("more", "code"),
    [(["--dry-run"], 0), (["--dry-run", "--json"], 0), (["--cap-epsilon", "2"], 1), (["--cap-cost", "0.5"], 1)],
)
def test_plans_and_refusals_are_the_same(shown, kind, more, code):
    """Nothing is drawn, or nothing is left of it: no answers need be the same."""
    rows, _ = KINDS[kind]
    runs = [without_check(shown(kind, text, *more)) for text in rows[::3]]
    assert differing(runs) == set()
    assert runs[0]["exit"] == code


def without_check(run):
    """What a dry run shows but for the figures of its check, which are the owner's: its last lines, or a member."""
    if run["stdout"].startswith("{"):
        return {**run, "stdout": {name: value for name, value in json.loads(run["stdout"]).items() if name != "check"}}
    return {**run, "stdout": run["stdout"].partition("\n\nrows ")[0]}


@pytest.mark.parametrize("kind", KINDS)
def test_the_figures_of_a_check_are_seen_by_who_asks_for_them_alone(shown, kind):
    """The test above can fail: in a dry run they follow from the truth, without the check in it nothing does."""
    rows, _ = KINDS[kind]
    assert differing([shown(kind, text, "--dry-run") for text in (rows[0], rows[-1])]) == {"stdout"}
    assert differing([shown(kind, text, "--dry-run", "--no-check") for text in (rows[0], rows[-1])]) == set()


def published(run: dict[str, object]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run["released.csv"].decode())))


def without_computed(run: dict[str, object], tmp_path) -> dict[str, object]:
    """A run without z and what is computed from it: in the table, in the statement's digest, in the ledger."""
    kept = [{k: v for k, v in row.items() if not k.startswith("z_")} for row in published(run)]
    statement = json.loads(run["released.csv.privacy.json"])
    statement["file"].pop("sha256")
    (tmp_path / "copy.db").write_bytes(run["ledger.db"])
    told = {name: value for name, value in run.items() if not isinstance(value, bytes) and name != "names"}
    rows = without_answers(rows_of(tmp_path / "copy.db"))
    return told | {"table": kept, "statement": statement, "rows": rows, "names": sorted(run["names"])}


@pytest.mark.parametrize("kind", KINDS)
def test_with_fresh_answers_all_but_z_is_the_same(shown, tmp_path, kind):
    rows, dimension = KINDS[kind]
    runs = [shown(kind, text, "--json") for text in rows[::4]]
    kept = [without_computed(run, tmp_path) for run in runs]
    assert differing(kept) == set()
    assert len(kept[0]["table"]) == len(published(runs[0])) > 4
    zs = {tuple(row[f"z_{j}"] for row in published(run) for j in range(dimension)) for run in runs}
    assert len(zs) == len(runs), "the answers themselves are drawn afresh"


@pytest.mark.parametrize("kind", KINDS)
def test_z_is_written_as_a_lattice_point_and_nothing_finer(shown, tmp_path, kind):
    """The table, the text of its numbers, and the ledger hold the same integers."""
    rows, dimension = KINDS[kind]
    frame = (GRID if kind == "town" else PAGES).frame
    run = shown(kind, rows[-1])
    z = np.array([[float(row[f"z_{j}"]) for j in range(dimension)] for row in published(run)])
    lattice = frame.to_lattice(z)
    assert np.array_equal(frame.to_answers(lattice), z)
    (tmp_path / "ledger.db").write_bytes(run["ledger.db"])
    with open_ledger(tmp_path / "ledger.db") as ledger:
        stored = [e.z for user in commands.USERS for e in ledger.entries(user, "state") if e.kind == "release"]
    assert lattice.tolist() == [list(entry) for entry in stored]


def test_a_stream_answers_every_truth_with_the_same_bytes(tmp_path_factory):
    """JSON lines in and out; what a line says is answered, never repeated."""
    runs = []
    arguments = ["release", "-", *release_arguments("town", "-", "--quiet")[2:]]
    for lat, lon in places():
        lines = [json.dumps({"user": "ann", "t": t, "lat": lat, "lon": lon}) for t in commands.TIMES]
        with given_answers(2):
            runs.append(shown_by(tmp_path_factory.mktemp("stream"), "", arguments, "\n".join(lines)))
    for run in runs:
        del run["heard logged"]
    assert differing(runs) == set()
    assert runs[0]["exit"] == 0
    assert runs[0]["stdout"].count("\n") == len(commands.TIMES)
    assert runs[0]["for the owner"] == {"ledger.db.owner.json": 0o100600}


class TestTables:
    """The library: a table in, a table out, replayable randomness, so that the noise itself can be compared."""

    @staticmethod
    def released(truth: str, **choices):
        import pandas as pd

        ledger = dphmm.accounting.MemoryLedger()
        model = commands.narrow(4)
        policy = dphmm.policy.from_edges([(0, 1), (2, 3)], 4)
        frame = pd.DataFrame({"user": ["ann", "bob", "ann"], "state": [truth, "news", truth]}, index=[5, 1, 9])
        bits = dphmm.ReplayBits(11)
        out = dphmm.release_many(frame, model, policy, PAGES, 1, bits=bits, ledger=ledger, progress=False, **choices)
        entries = {key: ledger.entries(*key) for key in ledger.sessions()}
        return out, entries

    def test_all_but_z_is_the_same_and_so_is_the_noise_of_the_first_step(self):
        tables = {name: self.released(name) for name in NAMES}
        first, entries = tables["home"]
        public = [column for column in first.columns if not column.startswith("z_")]
        surrogate = {"home": 0.0, "news": 2.0, "shop": 3.0, "help": 3.0}
        for name, (table, stored) in tables.items():
            assert table[public].equals(first[public])
            assert table.dtypes.equals(first.dtypes)
            assert table.index.equals(first.index)
            shift = surrogate.get(name, 0.0) - surrogate["home"]
            assert table["z_0"][0] - first["z_0"][0] == shift
            for key, kept in entries.items():
                assert [attributes_of(e) | {"z": None} for e in stored[key]] == [
                    attributes_of(e) | {"z": None} for e in kept
                ]

    def test_with_the_same_answers_the_tables_are_equal(self):
        tables = []
        for name in NAMES:
            with given_answers(1):
                tables.append(self.released(name))
        assert all(table.equals(tables[0][0]) and stored == tables[0][1] for table, stored in tables)


class TestTheChecksCanFail:
    """Leaks into output, planted one at a time."""

    def test_a_digit_below_the_pitch(self, shown, monkeypatch):
        from dphmm.states.lattice import Lattice

        truly, known = Lattice.to_answers, [0]

        def remember(plan, states, drawn):
            known[0] = states[0]
            return [(4, 4)] * len(drawn)

        monkeypatch.setattr(Lattice, "to_answers", lambda self, z: truly(self, z) + known[0] * 1e-9)
        with around_draws(remember):
            runs = [shown("town", rows) for rows in KINDS["town"][0][:3]]
        assert {"released.csv", "names"} & differing(runs)

    def test_a_row_of_drift_that_is_not_released(self, shown, monkeypatch):
        from dphmm.states.visit_table import Gathering

        truly, unknown = Gathering.add, ~len(PAGES.names)

        def add(self, user, codes, time, step):
            known = codes != unknown
            truly(self, user[known], codes[known], time, None if step is None else step[known])

        monkeypatch.setattr(Gathering, "add", add)
        with given_answers(1):
            first = shown("site", site_rows("news"))
        with given_answers(1):
            other = shown("site", site_rows("checkout"))
        assert {"released.csv", "stderr", "ledger.db"} <= differing([first, other])

    def test_drift_that_is_told_of(self, shown, monkeypatch):
        from dphmm.cli.console import Console

        truly = Console.say

        def say(self, rows):
            import sys

            frame = sys._getframe(1)
            ended = [frame.f_locals["done"].batch] if "done" in frame.f_locals else []
            truly(self, [*rows, *(("drift", str(batch.report.drifted)) for batch in ended)])

        monkeypatch.setattr(Console, "say", say)
        runs = []
        for name in ("home", "checkout"):
            with given_answers(1):
                runs.append(shown("site", site_rows(name)))
        assert differing(runs) == {"stderr"}
