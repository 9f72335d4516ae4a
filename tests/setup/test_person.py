"""A person is asked as time goes by: one row, one answer; whom the ledger knows is continued."""

from __future__ import annotations

import pytest

import dphmm
from dphmm.errors import InvalidInput

pytestmark = pytest.mark.replayed_words
LABELS = ["home", "work", "hospital"]


def test_a_person_is_asked_as_time_goes_by_and_continued(tmp_path):
    setup = dphmm.Setup.labels(LABELS, step="1h")
    plan = setup.plan(2, per="1d", epsilon=1, people=20, progress=False)
    with dphmm.open_ledger(tmp_path / "l.db") as ledger:
        ann = plan.person("ann", ledger)
        answers = [ann.release(state="home", at=f"2024-05-06T{hour:02d}:00Z").release for hour in range(24)]
        assert sum(one.z is not None for one in answers) == 2 and repr(ann) == "Person: 'ann', epsilon 2 spent"
        again = plan.person("ann", ledger).release(state="work", at="2024-05-07T00:00Z").release
        assert again.t == 25
        with pytest.raises(InvalidInput):
            ann.release(at="2024-05-07T01:00Z")
