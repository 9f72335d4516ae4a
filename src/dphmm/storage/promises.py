"""The sentences of a privacy statement: what is promised and what is not, nothing stronger than was proved.

Each sentence stands alone, so that a reader of any one member of the statement is not misled. Sources:
Definition 4.4 and Theorems 6.3 and 7.2 of the DPHMM paper, with errata 4, 5, 11, 19 and 21.

It also puts the distance that a policy covers into words and numbers, for statements, commands and pages.

Proof: docs/proofs/covered-distance.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from dphmm.accounting.event import LearningEvent, NotPrivateEvent
from dphmm.accounting.ledger import (
    COST_STATEMENT,
    EPSILON_STATEMENT,
    OWN_POLICIES,
)
from dphmm.accounting.promise import Schedule, SequencePromise
from dphmm.accounting.records import in_short
from dphmm.mechanisms import chosen_kind
from dphmm.policy import covered_distance
from dphmm.policy.constraint import Support
from dphmm.policy.graph import PolicyGraph
from dphmm.session.options import Options
from dphmm.states.space import StateSpace
from dphmm.storage.learned import NOBODY, Whom, learning_event
from dphmm.storage.statement_types import KEYED_WORDS, SYSTEM_WORDS, CoveredDistance, Promise, Verdict, document

DEFINITION = "{epsilon, G, C_t}-DPHMM"
SOURCE = "Definition 4.4 of Xiao et al., DPHMM (2016), where a state hides among others than itself"
UNIT = (
    "one release: the answer about one subject's state at one time step, given everything released about the "
    "subject before"
)
ASSUMED_PUBLIC = (
    "The model, its initial distribution, the policy, the answers of the states, the mechanism, the release "
    "times and all earlier releases are taken to be known to everybody."
)


def verdict(provenance: Mapping[str, Any], whom: Whom, replayable: int) -> Verdict:
    """Whether the released people have the promise: True, False, or "unknown" where needed facts were not given."""
    if not_private_because(provenance, whom, replayable):
        return False
    return "unknown" if unknown_because(provenance, whom, replayable) else True


def promise(
    options: Options, provenance: Mapping[str, Any], whom: Whom, replayable: int, varies: Sequence[str] = ()
) -> Promise:
    """The definition of each release, in words, and whether it holds for this file; ``varies``: by step."""
    against = not_private_because(provenance, whom, replayable)
    doubts = unknown_because(provenance, whom, replayable)
    first = [f"What follows does not hold for this file: {'; '.join(against)}."] if against else []
    first += [f"It is not known whether what follows holds for this file: {'; '.join(doubts)}."] if doubts else []
    return Promise(
        definition=DEFINITION,
        source=SOURCE,
        holds=verdict(provenance, whom, replayable),
        meaning=[*first, edge_promise(str(options.epsilon), varies), LONELY_PROMISE],
        assumes=f"{ASSUMED_PUBLIC} {_assumed_of_the_model(provenance, whom)}",
    )


def _assumed_of_the_model(provenance: Mapping[str, Any], whom: Whom) -> str:
    if provenance.get("private") is True:
        return (
            "The promise is about the answers, given the model: the model was learned with differential privacy, and "
            "what it says itself about people released is a loss of its own."
        )
    taken = "The model is taken to say nothing about the people released"
    if whom == NOBODY:
        return f"{taken}: it was made from geometry alone, without anybody's data, {_known(whom)}."
    return {
        "others": f"{taken}: it was made without their data, {_known(whom)}.",
        "same": f"{taken}, and it may: it was made from their data, {_known(whom)}.",
        "unknown": f"{taken}; whether it was made without their data is not known.",
    }[whom.people]


def _known(whom: Whom) -> str:
    """How it is known whom a model was fitted on."""
    if whom.known_by == "names":
        return {
            "others": "as far as user names tell: none released here is among those of the table it was fitted on (one "
            "person under two names would not be noticed)",
            "same": "as user names tell: at least one released here is among those of the table it was fitted on",
        }[whom.people]
    return {"file": "as the two tables are the same file", "model": "as its file says"}.get(
        str(whom.known_by), "as the data owner says"
    )


def edge_promise(epsilon: str, varies: Sequence[str] = ()) -> str:
    """What two states joined by the policy are promised; ``varies``: what steps may have of their own."""
    own = [name for name in ("epsilon", "policy") if name in varies]
    policy = "the step's policy" if "policy" in own else "the policy"
    factor = "exp(E)" if "epsilon" in own else f"exp({epsilon})"
    told = {
        "epsilon": f"E is {epsilon}, or the step's own epsilon as `varied` says",
        "policy": "the step's policy is `policy`, or its own as `varied` says",
    }
    return (
        f"Take any two states that share an edge of {policy} and that the public history leaves possible: "
        f"whatever was released before, each answer is at most a factor {factor} more likely from the "
        "one than from the other" + "".join(f"; {told[name]}" for name in own) + "."
    )


LONELY_PROMISE = (
    "A possible state without such an edge has another possible state that it is hidden with in the same "
    "way, unless all possible states have one and the same answer, which is then published as it is and "
    "says nothing."
)


_COUPLES = (
    "Under this model the paths through the two ends of a policy edge can be matched, step by step, with neighbouring "
    "ones: what answers tell of two such states of one step is at most the sum of these answers' epsilons, too "
    "(docs/proofs/couplings.md)."
)
_NOT_KNOWN_TO_COUPLE = (
    "This is no bound for what is learned of one step from the steps around it, where paths that leave the edges of "
    "the policy are likely: that is the policy leakage under the model (dphmm account --temporal --policy, which also "
    "says whether the model couples along the policy, so that it is a bound for this too)."
)


def sequence_words(promise: SequencePromise, holds: Verdict, couples: Verdict, varies: Sequence[str] = ()) -> list[str]:
    """What a promise over paths says of one subject, and what it does not; ``couples``: what is known of the model."""
    policy = "that step's policy" if "policy" in varies else "the policy"
    first = [] if holds is True else ["Whether this holds is said by `holds`, for the reasons beside `private`."]
    return [
        promise.sentence(),
        *first,
        "Two paths of a subject are neighbouring if at every step their two states are equal or hide each other: an "
        f"edge of {policy} joins them, or one is the partner that a release of that step gave the other; and both are "
        "possible given the model and everything released before.",
        "To lose at most E is to say that all answers of all queries of the subject together are at most a factor "
        "exp(E) more likely from the one path than from the other, whatever anybody knows of how people move.",
        "Any two possible paths lose at most the sum, over the steps that were answered, of what their two states of "
        "that step lose: a path twice as far away loses about twice as much.",
        _COUPLES if couples is True else _NOT_KNOWN_TO_COUPLE,
    ]


def schedule_words(schedule: Schedule) -> list[str]:
    """At which steps subjects were asked, and what the other rows are."""
    where = "of each block" if schedule.promise.per else "of each window" if schedule.promise.window else ""
    number = f"step{'s' * (len(schedule.at) > 1)} {schedule.document()['at']}"
    if schedule.kind == "planned":
        first = f"Subjects are asked at fixed public steps alone: {' '.join([number, where]).strip()}, from 1."
    else:
        first = (
            "At which steps a subject is asked follows from the model, public settings and what was published about "
            f"the subject before, never from where the subject is; at most {schedule.releases} times "
            f"{where or 'in all'}, at {number}."
        )
    return [
        first,
        "A row that is not asked has no answer: its estimate is what earlier answers and the model say, and costs "
        "nothing.",
    ]


def varied_words(names: Sequence[str], options: Options) -> list[str]:
    """What it means that steps were released under choices of their own."""
    hidden = "A state without an edge hides with the partner that was named for it"
    if not isinstance(options.constraint, Support):
        hidden += (
            " where the step plans on that state, and where the policy as it is contracted leaves it without an edge; "
            "else the state is answered as its surrogate, or hides with a neighbour there"
        )
    told = {
        "epsilon": "Each answer keeps the epsilon of its own step.",
        "policy": "Edges are those of the policy of the answer's own step: states that another step's policy joins are "
        "not hidden from each other there. The covered distance is the shortest of all these policies.",
        "partners": f"{hidden}.",
        "protection": "How a state without an edge finds a partner was chosen for each step.",
    }
    chosen = "What was chosen for a step follows from public data and earlier answers, never from where anybody is."
    return [chosen, *(told[name] for name in told if name in names)]


BEGINNINGS = [
    "Where these subjects begin is taken to be known to everybody, and is not protected.",
    "What others must not know of a beginning must not be in the public table.",
]


def merged_words(space: StateSpace) -> str:
    """What it means that states of a space are merged."""
    return (
        f"{len(space.merges)} of {space.n_states} states are answered as another state, their partner: the answer is "
        "exactly as likely from a merged state as from its partner, and says where the partner is."
    )


def answer_words(answer: str) -> str:
    """Which of several rows in one step is answered."""
    return (
        f"Of several rows of a subject in one step the {answer} in time is answered, and no other: which one that is "
        "depends on times and on the order of rows, which are taken to be public."
    )


def constraint_words(options: Options) -> str:
    """On which states a release is planned."""
    if isinstance(options.constraint, Support):
        return (
            "Releases are planned on the support: every state that the model and the subject's earlier "
            "releases leave possible."
        )
    return (
        "Releases are planned on a delta-set: the fewest possible states that hold 1 - delta of the prior. "
        "A state outside it is answered as its surrogate, the nearest state inside. The policy is "
        "contracted along that map, so that every policy edge among possible states keeps epsilon; delta "
        "does not weaken the promise."
    )


def noise_words(options: Options) -> str:
    """Which law answers each state."""
    return chosen_kind(options.mechanism).words.noise


def provenance_words(provenance: Mapping[str, Any], whom: Whom) -> str:
    """What the model's origin means for the promise."""
    event = learning_event(provenance)
    if provenance.get("private") is True:
        told = "Fitted with differential privacy: what the model itself loses about people adds to the releases."
        return told if event else f"{told} By how much is not recorded."
    known = "" if whom.people == "unknown" else _known(whom)
    if whom == NOBODY:
        return (
            f"Made from geometry alone, {known}: a box, its cells, a rule of moves and its numbers, all public. "
            "Nobody's data is in it, so it loses nothing about anybody; how well it fits decides errors alone."
        )
    if provenance.get("private") is not False:
        return (
            "Given, not fitted by dphmm: "
            + {
                "same": f"made from data of people released here, {known}. Nothing records that this was done with "
                "differential privacy, so the model may show their moves.",
                "others": f"made without data of the people released, {known}.",
                "unknown": "nothing says whose data it was made from. If people released here are among them, it "
                "may show their moves.",
            }[whom.people]
        )
    return (
        _why_not(event)
        + {
            "same": f"Fitted without privacy on the very people released here, or on some of them, {known}: no bound "
            "holds for them, because the model itself can show one person's move.",
            "others": f"Fitted without privacy on other people than those released, {known}: the promise to the "
            "released people stands, and those it was fitted on have no protection from the model.",
            "unknown": "Fitted without privacy, and whether on people released here is not known: for those who are "
            "among those it was fitted on no bound holds, because the model itself can show one person's move.",
        }[whom.people]
    )


