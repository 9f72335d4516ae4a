"""Calibrate the noise of a query over dependent tuples: the mechanisms, and their proofs.

Every mechanism comes down to a *rate*: Laplace noise of scale 1/rate in the query's units, under which changing tuple
j alone loses at most a_j = Δ_j·rate. The claim is dependent differential privacy: for every tuple i and all values x, y
of it, log Pr(output | D_i = x) − log Pr(output | D_i = y) <= ε, the other tuples following the model.

A claim is *proved* by a theorem of the mechanism, by the recursion for chains and trees at the rate used, or by exact
computation for this model and this query. Whatever is not proved is not called ε-DDP. `compare` calibrates several
mechanisms for one model, one query and one ε. Where a rate has no closed form, root finding proposes it and an
evaluation of the loss at the rounded rate confirms it.

Proofs: docs/proofs/dependent-markov.md, docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from dphmm._cached import cached_property
from dphmm._checks import exact_epsilon, one_of
from dphmm._notebook import html_table
from dphmm.accounting.records import in_short
from dphmm.dependent._chain import Chain
from dphmm.dependent._coefficients import (
    FARTHEST,
    ExactLoss,
    Model,
    Query,
    Sum,
    checked_sensitivities,
    exact_loss,
    laplace_losses,
    largest_loss,
    size_of,
)
from dphmm.dependent._models import Coefficients, Friendship, JointTable, Tree
from dphmm.errors import InvalidInput, Refused
from dphmm.plot.axes import axes
from dphmm.types import Exact

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


#: Binary digits that a rate keeps.
_DIGITS = 44
#: What is this near below the promise is taken.
_NEAR = 2.0**-37
#: For a loss that is infinite.
_LARGE = 1e300


def largest_rate(loss: Callable[[float], float], epsilon: Fraction, low: float, high: float) -> Fraction:
    """A rate with loss(rate) <= epsilon, as large as about 10⁻¹¹ of it allows. ``loss`` never falls; loss(low) does.

    Rates are rounded down to short binary fractions before the loss is evaluated: the returned rate was looked at, and
    is not taken from the root finder on trust.
    """
    goal = rounded_down(epsilon)
    known: dict[float, tuple[Fraction, float]] = {}

    def looked_at(at: float, rate: float) -> float:
        if at not in known:
            rounded = short(Fraction(rate))
            known[at] = rounded, loss(float(rounded))
        return known[at][1]

    def over(at: float) -> float:
        # Nearly a straight line where there is much noise. Nothing infinite goes into an interpolation.
        reached = looked_at(at, math.exp(at))
        near = goal * (1.0 - _NEAR) <= reached <= goal
        return 0.0 if near else math.log(min(max(reached, 1 / _LARGE), _LARGE) / goal)

    below, above = None, low
    while looked_at(math.log(above), above) <= goal and above < high:
        lost = known[math.log(above)][1]
        below, above = above, min(high, above * max(2.0, 1.1 * goal / lost if lost else math.inf))
    if known[math.log(above)][1] > goal:
        if below is None:
            raise ArithmeticError("the loss at the least rate is above epsilon")
        brentq(over, math.log(below), math.log(above), xtol=1e-11, rtol=1e-13, maxiter=200)
    return max(rate for rate, reached in known.values() if reached <= goal)


def rounded_down(value: Fraction) -> float:
    """The largest float that is not above it."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def short(rate: Fraction) -> Fraction:
    """The rate, rounded down to 44 binary digits."""
    shift = _DIGITS - (rate.numerator.bit_length() - rate.denominator.bit_length())
    return Fraction(math.floor(rate * Fraction(2) ** shift)) / Fraction(2) ** shift


#: Exact losses are floats: a claim rests on one only where this share of ε is left over.
MARGIN = 1e-9

MECHANISMS = (
    "markov",
    "dpm",
    "independent",
    "group",
    "optimum",
)


