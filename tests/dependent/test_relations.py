"""What an event, a statement and an account say neighbours are, against all neighbours of small tables and graphs.

It fails where a loss is said of other neighbours than those that the noise is for.
"""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting import MemoryLedger
from dphmm.accounting.event import per_record_total
from dphmm.accounting.publication import total_present, total_replaced
from dphmm.dependent import REGISTERED, Chain, flows, histogram, kmeans, together
from dphmm.dependent._counts import Histogram
from dphmm.errors import InvalidInput
from dphmm.statement.parts import typed
from dphmm.statement.query import QueryStatement
from noisy_numbers import loss, replaced

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words

MOVES = [[0.9, 0.1], [0.2, 0.8]]
STATES = np.array([[0, 0, 1, 1, 0], [1, 1, 1, 0, 0]])


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
        said, lost = typed(found.statement, QueryStatement), "1" if dependence == "independent" else "0.333"
        hidden = "one record: one edge, there or not; neighbouring data differ in it and nowhere else"
        assert said.unit.sentence(whole=said) == hidden
        assert found.event.statement.startswith(
            f"adding or removing one record (one edge) and no other loses at most {lost}"
        )
        assert "it loses at most 1, another in its place 2: " in said.sentence()
        per_record = said.sentence("per record", change=said.change)
        assert per_record.startswith("what adding or removing one record and no other loses")
        assert "replacing" not in said.sentence() + per_record + " ".join(said.hides_not)
        assert "presence" not in said.not_protected and "one edge or another" in said.not_protected

    def test_all_edges_of_a_person_are_replaced(self):
        found = self.degrees(self.STAR, level="node")
        assert found.event.neighbours == "replace" and found.event.for_replacement() is found.event
        said = typed(found.statement, QueryStatement)
        assert said.unit.sentence(whole=said).startswith("one record: all edges of one person; neighbouring data")
        assert said.sentence().startswith("replacing one record (all edges of one person)")

    @pytest.mark.parametrize("dependence", ["independent", "group:3"])
    def test_an_account_says_the_same(self, tmp_path, dependence):
        """A group of edges that depend on each other is not all rows of one person."""
        table = pd.DataFrame(list(self.STAR), columns=["a", "b"])
        options = {"people": 10, "level": "edge", "cap": 5}
        with dphmm.open_ledger(tmp_path / "ledger.db") as ledger:
            asked = dphmm.query("degree", table, dependence, 1, ledger=ledger, event_id="edges", **options)
            (told,) = ledger.publications()
            again = dphmm.query("degree", table, dependence, 1, ledger=ledger, event_id="edges", **options)
        assert told.unit == "one record: one edge, there or not; neighbouring data differ in it and nowhere else"
        assert (told.relation, told.units) == ("add-remove", None)
        assert again.event == asked.event and again.event.neighbours == "add-remove"

    @pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
    def test_one_record_of_a_histogram(self, silent, neighbours):
        """All tables of two people and two steps: a record's state replaced, and a record there or not.

        Steps are public numbers here: where each person's begin with the first one, a row less moves the others.
        """
        cells = list(itertools.product(("ann", "bob"), (0, 1)))
        options = {"states": "h,w", "times": 2, "windows": 1, "first": 0, "neighbours": neighbours}
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
        (part,), (replaced_part,) = answer.event.parts, answer.event.for_replacement().parts
        assert answer.event.neighbours == neighbours and replaced == replaced_part.sensitivity == 2
        assert part.sensitivity == (2 if neighbours == "replace" else there) and there == 1
        asked = Histogram(table, "independent", 1, options)
        share = asked.per_person()
        assert share.relation == "add-remove" and there / part.scale == answer.event.per_record * share.share
        counts = "one record that counts, there or not; neighbouring data differ in it and nowhere else"
        assert asked.publication("visits", None).unit == counts

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"first": 0},
            {"max_rows_per_user": 1},
            {"first": 0, "max_rows_per_user": 2},
            {"first": 0, "neighbours": "add-remove"},
            {"max_rows_per_user": 2, "neighbours": "add-remove"},
        ],
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


