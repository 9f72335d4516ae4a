"""dphmm report: one released file as a page to look at, and its pictures as files.

dphmm read: what may be concluded from a released file, for somebody who has no model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, Row, named, one_line, print_json, stage_of
from dphmm.cli.options import (
    CONTEXT,
    force,
    loaded_model,
    loaded_policy,
    made_table,
    messages,
    new_output,
    of_folder,
    output,
    refuse_choices,
)
from dphmm.cli.smooth import release_subjects
from dphmm.errors import InvalidInput
from dphmm.statement.parts import member
from dphmm.storage.inputs import checked_input, steady
from dphmm.storage.tables import table_format, write_table

if TYPE_CHECKING:
    import pyarrow as pa

    from dphmm.accounting.ledger import Ledger
    from dphmm.audit.released import ReleasedFile
    from dphmm.choose.schedule_plan import SchedulePlan
    from dphmm.cli.console import Work
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.report.assembling import TrueRows
    from dphmm.report.content import Made, ReleaseReport
    from dphmm.session.setting import Subjects
    from dphmm.statement.release import ReleaseStatement
    from dphmm.states.space import StateSpace


@click.command("report", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED")
@click.option("--model", metavar="M", help="Of a bare file: the model that the release was made with.")
@click.option("--policy", metavar="P", help="Its policy  [default: as the privacy statement describes it]")
@output("report.html", required=False)
@click.option("--ledger", metavar="L", help="The ledger it is stored in: totals over all its files, rows compared.")
@click.option("--plan", metavar="FILE", help="The plan that it was released by: what other budgets would give.")
@click.option(
    "--backdrop", metavar="G", help="A public map to lie under the page's: GeoJSON of water, roads and names."
)
@click.option("--truth", metavar="T", help="The trajectories, which only you have: the page is then for you alone.")
@click.option("--user", "users", metavar="U", multiple=True, help="Whom to show step by step; may be repeated.")
@click.option("--title", metavar="TEXT", help="The heading of the page.")
@click.option("--figures", metavar="DIR", help="Also write the pictures, as SVG, to this folder.")
@made_table
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
    from dphmm.report import write_report
    from dphmm.report.assembling import checked_title
    from dphmm.report.page import refuse_public_page

    console = Console(given["quiet"])
    given = of_folder(given)
    place = given.get("place")
    if given["output"] is None:
        if place is None:
            raise InvalidInput("-o", "nothing", "the file to write; of the folder of a release it lies in that")
        owner = given["truth"] is not None
        page = place.owner / "report.owner.html" if owner else place.path / "report.html"
        given |= {"output": str(page), "force": True}
    inputs = [
        given[name] for name in ("released", "model", "policy", "ledger", "plan", "backdrop", "truth") if given[name]
    ]
    new_output(given["output"], inputs, given["force"])
    if Path(given["output"]).suffix.lower() not in (".html", ".htm"):
        raise InvalidInput("-o", given["output"], "a name ending in .html")
    if given["title"] is not None:
        checked_title(given["title"], "--title")
    if given["truth"] is not None:
        refuse_public_page(Path(given["output"]), "-o")
    check_figures(given["figures"], replace=given["force"])
    with console.progress("report") as progress:
        made = gathered(given, console, progress)
        stage_of(progress, "drawing the page")
        path = write_report(given["output"], made)
        figures = [] if given["figures"] is None else write_figures(Path(given["figures"]), made)
    if place is not None and path.parent == place.path:
        place.keep([path.name])
    if made.owner_only:
        hint = "" if "owner" in path.name else f"; a name such as {path.stem}.owner.html would say so"
        told = "shows where people truly were" if made.planar else "was measured against the truth"
        console.warn(f"{path.name} {told}: for the data owner alone, readable by you only{hint}")
    if made.truth is not None and (made.truth.mean or 0.0) > made.truth.without:
        console.warn("the measured error is larger than without the file: is --truth the table that was released?")
    document = _document(made, path, figures)
    if given["as_json"]:
        print_json(document)
    console.say(_summary(made, document))
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


_NOTHING_ELSE = dict.fromkeys(("epsilon", "constraint", "mechanism", "start", "protection"))
_OPTIONS = {
    "user": "--user",
    "ledger": "--ledger",
    "plan": "--plan",
    "backdrop": "--backdrop",
    "truth": "--truth",
    "released": "RELEASED",
}
_NO_POLICY = (
    "The policy was not given, and the privacy statement has only its hash: give --policy to see up to which distance "
    "places are covered, and what a reader believes."
)


def gathered(given: Mapping[str, Any], console: Console, progress: Work | None) -> ReleaseReport:
    """The report that the command line asks for. Raises InvalidInput."""
    from dphmm.audit.released import ReleasedFile

    path = checked_input(given["released"], "RELEASED")
    model, space = loaded_model(given["model"])
    try:
        with steady(path) as sha256:
            _check_model(path, given["model"], model)
            file = ReleasedFile.read(path, space)
        return _report(given, path, sha256, file, (model, space), console, progress)
    except InvalidInput as error:
        raise named(error, _OPTIONS) from None


def _report(
    given: Mapping[str, Any],
    path: Path,
    sha256: str,
    file: ReleasedFile,
    public: tuple[MarkovModel, StateSpace],
    console: Console,
    progress: Work | None,
) -> ReleaseReport:
    from dphmm.audit.attacks.truth import answer_of, begins_of
    from dphmm.report.assembling import release_report
    from dphmm.report.backdrop import read_backdrop
    from dphmm.storage.table_ledger import opened_to_read

    backdrop = None if given["backdrop"] is None else read_backdrop(given["backdrop"], public[1])
    with ExitStack() as held:
        ledger = None if given["ledger"] is None else held.enter_context(opened_to_read(given["ledger"]))
        made, notes = _made(given, path, sha256, file, public, console, ledger)
        query = made.statement.query
        known = (begins_of(ledger, query, file), answer_of(ledger, query, file, made.statement))
        return release_report(
            given["title"] or "What was released",
            # A file's name is somebody else's text, which may turn what stands around it about.
            one_line(path.name),
            file,
            made,
            users=given["users"],
            ledger=ledger,
            truth=None if given["truth"] is None else _truth(given["truth"], file, public, known),
            plan=None if given["plan"] is None else _plan(given["plan"], made),
            backdrop=backdrop,
            notes=notes,
            progress=progress,
            stage=None if progress is None else progress.stage,
        )


def _plan(path: str, made: Made) -> SchedulePlan:
    from dphmm.choose.schedule_plan import read_plan

    if made.policy is None:
        raise InvalidInput("plan", path, "the policy (--policy), which the plan was made for")
    return read_plan(path, made.model, made.policy, made.space)


def _truth(
    path: str, file: ReleasedFile, public: tuple[MarkovModel, StateSpace], known: tuple[Mapping[str, str], str | None]
) -> TrueRows:
    """The truth of the file's rows; ``known``: what is known of which rows were released."""
    from dphmm.audit.attacks.truth import truth_of
    from dphmm.report.assembling import TrueRows

    true = truth_of(file, path, *public, *known)
    return TrueRows(true.answers, true.outside)


