"""What a statement says that releases do not hide: each sentence where it is true, and nowhere else."""

from __future__ import annotations

import itertools

from dphmm.session.options import Options
from dphmm.storage.learned import Whom
from dphmm.storage.promises import not_private_because, not_protected

#: A word of the sentence, and the choice or provenance that it is for.
COMPONENT = "releases disclose it over time"
FLAT = "Where a hull is flat"
LEARNED = "beyond the model's own epsilon and delta"


def test_each_sentence_stands_where_it_is_true():
    wrong = []
    for people, scope, flat, private in itertools.product(
        ("same", "others", "unknown"), ("global", "component"), ("thicken", "allow"), (None, True, False)
    ):
        provenance = {} if private is None else {"private": private}
        said = not_protected(Options.checked(1, dimension=2, scope=scope, flat=flat), provenance, Whom.of(people))
        found = [any(word in sentence for sentence in said) for word in (COMPONENT, FLAT, LEARNED)]
        plain = not_protected(Options.checked(1, dimension=2), {"private": True}, Whom.of(people))
        own = (*plain, *(sentence for sentence in said for word in (COMPONENT, FLAT, LEARNED) if word in sentence))
        of_model = [sentence for sentence in said if sentence not in own]
        due = [scope == "component", flat == "allow", private is True]
        if found != due or len(of_model) != (private is not True) or len(said) != len(set(said)):
            wrong.append((people, scope, flat, private, said))
    assert wrong == []


def test_reasons_against_privacy():
    assert not_private_because({"private": True}, Whom.of("same"), 0) == []
    assert not_private_because({"private": False}, Whom.of("others"), 0) == []
    (replayed,) = not_private_because({}, Whom.of("unknown"), 1)
    assert "bits" in replayed
    (fitted,) = not_private_because({"private": False}, Whom.of("same"), 0)
    assert "without privacy on people released here" in fitted
