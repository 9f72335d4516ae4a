"""Counting apart from drawing: exact, by plain loops; the same model as in one go; nothing of it is shown or written.

It could fail where a cap comes after counting, where totals that are added in parts lose some, where counts are drawn
from twice or under other caps than they were taken with, or where a repr, an error or a pickle has a count in it.

Counting sorted rows as they pass: the counts of plain loops, files and sequences, in whatever parts they come.

It could fail where an owner's caps begin anew in another part, where rows are capped after they were counted or in the
order in which they arrived, where the second row of a step counts, where a row in no state joins its neighbours, or
where memory grows with the rows of one owner.
"""

from __future__ import annotations

import copy
import io
import itertools
import logging
import pickle
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

import dphmm
from dphmm.errors import InvalidInput
from dphmm.markov.private import count_transitions, fit_chain, fit_counts, transition_counts
from dphmm.markov.private.labelled import count_labelled
from dphmm.markov.private.ngrams import count_ngrams
from dphmm.markov.private.planned import PlannedFit
from dphmm.markov.private.sensitivity import RecordBounds, kept_records
from dphmm.markov.private.transition_counts import KeyTotals, LabelledCounter, RowCounter, WordCounter, counts_of_keys
from dphmm.markov.slots import Slots
from dphmm.samplers.entropy import ReplayBits
from dphmm.states.trajectory import Trajectories
from plain_rows import N, add_in_parts, in_order, rows_of, same, sequences_of
from random_seeds import seeds

pytestmark = pytest.mark.replayed_words

MASK = sparse.csr_array(np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 1, 1]]))


def data_of(seed, people=9):
    """Sequences of states 0 to 3, and whose each is."""
    source = np.random.default_rng(seed)
    sequences = [source.integers(0, 4, size=source.integers(1, 8)).tolist() for _ in range(30)]
    return sequences, source.integers(0, people, size=30).tolist()


def by_loops(sequences, owners, length, most):
    """(moves, starts) of the first ``most`` sequences of each owner, cut to ``length``."""
    kept, moves, starts = Counter(), Counter(), Counter()
    for sequence, owner in zip(sequences, owners, strict=True):
        kept[owner] += 1
        if kept[owner] <= most:
            cut = sequence[:length]
            starts[cut[0]] += 1
            moves.update(itertools.pairwise(cut))
    return moves, starts


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("length", "most"), [(1, 1), (2, 1), (3, 2), (9, 40)])
def test_they_are_those_of_plain_loops(seed, length, most):
    sequences, owners = data_of(seed)
    counts = count_transitions(sequences, 4, length, owners=owners, max_sequences=most)
    moves, starts = by_loops(sequences, owners, length, most)
    assert counts.transitions.toarray().tolist() == [[moves[i, j] for j in range(4)] for i in range(4)]
    assert counts.starts.tolist() == [starts[i] for i in range(4)]
    assert counts.n_owners == len(set(owners)) and counts.left_out == 0
    assert counts.transitions.dtype == counts.starts.dtype == np.int64
    assert (counts.n_states, counts.max_length, counts.max_sequences, counts.unit) == (4, length, most, "owner")


def test_without_owners_every_sequence_is_a_record():
    counts = count_transitions(iter([[0, 1], [1, 1]]), 2, 5)
    assert (counts.n_owners, counts.unit) == (2, "sequence")
    empty = count_transitions([], 2, 5)
    assert empty.n_owners == 0 and not empty.transitions.nnz and empty.starts.tolist() == [0, 0]


@pytest.mark.parametrize("initial", ["occupancy", "first", "uniform"])
@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_two_steps_give_the_model_of_one(initial, mask, neighbours):
    sequences, owners = data_of(1)
    options = {"initial": initial, "mask": mask, "neighbours": neighbours, "source": "walks.csv"}
    counts = count_transitions(sequences, 4, 5, owners=owners, max_sequences=2)
    model, event = fit_counts(counts, "0.5", bits=ReplayBits(3), **options)
    whole = fit_chain(sequences, 4, "0.5", 5, owners=owners, max_sequences=2, bits=ReplayBits(3), **options)
    assert model.digest == whole[0].digest and event == whole[1]
    assert model.provenance == whole[0].provenance


