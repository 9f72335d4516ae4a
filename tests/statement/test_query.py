"""The statement beside the answer of a query: its bytes, and when it promises nothing or says that nobody knows.

It would fail for another order of members or another word, and for a statement that promises what replayable noise, an
unproved mechanism or a model of the same people takes away.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dphmm.statement.origin import DOUBTS
from statement.test_release import FOLDER, text_of
from statement.told import answered, queries

pytestmark = pytest.mark.replayed_words


def test_the_bytes_of_a_statement_are_what_they_were(tmp_path: Path) -> None:
    changed = [
        name
        for name, statement in queries().items()
        if text_of(statement, tmp_path) != (FOLDER / f"query-{name}.json").read_text()
    ]
    assert changed == []


def test_what_is_promised_rests_on_the_noise_and_on_the_people_of_the_model() -> None:
    """False outweighs unknown, and neither has an epsilon that a reader could take for a promise."""
    found = {
        (secure, people): answered(secure=secure, model_people=people)
        for secure in (True, False)
        for people in (None, "others", "unknown", "same")
    }
    for (secure, people), statement in found.items():
        due = False if not secure or people == "same" else "unknown" if people == "unknown" else True
        assert statement.private == due, (secure, people)
        assert (statement.epsilon is None) is (due is False), (secure, people)
        against = set(statement.reasons) - DOUBTS.keys()
        assert bool(against) is (due is False) and bool(statement.reasons) is (due is not True), (secure, people)
        assert not against or against == set(statement.reasons), (secure, people)
        assert (statement.per_record is None) is not secure, (secure, people)
