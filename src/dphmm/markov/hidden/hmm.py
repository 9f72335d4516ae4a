"""CategoricalHMM: hidden Markov models of symbols, with hmmlearn's names and scikit-learn's conventions."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any, TypeVar

import numpy as np

from dphmm._checks import one_of, whole
from dphmm._kernels.hmm import pick, simulate
from dphmm.accounting.event import LearningEvent, NotPrivateEvent
from dphmm.errors import InvalidInput
from dphmm.markov.hidden import inference
from dphmm.markov.hidden.baum_welch import ExpectedCounts, Monitor, Priors, csr, em, updated
from dphmm.markov.hidden.labelled import labelled_counts
from dphmm.markov.hidden.parameters import (
    ATTRIBUTES,
    Observations,
    Parameters,
    checked,
    drawn,
    event_of,
    is_as_left,
    letters,
    observations,
    random_generator,
    remember,
)
from dphmm.types import Exact, FloatArray, IntArray

_DECODERS = ("viterbi", "map")
#: Most numbers in a table of parameters: two gigabytes.
_MOST_NUMBERS = 2**28

E = TypeVar("E", bound="Estimator")


class Estimator:
    """The base of estimators by scikit-learn's rules, without needing scikit-learn.

    Parameters are the arguments of ``__init__``, each kept as an attribute of its name.
    """

    #: Parameters that are only other names of others.
    _synonyms: frozenset[str] = frozenset()

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {argument.name: argument.default for argument in arguments}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as they were given."""
        return {name: getattr(self, name) for name in sorted(self._defaults())}

    def set_params(self: E, **params: Any) -> E:
        """Change parameters by name."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise InvalidInput("set_params", name, "one of " + ", ".join(sorted(known)))
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """The tags for scikit-learn; it is imported here only, where it is already there."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type="density_estimator", target_tags=TargetTags(required=False))

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if name not in self._synonyms and repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


