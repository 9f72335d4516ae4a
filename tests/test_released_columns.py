"""Claim: a released table, a released file, a stream's line and a file of Spark have the columns of the contract alone.

Who, when, which step, the answer and what it cost: any other column could say something of the truth, and an estimate
was taken for the result. It would fail for a column more in one of them, under any constraint, schedule or space.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphmm
from dphmm.release.batch import Batch
from dphmm.release.stream import Stream, answered_line, parse_line
from dphmm.samplers.entropy import JobKey
from dphmm.storage.table_ledger import PREFIX
from dphmm.storage.tables import read_table
from spark.test_bucket import job_of

STEP = 300
DAY = dphmm.SequencePromise(2, steps=4)
PACED = dphmm.accounting.Schedule(DAY, 1, [1, 2, 3, 4], (0.1, 0.2))
SPACES = {
    "numbers": (dphmm.StateSpace([[0, 0], [1, 0], [0, 1], [1, 1]]), ["z_0", "z_1"]),
    "labels": (dphmm.StateSpace.labels(["0", "1", "2", "3"]), ["z"]),
    "map": (dphmm.Grid(10.0, 50.0, 10.02, 50.02, 1500), ["z_0", "z_1", "z_lat", "z_lon"]),
}
CHOICES = {
    "support": {"epsilon": 1},
    "delta-set": {"epsilon": 1, "constraint": "delta=0.2"},
    "planned": {"schedule": dphmm.accounting.Schedule(DAY, 1, [1, 3])},
    "paced": {"schedule": PACED},
}


def world(kind, timed):
    """(model, policy, space), rows of two people, and the columns that are due."""
    space, answers = SPACES[kind]
    n = space.n_states
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=space, step=STEP if timed else None)
    rows = pd.DataFrame({"user": np.repeat(["ann", "bob"], 4), "state": [str(space.names[k % n]) for k in range(8)]})
    if timed:
        rows["t"] = pd.to_datetime(np.tile(np.arange(4) * STEP, 2), unit="s", utc=True)
    if kind == "map":
        rows["lat"], rows["lon"] = 50.01, np.linspace(10.001, 10.019, 8)
        rows = rows.drop(columns="state")
    due = ["user", *["t"] * timed, "step", *answers, "epsilon", "cost", "plan"]
    return (model, dphmm.policy.complete(n), space), rows, due


@pytest.mark.parametrize("timed", [False, True], ids=["steps", "times"])
@pytest.mark.parametrize("choices", CHOICES)
@pytest.mark.parametrize("kind", SPACES)
def test_nothing_but_the_contract_is_released(kind, choices, timed, tmp_path: Path):
    public, rows, due = world(kind, timed)
    given = {**CHOICES[choices], "bits": dphmm.ReplayBits(3)}
    for suffix in (".csv", ".parquet"):
        output = tmp_path / f"released{suffix}"
        table = dphmm.release_many(rows, *public, output=output, model_people="others", progress=False, **given)
        assert list(table.columns) == due and len(table) == 8
        assert read_table(output).column_names == due
    rows = rows.sort_values("t", kind="stable") if timed else rows
    stream = Stream(Batch(*public, **given), False)
    marked = rows if timed else rows.assign(step=np.arange(len(rows)) % 4)
    lines = [parse_line(row.to_json(date_format="iso").encode(), kind == "map") for _, row in marked.iterrows()]
    answered = [released for line in lines for released in stream.take(line)] + list(stream.end())
    assert len(answered) == 8
    for released in answered:
        assert list(json.loads(answered_line(released, public[2]))) == due


@pytest.mark.replayed_words
@pytest.mark.parametrize("choices", ["support", "delta-set"])
def test_a_file_of_spark_has_them_and_what_is_the_ledger_s(choices, tmp_path: Path):
    more = {name: value for name, value in CHOICES[choices].items() if name != "epsilon"}
    rows = pa.table({"user": ["ann", "ann", "bob"], "step": [1, 2, 1], "state": ["a", "b", "c"]})
    outcome = job_of(tmp_path, **more).run(JobKey.replayed(1), 0, rows)
    names = pq.read_schema(tmp_path / "data" / outcome.file.name).names
    published = [name for name in names if not name.startswith(PREFIX)]
    assert published == ["user", "step", "z_0", "epsilon", "cost", "plan"]
