"""The sentences of every kind of statement and story are those that are kept.

Claim: none changes, comes or goes unseen. It would fail for a template with another word, for a sentence that is left
out of one kind of statement, and for one that a kind of statement gains.
"""

from __future__ import annotations

import difflib

from statement.lines import KEPT, text

AGAIN = "where they are right, write them again: PYTHONPATH=tests python -m statement.lines"


def test_every_sentence_is_as_it_is_kept() -> None:
    kept, now = KEPT.read_text(), text()
    changes = difflib.unified_diff(kept.splitlines(), now.splitlines(), "kept", "now", n=0, lineterm="")
    assert kept == now, "\n".join([AGAIN, *changes])
