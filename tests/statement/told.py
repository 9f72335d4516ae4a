"""Statements of every kind of release and answer, and each story of a release: what the golden lines are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

import dphmm
from dphmm.accounting.budget import Caps
from dphmm.accounting.event import LearningEvent, NoisyCounts, NotPrivateEvent, described
from dphmm.release.batch import Batch
from dphmm.session.options import Options
from dphmm.session.setting import Setting, Subjects
from dphmm.statement.origin import Whom, whom_of
from dphmm.statement.query import QueryStatement, StatedDependence, Unit
from dphmm.statement.release import ReleaseStatement
from dphmm.statement.story import InLedger, Story, story
from dphmm.statement.verdict import ReaderFindings, Stay
from dphmm.states import Trajectories
from dphmm.states.space import LABELS_WRONG
from dphmm.storage.released import FileSums

#: Two lines of three places: neighbours along a line, two lines apart.
LINES = dphmm.StateSpace(np.array([[0, 0], [1, 0], [2, 0], [0, 9], [2, 9], [4, 9]]))
GRID = dphmm.Grid.from_bounds(10.0, 50.0, 10.042, 50.018, cell=1000)
LABELS = dphmm.StateSpace.labels(["home", "work", "shop"])
ROW = dphmm.StateSpace(np.arange(12))
DAY, HOURS = dphmm.SequencePromise(12, per="1d"), 3600


def noise(secure: bool = True, delta: Fraction = Fraction(0), unit: str = "owner", **caps: Any) -> dict[str, Any]:
    """The provenance of a fit with noise."""
    part = NoisyCounts("counts", "gaussian" if delta else "laplace", Fraction(9), Fraction(9))
    event = LearningEvent(
        (part,), caps.get("neighbours", "add-remove"), caps.get("length", 9), caps.get("sequences", 2), secure, delta,
        unit=unit,
    )  # fmt: skip
    return {"method": "counts with noise", "private": secure, "privacy": described(event)}


def statement_of(
    published: FileSums,
    *,
    model: dphmm.MarkovModel,
    policy: dphmm.policy.PolicyGraph,
    space: dphmm.StateSpace,
    options: Options,
    model_people: str = "unknown",
    known_by: str | None = None,
    **more: Any,
) -> ReleaseStatement:
    """The statement of what was published, with whom the model was fitted on as words."""
    whom = whom_of(model.provenance, Whom.of(model_people, known_by))
    return ReleaseStatement.of(published, model=model, policy=policy, space=space, options=options, whom=whom, **more)


def stated(
    space: dphmm.StateSpace = LINES,
    policy: dphmm.policy.PolicyGraph | None = None,
    provenance: dict[str, Any] | None = None,
    *,
    epsilon: Any = Fraction(1, 3),
    step: int | None = None,
    steps: int = 2,
    said: dict[str, Any] | None = None,
    chosen: dict[int, Any] | None = None,
    initials: dict[str, Any] | None = None,
    model: dphmm.MarkovModel | None = None,
    **options: Any,
) -> ReleaseStatement:
    """The statement of a release of two people, whose noise nobody replays."""
    n = space.n_states
    if model is None:
        model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), step=step, provenance=provenance)
    policy = dphmm.policy.complete(n) if policy is None else policy
    batch = Batch(model, policy, space, epsilon, **options)
    rows = Trajectories.from_labels(
        [user for user in ("ann", "bob") for _ in range(steps)],
        step=np.tile(np.arange(steps), 2) + (0 if model.step is None else 480_000),
        state=np.array([space.names[0]] * 2 * steps, dtype=object),
    )
    published = FileSums(row for chunk in batch.run(rows) for row in chunk)
    subjects = None
    if chosen or initials:
        varies = sorted({name for one in (chosen or {}).values() for name in one})
        setting = Setting.of(model, policy, space, epsilon, varies=varies)
        subjects = Subjects(setting, initials, chosen)
    public = {"model": model, "policy": policy, "space": space, "options": batch.setting.options}
    made = {"subjects": subjects, "caps": batch.caps, "schedule": batch.setting.schedule}
    return statement_of(published, **public, **(made | (said or {})))


def origins() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every kind of a model's origin, beside whom it is of."""
    whom = [("unknown", None), *(("others", by) for by in ("owner", "names")),
            *(("same", by) for by in ("owner", "names", "file"))]  # fmt: skip
    kinds: dict[str, dict[str, Any] | None] = {
        "given": None,
        "fitted": {"method": "counts", "private": False},
        "not private": {"private": False, "privacy": described(NotPrivateEvent("its noise was left out"))},
        "replayed": noise(secure=False),
        "learned": noise(),
        "learned once": noise(length=1, sequences=1, neighbours="replace"),
        "learned by sequence": noise(unit="sequence"),
        "learned with delta": noise(delta=Fraction(1, 10**6)),
        "learned, unknown how": {"private": True},
    }
    for name, provenance in kinds.items():
        for people, known_by in whom:
            said = {"model_people": people, "known_by": known_by}
            yield f"{name}, {people} by {known_by}", {"provenance": provenance, "said": said}


