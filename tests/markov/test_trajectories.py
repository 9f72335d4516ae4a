"""fit_trajectories against plain loops over dictionaries, and what it leaves out, counts and records.

The share of moves that a model of all others calls impossible: against models fitted without each person.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
from dphmm.errors import InvalidInput
from dphmm.markov.trajectories import Source, fit, fit_trajectories, share_unseen
from dphmm.states.grid import Grid
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import MICROSECONDS, Trajectories

STEP = 60
GRID = Grid.from_bounds(10.0, 50.0, 10.056, 50.036, cell=1000)

rows = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 12 * STEP),
        st.integers(-1, 4),
        st.integers(-1, 4),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=40,
)


def placed(given_rows):
    return Trajectories.from_labels(
        [user for user, *_ in given_rows],
        time=[seconds * MICROSECONDS for _, seconds, *_ in given_rows],
        lat=[50.0 + (y + 0.5) * 0.0089 for *_, y, _ in given_rows],
        lon=[10.0 + (x + 0.5) * 0.0139 for _, _, x, _, _ in given_rows],
        trip=[trip for *_, trip in given_rows],
    )


def naive_counts(given_rows, trajectories, hold):
    """Moves between cells: the last row of each bin, cut at holes, trips and places outside."""
    cells = GRID.locate(trajectories.lat, trajectories.lon).tolist()
    last = defaultdict(dict)
    for k, (user, seconds, _, _, trip) in enumerate(given_rows):
        found = last[user].get(seconds // STEP)
        if found is None or found[0] <= seconds:
            last[user][seconds // STEP] = (seconds, cells[k], trip)
    moves = Counter()
    for bins in last.values():
        for now, later in zip(sorted(bins), sorted(bins)[1:], strict=False):
            (_, a, trip), (_, b, other) = bins[now], bins[later]
            if later - now <= 1 + hold and trip == other and a >= 0 and b >= 0:
                moves[a, a] += later - now - 1
                moves[a, b] += 1
    return {pair: count for pair, count in moves.items() if count}


@settings(max_examples=80)
@given(rows, st.integers(0, 2))
def test_transitions_are_those_of_plain_loops(given_rows, hold):
    trajectories = placed(given_rows)
    expected = naive_counts(given_rows, trajectories, hold)
    try:
        model, summary = fit_trajectories(trajectories, GRID, step=STEP, hold=hold)
    except InvalidInput as refused:
        # Nothing to learn from: no move, or fewer than two cells.
        assert refused.field in ("trajectories", "sequences")
        assert not expected or len({cell for pair in expected for cell in pair}) < 2
        return
    cell = [GRID.index_of(name) for name in model.space.names]
    leaving = Counter()
    for (a, _), count in expected.items():
        leaving[a] += count
    found = {(cell[i], cell[j]): p for i, j, p in zip(*_entries(model), strict=True)}
    never_left = {cell[i] for i in summary.report.never_left}
    assert found == pytest.approx(
        {(a, b): count / leaving[a] for (a, b), count in expected.items()} | {(a, a): 1.0 for a in never_left}
    )
    assert summary.report.n_transitions == sum(expected.values())


def _entries(model):
    table = model.transition.tocoo()
    return table.row.tolist(), table.col.tolist(), table.data.tolist()


def test_unvisited_cells_are_kept_out_and_counted():
    trajectories = placed([("a", 0, 0, 0, 0), ("a", 60, 1, 0, 0), ("a", 120, 0, 0, 0)])
    model, summary = fit_trajectories(trajectories, GRID, step=STEP)
    assert model.space.names == ("x0y0", "x1y0")
    assert (summary.n_visited, summary.n_cells) == (2, GRID.n_states)
    assert "2 of 25 states visited" in "; ".join(summary.lines())
    assert model.step == STEP


def test_every_row_left_out_has_a_reason():
    given_rows = [("a", 0, 0, 0, 0), ("a", 1, 1, 0, 0), ("a", 60, 1, 0, 0), ("a", 120, -5, 0, 0), ("a", 180, 0, 0, 0)]
    limited = fit_trajectories(placed(given_rows), GRID, step=STEP, max_speed=50)[1]
    assert dict(limited.dropped) == {"too_fast": 2}
    unlimited = fit_trajectories(placed([*given_rows, ("a", 181, 1, 0, 0), ("a", 240, 0, 0, 0)]), GRID, step=STEP)[1]
    assert dict(unlimited.dropped) == {"outside": 1, "same_step": 2}
    assert unlimited.rows == 7


def test_the_source_is_recorded_and_nobody_in_it():
    trajectories = placed([("CANARY", 0, 0, 0, 0), ("CANARY", 60, 1, 0, 0)])
    model, _ = fit_trajectories(trajectories, GRID, step=STEP, source=Source("people.csv", "ab" * 32))
    assert model.provenance["source"] == "people.csv"
    assert model.provenance["source_sha256"] == "ab" * 32
    assert model.provenance["private"] is False
    assert "CANARY" not in str(model.provenance)


def test_names_outside_the_space_are_left_out():
    space = StateSpace.categories(("a", "b"))
    trajectories = Trajectories.from_labels(["u"] * 5, state=np.array(["a", "b", "zzz", "a", "b"], dtype=object))
    model, summary = fit_trajectories(trajectories, space)
    assert summary.dropped["outside"] == 1
    assert summary.report.n_sequences == 2
    assert model.step is None


def test_a_gap_in_seconds_cuts_rows_that_are_steps():
    trajectories = placed([("a", 0, 0, 0, 0), ("a", 60, 1, 0, 0), ("a", 600, 0, 0, 0), ("a", 660, 1, 0, 0)])
    assert fit_trajectories(trajectories, GRID)[1].report.n_transitions == 3
    assert fit_trajectories(trajectories, GRID, gap=60)[1].report.n_transitions == 2


@pytest.mark.parametrize(
    ("columns", "space", "field"),
    [
        ({"state": ["a", "b"]}, GRID, "lat, lon"),
        ({"lat": [1.0, 2.0], "lon": [1.0, 2.0]}, StateSpace.categories(("a", "b")), "state"),
        ({"lat": [1.0, 2.0], "lon": [1.0, 2.0]}, GRID, "trajectories"),
        ({"lat": [50.01, 50.01], "lon": [10.01, 10.01]}, GRID, "trajectories"),
    ],
)
def test_rows_that_fit_no_space_are_refused(columns, space, field):
    with pytest.raises(InvalidInput) as told:
        fit_trajectories(Trajectories.from_labels(["u", "u"], **columns), space)
    assert told.value.field == field


def test_steps_of_their_own_must_be_the_bins_of_the_times():
    good = placed([("a", 0, 0, 0, 0), ("a", 60, 1, 0, 0)]).resample(STEP)[0]
    assert fit_trajectories(good, GRID, step=STEP)[1].report.n_transitions == 1
    with pytest.raises(InvalidInput):
        fit_trajectories(good, GRID, step=2 * STEP)


def plain(sequences, owners, n, smoothing, support, min_count, space):
    """Each person left out in turn, and a model fitted to the others."""
    impossible = total = 0
    for person in np.unique(owners):
        others = [s for s, owner in zip(sequences, owners, strict=True) if owner != person]
        own = [s for s, owner in zip(sequences, owners, strict=True) if owner == person]
        possible = np.zeros((n, n), dtype=bool)
        if smoothing:
            model, _ = fit(others, n, smoothing, "uniform", min_count, smoothing_support=support, space=space)
            possible = model.transition.toarray() > 0
        else:
            counts = np.zeros((n, n), dtype=int)
            for s in others:
                np.add.at(counts, (s[:-1], s[1:]), 1)
            possible = counts >= min_count
        for s in own:
            impossible += int((~possible[s[:-1], s[1:]]).sum())
            total += len(s) - 1
    return impossible / total if total else 0.0


@pytest.mark.parametrize(("smoothing", "support"), [(0.0, None), (0.5, "neighbours"), (0.5, None)])
@pytest.mark.parametrize("min_count", [1, 2])
def test_it_is_what_models_without_each_person_say(smoothing, support, min_count):
    generator = np.random.default_rng(4)
    space = dphmm.Grid.from_bounds(13.0, 52.0, 13.03, 52.02, cell=700)
    n = space.n_states
    met = 0
    for _ in range(10):
        sequences = [generator.integers(0, n, int(generator.integers(1, 9))) for _ in range(12)]
        owners = generator.integers(0, 6, 12)
        got = share_unseen(sequences, owners, space, smoothing, support, min_count)
        assert got == pytest.approx(plain(sequences, owners, n, smoothing, support, min_count, space), abs=1e-6)
        met += got > 0
    assert met == (0 if smoothing and support is None else 10)


def test_no_move_is_no_share():
    space = dphmm.StateSpace([0, 1, 2])
    assert share_unseen([np.array([1]), np.array([], dtype=int)], np.array([0, 1]), space) == 0.0
