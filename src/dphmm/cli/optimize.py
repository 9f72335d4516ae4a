"""dphmm optimize: a mechanism made once for a model and a policy, and certified."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dphmm._checks import exact_epsilon, stated_epsilon
from dphmm.accounting.records import in_short
from dphmm.cli.console import Console, print_json
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import force, loaded_model, loaded_policy, loaded_setting, messages, new_output
from dphmm.errors import DphmmError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from dphmm.markov.model import MarkovModel
    from dphmm.mechanisms.answer_table import MadeTable
    from dphmm.mechanisms.table_program import Round
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace

_LOSSES = ("squared", "distance", "label")


@click.command("optimize", cls=Command, context_settings=CONTEXT)
@click.argument("model", metavar="MODEL")
@click.option("--policy", required=True, metavar="P", help="The policy, as dphmm policy writes it.")
@click.option("--epsilon", required=True, metavar="E", help="The promise of each release.")
@click.option(
    "--loss",
    metavar="WORD",
    help="What is least in the mean: squared distance, distance, label (right or wrong), or a table of costs: a row "
    "and a column for each state, by name (.csv, .parquet).  [default: squared; of labels: label]",
)
@click.option(
    "--gap",
    type=float,
    default=1.05,
    show_default=True,
    help="With many answers: stop when the mean cost is within this ratio of the proved lower bound.",
)
@click.option("-o", "--output", required=True, metavar="table.npz", help="Where the table is written.")
@force
@messages
def optimize(model: str, as_json: bool, quiet: bool, **given: Any) -> None:
    """Make a table: of all mechanisms with this promise, one whose mean cost is least, or is proved to be near it.

    For up to 400 different answers. It is solved once, from public data alone, weighted by how often people are in each
    state (a model's occupancy; alike without one), and kept as whole numbers, which every use certifies again. Then
    the policy once more, with --setting mechanism table.npz, for releases of the same model and epsilon.
    """
    from dphmm.choose.optimizing import optimize as made_of
    from dphmm.storage.made_tables import save_table

    path = Path(given["output"])
    if path.suffix != ".npz":
        raise InvalidInput("-o", given["output"], "a name ending in .npz, by which a policy knows a table")
    costs = None if given["loss"] in (None, *_LOSSES) else given["loss"]
    new_output(path, [model, given["policy"], *([] if costs is None else [costs])], given["force"])
    chain, space = loaded_model(model)
    policy, space = loaded_policy(given["policy"], chain)
    loss = given["loss"] if costs is None else _costs(costs, space)
    console = Console(quiet=quiet or as_json)
    protection = loaded_setting(given["policy"], space).get("protection", "auto")
    epsilon = exact_epsilon(stated_epsilon(given["epsilon"]))
    table = made_of(
        chain, policy, space, epsilon, loss=loss, gap=given["gap"], protection=protection,
        progress=_told(console),
    )  # fmt: skip
    save_table(table, path)
    otherwise = _otherwise(chain, policy, space, table, protection)
    if as_json:
        print_json(_document(table, chain, space, path, otherwise))
    else:
        console.say([("", line) for line in _lines(table, chain, space, path, otherwise)])


def _costs(path: str, space: StateSpace) -> Any:
    from dphmm.storage.public_tables import read_costs

    if not Path(path).suffix:
        raise InvalidInput("--loss", path, f"{', '.join(_LOSSES)}, or a table of costs (.csv, .parquet)")
    return read_costs(path, space.names, "--loss")


def _told(console: Console) -> Callable[[Round], None] | None:
    """A line for every round."""
    if console.quiet:
        return None

    def tell(one: Round) -> None:
        ratio = f"at most {one.value / one.bound:.4g} times the least" if one.bound > 0 else "no bound yet"
        console.note(f"round {one.number}: {one.columns} columns, {ratio}, {one.seconds:.0f} s")

    return tell


def _otherwise(
    model: MarkovModel, policy: PolicyGraph, space: StateSpace, table: MadeTable, protection: str
) -> float | None:
    """The error of mechanism auto in the same place: root mean square, of labels the share wrong; None if refused."""

    from dphmm.choose.lonely import shown_error
    from dphmm.session.setting import Setting

    everywhere = np.ones(space.n_states, dtype=np.bool_)
    try:
        setting = Setting.of(model, policy, space, table.epsilon, protection=protection)
        return float(shown_error(setting.planner.plan(everywhere, everywhere), space, model))
    except DphmmError:
        return None


def _document(
    table: MadeTable, model: MarkovModel, space: StateSpace, path: Path, otherwise: float | None
) -> dict[str, Any]:
    making = table.making
    assert making is not None
    return {
        "output": str(path),
        "table": table.digest,
        "epsilon": str(table.epsilon),
        "answers": len(table.law.points),
        "edges": len(table.edges),
        "loss": making.loss,
        "weighted_by": _weighted(model),
        "method": making.method,
        "mean_cost": making.cost,
        "least_cost_of_all": making.bound or None,
        "certified_ratio": making.certified_ratio,
        "share_wrong" if space.has_labels else "expected_error": _error(table, space),
        "auto": otherwise,
    }


def _error(table: MadeTable, space: StateSpace) -> float:
    return table.expected_error if space.has_labels else math.sqrt(table.expected_error)


def _weighted(model: MarkovModel) -> str:
    return "all states alike" if model.occupancy_weights is None else "the model's occupancy"


def _lines(table: MadeTable, model: MarkovModel, space: StateSpace, path: Path, otherwise: float | None) -> list[str]:

    making = table.making
    assert making is not None
    ratio = making.certified_ratio
    proved = "how near that is to the least is not known"
    if ratio is not None:
        # Rounded up: it is a bound.
        above = math.ceil(ratio * 1e4) / 1e4
        proved = f"proved to be at most {above:.4f} times the least of all mechanisms with this promise"
    lines = [
        f"{path}: {len(table.law.points)} answers, {len(table.edges)} edges, epsilon {in_short(table.epsilon)}, "
        f"weighted by {_weighted(model)}",
        f"mean cost ({_LOSS_WORDS[making.loss]}) {making.cost:.6g}: {proved}",
    ]
    unit = "" if space.has_labels else " m" if space.on_map else ""
    if otherwise is not None:
        error = _error(table, space)
        if space.has_labels:
            lines.append(f"labels wrong as released: {error:.1%}, with mechanism auto {otherwise:.1%}")
        else:
            lines.append(
                f"root mean square error of the answers: {error:.6g}{unit}, with mechanism auto {otherwise:.6g}{unit}"
            )
    return [
        *lines,
        f"use it with: dphmm policy ... --setting mechanism {path} (same model, policy, epsilon and protection)",
    ]


_LOSS_WORDS = {
    "squared": "squared distance",
    "distance": "distance",
    "label": "share named wrongly",
    "custom": "your costs",
}
