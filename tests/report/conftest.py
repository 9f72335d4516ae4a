"""Releases of every kind of states, made once."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from report.worlds import WORLDS


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a world: world("grid")."""

    @cache
    def made(name: str) -> Path:
        return WORLDS[name](tmp_path_factory.mktemp(name))

    return made


@pytest.fixture
def doctored(world, tmp_path):
    """doctored("grid", {path: value}): a copy of a world whose statement has other members; and cells of the file."""

    def made(name, members, column=None, value=None):
        folder = tmp_path / "doctored"
        shutil.copytree(world(name), folder)
        file, beside = folder / "released.parquet", folder / "released.parquet.privacy.json"
        statement = json.loads(beside.read_text())
        for path, told in members.items():
            *parents, last = path.split(".")
            part = statement
            for parent in parents:
                part = part[parent]
            part[last] = told
        if column is not None:
            table = pq.read_table(file)
            at = table.column_names.index(column)
            cells = pa.array([value] * len(table), table.schema.field(at).type)
            pq.write_table(table.set_column(at, table.schema.field(at), cells), file)
            statement["file"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
        beside.write_text(json.dumps(statement))
        return folder

    return made
