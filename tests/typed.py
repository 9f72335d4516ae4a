"""What a type checker says of options of a release: read by mypy alone, which fails where an error is missing here."""

from typing import Any

import dphmm
from dphmm.session.setting import Setting


def misspelt(table: Any, model: dphmm.MarkovModel, policy: dphmm.PolicyGraph, space: dphmm.StateSpace) -> None:
    public = model, policy, space
    dphmm.release_many(table, *public, 1, constraint="delta=0.1", min_people=20)
    dphmm.release_many(table, *public, 1, constrain="support")  # type: ignore[call-arg]
    dphmm.release_many(table, *public, 1, constraint=0.1)  # type: ignore[arg-type]
    dphmm.evaluation.check_table(table, *public, 1, min_person=20)  # type: ignore[call-arg]
    dphmm.reconstruction.event_odds(table, *public, [0], 1, 2, protect="nearest")  # type: ignore[call-arg]
    dphmm.reconstruction.population(table, *public, 1, mechanisms="auto")  # type: ignore[call-arg]
    dphmm.audit.sequence_loss(*public, 1, 2, startat="at")  # type: ignore[call-arg]
    Setting.of(*public, 1, mechanisms="auto")  # type: ignore[call-arg]
