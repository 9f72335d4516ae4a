"""docs/errata.md and the tests of this folder say the same: every number has a test of its own, every test its number.

Fails for an erratum without a test named after it, for a test that the page does not name under its own number, and for
a test of no erratum.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PAGE = ROOT / "docs" / "errata.md"
_NAMED = re.compile(r"`(tests/errata/test_\w+\.py)::(test_\w+)`")
_OWN = re.compile(r"test_erratum_([LD]?\d+)_")


def entries(text):
    """{"1": the entry of number 1, ..., "L1": ...}."""
    parts = re.split(r"^### ([LD]?\d+)\. ", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def number_of(test):
    found = _OWN.match(test)
    return found[1].lstrip("0") if found else None


def errata_tests():
    """{(file, test): the number in its name}."""
    found = {}
    for path in sorted(HERE.glob("test_*.py")):
        names = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
        own = [name for name in names if name.startswith("test_") and path != Path(__file__)]
        found |= {(str(path.relative_to(ROOT)), name): number_of(name) for name in own}
    return found


def disagreements(page, tests):
    """What is wrong between a page and {(file, test): number}, in words."""
    found = []
    for number, entry in entries(page).items():
        named = set(_NAMED.findall(entry))
        own = {test for test, its in tests.items() if its == number}
        if not own:
            found.append(f"{number} has no test")
        found += [f"{number} does not name {test[1]}" for test in sorted(own - named)]
        found += [f"{number} names {test[1]}, which is not its own" for test in sorted(named - own)]
    known = entries(page)
    found += [f"{test[1]} is of no erratum" for test, its in sorted(tests.items()) if its not in known]
    return found


def test_the_page_and_its_tests_agree():
    assert disagreements(PAGE.read_text(), errata_tests()) == []


def test_the_page_has_all_numbers():
    numbers = [str(n) for n in range(1, 26)] + [f"L{n}" for n in range(1, 6)] + [f"D{n}" for n in range(1, 10)]
    assert list(entries(PAGE.read_text())) == numbers


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda page, tests: (page + "\n### D99. New (wrong)\nTest: none\n", tests), "D99 has no test"),
        (lambda page, tests: (page.replace("test_erratum_07_", "test_other_"), tests), "7 does not name"),
        (lambda page, tests: (page, tests | {("tests/errata/test_x.py", "test_x"): None}), "test_x is of no erratum"),
        (lambda page, tests: (page, {t: n for t, n in tests.items() if n != "12"}), "12 has no test"),
    ],
)
def test_the_check_can_fail(change, told):
    assert any(told in words for words in disagreements(*change(PAGE.read_text(), errata_tests())))
