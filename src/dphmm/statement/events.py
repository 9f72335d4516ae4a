"""The facts of cases of an event log that a release tells beside its answers: names, times and lengths.

Proof: docs/proofs/lengths.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy import Support, joins_end
from dphmm.policy.graph import PolicyGraph
from dphmm.session.setting import Setting
from dphmm.statement.parts import Part, Positive, rule
from dphmm.states.space import END, StateSpace
from dphmm.states.visit_table import SHOWN, VisitTable
from dphmm.types import BoolArray


class EventLog(Part, frozen=True, kw_only=True):
    """The public facts about the rows of cases, beside their answers.

    case_names : random: drawn, and cases are sorted by them; kept: as in the source.
    times : The published form of the times of events.
    length : The public number of rows of every case, END after its last event; null where rows end with their case.
    length_hidden : Whether two cases that differ in length alone are neighbouring paths.
    """

    case_names: Annotated[str, rule(enum=["random", "kept"])]
    times: Annotated[str, rule(enum=["none", "day", "exact"])]
    length: Positive | None
    length_hidden: bool

    says: ClassVar[Mapping[str, str]] = {
        "meaning": """
{% if case_names == "random" %}Cases have random names and are sorted by them: names and order tell nothing.\
{% else %}Names of cases are those of the source, and their order is: what they tell, such as when a case began, is in \
no bound.{% endif +%}
{% if times == "none" %}Steps are positions, and no times are published.\
{% elif times == "day" %}Of the time of an event its day is published. What days tell of the activities is in no bound.\
{% else %}The times of events are published. An event makes its row, and when it was may name the activity: what times \
tell is in no bound.{% endif +%}
{% if length is none %}Rows end where their case ends: the length of each case is told.\
{% elif length_hidden %}Every case has {{ length }} rows, and END stands after its last event: two cases that differ \
only in where END begins are neighbouring paths.\
{% else %}Every case has {{ length }} rows, and END stands after its last event. END is not joined to every label, or \
the model leaves it, or a label, impossible at some step: what answers tell of a length is in no bound.{% endif +%}
""",
    }

    @classmethod
    def of(cls, case_names: str, length: int | None, rows: VisitTable, setting: Setting) -> Self:
        """The facts of the rows that are released under a setting.

        The ``length`` is a public choice: rows that happen to be as many in every case tell how long each case is.
        Raises InvalidInput where a case has another number of rows, or no state is called `END`.
        """
        if length is not None:
            check_has_end(setting.space, length)
        for rows_of_case in [] if length is None else np.unique(np.diff(rows.first)).tolist():
            if rows_of_case != length:
                written = f"{length} rows of every case, as dphmm import events --length {length} writes them"
                raise InvalidInput("length", f"a case of {rows_of_case} rows", written)
        return cls(
            case_names=case_names,
            times="none" if rows.times is None else "day" if rows.shown == SHOWN["day"] else "exact",
            length=length,
            length_hidden=length is not None
            and not setting.varies
            and isinstance(setting.options.constraint, Support)
            and hides_lengths(setting.model, setting.policy, setting.space, length),
        )


def check_has_end(space: StateSpace, length: int) -> None:
    """Raise InvalidInput for cases of one ``length`` where no state is called `END`."""
    if space.index_of(END) < 0:
        raise InvalidInput(
            "length", length, f"a state called {END} among the names of states: it stands after a last event"
        )


def hides_lengths(model: MarkovModel, policy: PolicyGraph, space: StateSpace, length: int) -> bool:
    """True if any two sequences of one length that differ in the start of `END` are neighbours, after any answers.

    `END` is joined to every label, and at each step from the second on it and every label are possible: under a policy
    that joins every two states because some moves lead there, under others because one move leads from each label to
    all of them, whatever earlier answers have excluded. Slots of a model have the same possible moves.

    Examples
    --------
    >>> import dphmm, numpy as np
    >>> from dphmm.statement.events import hides_lengths
    >>> space = dphmm.StateSpace.labels(["a", "b", "END"])
    >>> absorbing = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0, 0, 1]])
    >>> model = dphmm.MarkovModel([0.5, 0.5, 0], absorbing, space=space, start="at")
    >>> hides_lengths(model, dphmm.policy.complete(3), space, 5)
    True
    >>> hides_lengths(model, dphmm.policy.categorical([0, 0, 1]), space, 5)
    False

    Source: docs/proofs/lengths.md.
    """
    if not joins_end(policy, space):
        return False
    secrets = np.arange(model.n_states) if model.secrets is None else np.asarray(model.secrets)

    def everything(possible: BoolArray) -> bool:
        return len(np.unique(secrets[possible])) == space.n_states

    labels = secrets != space.index_of(END)
    possible = model.support_at_start
    if policy.kind != "complete":
        alone = (model.reach([latent]) for latent in np.flatnonzero(labels).tolist())
        return bool(possible[labels].any()) and all(map(everything, alone))
    # No answer excludes a state: what is possible follows from the moves alone.
    possible = model.reach(possible) if model.start == "before" else possible
    for _ in range(1, length):
        before, possible = possible, model.reach(possible)
        if not everything(possible):
            return False
        if (before == possible).all():
            break
    return True
