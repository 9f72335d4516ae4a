"""Which lines run does not depend on the truth; nor, for numbers of states, which instructions.

Claim, with kernels as plain Python and with the same past and coming answers: for random instances the lines of the
package that run from planning to commit, in their order, are the same for all state numbers (drift and -1 among
them) and for all names (an unknown one among them); for the numbers of states even the instructions are, with short
circuits and conditional expressions. In batches, where names and places are looked up first, places may take other
lines in that look-up alone.

A trace shows branches, not time: caches, page faults and NumPy's own loops are out of its sight. It would fail for any
``if`` on the truth between planning and commit, however silent; the planted one is found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dphmm

SEEDS = (1, 8)
TESTS, SOURCE = Path(__file__).parents[1], Path(dphmm.__file__).parents[1]
#: Where the cell of a place is found.
LOOK_UP = {"states/grid.py", "states/maps.py"}


def traces_of(*seeds: int):
    """What ``independence.tracing`` finds in a process where kernels are not compiled."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{SOURCE}{os.pathsep}{TESTS}"}
    command = [sys.executable, "-m", "independence.tracing", *map(str, seeds)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def found():
    return traces_of(*SEEDS)


def no_difference(case) -> bool:
    return case["lines"] is None and case["instructions"] is None and case["events"] > 10_000


def test_the_same_lines_and_instructions_run_for_every_truth(found):
    assert {seed: case for seed, case in found["cases"].items() if not no_difference(case)} == {}
    assert len(found["cases"]) == len(SEEDS)


@pytest.mark.long
def test_so_they_do_on_many_instances():
    found = traces_of(*range(12, 48))
    assert {seed: case for seed, case in found["cases"].items() if not no_difference(case)} == {}


def test_places_outside_the_map_differ_in_the_look_up_of_their_cell_alone(found):
    assert set(found["together"]["places"]) <= LOOK_UP


def test_names_that_no_state_has_run_the_same_lines(found):
    assert found["together"]["names"] == []


def test_names_that_no_state_has_run_the_same_lines_in_a_stream(found):
    """Known names have become numbers when a session gets them; unknown ones should have become -1."""
    assert found["together"]["names of a stream"] == []


def test_a_planted_branch_is_found(found):
    """The check can fail: one look-up more for drift, which prints, logs and changes nothing."""
    for kind in ("lines", "instructions"):
        assert "policy/constraint.py" in found["leak"][kind]
