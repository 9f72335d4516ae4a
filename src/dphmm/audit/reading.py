"""`read`: the conclusions of a reader who has a released file and no model.

The sentences are those of the statement and of the report. The likelihood of an answer for each state follows from the
plans in plain form (`dphmm check-release --plain`), whose hash is the one in the row. With a prior of the reader's own
it gives a posterior and a region of states; both are of one answer, and rest on that prior. They are given only where
no earlier answer chose the plan of a step, or whether it was asked: such a choice tells of the state, and the
likelihood leaves that out.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from html import escape
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec import UNSET

from dphmm._checks import exact_number
from dphmm.accounting.promise import SequencePromise
from dphmm.audit.check import require_right
from dphmm.audit.plain_plans import PlainLaw, read_plain_laws
from dphmm.errors import InvalidInput
from dphmm.statement.doubt import doubt
from dphmm.statement.files import changed_words, read_statement, statement_path
from dphmm.statement.parts import Holds, Part
from dphmm.statement.release import Plans, ReleaseStatement
from dphmm.statement.sentences import noun_words
from dphmm.states.space import StateSpace
from dphmm.storage.columns import as_text, finite, integers
from dphmm.storage.inputs import checked_input, steady
from dphmm.storage.released import as_times
from dphmm.storage.tables import is_path, is_table, table_of
from dphmm.types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

#: States that have a column of their own.
MOST_COLUMNS = 10_000
_NEEDED = ("user", "step", "epsilon", "cost", "plan")
#: Members of a reading that are no facts about the file.
_NOT_IN_JSON = ("statement", "_keys", "_log_likelihood", "_prior")


class Reading(Part, frozen=True, kw_only=True, eq=False):
    """The conclusions that a released file allows, and those that it does not.

    people, rows, answers : Their numbers; a row that was not asked has no answer.
    people_answered : The number of people with an answer.
    begin, end : The first and the last time (text), None without times.
    steps : The first and the last step.
    private : As the statement says; None without one.
    epsilon : The largest of an answer, where the promise holds.
    total, over : The total of the promise over paths, and its paths: those that differ within a block or window alone.
    coverage : The coverage of the regions under the reader's prior.
    changed : The reason why nothing is promised of this file: its statement is about another one.
    chosen : The reason why an answer and a prior give no probability: earlier answers chose a plan, or when to ask.
    uncompared : Numbers of the statement that were not compared with the rows.
    on_disk : True if the file was compared with the statement's hash.
    states : Names (N,) of the states of the likelihoods, () without any.
    statement : The privacy statement; None without one.
    """

    people: int
    rows: int
    answers: int
    people_answered: int
    begin: str | None
    end: str | None
    steps: tuple[int, int]
    private: Holds | None
    epsilon: str | None
    total: str | None
    over: str | None
    coverage: float | None
    changed: str | None
    chosen: str | None
    uncompared: list[str]
    on_disk: bool
    states: tuple[str, ...]
    statement: ReleaseStatement | None
    _keys: dict[str, list[Any]]
    _log_likelihood: FloatArray | None
    _prior: FloatArray | None

    says: ClassVar[Mapping[str, str]] = {
        "published": """
{{ plural(answers, "answer") }} of {% if people_answered < people %}{{ "{:,}".format(people_answered) }} of {% endif %}\
{{ plural(people, called.noun, called.people) }}{% if rows != answers %}, in {{ plural(rows, "row") }}{% endif %}, \
{% if begin is none %}steps {{ steps[0] }} to {{ steps[1] }}{% else %}{{ begin }} to {{ end }}{% endif +%}
""",
        "promised": """
{% if changed %}
nothing of this file: {{ changed }}
{% elif private is none %}
nothing says under which promise the answers were published: the privacy statement does not lie beside the file
{% elif private is not true %}
{{ "nothing" if private is false else "it is not known whether anything is promised" }}: {{ statement.why }}
{% else %}
{{ statement.promised | join("\n") }}
{% if total %}two paths that hide each other lose at most {{ in_short(total) }} {{ over }}{% endif +%}
{% endif %}
""",
        "concluded": """
{% if epsilon %}
one answer changes the odds between two states of its moment that hide each other by a factor of at most \
{{ factor_words(epsilon | exact) }}: if two of them seem equally likely, it leaves \
{{ doubt_words(doubt(epsilon | exact)) }}; {{ OTHER_MOMENTS }}
{% endif %}
{% if _log_likelihood is not none %}
how likely an answer is from each state, compared with the likeliest (columns likelihood ...)
{% endif %}
{% if coverage is not none %}
that a state is in the region of its answer with a probability of at least {{ coverage }}, if it was drawn from your \
prior{% if private is none %}, and no earlier answer decided when to ask{% endif %}; of many answers as large a share \
is right on average
{% endif %}
how a population is spread, from the answers of many people (`dphmm read OUT --by REGIONS`)
""",
        "not concluded": """
{% if changed %}that anything is promised of this file: {{ changed }}{% endif +%}
{% if chosen %}the probability of a state from the likelihood of an answer and a prior: {{ chosen }}, and what earlier \
answers chose tells of the state too{% endif +%}
{% if private is true %}that what is promised was kept: the statement says so, and its numbers fit the rows\
{% if uncompared %}, but not all could be compared ({{ uncompared | join("; ") }}){% endif %}; where the model is \
from, whom it was fitted on, and that noise was secure it says alone; `dphmm report` and `dphmm check-release` compare \
it with model, policy and ledger{% endif +%}
that {{ called.somebody }} was at an answer: an answer is noise around a state, and can lie where nobody can be
from several answers of one {{ called.noun }} as if they were of one state: multiply likelihoods only where that \
{{ called.noun }} did not move; `dphmm read OUT --estimates` combines them by a model
anything more certain than a prior makes it: the file alone gives likelihoods, and no probability of a state
{% if statement and not on_disk %}whether the table is the file of the privacy statement, answer by answer: its hash \
is of the bytes of a file; rows, people, plans and totals were compared{% endif +%}
""",
        "not hidden": """
{% if statement %}{{ statement.hides_not | join("\n") }}{% endif +%}
""",
    }

    @property
    def promised(self) -> list[str]:
        """Under which promise the answers were published, a sentence each."""
        return self._said("promised")

    @property
    def concluded(self) -> list[str]:
        """The conclusions that a reader may draw."""
        return self._said("concluded")

    @property
    def not_concluded(self) -> list[str]:
        """The conclusions that a reader may not draw."""
        return self._said("not concluded")

    @property
    def not_hidden(self) -> list[str]:
        """The facts that the file does not hide."""
        return self._said("not hidden")

    def _said(self, name: str) -> list[str]:
        called = noun_words("person") if self.statement is None else self.statement.subjects.words
        return self.said(name, doubt=doubt, called=called)

    @property
    def likelihoods(self) -> FloatArray | None:
        """The likelihood of each answer (n,) from each state, over that of the likeliest (n, N); None without plans."""
        logs = self._log_likelihood
        return None if logs is None else np.exp(logs - logs.max(axis=1, keepdims=True))

    @property
    def posteriors(self) -> FloatArray | None:
        """The probability of each state given each answer by itself (n, N) under the reader's prior; None without one.

        Proof: Bayes' rule, and that the plan of each answer is the same whatever was answered before (`read` refuses
        a prior otherwise).
        """
        if self._log_likelihood is None or self._prior is None:
            return None
        with np.errstate(divide="ignore"):
            logs = self._log_likelihood + np.log(self._prior)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior: FloatArray = weights / weights.sum(axis=1, keepdims=True)
        return posterior

    def records(self) -> list[dict[str, Any]]:
        """A row for each answer: user, t, step, and the likeliest state; with a prior its region.

        ``likeliest`` : the state from which the answer is likeliest, with a prior the most probable one, the first of
        equal ones. ``probability`` : of that state. ``region`` : a list of the fewest states that hold the true one
        with at least the coverage, most probable first; ``region_probability`` : how probable they are together.
        """
        if self._log_likelihood is None:
            return []
        posteriors = self.posteriors
        scores = self._log_likelihood if posteriors is None else posteriors
        records = []
        for n, values in enumerate(scores):
            row = {name: column[n] for name, column in self._keys.items()}
            row["likeliest"] = self.states[int(np.argmax(values))]
            if posteriors is not None:
                assert self.coverage is not None
                order, held = region(values, self.coverage)
                row |= {"probability": float(values.max()), "region_probability": held}
                row["region"] = [self.states[s] for s in order.tolist()]
            records.append(row)
        return records

    def to_arrow(self, columns: bool = True) -> Any:
        """A table of `records`; ``columns``: with the likelihood of each state in a column of its name too.

        Raises InvalidInput without likelihoods, and for more than 10,000 states as columns.
        """
        import pyarrow as pa

        likelihoods = self.likelihoods
        if likelihoods is None:
            raise InvalidInput("plans", "none", "the plans of the file, as dphmm check-release --plain writes them")
        if columns and len(self.states) > MOST_COLUMNS:
            raise InvalidInput("states", f"{len(self.states)} of them", f"at most {MOST_COLUMNS} as columns")
        rows = self.records()
        made = {name: pa.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
        each = dict(zip(self.states, likelihoods.T, strict=True)) if columns else {}
        return pa.table(made | {f"likelihood {name}": pa.array(values) for name, values in each.items()})

    def to_pandas(self, columns: bool = False) -> pd.DataFrame:
        """The same as a pandas frame, by default without a column for each state. Raises as `to_arrow`."""
        frame: pd.DataFrame = self.to_arrow(columns).to_pandas()
        return frame

    @property
    def lines(self) -> list[str]:
        """Everything as lines of text."""
        names = {"published": "published", "promised": "promised", "concluded": "you may conclude"}
        names |= {"not concluded": "you may not conclude", "not hidden": "the file does not hide"}
        return [f"{label}: {sentence}" for name, label in names.items() for sentence in self._said(name)]

    def document(self) -> dict[str, Any]:
        """Everything for JSON, but the likelihoods."""
        facts = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _NOT_IN_JSON}
        likelihoods = self._log_likelihood is not None
        return facts | {"steps": list(self.steps), "likelihoods": likelihoods, "states": len(self.states)}

    def __repr__(self) -> str:
        return f"Reading({self.lines[0]})"

    def _repr_html_(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in self.lines) + "</ul>"


def region(probability: FloatArray, coverage: float) -> tuple[IntArray, float]:
    """The fewest states that together have at least the coverage, most probable first, and their probability.

    The first of equally probable states is taken. ``probability`` (N,) sums to 1.

    >>> order, held = region(np.array([0.2, 0.5, 0.3]), 0.75)
    >>> order.tolist(), round(held, 3)
    ([1, 2], 0.8)
    """
    order = np.argsort(-probability, kind="stable")
    sums = np.cumsum(probability[order])
    count = min(len(order), int(np.searchsorted(sums, coverage - 1e-12)) + 1)
    return order[:count], min(1.0, float(sums[count - 1]))


def read(
    released: Any,
    *,
    statement: str | os.PathLike[str] | None = None,
    plans: Any = None,
    states: Any = None,
    prior: Any = None,
    coverage: Any = 0.9,
) -> Reading:
    """Read a released file: its people and times, its promise, and the conclusions that an answer allows.

    Parameters
    ----------
    released : a released file, or a pandas, polars or Arrow table of one.
    statement : its privacy statement, if not beside the file. Its facts are compared with the rows and with each
        other. That the answers of a table, which has no hash, are those of the file is not compared, and
        ``not_concluded`` says so.
    plans : its plans in plain form, a file (of `check-release --plain`) or the document itself: with ``states`` they
        give the likelihood of every answer.
    states : a StateSpace, a MarkovModel with one, or a table (a file or a frame) of all states in their order: their
        names in ``state``, and their answers in ``z_0``, ... as in the released file. A table is taken on your word.
    prior : your own prior: probabilities (N,) in the order of the states, a mapping by name, or a table of ``state``
        and ``probability``. States that it does not name have none. It is divided by its sum. It is refused where
        earlier answers chose plans or steps: with a delta-set, edges of another query, a paced
        schedule, and for rows without an answer of which no statement tells when people are asked.
    coverage : of the region of states, with a prior: a probability above 0 and below 1.

    Raises
    ------
    InvalidInput : a file that is no released file, a statement with a number that the rows or another member
        contradict, plans of another release or of a law that is not computed here
        (tables), states that are not those of the plans, an invalid prior, or one for a
        file whose plans or steps follow from earlier answers.

    Examples
    --------
    >>> import dphmm, pandas as pd
    >>> space = dphmm.StateSpace([[0], [1], [2]])
    >>> model = dphmm.MarkovModel([1 / 3] * 3, [[1 / 3] * 3] * 3)
    >>> table = pd.DataFrame({"user": ["ann"], "step": [0], "state": ["1"]})
    >>> world = (model, dphmm.policy.complete(3), space, 1)
    >>> released = dphmm.release_many(table, *world, bits=dphmm.ReplayBits(1))
    >>> plans = dphmm.audit.check_release(released, *world).plain_plans()
    >>> found = dphmm.audit.read(released, plans=plans, states=space, prior=[0.2, 0.6, 0.2])
    >>> found.people, found.answers, found.likelihoods.shape
    (1, 1, (1, 3))

    Source: docs/reading.md.
    """
    on_disk = is_path(released)
    with steady(checked_input(released, "released")) if on_disk else nullcontext("") as sha256:
        table = table_of(released, text={"user", "plan", "z"})
    missing = next((name for name in _NEEDED if name not in table.column_names), None)
    if missing is not None:
        raise InvalidInput("released", f"a table without the column {missing!r}", "a released file")
    if statement is None and on_disk and statement_path(released).exists():
        statement = statement_path(released)
    plans_of_rows = as_text(table.column("plan"), "plan").to_pylist()
    asked = np.array([bool(plan) for plan in plans_of_rows])
    users = as_text(table.column("user"), "user").to_pylist()
    steps, bad = integers(table.column("step"), "step")
    if bad.any() or not len(table):
        raise InvalidInput("released", "a row without a step, or no row", "a released table")
    stated = over = changed = None
    uncompared: list[str] = []
    if statement is not None:
        stated = read_statement(statement)
        over = stated.promise
        if on_disk:
            changed = changed_words(stated, statement, released, sha256)
        else:
            changed = _other_table(stated, users, plans_of_rows)
        uncompared = require_right(stated, Path(statement).name, table, whole=changed is None)
    keys: dict[str, Sequence[Any]] = {"user": users}
    if "t" in table.column_names:
        keys["t"] = as_times(table.column("t")).to_pylist()
    known = sorted(t for t in keys.get("t", ()) if t is not None)
    keys["step"] = steps.tolist()
    held = float(exact_number(coverage, "coverage"))
    if not 0 < held < 1:
        raise InvalidInput("coverage", coverage, "a probability above 0 and below 1, such as 0.9")
    if (plans is None) != (states is None):
        missing = "plans" if plans is None else "states"
        raise InvalidInput(missing, "nothing", "plans and states together: they give the likelihoods")
    if plans is None and prior is not None:
        raise InvalidInput("prior", "one without likelihoods", "plans and states with it")
    names, laws, logs = ((), [], None) if plans is None else _likelihoods(table, asked, plans, states)
    share = None if prior is None else _prior(prior, names)
    if stated is not None:
        _require_choices(stated, laws)
    reason = _chosen_by_answers(stated, laws, bool(asked.all()))
    if reason is not None and share is not None:
        expected = "none: likelihoods alone hold here, for they are those of each answer's plan"
        raise InvalidInput("prior", f"one for a file where {reason}", expected)
    return Reading(
        people=len(set(users)),
        rows=len(table),
        answers=int(asked.sum()),
        people_answered=len(set(compress(users, asked))),
        begin=str(known[0]) if known else None,
        end=str(known[-1]) if known else None,
        steps=(int(steps.min()), int(steps.max())),
        private=None if stated is None else stated.private,
        epsilon=str(stated.epsilons[1]) if stated is not None and stated.private is True else None,
        total=None if over is None else str(over.exact),
        over=None if over is None else _where_they_differ(over),
        coverage=held if share is not None else None,
        changed=changed,
        chosen=reason,
        uncompared=uncompared,
        on_disk=on_disk,
        states=names,
        statement=stated,
        _keys={name: list(compress(values, asked)) for name, values in keys.items()},
        _log_likelihood=logs,
        _prior=share,
    )


def _other_table(told: ReleaseStatement, users: Sequence[str | None], plans: Sequence[str | None]) -> str | None:
    """A sentence if counts or plans show that a statement is about another table; None where they agree."""
    due = {
        "rows": (told.published.rows, len(users)),
        "people": (told.published.subjects, len(set(users))),
        "plans": (told.plans.sha256, Plans.of({plan for plan in plans if plan}).sha256),
    }
    other = [name for name, (said, counted) in due.items() if said != counted]
    return f"the statement is about another table, with other {' and '.join(other)}" if other else None


def _where_they_differ(over: SequencePromise) -> str:
    """The paths that a promise's total is about, in words: those that differ within a block or window alone."""
    if over.steps is not None:
        return "in all"
    if over.window is not None:
        return f"where they differ within {over.window:,} steps in a row alone"
    block = f"one block of {over.per}{' steps' * isinstance(over.per, int)}"
    within = {"1d": "one day", "7d": "one week", "1h": "one hour"}.get(str(over.per), block)
    within += f" by the clock of {over.zone}" * over.is_local
    return f"where they differ within {within} alone"