@dataclass(frozen=True)
class Calibration:
    """Noise for one query, and its losses.

    ``rate``: 1/scale, exact. ``epsilon``: the bound that was asked for. ``per_record``: the loss of changing one tuple
    alone, max Δ_j·rate; over several releases this adds up, ε does not. ``true_epsilon``: the exact loss of a sum under
    this noise, where computed. ``bound``: the proved bound of the loss of chains and trees, for any query.
    ``proved`` and ``why``.
    """

    mechanism: str
    model: str
    epsilon: Fraction
    rate: Fraction
    per_record: Fraction
    true_epsilon: float | None
    bound: float | None
    proved: bool
    why: str

    @property
    def scale(self) -> Fraction:
        """Laplace scale of the noise, in the query's units."""
        return 1 / self.rate

    def claim(self) -> Fraction:
        """ε, if it is proved that the release loses no more; Refused otherwise."""
        if not self.proved:
            promise = in_short(self.epsilon, down=True)
            raise Refused(f'"{self.mechanism}" is not {promise}-DDP for this {self.model}: {self.why}')
        return self.epsilon


def calibrate(
    model: Model, query: Query, epsilon: Exact, mechanism: str | None = None, *, exact: bool = True
) -> Calibration:
    """Noise for a query, by one mechanism: "markov" for chains and trees if none is named, otherwise "group".

    ``exact``: compute the true loss where that is possible. Raises InvalidInput where a mechanism has nothing to say.
    """
    promised = exact_epsilon(epsilon)
    default = "markov" if isinstance(model, (Chain, Tree)) else "group"
    name = one_of(default if mechanism is None else mechanism, MECHANISMS, "mechanism")
    case = Case(model, query, promised, exact)
    return case.judged(name, _RATES[name](case))


class Case:
    """A model, a query and an ε, with the facts about them that several mechanisms need."""

    def __init__(self, model: Model, query: Query, epsilon: Fraction, exact: bool = True) -> None:
        if not isinstance(model, (Chain, Tree, Friendship, JointTable, Coefficients)):
            raise InvalidInput("model", type(model).__name__, "a Chain, Tree, Friendship, JointTable or Coefficients")
        self.model, self.query, self.epsilon = model, query, epsilon
        self.sensitivities = checked_sensitivities(query, model.n_tuples)
        self.largest = max(query.sensitivities(model.n_tuples))
        _check_fit(model, query)
        self._exact = exact
        self._losses: list[ExactLoss | None] = []

    @property
    def goal(self) -> float:
        """ε, rounded down."""
        return rounded_down(self.epsilon)

    @property
    def rate_alone(self) -> Fraction:
        """The rate that protects a tuple on which no other depends."""
        return self.epsilon / self.largest

    @property
    def losses(self) -> ExactLoss | None:
        """Exact losses of the query."""
        if not self._losses:
            self._losses.append(exact_loss(self.model, self.query) if self._exact else None)
        return self._losses[0]

    @cached_property
    def independent(self) -> bool:
        """True if no tuple of a chain or a tree says anything about its neighbours."""
        model = self.model
        if not isinstance(model, (Chain, Tree)):
            return False
        parents = model.parents if isinstance(model, Tree) else range(-1, model.n - 1)
        pairs = ((parent, j) for j, parent in enumerate(parents) if parent >= 0)
        return all(model.kernel(parent, j).curve.above(1.0) == 0.0 for parent, j in pairs)

    def group_rate(self) -> Fraction:
        """ε over all that may change together."""
        exact = self.query.sensitivities(self.model.n_tuples)
        return self.epsilon / max(sum((exact[j] for j in part), Fraction(0)) for part in _parts(self.model))

    def bound(self, rate: float) -> float | None:
        """The loss that the recursion proves at this rate, on chains and trees; None for other models."""
        if not isinstance(self.model, (Chain, Tree)):
            return None
        return self.loss_of_any(self.model, rate)

    def loss_of_any(self, model: Chain | Tree, rate: float) -> float:
        """The recursion's bound, with room for the rounding of Δ·rate."""
        return largest_loss(model, self.sensitivities * (rate * (1 + 2.0**-51)))

    def judged(self, mechanism: str, rate: Fraction) -> Calibration:
        """The rate with all that is known about it."""
        bound = self.bound(float(rate))
        losses = self.losses
        true = losses.at(float(1 / rate)) if losses is not None and losses.known(float(rate)) else None
        proved, why = self._verdict(mechanism, rate, bound, true)
        per_record = self.largest * rate
        return Calibration(mechanism, repr(self.model), self.epsilon, rate, per_record, true, bound, proved, why)

    def _verdict(self, mechanism: str, rate: Fraction, bound: float | None, true: float | None) -> tuple[bool, str]:
        if mechanism in _THEOREMS:
            return True, _THEOREMS[mechanism]
        if self.independent and rate <= self.rate_alone:
            return True, "the tuples are independent in this model"
        # Of friends, only the law of each given the other is said, and there need not be a joint law with both.
        if mechanism == "dpm" and self.model.n_tuples == 2 and isinstance(self.model, (Chain, Tree, JointTable)):
            return True, "two tuples: the coefficient of the pair is all there is"
        if bound is not None and bound <= self.goal:
            return True, f"the recursion for chains and trees gives {bound:.6g} at this scale, for every query"
        if true is not None and true <= self.goal * (1 - MARGIN):
            return True, f"exact computation for this model and this query: {true:.6g}"
        if true is not None and true > self.goal * (1 + MARGIN):
            return False, f"violated: the true loss is {true:.6g}"
        return False, _DOUBTS.get(mechanism, "no theorem covers it") + ("" if bound is None else f" ({_worst(bound)})")