class CategoricalHMM(Estimator):
    """A hidden Markov model whose states emit symbols 0..V-1.

    Parameters
    ----------
    n_states : the number of hidden states; ``n_components`` is another name of it.
    startprob_prior, transmat_prior, emissionprob_prior : Dirichlet priors, numbers or arrays; 1 is none.
    n_features : the number of symbols; by default as many as the data show. `fit` does not change it: their number
        is ``emissionprob_.shape[1]``.
    algorithm : the method of `decode`: "viterbi", the likeliest path, or "map", each one by itself.
    random_state : a seed or a NumPy generator for random starts and `sample`.
    n_iter, tol : learning ends after ``n_iter`` iterations, or once one gains less than ``tol`` of log-likelihood.
    n_starts : random starts; the one that ends likeliest is kept.
    params, init_params : those of "s" (startprob_), "t" (transmat_) and "e" (emissionprob_) that `fit` learns, and
        those drawn at random first, set or not. To start from your own, set the attribute and leave its letter out of
        ``init_params``; to freeze it, leave the letter out of ``params`` too.
    verbose : print each iteration to standard error.
    checkpoint : True to compute forward rows twice rather than keep them all: "auto" does it for a sequence that
        would need more than 256 MB.

    Attributes
    ----------
    startprob_ (S,), transmat_ (S, S), emissionprob_ (S, V) : the model. A zero of startprob_ or transmat_ stays zero.
        ``transmat_`` may be set to a scipy.sparse array: it stays one, and only its entries cost time.
    monitor_ : ``history`` (log-likelihood before each update), ``iter``, ``converged``.

    ``X`` is an integer array (m,) or (m, 1) with ``lengths`` of its sequences, or a list of sequences. An observation
    that is impossible under the model is an InvalidInput naming sequence and position. Nothing here is private.

    A fit sets the attributes, so one thread at a time may fit; threads may share a model that is fitted.
    """

    startprob_: FloatArray
    transmat_: Any
    emissionprob_: FloatArray
    monitor_: Monitor
    _synonyms = frozenset({"n_components"})

    def __init__(
        self,
        n_states: int | None = None,
        startprob_prior: Any = 1.0,
        transmat_prior: Any = 1.0,
        *,
        emissionprob_prior: Any = 1.0,
        n_components: int | None = None,
        n_features: int | None = None,
        algorithm: str = "viterbi",
        random_state: Any = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        n_starts: int = 1,
        verbose: bool = False,
        params: str = "ste",
        init_params: str = "ste",
        checkpoint: bool | str = "auto",
    ) -> None:
        if n_states is not None and n_components is not None and n_states != n_components:
            raise InvalidInput("n_components", n_components, f"the same as n_states, {n_states}, or neither")
        self.n_states = n_components if n_states is None else n_states
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.emissionprob_prior = emissionprob_prior
        self.n_features = n_features
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.n_starts = n_starts
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.checkpoint = checkpoint

    @property
    def n_components(self) -> int | None:
        """hmmlearn's name of ``n_states``."""
        return self.n_states

    @n_components.setter
    def n_components(self, value: int | None) -> None:
        self.n_states = value

    def __sklearn_is_fitted__(self) -> bool:
        """True if there is a model, learned or set."""
        return all(hasattr(self, name) for name in ATTRIBUTES.values())

    @property
    def parameters(self) -> Parameters:
        """The model as it is now, checked."""
        for name in ATTRIBUTES.values():
            if not hasattr(self, name):
                raise InvalidInput(name, "not set", "a model that is fitted, or whose three attributes are set")
        n = np.shape(self.startprob_)[0] if self.n_states is None else self._size()
        return checked(self.startprob_, self.transmat_, self.emissionprob_, n, self._symbols())

    @property
    def privacy_(self) -> LearningEvent | NotPrivateEvent:
        """The cost of learning these very parameters: the event of a private fit, or one without an epsilon.

        Parameters that were changed since have a NotPrivateEvent. AttributeError before a private fit, and after one
        without privacy.
        """
        event = event_of(self)
        if event is None:
            raise AttributeError("privacy_: there is none before fit_private, or after fit")
        return event

    def fit(self, X: Any, lengths: Any = None, *, states: Any = None) -> CategoricalHMM:
        """Learn from sequences without privacy: by Baum-Welch, or by counting where ``states`` are known.

        states : the hidden states, in the shape of X. Rows of a state that does not occur are even, or as they were set
            where their letter is not in ``init_params``.

        Examples
        --------
        >>> hmm = CategoricalHMM(2, n_features=2).fit([[0, 0, 1]], states=[[0, 0, 1]])
        >>> hmm.transmat_.tolist(), hmm.emissionprob_.tolist()
        ([[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]])
        """
        observed = observations(X, lengths, self._symbols())
        n_symbols = self._symbols() or self._kept_symbols(observed)
        self._check_size(n_symbols)
        learned, tol = letters(self.params, "params"), _tolerance(self.tol)
        if states is not None:
            self._learned(*self._counted(observed, states, lengths, n_symbols, learned))
            return self
        n_iter, n_starts = whole(self.n_iter, "n_iter", 1), whole(self.n_starts, "n_starts", 1)
        starting = self._kept()
        random = random_generator(self.random_state)
        priors = Priors(self.startprob_prior, self.transmat_prior, self.emissionprob_prior)
        best, best_score = None, -np.inf
        for _ in range(n_starts if len(starting) < len(ATTRIBUTES) else 1):
            run = em(
                drawn(starting, self._size(), n_symbols, random),
                observed,
                n_iter=n_iter,
                tol=tol,
                params=learned,
                priors=priors,
                verbose=self.verbose,
                checkpoint=self._checkpoint(),
            )
            score = _score(run[0], observed) if n_starts > 1 else 0.0
            if score > best_score:
                best, best_score = run, score
        assert best is not None
        self._learned(*best)
        return self

    def fit_private(
        self, X: Any, lengths: Any = None, *, epsilon: Exact, max_length: int, **options: Any
    ) -> CategoricalHMM:
        """Learn with differential privacy and set ``privacy_``; see :func:`dphmm.markov.private.fit_private`."""
        from dphmm.markov.private import fit_private

        # It leaves nothing behind of an earlier fit without privacy.
        fit_private(self, X, lengths, epsilon=epsilon, max_length=max_length, **options)
        return self

    def score(self, X: Any, lengths: Any = None) -> float:
        """The log-likelihood of sequences."""
        parameters = self.parameters
        return _score(parameters, observations(X, lengths, parameters.n_symbols))

    def score_samples(self, X: Any, lengths: Any = None) -> tuple[float, FloatArray]:
        """The log-likelihood, and P(state | its sequence) for every symbol (m, S)."""
        parameters = self.parameters
        observed = observations(X, lengths, parameters.n_symbols)
        posteriors, logs = inference.posteriors(parameters, observed, checkpoint=self._checkpoint())
        return float(logs.sum()), posteriors

    def predict_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """P(state | its sequence) for every symbol (m, S)."""
        return self.score_samples(X, lengths)[1]

    def decode(self, X: Any, lengths: Any = None, algorithm: str | None = None) -> tuple[float, IntArray]:
        """Hidden states (m,), and their log-probability with the symbols; of "map", hmmlearn's sum of posteriors."""
        chosen = one_of(self.algorithm if algorithm is None else algorithm, _DECODERS, "algorithm")
        if chosen == "map":
            posteriors = self.predict_proba(X, lengths)
            return float(posteriors.max(axis=1).sum()), posteriors.argmax(axis=1)
        parameters = self.parameters
        path, logs = inference.viterbi(parameters, observations(X, lengths, parameters.n_symbols))
        return float(logs.sum()), path

    def predict(self, X: Any, lengths: Any = None) -> IntArray:
        """Hidden states (m,)."""
        return self.decode(X, lengths)[1]

    def sample_posterior(
        self,
        X: Any,
        lengths: Any = None,
        n_paths: int = 1,
        random_state: Any = None,
    ) -> IntArray:
        """Hidden paths (n_paths, m) drawn given the symbols, each with its posterior probability."""
        parameters = self.parameters
        observed = observations(X, lengths, parameters.n_symbols)
        return inference.draw_paths(
            parameters, observed, whole(n_paths, "n_paths", 1), self._random(random_state), self._checkpoint()
        )

    def sample(
        self, n_samples: int = 1, random_state: Any = None, currstate: int | None = None
    ) -> tuple[IntArray, IntArray]:
        """Simulate one sequence: symbols (n_samples, 1) and states (n_samples,), from ``currstate`` if it is given."""
        parameters = self.parameters
        n = whole(n_samples, "n_samples", 1)
        uniforms = self._random(random_state).random((n, 2))
        states, symbols = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        if currstate is None:
            states[0] = pick(parameters.initial, uniforms[0, 0])
        elif whole(currstate, "currstate", 0) >= parameters.n_states:
            raise InvalidInput("currstate", currstate, f"a state from 0 to {parameters.n_states - 1}")
        else:
            states[0] = currstate
        simulate(parameters.compressed_rows, parameters.emission, uniforms, states, symbols)
        return symbols[:, None], states

    def get_stationary_distribution(self) -> FloatArray:
        """The distribution of states (S,) that a step leaves as it is."""
        return self.parameters.stationary

    def _counted(
        self, observed: Observations, states: Any, lengths: Any, n_symbols: int, learned: str
    ) -> tuple[Parameters, Monitor]:
        """The likeliest parameters of labelled sequences, and a monitor of no iteration."""
        n = self._size()
        labels = observations(states, lengths, n)
        if not np.array_equal(labels.ends, observed.ends):
            raise InvalidInput("states", "sequences of other lengths than those of X", "one state for each symbol")
        starting = self._kept()
        even = {"s": np.full(n, 1 / n), "t": np.full((n, n), 1 / n), "e": np.full((n, n_symbols), 1 / n_symbols)}
        tables = {**even, **starting}
        start = checked(tables["s"], tables["t"], tables["e"], n, n_symbols)
        starts, moves, emissions = labelled_counts(labels.symbols, observed.symbols, observed.ends, n, n_symbols)
        if start.is_sparse:
            entries = start.compressed_rows
            of_row = np.repeat(np.arange(n), np.diff(entries.indptr))
            moves = csr(entries, moves[of_row, entries.indices], n)
        counts = ExpectedCounts(0.0, starts.astype(np.float64), moves, emissions.astype(np.float64))
        priors = Priors(self.startprob_prior, self.transmat_prior, self.emissionprob_prior)
        return updated(start, counts, learned, priors), Monitor(0.0, 0)

    def _kept(self) -> dict[str, Any]:
        """The parameters that the caller has set and `fit` starts from, by letter."""
        redrawn = letters(self.init_params, "init_params")
        starting = {}
        for letter, name in ATTRIBUTES.items():
            if hasattr(self, name) and letter not in redrawn:
                starting[letter] = getattr(self, name)
            elif hasattr(self, name) and not is_as_left(self, name):
                message = f"{name} was set, and is drawn anew: leave {letter!r} out of init_params to start from it"
                warnings.warn(message, UserWarning, stacklevel=3)
        return starting

    def _learned(self, parameters: Parameters, monitor: Monitor) -> None:
        self.startprob_, self.transmat_ = parameters.initial, parameters.transition
        self.emissionprob_, self.monitor_ = parameters.emission, monitor
        # What a file said of the parameters before.
        self.__dict__.pop("provenance_", None)
        remember(self, self.params)

    def _size(self) -> int:
        if self.n_states is None:
            raise InvalidInput("n_states", None, "a number of hidden states")
        return whole(self.n_states, "n_states", 1)

    def _check_size(self, n_symbols: int) -> None:
        """Refuse tables that no memory holds, before they are made."""
        n = self._size()
        if n * n_symbols > _MOST_NUMBERS:
            expected = f"at most {_MOST_NUMBERS // n} symbols for {n} states; number them 0, 1, .. without gaps"
            raise InvalidInput("n_features", "more than that" if self.n_features is None else n_symbols, expected)
        if n * n > _MOST_NUMBERS and "t" in self.init_params:
            expected = f"at most {math.isqrt(_MOST_NUMBERS)}, or a sparse transmat_ to start from"
            raise InvalidInput("n_states", n, expected)

    def _symbols(self) -> int | None:
        return None if self.n_features is None else whole(self.n_features, "n_features", 1)

    def _kept_symbols(self, observed: Observations) -> int:
        if hasattr(self, "emissionprob_") and "e" not in self.init_params:
            return int(np.shape(self.emissionprob_)[-1])
        return observed.n_symbols

    def _checkpoint(self) -> bool | str:
        return (
            self.checkpoint if isinstance(self.checkpoint, bool) else one_of(self.checkpoint, ("auto",), "checkpoint")
        )

    def _random(self, given: Any) -> Any:
        return random_generator(self.random_state if given is None else given)


def _score(parameters: Parameters, observed: Observations) -> float:
    return float(inference.log_likelihoods(parameters, observed).sum())


def _tolerance(given: Any) -> float:
    try:
        tol = float(given)
    except (TypeError, ValueError):
        tol = np.nan
    if np.isnan(tol):
        raise InvalidInput("tol", given, "a number")
    return tol
