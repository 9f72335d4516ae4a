"""Files: the only layer that opens them.

- models and policies: `save_model`, `load_model`, `save_hidden_model`, `load_hidden_model`, `save_policy`,
  `load_policy`, `load_policy_space`, `load_setting`; made tables: `save_table`, `load_table`
- tables of people: `load_trajectories`, `import_trajectories`, `convert_frame`, `split_people`, `to_geopandas`
- models that are fitted to a table: `fit`, `forecast_fit`; by a ledger once for all: `fit_once`

Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm._lazy import lazy

if TYPE_CHECKING:
    from dphmm.storage.fits import fit as fit
    from dphmm.storage.fits import forecast_fit as forecast_fit
    from dphmm.storage.fits import split_people as split_people
    from dphmm.storage.geo_files import to_geopandas as to_geopandas
    from dphmm.storage.hidden_models import load_hidden_model as load_hidden_model
    from dphmm.storage.hidden_models import save_hidden_model as save_hidden_model
    from dphmm.storage.importers import import_trajectories as import_trajectories
    from dphmm.storage.made_tables import load_table as load_table
    from dphmm.storage.made_tables import save_table as save_table
    from dphmm.storage.models import load_model as load_model
    from dphmm.storage.models import save_model as save_model
    from dphmm.storage.policies import load_policy as load_policy
    from dphmm.storage.policies import load_policy_space as load_policy_space
    from dphmm.storage.policies import load_setting as load_setting
    from dphmm.storage.policies import save_policy as save_policy
    from dphmm.storage.publications import fit_once as fit_once
    from dphmm.storage.tables import convert_frame as convert_frame
    from dphmm.storage.trajectories import load_trajectories as load_trajectories

__getattr__, __dir__, __all__ = lazy(__name__)
