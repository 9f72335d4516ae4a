"""dphmm fit --symbols COL: a hidden Markov model, plain or with differential privacy.

Its states are --states K hidden ones, or where they are known the names of --state-column.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._checks import exact_number
from dphmm.accounting.event import LearningEvent, NotPrivateEvent
from dphmm.cli.console import REJECTED, Console, fields_named, option_of, print_json
from dphmm.cli.fit_data import (
    FIELDS,
    LEFT_OUT,
    LEFT_OUT_PLAINLY,
    caps_of,
    left_out,
    loaded_rows,
    people_row,
    promised,
    records_of,
    source_of,
    times,
    warn_of_order,
    warn_replayable,
)
from dphmm.cli.publishing import kept_document, kept_rows, learned_once, owner_rows, stored_fit, tell_fit
from dphmm.errors import InvalidInput
from dphmm.states import StateSpace, ordered_labels
from dphmm.storage.inputs import steady
from dphmm.storage.labelled_rows import PAIR, Labelled, names_in
from dphmm.storage.private_tables import in_words, list_rejected, refuse_private
from dphmm.storage.public_tables import listed_names
from dphmm.storage.tables import column_names
from dphmm.storage.trajectories import by_reason

if TYPE_CHECKING:
    from dphmm.markov.hidden.hmm import CategoricalHMM
    from dphmm.states.trajectory import Sequences, Trajectories
    from dphmm.storage.publications import AdmitFit

_STARTS = 5
_ITERATIONS = 100
#: The numbers of a table of transitions or of emissions.
MOST_NUMBERS = 2**27
NOT_PRIVATE = (
    "fitted without privacy: the model can show what is in one person's sequence; keep it as you keep the data, or fit "
    "it with --epsilon"
)


def fit_hidden(path: Path, given: Mapping[str, Any], console: Console) -> int:
    """Learn, write, and say what came out; returns the exit code."""

    with fields_named({**FIELDS, "state_column": "--symbols", "state": "--symbols"}):
        if given["states"] is not None:
            check_size(given["states"], None)
        if given["epsilon"] is not None:
            return _fit_private(path, given, console)
        return _fit_plain(path, given, console)


def _fit_plain(path: Path, given: Mapping[str, Any], console: Console) -> int:
    from dphmm.storage.hidden_models import save_hidden_model
    from dphmm.storage.models import people_path, save_people

    if given["ledger"] is not None and given["seed"] is None and given["states"] is not None:
        raise InvalidInput("--seed", "nothing", "a number, with --ledger: what is stored must be the same every time")
    timing = times(given)
    with console.progress("fit") as progress, steady(path) as sha256:
        labelled = _labelled(given, path) if given["states"] is None else None
        source, column = (path, given["symbols"]) if labelled is None else (labelled.rows(path), PAIR)
        loaded = loaded_rows(source, given, column, column_names(path))
        rows = loaded.trajectories
        if progress is not None:
            progress(1, 2)
        if labelled is not None:
            symbols = labelled.symbols[1]
        elif given["symbols_file"] is not None:
            symbols = _public_symbols(given)
        else:
            assert rows.placed.state is not None
            symbols = StateSpace.categories(ordered_labels(rows.placed.state.tolist()))
        records, dropped = _sequences(rows, symbols if labelled is None else labelled.space, timing)
        lengths = [len(sequence) for sequence in records.sequences]
        origin = {"source": path.name, "source_sha256": sha256, "step": timing["step"]}
        if labelled is None:
            hmm = _model(given["states"], given, symbols, _STARTS).fit(np.concatenate(records.sequences), lengths)
            origin["method"] = "Baum-Welch"
        else:
            hmm = _model(labelled.states[1].n_states, given, symbols, None)
            states, seen = (np.concatenate(each) for each in labelled.apart(records.sequences))
            hmm.fit(seen, lengths, states=states)
            origin |= _of_known(labelled)
        save = partial(save_hidden_model, hmm, symbols=symbols.names, provenance=origin)
        stored = stored_fit(given, save, NOT_PRIVATE)
        save(given["output"])
        save_people(given["output"], rows.users)
    rejected = by_reason(loaded.rejected)
    monitor = hmm.monitor_
    counted = {
        "rows": len(rows.placed),
        "users": rows.n_users,
        "sequences": len(records.sequences),
        "states": hmm.n_states,
        "symbols": symbols.n_states,
        "dropped": dict(dropped),
        "share_outside": dropped["outside"] / (len(rows.placed) - dropped.total + dropped["outside"]),
        "held": records.counts["held"],
        "rejected": rejected,
    }
    if labelled is None:
        counted |= {"log_likelihood": monitor.history[-1], "iterations": monitor.iter, "converged": monitor.converged}
    if given["as_json"]:
        written = {"output": given["output"], "people": str(people_path(given["output"]))}
        print_json({**counted, "private": False, "meaning": NOT_PRIVATE, **written, **kept_document(stored)})
    console.say(kept_rows(stored, given["ledger"]))
    said = [f"{counted['rows']} rows of {counted['users']} users, {counted['sequences']} sequences"]
    for reason, count in dropped.items():
        share = f", {100 * counted['share_outside']:.1f} % of those that count" if reason == "outside" else ""
        said.append(f"{count} rows left out: {reason}{share}")
    if labelled is None:
        said.append(f"{given['states']} hidden states, {symbols.n_states} symbols")
        settled = "settled" if monitor.converged else "not settled: more --iterations go on"
        said.append(f"log-likelihood {monitor.history[-1]:.6g} after {monitor.iter} iterations, {settled}")
    else:
        said.append(f"{hmm.n_states} known states, {symbols.n_states} symbols")
    if rejected:
        said.append(f"rows that cannot be read, set aside: {in_words(rejected)}")
    console.say([*(("", line) for line in (*said, f"written to {given['output']}")), people_row(given["output"])])
    warn_of_order(path, console)
    console.warn(NOT_PRIVATE)
    return REJECTED if rejected else 0


def _fit_private(path: Path, given: Mapping[str, Any], console: Console) -> int:
    from dphmm.storage.hidden_models import learning_of, save_hidden_model
    from dphmm.storage.models import remove_people

    source = source_of(path, given)
    for name in ("symbols_file", "states_file"):
        if given[name] is not None:
            refuse_private(given[name], source, option_of(name), called="TRAJ")
    symbols, timing = _public_symbols(given), times(given)
    labelled = _labelled(given, None) if given["states"] is None else None
    method = "counts of known states" if labelled is not None else given["method"] or "ngrams"
    noise = {**caps_of(given), **({} if labelled is not None else {**_method(given, method), "method": method})}
    hmm = _model(given["states"] if labelled is None else labelled.states[1].n_states, given, symbols, None)
    with console.progress("fit") as progress:
        # One symbol alone is part of no word.
        shortest = 2 if method == "ngrams" else 1
        sought = {**given, "max_speed": None, "state_column": given["symbols"]}
        if labelled is None:
            records, rejected = records_of(source, sought, symbols, timing, given["symbols"], shortest)
            seen: dict[str, Any] = {"X": records.sequences}
        else:
            records, rejected = records_of(source, sought, labelled.space, timing, PAIR, shortest, labelled.rows)
            seen = dict(zip(("states", "X"), labelled.apart(records.sequences), strict=True))
        if progress is not None:
            progress(1, 2)

        def learn(admit: AdmitFit | None) -> CategoricalHMM:
            return hmm.fit_private(**seen, owners=records.owners, admit=admit, **noise)

        def save(learned: CategoricalHMM, file: Path) -> None:
            chosen = _choices(learning_of(learned), noise, method)
            origin = {"method": method, "source": path.name, "step": timing["step"], **chosen}
            origin |= {} if labelled is None else _of_known(labelled)
            save_hidden_model(learned, file, symbols=symbols.names, provenance=origin)

        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            if given["dry_run"]:
                return tell_fit(given, learn, console, symbols.n_states if labelled is None else None)
            hmm, stored = learned_once(given, path, learn, save)
        event = learning_of(hmm)
        choices = _choices(event, noise, method)
        remove_people(given["output"])
        save(hmm, Path(given["output"]))
    list_rejected(given["output"], rejected, path)
    aside = left_out(LEFT_OUT if isinstance(event, LearningEvent) else LEFT_OUT_PLAINLY, given["output"])
    if given["as_json"]:
        print_json({**_document(hmm, given, method, aside), **choices, **kept_document(stored)})
    console.say([*kept_rows(stored, given["ledger"]), *owner_rows(stored, given["ledger"])])
    kind = "hidden" if labelled is None else "known"
    states = f"{hmm.n_states} {kind}, {symbols.n_states} public symbols"
    if labelled is None and hmm.n_states != given["states"]:
        states = f"the {hmm.n_states} public symbols: a chain of them is more probable than {given['states']} hidden"
    said = [("states", states), ("method", method)]
    console.say([*said, *(promised(event, choices) if isinstance(event, LearningEvent) else [])])
    if isinstance(event, LearningEvent):
        warn_replayable(event, console)
        if event.epsilon > noise["epsilon"]:
            console.warn(f"--epsilon {given['epsilon']} is the paper's figure: this method loses more, as said above")
    for message in dict.fromkeys(str(warning.message) for warning in warned):
        console.warn(message)
    console.say([("", aside), ("", f"written to {given['output']}")])
    warn_of_order(path, console)
    return 0


def _choices(event: LearningEvent | NotPrivateEvent | None, noise: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The histogram and the number of starts, chosen or by default; other methods have neither."""
    from dphmm.markov.private.hidden import N_STARTS
    from dphmm.markov.private.ngrams import WordTable

    if method != "ngrams" or not isinstance(event, LearningEvent):
        return {}
    # The default is worked out where the noise is made, and the histogram is named after it.
    order = WordTable.named(event.parts[0].name, 1).order
    choices = {"order": order, "starts": noise.get("n_starts", N_STARTS)}
    return {**choices, "about": noise["about"]} if "about" in noise else choices


