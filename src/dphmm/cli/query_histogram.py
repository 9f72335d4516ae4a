"""dphmm query histogram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphmm.cli.console import Console
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
    import pandas as pd

    from dphmm import dependent
    from dphmm.cli.query_answer import check_output, write_answer
    from dphmm.cli.query_dependence import Dependence, asked
    from dphmm.cli.query_options import epsilon, windows
    from dphmm.cli.query_records import (
        MOST_TIMES,
        Clock,
        data_roles,
        public_states,
        records_of,
        states_of_a_model,
    )
    from dphmm.cli.query_tables import Aside
    from dphmm.dependent._contributions import first_of_each
    from dphmm.storage.private_rows import read_private

    console = Console(given["quiet"])
    promised = epsilon(given["epsilon"])
    dependence = Dependence.of(given, console, _KINDS)
    chained = dependence.kind == "markov"
    _check_mechanism(given["mechanism"], chained)
    _check_people(given["model_people"], chained or states_of_a_model(given["states"]))
    dependence.refuse_data(given["data"])
    inputs = [given["data"], *dependence.inputs]
    check_output(given, inputs)
    space, seconds = public_states(given["states"], dependence.model if chained else None, given["data"])
    clock = Clock.of(given, seconds, needed=chained or given["windows"] is not None)
    spans = windows(given["windows"], clock.times) if given["times"] is not None else None
    between = dependence.chain(clock.times) if chained else dependence.between()
    columns = {name.removesuffix("_column"): given[name] for name in _COLUMNS}
    roles = asked(lambda: data_roles(given["data"], columns, space), _COLUMNS)
    if given["step"] is not None and roles.step is not None:
        raise InvalidInput("--step", given["step"], "no --step: DATA have a column step, which numbers the steps")
    clock.check(roles)
    rows = read_private(given["data"], roles.names)
    aside = Aside.of(rows)
    records = records_of(rows, roles, clock, space, aside)
    if dependence.most is not None:
        aside.add(records.place[~first_of_each(records.user, dependence.most, records.step)], "beyond_max_rows")
    options = {
        "n_states": space.n_states,
        "windows": spans or [(0, MOST_TIMES)],
        "n_times": clock.times,
        "max_rows_per_user": dependence.most,
        "consistent": given["consistent"],
    }
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
    if spans is None:
        # Where the number of steps is not public no step is the last one.
        answered.table["end"] = pd.array([None] * len(answered.table), dtype="Int64")
    write_answer(
        answered,
        given,
        inputs,
        dependence,
        _domain(given, space, clock, spans),
        console,
        aside,
        unit=dependence.unit(answered.event.record),
        by_person=dependence.by_person,
        not_protected=[] if dependence.by_person else [_PERSON],
    )
    return 0


def _check_people(people: str | None, modelled: bool) -> None:
    """On whom the model that is named was fitted, which only the data owner knows."""
    from dphmm.storage.people import MODEL_PEOPLE

    if people is None:
        return
    if not modelled:
        raise InvalidInput("--model-people", people, "--dependence markov:MODEL or --states MODEL with it")
    if people not in MODEL_PEOPLE:
        raise InvalidInput("--model-people", people, "unknown, others or same")


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


def _domain(given: Mapping[str, Any], space: Any, clock: Any, spans: Any) -> dict[str, Any]:
    return {
        "states": space.n_states,
        "times": given["times"],
        "step_seconds": clock.seconds,
        "from": given["first"],
        "windows": spans,
        "consistent": given["consistent"],
    }
