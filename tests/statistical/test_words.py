"""No random word is used twice: not by threads, forks, other processes, new bits, resumed sessions, or later steps.

Words are their own fingerprints: n <= 190,000 words of 64 bits are distinct but with probability n²/2⁶⁵ < 10⁻⁹, so one
repeat is a fault. Fails if a child went on with its parent's stream or buffer, if bits were keyed by something that two
of them share, if a resumed session began its stream again, or if a step was served the words of another.
"""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dphmm
from dphmm.samplers import ReplayBits, SystemBits, default_bits, entropy
from dphmm.samplers.uniform import WordReader
from statistical.lattice_check import LatticeCheck
from statistical.lattice_law import Case
from statistical.word_log import MOST_WORDS, logged_words, repeats

pytestmark = pytest.mark.system_words(
    error="2e-10", because="that no two are the same, wherever they come from, is tested here"
)

TESTS = Path(__file__).parents[1]
SHARED_STREAM = """
import sys
from dphmm.samplers import entropy
key = [entropy._KeyStream(bytes(32), bytes(12))]
entropy.SystemBits._new_stream = lambda self: key[0]
import runpy
sys.argv = ['word_processes', *sys.argv[1:]]
runpy.run_module('statistical.word_processes', run_name='__main__')
"""


def run(way, folder, start=("-m", "statistical.word_processes")):
    command = [sys.executable, *start, way, str(folder)]
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr


def served(folder):
    return [np.load(path) for path in sorted(folder.glob("*.npy"))]


#: Ways to make processes in one run, and how many processes then save their words.
RUNS = {"forks+forks_while_others_draw+fork_in_a_draw": 4 + 8 + 1 + 1, "spawns": 3}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("ways", RUNS)
def test_processes_never_share_a_word(ways, tmp_path):
    run(ways, tmp_path)
    logs = served(tmp_path)
    assert len(logs) == RUNS[ways] and all(len(words) > 50 for words in logs)
    assert repeats(np.concatenate(logs)) == 0


@pytest.mark.slow
def test_a_resumed_session_goes_on_with_new_words(tmp_path):
    """Processes one after the other on one session: replays take no words, steps take new ones."""
    for _ in range(2):
        run("resumed", tmp_path)
    logs = served(tmp_path)
    assert len(logs) == 2 and all(len(words) >= 4 for words in logs)
    assert repeats(np.concatenate(logs)) == 0


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_words_that_do_not_notice_a_fork_are_found_out(tmp_path):
    """The check can fail: one stream for all bits, kept across forks."""
    run("forks", tmp_path, start=("-c", SHARED_STREAM))
    assert repeats(np.concatenate(served(tmp_path))) > 0


def session(ledger=None, subject="ann", bits=None):
    """Eight places on a line, each of which can follow each: one plan for all steps, with the hull [-7, 7]."""
    model = dphmm.MarkovModel(np.full(8, 1 / 8), np.full((8, 8), 1 / 8))
    space = dphmm.StateSpace(np.arange(8.0)[:, None])
    policy = dphmm.policy.complete(8)
    return dphmm.ReleaseSession(
        model, policy, space, 1, mechanism="discrete-knorm", subject=subject, ledger=ledger, bits=bits
    )


def public_of(session):
    setting = session.setting
    return setting.model, setting.policy, setting.space