def _document(hmm: CategoricalHMM, given: Mapping[str, Any], method: str, aside: str) -> dict[str, Any]:
    from dphmm.statement.learning import Learning, published_parts
    from dphmm.statement.parts import document
    from dphmm.storage.hidden_models import learning_of

    event = learning_of(hmm)
    private = isinstance(event, LearningEvent) and event.secure
    return {
        "private": private,
        "not_private_because": event.reason if isinstance(event, NotPrivateEvent) else None,
        "states": hmm.n_states,
        "symbols": hmm.emissionprob_.shape[1],
        "method": method,
        "learning": document(Learning.of(event)) if isinstance(event, LearningEvent) else None,
        "published": published_parts(event) if isinstance(event, LearningEvent) else [],
        "left_out": aside,
        "output": given["output"],
    }


def _of_known(labelled: Labelled) -> dict[str, Any]:
    """The entries for known states in a provenance."""
    return {"method": "counts of known states", "states": list(labelled.states[1].names)}


def _labelled(given: Mapping[str, Any], path: Path | None) -> Labelled:
    """The columns of known states and symbols; names that no file lists are those of a table without privacy."""
    states = _named_in(given, "states_file", "state_column", path)
    symbols = _named_in(given, "symbols_file", "symbols", path)
    return Labelled((given["state_column"], states), (given["symbols"], symbols))


