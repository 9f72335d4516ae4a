"""Public tables of a release: what is chosen for single steps, and where subjects begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dphmm._checks import exact_epsilon, stated_epsilon
from dphmm.errors import InvalidInput
from dphmm.policy.graph import PolicyGraph
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import MICROSECONDS, not_of_time_bins
from dphmm.storage.columns import Times, as_text, plain_type
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import checked_input
from dphmm.storage.tables import column_names, read_table

#: What a table of steps may have beside step or t.
_CHOSEN = ("epsilon", "policy", "protection", "state", "partner")
_ONE = 1e-6


def read_step_choices(
    path: str, space: StateSpace, step: int | None, policy_of: Callable[[str], PolicyGraph], field: str = "--choices"
) -> dict[int, dict[str, Any]]:
    """What a table of steps chooses, as `release_many` takes it: {number of a step: {"epsilon": ..., ...}}.

    Columns: ``step``, the number of a step in tables, or ``t``, a time in it (of a model with steps of ``step``
    seconds); and of ``epsilon``, ``policy`` (a policy file, from the folder of the table), ``protection``, and
    ``state`` with ``partner``, one pair a row. An empty cell chooses nothing. A step may stand in several rows that do
    not contradict each other. ``policy_of`` reads a policy file. Raises InvalidInput.
    """
    name, texts = Path(path).name, _texts(path, field)
    own = [column for column in ("step", "t") if column in texts]
    if len(own) != 1:
        raise InvalidInput(field, f"{name} with columns {listed(list(texts))}", "step or t, one of the two")
    _check_columns(field, name, list(texts), (*own, *_CHOSEN))
    if len(texts) == 1:
        raise InvalidInput(field, f"{name} with the column {own[0]} alone", f"one of {', '.join(_CHOSEN)} beside it")
    if ("state" in texts) != ("partner" in texts):
        raise InvalidInput(field, f"{name} with one of state and partner", "both, or none")
    steps = _steps(texts["step"], field) if "step" in texts else _bins(texts["t"], step, field)
    found: dict[int, dict[str, Any]] = {}
    policies: dict[str, PolicyGraph] = {}
    for row, number in enumerate(steps):
        chosen = found.setdefault(number, {})
        cell = {column: texts[column][row] or None for column in texts}
        given: dict[str, Any] = {column: cell[column] for column in ("protection",) if cell.get(column)}
        if cell.get("epsilon"):
            given["epsilon"] = exact_epsilon(stated_epsilon(str(cell["epsilon"])), f"{field}, epsilon of step {number}")
        if cell.get("policy"):
            file = str(checked_input(str(Path(path).parent / str(cell["policy"])), f"{field}, policy of step {number}"))
            policies[file] = policies.get(file) or policy_of(file)
            given["policy"] = policies[file]
        if cell.get("state") or cell.get("partner"):
            pair = [cell.get("state"), cell.get("partner")]
            if None in pair or min(space.indices_of([str(one) for one in pair])) < 0:
                raise InvalidInput(field, f"{name}, step {number} with a pair that is none", "two states of the model")
            given["partners"] = {pair[0]: pair[1]}
        for what, value in given.items():
            before = chosen.get(what)
            if what == "partners":
                state, partner = next(iter(value.items()))
                if (before or {}).get(state, partner) != partner:
                    raise _twice(field, name, number, "partner for a state")
                value = {**(before or {}), **value}
            elif before is not None and before is not value and before != value:
                raise _twice(field, name, number, what)
            chosen[what] = value
    if "step" in texts and step is not None:
        _check_bins(steps, step, field)
    return found


def varied_columns(path: str) -> list[str]:
    """The names of what a table of steps may choose, also where no cell does."""
    columns = set(column_names(path))
    return sorted({"partners" if one == "partner" else one for one in columns & {*_CHOSEN} - {"state"}})


def read_initials(path: str, space: StateSpace, field: str = "--initials") -> dict[str, Any]:
    """Where a table says that subjects begin: {user: a state number, or probabilities (N,)}.

    Columns ``user`` and ``state``, one row a user; with ``probability`` several, which sum to 1. Raises InvalidInput.
    """
    name, texts = Path(path).name, _texts(path, field)
    _check_columns(field, name, list(texts), ("user", "state", "probability"))
    for column in ("user", "state"):
        if column not in texts:
            raise InvalidInput(field, f"{name} with columns {listed(list(texts))}", f"a column {column}")
    states = space.indices_of([text or "" for text in texts["state"]])
    shares = texts.get("probability", ["1"] * len(states))
    found: dict[str, Any] = {}
    for number, (user, state, share) in enumerate(zip(texts["user"], states.tolist(), shares, strict=True), start=1):
        if not user or state < 0:
            # By its number alone: where the table is a private one by mistake, the state stays out of errors.
            what = f"{name}, row {number}, without a user and a state of the model"
            raise InvalidInput(field, what, f"a user and a state such as {space.names[0]} in each row")
        row = found.setdefault(user, np.zeros(space.n_states))
        if row[state]:
            raise InvalidInput(field, f"{name}, with a state of a user twice", "each once")
        row[state] = _share(share, field, f"{name}, row {number}")
    for user, row in found.items():
        if "probability" not in texts and np.count_nonzero(row) > 1:
            raise InvalidInput(field, f"{name}, with a user in two rows", "one row a user, or a column probability")
        if abs(row.sum() - 1) > _ONE:
            raise InvalidInput(
                field, f"{name}, with probabilities of {user!r} that sum to {row.sum():.9g}", "a sum of 1"
            )
        found[user] = int(np.argmax(row)) if np.count_nonzero(row) == 1 else row / row.sum()
    return found


def _texts(path: str, field: str) -> dict[str, list[str | None]]:
    """The cells of a public table by column; a cell that cannot be read is refused, it is not an empty one."""
    names = column_names(checked_input(path, field))
    table = read_table(path, text=None)
    if not table.num_rows:
        raise InvalidInput(field, f"{Path(path).name}, with no rows", "at least one")
    return {name: _cells(table.column(name), name, f"{field}, {name}") for name in names}


def _cells(column: Any, name: str, field: str) -> list[str | None]:
    import pyarrow as pa

    column = plain_type(column)
    kind = column.type
    if name == "t" and pa.types.is_timestamp(kind):
        # Without a zone they have none as text either.
        return [None if time is None else time.isoformat() for time in column.cast(kind).to_pylist()]
    if name in ("epsilon", "probability") and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        numbers = column.to_numpy() if pa.types.is_floating(kind) else column.to_pylist()
        return [None if number is None or number != number else str(number) for number in numbers]
    texts: list[str | None] = as_text(column, field).to_pylist()
    known = column.is_null(nan_is_null=True).to_pylist()
    if any(text is None and not missing for text, missing in zip(texts, known, strict=True)):
        raise InvalidInput(field, "a number that is not whole", "text or whole numbers")
    return texts


def _check_columns(field: str, name: str, found: Sequence[str], known: Sequence[str]) -> None:
    """A column of something else, such as lat, is a sign that the table is the private one."""
    other = next((column for column in found if column not in known), None)
    if other is not None:
        raise InvalidInput(field, f"{name} with a column {other!r}", f"a public table of {', '.join(known)} alone")


def _steps(cells: Sequence[str | None], field: str) -> list[int]:
    texts = [text or "" for text in cells]
    if not all(text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 18 for text in texts):
        raise InvalidInput(field, "a step that is no whole number", "numbers of steps, as in the table")
    return [int(text) for text in texts]


def _bins(cells: Sequence[str | None], step: int | None, field: str) -> list[int]:
    import pyarrow as pa

    if step is None:
        raise InvalidInput(field, "a column t, of a model without a time step", "a column step")
    micros, marks = Times(field).add(pa.chunked_array([cells], pa.string()))
    if any(mark.any() for mark in marks.values()):
        raise InvalidInput(field, "a t that is no time with a zone", "times such as 2024-05-06T09:00Z")
    numbers: list[int] = (micros // (step * MICROSECONDS)).tolist()
    return numbers


def _check_bins(steps: Sequence[int], step: int, field: str) -> None:
    """Numbers that count a subject's steps from 1 would choose for nobody."""
    wrong = not_of_time_bins(np.array(steps, dtype=np.int64), None, step)
    if wrong.any():
        came = f"step {steps[int(np.argmax(wrong))]}, of a model with steps of {step} s"
        raise InvalidInput(field, came, "numbers of time bins since 1970, or times in them in a column t")


def _share(text: str | None, field: str, name: str) -> float:
    try:
        share = float(text or "")
    except ValueError:
        share = -1.0
    if not 0 < share <= 1 + _ONE:
        raise InvalidInput(field, f"{name}, with a probability that is none", "a number above 0, up to 1, in each row")
    return share


def _twice(field: str, name: str, number: int, what: str) -> InvalidInput:
    return InvalidInput(field, f"{name}, step {number} with more than one {what}", "one for a step")
