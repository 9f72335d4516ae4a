"""MarkovModel.fit_private: the right counts get the right noise, and nothing else of the data comes out.

The noise is taken out again with the same replayed words, so what was noised is compared exactly. What comes out is
then a function of the noisy table and of public options only, shown by fitting different data whose noisy tables are
made equal.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import dphmm
from dphmm.accounting.event import event_from
from dphmm.errors import InvalidInput
from dphmm.markov.private import planned
from dphmm.markov.private.chain import fit_chain, fit_counts
from dphmm.markov.private.release import NoisyTable
from dphmm.markov.private.sensitivity import RecordBounds
from dphmm.samplers.body import LaplaceSampler
from dphmm.samplers.entropy import ReplayBits

pytestmark = pytest.mark.replayed_words

DATA = [[0, 1, 2, 2], [2, 2, 0], [1], [0, 1, 0, 1, 0, 1]]


def fit(data=DATA, n=3, epsilon=1, max_length=4, bits=None, **options):
    return fit_chain(data, n, epsilon, max_length, bits=bits or ReplayBits(1), **options)


@pytest.fixture
def released(monkeypatch):
    """What fits ask to be released: (counts, part, table)."""
    seen = []
    plainly = planned.release

    def release(counts, part, grid, bits):
        table = plainly(counts, part, grid, bits)
        seen.append((counts.copy(), part, table))
        return table

    monkeypatch.setattr(planned, "release", release)
    return seen


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("initial", ["occupancy", "first", "uniform"])
def test_capped_counts_get_noise_of_the_stated_scale(released, initial, neighbours):
    _, event = fit(initial=initial, neighbours=neighbours, epsilon="0.5")
    ((counts, part, table),) = released
    expected = [0, 3, 0, 1, 0, 1, 1, 0, 2] + ([2, 1, 1] if initial == "first" else [])
    assert counts.tolist() == expected
    sensitivity = (4 if initial == "first" else 3) * (2 if neighbours == "replace" else 1)
    assert part.sensitivity == sensitivity and part.scale == 2 * sensitivity
    assert event.parts == (part,) and event.epsilon == Fraction(1, 2)
    noise = LaplaceSampler(part.scale).draw(len(counts), ReplayBits(1))
    np.testing.assert_array_equal(table.values, counts + noise)


def test_the_result_is_a_function_of_the_noisy_table(monkeypatch):
    table = NoisyTable(np.array([3.0, -2.0, 7.0, 1.0, 0.0, 5.0, -9.0, -1.0, -4.0]), 2.0)
    monkeypatch.setattr(planned, "release", lambda *_: table)
    models = [fit(data, initial="occupancy")[0] for data in (DATA, [], [[2, 2, 2]] * 50)]
    assert len({model.digest for model in models}) == 1
    assert len({json.dumps(model.provenance) for model in models}) == 1


def test_every_pair_of_the_mask_is_possible_and_no_other():
    mask = sparse.csr_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    for given in (mask, mask.toarray(), mask.toarray().astype(bool)):
        model, _ = fit(mask=given)
        np.testing.assert_array_equal(model.transition.toarray() > 0, mask.toarray() > 0)
    assert (fit([])[0].transition.toarray() > 0).all()


def test_without_noise_worth_the_name_it_is_the_estimate():
    source = np.random.default_rng(0)
    truth = source.dirichlet(np.ones(4), 4)
    data = [[0] for _ in range(1500)]
    for sequence in data:
        for _ in range(19):
            sequence.append(int(source.choice(4, p=truth[sequence[-1]])))
    model, _ = fit(data, 4, 100, 20, initial="occupancy")
    plain = dphmm.MarkovModel.fit(data, 4, initial="occupancy")
    assert np.abs(model.transition.toarray() - plain.transition.toarray()).max() < 2e-3
    assert np.abs(model.initial - plain.initial).max() < 0.02
    first, _ = fit(data, 4, 100, 20)
    assert first.initial[0] > 0.99


@pytest.mark.parametrize(
    ("given", "initial", "start", "sensitivity"),
    [
        ({}, "first", "at", 4),
        ({"initial": "first"}, "first", "at", 4),
        ({"initial": "occupancy"}, "occupancy", "before", 3),
        ({"step": 60}, "occupancy", "before", 3),
        ({"step": 60, "initial": "first"}, "first", "before", 4),
    ],
)
def test_without_a_step_it_begins_at_first_states_and_the_noise_is_made_for_them(
    released, given, initial, start, sensitivity
):
    model, event = fit(**given)
    assert (model.provenance["initial"], model.start) == (initial, start)
    assert event.parts[0].sensitivity == sensitivity == released[0][1].sensitivity
    assert len(released[0][0]) == (12 if initial == "first" else 9)


def test_sequences_with_a_begin_and_an_end(released):
    """Each counts its first positions before the end, then the end; one that is cut has no end, one of nothing one."""
    end, data = 1, [[0, 2, 2], [2, 0, 0, 2], [1, 1], [2, 1, 0], [0, 1]]
    model, event = fit(data, max_length=3, end=end)
    # From 0 and 2, then the starts.
    assert released[0][0].tolist() == [1, 1, 1, 1, 2, 1, 2, 1, 2]
    assert event.epsilon == 1 and event.parts[0].scale == event.parts[0].sensitivity == 4
    moves = model.transition.toarray()
    assert moves[end].tolist() == [0, 1, 0] and (moves[[0, 2]] > 0).all() and model.provenance["end"] == end
    slotted, _ = fit(data, max_length=3, end=end, slots=dphmm.markov.Slots.parse("1,2+"))
    assert released[1][0].tolist() == [0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 2, 1, 2]
    assert [matrix.toarray()[end].tolist() for matrix in slotted.matrices] == [[0, 1, 0]] * 2
    counts = planned.counts_of(planned.kept_records(data, 3, RecordBounds(3)), 3, RecordBounds(3), "sequence")
    with pytest.raises(InvalidInput, match="another setting"):
        fit_counts(counts, 1, end=end)
    for options, told in (({"initial": "occupancy"}, "begin and end"), ({"end": 3}, "end")):
        with pytest.raises(InvalidInput, match=told):
            fit(data, **{"end": end, **options})


def test_relabelled_states_give_a_relabelled_model_but_for_the_noise(monkeypatch):
    monkeypatch.setattr(planned, "release", lambda counts, part, grid, bits: NoisyTable(counts.astype(float), 1.0))
    swap = np.array([2, 0, 1])
    model, _ = fit(initial="first")
    moved, _ = fit([swap[np.array(s)].tolist() for s in DATA], initial="first")
    np.testing.assert_allclose(moved.transition.toarray()[np.ix_(swap, swap)], model.transition.toarray())
    np.testing.assert_allclose(moved.initial[swap], model.initial)


def test_the_order_of_people_changes_nothing():
    owners = ["a", "a", "b", "c"]
    for order in ([1, 0, 2, 3], [3, 2, 0, 1]):
        kept = [DATA[i] for i in order]
        given = fit(kept, owners=[owners[i] for i in order], max_sequences=2)[0]
        assert given.digest == fit(owners=owners, max_sequences=2)[0].digest


class TestProvenance:
    def test_it_has_the_event_and_nothing_of_the_data(self):
        many = [[0, 1] for _ in range(31415)]
        model, event = fit(many, bits=dphmm.samplers.SystemBits(), source="sessions.csv")
        told = model.provenance
        assert told["private"] is True and told["source"] == "sessions.csv"
        assert event_from(told["privacy"]) == event
        assert set(told) == {
            "method", "private", "privacy", "mask", "initial", "estimator", "source",
        }  # fmt: skip
        assert "31415" not in json.dumps(told) + repr(model) + " ".join(model.notes)
        assert "without privacy" not in " ".join(model.notes)

    def test_it_is_the_same_for_neighbours(self):
        assert fit(DATA)[0].provenance == fit(DATA[:-1])[0].provenance == fit([])[0].provenance

    def test_replayable_noise_is_not_called_private(self):
        model, event = fit()
        assert model.provenance["private"] is False and event.secure is False
        assert any("without privacy" in note for note in model.notes)

    def test_the_classmethod_is_the_fit(self):
        model = dphmm.MarkovModel.fit_private(DATA, n_states=3, epsilon=1.0, max_length=4, bits=ReplayBits(1))
        assert model.digest == fit()[0].digest
        assert dphmm.MarkovModel.fit_private(DATA, 3, 1.0, 4).provenance["private"] is True

    def test_it_survives_a_file(self, tmp_path):
        model, event = fit(bits=dphmm.samplers.SystemBits(), space=dphmm.StateSpace([[0], [1], [2]]))
        dphmm.storage.save_model(model, tmp_path / "m.npz")
        back = dphmm.storage.load_model(tmp_path / "m.npz")
        assert event_from(back.provenance["privacy"]) == event


class Unreadable:
    """Data that must not be looked at."""

    def __iter__(self):
        raise AssertionError("the data were read")

    __len__ = __getitem__ = __iter__


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"epsilon": 0}, "epsilon: got 0"),
        ({"max_length": 1}, "max_length: got 1"),
        ({"max_length": None}, "max_length: got None"),
        ({"n": 1}, "n_states: got 1"),
        ({"n": 5000}, "mask: got all pairs of 5000 states"),
        ({"neighbours": "both"}, "neighbours: got both"),
        ({"initial": "last"}, "initial: got last"),
        ({"mask": "neighbours"}, "space: got none"),
        ({"mask": np.zeros((3, 3))}, "mask[0]: got a row of no pairs"),
        ({"mask": np.ones((2, 3))}, "mask: got ndarray"),
        ({"mask": "x"}, "mask: got x"),
        ({"mask": [["a"] * 3] * 3}, "mask: got list"),
        ({"step": 0}, "step: got 0"),
        ({"space": dphmm.StateSpace([[0], [1]])}, "space: got 2 states"),
        ({"bits": 3}, "bits: got int"),
        ({"epsilon": Fraction(1, 2**20), "max_length": 2**20, "max_sequences": 2**10 + 1}, "max_sequences: got"),
        ({"epsilon": Fraction(1, 2**20), "max_length": 2**20, "max_sequences": 2**10, "neighbours": "replace"},
         "epsilon: got noise of more than"),
    ],
)  # fmt: skip
def test_bad_options_get_one_line_before_the_data_are_read(options, told):
    if "max_sequences" in options:
        options = options | {"owners": []}
    with pytest.raises(InvalidInput) as error:
        fit(Unreadable(), **options)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_messages_about_data_have_no_state_of_it():
    with pytest.raises(InvalidInput) as error:
        fit([[0, 1], [2, 31415]])
    assert "sequences[1][1]" in str(error.value) and "31415" not in str(error.value)


def test_neighbours_on_a_grid_are_a_mask():
    grid = dphmm.Grid.from_bounds(0.0, 0.0, 0.03, 0.03, cell=1000.0)
    model, _ = fit([], grid.n_states, mask="neighbours", space=grid)
    assert model.provenance["mask"] == "neighbours"
    assert np.diff(model.transition.indptr).max() <= 9 < grid.n_states
