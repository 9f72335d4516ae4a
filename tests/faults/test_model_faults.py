"""Bad and odd Markov models, 1-28: each is refused in one line, or accepted with its consequence in sight.

Fails if a wrong model gets through (its releases would hide a state among the wrong others), if a right one is
refused, or if a refusal does not say which row, what came and what was expected. A model comes as arrays and as a file;
files are forged so that their hash fits.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dphmm import MarkovModel, ReleaseSession, StateSpace, policy
from dphmm.storage import load_model, save_model
from faults.answers import Accepted, both_surfaces, refused
from faults.catalogue import command, fault, library
from faults.forging import model_members, npy, read_members, write_members, write_model
from faults.place import PAGES, RELEASE

NAN, INF = float("nan"), float("inf")
FAIR = [[0.5, 0.5], [0.5, 0.5]]
CYCLE = [[0, 1], [1, 0]]


def three(row, values):
    """Three states that move anywhere, with one row replaced."""
    rows = [[0.5, 0.25, 0.25] for _ in range(3)]
    rows[row] = values
    return rows


def model(initial, transition, **given):
    return lambda place: MarkovModel(initial, transition, **given)


def model_file(initial, transition, more="", **given):
    """A forged file, and a command that reads it."""

    def make(place):
        write_model(place / "bad.npz", initial, transition, **given)
        return f"plan --details bad.npz {more}"

    return make


def model_file_with(**members):
    """A forged file of fair coins with some members replaced."""

    def make(place):
        contents = model_members([0.5, 0.5], FAIR) | {f"{name}.npy": data for name, data in members.items()}
        write_members(place / "bad.npz", contents)
        return "plan --details bad.npz"

    return make


def notes(*said):
    """The model's notes are these and no others."""

    def check(found):
        assert len(found.notes) == len(said), found.notes
        assert [(part, note) for part, note in zip(said, found.notes, strict=True) if part not in note] == [], (
            found.notes
        )

    return Accepted(check)


def printed(*said):
    return Accepted(lambda result, place: all(part in result.stdout for part in said))


def both(initial, transition, answer, **given):
    """The same model as arrays and as a file, with the same answer."""
    return library(model(initial, transition), answer), command(model_file(initial, transition, **given), answer)


def session(chain, graph=None, answers=None, **options):
    n = chain.n_states
    graph = policy.complete(n) if graph is None else graph
    return ReleaseSession(chain, graph, StateSpace(np.arange(n) if answers is None else answers), 1, **options)


def supports(chain, steps):
    """The states that are possible at each step."""
    walked = session(chain)
    found = []
    for _ in range(steps):
        found.append(np.flatnonzero(walked.support).tolist())
        walked.skip()
    return found


def two_answers_of(chain, **options):
    """Releases about two true states whose plan has one state: they must not differ."""
    releases = [session(chain, **options).release(state) for state in (0, 1)]
    assert all(release.constant and release.cost == 0 and release.epsilon == 0 for release in releases)
    assert releases[0].z.tolist() == releases[1].z.tolist()


def without_the_edge(place):
    """The bodies of a policy with an edge to a state that nothing reaches, and without it."""
    chain = MarkovModel([0, 1, 0, 0], [[0, 1, 0, 0], [0, 0.5, 0.25, 0.25], [0, 0, 0.5, 0.5], [0, 0.5, 0, 0.5]])
    bodies = [
        session(chain, policy.from_edges(edges, 4), [9, 0, 1, 3]).plan.hull.digest
        for edges in ([(1, 2), (2, 3), (0, 1)], [(1, 2), (2, 3)])
    ]
    assert bodies[0] == bodies[1]
    return chain


def swapped_names(place):
    """The town's policy under a model whose states come in another order."""
    found = place.pages
    other = StateSpace(found.space.answers, found.space.names[::-1])
    save_model(MarkovModel(found.initial, found.transition, space=other), place / "bad.npz")
    return PAGES.replace("pages.npz", "bad.npz")


def named(names):
    return lambda place: StateSpace(np.arange(len(names)), names)


def release_of_formulas(place):
    text = "user,state\n" + "".join(f"u,{name}\n" for name in ("=cmd()", "@x", "=cmd()", "@x"))
    place.write("formulas.csv", text)
    place.done("fit formulas.csv -o f.npz --state-column state")
    place.done("policy complete f.npz -o f.json")
    return "release formulas.csv --model f.npz --policy f.json --epsilon 1 -o out --ledger l.db --yes"