def _why_not(event: LearningEvent | NotPrivateEvent | None) -> str:
    """Why a fit that added noise has no privacy all the same."""
    if isinstance(event, LearningEvent):
        return "Its noise can be replayed by whoever knows the seed, so it counts as none. "
    return "" if event is None else f"{event.reason}. "


def epsilon_words(varies: Sequence[str] = ()) -> str:
    """What the sum of epsilons in a statement bounds; ``varies``: what steps may have of their own."""
    return f"{EPSILON_STATEMENT}; {OWN_POLICIES}" if "policy" in varies else EPSILON_STATEMENT


def cost_words() -> str:
    """What the sum of costs in a statement bounds, and what it does not count."""
    return f"{COST_STATEMENT}. {_COST_COUNTS}"


_COST_COUNTS = (
    "It is of the rows of one subject in this file, given the model: other files, queries and names of the same person "
    "are not counted, nor what the model says about that person"
)


def randomness_words(replayable: int, rows: int, words: str = SYSTEM_WORDS) -> str:
    """Where the noise came from."""
    if replayable:
        return (
            f"NOT PRIVATE: {replayable} of {rows} rows were drawn from replayable bits. Whoever knows the "
            "seed can take the noise away. For tests and simulations only."
        )
    if words == KEYED_WORDS:
        return (
            "A key of the operating system's secure randomness, made for one job and overwritten at its end: with "
            "HMAC-SHA256 and ChaCha20 it gives every attempt at a draw the same words, sampled exactly on the lattice "
            "of answers. Exact means: against whoever has not the key and cannot break these."
        )
    return "The operating system's secure randomness, sampled exactly on the lattice of answers."


