"""Questions about a table by name: the registry, and the way from a table to an answer and its statement.

A question is one class in the file of its function, and one line in `dphmm.dependent`: its options, the checks of them,
and the way from rows of the table to the numbers that its function counts. The command line offers every registered
question. Public facts come first: a `Question` checks its options when it is made, and looks at the table only to
refuse it as its own side information; `Question.answer` reads it.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

import base64
import html
import inspect
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

from dphmm._checks import exact_epsilon, one_of, written_fraction
from dphmm.accounting.event import NEIGHBOURS, DependentEvent, NoisyCounts
from dphmm.accounting.forecast import Coming, Forecast
from dphmm.accounting.ledger import Ledger
from dphmm.accounting.person import key_by
from dphmm.accounting.publication import Publication
from dphmm.dependent._dependence import Budget, Dependence, about
from dphmm.dependent._inputs import (
    MAX_ROWS,
    RELATION,
    SPELLING,
    Called,
    Option,
    Rejected,
    counting,
    data_rows,
    data_users,
)
from dphmm.errors import DphmmError, InvalidInput
from dphmm.samplers.entropy import ReplayBits, default_bits, is_secure
from dphmm.statement.origin import Whom
from dphmm.statement.parts import document, typed
from dphmm.statement.query import QueryStatement, Unit
from dphmm.storage.inputs import file_digest
from dphmm.storage.private_tables import PrivateRows, PrivateTable
from dphmm.storage.publications import Admit, StoredPublication, digest_of_settings, note_data, publish
from dphmm.types import Bits, Exact, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from dphmm.markov.model import MarkovModel

#: Every question that can be asked of a table, by name, in the order of help texts.
REGISTERED: dict[str, type[Question]] = {}


def register(*kinds: type[Question]) -> None:
    """Offer questions to `dphmm.query`, `dphmm.dependent.query` and the command line, by their names."""
    REGISTERED.update({kind.name: kind for kind in kinds})


@dataclass(frozen=True, eq=False)
class Answered:
    """The published table and its loss."""

    table: pd.DataFrame
    event: DependentEvent


@dataclass(frozen=True, eq=False)
class QueryResult:
    """The answer to a question about a table, and its promise. All of it is public but ``rejected``.

    ``table``: the published numbers. ``epsilon``: the promise, None where nothing is promised. ``statement``: the
    privacy statement, ready for JSON. ``event``: for accounting. ``details``: other facts that can be read off the
    answer. ``model``, ``whom``: the model that was named, if any, and whom it was fitted on. ``rejected``: for the data
    owner alone, the rows that do not count as they are written; none of an answer that a ledger had. ``warnings``:
    sentences made of the options and the answer. ``kept``: the publication in a ledger, if one was named.
    """

    table: pd.DataFrame
    epsilon: Fraction | None
    statement: dict[str, Any] = field(repr=False)
    event: DependentEvent = field(repr=False)
    details: dict[str, Any] = field(repr=False)
    model: MarkovModel | None = field(repr=False)
    whom: Whom | None = field(repr=False)
    rejected: Rejected = field(repr=False)
    warnings: tuple[str, ...] = ()
    kept: StoredPublication | None = field(default=None, repr=False)

    def _repr_html_(self) -> str:
        table: str = self.table.to_html()
        statement = typed(self.statement, QueryStatement)
        said = (statement.sentence(), statement.unit.sentence(whole=statement))
        return table + "".join(f"<p>{html.escape(text)}</p>" for text in said)


class PerPerson(NamedTuple):
    """One person's loss, from that of one record: of at most ``units`` records, None without a bound.

    ``share``: the loss by a change of ``relation``, as a share of the event's for one record: 1/2 if the event is about
    a replaced record and the relation is "add-remove".
    """

    relation: str
    units: int | None
    share: Fraction = Fraction(1)


@dataclass(frozen=True, eq=False)
class AnsweredQuestion:
    """The result of a question: the noisy answer, and the facts about it for the statement.

    ``domain``: the public options, for the statement. ``not_protected``: codes of the statement. ``warnings``:
    sentences made of the options and the noisy answer alone.
    """

    answered: Answered
    rejected: Rejected
    domain: Mapping[str, Any]
    unit: Unit
    not_protected: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class Question(ABC):
    """A question about a table whose public options are checked; the table is not read yet.

    ``data``: a path, or a pandas, polars or Arrow frame. ``dependence``, ``epsilon``, ``options``: as `query` takes
    them. ``called``: how the caller writes the name of an option, for messages.
    """

    #: What it is called, on the command line too, and the help there.
    name: ClassVar[str]
    help: ClassVar[str]
    #: Which dependences it takes, for help.
    forms: ClassVar[str]
    options: ClassVar[tuple[Option, ...]]
    #: The functions on arrays that `dphmm.dependent.query` calls, by name.
    functions: ClassVar[Mapping[str, Callable[..., Answered]]] = {}
    #: Whether the noise follows from how many rows the table has; names of parts that are no counts of people.
    by_rows: ClassVar[bool] = False
    in_steps: ClassVar[tuple[str, ...]] = ()
    #: Set by `check`.
    dependence: Dependence

    def __init__(
        self, data: Any, dependence: Any, epsilon: Exact, options: Mapping[str, Any], called: Called = str
    ) -> None:
        self.called = called
        known = {option.name: option.default for option in self.options}
        odd = next((name for name in options if name not in known), None)
        if odd is not None:
            raise InvalidInput("options", odd, f"those of {self.name}: {', '.join(known)}")
        self.given: dict[str, Any] = known | dict(options)
        self.data = PrivateTable(data, self.given.get(SPELLING.name) or "same")
        key_by(self.data.spelling)
        self.epsilon = exact_epsilon(epsilon, called("epsilon"))
        self.check(dependence)

    @classmethod
    def arguments(
        cls, name: str, data: Any, dependence: Any, epsilon: Exact, options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of one of the ``functions``, by position and by name."""
        return (data, dependence, epsilon), options

    @abstractmethod
    def check(self, dependence: Any) -> None:
        """Check the public options and set ``dependence``. Raises InvalidInput for options that cannot be asked."""

    @abstractmethod
    def find(self, bits: Bits | None) -> AnsweredQuestion:
        """Read the table and draw the noise."""

    def between(self) -> Any:
        """The dependence in the function's form; called before the table is read too."""
        return self.dependence.between(self.data.spelling)

    def unit(self) -> str:
        """The unit of an account, in a sentence: a person has at most ``per_person().units`` of them.

        It is no row: without one, another may count, or later steps of that person may have other numbers.
        """
        there_or_not = self.per_person().relation == "add-remove"
        counts = "one record that counts" + ", there or not" * there_or_not
        return f"{counts}; neighbouring data differ in it and nowhere else"

    @property
    def there_or_not(self) -> bool:
        """True if epsilon, as the question was asked, is for adding or removing; False for replacing."""
        return bool(self.given.get(RELATION.name) == "add-remove")

    def check_neighbours(self, why_not: str | None = None) -> None:
        """Refuse an invalid relation, and, with a reason ``why_not``, add-remove."""
        option = self.called(RELATION.name)
        one_of(self.given[RELATION.name], NEIGHBOURS, option)
        if why_not is not None and self.there_or_not:
            raise InvalidInput(option, "add-remove", f"replace: {why_not}")

    def counted_per_person(self, most: int | None) -> PerPerson:
        """The bound for one person: ``most`` records, each there or not; share 1, or 1/2 if the event replaces one."""
        return PerPerson("add-remove", most, Fraction(1) if self.there_or_not else Fraction(1, 2))

    def per_person(self) -> PerPerson:
        """The bound of one person's loss by that of replacing one record; none unless a question says so."""
        return PerPerson("replace", None)

    @property
    def inputs(self) -> list[str]:
        """The files that nothing may be written onto: the table, and those that options name."""
        table = [] if self.data.path is None else [str(self.data.source)]
        return [*table, *self.dependence.inputs]

    @property
    def model(self) -> MarkovModel | None:
        """The model that is named, if any: of dependence or of the states, never of both."""
        return self.dependence.model[0] if self.dependence.kind == "markov" else None

    def answer(
        self,
        bits: Bits | None = None,
        ledger: Ledger | None = None,
        event_id: str | None = None,
        listed: Callable[[Rejected], None] | None = None,
    ) -> QueryResult:
        """The answer and its statement; with a ledger the stored one, or one that is stored before it is returned.

        ``event_id``: its id there. Other data under a stored id get the stored answer; the owner's folder alone tells
        that they are others. ``listed``: called with the rejected rows, before the answer is stored.
        """
        if ledger is None:
            result = self._answered(bits)
            if listed is not None:
                listed(result.rejected)
            return result
        self._take_spelling(ledger)
        result = self._stored(ledger, self.publication(event_id, bits), lambda: self._answered(bits), listed)
        assert result.kept is not None
        note_data(ledger, result.kept, self.data)
        return result

    def forecast(self, about: int | None = None, ledger: Ledger | None = None, event_id: str | None = None) -> Forecast:
        """The forecast of an answer: of the table only names and types of columns are looked at.

        ``about``: the number of people, on the caller's word (for "svm": the number of rows, and needed).
        ``ledger``, ``event_id``: where it would be kept; it is only read. Raises as `answer` does for public options
        and types of columns.
        """
        expected = "about how many rows the table has" if self.by_rows else "about how many people there are"
        if about is not None or self.by_rows:
            about = counting(about, self.called("about"), expected)
        if ledger is not None:
            self._take_spelling(ledger)
        blank = copy(self)
        blank.data = self.data.blank(about or 0 if self.by_rows else 0)
        event = blank.find(ReplayBits(0)).answered.event
        account = None if ledger is None else Coming.of(ledger, blank.publication(event_id, None))
        return Forecast(event.parts, event.neighbours, about, self.in_steps, account)

    def _take_spelling(self, ledger: Ledger) -> None:
        """Compare names by the rule of a ledger. Raises InvalidInput where another one was asked for."""
        if self.given.get(SPELLING.name) not in (None, ledger.spelling):
            expected = f"{ledger.spelling}, by which the ledger compares names"
            raise InvalidInput(self.called(SPELLING.name), self.data.spelling, expected)
        self.data = replace(self.data, spelling=ledger.spelling)

    def _stored(
        self,
        ledger: Ledger,
        asked: Publication,
        answered: Callable[[], QueryResult],
        listed: Callable[[Rejected], None] | None = None,
    ) -> QueryResult:
        """The answer that a ledger has, or the one that ``answered`` draws in the transaction that stores it."""
        made: list[QueryResult] = []

        def make(admit: Admit) -> bytes:
            admit(asked, None)
            result = answered()
            if asked.epsilon is not None and result.event.per_record * self.per_person().share > asked.epsilon:
                raise DphmmError(f"query {self.name}: it would lose more than was admitted; nothing was stored")
            if listed is not None:
                listed(result.rejected)
            made.append(result)
            return _written(result)

        stored = publish(ledger, make)
        return replace(made[0] if stored.fresh else self._read(stored.published.result), kept=stored)

    def publication(self, event_id: str | None, bits: Bits | None) -> Publication:
        """The record of the answer in a ledger, from public settings alone, before the table is read.

        Raises InvalidInput where there is no ``event_id``, and for settings that cannot be written down.
        """
        if not event_id:
            raise InvalidInput("event_id", "nothing", "an id for the answer in the ledger: the same id gives it again")
        statement = digest_of_settings(self.name, self._settings())
        alone, model = self.per_person(), self.model
        unit = self.unit()
        # A model of these very people, without privacy, can show what one of them did: as the statement says.
        other = model is None or model.provenance.get("private") is not False or self._whom(model).people == "others"
        if not (other and is_secure(default_bits(bits))):
            return Publication(event_id, "query", statement, unit, units=alone.units)
        budget = Budget.of(self.between(), self.epsilon, None, False)
        lost = budget.per_record * alone.share
        return Publication(event_id, "query", statement, unit, alone.relation, alone.units, lost)

    def _settings(self) -> dict[str, Any]:
        dependence = self.dependence
        return {
            "epsilon": self.epsilon,
            "dependence": [dependence.kind, dependence.most, dependence.path or dependence.loaded],
            # The rule of spelling is that of the ledger, however it is named.
            "options": {n: value for n, value in self.given.items() if value is not None and n != SPELLING.name},
        }

    def _read(self, result: bytes) -> QueryResult:
        """The answer that `_written` wrote."""
        import pyarrow as pa

        model = self.model
        try:
            answer = json.loads(result)
            with pa.ipc.open_file(pa.py_buffer(base64.b64decode(answer["table"]))) as stored:
                table = stored.read_all().to_pandas()
            parts = [NoisyCounts(*part[:2], *map(written_fraction, part[2:])) for part in answer["event"].pop("parts")]
            claimed = answer["event"].pop("claimed")
            event = DependentEvent(
                parts=tuple(parts), claimed=None if claimed is None else written_fraction(claimed), **answer["event"]
            )
            epsilon = None if answer["epsilon"] is None else written_fraction(answer["epsilon"])
            said, details, sentences = answer["statement"], answer["details"], tuple(answer["warnings"])
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            raise InvalidInput("ledger", "an answer that cannot be read", "an undamaged ledger") from error
        whom = None if model is None else self._whom(model)
        return QueryResult(table, epsilon, said, event, details, model, whom, Rejected("row"), sentences)

    def _answered(self, bits: Bits | None) -> QueryResult:
        return self._said(self.find(bits))

    def _said(self, found: AnsweredQuestion) -> QueryResult:
        """The answer with its statement."""
        event, model = found.answered.event, self.model
        whom = None if model is None else self._whom(model)
        provenance = {} if model is None else model.provenance
        others = ["noise of the model"] if provenance.get("private") is True else []
        others += ["rows that move"] if found.unit.of == "record" and self.there_or_not else []
        statement = QueryStatement.of(
            event,
            unit=found.unit,
            spelling=self.data.spelling,
            dependence=self.dependence.stated(event),
            domain=found.domain,
            not_protected=[*others, *found.not_protected],
            model_people=whom.people if whom is not None and provenance.get("private") is False else None,
        )
        promised = None if statement.epsilon is None else event.claimed
        table, details = found.answered.table, dict(found.details)
        sentences = tuple(found.warnings)
        return QueryResult(table, promised, document(statement), event, details, model, whom, found.rejected, sentences)

    def _whom(self, model: MarkovModel) -> Whom:
        """The people on whom the model of the chain, or of the states, was fitted.

        As the data owner says, or on this very file. Which states a model has can show what one person did, as its
        moves can.
        """
        known = model.provenance.get("source_sha256")
        same = known is not None and self.data.path is not None and known == file_digest(self.data.path)
        return Whom.of("same", "file") if same else Whom.of(self.given.get("model_people") or "unknown")

    def depends(self, given: Any, allowed: Sequence[str], bounded: bool = True) -> Dependence:
        """The dependence as it was given, of the ``allowed`` kinds (`Dependence.of`)."""
        return Dependence.of(given, self.given.get(MAX_ROWS.name), self.called, allowed, bounded)

    def rows(self, columns: Sequence[tuple[str, str]]) -> PrivateRows:
        """Columns of DATA (name, the option that names it), and the users only where it matters whose a row is."""
        users = [] if self.dependence.most is None else [(self._user_column, self.called("user_column"))]
        return data_rows(self.data, [*columns, *users])

    def owned(self, rows: PrivateRows, rejected: Rejected) -> dict[str, Any]:
        """The options of a function about people: the person of each row, and the number of rows that count."""
        if self.dependence.most is None:
            return {}
        users = data_users(rows, self._user_column, self.dependence.most, rejected)
        return {"users": users, "max_rows_per_user": self.dependence.most}

    @property
    def _user_column(self) -> str:
        return self.given["user_column"] or "user"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class ExactCounts:
    """The counts of a table, without noise: private. Neither ``repr`` nor a pickle shows anything of them.

    ``values``: integers of the shape that the question publishes. ``rejected``: the rows that do not count as they are
    written.
    """

    values: IntArray
    rejected: Rejected

    def __repr__(self) -> str:
        return "ExactCounts(...)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("ExactCounts are not written: they have no noise yet")


