"""No everyday test can draw words that nobody seeded: not in its own process, not in one that it starts.

Claims. Where words are refused, asking raises, and is told of even if the error goes nowhere: for the package, NumPy,
`random`, `secrets` and `uuid`, in forks, in interpreters that are started with any environment, and in those that they
start. Replayed words are the same for the same test, and others for each process of it. A mark for the system's words
states an error below 1e-9. The package has no part in any of this: no variable makes it replay a release.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import uuid
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dphmm
from dphmm.samplers import SystemBits, default_bits
from dphmm.storage.inputs import replacing
from system_words import guard, hooks

WORDS = "from dphmm.samplers import SystemBits; print(*SystemBits().uint64(4))"
#: An interpreter that starts another one.
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORDS!r}], check=True)"
ASKING = {
    "the package": lambda: SystemBits().uint64(1),
    "its default": lambda: default_bits().uint64(1),
    "os": lambda: os.urandom(8),
    "secrets": lambda: secrets.token_bytes(8),
    "uuid": uuid.uuid4,
    "NumPy": np.random.default_rng,
    "a seed sequence": np.random.SeedSequence,
    "random": random.Random,
    "the system's generator": lambda: random.SystemRandom().random(),
}


def asked_in_vain(call):
    """Who was told no while something ran, whatever it made of that."""
    with guard.drawing(guard.REFUSED, "vain"):
        with suppress(BaseException):
            call()
        return guard.refusals()


def python(*arguments, **options):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize("name", ASKING)
def test_whoever_asks_is_refused_and_told_of(name):
    assert len(asked_in_vain(ASKING[name])) == 1
    with guard.drawing(guard.REFUSED, "vain"), pytest.raises(guard.SystemWordsUsed, match="asked the system"):
        ASKING[name]()
    assert len(guard.refusals()) == 1


def test_an_error_that_goes_nowhere_is_told_of():
    def in_a_thread():
        def quiet():
            with suppress(BaseException):
                default_bits().uint64(1)

        thread = threading.Thread(target=quiet)
        thread.start()
        thread.join()

    assert asked_in_vain(in_a_thread) == ["dphmm.samplers.entropy asked the system for random words"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_is_refused():
    def forked():
        pid = os.fork()
        if pid == 0:
            with suppress(BaseException):
                SystemBits().uint64(1)
            os._exit(0)
        os.waitpid(pid, 0)

    assert asked_in_vain(forked) == ["dphmm.samplers.entropy asked the system for random words"]


@pytest.mark.parametrize("environment", [None, {}, {"PYTHONPATH": ""}, {"PYTHONPATH": str(guard.TESTS)}], ids=str)
@pytest.mark.parametrize("code", [WORDS, NESTED], ids=["child", "grandchild"])
def test_a_process_with_any_environment_is_refused(environment, code):
    told = asked_in_vain(lambda: python("-c", code, env=environment))
    assert told == ["dphmm.samplers.entropy asked the system for random words"]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_of_multiprocessing_are_refused(method):
    def worked():
        worker = multiprocessing.get_context(method).Process(target=exec, args=(WORDS,))
        worker.start()
        worker.join()

    assert len(asked_in_vain(worked)) == 1


def test_a_python_that_would_load_no_guard_is_not_started():
    for flag in ("-S", "-I", "-E"):
        (told,) = asked_in_vain(lambda flag=flag: python(flag, "-c", WORDS))
        assert "loads nothing that refuses" in told
    assert asked_in_vain(lambda: python("-c", "print()")) == []


def replayed(key, *codes):
    """The words that processes draw one after the other, for a test of that name."""
    with guard.drawing(guard.REPLAYED, key):
        here = SystemBits().uint64(4).tolist()
        return [here, *([int(word) for word in python("-c", code)[0]] for code in codes)]


def test_replayed_words_are_those_of_the_test_and_each_process_has_its_own():
    first, again = (replayed("a", WORDS, WORDS, NESTED, WORDS) for _ in range(2))
    assert first == again
    everything = [word for words in (*first, *replayed("b", WORDS)) for word in words]
    assert len(set(everything)) == len(everything) == 28


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forks_replay_words_of_their_own(tmp_path):
    def forked(number):
        pid = os.fork()
        if pid == 0:
            (tmp_path / str(number)).write_text(str(SystemBits().uint64(1)[0]))
            os._exit(0)
        os.waitpid(pid, 0)
        return (tmp_path / str(number)).read_text()

    found = []
    for _ in range(2):
        with guard.drawing(guard.REPLAYED, "forks"):
            found.append([forked(0), forked(1), str(SystemBits().uint64(1)[0])])
    assert found[0] == found[1] and len(set(found[0])) == 3


def test_a_stream_does_not_go_on_in_the_next_test():
    bits = SystemBits()
    with guard.drawing(guard.REPLAYED, "one"):
        bits.uint64(10)
    assert len(asked_in_vain(lambda: bits.uint64(1))) == 1


def test_names_of_files_are_not_refused(tmp_path):
    def written():
        with replacing(tmp_path / "file") as part:
            part.write_text("x")
        tempfile.mkdtemp(dir=tmp_path)

    assert asked_in_vain(written) == [] and (tmp_path / "file").read_text() == "x"


def test_a_library_that_draws_when_it_is_loaded_is_not_refused():
    assert asked_in_vain(lambda: python("-c", "import numpy.random, scipy.stats")) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "expected system_words"),
        ({"error": 1e-10, "because": "x"}, "expected system_words"),
        ({"error": "1e-10", "because": ""}, "expected system_words"),
        ({"error": "1e-9", "because": "x"}, "got error 1e-9; expected less"),
        ({"error": "-1", "because": "x"}, "got error -1"),
    ],
)
def test_a_mark_states_an_error(given, told):
    with pytest.raises(ValueError, match=told):
        hooks.error_of(pytest.mark.system_words(**given).mark)
    assert hooks.error_of(pytest.mark.system_words(error="1e-12", because="x").mark) == Fraction(1, 10**12)


#: A session in which words are drawn, from the system, by a seeded generator, and from generators that all share.
TRIED = """
import numpy as np, os, pytest, random

