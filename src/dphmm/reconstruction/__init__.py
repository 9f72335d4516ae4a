"""Estimates about a population from released rows: post-processing of published answers, which costs no privacy.

- `population`: densities, flows and shares of regions from a released table; `smooth`, `event_odds`: people's states
- `learn`: a model of how people move, learned from the answers, to read them with
- `dphmm.reconstruction.regions`: sets of states by name, from a table or GeoJSON, or blocks of cells
- `dphmm.reconstruction.answers`: the answers of a released table with the plans that they were drawn under
- `dphmm.reconstruction.answers`: the probability of every outcome of a plan from every state
- `dphmm.reconstruction.linear`: unbiased estimates and their intervals
- `dphmm.reconstruction.density`, `dphmm.reconstruction.flows`: the likeliest density and flows, by expectation
  maximisation that stops early
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm._lazy import lazy

if TYPE_CHECKING:
    from dphmm.learning.learn import learn as learn
    from dphmm.reconstruction.aggregates import population as population
    from dphmm.release.decoding import OtherQuery as OtherQuery
    from dphmm.release.decoding import event_odds as event_odds
    from dphmm.release.decoding import smooth as smooth

__getattr__, __dir__, __all__ = lazy(__name__)
