"""Random instances, each a function of the seed and its own number: `Instance.numbered(seed, 1234)` is always the same.

An instance is plain public data and a walk; nothing of the library is used to make one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from exactness import answers

#: Kinds of policies and how often each is drawn where the policy is no union (test_registries: none is left out).
KINDS = {"complete": 0.12, "categorical": 0.2, "radius": 0.2, "knn": 0.1, "transition": 0.13, "edges": 0.25}
UNION = "union"
MECHANISMS = ("auto", "discrete-knorm", "staircase", "discrete-laplace")
SKIP = "skip"


@dataclass(frozen=True)
class PolicySpec:
    """A kind and what it is made of; a union has parts."""

    kind: str
    parameters: dict[str, Any] = field(default_factory=dict)
    parts: tuple[PolicySpec, ...] = ()


@dataclass(frozen=True, eq=False)
class Query:
    """One measurement of the states: its answers and how they are released."""

    name: str
    shape: str
    answers: np.ndarray
    pitch: list[float] | None
    options: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Instance:
    """Public data of one subject, and where the subject goes.

    ``walk``: per step the true state (-1: a place that no state has) or SKIP. ``queries``: one, or two that share the
    subject's ledger. ``secrets``: which state each state of the chain is of, where the chain has others of its own.
    """

    number: int
    initial: np.ndarray
    transition: np.ndarray
    policy: PolicySpec
    queries: tuple[Query, ...]
    walk: tuple[Any, ...]
    bits: int
    secrets: np.ndarray | None = None

    @property
    def n(self) -> int:
        """How many states may be hidden."""
        return len(self.initial) if self.secrets is None else int(self.secrets.max()) + 1

    @property
    def tiny(self) -> bool:
        """Few enough states and steps to look at every pair of histories."""
        return self.n <= 4 and len(self.walk) <= 3 and self.secrets is None

    def latent(self) -> Instance:
        """The same with a chain of its own states: one for each state, and a few more, in any order."""
        rng = np.random.default_rng([self.bits, self.number])
        secrets = np.concatenate([np.arange(self.n), rng.integers(self.n, size=int(rng.integers(1, 5)))])
        initial, transition = _model(rng, len(secrets))
        return replace(self, initial=initial, transition=transition, secrets=rng.permutation(secrets))

    @classmethod
    def numbered(cls, seed: int, number: int) -> Instance:
        rng = np.random.default_rng([seed, number])
        tiny = rng.random() < 0.15
        joint = rng.random() < 0.08
        d = int(rng.choice([1, 2, 3, 4], p=[0.28, 0.44, 0.2, 0.08]))
        n = int(rng.integers(2, 5)) if tiny else int(rng.integers(2, 15 if d < 3 else 11))
        initial, transition = _model(rng, n)
        queries = [_query(rng, "state", n, d, joint)]
        if joint:
            queries.append(_query(rng, "other", n, int(rng.integers(1, 3)), joint))
        steps = int(rng.integers(2, 4)) if tiny else int(rng.integers(2, 5 if d < 3 else 4))
        return cls(
            number=number,
            initial=initial,
            transition=transition,
            policy=_policy(rng, n),
            queries=tuple(queries),
            walk=tuple(_where(rng, n) for _ in range(steps)),
            bits=int(rng.integers(2**31)),
        )


def _where(rng, n):
    luck = rng.random()
    return SKIP if luck < 0.08 else -1 if luck < 0.12 else int(rng.integers(n))


def _model(rng, n):
    """A chain with few or many moves, and an initial distribution on some or all states."""
    density = rng.choice([0.2, 0.5, 1.0])
    moves = (rng.random((n, n)) ** 3 + 1e-6) * (rng.random((n, n)) < density)
    for i in range(n):
        if not moves[i].any():
            moves[i, int(rng.integers(n))] = 1.0
    initial = rng.random(n) * (rng.random(n) < rng.choice([0.4, 1.0, 1.0]))
    if not initial.any():
        initial[int(rng.integers(n))] = 1.0
    return initial / initial.sum(), moves / moves.sum(axis=1, keepdims=True)


def _policy(rng, n, nested=False):
    if not nested and rng.random() < 0.2:
        return PolicySpec(UNION, parts=tuple(_policy(rng, n, nested=True) for _ in range(int(rng.integers(2, 4)))))
    kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    if kind == "categorical":
        return PolicySpec(kind, {"labels": rng.integers(max(1, n // 2), size=n).tolist()})
    if kind == "radius":
        share = str(rng.choice(["1/3", "1/2", "1", "2"]))
        return PolicySpec(kind, {"share": share, "closed": bool(rng.random() < 0.7)})
    if kind == "knn":
        return PolicySpec(kind, {"k": int(rng.integers(1, n))})
    if kind == "edges":
        few = int(rng.choice([0, 1, 2, n, 2 * n]))
        return PolicySpec(kind, {"edges": rng.integers(n, size=(few, 2)).tolist()})
    return PolicySpec(kind)


def _query(rng, name, n, d, joint):
    shape, table = answers.table(rng, n, d)
    pitch = None
    if rng.random() < 0.15 and shape != "huge":
        pitch = [float(p) for p in rng.choice([0.1, 0.25, 0.3, 7.0, 340.0], size=d)]
        table = table * np.array(pitch)
        luck = rng.random()
        if luck < 0.3:
            table = table + rng.random((n, d)) * 0.4 * np.array(pitch)
        elif luck < 0.6:
            pitch = None
    return Query(name, shape, table, pitch, _options(rng, d, joint))


def _options(rng, d, joint):
    narrowed = rng.random() < 0.35 and not joint
    options = {
        "epsilon": str(rng.choice(["0.01", "1/1024", "0.1", "1/3", "0.5", "1", "1.7", "2.5", "10", "100"])),
        "constraint": f"delta={rng.choice([0.05, 0.2, 0.5])}" if narrowed else "support",
        "mechanism": str(rng.choice(MECHANISMS)),
        "protection": _protection(rng, d),
        "start": str(rng.choice(["before", "at"])),
    }
    if joint:
        options |= {"start": "before"}
    return options


def _protection(rng, d):
    others = [0.25, 0.25, 0.25, 0.125, 0.125] if d < 3 else [0.3, 0.3, 0.3, 0.05, 0.05]
    return str(rng.choice(["auto", "merge", "nearest", "min-volume", "min-error"], p=others))
