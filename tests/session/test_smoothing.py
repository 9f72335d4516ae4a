"""Smoothing of finished releases: rebuilt from public data alone, and equal to sums over all paths.

Claims: the likelihoods of every step are those of the plan that released it, whatever the options (δ-sets with their
surrogates, thickened bodies, lonely states, gaps, start), so that the last step's marginals are the
session's own posterior; the whole equals brute force over paths; nothing but the published rows is read. Fails where a
plan is made from another support, where a gap is one move too long, or where rows are mixed up.
"""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.release import decoding
from dphmm.session import smoothing
from dphmm.session.options import Options
from dphmm.session.setting import Setting
from dphmm.session.smoothing import AnswerHistory, Smoother
from markov.test_filtering import brute

N = 5
#: Skips before some steps; the first release of "late" is at step 2.
GAPS = {"none": (0, 0, 0, 0), "some": (0, 2, 0, 1), "late": (1, 0, 2, 4)}
CHOICES = {
    "support": {"protection": "nearest"},
    "merged": {},
    "delta": {"constraint": "delta=0.3"},
    "delta-categories": {"constraint": "delta=0.2"},
    "categories": {},
    "rows": {},
    "at": {"start": "at"},
    "graded": {"mechanism": "discrete-knorm"},
    "thick": {},
    "small": {"epsilon": "0.05"},
    "large": {"epsilon": 40},
}


def model_of(seed=0, n=N):
    rng = np.random.default_rng(seed)
    matrix = rng.random((n, n)) ** 2
    matrix[np.abs(np.arange(n)[:, None] - np.arange(n)) > 2] = 0
    initial = np.zeros(n)
    initial[:3] = rng.dirichlet(np.ones(3))
    return dphmm.MarkovModel(initial, matrix / matrix.sum(axis=1, keepdims=True))


def line():
    """Five states on a line in the plane: every body is flat."""
    return dphmm.StateSpace(np.stack([np.arange(N), np.zeros(N, dtype=int)], axis=1))


def scattered():
    return dphmm.StateSpace(np.array([[0, 0], [3, 1], [1, 4], [6, 6], [2, 7]]))


def parts_of(name):
    space = line() if name == "thick" else scattered()
    policy = dphmm.policy.categorical([0, 0, 1, 1, 1]) if "categories" in name else dphmm.policy.radius(space, 4)
    if name == "rows":
        # Two rows of states, edges along the rows only: the body is widened across them.
        space = dphmm.StateSpace(np.array([[0, 0], [1, 0], [2, 0], [1, 1], [2, 1]]))
        policy = dphmm.policy.from_edges([(0, 1), (1, 2), (3, 4)], N)
    return model_of(), policy, space


def played(name, gaps, seed=1, steps=4):
    """A session with its releases and the options that it had."""
    choices = dict(CHOICES[name])
    epsilon = choices.pop("epsilon", 1)
    model, policy, space = parts_of(name)
    session = dphmm.ReleaseSession(model, policy, space, epsilon, bits=dphmm.ReplayBits(seed), **choices)
    rng = np.random.default_rng(seed)
    posteriors = []
    for gap in gaps[:steps]:
        if gap:
            session.skip(gap)
        session.release(int(rng.choice(np.flatnonzero(session.support))))
        posteriors.append(session.posterior.probability)
    options = Options.checked(epsilon, **{"start": model.start, **choices})
    return session, options, (model, policy, space), posteriors


def smoother_of(options, parts):
    model, policy, space = parts
    return Smoother(Setting(model, policy, space, options))


def published_of(session, count=None):
    rows = session.releases[:count]
    return AnswerHistory(
        "u", np.array([r.t for r in rows]), np.stack([r.z_lattice for r in rows]), [r.plan_hash for r in rows]
    )


CASES = list(itertools.product(CHOICES, GAPS))


def test_the_cases_are_what_they_are_called():
    """δ-sets leave states out, flat hulls are thickened."""
    plans = {name: played(name, GAPS["none"])[0].plan for name in CHOICES}
    assert plans["delta"].constraint.contracted and not plans["support"].constraint.contracted
    assert len(plans["merged"].merged) and not len(plans["support"].merged)
    assert plans["thick"].hull.rank == plans["rows"].hull.rank == 2


