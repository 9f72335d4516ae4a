"""Bad and odd rows and files, 81-104: whoever's rows they are, nobody learns from an error what they say.

Fails if a row that can be read is left out (a missing row shows that its owner was elsewhere), if one that cannot is
guessed, if a message or an output repeats a private value, or if a file runs code, leads elsewhere or unpacks without
bound.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tarfile
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dphmm import MarkovModel, ReleaseSession, ReplayBits, StateSpace, policy, release_many
from dphmm.accounting import MemoryLedger
from dphmm.storage import load_model, load_policy, load_trajectories
from dphmm.storage.inputs import checked_output
from dphmm.storage.tables import read_batches, read_table
from faults import spoiled_files as spoiled
from faults.answers import Accepted, Same, SetAside, assert_no_secret, both_surfaces, over_budget, refused
from faults.catalogue import command, fault, library
from faults.forging import model_members, npy, write_members
from faults.place import DIGITS, MOMENT, PAGES, RELEASE, STATE

IMPORT = "import csv bad.csv -o t.csv"
GOOD_ROW = "a,2024-05-06T08:00:00Z,50.01,10.01"
PLACES = "user,t,lat,lon"


def imported(*lines, options="", name="bad.csv", encoding="utf-8", end="\n"):
    """A CSV file of these lines, and a command that imports it."""

    def make(place):
        place.write(name, "".join(f"{line}{end}" for line in lines).encode(encoding))
        return f"import csv {name} -o t.csv {options}"

    return make


def read(*lines, **options):
    """A CSV file of these lines, loaded."""

    def make(place):
        place.write("bad.csv", "".join(f"{line}\n" for line in lines))
        return load_trajectories(place / "bad.csv", **options)

    return make


def both(answer, *lines):
    """The same rows loaded and imported."""
    return library(read(*lines), answer), command(imported(*lines), answer)


def written(name, content, arguments):
    """A file of these bytes (or of what a function of the place gives), and a command."""

    def make(place):
        place.write(name, content(place) if callable(content) else content)
        return arguments

    return make


def session(**options):
    n = 4
    chain = MarkovModel([1, 0, 0, 0], [[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0, 0.5]])
    return ReleaseSession(chain, policy.complete(n), StateSpace([0, 1, 5, 9]), 1, **options)


def frame(states, **columns):
    return pd.DataFrame({"user": ["u"] * len(states), "state": states, **columns})


def many(place, table, **options):
    graph = policy.complete(4)
    return release_many(table, place.pages, graph, place.pages.space, 1, bits=ReplayBits(5), **options)


def with_a_gap(place):
    ledger = MemoryLedger()
    released = many(place, frame(["alpha", "beta"], step=[3, 6]), ledger=ledger)
    return released["step"].tolist(), [(e.kind, e.t, e.through) for e in ledger.entries("u", "state")]


def recorded(found):
    """Steps 1 and 4 are published; 2 and 3 are one skip."""
    assert found == ([1, 4], [("release", 1, 1), ("skip", 2, 3), ("release", 4, 4)])


def rows_with_a_gap(place):
    lines = (place / "walks.csv").read_text().splitlines()
    place.write("walks.csv", "\n".join([*lines[:2], *lines[4:5]]) + "\n")
    return RELEASE + " --json"


def steps_are(*steps):
    return Accepted(lambda result, place: [int(row["step"]) for row in place.rows()] == list(steps))


def said_twice(place):
    """Two rows at one step, the second of another state: one answer, and a replay is the same answer."""
    ledger = MemoryLedger()
    released = many(place, frame(["alpha", "delta"], step=[1, 1]), ledger=ledger)
    assert len(released) == 1 and len(ledger.entries("u", "state")) == 1
    yield released.to_dict("list")
    for state in ("alpha", "gamma"):
        yield many(place, frame([state], step=[1]), ledger=ledger, resume=True).to_dict("list")


def resumed_with_another_state(place):
    header, *lines = (place / "visits.csv").read_text().splitlines()
    place.write("visits.csv", "\n".join([f"{header},step", *(f"{line},{step}" for step, line in enumerate(lines)), ""]))
    place.done(PAGES)
    place.write("before.csv", (place / "out" / "released.csv").read_bytes())
    text = (place / "visits.csv").read_text().replace("alpha", "x").replace("delta", "alpha").replace("x", "delta")
    place.write("visits.csv", text)
    return PAGES


def elsewhere(place):
    place.append("walks.csv", f"w0,2024-05-06T08:20:00Z,-{DIGITS},170.5", f"w0,2024-05-06T08:25:00Z,{DIGITS},10.01")
    return RELEASE


def words_as_cells(place):
    place.write("walks.csv", f"user,t,state\na,2024-05-06T08:00:00Z,{STATE}\n")
    return RELEASE


def unknown_name(place):
    place.append("visits.csv", f"v0,{STATE}", "v1,alpha", f"v1,{STATE}")
    return PAGES


def nothing_missing(rows):
    """Every row is released, and nothing says which was outside."""

    def check(result, place):
        assert len(place.rows()) == rows
        assert not list(place.folder.glob("*.rejected.csv"))
        assert "outside" not in result.stderr and "drift" not in result.stderr

    return Accepted(check)


def drifting(place):
    """A state of no name, a place of no state, and one that is not possible, with the same words of noise."""
    for state in (STATE, -1, 3):
        release = session(bits=ReplayBits(9)).release(state)
        yield release.plan_hash, release.cost, release.epsilon, release.mechanism


def as_its_surrogate(place):
    """States 2 and 3 are not possible at step 1: both are released exactly as their nearest possible one, state 1."""
    for state in (1, 2, 3):
        release = session(bits=ReplayBits(9)).release(state)
        yield {name: str(getattr(release, name)) for name in release.__dataclass_fields__}


def unsorted(place):
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
        table = frame(["alpha", "beta", "gamma", "delta"], step=[1, 2, 3, 4]).iloc[order]
        yield many(place, table).to_dict("list")


def shuffled(place):
    header, *lines = (place / "walks.csv").read_text().splitlines()
    place.write("walks.csv", "\n".join([header, *lines[::-1]]) + "\n")
    return RELEASE


def in_order(result, place):
    rows = [(row["user"], int(row["step"])) for row in place.rows()]
    assert rows == sorted(rows, key=lambda row: (-int(row[0][1:]), row[1])) or rows == sorted(rows)
    assert len(rows) == 12


def beyond_all_time(place):
    place.write("far.csv", "user,step,lat,lon\nu,1,50.01,10.01\nu,9007199254740992,50.01,10.01\n")
    return RELEASE.replace("walks.csv", "far.csv")


def labels(place):
    """A user 3 as text, as a whole number and as a whole float."""
    for user in (["3"], [3], [3.0]):
        place.write("x.parquet", spoiled.parquet(pa.table({"user": user, "state": ["a"]})))
        loaded = load_trajectories(place / "x.parquet")
        yield loaded.trajectories.users, len(loaded.rejected)


def long_table(place, rows=1_000_000):
    """The memory that a fresh process needs beyond its libraries to load many rows, in bytes per row."""
    users = pa.array([f"u{k % 1000}" for k in range(1000)]).take(pa.array(np.arange(rows) % 1000))
    table = pa.table({"user": users, "step": np.arange(rows) // 1000, "lat": np.full(rows, 50.0), "lon": np.ones(rows)})
    place.write("x.parquet", spoiled.parquet(table))
    script = (
        "import resource, sys; from dphmm.storage import load_trajectories; import pyarrow.parquet\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak(); loaded = load_trajectories(sys.argv[1]); print(len(loaded.trajectories), peak() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(place / "x.parquet")], capture_output=True, text=True, check=True
    )
    kept, kilobytes = map(int, done.stdout.split())
    assert kept == rows
    return kilobytes * 1024 / rows


def formulas(place):
    place.write("bad.csv", f'{PLACES}\n"=HYPERLINK(""x"")",2024-05-06T08:00:00Z,50.0,-116.3\n@SUM(A1),{GOOD_ROW[2:]}\n')
    return IMPORT


def escaped(result, place):
    text = (place / "t.csv").read_text()
    assert '"\'=HYPERLINK(""x"")"' in text and '"\'@SUM(A1)"' in text
    assert ",-116.3" in text and "'-116.3" not in text
    assert load_trajectories(place / "t.csv").trajectories.users == ('=HYPERLINK("x")', "@SUM(A1)")


def changing(place):
    """The file gets another row while it is read."""
    path = place.write("x.csv", f"{PLACES}\n{GOOD_ROW}\n")
    for _ in read_batches(path):
        place.append("x.csv", GOOD_ROW)


def pickled_model(place):
    payload = npy(np.array([spoiled.Bomb(place / "ran")], dtype=object), pickled=True)
    write_members(place / "bad.npz", model_members([0.5, 0.5], np.full((2, 2), 0.5)) | {"initial.npy": payload})


def never_ran(name):
    """A reader that must refuse the file; afterwards no code of it has run."""

    def make(place):
        readers = {"bad.npz": load_model, "bad.json": load_policy}
        place.inputs.add(name)
        try:
            return readers.get(name, read_table)(place / name)
        finally:
            assert not (place / "ran").exists()

    return make


def pickle_named(name):
    def make(place):
        place.write(name, spoiled.pickled(place))
        return never_ran(name)(place)

    return make


def object_array(place):
    pickled_model(place)
    return never_ran("bad.npz")(place)


def pickled_metadata(key):
    def make(place):
        place.write("bad.parquet", spoiled.with_pickled_metadata(place, key))
        return never_ran("bad.parquet")(place)

    return make


def standing_still(place):
    place.write("still.csv", "user,state\n" + "u,alpha\n" * 10_000)
    return PAGES.replace("visits.csv", "still.csv") + " --cap-epsilon 100"


def until_the_cap(place):
    running = session(cap_epsilon=25)
    for _ in range(10_000):
        running.release(0)


def read_only(place):
    """A folder that may not be written, whoever runs the tests."""
    with mock.patch("dphmm.storage.inputs.os.access", lambda path, mode: mode != os.W_OK):
        return checked_output(place / "new.csv")


def geolife(name, content):
    return written(name, content, f"import geolife {name} -o t.csv")


def two_files(place):
    (place / "parts").mkdir()
    (place / "parts" / "a.parquet").write_bytes(spoiled.parquet(spoiled.visits()))
    (place / "parts" / "b.parquet").write_bytes(spoiled.parquet(spoiled.visits(extra=[1, 2])))
    return "import csv parts -o t.csv"


BERLIN = imported(
    PLACES, "a,2024-03-31T02:30:00,50.0,10.0", "a,2024-10-27T02:30:00,50.0,10.0", "a,2024-05-06T08:00:00,50.0,10.0",
    options="--timezone Europe/Berlin",
)  # fmt: skip

FAULTS = [
    fault(
        81, "steps without a row", "skipped, which is recorded: the belief and the support move on",
        library(with_a_gap, Accepted(recorded)),
        command(rows_with_a_gap, steps_are(1, 4)),
    ),
    fault(
        82, "a second row at a step that has an answer, in the file or in a later run",
        "one answer and one charge: the stored one, whatever the state",
        library(said_twice, Same(3)),
        command(
            resumed_with_another_state,
            Accepted(lambda result, place: place.rows() == place.rows("before.csv")),
        ),
    ),
    fault(
        83, "a place outside the map", "released as the nearest possible state: as many rows, exit 0",
        command(elsewhere, nothing_missing(14)),
    ),
    fault(
        84, "the name of no state", "released like any other row: as many rows, exit 0",
        library(drifting, Same(3)),
        command(unknown_name, nothing_missing(13)),
    ),
    fault(
        85, "rows out of order", "sorted by user and step, stably: the same releases",
        library(unsorted, Same(3)),
        command(shuffled, Accepted(in_order)),
    ),
    fault(
        86, "steps and times that are fractions, too large, missing, or before 1970",
        "set aside with a reason; bins before 1970 are bins; steps that are no time bins are refused if all are",
        *both(
            SetAside({2: "invalid_step", 3: "invalid_step", 4: "invalid_step"}, kept=2),
            "user,step,state", "a,1,x", f"a,1.5,{STATE}", f"a,9223372036854775808,{STATE}", f"a,,{STATE}", "a,-3,y",
        ),
        *both(
            SetAside({2: "invalid_time", 3: "invalid_time"}, kept=1),
            PLACES, GOOD_ROW, f"a,NaT,{DIGITS},10", f"a,,{DIGITS},10",
        ),
        library(lambda place: session().release(0, t=-1), refused("t", "got -1", "the coming step 1")),
        library(lambda place: session().release(0, t=1.5), refused("t", "got 1.5", "the coming step 1")),
        command(beyond_all_time, refused("step", "numbers that steps of 300 s", "time bins since 1970")),
    ),
    fault(
        87, "numbers as text, booleans as users, words as degrees, names that no cell has as cells",
        "a whole number is one label however it is stored; a column of a wrong type is refused, a cell set aside",
        library(labels, Same(3)),
        library(
            lambda place: load_trajectories(
                place.write("x.parquet", spoiled.parquet(pa.table({"user": [True], "state": ["a"]})))
            ),
            refused("user", "a column of type bool", "text or whole numbers"),
        ),
        *both(
            SetAside({1: "invalid_place", 3: "invalid_place", 4: "invalid_place"}, kept=1),
            PLACES, f"a,2024-05-06T08:00:00Z,{STATE},1", GOOD_ROW, "a,2024-05-06T08:00:00Z,9_0,1",
            f"a,2024-05-06T08:00:00Z,9{DIGITS},1",
        ),
        command(words_as_cells, refused("walks.csv", "1 invalid_state", "names such as the model's cells have")),
        library(lambda place: session().release(True), refused("state", "a value that is no state")),
        library(lambda place: session().release(1.0), refused("state", "a value that is no state")),
    ),
    fault(
        88, "times without a zone, of several zones, or that the clocks skipped or showed twice",
        "set aside; where no row is left, refused with the two ways out",
        *both(refused("t", "times without a zone", "Europe/Berlin"), PLACES, f"a,2024-05-06T08:00:00,{DIGITS},10"),
        *both(SetAside({2: "time_without_zone"}, kept=1), PLACES, GOOD_ROW, f"a,2024-05-06T08:00:00,{DIGITS},10"),
        *both(
            Accepted(lambda *found: True), PLACES, GOOD_ROW, "a,2024-05-06T12:00:00+02:00,50.0,10.0",
        ),
        command(BERLIN, SetAside({1: "nonexistent_time", 2: "ambiguous_time"}, kept=1)),
        command(
            imported(PLACES, GOOD_ROW, options="--timezone Mars/Olympus"), refused("--timezone", "Mars/Olympus", "IANA")
        ),
    ),
    fault(
        89, "leap seconds, 31 February, the years 1 and 9999", "set aside: no such moment",
        *both(
            SetAside(dict.fromkeys(range(2, 6), "invalid_time"), kept=1),
            PLACES, GOOD_ROW, f"a,2016-12-31T23:59:60Z,{DIGITS},1", f"a,2024-02-31T00:00:00Z,{DIGITS},1",
            f"a,0001-01-01T00:00:00Z,{DIGITS},1", f"a,9999-12-31T00:00:00Z,{DIGITS},1",
        ),
    ),
    fault(
        90, "an empty file, or a header only", "refused: 0 rows; no ledger is made",
        *both(refused("bad.csv", "0 rows"), PLACES),
        command(written("bad.csv", b"", IMPORT), refused("bad.csv", "0 rows")),
        command(written("e.csv", b"", RELEASE.replace("walks.csv", "e.csv")), refused("e.csv", "0 rows")),
        command(written("e.csv", f"{PLACES}\n", RELEASE.replace("walks.csv", "e.csv")), refused("e.csv", "0 rows")),
        command(written("e.parquet", b"", "import csv e.parquet -o t.csv"), refused("e.parquet", "0 rows")),
    ),
    fault(
        91, "one row", "works",
        command(
            written("one.csv", f"{PLACES}\n{GOOD_ROW}\n", RELEASE.replace("walks.csv", "one.csv")), steps_are(1)
        ),
    ),
    fault(
        92, "a million rows", "loaded in parts: memory grows by some hundred bytes a row",
        library(long_table, Accepted(lambda per_row: per_row < 400)),
    ),
    fault(
        93, "a byte order mark, CRLF, UTF-16, Latin-1, NUL",
        "the first two are read, UTF-16 is refused, cells with other bytes are unreadable; in a header all are refused",
        command(
            imported(f"\ufeff{PLACES}", GOOD_ROW, end="\r\n"),
            Accepted(lambda result, place: len(place.rows("t.csv")) == 1),
        ),
        command(imported(PLACES, GOOD_ROW, encoding="utf-16"), refused("bad.csv", "UTF-16", "UTF-8")),
        command(
            imported(PLACES, GOOD_ROW, f"é{GOOD_ROW[:23]}{DIGITS},10", encoding="latin-1"),
            SetAside({2: "wrong_encoding"}, kept=1),
        ),
        command(imported(PLACES, GOOD_ROW, f"{GOOD_ROW[:23]}{DIGITS}\0,10"), SetAside({2: "invalid_place"}, kept=1)),
        command(
            imported(f"é,{PLACES}", f"1,{GOOD_ROW}", encoding="latin-1"),
            refused("bad.csv", "not UTF-8 in line 1", "encoding UTF-8"),
        ),
        command(imported(f"a\0,{PLACES}", f"1,{GOOD_ROW}"), refused("bad.csv", "a NUL in line 1")),
    ),
    fault(
        94, "rows with too few or too many cells, a column missing or there twice, no header",
        "rows are set aside; a column is refused; names of columns are told, unless the first row looks like data",
        *both(SetAside({2: "ragged_row"}, kept=1), PLACES, GOOD_ROW, f"a,{STATE}"),
        *both(refused("bad.csv", "0 rows that can be read of 1", "1 ragged_row"), PLACES, f"{GOOD_ROW},{STATE}"),
        *both(refused("bad.csv", "two columns 'user'"), "user,user,lat,lon", f"a,{STATE},1,2"),
        command(imported("t,lat,lon", f"2024-05-06T08:00:00Z,{DIGITS},2"), refused("user", "--user-column")),
        command(imported("user,t,lat", f"a,2024-05-06T08:00:00Z,{DIGITS}"), refused("place", "lat and lon, or state")),
        command(
            imported(PLACES, GOOD_ROW, options="--trip-column leg"),
            refused("--trip-column", "leg", "one of user, t"),
        ),
        *both(refused("user", "4 columns", "is there a header?"), f"{STATE},2024-05-06T08:00:00Z,{DIGITS},1", GOOD_ROW),
        *both(refused("bad.csv", "two columns of one name"), f"a,{DIGITS},{DIGITS},{STATE}", GOOD_ROW),
    ),
    fault(
        95, "cells with quotes, commas and line ends", "read as CSV says; a name with a line end is no name",
        *both(
            SetAside({2: "missing_user"}, kept=2),
            PLACES, f'"a ""b"", c"{GOOD_ROW[1:]}', f'"x\ny"{GOOD_ROW[1:]}', GOOD_ROW,
        ),
        command(imported(PLACES, f'"open{GOOD_ROW[1:]}', STATE), refused("line 2", "a quote that is never closed")),
    ),
    fault(
        96, "names that a spreadsheet would run, and negative numbers",
        "names are escaped and come back unescaped; numbers are not touched",
        command(formulas, Accepted(escaped)),
    ),
    fault(
        97, "paths that lead elsewhere: .. and / in archives, links, devices, pipes",
        "refused; nothing is followed, waited for or extracted",
        *(
            command(geolife(name, data), refused("SRC", "no path that leaves it"))
            for evil in ("../../Data/0/Trajectory/a.plt", "/Data/0/Trajectory/a.plt", "C:/Data/0/Trajectory/a.plt")
            for name, data in (("x.zip", spoiled.zipped({evil: b""})), ("x.tar.gz", spoiled.tarred({evil: b""})))
        ),
        command(geolife("x.zip", spoiled.zip_with_link(spoiled.PLT, "/etc/passwd")), refused("SRC", "a link")),
        *(
            command(geolife("x.tar", spoiled.tar_with(kind, spoiled.PLT, "/etc")), refused("SRC", "a link or device"))
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
        ),
        command("import csv /dev/zero -o t.csv", refused("SRC", "/dev/zero", "not a device or a pipe")),
        library(lambda place: read_table(spoiled.fifo(place, "x.csv")), refused("path", "not a device or a pipe")),
        library(lambda place: read_table(f"{place.folder}/a\0.csv"), refused("path", "without NUL")),
    ),
    fault(
        98, "archives that unpack to 80 MB from some hundred kilobytes", "refused when the limit is reached",
        command(geolife("x.zip", lambda place: spoiled.zip_bomb(spoiled.PLT)), refused("x.zip", "expands to more")),
        command(
            written("x.csv.gz", lambda place: spoiled.gzip_bomb(), "import csv x.csv.gz -o t.csv"),
            refused("x.csv.gz", "expands to more"),
        ),
        command(
            written("x.npz", spoiled.zipped({"data.npy": bytes(10**7)}), "plan --details x.npz"),
            refused("x.npz", "'data.npy' compressed", "stored uncompressed"),
        ),
    ),
    fault(
        99, "pickles, under any name or inside any other format", "refused or ignored, never loaded: no code runs",
        *(
            library(pickle_named(name), refused(field))
            for name, field in (
                ("bad.pkl", "path"), ("bad.pickle", "path"), ("bad.joblib", "path"), ("bad.npy", "path"),
                ("bad.csv", "bad.csv"), ("bad.parquet", "bad.parquet"), ("bad.npz", "bad.npz"),
                ("bad.json", "bad.json"),
            )
        ),
        library(object_array, refused("bad.npz", "no plain array")),
        library(pickled_metadata("pandas"), Accepted(lambda table: table.num_rows == 2 and not table.schema.metadata)),
        library(pickled_metadata("ARROW:schema"), refused("bad.parquet", "a damaged Parquet file")),
        command(
            written("x.pkl", spoiled.pickled, "import csv x.pkl -o t.csv"), refused("SRC", "pickles are never loaded")
        ),
        command(
            written("x.npz", spoiled.pickled, "plan --details x.npz"), refused("x.npz", "cannot be read as a model")
        ),
    ),
    fault(
        100, "a Parquet column of an extension type; a folder of files that differ", "refused",
        command(
            written("x.parquet", spoiled.with_extension(), "import csv x.parquet -o t.csv"),
            refused("extra", "an extension type", "a plain column"),
        ),
        command(two_files, refused("SRC", "without a file that has rows")),
    ),
    fault(
        101, "a file that changes while it is read", "refused: what was read is of neither version",
        library(changing, refused("x.csv", "changed while it was read", "nobody is writing to")),
    ),
    fault(
        102, "a true state that the model calls impossible", "released exactly as its surrogate: nothing shows it",
        library(as_its_surrogate, Same(3)),
        command(elsewhere, nothing_missing(14)),
    ),
    fault(
        103, "somebody who never moves for 10,000 steps", "the cap refuses in words; no answer is left out silently",
        command(standing_still, over_budget("--cap-epsilon", "needs 10000", "spent 0 of 100", "nothing was released")),
        library(until_the_cap, over_budget("epsilon", "step 26", "spent 25", "remaining 0", "cap 25")),
    ),
    fault(
        104, "an output that exists, cannot be written, or is an input", "refused before anything is drawn",
        library(read_only, refused("output", "a folder that may be written")),
        library(lambda place: checked_output("/dev/full"), refused("output", "a plain file")),
        command(RELEASE.replace("-o out ", "-o people.csv "), refused("-o", "the folder of the release")),
        command(RELEASE.replace("-o out ", "-o walks.csv "), refused("-o", "the folder of the release")),
        command(RELEASE.replace("-o out ", "-o none/out "), refused("-o", "a folder in one that exists")),
        command(RELEASE.replace("-o out ", "-o model.npz "), refused("-o", "a folder")),
        command(RELEASE.replace("l.db", "none/l.db"), refused("ledger", "a folder that exists")),
        command(RELEASE.replace("l.db", "people.csv"), refused("ledger", "people.csv", "not a database")),
        command("import csv walks.csv -o walks.csv", refused("-o", "another file than the input")),
        command("fit people.csv -o people.csv --grid 1km --bbox 10,50,11,51", refused("-o", "another file")),
        command("policy complete model.npz -o model.npz", refused("-o", "another file")),
        command("policy complete model.npz -o radius.json", refused("-o", "radius.json, which exists", "--force")),
    ),
]  # fmt: skip


test_in_the_library, test_on_the_command_line = both_surfaces(FAULTS)


@pytest.mark.long
def test_ten_million_rows_in_bounded_memory(place):
    assert long_table(place, 10_000_000) < 400
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 4 * 2**20


def test_a_leaked_secret_is_caught(place):
    """The check can fail: a private value in a file that was written."""
    (place / "leak.txt").write_text(f"row at {MOMENT}")
    with pytest.raises(AssertionError, match="867531"):
        assert_no_secret(place)