def escaped(result, place):
    named = {row["z"] for row in place.rows()}
    assert named and named <= {"'=cmd()", "'@x"}


def set_aside_names(place):
    names = ["a\x07b", "a\u202eb", "a" * 10_000, "fine", "other"]
    place.write("odd.csv", "user,state\n" + "".join(f"u,{name}\n" for name in names))
    return "fit odd.csv -o m.npz --state-column state"


def another_chain(place):
    """A history of the pages' model, continued with another one on the same states."""
    place.done(PAGES)
    found = place.pages
    n = found.n_states
    save_model(MarkovModel(found.initial, np.full((n, n), 1 / n), space=found.space), place / "bad.npz")
    return PAGES.replace("pages.npz", "bad.npz")


def resumed_with_another(place):
    from dphmm.accounting import MemoryLedger

    ledger = MemoryLedger()
    space, graph = StateSpace([0, 1]), policy.complete(2)
    ReleaseSession(MarkovModel([1, 0], FAIR), graph, space, 1, subject="a", ledger=ledger).release(0)
    ReleaseSession.resume(ledger, "a", MarkovModel([1, 0], CYCLE), graph, space)


def broken(kind, position, value):
    matrix = kind(np.eye(2))
    matrix.indices[position] = value
    return matrix


def cut_short(place):
    place.write("bad.npz", (place / "model.npz").read_bytes()[:1500])
    return "plan --details bad.npz"


def changed(place):
    members = read_members(place / "pages.npz")
    members["initial.npy"] = npy(np.array([1.0, 0, 0, 0]))
    write_members(place / "bad.npz", members, sha256="0" * 64)
    return "plan --details bad.npz"


def loaded(make):
    def load(place):
        make(place)
        place.inputs.add("bad.npz")
        return load_model(place / "bad.npz")

    return load


def subnormal(found):
    assert found.reach([0]).tolist() == [True, True]
    assert supports(found, 2) == [[0, 1], [0, 1]]


def single_precision(found):
    assert found.transition.sum(axis=1) == pytest.approx([1, 1], abs=1e-15)


def canonical(found):
    assert found.transition.toarray().tolist() == [[0.75, 0.25], [0, 1]]
    assert found.n_transitions == 3 and found.reach([1]).tolist() == [False, True]


SPARSE = sparse.coo_array(([0.5, 0.25, 0.25, 0.0, 1.0], ([0, 0, 0, 1, 1], [0, 1, 0, 0, 1])), shape=(2, 2))

