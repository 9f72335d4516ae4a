"""What a user holds: a setting, a plan of when to ask, and a release in its folder.

- `Setup`: who is asked about what: the states, the public model, the policy
- `Plan`: what a budget buys, and the release of a table under it
- `Released`: a release that was written; `open` reads one
"""
