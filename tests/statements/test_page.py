"""docs/statements.md is complete and true: every number of every paper is judged, and what a row names exists.

Fails for a number of a paper without a row, a row out of order, a verdict of another kind, one without what shows it,
an erratum that the page of errata does not have, and a name of code, test or table that is not there. The lists of
numbers are read off the papers' texts; the papers themselves are not part of the project.
"""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

from experiments import NAMES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "statements.md"
ERRATA = ROOT / "docs" / "errata.md"


def numbered(kind, *numbers):
    return [f"{kind} {number}" for number in numbers]


#: Paper by its heading: everything that has a number in its text, and the claims that the page must not leave out.
NUMBERED = {
    "The DPHMM paper": [
        *numbered("Figure", *range(1, 16)),
        "Table 1",
        *numbered("Definition", "3.1", "3.2", "3.3", "3.4", "4.1", "4.2", "4.3", "4.4", "5.1", "5.2", "5.3", "5.4"),
        *numbered("Definition", "7.1", "7.2", "11.1", "11.2"),
        *numbered("Equation", *range(1, 7)),
        *numbered("Example", "3.1", "3.2", "4.1", "5.1", "5.2", "5.3", "6.1", "11.1", "11.2"),
        *numbered("Theorem", "4.1", "4.2", "5.1", "5.2", "5.3", "6.1", "6.2", "6.3", "7.1", "7.2"),
        *numbered("Theorem", "11.1", "11.2", "11.3", "11.4"),
        *("Corollary 5.1", "Lemma 11.1"),
        *numbered("Algorithm", *range(1, 5)),
        *("Case I,", "Case II,", "last bullet"),
        *numbered("Section", "2.1", "3.4", "4.1", "4.2", "5.1", "7", "8", "11.1", "11.6"),
    ],
    "The location-sets paper": [
        *numbered("Equation", *range(1, 5)),
        *numbered("Definition", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "3.4"),
        *("Theorem 3.1", "drift", "surrogates leak nothing", "precision and recall"),
        *("Standard adversary", "Weak adversary", "Strong adversary"),
    ],
    "The HMM estimation paper": [
        *numbered("Definition", 1, 2),
        *("Theorem 1", "Table 1", "sequential composition", "parallel composition"),
        *numbered("Equation", *range(1, 6)),
        *numbered("Figure", *range(1, 11)),
        *("experiment 1", "experiment 2", "threshold", "Conclusion"),
    ],
    "The dependence paper": [
        "Definition 6",
        "Equation 27",
        *numbered("Figure", "7", "8(a)", "8(b)", "9(a)", "9(b)", "9(c)", "10(a)", "10(b)"),
        *("over-estimated", "relaxing", "local sensitivity", "smooth sensitivity", "temporal correlations"),
        *numbered("Section", "VI-D3", "VII-D", "VIII", "IX"),
    ],
}
VERDICT = re.compile(r"(holds|holds corrected \([LD\d, ]+\)|does not hold|not evaluated)(: .+)?")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_CODE = re.compile(r"`(dphmm(?:\.\w+)+)`")
_CELL = re.compile(rf"`({'|'.join(NAMES)})/([\w-]+)`")


def tables(page):
    """{heading of a paper: its rows of four columns}."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)[1:]
    found = {}
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        lines = [line for line in text.partition("\n### ")[0].splitlines() if line.startswith("| ")]
        found[heading] = [[part.strip() for part in line.strip("|").split(" | ")] for line in lines[1:]]
    return found


def has(statements, number):
    """Whether some statement has this number, alone or among several ("Figures 5, 6 and 7")."""
    kind, _, one = number.rpartition(" ")
    if kind not in ("Figure", "Equation", "Definition", "Theorem", "Example", "Algorithm", "Section", "Table"):
        return any(number in statement for statement in statements)
    plural = re.compile(rf"{kind}s? (?:[\w.()-]+(?:, | and ))*?{re.escape(one)}(?![\w(]|\.\d)")
    return any(plural.search(statement) for statement in statements)


@cache
def functions_of(path):
    names = {node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)}
    return frozenset(names)


def is_there(name):
    """Whether a dotted name is a module or an attribute of one."""
    parts = name.split(".")
    there = importlib.import_module(parts[0])
    for n, part in enumerate(parts[1:], 2):
        if hasattr(there, part):
            there = getattr(there, part)
        elif importlib.util.find_spec(".".join(parts[:n])) is not None:
            there = importlib.import_module(".".join(parts[:n]))
        else:
            return False
    return True


def table_is_there(experiment, table):
    """Whether the experiment's own folder makes a table of that name."""
    folder = ROOT / "experiments" / experiment.replace("-", "_")
    path = folder / "tables.py"
    return f'"{table}":' in (path if path.is_file() else folder / "__init__.py").read_text()


