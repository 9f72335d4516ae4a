"""Private release of Markov data.

State sequences (trajectories, sessions, activity logs, careers) are published step by step while an adversary knows
the Markov model, the policy, the mechanism and everything published before.

- what to begin with: `Setup` (states, model, policy), its `Plan`, the `Released` folder, `open`
- states and answers: `StateSpace`, `Grid`, `H3`, `Zones`, `Trajectories`
- what the adversary knows: `MarkovModel`, `Slots`, `Belief`; fitted to a table: `fit`
- who hides among whom: `policy`, `DeltaSet`, `sensitivity_hull`, `l1_sensitivity`, `degree_of_protection`,
  `exposed_states`, `protectable_graph`, `merge_lonely`
- learning hidden states: `CategoricalHMM`
- noise: `mechanisms`, `ReplayBits`
- releases: `ReleaseSession`, `check_table`, `release_many`, `smooth`, `OtherQuery`, `joint_belief`, `event_odds`,
  `population`, `accounting`; over whole sequences:
  `SequencePromise`, `Schedule`, `plan`, `SchedulePlan`, `save_plan`, `read_plan`
- a mechanism made once for a model and a policy: `optimize`, `save_table`, `load_table`
- audits: `audit`; what a release is worth: `evaluation`
- fits and answers that a ledger keeps, counted for everybody: `fit_once`, `query(..., ledger=)`
- people invented by a model, to share in place of real ones: `synthesize`; tables as points: `to_geopandas`
- queries over records that depend on each other: `query` (of tables), `dependent`
- for somebody who has a released file and no model: `read`
- pictures: `plot`; a page to look at: `read_report`, `write_report`
- files: `load_trajectories`, `import_trajectories`, `convert_frame`, `split_people`, `save_model`, `load_model`,
  `save_hidden_model`, `load_hidden_model`, `save_policy`, `load_policy`, `load_policy_space`, `open_ledger`

Names are loaded when first used, so importing dphmm is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm import accounting as accounting
    from dphmm import audit as audit
    from dphmm import dependent as dependent
    from dphmm import evaluation as evaluation
    from dphmm import mechanisms as mechanisms
    from dphmm import plot as plot
    from dphmm import policy as policy
    from dphmm import report as report
    from dphmm.accounting.promise import Schedule as Schedule
    from dphmm.accounting.promise import SequencePromise as SequencePromise
    from dphmm.audit.reading import read as read
    from dphmm.batch import release_many as release_many
    from dphmm.choose.planning import plan as plan
    from dphmm.choose.schedule_plan import SchedulePlan as SchedulePlan
    from dphmm.choose.schedule_plan import read_plan as read_plan
    from dphmm.choose.schedule_plan import save_plan as save_plan
    from dphmm.decoding import OtherQuery as OtherQuery
    from dphmm.decoding import event_odds as event_odds
    from dphmm.decoding import smooth as smooth
    from dphmm.dependent._question import query as query
    from dphmm.errors import BudgetExceeded as BudgetExceeded
    from dphmm.errors import DphmmError as DphmmError
    from dphmm.errors import InvalidInput as InvalidInput
    from dphmm.errors import LedgerBusy as LedgerBusy
    from dphmm.errors import Unprotectable as Unprotectable
    from dphmm.evaluation.table_check import check_table as check_table
    from dphmm.markov.filtering import Belief as Belief
    from dphmm.markov.hidden.hmm import CategoricalHMM as CategoricalHMM
    from dphmm.markov.model import MarkovModel as MarkovModel
    from dphmm.markov.slots import Slots as Slots
    from dphmm.optimizing import optimize as optimize
    from dphmm.policy.constraint import DeltaSet as DeltaSet
    from dphmm.reconstruction.population import population as population
    from dphmm.report.assembling import read_report as read_report
    from dphmm.report.page import write_report as write_report
    from dphmm.samplers.entropy import ReplayBits as ReplayBits
    from dphmm.samplers.entropy import SystemBits as SystemBits
    from dphmm.sensitivity.hull import SensitivityHull as SensitivityHull
    from dphmm.sensitivity.hull import l1_sensitivity as l1_sensitivity
    from dphmm.sensitivity.hull import sensitivity_hull as sensitivity_hull
    from dphmm.sensitivity.protection import degree_of_protection as degree_of_protection
    from dphmm.sensitivity.protection import exposed_states as exposed_states
    from dphmm.sensitivity.protection import merge_lonely as merge_lonely
    from dphmm.sensitivity.protection import protectable_graph as protectable_graph
    from dphmm.session.releases import Release as Release
    from dphmm.session.session import ReleaseSession as ReleaseSession
    from dphmm.session.smoothing import joint_belief as joint_belief
    from dphmm.setup.released import Released as Released
    from dphmm.setup.released import open as open
    from dphmm.setup.setup import Plan as Plan
    from dphmm.setup.setup import Setup as Setup
    from dphmm.states.grid import Grid as Grid
    from dphmm.states.hexes import H3 as H3
    from dphmm.states.space import StateSpace as StateSpace
    from dphmm.states.trajectory import Trajectories as Trajectories
    from dphmm.states.zones import Zones as Zones
    from dphmm.storage.fits import fit as fit
    from dphmm.storage.fits import forecast_fit as forecast_fit
    from dphmm.storage.fits import split_people as split_people
    from dphmm.storage.geo_files import to_geopandas as to_geopandas
    from dphmm.storage.hidden_models import load_hidden_model as load_hidden_model
    from dphmm.storage.hidden_models import save_hidden_model as save_hidden_model
    from dphmm.storage.importers import import_trajectories as import_trajectories
    from dphmm.storage.ledger import open_ledger as open_ledger
    from dphmm.storage.made_tables import load_table as load_table
    from dphmm.storage.made_tables import save_table as save_table
    from dphmm.storage.models import load_model as load_model
    from dphmm.storage.models import save_model as save_model
    from dphmm.storage.policies import load_policy as load_policy
    from dphmm.storage.policies import load_policy_space as load_policy_space
    from dphmm.storage.policies import save_policy as save_policy
    from dphmm.storage.publications import fit_once as fit_once
    from dphmm.storage.tables import convert_frame as convert_frame
    from dphmm.storage.trajectories import load_trajectories as load_trajectories
    from dphmm.synthesis import synthesize as synthesize

    __version__: str

#: Where each public name lives; a name that is its own module is a namespace.
_HOMES = {
    "Setup": "dphmm.setup.setup",
    "Plan": "dphmm.setup.setup",
    "Released": "dphmm.setup.released",
    "open": "dphmm.setup.released",
    "accounting": "dphmm.accounting",
    "dependent": "dphmm.dependent",
    "evaluation": "dphmm.evaluation",
    "audit": "dphmm.audit",
    "mechanisms": "dphmm.mechanisms",
    "plot": "dphmm.plot",
    "report": "dphmm.report",
    "policy": "dphmm.policy",
    "release_many": "dphmm.batch",
    "check_table": "dphmm.evaluation.table_check",
    "event_odds": "dphmm.decoding",
    "smooth": "dphmm.decoding",
    "population": "dphmm.reconstruction.population",
    "read": "dphmm.audit.reading",
    "read_report": "dphmm.report.assembling",
    "write_report": "dphmm.report.page",
    "OtherQuery": "dphmm.decoding",
    "joint_belief": "dphmm.session.smoothing",
    "query": "dphmm.dependent._question",
    "BudgetExceeded": "dphmm.errors",
    "DphmmError": "dphmm.errors",
    "InvalidInput": "dphmm.errors",
    "LedgerBusy": "dphmm.errors",
    "Unprotectable": "dphmm.errors",
    "Belief": "dphmm.markov.filtering",
    "CategoricalHMM": "dphmm.markov.hidden.hmm",
    "MarkovModel": "dphmm.markov.model",
    "Slots": "dphmm.markov.slots",
    "optimize": "dphmm.optimizing",
    "load_table": "dphmm.storage.made_tables",
    "save_table": "dphmm.storage.made_tables",
    "SchedulePlan": "dphmm.choose.schedule_plan",
    "plan": "dphmm.choose.planning",
    "read_plan": "dphmm.choose.schedule_plan",
    "save_plan": "dphmm.choose.schedule_plan",
    "DeltaSet": "dphmm.policy.constraint",
    "ReplayBits": "dphmm.samplers.entropy",
    "SystemBits": "dphmm.samplers.entropy",
    "SensitivityHull": "dphmm.sensitivity.hull",
    "sensitivity_hull": "dphmm.sensitivity.hull",
    "degree_of_protection": "dphmm.sensitivity.protection",
    "exposed_states": "dphmm.sensitivity.protection",
    "merge_lonely": "dphmm.sensitivity.protection",
    "protectable_graph": "dphmm.sensitivity.protection",
    "l1_sensitivity": "dphmm.sensitivity.hull",
    "Release": "dphmm.session.releases",
    "ReleaseSession": "dphmm.session.session",
    "Schedule": "dphmm.accounting.promise",
    "SequencePromise": "dphmm.accounting.promise",
    "Grid": "dphmm.states.grid",
    "H3": "dphmm.states.hexes",
    "StateSpace": "dphmm.states.space",
    "Trajectories": "dphmm.states.trajectory",
    "Zones": "dphmm.states.zones",
    "convert_frame": "dphmm.storage.tables",
    "synthesize": "dphmm.synthesis",
    "split_people": "dphmm.storage.fits",
    "to_geopandas": "dphmm.storage.geo_files",
    "import_trajectories": "dphmm.storage.importers",
    "load_trajectories": "dphmm.storage.trajectories",
    "fit": "dphmm.storage.fits",
    "forecast_fit": "dphmm.storage.fits",
    "fit_once": "dphmm.storage.publications",
    "open_ledger": "dphmm.storage.ledger",
    "load_hidden_model": "dphmm.storage.hidden_models",
    "load_model": "dphmm.storage.models",
    "save_hidden_model": "dphmm.storage.hidden_models",
    "save_model": "dphmm.storage.models",
    "load_policy": "dphmm.storage.policies",
    "load_policy_space": "dphmm.storage.policies",
    "save_policy": "dphmm.storage.policies",
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
