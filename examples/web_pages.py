"""Release which kind of page a visitor is reading: states without a map."""

import numpy as np

import dphmm

# Each kind of page has an answer: how much of it is news (0 to 10), and how personal it is (0 to 10).
pages = {
    "front page": (8, 0),
    "politics": (10, 1),
    "sports": (9, 1),
    "weather": (6, 0),
    "health": (3, 7),
    "dating": (1, 8),
    "mail": (0, 10),
}
space = dphmm.StateSpace(list(pages.values()), names=list(pages))

# Public statistics of the site: where visitors go next.
often = np.ones((7, 7)) + 5 * np.eye(7)
often[0] += [0, 4, 4, 2, 1, 1, 3]
model = dphmm.MarkovModel(np.ones(7) / 7, often / often.sum(axis=1, keepdims=True))

# News pages hide among news pages, personal pages among personal pages; both look alike from mail to front
# page.
kinds = ["news", "news", "news", "news", "personal", "personal", "personal"]
policy = dphmm.policy.categorical(kinds).union(dphmm.policy.from_edges([(0, 6)], 7))

session = dphmm.ReleaseSession(model, policy, space, epsilon="0.5", constraint=dphmm.DeltaSet(0.01))
for page in ["front page", "health", "health", "mail"]:
    release = session.release(page)
    print(f"step {release.t}: released {release.z}, likeliest page {space.names[release.estimate_state]}")
print(f"each release keeps epsilon = {release.epsilon}; two pages without an edge may lose {float(release.cost):g}")
