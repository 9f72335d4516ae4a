"""The commands by name, loaded when one is used, and how every outcome becomes an exit code and a line."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from dphmm.cli.console import (
    BAD_INPUT,
    CLOSED,
    FAILED,
    Interrupted,
    OutputClosed,
    answered_like_an_interrupt,
    asked_to_stop,
    compilation_told,
    of_its_option,
    on_the_command_line,
    one_line,
    reworded,
    stopped_code,
)
from dphmm.cli.meant import said
from dphmm.errors import DphmmError, InvalidInput

#: name: (where its click command lives, what the overview says of it), by what they are for.
GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Start here": {
        "demo": ("dphmm.cli.demo:demo", "Run everything below on a simulated city; needs no input."),
        "init": ("dphmm.cli.init:init", "Write a pipeline to begin with, from the columns of a data file."),
        "check": ("dphmm.cli.check:check", "Check a table for a release, before anything is spent."),
        "run": ("dphmm.cli.pipeline:run", "Run a pipeline: from a data file to a report, as one file says."),
    },
    "Step by step": {
        "model": ("dphmm.cli.model:model", "Write a model that is fitted to nobody: from geometry, or a matrix."),
        "fit": ("dphmm.cli.fit:fit", "Fit a Markov model to trajectories."),
        "policy": ("dphmm.cli.policy:policy", "Say which states must not be told apart."),
        "plan": ("dphmm.cli.plan:plan", "Choose a schedule for a budget, from the model alone."),
        "release": ("dphmm.cli.release:release", "Release trajectories step by step, privately."),
        "report": ("dphmm.cli.report:report", "A page with a map, the errors and the spent budget."),
    },
    "A released folder": {
        "read": ("dphmm.cli.read:read", "Estimate places, shares and the odds of an event from it."),
        "check-release": ("dphmm.cli.check_release:check_release", "Check its plans, statement, ledger and files."),
        "export": ("dphmm.cli.tables:export", "As points (GeoJSON, GeoPackage), or as another table."),
    },
}
MORE: Mapping[str, tuple[str, str]] = {
    "import": ("dphmm.cli.tables:import_", "Read trajectories of other formats into trajectories.parquet."),
    "split": ("dphmm.cli.tables:split", "People in two files: one to fit a model, one to release."),
    "query": ("dphmm.cli.query:query", "Counts, centroids, degrees, classifiers over dependent records."),
    "synthesize": ("dphmm.cli.synthesize:synthesize", "People whom a model invents, to share in place of real ones."),
    "optimize": ("dphmm.cli.optimize:optimize", "A mechanism made once for a model and a policy, certified."),
    "verify": ("dphmm.cli.verify:verify", "Verify that plans, or a sampler, keep their promise."),
    "account": ("dphmm.cli.account:account", "The spent budget of each subject, and its theorem."),
    "studio": ("dphmm.cli.studio:studio", "A page on this computer to choose a release by looking."),
    "warm": ("dphmm.cli.warm:warm", "Compile ahead, so that no command has to wait for it."),
}
COMMANDS: Mapping[str, tuple[str, str]] = {
    name: command for group in (*GROUPS.values(), MORE) for name, command in group.items()
}
#: Where a context keeps what was typed.
_TYPED = "dphmm.typed"
_WRITES_NOTHING = ("check", "verify", "account")
_KEEPS_A_LEDGER = ("release", "run", "demo")
#: Errors with a line of their own, whether or not somebody asked to stop.
_ANSWERED = (click.ClickException, click.Abort, click.exceptions.Exit, DphmmError, Interrupted, OutputClosed, OSError)


class App(click.Group):
    """All commands. Deliberate errors become one line and an exit code, all others a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of a day's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name == "more":
            return more
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is typed. Raises UsageError with the one that was meant, if that can be told."""
        name = args[0]
        if name in COMMANDS or name == "more" or name.startswith("-"):
            return super().resolve_command(ctx, args)
        ctx.fail(said("command", name, [*COMMANDS, "more"], "dphmm "))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading any: those of most days; dphmm more has the others."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])
        with formatter.section("More (dphmm more)"):
            formatter.write_text(", ".join(MORE))

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line, which may print its help. Interrupted here, too, click would have its own answer."""
        try:
            made = super().make_context(*args, **extra)
            made.meta[_TYPED] = list(args[1] if len(args) > 1 else extra["args"])
            return made
        except KeyboardInterrupt as stop:
            raise Interrupted("interrupted: nothing was begun", stop) from None
        except BrokenPipeError:
            raise OutputClosed from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Ctrl-C, SIGTERM and a closed pipe are answered here, before click has an answer of its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted(_what_stays(ctx.invoked_subcommand), stop) from None
        except BrokenPipeError:
            raise OutputClosed from None
        except Exception as error:
            # A library may turn an interrupt inside it into an error of its own, of which a wrong input is concluded.
            stopped_by = asked_to_stop()
            hides = isinstance(error, InvalidInput) and _hides_another(error)
            if stopped_by is None or (isinstance(error, _ANSWERED) and not hides):
                if isinstance(error, InvalidInput) and (named := of_its_option(error, self._typed(ctx))) is not error:
                    raise named from None
                raise
            raise Interrupted(_what_stays(ctx.invoked_subcommand), stopped_by) from None

    def _typed(self, ctx: click.Context) -> dict[str, list[str]]:
        """The options and arguments of each value on the command line."""
        options: dict[str, list[str]] = {}
        command: click.Command | None = self
        words = ctx.meta.get(_TYPED, [])
        with suppress(click.ClickException):
            while isinstance(command, click.Group):
                name, command, words = command.resolve_command(ctx, words)
            if command is None:
                return options
            read = command.make_context(name, words, parent=ctx, resilient_parsing=True)
            for param in command.params:
                value = read.params.get(param.name or "")
                said = param.opts[0] if isinstance(param, click.Option) else param.human_readable_name
                for word in value if isinstance(value, (list, tuple)) else (value,):
                    if isinstance(word, str):
                        options.setdefault(word, []).append(said)
        return options

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run the command line and exit; a command returns its exit code, or None for 0."""
        extra["standalone_mode"] = False
        code = 0
        with answered_like_an_interrupt(), compilation_told():
            try:
                code = int(super().main(args, prog_name or "dphmm", **extra) or 0)
            except BaseException:
                code = _code()
        sys.exit(code)


def _hides_another(error: BaseException) -> bool:
    """True if an error was made of one that is none of ours, however often it was renamed since."""
    context = error.__context__
    return context is not None and (not isinstance(context, DphmmError) or _hides_another(context))


def _code() -> int:
    """Tell what stopped a command, and its exit code. Raises again what is none of ours.

    It is given no exception: one in a variable here would keep the frames of the command, and so an open ledger.
    """
    try:
        raise
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return BAD_INPUT
    except click.NoSuchOption as error:
        known = [] if error.ctx is None else [name for param in error.ctx.command.params for name in param.opts]
        where = "dphmm" if error.ctx is None else error.ctx.command_path
        return _told(f"{where}: {said('option', error.option_name, known)}; see {where} -h", BAD_INPUT)
    except click.UsageError as error:
        where = "dphmm" if error.ctx is None else error.ctx.command_path
        return _told(f"{where}: {reworded(error.format_message()).rstrip('.')}; see {where} -h", BAD_INPUT)
    except DphmmError as error:
        return _told(on_the_command_line(error), error.exit_code)
    except OutputClosed:
        return _silently()
    except Interrupted as stopped:
        return _line(str(stopped), stopped.exit_code)
    except (click.Abort, KeyboardInterrupt) as stop:
        return _line("interrupted", stopped_code(stop.__cause__ or stop))
    except OSError as error:
        # The machine refused: a full disk, a folder that went away. What was stored stays stored.
        full = "; what a ledger holds stays: make room, and type the same command again (--force replaces a file)"
        remedy = full if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return _told(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}{remedy}", FAILED)


def _what_stays(command: str | None) -> str:
    """The message of an interrupt, for a command that has no words of its own."""
    if command in _WRITES_NOTHING:
        return f"interrupted: dphmm {command} writes no file, so there is nothing to tidy up"
    ledger = "; what the ledger holds stays" if command in _KEEPS_A_LEDGER else ""
    return f"interrupted: a file is written whole or not at all{ledger}"


def _silently() -> int:
    """Drop the output that nobody reads, or Python would complain of it at its end; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
    return CLOSED


