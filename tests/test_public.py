"""What `import dphmm` gives and costs: the contents page, its names, and nothing heavy loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dphmm

CONTRACT = (
    "StateSpace",
    "Grid",
    "H3",
    "MarkovModel",
    "policy",
    "sensitivity_hull",
    "l1_sensitivity",
    "degree_of_protection",
    "exposed_states",
    "protectable_graph",
    "mechanisms",
    "ReleaseSession",
    "DeltaSet",
    "ReplayBits",
    "release_many",
    "decode",
    "save_model",
    "load_model",
    "save_policy",
    "load_policy",
    "open_ledger",
    "accounting",
)

NAMESPACES = {
    "policy": "complete categorical radius transition from_edges from_networkx union",
    "mechanisms": "Laplace KNorm PlanarIsotropic DiscreteKNorm Staircase",
}


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contract_is_there(name):
    assert name in dir(dphmm)
    assert getattr(dphmm, name) is not None


@pytest.mark.parametrize("name", dphmm.__all__)
def test_every_listed_name_loads(name):
    assert getattr(dphmm, name) is getattr(dphmm, name)


@pytest.mark.parametrize(("namespace", "names"), NAMESPACES.items())
def test_namespaces_stay_namespaces(namespace, names):
    """A submodule of the same name would replace a function at its second use."""
    for _ in range(2):
        for name in names.split():
            assert callable(getattr(getattr(dphmm, namespace), name))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        dphmm.nothing_of_the_kind  # noqa: B018


@pytest.mark.parametrize("part", ["dphmm", "dphmm.accounting", "dphmm.audit", "dphmm.dependent"])
def test_importing_is_light(part):
    heavy = {"numba", "pandas", "pyarrow", "matplotlib", "h3", "networkx", "scipy.spatial", "cryptography", "polars"}
    code = f"import sys, {part}; print(','.join(m for m in sys.modules))"
    heavy -= {"scipy.spatial"} if part != "dphmm" else set()
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert heavy.isdisjoint(loaded.strip().split(","))
