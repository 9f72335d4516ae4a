"""What private learning is worth: held-out log-likelihood against all baselines, with fixed seeds, in one run.

The casino: two and three hidden states, nine sizes, public starts that are half the truth, nearly even and random. All
methods have the same true total. The gap of a fit is how much worse it is than the best of even symbols, private
independent symbols, a private chain of the symbols and the public start. Real sequences: a private chain of web
sessions and of careers, held-out people in five splits.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, at_least, below
from benchmarks.speed.timing import Spread
from dphmm.markov.private import fit_chain
from dphmm.markov.private.noisy_table import rates_of
from dphmm.markov.private.release import nearest_counts
from dphmm.samplers.body import LaplaceSampler
from dphmm.samplers.entropy import ReplayBits
from experiments.hmm_privacy.casino import SYMBOLS, Judge, casino, half_right, rolled
from experiments.hmm_privacy.methods import (
    Start,
    chain_of_symbols,
    even_symbols,
    independent_symbols,
    normally,
    seen,
    true_total,
)
from experiments.hmm_privacy.real import DATA_SETS, sequences_of

EPSILONS = ("0.1", "0.3", "1", "3")
#: Change of log-likelihood per symbol against normal training, that a fit from a start that is half the truth reaches.
TARGETS = {2: (-0.050, -0.017, -0.0057, -0.0029), 3: (-0.032, -0.017, -0.0055, -0.0022)}
#: By how much a fit may be worse than the best baseline.
GAP = 0.005
BASELINES = ("even symbols", "independent symbols", "chain of symbols", "start")
STARTS = ("half the truth", "nearly even", "random")
DATA = Path(os.environ.get("DPHMM_DATA") or Path(__file__).parents[3] / "shared" / "data")


def figures(effort: Effort) -> Iterator[Figure]:
    """The casino, known states, real sequences, time."""
    for states in (2, 3):
        yield from _casino(states, effort.pick(1, 3))
    yield _known_states(effort.pick(3, 12))
    for data, epsilon, target in (("msnbc323", "1", -2.47), ("mvad", "0.1", -0.277)):
        yield from _real(data, epsilon, target, effort.pick(2, 5))
    yield _time()


def _spread(values: list[float]) -> Spread:
    """The mean, and the means of the data sets around it by two standard errors."""
    mean, error = float(np.mean(values)), float(np.std(values) / max(1, len(values) - 1) ** 0.5)
    return Spread(mean, mean - 2 * error, mean + 2 * error, len(values))


def _starts(truth: Start, random: np.random.Generator) -> dict[str, Start]:
    n = len(truth.initial)
    even, sticky = np.full(n, 1 / n), (np.eye(n) + 1 / n) / 2
    near = 0.95 / SYMBOLS + 0.05 * random.dirichlet(np.ones(SYMBOLS), n)
    wild = Start(even, random.dirichlet(np.ones(n), n), random.dirichlet(np.ones(SYMBOLS), n))
    return dict(zip(STARTS, (half_right(truth, random), Start(even, sticky, near), wild), strict=True))


def _casino(states: int, data_sets: int) -> Iterator[Figure]:
    changes: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for length in (10, 20, 30):
        for people in (100, 200, 300):
            for k in range(data_sets):
                _one_casino(states, length, people, k, changes)
    for kind in STARTS:
        for at, epsilon in enumerate(EPSILONS):
            name = f"{states} states, start {kind}, nominal ε {epsilon}"
            fitted = changes[kind, epsilon, "n-grams"]
            target = at_least(TARGETS[states][at]) if kind == STARTS[0] else None
            means = {baseline: float(np.mean(changes[kind, epsilon, baseline])) for baseline in BASELINES}
            note = ", ".join(f"{baseline} {mean:.4f}" for baseline, mean in means.items())
            yield Figure("private-learning", f"{name}: change of log-likelihood", _spread(fitted), "", target, note)
            gap = max(means.values()) - float(np.mean(fitted))
            yield Figure("private-learning", f"{name}: gap", Spread(gap, gap, gap, 1), "", below(GAP))


def _one_casino(
    states: int, length: int, people: int, k: int, changes: dict[tuple[str, str, str], list[float]]
) -> None:
    random = np.random.default_rng([states, length, people, k])
    truth = casino(states)
    rolls, held_out = rolled(truth, people, length, random), rolled(truth, 300, length, random)
    for kind, start in _starts(truth, random).items():
        judge = Judge(normally(half_right(truth, np.random.default_rng(k)), rolls), held_out)
        for epsilon in EPSILONS:
            total = true_total(Fraction(epsilon), length)
            seed = int(random.integers(2**31))
            fitted = start.model().fit_private(
                list(rolls), epsilon=total, max_length=length, about=people, bits=ReplayBits(seed)
            )
            models = {
                "n-grams": fitted,
                "even symbols": even_symbols(SYMBOLS),
                "independent symbols": independent_symbols(list(rolls), SYMBOLS, total, length, ReplayBits(seed)),
                "chain of symbols": chain_of_symbols(list(rolls), SYMBOLS, total, length, ReplayBits(seed))[0],
                "start": start.model(),
            }
            for method, model in models.items():
                changes[kind, epsilon, method].append(float(str(judge.as_likely(model)["change"])))


def _known_states(data_sets: int) -> Figure:
    lost = []
    for k in range(data_sets):
        random, truth = np.random.default_rng([57, k]), casino(2)
        model = truth.model()
        pairs = [model.sample(20, random_state=random) for _ in range(500)]
        rolls, paths = [rows.ravel() for rows, _ in pairs], [path for _, path in pairs]
        hmm = dphmm.markov.CategoricalHMM(2, n_features=SYMBOLS)
        total = true_total(Fraction(1), 20)
        hmm.fit_private(rolls[:300], states=paths[:300], epsilon=total, max_length=20, bits=ReplayBits(k))
        right = [float(np.mean(one.predict(rolls[300:]) == np.concatenate(paths[300:]))) for one in (model, hmm)]
        lost.append(right[0] - right[1])
    name = "known states, nominal ε 1: right states lost against the true model"
    return Figure("private-learning", name, _spread(lost), "", below(0.03))


def _real(name: str, epsilon: str, target: float, splits: int) -> Iterator[Figure]:
    data, found = DATA_SETS[name], defaultdict[tuple[str, str], list[float]](list)
    title = f"{name}, ε {epsilon}: log-likelihood of a move"
    if not (DATA / data.file).is_file():
        yield Figure("private-learning", title, None, "", at_least(target), "no data here: set DPHMM_DATA")
        return
    people = [sequence[: data.length] for sequence in sequences_of(DATA / data.file, data)]
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(people))
        cut = len(people) * 4 // 5
        known, held_out = [people[k] for k in order[:cut]], [people[k] for k in order[cut:]]
        plain = dphmm.MarkovModel.fit(known, data.symbols, smoothing=1.0)
        for each in EPSILONS:
            found["not private", each].append(_of_a_move(plain.transition.toarray(), held_out))
            for draw in range(4):
                words, given = ReplayBits(10 * split + draw), {"epsilon": each, "max_length": data.length}
                model, _ = fit_chain(known, data.symbols, **given, initial="occupancy", bits=words)
                found["chain", each].append(_of_a_move(model.transition.toarray(), held_out))
                alone = independent_symbols(known, data.symbols, Fraction(each), data.length, words)
                rows = np.tile(alone.emissionprob_, (data.symbols, 1))
                found["independent symbols", each].append(_of_a_move(rows, held_out))
                hmm = dphmm.markov.CategoricalHMM(data.states, n_features=data.symbols, random_state=draw)
                hmm.fit_private(known, **given, about=len(known), n_starts=3, bits=words)
                judged = {"hidden model": hmm, "chain of symbols": seen(model), "independent": alone}
                for method, learned in judged.items():
                    found[method, each].append(learned.score(held_out) / sum(map(len, held_out)))
    note = f"even {-np.log(data.symbols):.3f}, " + ", ".join(
        f"{method} {np.mean(found[method, epsilon]):.3f}" for method in ("independent symbols", "not private")
    )
    yield Figure("private-learning", title, _spread(found["chain", epsilon]), "", at_least(target), note)
    for each in EPSILONS:
        hidden = f"{name}, ε {each}: hidden model from drawn starts, by rule"
        means = {method: float(np.mean(found[method, each])) for method in ("independent", "chain of symbols")}
        means["even symbols"] = -float(np.log(data.symbols))
        note = ", ".join(f"{baseline} {mean:.4f}" for baseline, mean in means.items())
        yield Figure("private-learning", hidden, _spread(found["hidden model", each]), "", None, note)
        gap = max(means.values()) - float(np.mean(found["hidden model", each]))
        yield Figure("private-learning", f"{hidden}: gap", Spread(gap, gap, gap, 1), "", below(GAP))


def _of_a_move(rows: np.ndarray, held_out: list[np.ndarray]) -> float:
    pairs = [np.stack([sequence[:-1], sequence[1:]]) for sequence in held_out]
    i, j = np.concatenate(pairs, axis=1)
    return float(np.log(rows[i, j]).mean())


def _time() -> Figure:
    """CPU time of a private chain of 20 states from 10^5 steps, against the same fit with clipping in its place."""
    n, ratios = 20, []
    walks = list(np.random.default_rng(0).integers(0, n, (1_000, 100)))
    rows, columns = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
    for k in range(10):
        began = time.process_time()
        fit_chain(walks, n, 1, 100, initial="occupancy", bits=ReplayBits(k))
        fitted = time.process_time()
        noisy = (250 + LaplaceSampler(99).draw(n * n, ReplayBits(k))).astype(float)
        drawn = time.process_time()
        nearest_counts(noisy, np.arange(n + 1) * n)
        clipped = time.process_time()
        rates_of(noisy[None], rows, columns, n, 99.0)
        rated = time.process_time() - clipped
        ratios.append((fitted - began) / (fitted - began - rated + clipped - drawn))
    # The first fit loads the compiled loops.
    spread = Spread.of(ratios[1:])
    return Figure(
        "private-learning", "a chain of 20 states from 100,000 steps, against clipping", spread, "x", below(2)
    )
