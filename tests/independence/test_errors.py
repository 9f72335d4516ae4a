"""A refusal or a failure says the same whatever is true, and leaves the same behind.

Claim: for every way in which a release can be refused or fail, before and after the draw, the whole surface of what is
raised (`observing.surface`: text, arguments, attributes, notes, the chain of causes, the formatted traceback with its
lines), what was printed, logged and warned of, and the rows of the ledger afterwards are the same for every truth.
It would fail for a message that names the state, for drift that is refused earlier or later, or for a failed release
that leaves a trace.
"""

from __future__ import annotations

import pytest

from independence.ledger_files import rows_of
from independence.observing import overheard, surface
from independence.refusals import REFUSALS, TRUTHS, naming_the_truth, session


@pytest.fixture
def told(tmp_path):
    """All that a refusal shows for one truth."""
    path = tmp_path / "ledger.db"

    def tell(refusal, truth):
        for file in tmp_path.iterdir():
            file.unlink()
        with overheard() as heard:
            try:
                refusal(truth, path)
            except BaseException as error:
                shown = surface(error)
        return shown, heard, rows_of(path) if path.exists() else None

    return tell


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_the_same_for_every_truth(told, name):
    refusal, kind = REFUSALS[name]
    first = told(refusal, TRUTHS[0])
    assert first[0][0][0] == kind.__name__
    assert all(told(refusal, truth) == first for truth in TRUTHS[1:])


def test_a_refusal_that_names_the_truth_is_found(told):
    """The check can fail."""
    refusal, _ = REFUSALS["cap_cost is passed"]
    with naming_the_truth():
        assert len({repr(told(refusal, truth)) for truth in TRUTHS}) == len(TRUTHS)


NO_STATES = [-2, 6, 10**30, 1.5, float("nan"), None, True, b"place 0", [0], ("place 0",), {0}, 1j]


def test_what_is_no_state_is_refused_in_the_same_words():
    """A mistake of the caller's about the private argument: its kind is told, never its value."""
    surfaces = []
    for wrong in NO_STATES:
        ongoing = session()
        with pytest.raises(ValueError) as caught:
            ongoing.release(wrong)
        surfaces.append(surface(caught.value))
        assert (ongoing.t, ongoing.spent.epsilon) == (1, 0)
    assert all(shown == surfaces[0] for shown in surfaces)
