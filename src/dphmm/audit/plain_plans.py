"""The plans of a release in plain form: what a program without dphmm needs to compute their losses again.

Each plan is written with the parts that its hash is made of, so whoever reads them sees that they are those of the
plan that the rows name: its public inputs, the facets of its bodies as whole numbers, and what was chosen.
`verify_release.py`, at the root of the project, reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dphmm.sensitivity.hull import SensitivityHull
from dphmm.session.plan import Plan
from dphmm.session.planner import Planner
from dphmm.types import IntArray

FORMAT = 1
KIND = "plans of a dphmm release"


def plain_plans(plans: Iterable[tuple[Plan, Planner]]) -> dict[str, Any]:
    """Plans, each with the planner that made it, as a document for JSON. Nothing in it is private.

    Source: docs/files.md.
    """
    return {"format": FORMAT, "kind": KIND, "plans": [_plain(plan, planner) for plan, planner in plans]}


def _plain(plan: Plan, planner: Planner) -> dict[str, Any]:
    shared, support, plan_set, surrogate = planner.hashed_parts(plan)
    own = np.arange(len(surrogate))
    return {
        "hash": plan.hash,
        "inputs": shared.decode(),
        "states": len(surrogate),
        "support": support.hex(),
        "plan_set": plan_set.hex(),
        "surrogate": None if np.array_equal(surrogate, own) else surrogate.tolist(),
        "given": plan.joint_edges.tolist(),
        "bodies": [_body(hull) for hull in plan.hulls],
        "description": plan.record.description,
    }


def _body(hull: SensitivityHull) -> dict[str, Any]:
    parts: dict[str, IntArray] = {
        "basis": hull.basis,
        "coordinates": hull.coordinates,
        "normals": hull.normals,
        "offsets": hull.offsets,
    }
    # Numbers beyond 64 bits are hashed as text.
    long = [name for name, part in parts.items() if part.dtype != np.int64]
    return {
        "pitch": hull.frame.pitch.tolist(),
        **{name: part.tolist() for name, part in parts.items()},
        "long": long,
    }
