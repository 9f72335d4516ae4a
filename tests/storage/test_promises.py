"""What a statement says that releases do not hide: each sentence where it is true, and nowhere else."""

from __future__ import annotations

import itertools

import pytest

from dphmm.session.options import Options
from dphmm.storage.learned import Whom
from dphmm.storage.promises import not_private_because, not_protected

#: A word of the sentence, and the choice or provenance that it is for.
COMPONENT = "releases disclose it over time"
FLAT = "Where a hull is flat"
LEARNED = "beyond the model's own epsilon and delta"


@pytest.mark.parametrize("people", ["same", "others", "unknown"])
@pytest.mark.parametrize(("scope", "flat"), list(itertools.product(("global", "component"), ("thicken", "allow"))))
@pytest.mark.parametrize("provenance", [{}, {"private": True}, {"private": False}], ids=str)
def test_each_sentence_stands_where_it_is_true(provenance, scope, flat, people):
    said = not_protected(Options.checked(1, dimension=2, scope=scope, flat=flat), provenance, Whom.of(people))
    assert any(COMPONENT in sentence for sentence in said) == (scope == "component")
    assert any(FLAT in sentence for sentence in said) == (flat == "allow")
    assert any(LEARNED in sentence for sentence in said) == (provenance.get("private") is True)
    assert len(said) == len(set(said))
    plain = not_protected(Options.checked(1, dimension=2), {"private": True}, Whom.of(people))
    of_model = [sentence for sentence in said if sentence not in plain and LEARNED not in sentence]
    of_model = [sentence for sentence in of_model if COMPONENT not in sentence and FLAT not in sentence]
    assert len(of_model) == (provenance.get("private") is not True)


def test_reasons_against_privacy():
    assert not_private_because({"private": True}, Whom.of("same"), 0) == []
    assert not_private_because({"private": False}, Whom.of("others"), 0) == []
    (replayed,) = not_private_because({}, Whom.of("unknown"), 1)
    assert "bits" in replayed
    (fitted,) = not_private_because({"private": False}, Whom.of("same"), 0)
    assert "without privacy on people released here" in fitted
