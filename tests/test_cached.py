"""A cached property is computed once for each object, and no object waits for another one.

Fails where a value is computed at every read, where two objects share one, or with the lock of Python 3.11, which is
one for all objects of a class.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from threading import Event, Thread

from dphmm._cached import Recent, cached_property


@dataclass(frozen=True)
class Square:
    side: int
    made: list

    @cached_property
    def area(self):
        """The product of two sides."""
        self.made.append(self.side)
        return self.side**2


def test_a_value_is_computed_once_for_each_object():
    made: list = []
    small, large = Square(2, made), Square(3, made)
    assert [small.area, large.area, small.area, copy.copy(large).area] == [4, 9, 4, 9]
    assert made == [2, 3]
    assert (vars(small)["area"], Square.area.__doc__) == (4, "The product of two sides.")
    assert Square(2, made) == small


def test_no_object_waits_for_another():
    """While one object computes its value, another thread reads that of a second object."""
    done = Event()

    class Waiting:
        def __init__(self, compute):
            self.compute = compute

        @cached_property
        def value(self):
            return self.compute()

    def beside():
        Thread(target=lambda: Waiting(done.set).value, daemon=True).start()
        return done.wait(10)

    assert Waiting(beside).value


def test_the_values_used_last_are_kept_and_no_more():
    kept = Recent[str, int](2)
    assert [kept.keep("a", 1), kept.keep("b", 2), kept.get("a"), kept.keep("c", 3)] == [1, 2, 1, 3]
    assert (kept.get("a"), kept.get("b"), kept.get("c"), len(kept)) == (1, None, 3, 2)
    kept.clear()
    assert (kept.get("a"), len(kept)) == (None, 0)