def missing_names(page):
    found = [
        f"no test {path}::{name}"
        for path, name in _TEST.findall(page)
        if not ((ROOT / path).is_file() and name in functions_of(path))
    ]
    found += [f"no name {name}" for name in _CODE.findall(page) if not is_there(name)]
    return found + [
        f"no table {name}/{table}" for name, table in _CELL.findall(page) if not table_is_there(name, table)
    ]


def disagreements(page):
    """What is wrong with a page, in words."""
    known = set(re.findall(r"^### ([LD]?\d+)\. ", ERRATA.read_text(), re.MULTILINE))
    found = missing_names(page)
    papers = tables(page)
    for paper, numbers in NUMBERED.items():
        statements = [row[0] for row in papers.get(paper, [])]
        found += [f"{paper}: {number} is not judged" for number in numbers if not has(statements, number)]
        for row in papers.get(paper, []):
            if len(row) != 4:
                found.append(f"{row[0]}: {len(row)} columns")
                continue
            statement, _, verdict, shown = row
            kind = VERDICT.fullmatch(verdict)
            if kind is None:
                found.append(f"{statement}: no verdict of the four")
                continue
            if kind[1] in ("does not hold", "not evaluated") and not kind[2]:
                found.append(f"{statement}: no reason")
            if kind[1] == "does not hold" and not re.search(r"\d|tests/", f"{kind[2]}{shown}"):
                found.append(f"{statement}: no number")
            if kind[1] != "not evaluated" and not (_TEST.search(shown) or _CELL.search(shown)):
                found.append(f"{statement}: nothing shows it")
            cited = re.findall(r"[LD]?\d+", kind[1]) + re.findall(r"errat(?:um|a) ([LD]?\d+)", verdict)
            found += [f"{statement}: no erratum {number}" for number in cited if number not in known]
    return found


def test_the_page_is_complete_and_what_it_names_is_there():
    assert disagreements(PAGE.read_text()) == []


def test_the_papers_are_in_order():
    assert [paper for paper in tables(PAGE.read_text()) if paper in NUMBERED] == list(NUMBERED)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("| Theorem 4.2, ", "| Theorem, ", "Theorem 4.2 is not judged"),
        ("Figures 8, 9 and 10", "Figures 8 and 10", "Figure 9 is not judged"),
        ("| Figure 8(b), ", "| Figure 8, ", "Figure 8(b) is not judged"),
        ("`dphmm.accounting.theorem_7_2`", "`dphmm.accounting.theorem_9`", "no name dphmm.accounting.theorem_9"),
        ("::test_algorithm_2_replay`", "::test_algorithm_5`", "no test"),
        ("`dphmm/runtime`", "`dphmm/times`", "no table dphmm/times"),
        ("holds corrected (L5)", "holds corrected (L9)", "no erratum L9"),
        ("holds corrected (L5)", "holds mostly", "no verdict of the four"),
        ("| holds | `dphmm/epsilon` |", "| holds | – |", "nothing shows it"),
        ("not evaluated: it claims nothing", "not evaluated", "no reason"),
    ],
)
def test_the_check_can_fail(old, new, said):
    page = PAGE.read_text()
    assert old in page
    assert any(said in words for words in disagreements(page.replace(old, new)))
