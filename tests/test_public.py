"""What `import dphmm` gives and costs: the contents page, its names, and nothing heavy loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dphmm

NAMESPACES = {
    "policy": "complete categorical radius knn transition from_edges from_networkx union",
    "mechanisms": "Laplace KNorm PlanarIsotropic DiscreteKNorm DiscreteLaplace Staircase",
}


def test_every_listed_name_loads():
    nothing = object()
    assert [name for name in dphmm.__all__ if getattr(dphmm, name, nothing) is nothing] == []
    assert [name for name in dphmm.__all__ if getattr(dphmm, name) is not getattr(dphmm, name)] == []


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
print([name for name in dphmm.accounting.__all__ if isinstance(getattr(dphmm.accounting, name), types.ModuleType)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        dphmm.nothing_of_the_kind  # noqa: B018


@pytest.mark.parametrize("part", ["dphmm", "dphmm.accounting", "dphmm.audit", "dphmm.dependent"])
def test_importing_is_light(part):
    heavy = {"numba", "pandas", "pyarrow", "matplotlib", "h3", "networkx", "scipy.spatial", "cryptography", "polars"}
    code = f"import sys, {part}; print(','.join(m for m in sys.modules))"
    heavy |= {"msgspec"} if part == "dphmm" else set()
    heavy -= {"scipy.spatial"} if part != "dphmm" else set()
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert heavy.isdisjoint(loaded.strip().split(","))
