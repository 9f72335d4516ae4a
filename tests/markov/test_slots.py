"""Slots and models that have them: which matrix moves a step, what is refused, digests and files.

It would fail where a move had the slot of the step it arrives at, where clocks that are put forward or back were read
as others, where a slot stored another move, and where one matrix stopped being the model that it was.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dphmm
import naive_slots
from dphmm.errors import InvalidInput
from dphmm.storage.models import load_model, save_model
from zone_tables import town_with_the_clocks_of

HOUR = 3600
#: Hours of 2024 at which clocks are put forward and back: Berlin on 31 March and 27 October, Lord Howe by half an hour.
CHANGES = {"Europe/Berlin": (475_513, 480_553), "Australia/Lord_Howe": (475_671, 480_039), "+05:30": (475_513, 480_553)}
WALK, STILL = [[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]]


def model_of(matrices, slots, **facts):
    return dphmm.MarkovModel([0.6, 0.4], matrices, slots=slots, **{"step": HOUR, **facts})


@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("seconds", [HOUR, 600, 7000])
def test_slots_are_those_of_the_clock_on_the_wall(zone, seconds):
    """Two days around each change: an hour that is shown twice has one slot, one that is left out has no step."""
    begins = tuple(range(0, 86400, HOUR))
    day = dphmm.markov.Slots(period="1d", width="1h", zone=zone)
    week = dphmm.markov.Slots(period="7d", begins=("3h", "40h", "167h"), zone=zone)
    for change in CHANGES[zone]:
        steps = np.arange(-48 * HOUR // seconds, 48 * HOUR // seconds) + change * HOUR // seconds
        due = [naive_slots.slot_by_clock(step, seconds, zone, begins) for step in steps.tolist()]
        assert day.of_steps(steps, seconds).tolist() == due == [day.of_step(step, seconds) for step in steps.tolist()]
        of_week = [
            naive_slots.slot_by_clock(step, seconds, zone, (3 * HOUR, 40 * HOUR, 167 * HOUR), week=True)
            for step in steps.tolist()
        ]
        assert week.of_steps(steps, seconds).tolist() == of_week
        assert zone[0] == "+" or len(set(zip(due, range(len(due)), strict=True))) == len(due)


def test_an_hour_that_is_shown_twice_counts_twice_and_one_that_is_left_out_never():
    slots = dphmm.markov.Slots(period="1d", width="1h", zone="Europe/Berlin")
    forward, back = (np.arange(change - 12, change + 12) for change in CHANGES["Europe/Berlin"])
    assert 2 not in slots.of_steps(forward, HOUR) and (slots.of_steps(back, HOUR) == 2).sum() == 2


def test_slots_by_position():
    slots = dphmm.markov.Slots(positions="1, 2, 3, 4-6, 7+")
    assert slots.of_steps(np.arange(10), None).tolist() == [0, 0, 1, 2, 3, 3, 3, 4, 4, 4]
    assert [slots.of_step(step, None) for step in range(10)] == [0, 0, 1, 2, 3, 3, 3, 4, 4, 4]
    assert [slots.name(slot) for slot in range(5)] == ["1", "2", "3", "4-6", "7+"]
    assert slots == dphmm.markov.Slots.parse("1,2,3,4-6,7+") != dphmm.markov.Slots.parse("1,2,3,4+")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"positions": "1,3+"}, "positions"),
        ({"positions": "2+"}, "positions"),
        ({"positions": "1,2-3"}, "positions"),
        ({"positions": "1,5-2,6+"}, "positions"),
        ({"positions": "1+", "zone": "+01:00"}, "positions"),
        ({"period": "1d"}, "width"),
        ({"period": "1d", "width": "7h"}, "width"),
        ({"period": "1d", "width": "2d"}, "width"),
        ({"period": "7d", "width": "1min"}, "width"),
        ({"period": "1d", "begins": ("6h", "6h")}, "begins"),
        ({"period": "1d", "begins": ("6h", "24h")}, "begins"),
        ({"period": "1d", "begins": "6h"}, "begins"),
        ({"period": "1d", "width": "4h", "zone": "Mars/Base"}, "zone"),
        ({"period": "1d", "width": "4h", "zone": "UTC"}, "zone"),
        ({"period": "soon", "width": "4h"}, "period"),
    ],
)
def test_slots_that_are_none_are_refused(given, field):
    with pytest.raises(InvalidInput) as refused:
        dphmm.markov.Slots(**given)
    assert refused.value.field == field


def test_a_move_has_the_matrix_of_the_step_it_leaves():
    model = model_of([WALK, STILL], dphmm.markov.Slots(period="1d", begins=("6h", "18h")))
    for t in range(5 * 24, 7 * 24):
        due = WALK if 6 <= (t - 1) % 24 < 18 else STILL
        assert model.matrix_at(t).toarray().tolist() == due == model.transition_at(t).toarray().tolist()
        columns = model.predecessors_at(t)
        assert columns.data.tolist() == np.array(due).T.ravel().tolist()
    runs = list(model.slot_runs(100, 60))
    assert [first for first, _ in runs] == [100, 103, 115, 127, 139, 151] and sum(count for _, count in runs) == 60
    assert not model.time_homogeneous and model_of(WALK, None).time_homogeneous


def test_a_long_run_is_looked_up_in_parts(monkeypatch):
    model = model_of([WALK, STILL], dphmm.markov.Slots(period="1d", begins=("6h", "18h")))
    whole = [t for first, count in model.slot_runs(100, 500) for t in range(first, first + count)]
    monkeypatch.setattr("dphmm.markov.model._RUN", 7)
    parts = list(model.slot_runs(100, 500))
    assert whole == list(range(100, 600)) == [t for first, count in parts for t in range(first, first + count)]
    for first, count in parts:
        assert len({model._slot(t) for t in range(first, first + count)}) == 1


@pytest.mark.parametrize(
    ("matrices", "facts", "field"),
    [
        ([WALK], {}, "transition"),
        ([WALK, STILL, WALK], {}, "transition"),
        (WALK, {}, "transition[0]"),
        ([WALK, [[1.0, 0.0], [0.5, 0.5]]], {}, "transition[1]"),
        ([[[1.0, 0.0], [0.5, 0.5]], WALK], {}, "transition[1]"),
        ([WALK, np.full((3, 3), 1 / 3)], {}, "transition"),
        ([WALK, STILL], {"step": None}, "step"),
    ],
)
def test_matrices_that_are_none_of_the_slots_are_refused(matrices, facts, field):
    """A zero in one slot is a zero in all, or a jump leads there: a support is moved by what is stored."""
    with pytest.raises(InvalidInput) as refused:
        model_of(matrices, dphmm.markov.Slots(period="1d", width="12h"), **facts)
    assert refused.value.field.startswith(field[:10])


def test_with_a_jump_slots_may_store_other_moves():
    slots = dphmm.markov.Slots(period="1d", width="12h")
    model = model_of([WALK, [[1.0, 0.0], [0.5, 0.5]]], slots, jump=0.1)
    assert model.reach([0], 3).all() and model.n_transitions == 4
    with pytest.raises(InvalidInput, match="the same moves in every slot"):
        model.without_jump()


def test_one_slot_is_one_matrix():
    one = model_of([WALK], dphmm.markov.Slots(positions="1+"))
    assert one.slots is None and one.digest == model_of(WALK, None).digest
    # The digest of a model before there were slots: another one would lose the histories that have it.
    assert model_of(WALK, None).digest == "a18091d2db847280974e3cfc32c740dca8206c0fada981cceae9ea4660c6a3eb"


def test_digests_tell_rules_zones_and_matrices_apart():
    berlin, offset = (dphmm.markov.Slots(period="1d", width="12h", zone=zone) for zone in ("Europe/Berlin", "+01:00"))
    others = [
        model_of([WALK, STILL], berlin),
        model_of([STILL, WALK], berlin),
        model_of([WALK, STILL], offset),
        model_of([WALK, STILL], dphmm.markov.Slots(period="1d", begins=("1h", "13h"), zone="Europe/Berlin")),
        model_of([WALK, STILL], dphmm.markov.Slots(positions="1,2+")),
        model_of(WALK, None),
    ]
    assert len({model.digest for model in others}) == len(others)


def test_another_zone_table_changes_no_slot_of_a_model_that_exists(tmp_path):
    """The file holds the zone's changes: read where the town's clocks are others, the model is the same."""
    with town_with_the_clocks_of(tmp_path, "Europe/Berlin") as town:
        model = model_of([WALK, STILL], dphmm.markov.Slots(period="1d", width="12h", zone=town))
        save_model(model, tmp_path / "model.npz")
    with town_with_the_clocks_of(tmp_path, "Asia/Tokyo"):
        again = load_model(tmp_path / "model.npz")
        fresh = model_of([WALK, STILL], dphmm.markov.Slots(period="1d", width="12h", zone=town))
    steps = np.arange(475_000, 476_000)
    assert again.digest == model.digest != fresh.digest
    assert np.array_equal(again.slots_of(steps), model.slots_of(steps))
    assert not np.array_equal(fresh.slots_of(steps), model.slots_of(steps))


@pytest.mark.parametrize(
    "slots", [dphmm.markov.Slots(positions="1,2+"), dphmm.markov.Slots(period="7d", begins=("9h", "100h"))]
)
@pytest.mark.parametrize("jump", [None, 0.1])
def test_a_file_holds_the_model(slots, jump, tmp_path):
    second = [[1.0, 0.0], [0.5, 0.5]] if jump else STILL
    model = model_of([WALK, second], slots, jump=jump, secrets=[0, 1])
    save_model(model, tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.digest == model.digest and again.slots == slots
    save_model(again, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()


def test_who_asks_for_one_matrix_is_refused():
    model = model_of([WALK, STILL], dphmm.markov.Slots(positions="1,2+"))
    for name in ("matrix", "transition"):
        with pytest.raises(InvalidInput, match="one for each slot"):
            getattr(model, name)
    assert [matrix.toarray().tolist() for matrix in model.matrices] == [WALK, STILL]


def test_beliefs_are_those_of_all_paths():
    """Predicted one move at a time, and many at once: the same as the sum over all paths, slot by slot."""
    rng = np.random.default_rng(5)
    matrices = [rng.dirichlet(np.ones(3), 3).tolist() for _ in range(3)]
    slots = dphmm.markov.Slots(period="3h", width="1h")
    model = dphmm.MarkovModel([0.2, 0.3, 0.5], matrices, slots=slots, step=HOUR)
    for first, steps in itertools.product((96, 97, 98), (1, 2, 5)):
        # 96 hours after 1970 it is Monday.
        due = naive_slots.masses(
            (model.initial.tolist(), matrices, [0, 1, 2]), [(first + k) % 3 for k in range(steps)], steps - 1, steps, []
        )
        belief = dphmm.markov.Belief.initial(model)
        many = belief.predict_many(model, first + 1, steps)
        for t in range(first + 1, first + 1 + steps):
            belief = belief.predict(model, t)
        assert np.allclose(belief.probability, due, rtol=0, atol=1e-14)
        assert np.allclose(many.probability, due, rtol=0, atol=1e-14)


def test_a_long_skip_goes_on_after_a_run_that_has_settled():
    """Each slot of 12 hours forgets where it began; a belief that stopped in the first of them would be another one."""
    model = model_of([WALK, [[0.5, 0.5], [0.9, 0.1]]], dphmm.markov.Slots(period="100d", width="50d"))
    belief = dphmm.markov.Belief.initial(model).predict_many(model, 5 * 24, 24 * 52)
    one = dphmm.markov.Belief.initial(model)
    for t in range(5 * 24, 5 * 24 + 24 * 52):
        one = one.predict(model, t)
    assert np.allclose(belief.probability, one.probability, rtol=0, atol=1e-11)
    assert abs(belief.probability[0] - 0.5) > 0.1


def test_histories_without_a_clock_are_refused_where_slots_go_by_one():
    model = model_of([WALK, STILL], dphmm.markov.Slots(period="1d", width="12h"))
    assert model.number_of_first("475513") == 475_513
    for origin in ("", "1@times", "1@rows", "first"):
        with pytest.raises(InvalidInput, match="origin"):
            model.number_of_first(origin)
    assert model_of([WALK, STILL], dphmm.markov.Slots(positions="1,2+")).number_of_first("1@rows") == 1
    for late in (-1, 2**40):
        with pytest.raises(InvalidInput, match="years to 2099"):
            model.slots_of(np.array([late]))
