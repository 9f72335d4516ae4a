"""How published answers change the odds of an event: equal to sums over every path, whatever the options.

Claims: prior and posterior odds are those that brute force over all paths gives, to 1e-12, for δ-sets, lonely
states, gaps, rows that were not asked, jumps, windows before the first answer and after the last;
an event that the model decides is said to be decided; a possible event never becomes impossible by underflow; no loss
is above the sum of the costs. Fails where a step of the window is missed, where an answer is weighed at another step or
twice, where the jump is forgotten, or where the plan is another step's.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.session.odds import EventWatch, PathEvent, path_loss
from dphmm.session.options import Options
from dphmm.session.setting import Setting
from dphmm.session.smoothing import AnswerHistory, Smoother

N = 3
CHOICES = {
    "support": {},
    "delta": {"constraint": "delta=0.3"},
    "lonely": {},
    "at": {"start": "at"},
    "graded": {"mechanism": "discrete-knorm"},
    "table": {"mechanism": "optimal-table"},
    "jump": {},
    "large": {"epsilon": 30},
}
#: What each of five steps is: asked, not asked (a row without a plan), or no row at all.
ROWS = {"all": "aaaaa", "some": "anaga", "late": "ggana", "short": "aa"}
WINDOWS = [(1, 1), (2, 4), (1, 5), (5, 5), (3, 7)]


def setting_of(name):
    choices = dict(CHOICES[name])
    epsilon = choices.pop("epsilon", 1)
    space = dphmm.StateSpace([[0, 0], [2, 1], [1, 3]])
    policy = dphmm.policy.complete(N)
    if name == "lonely":
        policy = dphmm.policy.from_edges([(0, 1)], N)
    matrix = [[0.7, 0.3, 0], [0.2, 0.5, 0.3], [0, 0.4, 0.6]]
    model = dphmm.MarkovModel([0.6, 0.4, 0.0], matrix, jump=0.05 if name == "jump" else None)
    options = Options.checked(epsilon, **{"start": model.start, **choices})
    return Setting(model, policy, space, options)


def played(name, rows, seed=1):
    """A subject's published rows, and for each step that was asked its plan and answer."""
    setting = setting_of(name)
    choices = dict(CHOICES[name])
    session = dphmm.ReleaseSession(
        setting.model, setting.policy, setting.space, choices.pop("epsilon", 1), bits=dphmm.ReplayBits(seed), **choices
    )
    rng, asked, t, z, plans = np.random.default_rng(seed), [], [], [], []
    for step, kind in enumerate(ROWS[rows], start=1):
        if kind == "a":
            plan = session.plan
            release = session.release(int(rng.choice(np.flatnonzero(session.support))))
            asked.append((step, plan, release.z_lattice))
        else:
            session.skip(1)
        if kind != "g":
            t.append(step)
            z.append(asked[-1][2] if kind == "a" else np.zeros(2, dtype=np.int64))
            plans.append(asked[-1][1].hash if kind == "a" else "")
    return setting, AnswerHistory("u", np.array(t), np.array(z), plans), asked


def paths_of(model, start, steps):
    """Every path (states of steps 1..) with its probability, a path at a time."""
    matrix = model.matrix.toarray()
    if model.jump is not None:
        matrix = model.jump.stays * matrix + model.jump.share
    before = 1 if start == "before" else 0
    for path in itertools.product(range(N), repeat=steps + before):
        p = model.initial[path[0]] * math.prod(matrix[a, b] for a, b in itertools.pairwise(path))
        if p > 0:
            yield path[before:], p


def likelihood(plan, z):
    possible = plan.still_possible(z)
    logs = plan.log_likelihood(z)
    top = logs[possible].max()
    return np.where(possible, np.exp(np.where(possible, logs - top, 0)), 0)


def weighed(setting, asked):
    """For so many steps every path, its probability, and that of path and answers."""
    weights = [(step, likelihood(plan, z)) for step, plan, z in asked]
    answered = max([0, *(step for step, _, _ in asked)])

    @cache
    def paths(steps):
        every = paths_of(setting.model, setting.options.start, max(steps, answered))
        return [(path, p, p * math.prod(row[path[step - 1]] for step, row in weights)) for path, p in every]

    return paths


def brute(paths, event):
    """P(event), P(not), and both given the answers: by summing paths."""
    sums = [[0.0, 0.0], [0.0, 0.0]]
    for path, before, after in paths(event.last):
        within = [event.states[s] for s in path[event.first - 1 : event.last]]
        happened = all(within) if event.always else any(within)
        sums[0][not happened] += before
        sums[1][not happened] += after
    return np.array(sums) / np.sum(sums, axis=1, keepdims=True)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", CHOICES)
