"""Draws that nobody sees cost nothing, if which one is seen depends on none: exactly, in small worlds.

A world has four words, and a job is a function from contexts to words that is drawn uniformly: what keyed words are to
whoever cannot tell HMAC and ChaCha20 from random functions. Every law below is counted over all such functions, in
fractions. Claims. With keyed words (a context of the unit and its true rows), whatever attempt is taken by whatever
running times and across units, what is shown has the mechanism's law; an input that changed gives an independent draw.
Without the rows in the context, of two draws one state tells the other; with words of their own, or the attempt's
number in the context, the first attempt to finish has another law; all three are convicted.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dphmm.samplers import LatticeBody, LatticeSampler
from dphmm.samplers.entropy import JobKey, encoded

#: What each of the four words adds to an answer; how long a draw takes may hang on it.
NOISE = (0, 0, 1, -1)
MECHANISM = {0: Fraction(1, 2), 1: Fraction(1, 4), -1: Fraction(1, 4)}
ANSWER = {"home": 0, "work": 3}
ATTEMPTS = 2

CONTEXTS = {
    "keyed": lambda unit, state, attempt: encoded("job", unit, state),
    "no rows": lambda unit, state, attempt: encoded("job", unit),
    "fresh words": lambda unit, state, attempt: encoded("of the system", f"{unit}, started {attempt}"),
    "numbered attempts": lambda unit, state, attempt: encoded("job", unit, state, attempt),
}


def law(run, words=4):
    """{outcome: probability} of run(word), over all functions from contexts to words."""
    found, open_ = Counter(), [{}]
    while open_:
        given = open_.pop()
        try:
            found[run(given.__getitem__)] += Fraction(1, words ** len(given))
        except KeyError as missing:
            open_ += [given | {missing.args[0]: word} for word in range(words)]
    return dict(found)


def product(*laws):
    """The law of independent outcomes."""
    found = Counter()
    for outcomes in itertools.product(*(of.items() for of in laws)):
        values, weights = zip(*outcomes, strict=True)
        found[values] += Fraction(np.prod(weights, dtype=object))
    return dict(found)


def of_mechanism(state):
    return {ANSWER[state] + noise: weight for noise, weight in MECHANISM.items()}


def raced(contexts, state, delays, durations):
    """A run: attempts at one unit start after public delays, take as long as their noise says, the first is shown."""

    def run(word):
        noises = [NOISE[word(contexts("unit 1", state, attempt))] for attempt in range(ATTEMPTS)]
        ends = [delay + durations[noise] for delay, noise in zip(delays, noises, strict=True)]
        return ANSWER[state] + noises[ends.index(min(ends))]

    return run


def all_races():
    for delays in itertools.product(range(3), repeat=ATTEMPTS):
        for durations in itertools.product((1, 2, 3), repeat=len(MECHANISM)):
            yield delays, dict(zip(MECHANISM, durations, strict=True))


def wrong_with_races(contexts):
    """The first race in which the shown answer has not the mechanism's law, and the law it has."""
    for state in ANSWER:
        for race in all_races():
            shown = law(raced(contexts, state, *race))
            if shown != of_mechanism(state):
                return [("a race", state, race, shown)]
    return []


def wrong_with_two_inputs(contexts):
    """Whether two draws of one unit, under two inputs, are other than two independent ones, and how."""

    def run(word):
        return tuple(ANSWER[state] + NOISE[word(contexts("unit 1", state, n))] for n, state in enumerate(ANSWER))

    both = law(run)
    return [] if both == product(*map(of_mechanism, ANSWER)) else [("two inputs", {z - y for z, y in both})]


def wrong_with(kind):
    return wrong_with_races(CONTEXTS[kind]) + wrong_with_two_inputs(CONTEXTS[kind])


def test_keyed_words_are_acquitted():
    assert wrong_with("keyed") == []


def test_without_the_rows_one_state_tells_the_other():
    """z - z' = f(s) - f(s'), always."""
    assert wrong_with("no rows") == [("two inputs", {ANSWER["home"] - ANSWER["work"]})]


@pytest.mark.parametrize("kind", ["fresh words", "numbered attempts"])
def test_where_attempts_draw_apart_the_first_to_finish_has_another_law(kind):
    (told,) = wrong_with(kind)
    assert told[0] == "a race"
    longer = {0: 1, 1: 2, -1: 2}
    shown = law(raced(CONTEXTS[kind], "home", (0, 0), longer))
    assert shown == {0: Fraction(3, 4), 1: Fraction(1, 8), -1: Fraction(1, 8)}
    # Where time says nothing of the noise they are as good: it is the race that is wrong.
    assert law(raced(CONTEXTS[kind], "home", (0, 0), {0: 1, 1: 1, -1: 1})) == MECHANISM


#: Two units with two attempts of one fair bit each: what is drawn, and which attempt of each unit is shown.
BITS = (0, 1)
FAIR = {0: Fraction(1, 2), 1: Fraction(1, 2)}


