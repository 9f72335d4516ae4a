"""The watch can fail: each thing that a reader may not do is done once, and seen. And no reader is forgotten.

Fails if a reader could crash, talk, write, unpickle, hang or swell unseen, or if a function that opens files is in no
entry of the registry.
"""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dphmm
from dphmm.errors import DphmmError, InvalidInput
from dphmm.storage.importers import IMPORTERS
from fuzz.model_files import Canary
from fuzz.mutations import bytes_anywhere, json_text
from fuzz.registry import READERS
from fuzz.watch import Fault, examine


def raising(error):
    def read():
        raise error

    return read


def spinning():
    while True:
        time.sleep(0.01)


def swelling():
    assert np.ones(400 * 2**20 // 8).sum() > 0


FORBIDDEN = {
    "another error": (raising(ValueError("x")), "ValueError"),
    "no memory": (raising(MemoryError()), "MemoryError"),
    "too deep": (raising(RecursionError()), "RecursionError"),
    "two lines": (raising(DphmmError("a\nb")), "more than one line"),
    "a long message": (raising(DphmmError("a" * 5000)), "5000 characters"),
    "a secret": (raising(InvalidInput("row 3", "CANARY_7f3a", "x")), "is told"),
    "a pickle": (lambda: pickle.loads(pickle.dumps(Canary())), "pickle.find_class"),
    "a process": (lambda: subprocess.run([sys.executable, "-V"], check=True, capture_output=True), "subprocess.Popen"),
    "too long": (spinning, "still reading"),
    "too much": (swelling, "MB of memory"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_no_reader_may_do_is_seen(name, tmp_path):
    read, told = FORBIDDEN[name]
    with pytest.raises(Fault, match=told):
        examine(read, tmp_path, (DphmmError,), ("CANARY_7f3a",), seconds=0.5 if read is spinning else 10)


def test_a_file_that_is_written_is_seen(tmp_path):
    with pytest.raises(Fault, match="opened for writing"):
        examine(lambda: (tmp_path / "new").write_text("x"), tmp_path, (DphmmError,))
    (tmp_path / "old").write_text("x")
    with pytest.raises(Fault, match="written or changed"):
        examine((tmp_path / "old").unlink, tmp_path, (DphmmError,))


def test_what_a_reader_may_do(tmp_path):
    assert examine(lambda: 1, tmp_path, (DphmmError,)) is True
    assert examine(raising(DphmmError("no")), tmp_path, (DphmmError,)) is False
    assert examine(lambda: (tmp_path / "x").write_text("x"), tmp_path, (DphmmError,), writes=True) is True


def test_a_private_name_may_stand_in_a_header_but_never_a_number():
    reader = READERS["trajectories csv"]
    assert "CANARY_7f3a" in reader.secrets(b"user,t\nCANARY_7f3a,1\n")
    assert "CANARY_7f3a" not in reader.secrets(b"user,CANARY_7f3a\n")
    assert "01937465" in reader.secrets(b"50.01937465,10.0\n")
    assert READERS["policy"].secrets(b"CANARY_7f3a") == ()


def test_every_reader_is_in_the_registry():
    rooms = (dphmm, dphmm.storage)
    opened = {name for room in rooms for name in room.__all__ if name.startswith(("load_", "open_"))}
    graphs = {name for name in dphmm.policy.__all__ if name in ("from_edge_list", "from_node_link", "from_graphml")}
    tables = {"read_table", "labels_by_state", "space_of_answers", "parse_line", "load_statement", "Journal"}
    tables |= {
        "read_backdrop",
        "read_numbers",
        "table_of_lines",
        "load_people",
        "read_plain_laws",
        "read_plan",
        "read_costs",
        "read_zones",
        "read_regions",
    }
    covered = {reader.covers for reader in READERS.values() if reader.covers}
    assert covered == opened | graphs | tables | set(IMPORTERS)


def test_every_module_that_opens_files_for_reading_is_known():
    """A new module that opens files must be added here, and its reader to the registry."""
    source = Path(dphmm.__file__).parent
    opening = (
        '.open("rb")',
        ".read_bytes()",
        ".read_text()",
        "sqlite3.connect(",
        "ParquetFile(",
        "json.loads(",
        "tarfile.open(",
        "zipfile.ZipFile(",
        "open_memmap(",
    )
    found = {
        str(path.relative_to(source))
        for path in sorted(source.rglob("*.py"))
        if any(call in path.read_text() for call in opening)
    }
    assert found == {
        "_kernels/compiled.py",  # what it compiled itself
        "audit/plain_plans.py",  # read_plain_laws
        "audit/check.py",  # what the checker printed, and a part that was just written
        "audit/verify_release.py",  # tests/audit/test_released*.py, tests/cli/test_verify_release.py spoil all it reads
        "accounting/promise.py",  # the promises and schedules that a ledger recorded
        "cli/demo.py",  # the counts of the release that it has just made
        "cli/pipeline.py",  # pipelines and what ran of them: tests/cli/test_pipeline.py spoils them
        "reconstruction/regions.py",  # read_regions
        "cli/warm.py",  # the lines of its own small world
        "dependent/_question.py",  # an answer that a ledger kept, by its digest
        "markov/model.py",  # its own provenance
        "plot/_flows.py",  # the statement beside a file of flows: tests/plot/test_flows.py spoils it
        "policy/_edges.py",  # from_edge_list, from_node_link, from_graphml
        "session/plan.py",  # the plans that a ledger recorded
        "spark/bucket.py",  # the committed files of a release table, by their digests
        "storage/commit_log.py",  # the log of a release table: tests/storage/test_commit_log.py spoils it
        "storage/release_table.py",  # its data files, by their digests, and leases
        "setup/publishing.py",  # plans of an earlier run: tests/setup/test_plan.py spoils them
        "studio/draft.py",  # files of names and moves, in the owner's folder: tests/studio/test_draft.py
        "studio/session.py",  # what dphmm check printed
        "storage/table_ledger.py",  # the ledger's columns in them: tests/storage/test_table_ledger.py spoils them
        "storage/models.py",  # load_model, load_hidden_model, load_people
        "storage/inputs.py",  # digests, and all that is packed: geolife
        "storage/json_lines.py",  # Journal, table_of_lines, parse_line
        "storage/ledger/connection.py",  # open_ledger
        "storage/ledger/owner.py",  # a key of 32 bytes that it wrote: tests/storage/ledger/test_owner.py
        "storage/ledger/schema.py",
        "storage/release_folder.py",  # its index, and the owner's record: tests/storage/test_release_folder.py
        "storage/public_tables.py",  # read_numbers
        "storage/publications.py",  # the file of a model that it has just written
        "storage/tables.py",  # load_trajectories, read_table
        "storage/geo_files.py",  # the importer of geo files, read_zones
        "statement/files.py",  # load_statement
    }


def test_the_same_words_of_chance_spoil_alike():
    data = b'{"a": [1, 2, {"b": null}], "c": "d"}'
    for mutate in (bytes_anywhere, json_text):
        assert mutate(data, random.Random(7)) == mutate(data, random.Random(7))
    spoiled = {mutate(data, random.Random(seed)) for seed in range(50) for mutate in (bytes_anywhere, json_text)}
    assert len(spoiled) > 50
