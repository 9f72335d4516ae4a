"""Bad and odd privacy parameters, 66-80: an exact number in range, or refused; and no cap is ever passed.

Fails if a parameter is read as another number than was written, if a sum of spends is less than what was spent, or if
a release is drawn that does not fit the cap.
"""

from __future__ import annotations

import contextlib
import shlex
from decimal import Decimal
from fractions import Fraction

import numpy as np

from commands import set_in
from dphmm import MarkovModel, ReleaseSession, ReplayBits, StateSpace, policy, release_many
from dphmm.accounting import MemoryLedger
from dphmm.statement.files import load_statement
from faults.answers import Accepted, Same, both_surfaces, over_budget, refused
from faults.catalogue import command, fault, library
from faults.place import PAGES, RELEASE

NAN, INF = float("nan"), float("inf")
FAIR = np.full((3, 3), 1 / 3)
NUMBER = "a number"


def session(epsilon=1, **options):
    return ReleaseSession(
        MarkovModel([0.5, 0.3, 0.2], FAIR), policy.complete(3), StateSpace([0, 1, 2]), epsilon, **options
    )


def epsilon(value):
    return lambda place: session(value).plan.epsilon


def option(value):
    return RELEASE.replace("--epsilon 1", f"--epsilon {value}")


def both(value, *words):
    """The same refusal of an epsilon as a number and as an option."""
    return library(epsilon(value), refused("epsilon", *words)), command(option(value), refused("--epsilon", *words))


def delta(value):
    return lambda place: session(constraint=f"delta={value}").plan.constraint.plan.sum()


def delta_zero_is_the_support(place):
    for constraint in ("support", "delta=0", "delta=0.0"):
        plan = session(constraint=constraint).plan
        yield plan.constraint.plan.tolist(), plan.hull.digest


def on_a_delta_set(place):
    """Three states of which a δ-set holds two: the third is released as one of them."""
    chain = MarkovModel([0.5, 0.4, 0.1], np.tile([0.5, 0.4, 0.1], (3, 1)))
    graph = policy.from_edges([(0, 2), (0, 1)], 3)
    return ReleaseSession(chain, graph, StateSpace([0, 1, 5]), 1, constraint="delta=0.2").plan


def pure(plan):
    """ε holds between all that were neighbours, also of the state outside the set: no δ is owed."""
    assert plan.constraint.plan.tolist() == [True, True, False]
    assert plan.promised == 1
    image = plan.image
    for a, b in ((0, 2), (0, 1)):
        assert plan.hull.norm(image[a] - image[b]) <= 1


def says_delta(result, place):
    statement = load_statement(place.folder / "out" / "released.csv")
    assert statement.constraint == "delta=0.05"
    assert "delta does not weaken the promise" in statement.sentence("constraint")


def within_caps(cap, each, steps):
    """Releases until the cap refuses; what was spent."""

    def call(place):
        running = session(each, cap_epsilon=cap, ledger=MemoryLedger())
        for _ in range(steps):
            running.release(0)
        return running

    return call


def many(cap):
    def call(place):
        table = {"user": ["u"] * 60, "state": ["alpha"] * 60}
        import pandas as pd

        graph = policy.complete(4)
        return release_many(pd.DataFrame(table), place.pages, graph, place.pages.space, 1, cap_epsilon=cap)

    return call


def rounded_up(place):
    """Spends of 1e-12 of cost: each counts as at least 1e-9."""
    from dphmm.accounting.budget import EMPTY

    account = EMPTY
    for _ in range(10**5):
        account = account.plus(Fraction(1, 2**20), Fraction(1, 10**12))
    return account


def all_counted(account):
    assert account.nanos == 10**5
    assert account.spent.cost == Fraction(1, 10_000) and account.epsilon == Fraction(10**5, 2**20)


