"""What has been spent, by which theorem, and the ledger that remembers it.

Describe what happened: ReleaseEvent, SkipEvent, ComposedEvents.
Add it up: theorem_5_3, theorem_6_3, theorem_7_1, theorem_7_2, neighbouring_paths, each a Guarantee; summarise,
summarise_ledger.
What a whole sequence says about one step: temporal_leakage, temporal_allocation; about a policy edge:
policy_leakage, policy_allocation.
Remember it: MemoryLedger here, ``dphmm.open_ledger`` for a file; both are a Ledger of Transactions.
"""

from dphmm.accounting.composition import (
    Guarantee,
    SeveralQueries,
    neighbouring_paths,
    theorem_5_3,
    theorem_6_3,
    theorem_7_1,
    theorem_7_2,
)
from dphmm.accounting.event import ComposedEvents, ReleaseEvent, SkipEvent
from dphmm.accounting.learning import LearningEvent, NoisyCounts, NotPrivateEvent, learned, together
from dphmm.accounting.ledger import (
    Caps,
    Entry,
    Ledger,
    Looked,
    MemoryLedger,
    PlanRecord,
    Request,
    Requests,
    SessionHeader,
    Spent,
    StoredMany,
    Transaction,
    replay,
)
from dphmm.accounting.policy_leakage import PolicyLeakage, policy_allocation, policy_leakage
from dphmm.accounting.summary import QuerySummary, SubjectSummary, summarise, summarise_ledger
from dphmm.accounting.temporal import Leakage, losses_per_step, temporal_allocation, temporal_leakage

__all__ = [
    "Caps",
    "ComposedEvents",
    "Entry",
    "Guarantee",
    "Leakage",
    "LearningEvent",
    "Ledger",
    "Looked",
    "MemoryLedger",
    "NoisyCounts",
    "NotPrivateEvent",
    "PlanRecord",
    "PolicyLeakage",
    "QuerySummary",
    "ReleaseEvent",
    "Request",
    "Requests",
    "SessionHeader",
    "SeveralQueries",
    "SkipEvent",
    "Spent",
    "StoredMany",
    "SubjectSummary",
    "Transaction",
    "learned",
    "losses_per_step",
    "neighbouring_paths",
    "policy_allocation",
    "policy_leakage",
    "replay",
    "summarise",
    "summarise_ledger",
    "temporal_allocation",
    "temporal_leakage",
    "theorem_5_3",
    "theorem_6_3",
    "theorem_7_1",
    "theorem_7_2",
    "together",
]
