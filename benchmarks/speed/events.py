"""Event logs: how often a reader of a release names the right activity, under one chain, slots and baselines.

Half of the cases are learned from, the other half is released: a total of 4 a case, as `plan` chooses, and beside it
one answer of 4. The shares right are those of rows up to a public number of steps, read with the plan's model. Every
log of the folder ``events`` is measured whose columns have the standard names; other tables have their own entry.
"""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, Target, at_least, below
from benchmarks.speed.timing import Spread
from dphmm.markov.private import fit_chain
from dphmm.markov.slots import Slots
from dphmm.samplers.body import LaplaceSampler
from dphmm.samplers.entropy import ReplayBits
from dphmm.storage.importers import import_trajectories

DATA = Path(os.environ.get("DPHMM_DATA", "../shared/data"))
SEEDS, TOTAL = 5, 4
#: Steps that are asked about: public, of a log without an entry the last.
STEPS = {"receipt.csv.gz": 6, "": 10}
#: What slots gain on one chain, what private slots lose to the better private baseline, and what a reader who knows the
#: rows finds more than the page says, in shares; and how far the flows of a log are off in total variation.
GAIN, LOSS, MORE, FLOWS, MOVES = 0.015, -0.005, 0.03, 0.25, 7
_CODED = {"actcal.csv.gz": "jan00:dec00"}


@dataclass(frozen=True, eq=False)
class Log:
    """The names of the activities, the cases as numbers of these, and how many steps are asked about."""

    names: list[str]
    cases: list[np.ndarray]
    steps: int

    @property
    def slots(self) -> Slots:
        """A slot for each step: of 4 to 6 together one chain is as good."""
        return Slots(positions=", ".join([*map(str, range(1, self.steps)), f"{self.steps}+"]))

    @classmethod
    def read(cls, path: Path) -> Log:
        """A table with the standard names of an event log, or with a case a row."""
        columns = {"columns": _CODED[path.name], "user_column": "id"} if path.name in _CODED else {}
        rows = import_trajectories(path, "events", case_names="kept", **columns).trajectories
        names, states = np.unique(np.asarray(rows.state, dtype=str), return_inverse=True)
        cases = np.split(states, np.flatnonzero(np.diff(rows.user)) + 1)
        steps = max(map(len, cases)) if columns else STEPS.get(path.name, STEPS[""])
        return cls(names.tolist(), cases, steps)


def figures(effort: Effort) -> Iterator[Figure]:
    """All logs of the folder, the receipt log with its flows."""
    paths = sorted(path for path in (DATA / "events").glob("*") if path.name.endswith((".csv.gz", ".xes", ".xes.gz")))
    if not paths:
        yield Figure("events", "all logs", None, "", note="no folder events in DPHMM_DATA")
    for path in paths:
        log = Log.read(path)
        if len(log.cases) >= 100:
            yield from _compared(path.name.split(".")[0], log, effort.pick(1, SEEDS), path.name in STEPS)


def _compared(name: str, log: Log, seeds: int, flows: bool) -> Iterator[Figure]:
    shares = defaultdict[tuple[str, str], list[float]](list)
    more, off = list[float](), list[float]()
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(log.cases))
        known, others = ([log.cases[k] for k in part] for part in np.array_split(order, 2))
        for kind, model in _models(known, log, seed).items():
            for budget, epsilon in (("planned", None), ("one answer", TOTAL)):
                read, expected, (features, truth) = _right(model, others, log.steps, epsilon, seed)
                shares[kind, budget].append(read)
                if (kind, budget) == ("private slots", "planned"):
                    more.append(_found(features, truth, seed) - expected)
        off.append(_flows_off(log, seed) if flows else np.nan)

    def spread(values: list[float]) -> Spread:
        return Spread(float(np.mean(values)), min(values), max(values), len(values))

    for (kind, budget), values in shares.items():
        yield Figure("events", f"{name}, {kind}, {budget}: right", spread(values), "")
    for budget in ("planned", "one answer"):
        gain = np.subtract(shares["slots", budget], shares["chain", budget]).tolist()
        # A table of codes, a month each, has no target.
        yield Figure(
            "events", f"{name}, {budget}: slots less chain", spread(gain), "", at_least(GAIN) if flows else None
        )
        private = [shares[f"private {kind}", budget] for kind in ("slots", "chain", "labels by position")]
        best = max(private[1:], key=np.mean)
        lost = np.subtract(private[0], best).tolist()
        yield Figure("events", f"{name}, {budget}: private slots less the better", spread(lost), "", at_least(LOSS))
    yield Figure("events", f"{name}: a forest that knows half finds more", spread(more), "", below(MORE))
    if flows:
        yield Figure("events", f"{name}: flows, total variation", spread(off), "", Target(FLOWS, False))


