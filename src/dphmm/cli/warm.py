"""dphmm warm: compile ahead what commands need, here or for another machine of the same kind."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import click

from dphmm.cli.console import SECONDS_BETWEEN_LINES, Console, print_json
from dphmm.cli.options import CONTEXT, messages
from dphmm.cli.outcomes import FAILED
from dphmm.errors import InvalidInput


@click.command(context_settings=CONTEXT)
@click.option("--to", metavar="DIR", help="The folder to fill  [default: $DPHMM_KERNELS, else the user's cache]")
@messages
def warm(to: str | None, quiet: bool, as_json: bool) -> int | None:
    """Compile the kernels that commands need, so that no command has to wait for them.

    Runs every command on a small made-up world. What is compiled serves every installation with the same kernels,
    Python, Numba and processor, wherever it is installed: name the folder there in DPHMM_KERNELS; it may be read-only.
    """
    from dphmm._kernels import announced
    from dphmm._kernels.cache import VARIABLE, folder, writable
    from dphmm._kernels.compiled import KERNELS, compiles

    console = Console(quiet=quiet or as_json)
    if not compiles():
        raise InvalidInput("NUMBA_DISABLE_JIT", "1, with which nothing is compiled", "none")
    with _kept_in(VARIABLE, to):
        if not writable(folder()):
            raise InvalidInput("--to" if to else VARIABLE, str(folder()), "a folder that can be written")
        # What else is said of the compiler is this command's own work.
        announced.tell = None
        refused: list[str] = []
        announced.warn = refused.append
        began, told = monotonic(), monotonic()
        done = compiled = found = 0
        for done, total in _run_everything():
            compiled = sum(sum(one.stats.cache_misses.values()) for one in KERNELS)
            found = sum(sum(one.stats.cache_hits.values()) for one in KERNELS)
            if monotonic() - told >= SECONDS_BETWEEN_LINES:
                told = monotonic()
                console.say([("", f"warm: {done} of {total} commands, {compiled} kernels compiled")])
        seconds, where = monotonic() - began, folder()
    if refused:
        console.warn(refused[0])
        return FAILED
    if as_json:
        print_json({"folder": str(where), "compiled": compiled, "found": found, "seconds": round(seconds, 1)})
        return None
    console.say([("compiled", f"{compiled} kernels, in {seconds:.0f} s"), ("there before", f"{found}")])
    click.echo(where)
    return None


@contextmanager
def _kept_in(variable: str, given: str | None) -> Iterator[None]:
    before = os.environ.get(variable)
    if given is not None:
        os.environ[variable] = str(Path(given).absolute())
    try:
        yield
    finally:
        if given is not None:
            os.environ.pop(variable)
            os.environ.update({} if before is None else {variable: before})


def _run_everything() -> Iterator[tuple[int, int]]:
    """Run all commands of the small world; tell after each how many are done."""
    from dphmm.cli.warm_world import commands, write_world

    lines = commands()
    with TemporaryDirectory(prefix="dphmm-warm-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        write_world(folder)
        for at, line in enumerate(lines, 1):
            _run(line, folder)
            yield at, len(lines)


def _run(line: str, folder: Path) -> None:
    from click.testing import CliRunner

    from dphmm.cli.app import COMMANDS

    name, *words = shlex.split(line)
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: Any = getattr(import_module(module), attribute)
    given = (folder / "walks.jsonl").read_text() if words[0] == "-" else None
    result = CliRunner().invoke(command, [_placed(word, folder) for word in words], given, standalone_mode=False)
    if result.exception is not None:
        raise result.exception


def _placed(word: str, folder: Path) -> str:
    """A word of a command line, where it names a file in the folder of the world."""
    before, colon, name = word.rpartition(":")
    return f"{before}{colon}{folder / name}" if Path(name).suffix in _FILES else word


_FILES = frozenset((".csv", ".npz", ".json", ".jsonl", ".parquet", ".db", ".html"))
