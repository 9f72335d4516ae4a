"""Experiments: what the papers measured, measured again. `python -m experiments` runs them.

One folder per paper, whose `EXPERIMENT` says which cells are measured and what is made of their rows; `walks` is shared
by the two papers on releases. Nothing here is part of the installed package, and nothing here is a private release.
"""

from __future__ import annotations

from importlib import import_module

from dphmm.errors import InvalidInput
from experiments.experiment import Experiment

#: A name is its folder's, with hyphens. A new experiment is a folder and a name here.
NAMES = ("hmm-privacy", "dependence", "dphmm", "location-sets", "optimum", "steps", "synthesis")


def experiment(name: str) -> Experiment:
    """The experiment of this name. Raises InvalidInput for another."""
    if name not in NAMES:
        raise InvalidInput("NAME", repr(name), f"one of {', '.join(NAMES)}")
    found: Experiment = import_module(f"experiments.{name.replace('-', '_')}").EXPERIMENT
    return found
