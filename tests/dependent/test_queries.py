"""Queries over dependent records: sensitivities by enumeration, integer noise, and events that say what is true.

Neighbouring data sets are enumerated: the answer before noise may not move by more than the event's sensitivity, and
somewhere it must move by as much, so that a sensitivity that is too small or needlessly large fails.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dependent_models import binary
from dphmm import ReplayBits
from dphmm.accounting.event import DependentEvent, per_record_total
from dphmm.dependent import (
    AnyQuery,
    Chain,
    Coefficients,
    calibrate,
    classifier,
    count,
    degree_distribution,
    histogram,
    kmeans,
    mean,
    together,
    total,
)
from dphmm.dependent import _budget as budget_module
from dphmm.dependent._counts import Histogram, with_total
from dphmm.dependent._degrees import histogram_of_degrees, simple_edges
from dphmm.dependent._linear import lattice_sensitivity, minimiser
from dphmm.errors import InvalidInput, Refused

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words

MOVES = [[0.9, 0.1], [0.2, 0.8]]
STATES = np.array([[0, 0, 1, 1, 0], [1, 1, 1, 0, 0]])


def bits():
    return ReplayBits(7)


@pytest.fixture
def silent(monkeypatch):
    """Discrete Laplace noise that is always 0: what is left is the answer before noise."""

    class Nothing:
        def __init__(self, scale):
            assert scale > 0

        def draw(self, m, bits):
            return np.zeros(m, dtype=np.int64)

    monkeypatch.setattr(budget_module, "DiscreteLaplace", Nothing)


class TestCounts:
    def test_a_histogram_and_what_it_cost(self):
        model = Chain(MOVES, 5)
        found = histogram(STATES, model, 1, n_states=2, bits=bits())
        assert list(found.table.columns) == ["first", "end", "state", "count"] and len(found.table) == 2
        event = found.event
        (part,) = event.parts
        assert part.sensitivity == 2 and event.per_record == part.sensitivity / part.scale
        assert event.per_record == calibrate(model, AnyQuery(1), 1).rate < 1
        assert event.epsilon == 1 and event.mechanism == "markov" and "every query" in event.why
        assert not event.secure and "nothing is promised" in event.statement

    def test_noise_is_there_and_repeats_with_its_bits(self):
        model = Chain(MOVES, 5)
        one = histogram(STATES, model, 1, n_states=2, bits=bits()).table
        assert one.equals(histogram(STATES, model, 1, n_states=2, bits=bits()).table)
        assert one["count"].tolist() != [5, 5]
        assert np.issubdtype(one["count"].dtype, np.integer)

    def test_the_noise_is_as_large_as_the_event_says(self):
        """4,000 cells, ε = 1, Δ = 2: the mean of |z| is 2q/(1 − q²), q = e^−½; five standard errors are 0.16."""
        found = histogram(np.zeros(1, dtype=int), "independent", 1, n_states=4000, bits=bits())
        sizes = np.abs(found.table["count"].to_numpy()[1:])
        q = np.exp(-1 / float(found.event.parts[0].scale))
        assert found.event.parts[0].scale == 2
        assert sizes.mean() == pytest.approx(2 * q / (1 - q * q), abs=0.16)

    @pytest.mark.parametrize("windows", [None, 2, [(0, 3), (2, 4)], [(0, 1), (1, 2), (0, 4)]])
    def test_sensitivity_of_histograms_and_sums(self, silent, windows):
        for ask, largest in ((histogram, 0), (total, 0)):
            options = {"n_states": 3} if ask is histogram else {"values": np.array([0, 1, 5])}

            def answer(states, ask=ask, options=options):
                found = ask(np.array(states), "independent", 1, windows=windows, **options)
                return found.table.iloc[:, -1].to_numpy(), found.event.parts[0].sensitivity

            for states in itertools.product((0, 2), repeat=4):
                for place, value in itertools.product(range(4), range(3)):
                    other = [*states[:place], value, *states[place + 1 :]]
                    (one, bound), (two, _) = answer(states), answer(other)
                    largest = max(largest, int(np.abs(one - two).sum()))
                    assert largest <= bound
            assert largest == bound

    def test_consistent_counts(self, silent):
        found = histogram(STATES, "independent", 1, n_states=2, windows=2, consistent=True)
        assert found.table["count"].tolist() == [2, 2, 1, 3, 2, 0]
        assert with_total(np.array([7, -3, 1]), 5).tolist() == [5, 0, 0]
        assert with_total(np.array([1, 1, 2]), 5).sum() == 5
        assert with_total(np.array([-4, -9]), 3).tolist() == [3, 0]
        assert with_total(np.array([4, 9]), 0).tolist() == [0, 0]

    @pytest.mark.parametrize("seed", range(5))
    def test_consistency_is_the_nearest_point(self, seed):
        rng = np.random.default_rng(seed)
        noisy, n = rng.integers(-5, 10, 4), int(rng.integers(1, 12))
        found = with_total(noisy, n)
        assert found.sum() == n and (found >= 0).all()
        best = min(((np.array(c) - noisy) ** 2).sum() for c in itertools.product(range(n + 1), repeat=4) if sum(c) == n)
        assert ((found - noisy) ** 2).sum() == best

    def test_tables_in(self, silent):
        frame = pd.DataFrame({"user": ["b", "a", "b"], "t": [0, 1, 3], "state": [1, 0, 1]})
        before = frame.copy()
        found = count(frame, Chain(MOVES, 4), 1, n_states=2, states=[1], windows=2)
        assert found.table.values.tolist() == [[0, 2, 1], [2, 4, 1]] and frame.equals(before)
        assert found.event.query == "count"

    def test_means(self, silent):
        found = mean([1.0, 2.0, 99.0], "independent", 1, bounds=(0, 4))
        assert found.table["mean"][0] == pytest.approx(7 / 3, abs=1e-4) and found.table["n"][0] == 3
        assert found.event.parts[0].sensitivity == 2**16

    @pytest.mark.parametrize(
        ("ask", "told"),
        [
            (lambda: mean([1.0], "independent", 1, bounds=None), "bounds"),
            (lambda: mean([1.0], "independent", -1, bounds=(0, 1)), "epsilon"),
            (lambda: mean([1.0], "sometimes", 1, bounds=(0, 1)), "dependence"),
            (lambda: mean([1.0], ("group", 0), 1, bounds=(0, 1)), "depend"),
            (lambda: mean([1.0, 2.0], Coefficients(np.eye(3)), 1, bounds=(0, 1)), "2 records"),
            (lambda: histogram(STATES, Chain(MOVES, 3), 1, n_states=2), "5 times"),
            (lambda: histogram(STATES, Chain(MOVES, 5), 1, n_states=3), "3 states"),
            (lambda: histogram(STATES, "independent", 1, n_states=2, windows=[(3, 1)]), "windows"),
            (lambda: histogram(pd.DataFrame({"t": [0]}), "independent", 1, n_states=2), "columns"),
            (lambda: count(STATES, "independent", 1, n_states=2, states=[5]), "states"),
        ],
    )
    def test_bad_input(self, ask, told):
        with pytest.raises(InvalidInput, match=told) as refused:
            ask()
        assert "\n" not in str(refused.value)


class TestClaims:
    def test_what_is_not_proved_is_refused(self):
        with pytest.raises(Refused, match="not 1-DDP"):
            histogram(STATES, binary(0.01, 0.1, 5), 1, n_states=2, mechanism="independent")
        bursty = binary(0.001, 0.1, 100)
        states = np.zeros(100, dtype=int)
        with pytest.raises(Refused, match="not 1-DDP"):
            histogram(states, bursty, 1, n_states=2, mechanism="dpm")
        found = histogram(states, bursty, 1, n_states=2, mechanism="dpm", accept_unproved=True)
        assert found.event.claimed is None and "nothing is proved" in found.event.statement
        with pytest.raises(Refused, match="not proved"):
            _ = found.event.epsilon

    def test_groups(self):
        found = mean([1.0, 2.0, 3.0], ("group", 3), 1, bounds=(0, 4))
        assert found.event.per_record == Fraction(1, 3) and found.event.epsilon == 1
        assert "under groups of 3" in found.event.statement

    def test_two_queries_lose_more_than_the_sum_of_their_claims(self):
        """The bursty chain: ε = 1 twice is 2.31, and the recursion at the summed ε₀ says so."""
        model = binary(0.01, 0.1, 100)
        states = np.zeros(100, dtype=int)
        events = [total(states, model, 1, values=np.array([0, 1])).event for _ in range(2)]
        both = together(model, events)
        assert float(both.value) == pytest.approx(2.31, abs=5e-3)
        assert per_record_total(events).value == 2 * events[0].per_record
        assert float(together(model, events[:1]).value) == pytest.approx(1, abs=1e-6)
        with pytest.raises(Refused, match="replayed"):
            together(model, [total(states, model, 1, values=np.array([0, 1]), bits=bits()).event])

    def test_events_are_checked(self):
        with pytest.raises(InvalidInput, match="parts"):
            DependentEvent("q", "r", (), "m", "d", None, "w", True)


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
        from dphmm.dependent._lloyd import HALF, _nearest

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


class TestRelations:
    """What an event and its statement say neighbours are, against all of them: the loss is not said of others."""

    STAR = ((0, 1), (0, 2), (0, 3), (4, 5), (4, 6), (4, 7))

    def degrees(self, edges, level="edge", dependence="independent"):
        table = pd.DataFrame(list(edges), columns=["a", "b"], dtype=int)
        return dphmm.query("degree", table, dependence, 1, people=10, level=level, cap=5, consistent=False)

    def test_one_edge_there_or_not(self, silent):
        """All graphs on 4 of 10 people beside a part that stays, each with one edge more."""
        pairs = list(itertools.combinations(range(4), 2))
        chosen = list(itertools.product((False, True), repeat=len(pairs)))
        found = {}
        for which in chosen:
            edges = [pair for pair, there in zip(pairs, which, strict=True) if there] + [(4, 5), (5, 6)]
            answer = self.degrees(edges)
            found[which] = answer.table["count"].to_numpy()
            assert answer.event.neighbours == "add-remove"
        flips = [(one, other) for one in chosen for other in chosen if np.not_equal(one, other).sum() == 1]
        worst = max(int(np.abs(found[one] - found[other]).sum()) for one, other in flips)
        assert worst == answer.event.parts[0].sensitivity == 4

    def test_an_edge_in_another_s_place_is_two_changes(self, silent):
        """What made the statement false: 4 was said of a replaced edge, which moves the numbers by 8."""
        one, other = self.degrees([*self.STAR, (8, 9)]), self.degrees([*self.STAR, (0, 4)])
        moved = int(np.abs(one.table["count"] - other.table["count"]).sum())
        event = one.event
        assert moved == 8 == event.for_replacement().parts[0].sensitivity > event.parts[0].sensitivity
        assert event.for_replacement().per_record == 2 == event.for_replacement().claimed

    @pytest.mark.parametrize("dependence", ["independent", "group:3"])
    def test_the_statement_says_there_or_not(self, dependence):
        found = self.degrees(self.STAR, dependence=dependence)
        said, lost = found.statement, "1" if dependence == "independent" else "0.333"
        hidden = "one record: one edge, there or not; neighbouring data differ in it and nowhere else"
        assert said["unit_of_privacy"] == hidden
        assert found.event.statement.startswith(
            f"adding or removing one record (one edge) and no other loses at most {lost}"
        )
        assert said["per_record"]["meaning"].startswith("what adding or removing one record and no other loses")
        assert "replacing" not in str(said) and "Which records there are" not in str(said)
        assert any("in another's place" in text for text in said["not_protected"])

    def test_all_edges_of_a_person_are_replaced(self):
        found = self.degrees(self.STAR, level="node")
        assert found.event.neighbours == "replace" and found.event.for_replacement() is found.event
        assert found.statement["unit_of_privacy"].startswith("one record: all edges of one person; neighbouring data")
        assert found.statement["promise"]["meaning"].startswith("replacing one record (all edges of one person)")

    @pytest.mark.parametrize("dependence", ["independent", "group:3"])
    def test_an_account_says_the_same(self, tmp_path, dependence):
        """A group of edges that depend on each other is not all rows of one person."""
        table = pd.DataFrame(list(self.STAR), columns=["a", "b"])
        options = {"people": 10, "level": "edge", "cap": 5}
        with dphmm.open_ledger(tmp_path / "ledger.db") as ledger:
            asked = dphmm.query("degree", table, dependence, 1, ledger=ledger, publication="edges", **options)
            (told,) = ledger.publications()
            again = dphmm.query("degree", table, dependence, 1, ledger=ledger, publication="edges", **options)
        assert told.unit == "one record: one edge, there or not; neighbouring data differ in it and nowhere else"
        assert (told.relation, told.units) == ("add-remove", None)
        assert again.event == asked.event and again.event.neighbours == "add-remove"

    def test_one_record_of_a_histogram(self, silent):
        """All tables of two people and two steps: a record's state replaced, and a record there or not.

        Steps are public numbers here: where each person's begin with the first one, a row less moves the others.
        """
        cells = list(itertools.product(("ann", "bob"), (0, 1)))
        options = {"states": "h,w", "times": 2, "windows": 1, "first": 0, "consistent": False}
        found, replaced, there = {}, 0, 0
        for states in itertools.product(("h", "w", None), repeat=len(cells)):
            rows = [(*cell, state) for cell, state in zip(cells, states, strict=True) if state is not None]
            table = pd.DataFrame(rows, columns=["user", "step", "state"])
            answer = dphmm.query("histogram", table, "independent", 1, **options)
            found[states] = answer.table["count"].to_numpy()
        for one, other in itertools.combinations(found, 2):
            (where,) = np.nonzero([a != b for a, b in zip(one, other, strict=True)])
            if len(where) == 1:
                moved = int(np.abs(found[one] - found[other]).sum())
                if None in (one[where[0]], other[where[0]]):
                    there = max(there, moved)
                else:
                    replaced = max(replaced, moved)
        assert answer.event.neighbours == "replace" and replaced == answer.event.parts[0].sensitivity == 2
        asked = Histogram(table, "independent", 1, options)
        share = asked.per_person()
        assert share.relation == "add-remove" and there == replaced * share.share
        counts = "one record that counts, there or not; neighbouring data differ in it and nowhere else"
        assert asked.publication("visits", None).unit == counts

    @pytest.mark.parametrize(
        "options", [{}, {"first": 0}, {"max_rows_per_user": 1}, {"first": 0, "max_rows_per_user": 2}]
    )
    def test_one_person_of_a_histogram(self, silent, options):
        """All tables of one person and three steps, against the bound that an account counts for a person."""
        options = {"states": "h,w", "times": 3, "windows": 1, "consistent": False, **options}
        found = []
        for states in itertools.product(("h", "w", None), repeat=3):
            rows = [("ann", step, state) for step, state in enumerate(states) if state is not None]
            table = pd.DataFrame(rows, columns=["user", "step", "state"])
            answer = dphmm.query("histogram", table, "independent", 1, **options)
            found.append(answer.table["count"].to_numpy())
        asked, scale = Histogram(table, "independent", 1, options), answer.event.parts[0].scale
        most = max(int(np.abs(one).sum()) for one in found) / scale
        told = asked.publication("visits", None)
        assert most == told.units * told.epsilon, "the worst person loses what the account counts, and no more"

    def test_losses_of_edges_and_of_records_do_not_add_up_as_they_stand(self):
        edge, state = self.degrees(self.STAR).event, histogram(STATES, "independent", 1, n_states=2).event
        assert per_record_total([edge, edge]).value == 2
        assert "adding or removing one record" in per_record_total([edge, edge]).statement
        both = per_record_total([edge, state])
        assert both.value == 3 and "replacing one record" in both.statement
        assert together(Chain(MOVES, 1), [edge]).value >= 2


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


def test_an_arrow_table_is_a_table_and_no_cell_of_it_is_told():
    """Its ``columns`` are the cells: a message once listed them, names of people included."""
    import pyarrow as pa

    table = pa.table({"user": ["canary-a", "canary-b"], "t": [0, 0], "state": [0, 1]})
    answered = histogram(table, "independent", 1, n_states=2, bits=ReplayBits(1))
    frame = histogram(table.to_pandas(), "independent", 1, n_states=2, bits=ReplayBits(1))
    assert answered.table.equals(frame.table)
    with pytest.raises(InvalidInput) as refused:
        histogram(table.rename_columns(["user", "t", "place"]), "independent", 1, n_states=2)
    assert "columns ['user', 't', 'place']" in str(refused.value)
    assert "canary" not in str(refused.value)
