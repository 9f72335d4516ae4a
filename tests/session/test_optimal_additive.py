"""Releases with the optimal additive mechanism: chosen by name alone, and only ever under the weights of the plan.

Its weights come from a float solver, so two machines may find two. Claims: the plan's hash and the ledger's record are
of the integers; where a session is resumed and the program has another solution, or a description is read back there,
it is refused and nothing is drawn. It would fail for a hash of ε and name alone, which would follow and judge old
answers by weights that they were not drawn from.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dphmm
import other_solvers
from dphmm.errors import InvalidInput
from dphmm.mechanisms import OptimalAdditive, from_description, mechanism_for
from naive_mechanisms import shape
from running_example import ANSWERS, EDGES_3B
from single_answers import answered

MODEL = dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6))
POLICY = dphmm.policy.from_edges(EDGES_3B, 6)
SPACE = dphmm.StateSpace(ANSWERS)


def session(**options):
    options = {"bits": dphmm.ReplayBits(1), "mechanism": "optimal-additive", **options}
    return dphmm.ReleaseSession(MODEL, POLICY, SPACE, 2, subject="s", **options)


@pytest.fixture
def another_solver(monkeypatch):
    yield lambda: other_solvers.elsewhere(monkeypatch, "optimal-additive")
    other_solvers.forget()


def test_it_is_chosen_by_name_and_never_by_auto():
    plan = session().plan
    assert plan.mechanism == "optimal-additive" and plan.mechanisms[0].epsilon == 2
    assert session(mechanism="auto").plan.mechanism != "optimal-additive"
    assert session(mechanism="auto").plan.expected_error > plan.expected_error
    hull = plan.hulls[0]
    assert mechanism_for(hull, plan.epsilon, "optimal-additive").law.digest == plan.mechanisms[0].law.digest


def test_a_release_is_an_answer_with_cost_and_estimate():
    own = session()
    release = own.release(3)
    assert release.mechanism == "optimal-additive" and release.epsilon == 2 and release.cost == 4
    assert own.release(5, t=1).z.tolist() == release.z.tolist()
    again = session()
    assert again.release(3).z_lattice.tolist() == release.z_lattice.tolist()
    assert np.isfinite(release.estimate).all() and own.posterior.support.all()


def test_many_draws_are_as_many_single_ones():
    from dphmm.session.answer import answer_under

    plan = session().plan
    states = np.arange(40) % 6
    one, many = dphmm.ReplayBits(4), dphmm.ReplayBits(4)
    singly = [answered(plan, int(s), one) for s in states]
    assert answer_under(plan, states, many)[0].tolist() == [list(z) for z in singly]
    assert one.uint64(3).tolist() == many.uint64(3).tolist()


def test_the_plan_is_hashed_over_the_weights(another_solver):
    first = session().plan
    described = first.mechanisms[0].describe()
    assert described["weights"] == first.mechanisms[0].law.digest and len(described["weights"]) == 64
    another_solver()
    second = session().plan
    assert second.mechanisms[0].epsilon == first.mechanisms[0].epsilon
    assert second.hash != first.hash


def test_a_description_is_of_the_weights_that_are_found_here_or_refused(another_solver):
    made = OptimalAdditive(shape("square"), 2, "euclidean")
    assert from_description(shape("square"), made.describe()).law.digest == made.law.digest
    with pytest.raises(InvalidInput, match="loss: got custom"):
        from_description(shape("square"), {**made.describe(), "loss": "custom"})
    with pytest.raises(InvalidInput, match="weights"):
        from_description(shape("square"), {k: v for k, v in made.describe().items() if k != "weights"})
    another_solver()
    with pytest.raises(InvalidInput, match="solved here"):
        from_description(shape("square"), made.describe())


_DIGESTS = """
from dphmm.mechanisms import OptimalAdditive
from naive_mechanisms import shape
print(*(OptimalAdditive(shape(name), 2).law.digest for name in ("running", "square")))
"""


def test_the_weights_are_the_same_in_every_process_of_a_machine():
    places = [str(Path(__file__).parents[1]), str(Path(dphmm.__file__).parents[1])]
    settings = {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(places)}
    words = [sys.executable, "-c", _DIGESTS]
    done = subprocess.run(words, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [OptimalAdditive(shape(name), 2).law.digest for name in ("running", "square")]


def test_components_and_delta_sets_take_it_too():
    for options in ({"scope": "component"}, {"constraint": "delta=0.1"}, {"flat": "allow", "constraint": "support"}):
        made = session(**options)
        release = made.release(3)
        assert "optimal-additive" in release.mechanism
        assert not dphmm.audit.verify(made).convicted
