"""dphmm demo: a simulated city, from trajectories to a page, through the calls that real data goes through."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from dphmm.accounting.promise import SequencePromise
from dphmm.cli.console import Console, Interrupted, Row, named, print_json, stage_of
from dphmm.cli.options import messages
from dphmm.errors import InvalidInput
from dphmm.evaluation.city import simulate_city
from dphmm.samplers.entropy import ReplayBits
from dphmm.statement.parts import document
from dphmm.statement.sentences import wrapped_row
from dphmm.storage.inputs import replacing
from dphmm.storage.ledger import open_ledger
from dphmm.storage.tables import read_table, write_table
from dphmm.storage.trajectories import save_trajectories

if TYPE_CHECKING:
    from dphmm.audit import CheckedRelease
    from dphmm.audit.released import ReleasedFile
    from dphmm.batch import Batch, Released
    from dphmm.choose.planning import World
    from dphmm.choose.schedule_plan import SchedulePlan
    from dphmm.evaluation.city import City
    from dphmm.report.content import ReleaseReport
    from dphmm.statement.release import ReleaseStatement
    from dphmm.statement.story import Story
    from dphmm.types import FloatArray


@click.command()
@click.option("--out", default="demo-out", show_default=True, metavar="DIR", help="The folder to write to.")
@click.option("--seed", type=int, metavar="N", help="Replayable noise: the same demo every time, NOT PRIVATE.")
@click.option("--people", type=int, default=30, show_default=True, help="People of the city.")
@click.option("--days", type=int, default=3, show_default=True, help="Days they are seen, every ten minutes.")
@click.option("--force", is_flag=True, help="Replace an earlier demo in the folder.")
@messages
def demo(out: str, seed: int | None, people: int, days: int, force: bool, quiet: bool, as_json: bool) -> None:
    """Run everything on a simulated city and end with a page of pictures; needs no input.

    Simulates commuters, makes a model from the map alone, plans when to ask so that all answers about a person lose at
    most 12 in a day, releases the positions under a policy that hides places up to 680 m apart, smooths and audits
    them, and writes trajectories, model, policy, plan, ledger, released table, privacy statement and report.html.
    """
    console = Console(quiet=quiet or as_json)
    folder = Path(out)
    if people < 1:
        raise InvalidInput("--people", people, "1 or more")
    try:
        # The other half is for models that are fitted: this one is not.
        city = simulate_city(people=2 * people, days=days)
    except InvalidInput as error:
        raise named(error, {"days": "--days"}) from None
    bits = None if seed is None else ReplayBits(seed)
    _prepare(folder, force)
    try:
        results = run(folder, city, bits, console)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"interrupted: {folder} holds part of a demo; --force starts again", stop) from None
    if as_json:
        print_json(_document(folder, results))
        return
    console.say(_summary(results))
    click.echo(folder / "report.html")


def _prepare(folder: Path, force: bool) -> None:
    """Make the folder ready: new, or cleared of an earlier demo and of nothing else."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("--out", str(folder), "a folder")
    present = [name for name in FILES if (folder / name).exists()]
    if present and not force:
        came = f"{folder}, which holds {present[0]} already"
        raise InvalidInput("--out", came, "another folder, or --force to replace an earlier demo")
    if present and MARKER not in present:
        came = f"{folder}, which holds {present[0]} but no {MARKER}"
        raise InvalidInput("--force", came, "a folder that dphmm demo has made; nothing was deleted")
    for name in reversed(FILES):
        # A ledger has files beside it while it is open, or after a crash.
        for path in folder.glob(f"{name}*") if name == "ledger.db" else [folder / name]:
            path.unlink(missing_ok=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidInput("--out", str(folder), "a folder that can be made") from None


def _numbers(results: Results) -> dict[str, Any]:
    report, statement = results.report, results.statement
    return {
        "rows": statement.published.rows,
        "subjects": statement.published.subjects,
        "measured": None if report.truth is None else report.truth.document(),
        "epsilon": statement.epsilon,
        "covered_distance": document(statement)["covered_distance"],
        "cost": _costs(results),
        "epsilon_sum": statement.totals.epsilon_sum,
        "cost_sum": statement.totals.cost_sum,
        "mechanisms": statement.mechanism.chosen,
        "private": statement.private,
        "audit": results.verdict.document(),
        **results.story.document(),
        "owner_only": {"drifted": results.batch.report.drifted},
    }


def _costs(results: Results) -> list[float]:
    """The least and the largest cost of an answer."""
    cost = [row.release.cost for row in results.rows if row.release.z is not None]
    return [float(min(cost)), float(max(cost))]


def _document(folder: Path, results: Results) -> dict[str, Any]:
    return {
        **_numbers(results),
        "out": str(folder),
        "files": list(FILES),
        "report": str(folder / "report.html"),
    }


def _summary(results: Results) -> list[Row]:
    verdict = results.verdict
    word = f"CONVICTED: {'; '.join(verdict.findings) or 'a plan'}" if verdict.convicted else "nothing is wrong"
    audit = f"{verdict.rows:,} rows against ledger, statement and public data: {word}"
    measured = wrapped_row("measured", *results.report.measured_words)
    return [*results.story.rows(), *measured, ("audit", audit)]


#: What all answers about a person may lose together in a day.
TOTAL = 12
#: Two cells of the city: all places up to so far apart are hidden from each other.
COVERS = "680m"
#: Nobody in a city is faster, from door to door: a guess, as all of the model is.
MAX_SPEED = "20km/h"
#: Invented people that schedules are tried on, and those of other totals: what they would give is told less exactly.
INVENTED, INVENTED_FOR_OTHERS = 100, 25
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
    verdict: CheckedRelease


def run(folder: Path, city: City, bits: ReplayBits | None, console: Console) -> Results:
    """Everything from simulated people to the page."""
    from dphmm.report import write_report

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
    results = _written(folder, city, batch, rows, plan, console)
    with console.progress("report") as progress:
        stage_of(progress, "drawing the page")
        write_report(folder / "report.html", results.report)
    return results


def _planned(folder: Path, city: City, console: Console) -> tuple[World, SchedulePlan]:
    """Model, policy and schedule, all from the map alone, saved."""
    from dphmm.choose.planning import COMPARED, World
    from dphmm.choose.schedule_plan import save_plan
    from dphmm.markov.model import MarkovModel
    from dphmm.policy import radius
    from dphmm.storage.models import save_model
    from dphmm.storage.policies import save_policy

    model = MarkovModel.from_geometry(city.grid, city.step, MAX_SPEED)
    policy = radius(city.grid, covers=COVERS)
    save_model(model, folder / "model.npz")
    save_policy(policy, folder / "policy.json", space=city.grid)
    public = (model, policy, city.grid, SequencePromise(TOTAL, per="1d"))
    world, fewer = (World(*public, people=people) for people in (INVENTED, INVENTED_FOR_OTHERS))
    with console.progress("plan") as progress:
        others = tuple(fewer.plans([TOTAL * share for share in COMPARED]))
        plan = replace(world.plan(TOTAL, progress), others=others)
    save_plan(plan, folder / "plan.json")
    return world, plan


def _ready(folder: Path, world: World, plan: SchedulePlan, bits: ReplayBits | None) -> Batch:
    """The ledger opened, ready to release."""
    from dphmm.batch import Batch

    public = (world.setting.model, world.setting.policy, world.setting.space)
    return Batch(*public, schedule=plan.schedule, ledger=open_ledger(folder / "ledger.db"), bits=bits)


def _released(folder: Path, city: City, batch: Batch, console: Console) -> list[Released]:
    from dphmm.storage.released import released_table

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
    plan: SchedulePlan,
    console: Console,
) -> Results:
    """The privacy statement, on disk, the audit of all that is there, and what the page is made of."""
    from dphmm.audit import check_release
    from dphmm.statement.files import load_statement, write_statement
    from dphmm.storage.released import Published

    released, setting = folder / "released.parquet", batch.setting
    statement = batch.statement(Published(rows), "others", known_by="model")
    write_statement(released, statement)
    with open_ledger(folder / "ledger.db", read_only=True) as ledger, console.progress("audit") as progress:
        stage_of(progress, "rows of the released file")
        public = (setting.model, setting.policy, setting.space)
        verdict = check_release(released, *public, ledger=ledger, ledger_file=folder / "ledger.db")
    statement = load_statement(released)
    report = demo_report(folder, city, batch, statement, plan, console)
    return Results(batch, rows, statement, report, report.story, verdict)