def _models(known: list[np.ndarray], log: Log, seed: int) -> dict[str, dphmm.MarkovModel]:
    """The models by kind: not private ones with a tenth of a count for each move, private ones of epsilon 1."""
    space, n = dphmm.StateSpace.labels(log.names), len(log.names)
    cut = [case[: log.steps] for case in known]
    fit = {"n_states": n, "smoothing": 0.1, "space": space}
    private = {"n_states": n, "epsilon": 1, "max_length": log.steps, "space": space}
    return {
        "chain by occupancy": dphmm.MarkovModel.fit(cut, initial="occupancy", **fit),
        "chain": dphmm.MarkovModel.fit(cut, **fit),
        "slots": dphmm.MarkovModel.fit(cut, slots=log.slots, **fit),
        "labels by position": _by_position(cut, log, None, seed),
        "private chain": fit_chain(known, bits=ReplayBits(seed), **private)[0],
        "private slots": fit_chain(known, bits=ReplayBits(seed), slots=log.slots, **private)[0],
        "private labels by position": _by_position(cut, log, 1.0, seed),
    }


def _by_position(cut: list[np.ndarray], log: Log, epsilon: float | None, seed: int) -> dphmm.MarkovModel:
    """Labels that hang on their position alone: a histogram of both, which a case changes by its steps."""
    n, counts = len(log.names), np.zeros((log.steps + 1, len(log.names)))
    for case in cut:
        np.add.at(counts, (np.arange(len(case)), case), 1)
    if epsilon is not None:
        noise = LaplaceSampler(int(log.steps / epsilon)).draw(counts.size, ReplayBits(seed))
        counts = np.maximum(counts + noise.reshape(counts.shape), 0)
    counts += 0.1 if epsilon is None else 1.0
    laws = counts / counts.sum(axis=1, keepdims=True)
    moves = [np.tile(law, (n, 1)) for law in laws[1:]]
    space = dphmm.StateSpace.labels(log.names)
    return dphmm.MarkovModel(laws[0], moves, slots=log.slots, start="at", space=space)


def _right(
    model: dphmm.MarkovModel, cases: list[np.ndarray], steps: int, epsilon: float | None, seed: int
) -> tuple[float, float, tuple[np.ndarray, np.ndarray]]:
    """The share of right labels of a reader with the model, the one that it expects, and rows (m, k) for a forest."""
    space, policy = model.space, dphmm.policy.complete(model.n_states)
    promise = dphmm.SequencePromise(TOTAL, steps=steps)
    schedule = dphmm.choose.plan(model, policy, space, promise, epsilon=epsilon, progress=False).schedule
    rows = pd.DataFrame(
        [
            (f"{number:06d}", step, space.names[state])
            for number, case in enumerate(cases)
            for step, state in enumerate(case[:steps], start=1)
        ],
        columns=["user", "step", "state"],
    )
    public = model, policy, space
    with warnings.catch_warnings():
        # Of cases that end before the first step that is asked.
        warnings.simplefilter("ignore")
        words = ReplayBits(f"events {seed}".encode())
        released = dphmm.release_many(rows, *public, schedule=schedule, bits=words, progress=False)
    read = dphmm.reconstruction.smooth(released, *public, schedule=schedule, epsilon=schedule.epsilon, progress=False)
    truth = rows.state.to_numpy()
    answers = released.assign(number=space.indices_of(released.z.fillna("").tolist()))
    wide = answers.pivot(index="user", columns="step", values="number")[list(schedule.at)].fillna(-1)
    wide = pd.get_dummies(wide.astype(int).astype(str))
    features = np.column_stack([rows.step, rows.groupby("user").step.transform("max"), wide.loc[rows.user].to_numpy()])
    right = float((read.smoothed.to_numpy() == truth).mean())
    return right, float(read.probability.mean()), (np.column_stack([rows.user.astype(int), features]), truth)


def _found(rows: np.ndarray, truth: np.ndarray, seed: int) -> float:
    """The share of right labels (m,) of a forest that knows those of every second case; rows (m, 1 + k) by case."""
    half = rows[:, 0].astype(int) % 2 == 0
    forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=seed).fit(rows[half, 1:], truth[half])
    return float((forest.predict(rows[~half, 1:]) == truth[~half]).mean())


def _flows_off(log: Log, seed: int) -> float:
    """Total variation between the noisy and the true shares of moves, begins and ends counted, at epsilon 1."""
    table = pd.DataFrame(
        [(str(number), log.names[state]) for number, case in enumerate(log.cases) for state in case],
        columns=["user", "state"],
    )
    options = {"states": log.names, "ends": True, "neighbours": "add-remove", "consistent": True}
    noisy, exact = (
        dphmm.query("flows", table, f"group:{most}", epsilon, bits=ReplayBits(seed), **options).table["count"]
        for epsilon, most in ((1, MOVES), (1000, 1 + max(map(len, log.cases))))
    )
    return float(np.abs(noisy / noisy.sum() - exact / exact.sum()).sum() / 2)