def _check_fit(model: Model, query: Query) -> None:
    """Raises InvalidInput for a sum without a number for each value of the model's tuples."""
    if not isinstance(query, Sum) or isinstance(model, Coefficients):
        return
    once = query.shared and not isinstance(model, (Tree, JointTable))
    for i in range(1 if once else model.n_tuples):
        needed = size_of(model, i)
        if len(query.of(i)) < needed or (len(query.of(i)) > needed and not isinstance(model, JointTable)):
            raise InvalidInput("query", f"{len(query.of(i))} values for tuple {i}", f"one for each of its {needed}")


def _worst(bound: float) -> str:
    return f"the recursion allows {bound:.6g}"


def _parts(model: Model) -> list[Any]:
    """Tuples that may depend on each other."""
    n = model.n_tuples
    if isinstance(model, Friendship) or (isinstance(model, Coefficients) and model.parts_independent):
        _, part = model.components()
        return [np.flatnonzero(part == p) for p in np.unique(part)]
    if isinstance(model, Tree):
        return model.trees()
    return [range(n)]


def _markov(case: Case) -> Fraction:
    model = case.model
    if not isinstance(model, (Chain, Tree)):
        raise InvalidInput("mechanism", "markov", f"a chain or a tree: for {model!r} only group privacy is proved")
    if case.independent:
        return case.rate_alone
    return _fixed_point(case, lambda rate: case.loss_of_any(model, rate))


def _dpm(case: Case) -> Fraction:
    def loss(rate: float) -> float:
        losses = laplace_losses(case.model, case.query, rate)
        if losses is None:
            raise InvalidInput("mechanism", "dpm", "fewer tuples, or a stationary chain: all pairs are looked at")
        # The coefficients are floats: a few units in the last place for every pair.
        return float(losses.max()) * (1 + 1e-12)

    return _fixed_point(case, loss)


def _fixed_point(case: Case, loss: Callable[[float], float]) -> Fraction:
    low = float(case.epsilon / sum(case.query.sensitivities(case.model.n_tuples), Fraction(0)))
    return largest_rate(loss, case.epsilon, low * 0.999, float(case.rate_alone))


def _optimum(case: Case) -> Fraction:
    losses = case.losses
    if losses is None:
        raise InvalidInput("mechanism", "optimum", "a sum over a chain, a tree or a joint table that is not large")
    highest = float(case.rate_alone) * 1e4

    lowest = float(case.group_rate()) * 0.999
    if not losses.known(lowest):
        raise InvalidInput("mechanism", "optimum", f"a promise of at most {FARTHEST:g}")

    def loss(rate: float) -> float:
        return losses.at(1.0 / rate) * (1 + MARGIN) if losses.known(rate) else math.inf

    return largest_rate(loss, case.epsilon, lowest, min(highest, losses.most))


