"""What may be printed, pickled or looked into of a session, a plan, a release or a batch does not depend on the truth.

Claim: text (str, repr), pickles and attributes of every object that a release leaves behind are the same for every
truth when the answers are; nothing that is reachable from them holds the name of a true state. Left out is what is the
owner's alone, in an attribute of that name: how often the truth had drifted (``_drifted``, ``drifted``,
``outside``). Objects that must hold a row for a while have no repr that shows it.

It would fail for a dataclass with its default repr, a cached truth, a closure that outlives its draw.
"""

from __future__ import annotations

import gc
import pickle
import traceback
import types

import numpy as np
import pytest

import dphmm
from dphmm.release.batch import Batch, BatchReport
from dphmm.release.stream import parse_line
from dphmm.states.trajectory import Trajectories
from dphmm.storage.trajectories import load_trajectories
from independence.commands import PAGES, narrow
from independence.instances import instance, truths_at
from independence.observing import CountedBits, attributes_of, observe, replaced_draws
from independence.secrets import MOMENTS, NAME, PLACES, secrets_in

OWNERS = {"_drifted", "drifted", "outside"}


def reachable(*roots: object) -> list[object]:
    """All objects that can be reached from some, but not through modules, classes and functions' globals."""
    seen: dict[int, object] = {}
    waiting = list(roots)
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, (type, types.ModuleType)):
            continue
        seen[id(item)] = item
        if isinstance(item, types.FunctionType):
            waiting.extend([item.__closure__ or (), item.__defaults__ or ()])
        else:
            waiting.extend(gc.get_referents(item))
    return list(seen.values())


def texts(objects: list[object]) -> set[str]:
    return {item for item in objects if isinstance(item, str)}


def attributes(item: object) -> dict[str, str]:
    """Attributes as text, but for the owner's and for those that have no text but their address."""
    shown = {name: repr(value) for name, value in attributes_of(item).items() if name not in OWNERS}
    return {name: text for name, text in shown.items() if "0x" not in text}


@pytest.mark.parametrize("seed", [0, 4, 8, 13])
def test_text_pickles_and_attributes_are_the_same(seed):
    """What a plan has computed by then was computed for any truth."""
    case = instance(seed)
    past = observe(case, next(truths_at(case, 0)))["answers"]
    shown = []
    for truths in truths_at(case, 0):
        session = case.session(CountedBits(1))
        if case.skipped[0]:
            session.skip(case.skipped[0])
        with replaced_draws(past):
            plan = session.plan
            release = session.release(truths[0])
        objects = (plan, plan.record, release, session.posterior, session.prior)
        pickled = [pickle.dumps(item) for item in objects]
        printed = [(str(item), repr(item), attributes(item)) for item in (*objects, session)]
        shown.append((pickled, printed))
    assert all(found == shown[0] for found in shown)


def test_a_session_is_not_pickled():
    """It holds its stream of random words, and a copy would draw the same noise again."""
    session = instance(0).session(dphmm.ReplayBits(1))
    session.release(0)
    with pytest.raises(TypeError):
        pickle.dumps(session)


def rows(*names: str) -> Trajectories:
    return Trajectories.from_labels(["ann"] * len(names), state=np.array(names, dtype=object))


def batch_of(*names: str) -> Batch:
    policy = dphmm.policy.from_edges([(0, 1), (2, 3)], 4)
    batch = Batch(narrow(4), policy, PAGES, 1, bits=CountedBits(2))
    with replaced_draws([(1,), (5,), (-2,)]):
        released = [row for chunk in batch.run(rows(*names)) for row in chunk]
    batch.released = released
    return batch


def test_nothing_reachable_holds_the_name_of_a_true_state():
    """Neither after one release, nor after a batch, nor while a batch is between two chunks (but in its own rows)."""
    session = dphmm.ReleaseSession(narrow(4), dphmm.policy.complete(4), PAGES, 1, bits=CountedBits(2))
    release = session.release(NAME)
    batch = batch_of("home", NAME, NAME)
    found = texts(reachable(session, release, session.plan, session._ledger, batch, batch.released))
    assert NAME not in found
    assert "home" in found, "the walk sees the names that are public"


def test_a_name_that_is_kept_is_found():
    """The check can fail."""
    session = instance(0).session(CountedBits(1))
    truth = NAME
    session._last = lambda: truth
    assert NAME in texts(reachable(session))


def test_after_an_error_only_frames_of_the_traceback_hold_the_truth(monkeypatch):
    """The error itself, its causes and the session do not; printed without locals, neither does the traceback."""
    session = dphmm.ReleaseSession(narrow(4), dphmm.policy.complete(4), PAGES, 1, cap_epsilon=0)
    with pytest.raises(dphmm.errors.BudgetExceeded) as caught:
        session.release(NAME)
    error = caught.value
    assert NAME not in "".join(traceback.format_exception(error))
    in_frames = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert NAME in in_frames, "with locals it does: show none, and send none to a service that collects errors"
    error.__traceback__ = None
    assert NAME not in texts(reachable(error, session))


def test_a_batch_and_its_parts_print_nothing_of_the_rows():
    known, unknown = batch_of("home", "home", "news"), batch_of("help", NAME, "checkout")
    for printed in (str, repr):
        assert printed(known.setting)[:30] == printed(unknown.setting)[:30]
        assert [printed(row) for row in known.released] == [printed(row) for row in unknown.released]
        assert printed(rows("home", NAME)) == printed(rows(NAME, "news"))


def test_the_report_of_a_batch_prints_no_count_of_drift():
    """Counts of drift are the owner's; a log line with the report would publish them."""
    known, unknown = batch_of("home", "home", "news"), batch_of("help", NAME, "checkout")
    assert unknown.report.drifted > known.report.drifted
    assert repr(known.report) == repr(unknown.report)


def test_the_report_says_nothing_else_that_depends_on_the_truth():
    first, other = (attributes(batch_of(*names).report) for names in (("home",) * 3, (NAME, "help", "checkout")))
    assert first == other
    assert first.keys() == vars(BatchReport()).keys() - OWNERS


@pytest.mark.parametrize("on_map", [True, False])
def test_a_line_of_a_stream_does_not_print_its_place(on_map):
    lat, lon = PLACES[0]
    place = f'"lat": {lat}, "lon": {lon}' if on_map else f'"state": "{NAME}"'
    line = parse_line(f'{{"user": "ann", "t": "{MOMENTS[0]}", {place}}}'.encode(), on_map)
    assert secrets_in(repr(line).encode()) == []


def test_what_is_read_of_a_file_prints_no_row(tmp_path):
    lat, lon = PLACES[0]
    path = tmp_path / "rows.csv"
    path.write_text(f"user,t,lat,lon,state\nann,{MOMENTS[0]},{lat},{lon},{NAME}\nann,{NAME},{lat},{lon},{NAME}\n")
    loaded = load_trajectories(path)
    assert secrets_in(f"{loaded!r} {loaded.trajectories!r} {loaded.dropped!r}".encode()) == []
