"""The schedule of public plans: what threads that share one find.

It would fail where a step is found twice, or where a plan is looked up after another thread has dropped it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, TimeoutError

import numpy as np
import pytest

from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.setting import Setting
from session.test_tables import world


def schedule_of(name):
    model, policy, space, epsilon, _ = world(name)
    return PlanSchedule(Setting.of(model, policy, space, epsilon))


@pytest.mark.parametrize("name", ["tails", "two phases", "grid"])
def test_a_step_that_two_threads_look_for_is_found_once(name, monkeypatch):
    """The second thread asks while the first one is between finding a support and adding it."""
    steps = np.arange(1, 40)
    expected = schedule_of(name).numbers(steps)
    schedule, reach, others = schedule_of(name), type(schedule_of(name)._model).reach, []
    with ThreadPoolExecutor(1) as pool:

        def reach_slowly(model, *args):
            found = reach(model, *args)
            if not others:
                others.append(pool.submit(schedule.numbers, steps))
                with pytest.raises(TimeoutError):
                    others[0].result(timeout=0.2)
            return found

        monkeypatch.setattr(type(schedule._model), "reach", reach_slowly)
        assert schedule.numbers(steps).tolist() == expected.tolist()
        assert others[0].result().tolist() == expected.tolist()
    supports = [schedule.support(int(t)).tobytes() for t in steps]
    assert supports == [schedule_of(name).support(int(t)).tobytes() for t in steps]


def test_a_plan_that_another_thread_drops_meanwhile_is_found_all_the_same():
    schedule = schedule_of("tails")
    planner = schedule._setting.planner
    planner._most_plans = 1
    first, second = (schedule.support(t) for t in (1, 2))
    plan = planner.plan(first, first)
    kept = planner._plans

    class Dropping(type(kept)):
        """Another thread plans the second step right after the first one was found."""

        def get(self, key):
            found = kept.get(key)
            if found is plan:
                planner._plans = kept
                planner.plan(second, second)
            return found

    planner._plans = Dropping(kept)
    assert planner.plan(first, first) is plan
    assert list(planner._plans.values()) == [plan]