def not_private_because(provenance: Mapping[str, Any], whom: Whom, replayable: int) -> list[str]:
    """The reasons for which the released people have no protection at all; usually none."""
    reasons = []
    if replayable:
        reasons.append("replayable bits: whoever knows the seed can take the noise away")
    if whom.people == "same" and provenance.get("private") is False:
        reasons.append(f"the model was fitted without privacy on people released here, {_known(whom)}")
    return reasons


def unknown_because(provenance: Mapping[str, Any], whom: Whom, replayable: int) -> list[str]:
    """The reasons for which it is not known whether they have; none where it is known that they have not."""
    if not_private_because(provenance, whom, replayable) or whom.people == "others":
        return []
    private = provenance.get("private")
    if private is True:
        if provenance.get("privacy") is not None:
            return []
        return [
            "the model says that it was fitted with differential privacy and not with which epsilon, and nobody said "
            "that this was without data of the people released"
        ]
    if whom.people == "same":
        return [
            f"the model was made from data of people released here, {_known(whom)}, and nothing records that this was "
            "done with differential privacy"
        ]
    if private is False:
        return ["the model was fitted without privacy, and nobody said whether on people released here"]
    return ["nothing says whose data the model was made from, and whether people released here are among them"]


def not_protected(options: Options, provenance: Mapping[str, Any], whom: Whom, varies: Sequence[str] = ()) -> list[str]:
    """What these releases do not hide, a sentence each; ``varies``: what steps may have of their own."""
    told = _never_protected("the step's own policy" if "policy" in varies else "the policy")
    told += chosen_kind(options.mechanism).words.not_protected
    if provenance.get("private") is True:
        told.append(_LEARNED_SHOWS)
    elif whom != NOBODY:
        told.append(_model_shows(provenance, whom))
    return told


