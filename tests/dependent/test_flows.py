"""Flows: trips are counted right, and nobody's rows change the counts by more than the noise is made for.

Enumerated: everything that one more person may have as rows (any states at any of the steps, in any order of the table)
beside others. The largest distance of the counts of two such tables, in scales of the noise, is the exact worst
log-ratio of any output (`noisy_numbers`): at most epsilon, and epsilon where K trips leave and K others enter. It would
fail for a K that is applied after trips are counted, for one of rows instead of trips, for trips across two people, and
for a sensitivity of one trip that only leaves.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting import MemoryLedger
from dphmm.dependent import flows
from dphmm.errors import InvalidInput
from dphmm.statement.parts import typed
from dphmm.statement.query import QueryStatement
from noisy_numbers import loss, replaced

STATES = ["home", "work"]
OTHERS = [("ann", 1, "home"), ("ann", 2, "work"), ("ann", 4, "home"), ("bob", 2, "work")]
#: What one person may have: nothing, or a state, or one that is not public, at each of four steps.
LIVES = list(itertools.product((None, "home", "work", "nowhere"), repeat=4))


def frame(rows):
    return pd.DataFrame(rows, columns=["user", "step", "state"])


def rows_of(life, user="x"):
    return [(user, step, state) for step, state in enumerate(life, start=1) if state is not None]


def ask(rows, numbers, most, **options):
    found = dphmm.query("flows", frame(rows), f"group:{most}", 1, states=STATES, bits=dphmm.ReplayBits(1), **options)
    (asked,) = numbers.taken()
    return found, asked


def naive(rows, most, moves=False):
    """The counts by a loop over people and their rows in the order of steps."""
    counts = dict.fromkeys(itertools.product(range(3), repeat=2), 0)
    for user in {user for user, _, _ in rows}:
        path = [STATES.index(s) if s in STATES else 2 for _, _, s in sorted(r for r in rows if r[0] == user)]
        trips = [pair for pair in itertools.pairwise(path) if not moves or pair[0] != pair[1]]
        for pair in trips[:most]:
            counts[pair] += 1
    return tuple(counts.values())


@pytest.mark.slow
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_person_changes_the_answer_by_at_most_epsilon(monkeypatch, most, moves):
    """Between any two of 256 lives, in any order of the table; and the bound is reached."""
    numbers = replaced(monkeypatch)
    seen = {}
    for number, life in enumerate(LIVES):
        rows = [*OTHERS[: number % 5], *rows_of(life)[:: 1 if number % 2 else -1], *OTHERS[number % 5 :]]
        _, asked = ask(rows, numbers, most, moves=moves)
        assert asked[3] == naive(rows, most, moves)
        seen.setdefault(asked[3], asked)
    worst = max(loss([one], [other]) for one in seen.values() for other in seen.values())
    assert worst == 1


def test_trips_of_people_do_not_mix_and_gaps_are_passed(monkeypatch):
    numbers = replaced(monkeypatch)
    _, asked = ask([("b", 1, "work"), ("a", 1, "home"), ("a", 9, "work"), ("b", 2, "work")], numbers, 5)
    assert asked[:3] == ("flows", Fraction(2), Fraction(1, 5)) and asked[3] == (0, 1, 0, 0, 1, 0, 0, 0, 0)


@pytest.mark.replayed_words
def test_the_statement_says_whose_rows_are_hidden_and_how_many_trips_count():
    found = dphmm.query("flows", frame(OTHERS), "group:2", 1, states=STATES)
    said = typed(found.statement, QueryStatement)
    assert found.epsilon == 1 and list(found.table.columns) == ["origin", "destination", "count"]
    pairs = list(itertools.product([*STATES, "other"], repeat=2))
    assert [*zip(found.table.origin, found.table.destination, strict=True)] == pairs
    unit = said.unit.sentence(whole=said)
    assert unit.startswith("all rows of one person, whose first 2 trips count")
    assert "all records of one person may depend on each other in any way" in said.dependence.sentence()
    assert [(part.sensitivity, part.scale) for part in said.noise] == [("2", "4")]
    assert json.dumps(found.statement)


@pytest.mark.parametrize(
    "dependence", [None, "independent", "group", "friends:x.csv", "markov:m.npz", "group:0", ("group", 0), "group:x"]
)
def test_what_is_not_proved_is_refused(dependence):
    with pytest.raises(InvalidInput, match=r"^dependence"):
        dphmm.query("flows", frame(OTHERS), dependence, 1, states=STATES)
    with pytest.raises(InvalidInput, match=r"^dependence"):
        flows(np.zeros((1, 3), dtype=int), dependence, 1, n_states=2)


def test_arrays_and_tables_agree(monkeypatch):
    numbers = replaced(monkeypatch)
    states = np.array([[0, 1, -1, 0], [-1, 1, -1, -1]])
    flows(states, ("group", 2), 1, n_states=3)
    (of_array,) = numbers.taken()
    _, of_table = ask(OTHERS, numbers, 2)
    assert of_array == of_table
    dphmm.dependent.query("flows", states, "group:2", 1, n_states=3)
    assert numbers.taken() == [of_array]


def test_consistent_counts_keep_the_noisy_total():
    found = dphmm.query(
        "flows", frame(OTHERS), "group:1", "0.1", states=STATES, consistent=True, bits=dphmm.ReplayBits(4)
    )
    plain = dphmm.query("flows", frame(OTHERS), "group:1", "0.1", states=STATES, bits=dphmm.ReplayBits(4))
    assert (found.table["count"] >= 0).all() and found.table["count"].sum() == max(plain.table["count"].sum(), 0)


@pytest.mark.replayed_words
def test_a_ledger_counts_what_one_person_loses():
    ledger = MemoryLedger()
    for _ in range(2):
        dphmm.query("flows", frame(OTHERS), "group:2", 1, states=STATES, ledger=ledger, event_id="flows")
    (kept,) = ledger.publications()
    assert kept.epsilon * kept.units * 2 == 1 and kept.relation == "add-remove"


def test_too_many_states_are_refused():
    with pytest.raises(InvalidInput, match="n_states: got 1,001 states"):
        flows(np.zeros((1, 3), dtype=int), ("group", 1), 1, n_states=1001)


def naive_moves(rows, most):
    """The counts with beginnings (3 as origin) and ends (3 as destination), by a loop over people."""
    counts = dict.fromkeys(itertools.product(range(4), repeat=2), 0)
    for user in {user for user, _, _ in rows}:
        path = [STATES.index(s) if s in STATES else 2 for _, _, s in sorted(r for r in rows if r[0] == user)]
        for pair in list(itertools.pairwise([3, *path, 3]))[:most]:
            counts[pair] += 1
    return tuple(counts.values())[:-1]


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "most"), [("add-remove", 1), ("add-remove", 3), ("replace", 3), ("replace", 5)])
def test_beginnings_and_ends_count_among_the_first_moves(monkeypatch, relation, most):
    """Between any two of 256 lives: scale K and a loss of epsilon there or not, of 2 epsilon replaced; or scale 2K."""
    numbers = replaced(monkeypatch)
    seen = {}
    for number, life in enumerate(LIVES):
        rows = [*OTHERS[: number % 5], *rows_of(life)[:: 1 if number % 2 else -1], *OTHERS[number % 5 :]]
        _, asked = ask(rows, numbers, most, ends=True, neighbours=relation)
        assert asked[3] == naive_moves(rows, most)
        seen.setdefault(asked[3], asked)
    # Noise of scale sensitivity / (epsilon of one unit): K, or 2K.
    there_or_not = relation == "add-remove"
    assert asked[1] / asked[2] == (most if there_or_not else 2 * most)
    nobody = seen[naive_moves(OTHERS, most)]
    assert max(loss([nobody], [other]) for other in seen.values()) == (1 if there_or_not else Fraction(1, 2))
    assert max(loss([one], [other]) for one in seen.values() for other in seen.values()) == (2 if there_or_not else 1)


def test_a_life_of_one_row_is_a_beginning_and_an_end(monkeypatch):
    numbers = replaced(monkeypatch)
    found, asked = ask([("x", 1, "work"), ("y", 2, "home"), ("y", 5, "work")], numbers, 2, ends=True)
    table = found.table[found.table["origin"].isin(["(start)"]) | found.table["destination"].isin(["(end)"])]
    names = list(zip(found.table["origin"], found.table["destination"], strict=True))
    counted = {names[at]: count for at, count in enumerate(asked[3]) if count}
    assert counted == {("(start)", "work"): 1, ("work", "(end)"): 1, ("(start)", "home"): 1, ("home", "work"): 1}
    assert len(names) == 15 and len(table) == 6 and ("(start)", "(end)") not in names
    unit = typed(found.statement, QueryStatement).unit
    assert "whose first 2 moves count, the beginning and the end among them" in unit.sentence(
        whole=typed(found.statement, QueryStatement)
    )


def test_a_state_that_is_called_as_a_beginning_is_another_one(monkeypatch):
    replaced(monkeypatch)
    table = frame([("x", 1, "(start)")])
    found = dphmm.query("flows", table, "group:2", 1, states=["(start)"], ends=True, bits=dphmm.ReplayBits(1))
    assert set(found.table["origin"]) == {"(start)", "other", "((start))"}


@pytest.mark.replayed_words
@pytest.mark.parametrize(("relation", "there", "replaced_one"), [("add-remove", 1, 2), ("replace", Fraction(1, 2), 1)])
def test_the_account_books_a_case_that_is_there_once_and_a_replaced_one_twice(relation, there, replaced_one):
    ledger, options = MemoryLedger(), {"states": STATES, "ends": True, "neighbours": relation}
    dphmm.query("flows", frame(OTHERS), "group:3", 1, ledger=ledger, event_id="flows", **options)
    (kept,) = ledger.publications()
    assert kept.relation == "add-remove" and kept.units == 3 and kept.epsilon * kept.units == there
    assert 2 * kept.epsilon * kept.units == replaced_one
