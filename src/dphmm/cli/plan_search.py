"""A search of `dphmm plan` as it is printed: every setting that was tried, and what to type for the recommended one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from dphmm.accounting.records import in_short
from dphmm.cli.console import Console, Interrupted, in_columns, print_json
from dphmm.errors import DphmmError
from dphmm.statement.sentences import off

if TYPE_CHECKING:
    from dphmm.accounting.promise import SequencePromise
    from dphmm.choose.search import Search, Targets, Tried
    from dphmm.cli.options import PlanOptions
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace

#: What takes less than so many seconds is not forecast; from so many on in minutes.
LONG, _MINUTES = 5.0, 100.0
_HEADS = ("policy", "cells of", "total", "answers", "expected error", "at most", "who stays, 7", "")


def print_search(
    public: tuple[MarkovModel, StateSpace, PolicyGraph | None],
    targets: Targets,
    promise: SequencePromise,
    options: PlanOptions,
    choices: Any,
) -> None:
    """Search, and print what was tried and what is recommended. Raises DphmmError where nothing reaches the targets."""
    from dphmm.choose.search import PEOPLE, RULE, Search, candidates, forecast, tries

    unit = public[1].unit
    more: Any = {name: getattr(options, name) for name in ("hours", "epsilon", "reserve")}
    more["people"] = min(options.people, PEOPLE)
    settings, console = list(candidates(*public)), Console(quiet=options.quiet or options.as_json)
    seconds = forecast(settings, promise, choices, **more)
    if seconds >= LONG:
        console.say([("", f"about {lasting_words(seconds)}: {len(settings)} settings are tried")])
    tried: list[Tried] = []
    stop: BaseException | None = None
    try:
        with console.progress("settings") as progress:
            tried.extend(tries(settings, promise, targets, progress, choices, **more))
    except KeyboardInterrupt as interrupt:
        stop = interrupt
        if not tried:
            raise Interrupted("interrupted: no setting was finished", stop) from None
    made = Search(targets, tuple(tried))
    best = made.best
    if options.as_json:
        chosen = None if best is None else best.document()
        document = {"targets": vars(targets), "rule": RULE, "unit": unit, "recommended": chosen, "spent": "nothing"}
        print_json(document | {"settings": [tried.document() for tried in made.tried]})
    else:
        click.echo("\n".join(_table(made, unit)))
    if stop is not None:
        begun = len({(trial.policy, trial.cell) for trial in tried})
        raise Interrupted(f"interrupted: above is what was finished, of {begun} of {len(settings)} settings", stop)
    if best is None:
        missed = made.nearest
        reasons = f"; not advised: {'; '.join(missed.not_advised)}" if missed.not_advised else ""
        raise DphmmError(f"no setting tried reaches the targets; nearest: {_words(missed, unit)}{reasons}")
    if not options.as_json:
        click.echo(
            "\n".join([f"recommended: {_words(best, unit)}", f"rule: {RULE}", *_commands(best, options, choices)])
        )


def lasting_words(seconds: float) -> str:
    """Some seconds, to one digit where they are few: "40 s", "3 min"."""
    if seconds < 1:
        return "less than 1 s"
    if seconds >= _MINUTES:
        return f"{seconds / 60:.0f} min"
    return f"{float(f'{seconds:.1g}'):.0f} s"


def _table(made: Search, unit: str) -> list[str]:
    """A row for each setting and total; errors as of a plan."""
    rows: list[tuple[str, ...]] = [_HEADS]
    for tried in made.tried:
        mark = "<- recommended" if tried is made.best else ""
        mark += f"not advised: {'; '.join(tried.not_advised)}" if tried.not_advised else ""
        cells = "" if tried.cell is None else f"{tried.cell:g} m"
        answers = f"{tried.releases} x {in_short(tried.epsilon)}"
        figures = ["" if figure is None else off(figure, unit) for figure in (tried.error, tried.at_most, tried.stay)]
        rows.append((tried.policy, cells, in_short(tried.total), answers, *figures, mark))
    return in_columns(rows, "l" * len(_HEADS))


def _words(tried: Tried, unit: str) -> str:
    """One setting in a line."""
    cells = "" if tried.cell is None else f" on cells of {tried.cell:g} m"
    return (
        f"{tried.policy}{cells}, a total of {in_short(tried.total)}, {tried.releases} answers of epsilon "
        f"{in_short(tried.epsilon)}: error {off(tried.error, unit)}, at most {off(tried.at_most, unit)} (95 %)"
    )


def _commands(best: Tried, options: PlanOptions, choices: Mapping[str, str]) -> list[str]:
    """The commands to type for a setting."""
    model, policy, typed = shlex.quote(options.model), "policy.json", []
    if best.cell is not None:
        cell = f"{best.cell:g}m"
        typed.append(f"first the model on larger cells: dphmm model grid --cell {cell}, or dphmm fit --grid {cell}")
    kind, _, distance = best.policy.partition(" ")
    setting = "".join(f" --setting {name} {shlex.quote(value)}" for name, value in choices.items())
    if kind in ("covers", "radius"):
        typed.append(f"dphmm policy radius {model} --{kind} {distance}{setting} -o {policy}")
    elif kind == "complete":
        typed.append(f"dphmm policy complete {model}{setting} -o {policy}")
    else:
        policy = shlex.quote(str(options.policy))
    names = ("per", "zone", "steps", "window", "hours", "reserve")
    # Rounded down, as many answers fit into the total.
    exact = f"--path-epsilon {in_short(best.total, down=True)} --epsilon {in_short(best.epsilon, down=True)}"
    same = [f"--{name} {value}" for name in names if (value := getattr(options, name)) not in (None, "0")]
    typed.append(f"dphmm plan {model} --policy {policy} {' '.join([exact, *same])} -o plan.json")
    return typed
