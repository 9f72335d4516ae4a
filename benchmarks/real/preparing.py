"""What an owner does before a release: import, split the people, fit, choose policies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.real.inputs import MODELS, Input


def halves(trajectories: Path, users: int, box: tuple[float, float, float, float] | None = None) -> tuple[Path, Path]:
    """Two files beside the trajectories: every second user's rows to fit on, and the first of the others to release.

    With a box only rows inside it are released: the owner's choice, which says of each row that it was inside.
    """
    rows = pd.read_parquet(trajectories)
    if box is not None:
        west, south, east, north = box
        inside = rows.lat.between(south, north) & rows.lon.between(west, east)
    names = list(dict.fromkeys(rows.user))
    fitted, others = set(names[0::2]), names[1::2]
    to_fit = rows[rows.user.isin(fitted)]
    rest = rows[rows.user.isin(others) & inside] if box is not None else rows[rows.user.isin(others)]
    released = rest[rest.user.isin(list(dict.fromkeys(rest.user))[:users])]
    paths = trajectories.with_name("fit.parquet"), trajectories.with_name("release.parquet")
    for path, part in zip(paths, (to_fit, released), strict=True):
        part.to_parquet(path, index=False)
    return paths


def prepare(given: Input, data: Path, folder: Path, users: int, run: Callable[..., Any]) -> None:
    """Import, split, fit each model and write each policy into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "all.parquet").exists():
        run("import", given.importing[0], data / given.source, "-o", folder / "all.parquet", *given.importing[1:])
    to_fit, _ = halves(folder / "all.parquet", users, given.box)
    fitting: list[Any] = list(given.fitting)
    if given.answers is not None:
        given.answers().to_csv(folder / "answers.csv", index=False)
        fitting += ["--answers", folder / "answers.csv"]
    labelled: list[Any] = []
    if given.labels is not None:
        pd.DataFrame(given.labels.items(), columns=["state", "label"]).to_csv(folder / "labels.csv", index=False)
        labelled = ["--labels", folder / "labels.csv"]
    for model in given.models:
        fitted = folder / f"{model}.npz"
        run("fit", to_fit, "-o", fitted, "--initial", "occupancy", *fitting, *MODELS[model])
        for policy, (kind, *options) in given.policies.items():
            more = labelled if kind == "categorical" else []
            run("policy", kind, fitted, "-o", folder / f"{model}-{policy}.json", *options, *more)