def _chosen_by_answers(told: ReleaseStatement | None, laws: Sequence[PlainLaw], all_asked: bool) -> str | None:
    """The reason why a person's earlier answers may have chosen the plan or the time of a step; None without one.

    Proof: docs/proofs/support.md: on the support plans do not depend on what was released.
    """
    constraints = {law.constraint for law in laws}
    if told is not None:
        constraints.add(told.constraint)
    for constraint in sorted(constraints - {"support"}):
        return f"plans follow from earlier answers (constraint {constraint})"
    if any(law.beside for law in laws):
        return "plans took over edges of another query, which may follow from its answers"
    schedule = None if told is None or told.schedule is UNSET else told.schedule.name
    if schedule not in (None, "planned"):
        return f"earlier answers decided when to ask (schedule {schedule})"
    if schedule is None and not all_asked:
        return "some rows have no answer, and nothing tells whether earlier answers decided when to ask"
    return None


def _require_choices(told: ReleaseStatement, laws: Sequence[PlainLaw]) -> None:
    """Plans whose hashes are those of the rows are made by the statement's choices. Raises InvalidInput."""
    varied = set() if told.varied is UNSET else set(told.varied.names)
    stated = {"constraint": told.constraint, "space": told.space.sha256, "policy": told.policy.sha256}
    for law in laws:
        for name, due in stated.items():
            if name not in varied and getattr(law, name) != due:
                expected = f"that of its plans, {getattr(law, name)[:40]}"
                raise InvalidInput("statement", f"one with another {name}, {due[:40]}", expected)