@pytest.mark.parametrize(("name", "gaps"), CASES)
def test_the_last_step_is_the_session_s_posterior(name, gaps):
    """After any number of releases the filter is the smoother of the last one: to 1e-12, on every option."""
    session, options, parts, posteriors = played(name, GAPS[gaps])
    for count, posterior in enumerate(posteriors, start=1):
        got = smoother_of(options, parts).smooth(published_of(session, count), marginals=True)
        assert np.allclose(got.marginals[-1], posterior, rtol=0, atol=1e-12)
        assert np.array_equal(got.marginals[-1] > 0, posterior > 0)
        assert got.state[-1] == int(np.argmax(posterior >= posterior.max() * (1 - 1e-12)))
        assert np.allclose(got.mean[-1], posterior @ session.setting.space.own_answers, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "gaps"), [case for case in CASES if case[0] in ("support", "merged", "delta", "rows", "at")]
)
def test_equal_to_all_paths(name, gaps):
    """The plans' own likelihoods, taken from a second session that replays the first, and every path of the model.

    A path that starts in t = 0 has a move more than one that starts "at" step 1; the likeliest path is compared where
    the start is at the first release, because the path before it is not part of what is smoothed.
    """
    session, options, parts, _ = played(name, GAPS[gaps], steps=3)
    model, policy, space = parts
    again = dphmm.ReleaseSession(
        model, policy, space, options.epsilon, constraint=options.constraint, start=options.start,
        protection=options.protection, bits=dphmm.ReplayBits(1),
    )  # fmt: skip
    rng, rows = np.random.default_rng(1), []
    for gap, release in zip(GAPS[gaps], session.releases, strict=False):
        if gap:
            again.skip(gap)
        plan = again.plan
        possible = plan.still_possible(release.z_lattice)
        rows.append(np.where(possible, np.exp(np.where(possible, plan.log_likelihood(release.z_lattice), 0)), 0))
        again.release(int(rng.choice(np.flatnonzero(again.support))))
    t = [release.t for release in session.releases]
    # A path begins a move before step 1, or at it.
    moves = np.diff([step - (options.start == "at") for step in t], prepend=0)
    got = smoother_of(options, parts).smooth(published_of(session), path=True, marginals=True)
    expected, _, paths = brute(model, model.initial, rows, moves)
    assert np.allclose(got.marginals, expected, rtol=1e-9, atol=1e-14)
    assert np.allclose(got.mean, expected @ space.answers)
    assert got.state.tolist() == np.argmax(expected, axis=1).tolist()
    assert np.allclose(got.probability, expected.max(axis=1))
    if options.start == "at" and t[0] == 1:
        assert got.path.tolist() in paths


def test_a_plan_set_of_one_state():
    """Two states that never move: a δ-set of one of them makes every answer a public constant, which says nothing."""
    model = dphmm.MarkovModel([0.95, 0.05], np.eye(2))
    space = dphmm.StateSpace([[0], [1]])
    session = dphmm.ReleaseSession(model, dphmm.policy.complete(2), space, 1, constraint="delta=0.1")
    for _ in range(3):
        session.release(1)
    assert all(release.constant for release in session.releases)
    options = Options.checked(1, constraint="delta=0.1")
    parts = (model, dphmm.policy.complete(2), space)
    got = smoother_of(options, parts).smooth(published_of(session), marginals=True)
    assert np.allclose(got.marginals, [[0.95, 0.05]] * 3)
    published = published_of(session)
    changed = AnswerHistory("u", published.t, published.z + 1, published.plans)
    with pytest.raises(InvalidInput, match=r"step 1 of 'u': .* no possible state"):
        smoother_of(options, parts).smooth(changed)


@pytest.mark.parametrize("name", ["support", "delta"])
def test_another_plan_is_refused(name):
    """Another epsilon, policy, model, start or option, or a row left out of a δ-set's history: named by its step."""
    session, options, (model, policy, space), _ = played(name, GAPS["some"])
    published = published_of(session)
    given = options.written()
    others = [
        (Options.read({**given, "epsilon": "2"}), (model, policy, space)),
        (Options.read({**given, "mechanism": "discrete-knorm"}), (model, policy, space)),
        (Options.read({**given, "constraint": "delta=0.05"}), (model, policy, space)),
        (options, (model, dphmm.policy.complete(N), space)),
        (options, (dphmm.MarkovModel(np.eye(N)[4], model.transition), policy, space)),
    ]
    for other, parts in others:
        with pytest.raises(InvalidInput, match="of 'u': got an answer drawn under plan"):
            smoother_of(other, parts).smooth(published)
    if name == "delta":
        fewer = AnswerHistory("u", published.t[1:], published.z[1:], published.plans[1:])
        with pytest.raises(InvalidInput, match="missing or changed"):
            smoother_of(options, (model, policy, space)).smooth(fewer)


@pytest.mark.parametrize(("t", "match"), [([0, 1], "before 1"), ([2, 2], "two rows"), ([3, 2], "two rows")])
def test_steps_that_were_never_released(t, match):
    session, options, parts, _ = played("support", GAPS["none"])
    published = published_of(session, 2)
    with pytest.raises(InvalidInput, match=match):
        smoother_of(options, parts).smooth(AnswerHistory("u", np.array(t), published.z, published.plans))


def test_rows_made_in_blocks_are_the_same(monkeypatch):
    session, options, parts, _ = played("delta", GAPS["some"])
    whole = smoother_of(options, parts).smooth(published_of(session), path=True, marginals=True)
    monkeypatch.setattr(smoothing, "KEPT", 0)
    again = smoother_of(options, parts).smooth(published_of(session), path=True, marginals=True)
    for name in ("mean", "state", "probability", "path", "marginals"):
        assert np.array_equal(getattr(whole, name), getattr(again, name))


