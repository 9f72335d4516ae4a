"""The statement beside the answer of a query: its bytes, and when it promises nothing or says that nobody knows.

It would fail for another order of members or another word, and for a statement that promises what replayable noise, an
unproved mechanism or a model of the same people takes away.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dphmm
from dphmm.storage.query_statement import query_statement
from storage.test_statement import FOLDER, text_of

pytestmark = pytest.mark.replayed_words

GIVEN = {"given": "independent", "meaning": "no record depends on another one, as the data owner says"}


def answered(dependence: Any, given: dict[str, Any], secure: bool = True, **more: Any) -> Any:
    """The statement of a histogram."""
    bits = None if secure else dphmm.ReplayBits(3)
    answer = dphmm.dependent.query("histogram", np.array([0, 1, 1]), dependence, 1, n_states=2, bits=bits)
    return query_statement(answer.event, dependence=given, domain={"states": 2, "windows": [1, 3], "box": None}, **more)


WRITTEN: dict[str, Callable[[], Any]] = {
    "query-independent": lambda: answered("independent", GIVEN),
    "query-group": lambda: answered(("group", 2), {"given": "group", "meaning": "two"}, unit="rows", by_person=True),
    "query-replayable": lambda: answered("independent", {}, secure=False),
    "query-same-model": lambda: answered("independent", GIVEN, model_people="same", not_protected=["The box."]),
    "query-unknown-model": lambda: answered("independent", GIVEN, model_people="unknown"),
    "query-other-model": lambda: answered("independent", GIVEN, model_people="others"),
}


def test_the_bytes_of_a_statement_are_what_they_were(tmp_path: Path) -> None:
    changed = [
        name for name, kind in WRITTEN.items() if text_of(kind(), tmp_path) != (FOLDER / f"{name}.json").read_text()
    ]
    assert changed == []


def test_what_is_promised_rests_on_the_noise_and_on_the_people_of_the_model() -> None:
    """False outweighs unknown, and neither has an epsilon that a reader could take for a promise."""
    found = {
        (secure, people): answered("independent", GIVEN, secure, model_people=people)
        for secure in (True, False)
        for people in (None, "others", "unknown", "same")
    }
    for (secure, people), statement in found.items():
        due = False if not secure or people == "same" else "unknown" if people == "unknown" else True
        assert statement.private == statement.promise.holds == due, (secure, people)
        assert (statement.epsilon is None) is (due is False), (secure, people)
        assert bool(statement.not_private_because) is (due is False), (secure, people)
        assert (statement.per_record.epsilon is None) is not secure, (secure, people)
