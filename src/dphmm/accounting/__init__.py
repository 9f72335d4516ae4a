"""What has been spent, by which theorem, and the ledger that remembers it.

Describe what happened: ReleaseEvent, SkipEvent, ComposedEvents.
Add it up: theorem_5_3, theorem_6_3, theorem_7_1, theorem_7_2, each a Guarantee; summarise, summarise_ledger.
Remember it: MemoryLedger here, ``dphmm.open_ledger`` for a file; both are a Ledger of Transactions.
"""

from dphmm.accounting.composition import (
    Guarantee,
    SeveralQueries,
    theorem_5_3,
    theorem_6_3,
    theorem_7_1,
    theorem_7_2,
)
from dphmm.accounting.event import ComposedEvents, ReleaseEvent, SkipEvent
from dphmm.accounting.ledger import (
    Caps,
    Entry,
    Ledger,
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
from dphmm.accounting.summary import QuerySummary, SubjectSummary, summarise, summarise_ledger

__all__ = [
    "Caps",
    "ComposedEvents",
    "Entry",
    "Guarantee",
    "Ledger",
    "MemoryLedger",
    "PlanRecord",
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
    "replay",
    "summarise",
    "summarise_ledger",
    "theorem_5_3",
    "theorem_6_3",
    "theorem_7_1",
    "theorem_7_2",
]
