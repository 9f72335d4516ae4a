"""Zone tables of a test's own: a town whose clocks are those of another place, today and after a newer table."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from dphmm.accounting import clock

TOWN = "Test/Town"


def table_file(name: str) -> bytes:
    """The file of a zone, of the package tzdata: the same on every machine."""
    region, place = name.rsplit("/", 1)
    return resources.files(f"tzdata.zoneinfo.{region.replace('/', '.')}").joinpath(place).read_bytes()


@contextmanager
def town_with_the_clocks_of(folder: Path, name: str) -> Iterator[str]:
    """A zone table in which the clocks of a town, whose name is given, are those of ``name``."""
    path = folder / name.replace("/", "-") / TOWN
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(table_file(name))
    before = zoneinfo.TZPATH
    try:
        zoneinfo.reset_tzpath(to=[str(path.parent.parent), *before])
        forget()
        yield TOWN
    finally:
        zoneinfo.reset_tzpath(to=before)
        forget()


def forget() -> None:
    """Forget what was read of zone tables."""
    zoneinfo.ZoneInfo.clear_cache()
    clock.day_begins.cache_clear()
    clock._bins_at_hours.cache_clear()
    clock.zone_changes.cache_clear()
