"""Releases with choices for single steps, or beginnings of users, which a program makes of the files of a folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dphmm
from dphmm.audit import check_release

POINTS = np.stack(np.divmod(np.arange(9), 3), axis=1)
_NEAR = np.abs(POINTS[:, None] - POINTS).max(axis=2) <= 1


def town(folder: Path, last: int, step: int | None = 3600) -> pd.DataFrame:
    """Rows of two people, the last ones so many hours after the first, for a model and a policy in the folder."""
    space = dphmm.StateSpace(POINTS)
    moves = _NEAR / _NEAR.sum(axis=1, keepdims=True)
    dphmm.storage.save_model(dphmm.MarkovModel(np.full(9, 1 / 9), moves, step=step, space=space), folder / "model.npz")
    dphmm.storage.save_policy(dphmm.policy.radius(space, 1), folder / "policy.json", space)
    rows = [
        (user, pd.Timestamp("2024-05-06T21:30Z") + pd.Timedelta(hours=hour), str(state))
        for user in "ab"
        for hour, state in ((0, 4), (1, 3), (2, 0), (3, 1), (4, 1), (last, 7))
    ]
    return pd.DataFrame(rows, columns=["user", "t", "state"])


def public(folder: Path, policy: str = "policy.json") -> tuple[Any, Any, Any]:
    """Model, policy and space."""
    model = dphmm.storage.load_model(folder / "model.npz")
    return model, dphmm.storage.load_policy(folder / policy, model=model), model.space


def steps_of(folder: Path, chosen: dict[str, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """What is chosen for times, by the numbers of their steps."""
    seconds = dphmm.storage.load_model(folder / "model.npz").step
    return {int(pd.Timestamp(time).timestamp()) // seconds: choice for time, choice in chosen.items()}


def release(
    folder: Path, out: str, *, epsilon: Any = 1, policy: str = "policy.json", rows: str = "walks.csv", **choices: Any
) -> Any:
    """The released table of a file of rows; it is also written, with its statement, and stored in ledger.db."""
    table = pd.read_csv(folder / rows, dtype={"user": str, "state": str})
    if "t" in table:
        table["t"] = pd.to_datetime(table["t"], utc=True)
    with dphmm.open_ledger(folder / choices.pop("ledger", "ledger.db")) as ledger:
        return dphmm.release_many(
            table, *public(folder, policy), epsilon, output=folder / out, ledger=ledger, progress=False, **choices
        )


def audit(
    folder: Path, out: str, *, ledger: str | None = "ledger.db", policy: str = "policy.json", **choices: Any
) -> Any:
    """What an audit finds; the plans that it verified are in plans.json."""
    given = (folder / out, *public(folder, policy), *(() if (folder / f"{out}.privacy.json").exists() else (1,)))
    if ledger is None:
        return check_release(*given, **choices)
    with dphmm.open_ledger(folder / ledger, read_only=True) as opened:
        shutil.rmtree(folder / "plain", ignore_errors=True)
        found = check_release(*given, ledger=opened, plain=folder / "plain", **choices)
    for file in (folder / "plain").glob("*s.json"):
        shutil.copy(file, folder / file.name)
    return found
