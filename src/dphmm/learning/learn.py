"""Learn how people move from released answers: expectation maximisation over the likelihoods of the plans.

First the public matrix is tilted by few factors, then matrices are learned around the tilted one. Iterations and family
are those under which the answers of people who were left out are likeliest. If that is no better than the public
model by a standard error over people, the public model comes back. All of it is computed from what was published: no
true state is read, and plans stay those of the public model.

Proof: docs/proofs/learning-from-answers.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np

from dphmm._progress import Progress, shown
from dphmm.learning.expectation import Sample, SlotChain
from dphmm.learning.sequences import Stretch, longest_gap, public_slots, stretches_of
from dphmm.learning.tilt import AROUND, Tilt
from dphmm.markov.model import ANSWERS, MarkovModel
from dphmm.markov.slots import Slots
from dphmm.markov.stochastic import with_data
from dphmm.policy.graph import PolicyGraph
from dphmm.release.decoding import OtherQuery, rows_and_subjects
from dphmm.session.believing import DOUBT
from dphmm.session.options import ReleaseChoices
from dphmm.session.own_places import jump_beside, public_base
from dphmm.session.setting import StepChoices, Subjects
from dphmm.states.space import StateSpace
from dphmm.storage.released import ReleasedRows
from dphmm.types import BoolArray, Exact, FloatArray, IntArray

#: Iterations of the tilted matrix, and after them of matrices around it.
TILTED, MIXED = 12, 2
#: Parts that people are left out in; how few people learn nothing; below how many the tilted matrix alone is taken.
PARTS, FEWEST, FEW = 2, 10, 30
#: Slots of the day that are learned; steps, and steps times stored moves, that are learned from.
SLOTS, MOST_STEPS, MOST_MOVES = 24, 10**5, 4 * 10**9
#: Passes over the steps that learning takes at most, and seconds of a pass for each step and stored move.
PASSES, _SECONDS = 60, 1e-9
#: What a learned model records of how it was learned.
_RECORDED = ("family", "iterations", "gain", "error", "people", "reason")
#: How many people the public law of step 1 is worth.
_BEGINNING = 5.0


@dataclass(frozen=True, eq=False)
class Learned:
    """The result of learning: ``model`` to read with, for `believe`; the public one if there is a ``reason``.

    ``family``: "tilt", "mix" or "public", after so many ``iterations``. ``gain``: the gain of log-likelihood over the
    public model, for the answers of a person left out; ``error``: its standard error over people.
    """

    model: MarkovModel
    family: str
    iterations: int
    gain: float
    error: float
    people: int
    reason: str = ""

    @classmethod
    def public(cls, plan: MarkovModel, people: int, reason: str) -> Learned:
        """The public model, since nobody was learned from."""
        return cls(plan, "public", 0, 0.0, 0.0, people, reason)

    @classmethod
    def stored(cls, model: MarkovModel, plan: MarkovModel, file: str) -> Learned | None:
        """The result recorded in a stored model; None for another plan model, or for other files than ``file``."""
        origin = model.provenance
        of_this = (ANSWERS, plan.digest) == (origin.get("method"), origin.get("plan_model"))
        if not of_this or file not in str(origin.get("released")) or not origin.keys() >= set(_RECORDED):
            return None
        return cls(model, **{name: origin[name] for name in _RECORDED})

    def document(self) -> dict[str, Any]:
        """The result, for JSON."""
        return {name: getattr(self, name) for name in _RECORDED} | {"reason": self.reason or None}

    @property
    def words(self) -> str:
        """The result in words, or the reason if nothing was learned."""
        if self.reason:
            return f"nothing: {self.reason}"
        slots = "" if self.model.slots is None else f", {self.model.slots.n} slots"
        gain = f"answers of people left out are likelier by {self.gain:.3g} a person, +- {self.error:.2g}, in logs"
        return (
            f"from the answers of {self.people:,} people ({self.family}, {self.iterations} iterations{slots}); {gain}"
        )


class Checkpoint(NamedTuple):
    """A chain that expectation maximisation came to."""

    family: str
    iterations: int
    chain: SlotChain
    objective: float


def learning(sample: Sample, tilt: Tilt, slots: int, public: FloatArray) -> Iterator[Checkpoint]:
    """The chains of all iterations; the objective is the penalised log-likelihood of the chain before.

    ``public`` (N,): the law of step 1. Neither family lowers it.
    """
    factors, beginning = tilt.factors(slots), public
    chain = SlotChain(tilt.matrices(factors), public)
    for iteration in range(1, TILTED + MIXED + 1):
        expected = sample.expected(chain)
        if iteration <= TILTED:
            prior = tilt.log_prior(factors)
            factors = tilt.fitted(expected.counts, factors)
            matrices = tilted = tilt.matrices(factors)
        else:
            prior = float(AROUND * (tilted * np.log(chain.matrices)).sum())
            matrices = tilt.around(expected.counts, tilted)
        law = float(_BEGINNING * (public[public > 0] * np.log(chain.initial[public > 0])).sum())
        beginning = expected.starts + _BEGINNING * public
        chain = SlotChain(matrices, beginning / beginning.sum())
        family = "tilt" if iteration <= TILTED else "mix"
        yield Checkpoint(family, iteration, chain, float(expected.logs.sum()) + prior + law)


class Choice(NamedTuple):
    """The family, iterations and slots to learn with, and the gains (people,) of those who were left out."""

    family: str
    iterations: int
    slots: Slots | None
    gains: FloatArray


def chosen(
    stretches: Sequence[Stretch],
    names: Sequence[str],
    base: MarkovModel,
    slots: Slots | None,
    progress: Progress | None = None,
) -> Choice:
    """The choice under which people who were left out are likeliest.

    The family is that of the number of people, unless the other one's gain is more than a standard error above it. One
    matrix is learned, unless the gain of ``slots`` is more than a standard error above its own.
    """
    part = np.empty(len(names), dtype=np.int64)
    part[by_name(names)] = np.arange(len(names)) % PARTS
    choices = list[Choice]()
    for number, tried in enumerate([None] if slots is None else [None, slots]):
        gains = np.sum([_gains(stretches, part == out, base, tried, len(names)) for out in range(PARTS)], axis=0)
        best = [int(gains[:TILTED].sum(axis=1).argmax()), TILTED + int(gains[TILTED:].sum(axis=1).argmax())]
        usual, other = best if len(names) < FEW else best[::-1]
        row = other if _better(gains[other], gains[usual]) else usual
        choices.append(Choice("tilt" if row < TILTED else "mix", row + 1, tried, gains[row]))
        if progress is not None:
            progress(number + 1, 3)
    return choices[-1] if _better(choices[-1].gains, choices[0].gains) else choices[0]


def _gains(
    stretches: Sequence[Stretch], out: BoolArray, base: MarkovModel, slots: Slots | None, people: int
) -> FloatArray:
    """The gains (iterations, people) over the public model of the people who are left ``out``, 0 of others."""
    tilt, public, count = Tilt.of(base), first_law(base), 1 if slots is None else slots.n
    rest = Sample(base, slots, [stretch for stretch in stretches if not out[stretch.person]], people)
    left = Sample(base, slots, [stretch for stretch in stretches if out[stretch.person]], people)
    before = left.log_likelihoods(public_chain(tilt, count, public))
    along = (left.log_likelihoods(checkpoint.chain) for checkpoint in learning(rest, tilt, count, public))
    return np.array(list(along)) - before


def _better(gains: FloatArray, usual: FloatArray) -> bool:
    """True if gains (people,) are more than a standard error above others of the same people."""
    return bool((gains - usual).sum() > _error(gains - usual))


def public_chain(tilt: Tilt, slots: int, public: FloatArray) -> SlotChain:
    """The public model as a chain of so many slots."""
    return SlotChain(tilt.matrices(tilt.factors(slots)), public)


def first_law(base: MarkovModel) -> FloatArray:
    """The public law (N,) of step 1."""
    if base.start == "at":
        return base.initial
    assert base.jump is not None
    return np.asarray(base.jump.stays * (base.initial @ base.matrix) + base.jump.share)


def _error(gains: FloatArray) -> float:
    """The standard error of the sum over people."""
    return float(np.std(gains, ddof=1) * np.sqrt(len(gains)))


def learner(plan: MarkovModel) -> MarkovModel:
    """The plan model with a jump: its own, or a rare one, under which no answer is impossible."""
    if plan.jump is not None:
        return plan
    jump = jump_beside(plan, DOUBT, public_base(plan))
    return plan.with_jump(jump.rate, jump.into)


def learn_rows(
    rows: ReleasedRows,
    subjects: Subjects,
    *,
    beside: Sequence[tuple[ReleasedRows, Subjects]] = (),
    files: Sequence[str] = (),
    drawn: Drawn | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Learn from released rows, as `learn`; ``files``: the digests that the model names as its origin.

    ``drawn``: of these rows, where they are known.

    Raises InvalidInput as `dphmm.reconstruction.smooth` does.
    """
    plan = subjects.setting.model
    if plan.slots is not None:
        return Learned.public(plan, 0, "the plan model has slots, and learning begins with one matrix")
    users, answered, _ = drawn or Drawn.of(rows, plan)
    if len(users) < FEWEST:
        few = f"and {answered} have any"
        if answered > len(users):
            few = f"and the moves of a model as large leave time for {len(users)} of {answered:,}: take larger cells"
        return Learned.public(plan, len(users), f"it takes the answers of at least {FEWEST} people, {few}")
    base = learner(plan)
    names, stretches = stretches_of(rows, subjects, base, beside, users)
    family, iterations, slots, gains = chosen(
        stretches, names, base, public_slots(stretches, plan.step, SLOTS), progress
    )
    gain, error, reason = float(gains.mean()), _error(gains) / len(gains), ""
    if gain <= error:
        reason = f"answers left out are likelier by {gain:.3g} a person, with a standard error of {error:.3g}"
        family, iterations = "public", 0
    record: dict[str, Any] = {
        "family": family,
        "iterations": iterations,
        "gain": gain,
        "error": error,
        "people": len(names),
    }
    provenance = {
        "method": ANSWERS,
        **record,
        "reason": reason,
        "plan": plan.provenance,
        "plan_model": plan.digest,
        "released": sorted(files),
    }
    if reason:
        return Learned(plan.with_origin(provenance), **record, reason=reason)
    tilt, count = Tilt.of(base), 1 if slots is None else slots.n
    every = learning(Sample(base, slots, stretches, len(names)), tilt, count, first_law(base))
    chain = next(checkpoint.chain for checkpoint in every if checkpoint.iterations == iterations)
    if progress is not None:
        progress(3, 3)
    matrices = [with_data(base.matrix, data) for data in chain.matrices]
    model = MarkovModel(
        chain.initial,
        matrices[0] if slots is None else matrices,
        space=plan.space,
        step=plan.step,
        start="at",
        provenance=provenance,
        jump=base.jump,
        secrets=base.secrets,
        slots=slots,
    )
    return Learned(model, **record)


