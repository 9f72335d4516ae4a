"""dphmm demo: a simulated city, from trajectories to a page, through the calls that real data goes through."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dphmm.accounting.promise import SequencePromise
from dphmm.cli.console import Console, Interrupted, Row, fields_named, print_json, stage_of
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import messages
from dphmm.errors import InvalidInput
from dphmm.evaluation.city import simulate_city
from dphmm.samplers.entropy import ReplayBits
from dphmm.statement.parts import document
from dphmm.statement.sentences import wrapped_row
from dphmm.storage.inputs import replacing
from dphmm.storage.ledger import open_ledger
from dphmm.storage.release_folder import COUNTS
from dphmm.storage.trajectories import save_trajectories

if TYPE_CHECKING:
    from dphmm.audit.released import ReleasedFile
    from dphmm.evaluation.city import City
    from dphmm.setup.released import Released
    from dphmm.setup.setup import Plan
    from dphmm.statement.story import Story
    from dphmm.types import FloatArray

#: What all answers about a person may lose together in a day.
TOTAL = 12
#: Two cells of the city: all places up to so far apart are hidden from each other.
COVERS = "680m"
#: Nobody in a city is faster, from door to door: a guess, as all of the model is.
MAX_SPEED = "20km/h"
#: Invented people that schedules are tried on, and those of other totals: what they would give is told less exactly.
INVENTED, INVENTED_FOR_OTHERS = 100, 25
#: What the demo writes; demo.json comes first and marks the folder as one that --force may clear.
FILES = ("demo.json", "people.parquet", "ledger.db", "ledger.db.commands.lock", "out", "out.owner", "report.html")
MARKER = FILES[0]
_DAY = 86_400


@click.command(cls=Command, context_settings=CONTEXT)
@click.option("--out", default="demo-out", show_default=True, metavar="DIR", help="The folder to write to.")
@click.option("--seed", type=int, metavar="N", help="Replayable noise: the same demo every time, NOT PRIVATE.")
@click.option("--people", type=int, default=30, show_default=True, help="People of the city.")
@click.option("--days", type=int, default=3, show_default=True, help="Days they are seen, every ten minutes.")
@click.option("--force", is_flag=True, help="Replace an earlier demo in the folder.")
@messages
def demo(out: str, seed: int | None, people: int, days: int, force: bool, quiet: bool, as_json: bool) -> None:
    """Run everything on a simulated city and end with a page of pictures; needs no input.

    Simulates commuters, makes a model from the map alone, plans when to ask so that all answers about a person lose at
    most 12 in a day, releases the positions under a policy that hides places up to 680 m apart, and checks the release.
    In DIR are people.parquet, the released folder out, ledger.db and report.html, which shows where they were.
    """
    console = Console(quiet=quiet or as_json)
    folder = Path(out)
    if people < 1:
        raise InvalidInput("--people", people, "1 or more")
    with fields_named({"days": "--days"}):
        # The other half is for models that are fitted: this one is not.
        city = simulate_city(people=2 * people, days=days)
    bits = None if seed is None else ReplayBits(seed)
    _prepare(folder, force)
    try:
        story, document, lines = _run(folder, city, bits, console)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"interrupted: {folder} holds part of a demo; --force starts again", stop) from None
    if as_json:
        print_json(document)
        return
    console.say([*story.rows(), *lines])
    click.echo(folder / "report.html")


def _prepare(folder: Path, force: bool) -> None:
    """Make the folder ready: new, or cleared of an earlier demo and of nothing else."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("--out", str(folder), "a folder")
    present = [name for name in FILES if (folder / name).exists()]
    if present and not force:
        got = f"{folder}, which holds {present[0]} already"
        raise InvalidInput("--out", got, "another folder, or --force to replace an earlier demo")
    if present and MARKER not in present:
        got = f"{folder}, which holds {present[0]} but no {MARKER}"
        raise InvalidInput("--force", got, "a folder that dphmm demo has made; nothing was deleted")
    for name in reversed(FILES):
        # A ledger has files beside it while it is open, or after a crash.
        for path in folder.glob(f"{name}*") if name == "ledger.db" else [folder / name]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidInput("--out", str(folder), "a folder that can be made") from None


