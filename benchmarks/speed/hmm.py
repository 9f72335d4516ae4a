"""One Baum-Welch iteration of `CategoricalHMM` beside hmmlearn's (scaling, its faster one), and dynamax's if installed.

All run in one process on one thread, from the same start on the same symbols, alternating. hmmlearn and ours are timed
through `fit`, checks of their input included. Memory of one long sequence is measured in processes of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, at_least, below, seconds
from benchmarks.speed.timing import Spread, timed

FASTER = at_least(1.0)
CHECKPOINTED_MEMORY = below(0.1)
_ROOT = Path(__file__).parents[2]
_SYMBOLS = 6


class Shape(NamedTuple):
    """``count`` sequences of ``length`` symbols under a model of so many states."""

    states: int
    count: int
    length: int

    def __str__(self) -> str:
        return f"{self.states} states, {self.count:,} × {self.length:,}"


LARGE = [Shape(states, *data) for states in (10, 50, 100, 400) for data in ((1, 10_000), (100, 100))]
SHORT = [Shape(states, *data) for states in (3, 10) for data in ((300, 30), (100_000, 20))]


class Start(NamedTuple):
    """A model to start from, and symbols laid end to end."""

    shape: Shape
    startprob: np.ndarray
    transmat: np.ndarray
    emissionprob: np.ndarray
    symbols: np.ndarray

    @classmethod
    def of(cls, shape: Shape) -> Start:
        random = np.random.default_rng(shape.states)
        n = shape.states
        rows = [random.dirichlet(np.ones(n)), random.dirichlet(np.ones(n), n), random.dirichlet(np.ones(_SYMBOLS), n)]
        return cls(shape, *rows, random.integers(0, _SYMBOLS, shape.count * shape.length))


def figures(effort: Effort) -> Iterator[Figure]:
    """Ratios at every size, then a sparse model and the memory of a long sequence."""
    missing = [name for name in _OTHERS if find_spec(name) is None]
    for name in missing:
        yield Figure("hmm", f"{name}'s time / ours", None, "×", FASTER, f"{name} is not installed")
    for shape in LARGE + SHORT:
        slow = shape.states >= 100 or shape.count * shape.length > 10**6
        yield from _against(Start.of(shape), effort.pick(1, 3 if slow else 9), missing)
    yield _sparse(effort)
    for checkpoint in ("no", "yes"):
        yield from _memory(checkpoint, effort.pick(10**5, 10**6))


def _against(start: Start, repeats: int, missing: list[str]) -> Iterator[Figure]:
    ours = timed(_fit(dphmm.markov.CategoricalHMM, start), repeats)
    for name in _OTHERS:
        if name in missing:
            continue
        title = f"{start.shape}: {name}'s time / ours"
        theirs = timed(_OTHERS[name](start), repeats)
        note = f"ours {seconds(ours.median)}, {name} {seconds(theirs.median)}"
        yield Figure("hmm", title, theirs.times(ours), "×", FASTER, note)


def _fit(kind: Any, start: Start, **options: Any) -> Callable[[], Any]:
    """One iteration from the start, by `fit`."""
    lengths = [start.shape.length] * start.shape.count
    column = start.symbols[:, None]

    def iteration() -> Any:
        model = kind(n_components=start.shape.states, n_features=_SYMBOLS, n_iter=1, init_params="", **options)
        model.startprob_, model.transmat_, model.emissionprob_ = start.startprob, start.transmat, start.emissionprob
        return model.fit(column, lengths)

    return iteration


def _hmmlearn(start: Start) -> Callable[[], Any]:
    from hmmlearn.hmm import CategoricalHMM

    return _fit(CategoricalHMM, start, implementation="scaling")


def _dynamax(start: Start) -> Callable[[], Any]:
    """A compiled iteration in double precision; compiling it is not timed, as it is the warm-up's."""
    import jax
    from dynamax.hidden_markov_model import CategoricalHMM

    jax.config.update("jax_enable_x64", True)
    hmm = CategoricalHMM(start.shape.states, 1, _SYMBOLS)
    params, props = hmm.initialize(
        jax.random.PRNGKey(0),
        initial_probs=start.startprob,
        transition_matrix=start.transmat,
        emission_probs=start.emissionprob[:, None, :],
    )
    emissions = jax.numpy.asarray(start.symbols.reshape(start.shape.count, start.shape.length, 1))

    @jax.jit
    def iteration(given: Any) -> Any:
        counts, logs = jax.vmap(lambda sequence: hmm.e_step(given, sequence))(emissions)
        return hmm.m_step(given, props, counts, hmm.initialize_m_step_state(given, props))[0], logs.sum()

    return lambda: jax.block_until_ready(iteration(params))


_OTHERS = {"hmmlearn": _hmmlearn, "dynamax": _dynamax}


def _sparse(effort: Effort) -> Figure:
    """A chain of which each state leads to three others: stored sparse, beside the same stored dense."""
    from scipy import sparse

    start = Start.of(Shape(400, 100, 100))
    band = sum(np.roll(np.eye(400), step, axis=1) for step in (0, 1, 2)) / 3
    stored = start._replace(transmat=band)
    dense = timed(_fit(dphmm.markov.CategoricalHMM, stored), effort.pick(1, 5))
    thin = timed(_fit(dphmm.markov.CategoricalHMM, stored._replace(transmat=sparse.csr_array(band))), effort.pick(1, 5))
    note = f"sparse {seconds(thin.median)}, dense {seconds(dense.median)}; 3 of 400 moves possible"
    return Figure("hmm", f"{start.shape}: dense time / sparse time", dense.times(thin), "×", FASTER, note)


def _memory(checkpoint: str, length: int) -> Iterator[Figure]:
    command = [sys.executable, "-m", "benchmarks.speed.hmm_child", checkpoint, str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    if done.returncode:
        raise SystemExit(f"the long sequence failed ({done.returncode}): {done.stderr.strip()[-400:]}")
    found = json.loads(done.stdout)
    name = f"50 states, 1 × {length:,}, checkpointed: {checkpoint}: memory of one iteration"
    target = CHECKPOINTED_MEMORY if checkpoint == "yes" else None
    note = f"{seconds(found['seconds'])}; {found['before_gib']:.2f} GiB held before"
    yield Figure("hmm", name, Spread.of([found["added_gib"]]), "GiB", target, note)