def test_sessions_threads_and_new_bits_of_one_process_never_share_a_word():
    """Two sessions of one subject's ledger, sessions in threads, a resumed one, and bits of all kinds beside them."""
    with logged_words() as log:
        ledger = dphmm.accounting.MemoryLedger()
        sessions = [session(ledger, "ann"), session(ledger, "bob"), session(), session(bits=SystemBits())]
        threads = [threading.Thread(target=lambda s=s: [s.release(3) for _ in range(20)]) for s in sessions]
        threads += [threading.Thread(target=lambda n=n: default_bits().uint64(n)) for n in (1, 5000, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        model, policy, space = public_of(sessions[0])
        again = dphmm.ReleaseSession.resume(ledger, "ann", model, policy, space)
        for _ in range(20):
            again.release(3)
    assert len(log.words) > 5101 + 100 * 3 and repeats(log.words) == 0


def test_a_resumed_session_whose_words_begin_again_is_found_out():
    """The check can fail: replayed words, which no release may rest on, begin again at every start."""
    ledger = dphmm.accounting.MemoryLedger()
    with logged_words() as log:
        begun = session(ledger, bits=ReplayBits(1))
        first = [begun.release(3).z_lattice for _ in range(5)]
        model, policy, space = public_of(begun)
        again = dphmm.ReleaseSession.resume(ledger, "ann", model, policy, space, bits=ReplayBits(1))
        assert np.array_equal(first, [again.release(3).z_lattice for _ in range(5)])
    assert repeats(log.words) == len(log.words) // 2


def test_every_step_takes_words_of_its_own():
    with logged_words() as log:
        ongoing, steps = session(), []
        for _ in range(50):
            before = len(log.words)
            ongoing.release(3)
            steps.append(len(log.words) - before)
            ongoing.release(5, t=ongoing.t - 1)
    assert min(steps) >= 3 and sum(steps) == len(log.words), "a step takes words, a replay takes none"
    assert repeats(log.words) == 0


def noises(bits, steps):
    """What a session adds to the answer of one state, step by step."""
    ongoing = session(bits=bits)
    return np.array([ongoing.release(3).z_lattice - 3 for _ in range(steps)])


class SameEveryCall:
    """Bits that begin their stream again at every call: the fault that the check is for."""

    def uint64(self, n):
        return ReplayBits(1).uint64(n)


def test_noise_of_following_steps_is_independent_and_has_the_law_of_one_draw():
    """Released through a session: the battery of the sampler, whose pairs are t and t + 1."""
    check = LatticeCheck(Case("odd interval", Fraction(1)), 1000)
    assert check.rejected_by(noises(ReplayBits(2), 1000)) == set()
    stuck = session(bits=SameEveryCall())
    assert len({int(stuck.release(3).z_lattice[0]) for _ in range(5)}) == 1
    twice = np.repeat(noises(ReplayBits(3), 500), 2, axis=0)
    assert check.rejected_by(twice) == {"consecutive pairs"}


@pytest.mark.parametrize("share", [1000, entropy._BUFFER_WORDS, 5001])
def test_threads_that_pass_from_key_to_key_never_share_a_word(share, monkeypatch):
    """Keys that are used up in the middle of a buffer, of a call, and at its end."""
    monkeypatch.setattr(entropy, "_BYTES_PER_KEY", 8 * share)
    with logged_words() as log:
        bits = SystemBits()
        sizes = [1, 4095, 4097, 3, 999]
        threads = [threading.Thread(target=lambda: [bits.uint64(n) for n in sizes]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(log.words) == 8 * sum(sizes) and repeats(log.words) == 0


def test_what_holds_bits_cannot_be_copied_with_them():
    """A deep copy or a pickle would repeat the words of the original."""
    for holder in (session(), session(bits=ReplayBits(1)), WordReader(SystemBits()), default_bits(), [SystemBits()]):
        for way in (copy.deepcopy, pickle.dumps):
            with pytest.raises((TypeError, AttributeError), match="pickle"):
                way(holder)


def test_threads_of_a_child_forked_without_hooks_never_share_a_word(monkeypatch):
    """Forked by C code, no at-fork hook runs: here both first threads find nothing of their process and begin it."""
    made = entropy._Words

    def both_at_once(new_stream):
        together.wait(5)
        return made(new_stream)

    together, bits, served = threading.Barrier(2), SystemBits(), {}
    bits._words_of[-1] = made(bits._new_stream)
    monkeypatch.setattr(entropy, "_Words", both_at_once)

    def first_words():
        served[threading.current_thread().name] = bits.uint64(5)

    threads = [threading.Thread(target=first_words, name=name) for name in "BA"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(list(served.values()))
    assert len(words) == 10 and repeats(words) == 0 and words.all()
    assert list(bits._words_of) == [os.getpid()]
    assert len({id(found) for found in bits._words_of.values()}) == 1


def test_the_count_of_repeats_counts():
    words = SystemBits().uint64(1000)
    assert repeats(words) == 0 and repeats(np.append(words, words[17])) == 1
    with pytest.raises(AssertionError, match="birthday"):
        repeats(np.zeros(MOST_WORDS + 1, np.uint64))
