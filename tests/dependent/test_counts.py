"""Histograms, counts, sums and means: sensitivities by enumeration, integer noise, and events that say what is true.

Neighbouring data sets are enumerated: the answer before noise may not move by more than the event's sensitivity, and
somewhere it must move by as much, so that a sensitivity that is too small or needlessly large fails.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from dphmm import ReplayBits
from dphmm.dependent import (
    AnyQuery,
    Chain,
    Coefficients,
    calibrate,
    count,
    histogram,
    mean,
    total,
)
from dphmm.dependent._counts import with_total
from dphmm.errors import InvalidInput

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words


MOVES = [[0.9, 0.1], [0.2, 0.8]]


STATES = np.array([[0, 0, 1, 1, 0], [1, 1, 1, 0, 0]])


def bits():
    return ReplayBits(7)


class TestCounts:
    def test_a_histogram_and_what_it_cost(self):
        model = Chain(MOVES, 5)
        found = histogram(STATES, model, 1, n_states=2, bits=bits())
        assert list(found.table.columns) == ["first", "end", "state", "count"] and len(found.table) == 2
        event = found.event
        (part,) = event.parts
        assert part.sensitivity == 2 and event.per_record == part.sensitivity / part.scale
        assert event.per_record == calibrate(model, AnyQuery(1), 1).rate < 1
        assert event.epsilon == 1 and event.mechanism == "markov" and "every query" in event.why
        assert not event.secure and "nothing is promised" in event.statement

    def test_noise_is_there_and_repeats_with_its_bits(self):
        model = Chain(MOVES, 5)
        one = histogram(STATES, model, 1, n_states=2, bits=bits()).table
        assert one.equals(histogram(STATES, model, 1, n_states=2, bits=bits()).table)
        assert one["count"].tolist() != [5, 5]
        assert np.issubdtype(one["count"].dtype, np.integer)

    def test_the_noise_is_as_large_as_the_event_says(self):
        """4,000 cells, ε = 1, Δ = 2: the mean of |z| is 2q/(1 − q²), q = e^−½; five standard errors are 0.16."""
        found = histogram(np.zeros(1, dtype=int), "independent", 1, n_states=4000, bits=bits())
        sizes = np.abs(found.table["count"].to_numpy()[1:])
        q = np.exp(-1 / float(found.event.parts[0].scale))
        assert found.event.parts[0].scale == 2
        assert sizes.mean() == pytest.approx(2 * q / (1 - q * q), abs=0.16)

    @pytest.mark.parametrize("windows", [None, 2, [(0, 3), (2, 4)], [(0, 1), (1, 2), (0, 4)]])
    def test_sensitivity_of_histograms_and_sums(self, silent, windows):
        for ask, largest in ((histogram, 0), (total, 0)):
            options = {"n_states": 3} if ask is histogram else {"values": np.array([0, 1, 5])}

            def answer(states, ask=ask, options=options):
                found = ask(np.array(states), "independent", 1, windows=windows, **options)
                return found.table.iloc[:, -1].to_numpy(), found.event.parts[0].sensitivity

            for states in itertools.product((0, 2), repeat=4):
                for place, value in itertools.product(range(4), range(3)):
                    other = [*states[:place], value, *states[place + 1 :]]
                    (one, bound), (two, _) = answer(states), answer(other)
                    largest = max(largest, int(np.abs(one - two).sum()))
                    assert largest <= bound
            assert largest == bound

    def test_consistent_counts(self, silent):
        found = histogram(STATES, "independent", 1, n_states=2, windows=2, consistent=True)
        assert found.table["count"].tolist() == [2, 2, 1, 3, 2, 0]
        assert with_total(np.array([7, -3, 1]), 5).tolist() == [5, 0, 0]
        assert with_total(np.array([1, 1, 2]), 5).sum() == 5
        assert with_total(np.array([-4, -9]), 3).tolist() == [3, 0]
        assert with_total(np.array([4, 9]), 0).tolist() == [0, 0]

    @pytest.mark.parametrize("seed", range(5))
    def test_consistency_is_the_nearest_point(self, seed):
        rng = np.random.default_rng(seed)
        noisy, n = rng.integers(-5, 10, 4), int(rng.integers(1, 12))
        found = with_total(noisy, n)
        assert found.sum() == n and (found >= 0).all()
        best = min(((np.array(c) - noisy) ** 2).sum() for c in itertools.product(range(n + 1), repeat=4) if sum(c) == n)
        assert ((found - noisy) ** 2).sum() == best

    def test_tables_in(self, silent):
        frame = pd.DataFrame({"user": ["b", "a", "b"], "t": [0, 1, 3], "state": [1, 0, 1]})
        before = frame.copy()
        found = count(frame, Chain(MOVES, 4), 1, n_states=2, states=[1], windows=2)
        assert found.table.values.tolist() == [[0, 2, 1], [2, 4, 1]] and frame.equals(before)
        assert found.event.query == "count"

    def test_means(self, silent):
        found = mean([1.0, 2.0, 99.0], "independent", 1, bounds=(0, 4))
        assert found.table["mean"][0] == pytest.approx(7 / 3, abs=1e-4) and found.table["n"][0] == 3
        assert found.event.parts[0].sensitivity == 2**16

    @pytest.mark.parametrize(
        ("ask", "told"),
        [
            (lambda: mean([1.0], "independent", 1, bounds=None), "bounds"),
            (lambda: mean([1.0], "independent", -1, bounds=(0, 1)), "epsilon"),
            (lambda: mean([1.0], "sometimes", 1, bounds=(0, 1)), "dependence"),
            (lambda: mean([1.0], ("group", 0), 1, bounds=(0, 1)), "depend"),
            (lambda: mean([1.0, 2.0], Coefficients(np.eye(3)), 1, bounds=(0, 1)), "2 records"),
            (lambda: histogram(STATES, Chain(MOVES, 3), 1, n_states=2), "5 times"),
            (lambda: histogram(STATES, Chain(MOVES, 5), 1, n_states=3), "3 states"),
            (lambda: histogram(STATES, "independent", 1, n_states=2, windows=[(3, 1)]), "windows"),
            (lambda: histogram(pd.DataFrame({"t": [0]}), "independent", 1, n_states=2), "columns"),
            (lambda: count(STATES, "independent", 1, n_states=2, states=[5]), "states"),
        ],
    )
    def test_bad_input(self, ask, told):
        with pytest.raises(InvalidInput, match=told) as refused:
            ask()
        assert "\n" not in str(refused.value)


def test_an_arrow_table_is_a_table_and_no_cell_of_it_is_told():
    """Its ``columns`` are the cells: a message once listed them, names of people included."""
    import pyarrow as pa

    table = pa.table({"user": ["canary-a", "canary-b"], "t": [0, 0], "state": [0, 1]})
    answered = histogram(table, "independent", 1, n_states=2, bits=ReplayBits(1))
    frame = histogram(table.to_pandas(), "independent", 1, n_states=2, bits=ReplayBits(1))
    assert answered.table.equals(frame.table)
    with pytest.raises(InvalidInput) as refused:
        histogram(table.rename_columns(["user", "t", "place"]), "independent", 1, n_states=2)
    assert "columns ['user', 't', 'place']" in str(refused.value)
    assert "canary" not in str(refused.value)
