"""dphmm population: where the people of a released file are, by region, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, aligned, named, one_line, print_json
from dphmm.cli.options import (
    CONTEXT,
    force,
    loaded_model,
    loaded_policy,
    messages,
    new_output,
    of_folder,
    released_under,
)
from dphmm.cli.smooth import ASKED, read_rows, release_subjects
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import checked_input, steady
from dphmm.storage.tables import table_format, write_table

if TYPE_CHECKING:
    from dphmm.reconstruction.population import Population
    from dphmm.reconstruction.regions import Regions
    from dphmm.reconstruction.shares import Share
    from dphmm.states.space import StateSpace

COSTS = "costs no privacy: computed from published rows and public files"
MEANING = (
    "linear: unbiased; low to high: its 90 % interval, for these people and for the population that they were drawn "
    "from; estimate: the likeliest density, which leans to where it started, and errs less where noise is large "
    "(docs/proofs/population-shares.md); who was in no state counts at the state that was answered in its place"
)
BEFORE = (
    "standard errors of the linear estimates from one answer of each person, if people were where the public guess has "
    "them; nothing has been released or spent"
)
#: Regions that are printed.
_SHOWN = 20
_OPTIONS = {"regions": "--regions", "per": "--per", "zone": "--zone", "flows": "--flows", "people": "--before"}


@click.command("population", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED", required=False)
@click.option("--model", metavar="M", help="Of a bare file: the model that the release was made with.")
@click.option("--policy", metavar="P", help="Of a bare file: the policy that the release was made with.")
@click.option(
    "--regions",
    metavar="FILE",
    help="A table (state, region), or GeoJSON polygons, to which a cell belongs by its middle  [default: blocks of "
    "cells, or every label]",
)
@click.option("--per", metavar="WORD", default="all", show_default=True, help="all, day or hour-of-day.")
@click.option("--zone", metavar="+HH:MM", default="+00:00", show_default=True, help="The clock of --per.")
@click.option("--flows", metavar="FILE", help="Also write the shares of origins and destinations of two answers.")
@click.option("--states", metavar="FILE", help="Also write the likeliest density over the states.")
@click.option("--before", type=int, metavar="N", help="Instead: what N people would tell, before anything is released.")
@click.option("-o", "--output", metavar="density.csv", help="The file to write (.csv or .parquet).")
@released_under
@force
@messages
def population(**given: Any) -> int:
    """Estimate shares of regions among the people of a released file, corrected for the noise.

    Computed from public data alone, so it costs no privacy, and anybody can do it. Each region has the likeliest share
    and an unbiased one with a 90 % interval. A region that separates states which the release answers alike is refused,
    with the states that would make it answerable; so is one that the model has in part only, or not at all. With
    --before N nothing is read: it tells the standard errors that a release of N people will have.
    """
    try:
        return _before(given) if given["before"] is not None else _after(given)
    except InvalidInput as error:
        raise named(error, _OPTIONS) from None


def _after(given: Mapping[str, Any]) -> int:
    from dphmm.reconstruction.population import population_of_rows

    console = Console(given["quiet"])
    if given["released"] is None:
        raise InvalidInput("RELEASED", "nothing", "a released file, or --before N")
    if given["output"] is None:
        raise InvalidInput("-o", "nothing", "the file to write")
    given = of_folder(given)
    path = checked_input(given["released"], "RELEASED")
    inputs = [path, *(given[name] for name in ("model", "policy", "regions") if given[name] is not None)]
    _check_outputs(given, inputs)
    model, space = loaded_model(given["model"])
    policy, space = loaded_policy(given["policy"], model)
    regions = _regions(given, space)
    with steady(path) as sha256:
        rows = read_rows(path, space)
    subjects, source = release_subjects(path, sha256, rows, (model, policy, space), given, console)
    with console.progress("population") as progress:
        found = population_of_rows(
            rows,
            subjects,
            regions,
            flows=given["flows"] is not None,
            per=given["per"],
            zone=given["zone"],
            schedule=_schedule(path),
            progress=progress,
        )
    written = _write(found, given, inputs)
    about_regions = _warned(console, regions)
    for note in found.notes:
        if note not in about_regions:
            console.note(note)
    document = {
        "periods": len(found.densities),
        "people": found.people,
        "answers": sum(one.answers for one in found.densities),
        "regions": len(found.densities[0].regions),
        "iterations": [one.iterations for one in found.densities],
        "starts": [one.start for one in found.densities],
        "persons_count_alike": found.public,
        "refused": sorted({share.region for one in found.densities for share in one.regions if share.why}),
        "shares": found.records() if len(found.densities) == 1 else [],
        "notes": list(found.notes),
        "options_from": source,
        "written": written,
        "privacy": COSTS,
        "meaning": MEANING,
    }
    if given["as_json"]:
        print_json(document)
        return 0
    if len(found.densities) == 1 and not given["quiet"]:
        for line in _lines(found.densities[0].regions):
            click.echo(line)
    console.say(
        [
            ("people", f"{document['people']:,} with {document['answers']:,} answers, {source}"),
            ("privacy", COSTS),
            ("written", ", ".join(written)),
            ("", MEANING),
        ]
    )
    return 0


def _before(given: Mapping[str, Any]) -> int:
    from dphmm.reconstruction.population import expected_errors

    if given["released"] is not None:
        raise InvalidInput("--before", given["before"], "no RELEASED with it: nothing is read")
    for name, option in (("output", "-o"), ("flows", "--flows"), ("states", "--states")):
        if given[name] is not None:
            raise InvalidInput(option, given[name], "no file with --before: it prints")
    model, space = loaded_model(given["model"])
    policy, space = loaded_policy(given["policy"], model)
    choices = {name: given[name] for name in ASKED if given[name] is not None}
    epsilon = "1" if given["epsilon"] is None else given["epsilon"]
    regions = _regions(given, space)
    found = expected_errors(model, policy, space, epsilon, given["before"], regions, **choices)
    notes = _warned(Console(given["quiet"]), regions)
    if given["as_json"]:
        shares = [
            {
                "region": one.region,
                "guess": one.linear,
                "standard_error": one.standard_error,
                "answerable": one.why or "yes",
            }
            for one in found
        ]
        print_json({"people": given["before"], "epsilon": epsilon, "shares": shares, "notes": notes, "meaning": BEFORE})
        return 0
    for line in _lines(found):
        click.echo(line)
    click.echo(BEFORE)
    return 0


def _regions(given: Mapping[str, Any], space: StateSpace) -> Regions | None:
    from dphmm.reconstruction.regions import read_regions

    return None if given["regions"] is None else read_regions(given["regions"], space, "--regions")


def _warned(console: Console, regions: Regions | None) -> list[str]:
    """Warn of what was given as regions and is none of the model's."""
    notes = [] if regions is None else regions.notes
    for note in notes:
        console.warn(note)
    return notes


