"""Invented people: their paths have the law of the model, or the nearest law that keeps public totals.

Claims: without totals the paths of walks have the model's law; with totals they have the law that iterated proportional
fitting of all paths, one by one, gives; totals that no path keeps are refused; rows depend on model and seed alone; a
statement promises what the model's origin promises, and no more. It would fail for weights of a later step that the
draws do not look ahead to, for a jump that ignores them, and for a counted model that is called private.
"""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import dphmm
from dphmm.choose.simulated import walks
from dphmm.errors import InvalidInput
from dphmm.reconstruction.synthesis import synthesize, weighted
from dphmm.statement.parts import document
from dphmm.statement.synthetic import SyntheticStatement
from dphmm.storage.trajectories import load_trajectories, save_trajectories

STEPS = 3
TOTALS = {1: np.array([5.0, 3.0, 2.0]), 3: np.array([1.0, 0.0, 3.0])}


def chain(jump=None, start="at"):
    matrix = [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.6, 0.4]]
    return dphmm.MarkovModel([0.5, 0.3, 0.2], matrix, jump=jump, start=start)


def moves_of(model):
    matrix = model.matrix.toarray()
    return matrix if model.jump is None else model.jump.stays * matrix + np.outer(np.ones(3), model.jump.share)


def all_paths(model):
    """The probability of every path of STEPS steps, by enumeration."""
    moves, first = moves_of(model), model.initial
    first = first @ moves if model.start == "before" else first
    return {
        path: first[path[0]] * np.prod([moves[a, b] for a, b in itertools.pairwise(path)])
        for path in itertools.product(range(3), repeat=STEPS)
    }


def fitted(law, totals):
    """Iterated proportional fitting over the paths themselves: 5,000 rounds."""
    for _ in range(5000):
        for step, total in totals.items():
            now = np.array([sum(p for path, p in law.items() if path[step - 1] == state) for state in range(3)])
            by = np.divide(total / total.sum(), now, out=np.zeros(3), where=now > 0)
            law = {path: p * by[path[step - 1]] for path, p in law.items()}
    return law


CHAINS = [(None, "at"), (None, "before"), (0.2, "at"), (0.2, "before")]


@pytest.mark.parametrize(("jump", "start"), CHAINS)
@pytest.mark.parametrize("totals", [None, TOTALS], ids=["free", "totals"])
def test_walks_have_the_law_of_all_paths_one_by_one(jump, start, totals):
    """Pearson's statistic of 40,000 walks over 27 paths: a share that is 0.02 off fails with probability over 0.999."""
    model, people = chain(jump, start), 40_000
    law = all_paths(model) if totals is None else fitted(all_paths(model), totals)
    ahead = None if totals is None else weighted(model, totals, STEPS)
    found = walks(model, people, STEPS, np.random.default_rng(7), ahead=ahead)
    counts = dict.fromkeys(law, 0)
    for path in map(tuple, found.tolist()):
        counts[path] += 1
    assert all(counts[path] == 0 for path, p in law.items() if p < 1e-12)
    possible = [path for path, p in law.items() if p >= 1e-12]
    statistic = sum((counts[path] - people * law[path]) ** 2 / (people * law[path]) for path in possible)
    # The 0.9999 quantile of chi-squared with at most 26 degrees of freedom; the words are seeded.
    assert statistic < 61.7


@pytest.mark.parametrize(("jump", "start"), CHAINS)
def test_totals_are_kept_exactly(jump, start):
    """The law that the draws follow, multiplied out step by step, has the totals' shares."""
    model = chain(jump, start)
    ahead, moves = weighted(model, TOTALS, STEPS), moves_of(model)
    row = model.initial * ahead[0 if start == "before" else 1]
    row /= row.sum()
    for step in range(1, STEPS + 1):
        if step > 1 or start == "before":
            onward = moves * ahead[step]
            onward = np.divide(
                onward,
                onward.sum(axis=1, keepdims=True),
                out=np.zeros((3, 3)),
                where=onward.sum(axis=1, keepdims=True) > 0,
            )
            row = row @ onward
        if step in TOTALS:
            np.testing.assert_allclose(row, TOTALS[step] / TOTALS[step].sum(), atol=2e-9)


