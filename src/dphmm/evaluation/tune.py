"""Candidates of `tune` (policies, epsilons, mechanisms), what they cost and protect, and the choice among them.

Walks of the model itself stand for the people: nobody's data are looked at, so a choice made here costs no privacy and
discloses nothing. The errors are those of people who move as the model says; of others they can be larger. The rule by
which a setting is chosen is public, short and printed with the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from dphmm._checks import exact_number, finite_number, whole
from dphmm.choose.lonely import off_within, wrong_labels
from dphmm.choose.search import usual_radii
from dphmm.choose.simulated import walks
from dphmm.errors import InvalidInput, Refused
from dphmm.markov.model import MarkovModel
from dphmm.policy import complete, radius, transition
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import ReplayBits
from dphmm.session.options import PlanChoices
from dphmm.session.plan import Plan
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting
from dphmm.statement.advice import not_advised
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, Exact, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


def candidate_policies(
    model: MarkovModel, space: StateSpace, radii: tuple[Exact, ...] | None = None, unit: str = ""
) -> dict[str, PolicyGraph]:
    """Complete, transition, and a radius policy for each of ``radii`` (answer units; None: a few by themselves).

    Labels have no distances, so no radius policy is among theirs. Of a model with a jump, whose states all move to each
    other, the transition policy would be the complete one.
    Raises InvalidInput for a radius that is not greater than 0.
    """
    tried = usual_radii(space) if radii is None else tuple(exact_number(r, "radius") for r in radii)
    if any(r <= 0 for r in tried):
        raise InvalidInput("radius", str(min(tried)), "a length greater than 0")
    found: dict[str, PolicyGraph] = {"complete": complete(model.n_secrets)}
    if model.jump is None:
        found["transition"] = transition(model)
    return found | {f"radius {float(r):g}{unit}": radius(space, r) for r in tried}


#: Longest sweep: walks times steps.
MOST_RELEASES = 10**6
COLUMNS = (
    "policy",
    "mechanism",
    "epsilon",
    "release_error",
    "estimate_error",
    "estimate_error_low",
    "estimate_error_high",
    "least_dop",
    "mean_dop",
    "cost",
    "joined",
    "refused",
    "not_advised",
)


@dataclass(frozen=True)
class Trial:
    """How a setting is tried: ``runs`` walks of ``steps`` releases, the same walks for every setting of a seed."""

    runs: int = 20
    steps: int = 20
    seed: int = 1

    def __post_init__(self) -> None:
        whole(self.seed, "seed", 0)
        releases = whole(self.runs, "runs", 2) * whole(self.steps, "steps", 1)
        if releases > MOST_RELEASES:
            raise InvalidInput("runs", f"{self.runs} of {self.steps} steps", f"at most {MOST_RELEASES} releases each")


def sweep(
    model: MarkovModel,
    space: StateSpace,
    policies: dict[str, PolicyGraph],
    epsilons: Sequence[Exact],
    mechanisms: Sequence[str] = ("discrete-knorm", "staircase"),
    *,
    trial: Trial | None = None,
    progress: Callable[[int, int], None] | None = None,
    spaces: Mapping[str, StateSpace] | None = None,
    **choices: Unpack[PlanChoices],
) -> pd.DataFrame:
    """One row for each policy, mechanism and epsilon, with the columns of `COLUMNS`.

    policies : by the name they have in the table.
    spaces : by that name, for policies that are about ``space`` with states merged.
    choices : constraint, start, protection, as for a `dphmm.ReleaseSession`.

    ``release_error``, ``estimate_error``: root mean square errors of z and of the Bayes estimate, answer units, of
    labels the shares that are wrong; the second with a 95 % bootstrap interval over walks. Both are expectations given
    the walk's releases, so they are
    far less noisy than the errors themselves. ``least_dop``, ``mean_dop``: the least degree of protection of any
    possible state at any step, and the mean of the degrees that the public belief expects. ``cost``: the largest cost
    of a step. ``joined``: the most states that were joined to a partner.
    ``refused``: why a setting cannot be released; its numbers are missing then. ``not_advised``: why it is never
    recommended (`dphmm.statement.advice`), None where it may be.

    Raises InvalidInput for a setting that is malformed.
    """
    import pandas as pd

    tried = trial or Trial()
    paths = walks(model, tried.runs, tried.steps, np.random.default_rng(tried.seed))
    settings = [(name, kind, epsilon) for name in policies for kind in mechanisms for epsilon in epsilons]
    rows = []
    for done, (name, kind, epsilon) in enumerate(settings):
        within = (spaces or {}).get(name, space)
        options: PlanChoices = {**choices, "mechanism": kind}
        setting = Setting.of(model, policies[name], within, epsilon, **options)
        facts = _tried(setting, paths, tried.seed)
        if facts["refused"] is None:
            known = off_within(within)
            reasons = not_advised(setting.options.epsilon, math.hypot(facts["estimate_error"], known), known)
            facts["not_advised"] = "; ".join(reasons) or None
        rows.append(
            {"policy": name, "mechanism": setting.options.mechanism, "epsilon": float(setting.options.epsilon), **facts}
        )
        if progress is not None:
            progress(done + 1, len(settings))
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    # Beside a text None would be NaN, and read as a reason.
    return table.assign(**{name: table[name].astype(object).where(table[name].notna(), None) for name in COLUMNS[-2:]})


def _tried(setting: Setting, paths: IntArray, seed: int) -> dict[str, Any]:
    seen = _Seen(setting.space)
    try:
        for number, path in enumerate(paths):
            session = ReleaseSession.of(setting, bits=ReplayBits(seed * 1_000_003 + number))
            seen.begin()
            for state in path.tolist():
                plan, prior = session.plan, session.prior.probability
                session.release(state)
                assert session.posterior is not None
                seen.step(plan, prior, session.posterior.probability, session.estimate().answer, state)
    except Refused as refusal:
        return dict.fromkeys(COLUMNS[3:]) | {"refused": str(refusal)}
    return seen.facts()


@dataclass
class _Seen:
    """What the releases of one setting showed. Squared errors, of labels wrong ones, are summed walk by walk."""

    space: StateSpace
    raw: list[float] = field(default_factory=list)
    estimated: list[float] = field(default_factory=list)
    expected_dop: list[float] = field(default_factory=list)
    _degrees: dict[Plan, IntArray] = field(default_factory=dict)
    _steps: int = 0

    def begin(self) -> None:
        self.raw.append(0.0)
        self.estimated.append(0.0)
        self._steps = 0

    def step(self, plan: Plan, prior: FloatArray, posterior: FloatArray, estimate: Any, state: int) -> None:
        if plan not in self._degrees:
            self._degrees[plan] = plan.degrees()
        degrees = self._degrees[plan]
        possible = plan.constraint.support
        self._steps += 1
        self.raw[-1] += (self._missed(plan, state) - self.raw[-1]) / self._steps
        if self.space.has_labels:
            variance = float(1.0 - posterior.max())
        else:
            variance = float(posterior @ np.square(self.space.own_answers - estimate).sum(axis=1))
        self.estimated[-1] += (variance - self.estimated[-1]) / self._steps
        self.expected_dop.append(float(prior[possible] @ degrees[possible]))

    def _missed(self, plan: Plan, state: int) -> float:
        """The expected squared error of z: that of the noise, and of answering for a surrogate or a partner."""
        if self.space.has_labels:
            return float(wrong_labels(plan)[state])
        shift = self.space.answers[plan.constraint.surrogate[state]] - self.space.own_answers[state]
        return float(plan.expected_error + shift @ shift)

    def facts(self) -> dict[str, Any]:
        mean, low, high = bootstrap_mean(self.estimated)
        root = float if self.space.has_labels else math.sqrt
        return {
            "release_error": root(float(np.mean(self.raw))),
            "estimate_error": root(mean),
            "estimate_error_low": root(low),
            "estimate_error_high": root(high),
            "least_dop": min(int(degrees[degrees > 0].min()) for degrees in self._degrees.values()),
            "mean_dop": float(np.mean(self.expected_dop)),
            "cost": max(float(plan.cost) for plan in self._degrees),
            "joined": max(len(plan.joins) for plan in self._degrees),
            "refused": None,
        }


#: How each choice of targets orders the settings that meet them: columns, the best first; "-" means the largest first.
_ORDERS = {
    (True, True): ("epsilon", "-least_dop", "estimate_error"),
    (True, False): ("-least_dop", "epsilon", "estimate_error"),
    (False, True): ("estimate_error", "epsilon", "-least_dop"),
}
_RULES = {
    (True, True): "the smallest epsilon that meets both targets, then the highest degree of protection",
    (True, False): "the highest degree of protection within the error, then the smallest epsilon",
    (False, True): "the smallest error at that degree of protection, then the smallest epsilon",
}


@dataclass(frozen=True)
class Targets:
    """What a release should reach: root mean square ``error`` of the estimate at most, least ``dop`` at least.

    Raises InvalidInput for an error that is not greater than 0, a degree below 2, and for no target at all.
    """

    error: float | None = None
    dop: int | None = None

    def __post_init__(self) -> None:
        if self.error is None and self.dop is None:
            raise InvalidInput("targets", "none", "an error or a degree of protection to reach")
        if self.error is not None and finite_number(self.error, "error") <= 0:
            raise InvalidInput("error", self.error, "a length greater than 0")
        if self.dop is not None:
            whole(self.dop, "dop", 2)

    @property
    def rule(self) -> str:
        """What is taken of the settings that meet the targets."""
        return _RULES[self._kind]

    def met(self, table: pd.DataFrame) -> BoolArray:
        """Which rows of a sweep are advised and reach the targets; the error by the upper end of its interval."""
        fine = (table["refused"].isna() & table["not_advised"].isna()).to_numpy(copy=True)
        if self.error is not None:
            fine &= (table["estimate_error_high"] <= self.error).to_numpy(dtype=np.bool_)
        if self.dop is not None:
            fine &= (table["least_dop"] >= self.dop).to_numpy(dtype=np.bool_)
        return fine

    def best(self, table: pd.DataFrame) -> int | None:
        """The number of the recommended row, or None where no row meets the targets; earlier rows win ties."""
        rows = np.flatnonzero(self.met(table))
        if len(rows) == 0:
            return None
        meeting = table.iloc[rows]
        keys = [-meeting[name[1:]] if name[0] == "-" else meeting[name] for name in reversed(_ORDERS[self._kind])]
        return int(rows[np.lexsort([key.to_numpy(dtype=np.float64) for key in keys])[0]])

    def nearest(self, table: pd.DataFrame) -> int | None:
        """The number of the row that misses the targets by the least factor; None where every row is refused."""
        rows = np.flatnonzero(table["refused"].isna())
        if len(rows) == 0:
            return None
        usable = table.iloc[rows]
        missed = np.zeros(len(usable))
        if self.error is not None:
            missed += np.maximum(0.0, np.log(usable["estimate_error_high"].to_numpy(dtype=np.float64) / self.error))
        if self.dop is not None:
            missed += np.maximum(0.0, math.log(self.dop) - np.log(usable["least_dop"].to_numpy(dtype=np.float64)))
        return int(rows[np.argmin(missed)])

    @property
    def _kind(self) -> tuple[bool, bool]:
        return self.error is not None, self.dop is not None


def efficient(table: pd.DataFrame) -> BoolArray:
    """Rows that no other row beats: in epsilon, error and least degree at least as good, in one of them better."""
    usable = table["refused"].isna().to_numpy()
    points = np.stack(
        [table["epsilon"], table["estimate_error"], -table["least_dop"].astype(np.float64)], axis=1
    ).astype(np.float64)
    found = np.zeros(len(table), dtype=np.bool_)
    for row in np.flatnonzero(usable):
        others = points[usable]
        better = (others <= points[row]).all(axis=1) & (others < points[row]).any(axis=1)
        found[row] = not better.any()
    return found


def bootstrap_mean(values: ArrayLike) -> tuple[float, float, float]:
    """The mean of independent numbers (n,), and the ends of its 95 % bootstrap interval.

    2,000 resamples of fixed randomness.

    >>> bootstrap_mean([1.0, 1.0, 1.0])
    (1.0, 1.0, 1.0)
    """
    sample = np.asarray(values, dtype=np.float64)
    generator = np.random.default_rng(len(sample))
    means = sample[generator.integers(len(sample), size=(2000, len(sample)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(sample.mean()), float(low), float(high)
