"""dphmm synthesize: people whom a model invents, as a table like that of real people, and the statement beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, fields_named, print_json
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import force, loaded_model, messages, new_output, opened, output
from dphmm.statement.files import statement_path, write_statement
from dphmm.statement.parts import document
from dphmm.storage.release_folder import INDEX, ReleaseFolder
from dphmm.storage.tables import table_format
from dphmm.storage.trajectories import save_trajectories

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dphmm.markov.model import MarkovModel
    from dphmm.states.space import StateSpace

_FIELDS = {name: f"--{name}" for name in ("people", "steps", "begin", "seed", "like")}


@click.command("synthesize", cls=Command, context_settings=CONTEXT)
@click.argument("model", metavar="MODEL")
@click.option("--people", type=int, required=True, metavar="N", help="How many people.")
@click.option("--steps", type=int, required=True, metavar="T", help="Rows of each person.")
@output("synthetic.parquet")
@click.option(
    "--begin",
    metavar="TIME",
    help="The time of the first row, 2024-05-06T00:00Z  [default: steps are numbers, from 1]",
)
@click.option(
    "--like",
    metavar="FILE",
    help="Public totals that are kept: a table of state, people and perhaps step (1 without it).",
)
@click.option("--seed", type=int, metavar="N", help="Invent the same people every time.")
@force
@messages
def synthesize(**given: Any) -> None:
    """Write people whom a model invents, to share in place of real ones.

    MODEL is a model, or the folder of a release: then the model that was learned from its answers, else that of its
    plans. The rows depend on it, and on totals that are kept, alone. A model that was learned with privacy (fit
    --epsilon), or made from geometry, has lost what it loses already: the rows cost nothing beyond it. Of another the
    statement beside the rows says that nothing is promised. On a map people are anywhere in their cells.
    """
    from dphmm.statement.synthetic import SyntheticStatement

    console = Console(given["quiet"] or given["as_json"])
    model, space = _model(given["model"])
    inputs = [given["model"], *([] if given["like"] is None else [given["like"]])]
    new_output(given["output"], inputs, given["force"])
    table_format(given["output"], "-o")
    with fields_named(_FIELDS):
        statement = SyntheticStatement.of(model, given["people"], given["steps"], like=given["like"] is not None)
        trajectories = _drawn(model, space, given)
    save_trajectories(given["output"], trajectories, inputs=inputs)
    write_statement(given["output"], statement)
    if statement.private is not True:
        console.warn(statement.sentence())
    facts = {**document(statement), "rows": len(trajectories), "output": given["output"]}
    if given["as_json"]:
        print_json(facts)
        return
    console.say(
        [
            ("synthetic", f"{given['people']:,} invented people, {given['steps']:,} rows each"),
            ("guaranteed", statement.sentence()),
            ("written", f"{given['output']} and {statement_path(given['output']).name}"),
        ]
    )


def _model(path: str) -> tuple[MarkovModel, StateSpace]:
    """A model file and its space; of the folder or the table of a release, the model that was learned with it."""
    if not (ReleaseFolder.of(path).path / INDEX).is_file() or Path(path).suffix == ".npz":
        return loaded_model(path)
    model = opened(path, "MODEL").learned.model
    assert model.space is not None
    return model, model.space


def _drawn(model: MarkovModel, space: StateSpace, given: Mapping[str, Any]) -> Any:
    from dphmm.reconstruction.synthesis import synthesize
    from dphmm.storage.public_tables import totals_of

    like = None if given["like"] is None else totals_of(given["like"], space.names, "like")
    choices = {name: given[name] for name in ("people", "steps", "begin", "seed")}
    return synthesize(model, like=like, **choices)
