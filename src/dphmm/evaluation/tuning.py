"""`tune`: try policies, epsilons and mechanisms on walks of the model, and choose one that reaches a target.

The command ``dphmm tune`` prints what this gives; there is no other search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dphmm._checks import exact_number, stated_epsilon, whole
from dphmm._notebook import html_table
from dphmm._progress import Progress, shown
from dphmm.choose.details import remedy_facts
from dphmm.choose.remedies import remedies
from dphmm.errors import InvalidInput, Refused
from dphmm.evaluation.tune import Targets, Trial, candidate_policies, efficient, sweep
from dphmm.markov.model import MarkovModel
from dphmm.markov.stochastic import refuse_secrets
from dphmm.mechanisms.answer_table import is_reference
from dphmm.policy.constraint import DeltaSet, Support
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import PlanChoices
from dphmm.session.setting import Setting
from dphmm.states.space import StateSpace
from dphmm.types import Exact

if TYPE_CHECKING:
    import pandas as pd

#: What is tried where nothing else is named; both mechanisms in place of "auto".
EPSILONS = ("0.1", "0.25", "0.5", "1", "2")
_MECHANISMS = ("discrete-knorm", "staircase")


@dataclass(frozen=True, eq=False)
class Tuning:
    """Every setting that was tried, and which one is recommended. All of it is computed from public data.

    table : a row for each policy, mechanism and epsilon, with the columns of `dphmm.evaluation.sweep`.
    policies, spaces : the policies by their names in the table, and the spaces of those that merge states.
    targets, best : what was to be reached, and the number of the recommended row; None without either.
    same : names of policies that are the same as another one, by the name that they were tried under.
    remedies : what would help the recommended setting, or the nearest one, as facts for JSON.
    """

    table: pd.DataFrame
    policies: Mapping[str, PolicyGraph]
    space: StateSpace
    spaces: Mapping[str, StateSpace]
    targets: Targets | None
    best: int | None
    trial: Trial
    same: Mapping[str, str]
    remedies: tuple[dict[str, Any], ...] = ()

    @property
    def recommended(self) -> dict[str, Any] | None:
        """The recommended setting, a row of the table; None where no target was named, or none is reached."""
        return None if self.best is None else _row(self.table, self.best)

    @property
    def limit(self) -> dict[str, Any] | None:
        """The promise that belongs to the recommended setting: as many answers of a person as were tried, and no more.

        Without one no setting is advised.
        """
        if self.best is None:
            return None
        total = exact_number(str(self.table["epsilon"][self.best]), "epsilon") * self.trial.steps
        return {"path_epsilon": written(float(total)), "steps": self.trial.steps}

    @property
    def policy(self) -> PolicyGraph | None:
        """The policy of the recommended setting."""
        return None if self.best is None else self.policies[str(self.table["policy"][self.best])]

    @property
    def policy_space(self) -> StateSpace:
        """The space of the recommended policy, with states merged where the policy merges some."""
        return self.space if self.best is None else self.spaces.get(str(self.table["policy"][self.best]), self.space)

    @property
    def missed(self) -> str | None:
        """Why nothing is recommended, with the nearest setting; None where something is, or no target was named."""
        if self.targets is None or self.best is not None:
            return None
        nearest = self.targets.nearest(self.table)
        if nearest is None:
            return f"every setting is refused: {self.table['refused'].iloc[0]}"
        by = "by the least factor" + (", of the error at most (95 %)" if self.targets.error is not None else "")
        row = _row(self.table, nearest)
        words = f"no setting tried reaches {_wanted(self.targets, self.space)}; nearest, {by}: {self.words(row)}"
        return words if row["not_advised"] is None else f"{words}; not advised: {row['not_advised']}"

    def words(self, row: Mapping[str, Any]) -> str:
        """One setting of the table in a line."""
        return (
            f"policy {row['policy']}, {row['mechanism']}, epsilon {written(row['epsilon'])}: error "
            f"{row['estimate_error']:.4g} {self.space.unit} (at most {row['estimate_error_high']:.4g} at 95 %), "
            f"least DoP {int(row['least_dop'])}"
        )

    def document(self) -> dict[str, Any]:
        """Everything for JSON; a missing number is null."""
        rows = [{str(name): _plain(value) for name, value in row.items()} for row in self.table.to_dict("records")]
        for row, mark in zip(rows, efficient(self.table).tolist(), strict=True):
            row["efficient"] = mark
        targets = self.targets
        return {
            "unit": self.space.unit,
            "runs": self.trial.runs,
            "steps": self.trial.steps,
            "seed": self.trial.seed,
            "target_error": None if targets is None else targets.error,
            "target_dop": None if targets is None else targets.dop,
            "rule": None if targets is None else targets.rule,
            "recommended": None if self.best is None else rows[self.best],
            "limit": self.limit,
            "settings": rows,
            "remedies": list(self.remedies),
        }

    def to_pandas(self) -> pd.DataFrame:
        """The table, a copy."""
        return self.table.copy()

    def __repr__(self) -> str:
        found = self.recommended
        told = "nothing recommended" if found is None else self.words(found)
        return f"Tuning({len(self.table)} settings; {told})"

    def _repr_html_(self) -> str:
        """The settings as a table, the recommended one marked, for notebooks."""
        told = self.missed
        if told is None:
            found = self.recommended
            told = "no targets: nothing is recommended" if found is None else f"recommended: {self.words(found)}"
        rows = self.table.to_dict("records")
        marked = [[*row.values(), "recommended" if number == self.best else ""] for number, row in enumerate(rows)]
        return html_table([*self.table.columns, ""], marked, told)


def tune(
    model: MarkovModel,
    space: StateSpace | None = None,
    *,
    target_error: Exact | None = None,
    target_dop: int | None = None,
    epsilons: Sequence[Exact] = EPSILONS,
    radii: Sequence[Exact] | None = None,
    policies: Mapping[str, PolicyGraph] | None = None,
    spaces: Mapping[str, StateSpace] | None = None,
    mechanism: str = "auto",
    steps: int = 20,
    runs: int = 20,
    seed: int = 1,
    constraint: str | DeltaSet | Support = "support",
    start: str | None = None,
    protection: str | None = None,
    progress: bool | Progress = True,
) -> Tuning:
    """Try policies, epsilons and mechanisms on walks of the model itself, and recommend a setting.

    Nothing but public information is used. The errors are those of people who move as the model says; of others they
    can be larger.

    Parameters
    ----------
    model : the model; space : its states, those of the model when None.
    target_error : the root mean square error of the estimate to stay within, metres on a map, answer units elsewhere.
    target_dop : how many states, at least, every possible state hides among.
    epsilons : of each release, those that are tried.
    radii : radius policies that are tried, in the unit of the error; a few by themselves when None.
    policies : others that are tried too, by name; ``spaces`` : by that name, of those that merge states.
    mechanism : with "auto" both exact mechanisms are tried, of labels the one there is.
    steps, runs, seed : releases of a walk, walks of each setting, and what draws the same walks and noise again.
    constraint, start, protection : as for `ReleaseSession`.
    progress : show a bar on a terminal, or call (done, total).

    Returns
    -------
    A `Tuning`: without a target nothing is recommended; where none reaches it, ``missed`` names the nearest.

    Raises
    ------
    InvalidInput : naming the argument.

    Examples
    --------
    >>> import dphmm
    >>> space = dphmm.StateSpace([0, 1, 2, 3])
    >>> moves = [[.8, .2, 0, 0], [.2, .6, .2, 0], [0, .2, .6, .2], [0, 0, .2, .8]]
    >>> model = dphmm.MarkovModel([0.25] * 4, moves, space=space)
    >>> found = dphmm.tune(model, target_dop=3, epsilons=[1], radii=[1, 2], runs=2, steps=3)
    >>> found.recommended["least_dop"] >= 3, len(found.table)
    (True, 8)

    Source: docs/commands.md, tune.
    """
    refuse_secrets(model, "tune")
    space = model.space if space is None else space
    if space is None:
        raise InvalidInput("space", "none, and the model has none", "the states of the model")
    if is_reference(mechanism):
        expected = "a mechanism by name: a made table is for one policy and one epsilon"
        raise InvalidInput("mechanism", "a made table", expected)
    targets = _targets(target_error, target_dop, space)
    tried, merged, same = _policies(model, space, radii, policies or {}, spaces or {})
    trial = Trial(runs, steps, seed)
    automatic = mechanism == "auto" and not space.has_labels
    choices: PlanChoices = {"constraint": constraint, "start": start, "protection": protection or "auto"}
    distinct = tuple({exact_number(epsilon, "epsilons"): epsilon for epsilon in epsilons}.values()) or EPSILONS
    mechanisms = _MECHANISMS if automatic else (mechanism,)
    with shown(progress, "tune") as report:
        table = sweep(model, space, tried, distinct, mechanisms, trial=trial, progress=report, spaces=merged, **choices)
    best = None if targets is None else targets.best(table)
    looked_at = best if targets is None or best is not None else targets.nearest(table)
    help_for = () if looked_at is None else _remedies(_row(table, looked_at), model, space, tried, merged, choices)
    return Tuning(table, tried, space, merged, targets, best, trial, same, tuple(help_for))


def _targets(error: Exact | None, dop: int | None, space: StateSpace) -> Targets | None:
    if error is None and dop is None:
        return None
    if error is not None and exact_number(error, "target_error") <= 0:
        raise InvalidInput("target_error", error, "a length greater than 0")
    if dop is not None and whole(dop, "target_dop", 2) > space.n_states:
        raise InvalidInput("target_dop", dop, f"at most {space.n_states}, all states of the model")
    return Targets(None if error is None else float(exact_number(error, "target_error")), dop)


def _policies(
    model: MarkovModel,
    space: StateSpace,
    radii: Sequence[Exact] | None,
    others: Mapping[str, PolicyGraph],
    spaces: Mapping[str, StateSpace],
) -> tuple[dict[str, PolicyGraph], dict[str, StateSpace], dict[str, str]]:
    """The policies to try, the spaces of those with merged states, and which of them stand for another one.

    A policy that is there twice has the name that it was given.
    """
    unknown = next((name for name in spaces if name not in others), None)
    if unknown is not None:
        raise InvalidInput("spaces", repr(unknown), "the names of policies")
    wrong = next((radius for radius in radii or () if exact_number(radius, "radii") <= 0), None)
    if wrong is not None:
        raise InvalidInput("radii", wrong, "lengths greater than 0")
    found = candidate_policies(model, space, tuple(radii) if radii else None, " m" if space.on_map else "")
    merged: dict[str, StateSpace] = {}
    names = {(policy.digest, space.digest): name for name, policy in found.items()}
    same: dict[str, str] = {}
    for name, policy in others.items():
        own = spaces.get(name, space)
        if name in found:
            raise InvalidInput("policies", f"another policy of the name {name!r}", "different names")
        twin = names.get((policy.digest, own.digest))
        if twin is not None:
            same[twin] = name
            del found[twin]
            merged.pop(twin, None)
        found[name], merged[name], names[policy.digest, own.digest] = policy, own, name
    return found, merged, same


def _remedies(
    row: Mapping[str, Any],
    model: MarkovModel,
    space: StateSpace,
    policies: Mapping[str, PolicyGraph],
    spaces: Mapping[str, StateSpace],
    choices: PlanChoices,
) -> list[dict[str, Any]]:
    """What would help at the first step of a setting: of the one that is recommended, or nearest to the targets."""
    name = str(row["policy"])
    own = spaces.get(name, space)
    epsilon = stated_epsilon(str(row["epsilon"]))
    chosen: PlanChoices = {**choices, "mechanism": str(row["mechanism"])}
    setting = Setting.of(model, policies[name], own, epsilon, **chosen)
    try:
        plan = setting.first_plan()
    except Refused:
        plan = None
    return [remedy_facts(one) for one in remedies(model, policies[name], own, setting.options, plan)]


def _row(table: pd.DataFrame, number: int) -> dict[str, Any]:
    return {str(name): value for name, value in table.to_dict("records")[number].items()}


def _wanted(targets: Targets, space: StateSpace) -> str:
    """The targets in words."""
    parts = [] if targets.error is None else [f"an error of {targets.error:g} {space.unit}"]
    parts += [] if targets.dop is None else [f"a degree of protection of {targets.dop}"]
    return " and ".join(parts)


def written(epsilon: Any) -> str:
    """An epsilon as it would be typed: 1 rather than 1.0, and every digit."""
    return str(int(epsilon)) if epsilon == int(epsilon) else str(epsilon)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
