"""What every importer gives: registered by its name, rows in order, and rows of another form counted and left out."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

import dphmm.storage.importers as importers
from dphmm.errors import InvalidInput
from dphmm.states import Trajectories
from dphmm.storage.importers import DOCUMENTS, IMPORTERS, RECIPES
from dphmm.storage.importers.imported import sorted_by_name_and_time


def test_every_importer_is_registered():
    made = set()
    for module in pkgutil.iter_modules(importers.__path__):
        loaded = importlib.import_module(f"{importers.__name__}.{module.name}")
        made |= {v for k, v in vars(loaded).items() if k.startswith("import_") and v.__module__ == loaded.__name__}
    assert made == {function for name, function in IMPORTERS.items() if name not in DOCUMENTS | RECIPES}
    assert [(name, function) for name, function in IMPORTERS.items() if function.__name__ != f"import_{name}"] == []


def test_users_stand_by_value_where_they_are_whole_numbers_and_by_name_after_them():
    """Nobody else's name decides how a name is compared."""
    users = ("b", "10", "9", "٣", "a")
    rows = Trajectories(users, np.arange(5, dtype=np.int32), time=np.arange(5))
    assert sorted_by_name_and_time(rows).users == ("9", "10", "a", "b", "٣")
    twice = Trajectories(("x",), np.zeros(3, np.int32), time=np.array([3, 1, 2]))
    assert sorted_by_name_and_time(twice).time.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("format_", "options", "said"),
    [
        ("csv", {"username": "ann"}, "options: got username; expected one of comment, "),
        ("intervals", {}, "options: got []: missing a required "),
        ("intervals", {"step": "5min", "gaps": "x"}, "options: got gaps; expected one of "),
        (
            "geolife",
            {"user": "ann"},
            "options: got ['user']: got an unexpected keyword argument 'user'; expected those of dphmm",
        ),
        ("foursquare", {"user": "ann"}, "options: got user; expected one of state_column"),
    ],
)
def test_options_that_there_are_not_are_named(tmp_path, format_, options, said):
    path = tmp_path / "rows.txt"
    path.write_text("start\tend\tlabel\n2030-01-01 00:00:00\t2030-01-01 01:00:00\ta\n")
    with pytest.raises(InvalidInput) as refused:
        importers.import_trajectories(path, format_, **options)
    assert str(refused.value).startswith(said)


def test_whose_rows_they_are_is_said_as_the_command_says_it(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("start\tend\tlabel\n2030-01-01 00:00:00\t2030-01-01 01:00:00\ta\n")
    found = importers.import_trajectories(path, "intervals", step="30min", user="ann", timezone="UTC").trajectories
    assert found.users == ("ann",) and len(found) == 2
