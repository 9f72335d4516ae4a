"""dphmm tune: which policy, epsilon and mechanism reach what a release is for; as lines, as JSON and as a figure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm._checks import exact_number
from dphmm.choose.details import remedy_line
from dphmm.cli.console import Console, named, print_json
from dphmm.cli.options import (
    CONTEXT,
    force,
    length,
    loaded_model,
    loaded_policy,
    messages,
    new_output,
    plan_choices,
)
from dphmm.cli.report import check_figures
from dphmm.errors import DphmmError, InvalidInput
from dphmm.evaluation.tune import efficient
from dphmm.evaluation.tuning import EPSILONS, Tuning, written
from dphmm.evaluation.tuning import tune as tune_settings
from dphmm.plot.figures import TRADE_OFF, can_draw, save
from dphmm.storage.inputs import checked_output
from dphmm.storage.policies import save_policy
from dphmm.storage.tables import table_format, write_table

if TYPE_CHECKING:
    import pandas as pd

    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace

_HEADS = (
    "policy", "mechanism", "epsilon", "error of z", "of the estimate", "at most", "least DoP", "mean DoP", "cost", "",
)  # fmt: skip
#: What the errors of walks of the model leave out.
_ON_A_MAP = (
    ", from the middle of the cells of people who move as the model says (report --truth measures from the places of "
    "real ones, and tells the share of rows in no cell)"
)
#: The options that arguments of the library are given by.
_OPTIONS = {
    "target_error": "--target-error", "target_dop": "--target-dop", "epsilons": "--epsilon", "policies": "--policy",
    "mechanism": "--mechanism", "runs": "--runs", "steps": "--steps", "seed": "--seed",
}  # fmt: skip


@click.command("tune", context_settings=CONTEXT)
@click.argument("model", metavar="MODEL")
@click.option("--target-error", metavar="LENGTH", help="Root mean square error of the estimate to stay within.")
@click.option("--target-dop", type=int, metavar="N", help="Every possible state hides among at least N.")
@click.option("-o", "--output", metavar="policy.json", help="Write the recommended policy.")
@click.option("--epsilon", multiple=True, metavar="E", help=f"Try this one; again and again  [{', '.join(EPSILONS)}]")
@click.option("--radius", multiple=True, metavar="LENGTH", help="Try this radius policy; again and again  [a few]")
@click.option("--policy", multiple=True, metavar="P", help="Try this policy file too; again and again.")
@click.option("--steps", type=int, default=20, show_default=True, help="Releases of each simulated walk.")
@click.option("--runs", type=int, default=20, show_default=True, help="Simulated walks for each setting.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same walks and the same noise again.")
@click.option("--table", metavar="FILE", help="Write every setting that was tried (.parquet, .csv).")
@click.option("--figures", metavar="DIR", help="Draw the trade-off into this folder (.svg and .png).")
@plan_choices
@force
@messages
def tune(model: str, as_json: bool, quiet: bool, **given: Any) -> None:
    """Try policies, epsilons and mechanisms on walks of the model itself, and recommend a setting.

    Nothing but public information is used: the model, the policies and the options. Errors are those of people who
    move as the model says. With --mechanism auto (as without) both exact mechanisms are tried.
    """

    chain, space = loaded_model(model)
    error = given["target_error"]
    error = None if error is None else _length(error, "--target-error", space)
    _check_outputs(model, given, targeted=error is not None or given["target_dop"] is not None)
    policies, spaces = _policies(chain, given["policy"])
    console = Console(quiet=quiet or as_json)
    choices = {name: given[name] for name in ("mechanism", "constraint", "start", "protection")}
    with console.progress("settings") as progress:
        try:
            found = tune_settings(
                chain,
                space,
                target_error=error,
                target_dop=given["target_dop"],
                epsilons=_different(given["epsilon"]) or EPSILONS,
                radii=_radii(given["radius"], space),
                policies=policies,
                spaces=spaces,
                steps=given["steps"],
                runs=given["runs"],
                seed=given["seed"],
                progress=progress or False,
                **choices,
            )
        except InvalidInput as wrong:
            raise named(wrong, _OPTIONS) from None
    _write(found.table, given)
    if found.policy is not None and given["output"] is not None:
        save_policy(found.policy, given["output"], found.policy_space, chain)
    if as_json:
        print_json(found.document() | {"policy": given["output"] if found.policy is not None else None})
    else:
        click.echo("\n".join(told(found)))
        console.say([("", f"{twin} is the same policy as {name}: tried once") for twin, name in found.same.items()])
        console.say([("", f"would help: {remedy_line(one, space)}") for one in found.remedies])
        console.say([("", line) for line in headline(found, given)])
    if found.missed is not None:
        raise DphmmError(found.missed)


def _length(text: str, option: str, space: StateSpace) -> Any:
    """Metres on a map, answer units elsewhere."""

    return length(text, option) if space.on_map else exact_number(text, option)


def _different(epsilons: Sequence[str]) -> tuple[str, ...]:
    """Each once, whichever way it is written."""

    return tuple({exact_number(text, "--epsilon"): text for text in epsilons}.values())


def _radii(texts: Sequence[str], space: StateSpace) -> tuple[Any, ...] | None:
    radii = tuple(_length(text, "--radius", space) for text in texts)
    if radii and min(radii) <= 0:
        raise InvalidInput("--radius", texts[radii.index(min(radii))], "a length greater than 0")
    return radii or None


def _policies(model: MarkovModel, paths: Sequence[str]) -> tuple[dict[str, PolicyGraph], dict[str, StateSpace]]:
    """The policies of files by the names of these, and their spaces: lonely states may be merged."""
    policies: dict[str, PolicyGraph] = {}
    spaces: dict[str, StateSpace] = {}
    for path in paths:
        name = Path(path).name
        if name in policies:
            raise InvalidInput("--policy", f"another policy of the name {name!r}", "files of different names")
        policies[name], spaces[name] = loaded_policy(path, model)
    return policies, spaces


def _check_outputs(model: str, given: Mapping[str, Any], *, targeted: bool) -> None:

    inputs: Sequence[str] = (model, *given["policy"])
    if given["output"] is not None:
        if not targeted:
            raise InvalidInput("-o", given["output"], "--target-error or --target-dop: without one nothing is chosen")
        new_output(given["output"], inputs, given["force"])
    if given["table"] is not None:
        table_format(given["table"], "--table")
        if checked_output(given["table"], inputs, "--table").exists() and not given["force"]:
            raise InvalidInput("--table", f"{given['table']}, which exists", "another name, or --force to replace it")
    if given["figures"] is not None and not can_draw():
        raise InvalidInput("--figures", "a Python without matplotlib", "pip install 'dphmm[plot]'")
    check_figures(given["figures"], (TRADE_OFF.name,), (".svg", ".png"), replace=given["force"])


def _write(table: pd.DataFrame, given: Mapping[str, Any]) -> None:

    if given["table"] is not None:
        import pyarrow as pa

        write_table(given["table"], pa.Table.from_pandas(table, preserve_index=False))
    if given["figures"] is not None:
        folder = Path(given["figures"])
        folder.mkdir(parents=True, exist_ok=True)
        save(TRADE_OFF, table[table["refused"].isna()], folder)


def told(found: Tuning) -> list[str]:
    """The table in columns, errors in answer units; what no other setting beats is marked, the recommended one too."""
    table, space = found.table, found.space
    marks = efficient(table)
    rows: list[tuple[str, ...]] = [_HEADS]
    for number, row in enumerate(table.itertuples(index=False)):
        mark = "recommended" if number == found.best else "*" if marks[number] else ""
        mark += "" if row.not_advised is None else f" not advised: {row.not_advised!s}"
        rows.append((str(row.policy), str(row.mechanism), written(row.epsilon), *_numbers(row), mark))
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEADS) - 1)]
    lines = ["  ".join([*map(_padded, row, widths, range(len(widths))), row[-1]]).rstrip() for row in rows]
    unit = space.unit
    whose = _ON_A_MAP if space.on_map else ""
    kind = "shares" if space.has_labels else "root mean squares,"
    return [
        *lines,
        f"errors: {kind} {unit}{whose}; *: no other setting tried is better in every way",
        "at most: the upper end of the 95 % interval of the estimate's error, which is what must reach a target error",
    ]


def headline(found: Tuning, given: Mapping[str, Any]) -> list[str]:
    """What is recommended, by which rule, and what to do with it."""
    row, limit = found.recommended, found.limit
    if found.targets is None:
        return ["no targets: --target-error or --target-dop, and one of these is recommended"]
    if row is None or limit is None:
        return []
    lines = [f"recommended: {found.words(row)}", f"rule: {found.targets.rule}"]
    if given["output"] is not None:
        chosen = f"--policy {shlex.quote(given['output'])} --epsilon {written(row['epsilon'])} "
        chosen += f"--mechanism {row['mechanism']} --path-epsilon {limit['path_epsilon']} --steps {limit['steps']}"
        kept = {"constraint": "support", "start": None, "protection": None}
        extra = [f"--{name} {given[name]}" for name, usual in kept.items() if given[name] != usual]
        lines.append(
            f"limit: the {limit['steps']} answers of a person that were tried; --steps tries others, dphmm plan fewer"
        )
        lines.append(f"written to {given['output']}; release with {' '.join([chosen, *extra])}")
    return lines


def _numbers(row: Any) -> tuple[str, ...]:
    if row.refused is not None:
        return "refused", "", "", "", "", ""
    return (
        f"{row.release_error:.4g}",
        f"{row.estimate_error:.4g}",
        f"{row.estimate_error_high:.4g}",
        f"{int(row.least_dop)}",
        f"{row.mean_dop:.1f}",
        f"{row.cost:.4g}",
    )


def _padded(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)
