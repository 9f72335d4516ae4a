"""The change that published answers make to the odds of an event on one subject's path: exact, from public data.

An event: in a window of steps the subject was, at some step (or, with ``always``, at every step), in one of some
states. Two rows of logs are moved along the chain together: the paths on which the event can still be decided, and
those on which it is decided already. So the odds are a ratio of two sums of positive terms, never a difference, and a
possible event never gets probability 0 by underflow.

Proof: docs/proofs/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dphmm import _kernels
from dphmm._checks import state_mask, whole
from dphmm.accounting.budget import sum_above
from dphmm.accounting.edge_leakage import losses_between
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.session.plan import Position
from dphmm.session.rounds import check_gap
from dphmm.session.setting import Setting, Subjects
from dphmm.session.smoothing import AnswerHistory, Smoother, Steps
from dphmm.types import BoolArray, FloatArray, IntArray, States

if TYPE_CHECKING:
    from dphmm.session.smoothing import JointSteps

#: Change of a log-weight in a move that counts as none: a few units in its last place.
_SETTLED = 1e-14


@dataclass(frozen=True, eq=False)
class PathEvent:
    """In steps ``first`` to ``last``: at some step in one of ``states`` (N,), or with ``always`` at every step."""

    states: BoolArray
    first: int
    last: int
    always: bool = False

    @classmethod
    def of(cls, states: States, n_states: int, first: int, last: int, always: bool = False) -> PathEvent:
        """An event of a chain of N states, given by a mask or state numbers; steps count from 1.

        Raises InvalidInput for a state that there is not, for none, and for a window that ends before it begins.

        >>> PathEvent.of([2], 4, 3, 5).states.tolist()
        [False, False, True, False]
        """
        mask = state_mask(states, n_states, "states")
        if not mask.any():
            raise InvalidInput("states", "none", "at least one state")
        begins = whole(first, "first", 1)
        ends = whole(last, "last", 1)
        if ends < begins:
            raise InvalidInput("last", f"{ends}, before {begins}", "the last step of the window, not before the first")
        return cls(mask, begins, ends, always)


class Odds(NamedTuple):
    """Logs of the probabilities that an event happened and that it did not; -inf where that is impossible."""

    log_event: float
    log_other: float

    @property
    def probability(self) -> float:
        """The probability of the event."""
        return math.exp(self.log_event)

    @property
    def log_odds(self) -> float:
        """log of P(event) / P(not): -inf for an impossible event, inf for a certain one."""
        return self.log_event - self.log_other

    @property
    def decided(self) -> bool:
        """True if the event is impossible or certain."""
        return math.inf in (-self.log_event, -self.log_other)


@dataclass(frozen=True, eq=False)
class EventOdds:
    """The prior and posterior odds of an event, given one subject's published answers.

    ``prior``: under the reader's model alone, ``posterior``: given all answers. ``answers``: the number of asked steps.
    ``cost``: the sum of the costs of their plans, which bounds the loss of any event (Theorem 7.2).
    """

    subject: str
    prior: Odds
    posterior: Odds
    answers: int
    cost: Fraction

    @property
    def loss(self) -> float | None:
        """log of posterior odds over prior odds; None where the model alone decides the event.

        -inf or inf where an answer excludes the event or its contrary for certain.
        """
        return None if self.prior.decided else self.posterior.log_odds - self.prior.log_odds


class EventWatch:
    """The odds of one event for many subjects whose releases were made under one setting.

    ``believed``: the belief model of the reader, as `Smoother` takes it.
    """

    def __init__(
        self,
        setting: Setting,
        event: PathEvent,
        subjects: Subjects | None = None,
        believed: MarkovModel | None = None,
    ) -> None:
        if len(event.states) != setting.space.n_states:
            fault = f"{len(event.states)} states"
            raise InvalidInput("event", fault, f"{setting.space.n_states}, the states of the model")
        self._event = event
        self._smoother = Smoother(setting, subjects, believed)
        self._priors: dict[tuple[int, int, int], Odds] = {}

    def odds(
        self,
        published: AnswerHistory,
        window: tuple[int, int] | None = None,
        beside: Sequence[tuple[Smoother, AnswerHistory]] = (),
    ) -> EventOdds:
        """One subject's odds; ``window`` (first, last) stands for the event's steps where they are the subject's own.

        ``beside``: the answers of its other queries. Raises as `Smoother.smooth` does, and for a window that ends too
        long after the last answer.
        """
        first, last = window or (self._event.first, self._event.last)
        steps = self._smoother.observed(published, beside)
        model, start = steps.reading.model, steps.reading.first(published.origin)
        event = PathEvent(start.prior.lifted(self._event.states), first, last, self._event.always)
        check_gap(max(0, last - int(steps.t[-1])))
        plans = steps.plans
        posterior = _followed(model, start, event, _answers(published, steps, {t for t, _ in plans}))
        key = first, last, start.ahead
        if key not in self._priors:
            self._priors[key] = _followed(model, start, event, iter(()))
        cost = sum((plan.cost for _, plan in plans), Fraction(0))
        return EventOdds(published.subject, self._priors[key], posterior, len(plans), cost)


def path_loss(
    smoother: Smoother,
    published: AnswerHistory,
    one: IntArray,
    other: IntArray,
    beside: Sequence[tuple[Smoother, AnswerHistory]] = (),
) -> float:
    """An upper bound on the loss of one subject's answers between two paths (T,) of states, from step 1 to step T.

    The bound is the sum, over the asked steps, of the loss between the two states, rounded up; ``math.inf`` where
    an answer can tell them apart for certain. ``beside``: the answers of the subject's other queries. Raises
    InvalidInput for a path that ends before the last answer.

    Source: docs/proofs/paths.md.
    """
    n, observed = smoother.setting.space.n_states, smoother.observed(published, beside)
    for name, path in (("one", one), ("other", other)):
        if len(path) < observed.t[-1]:
            expected = f"{int(observed.t[-1])}, a state for every step up to the last answer"
            raise InvalidInput(name, f"{len(path)} states", expected)
        if path.min() < 0 or path.max() >= n:
            raise InvalidInput(name, "a state that there is not", f"state numbers from 0 to {n - 1}")
    total = np.zeros(1)
    for t, plan in observed.plans:
        pair = one[t - 1 : t], other[t - 1 : t]
        total = np.asarray(sum_above(total, losses_between(plan, *pair, n)))
    return float(total[0])


class _Answer(NamedTuple):
    """An answer of step ``t``, called ``name`` in errors: its log-likelihood (N,) up to a constant."""

    t: int
    logs: FloatArray
    name: str


class _Paths:
    """Log-weights (N,) of all paths so far by the model's state now: ``open`` ones, and those that are ``closed``.

    Closed paths have been in one of the states that close a path, in the window.
    """

    def __init__(self, model: MarkovModel, start: Position) -> None:
        self._model, self._ahead = model, start.ahead
        self.open: FloatArray = start.prior.latent.log_probability.copy()
        self.closed: FloatArray = np.full(model.n_states, -np.inf)

    def close(self, states: BoolArray) -> None:
        """Close the open paths that are in some of these states."""
        self.closed[states] = np.logaddexp(self.closed[states], self.open[states])
        self.open[states] = -np.inf

    def weigh(self, answer: _Answer) -> None:
        """Weigh every path by how likely it makes an answer, up to a factor that all have."""
        self.open, self.closed = self.open + answer.logs, self.closed + answer.logs
        top = max(self.open.max(), self.closed.max())
        if top == -math.inf:
            raise InvalidInput(answer.name, "an answer that no possible state gives", "the answer that was released")
        self.open -= top
        self.closed -= top

    def move(self, t: int, moves: int) -> None:
        """So many moves of the chain from step t, those of one matrix until a further one would change nothing."""
        # With weights no state is too rare to count.
        weights = np.ones(len(self.open))
        for first, several in self._model.slot_runs(t + 1 + self._ahead, moves):
            columns = self._model.predecessors_at(first)
            for row in (self.open, self.closed):
                _kernels.filter.move_logs(columns, weights, columns.share, _SETTLED, several, row)

    def odds(self, always: bool) -> Odds:
        """The odds of the event: that a path is closed, or with ``always`` that it is open."""
        weights = [float(np.logaddexp.reduce(row)) for row in (self.closed, self.open)]
        both = float(np.logaddexp(weights[0], weights[1]))
        closed, still_open = (min(0.0, weight - both) for weight in weights)
        return Odds(still_open, closed) if always else Odds(closed, still_open)


def _followed(model: MarkovModel, start: Position, event: PathEvent, answers: Iterator[_Answer]) -> Odds:
    """The odds at the end of the window and of the answers; without any answers, those of the model."""
    paths, closing = _Paths(model, start), ~event.states if event.always else event.states
    coming, t = next(answers, None), 1
    while True:
        if event.first <= t <= event.last:
            paths.close(closing)
        if coming is not None and coming.t == t:
            paths.weigh(coming)
            coming = next(answers, None)
        if t >= event.last and coming is None:
            return paths.odds(event.always)
        # The next step at which something is closed or weighed.
        stops = [max(t + 1, event.first)] * (t < event.last) + ([] if coming is None else [coming.t])
        paths.move(t, min(stops) - t)
        t = min(stops)


def _answers(published: AnswerHistory, steps: Steps | JointSteps, asked: set[int]) -> Iterator[_Answer]:
    """The answer at each of the steps that were ``asked``."""
    for n, t in enumerate(steps.t.tolist()):
        if t not in asked:
            continue
        rows = steps.rows(n, n + 1)
        yield _Answer(t, rows.logs[rows.which[0]], published.at(t))
