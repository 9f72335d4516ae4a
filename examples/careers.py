"""From school to work, month by month: labels answered with labels; of categories nothing is published."""

import numpy as np

import dphmm

states = ["school", "college", "university", "training", "employed", "jobless"]
space = dphmm.StateSpace.labels(states)
# Public statistics: one stays where one is, or moves on.
often = 0.9 * np.eye(6) + 0.1 * np.full((6, 6), 1 / 6)
model = dphmm.MarkovModel([0.5, 0.2, 0, 0.2, 0.1, 0], often)
education_or_work = dphmm.policy.categorical(["education"] * 3 + ["work"] * 3)

session = dphmm.ReleaseSession(model, education_or_work, space, epsilon=1)
print(f"all states hide one another: {1 - session.plan.expected_error:.0%} of answers are right")
for state in ["school", "school", "training", "employed"]:
    release = session.release(state)
    guess = session.estimate()
    print(f"  month {release.t}: {release.z}; likeliest {guess.answer}, {guess.probability:.0%} sure")
