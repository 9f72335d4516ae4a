"""What a person at a terminal sees, and what --quiet leaves of it."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from dphmm.cli.console import Console, Lines, aligned, compilation_told


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; called in the test itself, because pytest puts its own there before."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    return stream


def test_a_summary_and_a_bar_without_colours(monkeypatch):
    terminal = at_terminal(monkeypatch)
    console = Console()
    with console.progress("release") as report:
        report(1, 2)
    console.say([("rows", "3 of 4"), ("", "a sentence")])
    text = terminal.getvalue()
    assert "rows" in text
    assert "3 of 4" in text
    assert "a sentence" in text
    assert "\x1b[3" not in text
    assert "\x1b[9" not in text


def test_quiet_leaves_warnings(monkeypatch):
    terminal = at_terminal(monkeypatch)
    console = Console(quiet=True)
    console.say([("rows", "3")])
    with console.progress("release") as report:
        assert report is None
    assert terminal.getvalue() == ""
    console.warn("not\nprivate")
    assert terminal.getvalue() == "warning: not private\n"


def test_short_work_says_nothing_to_a_pipe(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with Console().progress("release") as report:
        report(1, 2)
    assert pipe.getvalue() == ""


def test_a_line_of_progress_names_the_stage_and_never_says_that_all_is_done():
    work, said = Lines("report"), []
    said.append(work.line(10))
    work(1, 4)
    said.append(work.line(20))
    work(4, 4)
    said.append(work.line(30))
    work.stage("smoothing the answers")
    said.append(work.line(40))
    work(999, 1000)
    said.append(work.line(50))
    work(1000, 1000)
    said.append(work.line(60))
    work.stage("drawing the page")
    said.append(work.line(70))
    assert said == [
        "report: 0 % after 10 s",
        "report: 25 % after 20 s",
        "report: the last steps after 30 s",
        "report: smoothing the answers after 40 s",
        "report: smoothing the answers, 99 % after 50 s",
        "report: smoothing the answers after 60 s",
        "report: drawing the page after 70 s",
    ]


def test_a_bar_names_the_stage_and_loses_its_end(monkeypatch):
    at_terminal(monkeypatch)
    with Console().progress("report [b]") as work:
        bars = work._bars
        work(1, 2)
        assert (bars.tasks[0].completed, bars.tasks[0].total) == (1, 2)
        for _ in range(2):
            work(2, 2)
            assert [task.total for task in bars.tasks] == [None]
        work.stage("drawing the page")
        assert [(task.description, task.total) for task in bars.tasks] == [("report [b]: drawing the page", None)]


def test_labels_are_one_column():
    assert aligned([("a", "1"), ("long", "2"), ("", "all of it")]) == ["a     1", "long  2", "all of it"]


def fresh_kernel(folder: Path):
    """A kernel that nothing has compiled before, its cache on disk in ``folder``; made again it is read from there."""
    path = folder / "fresh.py"
    if not path.exists():
        path.write_text(
            "from dphmm._kernels.compiled import kernel\n"
            "@kernel\ndef one(x):\n    return x + 1\n"
            "@kernel\ndef two(x):\n    return x + 2\n"
        )
    spec = importlib.util.spec_from_file_location("fresh", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compiling_is_told_once_and_a_warm_start_says_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("DPHMM_KERNELS", str(tmp_path))
    terminal = at_terminal(monkeypatch)
    module = fresh_kernel(tmp_path)
    with compilation_told():
        assert (module.one(1), module.two(1)) == (2, 3)
    assert terminal.getvalue().count("compiling kernels") == terminal.getvalue().count("\n") == 1
    with compilation_told():
        assert fresh_kernel(tmp_path).one(1) == 2
    assert terminal.getvalue().count("\n") == 1
    # The second part would pass on a listener that has gone: it is still there.
    with compilation_told():
        assert module.one(1.5) == 2.5
    assert terminal.getvalue().count("\n") == 2


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("why", ["quiet", "pipe", "over"])
def test_compiling_is_told_to_nobody_who_did_not_ask(monkeypatch, tmp_path, why):
    monkeypatch.setenv("DPHMM_KERNELS", str(tmp_path))
    stream = at_terminal(monkeypatch)
    if why == "pipe":
        monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with compilation_told():
        Console(quiet=why == "quiet")
        if why != "over":
            fresh_kernel(tmp_path).one(1)
    fresh_kernel(tmp_path).two(1)
    assert stream.getvalue() == ""


def test_to_be_told_of_compilers_loads_none():
    code = "import sys, dphmm, dphmm.cli.app; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
