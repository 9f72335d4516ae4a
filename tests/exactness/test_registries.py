"""No kind of policy and no mechanism is left out of the proof by enumeration.

Claim: instances are drawn of every kind of policy that the package has registered, each with its edges by definition,
and every mechanism that a release may draw from is judged here, or by an exact test that is named. It fails, and says
what to add, when a kind or a mechanism is registered.
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from dphmm.mechanisms import registry
from dphmm.mechanisms.knorm import DiscreteKNorm
from dphmm.policy import graph
from dphmm.policy._cliques import Complete
from exactness.features import EXPECTED, JUDGED_ELSEWHERE
from exactness.instances import KINDS, MECHANISMS, UNION, Instance, PolicySpec
from exactness.law import KNOWN
from exactness.play import Play, library_policy
from exactness.required_pairs import policy_edges
from registered import left_out, policy_kinds, release_mechanisms

ROOT = Path(__file__).parents[2]
_POLICY = (
    "how it is drawn (exactness/instances.py), its edges by definition (exactness/required_pairs.py) and the library's "
    "object (exactness/play.py)"
)
_MECHANISM = (
    "its law (exactness/law.py) and its name to instances.MECHANISMS, or the exact test that judges it to "
    "features.JUDGED_ELSEWHERE"
)


def policies_left_out():
    return left_out(policy_kinds(), (*KINDS, UNION), _POLICY)


def mechanisms_left_out():
    return left_out(release_mechanisms(), (*KNOWN, *JUDGED_ELSEWHERE), _MECHANISM)


def test_every_kind_of_policy_is_drawn():
    assert policies_left_out() == []
    assert set(policy_kinds()) <= set(EXPECTED)


def test_every_mechanism_is_judged():
    assert mechanisms_left_out() == []
    assert set(release_mechanisms()) - set(JUDGED_ELSEWHERE) <= set(EXPECTED)
    assert set(MECHANISMS) - {"auto"} <= set(KNOWN)


def test_what_is_judged_elsewhere_is():
    for test in JUDGED_ELSEWHERE.values():
        path, name = test.split("::")
        body = ast.parse((ROOT / path).read_text()).body
        assert any(isinstance(node, ast.FunctionDef) and node.name == name for node in body), test


@pytest.mark.parametrize("kind", [*KINDS, UNION])
def test_a_drawn_kind_is_the_registered_one(kind):
    """With edges by definition that are the library's own."""
    for number in range(1000):
        instance = Instance.numbered(2, number)
        if instance.policy.kind == kind and len(instance.queries) == 1:
            play = Play.of(instance)
            everybody = np.ones(instance.n, dtype=np.bool_)
            assert play.policy.describe()["kind"] == kind and isinstance(play.policy, graph.KINDS[kind])
            edges = policy_edges(instance.policy, instance, play.spaces[instance.queries[0].name])
            assert {tuple(edge) for edge in play.policy.edges(everybody).tolist()} == edges
            if edges:
                return
    pytest.fail(f"no instance in 1000 has a {kind} policy with an edge")


def test_a_new_kind_and_a_new_mechanism_are_told_of(monkeypatch):
    monkeypatch.setitem(graph.KINDS, "rings", Complete)
    monkeypatch.setitem(registry.KINDS, "geometric", DiscreteKNorm)
    assert policies_left_out() == [f"rings is registered and not tried here: add {_POLICY}"]
    assert mechanisms_left_out() == [f"geometric is registered and not tried here: add {_MECHANISM}"]
    # A new table: an entry that is put back would come last, and messages name the kinds in order.
    monkeypatch.setattr(graph, "KINDS", {kind: made for kind, made in graph.KINDS.items() if kind != "complete"})
    assert "complete is tried here and no longer registered" in policies_left_out()


def test_a_kind_without_its_parts_is_no_instance():
    instance = Instance.numbered(1, 0)
    space = Play.of(instance).spaces[instance.queries[0].name]
    with pytest.raises(KeyError):
        policy_edges(PolicySpec("rings"), instance, space)
    with pytest.raises(KeyError):
        library_policy(PolicySpec("rings"), instance, space, None)
