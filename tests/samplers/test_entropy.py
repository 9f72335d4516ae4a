"""Random words: replayable ones are the documented stream; system ones are fresh, wiped, never shared."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from dphmm.errors import InvalidInput
from dphmm.samplers import entropy
from dphmm.samplers.entropy import ReplayBits, SystemBits, default_bits, is_secure

pytestmark = pytest.mark.system_words(error="2e-11", because="that its words are never the same is tested here")


def documented_stream(material: bytes, n: int) -> np.ndarray:
    key = hashlib.sha256(material).digest()
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * n)), dtype="<u8")


def test_replay_bits_are_the_documented_stream():
    np.testing.assert_array_equal(ReplayBits(7).uint64(9000), documented_stream(b"dphmm replay int 7", 9000))
    np.testing.assert_array_equal(ReplayBits(b"7").uint64(5), documented_stream(b"dphmm replay bytes 7", 5))
    np.testing.assert_array_equal(ReplayBits(-1).uint64(5), documented_stream(b"dphmm replay int -1", 5))


def test_replay_words_do_not_depend_on_how_many_are_asked_for():
    whole = ReplayBits(1).uint64(30_000)
    bits = ReplayBits(1)
    parts = [bits.uint64(n) for n in (0, 1, 4095, 4096, 4097, 3, 10_000, 7708)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert whole.dtype == np.uint64


def test_a_key_is_left_after_its_share_and_the_next_part_is_another_stream(monkeypatch):
    monkeypatch.setattr(entropy, "_BYTES_PER_KEY", 8 * 100)
    whole = ReplayBits(1).uint64(10_000)
    bits = ReplayBits(1)
    np.testing.assert_array_equal(np.concatenate([bits.uint64(1) for _ in range(10_000)]), whole)
    assert len(np.unique(whole)) == 10_000


def test_system_bits_take_a_fresh_key_after_their_share(monkeypatch):
    keys = []
    urandom = os.urandom

    def recorded(n):
        keys.append(urandom(n))
        return keys[-1]

    monkeypatch.setattr(entropy, "_BYTES_PER_KEY", 8 * entropy._BUFFER_WORDS)
    monkeypatch.setattr(entropy.os, "urandom", recorded)
    words = SystemBits().uint64(5 * entropy._BUFFER_WORDS)
    assert len(keys) == 10 and len(set(keys)) == 10
    assert len(np.unique(words)) == len(words)


def test_replay_seeds_give_different_words_and_odd_seeds_are_refused():
    firsts = {int(ReplayBits(seed).uint64(1)[0]) for seed in (0, 1, -1, 10, b"", b"1", b"0")}
    assert len(firsts) == 7
    for seed in (True, None, 1.0, "1"):
        with pytest.raises(InvalidInput, match="seed"):
            ReplayBits(seed)


def test_words_are_uniform():
    words = ReplayBits(3).uint64(200_000)
    counts = np.bincount(words.view(np.uint8), minlength=256)
    expected = 8 * len(words) / 256
    assert ((counts - expected) ** 2 / expected).sum() < 255 + 6 * np.sqrt(2 * 255)
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.abs(ones - 0.5).max() < 6 * 0.5 / np.sqrt(len(words))


def test_system_bits_never_repeat_and_are_secure():
    assert is_secure(SystemBits()) and is_secure(default_bits()) and not is_secure(ReplayBits(1))
    assert len(np.unique(np.concatenate([SystemBits().uint64(1000) for _ in range(20)]))) == 20_000


def test_served_words_are_wiped_from_the_buffer():
    bits = SystemBits()
    served = bits.uint64(100)
    (held,) = bits._words_of.values()
    assert not np.isin(served, held._buffer).any()
    more = bits.uint64(50)
    assert not np.isin(more, held._buffer).any() and not np.isin(more, served).any()


def test_bits_show_no_state_and_cannot_be_copied():
    for bits in (SystemBits(), ReplayBits(123456789)):
        bits.uint64(10)
        assert not any(character.isdigit() for character in repr(bits))
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="not pickled or copied"):
                attempt(bits)


def test_threads_share_system_bits_without_sharing_words():
    bits, found, lock = SystemBits(), [], threading.Lock()

    def work():
        own = [bits.uint64(n) for n in [1, 3, 7] * 300]
        with lock:
            found.extend(own)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(found)
    assert len(words) == 8 * 300 * 11
    assert len(np.unique(words)) == len(words)


FORK = """
import os, sys
from dphmm.samplers.entropy import SystemBits, default_bits
own, shared = SystemBits(), default_bits()
own.uint64(10), shared.uint64(10)
{before}
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.write(writing, own.uint64(64).tobytes() + shared.uint64(64).tobytes())
    os._exit(0)
words = own.uint64(64).tobytes() + shared.uint64(64).tobytes()
assert os.waitpid(child, 0)[1] == 0
import numpy as np
everything = np.frombuffer(words + os.read(reading, 4096), dtype='<u8')
assert len(everything) == 256, len(everything)
assert len(np.unique(everything)) == 256
print('distinct')
"""


@pytest.mark.parametrize(
    "before",
    [
        "",
        "import dphmm.samplers.entropy as e; e._ALL_SYSTEM_BITS.clear()",  # only the process number is left
    ],
)
def test_a_forked_child_has_words_of_its_own(before):
    command = [sys.executable, "-c", FORK.format(before=before)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "distinct\n", done.stderr


def test_a_child_forked_while_the_lock_is_held_does_not_wait_for_it():
    script = """
import os, signal
from dphmm.samplers.entropy import SystemBits
bits = SystemBits(); bits.uint64(1)
next(iter(bits._words_of.values()))._lock.acquire()
child = os.fork()
if child == 0:
    signal.alarm(10)
    bits.uint64(1)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n", done.stderr


def test_default_bits():
    assert default_bits() is default_bits(None) and isinstance(default_bits(), SystemBits)
    mine = ReplayBits(1)
    assert default_bits(mine) is mine
    for wrong in (7, "bits", np.random.default_rng(0)):
        with pytest.raises(InvalidInput, match="bits"):
            default_bits(wrong)


def test_a_number_of_words_is_checked():
    for wrong in (-1, 1.0, True, None):
        with pytest.raises(InvalidInput, match="n: "):
            ReplayBits(1).uint64(wrong)
    assert len(ReplayBits(1).uint64(np.int64(3))) == 3
