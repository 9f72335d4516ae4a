"""What docstrings, comments and messages cite is in this checkout, and so are the tests that documents name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
THEORY = (ROOT / "docs" / "theory.md").read_text()
ERRATA = (ROOT / "docs" / "errata.md").read_text()

#: "errata 12, 15 and 21", "erratum 3".
_ERRATA = re.compile(r"errat(?:a|um)((?:,? (?:and )?\d+)+)", re.IGNORECASE)
#: "docs/theory.md 6", "THEORY 3, 6", "theory F2 and F3", "theory (b)"; the word alone cites nothing.
_PLACE = r"(?:F\d|\([a-z]\)|\d+)"
_THEORY = re.compile(rf"(?:docs/theory\.md|theory)[,:]? ({_PLACE}(?:(?:,| and) {_PLACE})*)", re.IGNORECASE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def text_of(path):
    """The file on one line: a citation may be broken between lines of a docstring or of a comment."""
    return re.sub(r"\s*\n[\s#:]*", " ", path.read_text())


def errata_cited(text):
    return {int(n) for cited in _ERRATA.findall(text) for n in re.findall(r"\d+", cited)}


def theory_cited(text):
    return {place for cited in _THEORY.findall(text) for place in re.findall(_PLACE, cited)}


def untraceable(text):
    """Names of documents that are not here, and a "theory" that says not where in it."""
    return re.findall(r"RELIABILITY|\bDESIGN\b|\b(?:finding|fault) \d|\btheory\b", _THEORY.sub("", text), re.IGNORECASE)


def headings(text):
    """F1, (b), 6: what headings begin with."""
    return {h.rstrip(".") for h in re.findall(rf"^#+ ({_PLACE}\.?) ", text, re.MULTILINE)}


def test_citations_are_recognised():
    assert errata_cited("with errata 6, 7 and 13, erratum 3; Errata 16 (see)") == {3, 6, 7, 13, 16}
    text = "docs/theory.md 6; THEORY 3, 5 theory F2 and F3, (theory (b)), a theory of 7"
    assert theory_cited(text) == {"6", "3", "5", "F2", "F3", "(b)"}
    assert untraceable(text) == ["theory"]
    assert untraceable("(theory: underflow) RELIABILITY R2, finding 3; ledger.faults, theorem_5_3") == [
        "theory",
        "RELIABILITY",
        "finding 3",
    ]
    assert headings("# Title\n## 6 Drift\n### (a) Floats\n### 12. Flat\n") == {"6", "(a)", "12"}


def test_the_numbering_is_complete():
    assert headings(ERRATA) == {str(n) for n in range(1, 26)}
    sections = {"1", "2", "3", "4", "5", "6", "7", "10"}
    assert headings(THEORY) == sections | {f"F{n}" for n in range(1, 6)} | {f"({c})" for c in "abcdefgh"}


def test_something_is_cited():
    everything = [text_of(path) for path in SOURCES]
    assert set().union(*map(errata_cited, everything)) >= {4, 7, 19, 21}
    assert set().union(*map(theory_cited, everything)) >= {"5", "6", "7", "F2", "F3", "(a)", "(b)", "(h)"}


def not_there(text):
    """What a text cites and this checkout does not have."""
    found = [f"erratum {n}" for n in sorted(errata_cited(text)) if str(n) not in headings(ERRATA)]
    found += [f"theory {place}" for place in sorted(theory_cited(text) - headings(THEORY))]
    found += [page for page in re.findall(r"\bdocs/[\w/.-]+\.md", text) if not (ROOT / page).exists()]
    adrs = re.findall(r"\bADR (\d+)", text)
    return found + [f"ADR {number}" for number in adrs if not list((ROOT / "docs" / "adr").glob(f"{number}-*.md"))]


def wrong_in_sources(wrong_with):
    """{source: what is wrong with it}, of those with anything wrong."""
    assert len(SOURCES) > 100
    told = {str(path.relative_to(ROOT / "src")): wrong_with(text_of(path)) for path in SOURCES}
    return {path: wrong for path, wrong in told.items() if wrong}


def test_what_the_code_cites_is_there():
    assert wrong_in_sources(not_there) == {}


def test_a_citation_of_nothing_is_found():
    text = "erratum 99, theory F9, docs/nothing.md and ADR 9999; erratum 7, theory F2, docs/theory.md 5"
    assert not_there(text) == ["erratum 99", "theory F9", "docs/nothing.md", "ADR 9999"]


def test_nothing_is_cited_that_only_its_author_has():
    own = "Cohen, Computational Algebraic Number Theory"
    assert wrong_in_sources(lambda text: untraceable(text.replace(own, ""))) == {}


def test_theory_and_errata_cite_each_other_rightly():
    for text in map(text_of, (ROOT / "docs" / "theory.md", ROOT / "docs" / "errata.md")):
        assert {str(n) for n in errata_cited(text)} <= headings(ERRATA)
    for place in re.findall(rf"(?:[Ff]act|[Ss]ection) ({_PLACE})[ ,;.:)]", THEORY):
        assert place in headings(THEORY), place


@pytest.mark.parametrize("page", ["theory.md", "errata.md"])
def test_every_test_named_exists(page):
    named = _TEST.findall((ROOT / "docs" / page).read_text())
    assert len(named) > 15
    for file, name in named:
        scope = ast.parse((ROOT / file).read_text()).body
        for part in name.split("::"):
            found = [n for n in scope if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == part]
            assert found, f"{file}::{name}"
            scope = found[0].body


def test_every_erratum_names_a_test_or_says_that_there_is_none():
    for entry in re.split(r"^### ", ERRATA, flags=re.MULTILINE)[1:]:
        told = entry.partition("\nTest: ")[2]
        assert _TEST.search(told) or told.startswith("no test yet"), entry.splitlines()[0]
