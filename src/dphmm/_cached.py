"""Values that are computed once: a property of an object, and the last values of a function.

`cached_property` has no lock, as in the standard library from Python 3.12 on. The one of Python 3.11 takes a lock at
the first read, which costs more than most of what is computed here.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

if sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(Generic[T]):
        """An attribute that is computed at its first read.

        Two threads that read it first may both compute it. Then the later value stays.
        """

        def __init__(self, func: Callable[[Any], T]) -> None:
            self.func = func
            self.__doc__ = func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...
        def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self.func(instance)
            return value


class Recent(Generic[K, V]):
    """The values that were used last, by key: at most so many. Threads may share it; two may compute one value.

    >>> squares = Recent[int, int](1)
    >>> squares.keep(2, 4), squares.get(2), squares.get(3)
    (4, 4, None)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._values = OrderedDict[K, V]()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value of a key, which now is the last one used; None where there is none."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: K, value: V) -> V:
        """Keep a value, and drop those that were used longest ago. Returns it."""
        with self._lock:
            self._values[key] = value
            while len(self._values) > self.most:
                self._values.popitem(last=False)
        return value

    def clear(self) -> None:
        """Keep none."""
        with self._lock:
            self._values.clear()
