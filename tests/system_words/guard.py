"""Whose words a test draws, in its own process and in those that it starts: none, replayed ones, or the system's.

The operating system is asked in one place, ``os.urandom`` (`secrets`, `uuid` and NumPy's unseeded generators end there
too), so that is what is replaced, here and never in the package. In a process that a test starts, ``sitecustomize`` of
the folder ``spawned`` does it, which only the tests put on a path. Standard library alone: every such process loads it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REFUSED, REPLAYED, SYSTEM = "refused", "replayed", "system"
#: "replayed 3.2 tests/test_x.py::test_y": how, the number of this process among those of its test, and the key.
WORDS = "DPHMM_TESTS_WORDS"
#: Where processes say that they asked in vain, and take a number where none was given to them.
FOLDER = "DPHMM_TESTS_WORDS_FOLDER"
SPAWNED = Path(__file__).parent / "spawned"
TESTS = Path(__file__).parents[1]

_OURS = tuple(f"{TESTS.parent / part}{os.sep}" for part in ("tests", "benchmarks", "examples"))
#: What leads from a question to ``os.urandom``.
_WAYS = {"random", "secrets", "uuid", __name__}
#: Whose words no outcome depends on: names of temporary and of cached files, numbers of callbacks and of jobs, keys
#: between the processes of one program.
_HARMLESS = (
    "dphmm.storage.inputs",
    "dphmm.storage.ledger.owner",
    "dphmm.storage.ledger.schema",
    "tempfile",
    "numba.",
    "sklearn.callback.",
    "joblib.",
    "multiprocessing.",
)
#: They make NumPy's old RandomState from a seed, which asks the system first and then forgets the answer; without one
#: they take the generator that all share, which is seeded for every test.
_SEEDED = ("sklearn.utils.validation", "pandas.core.common")
#: A number that the process has yet to take.
_ANY = "+"
#: Options with which Python looks for no ``sitecustomize``.
_UNWATCHED = {"-S", "-I", "-E", "-IS", "-ES"}

_system: Callable[[int], bytes] = os.urandom


class SystemWordsUsed(BaseException):
    """Words of the system were drawn where a test's outcome would have depended on them.

    No ``Exception``: the code under test answers some of those itself.
    """


class _State:
    """How this process draws now."""

    def __init__(self) -> None:
        self.how, self.number, self.key = SYSTEM, "0", ""
        self.drawn = self.started = 0
        self.refusals: list[str] = []


_now = _State()


def install() -> None:
    """Answer for the system from now on."""
    os.urandom = _urandom
    if "random" in sys.modules:
        sys.modules["random"]._urandom = _urandom  # type: ignore[attr-defined]
    os.register_at_fork(before=_count_child, after_in_child=_number_child)


def install_in_child() -> None:
    """What ``sitecustomize`` does in a process that a test started."""
    if WORDS in os.environ:
        install()
        adopt(os.environ[WORDS])


def adopt(words: str) -> None:
    """Draw as another process said: what `for_child` gave it to hand on."""
    _now.how, _now.number, _now.key = words.split(" ", 2)
    _now.drawn = _now.started = 0
    os.environ[WORDS] = f"{_now.how} {_now.number}.{_ANY} {_now.key}"


def for_child() -> str:
    """The words of the next process that this one starts."""
    _count_child()
    return f"{_now.how} {_now.number}.{_now.started} {_now.key}"


@contextmanager
def drawing(how: str, key: str = "") -> Iterator[None]:
    """Draw so until the block ends; a stream that was begun before is not continued."""
    global _now
    before, words = _now, os.environ.get(WORDS)
    _now = _State()
    adopt(f"{how} 0 {key}")
    for path in Path(os.environ[FOLDER]).glob(f"taken-{_named(key)}-*"):
        path.unlink()
    forget_streams()
    try:
        yield
    finally:
        _now = before
        if words is None:
            del os.environ[WORDS]
        else:
            os.environ[WORDS] = words
        forget_streams()


def forget_streams() -> None:
    """Have the package ask anew: what it holds was given under another key."""
    entropy: Any = sys.modules.get("dphmm.samplers.entropy")
    for bits in list(getattr(entropy, "_ALL_SYSTEM_BITS", ())):
        bits._start_afresh()


def refusals() -> list[str]:
    """Who asked in vain since the last call, in this process or one that the test started."""
    found, folder = list(_now.refusals), Path(os.environ[FOLDER])
    _now.refusals.clear()
    for path in sorted(folder.glob("refused-*")):
        found += path.read_text().splitlines()
        path.unlink()
    return found


def child_environment(given: dict[str, str] | None) -> dict[str, str]:
    """The environment of a process that a test starts: it must find ``sitecustomize``, and get a number of its own."""
    environment = dict(os.environ if given is None else given)
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(SPAWNED)]
    environment["PYTHONPATH"] = os.pathsep.join([str(SPAWNED), *paths])
    return environment | {WORDS: for_child(), FOLDER: os.environ[FOLDER]}


def check_command(arguments: list[str]) -> None:
    """Refuse a Python that would not load what refuses the system's words, where they are refused.

    But for the checker of released files: it imports nothing that draws (tests/cli/test_verify_release.py).
    """
    checks = any(argument.endswith("audit/verify_release.py") for argument in arguments[1:4])
    if _now.how == REFUSED and _UNWATCHED.intersection(arguments[1:3]) and not checks:
        refuse(f"{' '.join(arguments[:3])} loads nothing that refuses the system's words")


def refuse(asked: str) -> None:
    """Note it where the test finds it, whatever becomes of the error, and raise."""
    _now.refusals.append(asked)
    if folder := os.environ.get(FOLDER):
        with open(f"{folder}/refused-{os.getpid()}", "a") as file:  # noqa: PTH123
            file.write(f"{asked}\n")
        _now.refusals.clear()
    raise SystemWordsUsed(asked)


def is_ours(frame: Any) -> bool:
    """Whether code of the package, its tests, benchmarks or examples runs in a frame."""
    name, file = str(frame.f_globals.get("__name__")), frame.f_code.co_filename
    return name == "__main__" or name.partition(".")[0] == "dphmm" or file.startswith(_OURS)


def _urandom(n: int) -> bytes:
    asking, loading = _asking()
    if loading:
        return bytes(n)  # some libraries draw, or seed what all may draw from, when they are loaded
    if _now.how == SYSTEM or asking.startswith((*_HARMLESS, *_SEEDED)):
        return _system(n)
    if _now.how == REFUSED:
        refuse(f"{asking} asked the system for random words")
    return _replayed(n)


def _asking() -> tuple[str, bool]:
    """The module that asks, and whether it is a library's that is just being loaded."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _WAYS:
        frame = frame.f_back
    asking = str(frame.f_globals.get("__name__"))
    while frame is not None and not is_ours(frame):
        if str(frame.f_globals.get("__name__")).startswith("importlib."):
            return asking, True
        frame = frame.f_back
    return asking, False


def _replayed(n: int) -> bytes:
    import hashlib

    if _now.number.endswith(_ANY):
        _now.number = _now.number.removesuffix(_ANY) + f"p{_free_number()}"
    _now.drawn += 1
    return hashlib.shake_256(f"{_now.drawn} {_now.number} {_now.key}".encode()).digest(n)


def _free_number() -> int:
    mine = f"{os.environ[FOLDER]}/taken-{_named(_now.key)}-{_named(_now.number)}"
    number = 1
    while True:
        try:
            os.close(os.open(f"{mine}-{number}", os.O_CREAT | os.O_EXCL))
            return number
        except FileExistsError:
            number += 1


def _named(key: str) -> str:
    """A key as part of a file's name."""
    import hashlib

    return hashlib.sha256(key.encode()).hexdigest()[:16]


def _count_child() -> None:
    _now.started += 1


def _number_child() -> None:
    adopt(f"{_now.how} {_now.number}.{_now.started} {_now.key}")