def resumed_over_the_cap(place):
    """Three releases of 0.1 fit a cap of 0.3; a fourth row does not."""
    lines = (place / "visits.csv").read_text().splitlines()
    place.write("visits.csv", "\n".join(lines[:4]) + "\n")
    first = PAGES.replace("--epsilon 1", "--epsilon 0.1") + " --cap-epsilon 0.3"
    place.done(first)
    place.write("visits.csv", "\n".join(lines[:5]) + "\n")
    return first


def nothing_more(result, place):
    from dphmm.storage.ledger import open_ledger

    assert result.stderr.count("cap_epsilon") + result.stderr.count("--cap-epsilon") >= 1
    with open_ledger(place / "l.db") as ledger:
        assert ledger.spent("v0").epsilon == Fraction(3, 10)


def key_twice(place):
    text = (place / "pages.json").read_text()
    place.write("bad.json", text.replace('"format": 1', '"format": 1, "format": 1'))
    return PAGES.replace("pages.json", "bad.json")


def of_constraint(constraint):
    """A release under a policy's file that has this constraint beside it."""

    def line(place):
        with contextlib.chdir(place / "."):
            return shlex.join(set_in(shlex.split(RELEASE), constraint=constraint))

    return line


def replayable(place):
    ledger = MemoryLedger()
    running = session(bits=ReplayBits(1), subject="a", ledger=ledger)
    release = running.release(0)
    return release, ledger.entries("a", "state")[0]


