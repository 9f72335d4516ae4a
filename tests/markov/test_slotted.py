"""Fits with slots: what is counted where, how slots are mixed with all of them, and how much.

It would fail where a move was counted by the step it arrives at, where kappa was chosen with the very moves that were
left out, and where a private model depended on anything but its noisy table.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dphmm
import naive_slots
from dphmm.errors import InvalidInput
from dphmm.markov import fit
from dphmm.markov.private import fit_chain
from dphmm.markov.private.planned import PlannedFit
from dphmm.markov.private.sensitivity import RecordBounds
from dphmm.markov.private.transition_counts import count_transitions
from dphmm.markov.slotted import ALONE, KAPPAS

HOUR, ZONE = 3600, "Europe/Berlin"
BEGINS = (0, 2 * HOUR, 5 * HOUR)
SLOTS = dphmm.markov.Slots(period="1d", begins=(0, "2h", "5h"), zone=ZONE)
#: The hour that clocks are put back in, in October 2024.
BACK = 480_553


def walks(seed, people=6, n=3, length=30):
    """Sequences of people who move otherwise at night, two of each person, and the hours they begin in."""
    rng = np.random.default_rng(seed)
    sequences, firsts, owners = [], [], []
    for person in range(people):
        for _ in range(2):
            first = BACK + int(rng.integers(-20, 20))
            states = [int(rng.integers(n))]
            for k in range(length - 1):
                night = naive_slots.slot_by_clock(first + k, HOUR, ZONE, BEGINS) < 2
                states.append(states[-1] if night and rng.random() < 0.9 else int(rng.integers(n)))
            sequences.append(states)
            firsts.append(first)
            owners.append(person)
    return sequences, firsts, owners


def slots_of(sequences, firsts):
    return [
        [naive_slots.slot_by_clock(first + k, HOUR, ZONE, BEGINS) for k in range(len(states))]
        for states, first in zip(sequences, firsts, strict=True)
    ]


def pooled_of(table, smoothing):
    """The matrix of all slots together, as lists."""
    n = len(table[0])
    rows = [[sum(slot[i][j] for slot in table) + smoothing for j in range(n)] for i in range(n)]
    return [[cell / sum(row) for cell in row] for row in rows]


def mixed(table, pooled, kappa):
    return [
        [[(cell + kappa * share) / (sum(row) + kappa) for cell, share in zip(row, shares, strict=True)]
         for row, shares in zip(slot, pooled, strict=True)]
        for slot in table
    ]  # fmt: skip


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_a_fit_is_what_its_definition_says(seed, smoothing):
    """Moves are counted by the hour they leave; kappa is the one under which people who are left out are likeliest."""
    sequences, firsts, owners = walks(seed)
    hours = slots_of(sequences, firsts)
    given = {"step": HOUR, "slots": SLOTS, "first_steps": firsts, "owners": owners}
    model, _ = fit(sequences, 3, smoothing, **given)
    logs = []
    for kappa in KAPPAS:
        total = 0.0
        for person in set(owners):
            rest = [k for k, owner in enumerate(owners) if owner != person]
            table = naive_slots.counts([sequences[k] for k in rest], [hours[k] for k in rest], 3, 3)
            matrices = mixed(table, pooled_of(table, smoothing), kappa)
            for k in set(range(len(owners))) - set(rest):
                moves = zip(hours[k], sequences[k], sequences[k][1:], strict=False)
                total += sum(math.log(matrices[slot][i][j]) for slot, i, j in moves)
        logs.append(total)
    assert model.provenance["kappa"] == KAPPAS[int(np.argmax(logs))]
    assert max(logs) - min(logs) > 1 and model.slots == SLOTS
    table = naive_slots.counts(sequences, hours, 3, 3)
    due = mixed(table, pooled_of(table, smoothing), model.provenance["kappa"])
    for matrix, expected in zip(model.matrices, due, strict=True):
        assert np.allclose(matrix.toarray(), expected, rtol=0, atol=1e-14)
    # By the hour a move arrives at it would be another model.
    late = naive_slots.counts(sequences, [each[1:] for each in hours], 3, 3)
    assert not np.allclose(model.matrices[1].toarray(), mixed(late, pooled_of(late, smoothing), 1.0)[1], atol=1e-3)


def test_slots_by_position_count_from_the_start_of_each_sequence():
    slots = dphmm.markov.Slots(positions="1,2-3,4+")
    sequences = [[0, 1, 1, 0, 1], [1, 0], [0, 0, 1, 1]]
    model, _ = fit(sequences, 2, 1.0, slots=slots)
    table = naive_slots.counts(sequences, [[0, 1, 1, 2, 2]] * 3, 3, 2)
    due = mixed(table, pooled_of(table, 1.0), model.provenance["kappa"])
    for matrix, expected in zip(model.matrices, due, strict=True):
        assert np.allclose(matrix.toarray(), expected, rtol=0, atol=1e-14)


def test_every_slot_has_the_moves_of_all_of_them_however_rare():
    """A slot in which nothing was counted moves as all slots do together; so no support depends on the hour."""
    sequences = [[0, 1, 2, 0, 1, 2], [0, 1, 1]]
    model, _ = fit(sequences, 3, slots=SLOTS, step=HOUR, first_steps=[BACK - 12, BACK - 12], min_count=1)
    pooled, _ = fit(sequences, 3, step=HOUR)
    for matrix in model.matrices:
        assert np.array_equal(matrix.indices, pooled.matrix.indices)
        assert matrix.data.min() > 0
    assert np.allclose(model.matrices[0].toarray(), pooled.matrix.toarray())


def test_one_person_leaves_nobody_to_be_left_out():
    model, _ = fit([[0, 1, 0, 1]], 2, 1.0, slots=dphmm.markov.Slots(positions="1,2+"))
    assert model.provenance["kappa"] == ALONE


@pytest.mark.parametrize("first_steps", [None, [1], [0.5, 1.5], np.zeros((2, 1), dtype=int)])
def test_times_that_are_none_of_the_sequences_are_refused(first_steps):
    with pytest.raises(InvalidInput, match="first_steps"):
        fit([[0, 1, 0], [1, 0, 1]], 2, 1.0, slots=SLOTS, step=HOUR, first_steps=first_steps)


def test_a_table_is_fitted_by_the_times_of_its_rows():
    sequences, firsts, owners = walks(1)
    rows = [
        (f"u{owner}", f"trip{k}", pd.Timestamp((first + at) * HOUR, unit="s", tz="UTC"), "abc"[state])
        for k, (states, first, owner) in enumerate(zip(sequences, firsts, owners, strict=True))
        if k % 2 == 0
        for at, state in enumerate(states)
    ]
    table = pd.DataFrame(rows, columns=["user", "trip", "t", "state"])
    space = dphmm.StateSpace.labels(["a", "b", "c"])
    found = dphmm.storage.fit(table.drop(columns="trip"), space, step="1h", slots=SLOTS, smoothing=1.0)
    own = [k for k in range(len(owners)) if k % 2 == 0]
    due, _ = fit(
        [sequences[k] for k in own], 3, 1.0, step=HOUR, slots=SLOTS, first_steps=[firsts[k] for k in own],
        owners=[owners[k] for k in own],
    )  # fmt: skip
    for matrix, expected in zip(found.matrices, due.matrices, strict=True):
        assert np.array_equal(matrix.toarray(), expected.toarray())


@pytest.mark.parametrize("rule", ["1d/6h Europe/Berlin", "1,2-3,4+"])
def test_a_private_model_is_a_function_of_the_noisy_table(rule, monkeypatch):
    """Two data sets whose noisy tables are made the same have the same model and provenance."""
    slots, models = dphmm.markov.Slots.parse(rule), []
    fixed = np.random.default_rng(3).normal(3, 8, size=slots.n * 9 + 3)
    monkeypatch.setattr(
        "dphmm.markov.private.planned.release",
        lambda counts, part, grid, bits: type("Noisy", (), {"values": fixed[: len(counts)], "deviation": 1.0})(),
    )
    for seed in (1, 2):
        sequences, firsts, owners = walks(seed, people=3 + seed)
        given = {"owners": owners, "max_sequences": 2, "first_steps": firsts, "slots": slots, "step": HOUR}
        model, event = fit_chain(sequences, 3, 1, 5, initial="first", bits=dphmm.ReplayBits(1), **given)
        models.append((model.digest, model.provenance, event.epsilon))
    assert models[0] == models[1]


def test_a_private_table_has_the_noise_of_one_table_without_slots():
    """The event, its scale and its epsilon are those of the pooled table; without noise it is the counts."""
    sequences, firsts, owners = walks(2, people=60)
    given = {"owners": owners, "max_sequences": 2, "bits": dphmm.ReplayBits(1)}
    slotted, event = fit_chain(sequences, 3, 2**10, 30, slots=SLOTS, step=HOUR, first_steps=firsts, **given)
    _, pooled = fit_chain(sequences, 3, 2**10, 30, step=HOUR, **given)
    assert (event.epsilon, event.parts) == (pooled.epsilon, pooled.parts)
    table = np.array(naive_slots.counts(sequences, slots_of(sequences, firsts), 3, 3))
    late = np.array(naive_slots.counts(sequences, [each[1:] for each in slots_of(sequences, firsts)], 3, 3))
    found = np.array([matrix.toarray() for matrix in slotted.matrices])
    due, other = ((counts + 0.5) / (counts + 0.5).sum(axis=2, keepdims=True) for counts in (table, late))
    assert np.abs(found - due).max() < 0.1
    assert np.abs(found - due).sum() < 0.5 * np.abs(found - other).sum()


def test_times_without_a_slot_are_not_refused_with_privacy():
    """A row of the year 40000 is somebody's: whether it is there must not decide whether there is a model."""
    given = {"slots": SLOTS, "step": HOUR, "bits": dphmm.ReplayBits(1)}
    for first in (-5, 2**40):
        model, _ = fit_chain([[0, 1, 0]], 2, 1, 3, first_steps=[first], **given)
        assert model.slots == SLOTS
    empty, _ = fit_chain([], 2, 1, 3, **given)
    assert empty.slots == SLOTS


def test_counts_of_other_slots_are_refused():
    planned = PlannedFit(
        2, 1, RecordBounds(3), "sequence", slots=dphmm.markov.Slots(positions="1,2+"), bits=dphmm.ReplayBits(1)
    )
    with pytest.raises(InvalidInput, match="counts"):
        planned.learned(count_transitions([[0, 1, 1]], 2, 3))
    assert planned.settings != PlannedFit(2, 1, RecordBounds(3), "sequence", bits=dphmm.ReplayBits(1)).settings
