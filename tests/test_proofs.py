"""docs/proofs and the code agree: what carries the guarantee names its page, pages name code and tests that exist.

What carries the guarantee is found by walking the packages it lives in, the registry of mechanisms, the methods of
protection, the kinds of policies, the theorems and the samplers: a new module or mechanism without a page fails here,
as does a page that nobody names, that lacks a part, or that speaks of what is not there.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import dphmm
import dphmm.accounting
from dphmm.accounting import event
from dphmm.mechanisms import KNorm, Laplace, LatticeMechanism, PlanarIsotropic, registry
from dphmm.policy.graph import KINDS
from dphmm.samplers import LatticeSampler
from dphmm.sensitivity.protection import METHODS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dphmm"
PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs" / "proofs").glob("*.md"))}
INDEX = PAGES.pop("README")

SECTIONS = ["Precondition", "Statement", "Proof", "Where in the code", "Which tests could falsify it"]
#: Where the guarantee lives: every module of these packages, and single modules of others.
PACKAGES = (
    "mechanisms",
    "samplers",
    "sensitivity",
    "policy",
    "session",
    "accounting",
    "storage/ledger",
    "markov/private",
    "dependent",
)
MODULES = ("markov/filtering", "_kernels/lattice", "_kernels/filter", "_kernels/policy")
MODULES += ("states/lattice",)
MODULES += ("_kernels/points", "release/batch")
MODULES += ("_kernels/hmm",)
MODULES += ("cli/fit", "cli/fit_data", "states/maps", "statement/release")
MODULES += (
    "storage/trajectories",
    "storage/cells",
    "storage/tables",
    "storage/columns",
    "storage/importers/imported",
    "storage/importers/events",
    "statement/events",
)
MODULES += ("audit/black_box", "audit/verify", "audit/check", "audit/release_tables", "reconstruction/linear")
MODULES += ("storage/release_table", "storage/commit_log", "storage/csv_files")
MODULES += ("learning/learn", "learning/tilt")
#: Modules of those packages on which no statement of a page rests, and why.
CARRY_NOTHING = {
    "session/own_places": "a reader's model of one person, learned from published answers: no guarantee rests on it",
    "session/releases": "columns of such records",
}
#: Pages of what is not there yet, and what would show that it is.
NOT_BUILT: dict[str, Callable[[], list[str]]] = {}
_PAGE = re.compile(r"docs/proofs/([\w-]+)\.md")
_CODE = re.compile(r"`(src/[\w/.]+\.py)::([\w.]+)`")
_TEST = re.compile(r"`(tests/[\w/.]+\.py)::([\w:]+)`")


@cache
def carriers():
    """{module: its docstring} of everything that has to name a page."""
    found = {}
    for package in PACKAGES:
        for path in sorted((SOURCE / package).glob("*.py")):
            if path.stem != "__init__":
                found[f"{package}/{path.stem}"] = path
    found |= {module: SOURCE / f"{module}.py" for module in MODULES}
    return {name: ast.get_docstring(ast.parse(path.read_text())) or "" for name, path in found.items()}


@cache
def _statements(file):
    path = ROOT / file
    return ast.parse(path.read_text()).body if path.exists() else []


@cache
def defined(file, name):
    """Whether a Python file defines name, or a::b, or a.b."""
    scope = _statements(file)
    for part in re.split(r"::|\.", name):
        scope = next((_inside(node) for node in scope if part in _names(node)), None)
        if scope is None:
            return False
    return True


def _names(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _inside(node):
    return getattr(node, "body", []) or []


def wrong_with(page):
    """What is wrong with the text of a page, in words."""
    found = []
    parts = dict(zip(*[iter(re.split(r"^## (.+)$", page, flags=re.MULTILINE)[1:])] * 2, strict=True))
    if list(parts) != SECTIONS:
        found.append(f"sections {list(parts)}")
    found += [f"empty: {name}" for name, text in parts.items() if not text.strip()]
    found += [f"no code {file}::{name}" for file, name in _CODE.findall(page) if not defined(file, name)]
    found += [f"no test {file}::{name}" for file, name in _TEST.findall(page) if not defined(file, name)]
    if not _TEST.search(parts.get(SECTIONS[4], "")):
        found.append("names no test")
    return found


def wrong_with_carrier(module, docstring):
    """What is wrong with the pages that a module names, in words."""
    named = _PAGE.findall(docstring)
    if module in CARRY_NOTHING:
        return [f"{module} carries something after all: take it off the list"] if named else []
    if not named:
        return [f'the docstring of {module} must end with "Proof: docs/proofs/<page>.md."']
    return [f"{module} names {page}.md, which is not there" for page in sorted(set(named) - set(PAGES))]


def test_what_carries_the_guarantee_names_its_page():
    assert len(carriers()) > 80
    assert [told for carrier in carriers().items() for told in wrong_with_carrier(*carrier)] == []


def test_a_module_without_a_page_is_found():
    idle = next(iter(CARRY_NOTHING))
    assert wrong_with_carrier("session/new", "No page.") != []
    assert wrong_with_carrier("session/new", "Proof: docs/proofs/nowhere.md.") != []
    assert wrong_with_carrier(idle, "Proof: docs/proofs/hull.md.") != []
    assert wrong_with_carrier("session/new", "Proof: docs/proofs/hull.md.") == wrong_with_carrier(idle, "") == []


def test_the_list_of_exceptions_is_of_modules_that_exist():
    assert set(CARRY_NOTHING) <= set(carriers())


def test_a_page_has_all_its_parts_and_names_what_exists():
    assert {page: wrong for page, text in PAGES.items() if (wrong := wrong_with(text))} == {}


def test_every_page_is_named_by_code_or_says_that_there_is_none():
    named = set(_PAGE.findall(" ".join(carriers().values())))
    unbuilt = {page for page, text in PAGES.items() if "\nNot built yet" in text}
    assert unbuilt == set(NOT_BUILT)
    assert set(PAGES) - named == unbuilt, "a page is of code that names it, or says that nothing is built"
    assert {page: built for page in unbuilt if (built := NOT_BUILT[page]())} == {}, "built: the page must say where"


def test_the_index_lists_every_page():
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", INDEX)) == set(PAGES)


def wrong_with_mechanism(mechanism):
    """What is wrong with the page of a mechanism, in words."""
    module = sys.modules[mechanism.__module__]
    told = (inspect.getdoc(mechanism) or "") + (module.__doc__ or "")
    pages = [page for page in _PAGE.findall(told) if PAGES[page].startswith(f"# `{mechanism.__name__}`")]
    if not pages:
        return [f"{mechanism.__name__} names no page of its own"]
    inexact = "*As computed, in floats: nothing" in PAGES[pages[0]]
    exact = issubclass(mechanism, LatticeMechanism)
    return [] if inexact == (not exact) else [f"{pages[0]} is wrong about what is computed in floats"]


def test_every_mechanism_has_a_page_of_its_own():
    every = [*registry.KINDS.values(), KNorm, PlanarIsotropic, Laplace]
    assert [told for mechanism in every for told in wrong_with_mechanism(mechanism)] == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("protection", [f'`"{method}"`' for method in METHODS]),
        ("hull", [f"- `{kind}`" for kind in KINDS if kind in ("complete", "edges", "radius", "union")]),
        ("hull", [f"`{kind}`" for kind in KINDS]),
        ("composition", [name for name in vars(event) if name.startswith("theorem_")]),
        (
            "sampling",
            [name for name, member in vars(LatticeSampler).items() if not name.startswith("_") and callable(member)]
            + [name for name, m in vars(LatticeSampler).items() if isinstance(m, classmethod)]
            + ["LatticeBody", "add_noise"],
        ),
        ("randomness", [name for name in dphmm.samplers.__all__ if name.endswith("Bits") or name == "default_bits"]),
    ],
)
def test_every_choice_is_on_its_page(page, words):
    assert words
    assert [word for word in words if word not in PAGES[page]] == []


def test_the_security_page_leads_to_its_proofs():
    text = (ROOT / "SECURITY.md").read_text()
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert [target for target in links if not (ROOT / target).exists()] == []
    for guarantee, page in (("G1", "ledger"), ("G2", "ledger"), ("G3", "promise"), ("G4", None), ("G5", None)):
        entry = text.partition(f"- **{guarantee}.")[2].partition("\n- **G")[0].partition("\n## ")[0]
        assert entry and (page is None or f"docs/proofs/{page}.md" in entry)


GOOD = "# T\n" + "".join(f"\n## {s}\n\nx `tests/test_proofs.py::wrong_with`\n" for s in SECTIONS)


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (GOOD.replace("## Proof", "## Idea"), "sections"),
        (GOOD.replace("x `tests/test_proofs.py::wrong_with`", "", 1), "empty: Precondition"),
        (GOOD.replace("::wrong_with", "::right_with"), "no test"),
        (GOOD + "`src/dphmm/release/batch.py::Nothing`", "no code"),
        (GOOD.replace("`tests/test_proofs.py::wrong_with`", "x"), "names no test"),
    ],
)
def test_the_check_can_fail(page, told):
    assert wrong_with(GOOD) == []
    assert any(told in words for words in wrong_with(page))


def test_definitions_are_found():
    assert defined("src/dphmm/samplers/body.py", "LatticeSampler.draw")
    assert defined("tests/session/test_session.py", "TestSeveralQueries::test_resume_of_the_second_query")
    assert not defined("src/dphmm/samplers/body.py", "LatticeSampler.withdraw")
    assert not defined("src/dphmm/nothing.py", "x")
