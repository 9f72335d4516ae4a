"""Random names of cases: drawn once, kept for ever, and from no row.

It would fail for a known case with another name, for names that follow from cases, for two cases of one name, and for a
table that others may read.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput, LedgerBusy
from dphmm.storage.case_names import names_path, random_names
from dphmm.storage.ledger.connection import held

CASES = ["case-10011", "case-10017", "Case-10017 ", "9"]


class Words:
    """Words that are given."""

    def __init__(self, *words):
        self.words = list(words)

    def uint64(self, n):
        return np.array([self.words.pop(0) for _ in range(n)], dtype=np.uint64)


def test_known_cases_keep_their_names_and_spellings_share_one(tmp_path):
    path = tmp_path / "names.csv"
    first = random_names(CASES, path, bits=dphmm.ReplayBits(1))
    assert len(set(first)) == 3 and first[1] == first[2] and path.stat().st_mode & 0o077 == 0
    assert random_names(["x", *reversed(CASES)], path, bits=dphmm.ReplayBits(1))[1:] == first[::-1]
    assert path.read_text().splitlines()[:2] == ["case,name", f"case-10011,{first[0]}"]
    exact = random_names(CASES, tmp_path / "exact.csv", spelling="exact", bits=dphmm.ReplayBits(1))
    assert len(set(exact)) == 4


def test_names_are_the_words_and_nothing_of_the_cases(tmp_path):
    """Sixteen letters, four bits each: other cases under the same words have the same names."""
    word = sum(place << 4 * place for place in range(12))
    assert random_names(["a"], tmp_path / "a.csv", bits=Words(word)) == ["bcdfghjklmnp"]
    assert random_names(["b"], tmp_path / "b.csv", bits=Words(word)) == ["bcdfghjklmnp"]


def test_a_name_that_is_taken_is_drawn_anew(tmp_path):
    assert len(set(random_names(["a", "b"], tmp_path / "a.csv", bits=Words(5, 5, 5 + 2**60, 6)))) == 2


def test_letters_are_alike_and_independent(tmp_path):
    """Of 3,000 names each letter is at each place 187.5 times; 99.9 % of the largest of 192 deviations are below 60."""
    names = random_names(list(map(str, range(3000))), tmp_path / "a.csv", bits=dphmm.ReplayBits(7))
    letters = np.array([list(name) for name in names])
    counts = np.array([[(column == letter).sum() for letter in "bcdfghjklmnpqrst"] for column in letters.T])
    assert np.abs(counts - 3000 / 16).max() < 60


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "case,name\n1\n", "case,name\n1,x\n2,x\n"])
def test_another_file_is_refused_and_stays(tmp_path, text):
    path = tmp_path / "names.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"names_file: got names.csv; expected the table of case and name"):
        random_names(["a"], path, bits=dphmm.ReplayBits(1))
    assert path.read_text() == text


def test_two_commands_do_not_name_at_once(tmp_path):
    with held(tmp_path / "names.csv"), pytest.raises(LedgerBusy, match=r"names names.csv: another dphmm command"):
        random_names(["a"], tmp_path / "names.csv", bits=dphmm.ReplayBits(1))


def test_names_lie_beside_the_ledger(tmp_path):
    assert names_path(tmp_path / "ledger.db") == tmp_path / "ledger.names.csv"
