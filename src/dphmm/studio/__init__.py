"""A page on this computer where a release is chosen by looking: map, policy, budget, check, release, report.

- `draft`: everything that is chosen, which is a pipeline file (release.toml) at every moment
- `figures`: the meaning of a draft, from `dphmm.Setup`, the plans of `dphmm.choose` and the pictures of `dphmm.report`
- `session`: the states of one session, and the commands that read people's rows in processes of their own
- `server`: the page and its requests, for this computer alone
"""
