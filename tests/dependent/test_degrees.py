"""Degree distributions: the sensitivity of both levels by enumeration of neighbouring graphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dphmm import ReplayBits
from dphmm.dependent import Coefficients, degree_distribution
from dphmm.dependent._degrees import histogram_of_degrees, simple_edges
from dphmm.errors import InvalidInput

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words


def bits():
    return ReplayBits(7)


class TestDegrees:
    def graphs(self, n):
        pairs = list(itertools.combinations(range(n), 2))
        for chosen in itertools.product((False, True), repeat=len(pairs)):
            yield np.array([p for p, there in zip(pairs, chosen, strict=True) if there], dtype=int).reshape(-1, 2)

    def test_edge_level_sensitivity(self):
        worst = 0
        for edges in self.graphs(5):
            for cap in (1, 2, 4):
                base = histogram_of_degrees(edges, 5, cap, "edge")
                for at in range(len(edges)):
                    less = histogram_of_degrees(np.delete(edges, at, axis=0), 5, cap, "edge")
                    worst = max(worst, int(np.abs(base - less).sum()))
        assert worst == 4

    @pytest.mark.parametrize("cap", [1, 2])
    def test_node_level_sensitivity(self, cap):
        """All graphs on 6 nodes with all edges of node 0 changed: never above 4·cap + 2, half of that from none."""
        n, worst = 6, 0
        rest = list(itertools.combinations(range(1, n), 2))
        rng = np.random.default_rng(cap)
        for _ in range(150):
            others = [p for p in rest if rng.random() < 0.5]
            seen = []
            for own in itertools.product((False, True), repeat=n - 1):
                mine = [(0, j + 1) for j, there in enumerate(own) if there]
                seen.append(histogram_of_degrees(np.array(mine + others, dtype=int).reshape(-1, 2), n, cap, "node"))
            apart = np.abs(np.array(seen)[:, None] - np.array(seen)[None]).sum(axis=2)
            worst = max(worst, int(apart.max()))
        assert 2 * cap < worst <= 4 * cap + 2

    def test_without_the_cap_one_person_changes_everything(self):
        star = np.array([(0, j) for j in range(1, 9)])
        apart = np.abs(histogram_of_degrees(star, 9, 8, "edge") - histogram_of_degrees(star[:0], 9, 8, "edge")).sum()
        assert apart == 18 > 4

    @pytest.mark.parametrize("level", ["edge", "node"])
    def test_distributions(self, level):
        edges = np.array([(0, 1), (1, 0), (1, 2), (2, 3)])
        found = degree_distribution(edges, 50, "independent", 1, level=level, cap=5, bits=bits())
        assert found.table["count"].sum() == 50 and (found.table["count"] >= 0).all()
        assert found.event.parts[0].sensitivity == (4 if level == "edge" else 22)
        assert level in found.event.query

    def test_people_s_numbers_alone_order_the_edges(self):
        edges = simple_edges(np.array(list(itertools.combinations(range(8), 2))), 8)
        shuffled = simple_edges(np.random.default_rng(0).permutation(edges)[:, ::-1], 8)
        for cap in (1, 2, 3):
            one = histogram_of_degrees(edges, 8, cap, "node")
            assert one.tolist() == histogram_of_degrees(shuffled, 8, cap, "node").tolist()

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"level": "both"}, "level"),
            ({"cap": 0}, "cap"),
            ({"dependence": Coefficients(np.eye(4))}, "edge level"),
            ({"epsilon": -2}, "epsilon"),
        ],
    )
    def test_bad_input(self, change, told):
        options = {"edges": [(0, 1)], "dependence": "independent", "epsilon": 1, "level": "edge", "cap": 2} | change
        with pytest.raises(InvalidInput, match=told):
            degree_distribution(options.pop("edges"), 4, options.pop("dependence"), options.pop("epsilon"), **options)
