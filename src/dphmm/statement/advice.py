"""The settings that are no advice: one rule for `plan` and its search, from public figures alone.

Settings that are no advice may be listed, with the reasons, and are taken if named; no command prints and no function
returns one as the best.
"""

from __future__ import annotations

import math
from fractions import Fraction

#: One answer leaves at least this doubt between two states that are hidden from each other.
LEAST_DOUBT = Fraction(1, 20)
#: The largest tenth of an epsilon that does.
MOST_EPSILON = Fraction(29, 10)
#: An error of at most so many times that of somebody who knows the state is told as the state found.
_AS_STATE = 1.1


def finds_state(error: float, known: float) -> bool:
    """True if a reader is as near as somebody who knows the state; ``known`` is 0 if states are no places."""
    return known > 0 and error <= _AS_STATE * known


def not_advised(
    epsilon: Fraction | float, error: float = math.inf, known: float = 0.0, *, limited: bool = True
) -> tuple[str, ...]:
    """The reasons for which a setting is no advice; () where there is none.

    Parameters
    ----------
    epsilon : of one answer, without a unit: by at most its exponential the answer changes the odds of two such states.
        At even odds before, it leaves a doubt of 1 / (1 + exp(epsilon)).
    error, known : the expected error of a reader, and of somebody who knows the state and not the place in it:
        both mean distances or both root mean squares, in one unit. Without them nothing is said of places.
    limited : True if a cap or a promise bounds the sum of all answers.

    >>> not_advised(2, 970, 130)
    ()
    >>> not_advised(3, 140, 130)
    ('one answer leaves less than 1 in 20 doubt', 'it tells where somebody is, to the cell')
    """
    reasons = {
        f"one answer leaves less than 1 in {1 / LEAST_DOUBT} doubt": epsilon > math.log(1 / LEAST_DOUBT - 1),
        "it tells where somebody is, to the cell": finds_state(error, known),
        "nothing limits the sum of all answers": not limited,
    }
    return tuple(words for words, holds in reasons.items() if holds)