def _named_in(given: Mapping[str, Any], file: str, column: str, path: Path | None) -> StateSpace:
    option, listed_in = option_of(file), given[file]
    if listed_in is not None:
        return StateSpace.categories(listed_names(listed_in, option, file.removesuffix("s_file")))
    if path is None:
        expected = "a table of the names there can be, with --epsilon: those in the data are not public"
        raise InvalidInput(option, "nothing", expected)
    return names_in(path, given[column])


def _model(states: int, given: Mapping[str, Any], symbols: StateSpace, starts: int | None) -> CategoricalHMM:
    from dphmm.markov.hidden.hmm import CategoricalHMM

    check_size(states, symbols.n_states)
    if starts is None:
        return CategoricalHMM(states, n_features=symbols.n_states, random_state=given["seed"])
    return CategoricalHMM(
        states,
        n_features=symbols.n_states,
        random_state=given["seed"],
        n_starts=starts if given["starts"] is None else given["starts"],
        n_iter=_ITERATIONS if given["iterations"] is None else given["iterations"],
    )


def check_size(states: int, symbols: int | None) -> None:
    """Refuse tables that no memory holds: of moves, and where the symbols are known of emissions."""
    if states < 1:
        raise InvalidInput("--states", states, "a number of hidden states, at least 1")
    if states * states > MOST_NUMBERS:
        expected = f"at most {math.isqrt(MOST_NUMBERS)}: the moves between them are a table of at most {MOST_NUMBERS}"
        raise InvalidInput("--states", states, expected)
    if symbols is not None and states * symbols > MOST_NUMBERS:
        expected = f"at most {MOST_NUMBERS // symbols} for {symbols} symbols: a table of at most {MOST_NUMBERS} numbers"
        raise InvalidInput("--states", states, expected)


def _method(given: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The options that were given, under the names that this method has for them."""
    one_start = method != "ngrams"
    if one_start and given["starts"] is not None:
        raise InvalidInput("--starts", given["starts"], f"none for {method}: several starts would each cost as much")
    if method != "every-iteration" and given["delta"] is not None:
        raise InvalidInput("--delta", given["delta"], "none: Gaussian noise is for --method every-iteration")
    named = {
        "delta": None if given["delta"] is None else exact_number(given["delta"], "--delta"),
        "noise": None if given["delta"] is None else "gaussian",
        "order": given["order"],
        "n_starts": given["starts"],
        "iterations" if one_start else "n_iter": given["iterations"],
        "about": None if one_start else given["about"],
    }
    return {name: value for name, value in named.items() if value is not None}


def _public_symbols(given: Mapping[str, Any]) -> StateSpace:
    return _named_in(given, "symbols_file", "symbols", None)


def _sequences(rows: Trajectories, symbols: StateSpace, timing: Mapping[str, Any]) -> tuple[Sequences, Any]:
    from dphmm.markov.trajectories import state_sequences

    _, records, dropped = state_sequences(rows, symbols, **timing)
    if not records.sequences:
        raise InvalidInput("TRAJ", f"{len(rows)} rows, none with a symbol of --symbols-file", "rows with symbols")
    return records, dropped
