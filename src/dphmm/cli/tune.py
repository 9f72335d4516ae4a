"""dphmm tune: which policy, epsilon and mechanism reach what a release is for; as lines, as JSON and as a figure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm._checks import exact_number, stated_epsilon
from dphmm.cli.console import Console, print_json
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
from dphmm.cli.outcomes import named
from dphmm.cli.report import check_figures
from dphmm.errors import DphmmError, InvalidInput, Refused
from dphmm.evaluation.inspection import remedy_facts, remedy_line
from dphmm.evaluation.remedies import remedies
from dphmm.evaluation.tune import Targets, Trial, candidate_policies, efficient, sweep
from dphmm.mechanisms.answer_table import is_reference
from dphmm.plot.figures import Figure, save
from dphmm.session.setting import Setting
from dphmm.storage.inputs import checked_output
from dphmm.storage.policies import save_policy
from dphmm.storage.tables import table_format, write_table

if TYPE_CHECKING:
    import pandas as pd

    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace

_EPSILONS = ("0.1", "0.25", "0.5", "1", "2")
_MECHANISMS = ("discrete-knorm", "staircase")
FIGURE = Figure(
    name="trade-off",
    title="Error of the estimate by epsilon, for each policy",
    table="settings",
    x="epsilon",
    y="estimate_error",
    by="policy",
    x_label="epsilon of each release",
    y_label="root mean square error",
    panels="mechanism",
    low="estimate_error_low",
    high="estimate_error_high",
    log_x=True,
    log_y=True,
)
_HEADS = (
    "policy", "mechanism", "epsilon", "error of z", "of the estimate", "at most", "least DoP", "mean DoP", "cost", "",
)  # fmt: skip
#: What the errors of walks of the model leave out.
_ON_A_MAP = (
    ", from the middle of the cells of people who move as the model says (report --truth measures from the places of "
    "real ones, and tells the share of rows in no cell)"
)


@click.command("tune", context_settings=CONTEXT)
@click.argument("model", metavar="MODEL")
@click.option("--target-error", metavar="LENGTH", help="Root mean square error of the estimate to stay within.")
@click.option("--target-dop", type=int, metavar="N", help="Every possible state hides among at least N.")
@click.option("-o", "--output", metavar="policy.json", help="Write the recommended policy.")
@click.option("--epsilon", multiple=True, metavar="E", help=f"Try this one; again and again  [{', '.join(_EPSILONS)}]")
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

    if is_reference(given["mechanism"]):
        expected = "a mechanism by name: a made table is for one policy and one epsilon (dphmm inspect --mechanism)"
        raise InvalidInput("--mechanism", "a made table", expected)
    chain, space = loaded_model(model)
    targets = _targets(given["target_error"], given["target_dop"], space)
    _check_outputs(model, given, targets)
    policies, spaces, twins = _policies(chain, space, given)
    console = Console(quiet=quiet or as_json)
    automatic = given["mechanism"] == "auto" and not space.has_labels
    mechanisms = _MECHANISMS if automatic else (given["mechanism"],)
    options = {
        name: given[name] for name in ("constraint", "scope", "flat", "start", "protection") if given[name] is not None
    }
    try:
        trial = Trial(given["runs"], given["steps"], given["seed"])
    except InvalidInput as wrong:
        raise named(wrong, {name: f"--{name}" for name in ("runs", "steps", "seed")}) from None
    with console.progress("settings") as progress:
        epsilons = _different(given["epsilon"]) or _EPSILONS
        table = sweep(
            chain, space, policies, epsilons, mechanisms, trial=trial, progress=progress, spaces=spaces, **options
        )
    best = None if targets is None else targets.best(table)
    help_for = best if targets is None or best is not None else targets.nearest(table)
    found = (
        []
        if help_for is None
        else _remedies(table.to_dict("records")[help_for], chain, space, policies, spaces, options)
    )
    _write(table, given)
    if best is not None and given["output"] is not None:
        name = str(table["policy"][best])
        save_policy(policies[name], given["output"], spaces.get(name, space), chain)
    if as_json:
        print_json(document(table, targets, best, space, given) | {"remedies": found})
    else:
        click.echo("\n".join(told(table, best, space)))
        console.say([("", line) for line in twins])
        console.say([("", f"would help: {remedy_line(one, space)}") for one in found])
        console.say([("", line) for line in headline(table, targets, best, space, given)])
    if targets is not None and best is None:
        raise DphmmError(_out_of_reach(table, targets, space))


def _remedies(
    row: Mapping[Hashable, Any],
    model: MarkovModel,
    space: StateSpace,
    policies: Mapping[str, PolicyGraph],
    spaces: Mapping[str, StateSpace],
    options: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """What would help at the first step of a setting: of the one that is recommended, or nearest to the targets."""

    name = str(row["policy"])
    own = spaces.get(name, space)
    kind, epsilon = str(row["mechanism"]), stated_epsilon(str(row["epsilon"]))
    setting = Setting.of(model, policies[name], own, epsilon, mechanism=kind, **options)
    try:
        plan = setting.first_plan()
    except Refused:
        plan = None
    return [remedy_facts(one) for one in remedies(model, policies[name], own, setting.options, plan)]


def _targets(error: str | None, dop: int | None, space: StateSpace) -> Targets | None:

    if error is None and dop is None:
        return None
    if dop is not None and dop > space.n_states:
        raise InvalidInput("--target-dop", dop, f"at most {space.n_states}, all states of the model")
    try:
        return Targets(None if error is None else float(_length(error, "--target-error", space)), dop)
    except InvalidInput as wrong:
        raise named(wrong, {"error": "--target-error", "dop": "--target-dop"}) from None


def _length(text: str, option: str, space: StateSpace) -> Any:
    """Metres on a map, answer units elsewhere."""

    return length(text, option) if space.on_map else exact_number(text, option)


def _different(epsilons: Sequence[str]) -> tuple[str, ...]:
    """Each once, whichever way it is written."""

    return tuple({exact_number(text, "--epsilon"): text for text in epsilons}.values())


def _policies(
    model: MarkovModel, space: StateSpace, given: Mapping[str, Any]
) -> tuple[dict[str, PolicyGraph], dict[str, StateSpace], list[str]]:
    """The policies to try, the spaces of those that come from files, and what is tried under one name only.

    Lonely states of those from files may be merged. A policy that is there twice has the name of the file.
    """

    radii = tuple(_length(text, "--radius", space) for text in given["radius"]) or None
    if radii is not None and min(radii) <= 0:
        raise InvalidInput("--radius", given["radius"][radii.index(min(radii))], "a length greater than 0")
    unit = " m" if space.on_map else ""
    found = candidate_policies(model, space, radii, unit)
    spaces: dict[str, StateSpace] = {}
    names = {(policy.digest, space.digest): name for name, policy in found.items()}
    twins = []
    for path in given["policy"]:
        name = Path(path).name
        if name in found:
            raise InvalidInput("--policy", f"another policy of the name {name!r}", "files of different names")
        policy, own = loaded_policy(path, model)
        twin = names.get((policy.digest, own.digest))
        if twin is not None:
            twins.append(f"{twin} is the same policy as {name}: tried once")
            del found[twin]
            spaces.pop(twin, None)
        found[name], spaces[name], names[policy.digest, own.digest] = policy, own, name
    return found, spaces, twins


def _check_outputs(model: str, given: Mapping[str, Any], targets: Targets | None) -> None:

    inputs: Sequence[str] = (model, *given["policy"])
    if given["output"] is not None:
        if targets is None:
            raise InvalidInput("-o", given["output"], "--target-error or --target-dop: without one nothing is chosen")
        new_output(given["output"], inputs, given["force"])
    if given["table"] is not None:
        table_format(given["table"], "--table")
        if checked_output(given["table"], inputs, "--table").exists() and not given["force"]:
            raise InvalidInput("--table", f"{given['table']}, which exists", "another name, or --force to replace it")
    check_figures(given["figures"], (FIGURE.name,), replace=given["force"])


def _write(table: pd.DataFrame, given: Mapping[str, Any]) -> None:

    if given["table"] is not None:
        import pyarrow as pa

        write_table(given["table"], pa.Table.from_pandas(table, preserve_index=False))
    if given["figures"] is not None:
        folder = Path(given["figures"])
        folder.mkdir(parents=True, exist_ok=True)
        save(FIGURE, table[table["refused"].isna()], folder)


def _out_of_reach(table: pd.DataFrame, targets: Targets, space: StateSpace) -> str:

    nearest = targets.nearest(table)
    if nearest is None:
        return f"every setting is refused: {table['refused'].iloc[0]}"
    by = "by the least factor" if targets.error is None else "by the least factor, of the error at most (95 %)"
    setting = words(table.to_dict("records")[nearest], space)
    return f"no setting tried reaches {wanted(targets, space)}; nearest, {by}: {setting}"


def told(table: pd.DataFrame, best: int | None, space: StateSpace) -> list[str]:
    """The table in columns, errors in answer units; what no other setting beats is marked, the recommended one too."""
    marks = efficient(table)
    rows: list[tuple[str, ...]] = [_HEADS]
    for number, row in enumerate(table.itertuples(index=False)):
        mark = "recommended" if number == best else "*" if marks[number] else ""
        rows.append((str(row.policy), str(row.mechanism), _written(row.epsilon), *_numbers(row), mark))
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


def headline(
    table: pd.DataFrame, targets: Targets | None, best: int | None, space: StateSpace, given: Mapping[str, Any]
) -> list[str]:
    """What is recommended, by which rule, and what to do with it."""
    if targets is None:
        return ["no targets: --target-error or --target-dop, and one of these is recommended"]
    if best is None:
        return []
    row = table.to_dict("records")[best]
    lines = [f"recommended: {words(row, space)}", f"rule: {targets.rule}"]
    if given["output"] is not None:
        chosen = f"--policy {shlex.quote(given['output'])} --epsilon {_written(row['epsilon'])} "
        chosen += f"--mechanism {row['mechanism']}"
        kept = {"constraint": "support", "scope": "global", "flat": "thicken", "start": None, "protection": None}
        extra = [f"--{name} {given[name]}" for name, usual in kept.items() if given[name] != usual]
        lines.append(f"written to {given['output']}; release with {' '.join([chosen, *extra])}")
    return lines


def document(
    table: pd.DataFrame, targets: Targets | None, best: int | None, space: StateSpace, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything as one JSON object; a missing number is null, an unbounded cost "unbounded"."""
    rows = [{name: _plain(value) for name, value in row.items()} for row in table.to_dict("records")]
    for row, mark in zip(rows, efficient(table).tolist(), strict=True):
        row["efficient"] = mark
    return {
        "unit": space.unit,
        "runs": given["runs"],
        "steps": given["steps"],
        "seed": given["seed"],
        "target_error": None if targets is None else targets.error,
        "target_dop": None if targets is None else targets.dop,
        "rule": None if targets is None else targets.rule,
        "recommended": None if best is None else rows[best],
        "policy": given["output"] if best is not None else None,
        "settings": rows,
    }