def _model_shows(provenance: Mapping[str, Any], whom: Whom) -> str:
    made = "fitted on them without privacy" if provenance.get("private") is False else "made from their data"
    return {
        "same": f"Anything that the model shows about the people released: it was {made}, {_known(whom)}.",
        "others": "The people the model was fitted on, or made from if there are any: nothing protects them from it. "
        f"They are others than those released, {_known(whom)}.",
        "unknown": f"The people whose data the model was made from, who may be among those released: if it was {made}, "
        "it can show their moves.",
    }[whom.people]


def _never_protected(policy: str) -> list[str]:
    return [
        "Who is in the data, at which time steps they were observed, and how often.",
        f"States that no edge of {policy} joins: they can be told apart up to the cost of a release, which may "
        "be larger than epsilon. Where a subject is, seen more coarsely than the policy, is not hidden.",
        "What many releases show together: a place that a subject returns to becomes clearer every time. "
        "Epsilon bounds each release given the past. Over time the sum of the epsilons bounds the loss of two paths "
        f"whose states are equal or joined by {policy} at every step, and only the sum of the costs that of any two "
        "paths.",
        "A true state outside the support, where the model calls the subject's move impossible: it is only "
        "indistinguishable from its surrogate, the nearest planned state, and not from its own policy "
        "neighbours.",
        "Subjects against an adversary who knows more than the model and these releases, or uses another model: "
        "whoever can exclude more states may leave a state without a neighbour to hide among.",
    ]


_LEARNED_SHOWS = (
    "The people the model was learned from, beyond the model's own epsilon and delta: for one of them who is released "
    "too, that loss and the costs of the releases add up."
)


#: What stands for a distance where every two cells are joined.
ANY = "any"
#: Factors above this are shown as a power of e alone.
_LARGEST_FACTOR = Fraction(13)
_KILOMETRES = 10_000.0


def covered_facts(policy: PolicyGraph, space: StateSpace) -> dict[str, Any] | None:
    """The covered distance as ``metres`` and as ``ground_metres``, which is never more.

    Both are "any" where every two cells are joined. None where the states are no cells of a map.
    """
    metres = covered_distance(policy, space)
    return None if metres is None else facts_of(ANY if metres == math.inf else metres, space)