def shown_bits(contexts, choose):
    """The law of what two units show, where ``choose`` sees all draws: bits of unit 0, bits of unit 1."""

    def run(word):
        drawn = [[word(contexts(unit, "home", attempt)) for attempt in BITS] for unit in BITS]
        first, second = choose(drawn)
        return drawn[0][first], drawn[1][second]

    return law(run, words=2)


def all_rules():
    """Every pair of choices that hangs on one bit of either unit in any way."""
    choices = list(itertools.product(BITS, repeat=4))
    for first, second in itertools.product(choices, repeat=2):
        yield lambda drawn, f=first, s=second: tuple(rule[2 * drawn[0][0] + drawn[1][0]] for rule in (f, s))


def by_each_other(drawn):
    """The first bit of either unit chooses for the other."""
    return drawn[1][0], drawn[0][0]


def test_whatever_chooses_among_equal_draws_changes_nothing():
    rules = [by_each_other, *all_rules()]
    assert len(rules) == 257
    assert [rule for rule in rules if shown_bits(CONTEXTS["keyed"], rule) != product(FAIR, FAIR)] == []


def test_choices_that_are_independent_of_all_draws_change_nothing():
    """The Lemma: given any pair of choices, and so for every joint law of choices that is independent of the draws."""
    for kind in ("fresh words", "numbered attempts"):
        for chosen in itertools.product(BITS, repeat=2):
            assert shown_bits(CONTEXTS[kind], lambda drawn, c=chosen: c) == product(FAIR, FAIR)


@pytest.mark.parametrize("kind", ["fresh words", "numbered attempts"])
def test_choices_that_are_each_independent_of_their_own_draws_are_not_enough(kind):
    """5/16: each choice is a bit of the other unit, so independent of its own unit's draws, and yet both show 0."""
    shown = shown_bits(CONTEXTS[kind], by_each_other)
    assert shown[0, 0] == Fraction(5, 16) and shown[0, 0] != Fraction(1, 4)
    assert [law_of_one(shown, unit) for unit in BITS] == [law_of_one(shown, 0)] * 2
    assert sum(shown_bits(CONTEXTS[kind], rule) != product(FAIR, FAIR) for rule in all_rules()) > 100


def law_of_one(shown, unit):
    found = Counter()
    for values, weight in shown.items():
        found[values[unit]] += weight
    return found


def test_a_job_whose_attempts_saw_two_inputs_fails_whatever_was_drawn():
    """Attempts return tags of their contexts. Without comparing them, an input that changed lets the race choose."""

    def run(word, compared):
        contexts = [CONTEXTS["keyed"]("unit 1", state, 0) for state in ANSWER]
        if compared and len(set(contexts)) > 1:
            return "failed"
        noises = [NOISE[word(context)] for context in contexts]
        ends = [1 + abs(noise) for noise in noises]
        return noises[ends.index(min(ends))]

    assert law(lambda word: run(word, compared=True)) == {"failed": 1}
    assert law(lambda word: run(word, compared=False)) == {0: Fraction(3, 4), 1: Fraction(1, 8), -1: Fraction(1, 8)}


def test_a_job_that_is_given_up_for_its_draws_selects_under_any_words():
    """A limit on the time of a job, and a second job with a new key: what the page's precondition excludes."""

    def run(word, limited):
        first, second = (NOISE[word(encoded(job, "unit 1", "home"))] for job in ("job 1", "job 2"))
        return second if limited and first != 0 else first

    assert law(lambda word: run(word, limited=False)) == MECHANISM
    assert law(lambda word: run(word, limited=True))[0] == Fraction(3, 4)


def test_laws_are_counted_over_all_functions():
    """The count can fail: equal contexts have equal words, others independent ones."""
    assert law(lambda word: (word(b"a"), word(b"a")), words=2) == {(0, 0): Fraction(1, 2), (1, 1): Fraction(1, 2)}
    assert law(lambda word: (word(b"a"), word(b"b")), words=2) == product(FAIR, FAIR)
    assert law(lambda word: word(b"a") and word(b"b"), words=2) == {0: Fraction(3, 4), 1: Fraction(1, 4)}


SAMPLER = LatticeSampler.knorm(LatticeBody(((1,),), (3,), (Fraction(3),), ((1,),)), Fraction(1))


def drawn_under(kind, state, attempt=0):
    """The answers of 300 units of a job under one real key."""
    key = JobKey.replayed(11)
    noises = [SAMPLER.draw(1, key.bits(CONTEXTS[kind](unit, state, attempt)))[0, 0] for unit in range(300)]
    return ANSWER[state] + np.array(noises)


@pytest.mark.parametrize("kind", ["keyed", "no rows", "numbered attempts"])
def test_a_real_key_and_the_lattice_sampler_are_told_apart_in_the_same_way(kind):
    """Whether two inputs' answers differ by their states alone, and whether a second attempt is the first again."""
    differences = set((drawn_under(kind, "work") - drawn_under(kind, "home")).tolist())
    assert (differences == {ANSWER["work"] - ANSWER["home"]}) is (kind == "no rows")
    repeated = (drawn_under(kind, "home", 0) == drawn_under(kind, "home", 1)).all()
    assert repeated == (kind != "numbered attempts")
