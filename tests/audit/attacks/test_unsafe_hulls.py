"""Wrong designs are broken by attacks: a hull for each state, and a hull without protection.

Claims: local hulls give states away where their hulls differ and only there; an unprotected release names exposed
states, those of the library's own notion. Drawn guesses are compared at a level of 1e-6 (normal bounds on 1,500 draws
and more), from fixed bits.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dphmm
from audit.small import POLICY, SPACE
from dphmm.audit import LocalHulls, exposure
from dphmm.errors import InvalidInput
from dphmm.samplers import ReplayBits
from running_example import ANSWERS


class TestLocalHulls:
    """Example 11.2, corrected (erratum 8): s4s6 and s5s6 without s4s5."""

    path = dphmm.policy.from_edges([(3, 5), (4, 5)], 6)
    possible = np.array([False, False, False, True, True, True])

    def test_every_answer_off_the_crossing_names_its_state(self):
        hulls = LocalHulls.of(self.path, SPACE, 1, self.possible)
        # On the line of s4 and s6 through f(s4): s6 has a hull of full rank and could be anywhere.
        assert hulls.consistent(np.array([2, 3])).tolist() == [3, 5]
        assert hulls.consistent(np.array([3, 2])).tolist() == [4, 5]
        assert hulls.consistent(ANSWERS[5]).tolist() == [3, 4, 5]
        assert hulls.consistent(np.array([9, -7])).tolist() == [5]

    def test_it_guesses_better_than_one_hull_allows(self):
        hulls = LocalHulls.of(self.path, SPACE, 1, self.possible)
        bits = ReplayBits(6)
        local, together = hulls.attack(5, draws=1500, bits=bits)
        assert local.certain > 0.3 and together.certain == 0
        assert local.probability > together.probability + 0.1
        for state in (3, 4):
            local, together = hulls.attack(state, draws=1500, bits=bits)
            assert local.right > together.right

    def test_under_figure_3b_there_is_no_attack(self):
        """As printed: the three hulls are one, and the two laws are the same."""
        hulls = LocalHulls.of(POLICY, SPACE, 1, self.possible)
        for z in itertools.product(range(-3, 6), repeat=2):
            assert np.allclose(hulls.local.likelihoods(np.array(z)), hulls.together.likelihoods(np.array(z)))
        local, together = hulls.attack(3, draws=2000, bits=ReplayBits(1))
        assert abs(local.right - together.right) < 4.9 * math.sqrt(0.5 / 2000)

    def test_a_state_that_is_not_possible(self):
        with pytest.raises(InvalidInput, match="state"):
            LocalHulls.of(self.path, SPACE, 1, self.possible).attack(0)


class TestExposure:
    def test_example_6_1(self):
        """C = {3, 4, 5, 6}: s3 is exposed, and told from all others by more than ε."""
        (found,) = exposure(POLICY, SPACE, 1, [2, 3, 4, 5], draws=2000, bits=ReplayBits(3))
        assert found.state == 2 and 1 < found.loss < math.inf
        assert found.guesses.certain == 0 and found.guesses.right > 0.4

    def test_a_flat_hull_names_its_states(self):
        """C = {2, 3, 5}: the hull is a segment, s5 is off its line, and every answer of s5 says so."""
        (found,) = exposure(POLICY, SPACE, 1, [1, 2, 4], draws=500, bits=ReplayBits(3))
        assert found.state == 4 and found.loss == math.inf
        assert found.guesses == (found.guesses.__class__)(1.0, 1.0, 1.0)

    def test_no_edges_at_all(self):
        found = exposure(dphmm.policy.from_edges([], 6), SPACE, 1, draws=50)
        assert [one.state for one in found] == list(range(6)) and all(one.guesses.certain == 1 for one in found)

    def test_a_protectable_graph_exposes_nobody(self):
        assert exposure(POLICY, SPACE, 1, draws=50) == []
        protected = dphmm.sensitivity.protectable_graph(POLICY, SPACE, [2, 3, 4, 5])
        assert exposure(protected, SPACE, 1, [2, 3, 4, 5], draws=50) == []

    def test_it_is_the_library_s_notion(self):
        for states in itertools.combinations(range(6), 3):
            found = [one.state for one in exposure(POLICY, SPACE, 1, list(states), draws=5, bits=ReplayBits(1))]
            assert found == dphmm.sensitivity.exposed_states(POLICY, SPACE, list(states)).tolist()
