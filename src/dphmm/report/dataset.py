"""What the explorer of a page reads: steps, plans and hulls of the explored subjects as one short JSON document."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphmm.policy._points import LatticeDistance
from dphmm.policy.graph import PolicyGraph
from dphmm.report.content import ReleaseReport
from dphmm.report.encoding import Shelf, adjacency, repeated, scaled
from dphmm.report.timeline import PlanFacts, Timeline
from dphmm.report.view import corners, shades, spacing
from dphmm.states.grid import Grid
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, IntArray

#: More states, or more edges, than these are not drawn one by one.
MOST_STATES = 20_000
MOST_EDGES = 200_000
#: Answers that are no lattice points are written in so many parts of a lattice step.
_PARTS = 1000
#: Corners of cells are written in so many parts of a cell.
_CELL_PARTS = 150


def dataset(report: ReleaseReport) -> dict[str, Any]:
    """The document, in which numbers of answers are lattice steps."""
    space, names = report.space, Shelf()
    drawn = space.n_states <= MOST_STATES
    timeline = report.timeline
    subjects = [_subject(report, rows, names) for rows in report.explored]
    return {
        "space": _space(space, drawn),
        "shades": "".join(map(str, shades(report.weights, space.n_states).tolist())) if drawn else "",
        "water": [_points(space, line) for line in report.scenery.water],
        "roads": [_points(space, line) for line in report.scenery.roads],
        "policy": _policy(report.policy if drawn and timeline is not None else None, space.n_states),
        "timeline": None if timeline is None else _timeline(timeline, drawn),
        "truth": None if report.truth is None else "Truth (simulated)" if report.simulated else "Truth",
        "timed": report.time is not None,
        "epsilon": report.statement.epsilon,
        "names": names.things,
        "subjects": subjects,
    }


def _space(space: StateSpace, drawn: bool) -> dict[str, Any]:
    own = space.unmerged.lattice
    axes = own.T.tolist() if drawn else [[int(a.min()), int(a.max())] for a in own.T]
    merged = {"answers": space.lattice.T.tolist()} if drawn and len(space.merges) else {}
    return merged | {
        "kind": space.kind,
        "states": space.n_states,
        "metres": hasattr(space, "projection"),
        "drawn": drawn,
        "pitch": space.pitch.tolist(),
        "origin": space.frame.origin.tolist(),
        "weights": list(LatticeDistance.of(space.frame.exact_pitch).weights),
        "lattice": axes,
        "names": list(space.names) if drawn and not isinstance(space, Grid) else None,
        "side": spacing(space) if space.dimension > 1 and drawn else None,
        "shapes": _shapes(space) if drawn else None,
        "parts": _PARTS,
    }


def _shapes(space: StateSpace) -> dict[str, Any] | None:
    """The corners of cells that are polygons, in parts of a cell from its answer: most cells have one and the same."""
    found = corners(space)
    if found is None:
        return None
    unit, shelf = spacing(space) / _CELL_PARTS, Shelf()
    whole = [np.rint(ring / unit).astype(np.int64).ravel().tolist() for ring in found]
    numbers = [shelf.put(tuple(ring), ring) for ring in whole]
    return {"unit": unit, "rings": shelf.things, "of": repeated(np.array(numbers, dtype=np.int64))}


def _subject(report: ReleaseReport, rows: IntArray, names: Shelf) -> dict[str, Any]:
    table, space = report.released, report.space
    places = report.released.column("estimate").take(rows).to_pylist()
    states = [space.index_of(name) for name in places]
    costs = table.column("cost").to_numpy()[rows].tolist()
    found: dict[str, Any] = {
        "name": str(table.column("user")[int(rows[0])]),
        "step": _gaps(table.column("step").to_numpy()[rows]),
        "t": None if report.time is None else _gaps(report.time[rows]),
        "z": _steps(space, report.z[rows], 1),
        "estimate": _steps(space, report.estimate[rows], _PARTS),
        "state": repeated(np.array(states, dtype=np.int64)),
        "called": repeated(np.array([names.put(name, name) for name in places], dtype=np.int64)),
        "epsilon": _runs_of_values(table.column("epsilon").to_numpy()[rows].tolist()),
        "cost": _runs_of_values([None if cost == math.inf else cost for cost in costs]),
        "plan": _plans(report.timeline, rows),
    }
    found["truly"] = None if report.true_states is None else _names(space, report.true_states[rows], names)
    for name, answers in (("smoothed", report.smoothed), ("truth", report.truth)):
        found[name] = None if answers is None else _steps(space, answers[rows], _PARTS)
    found["off"] = None if report.truth is None else _off(report, rows)
    found["outside"] = None if report.truth is None else repeated(report.elsewhere[rows].astype(np.int64))
    return found


def _off(report: ReleaseReport, rows: IntArray) -> dict[str, list[float | None]]:
    """How far from the truth each answer is: four digits, on a map whole metres, None where the truth is unknown."""
    kinds = {"z": report.z, "estimate": report.estimate, "smoothed": report.smoothed}
    found = {}
    for kind, answers in kinds.items():
        if answers is not None:
            errors = report.errors(answers, rows).tolist()
            told = [round(error) if report.on_map else float(f"{error:.4g}") for error in np.nan_to_num(errors)]
            found[kind] = [None if math.isnan(error) else number for error, number in zip(errors, told, strict=True)]
    return found


def _names(space: StateSpace, states: IntArray, names: Shelf) -> list[list[int]]:
    """The numbers of states' names, -1 for a state that the space does not have."""
    put = [-1 if state < 0 else names.put(space.names[state], space.names[state]) for state in states.tolist()]
    return repeated(np.array(put, dtype=np.int64))


