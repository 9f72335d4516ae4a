"""Whom a model was fitted on, seen from the people released, and what is known of the privacy of its fit."""

from __future__ import annotations

import itertools

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.learned import Whom, whom

#: By what the owner says, and whether names were compared (None: not) and met, and whether it is the same file.
KNOWN = {
    (None, None, False): ("unknown", None),
    (None, False, False): ("others", "names"),
    (None, True, False): ("same", "names"),
    ("unknown", None, False): ("unknown", None),
    ("unknown", False, False): ("unknown", None),
    ("unknown", True, False): ("same", "names"),
    ("others", None, False): ("others", "owner"),
    ("others", False, False): ("others", "owner"),
    ("others", True, False): ("same", "names"),
    ("same", None, False): ("same", "owner"),
    ("same", False, False): ("same", "owner"),
    ("same", True, False): ("same", "names"),
    **{(said, among, True): ("same", "file")
       for said in (None, "unknown", "others", "same") for among in (None, False, True)},
}  # fmt: skip


def test_what_is_known_of_whom_the_model_was_fitted_on():
    assert len(KNOWN) == 4 * 3 * 2
    for (said, among, same_file), expected in KNOWN.items():
        assert whom(said, among, same_file) == expected, (said, among, same_file)
    with pytest.raises(InvalidInput, match="model_people"):
        whom("everybody", True)


def test_a_pair_that_cannot_be_is_refused():
    possible = {("unknown", None), ("others", "owner"), ("others", "names")}
    possible |= {("same", known_by) for known_by in ("owner", "names", "file")}
    for pair in itertools.product(("unknown", "others", "same"), ("owner", "names", "file", "nobody")):
        if pair in possible:
            assert Whom.of(*pair) == pair
        else:
            with pytest.raises(InvalidInput, match="known_by"):
                Whom.of(*pair)
    assert [Whom.of(people).known_by for people in ("unknown", "others", "same")] == [None, "owner", "owner"]