def statements() -> dict[str, ReleaseStatement]:
    """A statement of every kind of release."""
    found = {name: stated(**kind) for name, kind in origins()}
    others: dict[str, Any] = {"said": {"model_people": "others"}}
    hourly = {**others, "step": HOURS}
    two = dphmm.accounting.Schedule(DAY, 2, at=[2, 6, 10, 14, 18, 22])
    geometry = dphmm.MarkovModel.from_geometry(GRID, HOURS, "1km/h")
    kinds: dict[str, dict[str, Any]] = {
        "replayed noise": {**others, "bits": dphmm.ReplayBits(1)},
        "geometry": {"space": GRID, "policy": dphmm.policy.radius(GRID, covers=500), "model": geometry},
        "delta-set": {**others, "constraint": "delta=0.2"},
        "merged": {**others, "space": LINES.merged({3: 4})},
        "map": {**hourly, "space": GRID, "policy": dphmm.policy.radius(GRID, 1234.5)},
        "map, its own cell": {**hourly, "space": GRID, "policy": dphmm.policy.radius(GRID, 1000)},
        "map, all joined": {**hourly, "space": GRID},
        "labels": {**others, "space": LABELS},
        "labels, some joined": {**others, "space": LABELS, "policy": dphmm.policy.from_edges([(0, 1), (1, 2)], 3)},
        "row": {**others, "space": ROW, "policy": dphmm.policy.radius(ROW, 3)},
        "row, open": {**others, "space": ROW, "policy": dphmm.policy.radius(ROW, 3, False)},
        "categories": {**others, "policy": dphmm.policy.categorical([0, 0, 0, 1, 1, 1])},
        "nothing released": {**others, "steps": 0},
        "large epsilon": {**others, "epsilon": 20},
        "a cap": {"said": {"model_people": "others", "caps": Caps(Fraction(30))}},
        "first answer": {"said": {"model_people": "others", "answer": "first"}},
        "last answer": {"said": {"model_people": "others", "answer": "last"}},
        "exact names": {"said": {"model_people": "others", "spelling": "exact"}},
        "vessels": {**hourly, "space": GRID, "said": {"model_people": "others", "noun": "vessel"}},
        "job key": {"said": {"model_people": "others", "words": "job key"}},
        "sequence": {**hourly, "promise": dphmm.SequencePromise(24, steps=100), "epsilon": None},
        "window": {**hourly, "promise": dphmm.SequencePromise(6, window=12), "epsilon": None},
        "one step": {**hourly, "promise": dphmm.SequencePromise(1, window=1), "epsilon": None},
        "blocks": {**hourly, "promise": dphmm.SequencePromise(12, per=24), "epsilon": None},
        "planned": {**hourly, "schedule": two, "promise": DAY, "epsilon": None, "space": GRID,
                    "policy": dphmm.policy.radius(GRID, covers=500)},
        "planned once": {
            **hourly,
            "schedule": dphmm.accounting.Schedule(DAY, 2, at=[2]),
            "promise": DAY,
            "epsilon": None,
        },
        "planned, sequence": {
            **hourly, "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(4, steps=9), 2, at=[1, 5]),
            "promise": dphmm.SequencePromise(4, steps=9), "epsilon": None,
        },
        "paced": {
            **hourly, "promise": DAY, "epsilon": None,
            "schedule": dphmm.accounting.Schedule(DAY, 2, at=list(range(1, 25)), spreads=(9.0, 8.0, 1.0)),
        },
        "begins elsewhere": {**others, "initials": {"ann": 0}},
        "own epsilons": {**others, "chosen": {1: {"epsilon": 2}}},
        "own policies": {**others, "chosen": {1: {"policy": dphmm.policy.categorical([0, 0, 0, 1, 1, 1])}}},
        "own protection": {**others, "chosen": {1: {"protection": "min-error"}}},
        "own partners": {**others, "chosen": {1: {"partners": {0: 1}}}},
    }  # fmt: skip
    for mechanism in ("discrete-knorm", "staircase", "discrete-laplace", "optimal-table"):
        kinds[f"mechanism {mechanism}"] = {**others, "mechanism": mechanism}
    kinds["mechanism hops"] = {**others, "space": LABELS, "mechanism": "hops"}
    return found | {name: stated(**kind) for name, kind in kinds.items()}


def answered(
    dependence: Any = "independent",
    *,
    stated: StatedDependence | None = None,
    unit: Unit | None = None,
    secure: bool = True,
    **more: Any,
) -> QueryStatement:
    """The statement of a histogram; by default as the data owner says that no record depends on another one."""
    bits = None if secure else dphmm.ReplayBits(3)
    event = dphmm.dependent.query("histogram", np.array([0, 1, 1]), dependence, 1, n_states=2, bits=bits).event
    if stated is None:
        stated = StatedDependence(given="independent", between="nobody", most=None, model=event.dependence)
    domain = {"states": 2, "windows": [1, 3], "box": None}
    return QueryStatement.of(event, unit=unit or Unit(), dependence=stated, domain=domain, **more)


