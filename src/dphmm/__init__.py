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

from typing import TYPE_CHECKING, Any

from dphmm._lazy import lazy

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
    from dphmm.dependent._question import query as query
    from dphmm.markov.model import MarkovModel as MarkovModel
    from dphmm.release.batch import release_many as release_many
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

_load, __dir__, __all__ = lazy(__name__)
__all__.append("__version__")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return globals().setdefault(name, version("dphmm"))
    return _load(name)
