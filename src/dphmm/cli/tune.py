"""dphmm tune: which policy, epsilon and mechanism reach what a release is for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.options import CONTEXT, force, loaded_model, loaded_policy, messages, new_output, plan_choices
from dphmm.errors import DphmmError, InvalidInput, Refused

if TYPE_CHECKING:
    import pandas as pd

    from dphmm.evaluation.tune import Targets
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace

_EPSILONS = ("0.1", "0.25", "0.5", "1", "2")
_MECHANISMS = ("discrete-knorm", "staircase")


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
    from dphmm.cli.outcomes import named
    from dphmm.cli.tune_table import document, headline, told
    from dphmm.evaluation.inspection import remedy_line
    from dphmm.evaluation.tune import Trial, sweep
    from dphmm.mechanisms.answer_table import is_reference

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
        _save_policy(policies[name], given["output"], spaces.get(name, space), chain)
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
    from dphmm._checks import stated_epsilon
    from dphmm.evaluation.inspection import remedy_facts
    from dphmm.evaluation.remedies import remedies
    from dphmm.session.setting import Setting

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
    from dphmm.cli.outcomes import named
    from dphmm.evaluation.tune import Targets

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
    from dphmm._checks import exact_number
    from dphmm.cli.options import length

    return length(text, option) if space.on_map else exact_number(text, option)


def _different(epsilons: Sequence[str]) -> tuple[str, ...]:
    """Each once, whichever way it is written."""
    from dphmm._checks import exact_number

    return tuple({exact_number(text, "--epsilon"): text for text in epsilons}.values())


def _policies(
    model: MarkovModel, space: StateSpace, given: Mapping[str, Any]
) -> tuple[dict[str, PolicyGraph], dict[str, StateSpace], list[str]]:
    """The policies to try, the spaces of those that come from files, and what is tried under one name only.

    Lonely states of those from files may be merged. A policy that is there twice has the name of the file.
    """
    from dphmm.evaluation.tune import candidate_policies

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
    from dphmm.cli.report import check_figures
    from dphmm.cli.tune_table import FIGURE
    from dphmm.storage.inputs import checked_output
    from dphmm.storage.tables import table_format

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
    from dphmm.cli.tune_table import FIGURE
    from dphmm.storage.tables import write_table

    if given["table"] is not None:
        import pyarrow as pa

        write_table(given["table"], pa.Table.from_pandas(table, preserve_index=False))
    if given["figures"] is not None:
        from dphmm.plot.figures import save

        folder = Path(given["figures"])
        folder.mkdir(parents=True, exist_ok=True)
        save(FIGURE, table[table["refused"].isna()], folder)


def _save_policy(policy: PolicyGraph, path: str, space: StateSpace, model: MarkovModel) -> None:
    from dphmm.storage.policies import save_policy

    save_policy(policy, path, space, model)


def _out_of_reach(table: pd.DataFrame, targets: Targets, space: StateSpace) -> str:
    from dphmm.cli.tune_table import wanted, words

    nearest = targets.nearest(table)
    if nearest is None:
        return f"every setting is refused: {table['refused'].iloc[0]}"
    by = "by the least factor" if targets.error is None else "by the least factor, of the error at most (95 %)"
    setting = words(table.to_dict("records")[nearest], space)
    return f"no setting tried reaches {wanted(targets, space)}; nearest, {by}: {setting}"