class CountedQuestion(Question):
    """A question that counts, and then draws once: many machines may count what one draws.

    Decision: docs/adr/0030.
    """

    @property
    @abstractmethod
    def budget(self) -> Budget:
        """The budget of the answer. Raises InvalidInput and Refused, of public options alone."""

    @abstractmethod
    def counted(self) -> ExactCounts:
        """Read the table, and count."""

    @abstractmethod
    def drawn(self, counts: ExactCounts, bits: Bits | None) -> AnsweredQuestion:
        """The counts with noise."""

    def find(self, bits: Bits | None) -> AnsweredQuestion:
        """Count, and draw the noise; public options are checked first."""
        _ = self.budget
        return self.drawn(self.counted(), bits)

    def answer_counts(
        self, count: Callable[[], ExactCounts], ledger: Ledger, event_id: str, bits: Bits | None = None
    ) -> QueryResult:
        """The answer as by `answer` with a ledger, from counts that are taken elsewhere, outside of any transaction.

        A stored id is given back, and a cap refuses, before ``count`` is called. Where somebody else has stored the
        id meanwhile, nothing is drawn. The noise is drawn in the transaction that stores the answer.
        """
        self._take_spelling(ledger)
        _ = self.budget
        asked = self.publication(event_id, bits)
        with ledger.transaction() as transaction:
            stored = transaction.admit_publication(asked).stored
        if stored is not None:
            return replace(self._read(stored.result), kept=StoredPublication(stored, False))
        counts = count()
        return self._stored(ledger, asked, lambda: self._said(self.drawn(counts, bits)))


