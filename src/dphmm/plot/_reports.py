"""The figures of a report, of what a budget buys and of a population, as the page has them: SVG, without matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphmm.choose.schedule_plan import SchedulePlan
from dphmm.errors import InvalidInput
from dphmm.policy import covered_distance
from dphmm.policy.graph import PolicyGraph
from dphmm.report import figures
from dphmm.report.content import ReleaseReport
from dphmm.report.shown import Shown
from dphmm.report.svg import Figure
from dphmm.states.space import StateSpace

#: More regions than these cannot be read beside each other.
_MOST_REGIONS = 60


def _of(report: Any) -> ReleaseReport:
    if not isinstance(report, ReleaseReport):
        raise InvalidInput("release", type(report).__name__, "a report, such as dphmm.report.read_report gives")
    return report


def _planar(report: Any) -> ReleaseReport:
    if _of(report).cells is None:
        draws = "plot.strip draws labels" if report.space.has_labels else "plot.people draws answers of one number"
        raise InvalidInput("release", f"states of kind {report.space.kind}", f"answers in the plane; {draws}")
    return _of(report)


def _drawn(report: ReleaseReport, figure: Figure | None, why: str, expected: str) -> Figure:
    """A figure with what it must say wherever it is taken to. Raises InvalidInput where there is none."""
    if figure is None:
        raise InvalidInput("release", why, expected)
    return figures.marked(report, figure)


def belief(release: ReleaseReport, step: int | None = None, *, person: str | None = None) -> Figure:
    """A map of one step: the published answer, and what a reader believes (50, 80, 95 %).

    ``step`` counts the rows of a ``person`` from 0; by default the step and the person that the page shows first. The
    truth is drawn where the report has it. Raises InvalidInput for answers that are not in the plane.
    """
    report = _planar(release)
    chosen = None if person is None else next((listed for listed in report.persons if listed.name == person), None)
    if person is not None and chosen is None:
        raise InvalidInput("person", person, f"one of the {len(report.persons)} people of the report")
    shown = chosen or Shown(report).person
    if step is not None and shown is not None and not 0 <= step < len(shown.rows):
        raise InvalidInput("step", step, f"0 to {len(shown.rows) - 1}")
    return _drawn(report, figures.belief(report, shown, step), "a report without people", "one with a row")


def day(release: ReleaseReport) -> Figure:
    """A small map for each answer of the day that the page shows first."""
    report = _planar(release)
    return _drawn(report, figures.day(report), "a report of one row, or without an answer", "one with a day of answers")


def error(release: ReleaseReport) -> Figure:
    """The reader's error over the day: expected from public data, and measured if the report has the truth."""
    report = _of(release)
    why = report.prospects.missing or "a report of one row"
    return _drawn(report, figures.error(report), why, "one whose figures are known")


def nights(plan: SchedulePlan | ReleaseReport) -> Figure:
    """The reader's error about people who stay at one place, by number of days or other blocks."""
    if not isinstance(plan, ReleaseReport):
        drawn = figures.nights_of_plan(_plan(plan))
        if drawn is None:
            raise InvalidInput("plan", "a plan that tells nothing of who stays", "one that does")
        return drawn
    reader, why = plan.found, "a report whose figures are not known"
    if reader is not None and reader.own_stay is None and plan.prospects.stays is not None:
        nobody = f"a file in which nobody has rows of a whole {reader.block}"
        why = f"stays that are not told: {reader.uncomputed}" if reader.uncomputed else nobody
    return _drawn(plan, figures.nights(plan), why, "a report that tells of who stays")


def strip(release: ReleaseReport) -> Figure:
    """Labels: the likeliest one of each step, fainter where less sure; published answers as squares above."""
    report = _of(release)
    draws = "plot.belief and plot.day draw the plane" if report.planar else "plot.people draws answers of one number"
    kind = f"states of kind {report.space.kind}"
    return _drawn(report, figures.strip(report), kind, f"states that are labels; {draws}")


def people(release: ReleaseReport) -> list[Figure]:
    """Answers of one number, or of more than two: for each person what was published and what a reader believes."""
    report = _of(release)
    drawn = figures.people(report)
    if not drawn:
        expected = "answers of one number; plot.belief and plot.day draw the plane, plot.strip labels"
        raise InvalidInput("release", f"states of kind {report.space.kind}", expected)
    return [figures.marked(report, figure) for figure in drawn]


def shares(found: Any, period: str | None = None) -> Figure:
    """The share of people with each label or in each region, with 90 % intervals.

    ``found``: a report of labels; or what `population` gives, with its likeliest shares, and which ``period`` of
    several. Raises InvalidInput for more than 60 regions.
    """
    from dphmm.reconstruction.aggregates import Population

    if isinstance(found, ReleaseReport):
        return _drawn(found, figures.shares(found), "a report without shares of labels", "one of labels, with answers")
    if not isinstance(found, Population):
        raise InvalidInput("found", type(found).__name__, "a report, or what dphmm.reconstruction.population gives")
    periods = {density.period: density for density in found.densities}
    name = next(iter(periods)) if period is None and len(periods) == 1 else period
    if name not in periods:
        more = ", ..." * (len(periods) > 5)
        raise InvalidInput("period", period, f"one of {', '.join(list(periods)[:5])}{more}")
    regions = periods[name].regions
    if not 0 < len(regions) <= _MOST_REGIONS:
        raise InvalidInput("population", f"{len(regions)} regions", f"1 to {_MOST_REGIONS}: name them by regions=")
    return figures.shares_of_population(periods[name], public=found.public)


def indistinguishable(policy: PolicyGraph, space: StateSpace, place: int | str) -> Figure:
    """The cells that a policy joins to one ``place``, a state's number or name."""
    state = space.index_of(place) if isinstance(place, str) else place
    if not 0 <= state < space.n_states:
        raise InvalidInput("place", place, f"one of the {space.n_states} states")
    if space.dimension != 2 or space.has_labels:
        raise InvalidInput("space", f"states of kind {space.kind}", "answers in the plane")
    return figures.indistinguishable(policy, space, state, metres=covered_distance(policy, space))


def ladder(plan: SchedulePlan | Sequence[SchedulePlan]) -> Figure:
    """The expected errors of what `dphmm.choose.plan` tried, by the number of releases; the chosen schedule has a ring.

    For several plans: the worth of each total.
    """
    if isinstance(plan, SchedulePlan):
        return figures.ladder(plan)
    if not isinstance(plan, (list, tuple)) or not plan:
        raise InvalidInput("plan", type(plan).__name__, "what dphmm.choose.plan found, or a list of such plans")
    plans = [_plan(entry) for entry in plan]
    if any(other.digests != plans[0].digests for other in plans):
        raise InvalidInput("plan", "plans of different models, policies or states", "plans of one")
    return figures.ladder_of_plans(plans)


def _plan(plan: Any) -> SchedulePlan:
    if not isinstance(plan, SchedulePlan):
        raise InvalidInput("plan", type(plan).__name__, "what dphmm.choose.plan found, or a report")
    return plan
