"""What an event, a statement and an account say neighbours are, against all neighbours of small tables and graphs.

It fails where a loss is said of other neighbours than those that the noise is for.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting.event import per_record_total
from dphmm.dependent import Chain, histogram, together
from dphmm.dependent._counts import Histogram
from dphmm.statement.parts import typed
from dphmm.statement.query import QueryStatement

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
