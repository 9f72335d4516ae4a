"""dphmm account --temporal: what each subject's stored releases say, all together, about every one of its steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.cli.console import Row, aligned
from dphmm.cli.outcomes import one_line
from dphmm.errors import InvalidInput
from dphmm.session.budget_plan import MEANING, PROOF, bounded, leakage_of, started

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Entry, Ledger, SessionHeader
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace
    from dphmm.types import FloatArray, IntArray

#: Steps are listed up to here; the document has all.
_MOST_LISTED = 50
TEMPORAL = (
    "temporal leakage: how far apart (log-ratio) any two possible states of a step can be for an adversary who has "
    "seen all answers, backward through the step, forward from it, and in total; upper bounds, from the cost of each "
    "step"
)
COUPLING = (
    "coupling: whether every move of the two ends of a policy edge can be matched along the policy, forwards and "
    "backwards (docs/proofs/couplings.md)"
)
_TEMPORAL_PROOF = "docs/proofs/temporal-leakage.md"


def leakage_documents(ledger: str, subjects: Sequence[str], model: str, policy: str | None) -> list[dict[str, Any]]:
    """The leakage of subjects of a ledger file, under the model (and policy) that they were released under."""
    from dphmm.cli.options import loaded_model, loaded_policy
    from dphmm.storage.ledger import open_ledger

    chain, space = loaded_model(model)
    edges, space = (None, space) if policy is None else loaded_policy(policy, chain)
    with open_ledger(ledger, read_only=True) as opened:
        lookup = Lookup(opened, chain, edges, space)
        return [lookup.document(subject) for subject in subjects]


class Together:
    """Several queries about one step: their losses add up."""

    def __init__(self, plans: Sequence[Any], n: int) -> None:
        self._plans, self._n = plans, n

    def loss_between(self, i: IntArray, j: IntArray) -> FloatArray:
        """The sum of the plans' losses."""
        from dphmm.accounting.budget import sum_above
        from dphmm.accounting.edge_leakage import losses_between

        total = np.zeros(len(i))
        for plan in self._plans:
            total = np.asarray(sum_above(total, losses_between(plan, i, j, self._n)))
        return total


class Lookup:
    """Leakage of subjects of one ledger; equal histories are looked at once."""

    def __init__(self, ledger: Ledger, model: MarkovModel, policy: PolicyGraph | None, space: StateSpace) -> None:
        self._ledger, self._model, self._policy, self._space = ledger, model, policy, space
        self._temporal: dict[tuple[str, bytes], dict[str, Any]] = {}
        self._policies: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._couplings: dict[tuple[str, int], dict[str, Any]] = {}

    def document(self, subject: str) -> dict[str, Any]:
        """Temporal leakage of all queries of a subject together, and policy leakage where there is a policy."""
        from dphmm.accounting import losses_per_step

        headers = self._headers(subject)
        entries = {header.query: self._ledger.entries(subject, header.query) for header in headers}
        losses = losses_per_step([entry for each in entries.values() for entry in each])
        start = headers[0].options["start"]
        found = {"subject": subject, "temporal": self._temporal_leakage(start, losses)}
        if self._policy is not None:
            found["policy"] = self._policy_leakage(headers, entries, len(losses))
            found["couplable"] = self._couplable(headers, len(losses))
        return found

    def _headers(self, subject: str) -> list[SessionHeader]:
        """What the subject's queries were released under, which must be this model and policy."""
        queries = [query for name, query in self._ledger.sessions() if name == subject]
        headers = [header for query in queries if (header := self._ledger.header(subject, query)) is not None]
        for header in headers:
            if header.options.get("model") != self._model.digest:
                came = f"another model than that of the releases of {subject!r}"
                raise InvalidInput("--model", came, "the model that they were made with")
            if self._policy is not None and header.options.get("policy") != self._policy.digest:
                came = f"another policy than that of the releases of {subject!r}"
                raise InvalidInput("--policy", came, "the policy that they were made with")
            if "initial" in header.options:
                came = f"releases of {subject!r}, who is known to begin elsewhere than the model says"
                raise InvalidInput("--temporal", came, "subjects that begin as the model says")
        if len({header.options["start"] for header in headers}) > 1:
            raise InvalidInput("LEDGER", f"queries of {subject!r} with different starts", "one start for all queries")
        return headers

    def _temporal_leakage(self, start: str, losses: FloatArray) -> dict[str, Any]:
        from dphmm.accounting import temporal_leakage

        key = (start, losses.tobytes())
        if key not in self._temporal:
            found = temporal_leakage(started(self._model, start), losses)
            self._temporal[key] = {
                "cost": _listed(losses),
                "backward": _listed(found.backward),
                "forward": _listed(found.forward),
                "total": _listed(found.total),
                "worst": bounded(found.worst),
                "supremum": bounded(found.supremum),
                "supremum_known": not math.isnan(found.supremum),
            }
        return self._temporal[key]

    def _policy_leakage(
        self, headers: Sequence[SessionHeader], entries: Mapping[str, Sequence[Entry]], steps: int
    ) -> dict[str, Any]:
        assert self._policy is not None
        key = tuple((h.options["start"], *((e.t, e.plan_hash) for e in entries[h.query])) for h in headers)
        if key not in self._policies:
            plans: list[list[Any]] = [[] for _ in range(steps)]
            for header in headers:
                for t, plan in self._plans(header, entries[header.query]):
                    plans[t - 1].append(plan)
            together = [self._one(each) for each in plans]
            found = leakage_of(self._model, headers[0].options["start"], together, self._policy)
            self._policies[key] = {
                "total": [bounded(float(np.max(t, initial=0.0, where=~np.isnan(t)))) for t in found.total],
                "worst": bounded(found.worst),
                "exactly_solved": found.exact,
            }
        return self._policies[key]

    def _couplable(self, headers: Sequence[SessionHeader], steps: int) -> dict[str, Any]:
        """Whether the sum of epsilons bounds the policy leakage; null where answers may have excluded states."""
        from dphmm.accounting import couplable

        if any(header.options.get("flat") == "allow" for header in headers):
            return {"holds": None, "hops": None}
        key = headers[0].options["start"], steps
        if key not in self._couplings:
            found = couplable(started(self._model, key[0]), self._policy, max(1, steps))
            self._couplings[key] = {"holds": found.holds, "hops": bounded(found.hops)}
        return self._couplings[key]

    def _one(self, plans: Sequence[Any]) -> Any:
        if not plans:
            return None
        return plans[0] if len(plans) == 1 else Together(plans, self._model.n_states)

    def _plans(self, header: SessionHeader, entries: Sequence[Entry]) -> list[tuple[int, Any]]:
        """The plans of the stored releases, made again from public data, by step."""
        from dphmm.audit.findings import Findings
        from dphmm.audit.replay import Answer, Replay
        from dphmm.session.setting import Setting
        from dphmm.session.subjects import Subjects

        assert self._policy is not None
        setting = Setting.read(header.options, self._model, self._policy, self._space, header.query)
        if "policy" in setting.varies:
            came = f"the releases of {header.subject!r}, whose steps may have policies of their own"
            raise InvalidInput("--policy", came, "releases under one policy")
        released = [entry for entry in entries if entry.z is not None]
        answers = [Answer(e.t, np.array(e.z, dtype=np.int64), str(e.plan_hash)) for e in released]
        replay = Replay(Subjects(setting), self._ledger, Findings(), most=0)
        followed = replay.follow(header.subject, answers)
        if followed is None:
            came = f"releases of {header.subject!r} whose plans cannot be made again"
            raise InvalidInput("LEDGER", came, "the ledger, model and policy of one release, and this version of dphmm")
        return [(entry.t, each.plan) for entry, each in zip(released, followed, strict=True)]


