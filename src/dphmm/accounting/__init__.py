"""The losses of releases, the theorems that bound them, and the ledger that stores them.

Describe what happened: ReleaseEvent, SkipEvent, ComposedEvents.
Add it up: theorem_5_3, theorem_6_3, theorem_7_1, theorem_7_2, neighbouring_paths, each a Guarantee; summarise,
summarise_ledger, ledger_summary.
What a whole sequence says about one step: temporal_leakage, temporal_allocation; about a policy edge:
policy_leakage, and couplable, where the sum of epsilons bounds it.
What one person loses in releases, fits and queries together: Publication, totals.
Remember it: MemoryLedger here, ``dphmm.open_ledger`` for a file; both are a Ledger of Transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm._lazy import lazy

if TYPE_CHECKING:
    from dphmm.accounting.edge_leakage import Couplable as Couplable
    from dphmm.accounting.edge_leakage import PolicyLeakage as PolicyLeakage
    from dphmm.accounting.edge_leakage import couplable as couplable
    from dphmm.accounting.edge_leakage import policy_leakage as policy_leakage
    from dphmm.accounting.event import ComposedEvents as ComposedEvents
    from dphmm.accounting.event import Guarantee as Guarantee
    from dphmm.accounting.event import LearningEvent as LearningEvent
    from dphmm.accounting.event import NoisyCounts as NoisyCounts
    from dphmm.accounting.event import NotPrivateEvent as NotPrivateEvent
    from dphmm.accounting.event import ReleaseEvent as ReleaseEvent
    from dphmm.accounting.event import SeveralQueries as SeveralQueries
    from dphmm.accounting.event import SkipEvent as SkipEvent
    from dphmm.accounting.event import learned as learned
    from dphmm.accounting.event import neighbouring_paths as neighbouring_paths
    from dphmm.accounting.event import theorem_5_3 as theorem_5_3
    from dphmm.accounting.event import theorem_6_3 as theorem_6_3
    from dphmm.accounting.event import theorem_7_1 as theorem_7_1
    from dphmm.accounting.event import theorem_7_2 as theorem_7_2
    from dphmm.accounting.event import together as together
    from dphmm.accounting.ledger import Caps as Caps
    from dphmm.accounting.ledger import Entry as Entry
    from dphmm.accounting.ledger import Ledger as Ledger
    from dphmm.accounting.ledger import LedgerSummary as LedgerSummary
    from dphmm.accounting.ledger import Looked as Looked
    from dphmm.accounting.ledger import MemoryLedger as MemoryLedger
    from dphmm.accounting.ledger import PlanRecord as PlanRecord
    from dphmm.accounting.ledger import QuerySummary as QuerySummary
    from dphmm.accounting.ledger import Request as Request
    from dphmm.accounting.ledger import Requests as Requests
    from dphmm.accounting.ledger import SessionHeader as SessionHeader
    from dphmm.accounting.ledger import Spent as Spent
    from dphmm.accounting.ledger import StoredMany as StoredMany
    from dphmm.accounting.ledger import SubjectSummary as SubjectSummary
    from dphmm.accounting.ledger import Transaction as Transaction
    from dphmm.accounting.ledger import ledger_summary as ledger_summary
    from dphmm.accounting.ledger import replay as replay
    from dphmm.accounting.ledger import summarise as summarise
    from dphmm.accounting.ledger import summarise_ledger as summarise_ledger
    from dphmm.accounting.promise import Schedule as Schedule
    from dphmm.accounting.promise import SequencePromise as SequencePromise
    from dphmm.accounting.publication import PersonTotals as PersonTotals
    from dphmm.accounting.publication import Publication as Publication
    from dphmm.accounting.publication import Published as Published
    from dphmm.accounting.publication import totals as totals
    from dphmm.accounting.temporal import Leakage as Leakage
    from dphmm.accounting.temporal import losses_per_step as losses_per_step
    from dphmm.accounting.temporal import temporal_allocation as temporal_allocation
    from dphmm.accounting.temporal import temporal_leakage as temporal_leakage

__getattr__, __dir__, __all__ = lazy(__name__)
