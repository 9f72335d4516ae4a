"""k-means: centroids without noise are Lloyd's, and one round's sensitivity by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dphmm import ReplayBits
from dphmm.dependent import kmeans
from dphmm.errors import InvalidInput

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words


def bits():
    return ReplayBits(7)


class TestKMeans:
    def clouds(self):
        rng = np.random.default_rng(0)
        return np.concatenate([rng.normal([0.2, 0.2], 0.02, (400, 2)), rng.normal([0.8, 0.7], 0.02, (400, 2))])

    def test_clouds_are_found(self):
        found = kmeans(
            self.clouds(), "independent", 8, box=(0, 1), start=[[0.4, 0.4], [0.6, 0.6]], iterations=3, bits=bits()
        )
        assert found.table[["x0", "x1"]].to_numpy() == pytest.approx(np.array([[0.2, 0.2], [0.8, 0.7]]), abs=0.03)
        assert len(found.event.parts) == 6 and found.event.per_record == 8

    def test_without_noise_it_is_lloyd(self, silent):
        from sklearn.cluster import KMeans

        start = np.array([[0.4, 0.4], [0.6, 0.6]])
        found = kmeans(self.clouds(), "independent", 1, box=(0, 1), start=start, iterations=6)
        expected = KMeans(2, init=start, n_init=1, max_iter=6).fit(self.clouds()).cluster_centers_
        assert found.table[["x0", "x1"]].to_numpy() == pytest.approx(expected, abs=1e-4)

    def test_sensitivity_of_one_round(self):
        """A replaced point moves counts by at most 2, and sums by at most what the part says; opposite corners do."""
        from dphmm.dependent._kmeans import HALF, _nearest

        corners = np.array(list(itertools.product((-HALF, HALF), repeat=2)))
        centres = np.array([[-1.0, -1.0], [1.0, 1.0]])
        worst = 0
        for a, b in itertools.product(corners, repeat=2):
            sums = np.zeros((2, 2, 2))
            for side, point in enumerate((a, b)):
                sums[side, _nearest(point[None], centres)[0]] += point
            worst = max(worst, np.abs(sums[0] - sums[1]).sum())
        assert worst == 2 * 2 * HALF
        found = kmeans([[0.1, 0.1]], "independent", 1, box=(0, 1), start=[[0, 0], [1, 1]], iterations=3, bits=bits())
        sensitivities = {part.name: part.sensitivity for part in found.event.parts}
        assert sensitivities == {"counts": 2, "sums": worst}

    def test_an_empty_cluster_stays(self, silent):
        found = kmeans([[0.1], [0.2]], "independent", 1, box=(0, 1), start=[[0.1], [0.9]], iterations=2)
        assert found.table["x0"].to_numpy() == pytest.approx([0.15, 0.9], abs=1e-4)

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"box": None}, "box"),
            ({"box": (1, 0)}, "low < high"),
            ({"start": [[0.1, 0.2, 0.3]]}, "start"),
            ({"iterations": 0}, "iterations"),
            ({"epsilon": -1}, "epsilon"),
        ],
    )
    def test_bad_input(self, change, told):
        options = {"points": [[0.1, 0.2]], "epsilon": 1, "box": (0, 1), "start": [[0.5, 0.5]]} | change
        with pytest.raises(InvalidInput, match=told):
            kmeans(options.pop("points"), "independent", options.pop("epsilon"), **options)
