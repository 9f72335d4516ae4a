"""The leakage of each step by the releases in a ledger: the temporal leakage, and the policy leakage at each edge.

Proofs: docs/proofs/temporal-leakage.md, docs/proofs/policy-leakage.md, docs/proofs/couplings.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dphmm.accounting.budget import sum_above
from dphmm.accounting.edge_leakage import couplable, losses_between
from dphmm.accounting.ledger import Entry, Ledger, SessionHeader
from dphmm.accounting.temporal import losses_per_step, temporal_leakage
from dphmm.audit.findings import Findings
from dphmm.audit.replay import Answer, Replay
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.session.planned_losses import bounded, leakage_of
from dphmm.session.setting import Setting, Subjects
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, IntArray


def subject_leakage(
    ledger: Ledger,
    subjects: Sequence[str],
    model: MarkovModel,
    policy: PolicyGraph | None = None,
    space: StateSpace | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """The leakage of each subject's releases in a ledger, under the model (and policy) that they were made with.

    A dict for each subject: "subject", "temporal" (the lists cost, backward, forward and total by step, the numbers
    worst and supremum, and True if the supremum is known) and, with a policy, "policy" (total by step, worst) and
    "couplable" ("holds" is True if the sum of epsilons bounds it). None stands for a loss without a bound. Everything
    is computed from public data and the ledger: nothing is spent.

    Parameters
    ----------
    policy, space : also the policy leakage, at the edges of this policy over this space; that of the model where none
        is given.
    progress : called with (done, subjects) after each, and before the first, when all of them fit model and policy.

    Raises
    ------
    InvalidInput : another model or policy than the releases were made with, a subject with a beginning of its own, and
        plans that cannot be made again.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.accounting import MemoryLedger
    >>> space = dphmm.StateSpace.categories(["a", "b"])
    >>> model = dphmm.MarkovModel([1, 0], [[0.5, 0.5], [0.5, 0.5]], space=space)
    >>> ledger = MemoryLedger()
    >>> policy = dphmm.policy.complete(2)
    >>> bits = dphmm.ReplayBits(1)
    >>> session = dphmm.ReleaseSession(model, policy, space, 1, subject="ann", ledger=ledger, bits=bits)
    >>> _ = session.release(0)
    >>> [found] = subject_leakage(ledger, ["ann"], model, policy)
    >>> found["temporal"]["total"], found["policy"]["worst"]
    ([1.0], 1.0)
    """
    within = model.space if space is None else space
    assert within is not None
    leakage = SubjectLeakage(ledger, model, policy, within)
    for subject in subjects:
        leakage.check(subject)
    documents = []
    if progress is not None:
        progress(0, len(subjects))
    for number, subject in enumerate(subjects, start=1):
        documents.append(leakage.document(subject))
        if progress is not None:
            progress(number, len(subjects))
    return documents


class QueriesTogether:
    """Several queries about one step: their losses add up."""

    def __init__(self, plans: Sequence[Any], n: int) -> None:
        self._plans, self._n = plans, n

    def loss_between(self, i: IntArray, j: IntArray) -> FloatArray:
        """The sum of the plans' losses."""
        total = np.zeros(len(i))
        for plan in self._plans:
            total = np.asarray(sum_above(total, losses_between(plan, i, j, self._n)))
        return total


