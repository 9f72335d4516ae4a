"""The pairs that a release promises something about are those of the policy's edges, however the policy lists them.

Claims: complete, categorical and united policies have the verdicts of their listed edges, right and wrong plans alike.
"""

from __future__ import annotations

import numpy as np

import dphmm
from audit import planted
from audit.small import everywhere, session
from dphmm.audit import verify


def test_cliques_are_what_their_edges_are():
    """Complete, categorical and united policies are judged without listing their pairs; the verdict is the same."""
    rng = np.random.default_rng(4)
    space = dphmm.StateSpace(rng.integers(0, 9, (12, 2)))
    labels = rng.integers(0, 3, 12)
    kinds = [dphmm.policy.complete(12), dphmm.policy.categorical(labels.tolist())]
    kinds.append(kinds[1].union(dphmm.policy.from_edges([(0, 5), (3, 9)], 12)))
    for policy in kinds:
        plan = session(model=everywhere(12), policy=policy, space=space, mechanism="discrete-knorm").plan
        listed = dphmm.policy.from_edges(policy.edges(), 12)
        one, other = verify(plan, policy, space), verify(plan, listed, space)
        assert one.findings == other.findings == () and one.loss == other.loss
        smaller = planted.shrunk_facet(plan, policy, space)
        assert verify(smaller, policy, space).loss == verify(smaller, listed, space).loss > 1
