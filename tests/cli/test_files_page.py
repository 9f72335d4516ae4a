"""docs/files.md names every column, member and table of the files that commands write: none is left unexplained."""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from pathlib import Path

import dphmm
from dphmm.storage.cells import REASONS

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text()


def section(title):
    """The names in code type under one heading."""
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`]+)`", text))


def test_columns_of_released_tables(released, rows_of):
    assert set(rows_of(released / "released" / "released.csv")[0]) <= section("Released")


def test_members_of_a_model(town):
    with zipfile.ZipFile(town / "model.npz") as archive:
        members = {name.removesuffix(".npy") for name in archive.namelist()}
    assert members - {"sha256"} <= section("Model")
    model = dphmm.storage.load_model(town / "model.npz")
    assert {"step", "start", "provenance", "space", "private", *model.space.describe()[0]} <= section("Model")


def test_members_of_a_policy(town):
    assert set(json.loads((town / "radius.json").read_text())) <= section("Policy")


def test_tables_of_a_ledger(released):
    with sqlite3.connect(released / "ledger.db") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {row[1] for table in tables for row in connection.execute(f"PRAGMA table_info({table})")}
    connection.close()
    assert {*tables, *columns, "origin"} <= section("Ledger")


def test_members_of_the_people_of_a_model(town):
    assert set(json.loads((town / "model.npz.people").read_text())) <= section("People of a model")


def test_columns_of_trajectories_and_of_rows_set_aside():
    assert {"user", "t", "step", "lat", "lon", "state", "trip"} <= section("Trajectories")
    assert {*REASONS[1:], "line", "row", "bad_sequence"} <= section("Rejected rows")


def test_links_to_headings_of_the_page():
    sections, parts = (
        {title.lower().replace(" ", "-") for title in re.findall(f"^{level} (.*)", PAGE, re.MULTILINE)}
        for level in ("##", "###")
    )
    linked = set(re.findall(r"\]\(#([a-z-]+)\)", PAGE))
    assert sections <= linked <= sections | parts