def facts_of(metres: Any, space: Any) -> dict[str, Any]:
    """A distance that is covered on a map, and the same on the ground."""
    return {"metres": metres, "ground_metres": ANY if metres == ANY else space.on_the_ground(metres)}


def covered_by_all(policies: Sequence[PolicyGraph], space: StateSpace) -> dict[str, Any] | None:
    """The facts of the policy that covers least: what is covered at every step, whichever of them it has."""
    found = [covered_facts(policy, space) for policy in policies]
    known = [facts for facts in found if facts is not None]
    if len(known) < len(found):
        return None
    return min(known, key=lambda facts: math.inf if facts["metres"] == ANY else float(facts["metres"]))


def covered_distance_of(facts: Mapping[str, Any] | None, epsilon: Fraction) -> CoveredDistance | None:
    """What a statement says of it: the facts and a sentence that stands alone; None without facts."""
    if facts is None:
        return None
    return CoveredDistance(
        metres=facts["metres"], ground_metres=facts["ground_metres"], meaning=_meaning(facts, epsilon)
    )


def covered_document(facts: Mapping[str, Any] | None, epsilon: Fraction) -> dict[str, Any] | None:
    """The same for JSON."""
    covered = covered_distance_of(facts, epsilon)
    return None if covered is None else document(covered)


def places_words(facts: Mapping[str, Any]) -> str:
    """Which places are covered: "places in cells of the model up to 680 m apart on the map (677 m on the ground)"."""
    if facts["metres"] == ANY:
        return "any two places in cells of the model"
    if facts["metres"] == 0:
        return "places in one and the same cell of the model"
    return f"places in cells of the model up to {_apart(facts)}"


def covered_words(facts: Mapping[str, Any], epsilon: Fraction) -> str:
    """The places that are covered, and what one answer may tell of two of them."""
    which = {ANY: "", 0: "in two cells"}.get(facts["metres"], "further apart")
    more = f"; places {which} can lose more" if which else ""
    return f"{places_words(facts)}: a factor of at most {factor(epsilon)} per answer{more}"


def factor(epsilon: Fraction) -> str:
    """exp(ε), and as a number of three digits, rounded up, where that is not too large: "exp(1) = 2.72"."""
    power = f"exp({in_short(epsilon)})"
    return power if epsilon > _LARGEST_FACTOR else f"{power} = {factor_number(epsilon)}"


def factor_number(epsilon: Fraction) -> str:
    """exp(ε) rounded up: three digits below 1,000, then whole."""
    if epsilon == 0:
        return "1"
    exact = Context(prec=30)
    value = exact.exp(exact.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))
    # The quotient and its power are rounded to nearest, by less than this.
    value = exact.next_plus(exact.next_plus(value))
    rounded = Context(prec=3, rounding=ROUND_CEILING).plus(value)
    return f"{rounded:f}" if rounded < 1000 else f"{math.ceil(value):,}"


def _meaning(facts: Mapping[str, Any], epsilon: Fraction) -> str:
    which = {ANY: "", 0: "in two cells"}.get(facts["metres"], "further apart")
    more = f"Of places {which}, one answer can tell more. " if which else ""
    return (
        f"Take {_pairs(facts)}. Where the promise holds and the public history leaves the cells of both possible, each "
        f"answer is at most a factor {factor(epsilon)} more likely from the one than from the other. {more}"
        "A place outside every cell is answered as the nearest state: of such places nothing is said here."
    )


def _pairs(facts: Mapping[str, Any]) -> str:
    if facts["metres"] == ANY:
        return "any two places in cells of the model"
    if facts["metres"] == 0:
        return "two places in one and the same cell of the model"
    return f"any two places in cells of the model that are at most {_apart(facts)}"


def _apart(facts: Mapping[str, Any]) -> str:
    metres, ground = length(facts["metres"]), length(facts["ground_metres"])
    return f"{metres} apart" if metres == ground else f"{metres} apart on the map ({ground} on the ground)"


def length(metres: float) -> str:
    """A distance for people, rounded down: metres below 10 km, centimetres below 10 m."""
    if metres >= _KILOMETRES:
        return f"{math.floor(metres / 100) / 10:,.1f} km"
    return f"{math.floor(metres):,} m" if metres >= 10 else f"{math.floor(metres * 100) / 100:g} m"