class SubjectLeakage:
    """Leakage of subjects of one ledger; equal histories are looked at once."""

    def __init__(self, ledger: Ledger, model: MarkovModel, policy: PolicyGraph | None, space: StateSpace) -> None:
        self._ledger, self._model, self._policy, self._space = ledger, model, policy, space
        self._temporal: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._policies: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._couplings: dict[tuple[Any, ...], dict[str, Any]] = {}

    def check(self, subject: str) -> None:
        """Raises InvalidInput where the releases of a subject were not made with this model and policy."""
        self._headers(subject)

    def document(self, subject: str) -> dict[str, Any]:
        """Temporal leakage of all queries of a subject together, and policy leakage where there is a policy."""
        headers = self._headers(subject)
        entries = {header.query: self._ledger.entries(subject, header.query) for header in headers}
        losses = losses_per_step([entry for each in entries.values() for entry in each])
        document = {"subject": subject, "temporal": self._temporal_leakage(headers[0], losses)}
        if self._policy is not None:
            document["policy"] = self._policy_leakage(headers, entries, len(losses))
            document["couplable"] = self._couplable(headers, len(losses))
        return document

    def _headers(self, subject: str) -> list[SessionHeader]:
        """The headers of the subject's queries, which must be of this model and policy."""
        queries = [query for name, query in self._ledger.sessions() if name == subject]
        headers = [header for query in queries if (header := self._ledger.header(subject, query)) is not None]
        for header in headers:
            if header.options.get("model") != self._model.digest:
                got = f"another model than that of the releases of {subject!r}"
                raise InvalidInput("model", got, "the model that they were made with")
            if self._policy is not None and header.options.get("policy") != self._policy.digest:
                got = f"another policy than that of the releases of {subject!r}"
                raise InvalidInput("policy", got, "the policy that they were made with")
            if "initial" in header.options:
                got = f"releases of {subject!r}, who is known to begin elsewhere than the model says"
                raise InvalidInput("subjects", got, "subjects that begin as the model says")
        if len({header.options["start"] for header in headers}) > 1:
            raise InvalidInput("ledger", f"queries of {subject!r} with different starts", "one start for all queries")
        return headers

    def _begin(self, header: SessionHeader) -> tuple[str, int]:
        """The beginning of a history: its ``start``, and the number of step 1 if the model's slots go by a clock."""
        return header.options["start"], self._model.number_of_first(header.options.get("origin", ""))

    def _begun(self, header: SessionHeader) -> MarkovModel:
        """The model with steps counted from those of a history."""
        return self._model.counted_from(header.options.get("origin", ""))

    def _temporal_leakage(self, header: SessionHeader, losses: FloatArray) -> dict[str, Any]:
        key = (self._begin(header), losses.tobytes())
        if key not in self._temporal:
            leakage = temporal_leakage(self._begun(header).starting(header.options["start"]), losses)
            self._temporal[key] = {
                "cost": _listed(losses),
                "backward": _listed(leakage.backward),
                "forward": _listed(leakage.forward),
                "total": _listed(leakage.total),
                "worst": bounded(leakage.worst),
                "supremum": bounded(leakage.supremum),
                "supremum_known": not math.isnan(leakage.supremum),
            }
        return self._temporal[key]

    def _policy_leakage(
        self, headers: Sequence[SessionHeader], entries: Mapping[str, Sequence[Entry]], steps: int
    ) -> dict[str, Any]:
        assert self._policy is not None
        key = tuple((self._begin(h), *((e.t, e.plan_hash) for e in entries[h.query])) for h in headers)
        if key not in self._policies:
            plans: list[list[Any]] = [[] for _ in range(steps)]
            for header in headers:
                for t, plan in self._plans(header, entries[header.query]):
                    plans[t - 1].append(plan)
            together = [self._one(each) for each in plans]
            leakage = leakage_of(self._begun(headers[0]), headers[0].options["start"], together, self._policy)
            self._policies[key] = {
                "total": [bounded(float(np.max(t, initial=0.0, where=~np.isnan(t)))) for t in leakage.total],
                "worst": bounded(leakage.worst),
            }
        return self._policies[key]

    def _couplable(self, headers: Sequence[SessionHeader], steps: int) -> dict[str, Any]:
        """The coupling of a history: ``holds`` is True if the sum of epsilons bounds the policy leakage."""
        key = *self._begin(headers[0]), steps
        if key not in self._couplings:
            coupling = couplable(self._begun(headers[0]).starting(key[0]), self._policy, max(1, steps))
            self._couplings[key] = {"holds": coupling.holds, "hops": bounded(coupling.hops)}
        return self._couplings[key]

    def _one(self, plans: Sequence[Any]) -> Any:
        if not plans:
            return None
        return plans[0] if len(plans) == 1 else QueriesTogether(plans, self._model.n_secrets)

    def _plans(self, header: SessionHeader, entries: Sequence[Entry]) -> list[tuple[int, Any]]:
        """The plans of the stored releases, made again from public data, by step."""
        assert self._policy is not None
        setting = Setting.read(header.options, self._model, self._policy, self._space, header.query)
        if "policy" in setting.varies:
            got = f"the releases of {header.subject!r}, whose steps may have policies of their own"
            raise InvalidInput("policy", got, "releases under one policy")
        released = [entry for entry in entries if entry.z is not None]
        answers = [Answer(e.t, np.array(e.z, dtype=np.int64), str(e.plan_hash)) for e in released]
        replay = Replay(Subjects(setting), self._ledger, Findings(), most=0)
        replayed = replay.follow(header.subject, answers, header.options.get("origin", ""))
        if replayed is None:
            got = f"releases of {header.subject!r} whose plans cannot be made again"
            raise InvalidInput("ledger", got, "the ledger, model and policy of one release, and this version of dphmm")
        return [(entry.t, each.plan) for entry, each in zip(released, replayed, strict=True)]


def _listed(values: FloatArray) -> list[float | None]:
    return [bounded(value) for value in values.tolist()]
