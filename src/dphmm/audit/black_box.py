"""`black_box`: a lower confidence bound on ε from nothing but what comes out, for our own samplers and for others.

For each pair an event is learned on one half of the draws and judged on the other, in both directions, by
Clopper-Pearson bounds whose error probabilities add up to alpha over all pairs. A mechanism that keeps ε is convicted
with probability at most alpha, whatever it is; one that breaks it is convicted if the draws show an event that does.

Proof: docs/proofs/black-box-audit.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dphmm._checks import exact_epsilon
from dphmm._notebook import html_lines
from dphmm.audit.events import MOST_SAMPLES, epsilon_below, in_halves, learn, samples_needed
from dphmm.audit.pairs import Bodies, required_pairs
from dphmm.errors import InvalidInput
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.session.answer import answer_under
from dphmm.session.plan import Plan
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.storage.public_tables import read_numbers
from dphmm.types import Bits, Exact, FloatArray

#: Draws of one answer: a function of how many, an array (n, d), or a file (.npy, .parquet, .csv) of numbers.
Source: TypeAlias = Callable[[int], Any] | Any
#: What an acquittal says it would have seen: a loss of so many ε on an event of this probability.
TIMES, PROBABILITY, POWER = 2, 0.1, 0.99
#: With fewer draws no event is learned; the power above needs many more.
_FEWEST = 16
#: Parts of a smaller one would be no floats.
_LEAST_ALPHA = 1e-300


@dataclass(frozen=True)
class PairBound:
    """The bounds of one pair: ``forward`` on log Pr(E | first) / Pr(E | second), ``backward`` the other way round."""

    name: str
    forward: float
    backward: float

    @property
    def lower(self) -> float:
        """The larger of the two."""
        return max(self.forward, self.backward)


@dataclass(frozen=True)
class BlackBoxVerdict:
    """What samples of a mechanism show, pair by pair.

    ``lower``: at confidence 1 - alpha some pair loses at least this. ``decided`` is False where too few draws were
    given to convict a loss of 2ε on an event of probability 1/10 with probability .99; ``needed`` a side would do, or
    are None where no number that can be drawn would. Without ``pairs`` nothing had to be kept apart.
    """

    epsilon: float
    alpha: float
    draws: int
    needed: int | None
    pairs: tuple[PairBound, ...]
    findings: tuple[str, ...]

    @property
    def lower(self) -> float:
        """The largest lower bound on a loss; at least 0, which is always one."""
        return max((pair.lower for pair in self.pairs if pair.lower > 0), default=0.0)

    @property
    def convicted(self) -> bool:
        """Whether the samples show a loss above ε, or outputs that no lattice mechanism gives."""
        return bool(self.findings)

    @property
    def decided(self) -> bool:
        """Whether an acquittal says anything."""
        return self.convicted or (self.needed is not None and self.draws >= self.needed)

    @property
    def lines(self) -> list[str]:
        """The verdict in prose."""
        bound = f"loses at least {self.lower:.4g} (confidence {1 - self.alpha:.9g}, {self.draws} draws a side)"
        if self.convicted:
            return [f"samples: CONVICTED; some pair {bound}", *(f"  {finding}" for finding in self.findings)]
        if not self.pairs:
            return ["samples: nothing to look at, for no two states must be kept apart here"]
        if self.needed is None:
            return [f"samples: undecided, needs n > {MOST_SAMPLES} draws a side: too many for any file to decide"]
        if not self.decided:
            return [f"samples: undecided, needs n = {self.needed} draws a side; there are {self.draws}"]
        return [
            f"samples: no loss above epsilon {self.epsilon:g} was found; some pair {bound}",
            f"  a loss of {TIMES} epsilon on a learned event of probability {PROBABILITY} would have been convicted "
            f"with probability {POWER}; a smaller or rarer one may not be",
        ]

    def _repr_html_(self) -> str:
        return html_lines(self.lines)

    def document(self) -> dict[str, Any]:
        """The verdict for machines."""
        return {
            "convicted": self.convicted,
            "decided": self.decided,
            "lower": self.lower,
            "epsilon": self.epsilon,
            "alpha": self.alpha,
            "draws": self.draws,
            "needed": self.needed,
            "findings": list(self.findings),
            "pairs": [
                {"name": p.name, "forward": _known(p.forward), "backward": _known(p.backward)} for p in self.pairs
            ],
        }


def _known(bound: float) -> float | None:
    """A bound that says something; JSON has no infinity."""
    return bound if math.isfinite(bound) else None


def black_box(
    pairs: Sequence[tuple[Source, Source]],
    epsilon: Exact,
    *,
    names: Sequence[str] | None = None,
    alpha: float = 1e-6,
    draws: int = 100_000,
    lattice: Lattice | None = None,
) -> BlackBoxVerdict:
    """Judge a mechanism by its samples.

    Parameters
    ----------
    pairs : for each pair of states that must not be told apart, draws of the one and of the other: a function of how
        many, an array (n, d) or (n,), or a file of numbers (.npy, .parquet, .csv). Draws must be independent.
    epsilon : what each pair may lose.
    alpha : the probability, over all pairs and both directions, of convicting a mechanism that keeps epsilon.
    draws : draws of each answer that a function is asked for; half of them teach, half of them judge.
    lattice : where outputs must lie; one off it convicts, because the digits of a float say what was added.

    Few draws, or none, are no error: the verdict is undecided, and says how many would do.

    Raises InvalidInput for no pairs, draws of different dimensions, and numbers that are not finite.
    """
    promised = float(exact_epsilon(epsilon))
    if not pairs:
        raise InvalidInput("pairs", "none", "at least one pair of sources of draws")
    if not _LEAST_ALPHA <= alpha < 1:
        raise InvalidInput("alpha", alpha, f"a probability above 0 and below 1, {_LEAST_ALPHA:g} or more")
    share = alpha / (2 * len(pairs))
    bounds, findings, fewest = [], [], None
    for number, (first, second) in enumerate(pairs):
        name = names[number] if names is not None else f"pair {number}"
        one, other = taken(first, draws, f"{name}, first"), taken(second, draws, f"{name}, second")
        if one.shape[1] != other.shape[1]:
            raise InvalidInput(name, f"draws of {one.shape[1]} and of {other.shape[1]} dimensions", "one dimension")
        fewest = min(len(one), len(other), *([] if fewest is None else [fewest]))
        bound = _bound(name, one, other, share)
        bounds.append(bound)
        if bound.lower > promised:
            findings.append(f"{name}: at least {bound.lower:.4g} is lost, more than epsilon {promised:g}")
        off = 0 if lattice is None else sum(int((~is_on_lattice(x, lattice)).sum()) for x in (one, other))
        if off:
            findings.append(f"{name}: {off} outputs are no lattice points: floats, whose last digits tell")
    judged = samples_needed(promised, TIMES * promised, PROBABILITY, share, POWER)
    assert fewest is not None
    # Half of them teach.
    needed = None if judged is None else 2 * judged
    return BlackBoxVerdict(promised, alpha, fewest, needed, tuple(bounds), tuple(findings))


def is_on_lattice(samples: Any, lattice: Lattice) -> Any:
    """Which outputs (n, d) are exactly origin + pitch·integers, bit for bit as a release writes them.

    Raises InvalidInput for another dimension, and for numbers that are not finite.
    """
    points = _rows(samples, "samples")
    if points.shape[1] != lattice.dimension:
        raise InvalidInput("samples", f"{points.shape[1]} dimensions", f"the lattice's {lattice.dimension}")
    nearest = np.rint((points - lattice.origin) / lattice.pitch)
    return np.asarray(np.all(lattice.origin + nearest * lattice.pitch == points, axis=1))


def taken(source: Source, n: int, name: str) -> FloatArray:
    """The draws (n, d) of a source."""
    if callable(source):
        return _rows(source(n), name)
    if isinstance(source, (str, os.PathLike)):
        return _rows(read_numbers(source), name)
    return _rows(source, name)


def _bound(name: str, one: FloatArray, other: FloatArray, share: float) -> PairBound:
    """Learn on the first halves, judge on the second ones: events are fixed before their draws are looked at."""
    if min(len(one), len(other)) < _FEWEST:
        return PairBound(name, -math.inf, -math.inf)
    (learned_one, judged_one), (learned_other, judged_other) = (in_halves(draws) for draws in (one, other))
    ahead, back = learn(learned_one, learned_other, share)
    n1, n0 = len(judged_one), len(judged_other)
    forward = [int(ahead.contains(draws).sum()) for draws in (judged_one, judged_other)]
    backward = [int(back.contains(draws).sum()) for draws in (judged_other, judged_one)]
    return PairBound(
        name,
        float(epsilon_below(forward[0], n1, forward[1], n0, share)),
        float(epsilon_below(backward[0], n0, backward[1], n1, share)),
    )


def _rows(samples: Any, name: str) -> FloatArray:
    try:
        given = np.asarray(samples, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(name, type(samples).__name__, "numbers (n, d)") from None
    rows = given[:, None] if given.ndim == 1 else given
    if rows.ndim != 2 or not rows.shape[1]:
        raise InvalidInput(name, f"an array of shape {given.shape}", "draws (n, d)")
    if not np.isfinite(rows).all():
        raise InvalidInput(name, "NaN or an infinity", "finite numbers")
    return rows


def sample_plan(
    plan: Plan,
    policy: PolicyGraph,
    space: StateSpace,
    *,
    pairs: list[tuple[int, int]] | None = None,
    most: int = 3,
    draws: int = 100_000,
    alpha: float = 1e-6,
    bits: Bits | None = None,
) -> BlackBoxVerdict:
    """Judge a plan by its samples, on the required pairs that reach farthest in its bodies, or on ``pairs``.

    It looks at the sampler itself, which `verify` does not. Nothing is released: the states drawn for are those of the
    pairs, whoever is where. ``bits``: None for the system's.
    """
    words = default_bits(bits)
    chosen = farthest_pairs(plan, policy, most) if pairs is None else pairs
    if not chosen:
        return BlackBoxVerdict(float(plan.epsilon), alpha, draws, 0, (), ())

    def drawn(state: int) -> Callable[[int], FloatArray]:
        def draw(n: int) -> FloatArray:
            z, _ = answer_under(plan, np.full(n, state, dtype=np.int64), words)
            return np.asarray(space.frame.to_answers(z))

        return draw

    sources = [(drawn(a), drawn(b)) for a, b in chosen]
    names = [f"states {a} and {b}" for a, b in chosen]
    return black_box(sources, plan.epsilon, names=names, alpha=alpha, draws=draws, lattice=space.frame)


def farthest_pairs(plan: Plan, policy: PolicyGraph, most: int) -> list[tuple[int, int]]:
    """The required pairs of largest norm, facet by facet, at most so many."""
    reaches, _ = Bodies.of(plan.mechanisms, plan.body_of).reached(required_pairs(policy, plan), plan.image)
    found: dict[tuple[int, int], float] = {}
    for reach in reaches:
        for a, b, far in reach.farthest():
            found[a, b] = max(found.get((a, b), 0.0), far)
    return sorted(found, key=lambda pair: (-found[pair], pair))[:most]
