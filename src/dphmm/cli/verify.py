"""dphmm verify: check the promise of plans or samples, in exact numbers and as a black box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from dphmm._checks import stated_epsilon
from dphmm.cli.console import FAILED, Console, Work, one_line, print_json, stage_of
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import loaded_model, loaded_policy, loaded_setting
from dphmm.errors import InvalidInput


def _two_files(_: click.Context, __: click.Parameter, files: tuple[str, str] | None) -> tuple[str, str] | None:
    """With one file alone, the option that comes next would be taken for the other."""
    taken = next((name for name in files or () if name.startswith("-")), None)
    if taken is not None:
        raise InvalidInput("--samples", f"one file, then {taken}", "two files: --samples a.csv b.csv")
    return files


@click.command("verify", cls=Command, context_settings=CONTEXT)
@click.option("--model", metavar="M", help="The model of the releases.")
@click.option("--policy", metavar="P", help="Their policy.")
@click.option("--epsilon", metavar="E", required=True, help="The promise of each release, such as 0.5 or 1/12.")
@click.option("--steps", metavar="N", type=int, default=1, show_default=True, help="Verify the plans of so many steps.")
@click.option(
    "--samples",
    nargs=2,
    callback=_two_files,
    metavar="A B",
    help="Judge two files of samples (.npy, .parquet, .csv), of two states that must not be told apart.",
)
@click.option("--draws", metavar="N", type=int, help="Also judge the sampler of the first step by N draws a state.")
@click.option("--alpha", type=float, default=1e-6, show_default=True, help="The chance that samples convict wrongly.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def verify(as_json: bool, **given: Any) -> int:
    """Check that releases keep their promise; exit 1 when something is convicted.

    With a model and a policy: the plans of the first steps, in exact numbers, from public data. With samples: a lower
    confidence bound on the epsilon of any mechanism. Of a finished release dphmm check-release verifies every plan, and
    dphmm report --truth attacks it.
    """
    _check_numbers(given)
    given["epsilon"] = stated_epsilon(given["epsilon"])
    parts: list[tuple[str, Any]] = []
    if given["samples"] is not None:
        from dphmm.audit import black_box

        files, alpha = [tuple(given["samples"])], given["alpha"]
        parts.append(("samples", black_box(files, given["epsilon"], names=["samples"], alpha=alpha)))
    if given["model"] is not None or given["policy"] is not None:
        with Console().progress("verify") as progress:
            parts += _public(given, progress)
    else:
        if given["draws"] is not None:
            raise InvalidInput("--draws", str(given["draws"]), "--model and --policy with it")
    if not parts:
        raise InvalidInput("--model, --policy", "nothing", "a model and a policy, or --samples A B")
    _print(parts, as_json)
    return FAILED if any(getattr(part, "convicted", False) for _, part in parts) else 0


def _check_numbers(given: dict[str, Any]) -> None:
    """Before any work, whether or not anything is sampled."""
    if given["draws"] is not None and given["draws"] < 1:
        raise InvalidInput("--draws", given["draws"], "a number of draws, 1 or more")
    if not 0 < given["alpha"] < 1:
        raise InvalidInput("--alpha", given["alpha"], "a probability above 0 and below 1")


def _public(given: dict[str, Any], progress: Work | None) -> list[tuple[str, Any]]:
    """The parts that need a model and a policy."""

    from dphmm.audit import sample_plan, verify_steps
    from dphmm.session.setting import Setting

    for name in ("model", "policy"):
        if given[name] is None:
            raise InvalidInput(f"--{name}", "nothing", "a file: model and policy go together")
    model, space = loaded_model(given["model"])
    policy, space = loaded_policy(given["policy"], model)
    choices: Any = loaded_setting(given["policy"], space)
    public = (model, policy, space, given["epsilon"])
    stage_of(progress, "plans of the steps")
    verified = verify_steps(*public, given["steps"], **choices)
    parts: list[tuple[str, Any]] = [(f"step {t}", verdict) for t, _, verdict in verified]
    if given["steps"] > 1:
        setting = Setting.of(*public, **choices)
        parts.append(("steps", _StepCount(given["steps"], len(parts), setting.has_public_plans)))
    if given["draws"] is not None:
        stage_of(progress, "draws of the sampler")
        plan = verified[0][1]
        sampled = sample_plan(plan, policy, space, draws=given["draws"], alpha=given["alpha"])
        parts.append(("sampler", sampled))
    return parts


@dataclass(frozen=True)
class _StepCount:
    """The number of asked steps that the verdicts above are about; one plan can be that of many."""

    asked: int
    plans: int
    known: bool

    @property
    def lines(self) -> list[str]:
        if not self.known:
            return [f"steps 2 to {self.asked}: not looked at, their plans hang on the answers before them"]
        each = "it is shown" if self.plans == 1 else "each is shown"
        plans = "one plan" if self.plans == 1 else f"{self.plans} different plans"
        return [f"steps 1 to {self.asked}: {plans} in all; {each} at the first step that it is of"]

    def document(self) -> dict[str, Any]:
        return {"asked": self.asked, "looked_at": self.asked if self.known else 1, "plans": self.plans}


def _print(parts: list[tuple[str, Any]], as_json: bool) -> None:
    if as_json:
        document = {name: part.document() for name, part in parts}
        convicted = any(getattr(part, "convicted", False) for _, part in parts)
        print_json({"convicted": convicted, **document})
        return
    for name, part in parts:
        if name.startswith("step "):
            click.echo(f"{name}:")
        for line in part.lines:
            # Leading spaces say what belongs to what.
            click.echo(" " * (len(line) - len(line.lstrip())) + one_line(line))
