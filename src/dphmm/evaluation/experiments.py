"""The experiments by name. A new one is a module with an `EXPERIMENT`, and a line here."""

from __future__ import annotations

from importlib import import_module

from dphmm.errors import InvalidInput
from dphmm.evaluation.experiment import Experiment

_MODULES: dict[str, str] = {
    "hmm-privacy": "hmm_privacy",
    "dependence": "dependence",
    "dphmm": "dphmm_figures",
    "location-sets": "location_sets",
    "optimum": "optimum",
}
NAMES = tuple(_MODULES)


def experiment(name: str) -> Experiment:
    """The experiment of this name. Raises InvalidInput for another."""
    if name not in _MODULES:
        raise InvalidInput("NAME", repr(name), f"one of {', '.join(NAMES)}")
    found: Experiment = import_module(f"dphmm.evaluation.{_MODULES[name]}").EXPERIMENT
    return found
