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
    from dphmm.types import FloatArray


def demo_report(folder: Path, city: City, batch: Batch, statement: ReleaseStatement, console: Console) -> ReleaseReport:
    """The report of the answers; the smoothed rows are written too."""
    from dphmm.audit.findings import Findings
    from dphmm.audit.released_file import ReleasedFile
    from dphmm.decoding import smooth_rows
    from dphmm.report.assembling import TrueRows, release_report
    from dphmm.report.content import Backdrop, Made
    from dphmm.session.subjects import Subjects
    from dphmm.storage.ledger import open_ledger
    from dphmm.storage.smoothed import released_rows, smoothed_table
    from dphmm.storage.tables import read_table, write_table

    setting, path = batch.setting, folder / "released.parquet"
    rows = released_rows(read_table(path), city.grid)
    with console.progress("smooth") as progress:
        smoothed = smooth_rows(rows, Subjects(setting), progress=progress)
    write_table(folder / "smoothed.parquet", smoothed_table(rows, smoothed, city.grid))
    file = ReleasedFile.read(path, city.grid, Findings())
    made = Made(setting.model, city.grid, statement, Subjects(setting))
    with open_ledger(folder / "ledger.db", read_only=True) as ledger, console.progress("report") as progress:
        return release_report(
            city.name,
            path.name,
            file,
            made,
            ledger=ledger,
            progress=progress,
            stage=None if progress is None else progress.stage,
            truth=TrueRows(_truth(city, file), np.zeros(len(file), dtype=np.bool_), simulated=True),
            backdrop=Backdrop((city.river,), tuple(city.bridges)),
        )


def _truth(city: City, file: ReleasedFile) -> FloatArray:
    """The true places (n, 2) of released rows: known only because the people are simulated."""
    people = city.released_people
    assert people.time is not None and people.lat is not None and people.lon is not None and file.times is not None
    places, moments = city.grid.projection.to_metres(people.lat, people.lon), people.time.tolist()
    at = {(people.users[u], t): row for row, (u, t) in enumerate(zip(people.user.tolist(), moments, strict=True))}
    return np.asarray(places[[at[key] for key in zip(file.users, file.times.tolist(), strict=True)]])
