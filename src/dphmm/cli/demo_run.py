"""What the demo does: simulate, plan, release, smooth, audit, write, through the calls that real data goes through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dphmm.cli.console import Console, stage_of

if TYPE_CHECKING:
    from dphmm.audit.released import ReleasedVerdict
    from dphmm.batch import Batch, Released
    from dphmm.evaluation.city import City
    from dphmm.planning import World
    from dphmm.report.content import ReleaseReport
    from dphmm.samplers.entropy import ReplayBits
    from dphmm.schedule_plan import SchedulePlan
    from dphmm.storage.release_words import Story
    from dphmm.storage.statement_types import ReleaseStatement

#: What all answers about a person may lose together in a day.
TOTAL = 12
#: Two cells of the city: all places up to so far apart are hidden from each other.
COVERS = "680m"
#: Nobody in a city is faster, from door to door: a guess, as all of the model is.
MAX_SPEED = "20km/h"
#: Invented people that schedules are tried on.
INVENTED = 30
#: What the demo writes; demo.json comes first and marks the folder as one that --force may clear.
FILES = (
    "demo.json",
    "trajectories.parquet",
    "model.npz",
    "policy.json",
    "plan.json",
    "ledger.db",
    "released.parquet",
    "released.parquet.privacy.json",
    "smoothed.parquet",
    "report.html",
)
MARKER = FILES[0]
_DAY = 86_400


class Results(NamedTuple):
    """What a demo made."""

    batch: Batch
    rows: list[Released]
    statement: ReleaseStatement
    report: ReleaseReport
    story: Story
    verdict: ReleasedVerdict


def run(folder: Path, city: City, bits: ReplayBits | None, console: Console) -> Results:
    """Everything from simulated people to the page."""
    from dphmm.report import write_report
    from dphmm.storage.inputs import replacing
    from dphmm.storage.trajectories import save_trajectories

    if bits is not None:
        console.warn("made with replayable bits: whoever knows the seed can take the noise away")
    with replacing(folder / MARKER) as marker:
        marker.write_text(json.dumps({"made_by": "dphmm demo", "private": bits is None, "files": FILES[1:]}) + "\n")
    people = city.released_people
    assert people.time is not None
    days = len(np.unique(people.time)) * city.step // _DAY
    seen = f"{people.n_users} simulated people, {days} day{'s' * (days != 1)}"
    console.say([("", f"{city.name}: {seen}, a model made from the map alone")])
    save_trajectories(folder / "trajectories.parquet", people)
    world, plan = _planned(folder, city, console)
    batch = _ready(folder, world, plan, bits)
    rows = _released(folder, city, batch, console)
    results = _written(folder, city, batch, rows, console)
    with console.progress("report") as progress:
        stage_of(progress, "drawing the page")
        write_report(folder / "report.html", results.report)
    return results


def _planned(folder: Path, city: City, console: Console) -> tuple[World, SchedulePlan]:
    """Model, policy and schedule, all from the map alone, saved."""
    from dphmm.accounting.promise import SequencePromise
    from dphmm.markov.model import MarkovModel
    from dphmm.planning import World
    from dphmm.policy import radius
    from dphmm.schedule_plan import save_plan
    from dphmm.storage.models import save_model
    from dphmm.storage.policies import save_policy

    model = MarkovModel.from_geometry(city.grid, city.step, MAX_SPEED)
    policy = radius(city.grid, covers=COVERS)
    save_model(model, folder / "model.npz")
    save_policy(policy, folder / "policy.json", space=city.grid)
    world = World(model, policy, city.grid, SequencePromise(TOTAL, per="1d"), people=INVENTED)
    with console.progress("plan") as progress:
        plan = world.plan(TOTAL, progress)
    save_plan(plan, folder / "plan.json")
    return world, plan


def _ready(folder: Path, world: World, plan: SchedulePlan, bits: ReplayBits | None) -> Batch:
    """The ledger opened, ready to release."""
    from dphmm.batch import Batch
    from dphmm.storage.ledger import open_ledger

    public = (world.setting.model, world.setting.policy, world.setting.space)
    return Batch(*public, schedule=plan.schedule, ledger=open_ledger(folder / "ledger.db"), bits=bits)


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


def _written(
    folder: Path,
    city: City,
    batch: Batch,
    rows: list[Released],
    console: Console,
) -> Results:
    """The privacy statement, on disk, the audit of all that is there, and what the page is made of."""
    from dphmm.audit import check_released
    from dphmm.cli.demo_report import demo_report
    from dphmm.storage.ledger import open_ledger
    from dphmm.storage.statement import Published, load_statement, privacy_statement, write_statement

    released, setting = folder / "released.parquet", batch.setting
    statement = privacy_statement(
        Published(rows),
        model=setting.model,
        policy=setting.policy,
        space=setting.space,
        options=setting.options,
        query=setting.query,
        answer=batch.answer,
        model_people="others",
        known_by="model",
        sequence=batch.caps.promise,
        schedule=setting.schedule,
    )
    write_statement(released, statement)
    with open_ledger(folder / "ledger.db", read_only=True) as ledger, console.progress("audit") as progress:
        stage_of(progress, "rows of the released file")
        public = (setting.model, setting.policy, setting.space, setting.options.epsilon)
        verdict = check_released(released, *public, ledger=ledger)
    statement = load_statement(released)
    report = demo_report(folder, city, batch, statement, console)
    return Results(batch, rows, statement, report, report.story, verdict)
