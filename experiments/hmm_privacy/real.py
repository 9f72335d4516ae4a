"""Real sequences: how likely held-out ones are under models learned with and without privacy.

Nobody knows their hidden states, so there is no path to compare with; only the likelihood of sequences is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import numpy as np

from dphmm import MarkovModel
from dphmm.errors import InvalidInput
from dphmm.markov import CategoricalHMM
from dphmm.storage import load_trajectories
from dphmm.storage.importers import IMPORTERS
from dphmm.types import IntArray
from experiments.experiment import Cell, OwnSequences, Row, Settings, bits_of, skipped
from experiments.hmm_privacy.methods import (
    BETTER,
    CHAIN,
    EVEN,
    INDEPENDENT,
    NOT_PRIVATE,
    chain_of_symbols,
    described,
    event_of,
    independent_symbols,
    number,
    quietly,
    seen,
)

BAUM_WELCH = "Baum-Welch, not private"
ORDINARY_CHAIN = "chain, not private"


@dataclass(frozen=True)
class DataSet:
    """A file of sequences, and the public numbers that everything but the data is taken from.

    ``length``: longer sequences are cut, those that models are judged by too. ``states``: hidden ones.
    """

    file: str
    symbols: int
    states: int
    length: int
    columns: str | None = None
    user: str | None = None


DATA_SETS = {
    "msnbc323": DataSet("msnbc323.seq.gz", symbols=17, states=5, length=50),
    "mvad": DataSet("mvad.csv.gz", symbols=6, states=6, length=72, columns="Jul.93:Jun.99", user="id"),
}


def cells(settings: Settings, splits: int, draws: int) -> Iterator[Cell]:
    """A cell for each split of each file that is there, and one that says what is not; of one's own rows alone."""
    if settings.own is not None:
        people = sequences_of(*_source(settings, settings.own.name))
        if len(people) < 5:
            came = f"{settings.own.file}, with sequences of {len(people)} people"
            raise InvalidInput("--trajectories", came, "at least 5: four fifths are learned from, the others judge")
    for name in DATA_SETS if settings.own is None else [settings.own.name]:
        if settings.own is None and (reason := settings.missing(DATA_SETS[name].file)):
            yield skipped(name, reason)
        else:
            for split in range(splits):
                yield {"part": "real", "data": name, "split": split, "draws": draws}


def _source(settings: Settings, name: str) -> tuple[Path, DataSet]:
    """The file of a name, and its public numbers."""
    if isinstance(own := settings.own, OwnSequences):
        return own.file, DataSet("", own.symbols, own.states, own.length)
    assert settings.data is not None
    return settings.data / DATA_SETS[name].file, DATA_SETS[name]


def measure(settings: Settings, cell: Cell, epsilons: tuple[str, ...], seed: np.random.SeedSequence) -> list[Row]:
    """Rows of one split: four fifths of the people are learned from, the others judge."""
    file, data = _source(settings, str(cell["data"]))
    people = [sequence[: data.length] for sequence in sequences_of(file, data)]
    random = np.random.default_rng(seed)
    order = random.permutation(len(people))
    cut = len(people) * 4 // 5
    known, held_out = [people[k] for k in order[:cut]], [people[k] for k in order[cut:]]
    start = int(random.integers(2**31))
    ordinary = _per_symbol(_ordinary(data, known, start), held_out)
    chain = _per_symbol(_ordinary_chain(data, known), held_out)
    fixed: list[Row] = [
        {"method": ORDINARY_CHAIN, "guarantee": NOT_PRIVATE, "loglik": chain},
        {"method": BAUM_WELCH, "guarantee": NOT_PRIVATE, "loglik": ordinary},
        {"method": EVEN, "guarantee": "pure", "true_epsilon": 0.0, "delta": 0.0, "loglik": -np.log(data.symbols)},
    ]
    rows = [{**row, "epsilon": float(epsilon)} for row in fixed for epsilon in epsilons]
    for epsilon in epsilons:
        for draw in range(number(cell, "draws")):
            for name, learned, event in _private(data, known, epsilon, draw, start + draw, seed):
                row: Row = {"method": name, "epsilon": float(epsilon), "draw": draw, **described(event)}
                rows.append({**row, "loglik": _per_symbol(learned, held_out)})
    return [{**row, "change": float(str(row["loglik"])) - ordinary} for row in rows]


def _private(
    data: DataSet, known: list[IntArray], epsilon: str, draw: int, start: int, seed: np.random.SeedSequence
) -> Iterator[tuple[str, CategoricalHMM, object]]:
    given = {"epsilon": epsilon, "max_length": data.length}
    for method in BETTER:
        hmm = CategoricalHMM(data.states, n_features=data.symbols, random_state=start)
        climbing = {"n_starts": 3} if method.options["method"] == "ngrams" else {}
        options = {**given, **method.given(len(known)), **climbing, "bits": bits_of(seed, method.name, epsilon, draw)}
        yield method.name, quietly(hmm, known, **options), event_of(hmm)
    words = bits_of(seed, CHAIN, epsilon, draw)
    yield CHAIN, *chain_of_symbols(known, data.symbols, Fraction(epsilon), data.length, words)
    words = bits_of(seed, INDEPENDENT, epsilon, draw)
    alone = independent_symbols(known, data.symbols, Fraction(epsilon), data.length, words)
    yield INDEPENDENT, alone, event_of(alone)


def _ordinary_chain(data: DataSet, known: list[IntArray]) -> CategoricalHMM:
    return seen(MarkovModel.fit(known, data.symbols, smoothing=1.0, initial="occupancy"))


def _ordinary(data: DataSet, known: list[IntArray], start: int) -> CategoricalHMM:
    """Baum-Welch; a hundredth of an observation of each symbol, so that none that only others made is impossible."""
    hmm = CategoricalHMM(
        data.states, n_features=data.symbols, emissionprob_prior=1.01, n_starts=3, n_iter=100, random_state=start
    )
    return hmm.fit(known)


def _per_symbol(model: CategoricalHMM, sequences: list[IntArray]) -> float:
    return model.score(sequences) / sum(map(len, sequences))


@lru_cache
def sequences_of(path: Path, data: DataSet) -> tuple[IntArray, ...]:
    """One sequence of symbol numbers a person, in order of the names of symbols.

    A published ``file`` has its own layout; one's own is a table of user, state and perhaps t.
    """
    if data.file:
        rows = IMPORTERS["sequences"](path, columns=data.columns, user_column=data.user).trajectories
    else:
        rows = load_trajectories(path).trajectories
    if rows.state is None:
        raise InvalidInput(str(path), "no column state", "rows of user and state")
    names, symbols = np.unique(np.asarray(rows.state, dtype=str), return_inverse=True)
    if len(names) > data.symbols:
        raise InvalidInput(str(path), f"{len(names)} symbols", f"at most {data.symbols}")
    when = next((of for of in (rows.step, rows.time) if of is not None), np.arange(len(symbols)))
    order = np.lexsort((np.asarray(when), rows.user))
    _, begins = np.unique(rows.user[order], return_index=True)
    return tuple(np.split(symbols[order].astype(np.int64), begins[1:]))