@contextmanager
def fields(names: Mapping[str, str]) -> Iterator[None]:
    """Errors of a function on arrays in the words of the caller: ``names`` of its arguments there."""
    try:
        yield
    except InvalidInput as error:
        raise about(error, names) from None


def _written(result: QueryResult) -> bytes:
    """An answer as a ledger keeps it: all that is public of it."""
    import pyarrow as pa

    table, event = pa.Table.from_pandas(result.table, preserve_index=False), result.event
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    answer = {
        "table": base64.b64encode(sink.getvalue()).decode(),
        "epsilon": None if result.epsilon is None else str(result.epsilon),
        "statement": result.statement,
        "details": result.details,
        "warnings": list(result.warnings),
        "event": {
            "query": event.query,
            "record": event.record,
            "parts": [[part.name, part.noise, str(part.sensitivity), str(part.scale)] for part in event.parts],
            "mechanism": event.mechanism,
            "dependence": event.dependence,
            "claimed": None if event.claimed is None else str(event.claimed),
            "why": event.why,
            "secure": event.secure,
            "neighbours": event.neighbours,
        },
    }
    return json.dumps(answer, sort_keys=True).encode()


def query(
    question: str,
    data: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    bits: Bits | None = None,
    ledger: Ledger | None = None,
    event_id: str | None = None,
    **options: Any,
) -> QueryResult:
    """The answer to a question about a table as it is, with its privacy statement, as the command dphmm query gives it.

    ``question``: "histogram", "flows", "kmeans", "degree" or "svm". ``data``: a path (Parquet, CSV, edges also as
    text), or a pandas, polars or Arrow frame, which stays as it is. ``dependence``: "independent", "group", "group:K",
    ("group", K), "friends:EDGES" (a path), "markov:MODEL" (a path), a MarkovModel; None is "independent", with a
    warning. ``epsilon``: the promise for one record under the dependence, or for all rows of one person. ``options``:
    those of the command, with _ for -, as text or as Python values; ``first`` is --from, and ``box`` may be
    (low, high), with a number for each column. ``bits``: None is the system's secure randomness. ``ledger``: the answer
    is stored there before it is returned, and counts for every person of that ledger. ``event_id``: its id there, which
    a ledger needs; the same id gives the stored answer, whatever the data are. The folder LEDGER.owner alone tells that
    other data came.

    No row of ``data`` decides if there is an answer, or how the rows of others count. A UserWarning tells if no
    dependence was stated, and if noise drowns an answer. Raises InvalidInput for options, and Refused for a mechanism
    that is not proved.

    Examples
    --------
    >>> import pandas as pd
    >>> import dphmm
    >>> visits = pd.DataFrame({"user": ["ann", "bob", "bob"], "step": [1, 1, 2], "state": ["home", "work", "home"]})
    >>> found = dphmm.query("histogram", visits, "group:2", 1, states=["home", "work"], bits=dphmm.ReplayBits(1))
    >>> list(found.table.columns), found.statement["dependence"]["given"]
    (['first', 'end', 'state', 'count'], 'group:2')
    """
    kind = REGISTERED[one_of(question, tuple(REGISTERED), "question")]
    result = kind(data, dependence, epsilon, options).answer(bits, ledger, event_id)
    for sentence in result.warnings:
        warnings.warn(sentence, UserWarning, stacklevel=2)
    return result