def test_the_event_is_told_before_anything_is_drawn():
    counts, told = count_transitions([[0, 1]], 2, 5), []

    def admit(event):
        told.append(event)
        raise ZeroDivisionError

    class NoWords(ReplayBits):
        def uint64(self, n):
            raise AssertionError("words were drawn")

    with pytest.raises(ZeroDivisionError):
        fit_counts(counts, 1, bits=NoWords(1), admit=admit)
    assert told[0].epsilon == 1 and told[0].unit == "sequence"


def test_a_planned_fit_draws_once():
    counts = count_transitions([[0, 1]], 2, 5)
    planned = PlannedFit(2, 1, RecordBounds(5), "sequence", bits=ReplayBits(1))
    planned.learned(counts)
    with pytest.raises(RuntimeError, match="has been drawn"):
        planned.learned(counts)


@pytest.mark.parametrize(
    "other",
    [
        count_transitions([[0, 1]], 3, 5),
        count_transitions([[0, 1]], 2, 6),
        count_transitions([[0, 1]], 2, 5, owners=["a"]),
        count_transitions([[0, 1]], 2, 5, owners=["a"], max_sequences=2),
    ],
)
def test_counts_of_another_setting_are_refused(other):
    planned = PlannedFit(2, 1, RecordBounds(5), "sequence", bits=ReplayBits(1))
    with pytest.raises(InvalidInput, match=r"^counts: got those of another setting"):
        planned.learned(other)
    planned.learned(count_transitions([[0, 1]], 2, 5))


def test_what_is_no_counts_is_refused():
    with pytest.raises(InvalidInput, match=r"^counts: got list; expected what count_transitions gives"):
        fit_counts([[0, 1]], 1)


class TestNothingIsShown:
    """State 31,415 of 50,000, 27,182 times."""

    COUNTS = count_transitions([[31415, 31415]] * 27182, 50_000, 3)

    def shown(self, text):
        assert "31415" not in text and "27182" not in text and "5000" not in text, text

    @pytest.mark.parametrize("how", [repr, str, format, "{}".format, "{!r}".format, "%s".__mod__])
    def test_as_text(self, how):
        assert how(self.COUNTS) == "TransitionCounts(...)"
        self.shown(how([self.COUNTS]))

    def test_in_a_log(self, caplog):
        with caplog.at_level(logging.DEBUG):
            logging.getLogger("x").warning("fitting %s", self.COUNTS)
        self.shown(caplog.text)

    @pytest.mark.parametrize(
        "write", [pickle.dumps, copy.copy, copy.deepcopy, lambda c: pickle.Pickler(io.BytesIO(), 0).dump(c)]
    )
    def test_they_are_not_written(self, write):
        with pytest.raises(TypeError, match=r"^TransitionCounts are not written") as error:
            write(self.COUNTS)
        self.shown(str(error.value))

    def test_errors_about_them(self):
        for wrong in ({"mask": "x"}, {"epsilon": 0}, {"space": dphmm.StateSpace([[0], [1]])}, {"bits": 1}):
            with pytest.raises(InvalidInput) as error:
                fit_counts(self.COUNTS, **{"epsilon": 1, "mask": sparse.eye_array(50_000), **wrong})
            assert "31415" not in str(error.value) and "27182" not in str(error.value)

    def test_they_have_no_dictionary(self):
        assert not hasattr(self.COUNTS, "__dict__")

    def test_what_adds_up_shows_nothing(self):
        totals = KeyTotals(9)
        totals.add(np.array([7, 7]))
        assert repr(totals) == "KeyTotals(...)"


