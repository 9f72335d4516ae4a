"""dphmm demo: a simulated city, from trajectories to a page, through the calls for real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dphmm.cli.console import Console, Row, print_json
from dphmm.cli.demo_run import FILES, MARKER, Results, run
from dphmm.cli.options import messages
from dphmm.cli.outcomes import Interrupted, named
from dphmm.errors import InvalidInput


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
    from dphmm.evaluation.city import simulate_city
    from dphmm.samplers.entropy import ReplayBits

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
    from dphmm.storage import statement_types

    report, statement = results.report, results.statement
    return {
        "rows": statement.published.rows,
        "subjects": statement.published.subjects,
        "mean_error_m": None if report.found is None else round(report.found.error, 1),
        "epsilon": statement.epsilon,
        "covered_distance": statement_types.document(statement)["covered_distance"],
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
    return [*results.story.rows(), ("audit", audit)]
