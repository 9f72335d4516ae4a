"""Whether a true place lies in a cell or outside all of them shows nowhere but in the counts for the owner.

Claim. A place outside every cell is answered as the state whose place is nearest. So let two inputs differ in one
place alone, outside in the one and of that very state in the other, and let the system's words be the same: then exit
code, both streams, logs, names, modes, lengths and bytes of all files (released file, statement, ledger) are the same,
for batches, streams, resumed runs, merged states, squares and hexagons. Only OUT.owner/counts.json says which it was.
(`test_bytes` replaces the answers; here the noise itself is drawn.)

The check before a release is a channel of its own: whether at least one row in 20 is in a state (`cli.test_check`).

It would fail for a count, a flag, another order of words or another number of them, and where the crowd, a session or a
resumed run treats the nearest state otherwise than the state itself.
"""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

import dphmm
from independence import commands
from independence.commands import GRID, HEXES, TIMES, release_arguments, run, shown_by
from system_words import guard

pytestmark = pytest.mark.replayed_words

#: Far and near, at a pole, across the antimeridian, over the edge by less than a micrometre.
OUTSIDE = [(50.0271, 10.02), (49.99, 9.99), (-33.9, 151.2), (90.0, 0.0), (-90.0, 180.0), (50.01, -180.0)]
OUTSIDE += [(50.01, 359.9), (math.nextafter(50.0, 0), 10.02), (50.01, math.nextafter(10.0, 0)), (50.0, 190.0)]
SPACES = {"town": GRID, "hive": HEXES}
_ADDRESS = re.compile(r"\d{9,}|/\S*/")


def within(kind, state):
    """A place of a state. The squares at the north and east leave the box, and their middles are outside."""
    if kind == "town":
        lat, lon = (
            axis.ravel() for axis in np.meshgrid(np.linspace(50.0, 50.027, 500), np.linspace(10.0, 10.042, 200))
        )
        at = int(np.argmax(GRID.locate(lat, lon) == state))
        lat, lon = float(lat[at]), float(lon[at])
    else:
        lat, lon = map(float, HEXES.to_latlon(HEXES.own_answers[state]))
    assert int(SPACES[kind].locate(lat, lon)) == state
    return lat, lon


def pairs(kind):
    """Places outside all cells, each with a place of the state that is nearest."""
    space = SPACES[kind]
    outside = [place for place in OUTSIDE if int(space.locate(*place)) == -1]
    assert len(outside) > 6
    return [(place, within(kind, int(space.nearest(*place)))) for place in outside]


def rows(kind, where, times=TIMES):
    """Ann where the test says, at one moment only or at all of them; bob in the first cell."""
    clocks = times if kind == "town" else range(len(times))
    lines = [f"{user},{clock},{at[0]!r},{at[1]!r}" for clock in clocks
             for user, at in (("ann", where), ("bob", within(kind, 0)))]  # fmt: skip
    return "\n".join([f"user,{'t' if kind == 'town' else 'step'},lat,lon", *lines, ""])


@pytest.fixture
def shown(tmp_path_factory):
    def show(text, arguments, input=None, setting=None, key="one key"):
        with guard.drawing(guard.REPLAYED, key):
            seen = shown_by(tmp_path_factory.mktemp("outside"), text, arguments, input, setting)
        seen["heard logged"] = [(*line[:3], _ADDRESS.sub("", line[3])) for line in seen["heard logged"]]
        return seen

    return show


def differing(one, other):
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


CHOICES = {"plain": ((), None), "delta sets": (("--json",), {"constraint": "delta=0.2"})}


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("choice", CHOICES)
def test_a_batch(shown, kind, choice):
    more, setting = CHOICES[choice]
    arguments = release_arguments(kind, "out.csv", *more)
    for outside, inside in pairs(kind)[::4]:
        one, other = (shown(rows(kind, at), arguments, setting=setting) for at in (outside, inside))
        assert differing(one, other) == set(), outside
        assert one["exit"] == 0
    again = shown(rows(kind, outside), arguments, setting=setting, key="another key")
    assert "released.csv" in differing(one, again), "noise is drawn"


@pytest.mark.parametrize("kind", SPACES)
def test_a_stream(shown, kind):
    arguments = ["release", "-", *release_arguments(kind, "stream")[2:]]
    for outside, inside in pairs(kind)[::3]:
        runs = []
        for lat, lon in (outside, inside):
            clock = {"town": lambda n, t: {"t": t}, "hive": lambda n, t: {"step": n}}[kind]
            lines = [json.dumps({"user": "ann", **clock(n, t), "lat": lat, "lon": lon}) for n, t in enumerate(TIMES)]
            runs.append(shown("", arguments, "\n".join(lines)))
        assert differing(*runs) == set(), outside
        assert runs[0]["exit"] == 0


@pytest.mark.parametrize("kind", SPACES)
def test_a_run_that_is_resumed(kind, tmp_path, monkeypatch):
    """The first rows, then all of them: the second run draws for the new ones alone."""
    told = []
    for number, where in enumerate(pairs(kind)[0]):
        folder = tmp_path / str(number)
        folder.mkdir()
        commands.write_public_files(folder)
        monkeypatch.chdir(folder)
        shown = []
        with guard.drawing(guard.REPLAYED, "resumed"):
            for times in (TIMES[:1], TIMES):
                (folder / "rows.csv").write_text(rows(kind, where, times))
                result = run(release_arguments(kind, "out.csv"))
                shown.append((result.exit_code, result.stdout, result.stderr))
        own = [folder / "ledger.db", *sorted((folder / "out").iterdir())]
        files = {path.name: path.read_bytes() for path in own}
        counts = json.loads((folder / "out.owner" / "counts.json").read_text())
        told.append((shown, files))
        assert counts["rows_in_no_state"] == (len(TIMES) if number == 0 else 0)
    assert told[0] == told[1]
    assert [code for code, *_ in told[0][0]] == [0, 0]


def test_merged_states_of_the_library():
    """Outside places beside merged cells: the nearest place is a merged cell's own, its answer is another's."""
    import pandas as pd

    space = GRID.merged({0: 5, GRID.n_states - 1: 4, 2: 5})
    model, policy = commands.narrow(GRID.n_states, space=GRID), dphmm.policy.radius(space, 1500)
    tables = []
    for which in (0, 1):
        # A table of which no place at all is on the map is not begun.
        at = [*(pair[which] for pair in pairs("town")), within("town", 0)]
        frame = pd.DataFrame(
            {"user": [f"u{k}" for k in range(len(at))], "lat": [p[0] for p in at], "lon": [p[1] for p in at]}
        )
        bits, ledger = dphmm.ReplayBits(5), dphmm.accounting.MemoryLedger()
        out = dphmm.release_many(frame, model, policy, space, 1, bits=bits, ledger=ledger, progress=False)
        tables.append((out, {key: ledger.entries(*key) for key in ledger.sessions()}))
    assert tables[0][0].equals(tables[1][0]) and tables[0][1] == tables[1][1]
