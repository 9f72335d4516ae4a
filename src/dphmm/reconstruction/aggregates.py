"""Densities, flows and shares of regions of a population from a released table: post-processing, it costs no privacy.

Two estimates stand beside each other. The likeliest density leans to where it started, and errs less where the noise is
large; the linear estimate is unbiased whatever the truth is, and all intervals are its. A region that separates states
with one law cannot be answered: it is refused with the states that would make it answerable.

Persons count alike where who is asked is public. A paced schedule chooses from earlier answers when to ask, so that the
number of a person's answers says something of them: there answers count alike, the estimate speaks of the steps that
were asked, its standard error is that of a ratio, and its interval an approximation.

Proof: docs/proofs/population-shares.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dphmm._checks import one_of, whole
from dphmm._notebook import html_table
from dphmm._progress import Progress, shown
from dphmm.accounting.promise import KINDS
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.reconstruction.answers import Answers, answers_of
from dphmm.reconstruction.density import Fitted, density
from dphmm.reconstruction.flows import flows as flows_of
from dphmm.reconstruction.linear import TermMoments, interval
from dphmm.reconstruction.regions import Regions, checked_regions, default_regions
from dphmm.reconstruction.shares import NOTHING, LinearEstimates, Share, Told, each_share, flow_shares, region_shares
from dphmm.release.decoding import rows_and_subjects
from dphmm.session.believing import believed_model
from dphmm.session.options import PlanChoices, ReleaseChoices
from dphmm.session.setting import Setting, StepChoices, Subjects, check_same_states
from dphmm.states.space import END, StateSpace
from dphmm.states.trajectory import MICROSECONDS
from dphmm.storage.columns import Times
from dphmm.storage.released import ReleasedRows
from dphmm.types import Exact, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PERIODS = ("all", "rows", "step", "day", "hour-of-day")
#: What `public_starts` are called.
_STARTS = ("even", "model")
#: Steps that are named in a note.
_STEPS_NAMED = 12
_HOUR, _DAY = 3600 * MICROSECONDS, 86400 * MICROSECONDS


@dataclass(frozen=True, eq=False)
class Density:
    """The estimates of one period: ``q`` (N,) and ``flows`` (N, N), None if they cannot be estimated.

    ``regions`` and ``region_flows`` have a `Share` each. ``n`` people gave ``answers`` answers; ``iterations`` is the
    number of improvements of the density from its ``start``, "even" or "model", ``flow_iterations`` that of the flows.
    """

    period: str
    q: FloatArray | None
    flows: FloatArray | None
    regions: tuple[Share, ...]
    region_flows: tuple[Share, ...]
    n: int
    answers: int
    iterations: int
    start: str
    flow_iterations: int

    def __repr__(self) -> str:
        return f"Density({self.period}, {self.n} people, {self.answers} answers, {len(self.regions)} regions)"


@dataclass(frozen=True, eq=False)
class Population:
    """The densities of all periods of a release, and their scope.

    ``public``: True if the choice of asked rows is public; then persons count alike, else answers do. ``people``: the
    number with an answer in any period. ``space``: the states of its densities. A population of one
    period has its fields: ``population.q``, ``flows``, ``regions``, ``region_flows``, ``n`` and ``iterations``.
    """

    densities: tuple[Density, ...]
    public: bool
    notes: tuple[str, ...]
    people: int
    space: StateSpace | None = field(default=None, repr=False)

    def __getattr__(self, name: str) -> Any:
        names = {attribute.name for attribute in fields(Density)} - {"period"}
        if name in names and len(self.densities) == 1:
            return getattr(self.densities[0], name)
        raise AttributeError(f"{type(self).__name__} of {len(self.densities)} periods has no {name}; see densities")

    def records(self, flows: bool = False) -> list[dict[str, Any]]:
        """The shares of all periods, or their flows, as rows of a table."""
        rows = []
        for fit in self.densities:
            for share in fit.region_flows if flows else fit.regions:
                where = (
                    {"origin": share.region, "destination": share.destination} if flows else {"region": share.region}
                )
                sizes = {name: getattr(share, name) for name in ("estimate", "linear", "low", "high", "standard_error")}
                rows.append({"period": fit.period, **where, **sizes, "people": fit.n, "answerable": share.why or "yes"})
        return rows

    def to_pandas(self, flows: bool = False) -> pd.DataFrame:
        """A frame with a row for each period and region: period, region, estimate, linear, low, high, ...

        With ``flows`` a row for each two regions: origin and destination in place of region.
        """
        import pandas

        return pandas.DataFrame(self.records(flows))

    def density_table(self) -> pa.Table:
        """The densities as an Arrow table: a row for each period and state with its share, on a map with lat and lon.

        Periods without a density have no rows. Raises InvalidInput where none has one.
        """
        import pyarrow as pa

        fits = [fit for fit in self.densities if fit.q is not None]
        if self.space is None or not fits:
            raise InvalidInput("population", "no likeliest density", "a release under fewer laws")
        columns: dict[str, Any] = {
            "period": [fit.period for fit in fits for _ in range(self.space.n_states)],
            "state": list(self.space.names) * len(fits),
        }
        place = self.space.to_latlon(self.space.own_answers)
        if place is not None:
            columns |= {axis: np.tile(values, len(fits)) for axis, values in zip(("lat", "lon"), place, strict=True)}
        columns["share"] = np.concatenate([fit.q for fit in fits if fit.q is not None])
        return pa.table(columns)

    def _repr_html_(self) -> str:
        rows = self.records()
        if not rows:
            return "<p>no regions</p>"
        return html_table(list(rows[0]), (row.values() for row in rows))

    def __repr__(self) -> str:
        return f"Population({', '.join(map(repr, self.densities[:3]))}{', ...' * (len(self.densities) > 3)})"


def population(
    released: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace | None = None,
    epsilon: Exact | None = None,
    *,
    regions: Any = None,
    flows: bool = False,
    per: str = "all",
    zone: str = "+00:00",
    schedule: str | None = None,
    initials: Mapping[str, Any] | None = None,
    step_choices: StepChoices | None = None,
    believe: MarkovModel | None = None,
    progress: bool | Progress = True,
    **choices: Unpack[PlanChoices],
) -> Population:
    """The distribution of people in a released table: a density over states, and shares of regions with intervals.

    Parameters
    ----------
    released, model, policy, epsilon, initials, step_choices : as for `smooth`; ``choices`` are its other choices of the
        release. space : that of the model when None.
    regions : names with states, as numbers, names or a mask (N,); a table of ``state`` and ``region``; or a
        GeoDataFrame of polygons, to which a cell belongs by its middle. A region that the model has in part only, or
        not at all, is not answerable: ``why`` and ``notes`` name its states. Without it blocks of cells, or every
        label, which hold together what the release answers alike.
    flows : also the shares of every two regions among two answers of one person that follow each other; with ``per``
        they belong to the period of the first.
    per : "all": persons count alike; "rows": all rows do, also of whom has many; "step": each step or position by
        itself; "day" or "hour-of-day" of a clock with the offset ``zone`` from UTC.
    schedule : "planned" or "staggered" where the steps that were asked are public, "paced" where earlier answers chose
        them. Without it a table with rows that were not asked is taken to be paced.
    believe : another model of the same states, from which the likeliest density and flows start. The linear estimates
        keep the guess of ``model``: one that hangs on the answers would make them biased.
    progress : show a bar on a terminal, or call (done, total).

    Returns
    -------
    A `Population`. Every share is that among the persons with answers, who count alike; under a paced schedule among
    the steps that were asked. Each interval holds its share with a probability of at least 0.9, however few people
    there are; under a paced schedule, and where plans hang on earlier answers, ``notes`` say what it is. If a state
    is called `END`, shares of regions without it are among what has not ended, and that of END among all.

    Raises
    ------
    InvalidInput : as `smooth` does; for regions that are none, and for periods without a column t.

    Examples
    --------
    >>> import dphmm, pandas
    >>> space = dphmm.StateSpace([0, 1, 2], ["a", "b", "c"])
    >>> model = dphmm.MarkovModel([0.5, 0.25, 0.25], [[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.2, 0.8]])
    >>> policy = dphmm.policy.complete(3)
    >>> plan = dphmm.ReleaseSession(model, policy, space, epsilon=1).plan
    >>> rows = {"user": [f"u{i}" for i in range(40)], "step": 1, "z_0": 2.0, "epsilon": 1.0, "plan": plan.hash}
    >>> found = dphmm.reconstruction.population(pandas.DataFrame(rows), model, policy, space)
    >>> found.n, [share.region for share in found.regions], int(found.q.argmax())
    (40, ['a', 'b', 'c'], 2)

    Source: docs/proofs/population-shares.md.
    """
    space = model.space if space is None else space
    if space is None:
        raise InvalidInput("space", "none, and the model has none", "the space of the release")
    rows, subjects = rows_and_subjects(released, (model, policy, space), epsilon, initials, step_choices, **choices)
    named = None if regions is None else checked_regions(regions, space)
    with shown(progress, "population") as report:
        return population_of_rows(
            *(rows, subjects, named),
            flows=flows,
            per=per,
            zone=zone,
            schedule=schedule,
            believe=believe,
            progress=report,
        )


def population_of_rows(
    rows: ReleasedRows,
    subjects: Subjects,
    regions: Regions | None,
    *,
    flows: bool = False,
    per: str = "all",
    zone: str = "+00:00",
    schedule: str | None = None,
    believe: MarkovModel | None = None,
    progress: Progress | None = None,
) -> Population:
    """The population of released rows, as `population` has it; ``regions`` None for the default. Raises as it does."""
    one_of(per, PERIODS, "per")
    if schedule is not None:
        one_of(schedule, KINDS, "schedule")
    answers = replace(answers_of(rows, subjects, schedule, progress), by_rows=per == "rows")
    periods = _periods(rows, answers, per, zone)
    setting = subjects.setting
    reads = believed_model(setting, believe) or setting.model
    starts = public_starts(setting.model if reads.occupancy_weights is None else reads)
    named = default_regions(setting.space, answers.plans) if regions is None else regions
    if (end := setting.space.index_of(END)) >= 0 and END not in named:
        named = named.beside(END, np.arange(setting.space.n_states) == end)
    linear = LinearEstimates(answers.plans, named, public_guess(setting.model), setting.space)
    densities = []
    for name, which in periods:
        pairs = answers.pairs(which) if flows else None
        densities.append(_density(name, answers.take(which), pairs, linear, starts, reads, setting.space))
    notes = (*named.notes, *_scope(rows, answers, linear, flows), *_notes(answers, densities, flows, setting))
    return Population(tuple(densities), answers.public, notes, len(np.unique(answers.person)), setting.space)


def _scope(rows: ReleasedRows, answers: Answers, linear: LinearEstimates, flows: bool) -> Iterator[str]:
    """The rows that the shares are about, in words."""
    if answers.public and len(answers) < len(rows.users):
        steps = np.unique(answers.step)
        at = f"{len(steps):,} steps" if len(steps) > _STEPS_NAMED else f"steps {' '.join(map(str, steps.tolist()))}"
        yield f"speaks of the rows that were asked, {len(answers):,} of {len(rows.users):,}, at {at}, and of no others"
    if linear.ending(answers) is not None:
        others = "; flows are among all" if flows else ""
        yield f"shares are among what has not ended; that of {END} is among all{others}"


def _notes(answers: Answers, densities: Sequence[Density], flows: bool, setting: Setting) -> Iterator[str]:
    """The notes for a reader on the method and the limits of the estimates."""
    if not answers.public:
        yield "speaks of the steps that were asked, which earlier answers chose: answers count alike, not persons"
        yield "intervals are a normal approximation, which misses more often of fewer than some 300 people"
    elif not setting.has_public_plans:
        yield "plans hang on earlier answers: intervals hold if no other plan than those of these answers was possible"
    if any(fit.q is None for fit in densities):
        yield (
            "no likeliest density: too many answers were drawn under laws of fewer than 30 people; "
            "the linear estimates are unbiased all the same"
        )
    shares = [share for fit in densities for share in (*fit.regions, *fit.region_flows) if share.low is not None]
    wide = sum(share.low == 0 and share.high == 1 for share in shares)
    if wide:
        yield (
            f"intervals from 0 to 100 %, which say nothing: {wide:,} of {len(shares):,}; more people, larger regions "
            "or longer periods narrow them"
        )
    if flows and all(fit.flows is None for fit in densities):
        yield "no flows: nobody has two answers, or too many of them under laws of few people"


def public_starts(model: MarkovModel) -> list[FloatArray]:
    """Densities (N,) to start from: an even one, and the occupancy of the model where its initial distribution is one.

    A hundredth of an occupancy is even, so that people may be where the model has none.
    """
    even, weights = np.full(model.n_secrets, 1.0 / model.n_secrets), model.occupancy_weights
    return [even] if weights is None else [even, 0.01 * even + 0.99 * weights / weights.sum()]


def public_guess(model: MarkovModel) -> FloatArray:
    """The public guess (N,) of where people are, under which the variance of linear estimates is least.

    Half of it is even, half is the occupancy of the model where its initial distribution is one.
    """
    even = np.full(model.n_secrets, 1.0 / model.n_secrets)
    weights = model.occupancy_weights
    return even if weights is None else 0.5 * even + 0.5 * weights / weights.sum()


def _density(
    name: str,
    answers: Answers,
    pairs: tuple[Answers, Answers] | None,
    linear: LinearEstimates,
    starts: Sequence[FloatArray],
    model: MarkovModel,
    space: StateSpace,
) -> Density:
    fitted = density(answers, starts)
    regions = region_shares(answers, linear, fitted)
    between: Fitted | None = None
    region_flows: tuple[Share, ...] = ()
    if pairs is not None:
        start = starts[0] if fitted is None else fitted.q
        between = flows_of(pairs, start, model, space)
        region_flows = flow_shares(pairs, linear, between)
    return Density(
        period=name,
        q=None if fitted is None else fitted.q,
        flows=None if between is None else between.q,
        regions=regions,
        region_flows=region_flows,
        n=len(np.unique(answers.person)),
        answers=len(answers),
        iterations=0 if fitted is None else fitted.iterations,
        start=_STARTS[0 if fitted is None else fitted.start],
        flow_iterations=0 if between is None else between.iterations,
    )


def _periods(rows: ReleasedRows, answers: Answers, per: str, zone: str) -> list[tuple[str, IntArray]]:
    """The answers of each period, in order, by what the period is called."""
    if per in ("all", "rows"):
        return [(per, np.arange(len(answers)))]
    if per == "step":
        return [(f"step {step}", np.flatnonzero(answers.step == step)) for step in np.unique(answers.step).tolist()]
    if rows.times is None:
        raise InvalidInput("per", f"{per}, and the table has no column t", "all")
    micros, marks = Times("t", "UTC").add(rows.times)
    if np.logical_or.reduce(list(marks.values()))[answers.row].any():
        raise InvalidInput("t", "a time that cannot be read", "a table as it was released")
    local = micros[answers.row] + _offset(zone)
    number = local // _DAY if per == "day" else local % _DAY // _HOUR
    periods = []
    for period in np.unique(number).tolist():
        name = str(np.datetime64(period, "D")) if per == "day" else f"{period:02d}:00"
        periods.append((name, np.flatnonzero(number == period)))
    return periods


def _offset(zone: str) -> int:
    """Microseconds that a clock is ahead of UTC."""
    sign, parts = zone[:1], zone[1:].split(":")
    if sign not in ("+", "-") or len(parts) != 2 or not all(len(part) == 2 and part.isdigit() for part in parts):
        raise InvalidInput("zone", zone, "an offset from UTC such as +08:00")
    hours, minutes = map(int, parts)
    if hours > 14 or minutes > 59:
        raise InvalidInput("zone", zone, "an offset of at most 14 hours")
    return (1 if sign == "+" else -1) * (hours * _HOUR + minutes * 60 * MICROSECONDS)


def expected_errors(
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    people: int,
    regions: Any = None,
    **choices: Unpack[ReleaseChoices],
) -> list[Share]:
    """The standard errors that shares of regions will have, before anything is released.

    Of the linear estimates from one answer each of ``people`` persons at the first step, if people were where the
    public guess has them (`public_guess`): the Cramér-Rao bound of unbiased estimates. As shares the guess itself is
    told; ``low`` and ``high`` are the 90 % interval that such answers would have. Choices are those of the release.

    Raises InvalidInput as `population` does, and for a number of people below 1.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.reconstruction.aggregates import expected_errors
    >>> space = dphmm.StateSpace.labels(["home", "work"])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], space=space)
    >>> found = expected_errors(model, dphmm.policy.complete(2), space, 1, 1000)
    >>> [(one.region, round(one.standard_error, 3)) for one in found]
    [('home', 0.034), ('work', 0.034)]

    Source: docs/proofs/population-shares.md.
    """
    whole(people, "people", 1)
    check_same_states(model, policy, space)
    setting, guess = Setting.of(model, policy, space, epsilon, **choices), public_guess(model)
    plan = setting.first_plan()
    named = default_regions(space, [plan]) if regions is None else checked_regions(regions, space)
    linear = LinearEstimates([plan], named, guess, space)
    by_region = dict[int, Told]()
    if len(linear.answered):
        known = linear.answered
        errors, shares = linear.standard_errors(people)[known], (guess @ linear.masks)[known]
        squares = people * errors**2 + shares**2
        expected = TermMoments(shares, squares, squares - 2 * shares + 1.0)
        ends = interval(expected, people, linear.terms(np.zeros(1, dtype=np.int64), known))
        by_region = dict(zip(known.tolist(), each_share(shares, ends, errors), strict=True))
    return [
        Share(name, "", None, *by_region.get(number, NOTHING), linear.why[number])
        for number, name in enumerate(linear.names)
    ]
