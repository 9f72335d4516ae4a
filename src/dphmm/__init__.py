"""Private release of Markov data.

State sequences (trajectories, sessions, activity logs, careers) are published step by step while an adversary knows
the Markov model, the policy, the mechanism and everything published before.

- what to begin with: `Setup` (states, model, policy), its `Plan`, the `Released` folder, `open`; `open_ledger`
- by hand: `StateSpace`, `Grid`, `MarkovModel`, `policy`, `SequencePromise`, `ReleaseSession`, `release_many`
- rooms below: `states`, `markov`, `sensitivity`, `mechanisms`, `session`, `accounting`, `choose`, `storage`
- after a release: `reconstruction` (smooth, population, event_odds), `report`, `plot`, `audit`, `evaluation`
- queries over records that depend on each other: `query` (of tables), `dependent`
- `errors`; `ReplayBits`, noise that can be replayed, for tests

Names are loaded when first used, so importing dphmm is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm import accounting as accounting
    from dphmm import audit as audit
    from dphmm import choose as choose
    from dphmm import dependent as dependent
    from dphmm import errors as errors
    from dphmm import evaluation as evaluation
    from dphmm import markov as markov
    from dphmm import mechanisms as mechanisms
    from dphmm import plot as plot
    from dphmm import policy as policy
    from dphmm import reconstruction as reconstruction
    from dphmm import report as report
    from dphmm import sensitivity as sensitivity
    from dphmm import session as session
    from dphmm import states as states
    from dphmm import storage as storage
    from dphmm.accounting.promise import SequencePromise as SequencePromise
    from dphmm.batch import release_many as release_many
    from dphmm.dependent._question import query as query
    from dphmm.markov.model import MarkovModel as MarkovModel
    from dphmm.samplers.entropy import ReplayBits as ReplayBits
    from dphmm.session.session import ReleaseSession as ReleaseSession
    from dphmm.setup.released import Released as Released
    from dphmm.setup.released import open as open
    from dphmm.setup.setup import Plan as Plan
    from dphmm.setup.setup import Setup as Setup
    from dphmm.states.grid import Grid as Grid
    from dphmm.states.space import StateSpace as StateSpace
    from dphmm.storage.ledger import open_ledger as open_ledger

    __version__: str

#: Where each public name lives; a name that is its own module is a namespace.
_HOMES = {
    "Setup": "dphmm.setup.setup",
    "Plan": "dphmm.setup.setup",
    "Released": "dphmm.setup.released",
    "open": "dphmm.setup.released",
    "open_ledger": "dphmm.storage.ledger",
    "accounting": "dphmm.accounting",
    "audit": "dphmm.audit",
    "choose": "dphmm.choose",
    "dependent": "dphmm.dependent",
    "errors": "dphmm.errors",
    "evaluation": "dphmm.evaluation",
    "markov": "dphmm.markov",
    "mechanisms": "dphmm.mechanisms",
    "plot": "dphmm.plot",
    "policy": "dphmm.policy",
    "reconstruction": "dphmm.reconstruction",
    "report": "dphmm.report",
    "sensitivity": "dphmm.sensitivity",
    "session": "dphmm.session",
    "states": "dphmm.states",
    "storage": "dphmm.storage",
    "MarkovModel": "dphmm.markov.model",
    "StateSpace": "dphmm.states.space",
    "Grid": "dphmm.states.grid",
    "ReplayBits": "dphmm.samplers.entropy",
    "ReleaseSession": "dphmm.session.session",
    "SequencePromise": "dphmm.accounting.promise",
    "release_many": "dphmm.batch",
    "query": "dphmm.dependent._question",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return globals().setdefault(name, version("dphmm"))
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dphmm' has no attribute {name!r}")
    module = import_module(home)
    return module if home == f"dphmm.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
