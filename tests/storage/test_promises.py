"""What a statement says that releases do not hide: each sentence where it is true, and nowhere else."""

from __future__ import annotations

import itertools

from dphmm.session.options import Options
from dphmm.storage.learned import Whom
from dphmm.storage.promises import not_private_because, not_protected

#: A word of the sentence that is about models learned with privacy.
LEARNED = "beyond the model's own epsilon and delta"


def test_each_sentence_stands_where_it_is_true():
    wrong = []
    for people, private in itertools.product(("same", "others", "unknown"), (None, True, False)):
        said = not_protected(Options.checked(1), {} if private is None else {"private": private}, Whom.of(people))
        plain = not_protected(Options.checked(1), {"private": True}, Whom.of(people))
        of_model = [sentence for sentence in said if sentence not in plain]
        learned = any(LEARNED in sentence for sentence in said)
        if learned != (private is True) or len(of_model) != (private is not True) or len(said) != len(set(said)):
            wrong.append((people, private, said))
    assert wrong == []


def test_reasons_against_privacy():
    assert not_private_because({"private": True}, Whom.of("same"), 0) == []
    assert not_private_because({"private": False}, Whom.of("others"), 0) == []
    (replayed,) = not_private_because({}, Whom.of("unknown"), 1)
    assert "bits" in replayed
    (fitted,) = not_private_because({"private": False}, Whom.of("same"), 0)
    assert "without privacy on people released here" in fitted
