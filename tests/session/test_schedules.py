"""Releases by a schedule: rows that are not asked, promises over paths, and that nothing but public values decides."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.release.batch import Batch
from dphmm.session import estimate
from dphmm.session.plan import all_partners, plan_states, recorded_joint_edges, spread
from dphmm.session.stepwise import walk
from dphmm.states.trajectory import Trajectories

Schedule, SequencePromise = dphmm.accounting.Schedule, dphmm.SequencePromise
N = 9
MOVES = np.zeros((N, N))
for _i, _j in itertools.product(range(N), repeat=2):
    _near = max(abs(a - b) for a, b in zip(divmod(_i, 3), divmod(_j, 3), strict=True)) <= 1
    MOVES[_i, _j] = (4.0 if _i == _j else 1.0) * _near
MOVES /= MOVES.sum(axis=1, keepdims=True)
MODEL = dphmm.MarkovModel(np.full(N, 1 / N), MOVES)
SPACE = dphmm.StateSpace(np.stack(np.divmod(np.arange(N), 3), axis=1))
POLICY = dphmm.policy.radius(SPACE, 1)
BITS = dphmm.ReplayBits(17)
PLANNED = Schedule(SequencePromise(2, per=5, passed=0), 1, [2, 5])
BARS = (0.7, 0.95, 1.05, 1.13)
PACED = Schedule(SequencePromise(2, per=5, passed=0), 1, [1, 2, 3, 5], BARS)
STAGGERED = Schedule(SequencePromise(2, per=5), 1, [2, 5], seed="1")
SCHEDULES = pytest.mark.parametrize("schedule", [PLANNED, STAGGERED, PACED], ids=lambda schedule: schedule.kind)
CONSTRAINTS = pytest.mark.parametrize("constraint", ["support", "delta=0.05"])


def session_of(schedule, seed=3, **choices):
    return dphmm.ReleaseSession(MODEL, POLICY, SPACE, schedule=schedule, bits=dphmm.ReplayBits(seed), **choices)


def likelihoods(session, release):
    """Pr(z | s) (N,) of a release up to a constant, from its plan made again."""
    record = session._ledger.plan(release.plan_hash)
    plan = session.setting.planner.plan(np.ones(N, dtype=bool), plan_states(record), recorded_joint_edges(record))
    return plan, np.asarray(plan.log_likelihood(np.asarray(release.z_lattice)))


@SCHEDULES
@CONSTRAINTS
def test_a_row_that_is_not_asked_has_the_estimate_of_what_was_published_and_costs_nothing(
    schedule, constraint, tmp_path
):
    """Against a filter of dense arrays over the answers that were published."""
    ledger = dphmm.open_ledger(tmp_path / "ledger.db")
    session = session_of(schedule, ledger=ledger, constraint=constraint)
    # Step 1 is one move after what the initial distribution describes.
    belief, asked = np.full(N, 1 / N) @ MOVES, 0
    for t in range(1, 13):
        release = session.release(t % N)
        if release.asked:
            belief = belief * np.exp(likelihoods(session, release)[1])
            belief /= belief.sum()
            asked += 1
        else:
            assert (release.z, release.z_lattice, release.epsilon, release.cost) == (None, None, 0, 0)
            assert (release.plan_hash, release.mechanism, release.constant) == ("", "", False)
        guess = session.estimate()
        assert np.allclose(guess.answer, belief @ SPACE.own_answers, atol=1e-9)
        assert guess.state == int(np.argmax(belief > belief.max() * (1 - 1e-9)))
        belief = belief @ MOVES
    kinds = [entry.kind for entry in ledger.entries("", "state")]
    assert kinds.count("release") == asked < 12 and kinds.count("skip") == 12 - asked
    assert ledger.spent("").epsilon == asked
    ledger.check()


@SCHEDULES
def test_asking_again_gives_the_same_row(schedule):
    ledger = MemoryLedger()
    session = session_of(schedule, ledger=ledger)
    first = [session.release(4) for _ in range(12)]
    again = dphmm.ReleaseSession.resume(ledger, "", MODEL, POLICY, SPACE, bits=dphmm.ReplayBits(9))
    for release, other in zip(first, [again.released(t) for t in range(1, 13)], strict=True):
        assert release.asked == other.asked == again.has_released(release.t)
        assert release.z is other.z is None or np.array_equal(release.z, other.z)
    assert len(again.releases) == 12
    assert len(ledger.entries("", "state")) == 12


def table_of(rows):
    users, steps, states = zip(*rows, strict=True)
    return pd.DataFrame({"user": list(users), "step": steps, "state": [str(s) for s in states]})


def rows_of(seed, users=4, steps=17, share=0.7):
    """Rows with gaps, of subjects that begin at different steps."""
    rng = np.random.default_rng(seed)
    return [
        (f"u{user}", int(step), int(rng.integers(N)))
        for user in range(users)
        for step in np.flatnonzero(rng.random(steps) < share) + 3 * user
    ]


@SCHEDULES
@CONSTRAINTS
def test_a_table_is_what_sessions_release(schedule, constraint):
    """Every row of a table, asked or not, is in the ledger, and a session goes on from it."""
    for seed in range(4):
        rows = rows_of(seed)
        ledger = MemoryLedger()
        batch = Batch(
            *(MODEL, POLICY, SPACE),
            schedule=schedule,
            ledger=ledger,
            constraint=constraint,
            bits=dphmm.ReplayBits(seed),
        )
        table = table_of(rows)
        data = Trajectories.from_labels(table.user, state=table.state.to_numpy(dtype=object), step=table.step)
        found = [row for chunk in batch.run(data) for row in chunk]
        assert [(row.user, int(row.release.t)) for row in found] == sorted(
            (user, step - min(s for u, s, _ in rows if u == user) + 1) for user, step, _ in rows
        )
        assert 0 < sum(row.release.asked for row in found) == batch.report.released < len(found)
        assert batch.report.not_asked == len(found) - batch.report.released
        for user in dict.fromkeys(row.user for row in found):
            again = dphmm.ReleaseSession.resume(ledger, user, MODEL, POLICY, SPACE, bits=dphmm.ReplayBits(1))
            told = {entry.t: entry for entry in ledger.entries(user, "state")}
            for release in (row.release for row in found if row.user == user):
                assert again.released(release.t).asked is release.asked
                if release.asked:
                    assert told[release.t].z == tuple(release.z_lattice.tolist())


@SCHEDULES
def test_a_table_goes_on_where_it_stopped_and_tells_the_same_again(schedule):
    rows = rows_of(7)
    ledger = MemoryLedger()
    choices = {"schedule": schedule, "ledger": ledger, "bits": dphmm.ReplayBits(5), "progress": False}
    early = [row for row in rows if row[1] < 9]
    some = dphmm.release_many(table_of(early), MODEL, POLICY, SPACE, **choices)
    whole = dphmm.release_many(table_of(rows), MODEL, POLICY, SPACE, resume=True, **choices)
    both = some.merge(whole, on=["user", "step"], suffixes=("", "_again"))
    assert len(both) == len(some) < len(whole)
    for name in ("z_0", "z_1", "epsilon", "plan"):
        assert both[name].equals(both[f"{name}_again"])
    unasked = whole[whole.plan.isna()]
    assert len(unasked) and unasked.z_0.isna().all() and (unasked.epsilon == 0).all() and (unasked.cost == 0).all()
    asked = whole[whole.plan.notna()]
    assert len(asked) and asked.z_0.notna().all() and (asked.epsilon == 1).all()


def forced(monkeypatch, answers):
    """Make every answer the next of a list, whatever the true state is."""
    from dphmm.session import rounds

    coming = iter(answers)

    def answer(plans, plan_of, states, bits):
        z = np.array([next(coming) for _ in states], dtype=np.int64).reshape(len(states), 2)
        return z, np.zeros(len(states), dtype=bool)

    monkeypatch.setattr(rounds, "answer", answer)


@SCHEDULES
@CONSTRAINTS
def test_times_of_asking_do_not_depend_on_the_truth(monkeypatch, schedule, constraint):
    rng = np.random.default_rng(2)
    for _ in range(6):
        answers = rng.integers(-1, 4, (12, 2))
        told = set()
        for _ in range(5):
            forced(monkeypatch, answers)
            session = session_of(schedule, constraint=constraint)
            told.add(tuple(session.release(int(s)).asked for s in rng.integers(-1, N, 12)))
        assert len(told) == 1


@SCHEDULES
@CONSTRAINTS
def test_neighbouring_paths_lose_at_most_the_promise(monkeypatch, schedule, constraint):
    """Every pair of neighbouring paths over one block, for forced answers: the loss is that of the asked steps.

    Paths of three states that the policy joins, out of nine: all pairs of all steps are looked at one by one, because
    the loss of a path is the sum of what its steps lose.
    """
    rng = np.random.default_rng(11)
    worst = 0.0
    for _ in range(12):
        forced(monkeypatch, rng.integers(-2, 5, (12, 2)))
        session = session_of(schedule, constraint=constraint)
        block, losses = 0.0, []
        for t in range(1, 11):
            if (t - 1) % 5 == 0:
                losses.append(block)
                block = 0.0
            release = session.release(0)
            if not release.asked:
                continue
            plan, logs = likelihoods(session, release)
            pairs = [*POLICY.edges(), *all_partners([plan.record]).tolist()]
            block += max(abs(float(logs[i] - logs[j])) for i, j in pairs)
        losses.append(block)
        worst = max(worst, *losses)
        assert max(losses) <= 2 + 1e-9
    assert worst > 1.5


def test_a_paced_schedule_leaves_what_another_query_has_spent():
    ledger = MemoryLedger()
    promise = SequencePromise(2, per=5, passed=0)
    other = dphmm.ReleaseSession(MODEL, POLICY, SPACE, 1, promise=promise, query="other", ledger=ledger, bits=BITS)
    other.release(4)
    session = session_of(PACED, ledger=ledger)
    asked = [session.release(4).asked for _ in range(5)]
    assert sum(asked) <= 1
    assert ledger.spent("").epsilon <= 2


def test_an_account_that_has_no_room_refuses_a_planned_step_and_spends_nothing():
    ledger = MemoryLedger()
    promise = SequencePromise(2, per=5, passed=0)
    other = dphmm.ReleaseSession(MODEL, POLICY, SPACE, 1, promise=promise, query="other", ledger=ledger, bits=BITS)
    other.release(4), other.release(4)
    session = session_of(PLANNED, ledger=ledger)
    assert not session.release(4).asked
    with pytest.raises(BudgetExceeded, match="promise"):
        session.release(4)
    assert ledger.spent("").epsilon == 2


def test_a_history_is_continued_under_its_own_schedule_alone():
    ledger = MemoryLedger()
    session_of(PLANNED, ledger=ledger, subject="a", origin="0").release(4)
    resumed = dphmm.ReleaseSession.resume(ledger, "a", MODEL, POLICY, SPACE)
    assert resumed.setting.schedule == PLANNED
    for schedule in (None, PACED, Schedule(PLANNED.promise, 1, [2, 4])):
        choices = {"promise": PLANNED.promise, "epsilon": 1} if schedule is None else {"schedule": schedule}
        with pytest.raises(InvalidInput, match=r"^schedule: got "):
            dphmm.ReleaseSession(MODEL, POLICY, SPACE, ledger=ledger, subject="a", origin="0", **choices).release(4)
        table = table_of([("a", 0, 4), ("a", 1, 4)])
        with pytest.raises(InvalidInput, match=r"^(schedule|answer): "):
            dphmm.release_many(table, MODEL, POLICY, SPACE, ledger=ledger, resume=True, progress=False, **choices)


def test_what_contradicts_a_schedule_is_refused_by_name():
    def refused(field, **choices):
        with pytest.raises(InvalidInput) as error:
            session_of(PLANNED, **choices)
        assert error.value.field == field

    refused("epsilon", epsilon=2)
    refused("promise", promise=SequencePromise(3, per=5))
    with pytest.raises(InvalidInput, match=r"^schedule: "):
        session_of("planned-ish")


def test_a_cap_counts_the_rows_that_are_asked():
    rows = [("a", step, 4) for step in range(10)]
    released = dphmm.release_many(
        *(table_of(rows), MODEL, POLICY, SPACE),
        schedule=PLANNED,
        cap_epsilon=4,
        progress=False,
        bits=dphmm.ReplayBits(1),
    )
    assert released.plan.notna().sum() == 4
    with pytest.raises(BudgetExceeded, match="needs 4 for 4 rows"):
        dphmm.release_many(*(table_of(rows), MODEL, POLICY, SPACE), schedule=PLANNED, cap_epsilon=3, progress=False)


def test_the_spread_is_that_of_the_belief():
    belief = dphmm.markov.Belief.initial(MODEL)
    away = SPACE.own_answers - SPACE.own_answers.mean(axis=0)
    assert spread(belief, SPACE) == pytest.approx(np.sqrt((away**2).sum(axis=1).mean()))
    assert Fraction(PLANNED.exact) == 1


@CONSTRAINTS
def test_a_paced_session_asks_where_a_dense_filter_says(monkeypatch, constraint):
    """Twin: Bayes' rule over dense arrays, the spread of its belief, and a count of what each block has left."""
    rng = np.random.default_rng(23)
    seen = set()
    for _ in range(8):
        forced(monkeypatch, rng.integers(-1, 4, (15, 2)))
        session = session_of(PACED, constraint=constraint)
        belief, spent = np.full(N, 1 / N) @ MOVES, 0
        for t in range(1, 16):
            place = (t - 1) % 5 + 1
            spent = 0 if place == 1 else spent
            mean = belief @ SPACE.own_answers
            away = np.sqrt(belief @ ((SPACE.own_answers - mean) ** 2).sum(axis=1))
            left = sum(place <= step for step in (1, 2, 3, 5))
            bar = BARS[min(-(-left // max(1, 2 - spent)), 4) - 1]
            release = session.release(0)
            assert release.asked == (spent < 2 and place != 4 and away >= bar)
            if release.asked:
                spent += 1
                belief = belief * np.exp(likelihoods(session, release)[1])
                belief /= belief.sum()
            belief = belief @ MOVES
            seen.add((place, release.asked))
    assert {asked for _, asked in seen} == {True, False} and len(seen) > 6


@SCHEDULES
@CONSTRAINTS
def test_a_resumed_subject_stands_where_it_stood_however_its_rows_lie(schedule, constraint):
    """Snapshots are kept between rows with gaps and rows that are not asked: what follows is the whole fold's."""
    rng = np.random.default_rng(8)
    # In the last a gap ends with a row that is not asked, at which a snapshot is due, and the next row is asked.
    cases = [np.flatnonzero(rng.random(260) < share) for share in (0.15, 0.5, 0.9)]
    for seed, steps in enumerate([*cases, np.array([*range(63), 68, 69])]):
        rows = [("a", int(step), int(rng.integers(N))) for step in steps]
        ledger = MemoryLedger()
        choices = {"schedule": schedule, "constraint": constraint, "ledger": ledger, "progress": False}
        first = dphmm.release_many(table_of(rows), MODEL, POLICY, SPACE, bits=dphmm.ReplayBits(seed), **choices)
        session = dphmm.ReleaseSession.resume(ledger, "a", MODEL, POLICY, SPACE, bits=dphmm.ReplayBits(1))
        *_, whole = walk(session.setting, session.setting.first(), ledger.entries("a", "state"), ledger.plan)
        assert session.t == whole.after.t
        assert np.allclose(session.prior.probability, whole.after.prior.probability, atol=1e-12)
        assert first.plan.isna().any()


def test_rows_before_an_answer_have_the_guess_without_one():
    """Smoothed rows follow from later answers, and without any from the model alone."""
    rows = table_of([("a", t, 4) for t in range(1, 6)] + [("b", 1, 4)])
    with pytest.warns(UserWarning, match="1 of 2 people"):
        table = dphmm.release_many(rows, MODEL, POLICY, SPACE, schedule=PLANNED, bits=BITS, progress=False)
    # The model starts before the first step.
    prior = np.asarray(MODEL.initial) @ MOVES
    smoothed = dphmm.reconstruction.smooth(table, MODEL, POLICY, SPACE, marginals=True)
    asked, silent = smoothed[smoothed.step == 1].itertuples()
    assert np.allclose(silent.marginals, prior) and silent.probability == pytest.approx(prior.max())
    assert not np.allclose(asked.marginals, prior, atol=1e-3) and asked.probability == max(asked.marginals)


@SCHEDULES
def test_what_creeps_in_over_a_gap_is_kept_by_release_and_report(schedule, tmp_path):
    """One move in 10^13 leads to the other side, which an answer from there makes likely; rows that are not asked, too.

    Twin: a dense chain, move by move. A gap that ends where nothing changes by much is 700 times too sure.
    """
    line = dphmm.StateSpace([0, 1, 2, 3, 4, 29, 30, 31, 32])
    moves = np.zeros((N, N))
    moves[:5, :5], moves[:5, 5:], moves[5:, 5:] = 1 / 5, 1e-13, 1 / 4
    moves /= moves.sum(axis=1, keepdims=True)
    model = dphmm.MarkovModel(np.eye(N)[2], moves, space=line)
    policy, ledger = dphmm.policy.radius(line, 1), dphmm.open_ledger(tmp_path / "ledger.db")
    steps = [2, 700, 702, 703, 1404, 1405, 1407]
    rows, output = [("a", step, 7 if step > 2 else 2) for step in steps], tmp_path / "released.parquet"
    choices = {"schedule": schedule, "ledger": ledger, "bits": dphmm.ReplayBits(4), "output": output}
    told = dphmm.release_many(table_of(rows), model, policy, line, progress=False, model_people="others", **choices)
    session = dphmm.ReleaseSession.resume(ledger, "a", model, policy, line)
    # The first row is one move after what the initial distribution describes.
    belief, t, asked = np.eye(N)[2] @ moves, told.step[0], 0
    entries = ledger.entries("a", "state")
    walked = walk(session.setting, session.setting.first(), entries, ledger.plan)
    estimates = {s.entry.through + t - 1: estimate(s.posterior, line).answer[0] for s in walked}
    for row in told.itertuples():
        for _ in range(t, row.step):
            belief = belief @ moves
        t = row.step
        if isinstance(row.plan, str):
            record, asked = ledger.plan(row.plan), asked + 1
            plan = session.setting.planner.plan(np.ones(N, dtype=bool), plan_states(record))
            belief = belief * np.exp(np.asarray(plan.log_likelihood(np.array([int(row.z_0)]))))
            belief /= belief.sum()
        assert estimates[row.step] == pytest.approx(float(belief @ line.own_answers[:, 0]), abs=1e-6)
    assert 0 < asked < len(steps)
    assert dphmm.report.read_report(output, model, policy, progress=False).rows_told
