"""Private learning from a Spark frame: executors count, the driver draws once and stores before it shows.

The noisy model is stored in the transaction that draws it, under an id that the caller chooses. The same id gives the
stored model again, whatever the frame is then: a driver that is restarted shows what was stored, and nothing else.

Proof: docs/proofs/learning.md, docs/proofs/account.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dphmm.accounting.event import LearningEvent
from dphmm.dependent._question import fields
from dphmm.markov.private.planned import PlannedFit
from dphmm.markov.private.sensitivity import Caps
from dphmm.spark.counting import Roles, counted
from dphmm.storage.publications import fit_counts_once
from dphmm.types import Bits, Exact

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.markov.model import MarkovModel
    from dphmm.states.space import StateSpace


def fit_private(
    frame: Any,
    space: StateSpace,
    epsilon: Exact,
    max_length: int,
    *,
    ledger: Ledger,
    event_id: str,
    columns: Mapping[str, str] | None = None,
    neighbours: str = "add-remove",
    max_sequences: int = 1,
    mask: Any = None,
    initial: str = "occupancy",
    smoothing: float = 1.0,
    projection: str = "simplex",
    bits: Bits | None = None,
    step: int | None = None,
    source: str | None = None,
) -> tuple[MarkovModel, LearningEvent]:
    """Fit a Markov model to a Spark frame with pure differential privacy; a record is all rows of one user.

    Parameters
    ----------
    frame, space, columns : as in `dphmm.spark.count_transitions`.
    ledger : holds the model and its loss before the model is returned; the loss counts for every person of it.
    event_id : the name of this fit there. The same id gives the stored model, whatever the frame is, and draws nothing.
    epsilon, max_length, neighbours, max_sequences, mask, initial, smoothing, projection, bits, step, source :
        as in `dphmm.markov.private.fit_chain`. Where ``initial`` is "first", sequences of one row count too.

    Under the same words it is the model that `dphmm.MarkovModel.fit_private` learns from the same sequences. Public
    options are checked, and caps of the ledger kept, before any job starts; no transaction is open while a job runs.

    Returns the model and the event. Raises InvalidInput for public options, and for another fit under a stored id;
    BudgetExceeded for one that passes a cap.

    Examples
    --------
    ``model, event = dphmm.spark.fit_private(frame, space, 1, 24, ledger=dphmm.open_ledger("ledger.db"),
    event_id="walks-2026")``

    Source: docs/proofs/learning.md.
    """
    caps = Caps(max_length, max_sequences, neighbours)
    planned = PlannedFit(
        space.n_states,
        epsilon,
        caps,
        "owner",
        mask=mask,
        initial=initial,
        smoothing=smoothing,
        projection=projection,
        bits=bits,
        space=space,
        step=step,
        source=source,
    )
    roles, shortest = Roles.of(frame, space, columns), 1 if initial == "first" else 2
    with fields({"publication": "event_id"}):
        model = fit_counts_once(
            ledger, event_id, planned, lambda: counted(frame, roles, space, caps, shortest), {"space": space}
        )
    return model, planned.event