def demo_report(
    folder: Path, city: City, batch: Batch, statement: ReleaseStatement, plan: SchedulePlan, console: Console
) -> ReleaseReport:
    """The report of the answers; the smoothed rows are written too."""
    from dphmm.audit.released import ReleasedFile
    from dphmm.decoding import smooth_rows
    from dphmm.report.assembling import TrueRows, release_report
    from dphmm.report.content import Backdrop, Made
    from dphmm.session.setting import Subjects
    from dphmm.storage.released import released_rows, smoothed_table

    setting, path = batch.setting, folder / "released.parquet"
    rows = released_rows(read_table(path), city.grid)
    with console.progress("smooth") as progress:
        smoothed = smooth_rows(rows, Subjects(setting), progress=progress)
    write_table(folder / "smoothed.parquet", smoothed_table(rows, smoothed, city.grid))
    file = ReleasedFile.read(path, city.grid)
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
            truth=TrueRows(_true_places(city, file), np.zeros(len(file), dtype=np.bool_), simulated=True),
            plan=plan,
            backdrop=Backdrop((city.river,), tuple(city.bridges)),
        )


def _true_places(city: City, file: ReleasedFile) -> FloatArray:
    """The true places (n, 2) of released rows: known only because the people are simulated."""
    people = city.released_people
    assert people.time is not None and people.lat is not None and people.lon is not None and file.times is not None
    places, moments = city.grid.projection.to_metres(people.lat, people.lon), people.time.tolist()
    at = {(people.users[u], t): row for row, (u, t) in enumerate(zip(people.user.tolist(), moments, strict=True))}
    return np.asarray(places[[at[key] for key in zip(file.users, file.times.tolist(), strict=True)]])
