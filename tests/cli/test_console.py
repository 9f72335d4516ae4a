"""What a person at a terminal sees, and what --quiet leaves of it.

How a command ends: SIGTERM is answered like Ctrl-C, handlers are put back, messages are in its words.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import signal
import sys
import time
from pathlib import Path

import click
import numba
import pytest
from click.testing import CliRunner
from llvmlite.binding import ffi

from dphmm._kernels import compiled
from dphmm.cli import console
from dphmm.cli.app import app
from dphmm.cli.console import (
    Console,
    Interrupted,
    Lines,
    Terminated,
    aligned,
    answered_like_an_interrupt,
    compilation_told,
    named,
    on_the_command_line,
)
from dphmm.errors import BudgetExceeded, InvalidInput


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
    work = Lines("report")
    assert work.line(10) == "report: 0 % after 10 s"
    for progress, line in {
        (1, 4): "report: 25 % after 20 s",
        (4, 4): "report: the last steps after 20 s",
        "smoothing the answers": "report: smoothing the answers after 20 s",
        (999, 1000): "report: smoothing the answers, 99 % after 20 s",
        (1000, 1000): "report: smoothing the answers after 20 s",
        "drawing the page": "report: drawing the page after 20 s",
    }.items():
        work.stage(progress) if isinstance(progress, str) else work(*progress)
        assert work.line(20) == line


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


def test_a_command_that_is_terminated(monkeypatch):
    @click.command()
    def slow():
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(type(app), "get_command", lambda *_: slow)
    before = signal.getsignal(signal.SIGTERM)
    result = CliRunner().invoke(app, ["account"])
    assert result.exit_code == 143
    assert result.stderr == "interrupted: dphmm account writes no file, so there is nothing to tidy up\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_does_not_disturb_the_tidying_up():
    with answered_like_an_interrupt():
        with pytest.raises(Terminated):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)


class Freed:
    """Something that is freed just when a signal comes."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)


@pytest.mark.parametrize(("number", "stop"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_while_an_object_is_freed_is_not_lost(number, stop):
    with answered_like_an_interrupt(), pytest.raises(stop):
        signal.signal(signal.SIGINT, console._stop)
        del (freed := [Freed(number)])[0]
        assert not freed
        time.sleep(5)


@pytest.mark.parametrize(("number", "stop"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_during_an_import_comes_after_it(tmp_path, monkeypatch, number, stop):
    """Compiled code that imports a module may take an interrupt for a module that is not there."""
    name = f"interrupted_by_{int(number)}"
    (tmp_path / f"{name}.py").write_text(f"import signal\nsignal.raise_signal({int(number)})\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with answered_like_an_interrupt(), pytest.raises(stop):
        signal.signal(signal.SIGINT, console._stop)
        assert importlib.import_module(name).whole
        time.sleep(5)


def test_an_import_that_failed_puts_no_signal_off(tmp_path, monkeypatch):
    """Its traceback keeps what the import held, its lock too."""
    (tmp_path / "not_to_be_imported.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError) as kept:
        importlib.import_module("not_to_be_imported")
    with answered_like_an_interrupt(), pytest.raises(Terminated):
        signal.raise_signal(signal.SIGTERM)
    assert kept.value.__traceback__ is not None


@pytest.mark.parametrize(("number", "stop"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_during_a_call_of_llvm_comes_after_it(number, stop):
    """LLVM calls Python back for compiled objects, and drops what is raised there."""
    assert compiled.process.llvm_calls == 0
    with answered_like_an_interrupt(), pytest.raises(stop):
        signal.signal(signal.SIGINT, console._stop)
        with ffi.lib._lock:
            signal.raise_signal(number)
            returned = True
        assert returned
        time.sleep(5)
    assert compiled.process.llvm_calls == 0


def test_other_errors_while_an_object_is_freed_are_told(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with answered_like_an_interrupt():
        del (freed := [Broken()])[0]
        assert not freed
    assert [lost.exc_type for lost in told] == [ZeroDivisionError]


def test_what_an_interrupt_left_half_made_may_fail_silently_when_it_is_freed(monkeypatch):
    class HalfMade:
        def __del__(self):
            raise AttributeError("half made")

    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: told.append(str(lost.exc_value)))
    with answered_like_an_interrupt():
        HalfMade()
        assert told == ["half made"]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        HalfMade()
    assert told == ["half made"]
    HalfMade()
    assert told == ["half made"] * 2


class Broken:
    """Something that cannot be freed without an error."""

    def __del__(self):
        raise ZeroDivisionError


def test_what_is_ignored_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with answered_like_an_interrupt():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_codes():
    assert Interrupted("x", Terminated()).exit_code == 143
    assert Interrupted("x", KeyboardInterrupt()).exit_code == Interrupted("x").exit_code == 130


@pytest.mark.parametrize(("hidden", "code"), [(True, 130), (False, 2)])
def test_an_interrupt_of_which_a_library_made_a_wrong_input_stays_one(monkeypatch, run, tmp_path, hidden, code):
    """NumPy may turn an interrupt into a TypeError, and a reader of files that into a file that is none."""
    from dphmm.cli import console, read

    def broken(path, option="OUT"):
        console._asked.append(KeyboardInterrupt)
        if not hidden:
            raise InvalidInput("model", "a file that is none", "a model")
        try:
            raise TypeError
        except TypeError:
            raise InvalidInput("model", "a file that is none", "a model") from None

    monkeypatch.setattr(read, "opened", broken)
    said = run("read", tmp_path, "--event", "a", "--from", 1, "--to", 2, code=code)
    assert said.stderr.count("\n") == 1 and ("interrupted" in said.stderr) == hidden


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InvalidInput("min_count", 0, "a whole number"), "--min-count: got 0; expected a whole number"),
        (InvalidInput("user_column", "x", "y"), "--user-column: got x; expected y"),
        (InvalidInput("--gap", "1", "2"), "--gap: got 1; expected 2"),
        (InvalidInput("f/state_column.csv", "min_count", "x"), "f/state_column.csv: got min_count; expected x"),
        (
            InvalidInput("ledger", "releases of 2 users", "resume to continue them: a new ledger"),
            "ledger: got releases of 2 users; expected the same without --new, which continues them: a new ledger",
        ),
        (
            InvalidInput("m.npz", "no model", "a model file written by save_model"),
            "m.npz: got no model; expected a model file written by dphmm fit",
        ),
        (
            InvalidInput("constraint", "all", '"support", "delta=0.01" or a DeltaSet'),
            "--setting constraint: got all; expected support or delta=0.01",
        ),
        (BudgetExceeded("cap_epsilon: user 'a' needs 2"), "--cap-epsilon: user 'a' needs 2"),
    ],
)
def test_arguments_become_options(error, told):
    assert on_the_command_line(error) == told


def test_a_command_names_its_own_option():
    error = named(InvalidInput("step", "300 s", "no step; or none"), {"step": "--step"})
    assert isinstance(error, InvalidInput)
    assert str(error) == "--step: got 300 s; expected no step; or none"
    assert on_the_command_line(error) == str(error)
