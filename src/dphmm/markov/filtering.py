"""Public beliefs about a state: from the answers so far (`Belief`), and seen from their end (`smooth`).

Probabilities and, beside them, the support as a set: they are kept apart on purpose (docs/theory.md (a)). The support
moves by the structure of the model and by what a release excludes, never by ``p > 0``: on a corridor of 1001 cells a
float prior loses a possible state within 60 steps and over 900 of them within 500, the true one possibly among them.
So probabilities are plain floats as long as none of a possible state is too small to be trusted, and
log-probabilities as soon as one is.

Smoothing gives marginals and the single likeliest path.
Observations come as rows of likelihoods, block by block, so that a long sequence never has all of them in memory: of T
steps some 2·sqrt(T) rows are held, and the rest is made again when it is needed. Observations may lie any number of
moves apart; the path is the likeliest over all moves, those between observations too. A chain may move by another
matrix at every step (``predecessors_at(t)``); one matrix is the usual schedule.

Proofs: docs/proofs/support.md, docs/proofs/secrets.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm._checks import state_mask
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.markov.stochastic import fixed
from dphmm.types import BoolArray, FloatArray, IntArray, Predecessors, States

#: A prediction that moves no probability by more than this share of it has settled; looked at once in so many steps.
SETTLED = 1e-12
_CHECK_EVERY = 8


class Belief:
    """A distribution over N states that never loses a possible one. Immutable.

    log_probability : (N,) natural logs, finite exactly on the support, -inf elsewhere.
    support : (N,) bool, not empty.

    Raises InvalidInput if the two disagree.
    """

    __slots__ = ("_logs", "_row", "_support")
    _logs: FloatArray | None
    _row: FloatArray | None
    _support: BoolArray

    def __init__(self, log_probability: FloatArray, support: BoolArray) -> None:
        logs = np.array(log_probability, dtype=np.float64)
        possible = np.array(support)
        if possible.dtype != np.bool_ or possible.ndim != 1 or logs.shape != possible.shape:
            fault = f"{possible.dtype} {possible.shape} for logs {logs.shape}"
            raise InvalidInput("support", fault, "booleans, one per state")
        if not possible.any():
            raise InvalidInput("support", "no state", "at least one possible state")
        if not ((np.isfinite(logs) == possible) & ((logs == -np.inf) | possible)).all():
            raise InvalidInput("log_probability", "logs that disagree with the support", "finite exactly on it")
        self._support = fixed(possible)
        self._logs = fixed(logs)
        self._row = _row_of(logs, possible)

    @classmethod
    def of_row(cls, row: FloatArray, support: BoolArray) -> Belief:
        """The belief of a row of floats (N,) as the kernels make it: 0 off the support, nowhere on it too small.

        The arrays become the belief's own.
        """
        row.setflags(write=False)
        support.setflags(write=False)
        belief = cls.__new__(cls)
        belief._row, belief._support, belief._logs = row, support, None
        return belief

    @classmethod
    def initial(cls, model: MarkovModel) -> Belief:
        """The model's initial distribution: of t = 0 if the model starts "before", of t = 1 if "at".

        For a model with secrets a `SecretBelief`.
        """
        support = model.support_at_start
        latent = cls(_logs_of(model.initial, support), support)
        return latent if model.secrets is None else SecretBelief(latent, model.secrets, model.n_secrets)

    @property
    def latent(self) -> Belief:
        """The belief about the model's own states, which moves; itself where these are what is hidden."""
        return self

    def of_latent(self, latent: Belief) -> Belief:
        """Another belief about the same model's states as one of this kind."""
        return latent

    def lifted(self, values: Any) -> Any:
        """Values (..., S) of secrets as those of the model's own states (..., N)."""
        return values

    @property
    def support(self) -> BoolArray:
        """The possible states (N,)."""
        return self._support

    @property
    def log_probability(self) -> FloatArray:
        """(N,) natural logs, -inf off the support."""
        if self._logs is None:
            assert self._row is not None
            self._logs = fixed(_logs_of(self._row, self._support))
        return self._logs

    @property
    def row(self) -> FloatArray | None:
        """(N,) probabilities that floats hold in full; None where one of a possible state is too small for that."""
        return self._row

    @property
    def n_states(self) -> int:
        """N, the number of states."""
        return len(self._support)

    @property
    def probability(self) -> FloatArray:
        """(N,) probabilities; below about 1e-324 a possible state shows 0.0, so ask ``support`` instead."""
        return np.exp(self.log_probability) if self._row is None else self._row

    def predict(self, model: MarkovModel, t: int) -> Belief:
        """The belief about t from this one about t - 1: p M, on exactly what the support can reach."""
        n = self.n_states
        if model.n_states != n:
            raise InvalidInput("model", f"{model.n_states} states", f"the belief's {n}")
        matrix = model.predecessors_at(t)
        if self._row is not None:
            row, reached = np.empty(n), np.empty(n, dtype=np.bool_)
            if _kernels.filter.predict(matrix, self._row, self._support, row, reached):
                return Belief.of_row(row, reached)
        logs = _kernels.filter.predict_logs(matrix, self.log_probability)
        return Belief(logs, logs > -np.inf)

    def predict_many(self, model: MarkovModel, t: int, steps: int) -> Belief:
        """The belief about t + steps - 1 from this one about t - 1: ``predict`` again and again.

        A run of moves by one matrix stops once nothing moves: the support exactly, and no probability by more than
        SETTLED of itself in a step; after 1,024 steps none that is below 1e-100 counts.
        """
        belief = self
        for first, moves in model.slot_runs(t, steps):
            belief, done = belief._moved(model, first, moves)
            for passed in range(done, moves):
                before, belief = belief, belief.predict(model, first + passed)
                check = passed % _CHECK_EVERY == 0
                if check and _kernels.filter.same(before.log_probability, belief.log_probability, SETTLED, passed):
                    break
        return belief

    def _moved(self, model: MarkovModel, t: int, steps: int) -> tuple[Belief, int]:
        """As far as floats go, and how many steps that is."""
        if self._row is None or steps < 1:
            return self, 0
        matrix = model.predecessors_at(t)
        row, support = self._row.copy(), self._support.copy()
        spare = (np.empty_like(row), np.empty_like(support))
        done = _kernels.filter.predict_many(matrix, row, support, steps, SETTLED, *spare)
        return Belief.of_row(row, support), done

    def condition(self, log_likelihood: Any, support: States = None) -> Belief:
        """The belief after an observation.

        Parameters
        ----------
        log_likelihood : (N,) log Pr(z | s) up to a constant; read on the remaining support only, finite there
        support : mask or state numbers that the observation does not exclude; None excludes nothing. Only
            this set excludes states: a likelihood of -inf may be a product that underflowed.

        Raises InvalidInput if nothing remains, or if a remaining state has no finite log-likelihood. Both
        follow from the published answer and the model, not from a true state.
        """
        likelihood = np.asarray(log_likelihood, dtype=np.float64)
        if likelihood.shape != self._support.shape:
            raise InvalidInput("log_likelihood", f"shape {likelihood.shape}", f"({self.n_states},)")
        remaining = self._support & state_mask(support, self.n_states, "support")
        if not remaining.any():
            raise InvalidInput("support", "a set that excludes every possible state", "one that leaves some")
        _check_likelihood(likelihood, remaining)
        joint = self.log_probability[remaining] + likelihood[remaining]
        logs = np.full(self.n_states, -np.inf)
        # Likelihoods may all be far below the smallest double: only their ratios matter.
        joint -= joint.max()
        logs[remaining] = joint - np.log(np.exp(joint).sum())
        return Belief(logs, remaining)

    def weighted(self, likelihood: FloatArray, support: BoolArray) -> Belief | None:
        """As ``condition``, with a likelihood (N,) in floats; None where floats cannot hold what comes out."""
        if self._row is None:
            return None
        posterior, remaining = np.empty(self.n_states), np.empty(self.n_states, dtype=np.bool_)
        if not _kernels.filter.condition(self._row, likelihood, self._support, support, posterior, remaining):
            return None
        return Belief.of_row(posterior, remaining)

    def __repr__(self) -> str:
        return f"Belief({int(self._support.sum())} of {self.n_states} states possible)"