class Drawn(NamedTuple):
    """Those who are learned from, of so many people with answers; steps times stored moves of a pass over them."""

    users: list[str]
    answered: int
    moves: int

    @classmethod
    def of(cls, rows: ReleasedRows, plan: MarkovModel) -> Drawn:
        """People by the hashes of their names, as many as have `MOST_STEPS` steps, and `MOST_MOVES` a pass."""
        names, steps = list[str](), list[int]()
        for user, at in rows.by_user():
            asked = at[[rows.plans[row] != "" for row in at.tolist()]]
            if len(asked):
                gaps = np.diff(rows.step[asked])
                names.append(user)
                steps.append(1 + int(np.where(gaps > longest_gap(gaps), 1, gaps).sum()))
        order, each = by_name(names), plan.n_transitions + plan.n_states
        total = np.cumsum(np.array(steps, dtype=np.int64)[order])
        count = int((total <= min(MOST_STEPS, MOST_MOVES // each)).sum())
        users = [names[number] for number in order[:count].tolist()]
        return cls(users, len(names), each * int(total[count - 1]) if count else 0)

    @property
    def seconds(self) -> float:
        """About how long learning takes at most."""
        return PASSES * self.moves * _SECONDS


def by_name(names: Sequence[str]) -> IntArray:
    """People in the order of the hashes of their names, which no answer decides."""
    order = sorted(range(len(names)), key=lambda n: hashlib.sha256(names[n].encode()).digest())
    return np.array(order, dtype=np.int64)


def learn(
    released: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact | None = None,
    *,
    initials: Mapping[str, Any] | None = None,
    step_choices: StepChoices | None = None,
    beside: Sequence[OtherQuery] = (),
    progress: bool | Progress = True,
    **choices: Unpack[ReleaseChoices],
) -> Learned:
    """A model of how people move, learned from a finished release: to read it with, as ``believe``.

    Parameters
    ----------
    released, model, policy, space, epsilon, initials, step_choices, beside : as for `dphmm.reconstruction.smooth`;
        ``choices`` are its other choices of the release.
    progress : show a bar on a terminal, or call (done, total).

    Returns
    -------
    `Learned`, whose ``model`` is the public one, with the ``reason``, where the answers of people who were left out are
    not likelier by a standard error, or fewer than ten people have answers. Of a release of many steps a part of the
    people is learned from, drawn by their names. Equal files give equal models, whatever the truth.

    Raises
    ------
    InvalidInput : as `dphmm.reconstruction.smooth` does.

    Examples
    --------
    >>> import dphmm, pandas
    >>> space = dphmm.StateSpace.categories(["home", "work"])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], space=space)
    >>> public = model, dphmm.policy.complete(2), space
    >>> rows = pandas.DataFrame({"user": ["ann", "ann"], "step": [1, 2], "state": ["home", "work"]})
    >>> released = dphmm.release_many(rows, *public, epsilon=1, bits=dphmm.ReplayBits(1), progress=False)
    >>> learned = dphmm.reconstruction.learn(released, *public, progress=False)
    >>> learned.family, learned.reason
    ('public', 'it takes the answers of at least 10 people, and 1 have any')

    Source: docs/proofs/learning-from-answers.md.
    """
    rows, subjects = rows_and_subjects(released, (model, policy, space), epsilon, initials, step_choices, **choices)
    others = [query.read(subjects.setting, initials, step_choices) for query in beside]
    files = [digest_of(each) for each in (rows, *(other for other, _ in others))]
    with shown(progress, "learn") as report:
        return learn_rows(rows, subjects, beside=others, files=files, progress=report)


def digest_of(rows: ReleasedRows) -> str:
    """SHA-256 (hex) of what was published: people, steps, answers and plans, by person and step."""
    digest = hashlib.sha256()
    for user, at in rows.by_user():
        published = [user, rows.step[at].tolist(), rows.z[at].tolist(), [rows.plans[row] for row in at.tolist()]]
        digest.update(json.dumps(published).encode() + b"\n")
    return digest.hexdigest()