@pytest.mark.parametrize(
    ("totals", "told"),
    [
        ({1: [1, 0, 0], 2: [0, 0, 1]}, "people at state '0' at step 1"),
        ({}, "no totals"),
        ({4: [1, 1, 1]}, "totals of step 4"),
        ({1: [1, -1, 1]}, "totals of step 1"),
        ({1: [0, 0, 0]}, "totals of step 1"),
        ({1: [1, 1]}, "totals of step 1"),
        ({1: [1, 0, 0], 2: [1, 0, 1]}, "people at state '2' at step 2"),
    ],
)
def test_totals_that_no_path_keeps_are_refused(totals, told):
    with pytest.raises(InvalidInput, match=f"^like: got {told}"):
        weighted(chain(), totals, STEPS)


def test_totals_that_contradict_each_other_are_refused():
    """Nobody leaves the last state, so there cannot be fewer there later."""
    model = dphmm.MarkovModel([0.5, 0.5], [[0.5, 0.5], [0, 1]], start="at")
    with pytest.raises(InvalidInput, match=r"^like: got (totals that are still|people at state)"):
        weighted(model, {1: [1.0, 3.0], 2: [3.0, 1.0]}, 2)


def grid_model():
    grid = dphmm.Grid.from_bounds(west=13.3, south=52.48, east=13.36, north=52.52, cell=600.0)
    return grid, dphmm.MarkovModel.from_geometry(grid, 3600, "6km/h")


def test_rows_are_in_their_cells_stay_where_nobody_moves_and_depend_on_the_seed_alone(tmp_path):
    grid, model = grid_model()
    found = synthesize(model, 20, 30, begin=0, seed=3)
    assert len(found) == 600 and found.n_users == 20
    names = np.array(grid.names, dtype=object)
    assert (names[grid.locate(found.lat, found.lon)] == found.state).all()
    stays = (found.state[1:] == found.state[:-1]) & (found.user[1:] == found.user[:-1])
    assert stays.any() and (found.lat[1:][stays] == found.lat[:-1][stays]).all()
    again, other = synthesize(model, 20, 30, begin=0, seed=3), synthesize(model, 20, 30, begin=0, seed=4)
    assert (again.lat == found.lat).all() and (other.lat != found.lat).any()
    assert found.time[:3].tolist() == [0, 3_600_000_000, 7_200_000_000]
    save_trajectories(tmp_path / "s.parquet", found)
    assert len(load_trajectories(tmp_path / "s.parquet", space=grid).trajectories) == 600


def test_a_statement_promises_what_the_origin_of_the_model_promises():
    _, geometry = grid_model()
    sequences = [[0, 1, 0], [1, 1, 0]]
    counted = dphmm.MarkovModel.fit(sequences, 2)
    learned = dphmm.MarkovModel.fit_private(sequences, 2, epsilon=1, max_length=3, bits=dphmm.ReplayBits(1))
    found = [SyntheticStatement.of(model, 1, 1) for model in (geometry, counted, learned, chain())]
    assert [one.private for one in found] == [True, False, False, "unknown"]
    reasons = [[], ["fitted without privacy"], ["replayable bits"], ["unknown origin"]]
    assert [one.reasons for one in found] == reasons and found[0].learning is None
    kept = SyntheticStatement.of(geometry, 1, 1, like=True).sentence()
    assert found[0].sentence().endswith("no row tells anything about anybody.")
    assert kept.endswith("no row tells anything about anybody but what the totals that are kept tell.")
    assert "replayed" in found[2].sentence() and found[2].learning.epsilon == "1"
    assert json.dumps(document(found[2]))


@pytest.mark.replayed_words
def test_a_private_fit_stands_in_the_statement():
    learned = dphmm.MarkovModel.fit_private([[0, 1, 0], [1, 1, 0]], 2, epsilon=1, max_length=3)
    alone = SyntheticStatement.of(learned, 1, 1)
    assert "drawn from the model, and from nothing else" in alone.sentence()
    found = SyntheticStatement.of(learned, 1, 1, like=True)
    assert "drawn from the model and the totals that they keep, and from nothing else" in found.sentence()
    assert found.private is True and found.learning.sentence() in found.sentence() and found.like
    assert "Public totals" in found.said("not protected")[-1]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"people": 0}, "people"),
        ({"steps": 0}, "steps"),
        ({"steps": 10**8}, "steps"),
        ({"seed": -1}, "seed"),
        ({"begin": 5}, "begin"),
    ],
)
def test_errors_name_the_argument(given, field):
    with pytest.raises(InvalidInput) as error:
        synthesize(chain(), **{"people": 2, "steps": 2, **given})
    assert error.value.field == field
