"""`dphmm.fit` makes of a table the model that `dphmm fit` makes of its file.

Claims: model and states are those of the command; steps, speed limit and places count as there; a table that is none,
and rows that cannot be read, are refused by name.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dphmm
from dphmm.errors import InvalidInput

GRID = dphmm.Grid.from_bounds(13.30, 52.48, 13.34, 52.50, cell=500.0)


def rows(seed=1):
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.normal(0, 0.002, (40, 2)), axis=0)
    times = list(pd.date_range("2024-05-06T08:00Z", periods=20, freq="5min")) * 2
    places = {"lat": 52.49 + 0.3 * steps[:, 0], "lon": 13.32 + 0.3 * steps[:, 1]}
    return pd.DataFrame({"user": ["a"] * 20 + ["b"] * 20, "t": times, **places})


@pytest.mark.replayed_words
def test_it_is_the_model_of_the_command(tmp_path):
    from dphmm.cli.app import app

    table = rows()
    table.loc[7, "lat"] = 52.4999
    table.to_parquet(tmp_path / "rows.parquet")
    box = ["--grid", "500m", "--bbox", "13.30,52.48,13.34,52.50", "--step", "10min", "--max-speed", "5km/h"]
    names = ["fit", str(tmp_path / "rows.parquet"), "-o", str(tmp_path / "model.npz"), *box]
    assert CliRunner().invoke(app, names).exit_code == 0
    model = dphmm.fit(table, GRID, step="10min", max_speed="5km/h")
    assert model.digest == dphmm.load_model(tmp_path / "model.npz").digest
    assert model.space.digest == dphmm.load_model(tmp_path / "model.npz").space.digest
    # Smoothed, of all cells: moves to neighbours become possible, not to every cell.
    assert CliRunner().invoke(app, [*names, "--smoothing", "1", "--all-cells", "--force"]).exit_code == 0
    smoothed = dphmm.fit(table, GRID, step="10min", max_speed="5km/h", smoothing=1, all_cells=True)
    assert smoothed.digest == dphmm.load_model(tmp_path / "model.npz").digest
    assert smoothed.n_transitions < GRID.n_states**2 / 2
    assert dphmm.fit(table, GRID, step=600, max_speed=None).digest != model.digest
    assert dphmm.fit(table, GRID, step=600, all_cells=True).n_states == GRID.n_states


def test_what_is_no_table_and_what_cannot_be_read_are_refused():
    with pytest.raises(InvalidInput, match="space: got MarkovModel"):
        dphmm.fit(rows(), dphmm.MarkovModel([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]))
    with pytest.raises(InvalidInput, match="table: got list"):
        dphmm.fit([1], GRID)
    with pytest.raises(InvalidInput, match="table: got 1 rows that cannot be read"):
        dphmm.fit(rows().astype({"user": object}).assign(user=lambda t: [None, *t.user[1:]]), GRID)
