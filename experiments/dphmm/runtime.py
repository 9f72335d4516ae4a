"""How long a step takes: Figure 10 of the DPHMM paper. Seconds are the machine's; every other table is the seed's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dphmm import ReleaseSession, ReplayBits
from dphmm.accounting import MemoryLedger
from dphmm.session import Planner, Position
from experiments.experiment import Cell, Row, Settings
from experiments.walks.cells import name_of, policies
from experiments.walks.releases import Choices
from experiments.walks.studies import OTHERS, Fold, study

#: The same walk again and again, and the least of its times: what else the machine does only adds to them.
_TIMES, _FEW = 5, 2


def cells(data: str, quick: bool) -> Iterator[Cell]:
    """A cell for every policy."""
    for number, _ in enumerate(policies(data, "auto")):
        yield {"part": "runtime", "data": data, "policy_number": number, "times": _FEW if quick else _TIMES}


def measure(settings: Settings, cell: Cell) -> list[Row]:
    """For each timestamp the seconds to plan it from nothing, and to release it in a session that plans as it goes."""
    choices = policies(str(cell["data"]), "auto")[int(str(cell["policy_number"]))]
    of, times = study(settings, str(cell["data"])), int(str(cell["times"]))
    fold = of.fold(of.fold_of(0, OTHERS), OTHERS)
    cells_, states = of.walks[0].cells, fold.state_of[of.walks[0].cells[1:]].tolist()
    _seconds(fold, choices, int(cells_[0]), states[:3])  # what is compiled at first use is compiled now
    found = np.min([_seconds(fold, choices, int(cells_[0]), states) for _ in range(times)], axis=0)
    method, rows = name_of(choices), []
    for name, seconds in zip(("plan", "release"), found[:2], strict=True):
        what = f"{method}, {name}"
        for t, (value, size) in enumerate(zip(seconds.tolist(), found[2].tolist(), strict=True), start=1):
            row: Row = {"kind": "runtime", "method": method, "what": what, "t": t}
            rows.append(row | {"seconds": value, "plan_size": int(size)})
    return rows


def _seconds(fold: Fold, choices: Choices, start: int, states: list[int]) -> list[list[float]]:
    """Seconds (T,) to plan every step anew, seconds (T,) to release it, and how many states the plans have (T,)."""
    setting, knorm = choices.setting(fold), replace(choices, mechanism="discrete-knorm").setting(fold)
    begun = setting.with_model(fold.known_start(start))
    session = ReleaseSession.of(begun, ledger=MemoryLedger(), bits=ReplayBits(1))
    found: list[list[float]] = [[], [], []]
    for state in states:
        position = Position(session.t, session.prior)
        support, plan_set = session.support, position.constrain(setting.options.constraint)
        began = time.perf_counter()
        session.release(state)
        released = time.perf_counter()
        Planner(knorm.policy, knorm.space, knorm.options).plan(support, plan_set)
        planned = time.perf_counter()
        for column, value in zip(found, (planned - released, released - began, float(plan_set.sum())), strict=True):
            column.append(value)
    return found
