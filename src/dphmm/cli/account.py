"""dphmm account: the spending in a ledger, the leakage of its releases, and the cost of learning a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.accounting.event import LearningEvent, NotPrivateEvent, learning_event
from dphmm.accounting.ledger import (
    COST_STATEMENT,
    EPSILON_STATEMENT,
    OWN_POLICIES,
    LedgerSummary,
    ledger_summary,
)
from dphmm.accounting.records import in_short
from dphmm.cli.console import Console, Row, aligned, fields_named, one_line, print_json
from dphmm.cli.guarantees import guarantee_rows, published_rows, together_row
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.options import loaded_model, loaded_policy, loaded_setting
from dphmm.errors import InvalidInput
from dphmm.storage.table_ledger import opened_to_read

if TYPE_CHECKING:
    from dphmm._progress import Progress
    from dphmm.accounting.event import Guarantee
    from dphmm.accounting.ledger import QuerySummary, SubjectSummary
    from dphmm.accounting.publication import PersonTotals, Publication

_INSECURE = "releases were drawn from replayable bits: whoever has the seed can undo them, so they promise nothing"
#: Steps are listed up to here; the document has all.
_MOST_LISTED = 50
#: And subjects; of more those who spent most.
_MOST_SUBJECTS = 20
_TEMPORAL = (
    "temporal leakage: how far apart (log-ratio) any two possible states of a step can be for an adversary who has "
    "seen all answers, backward through the step, forward from it, and in total; upper bounds, from the cost of each "
    "step"
)
_COUPLING = (
    "coupling: whether every move of the two ends of a policy edge can be matched along the policy, forwards and "
    "backwards (docs/proofs/couplings.md)"
)
_TEMPORAL_PROOF = "docs/proofs/temporal-leakage.md"
#: How the noise was made, beside the parts themselves: public choices that a file keeps.
_CHOICES = ("order", "starts")
#: Arguments of the leakage, as options.
_LEAKAGE_FIELDS = {"model": "--model", "policy": "--policy", "subjects": "--temporal", "ledger": "LEDGER"}


@click.command("account", cls=Command, context_settings=CONTEXT)
@click.argument("ledger", metavar="[LEDGER]", required=False)
@click.option("--subject", metavar="NAME", help="One subject only.")
@click.option("--model", metavar="M", help="Also what learning this model cost the people it was learned from.")
@click.option("--temporal", is_flag=True, help="With --model: what all releases together say about each step.")
@click.option("--policy", metavar="P", help="With --temporal: also about the edges of this policy.")
@click.option("--delta", metavar="D", help="Where rho terms are converted, once.  [default: that of the ledger]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def account(
    ledger: str | None,
    subject: str | None,
    model: str | None,
    temporal: bool,
    policy: str | None,
    delta: str | None,
    as_json: bool,
) -> None:
    """Print the spending of each subject and query, the largest total, and the theorem behind each total.

    With --model, also or only, the guarantee under which a model (hidden or not) was learned, and with a ledger
    what both lose together. With --temporal, M is the
    model of the releases: also the temporal leakage of each subject's releases, and with --policy their policy leakage.
    LEDGER is a ledger file, or the folder of a release table, which is the ledger of its rows.
    Users' names are in a ledger; nobody's states are. Where fits and queries are stored there too, also what one person
    loses in them and in the releases together: where the path is replaced, and of whether the person is there.
    """
    from dphmm.statement.learning import Learning
    from dphmm.statement.parts import document as facts

    if ledger is None and (model is None or subject is not None):
        raise InvalidInput("LEDGER", "nothing", "a ledger file, or --model M alone")
    if temporal and (ledger is None or model is None):
        raise InvalidInput("--temporal", "no ledger, or no --model", "LEDGER and --model M, the model of its releases")
    if policy is not None and not temporal:
        raise InvalidInput("--policy", policy, "--temporal with it")
    # A model that cannot be read is refused before anything is printed.
    learned, event = (None, None) if model is None else _model_document(model)
    if delta is not None and ledger is None:
        raise InvalidInput("--delta", delta, "a ledger with it")
    spent, lines = LedgerSummary(), list[str]()
    if ledger is not None:
        with opened_to_read(ledger, "LEDGER") as opened, fields_named({"subject": "--subject", "delta": "--delta"}):
            spent = ledger_summary(opened, subject, delta)
        lines = [line for each in _listed(spent) for line in _lines(each)]
        if others := len(spent.subjects) - len(_listed(spent)):
            lines.append(f"and {others:,} others, who spent no more: --subject NAME, or --json for all")
        lines += _ending(spent)
    if learned is not None and event is not None and spent.subjects:
        cost = spent.largest()[1].value
        assert isinstance(cost, Fraction)
        learned["learning"] = Learning.of(event, cost)
    leaks: list[dict[str, Any]] = []
    lines += _shared_lines(spent)
    if temporal and ledger is not None and model is not None:
        subjects = [summary.subject for summary in spent.subjects]
        with Console().progress("leakage") as progress:

            def told(done: int, total: int) -> None:
                if done == 0:
                    # What is known at once is not kept waiting for the leakage.
                    for line in [] if as_json else lines:
                        click.echo(line)
                if progress is not None:
                    progress(done, total)

            leaks = _leakage(ledger, subjects, model, policy, told)
    if as_json:
        document: dict[str, Any] = {} if ledger is None else {"ledger": ledger, **spent.document()}
        if temporal:
            document["leakage"] = {"subjects": leaks, "statements": _leakage_ending(policy is not None)}
        if learned is not None:
            learning = learned["learning"]
            document["model"] = {**learned, "learning": None if learning is None else facts(learning)}
        print_json(document)
        return
    if temporal:
        lines = _most_leaked(leaks)
        listed = leaks if len(leaks) == 1 else []
        lines += [*(line for each in listed for line in _leakage_lines(each)), *_leakage_ending(policy is not None)]
    for line in (*lines, *_model_lines(learned, event)):
        click.echo(line)


def _listed(found: LedgerSummary) -> list[SubjectSummary]:
    """The subjects that are listed."""
    if len(found.subjects) <= _MOST_SUBJECTS:
        return list(found.subjects)
    return sorted(found.subjects, key=lambda each: -each.epsilon.value)[:_MOST_SUBJECTS]


def _ending(found: LedgerSummary) -> list[str]:
    """The ledger as a whole, and what the figures are."""

    counts = found.counts()
    said = f"{counts['subjects']} subjects, {counts['releases']} releases, {counts['skips']} skips"
    if not found.subjects:
        return [said]
    epsilon, cost = found.largest()
    own_policies = any(OWN_POLICIES in summary.epsilon.statement for summary in found.subjects)
    return [
        f"{said}; most of any one subject: epsilon {_shown(epsilon)}, cost {_shown(cost)}",
        f"epsilon: {EPSILON_STATEMENT} ({epsilon.citation})",
        *([f"choices: {OWN_POLICIES} (docs/proofs/choices.md)"] if own_policies else []),
        f"cost: {COST_STATEMENT} ({cost.citation})",
    ]


def _lines(summary: SubjectSummary) -> list[str]:
    rows = [(f"  {one_line(query.query)}", _counts(query) + _totals(query)) for query in summary.queries]
    if len(summary.queries) > 1:
        rows.append(("  all queries", _totals(summary)))
    lines = [one_line(summary.subject), *aligned(rows)]
    for what, cap in (("epsilon", summary.caps.epsilon), ("cost", summary.caps.cost)):
        if cap is not None:
            lines.append(f"  capped: no release takes the sum of {what}s of all queries above {in_short(cap)}")
    if summary.caps.promise is not None:
        lines.append(f"  promised: {summary.caps.promise.sentence()} All queries share it")
    if summary.insecure:
        lines.append(f"  warning: {summary.insecure} {_INSECURE}")
    return lines


def _counts(query: QuerySummary) -> str:
    constants = f" ({query.constants} of a public constant)" if query.constants else ""
    return f"{query.releases} releases{constants}, {query.skips} skips, "


def _totals(summary: QuerySummary | SubjectSummary) -> str:
    return f"epsilon {_shown(summary.epsilon)}, cost {_shown(summary.cost)}"


def _shown(total: Guarantee) -> str:
    return in_short(total.value)


def _shared_lines(found: LedgerSummary) -> list[str]:
    """Every publication, what each subject loses in them and in its releases."""
    lines = []
    if found.publications:
        rows = [(f"  {one_line(each.name)}", _publication_words(each)) for each in found.publications]
        lines += [f"{len(rows)} publications about all persons:", *aligned(rows)]
        people = [(f"  {one_line(each.subject)}", found.totals_of(each.epsilon.value)) for each in _listed(found)]
        people.append(("  anybody else", found.totals_of(Fraction(0))))
        lines += ["with them, of one person who is replaced, and of whether the person is there:"]
        lines += aligned([(name, f"{_lost(of.replaced, of.replaced_delta)}; {_there(of)}") for name, of in people])
        last = people[0][1] if found.subjects else people[-1][1]
        lines += [f"replaced: {last.replaced.statement} ({last.replaced.citation})"]
        lines += [f"there: {last.present.statement} ({last.present.citation})"]
    if found.cap is not None:
        lines.append(f"capped: no publication takes what all of them lose of one person above {in_short(found.cap)}")
    return lines


def _lost(guarantee: Guarantee, delta: Fraction) -> str:
    return in_short(guarantee.value) + (f", delta {float(delta):.3g}" if delta else "")


def _there(found: PersonTotals) -> str:
    return _lost(found.present, found.present_delta)


def _publication_words(one: Publication) -> str:
    if one.relation is None:
        return f"{one.kind}: promises nothing"
    numbers = (("epsilon", one.epsilon), ("rho", one.rho), ("delta", one.delta))
    lost = ", ".join(f"{name} {in_short(value)}" for name, value in numbers if value is not None)
    units = "nobody has said how many of a person" if one.units is None else f"at most {one.units} of a person"
    return f"{one.kind}: {lost} to {one.relation} {one_line(one.unit)}, {units}"


def _leakage(
    ledger: str, subjects: Sequence[str], model: str, policy: str | None, progress: Progress
) -> list[dict[str, Any]]:
    """The leakage of subjects of a ledger, under the model (and policy) that they were released under."""
    from dphmm.audit.leakage import subject_leakage

    chain, space = loaded_model(model)
    edges, space = (None, space) if policy is None else loaded_policy(policy, chain)
    # A made table that the policy names is known from here on.
    loaded_setting(policy, space)
    with opened_to_read(ledger) as opened, fields_named(_LEAKAGE_FIELDS):
        return subject_leakage(opened, subjects, chain, edges, space, progress=progress)


def _most_leaked(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """The largest of all subjects, where there are several."""
    if len(documents) < 2:
        return []
    parts = []
    for name, words in (("temporal", "temporal leakage"), ("policy", "policy leakage")):
        worst = [each[name]["worst"] for each in documents if name in each]
        if worst:
            most = None if None in worst else max(worst)
            parts.append((words, f"at most {_number(most)} at any step of any of {len(worst)} subjects"))
    return [*aligned(parts), "step by step: --subject NAME for one of them, --json for all"]


def _leakage_lines(document: Mapping[str, Any]) -> list[str]:
    """A subject for people."""
    temporal, policy = document["temporal"], document.get("policy")
    limit = _number(temporal["supremum"]) if temporal["supremum_known"] else "not known: the chain does not settle"
    rows: list[Row] = [
        ("  temporal leakage", f"at most {_number(temporal['worst'])} at any step; however long it goes on: {limit}")
    ]
    if policy is not None:
        rows.append(("  policy leakage", f"at most {_number(policy['worst'])} at any step; exact: no"))
        rows.append(("  coupling", _coupling_words(document["couplable"])))
    steps = len(temporal["total"])
    for t in range(min(steps, _MOST_LISTED)):
        parts = [f"{name} {_number(temporal[name][t])}" for name in ("cost", "backward", "forward", "total")]
        parts += [] if policy is None else [f"policy edges {_number(policy['total'][t])}"]
        rows.append((f"  step {t + 1}", ", ".join(parts)))
    if steps > _MOST_LISTED:
        rows.append(("  more steps", f"{steps - _MOST_LISTED}, in --json"))
    return [one_line(document["subject"]), *aligned(rows)]


def _coupling_words(found: Mapping[str, Any]) -> str:
    """The sentence on the sum of epsilons: a bound for states too, or none."""
    if found["holds"]:
        return "the model couples along the policy, so the policy leakage is at most the sum of epsilons too"
    far = "states that no number of edges joins" if found["hops"] is None else f"states {found['hops']:.0f} edges apart"
    return f"the model takes the ends of some edge to {far}: the sum of epsilons is no bound for states"


def _leakage_ending(with_policy: bool) -> list[str]:
    """The lines that explain the figures."""
    from dphmm.session.planned_losses import MEANING, PROOF

    return [f"{_TEMPORAL} ({_TEMPORAL_PROOF})", *([f"{MEANING} ({PROOF})", _COUPLING] if with_policy else [])]


def _number(value: float | None) -> str:
    return "unbounded" if value is None else f"{value:.6g}"


def _model_document(path: str) -> tuple[dict[str, Any], LearningEvent | None]:
    """The model's name, whether it was learned with privacy, and the guarantee or why there is none; and its event."""
    from dphmm.statement.learning import Learning, published_parts
    from dphmm.statement.origin import made_without_data

    provenance, event = _provenance(path)
    private = event if isinstance(event, LearningEvent) else None
    document = {
        "model": Path(path).name,
        "private": provenance.get("private"),
        "made_without_data": made_without_data(provenance),
        "method": str(provenance.get("method", "unknown")),
        "learning": None if private is None else Learning.of(private),
        "choices": {name: provenance[name] for name in _CHOICES if name in provenance},
        "published": [] if private is None else published_parts(private),
        "not_private_because": event.reason if isinstance(event, NotPrivateEvent) else None,
    }
    return document, private