def _run(
    folder: Path, city: City, bits: ReplayBits | None, console: Console
) -> tuple[Story, dict[str, Any], list[Row]]:
    """Everything from simulated people to the page: its story, the document of --json, and what else is told."""
    from dphmm.audit.released import ReleasedFile
    from dphmm.report import write_report
    from dphmm.report.content import Backdrop, TruePlaces

    if bits is not None:
        console.warn("made with replayable bits: whoever knows the seed can take the noise away")
    with replacing(folder / MARKER) as marker:
        marker.write_text(json.dumps({"made_by": "dphmm demo", "private": bits is None, "files": FILES[1:]}) + "\n")
    people = city.released_people
    assert people.time is not None
    days = len(np.unique(people.time)) * city.step // _DAY
    seen = f"{people.n_users} simulated people, {days} day{'s' * (days != 1)}"
    console.say([("", f"{city.name}: {seen}, a model made from the map alone")])
    save_trajectories(folder / "people.parquet", people)
    plan, ledger = _planned(city, console), folder / "ledger.db"
    open_ledger(ledger).close()
    with console.progress("release") as progress:
        released = plan.release(folder / "people.parquet", folder / "out", bits=bits, progress=progress or False)
    with open_ledger(ledger, read_only=True) as opened:
        with console.progress("check-release") as progress:
            stage_of(progress, "plans and rows")
            checked = released.checked(opened, ledger)
        file = ReleasedFile.read(released.folder.table, city.grid)
        truth = TruePlaces(_true_places(city, file), np.zeros(len(file), dtype=np.bool_), simulated=True)
        with console.progress("report") as progress:
            report = released.read_report(
                title=city.name,
                truth=truth,
                backdrop=Backdrop((city.river,), tuple(city.bridges), city.quarters),
                ledger=opened,
                progress=progress or False,
                stage=None if progress is None else progress.stage,
            )
            stage_of(progress, "drawing the page")
            write_report(folder / "report.html", report)
    word = f"CONVICTED: {'; '.join(checked.findings) or 'a plan'}" if checked.convicted else "nothing is wrong"
    lines = wrapped_row("measured", *report.measured_words)
    lines.append(("checked", f"{checked.rows:,} rows against ledger, statement and public data: {word}"))
    measured = None if report.truth is None else report.truth.document()
    numbers = {**_numbers(released), "measured": measured, "audit": checked.document(), **report.story.document()}
    return (
        report.story,
        {**numbers, "out": str(folder), "files": list(FILES), "report": str(folder / "report.html")},
        lines,
    )


def _planned(city: City, console: Console) -> Plan:
    """Model, policy and schedule, all from the map alone."""
    from dphmm.choose.planning import COMPARED, World
    from dphmm.markov.model import MarkovModel
    from dphmm.policy import radius
    from dphmm.setup.setup import Plan, Setup

    setup = Setup(MarkovModel.from_geometry(city.grid, city.step, MAX_SPEED), radius(city.grid, covers=COVERS))
    promise = SequencePromise(TOTAL, per="1d")
    public = (setup.model, setup.policy, setup.space, promise)
    world, fewer = (World(*public, people=people) for people in (INVENTED, INVENTED_FOR_OTHERS))
    with console.progress("plan") as progress:
        others = tuple(fewer.plans([TOTAL * share for share in COMPARED]))
        return Plan(setup, promise=promise, planned=replace(world.plan(TOTAL, progress), others=others))


def _numbers(released: Released) -> dict[str, Any]:
    statement, costs = released.statement, released.rows.query("epsilon > 0")["cost"]
    counts = json.loads((released.folder.owner / COUNTS).read_text(encoding="utf-8"))
    return {
        "rows": statement.published.rows,
        "subjects": statement.published.subjects,
        "epsilon": statement.epsilon,
        "covered_distance": document(statement)["covered_distance"],
        "cost": [float(costs.min()), float(costs.max())],
        "epsilon_sum": statement.totals.epsilon_sum,
        "cost_sum": statement.totals.cost_sum,
        "mechanisms": statement.mechanism.chosen,
        "private": statement.private,
        "owner_only": {"drifted": counts["drifted"]},
    }


def _true_places(city: City, file: ReleasedFile) -> FloatArray:
    """The true places (n, 2) of released rows: known only because the people are simulated."""
    people = city.released_people
    assert people.time is not None and people.lat is not None and people.lon is not None and file.times is not None
    places, moments = city.grid.projection.to_metres(people.lat, people.lon), people.time.tolist()
    at = {(people.users[u], t): row for row, (u, t) in enumerate(zip(people.user.tolist(), moments, strict=True))}
    return np.asarray(places[[at[key] for key in zip(file.users, file.times.tolist(), strict=True)]])
