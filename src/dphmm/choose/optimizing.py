"""A table made once for a model and a policy, and certified, for `dphmm.choose.optimize` and ``dphmm optimize``.

Proof: docs/proofs/made-table.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dphmm._checks import exact_epsilon
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms.answer_table import AnswerTable, MadeTable, Making
from dphmm.mechanisms.hops import Hops
from dphmm.mechanisms.table import LARGEST_PROGRAM, OptimalTable
from dphmm.mechanisms.table_program import has_room
from dphmm.policy.graph import PolicyGraph
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting
from dphmm.states.space import StateSpace
from dphmm.types import Exact, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.mechanisms.table_program import Round

#: What is least in the mean, by name: squared distance, distance, or the share that is named wrongly.
LOSSES = ("squared", "distance", "label")
#: Where columns stop, relative to what is proved of all mechanisms.
GAP = 1.05


def optimize(
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    *,
    loss: str | ArrayLike | None = None,
    gap: float = GAP,
    protection: str = "auto",
    progress: Callable[[Round], None] | None = None,
) -> MadeTable:
    """A table of least mean cost for a release about all states of a model, in certified whole numbers.

    The weights of the states are the model's occupancy (its initial distribution if it was fitted as one),
    or alike for all states. It decides errors and no promise. The table keeps ε on the policy's edges and on the joins
    that the release adds; states that a release answers as others (``protection``) have no row of their own.

    Parameters
    ----------
    model, policy, space, epsilon, protection : as for a `dphmm.ReleaseSession` that is to use the table.
    loss : "squared", "distance" (in answer units) or "label" (right or wrong); or costs (N, N) of naming each state
        (column) where each (row) is true, 0 or more. "squared" without it, of labels "label".
    gap : for more answers than one linear program has room for: stop where the mean cost is within this ratio of a
        bound for all mechanisms.
    progress : called with every round, where there are rounds (`dphmm.mechanisms.table_program.Round`).

    Returns
    -------
    MadeTable : for `ReleaseSession(mechanism=...)` and all others; `storage.save_table` keeps it. Its ``making`` says
        the mean cost and the certified ratio to the best mechanism.

    Raises
    ------
    InvalidInput : naming the argument; more than 400 different answers; answers that are all the same.
    Unprotectable : states that nothing can hide.

    Examples
    --------
    >>> import dphmm
    >>> space = dphmm.StateSpace([0, 1, 2])
    >>> model = dphmm.MarkovModel([0.2, 0.3, 0.5], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    >>> table = dphmm.choose.optimize(model, dphmm.policy.complete(3), space, 1, loss="distance")
    >>> session = dphmm.ReleaseSession(model, dphmm.policy.complete(3), space, epsilon=1, mechanism=table)

    Source: the linear program of Bordenabe, Chatzikokolakis and Palamidessi (2014) with the edges of a policy;
    docs/proofs/made-table.md, docs/proofs/optimal-table.md.
    """
    exact = exact_epsilon(epsilon)
    if not gap >= 1:
        raise InvalidInput("gap", gap, "a ratio of at least 1, such as 1.01")
    setting = Setting.of(model, policy, space, exact, mechanism=Hops.name, protection=protection)
    all_states = np.ones(space.n_states, dtype=np.bool_)
    plan = setting.planner.plan(all_states, all_states)
    if plan.constant:
        raise InvalidInput("space", "answers that are all the same", "a space with answers that differ")
    by_hops = plan.mechanism
    assert isinstance(by_hops, AnswerTable)
    name, costs = _costs(loss, space)
    prior, mean = _by_answer(plan, by_hops, setting.planner.weights, costs)
    answers, edges = by_hops.law.points, by_hops.edges
    method = (
        None
        if len(edges) == 0 or exact > LARGEST_PROGRAM or has_room(len(answers), len(edges), lambda: 1)
        else "columns"
    )
    optimal = OptimalTable(
        answers, edges, exact, frame=space.frame, prior=prior, costs=mean, method=method, gap=gap, progress=progress
    )
    best = optimal.optimum
    making = Making(
        loss=name,
        cost=optimal.mean_cost,
        bound=0.0 if best is None else max(0.0, best.bound),
        method="truth" if best is None else method or "program",
    )
    return MadeTable(
        answers,
        edges,
        exact,
        optimal.law.weights,
        space=space.digest,
        frame=space.frame,
        prior=prior,
        making=making,
        labels=space.has_labels,
    )


def _costs(loss: str | ArrayLike | None, space: StateSpace) -> tuple[str, FloatArray]:
    """The name of a loss, and the costs (N, N) of releasing the answer of each state (column) where each is true."""
    if loss is None:
        loss = "label" if space.has_labels else "squared"
    if not isinstance(loss, str):
        return "custom", _own_costs(loss, space.n_states)
    if loss not in LOSSES:
        raise InvalidInput("loss", loss, f"one of {', '.join(LOSSES)}, or costs (N, N)")
    if loss != "label" and space.has_labels:
        raise InvalidInput("loss", loss, "label, or costs (N, N): names have no distance")
    true, named = space.own_answers, space.answers
    if loss == "label":
        return loss, np.asarray((true[:, None] != named[None]).any(axis=2), dtype=np.float64)
    apart = np.square(true[:, None] - named[None]).sum(axis=2)
    return loss, np.asarray(apart if loss == "squared" else np.sqrt(apart))


def _own_costs(costs: ArrayLike, n: int) -> FloatArray:
    try:
        table = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("loss", type(costs).__name__, f"one of {', '.join(LOSSES)}, or costs (N, N)") from None
    if table.shape != (n, n):
        raise InvalidInput("loss", f"costs of shape {table.shape}", f"({n}, {n}): one for every two states")
    if not np.isfinite(table).all() or (table < 0).any():
        raise InvalidInput("loss", "a cost that is negative, infinite or none", "finite costs, 0 or more")
    return table


def _by_answer(
    plan: StepPlan, table: AnswerTable, weights: IntArray | None, costs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The weight of each answer (n,), and the mean costs (n, n), for each true answer, of naming each.

    A state that is answered as another counts with its own costs. If an answer stands for several states, naming it
    costs as much as the best of them.
    """
    row = table.law.numbers(plan.image)
    n = len(table.law.points)
    weight = np.ones(len(row)) if weights is None or not weights.any() else weights.astype(np.float64)
    prior = np.asarray(np.bincount(row, weights=weight, minlength=n), dtype=np.float64)
    # An answer that nobody is at has the plain mean of its states: it is of no weight.
    share = np.where(prior[row] > 0, weight, 1.0)
    planned = np.flatnonzero(plan.constraint.plan)
    named = np.full((len(row), n), np.inf)
    for state in planned.tolist():
        np.minimum(named[:, row[state]], costs[:, state], out=named[:, row[state]])
    mean = np.zeros((n, n))
    np.add.at(mean, row, share[:, None] * named)
    return prior, mean / np.bincount(row, weights=share, minlength=n)[:, None]