def _likelihoods(table: Any, asked: Any, plans: Any, states: Any) -> tuple[tuple[str, ...], list[PlainLaw], FloatArray]:
    """Names of the states, and the laws and log-likelihoods (n, N) of the answers."""
    names, answers, digest = _states(states)
    laws = read_plain_laws(plans)
    hashes = [plan for plan in as_text(table.column("plan"), "plan").to_pylist() if plan]
    lacking = sorted(set(hashes) - laws.keys())
    if lacking:
        got = f"no plan {lacking[0][:12]}, which the file names"
        raise InvalidInput("plans", got, "the plans of this file: dphmm check-release OUT --plain FOLDER")
    epsilons = finite(table.column("epsilon"), "epsilon", asked).tolist()
    for plan, epsilon in sorted(set(zip(hashes, epsilons, strict=True))):
        if epsilon != laws[plan].epsilon and (epsilon or len(laws[plan].normals)):
            got = f"the epsilon {epsilon:g} of rows whose plan {plan[:12]} has {laws[plan].epsilon:g}"
            raise InvalidInput("released", got, "a file as dphmm release wrote it")
    axes = [f"z_{j}" for j in range(answers.shape[1])]
    if not set(axes) <= set(table.column_names):
        raise InvalidInput("states", f"{len(axes)} coordinates", "as many as the file has (z_0, z_1, ...)")
    z = np.stack([finite(table.column(axis), axis, asked) for axis in axes], axis=1)

    @cache
    def likelihood(plan: str, point: tuple[float, ...]) -> FloatArray:
        return laws[plan].log_likelihood(np.array(point), answers, digest)

    logs = [likelihood(plan, tuple(point)) for plan, point in zip(hashes, z.tolist(), strict=True)]
    return names, [laws[plan] for plan in sorted(set(hashes))], np.array(logs).reshape(len(logs), len(names))