_RATES: dict[str, Callable[[Case], Fraction]] = {
    "markov": _markov,
    "dpm": _dpm,
    "independent": lambda case: case.rate_alone,
    "group": lambda case: case.group_rate(),
    "optimum": _optimum,
}
_THEOREMS = {
    "markov": "the recursion for chains and trees, for every query (docs/proofs/dependent-markov.md)",
    "group": "any number of dependent tuples changes the answer by at most the sum of their sensitivities",
}
_DOUBTS = {
    "independent": "the tuples are not independent",
    "dpm": "coefficients of pairs miss joint dependence",
}


COLUMNS = ("mechanism", "scale", "per_record", "true_epsilon", "bound", "proved", "why")


@dataclass(frozen=True)
class Comparison:
    """One row for each mechanism; ``not_applicable`` has the reasons why others have none."""

    model: str
    epsilon: Fraction
    rows: tuple[Calibration, ...]
    not_applicable: tuple[tuple[str, str], ...]

    def __getitem__(self, mechanism: str) -> Calibration:
        for row in self.rows:
            if row.mechanism == mechanism:
                return row
        raise InvalidInput("mechanism", mechanism, "one of " + ", ".join(row.mechanism for row in self.rows))

    def __iter__(self) -> Iterator[Calibration]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a DataFrame, numbers as floats; a mechanism that does not apply has a row with the reason."""
        import pandas as pd

        rows = [_told(row) for row in self.rows]
        missing = [(name, None, None, None, None, False, f"not applicable: {why}") for name, why in self.not_applicable]
        frame = pd.DataFrame([*rows, *missing], columns=list(COLUMNS))
        numbers = ["scale", "per_record", "true_epsilon", "bound"]
        frame[numbers] = frame[numbers].astype("float64")
        return frame

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Bars of the scales with the true ε, unproved claims hatched, on a matplotlib Axes (the plot extra)."""
        ax = axes(ax)
        names = [row.mechanism for row in self.rows][::-1]
        for place, row in enumerate(reversed(self.rows)):
            colour, hatch = ("tab:blue", None) if row.proved else ("lightgray", "///")
            ax.barh(place, float(row.scale), color=colour, hatch=hatch, edgecolor="gray")
            true = "" if row.true_epsilon is None else f"ε = {row.true_epsilon:.3g}"
            note = true if row.proved else f"{true} not proved"
            ax.annotate(note, (float(row.scale), place), xytext=(4, 0), textcoords="offset points", va="center")
        ax.set(xscale="log", xlabel=f"noise scale for a claim of ε = {float(self.epsilon):g}", title=self.model)
        ax.set_yticks(range(len(names)), names)
        ax.margins(x=0.35)
        return ax

    def _repr_html_(self) -> str:
        rows: list[tuple[Any, ...]] = [_told(row) for row in self.rows]
        rows += [(name, *[None] * (len(COLUMNS) - 2), f"not applicable: {why}") for name, why in self.not_applicable]
        return html_table(COLUMNS, rows, f"{self.model}, epsilon {in_short(self.epsilon)}")

    def __str__(self) -> str:
        head = f"{self.model}, epsilon {in_short(self.epsilon)}"
        return "\n".join([head, *(_line(row) for row in self.rows)])


def compare(
    model: Model, query: Query, epsilon: Exact, mechanisms: tuple[str, ...] = MECHANISMS, *, exact: bool = True
) -> Comparison:
    """The scales of several mechanisms for the same promise, with the true loss of each where it can be computed."""
    case = Case(model, query, exact_epsilon(epsilon), exact)
    rows, missing = [], []
    for name in mechanisms:
        one_of(name, MECHANISMS, "mechanisms")
        try:
            rows.append(case.judged(name, _RATES[name](case)))
        except InvalidInput as without:
            missing.append((name, str(without).partition("expected ")[2]))
    return Comparison(repr(model), case.epsilon, tuple(rows), tuple(missing))


def _told(row: Calibration) -> tuple[Any, ...]:
    """A row of the table, in the order of `COLUMNS`."""
    return (row.mechanism, float(row.scale), float(row.per_record), row.true_epsilon, row.bound, row.proved, row.why)


def _line(row: Calibration) -> str:
    true = "true epsilon not known" if row.true_epsilon is None else f"true epsilon {row.true_epsilon:.4g}"
    proved = "proved" if row.proved else "NOT PROVED"
    return f"  {row.mechanism:16} scale {float(row.scale):<10.4g} {true:24} {proved}: {row.why}"