def test_equal_to_all_paths(name, rows):
    setting, published, asked = played(name, rows)
    paths, decided, changed = weighed(setting, asked), 0, 0
    for states, (first, last), always in itertools.product(([0], [2], [0, 2]), WINDOWS, (False, True)):
        event = PathEvent.of(states, N, first, last, always)
        got, expected = EventWatch(setting, event).odds(published), brute(paths, event)
        for odds, (happened, other) in zip((got.prior, got.posterior), expected, strict=True):
            assert odds.probability == pytest.approx(happened, rel=1e-12, abs=0)
            assert math.exp(odds.log_other) == pytest.approx(other, rel=1e-12, abs=0)
        assert got.prior.decided == (0 in expected[0])
        decided += got.prior.decided
        if got.loss is not None:
            with np.errstate(divide="ignore"):
                before, after = np.log(expected[:, 0]) - np.log(expected[:, 1])
            assert got.loss == pytest.approx(after - before, rel=1e-11, abs=1e-12)
            assert abs(got.loss) <= got.cost + 1e-12
            changed += got.loss != 0
        assert got.answers == len(asked) and got.cost == sum(plan.cost for _, plan, _ in asked)
    assert changed
    # Where the start is "at", state 2 cannot be at step 1: some of the events are decided.
    assert (decided > 0) == (name == "at")


def test_a_rare_event_keeps_its_odds():
    """A corridor crossed in as many steps as it has cells: 1e-600 is far below any float, and not 0."""
    n = 301
    matrix = np.diag(np.full(n - 1, 0.01), 1)
    matrix[np.arange(n), np.arange(n)] = 1 - matrix.sum(axis=1)
    model = dphmm.MarkovModel(np.eye(n)[0], matrix, start="at")
    space = dphmm.StateSpace(np.arange(n))
    options = Options.checked(1, start="at")
    setting = Setting(model, dphmm.policy.radius(space, 1), space, options)
    published = AnswerHistory("u", np.array([1]), np.zeros((1, 1), dtype=np.int64), [""])
    got = EventWatch(setting, PathEvent.of([n - 1], n, n, n)).odds(published)
    assert got.prior.log_event == pytest.approx((n - 1) * math.log(0.01), rel=1e-12)
    assert got.prior.log_other == 0 and got.loss == 0 and not got.prior.decided


@pytest.mark.parametrize(("states", "always", "log_odds"), [([1], False, -math.inf), ([0], True, math.inf)])
def test_a_decided_event_has_no_loss(states, always, log_odds):
    space = dphmm.StateSpace([0, 1])
    model = dphmm.MarkovModel([1, 0], np.eye(2), start="at")
    setting = Setting(model, dphmm.policy.complete(2), space, Options.checked(1, start="at"))
    session = dphmm.ReleaseSession(model, setting.policy, space, 1, bits=dphmm.ReplayBits(1))
    z = session.release(0)
    got = EventWatch(setting, PathEvent.of(states, 2, 1, 3, always)).odds(
        AnswerHistory("u", np.array([1]), z.z_lattice[None], [z.plan_hash])
    )
    assert got.prior.decided and got.loss is None
    assert got.prior.log_odds == got.posterior.log_odds == log_odds


def test_a_long_gap_is_ended_where_nothing_moves():
    """A million moves between two answers are two million, and take no time; so are those to a far window."""
    setting, published, _ = played("jump", "all")
    for first, last in ((1, 2), (10**6 - 3, 10**6 - 2)):
        watch = EventWatch(setting, PathEvent.of([2], N, first, last))
        near, far = (
            watch.odds(
                AnswerHistory("u", np.array([1, t]), published.z[[0, 4]], [published.plans[0], published.plans[4]])
            )
            for t in (10**6, 2 * 10**6)
        )
        assert near.prior.probability == far.prior.probability > 0
        assert near.loss == pytest.approx(far.loss, rel=1e-9) if first == 1 else near.loss != far.loss


def test_two_possible_paths_lose_at_most_the_sum_of_their_pairs():
    """The graded form: of every pair of paths, log Pr(z | one) - log Pr(z | other) is within the bound; and near it."""
    for name in ("support", "delta", "table", "lonely", "jump"):
        setting, published, asked = played(name, "some")
        rows = [(step, plan, z) for step, plan, z in asked]
        smoother, reached = Smoother(setting), 0.0
        possible = sorted({path for path, _ in paths_of(setting.model, setting.options.start, 5)})
        for one, other in itertools.product(possible[::7], possible[::5]):
            loss = 0.0
            for step, plan, z in rows:
                logs = np.where(plan.still_possible(z), plan.log_likelihood(z), -np.inf)
                with np.errstate(invalid="ignore"):
                    loss += logs[one[step - 1]] - logs[other[step - 1]]
            bound = path_loss(smoother, published, np.array(one), np.array(other))
            assert math.isnan(loss) or abs(loss) <= bound + 1e-12, name
            reached = max(reached, abs(loss) / bound if 0 < bound < math.inf and math.isfinite(loss) else 0)
            if one == other:
                assert bound == 0
        assert reached > 0.3, name


def test_events_and_paths_that_cannot_be():
    setting, published, _ = played("support", "all")
    wrong = (([3], 1, 1, "states"), ([], 1, 1, "states"), ([0], 0, 1, "first"), ([0], 3, 2, "last"))
    for states, first, last, field in wrong:
        with pytest.raises(InvalidInput) as refused:
            PathEvent.of(states, N, first, last)
        assert refused.value.field == field
    with pytest.raises(InvalidInput, match="states of the model"):
        EventWatch(setting, PathEvent.of([0], 4, 1, 1))
    with pytest.raises(InvalidInput, match="gap"):
        EventWatch(setting, PathEvent.of([0], N, 1, 2**27)).odds(published)
    for one in (np.zeros(4, dtype=int), np.full(5, 3)):
        with pytest.raises(InvalidInput):
            path_loss(Smoother(setting), published, one, np.zeros(5, dtype=int))
