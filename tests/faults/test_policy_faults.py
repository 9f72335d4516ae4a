"""Bad and odd policies, 29-45: nothing of a graph is guessed, no edge is lost, and no state is left alone.

Fails if an edge that a file names is dropped or invented (two states that must not be told apart could be), if a
policy is used with states it was not made for, or if a state that no edge protects is released unprotected.
"""

from __future__ import annotations

import json
import math

import networkx
import numpy as np
from scipy import sparse

from dphmm import MarkovModel, ReleaseSession, StateSpace, policy
from dphmm.accounting import MemoryLedger
from dphmm.sensitivity import exposed_states, protectable_graph, sensitivity_hull
from dphmm.storage import load_policy, save_policy
from faults.answers import Accepted, Same, both_surfaces, refused
from faults.catalogue import command, fault, library
from faults.forging import write_model
from faults.place import PAGES, RELEASE

NAN = float("nan")
FAIR = np.full((2, 2), 0.5)
#: Two pairs of states; the difference within both pairs is the same, so the hull is a line in the plane.
SQUARE, PAIRS = [[0, 0], [1, 0], [0, 3], [1, 3]], [(0, 1), (2, 3)]
PAGE_EDGES = ("alpha,beta", "beta,gamma", "gamma,delta")


def uniform(n):
    return MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))


def session(graph, answers, **options):
    return ReleaseSession(uniform(graph.n_states), graph, StateSpace(answers), 1, **options)


def graph_file(name, text):
    """A graph file, and the command that reads it."""

    def make(place):
        place.write(name, text)
        return f"policy edges pages.npz --graph {name} -o p.json"

    return make


def edge_list(*lines):
    return graph_file("g.csv", "".join(f"{line}\n" for line in lines))


def node_link(edges, **more):
    names = ("alpha", "beta", "gamma", "delta")
    return graph_file("g.json", json.dumps({"nodes": [{"id": name} for name in names], "edges": edges, **more}))


def edges_written(*pairs):
    """The policy file that the command wrote has these edges."""

    def check(result, place):
        found = place.document("p.json")["parameters"]["edges"]
        assert found == [list(pair) for pair in pairs], found

    return check


def said(*words, edges=()):
    def check(result, place):
        assert [word for word in words if word not in result.stderr] == [], result.stderr
        edges_written(*edges)(result, place)

    return Accepted(check)


def loop_protects_nothing(graph):
    assert graph.edges().tolist() == [[0, 1]]
    assert "1 edges from a state to itself were dropped" in graph.notes[0]
    assert exposed_states(graph, [0, 1, 9]).tolist() == [2]


def everybody_is_joined(graph):
    answers = [[0, 0], [1, 0], [0, 2], [3, 3]]
    assert exposed_states(graph, answers).tolist() == [0, 1, 2, 3]
    plan = session(graph, answers).plan
    assert set(plan.joins.ravel().tolist()) == {0, 1, 2, 3}
    assert plan.cost >= plan.epsilon
    protected = protectable_graph(graph, answers)
    assert exposed_states(protected, answers).tolist() == []


def empty_policy(place):
    place.write("g.csv", "source,target\n")
    place.done("policy edges pages.npz --graph g.csv -o p.json")
    return PAGES.replace("pages.json", "p.json")


def joined_and_told(result, place):
    assert "planned states are exposed by the policy" in result.stderr
    assert float(place.rows()[0]["cost"]) >= 1


def edge_outside(place):
    """With state 2 impossible, an edge to it is inactive: state 1 hides with nobody."""
    graph = policy.from_edges([(0, 1), (1, 2)], 3)
    assert graph.edges([0, 1]).tolist() == [[0, 1]]
    assert graph.neighbors(2, [0, 1]).tolist() == []
    alone = policy.from_edges([(1, 2)], 3)
    return exposed_states(alone, [0, 5, 6], [0, 1]).tolist()


def twins(place):
    """Two states of each answer: differences are 0, yet the release must not tell one pair from the other."""
    plan = session(policy.from_edges(PAIRS, 4), [0, 0, 7, 7]).plan
    assert plan.hull.rank == 1 and not plan.constant
    return plan


def square(place):
    """A model on four places, and a policy whose hull there is a line."""
    write_model(place / "square.npz", [0.25] * 4, np.full((4, 4), 0.25), answers=SQUARE, names=list("abcd"))
    place.write("lines.csv", "a,b\nc,d\n")
    place.done("policy edges square.npz --graph lines.csv -o lines.json")
    place.write("places.csv", "user,state\nu,a\nu,d\n")
    files = "places.csv --model square.npz --policy lines.json"
    return f"release {files} --epsilon 1 -o out --ledger l.db --yes"


