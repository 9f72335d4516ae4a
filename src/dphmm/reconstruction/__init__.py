"""What released rows tell of a population: post-processing of published answers, which costs no privacy.

- `dphmm.reconstruction.population`: densities, flows and shares of regions from a released table, as `dphmm.population`
- `dphmm.reconstruction.regions`: sets of states by name, from a table or GeoJSON, or blocks of cells
- `dphmm.reconstruction.answers`: the answers of a released table with the plans that they were drawn under
- `dphmm.reconstruction.answers`: the probability of every outcome of a plan from every state
- `dphmm.reconstruction.linear`: unbiased estimates and their intervals
- `dphmm.reconstruction.density`, `dphmm.reconstruction.flows`: the likeliest density and flows, by expectation
  maximisation that stops early
"""