FAULTS = [
    fault(66, "an epsilon of 0", "refused", *both(0, "got 0", "greater than 0")),
    fault(67, "an epsilon below 0", "refused", *both(-1, "got -1", "greater than 0")),
    fault(
        68, "an epsilon that is NaN or infinite", "refused",
        library(epsilon(NAN), refused("epsilon", "got nan", "a finite number")),
        library(epsilon(INF), refused("epsilon", "got inf", "a finite number")),
        command(option("nan"), refused("--epsilon", "got nan", NUMBER)),
        command(option("inf"), refused("--epsilon", "got inf", NUMBER)),
        library(epsilon(Decimal("NaN")), refused("epsilon", "NaN", "finite")),
    ),
    fault(
        69, "an epsilon of 5e-324 or 1e-300", "refused: below 2**-20 nothing is sampled",
        *both(1e-300, "got 1e-300", "2**-20"), *both(5e-324, "got 5e-324", "2**-20"),
        library(epsilon(Fraction(1, 2**20)), Accepted(lambda found: found == Fraction(1, 2**20))),
    ),
    fault(
        70, "an epsilon of 1e18, or of 5,000 digits", "refused: at most 2**10",
        *both(1e18, "got 1e+18", "2**10"),
        library(epsilon(10**5000), refused("epsilon", "too many digits to print", "2**10")),
        command(option("1" * 5000), refused("--epsilon", "got 1111", NUMBER)),
    ),
    fault(
        71, "an epsilon that is True, a text, a Decimal, or digits of another script",
        "a plain decimal counts as what it says, whoever writes it; anything else is refused",
        library(epsilon("0.1"), Accepted(lambda found: found == Fraction(1, 10))),
        library(epsilon(0.1), Accepted(lambda found: found == Fraction(1, 10))),
        library(epsilon(Decimal("0.1")), Accepted(lambda found: found == Fraction(1, 10))),
        library(epsilon(np.float32(0.1)), Accepted(lambda found: found == Fraction(1, 10))),
        library(epsilon(True), refused("epsilon", "True", NUMBER)),
        library(epsilon(np.True_), refused("epsilon", "True", NUMBER)),
        library(epsilon(None), refused("epsilon", "None", NUMBER)),
        library(epsilon(1j), refused("epsilon", "1j", NUMBER)),
        library(epsilon("\u0661\u0662"), refused("epsilon", "\u0661\u0662", NUMBER)),
        *both("1_000", "got 1_000", NUMBER), *both("1e", "got 1e", NUMBER), *both("0x1", "got 0x1", NUMBER),
        command(option("\u0661\u0662"), refused("--epsilon", NUMBER)),
        command(option("True"), refused("--epsilon", "True", NUMBER)),
        command(RELEASE.replace("--epsilon 1 ", ""), refused("--epsilon", "got nothing")),
    ),
    fault(72, "a delta of 0", "the support itself", library(delta_zero_is_the_support, Same(3))),
    fault(
        73, "a delta of 1, below 0 or no number", "refused",
        library(delta(1), refused("delta", "got 1", "from 0 to below 1")),
        library(delta(-0.1), refused("delta", "got -0.1", "from 0 to below 1")),
        library(delta("nan"), refused("delta", "got nan")),
        command(of_constraint("delta=1"), refused("constraint delta", "got 1", "from 0 to below 1")),
        command(of_constraint("delta=-0.1"), refused("constraint delta", "got -0.1")),
        command(of_constraint("all"), refused("constraint", "got all", "support or delta=0.01")),
    ),
    fault(
        74, "a plan on fewer states than are possible, and a promise without a delta",
        "right: the policy is contracted, every edge keeps epsilon; the statement names the set and says why",
        library(on_a_delta_set, Accepted(pure)),
        command(of_constraint("delta=0.05"), Accepted(says_delta)),
    ),
    fault(
        75, "a list of epsilons, one per step", "refused: every release has one promise",
        library(epsilon([1, 1]), refused("epsilon", "[1, 1]", NUMBER)),
        library(epsilon(np.array([1.0, 2.0])), refused("epsilon", "array", NUMBER)),
        command(option("1,0.5"), refused("--epsilon", "got 1,0.5", NUMBER)),
    ),
    fault(
        76, "a batch whose sum of epsilons would pass the cap",
        "refused before anything is drawn: what is needed, spent and allowed",
        library(many("57"), over_budget("cap_epsilon", "needs 60 for 60 rows", "spent 0 of 57", "nothing was")),
        library(within_caps(2, 1, 3), over_budget("epsilon", "requested 1", "spent 2", "remaining 0", "cap 2")),
        command(RELEASE + " --cap-epsilon 3", over_budget("--cap-epsilon", "needs 4", "spent 0 of 3", "nothing was")),
        command(RELEASE + " --cap-cost -1", refused("--cap-cost", "-1", "0 or more")),
        command(RELEASE + " --cap-cost 1e9999", refused("--cap-cost", "a very long fraction")),
    ),
    fault(77, "a hundred thousand tiny spends", "each is rounded up to 1e-9 of cost; epsilon is summed exactly",
          library(rounded_up, Accepted(all_counted))),
    fault(
        78, "a cap of 0.3 and releases of 0.1", "three fit exactly, a fourth does not",
        library(within_caps(0.3, 0.1, 3), Accepted(lambda running: running.spent.epsilon == Fraction(3, 10))),
        library(within_caps(0.3, 0.1, 4), over_budget("epsilon", "requested 0.1", "spent 0.3", "remaining 0")),
        command(
            lambda place: resumed_over_the_cap(place), Accepted(nothing_more, exit_code=1)
        ),
    ),
    fault(
        79, "a JSON file with a key twice", "refused: the key",
        command(key_twice, refused("JSON", "the key 'format' twice", "each key once")),
        command(
            lambda place: str(place.write("g.json", '{"nodes": [], "edges": [], "nodes": []}') and
                              "policy edges pages.npz --graph g.json -o p.json"),
            refused("JSON", "the key 'nodes' twice"),
        ),
    ),
    fault(
        80, "a seed given by the user", "no release takes one; replayable bits mark the release and its record",
        command(RELEASE + " --seed 1", refused("--seed", "no option")),
        library(lambda place: session(bits=42), refused("bits", "int", "system bits")),
        library(
            replayable, Accepted(lambda found: not found[0].secure and not found[1].secure)
        ),
        library(lambda place: session().release(0), Accepted(lambda release: release.secure)),
    ),
]  # fmt: skip


test_in_the_library, test_on_the_command_line = both_surfaces(FAULTS)