@pytest.mark.parametrize("n_keys", [50, transition_counts._TABLE_PAIRS + 1])
@pytest.mark.parametrize("held", [1, 7, 2**20])
def test_totals_that_are_added_in_parts_are_exact(monkeypatch, n_keys, held):
    monkeypatch.setattr(transition_counts, "_HELD", held)
    source, totals, expected = np.random.default_rng(held), KeyTotals(n_keys), Counter()
    for size in (0, 1, 5, 40, 3, 0, 100):
        keys = source.integers(0, 50, size=size) * (n_keys // 50)
        totals.add(keys)
        expected.update(keys.tolist())
    for _ in range(2):
        keys, counts = totals.found()
        assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == expected
        assert (np.diff(keys) > 0).all()


def counted(rows, caps, shortest=2, parts=(), slots=None, seconds=None, end=None):
    """The counts of sorted rows that come in parts which end at these places."""
    counter = RowCounter(N, caps, shortest, slots, seconds, end)
    add_in_parts(counter, sorted(rows, key=lambda row: row[:2]), parts)
    return counts_of_keys(*counter.found(), N, caps, slots, end)


def cells_of(counter, rows, parts=()):
    """The cells of a counter, of rows that come in parts, those in no state as ``counter._n``."""
    add_in_parts(counter, rows, parts)
    keys, totals = counter.found()
    cells = np.zeros(counter.n_keys, dtype=np.int64)
    cells[keys] = totals
    return cells[:-2]


@seeds(6)
@pytest.mark.parametrize("caps", [RecordBounds(1, 1), RecordBounds(2, 1), RecordBounds(3, 2), RecordBounds(50, 50)])
@pytest.mark.parametrize("slots", [None, Slots.parse("1,2,3+")])
def test_sequences_that_end_are_those_of_one_process(seed, caps, slots):
    """Ends in the first, a middle and no row, rows after an end, cuts at the cap, in few and many parts."""
    rows = in_order(rows_of(seed, 80))
    sequences, owners = sequences_of(rows, 1)
    kept = kept_records(sequences, N, caps, owners, end=N - 1)
    expected = transition_counts.counts_of(kept, N, caps, "owner", slots, end=N - 1)
    for parts in ([], range(1, len(rows)), [7, 8, 30]):
        found = counted(rows, caps, 1, parts, slots, end=N - 1)
        same(found, expected)
        assert found.end == N - 1


@seeds(4)
@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("caps", [RecordBounds(1, 1), RecordBounds(3, 2), RecordBounds(50, 50)])
def test_words_of_sorted_rows_are_those_of_the_sequences(seed, order, caps):
    rows = rows_of(seed)
    sequences, owners = sequences_of(rows, 2)
    expected = count_ngrams(kept_records(sequences, N, caps, owners), N, order)
    for parts in ([], range(1, len(rows)), [7, 8, 30]):
        found = cells_of(WordCounter(N, order, caps), in_order(rows), parts)
        np.testing.assert_array_equal(found, expected)


@seeds(4)
@pytest.mark.parametrize("caps", [RecordBounds(1, 1), RecordBounds(3, 2), RecordBounds(50, 50)])
def test_known_states_of_sorted_rows_are_those_of_the_sequences(seed, caps):
    """A pair is a number of 0..3: two states, two symbols."""
    rows = rows_of(seed)
    sequences, owners = sequences_of(rows, 1)
    parts_of = [[np.asarray(sequence) // 2 for sequence in sequences], [np.asarray(one) % 2 for one in sequences]]
    expected = count_labelled(*(kept_records(given, 2, caps, owners) for given in parts_of), 2, 2)
    for parts in ([], range(1, len(rows)), [7, 8, 30]):
        np.testing.assert_array_equal(cells_of(LabelledCounter(2, 2, caps), in_order(rows), parts), expected)


@pytest.mark.parametrize(("kind", "bound"), [("words", 2 * 2), ("labelled", 2 * 6)])
def test_no_person_adds_more_to_words_and_known_states_than_is_stated(kind, bound):
    """All tables of one person with up to six rows in a row of seven steps, beside another person's."""
    caps, largest = RecordBounds(3, 2), 0

    def counted_of(rows):
        counter = WordCounter(4, 2, caps) if kind == "words" else LabelledCounter(2, 2, caps)
        return cells_of(counter, rows, [2] if len(rows) > 3 else [])

    other = [(9, step, step % 4) for step in range(5)]
    for states in itertools.product((0, 3, 4), repeat=7):
        own = [(1, step, state) for step, state in enumerate(states)]
        largest = max(largest, int(np.abs(counted_of(own + other) - counted_of(other)).sum()))
    assert largest == bound


@seeds(6)
@pytest.mark.parametrize("rule", ["1,2+", "6h/2h"])
def test_a_move_of_sorted_rows_is_in_the_slot_of_the_step_that_it_leaves(seed, rule):
    slots, later = Slots.parse(rule), 24 * 19_000
    rows = [(owner, step + later, state) for owner, step, state in rows_of(seed)]
    expected, one, before = np.zeros((slots.n * N, N), dtype=int), {}, None
    for owner, step, state in in_order(rows):
        one.setdefault((owner, step), state)
    for (owner, step), state in sorted(one.items()):
        if 0 <= state < N:
            place, left = (before[2] + 1, before[1]) if before and before[0] == (owner, step - 1) else (0, None)
            if 0 < place < 3:
                slot = min(place - 1, 1) if rule == "1,2+" else (step - 1) % 6 // 2
                expected[slot * N + left, state] += 1
            before = (owner, step), state, place
    found = counted(rows, RecordBounds(3, 50), 2, (7, 8, 30), slots, 3600)
    assert found.transitions.toarray().tolist() == expected.tolist() and found.slots == slots
    assert found.transitions.sum() == counted(rows, RecordBounds(3, 50)).transitions.sum()


@seeds(12)
@pytest.mark.parametrize("shortest", [1, 2])
@pytest.mark.parametrize("caps", [RecordBounds(1, 1), RecordBounds(2, 1), RecordBounds(3, 2), RecordBounds(50, 50)])
def test_they_are_those_of_the_sequences(seed, shortest, caps):
    rows = rows_of(seed)
    sequences, owners = sequences_of(rows, shortest)
    expected = count_transitions(sequences, N, caps.max_length, owners=owners, max_sequences=caps.max_sequences)
    found = counted(rows, caps, shortest)
    same(found, expected)
    assert found.n_owners == len({owner for owner, _, _ in rows})
    first = {}
    for owner, step, state in in_order(rows):
        first.setdefault((owner, step), state)
    assert found.left_out == sum(not 0 <= state < N for state in first.values())


@seeds(12)
def test_parts_and_arrival_change_nothing(seed):
    source, rows, caps = np.random.default_rng(seed), rows_of(seed), RecordBounds(3, 2)
    whole = counted(rows, caps)
    every = [range(1, len(rows)), [], [1], source.integers(0, len(rows), 9).tolist(), [7] * 3]
    for parts in every:
        shuffled = [rows[k] for k in source.permutation(len(rows))]
        found = counted(shuffled, caps, parts=parts)
        same(found, whole)
        assert (found.n_owners, found.left_out) == (whole.n_owners, whole.left_out)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shortest", [1, 2])
def test_a_sorted_table_is_counted_as_by_a_fit_of_its_trajectories(seed, shortest):
    rows = [row for row in in_order(rows_of(seed)) if row[2] < N]
    owner, step, state = (np.array(column) for column in zip(*rows, strict=True))
    table = Trajectories.from_labels([str(name) for name in owner], step=step)
    found = table.sequences(state)
    long = [k for k, sequence in enumerate(found.sequences) if len(sequence) >= shortest]
    expected = count_transitions(
        [found.sequences[k] for k in long], N, 3, owners=found.owners[long].tolist(), max_sequences=2
    )
    same(counted(rows, RecordBounds(3, 2), shortest), expected)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("parts", [[], range(1, 90), [4, 40]])
def test_of_one_step_the_latest_row_counts_and_then_the_least_state(seed, parts):
    source, chosen = np.random.default_rng(seed), {}
    rows = [(owner, step // 3, state) for owner, step, state in rows_of(seed, 90)]
    times = source.integers(0, 3, len(rows)).tolist()
    for (owner, step, state), time in zip(rows, times, strict=True):
        place = (-time, state if 0 <= state < N else N)
        chosen[owner, step] = min(chosen.get((owner, step), place), place)
    expected = counted([(*key, state) for key, (_, state) in chosen.items()], RecordBounds(3, 2))
    order = sorted(range(len(rows)), key=lambda k: rows[k][:2])
    counter = RowCounter(N, RecordBounds(3, 2), 2)
    table = np.array([(*rows[k], times[k]) for k in order])
    new_owner = np.diff(table[:, 0], prepend=-1) != 0
    for part in np.split(np.arange(len(rows)), list(parts)):
        counter.add(new_owner[part], *table[part, 1:].T)
    found = counts_of_keys(*counter.found(), N, RecordBounds(3, 2))
    same(found, expected)
    assert (found.n_owners, found.left_out) == (expected.n_owners, expected.left_out)


@seeds(20)
@pytest.mark.parametrize("shortest", [1, 2])
def test_no_owner_adds_more_than_the_caps_allow(seed, shortest):
    """Whatever one owner's rows are, and whoever's stand beside them."""
    rows, caps = rows_of(seed, 80, 2), RecordBounds(4, 3)
    alone = counted([row for row in rows if row[0] == 0], caps, shortest)
    together = counted(rows, caps, shortest)
    added = together.transitions.toarray() - alone.transitions.toarray()
    other = counted([row for row in rows if row[0] == 1], caps, shortest).transitions.toarray()
    np.testing.assert_array_equal(added, other)
    assert alone.transitions.sum() <= caps.max_sequences * (caps.max_length - 1)
    assert alone.starts.sum() <= caps.max_sequences


def test_sums_of_partitions_are_the_counts_of_all():
    rows, caps, totals = rows_of(3, 200, 40), RecordBounds(4, 2), Counter()
    for part in range(3):
        counter = RowCounter(N, caps, 2)
        own = np.array(sorted(row for row in rows if row[0] % 3 == part))
        counter.add(np.diff(own[:, 0], prepend=-1) != 0, own[:, 1], own[:, 2])
        for key, total in zip(*counter.found(), strict=True):
            totals[int(key)] += int(total)
    keys = np.array(list(totals), dtype=np.int64)
    found = counts_of_keys(keys, np.array(list(totals.values()), dtype=np.int64), N, caps)
    whole = counted(rows, caps)
    same(found, whole)
    assert (found.n_owners, found.left_out) == (whole.n_owners, whole.left_out)


@pytest.mark.parametrize("rows", [[(0, 5, 1), (0, 4, 1)], [(0, 5, 1), (0, 6, 1), (0, 5, 1)]])
def test_rows_out_of_order_are_refused(rows):
    table = np.array(rows)
    for parts in ([], [1]):
        counter = RowCounter(N, RecordBounds(9), 2)
        with pytest.raises(ValueError, match=r"^rows are out of order"):
            for k, part in enumerate(np.split(table, parts)):
                counter.add(np.array([k == 0] + [False] * (len(part) - 1)), part[:, 1], part[:, 2])


def test_nothing_counts_and_no_owner_is_anybody():
    counter = RowCounter(N, RecordBounds(3), 2)
    counter.leave_out(7)
    counter.add(np.zeros(0, bool), np.zeros(0, np.int64), np.zeros(0, np.int64))
    found = counts_of_keys(*counter.found(), N, RecordBounds(3))
    assert (found.left_out, found.n_owners, found.transitions.nnz) == (7, 0, 0)
    assert repr(counter) == "RowCounter(...)"


def test_the_largest_numbers_of_steps_are_no_neighbours():
    far = 2**63 - 1
    rows = [(0, -far - 1, 0), (0, -far, 1), (0, far - 1, 2), (0, far, 3), (1, -far - 1, 0)]
    found = counted(rows, RecordBounds(9, 9))
    assert found.transitions.toarray()[[0, 2], [1, 3]].tolist() == [1, 1] and found.transitions.sum() == 2


def test_memory_does_not_grow_with_the_rows_of_one_owner():
    """Fault 70: one owner with all rows."""

    def peak(n_parts, caps):
        counter = RowCounter(N, caps, 2)
        state = np.arange(10_000) % N
        tracemalloc.start()
        for k in range(n_parts):
            counter.add(np.zeros(10_000, bool), np.arange(10_000) + 10_000 * k, state)
        found = counts_of_keys(*counter.found(), N, caps)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found.transitions.sum(), highest

    small, least = peak(20, RecordBounds(100, 3))
    large, most = peak(400, RecordBounds(100, 3))
    assert small == large == 99
    assert most < 1.1 * least + 100_000
    # Where nothing is capped keys are held, up to a number that is fixed.
    everything, held = peak(400, RecordBounds(2**20, 1))
    assert everything == 2**20 - 1 and held < 60e6


def test_small_tables_of_one_owner_one_by_one():
    """All tables of up to four rows at steps 0 to 4 in two states, by the plain loop."""
    for steps in itertools.combinations(range(5), 4):
        for states in itertools.product(range(2), repeat=4):
            rows = [(0, step, state) for step, state in zip(steps, states, strict=True)]
            for caps, shortest in itertools.product(
                [RecordBounds(2, 1), RecordBounds(3, 1), RecordBounds(2, 2)], [1, 2]
            ):
                sequences, owners = sequences_of(rows, shortest)
                expected = count_transitions(
                    sequences, N, caps.max_length, owners=owners, max_sequences=caps.max_sequences
                )
                same(counted(rows, caps, shortest), expected)