def leakage_lines(document: Mapping[str, Any]) -> list[str]:
    """A subject for people."""
    temporal, policy = document["temporal"], document.get("policy")
    limit = _shown(temporal["supremum"]) if temporal["supremum_known"] else "not known: the chain does not settle"
    rows: list[Row] = [
        ("  temporal leakage", f"at most {_shown(temporal['worst'])} at any step; however long it goes on: {limit}")
    ]
    if policy is not None:
        solved = "" if policy["exactly_solved"] else " (some programs bounded, not solved)"
        rows.append(("  policy leakage", f"at most {_shown(policy['worst'])} at any step{solved}"))
        rows.append(("  coupling", _coupling_words(document["couplable"])))
    steps = len(temporal["total"])
    for t in range(min(steps, _MOST_LISTED)):
        parts = [f"{name} {_shown(temporal[name][t])}" for name in ("cost", "backward", "forward", "total")]
        parts += [] if policy is None else [f"policy edges {_shown(policy['total'][t])}"]
        rows.append((f"  step {t + 1}", ", ".join(parts)))
    if steps > _MOST_LISTED:
        rows.append(("  more steps", f"{steps - _MOST_LISTED}, in --json"))
    return [one_line(document["subject"]), *aligned(rows)]


def _coupling_words(found: Mapping[str, Any]) -> str:
    """Whether the sum of epsilons is a bound for states too."""
    if found["holds"] is None:
        return "not checked: with --flat allow answers may exclude states"
    if found["holds"]:
        return "the model couples along the policy, so the policy leakage is at most the sum of epsilons too"
    far = "states that no number of edges joins" if found["hops"] is None else f"states {found['hops']:.0f} edges apart"
    return f"the model takes the ends of some edge to {far}: the sum of epsilons is no bound for states"


def leakage_ending(with_policy: bool) -> list[str]:
    """What the figures are."""
    return [f"{TEMPORAL} ({_TEMPORAL_PROOF})", *([f"{MEANING} ({PROOF})", COUPLING] if with_policy else [])]


def _listed(values: FloatArray) -> list[float | None]:
    return [bounded(value) for value in values.tolist()]


def _shown(value: float | None) -> str:
    return "unbounded" if value is None else f"{value:.6g}"
