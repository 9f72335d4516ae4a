"""The model that reads the answers, beside the one that made the plans.

The plan model is public before the first answer. It alone decides supports, plans and accounts. A belief model decides
only how answers are read: it moves a reader's belief, and the plans give the likelihoods. It may have other moves and
other latent states, and never other secrets.

A belief model may call possible what the plan model excludes, so a plan's likelihoods are taken at every secret: one
outside the support is answered as its surrogate. Every answer of a plan has a positive likelihood at each of them. A
belief model may also be wrong with certainty, so it is used with a rare jump into a public law that is positive
everywhere: then it excludes no sequence of answers.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief, SecretBelief
from dphmm.markov.model import MarkovModel
from dphmm.session.own_places import jump_beside, public_base
from dphmm.session.plan import Position, StepPlan
from dphmm.session.setting import Setting
from dphmm.types import FloatArray, IntArray

#: How often a belief model is taken to jump, beside its own moves.
DOUBT = 1e-3


@dataclass(frozen=True, eq=False)
class SettingReader:
    """The reader of one setting: with a model ``believed`` of `believed_model`, or for None with the plan model."""

    setting: Setting
    believed: MarkovModel | None

    @property
    def model(self) -> MarkovModel:
        """The model that reads."""
        return self.setting.model if self.believed is None else self.believed

    @property
    def everywhere(self) -> bool:
        """True if likelihoods are taken at every secret, as a belief model wants them, and not on the support alone."""
        return self.believed is not None

    def first(self, origin: str = "") -> Position:
        """Before step 1, from no answer; ``origin`` as of `Setting.first`."""
        if self.believed is None:
            return self.setting.first(origin)
        ahead = self.believed.number_of_first(origin) - 1
        if ahead not in self._firsts:
            first = Position.first(self.believed, self.believed.start, ahead)
            if self.setting.began is not None:
                first = first._replace(prior=_known(self.setting, self.believed, first.prior, origin))
            self._firsts[ahead] = first
        return self._firsts[ahead]

    @cached_property
    def _firsts(self) -> dict[int, Position]:
        return {}

    def before(self, t: int, origin: str = "") -> Position:
        """Before step t, from no answer."""
        first = self.first(origin)
        return first.skip(self.model, t - 1) if t > 1 else first


def believed_model(setting: Setting, believe: MarkovModel | None) -> MarkovModel | None:
    """A belief model as it reads: with a jump of 0.001 beside its own moves; None for the plan model itself.

    The jump's law is that of the plan model's own jump, else `public_base`. Raises InvalidInput for a model of other
    states, names, answers or merges than the plan model's, and of another step.
    """
    plan = setting.model
    if believe is None:
        return None
    if not isinstance(believe, MarkovModel):
        raise InvalidInput("believe", type(believe).__name__, "a MarkovModel")
    if believe.n_secrets != plan.n_secrets:
        raise InvalidInput("believe", f"a model of {believe.n_secrets} states", f"the plan model's {plan.n_secrets}")
    spaces = {space.digest for space in (plan.space, setting.space) if space is not None}
    if believe.space is not None and believe.space.digest not in spaces:
        expected = "the states, names, answers and merges of the plan model"
        raise InvalidInput("believe", f"a model of another space ({believe.space.digest[:12]})", expected)
    if believe.step is not None and believe.step != plan.step:
        expected = "no time step" if plan.step is None else f"the plan model's {plan.step} s"
        raise InvalidInput("believe", f"a model with a step of {believe.step} s", expected)
    if believe.digest == plan.digest:
        return None
    law = public_base(plan) if plan.jump is None else plan.summed(plan.jump.into)
    jump = jump_beside(believe, DOUBT, law)
    return believe.with_jump(jump.rate, jump.into)


def belief_after(
    reading: SettingReader, answers: Sequence[tuple[int, StepPlan, IntArray]], until: int, origin: str
) -> Belief:
    """The reader's belief about the step ``until``, given (step, plan, answer) in order of steps up to it."""
    model, position, belief = reading.model, reading.first(origin), reading.first(origin).prior
    everywhere = np.ones(reading.setting.model.n_secrets, dtype=np.bool_)
    for t, step in groupby(answers, key=lambda answer: answer[0]):
        position = position.skip(model, t - position.t) if t > position.t else position
        belief = position.prior
        for _, plan, z in step:
            belief = belief.condition(plan.log_likelihood(z), everywhere)
        position = position.predict(model, belief)
    return belief if position.t > until else position.predict_through(model, until).prior


def _known(setting: Setting, believed: MarkovModel, prior: Belief, origin: str) -> Belief:
    """Before step 1 of somebody who publicly begins elsewhere: secrets as the plan model has them.

    Latent states of a secret are as likely as the belief model has them, all alike where it has none of them.
    """
    known, weights = setting.first(origin).prior, prior.latent.probability
    alone = believed.lifted(believed.summed(weights)) == 0
    weights = np.where(alone, 1.0, weights)
    sums = believed.lifted(believed.summed(weights))
    which = np.arange(known.n_states) if believed.secrets is None else believed.secrets
    support = known.support[which] & (weights > 0)
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.where(support, known.log_probability[which] + np.log(weights / sums), -np.inf)
    latent = Belief(logs, support)
    return latent if believed.secrets is None else SecretBelief(latent, believed.secrets, known.n_states)
