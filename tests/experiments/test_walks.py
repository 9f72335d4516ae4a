"""Simulated releases of walks: a session's own where the mechanism is exact, Algorithm 2 where it is not.

Claims. With an exact mechanism the simulation publishes what `ReleaseSession` does with the same bits, to the word, and
its smoother is what `smooth` makes of it. With a continuous one beliefs are those of Bayes' rule written out on dense
matrices. Degrees are those of Def. 5.2. Models know nothing of the people that are released. They would fail for a
belief that lags a step behind, for noise on another body, and for a fold that is fitted to its own people.

Walks of the real data sets, where they are there: as many and as long as the papers', and no model has seen the people
whom it is used on. The people are found in the files again, by pandas; it would fail for a fold that takes rows by
another numbering, and for a person's second block of check-ins left in the fit.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dphmm
from dphmm import evaluation
from dphmm.errors import InvalidInput
from dphmm.session.session import ReleaseSession
from dphmm.session.smoothing import AnswerHistory, Smoother
from experiments.experiment import Settings
from experiments.walks import cells as measures
from experiments.walks import releases, studies
from experiments.walks.cells import name_of, policies
from experiments.walks.releases import Choices, PlanarLaplace, degree, release, release_walk

UTIL, TRANS, DPLS = policies(studies.CITY, "auto")


@pytest.fixture(scope="module")
def city():
    return studies.study(Settings(quick=True), studies.CITY).cut(2, 8)


def with_(choices: Choices, **others) -> Choices:
    from dataclasses import replace

    return replace(choices, **others)


@pytest.mark.slow
@pytest.mark.parametrize(
    "choices",
    [
        UTIL,
        TRANS,
        DPLS,
        with_(DPLS, delta="0.3"),
        with_(UTIL, mechanism="staircase", delta="0.05"),
    ],
    ids=name_of,
)
def test_exact_mechanisms_are_a_session_s(city, choices):
    fold, walk = city.fold(0), city.walks[1]
    setting, cells = choices.setting(fold), walk.cells
    found = release_walk(city, fold, setting, choices.mechanism, 1, dphmm.ReplayBits(5))
    begun = setting.with_model(fold.known_start(int(cells[0])))
    session = ReleaseSession.of(begun, bits=dphmm.ReplayBits(5))
    for t, state in enumerate(fold.state_of[cells[1:]].tolist()):
        plan = session.plan
        made, said = session.release(state), session.estimate()
        assert found.z[t].tolist() == list(made.z) and found.estimate[t].tolist() == list(said.answer)
        assert found.estimate_cell[t] == fold.cell_of[said.state]
        assert found.plan_size[t] == plan.constraint.plan.sum() and found.cost[t] == float(made.cost)
        assert found.drift[t] == (not plan.constraint.plan[state]) and found.constant[t] == plan.constant
    if choices.delta == "0.3":
        assert found.drift.any() and not found.drift.all()
    made = session.releases
    z, plans = np.array([one.z_lattice for one in made]), [one.plan_hash for one in made]
    smoothed = Smoother(begun).smooth(AnswerHistory("", np.arange(1, 9), z, plans), path=True)
    np.testing.assert_allclose(found.smoothed, smoothed.mean, rtol=1e-9)
    assert found.smoothed_cell.tolist() == fold.cell_of[smoothed.state].tolist()
    assert found.path_cell.tolist() == fold.cell_of[smoothed.path].tolist()


@pytest.mark.parametrize("mechanism", releases.CONTINUOUS)
@pytest.mark.parametrize("choices", [UTIL, DPLS], ids=name_of)
def test_continuous_mechanisms_are_bayes_rule(city, choices, mechanism):
    fold, walk = city.fold(0), city.walks[0]
    setting = with_(choices, mechanism=mechanism).setting(fold)
    found = release_walk(city, fold, setting, mechanism, 0, dphmm.ReplayBits(3))
    M, answers = fold.model.transition.toarray(), fold.space.answers
    states, bits = fold.state_of[walk.cells], dphmm.ReplayBits(3)
    belief, likelihoods = np.eye(fold.model.n_states)[states[0]], []
    blind = belief
    for t, state in enumerate(states[1:].tolist()):
        belief, blind = belief @ M, blind @ M
        np.testing.assert_allclose(found.blind[t], blind @ answers, rtol=1e-9)
        chosen = belief > 0
        if choices.delta is not None:
            order = np.lexsort((np.arange(len(belief)), -belief))
            chosen = np.zeros(len(belief), dtype=bool)
            chosen[order[: int(np.searchsorted(np.cumsum(belief[order]), 0.99 - 1e-12)) + 1]] = True
        assert found.plan_size[t] == chosen.sum() and found.support_size[t] == (belief > 0).sum()
        plan = setting.planner.plan(belief > 0, chosen)
        images = plan.hull.frame.to_answers(plan.image)
        law = releases.CONTINUOUS[mechanism](plan.hull, 1)
        z = law.sample(images[state], bits)
        assert found.z[t].tolist() == z.tolist()
        likelihood = np.exp(law.log_likelihood(z, images))
        likelihoods.append(likelihood)
        belief = belief * likelihood / (belief @ likelihood)
        np.testing.assert_allclose(found.estimate[t], belief @ answers, rtol=1e-9)
    later = np.ones(len(belief))
    for t in reversed(range(len(likelihoods))):
        forward = np.eye(len(M))[states[0]]
        for likelihood in likelihoods[: t + 1]:
            forward = (forward @ M) * likelihood
        whole = forward * later
        np.testing.assert_allclose(found.smoothed[t], whole @ answers / whole.sum(), rtol=1e-6)
        later = M @ (later * likelihoods[t])


def test_degrees_are_those_of_definition_5_2(city):
    fold, walk = city.fold(0), city.walks[0]
    for choices in (UTIL, DPLS, with_(UTIL, delta="0.1")):
        plan = choices.setting(fold).with_model(fold.known_start(int(walk.cells[0]))).first_plan()
        among = plan.constraint.support
        expected = dphmm.sensitivity.degree_of_protection(plan.hull, fold.space, plan.constraint)
        found = [degree(plan, state, among) for state in np.flatnonzero(among).tolist()]
        assert found == expected.tolist() and min(found) >= 2


def test_noise_hangs_on_the_walk_alone(city):
    bits = [dphmm.ReplayBits(k) for k in (7, 8)]
    both = release(city, UTIL, bits)
    alone = release_walk(city, city.fold(0), UTIL.setting(city.fold(0)), "auto", 1, dphmm.ReplayBits(8))
    assert both.z[both.walk == 1].tolist() == alone.z.tolist()


class TestPlanarLaplace:
    SQUARE = np.array([[x, y] for x in range(5) for y in range(5)])
    K = dphmm.sensitivity.sensitivity_hull(dphmm.policy.radius(SQUARE, 2), SQUARE)

    def test_required_pairs_lose_at_most_epsilon(self):
        law = PlanarLaplace(self.K, "1.5")
        assert law.radius == 2.0 and max(law.loss(v) for v in self.K.vertices) == pytest.approx(1.5)
        z, answers = np.array([3.0, 4.0]), np.array([[0.0, 0.0], [2.0, 0.0]])
        logs = law.log_likelihood(z, answers)
        assert logs == pytest.approx([-1.5 / 2 * 5, -1.5 / 2 * np.hypot(1, 4)])

    def test_the_law_of_its_noise(self):
        """Kolmogorov-Smirnov on lengths and directions, 20,000 draws of fixed bits, level 0.001 each.

        A length of law Gamma(1) or Gamma(3), or a scale that is 3 % off, is found with power above .99.
        """
        law = PlanarLaplace(self.K, 2)
        noise = law.sample(np.zeros((20_000, 2)), dphmm.ReplayBits(1))
        length, angle = np.hypot(*noise.T), np.arctan2(*noise.T)
        assert stats.kstest(length, stats.gamma(2, scale=1.0).cdf).pvalue > 0.001
        assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 0.001
        assert stats.kstest(length * 1.03, stats.gamma(2, scale=1.0).cdf).pvalue < 0.001
        assert np.mean(length**2) == pytest.approx(law.expected_error, rel=0.05)

    def test_a_body_outside_the_plane_is_refused(self):
        flat = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(3), np.array([[0], [1], [2]]))
        with pytest.raises(InvalidInput, match="K: got rank 1 in 1 dimensions; expected a body in the plane"):
            PlanarLaplace(flat, 1)


class TestStudies:
    def test_models_know_nothing_of_the_people_released(self):
        """Rows of five people on a map of nine cells; walks of two of them in two folds, one person with two users."""
        grid = dphmm.Grid.from_bounds(0.0, 0.0, 0.00269, 0.0027, cell=100)
        random = np.random.default_rng(4)
        cells = random.integers(len(grid.answers), size=(5, 30))
        lat, lon = grid.to_latlon(grid.answers[cells.ravel()])
        rows = dphmm.states.Trajectories.from_labels(
            np.repeat([f"u{k}" for k in range(5)], 30).tolist(), lat=lat, lon=lon, step=np.tile(np.arange(30), 5)
        )
        rules = studies.Rules(grid)
        walks = studies.first_walks(rows, rules, people=np.array([0, 1, 2, 1, 3]), walks=2, steps=20)
        assert [walk.owners for walk in walks] == [(0,), (4,)]
        assert walks[0].cells.tolist() == cells[0, :21].tolist()
        walks = (studies.Walk(cells[1, :21], (1, 3)), walks[0])
        study = studies.Study("toy", rules, rows, walks, np.zeros((1, 2)), n_folds=2)
        for number, left_out in ((0, {1, 3}), (1, {0})):
            assert study.fold_of(number, studies.OTHERS) == number
            kept = [k for k in range(5) if k not in left_out]
            expected = dphmm.MarkovModel.fit(cells[kept], n_states=len(grid.answers)).transition.toarray()
            fold = study.fold(number)
            found = np.zeros_like(expected)
            found[np.ix_(fold.cell_of, fold.cell_of)] = fold.model.transition.toarray()
            np.testing.assert_allclose(found[fold.cell_of], expected[fold.cell_of])
        everybody = study.fold(study.fold_of(1, studies.EVERYBODY), studies.EVERYBODY)
        expected = dphmm.MarkovModel.fit(cells, n_states=len(grid.answers)).transition.toarray()
        np.testing.assert_allclose(everybody.model.transition.toarray(), expected[np.ix_(*[everybody.cell_of] * 2)])

    def test_the_city_s_model_is_of_other_people(self, city):
        from dphmm.evaluation import simulate_city

        people = simulate_city()
        assert city.rows.users == people.model_people.users
        assert not {*city.rows.users} & {*people.released_people.users}
        assert city.n_folds == 0 and len(city._others(0)) == len(city.rows)

    def test_a_known_start_is_certain(self, city):
        fold = city.fold(0)
        cell = int(city.walks[0].cells[0])
        initial = fold.known_start(cell).initial
        assert initial.sum() == 1.0 and fold.cell_of[np.argmax(initial)] == cell

    def test_a_cell_that_nobody_fitted_visits_is_the_nearest_state(self, city):
        fold, grid = city.fold(0), city.rules.grid
        far = np.setdiff1d(np.arange(grid.n_states), fold.cell_of)
        distances = np.linalg.norm(grid.answers[far][:, None] - fold.space.answers, axis=2)
        found = distances[np.arange(len(far)), fold.state_of[far]]
        np.testing.assert_allclose(found, distances.min(axis=1))
        assert len(far) and (fold.cell_of[fold.state_of[fold.cell_of]] == fold.cell_of).all()


def test_names_of_methods():
    assert [name_of(one) for one in (UTIL, TRANS, DPLS)] == ["Gutil", "Gtrs", "DPLS"]
    assert name_of(with_(DPLS, delta=None)) == "all possible states"
    assert name_of(with_(UTIL, delta="0.01", fit="everybody")) == "Gutil, δ = 0.01, fitted to everybody"
    assert DPLS.policy == releases.COMPLETE


@pytest.fixture(scope="module")
def steps(city):
    return release(city, UTIL, [dphmm.ReplayBits(k) for k in (7, 8)])


class TestMeasures:
    """Rows of an experiment are the public measures of the same steps, in km."""

    @pytest.mark.parametrize("reading", ["z", "estimate", "smoothed", "blind"])
    def test_errors(self, steps, reading):
        found = measures.overall(steps)
        expected = evaluation.error(steps.truth, getattr(steps, reading), steps.walk)
        names = [f"error_{reading}{end}" for end in ("", "_low", "_high")]
        assert [found[name] for name in names] == pytest.approx([value / 1000 for value in expected.mean])
        assert found[f"rms_{reading}"] == pytest.approx(expected.rms.value / 1000)
        assert found["steps"] == 16 and found["degree"] == pytest.approx(steps.degree.mean())

    def test_steps_are_averaged_with_two_on_either_side(self, steps):
        rows = list(measures.over_time(steps))
        near = np.isin(steps.t, [3, 4, 5, 6, 7])
        expected = evaluation.error(steps.truth[near], steps.z[near], steps.walk[near]).mean
        assert [row["t"] for row in rows] == list(range(1, 9))
        assert rows[4]["error_z"] == pytest.approx(expected.value / 1000)
        assert rows[0]["degree"] == pytest.approx(steps.degree[steps.t <= 3].mean())

    def test_places(self, city, steps):
        rows = list(measures.places(city, steps))
        assert len(rows) == 27 and {row["reading"] for row in rows} == {"z", "estimate", "smoothed"}
        for row in rows:
            places = getattr(steps, row["reading"])
            given = city.places, row["k"], row["returned"], steps.walk
            expected = evaluation.nearest_places_error(steps.truth, places, *given)
            assert row["precision"] == pytest.approx(expected.precision.value)
            assert row["recall_high"] == pytest.approx(expected.recall.high)

    def test_analytics(self, city, steps):
        rows = {row["reading"]: row for row in measures.analytics(city, steps)}
        n = city.rules.grid.n_states
        expected = evaluation.density_error(steps.cell, steps.smoothed_cell, n, steps.walk)
        assert rows["smoothed"]["density_low"] == pytest.approx(expected.low)
        assert rows["path"]["visits"] == pytest.approx(
            evaluation.visit_length_error(steps.cell, steps.path_cell, steps.walk).value
        )
        radii = evaluation.gyration_error(steps.truth, steps.estimate, steps.walk)
        assert rows["estimate"]["gyration"] == pytest.approx(radii.value / 1000)
        regions = [(x // 5, y // 5) for x, y in city.rules.grid.lattice.tolist()]
        labels = np.unique(regions, axis=0, return_inverse=True)[1].reshape(-1)
        moves = evaluation.flow_error(steps.cell, steps.estimate_cell, n, steps.walk, regions=labels)
        assert rows["estimate"]["flows"] == pytest.approx(moves.value)


# The real data sets.

COLUMN = {"geolife": "user", "gowalla": "block"}


@pytest.fixture(scope="module", params=["geolife", "gowalla"])
def study(request, data_folder):
    if not (data_folder / studies.FILES[request.param]).is_file():
        pytest.skip(f"this real data is not here: {studies.FILES[request.param]}")
    return studies.study(Settings(data=data_folder), request.param)


def test_twenty_walks_of_a_hundred_steps(study):
    assert len(study.walks) == 20 and {len(walk.cells) for walk in study.walks} == {101}
    owners = [user for walk in study.walks for user in walk.owners]
    assert len(set(owners)) == len(owners)
    assert all(0 <= walk.cells.min() <= walk.cells.max() < study.rules.grid.n_states for walk in study.walks)


def test_models_have_not_seen_their_people(study, data_folder):
    rows = pd.read_parquet(data_folder / studies.FILES[study.name])
    labels = np.array(study.rows.users)
    for number in range(study.n_folds):
        released = [walk for k, walk in enumerate(study.walks) if study.fold_of(k, "others") == number]
        own = {int(name) for walk in released for name in labels[list(walk.owners)]}
        if study.name == "gowalla":
            people = rows.loc[rows["block"].isin(own), "user"].dropna().unique()
            assert set(rows.loc[rows["user"].isin(people), "block"]) <= own
        kept = rows[~rows[COLUMN[study.name]].isin(own)]
        fitted = study._others(number)
        assert len(fitted) == len(kept) < len(rows)
        assert set(labels[np.unique(fitted.user)].astype(int)) == set(kept[COLUMN[study.name]].astype(int))


def test_a_walk_is_where_its_person_was(study, data_folder):
    """Every cell of a walk has a row of that person."""
    rows = pd.read_parquet(data_folder / studies.FILES[study.name])
    labels = np.array(study.rows.users)
    for walk in study.walks[:5]:
        own = rows[rows[COLUMN[study.name]].isin([int(name) for name in labels[list(walk.owners)]])]
        visited = study.rules.grid.locate(own["lat"].to_numpy(), own["lon"].to_numpy())
        assert set(walk.cells.tolist()) <= set(visited.tolist())


@pytest.mark.slow
def test_orderings_of_the_paper(study):
    """Four walks, twenty steps: Gutil errs least; estimates are nearer than answers; nobody is exposed."""
    short = study.cut(4, 20)
    errors = {}
    for name, choices in {
        "Gutil": Choices("Gutil", "auto", radius=studies.RADII[study.name][0]),
        "Gtrs": Choices("Gtrs", "auto"),
        "DPLS": Choices("complete", "auto", delta="0.01"),
    }.items():
        steps = release(short, choices, [dphmm.ReplayBits(k) for k in range(4)])
        errors[name] = np.linalg.norm(steps.z - steps.truth, axis=1).mean()
        assert np.linalg.norm(steps.estimate - steps.truth, axis=1).mean() < errors[name]
        assert steps.degree[~steps.constant].min() >= 2
    assert errors["Gutil"] < min(errors["Gtrs"], errors["DPLS"]) / 2