FAULTS = [
    fault(
        1, "a row of the transition matrix that sums to 0.98", "refused: the row and its sum",
        *both([1, 0, 0], three(1, [0.5, 0.25, 0.23]), refused("transition[1]", "row sum 0.98", "a sum of 1")),
        library(model([1, 0, 0], three(2, [0.5, 0.25, 0.25 + 3e-9])), refused("transition[2]", "1.000000003")),
    ),
    fault(
        2, "a row that sums to 1 + 1e-12", "accepted, divided by its sum once; a note says so",
        library(model([1, 0], [[0.5, 0.5 + 1e-12], [0.5, 0.5]]), notes("1 row of the transition matrix rescaled")),
        command(model_file([1, 0], [[0.5, 0.5 + 1e-12], [0.5, 0.5]]), printed("1 row of the transition matrix")),
    ),
    fault(
        3, "a probability a little below 0, such as -1e-17", "refused: the entry; never clipped",
        *both([1, 0, 0], three(2, [1.0, -1e-17, 0.0]), refused("transition[2, 1]", "-1e-17")),
        library(model([1, 0], np.float32([[1, 0], [-1e-30, 1]])), refused("transition[1, 0]", "e-30")),
        library(model([1, 0], [[3, 1], [1, 1]]), refused("transition[0, 0]", "got 3", "at most 1")),
    ),
    fault(
        4, "NaN in the transition matrix", "refused: the entry",
        *both([1, 0, 0], three(0, [NAN, 0.5, 0.5]), refused("transition[0, 0]", "nan")),
    ),
    fault(
        5, "an infinity in the transition matrix, or 1e308", "refused: the entry",
        *both([1, 0, 0], three(1, [0.5, INF, 0.5]), refused("transition[1, 1]", "inf")),
        *both([1, 0, 0], three(1, [0.5, 0.5, -INF]), refused("transition[1, 2]", "-inf")),
        library(model([1, 0, 0], three(1, [1e308, 1e308, 1e308])), refused("transition[1, 0]", "1e+308")),
    ),
    fault(
        6, "a row of zeros", "refused, with what an absorbing state looks like",
        *both([1, 0, 0], three(2, [0, 0, 0]), refused("transition[2]", "zeros", "transition[2, 2] = 1")),
    ),
    fault(
        7, "an absorbing state", "accepted; a note says that a support inside it never grows again",
        library(model([1, 0], [[0.5, 0.5], [0, 1]]), notes("1 absorbing state (1): a support inside them never grows")),
        command(model_file([1, 0], [[0.5, 0.5], [0, 1]]), printed("1 absorbing state (1): a support")),
    ),
    fault(
        8, "the identity as transition matrix, from a known start",
        "accepted with notes; the answer is a public constant of cost 0, the same whatever the truth",
        library(model([1, 0], np.eye(2)), notes("every state is absorbing", "2 closed classes", "1 state (1)")),
        library(model([1, 0], np.eye(2)), Accepted(two_answers_of)),
        command(model_file([1, 0], np.eye(2)), printed("every state is absorbing", "a known start stays known")),
    ),
    fault(
        9, "classes of states without a path between them", "accepted; a note counts them",
        library(model([0.5, 0, 0.5, 0], np.kron(np.eye(2), FAIR)), notes("2 closed classes")),
        command(model_file([0.5, 0, 0.5, 0], np.kron(np.eye(2), FAIR)), printed("2 closed classes")),
    ),
    fault(
        10, "a policy edge to a state that no path reaches", "accepted, noted; the edge changes no body",
        library(without_the_edge, notes("1 state (0) that no path from the initial distribution reaches")),
        command(model_file([0, 1, 0], three(0, [0, 1, 0])[:1] + [[0, 0.5, 0.5]] * 2), printed("1 state (0) that no")),
    ),
    fault(
        11, "a periodic chain", "accepted; the support alternates",
        library(model([1, 0], CYCLE), Accepted(lambda chain: supports(chain, 4) == [[1], [0], [1], [0]])),
        command(model_file([1, 0], CYCLE), printed("possible at start  1")),
    ),
    fault(
        12, "one state", "refused: there is nobody to hide among",
        *both([1.0], [[1.0]], refused("transition", "1 state", "no other state to hide among")),
    ),
    fault(
        13, "no state", "refused",
        library(model([], []), refused("transition", "0 states")),
        library(model([], np.zeros((0, 0))), refused("transition", "0 states")),
        library(model([], [[]]), refused("transition", "0 states")),
        command(
            model_file_with(indptr=npy(np.zeros(1, np.int32)), indices=npy(np.zeros(0, np.int32)), data=npy([])),
            refused("transition", "0 states"),
        ),
    ),
    fault(
        14, "two states", "works",
        library(
            lambda place: session(MarkovModel([0.5, 0.5], FAIR)).release(1),
            Accepted(lambda release: release.epsilon == 1 and not release.constant),
        ),
        command(model_file([0.5, 0.5], FAIR), printed("states          2")),
    ),
    fault(
        15, "a matrix that is not square, ragged, or of another size than the initial distribution",
        "refused: the shape",
        library(model([1, 0], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]), refused("transition", "shape (2, 3)", "square")),
        library(model([1, 0], [[0.5, 0.5], [1.0]]), refused("transition", "different lengths")),
        library(model([1, 0], [1.0, 0.0]), refused("transition", "shape (2,)", "square")),
        library(model([1, 0], np.full((2, 2, 2), 0.5)), refused("transition", "shape (2, 2, 2)")),
        library(model([1, 0], sparse.csr_array((2, 3))), refused("transition", "shape (2, 3)")),
        command(model_file_with(indices=npy(np.int32([0, 1, 0, 2]))), refused("transition", "broken sparse")),
        command(model_file_with(indices=npy([0.5] * 4)), refused("bad.npz", "no sparse matrix")),
        command(model_file([1, 0, 0], FAIR), refused("initial", "shape (3,)", "(2,)")),
    ),
    fault(
        16, "states in another order than the model's", "refused: the space or policy is another model's",
        library(
            lambda place: ReleaseSession(
                MarkovModel([0.5, 0.5], FAIR, space=StateSpace([0, 1], ["a", "b"])),
                policy.complete(2), StateSpace([0, 1], ["b", "a"]), 1,
            ),
            refused("space", "state 0 called 'b'", "same order"),
        ),
        command(swapped_names, refused("policy", "made for another model's states", "dphmm policy")),
    ),
    fault(
        17, "two states of one name", "refused: the second one",
        library(named(["a", "b", "a"]), refused("names[2]", "a", "other than that of state 0")),
        command(model_file([1, 0], FAIR, names=["a", "a"]), refused("names[1]", "other than that of state 0")),
    ),
    fault(
        18, "names of states with control characters or text-direction marks, of 10,000 characters, or formulas",
        "refused in a model; rows of such names are set aside; a formula is a name, escaped wherever it is written",
        library(named(["a\0", "b"]), refused("names[0]", r"'a\x00'", "no control characters")),
        library(named(["a", "b\nc"]), refused("names[1]", "no control characters")),
        library(named(["a", "b\u202ec"]), refused("names[1]", r"\u202e", "text-direction marks")),
        library(named(["a", "b" * 10_000]), refused("names[1]", "10000 characters", "1 to 200")),
        library(named(["=cmd", "b"]), Accepted(lambda space: space.names == ("=cmd", "b"))),
        command(model_file([1, 0], FAIR, names=["a", "b\x07"]), refused("names[1]", "no control characters")),
        command(release_of_formulas, Accepted(escaped)),
        command(set_aside_names, Accepted(lambda result, place: "3 missing_state" in result.stderr, exit_code=3)),
    ),
    fault(
        19, "an initial distribution that sums to 0.9, is negative, NaN, all zeros, or of a wrong shape or type",
        "refused: its sum or entry",
        *both([0.5, 0.4], FAIR, refused("initial", "sum 0.9")),
        *both([0.0, 0.0], FAIR, refused("initial", "sum 0")),
        *both([1.0, -1e-17], FAIR, refused("initial[1]", "-1e-17")),
        *both([NAN, 1.0], FAIR, refused("initial[0]", "nan")),
        *both([INF, 1.0], FAIR, refused("initial[0]", "inf")),
        *both([1, 0, 0], FAIR, refused("initial", "shape (3,)", "(2,)")),
        *both([[1], [0]], FAIR, refused("initial", "shape (2, 1)")),
        *both(["1", "0"], FAIR, refused("initial", "dtype")),
        *both([True, False], FAIR, refused("initial", "dtype bool")),
        library(model([[1], [0, 1]], FAIR), refused("initial", "different lengths")),
    ),
    fault(
        20, "a start that is known for certain", "a public constant at that time; ordinary after one move",
        library(model([1, 0], FAIR, start="at"), Accepted(two_answers_of)),
        library(
            lambda place: session(MarkovModel([1, 0], FAIR)).release(0),
            Accepted(lambda release: not release.constant and release.epsilon == 1),
        ),
        library(model([0, 1], FAIR), notes()),
        command(model_file([0, 1], FAIR), printed("possible at start  1")),
    ),
    fault(
        21, "a transition of probability 5e-324", "a possible move: nothing underflows it away",
        library(model([1, 0], [[1.0, 5e-324], [0.5, 0.5]]), Accepted(subnormal)),
        command(model_file([1, 0], [[1.0, 5e-324], [0.5, 0.5]]), printed("possible moves     4")),
    ),
    fault(
        22, "single precision whose rows sum to 1 ± 5e-7", "accepted within 1e-6 and rescaled; 2e-6 is refused",
        library(model([1, 0], np.float32([[0.5, 0.5 + 5e-7], [0.5, 0.5]])), Accepted(single_precision)),
        library(model([1, 0], np.full((2, 2), 0.5, np.float32) + np.float32(6e-8)), notes("2 rows")),
        *both([1, 0], np.float32([[0.5, 0.5 + 2e-6], [0.5, 0.5]]), refused("transition[0]", "within 1e-06")),
        library(model([1, 0], [[0.5, 0.5 + 5e-7], [0.5, 0.5]]), refused("transition[0]", "within 1e-09")),
    ),
    fault(
        23, "probabilities as objects, text, booleans, complex or half-precision numbers", "refused: the type",
        library(model([1, 0], np.array(FAIR, dtype=object)), refused("transition", "dtype object")),
        library(model([1, 0], [["1", "0"], ["0", "1"]]), refused("transition", "dtype <U1")),
        library(model([1, 0], np.eye(2, dtype=bool)), refused("transition", "dtype bool")),
        library(model([1, 0], sparse.csr_array(np.eye(2, dtype=bool))), refused("transition", "dtype bool")),
        library(model([1, 0], np.eye(2, dtype=complex)), refused("transition", "dtype complex128")),
        library(model([1, 0], np.eye(2, dtype=np.float16)), refused("transition", "dtype float16")),
        library(model([1, 0], None), refused("transition", "dtype object")),
        library(model([1, 0], np.ma.masked_equal(np.eye(2), 0)), refused("transition", "masked")),
        library(model([1, 0], CYCLE), notes()),
        command(model_file_with(data=npy(["1", "1", "1", "1"])), refused("transition", "dtype <U1")),
        command(model_file_with(data=npy([True] * 4)), refused("transition", "dtype bool")),
        command(model_file_with(data=npy(np.array([0.5] * 4, object), pickled=True)), refused("bad.npz", "no plain")),
    ),
    fault(
        24, "20,001 states as a dense matrix", "refused with its size and the sparse way",
        library(
            model([1], np.broadcast_to(0.0, (20_001, 20_001))), refused("transition", "20001", "3.2 GB", "scipy.sparse")
        ),
    ),
    fault(
        25, "a sparse matrix with stored zeros, repeated or broken entries",
        "made canonical: zeros are no moves; what is broken or hides a negative number is refused",
        library(model([1, 0], SPARSE), Accepted(canonical)),
        library(
            model([1, 0], sparse.coo_array(([0.6, -0.1, 0.5, 1.0], ([0, 0, 0, 1], [0, 0, 1, 0])), shape=(2, 2))),
            refused("transition[0, 0]", "-0.1"),
        ),
        library(model([1, 0], sparse.csr_array(np.array([[NAN, 1.0], [0, 1]]))), refused("transition[0, 0]")),
        library(
            model([1, 0], sparse.coo_array(([1.0, 0.0], ([0, 1], [1, 1])), shape=(2, 2))),
            refused("transition[1]", "zeros"),
        ),
        library(model([1, 0], broken(sparse.csr_array, 1, 7)), refused("transition", "broken sparse matrix")),
        library(model([1, 0], broken(sparse.csc_array, 1, -3)), refused("transition", "broken sparse matrix")),
        command(
            model_file_with(data=npy([1.0, 0.0, 0.5, 0.5]), indptr=npy(np.int32([0, 2, 4]))),
            printed("possible moves     3"),
        ),
        command(model_file_with(indptr=npy(np.int32([0, 9, 4]))), refused("transition", "broken sparse")),
    ),
    fault(
        26, "another model for a history that has begun", "refused: the model is not the history's",
        library(resumed_with_another, refused("model", "of the history")),
        command(another_chain, refused("-o", "a release under another model", in_ledger=False)),
    ),
    fault(
        27, "a model file cut short or changed", "refused, with the hash that was expected",
        library(loaded(cut_short), refused("bad.npz", "cannot be read as a model", "SHA-256", "cut short or changed")),
        library(loaded(changed), refused("bad.npz", "contents with SHA-256", "expected contents with SHA-256 0000")),
        command(cut_short, refused("bad.npz", "cannot be read as a model", "SHA-256", "cut short or changed")),
        command(changed, refused("bad.npz", "contents with SHA-256", "expected contents with SHA-256 0000")),
    ),
    fault(
        28, "a model learned from people without privacy", "accepted; note, warning and privacy statement say so",
        library(model([1, 0], FAIR, provenance={"private": False}), notes("fitted without privacy")),
        command(
            RELEASE,
            Accepted(
                lambda result, place: "warning: the model: Fitted without privacy" in result.stderr
                and place.document("out/released.csv.privacy.json")["model"]["private"] is False
            ),
        ),
    ),
]  # fmt: skip


test_in_the_library, test_on_the_command_line = both_surfaces(FAULTS)
