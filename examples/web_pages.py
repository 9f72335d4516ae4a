"""Release which kind of page a visitor is reading: the answers are names, and so is what is released."""

import numpy as np

import dphmm

pages = ["front page", "politics", "sports", "weather", "health", "dating", "mail"]
space = dphmm.StateSpace.labels(pages)

# Public statistics of the site: where visitors go next.
often = np.ones((7, 7)) + 5 * np.eye(7)
often[0] += [0, 4, 4, 2, 1, 1, 3]
model = dphmm.MarkovModel(np.ones(7) / 7, often / often.sum(axis=1, keepdims=True))

# News pages hide among news pages, personal pages among personal pages; both look alike from mail to front
# page.
kinds = ["news", "news", "news", "news", "personal", "personal", "personal"]
policy = dphmm.policy.categorical(kinds).union(dphmm.policy.from_edges([(0, 6)], 7))

session = dphmm.ReleaseSession(model, policy, space, epsilon=2)
for page in ["front page", "health", "health", "mail"]:
    release = session.release(page)
    guess = session.estimate()
    print(f"step {release.t}: released {release.z}; likeliest now {guess.answer}, {guess.probability:.0%} sure")
print(f"each release keeps epsilon = {release.epsilon}; two pages without an edge may lose {float(release.cost):g}")
