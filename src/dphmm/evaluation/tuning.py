"""What policies, epsilons and mechanisms would cost and protect, from public information alone.

Walks of the model itself stand for the people: nobody's data are looked at, so a choice made here costs no privacy and
discloses nothing. The errors are those of people who move as the model says; of others they can be larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._checks import whole
from dphmm.errors import InvalidInput, Refused
from dphmm.evaluation.experiment import spread
from dphmm.evaluation.lonely import wrong_labels
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import ReplayBits
from dphmm.session.plan import Plan
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import Setting
from dphmm.simulated import walks
from dphmm.states.space import StateSpace
from dphmm.types import Exact, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

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
    **options: Any,
) -> pd.DataFrame:
    """One row for each policy, mechanism and epsilon, with the columns of `COLUMNS`.

    policies : by the name they have in the table.
    spaces : by that name, for policies that are about ``space`` with states merged.
    options : constraint, scope, flat, start ..., as for a `dphmm.ReleaseSession`.

    ``release_error``, ``estimate_error``: root mean square errors of z and of the Bayes estimate, answer units, of
    labels the shares that are wrong; the second with a 95 % bootstrap interval over walks. Both are expectations given
    the walk's releases, so they are
    far less noisy than the errors themselves. ``least_dop``, ``mean_dop``: the least degree of protection of any
    possible state at any step, and the mean of the degrees that the public belief expects. ``cost``: the largest cost
    of a step; infinite where it is unbounded. ``joined``: the most states that were joined to a partner.
    ``refused``: why a setting cannot be released; its numbers are missing then.

    Raises InvalidInput for a setting that is malformed.
    """
    import pandas as pd

    tried = trial or Trial()
    paths = walks(model, tried.runs, tried.steps, np.random.default_rng(tried.seed))
    settings = [(name, kind, epsilon) for name in policies for kind in mechanisms for epsilon in epsilons]
    rows = []
    for done, (name, kind, epsilon) in enumerate(settings):
        within = (spaces or {}).get(name, space)
        setting = Setting.of(model, policies[name], within, epsilon, mechanism=kind, **options)
        facts = _tried(setting, paths, tried.seed)
        rows.append(
            {"policy": name, "mechanism": setting.options.mechanism, "epsilon": float(setting.options.epsilon), **facts}
        )
        if progress is not None:
            progress(done + 1, len(settings))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _tried(setting: Setting, paths: IntArray, seed: int) -> dict[str, Any]:
    seen = _Seen(setting.space)
    try:
        for number, path in enumerate(paths):
            session = ReleaseSession.of(setting, bits=ReplayBits(seed * 1_000_003 + number))
            seen.begin()
            for state in path.tolist():
                plan, prior = session.plan, session.prior.probability
                release = session.release(state)
                assert session.posterior is not None
                seen.step(plan, prior, session.posterior.probability, release.estimate, state)
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
        return float(plan.mechanisms[plan.body_of[state]].expected_error + shift @ shift)

    def facts(self) -> dict[str, Any]:
        mean, low, high = spread(self.estimated)
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
