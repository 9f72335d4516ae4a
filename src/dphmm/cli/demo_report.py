"""The page at the end of the demo: a report as of any release, with the truth, which is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dphmm.audit.released_file import ReleasedFile
    from dphmm.batch import Batch
    from dphmm.cli.console import Console
    from dphmm.evaluation.city import City
    from dphmm.planning import World
    from dphmm.report.content import ReleaseReport
    from dphmm.storage.statement_types import ReleaseStatement
    from dphmm.types import FloatArray, IntArray

_DAY = 86_400_000_000


def demo_report(
    folder: Path, city: City, batch: Batch, statement: ReleaseStatement, world: World, console: Console
) -> tuple[ReleaseReport, float, float]:
    """The report of the answers, and the mean errors of all rows smoothed, and of the best place without the file.

    The smoothed rows are written too.
    """
    from dataclasses import replace

    from dphmm.audit.findings import Findings
    from dphmm.audit.released_file import ReleasedFile
    from dphmm.decoding import smooth_rows
    from dphmm.report import Scenery
    from dphmm.report.assembling import Made, release_report
    from dphmm.session.subjects import Subjects
    from dphmm.storage.smoothed import released_rows, smoothed_table
    from dphmm.storage.tables import read_table, write_table

    setting, path = batch.setting, folder / "released.parquet"
    rows = released_rows(read_table(path), city.grid)
    with console.progress("smooth") as progress:
        smoothed = smooth_rows(rows, Subjects(setting), progress=progress)
    write_table(folder / "smoothed.parquet", smoothed_table(rows, smoothed, city.grid))
    whole = ReleasedFile.read(path, city.grid, Findings())
    there = _truth(city, whole)
    error, without = (float(city.grid.distances(guess, there).mean()) for guess in (smoothed.mean, world.one_place))
    file, truth = whole.answered(), there[whole.asked]
    made = Made(setting.model, city.grid, statement, Subjects(setting))
    with console.progress("report") as progress:
        report, _ = release_report(
            f"{city.name}: a simulated city, released",
            file,
            made,
            progress=progress,
            truth=truth,
            simulated=True,
            smoothed=smoothed.mean[whole.asked],
            scenery=Scenery((city.river,), tuple(city.bridges)),
            notes=[
                f"{city.name} and its people are simulated: that is why this page may show the truth, and how "
                "often releases and estimates miss it. A page of real people that does is for the data owner alone.",
                "The model was made from the map alone: nobody's data is in it.",
            ],
        )
    everywhere = np.ones(city.grid.n_states, dtype=np.bool_)
    hull = setting.planner.plan(everywhere, everywhere).hulls[0]
    return replace(report, hull=hull, pictured=_widest_day(file, truth)), error, without


def _truth(city: City, file: ReleasedFile) -> FloatArray:
    """The true places (n, 2) of released rows: known only because the people are simulated."""
    people = city.released_people
    assert people.time is not None and people.lat is not None and people.lon is not None and file.times is not None
    places, moments = city.grid.projection.to_metres(people.lat, people.lon), people.time.tolist()
    at = {(people.users[u], t): row for row, (u, t) in enumerate(zip(people.user.tolist(), moments, strict=True))}
    return np.asarray(places[[at[key] for key in zip(file.users, file.times.tolist(), strict=True)]])


def _widest_day(file: ReleasedFile, truth: FloatArray) -> IntArray:
    """The rows of the person and day whose way encloses the most land: there is most to be seen."""
    assert file.times is not None
    days = list(zip(file.users, (file.times // _DAY).tolist(), strict=True))
    starts = [i for i in range(len(days)) if i == 0 or days[i] != days[i - 1]]
    parts = np.split(np.arange(len(days)), starts[1:])

    def enclosed(part: IntArray) -> float:
        x, y = truth[part].T
        return abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))))

    return max(parts, key=enclosed)
