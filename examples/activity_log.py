"""Publish what people do at home, four answers a day instead of one an hour: labels under a budget."""

import numpy as np
import pandas as pd

import dphmm

activities = ["sleep", "meal", "wash", "work", "leisure", "out"]
space = dphmm.StateSpace.labels(activities)
# What follows what, from public statistics; an activity goes on with probability 3/4.
moves = 0.75 * np.eye(6) + 0.25 * np.full((6, 6), 1 / 6)
model = dphmm.MarkovModel(np.full(6, 1 / 6), moves, space=space)
policy = dphmm.policy.complete(6)

generator = np.random.default_rng(1)
rows = []
for person in range(20):
    activity = int(generator.integers(6))
    for hour in range(1, 25):
        rows.append((f"person {person}", hour, activities[activity]))
        activity = int(generator.choice(6, p=moves[activity]))
log = pd.DataFrame(rows, columns=["user", "step", "state"])

# Any two possible days of one person: at most a total of 12, spent where it tells most.
promise = dphmm.SequencePromise(12, steps=24)
plan = dphmm.choose.plan(model, policy, space, promise)
released = dphmm.release_many(log, model, policy, space, schedule=plan.schedule, progress=False)
smoothed = dphmm.reconstruction.smooth(released, model, policy, space, progress=False)
right = (smoothed.smoothed.to_numpy() == log.state.to_numpy()).mean()
print(f"{released.z.notna().sum()} answers about {log.user.nunique()} people, {plan.expected_error:.0%} wrong expected")
print(f"right with all answers of a day: {right:.0%} of {len(log)} hours")
