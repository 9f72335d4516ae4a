"""dphmm account: what a ledger says has been spent, and what learning a model cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.account_everybody import NOBODY, Everybody, guarantee_document
from dphmm.cli.console import aligned, print_json
from dphmm.cli.options import CONTEXT, made_table
from dphmm.cli.outcomes import one_line
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.accounting.composition import Guarantee
    from dphmm.accounting.ledger import QuerySummary, SubjectSummary
    from dphmm.accounting.promise import SequencePromise

_INSECURE = "releases were drawn from replayable bits: whoever has the seed can undo them, so they promise nothing"


@click.command("account", context_settings=CONTEXT)
@click.argument("ledger", metavar="[LEDGER]", required=False)
@click.option("--subject", metavar="NAME", help="One subject only.")
@click.option("--model", metavar="M", help="Also what learning this model cost the people it was learned from.")
@click.option("--temporal", is_flag=True, help="With --model: what all releases together say about each step.")
@click.option("--policy", metavar="P", help="With --temporal: also about the edges of this policy.")
@made_table
@click.option("--delta", metavar="D", help="Where rho terms are converted, once.  [default: that of the ledger]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def account(
    ledger: str | None,
    subject: str | None,
    model: str | None,
    temporal: bool,
    policy: str | None,
    mechanism: str | None,
    delta: str | None,
    as_json: bool,
) -> None:
    """Print what has been spent, per subject and query and at most, and which theorem each total is of.

    With --model, also or only, the guarantee under which a model (hidden or not) was learned, and with a ledger
    what both lose together. With --temporal, M is the
    model of the releases: also the temporal leakage of each subject's releases, and with --policy their policy leakage.
    Users' names are in a ledger; nobody's states are. Where fits and queries are stored there too, also what one person
    loses in them and in the releases together: where the path is replaced, and of whether the person is there.
    """
    from dphmm.cli.account_leakage import leakage_documents, leakage_ending, leakage_lines
    from dphmm.cli.account_model import model_document, model_lines
    from dphmm.storage.learned import LEDGER_COSTS, learning_document

    if ledger is None and (model is None or subject is not None):
        raise InvalidInput("LEDGER", "nothing", "a ledger file, or --model M alone")
    if temporal and (ledger is None or model is None):
        raise InvalidInput("--temporal", "no ledger, or no --model", "LEDGER and --model M, the model of its releases")
    if policy is not None and not temporal:
        raise InvalidInput("--policy", policy, "--temporal with it")
    if mechanism is not None and policy is None:
        raise InvalidInput("--mechanism", "a table", "--temporal and --policy with it: totals are in the ledger")
    # A model that cannot be read is refused before anything is printed.
    learned, event = (None, None) if model is None else model_document(model)
    if delta is not None and ledger is None:
        raise InvalidInput("--delta", delta, "a ledger with it")
    subjects, account = ([], NOBODY) if ledger is None else _summaries(ledger, subject, delta)
    if learned is not None and event is not None and subjects:
        learned["learning"] = learning_document(event, _largest(subjects)[1].value, LEDGER_COSTS)
    leaks: list[dict[str, Any]] = []
    if temporal and ledger is not None and model is not None:
        leaks = leakage_documents(ledger, [summary.subject for summary in subjects], model, policy)
    if as_json:
        document: dict[str, Any] = {}
        if ledger is not None:
            documents = [_subject_document(summary, account) for summary in subjects]
            document = {"ledger": ledger, "subjects": documents, "totals": _totals_document(subjects)}
            document |= account.document()
        if temporal:
            document["leakage"] = {"subjects": leaks, "statements": leakage_ending(policy is not None)}
        print_json(document if learned is None else {**document, "model": learned})
        return
    lines = [] if ledger is None else [*(line for each in subjects for line in _lines(each)), *_ending(subjects)]
    lines += account.lines([(each.subject, each.epsilon.value) for each in subjects])
    if temporal:
        lines += [*(line for each in leaks for line in leakage_lines(each)), *leakage_ending(policy is not None)]
    for line in (*lines, *model_lines(learned, event)):
        click.echo(line)


def _summaries(ledger: str, subject: str | None, delta: str | None) -> tuple[list[SubjectSummary], Everybody]:
    from dphmm._checks import exact_number
    from dphmm.accounting.composition import check_delta
    from dphmm.accounting.ledger import summarise_ledger
    from dphmm.accounting.publication import DELTA
    from dphmm.storage.ledger import open_ledger

    # Opening a ledger would make one.
    if not Path(ledger).is_file():
        raise InvalidInput("LEDGER", ledger, "an existing ledger file")
    if Path(ledger).stat().st_size == 0:
        raise InvalidInput("LEDGER", f"{ledger}, which is empty", "a ledger that dphmm release has written")
    with open_ledger(ledger, read_only=True) as opened:
        subjects, facts = summarise_ledger(opened, subject), opened.facts()
        at = facts.get("delta", DELTA) if delta is None else check_delta(exact_number(delta, "--delta"), "--delta")
        account = Everybody(opened.publications(), opened.groups(), facts.get("cap_epsilon"), at)
    if subject is not None and not subjects:
        raise InvalidInput("--subject", subject, "a subject of this ledger")
    return list(subjects), account


def _ending(subjects: Sequence[SubjectSummary]) -> list[str]:
    """The ledger as a whole, and what the figures are."""
    from dphmm.accounting.ledger import COST_STATEMENT, EPSILON_STATEMENT, OWN_POLICIES

    counts = _counted(subjects)
    said = f"{counts['subjects']} subjects, {counts['releases']} releases, {counts['skips']} skips"
    if not subjects:
        return [said]
    epsilon, cost = _largest(subjects)
    own = any(OWN_POLICIES in summary.epsilon.statement for summary in subjects)
    return [
        f"{said}; most of any one subject: epsilon {_shown(epsilon)}, cost {_shown(cost)}",
        f"epsilon: {EPSILON_STATEMENT} ({epsilon.citation})",
        *([f"choices: {OWN_POLICIES} (docs/proofs/choices.md)"] if own else []),
        f"cost: {COST_STATEMENT} ({cost.citation})",
    ]


def _counted(subjects: Sequence[SubjectSummary]) -> dict[str, int]:
    queries = [query for summary in subjects for query in summary.queries]
    names = ("releases", "skips", "constants", "insecure")
    return {"subjects": len(subjects)} | {name: sum(getattr(query, name) for query in queries) for name in names}


def _largest(subjects: Sequence[SubjectSummary]) -> tuple[Guarantee, Guarantee]:
    """The largest epsilon, and the largest cost: different people's losses are not added."""
    return (
        max((summary.epsilon for summary in subjects), key=lambda total: total.value),
        max((summary.cost for summary in subjects), key=lambda total: total.value),
    )


