"""Release a table of trajectories: pandas in, pandas out, every release stored in a ledger first."""

import tempfile
from pathlib import Path

import pandas as pd

import dphmm
from dphmm.evaluation import simulate_city

city = simulate_city(people=8, days=1)
grid = city.grid


def as_table(people: dphmm.states.Trajectories) -> pd.DataFrame:
    """A table as you might have it: user, t with a time zone, lat, lon."""
    users = [people.users[number] for number in people.user]
    times = pd.to_datetime(people.time, unit="us", utc=True)
    return pd.DataFrame({"user": users, "t": times, "lat": people.lat, "lon": people.lon})


# The model is fitted on other people than those released: a model fitted on the same people breaks the
# promise.
others = city.model_people
stepped, _ = others.resample(city.step)
sequences = stepped.sequences(grid.locate(stepped.lat, stepped.lon)).sequences
model = dphmm.MarkovModel.fit(
    sequences,
    n_states=grid.n_states,
    smoothing=0.01,
    smoothing_support="neighbours",
    space=grid,
    step=city.step,
)
# Any two places up to 680 m apart, two cells of this map, are hidden from each other.
policy = dphmm.policy.radius(grid, covers=680)

table = as_table(city.released_people)
with tempfile.TemporaryDirectory() as folder:
    ledger = dphmm.open_ledger(Path(folder) / "ledger.db")
    released = dphmm.release_many(table, model, policy, grid, epsilon=1, ledger=ledger)
    # The same rows again: the stored answers come back, nothing is drawn and nothing is spent.
    again = dphmm.release_many(table, model, policy, grid, epsilon=1, ledger=ledger, resume=True)
    ledger.close()

print(released[["user", "t", "z_lat", "z_lon", "cost"]].head(3).to_string(index=False))
print(f"{len(released)} rows of {released['user'].nunique()} people; asked again, the same: {released.equals(again)}")
