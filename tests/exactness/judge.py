"""One instance, played and judged."""

from __future__ import annotations

from exactness import support
from exactness.case import Case
from exactness.check_body import check_body
from exactness.check_histories import check_histories
from exactness.check_likelihood import check_likelihood
from exactness.check_points import check_points
from exactness.check_promise import check_promise
from exactness.features import features
from exactness.findings import Findings
from exactness.instances import Instance
from exactness.play import Play
from exactness.required_pairs import policy_edges


def judge(instance: Instance) -> Findings:
    """All checks of all plans of an instance. A refusal by the library is counted under its reason."""
    from dphmm.errors import InvalidInput, Refused

    findings = Findings()
    findings.counts["instances"] = 1
    try:
        play = Play.of(instance)
        _judge_steps(play, findings)
    except (InvalidInput, Refused) as refusal:
        findings.refusals[_reason(refusal)] += 1
    return findings


def _reason(refusal: Exception) -> str:
    text = " ".join("#" if any(c.isdigit() for c in word) else word for word in str(refusal).split())
    return f"{type(refusal).__name__}: {text[:90]}"


def _judge_steps(play: Play, findings: Findings) -> None:
    instance = play.instance
    edges = policy_edges(instance.policy, instance, play.spaces[instance.queries[0].name])
    possible = {query.name: support.at_first(instance, query) for query in instance.queries}
    reached = dict.fromkeys(possible, 1)
    cases = []
    for step in play.steps():
        name = step.query.name
        while reached[name] < step.t:
            possible[name], reached[name] = support.reach(instance, possible[name]), reached[name] + 1
        case = Case(instance, step, edges, support.hidden(instance, possible[name]))
        findings.counts["plans"] += 1
        findings.features.update(features(case))
        check_promise(case, findings)
        check_body(case, findings)
        check_likelihood(case, findings)
        if instance.tiny:
            check_points(case, findings)
            cases.append(case)
        left = support.left_by(case)
        possible[name] = left if instance.secrets is None else possible[name] & left[instance.secrets]
    if cases:
        check_histories(play, cases, findings)
