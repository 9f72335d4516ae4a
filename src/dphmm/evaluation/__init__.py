"""What releases are tried on, and what they are worth.

- simulated people, nobody's data: `City`, `simulate_city`
- measures, with bootstrap intervals over subjects: `error`, `error_km`, `of_distances`, `nearest_places_error`,
  `density_error`, `flow_error`, `visit_length_error`, `gyration_error`; `visit_lengths`, `radius_of_gyration`
- which setting to take, from public information alone: `candidate_policies`, `sweep`, `Trial`, `Targets`

Names are loaded when first used. Experiments are run by ``dphmm experiment``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphmm.audit.resampling import Interval as Interval
    from dphmm.evaluation.candidates import candidate_policies as candidate_policies
    from dphmm.evaluation.city import City as City
    from dphmm.evaluation.city import simulate_city as simulate_city
    from dphmm.evaluation.densities import density_error as density_error
    from dphmm.evaluation.densities import flow_error as flow_error
    from dphmm.evaluation.errors import Error as Error
    from dphmm.evaluation.errors import error as error
    from dphmm.evaluation.errors import error_km as error_km
    from dphmm.evaluation.errors import of_distances as of_distances
    from dphmm.evaluation.mobility import gyration_error as gyration_error
    from dphmm.evaluation.mobility import radius_of_gyration as radius_of_gyration
    from dphmm.evaluation.mobility import visit_length_error as visit_length_error
    from dphmm.evaluation.mobility import visit_lengths as visit_lengths
    from dphmm.evaluation.nearest_places import PrecisionRecall as PrecisionRecall
    from dphmm.evaluation.nearest_places import nearest_places_error as nearest_places_error
    from dphmm.evaluation.recommendation import Targets as Targets
    from dphmm.evaluation.tuning import Trial as Trial
    from dphmm.evaluation.tuning import sweep as sweep

_NAMES = {
    "candidates": ("candidate_policies",),
    "city": ("City", "simulate_city"),
    "densities": ("density_error", "flow_error"),
    "errors": ("Error", "error", "error_km", "of_distances"),
    "mobility": ("gyration_error", "radius_of_gyration", "visit_length_error", "visit_lengths"),
    "nearest_places": ("PrecisionRecall", "nearest_places_error"),
    "recommendation": ("Targets",),
    "tuning": ("Trial", "sweep"),
}
_HOMES = {name: f"dphmm.evaluation.{module}" for module, names in _NAMES.items() for name in names}
_HOMES["Interval"] = "dphmm.audit.resampling"

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphmm.evaluation' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
