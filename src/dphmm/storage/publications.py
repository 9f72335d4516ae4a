"""Fits and answers that a ledger keeps: admitted before anything is drawn, stored with their loss, shown after that.

A publication is known by the id that its owner gives. The same id gives the stored result, and no word is drawn again.
Public settings decide whether two are the same, never the data or the name of their file. That other data
came under a known id is said in the owner's folder beside the ledger, and nowhere else. A publication is one
transaction of its ledger, with the whole fit or the whole answer in it.

Decision: docs/adr/0017. Proof: docs/proofs/account.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from dphmm.accounting.event import LearningEvent, NotPrivateEvent, described
from dphmm.accounting.ledger import Ledger
from dphmm.accounting.publication import Publication, Published, of_fit
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.markov.stochastic import ModelParts
from dphmm.states.space import StateSpace
from dphmm.storage.inputs import file_digest
from dphmm.storage.ledger import SqliteLedger
from dphmm.storage.ledger.owner import owner_folder, owner_key
from dphmm.storage.models import load_model, save_model
from dphmm.storage.private_tables import PrivateTable, keyed_digest, write_counts

if TYPE_CHECKING:
    from dphmm.markov.hidden.hmm import CategoricalHMM
    from dphmm.markov.private.hidden import PlannedHidden
    from dphmm.markov.private.planned import PlannedFit

    Model = TypeVar("Model", MarkovModel, CategoricalHMM)


Event: TypeAlias = LearningEvent | NotPrivateEvent
#: Called with what is asked before anything is drawn; where it is stored already it does not return.
Admit: TypeAlias = Callable[[Publication, Fraction | None], None]
AdmitFit: TypeAlias = Callable[[Event], None]
#: In the owner's folder of a ledger: whether the data of each id are those that its result was drawn from.
DATA = "publications.json"
_DATA_MEANING = (
    "for the data owner alone, never to be published: whether the data that were named last under each id are those "
    "that its stored result was drawn from, by a keyed digest of the rows"
)
#: How the names of files of public settings end.
_PUBLIC_FILES = (".csv", ".csv.gz", ".parquet", ".txt", ".txt.gz", ".npz")


class StoredPublication(NamedTuple):
    """A publication as the ledger holds it, and whether it was drawn now."""

    published: Published
    fresh: bool

    @property
    def sentence(self) -> str:
        """The sentence about its storage, for people."""
        name = self.published.publication.name
        if self.fresh:
            return f"stored as {name} before it was shown; asked again, the ledger gives this result"
        return f"{name} was stored at {self.published.time}: nothing was drawn or spent; another id asks anew"

    def document(self) -> dict[str, Any]:
        """The same for JSON."""
        publication = self.published.publication
        return {"name": publication.name, "drawn": self.fresh, "time": self.published.time, "loss": publication.loss}


class _AlreadyStored(Exception):
    """Ends a fit or an answer that a ledger has already."""

    def __init__(self, published: Published) -> None:
        super().__init__()
        self.published = published


def publish(ledger: Ledger, make: Callable[[Admit], bytes]) -> StoredPublication:
    """The stored publication, or what ``make`` makes now; it must call its argument before it draws anything.

    Raises what `Transaction.admit_publication` does, and whatever ``make`` raises; nothing is stored then.
    """
    with ledger.transaction() as transaction:
        admitted = []

        def admit(publication: Publication, delta: Fraction | None = None) -> None:
            admission = transaction.admit_publication(publication, delta)
            if admission.stored is not None:
                raise _AlreadyStored(admission.stored)
            admitted.append(admission)

        try:
            result = make(admit)
        except _AlreadyStored as known:
            return StoredPublication(known.published, False)
        if len(admitted) != 1:
            raise InvalidInput("event_id", f"{len(admitted)} admissions", "one, before anything is drawn")
        published = transaction.add_publication(admitted[0], result)
    return StoredPublication(published, True)


def fit_once(
    ledger: Ledger, event_id: str, fit: Callable[[AdmitFit], Model], settings: Mapping[str, Any] | None = None
) -> Model:
    """The model that a ledger holds under this id, or the one that ``fit`` learns now, stored before it is returned.

    ``fit`` is called with an ``admit`` that it must give to `MarkovModel.fit_private`, `CategoricalHMM.fit_private` or
    `fit_chain`. ``settings``: more that is public about the fit and must stay the same under one id.
    The stored model is returned whatever the data are now.

    Raises InvalidInput for another fit under a stored id, BudgetExceeded for one that passes a cap.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.accounting import MemoryLedger
    >>> paths = [[0, 1, 1], [1, 0, 0]]
    >>> given = {"owners": ["ann", "bob"], "bits": dphmm.ReplayBits(1)}  # replayable noise is for examples alone
    >>> fit = lambda admit: dphmm.MarkovModel.fit_private(paths, 2, 1, 3, admit=admit, **given)
    >>> ledger = MemoryLedger()
    >>> model = dphmm.storage.fit_once(ledger, "walks", fit)
    >>> bool((dphmm.storage.fit_once(ledger, "walks", fit).initial == model.initial).all())
    True

    Source: docs/proofs/account.md.
    """
    made: list[Model] = []

    def make(admit: Admit) -> bytes:
        made.append(fit(admitting(admit, event_id, lambda event: digest_of_settings("fit", settings or {}, event))))
        return file_of(lambda path: _save(made[0], path))

    stored = publish(ledger, make)
    return made[0] if stored.fresh else model_of(stored.published.result)


def fit_counts_once(
    ledger: Ledger,
    event_id: str,
    planned: PlannedFit | PlannedHidden,
    count: Callable[[], Any],
    settings: Mapping[str, Any] | None = None,
) -> Any:
    """The model that a ledger holds under this id, or that of counts that are taken now: `fit_once` in two steps.

    A stored id is given back, and a cap refuses, before ``count`` is called. It is called outside of any transaction,
    so it may take long. Nothing is drawn where the id was stored meanwhile. The noise is drawn in the transaction
    that stores the model.

    Raises as `fit_once`, and whatever ``count`` raises; nothing is drawn or stored then.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.accounting import MemoryLedger
    >>> from dphmm.markov.private import count_transitions
    >>> from dphmm.markov.private.planned import PlannedFit
    >>> from dphmm.markov.private.sensitivity import RecordBounds
    >>> from dphmm.storage.publications import fit_counts_once
    >>> def planned():  # replayable noise is for examples alone
    ...     return PlannedFit(2, 1, RecordBounds(3), "sequence", bits=dphmm.ReplayBits(1))
    >>> ledger = MemoryLedger()
    >>> model = fit_counts_once(ledger, "walks", planned(), lambda: count_transitions([[0, 1, 1]], 2, 3))
    >>> fit_counts_once(ledger, "walks", planned(), lambda: count_transitions([[1, 0]], 2, 3)).digest == model.digest
    True

    Source: docs/proofs/account.md.
    """
    event, all_settings = planned.event, {**planned.settings, **(settings or {})}
    asked = of_fit(event, event_id, digest_of_settings("fit", all_settings, event))
    with ledger.transaction() as transaction:
        stored = transaction.admit_publication(asked).stored
    if stored is not None:
        return _stored_model(stored)
    counts = count()

    def make(admit: Admit) -> bytes:
        admit(asked, None)
        learned = planned.learned(counts)
        model = MarkovModel(**learned._asdict()) if isinstance(learned, ModelParts) else learned
        return file_of(lambda path: _save(model, path))

    return _stored_model(publish(ledger, make).published)


def note_data(ledger: Ledger, kept: StoredPublication, data: PrivateTable) -> None:
    """Tell the owner, in the folder beside a ledger file, whether the data are those that a result was drawn from.

    Whatever they are, nothing else follows from it: neither an error nor a word.
    """
    if not isinstance(ledger, SqliteLedger):
        return
    path, key = owner_folder(ledger.path) / DATA, owner_key(ledger.path, create=False)
    # Digests of a key that was lost say nothing.
    known = {} if key is None else _noted(path)
    if key is None:
        key = owner_key(ledger.path, create=True)
        assert key is not None
    try:
        digest = keyed_digest(data, key)
    except Exception:
        # A stored result is given whatever is wrong with a row.
        digest = None
    name = kept.published.publication.name
    drawn_from = digest if kept.fresh else known.get(name, {}).get("digest")
    same = None if digest is None or drawn_from is None else digest == drawn_from
    states = {True: "those of the stored result", False: "changed since the result was stored", None: "not known"}
    known[name] = {"data": states[same], "digest": drawn_from}
    write_counts(path, {"meaning": _DATA_MEANING, "publications": known})


def _noted(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))["publications"]
        return {name: {"data": entry["data"], "digest": entry["digest"]} for name, entry in document.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _stored_model(published: Published) -> Any:
    return model_of(published.result)


def admitting(admit: Admit, name: str, statement: Callable[[Event], str]) -> AdmitFit:
    """Admits a fit by its event."""

    def admit_fit(event: Event) -> None:
        delta = event.delta if isinstance(event, LearningEvent) and event.delta else None
        admit(of_fit(event, name, statement(event)), delta)

    return admit_fit


def digest_of_settings(kind: str, settings: Mapping[str, Any], event: Event | None = None) -> str:
    """A digest of what was asked, which must be public. Raises InvalidInput for a setting that has no text."""
    facts: dict[str, Any] = {"kind": kind, "settings": in_public({k: v for k, v in settings.items() if v is not None})}
    if event is not None:
        facts["event"] = described(event)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def in_public(value: Any) -> Any:
    """A public setting for JSON: a text that names a table or a model becomes the hash of that file."""
    if isinstance(value, str):
        names_file = value.lower().endswith(_PUBLIC_FILES) and Path(value).is_file()
        return {"sha256": file_digest(value)} if names_file else value
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): in_public(each) for name, each in value.items()}
    if isinstance(value, Path):
        return in_public(str(value))
    if hasattr(value, "tolist"):
        return in_public(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [in_public(each) for each in value]
    if isinstance(value, MarkovModel):
        return {"sha256": hashlib.sha256(file_of(lambda path: _save(value, path))).hexdigest()}
    if isinstance(value, StateSpace):
        described_space, arrays = value.describe()
        return {"space": described_space, **{name: array.tolist() for name, array in arrays.items()}}
    fault = f"{type(value).__name__} as a setting"
    raise InvalidInput("event_id", fault, "text, numbers, lists, models or spaces where a ledger keeps the answer")


def file_of(save: Callable[[Path], None]) -> bytes:
    """The bytes of the file that ``save`` writes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        save(path)
        return path.read_bytes()


def _save(model: MarkovModel | CategoricalHMM, path: Path) -> None:
    from dphmm.storage.hidden_models import save_hidden_model

    if isinstance(model, MarkovModel):
        save_model(model, path)
    else:
        save_hidden_model(model, path)


def model_of(file: bytes) -> Any:
    """The model of its file's bytes, hidden or not."""
    from dphmm.storage.hidden_models import holds_hidden_model, load_hidden_model

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        path.write_bytes(file)
        return load_hidden_model(path) if holds_hidden_model(path) else load_model(path)
