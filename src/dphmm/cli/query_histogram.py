"""dphmm query histogram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphmm.cli.console import Console
from dphmm.cli.outcomes import SET_ASIDE
from dphmm.errors import InvalidInput, Refused

_KINDS = ("markov", "friends", "group", "independent")
#: Mechanisms whose noise is calculated for the values of one sum.
_FOR_ONE_SUM = ("correlated", "wasserstein", "optimum")
_COLUMNS = {f"{role}_column": f"--{role}-column" for role in ("user", "time", "state")}
_PERSON = (
    "All of one person's records together: epsilon is about one of them, with what the dependence makes follow from it."
)


def histogram_of(given: Mapping[str, Any]) -> int:
    """Options, records, answer, files."""
    from dphmm import dependent
    from dphmm.cli.query_answer import check_output, write_answer
    from dphmm.cli.query_dependence import Dependence, asked
    from dphmm.cli.query_options import epsilon, windows
    from dphmm.cli.query_records import Clock, public_states, records_of
    from dphmm.cli.set_aside import by_reason, in_words, rejected_path, write_rejected

    console = Console(given["quiet"])
    promised = epsilon(given["epsilon"])
    dependence = Dependence.of(given["dependence"], console, _KINDS)
    chained = dependence.kind == "markov"
    _check_mechanism(given["mechanism"], chained)
    inputs = [given["data"], *dependence.inputs]
    check_output(given, inputs)
    space, seconds = public_states(given["states"], dependence.model if chained else None)
    clock = Clock.of(given, seconds, needed=chained or given["windows"] is not None)
    spans = windows(given["windows"], clock.times) if given["times"] is not None else None
    loaded = _rows(given)
    if given["step"] is not None and loaded.trajectories.step is not None:
        raise InvalidInput("--step", given["step"], "no --step: DATA have a column step, which numbers the steps")
    records = records_of(loaded.trajectories, clock, space, given["data"], given["state_column"] or "state")
    between = dependence.chain(clock.times) if chained else dependence.between(records.users, records.per_user)
    options = {"n_states": space.n_states, "windows": spans, "consistent": given["consistent"]}
    try:
        answered = asked(
            lambda: dependent.query(
                "histogram", records.frame(), between, promised, mechanism=given["mechanism"], **options
            ),
            {"table": "DATA", "dependence": "--dependence"},
        )
    except Refused as refusal:
        if given["mechanism"] is None:
            raise
        remedy = "without --mechanism the noise is that of markov, which is proved"
        raise Refused(f"--mechanism: {refusal}; {remedy}") from None
    answered.table["state"] = [space.names[state] for state in answered.table["state"]]
    write_rejected(rejected_path(given["output"]), loaded.rejected, given["data"])
    set_aside = by_reason(loaded.rejected)
    if records.outside:
        console.note(f"{records.outside} rows are outside the public steps and were left out")
    extra = {"set_aside": set_aside, "left_out": records.outside}
    write_answer(
        answered,
        given,
        inputs,
        dependence,
        _domain(given, space, clock, spans),
        console,
        not_protected=[_PERSON],
        extra=extra,
    )
    if set_aside:
        console.say([("set aside", f"{in_words(set_aside)}; listed in {rejected_path(given['output']).name}")])
    return SET_ASIDE if set_aside else 0


def _check_mechanism(name: str | None, chained: bool) -> None:
    """A mechanism is for chains; those that are calculated for one sum say nothing of a histogram."""
    from dphmm.dependent import MECHANISMS

    if name is None:
        return
    if not chained:
        raise InvalidInput("--mechanism", name, "--dependence markov:MODEL with it")
    allowed = [other for other in MECHANISMS if other not in _FOR_ONE_SUM]
    if name not in allowed:
        raise InvalidInput("--mechanism", name, f"one of {', '.join(allowed)}")


def _rows(given: Mapping[str, Any]) -> Any:
    from dphmm.cli.query_dependence import asked
    from dphmm.storage.inputs import checked_input, steady
    from dphmm.storage.tables import table_format
    from dphmm.storage.trajectories import load_trajectories

    path = checked_input(given["data"], "DATA")
    table_format(path, "DATA")
    columns = {name: given[name] for name in _COLUMNS}
    with steady(path):
        return asked(lambda: load_trajectories(path, **columns), _COLUMNS)


def _domain(given: Mapping[str, Any], space: Any, clock: Any, spans: Any) -> dict[str, Any]:
    return {
        "states": space.n_states,
        "space_sha256": space.digest,
        "times": given["times"],
        "step_seconds": clock.seconds,
        "from": given["first"],
        "windows": spans,
        "consistent": given["consistent"],
    }