class SecretBelief(Belief):
    """A belief about secrets (S,), by one about the latent states of a model. Immutable.

    Answers tell of secrets, so they weigh all latent states of a secret alike; moves are those of latent states. The
    probability of a secret is the sum over its latent states in their order. Sums are made when they are first read.
    """

    __slots__ = ("_latent", "_n_secrets", "_secrets")

    def __init__(self, latent: Belief, secrets: IntArray, n_secrets: int) -> None:
        self._latent, self._secrets, self._n_secrets = latent, secrets, n_secrets

    def __getattr__(self, name: str) -> Any:
        # Of all names only those of the sums are not there from the first.
        if name not in Belief.__slots__:
            raise AttributeError(name)
        latent, secrets = self._latent, self._secrets
        masses, support = np.empty(self._n_secrets), np.empty(self._n_secrets, dtype=np.bool_)
        _kernels.filter.sum_latent(latent.probability, latent.support, secrets, masses, support)
        self._support, self._row, self._logs = fixed(support), fixed(masses), None
        if latent.row is None:
            logs = np.full(self._n_secrets, -np.inf)
            np.logaddexp.at(logs, secrets, latent.log_probability)
            self._logs, self._row = fixed(logs), _row_of(logs, support)
        return getattr(self, name)

    @property
    def n_states(self) -> int:
        """S, the number of secrets."""
        return self._n_secrets

    @property
    def latent(self) -> Belief:
        return self._latent

    def of_latent(self, latent: Belief) -> Belief:
        return SecretBelief(latent, self._secrets, self._n_secrets)

    def lifted(self, values: Any) -> Any:
        return np.take(values, self._secrets, axis=-1)

    def predict(self, model: MarkovModel, t: int) -> Belief:
        return self.of_latent(self._latent.predict(model, t))

    def predict_many(self, model: MarkovModel, t: int, steps: int) -> Belief:
        return self.of_latent(self._latent.predict_many(model, t, steps))

    def condition(self, log_likelihood: Any, support: States = None) -> Belief:
        likelihood = np.asarray(log_likelihood, dtype=np.float64)
        if likelihood.shape != (self._n_secrets,):
            raise InvalidInput("log_likelihood", f"shape {likelihood.shape}", f"({self._n_secrets},)")
        remaining = state_mask(support, self._n_secrets, "support")
        return self.of_latent(self._latent.condition(self.lifted(likelihood), self.lifted(remaining)))

    def weighted(self, likelihood: FloatArray, support: BoolArray) -> Belief | None:
        latent = self._latent.weighted(self.lifted(likelihood), self.lifted(support))
        return None if latent is None else self.of_latent(latent)


