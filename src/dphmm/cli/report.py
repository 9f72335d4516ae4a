"""dphmm report: one released file as a page to look at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, Row, print_json, stage_of
from dphmm.cli.options import CONTEXT, force, made_table, messages, new_output, output, step_tables
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.report.content import ReleaseReport


@click.command("report", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED")
@click.option("--model", required=True, metavar="M", help="The model that the release was made with.")
@click.option("--policy", metavar="P", help="Its policy  [default: as the privacy statement describes it]")
@output("report.html")
@click.option("--ledger", metavar="L", help="The ledger it is stored in: totals over all its files, rows compared.")
@click.option(
    "--backdrop", metavar="G", help="A public map to lie under the page's: GeoJSON of water, roads and names."
)
@click.option("--smoothed", metavar="S", hidden=True, help="No longer needed: the page smooths the rows itself.")
@click.option("--truth", metavar="T", help="The trajectories, which only you have: the page is then for you alone.")
@click.option("--user", "users", metavar="U", multiple=True, help="Whom to show step by step; may be repeated.")
@click.option("--title", metavar="TEXT", help="The heading of the page.")
@click.option("--figures", metavar="DIR", help="Also write the pictures, as SVG and PNG, to this folder.")
@made_table
@step_tables
@force
@messages
def report(**given: Any) -> int:
    """Make one HTML page of a released file: to look at, to keep beside it, to give away with it.

    What was published, what is guaranteed, what a reader can still find, what is not protected and what was spent; a
    map with what a reader believes of people step by step; how far off they are over the day, expected from public
    data; what another budget would give. The page loads nothing and opens from disk. The plans of its answers are made
    again from public data and must be those of the release. With --truth it also shows the measured errors, and is no
    longer a release.
    """
    from dphmm.cli.report_figures import check_figures, write_figures
    from dphmm.cli.report_inputs import gathered
    from dphmm.report import write_report

    console = Console(given["quiet"])
    inputs = [
        given[name]
        for name in ("released", "model", "policy", "ledger", "backdrop", "truth", "choices", "initials")
        if given[name]
    ]
    new_output(given["output"], inputs, given["force"])
    if Path(given["output"]).suffix.lower() not in (".html", ".htm"):
        raise InvalidInput("-o", given["output"], "a name ending in .html")
    if given["title"] is not None:
        _check_title(given["title"])
    _check_kind(Path(given["output"]), given["truth"])
    check_figures(given["figures"], replace=given["force"])
    if given["smoothed"] is not None:
        console.warn("--smoothed is no longer needed: the page smooths the rows itself")
    with console.progress("report") as progress:
        made = gathered(given, console, progress)
        stage_of(progress, "drawing the page")
        path = write_report(given["output"], made)
        figures = [] if given["figures"] is None else write_figures(Path(given["figures"]), made)
    if made.owner_only:
        console.warn(_owner_words(path))
    document = _document(made, path, figures)
    if given["as_json"]:
        print_json(document)
    console.say(_summary(made, document))
    return 0


def _check_title(title: str) -> None:
    """Refuse a title that a name could not be: it stands in the page's heading, and in its title for the system."""
    from dphmm.states.space import FORBIDDEN, LONGEST_NAME

    expected = f"1 to {LONGEST_NAME} characters, without control characters or text-direction marks"
    if len(title) > LONGEST_NAME:
        raise InvalidInput("--title", f"{len(title):,} characters", expected)
    if not title.strip() or re.search(FORBIDDEN, title):
        raise InvalidInput("--title", ascii(title), expected)


def _check_kind(path: Path, truth: str | None) -> None:
    """Refuse to put the owner's page in the place of one that may have been given away, under the same name."""
    if truth is None or not path.is_file():
        return
    there = path.read_text(encoding="utf-8", errors="replace")
    if '<span class="kind">' in there and '<body class="owner-only">' not in there:
        came = f"{path}, a page without the truth"
        raise InvalidInput("-o", came, f"another name for the owner's page, as {path.stem}.owner{path.suffix}")


def _owner_words(path: Path) -> str:
    hint = "" if "owner" in path.name else f"; a name such as {path.stem}.owner.html would say so"
    return f"{path.name} shows where people truly were: for the data owner alone, readable by you only{hint}"


def _document(made: ReleaseReport, path: Path, figures: list[Path]) -> dict[str, Any]:
    return {
        **made.story.document(),
        "output": str(path),
        "bytes": path.stat().st_size,
        "rows": len(made.rows),
        "subjects": made.statement.published.subjects,
        "subjects_step_by_step": len(made.persons),
        "rows_step_by_step": sum(len(person.rows) for person in made.persons),
        "plans": None if made.made.subjects is None else len(made.plans),
        "owner_only": made.owner_only,
        "private": False if made.owner_only else made.statement.private,
        "figures": [str(figure) for figure in figures],
    } | ({} if made.truth is None else {"rows_in_no_state": int(made.truth.outside.sum())})


def _summary(made: ReleaseReport, document: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = list(made.story.rows(made.prospects.missing))
    elsewhere = document.get("rows_in_no_state")
    if elsewhere is not None:
        share = f"{100 * elsewhere / document['rows']:.1f} %"
        rows.append(("in no state", f"{elsewhere:,} rows ({share}), in none of the errors"))
    rows.append(("step by step", f"{document['subjects_step_by_step']:,} of {document['subjects']:,} people"))
    rows.append(("written", f"{document['output']} ({document['bytes'] / 1e6:.1f} MB)"))
    return rows + ([("figures", str(len(document["figures"])))] if document["figures"] else [])