def released_table(seed=3, **choices):
    model, policy, space = parts_of("support")
    rows = pd.DataFrame(
        {
            "user": ["b"] * 5 + ["a"] * 4,
            "step": [1, 2, 5, 6, 7, 4, 5, 8, 9],
            "state": [str(s) for s in (0, 1, 2, 1, 0, 2, 3, 4, 4)],
        }
    )
    bits = dphmm.ReplayBits(seed)
    return dphmm.release_many(rows, model, policy, space, 1, bits=bits, **choices), (model, policy, space)


@pytest.mark.parametrize("choices", [{}, {"constraint": "delta=0.1"}])
def test_rows_in_any_order(choices):
    """Each row of a shuffled table gets what it got in the released order; a user alone gets the same too."""
    table, parts = released_table(**choices)
    choices |= {"path": True, "marginals": True}
    smoothed = dphmm.reconstruction.smooth(table, *parts, **choices)
    assert smoothed[["user", "step"]].equals(table[["user", "step"]])
    order = np.random.default_rng(0).permutation(len(table))
    again = dphmm.reconstruction.smooth(table.iloc[order], *parts, **choices)
    pd.testing.assert_frame_equal(again, smoothed.iloc[order])
    alone = dphmm.reconstruction.smooth(table[table.user == "a"], *parts, 1, **choices)
    pd.testing.assert_frame_equal(alone, smoothed[smoothed.user == "a"])


def test_no_true_state_is_read():
    """Two truths, the same published answers: the same smoothing. Nothing takes a truth as a parameter either.

    Replayed bits give the same noise, so the second truth's rows are the first's with its own z put in.
    """
    table, parts = released_table()
    assert not {"state", "truth", "trajectories"} & set(inspect.signature(dphmm.reconstruction.smooth).parameters)
    columns = ["user", "step", "z_0", "z_1", "epsilon", "plan"]
    whole = dphmm.reconstruction.smooth(table, *parts)
    pd.testing.assert_frame_equal(dphmm.reconstruction.smooth(table[columns], *parts), whole)
    blinded = table.assign(estimate_0=0.0, estimate_1=0.0, estimate="0", cost=0.0)
    pd.testing.assert_frame_equal(dphmm.reconstruction.smooth(blinded, *parts), whole)


def test_the_path_is_made_on_request(monkeypatch):
    table, parts = released_table()
    whole = dphmm.reconstruction.smooth(table, *parts, path=True)
    monkeypatch.delattr(smoothing, "likeliest_path")
    pd.testing.assert_frame_equal(dphmm.reconstruction.smooth(table, *parts), whole.drop(columns="path"))


def test_tables_in_kind():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    table, parts = released_table()
    expected = dphmm.reconstruction.smooth(table, *parts)
    assert isinstance(dphmm.reconstruction.smooth(pa.Table.from_pandas(table), *parts), pa.Table)
    got = dphmm.reconstruction.smooth(pl.from_pandas(table), *parts)
    assert isinstance(got, pl.DataFrame) and got.to_dicts() == expected.to_dict("records")


def test_progress_is_told_by_rows():
    table, parts = released_table()
    told = []
    dphmm.reconstruction.smooth(table, *parts, progress=lambda done, total: told.append((done, total)))
    assert told == [(4, 9), (9, 9)]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.drop(columns="plan"), "plan: got columns"),
        (lambda t: t.assign(z_2=0.0), "z_2: got answers of more than 2 dimensions"),
        (lambda t: t.assign(z_0=t.z_0 + 0.4), "z_0: got an answer off the lattice"),
        (lambda t: t.assign(z_1=np.nan), "z_1: got 9 cells that cannot be read"),
        (lambda t: t.assign(step=1), "step 1 of 'a': got two rows"),
        (lambda t: t.iloc[:0], "table: got 0 rows"),
        (lambda t: t.assign(epsilon=np.arange(1.0, 10.0)), "epsilon: got 9 different ones"),
        (lambda t: t.assign(epsilon=0.0), "epsilon: got none in the table"),
        (lambda t: t.assign(epsilon=0.5), "an answer drawn under plan"),
        (lambda t: t.assign(plan="0" * 64), "an answer drawn under plan 000000000000"),
    ],
)
def test_bad_tables(change, match):
    table, parts = released_table()
    with pytest.raises(InvalidInput, match=match) as error:
        dphmm.reconstruction.smooth(change(table), *parts)
    assert "\n" not in str(error.value)


def test_marginals_have_a_limit(monkeypatch):
    table, parts = released_table()
    monkeypatch.setattr(decoding, "_MOST_MARGINALS", 9 * N - 1)
    with pytest.raises(InvalidInput, match="marginals: got 9 rows of 5 states"):
        dphmm.reconstruction.smooth(table, *parts, marginals=True)
    assert len(dphmm.reconstruction.smooth(table, *parts)) == 9