def _logs_of(row: FloatArray, support: BoolArray) -> FloatArray:
    logs = np.full(len(row), -np.inf)
    logs[support] = np.log(row[support])
    return logs


def _row_of(logs: FloatArray, support: BoolArray) -> FloatArray | None:
    """Probabilities as floats where they hold all of them, at any scale that a distribution can have."""
    possible = logs[support]
    fits = math.log(_kernels.filter.TRUSTED) < possible.min() and possible.max() <= 1.0
    return fixed(np.exp(logs)) if fits else None


def _check_likelihood(likelihood: FloatArray, remaining: BoolArray) -> None:
    wrong = remaining & ~np.isfinite(likelihood)
    if wrong[remaining].all():
        raise InvalidInput(
            "log_likelihood", "no finite value on the support", "the answer to be possible somewhere in it"
        )
    if wrong.any():
        state = int(np.argmax(wrong))
        expected = "a finite value on the support; what the answer excludes is named by `support`"
        raise InvalidInput(f"log_likelihood[{state}]", repr(likelihood[state].item()), expected)


#: Rows of this many numbers together are made once and kept.
_KEPT = 2**22
#: Largest change of a log-probability that counts as none.
_QUIET = 1e-12


class LikelihoodRows(NamedTuple):
    """Likelihoods (V, N) of every state, up to a factor of each row.

    In floats 0 excludes a state for certain and no other is below 1e-290; where ``logged`` (V,), in logs, with -inf to
    exclude. ``which`` (T,): the row of each observation, -1 where nothing was observed.
    """

    values: FloatArray
    logged: BoolArray
    which: IntArray

    @property
    def logs(self) -> FloatArray:
        """All rows (V, N) in logs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.logged[:, None], self.values, np.log(self.values))

    @property
    def relative(self) -> FloatArray:
        """All rows (V, N) in floats, the largest of each 1."""
        largest = self.values.max(axis=1, keepdims=True)
        scaled = self.values / np.where(self.logged[:, None], 1.0, largest)
        scaled[self.logged] = np.exp(self.values[self.logged] - largest[self.logged])
        return scaled


class ChainObservations(Protocol):
    """Observations of a chain: ``moves`` (T,) lie between each one and the one before; 0 before the first."""

    @property
    def moves(self) -> IntArray: ...

    def rows(self, first: int, last: int) -> LikelihoodRows:
        """The rows of the observations first..last."""
        ...


@dataclass(frozen=True, eq=False)
class ObservationTable:
    """Observations of a few kinds: a row (V, N) for each, and which of them (T,) was observed, -1 for none.

    ``logged`` (V,): True for the rows that are logs.
    """

    values: FloatArray
    which: IntArray
    moves: IntArray
    logged: BoolArray

    @classmethod
    def of(
        cls, values: FloatArray, which: IntArray | None = None, moves: IntArray | None = None, logged: Any = False
    ) -> ObservationTable:
        """Observations one move apart, each with a row of its own, in floats, unless it is said otherwise."""
        if which is None:
            which = np.arange(len(values))
        if moves is None:
            moves = np.minimum(np.arange(len(which)), 1)
        return cls(values, which, moves, np.broadcast_to(logged, len(values)).astype(np.bool_))

    def rows(self, first: int, last: int) -> LikelihoodRows:
        return LikelihoodRows(self.values, self.logged, self.which[first:last])


class _EveryStep:
    """Observations of a chain whose matrix changes, one move apart: at some of the steps nothing was observed."""

    def __init__(self, observations: ChainObservations) -> None:
        self._observations = observations
        self.at = np.cumsum(observations.moves)
        self.moves = np.minimum(np.arange(int(self.at[-1]) + 1), 1)

    def rows(self, first: int, last: int) -> LikelihoodRows:
        """The rows of the steps first..last."""
        a, b = np.searchsorted(self.at, (first, last)).tolist()
        values, logged, row_of = self._observations.rows(a, b)
        which = np.full(last - first, -1)
        which[self.at[a:b] - first] = row_of
        return LikelihoodRows(values, logged, which)


def likeliest_path(
    model: MarkovModel, prior: Belief, observations: ChainObservations, *, block: int | None = None, t: int = 1
) -> IntArray:
    """The states (T,) at the observations on a path that is likeliest among all (Viterbi).

    Among paths of equal log-probability, as floats add it up, one with low state numbers is taken.
    ``prior``, ``block`` and ``t`` as in `smooth`; raises as it does.
    """
    if model.time_homogeneous:
        return _Path(model, observations, block, t).states(prior)
    every = _EveryStep(observations)
    return _Path(model, every, block, t).states(prior)[every.at]


class _Path:
    """Viterbi in blocks of moves: a checkpoint at the start of each, and the blocks again, the last one first."""

    def __init__(self, model: MarkovModel, steps: ChainObservations, block: int | None, t: int) -> None:
        self._model, self._observations, self._t = model, steps, t
        self._through = np.cumsum(steps.moves)
        self._kept: tuple[Predecessors, Predecessors] | None = None
        moves = int(steps.moves[1:].sum())
        # Observations held at a time: all of a short sequence, about the square root of a long one's.
        few = math.isqrt(moves) + 1, _KEPT // model.n_states
        self._size = max(1, *few) if block is None else max(1, block)
        self._fewest = math.isqrt(len(steps.moves)) + 1
        held = min(self._size, max(1, moves))
        self._pointers: NDArray[np.int32] = np.empty((held, model.n_states), dtype=np.int32)
        self._cycles, self._ends = np.empty((held, 2), dtype=np.int64), np.empty(held, dtype=np.int64)

    def states(self, prior: Belief) -> IntArray:
        t = len(self._observations.moves)
        path = np.zeros(t, dtype=np.int64)
        if not t:
            return path
        row, at, moved, count = self._first(prior), 1, 0, 0
        starts: list[tuple[FloatArray, int, int]] = []
        while at < t:
            starts.append((row.copy(), at, moved))
            count, at, moved = self._run(row, at, moved)
        state = int(np.argmax(row))
        recorded = True
        while starts:
            row, at, moved = starts.pop()
            if not recorded:
                count, _, _ = self._run(row, at, moved)
            state = _kernels.hmm.trace_moves(self._pointers, self._cycles, self._ends, count, state, path[at:])
            recorded = False
        path[0] = state
        return path

    def _first(self, prior: Belief) -> FloatArray:
        row = prior.log_probability.copy()
        rows = self._observations.rows(0, 1)
        if rows.which[0] >= 0 and _kernels.hmm.observe(row, rows.logs[rows.which[0]]) == -math.inf:
            raise impossible(0)
        return row

    def _run(self, row: FloatArray, at: int, moved: int) -> tuple[int, int, int]:
        """Record a block from a row on, which becomes that of its end; moves recorded, and where it ended."""
        # Rows are made for as many observations as the moves of a block can reach, or as many as cost little.
        near = int(np.searchsorted(self._through, self._through[at - 1] + self._size))
        last = min(max(near, at + self._fewest), len(self._through))
        # Moves of a block are by one matrix. Where it changes, observations are one move apart.
        last = at + next(self._model.slot_runs(self._t + at, last - at))[1]
        rows, moves = self._observations.rows(at, last), self._observations.moves[at:last]
        recorded = (self._pointers, self._cycles, self._ends)
        observed = rows.logs, rows.which, moves
        count, reached, moved = _kernels.hmm.viterbi(self._matrix(at), _QUIET, *observed, row, moved, *recorded)
        if moved < 0:
            raise impossible(at + reached)
        return count, at + reached, moved

    def _matrix(self, at: int) -> Predecessors:
        """The matrix of the moves to a step in logs, and the logs of its jump."""
        columns = self._model.predecessors_at(self._t + at)
        if self._kept is None or self._kept[0] is not columns:
            chances = columns.data
            if len(columns.share):
                # A move that is stored may be a jump as well.
                chances = chances + np.repeat(columns.share, np.diff(columns.indptr))
            self._kept = columns, columns._replace(data=np.log(chances), share=np.log(columns.share))
        return self._kept[1]


def impossible(at: int) -> InvalidInput:
    """The refusal of an observation (from 0) that no possible state allows."""
    return InvalidInput(f"observations[{at}]", "one that no possible state allows", "observations of this chain")
