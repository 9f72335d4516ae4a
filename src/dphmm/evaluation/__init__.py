"""Simulated people, measures of releases, and figures of tables and policies.

- simulated people, nobody's data: `City`, `simulate_city`
- measures, with bootstrap intervals over subjects: `error`, `error_km`, `of_distances`, `nearest_places_error`,
  `density_error`, `flow_error`, `visit_length_error`, `gyration_error`; `visit_lengths`, `radius_of_gyration`;
  `bootstrap_mean`
- the protection of a policy, and its error: `protection_facts`
- figures of a table before its release: `check_table`, which gives a `TableCheck`
- people invented by a model, to share in place of real ones: `synthesize`

Names are loaded when first used. The papers' experiments are no part of the package: docs/experiments.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm._lazy import lazy

if TYPE_CHECKING:
    from dphmm.audit.resampling import Interval as Interval
    from dphmm.choose.details import protection_facts as protection_facts
    from dphmm.evaluation.city import City as City
    from dphmm.evaluation.city import simulate_city as simulate_city
    from dphmm.evaluation.measures import Error as Error
    from dphmm.evaluation.measures import PrecisionRecall as PrecisionRecall
    from dphmm.evaluation.measures import bootstrap_mean as bootstrap_mean
    from dphmm.evaluation.measures import density_error as density_error
    from dphmm.evaluation.measures import error as error
    from dphmm.evaluation.measures import error_km as error_km
    from dphmm.evaluation.measures import flow_error as flow_error
    from dphmm.evaluation.measures import gyration_error as gyration_error
    from dphmm.evaluation.measures import nearest_places_error as nearest_places_error
    from dphmm.evaluation.measures import of_distances as of_distances
    from dphmm.evaluation.measures import radius_of_gyration as radius_of_gyration
    from dphmm.evaluation.measures import visit_length_error as visit_length_error
    from dphmm.evaluation.measures import visit_lengths as visit_lengths
    from dphmm.evaluation.table_check import TableCheck as TableCheck
    from dphmm.evaluation.table_check import check_table as check_table
    from dphmm.reconstruction.synthesis import synthesize as synthesize

__getattr__, __dir__, __all__ = lazy(__name__)
