"""Nothing is left out in silence: a run says what it did not test, and .ci/run fails where it may not be left out.

Claims: the commands of README, Makefile and .ci/run are the same; every listed reason is one that a test gives; a run
with another reason, or without a browser, fails in .ci/run and is green, with one line that says so, in `make test`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import browser
import skips

ROOT = Path(__file__).parents[1]
NO_BROWSER = browser.MISSING
REAL = "no real data here: set DPHMM_DATA to its folder"


def targets(text):
    """{target: its commands} of a Makefile."""
    found = re.findall(r"^([\w-]+):.*\n((?:\t.*\n)*)", text, re.MULTILINE)
    return {name: commands.split("\n\t") for name, commands in found}


def test_make_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    listed = re.findall(r'@echo "make ([\w-]+) ', text)
    assert set(listed) == set(targets(text)) - {"help", "clean"}
    (phony,) = re.findall(r"^\.PHONY: (.*)", text, re.MULTILINE)
    assert set(phony.split()) == set(targets(text))


def test_documents_name_targets_that_exist():
    places = ("docs", "experiments")
    pages = [
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        *(page for place in places for page in (ROOT / place).rglob("*.md")),
    ]
    named = {name for page in pages for name in re.findall(r"^make ([\w-]+)|`make ([\w-]+)`", page.read_text(), re.M)}
    known = set(targets((ROOT / "Makefile").read_text()))
    assert {one or other for one, other in named} - known == set()


def test_page_and_make_help_say_the_same_of_how_long_it_takes():
    help_text, page = (ROOT / "Makefile").read_text(), (ROOT / "docs" / "research.md").read_text()
    in_help = dict(re.findall(r'@echo "make ([\w-]+) .*\(([^()]*?(?:minutes|hour))(?: on two cores)?\)"', help_text))
    in_page = dict(re.findall(r"^\| `make ([\w-]+)` \| \(([^()]*)\)", page, re.MULTILINE))
    both = in_help.keys() & in_page.keys()
    assert both >= {"bench", "verify", "crashes", "mutants"}
    assert {name: in_help[name] for name in both} == {name: in_page[name] for name in both}


def test_ci_runs_the_readme_s_command_after_what_it_needs_is_there():
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    assert lines == [
        "set -euo pipefail",
        'cd "$(dirname "$0")/.."',
        "bash .ci/system-packages",
        "make lint",
        "bash .ci/accessibility-checker",
        f"export {skips.LISTED}=listed",
        "python3 run.py test --all",
        "make test-spark",
    ]
    makefile = targets((ROOT / "Makefile").read_text())
    assert [makefile[name][0].strip() for name in ("demo", "test", "docs", "wheel")] == [
        f"$(PYTHON) run.py {n}" for n in ("demo", "test", "docs", "wheel")
    ]
    assert makefile["test-all"][0].strip() == "$(PYTHON) run.py test --all"
    commands = re.findall(r"^(python3 run.py \w+)  ", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert commands == ["python3 run.py demo", "python3 run.py test"]
    assert makefile["test-spark"][-1].startswith(f"{skips.LISTED}=none $(SPARK_VENV)/bin/python -m pytest tests/spark")


def test_the_packages_of_ci_are_those_that_a_skip_names():
    script = (ROOT / ".ci" / "system-packages").read_text()
    (advice,) = [skip.get for skip in skips.known() if NO_BROWSER.startswith(skip.reason)]
    packages = re.findall(r"wanted\+=\((.*)\)", script)
    assert set(advice.rpartition("install ")[2].split()) <= set(" ".join(packages).split())
    assert [name for name in browser.NAMES if name not in script] == []
    assert subprocess.run(["bash", "-n", ".ci/system-packages"], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(("told", "status"), [("17.0.2", 0), ("25", 0), ("11.0.1", 1), ("1.8.0_292", 1), (None, 1)])
def test_java_is_looked_for_where_spark_looks(told, status, tmp_path):
    """A runtime that is too old is none, and without apt-get the last line says what to install."""
    (tmp_path / "bin").mkdir()
    if told is not None:
        (tmp_path / "bin" / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{told}\"' >&2\n")
        (tmp_path / "bin" / "java").chmod(0o755)
    command = ["/bin/bash", str(ROOT / ".ci" / "system-packages"), "java"]
    for environment in ({"PATH": str(tmp_path / "bin")}, {"PATH": "/none", "JAVA_HOME": str(tmp_path)}):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert ("jre-headless" in done.stderr and "JAVA_HOME" in done.stderr) == bool(status), done.stderr


@pytest.mark.parametrize("uid", ["0", "1000"])
def test_without_apt_or_root_it_says_what_to_install(uid, tmp_path):
    """A path with nothing of what it looks for."""
    (tmp_path / "id").write_text(f"#!/bin/sh\necho {uid}\n")
    if uid == "1000":
        (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 0\n")
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    command = ["/bin/bash", str(ROOT / ".ci" / "system-packages")]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert ("there is no apt-get here" if uid == "0" else "neither root nor sudo") in done.stderr
    assert "chromium" in done.stderr and "DPHMM_BROWSER" in done.stderr


def test_every_listed_reason_is_one_that_a_test_gives():
    sources = [
        path.read_text() for path in (ROOT / "tests").rglob("*.py") if path.name not in ("test_skips.py", "skips.py")
    ]
    unused = [
        skip.reason for skip in skips.known() if not any((skip.source or skip.reason) in text for text in sources)
    ]
    assert unused == []


def report(nodeid, reason):
    return SimpleNamespace(nodeid=nodeid, longrepr=("file", 1, f"Skipped: {reason}"))


def test_one_line_says_what_was_not_tested_and_how_to_get_it():
    reports = [report("a", NO_BROWSER), report("b", NO_BROWSER), report("b", NO_BROWSER), report("c", "it rains")]
    line = skips.not_tested(skips.reasons(reports))
    assert line.startswith("NOT TESTED: pages in a browser (2: ") and "apt-get install chromium" in line
    assert line.endswith("1 more (pytest -rs says why)") and "\n" not in line
    assert skips.not_tested([]) == ""


def test_only_listed_reasons_are_allowed():
    assert skips.not_allowed([REAL, NO_BROWSER, "it rains", "it rains"]) == [NO_BROWSER, "it rains"]
    assert skips.not_allowed([REAL]) == skips.not_allowed(["it rains"], "") == []
    assert skips.not_allowed([REAL, REAL], "none") == [REAL]


#: A run of one test that is skipped.
SKIPPED = """
import pytest

def test_it():
    pytest.skip({reason!r})
"""
HOOKS = """
import pytest, skips

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    skips.finish(session)
    yield
    skips.summarise(session.config)
"""


@pytest.mark.slow
@pytest.mark.replayed_words
@pytest.mark.parametrize(
    ("reason", "listed", "code"),
    [(NO_BROWSER, "listed", 1), (NO_BROWSER, "", 0), (REAL, "listed", 0), ("it rains", "listed", 1), (REAL, "none", 1)],
)
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_run_fails_for_other_reasons_and_ends_with_its_line(reason, listed, code, workers, tmp_path):
    (tmp_path / "test_one.py").write_text(SKIPPED.format(reason=reason))
    (tmp_path / "conftest.py").write_text(HOOKS)
    environment = {**os.environ, skips.LISTED: listed, "PYTHONPATH": str(ROOT / "tests"), "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1]
    assert done.returncode == code, done.stdout + done.stderr
    assert last.startswith("NOT TESTED: ")
    assert ("FAILED: skipped, " in done.stdout) == bool(code)