def thickened(plan):
    """No release can exclude a state: the body has full rank."""
    assert plan.hull.rank == 2


def resumed_under(graph):
    def call(place):
        ledger, space = MemoryLedger(), StateSpace([0, 1, 2])
        kept = ReleaseSession(uniform(3), policy.complete(3), space, 1, subject="a", ledger=ledger).release(0)
        again = ReleaseSession.resume(ledger, "a", uniform(3), graph, space)
        return kept.z.tolist(), again.release(2, t=1).z.tolist()

    return call


def another_policy(place):
    place.done(RELEASE)
    return RELEASE.replace("radius.json", "complete.json")


def for_another_space(place):
    save_policy(policy.complete(2), place / "p.json", StateSpace([0, 1]))
    place.inputs.add("p.json")
    return load_policy(place / "p.json", space=StateSpace([0, 2]))


def permuted(place):
    """One graph, told in five orders."""
    edges = np.array([(0, 1), (1, 2), (0, 3), (2, 4)])
    orders = [edges, edges[::-1], edges[:, ::-1], np.roll(edges, 2, axis=0), np.concatenate([edges, edges])]
    answers = [[0, 0], [1, 5], [2, 2], [9, 1], [4, 4], [30, 3]]
    for order in orders:
        yield session(policy.from_edges(order, 6), answers).plan.hash


def permuted_files(place):
    place.write("g.csv", "".join(f"{line}\n" for line in PAGE_EDGES))
    place.write("h.csv", "".join(f"{b},{a}\n" for a, b in (line.split(",") for line in PAGE_EDGES[::-1])))
    place.done("policy edges pages.npz --graph h.csv -o q.json")
    return "policy edges pages.npz --graph g.csv -o p.json"


def ties(place):
    """State 2 is as far from 1 as from 3, and 4 from nobody else: the lowest number is taken, every time."""
    for _ in range(3):
        yield protectable_graph(policy.from_edges([(0, 4)], 5), [0, 1, 5, 9, 100]).edges().tolist()


def not_with_itself(graph):
    """Nearest to an exposed state is that state itself; it must be joined to another."""
    protected = protectable_graph(graph, [0, 1, 50])
    assert [1, 2] in protected.edges().tolist()
    assert [(a, b) for a, b in protected.edges() if a == b] == []


