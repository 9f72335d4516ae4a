"""Tables of a page as text: digits, dashes where nothing was measured, and rows joined by their names."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pandas as pd
import pytest

from dphmm.errors import InvalidInput
from experiments import experiment
from experiments.experiment import Settings
from experiments.printed import beside, crossed, figure, listed, of, percent
from experiments.running import measured

RESULTS = Path(__file__).parents[2] / "docs" / "results"
TABLE = pd.DataFrame({"who": ["a", "a", "b"], "t": [1, 2, 1], "value": [0.5031, 1043.2, 19.55]})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.50349, ".503"), (1.644, "1.64"), (19.55, "19.6"), (187.4, "187"), (1043.2, "1,043"), (12345.6, "12,346")),
        *((0.0, "0"), (0.9996, "1.00"), (999.6, "1,000"), (0.00254, ".00254"), (-0.5, "-.500"), (math.nan, "–")),
    ],
)
def test_three_digits_and_no_integer_part_is_cut(value, text):
    assert figure(value) == text


def test_shares_have_two_digits():
    assert [percent(value) for value in (0.144, 0.0065, 0.05, 1.0)] == ["14 %", ".65 %", "5.0 %", "100 %"]


def test_a_pair_that_was_not_measured_is_a_dash():
    assert crossed(TABLE, "t", "t", "who", of("value")) == [["t", "a", "b"], ["1", ".503", "19.6"], ["2", "1,043", "–"]]


def test_rows_are_joined_by_their_names():
    one = listed(TABLE[TABLE["t"] == 1], "who", "who", {"at 1": of("value", 2)})
    two = listed(TABLE[TABLE["t"] == 2], "who", "who", {"at 2": of("value")})
    assert beside(one, two) == [["who", "at 1", "at 2"], ["a", ".50", "1,043"], ["b", "20", "–"]]


def test_two_rows_of_one_name_are_refused():
    with pytest.raises(InvalidInput, match="names that differ"):
        beside(listed(TABLE, "who", "who", {"value": of("value")}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "choices", "table", "row", "column"),
    [
        (
            "dphmm",
            {"policy": "Gutil", "mechanism": "planar-isotropic", "delta": None, "radius": 1000},
            "by-epsilon",
            "1",
            "Geolife Gutil",
        ),
        (
            "location-sets",
            {"policy": "complete", "mechanism": "laplace", "delta": "0.01"},
            "by-epsilon",
            "2",
            "Geolife, Laplace",
        ),
    ],
)
def test_a_cell_that_is_run_again_gives_the_printed_digits(data_folder, name, choices, table, row, column):
    """A table that was not printed from a run of this version is found: any change of noise moves the second digit."""
    settings, wanted = Settings(data=data_folder), {"data": "geolife", "epsilon": row, "fit": "others", **choices}
    (cell,) = (cell for cell in experiment(name).cells(settings) if wanted.items() <= cell.items())
    overall = next(line for line in measured(experiment(name), settings, cell)["rows"] if line["kind"] == "overall")
    with (RESULTS / f"{name}-{table}.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    printed = next(dict(zip(header, line, strict=True)) for line in rows if line[0] == row)
    assert printed[column] == f"{figure(overall['error_z'])} ({figure(overall['error_estimate'])})"