def _schedule(path: Any) -> str | None:
    """Which schedule the statement beside a file tells of; "planned" where every step was asked."""
    from dphmm.statement.files import load_statement, statement_path

    if not statement_path(path).exists():
        return None
    schedule = load_statement(path).asking
    return "planned" if schedule is None else schedule.kind


def _check_outputs(given: Mapping[str, Any], inputs: Sequence[Any]) -> None:
    names = [(given["output"], "-o"), (given["flows"], "--flows"), (given["states"], "--states")]
    outputs = [(name, option) for name, option in names if name is not None]
    for name, option in outputs:
        table_format(name, option)
        new_output(name, inputs, given["force"])
    if len({name for name, _ in outputs}) < len(outputs):
        raise InvalidInput("--flows", "a file that is written already", "another file for each table")


def _write(found: Population, given: Mapping[str, Any], inputs: Sequence[Any]) -> list[str]:
    import pyarrow as pa

    written = []
    for name, rows in ((given["output"], found.records()), (given["flows"], found.records(flows=True))):
        if name is None:
            continue
        if not rows:
            raise InvalidInput("--flows", "nobody with two answers", "a release of several steps")
        write_table(name, pa.table({column: [row[column] for row in rows] for column in rows[0]}), inputs=inputs)
        written.append(name)
    if given["states"] is not None:
        try:
            table = found.density_table()
        except InvalidInput as wrong:
            raise named(wrong, {"population": "--states"}) from None
        write_table(given["states"], table, inputs=inputs)
        written.append(given["states"])
    return written


def _lines(shares: Sequence[Share]) -> list[str]:
    """A line for each region, the first twenty."""
    rows = [(one_line(one.region), _told(one)) for one in shares[:_SHOWN]]
    more = len(shares) - _SHOWN
    return [*aligned(rows), *([f"and {more} more regions, in the file"] if more > 0 else [])]


def _told(one: Share) -> str:
    likeliest = "" if one.estimate is None else f"{one.estimate:6.1%}  "
    if one.linear is None or one.low is None or one.high is None:
        return f"{likeliest}not answerable: {one_line(one.why)}"
    known = one.standard_error is not None and math.isfinite(one.standard_error)
    error = f"{one.standard_error:.2%}" if known else "unknown"
    cut = min(1.0, max(0.0, one.linear))
    beyond = "" if cut == one.linear else f" (cut from {one.linear:.0%})"
    return f"{likeliest}unbiased {cut:6.1%}{beyond}, {one.low:.1%} to {one.high:.1%}, standard error {error}"
