"""Where noise comes from: the operating system's words, each used once, and nothing else.

Claims. Every word of `SystemBits` is ChaCha20 under a key and nonce asked of the operating system: with those given,
the words are known, so no clock, process number or generator of NumPy has a part in them. No other code of the
library draws random numbers, but for the simulated city of the demo and names of temporary files. A plan that is
released under again and again takes noise of its own each time, in the order of the words. They would fail for a key
from a clock, for a "fast" generator somewhere on the way to a release, and for noise that is kept for the next step.
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

import dphmm
from dphmm.samplers import ReplayBits, SystemBits, entropy
from dphmm.session.answer import answer_under
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from running_example import ANSWERS, EDGES_3B

SOURCE = Path(dphmm.__file__).parent
RANDOM_MODULES = {"random", "secrets", "uuid"}
RANDOM_NAMES = {"urandom", "getrandom", "random", "RandomState", "default_rng", "Generator", "PCG64", "MT19937"}
#: Where random numbers are drawn, and that none of them is noise.
KNOWN = {
    "_kernels/compiled.py": "names of compiled code, which no two processes give alike",
    "samplers/entropy.py": "the operating system's words, and the key of a job",
    "storage/inputs.py": "the name of a temporary file",
    "storage/commit_log.py": "the name of a temporary file",
    "storage/release_table.py": "the id of a job, and the names of a probe and of a data file, which no attempt shares",
    "storage/ledger/owner.py": "the key of a ledger's digests, for its owner alone",
    "storage/models.py": "the key of a file of user names, for its owner alone",
    "markov/hidden/hmm.py": "random_state, for starts and samples: simulation",
    "markov/hidden/inference.py": "posterior paths from a generator that the caller gives: simulation",
    "markov/hidden/parameters.py": "random starts of plain training",
    "cli/warm.py": "the people of a made-up world that kernels are compiled on: from a fixed seed",
    "choose/lonely.py": "places in cells, from a fixed seed",
    "choose/planning.py": "the seed of invented people on whom schedules are tried: simulation",
    "storage/fits.py": "the key by which people are put in two files: the system's, which nobody keeps",
    "storage/ledger/schema.py": "the id of a ledger, which no row decides",
    "studio/gate.py": "a part of an address that nobody can guess",
    "markov/private/worth.py": "invented people of the forecast of a fit, from a fixed seed: simulation",
    "markov/private/noisy_table.py": "invented tables of a spread and of a forecast, from their seeds: simulation",
    "markov/private/spread.py": "resampled noisy tables, from a seed that the caller gives: simulation",
    "reconstruction/synthesis.py": "invented people, drawn from a public model: no answer about anybody hangs on them",
    "choose/simulated.py": "invented people and their walks, from a generator that the caller seeds: simulation",
    "states/zones.py": "places of invented people in their zones, from a generator that the caller seeds: simulation",
    "audit/resampling.py": "resamples of subjects, for intervals: from a fixed seed",
}
#: Simulations, from seeds: nothing here releases anything.
SIMULATIONS = "evaluation/"


def test_system_words_are_keyed_by_the_operating_system_alone(monkeypatch):
    asked = []

    def given(n):
        asked.append(n)
        return bytes(range(len(asked), len(asked) + n))

    monkeypatch.setattr(entropy.os, "urandom", given)
    words = SystemBits().uint64(5000)
    assert asked == [32, 12]
    cipher = Cipher(algorithms.ChaCha20(bytes(range(1, 33)), bytes(4) + bytes(range(2, 14))), mode=None).encryptor()
    np.testing.assert_array_equal(words, np.frombuffer(cipher.update(bytes(8 * 5000)), dtype="<u8"))


def random_names(text: str) -> set[str]:
    """Names of random generators that a source imports or looks up."""
    found = set()
    if not any(name in text for name in (*RANDOM_MODULES, *RANDOM_NAMES)):
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] in RANDOM_MODULES}
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names} & RANDOM_NAMES
            found |= names | ({str(node.module)} if str(node.module).split(".")[0] in RANDOM_MODULES else set())
        elif isinstance(node, ast.Attribute) and node.attr in RANDOM_NAMES:
            found.add(node.attr)
    return found


def test_nothing_else_draws_random_numbers():
    sources = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}
    drawing = {name for name, text in sources.items() if random_names(text) and not name.startswith(SIMULATIONS)}
    assert drawing == set(KNOWN)
    assert random_names(sources["samplers/entropy.py"]) == {"urandom"}


@pytest.mark.parametrize(
    "text",
    [
        "import random",
        "from os import urandom",
        "x = np.random.normal()",
        "from numpy.random import Generator",
        "import uuid",
    ],
)
def test_a_generator_is_found(text):
    assert random_names(text)


def plan():
    planner = Planner(dphmm.policy.from_edges(EDGES_3B, 6), dphmm.StateSpace(ANSWERS), Options.checked(1))
    return planner.plan(np.ones(6, dtype=np.bool_), np.ones(6, dtype=np.bool_))


def test_every_release_draws_noise_of_its_own():
    """200 releases of one state under one plan are its answer and 200 noises one after another."""
    made, state = plan(), 2
    bits = ReplayBits(5)
    answers = np.vstack([answer_under(made, np.array([state]), bits)[0] for _ in range(200)])
    expected = made.mechanism.noise(200, ReplayBits(5))
    np.testing.assert_array_equal(answers - made.image[state], expected)
    np.testing.assert_array_equal(answer_under(made, np.full(200, state), ReplayBits(5))[0], answers)
    assert len(np.unique(expected, axis=0)) > 10
