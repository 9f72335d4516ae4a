"""The objects of a user: a setting, a plan of when to ask, and a release in its folder.

- `Setup`: the states, the public model, the policy
- `Plan`: the schedule for a budget, and the release of a table under it
- `Released`: a release that was written; `open` reads one
"""