def forecast(question: str, data: Any, dependence: Any, epsilon: Exact, **options: Any) -> Forecast:
    """The forecast of an answer of `dphmm.query`, which no row of the data is read for.

    Nothing is drawn, spent, stored or written. ``options``: as in `dphmm.query`, and ``about``: the number of people
    that the table is about, on your word (for "svm" its number of rows). A ledger is only read.

    Examples
    --------
    >>> import pandas as pd
    >>> import dphmm
    >>> visits = pd.DataFrame({"user": ["ann", "bob"], "state": ["home", "work"]})
    >>> found = dphmm.dependent.forecast("histogram", visits, "group:1", 1, states=["home", "work"], about=200)
    >>> [noise.sentence for noise in found.noise]
    ['discrete Laplace, scale 2, on the histogram: expected error 1.919 in each number, 0.96 % of the people']
    """
    kind = REGISTERED[one_of(question, tuple(REGISTERED), "question")]
    asked = [options.pop(name, None) for name in ("about", "ledger", "event_id")]
    return kind(PrivateTable(data).blank().source, dependence, epsilon, options).forecast(*asked)


def query_arrays(question: str, data: Any, dependence: Any, epsilon: Exact, **options: Any) -> Answered:
    """The answer to a question by its name, with the options of the question's own function.

    Names: "histogram", "count", "total", "flows", "mean", "kmeans", "degree", "svm", "logistic".

    ``data``: the table, values or points; for "degree" the edges, with ``n`` and ``level``; for the two classifiers
    rows and labels (X, y). Raises InvalidInput for an option that the question does not have.
    """
    kinds = {name: kind for kind in REGISTERED.values() for name in kind.functions}
    name = one_of(question, tuple(kinds), "question")
    function = kinds[name].functions[name]
    positional, named = kinds[name].arguments(name, data, dependence, epsilon, options)
    try:
        inspect.signature(function).bind(*positional, **named)
    except TypeError as error:
        raise InvalidInput("options", str(error), f'those of the question "{name}"') from None
    return function(*positional, **named)
