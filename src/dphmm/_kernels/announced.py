"""Who is told before a kernel is compiled. Apart from `compiled`: to ask for it loads no compiler."""

from __future__ import annotations

from collections.abc import Callable

#: Called before each kernel that the cache on disk does not have: with whether it will have it then.
tell: Callable[[bool], None] | None = None
