"""`cached_property` without a lock, as it is in the standard library from Python 3.12 on.

The one of Python 3.11 takes a lock at the first read, which costs more than most of what is computed here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")

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
