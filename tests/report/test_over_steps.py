"""Errors by the step of a block: where steps come once each is that of its own rows, from the first that there is.

It would fail for steps of a sequence that are drawn over one another.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dphmm
from commands import run, write_rows
from dphmm.report.content import NO_BLOCKS
from dphmm.report.over_steps import OverSteps
from dphmm.report.page import Content
from report.worlds import public, read, released, report

pytestmark = pytest.mark.usefixtures("few_invented_people")


def sequences(folder):
    """Twelve people with three labels for 40 steps, asked twice in the first 20 of them."""
    names, rng = ("a", "b", "c"), np.random.default_rng(4)
    space = dphmm.StateSpace.labels(names)
    moves = 0.8 * np.eye(3) + 0.2 / 3
    dphmm.storage.save_model(dphmm.MarkovModel(np.full(3, 1 / 3), moves, space=space), folder / "model.npz")
    run("policy", "complete", folder / "model.npz", "-o", folder / "policy.json")
    rows = []
    for user in range(12):
        state = rng.integers(3)
        for step in range(1, 41):
            state = state if rng.random() < 0.8 else rng.integers(3)
            rows.append([f"u{user:02}", step, names[state]])
    write_rows(folder / "walks.csv", ["user", "step", "state"], rows)
    public = (folder / "model.npz", "--policy", folder / "policy.json")
    run("plan", *public, "--path-epsilon", 8, "--steps", 20, "--epsilon", 4, "--people", 6, "-o", folder / "plan.json")
    return folder


@pytest.mark.parametrize("planned", [True, False])
def test_steps_that_come_once_are_not_drawn_over_one_another(planned, tmp_path):
    """Of a promise over a whole sequence, and without one: what is expected of each step is that of its own rows."""
    folder = sequences(tmp_path)
    released(
        folder, *(("--plan", folder / "plan.json") if planned else ()), epsilon=None if planned else 1, smoothed=False
    )
    found = read(folder)
    rows = pq.read_table(folder / "released" / "released.parquet").to_pandas()
    decoded = dphmm.reconstruction.smooth(rows, *public(folder), found.space, progress=False)
    due = (1 - decoded.probability).groupby(decoded.step).mean()
    over = OverSteps(found)
    steps, ticks = over.drawn
    assert len(steps) == 40 and ticks[-1][1] in ("40", "step 40")
    assert over.believed[0][steps] == pytest.approx(due.to_numpy(), abs=1e-12)
    assert planned or found.found.uncomputed == NO_BLOCKS
    if planned:
        asked = sorted(rows.step[rows.plan.notna() & (rows.plan != "")].unique() - 1)
        assert over.asked == asked and len(asked) == 2


def test_of_steps_that_come_once_the_file_s_first_are_drawn(tmp_path):
    """A second file of somebody begins at step 1,006, beyond those that are drawn of a long one."""
    folder = sequences(tmp_path)
    rows = pd.read_csv(folder / "walks.csv")
    for first, name in ((1, "walks.csv"), (1006, "later.csv")):
        rows.assign(step=rows.step - rows.step.min() + first).to_csv(folder / name, index=False)
    released(folder, epsilon=1, smoothed=False)
    for old in folder.glob("released*"):
        shutil.rmtree(old)
    released(folder, rows="later.csv", epsilon=1, smoothed=False)
    report(folder, tmp_path / "a.html", ledger=True)
    drawn = (tmp_path / "a.html").read_text()
    assert "step 1,006" in drawn and "step 1,045" in drawn and "step 1,046" not in drawn


def test_steps_of_people_who_are_in_no_figure_are_not_drawn(tmp_path):
    """One person who is not looked at began long before all others."""
    found = read(released(sequences(tmp_path), epsilon=1, smoothed=False))
    kept = found.rows.step >= 21
    later = replace(found, rows=replace(found.rows, step=np.where(kept, found.rows.step + 5000, found.rows.step)))
    later = replace(later, spreads=np.where(kept, found.spreads, np.nan))
    steps, ticks = OverSteps(later).drawn
    assert len(steps) == 20 and [name for _, name in ticks] == ["step 5,021", "step 5,040"]
    assert Content(later).error_figure is not None


def test_steps_of_seven_hours_are_drawn_from_the_first(tmp_path):
    """They make no day, so each comes once: step 1 is the first row, whatever the time."""
    space = dphmm.StateSpace.labels(["a", "b", "c"])
    model = dphmm.MarkovModel([0.9, 0.05, 0.05], 0.8 * np.eye(3) + 0.2 / 3, space=space, start="at", step=25_200)
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    run("policy", "complete", tmp_path / "model.npz", "-o", tmp_path / "policy.json")
    begin, rows = pd.Timestamp("2024-05-06T07:00Z"), []
    begin -= pd.Timedelta(begin.timestamp() % 25_200, "s")
    for step in range(20):
        rows.append(["ann", (begin + step * pd.Timedelta("7h")).strftime("%Y-%m-%dT%H:%M:%SZ"), "abc"[step % 3]])
    write_rows(tmp_path / "walks.csv", ["user", "t", "state"], rows)
    found = read(released(tmp_path, epsilon=2, smoothed=False))
    over = OverSteps(found)
    assert over.believed[0][over.drawn[0]] == pytest.approx(found.spreads[np.argsort(found.rows.step)], abs=1e-12)
