"""A small world and tables of it, for tests of releases on Spark."""

from __future__ import annotations

import numpy as np
import pandas as pd

import dphmm

N = 6
SPACE = dphmm.StateSpace(np.arange(N)[:, None], names=list("abcdef"))
RING = 0.6 * np.eye(N) + 0.2 * np.roll(np.eye(N), 1, axis=1) + 0.2 * np.roll(np.eye(N), -1, axis=1)
MODEL = dphmm.MarkovModel(np.full(N, 1 / N), RING)
POLICY = dphmm.policy.radius(SPACE, 1)
WORLD = (MODEL, POLICY, SPACE)


def rows(seed, users, first, last, skipped=0.3):
    """A table of users at some of the steps first..last, in any order."""
    random = np.random.default_rng(seed)
    found = [
        (user, t, "abcdef"[random.integers(N)])
        for user in users
        for t in range(first, last + 1)
        if t == 1 or random.random() >= skipped
    ]
    return pd.DataFrame([found[place] for place in random.permutation(len(found))], columns=["user", "step", "state"])


def people(count):
    return [f"user {number}" for number in range(count)]


def in_order(frame):
    """The rows of a Spark frame by user and step."""
    return frame.toPandas().sort_values(["user", "step"]).reset_index(drop=True)


def typed(name, kind):
    field = type("Field", (), {})()
    field.name, field.dataType = name, type(kind, (), {})()
    return field


class Unread:
    """A frame of which only the names and types of columns may be looked at."""

    def __init__(self, **types):
        self.schema = type("Schema", (), {"fields": [typed(name, kind) for name, kind in types.items()]})()
        self.columns = list(types)

    def __getattr__(self, name):
        raise AssertionError(f"{name} of the frame was used")