FAULTS = [
    fault(
        29, "an edge from a state to itself", "dropped, with a note: it protects nothing",
        library(lambda place: policy.from_edges([(0, 1), (2, 2)], 3), Accepted(loop_protects_nothing)),
        command(edge_list("alpha,beta", "gamma,gamma"), said("1 edges from a state to itself", edges=[(0, 1)])),
    ),
    fault(
        30, "an edge with a state that there is not", "refused: the edge and the name",
        library(lambda place: policy.from_edges([(0, 1), (1, 7)], 3), refused("edges[1]", "(1, 7)", "0 to 2")),
        library(lambda place: policy.from_edges([(0, -1)], 3), refused("edges[0]", "(0, -1)")),
        command(edge_list("alpha,beta", "beta,nowhere"), refused("row 2", "nowhere", "a state name")),
        command(node_link([{"source": "alpha", "target": "nowhere"}]), refused("edges[0]", "nowhere")),
    ),
    fault(
        31, "a policy without edges", "every state is exposed and joined to another; the cost is told",
        library(lambda place: policy.from_edges([], 4), Accepted(everybody_is_joined)),
        command(edge_list("source,target"), said("4 of 4 states have no neighbour")),
        command(empty_policy, Accepted(joined_and_told)),
    ),
    fault(
        32, "the same edge twice, in either direction", "one edge",
        library(
            lambda place: policy.from_edges([(0, 1), (1, 0), (0, 1)], 2),
            Accepted(lambda graph: graph.edges().tolist() == [[0, 1]] and not graph.notes),
        ),
        command(edge_list("alpha,beta", "beta,alpha", "alpha,beta"), said(edges=[(0, 1)])),
    ),
    fault(
        33, "a directed edge without its opposite", "refused: the first such pair; no triangle of a matrix is ignored",
        library(lambda place: policy.from_adjacency([[0, 1], [0, 0]]), refused("adjacency", "(0, 1) without (1, 0)")),
        library(
            lambda place: policy.from_networkx(networkx.DiGraph([(0, 1)]), 2), refused("graph", "(0, 1) without (1, 0)")
        ),
        command(
            node_link([{"source": "alpha", "target": "beta"}], directed=True), refused("graph", "(0, 1) without (1, 0)")
        ),
    ),
    fault(
        34, "edges with weights, or NaN", "refused: the edge; a policy has no weights",
        library(lambda place: policy.from_adjacency([[0, 0.5], [0.5, 0]]), refused("adjacency[0, 1]", "0.5", "0 or 1")),
        library(lambda place: policy.from_adjacency([[0, NAN], [NAN, 0]]), refused("adjacency[0, 1]", "nan", "0 or 1")),
        library(
            lambda place: policy.from_adjacency(sparse.csr_array([[0, 2], [2, 0]])),
            refused("adjacency[0, 1]", "2", "0 or 1"),
        ),
        command(
            node_link([{"source": "alpha", "target": "beta", "weight": 2}]), refused("edges[0]", "weight 2", "has none")
        ),
        command(edge_list("alpha,beta,0.5"), refused("row 1", "3 columns", "a policy has no weights")),
    ),
    fault(
        35, "an edge to a state that is not possible at the time", "inactive then: the state counts as exposed",
        library(edge_outside, Accepted(lambda exposed: exposed == [0, 1])),
    ),
    fault(
        36, "a complete policy on 2,000 states", "works, without listing two million edges",
        library(
            lambda place: sensitivity_hull(policy.complete(2000), [[k % 50, k // 50] for k in range(2000)]),
            Accepted(lambda hull: hull.volume == 4 * 49 * 39),
        ),
    ),
    fault(
        37, "policy neighbours that all have the same answer as each other, in a space where others differ",
        "the body would be a point: it is widened in every direction",
        library(twins, Accepted(lambda plan: plan.cost > plan.epsilon)),
    ),
    fault(
        38, "components of the policy whose differences lie along one line",
        "the body is widened to all directions",
        library(lambda place: session(policy.from_edges(PAIRS, 4), SQUARE).plan, Accepted(thickened)),
        command(square, Accepted(lambda result, place: len(place.rows()) == 2)),
    ),
    fault(
        39, "another policy for a history that has begun", "refused; a stored answer comes back under the old one",
        library(resumed_under(policy.from_edges([(0, 1)], 3)), refused("policy", "of the history")),
        library(resumed_under(policy.complete(3)), Accepted(lambda answers: answers[0] == answers[1])),
        command(another_policy, refused("-o", "a release under another policy")),
    ),
    fault(
        40, "a radius of 0, below 0 or NaN", "refused",
        library(lambda place: policy.radius([0, 1], 0), refused("r", "got 0", "greater than 0")),
        library(lambda place: policy.radius([0, 1], -1), refused("r", "got -1", "greater than 0")),
        library(lambda place: policy.radius([0, 1], NAN), refused("r", "got nan", "finite")),
        command("policy radius model.npz -o p.json --radius 0m", refused("--radius", "got 0m", "more than 0")),
        command("policy radius model.npz -o p.json --radius -1km", refused("--radius", "-1km")),
        command("policy radius model.npz -o p.json --radius 1", refused("--radius", "got 1", "m or km: 340m or 1km")),
        command("policy radius pages.npz -o p.json --radius 1km", refused("--radius", "got 1km", "answer units")),
    ),
    fault(
        41, "an infinite radius", "the complete policy",
        library(
            lambda place: policy.radius([0, 1, 5], math.inf),
            Accepted(lambda graph: graph.digest == policy.complete(3).digest),
        ),
    ),
    fault(
        42, "a policy that was made for other states", "refused: both hashes",
        library(for_another_space, refused("space", "one with hash", "the policy's, with hash")),
        command(RELEASE.replace("radius.json", "pages.json"), refused("policy", "pages.json", "another model's")),
        command(
            "plan --details pages.npz --policy radius.json", refused("policy", "radius.json", "another model's states")
        ),
        command(
            "policy union model.npz pages.json radius.json -o p.json", refused("policy", "pages.json", "another model")
        ),
    ),
    fault(
        43, "the same policy with its edges in another order", "the same plan, the same file",
        library(permuted, Same(5)),
        command(
            permuted_files,
            Accepted(lambda result, place: (place / "p.json").read_bytes() == (place / "q.json").read_bytes()),
        ),
    ),
    fault(
        44, "an exposed state with two nearest others", "joined to the one of the lowest number, every time",
        library(ties, Same(3)),
        library(
            lambda place: protectable_graph(policy.from_edges([(0, 4)], 5), [0, 1, 5, 9, 100]).edges().tolist(),
            Accepted(lambda edges: edges == [[0, 4]]),
        ),
    ),
    fault(
        45, "an exposed state whose nearest state is itself", "joined to another one, never to itself",
        library(lambda place: policy.from_edges([(0, 1)], 3), Accepted(not_with_itself)),
    ),
]  # fmt: skip


test_in_the_library, test_on_the_command_line = both_surfaces(FAULTS)
