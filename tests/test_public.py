"""What `import dphmm` gives and costs: the contents page, its names, and nothing heavy loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import dphmm

NAMESPACES = {
    "policy": "complete categorical radius knn transition from_edges from_networkx union",
    "mechanisms": "Laplace KNorm PlanarIsotropic DiscreteKNorm DiscreteLaplace Staircase",
}


#: What is looked at for names; and what there reads like one, by file.
FOLDERS = ("src", "tests", "docs", "benchmarks", "examples", "experiments")
OTHERS = ("test_house.py", "test_public.py", "test_release_papers.py")
NOT_NAMES = {
    *(".PolicyGraph", ".accounting.theorem_9", ".cli.stopped", ".dependent.Nothing", ".policy._"),
    *(".help.whole", ".legible", ".typed"),
}


def test_what_is_at_the_top_can_be_remembered():
    assert len(dphmm.__all__) <= 30


def test_no_file_speaks_of_a_public_name_that_there_is_not():
    """In code, documents and seeded bugs a dotted name below dphmm is one: `dphmm.room.name` gives something."""
    root, missing = Path(__file__).parents[1], set()
    dotted = re.compile(r"(?<![\w./:-])dphmm((?:\.[a-zA-Z_]\w*)+)")
    for path in (*root.glob("*.md"), *(path for folder in FOLDERS for path in (root / folder).rglob("*"))):
        if path.suffix in (".py", ".md", ".toml") and path.name not in OTHERS:
            names = set(dotted.findall(path.read_text())) - NOT_NAMES
            missing |= {(name, path.name) for name in names if not _is_there(name[1:])}
    assert sorted(missing) == []


def _is_there(dotted):
    """Whether attributes and modules lead there; what comes after a value that a call gives is not looked at."""
    thing, reached = dphmm, "dphmm"
    for part in dotted.split("."):
        reached = f"{reached}.{part}"
        if isinstance(thing, ModuleType) and not hasattr(thing, part):
            if find_spec(reached) is None:
                return False
            import_module(reached)
        if not isinstance(thing, ModuleType):
            return True
        thing = getattr(thing, part)
    return True


def test_namespaces_stay_namespaces():
    """A submodule of the same name would replace a function at its second use."""
    for _ in range(2):
        for namespace, names in NAMESPACES.items():
            there = getattr(dphmm, namespace)
            assert [name for name in names.split() if not callable(getattr(there, name, None))] == [], namespace


def test_no_module_replaces_a_public_function():
    """All of the package loaded: a module named as a lazy function of its package would stand in its place."""
    code = """
import importlib, pkgutil, types, dphmm
for module in list(pkgutil.walk_packages(dphmm.__path__, "dphmm.")):
    importlib.import_module(module.name)
rooms = [getattr(dphmm, name) for name in dphmm.__all__ if isinstance(getattr(dphmm, name), types.ModuleType)]
print([f"{room.__name__}.{name}" for room in rooms for name in getattr(room, "__all__", ())
       if isinstance(getattr(room, name), types.ModuleType)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("dphmm", "msgspec scipy.spatial"),
        ("dphmm.accounting", ""),
        ("dphmm.audit", ""),
        ("dphmm.dependent", ""),
        ("dphmm.cli.app", "scipy.spatial"),
        ("dphmm.storage.importers", "scipy.spatial"),
    ],
)
def test_importing_is_light(part, more):
    heavy = {
        *["numba", "pandas", "pyarrow", "matplotlib", "h3", "networkx", "cryptography", "polars", "scipy.stats"],
        *more.split(),
    }
    code = f"import sys, {part}; print(','.join(m for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert heavy.isdisjoint(loaded.strip().split(","))