def _told(message: str, code: int) -> int:
    return _line(f"error: {message}", code)


def _line(message: str, code: int) -> int:
    with suppress(BrokenPipeError):
        click.echo(one_line(message), err=True)
    return code


@click.group("dphmm", cls=App, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(None, "--version", package_name="dphmm", message="dphmm %(version)s")
def app() -> None:
    """Private release of Markov data: trajectories, sessions, activity logs, careers.

    An adversary may know the model, the policy, the mechanism and everything released before. Each release
    hides a state among those the policy names; what that does not hide is in the guide and in the privacy
    statement beside every released file.

    Every command may take --json (one JSON object on standard output), -q (no progress and no summary; warnings stay)
    and, where it writes a file, --force (replace it). Those that spend take --dry-run: nothing is drawn, spent or
    written, and what it would be is told. Those that read people take --spelling same or exact: different
    spellings of a name are one person (the default), or several; a ledger keeps the rule. -h of a command has what
    most days need, --help-all the rest.

    Exit codes: 0 done; 1 refused by the promise; 2 bad input; 3 done, but rows were set aside; 4 the ledger
    is in use; 130 interrupted; 141 nobody reads the output any more; 143 terminated.
    """


@click.command("more", context_settings={"help_option_names": ["-h", "--help"]})
def more() -> None:
    """List the commands beside those of most days."""
    for name, (_, text) in MORE.items():
        click.echo(f"  {name:<12} {text}")