def _states(states: Any) -> tuple[tuple[str, ...], FloatArray, str | None]:
    """Names, answers (N, d) in answer units, and the hash of the space; None for a table, which has none."""
    space = getattr(states, "space", states)
    if isinstance(space, StateSpace):
        if space.has_labels:
            raise InvalidInput("states", "labels", "states whose answers are numbers: laws of labels are tables")
        return space.names, space.answers, space.digest
    if not is_table(states):
        raise InvalidInput("states", type(states).__name__, "a StateSpace, a model with one, or a table of states")
    table = table_of(states, text={"state"})
    axes = [f"z_{j}" for j in range(sum(bool(re.fullmatch("z_[0-9]+", name)) for name in table.column_names))]
    if not axes or not {"state", *axes} <= set(table.column_names) or not len(table):
        raise InvalidInput("states", "a table without its columns", "state, z_0, z_1, ...: all states in their order")
    names = tuple(name or "" for name in as_text(table.column("state"), "state").to_pylist())
    if len(set(names)) < len(names):
        raise InvalidInput("state", "a name that stands twice", "each state once")
    return names, np.stack([finite(table.column(axis), axis) for axis in axes], axis=1), None


def _prior(prior: Any, names: tuple[str, ...]) -> FloatArray:
    """The reader's prior (N,)."""
    if isinstance(prior, Mapping):
        pairs = [(str(name), value) for name, value in prior.items()]
    elif is_table(prior):
        table = table_of(prior, text={"state"})
        if not {"state", "probability"} <= set(table.column_names):
            raise InvalidInput("prior", "a table without its columns", "state and probability")
        values = finite(table.column("probability"), "probability").tolist()
        pairs = list(zip(map(str, as_text(table.column("state"), "state").to_pylist()), values, strict=True))
    else:
        try:
            mass = np.asarray(prior, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("prior", type(prior).__name__, "probabilities, a mapping, or a table") from None
        if mass.shape != (len(names),):
            raise InvalidInput("prior", f"an array of shape {mass.shape}", f"({len(names)},), a number for each state")
        pairs = list(zip(names, mass.tolist(), strict=True))
    by_name = dict.fromkeys(names, 0.0)
    for name, value in pairs:
        if name not in by_name:
            raise InvalidInput("prior", f"state {name[:40]!r}", "names of the states")
        by_name[name] += value
    shares = np.array(list(by_name.values()))
    if not (np.isfinite(shares).all() and (shares >= 0).all() and (shares > 0).any()):
        raise InvalidInput("prior", "a negative or infinite probability, or none above 0", "probabilities of states")
    # First by the largest: a sum of numbers may be larger than any float.
    shares /= shares.max()
    return shares / math.fsum(shares)