def _model_lines(document: Mapping[str, Any] | None, event: LearningEvent | None) -> list[str]:
    """The same for people."""
    from dphmm.statement.learning import published_words

    if document is None:
        return []
    name = f"model {document['model']}"
    learning = document["learning"]
    if learning is not None and event is not None:
        rows = [
            *guarantee_rows(learning, covered=True),
            *published_rows(published_words(event), document["choices"]),
        ]
        if learning.together is not None:
            rows += [together_row(learning, ledger=True), ("costs", learning.both("costs", ledger=True))]
        lines = [f"{name}, learned with noise", *aligned(rows)]
        return lines if learning.private else [*lines, f"warning: {learning.sentence('replayable')}"]
    if document["private"] is False:
        because = document["not_private_because"] or "it was fitted without privacy"
        return [f"{name}: NO PRIVACY: {because}"]
    if document["private"] is True:
        return [f"{name}: says that it was learned with privacy, but no epsilon is recorded"]
    if document["made_without_data"]:
        return [
            f"{name}: made from geometry alone, as its file says; nobody's data is in it, so it cost nobody anything"
        ]
    return [f"{name}: given, not learned by dphmm; nothing is known of what it cost anybody"]


def _provenance(path: str) -> tuple[dict[str, Any], LearningEvent | NotPrivateEvent | None]:
    from dphmm.storage.hidden_models import holds_hidden_model, load_hidden_model
    from dphmm.storage.models import load_model

    if holds_hidden_model(path):
        with fields_named({"privacy": path}):
            hidden: Any = load_hidden_model(path)
        return hidden.provenance_, learning_event(hidden.provenance_)
    provenance = load_model(path).provenance
    return provenance, learning_event(provenance, path)
