"""Private fits of hidden Markov models to Spark frames: executors count, the driver draws once and stores the model.

Proofs: docs/proofs/learning.md, docs/proofs/labelled.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.private.hidden import HiddenOptions, PlannedHidden
from dphmm.spark.counting import INTEGERS, TEXT, FrameColumns, checked_type, key_totals, types_of
from dphmm.spark.tasks import ByName, ByNumber, ByPair, CountLabelled, CountWords
from dphmm.storage.publications import fit_counts_once
from dphmm.types import Exact, IntArray

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.markov.hidden.hmm import CategoricalHMM
    from dphmm.states.space import StateSpace


def fit_hidden(
    hmm: CategoricalHMM,
    frame: Any,
    symbols: StateSpace,
    epsilon: Exact,
    max_length: int,
    *,
    ledger: Ledger,
    event_id: str,
    states: StateSpace | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Unpack[HiddenOptions],
) -> CategoricalHMM:
    """Learn a hidden Markov model of a Spark frame with pure differential privacy; a record is all rows of one user.

    Parameters
    ----------
    hmm : the model before its fit, with ``n_features`` as many as there are symbols. It stays as it is.
    frame : rows with columns user, step and symbol: a name of the symbols, or a number 0..V-1; with ``states`` also
        state. A column t is the time of a row.
    symbols, states : the public names; with states, which then are known, moves and emissions are counted.
    columns : names of columns by role ("user", "step", "symbol", "state", "t") where they differ.
    ledger, event_id : as in `dphmm.spark.fit_private`.
    epsilon, max_length, and as options neighbours, max_sequences, order, about, n_starts, bits : as in
        ``CategoricalHMM.fit_private``.

    Under the same words it is the model that ``fit_private`` of ``hmm`` learns from the same sequences, by its method
    "ngrams" or from known states. Sequences are those of `dphmm.spark.count_transitions`, of at least two rows, and
    where states are known of one. A row whose symbol or state is no name ends a sequence.

    Returns the model, with its event in ``privacy_``. Raises as `dphmm.spark.fit_private`.

    Examples
    --------
    ``hmm = dphmm.spark.fit_hidden(dphmm.markov.CategoricalHMM(2, n_features=6), rolls, dice, 1, 24,
    ledger=dphmm.open_ledger("ledger.db"), event_id="rolls-2026")``

    Source: docs/proofs/learning.md, docs/proofs/labelled.md.
    """
    named_model = copy(hmm)
    vars(named_model)["symbols_"] = tuple(symbols.names)
    planned = PlannedHidden(named_model, epsilon, max_length, states is not None, **options)
    for name, space, n in (("symbols", symbols, planned.n_symbols), ("states", states, planned.n_states)):
        if space is not None and space.n_states != n:
            raise InvalidInput(name, f"{space.n_states} names", f"{n}, as the model has")
    types, named = types_of(frame), dict(columns or {})
    chosen = {role: named.pop(role, role) for role in (("symbol",) if states is None else ("symbol", "state"))}
    for role, name in chosen.items():
        if name not in types:
            raise InvalidInput("columns", ", ".join(types), f"a column {role}, or columns={{{role!r}: NAME}}")
        checked_type(types, name, (*INTEGERS, *TEXT))
    roles = replace(FrameColumns.of(frame, symbols, {**named, "state": chosen["symbol"]}), known=chosen.get("state"))
    task: CountWords | CountLabelled
    if states is None:
        task = CountWords(planned.n_symbols, planned.order, planned.caps, roles.states(symbols))
    else:
        number = types[chosen["state"]] in INTEGERS
        by_state = ByNumber("known") if number else ByName(tuple(states.names), "known")
        task = CountLabelled(ByPair(by_state, states.n_states, roles.states(symbols), symbols.n_states), planned.caps)

    def count() -> IntArray:
        keys, totals = key_totals(roles.columns(frame), task, ledger.spelling)
        # Behind the cells are owners and rows that are left out.
        exact = np.zeros(task.counter().n_keys, dtype=np.int64)
        exact[keys] = totals
        return exact[:-2]

    public = {"symbols": symbols, **({} if states is None else {"states": states})}
    model: CategoricalHMM = fit_counts_once(ledger, event_id, planned, count, public)
    return model
