"""What the answers of several queries about one subject say together.

Each query of a subject has a session of its own, whose belief knows its own answers alone. All of them are about one
state at each step, and drawn with words of their own: given the state they are independent, so likelihoods multiply.

Proof: docs/proofs/joint-queries.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger
from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.markov.retrospect import Rows
from dphmm.policy.graph import PolicyGraph
from dphmm.session.plan import NO_PARTNERS, Plan
from dphmm.session.retrospect import Hindsight, Published, another_plan, check_steps, likelihood_row
from dphmm.session.rounds import check_joint
from dphmm.session.schedule import PlanSchedule
from dphmm.session.setting import Setting, check_header
from dphmm.session.step import Position
from dphmm.session.walk import check_made_again
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, IntArray


class JointSteps:
    """The published answers of several queries of one subject as observations of the chain, step by step (``t``).

    ``prior`` is the belief before the first. Raises InvalidInput for queries that no subject can have together, and as
    `Hindsight.steps` does.
    """

    def __init__(self, queries: Sequence[tuple[Hindsight, Published]]) -> None:
        subject, setting = queries[0][1].subject, queries[0][0].setting
        for hindsight, published in queries:
            check_steps(published)
            if hindsight is not queries[0][0]:
                check_joint(hindsight.setting.header(subject, ""), setting.header(subject, ""))
        self.t: IntArray = np.unique(np.concatenate([published.t for _, published in queries]))
        self._moves = np.diff(self.t, prepend=self.t[:1])
        self._schedule = PlanSchedule(setting)
        first, start = int(self.t[0]), setting.first()
        self.prior = (start.skipping(setting.model, first - start.t) if first > start.t else start).prior
        rows: dict[int, list[tuple[Hindsight, Published, int]]] = {t: [] for t in self.t.tolist()}
        for hindsight, published in queries:
            for n, t in enumerate(published.t.tolist()):
                if published.plans[n]:
                    rows[t].append((hindsight, published, n))
        self._answers = [self._drawn(self._schedule.support(t), found) for t, found in rows.items()]

    @property
    def moves(self) -> IntArray:
        """Moves (n,) between each step and the one before."""
        return self._moves

    def rows(self, first: int, last: int) -> Rows:
        """How likely each state makes all answers of the steps first..last, in logs."""
        n = self.prior.n_states
        values, own = np.zeros((last - first, n)), np.empty(n)
        for place, answers in enumerate(self._answers[first:last]):
            for plan, published, row in answers:
                logged = likelihood_row(plan, published.z[row], own, published.at(int(published.t[row])))
                with np.errstate(divide="ignore"):
                    values[place] += own if logged else np.log(own)
        return Rows(values, np.ones(len(values), dtype=np.bool_), np.arange(len(values)))

    @property
    def plans(self) -> list[tuple[int, Plan]]:
        """The plan of every answer, with its step."""
        found = zip(self.t.tolist(), self._answers, strict=True)
        return [(t, plan) for t, answers in found for plan, _, _ in answers]

    def _drawn(
        self, support: BoolArray, waiting: list[tuple[Hindsight, Published, int]]
    ) -> list[tuple[Plan, Published, int]]:
        """The plans of one step's answers: each was made beside the partners that those before it had fixed."""
        found: list[tuple[Plan, Published, int]] = []
        while waiting:
            partners = NO_PARTNERS
            if found:
                partners = np.unique(np.vstack([plan.partners for plan, _, _ in found]), axis=0)
            for place, (hindsight, published, n) in enumerate(waiting):
                plan = hindsight.planned(support, published, n, partners)
                if plan is not None:
                    found.append((plan, published, n))
                    del waiting[place]
                    break
            else:
                _, published, n = waiting[0]
                raise another_plan(published.at(int(published.t[n])), published.plans[n], "")
        return found


def joint_belief(
    ledger: Ledger,
    subject: str,
    model: MarkovModel,
    policy: PolicyGraph,
    spaces: StateSpace | Mapping[str, StateSpace],
    *,
    t: int | None = None,
    initial: Any = None,
    policies: Sequence[PolicyGraph] = (),
) -> Belief:
    """The public belief about a subject given the answers of all its queries.

    Parameters
    ----------
    ledger, subject : where the answers are, and whose they are.
    model, policy : those of the releases.
    spaces : the space of each query, by its name; one for all queries of the same.
    t : the step that the belief is about, given all answers up to it; the last stored one by default. Later steps are
        predicted.
    initial, policies : as for `ReleaseSession.resume`.

    Returns
    -------
    A Belief: ``probability`` (N,) and ``support`` (N,).

    Raises
    ------
    InvalidInput : no history, a query without a space, another model, policy or space than it was released under.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.accounting.ledger import MemoryLedger
    >>> space, ledger, bits = dphmm.StateSpace.labels(["home", "work"]), MemoryLedger(), dphmm.ReplayBits(2)
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], start="at")
    >>> given = {"ledger": ledger, "subject": "a", "bits": bits}
    >>> for query in ("first", "second"):
    ...     session = dphmm.ReleaseSession(model, dphmm.policy.complete(2), space, 1, query=query, **given)
    ...     _ = session.release("home")
    >>> both = dphmm.joint_belief(ledger, "a", model, dphmm.policy.complete(2), space)
    >>> round(float(session.posterior.probability.max()), 3), round(float(both.probability.max()), 3)
    (0.731, 0.881)

    Source: docs/proofs/joint-queries.md.
    """
    stored: dict[int, list[tuple[Setting, Entry]]] = {}
    last, start = 0, None
    for _, query in ledger.sessions_of([subject]):
        header = ledger.header(subject, query)
        space = spaces if isinstance(spaces, StateSpace) else spaces.get(query)
        if header is None or space is None:
            raise InvalidInput("spaces", f"none for the query {query!r}", "a space for every query of the subject")
        setting = Setting.read(header.options, model, policy, space, query, policies).beginning(initial)
        check_header(setting.header(subject, header.options.get("origin", "")), header)
        start = setting.first() if start is None else start
        for entry in ledger.entries(subject, query):
            last = max(last, entry.through)
            if entry.z is not None and (t is None or entry.t <= t):
                stored.setdefault(entry.t, []).append((setting, entry))
    if start is None:
        raise InvalidInput("subject", "one that the ledger does not know", "a subject of the ledger")
    if t is not None and (isinstance(t, bool) or not isinstance(t, (int, np.integer)) or t < 1):
        raise InvalidInput("t", str(t), "the number of a step, from 1")
    until, position = last if t is None else int(t), start
    belief = position.prior
    for step in sorted(stored):
        if step > position.t:
            position = position.skipping(model, step - position.t)
        belief = _given(position, stored[step], ledger)
        position = position.following(model, belief)
    return belief if position.t > until else position.passing(model, until).prior


def _given(position: Position, answers: Sequence[tuple[Setting, Entry]], ledger: Ledger) -> Belief:
    """The belief of a step given the answers of its queries."""
    belief = position.prior
    for setting, entry in answers:
        plan = setting.made_again(position.prior.support, ledger.plan(str(entry.plan_hash)))
        check_made_again(entry, plan.hash)
        z = np.array(entry.z, dtype=np.int64)
        belief = belief.condition(plan.log_likelihood(z), plan.still_possible(z))
    return belief
