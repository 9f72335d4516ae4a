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
    from dphmm.report.content import ReleaseReport
    from dphmm.storage.statement_types import ReleaseStatement
    from dphmm.types import FloatArray, IntArray

_DAY = 86_400_000_000


def demo_report(path: Path, city: City, batch: Batch, statement: ReleaseStatement, console: Console) -> ReleaseReport:
    """The report of the released file, every subject step by step."""
    from dataclasses import replace

    from dphmm.audit.findings import Findings
    from dphmm.audit.released_file import ReleasedFile
    from dphmm.report import Scenery
    from dphmm.report.assembling import Made, release_report

    file = ReleasedFile.read(path, city.grid, Findings())
    truth = _truth(city, file)
    made = Made(batch.setting.model, city.grid, statement, batch.setting.policy, batch.setting.options)
    with console.progress("report") as progress:
        report, _ = release_report(
            f"{city.name}: a simulated city, released",
            file,
            made,
            progress=progress,
            truth=truth,
            simulated=True,
            smoothed=_smoothed(file, batch),
            scenery=Scenery((city.river,), tuple(city.bridges)),
            notes=[
                f"{city.name} and its people are simulated: that is why this page may show the truth, and how "
                "often releases and estimates miss it. A page of real people that does is for the data owner alone.",
                "The model was fitted to one half of the people; the other half was released.",
            ],
        )
    everywhere = np.ones(city.grid.n_states, dtype=np.bool_)
    hull = batch.setting.planner.plan(everywhere, everywhere).hulls[0]
    return replace(report, hull=hull, pictured=_widest_day(file, truth))


def _truth(city: City, file: ReleasedFile) -> FloatArray:
    """The true answers (n, 2) of released rows: known only because the people are simulated."""
    people = city.released_people
    assert people.time is not None and people.lat is not None and people.lon is not None and file.times is not None
    states, moments = city.grid.locate(people.lat, people.lon).tolist(), people.time.tolist()
    at = {(people.users[u], t): s for u, t, s in zip(people.user.tolist(), moments, states, strict=True)}
    keys = zip(file.users, file.times.tolist(), strict=True)
    return np.asarray(city.grid.answers[[at[key] for key in keys]])


def _smoothed(file: ReleasedFile, batch: Batch) -> FloatArray:
    from dphmm.decoding import smooth_rows
    from dphmm.storage.smoothed import ReleasedRows

    rows = ReleasedRows(file.users, None, file.step, file.lattice, file.epsilon, file.plans)
    return smooth_rows(rows, batch.setting).mean


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
