"""Seeded privacy bugs must be convicted: a check that passes whatever the library does would prove nothing.

Each bug is planted by monkeypatch; the instances are quick ones of the full run. A bug must be convicted
by the sentence that names what it breaks, not by a crash, and the same instance must pass without the bug.
"""

from __future__ import annotations

import pytest

from exactness.__main__ import SEED
from exactness.instances import Instance
from exactness.judge import judge
from exactness.mutants import MUTANTS

_MOST_INSTANCES = 800


def quick(fit):
    """The fitting instances in one and two dimensions."""
    for number in range(_MOST_INSTANCES):
        instance = Instance.numbered(SEED, number)
        if fit(instance) and all(query.answers.shape[1] <= 2 for query in instance.queries):
            yield instance


@pytest.mark.parametrize(("plant", "sentence", "fit"), MUTANTS, ids=[plant.__name__ for plant, _, _ in MUTANTS])
def test_convicted(plant, sentence, fit, monkeypatch):
    plant(monkeypatch)
    for instance in quick(fit):
        if any(sentence in line for line in judge(instance).violations):
            monkeypatch.undo()
            assert judge(instance).violations == []
            return
    pytest.fail(f"{plant.__name__} was not noticed: {plant.__doc__}")
