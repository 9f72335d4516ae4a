"""Classifiers: they learn, they publish nothing but noisy weights, and their solver's error is part of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm import ReplayBits
from dphmm.dependent import classifier
from dphmm.dependent._linear import lattice_sensitivity, minimiser
from dphmm.errors import InvalidInput

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words


def bits():
    return ReplayBits(7)


class TestClassifiers:
    def data(self, n=400, seed=0):
        rng = np.random.default_rng(seed)
        rows = rng.normal(0, 0.3, (n, 3))
        return rows, np.where(rows @ [1.0, -2.0, 0.5] + 0.1 > 0, "yes", "no")

    @pytest.mark.parametrize("kind", ["svm", "logistic"])
    def test_it_learns_and_predicts(self, kind):
        rows, labels = self.data(20000)
        found = classifier(
            rows, labels, "independent", 8, classes=("no", "yes"), kind=kind, regularization=1e-3, bits=bits()
        )
        assert (found.estimator.predict(rows) == labels).mean() > 0.93
        scores = rows @ found.table.weight.to_numpy()[:3] + found.table.weight.to_numpy()[3]
        assert ((scores > 0) == (found.estimator.predict(rows) == "yes")).all()
        assert found.event.per_record == 8

    def test_only_published_numbers_stay_in_the_estimator(self):
        rows, labels = self.data()
        found = classifier(rows, labels, "independent", 1, classes=("no", "yes"), bits=bits())
        assert {name for name in vars(found.estimator) if name.endswith("_")} == {
            "classes_",
            "coef_",
            "intercept_",
            "n_features_in_",
        }
        assert found.estimator.coef_[0].tolist() == found.table.weight.tolist()[:3]

    @pytest.mark.parametrize("kind", ["svm", "logistic"])
    def test_the_minimiser_moves_less_than_its_sensitivity(self, kind):
        """Replacing one row by an extreme one, in small data where it matters."""
        from dphmm.dependent._linear import _estimator

        rng = np.random.default_rng(1)
        strength, n = 0.05, 12
        worst = 0.0
        for _ in range(15):
            rows = rng.normal(size=(n, 2))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            signs = rng.choice([-1.0, 1.0], n)
            other, flipped = rows.copy(), signs.copy()
            flipped[0] = -signs[0]
            if rng.random() < 0.5:
                other[0] = -other[1]
            one, off = minimiser(rows, signs, kind, strength, _estimator(kind, n, strength))
            two, _ = minimiser(other, flipped, kind, strength, _estimator(kind, n, strength))
            worst = max(worst, float(np.linalg.norm(one - two)))
            pitch, steps = lattice_sensitivity(n, 2, strength, off)
            assert np.abs(np.rint(one / pitch) - np.rint(two / pitch)).sum() <= steps
        assert 0.2 * 2 / (n * strength) < worst <= 2 / (n * strength) + 2 * off

    def test_what_the_solver_is_off_by_is_paid_for(self):
        """Neighbours' minimisers are 2/(nΛ) apart; what is found is off by up to τ on either side of that."""
        n, d, strength = 50, 3, 0.1
        for off in (0.0, 0.01, 0.4, 2.0):
            pitch, steps = lattice_sensitivity(n, d, strength, off)
            apart = (2 / (n * strength) + 2 * off) * np.sqrt(d) / pitch
            # Each coordinate is rounded, on both sides by half a step.
            assert apart + d <= steps <= apart + d + 1

    def test_the_minimiser_is_one(self):
        """The gradient certificate is honest: a general optimiser finds the same point."""
        from scipy.optimize import minimize

        from dphmm.dependent._linear import CORNER, _estimator

        rng = np.random.default_rng(2)
        rows, signs, strength = rng.normal(size=(40, 3)) / 4, rng.choice([-1.0, 1.0], 40), 0.01

        def objective(w):
            m = signs * (rows @ w)
            corner = (1 + CORNER - m) ** 2 / (4 * CORNER)
            loss = np.where(m > 1 + CORNER, 0, np.where(m < 1 - CORNER, 1 - m, corner))
            return loss.mean() + strength / 2 * w @ w

        found, off = minimiser(rows, signs, "svm", strength, _estimator("svm", 40, strength))
        expected = minimize(objective, np.zeros(3), tol=1e-14).x
        assert found == pytest.approx(expected, abs=1e-4) and off < 1e-4

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"classes": ("no",)}, "classes"),
            ({"regularization": 0}, "regularization"),
            ({"norm": -1}, "norm"),
            ({"kind": "forest"}, "kind"),
            ({"epsilon": -1}, "epsilon"),
        ],
    )
    def test_bad_input(self, change, told):
        rows, labels = self.data(20)
        options = {"epsilon": 1, "classes": ("no", "yes")} | change
        with pytest.raises(InvalidInput, match=told):
            classifier(rows, labels, "independent", options.pop("epsilon"), **options)
