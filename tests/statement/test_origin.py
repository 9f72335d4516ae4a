"""Whom a model was fitted on, seen from the people released, and what follows: reasons, and what is not hidden."""

from __future__ import annotations

import itertools

import pytest

from dphmm.errors import InvalidInput
from dphmm.statement.origin import Whom, reasons, verdict, whom
from dphmm.statement.release import NOT_PROTECTED, unprotected

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


PEOPLE = ("same", "others", "unknown")


def test_what_is_not_hidden_of_a_model_is_named_where_it_is_true():
    of_model = {"people of a learned model", "people of the model"}
    for people, private in itertools.product(PEOPLE, (None, True, False)):
        codes = unprotected("auto", {} if private is None else {"private": private}, Whom.of(people))
        due = "people of a learned model" if private is True else "people of the model"
        assert of_model & set(codes) == {due}, (people, private)
        assert len(codes) == len(set(codes)) and set(codes) <= NOT_PROTECTED.keys()


def test_reasons_against_privacy():
    assert reasons({"private": True, "privacy": {}}, Whom.of("same")) == []
    assert reasons({"private": False}, Whom.of("others")) == []
    assert reasons({"private": True}, Whom.of("unknown")) == ["no epsilon of the fit"]
    assert reasons({}, Whom.of("unknown"), 1) == ["replayable bits"]
    assert reasons({"private": False}, Whom.of("same")) == ["fitted on released"]
    assert reasons({"private": False}, Whom.of("same"), 3) == ["replayable bits", "fitted on released"]
    assert reasons({"private": False}, Whom.of("unknown")) == ["fitted on unknown people"]
    assert reasons({}, Whom.of("same")) == ["made from released"]
    assert reasons({}, Whom.of("unknown")) == ["unknown origin"]


def test_one_reason_against_outweighs_every_doubt():
    for private, people, replayable in itertools.product((None, True, False), PEOPLE, (0, 1)):
        found = reasons({} if private is None else {"private": private}, Whom.of(people), replayable)
        against = {"replayable bits", "fitted on released"} & set(found)
        assert verdict(found) == (False if against else "unknown" if found else True)
        assert not against or against == set(found)
