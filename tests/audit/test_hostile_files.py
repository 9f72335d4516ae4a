"""Ledgers and files made to stop an audit, or to have it say a book: it ends soon, in short sentences.

Claims: numbers that take years to read, answers beyond 64 bits or of another dimension, JSON a hundred thousand levels
deep and texts of a megabyte are told of and nothing else happens; a step ten million steps away is reached at once. It
would fail for a reader that trusts a ledger because it has the right tables.
"""

from __future__ import annotations

import sqlite3
import time

import numpy as np
import pandas as pd
import pytest

import dphmm
from audit.test_released import Finished
from dphmm.audit import black_box
from dphmm.errors import InvalidInput


def _damaged(one, change):
    """The verdict after a change of the ledger's file, by SQL or by a function of the connection."""
    one.ledger.close()
    path = one.path.with_name("ledger.db")
    with sqlite3.connect(path) as direct:
        direct.execute("PRAGMA ignore_check_constraints = ON")
        for (name,) in direct.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            direct.execute(f"DROP TRIGGER {name}")
        direct.execute(*change)
    direct.close()
    one.ledger = dphmm.open_ledger(path)
    return one.check()


DEEP = "[" * 100_000
OF_OPTIONS = "UPDATE document SET text = ? WHERE id IN (SELECT options FROM session)"
OF_PLANS = "UPDATE document SET text = ? WHERE id IN (SELECT description FROM plan)"
HOSTILE = {
    "an answer beyond 64 bits": ("UPDATE release SET z = ? WHERE t = 2", "9" * 60 + ",1", "ledger: not those of"),
    "an answer of one number": ("UPDATE release SET z = ? WHERE t = 2", "1", "ledger: not those of"),
    "an answer of three": ("UPDATE release SET z = z || ? WHERE t = 2", ",1", "ledger: not those of"),
    "an epsilon that takes years": ("UPDATE terms SET epsilon = ?", "1e999999999", "damaged"),
    "an account that takes years": ("UPDATE account SET epsilon = ?", "1e999999999", "damaged"),
    "deep options": (OF_OPTIONS, DEEP, "damaged"),
    "a deep plan": (OF_PLANS, DEEP, "damaged"),
    "a book of an option": (OF_OPTIONS, f'{{"epsilon": "{"9" * 10**6}"}}', "sessions have other choices"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_ledger_is_told_in_short_sentences(tmp_path, name):
    sql, value, words = HOSTILE[name]
    full = pd.DataFrame([("u0", step, str(step % 6)) for step in range(6)], columns=["user", "step", "state"])
    one = Finished(tmp_path, model=dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6)), table=full)
    try:
        found = _damaged(one, (sql, (value,))).findings
    except InvalidInput as error:
        found = (str(error),)
    assert any(words in finding for finding in found), found
    assert all(len(finding) < 300 and "\n" not in finding for finding in found)


@pytest.mark.parametrize("origin", ["--5", "9" * 5000, "\u0661", "-", "x"])
def test_an_origin_that_is_no_number_is_no_time(tmp_path, origin):
    model = dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6), step=60)
    times = pd.date_range("2024-05-06T08:01", periods=4, freq="1min", tz="UTC")
    one = Finished(tmp_path, model=model, table=pd.DataFrame({"user": "ann", "t": times, "state": list("0123")}))
    sql = OF_OPTIONS.replace("?", "json_set(text, '$.origin', ?)")
    assert not _damaged(one, (sql, (origin,))).convicted


@pytest.mark.slow
def test_a_step_far_away_is_reached_at_once(tmp_path):
    """The supports of a chain that goes round and round come again: they are not moved ten million times."""
    round_and_round = np.kron(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.full((2, 2), 0.5))
    model = dphmm.MarkovModel([0.5, 0.5, 0, 0, 0, 0], round_and_round)
    table = pd.DataFrame([("u0", step, str(step % 3 * 2)) for step in range(6)], columns=["user", "step", "state"])
    one = Finished(tmp_path, model=model, policy=dphmm.policy.complete(6), table=table)
    frame = one.table.to_pandas()
    begun = time.monotonic()
    for far in (10**7, 10**7 + 1):
        verdict = one.check(frame.assign(step=[*frame["step"][:-1], far]), ledger=False)
        assert verdict.convicted
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("alpha", [1e-300, 1e-6, 1 - 1e-16])
@pytest.mark.parametrize("epsilon", [2.0**-20, 1, 1024])
def test_the_farthest_levels_and_promises_have_an_answer(alpha, epsilon):
    verdict = black_box([(np.zeros(40), np.arange(40))], epsilon, alpha=alpha)
    assert verdict.lower >= 0 and len(verdict.lines[0]) < 300
    assert not (epsilon == 1024 and verdict.convicted)
    with pytest.raises(InvalidInput, match="alpha"):
        black_box([(np.zeros(40), np.arange(40))], epsilon, alpha=5e-324)
