"""What the demo does: simulate, fit, release, write, through the calls that real data goes through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dphmm.cli.console import Console

if TYPE_CHECKING:
    from dphmm.batch import Batch, Released
    from dphmm.evaluation.city import City
    from dphmm.report.content import ReleaseReport
    from dphmm.samplers.entropy import ReplayBits
    from dphmm.states.trajectory import Trajectories
    from dphmm.storage.statement_types import ReleaseStatement

EPSILON = 1
#: Two cells of the city: all places up to so far apart are hidden from each other.
COVERS = "680m"
SMOOTHING = 0.01
#: What the demo writes; demo.json comes first and marks the folder as one that --force may clear.
FILES = (
    "demo.json",
    "model_people.parquet",
    "trajectories.parquet",
    "model.npz",
    "policy.json",
    "ledger.db",
    "released.parquet",
    "released.parquet.privacy.json",
    "report.html",
)
MARKER = FILES[0]


class Results(NamedTuple):
    """What a demo made."""

    batch: Batch
    rows: list[Released]
    statement: ReleaseStatement
    report: ReleaseReport


def run(folder: Path, city: City, bits: ReplayBits | None, console: Console) -> Results:
    """Everything from simulated people to the page."""
    from dphmm.report import write_report
    from dphmm.storage.inputs import replacing
    from dphmm.storage.trajectories import save_trajectories

    if bits is not None:
        console.warn("made with replayable bits: whoever knows the seed can take the noise away")
    with replacing(folder / MARKER) as marker:
        marker.write_text(json.dumps({"made_by": "dphmm demo", "private": bits is None, "files": FILES[1:]}) + "\n")
    half = city.released_people.n_users
    console.say([("", f"{city.name}: {half} people for the model, {half} others to release")])
    save_trajectories(folder / "model_people.parquet", city.model_people)
    save_trajectories(folder / "trajectories.parquet", city.released_people)
    batch = _public_parts(folder, city, bits)
    rows = _released(folder, city, batch, console)
    results = _written(folder, city, batch, rows, console)
    write_report(folder / "report.html", results.report)
    return results


def _public_parts(folder: Path, city: City, bits: ReplayBits | None) -> Batch:
    """Model and policy, saved; ledger opened; ready to release."""
    from dphmm.batch import Batch
    from dphmm.markov.estimate import fit
    from dphmm.policy import radius
    from dphmm.storage.inputs import file_digest
    from dphmm.storage.ledger import open_ledger
    from dphmm.storage.models import save_model
    from dphmm.storage.policies import save_policy

    stepped, _ = city.model_people.resample(city.step)
    grid = city.grid
    model, _ = fit(
        stepped.sequences(_states(city, stepped)).sequences,
        grid.n_states,
        smoothing=SMOOTHING,
        smoothing_support="neighbours",
        space=grid,
        step=city.step,
        n_users=stepped.n_users,
        source="model_people.parquet",
        source_sha256=file_digest(folder / "model_people.parquet"),
    )
    policy = radius(grid, covers=COVERS)
    save_model(model, folder / "model.npz")
    save_policy(policy, folder / "policy.json", space=grid)
    return Batch(model, policy, grid, EPSILON, ledger=open_ledger(folder / "ledger.db"), bits=bits)


def _released(folder: Path, city: City, batch: Batch, console: Console) -> list[Released]:
    from dphmm.storage.released import released_table
    from dphmm.storage.tables import write_table

    with console.progress("release") as progress:
        try:
            rows = [row for chunk in batch.run(city.released_people, progress=progress) for row in chunk]
        finally:
            batch.ledger.close()
    write_table(folder / "released.parquet", released_table(rows, city.grid))
    return rows


def _written(folder: Path, city: City, batch: Batch, rows: list[Released], console: Console) -> Results:
    """The privacy statement, on disk, and what the page is made of."""
    from dphmm.cli.demo_report import demo_report
    from dphmm.storage.statement import Published, load_statement, privacy_statement, write_statement

    statement = privacy_statement(
        Published(rows),
        model=batch.setting.model,
        policy=batch.setting.policy,
        space=batch.setting.space,
        options=batch.setting.options,
        query=batch.setting.query,
        answer=batch.answer,
        model_people="others",
    )
    write_statement(folder / "released.parquet", statement)
    statement = load_statement(folder / "released.parquet")
    report = demo_report(folder / "released.parquet", city, batch, statement, console)
    return Results(batch, rows, statement, report)


def _states(city: City, people: Trajectories) -> Any:
    """The cell (n,) of every row."""
    assert people.lat is not None and people.lon is not None
    return city.grid.locate(people.lat, people.lon)