class TestOfAPerson:
    """All that one person may have beside another one, under both relations: the loss of any output, exactly.

    Discrete Laplace noise on whole numbers loses |x - y| / scale, and reaches it; all numbers here are fractions.
    """

    CELLS = (None, "h", "w", "nowhere")
    POINTS = (None, "0", "10", "far")
    ASKED: ClassVar = {
        "histogram": {"states": "h,w"},
        "windows": {"states": "h,w", "times": 3, "windows": "0:3,0:3", "first": 0},
        "flows": {"states": "h,w"},
        "kmeans": {"columns": "x", "box": "0:10", "start": "1;9", "iterations": 1},
    }

    def losses(self, monkeypatch, asked, most, neighbours):
        """The largest loss of a person there or not, that of one replaced, and the answer."""
        numbers, column = replaced(monkeypatch), "x" if asked == "kmeans" else "state"
        question = "histogram" if asked == "windows" else asked
        seen = {}
        for life in itertools.product(self.POINTS if asked == "kmeans" else self.CELLS, repeat=3):
            rows = [("ann", 1, "0"), ("ann", 2, "10")] if asked == "kmeans" else [("ann", 1, "h"), ("ann", 2, "w")]
            rows[1:1] = [("x", step, cell) for step, cell in enumerate(life) if cell is not None]
            table = pd.DataFrame(rows, columns=["user", "step", column])
            options = {"neighbours": neighbours, "bits": dphmm.ReplayBits(1), **self.ASKED[asked]}
            answer = dphmm.query(question, table, ("group", most), 1, **options)
            seen[life] = numbers.taken()
        there = max(loss(seen[(None,) * 3], numbers) for numbers in seen.values())
        return there, max(loss(one, other) for one, other in itertools.combinations(seen.values(), 2)), answer

    @pytest.mark.filterwarnings("ignore:the noise is larger")
    @pytest.mark.parametrize("most", [1, 2])
    @pytest.mark.parametrize("asked", ASKED)
    def test_add_remove_is_of_a_person_there_or_not_and_replacing_loses_twice(self, monkeypatch, asked, most):
        there, other, answer = self.losses(monkeypatch, asked, most, "add-remove")
        assert (there, other) == (1, 2)
        event = answer.event
        assert event.neighbours == "add-remove" and (event.claimed, event.for_replacement().claimed) == (1, 2)
        assert event.per_record * most == 1

    @pytest.mark.filterwarnings("ignore:the noise is larger")
    @pytest.mark.parametrize("most", [1, 2])
    @pytest.mark.parametrize("asked", ASKED)
    def test_replace_is_of_a_person_in_any_other_s_place(self, monkeypatch, asked, most):
        there, other, answer = self.losses(monkeypatch, asked, most, "replace")
        assert (there, other) == (0.5, 1) and answer.event.neighbours == "replace"

    @pytest.mark.filterwarnings("ignore:the noise is larger")
    @pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
    @pytest.mark.parametrize("asked", ASKED)
    def test_an_account_books_what_each_relation_costs(self, asked, neighbours):
        ledger, question = MemoryLedger(), "histogram" if asked == "windows" else asked
        table = pd.DataFrame([("ann", 1, "0")], columns=["user", "step", "x" if asked == "kmeans" else "state"])
        options = {"neighbours": neighbours, **self.ASKED[asked]}
        found = dphmm.query(question, table, ("group", 2), 1, ledger=ledger, event_id="one", **options)
        lost = (total_present(ledger.publications()).epsilon, total_replaced(ledger.publications()).epsilon)
        assert lost == ((1, 2) if neighbours == "add-remove" else (0.5, 1))
        again = dphmm.query(question, table, ("group", 2), 1, ledger=ledger, event_id="one", **options)
        assert again.event == found.event

    @pytest.mark.parametrize("question", ["histogram", "flows"])
    def test_the_statement_says_both(self, question):
        table = pd.DataFrame([("ann", 1, "h")], columns=["user", "step", "state"])
        found = dphmm.query(question, table, "group:2", 1, states="h,w", neighbours="add-remove")
        said = typed(found.statement, QueryStatement)
        assert said.neighbours == "add-remove" and said.unit.there_or_not
        unit = said.unit.sentence(whole=said)
        assert unit.endswith("neighbouring data have them all or none, and differ nowhere else")
        assert "under groups of 2 it loses at most 1, another in its place 2: " in found.event.statement

    def test_one_record_alone_may_move_others(self):
        table = pd.DataFrame([("ann", 1, "h")], columns=["user", "step", "state"])
        found = dphmm.query("histogram", table, "independent", 1, states="h,w", neighbours="add-remove")
        said = typed(found.statement, QueryStatement)
        assert {"rows that move", "all records of a person"} < set(said.not_protected)
        assert "presence" not in said.not_protected


class TestRefused:
    """A relation that a question cannot mean is refused by its name, before any row is read."""

    @pytest.mark.parametrize(
        ("question", "options", "expected"),
        [
            ("degree", {"level": "edge", "neighbours": "replace"}, "none: level says .* with edge an edge is there or"),
            ("degree", {"level": "node", "neighbours": "add-remove"}, "none: .* all edges of a person are replaced"),
            ("svm", {"neighbours": "add-remove"}, "replace: the number of rows of DATA is public"),
            ("histogram", {"neighbours": "both"}, "one of add-remove, replace"),
        ],
    )
    def test_of_a_table(self, question, options, expected):
        table = pd.DataFrame(columns=["user", "step", "state"])
        public = {"degree": {"people": 3, "cap": 2}, "histogram": {"states": "h,w"}}.get(
            question, {"columns": "x", "box": "0:1", "label": "c", "classes": "no,yes"}
        )
        with pytest.raises(InvalidInput, match=rf"^neighbours: .*{expected}"):
            REGISTERED[question](table, "independent", 1, {**public, **options})

    def test_of_a_chain(self):
        space = dphmm.StateSpace.categories(["h", "w"])
        model = dphmm.MarkovModel([0.5, 0.5], MOVES, space=space)
        table = pd.DataFrame(columns=["user", "step", "state"])
        with pytest.raises(InvalidInput, match=r"^neighbours: got add-remove; expected replace: which records"):
            Histogram(table, model, 1, {"times": 2, "neighbours": "add-remove"})
        with pytest.raises(InvalidInput, match=r"^neighbours: got add-remove; expected replace: which records"):
            histogram(STATES, Chain(MOVES, 5), 1, n_states=2, n_times=5, neighbours="add-remove")

    def test_of_arrays(self, silent):
        """The last time that somebody has would tell that they are there."""
        with pytest.raises(InvalidInput, match=r"^n_times: got None; expected the public number of times"):
            histogram(STATES, "independent", 1, n_states=2, neighbours="add-remove")
        events = [
            histogram(STATES, "independent", 1, n_states=2, n_times=5, neighbours="add-remove").event,
            flows(STATES, ("group", 1), 1, n_states=2, neighbours="add-remove").event,
            kmeans([[0.0]], "independent", 1, box=(0, 1), start=[[0]], iterations=1, neighbours="add-remove").event,
        ]
        assert [event.parts[0].sensitivity for event in events] == [1, 1, 1]
        assert {event.neighbours for event in events} == {"add-remove"}
