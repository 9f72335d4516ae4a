"""The plans of a release in plain form, from which a program without dphmm computes their losses again.

Each plan is written with the parts that its hash is made of: its public inputs, the facets of its bodies as whole
numbers, and what was chosen. Whoever reads them makes the hash again (`plain_hash`), and sees that they are those of
the plan that the rows name. `dphmm.audit.verify_release`, a file of its own, does so without the rest of this package.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.mechanisms import AUTO
from dphmm.mechanisms.answer_table import AnswerTable, MadeTable
from dphmm.sensitivity.hull import SensitivityHull, digest_of
from dphmm.session.plan import StepPlan, record_of
from dphmm.session.planner import Planner, inputs_of, narrowest
from dphmm.storage.inputs import checked_input
from dphmm.types import FloatArray, IntArray

FORMAT = 1
KIND = "plans of a dphmm release"
#: Laws that follow from the facets of a body.
_CONSTANT = "constant"
_OF_A_BODY = ("discrete-knorm", "staircase", "discrete-laplace", _CONSTANT)
_HASH = re.compile("[0-9a-f]{64}")
_EXPECTED = "plans as dphmm check-release --plain writes them"
_PARTS = ("basis", "coordinates", "normals", "offsets")
#: How far from whole the difference of two lattice points in steps may be: rounding.
_OFF_LATTICE = 1e-6


def plain_plans(plans: Iterable[tuple[StepPlan, Planner]]) -> dict[str, Any]:
    """Plans, each with the planner that made it, as a document for JSON. Nothing in it is private.

    Source: docs/files.md.
    """
    return {"format": FORMAT, "kind": KIND, "plans": [_plain(plan, planner) for plan, planner in plans]}


def read_plain_laws(plans: Any) -> dict[str, PlainLaw]:
    """The laws of a file of plans in plain form, or of its document, by the hash of their plan.

    Raises InvalidInput for another file, and as `PlainLaw.read_all`.

    Source: docs/files.md.
    """
    if not isinstance(plans, (str, os.PathLike)):
        return PlainLaw.read_all(plans)
    try:
        document = json.loads(checked_input(plans, "plans").read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("plans", str(plans), "a file as dphmm check-release --plain writes it") from None
    return PlainLaw.read_all(document)


def plain_hash(told: Mapping[str, Any]) -> str:
    """The hash of a plan in plain form, made again from its parts; the stated hash is not looked at.

    Raises KeyError, TypeError, ValueError or OverflowError for parts that no plan has.

    Source: docs/files.md.
    """
    n, support, plan_set = int(told["states"]), bytes.fromhex(told["support"]), bytes.fromhex(told["plan_set"])
    if not 0 < len(support) == len(plan_set) == (n + 7) // 8:
        raise ValueError("a bit for each state")
    states = _surrogate(told, n).astype(narrowest(n)).tobytes()
    edges = np.array(told["given"], dtype="<i8").tobytes()
    inputs = inputs_of(told["inputs"].encode(), support, plan_set, states, edges)
    bodies = "".join([_body_digest(body) for body in told["bodies"]])
    return record_of(inputs, bodies, told["description"], plan_set, n).hash


def _surrogate(told: Mapping[str, Any], n: int) -> IntArray:
    """The state that each state is answered as (N,), before any was merged."""
    if told["surrogate"] is None:
        return np.arange(n)
    surrogate = np.array(told["surrogate"], dtype=np.int64)
    if surrogate.shape != (n,) or not ((surrogate >= 0) & (surrogate < n)).all():
        raise ValueError("a state that is none")
    return surrogate


def _body_digest(body: Mapping[str, Any]) -> str:
    parts = {name: np.array(body[name], dtype=object if name in body["long"] else np.int64) for name in _PARTS}
    return digest_of(np.array(body["pitch"], dtype=np.float64), **parts)


def _plain(plan: StepPlan, planner: Planner) -> dict[str, Any]:
    shared, support, plan_set, surrogate = planner.hashed_parts(plan)
    identity = np.arange(len(surrogate))
    return {
        "hash": plan.hash,
        "inputs": shared.decode(),
        "states": len(surrogate),
        "support": support.hex(),
        "plan_set": plan_set.hex(),
        "surrogate": None if np.array_equal(surrogate, identity) else surrogate.tolist(),
        "given": plan.joint_edges.tolist(),
        "bodies": [_body(plan.hull)],
        "table": _table(plan.mechanism) if isinstance(plan.mechanism, AnswerTable) else None,
        "description": plan.record.description,
    }


def _table(mechanism: AnswerTable) -> dict[str, Any]:
    """The weights of a law that is a table; for a made one the facts that its name is the hash of, too."""
    law, made = mechanism.law, isinstance(mechanism, MadeTable)
    return {
        "points": law.points.tolist(),
        "weights": law.weights.tolist(),
        "bits": law.bits,
        "space": mechanism.space_digest if isinstance(mechanism, MadeTable) else None,
        "edges": mechanism.edges.tolist() if made else [],
        "labels": mechanism.of_labels,
    }


def _body(hull: SensitivityHull) -> dict[str, Any]:
    parts: dict[str, IntArray] = {name: getattr(hull, name) for name in _PARTS}
    # Numbers beyond 64 bits are hashed as text.
    long = [name for name, part in parts.items() if part.dtype != np.int64]
    return {
        "pitch": hull.frame.pitch.tolist(),
        **{name: part.tolist() for name, part in parts.items()},
        "long": long,
    }


@dataclass(frozen=True, eq=False)
class PlainLaw:
    """The law of the answers under one plan, read from its plain form by somebody without the model.

    ``policy``: the hash of the policy. ``image`` (N,): the state that each state is answered as. ``offset``: of a
    staircase, None for a law graded by the norm. ``constraint``: of the options. ``beside``: True if edges of another
    query's plan were taken over.
    """

    space: str
    policy: str
    constraint: str
    beside: bool
    n_states: int
    image: IntArray
    epsilon: float
    normals: IntArray
    offsets: IntArray
    pitch: FloatArray
    offset: Fraction | None

    @classmethod
    def read_all(cls, document: Any) -> dict[str, PlainLaw]:
        """The laws of a document of `plain_plans`, by the hash of their plan.

        Raises InvalidInput for another document, for laws that are not computed from a body (tables, `optimal`
        noise), for a plan whose parts are not those of its hash, and for one whose
        description and inputs contradict each other.
        """
        if not isinstance(document, dict) or document.get("kind") != KIND or document.get("format") != FORMAT:
            raise InvalidInput("plans", "another document", _EXPECTED)
        try:
            return {plan["hash"]: cls._of(plan) for plan in document["plans"]}
        except (
            KeyError,
            TypeError,
            ValueError,
            IndexError,
            ZeroDivisionError,
            OverflowError,
            AttributeError,
            RecursionError,
        ) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("plans", "a plan without its parts", _EXPECTED) from None

    @classmethod
    def _of(cls, told: dict[str, Any]) -> PlainLaw:
        chosen, inputs = json.loads(told["description"]), json.loads(told["inputs"])
        names = [law["name"] for law in chosen["mechanisms"]]
        body = told["bodies"][0]
        if len(told["bodies"]) != 1 or len(names) != 1 or names[0] not in _OF_A_BODY or body["long"]:
            raise InvalidInput("plans", f"the law {' + '.join(names)[:60]}", f"one of {', '.join(_OF_A_BODY)}")
        _require_parts(told, chosen, inputs)
        normals = np.array(body["normals"], dtype=np.int64)
        # A public constant has a body without any axis, and no noise.
        if names[0] != _CONSTANT and len(body["basis"][0]) != len(body["pitch"]):
            raise InvalidInput("plans", "a flat body", "a body of full dimension, as every release has")
        law, n = chosen["mechanisms"][0], int(told["states"])
        merged = np.arange(n)
        for state, other in chosen.get("merged", []):
            merged[state] = range(n)[other]
        return cls(
            space=inputs["space"],
            policy=str(inputs["policy"]),
            constraint=str(inputs["options"]["constraint"]),
            beside=len(told["given"]) > 0,
            n_states=n,
            image=merged[_surrogate(told, n)],
            epsilon=float(Fraction(law["epsilon"])),
            normals=normals,
            offsets=np.array(body["offsets"], dtype=np.int64),
            pitch=np.array(body["pitch"], dtype=np.float64),
            offset=Fraction(law["offset"]) if "offset" in law else None,
        )

    def log_likelihood(self, z: FloatArray, answers: FloatArray, space: str | None = None) -> FloatArray:
        """log Pr(z | state) (N,) up to a constant common to all states, of an answer z (d,) in answer units.

        ``answers`` (N, d): of all states, in their order. ``space``: the hash of theirs, where it is known.

        Raises InvalidInput for states that are not those of the plan.
        """
        if space is not None and space != self.space:
            raise InvalidInput("states", f"those with hash {space[:12]}", f"the plan's, with hash {self.space[:12]}")
        if answers.shape != (self.n_states, len(self.pitch)):
            got = f"{len(answers)} states of {answers.shape[1]} coordinates"
            raise InvalidInput("states", got, f"all {self.n_states} of the plan, with {len(self.pitch)}")
        steps = (z - answers[self.image]) / self.pitch
        v = np.rint(steps)
        if not (np.abs(steps - v) < _OFF_LATTICE).all() or not (np.abs(v) < 2.0**40).all():
            raise InvalidInput("states", "answers that are not on the lattice of the plan", "those of the release")
        if not len(self.normals):
            # A public constant says nothing.
            return np.zeros(self.n_states)
        values = np.abs(v.astype(np.int64) @ self.normals.T)
        if self.offset is None:
            return np.asarray(-self.epsilon * (values / self.offsets).max(axis=1))
        allowed = np.array([self.offset.numerator * b // self.offset.denominator for b in self.offsets.tolist()])
        shells = values // self.offsets + (values % self.offsets > allowed)
        return np.asarray(-self.epsilon * shells.max(axis=1))


def _require_parts(told: Mapping[str, Any], chosen: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """The parts of a plan of one law are those of its hash, and do not contradict each other. Raises InvalidInput."""
    if _HASH.fullmatch(told["hash"]) is None:
        raise ValueError("no hash")
    plan, made, law, options = told["hash"][:12], plain_hash(told), chosen["mechanisms"][0], inputs["options"]
    if made != told["hash"]:
        raise InvalidInput("plans", f"plan {plan} with parts whose hash is {made[:12]}", _EXPECTED)
    contradicted = {
        "epsilon": Fraction(law["epsilon"]) != Fraction(options["epsilon"]),
        "mechanism": law["name"] != _CONSTANT and options["mechanism"] not in (AUTO, law["name"]),
        "given partners": chosen["given_partners"] != told["given"],
    }
    for what, odd in contradicted.items():
        if odd:
            raise InvalidInput("plans", f"plan {plan} whose inputs and description have another {what}", _EXPECTED)