def _check_model(path: Path, given: str, model: MarkovModel) -> None:
    """Refuse another model than the statement names, before the rows are read as answers of its states.

    Where there is no statement, the rows say more of what the file is.
    """
    from dphmm.statement.files import load_statement, statement_path

    beside = statement_path(path)
    if not beside.exists():
        return
    named_there = load_statement(path).model.sha256
    if named_there != model.digest:
        came = f"{one_line(Path(given).name)} (sha256 {model.digest[:12]})"
        made_with = f"sha256 {one_line(named_there[:12])} in {one_line(beside.name)}"
        raise InvalidInput("--model", came, f"the model that {one_line(path.name)} was made with ({made_with})")


def _made(
    given: Mapping[str, Any],
    path: Path,
    sha256: str,
    file: ReleasedFile,
    public: tuple[MarkovModel, StateSpace],
    console: Console,
    ledger: Ledger | None,
) -> tuple[Made, list[str]]:
    """What the release was made with, as its statement says and the files confirm; and notes for the page."""
    from dphmm.audit.check import require_confirmed
    from dphmm.report.content import Made
    from dphmm.statement.files import changed_words, load_statement, statement_path

    model, space = public
    name = one_line(statement_path(path).name)
    statement = load_statement(path)
    space = _as_merged(given, statement, model, space)
    if statement.space.sha256 != space.digest:
        raise InvalidInput("--model", f"another space than {name} names", "the model of the release")
    policy = _policy(given, statement, model, space)
    if policy is not None and policy.digest != statement.policy.sha256:
        raise InvalidInput("--policy", f"another policy than {name} names", "the policy of the release")
    refuse_choices(statement, path, "RELEASED")
    subjects = None if policy is None else _subjects(given, path, sha256, file, (model, policy, space), console)
    statement, left = require_confirmed(statement, path, file, model, space, policy, subjects, ledger)
    notes = []
    changed = changed_words(statement, statement_path(path), path, sha256)
    if changed is not None:
        notes.append(f"{one_line(path.name)} was changed since its privacy statement was written.")
        console.warn(changed)
    if policy is None:
        notes.append(_NO_POLICY)
    notes += [f"Not compared: {one}." for one in left]
    return Made(model, space, statement, subjects), notes


def _as_merged(
    given: Mapping[str, Any], statement: ReleaseStatement, model: MarkovModel, space: StateSpace
) -> StateSpace:
    """The space of the model with the states merged that the policy lists, or the statement without a policy."""
    if given["policy"] is not None:
        return loaded_policy(given["policy"], model)[1]
    pairs = member(statement, "space.merged.pairs")
    return space if pairs is None else space.merged(pairs)


