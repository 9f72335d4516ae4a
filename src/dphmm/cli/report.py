"""dphmm report: a release as one page to look at, and its pictures as files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, Row, fields_named, print_json, stage_of
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import force, messages, new_output, opened
from dphmm.errors import InvalidInput
from dphmm.storage.release_folder import OWNER

if TYPE_CHECKING:
    from dphmm.report.content import ReleaseReport


@click.command("report", cls=Command, context_settings=CONTEXT)
@click.argument("released", metavar="OUT")
@click.option("-o", "--output", metavar="FILE.html", help="The page  [default: report.html in OUT]")
@click.option(
    "--backdrop", metavar="G", help="A public map to lie under the page's: GeoJSON of water, roads and names."
)
@click.option("--truth", metavar="T", help="The trajectories, which only you have: page and attacks for you alone.")
@click.option("--user", "users", metavar="U", multiple=True, help="Whom to show step by step; may be repeated.")
@click.option("--title", metavar="TEXT", help="The heading of the page.")
@click.option("--figures", metavar="DIR", help="Also write the pictures, as SVG, to this folder.")
@click.option("--no-ledger", is_flag=True, help="Count the spent budget from the file, as a reader of OUT alone would.")
@force
@messages
def report(**given: Any) -> int:
    """Make one HTML page of a release: a map, the errors and the spent budget.

    What was published, what is guaranteed, what a reader can still find, what is not protected and what was spent; a
    map with what a reader believes of people step by step; how far off they are over the day, expected from public
    data; what another budget would give. The page loads nothing and opens from disk. The plans of its answers are made
    again from public data and must be those of the release. With --truth it also shows the measured errors and what
    adversaries made of the answers, is no longer a release, and lies in OUT.owner.
    """
    from dphmm.report.assembling import checked_title
    from dphmm.report.backdrop import read_backdrop
    from dphmm.report.page import refuse_public_page, write_report
    from dphmm.storage.table_ledger import opened_to_read

    console, output = Console(given["quiet"]), given["output"]
    with fields_named(_OPTIONS):
        released = opened(given["released"])
        if output is not None:
            inputs = [given[name] for name in ("backdrop", "truth") if given[name]]
            new_output(output, [released.folder.table, *inputs], given["force"])
            if Path(output).suffix.lower() not in (".html", ".htm"):
                raise InvalidInput("-o", output, "a name ending in .html")
            if given["truth"] is not None:
                refuse_public_page(Path(output), "-o")
        if given["title"] is not None:
            checked_title(given["title"], "--title")
        check_figures(given["figures"], replace=given["force"])
        if released.changed is not None:
            console.warn(released.changed)
        backdrop = None if given["backdrop"] is None else read_backdrop(given["backdrop"], released.space)
        with ExitStack() as held, console.progress("report") as progress:
            ledger = None
            if (released.folder.owner / OWNER).exists() and not given["no_ledger"]:
                ledger = held.enter_context(opened_to_read(released.folder.ledger()))
            made = released.read_report(
                users=given["users"],
                truth=given["truth"],
                title=given["title"] or "What was released",
                backdrop=backdrop,
                ledger=ledger,
                progress=progress or False,
                stage=None if progress is None else progress.stage,
            )
            attacks = None
            if made.truth is not None and made.truth.outside.all():
                console.warn("no row of --truth is in a state of the model: there is nothing to attack")
            elif given["truth"] is not None:
                stage_of(progress, "attacks with the truth")
                attacks = released.attacked(given["truth"], ledger)
            stage_of(progress, "drawing the page")
            path = released.written_report(made) if output is None else write_report(output, made)
            figures = [] if given["figures"] is None else write_figures(Path(given["figures"]), made)
    if made.owner_only:
        hint = "" if "owner" in path.name else f"; a name such as {path.stem}.owner.html would say so"
        reason = "shows where people truly were" if made.planar else "was measured against the truth"
        console.warn(f"{path.name} {reason}: for the data owner alone, readable by you only{hint}")
    if made.truth is not None and (made.truth.mean or 0.0) > made.truth.without:
        console.warn("the measured error is larger than without the file: is --truth the table that was released?")
    document = _document(made, path, figures) | ({} if attacks is None else {"attacks": attacks.document()})
    if given["as_json"]:
        print_json(document)
    console.say([*_summary(made, document), *[("", line) for line in ([] if attacks is None else attacks.lines)]])
    return 0


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
    } | (
        {}
        if made.truth is None
        else {"rows_in_no_state": int(made.truth.outside.sum()), "measured": made.truth.document()}
    )


def _summary(made: ReleaseReport, document: Mapping[str, Any]) -> list[Row]:
    from dphmm.statement.sentences import plural, wrapped_row

    rows: list[Row] = list(made.story.rows())
    rows += wrapped_row("measured", *made.measured_words)
    elsewhere = document.get("rows_in_no_state")
    if elsewhere:
        share = f"{100 * elsewhere / document['rows']:.1f} %"
        rows.append(("in no state", f"{elsewhere:,} rows ({share}), in none of the errors"))
    people = plural(document["subjects"], made.called["noun"], made.called["people"])
    rows.append(("step by step", f"{document['subjects_step_by_step']:,} of {people}"))
    rows.append(("written", f"{document['output']} ({document['bytes'] / 1e6:.1f} MB)"))
    return rows + ([("figures", str(len(document["figures"])))] if document["figures"] else [])


_OPTIONS = {
    "released": "OUT", "user": "--user", "ledger": "--ledger", "backdrop": "--backdrop", "truth": "--truth",
}  # fmt: skip


#: Every picture that a report may have.
_NAMES = ("map", "people", "error", "stays", "set")


def check_figures(folder: str | None, *, replace: bool) -> None:
    """Refuse, before any work, a folder that cannot take the pictures.

    That is one that cannot be made, or has such pictures (unless ``replace``).
    """
    if folder is None:
        return
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InvalidInput("--figures", folder, "a folder")
    if not Path(folder).absolute().parent.is_dir():
        raise InvalidInput("--figures", folder, "a folder that can be made")
    files = [Path(folder) / f"{name}{who}.svg" for name in _NAMES for who in ("", ".owner")]
    there = [path for path in files if path.exists()]
    if there and not replace:
        raise InvalidInput("--figures", f"{there[0]}, which exists", "another folder, or --force to replace it")


def write_figures(folder: Path, report: ReleaseReport) -> list[Path]:
    """Write every picture; those with the truth of real people are named so and readable by their owner alone."""
    from dphmm.report import figures

    folder.mkdir(exist_ok=True)
    paths = []
    for draw in (figures.belief, figures.strip, figures.error, figures.nights, figures.covered):
        figure = draw(report) if report.rows.asked.any() else None
        if figure is not None:
            path = folder / f"{figure.name}{'.owner' * figure.owner_only}.svg"
            paths.append(figures.marked(report, figure).save(path))
    return paths
