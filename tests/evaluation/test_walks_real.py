"""Walks of the two data sets: as many and as long as the papers', and no model has seen the people whom it is used on.

Skipped where there is no real data. The people are found in the files again, by pandas; it would fail for a fold that
takes rows by another numbering, and for a person's second block of check-ins left in the fit.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dphmm.evaluation import walk_sources
from dphmm.evaluation.experiment import Settings
from dphmm.evaluation.walk_releases import Choices, release
from dphmm.samplers.entropy import ReplayBits

COLUMN = {"geolife": "user", "gowalla": "block"}


@pytest.fixture(scope="module", params=["geolife", "gowalla"])
def study(request, data_folder):
    if not (data_folder / walk_sources.FILES[request.param]).is_file():
        pytest.skip(f"this real data is not here: {walk_sources.FILES[request.param]}")
    return walk_sources.study(Settings(data=data_folder), request.param)


def test_twenty_walks_of_a_hundred_steps(study):
    assert len(study.walks) == 20 and {len(walk.cells) for walk in study.walks} == {101}
    owners = [user for walk in study.walks for user in walk.owners]
    assert len(set(owners)) == len(owners)
    assert all(0 <= walk.cells.min() <= walk.cells.max() < study.rules.grid.n_states for walk in study.walks)


def test_models_have_not_seen_their_people(study, data_folder):
    rows = pd.read_parquet(data_folder / walk_sources.FILES[study.name])
    labels = np.array(study.rows.users)
    for number in range(study.n_folds):
        released = [walk for k, walk in enumerate(study.walks) if study.fold_of(k, "others") == number]
        own = {int(name) for walk in released for name in labels[list(walk.owners)]}
        if study.name == "gowalla":
            people = rows.loc[rows["block"].isin(own), "user"].dropna().unique()
            assert set(rows.loc[rows["user"].isin(people), "block"]) <= own
        kept = rows[~rows[COLUMN[study.name]].isin(own)]
        fitted = study._others(number)
        assert len(fitted) == len(kept) < len(rows)
        assert set(labels[np.unique(fitted.user)].astype(int)) == set(kept[COLUMN[study.name]].astype(int))


def test_a_walk_is_where_its_person_was(study, data_folder):
    """Every cell of a walk has a row of that person."""
    rows = pd.read_parquet(data_folder / walk_sources.FILES[study.name])
    labels = np.array(study.rows.users)
    for walk in study.walks[:5]:
        own = rows[rows[COLUMN[study.name]].isin([int(name) for name in labels[list(walk.owners)]])]
        visited = study.rules.grid.locate(own["lat"].to_numpy(), own["lon"].to_numpy())
        assert set(walk.cells.tolist()) <= set(visited.tolist())


def test_orderings_of_the_paper(study):
    """Four walks, twenty steps: Gutil errs least; estimates are nearer than answers; nobody is exposed."""
    short = study.cut(4, 20)
    errors = {}
    for name, choices in {
        "Gutil": Choices("Gutil", "auto", radius=walk_sources.RADII[study.name][0]),
        "Gtrs": Choices("Gtrs", "auto"),
        "DPLS": Choices("complete", "auto", delta="0.01"),
    }.items():
        steps = release(short, choices, [ReplayBits(k) for k in range(4)])
        errors[name] = np.linalg.norm(steps.z - steps.truth, axis=1).mean()
        assert np.linalg.norm(steps.estimate - steps.truth, axis=1).mean() < errors[name]
        assert steps.degree[~steps.constant].min() >= 2
    assert errors["Gutil"] < min(errors["Gtrs"], errors["DPLS"]) / 2
