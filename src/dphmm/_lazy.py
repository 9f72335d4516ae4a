"""Packages whose names are loaded when first used: each lists them once, in imports for type checkers.

Source: Scientific Python, SPEC 1, Lazy loading of submodules and functions.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

#: An import of a public name, for types alone or at once.
_NAME = re.compile(r"^(?:    )?from ([\w.]+) import (\w+) as \2$", re.MULTILINE)


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Its public names are those that it imports as ``from MODULE import NAME as NAME``: under ``if TYPE_CHECKING:`` the
    names that are loaded when first used, subpackages (``from PACKAGE import NAME as NAME``) among them.

    >>> import dphmm.choose
    >>> load, _, names = lazy("dphmm.choose")
    >>> names, load("read_plan").__module__
    (['SchedulePlan', 'optimize', 'plan', 'read_plan', 'save_plan'], 'dphmm.choose.schedule_plan')
    """
    # A file of the package or of a zip file of it: both have the source.
    loader: Any = sys.modules[package].__loader__
    homes = {name: home for home, name in _NAME.findall(loader.get_source(package))}
    names = sorted(homes)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return import_module(f"{home}.{name}") if home == package else getattr(import_module(home), name)

    return load, lambda: names, names
