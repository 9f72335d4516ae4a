"""Several queries of one subject: joint beliefs and joint smoothing against sums over all paths."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import InvalidInput
from dphmm.policy import complete, from_edges
from dphmm.release.decoding import published_of
from dphmm.samplers.entropy import ReplayBits
from dphmm.session.believing import DOUBT
from dphmm.session.odds import path_loss
from dphmm.session.own_places import public_base
from dphmm.session.setting import Setting
from dphmm.session.smoothing import Smoother
from dphmm.storage.released import released_rows

MATRIX = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.7, 0.2, 0], [0.3, 0, 0.4, 0.3], [0.05, 0.05, 0.3, 0.6]])
START = np.array([0.4, 0.3, 0.2, 0.1])
#: State 3 has no edge: both queries hide it behind one partner.
POLICIES = {"complete": complete(4), "one alone": from_edges([(0, 1), (1, 2)], 4)}
TRUTH = [0, 1, 2, 3]


def model(space):
    return dphmm.MarkovModel(START, MATRIX, start="at")


def world(policy):
    """A ledger with two queries about one subject, the second with other answers, steps and epsilon."""
    spaces = {
        "where": dphmm.StateSpace([0, 1, 3, 6], ["a", "b", "c", "d"]),
        "what": dphmm.StateSpace.labels(list("abcd")),
    }
    ledger, bits = MemoryLedger(), ReplayBits(f"joint {policy}".encode())
    tables = {}
    for query, epsilon, steps in (("where", 1, (1, 2, 4)), ("what", 2, (2, 3))):
        session = dphmm.ReleaseSession(
            *(model(spaces[query]), POLICIES[policy], spaces[query], epsilon),
            ledger=ledger, subject="a", query=query, bits=bits,
        )  # fmt: skip
        rows = []
        for step in range(1, max(steps) + 1):
            if step not in steps:
                session.skip()
                continue
            release = session.release(TRUTH[step - 1])
            z = {"z": release.z} if query == "what" else {"z_0": float(release.z[0])}
            rows.append({"user": "a", "step": step, **z, "epsilon": float(epsilon), "plan": release.plan_hash})
        tables[query] = pd.DataFrame(rows)
    return ledger, spaces, tables


def likelihoods(ledger, spaces, policy):
    """Of each step the likelihood of every state, from the laws of the recorded plans."""
    found = {step: np.ones(4) for step in range(1, 5)}
    for query, space in spaces.items():
        header = ledger.header("a", query)
        setting = Setting.read(header.options, model(space), POLICIES[policy], space, query)
        for entry in ledger.entries("a", query):
            if entry.z is not None:
                plan = setting.made_again(np.ones(4, dtype=np.bool_), ledger.plan(entry.plan_hash))
                assert plan.hash == entry.plan_hash
                found[entry.t] = found[entry.t] * np.exp(plan.log_likelihood(np.array(entry.z)))
    return found


def weights(seen, last, start=START, matrix=MATRIX):
    """Of every path up to a step the joint probability with all that was answered, up to a constant."""
    found = {}
    for path in itertools.product(range(4), repeat=last):
        p = start[path[0]] * math.prod(matrix[a, b] for a, b in itertools.pairwise(path))
        found[path] = p * math.prod(seen[step + 1][state] for step, state in enumerate(path))
    return found


def marginal(found, step):
    p = np.zeros(4)
    for path, weight in found.items():
        p[path[step - 1]] += weight
    return p / p.sum()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_joint_belief_is_a_sum_over_all_paths(policy):
    ledger, spaces, _ = world(policy)
    seen = likelihoods(ledger, spaces, policy)
    for last in range(1, 5):
        belief = dphmm.session.joint_belief(ledger, "a", model(spaces["what"]), POLICIES[policy], spaces, t=last)
        assert belief.probability == pytest.approx(marginal(weights(seen, last), last), rel=1e-9)
    whole = dphmm.session.joint_belief(ledger, "a", model(spaces["what"]), POLICIES[policy], spaces)
    assert whole.probability == pytest.approx(marginal(weights(seen, 4), 4), rel=1e-9)
    later = dphmm.session.joint_belief(ledger, "a", model(spaces["what"]), POLICIES[policy], spaces, t=6)
    assert later.probability == pytest.approx(whole.probability @ MATRIX @ MATRIX, rel=1e-9)
    # Another model reads the same answers, and moves with a jump beside its own moves.
    other = dphmm.MarkovModel(START[::-1].copy(), MATRIX[::-1, ::-1].copy(), start="at")
    dense = (1 - DOUBT) * other.matrix.toarray() + DOUBT * public_base(model(None))
    told = model(spaces["what"]), POLICIES[policy], spaces
    for last in range(1, 5):
        belief = dphmm.session.joint_belief(ledger, "a", *told, t=last, believe=other)
        assert belief.probability == pytest.approx(marginal(weights(seen, last, START[::-1], dense), last), rel=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("first", ["where", "what"])
def test_joint_smoothing_is_a_sum_over_all_paths_whichever_file_comes_first(policy, first):
    ledger, spaces, tables = world(policy)
    second = "what" if first == "where" else "where"
    found = weights(likelihoods(ledger, spaces, policy), 4)
    public = (model(spaces[first]), POLICIES[policy], spaces[first])
    choices = {"beside": [dphmm.reconstruction.OtherQuery(tables[second], space=spaces[second])], "progress": False}
    smoothed = dphmm.reconstruction.smooth(tables[first], *public, path=True, marginals=True, **choices)
    likeliest = max(found, key=found.get)
    assert smoothed.step.tolist() == tables[first].step.tolist()
    for row in smoothed.itertuples():
        exact = marginal(found, row.step)
        assert np.array(row.marginals) == pytest.approx(exact, rel=1e-9)
        assert row.smoothed == "abcd"[int(exact.argmax())] and row.path == "abcd"[likeliest[row.step - 1]]


@pytest.mark.parametrize("policy", POLICIES)
def test_odds_and_path_losses_count_all_queries(policy):
    """The odds of an event against sums over all paths; its loss is within the cost of all answers."""
    ledger, spaces, tables = world(policy)
    found = weights(likelihoods(ledger, spaces, policy), 4)
    space = spaces["where"]
    given = (tables["where"], model(space), POLICIES[policy], space)
    other = dphmm.reconstruction.OtherQuery(tables["what"], space=spaces["what"])
    (both,) = dphmm.reconstruction.event_odds(*given, [1, 2], 2, 3, beside=[other])
    (alone,) = dphmm.reconstruction.event_odds(*given, [1, 2], 2, 3)
    happened = sum(weight for path, weight in found.items() if {path[1], path[2]} & {1, 2}) / sum(found.values())
    assert both.posterior.probability == pytest.approx(happened, rel=1e-9)
    assert (both.answers, alone.answers) == (5, 3) and both.cost > alone.cost
    assert abs(both.loss) <= both.cost
    # Of two paths: the largest log-ratio of what was answered is within the bound, and the bound is that of all.
    settings = {
        query: Setting.of(model(spaces[query]), POLICIES[policy], spaces[query], epsilon)
        for query, epsilon in (("where", 1), ("what", 2))
    }
    smoothers = {query: Smoother(setting) for query, setting in settings.items()}
    rows = {query: released_rows(tables[query], spaces[query]) for query in tables}
    told = {
        query: published_of(rows[query], "a", np.arange(len(tables[query])), model(spaces[query])) for query in tables
    }
    seen = likelihoods(ledger, spaces, policy)
    for one, two in itertools.islice(itertools.combinations(itertools.product(range(4), repeat=4), 2), 0, None, 977):
        paths = np.array(one), np.array(two)
        bound = path_loss(smoothers["where"], told["where"], *paths, [(smoothers["what"], told["what"])])
        ratio = sum(math.log(seen[t][a] / seen[t][b]) for t, (a, b) in enumerate(zip(one, two, strict=True), start=1))
        assert abs(ratio) <= bound + 1e-9
        assert bound >= path_loss(smoothers["where"], told["where"], *paths)


def test_a_query_alone_is_smoothed_as_ever():
    _, spaces, tables = world("complete")
    space = spaces["where"]
    given = (tables["where"], model(space), POLICIES["complete"], space)
    alone = dphmm.reconstruction.smooth(*given, progress=False)
    nobody = tables["what"].assign(user="somebody else")
    beside = dphmm.reconstruction.smooth(
        *given, beside=[dphmm.reconstruction.OtherQuery(nobody, space=spaces["what"])], progress=False
    )
    assert alone.equals(beside)


def test_a_file_of_another_policy_is_refused():
    _, spaces, tables = world("one alone")
    space = spaces["where"]
    with pytest.raises(InvalidInput, match=r"step 1 of 'a': got an answer drawn under plan"):
        dphmm.reconstruction.smooth(
            *(tables["where"], model(space), POLICIES["complete"], space),
            beside=[dphmm.reconstruction.OtherQuery(tables["what"], space=spaces["what"])], progress=False,
        )  # fmt: skip


def test_the_second_query_s_file_alone_cannot_be_read_where_it_hides_behind_the_first_s_partner():
    """Its plan was made beside a partner that only the other file tells."""
    _, spaces, tables = world("one alone")
    space = spaces["what"]
    with pytest.raises(InvalidInput, match=r"or the subject has another query whose partners it shares"):
        dphmm.reconstruction.smooth(tables["what"], model(space), POLICIES["one alone"], space, progress=False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subject": "b"}, r"subject: got one that the ledger does not know"),
        ({"t": 0}, r"t: got 0; expected the number of a step, from 1"),
        ({"spaces": {}}, r"spaces: got none for the query 'what'; expected a space for every query"),
    ],
)
def test_what_cannot_be_told_is_refused(given, said):
    ledger, spaces, _ = world("complete")
    asked = {"subject": "a", "spaces": spaces, **given}
    with pytest.raises(InvalidInput, match=said):
        dphmm.session.joint_belief(
            ledger, asked["subject"], model(spaces["what"]), POLICIES["complete"], asked["spaces"], t=asked.get("t")
        )


def test_a_session_s_belief_knows_its_own_answers_alone():
    ledger, spaces, _ = world("complete")
    session = dphmm.ReleaseSession.resume(ledger, "a", model(spaces["what"]), complete(4), spaces["what"], query="what")
    both = dphmm.session.joint_belief(ledger, "a", model(spaces["what"]), complete(4), spaces, t=3)
    assert session.t == 4 and not np.allclose(session.posterior.probability, both.probability)
    assert json.dumps(session.posterior.probability.tolist())