def _lines(summary: SubjectSummary) -> list[str]:
    from dphmm.accounting.records import in_short

    rows = [(f"  {one_line(query.query)}", _counts(query) + _totals(query)) for query in summary.queries]
    if len(summary.queries) > 1:
        rows.append(("  all queries", _totals(summary)))
    lines = [one_line(summary.subject), *aligned(rows)]
    for what, cap in (("epsilon", summary.caps.epsilon), ("cost", summary.caps.cost)):
        if cap is not None:
            lines.append(f"  capped: no release takes the sum of {what}s of all queries above {in_short(cap)}")
    if summary.caps.promise is not None:
        lines.append(f"  promised: {summary.caps.promise.sentence()} All queries share it")
    if (horizon := summary.caps.horizon) is not None:
        query = one_line(horizon.query)
        lines.append(
            f"  horizon: a total was worked out for {horizon.steps} steps of {query} alone; no other is released"
        )
    if summary.insecure:
        lines.append(f"  warning: {summary.insecure} {_INSECURE}")
    if summary.reason:
        lines.append(f"  the cost is unbounded: {summary.reason}")
    return lines


def _counts(query: QuerySummary) -> str:
    constants = f" ({query.constants} of a public constant)" if query.constants else ""
    return f"{query.releases} releases{constants}, {query.skips} skips, "


def _totals(summary: QuerySummary | SubjectSummary) -> str:
    return f"epsilon {_shown(summary.epsilon)}, cost {_shown(summary.cost)}"


def _shown(total: Guarantee) -> str:
    from dphmm.accounting.records import in_short

    return in_short(total.value)


def _totals_document(subjects: Sequence[SubjectSummary]) -> dict[str, Any]:
    counts: dict[str, Any] = _counted(subjects)
    if subjects:
        epsilon, cost = _largest(subjects)
        counts |= {"largest_epsilon": guarantee_document(epsilon), "largest_cost": guarantee_document(cost)}
    return counts


def _subject_document(summary: SubjectSummary, account: Everybody) -> dict[str, Any]:
    return {
        "subject": summary.subject,
        "epsilon": guarantee_document(summary.epsilon),
        "cost": guarantee_document(summary.cost),
        "unbounded_because": summary.reason,
        "cap_epsilon": None if summary.caps.epsilon is None else str(summary.caps.epsilon),
        "cap_cost": None if summary.caps.cost is None else str(summary.caps.cost),
        "promise": None if summary.caps.promise is None else _promise_document(summary.caps.promise),
        "horizon": None if summary.caps.horizon is None else vars(summary.caps.horizon),
        "with_publications": account.of_person(summary.epsilon.value),
        "insecure_releases": summary.insecure,
        "queries": [
            {
                "query": query.query,
                "releases": query.releases,
                "skips": query.skips,
                "constants": query.constants,
                "insecure": query.insecure,
                "epsilon": guarantee_document(query.epsilon),
                "cost": guarantee_document(query.cost),
                "unbounded_because": query.reason,
            }
            for query in summary.queries
        ],
    }


def _promise_document(promise: SequencePromise) -> dict[str, Any]:
    """A promise over paths for machines, in steps; ``passed`` steps of the first block lie before step 1."""
    lengths = {"steps": promise.steps, "window": promise.window, "per": promise.per, "passed": promise.passed}
    return {"over": "paths", "total": str(promise.exact), **lengths, "statement": promise.sentence()}
