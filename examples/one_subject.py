"""Release one person's whereabouts on a small map, one answer per time step."""

import numpy as np

import dphmm

grid = dphmm.Grid.from_bounds(west=13.30, south=52.48, east=13.40, north=52.54, cell=500.0)

# What everybody may know: people stay or move to a neighbouring cell.
distance = np.abs(grid.lattice[:, None] - grid.lattice[None]).max(axis=2)
moves = np.where(distance == 0, 4.0, np.where(distance == 1, 1.0, 0.0))
model = dphmm.MarkovModel(np.ones(grid.n_states) / grid.n_states, moves / moves.sum(axis=1, keepdims=True))

# Who hides among whom: two places up to a kilometre apart must not be told apart, wherever they lie in their cells.
policy = dphmm.policy.radius(grid, covers=1000)

session = dphmm.ReleaseSession(model, policy, grid, epsilon=1)
for lat, lon in [(52.500, 13.340), (52.501, 13.346), (52.504, 13.351)]:
    release = session.release(grid.locate(lat, lon))
    print(f"step {release.t}: released {release.z} m, estimate {np.round(session.estimate().answer)} m")
print("spent (epsilon, cost):", session.spent)