def _plans(timeline: Timeline | None, rows: IntArray) -> list[list[int]] | None:
    if timeline is None:
        return None
    return repeated(np.array([timeline.plan_of[row] for row in rows.tolist()], dtype=np.int64))


def _timeline(timeline: Timeline, drawn: bool) -> dict[str, Any]:
    return {
        "sets": timeline.sets.things if drawn else None,
        "hulls": timeline.hulls.things,
        "bodies": timeline.bodies.things if drawn else None,
        "plans": [_plan(plan) for plan in timeline.plans],
    }


def _plan(plan: PlanFacts) -> list[Any]:
    """In the order in which data.js takes it apart."""
    least, mean, most = plan.degrees
    return [
        plan.hash[:16],
        plan.support,
        plan.plan_set,
        list(plan.hulls),
        plan.body_of,
        [list(join) for join in plan.joins],
        [least, round(mean, 2), most],
        plan.exposed,
        plan.mechanism,
        plan.constant,
    ]


def _policy(policy: PolicyGraph | None, n: int) -> dict[str, Any] | None:
    """Whom a state shares an edge with: one clique, cliques by label, or edges; None where there are too many."""
    if policy is None:
        return None
    described = policy.describe()
    if described["kind"] == "complete":
        return {"labels": [[0, n]]}
    if n * n // 2 > 100 * MOST_EDGES:
        return None
    edges = policy.edges()
    return {"edges": adjacency(edges, n)} if len(edges) <= MOST_EDGES else None


def _points(space: StateSpace, points: FloatArray) -> list[list[float]]:
    """Points in answer units, rounded to what can be seen."""
    digits = 1 - int(np.floor(np.log10(float(space.pitch.min()))))
    return np.round(points, digits + 1).tolist()  # type: ignore[no-any-return]


def _steps(space: StateSpace, answers: FloatArray, parts: int) -> list[list[int | None]]:
    """Answers (n, d) in parts of a lattice step, axis by axis."""
    steps = (answers - space.frame.origin) / space.frame.pitch
    return [scaled(axis, parts) for axis in steps.T]


def _gaps(numbers: IntArray) -> dict[str, Any]:
    """Ascending integers as the first and the gaps."""
    return {"first": int(numbers[0]), "gaps": repeated(np.diff(numbers))}


def _runs_of_values(values: list[float | None]) -> list[list[Any]]:
    shelf = Shelf()
    numbers = np.array([shelf.put(value, value) for value in values], dtype=np.int64)
    return [[shelf.things[number], count] for number, count in repeated(numbers)]