def between(kind: str, most: int | None = None, given: str = "group") -> StatedDependence:
    """A dependence between records, in the library's words a group."""
    return StatedDependence(given=given, between=kind, most=most, model="a group of 2 records")


def queries() -> dict[str, QueryStatement]:
    """A statement of every kind of answer about records that may depend on each other."""
    person = Unit(of="person", most=2)
    return {
        "independent": answered(),
        "group": answered(("group", 2), stated=between("records", 2), unit=person),
        "assumed": answered(stated=between("nobody, assumed", given="independent")),
        "circle": answered(("group", 2), stated=between("circles", 4), unit=Unit(of="circle", most=2)),
        "chain": answered(stated=between("a chain", 9, "chain"), not_protected=["all records of a person"]),
        "rows": answered(
            stated=between("a person"),
            unit=Unit(of="person", most=2, number_public=True),
            not_protected=["rows of DATA", "noise of the model"],
        ),
        "trips": answered(stated=between("a person"), unit=Unit(of="person", most=2, counts="trips")),
        "edge": answered(
            stated=between("records", 1),
            unit=Unit(there_or_not=True),
            not_protected=["a person's edges", "one edge or another", "the people"],
        ),
        "replayable": answered(secure=False),
        "same-model": answered(model_people="same"),
        "unknown-model": answered(model_people="unknown"),
        "other-model": answered(model_people="others"),
    }


STAYS = [Stay(1, 6.0, 404.0, 150.0), Stay(3, 18.0, 250.0, 120.0), Stay(7, 42.0, 136.0, 90.0)]
PLACES = ReaderFindings(
    1028.0, 2532.0, "m", people="the rows of this file", ratio=(0.38, 0.43), known=130.0, stays=STAYS,
    stays_without=2660.0, block="day", blocks=3,
)  # fmt: skip
#: What may be found, by a name.
FOUND: dict[str, ReaderFindings] = {
    "places": PLACES,
    "no nearer": replace(PLACES, error=2500.0, ratio=(0.96, 1.01)),
    "no nearer but for one": replace(PLACES, error=2500.0, ratio=(0.96, 1.01), halved=1, counted=361),
    "the cell": replace(PLACES, error=130.0),
    "later": replace(PLACES, blocks=0),
    "never": replace(PLACES, stays=[Stay(1, 6.0, 2000.0, 900.0)]),
    "known": replace(PLACES, stays_without=0.0),
    "uncomputed": replace(PLACES, stays=(), uncomputed="every answer has a plan of its own"),
    "windows": replace(PLACES, block="window", seconds=43_200),
    "sequence": replace(PLACES, block="sequence", stays=STAYS[:1], seconds=432_000, state="zone", blocks=1),
    "labels": ReaderFindings(
        0.4, 0.9, LABELS_WRONG, stays=[Stay(1, 6.0, 0.2, 0.0)], stays_without=0.8, block="day", blocks=1
    ),
    "numbers": ReaderFindings(
        0.4, 0.9, "answer units", stays=[Stay(1, 6.0, 0.2, 0.1)], stays_without=0.8, block="block"
    ),
}


def stories(every: Mapping[str, ReleaseStatement]) -> Iterator[tuple[str, Story]]:
    """Stories of these statements, by a name."""
    for name, statement in every.items():
        promise, schedule = statement.promise, statement.asking
        yield name, story(statement, promise, schedule)
        secure = msgspec.structs.replace(statement, private=True, reasons=[])
        yield f"{name}: read", story(secure, promise, schedule, PLACES, as_stated=True)
    promise, schedule = every["planned"].promise, every["planned"].asking
    for name, found in FOUND.items():
        yield f"found {name}", story(every["planned"], promise, schedule, found)
    ledgers = {
        "alone": InLedger(Fraction(12), Fraction(12)),
        "a file": InLedger(Fraction(12), Fraction(24), 0, True),
        "a query": InLedger(Fraction(12), Fraction(24), 1, True),
        "queries": InLedger(Fraction(12), Fraction(24), 2, True),
    }
    more: dict[str, dict[str, Any]] = {
        "unconfirmed": {"confirmed": False},
        "all possible": {"all_possible": True},
        "some answered": {"answered": 1},
        "read": {"as_stated": True},
        "largest": {"largest": Fraction(2)},
        **{f"ledger of {name}": {"ledger": ledger} for name, ledger in ledgers.items()},
    }
    for kind in ("map", "planned", "paced", "sequence", "window", "own epsilons"):
        promise, schedule = every[kind].promise, every[kind].asking
        for name, given in more.items():
            yield f"{kind}, {name}", story(every[kind], promise, schedule, PLACES, **given)
