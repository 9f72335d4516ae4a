"""Claim: files that a version wrote are read for ever, and say to every later version what they said to that one.

Each archive holds models, policies, a plan, made tables, two released folders, a private query, a table of jobs and
ledgers, as one version wrote them, and what they said. It would fail for a reader that drops a format, a digest of
other bytes, a ledger that forgets an answer, and an account that adds up otherwise.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import dphmm
from commands import typed
from dphmm.storage.tables import read_table
from frozen import files

ARCHIVES = files.archives()


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.stem)
def unpacked(request, tmp_path):
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_files_say_what_they_said(unpacked):
    kept = json.loads((unpacked / files.SAID).read_text())
    assert files.said(unpacked) == kept


def test_a_question_asked_again_gets_the_stored_answer_and_costs_nothing(unpacked, monkeypatch):
    monkeypatch.chdir(unpacked)
    before = dphmm.open("places").rows
    typed(*files.COMMANDS["places"].split(), "-o", "again", "--ledger", "ledger.db")
    assert dphmm.open("again").rows.equals(before)
    with dphmm.open_ledger("ledger.db") as ledger:
        assert {str(ledger.spent(person).epsilon) for person in files.PEOPLE} == {"12"}


def test_a_query_asked_again_under_its_id_gets_the_stored_answer(unpacked, monkeypatch):
    monkeypatch.chdir(unpacked)
    typed(*files.COMMANDS["visits.parquet"].split(), "-o", "again.parquet")
    assert read_table("again.parquet").equals(read_table("visits.parquet"))


def test_this_version_writes_what_it_reads(tmp_path):
    """Public files are the same bytes as those of the archive, so a format that changed is seen."""
    files.write_inputs(tmp_path)
    files.make(tmp_path, [name for name in files.COMMANDS if name in files.PUBLIC])
    with zipfile.ZipFile(ARCHIVES[-1]) as archive:
        for name in files.PUBLIC:
            assert (tmp_path / name).read_bytes() == archive.read(name), name


def test_there_is_an_archive():
    assert ARCHIVES and all(Path(path).stat().st_size < 300_000 for path in ARCHIVES)