def words(row: Mapping[Hashable, Any], space: StateSpace) -> str:
    """One setting in a line."""
    return (
        f"policy {row['policy']}, {row['mechanism']}, epsilon {_written(row['epsilon'])}: error "
        f"{row['estimate_error']:.4g} {space.unit} (at most {row['estimate_error_high']:.4g} at 95 %), "
        f"least DoP {int(row['least_dop'])}"
    )


def wanted(targets: Targets, space: StateSpace) -> str:
    """The targets in words."""
    parts = [] if targets.error is None else [f"an error of {targets.error:g} {space.unit}"]
    parts += [] if targets.dop is None else [f"a degree of protection of {targets.dop}"]
    return " and ".join(parts)


def _numbers(row: Any) -> tuple[str, ...]:
    if row.refused is not None:
        return "refused", "", "", "", "", ""
    cost = "unbounded" if math.isinf(row.cost) else f"{row.cost:.4g}"
    return (
        f"{row.release_error:.4g}",
        f"{row.estimate_error:.4g}",
        f"{row.estimate_error_high:.4g}",
        f"{int(row.least_dop)}",
        f"{row.mean_dop:.1f}",
        cost,
    )


def _written(epsilon: Any) -> str:
    """As it would be typed: 1 rather than 1.0, and every digit."""
    return str(int(epsilon)) if epsilon == int(epsilon) else str(epsilon)


def _padded(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else "unbounded" if math.isinf(value) else value
    return value
