"""Every file format that is read, spoiled at random: it loads, or is refused in one line; nothing else happens.

Fails if a reader raises anything but the library's own errors, says more than one line, repeats a private value of the
file, writes or runs anything, loads a pickle, takes more than 10 s or more than 256 MB for a file of some kilobytes.
The default run is the same every time (Hypothesis derandomized); the long one is new every time.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.mutations import some_token
from fuzz.registry import READERS
from fuzz.watch import examine

#: Spoiled files per reader in the default run; the slower ones get fewer.
#: A file system in memory where there is one: ledgers wait for the disk after every page.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
EXAMPLES = {"ledger": 60, "trajectories parquet": 60, "released parquet": 60, "answers parquet": 60}


def read_spoiled(reader, data):
    rng = data.draw(st.randoms(use_true_random=False))
    content = data.draw(st.sampled_from(reader.seeds()))
    for _ in range(data.draw(st.integers(1, 3))):
        content = data.draw(
            st.sampled_from((*reader.mutations, some_token) if rng.randrange(50) == 0 else reader.mutations)
        )(content, rng)
    read_bytes(reader, content)


def read_bytes(reader, content):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = reader.path(Path(folder))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return examine(lambda: reader.read(path), Path(folder), reader.errors, reader.secrets(content), reader.writes)


def fuzzed(reader, examples, derandomize):
    # The first file read also loads libraries and compiles kernels: that is not the file's time or memory.
    for seed in reader.seeds():
        assert read_bytes(reader, seed)

    @settings(
        max_examples=examples, derandomize=derandomize, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def run(data):
        read_spoiled(reader, data)

    run()


@pytest.mark.slow
@pytest.mark.replayed_words  # GDAL's binding draws the name of a file that it reads from memory
@pytest.mark.parametrize("name", READERS)
def test_spoiled_files_load_or_are_refused(name):
    fuzzed(READERS[name], EXAMPLES.get(name, 100), derandomize=True)


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_many_spoiled_files_load_or_are_refused(name):
    fuzzed(READERS[name], 5_000, derandomize=False)


@pytest.mark.parametrize("statement", ["UPDATE document SET text = '{}'", "UPDATE account SET subject = x'ff00'"])
def test_ledgers_that_long_runs_found(statement):
    """Options that lack some, and a subject that is no text: refused like any other damage."""
    import sqlite3

    seed = READERS["ledger"].seeds()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        path.write_bytes(seed)
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute(statement)
        connection.close()
        assert not read_bytes(READERS["ledger"], path.read_bytes())


def test_zones_of_parquet_files_that_long_runs_found():
    """A zone that is no UTF-8, as a damaged schema (in base 64 inside the file) may have it."""
    reader = READERS["trajectories parquet"]
    seed = reader.seeds()[0]
    (written,) = re.findall(rb"[A-Za-z0-9+/]{100,}=*", seed)
    schema = base64.b64decode(written)
    assert schema.count(b"UTC") == 1
    spoiled = seed.replace(written, base64.b64encode(schema.replace(b"UTC", b"UZ\xc3")))
    assert not read_bytes(reader, spoiled)
