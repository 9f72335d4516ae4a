"""How far what was published lies from the truth, which only its owner can join to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.real.inputs import INPUTS, Input
from benchmarks.real.matrix import Cell, table_of

EARTH_METRES = 6371008.8


def joined(rows: pd.DataFrame, released: pd.DataFrame, step_seconds: int | None) -> pd.DataFrame:
    """The released rows with their owner's truth beside them, by user and step."""
    truth = rows.copy()
    if step_seconds is not None:
        truth["t"] = truth.t.dt.floor(f"{step_seconds}s").astype(released.t.dtype)
        truth = truth.groupby(["user", "t"], as_index=False).last()
        both = released.merge(truth, on=["user", "t"], validate="one_to_one")
    else:
        if "step" in truth:
            first = truth.groupby("user").step.transform("min")
            truth["step"] = truth.step - first + 1
        else:
            truth["step"] = truth.groupby("user").cumcount() + 1
        both = released.merge(truth.drop(columns="t", errors="ignore"), on=["user", "step"], validate="one_to_one")
    if len(both) != len(released):
        raise SystemExit(f"{len(released) - len(both)} released rows without a truth")
    return both


def with_estimates(released: pd.DataFrame, model: Path, policy: Path, ledger: Path) -> pd.DataFrame:
    """The released rows, all asked, with what a reader makes of the answers so far: mean and likeliest state."""
    from dphmm import ReleaseSession, open_ledger
    from dphmm.session import estimate
    from dphmm.session.stepwise import walk
    from dphmm.storage import load_model, load_policy

    made = load_model(model)
    space: Any = made.space
    public, answers, states = (made, load_policy(policy, model=made), space), [], []
    with open_ledger(ledger) as kept:
        for user in released.user.unique():
            setting = ReleaseSession.resume(kept, user, *public).setting
            for step in walk(setting, setting.first(), kept.entries(user, setting.query), kept.plan):
                if step.plan is not None:
                    guess = estimate(step.posterior, space)
                    answers.append(guess.answer)
                    states.append(space.names[guess.state])
    points = np.array(answers)
    columns = {"estimate": states, **{f"estimate_{j}": points[:, j] for j in range(space.dimension)}}
    place = space.to_latlon(points)
    if place is not None:
        columns |= {"estimate_lat": place[0], "estimate_lon": place[1]}
    # Rows of a file stand by user and step, as those of a session.
    return released.assign(**columns)


def mean_errors(both: pd.DataFrame, answers: pd.DataFrame | None) -> tuple[float, float]:
    """Mean distance from the truth, of z and of the estimate: metres on a map, else in answer units."""
    of_z, of_estimate = errors(both, answers)
    return float(of_z.mean()), float(of_estimate.mean())


def errors(both: pd.DataFrame, answers: pd.DataFrame | None) -> tuple[np.ndarray, np.ndarray]:
    """The distances of every row."""
    if "z_lat" in both:
        there = np.radians(both[["lat", "lon"]].to_numpy())
        found = [np.radians(both[[f"{name}_lat", f"{name}_lon"]].to_numpy()) for name in ("z", "estimate")]
        return _great_circle(there, found[0]), _great_circle(there, found[1])
    assert answers is not None
    axes = [column for column in answers if column != "state"]
    true = answers.set_index("state")[axes].loc[both.state].to_numpy()
    found = [both[[f"{name}_{j}" for j in range(len(axes))]].to_numpy() for name in ("z", "estimate")]
    return np.linalg.norm(found[0] - true, axis=1), np.linalg.norm(found[1] - true, axis=1)


def _great_circle(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    half = np.sin((two - one) / 2) ** 2
    inner = half[:, 0] + np.cos(one[:, 0]) * np.cos(two[:, 0]) * half[:, 1]
    metres: np.ndarray = 2 * EARTH_METRES * np.arcsin(np.sqrt(inner))
    return metres


def answers_of(given: Input, folder: Path) -> pd.DataFrame | None:
    """The numbers of the states by name; None on a map."""
    if given.unit == "m":
        return None
    if given.answers is not None:
        return given.answers()
    # Ordinal answers are 0, 1, ... in the order of the names, as `dphmm fit` says.
    names = sorted(pd.read_parquet(folder / "fit.parquet").state.unique())
    return pd.DataFrame({"state": names, "x": range(len(names))})


def blind_error(cell: Cell, folder: Path) -> float:
    """Mean error of one guess that needs no release: the mean answer under the model's initial distribution."""
    from dphmm.storage import load_model

    given = INPUTS[cell.name]
    model = load_model(folder / f"{cell.model}.npz")
    assert model.space is not None
    guess = (model.initial @ model.space.answers)[None, :]
    released = pd.read_parquet(table_of(cell, folder))
    place = model.space.to_latlon(guess)
    for name in ("z", "estimate"):
        for j in range(guess.shape[1]):
            released[f"{name}_{j}"] = guess[0, j]
        if place is not None:
            released[f"{name}_lat"], released[f"{name}_lon"] = place[0][0], place[1][0]
    truth = pd.read_parquet(folder / "release.parquet")
    both = joined(truth, released, 300 if "--step" in given.fitting else None)
    return mean_errors(both, answers_of(given, folder))[0]


def estimated(cell: Cell, folder: Path) -> pd.DataFrame:
    """The released rows of a cell `with_estimates`."""
    public = folder / f"{cell.model}.npz", folder / f"{cell.model}-{cell.policy}.json"
    return with_estimates(pd.read_parquet(table_of(cell, folder)), *public, folder / f"{cell.file}.db")


def stay_errors(cell: Cell, folder: Path) -> dict[str, float]:
    """Median errors of the estimate when someone has just come into a cell, and after an hour in it without a gap."""
    from dphmm.storage import load_model

    released = estimated(cell, folder)
    both = joined(pd.read_parquet(folder / "release.parquet"), released, 300).sort_values(["user", "step"])
    space: Any = load_model(folder / f"{cell.model}.npz").space
    where = pd.Series(space.locate(both.lat.to_numpy(), both.lon.to_numpy()), index=both.index)
    same = (where == where.shift()) & (both.user == both.user.shift()) & (both.step == both.step.shift() + 1)
    stayed = (~same).groupby((~same).cumsum()).cumcount()
    error = pd.Series(errors(both, None)[1], index=both.index)
    hour = stayed >= 3600 // 300
    return {
        "all": float(error.median()),
        "first": float(error[stayed == 0].median()),
        "hour": float(error[hour].median()),
        "rows": int(hour.sum()),
    }
