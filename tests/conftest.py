"""Where the tests find real data, whose random words they draw, and what is said about those left out."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest

import signals
import skips
from system_words import hooks

CPU = Path(__file__).parents[1] / "build" / "tests-cpu.txt"

# The same examples on every run and machine, however slow it is; `--hypothesis-profile=searching` looks for new ones.
hypothesis.settings.register_profile("everyday", derandomize=True, deadline=None)
hypothesis.settings.register_profile("searching", derandomize=False, deadline=None)
hypothesis.settings.load_profile("everyday")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data: DPHMM_DATA, or ../shared/data beside the project."""
    given = os.environ.get("DPHMM_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real data here: set DPHMM_DATA to its folder")
    return folder


@pytest.fixture(scope="module")
def program() -> Iterator[ModuleType]:
    """`verify_release.py`, loaded as a file of its own: it shares no code with the package."""
    path = Path(__file__).parents[1] / "src/dphmm/audit/verify_release.py"
    spec = importlib.util.spec_from_file_location("verify_release", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["verify_release"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["verify_release"]


@pytest.fixture(scope="session", autouse=True)
def _no_lines_of_progress() -> None:
    """What commands print must not hang on how busy the machine is; its own test sets another time."""
    from dphmm.cli import console

    console.SECONDS_BETWEEN_LINES = 1e6


@pytest.fixture(scope="session", autouse=True)
def _own_findings_without_a_limit() -> tuple[int, int]:
    """Commands compute a reader's findings without a limit from ten people at twelve steps: it was half their time.

    Returns the system's own numbers, which `whole_findings` restores.
    """
    from dphmm.choose import planning

    own = planning._FOLLOWED, planning._ANSWERED
    planning._FOLLOWED, planning._ANSWERED = planning._FEWEST_FOLLOWED, 12
    return own


@pytest.fixture
def whole_findings(_own_findings_without_a_limit: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader's findings without a limit are of the system's own numbers of people and steps: for tests of them."""
    for name, number in zip(("_FOLLOWED", "_ANSWERED"), _own_findings_without_a_limit, strict=True):
        monkeypatch.setattr(f"dphmm.choose.planning.{name}", number)


@pytest.fixture
def few_invented_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are made of few invented people: for tests whose claim is the same of any number of them.

    What is expected of these takes most of the time of a page. `monkeypatch.undo()` has all of them again.
    """
    monkeypatch.setattr("dphmm.report.assembling._INVENTED", 10)
    monkeypatch.setattr("dphmm.choose.planning.STAYERS", 30)


#: So many new objects until the garbage collector looks for circles: by Python's own 700 it took half the time of tests
#: that parse the whole tree.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def pytest_configure() -> None:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    signals.heed()
    hooks.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    hooks.end()
    if config.getoption("cpu") and not hasattr(config, "workerinput"):
        CPU.parent.mkdir(exist_ok=True)
        CPU.write_text(f"{sum(os.times()[:4]):.0f}\n")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Load the tests. The garbage collector never looks at them again: they stay until the end."""
    gc.disable()
    with hooks.no_words("what a test module draws when it is loaded"):
        collected = yield
    gc.freeze()
    gc.enable()
    return collected


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    with hooks.words_of(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call() -> Iterator[None]:
    yield from hooks.checked()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    if fixturedef.scope == "function":
        return (yield)
    with hooks.words_of_fixture(fixturedef, request):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    skips.finish(session)
    yield
    skips.summarise(session.config)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", action="store_true", help="keep the seconds of processor time for benchmarks.house")
    parser.addoption("--times", type=int, default=1, help="run every test so often (python -m system_words)")


@pytest.fixture
def _time(request: pytest.FixtureRequest) -> int:
    """Which of the runs of ``--times`` this is."""
    number: int = request.param
    return number


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = metafunc.config.getoption("times")
    if times > 1:
        metafunc.fixturenames.append("_time")
        metafunc.parametrize("_time", range(times), indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        try:
            hooks.how_of(item)
        except ValueError as wrong:
            raise pytest.UsageError(f"{item.nodeid}: {wrong}") from None
