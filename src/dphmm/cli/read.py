"""dphmm read: what may be concluded from a released file, for somebody who has no model."""

from __future__ import annotations

from typing import Any

import click

from dphmm.cli.console import Console, named, one_line, print_json
from dphmm.cli.options import CONTEXT, force, loaded_model, messages, new_output
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import checked_input
from dphmm.storage.tables import table_format, write_table

_OPTIONS = {
    "released": "RELEASED", "statement": "--statement", "plans": "--plans", "states": "--likelihood",
    "prior": "--prior", "coverage": "--coverage",
}  # fmt: skip


@click.command("read", context_settings=CONTEXT)
@click.argument("released", metavar="RELEASED")
@click.option("--statement", metavar="S", help="Its privacy statement, if not beside it.")
@click.option("--plans", metavar="FILE", help="Its plans in plain form, as dphmm audit --plans writes them.")
@click.option("--likelihood", "states", metavar="STATES", help="All states: a table (state, z_0, ...), or a model.")
@click.option("--prior", metavar="FILE", help="Your own prior: a table (state, probability).")
@click.option("--coverage", metavar="P", default="0.9", show_default=True, help="Of the region under --prior.")
@click.option("-o", "--output", metavar="out.parquet", help="Write a row for each answer, with its likelihoods.")
@force
@messages
def read(released: str, **given: Any) -> None:
    """Tell what may be concluded from a released file, and what not; no model is needed.

    With --plans and --likelihood, also how likely each answer is from each state; with --prior, too, the posterior of
    each answer by itself, and the fewest states that hold the true one with the coverage under that prior.
    """
    from dphmm.report.reading import read as read_released

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
        raise named(error, _OPTIONS) from None
    if table is not None:
        write_table(given["output"], table)
    if given["as_json"]:
        print_json({**found.document(), "output": given["output"]})
        return
    for line in found.lines:
        click.echo(one_line(line))
    if table is not None:
        Console(given["quiet"]).say([("", f"written to {given['output']}")])
