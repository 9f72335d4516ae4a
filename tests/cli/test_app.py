"""The command line as a whole: help, laziness, and how every outcome becomes an exit code and one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dphmm.cli.app import COMMANDS, app
from dphmm.cli.console import Interrupted, one_line
from dphmm.errors import BudgetExceeded, InvalidInput, LedgerBusy


def outcome(monkeypatch, error):
    @click.command()
    def failing():
        raise error

    monkeypatch.setattr(type(app), "get_command", lambda *_: failing)
    return CliRunner().invoke(app, ["account"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("epsilon", "0", "a number greater than 0"), 2),
        (BudgetExceeded("epsilon: spent 1 of 1"), 1),
        (LedgerBusy("ledger: in use"), 4),
        (Interrupted("interrupted: 3 releases are stored"), 130),
        (KeyboardInterrupt(), 130),
        (OSError(28, "No space left on device", "out.parquet"), 1),
    ],
)
def test_deliberate_errors_are_one_line_and_a_code(monkeypatch, error, code):
    result = outcome(monkeypatch, error)
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1


def test_a_full_disk_is_named_with_what_to_do(monkeypatch):
    told = outcome(monkeypatch, OSError(28, "No space left on device", "out.parquet")).stderr
    assert told.startswith("error: out.parquet: No space left on device; ") and "type the same command again" in told


def test_an_unknown_exception_is_a_bug_and_stays_one(monkeypatch):
    result = outcome(monkeypatch, ZeroDivisionError("ours"))
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize("arguments", [["nonsense"], ["fit"], ["fit", "--nope"], ["policy", "nonsense", "m"]])
def test_usage_errors_are_one_line(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_command_without_loading_one(flag):
    result = CliRunner().invoke(app, [flag])
    assert result.exit_code == 0
    assert [name for name in COMMANDS if name not in result.stdout] == []


def test_every_command_has_help(run):
    told = {name: run(name, "-h").stdout for name in COMMANDS if name != "demo"}
    assert {name: text for name, text in told.items() if not text.startswith("Usage: dphmm " + name)} == {}


def test_the_page_of_commands_has_every_command_with_its_options():
    """The site makes the table of options of the command itself (tests/test_site.py)."""
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    parts = {re.match(r"[\w-]+", part)[0]: part for part in page.split("\n## `dphmm ")[1:]}
    assert sorted(parts) == sorted(COMMANDS)
    assert [name for name, part in parts.items() if part.count(f"```{{options}} {name}\n```") != 1] == []


def unknown_options(text):
    """(command, option) for every option that stands in the same line or snippet after a command that has it not."""
    context = click.Context(app)
    found = set()
    begins = rf"(?:\bdphmm |`(?=(?:{'|'.join(COMMANDS)})\b))"
    for name, rest in re.findall(rf"{begins}([a-z]+(?:-[a-z]+)*)\b([^`\n|]*)", text.replace("\\\n", " ")):
        command = app.get_command(context, name) if name in COMMANDS else None
        parts = command.list_commands(context) if isinstance(command, click.Group) else []
        known = [
            part for part in (command, *(command.get_command(context, part) for part in parts)) if part is not None
        ]
        options = {option for part in known for parameter in part.params for option in parameter.opts}
        found |= {(name, option) for option in re.findall(r"(?<![\w-])--[a-z0-9-]+", rest) if option not in options}
    return found


def test_no_page_names_an_option_that_its_command_has_not():
    root = Path(__file__).parents[2]
    places = ("docs", "experiments")
    pages = [
        root / "README.md",
        root / "SECURITY.md",
        *(page for place in places for page in (root / place).rglob("*.md")),
    ]
    assert {(page.name, *found) for page in pages for found in unknown_options(page.read_text())} == set()
    told = "`dphmm import --epsilon`, `dphmm import csv x --user-column u` and `release - --statement FILE`"
    assert unknown_options(told) == {("import", "--epsilon"), ("release", "--statement")}


def completed(shell, words):
    """What a shell is offered for the last word of a command line that is being typed."""
    at = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_DPHMM_COMPLETE": f"{shell}_complete"}
    program = [sys.executable, "-c", "import sys; sys.argv[0] = 'dphmm'; from dphmm.cli import main; main()"]
    done = subprocess.run(program, env=os.environ | at, capture_output=True, text=True, check=True)
    return [line.split(",")[-1].split("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_shells_complete_commands_and_options_as_the_page_says():
    page = (Path(__file__).parents[2] / "docs" / "install.md").read_text().partition("## Shell completion")[2]
    assert re.findall(r"_DPHMM_COMPLETE=(\w+)_source dphmm", page) == ["bash", "zsh", "fish"]
    assert completed("bash", "dphmm re") == [name for name in COMMANDS if name.startswith("re")]
    assert completed("bash", "dphmm release --path") == ["--path-epsilon"]


def test_version(run):
    import dphmm

    assert run("--version").stdout == f"dphmm {dphmm.__version__}\n"


def test_help_loads_no_heavy_library():
    heavy = ("numba", "pandas", "pyarrow", "scipy", "rich", "h3", "networkx", "matplotlib", "numpy")
    script = (
        "import sys; from dphmm.cli.app import app\n"
        "try: app.main(['-h'])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


INTERRUPTED_IMPORT = """
import sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from dphmm.cli import main
sys.argv[1:] = ["account", "none.db"]
main()
"""


@pytest.mark.parametrize("module", ["click", "dphmm.cli.app", "dphmm.cli.account", "dphmm.accounting", "numpy"])
def test_interrupted_while_it_loads(module):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT.replace("sys.argv[1]", repr(module), 1)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (130, "", 1), done.stderr
    assert done.stderr.startswith("interrupted")


def test_hardly_anything_is_loaded_before_an_interrupt_is_answered():
    """What loads outside of main is the time in which Ctrl-C shows a traceback."""
    code = "import sys; before = set(sys.modules); import dphmm.cli; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")})  # fmt: skip
    slow = {"importlib.metadata", "click", "email", "zipfile", "inspect", "numpy"}
    assert slow.isdisjoint(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["-h"], ["fit"], ["account", "none.db"]])
def test_output_that_nobody_reads_is_no_error(arguments):
    """A closed pipe ends a command as it ends cat: 141, and not a word; an error keeps its own code."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dphmm", *arguments], stdout=writing, stderr=writing, check=False, timeout=60
        )
    finally:
        os.close(writing)
    assert done.returncode == (141 if arguments == ["-h"] else 2)


def test_a_message_cannot_steer_the_terminal():
    assert one_line("a\nb\x1b[31m\u202e") == "a b\\x1b[31m\\u202e"
