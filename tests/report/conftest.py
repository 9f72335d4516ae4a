"""Releases of every kind of states, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from browser import find_browser, running
from report.worlds import WORLDS, altered, put, read, with_column


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a world: world("grid")."""

    @cache
    def made(name: str) -> Path:
        return WORLDS[name](tmp_path_factory.mktemp(name))

    return made


@pytest.fixture(scope="module")
def report_of(world):
    """report_of("grid"): the report of a world, made once; it is replaced and never changed."""
    return cache(lambda name: read(world(name)))


@pytest.fixture(scope="module")
def browser():
    """A browser without a page."""
    with running(find_browser()) as started:
        try:
            started.send("Browser.getVersion")
        except (RuntimeError, OSError) as error:
            pytest.skip(f"{find_browser()} does not start here ({error})")
        yield started


@pytest.fixture
def doctored(world, tmp_path):
    """doctored("grid", {path: value}): a copy of a world whose statement has other members; and cells of the file."""

    def made(name, members, column=None, value=None):
        def tell(statement):
            for path, told in members.items():
                put(statement, path, told)

        def rows(table):
            cells = value(table) if callable(value) else pa.array([value] * len(table), table.schema.field(column).type)
            return with_column(table, column, cells)

        return altered(world(name), tmp_path / "doctored", tell, rows if column else None)

    return made