def _policy(
    given: Mapping[str, Any], statement: ReleaseStatement, model: MarkovModel, space: StateSpace
) -> PolicyGraph | None:
    """The policy that was given, or the one that the statement describes, where it does."""
    from dphmm.policy.graph import from_description

    if given["policy"] is not None:
        return loaded_policy(given["policy"], model)[0]
    described = statement.policy
    if described.parameters is None:
        return None
    try:
        policy = from_description({**described.parameters, "kind": described.kind}, space, model)
    except InvalidInput:
        policy = None
    return policy if policy is not None and policy.digest == described.sha256 else None


def _subjects(
    given: Mapping[str, Any], path: Path, sha256: str, file: ReleasedFile, public: Any, console: Console
) -> Subjects:
    from dphmm.storage.released import ReleasedRows

    rows = ReleasedRows(file.users, None, file.step, file.lattice, file.epsilon, file.plans)
    return release_subjects(path, sha256, rows, public, _NOTHING_ELSE, console)[0]


#: Every picture that a report may have.
_NAMES = ("map", "people", "error", "stays", "set")


def check_figures(
    folder: str | None, names: Sequence[str] = _NAMES, suffixes: Sequence[str] = (".svg",), *, replace: bool
) -> None:
    """Refuse, before any work, a folder that cannot take the pictures.

    That is one that cannot be made, or has such pictures (unless ``replace``).
    """
    if folder is None:
        return
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InvalidInput("--figures", folder, "a folder")
    if not Path(folder).absolute().parent.is_dir():
        raise InvalidInput("--figures", folder, "a folder that can be made")
    files = [Path(folder) / f"{name}{who}{suffix}" for name in names for who in ("", ".owner") for suffix in suffixes]
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


_OPTIONS_OF_READ = {
    "released": "RELEASED", "statement": "--statement", "plans": "--plans", "states": "--likelihood",
    "prior": "--prior", "coverage": "--coverage",
}  # fmt: skip


@click.command("read", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED")
@click.option("--statement", metavar="S", help="Its privacy statement, if not beside it.")
@click.option("--sentences", is_flag=True, help="Every sentence of its privacy statement, and nothing else.")
@click.option("--plans", metavar="FILE", help="Its plans in plain form, as dphmm check-release --plain writes them.")
@click.option("--likelihood", "states", metavar="STATES", help="All states: a table (state, z_0, ...), or a model.")
@click.option("--prior", metavar="FILE", help="Your own prior: a table (state, probability).")
@click.option("--coverage", metavar="P", default="0.9", show_default=True, help="Of the region under --prior.")
@click.option("-o", "--output", metavar="out.parquet", help="Write a row for each answer, with its likelihoods.")
@force
@messages
def read(released: str, **given: Any) -> None:
    """Tell what may be concluded from a released file, and what not; no model is needed.

    With --plans and --likelihood, also how likely each answer is from each state; with --prior, too, the posterior of
    each answer by itself, and the fewest states that hold the true one with the coverage under that prior. A prior is
    refused where earlier answers chose plans (a delta-set) or when to ask (a paced schedule).
    """
    from dphmm.audit.reading import read as read_released

    released = of_folder({"released": released})["released"]
    states = given["states"]
    if given["output"] is not None:
        table_format(given["output"], "-o")
        inputs = [released, *(given[name] for name in ("statement", "plans", "states", "prior") if given[name])]
        new_output(given["output"], inputs, given["force"])
    try:
        checked_input(released, "released")
        if states is not None and states.endswith(".npz"):
            states = loaded_model(states)[1]
        found = read_released(
            released,
            statement=given["statement"],
            plans=given["plans"],
            states=states,
            prior=given["prior"],
            coverage=given["coverage"],
        )
        table = None if given["output"] is None else found.to_arrow()
    except InvalidInput as error:
        raise named(error, _OPTIONS_OF_READ) from None
    if table is not None:
        lists = table_format(given["output"], "-o") == ".parquet"
        write_table(given["output"], table if lists else _in_csv(table))
    console = Console(given["quiet"])
    if found.changed is not None:
        console.warn(found.changed)
    if given["as_json"]:
        print_json({**found.document(), "output": given["output"]})
        return
    lines = found.lines
    if given["sentences"]:
        if found.statement is None:
            raise InvalidInput("--sentences", "no privacy statement", "one beside the file, or --statement S")
        lines = [f"{name}: {sentence}" for name, sentence in found.statement.rows()]
    for line in lines:
        click.echo(one_line(line))
    if table is not None:
        console.say([("", f"written to {given['output']}")])


def _in_csv(table: pa.Table) -> pa.Table:
    """The table with its regions as JSON lists: CSV has none, and names may have any separator in them."""
    if "region" not in table.column_names:
        return table
    told = [json.dumps(region, ensure_ascii=False) for region in table.column("region").to_pylist()]
    return table.set_column(table.column_names.index("region"), "region", [told])
