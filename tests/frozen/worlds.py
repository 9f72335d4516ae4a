"""Random worlds, and all that a release, a table, a smoothing, an audit or a fit makes of each, in two classes.

``exact`` must not change by a byte: answers under replayed words, plans and their hashes, supports, costs, accounts,
headers, refusals. ``floats`` may differ by rounding: beliefs, estimates, expected errors, likelihoods.

Only public names are used: the same file runs beside an earlier commit.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import dphmm
from dphmm.accounting import MemoryLedger

MECHANISMS = ("auto", "discrete-knorm", "staircase", "optimal-table")
#: As the nearest floats: a power that NumPy computes depends on the processor.
_POWERS_OF_TENTH = np.array([float(f"1e-{power}") for power in range(200)])
#: Members of stored headers that are not compared: vectors are older than the choice of a row in a step (ADR 0015), and
#: version 4 of the algorithm has no other scope, flat body or thickness than the default.
_NOT_COMPARED = ("answer", "scope", "flat", "thickness")
#: Earlier commits make the likeliest path without being asked.
PATH_ON_REQUEST = "path" in inspect.signature(dphmm.reconstruction.smooth).parameters
#: What stands before a plan's hash: hashes of two versions may differ where they correspond one to one.
PLAN = "plan:"
_EPSILONS = ("0.1", "0.5", "1", "2", "2.25")


@dataclass
class Told:
    """What one world said: two lists of named values."""

    exact: list[Any] = field(default_factory=list)
    floats: list[Any] = field(default_factory=list)

    def refused(self, error: dphmm.errors.DphmmError) -> None:
        self.exact.append(["refused", type(error).__name__, str(error)])

    def belief(self, name: str, belief: Any) -> None:
        if belief is None:
            self.exact.append([name, None])
            return
        self.exact.append([name, np.flatnonzero(belief.support).tolist()])
        self.floats.append([name, belief.probability.tolist()])


@dataclass(frozen=True)
class World:
    """A model, a policy, a space, an epsilon, and the choices of its releases."""

    model: Any
    policy: Any
    space: Any
    epsilon: str
    choices: dict[str, Any]

    @property
    def public(self) -> tuple[Any, Any, Any, str]:
        return self.model, self.policy, self.space, self.epsilon


def drawn_world(rng: np.random.Generator, most_states: int = 14) -> World:
    """A world of few states; some beliefs are very small, some states are lonely, some supports are flat."""
    n = int(rng.integers(2, most_states))
    model = _drawn_model(rng, n)
    mechanism = str(rng.choice(MECHANISMS, p=[0.4, 0.2, 0.2, 0.2]))
    dimension = int(rng.choice([1, 2, 3], p=[0.35, 0.55, 0.1])) if mechanism == "auto" else int(rng.integers(1, 3))
    space = dphmm.StateSpace(rng.integers(0, 3 if mechanism == "optimal-table" else 7, (n, dimension)))
    choices = {"mechanism": mechanism}
    for name, values, chance in (
        ("constraint", ["delta=0.01", "delta=0.2", "delta=0.5"], 0.35),
        ("start", ["at", "before"], 0.4),
        ("protection", ["nearest", "min-volume"], 0.3),
    ):
        if rng.random() < chance:
            choices[name] = str(rng.choice(values))
    # What was frozen was drawn when this was the default.
    choices.setdefault("protection", "nearest")
    return World(model, _drawn_policy(rng, space, model), space, str(rng.choice(_EPSILONS)), choices)


def _drawn_model(rng: np.random.Generator, n: int) -> Any:
    moves = rng.random((n, n)) * (rng.random((n, n)) < rng.choice([0.15, 0.4, 1.0]))
    moves[np.arange(n), rng.permutation(n)] += 0.1
    if rng.random() < 0.2:
        moves = moves * _POWERS_OF_TENTH[rng.integers(0, 200, (n, n)) * (rng.random((n, n)) < 0.3)]
    initial = rng.random(n) * (rng.random(n) < rng.choice([0.3, 1.0]))
    initial[rng.integers(n)] += 1
    return dphmm.MarkovModel(initial / initial.sum(), moves / moves.sum(axis=1, keepdims=True))


def _drawn_policy(rng: np.random.Generator, space: Any, model: Any) -> Any:
    n, policy = space.n_states, dphmm.policy
    pairs = np.argwhere(np.triu(rng.random((n, n)) < rng.choice([0.1, 0.4]), 1))
    kinds: list[Callable[[], Any]] = [
        lambda: policy.complete(n),
        lambda: policy.radius(space, int(rng.integers(1, 5))),
        lambda: policy.transition(model),
        lambda: policy.categorical(rng.integers(0, 3, n)),
        lambda: policy.from_edges(pairs, n),
        lambda: policy.union(policy.from_edges(pairs, n), policy.categorical(rng.integers(0, 4, n))),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


# -- what a ledger, a session and a table hold ------------------------------------------------------------------------


def tell_ledger(told: Told, ledger: Any) -> None:
    """Every header, entry, plan and account."""
    for subject, query in ledger.sessions():
        header = ledger.header(subject, query)
        options = {name: value for name, value in header.options.items() if name not in _NOT_COMPARED}
        told.exact.append(["header", subject, query, options])
        for entry in ledger.entries(subject, query):
            values = (entry.t, entry.steps, entry.kind, entry.z, str(entry.epsilon), str(entry.cost))
            plan = None if entry.plan_hash is None else PLAN + entry.plan_hash
            told.exact.append(["entry", *values, plan, entry.secure, entry.constant])
            if entry.plan_hash is not None:
                record = ledger.plan(entry.plan_hash)
                told.exact.append(["plan", record.plan_states.hex(), record.n_states, record.description])
        spent = ledger.spent(subject)
        told.exact.append(["spent", subject, str(spent.epsilon), str(spent.cost)])


def tell_release(told: Told, release: Any) -> None:
    """One release of a session."""
    exact = (release.t, release.z_lattice.tolist(), str(release.epsilon), str(release.cost))
    told.exact.append(
        ["release", *exact, PLAN + release.plan_hash, release.mechanism, release.constant, release.secure]
    )
    told.floats.append(["release", release.z.tolist()])


def _steps(told: Told, rng: np.random.Generator, session: Any, steps: int) -> None:
    """Some releases, skips, questions about the past and refused questions; drift among the states."""
    for _ in range(steps):
        action = rng.choice(["release", "skip", "again", "ahead"], p=[0.7, 0.15, 0.1, 0.05])
        n = len(session.support)
        state = int(rng.integers(n)) if rng.random() < 0.9 else -1
        try:
            if action == "release":
                told.floats.append(["expected_error", session.plan.expected_error])
                tell_release(told, session.release(state))
            elif action == "skip":
                session.skip(int(rng.integers(1, 4)))
            elif action == "again":
                tell_release(told, session.release(state, t=int(rng.integers(1, max(2, session.t)))))
            else:
                session.release(state, t=session.t + 2)
        except dphmm.errors.DphmmError as error:
            told.refused(error)
        told.belief("prior", session.prior)
        told.belief("posterior", session.posterior)


def mechanism_of(family: str, seed: int) -> str:
    """The mechanism of the world that a family draws from a seed."""
    number, most = {"sessions": (1, 14), "queries": (2, 9), "tables": (3, 30)}[family]
    return str(drawn_world(np.random.default_rng([number, seed]), most).choices["mechanism"])


# -- families of worlds -----------------------------------------------------------------------------------------------


def sessions(seed: int) -> Told:
    """One subject: releases, skips, caps; resumed from its ledger; smoothed; its last plan audited."""
    rng, told = np.random.default_rng([1, seed]), Told()
    world = drawn_world(rng)
    ledger, bits = MemoryLedger(), dphmm.ReplayBits(seed)
    caps = {"cap_epsilon": "9"} if rng.random() < 0.3 else {}
    try:
        session = dphmm.ReleaseSession(*world.public, **world.choices, **caps, subject="a", ledger=ledger, bits=bits)
        _steps(told, rng, session, int(rng.integers(3, 9)))
        resumed = dphmm.ReleaseSession.resume(ledger, "a", *world.public[:3], bits=bits, **caps)
        told.belief("resumed", resumed.prior)
        _steps(told, rng, resumed, 2)
        _tell_audit(told, resumed)
        _tell_smoothed(told, world, ledger)
    except dphmm.errors.DphmmError as error:
        told.refused(error)
    tell_ledger(told, ledger)
    return told


def _tell_audit(told: Told, session: Any) -> None:
    verdict = dphmm.audit.verify(session)
    told.exact.append(["verdict", str(verdict)])


def _tell_smoothed(told: Told, world: World, ledger: Any) -> None:
    entries = [entry for entry in ledger.entries("a", "state") if entry.z is not None]
    if not entries:
        return
    z = world.space.frame.to_answers(np.array([entry.z for entry in entries], dtype=np.int64))
    table = pd.DataFrame({"user": "a", "step": [entry.t for entry in entries]})
    for axis in range(z.shape[1]):
        table[f"z_{axis}"] = z[:, axis]
    table["epsilon"] = [float(entry.epsilon) for entry in entries]
    table["plan"] = [entry.plan_hash for entry in entries]
    path = {"path": True} if PATH_ON_REQUEST else {}
    smoothed = dphmm.reconstruction.smooth(table, *world.public, **world.choices, **path, progress=False)
    tell_table(told, smoothed)


def tell_table(told: Told, table: pd.DataFrame) -> None:
    """Columns of floats but the answers themselves may differ by rounding."""
    for name in table.columns:
        values = table[name].tolist()
        if table[name].dtype.kind == "f":
            told.floats.append([name, values])
        else:
            told.exact.append([name, [PLAN + value if name == "plan" and value else str(value) for value in values]])


def queries(seed: int) -> Told:
    """Two queries of one subject over one ledger, taking turns: partners are shared, one account is kept."""
    rng, told = np.random.default_rng([2, seed]), Told()
    world = drawn_world(rng, 9)
    shared = {"protection": "nearest"} | {name: world.choices[name] for name in ("start",) if name in world.choices}
    kinds = [str(value) for value in rng.choice(["auto", "discrete-knorm", "staircase"], 2)]
    other = dphmm.StateSpace(rng.integers(0, 30, (world.space.n_states, int(rng.integers(1, 3)))))
    ledger, bits = MemoryLedger(), dphmm.ReplayBits(seed)
    try:
        both = [
            dphmm.ReleaseSession(
                *(world.model, world.policy, space, epsilon),
                **shared,
                **{"mechanism": kind, "query": query, "subject": "a", "ledger": ledger, "bits": bits},
            )
            for space, epsilon, kind, query in zip(
                (world.space, other), (world.epsilon, "1"), kinds, ("state", "other"), strict=True
            )
        ]
        for _ in range(int(rng.integers(2, 6))):
            _steps(told, rng, both[int(rng.integers(2))], 1)
    except dphmm.errors.DphmmError as error:
        told.refused(error)
    tell_ledger(told, ledger)
    return told


def tables(seed: int) -> Told:
    """Many subjects in one table where plans are public; then more rows of some of them and of new ones."""
    rng, told = np.random.default_rng([3, seed]), Told()
    world = drawn_world(rng, 30)
    world.choices.pop("constraint", None)
    ledger = MemoryLedger()
    _tell_runs(told, rng, world, ledger, int(rng.integers(1, 12)), dphmm.ReplayBits(seed))
    tell_ledger(told, ledger)
    return told


def own_tables(seed: int) -> Told:
    """Tables of one subject each where plans depend on answers, each with words of its own."""
    rng, told = np.random.default_rng([4, seed]), Told()
    world = drawn_world(rng)
    world.choices["constraint"] = str(rng.choice(["delta=0.05", "delta=0.3"]))
    for number in range(3):
        ledger = MemoryLedger()
        _tell_runs(told, rng, world, ledger, 1, dphmm.ReplayBits(1000 * seed + number))
        tell_ledger(told, ledger)
    return told


def _tell_runs(told: Told, rng: np.random.Generator, world: World, ledger: Any, users: int, bits: Any) -> None:
    rows = _rows(rng, world.space.n_states, users)
    begun = int(rng.integers(1, len(rows) + 1))
    for some, resume in ((rows[:begun], False), (rows, True), (rows[:begun], False)):
        table = pd.DataFrame(some, columns=["user", "step", "state"])
        caps = {"cap_epsilon": "20"} if rng.random() < 0.1 else {}
        try:
            made = dphmm.release_many(
                table, *world.public, **world.choices, **caps, ledger=ledger, bits=bits, resume=resume, progress=False
            )
            tell_table(told, made)
        except dphmm.errors.DphmmError as error:
            told.refused(error)


def _rows(rng: np.random.Generator, n: int, users: int) -> list[tuple[str, int, str]]:
    found = []
    for user in range(users):
        ahead = rng.choice([1, 1, 1, 2, 3, 40], int(rng.choice([1, 2, 5, 12])))
        steps = int(rng.choice([0, 1, 5])) + np.cumsum(ahead)
        names = [str(rng.integers(n)) if rng.random() < 0.95 else "nowhere" for _ in steps]
        found += [(f"u{user:02}", step, name) for step, name in zip(steps.tolist(), names, strict=True)]
    return found


def hidden_fits(seed: int) -> Told:
    """A few iterations of Baum-Welch on random symbols."""
    rng, told = np.random.default_rng([5, seed]), Told()
    symbols, states = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    lengths = rng.integers(1, 30, int(rng.integers(1, 6))).tolist()
    observed = rng.integers(0, symbols, (sum(lengths), 1))
    hmm = dphmm.markov.CategoricalHMM(states, n_features=symbols, random_state=seed, n_iter=5, tol=0)
    hmm.fit(observed, lengths)
    told.floats.append(["log_likelihood", hmm.score(observed, lengths)])
    told.exact.append(["path", hmm.predict(observed, lengths).tolist()])
    return told


def leakage(seed: int) -> Told:
    """What neighbouring paths and correlated steps tell, under a model and some losses."""
    rng, told = np.random.default_rng([6, seed]), Told()
    model = drawn_world(rng, 7).model
    losses = [float(value) for value in rng.choice([0.1, 0.5, 1.0], int(rng.integers(2, 8)))]
    found = dphmm.accounting.temporal_leakage(model, losses)
    told.floats.append(["temporal", found.backward.tolist(), found.forward.tolist(), found.total.tolist()])
    told.floats.append(["supremum", found.supremum])
    return told


FAMILIES: dict[str, Callable[[int], Told]] = {
    "sessions": sessions,
    "queries": queries,
    "tables": tables,
    "own_tables": own_tables,
    "hidden_fits": hidden_fits,
    "leakage": leakage,
}


def told_lines(tell: Callable[[int], Told], family: str, seeds: Iterable[int]) -> Iterator[str]:
    """One line of JSON for each world."""
    for seed in seeds:
        told = tell(seed)
        yield json.dumps({"family": family, "seed": seed, "exact": told.exact, "floats": told.floats})


def numbered_plans(value: Any, numbers: dict[str, str]) -> Any:
    """The same structure with plans numbered by their first appearance; ``numbers`` of hashes grow."""
    if isinstance(value, list):
        return [numbered_plans(each, numbers) for each in value]
    if isinstance(value, str) and value.startswith(PLAN):
        return numbers.setdefault(value, f"{PLAN}{len(numbers)}")
    return value


def differences(before: Any, now: Any, relative: float, path: str = "") -> Iterator[str]:
    """Describe where two structures differ by more than rounding."""
    if isinstance(before, float) and isinstance(now, float):
        same = before == now or (math.isnan(before) and math.isnan(now))
        if not same and not math.isclose(before, now, rel_tol=relative, abs_tol=1e-300):
            yield f"{path}: {before!r}, now {now!r}"
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (a, b) in enumerate(zip(before, now, strict=True)):
            yield from differences(a, b, relative, f"{path}[{number}]")
    elif before != now or type(before) is not type(now):
        yield f"{path}: {before!r}, now {now!r}"
