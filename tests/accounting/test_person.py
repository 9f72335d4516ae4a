"""A person is a key: spellings of one name, and names that are refused."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.accounting.person import SPELLINGS, key_by, person_key
from dphmm.errors import InvalidInput

#: (a spelling, its key) by "same". The checker's own copy is held to these, too.
VECTORS = [
    ("ann", "ann"),
    ("Ann", "ann"),
    ("  ann\u00a0", "ann"),
    ("Ann\t Lee", "ann lee"),
    ("ann lee", "ann lee"),
    ("annlee", "annlee"),
    ("A. Lee", "a. lee"),
    ("Zo\u00eb", "zo\u00eb"),
    ("Zoe\u0308", "zo\u00eb"),
    ("zoe", "zoe"),
    ("\uff21\uff4e\uff4e", "ann"),
    ("Stra\u00dfe", "strasse"),
    ("STRASSE", "strasse"),
    ("\ufb00", "ff"),
    ("\u1e9e", "ss"),
    ("a\u200bnn", "ann"),
    ("a\u00adnn", "ann"),
    ("\u03a3\u03c2", "\u03c3\u03c3"),
    ("\u0130", "i\u0307"),
    ("\u1fb3\u0308", "\u03b1\u03ca"),
    ("7", "7"),
    ("7.0", "7"),
    ("7.00", "7"),
    ("07", "07"),
    ("7.5", "7.5"),
    ("-7.0", "-7"),
]
_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cn")), min_size=1, max_size=12)


@pytest.mark.parametrize(("name", "key"), VECTORS)
def test_spellings_have_their_key(name: str, key: str) -> None:
    assert person_key(name) == key
    assert person_key(name, "exact") == name


def test_a_key_is_its_own_key() -> None:
    """Folding goes on until nothing changes: of every character, after a letter, and after one that folds into two."""
    wrong = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)) in ("Cn", "Cs"):
            continue
        for name in (f"a{chr(code)}", f"a\u0345{chr(code)}", f"\u1fb3{chr(code)}"):
            key = person_key.__wrapped__(name)
            if person_key.__wrapped__(key) != key:
                wrong.append(hex(code))
    assert wrong == []


@given(_TEXT, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]), st.integers(0, 3), st.integers(0, 3))
def test_forms_capitals_and_blanks_make_no_difference(name: str, form: str, before: int, after: int) -> None:
    try:
        key = person_key(name)
    except InvalidInput:
        return
    assert person_key(" " * before + unicodedata.normalize(form, name) + " " * after) == key  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["\u0378", "a\u0378", "\U000e0fff"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_name_without_a_key_is_refused(name: str, spelling: str) -> None:
    with pytest.raises(InvalidInput, match="user"):
        key_by(spelling)(name)


def test_another_rule_is_refused() -> None:
    with pytest.raises(InvalidInput, match="spelling: got alike; expected same or exact"):
        key_by("alike")
