"""Options of a model that are wrong. Bad matrices and distributions are in the catalogue (tests/faults)."""

from __future__ import annotations

import pytest

from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel

NAN = float("nan")
FAIR = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start", "now"),
        ("step", 0),
        ("step", 1.5),
        ("step", True),
        ("step", "5min"),
        ("step", 10**13),
        ("provenance", []),
    ],
)
def test_options_are_checked(field, value):
    with pytest.raises(InvalidInput, match=field):
        MarkovModel([1, 0], FAIR, **{field: value})


@pytest.mark.parametrize("provenance", [{"x": NAN}, {"x": object()}])
def test_provenance_must_be_json(provenance):
    with pytest.raises(InvalidInput, match="provenance"):
        MarkovModel([1, 0], FAIR, provenance=provenance)