def test_asks():
    try:
        os.urandom(1)
    except BaseException:
        pass

def test_seeded():
    np.random.default_rng(1).random() + random.Random(1).random()

def test_shared():
    with open("shared.txt", "a") as file:
        print(random.random(), np.random.random(), file=file)

@pytest.mark.replayed_words
def test_replayed():
    os.urandom(1)

@pytest.mark.system_words(error="0", because="anything will do")
def test_marked():
    os.urandom(1)
"""


@pytest.mark.replayed_words
def test_what_pytest_makes_of_it(tmp_path):
    (tmp_path / "test_tried.py").write_text(TRIED)
    (tmp_path / "conftest.py").write_text((guard.TESTS / "conftest.py").read_text())
    marks = "markers =\n    replayed_words: x\n    system_words: x\n"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{marks}pythonpath = {guard.TESTS}\n")
    for chosen in ("test_tried.py", "test_tried.py::test_shared"):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", str(tmp_path / chosen)],
            cwd=tmp_path, env={**os.environ, "PYTEST_ADDOPTS": ""}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        failed = re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
        assert (failed == []) == ("::" in chosen), done.stdout
        assert failed in ([], ["test_asks"]) and ("1 passed" if "::" in chosen else "4 passed") in done.stdout
    first, second = (tmp_path / "shared.txt").read_text().splitlines()
    assert first == second


def test_the_package_knows_nothing_of_it():
    source = Path(dphmm.__file__).parent
    texts = {path.name: path.read_text() for path in source.rglob("*.py")}
    assert [name for name, text in texts.items() if "DPHMM_TESTS" in text or "sitecustomize" in text] == []
    assert guard.SPAWNED.is_dir() and not list(source.rglob("sitecustomize.py"))


@pytest.mark.system_words(error="1e-70", because="it shows that nothing replays them outside of the tests")
def test_without_the_tests_folder_on_its_path_a_process_replays_nothing(tmp_path):
    """Two processes that are told to replay one key: 256 bits that are equal by chance once in 1e77 runs."""
    found = []
    for number in range(2):
        file = tmp_path / str(number)
        code = f"{WORDS}; import sys; print('sitecustomize' in sys.modules and 'system_words' in sys.modules)"
        variables = {guard.WORDS: "replayed 0 key", guard.FOLDER: str(tmp_path), "HOME": str(tmp_path)}
        with file.open("w") as out:
            pid = os.posix_spawn(
                sys.executable, [sys.executable, "-c", code], variables,
                file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)],
            )  # fmt: skip
            os.waitpid(pid, 0)
        found.append(file.read_text().split())
    assert len(found[0]) == len(found[1]) == 5
    assert found[0][:4] != found[1][:4] and found[0][4] == found[1][4] == "False"
